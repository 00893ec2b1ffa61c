"""Geometric noise for counts: its curve, its law, and that no integer noise has a smaller loss."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import lessnoise as ln
from lessnoise.mechanism.families.geometric import (
    Geometric,
    _end_bounds,
    geometric,
    last_probability,
    probabilities,
)
from lessnoise.mechanism.sums import log_sum_moment

TARGETS = [(1.0, 1e-6), (1.7, 1e-3), (0.2, 0.1), (0.5, 1e-6), (4.0, 1e-6), (8.0, 1e-6), (0.05, 1e-2), (1e-3, 0.4)]


def both_sides(law, count=None):
    """All probabilities that floats can tell from 0, from left to right."""
    found = probabilities(law, law.reach + 2 if count is None else count)
    return np.concatenate([found[:0:-1], found])


def brute_force(weights, change, epsilon):
    """Delta of a move by ``change``, term by term."""
    still, moved = np.pad(weights, (0, change)), np.pad(weights, (change, 0))
    return np.maximum(still - math.exp(epsilon) * moved, 0.0).sum()


def program(epsilon, delta, reach, loss=np.square):
    """The least mean loss of any law on the integers -reach..reach: a linear program."""
    size = 2 * reach + 1
    k = np.arange(-reach, reach + 1)
    # Variables: p, then the excess of either side: s_k >= p_k - e^eps p_(k+-1), also beyond the ends.
    rows, right = [], []
    for side in (1, -1):
        for place in range(size):
            row = np.zeros(3 * size)
            row[place] = 1.0
            if 0 <= place + side < size:
                row[place + side] = -math.exp(epsilon)
            row[(2 if side < 0 else 1) * size + place] = -1.0
            rows.append(row)
            right.append(0.0)
        row = np.zeros(3 * size)
        row[(2 if side < 0 else 1) * size :][:size] = 1.0
        rows.append(row)
        right.append(delta)
    total = np.concatenate([np.ones(size), np.zeros(2 * size)])[None]
    cost = np.concatenate([loss(k).astype(float), np.zeros(2 * size)])
    found = linprog(cost, np.array(rows), right, total, [1.0], method="highs")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(("epsilon", "delta"), [t for t in TARGETS if t[0] >= 0.2])
@pytest.mark.parametrize("loss", [np.square, np.abs, lambda k: np.abs(k) > 1], ids=["squared", "absolute", "beyond 1"])
def test_no_law_on_the_integers_does_better(epsilon, delta, loss):
    law = Geometric(epsilon, delta)
    best = program(epsilon, delta, law.reach + 6, loss)
    ours = float(np.dot(both_sides(law), loss(np.arange(-law.reach - 1, law.reach + 2))))
    assert ours == pytest.approx(best, rel=3e-4 if delta < 1e-4 else 1e-6, abs=1e-9)  # the solver is feasible to 1e-7


@settings(max_examples=60, deadline=None)
@given(st.floats(0.02, 12.0), st.floats(1e-12, 0.7))
def test_the_dual_certificate_is_feasible_and_tight(epsilon, delta):
    """The numbers c_k of the module's proof: they rise from 0 or more to m, and give the very loss of the law."""
    law = Geometric(epsilon, delta)
    reach, grow = law.reach, math.exp(epsilon)
    # c_K is affine in l: c_k = slope l - offset.
    slope, offset = 0.5, 0.0
    slopes, offsets = [slope], [offset]
    for k in range(1, reach + 1):
        slope, offset = 1.0 + grow * slope, k * k + grow * offset
        slopes.append(slope)
        offsets.append(offset)
    level = ((reach + 1) ** 2 + math.expm1(epsilon) * offset) / (1.0 + math.expm1(epsilon) * slope)
    values = [a * level - b for a, b in zip(slopes, offsets, strict=True)]
    most = ((reach + 1) ** 2 - level) / math.expm1(epsilon)
    assert values[0] >= 0.0
    if grow**reach < 1e9:  # else the recursion loses all digits in floats
        assert values[-1] == pytest.approx(most, rel=1e-5, abs=1e-6)
        assert all(b >= a * (1.0 - 1e-6) - 1e-6 for a, b in itertools.pairwise(values))
    squared = float(np.dot(both_sides(law), np.arange(-reach - 1, reach + 2) ** 2))
    assert level - 2.0 * delta * most == pytest.approx(squared, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_probabilities_add_up_and_the_end_is_within_the_tail(epsilon, delta):
    law = Geometric(epsilon, delta)
    assert both_sides(law).sum() == pytest.approx(1.0, rel=1e-12)
    assert 0.0 <= law.last <= delta * (1.0 + 1e-12)
    assert abs(last_probability(law, 200) - last_probability(law, 40)) < 1e-40


@pytest.mark.parametrize(("rate", "tail"), [*TARGETS, (0.3, 0.0), (2.5, 0.0)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.999, 1.0, 1.001, 1.5, 4.0])
def test_the_curve_is_the_sum_over_all_outputs(rate, tail, share):
    law = Geometric(rate, tail)
    weights = both_sides(law, None if tail else math.ceil(45.0 / rate))
    expected = brute_force(weights, 1, share * rate)
    bracket = ln.Mechanism("m", law, (3,), 1.0).delta(share * rate)
    assert bracket.lower <= expected * (1.0 + 1e-9) + 1e-18
    assert expected <= bracket.upper * (1.0 + 1e-9) + 1e-15
    assert bracket.relative_width < 1e-9 or bracket.upper < 1e-15


@pytest.mark.parametrize("change", [2, 3, 7])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9, 1.0])
def test_larger_changes_of_pure_noise_are_bracketed(change, share):
    law = Geometric(0.4)
    weights = both_sides(law, 120)
    epsilon = share * 0.4 * change
    single = brute_force(weights, change, epsilon)
    line = ln.Mechanism("m", law, (1,), float(change)).delta(epsilon)
    assert line.lower - 1e-12 <= single <= line.upper + 1e-12
    split = np.zeros((len(weights) + 1, len(weights) + change - 1))  # 1 in one entry, the rest in another
    many = ln.Mechanism("m", law, (9,), float(change)).delta(epsilon)
    pairs = np.outer(np.pad(weights, (0, 1)), np.pad(weights, (0, change - 1)))
    moved = np.outer(np.pad(weights, (1, 0)), np.pad(weights, (change - 1, 0)))
    assert pairs.shape == split.shape
    assert many.lower - 1e-12 <= single
    assert max(single, np.maximum(pairs - math.exp(epsilon) * moved, 0.0).sum()) <= many.upper + 1e-12


