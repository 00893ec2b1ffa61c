"""The discrete Gaussian: an exact sampler against a slow obvious one, an exact curve against brute force."""

import doctest
import functools
import importlib
import itertools
import math
import pathlib
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessnoise.errors import InvalidInput
from lessnoise.mechanism.curve import delta_of, epsilon_of, gaussian
from lessnoise.mechanism.families import block_sampler as blocks
from lessnoise.mechanism.families import discrete_sampler as sampler
from lessnoise.mechanism.families.discrete_gaussian import DiscreteGaussian, discrete_gaussian, integer_array
from lessnoise.mechanism.families.generalized_gaussian import subgaussian_delta
from lessnoise.mechanism.losses import quantile, raw_moment
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import draw_noise
from lessnoise.mechanism.sums import theta
from lessnoise.noise import Stream

curve = importlib.import_module("lessnoise.mechanism.families.discrete_gaussian")  # not the function of that name
DRAWS = 10**6
NEVER = 1e-9  # no p-value of a true hypothesis may fall below this
SURELY = 1e-30  # every p-value of a false one does
ALL_ONES = 2**64 - 1


def law_of(variance):
    variance = Fraction(variance)
    return DiscreteGaussian(variance.numerator, variance.denominator)


# Oracles.


class SlowSampler:
    """Canonne, Kamath & Steinke (2020), Algorithms 1 to 3, word for word, on exact rationals."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def uniform(self, below):
        bits = max(below - 1, 1).bit_length()
        while True:
            value = int.from_bytes(self.rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)
            if value < below:
                return value

    def bernoulli(self, p):
        return self.uniform(p.denominator) < p.numerator

    def bernoulli_exp(self, gamma):
        if gamma <= 1:
            k = 1
            while self.bernoulli(gamma / k):
                k += 1
            return k % 2 == 1
        if not all(self.bernoulli_exp(Fraction(1)) for _ in range(math.floor(gamma))):
            return False
        return self.bernoulli_exp(gamma - math.floor(gamma))

    def discrete_laplace(self, t):
        while True:
            u = self.uniform(t)
            if not self.bernoulli_exp(Fraction(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            magnitude = u + t * v
            negative = self.bernoulli(Fraction(1, 2))
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def discrete_gaussian(self, variance):
        t = math.isqrt(math.floor(variance)) + 1
        while True:
            y = self.discrete_laplace(t)
            if self.bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance)):
                return y


def pmf(variance, reach):
    y = np.arange(-reach, reach + 1.0)
    weights = np.exp(-y * y / (2 * float(variance)))
    return weights / weights.sum()


def p_value(counts, probabilities):
    """Pearson's test over cells of at least 25 expected counts, the rest together."""
    from scipy.stats import chisquare

    total = counts.sum()
    large = probabilities * total >= 25
    observed = np.append(counts[large], total - counts[large].sum())
    expected = np.append(probabilities[large], max(1 - probabilities[large].sum(), 0.0)) * total
    if expected[-1] < 5:  # too few for the test; a Poisson variable that does not exceed 40
        if observed[-1] > 40:
            return 0.0
        observed, expected = observed[:-1], expected[:-1] * (observed[:-1].sum() / expected[:-1].sum())
    return chisquare(observed, expected).pvalue


def test_of_values(values, variance):
    """p-value of draws being from the law: per integer if sigma is small, else over 200 cells of integers."""
    sigma = math.sqrt(variance)
    reach = math.ceil(12 * sigma) + 3
    if reach < 20000:
        counts = np.bincount(np.clip(values + reach, 0, 2 * reach), minlength=2 * reach + 1)
        probabilities = pmf(variance, reach)
        joined = np.arange(0, len(counts), math.ceil(100 * sigma / len(values)))  # cells of 40 and more
        return p_value(np.add.reduceat(counts, joined), np.add.reduceat(probabilities, joined))
    from scipy.special import ndtr, ndtri

    edges = np.floor(sigma * ndtri(np.linspace(0, 1, 201)[1:-1])).astype(np.int64)  # cell: edge < y <= next edge
    below = ndtr((edges + 0.5) / sigma)  # within 1/(24 sigma^2) of the sum
    counts = np.bincount(np.searchsorted(edges, values, side="left"), minlength=200)
    return p_value(counts, np.diff(below, prepend=0.0, append=1.0))


