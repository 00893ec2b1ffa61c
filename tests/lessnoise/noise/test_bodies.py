"""Uniform points of bodies: one output on every path, the law of the points and of the radius, what is refused.

A correct engine fails a test of a law with probability P = 1e-9 at most.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import lessnoise as ln
from lessnoise.noise import (
    Behind,
    GammaRadius,
    Grid,
    ListedRadius,
    NormalRadius,
    Real,
    StepRadius,
    Stream,
    UniformBody,
    add_noise,
    bodies,
    job,
    prepare_streamed,
    reference,
    selftest,
    uniform,
    ziggurat,
)
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise.radius import scalars
from lessnoise.noise.staircase import _leading_zeros, _steps

P = 1e-9
DTYPES = (np.float64, np.float32)


def seeded(seed):
    return Stream.of(np.random.default_rng(seed))


def factors(n):
    return tuple(np.random.default_rng(5).uniform(0.3, 4.0, n))


def forms(n):
    return {
        "cube": UniformBody(GammaRadius(n + 1.0, 1.0, 0.3)),
        "cube steps": UniformBody(StepRadius(1.5, 0.3, 2.0, n)),
        "cube factors": UniformBody(GammaRadius(n + 1.0, 1.0, 0.3), factors=factors(n)),
        "cube listed": UniformBody(ListedRadius((0.7, 2.0, 5.0), (0.25, 0.0, 1.0)), factors=(1.0,) * n),
        "corner": UniformBody(GammaRadius(n + 1.0, 1.0, 0.3), corner=True),
        "corner signed radius": UniformBody(NormalRadius(Fraction(5)), corner=True),
        "corner steps": UniformBody(StepRadius(0.4, 1.0, 1.0, n), corner=True),
        "corner factors": UniformBody(StepRadius(0.4, 0.0, 1.0, n), corner=True, factors=factors(n)),
    }


FORMS = list(forms(1))


# Paths.


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("n", [1, 2, 7, 150])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_numpy_and_exact_agree_bit_for_bit(name, n, dtype):
    form = forms(n)[name]
    value = np.random.default_rng(1).normal(size=n).astype(dtype) * dtype(Grid.of(form.deviation(n)).step * 50)
    for seed in range(3 if n < 10 else 1):
        for bits in (8, 40 if dtype == np.float64 else 18):  # with fine grids nearly all is decided exactly
            outputs = [
                add_noise(form, value, seeded(seed), path=path, margin=margin, bits=bits)
                for path, margin in (("numba", ziggurat.MARGIN), ("numpy", ziggurat.MARGIN), ("numpy", math.inf))
            ]
            assert outputs[0].dtype == dtype
            np.testing.assert_array_equal(outputs[0], outputs[1])
            np.testing.assert_array_equal(outputs[0], outputs[2])
            for path in ("numba", "numpy"):
                own = value.copy()
                assert np.shares_memory(add_noise(form, own, seeded(seed), path=path, bits=bits, out=own), own)
                np.testing.assert_array_equal(outputs[0], own)


@pytest.mark.slow
@pytest.mark.parametrize("corner", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_many_values_on_the_exact_side(corner, own):
    n = 20_000  # two blocks
    form = UniformBody(StepRadius(1.0, 0.5, 1e-4, n), corner, factors(n) if own else ())
    value = np.random.default_rng(1).normal(size=n)
    fast = add_noise(form, value, seeded(1), path="numba")
    np.testing.assert_array_equal(fast, add_noise(form, value, seeded(1), path="numpy", margin=math.inf))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_in_place_and_streams_do_not_matter(name, dtype, monkeypatch):
    n = 150_001
    form = forms(n)[name]
    value = (np.random.default_rng(1).normal(size=n) / 100).astype(dtype)
    first = add_noise(form, value, seeded(3), path="numpy")
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(first, add_noise(form, value, seeded(3), path="numba", threads=threads))
    own = value.copy()
    add_noise(form, own, seeded(3), path="numba", out=own)
    np.testing.assert_array_equal(first, own)
    monkeypatch.setattr(ln.noise.core, "_HELD", 2)  # so that there are several windows
    parts = []
    draw = prepare_streamed(form, (n,), np.dtype(dtype), seeded(3), lambda start, count: value[start : start + count])
    draw(lambda part: parts.append(part.copy()))
    np.testing.assert_array_equal(first, np.concatenate(parts))
    assert not np.array_equal(first, add_noise(form, value, seeded(4)))


@pytest.mark.slow
@pytest.mark.parametrize("corner", [False, True])
def test_threads_share_a_radius_on_the_exact_side(corner):
    # A grid so fine that every block has doubts; the radius and y_0 are lengthened by whichever thread comes first.
    n = 140_000
    form = UniformBody(GammaRadius(n + 1.0, 1.0, 1e-4), corner)
    first = add_noise(form, np.zeros(n), seeded(1), path="numba", threads=1, bits=32)
    np.testing.assert_array_equal(first, add_noise(form, np.zeros(n), seeded(1), path="numba", threads=3, bits=32))


def test_kernels_meet_no_doubt_in_ordinary_use(monkeypatch):
    slow, original = [], job.Job.slowly
    monkeypatch.setattr(job.Job, "slowly", lambda self, *rest: (slow.append(1), original(self, *rest))[1])
    for name, form in forms(1 << 17).items():
        add_noise(form, np.zeros(1 << 17), seeded(0), path="numba")
        assert not slow, name


def test_numbers_behind_the_values():
    for form in (
        UniformBody(GammaRadius(7.0, 1.0, 2.0), True),
        UniformBody(StepRadius(1.0, 0.5, 1.0, 6), True, (2.0,) * 6),
    ):
        numbers = [Fraction(10 * k, 7) for k in range(6)]
        behind = Behind(2.0, numbers.__getitem__)
        near = np.array([float(number) for number in numbers])
        for seed in range(20):
            wanted = add_noise(form, near, seeded(seed), margin=math.inf, behind=behind)
            for path in ("numba", "numpy"):
                np.testing.assert_array_equal(
                    add_noise(form, near + 1.5, seeded(seed), path=path, behind=behind), wanted
                )


# The law of the points: a known radius is divided out.


class Fixed:
    """A radius that is not random."""

    def __init__(self, radius):
        self.radius = radius

    def draw(self, words):
        return Real.exactly(self.radius)

    def mean_square(self):
        return self.radius**2


def points(n, trials, corner, path="numba", own=()):
    rng, form, zeros = np.random.default_rng(11), UniformBody(Fixed(3.0), corner, own), np.zeros(n)
    return np.array([add_noise(form, zeros, Stream.of(rng), bits=20, path=path) for _ in range(trials)]) / 3.0


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 10])
def test_cube_points_are_uniform(n):
    x = points(n, 10_000 // n, corner=False)
    assert np.abs(x).max() <= 1.0 + 2.0**-20
    flat = x.reshape(-1)
    assert stats.kstest(flat, stats.uniform(-1.0, 2.0).cdf).pvalue > P
    assert stats.kstest(flat * 1.12, stats.uniform(-1.0, 2.0).cdf).pvalue < P
    if n > 1:
        assert np.abs(np.corrcoef(x.T) - np.eye(n)).max() < 6.8 / math.sqrt(len(x))
        assert stats.kstest(np.abs(x).max(axis=1) ** n, "uniform").pvalue > P


def spread(x):
    """The corner's norm."""
    return np.maximum(x.max(axis=1), 0.0) - np.minimum(x.min(axis=1), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 10])
