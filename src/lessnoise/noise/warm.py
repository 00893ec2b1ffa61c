"""Compile what a release can call, before the release begins: then nothing can fail or pause in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.noise import kernels, ziggurat
from lessnoise.noise.grid import reserve

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNT = 16
_LINE = (1.0, 0.0, 0.0, 2.0**-50, 2.0**-51, 2.0**-8)


def compile_group(group: str, kind: type) -> None:
    """Call the kernels of one form of noise once, for one type of value."""
    _GROUPS[group](kind)


def _drawn() -> tuple[Any, ...]:
    available = _COUNT + reserve(_COUNT)
    words = np.arange(available, dtype=np.uint64) << np.uint64(40)
    scratch = (np.zeros(_COUNT), *(np.zeros(_COUNT + 1, np.int64) for _ in range(4)), np.zeros(_COUNT))
    return words, available, _COUNT, scratch, ziggurat.normal().tables


def _values_and_output(kind: type) -> tuple[Any, Any]:
    """As a job has them: the values are read-only."""
    values: Any = np.zeros(_COUNT, kind)
    values.setflags(write=False)
    return values, np.zeros(_COUNT, kind)


def _independent(kind: type) -> None:
    kernels.independent(*_drawn(), *_values_and_output(kind), 0, _LINE, False)


def _bodies(kind: type) -> None:
    _independent(kind)
    factors = np.ones(_COUNT)
    factors.setflags(write=False)
    kernels.scaled(*_drawn(), *_values_and_output(kind), 0, (*_LINE, 2.0**-8), False, factors)


def _isotropic(kind: type) -> None:
    _independent(kind)
    _matrix(kind)
    stored = np.zeros(_COUNT, np.int32 if kind is np.float32 else np.float64)
    if kind is np.float32:
        kernels.fixed(*_drawn(), stored, 0, 2.0**27)
    kernels.finish(stored, 1.0, _drawn()[3], *_values_and_output(kind), 0, _COUNT, _LINE)


def _correlated(kind: type) -> None:
    _isotropic(kind)
    kernels.total(np.zeros(_COUNT))


def _matrix(kind: type) -> None:
    kernels.standard(*_drawn(), np.zeros(_COUNT), 0)


def _doubts(kind: type) -> None:
    words, _, count, scratch, _ = _drawn()
    place = (words, words.copy(), count, scratch[3], scratch[4], ziggurat.normal().widths)
    kernels.fine_squares(*place)
    kernels.fine_sums(*place)
    pairs = np.zeros((1, 2, 4))
    kernels.fine_dots(*place, 0, pairs, pairs, np.zeros((1, 2)))


def _tally(kind: type) -> None:
    _matrix(kind)
    kernels.tally(np.zeros(_COUNT), _COUNT, np.zeros(5), np.zeros(6, np.int64))


_GROUPS: dict[str, Callable[[type], None]] = {
    "bodies": _bodies,
    "correlated": _correlated,
    "independent": _independent,
    "isotropic": _isotropic,
    "matrix": _matrix,
    "doubts": _doubts,
    "selftest": _tally,
}
