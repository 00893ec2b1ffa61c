"""One differential test over all engines: nasty tables with nasty names, against plain Python and the NumPy engine."""

import numpy as np
import pytest

from lessnoise import InvalidInput
from lessnoise.engines import answer, engine_errors
from lessnoise.engines.postgres import Postgres
from lessnoise.errors import EngineFailed, LessnoiseError
from lessnoise.query import ROW, Axis, Histogram, Mean, Sum, Unit
from tests.helpers import frames
from tests.helpers.frames import (
    OURS,
    as_csv,
    as_parquet,
    expected_counts,
    fill,
    frame,
    generator,
    in_memory,
    of_csv,
    pa,
    pandas,
    units,
)

REFUSED = "refused"
write_table = frames.parquet.write_table


def outcome(query, data, unit, engine=None):
    """The value, or that one sentence came instead of it."""
    try:
        return answer(query, data, unit=unit, engine=engine).value
    except InvalidInput:
        return REFUSED


def same(found, expected, may_be_zero=False):
    if isinstance(expected, str):
        return isinstance(found, str) or (may_be_zero and not found.any())
    return not isinstance(found, str) and np.array_equal(found, expected)


def assert_alike(given, sources, rng, names=None, some=2):
    """Each query on ``some`` of the sources (name, data, engine) gives what the NumPy engine and plain Python say."""
    arrays, compared = given.arrays(), 0
    queries = given.queries
    for name in names or list(queries):
        query = queries[name]
        for unit in units(given, rng):
            coded = name == "codes"  # the NumPy engine knows no whole numbers with NULL among them
            expected = expected_counts(query, given) if coded else outcome(query, arrays, unit)
            if isinstance(query, Histogram) and unit is ROW and not isinstance(expected, str):
                assert np.array_equal(expected, expected_counts(query, given)), (name, given)
            for source, data, engine in rng.sample(sources, min(some, len(sources))):
                if coded and (unit is not ROW or source.startswith("numpy")):
                    continue
                once = source == "reader"
                found = outcome(query, given.table.to_reader(max_chunksize=5) if once else data, unit, engine)
                if coded and isinstance(found, str):
                    assert not expected.any(), (source, name, unit, given)
                else:
                    assert same(found, expected, once), (source, name, unit, found, expected, given)
                compared += 1
    return compared


def local_sources(given, folder):
    """All cheap ones: tables in memory, and a Parquet file."""
    yield "numpy on duckdb", given.arrays(), "duckdb"
    for source, data in in_memory(given):
        yield source, data, None
    yield "parquet", as_parquet(given, folder), None


def compare_on_duckdb(rng, given, folder, some=1):
    folder.mkdir(exist_ok=True)
    compared = assert_alike(given, list(local_sources(given, folder)), rng, some=some)
    file = as_csv(given, folder, rng.choice(["t.csv", "t.TSV", "t[1]?.CSV.gz"]))
    names = [name for name in given.queries if name != "codes"]
    names = names if some > 1 else rng.sample(names, 3)
    return compared + assert_alike(of_csv(given), [("csv", file, None)], rng, names, some)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(frames.KINDS))
def test_duckdb_gives_the_answers_of_numpy(kind, tmp_path):
    rng = generator(kind)
    users = sorted(frames.USERS)[len(kind) % 4]
    assert compare_on_duckdb(rng, frame(rng, rows=40, kind=kind, users=users), tmp_path) > 20


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1])
def test_tables_with_hardly_a_row(rows, tmp_path):
    rng = generator(rows)
    assert compare_on_duckdb(rng, frame(rng, rows=rows, kind="float64"), tmp_path) > 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # within Dask
def test_dask_gives_the_answers_of_numpy(tmp_path):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    rng = generator("dask")
    with dask.config.set(scheduler="threads"):
        for users in ("texts", "numbers", "categories"):
            given = frame(rng, rows=40, users=users)
            some = ["groups", "rows", *rng.sample(list(given.queries), 2)]
            assert_alike(given, list(dask_sources(given, tmp_path)), rng, some, 1)
        written = [("dask, csv", as_csv(given, tmp_path), "dask")]
        assert_alike(of_csv(given), written, rng, ["grid", "sum"])