test_of_values.__test__ = False


class Script:
    """A source that says what it is told."""

    description, private = "script", False

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        said, self.left = self.left[:count], self.left[count:]
        assert len(said) == count, "the script ended"
        return np.array(said, dtype=np.uint64)


@functools.cache
def block_weights(law):
    shift = sampler.blocks_of(law).shift
    rate = mp.mpf(law.denominator) * 4**shift / (2 * mp.mpf(law.numerator))
    last = math.ceil(math.sqrt(150 / float(rate))) + 2
    weights = [mp.exp(-rate * b * b) for b in range(last)]
    if shift == 0:
        weights[0] /= 2
    return weights


def cumulative(law, block):
    """P(block index <= block) to 200 bits, from the definition."""
    with mp.workprec(300):
        weights = block_weights(law)
        return mp.fsum(weights[: block + 1]) / mp.fsum(weights)


# The sampler.


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 0.5, 1, 2.5, 7, 100, 1000, 1024, 1500, 10**6 + 3, 2**40])
def test_a_million_draws_follow_the_law(sigma):
    variance = Fraction(sigma) ** 2
    values = draw_noise(law_of(variance), (1000, 1000), np.random.default_rng(20))
    assert values.shape == (1000, 1000)
    assert values.dtype == np.int64
    flat = values.ravel()
    assert test_of_values(flat, float(variance)) > NEVER
    assert test_of_values(flat, float(variance) * 4 / 9) < SURELY
    assert test_of_values(flat, float(variance) * 9 / 4) < SURELY


@pytest.mark.parametrize("variance", [Fraction(3, 2), Fraction(4 * 10**6)])
def test_cryptographic_draws_follow_the_law_too(variance):
    assert test_of_values(draw_noise(law_of(variance), (DRAWS,)), float(variance)) > NEVER


@pytest.mark.slow
@pytest.mark.parametrize("block_bits", [1, 2, 3])
@pytest.mark.parametrize("variance", [Fraction(64), Fraction(200, 3), Fraction(997, 2)])
def test_the_block_path_integer_by_integer(monkeypatch, block_bits, variance):
    """Wide blocks at a small sigma: many rejections, and every integer has its own count."""
    monkeypatch.setattr(sampler, "_BLOCK_BITS", block_bits)
    machine = blocks.BlockSampler.of(sampler.blocks_of(law_of(variance)))
    assert machine.shift >= 1
    source = Stream.of(np.random.default_rng(3)).claim().sequence()
    values = np.concatenate([machine.values(50000, source) for _ in range(6)])
    assert 30000 < len(values) < 300000
    assert test_of_values(values, float(variance)) > NEVER
    assert test_of_values(values, float(variance) * 1.1) < SURELY


def test_values_next_to_zero_are_right_at_large_sigma():
    """The sign of zero, and the first block, on the block path."""
    values = draw_noise(law_of(1100**2), (4 * DRAWS,), np.random.default_rng(8))
    near = np.bincount(values[np.abs(values) <= 10] + 10, minlength=21)
    expected = 4 * DRAWS * math.exp(-50 / 1100**2) / (1100 * math.sqrt(2 * math.pi))
    assert np.abs(near - expected).max() < 6.5 * math.sqrt(expected)


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(27, 4), Fraction(900)])
def test_fast_and_slow_samplers_agree(variance):
    from scipy.stats import chi2_contingency

    slow = SlowSampler(5)
    count = 1500
    theirs = np.array([slow.discrete_gaussian(variance) for _ in range(count)])
    assert test_of_values(theirs, float(variance)) > NEVER
    ours = draw_noise(law_of(variance), (25 * count,), np.random.default_rng(6))
    width = max(1, round(math.sqrt(variance) / 3))
    edges = width * np.arange(-6, 7)
    table = [np.bincount(np.searchsorted(edges, values), minlength=14) for values in (ours, theirs)]
    table = np.array(table)[:, np.sum(table, axis=0) > 60]
    assert chi2_contingency(table).pvalue > NEVER


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(8, 300))
def test_exponential_bounds(numerator, denominator, bits):
    low, high = blocks.exp_bounds(numerator, denominator, bits)
    with mp.workprec(bits + 200):
        exact = mp.ldexp(mp.exp(-mp.mpf(numerator) / denominator), bits)
        assert low <= exact <= high
    assert high - low <= 2


