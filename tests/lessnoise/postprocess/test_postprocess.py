"""Post-processing: exact risk formulas on both sides, and what each function promises entry by entry."""

import math

import numpy as np
import pytest
from scipy import special, stats

from lessnoise.errors import InvalidInput
from lessnoise.postprocess import (
    james_stein,
    nonnegative,
    restrict,
    round_to_integers,
    shrink_to_prior,
    soft_threshold,
    symmetrise,
)

DRAWS = 4000


def risks(estimate, truth, sigma, seed, draws=DRAWS):
    """Squared errors of the estimate over repeated draws of independent normal noise, summed over entries."""
    truth = np.asarray(truth, dtype=float)
    rng = np.random.default_rng(seed)
    noisy = truth + sigma * rng.standard_normal((draws, *truth.shape))
    axes = tuple(range(1, truth.ndim + 1))
    return np.square(np.array([estimate(y) for y in noisy]) - truth).sum(axis=axes)


def assert_risk(losses, wanted, tolerance=5.0):
    """The mean is within five standard errors of the formula, a chance of one in a million; seeds are fixed."""
    error = losses.std() / math.sqrt(len(losses))
    assert abs(losses.mean() - wanted) < tolerance * error
    assert error < 0.1 * wanted  # and the test can tell 2/3 and 3/2 of it apart


# James and Stein.


def james_stein_risk(dimension, distance):
    """Exact risk of the positive part for unit noise, ||truth - towards|| = distance.

    E[g^2 W] - 2 distance^2 E[g(W')] + distance^2 with g(w) = (1 - (d-2)/w)_+ and noncentral chi-squares W, W' of d and
    d + 2 degrees of freedom, each a Poisson mixture of central ones.
    """
    c, n = dimension - 2.0, np.arange(2000)
    weights = stats.poisson.pmf(n, 0.5 * distance**2)

    def above(nu):  # E[w; w > c], P(w > c) and E[1/w; w > c]
        q = special.gammaincc
        inverse = np.exp(special.gammaln(nu / 2 - 1) - special.gammaln(nu / 2)) / 2 * q(nu / 2 - 1, c / 2)
        return nu * q(nu / 2 + 1, c / 2), q(nu / 2, c / 2), inverse

    nu = dimension + 2.0 * n
    first, mass, inverse = above(nu)
    squared = (weights * (first - 2 * c * mass + c * c * inverse)).sum()
    _, mass, inverse = above(nu + 2)
    return squared - 2 * distance**2 * (weights * (mass - c * inverse)).sum() + distance**2


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [3, 4, 10, 100])
@pytest.mark.parametrize("distance", [0.0, 1.0, 3.0, 10.0, 30.0])
def test_james_stein_dominates_at_its_exact_risk(dimension, distance):
    sigma, towards = 2.5, 7.0
    direction = np.random.default_rng(dimension).standard_normal(dimension)
    truth = towards + sigma * distance * direction / np.linalg.norm(direction)
    losses = risks(lambda y: james_stein(y, sigma, towards), truth, sigma, seed=dimension)
    wanted = james_stein_risk(dimension, distance)
    assert wanted < dimension  # the risk of the raw value, at every truth
    assert_risk(losses, sigma**2 * wanted)


def test_james_stein_without_signal_keeps_little():
    """The plain estimator has risk 2 at distance 0; the positive part, less."""
    assert james_stein_risk(100, 0.0) < 2.0


def test_james_stein_formula_and_positive_part():
    y = np.array([[1.0, 2.0], [2.0, 4.0]])
    np.testing.assert_allclose(james_stein(y, 1.5), (1 - 2 * 1.5**2 / 25.0) * y, rtol=1e-15)
    np.testing.assert_array_equal(james_stein(y, 100.0), np.zeros((2, 2)))
    np.testing.assert_array_equal(james_stein(y, 1.0, towards=y), y)
    np.testing.assert_allclose(james_stein(y, 0.5, towards=1.0), 1 + (1 - 2 * 0.25 / 11.0) * (y - 1), rtol=1e-15)
    assert james_stein([1e-200, 0.0, 0.0], 1e150).tolist() == [0.0, 0.0, 0.0]


# Soft threshold.


def soft_risk(mean, threshold):
    """Exact risk for unit noise (Donoho & Johnstone 1994)."""
    low, high = -threshold - mean, threshold - mean
    cdf, pdf = stats.norm.cdf, stats.norm.pdf
    inside = cdf(high) - cdf(low)
    return 1 + threshold**2 + (mean**2 - threshold**2 - 1) * inside + low * pdf(high) - high * pdf(low)


@pytest.mark.parametrize(("mean", "threshold"), [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (3.0, 2.0), (-8.0, 3.0)])
def test_soft_threshold_has_its_exact_risk(mean, threshold):
    truth, sigma = np.full(50, 0.1 * mean), 0.1
    losses = risks(lambda y: soft_threshold(y, sigma, threshold * sigma), truth, sigma, seed=1)
    assert_risk(losses, 50 * sigma**2 * soft_risk(mean, threshold))


