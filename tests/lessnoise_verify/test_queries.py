"""What one unit changes of a query's answer: against real changes of answers, and against the library's own norms."""

from __future__ import annotations

import copy
import json
import math
import random
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lessnoise.guarantees import Neighbours
from lessnoise.query import (
    ROWS,
    Asked,
    Axis,
    Factor,
    Gram,
    Grouped,
    Histogram,
    Mean,
    Measure,
    Products,
    Query,
    Sum,
    Unit,
)
from lessnoise_verify import queries
from lessnoise_verify.changes import read_changes
from lessnoise_verify.document import Fields, NotProved, Refuted
from lessnoise_verify.laws import Case

LAPLACE, NORMAL = {"kind": "laplace", "scale": 1.0}, {"kind": "radial", "k": 2.0, "p": 2.0, "scale": 1.0}
RELATIONS = ("add/remove", "replace")


def described(query: Query, relation: str = "add/remove", unit: Unit | None = None) -> dict[str, Any]:
    asked = Asked(query, Neighbours.of(relation), unit or Unit(), "numpy")
    found: dict[str, Any] = json.loads(json.dumps(asked.to_dict()))
    return found


def case_of(query: Query, relation: str, sensitivity: Fraction | float, changes: dict[str, Any] | None = None) -> Case:
    found = None if changes is None else read_changes(Fields(changes, "changes"), query.shape, relation)
    return Case(query.shape, Fraction(sensitivity), relation, found)


def check(given: dict[str, Any], noise: dict[str, Any], case: Case) -> str:
    try:
        queries.check_query(Fields(given, "query"), Fields(noise, "noise"), case)
    except NotProved as error:
        return type(error).__name__
    return "proved"


def effect_of(query: Query, relation: str, unit: Unit) -> queries.Effect:
    values = json.loads(json.dumps(query.to_dict()))
    own = queries.Unit.read(Fields(unit.to_dict(), "unit"))
    if isinstance(query, Grouped):  # of one measure, as in a table
        groups, [measure] = queries.read_grouped(Fields(values, "query"))
        return measure.effect(groups, own, relation)
    return queries._QUERIES[values["query"]](Fields(values, "query"), own, relation)[2]


QUERIES: list[Query] = [
    Histogram([Axis("a", bounds=(-1, 1), bins=3), Axis("b", edges=[-5, 0, 5])]),
    Sum(["a", "b"], bounds=[(0, 1), (-2, 0.7)]),
    Sum(["a", "b"], bounds=[(3, 5), (-1, 1)]),
    Sum(["a"], bounds=(2.0, 2.0 + 2**-40)),
    Mean(["a", "b"], bounds=[(0, 1), (-2, 0.7)]),
    Mean(["a"], bounds=(-1, 1)),
    Gram(["a", "b"], norm=1.7),
    Gram(["a", "b"], box=(-1.3, 0.4)),
    Gram(["a"], box=(0.5, 2)),
    Gram(["a", "b", "c"], box=(0, 1)),
    Grouped((Axis("a", bounds=(-1, 1), bins=2),), (ROWS,)),
    Grouped((Axis("a", bounds=(-1, 1), bins=2),), (Measure("moments", "b", (-1, 1), 2),)),
    Grouped((), (Measure("total", "a", (-3, 1)),)),
    Grouped((), (Products(factors=(Factor("a", (0, 1), 2), Factor("b", (-1, 1)))),)),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.kind)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 3])
