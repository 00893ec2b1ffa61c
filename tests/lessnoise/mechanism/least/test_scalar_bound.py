"""The bound of one entry at a time: against linear programs over every kind of real noise, and exact laws."""

import math

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import lessnoise as ln
from lessnoise.mechanism.families.geometric import Geometric, probabilities
from lessnoise.mechanism.least.bound import entries_bound, scalar_bound, scalar_quantile_bound
from lessnoise.mechanism.least.builder import set_lower_bound
from lessnoise.mechanism.least.objective import Goal, Power, Problem, Ramp

OFFSETS = (0.0, *(sign * x for x in (0.01, 0.03, 0.1, 0.2, 0.3, 0.4) for sign in (1, -1)), 0.5)

epsilons = st.floats(math.log(0.05), math.log(5.0)).map(math.exp)
deltas = st.floats(math.log(1e-6), math.log(0.45)).map(math.exp)


def least(epsilon, delta, cost, offsets=OFFSETS, reach=None):
    """The least mean of ``cost`` over laws on several cosets x + Z at once that share delta as they like."""
    reach = Geometric(epsilon, delta).reach + 3 if reach is None else reach
    k = np.arange(-reach, reach + 1)
    points, number = len(k), len(k) * len(offsets)
    grow, none = math.exp(epsilon), sparse.csr_matrix((number, number))
    values = cost(np.add.outer(np.array(offsets), k)).ravel()
    # Variables: the probabilities, and for either direction at least what exceeds e^epsilon of the neighbour.
    loss = [
        sparse.block_diag([sparse.identity(points) - grow * sparse.eye(points, k=s)] * len(offsets)) for s in (1, -1)
    ]
    rows = [
        sparse.hstack([loss[0], -sparse.identity(number), none]),
        sparse.hstack([loss[1], none, -sparse.identity(number)]),
        sparse.csr_matrix(np.repeat([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], number, axis=1)),
    ]
    found = linprog(
        np.append(values, np.zeros(2 * number)),
        A_ub=sparse.vstack(rows).tocsr(),
        b_ub=np.append(np.zeros(2 * number), [delta, delta]),
        A_eq=np.repeat([[1.0, 0.0, 0.0]], number, axis=1),
        b_eq=[1.0],
        method="highs",
    )
    assert found.success
    return found.fun


def integer_optimum(epsilon, delta, order=2):
    law = Geometric(epsilon, delta)
    k = np.arange(law.reach + 2.0)
    return 2.0 * float(probabilities(law, law.reach + 2) @ k**order)


TARGETS = [(0.09, 0.062), (0.44, 3.5e-4), (0.87, 0.029), (1.95, 2.8e-4), (0.14, 0.22), (3.0, 1.4e-4), (0.3, 0.4)]


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("order", [1, 2])
def test_nearly_the_least_of_all_real_laws(epsilon, delta, order):
    optimum = least(epsilon, delta, lambda t: np.abs(t) ** order)
    assert scalar_bound(epsilon, delta, order) == pytest.approx(optimum, rel=3e-3)
    assert scalar_bound(epsilon, delta, order) <= optimum * (1.0 + 1e-6)


@settings(max_examples=15, deadline=None)
@given(epsilons, deltas)
def test_never_above_a_law_on_several_cosets(epsilon, delta):
    if Geometric(epsilon, delta).reach > 40:
        return
    # The program keeps its constraints within 1e-7 each, which together are a little more of delta.
    optimum = least(epsilon, delta, np.square)
    assert scalar_bound(epsilon, delta + 1e-6) <= optimum * (1.0 + 3e-5)


@settings(max_examples=100, deadline=None)
@given(st.floats(math.log(1e-3), math.log(8.0)).map(math.exp), deltas)
def test_the_integers_are_optimal_for_the_mean_size_and_nearly_for_the_square(epsilon, delta):
    assert scalar_bound(epsilon, delta, 1) == pytest.approx(integer_optimum(epsilon, delta, 1), rel=1e-9)
    square, best = scalar_bound(epsilon, delta), integer_optimum(epsilon, delta)
    assert square <= best * (1.0 + 1e-12)
    law = Geometric(epsilon, delta)
    mean = (law.reach + 1) * math.exp(-epsilon * (law.reach + 1))  # no x in the proof gains more than its square
    assert square >= best - mean**2 - 1e-12 * best


