"""DAWA's first stage: a partition of a line of counts into buckets of nearly equal counts.

A bucket b costs dev(b) = sum |x_j - mean_b|, what is lost by spreading its total evenly, plus 1/epsilon2, what the
noise on its total costs. One record changes dev by at most 2 - 2/l, l being the bucket's length, and every partition
has one bucket with that record in it. Two ways to choose a partition:

- :func:`sample_partition`, ours: the exponential mechanism over the prunings of a binary tree, drawn exactly.
- :func:`cheapest_partition`, as published: noise on the costs, then the cheapest partition by dynamic programming.

No choice is left to the rounding of floats: where they do not tell on which side of a probability a random number lies,
or in which cell of the grid a noisy cost, more digits of both do, so that the partition has the stated law.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise.mechanism.counts.inference import sums_error
from lessnoise.noise import Word, word_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise import Sequence

    Starts = NDArray[np.intp]

SPLIT = 0.75
"""How likely a node of the tree is split before the counts are looked at."""


def deviation_sensitivity(length: int) -> float:
    """The most that one record changes the deviation of a bucket: 2 - 2/l.

    >>> deviation_sensitivity(1), deviation_sensitivity(4)
    (0.0, 1.5)
    """
    return 2.0 - 2.0 / length


# Ours.


def sample_partition(counts: Array, epsilon: float, bucket_cost: float, words: Sequence, margin: float = 0.0) -> Starts:
    """Draw the starts of the buckets with probability proportional to prior x exp(-epsilon cost / (2 (2 - 2/n))).

    The candidates are the prunings of the binary tree over the cells, n a power of 2; in the prior each node is split
    with probability ``SPLIT``. This is the exponential mechanism (McSherry & Talwar, FOCS 2007), so the partition is
    epsilon-DP: a record changes the cost of any partition by at most 2 - 2/n. The sum over all prunings follows
    bottom-up, W(node) = (1 - s) e^(-c) + s W(left) W(right), and a pruning is drawn top-down. ``margin`` (how near a
    probability floats may decide) changes the time it takes, not the partition.
    """
    n = len(counts)
    if n == 1:
        return np.zeros(1, dtype=np.intp)
    tree = _Prunings(counts, epsilon, bucket_cost)
    chances = tree.chances()
    starts = [np.zeros(0, dtype=np.intp)]
    nodes = np.zeros(1, dtype=np.intp)
    for level in range(len(chances), 0, -1):
        first, (reader, block, position) = words.addressed(len(nodes))
        uniform = first.astype(np.float64) * 2.0**-64  # within 2^-53 of itself, and 2^-64 for the digits to come
        low, high = (ends[nodes] for ends in chances[level - 1])
        split = uniform < low
        unsure = (uniform * (1.0 + 2.0**-50) + 2.0**-60 + margin > low) & (uniform * (1.0 - 2.0**-50) - margin < high)
        for place in np.flatnonzero(unsure):
            word = Word(reader, block, position + int(place))
            split[place] = tree.splits(level, int(nodes[place]), word)
        starts.append(nodes[~split] * 2**level)
        nodes = (2 * nodes[split][:, np.newaxis] + np.arange(2)).ravel()
    return np.sort(np.concatenate([*starts, nodes]))


class _Prunings:
    """How likely each node of the tree is split: in floats with their error, and to any precision."""

    def __init__(self, counts: Array, epsilon: float, bucket_cost: float) -> None:
        n = len(counts)
        self.counts, self.cost = counts, bucket_cost
        self.rate = Fraction(epsilon) * n / (4 * (n - 1))
        self.deviations = [deviations(counts, 2**level) for level in range(1, n.bit_length())]
        self.error = deviations_error(counts)

    def chances(self) -> list[tuple[Array, Array]]:
        """Two ends that hold the probability to split, for the nodes of each level, from the leaves' parents up."""
        rate, unit = float(self.rate), 2.0**-50  # eight roundings
        logarithms = np.full(len(self.counts), -rate * self.cost)  # ln W of the leaves, whose deviation is 0
        errors = unit * np.abs(logarithms)
        found = []
        for deviation in self.deviations:
            keep = math.log1p(-SPLIT) - rate * (deviation + self.cost)
            halves = logarithms.reshape(-1, 2).sum(axis=1) + math.log(SPLIT)
            keep_error = unit * (1.0 - keep) + 1.01 * rate * self.error
            halves_error = errors.reshape(-1, 2).sum(axis=1) + unit * (1.0 - halves)
            logarithms = np.logaddexp(keep, halves)
            errors = np.maximum(keep_error, halves_error) + unit * (1.0 - logarithms)
            doubt = keep_error + halves_error
            with np.errstate(over="ignore"):  # e^x of a large x is infinite, and its inverse 0
                low, high = (1.0 / (1.0 + np.exp(keep - halves + shift)) for shift in (doubt, -doubt))
            found.append((low * (1.0 - 2.0**-46), high * (1.0 + 2.0**-46) + 2.0**-60))
        return found

    def splits(self, level: int, node: int, word: Word) -> bool:
        """Whether a uniform number is below the probability to split, with as many digits as that takes."""
        for step in word_levels():
            digits = 20 * (step + 1) + 60
            context = Context(prec=digits, Emin=-(10**17), Emax=10**17, traps=[])
            chance = self._chance(level, node, context)
            # Costs are below 10^16, so that a weight is off by 10^(18 - digits) and n of them by 10^(30 - digits).
            slack = Decimal(10) ** (32 - digits)
            low, high = (context.multiply(chance, context.add(1, end)) for end in (-slack, slack))
            near, far = (context.divide(Decimal(end.numerator), Decimal(end.denominator)) for end in word.uniform(step))
            if far < low:
                return True
            if near > high:
                return False
        raise AssertionError("unreachable")

    def _chance(self, level: int, node: int, context: Context) -> Decimal:
        """s W(left) W(right)/W, from the leaves below the node up."""

        def kept(deviation: Fraction, prior: float) -> Decimal:
            cost = -self.rate * (deviation + Fraction(self.cost))
            exponent = context.divide(Decimal(cost.numerator), Decimal(cost.denominator))
            return context.multiply(Decimal(prior), context.exp(exponent))

        weights = [kept(Fraction(0), 1.0)] * 2**level
        for below in range(1, level + 1):
            nodes = range(node << (level - below), (node + 1) << (level - below))
            keep = [kept(self._deviation(below, each), 1.0 - SPLIT) for each in nodes]
            pairs = zip(weights[::2], weights[1::2], strict=True)
            halves = [context.multiply(Decimal(SPLIT), context.multiply(a, b)) for a, b in pairs]
            weights = [context.add(a, b) for a, b in zip(keep, halves, strict=True)]
        return context.divide(halves[0], weights[0])

    def _deviation(self, level: int, node: int) -> Fraction:
        if self.error:
            return exact_deviation(self.counts[node << level : (node + 1) << level])
        return Fraction(float(self.deviations[level - 1][node]))