def test_corner_points_are_uniform(n):
    x = points(n, 3_000, corner=True)
    size = spread(x)
    assert size.max() <= 1.0 + 2.0**-19
    assert stats.kstest(size**n, "uniform").pvalue > P  # |x|^M is uniform
    assert stats.kstest((size / size.max() * 0.97) ** n, "uniform").pvalue < P or n == 1
    for i in range(n):
        assert stats.kstest(x[:, i], lambda t: entry_cdf(t, n)).pvalue > P
    # Which of the M + 1 coordinates is the least: each as often.
    least = np.argmin(np.column_stack([np.zeros(len(x)), x]), axis=1)
    counts = np.bincount(least, minlength=n + 1)
    assert stats.chisquare(counts).pvalue > P
    # Second moments: (M + 3)/(6 (M + 1)), and half of it for two entries.
    square = (n + 3) / (6 * (n + 1))
    moments = x.T @ x / len(x)
    wanted = square * (0.5 * np.eye(n) + 0.5)
    assert (
        np.abs(moments - wanted).max() < 7.0 / math.sqrt(len(x)) * 0.6
    )  # a product of two is below 1, its deviation 0.6


def entry_cdf(t, n):
    """x_i = y_i - y_0: U with weight 1/(n+1), -U likewise, the difference of two uniforms with the rest."""
    t = np.clip(t, -1.0, 1.0)
    up, down = np.clip(t, 0.0, 1.0), np.clip(1.0 + t, 0.0, 1.0)
    triangle = np.where(t < 0.0, (1.0 + t) ** 2 / 2.0, 1.0 - (1.0 - t) ** 2 / 2.0)
    return (up + down + (n - 1) * triangle) / (n + 1)


