"""What the engine draws, against SciPy's laws; the grid, the refusals, the certificate, the attack on low bits.

A correct engine fails a test here with probability P = 1e-9; every law must also be told from one 6% wider or narrower
(radii: 15%), where the statistic is far beyond chance.
"""

import json
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app
from lessnoise.mechanism.sampling import grid_step
from lessnoise.noise import (
    GammaRadius,
    Grid,
    Independent,
    Isotropic,
    NormalRadius,
    Real,
    ShellRadius,
    Stream,
    add_noise,
    delta_numeric,
    laplace,
    normal,
    power,
    reference,
    reserved,
    selftest,
    total_delta,
    ziggurat,
)
from lessnoise.noise import (
    exact_arithmetic as exact,
)
from lessnoise.noise.radius import scalars
from tests.helpers import attack

P = 1e-9


def seeded(seed):
    return Stream.of(np.random.default_rng(seed))


def uniform(p):
    return stats.kstest(p, "uniform").pvalue


# Laws.

INDEPENDENT = {
    "gaussian": (normal(), lambda x: special.ndtr(x)),
    "laplace": (laplace(), lambda x: stats.laplace.cdf(x)),
    "power 1.2": (power(1.2), lambda x: stats.gennorm(1.2).cdf(x)),
    "power 3": (power(3.0), lambda x: stats.gennorm(3.0).cdf(x)),
    "power 50": (power(50.0), lambda x: stats.gennorm(50.0).cdf(x)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize(("dtype", "path"), [(np.float64, "numba"), (np.float64, "numpy"), (np.float32, "numba")])
def test_independent_noise_has_its_law(name, dtype, path):
    density, cdf = INDEPENDENT[name]
    form = Independent(density, Real.exactly(1.7))
    bits = 16 if dtype == np.float64 else 12
    x = add_noise(form, np.zeros(100_000, dtype=dtype), seeded(2), bits=bits, path=path).astype(float) / 1.7
    assert uniform(cdf(x)) > P
    assert uniform(cdf(x * 1.06)) < P
    assert uniform(cdf(x / 1.06)) < P
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 6.2 / math.sqrt(x.size)
    assert abs(np.corrcoef(x[1:] ** 2, x[:-1] ** 2)[0, 1]) < 6.5 / math.sqrt(x.size)


RADII = {
    "r1smg": (NormalRadius(Fraction(4)), lambda r: 2 * special.ndtr(r / 2.0) - 1),
    "l2": (GammaRadius(5.0, 1.0, 2.0), lambda r: special.gammainc(5.0, r / 2.0)),
    "small shape": (GammaRadius(0.6, 1.3, 2.0), lambda r: special.gammainc(0.6 / 1.3, (r / 2.0) ** 1.3)),
    "shells": (
        ShellRadius((0.5, 1.0, 3.0), (0.5, 1.5), 5),
        lambda r: np.where(
            r < 1,
            0.25 * (np.clip(r, 0.5, 1) ** 5 - 0.5**5) / (1 - 0.5**5),
            0.25 + 0.75 * (np.clip(r, 1, 3) ** 5 - 1) / (3**5 - 1),
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RADII)
def test_radial_noise_has_its_radius_and_no_direction(name):
    radius, cdf = RADII[name]
    rng, zeros = np.random.default_rng(7), np.zeros(5)
    noise = np.array([add_noise(Isotropic(radius), zeros, Stream.of(rng), bits=24) for _ in range(1200)])
    r = np.linalg.norm(noise, axis=1)
    assert uniform(cdf(r)) > P
    assert uniform(cdf(r * 1.2)) < 1e-4
    assert uniform(cdf(r / 1.2)) < 1e-4
    # One coordinate of a uniform direction in R^5: t^2 ~ Beta(1/2, 2), with either sign.
    t = noise / r[:, None]
    for i in range(5):
        assert uniform(special.betainc(0.5, 2.0, t[:, i] ** 2)) > P
        assert abs(np.sign(t[:, i]).sum()) < 6.2 * math.sqrt(len(t))
    assert np.abs(np.corrcoef(t.T) - np.eye(5)).max() < 6.2 / math.sqrt(len(t))


@pytest.mark.parametrize("radius", [r for r, _ in RADII.values()] + [GammaRadius(1e8, 1.0, 1.0)])
def test_a_radius_lies_in_its_intervals(radius):
    for seed in range(30):
        drawn = radius.draw(scalars(seeded(seed).claim()))
        low, high = drawn.interval(2)
        assert low <= high
        assert abs(Fraction(drawn.value) - low) <= abs(low) * Fraction(drawn.error) * Fraction(101, 100)
        again = drawn.interval(4)
        assert low <= again[0] <= again[1] <= high


@pytest.mark.slow
def test_shell_probabilities_are_the_exact_quotients():
    # Thirds do not add up to 1 in doubles; with a word on the boundary the exact sum decides.
    weights = (1 / 3, 1 / 3, 1 / 3)
    radius = ShellRadius((0.0, 1.0, 2.0, 3.0), weights, 4)
    ends = [Fraction(i, 3) for i in (1, 2)]
    for i, end in enumerate(ends):
        for offset, shell in ((-1, i), (1, i + 1)):
            bits = (end * 2**64).__floor__() + offset + (offset < 0)

            class Fixed:
                first = bits

                def uniform(self, level, bits=bits):
                    size = 2 ** (64 * (1 + level))
                    start = bits * 2 ** (64 * level)
                    return Fraction(start, size), Fraction(start + 1, size)

            assert radius.choose(Fixed()) == shell
    unequal = ShellRadius(np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0]), 2)
    rng = np.random.default_rng(0)
    inner = sum(unequal.draw(scalars(Stream.of(rng).claim())).value < 1.0 for _ in range(2000))
    assert abs(inner - 1500) < 6.2 * math.sqrt(2000 * 0.75 * 0.25)


@pytest.mark.parametrize(
    ("edges", "weights"),
    [
        ((0.0, 1.0), (0.5, 0.5)),
        ((1.0, 0.5), (1.0,)),
        ((-1.0, 0.5), (1.0,)),
        ((0.0, 1.0), (0.0,)),
        ((0.0, math.inf), (1.0,)),
        ((0.0, 1.0, 2.0), (1.0, -0.5)),
        ((0.0, 0.0, 2.0), (1.0, 0.5)),
    ],
)
def test_shells_that_are_none_are_refused(edges, weights):
    with pytest.raises(ln.InvalidInput, match="ascending edges"):
        ShellRadius(edges, weights, 3)


def test_tails_to_six_sigma():
    # Straight into the tail: words of layer 0 beyond r. Only their second words are random.
    density = normal()
    rng, n = np.random.default_rng(3), 300_000
    span = int(density.r / density.widths[0] * 2**53)
    at = rng.integers(span + 1, 2**53, n).astype(np.uint64) << np.uint64(10)
    accepted, _, tails, values = reference._decide(
        density,
        np.zeros(n, np.int64),
        at.view(np.int64).astype(float) * 2.0**-10 * density.steps[0],
        rng.integers(0, 2**64, n, dtype=np.uint64),
        ziggurat.MARGIN,
    )
    assert tails.all()
    x = values[accepted]
    assert uniform(special.ndtr(-x) / special.ndtr(-density.r)) > P
    for t in (5.0, 6.0):
        expected = x.size * special.ndtr(-t) / special.ndtr(-density.r)
        assert abs(np.count_nonzero(x > t) - expected) < 6.2 * math.sqrt(expected) + 6
    # How often a tail value comes: layer 0, beyond r, accepted.
    acceptance = math.sqrt(math.pi / 2) / (1024 * density.widths[0] * math.exp(-(density.r**2) / 2))
    rate = 2.0**-10 * (1 - density.r / density.widths[0]) * accepted.mean() / acceptance
    assert math.isclose(rate, 2 * special.ndtr(-density.r), rel_tol=0.01)


# The grid, and what it refuses.


@given(st.floats(1e-200, 1e200), st.integers(0, 30))
def test_grid_is_a_power_of_two_below_the_deviation(deviation, bits):
    step = Grid.of(deviation, bits=bits).step
    assert math.frexp(step)[0] == 0.5
    assert 2.0**bits <= deviation / step < 2.0 ** (bits + 1)


@pytest.mark.parametrize("path", ["numba", "numpy"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_zero_has_no_sign(path, dtype):
    # -0.0 would come from negative values only: it would be a reachable-set leak of its own.
    forms = [Independent(normal(), Real.exactly(1.7)), Isotropic(GammaRadius(20_000.0, 1.0, 1.0))]
    for form in forms:
        for value in (-0.001, -0.0, 0.0):
            y = add_noise(form, np.full(20_000, value, dtype=dtype), seeded(1), path=path, bits=2)
            assert (y == 0.0).any()
            assert not np.signbit(y[y == 0.0]).any()


@pytest.mark.parametrize("path", ["numba", "numpy"])
@pytest.mark.parametrize(("dtype", "largest"), [(np.float64, 2.0**52), (np.float32, 2.0**23)])
@pytest.mark.parametrize("form", [Independent(normal(), Real.exactly(1.0)), Isotropic(NormalRadius(Fraction(3)))])
def test_values_too_large_for_the_grid_are_refused_before_the_key_is_drawn(path, dtype, largest, form, monkeypatch):
    limit = largest * 2.0**-8
    fine = np.array([limit, 0.0, -limit], dtype=dtype)
    assert np.isfinite(add_noise(form, fine, Stream.secure(), path=path)).all()
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    for bad, words in (
        (np.nextafter(dtype(limit), dtype(np.inf)), "clip the value to a public bound"),
        (dtype(np.nan), "not finite"),
        (dtype(-np.inf), "not finite"),
    ):
        value = np.array([0.0, bad, 1.0], dtype=dtype)
        for out in (None, value.copy(), np.zeros(3, dtype=dtype)):
            kept = None if out is None else out.copy()
            with pytest.raises(ln.InvalidInput, match=rf"value\[1\].*{words}"):
                add_noise(form, value, Stream.of(rng), path=path, out=out)
            if out is not None:
                np.testing.assert_array_equal(out, kept)
    assert rng.bit_generator.state == before


def test_an_error_in_the_middle_leaves_no_bare_noise(monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reference, "release", fail)
    out = np.zeros(4)
    with pytest.raises(KeyboardInterrupt):
        add_noise(Independent(normal(), Real.exactly(1.0)), np.ones(4), Stream.secure(), out=out, path="numpy")
    assert np.isnan(out).all()


@pytest.mark.parametrize("out", [np.zeros(4), np.zeros(3, np.float32), np.zeros((3, 2)).T[0][::1], np.zeros(6)[::2]])
def test_an_unsuitable_out_is_refused(out):
    with pytest.raises(ln.InvalidInput, match="out has shape"):
        add_noise(Independent(normal(), Real.exactly(1.0)), np.ones((3,)), Stream.secure(), out=np.atleast_2d(out))


def test_deviations_out_of_range_are_refused():
    for scale in (1e-280, 1e280):
        with pytest.raises(ln.InvalidInput, match="standard deviation"):
            ln.Mechanism("x", ln.Laplace(scale), (2,), 1.0).noise()
    with pytest.raises(ln.InvalidInput, match="float32"):
        ln.Mechanism("x", ln.Laplace(1e-40), (2,), 1.0).release(np.zeros(2, np.float32))
    with pytest.raises(ln.InvalidInput, match=r"k=0\.0001"):
        ln.Mechanism("x", ln.Radial(1e-4, 2, 1.0), (2,), 1.0).noise()


def test_extra_memory_is_small():
    n = 1 << 21
    value = np.zeros(n)
    for form in (Independent(normal(), Real.exactly(1.0)), Isotropic(NormalRadius(Fraction(5)))):
        add_noise(form, value[: 1 << 18], Stream.secure(), path="numba")
        for own in (None, value):
            tracemalloc.start()
            out = add_noise(form, value, Stream.secure(), path="numba", threads=2, out=own)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak - (out.nbytes if own is None else 0) < 4 * 2**20


# What the certificate says.


def mechanisms():
    target = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0, "shape": (4, 3)}
    return [
        ln.analytic_gaussian(**target),
        ln.l2_mechanism(**target),
        ln.r1smg(**target, calibration="exact"),
        ln.radial(**target, k=7, p=1.5),
        ln.mgm(**target, row_scales=[1, 1, 2, 3]),
        ln.generalized_gaussian(**target, p=1.5),
        ln.correlated_gaussian(epsilon=1.0, delta=1e-6, shape=(4, 3)),
        ln.discrete_gaussian(**target),
        ln.mvg(**target, calibration="exact"),
    ]


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: m.name)
def test_delta_numeric_is_included_and_calibrated_for(mechanism):
    release = mechanism.release(np.zeros(mechanism.shape, dtype=int))
    certificate = release.certificate
    assert certificate.delta_numeric == delta_numeric(1.0, 12)
    assert 0.0 < certificate.delta_numeric < 1e-30
    exact_sum = Fraction(certificate.exact.upper) + Fraction(certificate.delta_numeric)
    assert exact_sum <= Fraction(certificate.guarantee.delta) <= Fraction(1e-6)
    assert certificate.claim_holds
    assert any("delta_numeric" in text for text in certificate.assumptions)
    assert ln.Certificate.from_dict(json.loads(certificate.to_json())) == certificate
    assert certificate.grid == (1.0 if mechanism.law.integer else grid_step(mechanism.law, mechanism.shape))
    cells = release.value / certificate.grid
    np.testing.assert_array_equal(cells, np.rint(cells))


def test_float32_stays_float32_on_its_grid():
    mechanism = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=(40, 5))
    value = np.linspace(-3, 3, 200, dtype=np.float32).reshape(40, 5)
    release = mechanism.release(value, np.random.default_rng(1))
    assert release.value.dtype == np.float32
    wide = mechanism.release(value.astype(np.float64), np.random.default_rng(1))
    np.testing.assert_array_equal(release.value, wide.value)
    own = value.copy()
    assert np.shares_memory(mechanism.release(own, np.random.default_rng(1), out=own).value, own)
    np.testing.assert_array_equal(own, wide.value)


@given(st.floats(1e-12, 0.5), st.floats(0.0, 20.0), st.integers(1, 10**9))
def test_what_is_reserved_is_enough(delta, epsilon, count):
    numeric, own = delta_numeric(epsilon, count), reserved(delta, epsilon, count)
    if numeric <= delta * 2.0**-10:
        assert Fraction(own) + Fraction(numeric) <= Fraction(total_delta(own, numeric)) <= Fraction(delta)
    assert own <= delta
    blocks = 2 * count + 2048
    assert numeric >= min(blocks * (blocks - 1) / 2 / 2.0**128 * (1.0 + math.exp(epsilon)) * (1 - 1e-12), 1.0)


def test_a_target_beyond_the_cipher_is_refused_at_release():
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-33, sensitivity=1, shape=10)
    assert mechanism.check().holds
    with pytest.raises(ln.InvalidInput, match="delta=1e-33 is too small"):
        mechanism.release(np.zeros(10))
    pure = ln.laplace(epsilon=1, sensitivity=1, shape=10).release(np.zeros(10)).certificate
    assert pure.claim_holds
    assert pure.exact.upper == 0.0
    assert 0.0 < pure.guarantee.delta < 1e-30


