"""The accuracy loss ||n||^2: moments, the paper's ratios and quantiles, against closed forms, SciPy and simulation."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lessnoise as ln
from lessnoise.mechanism import losses
from lessnoise.mechanism.numerics import log_axial_constant, log_gamma_peak, log_gamma_ratio
from tests.helpers.oracles import Case, laplace_pair_cdf, sample_log_radius

SIGMAS = 6.0


def radial(dimension, k, p, scale):
    return ln.Mechanism("test", ln.Radial(k, p, scale), (dimension,), 1.0)


def laplace(dimension, scale=1.0):
    return ln.Mechanism("test", ln.Laplace(scale), (dimension,), 1.0)


# Radial laws.


@pytest.mark.parametrize(
    ("dimension", "k", "p", "scale"),
    [
        (1, 0.05, 2.0, 3.0),
        (3, 1, 2, 1.0),
        (40, 40, 1, 0.3),
        (100, 60.5, 0.3, 1e-6),
        (10**6, 10**6, 2, 5.0),
        (10**9, 1e8, 8, 2.0),
    ],
)
def test_moments_of_the_radius(dimension, k, p, scale):
    # E R^(2j) = s^(2j) Gamma((k + 2j)/p) / Gamma(k/p).
    law = ln.Radial(k, p, scale)
    for order in (1, 2, 3, 4):
        with mpmath.workdps(40):
            a = mpmath.mpf(k) / mpmath.mpf(p)
            ratio = mpmath.loggamma(a + mpmath.mpf(2 * order) / mpmath.mpf(p)) - mpmath.loggamma(a)
            exact = 2 * order * mpmath.log(scale) + ratio
        assert losses.log_raw_moment(law, dimension, order) == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
        if exact < 700:
            assert losses.raw_moment(law, dimension, order) == pytest.approx(float(mpmath.exp(exact)), rel=1e-10)


def test_an_infinite_moment_is_infinite_not_an_error():
    assert losses.raw_moment(ln.Radial(1.0, 0.01, 1e10), 5, 4) == math.inf


@pytest.mark.parametrize("dimension", [1, 3, 7921, 10**9])
def test_gaussian_loss_is_chi_square(dimension):
    sigma = 1.7
    noise = radial(dimension, dimension, 2, math.sqrt(2.0) * sigma)
    assert noise.expected_loss == pytest.approx(dimension * sigma**2, rel=1e-12)
    assert noise.standard_deviation == pytest.approx(sigma, rel=1e-12)
    second = dimension * (dimension + 2)
    third, fourth = second * (dimension + 4), second * (dimension + 4) * (dimension + 6)
    assert noise.loss_kurtosis == pytest.approx(fourth / second**2, rel=1e-10)
    assert noise.loss_skewness == pytest.approx(third / second**1.5, rel=1e-10)
    for q in (1e-6, 0.1, 0.5, 0.99, 1 - 1e-9):
        assert noise.loss_quantile(q) == pytest.approx(sigma**2 * stats.chi2.ppf(q, dimension), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["published", "exact"])
@pytest.mark.parametrize("dimension", [3, 100, 7921])
def test_r1smg_ratios(dimension, calibration):
    noise = ln.r1smg(epsilon=1e-5, delta=1e-7, sensitivity=1, shape=dimension, calibration=calibration)
    assert noise.loss_kurtosis == pytest.approx(35 / 3, rel=1e-13)
    assert noise.loss_skewness == pytest.approx(5 * math.sqrt(3) / 3, rel=1e-13)
    # L = sigma_* z^2: chi-square with one degree of freedom.
    assert noise.expected_loss == pytest.approx(noise.law.scale**2 / 2, rel=1e-13)
    assert noise.loss_quantile(0.9) == pytest.approx(noise.expected_loss * stats.chi2.ppf(0.9, 1), rel=1e-11)


def test_l2_loss_is_a_squared_gamma():
    noise = radial(30, 30, 1, 0.2)
    assert noise.expected_loss == pytest.approx(30 * 31 * 0.2**2, rel=1e-13)
    assert noise.loss_quantile(0.3) == pytest.approx((0.2 * stats.gamma.ppf(0.3, 30)) ** 2, rel=1e-10)


@pytest.mark.parametrize(
    ("seed", "dimension", "k", "p", "scale"), [(0, 5, 4.5, 1.5, 2.0), (1, 50, 3, 2.5, 0.1), (2, 2, 0.5, 1, 7.0)]
)
def test_radial_losses_by_simulation(seed, dimension, k, p, scale):
    noise = radial(dimension, k, p, scale)
    sample = np.exp(
        2.0 * sample_log_radius(Case(dimension, k, p, scale, 1.0, 0.0), np.random.default_rng(seed), 400_000)
    )
    assert_sample_fits(noise, sample)


def assert_sample_fits(noise, sample):
    size = len(sample)
    assert abs(sample.mean() - noise.expected_loss) <= SIGMAS * sample.std() / math.sqrt(size)
    for q in (0.01, 0.25, 0.5, 0.9, 0.999):
        share = (sample <= noise.loss_quantile(q)).mean()
        assert abs(share - q) <= SIGMAS * math.sqrt(q * (1 - q) / size)
    moments = [np.mean(sample**order) for order in (2, 3)]
    assert noise.loss_skewness == pytest.approx(moments[1] / moments[0] ** 1.5, rel=0.15)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from([1, 2, 10, 10**4, 10**9]),
    st.floats(0.05, 1.0),
    st.sampled_from([0.3, 1.0, 2.0, 8.0]),
    st.floats(0.001, 0.999),
    st.floats(1e-3, 1e3),
)
def test_quantile_inverts_the_radius_law(dimension, share, p, q, scale):
    k = max(share * dimension, 0.2)
    noise = radial(dimension, k, p, scale)
    found = noise.loss_quantile(q)
    back = stats.gamma.cdf((math.sqrt(found) / scale) ** p, k / p)
    assert back == pytest.approx(q, rel=1e-6)


# Laplace.


def laplace_moment(dimension, order):
    """E[(X1^2 + ... + XM^2)^order] by expanding one coordinate at a time, E X^(2j) = (2j)!."""
    moments = [1] + [0] * order
    for _ in range(dimension):
        moments = [
            sum(math.comb(n, j) * math.factorial(2 * j) * moments[n - j] for j in range(n + 1))
            for n in range(order + 1)
        ]
    return moments[order]


@pytest.mark.parametrize("dimension", [1, 2, 5, 60])
def test_laplace_moments_are_exact(dimension):
    noise = laplace(dimension, 0.3)
    for order in (1, 2, 3, 4):
        exact = laplace_moment(dimension, order) * 0.3 ** (2 * order)
        assert losses.raw_moment(noise.law, dimension, order) == pytest.approx(exact, rel=1e-12)
    assert noise.expected_loss == pytest.approx(2 * dimension * 0.3**2, rel=1e-13)
    second, third, fourth = (laplace_moment(dimension, order) for order in (2, 3, 4))
    assert noise.loss_kurtosis == pytest.approx(fourth / second**2, rel=1e-12)
    assert noise.loss_skewness == pytest.approx(third / second**1.5, rel=1e-12)


def test_laplace_ratios_in_one_dimension():
    assert laplace(1).loss_kurtosis == pytest.approx(70.0, rel=1e-13)  # 8!/4!^2
    assert laplace(1).loss_skewness == pytest.approx(720 / 24**1.5, rel=1e-13)


def test_laplace_quantile_in_one_dimension():
    for q in (1e-6, 0.2, 0.9, 1 - 1e-9):
        assert laplace(1, 2.0).loss_quantile(q) == pytest.approx(4.0 * math.log1p(-q) ** 2, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("q", [0.01, 0.05, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6])
def test_laplace_quantile_of_a_pair(q):
    inside, outside = laplace_pair_cdf(laplace(2).loss_quantile(q))
    assert inside + outside == pytest.approx(1.0, rel=1e-9)
    assert inside == pytest.approx(q, rel=1e-6)
    assert outside == pytest.approx(1 - q, rel=1e-6)


@pytest.mark.parametrize("q", [1e-6, 1e-3])
def test_low_laplace_quantile_of_a_pair(q):
    inside, _ = laplace_pair_cdf(max(laplace(2).loss_quantile(q), 1e-300))
    assert inside == pytest.approx(q, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 100])
def test_extreme_laplace_quantile_is_finite_and_above_a_lesser_one(dimension):
    noise = laplace(dimension)
    found = [noise.loss_quantile(q) for q in (1 - 1e-6, 1 - 1e-9, 1 - 1e-12)]
    assert found == sorted(found)
    assert found[-1] < 4.0 * found[-2]


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [3, 20, 400])
def test_laplace_losses_by_simulation(dimension):
    rng = np.random.default_rng(dimension)
    size = 400_000 if dimension < 100 else 20_000
    assert_sample_fits(laplace(dimension), (rng.standard_exponential((size, dimension)) ** 2).sum(axis=1))


@pytest.mark.parametrize("q", [0.01, 0.5, 0.99])
def test_laplace_quantile_is_continuous_where_the_method_changes(q):
    # One more coordinate adds a mean of 2; the change of method at M = 10^5 adds nothing visible.
    values = [laplace(m).loss_quantile(q) for m in (99_999, 100_000, 100_001, 100_002)]
    assert np.diff(values) == pytest.approx(2.0, abs=0.05)


def test_laplace_quantile_in_the_normal_limit():
    noise = laplace(10**9)
    for q in (0.1, 0.5, 0.9):
        normal = 2e9 + math.sqrt(20e9) * stats.norm.ppf(q)
        assert noise.loss_quantile(q) == pytest.approx(normal, rel=1e-7)


# Gamma ratios.


def test_gamma_ratios_keep_their_digits():
    with mpmath.workdps(40):
        for a in (0.3, 2.5, 29.9, 30.1, 1e3, 5e8 + 0.5, 1e12):
            for shift in (0.5, 1.0, 4.0, 0.01):
                exact = mpmath.loggamma(mpmath.mpf(a) + shift) - mpmath.loggamma(mpmath.mpf(a))
                assert log_gamma_ratio(a, shift) == pytest.approx(float(exact), rel=1e-12, abs=2e-14)
            peak = a * mpmath.log(a) - a - mpmath.loggamma(a)
            assert log_gamma_peak(a) == pytest.approx(float(peak), rel=1e-12, abs=1e-13)
        for m in (1, 2, 3, 70, 10**4, 10**9):
            exact = (
                mpmath.loggamma(mpmath.mpf(m) / 2 + 1)
                - mpmath.loggamma(mpmath.mpf(m + 1) / 2)
                - mpmath.log(mpmath.pi) / 2
            )
            assert log_axial_constant(m) == pytest.approx(float(exact), rel=1e-12, abs=1e-13)
