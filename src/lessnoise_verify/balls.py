"""Ball arithmetic: every number is an interval that holds the true one, by Arb (python-flint)."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx, fmpq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HIGHEST_PRECISION = 4096  # bits


@contextlib.contextmanager
def working(bits: int) -> Iterator[None]:
    """Compute with this many bits."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction | float) -> arb:
    """An enclosure of an exactly known number."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


def between(low: arb, high: arb) -> arb:
    """The ball around all numbers between two, which are enclosed themselves."""
    return low.union(high)


def bracket(low: arb, high: arb) -> arb:
    """As :func:`between`, for a wide result: with the upper end of the larger one, to all its digits.

    A radius has few digits, so that one end must be rounded: the lower one, as the upper one is what counts.
    """
    top, bottom = (low.upper(), high.lower()) if low > high else (high.upper(), low.lower())
    with working(2 * ctx.prec + 64):
        radius = ((top - bottom) / 2).upper()
        middle = top - arb(0, radius).rad()  # the radius as it is rounded up
        return (
            arb(middle.mid(), radius)
            if middle.is_exact() and radius > 0 and not low.overlaps(high)
            else low.union(high)
        )


def accurate(value: arb, bits: int) -> bool:
    """Whether the ball is so narrow, relative to its middle, or exact."""
    return bool(value.is_finite()) and (bool(value.is_exact()) or value.rel_accuracy_bits() >= bits)


def refined(compute: Callable[[], arb], bits: int, start: int = 64, most: int = HIGHEST_PRECISION) -> arb:
    """The result of a computation, repeated with more digits until that many bits of it are known, or they are many."""
    precision = max(start, bits + 32)
    while True:
        with working(precision):
            found = compute()
        if accurate(found, bits) or precision >= most:
            return found
        precision *= 2


def normal_tail(x: arb) -> arb:
    """P(N > x) of a standard normal variable."""
    return (x / arb(2).sqrt()).erfc() / 2


def probability(value: arb) -> arb:
    """What is known to be a probability, cut to [0, 1]."""
    if not value.is_finite():
        return arb(0).union(arb(1))
    return value if value >= 0 and value <= 1 else bracket(value.lower().max(arb(0)), value.upper().min(arb(1)))


def ends(value: arb) -> tuple[Fraction, Fraction]:
    """The ends of a ball as exact fractions."""
    return _exact(value.lower()), _exact(value.upper())


def _exact(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent


def shown(value: arb) -> str:
    """A ball for people."""
    return str(value.str(12))