def deviations(counts: Array, length: int) -> Array:
    """Deviations of the buckets [0, l), [l, 2l), ...

    >>> deviations(np.array([3.0, 0.0, 20.0, 20.0]), 2).tolist()
    [3.0, 0.0]
    """
    blocks = counts.reshape(-1, length)
    return _halved(np.abs(blocks - _halved(blocks)[:, np.newaxis] / length))


def _halved(blocks: Array) -> Array:
    """Sums of rows, by halves, so that an entry is rounded no more often than the length has binary digits."""
    while blocks.shape[1] > 1:
        blocks = blocks[:, ::2] + blocks[:, 1::2]
    return blocks[:, 0]


def exact_deviation(cells: Array) -> Fraction:
    """Of one bucket, as a real number."""
    numbers = [Fraction(cell) for cell in cells.tolist()]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return sum((abs(number - mean) for number in numbers), Fraction(0))


def deviations_error(counts: Array, longest: int = 1) -> float:
    """How far deviations can be off: 0 for ordinary counts.

    Those of blocks take sums of twice as many digits as the length has, and a mean. Those of windows take running sums,
    in which an entry is rounded n times (``longest``): two for each digit of the ranks and a few more; of counts on
    the wrong side of a mean that is off, they are off by no more than that mean.
    """
    digits = len(counts).bit_length()
    return sums_error(counts, (16 + 4 * digits) * longest, parts=2 << digits)


# As published.


def published_scale(length: int, size: int, epsilon: float) -> float:
    """Scale of the published noise on a bucket's cost: (2 - 1/l - 1/n)/epsilon1.

    >>> published_scale(4, 4, 1.0)
    1.5
    """
    return (2.0 - 1.0 / length - 1.0 / size) / epsilon


