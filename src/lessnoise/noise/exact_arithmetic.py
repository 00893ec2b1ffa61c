"""The same sampler in exact arithmetic: every decision that floats cannot make safely is made here.

A number is an interval of two Fractions that surely holds it; a decision is taken when the whole interval agrees, else
the words are lengthened by further levels and the question is asked again. ``decimal`` gives logarithms and
exponentials correctly rounded at any precision (its specification), and each use is widened by a slack of 10^8 units.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from lessnoise.noise.ziggurat import LAPLACE, LAYER_BITS, LAYERS, NORMAL, POSITION_BITS, Density

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lessnoise.noise.stream import Reader

Interval = tuple[Fraction, Fraction]
HALF = Fraction(1, 2)


def word_levels() -> Iterator[int]:
    """How many further words to look at: 1, 2, 4, ..."""
    return (1 << step for step in itertools.count())


class Word:
    """A uniform real number: a word and, on demand, its further levels."""

    __slots__ = ("_bits", "_block", "_position", "_reader", "_seen")

    def __init__(self, reader: Reader, block: int, position: int) -> None:
        self._reader, self._block, self._position = reader, block, position
        self._bits, self._seen = 0, -1

    @property
    def first(self) -> int:
        """The first 64 bits."""
        return self.bits(0)

    def bits(self, level: int) -> int:
        """The first 64 (1 + level) bits."""
        while self._seen < level:
            self._seen += 1
            self._bits = self._bits << 64 | self._reader.word(self._seen, self._block, self._position)
        return self._bits >> 64 * (self._seen - level)

    def uniform(self, level: int) -> Interval:
        """In [0, 1)."""
        bits, size = self.bits(level), 1 << 64 * (1 + level)
        return Fraction(bits, size), Fraction(bits + 1, size)

    @property
    def layer(self) -> int:
        """Of the ziggurat."""
        return self.first & (LAYERS - 1)

    def position(self, level: int) -> tuple[int, int]:
        """S and n with s + theta in [S, S + 1) 2^-n: the 54 signed high bits, then the further levels."""
        high = self.first >> LAYER_BITS
        if high >> POSITION_BITS:
            high -= 1 << POSITION_BITS + 1
        count = 64 * level
        return (high << count) + (self.bits(level) & ((1 << count) - 1)), count


@dataclass(frozen=True, slots=True)
class Draw:
    """One variable of the ziggurat, known to any precision. ``tail`` is the word of a tail value."""

    density: Density
    word: Word
    tail: Word | None = None

    def interval(self, level: int) -> Interval:
        """Holds the value."""
        low, high = _box(self.density, self.word, level)
        if self.tail is None:
            return low, high
        near, far = _tail(self.density, self.tail, level)
        return (near, far) if low >= 0 else (-far, -near)

    def middle(self, level: int) -> float:
        """A double within 2^-52 (relatively) of the value, which is never so near to 0 that level 1 would not tell."""
        low, high = self.interval(level)
        return float((low + high) / 2)


def draw(density: Density, words: Iterator[Word]) -> Draw:
    """A whole variable, from words taken one after the other: attempt, second word if it has to be, next attempt."""
    while True:
        attempt, second = next(words), next(words)  # the second is looked at only if it has to be
        found = Draw(density, attempt) if _inside(density, attempt) else decide(density, attempt, second)
        if found is not None:
            return found


def _inside(density: Density, word: Word) -> bool:
    """The fast test of the other paths, in floats: its tables leave room for their error."""
    high = word.first >> LAYER_BITS
    signed = high - (1 << POSITION_BITS + 1) if high >> POSITION_BITS else high
    return bool(abs(signed * float(density.steps[word.layer])) < density.inner[word.layer])


def decide(density: Density, attempt: Word, second: Word) -> Draw | None:
    """The value of an attempt, or None where it is rejected."""
    layer, r = attempt.layer, Fraction(density.r)
    for level in word_levels():
        low, high = _absolute(_box(density, attempt, level))
        if layer == 0:
            if high <= r:
                return Draw(density, attempt)
            if low < r:
                continue
            verdict = _tail_accepts(density, (low, high), second, level)
        else:
            verdict = _wedge_accepts(density, layer, (low, high), second, level)
        if verdict is not None:
            return Draw(density, attempt, second if layer == 0 else None) if verdict else None
    raise AssertionError("unreachable")


@dataclass
class Real:
    """A real number: a float near it, a bound on the distance (relative for a factor or radius), and intervals."""

    value: float
    error: float
    interval: Callable[[int], Interval]

    @classmethod
    def relative(cls, interval: Callable[[int], Interval], level: int = 1) -> Real:
        """The float and its relative error, from intervals alone."""
        for step in itertools.count(level):
            low, high = interval(step)
            middle = (low + high) / 2
            if middle and (high - low) < abs(middle) * Fraction(1, 1 << 54):
                value = float(middle)
                return cls(value, 2.0**-52 if abs(value) > 2.0**-1000 else 1.0, interval)
        raise AssertionError("unreachable")

    @classmethod
    def exactly(cls, x: float) -> Real:
        """A double that is meant as it is."""
        own = Fraction(x)
        return cls(x, 0.0, lambda level: (own, own))

    @classmethod
    def rational(cls, x: Fraction) -> Real:
        """A rational number."""
        return cls.relative(lambda level: (x, x))

    @classmethod
    def root(cls, square: Fraction) -> Real:
        """A square root, such as sigma = scale/sqrt(2); exact where it is rational."""
        return cls.relative(lambda level: root(square, level))

    def times(self, factor: Fraction) -> Real:
        """The product with an exact power of two."""

        def interval(level: int) -> Interval:
            low, high = self.interval(level)
            return low * factor, high * factor

        return Real(self.value * float(factor), self.error, interval)


ZERO = Real.exactly(0.0)


def shared(interval: Callable[[int], Interval]) -> Callable[[int], Interval]:
    """For several threads: words are lengthened by one at a time, and each level once."""
    lock = threading.Lock()
    known: dict[int, Interval] = {}

    def found(level: int) -> Interval:
        with lock:
            if level not in known:
                known[level] = interval(level)
            return known[level]

    return found


def root(square: Fraction, level: int) -> Interval:
    """Of a square root: two neighbours at a relative 2^-64 (level + 2) or finer."""
    size = square.numerator.bit_length() - square.denominator.bit_length()
    bits = 64 * (level + 2) - size // 2
    scaled = square * Fraction(4) ** bits
    near = math.isqrt(scaled.__floor__())
    unit = Fraction(2) ** -bits
    return near * unit, (near if near * near == scaled else near + 1) * unit


def nearest(offset: Interval, factor: Interval, value: Interval) -> int | None:
    """The integer nearest to offset + factor * value, or None where the intervals do not tell."""
    low, high = product(factor, value)
    return nearest_integer(offset[0] + low, offset[1] + high)


def nearest_integer(low: Fraction, high: Fraction) -> int | None:
    """Of a number between the two: in half-open cells [n - 1/2, n + 1/2); a boundary itself has probability 0."""
    first = (low + HALF).__floor__()
    return first if (high + HALF).__floor__() == first else None


def product(a: Interval, b: Interval) -> Interval:
    """Of two numbers."""
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def total(terms: Iterable[Interval]) -> Interval:
    """Of many."""
    low = high = Fraction(0)
    for near, far in terms:
        low, high = low + near, high + far
    return low, high


def _box(density: Density, word: Word, level: int) -> Interval:
    s, count = word.position(level)
    step = Fraction(float(density.widths[word.layer])) / (1 << POSITION_BITS + count)
    return s * step, (s + 1) * step


def _absolute(interval: Interval) -> Interval:
    low, high = interval
    return (low, high) if low >= 0 else (-high, -low)


def _tail(density: Density, word: Word, level: int) -> Interval:
    """r + E/s, E = -ln U."""
    low, high = exponential(word, level)
    r, slope = Fraction(density.r), Fraction(density.slope)
    return r + low / slope, r + high / slope


def exponential(word: Word, level: int) -> Interval:
    """-ln U."""
    near, far = word.uniform(level)
    if near == 0:  # nothing is known yet but that U is small
        return -ln((far, far), level)[1], Fraction(1 << 62)
    low, high = ln((near, far), level)
    return max(-high, Fraction(0)), -low


def _tail_accepts(density: Density, at: Interval, second: Word, level: int) -> bool | None:
    if density.kind == LAPLACE:
        return True  # X_0 - r = 1: the proposal is the density itself
    # (|x| - r)/(X_0 - r) is uniform and decides: accepted if (|x| - r) s < exp(s (t - r) - (g(t) - g(r))).
    r, slope = Fraction(density.r), Fraction(density.slope)
    near, far = exponential(second, level)
    start, ends = _drop(density, (r, r), level), _drop(density, (r + near / slope, r + far / slope), level)
    exponent = (near - (ends[1] - start[0]), min(far - (ends[0] - start[1]), Fraction(0)))  # g is convex: never above 0
    return _less(((at[0] - r) * slope, (at[1] - r) * slope), exp((min(exponent), exponent[1]), level))


def _wedge_accepts(density: Density, layer: int, at: Interval, second: Word, level: int) -> bool | None:
    # y = f(r) (q_i + u X_0/X_i) < f(x), in logarithms: ln(y/f(r)) < g(r) - g(x).
    ratio = Fraction(float(density.widths[0])) / Fraction(float(density.widths[layer]))
    floor = heights(density, level)[layer]
    near, far = second.uniform(level)
    height = ln((floor[0] + near * ratio, floor[1] + far * ratio), level)
    r = Fraction(density.r)
    start, end = _drop(density, (r, r), level), _drop(density, at, level)
    return _less(height, (start[0] - end[1], start[1] - end[0]))


def _drop(density: Density, x: Interval, level: int) -> Interval:
    """g(x) = -ln f(x) of x >= 0, rising."""
    if density.kind == NORMAL:
        return x[0] * x[0] / 2, x[1] * x[1] / 2
    return x if density.kind == LAPLACE else power(x, density.power, level)


def _less(a: Interval, b: Interval) -> bool | None:
    if a[1] < b[0]:
        return True
    return False if a[0] >= b[1] else None


@functools.lru_cache(maxsize=64)
def heights(density: Density, level: int) -> list[Interval]:
    """q_i, rounded to a fixed point of 64 (level + 2) bits."""
    scale = 1 << 64 * (level + 2)
    first = Fraction(float(density.widths[0]))
    low, high = [0, scale], [0, scale]
    for width in density.widths[1:]:
        term = (first / Fraction(float(width)) * scale).__floor__()
        low.append(low[-1] + term)
        high.append(high[-1] + term + 1)
    return [(Fraction(a, scale), Fraction(b, scale)) for a, b in zip(low, high, strict=True)]


# Elementary functions of intervals; both rise.


def digits(level: int) -> int:
    """Decimal digits that 64 (level + 1) bits deserve, and 30 to spare."""
    return 20 * (level + 1) + 30


@functools.cache
def context(level: int) -> Context:
    """For ``decimal``: no traps for results that are inexact or small."""
    return Context(prec=digits(level), rounding=ROUND_HALF_EVEN, Emin=-(10**17), Emax=10**17, traps=[])


def decimal(x: Fraction, level: int) -> Decimal:
    """Correctly rounded."""
    return context(level).divide(Decimal(x.numerator), Decimal(x.denominator))


def slack(level: int) -> Fraction:
    """Far more than ``decimal`` can be off by, relatively to 1 + |result|."""
    return Fraction(1, 10 ** (digits(level) - 8))


def ln(x: Interval, level: int) -> Interval:
    """Logarithm of a positive interval: that of the lower end, and at most t more where the upper is 1 + t times it."""
    low, high = x
    value = _ln(low, level)
    more = slack(level) * (1 + abs(value))
    return value - more, value + more + (high - low) / low


def exp(x: Interval, level: int) -> Interval:
    """Exponential, with a slack relative to 1 + e^x; of arguments up to 100 in size, or anything below."""
    c = context(level)
    low, high = (Fraction(c.exp(max(decimal(end, level), Decimal(-(10**4))))) for end in x)
    return low - slack(level) * (1 + low), high + slack(level) * (1 + high)


def power(x: Interval, p: float, level: int) -> Interval:
    """x^p of x >= 0 and p > 0, with a slack relative to 1 + x^p."""
    exponent = Fraction(p)
    result = []
    for end in x:
        if end == 0:
            result.append((Fraction(0), Fraction(0)))
            continue
        low, high = ln((end, end), level)
        result.append(exp((low * exponent, high * exponent), level))
    return max(result[0][0], Fraction(0)), result[1][1]


@functools.lru_cache(maxsize=256)
def _ln(x: Fraction, level: int) -> Fraction:
    return Fraction(context(level).ln(decimal(x, level)))
