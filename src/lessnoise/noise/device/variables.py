r"""Standard variables as functions of words: in doubles, with a proved error, and exactly.

A word with all its levels is one uniform number U = (w + theta)/2^64 of [0, 1), w being its first 64 bits.

    exponential   E = -ln U
    normals       sqrt(2 E) cos(2 pi A) and sqrt(2 E) sin(2 pi A) from two words (Box & Muller 1958)
    Laplace       a sign, the word's lowest bit, and E of its other 63 bits and further levels

Nothing is rejected, so that each value has its own words and takes the same time. Doubles go through + - * / and square
roots alone, which IEEE 754 devices round correctly; products and sums may be contracted. So everything below holds on
every such device (u = 2^-53; docs/theory/device-engine.md has the sums):

    E     w >= 2^32: with w = 2^e m (m between sqrt(1/2) and sqrt(2)), E = k ln 2 - 2 artanh((m - 1)/(m + 1)); at the
          top m - 1 is taken from 2^64 - w. The series ends at t^21, |t| < 0.1716: the rest is below 2^-62 of it.
          Relative error below 10 u; theta moves E by less than 1/w.
    angle an octant and a fraction f of it: cos and sin of f pi/4 by their Taylor series to f^16 and f^17, whose rests
          are below 2^-57. Errors below 4 u; theta moves the angle by less than 2^-60.

Hence E < 22.2, sqrt(2 E) < 6.67, and a variable is off by less than 2^-45, or 2^-30 if its first word is below 2^48,
one in 2^16; one whose word has w < 2^32 or 2^64 - w <= 2^32 is left to exact arithmetic, one in 2^31.
"""

from __future__ import annotations

import contextlib
import math
import threading
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flint import arb
    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.exact_arithmetic import Interval

    Words = NDArray[np.uint64]
    Digits = Callable[[int], int]  # the first 64 (1 + level) bits of a word

LN2 = math.log(2.0)
ROOT2 = math.sqrt(2.0)
TOP = 3037000500  # of the high 32 bits of w: from here on w/2^64 > sqrt(1/2), and m - 1 comes from 2^64 - w
ARTANH = tuple(1.0 / (2 * i + 1) for i in range(11))  # artanh t = t (1 + t^2/3 + t^4/5 + ...)
COS = tuple(float((-1) ** i * (math.pi / 4) ** (2 * i) / math.factorial(2 * i)) for i in range(9))
SIN = tuple(float((-1) ** i * (math.pi / 4) ** (2 * i + 1) / math.factorial(2 * i + 1)) for i in range(9))
ERROR = 2.0**-45  # of a normal, and of an exponential variable
COARSE = 2.0**-30  # of either, if w is below 2^48
SMALL = 1 << 16  # of the high 32 bits of w: below, w < 2^48

_lock = threading.Lock()  # the precision of Arb is one for the whole process


def exponentials(words: Words) -> tuple[Array, Array, NDArray[np.bool_]]:
    """E, its error, and where it is left to exact arithmetic."""
    high = (words >> np.uint64(32)).astype(np.int64)
    top = high >= TOP
    d = (np.uint64(0) - words).astype(np.float64) * 2.0**-64  # 1 - w/2^64
    m, exponent = np.frexp(words.astype(np.float64))
    m, exponent = 2.0 * m, exponent - 1
    large = m > ROOT2
    m = np.where(large, 0.5 * m, m)
    k = np.where(top, 0.0, 64.0 - (exponent + large))
    t = np.where(top, -d, m - 1.0) / np.where(top, 2.0 - d, m + 1.0)
    square = t * t
    series = np.full_like(t, ARTANH[-1])
    for coefficient in ARTANH[-2::-1]:
        series = series * square + coefficient
    return k * LN2 - 2.0 * t * series, np.where(high < SMALL, COARSE, ERROR), (high == 0) | (high == 2**32 - 1)


