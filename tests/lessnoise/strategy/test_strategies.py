"""Dense, product and simple strategies, against plain linear algebra and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy import Cells, Dense, Product, Total, majorant, read_strategy
from lessnoise.workload import identity, matrix, prefixes, ranges, total

RNG = np.random.default_rng(5)
TREE = np.concatenate([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 1, 1]]])
LINES = {
    "random": Dense(FrozenMatrix(RNG.uniform(0, 1, (7, 4)))),
    "signed": Dense(FrozenMatrix(RNG.normal(size=(6, 4)))),
    "tree": Dense(FrozenMatrix(TREE)),
    "cells": Cells((4,)),
}
ALL = {
    **LINES,
    "product": Product((LINES["random"], Dense(FrozenMatrix(RNG.uniform(0, 1, (4, 3)))))),
    "mixed": Product((LINES["tree"], Cells((2,)), LINES["random"])),
    "signed product": Product((LINES["signed"], LINES["random"])),
    "map": Dense(FrozenMatrix(RNG.uniform(0, 1, (9, 6))), (2, 3)),
    "map of cells": Cells((2, 3)),
}


def as_matrix(strategy):
    """A, column by column, from exact numbers."""
    cells = math.prod(strategy.shape)
    units = np.eye(cells).reshape(cells, *strategy.shape)
    return np.array([[float(strategy.exact(unit, row)) for unit in units] for row in range(strategy.rows)])


@pytest.mark.parametrize("name", ALL)
def test_what_is_measured_and_fitted_is_that_of_the_matrix(name):
    strategy = ALL[name]
    a = as_matrix(strategy)
    table = RNG.normal(size=(3, *strategy.shape))
    measured = strategy.measure(table)
    np.testing.assert_allclose(measured, table.reshape(3, -1) @ a.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(strategy.fit(measured), table, rtol=1e-10, atol=1e-10)
    noisy = measured + RNG.normal(size=measured.shape)
    expected = noisy @ np.linalg.pinv(a).T
    np.testing.assert_allclose(strategy.fit(noisy).reshape(3, -1), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_traces_and_variances_are_those_of_the_matrix(name):
    strategy = ALL[name]
    inverse = np.linalg.inv(as_matrix(strategy).T @ as_matrix(strategy))
    for workload in (
        identity(*strategy.shape),
        ranges(strategy.shape),
        ranges(strategy.shape) + total(*strategy.shape),
    ):
        w = workload.matrix()
        assert strategy.trace(workload) == pytest.approx(np.trace(w @ inverse @ w.T), rel=1e-10)
        np.testing.assert_allclose(strategy.variances(w), np.diagonal(w @ inverse @ w.T), rtol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_norms_and_distances_of_columns(name):
    strategy = ALL[name]
    a = as_matrix(strategy)
    for order in (1, 2):
        sizes = np.linalg.norm(a, order, axis=0)
        assert sizes.max() <= strategy.norm(order) <= sizes.max() * (1 + 1e-12)
        apart = max(np.linalg.norm(one - other, order) for one in a.T for other in a.T)
        assert apart <= strategy.distance(order) * (1 + 1e-15)
    for column in a.T:  # every column is below one of the list, or below the envelope
        above = strategy.columns() if strategy.envelope() is None else [strategy.envelope()]
        assert any(moves.scaled(1 + 1e-12).majorizes(Moves.of(column.tolist())) for moves in above)


@pytest.mark.parametrize("scale", [1.0, 2.0**53, 1e-300, 1e290])
@pytest.mark.parametrize("name", ALL)
def test_the_error_bound_holds_for_awkward_floats(name, scale):
    strategy = ALL[name]
    for trial in range(8):
        table = np.random.default_rng(trial).normal(size=strategy.shape) ** 3 * scale
        bound, measured = strategy.error(table), strategy.measure(table)
        worst = max(abs(Fraction(float(measured[i])) - strategy.exact(table, i)) for i in range(strategy.rows))
        assert worst <= bound or bound == math.inf


def test_counts_are_measured_exactly_where_the_questions_are_whole():
    counts = RNG.integers(0, 10**6, size=4).astype(float)
    assert LINES["tree"].error(counts) == 0.0
    assert Total(4).error(counts) == 0.0
    assert LINES["tree"].error(counts + 0.1) > 0.0
    assert Total(4).error(counts + 0.1) > 0.0
    assert LINES["tree"].error(np.full(4, 2.0**52 + 1.0)) > 0.0  # four of them are above 2^54, and no multiple of 8
    assert Product((LINES["tree"], LINES["tree"])).error(np.ones((4, 4))) == 0.0


def test_many_columns_of_a_product_are_under_one_envelope():
    line = Dense(FrozenMatrix(RNG.uniform(0, 1, (5, 12))))
    product = Product((line, line))
    above = product.envelope()
    assert above is not None
    for column in as_matrix(product).T:
        assert above.scaled(1 + 1e-12).majorizes(Moves.of(column.tolist()))


def test_a_total_is_all_that_is_known_of_it():
    strategy = Total(5)
    assert strategy.trace(total(5)) == 1.0
    assert strategy.trace(prefixes(5)) == math.inf
    assert strategy.fit(np.array([10.0])).tolist() == [2.0] * 5
    assert strategy.variances(np.array([[2.0] * 5, [1.0, 0, 0, 0, 0]])).tolist() == [4.0, math.inf]


def test_a_strategy_that_does_not_determine_the_answers_has_infinite_error():
    half = Dense(FrozenMatrix([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    assert half.trace(prefixes(3)) == math.inf
    assert half.trace(matrix([[1.0, 1.0, 0.0]])) == pytest.approx(1.0)


def test_an_envelope_majorizes_what_it_is_made_of():
    columns = [Moves.of([3.0, 1.0]), Moves.of([2.0, 2.0, 1.0]), Moves.of([2.5])]
    above = majorant(columns)
    assert all(above.majorizes(each) for each in columns)
    assert above.norm(1) == pytest.approx(5.0)


@pytest.mark.parametrize("name", [*ALL, "total"])
def test_descriptions_are_read_back(name):
    strategy = ALL.get(name, Total(3))
    assert read_strategy(strategy.to_dict()) == strategy
    assert hash(read_strategy(strategy.to_dict())) == hash(strategy)


@pytest.mark.parametrize(
    "values",
    [
        None,
        3,
        {},
        {"kind": "magic"},
        {"kind": "cells"},
        {"kind": "cells", "table": [0]},
        {"kind": "total", "cells": -1},
        {"kind": "matrix", "matrix": {}, "table": [2]},
        {"kind": "product", "axes": []},
        {"kind": "product", "axes": [{"kind": "cells", "table": [2, 2]}]},
        {"kind": "matrix", "matrix": FrozenMatrix(np.eye(3)).to_dict(), "table": [2, 2]},
    ],
)
def test_damaged_descriptions_are_refused(values):
    with pytest.raises(InvalidInput):
        read_strategy(values)
