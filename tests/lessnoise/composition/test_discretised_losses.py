"""Discretised losses bound the curve they come from, and their sums are what another transform computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessnoise.composition.convolution import LatticeSum, LossTerms
from lessnoise.composition.discretize import DiscreteLosses, optimistic_hull, pessimistic, snap, unsnapped
from lessnoise.mechanism.curve import gaussian


def curve_of(losses: DiscreteLosses, epsilon: float) -> float:
    """Hockey-stick divergence of the discrete pair, from the definition."""
    with np.errstate(over="ignore"):
        return float(np.sum(losses.p * np.maximum(-np.expm1(epsilon - losses.x), 0.0))) + losses.infinite


def excess(mu: float, x: np.ndarray) -> np.ndarray:
    return np.array([gaussian.delta(mu, abs(v)) * math.exp(min(v, 0.0)) for v in x.tolist()])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    mu=st.floats(0.05, 5.0),
    points=st.lists(st.integers(-64, 64), min_size=3, max_size=40, unique=True),
    fineness=st.integers(0, 5),
    blur=st.sampled_from([0.0, 1e-6, 1e-3]),
    queries=st.lists(st.floats(-3.0, 3.0), min_size=5, max_size=5),
)
def test_pessimistic_above_and_optimistic_below(mu, points, fineness, blur, queries):
    spacing = 2.0 ** math.ceil(math.log2(mu / 8.0))
    x = np.array(sorted({0, -64, 64, *points})) * spacing
    true = excess(mu, x)
    lower, upper = true * (1 - blur), true * (1 + blur)
    above = pessimistic(x, upper)
    hull = optimistic_hull(x, lower, upper, 0.0)
    step = spacing * 2.0**-fineness
    snapped = snap(*hull, step)
    assert np.array_equal(np.rint(snapped.x / step) * step, snapped.x)
    for query in queries:
        epsilon = query * mu * (1.0 + mu / 2.0)
        truth = (
            gaussian.delta(mu, epsilon)
            if epsilon >= 0
            else -math.expm1(epsilon) + math.exp(epsilon) * gaussian.delta(mu, -epsilon)
        )
        assert curve_of(above, epsilon) >= truth * (1 - 1e-9) - 1e-15
        for below in (unsnapped(*hull), snapped):
            assert curve_of(below, epsilon) <= truth * (1 + 1e-9) + 1e-15
            assert below.p.min() >= 0.0


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(mu=st.floats(0.05, 3.0), query=st.floats(0.0, 3.0))
def test_losses_read_backwards_bound_the_same_symmetric_curve(mu, query):
    x = np.arange(-80, 81) * 2.0 ** math.ceil(math.log2(mu / 8.0))
    true = excess(mu, x)
    epsilon = query * mu * (1.0 + mu / 2.0)
    truth = gaussian.delta(mu, epsilon)
    assert curve_of(pessimistic(x, true).reversed(), epsilon) >= truth * (1 - 1e-9) - 1e-15
    assert (
        curve_of(snap(*optimistic_hull(x, true, true, 0.0), x[1] - x[0]).reversed(), epsilon)
        <= truth * (1 + 1e-9) + 1e-15
    )


def test_fine_points_leave_little_room():
    mu = 0.8
    x = np.arange(-400, 401) / 64.0
    true = excess(mu, x)
    above, below = pessimistic(x, true), snap(*optimistic_hull(x, true, true, 0.0), 2.0**-9)
    for epsilon in (0.0, 0.5, 1.3, 2.7):
        truth = gaussian.delta(mu, epsilon)
        assert curve_of(above, epsilon) <= truth * 1.01
        assert curve_of(below, epsilon) >= truth * 0.99


@pytest.mark.parametrize("count", [2, 50, 1000])
def test_sums_agree_with_another_transform(count):
    from dp_accounting.pld import pld_pmf

    step = 2.0**-6
    x = np.arange(-256, 257) * step
    losses = pessimistic(x, excess(0.4, x))
    theirs = pld_pmf.DensePLDPmf(step, -256, losses.p, losses.infinite, True).self_compose(count, 1e-15)
    terms = LossTerms([losses], [count])
    for target in (1e-2, 1e-5, 1e-8):
        theta = terms.tilt_for(target)
        epsilon = terms.sharpest_at(theta)
        ours = LatticeSum(terms, step, theta)
        value, error = ours.delta(epsilon)
        assert error < 1e-6 * value
        assert math.isclose(value + ours.infinite, theirs.get_delta_for_epsilon(epsilon), rel_tol=1e-5, abs_tol=1e-13)


def test_tiny_tails_keep_their_digits():
    # 100 signs of size 1: the loss is 100 with probability 2^-100.
    losses = DiscreteLosses(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), 0.0, 0.0)
    terms = LossTerms([losses], [100])
    total = LatticeSum(terms, 0.5, terms.tilt(99.0))
    value, error = total.delta(99.0)
    assert math.isclose(value, 2.0**-100 * -math.expm1(-1.0), rel_tol=1e-9)
    assert error < 1e-6 * value
