"""Shared Gaussian noise: the exact curve over the cube, the noise's two parts, and sums of bounded statistics."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.families.correlated_gaussian import (
    CorrelatedGaussian,
    correlated_gaussian,
    worst_mu,
    worst_vertex,
)
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import draw_noise
from lessnoise.query import Sum

NEVER = 1e-6  # seeds are fixed, and a true law gives a smaller p-value once in a million seeds
NEVER_AT_ALL = 1e-15  # for cryptographic draws, which differ from run to run
TARGETS = [(0.01, 1e-9), (1.0, 1e-5), (math.log(3), 1e-6), (8.0, 1e-3), (0.5, 0.4)]
LAWS = [(1.0, 3.0), (0.0, 1.0), (1e-6, 1.0), (50.0, 0.1), (0.2, 0.2)]


def published(dimension, epsilon=1.0, delta=1e-5, sensitivity=1.0):
    return correlated_gaussian(epsilon=epsilon, delta=delta, shape=dimension, sensitivity=sensitivity)


def covariance(law, dimension):
    return law.own_variance * np.eye(dimension) + law.common_variance * np.ones((dimension, dimension))


def mahalanobis(law, shifts):
    """sqrt(v^T Sigma^-1 v) for the rows of shifts, from the definition."""
    return np.sqrt(np.einsum("ij,ij->i", shifts, np.linalg.solve(covariance(law, shifts.shape[1]), shifts.T).T))


# The curve.


@pytest.mark.parametrize("dimension", range(1, 13))
def test_worst_mu_over_all_vertices(dimension):
    vertices = np.array(list(itertools.product([0.0, 2.5], repeat=dimension)))
    for law in [CorrelatedGaussian(*law) for law in LAWS] + [published(dimension, sensitivity=2.5).law]:
        distances = mahalanobis(law, vertices)
        assert worst_mu(law, dimension, 2.5) == pytest.approx(distances.max(), rel=1e-9)
        changed = round(vertices[distances.argmax()].sum() / 2.5)
        assert distances[vertices.sum(axis=1) == 2.5 * worst_vertex(law, dimension)] == pytest.approx(distances.max())
        assert abs(changed - worst_vertex(law, dimension)) <= 1  # equal, or tied


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 40])
def test_no_interior_point_is_worse(dimension):
    rng = np.random.default_rng(dimension)
    inside = rng.beta(0.3, 0.3, (20000, dimension))  # many near the vertices
    for law in [CorrelatedGaussian(*law) for law in LAWS] + [published(dimension).law]:
        assert mahalanobis(law, inside).max() <= worst_mu(law, dimension, 1.0) * (1 + 1e-9)


@pytest.mark.parametrize("dimension", [1000, 400])
def test_all_vertices_by_count_in_high_dimension(dimension):
    law = published(dimension).law
    vertices = np.tril(np.ones((dimension, dimension)))
    distances = mahalanobis(law, vertices)
    assert worst_mu(law, dimension, 1.0) == pytest.approx(distances.max(), rel=1e-9)
    assert worst_vertex(law, dimension) == distances.argmax() + 1
    mu = 1 / gaussian.gaussian_scale(1.0, 1e-5)
    # The published noise aims at j = (d + sqrt d)/2, a whole number only for square d, and is a touch generous else.
    assert distances.max() <= mu * (1 + 1e-12)
    if dimension == 400:
        assert distances.max() == pytest.approx(mu, rel=1e-10)


def test_worst_vertex_against_every_count():
    rng = np.random.default_rng(0)
    for _ in range(300):
        dimension = int(rng.integers(1, 60))
        common, own = np.exp(rng.uniform(-8, 8, 2))
        j = np.arange(1, dimension + 1)
        gains = j * (own + (dimension - j) * common) / (own * (own + dimension * common))
        assert worst_mu(CorrelatedGaussian(common, own), dimension, 1.0) == pytest.approx(
            math.sqrt(gains.max()), rel=1e-13
        )


def test_rounding_bound_of_mu():
    rng = np.random.default_rng(1)
    with mpmath.workdps(40):
        for _ in range(200):
            dimension = int(np.exp(rng.uniform(0, 27)))
            law = CorrelatedGaussian(*np.exp(rng.uniform(-20, 20, 2)))
            j, common, own = worst_vertex(law, dimension), mpmath.mpf(law.common_variance), mpmath.mpf(law.own_variance)
            truth = mpmath.sqrt(j * (own + (dimension - j) * common) / (own * (own + dimension * common)))
            assert abs(worst_mu(law, dimension, 1.0) / truth - 1) < 1e-15


def test_curve_against_sampled_privacy_loss():
    """delta = E[(1 - e^(eps - L))_+] at the worst vertex, from SciPy's normal densities."""
    law, dimension, rng = published(6, epsilon=1.0, delta=0.02).law, 6, np.random.default_rng(2)
    shift = (np.arange(dimension) < worst_vertex(law, dimension)).astype(float)
    normal = stats.multivariate_normal(np.zeros(dimension), covariance(law, dimension))
    noise = normal.rvs(200_000, random_state=rng)
    loss = normal.logpdf(noise) - normal.logpdf(noise + shift)
    for epsilon in (0.0, 0.5, 1.0):
        gains = np.maximum(0.0, -np.expm1(epsilon - loss))
        error = gains.std() / math.sqrt(len(gains))
        assert gains.mean() == pytest.approx(delta_of(law, dimension, 1.0, epsilon).middle, abs=5 * error)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_never_exceeds_the_target(epsilon, delta):
    for dimension in [*range(1, 40), 100, 1000, 7921, 10**6, 10**9]:
        for sensitivity in (1.0, 0.37, 1e5):
            mechanism = published(dimension, epsilon, delta, sensitivity)
            assert mechanism.check().holds
            if math.isqrt(dimension) ** 2 == dimension:  # and is tight there
                assert mechanism.delta(epsilon).lower > delta * (1 - 1e-8)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("dimension", [1, 2, 9, 50, 10**4, 10**8])