@pytest.mark.slow
def test_corner_points_against_rejection_from_the_cube():
    n, rng = 3, np.random.default_rng(0)
    proposals = rng.uniform(-1.0, 1.0, (120_000, n))
    inside = proposals[spread(proposals) <= 1.0]
    x = points(n, 5_000, corner=True)
    for direction in ([1, 1, 1], [1, -1, 0], [2, -1, 3], [0, 0, 1]):
        assert stats.ks_2samp(x @ direction, inside @ direction).pvalue > P
    assert len(inside) / len(proposals) == pytest.approx((n + 1) / 2**n, abs=0.01)  # the corner's volume is M + 1


def test_factors_multiply_the_same_points():
    n, own = 5, (0.25, 1.0, 3.0, 0.7, 10.0)
    for corner in (False, True):
        plain, scaled = points(n, 300, corner), points(n, 300, corner, own=own)
        np.testing.assert_allclose(scaled, plain * own, atol=1e-5)
        assert UniformBody(Fixed(3.0), corner, (1.0,) * n).deviation(n) == UniformBody(Fixed(3.0), corner).deviation(n)
    alike = add_noise(UniformBody(Fixed(3.0), True, (1.0,) * n), np.zeros(n), seeded(1))
    np.testing.assert_array_equal(alike, add_noise(UniformBody(Fixed(3.0), True), np.zeros(n), seeded(1)))


@pytest.mark.slow
def test_noise_with_a_gamma_radius_has_the_exponential_density_of_its_norm():
    # exp(-|x|): |x| ~ Gamma(M).
    n, rng = 4, np.random.default_rng(2)
    for corner in (False, True):
        form = UniformBody(GammaRadius(n + 1.0, 1.0, 1.0), corner)
        x = np.array([add_noise(form, np.zeros(n), Stream.of(rng), bits=20) for _ in range(2000)])
        size = spread(x) if corner else np.abs(x).max(axis=1)
        assert stats.kstest(special.gammainc(n, size), "uniform").pvalue > P
        assert stats.kstest(special.gammainc(n, size * 1.15), "uniform").pvalue < 1e-6
        square = float(np.mean(x**2))
        assert square == pytest.approx(form.deviation(n) ** 2, rel=0.25)


def test_the_uniform_density_needs_no_second_word():
    density, reader = uniform(), seeded(1).claim().reader()
    found = reference.sample(density, reader, 0, 5000, math.inf)
    np.testing.assert_array_equal(found.positions, np.arange(5000))
    assert (found.seconds == -1).all()
    assert density.deviation == pytest.approx(1 / math.sqrt(3))
    for index in range(0, 5000, 500):
        low, high = found.draw(density, reader, 0, index).interval(1)
        assert -1 <= low < high <= 1
        assert abs(Fraction(float(found.x[index])) - low) < Fraction(density.error)


