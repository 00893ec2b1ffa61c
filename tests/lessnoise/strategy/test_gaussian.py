"""The optimum for Gaussian noise, against the table, closed forms and random strategies."""

from __future__ import annotations

import numpy as np
import pytest

from lessnoise.errors import InvalidInput
from lessnoise.strategy import optimal_gaussian
from lessnoise.strategy.gaussian import dual_bound, optimal_bound
from lessnoise.workload import identity, matrix, prefixes, ranges, total

GAUSSIAN = 4.224932


@pytest.mark.parametrize(
    ("workload", "expected"),
    [(prefixes(64), 78.7), (prefixes(256), 113.7), (ranges(64), 94.6), (ranges(256), 150.3)],
)
def test_the_table(workload, expected):
    check_table(workload, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("workload", "expected"), [(ranges(1024), 220.5)])
def test_the_table_of_many_cells(workload, expected):
    check_table(workload, expected)


def check_table(workload, expected):
    strategy, bound = optimal_gaussian(workload)
    error = strategy.norm(2) ** 2 * strategy.trace(workload)
    assert bound <= error <= 1.0002 * bound
    assert GAUSSIAN**2 * error / workload.queries == pytest.approx(expected, abs=0.1)


def test_known_optima():
    for workload, expected in ((identity(5), 5.0), (total(7), 1.0), (3.0 * total(7), 9.0)):
        strategy, bound = optimal_gaussian(workload)
        assert bound == pytest.approx(expected, rel=1e-6)
        assert bound <= expected
        assert strategy.norm(2) ** 2 * strategy.trace(workload) == pytest.approx(expected, rel=2e-4)
    # Two prefix sums: X = [[1, b], [b, 1]] has the error (3 - 2 b)/(1 - b^2), least at b = (3 - 5^(1/2))/2.
    b = (3.0 - 5.0**0.5) / 2.0
    assert optimal_bound(prefixes(2).gram()) == pytest.approx((3.0 - 2.0 * b) / (1.0 - b * b), rel=1e-4)


def test_cells_that_no_one_asks_for_are_not_measured():
    workload = matrix([[1, 1, 0, 0], [0, 1, 0, 0]])
    strategy, bound = optimal_gaussian(workload)
    assert strategy.matrix.array[:, 2:].tolist() == [[0.0, 0.0]] * strategy.rows
    assert strategy.norm(2) ** 2 * strategy.trace(workload) == pytest.approx(bound, rel=2e-4)


def test_tables_of_two_axes():
    workload = prefixes(4) * identity(3) + total(4, 3)
    strategy, bound = optimal_gaussian(workload)
    assert strategy.shape == (4, 3)
    assert strategy.norm(2) ** 2 * strategy.trace(workload) == pytest.approx(bound, rel=2e-4)


def test_no_strategy_is_below_a_dual_bound():
    rng = np.random.default_rng(8)
    for workload in (prefixes(6), ranges(6), matrix(rng.normal(size=(4, 6)))):
        gram = workload.gram()
        best = optimal_bound(gram)
        for _ in range(50):
            a = rng.normal(size=(6, 6)) + rng.uniform(0, 5) * np.eye(6)
            error = np.square(a).sum(axis=0).max() * np.trace(gram @ np.linalg.inv(a.T @ a))
            bound = dual_bound(gram, rng.uniform(0.1, 2.0, 6))
            assert bound <= best * (1 + 1e-4)
            assert best <= error


def test_a_dual_bound_is_the_sum_of_singular_values():
    weights = np.array([0.5, 1.0, 2.0, 1.5])
    singular = np.linalg.svd(ranges(4).matrix() * np.sqrt(weights), compute_uv=False)
    expected = singular.sum() ** 2 / weights.sum()
    assert expected * (1 - 1e-12) <= dual_bound(ranges(4).gram(), weights) <= expected


def test_a_smaller_gap():
    _, rough = optimal_gaussian(prefixes(16), gap=0.01)
    strategy, bound = optimal_gaussian(prefixes(16), gap=1e-7)
    assert rough <= bound * (1 + 1e-12)
    assert strategy.norm(2) ** 2 * strategy.trace(prefixes(16)) <= bound * (1 + 2e-7)
    with pytest.raises(InvalidInput, match="gap=0"):
        optimal_gaussian(prefixes(4), gap=0)
