"""The least noise for a set of changes: the table of counts, never worse than the catalogue, over several releases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import lessnoise as ln
from lessnoise import changes as sets
from lessnoise.mechanism.catalogue import build_all, keeps

TABLE = {0.5: 7.83311, 1: 1.84110, 2: 0.362012, 4: 0.0380103, 8: 0.000671373}


def least(changes, shape, epsilon=1.0, delta=1e-6, **options):
    return ln.least_noise(epsilon=epsilon, delta=delta, shape=shape, changes=changes, **options)


def integer_optimum(epsilon, delta, reach):
    """The least variance of integers within +-reach, by a linear program over all of their laws."""
    k = np.arange(-reach, reach + 1)
    size = len(k)
    # Variables: p_k, then the gains of a shift by one to the right and to the left.
    cost = np.concatenate([k.astype(float) ** 2, np.zeros(2 * (size + 1))])
    rows, right = [], []
    for side in (0, 1):
        for place in range(size + 1):  # p_(place-1) against p_place, or the reverse
            row = np.zeros(len(cost))
            one, other = (place - 1, place) if side == 0 else (place, place - 1)
            if 0 <= one < size:
                row[one] += 1.0
            if 0 <= other < size:
                row[other] -= math.exp(epsilon)
            row[size + side * (size + 1) + place] = -1.0
            rows.append(row)
            right.append(0.0)
        total = np.zeros(len(cost))
        total[size + side * (size + 1) : size + (side + 1) * (size + 1)] = 1.0
        rows.append(total)
        right.append(delta)
    whole = np.zeros((1, len(cost)))
    whole[0, :size] = 1.0
    found = linprog(cost, A_ub=np.array(rows), b_ub=right, A_eq=whole, b_eq=[1.0], method="highs")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(("epsilon", "loss"), TABLE.items())
def test_counts_of_which_one_row_changes_one(epsilon, loss):
    mechanism = least(sets.counts(), (89, 89), epsilon)
    assert mechanism.expected_loss / 7921 == pytest.approx(loss, rel=1e-5)
    assert mechanism.check().holds
    assert mechanism.release(np.zeros((89, 89), dtype=int)).value.dtype == np.int64


@pytest.mark.parametrize(
    ("epsilon", "delta", "reach"), [(1.7, 1e-3, 12), (0.2, 0.1, 25), (0.9, 1e-4, 20), (3.1, 1e-5, 10)]
)
def test_counts_against_a_linear_program_over_all_integer_laws(epsilon, delta, reach):
    best = integer_optimum(epsilon, delta, reach)
    assert least(sets.counts(), 5, epsilon, delta).expected_loss / 5 == pytest.approx(best, rel=1e-6)


def test_capped_rows_need_less_than_half_the_noise():
    capped = least(sets.counts(20, per_cell=1), 1000)
    assert capped.expected_loss / 1000 < 347.5
    assert capped.check().holds
    assert capped.law.integer
    assert least(sets.counts(20), 1000).expected_loss / 1000 == pytest.approx(800, rel=0.001)
    assert least(sets.counts(50, per_cell=1), 1000).expected_loss / 1000 < 891


def test_the_best_noise_for_one_release_is_not_the_best_for_twelve():
    once, often = least(sets.counts(), 50), least(sets.counts(), 50, releases=12)
    assert often.repeat(12).within(1.0, 1e-6)
    assert not once.repeat(12).within(1.0, 1e-6)
    # Twelve times the integer optimum at a twelfth of the target loses more, and so does Gaussian noise.
    split = least(sets.counts(), 50, 1.0 / 12, 1e-6 / 12)
    gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=math.sqrt(12), shape=50)
    assert often.expected_loss < 0.8 * split.expected_loss
    assert often.expected_loss < 0.95 * gaussian.expected_loss
    assert often.design.releases == 12
    assert ln.Mechanism.from_json(often.to_json()) == often


@pytest.mark.parametrize(
    "changes", [sets.ball(2.0), sets.corner(1.0), sets.box([1.0, 3.0, 2.0]), sets.counts(2)], ids=str
)
@pytest.mark.parametrize("releases", [3])
def test_several_releases_keep_the_target(changes, releases):
    mechanism = least(changes, 3, releases=releases)
    assert mechanism.repeat(releases).within(1.0, 1e-6)
    assert mechanism.expected_loss > least(changes, 3).expected_loss


@st.composite
def some_changes(draw):
    size = st.floats(0.1, 10.0).map(lambda x: round(x, 2))
    kind = draw(st.sampled_from(["ball", "cube", "l1", "counts", "corner", "box", "list", "joined", "scaled"]))
    relation = draw(st.sampled_from(["add/remove", "replace"]))
    rows = draw(st.integers(1, 4))
    counts = sets.counts(rows, draw(st.one_of(st.none(), st.integers(1, rows))), relation)
    dimension = draw(st.integers(1, 6))
    made = {
        "ball": lambda: sets.ball(draw(size)),
        "cube": lambda: sets.ball(draw(size), norm=math.inf),
        "l1": lambda: sets.ball(draw(size), norm=1),
        "counts": lambda: counts,
        "corner": lambda: sets.corner([draw(size) for _ in range(dimension)]),
        "box": lambda: sets.box(draw(size)),
        "list": lambda: sets.listed([[draw(st.integers(-3, 3)) or 1 for _ in range(dimension)] for _ in range(3)]),
        "joined": lambda: counts | sets.ball(draw(size)),
        "scaled": lambda: counts.scaled(draw(size)),
    }
    return made[kind](), dimension


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(some_changes(), st.sampled_from([0.2, 0.7, 1.0, 3.0, 8.0]), st.sampled_from([1e-9, 1e-6, 1e-3]))
def test_no_mechanism_of_the_catalogue_is_better(asked, epsilon, delta):
    changes, dimension = asked
    relation = changes.relation or "add/remove"
    request = ln.Request(epsilon, delta, None, (dimension,), relation, p=1.5, changes=changes)
    best = least(changes, dimension, epsilon, delta)
    assert best.check().holds
    for other in build_all(request):
        if keeps(other, request) and not other.law.data_dependent:
            assert best.expected_loss <= other.expected_loss * (1.0 + 1e-9), other.name


def test_what_is_stated_twice_or_not_at_all_is_refused():
    target = {"epsilon": 1, "delta": 1e-6, "shape": 3}
    with pytest.raises(ln.InvalidInput, match="pass one of them"):
        ln.least_noise(**target)
    with pytest.raises(ln.InvalidInput, match="pass one of them"):
        ln.least_noise(**target, sensitivity=1, changes=sets.counts())
    with pytest.raises(ln.InvalidInput, match="neighbours='replace' is not that of the changes"):
        ln.least_noise(**target, changes=sets.counts(), neighbours="replace")
    with pytest.raises(ln.InvalidInput, match="length=2 for shape"):
        ln.least_noise(**target, changes=sets.corner([1, 2]))
    with pytest.raises(ln.InvalidInput, match="releases"):
        ln.least_noise(**target, changes=sets.counts(), releases=0)
    with pytest.raises(ln.InvalidInput, match="is not a set of changes"):
        ln.least_noise(**target, changes="counts")
    with pytest.raises(ln.InvalidInput, match="leave it out, it follows"):
        ln.Request(1, 1e-6, 7.0, (3,), changes=sets.counts())


def test_values_that_are_no_whole_numbers_are_refused_for_counts():
    with pytest.raises(ln.InvalidInput, match="whole"):
        least(sets.counts(), 2).release([0.5, 1.0])