def test_a_word_can_be_fixed_for_all_readers_and_levels():
    free, held = seeded(1).claim(), seeded(1).claim()
    held.fix(3, 7, 1 << 63)
    for level in (0, 1, 2):
        a, b = (stream.reader().words(level, 3, 4, 6)[:6].copy() for stream in (free, held))
        assert b[3] == (0 if level else 1 << 63)
        a[3] = b[3]
        np.testing.assert_array_equal(a, b)
        assert held.reader().word(level, 3, 7) == b[3]
        assert held.reader().word(level, 2, 7) == free.reader().word(level, 2, 7)


def test_an_index_is_uniform_and_decided_exactly():
    class Bits:
        def __init__(self, first, rest):
            self.first, self.rest = first, rest

        def uniform(self, level):
            bits = (self.first << 64 * level) + (self.rest << 64 * (level - 1) if level else 0)
            return Fraction(bits, 2 ** (64 * (level + 1))), Fraction(bits + 1, 2 ** (64 * (level + 1)))

    third = 2**64 // 3  # U begins with the digits of 1/3: the next ones decide
    assert bodies._uniform_index(Bits(third, 0), 3) == 0
    assert bodies._uniform_index(Bits(third, 2**64 - 1), 3) == 1
    assert bodies._uniform_index(Bits(2**64 - 1, 2**64 - 1), 3) == 2
    assert bodies._uniform_index(Bits(2**63, 0), 2) == 1
    words = scalars(seeded(0).claim())
    counts = np.bincount([bodies._uniform_index(next(words), 7) for _ in range(7000)], minlength=7)
    assert stats.chisquare(counts).pvalue > P


# The staircase's radius.

STAIRS = [(1.0, 0.3, 5), (3.0, 1.0, 1), (8.0, 0.1, 2), (0.05, 0.5, 3), (2.0, 0.0, 10), (40.0, 0.5, 100)]


def weights(rate, share, power, last):
    """In exact integers' logarithms, independently: e^(-rate j) (share + j)^power."""
    j = np.arange(last)
    with np.errstate(divide="ignore"):
        logs = power * np.log(share + j) - rate * j
    w = np.exp(logs - logs.max())
    return w / w.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "share", "power"), STAIRS)
def test_step_radii_have_their_weights(rate, share, power):
    radius, words = StepRadius(rate, share, 2.0, power), scalars(seeded(4).claim())
    trials = 4000
    seen = np.array([radius.step(words) for _ in range(trials)])
    p = weights(rate, share, power, int(60 * (power + 5) / rate) + 60)
    edges = np.unique(np.searchsorted(np.cumsum(p), np.linspace(0.0, 1.0, 21)[1:-1]))  # cells of 5% or more
    groups = np.searchsorted(edges, np.arange(p.size))
    expected = np.bincount(groups, weights=p) * trials
    found = np.bincount(np.searchsorted(edges, seen), minlength=expected.size)
    keep = expected > 5.0
    expected, found = np.append(expected[keep], expected[~keep].sum()), np.append(found[keep], found[~keep].sum())
    if expected[-1] < 1.0:
        assert found[-1] < 30
        expected, found = expected[:-1], found[:-1]
    if expected.size > 1:
        chi = float(((found - expected) ** 2 / expected).sum())
        assert stats.chi2(expected.size - 1).sf(chi) > P
    squares = (share + np.arange(p.size)) ** 2 * 4.0
    assert radius.mean_square() == pytest.approx(float(p @ squares), rel=1e-9)
    error = math.sqrt(float(p @ squares**2) - float(p @ squares) ** 2) / math.sqrt(trials)
    assert abs(np.mean((share + seen) ** 2 * 4.0) - float(p @ squares)) <= 7.0 * error + 1e-6