def dask_sources(given, folder):
    from dask import dataframe

    whole = frames.without_doubles(given.table).to_pandas(types_mapper=pandas.ArrowDtype)
    yield "dask", dataframe.from_pandas(whole, npartitions=3, sort=False), None
    yield "dask, parquet", as_parquet(given, folder), "dask"


@pytest.mark.slow
def test_spark_gives_the_answers_of_numpy(spark, tmp_path):
    rng = generator("spark")
    given = frame(rng, rows=40, kind="long decimal", users="texts")
    sources = list(spark_sources(spark, given, tmp_path))
    assert_alike(given, sources, rng, ["keys", "groups", "moments"], 1)  # the last is refused by a worker
    assert_alike(given, sources[:1], rng, ["rows"], 1)
    assert_alike(of_csv(given), [("spark, csv", as_csv(given, tmp_path), "spark")], rng, ["grid"])
    query, unit = Histogram([Axis("X", bounds=(0, 1), bins=1)]), Unit("lessnoise_rank", 1)
    rows = [(0.5, 0.9, "u", 1, str(place)) for place in range(50)]
    table = spark.createDataFrame(rows, "`X` double, `x` double, `lessnoise_rank` string, `many` int, `c0` string")
    assert answer(query, table, unit=unit).value.tolist() == [1]
    with pytest.raises(InvalidInput, match=r"column='a.b' is in the data 2 times"):
        answer(Sum(["a.b"], bounds=(0, 1)), table.toDF("a.b", "a.b", "c", "d", "e"))


def spark_sources(session, given, folder):
    whole = frames.without_doubles(given.table)
    rows = [tuple(row) for row in zip(*(column.to_pylist() for column in whole.columns), strict=True)]
    spark_types = {"string": "string", "large_string": "string", "double": "double", "int64": "bigint"}
    types = [spark_types.get(str(found), "decimal(38,10)") for found in whole.schema.types]
    fresh = session.createDataFrame(rows, ", ".join(f"z{place} {found}" for place, found in enumerate(types)))
    yield "spark", fresh.toDF(*whole.column_names).repartition(3), None
    yield "spark, parquet", as_parquet(given, folder), "spark"


@pytest.mark.slow
def test_postgresql_gives_the_answers_of_numpy(postgres):
    rng = generator("postgres")
    names = [name for name in frames.NAMES if len(name.encode()) <= 63 and name != "ctid"]  # which is the server's
    for place, kind in enumerate(("float64", "int64", "float32")):
        given = frame(rng, rows=40, names=names, kind=kind, users=["texts", "numbers"][place % 2])
        fill(postgres, f"t{place}", frames.without_doubles(given.table))
        source = ("postgresql", Postgres(postgres, table=f"t{place}"), None)
        assert_alike(given, [source], rng, ["groups", "rows", *rng.sample(list(given.queries), 3)])
    twice = Postgres(postgres, select='SELECT 1.0::float8 AS x, 2.0::float8 AS "X", 3 AS y, 4 AS y -- and no more')
    assert answer(Sum(["X"], bounds=(0, 3)), twice).value.tolist() == [2.0]
    with pytest.raises(InvalidInput, match="column='y' is in the data 2 times"):
        answer(Sum(["y"], bounds=(0, 3)), twice)
    with pytest.raises(InvalidInput, match="longer than 63 bytes"):
        Postgres(postgres, table="t" * 64)
    secret = Postgres(postgres, select="SELECT ('secret' || x)::float8 AS x FROM (VALUES ('a')) AS listed (x)")
    assert_silent(lambda: answer(Sum(["x"], bounds=(0, 3)), secret), EngineFailed, "PostgreSQL|DuckDB")


# Users: whatever the engine, a user's rows count at most k times, and nobody else's choice depends on them.


