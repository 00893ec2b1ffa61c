"""One core for every mechanism: value + noise, rounded to a power-of-two grid exactly as real numbers would be."""

from __future__ import annotations

import math
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engine.grid import BITS, Grid
from lessnoise.engine.job import Job
from lessnoise.engine.ziggurat import MARGIN
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.engine.forms import Form
    from lessnoise.engine.stream import Stream

    Floats = NDArray[Any]

LOADING = 1 << 23  # values by NumPy, in all, after which loading the compiled code has paid for itself
LARGE = 1 << 22  # in one release: load it at once


def add_noise(
    form: Form,
    value: Floats,
    stream: Stream,
    *,
    out: Floats | None = None,
    threads: int | None = None,
    path: str = "auto",
    bits: int = BITS,
    margin: float = MARGIN,
) -> Floats:
    """``value`` plus noise on the grid; float32 stays float32, all else becomes float64. ``out`` may be ``value``.

    The output is a function of the stream's key, the form, the value and ``bits`` alone. ``path`` ("auto", "numba",
    "numpy"), ``threads`` and ``margin`` (how near a boundary floats may decide) change the time it takes, not a bit.

    >>> from lessnoise.engine import Independent, Real, Stream, normal
    >>> form = Independent(normal(), Real.exactly(2.0))
    >>> seeded = lambda: Stream.of(np.random.default_rng(1))
    >>> bool((add_noise(form, np.zeros(9), seeded()) == add_noise(form, np.zeros(9), seeded(), margin=1e9)).all())
    True
    """
    dtype = np.dtype(np.float32 if value.dtype == np.float32 else np.float64)
    if out is not None and (out.shape != value.shape or out.dtype != dtype or not out.flags.c_contiguous):
        raise InvalidInput(
            f"out has shape {out.shape} and dtype {out.dtype}: pass a C-contiguous array of shape {value.shape} and "
            f"dtype {dtype}."
        )
    flat = np.ascontiguousarray(value, dtype=dtype).reshape(-1)
    target = np.empty(flat.size, dtype=dtype) if out is None else out.reshape(-1)
    grid = Grid.of(form.deviation(flat.size), dtype, bits)
    compiled = compiled_kernels(flat.size, path)
    job = Job(flat, target, stream, form.density, grid, margin, compiled, threads, value.shape)
    job.check()
    stream.claim()
    try:
        form.add(job)
    except BaseException:
        target.fill(math.nan)  # leave neither bare noise nor half a release behind
        raise
    return target.reshape(value.shape)


def compiled_kernels(count: int, path: str = "auto") -> Any:  # noqa: ANN401
    """The kernels, where they pay and work. Both paths give the same output, so this is a matter of time alone."""
    if path == "numpy" or _state.failed:
        return None
    if path == "auto" and count < LARGE and not _state.ready:
        _state.values += count
        if _state.values < LOADING:
            return None
    with _state.lock:
        if not _state.ready and not _state.failed:
            _state.load()
    return sys.modules["lessnoise.engine.kernels"] if _state.ready else None


class _State:
    """Whether the compiled code is there: it may be missing, or unable to compile here, and NumPy serves then."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ready = self.failed = False
        self.values = 0

    def load(self) -> None:
        try:
            from lessnoise.engine import warm

            warm.compile_all()
            self.ready = True
        except Exception:  # whatever a compiler may meet on a foreign machine
            self.failed = True


_state = _State()