@pytest.mark.parametrize("variance", [Fraction(9, 100), Fraction(1), Fraction(50), Fraction(5 * 10**6)])
def test_table_brackets_the_cumulative_probabilities(variance):
    law = law_of(variance)
    for bits in (64, 128):
        first, last = blocks.straddling_words(sampler.blocks_of(law), bits)
        assert all(0 <= low <= high < 2**bits for low, high in zip(first, last, strict=True))
        for block in {0, 1, len(first) // 5, len(first) // 2, len(first) - 1} & set(range(len(first))):
            with mp.workprec(300):
                exact = cumulative(law, block) * mp.mpf(2) ** bits
                assert first[block] <= exact <= last[block] + 1
            assert last[block] - first[block] <= 1
        assert first[-1] >= 2**bits - 2  # the rest is below 2^(-bits - 8)


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1), Fraction(50), Fraction(5 * 10**6)])
def test_ambiguous_words_are_settled_by_further_digits(variance):
    law = law_of(variance)
    machine = blocks.sampler_of(sampler.blocks_of(law))
    for block in (0, 3, len(machine.first) // 10):
        word = int(machine.first[block])
        with mp.workprec(300):
            boundary = int(mp.floor(mp.ldexp(cumulative(law, block), 128))) - (word << 64)
        assert 0 < boundary < 2**64
        cases = [(0, block), (boundary - 1, block), (boundary + 1, block + 1), (ALL_ONES, block + 1)]
        for extra, wanted in cases:
            assert machine.blocks(1, Script(word, extra)).tolist() == [wanted]
        # Even the second word can fall on the boundary; the third then decides.
        assert machine.blocks(1, Script(word, boundary, 0)).tolist() == [block]
        assert machine.blocks(1, Script(word, boundary, ALL_ONES)).tolist() == [block + 1]


def test_words_around_every_threshold_agree_with_the_search():
    """The guide table, the search and exact arithmetic choose the same block."""
    law = law_of(Fraction(10))
    machine = blocks.sampler_of(sampler.blocks_of(law))
    bounds = [cumulative(law, block) for block in range(15)]
    for block, word in itertools.product(range(15), (-2, -1, 1, 2)):
        chosen = int(machine.first[block]) + word
        if chosen > ALL_ONES:
            continue
        with mp.workprec(300):
            exact = sum(mp.ldexp(bound, 64) <= chosen for bound in bounds)
        assert machine.blocks(1, Script(chosen)).tolist() == [exact]


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(9), Fraction(3 * 10**6)])
def test_the_tail_is_not_cut(variance):
    """A uniform within 2^-192 of 1 lies far beyond the table, and gets the block that its digits mean."""
    law = law_of(variance)
    machine = blocks.sampler_of(sampler.blocks_of(law))
    (block,) = machine.blocks(1, Script(ALL_ONES, ALL_ONES, ALL_ONES, 0, 5))
    assert block >= len(machine.first)
    width = 2 ** sampler.blocks_of(law).shift
    # The tail beyond z deviations is about e^(-z^2/2): z = sqrt(2 ln 2^192).
    assert width * block == pytest.approx(16.1 * math.sqrt(variance), rel=0.08, abs=1.0)
    # On the block path such a block has no ready bound, and its offset is settled exactly.
    if width > 1:
        bits = 63 - machine.shift
        beyond = (ALL_ONES, ALL_ONES, ALL_ONES, 0)
        assert machine.values(1, Script(*beyond, 0)).tolist() == [width * block]
        assert machine.values(1, Script(*beyond, 2**63 + 2**bits)).tolist() == [-width * block - 1]
        assert machine.values(1, Script(*beyond, 2**63 - 1)).tolist() == []


