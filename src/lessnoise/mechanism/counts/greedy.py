"""DAWA's second stage, GreedyH: a weighted binary tree of queries over the buckets, fitted to a workload.

Every node asks for its total with weight 1 - p times the product of its ancestors' p; a leaf has p = 0. The weights of
every path from the root to a leaf sum to 1, so one record changes all answers by 1 in l1. Each p is chosen, from the
leaves up, for the least error of the workload; with v = (A^T A)^-1 1 and k = 1^T v, adding a node's own query turns
(A^T A)^-1 into p^-2 ((A^T A)^-1 - q^2/(p^2 + k q^2) v v^T), q = 1 - p (Sherman & Morrison), so only v, k and the error
are carried upwards, and v itself is only rescaled.

What is measured is weight x total itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.counts.inference import consistent_leaves, levels_of, pool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array


_CHOICES = np.arange(1, 101) / 100.0  # of p


def greedy_weights(workload: Array) -> list[Array]:
    """Weights of every node, top level first; the number of leaves is a power of 2.

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
