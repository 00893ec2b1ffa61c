"""Measures of groups: the SQL of DuckDB, NumPy and plain Python bit for bit; rows alone; neighbours; descriptions."""

import datetime
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import InvalidInput
from lessnoise.engines import answer, duck, duck_groups
from lessnoise.query import ONE, ROW, ROWS, Axis, Grouped, Measure, Query, Unit, read_asked
from tests.helpers.frames import dataset, generator, pa, pandas, parquet

HALF = 0.5 / ONE


def added_by(measure, value):
    """What one value adds to a measure, in steps, from the definition: Python rounds half to even as well."""
    if measure.kind == "rows":
        return [1]
    if value is None or math.isnan(value):
        return [0] * measure.width
    low, high = measure.bounds if measure.bounds else measure.axis.bounds
    clipped = min(max(float(value), low), high)
    if measure.kind == "cells":
        edges = measure.axis.cell_edges.tolist()
        return [int(a <= clipped < b or clipped == b == high) for a, b in pairwise(edges)]
    if measure.kind == "total":
        return [round(clipped * (ONE / max(abs(low), abs(high))))]
    t = round((clipped - low) * (ONE / (high - low)))
    if measure.degree == 1:
        return [ONE - t, t]
    first, last = ((2 * size * size + ONE) // (2 * ONE) for size in (ONE - t, t))  # rounded half up
    return [first, ONE - first - last, last]


def by_hand(query, data):
    """All sums of a query with one axis of keys, in Python integers."""
    (axis,) = query.axes
    result = np.zeros(query.shape, dtype=object)
    for place, key in enumerate(data[axis.column]):
        if key in axis.keys:
            row = []
            for measure in query.measures:
                name = measure.axis.column if measure.axis else measure.column
                row += added_by(measure, None if name is None else data[name][place])
            result[axis.keys.index(key)] += np.array(row, dtype=object)
    scale = [ONE if not measure.whole else 1 for measure in query.measures for _ in range(measure.width)]
    return np.array([[float(each) / size for each, size in zip(row, scale, strict=True)] for row in result])


def measures(*bounds):
    found = []
    for low, high in bounds:
        found += [Measure("moments", "x", (low, high), degree) for degree in (1, 2)]
        found += [Measure("total", "x", (low, high))]
        axis = Axis("x", bounds=(low, high), bins=7, outside="clamp")
        found += [Measure("cells", axis=axis)] if low == bounds[0][0] else []
    return (ROWS, *found)


def ties(rng, low, high):
    """Values whose steps lie half way between two whole numbers, or next to that, and the usual suspects."""
    found = [low + (high - low) * (rng.randrange(ONE) + 0.5) / ONE for _ in range(300)]
    found += [math.nextafter(value, side) for value in found[:100] for side in (-math.inf, math.inf)]
    found += [low + HALF * (high - low), math.nextafter(HALF, 1), low, high, -0.0, 5e-324, 1e308, -1e308]
    found += [math.nan, math.inf, -math.inf, math.nextafter(low, -math.inf), math.nextafter(high, math.inf)]
    return [*found, *(rng.uniform(low - 1, high + 1) for _ in range(300))]


@pytest.mark.parametrize(
    "bounds",
    [
        ((0, 1), (-1, 1)),
        ((0, 120_000), (-7.3, 1 / 3)),
        ((-1e-90, 3e-90), (2, 1e100)),
        ((2**52, 2**52 + 70), (1e9, 1e9 + 1e-6)),
    ],
)
def test_numpy_duckdb_and_plain_python_agree_bit_for_bit(bounds, monkeypatch):
    rng = generator(str(bounds))
    values = [value for low, high in bounds for value in ties(rng, low, high)]
    keys = [rng.choice(["a", "b", "it's", None]) for _ in values]
    data = {"x": np.array(values), "key": np.array(keys, dtype=object), "who": np.arange(len(values)) % 200}
    table = pa.table({"x": values, "key": keys, "who": data["who"]})
    query = Grouped((Axis("key", keys=["b", "it's", "none", "a"]),), measures(*bounds))
    expected = by_hand(query, {"x": values, "key": keys})
    for unit in (ROW, Unit("who", 2, key="k")):
        exact = answer(query, data, unit=unit).value
        assert unit is not ROW or np.array_equal(exact, expected)
        assert np.array_equal(answer(query, table, unit=unit).value, exact)
    monkeypatch.setattr(duck_groups, "sums", lambda *_: None)  # streamed
    assert np.array_equal(answer(query, table).value, expected)


def test_bins_of_any_bounds_are_those_of_numpy(tmp_path):
    """Also where division alone puts a value next to an edge into the wrong cell."""
    rng, made, columns = generator("bins"), [], {}
    for place in range(24):
        low = rng.choice([0.0, -1.0, 18.0, rng.uniform(-1e6, 1e6)])
        axis = Axis(f"x{place}", bounds=(low, low + rng.choice([1, 120, 1e-3, 120_000])), bins=rng.choice([3, 49, 128]))
        edges = axis.cell_edges
        around = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), [np.nan] * 3, [np.inf, -np.inf]]
        columns[axis.column] = np.resize(np.concatenate(around), 400)
        made.append(axis)
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert sum(duck_groups._even(axis, "c0") is not None and axis.rule is None for axis in made) > 3
    clamped = [Axis(axis.column, bounds=axis.bounds, bins=axis.bins, outside="clamp") for axis in made]
    asked = [Grouped((), tuple(Measure("cells", axis=axis) for axis in axes)) for axes in (made, clamped)]
    for query in (*asked, Grouped(tuple(made[:2]), (ROWS,)), Grouped(tuple(clamped[2:4]), (ROWS,))):
        assert np.array_equal(answer(query, tmp_path / "t.parquet").value, answer(query, columns).value)