def test_soft_threshold_helps_sparse_and_hurts_dense():
    dimension, sigma = 1000, 2.0
    level = math.sqrt(2 * math.log(dimension))
    sparse = np.zeros(dimension)
    sparse[:10] = 20.0 * sigma
    losses = risks(lambda y: soft_threshold(y, sigma), sparse, sigma, seed=2, draws=500)
    wanted = 10 * soft_risk(20.0, level) + 990 * soft_risk(0.0, level)
    assert_risk(losses, sigma**2 * wanted)
    assert wanted < 0.2 * dimension
    losses = risks(lambda y: soft_threshold(y, sigma), np.full(dimension, 20.0 * sigma), sigma, seed=3, draws=500)
    assert_risk(losses, dimension * sigma**2 * (1 + level**2))
    assert losses.min() > 10 * dimension * sigma**2


def test_soft_threshold_default_and_shape():
    y = np.array([[5.0, -1.0], [-4.0, 0.5]])
    level = 2.0 * math.sqrt(2 * math.log(4))
    np.testing.assert_allclose(soft_threshold(y, 2.0), np.sign(y) * np.maximum(abs(y) - level, 0), rtol=1e-15)
    np.testing.assert_array_equal(soft_threshold(y, 2.0, threshold=0), y)
    assert soft_threshold([-3.25], 1).tolist() == [-3.25]  # ln 1 = 0
    assert math.copysign(1.0, soft_threshold([-0.5, 1.0], 1, 2)[0]) == 1.0


# A prior.


@pytest.mark.parametrize("offset", [0.0, 1.0, 4.0])
def test_shrink_to_prior_has_its_exact_risk(offset):
    sigma, width, mean = 1.5, 2.0, 10.0
    weight = width**2 / (width**2 + sigma**2)
    wanted = 40 * ((weight * sigma) ** 2 + ((1 - weight) * offset) ** 2)
    losses = risks(lambda y: shrink_to_prior(y, sigma, width, mean), np.full(40, mean + offset), sigma, seed=4)
    assert_risk(losses, wanted)
    # The stated border: it pays within sqrt(2 w^2 + sigma^2) of the prior mean.
    assert (wanted < 40 * sigma**2) == (offset < math.sqrt(2 * width**2 + sigma**2))


def test_shrink_to_prior_border_is_exact():
    sigma, width = 1.5, 2.0
    weight, border = width**2 / (width**2 + sigma**2), math.sqrt(2 * width**2 + sigma**2)
    assert (weight * sigma) ** 2 + ((1 - weight) * border) ** 2 == pytest.approx(sigma**2, rel=1e-14)


def test_shrink_to_prior_is_the_best_for_its_prior():
    """Over truths from the prior its risk is 1/(1/w^2 + 1/sigma^2), and neighbouring weights do worse."""
    sigma, width, rng = 1.5, 2.0, np.random.default_rng(5)
    truth = 3.0 + width * rng.standard_normal(200_000)
    noisy = truth + sigma * rng.standard_normal(200_000)
    losses = {w: np.square(shrink_to_prior(noisy, sigma, w, 3.0) - truth) for w in (0.7 * width, width, 1.4 * width)}
    assert_risk(losses[width], 1 / (width**-2 + sigma**-2))
    assert losses[width].mean() < min(losses[0.7 * width].mean(), losses[1.4 * width].mean())


def test_shrink_to_prior_takes_one_mean_each():
    np.testing.assert_allclose(shrink_to_prior([1.0, 2.0], 1, 1, [3.0, -2.0]), [2.0, 0.0])


# Constraints.