@pytest.mark.slow
@pytest.mark.parametrize("users", sorted(frames.USERS))
def test_the_answer_is_a_sum_over_users(users, tmp_path):
    rng = generator(users)
    given = frame(rng, rows=60, kind="float64", users=users)
    unit = Unit(given.user, 2, key="fixed")
    ids = np.array(given.values[given.user], dtype=object)
    everyone = [user for user in dict.fromkeys(ids.tolist()) if user is not None]
    for query in (given.queries["clamped"], given.queries["sum"]):
        alone = {user: answer(query, given.table.filter(ids == user), unit=unit).value for user in everyone}
        for data in (given.table, as_parquet(given, tmp_path)):
            assert np.array_equal(answer(query, data, unit=unit).value, sum(alone.values()))
        if isinstance(query, Histogram):
            assert max(value.sum() for value in alone.values()) == 2  # which some user reaches


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # within Dask
def test_a_user_in_partitions_of_several_types_is_one_user():
    """A missing id makes the ids of a partition floats; categories have other codes in each partition."""
    dask = pytest.importorskip("dask", reason="dask is not installed")
    from dask import dataframe

    query = Histogram.grid(["x"], bins=[1], bounds=[(0, 1)])

    def made(*parts):
        pieces = [pandas.DataFrame({"x": [0.5] * len(part), "who": part}) for part in parts]
        return dataframe.from_delayed(
            [dask.delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0], verify_meta=False
        )

    with dask.config.set(scheduler="threads"):
        coded = made(pandas.Categorical(["a", "b"] * 9), pandas.Categorical(["b", "a"] * 9, categories=["b", "z", "a"]))
        assert answer(query, coded, unit=Unit("who", 3)).value.tolist() == [6]
        wide = made(np.ones(9, dtype=np.int64), np.ones(9, dtype=np.int8), pandas.array([1] * 9, dtype="Int64"))
        assert answer(query, wide, unit=Unit("who", 3)).value.tolist() == [3]
        mixed = made(np.ones(9, dtype=np.int64), np.array([1.0, np.nan]))
        with pytest.raises(InvalidInput, match="unit='who' has type DOUBLE"):
            answer(query, mixed, unit=Unit("who", 3))


@pytest.mark.parametrize("engine", ["numpy", "duckdb"])
def test_ids_of_several_types_are_refused(engine):
    query = Histogram.grid(["x"], bins=[1], bounds=[(0, 1)])

    def count(ids, unit=2):
        ids = np.array([*ids, None], dtype=object)
        return answer(query, {"x": np.full(len(ids), 0.5), "who": ids}, unit=Unit("who", unit), engine=engine).value[0]

    assert count([1, 1, 1, 2**64 - 1, np.int8(1)]) == 3
    assert count(["1", "1", "1", "1 ", pandas.NA, float("nan")]) == 3
    for ids in ([1, "1"], [1, 1.0, "secret"], [1, True], [1.0, 2.0], [b"secret"], [["secret"]], [np.zeros(2)]):
        assert_silent(lambda ids=ids: count(ids), InvalidInput, "who")
    for far in (2.0**53, np.inf, np.nan):
        with pytest.raises(InvalidInput, match=r"not whole or beyond 2\^53"):
            answer(query, np.array([[0.5, far]]), unit=Unit("who", 1), engine=engine)


# What was found, each on its own.


@pytest.mark.slow
def test_no_name_in_the_data_is_taken_for_one_of_ours(tmp_path):
    """Columns of such names lie about users and cells; each is asked for once, and is one of the others else."""
    rows = 50
    lies = np.arange(rows)
    names = [*OURS, "LESSNOISE_USER", "CELL", "Rows"]
    columns = {"value": np.full(rows, 0.5), "who": np.array(["one"] * rows), **dict.fromkeys(names, lies / rows)}
    write_table(pa.table(columns), tmp_path / "t.parquet")
    honest = Histogram([Axis("value", bounds=(0, 1), bins=2)])
    for place, name in enumerate(names):
        data = [pa.table(columns), tmp_path / "t.parquet"][place % 2]
        lying = Histogram([Axis(name, bounds=(0, 1), bins=2)])
        assert answer(lying, data).value.tolist() == [rows / 2, rows / 2]
        assert answer(lying, data, unit=Unit("who", 1)).value.sum() == 1
        alone = pa.table({"value": columns["value"], "who": columns["who"], name: lies % 5})
        assert answer(honest, alone).value.tolist() == [0, rows]
        assert answer(honest, alone, unit=Unit("who", 1)).value.tolist() == [0, 1]
        assert answer(honest, alone, unit=Unit(name, 2)).value.tolist() == [0, 10]


