r"""Private choice of quantiles from the counts of cells: the middle one first, then those below and above it.

**One choice.** Rows of a cell are taken as spread evenly, so that the rank R(x), the rows below x, rises in straight
lines. With n rows, x is chosen with the density proportional to w(x) e^(-g |R(x) - p n|), w public: the exponential
mechanism (McSherry & Talwar, FOCS 2007). A row more adds D(x) to R(x), D rising from 0 to 1. So with q = max(p, 1 - p)
|R - p n| + q n, the larger of R - p n + q n and p n - R + q n, rises by 2 q at most and never falls. The weights
e^(-g (...)) thus fall by a factor between 1 and e^(-2 q g), and so does their total: the choice is 2 q g-private, in
either direction. A part d of a row (D from 0 to d) costs d of that.

**Descent** (Kaplan, Schnapp & Stemmer, ICML 2022). The rows below the chosen x and those above it are two smaller
problems: the quantile p' < p is the p'/p quantile of those below. A row is above or below, or (in the cell of x) d of
it below and 1 - d above: given all that was chosen before, one level of the tree costs one choice, and m quantiles
cost ceil(log2(m + 1)) choices, in all groups of rows together.

**Exactness.** Places are whole numbers of 1/Q cells, and ranks of 1/Q rows. A uniform number is compared with sums of
weights in floats, whose error is bounded; where that leaves a doubt, all is done again in as many digits as it takes.
"""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.noise import Word, word_levels

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray
    from lessnoise.noise import Sequence

_PLACES, _MOST_PLACES = 27, 20  # binary digits of a place on the line, and at most within a cell
_CHUNK = 1 << 20  # cells at a time
# Relative: exponents up to 745 with three roundings and functions within 4 units are off by 2^-41.6, sums by 2^-42.
MARGIN = 2.0**-40


@dataclass(frozen=True)
class Node:
    """One choice: which probability, between which two that are known (-1 and m: the ends), and its share there."""

    index: int
    lower: int
    upper: int
    level: int
    share: Fraction

    @property
    def spread(self) -> Fraction:
        """The most that a row changes the exponent for g = 1: 2 q."""
        return 2 * max(self.share, 1 - self.share)


@functools.lru_cache(maxsize=256)
def tree(probabilities: tuple[float, ...]) -> tuple[Node, ...]:
    """The choices, level by level; probabilities rise.

    >>> [(node.index, node.level, str(node.share)) for node in tree((0.25, 0.5, 0.75))]
    [(1, 0, '1/2'), (0, 1, '1/2'), (2, 1, '1/2')]
    """
    ends = [Fraction(0), *map(Fraction, probabilities), Fraction(1)]
    found, open_ = [], [(-1, len(probabilities), 0)]
    while open_:
        lower, upper, level = open_.pop(0)
        if upper - lower > 1:
            index = (lower + upper) // 2
            low, high = ends[lower + 1], ends[upper + 1]
            found.append(Node(index, lower, upper, level, (ends[index + 1] - low) / (high - low)))
            open_ += [(lower, index, level + 1), (index, upper, level + 1)]
    return tuple(found)


