"""Compile every kernel that a release can call, before the release begins: then nothing can fail in the middle."""

from __future__ import annotations

import numpy as np

from lessnoise.engine import kernels, ziggurat
from lessnoise.engine.grid import reserve


def compile_all() -> None:
    """Call each kernel once for each type of value; from the cache on disk it takes half a second."""
    count = 16
    available = count + reserve(count)
    words = np.arange(available, dtype=np.uint64) << np.uint64(40)
    integers = [np.zeros(count + 1, np.int64) for _ in range(4)]
    scratch = (np.zeros(count), *integers)
    line = (1.0, 0.0, 0.0, 2.0**-50, 2.0**-51, 2.0**-8)
    drawn = (words, available, count, scratch, ziggurat.normal().tables)
    for kind in (np.float64, np.float32):
        values, out = np.zeros(count, kind), np.zeros(count, kind)
        kernels.independent(*drawn, values, out, 0, line)
        stored = np.zeros(count) if kind is np.float64 else np.zeros(count, np.int32)
        kernels.finish(stored, 1.0, scratch, values, out, 0, count, line)
    kernels.standard(*drawn, np.zeros(count), 0)
    kernels.fixed(*drawn, np.zeros(count, np.int32), 0, 2.0**27)
    kernels.fine_squares(words, words.copy(), count, scratch[3], scratch[4], ziggurat.normal().widths)
    pairs = np.zeros((1, 2, 4))
    kernels.fine_dots(
        words, words.copy(), count, scratch[3], scratch[4], ziggurat.normal().widths, 0, pairs, pairs, np.zeros((1, 2))
    )
