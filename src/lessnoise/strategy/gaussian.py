"""The strategy with the least squared error that Gaussian noise can have, and the proof that there is no better one.

With V = W^T W and X = A^T A, the error of W A^+ y is max_j X_jj tr(V X^-1) times the noise of a number that moves by 1:
convex, to be minimised over X with diag X <= 1. For any v > 0, no X does better than (tr (D V D)^(1/2))^2 / sum v with
D = diag(v)^(1/2) (:mod:`lessnoise.strategy.bounds` has the proof). At the optimum, X = D^-1 (D V D)^(1/2) D^-1 has a
diagonal of ones, or v <- diag((D V D)^(1/2)) changes nothing; going twice as far in each round halves their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy.dense import Dense

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.workload import Workload

DENSE_CELLS = 2048  # tables whose matrices are small enough
GAP = 1e-4
_ROUNDS = 400
_ROUNDING = 2.0**-52
_RANK = 1e-12  # of the largest eigenvalue: smaller ones are taken for 0


def optimal_gaussian(workload: Workload, gap: float = GAP) -> tuple[Dense, float]:
    """The best strategy for Gaussian noise, of columns of l2 norm 1, and a lower bound of every strategy's error.

    Both errors are sums over all questions, for noise of variance 1; the strategy's is within a share ``gap`` of the
    bound. For tables of up to about 2,000 cells.

    >>> from lessnoise.workload import prefixes
    >>> strategy, bound = optimal_gaussian(prefixes(64))
    >>> round(bound / 64, 3), round(strategy.trace(prefixes(64)) / 64, 3)
    (4.409, 4.41)
    """
    gap = validation.positive("gap", gap)
    matrix, bound, _ = _solve(workload.gram(), gap)
    return Dense(FrozenMatrix(matrix), workload.shape), bound


def optimal_bound(gram: Array, gap: float = GAP) -> float:
    """A lower bound on max_j X_jj tr(V X^-1) over all X, within a share ``gap`` of the least, rounded down."""
    return _solve(gram, gap)[1]


def dual_bound(gram: Array, weights: Array) -> float:
    """(tr (D V D)^(1/2))^2 / sum v for v = ``weights`` above 0: no strategy has a smaller error. Rounded down.

    The eigenvalues that LAPACK finds for M = D V D are those of a matrix within n 2^-52 ||M||_F of it (its manual says
    "a modest function of n", and n is ample), and M itself is rounded four times an entry: so much is taken from each.

    >>> dual_bound(np.ones((2, 2)), np.ones(2)) <= 1.0  # the total alone: one number that moves by 1
    True
    """
    root = np.sqrt(weights)
    scaled = root[:, np.newaxis] * gram * root
    return _bound(np.asarray(np.linalg.eigvalsh(scaled), dtype=np.float64), float(np.linalg.norm(scaled)), weights)


def _bound(eigenvalues: Array, norm: float, weights: Array) -> float:
    margin = (len(weights) + 8.0) * _ROUNDING * norm
    total = math.fsum(np.sqrt(np.maximum(eigenvalues - margin, 0.0)))
    return total**2 / math.fsum(weights) * (1.0 - 16.0 * _ROUNDING)


def _solve(gram: Array, gap: float) -> tuple[Array, float, Array]:
    """A, the largest bound found, and its v."""
    cells = len(gram)
    asked = np.flatnonzero(np.diagonal(gram) > 0.0)
    part = gram[np.ix_(asked, asked)]
    weights, best, kept, speed = np.ones(len(asked)), 0.0, np.ones(len(asked)), 2.0
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        scaled = root[:, np.newaxis] * part * root
        values, vectors = np.linalg.eigh(scaled)
        bound = _bound(values, float(np.linalg.norm(scaled)), weights)
        if bound >= best:
            best, kept = bound, weights
        else:
            speed = 1.0
        roots = np.sqrt(np.maximum(values, 0.0))
        diagonal = (vectors * vectors) @ roots / weights  # of X = D^-1 M^(1/2) D^-1; tr(V X^-1) = tr M^(1/2)
        if float(roots.sum() * diagonal.max()) <= (1.0 + gap) * best:
            break
        weights = weights * (diagonal / diagonal.mean()) ** speed
        weights = np.maximum(weights / weights.mean(), 1e-12)
    used = values > _RANK * values[-1]
    found = np.zeros((int(used.sum()), cells))
    found[:, asked] = (np.sqrt(roots[used])[:, np.newaxis] * vectors[:, used].T) / root
    norms = np.sqrt(np.square(found).sum(axis=0))
    return found / norms.max(), best, kept
