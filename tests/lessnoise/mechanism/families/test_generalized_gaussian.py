"""Generalized Gaussian noise against scipy's law, Monte Carlo, and its own special cases."""

import importlib
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaincc

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise.mechanism.curve import delta_of, epsilon_of
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian, generalized_gaussian
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.losses import quantile, raw_moment
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import draw_noise
from lessnoise.mechanism.sums import log_sum_moment

module = importlib.import_module("lessnoise.mechanism.families.generalized_gaussian")  # not the function of that name
NEVER, SURELY = 1e-9, 1e-30


def scalar_delta(p, scale, shift, epsilon):
    """SF(t) - e^eps SF(t + D) in 40 digits, t solving (|t + D|^p - |t|^p)/b^p = eps."""
    with mp.workdps(40):
        p, scale, shift, epsilon = map(mp.mpf, (p, scale, shift, epsilon))

        def survival(x):
            tail = mp.gammainc(1 / p, (abs(x) / scale) ** p, mp.inf, regularized=True) / 2
            return tail if x >= 0 else 1 - tail

        if p == 1 and shift <= epsilon * scale:
            return 0.0
        low, high = -shift / 2, scale + shift
        while (high + shift) ** p - high**p < epsilon * scale**p:
            high *= 2
        for _ in range(140):
            middle = (low + high) / 2
            if abs(middle + shift) ** p - abs(middle) ** p < epsilon * scale**p:
                low = middle
            else:
                high = middle
        return float(survival(low) - mp.e**epsilon * survival(low + shift))


def splits(p, dimension):
    """Ways to spread a shift of l_p norm 1."""
    yield np.eye(dimension)[0]
    yield np.full(dimension, dimension ** (-1 / p))
    uneven = np.geomspace(1, 0.1, dimension)
    yield uneven / (uneven**p).sum() ** (1 / p)


# Privacy.


@pytest.mark.parametrize("p", [1, 1.05, 1.5, 2, 2.5, 4, 30])
@pytest.mark.parametrize(("scale", "epsilon"), [(1.5, 0.3), (3.0, 1.0), (6.0, 0.1)])
def test_scalar_curve(p, scale, epsilon):
    bracket = delta_of(GeneralizedGaussian(p, scale), 1, 1.0, epsilon)
    exact = scalar_delta(p, scale, 1.0, epsilon)
    assert bracket.lower * (1 - 1e-12) <= exact <= bracket.upper * (1 + 1e-12)
    assert bracket.relative_width <= 1e-4 or bracket.upper < 1e-200
    survival = stats.gennorm(p, scale=scale).sf
    grid = np.linspace(-0.5, 60, 500_001)
    t = grid[np.argmax((np.abs(grid + 1) ** p - np.abs(grid) ** p) / scale**p > epsilon)]
    if exact > 1e-6:
        assert survival(t) - math.exp(epsilon) * survival(t + 1) == pytest.approx(exact, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("dimension", [1, 5, 1000])
def test_special_cases_are_the_known_mechanisms(dimension):
    for scale, epsilon in itertools.product((0.7, 3.0), (0.2, 1.0)):
        laplace = delta_of(Laplace(scale), dimension, 1.0, epsilon)
        assert delta_of(GeneralizedGaussian(1, scale), dimension, 1.0, epsilon) == laplace
        normal = delta_of(Radial(dimension, 2, scale), dimension, 1.0, epsilon)
        assert delta_of(GeneralizedGaussian(2, scale), dimension, 1.0, epsilon) == normal
    assert epsilon_of(GeneralizedGaussian(1, 2.0), dimension, 1.0, 0.0).upper == pytest.approx(0.5)
    assert epsilon_of(GeneralizedGaussian(1.5, 2.0), dimension, 1.0, 0.0).upper == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.2, 1.7, 3.0])
@pytest.mark.parametrize("dimension", [2, 6, 25])
def test_upper_bound_holds_for_every_split(p, dimension):
    """Monte Carlo deltas, with their standard errors, stay below the upper end; one entry's is the lower end."""
    rng = np.random.default_rng(round(100 * p) + dimension)
    noise = stats.gennorm.rvs(p, size=(40_000, dimension), random_state=rng)
    for kappa, epsilon in ((1.0, 0.5), (0.5, 0.3), (0.2, 0.0)):
        bracket = delta_of(GeneralizedGaussian(p, 1.0), dimension, kappa, epsilon)
        for number, shift in enumerate(splits(p, dimension)):
            losses = (np.abs(noise + kappa * shift) ** p - np.abs(noise) ** p).sum(axis=1)
            gains = -np.expm1(np.minimum(epsilon - losses, 0.0))
            error = 6 * gains.std() / math.sqrt(len(gains)) + 1e-4
            assert gains.mean() - error <= bracket.upper
            if number == 0:
                assert gains.mean() == pytest.approx(bracket.lower, abs=error)


