"""What every layer shares: names of types, the number of cores, checked values in descriptions, rounding up."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]
    Shape = int | Sequence[int]  # as a caller writes it
    Progress = Callable[[str, int, int], None]  # a label, how much is done, of how much


def settle(description: object, **values: object) -> None:
    """Put checked values in the fields of a frozen dataclass, while it is being made."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def round_up(value: Fraction) -> float:
    """The smallest float that is at least ``value``."""
    result = float(value)
    return result if Fraction(result) >= value else math.nextafter(result, math.inf)


def root_up(square: Fraction) -> float:
    """The smallest float that is at least the square root, at any size.

    >>> root_up(Fraction(25)), root_up(Fraction(2)) == 2**0.5, root_up(Fraction(1, 10**600)) > 0.0
    (5.0, True, True)
    """
    if square == 0:
        return 0.0
    shift = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    root = math.ldexp(math.sqrt(square / Fraction(4) ** shift), shift)  # within a few steps
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    while Fraction(math.nextafter(root, 0.0)) ** 2 >= square:
        root = math.nextafter(root, 0.0)
    return root
