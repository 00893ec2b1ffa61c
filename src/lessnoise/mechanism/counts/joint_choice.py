r"""Private choice of several quantiles at once, from the counts of cells.

**Law.** Places x_1 <= ... <= x_m cut the rows into m + 1 parts of n_0, ..., n_m rows. With c_j the differences of the
probabilities (0 and 1 among them), places and a number v are chosen together, with the chance proportional to

    mu(x) exp(-epsilon/2 sum_j |n_j - c_j v|),

v among public numbers, c_j v rounded to eighths of a row, mu public: an exponential mechanism (McSherry & Talwar, FOCS
2007) whose score is that of Gillenwater, Joseph & Kulesza (ICML 2021) with v for the number of rows, which need not be
known. v is not released.

**Loss.** A row more is a row more in one of the parts (:mod:`lessnoise.mechanism.counts.spread_rows`): the sum changes
by at most 1, the chance of an outcome before division by the total by e^(epsilon/2) at most, and the total, too.

**Error.** Where rows are dense, the n_j - c_j v are independent with Laplace's law of scale 2/epsilon. The rank of x_i
is then off by e_0 + ... + e_{i-1} - p_i (e_0 + ... + e_m): a variance of 8/epsilon^2 times
i (1 - p_i)^2 + (m + 1 - i) p_i^2. Multiples of 6/epsilon are enough for v.

**Draw.** Only ranks matter, so that places of the same rank are one candidate. For each v the sums over all places are
those of a chain: those over x_1, ..., x_i with x_i of rank k come from those of one place less. l places of the same
rank and of weight W have W^l/l! together (mu of l equal places has 1/l!). All terms are positive. They are summed in
floats whose error is bounded; where that leaves a doubt, all is done again in as many digits as it takes.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import Context, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.counts.positive_sums import chained, decimals, floats, pick, whole_number
from lessnoise.mechanism.counts.spread_rows import DIGITS, SpreadRows
from lessnoise.noise import Word, word_levels

if TYPE_CHECKING:
    from lessnoise._common import IntArray
    from lessnoise.mechanism.counts.positive_sums import Arithmetic, Numbers
    from lessnoise.noise import Sequence

JOINT_UNIT = 2 << DIGITS
"""Places are odd numbers of this part of a cell."""
MARGIN = 2.0**-38  # of one place's sums, relative: exponents up to 500 in a product of six; more for long sums
_PART = 8  # of a row: c_j v is a whole number of these parts
_HALF = Fraction(1, 2)
_STEP = 6  # over epsilon: between the numbers v
_REACH = 250.0  # the largest exponent at the end of a window in floats, which hold e^708
_AT_ONCE = 1 << 22  # numbers in memory


@functools.lru_cache(maxsize=256)
def joint_deviation(probabilities: tuple[float, ...]) -> float:
    """Of the rank of a quantile at epsilon 1, in rows; of all of them, root mean square, where rows are dense.

    >>> round(joint_deviation((0.25, 0.5, 0.75)), 2)
    2.58
    """
    size = len(probabilities)
    squares = (i * (1.0 - p) ** 2 + (size + 1 - i) * p**2 for i, p in enumerate(probabilities, 1))
    return math.sqrt(8.0 * math.fsum(squares) / size)


@dataclass(frozen=True, eq=False)
class JointLines:
    """Lines of counts, one for each group of rows, whose quantiles are chosen at once.

    ``whole``: every so many cells there is one with a value that is likelier than others before the data is seen.
    """

    counts: IntArray
    probabilities: tuple[float, ...]
    epsilon: float
    whole: int = 1
    margin: float = MARGIN

    @property
    def unit(self) -> int:
        """Places are counted in this part of a cell."""
        return JOINT_UNIT

    @functools.cached_property
    def weights(self) -> IntArray:
        """Of a place in each cell: where whole values are marked, these have half of all."""
        found = np.ones(self.counts.shape[1], dtype=np.int64)
        found[:: self.whole] = max(self.whole - 1, 1)
        return found

    def draw(self, words: Sequence) -> IntArray:
        """For each group and probability a place; rising."""
        groups, cells = self.counts.shape
        size = len(self.probabilities)
        found = np.empty((groups, size), dtype=np.int64)
        for group in range(groups):
            ranks = np.zeros(cells + 1, dtype=np.int64)
            np.cumsum(self.counts[group], out=ranks[1:])
            known, (reader, block, position) = words.addressed(1 + 3 * size)
            further = [Word(reader, block, position + i) for i in range(len(known))]
            chain = Chain(SpreadRows(ranks, self.weights), self.probabilities, self.epsilon, self.margin)
            found[group] = chain.draw(further)
        return found


@dataclass(frozen=True, eq=False)
class Window:
    """The ranks that are looked at for each place, the v, and the logarithm of a bound on all weights left out."""

    spread: SpreadRows
    low: tuple[int, ...]
    high: tuple[int, ...]
    numbers: IntArray
    log_left_out: float

    @functools.cached_property
    def ranks(self) -> list[IntArray]:
        """For each place."""
        return [np.arange(low, high + 1) for low, high in zip(self.low, self.high, strict=True)]

    @functools.cached_property
    def masses(self) -> list[IntArray]:
        """The weight of all places of each rank."""
        return [np.diff(self.spread.below(np.append(own, own[-1] + 1))) for own in self.ranks]


@dataclass(frozen=True, eq=False)
class Sums:
    """Of weights of x_1, ..., x_i, by the rank of x_i: without the share of x_i itself, and with it; and of all.

    Each has one row for each v. Without x_i's share it is before all places of the same rank as x_i.
    """

    before: list[Numbers]
    after: list[Numbers]
    masses: list[Numbers]
    totals: Numbers


@dataclass(frozen=True, eq=False)
class Chain:
    """The quantiles of one line."""

    spread: SpreadRows
    probabilities: tuple[float, ...]
    epsilon: float
    margin: float = MARGIN

    def draw(self, words: list[Word]) -> list[int]:
        """The places; ``words`` are one for v and three for each place."""
        found = self._in_floats(words)
        if found is None:
            found = next(ranks for step in word_levels() if (ranks := self._in_digits(words, step)) is not None)
        below = self.spread.below(np.array([[rank, rank + 1] for rank in found])).tolist()
        pairs = zip(below, words[3::3], strict=True)
        return sorted(self.spread.place(start + whole_number(end - start, word)) for (start, end), word in pairs)

    @property
    def step(self) -> int:
        """Between the numbers v."""
        return max(int(_STEP / self.epsilon), 1)

    @property
    def rate(self) -> Fraction:
        """Of the exponent, for ranks in parts of a row."""
        return Fraction(self.epsilon) / (2 * _PART)

    def window(self, exponent: float) -> Window:
        """All places and v but for those whose weights are below e^-exponent, of a total measure below 1.

        The sum of the law is at least |rank of x_i - p_i n| but for the rounding of c_j v, for which there is a row
        more, and at least |n - v|.
        """
        rows, half = self.spread.rows, 0.5 * self.epsilon
        reach = math.ceil(exponent / half) + 1
        middle = [math.floor(Fraction(p) * rows) for p in self.probabilities]
        low = tuple(max(each - reach, 0) for each in middle)
        high = tuple(min(each + 1 + reach, rows) for each in middle)
        first, last = max(-(-(rows - reach) // self.step), 0), (rows + reach) // self.step
        numbers = np.arange(first, last + 1, dtype=np.int64) * self.step
        # Places beyond the ends, for each of these v, and all other v: a geometric series on either side.
        count = len(self.probabilities) * len(numbers) + 2.0 * (1.0 + 1.0 / (half * self.step))
        return Window(self.spread, low, high, numbers, math.log(count) - exponent + 1.0)

    def parts(self, numbers: IntArray) -> IntArray:
        """The c_j v in parts of a row, rounded: for each of the numbers v one row."""
        ends = [Fraction(0), *map(Fraction, self.probabilities), Fraction(1)]
        sums = [[math.floor(_PART * v * end + _HALF) for end in ends] for v in numbers.tolist()]
        return np.asarray(np.diff(np.array(sums, dtype=np.int64), axis=1))

    def sums(self, window: Window, numbers: IntArray, by: Arithmetic) -> Sums:
        """All sums of the chain."""
        size, ranks, parts = len(self.probabilities), window.ranks, self.parts(numbers)
        masses = [by.whole(own) / by.number(self.spread.total) for own in window.masses]
        before: list[Numbers] = [by.decay(abs(_PART * ranks[0] - parts[:, :1]))]
        after: list[Numbers] = []
        for i in range(size):
            if i:
                before.append(chained(after[i - 1], ranks[i - 1], ranks[i], parts[:, i : i + 1], _PART, by))
            total = before[i] * masses[i]
            for first in range(i):  # the places from there on have one rank
                start = window.low[i]
                stop = max(window.high[first] + 1, start)
                here, there = slice(0, stop - start), slice(start - window.low[first], stop - window.low[first])
                total[:, here] += before[first][:, there] * self._equal(masses[i][here], parts, first, i, by)
            after.append(total)
        last = by.decay(abs(_PART * (self.spread.rows - ranks[-1]) - parts[:, size:]))
        return Sums(before, after, masses, (after[-1] * last).sum(axis=1))

    def _equal(self, masses: Numbers, parts: IntArray, first: int, last: int, by: Arithmetic) -> Numbers:
        """The factor of some places that have one rank: W^l/l!, and no rows in the parts between them."""
        count = last - first + 1
        between = by.decay(parts[:, first + 1 : last + 1].sum(axis=1, keepdims=True))
        return np.asarray(masses**count / by.number(math.factorial(count)) * between)

    def _in_floats(self, words: list[Word]) -> list[int] | None:
        """The ranks of the places; None where floats leave a doubt."""
        widest = min(self.spread.rows, 4.0 * _REACH / self.epsilon) + 4.0
        by = floats(self.rate, (self.margin + 2.0**-50 * widest) * len(self.probabilities))
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):  # what is not finite is a doubt
            return self._looked(words, 0, by, _REACH)

    def _in_digits(self, words: list[Word], step: int) -> list[int] | None:
        """The same with so many further words."""
        digits = 20 * step + 60
        with localcontext(Context(prec=digits + 30, Emin=-(10**17), Emax=10**17, traps=[])):
            return self._looked(words, step, decimals(self.rate, 10.0**-digits), math.inf)

    def _looked(self, words: list[Word], level: int, by: Arithmetic, reach: float) -> list[int] | None:
        """In a window that leaves out less than the error of sums."""
        exponent = min(40.0 - math.log(min(by.error, 1.0)), reach)
        while exponent <= reach:
            window = self.window(exponent)
            totals = self._totals(window, by)
            missing = window.log_left_out - math.log(by.error) - by.log(totals.sum())
            if -math.inf < missing <= 0.0:
                return self._chosen(words, level, window, totals, by)
            exponent += min(missing + 1.0, exponent) if math.isfinite(missing) else exponent
        return None

    def _totals(self, window: Window, by: Arithmetic) -> Numbers:
        """For each v the sum over all places."""
        step = max(_AT_ONCE // max(map(len, window.ranks)), 1)
        starts = range(0, len(window.numbers), step)
        return np.concatenate([self.sums(window, window.numbers[at : at + step], by).totals for at in starts])

    def _chosen(
        self, words: list[Word], level: int, window: Window, totals: Numbers, by: Arithmetic
    ) -> list[int] | None:
        """v, then the ranks from the last place to the first, each given those that were chosen before."""
        later = by.number(1)  # the factors of the weight that are chosen

        def picked(weights: Numbers, word: Word, complete: tuple[bool, bool]) -> int | None:
            doubt = by.exp(window.log_left_out) / later + weights.sum() * by.exp(math.log(by.error))
            return pick(weights, word.uniform(level), doubt, complete, by)

        number = picked(totals, words[0], (int(window.numbers[0]) == 0, False))
        if number is None:
            return None
        numbers = window.numbers[number : number + 1]
        sums, parts = self.sums(window, numbers, by), self.parts(numbers)
        found: list[int] = []
        last, above, most = len(self.probabilities) - 1, self.spread.rows, self.spread.rows
        while last >= 0:
            ranks = window.ranks[last]
            ranks = ranks[ranks <= most]
            factors = by.decay(abs(_PART * (above - ranks) - parts[0, last + 1]))
            complete = window.low[last] == 0, window.high[last] >= most
            at = picked(sums.after[last][0, : len(ranks)] * factors, words[1 + 3 * last], complete)
            if at is None:
                return None
            above, later = int(ranks[at]), later * factors[at]
            starts = [first for first in range(last + 1) if window.low[first] <= above <= window.high[first]]
            own = sums.masses[last][at : at + 1]
            shares = [self._equal(own, parts, first, last, by)[0, 0] for first in starts]
            pairs = zip(starts, shares, strict=True)
            weights = np.array([sums.before[first][0, above - window.low[first]] * share for first, share in pairs])
            chosen = picked(weights, words[2 + 3 * last], (True, True))
            if chosen is None:
                return None
            later = later * shares[chosen]
            found += [above] * (last + 1 - starts[chosen])
            last, most = starts[chosen] - 1, above - 1
        return found[::-1]