def test_bernoulli_exp_is_exact():
    """Every 6-digit beginning, and ties that later words break."""
    for numerator, denominator in ((1, 1), (1, 3), (7, 2), (1, 1000), (2**40 + 1, 2**40)):
        with mp.workprec(400):
            exact = mp.exp(-mp.mpf(numerator) / denominator)
            for digits in range(64):
                for extra in (0, 2**63, ALL_ONES):
                    uniform = (mp.mpf(digits) + mp.mpf(extra) / 2**64) / 64
                    said = blocks.bernoulli_exp(digits, 6, numerator, denominator, Script(extra, 0, 0))
                    assert said == (uniform < exact)
            tie = int(mp.floor(exact * 2**64))
            assert blocks.bernoulli_exp(tie, 64, numerator, denominator, Script(0, 0))
            assert not blocks.bernoulli_exp(tie, 64, numerator, denominator, Script(ALL_ONES, 0))
    assert blocks.bernoulli_exp(63, 6, 0, 1, Script())


def test_sure_bounds_are_below_the_acceptance_probability():
    for variance in (Fraction(1024**2), Fraction(10**12), Fraction(2**112)):
        machine = blocks.sampler_of(sampler.blocks_of(law_of(variance)))
        width, bits = 2**machine.shift, 63 - machine.shift
        for block in (0, 1, 1000, len(machine.sure) - 1):
            worst = (width - 1) * (2 * block * width + width - 1) / (2 * variance)
            assert int(machine.sure[block]) <= 2**bits * math.exp(-float(worst)) * (1 + 1e-12)
            assert (
                int(machine.sure[block]) >= 2**bits * (1 - 1.1 * (2 * block + 1) * width**2 / (2 * float(variance))) - 2
            )


def test_seeded_draws_repeat_and_secure_ones_do_not():
    law = law_of(100)
    first, second = (draw_noise(law, (50,), np.random.default_rng(1)) for _ in range(2))
    assert (first == second).all()
    assert (draw_noise(law, (50,)) != draw_noise(law, (50,))).any()


# The law.


def test_law_round_trip_and_lowest_terms():
    law = DiscreteGaussian(10, 4)
    assert (law.numerator, law.denominator) == (5, 2)
    assert DiscreteGaussian.from_dict(law.to_dict()) == law
    mechanism = discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=2**0.5, shape=(4, 5), neighbours="replace")
    assert Mechanism.from_json(mechanism.to_json()) == mechanism
    assert mechanism.law.integer


@pytest.mark.parametrize(
    ("numerator", "denominator", "hint"),
    [(0, 1, "larger whole number"), (1.5, 1, "pass an int"), (2**113, 1, "64-bit"), (1, 2**113, "smaller epsilon")],
)
def test_law_refuses_what_it_cannot_be(numerator, denominator, hint):
    with pytest.raises(InvalidInput, match=hint):
        DiscreteGaussian(numerator, denominator)


def test_integer_array():
    assert integer_array([[1, -2], [3, 4]], (2, 2)).tolist() == [[1, -2], [3, 4]]
    assert integer_array(np.array([2**62, -(2**62)]), (2,)).tolist() == [2**62, -(2**62)]
    assert integer_array(np.array([3, 250], dtype=np.uint8), (2,)).dtype == np.int64
    assert integer_array(np.float32([2.0]), (1,)).tolist() == [2]
    assert integer_array(np.array(7), ()).item() == 7
    for value, hint in (
        ([1.0, 2.5], r"value\[1\]=2.5 is not a whole number: round"),
        ([1, 2**62 + 1], "clip or rescale"),
        (np.array([2**63, 1], dtype=np.uint64), "clip or rescale"),
        ([1e30, 0.0], "clip or rescale"),
        ([1.0, math.nan], "not finite"),
        ([1, 2, 3], "differs from the mechanism's shape"),
        (["1", "2"], "not numeric"),
    ):
        with pytest.raises(InvalidInput, match=hint):
            integer_array(value, (2,))


# The curve.


def delta_by_convolution(variance, shift, epsilon):
    """E[(1 - e^(eps - L))_+] from the definition, the law of v.Y convolved entry by entry."""
    reach = math.ceil(38 * math.sqrt(variance)) + 2
    single, law = pmf(variance, reach), np.ones(1)
    for entry in shift:
        spread = np.zeros(2 * reach * entry + 1)
        spread[::entry] = single
        law = np.convolve(law, spread)
    z = np.arange(len(law)) - reach * sum(shift)
    losses = (sum(entry**2 for entry in shift) + 2 * z) / (2 * variance)
    return float(law @ np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0))


