"""Toeplitz strategies with scales: against their matrices, the dual bound, and slow sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy import Toeplitz, gaussian_bound, singular_value_bound, toeplitz_for, toeplitz_strategies
from lessnoise.strategy.series import power_series, reciprocal
from lessnoise.strategy.toeplitz import square_root
from lessnoise.workload import Factor, Workload, identity, matrix, prefixes, ranges, total
from tests.lessnoise.strategy.contract import as_matrix, check

GAUSSIAN = 4.224932  # deviation of Gaussian noise at epsilon 1, delta 1e-6
TABLE = {  # the least error a question for Gaussian noise
    ("prefixes", 64): 78.7,
    ("prefixes", 256): 113.7,
    ("prefixes", 1024): 155.9,
    ("ranges", 64): 94.6,
    ("ranges", 256): 150.3,
    ("ranges", 1024): 220.5,
}


def row(*values):
    return FrozenMatrix([values])


EXAMPLES = {
    "square root": square_root(6),
    "banded": Toeplitz(7, row(1.0, 0.6, 0.3)),
    "signed": Toeplitz(5, row(2.0, -0.7, 0.1, 0.3, -0.2)),
    "one": Toeplitz(1, row(3.0)),
    "rows": Toeplitz(4, row(1.0, 0.5), row_scales=row(1.0, 2.0, 3.0, 0.1)),
    "columns": Toeplitz(4, row(1.0, 0.5), column_scales=row(1.0, 2.0, 3.0, 0.1)),
    "prefixes": toeplitz_for(Factor("prefixes", 9)),
    "ranges": toeplitz_for(Factor("ranges", 8)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_that_strategies_fulfil(name):
    strategy = EXAMPLES[name]
    size = strategy.size
    rng = np.random.default_rng(3)
    several = [prefixes(size), ranges(size), identity(size), total(size), matrix(rng.normal(size=(3, size)))]
    check(strategy, [*several, 2.0 * prefixes(size) + identity(size)], rng)


def test_the_matrix_is_toeplitz_but_for_scales():
    strategy = Toeplitz(3, row(1.0, 0.5), row(1.0, 2.0, 4.0), row(3.0, 5.0, 7.0))
    assert as_matrix(strategy).tolist() == [[3.0, 0.0, 0.0], [3.0, 10.0, 0.0], [0.0, 10.0, 28.0]]


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
@pytest.mark.parametrize("size", [300, 3000])
def test_measurements_of_many_cells_are_within_their_error(kind, size):
    strategy = toeplitz_for(Factor(kind, size))
    rng = np.random.default_rng(4)
    for table in (rng.poisson(10.0, size).astype(float), 1e9 * (np.arange(size) == size - 1), 1e9 * np.eye(1, size)[0]):
        measured, error = strategy.measure(table), strategy.error(table)
        for index in [0, 1, 127, 128, size // 2, size - 2, size - 1]:
            assert abs(strategy.exact(table, index) - Fraction(float(measured[index]))) <= Fraction(error)
        np.testing.assert_allclose(strategy.fit(measured), table, atol=1e-9 * table.max())
    assert strategy.error(rng.poisson(10.0, size).astype(float)) < 1e-7  # far below the noise: exact numbers are rare


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
def test_all_columns_have_norm_one(kind):
    strategy = toeplitz_for(Factor(kind, 60))
    sizes = np.linalg.norm(as_matrix(strategy), axis=0)
    np.testing.assert_allclose(sizes, 1.0, rtol=1e-12)
    assert sizes.max() <= strategy.norm(2) < 1.0 + 1e-8


@pytest.mark.parametrize(("kind", "size"), [(kind, size) for kind, size in TABLE if size <= 256])
def test_errors_are_near_the_least_of_gaussian_noise(kind, size):
    near(kind, size)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("prefixes", 1024), ("ranges", 1024), ("prefixes", 3000), ("ranges", 3000)])
def test_errors_are_near_the_least_of_gaussian_noise_for_many_cells(kind, size):
    near(kind, size)


def near(kind, size):
    factor = Factor(kind, size)
    strategy = toeplitz_for(factor)
    error = strategy.norm(2) ** 2 * strategy.factor_trace(factor)
    bound = gaussian_bound(prefixes(size) if kind == "prefixes" else ranges(size))
    assert bound <= error <= (1.002 if size <= 512 else 1.003) * bound
    if (kind, size) in TABLE:
        assert GAUSSIAN**2 * error / factor.queries == pytest.approx(TABLE[kind, size], rel=0.002)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size", "excess"), [("prefixes", 100_000, 0.016), ("ranges", 100_000, 0.007)])
def test_errors_of_large_tables_are_near_the_singular_value_bound(kind, size, excess):
    factor = Factor(kind, size)
    strategy = toeplitz_for(factor)
    bound = singular_value_bound(prefixes(size) if kind == "prefixes" else ranges(size))
    assert bound <= strategy.norm(2) ** 2 * strategy.factor_trace(factor) <= (1.0 + excess) * bound


@pytest.mark.parametrize("kind", ["prefixes", "ranges"])
@pytest.mark.parametrize("size", [300, 1500])
def test_the_interpolated_trace_is_that_of_all_columns(kind, size):
    factor = Factor(kind, size)
    strategy = toeplitz_for(factor)
    inverse = strategy.fit(np.eye(size)).T
    sums = np.cumsum(inverse, axis=0)
    squares = np.square(sums).sum()
    slow = squares if kind == "prefixes" else (size + 1) * squares - np.square(sums.sum(axis=0)).sum()
    assert strategy.factor_trace(factor) == pytest.approx(slow, rel=1e-7)


def test_the_trace_of_rough_scales_is_not_interpolated():
    size = 600
    rough = FrozenMatrix(np.random.default_rng(1).uniform(0.5, 2.0, (1, size)))
    strategy = Toeplitz(size, square_root(size).coefficients, rough, rough)
    sums = np.cumsum(strategy.fit(np.eye(size)).T, axis=0)
    assert strategy.factor_trace(Factor("prefixes", size)) == pytest.approx(np.square(sums).sum(), rel=1e-9)


def test_the_square_root_squared_is_the_matrix_of_prefix_sums():
    a = as_matrix(square_root(20))
    np.testing.assert_allclose(a @ a, np.tril(np.ones((20, 20))), atol=1e-14)
    squares = (math.log(1000) + np.euler_gamma + 4.0 * math.log(2.0)) / math.pi  # of c_0, ..., c_999, but for O(1/n)
    assert square_root(1000).norm(2) ** 2 == pytest.approx(squares, abs=1e-3)


def test_power_series():
    assert power_series(-0.5, 4).tolist() == [1.0, 0.5, 0.375, 0.3125]
    series = np.random.default_rng(2).uniform(-0.3, 0.3, 50)
    series[0] = 1.0
    found = reciprocal(series)
    np.testing.assert_allclose(np.convolve(found, series)[:50], np.eye(1, 50)[0], atol=1e-12 * np.abs(found).max())


def test_many_columns_have_an_envelope():
    strategy = toeplitz_for(Factor("prefixes", 257))
    envelope = strategy.envelope()
    assert envelope is not None
    assert all(envelope.dominates(moves) for moves in strategy.columns())
    assert toeplitz_for(Factor("prefixes", 200)).envelope() is None


def test_strategies_of_a_workload():
    assert [strategy.size for strategy in toeplitz_strategies(ranges(12) + prefixes(12))] == [12, 12]
    for other in (identity(12), ranges((3, 4)), prefixes(1)):
        assert list(toeplitz_strategies(other)) == []
    assert isinstance(prefixes(3), Workload)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": 2, "coefficients": row(0.0, 1.0)}, "coefficients"),
        ({"size": 2, "coefficients": row(1.0, 1.0, 1.0)}, "at most so many"),
        ({"size": 2, "coefficients": row(1.0), "row_scales": row(1.0)}, "row_scales"),
        ({"size": 2, "coefficients": row(1.0), "column_scales": row(1.0, -1.0)}, "above 0"),
        ({"size": 0, "coefficients": row(1.0)}, "size=0"),
    ],
)
def test_what_is_no_toeplitz_strategy(values, message):
    with pytest.raises(InvalidInput, match=message):
        Toeplitz(**values)
    with pytest.raises(InvalidInput, match="kind='total'"):
        toeplitz_for(Factor("total", 3))
