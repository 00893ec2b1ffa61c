"""The grid, what is refused, and what a finite machine adds to delta. Proof: ``docs/theory/noise-engine.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lessnoise.errors import InvalidInput

BITS = 8  # grid cells a standard deviation: between 2^8 and 2^9
_SMALLEST, _LARGEST = 2.0**-900, 2.0**900


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of a power of two, chosen from public numbers alone: the noise's deviation and the output's type."""

    step: float
    single: bool = False

    @classmethod
    def of(cls, deviation: float, dtype: type[np.floating[Any]] | np.dtype[Any] = np.float64, bits: int = BITS) -> Grid:
        """2^floor(log2 deviation) 2^-bits. Rounding to it adds at most 2^-2*bits/12 of the noise's variance."""
        if not _SMALLEST <= deviation <= _LARGEST:
            raise InvalidInput(f"standard deviation={deviation:g} is out of range: rescale the value to units near 1.")
        single = np.dtype(dtype) == np.float32
        step = math.ldexp(1.0, math.frexp(deviation)[1] - 1 - bits)
        if single and not 2.0**-100 <= step <= 2.0**100:
            raise InvalidInput(f"standard deviation={deviation:g} is out of float32's range: pass a float64 value.")
        return cls(step, single)

    @property
    def largest_value(self) -> float:
        """In cells: a value beyond is refused."""
        return 2.0**23 if self.single else 2.0**52

    @property
    def largest_output(self) -> float:
        """In cells: an output beyond is moved to this end. Every multiple up to it is a number of the type."""
        return 2.0**24 if self.single else 2.0**53


def delta_numeric(epsilon: float, count: int) -> float:
    """What the finite machine adds to delta: (1 + e^epsilon) tau, at most 1.

    In the word model (64-bit words independent and uniform) the output *is* the rounded real-valued mechanism, and
    tau = 0. What is left is that a block cipher's outputs under one key are distinct: q blocks of an ideal cipher are
    within E[q^2] 2^-129 of independent uniform ones. A release of ``count`` values reads some 1.04 words a value, 2.1
    if a norm is refined, 3 for integers, and a few hundred more; a cipher block is two words. The bound on the root of
    E[q^2] that is used, 2 blocks a value and 2048 more, leaves room for all further levels, which are ever less likely.

    >>> f"{delta_numeric(1.0, 10**8):.1e}"
    '2.2e-22'
    """
    blocks = 2.0 * count + 2048.0
    bound = (1.0 + math.exp(min(epsilon, 700.0))) * blocks**2 * 2.0**-129
    return min(bound * (1.0 + 2.0**-40), 1.0)


def total_delta(exact: float, numeric: float) -> float:
    """The sum, rounded up."""
    return min(math.nextafter(exact + numeric, math.inf) if numeric else exact, 1.0)


def reserved(delta: float, epsilon: float, count: int) -> float:
    """The delta to calibrate the ideal mechanism at, so that with ``delta_numeric`` it keeps ``delta``.

    Where ``delta_numeric`` is not far below delta there is nothing to reserve: such a target is beyond what a
    cipher can promise, and a release for it is refused.

    >>> reserved(1e-6, 1.0, 1000) < 1e-6, total_delta(reserved(1e-6, 1.0, 1000), delta_numeric(1.0, 1000)) <= 1e-6
    (True, True)
    """
    if not can_keep(delta, epsilon, count):
        return delta
    return math.nextafter(math.nextafter(delta - delta_numeric(epsilon, count), 0.0), 0.0)


def can_keep(delta: float, epsilon: float, count: int) -> bool:
    """Whether ``delta_numeric`` is far below delta: at delta = 1e-6 up to an epsilon of some 50.

    >>> can_keep(1e-6, 50.0, 1000), can_keep(1e-6, 55.0, 1000)
    (True, False)
    """
    return delta_numeric(epsilon, count) <= delta * 2.0**-10


BLOCK = 1 << 14  # values that share a stretch of the stream


def reserve(count: int) -> int:
    """Words for second words and further attempts of a block: 1.1% is used, so this many run out never (or 30 sd)."""
    return count // 32 + 64
