"""Discrete power noise: its curve by brute force, its two ends that have names, its sampler against its law."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.mechanism import DiscretePower, draw_noise
from lessnoise.mechanism.curve import delta_of, epsilon_of, pure_epsilon_of, worst_of
from lessnoise.mechanism.families import block_sampler as blocks
from lessnoise.mechanism.families import discrete_power as power
from lessnoise.mechanism.families import power_blocks
from lessnoise.mechanism.families.discrete_sampler import DiscreteGaussian
from lessnoise.mechanism.families.geometric import Geometric
from lessnoise.mechanism.families.power_blocks import PowerBlocks
from lessnoise.mechanism.losses import quantile, raw_moment
from lessnoise.noise import Stream

POWERS, SCALES = [1.0, 1.3, 1.7, 2.0], [0.3, 1.0, 5.0, 40.0, 3000.0]
NEVER = 1e-9  # no p-value of a true hypothesis may fall below this
SURELY = 1e-30  # every p-value of a false one does
ALL_ONES = 2**64 - 1


def gaussian_of(scale):
    variance = Fraction(scale) ** 2 / 2
    return DiscreteGaussian(variance.numerator, variance.denominator)


def brute_force(law, change, epsilon, reach=None):
    """Delta of one entry, term by term from the probabilities of all integers."""
    reach = math.ceil(law.scale * 60.0 ** (1.0 / law.p)) + change + 2 if reach is None else reach
    weights = np.exp(-(np.abs(np.arange(-reach, reach + 1.0) / law.scale) ** law.p))
    weights /= weights.sum()
    still, moved = np.pad(weights, (0, change)), np.pad(weights, (change, 0))
    return math.fsum(np.maximum(still - math.exp(epsilon) * moved, 0.0))


def precise(law, change, epsilon):
    """The same in 60 digits."""
    with mp.workdps(60):
        p, scale = mp.mpf(law.p), mp.mpf(law.scale)
        reach = math.ceil(law.scale * 800.0 ** (1.0 / law.p)) + change + 2
        weights = {k: mp.exp(-((mp.mpf(k) / scale) ** p)) for k in range(reach + change + 1)}
        total = 1 + 2 * mp.fsum(weights[k] for k in range(1, reach))
        gains = (weights[abs(k)] - mp.exp(epsilon) * weights[abs(k + change)] for k in range(-reach, reach))
        return mp.fsum(gain for gain in gains if gain > 0) / total


def p_value(values, law):
    """Chi-square of the counts in cells of equal integers or more, two-sided: too good a fit is refused as well."""
    from scipy.stats import chi2

    reach = math.ceil(law.scale * 50.0 ** (1.0 / law.p)) + 2
    width = max(1, round(law.scale / 8))
    weights = np.exp(-(np.abs(np.arange(-reach, reach + 1.0) / law.scale) ** law.p))
    cells = (np.arange(-reach, reach + 1) + reach) // width
    expected = np.bincount(cells, weights / weights.sum()) * len(values)
    seen = np.bincount((np.clip(values, -reach, reach) + reach) // width, minlength=len(expected)).astype(float)
    large = expected > 20.0
    expected, seen = (np.append(x[large], x[~large].sum()) for x in (expected, seen))
    if expected[-1] < 5.0:
        expected, seen = (np.append(x[:-2], x[-2:].sum()) for x in (expected, seen))
    if len(expected) == 1:
        return 1.0
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return 2.0 * min(chi2.sf(statistic, len(expected) - 1), chi2.cdf(statistic, len(expected) - 1))


class Script:
    """A source that says these words, and then fails."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


# The law.


@pytest.mark.parametrize(("p", "scale"), list(itertools.product(POWERS, SCALES)))
def test_probabilities_add_up(p, scale):
    found = power.probabilities(DiscretePower(p, scale), math.ceil(scale * 45.0 ** (1.0 / p)) + 2)
    assert found[0] + 2.0 * found[1:].sum() == pytest.approx(1.0, rel=1e-12)
    assert np.all(np.diff(found) < 0.0)