@pytest.mark.parametrize("kind", ["int8", "int64", "uint64"])
def test_whole_numbers_are_keys_and_values(kind, tmp_path):
    """Keys at the ends of the type and beyond it; 2^53 + 1 is not 2^53; the column is measured as well."""
    ends = np.iinfo(kind)
    values = np.array([0, 1, 2, ends.min, ends.max, ends.max - 1] * 5, dtype=kind)
    if kind != "int8":
        values = np.append(values, np.array([2**53, 2**53 + 1, 2**53 + 1], dtype=kind))
    keys = [2, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63), 2**130, -1, 0, 127]
    query = Grouped((Axis("x", keys=keys),), (ROWS, *measures((0, 2.0**60))))
    expected = answer(query, {"x": values}).value
    seen = Counter(values.tolist())
    assert expected[:, 0].tolist() == [seen[key] for key in keys]
    parquet.write_table(pa.table({"x": values}), tmp_path / "t.parquet")
    for data in (pa.table({"x": values}), tmp_path / "t.parquet", pandas.DataFrame({"x": values})):
        assert np.array_equal(answer(query, data).value, expected)
    holed = pa.table({"x": pa.array([*values.tolist(), None], pa.from_numpy_dtype(kind))})
    assert np.array_equal(answer(query, holed).value, expected)


def test_files_of_several_integer_types_and_thousands_of_keys(tmp_path):
    for place, kind in enumerate(("int8", "int64", "uint64")):
        parquet.write_table(pa.table({"x": pa.array([1, 2, 3], kind)}), tmp_path / f"{place}.parquet")
    query = Grouped((Axis("x", keys=[3, 1, 300]),), (ROWS,))
    assert answer(query, tmp_path / "*.parquet").value.ravel().tolist() == [3, 3, 0]
    keys = [f"key {place}\0\n\u00e9'\"" for place in range(5000)]
    given = [*keys[::-7], "key", *keys[:50], "Key 1\0\n\u00e9'\""]
    found = answer(Grouped((Axis("x", keys=keys),), (ROWS,)), pa.table({"x": given})).value.ravel()
    assert found.tolist() == [Counter(given)[key] for key in keys]
    with pytest.raises(InvalidInput, match="half of a surrogate pair"):
        Axis("x", keys=["a", "\ud800"])


