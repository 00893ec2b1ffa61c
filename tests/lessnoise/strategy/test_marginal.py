"""Residuals and tables of marginals, against their matrices and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lessnoise.errors import InvalidInput
from lessnoise.strategy import Residuals, gaussian_bound, is_marginals, marginal_strategies
from lessnoise.strategy.gaussian import optimal_bound
from lessnoise.workload import identity, marginals, prefixes, ranges, total
from tests.lessnoise.strategy.contract import check

EXAMPLES = {
    "pairs": Residuals((2, 3, 2), ((), (0,), (1,), (0, 1), (1, 2), (2,)), (0.3, 1.0, 0.7, 0.2, 0.9, 1.1)),
    "all": Residuals((3, 2), ((), (0,), (1,), (0, 1)), (0.3, 1.0, 0.7, 0.2)),
    "one value": Residuals((2, 1, 4), ((), (2,), (0, 2)), (0.5, 1.0, 0.25)),
    "no total": Residuals((5,), ((0,),), (1.5,)),
    "tables": Residuals((2, 3, 2), ((0, 1), (1, 2), ()), (0.3, 0.5, 0.1), tables=True),
    "one table": Residuals((3, 2), ((0, 1),), (1.0,), tables=True),
    "tables of one value": Residuals((2, 1, 3), ((1, 2), (0,)), (1.0, 2.0), tables=True),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_that_strategies_fulfil(name):
    strategy = EXAMPLES[name]
    sizes = strategy.sizes
    several = [marginals(sizes, order=1), identity(*sizes), total(*sizes), ranges(sizes)]
    check(strategy, [*several, 2.0 * total(*sizes) + marginals(sizes, order=1)], np.random.default_rng(6))


@pytest.mark.parametrize(
    "workload",
    [
        marginals([2, 3, 2], order=2),
        marginals([2, 3, 1, 4], order=1) + 3.0 * total(2, 3, 1, 4),
        marginals([3, 2, 2], sets=[[0, 1], [2]]),
        identity(3, 2),
        total(4, 2),
        identity(3) * total(2) + 0.5 * identity(3, 2),
    ],
)
def test_residuals_are_the_best_for_gaussian_noise(workload):
    residuals, tables = marginal_strategies(workload)
    error = residuals.norm(2) ** 2 * residuals.trace(workload)
    assert error == pytest.approx(gaussian_bound(workload), rel=1e-9)
    assert error == pytest.approx(optimal_bound(workload.gram()), rel=2e-4)
    assert gaussian_bound(workload) <= error
    assert tables.norm(1) == pytest.approx(1.0)
    # Never above tables with the same noise each, nor above the table of all attributes.
    alike = Residuals(
        workload.shape, tuple(dict.fromkeys(sets(workload))), (1.0,) * len(set(sets(workload))), tables=True
    )
    for other in (alike, Residuals(workload.shape, (tuple(range(len(workload.shape))),), (1.0,), tables=True)):
        assert tables.trace(workload) <= other.norm(1) ** 2 * other.trace(workload) * (1 + 1e-6)


def sets(workload):
    return [tuple(i for i, factor in enumerate(part.factors) if factor.kind == "identity") for part in workload.parts]


@pytest.mark.parametrize(("sizes", "order", "gain"), [([4] * 10, 2, 2.06), ([2] * 10, 3, 9.10)])
def test_gains_over_the_same_noise_on_every_marginal(sizes, order, gain):
    workload = marginals(sizes, order=order)
    residuals = next(iter(marginal_strategies(workload)))
    independent = workload.queries * len(workload.parts)  # each record is in as many tables
    assert independent / (residuals.norm(2) ** 2 * residuals.trace(workload)) == pytest.approx(gain, abs=0.005)


@pytest.mark.slow
def test_twenty_attributes():
    workload = marginals([2] * 20, order=2)
    strategy = next(iter(marginal_strategies(workload)))
    table = np.random.default_rng(1).poisson(0.3, size=[2] * 20).astype(float)
    measured = strategy.measure(table)
    assert measured.shape == (211,)
    np.testing.assert_allclose(workload.answers(strategy.fit(measured)), workload.answers(table), rtol=1e-9)
    for index in (0, 20, 210):
        assert abs(float(strategy.exact(table, index)) - measured[index]) <= strategy.error(table) < 1e-7
    assert strategy.norm(2) == pytest.approx(1.0)
    assert strategy.envelope() is not None or len(strategy.columns()) == 1


def test_counts_in_tables_are_exact():
    table = np.arange(12.0).reshape(3, 2, 2)
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (1.0, 2.0), tables=True).error(table) == 0.0
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (3.0, 5.0), tables=True).error(table) == 0.0
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (1.0, 0.3), tables=True).error(table) > 0.0
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (1.0, 2.0), tables=True).error(table + 0.1) > 0.0
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (1.0, 2.0), tables=True).error(table * 2.0**52) > 0.0
    assert Residuals((3, 2, 2), ((0,), (1, 2)), (1.0, 2.0), tables=True).whole
    assert Residuals((2,), ((0,),), (1.0,)).error(np.array([math.inf, 1.0])) == math.inf


def test_workloads_that_are_no_marginals_have_none():
    assert list(marginal_strategies(prefixes(4))) == []
    assert not is_marginals(identity(2) * prefixes(3))
    assert list(marginal_strategies(identity(*[2] * 16))) == []  # too many residuals: measure the table


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (((2, 2), ((0, 0),), (1.0,)), "different places"),
        (((2, 2), ((2,),), (1.0,)), "different places"),
        (((2, 1), ((1,),), (1.0,)), "of 2 values or more"),
        (((2, 2), ((0,), (0,)), (1.0, 1.0)), "list each set once"),
        (((2, 2), ((0,),), (1.0, 1.0)), "one weight each"),
        (((2, 2), ((0,),), (-1.0,)), "weight=-1"),
        (((2, 2), (5,), (1.0,)), "is not a list"),
        (((2, 2), ((0,),), (1.0,), "yes"), "tables='yes'"),
    ],
)
def test_what_is_no_strategy_of_marginals(values, message):
    with pytest.raises(InvalidInput, match=message):
        Residuals(*values)