@pytest.mark.slow
def test_names_that_differ_by_case_are_different(tmp_path):
    table = pa.table({"x": [0.1], "X": [0.6], "x_1": [0.9], "X_1": ["a"], "who": ["u"], "WHO": ["v"]})
    write_table(table, tmp_path / "t.parquet")
    for data in (table, table.to_pandas(), tmp_path / "t.parquet"):
        for name, cell in (("x", 0), ("X", 1), ("x_1", 2)):
            found = answer(Histogram([Axis(name, edges=[0, 0.5, 0.7, 1])]), data, unit=Unit("WHO", 1)).value
            assert found.tolist() == np.eye(3)[cell].tolist()
        with pytest.raises(InvalidInput, match="column='Who' is not in the data"):
            answer(Sum(["x"], bounds=(0, 1)), data, unit=Unit("Who", 1))
    twice = pa.Table.from_arrays([pa.array([0.1]), pa.array([0.2])], names=["x", "x"])
    write_table(twice, tmp_path / "twice.parquet")
    (tmp_path / "twice.csv").write_text("x,x\n0.1,0.2\n")
    for data in (twice, twice.to_pandas(), tmp_path / "twice.parquet", tmp_path / "twice.csv"):
        with pytest.raises(InvalidInput, match="column='x' is in the data 2 times"):
            answer(Sum(["x"], bounds=(0, 1)), data)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_nan_in_parquet_is_not_counted(engine, tmp_path):
    """The statistics of the file know nothing of NaN."""
    pytest.importorskip(engine)
    values = np.repeat([0.3, 0.6, np.nan], 50)
    write_table(pa.table({"x": values, "who": np.arange(150)}), tmp_path / "t.parquet", row_group_size=40)
    for outside in ("drop", "clamp"):
        query = Histogram.grid(["x"], bins=[4], bounds=[(0, 1)], outside=outside)
        for unit in (ROW, Unit("who", 2)):
            assert answer(query, tmp_path / "t.parquet", unit=unit, engine=engine).value.tolist() == [0, 50, 50, 0]
    public = Mean("x", bounds=(0, 1), rows=150)
    found = answer(public, tmp_path / "t.parquet", neighbours="replace", engine=engine).value
    assert np.array_equal(found, answer(public, {"x": values}, neighbours="replace").value)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_exactly_the_named_file_is_read(engine, tmp_path, monkeypatch):
    pytest.importorskip(engine)
    query = Sum(["x"], bounds=(0, 100))
    folder = tmp_path / "x=99" / "~" / "s3:" / "[a]"
    folder.mkdir(parents=True)
    names = ["t[1].parquet", "t1.parquet", "t*.parquet", "t?.PARQUET", "two\nlines.pq", "it's.parquet", "{a,b}.parquet"]
    names += ["back\\slash.parquet", "a::b.parquet", "a%20b.parquet", "$HOME.parquet", ".hidden.parquet", "_a.parquet"]
    for place, name in enumerate(names, start=1):
        write_table(pa.table({"x": [float(place)]}), folder / name)
        (folder / f"{name}.csv").write_text(f"x\n{place}\n")
    (folder / "link.parquet").symlink_to(folder / "t[1].parquet")
    for place, name in [*enumerate(names, start=1), (1, "link.parquet")]:
        assert answer(query, folder / name, engine=engine).value.tolist() == [place], name
        if name != "link.parquet":
            assert answer(query, str(folder / f"{name}.csv"), engine=engine).value.tolist() == [place], name
    monkeypatch.chdir(folder.parent.parent)
    assert answer(query, "s3:/[a]/t1.parquet", engine=engine).value.tolist() == [2]
    assert answer(query, folder / "t[1-2].parquet", engine=engine).value.tolist() == [
        2
    ]  # a pattern: there is no such file
    assert answer(query, folder / "*.parquet", engine=engine).value[0] == sum(range(1, 14)) - 4 - 5 - 12 + 1
    for missing, words in {
        folder / "none[1].parquet": "does not exist",
        "https://example.com/t.parquet": "does not exist",
        folder: "is a folder",
        folder / "*": "matches Parquet and CSV files",
    }.items():
        with pytest.raises(InvalidInput, match=words):
            answer(query, missing, engine=engine)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_files_that_differ_in_order_and_types(engine, tmp_path):
    pytest.importorskip(engine)
    query = Histogram([Axis("x", bounds=(0, 4), bins=8)])
    parts = [{"x": [1, 2], "who": [1, 2]}, {"who": [3, 1], "X": [9.0, 9.0], "x": [0.5, 1.5]}, {"x": [3.5], "who": [1]}]
    for place, part in enumerate(parts):
        write_table(pa.table(part), tmp_path / f"p{place}.parquet")
        lines = [",".join(part), *(",".join(map(str, row)) for row in zip(*part.values(), strict=True))]
        (tmp_path / f"p{place}.csv").write_text("\n".join(lines))
    for data in (tmp_path / "*.parquet", tmp_path / "*.csv"):
        assert answer(query, data, engine=engine).value.tolist() == [0, 1, 1, 1, 1, 0, 0, 1]
        assert answer(query, data, engine=engine, unit=Unit("who", 1)).value.sum() == 3
    write_table(pa.table({"x": [1.0], "who": ["1"]}), tmp_path / "p9.parquet")
    with pytest.raises(InvalidInput, match="unit='who' is text in one file and whole numbers in another"):
        answer(query, tmp_path / "*.parquet", engine=engine, unit=Unit("who", 1))