def test_no_change_of_an_answer_exceeds_the_set_and_some_reach_what_is_made(
    query: Query, relation: str, rows: int
) -> None:
    rng = np.random.default_rng([rows, len(relation)])
    unit = Unit() if rows == 1 else Unit("user", rows)
    effect = effect_of(query, relation, unit)
    largest = [Fraction(0)] * 3
    ends = np.array([-9.0, -1.3, -1.0, 0.0, 0.4, 0.7, 1.0, 1.7, 9.0])

    def sums() -> Any:
        size = (rows, len(query.columns))
        values = rng.choice(ends, size) if rng.integers(2) else rng.uniform(-2, 2, size)
        if rng.integers(3):  # all rows alike, beyond all bounds or along an axis
            values[:] = rng.choice(ends if rng.integers(2) else [-9.0, 9.0], size[1]) * rng.choice(
                [0.0, 1.0, 1.0], size[1]
            )
        return query.partial({name: values[:, i] for i, name in enumerate(query.columns)})

    for _ in range(150):
        first = sums()
        second = query.zero() if relation == "add/remove" or rng.integers(4) == 0 else sums()
        # Sums of other rows, up to the largest ones that there can be, where floats are far apart.
        counted = query.counts or (isinstance(query, Grouped) and query.measures[0] is ROWS)
        others = rng.integers(0, 1 << int(rng.integers(1, 62)), first.shape) >> (20 if counted else 0)
        if isinstance(query, Mean):  # counts stay below 2^53
            others[-1] >>= 20
        moved = np.array([query.finish(others + each).ravel() for each in (first, second)])
        sizes = [abs(Fraction(a) - Fraction(b)) for a, b in moved.T.tolist()]
        norms = (sum(sizes, Fraction(0)) ** 2, sum((size**2 for size in sizes), Fraction(0)), max(sizes) ** 2)
        assert all(norm <= most for norm, most in zip(norms, effect.changes.squares, strict=True))
        largest = [max(pair) for pair in zip(largest, norms, strict=True)]
    made = [effect.made.squared_norm(order) for order in (1, 2, math.inf)]
    assert all(float(found) >= 0.99 * float(least) > 0 for found, least in zip(largest, made, strict=True))


def random_query(rng: random.Random) -> Query:
    def bounds() -> tuple[float, float]:
        low = rng.choice([0.0, -1.0, rng.uniform(-10, 10), rng.uniform(-1, 1) * 10 ** rng.uniform(-30, 30)])
        high = low + rng.choice([1.0, rng.uniform(1, 10), 10 ** rng.uniform(-30, 30)])
        return (low, high) if low < high else bounds()

    def axis(name: str) -> Axis:
        forms: list[dict[str, Any]] = [
            {"bounds": (0, rng.randint(1, 9)), "bins": rng.randint(1, 40), "outside": "clamp"},
            {"edges": [-1, *range(rng.randint(1, 9))]},
            {"keys": [f"key {i}" for i in range(rng.randint(1, 6))]},
            {"keys": list(range(rng.randint(1, 6)))},
        ]
        return Axis(name, **rng.choice(forms))

    def measure() -> Measure:
        factors = tuple(Factor(f"f{i}", bounds(), rng.choice([1, 2])) for i in range(rng.randint(1, 3)))
        moments = Measure("moments", "m", bounds(), rng.choice([1, 2]), absent=rng.random() < 0.5)
        cells = Measure("cells", axis=axis("h"))
        return rng.choice([ROWS, moments, Measure("total", "m", bounds()), cells, Products(factors=factors)])

    names = [f"c{i}" for i in range(rng.choice([1, 2, 3, 70]))]
    each = [bounds() for _ in names]
    builders = [
        lambda: Histogram([axis(f"a{i}") for i in range(rng.randint(1, 3))]),
        lambda: Sum(names, bounds=each),
        lambda: Mean(names, bounds=each),
        lambda: Gram(names, norm=10 ** rng.uniform(-20, 20)),
        lambda: Gram(names, box=each[0]),
        lambda: Grouped(tuple(axis(f"a{i}") for i in range(rng.randint(0, 2))), (measure(),)),
    ]
    return rng.choice(builders)()


def random_unit(rng: random.Random) -> Unit:
    bounds = {name: rng.randint(1, 5) for name in ("max_groups", "max_rows_per_group") if rng.random() < 0.3}
    return Unit() if rng.random() < 0.4 else Unit("user", rng.choice([1, 2, 3, 10, 10**6]), **bounds)


