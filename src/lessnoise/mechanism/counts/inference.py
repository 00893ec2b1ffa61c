"""Sums over a tree, and their inverse: the least-squares leaves of nodes that were measured with noise of their own.

Noise hides what its curve says only if the sums of neighbours are as far apart as their counts are, and rounded sums
may be further: at 2^56, one record more can be 16 more. So noise is added to the real sums, which floats hold nearly.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array


def exact_sum(values: Array) -> Fraction:
    """Of floats, as real numbers."""
    return sum(map(Fraction, values.ravel().tolist()), Fraction(0))


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
    integers = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    lowest = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    unit = int((exponents - 53 + lowest).min())  # every entry is a multiple of 2^unit
    most = int(exponents.max())
    total = math.fsum(np.abs(np.ldexp(mantissas, exponents - most)))  # within [1/2, n]
    if math.frexp(total)[1] + most - unit + (parts - 1).bit_length() <= 53:
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
