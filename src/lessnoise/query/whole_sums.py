"""Arithmetic without rounding errors: integer sums on a public grid, and roots rounded to the safe side.

Floating-point sums depend on the order of their terms, and can move by more than one individual's contribution
(Casacuberta et al. 2022). So every bounded entry is first rounded to a multiple of a power of two that follows from
the public bounds alone. From then on everything is integer arithmetic: the same on every engine, in any order.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise._common import root_up
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lessnoise._common import Array, IntArray


SMALLEST, LARGEST = 1e-100, 1e100
SPACING = 2**10
"""Floats below 2^63 are at most this far apart."""


def grid_step(bound: float, bits: int) -> float:
    """The power of two with 2^(bits - 1) < bound / step <= 2^bits.

    >>> grid_step(1.0, 10), grid_step(1.5, 10)
    (0.0009765625, 0.001953125)
    """
    if not SMALLEST <= bound <= LARGEST:
        raise InvalidInput(f"bounds of size {bound:g} are not between {SMALLEST:g} and {LARGEST:g}: change the units.")
    fraction, exponent = math.frexp(bound)  # bound = fraction * 2^exponent, 1/2 <= fraction < 1
    return math.ldexp(1.0, exponent - bits - (1 if fraction == 0.5 else 0))


def whole_steps(low: float, high: float, step: float) -> tuple[int, int]:
    """The first and the last whole number of steps within the ends; if there is none, twice the next one towards 0.

    >>> whole_steps(-1.3, 2.6, 1.0), whole_steps(-1.3, -1.2, 1.0)
    ((-1, 2), (-1, -1))
    """
    first, last = math.ceil(Fraction(low) / Fraction(step)), math.floor(Fraction(high) / Fraction(step))
    return (first, last) if first <= last else (min(first, last, key=abs),) * 2


def to_floats(total: IntArray) -> Array:
    """Whole numbers below 2^63 as floats, rounded towards 0; beyond 2^53 floats lie 2, 4, ..., 2^10 apart.

    Two numbers that are n apart become floats that are at most n, rounded up to a multiple of 2^10, apart. With
    r <= s the distances of floats at a and b, |a| <= |b|: on one side of 0, b rounded by s is at most b rounded by r,
    which is at most n, rounded up to a multiple of r, beyond a rounded by r. On two sides both come nearer.

    >>> to_floats(np.array([2**53 - 1, 2**53 + 1, -(2**63 - 1)])).astype(np.int64).tolist() == [
    ...     2**53 - 1, 2**53, -(2**63 - 2**10)]
    True
    """
    size = np.abs(total)
    beyond = np.maximum(np.frexp((size >> 10).astype(np.float64))[1] - 43, 0).astype(np.int64)  # bits that do not fit
    return np.asarray(np.sign(total) * ((size >> beyond) << beyond), dtype=np.float64)


def spaced(steps: int) -> int:
    """How far :func:`to_floats` brings two numbers apart that differ by so much.

    >>> spaced(2**30), spaced(2**30 + 1) - 2**30
    (1073741824, 1024)
    """
    return -(-steps // SPACING) * SPACING


def add(left: IntArray, right: IntArray) -> IntArray:
    """Add two integer arrays, or refuse when the sum could leave the range of 64 bits.

    >>> import numpy as np
    >>> add(np.array([1, 2]), np.array([3, 4])).tolist()
    [4, 6]
    """
    if left.size and _largest(left) + _largest(right) >= 2**63:
        raise InvalidInput("the sums exceed 63 bits: query the data in parts and add the answers.")
    return left + right


def _largest(values: IntArray) -> int:
    return max(int(values.max()), -int(values.min()))


def norm_up(values: Iterable[float]) -> float:
    """The l2 norm of exact numbers, rounded up, and exact where it is a float.

    >>> norm_up([3.0, 4.0]), norm_up([1.0, 1.0]) == 2**0.5
    (5.0, True)
    """
    return root_up(sum((Fraction(value) ** 2 for value in values), Fraction(0)))