def delta_in_many_digits(variance, shift, epsilon):
    with mp.workdps(50):
        variance, epsilon = mp.mpf(variance.numerator) / variance.denominator, mp.mpf(epsilon)
        reach = int(40 * mp.sqrt(variance)) + shift + 40
        weights = {y: mp.exp(-(mp.mpf(y) ** 2) / (2 * variance)) for y in range(-reach, reach + 1)}
        total = mp.mpf(0)
        for y, weight in weights.items():
            loss = (mp.mpf(shift) ** 2 + 2 * shift * y) / (2 * variance)
            if loss > epsilon:
                total += weight * (1 - mp.exp(epsilon - loss))
        return total / mp.fsum(weights.values())


def all_shifts(budget, dimension, head=()):
    if head:
        yield head
    if len(head) < dimension:
        for entry in range(min(math.isqrt(budget), head[-1] if head else budget), 0, -1):
            yield from all_shifts(budget - entry * entry, dimension, (*head, entry))


def test_known_values():
    assert 1 / theta(1.0) == pytest.approx(0.398942278, abs=1e-9)
    assert raw_moment(law_of(1), 1, 1) == pytest.approx(0.999999789, abs=1e-9)
    assert raw_moment(law_of(Fraction(1, 4)), 1, 1) == pytest.approx(0.215013, abs=1e-6)
    assert delta_of(law_of(1), 1, 1.0, 1.0).middle == pytest.approx(0.141351, abs=1e-6)
    assert delta_of(law_of(10), 1, 1.0, 1.0).middle == pytest.approx(1.15133e-4, rel=1e-5)
    assert gaussian.delta(10**-0.5, 1.0) == pytest.approx(1.0981e-4, rel=1e-4)  # not the same


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1, 4), Fraction(1), Fraction(10), Fraction(200, 3)])
@pytest.mark.parametrize("shift", [1, 3])
def test_scalar_curve_in_many_digits(variance, shift):
    for epsilon in (0.0, 0.01, 1.0, 4.75, 30.0):
        exact = delta_in_many_digits(variance, shift, epsilon)
        bracket = delta_of(law_of(variance), 1, shift + 0.9, epsilon)
        assert bracket.lower <= exact <= bracket.upper
        if exact > 1e-280:
            assert bracket.relative_width <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [5 * 10**4, 3 * 10**5])
@pytest.mark.parametrize(("deviations", "shift"), [(0.0, 1), (1.0, 2), (5.0, 1), (12.0, 1), (0.5, 10**5)])
def test_curve_in_blocks_is_the_plain_sum(sigma, deviations, shift):
    epsilon = deviations * shift / sigma
    bracket = delta_of(law_of(sigma**2), 1, float(shift), epsilon)
    threshold = Fraction(epsilon) * sigma**2 / shift - Fraction(shift, 2)
    start = math.floor(threshold) + 1
    k = np.arange(max(-20 * sigma - start, 0), 20 * sigma - min(start, 10 * sigma), dtype=np.float64)
    terms = np.exp(-((start + k) ** 2) / (2 * sigma**2)) * -np.expm1(-shift / sigma**2 * (float(start - threshold) + k))
    plain = float(terms.sum()) / (sigma * math.sqrt(2 * math.pi))
    assert bracket.lower * (1 - 1e-12) <= plain <= bracket.upper * (1 + 1e-12)
    assert bracket.relative_width <= 1e-9


def test_large_sigma_approaches_the_continuous_curve():
    for sigma, rough in ((10**3, 1e-4), (10**5, 1e-8), (10**9, 2e-9), (2**56, 2e-9)):
        bracket = delta_of(law_of(sigma**2), 7, 1.0, 3.0 / sigma)
        assert bracket.middle == pytest.approx(gaussian.delta(1 / sigma, 3.0 / sigma), rel=rough)