def test_standard_deviation(epsilon, delta, dimension):
    sigma = gaussian.gaussian_scale(epsilon, delta)
    mechanism = published(dimension, epsilon, delta, 3.0)
    root = math.sqrt(dimension)
    assert mechanism.standard_deviation == pytest.approx(3.0 * (root + 1) / 2 * sigma, rel=1e-9)
    assert mechanism.law.common_variance == pytest.approx(9.0 * (root + 1) / 4 * sigma**2, rel=1e-9)
    assert mechanism.law.own_variance == pytest.approx(9.0 * (dimension + root) / 4 * sigma**2, rel=1e-9)


def test_one_statistic_is_the_analytic_gaussian():
    ours = published(1, sensitivity=2.0)
    theirs = ln.analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=2, shape=1)
    assert ours.standard_deviation == pytest.approx(theirs.standard_deviation, rel=1e-12)
    for epsilon in (0.0, 0.3, 1.0, 4.0):
        assert ours.delta(epsilon).middle == pytest.approx(theirs.delta(epsilon).middle, rel=1e-9)
    assert ours.loss_quantile(0.9) == pytest.approx(theirs.loss_quantile(0.9), rel=1e-12)
    assert ours.loss_kurtosis == pytest.approx(theirs.loss_kurtosis, rel=1e-12)


def test_nearly_halves_the_noise_of_many_statistics():
    ratios = {}
    for dimension in (4, 100, 10**4, 10**6):
        independent = ln.analytic_gaussian(
            epsilon=1, delta=1e-5, sensitivity=math.sqrt(dimension), shape=dimension
        ).standard_deviation
        ratios[dimension] = published(dimension).standard_deviation / independent
    assert ratios == pytest.approx({4: 0.75, 100: 0.55, 10**4: 0.505, 10**6: 0.5005}, rel=1e-9)


def test_epsilon_inverts_delta():
    mechanism = published(30)
    assert mechanism.epsilon(mechanism.delta(1.0).upper).upper == pytest.approx(1.0, rel=1e-4)
    assert mechanism.epsilon(0.0).upper == math.inf


# The builder.


def test_json_round_trip_and_shape():
    mechanism = correlated_gaussian(epsilon=1, delta=1e-6, shape=(3, 4), sensitivity=2)
    again = Mechanism.from_json(mechanism.to_json())
    assert again == mechanism
    assert hash(again.law) == hash(mechanism.law)
    assert mechanism.to_dict()["noise"]["kind"] == "correlated-gaussian"
    assert mechanism.noise(np.random.default_rng(0)).shape == (3, 4)
    released = mechanism.release(np.zeros((3, 4)))
    assert released.certificate.guarantee.delta <= 1e-6
    assert released.certificate.private