def test_real_noise_can_be_better_than_integers():
    assert least(0.14, 0.22, np.square) < 0.95 * integer_optimum(0.14, 0.22)


@settings(max_examples=50, deadline=None)
@given(st.floats(math.log(1e-9), math.log(600.0)).map(math.exp), st.floats(-300.0, -0.5).map(lambda x: 10.0**x))
def test_falls_with_epsilon_and_delta(epsilon, delta):
    for order in (1, 2):
        bound = scalar_bound(epsilon, delta, order)
        assert 0.0 <= bound <= scalar_bound(epsilon, 0.0, order) * (1.0 + 1e-14)
        assert scalar_bound(1.01 * epsilon, delta, order) <= bound * (1.0 + 1e-14)
        assert scalar_bound(epsilon, min(1.1 * delta, 0.99), order) <= bound * (1.0 + 1e-14)


def test_falls_with_delta_where_the_best_length_changes():
    for epsilon in (0.005, math.exp(-2.0), 0.44, 1.0):
        bounds = [scalar_bound(epsilon, delta) for delta in np.linspace(0.001, 0.6, 600)]
        assert (np.diff(bounds) <= 1e-14 * bounds[0]).all()


def test_without_delta_it_is_the_geometric_mechanism():
    for epsilon in (1e-6, 0.01, 1.0, 5.0, 50.0):
        ratio = math.exp(-epsilon)
        assert scalar_bound(epsilon, 0.0) == pytest.approx(2.0 * ratio / math.expm1(-epsilon) ** 2, rel=1e-9)
        assert scalar_bound(epsilon, 0.0, 1) == pytest.approx(1.0 / math.sinh(epsilon), rel=1e-9)


def test_extreme_targets_have_a_bound():
    assert scalar_bound(2.0**-40, 1e-9) == pytest.approx(2.5e17 / 3.0, rel=2e-3)  # uniform over 1/delta
    assert scalar_bound(1000.0, 1e-9) == 0.0
    assert scalar_bound(1e-12, 0.99) >= 0.0
    with pytest.raises(ValueError, match="order=3 must be 1 or 2"):
        scalar_bound(1.0, 1e-6, 3)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99])
def test_quantiles_are_below_those_of_every_law(epsilon, delta, probability):
    q = math.sqrt(scalar_quantile_bound(epsilon, delta, probability))
    if q > 0.0:  # the least P(|n| >= q) of all laws leaves no quantile below
        outside = least(epsilon, delta, lambda t: (np.abs(t) > q - 1e-9).astype(float))
        assert outside >= 1.0 - probability - 1e-6
    sharp = least(epsilon, delta, lambda t: (np.abs(t) > q + 0.501).astype(float))
    assert sharp <= 1.0 - probability + 1e-6


def test_entries_add_up():
    assert entries_bound(Problem(7, 0.5, 1e-6, Power(2.0))) == pytest.approx(7 * scalar_bound(0.5, 1e-6))
    assert entries_bound(Problem(9, 0.5, 1e-6, Power(1.0))) == pytest.approx(3 * scalar_bound(0.5, 1e-6, 1))
    assert entries_bound(Problem(9, 0.5, 1e-6, Ramp(1.0, 2.0))) == 0.0


def test_counts_are_optimal():
    best = ln.geometric(epsilon=0.7, delta=1e-7, shape=11)

    def bound_of(single):
        changes = ln.changes.ball(single, norm=1)
        return set_lower_bound(changes, (11,), 0.7, 1e-7, Goal.of("squared"))

    assert 1.0 <= best.expected_loss / bound_of(1.0) < 1.0 + 1e-6
    assert bound_of(3.0) == pytest.approx(9.0 * bound_of(1.0))
    with pytest.raises(ln.InvalidInput, match="radius=0"):
        bound_of(0.0)