def test_the_largest_shift_is_the_worst_in_one_dimension():
    for variance, epsilon in itertools.product((0.1, 0.9, 7.3), (0.0, 0.3, 2.0, 9.0)):
        deltas = [delta_by_convolution(variance, (shift,), epsilon) for shift in range(1, 8)]
        assert all(small <= large * (1 + 1e-12) for small, large in itertools.pairwise(deltas))


@pytest.mark.parametrize("budget", [1, 2, 3, 4, 5, 8, 9, 12])
@pytest.mark.parametrize("dimension", [2, 3, 40])
def test_vector_curve_brackets_the_worst_of_all_shifts(budget, dimension):
    for ratio, epsilon in itertools.product((0.08, 0.3, 1.1, 4.0), (0.5, 3.0)):
        variance = Fraction(ratio * budget).limit_denominator(100)
        bracket = delta_of(law_of(variance), dimension, math.sqrt(budget), epsilon)
        worst = max(delta_by_convolution(float(variance), v, epsilon) for v in all_shifts(budget, dimension))
        assert bracket.lower * (1 - 1e-11) <= worst <= bracket.upper * (1 + 1e-11)
        assert bracket.relative_width <= 3e-9


def test_vector_curve_by_lines_agrees_with_convolution():
    """The projection of the lattice, where both ways are open: (g, n) alone decides."""
    for shift in ((1, 1), (2, 1), (2, 2), (3, 1, 1), (2, 2, 2, 2), (4, 3)):
        divisor = math.gcd(*shift)
        norm = sum(entry**2 for entry in shift) // divisor**2
        variance = Fraction(3 * norm * divisor**2, 2)
        for epsilon in (0.2, 1.0, 5.0):
            line = curve._Curve(variance, Fraction(epsilon), 1e-9).line(divisor, norm)
            direct = delta_by_convolution(float(variance), shift, epsilon)
            assert line.middle == pytest.approx(direct, rel=1e-9)


def test_ripple_bound_holds_where_it_is_not_negligible():
    for shift in ((1, 1), (1, 1, 1), (2, 1), (3, 2), (1,) * 6, (3, 1, 1)):
        norm = sum(entry**2 for entry in shift)
        for ratio in (0.08, 0.15, 0.3, 0.6):
            variance = Fraction(ratio * norm)
            ripple = curve._Curve(variance, Fraction(1), 1e-9)._ripple(norm)
            reach = 12 * math.ceil(math.sqrt(variance)) + 5
            single, law = pmf(variance, reach), np.ones(1)
            for entry in shift:
                spread = np.zeros(2 * reach * entry + 1)
                spread[::entry] = single
                law = np.convolve(law, spread)
            near = (len(law) - 1) // 2 + np.arange(-3 * norm, 3 * norm + 1)
            quotient = law[near] / pmf(float(norm * variance), (len(law) - 1) // 2)[near]
            assert 1 / ripple <= quotient.min() * (1 + 1e-9)
            assert quotient.max() <= ripple * (1 + 1e-9)


@pytest.mark.parametrize(
    ("budget", "dimension", "widest"),
    [(33, 2, 0.3), (33, 6, 0.05), (100, 100, 1e-9), (101, 10, 0.02), (10**4, 3, 3e-4), (10**6, 10**7, 2e-6)],
)
def test_large_shifts_keep_narrow_brackets_around_the_continuous_curve(budget, dimension, widest):
    bracket = delta_of(law_of(16 * budget), dimension, math.sqrt(budget), 1.0)
    assert bracket.relative_width <= widest
    assert bracket.middle == pytest.approx(gaussian.delta(0.25, 1.0), rel=widest + 1e-3)
    assert bracket.upper < subgaussian_delta(1 / 32, 1 / 16, 1.0)  # zCDP alone says more


def test_concentrated_bound_serves_where_nothing_better_is_proved():
    bracket = delta_of(law_of(2), 50, 8.0, 1.0)  # sigma far below the shift: delta is nearly 1
    assert 0.9 < bracket.lower <= bracket.upper <= 1.0


def test_concentrated_conversion_is_the_minimum_over_orders():
    for rho, epsilon in ((0.05, 1.0), (0.5, 4.0), (2.0, 1.0), (1e-4, 0.1)):
        a = 1 + np.geomspace(1e-4, 1e4, 400_001)
        exponents = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
        assert subgaussian_delta(rho, 2 * rho, epsilon) == pytest.approx(min(math.exp(exponents.min()), 1), rel=1e-6)


def test_curve_ends():
    assert delta_of(law_of(1), 3, 0.9, 1.0).upper == 0.0  # different integer arrays are not that close
    assert delta_of(law_of(1), 1, 1.0, 1e5).upper <= 1e-289
    assert delta_of(law_of(1), 1, 100.0, 0.0).lower > 1 - 1e-9
    assert curve.squared_budget(math.sqrt(3)) == 3
    assert curve.squared_budget(1.99) == 3
    assert curve.squared_budget(2**28) == 2**56
    assert list(curve.maximal_shifts(4, 2)) == [(2,), (1, 1)]
    assert epsilon_of(law_of(4), 2, 1.0, 0.0).upper == math.inf


@pytest.mark.parametrize("digits", [2, 3, 8, 15])
def test_a_root_typed_with_few_digits_means_the_whole_number(digits):
    for number in (*range(1, 12), 10**6, *([50, 100, 150] if digits > 2 else [])):
        typed = math.floor(math.sqrt(number) * 10**digits) / 10**digits
        assert curve.squared_budget(typed) == number
        assert curve.squared_budget(math.nextafter(math.sqrt(number), 0.0)) == number
    if digits > 2:
        stated, meant = (discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=d, shape=5) for d in (1.41421356, 2**0.5))
        assert stated.law == meant.law


