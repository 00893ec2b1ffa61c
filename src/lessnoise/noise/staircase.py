"""The radius of staircase noise: one of the radii (share + j) width, drawn by exact rejection."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise.exact_arithmetic import Real

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.noise.exact_arithmetic import Interval, Word

_SUMMED = 10  # more than 2^17 steps are not added up


@dataclass(frozen=True)
class StepRadius:
    """R = (share + j) width, j = 0, 1, ... with a probability proportional to e^(-rate j) (share + j)^power.

    R times a uniform point of a body K of R^power has the density of a *staircase*: constant where |x|_K lies between
    neighbouring values of R, and falling by e^-rate from one step to the next, since a density that falls in steps f_j
    is a mixture of uniform laws on r_j K with weights (f_j - f_(j+1)) r_j^power vol(K).

    >>> round(StepRadius(1.0, 0.5, 2.0, 3).mean_square() / (4 * 4 * 5), 2)  # near that of a gamma law
    1.0
    """

    rate: float
    share: float
    width: float
    power: int

    def __post_init__(self) -> None:
        for name, fine, wanted in (
            ("rate", 0.0 < self.rate < math.inf, "a finite number above 0"),
            ("share", 0.0 <= self.share <= 1.0, "a number of [0, 1]"),
            ("width", 0.0 < self.width < math.inf, "a finite number above 0"),
            ("power", isinstance(self.power, int) and self.power >= 1, "the number of entries, an integer above 0"),
        ):
            if not fine:
                raise InvalidInput(f"{name}={getattr(self, name)} makes no staircase: pass {wanted}.")

    def draw(self, words: Iterator[Word]) -> Real:
        """By rejection, with every decision exact."""
        return Real.rational((Fraction(self.share) + self.step(words)) * Fraction(self.width))

    def step(self, words: Iterator[Word]) -> int:
        """The number j.

        The weights w_j are log-concave. With m the largest one's place and w_(m+s), w_(m-s) <= w_m/2, all weights at a
        distance of k s or more from m are at most w_m 2^-k. So propose a side with probability 1/2, k with probability
        2^-(k+1) and a place among the s of block k, and accept with probability 2^k w_j/w_m.
        """
        steps = _steps(self.rate, self.share, self.power)
        while True:
            k = _leading_zeros(next(words))
            place, test = next(words), next(words)
            offset = place.bits(steps.bits // 64) & ((2 << steps.bits) - 1)  # a bit for the side, then the place
            right, distance = offset & 1, (k << steps.bits) + (offset >> 1)
            j = steps.mode + distance if right else steps.mode - 1 - distance
            if j >= steps.first and steps.accepts(j, k, test):
                return j

    def mean_square(self) -> float:
        """Where there are many steps, that of the gamma law between them."""
        return self.width * self.width * _steps(self.rate, self.share, self.power).mean_square


@dataclass(frozen=True)
class _Steps:
    """The weights e^(-rate j) (share + j)^power, j >= first, and their envelope: blocks of 2^bits beside the mode."""

    rate: Fraction
    share: Fraction
    power: int
    first: int
    mode: int
    bits: int

    def log_ratio(self, j: int, i: int, level: int) -> Interval:
        """ln(w_j/w_i)."""
        ratio = (self.share + j) / (self.share + i)
        low, high = exact.ln((ratio, ratio), level)
        fall = self.rate * (j - i)
        return self.power * low - fall, self.power * high - fall

    def accepts(self, j: int, k: int, test: Word) -> bool:
        """Whether U < 2^k w_j/w_mode: by floats, and exactly where they do not tell."""
        verdict = self._float_accepts(j, k, test.first * 2.0**-64)
        if verdict is not None:
            return verdict
        for level in exact.word_levels():
            low, high = exact.total((self.log_ratio(j, self.mode, level), _doublings(k, level)))
            near, far = exact.exponential(test, level)  # -ln U
            if -near < low:
                return True
            if -far >= high:
                return False
        raise AssertionError("unreachable")

    def _float_accepts(self, j: int, k: int, u: float) -> bool | None:
        """Each term is off by a few 2^-53 of its size."""
        if self.mode.bit_length() + self.bits > 500:
            return None
        steps = float(j - self.mode)
        y = steps / float(self.share + self.mode)
        if y < -0.75 or u < 2.0**-14:
            return None
        rise, fall = self.power * math.log1p(y), float(self.rate) * steps
        gap = rise - fall + k * math.log(2.0) - math.log(u)
        doubt = 2.0**-30 + (self.power * abs(y) + abs(rise) + abs(fall) + k) * 2.0**-44
        return gap > 0.0 if abs(gap) > doubt else None

    def halved(self, j: int) -> bool:
        """Whether w_j is surely at most half of the largest weight."""
        return j < self.first or self.log_ratio(j, self.mode, 1)[1] < Fraction(-7, 10)  # ln 2 = 0.693...

    @functools.cached_property
    def mean_square(self) -> float:
        """E (share + j)^2."""
        rate, share = float(self.rate), float(self.share)
        if self.bits > _SUMMED:
            return (self.power + 1.0) * (self.power + 2.0) / rate / rate
        reach = 64 << self.bits
        low = max(self.first, self.mode - reach)
        mode, steps = share + self.mode, low - self.mode + np.arange(self.mode + reach - low + 1.0)
        with np.errstate(divide="ignore"):  # a first step of width next to 0 has no weight
            w = np.exp(self.power * np.log1p(np.maximum(steps / mode, -1.0)) - rate * steps)
        return float(w @ (mode + steps) ** 2) / float(w.sum())


@functools.lru_cache(maxsize=64)
def _steps(rate: float, share: float, power: int) -> _Steps:
    """The mode beside power/rate, where t^power e^(-rate t) is largest, and blocks that are wide enough."""
    first = 0 if share > 0.0 else 1  # a body of radius 0 has no weight
    below = max(first, (power / Fraction(rate) - Fraction(share)).__floor__())
    steps = _Steps(Fraction(rate), Fraction(share), power, first, below, 0)
    for level in exact.word_levels():
        low, high = steps.log_ratio(below + 1, below, level)
        if low > 0 or high < 0:  # never 0: e^rate is no rational number
            break
    steps = replace(steps, mode=below + 1 if low > 0 else below)
    while not (steps.halved(steps.mode + (1 << steps.bits)) and steps.halved(steps.mode - (1 << steps.bits))):
        steps = replace(steps, bits=steps.bits + 1)
    return steps


def _doublings(k: int, level: int) -> Interval:
    """k ln 2."""
    low, high = exact.ln((Fraction(2), Fraction(2)), level)
    return k * low, k * high


def _leading_zeros(word: Word) -> int:
    """k with probability 2^-(k+1)."""
    for level in itertools.count():
        bits = word.bits(level)
        if bits:
            return 64 * (level + 1) - bits.bit_length()
    raise AssertionError("unreachable")
