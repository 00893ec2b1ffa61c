"""Weighted cells with sums, and nested blocks: against dense matrices and Fractions, descriptions, bad input."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import workload
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy import Hats, Nested, PIdentity, read_strategy, tree
from lessnoise.strategy.exactness import exact_sum
from lessnoise.strategy.p_identity import unit_columns
from lessnoise.workload import Factor


def _some(cells, sums, seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 1.0, (sums, cells)) * (rng.uniform(size=(sums, cells)) < 0.6)
    return PIdentity.of(rng.uniform(0.1, 1.0, cells), rows)


def _hats(cells, step, sums, seed):
    heights = np.random.default_rng(seed).uniform(0.0, 1.0, (1 + sums, -(-cells // step) + 1))
    return Hats(cells, step, FrozenMatrix(heights), 0.7)


STRATEGIES = {
    "sums": _some(7, 3, 0),
    "cells": _some(5, 0, 1),
    "one cell": _some(1, 2, 2),
    "even blocks": Nested(_some(4, 2, 3), _some(3, 1, 4), 12),
    "uneven blocks": Nested(_some(4, 2, 5), _some(3, 1, 6), 10),
    "blocks of blocks": Nested(_some(3, 1, 7), Nested(_some(3, 2, 8), _some(4, 1, 9), 11), 29),
    "a last block of one block": Nested(_some(3, 1, 10), Nested(_some(3, 2, 11), _some(4, 1, 12), 12), 25),
    "one block": Nested(_some(1, 1, 13), _some(4, 1, 14), 4),
    "hats": _hats(12, 4, 2, 15),
    "hats on uneven blocks": _hats(11, 4, 1, 16),
    "hats alone": _hats(9, 2, 0, 17),
    "high hats": Hats(9, 4, FrozenMatrix(np.full((2, 4), 50.0))),
    "blocks of hats": Nested(_some(3, 1, 18), _hats(8, 3, 1, 19), 19),
    "whole tree": tree(13, 3),
    "weighted tree": tree(11, 2, [0.5, 0.25, 0.125, 0.3]),
}
each = pytest.mark.parametrize("name", STRATEGIES)


def _matrix(strategy):
    """A by its exact entries."""
    cells = strategy.shape[0]
    return np.array([[float(strategy.exact(unit, row)) for unit in np.eye(cells)] for row in range(strategy.rows)])


@each
def test_traces_and_variances_are_those_of_the_dense_inverse(name):
    strategy = STRATEGIES[name]
    (cells,) = strategy.shape
    rows = _matrix(strategy)
    spread = np.linalg.pinv(rows) @ np.linalg.pinv(rows).T  # (A^T A)^+
    questions = np.random.default_rng(0).normal(size=(4, cells))
    asked = [
        workload.prefixes(cells),
        workload.ranges(cells),
        workload.identity(cells) + 2.0 * workload.total(cells),
        workload.matrix(questions) + 0.5 * workload.prefixes(cells),
    ]
    for each_asked in asked:
        assert strategy.trace(each_asked) == pytest.approx(np.trace(each_asked.gram() @ spread), rel=1e-9)
    assert strategy.factor_trace(Factor("ranges", cells)) == pytest.approx(strategy.trace(workload.ranges(cells)))
    np.testing.assert_allclose(strategy.variances(questions), np.diag(questions @ spread @ questions.T), rtol=1e-9)


@each
def test_measurements_and_least_squares_are_those_of_the_matrix(name):
    strategy = STRATEGIES[name]
    rows = _matrix(strategy)
    rng = np.random.default_rng(1)
    tables = rng.integers(0, 100, (2, 3, *strategy.shape)).astype(float)
    np.testing.assert_allclose(strategy.measure(tables), tables @ rows.T, atol=1e-9)
    np.testing.assert_allclose(strategy.fit(strategy.measure(tables)), tables, atol=1e-8)
    noisy = rng.normal(size=(2, strategy.rows))
    np.testing.assert_allclose(strategy.fit(noisy), noisy @ np.linalg.pinv(rows).T, atol=1e-9)


@each
def test_columns_cover_those_of_the_matrix(name):
    strategy = STRATEGIES[name]
    rows = _matrix(strategy)
    found = strategy.columns()
    for column in rows.T:
        wanted = sorted(column[column > 0.0].tolist(), reverse=True)
        sizes = [[size for size, count in moves.sizes for _ in range(count)] for moves in found]
        assert any(
            len(each) == len(wanted) and all(0.0 <= a - b <= 1e-14 for a, b in zip(each, wanted, strict=True))
            for each in sizes
        )
    for order in (1, 2):
        entries = [[strategy.exact(cell, row) for row in range(strategy.rows)] for cell in np.eye(len(rows.T))]
        exact = max(sum((entry**order for entry in column), Fraction(0)) for column in entries)
        assert Fraction(strategy.norm(order)) ** order >= exact
        assert strategy.norm(order) == pytest.approx(max(moves.norm(order) for moves in found), rel=1e-14)


NASTY = {
    "counts": [3.0, 0.0, 17.0],
    "negative": [-5.0, 2.0],
    "fractions": [0.1, -0.7, 1e-3],
    "beyond 2^53": [2.0**53, 1.0, 2.0**53 + 2.0, -1.0],
    "huge": [1e300, -1e300, 1.0],
    "mixed": [1e300, 1e-300, -7.5],
    "tiny": [5e-324, 1e-310, -2e-320],
    "zero": [0.0],
}


@each
@pytest.mark.parametrize("values", NASTY)
def test_floats_are_as_near_to_the_real_numbers_as_stated(name, values):
    strategy = STRATEGIES[name]
    table = np.resize(np.array(NASTY[values]), strategy.shape)
    bound = strategy.error(table)
    measured = strategy.measure(table)
    for row in range(strategy.rows):
        assert abs(Fraction(float(measured[row])) - strategy.exact(table, row)) <= Fraction(bound)
    assert bound <= 1e-13 * strategy.rows * strategy.norm(1) * np.abs(table).max() + 1e-300


def test_whole_numbers_of_counts_are_exact():
    counts = np.random.default_rng(2).integers(0, 10**6, (4, 13)).astype(float)
    whole = STRATEGIES["whole tree"]
    assert whole.whole
    assert whole.error(counts) == 0.0
    assert whole.error(counts * 2.0**40) == 0.0
    assert whole.error(counts + 0.1) > 0.0
    assert whole.error(np.full(13, 2.0**52 + 1.0)) > 0.0
    quarters = PIdentity.of([0.25] * 3, [[0.75, 0.5, 0.75]])
    assert not quarters.whole
    assert quarters.error(np.array([1.0, 2.0, 2.0**40])) == 0.0
    assert STRATEGIES["sums"].error(np.full(7, 1e308)) > 0.0
    assert STRATEGIES["sums"].error(np.full(7, math.nan)) == 0.0  # refused by the engine
    assert _some(7, 3, 0).error(np.full(7, 1.7e308)) == math.inf


def test_sums_of_floats_are_exact():
    rng = np.random.default_rng(3)
    values = np.ldexp(rng.normal(size=200), rng.integers(-1000, 1000, 200))
    assert exact_sum(values) == sum(map(Fraction, values.tolist()))
    assert exact_sum(np.array([1.7e308, 1.7e308])) == 2 * Fraction(1.7e308)
    assert exact_sum(np.array([5e-324, 1.0, -1.0])) == Fraction(5e-324)


def test_columns_are_never_longer_than_asked():
    rows = np.random.default_rng(4).uniform(0.0, 3.0, (5, 40))
    for norm in (1.0, 0.7, 1.0 / 3.0):
        found = unit_columns(rows, norm)
        sums = [sum(Fraction(size) * count for size, count in moves.sizes) for moves in found.columns()]
        assert max(sums) <= Fraction(norm)
        assert float(min(sums)) == pytest.approx(norm, rel=1e-15)


@each
def test_descriptions_come_back(name):
    strategy = STRATEGIES[name]
    again = read_strategy(json.loads(json.dumps(strategy.to_dict())))
    assert again == strategy
    assert hash(again) == hash(strategy)


def test_damaged_descriptions_are_refused():
    good = STRATEGIES["uneven blocks"].to_dict()
    damaged = [
        {**good, "size": 13},
        {**good, "size": 9.5},
        {**good, "size": 0},
        {**good, "fine": None},
        {**good, "coarse": good},
        {**good, "coarse": {**good["coarse"], "weights": {"values": [-1.0], "counts": [4]}}},
        {**good, "coarse": {**good["coarse"], "weights": {"values": [1.0], "counts": [3]}}},
        {**good, "coarse": {**good["coarse"], "sums": {"shape": [1, 4], "float64": "?"}}},
        {**good, "coarse": {**good["coarse"], "more": 1}},
        {key: value for key, value in good.items() if key != "fine"},
        {"kind": "p-identity"},
        {"kind": "unheard of"},
        [],
    ]
    for values in damaged:
        with pytest.raises(ln.InvalidInput):
            read_strategy(values)


def test_bad_input_is_refused():
    with pytest.raises(ln.InvalidInput, match="negative entry -1"):
        PIdentity.of([1.0, 1.0], [[0.0, -1.0]])
    with pytest.raises(ln.InvalidInput, match="3 columns for 2 weights"):
        PIdentity.of([1.0, 1.0], [[0.0, 1.0, 1.0]])
    with pytest.raises(ln.InvalidInput, match="must be above 0"):
        PIdentity.of([1.0, 0.0])
    with pytest.raises(ln.InvalidInput, match=r"weights=\[1.0\] are none"):
        PIdentity([1.0])
    with pytest.raises(ln.InvalidInput, match="is not a FrozenMatrix"):
        PIdentity(_some(2, 0, 0).weights, [[1.0, 1.0]])
    with pytest.raises(ln.InvalidInput, match="cannot be nested"):
        Nested(tree(4, 2), tree(2, 2), 8)
    with pytest.raises(ln.InvalidInput, match=r"workload.shape=\(5,\) is not shape=\(7,\)"):
        _some(7, 1, 0).trace(workload.prefixes(5))
    with pytest.raises(ln.InvalidInput, match="are not 2 numbers"):
        tree(4, 2, [1.0])


def test_subnormal_products_under_high_hats_stay_within_the_bound():
    strategy = Hats(9, 4, FrozenMatrix(np.full((2, 4), 1e4)))
    table = np.resize(np.array([5e-324, 1e-310, -2e-320, 3e-323]), 9)
    bound, measured = Fraction(strategy.error(table)), strategy.measure(table)
    assert all(
        abs(Fraction(float(measured[row])) - strategy.exact(table, row)) <= bound for row in range(strategy.rows)
    )
