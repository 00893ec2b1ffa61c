"""The l2 mechanism's special form and the Laplace curve against closed forms, quadrature and simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.mechanism.curve import l2
from tests.helpers.oracles import Case, delta_difference, delta_monte_carlo, delta_positive, laplace_delta, time_limit

EXAMPLES = settings(max_examples=60, deadline=None, derandomize=True)
WIDTH = 1e-4
SIGMAS = 6.0


def l2_bracket(dimension, scale, epsilon, sensitivity=1.0):
    law = ln.Radial(dimension, 1.0, scale)
    return ln.Mechanism("l2", law, (dimension,), sensitivity).delta(epsilon)


def laplace_mechanism(scale, sensitivity=1.0, shape=5):
    return ln.Mechanism("laplace", ln.Laplace(scale), shape, sensitivity)


# The l2 mechanism.


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3, 5, 12, 40, 41, 100])
@pytest.mark.parametrize(
    ("ratio", "epsilon"), [(0.95, 1.0), (0.5, 2.0), (0.2, 0.1), (0.7, 20.0), (0.9, 1e-3), (0.01, 0.0)]
)
def test_contains_the_double_integral(dimension, ratio, epsilon):
    # The scale is a share of the pure one, D/eps; below it delta is positive.
    scale = ratio / epsilon if epsilon else 3.0
    case = Case(dimension, float(dimension), 1.0, scale, 1.0, epsilon)
    found = l2_bracket(dimension, scale, epsilon)
    assert found.relative_width <= WIDTH
    assert found.lower * (1.0 - 1e-7) <= delta_positive(case) <= found.upper * (1.0 + 1e-7)


@pytest.mark.parametrize(
    "dimension",
    [
        2,
        40,
        99,
        100,
        102,
    ],
)
def test_very_large_noise(dimension):
    scale, epsilon = 9e5, 1e-6
    exact = delta_positive(Case(dimension, float(dimension), 1.0, scale, 1.0, epsilon))
    found = l2_bracket(dimension, scale, epsilon)
    assert found.lower * (1.0 - 1e-7) <= exact <= found.upper * (1.0 + 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "scale", "epsilon"), [(2, 0.9, 1.0), (3, 1.2, 0.5), (5, 0.19, 5.0), (17, 0.6, 1.0), (40, 0.5, 1.0)]
)
def test_contains_the_difference_of_two_probabilities(dimension, scale, epsilon):
    exact = float(delta_difference(Case(dimension, float(dimension), 1.0, scale, 1.0, epsilon), digits=25))
    assert exact in l2_bracket(dimension, scale, epsilon)


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("dimension", [2, 3, 10, 40])
def test_near_the_pure_scale(dimension, share):
    # As s nears D/eps, delta falls like share^((M+1)/2): the integrand is z (cos t - cos t0) sin(t)^(M-2) up to
    # constants, over 0 < t < t0 with t0^2/2 = share. The quotient of two shares is known in advance.
    epsilon = 1.0
    first = l2_bracket(dimension, (1.0 - share) / epsilon, epsilon)
    second = l2_bracket(dimension, (1.0 - 0.25 * share) / epsilon, epsilon)
    assert first.relative_width <= WIDTH
    assert 0.0 < second.lower < first.lower
    slope = math.log(first.middle / second.middle) / math.log(4.0)
    assert slope == pytest.approx((dimension + 1) / 2, rel=5 * share**0.5 + 1e-3)


def test_pure_at_the_pure_scale_and_beyond():
    for dimension in (1, 2, 7, 40):
        for epsilon in (0.1, 0.3, 1.0, 7.0):
            scale = 1.0 / epsilon
            while Fraction(scale) * Fraction(epsilon) < 1:
                scale = math.nextafter(scale, math.inf)
            assert l2_bracket(dimension, scale, epsilon) == ln.Bracket(0.0, 0.0)
            assert l2_bracket(dimension, 0.999 * scale, epsilon).lower > 0.0


@pytest.mark.parametrize(
    ("seed", "dimension", "scale", "epsilon"), [(0, 2, 0.5, 1.0), (1, 10, 0.3, 1.5), (2, 40, 0.15, 1.0)]
)
def test_contains_the_sampled_privacy_loss(seed, dimension, scale, epsilon):
    case = Case(dimension, float(dimension), 1.0, scale, 1.0, epsilon)
    mean, deviation = delta_monte_carlo(case, samples=400_000, seed=seed)
    found = l2_bracket(dimension, scale, epsilon)
    assert found.lower - SIGMAS * deviation <= mean <= found.upper + SIGMAS * deviation
    assert 0.0 < deviation < 0.02 * mean


def test_one_dimension_is_laplace():
    assert round(l2_bracket(1, 0.5, 1.0).middle, 5) == 0.39347  # published test value, T = 1, s = 0.5, eps = 1
    for scale, epsilon in ((0.1, 3.0), (2.0, 0.3), (0.9, 1.0)):
        found = l2_bracket(1, scale, epsilon)
        assert found.lower <= laplace_delta(scale, 1.0, epsilon) <= found.upper


@pytest.mark.parametrize(
    ("dimension", "expected"), [(5, 0.406), (10, 0.602), (30, 0.836), (100, 0.947), (300, 0.982), (1000, 0.9945)]
)
def test_published_error_relative_to_the_analytic_gaussian(dimension, expected):
    target = {"epsilon": 1, "delta": 1e-5, "sensitivity": 1, "shape": dimension}
    ratio = ln.l2_mechanism(**target).expected_loss / ln.analytic_gaussian(**target).expected_loss
    assert ratio == pytest.approx(expected, abs=1e-4 if expected == 0.9945 else 5.1e-4)


def test_pure_l2_beats_the_analytic_gaussian_up_to_dimension_twelve():
    sigma = ln.analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=1).standard_deviation
    for dimension in range(1, 20):
        pure = dimension * (dimension + 1)  # E||n||^2 at s = 1/eps = 1
        assert (pure < dimension * sigma**2) == (dimension <= 12)


@pytest.mark.slow
@EXAMPLES
@given(st.integers(1, 60), st.floats(0.05, 5.0), st.floats(0.01, 0.999), st.floats(0.0, 0.9))
def test_l2_delta_falls_with_epsilon(dimension, scale, share, relief):
    largest = 1.0 / scale
    assume(dimension < 41 or scale > 0.2)
    here, there = l2_bracket(dimension, scale, largest * share * relief), l2_bracket(dimension, scale, largest * share)
    assert there.lower <= here.upper
    assert 0.0 <= there.lower <= there.upper <= 1.0
    if relief < 0.5:
        assert there.upper <= here.upper


@pytest.mark.slow
@EXAMPLES
@given(st.integers(1, 40), st.floats(0.05, 5.0), st.floats(0.0, 1.2), st.integers(-30, 30))
def test_l2_scales(dimension, scale, share, exponent):
    factor = 2.0**exponent
    epsilon = share / scale
    here, there = l2_bracket(dimension, scale, epsilon), l2_bracket(dimension, scale * factor, epsilon, factor)
    assert here == there  # a power of two is exact in every step


@pytest.mark.parametrize("dimension", [2, 10, 40])
def test_l2_special_form_survives_very_large_noise(dimension):
    # delta(0) is the total variation, about D/s times a constant.
    found = l2.delta_bracket(dimension=dimension, scale=1e6, sensitivity=1.0, epsilon=0.0, tolerance=1e-5)
    twice = l2.delta_bracket(dimension=dimension, scale=5e5, sensitivity=1.0, epsilon=0.0, tolerance=1e-5)
    assert twice.middle / found.middle == pytest.approx(2.0, rel=1e-4)


def test_l2_epsilon_inverts_delta_and_ends_at_the_pure_one():
    noise = ln.Mechanism("l2", ln.Radial(6, 1.0, 0.5), (6,), 1.0)
    for epsilon in (0.2, 1.0, 1.9):
        at = noise.delta(epsilon)
        assert noise.epsilon(at.upper).lower <= epsilon <= noise.epsilon(at.lower).upper
        assert noise.delta(noise.epsilon(at.lower).upper).upper <= at.lower
    assert noise.epsilon(0).upper == pytest.approx(2.0, rel=1e-14)
    assert noise.delta(noise.epsilon(0).upper).upper == 0.0


# Laplace.


@pytest.mark.parametrize("scale", [0.01, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.999999, 1.0, 1.5])
def test_laplace_closed_form(scale, share):
    epsilon = share / scale
    found = laplace_mechanism(scale).delta(epsilon)
    assert found.lower <= laplace_delta(scale, 1.0, epsilon) <= found.upper
    assert found.relative_width <= 1e-12


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
def test_laplace_agrees_with_dp_accounting(scale, epsilon):
    from dp_accounting.pld import privacy_loss_mechanism

    theirs = privacy_loss_mechanism.LaplacePrivacyLoss(scale, sensitivity=1).get_delta_for_epsilon(epsilon)
    assert laplace_mechanism(scale).delta(epsilon).middle == pytest.approx(theirs, rel=1e-10, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("split", [(1.0,), (0.5, 0.5), (0.9, 0.1), (0.25, 0.25, 0.25, 0.25), (0.6, 0.3, 0.1)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_one_coordinate_is_the_worst_l1_shift(split, epsilon):
    # Loss of a shift (d1, d2, ...): the sum of |x_i + d_i| - |x_i|, over b = 0.4.
    rng = np.random.default_rng(len(split))
    draws = rng.laplace(0.0, 0.4, (400_000, len(split)))
    losses = ((np.abs(draws + np.array(split)) - np.abs(draws)) / 0.4).sum(axis=1)
    values = -np.expm1(np.minimum(epsilon - losses, 0.0))
    deviation = values.std() / math.sqrt(len(values))
    worst = laplace_mechanism(0.4).delta(epsilon)
    assert values.mean() <= worst.upper + SIGMAS * deviation
    if len(split) == 1:
        assert values.mean() >= worst.lower - SIGMAS * deviation


@EXAMPLES
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_laplace_builder_is_pure_whatever_the_rounding(epsilon, sensitivity):
    noise = ln.laplace(epsilon=epsilon, sensitivity=sensitivity, shape=3)
    assert noise.delta(epsilon) == ln.Bracket(0.0, 0.0)
    assert noise.check().holds
    assert noise.law.scale == pytest.approx(sensitivity / epsilon, rel=1e-15)
    assert noise.delta(epsilon * (1.0 - 1e-9)).lower > 0.0


@EXAMPLES
@given(st.floats(0.05, 20.0), st.floats(-10.0, -0.01))
def test_laplace_epsilon_inverts_delta(scale, log_delta):
    noise, delta = laplace_mechanism(scale), 10**log_delta
    found = noise.epsilon(delta)
    exact = max(1.0 / scale + 2.0 * math.log1p(-delta), 0.0)
    assert found.lower <= exact * (1.0 + 1e-12)
    assert found.upper >= exact * (1.0 - 1e-12)
    assert noise.delta(found.upper).upper <= delta


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.0, 1.0), (0.3, 2.0), (7.0, 0.1)])
def test_pure_epsilon_bracket_contains_the_pure_epsilon(scale, sensitivity):
    found = laplace_mechanism(scale, sensitivity).epsilon(0)
    exact = Fraction(sensitivity) / Fraction(scale)
    assert Fraction(found.lower) <= exact <= Fraction(found.upper)
    assert found.upper <= float(exact) * (1.0 + 1e-14)


@pytest.mark.parametrize(("epsilon", "delta"), [(10.474319917614798, 1.6641309183605708e-12), (56.1098921, 7.1e-12)])
def test_laplace_epsilon_of_a_tiny_delta_next_to_the_pure_epsilon(epsilon, delta):
    with time_limit(300.0):
        found = laplace_mechanism(1.0, epsilon).epsilon(delta)
    assert found.lower <= epsilon + 2.0 * math.log1p(-delta) <= found.upper * (1.0 + 1e-15)
    assert found.upper <= epsilon * (1.0 + 1e-11)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 0.1, 0.3, 1e-5, math.pi, 17.3])
@pytest.mark.parametrize("words", ["counts", "counts:3,per_cell=1", "box:1", "corner:0.1", "ball:0.7,norm=inf"])
def test_pure_noise_against_a_set_keeps_its_own_epsilon_and_none_below(words, epsilon):
    found = ln.changes.parse(words, "replace") if words != "corner:0.1" else ln.changes.parse(words)
    relation = found.relation or ln.Neighbours.ADD_REMOVE
    noise = ln.laplace(epsilon=epsilon, sensitivity=found.norm(1, 7), shape=7, neighbours=relation).against(found)
    assert noise.delta(epsilon).upper == 0.0
    assert noise.check().holds
    assert noise.delta(0.998 * epsilon).upper > 0.0
    if found.whole:
        counts = ln.geometric(epsilon=epsilon, sensitivity=found.norm(1, 7), shape=7, neighbours=relation)
        assert math.copysign(1.0, counts.against(found).delta(epsilon).upper) == 1.0
        assert counts.against(found).check().holds
