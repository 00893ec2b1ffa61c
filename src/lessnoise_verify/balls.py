"""Ball arithmetic: every number is an interval that holds the true one, by Arb (python-flint)."""

from __future__ import annotations

import contextlib
import math
import time
from contextvars import ContextVar
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx, fmpq

from lessnoise_verify.document import NotCovered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HIGHEST_PRECISION = 4096  # bits
_LARGEST_EXPONENT = 10**5
_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)


class TooSlow(NotCovered):
    """There is no time left."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """All inside ends after so many seconds, or after those of a limit outside, at the next :func:`check_time`."""
    token = _UNTIL.set(min(_UNTIL.get(), time.process_time() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def check_time() -> None:
    """Give up if the time is over."""
    if time.process_time() > _UNTIL.get():
        raise TooSlow("a proof takes too long here.")


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
    """The ball around all numbers between two, which are enclosed themselves.

    A radius has 30 bits only: it is rounded up such that the upper end, which counts most, stays where it is.
    """
    with working(512):
        bottom, top = low.lower().min(high.lower()), high.upper().max(low.upper())
        spread = arb(0, ((top - bottom) / 2).upper())
        return (top - spread.rad()) + spread  # the same ball: arb(0, radius) would round the radius up once more


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
    if value >= 0 and value <= 1:
        return value
    with working(512):
        return between(value.lower().max(arb(0)), value.upper().min(arb(1)))


def ends(value: arb) -> tuple[Fraction, Fraction]:
    """The ends of a ball as exact fractions; those next to 0 are rounded outwards, to 0 or to +-2^-100000."""
    with working(512):
        return _outwards(value.lower(), -1), _outwards(value.upper(), 1)


def probability_ends(value: arb) -> tuple[Fraction, Fraction]:
    """The same for what is known to be a probability."""
    low, high = ends(value)
    return max(low, Fraction(0)), min(high, Fraction(1))


def _outwards(value: arb, side: int) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    size = exponent + mantissa.bit_length()
    if size > _LARGEST_EXPONENT:
        raise NotCovered("a number is too large to be written down.")
    if mantissa and size < -_LARGEST_EXPONENT:
        return Fraction(side, 2**_LARGEST_EXPONENT) if (mantissa > 0) == (side > 0) else Fraction(0)
    return Fraction(mantissa) * Fraction(2) ** exponent


def shown(value: arb) -> str:
    """A ball for people."""
    return str(value.str(12))
