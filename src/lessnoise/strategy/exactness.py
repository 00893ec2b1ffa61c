"""How far floats of A x may be from the real numbers, and these numbers themselves."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array

_HALF_STEP = 2.0**-53  # the relative error of one rounding
_LEAST = 2.0**-1074


def exact_sum(values: Array) -> Fraction:
    """Of floats, as a real number.

    >>> exact_sum(np.array([2.0**53, 1.0, 0.5])) == 2**53 + Fraction(3, 2)
    True
    """
    left = values.ravel().tolist()
    found = Fraction(0)
    try:
        while True:
            part = math.fsum(left)  # the nearest float to what is left
            if part == 0.0:
                return found
            found += Fraction(part)
            left.append(-part)
    except OverflowError:
        return sum(map(Fraction, values.ravel().tolist()), Fraction(0))


def whole_numbers(values: Array) -> tuple[list[int], int]:
    """Floats as whole numbers times one power of two: the numbers, and the exponent.

    >>> numbers, exponent = whole_numbers(np.array([0.5, 3.0]))
    >>> [number * 2.0**exponent for number in numbers]
    [0.5, 3.0]
    """
    mantissas, exponents = np.frexp(values)
    lowest = int(exponents.min()) - 53
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    return [whole << shift for whole, shift in zip(wholes, (exponents - 53 - lowest).tolist(), strict=True)], lowest


def exact_dot(first: Array, second: Array) -> Fraction:
    """The sum of products of floats, as a real number."""
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs if a and b), Fraction(0))


def unit(values: Array) -> int | None:
    """The largest e for which all entries are multiples of 2^e; None if all are 0.

    >>> unit(np.array([3.0, 0.5])), unit(np.array([0.0]))
    (-1, None)
    """
    mantissas, exponents = np.frexp(values[values != 0.0])
    if not mantissas.size:
        return None
    integers = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    return int((exponents - 53 + lowest).min())


def product_error(table: Array, sizes: Array, unit_of_entries: int, roundings: int, gain: float = 1.0) -> float:
    """How far an entry of A x can be off, if each of its terms is rounded so often; 0 if no sum needs a rounding.

    ``sizes`` is |A| |x|, computed with as many roundings. A is a multiple of 2^unit_of_entries, so that all sums of
    products are multiples of a power of two, and exact below 2^53 of it. ``gain`` is the most by which a product that
    was rounded to a subnormal number is multiplied later.

    >>> ones = np.ones(2)
    >>> product_error(3.0 * ones, 6.0 * ones, 0, 2)
    0.0
    """
    if not np.isfinite(table).all():
        return 0.0  # NaN and infinity are refused by the engine, by place
    unit_of_table = unit(table)
    if unit_of_table is None:
        return 0.0
    most = float(sizes.max())
    if not math.isfinite(most):
        return math.inf
    lowest = unit_of_table + unit_of_entries
    if lowest >= -1074 and math.frexp(1.01 * most)[1] <= 53 + lowest:
        return 0.0
    # |fl(a . x) - a . x| <= k u/(1 - k u) |a| . |x|, in any order of summation (Higham 2002, section 3.1); u = 2^-53.
    return 1.02 * roundings * _HALF_STEP * most + 2.0 * gain * (int(table.shape[-1]) + 1) * _LEAST
