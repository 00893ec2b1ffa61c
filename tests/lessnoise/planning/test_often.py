"""How often: the number that is found fits, and one more does not."""

from __future__ import annotations

import math

import pytest

import lessnoise as ln

GAUSSIAN = ln.analytic_gaussian(epsilon=0.1, delta=1e-8, sensitivity=1, shape=3)


def test_gaussians_by_their_closed_form():
    """The total of n has mu^2 = n mu_1^2, and 1e-6 at epsilon = 1 allows mu = 1/4.2246789."""
    found = ln.most_releases(GAUSSIAN, epsilon=1, delta=1e-6)
    most = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=1).standard_deviation
    assert int(found) == math.floor((GAUSSIAN.standard_deviation / most) ** 2)
    assert found.is_proved
    assert found.exact.upper <= 1e-6 < found.one_more.lower


@pytest.mark.parametrize("epsilon", [0.1, 0.05])
def test_laplace_counted_one_by_one(epsilon):
    one = ln.laplace(epsilon=epsilon, sensitivity=1, shape=1)
    found = ln.most_releases(one, epsilon=1, delta=1e-6)
    assert one.repeat(found.times).within(1, 1e-6)
    assert not one.repeat(found.times + 1).within(1, 1e-6)
    assert found.times >= round(1 / epsilon)  # pure epsilons that are added up
    assert "does not fit" in str(found)


def test_a_plan_for_so_many_allows_so_many():
    plan = ln.plan_releases(ln.Request(1, 1e-6, 1.0, 2), times=40, mechanism="l2")
    assert ln.most_releases(plan.mechanism, epsilon=1, delta=1e-6).times in (40, 41)


def test_sampled_releases_fit_more_often():
    one = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    assert ln.most_releases(one, epsilon=1, delta=1e-6).times == 1
    assert ln.most_releases(one, epsilon=1, delta=1e-6, rate=0.1).times > 20


def test_none_fits():
    found = ln.most_releases(ln.laplace(epsilon=5, sensitivity=1, shape=1), epsilon=1, delta=1e-6)
    assert found.times == 0
    assert "not even one release fits" in str(found)
    found = ln.most_releases(GAUSSIAN, epsilon=1e6, delta=0.5)  # true, but what the machine adds is not bounded there
    assert (found.times, found.is_proved) == (0, False)
    assert "not even one release can be proved to fit" in str(found)


def test_bad_input():
    with pytest.raises(ln.InvalidInput, match="delta=0"):
        ln.most_releases(GAUSSIAN, epsilon=1, delta=0)
    with pytest.raises(ln.InvalidInput, match="rate=2"):
        ln.most_releases(GAUSSIAN, epsilon=1, delta=1e-6, rate=2)