@pytest.mark.parametrize("seed", range(4))
def test_the_noise_that_the_library_makes_is_for_the_query_and_less_is_not(seed: int) -> None:
    rng, decided = random.Random(seed), 0
    for _ in range(40):
        query, unit, relation = random_query(rng), random_unit(rng), rng.choice(RELATIONS)
        given, norms = described(query, relation, unit), query.norms(relation, unit)
        changes = query.changes(relation, unit)
        dimension, stated = math.prod(query.shape), json.loads(json.dumps(changes.to_dict()))
        if isinstance(query, Grouped):
            by_rows = query.measures[0].changes(query.groups, unit.rows, Neighbours.of(relation), unit.per_group)
            case = case_of(query, relation, by_rows.norm(1, dimension), json.loads(json.dumps(by_rows.to_dict())))
            effect = effect_of(query, relation, unit)
            queries.check_covers(Fields(LAPLACE, "noise"), case, effect)
            with pytest.raises(NotProved):
                queries.check_covers(
                    Fields(LAPLACE, "noise"), case_of(query, relation, case.sensitivity * Fraction(9, 10)), effect
                )
            continue
        for noise, norm in ((LAPLACE, norms.l1), (NORMAL, norms.l2)):
            assert check(given, noise, case_of(query, relation, norm)) == "proved"
            assert check(given, noise, case_of(query, relation, 2 * norm)) == "proved"
            made = effect_of(query, relation, unit).made.squared_norm(2)
            less = check(given, noise, case_of(query, relation, 0.99 * float(made) ** 0.5))
            decided += less == "Refuted"
            assert less in ("Refuted", "NotCovered")
        assert check(given, NORMAL, case_of(query, relation, changes.norm(2, dimension), stated)) == "proved"
        if query.integer:
            geometric = {"kind": "geometric", "rate": 1.0, "tail": 0.0}
            assert check(given, geometric, case_of(query, relation, changes.norm(1, dimension), stated)) == "proved"
    assert decided > 25


@pytest.mark.parametrize("query", [Sum(["a"], bounds=(-1, 3)), Mean(["a"], bounds=(0, 9)), Gram(["a", "b"], norm=2.0)])
def test_certificates_of_answers_have_queries_that_are_covered(query: Query) -> None:
    data = {name: np.linspace(0, 1, 9) for name in query.columns}
    for relation in RELATIONS:
        made = query.answer(data, neighbours=relation).release(epsilon=1, delta=1e-6).certificate.to_dict()
        values = json.loads(json.dumps(made))
        mechanism = values["mechanism"]
        case = case_of(query, relation, mechanism["sensitivity"], mechanism.get("changes"))
        assert check(values["query"], mechanism["noise"], case) == "proved"


def changed(given: dict[str, Any], *path: str | int, to: object) -> dict[str, Any]:
    made = copy.deepcopy(given)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return made


def test_mutations_that_need_more_noise_are_refuted() -> None:
    query = Sum(["a", "b"], bounds=[(0, 1), (0, 2)])
    given, case = described(query), case_of(query, "add/remove", query.sensitivity("add/remove"))
    assert check(given, NORMAL, case) == "proved"
    assert check(changed(given, "description", "bounds", to=[[0, 1], [0, 2.1]]), NORMAL, case) == "Refuted"
    assert check(changed(given, "description", "bounds", to=[[0, 1], [-2.1, 2]]), NORMAL, case) == "Refuted"
    assert check(changed(given, "unit", to={"id": "u", "max_rows": 2}), NORMAL, case) == "Refuted"
    assert check(changed(given, "neighbours", to="replace"), NORMAL, case) == "Refuted"
    assert check(changed(given, "columns", to=["a"]), NORMAL, case) == "Refuted"
    assert check(given, {"kind": "discrete-gaussian", "scale": 9.0}, case) == "Refuted"
    assert check(given, NORMAL, Case((3,), case.sensitivity)) == "Refuted"
    counted = described(Histogram([Axis("a", keys=["x", "y"])]))
    one = Case((2,), Fraction(1))
    assert check(counted, LAPLACE, one) == "proved"
    assert check(changed(counted, "unit", to={"id": "u", "max_rows": 2}), LAPLACE, one) == "Refuted"
    capped = {"id": "u", "max_rows": 9, "max_groups": 1, "max_rows_per_group": 1}
    assert check(changed(counted, "unit", to=capped), LAPLACE, one) == "proved"


