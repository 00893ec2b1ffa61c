"""Errors that no strategy, and no mechanism, can go below.

For the columns w_j of W, any v_j > 0 and D = diag(v)^(1/2), let

    B = (||W D||_*)^2 / sum v,    ||.||_* the sum of the singular values.

*Strategies.* No A has max_j ||a_j||_2^2 tr(W^T W (A^T A)^+) below B. With v = 1, B is the singular-value bound (Li &
Miklau, PVLDB 2013); the largest B over all v is reached by the best A (Nikolov, Talwar & Zhang, STOC 2013; Edmonds,
Nikolov & Ullman, SODA 2020).

*All mechanisms.* Let c be the least variance of noise on one number that hides a step of exactly 1 with the promise
(epsilon, delta). Then noise n added to the answers W x, of any law, has E||n||^2 >= c B. Proof: for a vector u, the
number <u, n> is noise on <u, W x>, which moves by <u, w_j>; functions of a private answer are private, so its variance
is at least c <u, w_j>^2. For the covariance S of n this says S >= c w_j w_j^T, or w_j^T S^-1 w_j <= 1/c (with S + t I,
t -> 0, if S has no inverse). With weights v_j: ||S^(-1/2) W D||_F^2 <= sum v / c. By Cauchy and Schwarz,

    ||W D||_* = ||S^(1/2) S^(-1/2) W D||_* <= ||S^(1/2)||_F ||S^(-1/2) W D||_F <= (tr S)^(1/2) (sum v / c)^(1/2).

The noise need not be additive, if the error is that for the worst table: M(x + t) - W t, with t drawn from {0..L}^n,
has no larger worst error, keeps the promise, and comes, as L grows, as near as one likes to W x + n for some law of n
(the laws of M(t) - W t and M(t + e_j) - W (t + e_j) differ by 1/(L + 1) at most, and their second moments are bounded).
For Gaussian noise that hides a step of 1, c is its own variance, and the first statement is the second.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.strategy.gaussian import DENSE_CELLS, dual_bound, optimal_bound
from lessnoise.strategy.marginal import is_marginals, marginals_bound
from lessnoise.strategy.toeplitz import toeplitz_for

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray
    from lessnoise.workload import Factor, Workload

_FEW_CELLS = 512  # so many prefix sums or ranges have their optimum found
_TRIDIAGONAL_CELLS = 8192
_PLACES = 80
_DOWN = 1.0 - 1e-12  # what the sums of closed forms may lose, and more


def gaussian_bound(workload: Workload) -> float:
    """The largest proved lower bound on max_j ||a_j||_2^2 tr(W^T W (A^T A)^+), over all strategies A; rounded down.

    Times the least variance of noise that hides a step of 1, no mechanism at all has a smaller squared error, summed
    over all questions.

    >>> from lessnoise.workload import identity, prefixes
    >>> round(gaussian_bound(prefixes(64)) / 64, 3), round(gaussian_bound(identity(10)), 9)
    (4.409, 10.0)
    """
    terms = list(workload.terms())
    found = singular_value_bound(workload)
    if len(terms) == 1:
        weight, factors = terms[0]
        return max(found, weight * math.prod(map(_factor_bound, factors)) * _DOWN)
    if not is_marginals(workload) and workload.cells <= DENSE_CELLS:
        return max(found, optimal_bound(workload.gram()))
    return max(found, *(weight * math.prod(map(_factor_bound, factors)) * _DOWN for weight, factors in terms))


def singular_value_bound(workload: Workload) -> float:
    """(sum of the singular values of W)^2 / cells, or as much of it as is known for large tables; rounded down.

    For products of factors the singular values multiply; for marginals they are known; for other sums of several parts
    of a large table, this is the bound of the part whose own is the largest.

    >>> from lessnoise.workload import prefixes
    >>> round(singular_value_bound(prefixes(1000)) / 1000, 3)
    8.422
    """
    terms = list(workload.terms())
    known = marginals_bound(workload) if is_marginals(workload) else None
    if known is not None:
        return known * _DOWN
    if len(terms) > 1 and workload.cells <= DENSE_CELLS:
        return dual_bound(workload.gram(), np.ones(workload.cells))
    parts = (weight * math.prod(map(_nuclear, factors)) ** 2 for weight, factors in terms)
    return max(parts) / workload.cells * _DOWN


@functools.lru_cache(maxsize=64)
def _nuclear(factor: Factor) -> float:
    """The sum of the singular values of a factor, rounded down."""
    size = factor.size
    places = np.arange(1, size + 1, dtype=np.float64)
    if factor.kind == "prefixes":  # (F^T F)^-1 is the second difference, free at one end
        found = math.fsum(0.5 / np.sin((2.0 * places - 1.0) * math.pi / (4.0 * size + 2.0)))
    elif factor.kind == "ranges":  # F^T F / (n + 1) is the inverse of the second difference, fixed at both ends
        found = math.sqrt(size + 1.0) * math.fsum(0.5 / np.sin(places * math.pi / (2.0 * size + 2.0)))
    elif factor.kind == "identity":
        return float(size)
    elif factor.kind == "total":
        found = math.sqrt(size)
    else:
        return math.sqrt(dual_bound(factor.gram(), np.ones(size)) * size) * _DOWN
    return found * _DOWN


@functools.lru_cache(maxsize=64)
def _factor_bound(factor: Factor) -> float:
    """The best known bound along one axis."""
    if factor.kind in ("identity", "total"):
        return float(factor.size) if factor.kind == "identity" else 1.0
    known = _nuclear(factor) ** 2 / factor.size
    if factor.kind in ("prefixes", "ranges") and _FEW_CELLS < factor.size <= _TRIDIAGONAL_CELLS:
        return max(known, _sums_bound(factor))
    return max(known, optimal_bound(factor.gram())) if factor.size <= DENSE_CELLS else known


def _sums_bound(factor: Factor) -> float:
    """The bound of prefix sums or ranges for the v of a strategy that is nearly optimal; rounded down.

    At the optimum, V = X diag(v) X, so v is the diagonal of X^-1 V X^-1: taken from a Toeplitz strategy at some cells,
    and interpolated, as any v will do. The inverse of D V D is tridiagonal: its eigenvalues are few operations each.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    size, strategy = factor.size, toeplitz_for(factor)
    near = np.unique(np.geomspace(1.0, size / 2.0, _PLACES).astype(np.int64)) - 1
    places = np.union1d(near, size - 1 - near)
    sums = np.cumsum(strategy.fit(strategy.spread(np.eye(size)[places])), axis=-1)  # W X^-1 e_j, for prefixes
    squares = np.square(sums).sum(axis=-1)
    ranges = factor.kind == "ranges"
    chosen = (size + 1) * squares - np.square(sums.sum(axis=-1)) if ranges else squares
    every = np.arange(size)
    weights = np.exp(np.interp(_logit(every, size), _logit(places, size), np.log(chosen)))
    weights /= weights.mean()
    # V^-1 is the second difference, of ranges over n + 1; prefixes have a free end at the first cell.
    diagonal = np.full(size, 2.0)
    diagonal[0] = 2.0 if ranges else 1.0
    eigenvalues = eigvalsh_tridiagonal(diagonal / weights, -1.0 / np.sqrt(weights[1:] * weights[:-1]))
    margin = (
        (size + 8.0) * 2.0**-52 * 4.0 / float(weights.min())
    )  # of LAPACK's, and of rounded entries; norm <= 4/min v
    roots = math.fsum(1.0 / np.sqrt(np.maximum(eigenvalues, 0.0) + margin))
    return (size + 1.0 if ranges else 1.0) * roots**2 / math.fsum(weights) * _DOWN


def _logit(places: IntArray, size: int) -> Array:
    return np.asarray(np.log((places + 0.5) / (size - places - 0.5)))
