"""Sums over a tree, and their inverse: the least-squares leaves of nodes that were measured with noise of their own.

Noise hides what its curve says only if the sums of neighbours are as far apart as their counts are, and rounded sums
may be further: at 2^56, one record more can be 16 more. So noise is added to the real sums, which floats hold nearly.

DAWA's second stage, GreedyH, is a weighted binary tree of queries over the buckets, fitted to a workload.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.strategy import unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array

_CHOICES = np.arange(1, 101) / 100.0  # of p, the share of a node's weight that GreedyH leaves to its descendants


def sums_error(value: Array, roundings: int, parts: int = 1) -> float:
    """How far sums over entries of a value can be off, each entry being rounded so often; 0 for ordinary counts.

    Sums are exact, in any order, if all entries are multiples of a power of two and their total is below 2^53 of it.
    ``parts``, a power of two, leaves room for as many parts of that unit, as means take.

    >>> sums_error(np.array([3.0, 0.5]), 2), sums_error(np.array([2.0**53, 1.0]), 2)
    (0.0, 2.02)
    """
    mantissas, exponents = np.frexp(value[value != 0.0])
    if not mantissas.size or not np.isfinite(mantissas).all():
        return 0.0  # NaN and infinity are refused by the engine, by place
    lowest = unit(value)  # every entry is a multiple of 2^lowest
    assert lowest is not None
    most = int(exponents.max())
    total = math.fsum(np.abs(np.ldexp(mantissas, exponents - most)))  # within [1/2, n]
    if math.frexp(total)[1] + most - lowest + (parts - 1).bit_length() <= 53:
        return 0.0
    return math.ldexp(1.01 * roundings * total, most - 53) if most < 900 else math.inf


def pool(values: Array, branching: int) -> Array:
    """Sum every block of ``branching`` entries a side: a level of the tree from the one below.

    >>> pool(np.array([1.0, 2.0, 3.0, 4.0]), 2).tolist()
    [3.0, 7.0]
    """
    split = [size for side in values.shape for size in (side // branching, branching)]
    return np.asarray(values.reshape(split).sum(axis=tuple(range(1, 2 * values.ndim, 2))))


def spread(values: Array, branching: int) -> Array:
    """Repeat every entry over its block: the inverse direction of :func:`pool`."""
    for axis in range(values.ndim):
        values = np.repeat(values, branching, axis=axis)
    return values


def levels_of(leaves: Array, branching: int, height: int) -> list[Array]:
    """The exact counts of every level, from just below the root to the leaves."""
    levels = [leaves]
    for _ in range(height - 1):
        levels.append(pool(levels[-1], branching))
    return levels[::-1]


def consistent_leaves(measured: Sequence[Array], variances: Sequence[Array], branching: int) -> Array:
    """Least-squares estimates of the leaves, given every level, top first, with independent errors.

    A variance may be infinite (the node was not measured) and, for leaves, 0 (the count is known). With equal
    variances this is the inference of Hay et al. (PVLDB 2010), as H_b uses it.

    >>> root, leaves = np.array([0.0]), np.array([0.5, 0.5])
    >>> print(consistent_leaves([root, leaves], [np.ones(1), np.ones(2)], 2))
    [0.16666667 0.16666667]
    """
    # Bottom-up: z combines a node's own measurement with the sum of its children, each by its precision.
    estimates, spreads = [measured[-1]], [variances[-1]]
    sums: list[Array] = []
    shared: list[Array] = []
    for own, variance in zip(measured[-2::-1], variances[-2::-1], strict=True):
        below, uncertainty = pool(estimates[-1], branching), pool(spreads[-1], branching)
        sums.append(below)
        shared.append(uncertainty)
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isinf(variance), 0.0, uncertainty / (uncertainty + variance))
        estimates.append(below + weight * np.where(np.isinf(variance), 0.0, own - below))
        spreads.append(uncertainty * (1.0 - weight))
    # Top-down: what a parent differs from the sum of its children is divided by their variances.
    found = estimates[-1]
    for z, variance, below, uncertainty in zip(
        estimates[-2::-1], spreads[-2::-1], sums[::-1], shared[::-1], strict=True
    ):
        known = uncertainty == 0.0
        share = np.where(known, 0.0, found - below) / np.where(known, 1.0, uncertainty)
        found = z + spread(share, branching) * variance
    return found


# GreedyH.


def greedy_weights(workload: Array) -> list[Array]:
    """GreedyH's weights of every node, top level first; the number of leaves is a power of 2.

    Every node asks for its total with weight 1 - p times the product of its ancestors' p; a leaf has p = 0. The weights
    of every path from the root to a leaf sum to 1, so one record changes all answers by 1 in l1. Each p is chosen, from
    the leaves up, for the least error of the workload; with v = (A^T A)^-1 1 and k = 1^T v, adding a node's own query
    turns (A^T A)^-1 into p^-2 ((A^T A)^-1 - q^2/(p^2 + k q^2) v v^T), q = 1 - p (Sherman & Morrison), so only v, k and
    the error are carried upwards, and v itself is only rescaled. What is measured is weight x total itself.

    ``workload`` is G = Q^T Q over the buckets. Where no query asks for two buckets, G is diagonal, and no total helps:
    an own query of s leaves changes the error by the factor (p^2 + (s-1) q^2)/(p^2 (p^2 + s q^2)) >= 1.

    >>> [level.tolist() for level in greedy_weights(np.eye(2))]
    [[0.0], [1.0, 1.0]]
    >>> [round(float(level[0]), 2) for level in greedy_weights(np.ones((2, 2)))]  # only the total: nearly all weight
    [0.99, 0.01]
    """
    products = workload.copy()  # v_i^T G v_j for the nodes i, j of a level; v = 1 at a leaf
    error = np.diagonal(workload).copy()
    k = np.ones(len(workload))
    shares = []  # p of every node, from the leaves' parents up
    while len(k) > 1:
        error, k, products = pool(error, 2), pool(k, 2), pool(products, 2)
        own = np.diagonal(products)
        p = _CHOICES[:, np.newaxis]
        q = 1.0 - p
        after = (error - q**2 * own / (p**2 + k * q**2)) / p**2
        # Rounding may make nearly equal errors differ: the largest p among the best asks for the fewest totals.
        best = len(_CHOICES) - 1 - np.argmin((after * (1.0 + 1e-12 * (1.0 - p)))[::-1], axis=0)
        share = _CHOICES[best]
        error = np.take_along_axis(after, best[np.newaxis], axis=0)[0]
        factor = 1.0 / (share**2 + k * (1.0 - share) ** 2)
        k = k * factor
        products = products * np.outer(factor, factor)
        shares.append(share)
    weights, above = [], np.ones(1)
    for share in shares[::-1]:
        weights.append(above * (1.0 - share))
        above = np.repeat(above * share, 2)
    return [*weights, above]


def asked(weights: list[Array], buckets: int) -> list[NDArray[np.bool_]]:
    """Which nodes are asked: those with a weight, over at least one bucket; the leaves beyond the last hold nothing."""
    leaves = len(weights[-1])
    return [(weight > 0.0) & (np.arange(len(weight)) * (leaves // len(weight)) < buckets) for weight in weights]


class Answers:
    """The weighted queries that are asked, top level first: what noise is added to."""

    def __init__(self, totals: Array, weights: list[Array]) -> None:
        leaves = np.zeros(len(weights[-1]))
        leaves[: len(totals)] = totals
        levels, masks = levels_of(leaves, 2, len(weights)), asked(weights, len(totals))
        self.values = np.concatenate([(w * level)[m] for w, level, m in zip(weights, levels, masks, strict=True)])
        self.weights = np.concatenate([w[mask] for w, mask in zip(weights, masks, strict=True)])
        spans = [len(leaves) // len(weight) for weight in weights]
        self.ends = [  # first and last bucket of each query
            (int(node) * span, min((int(node) + 1) * span, len(totals)))
            for span, mask in zip(spans, masks, strict=True)
            for node in np.flatnonzero(mask)
        ]


def fitted_totals(measured: Array, weights: list[Array], buckets: int) -> Array:
    """Least-squares totals of the buckets from the noisy answers, given as :class:`Answers` has them."""
    levels, variances, start = [], [], 0
    for weight, mask in zip(weights, asked(weights, buckets), strict=True):
        count = int(mask.sum())
        level, variance = np.zeros(len(weight)), np.full(len(weight), np.inf)
        level[mask] = measured[start : start + count] / weight[mask]
        variance[mask] = weight[mask] ** -2.0
        levels.append(level)
        variances.append(variance)
        start += count
    variances[-1][buckets:] = 0.0
    return consistent_leaves(levels, variances, 2)[:buckets]