def test_gamma_bound_sharpens_the_published_condition():
    for p, dimension, kappa, epsilon in ((3.0, 10, 0.05, 1.0), (1.5, 4, 0.3, 1.0), (6.0, 100, 0.01, 0.5)):
        rho = np.linspace(0, 20, 500_001)
        losses = (rho + kappa) ** p - rho**p
        published = gammaincc(dimension / p, rho[np.argmax(losses > epsilon)] ** p)
        ours = module._gamma_bound(p, dimension, kappa, epsilon)
        assert ours < published
        # The expectation itself, by a fine midpoint sum over the gamma law.
        density = stats.gamma(dimension / p).ppf(np.linspace(0, 1, 100_002)[1:-1]) ** (1 / p)
        plain = np.maximum(-np.expm1(epsilon - ((density + kappa) ** p - density**p)), 0).mean()
        if plain > 1e-3:
            assert ours == pytest.approx(plain, rel=0.02)
        assert ours >= plain * (1 - 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.01, 1.3, 1.5, 1.99])
def test_the_two_lemmas_of_the_dimension_free_bound(p):
    x, d = np.meshgrid(np.linspace(-4, 4, 801), np.geomspace(1e-3, 10, 60))
    linear = np.abs(x) ** p + p * d * np.sign(x) * np.abs(x) ** (p - 1)
    assert (np.abs(x + d) ** p <= (linear + module._remainder(p) * d**p) * (1 + 1e-12) + 1e-12).all()
    assert 1.0 <= module._remainder(p) <= 2.0001
    with mp.workdps(30):  # E exp(lambda psi) <= exp(lambda^2 E[psi^2]/2)
        density = lambda y: mp.exp(-(y**p)) / mp.gamma(1 + 1 / mp.mpf(p))  # noqa: E731
        second = mp.gamma(2 - 1 / mp.mpf(p)) / mp.gamma(1 / mp.mpf(p))
        for rate in (0.1, 1.0, 3.0):
            points = [0, 0.5, 1, 3, 10, 40]
            moment = mp.quad(lambda y, rate=rate: mp.cosh(rate * y ** (p - 1)) * density(y), points)
            assert moment <= mp.exp(rate**2 * second / 2) * (1 + mp.mpf("1e-9"))


@pytest.mark.slow
def test_dimension_free_bound_does_not_grow_with_the_dimension():
    scales = [
        generalized_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=size, p=1.8).law.scale
        for size in (10**2, 10**4, 10**9)
    ]
    assert max(scales) == min(scales)
    # Nearly the Gaussian's at p near 2.
    near = generalized_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=10**4, p=1.999)
    assert near.law.scale == pytest.approx(math.sqrt(2) * 4.22468, rel=0.1)


# Calibration.


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 1.1, 1.5, 2, 2.5, 6])
@pytest.mark.parametrize("shape", [1, 3, (40, 50)])
def test_calibration_is_safe_and_tight(p, shape):
    mechanism = generalized_gaussian(epsilon=0.7, delta=1e-6, sensitivity=3, shape=shape, p=p)
    assert mechanism.check().holds
    assert Mechanism.from_json(mechanism.to_json()) == mechanism
    smaller = Mechanism("smaller", GeneralizedGaussian(p, mechanism.law.scale * 0.999), mechanism.shape, 3.0)
    assert smaller.delta(0.7).upper > 1e-6


def test_calibration_of_the_special_cases():
    target = {"epsilon": 1, "delta": 1e-5, "sensitivity": 2, "shape": 30}
    analytic = ln.analytic_gaussian(**target)
    assert generalized_gaussian(**target, p=2).standard_deviation == pytest.approx(analytic.standard_deviation)
    laplace = generalized_gaussian(**target, p=1)
    assert laplace.law.scale == pytest.approx(2 / (1 - 2 * math.log1p(-1e-5)), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"p": 0.5}, "between 1"),
        ({"p": 1000}, "between 1"),
        ({"p": "2"}, "pass an int or a float"),
        ({"delta": 0}, "1e-6"),
    ],
)
def test_errors_name_the_remedy(change, hint):
    with pytest.raises(InvalidInput, match=hint):
        generalized_gaussian(**{"epsilon": 1, "delta": 1e-6, "sensitivity": 1, "shape": 3, "p": 1.5, **change})