@pytest.mark.parametrize(("rate", "share", "power"), [*STAIRS, (1e-3, 0.5, 40), (0.7, 0.2, 10**6), (1e-9, 1.0, 7)])
def test_the_envelope_covers_the_weights(rate, share, power):
    steps = _steps(rate, share, power)
    size = 1 << steps.bits
    near = [steps.mode + d for d in (-2, -1, 1, 2)]
    far = [steps.mode + side * k * size for side in (-1, 1) for k in (1, 2, 3, 10)]
    for j in near + far:
        if j < steps.first:
            continue
        k = abs(j - steps.mode) // size
        assert steps.log_ratio(j, steps.mode, 2)[1] < -k * Fraction(69, 100)
    assert steps.bits == 0 or not (steps.halved(steps.mode + size // 2) and steps.halved(steps.mode - size // 2))


def test_floats_and_intervals_accept_alike(monkeypatch):
    rng, told = np.random.default_rng(0), 0
    for rate, share, power in STAIRS:
        steps, words = _steps(rate, share, power), scalars(seeded(1).claim())
        for _ in range(60):
            word, k = next(words), int(rng.geometric(0.5)) - 1
            j = steps.mode + int(rng.integers(k << steps.bits, (k + 1) << steps.bits))
            verdict = steps._float_accepts(j, k, word.first * 2.0**-64)
            with monkeypatch.context() as patched:
                patched.setattr(type(steps), "_float_accepts", lambda *_: None)
                exactly = steps.accepts(j, k, word)
            assert verdict in (exactly, None)
            told += verdict is not None
    assert told > 300


@pytest.mark.slow
def test_a_staircase_in_one_dimension():
    # Geng & Viswanath (2014): density e^(-eps j) on (share + j - 1, share + j], the noise of the staircase mechanism.
    rate, share, rng = 1.2, 0.4, np.random.default_rng(3)
    form = UniformBody(StepRadius(rate, share, 1.0, 1))
    x = np.abs([add_noise(form, np.zeros(1), Stream.of(rng), bits=20)[0] for _ in range(6000)])
    edges = np.concatenate([[0.0], share + np.arange(60)])
    mass = np.exp(-rate * np.arange(60)) * np.diff(edges)
    cdf = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    assert stats.kstest(x, lambda t: np.interp(t, edges, cdf)).pvalue > P
    assert stats.kstest(x * 1.15, lambda t: np.interp(t, edges, cdf)).pvalue < P


@pytest.mark.parametrize(
    "settings", [(1e-9, 0.5, 1.0, 1), (1e300, 0.0, 1.0, 3), (1e-300, 1.0, 1.0, 3), (1.0, 0.5, 1e-300, 10**9)]
)
def test_extreme_steps_are_drawn(settings):
    radius = StepRadius(*settings)
    for seed in range(5):
        drawn = radius.draw(scalars(seeded(seed).claim()))
        low, high = drawn.interval(1)
        assert low == high > 0
        assert (low / Fraction(settings[2]) - Fraction(settings[1])).denominator == 1
        assert abs(Fraction(drawn.value) - low) <= low * Fraction(max(drawn.error, 2.0**-53))


def test_leading_zeros_go_on_in_the_next_level():
    class Bits:
        def bits(self, level):
            return (0, 0, 5)[level] << 64 * max(level - 2, 0)

    assert _leading_zeros(Bits()) == 128 + 61
    assert _leading_zeros(exact.Word(type("R", (), {"word": lambda *_: 1 << 62})(), 0, 0)) == 1


def test_listed_radii_have_their_probabilities():
    radius, words = ListedRadius((3.0, 1.0, 0.1, 2.0), (1 / 3, 1 / 3, 0.0, 1.0)), scalars(seeded(2).claim())
    drawn = [radius.draw(words).value for _ in range(5000)]
    counts = np.array([drawn.count(r) for r in (3.0, 1.0, 0.1, 2.0)])
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3]], np.array([0.2, 0.2, 0.6]) * 5000).pvalue > P
    assert radius.mean_square() == pytest.approx(0.2 * 9 + 0.2 + 0.6 * 4)