def test_dates_are_refused_alike_and_no_value_is_told(tmp_path):
    moment = datetime.datetime(2020, 3, 4)
    table = pa.table({"x": [moment], "y": [1.0], "key": ["a"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    for data in (table, tmp_path / "t.parquet", table.to_pandas(), {"x": np.array([moment], "datetime64[s]")}):
        for query in (
            Grouped((), (Measure("moments", "x", (0, 1), 1),)),
            Grouped((Axis("x", keys=[1]),), (ROWS,)),
            Grouped((Axis("x", keys=["a"]),), (ROWS,)),
        ):
            with pytest.raises(InvalidInput, match=r"^column='x' has type \S+, where the query needs ") as caught:
                answer(query, data)
            assert "2020" not in str(caught.value)


# Rows alone.


@pytest.mark.slow
def test_rows_are_counted_without_a_column(tmp_path):
    polars, dask = pytest.importorskip("polars"), pytest.importorskip("dask.dataframe")
    odd = np.array([1, "a", None, [2], b"x"] * 4, dtype=object)
    who = np.array(["u", "u", "u", "v", None] * 4, dtype=object)
    columns = {"when": pa.array([datetime.date(2020, 1, 1), None] * 10), "x": [None] * 20, "who": who.tolist()}
    table = pa.table(columns)
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=7)
    (tmp_path / "t.csv").write_text("odd,who\n" + "\n".join(f"{i},{who[i] or ''}" for i in range(20)))
    frame = pandas.DataFrame({"odd": odd, "who": who})
    sources = [
        ({"odd": odd, "who": who}, None),
        ({"odd": odd, "who": who}, "duckdb"),
        (frame, None),
        (polars.from_arrow(table), None),
        (polars.from_arrow(table).lazy(), None),
        (table, None),
        (dataset.dataset(table), None),
        (tmp_path / "t.parquet", None),
        (tmp_path / "t.csv", None),
        (tmp_path / "t.parquet", "dask"),
        (tmp_path / "t.csv", "dask"),
        (dask.from_pandas(table.to_pandas(), npartitions=3), None),
    ]
    query = Grouped((), (ROWS,))
    for data, engine in sources:
        assert answer(query, data, engine=engine).value.tolist() == [[20.0]], (type(data), engine)
        assert answer(query, data, engine=engine, unit=Unit("who", 3)).value.tolist() == [[6.0]], (type(data), engine)
    for data in (np.zeros((20, 3)), np.zeros(20), table.to_reader(3)):
        assert answer(query, data).value.tolist() == [[20.0]]
    assert answer(query, table.slice(0, 0)).value.tolist() == [[0.0]]
    for data, engine in (({}, None), ({}, "duckdb"), (pa.table({}), None)):
        with pytest.raises(InvalidInput, match="data has no columns"):
            answer(query, data, engine=engine)
    with pytest.raises(InvalidInput, match="different lengths"):
        answer(query, {"x": [1], "y": [1, 2]})
    counted = ln.Table(tmp_path / "t.parquet").aggregate(ln.count()).release(epsilon=5, delta=1e-6)
    assert [row["statistic"] for row in counted.rows] == ["count"]
    assert abs(counted.rows[0]["value"] - 20) < 40


@pytest.mark.slow
def test_rows_are_counted_on_postgresql(postgres):
    from lessnoise.engines import Postgres
    from tests.helpers.frames import fill

    fill(postgres, "few", pa.table({"name": ["a", "b", None], "who": ["u", "u", "v"]}))
    query, source = Grouped((), (ROWS,)), Postgres(postgres, table="few")
    assert answer(query, source).value.tolist() == [[3.0]]
    assert answer(query, source, unit=Unit("who", 1)).value.tolist() == [[2.0]]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # within Dask
def test_groups_on_dask_in_processes_of_its_own(tmp_path):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    values = [math.nan, None, math.inf, -0.0, 0.25, 1 / 3, 7.0, -1.0] * 6
    table = pa.table({"x": values, "key": [*"abca"] * 12, "who": [place % 11 for place in range(48)]})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=20)
    query = Grouped((Axis("key", keys=["c", "a"]),), measures((0, 1), (-2, 1 / 3)))
    with dask.config.set(scheduler="processes", num_workers=2):
        found = answer(query, tmp_path / "t.parquet", unit=Unit("who", 2, key="k"), engine="dask").value
    assert np.array_equal(found, answer(query, table, unit=Unit("who", 2, key="k")).value)
    assert found.any()


# Neighbours.


def random_query(rng):
    low = rng.choice([0.0, -1.0, -5.0, 2.0])
    bounds = (low, low + rng.choice([1.0, 2.0, 10.0]))
    axes = rng.choice([(), (Axis("key", keys=["a", "b"]),), (Axis("x", bounds=(-1, 3), bins=3),)])
    cells = Measure(
        "cells", axis=Axis("x", bounds=bounds, bins=rng.choice([1, 5]), outside=rng.choice(["drop", "clamp"]))
    )
    kinds = [ROWS, Measure("total", "x", bounds), cells, *(Measure("moments", "x", bounds, d) for d in (1, 2))]
    return Grouped(axes, tuple(rng.sample(kinds, rng.randint(1, 5))))


def random_rows(rng, rows, users):
    suspects = [math.nan, math.inf, -math.inf, -0.0, 1e-300, 1 / 3, 0.5 + HALF, 7.0, -5.0, 1.0, -1.0]
    return [(rng.choice(suspects), rng.choice(["a", "b", "c"]), rng.choice(users)) for _ in range(rows)]


def columns_of(rows):
    x, key, who = zip(*rows, strict=True) if rows else ((), (), ())
    return {"x": np.array(x, dtype=float), "key": np.array(key, dtype=str), "who": np.array(who, dtype=np.int64)}


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_no_neighbour_of_a_random_table_moves_a_measure_beyond_its_set(relation):
    rng = generator(relation)
    for _ in range(400):
        query, rows = random_query(rng), rng.choice([1, 2, 3])
        unit = rng.choice([ROW, Unit("who", rows, key=str(rng.random()))])
        kept = [(1.0, "a", 50), *random_rows(rng, rng.randint(0, 6), range(5))]  # no column is empty
        size = 1 if unit is ROW else rng.randint(1, 6)
        mine, other = (random_rows(rng, size, [user]) for user in (99, 100))
        left, right = [*kept, *mine], [*kept, *(other if relation == "replace" else [])]
        rng.shuffle(left)
        values = [answer(query, columns_of(each), neighbours=relation, unit=unit).value for each in (left, right)]
        moved = values[0] - values[1]
        for measure, where in query.places():
            known = measure.changes(query.groups, unit.rows, ln.Neighbours.of(relation))
            assert known.contains(moved[:, where].ravel().tolist()), (measure, unit, left, right)
        whole = query.norms(relation, unit)
        assert np.abs(moved).sum() <= whole.l1
        assert np.linalg.norm(moved) <= whole.l2


def test_a_replaced_value_moves_a_sum_from_one_end_to_the_other():
    measure, one = Measure("total", "x", (-1, 1)), ln.Neighbours.REPLACE
    query = Grouped((), (measure,))
    moved = answer(query, {"x": np.array([1.0])}).value - answer(query, {"x": np.array([-1.0])}).value
    assert moved.tolist() == [[2.0]]
    assert measure.changes(1, 1, one).contains([2.0])
    assert not measure.changes(1, 1, ln.Neighbours.ADD_REMOVE).contains([2.0])
    for bounds, most in (((-1, 1), 2), ((0, 5), 1), ((-4, 0), 1), ((-1, 3), 4 / 3), ((2, 3), 1)):
        size = Measure("total", "x", bounds).changes(1, 1, one).norm(1, 1)
        assert most <= size <= most * (1 + 2e-6), bounds
    plan = ln.Table({"x": [0.0]}, neighbours="replace").aggregate(ln.sum("x", bounds=(-1, 1))).plan(1, 1e-6)
    assert plan.parts[0].mechanism.changes.norm(1, 1) >= 2


def test_what_a_row_adds_is_never_negative_and_one_in_all():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(-1, 2, 2000), [0, 1, HALF, 1 - HALF, 3 * HALF, 2**-16, 1 - 2**-16, np.inf]])
    for degree in (1, 2):
        added = Measure("moments", "x", (0, 1), degree).added({"x": values}, ("x",))
        assert added.min() >= 0
        assert (added.sum(axis=1) == ONE).all()
        mean = added @ np.arange(degree + 1) / degree / ONE
        assert np.abs(mean - np.clip(values, 0, 1)).max() <= HALF
    with pytest.raises(InvalidInput, match="63 bits"):
        Measure("moments", "x", (0, 1), 1).numbers([np.array([1 << 33]), np.array([0])])