def test_the_drawn_scale_is_the_laws_own():
    # scale/sqrt(2) is irrational: the engine works with the real number, between its two neighbours among the doubles.
    sigma = Real.root(Fraction(1.3) ** 2 / 2)
    low, high = sigma.interval(1)
    assert low * low <= Fraction(1.3) ** 2 / 2 <= high * high
    assert 0 < high - low < Fraction(1, 2**180)
    assert abs(Fraction(sigma.value) - low) <= low * Fraction(sigma.error)
    assert Real.root(Fraction(9, 4)).interval(1) == (Fraction(3, 2), Fraction(3, 2))
    assert exact.nearest_integer(Fraction(1, 4), Fraction(1, 2)) is None


# The attack on low bits.


def ours(value, trials):
    return add_noise(Independent(normal(), Real.exactly(1.0)), np.full(trials, value), Stream.secure())


def plain(value, trials):
    return value + np.random.default_rng().standard_normal(trials)


@pytest.mark.parametrize("neighbour", [1.0, 1.0 / 3.0, 0.1])
def test_the_attack_succeeds_on_plain_noise_and_fails_on_ours(neighbour):
    trials = 50_000
    broken = attack.advantage(plain(0.0, trials), plain(neighbour, trials), neighbour, 1.0)
    assert broken["proved"] > 0.1
    assert broken["false"] == 0.0
    assert broken["beyond"] > 0.1
    safe = attack.advantage(ours(0.0, trials), ours(neighbour, trials), neighbour, 1.0)
    assert safe["beyond"] == 0.0
    # Whatever the flag says of our outputs, it says of both values alike: no output is proved impossible.
    assert attack.largest_low_digit_difference(ours(0.0, trials), ours(neighbour, trials), 1.0) < 8.0
    assert attack.largest_low_digit_difference(plain(0.0, trials), plain(neighbour, trials), 1.0) == math.inf