@pytest.mark.parametrize("dimension", [1, 7])
@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0, 12.0])
def test_moments_and_quantiles_are_those_of_the_laws_with_names(scale, dimension):
    for law, named in ((DiscretePower(1, scale), Geometric(1 / scale)), (DiscretePower(2, scale), gaussian_of(scale))):
        for order in (1, 2, 4, 5):
            assert raw_moment(law, dimension, order) == pytest.approx(raw_moment(named, dimension, order), rel=1e-9)
        for q in (0.1, 0.5, 0.99):
            assert quantile(law, dimension, q) == pytest.approx(quantile(named, dimension, q), rel=1e-3)


@pytest.mark.slow
def test_wide_noise_has_the_moments_and_quantiles_of_the_continuous_law():
    law, smooth = DiscretePower(1.6, 20000.0), ln.GeneralizedGaussian(1.6, 20000.0)
    for order in (1, 2):
        assert raw_moment(law, 3, order) == pytest.approx(raw_moment(smooth, 3, order), rel=1e-6)
    assert quantile(law, 3, 0.9) == pytest.approx(quantile(smooth, 3, 0.9), rel=1e-4)
    assert quantile(law, 1, 0.9) == pytest.approx(quantile(smooth, 1, 0.9), rel=1e-3)


def test_quantiles_by_convolution():
    law, count = DiscretePower(1.5, 2.0), 60
    masses = power.probabilities(law, count)
    masses[1:] *= 2.0
    single = np.zeros((count - 1) ** 2 + 1)
    single[np.arange(count) ** 2] = masses
    total = np.convolve(np.convolve(single[:900], single[:900])[:900], single[:900])[:900]
    for q in (0.2, 0.5, 0.95):
        assert quantile(law, 3, q) == np.searchsorted(np.cumsum(total), q)


# Privacy.


@pytest.mark.parametrize(("p", "scale"), list(itertools.product([*POWERS, 1.001, 1.99], [0.3, 1.0, 5.0, 40.0])))
@pytest.mark.parametrize("change", [1, 2, 5, 80])
def test_the_curve_is_the_sum_over_all_outputs(p, scale, change):
    law = DiscretePower(p, scale)
    for share in (0.0, 0.3, 0.9, 1.0, 1.3, 3.0):
        epsilon = min(share * (change / scale) ** p, 50.0)
        if p == 1.0 and share >= 1.0:
            continue
        exact, bracket = brute_force(law, change, epsilon), delta_of(law, 1, float(change), epsilon)
        assert bracket.lower <= exact * (1.0 + 1e-12) + 1e-15
        assert exact <= bracket.upper * (1.0 + 1e-12) + 1e-15
        # Where the loss of k = 0 is epsilon, floats do not tell on which side of it.
        assert bracket.relative_width < (1e-6 if share == 1.0 else 1e-8) or bracket.upper < 1e-12


@pytest.mark.parametrize("p", [1.0, 1.02, 1.7, 2.0])
@pytest.mark.parametrize(
    ("scale", "change", "epsilon"), [(3.0, 1, 0.32), (3.0, 1, 2.0), (6.0, 3, 9.0), (0.4, 1, 30.0), (0.1, 54, 700.0)]
)
def test_the_curve_far_out_in_sixty_digits(p, scale, change, epsilon):
    law = DiscretePower(p, scale)
    bracket, exact = delta_of(law, 1, float(change), epsilon), precise(law, change, epsilon)
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.relative_width < 1e-8 or bracket.upper <= 1e-289


@pytest.mark.slow
@pytest.mark.parametrize("p", [1.05, 1.5, 2.0])
@pytest.mark.parametrize("change", [1, 3000])
def test_wide_noise_is_summed_by_blocks(p, change, monkeypatch):
    law = DiscretePower(p, 20000.0)
    for share in (0.2, 1.5, 4.0):
        epsilon = share * max(change / law.scale, (change / law.scale) ** p)
        found = power._delta(law, change, epsilon)
        with monkeypatch.context() as patch:
            patch.setattr(power, "_MOST_TERMS", 1 << 30)
            exact = power._delta(law, change, epsilon)
        assert found.lower <= exact.lower * (1.0 + 1e-10)
        assert exact.upper <= found.upper * (1.0 + 1e-10)
        assert found.relative_width < 1e-6 or found.upper < 1e-280