def directions(words: Words) -> tuple[Array, Array]:
    """cos(2 pi A) and sin(2 pi A)."""
    octant = (words >> np.uint64(61)).astype(np.int64)
    odd = (octant & 1) == 1
    rest = words << np.uint64(3)
    f = np.where(odd, ~rest, rest).astype(np.float64) * 2.0**-64  # from the nearer axis
    square = f * f
    cos, sin = np.full_like(f, COS[-1]), np.full_like(f, SIN[-1])
    for a, b in zip(COS[-2::-1], SIN[-2::-1], strict=True):
        cos, sin = cos * square + a, sin * square + b
    sin = sin * f
    x, y = np.where(odd, sin, cos), np.where(odd, cos, sin)  # in the first quarter
    turned = (octant & 2) != 0
    x, y = np.where(turned, -y, x), np.where(turned, x, y)
    back = np.where((octant & 4) != 0, -1.0, 1.0)
    return x * back, y * back


def normals(words: Words) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Of words [..., j, i]: those of j and j + 1, j even, make two values. Values, errors, left to exact arithmetic."""
    energy, error, open_ = exponentials(words[..., 0::2, :])
    radius = np.sqrt(2.0 * energy)
    x, y = directions(words[..., 1::2, :])
    shape = words.shape
    values = np.stack([radius * x, radius * y], axis=-2).reshape(shape)
    return values, np.repeat(error, 2, axis=-2), np.repeat(open_, 2, axis=-2)


def laplaces(words: Words) -> tuple[Array, Array, NDArray[np.bool_]]:
    """The same for Laplace's law, word by word."""
    energy, error, open_ = exponentials(words & ~np.uint64(1))
    return np.where((words & np.uint64(1)) != 0, -energy, energy), error, open_


# Exactly.


def exponential(bits: int, count: int) -> arb:
    """-ln U where U begins with these ``count`` bits; to be called with Arb's precision set."""
    return -_unit(bits, count).log()


def normal(first: Digits, second: Digits, odd: bool) -> Callable[[int], Interval]:
    """One of the two normals of a pair of words, in intervals."""

    def interval(level: int) -> Interval:
        count = 64 * (level + 1)
        with _precision(count + 64):
            if first(level) == 0:
                return Fraction(-(1 << 62)), Fraction(1 << 62)  # nothing is known yet but that U is small
            length = (2 * exponential(first(level), count)).nonnegative_part().sqrt()
            turn = 2 * _unit(second(level), count)
            return _ends(length * (turn.sin_pi() if odd else turn.cos_pi()))

    return interval


def laplace(word: Digits) -> Callable[[int], Interval]:
    """Laplace's variable of a word, in intervals."""

    def interval(level: int) -> Interval:
        bits, count = word(level), 64 * (level + 1)
        negative = bits >> (count - 64) & 1
        further = bits & ((1 << count - 64) - 1)
        shorter = bits >> (count - 63) << (count - 64) | further  # without the sign
        with _precision(count + 64):
            if shorter == 0:
                return Fraction(-(1 << 62)), Fraction(1 << 62)
            low, high = _ends(exponential(shorter, count - 1))
        return (-high, -low) if negative else (low, high)

    return interval


@contextlib.contextmanager
def _precision(bits: int) -> Iterator[None]:
    """Arb's, for one thread at a time."""
    from flint import ctx

    with _lock, ctx.workprec(bits):
        yield


def _unit(bits: int, count: int) -> arb:
    """The uniform numbers that begin with these bits."""
    from flint import arb, fmpz

    return arb(fmpz(2 * bits + 1), 1) / arb(fmpz(1) << (count + 1))


def _ends(ball: arb) -> Interval:
    return _fraction(ball.lower()), _fraction(ball.upper())


def _fraction(end: arb) -> Fraction:
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def log_product(words: Iterable[list[int]], count: int) -> Interval:
    """-2 ln of the product of all U that begin with these ``count`` bits: the logarithm of products of 64 at a time."""
    from flint import arb, fmpz

    with _precision(count + 128):
        total, more, number = arb(0), 0.0, 0
        for block in words:
            if 0 in block:
                return Fraction(0), Fraction(1 << 62)  # too few digits
            for start in range(0, len(block), 64):
                part = block[start : start + 64]
                total += arb(fmpz(math.prod(part))).log()
                more += math.fsum(1.0 / w for w in part)
            number += len(block)
        low, high = _ends(2 * (number * count * arb(2).log() - total))
    return low - 2 * Fraction(more * (1.0 + 2.0**-30)), high
