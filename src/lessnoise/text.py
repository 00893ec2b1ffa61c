"""Numbers as text: one way to write each kind, and one way to round a privacy number to the safe side."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.guarantees import Bracket, Guarantee, Verdict


def number(value: float, digits: int = 4) -> str:
    """A short number: plain in the middle range, with an exponent outside it.

    >>> number(1e-07), number(0.216642), number(1281970.86), number(6.2866e17), number(8.04220), number(9.999999e-4)
    ('1e-7', '0.2166', '1,281,971', '6.287e17', '8.042', '0.001')
    """
    if value == 0.0:
        return "0"
    if math.isinf(value):
        return "infinite" if value > 0.0 else "-infinite"
    if 1000.0 <= abs(value) < 1e8:
        return f"{value:,.0f}"
    shown = float(f"{value:.{digits}g}")
    if 1e-3 <= abs(shown) <= 1000.0:
        return f"{shown:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def multiple(value: float) -> str:
    """A rough factor, in words where there are words.

    >>> multiple(2166412.3), multiple(4.9e11), multiple(37.2), multiple(4.2e14)
    ('2.2 million', '490 billion', '37', '4.2e14')
    """
    rounded = float(f"{value:.2g}")
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if size <= rounded < 1000.0 * size:
            return f"{rounded / size:g} {word}"
    return number(rounded, 2)


def exact(bracket: Bracket, digits: int = 4) -> str:
    """A bracketed number: one value if both ends round to it, else both ends, rounded outwards.

    >>> from lessnoise import Bracket
    >>> exact(Bracket(0.216641, 0.216642)), exact(Bracket(0.99999, 1.0)), exact(Bracket(0.1, 0.2))
    ('0.2166', 'above 0.9999', 'from 0.1 to 0.2')
    """
    if bracket.lower < 1.0 and bracket.lower > 1.0 - 10.0 ** (1 - digits):
        return f"above {down(bracket.lower, digits)}"
    if bracket.lower == 0.0 < bracket.upper:
        return f"at most {at_most(bracket.upper, 2)}"
    low, high = number(bracket.lower, digits), number(bracket.upper, digits)
    if low == high:
        return low
    return f"from {at_least(bracket.lower, digits)} to {at_most(bracket.upper, digits)}"


def exact_delta(verdict: Verdict) -> str:
    """The exact delta at the claimed epsilon, or the proved end of it that matters where the bracket is wide.

    >>> from lessnoise import Bracket, Guarantee, Verdict
    >>> exact_delta(Verdict(False, Guarantee(1, 0.1), Bracket(0.25, 0.75)))
    'at least 0.25'
    """
    bracket = verdict.exact
    if bracket.upper > 1.5 * bracket.lower > 0.0:
        if verdict.holds:
            return f"at most {at_most(bracket.upper, 2)}"
        return f"at least {at_least(bracket.lower, 2)}"
    return exact(bracket)


def privacy(verdict: Verdict) -> str:
    """Claimed and exact privacy, in few words.

    >>> from lessnoise import Bracket, Guarantee, Verdict
    >>> privacy(Verdict(False, Guarantee(1e-5, 1e-7), Bracket(0.21664, 0.216641)))
    'claims (1e-5, 1e-7), add/remove; exact delta 0.2166'
    """
    claim = verdict.claimed
    relation = "" if claim.neighbours.value == "replace" else ", add/remove"
    if verdict.holds:
        return f"{pair(claim)}{relation}: proved"
    return f"claims {pair(claim)}{relation}; exact delta {exact_delta(verdict)}"


def pair(guarantee: Guarantee) -> str:
    """The two privacy parameters, as one writes them.

    >>> from lessnoise import Guarantee
    >>> pair(Guarantee(1e-5, 1e-7))
    '(1e-5, 1e-7)'
    """
    return f"({number(guarantee.epsilon)}, {number(guarantee.delta)})"


def at_least(value: float, digits: int = 4) -> str:
    """A proved lower end, rounded down.

    >>> at_least(0.00499971, 2), at_least(7.69e-8, 2)
    ('0.0049', '7.6e-8')
    """
    return _as_number(value, digits, down)


def at_most(value: float, digits: int = 4) -> str:
    """A proved upper end, rounded up.

    >>> at_most(0.00491, 2), at_most(0.21670000000005), at_most(12345.2, 6)
    ('0.005', '0.2168', '12,346')
    """
    return _as_number(value, digits, up)


def pair_up(guarantee: Guarantee, digits: int = 4) -> str:
    """The same, for computed parameters: rounded up, so that the text never promises more.

    >>> from lessnoise import Guarantee
    >>> pair_up(Guarantee(1e-5, 0.21664411))
    '(1e-5, 0.2167)'
    """
    return f"({at_most(guarantee.epsilon, digits)}, {at_most(guarantee.delta, digits)})"


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


def _as_number(value: float, digits: int, rounder: Callable[[float, int], str]) -> str:
    """A number rounded to one side, written as :func:`number` does: from 1,000 on without decimals."""
    whole = len(str(int(abs(value)))) if 1000.0 <= abs(value) < 1e8 else digits
    return number(float(rounder(value, min(digits, whole))), digits)