def test_a_loss_that_hardly_rises_is_bracketed():
    for excess in (1e-15, 1e-12, 1e-9, 1e-6):
        for scale in (3.0, 20000.0):
            law, pure = DiscretePower(1.0 + excess, scale), 1.0 / scale
            below, above = delta_of(law, 1, 1.0, 0.5 * pure), delta_of(law, 1, 1.0, pure * (1.0 + 1e-13))
            same = delta_of(DiscretePower(1.0, scale), 1, 1.0, 0.5 * pure)
            assert below.middle == pytest.approx(same.middle, rel=30.0 * excess + 1e-6)
            assert 0.0 <= above.lower <= above.upper < 30.0 * excess * pure + 1e-10


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.95])
def test_the_ends_are_geometric_and_gaussian(scale, share):
    for change in (1, 2, 6):
        ours = delta_of(DiscretePower(1, scale), 1, float(change), share * change / scale)
        named = delta_of(Geometric(1 / scale), 1, float(change), share * change / scale)
        assert ours.middle == pytest.approx(named.middle, rel=1e-9)
        epsilon = 4.0 * share * (change / scale + (change / scale) ** 2)
        ours = delta_of(DiscretePower(2, scale), 1, float(change), epsilon)
        named = delta_of(gaussian_of(scale), 1, float(change), epsilon)
        assert ours.middle == pytest.approx(named.middle, rel=1e-8, abs=1e-280)


def test_wide_ends_are_geometric_and_gaussian():
    for share in (0.1, 1.0, 5.0):
        ours = delta_of(DiscretePower(2, 1e5), 1, 1.0, share / 1e5)
        assert ours.middle == pytest.approx(delta_of(gaussian_of(1e5), 1, 1.0, share / 1e5).middle, rel=1e-6)
    ours, named = (delta_of(law, 1, 1.0, 3e-6) for law in (DiscretePower(1, 1e5), Geometric(1e-5)))
    assert ours.middle == pytest.approx(named.middle, rel=1e-7)


@settings(deadline=None, max_examples=80)
@given(
    st.floats(1.0, 2.0), st.floats(0.05, 200.0), st.integers(1, 60), st.floats(0.0, 6.0), st.floats(1.0, 1.5),
)  # fmt: skip
def test_the_curve_falls_with_epsilon_and_grows_with_the_change(p, scale, change, epsilon, factor):
    law = DiscretePower(p, scale)
    here = delta_of(law, 1, float(change), epsilon)
    assert 0.0 <= here.lower <= here.upper <= 1.0
    assert delta_of(law, 1, float(change), epsilon * factor).lower <= here.upper
    assert here.lower <= delta_of(law, 1, change + 1.0, epsilon).upper
    assert here.middle == pytest.approx(brute_force(law, change, epsilon), rel=1e-8, abs=1e-13)


def test_pure_privacy_and_inverses():
    assert pure_epsilon_of(DiscretePower(1, 4.0), 3, 2.0) == pytest.approx(0.5)
    assert delta_of(DiscretePower(1, 4.0), 1, 2.0, 0.5 * (1.0 + 1e-14)).upper == 0.0
    assert pure_epsilon_of(DiscretePower(1.1, 4.0), 3, 2.0) == math.inf
    law = DiscretePower(1.7, 9.0)
    found = epsilon_of(law, 1, 1.0, 1e-6)
    assert delta_of(law, 1, 1.0, found.upper).upper <= 1e-6 <= delta_of(law, 1, 1.0, found.lower).upper


def test_changes_too_large_or_too_small():
    law = DiscretePower(1.5, 3.0)
    assert delta_of(law, 4, 0.5, 1.0).upper == 0.0
    assert delta_of(law, 4, 0.999, 1.0) == delta_of(law, 1, 1.0, 1.0) == delta_of(law, 1, 1.2, 1.0)
    far = delta_of(law, 1, 1e9, 1.0)
    assert far.upper == 1.0 >= far.lower > 1.0 - 1e-9
    assert delta_of(law, 1, 1e300, 1.0).upper == 1.0
    assert delta_of(DiscretePower(1.5, 1e-3), 1, 1.0, 1.0).lower > 1.0 - 1e-10
    assert delta_of(law, 1, 1.0, 1e5).lower == 0.0
    with pytest.raises(ln.InvalidInput, match="sensitivity=2: discrete power noise has a curve for one count"):
        delta_of(law, 4, 2.0, 1.0)


