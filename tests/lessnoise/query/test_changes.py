"""What queries say of their changes: no neighbouring table moves the exact answer beyond the stated set."""

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import changes

KEYS = ["a", "b", "c", "d"]
QUERIES = {
    "histogram": ln.Histogram([ln.Axis("x", bounds=(0, 1), bins=3), ln.Axis("k", keys=KEYS)]),
    "positive sums": ln.Sum(["x", "y"], bounds=[(0, 1), (0, 3)]),
    "one-sided sums of one bound": ln.Sum(["x", "y"], bounds=(0, 2)),
    "signed sums": ln.Sum(["x", "y"], bounds=[(-1, 2), (0, 3)]),
    "sums away from 0": ln.Sum(["x", "y"], bounds=[(5, 6), (-1, 3)]),
    "mean": ln.Mean(["x", "y"], bounds=[(0, 1), (-3, 3)]),
    "second moments": ln.Gram(["x", "y"], norm=2.0),
}


def table(rng, rows):
    """Rows with values in and out of bounds, nulls, infinities."""
    x = rng.choice([0.0, 1.0, 0.3, -2.0, 9.0, np.nan, np.inf, -np.inf], rows)
    return {"x": x, "y": 4.0 * rng.normal(size=rows), "k": rng.choice([*KEYS, "other"], rows)}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_no_neighbour_is_farther_than_the_set_says(name, relation):
    query, rng = QUERIES[name], np.random.default_rng(7)
    stated = query.changes(relation)
    assert stated.norm(2, int(np.prod(query.shape))) <= query.sensitivity(relation) * (1.0 + 1e-9)
    for _ in range(300):
        rows = table(rng, 6)
        other = {column: values[:-1].copy() for column, values in rows.items()}
        if relation == "replace":
            fresh = table(rng, 1)
            other = {column: np.append(values, fresh[column]) for column, values in other.items()}
        moved = query.answer(rows, neighbours=relation).value - query.answer(other, neighbours=relation).value
        assert stated.contains(moved.ravel().tolist())


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_a_user_of_several_rows(relation):
    query, rng = QUERIES["histogram"], np.random.default_rng(1)
    unit = ln.Unit("who", max_rows=2)
    stated = query.changes(relation, unit)
    assert stated == changes.counts(2, neighbours=relation)
    for _ in range(100):
        rows = {**table(rng, 9), "who": np.array([1, 2, 3, 1, 2, 1, 1, 2, 3])}
        kept = rows["who"] != 1
        other = {column: values[kept] for column, values in rows.items()}
        if relation == "replace":
            fresh = {**table(rng, 4), "who": np.full(4, 8)}
            other = {column: np.append(values, fresh[column]) for column, values in other.items()}
        both = [query.answer(data, neighbours=relation, unit=unit).value for data in (rows, other)]
        assert stated.contains((both[0] - both[1]).ravel().tolist())


def test_requests_carry_the_set_and_the_least_noise_uses_it():
    sums = QUERIES["positive sums"].request(1.0, 1e-6)
    assert isinstance(sums.changes, changes.Corner)
    assert sums.entry_bound == sums.changes.norm(np.inf, 2)
    assert QUERIES["signed sums"].request(1.0, 1e-6).entry_bound is None
    counted = QUERIES["histogram"].request(1.0, 1e-6, "replace")
    assert counted.changes == changes.counts(neighbours="replace")
    assert counted.integer
    assert counted.moved
    assert QUERIES["second moments"].request(1.0, 1e-6).changes is None
    assert isinstance(QUERIES["second moments"].changes(), changes.Ball)