@pytest.mark.parametrize(("rate", "tail"), [(1.0, 1e-6), (0.7, 0.05), (3.0, 0.3), (0.4, 0.0), (0.02, 1e-3)])
def test_drawn_frequencies_are_the_probabilities(rate, tail):
    """Two-sided, value by value: 7 deviations, seeded."""
    law, count = Geometric(rate, tail), 400_000
    drawn = ln.Mechanism("m", law, (count,), 1.0).noise(np.random.default_rng(5))
    reach = law.reach + 1 if tail else 60
    expected = probabilities(law, reach + 1)
    if tail:
        assert np.abs(drawn).max() <= reach
    for k in {*range(min(reach, 12) + 1), reach - 1, reach} if tail else range(13):
        for sign in (1, -1):
            mean, seen = count * expected[k], (drawn == sign * k).sum()
            assert abs(seen - mean) <= 7.0 * math.sqrt(mean) + 7.0
    variance = float(np.dot(2.0 * expected, np.arange(reach + 1.0) ** 2)) if tail else 0.5 / math.sinh(0.5 * rate) ** 2
    fourth = float(np.dot(2.0 * expected, np.arange(reach + 1.0) ** 4)) if tail else 24.0 / rate**4
    assert np.mean(drawn.astype(float) ** 2) == pytest.approx(variance, abs=7.0 * math.sqrt(fourth / count))


def test_wide_noise_is_drawn_by_blocks():
    law, count = Geometric(1e-5, 1e-7), 200_000
    drawn = np.abs(ln.Mechanism("m", law, (count,), 1.0).noise(np.random.default_rng(7))).astype(float)
    assert drawn.max() <= law.reach + 1
    for share in (0.1, 0.5, 0.9):
        within = -math.log1p(share * math.expm1(-1e-5 * law.reach)) / 1e-5
        assert np.mean(drawn <= within) == pytest.approx(share, abs=7.0 * math.sqrt(share / count))
    assert np.unique(drawn % 2).tolist() == [0.0, 1.0]


