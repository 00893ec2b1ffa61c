"""Lower bounds, against singular values, the optimum, and mechanisms that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lessnoise.strategy import gaussian_bound, optimal_gaussian, singular_value_bound
from lessnoise.strategy.bounds import _sums_bound
from lessnoise.strategy.gaussian import optimal_bound
from lessnoise.workload import identity, marginals, matrix, prefixes, ranges, total

LEAST_VARIANCE = 1.8411  # of noise on one whole number that moves by 1, at epsilon 1 and delta 1e-6

WORKLOADS = {
    "prefixes": prefixes(9),
    "ranges": ranges(7),
    "identity": identity(4, 2),
    "total": 2.0 * total(3, 2),
    "map": prefixes(4) * ranges(3),
    "rows": matrix(np.random.default_rng(0).normal(size=(5, 6))),
    "sums": prefixes(5) + 2.0 * identity(5),
    "marginals": marginals([2, 3, 2], order=2),
    "map of sums": prefixes(4) * total(3) + total(4) * prefixes(3),
}


@pytest.mark.parametrize("name", WORKLOADS)
def test_bounds_are_those_of_singular_values_and_of_the_optimum(name):
    workload = WORKLOADS[name]
    singular = np.linalg.svd(workload.matrix(), compute_uv=False).sum() ** 2 / workload.cells
    assert singular * (1 - 1e-6) <= singular_value_bound(workload) <= singular
    strategy, bound = optimal_gaussian(workload, gap=1e-6)
    error = strategy.norm(2) ** 2 * strategy.trace(workload)
    found = gaussian_bound(workload)
    assert singular_value_bound(workload) <= found <= error
    assert found >= bound * (1 - 1e-4)


def test_bounds_of_large_tables():
    assert singular_value_bound(prefixes(100_000)) / 1e5 == pytest.approx(340.3446120669066 / 4.2249**2, rel=1e-9)
    assert gaussian_bound(prefixes(100_000)) == singular_value_bound(prefixes(100_000))
    square = ranges((512, 512))
    assert gaussian_bound(square) == pytest.approx(gaussian_bound(ranges(512)) ** 2, rel=1e-9)
    both = prefixes(9000) + identity(9000)
    assert gaussian_bound(both) == pytest.approx(gaussian_bound(prefixes(9000)))


@pytest.mark.parametrize("workload", [prefixes(40), ranges(40), prefixes(200), ranges(200)])
def test_the_bound_of_many_prefix_sums_or_ranges_is_near_the_dual(workload):
    best = optimal_bound(workload.gram(), gap=1e-6)
    assert best * (1 - 0.001) <= _sums_bound(workload.parts[0].factors[0]) <= best * (1 + 1e-6)


def discrete_laplace(epsilon):
    """The variance of noise k with probability proportional to exp(-epsilon |k|)."""
    return 2.0 * math.exp(-epsilon) / (1.0 - math.exp(-epsilon)) ** 2


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_additive_mechanism_is_below_the_bound_for_all(name):
    workload = WORKLOADS[name]
    least = LEAST_VARIANCE * gaussian_bound(workload)
    rng = np.random.default_rng(9)
    gram = workload.gram()
    cells = workload.cells
    for _ in range(20):  # discrete Laplace noise on whole strategies, of which a column has l1 norm k: epsilon/k each
        a = np.concatenate([np.eye(cells), rng.integers(0, 2, (rng.integers(0, 4), cells))])
        variance = discrete_laplace(1.0 / np.abs(a).sum(axis=0).max())
        assert variance * np.trace(gram @ np.linalg.inv(a.T @ a)) >= least


def test_the_bound_for_all_is_reached_by_noise_on_every_cell():
    bound = LEAST_VARIANCE * gaussian_bound(identity(12))
    assert bound <= 12.0 * discrete_laplace(1.0) <= 1.001 * bound


def test_the_table_of_laplace_strategies_is_above_the_bound_for_all():
    for workload, error in ((prefixes(64), 28.3), (prefixes(256), 54.3), (ranges(64), 30.8), (ranges(256), 65.1)):
        assert LEAST_VARIANCE * gaussian_bound(workload) / workload.queries < error


@pytest.mark.parametrize("shift", [0.0, 0.25, 0.5])
def test_the_least_variance_of_a_step_of_one_is_that_of_whole_numbers(shift):
    """Noise on k + shift, k whole, with E (k + shift)^2 least: a linear program, for epsilon 1 and delta 1e-6."""
    optimize = pytest.importorskip("scipy.optimize")
    places = np.arange(-30, 31)
    count, factor = len(places), math.e
    # Variables: p_k, and the excesses d_k >= p_k - e p_(k+1), f_k >= p_(k+1) - e p_k, each of sum at most delta.
    eye, later = np.eye(count), np.eye(count, k=1)
    zero = np.zeros((count, count))
    above = np.block([[eye - factor * later, -eye, zero], [eye - factor * later.T, zero, -eye]])
    sums = np.zeros((2, 3 * count))
    sums[0, count : 2 * count] = sums[1, 2 * count :] = 1.0
    cost = np.concatenate([(places + shift) ** 2, np.zeros(2 * count)])
    total_one = np.concatenate([np.ones(count), np.zeros(2 * count)])[np.newaxis]
    found = optimize.linprog(
        cost,
        A_ub=np.concatenate([above, sums]),
        b_ub=np.concatenate([np.zeros(2 * count), [1e-6, 1e-6]]),
        A_eq=total_one,
        b_eq=[1.0],
    )
    assert found.fun >= LEAST_VARIANCE - 1e-4
    assert shift or found.fun == pytest.approx(LEAST_VARIANCE, abs=1e-4)