def test_epsilon_inverts_delta():
    for variance, sensitivity, delta in ((5, 1.0, 1e-5), (10**12, 1.0, 1e-9), (30, 2**0.5, 1e-5)):
        bracket = epsilon_of(law_of(variance), 10, sensitivity, delta)
        assert delta_of(law_of(variance), 10, sensitivity, bracket.upper).upper <= delta
        assert delta_of(law_of(variance), 10, sensitivity, bracket.lower).lower >= delta * (1 - 1e-9)
        assert bracket.relative_width < 1e-3


# Calibration.


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity", "shape"),
    [
        (1, 1e-6, 1, 1),
        (1, 1e-6, 1, (89, 89)),
        (0.5, 1e-7, 2**0.5, 7921),
        (6, 1e-6, 2**0.5, 50),
        (0.1, 1e-9, 10, 4),
        (1e-4, 1e-6, 1, 3),
        (1, 0.4, 3, 100),
        (20, 1e-9, 1, 3),
    ],
)
def test_calibration_is_safe_and_tight(epsilon, delta, sensitivity, shape):
    mechanism = discrete_gaussian(epsilon=epsilon, delta=delta, sensitivity=sensitivity, shape=shape)
    assert mechanism.check().holds
    index = sampler.grid_index(float(mechanism.law.variance_parameter))
    assert sampler.grid_law(index) == mechanism.law
    smaller = Mechanism("smaller", sampler.grid_law(index - 1), mechanism.shape, mechanism.sensitivity)
    assert smaller.delta(epsilon).upper > delta
    assert mechanism.law.numerator.bit_length() + mechanism.law.denominator.bit_length() < 60


@pytest.mark.parametrize(("epsilon", "delta", "budget"), [(6, 1e-6, 1), (8, 1e-6, 1), (14, 1e-9, 2), (4, 1e-6, 2)])
def test_calibration_finds_the_smallest_although_more_noise_can_be_worse(epsilon, delta, budget):
    law = discrete_gaussian(epsilon=epsilon, delta=delta, sensitivity=math.sqrt(budget), shape=2).law
    index = sampler.grid_index(float(law.variance_parameter))
    below = (sampler.grid_law(i) for i in range(index - 3 * 2**12, index, 37))
    assert all(delta_of(smaller, 2, math.sqrt(budget), epsilon).lower > delta for smaller in below)
    if epsilon == 8:
        assert law == law_of(Fraction(5, 16))  # where the loss of z = 2 is epsilon
        assert delta_of(law_of(Fraction(6, 16)), 2, 1.0, 8.0).lower > delta