# Losses.


@pytest.mark.parametrize("p", [1, 1.3, 2, 3.7])
def test_moments(p):
    law = GeneralizedGaussian(p, 1.7)
    variance = stats.gennorm(p, scale=1.7).var()
    fourth = float(stats.gennorm(p, scale=1.7).moment(4))
    for dimension in (1, 2, 1000):
        assert raw_moment(law, dimension, 1) == pytest.approx(dimension * variance, rel=1e-9)
        second = dimension * fourth + dimension * (dimension - 1) * variance**2
        assert raw_moment(law, dimension, 2) == pytest.approx(second, rel=1e-8)
    mechanism = Mechanism("m", law, (7,), 1.0)
    sample = (draw_noise(law, (200_000, 7), np.random.default_rng(2)) ** 2).sum(axis=1)
    assert (sample**3).mean() / (sample**2).mean() ** 1.5 == pytest.approx(mechanism.loss_skewness, rel=0.05)
    assert (sample**4).mean() / (sample**2).mean() ** 2 == pytest.approx(mechanism.loss_kurtosis, rel=0.25)


def test_sums_of_moments_match_the_known_laws():
    for order, dimension in itertools.product((1, 2, 3, 4), (1, 2, 9, 10**6)):
        for p, known in ((1.0, Laplace(1.0)), (2.0, Radial(dimension, 2.0, 1.0))):
            ours = log_sum_moment(module.square_moments(p, order), dimension, order)
            assert ours == pytest.approx(math.log(raw_moment(known, dimension, order)), rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 40, 10**5, 10**5 + 1])
def test_quantiles_match_the_known_laws(dimension):
    for probability in (0.05, 0.5, 0.95, 0.999):
        normal = quantile(Radial(dimension, 2, 1), dimension, probability)
        assert module.unit_quantile(2.0, dimension, probability) == pytest.approx(normal, rel=1e-5)
    laplace = quantile(Laplace(1.0), dimension, 0.7)
    assert module.unit_quantile(1.0, dimension, 0.7) == pytest.approx(laplace, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.4, 3.0])
def test_quantiles_by_simulation(p):
    law = GeneralizedGaussian(p, 2.0)
    sample = (draw_noise(law, (100_000, 6), np.random.default_rng(7)) ** 2).sum(axis=1)
    for probability in (0.1, 0.5, 0.9):
        below = (sample <= quantile(law, 6, probability)).mean()
        assert below == pytest.approx(probability, abs=6.5 * math.sqrt(probability * (1 - probability) / 1e5))
    single = quantile(law, 1, 0.8)
    assert stats.gennorm(p, scale=2.0).cdf(math.sqrt(single)) == pytest.approx(0.9, rel=1e-9)


# Sampling.


@pytest.mark.slow
@pytest.mark.parametrize("p", [1, 1.25, 2, 3, 8, 60])
def test_draws_follow_the_law_and_no_other_scale(p):
    law = GeneralizedGaussian(p, 5.0)
    for source in (np.random.default_rng(11), None):
        values = draw_noise(law, (100, 300), source)
        assert values.shape == (100, 300)
        flat = values.ravel()
        assert stats.kstest(flat, stats.gennorm(p, scale=5.0).cdf).pvalue > NEVER
        assert stats.kstest(flat, stats.gennorm(p, scale=5.0 * 2 / 3).cdf).pvalue < SURELY
        assert stats.kstest(flat, stats.gennorm(p, scale=5.0 * 3 / 2).cdf).pvalue < SURELY
        assert abs(np.sign(flat).mean()) < 6.5 / math.sqrt(len(flat))


def test_one_entry_is_drawn_too():
    values = [draw_noise(GeneralizedGaussian(3, 1.0), (1,), np.random.default_rng(i))[0] for i in range(800)]
    assert stats.kstest(values, stats.gennorm(3).cdf).pvalue > NEVER


def test_release():
    mechanism = generalized_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(6, 7), p=1.5)
    release = mechanism.release(np.zeros((6, 7)))
    assert release.value.shape == (6, 7)
    assert release.certificate.guarantee.delta <= 1e-6