FIELDS = {
    "1.5": 1.5,
    " 1.5 ": 1.5,
    "+1.5": 1.5,
    '"1.5"': 1.5,
    "15e-1": 1.5,
    "nan": 0.0,
    "": 0.0,
    '""': 0.0,
    "-inf": -3.0,
    "1e999": 3.0,
    **dict.fromkeys(["NA", "NULL", "None", "true", "secret", "1_000", '"1,000"', "1.5.5", "0x10", "1d"], InvalidInput),
    "1.5,7": EngineFailed,
}
"""Fields of a CSV file where a number is needed, and what they add to a sum that is clipped to (-3, 3), or None."""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_fields_of_csv_files(engine, tmp_path):
    """The rows before give no hint, and the same is said on all engines."""
    pytest.importorskip(engine)
    query, path = Sum(["x"], bounds=(-3, 3)), tmp_path / "t.csv"
    for field, meant in FIELDS.items():
        path.write_text("y,x\n" + "a,1\n" * 30 + f"a,{field}\n")
        if meant in (EngineFailed, InvalidInput):
            words = "to the end .*nothing was spent" if meant is EngineFailed else "column 'x' holds text, not numbers"
            assert_silent(lambda: answer(query, path, engine=engine), meant, words, field)
        else:
            assert answer(query, path, engine=engine).value.tolist() == [30 + (meant or 0.0)], field
    path.write_bytes(b"y,x\n\xff,1\n")
    assert_silent(lambda: answer(Histogram([Axis("y", keys=["a"])]), path, engine=engine), EngineFailed, "UTF-8")
    path.write_text("0.25,jane doe\n0.5,john\n")
    assert_silent(lambda: answer(query, path, engine=engine), InvalidInput, "first line", "jane doe")
    for content in ("y,x", "secret".encode("utf-16")):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        assert_silent(
            lambda: answer(query, path, engine=engine), EngineFailed, "does not begin with a line of column names"
        )
    path.write_text("y,x\n")
    assert answer(query, path, engine=engine).value.tolist() == [0]
    path.write_text(f'y,x\n"{"long " * 10**6}",1\n')
    assert answer(query, path, engine=engine).value.tolist() == [1]