@pytest.mark.slow
def test_listed_radii_make_a_density_of_steps():
    # In the plane, heights 3, 2, 0.5 up to |x| = 1, 2, 4: weights (f_i - f_(i+1)) r_i^2.
    radii, heights, rng = np.array([1.0, 2.0, 4.0]), np.array([3.0, 2.0, 0.5]), np.random.default_rng(1)
    for corner in (False, True):
        form = UniformBody(ListedRadius(radii, -np.diff(heights, append=0.0) * radii**2), corner)
        x = np.array([add_noise(form, np.zeros(2), Stream.of(rng), bits=16) for _ in range(3000)])
        size = spread(x) if corner else np.abs(x).max(axis=1)
        mass = heights * np.diff(radii**2, prepend=0.0)
        cdf = np.append(0.0, np.cumsum(mass) / mass.sum())
        assert stats.kstest(size, lambda t, cdf=cdf: np.interp(t**2, np.append(0.0, radii**2), cdf)).pvalue > P
        assert stats.kstest(size * 1.2, lambda t, cdf=cdf: np.interp(t**2, np.append(0.0, radii**2), cdf)).pvalue < 1e-6


@pytest.mark.parametrize(
    ("radii", "weights"),
    [((), ()), ((1.0,), (0.0,)), ((0.0,), (1.0,)), ((1.0, 2.0), (1.0,)), ((math.inf,), (1.0,)), ((1.0,), (-1.0,))],
)
def test_lists_that_are_none_are_refused(radii, weights):
    with pytest.raises(ln.InvalidInput, match="radii and weights do not describe"):
        ListedRadius(radii, weights)


# What is refused.


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("corner", [False, True])
def test_scales_out_of_range_are_refused_before_the_key_is_drawn(scale, corner):
    for radius in (GammaRadius(3.0, 1.0, scale), StepRadius(1.0, 0.5, scale, 2)):
        rng = np.random.default_rng(0)
        before = rng.bit_generator.state
        with pytest.raises(ln.InvalidInput, match="standard deviation"):
            add_noise(UniformBody(radius, corner), np.zeros(2), Stream.of(rng))
        assert rng.bit_generator.state == before


@pytest.mark.parametrize("scale", [1e-130, 1e130])
def test_large_and_small_scales_are_drawn_exactly(scale):
    for corner in (False, True):
        for own in ((), (1.0, 1e-9, 1e9)):
            form = UniformBody(StepRadius(1.0, 0.5, scale, 3), corner, own)
            for seed in range(10):
                a, b = (
                    add_noise(form, np.zeros(3), seeded(seed), path=path, margin=margin)
                    for path, margin in (("numba", ziggurat.MARGIN), ("numpy", math.inf))
                )
                np.testing.assert_array_equal(a, b)
                assert np.isfinite(a).all()


def test_factors_that_are_none_are_refused():
    radius = StepRadius(1.0, 0.5, 1.0, 3)
    for bad in ((0.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (math.nan, 1.0, 1.0), (math.inf, 1.0, 1.0)):
        with pytest.raises(ln.InvalidInput, match="factors are not all above 0"):
            UniformBody(radius, factors=bad)
    for count in (2, 4):
        with pytest.raises(ln.InvalidInput, match=f"factors has length=3, but the value has {count} entries"):
            add_noise(UniformBody(radius, factors=(1.0, 2.0, 3.0)), np.zeros(count), seeded(1))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ((0.0, 0.5, 1.0, 1), "rate=0.0"),
        ((math.inf, 0.5, 1.0, 1), "rate=inf"),
        ((1.0, -0.1, 1.0, 1), "share=-0.1"),
        ((1.0, 1.5, 1.0, 1), "share=1.5"),
        ((1.0, math.nan, 1.0, 1), "share=nan"),
        ((1.0, 0.5, 0.0, 1), "width=0.0"),
        ((1.0, 0.5, 1.0, 0), "power=0"),
        ((1.0, 0.5, 1.0, 1.5), "power=1.5"),
    ],
)
def test_steps_that_are_none_are_refused(settings, name):
    with pytest.raises(ln.InvalidInput, match=f"{name} makes no staircase"):
        StepRadius(*settings)


def test_the_self_test_compares_the_paths_of_bodies():
    checks = {check.name: check for check in selftest._paths()}
    for name in ("cube", "corner"):
        assert checks[f"{name}, values that differ between paths"].passed
