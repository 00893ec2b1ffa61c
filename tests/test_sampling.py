"""Noise as it is really drawn: both sources, every family, two-sided.

Constants. A correct sampler fails a single Kolmogorov-Smirnov test here with probability P_FLOOR = 1e-9; there are
about a hundred such tests, so one run in ten million fails by chance. Each scale test must also *reject* 2/3 and 3/2 of
the true scale at the same level: with DRAWS = 4000 the statistic sqrt(n) D is above 7 for every law below, where 3.3
suffices, and it strays by 3.3 with probability 1e-9. Moments are compared at SIGMAS = 6.5 deviations (8e-11).
"""

import functools
import math
import os
import struct

import numpy as np
import pytest
from scipy import special, stats

import lessnoise as ln
from lessnoise.mechanism.sampling import NumpySource, SecureSource, draw
from oracles import Case, coordinate_cdf, cosine_cdf, radius_cdf

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
    return SecureSource() if name == "secure" else NumpySource(np.random.default_rng(seed))


@functools.cache
def sample(family, source_name):
    """DRAWS noise vectors, one call each."""
    dimension, law = FAMILIES[family]
    stream = source(source_name, seed=sum(map(ord, family)))
    return np.array([draw(law, (dimension,), stream) for _ in range(DRAWS)])


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


every_family = pytest.mark.parametrize("family", FAMILIES)
both_sources = pytest.mark.parametrize("source_name", SOURCES)


# Radius, coordinates, direction.


@every_family
@both_sources
def test_radius_law_and_scale(family, source_name):
    radii = np.linalg.norm(sample(family, source_name), axis=1)
    assert_scale(radii, lambda scale: lambda r: radius_cdf(case(family)._replace(scale=scale), r), case(family).scale)


@every_family
@both_sources
def test_coordinate_law(family, source_name):
    values = sample(family, source_name)
    for index in {0, values.shape[1] - 1}:
        column = np.sort(values[:, index])
        assert p_value(column, lambda x: coordinate_cdf(case(family), x)) > P_FLOOR
        for factor in (2 / 3, 3 / 2):
            wrong = case(family)._replace(scale=case(family).scale * factor)
            assert p_value(np.abs(column), lambda x, wrong=wrong: 2.0 * coordinate_cdf(wrong, x) - 1.0) < P_FLOOR


@pytest.mark.parametrize("family", [name for name, (dimension, _) in FAMILIES.items() if dimension > 1])
@both_sources
def test_direction_is_uniform_and_independent_of_the_radius(family, source_name):
    values = sample(family, source_name)
    radii = np.linalg.norm(values, axis=1)
    units = values / radii[:, None]
    m = units.shape[1]
    limit = SIGMAS / math.sqrt(DRAWS)
    assert np.abs(units.mean(axis=0)).max() <= limit / math.sqrt(m)
    second = units.T @ units / DRAWS
    spread = math.sqrt(3 / (m * (m + 2)))  # deviation of a product of two coordinates is at most this
    assert np.abs(second - np.eye(m) / m).max() <= limit * spread
    assert p_value(units[:, 0], lambda t: cosine_cdf(m, t)) > P_FLOOR
    for column in (units[:, 0], units[:, 0] ** 2):
        assert abs(stats.spearmanr(column, radii).statistic) <= limit
    assert abs(stats.spearmanr(radii[1:], radii[:-1]).statistic) <= limit  # one draw says nothing about the next


def test_rejects_noise_without_the_uniform_direction():
    # The power of the direction test: noise along one axis, or the same sign twice, is noticed.
    rng = np.random.default_rng(0)
    axis = np.zeros((DRAWS, 4))
    axis[:, 0] = rng.standard_normal(DRAWS)
    units = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    assert p_value(units[:, 0], lambda t: cosine_cdf(4, t)) < P_FLOOR


@both_sources
def test_laplace_coordinates(source_name):
    flat = draw(ln.Laplace(0.7), (50, 200), source(source_name)).ravel()
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
    flat = draw(ln.Radial(200 * 500, 2, math.sqrt(2.0) * 3.0), (200, 500), source(source_name)).ravel()
    assert_scale(np.abs(flat), lambda scale: lambda x: special.erf(x / (scale * math.sqrt(2.0))), 3.0)
    limit = SIGMAS / math.sqrt(flat.size / 2)
    for lag in (1, 2, 500, 1 << 15, 1 << 16):  # pairs of the transform, rows, and the sampler's chunks
        for power in (1, 2):
            values = flat**power
            assert abs(np.corrcoef(values[lag:], values[:-lag])[0, 1]) <= limit * (1 if lag < 1000 else 1.5)


@both_sources
def test_high_dimensional_radius(source_name):
    # M = 20 000: the l2 radius is Gamma(M), R1SMG's half-normal; the direction has all coordinates of size R/sqrt(M).
    m, stream = 20_000, source(source_name)
    l2 = np.array([np.linalg.norm(draw(ln.Radial(m, 1, 1.0), (m,), stream)) for _ in range(60)])
    assert p_value(l2, stats.gamma(m).cdf) > P_FLOOR
    assert np.abs(l2 / m - 1.0).max() < 0.1
    one = draw(ln.Radial(1, 2, 1.0), (100, 200), stream)
    assert p_value(one.ravel() * math.sqrt(m) / np.linalg.norm(one), stats.norm.cdf) > P_FLOOR


