"""Printing privacy numbers on the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def up(value: float, digits: int = 6) -> str:
    """Shortest text of the given significant digits that is not below the value.

    >>> up(1e-5), up(0.2166419, 4), up(0.0)
    ('1e-05', '0.2167', '0')
    """
    return _directed(value, digits, ROUND_CEILING)


def down(value: float, digits: int = 6) -> str:
    """Shortest text of the given significant digits that is not above the value.

    >>> down(0.2166419, 3)
    '0.216'
    """
    return _directed(value, digits, ROUND_FLOOR)


def _directed(value: float, digits: int, rounding: str) -> str:
    nearest = f"{value:.{digits}g}"
    if not math.isfinite(value) or float(nearest) == value:
        return nearest
    exact = Decimal(value)
    quantum = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(quantum, rounding=rounding)):.{digits}g}"
