"""Quantiles that are chosen: the law against brute force, its epsilon over all small tables, and both ways to draw."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from lessnoise.composition import compose
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import Mechanism, QuantileChoice, geometric, quantile_choice
from lessnoise.mechanism.counts.descent import Choice, Lines, level_shares, places_of, tree
from lessnoise.noise import Stream
from lessnoise.release import Certificate
from tests.helpers.sentences import refused

QUARTILES = (0.25, 0.5, 0.75)


def words(seed):
    return Stream.of(np.random.default_rng(seed)).claim().sequence()


def places(counts, probabilities, epsilon, whole, points):
    """The chances of all outcomes, by brute force on midpoints of a fine grid: one axis for each probability."""
    counts = np.asarray(counts, dtype=float)
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    where = (np.arange(len(counts) * points) + 0.5) / points
    rank = np.interp(where, np.arange(len(sums)), sums)
    weight = np.where(where.astype(int) % whole == 0, max(whole - 1.0, 1.0), 1.0)
    shares, _ = level_shares(probabilities)

    def choose(node, low, high):
        inside = (where >= low) & (where <= high)
        ends = np.interp([low, high], np.arange(len(sums)), sums)
        share = float(node.share)
        rate = epsilon * shares[node.level] / (2.0 * max(share, 1.0 - share))
        chances = inside * weight * np.exp(-rate * np.abs(rank - ends[0] - share * (ends[1] - ends[0])))
        return chances / chances.sum()

    return where, choose


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "whole"), [(0.8, 1), (2.0, 8)])
def test_the_drawn_law_is_that_of_a_brute_force_sum(epsilon, whole):
    from scipy.stats import chi2

    counts, draws, points = [4, 0, 9], 3000, 60
    where, choose = places(counts, QUARTILES, epsilon, whole, points)
    middle, lower, upper = tree(QUARTILES)
    expected = np.zeros((3, 12))  # in quarters of cells
    bins = (where * 4).astype(int)
    first = choose(middle, 0.0, 3.0)
    for chance, place in zip(first, where, strict=True):
        for row, found in ((0, choose(lower, 0.0, place)), (2, choose(upper, place, 3.0))):
            expected[row] += chance * np.bincount(bins, found, 12)
    expected[1] = np.bincount(bins, first, 12)
    lines = Lines(np.repeat([counts], draws, axis=0), QUARTILES, epsilon, whole)
    drawn = lines.draw(words(int(10 * epsilon))) / places_of(3)
    assert (np.diff(drawn, axis=1) >= 0.0).all()
    for row in range(3):
        seen = np.bincount((drawn[:, row] * 4).astype(int), minlength=12)
        statistic = ((seen - draws * expected[row]) ** 2 / (draws * expected[row])).sum()
        assert statistic < chi2.isf(1e-10, 11), row
        other = np.roll(expected[row], 1)
        assert ((seen - draws * other) ** 2 / (draws * other)).sum() > chi2.isf(1e-10, 11), "a wrong law is found out"


def log_density(counts, node, ends, place, epsilon, whole):
    """Of one choice of the library between two places, at a place: the exponent less the logarithm of its own total."""
    lines = Lines(np.array([counts]), QUARTILES, epsilon, whole)
    ranks = np.concatenate([[0], np.cumsum(counts)])[np.newaxis] * lines.unit
    line = [np.interp(x / lines.unit, np.arange(ranks.shape[1]), ranks[0]) for x in (*ends, place)]
    rate = Fraction(epsilon) * Fraction(level_shares(QUARTILES)[0][node.level]) / (node.spread * lines.unit)
    heights = np.array([line[:2]]).astype(np.int64)
    choice = Choice(lines, ranks, np.array([ends]), heights, node.share, rate)
    total = choice._cell_weights(0, len(counts)).sum()
    return -float(rate) * abs(line[2] - float(choice.goals[0])) - math.log(total)


@pytest.mark.parametrize("whole", [1, 4])
def test_no_row_changes_the_chance_of_an_outcome_by_more_than_epsilon(whole):
    """All tables of at most 2 rows in each of three cells, and one row more; the whole descent, at its own totals."""
    epsilon, unit = 1.5, places_of(3)
    middle, lower, upper = tree(QUARTILES)
    odd = [int(share * unit) | 1 for share in (0.02, 0.7, 1.3, 1.98, 2.6)]
    outcomes = [(a, b, c) for a, b, c in itertools.combinations_with_replacement(odd, 3) if a < b < c]
    tables = {}
    for counts in itertools.product(range(4), repeat=3):
        tables[counts] = np.array(
            [
                log_density(counts, middle, (0, 3 * unit), b, epsilon, whole)
                + log_density(counts, lower, (0, b), a, epsilon, whole)
                + log_density(counts, upper, (b, 3 * unit), c, epsilon, whole)
                for a, b, c in outcomes
            ]
        )
    worst = 0.0
    for counts, cell in itertools.product(itertools.product(range(3), repeat=3), range(3)):
        more = tuple(n + (i == cell) for i, n in enumerate(counts))
        worst = max(worst, float(np.abs(tables[counts] - tables[more]).max()))
    assert 0.4 * epsilon < worst <= epsilon * (1.0 + 1e-9)


def test_the_loss_of_one_choice_comes_near_to_epsilon():
    """A hundred rows on either side of a wide gap: the gap wins, or with one row more its left end."""
    counts, node = [100, *[0] * 1000, 100], tree((0.5,))[0]
    lines = Lines(np.array([counts]), (0.5,), 1.0)

    def chance(counts, rank):
        ranks = np.concatenate([[0], np.cumsum(counts)])[np.newaxis] * lines.unit
        ends, heights = np.array([[0, len(counts) * lines.unit]]), ranks[:, [0, -1]]
        choice = Choice(lines, ranks, ends, heights, node.share, Fraction(1) / lines.unit)
        return -abs(rank - sum(counts) / 2) - math.log(choice._cell_weights(0, len(counts)).sum())

    more = [101, *counts[1:]]
    assert 0.95 < chance(more, 100.5) - chance(counts, 99.5) <= 1.0


TABLES = np.array([[3, 0, 5, 1, 0, 0, 2, 7], [0] * 8, [100, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 5 * 10**11, 0, 0, 0, 1]])


@pytest.mark.parametrize("epsilon", [1e-3, 0.7, 40.0])
@pytest.mark.parametrize("probabilities", [(0.5,), QUARTILES, (0.001, 0.1, 0.9, 0.999)])
def test_floats_and_exact_arithmetic_choose_the_same_places(epsilon, probabilities):
    for seed in range(3):
        quick = Lines(TABLES, probabilities, epsilon, 2).draw(words(seed))
        slow = Lines(TABLES, probabilities, epsilon, 2, margin=2.0).draw(words(seed))
        np.testing.assert_array_equal(quick, slow)
        assert (np.diff(quick, axis=1) >= 0).all()
        assert ((quick > 0) & (quick < 8 * places_of(8))).all()


@pytest.mark.slow
def test_the_error_is_the_one_that_is_stated_where_rows_are_dense():
    lines = Lines(np.ones((400, 1000), dtype=np.int64), QUARTILES, 0.5)
    ranks = lines.draw(words(0)) / lines.unit - 1000 * np.array(QUARTILES)
    # The variance of 400 independent draws of Laplace noise is known to 11%: seven deviations are 0.39 of the root.
    assert np.sqrt((ranks**2).mean()) == pytest.approx(level_shares(QUARTILES)[1] / 0.5, rel=0.39)


def test_a_mechanism_with_its_curve_certificate_and_description():
    m = quantile_choice(epsilon=0.85, cells=16, probabilities=QUARTILES, groups=3, rows=2, neighbours="replace")
    assert m.sensitivity == 4.0
    assert m.law.epsilon * 4.0 <= 0.85
    assert m.check().holds
    assert 0.0 < m.delta(0.4).upper <= math.tanh(0.85 / 2) + 1e-12
    assert m.epsilon(0.0).upper <= 0.85
    assert Mechanism.from_json(m.to_json()) == m
    made = m.release(np.ones((48,)))
    assert made.value.shape == (3, 3)
    assert Certificate.from_dict(made.certificate.to_dict()) == made.certificate
    assert "exact law" in " ".join(made.certificate.assumptions)
    both = compose(m, geometric(epsilon=0.15, shape=4, neighbours=Neighbours.REPLACE))
    assert both.within(1.0, 1e-20)
    assert not both.within(0.9, 1e-3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: quantile_choice(epsilon=1, cells=1, probabilities=[0.5]), "cells"),
        (lambda: quantile_choice(epsilon=1, cells=1 << 21, probabilities=[0.5]), "more than"),
        (lambda: quantile_choice(epsilon=1, cells=4, probabilities=[0.5, 0.5]), "rise"),
        (lambda: quantile_choice(epsilon=1, cells=4, probabilities=[]), "probabilities"),
        (lambda: quantile_choice(epsilon=1, cells=4, probabilities=[1.0]), "probabilities"),
        (lambda: quantile_choice(epsilon=0, cells=4, probabilities=[0.5]), "epsilon"),
        (lambda: Mechanism("x", QuantileChoice(4, (0.5,), 1.0), (6,), 1.0), "lines of 4 cells"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).release([1, -1]), "whole counts"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).release([1, 0.5]), "whole counts"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).release([2**41, 0]), "more than"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).noise(), "depends on the data"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).expected_loss, "depends on the data"),
        (lambda: quantile_choice(epsilon=1, cells=2, probabilities=[0.5]).loss_quantile(0.5), "depends on the data"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call, said):
    refused(call, said)
