"""The singular Gaussian and random bases: densities against SciPy, draws against exact laws."""

import math

import numpy as np
import pytest
from scipy import linalg, stats

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.sampling import draw_noise
from lessnoise_paper.theory import SingularGaussian, random_basis_noise, uniform_stiefel

NEVER = 1e-6  # seeds are fixed, and a true law gives a smaller p-value once in a million seeds


def example(dimension=6, eigenvalues=(3.0, 1.0, 0.2), seed=0):
    rng = np.random.default_rng(seed)
    return SingularGaussian(
        rng.standard_normal(dimension), eigenvalues, uniform_stiefel(dimension, len(eigenvalues), rng)
    )


def variance_p_value(values, variance):
    """Two-sided p-value of the hypothesis that independent centred normal values have this variance."""
    statistic = (values**2).sum() / variance
    count = values.size
    return 2 * min(stats.chi2.sf(statistic, count), stats.chi2.cdf(statistic, count))


# The law.


def test_covariance_and_pseudo_inverse():
    law = example()
    covariance, inverse = law.covariance(), law.pseudo_inverse()
    assert np.linalg.matrix_rank(covariance) == law.rank == 3
    np.testing.assert_allclose(np.sort(np.linalg.eigvalsh(covariance))[-3:], [0.2, 1.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.pinv(covariance, rcond=1e-10), atol=1e-12)


@pytest.mark.parametrize("eigenvalues", [(2.0,), (3.0, 1.0, 0.2), (5.0, 4.0, 3.0, 2.0, 1.0, 0.5)])
def test_log_density_against_scipy(eigenvalues):
    law = example(eigenvalues=eigenvalues)
    points = law.sample(np.random.default_rng(5), 20)
    oracle = stats.multivariate_normal(law.mean, law.covariance(), allow_singular=True)
    np.testing.assert_allclose(law.log_density(points), oracle.logpdf(points), rtol=1e-9)
    assert law.log_density(points[3]).shape == ()
    assert float(law.log_density(points[3])) == pytest.approx(law.log_density(points)[3], rel=1e-12)


def test_log_density_is_the_pseudo_inverse_formula():
    law = example()
    x = law.sample(np.random.default_rng(6))
    quadratic = (x - law.mean) @ law.pseudo_inverse() @ (x - law.mean)
    wanted = -0.5 * (3 * math.log(2 * math.pi) + quadratic + math.log(3.0 * 1.0 * 0.2))
    assert float(law.log_density(x)) == pytest.approx(wanted, rel=1e-12)


def test_off_the_support_the_density_is_zero():
    law = example()
    x = law.sample(np.random.default_rng(7))
    normal = linalg.null_space(law.basis.T)[:, 0]
    assert law.log_density(x + 1e-3 * normal) == -np.inf
    assert law.log_density(x + 1e-12 * normal) == pytest.approx(float(law.log_density(x)), rel=1e-9)
    # Far along the support, and with a large mean, rounding alone must not leave it.
    assert np.isfinite(law.log_density(law.mean + 1e6 * law.basis[:, 0]))
    far = SingularGaussian(law.mean + 1e8, law.eigenvalues, law.basis)
    assert np.isfinite(far.log_density(far.sample(np.random.default_rng(8), 50))).all()


def test_the_density_integrates_to_one_over_the_support():
    law = SingularGaussian([1.0, -1.0, 0.5], [0.7], uniform_stiefel(3, 1, np.random.default_rng(9)))
    t = np.linspace(-12, 12, 4001)
    density = np.exp(law.log_density(law.mean + t[:, None] * law.basis[:, 0]))
    assert density.sum() * (t[1] - t[0]) == pytest.approx(1.0, rel=1e-12)


def test_full_rank_is_the_ordinary_gaussian():
    law = SingularGaussian([0, 0], [1.0, 4.0], np.eye(2))
    assert float(law.log_density([1, 2])) == pytest.approx(
        stats.norm.logpdf(1, 0, 1) + stats.norm.logpdf(2, 0, 2), rel=1e-14
    )


def test_samples_have_the_stated_scale_and_no_other():
    law = example()
    centred = law.sample(np.random.default_rng(10), 3000) - law.mean
    coordinates = centred @ law.basis
    for column, eigenvalue in zip(coordinates.T, law.eigenvalues, strict=True):
        assert variance_p_value(column, eigenvalue) > NEVER
        assert variance_p_value(column, eigenvalue * 2 / 3) < NEVER
        assert variance_p_value(column, eigenvalue * 3 / 2) < NEVER
        assert stats.kstest(column, stats.norm(scale=math.sqrt(eigenvalue)).cdf).pvalue > NEVER
    correlations = np.corrcoef(coordinates.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(3000)
    np.testing.assert_allclose(centred, coordinates @ law.basis.T, atol=1e-13)


def test_sample_shapes_and_seeds():
    law = example()
    assert law.sample(np.random.default_rng(1)).shape == (6,)
    assert law.sample(np.random.default_rng(1), 4).shape == (4, 6)
    np.testing.assert_array_equal(law.sample(np.random.default_rng(1)), law.sample(np.random.default_rng(1)))


def test_the_description_cannot_be_changed():
    mean = np.zeros(2)
    law = SingularGaussian(mean, [1.0], [[1.0], [0.0]])
    mean[0] = 5.0
    assert law.mean[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        law.basis[0, 0] = 2.0
    with pytest.raises(AttributeError):
        law.mean = mean


# Uniform bases.


@pytest.mark.parametrize(("dimension", "rank"), [(1, 1), (5, 1), (5, 5), (50, 7), (120, 120), (20_000, 3)])
def test_stiefel_is_orthonormal(dimension, rank):
    v = uniform_stiefel(dimension, rank, np.random.default_rng(11))
    assert v.shape == (dimension, rank)
    assert np.abs(v.T @ v - np.eye(rank)).max() < 1e-13


@pytest.mark.parametrize(("dimension", "rank"), [(4, 1), (9, 4), (6, 6)])
def test_stiefel_is_the_formula_of_the_theorem(dimension, rank):
    x = np.random.default_rng(12).standard_normal((dimension, rank))
    wanted = x @ np.linalg.inv(linalg.sqrtm(x.T @ x))
    np.testing.assert_allclose(uniform_stiefel(dimension, rank, np.random.default_rng(12)), wanted, atol=1e-10)


def test_stiefel_entries_have_the_law_of_a_uniform_direction():
    dimension, rank, count = 5, 2, 4000
    rng = np.random.default_rng(13)
    draws = np.array([uniform_stiefel(dimension, rank, rng) for _ in range(count)])
    rotation = linalg.qr(np.random.default_rng(14).standard_normal((dimension, dimension)))[0]
    spin = linalg.qr(np.random.default_rng(15).standard_normal((rank, rank)))[0]
    # One squared entry of a uniform unit vector is Beta(1/2, (M-1)/2), and stays so under rotation on either side.
    law = stats.beta(0.5, (dimension - 1) / 2)
    for turned in (draws, rotation @ draws, draws @ spin):
        for entry in (turned[:, 0, 0], turned[:, 3, 1]):
            assert stats.kstest(entry**2, law.cdf).pvalue > NEVER
            assert stats.binomtest(int((entry > 0).sum()), count).pvalue > NEVER
        second = (turned[:, 0, 0] ** 2).mean()
        error = law.std() / math.sqrt(count)
        assert abs(second - 1 / dimension) < 5 * error
        assert abs(second - 2 / 3 / dimension) > 5 * error
        assert abs(second - 3 / 2 / dimension) > 5 * error
    # Invariance of the joint law of two entries of different columns.
    products = [(turned[:, 0, 0] * turned[:, 1, 1]) for turned in (draws[: count // 2], rotation @ draws[count // 2 :])]
    assert stats.ks_2samp(*products).pvalue > NEVER


# Noise on a random basis.


@pytest.mark.slow
def test_rank_one_is_r1smg():
    mechanism = ln.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=8, calibration="published")
    sigma_star = mechanism.expected_loss
    rng, other = np.random.default_rng(16), np.random.default_rng(17)
    ours = np.array([random_basis_noise(8, [sigma_star], rng) for _ in range(4000)])
    theirs = np.array([mechanism.noise(other) for _ in range(4000)])
    compare(ours, theirs)
    radii = np.linalg.norm(ours, axis=1)
    assert stats.kstest(radii, stats.halfnorm(scale=math.sqrt(sigma_star)).cdf).pvalue > NEVER
    signed = radii * np.random.default_rng(18).choice([-1.0, 1.0], len(radii))
    assert variance_p_value(signed, sigma_star) > NEVER
    assert variance_p_value(signed, sigma_star * 2 / 3) < NEVER
    assert variance_p_value(signed, sigma_star * 3 / 2) < NEVER


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "rank"), [(7, 3), (5, 5), (12, 2)])
def test_equal_eigenvalues_are_the_radial_member(dimension, rank):
    eigenvalue = 2.5
    law = Radial(k=rank, p=2, scale=math.sqrt(2 * eigenvalue))
    source, rng = np.random.default_rng(19), np.random.default_rng(20)
    theirs = np.array([draw_noise(law, (dimension,), source) for _ in range(4000)])
    ours = np.array([random_basis_noise(dimension, [eigenvalue] * rank, rng) for _ in range(4000)])
    compare(ours, theirs)
    assert stats.kstest((ours**2).sum(1) / eigenvalue, stats.chi2(rank).cdf).pvalue > NEVER
    # The test has power: a scale off by a half is seen.
    assert stats.ks_2samp(np.linalg.norm(ours, axis=1), 1.5 * np.linalg.norm(theirs, axis=1)).pvalue < NEVER


def compare(ours, theirs):
    """Radius, one entry, and one direction cosine must have the same law; rounding hides the shortest directions."""
    direction = np.ones(ours.shape[1]) / math.sqrt(ours.shape[1])
    shortest = 0.1 * math.sqrt((ours**2).sum(axis=1).mean())

    def cosine(n):
        long = n[np.linalg.norm(n, axis=1) > shortest]
        return long @ direction / np.linalg.norm(long, axis=1)

    for statistic in (lambda n: np.linalg.norm(n, axis=1), lambda n: n[:, 0], cosine):
        assert stats.ks_2samp(statistic(ours), statistic(theirs)).pvalue > NEVER


@pytest.mark.slow
def test_unequal_eigenvalues_give_isotropic_noise():
    dimension, eigenvalues, count = 4, [5.0, 1.0], 20_000
    rng = np.random.default_rng(21)
    noise = np.array([random_basis_noise(dimension, eigenvalues, rng) for _ in range(count)])
    share = sum(eigenvalues) / dimension
    squares = noise**2
    error = squares.std(axis=0) / math.sqrt(count)
    assert (np.abs(squares.mean(axis=0) - share) < 5 * error).all()
    assert (np.abs(squares.mean(axis=0) - share * 2 / 3) > 5 * error).all()
    assert (np.abs(squares.mean(axis=0) - share * 3 / 2) > 5 * error).all()
    products = noise[:, 0] * noise[:, 1]
    assert abs(products.mean()) < 5 * products.std() / math.sqrt(count)


# Bad input.

RNG = np.random.default_rng(0)
LAW = SingularGaussian([0, 0], [1.0], [[1], [0]])


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: SingularGaussian([0, 0], [0.0], [[1], [0]]), ["eigenvalues[0]=0.0", "above 0", "leave out"]),
        (lambda: SingularGaussian([0, 0], [1, -2], np.eye(2)), ["eigenvalues[1]=-2.0", "above 0"]),
        (lambda: SingularGaussian([0, 0], [1], [[1], [1]]), ["max|V^T V - I|=1", "orthonormalise", "numpy.linalg.qr"]),
        (lambda: SingularGaussian([0, 0], [1], [[1, 0]]), ["basis.shape=(1, 2)", "(2, 1)", "one column"]),
        (lambda: SingularGaussian([0], [1, 1], [[1, 0]]), ["basis.shape=(1, 2)", "more columns than rows"]),
        (lambda: SingularGaussian([0, 0], [1], [1, 0]), ["basis.shape=(2,)", "1 axes", "with 2"]),
        (lambda: SingularGaussian([[0, 0]], [1], [[1], [0]]), ["mean.shape=(1, 2)", "with 1"]),
        (lambda: SingularGaussian([0, np.nan], [1], [[1], [0]]), ["mean[1]=nan", "not finite"]),
        (lambda: SingularGaussian([0, 0], [], np.zeros((2, 0))), ["eigenvalues.shape=(0,)", "empty"]),
        (lambda: SingularGaussian(["a", "b"], [1], [[1], [0]]), ["mean.dtype=<U1", "float64"]),
        (lambda: SingularGaussian([0, 0], [1], [[1], [0, 0]]), ["basis is not a rectangular array"]),
        (lambda: LAW.log_density([1, 2, 3]), ["x.shape=(3,)", "M=2"]),
        (lambda: LAW.log_density(1.0), ["x.shape=()", "1 or 2"]),
        (lambda: LAW.log_density([[1, 2], [3]]), ["x is not a rectangular array"]),
        (lambda: LAW.sample(None), ["rng=None", "numpy.random.default_rng(seed)"]),
        (lambda: LAW.sample(RNG, 0), ["size=0", "at least 1"]),
        (lambda: uniform_stiefel(2, 3, RNG), ["rank=3", "dimension=2", "at most"]),
        (lambda: uniform_stiefel(2, 0, RNG), ["rank=0", "at least 1"]),
        (lambda: uniform_stiefel(2, 1, 42), ["rng=42", "not a NumPy generator"]),
        (lambda: random_basis_noise(2, [1, 1, 1], RNG), ["rank=3", "dimension=2"]),
        (lambda: random_basis_noise(2, [0], RNG), ["eigenvalues[0]=0.0", "above 0"]),
        (lambda: random_basis_noise(2, [1], None), ["rng=None", "not a NumPy generator"]),
    ],
)
def test_bad_input_is_answered_with_the_remedy(call, parts):
    with pytest.raises(InvalidInput) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