@functools.lru_cache(maxsize=256)
def level_shares(probabilities: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    """Shares of epsilon for the levels, and the deviation of a rank at epsilon 1 (of all of them, root mean square).

    A choice is off by 2 q sqrt(2)/epsilon rows, and pulls what is chosen next to it by its share. The sum of
    A_l/epsilon_l^2 over the levels is least for epsilon_l proportional to A_l^(1/3).

    >>> shares, deviation = level_shares((0.25, 0.5, 0.75))
    >>> [round(share, 3) for share in shares], round(deviation, 2)
    ([0.476, 0.524], 3.04)
    """
    nodes = tree(probabilities)
    pulls: dict[int, Array] = {-1: np.zeros(len(nodes)), len(nodes): np.zeros(len(nodes))}
    for place, node in enumerate(nodes):
        share = float(node.share)
        pulls[node.index] = (1.0 - share) * pulls[node.lower] + share * pulls[node.upper]
        pulls[node.index][place] = 1.0
    squares = np.sum([pulls[node.index] ** 2 for node in nodes], axis=0)
    sizes = np.zeros(nodes[-1].level + 1)
    for place, node in enumerate(nodes):
        sizes[node.level] += 2.0 * float(node.spread) ** 2 * squares[place]
    roots = np.cbrt(sizes)
    shares = roots / roots.sum()
    deviation = math.sqrt(float((sizes / shares**2).sum()) / len(nodes))
    return tuple(float(share) for share in shares * (1.0 - 1e-14)), deviation


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of counts, one for each group of rows, and how their quantiles are chosen.

    ``whole``: every so many cells there is one with a value that is likelier than others before the data is seen.
    """

    counts: IntArray
    probabilities: tuple[float, ...]
    epsilon: float
    whole: int = 1
    margin: float = MARGIN

    @property
    def unit(self) -> int:
        """The Q above, a power of two."""
        return places_of(self.counts.shape[1])

    def draw(self, words: Sequence) -> IntArray:
        """For each group and probability a place, in 1/Q cells; rising."""
        groups, cells = self.counts.shape
        step = max(_CHUNK // cells, 1)
        parts = [self._descend(self.counts[start : start + step], words) for start in range(0, groups, step)]
        return np.concatenate(parts)

    def _descend(self, counts: IntArray, words: Sequence) -> IntArray:
        groups, cells = counts.shape
        ranks = np.zeros((groups, cells + 1), dtype=np.int64)
        np.cumsum(counts, axis=1, out=ranks[:, 1:])
        ranks *= self.unit
        size = len(self.probabilities)
        places = np.zeros((groups, size + 2), dtype=np.int64)  # that of probability i in column i + 1
        heights = np.zeros_like(places)
        places[:, -1], heights[:, -1] = cells * self.unit, ranks[:, -1]
        shares, _ = level_shares(self.probabilities)
        for node in tree(self.probabilities):
            rate = Fraction(self.epsilon) * Fraction(shares[node.level]) / (node.spread * self.unit)
            ends = [node.lower + 1, node.upper + 1]
            found = Choice(self, ranks, places[:, ends], heights[:, ends], node.share, rate).draw(words)
            places[:, node.index + 1] = found
            heights[:, node.index + 1] = _rank(ranks, found, self.unit)
        return places[:, 1:-1]

    @functools.cached_property
    def weights(self) -> Array:
        """The w of the cells: where whole values are marked, these have half of all."""
        found = np.ones(self.counts.shape[1])
        found[:: self.whole] = max(self.whole - 1, 1)
        return found


def places_of(cells: int) -> int:
    """The Q for a line of so many cells."""
    return 1 << min(max(_PLACES - (cells - 1).bit_length(), 2), _MOST_PLACES)


def _rank(ranks: IntArray, places: IntArray, unit: int) -> IntArray:
    """Rows below a place, in 1/Q rows."""
    rows = np.arange(len(ranks))
    cell = np.minimum(places // unit, ranks.shape[1] - 2)
    height = (ranks[rows, cell + 1] - ranks[rows, cell]) // unit
    return np.asarray(ranks[rows, cell] + height * (places - cell * unit))


@dataclass(frozen=True, eq=False)
class Choice:
    """One choice in every group, between two places and their ranks; ``rate`` is the g for ranks in 1/Q rows."""

    lines: Lines
    ranks: IntArray
    places: IntArray
    heights: IntArray
    share: Fraction
    rate: Fraction

    @functools.cached_property
    def goals(self) -> list[Fraction]:
        """The rank that is wanted, p n in the formulas."""
        return [low + self.share * (high - low) for low, high in self.heights.tolist()]

    def draw(self, words: Sequence) -> IntArray:
        """The places."""
        groups = len(self.ranks)
        known, (reader, block, position) = words.addressed(groups)
        uniform = known.astype(np.float64) * 2.0**-64  # within 2^-53 of itself, and 2^-64 for the digits to come
        first = int(self.places[:, 0].min()) // self.lines.unit
        last = -(-int(self.places[:, 1].max()) // self.lines.unit)
        sums = np.zeros((groups, last - first + 1))
        sums[:, 1:] = _running(self._cell_weights(first, last)) if first < last else 0.0
        totals = sums[:, -1]
        goals = uniform * totals
        place = np.clip((sums <= goals[:, np.newaxis]).sum(axis=1) - 1, 0, max(last - first - 1, 0))
        before, chosen = sums[np.arange(groups), place], first + place
        found = np.empty(groups, dtype=np.int64)
        for group in range(groups):
            low, high = int(self.places[group, 0]), int(self.places[group, 1])
            if low == high:
                found[group] = low
                continue
            given = (float(goals[group]), float(before[group]), self.lines.margin * float(totals[group]))
            near = self._within(group, int(chosen[group]), *given)
            found[group] = self.exact(group, Word(reader, block, position + group)) if near is None else near
        return found

    @functools.cached_property
    def _parts(self) -> tuple[IntArray, Array]:
        """The goals as whole numbers and the rest."""
        whole = [math.floor(goal) for goal in self.goals]
        rest = [float(goal - floor) for goal, floor in zip(self.goals, whole, strict=True)]
        return np.array(whole, dtype=np.int64), np.array(rest)

    def _cell_weights(self, start: int, stop: int) -> Array:
        """The integral of the weight over each of these cells, as far as it is between the two places.

        On a straight piece of the exponent from a to a + x it is e^-a (1 - e^-x)/x.
        """
        rate, (whole, rest) = float(self.rate), self._parts
        heights = np.clip(self.ranks[:, start : stop + 1], self.heights[:, :1], self.heights[:, 1:])
        heights -= whole[:, np.newaxis]
        distance = heights - rest[:, np.newaxis]  # right but for the last digit
        edges = np.clip(np.arange(start, stop + 1) * self.lines.unit, self.places[:, :1], self.places[:, 1:])
        weights = self.lines.weights[start:stop]
        left, right = distance[:, :-1], distance[:, 1:]
        with np.errstate(under="ignore"):
            result: Array = np.exp(-rate * np.maximum(np.maximum(left, -right), 0.0))
            result *= _mean_decay(rate * np.diff(heights, axis=1))
            result *= np.diff(edges, axis=1) * weights
            rows, cells = np.nonzero((left < 0.0) & (right > 0.0))
            below, above = -left[rows, cells], right[rows, cells]
            both = (below * _mean_decay(rate * below) + above * _mean_decay(rate * above)) / (below + above)
            result[rows, cells] = both * (edges[rows, cells + 1] - edges[rows, cells]) * weights[cells]
        return result

    def _within(self, group: int, cell: int, goal: float, before: float, margin: float) -> int | None:
        """The place in a cell at which the sum of weights comes to the goal; None where floats leave a doubt."""
        low, high = int(self.places[group, 0]), int(self.places[group, 1])
        start, end = max(low, cell * self.lines.unit), min(high, (cell + 1) * self.lines.unit)
        if start >= end:
            return None
        count, lowest = self._line(group, cell)
        whole, rest = int(self._parts[0][group]), float(self._parts[1][group])
        weight, rate = float(self.lines.weights[cell]), float(self.rate)
        first: float = (lowest + count * (start - cell * self.lines.unit) - whole) - rest

        def area(place: int) -> float:
            middle: float = (lowest + count * (place - cell * self.lines.unit) - whole) - rest
            if first < 0.0 < middle:
                return weight * (-first * _decay(-rate * first) + middle * _decay(rate * middle)) / count
            return weight * (place - start) * _exp(rate * max(first, -middle)) * _decay(rate * count * (place - start))

        near, far = start // 2, (end - 1) // 2  # pieces [2 i, 2 i + 2), the first and the last cut at the ends
        while near < far:
            piece = (near + far + 1) // 2
            near, far = (piece, far) if before + area(2 * piece) <= goal else (near, piece - 1)
        left, right = max(2 * near, start), min(2 * near + 2, end)
        sure = (left == low or before + area(left) + margin <= goal) and (
            right == high or goal + margin <= before + area(right)
        )
        return 2 * near + 1 if sure else None

    def _line(self, group: int, cell: int) -> tuple[int, int]:
        """The rows of a cell, and the rank at its lower edge."""
        low, high = int(self.ranks[group, cell]), int(self.ranks[group, cell + 1])
        return (high - low) // self.lines.unit, low

    def exact(self, group: int, word: Word) -> int:
        """The same place, with as many digits as it takes to tell it for certain."""
        for step in word_levels():
            # Exponents are below 10^16, a slope is above 10^-19 and the total above 10^-16 of the largest sum.
            digits = 20 * step + 100
            with localcontext(Context(prec=digits, Emin=-(10**17), Emax=10**17, traps=[])):
                found = self._look(group, word.uniform(step), Decimal(10) ** (70 - digits))
            if found is not None:
                return found
        raise AssertionError("unreachable")

    def _look(self, group: int, uniform: tuple[Fraction, Fraction], slack: Decimal) -> int | None:
        unit = self.lines.unit
        low, high = int(self.places[group, 0]), int(self.places[group, 1])
        cells = range(low // unit, -(-high // unit))
        parts = [self._area(group, cell, max(low, cell * unit), min(high, (cell + 1) * unit)) for cell in cells]
        sums = list(itertools.accumulate(parts))
        near, far = (sums[-1] * end.numerator / end.denominator for end in uniform)
        place = min(bisect_right(sums, near), len(sums) - 1)
        cell, before = cells[place], sums[place - 1] if place else Decimal(0)
        start, end = max(low, cell * unit), min(high, (cell + 1) * unit)
        piece, last = start // 2, (end - 1) // 2
        while piece < last:
            middle = (piece + last + 1) // 2
            inside = before + self._area(group, cell, start, 2 * middle) <= near
            piece, last = (middle, last) if inside else (piece, middle - 1)
        left, right = max(2 * piece, start), min(2 * piece + 2, end)
        lower, upper = (before + self._area(group, cell, start, edge) for edge in (left, right))
        doubt = sums[-1] * slack
        sure = (left == low or lower + doubt <= near) and (right == high or far + doubt <= upper)
        return 2 * piece + 1 if sure else None

    def _area(self, group: int, cell: int, start: int, end: int) -> Decimal:
        """The integral of the weight from start to end, within a cell, in the digits of the context."""
        count, lowest = self._line(group, cell)
        first, last = (lowest + count * (place - cell * self.lines.unit) - self.goals[group] for place in (start, end))
        weight = int(self.lines.weights[cell])
        if count == 0 or start == end:
            return weight * (end - start) * _decimal(-self.rate * abs(first)).exp()
        nearest = _decimal(-self.rate * max(first, -last, Fraction(0))).exp()
        size = 2 * nearest - sum(_decimal(-self.rate * abs(each)).exp() for each in (first, last))
        return weight * size / _decimal(self.rate * count)


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _mean_decay(x: Array) -> Array:
    """(1 - e^-x)/x, and 1 at 0: the mean of e^-t over [0, x]."""
    safe = np.where(x > 0.0, x, 1.0)
    return np.where(x > 0.0, -np.expm1(-safe) / safe, 1.0)


def _exp(x: float) -> float:
    return math.exp(-min(x, 745.0))


def _decay(x: float) -> float:
    return -math.expm1(-x) / x if x > 0.0 else 1.0


def _running(weights: Array) -> Array:
    """Sums from the left, by blocks, so that a weight is rounded no more often than twice the root of their number."""
    groups, cells = weights.shape
    width = math.isqrt(cells - 1) + 1
    padded = np.zeros((groups, -(-cells // width) * width))
    padded[:, :cells] = weights
    inner = np.cumsum(padded.reshape(groups, -1, width), axis=2)
    before = np.zeros((groups, inner.shape[1], 1))
    np.cumsum(inner[:, :-1, -1:], axis=1, out=before[:, 1:])
    sums = (inner + before).reshape(groups, -1)[:, :cells]
    return np.asarray(np.maximum.accumulate(sums, axis=1))
