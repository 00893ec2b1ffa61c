"""Strategies for marginals: which tables, or which residuals of them, to measure, and how well each.

The optimum for Gaussian noise is known in closed form (:mod:`lessnoise.strategy.residuals`). For Laplace noise, tables
are measured themselves: one more row moves one number of each table by its weight, so that the noise is that of the sum
of the weights, and the weights are found by a search (OPT_M of McKenna et al., PVLDB 2018).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.strategy.residuals import Residuals, closure, contains

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Array
    from lessnoise.strategy.base import Strategy
    from lessnoise.workload import Workload

Set = tuple[int, ...]

_MOST_SETS = 1 << 12  # of a strategy that is built here
_SMALL_CUBE = 1 << 9  # so many sets of attributes are all weighed
_LEAST_WEIGHT = 1e-4  # of the largest: tables below are not measured
_ROUNDS = 300


def is_marginals(workload: Workload) -> bool:
    """Only tables of some attributes are asked, each summed over all others.

    >>> from lessnoise.workload import identity, marginals, prefixes, total
    >>> is_marginals(marginals([2, 3], order=1) + total(2, 3)), is_marginals(identity(2) * prefixes(3))
    (True, False)
    """
    return all(factor.kind in ("identity", "total") for _, factors in workload.terms() for factor in factors)


def spectrum(workload: Workload) -> dict[Set, tuple[float, float]] | None:
    """For every T with l_T > 0 in W^T W = sum_T l_T P_T: l_T and its multiplicity; None if they are too many."""
    asked: dict[Set, float] = {}
    for weight, factors in workload.terms():
        inside = tuple(i for i, factor in enumerate(factors) if factor.kind == "identity")
        outside = math.prod(factor.size for factor in factors if factor.kind == "total")
        asked[inside] = asked.get(inside, 0.0) + weight * outside
    if sum(2.0 ** len(each) for each in asked) > 64 * _MOST_SETS:
        return None
    below = closure(list(asked), workload.shape)
    if len(below) > _MOST_SETS:
        return None
    values = contains(below, list(asked)) @ np.asarray(list(asked.values()))
    counts = [float(math.prod(workload.shape[i] - 1 for i in each)) for each in below]
    return dict(zip(below, zip(values.tolist(), counts, strict=True), strict=True))


def marginals_bound(workload: Workload) -> float | None:
    """(sum_T l_T^(1/2) m_T)^2 / N, the least error that Gaussian noise can have; None if there are too many T.

    >>> from lessnoise.workload import marginals
    >>> marginals_bound(marginals([2, 2], order=2))  # the table itself: 4 numbers
    4.0
    """
    found = spectrum(workload)
    if found is None:
        return None
    return math.fsum(math.sqrt(value) * count for value, count in found.values()) ** 2 / workload.cells


def marginal_strategies(workload: Workload) -> Iterator[Strategy]:
    """Residuals, the best for Gaussian noise, then tables for Laplace noise; none if the workload is no marginals.

    >>> from lessnoise.workload import marginals
    >>> pairs = marginals([2] * 20, order=2)
    >>> [str(strategy) for strategy in marginal_strategies(pairs)][0]
    '211 residual tables of 20 attributes'
    """
    known = spectrum(workload) if is_marginals(workload) else None
    if known is None:
        return
    sizes, total = workload.shape, math.fsum(math.sqrt(value) * count for value, count in known.values())
    weights = []
    for each, (value, _) in known.items():
        share = workload.cells * math.sqrt(value) / total  # c_T, so that sum_T c_T m_T = N
        weights.append(math.sqrt(share / _outside(sizes, each)))
    yield Residuals(sizes, tuple(known), tuple(weights))
    yield _tables(workload, known)


def _tables(workload: Workload, known: dict[Set, tuple[float, float]]) -> Residuals:
    """The weights of sum 1 with the least sum_T l_T m_T / c_T, c_T = sum_(S >= T) w_S^2 prod_(i not in S) n_i."""
    from scipy.optimize import minimize

    sizes = workload.shape
    places = [i for i, size in enumerate(sizes) if size > 1]
    if 2 ** len(places) <= _SMALL_CUBE:
        sets = closure([tuple(places)], sizes)
    else:
        sets = list(known)
    within = contains(list(known), sets).astype(np.float64)
    outside = np.asarray([_outside(sizes, each) for each in sets])
    needs = np.asarray([value * count for value, count in known.values()])

    def objective(weights: Array) -> tuple[float, Array]:
        """log of the error at l1 norm 1, and its gradient in the weights."""
        c = within @ (weights**2 * outside) + 1e-300
        error, norm = float((needs / c).sum()), float(weights.sum())
        gradient = -2.0 * weights * outside * (within.T @ (needs / c**2)) / error + 2.0 / norm
        return math.log(error) + 2.0 * math.log(norm), gradient

    largest = [each for each in known if not any(set(each) < set(other) for other in known)]
    starts = [
        [each in largest for each in sets],
        [each in known for each in sets],
        [each == tuple(places) for each in sets],
    ]
    best: tuple[float, Array] | None = None
    for start in starts:
        given = np.where(start, 1.0, 0.03)
        given /= given.sum()
        options = {"maxiter": _ROUNDS}
        found = minimize(
            objective, given, jac=True, method="L-BFGS-B", bounds=[(0.0, None)] * len(sets), options=options
        )
        kept = np.where(found.x > _LEAST_WEIGHT * found.x.max(), found.x, 0.0)
        for chosen in (kept, found.x, np.where(start, 1.0, 0.0)):
            value = objective(chosen)[0]
            if best is None or value < best[0] - 1e-9:
                best = value, chosen / chosen.sum()
    assert best is not None
    pairs = [(each, weight) for each, weight in zip(sets, best[1].tolist(), strict=True) if weight > 0.0]
    return Residuals(sizes, tuple(each for each, _ in pairs), tuple(weight for _, weight in pairs), tables=True)


def _outside(sizes: tuple[int, ...], each: Set) -> float:
    return float(math.prod(size for i, size in enumerate(sizes) if i not in each))