@pytest.mark.parametrize("neighbours", ["replace", ln.Neighbours.REPLACE])
def test_replacement_is_refused_with_the_reason(neighbours):
    with pytest.raises(InvalidInput, match=r"neighbours='replace'.*\[-c, c\]\^d.*gains nothing.*add/remove.*analytic"):
        correlated_gaussian(epsilon=1, delta=1e-5, shape=10, neighbours=neighbours)


def test_shared_noise_gains_nothing_under_replacement():
    """Over [-1, 1]^d the trace is least for independent noise: any shared part needs more, as the error says."""
    dimension = 8
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=dimension)))

    def needed(ratio):  # variance of one entry that brings the worst mu to 1
        return (1 + ratio) * mahalanobis(CorrelatedGaussian(ratio, 1.0), signs).max() ** 2

    assert needed(0.0) == pytest.approx(dimension)
    assert all(needed(ratio) > dimension for ratio in (0.01, 0.1, 1 / math.sqrt(dimension), 1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon=0"),
        ({"delta": 1}, "delta=1"),
        ({"shape": 0}, "shape=0"),
        ({"sensitivity": -1}, "sensitivity=-1"),
        ({"neighbours": "any"}, "neighbours='any'"),
    ],
)
def test_arguments_are_checked(changes, message):
    with pytest.raises(InvalidInput, match=message):
        correlated_gaussian(**{"epsilon": 1, "delta": 1e-5, "shape": 5, **changes})


def test_law_checks_its_variances():
    with pytest.raises(InvalidInput, match="common_variance=-1"):
        CorrelatedGaussian(-1.0, 1.0)
    with pytest.raises(InvalidInput, match="own_variance=0"):
        CorrelatedGaussian(1.0, 0.0)


# The noise.


def variance_p_value(values, variance):
    """Two-sided p-value of the hypothesis that independent centred normal values have this variance."""
    statistic, count = float(np.square(values).sum() / variance), values.size
    return 2 * min(stats.chi2.sf(statistic, count), stats.chi2.cdf(statistic, count))


def parts(noise):
    """Means of the draws, and their residuals in an orthonormal basis of the space across (1, ..., 1)."""
    dimension = noise.shape[1]
    across = np.linalg.qr(np.column_stack([np.ones(dimension), np.eye(dimension)[:, 1:]]))[0][:, 1:]
    return noise.mean(axis=1), noise @ across


@pytest.mark.slow
@pytest.mark.parametrize(("source", "never"), [(np.random.default_rng(3), NEVER), (None, NEVER_AT_ALL)])
def test_both_scales_two_sided(source, never):
    """Accept the true deviation of each part; reject two thirds and three halves of it."""
    dimension, law = 16, published(16).law
    noise = np.array([draw_noise(law, (dimension,), source) for _ in range(4000)])
    means, residuals = parts(noise)
    for factor in (2 / 3, 1.0, 3 / 2):
        p_common = variance_p_value(means, law.common_variance * factor**2 + law.own_variance / dimension)
        p_own = variance_p_value(residuals, law.own_variance * factor**2)
        if factor == 1.0:
            assert min(p_common, p_own) > never
        else:
            assert max(p_common, p_own) < never


@pytest.mark.slow
def test_parts_are_normal():
    law = published(16).law
    source = np.random.default_rng(4)
    means, residuals = parts(np.array([draw_noise(law, (4, 4), source).ravel() for _ in range(4000)]))
    deviation = math.sqrt(law.common_variance + law.own_variance / 16)
    assert stats.kstest(means / deviation, "norm").pvalue > NEVER
    assert stats.kstest(residuals.ravel() / math.sqrt(law.own_variance), "norm").pvalue > NEVER


@pytest.mark.slow
def test_covariance_matrix():
    law, count = CorrelatedGaussian(2.0, 3.0), 6_000
    source = np.random.default_rng(5)
    noise = np.array([draw_noise(law, (5,), source) for _ in range(count)])
    truth = covariance(law, 5)
    error = np.sqrt((truth**2 + np.outer(np.diag(truth), np.diag(truth))) / count)
    assert (np.abs(noise.T @ noise / count - truth) < 5 * error).all()
    assert not (np.abs(noise.T @ noise / count - 1.5 * truth) < 5 * error).any()
    assert (np.abs(noise.mean(axis=0)) < 5 * math.sqrt(5.0 / count)).all()