def losses_together(law, count, epsilon):
    """Delta of so many entries that change by 1 each: the law of the sum of losses, by Fourier, each mean kept."""
    reach = math.ceil(law.scale * 80.0 ** (1.0 / law.p))
    k = np.arange(-reach, reach + 0.0)
    masses = np.exp(-(np.abs(k / law.scale) ** law.p))
    masses /= masses.sum()
    points, step = 2**20, 16.0 / 2**20
    losses = (np.abs((k + 1) / law.scale) ** law.p - np.abs(k / law.scale) ** law.p) / step
    below = np.floor(losses)
    cells = np.zeros(points)
    np.add.at(cells, below.astype(int) % points, masses * (1.0 + below - losses))
    np.add.at(cells, (below.astype(int) + 1) % points, masses * (losses - below))
    together = np.fft.irfft(np.fft.rfft(cells) ** count, points)
    sums = step * np.where(np.arange(points) < points // 2, np.arange(points), np.arange(points) - points)
    return float(np.dot(together, -np.expm1(np.minimum(epsilon - sums, 0.0))))


@pytest.mark.slow
@pytest.mark.parametrize(("p", "epsilon"), [(1.0, 0.5), (1.3, 1.0), (1.7, 1.0), (2.0, 1.0)])
def test_many_counts_that_change_together(p, epsilon):
    law = DiscretePower(p, 24.0)
    m = ln.Mechanism("x", law, (100,), 1.0).against(ln.changes.counts(20, per_cell=1))
    expected, bracket = losses_together(law, 20, epsilon), m.delta(epsilon)
    assert bracket.lower * (1.0 - 1e-3) <= expected <= bracket.upper * (1.0 + 1e-3)
    assert bracket.relative_width < 0.2
    assert m.epsilon(bracket.upper).lower <= epsilon + 1e-6


def test_the_worst_change_of_a_set():
    law = DiscretePower(1.7, 9.0)
    counts = ln.changes.counts
    assert worst_of(law, counts(), 10) == 1.0
    assert worst_of(law, counts(20, per_cell=1), 100).sizes == ((1.0, 20),)
    larger = ln.changes.listed([[3, 0, 0]])
    m = ln.Mechanism("x", law, (3,), 1.0).against(larger)
    assert m.delta(0.2) == delta_of(law, 1, 3.0, 0.2)
    for other in (counts(20), ln.changes.ball(1.0), ln.changes.corner(1.0)):
        with pytest.raises(ln.InvalidInput, match="is not a set for which discrete-power noise has a curve"):
            ln.Mechanism("x", law, (100,), 1.0).against(other)


# Noise.


@pytest.mark.parametrize(("p", "scale"), list(itertools.product(POWERS, SCALES)))
def test_drawn_frequencies_are_the_probabilities(p, scale):
    law = DiscretePower(p, scale)
    drawn = draw_noise(law, (300_000,), np.random.default_rng(11))
    assert drawn.dtype == np.int64
    assert p_value(drawn, law) > NEVER
    if scale >= 1.0:
        assert p_value(drawn, DiscretePower(p, scale * 1.2)) < SURELY
        assert p_value(drawn, DiscretePower(1.2 if p > 1.5 else 1.8, scale)) < SURELY


def test_cryptographic_draws_follow_the_law_too():
    law = DiscretePower(1.6, 17.0)
    assert p_value(draw_noise(law, (300_000,)), law) > NEVER


@pytest.mark.slow
@pytest.mark.parametrize("margin", [1e-11, 0.01, 2.0])
@pytest.mark.parametrize("shift", [1, 3, 5])
def test_the_block_path_integer_by_integer(monkeypatch, margin, shift):
    """Wide blocks at a small scale have many rejections; with a wide margin all of them are settled exactly."""
    draws = []
    for used in (margin, 1e-11):
        monkeypatch.setattr(power_blocks, "_MARGIN", used)
        machine = blocks.BlockSampler.of(PowerBlocks(1.7, 25.0, shift))
        source = Stream.of(np.random.default_rng(3)).claim().sequence()
        draws.append(np.concatenate([machine.values(10000, source) for _ in range(2)]))
    assert np.array_equal(*draws)  # the same words mean the same noise, however they are compared
    assert p_value(draws[0], DiscretePower(1.7, 25.0)) > NEVER
    assert p_value(draws[0], DiscretePower(1.7, 29.0)) < 1e-9


@pytest.mark.parametrize(("p", "scale", "shift"), [(1.0, 7.0, 0), (2.0, 7.0, 0), (2.0, 300.0, 2), (1.0, 50.0, 3)])
def test_the_tables_of_the_ends_are_those_of_rational_exponents(p, scale, shift):
    named = blocks.Blocks(Fraction(2 - p) / Fraction(scale), Fraction(p - 1) / Fraction(scale) ** 2, shift)
    for bits in (64, 128):
        ours, theirs = (blocks.straddling_words(law, bits) for law in (PowerBlocks(p, scale, shift), named))
        for mine, other in zip(*(zip(*words, strict=True) for words in (ours, theirs)), strict=False):
            assert mine[1] - mine[0] <= 1
            assert max(mine[0], other[0]) <= min(mine[1], other[1])
        assert ours[0][-1] >= 2**bits - 2


@pytest.mark.parametrize(("p", "scale"), [(1.3, 0.3), (1.7, 40.0), (1.05, 2000.0)])
def test_the_table_brackets_the_cumulative_probabilities(p, scale):
    law = PowerBlocks.of(p, scale)
    first, last = blocks.straddling_words(law, 64)
    with mp.workdps(50):
        edges = [(mp.mpf(b << law.shift) / mp.mpf(scale)) ** mp.mpf(p) for b in range(2 * len(first) + 3)]
        weights = [mp.exp(-edge) for edge in edges]
        weights[0] /= 1 if law.shift else 2
        total, sum_ = mp.fsum(weights), mp.mpf(0)
        for b in range(len(first)):
            sum_ += weights[b]
            assert first[b] <= sum_ / total * 2**64 <= last[b] + 1
            assert last[b] - first[b] <= 1


@settings(deadline=None, max_examples=60)
@given(st.floats(1.0, 2.0), st.floats(1e-3, 2.0**17), st.integers(0, 10**9), st.integers(0, 10**4), st.integers(8, 300))
def test_ratio_bounds(p, scale, start, offset, bits):
    low, high = PowerBlocks(p, scale, 0).ratio_bounds(start, start + offset, bits)
    with mp.workdps(300):
        powers = [(mp.mpf(y) / mp.mpf(scale)) ** mp.mpf(p) for y in (start, start + offset)]
        exact = mp.ldexp(mp.exp(powers[0] - powers[1]), bits)
        assert low <= exact <= high
    assert high - low <= 2


def test_ties_are_broken_by_further_digits():
    law = PowerBlocks(1.7, 3000.0, 4)
    low, high = law.ratio_bounds(160, 171, 59)
    tie = low if high - low == 1 else low + 1
    with mp.workdps(60):
        powers = [(mp.mpf(y) / 3000) ** mp.mpf(1.7) for y in (160, 171)]
        exact = int(mp.floor(mp.ldexp(mp.exp(powers[0] - powers[1]), 59 + 64)))
    tie, extra = exact >> 64, exact & ALL_ONES
    assert law.keeps(10, 11, tie, Script(extra - 1))
    assert not law.keeps(10, 11, tie, Script(extra + 1))
    assert law.keeps(10, 11, tie, Script(extra, 0))
    assert not law.keeps(10, 11, tie, Script(extra, ALL_ONES))
    assert law.keeps(10, 11, tie - 1, Script())
    assert not law.keeps(10, 11, tie + 1, Script())
    assert law.keeps(10, 0, 2**59 - 1, Script())


def test_sure_bounds_are_below_the_acceptance_probability():
    for p, scale in ((1.1, 3000.0), (1.7, 3000.0), (1.9, 1e5)):
        law = PowerBlocks.of(p, scale)
        machine, width = blocks.sampler_of(law), 2**law.shift
        assert width > 1
        for block in (0, 1, 100, len(machine.sure) - 1):
            low, _ = law.ratio_bounds(block * width, (block + 1) * width - 1, 63 - law.shift)
            assert int(machine.sure[block]) <= low
        assert machine.sure[100] > 0.97 * 2.0 ** (63 - law.shift)


@pytest.mark.slow
def test_the_tail_is_not_cut():
    """A uniform within 2^-192 of 1 lies far beyond the table: there E is about ln 2^192."""
    law = PowerBlocks.of(1.6, 30.0)
    machine = blocks.sampler_of(law)
    (block,) = machine.blocks(1, Script(ALL_ONES, ALL_ONES, ALL_ONES, 0, 5))
    assert block >= len(machine.first)
    assert (block / 30.0) ** 1.6 == pytest.approx(192 * math.log(2.0), rel=0.03)


def test_seeded_draws_repeat_and_secure_ones_do_not():
    law = DiscretePower(1.7, 3000.0)
    first, again = (draw_noise(law, (1000,), np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(draw_noise(law, (1000,)), draw_noise(law, (1000,)))
    gaussian = draw_noise(gaussian_of(64.0), (1000,), np.random.default_rng(4))
    assert np.array_equal(draw_noise(DiscretePower(2, 64.0), (1000,), np.random.default_rng(4)), gaussian)


# Descriptions, releases, audits.


def test_descriptions_survive_json_and_release_integers():
    m = ln.Mechanism("x", DiscretePower(1.7, 24.1), (4,), 1.0)
    assert ln.Mechanism.from_json(m.to_json()) == m
    together = m.against(ln.changes.counts(3, per_cell=1))
    assert ln.Mechanism.from_json(together.to_json()) == together
    assert m.noise().dtype == np.int64
    with pytest.raises(ln.InvalidInput, match="not a whole number"):
        m.release([0.5, 1.0, 2.0, 3.0])
    assert m.repeat(5).epsilon(1e-6).upper < 5.0 * m.epsilon(2e-7).upper


@pytest.mark.parametrize(
    ("p", "scale", "words"),
    [
        (0.9, 1.0, "p=0.9 must lie between 1"),
        (2.1, 1.0, "p=2.1 must lie between 1"),
        (math.nan, 1.0, "p="),
        ("x", 1.0, "p="),
        (1.5, 0.0, "scale=0"),
        (1.5, -3.0, "scale=-3"),
        (1.5, 1e-4, "scale=0.0001 is not between 0.001 and 131072"),
        (1.5, 2e5, "scale=200000 is not between"),
        (1.5, math.inf, "scale=inf"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(p, scale, words):
    with pytest.raises(ln.InvalidInput, match=words):
        DiscretePower(p, scale)


@pytest.mark.parametrize("p", [1.0, 1.7])
def test_audits_find_what_the_curve_says(p):
    """The likelihood attack: never above the exact delta, and near it; and nothing against a true claim."""
    m = ln.Mechanism("m", DiscretePower(p, 1.5), (2,), 1.0)
    exact = m.delta(0.1).upper
    options = {"samples": 40_000, "progress": False}
    report = ln.audit(m, [5, 5], claim=(0.1, 1e-9), rng=np.random.default_rng(3), **options)
    assert report.refuted
    assert 0.9 * exact < report.delta <= exact
    assert not ln.audit(m, [5, 5], claim=(0.1, exact), rng=np.random.default_rng(3), **options).refuted


@pytest.mark.slow
def test_audits_of_several_counts_at_once():
    m = ln.Mechanism("m", DiscretePower(1.7, 3.0), (6,), 1.0).against(ln.changes.counts(4, per_cell=1))
    exact = m.delta(0.1).upper
    report = ln.audit(m, np.full(6, 5), claim=(0.1, 1e-9), samples=40_000, rng=np.random.default_rng(3), progress=False)
    assert report.refuted
    assert 0.9 * exact < report.delta <= exact
