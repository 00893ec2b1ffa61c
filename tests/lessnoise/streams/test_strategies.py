"""Strategies of streams against dense matrices, and their errors against the offline optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lessnoise.streams.buffers import ONE, Buffers, BuffersRun, column_norms, product, profile, quantum_for
from lessnoise.streams.fit import fitted_buffers
from lessnoise.streams.tree import (
    Tree,
    TreeRun,
    fitted_tree,
    own_weights,
    period_variances,
)
from lessnoise.streams.tree import (
    window as tree_window,
)

SIGMA = 4.224907  # of Gaussian noise for epsilon 1, delta 1e-6
OPTIMA = {64: 78.7, 256: 113.7, 1024: 155.9}  # squared error of the best Gaussian, which may see all periods at once
STRATEGY = Buffers(12, (int(0.97 * ONE), int(0.6 * ONE)), (int(0.2 * ONE), int(0.3 * ONE)), 0.7)


def dense(strategy):
    """R, T and D as matrices."""
    decays, gains = np.array(strategy.decays) / ONE, np.array(strategy.gains) / ONE
    n = strategy.periods
    coefficients = [1.0] + [float(gains @ decays ** (k - 1)) for k in range(1, n)]
    toeplitz = np.array([[coefficients[t - s] if t >= s else 0.0 for s in range(n)] for t in range(n)])
    found = profile(strategy)
    return np.diag(found.weights), toeplitz, np.diag(found.scales)


@pytest.mark.parametrize("strategy", [STRATEGY, Buffers(1, (), (), 0.0), fitted_buffers(7)])
def test_columns_are_of_length_one_and_variances_those_of_the_inverse(strategy):
    weights, toeplitz, scales = dense(strategy)
    strategy_matrix = weights @ toeplitz @ scales
    lengths = np.linalg.norm(strategy_matrix, axis=0)
    assert lengths.max() <= 1.0 + 1e-9
    assert lengths.min() > 1.0 - 1e-6
    totals = np.tril(np.ones_like(toeplitz)) @ np.linalg.inv(strategy_matrix)
    assert np.allclose(strategy.variances(), (totals**2).sum(axis=1), rtol=1e-9)
    for first, last in itertools.combinations(range(1, strategy.periods + 1), 2):
        window = totals[last - 1] - (totals[first - 2] if first > 1 else 0.0)
        assert math.isclose(strategy.window_variance(first, last), float(window @ window), rel_tol=1e-9)


def test_norms_of_columns_are_those_of_the_matrix():
    weights = np.random.default_rng(0).uniform(1.0, 2.0, 9)
    decays, gains = np.array([0.9, 0.5, 0.2]), np.array([0.1, 0.3, 0.2])
    coefficients = np.array([1.0] + [gains @ decays ** (k - 1) for k in range(1, 9)])
    expected = [np.linalg.norm(weights[s:] * coefficients[: 9 - s]) for s in range(9)]
    assert np.allclose(column_norms(decays, gains, weights), expected, rtol=1e-13)


def test_products_are_rounded_down_exactly():
    rng = np.random.default_rng(1)
    numbers = np.concatenate([rng.integers(-(2**62), 2**62, 500), [0, -1, 1, 2**62 - 1, -(2**62)]])
    for factor in (0, 1, 12345, ONE - 1, ONE):
        assert product(numbers, factor).tolist() == [int(u) * factor // ONE for u in numbers]


def test_whole_arithmetic_stays_within_the_deviation_and_the_sensitivity():
    """Two inputs that differ in one period: what is measured differs by C times that, and by less than stated."""
    rng, (_, toeplitz, scales) = np.random.default_rng(2), dense(STRATEGY)
    most = 0.0
    for _ in range(50):
        inputs = rng.integers(-1000, 1000, STRATEGY.periods)
        other, place = inputs.copy(), int(rng.integers(STRATEGY.periods))
        other[place] += int(rng.integers(1, 50))
        found = []
        for values in (inputs, other):
            run, measured = BuffersRun(STRATEGY, 1), []
            for period, value in enumerate(values, start=1):
                quanta, private = run.measured(np.array([value]), period)
                run.settle({**private, "found": run.found, "total": run.total})
                measured.append(int(quanta[0][0]))
            found.append(np.array(measured))
        linear = toeplitz @ scales @ (other - inputs)
        most = max(most, float(np.abs(found[1] - found[0] - linear).max()))
    assert 1.0 < most < STRATEGY.deviation(1)


def test_the_quantum_keeps_all_deviations_within_the_share():
    quantum = quantum_for(STRATEGY, 3.0, 5, 1, 2.0**-12)
    weights = profile(STRATEGY).weights
    most = STRATEGY.deviation(1) * quantum * math.sqrt(5.0 * float(weights @ weights))
    assert 0.49 * 2.0**-12 * 3.0 < most <= 2.0**-12 * 3.0


@pytest.mark.slow
@pytest.mark.parametrize("periods", OPTIMA)
def test_buffers_come_within_a_hundredth_of_the_offline_optimum(periods):
    error = SIGMA**2 * float(fitted_buffers(periods).variances().mean())
    assert OPTIMA[periods] * 0.999 <= error <= OPTIMA[periods] * 1.01


# Trees.


def rows(tree):
    """The measured nodes as questions about the periods: level, first period, row."""
    for level, size in enumerate(tree.sizes):
        for start in range(0, tree.periods - size + 1, size):
            row = np.zeros(tree.periods)
            row[start : start + size] = 1.0
            yield level, start + size, row


def node_noise(tree, own):
    """What each node's noise does to the rows that are released, and the totals' places among them."""
    nodes = list(rows(tree))
    found = np.zeros((tree.records(tree.periods), len(nodes)))
    for node in range(len(nodes)):  # everything is linear in the noise: one node's noise at a time
        run, released = TreeRun(tree, 1, own), []
        for period in range(1, tree.periods + 1):
            complete, private = run.measured(np.zeros(1, dtype=np.int64), period)
            noisy = {
                level: np.array([float(nodes[node][0] == level and nodes[node][1] == period)]) for level in complete
            }
            run.settle({**private, **run.estimated(noisy, period)})
            released += [run.total[0], *run.inner[:, 0]]
        found[:, node] = released
    return found * np.sqrt([own[level] for level, _, _ in nodes])


@pytest.mark.parametrize(
    ("tree", "own"),
    [
        (Tree(20, (3, 2), (0.3, 0.3, 0.3)), [1.0, 2.0, 0.7]),
        (Tree(16, (2, 2, 2), (0.2,) * 4), [1.0, 0.5, 3.0, 1.0]),
        (Tree(9, (), (0.5,)), [2.0]),
    ],
)
def test_windows_have_the_stated_variance_and_are_no_worse_than_either_way(tree, own):
    spread = node_noise(tree, own)
    totals = np.vstack([np.zeros(spread.shape[1]), spread[[tree.records(t) for t in range(tree.periods)]]])
    measured = [(own[level], end, row) for level, end, row in rows(tree)]
    better = 0
    for first, last in itertools.combinations_with_replacement(range(1, tree.periods + 1), 2):
        variance, share, nodes = tree_window(tree, tuple(own), first, last)
        difference, inside = totals[last] - totals[first - 1], np.zeros(spread.shape[1])
        covered = []
        for level, start in nodes:
            place = tree.record(level, start)
            end = start + tree.sizes[level]
            inside += totals[end] - totals[start] if place is None else spread[place]
            covered += range(start + 1, end + 1)
        assert covered == (list(range(first, last + 1)) if nodes else [])
        found = share * inside + (1.0 - share) * difference
        assert math.isclose(variance, float(found @ found), rel_tol=1e-9)
        assert variance <= float(difference @ difference) * (1.0 + 1e-9)
        if nodes:
            assert variance <= float(inside @ inside) * (1.0 + 1e-9)
            better += variance < 0.9 * float(difference @ difference)
        scaled = np.array([row[:last] / math.sqrt(noise) for noise, end, row in measured if end <= last])
        question = np.zeros(last)
        question[first - 1 :] = 1.0
        least = float(question @ np.linalg.solve(scaled.T @ scaled, question))  # of all that was measured until then
        assert variance >= least * (1.0 - 1e-9)
    assert better > 5 or not tree.radices


def test_estimates_are_the_least_squares_of_what_is_complete():
    tree, own = Tree(23, (3, 2), (0.3, 0.3, 0.3)), [1.0, 2.0, 0.7]
    variances = period_variances(tree, own)
    for period in range(1, 24):
        known = [(own[level], row) for level, end, row in rows(tree) if end <= period]
        scaled = np.array([row[:period] / math.sqrt(variance) for variance, row in known])
        question = np.ones(period)
        best = float(question @ np.linalg.solve(scaled.T @ scaled, question))
        assert math.isclose(variances[period - 1], best, rel_tol=1e-9)


def test_a_run_gives_the_totals_and_its_errors_have_the_stated_covariance():
    tree, own = Tree(20, (3, 2), (0.3, 0.3, 0.3)), [1.0, 2.0, 0.7]
    spread = node_noise(tree, own)[[tree.records(t) for t in range(20)]]
    assert np.allclose((spread**2).sum(axis=1), period_variances(tree, own))
    run, values = TreeRun(tree, 2, own), np.random.default_rng(3).integers(-9, 9, (20, 2))
    for period in range(1, 21):
        complete, private = run.measured(values[period - 1], period)
        noisy = {level: found.astype(float) for level, found in complete.items()}
        run.settle({**private, **run.estimated(noisy, period)})
        assert np.allclose(run.total, values[:period].sum(axis=0))


def test_shares_are_those_of_a_search_and_the_tree_is_the_best_of_even_ones():
    def variance(share):
        return 2.0 / share**2

    tree = fitted_tree(64, variance)
    error = float(period_variances(tree, [variance(share) for share in tree.shares]).mean())
    assert sum(tree.shares) <= 1.0 - 1e-12
    assert error < 53.0
    for first in np.linspace(0.2, 0.8, 121):
        if len(tree.shares) == 2:
            other = period_variances(tree, [variance(first), variance(1.0 - first)]).mean()
            assert error <= other * (1.0 + 1e-6)
    for radix in range(2, 64):
        two_levels = min(
            period_variances(Tree(64, (radix,), (0.4, 0.4)), [variance(share), variance(1.0 - share)]).mean()
            for share in np.linspace(0.3, 0.8, 51)
        )
        assert error <= two_levels * (1.0 + 1e-3)


def test_weights_are_by_precision():
    weights, variances = own_weights((2,), [1.0, 2.0])
    assert weights == [1.0, 0.5]
    assert variances == [1.0, 1.0]