def test_a_public_number_of_rows_is_for_rows_that_are_replaced() -> None:
    query = Mean(["a"], bounds=(0, 1), rows=5)
    given, case = described(query, "replace"), case_of(query, "replace", 2.0)
    assert check(given, NORMAL, case) == "proved"
    assert check(changed(given, "neighbours", to="add/remove"), NORMAL, Case((1,), Fraction(9))) == "Refuted"
    assert check(changed(given, "unit", to={"id": "u", "max_rows": 1}), NORMAL, case) == "Refuted"


def test_tiny_boxes_of_many_columns_need_noise_too() -> None:
    b = 1e-90
    query = Gram([f"c{i}" for i in range(65)], box=(-b, b))
    given, needed = described(query, "replace"), 65 * Fraction(b) ** 2
    assert check(given, NORMAL, case_of(query, "replace", needed / 1000)) == "Refuted"
    assert check(given, NORMAL, case_of(query, "replace", needed * Fraction(3, 2))) == "proved"


@pytest.mark.parametrize(
    ("mine", "norm", "word"),
    [
        ({"kind": "counts", "rows": 3, "neighbours": "add/remove"}, 3, "proved"),  # the same
        ({"kind": "counts", "rows": 4, "neighbours": "add/remove"}, 4, "NotCovered"),
        ({"kind": "counts", "rows": 2, "neighbours": "add/remove"}, 2, "Refuted"),
        ({"kind": "counts", "rows": 3, "per_cell": 1, "neighbours": "add/remove"}, 3, "NotCovered"),  # spread out
        ({"kind": "ball", "radius": 3.0, "order": 1}, 3, "proved"),
        ({"kind": "ball", "radius": 2.9, "order": 1}, 2.9, "Refuted"),
        ({"kind": "box", "bounds": 3.0}, 12, "proved"),
        ({"kind": "box", "bounds": 2.5}, 10, "NotCovered"),
    ],
)
def test_sets_of_a_mechanism_must_cover_those_of_the_query(mine: dict[str, Any], norm: float, word: str) -> None:
    query = Histogram([Axis("a", keys=["w", "x", "y", "z"])])
    given = described(query, "add/remove", Unit("u", 3))
    assert check(given, LAPLACE, case_of(query, "add/remove", norm, mine)) == word


def test_the_order_of_bounds_matters_to_bodies() -> None:
    query, noise = Sum(["a", "b"], bounds=[(0, 1), (0, 2)]), {"kind": "norm-radial"}
    case = case_of(query, "add/remove", 1.0, {"kind": "corner", "bounds": [2.0, 1.0]})
    assert check(described(query), noise, case) == "NotCovered"
    case = case_of(query, "add/remove", 1.0, {"kind": "corner", "bounds": [1.0, 2.0]})
    assert check(described(query), noise, case) == "proved"
    both = Sum(["a", "b"], bounds=[(0, 1), (-2, 2)])  # of both signs
    assert check(described(both), noise, case) == "NotCovered"
    case = case_of(query, "add/remove", 1.0, {"kind": "box", "bounds": [1.0, 2.0]})
    assert check(described(both), noise, case) == "proved"


