"""Noise on the answers to a strategy: privacy against every column, what is released, and its error."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.changes import Moves, counts
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import GeneralizedGaussian, Geometric, Laplace, Mechanism, Radial
from lessnoise.mechanism.measured.laplace_losses import LaplaceLosses
from lessnoise.mechanism.measured.law import Measured
from lessnoise.strategy import Cells, Dense, Product, tree
from lessnoise.workload import identity, prefixes, ranges, total

RNG = np.random.default_rng(11)
TREE = Dense(FrozenMatrix(np.concatenate([np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]]])))
UNEVEN = Dense(FrozenMatrix(np.concatenate([np.diag([1.0, 0.5, 0.25, 0.75]), RNG.uniform(0, 1, (3, 4))])))
NORMAL = GeneralizedGaussian(2.0, math.sqrt(2.0) * 3.0)


def mechanism(strategy, noise, sensitivity=1.0, change="any", neighbours="add/remove"):
    law = Measured(prefixes(strategy.shape[0]), strategy, noise, change)
    return Mechanism("measured", law, strategy.shape, sensitivity, neighbours)


def simulated(strategy, noise_of, shift, epsilon, count=400_000):
    """Delta against one move of the answers, by Monte Carlo: mean and error."""
    a = strategy.matrix.array @ shift
    draws, ratio = noise_of(count, a)
    values = np.maximum(1.0 - np.exp(epsilon - ratio(draws)), 0.0)
    return values.mean(), values.std() / math.sqrt(count)


@pytest.mark.parametrize("strategy", [TREE, UNEVEN])
@pytest.mark.parametrize("epsilon", [0.2, 0.6])
def test_delta_is_that_of_the_worst_column(strategy, epsilon):
    scale = 2.0
    found = mechanism(strategy, Laplace(scale)).delta(epsilon)

    def laplace(count, move):
        draws = np.random.default_rng(1).laplace(scale=scale, size=(count, len(move)))
        return draws, lambda x: (np.abs(x + move) - np.abs(x)).sum(axis=1) / scale

    worst = [simulated(strategy, laplace, unit, epsilon) for unit in np.eye(4)]
    best = max(worst)
    assert best[0] - 6 * best[1] <= found.upper
    assert found.lower <= best[0] + 6 * best[1]
    assert found.upper <= 1.005 * found.lower


def test_no_change_of_the_same_size_is_worse_than_the_corners():
    scale, epsilon = 2.0, 0.3
    found = mechanism(UNEVEN, Laplace(scale)).delta(epsilon)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        move = UNEVEN.matrix.array @ (rng.dirichlet(np.ones(4)) * rng.choice([-1, 1], 4))
        draws = rng.laplace(scale=scale, size=(100_000, len(move)))
        loss = (np.abs(draws + move) - np.abs(draws)).sum(axis=1) / scale
        values = np.maximum(1.0 - np.exp(epsilon - loss), 0.0)
        assert values.mean() - 6 * values.std() / math.sqrt(values.size) <= found.upper


def test_gaussian_delta_goes_by_the_longest_column():
    found = mechanism(UNEVEN, NORMAL, sensitivity=2.0).delta(0.7)
    longest = 2.0 * np.linalg.norm(UNEVEN.matrix.array, axis=0).max()
    exact = Mechanism("g", Radial(1, 2.0, NORMAL.scale), (1,), longest).delta(0.7)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.upper <= found.lower * (1 + 1e-8)


@pytest.mark.parametrize("noise", [Laplace(2.0), NORMAL])
@pytest.mark.parametrize("strategy", [TREE, UNEVEN])
def test_a_moved_row_changes_two_columns(strategy, noise):
    found = mechanism(strategy, noise, 2.0, "moved", "replace").delta(0.4)
    columns = strategy.matrix.array.T
    exact = []
    for i in range(4):
        for j in range(i):
            move = columns[i] - columns[j]
            if isinstance(noise, Laplace):
                draws = np.random.default_rng(2).laplace(scale=2.0, size=(200_000, len(move)))
                loss = (np.abs(draws + move) - np.abs(draws)).sum(axis=1) / 2.0
            else:
                draws = np.random.default_rng(2).normal(scale=3.0, size=(200_000, len(move)))
                loss = (np.square(draws + move) - np.square(draws)).sum(axis=1) / 18.0
            values = np.maximum(1.0 - np.exp(0.4 - loss), 0.0)
            exact.append((values.mean(), values.std() / math.sqrt(values.size)))
    best = max(exact)
    assert best[0] - 6 * best[1] <= found.upper
    assert found.lower <= best[0] + 6 * best[1]
    as_any = mechanism(strategy, noise, 2.0, "any", "replace").delta(0.4)
    assert found.upper <= as_any.upper * (1 + 1e-9)


@pytest.mark.parametrize("noise", [Laplace(20.0), GeneralizedGaussian(2.0, 5.0 * math.sqrt(2.0))])
def test_a_row_may_be_replaced_by_one_that_is_in_no_cell(noise):
    heavy = Dense(FrozenMatrix([[10.0, 10.0], [1.0, 0.0], [0.0, 1.0]]))  # pairs of columns differ by little
    found = mechanism(heavy, noise, 2.0, "moved", "replace").delta(0.5)
    column = heavy.matrix.array[:, 0]
    if isinstance(noise, Laplace):
        draws = np.random.default_rng(2).laplace(scale=20.0, size=(200_000, 3))
        loss = (np.abs(draws + column) - np.abs(draws)).sum(axis=1) / 20.0
        values = np.maximum(1.0 - np.exp(0.5 - loss), 0.0)
        exact, spread = values.mean(), values.std() / math.sqrt(values.size)
    else:  # mu = sqrt(101)/5
        exact, spread = Mechanism("g", Radial(1, 2.0, noise.scale), (1,), math.sqrt(101.0)).delta(0.5).upper, 0.0
        assert found.upper <= exact * (1 + 1e-6)
    assert exact - 6 * spread <= found.upper
    pure = mechanism(heavy, Laplace(1.0), 2.0, "moved", "replace").epsilon(0.0)
    assert pure.upper >= 11.0


def test_totals_under_replaced_rows_are_not_free():
    built = ln.workload_mechanism(total(8), epsilon=1, delta=1e-6, changes=counts(neighbours="replace"))
    assert built.query_error >= 1.0
    assert built.delta(1).upper <= 1e-6


def test_two_rows_of_three_cells_may_both_leave():
    both = counts(2, per_cell=1, neighbours="replace")
    law = Measured(identity(3), tree(3, 3), GeneralizedGaussian(2.0, 4.0), "moved")
    built = Mechanism("m", law, (3,), 1.0, "replace").against(both)
    assert built.sensitivity == 4.0
    assert both.norm(1, 3) == 3.0


def test_signed_questions_that_move_apart_are_covered():
    signed = Dense(FrozenMatrix([[1.0, -1.0], [0.5, 0.5]]))  # a_1 - a_2 = (2, 0): both in one answer
    found = mechanism(signed, Laplace(2.0), 2.0, "moved", "replace").delta(0.2)
    assert found.lower <= -math.expm1(0.5 * (0.2 - 1.0)) <= found.upper


def test_pure_noise_is_pure_at_its_epsilon():
    m = mechanism(UNEVEN, Laplace(UNEVEN.norm(1) * (1 + 1e-14)))
    assert m.delta(1.0).upper == 0.0
    assert m.delta(0.99).upper > 0.0
    assert m.epsilon(0.0).upper <= 1.0


@pytest.mark.parametrize("noise", [Laplace(2.0), NORMAL, Geometric(0.5)])
def test_query_error_is_what_releases_show(noise):
    m = mechanism(TREE, noise)
    table, count = np.array([3, 0, 7, 2]), 4000
    rng = np.random.default_rng(8)
    errors = np.array([np.square(np.cumsum(m.release(table, rng).value - table)).mean() for _ in range(count)])
    spread = errors.std() / math.sqrt(count)
    assert abs(errors.mean() - m.query_error) <= 6 * spread
    assert m.expected_loss == pytest.approx(TREE.trace(identity(4)) * m.law.variance)


def test_several_axes_are_released_in_their_shape():
    strategy = Product((TREE, Cells((3,))))
    law = Measured(ranges((4, 3)), strategy, Laplace(3.0))
    m = Mechanism("measured", law, (4, 3), 1.0)
    out = np.zeros((4, 3))
    value = m.release(np.arange(12).reshape(4, 3), out=out).value
    assert value.shape == (4, 3)
    assert np.isfinite(value).all()
    assert value is out


def test_releases_do_not_tell_integers_from_their_neighbours_by_low_bits():
    m = mechanism(UNEVEN, Laplace(1.5))
    noisy = np.array([UNEVEN.measure(m.release(np.array([1, 2, 3, 4])).value) for _ in range(5)])
    assert len({float(v) for v in noisy.ravel()}) > 20


def test_geometric_noise_needs_whole_questions_and_whole_tables():
    with pytest.raises(InvalidInput, match="whole"):
        mechanism(UNEVEN, Geometric(1.0))
    with pytest.raises(InvalidInput, match="whole"):
        mechanism(TREE, Geometric(1.0)).release([0.5, 1, 2, 3])


def test_nan_and_wrong_shapes_are_refused_before_anything_is_drawn():
    m = mechanism(TREE, Laplace(1.0))
    for value in ([1, 2, 3], [1, 2, math.nan, 4], [1, 2, math.inf, 4]):
        with pytest.raises(InvalidInput):
            m.release(value)


def test_composition_of_gaussians_is_one_gaussian():
    m = mechanism(UNEVEN, NORMAL)
    once = mechanism(UNEVEN, GeneralizedGaussian(2.0, NORMAL.scale / 2.0))
    four, direct = m.repeat(4).delta(0.5), once.delta(0.5)
    assert four.lower == pytest.approx(direct.lower, rel=1e-6)
    assert four.upper == pytest.approx(direct.upper, rel=1e-6)


def test_composition_of_laplace_noise_composes_its_columns():
    m = mechanism(TREE, Laplace(4.0))
    twice = m.repeat(2).delta(0.5)
    exact = LaplaceLosses((Moves(((0.25, 4),)),)).delta(0.5)
    assert twice.lower <= exact.upper
    assert exact.lower <= twice.upper


def test_descriptions_are_read_back():
    m = mechanism(UNEVEN, Laplace(1.0))
    assert Mechanism.from_json(m.to_json()) == m
    against = mechanism(TREE, Laplace(1.0)).against(ln.changes.counts(2))
    assert against.sensitivity == 2.0
    assert Mechanism.from_json(against.to_json()) == against


@pytest.mark.parametrize(
    "damage",
    [
        {"workload": {}},
        {"workload": prefixes(5).to_dict()},
        {"strategy": {"kind": "cells", "table": [3]}},
        {"noise": Radial(1, 2.0, 1.0).to_dict()},
        {"noise": {"kind": "laplace", "scale": -1}},
        {"noise": {"kind": "generalized-gaussian", "p": 3, "scale": 1}},
        {"change": "all"},
    ],
)
def test_damaged_descriptions_are_refused(damage):
    values = Measured(prefixes(4), TREE, Laplace(1.0)).to_dict() | damage
    with pytest.raises(InvalidInput):
        Measured.from_dict(values)


def test_moved_rows_are_replaced_rows():
    with pytest.raises(InvalidInput, match="moved"):
        mechanism(TREE, Laplace(1.0), 2.0, "moved", Neighbours.ADD_REMOVE)


def test_columns_that_differ_compose_within_a_narrow_bracket():
    both = ln.compose(mechanism(UNEVEN, Laplace(2.0)), mechanism(TREE, Laplace(4.0))).delta(0.4)
    columns = UNEVEN.matrix.array.T
    moves = tuple(Moves.counted([*((size / 2.0, 1) for size in column), (0.25, 2)]) for column in columns)
    exact = LaplaceLosses(moves).delta(0.4)
    assert both.lower <= exact.upper
    assert exact.lower <= both.upper
    assert both.upper <= 1.03 * both.lower


def test_noise_between_laplace_and_gaussian_needs_every_move():
    noise = GeneralizedGaussian(1.5, 3.0)
    assert 0.0 < mechanism(TREE, noise).delta(0.5).upper < 1.0
    with pytest.raises(InvalidInput, match="listed"):
        mechanism(TREE, noise, 2.0, "moved", "replace").delta(0.5)