# The loss.


@pytest.mark.parametrize("dimension", [1, 2, 7, 50])
def test_moments_against_the_generating_function(dimension):
    """Moments from the series of E e^(tL) = product of (1 - 2 lambda t)^(-1/2), in 40 digits."""
    law = CorrelatedGaussian(0.7, 1.9)
    along, across = law.eigenvalues(dimension)
    with mpmath.workdps(40):
        series = mpmath.taylor(
            lambda t: (1 - 2 * along * t) ** -0.5 * (1 - 2 * across * t) ** ((1 - dimension) / 2), 0, 4
        )
        for order in range(5):
            wanted = float(mpmath.log(series[order] * mpmath.factorial(order)))
            assert losses.log_raw_moment(law, dimension, order) == pytest.approx(wanted, abs=1e-11)


def test_loss_of_independent_noise_is_the_gaussians():
    shared, plain = CorrelatedGaussian(0.0, 2.0), ln.Radial(12, 2.0, 2.0)
    for q in (1e-9, 0.3, 0.999):
        assert losses.quantile(shared, 12, q) == pytest.approx(losses.quantile(plain, 12, q), rel=1e-12)
    assert losses.skewness(shared, 12) == pytest.approx(losses.skewness(plain, 12), rel=1e-12)


def mixture_tail(law, dimension, loss, high):
    """The tail as a mixture of chi-squares of d + 2N degrees of freedom, N negative binomial (Ruben 1962)."""
    along, across = law.eigenvalues(dimension)
    n = np.arange(math.ceil(60.0 * along / across) + 200)
    log_weights = (
        special.gammaln(n + 0.5) - special.gammaln(0.5) - special.gammaln(n + 1.0) + 0.5 * math.log(across / along)
    )
    weights = np.exp(log_weights + n * math.log1p(-across / along))
    tail = special.gammaincc if high else special.gammainc
    return math.fsum(weights * tail(0.5 * dimension + n, 0.5 * loss / across))


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3, 10, 1000, 10**4])
@pytest.mark.parametrize("strength", [0.01, 1.0, 6.0])
def test_quantiles_against_the_chi_square_mixture(dimension, strength):
    law = CorrelatedGaussian(3.0 * strength / math.sqrt(dimension), 3.0)
    for q in (1e-9, 1e-3, 0.25, 0.5, 0.75, 0.999, 1 - 1e-9):
        x, high = losses.quantile(law, dimension, q), q > 0.5
        tail = mixture_tail(law, dimension, x, high)
        slope = (mixture_tail(law, dimension, x * (1 + 1e-6), high) - tail) / 1e-6
        assert abs((tail - (1 - q if high else q)) / slope) < 1e-10  # relative error of the quantile


def test_quantiles_grow_and_stay_finite_at_the_extremes():
    for law, dimension in [
        (CorrelatedGaussian(1e12, 1.0), 7),
        (CorrelatedGaussian(1.0, 1e-9), 2),
        (published(10**12).law, 10**12),
    ]:
        values = [losses.quantile(law, dimension, q) for q in (1e-300, 1e-30, 1e-9, 0.5, 0.9, 1 - 1e-12)]
        assert all(math.isfinite(value) and value > 0 for value in values)
        assert values == sorted(values)


def test_from_rows_to_release():
    rng = np.random.default_rng(6)
    sums = Sum([f"statistic {place}" for place in range(49)], bounds=(0, 1)).answer(rng.random((5000, 49)) < 0.3)
    bound = sums.request(1, 1e-6).entry_bound
    mechanism = correlated_gaussian(epsilon=1, delta=1e-6, shape=sums.shape, sensitivity=bound)
    independent = ln.analytic_gaussian(epsilon=1, delta=1e-6, shape=sums.shape, sensitivity=sums.sensitivity)
    assert mechanism.standard_deviation / independent.standard_deviation == pytest.approx(4 / 7, rel=1e-9)
    assert mechanism.release(sums.value).value.shape == (49,)