# Descriptions.


@pytest.mark.slow
def test_a_description_is_read_back_and_a_certificate_states_it():
    axes = (Axis("key", keys=["a", "b"]), Axis("n", keys=[1, 2]), Axis("y", edges=[0, 1, 5]))
    data = {"x": [1.0, 2.0], "key": ["a", "b"], "n": np.array([1, 2]), "y": [0.5, 3.0]}
    for query in (Grouped(axes, measures((0, 1), (-2, 3))), Grouped((), (ROWS,)), Grouped(axes[:1], (ROWS,))):
        again = Query.from_dict(query.to_dict())
        assert again == query
        assert again.shape == query.shape
        given = query.answer(data)
        assert read_asked(given.asked.to_dict()) == given.asked
        released = given.release(epsilon=1, delta=1e-6)
        assert released.value.shape == query.shape
        assert released.certificate.asked.query == query
    assert str(Grouped((), (ROWS,)).answer(data).asked) == "Grouped of all rows"
    assert any("clipped" in rule for rule in Grouped(axes, measures((0, 1))).rules)
    three = Grouped((), (ROWS, Measure("total", "x", (0, 1)), Measure("moments", "x", (0, 1), 2))).answer(data)
    weak = ln.laplace(epsilon=1, sensitivity=1, shape=(1, 5))
    with pytest.raises(InvalidInput, match="do not cover"):
        weak.release(three)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Measure("median", "x", (0, 1)), "kind='median'"),
        (lambda: Measure("moments", "x", (0, 1), 3), "degree=3"),
        (lambda: Measure("moments", "x", (0, 1), True), "degree=True"),
        (lambda: Measure("moments", "x", None, 1), "bounds=None"),
        (lambda: Measure("rows", "x"), "column='x'"),
        (lambda: Measure("cells"), "axis=None"),
        (lambda: Measure("total", 5, (0, 1)), "column=5"),
        (lambda: Grouped((), ()), r"measures=\(\) is empty"),
        (lambda: Query.from_dict({"query": "grouped", "axes": []}), "lacks 'measures'"),
        (lambda: Query.from_dict({"query": "grouped", "axes": [], "measures": []}), "measures=.* is not a list"),
        (lambda: Query.from_dict({"query": "grouped", "axes": 5, "measures": [{"kind": "rows"}]}), "axes=5"),
        (lambda: Query.from_dict({"query": "grouped", "axes": [], "measures": [{"kind": "rows", "n": 1}]}), "'n'"),
    ],
)
def test_bad_descriptions_are_one_sentence(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


def test_settings_keep_the_statistics_of_files_out():
    assert "join_filter_pushdown" in duck._SETTINGS["disabled_optimizers"]
