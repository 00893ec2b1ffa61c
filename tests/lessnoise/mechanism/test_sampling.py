"""Noise as it is really drawn: both sources, every family, two-sided.

Constants. A correct sampler fails a single Kolmogorov-Smirnov test here with probability P_FLOOR = 1e-9; there are
about a hundred such tests, so one run in ten million fails by chance. Each scale test must also *reject* 2/3 and 3/2 of
the true scale at the same level: with DRAWS = 4000 the statistic sqrt(n) D is above 7 for every law below, where 3.3
suffices, and it strays by 3.3 with probability 1e-9. Moments are compared at SIGMAS = 6.5 deviations (8e-11).

Secure and seeded noise differ in where the key comes from alone; some families are drawn both ways.
"""

import functools
import math

import numpy as np
import pytest
from scipy import special, stats

import lessnoise as ln
from lessnoise.mechanism.sampling import draw_noise, grid_step
from lessnoise.noise import GammaRadius, Stream
from lessnoise.noise.radius import scalars
from tests.helpers.oracles import Case, coordinate_cdf, cosine_cdf, radius_cdf

P_FLOOR = 1e-9
SIGMAS = 6.5
DRAWS = 4000

FAMILIES = {
    "gaussian": (5, ln.Radial(5, 2, 1.3)),
    "gaussian-line": (1, ln.Radial(1, 2, 1.3)),
    "l2": (4, ln.Radial(4, 1, 0.4)),
    "r1smg": (6, ln.Radial(1, 2, 30.0)),
    "subspace": (7, ln.Radial(3, 2, 2.0)),
    "member": (3, ln.Radial(2.6, 1.4, 5.0)),
    "steep": (2, ln.Radial(2, 8, 1.0)),
    "heavy": (3, ln.Radial(3, 0.5, 1e-3)),
    "small": (4, ln.Radial(0.85, 1.5, 1.0)),
}
SOURCES = ("secure", "numpy")


def source(name, seed=0):
    return None if name == "secure" else np.random.default_rng(seed)


@functools.cache
def sample(family, source_name):
    """DRAWS noise vectors, one call each."""
    dimension, law = FAMILIES[family]
    stream = source(source_name, seed=sum(map(ord, family)))
    return np.array([draw_noise(law, (dimension,), stream) for _ in range(DRAWS)])


def case(family):
    dimension, law = FAMILIES[family]
    return Case(dimension, law.k, law.p, law.scale, 1.0, 0.0)


def p_value(values, cdf):
    return stats.kstest(values, cdf, method="asymp").pvalue


def assert_scale(values, cdf_at, scale):
    """Accept the true scale, reject 2/3 and 3/2 of it."""
    assert p_value(values, cdf_at(scale)) > P_FLOOR
    assert p_value(values, cdf_at(scale * 2 / 3)) < P_FLOOR
    assert p_value(values, cdf_at(scale * 3 / 2)) < P_FLOOR


CASES = [(family, "numpy") for family in FAMILIES] + [(family, "secure") for family in ("gaussian", "l2", "r1smg")]
every_case = pytest.mark.parametrize(("family", "source_name"), CASES)
both_sources = pytest.mark.parametrize("source_name", SOURCES)


# Radius, coordinates, direction.


@pytest.mark.slow
@every_case
def test_radius_law_and_scale(family, source_name):
    radii = np.linalg.norm(sample(family, source_name), axis=1)
    assert_scale(radii, lambda scale: lambda r: radius_cdf(case(family)._replace(scale=scale), r), case(family).scale)


@pytest.mark.slow
@every_case
def test_coordinate_law(family, source_name):
    values = sample(family, source_name)
    for index in {0, values.shape[1] - 1}:
        column = np.sort(values[:, index])
        assert p_value(column, lambda x: coordinate_cdf(case(family), x)) > P_FLOOR
        for factor in (2 / 3, 3 / 2):
            wrong = case(family)._replace(scale=case(family).scale * factor)
            assert p_value(np.abs(column), lambda x, wrong=wrong: 2.0 * coordinate_cdf(wrong, x) - 1.0) < P_FLOOR


