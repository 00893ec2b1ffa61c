"""Optimised strategies: slopes against differences, errors against the best that is known, trees against H_b."""

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import cache, workload
from lessnoise.strategy import (
    Nested,
    PIdentity,
    laplace_strategies,
    optimise_nested,
    optimise_p_identity,
    optimise_tree,
    tree,
)
from lessnoise.strategy.optimise import hats_loss, nested_loss
from lessnoise.strategy.squares import lines_of, squares_of
from lessnoise.strategy.tree import levels
from lessnoise.strategy.woodbury import Woodbury

# Squared error of a query for Laplace noise at epsilon 1, of the best p-identity strategies known.
BEST = {
    ("prefixes", 64): 28.3,
    ("prefixes", 256): 54.3,
    ("ranges", 64): 30.8,
    ("ranges", 256): 65.1,
}
TREES = {  # of the best trees with equal weights
    ("prefixes", 64): 35.3,
    ("prefixes", 256): 70.4,
    ("prefixes", 1024): 121.2,
    ("ranges", 64): 37.1,
    ("ranges", 256): 79.2,
    ("ranges", 1024): 164.3,
}


def _error(strategy, asked):
    return 2.0 * strategy.norm(1) ** 2 * strategy.trace(asked) / asked.queries


def _asked(kind, cells):
    return getattr(workload, kind)(cells)


@pytest.mark.parametrize(("kind", "cells"), BEST)
def test_optimised_strategies_reach_the_least_error_known(kind, cells):
    asked = _asked(kind, cells)
    found = next(laplace_strategies(asked))
    assert found.norm(1) == 1.0
    assert _error(found, asked) <= 1.01 * BEST[kind, cells]
    assert _error(found, asked) >= 0.95 * BEST[kind, cells]


@pytest.mark.slow
def test_a_thousand_cells():
    for asked, best in ((workload.prefixes(1024), 92.4), (workload.ranges(1024), 122.5)):
        found = next(laplace_strategies(asked))
        assert found.norm(1) == 1.0
        assert 0.95 * best <= _error(found, asked) <= 1.01 * best


def test_the_slope_of_the_trace_is_that_of_differences():
    rng = np.random.default_rng(0)
    for asked in (workload.prefixes(9), workload.ranges(9) + workload.identity(9), workload.matrix(np.eye(9)[:4] + 1)):
        squares, diagonal, rows = squares_of(asked), rng.uniform(0.2, 1.0, 9), rng.uniform(0.0, 1.0, (3, 9))
        own, slopes = Woodbury(diagonal, rows).slope(squares)
        step = 1e-6
        for cell in range(9):
            moved = step * np.eye(9)[cell]
            difference = (
                Woodbury(diagonal + moved, rows).trace(squares) - Woodbury(diagonal - moved, rows).trace(squares)
            ) / (2 * step)
            assert -2.0 * diagonal[cell] * own[cell] == pytest.approx(difference, rel=1e-5, abs=1e-5)
            moves = np.zeros((3, 9))
            moves[1, cell] = step
            difference = (
                Woodbury(diagonal, rows + moves).trace(squares) - Woodbury(diagonal, rows - moves).trace(squares)
            ) / (2 * step)
            assert -2.0 * slopes[1, cell] == pytest.approx(difference, rel=1e-5, abs=1e-5)


def test_the_slope_of_hats_is_that_of_differences():
    for asked in (workload.prefixes(11), workload.ranges(11) + workload.identity(11)):
        loss, count = hats_loss(lines_of(asked), 11, 4, 2)
        values = np.random.default_rng(2).uniform(0.1, 1.0, count)
        differences = [(loss(values + move)[0] - loss(values - move)[0]) / 2e-5 for move in 1e-5 * np.eye(count)]
        np.testing.assert_allclose(loss(values)[1], differences, atol=1e-8)


def test_the_slope_of_nested_strategies_is_that_of_differences():
    for asked in (workload.prefixes(30), workload.ranges(30), workload.identity(30) + workload.total(30)):
        loss = nested_loss(lines_of(asked), 6, 5, 2, 2)
        values = np.random.default_rng(1).uniform(0.1, 1.0, 23)
        slope = loss(values)[1]
        differences = [(loss(values + move)[0] - loss(values - move)[0]) / 2e-5 for move in 1e-5 * np.eye(23)]
        np.testing.assert_allclose(slope, differences, atol=1e-8)


@pytest.mark.parametrize(("kind", "cells"), TREES)
def test_trees_with_equal_weights_have_the_error_known_of_h_b(kind, cells):
    asked = _asked(kind, cells)
    errors = [_error(tree(cells, branching), asked) for branching in (8, 10, 16, 32)]
    assert min(errors) == pytest.approx(TREES[kind, cells], rel=2e-3)
    assert tree(cells, 8).norm(1) == levels(cells, 8)


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
def test_weights_of_levels_and_nested_sums_help(kind):
    asked = _asked(kind, 100)
    line = lines_of(asked)
    equal = min(_error(tree(100, branching), asked) for branching in (5, 6, 8, 10, 16))
    weighted = optimise_tree(line, 100)
    assert weighted.norm(1) == 1.0
    assert _error(weighted, asked) < equal
    flat = optimise_p_identity(squares_of(asked))
    assert _error(flat, asked) < 0.95 * _error(weighted, asked)
    nested = optimise_nested(line, 100, 10)
    assert nested.norm(1) == 1.0
    assert _error(nested, asked) < equal


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
def test_many_cells_are_nested(kind):
    asked = _asked(kind, 13001)
    found = next(laplace_strategies(asked))
    assert isinstance(found, Nested)
    assert found.norm(1) == 1.0
    assert _error(found, asked) < 0.9 * min(_error(tree(13001, branching), asked) for branching in (8, 10, 16, 18))
    counts = np.random.default_rng(2).integers(0, 1000, 13001).astype(float)
    np.testing.assert_allclose(found.fit(found.measure(counts)), counts, atol=1e-6)


def test_cells_are_best_for_themselves_and_come_last():
    (only,) = laplace_strategies(workload.identity(50))
    assert only == PIdentity.of(np.ones(50))
    *others, last = laplace_strategies(workload.total(6) + workload.identity(6))
    assert (len(others), last) == (1, PIdentity.of(np.ones(6)))
    assert list(laplace_strategies(workload.prefixes(1))) == [PIdentity.of([1.0])]


def test_a_matrix_of_questions():
    asked = workload.matrix(np.tril(np.ones((24, 24)))[::-1]) + workload.total(24)
    found, cells = laplace_strategies(asked)
    assert found.norm(1) == 1.0
    assert _error(found, asked) < 0.8 * _error(cells, asked)
    lines = optimise_p_identity(squares_of(workload.prefixes(24) + workload.total(24)))
    assert _error(found, asked) == pytest.approx(_error(lines, asked), rel=0.02)


def test_what_is_stored_is_not_trusted(monkeypatch):
    asked = workload.prefixes(9)
    good = next(laplace_strategies(asked))
    for stored in ({}, {"kind": "nested"}, PIdentity.of(np.ones(8)).to_dict(), PIdentity.of(np.full(9, 2.0)).to_dict()):
        monkeypatch.setattr(cache, "load", lambda _, stored=stored: stored)
        assert next(laplace_strategies(asked)) == good


def test_several_axes_are_refused():
    with pytest.raises(ln.InvalidInput, match=r"workload.shape=\(3, 4\) is not one axis"):
        list(laplace_strategies(workload.ranges((3, 4))))
