"""Several quantiles chosen at once: sums and draws against enumeration, and epsilon over all small tables."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from lessnoise.mechanism.counts.joint_choice import JOINT_UNIT, Chain, JointLines, joint_deviation
from lessnoise.mechanism.counts.positive_sums import between, floats, pick, whole_number
from lessnoise.mechanism.counts.spread_rows import DIGITS, SpreadRows, nth_place
from lessnoise.noise import Stream, Word

QUARTILES = (0.25, 0.5, 0.75)
PIECES = 16  # of a cell: with fewer rows than that, the rank changes nowhere else
FEW_PIECES = 4


def words(seed):
    return Stream.of(np.random.default_rng(seed)).claim().sequence()


def reversed_digits(row):
    return int(format(row % (1 << DIGITS), f"0{DIGITS}b")[::-1], 2)


def enumerated(counts, probabilities, epsilon, whole, pieces=PIECES):
    """All outcomes in pieces of cells, and the weight of each, straight from the law."""
    step = max(int(6 / epsilon), 1)
    sums, ranks, masses = 0, [], []
    for cell, count in enumerate(counts):
        rows = [reversed_digits(row) / 2.0**DIGITS for row in range(1, count + 1)]
        ranks += [sums + sum(row <= piece / pieces for row in rows) for piece in range(pieces)]
        masses += [max(whole - 1, 1) if cell % whole == 0 else 1] * pieces
        sums += count
    ranks, masses = np.array(ranks), np.array(masses) / sum(masses)
    outcomes = np.array(list(itertools.combinations_with_replacement(range(len(ranks)), len(probabilities))))
    base = masses[outcomes].prod(axis=1)
    base /= [math.prod(math.factorial(n) for n in np.unique(row, return_counts=True)[1]) for row in outcomes]
    cuts = np.concatenate([np.zeros((len(outcomes), 1)), ranks[outcomes], np.full((len(outcomes), 1), sums)], axis=1)
    weights = np.zeros(len(outcomes))
    for v in range(0, sums + int(100 / epsilon), step):
        goals = np.diff([0.0, *(math.floor(8 * Fraction(p) * v + Fraction(1, 2)) / 8 for p in probabilities), v])
        weights += base * np.exp(-0.5 * epsilon * abs(np.diff(cuts, axis=1) - goals).sum(axis=1))
    return outcomes, weights


def chain(counts, probabilities, epsilon, whole):
    lines = JointLines(np.array([counts]), probabilities, epsilon, whole)
    return Chain(SpreadRows(np.concatenate([[0], np.cumsum(counts)]), lines.weights), probabilities, epsilon)


@pytest.mark.parametrize("probabilities", [(0.1,), (0.3, 0.9), QUARTILES])
@pytest.mark.parametrize("counts", [(0, 0), (5, 1), (0, 15), (1, 0, 7)])
def test_the_sum_over_the_chain_is_that_over_all_outcomes(counts, probabilities):
    for epsilon, whole in ((0.8, 1), (3.0, 2)):
        built = chain(counts, probabilities, epsilon, whole)
        window = built.window(50.0)
        totals = built.sums(window, window.numbers, floats(built.rate, 1e-10)).totals
        _, weights = enumerated(counts, probabilities, epsilon, whole)
        assert float(totals.sum()) == pytest.approx(weights.sum(), rel=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "whole"), [(0.8, 1), (2.0, 2)])
def test_the_drawn_law_is_that_of_the_enumeration(epsilon, whole):
    from scipy.stats import chi2

    counts, draws = [4, 0, 9], 1500
    outcomes, weights = enumerated(counts, QUARTILES, epsilon, whole)
    lines = JointLines(np.repeat([counts], draws, axis=0), QUARTILES, epsilon, whole)
    drawn = lines.draw(words(int(10 * epsilon)))
    assert (np.diff(drawn, axis=1) >= 0).all()

    def table(places):  # which third of the line each of the three is in, and in which half of it the second
        cells = places // PIECES
        return cells @ [9, 3, 1] * 2 + places[:, 1] // (PIECES // 2) % 2

    expected = np.bincount(table(outcomes), weights / weights.sum(), 54) * draws
    seen = np.bincount(table(drawn // (JOINT_UNIT // PIECES)), minlength=54)
    often = expected > 5.0
    expected, seen = (np.append(each[often], each[~often].sum()) for each in (expected, seen))
    statistic = ((seen - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    assert statistic < chi2.isf(1e-10, len(seen) - 1)
    other = np.maximum(np.roll(expected, 1), 1e-9)
    assert ((seen - other) ** 2 / other).sum() > chi2.isf(1e-10, len(seen) - 1), "a wrong law is found out"


@pytest.mark.parametrize("whole", [1, 2])
@pytest.mark.parametrize("probabilities", [(0.3, 0.9), QUARTILES])
def test_no_row_changes_the_chance_of_an_outcome_by_more_than_epsilon(probabilities, whole):
    epsilon = 1.5
    tables = {}
    for counts in itertools.product(range(4), repeat=2):
        _, weights = enumerated(counts, probabilities, epsilon, whole, FEW_PIECES)
        tables[counts] = np.log(weights / weights.sum())
    worst = 0.0
    for counts, cell in itertools.product(itertools.product(range(3), repeat=2), range(2)):
        more = tuple(n + (i == cell) for i, n in enumerate(counts))
        worst = max(worst, float(np.abs(tables[counts] - tables[more]).max()))
    assert 0.3 * epsilon < worst <= epsilon * (1.0 + 1e-9)


TABLES = np.array([[3, 0, 5, 1, 0, 0, 2, 7], [0] * 8, [100, 0, 0, 0, 0, 0, 0, 1]])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 40.0])
@pytest.mark.parametrize("probabilities", [(0.5,), QUARTILES, (0.001, 0.1, 0.9, 0.999)])
def test_floats_and_digits_choose_the_same_places(epsilon, probabilities):
    quick = JointLines(TABLES, probabilities, epsilon, 2).draw(words(1))
    slow = JointLines(TABLES, probabilities, epsilon, 2, margin=2.0).draw(words(1))
    np.testing.assert_array_equal(quick, slow)
    assert (np.diff(quick, axis=1) >= 0).all()
    assert ((quick > 0) & (quick < 8 * JOINT_UNIT)).all()


def test_a_value_that_very_many_rows_share_is_found():
    counts = np.array([[0, 0, 5 * 10**9, 0, 0, 0, 0, 1]])
    places = JointLines(counts, (0.1, 0.5, 0.999), 1.0).draw(words(2)) / JOINT_UNIT
    np.testing.assert_allclose(places, [[2.1, 2.5, 2.999]], atol=1e-6)


@pytest.mark.slow
def test_the_error_is_the_one_that_is_stated_where_rows_are_dense():
    lines = JointLines(np.ones((400, 1000), dtype=np.int64), QUARTILES, 0.5)
    ranks = lines.draw(words(0)) / lines.unit - 1000 * np.array(QUARTILES)
    # Sums of Laplace noise: the variance of 400 draws is known to 11%, and seven deviations are 0.39 of the root.
    assert np.sqrt((ranks**2).mean()) == pytest.approx(joint_deviation(QUARTILES) / 0.5, rel=0.39)
    assert np.sqrt((ranks**2).mean()) < 3.04 / 0.5


def test_rows_are_spread_one_after_the_other_and_counted():
    for size in (1, 2, 3, 9, 100):
        rows = sorted(reversed_digits(row) for row in range(1, size + 1))
        assert nth_place(np.full(size, size), np.arange(1, size + 1)).tolist() == rows
    spread = SpreadRows(np.array([0, 3, 3, 4]), np.array([2, 1, 1]))
    cell = 1 << DIGITS
    assert spread.below(np.arange(7)).tolist() == [0, cell // 2, cell, 3 * cell // 2, 7 * cell // 2, 4 * cell, 4 * cell]
    assert spread.place(0) == 1
    assert spread.place(2 * cell) == 2 * cell + 1
    assert spread.place(4 * cell - 1) == 6 * cell - 1


def test_sums_between_places_and_choices_among_weights():
    rng = np.random.default_rng(0)
    values, ends = rng.random((3, 37)), np.sort(rng.integers(0, 38, (3, 50, 2)), axis=2)
    found = between(values, ends[..., 0], ends[..., 1])
    direct = [[row[a:b].sum() for a, b in own] for row, own in zip(values, ends, strict=True)]
    np.testing.assert_allclose(found, direct, rtol=1e-13)
    weights, by = np.array([1.0, 2.0, 1.0]), floats(1, 1e-9)
    assert [pick(weights, (u, u), 1e-9, (True, True), by) for u in (0.0, 0.24, 0.26, 0.74, 0.76)] == [0, 0, 1, 1, 2]
    assert pick(weights, (0.25, 0.25), 1e-9, (True, True), by) is None
    assert pick(weights, (0.0, 0.0), 1e-9, (False, True), by) is None
    reader, block, position = words(3).addressed(1)[1]
    word = Word(reader, block, position)
    assert whole_number(10**6, word) == math.floor(word.uniform(3)[0] * 10**6)
    assert 0 <= whole_number(3 * 10**30, word) < 3 * 10**30
