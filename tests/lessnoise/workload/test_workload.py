"""Workloads: answers and squares against the matrix of all questions, descriptions, bad input."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise import workload
from lessnoise.workload import Factor, Workload

SMALL = {
    "identity": workload.identity(2, 3),
    "total": workload.total(4),
    "prefixes": workload.prefixes(7),
    "ranges": workload.ranges(6),
    "map": workload.ranges((3, 4)),
    "pairs": workload.marginals([2, 3, 2], order=2),
    "listed": workload.marginals([2, 3, 2], sets=[(), (0,), (2, 1)]),
    "matrix": workload.matrix([[1, -2, 0.5], [0, 0, 3]]),
    "product": workload.prefixes(3) * workload.total(2) * workload.identity(2),
    "sum": 2.0 * workload.ranges(5) + workload.prefixes(5),
}


@pytest.mark.parametrize("name", SMALL)
def test_answers_and_squares_are_those_of_the_matrix(name):
    asked = SMALL[name]
    rows = asked.matrix()
    assert rows.shape == (asked.queries, asked.cells)
    table = np.random.default_rng(0).normal(size=asked.shape)
    np.testing.assert_allclose(asked.answers(table), rows @ table.ravel(), atol=1e-12)
    np.testing.assert_allclose(asked.gram(), rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(asked.diagonal().ravel(), np.diag(rows.T @ rows), atol=1e-12)


def test_the_questions_are_the_ones_named():
    table = np.arange(1.0, 6.0)
    assert workload.prefixes(5).answers(table).tolist() == np.cumsum(table).tolist()
    wanted = [table[first : last + 1].sum() for first in range(5) for last in range(first, 5)]
    assert workload.ranges(5).answers(table).tolist() == wanted
    cube = np.random.default_rng(1).integers(0, 9, (2, 3, 4))
    for order in range(4):
        summed = [set(range(3)) - set(kept) for kept in itertools.combinations(range(3), order)]
        sums = [cube.sum(axis=tuple(axes)).ravel() for axes in summed]
        assert np.array_equal(workload.marginals((2, 3, 4), order=order).answers(cube), np.concatenate(sums))
    rectangles = workload.ranges((2, 2)).answers(np.array([[1, 10], [100, 1000]]))
    assert sorted(rectangles.tolist()) == [1, 10, 11, 100, 101, 1000, 1010, 1100, 1111]


def test_a_large_domain_is_never_a_matrix():
    pairs = workload.marginals([2] * 14, order=2)
    assert (pairs.cells, pairs.queries, len(list(pairs.terms()))) == (2**14, 91 * 4, 91)
    assert set(pairs.answers(np.ones((2,) * 14)).tolist()) == {2.0**12}
    assert pairs.diagonal().max() == 91.0
    huge = workload.marginals([2] * 20, order=2)
    assert huge.queries == 190 * 4
    assert workload.prefixes(10**6).answers(np.ones(10**6))[-1] == 10**6
    for action in (huge.matrix, huge.gram, lambda: workload.ranges(10**5).answers(np.ones(10**5))):
        with pytest.raises(ln.InvalidInput, match=r"^(queries|cells)=\d+"):
            action()


@pytest.mark.parametrize("name", SMALL)
def test_descriptions_are_read_back_and_can_be_keys(name):
    asked = SMALL[name]
    again = Workload.from_dict(json.loads(json.dumps(asked.to_dict())))
    assert again == asked
    assert {asked: 1}[again] == 1


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(["identity", "total", "prefixes", "ranges"]), min_size=1, max_size=3),
    st.lists(st.floats(0.1, 3.0), min_size=1, max_size=3),
)
def test_sums_and_products_follow_the_rules_of_matrices(kinds, weights):
    parts = [getattr(workload, kind)(2) for kind in kinds]
    product = parts[0]
    for each in parts[1:]:
        product = product * each
    rows = parts[0].matrix()
    for each in parts[1:]:
        rows = np.kron(rows, each.matrix())
    np.testing.assert_array_equal(product.matrix(), rows)
    stacked = weights[0] * product
    for weight in weights[1:]:
        stacked = stacked + weight * product
    np.testing.assert_allclose(stacked.gram(), sum(weight**2 for weight in weights) * rows.T @ rows, rtol=1e-12)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: workload.prefixes(0), "size=0"),
        (lambda: workload.prefixes(2.5), "size=2.5"),
        (lambda: workload.ranges([]), "factors=()"),
        (lambda: workload.marginals([2, 2]), "order=None and sets=None"),
        (lambda: workload.marginals([2, 2], order=3), "order=3 is more than the 2 attributes"),
        (lambda: workload.marginals([2, 2], sets=[(0, 2)]), "set="),
        (lambda: workload.marginals([2, 2], sets=[(0,), (0,)]), "sets="),
        (lambda: workload.matrix([[1.0, np.nan]]), "rows"),
        (lambda: workload.matrix([1.0, 2.0]), "rows.shape"),
        (lambda: workload.prefixes(3) + workload.prefixes(4), "shapes="),
        (lambda: -1.0 * workload.prefixes(3), "weight=-1.0"),
        (lambda: workload.prefixes(3).answers([1, 2]), "table.shape="),
        (lambda: Factor("stars", 3), "kind='stars'"),
        (lambda: Factor("prefixes", 3, rows=workload.matrix([[1, 2, 3]]).parts[0].factors[0].rows), "rows="),
        (lambda: Workload(()), "parts="),
    ],
)
def test_bad_input_is_one_sentence(action, words):
    with pytest.raises(ln.InvalidInput) as caught:
        action()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sparse_matrices_are_taken():
    sparse = pytest.importorskip("scipy.sparse")
    assert workload.matrix(sparse.eye(3).tocsr()) == workload.matrix(np.eye(3))