def assert_silent(act, error, words, secret="secret"):
    """One sentence of ours, and no value of the data in it or in the traceback."""
    with pytest.raises(error, match=words) as caught:
        act()
    assert isinstance(caught.value, LessnoiseError)
    assert secret not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_no_error_quotes_the_data(tmp_path):
    """Texts where numbers are needed, categories, mixed objects, streams that fail: the value is not told."""
    query = Sum(["x"], bounds=(0, 1))

    def failing():
        yield pa.record_batch({"x": [0.5]})
        raise ValueError("secret")

    write_table(pa.table({"x": ["secret"]}), tmp_path / "t.parquet")
    broken = bytearray((tmp_path / "t.parquet").read_bytes())
    broken[4:30] = b"secret" * 4 + b"se"
    (tmp_path / "broken.parquet").write_bytes(broken)
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 7], np.int32)), pa.py_buffer(b"secret\xff")]
    )
    write_table(pa.table({"y": bad}), tmp_path / "bad.parquet")
    names = Histogram([Axis("y", keys=["a"])])
    for asked, data, error in (
        (query, tmp_path / "t.parquet", InvalidInput),
        (query, pandas.DataFrame({"x": pandas.Categorical(["secret"])}), InvalidInput),
        (query, pandas.DataFrame({"x": np.array([1.0, "secret"], dtype=object)}), InvalidInput),
        (query, {"x": np.array(["secret"])}, InvalidInput),
        (query, pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), failing()), EngineFailed),
        (Histogram([Axis("x", keys=["a"])]), tmp_path / "broken.parquet", EngineFailed),
        (names, tmp_path / "bad.parquet", EngineFailed),
    ):
        assert_silent(lambda asked=asked, data=data: answer(asked, data), error, "column[ =]'[xy]'|could not read")


def test_a_stream_that_fails_is_not_quoted_under_any_name():
    """DuckDB tells of it as an input that is invalid or as one of its own IO errors, as its threads happen to meet."""
    named = type("IOException", (Exception,), {})
    for error in (named("secret"), OSError("secret"), ValueError("secret")):

        def fail(error=error):
            with engine_errors("DuckDB", pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), [])):
                raise error

        assert_silent(fail, EngineFailed, "could not read the data")
    with pytest.raises(EngineFailed, match="no such disk"), engine_errors("DuckDB", "trips.parquet"):
        raise OSError("no such disk")


@pytest.mark.slow
def test_columns_of_other_types_are_refused(tmp_path):
    """Dates, lists, structs, bytes, and a struct whose field is called as the column."""
    from datetime import date, datetime

    values = [datetime(2020, 1, 1), date(2020, 1, 1), b"1", [1.0], {"b": 0.5}]
    for value in values:
        table = pa.table({"x": [value], "y": [0.5]})
        write_table(table, tmp_path / "t.parquet")
        for data, engine in ((table, None), (tmp_path / "t.parquet", None), (tmp_path / "t.parquet", "dask")):
            for query, unit in (Sum(["x"], bounds=(0, 1)), ROW), (Sum(["y"], bounds=(0, 1)), Unit("x", 1)):
                with pytest.raises(InvalidInput, match="='x' has type"):
                    answer(query, data, unit=unit, engine=engine)
    write_table(pa.table({"x": pa.nulls(1), "y": [0.5]}), tmp_path / "t.parquet")
    for engine in ("duckdb", "dask"):
        with pytest.raises(InvalidInput, match="column='x' holds no values"):
            answer(Sum(["x"], bounds=(0, 1)), tmp_path / "t.parquet", engine=engine)
        assert not answer(
            Sum(["y"], bounds=(0, 1)), tmp_path / "t.parquet", engine=engine, unit=Unit("x", 1)
        ).value.any()
    both = pa.table({"a": [{"b": 0.5}], "a.b": [0.25]})
    write_table(both, tmp_path / "t.parquet")
    for data, engine in ((both, None), (tmp_path / "t.parquet", None), (tmp_path / "t.parquet", "dask")):
        assert answer(Sum(["a.b"], bounds=(0, 1)), data, engine=engine).value.tolist() == [0.25]