# The sources themselves.


@both_sources
@pytest.mark.parametrize("shape", [0.006, 0.3, 1.0, 2.7, 40.0, 1e4, 5e8])
def test_gamma_variates(source_name, shape):
    stream = source(source_name, seed=5)
    logs = np.array([stream.log_gamma_variate(shape) for _ in range(1500)])
    assert np.isfinite(logs).all()

    def cdf(log_gamma):
        # For tiny shapes and values, I(a, x) = x^a / Gamma(a + 1) to double precision.
        small = log_gamma < -30.0
        regular = special.gammainc(shape, np.exp(np.where(small, 0.0, log_gamma)))
        power = np.exp(shape * np.where(small, log_gamma, 0.0) - math.lgamma(shape + 1.0))
        return np.where(small, power, regular)

    assert p_value(logs, cdf) > P_FLOOR
    assert p_value(logs + 0.5 * logs.std(), cdf) < P_FLOOR  # half a deviation off is noticed


@both_sources
def test_a_tiny_shape_never_gives_a_zero_radius(source_name):
    # k = 0.05, p = 8: G itself underflows once in a hundred draws; the radius must not.
    stream = source(source_name, seed=9)
    law = ln.Radial(0.05, 8, 1.0)
    radii = np.array([np.linalg.norm(draw(law, (3,), stream)) for _ in range(DRAWS)])
    assert radii.min() > 0.0
    assert radii.min() < 1e-20
    assert p_value(np.log(radii), lambda x: tiny_radius_cdf(x)) > P_FLOOR


def tiny_radius_cdf(log_radius):
    a, log_power = 0.05 / 8, 8.0 * np.asarray(log_radius)
    return np.where(
        log_power < -30.0,
        np.exp(a * log_power - math.lgamma(a + 1.0)),
        special.gammainc(a, np.exp(np.minimum(log_power, 50.0))),
    )


@both_sources
def test_words_are_uniform_bits(source_name):
    words = source(source_name).words(20_000)
    assert words.dtype == np.uint64
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(bits - 0.5).max() <= SIGMAS * 0.5 / math.sqrt(20_000)
    assert len(set(words.tolist())) == 20_000


def test_secure_uniforms_are_never_zero_and_reach_one_side():
    stream = SecureSource()
    values = stream.uniforms(100_000)
    assert values.min() > 0.0
    assert values.max() <= 1.0
    assert p_value(values, stats.uniform.cdf) > P_FLOOR


def test_smallest_and_largest_words_stay_finite(monkeypatch):
    stream = SecureSource()
    for word in (0, 2**64 - 1):
        monkeypatch.setattr(
            stream, "words", lambda count, word=word: np.full(count, word, dtype=np.uint64), raising=True
        )
        assert np.isfinite(stream.normals(3)).all()
        assert np.isfinite(stream.exponentials(3)).all()
        assert set(stream.signs(70)) <= {-1.0, 1.0}


def test_fine_uniforms_resolve_the_tail(monkeypatch):
    stream = SecureSource()
    values = np.array([stream._fine_uniform() for _ in range(5000)])
    assert p_value(values, stats.uniform.cdf) > P_FLOOR
    words = iter([0, 0, 1 << 63, 0])  # 128 leading zeros, then a one
    monkeypatch.setattr(stream, "words", lambda count: np.array([next(words)], dtype=np.uint64))
    assert stream._fine_uniform() == 2.0**-129


@pytest.mark.parametrize("count", [1, 2, 3, 65_535, 65_536, 65_537, 131_073])
def test_secure_normals_of_any_count(count):
    values = SecureSource().normals(count)
    assert values.shape == (count,)
    assert np.isfinite(values).all()
    assert len(np.unique(values)) >= count - 1  # a chance collision of two doubles is allowed for
    if count > 1000:
        assert p_value(values, stats.norm.cdf) > P_FLOOR
        assert p_value(values * 1.1, stats.norm.cdf) < P_FLOOR


def test_signs_of_any_count():
    for count in (1, 63, 64, 65, 100):
        assert SecureSource().signs(count).shape == (count,)


def test_secure_sources_never_share_a_stream():
    streams = {SecureSource().words(4).tobytes() for _ in range(200)}
    assert len(streams) == 200
    stream = SecureSource()
    assert stream.words(4).tobytes() != stream.words(4).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_its_own_stream():
    stream = SecureSource()
    stream.words(1)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, stream.words(2).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write_end)
    theirs = struct.unpack("2Q", os.read(read_end, 16))
    os.close(read_end)
    assert theirs != tuple(stream.words(2).tolist())


def test_secure_source_draws_from_the_operating_system(monkeypatch):
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or real(count))
    SecureSource()
    assert asked == [32]


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
    value = np.arange(6.0).reshape(2, 3)
    kept = value.copy()
    experiment = mechanism.release(value, rng=np.random.default_rng(8))
    np.testing.assert_array_equal(value, kept)
    np.testing.assert_allclose(experiment.value - value, mechanism.noise(rng=np.random.default_rng(8)), atol=1e-12)
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