def test_projections_never_move_away_from_a_truth_that_obeys():
    rng = np.random.default_rng(6)
    for _ in range(300):
        noise = rng.standard_cauchy((5, 5))
        truth = rng.exponential(2.0, (5, 5)) * (rng.random((5, 5)) < 0.7)
        assert (np.abs(nonnegative(truth + noise) - truth) <= np.abs(noise) * (1 + 1e-12) + 1e-12).all()
        symmetric = truth + truth.T
        assert np.linalg.norm(symmetrise(symmetric + noise) - symmetric) <= np.linalg.norm(noise) * (1 + 1e-12)
        valid = rng.random((5, 5)) < 0.5
        known = np.where(valid, truth, -2.0)
        assert (np.abs(restrict(known + noise, valid, -2.0) - known) <= np.abs(noise) * (1 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("mean", [0.0, 0.5, 2.0])
def test_nonnegative_has_its_exact_risk(mean):
    wanted = mean**2 * stats.norm.cdf(-mean) + stats.norm.cdf(mean) - mean * stats.norm.pdf(mean)
    assert wanted < 1.0
    assert mean > 0 or wanted == 0.5  # half of the error at an empty cell
    assert_risk(risks(nonnegative, np.full(50, 3.0 * mean), 3.0, seed=7), 50 * 9.0 * wanted)


def test_nonnegative_makes_sums_of_empty_cells_too_high():
    noisy = np.random.default_rng(8).standard_normal(10_000)
    assert nonnegative(noisy).sum() == pytest.approx(10_000 / math.sqrt(2 * math.pi), rel=0.1)


def rounding_risk(sigma):
    """E[round(sigma z)^2], the sum of (2k + 1) P(|sigma z| > k + 1/2)."""
    k = np.arange(200)
    return float(((2 * k + 1) * 2 * stats.norm.sf((k + 0.5) / sigma)).sum())


@pytest.mark.parametrize("sigma", [0.2, 0.4, 3.0])
def test_rounding_has_its_exact_risk(sigma):
    losses = risks(round_to_integers, np.full(400, 7.0), sigma, seed=9, draws=1000)
    assert_risk(losses, 400 * rounding_risk(sigma))


def test_rounding_helps_only_below_the_stated_noise():
    for sigma in np.linspace(0.02, 0.28, 40):
        assert rounding_risk(sigma) < sigma**2
    for sigma in np.linspace(0.29, 5.0, 200):
        assert sigma**2 < rounding_risk(sigma) < sigma**2 + (1 + 1e-9) / 12


def test_symmetrise_halves_the_variance_off_the_diagonal():
    size, sigma = 10, 2.0
    truth = np.add.outer(np.arange(size), np.arange(size)).astype(float)
    wanted = sigma**2 * (size + size * (size - 1) / 2)
    assert_risk(risks(symmetrise, truth, sigma, seed=10), wanted)
    result = symmetrise(np.random.default_rng(0).standard_normal((7, 7)))
    np.testing.assert_array_equal(result, result.T)


def test_restrict_removes_the_noise_of_impossible_cells():
    valid = np.zeros((6, 6), dtype=bool)
    valid[:2] = True
    truth = np.where(valid, 5.0, 1.0)
    assert_risk(risks(lambda y: restrict(y, valid, fill=1), truth, 3.0, seed=11), 12 * 9.0)


# All of them.

FUNCTIONS = [
    lambda y: james_stein(y, 1.0),
    lambda y: soft_threshold(y, 1.0),
    lambda y: shrink_to_prior(y, 1.0, 1.0),
    nonnegative,
    round_to_integers,
    symmetrise,
    lambda y: restrict(y, np.zeros((4, 4), dtype=bool)),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_leaves_its_input_alone(function):
    for dtype in (np.float64, np.float32, np.int64):
        y = (10 * np.random.default_rng(0).standard_normal((4, 4))).astype(dtype)
        before = y.copy()
        result = function(y)
        assert result.shape == y.shape
        assert result.dtype == np.float64
        assert not np.shares_memory(result, y)
        np.testing.assert_array_equal(y, before)
        np.testing.assert_allclose(function(y.tolist()), function(y.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, math.nan], [0.0, 1.0]], r"\[0, 1\]=nan is not finite: pass a value as it was released"),
        ([[1.0, 2.0], [0.0]], "is not a rectangular array"),
        ([["a", "b"], ["c", "d"]], r"\.dtype=<U1 is not numeric"),
        ([[True, False], [True, True]], r"\.dtype=bool is not numeric"),
        (np.zeros((0, 0)), r"\.shape=\(0, 0\) holds no entries"),
    ],
)
def test_every_function_checks_its_value(function, value, message):
    with pytest.raises(InvalidInput, match=message):
        function(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: james_stein([1.0, 2.0], 1), r"value\.shape=\(2,\) has 2 entries, but James-Stein needs at least 3"),
        (lambda: james_stein([1.0, 2.0, 3.0], 0), "standard_deviation=0 must be above 0"),
        (
            lambda: james_stein([1.0, 2.0, 3.0], 1, [0.0, 1.0]),
            r"towards\.shape=\(2,\) differs from value\.shape=\(3,\)",
        ),
        (lambda: james_stein([1.0, 2.0, 3.0], 1, math.inf), "towards=inf is not finite"),
        (lambda: soft_threshold([1.0], -1), "standard_deviation=-1"),
        (lambda: soft_threshold([1.0], 1, -2), "threshold=-2 must not be below 0"),
        (lambda: shrink_to_prior([1.0], 1, 0), "prior_deviation=0"),
        (lambda: shrink_to_prior([1.0], 1, 1, [[1.0]]), r"prior_mean\.shape=\(1, 1\)"),
        (lambda: symmetrise([[1.0, 2.0]]), r"matrix\.shape=\(1, 2\) is not square"),
        (lambda: symmetrise([1.0]), r"matrix\.shape=\(1,\) is not square"),
        (lambda: restrict([1.0], [1]), r"valid\.dtype=int64 is not bool"),
        (lambda: restrict([1.0], [True, False]), r"valid\.shape=\(2,\) differs from value\.shape=\(1,\)"),
        (lambda: restrict([1.0, 2.0], [[True], [True, False]]), "valid is not a rectangular array"),
        (lambda: restrict([1.0], [True], fill=math.nan), "fill=nan"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