def cheapest_partition(counts: Array, epsilon: float, bucket_cost: float, factor: float, words: Sequence) -> Starts:
    """The partition of least noisy cost into intervals of 1, 2, 4, ... cells with any start, as published.

    Single cells have no noise, and no cost may fall below 1/epsilon2. ``factor`` multiplies the published scale; 0
    gives the partition of least true cost. The noise is on the deviations, on the engine's grid; all else is computed
    from them.
    """
    n, error = len(counts), deviations_error(counts, longest=len(counts))
    windows = Windows(counts)
    costs = [np.full(n, bucket_cost)]
    for level in range(1, n.bit_length()):
        length = 2**level
        cost = windows.deviations(length)
        if factor > 0.0:
            form = cost_noise(length, n, epsilon, factor)
            cost = noise_engine.add_noise(form, cost, words.stream(), behind=_costs_behind(counts, length, error))
        costs.append(np.maximum(cost + bucket_cost, bucket_cost))
    return _cheapest(n, costs)


def _costs_behind(counts: Array, length: int, error: float) -> noise_engine.Behind | None:
    if not error:
        return None
    return noise_engine.Behind(error, lambda start: exact_deviation(counts[start : start + length]))


def cost_noise(length: int, size: int, epsilon: float, factor: float) -> noise_engine.Independent:
    """Of the buckets of one length."""
    scale = noise_engine.Real.exactly(factor * published_scale(length, size, epsilon))
    return noise_engine.Independent(noise_engine.laplace(), scale)


def _cheapest(n: int, costs: list[Array]) -> Starts:
    """C[i] = min over lengths of C[i - length] + cost; ties go to the longer bucket."""
    buckets = [(1 << level, cost.tolist()) for level, cost in enumerate(costs)]
    best = [0.0] * (n + 1)
    chosen = [1] * (n + 1)
    for end in range(1, n + 1):
        if end & (end - 1) == 0:  # a power of two: one more length fits
            fitting = buckets[: end.bit_length()]
        least, length = math.inf, 1
        for size, cost in fitting:
            start = end - size
            total = best[start] + cost[start]
            if total <= least:
                least, length = total, size
        best[end], chosen[end] = least, length
    starts = []
    while n > 0:
        n -= chosen[n]
        starts.append(n)
    return np.array(starts[::-1], dtype=np.intp)


class Windows:
    """Deviations of every interval of any length.

    dev = 2 sum over x_j < mean of (mean - x_j), so it needs how many counts of a window lie below its mean, and
    their sum. A wavelet matrix of the ranks, built once, answers both for all windows at once, bit by bit.

    >>> Windows(np.array([3.0, 0.0, 20.0, 20.0])).deviations(2).tolist()
    [3.0, 20.0, 0.0]
    """

    def __init__(self, counts: Array) -> None:
        self.totals = np.concatenate([[0.0], np.cumsum(counts)])
        self.values, ranks = np.unique(counts, return_inverse=True)
        self.levels = []  # (bit, zeros before each place, sums of the counts in this level's order), highest bit first
        order = np.asarray(counts)
        for bit in range(len(self.values).bit_length() - 1, -1, -1):
            zero = (ranks >> bit) & 1 == 0
            zeros_before = np.concatenate([[0], np.cumsum(zero)])
            ranks = np.concatenate([ranks[zero], ranks[~zero]])
            order = np.concatenate([order[zero], order[~zero]])
            self.levels.append((bit, zeros_before, np.concatenate([[0.0], np.cumsum(order)])))

    def deviations(self, length: int) -> Array:
        """One deviation for each start."""
        windows = len(self.totals) - length
        means = (self.totals[length:] - self.totals[:-length]) / length
        below = np.searchsorted(self.values, means)  # ranks under this one are under the mean
        low, high = np.arange(windows), np.arange(windows) + length
        number, amount = np.zeros(windows), np.zeros(windows)
        for bit, zeros_before, sums in self.levels:
            low0, high0 = zeros_before[low], zeros_before[high]
            up = (below >> bit) & 1 == 1  # the zeros of this bit are all below; go on among the ones
            number += np.where(up, high0 - low0, 0)
            amount += np.where(up, sums[high0] - sums[low0], 0.0)
            first = zeros_before[-1]
            low, high = np.where(up, first + low - low0, low0), np.where(up, first + high - high0, high0)
        return np.asarray(np.maximum(2.0 * (number * means - amount), 0.0))
