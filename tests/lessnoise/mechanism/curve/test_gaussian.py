"""The Gaussian closed form against 60-digit arithmetic, another library and published values."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import lessnoise as ln
from lessnoise.mechanism.curve import gaussian
from tests.helpers.oracles import gaussian_delta, gaussian_delta_of_scale, gaussian_sigma

EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True)


def mechanism(scale, sensitivity=1.0, shape=3):
    return ln.Mechanism("test", ln.Radial(math.prod(np.atleast_1d(shape)), 2.0, scale), shape, sensitivity)


def points(count, seed):
    """mu and epsilon together over the whole range in which delta is above 1e-280."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        mu = float(10 ** rng.uniform(-12, 2))
        if rng.random() < 0.5:
            yield mu, float(10 ** rng.uniform(-12, 2))
        else:  # epsilon = mu z + mu^2/2: z deviations into the tail
            yield mu, float(max(mu * rng.uniform(-4, 34) + mu * mu / 2, 0.0))


def test_bracket_contains_sixty_digits_everywhere():
    for mu, epsilon in points(1500, seed=1):
        exact, found = gaussian_delta(mu, epsilon), gaussian.gaussian_delta(mu, epsilon)
        assert found.lower <= exact <= found.upper, (mu, epsilon)
        if exact > 1e-280:
            assert found.relative_width <= 1e-9, (mu, epsilon)


def test_value_keeps_twelve_digits():
    for mu, epsilon in points(500, seed=2):
        exact = gaussian_delta(mu, epsilon)
        if exact > 1e-250 and epsilon / mu < 40.0:
            assert gaussian.delta(mu, epsilon) == pytest.approx(float(exact), rel=2e-12), (mu, epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("sigma", [1e-3, 0.03, 0.49989, 1.0, 3.73063, 1e3, 1e8])
def test_mechanism_contains_the_exact_value_of_its_own_scale(sigma, epsilon):
    # The scale is a double, so the exact delta is that of sigma = scale/sqrt(2), not of the sigma that was asked for.
    found = mechanism(math.sqrt(2.0) * sigma, sensitivity=0.7).delta(epsilon)
    assert found.lower <= gaussian_delta_of_scale(math.sqrt(2.0) * sigma, 0.7, epsilon) <= found.upper


def test_scaled_complementary_error_function():
    for x in np.concatenate([np.linspace(-2.0, 30.0, 500), np.geomspace(30.0, 1e6, 50)]):
        assert gaussian.erfcx(float(x)) == pytest.approx(float(special.erfcx(x)), rel=1e-13)


def test_below_the_smallest_value_the_upper_end_still_covers():
    for mu, epsilon in ((0.01, 1.0), (1.0, 60.0), (1e-3, 0.5)):
        found = gaussian.gaussian_delta(mu, epsilon)
        assert found.lower <= gaussian_delta(mu, epsilon) <= found.upper <= 1e-280


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0])
def test_agrees_with_dp_accounting(sigma, epsilon):
    from dp_accounting.pld import privacy_loss_mechanism

    theirs = privacy_loss_mechanism.GaussianPrivacyLoss(sigma, sensitivity=1).get_delta_for_epsilon(epsilon)
    found = mechanism(math.sqrt(2.0) * sigma).delta(epsilon)
    assert found.middle == pytest.approx(theirs, rel=1e-8, abs=1e-14)


def test_published_profile():
    # Balle & Wang's example: eps = 0.5, sigma = D = 1.
    assert round(gaussian.delta(1.0, 0.5), 4) == 0.2384


def test_classic_gaussian_misses_its_delta_at_epsilon_ten():
    with pytest.warns(ln.ClaimWarning, match="epsilon=10 is not below 1"):
        classic = ln.classic_gaussian(epsilon=10, delta=1e-5, sensitivity=1, shape=4)
    assert classic.standard_deviation == pytest.approx(0.48448, abs=5e-6)
    assert classic.delta(10).middle == pytest.approx(2.27e-5, abs=5e-8)
    assert classic.check().refuted


def test_dimension_and_shape_do_not_matter():
    one, many = mechanism(2.0, shape=1), mechanism(2.0, shape=(30, 40, 50))
    assert one.delta(0.4) == many.delta(0.4)


@EXAMPLES
@given(st.floats(-6.0, 1.5), st.floats(0.0, 20.0), st.floats(0.0, 5.0))
def test_delta_falls_with_epsilon(log_mu, epsilon, step):
    mu = 10**log_mu
    here, there = gaussian.gaussian_delta(mu, epsilon), gaussian.gaussian_delta(mu, epsilon + step)
    assert there.lower <= here.upper
    assert there.upper <= here.upper * (1.0 + 1e-9)


@EXAMPLES
@given(st.floats(-6.0, 1.0), st.floats(0.0, 20.0), st.floats(1.0, 3.0))
def test_delta_rises_with_the_shift(log_mu, epsilon, factor):
    mu = 10**log_mu
    less, more = gaussian.gaussian_delta(mu, epsilon), gaussian.gaussian_delta(mu * factor, epsilon)
    assert less.lower <= more.upper
    assert less.upper <= more.upper * (1.0 + 1e-9) or less.upper <= 1e-290


@EXAMPLES
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(0.0, 10.0))
def test_only_the_ratio_of_sensitivity_and_scale_matters(scale, factor, epsilon):
    here, there = mechanism(scale).delta(epsilon), mechanism(scale * factor, sensitivity=factor).delta(epsilon)
    assert max(here.lower, there.lower) <= min(here.upper, there.upper)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(-2.0, 1.0), st.floats(0.001, 30.0))
def test_epsilon_and_delta_are_inverse(log_mu, epsilon):
    noise = mechanism(math.sqrt(2.0) / 10**log_mu)
    at = noise.delta(epsilon)
    if not 1e-150 < at.lower < 0.999:
        return
    below, above = noise.epsilon(at.upper), noise.epsilon(at.lower)
    assert below.lower <= epsilon <= above.upper
    assert noise.delta(above.upper).upper <= at.lower
    assert gaussian_delta_of_scale(noise.law.scale, 1.0, above.lower) >= at.lower * (1.0 - 1e-9)


def test_epsilon_is_zero_once_delta_covers_the_total_variation():
    noise = mechanism(math.sqrt(2.0))
    assert noise.epsilon(0.4) == ln.Bracket(0.0, 0.0)  # delta(0) = erf(1/(2 sqrt 2)) = 0.3829
    assert noise.epsilon(0.38).lower > 0.0


def test_no_epsilon_gives_delta_zero():
    assert mechanism(1.0).epsilon(0) == ln.Bracket(math.inf, math.inf)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 1.0, math.log(3.0), 5.0, 10.0, 50.0])
@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-5, 0.1, 0.9])
def test_calibration_ends_just_above_the_root(epsilon, delta):
    sigma = gaussian.gaussian_scale(epsilon, delta)
    root = gaussian_sigma(epsilon, delta)
    assert root <= sigma <= root * (1 + mpmath.mpf(1e-10))
    assert gaussian.gaussian_delta(1.0 / sigma, epsilon).upper <= delta


@pytest.mark.parametrize(
    ("epsilon", "expected", "digits"),
    [(1.0, 3.73063, 5), (math.log(3.0), 3.42466, 5), (0.1, 30.7496, 4), (5.0, 0.89187, 5), (10.0, 0.49989, 5)],
)
def test_published_analytic_sigmas(epsilon, expected, digits):
    assert round(gaussian.gaussian_scale(epsilon, 1e-5), digits) == expected