@pytest.mark.slow
@pytest.mark.parametrize(("family", "source_name"), [case for case in CASES if FAMILIES[case[0]][0] > 1])
def test_direction_is_uniform_and_independent_of_the_radius(family, source_name):
    values = sample(family, source_name)
    lengths = np.linalg.norm(values, axis=1)
    long = lengths > 0.1 * math.sqrt(np.mean(lengths**2))  # the grid hides the direction of the shortest
    radii, units = lengths[long], values[long] / lengths[long, None]
    m = units.shape[1]
    limit = SIGMAS / math.sqrt(len(units))
    assert len(units) > DRAWS / 3
    assert np.abs(units.mean(axis=0)).max() <= limit / math.sqrt(m)
    second = units.T @ units / len(units)
    spread = math.sqrt(3 / (m * (m + 2)))  # deviation of a product of two coordinates is at most this
    assert np.abs(second - np.eye(m) / m).max() <= limit * spread
    assert p_value(units[:, 0], lambda t: cosine_cdf(m, t)) > P_FLOOR
    for column in (units[:, 0], units[:, 0] ** 2):
        assert abs(stats.spearmanr(column, radii).statistic) <= limit
    assert abs(stats.spearmanr(lengths[1:], lengths[:-1]).statistic) <= limit  # one draw says nothing about the next


def test_rejects_noise_without_the_uniform_direction():
    # The power of the direction test: noise along one axis, or the same sign twice, is noticed.
    rng = np.random.default_rng(0)
    axis = np.zeros((DRAWS, 4))
    axis[:, 0] = rng.standard_normal(DRAWS)
    units = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    assert p_value(units[:, 0], lambda t: cosine_cdf(4, t)) < P_FLOOR


@both_sources
def test_laplace_coordinates(source_name):
    flat = draw_noise(ln.Laplace(0.7), (50, 200), source(source_name)).ravel()
    assert_scale(np.abs(flat), lambda scale: lambda x: -np.expm1(-x / scale), 0.7)
    assert p_value(flat, stats.laplace(scale=0.7).cdf) > P_FLOOR
    assert abs((flat > 0).mean() - 0.5) <= SIGMAS * 0.5 / math.sqrt(flat.size)
    # Magnitude and sign, and neighbouring coordinates, are independent.
    limit = SIGMAS / math.sqrt(flat.size - 1)
    assert abs(stats.spearmanr(np.abs(flat), np.sign(flat)).statistic) <= limit
    assert abs(stats.spearmanr(flat[1:], flat[:-1]).statistic) <= limit
    assert abs(stats.spearmanr(np.sign(flat[1:]), np.sign(flat[:-1])).statistic) <= limit


@both_sources
def test_gaussian_array_is_independent_standard_noise(source_name):
    flat = draw_noise(ln.Radial(200 * 500, 2, math.sqrt(2.0) * 3.0), (200, 500), source(source_name)).ravel()
    assert_scale(np.abs(flat), lambda scale: lambda x: special.erf(x / (scale * math.sqrt(2.0))), 3.0)
    limit = SIGMAS / math.sqrt(flat.size / 2)
    for lag in (1, 2, 500, 1 << 15, 1 << 16):  # pairs of the transform, rows, and the sampler's chunks
        for power in (1, 2):
            values = flat**power
            assert abs(np.corrcoef(values[lag:], values[:-lag])[0, 1]) <= limit * (1 if lag < 1000 else 1.5)


@pytest.mark.slow
@both_sources
def test_high_dimensional_radius(source_name):
    # M = 20 000: the l2 radius is Gamma(M), R1SMG's half-normal; the direction has all coordinates of size R/sqrt(M).
    m, stream = 20_000, source(source_name)
    l2 = np.array([np.linalg.norm(draw_noise(ln.Radial(m, 1, 1.0), (m,), stream)) for _ in range(60)])
    assert p_value(l2, stats.gamma(m).cdf) > P_FLOOR
    assert np.abs(l2 / m - 1.0).max() < 0.1
    one = draw_noise(ln.Radial(1, 2, 1.0), (100, 200), stream)
    assert p_value(one.ravel() * math.sqrt(m) / np.linalg.norm(one), stats.norm.cdf) > P_FLOOR


# The radius, before it meets the grid.