def test_the_end_is_chosen_with_its_exact_probability():
    law = Geometric(0.9, 1e-2)
    for bits in (64, 128, 512):
        low, high = _end_bounds(law, bits)
        assert 0 < high - low < 2 ** (bits - 64) + 2**8
        assert Fraction(low, 2**bits) <= 2 * Fraction(last_probability(law, 400)) <= Fraction(high, 2**bits)


@pytest.mark.slow
def test_losses_and_quantiles():
    law, dimension = Geometric(0.8, 1e-4), 7
    weights = both_sides(law)
    squares = np.arange(-law.reach - 1, law.reach + 2.0) ** 2
    mechanism = ln.Mechanism("m", law, (dimension,), 1.0)
    assert mechanism.expected_loss == pytest.approx(dimension * np.dot(weights, squares), rel=1e-12)
    moments = [float(np.dot(weights, squares**j)) for j in range(5)]
    fourth = math.exp(log_sum_moment(moments, dimension, 4) - 2.0 * log_sum_moment(moments, dimension, 2))
    assert mechanism.loss_kurtosis == pytest.approx(fourth, rel=1e-9)
    draws = np.array([(mechanism.noise(np.random.default_rng(seed)).astype(float) ** 2).sum() for seed in range(3000)])
    for q in (0.5, 0.95):
        quantile = mechanism.loss_quantile(q)
        slack = 6.0 * math.sqrt(q * (1.0 - q) / len(draws))
        assert np.mean(draws < quantile) - slack <= q <= np.mean(draws <= quantile) + slack


@pytest.mark.parametrize(
    ("epsilon", "optimum"), [(0.5, 7.833), (1.0, 1.841), (2.0, 0.3620), (4.0, 0.0380), (8.0, 0.00067)]
)
def test_published_optima_per_cell(epsilon, optimum):
    m = geometric(epsilon=epsilon, delta=1e-6, shape=100)
    assert m.expected_loss / 100 == pytest.approx(optimum, rel=1e-3, abs=5e-6)
    assert m.check().holds
    certificate = m.release(np.zeros(100, dtype=int)).certificate
    assert certificate.claim_holds
    assert certificate.guarantee.delta <= 1e-6
    assert certificate.grid == 1.0


def test_descriptions_survive_json_and_compose():
    m = geometric(epsilon=0.1, delta=1e-8, shape=4)
    assert ln.Mechanism.from_json(m.to_json()) == m
    year = m.repeat(50)
    assert year.epsilon(1e-6).upper < 5.0
    assert ln.Certificate.from_dict(m.release([1, 2, 3, 4]).certificate.to_dict()).mechanism == m


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "epsilon=0"),
        ({"delta": 1.0}, "delta=1"),
        ({"sensitivity": 0.5}, "sensitivity=0.5 is below 1"),
        ({"delta": 1e-6, "sensitivity": 2.0}, "delta=1e-06 is of use where one individual"),
        ({"shape": 0}, "shape"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, words):
    with pytest.raises(ln.InvalidInput, match=words):
        geometric(**{"epsilon": 1.0, "shape": 3, **options})


def test_values_that_are_not_whole_are_refused():
    m = geometric(epsilon=1, shape=2)
    with pytest.raises(ln.InvalidInput, match="not a whole number"):
        m.release([0.5, 1.0])
    with pytest.raises(ln.InvalidInput, match="one count that changes by 1"):
        ln.Mechanism("m", Geometric(1.0, 1e-6), (2,), 2.0).delta(1.0)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_audits_find_what_the_curve_says(delta):
    """The likelihood attack against count noise: never above the exact delta, and near it."""
    m = geometric(epsilon=0.7, delta=delta, shape=2)
    report = ln.audit(m, [5, 5], claim=(0.1, 1e-9), samples=40_000, rng=np.random.default_rng(3), progress=False)
    exact = m.delta(0.1).upper
    assert report.refuted
    assert 0.9 * exact < report.delta <= exact