def test_calibration_is_near_the_continuous_one():
    mechanism = discrete_gaussian(epsilon=0.5, delta=1e-6, sensitivity=2**0.5, shape=1000)
    assert mechanism.standard_deviation == pytest.approx(2**0.5 * gaussian.gaussian_scale(0.5, 1e-6), rel=2e-3)


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"sensitivity": 0.5}, "at least 1"),
        ({"epsilon": 1e-30, "delta": 1e-30}, "larger epsilon"),
        ({"epsilon": 0}, "positive"),
        ({"epsilon": 1e300}, "smaller epsilon"),
        ({"delta": 1}, "small probability"),
        ({"neighbours": "none"}, "choose one of"),
    ],
)
def test_builder_errors_name_the_remedy(change, hint):
    arguments = {"epsilon": 1, "delta": 1e-6, "sensitivity": 1, "shape": 3, **change}
    with pytest.raises(InvalidInput, match=hint):
        discrete_gaussian(**arguments)


# Losses.


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(2), Fraction(399, 100), Fraction(4), Fraction(50)])
def test_moments_are_those_of_the_sum(variance):
    reach = 80
    y, single = np.arange(-reach, reach + 1.0), pmf(variance, reach)
    pairs = (y[:, None] ** 2 + y**2).ravel(), np.outer(single, single).ravel()
    for order in (1, 2, 3, 4):
        assert raw_moment(law_of(variance), 1, order) == pytest.approx(single @ y ** (2 * order), rel=1e-12)
        assert raw_moment(law_of(variance), 2, order) == pytest.approx(pairs[1] @ pairs[0] ** order, rel=1e-12)
    assert raw_moment(law_of(variance), 7, 1) == pytest.approx(7 * single @ y**2, rel=1e-12)


def test_moments_at_the_extremes():
    assert raw_moment(law_of(2**100), 10, 1) == pytest.approx(10 * 2.0**100, rel=1e-12)
    assert raw_moment(law_of(Fraction(1, 10**6)), 10, 1) == 0.0
    mechanism = Mechanism("large", law_of(100), (10**6,), 1.0)
    assert mechanism.loss_kurtosis == pytest.approx(1.0, abs=1e-4)
    assert mechanism.loss_skewness == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("variance", [Fraction(1, 5), Fraction(3), Fraction(40)])
def test_quantiles_are_exact_for_a_few_entries(variance):
    reach = math.ceil(12 * math.sqrt(variance)) + 3
    squares = np.zeros(reach * reach + 1)
    np.add.at(squares, np.arange(-reach, reach + 1) ** 2, pmf(variance, reach))
    for dimension, law in ((1, squares), (2, np.convolve(squares, squares))):
        cumulative_law = np.cumsum(law)
        for probability in (0.01, 0.3, 0.5, 0.9, 0.999):
            exact = int(np.searchsorted(cumulative_law, probability))
            assert quantile(law_of(variance), dimension, probability) == exact


@pytest.mark.slow
def test_quantiles_beyond_convolution():
    from scipy.stats import chi2

    for variance, dimension in (
        (Fraction(10**4), 3),
        (Fraction(10**10), 50),
        (Fraction(10**10), 1),
        (Fraction(9), 10**9),
    ):
        for probability in (0.05, 0.5, 0.99):
            wanted = float(variance) * chi2.ppf(probability, dimension)
            assert quantile(law_of(variance), dimension, probability) == pytest.approx(wanted, rel=1e-3)
    values = draw_noise(law_of(2), (4000, 300), np.random.default_rng(4))
    measured = np.quantile((values**2).sum(axis=1), 0.9)
    assert quantile(law_of(2), 300, 0.9) == pytest.approx(measured, rel=0.01)


def test_mechanism_draws_its_law():
    mechanism = discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(400, 250))
    noise = mechanism.noise()
    assert noise.dtype == np.int64
    assert noise.shape == (400, 250)
    assert (noise.astype(float) ** 2).sum() == pytest.approx(mechanism.expected_loss, rel=0.03)


def test_examples_of_the_page():
    page = pathlib.Path(__file__).parents[4] / "docs" / "guide" / "discrete-gaussian.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert tried > 5
    assert failed == 0