def log_radii(radius, count, seed):
    """ln R to full precision, also where R itself is below the smallest double."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        low = radius.draw(scalars(Stream.of(rng).claim())).interval(1)[0]
        found.append(math.log(low.numerator) - math.log(low.denominator))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.006, 0.3, 1.0, 2.7, 40.0, 1e4, 5e8])
def test_gamma_radii(shape):
    logs = log_radii(GammaRadius(shape, 1.0, 1.0), 600, seed=5)

    def cdf(log_gamma):
        # For tiny shapes and values, I(a, x) = x^a / Gamma(a + 1) to double precision.
        small = log_gamma < -30.0
        regular = special.gammainc(shape, np.exp(np.where(small, 0.0, log_gamma)))
        power = np.exp(shape * np.where(small, log_gamma, 0.0) - math.lgamma(shape + 1.0))
        return np.where(small, power, regular)

    assert p_value(logs, cdf) > P_FLOOR
    assert p_value(logs + 0.8 * logs.std(), cdf) < P_FLOOR


@pytest.mark.slow
def test_a_tiny_shape_never_gives_a_zero_radius():
    # k = 0.05, p = 8: Gamma(k/p) itself underflows once in a hundred draws; the radius must not.
    logs = log_radii(GammaRadius(0.05, 8.0, 1.0), 600, seed=9)
    assert logs.min() < math.log(1e-20)
    assert p_value(logs, tiny_radius_cdf) > P_FLOOR
    assert p_value(0.5 * logs, tiny_radius_cdf) < P_FLOOR


def tiny_radius_cdf(log_radius):
    a, log_power = 0.05 / 8, 8.0 * np.asarray(log_radius)
    return np.where(
        log_power < -30.0,
        np.exp(a * log_power - math.lgamma(a + 1.0)),
        special.gammainc(a, np.exp(np.minimum(log_power, 50.0))),
    )


# Mechanisms.


def mechanisms():
    target = {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 1, "shape": (2, 3)}
    return [
        ln.analytic_gaussian(**target),
        ln.l2_mechanism(**target),
        ln.r1smg(**target, calibration="exact"),
        ln.radial(**target, k=4, p=1.5),
        ln.laplace(epsilon=0.5, sensitivity=1, shape=(2, 3)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("index", range(5))
def test_seeds_reproduce_and_secure_noise_does_not(index):
    mechanism = mechanisms()[index]
    first, again = (mechanism.noise(rng=np.random.default_rng(3)) for _ in range(2))
    assert first.shape == (2, 3)
    assert first.dtype == np.float64
    np.testing.assert_array_equal(first, again)
    rng = np.random.default_rng(3)
    assert not np.array_equal(mechanism.noise(rng=rng), mechanism.noise(rng=rng))
    assert not np.array_equal(first, mechanism.noise(rng=np.random.default_rng(4)))
    assert not np.array_equal(mechanism.noise(), mechanism.noise())


@pytest.mark.parametrize("index", range(5))
def test_release_adds_the_noise_and_says_where_it_came_from(index):
    mechanism = mechanisms()[index]
    value = np.arange(6.0).reshape(2, 3) * grid_step(mechanism.law, mechanism.shape)
    kept = value.copy()
    experiment = mechanism.release(value, rng=np.random.default_rng(8))
    np.testing.assert_array_equal(value, kept)
    np.testing.assert_array_equal(experiment.value - value, mechanism.noise(rng=np.random.default_rng(8)))
    assert experiment.certificate.private is False
    assert "NumPy" in experiment.certificate.randomness
    private = mechanism.release(value.tolist())
    assert private.certificate.private is True
    assert "AES-256" in private.certificate.randomness
    assert not np.array_equal(private.value, experiment.value)
    assert not np.shares_memory(private.value, value)


def test_integer_values_and_layouts_are_welcome():
    mechanism = mechanisms()[0]
    expected = mechanism.release(np.arange(6.0).reshape(2, 3), rng=np.random.default_rng(1)).value
    for value in (
        np.arange(6).reshape(2, 3),
        np.arange(6, dtype=np.uint8).reshape(2, 3),
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        [[0, 1, 2], [3, 4, 5]],
    ):
        np.testing.assert_array_equal(mechanism.release(value, rng=np.random.default_rng(1)).value, expected)


def test_released_scale_is_the_calibrated_one():
    # End to end: the analytic Gaussian at (1, 1e-5) has sigma = 3.73063, and the release shows it.
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=20_000)
    noise = mechanism.release(np.full(20_000, 7.0)).value - 7.0
    assert_scale(np.abs(noise), lambda sigma: lambda x: special.erf(x / (sigma * math.sqrt(2.0))), 3.73063)
