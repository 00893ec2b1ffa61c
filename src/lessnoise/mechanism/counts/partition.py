"""DAWA's first stage: a partition of a line of counts into buckets of nearly equal counts.

A bucket b costs dev(b) = sum |x_j - mean_b|, what is lost by spreading its total evenly, plus 1/epsilon2, what the
noise on its total costs. One record changes dev by at most 2 - 2/l, l being the bucket's length, and every partition
has one bucket with that record in it. Two ways to choose a partition:

- :func:`sample_partition`, ours: the exponential mechanism over the prunings of a binary tree, drawn exactly.
- :func:`cheapest_partition`, as published: noise on the costs, then the cheapest partition by dynamic programming.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.noise.floats import Floats

    Array = NDArray[np.float64]
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


def sample_partition(counts: Array, epsilon: float, bucket_cost: float, source: Floats) -> Starts:
    """Draw the starts of the buckets with probability proportional to prior x exp(-epsilon cost / (2 (2 - 2/n))).

    The candidates are the prunings of the binary tree over the cells, n a power of 2; in the prior each node is split
    with probability ``SPLIT``. This is the exponential mechanism (McSherry & Talwar, FOCS 2007), so the partition is
    epsilon-DP: a record changes the cost of any partition by at most 2 - 2/n. The sum over all prunings follows
    bottom-up, W(node) = (1 - s) e^(-c) + s W(left) W(right), and a pruning is drawn top-down.
    """
    n = len(counts)
    if n == 1:
        return np.zeros(1, dtype=np.intp)
    rate = epsilon / (2.0 * deviation_sensitivity(n))
    logarithms = [np.full(n, -rate * bucket_cost)]  # ln W of the leaves, whose deviation is 0
    splits = []  # ln(probability to split), from the leaves' parents up
    for level in range(1, n.bit_length()):
        keep = math.log1p(-SPLIT) - rate * (deviations(counts, 2**level) + bucket_cost)
        halves = logarithms[-1].reshape(-1, 2).sum(axis=1) + math.log(SPLIT)
        logarithms.append(np.logaddexp(keep, halves))
        splits.append(halves - logarithms[-1])
    starts = [np.zeros(0, dtype=np.intp)]
    nodes = np.zeros(1, dtype=np.intp)
    for level in range(len(splits), 0, -1):
        split = source.exponentials(len(nodes)) > -splits[level - 1][nodes]  # P(E > -ln p) = p
        starts.append(nodes[~split] * 2**level)
        nodes = (2 * nodes[split][:, np.newaxis] + np.arange(2)).ravel()
    return np.sort(np.concatenate([*starts, nodes]))


def deviations(counts: Array, length: int) -> Array:
    """Deviations of the buckets [0, l), [l, 2l), ...

    >>> deviations(np.array([3.0, 0.0, 20.0, 20.0]), 2).tolist()
    [3.0, 0.0]
    """
    blocks = counts.reshape(-1, length)
    return np.asarray(np.abs(blocks - blocks.mean(axis=1, keepdims=True)).sum(axis=1))


# As published.


def published_scale(length: int, size: int, epsilon: float) -> float:
    """Scale of the published noise on a bucket's cost: (2 - 1/l - 1/n)/epsilon1.

    >>> published_scale(4, 4, 1.0)
    1.5
    """
    return (2.0 - 1.0 / length - 1.0 / size) / epsilon


def cheapest_partition(counts: Array, epsilon: float, bucket_cost: float, factor: float, source: Floats) -> Starts:
    """The partition of least noisy cost into intervals of 1, 2, 4, ... cells with any start, as published.

    Single cells have no noise, and no cost may fall below 1/epsilon2. ``factor`` multiplies the published scale; 0
    gives the partition of least true cost.
    """
    n = len(counts)
    windows = Windows(counts)
    costs = [np.full(n, bucket_cost)]
    for level in range(1, n.bit_length()):
        length = 2**level
        cost = windows.deviations(length)
        if factor > 0.0:
            noise = source.exponentials(len(cost))
            noise *= source.signs(len(cost))
            cost += factor * published_scale(length, n, epsilon) * noise
        costs.append(np.maximum(cost + bucket_cost, bucket_cost))
    return _cheapest(n, costs)


def _cheapest(n: int, costs: list[Array]) -> Starts:
    """C[i] = min over lengths of C[i - length] + cost; ties go to the longer bucket."""
    tables = [cost.tolist() for cost in costs]
    best = [0.0] * (n + 1)
    chosen = [1] * (n + 1)
    for end in range(1, n + 1):
        least, length = math.inf, 1
        for level in range(end.bit_length()):
            start = end - (1 << level)
            total = best[start] + tables[level][start]
            if total <= least:
                least, length = total, 1 << level
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