def test_the_same_attack_on_a_release():
    # Value 1, its neighbour 0, through the public interface: every cell that one gives, the other gives too.
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=60_000)
    outputs = [mechanism.release(np.full(60_000, v)).value for v in (0.0, 1.0 / 3.0)]
    assert attack.advantage(*outputs, 1.0 / 3.0, mechanism.standard_deviation)["beyond"] == 0.0


# The self-test.


@pytest.mark.slow
def test_selftest_passes_and_sees_faults():
    assert all(c.passed for c in selftest.run_selftest(seconds=600.0, values=1 << 24))
    for fault in (
        lambda x: x * 1.003,
        lambda x: np.clip(x, -4.0, 4.0),
        lambda x: x + 0.003,
        lambda x: np.where(np.abs(x) > 3, x * 1.1, x),
    ):
        assert not all(c.passed for c in selftest.run_selftest(seconds=600.0, values=1 << 24, fault=fault))


@pytest.mark.slow
def test_selftest_command_reports_and_exits(monkeypatch):
    result = CliRunner().invoke(app, ["selftest", "--seconds", "0.2", "--json"])
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["passed"] is True
    assert {"moment 2", "Kolmogorov-Smirnov", "outputs off the grid"} <= {test["name"] for test in report["tests"]}
    text = CliRunner().invoke(app, ["selftest", "--seconds", "0.2"])
    assert "passed" in text.stdout
    monkeypatch.setattr(selftest, "_words", lambda: [selftest.Check("equal words", 1.0, 0.0)])
    failed = CliRunner().invoke(app, ["selftest", "--seconds", "0.2"])
    assert failed.exit_code == 1
    assert "FAIL" in failed.stdout


def test_selftest_without_compiled_code(monkeypatch):
    monkeypatch.setattr(selftest, "compiled_kernels", lambda group: None)
    checks = selftest.run_selftest(seconds=0.3, values=1 << 20)
    assert all(c.passed for c in checks)
