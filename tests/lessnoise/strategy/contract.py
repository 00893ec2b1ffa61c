"""What every strategy must fulfil, against its matrix from exact numbers."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from lessnoise.changes import Moves
from lessnoise.strategy import read_strategy


def as_matrix(strategy):
    """A, from exact numbers."""
    cells = math.prod(strategy.shape)
    units = np.eye(cells).reshape(cells, *strategy.shape)
    return np.array([[float(strategy.exact(unit, row)) for unit in units] for row in range(strategy.rows)])


def check(strategy, workloads, rng, norm_margin=1e-9):
    """Measurements, their errors, least squares, norms, distances, traces, variances and descriptions."""
    a = as_matrix(strategy)
    inverse, gram_inverse = np.linalg.pinv(a), np.linalg.pinv(a.T @ a)
    for scale in (1.0, 1e6, 1e-30):
        table = scale * rng.normal(size=(2, *strategy.shape))
        measured = strategy.measure(table)
        sizes = np.abs(table).reshape(2, -1) @ np.abs(a).T
        assert measured.shape == (2, strategy.rows)
        for one, values in zip(table, measured, strict=True):
            error = strategy.error(one)
            assert error <= 1e-9 * sizes.max()
            for row in range(strategy.rows):
                assert abs(strategy.exact(one, row) - Fraction(float(values[row]))) <= Fraction(error)
        noisy = measured + scale * rng.normal(size=measured.shape)
        np.testing.assert_allclose(
            strategy.fit(noisy).reshape(2, -1),
            noisy @ inverse.T,
            rtol=1e-8,
            atol=1e-8 * np.abs(noisy @ inverse.T).max(),
        )
    for order in (1, 2):
        sizes = np.linalg.norm(a, order, axis=0)
        assert sizes.max() * (1 - 1e-14) <= strategy.norm(order) <= sizes.max() * (1 + norm_margin)
        apart = max(np.linalg.norm(one - other, order) for one in a.T for other in a.T)
        assert apart <= strategy.distance(order) * (1 + 1e-14)
    above = [strategy.envelope()] if strategy.envelope() is not None else strategy.columns()
    for column in a.T:
        assert any(moves.scaled(1 + 1e-12).majorizes(Moves.of(column.tolist())) for moves in above)
    assert strategy.nonnegative <= bool((a >= 0).all())
    for workload in workloads:
        w = workload.matrix()
        expected = np.trace(w @ gram_inverse @ w.T)
        determined = np.allclose(w @ inverse @ a, w, atol=1e-8)
        assert strategy.trace(workload) == (pytest.approx(expected, rel=1e-8) if determined else math.inf)
        np.testing.assert_allclose(strategy.variances(w), np.diagonal(w @ gram_inverse @ w.T), rtol=1e-7, atol=1e-9)
    again = read_strategy(json.loads(json.dumps(strategy.to_dict())))
    assert again == strategy
    assert hash(again) == hash(strategy)
    np.testing.assert_array_equal(as_matrix(again), a)