def test_rows_that_move_are_taken_from_cells_and_added_to_others() -> None:
    query, noise = Histogram([Axis("a", keys=["w", "x", "y", "z"])]), {"kind": "hierarchy", "change": "moved"}
    given = described(query, "replace", Unit("u", 3))
    assert check(given, noise, case_of(query, "replace", 6)) == "proved"
    assert check(given, noise, case_of(query, "replace", 5.9)) == "Refuted"
    summed = Sum(["a", "b"], bounds=[(0, 1), (0, 1)])
    assert check(described(summed, "replace"), noise, case_of(summed, "replace", 1.9)) == "Refuted"
    assert check(described(summed, "replace"), noise, case_of(summed, "replace", 9)) == "NotCovered"


BAD: list[tuple[tuple[str | int, ...], object]] = [
    (("description",), []),
    (("description", "query"), 7),
    (("description", "axes"), []),
    (("description", "axes", 0, "bins"), 2.5),
    (("description", "axes", 0, "bins"), 10**9),
    (("description", "axes", 0, "bins"), True),
    (("description", "axes", 0, "bounds"), [1, 0]),
    (("description", "axes", 0, "bounds"), [0, math.inf]),
    (("description", "axes", 0, "bounds"), [0, 10**400]),
    (("description", "axes", 0, "edges"), [0, 1]),
    (("description", "axes", 1, "keys"), ["x", "x"]),
    (("description", "axes", 1, "keys"), ["x", 1]),
    (("description", "axes", 1, "keys"), "private"),
    (("description", "axes", 1, "column"), "a"),
    (("description", "more"), 1),
    (("unit", "max_rows"), 3),
    (("unit", "id"), 3),
    (("unit", "max_groups"), 3),
    (("neighbours",), "both"),
    (("rules",), [1]),
    (("engine",), 1),
    (("columns",), "a"),
]


@pytest.mark.parametrize(("path", "value"), BAD)
def test_malformed_descriptions_are_unreadable(path: tuple[str | int, ...], value: object) -> None:
    query = Histogram([Axis("a", bounds=(0, 1), bins=2), Axis("b", keys=["x", "y"])])
    given, case = described(query), case_of(query, "add/remove", 1.0)
    assert check(given, LAPLACE, case) == "proved"
    assert check(changed(given, *path, to=value), LAPLACE, case) == "Unreadable"


@pytest.mark.parametrize("kind", ["sum", "mean", "gram", "histogram"])
def test_hostile_descriptions_end_quickly(kind: str) -> None:
    rng, start = random.Random(kind), time.process_time()
    whatever: list[Any] = [None, 0, -1, 1e308, -1e308, 5e-324, 10**30, "x", [], {}, [[]], [[0, 1]], [1.0] * 9, True]
    fields = ("columns", "bounds", "norm", "box", "rows", "axes")
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    for _ in range(300):
        values: dict[str, Any] = {"query": kind, "columns": ["a"], "bounds": [[-1e100, 1e100]], "norm": 1e100}
        values |= {name: rng.choice([*whatever, deep]) for name in fields if rng.random() < 0.3}
        unit = rng.choice([{"id": None, "max_rows": None}, {"id": "u", "max_rows": 10**15}])
        given = {"description": values, "columns": ["a"], "unit": unit, "engine": None, "rules": []}
        for relation in RELATIONS:
            case = Case((1,), Fraction(1), relation)
            assert check({**given, "neighbours": relation}, NORMAL, case) != "proved"
    assert time.process_time() - start < 5.0


def test_enormous_norms_are_told() -> None:
    query = Gram(["a", "b"], norm=1e100)
    with pytest.raises(Refuted, match=r"e\+199"):
        queries.check_query(Fields(described(query), "query"), Fields(NORMAL, "noise"), Case((2, 2), Fraction(1)))


def test_what_is_not_known_is_not_covered() -> None:
    query = Histogram([Axis("a", keys=["x", "y"])])
    given, case = described(query), Case((2,), Fraction(1))
    assert check(changed(given, "description", "query", to="second moments"), LAPLACE, case) == "NotCovered"
    assert check(given, {"kind": "new"}, case) == "NotCovered"
    assert check(given, {"kind": "wishart"}, case) == "NotCovered"
