"""The same answers on every engine: files, data frames, Arrow, Spark, Dask, and a real PostgreSQL server."""

import gzip
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from lessnoise import InvalidInput
from lessnoise.engines import answer, duck, engine_name
from lessnoise.engines.postgres import Postgres
from lessnoise.errors import EngineFailed, MissingExtra
from lessnoise.query import ROW, Axis, Gram, Histogram, Mean, Sum, Unit
from tests.helpers.frames import fill

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

BOX = ((-74.05, -73.75), (40.6, 40.9))
MAP = Histogram.grid(["Lon", "Lat"], bins=(89, 89), bounds=BOX)
QUERIES = {
    "map": MAP,
    "clamped": Histogram.grid(["Lat", "Lon"], bins=(7, 3), bounds=BOX[::-1], outside="clamp"),
    "unit box": Histogram.grid(["part"], bins=(89,), bounds=((0, 1),)),
    "edges and keys": Histogram(
        [Axis("Lon", edges=[-74, -73.99, -73.9, -73.8]), Axis("Base", keys=["B1", "B'3", "B9"])]
    ),
    "codes": Histogram([Axis("code", keys=[5, 0, 2])]),
    "many edges": Histogram([Axis("Lat", edges=np.linspace(40.6, 40.9, 700) ** 1.0001)]),
    "sum": Sum(["Lon", "Lat", "code"], bounds=[(-75, -73.9), (40, 41), (0, 3)]),
    "mean": Mean(["Lon", "Lat"], bounds=[(-75, -73.9), (40, 41)]),
    "gram": Gram(["Lon", "Lat"], norm=80),
    "gram in a box": Gram(["Lon", "Lat", "code"], box=(-74, 50)),
}
USERS = Unit("who", 3, key="fixed")
UBER = next(Path(os.environ.get("LESSNOISE_DATA", "none")).glob("**/uber-raw-data-apr14.csv*"), None)
"""Uber pickups of April 2014 as FiveThirtyEight published them, if the folder that $LESSNOISE_DATA names has them."""


@pytest.fixture(scope="module")
def frame():
    """Points on and around edges, outside, missing, infinite; ids and keys, some missing."""
    rng = np.random.default_rng(0)
    count = 4000
    lon = np.round(rng.normal(-73.95, 0.08, count), 3)
    lon[:90] = np.linspace(*BOX[0], 90)
    lon[90:180] = np.nextafter(np.linspace(*BOX[0], 90), -np.inf)
    lat = rng.normal(40.75, 0.06, count)
    lat[200:290] = np.linspace(*BOX[1], 90)
    lon[300:310], lat[305:320], lon[330:332] = np.nan, np.nan, [np.inf, -np.inf]
    part = np.concatenate([np.linspace(0, 1, 90), np.nextafter(np.linspace(0, 1, 90), 0), rng.random(count - 180)])
    base = rng.choice(np.array(["B1", "B2", "B'3", None], dtype=object), count)
    who = rng.choice(np.array([f"user {i}" for i in range(900)] + [None], dtype=object), count)
    code = rng.integers(0, 7, count)
    return pandas.DataFrame({"Lon": lon, "Lat": lat, "part": part, "Base": base, "who": who, "code": code})


@pytest.fixture(scope="module")
def table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def parquet(table, tmp_path_factory):
    from pyarrow import parquet

    path = tmp_path_factory.mktemp("data") / "it's points.parquet"
    parquet.write_table(table, path, row_group_size=700)
    return path


@pytest.fixture(scope="module")
def csv(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "points.csv.gz"
    with gzip.open(path, "wt") as file:
        frame.to_csv(file, index=False)
    return path


@pytest.fixture(scope="module")
def expected(frame):
    """Every query on NumPy arrays, for rows and for users."""
    arrays = {name: frame[name].to_numpy(dtype=object if name in ("Base", "who") else None) for name in frame.columns}
    arrays = {
        name: np.array([None if v != v else v for v in a], dtype=object) if a.dtype == object else a
        for name, a in arrays.items()
    }
    return {
        (name, unit.id): answer(query, arrays, unit=unit, engine="numpy").value
        for name, query in QUERIES.items()
        for unit in (ROW, USERS)
    }


def assert_same(data, expected, engine=None, names=tuple(QUERIES), units=(ROW, USERS)):
    for name in names:
        for unit in units:
            found = answer(QUERIES[name], data, unit=unit, engine=engine)
            assert np.array_equal(found.value, expected[name, unit.id]), (name, unit)


def test_the_reference_is_numpy(frame, expected):
    finite = frame[np.isfinite(frame.Lon) & np.isfinite(frame.Lat)]
    assert np.array_equal(expected["map", None], np.histogram2d(finite.Lon, finite.Lat, bins=89, range=BOX)[0])
    assert np.array_equal(
        expected["unit box", None], np.histogramdd(frame.part.to_numpy(), bins=[89], range=[(0, 1)])[0]
    )
    assert expected["map", "who"].sum() < expected["map", None].sum()


@pytest.mark.slow
def test_duckdb_over_parquet_and_csv(parquet, csv, expected):
    assert_same(parquet, expected)
    assert_same(str(csv), expected)
    assert_same(str(parquet.parent / "*.parquet"), expected, names=("map",))


@pytest.mark.slow
def test_duckdb_over_tables_in_memory(frame, table, expected):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    for data in (frame, table, polars.from_arrow(table), polars.from_arrow(table).lazy()):
        assert_same(data, expected, names=("map", "edges and keys", "sum"))
    assert_same(pa.dataset.dataset(table) if hasattr(pa, "dataset") else table, expected, names=("map",))
    assert np.array_equal(answer(MAP, table.to_reader(max_chunksize=500)).value, expected["map", None])
    points = frame[["Lon", "Lat"]].to_numpy()
    assert np.array_equal(answer(MAP, points, engine="duckdb").value, answer(MAP, points).value)


@pytest.mark.slow
def test_categories_are_text(frame, expected):
    """Also with keys and ids that the categories do not have."""
    categories = frame.astype({"Base": "category", "who": "category"})
    assert_same(categories, expected, names=("edges and keys", "map"))
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    assert_same(dask.from_pandas(categories, npartitions=2), expected, names=("edges and keys",), units=(ROW,))


def test_a_missing_value_in_a_csv_file_is_an_empty_field(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,who\n0.5,NA\n,NA\n0.7,\n0.9,NA\n0.1,b\n")
    query, unit = Histogram.grid(["x"], bins=(1,), bounds=[(0, 1)]), Unit("who", 1)
    for engine in ("duckdb", "dask"):
        assert answer(query, path, engine=engine).value.tolist() == [4]
        assert answer(query, path, engine=engine, unit=unit).value.tolist() == [2]
    path.write_text("x,who\n0.5,a\nNA,a\n")
    for engine in ("duckdb", "dask"):
        with pytest.raises(InvalidInput, match=r"column 'x' holds text, not numbers: .*nothing for a missing one"):
            answer(query, path, engine=engine)


def test_integer_ids_choose_the_same_rows(frame):
    numbers = frame.assign(who=np.arange(len(frame)) % 400)
    arrays = {name: numbers[name].to_numpy() for name in ("Lon", "Lat", "who")}
    assert np.array_equal(answer(MAP, numbers, unit=USERS).value, answer(MAP, arrays, unit=USERS).value)


def test_progress_is_reported(parquet):
    steps = []
    answer(MAP, parquet, progress=lambda *step: steps.append(step))
    assert steps[-1] == ("counting", 100, 100)
    answer(QUERIES["sum"], parquet, progress=lambda *step: steps.append(step))
    assert steps[-1][0].endswith(" rows")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # within Dask
def test_dask(frame, table, parquet, csv, expected):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    from dask import dataframe

    with dask.config.set(scheduler="threads"):
        assert_same(
            dataframe.from_pandas(frame, npartitions=11), expected, names=("map", "codes", "edges and keys", "mean")
        )
        assert_same(parquet, expected, engine="dask", names=("map", "gram"))
        assert_same(csv, expected, engine="dask", names=("clamped", "sum"))
        assert np.array_equal(
            answer(MAP, dataframe.from_pandas(frame.iloc[:0], npartitions=1)).value, np.zeros((89, 89))
        )
        with pytest.raises(InvalidInput, match="column='Lng' is not in the data: choose among 'Lon'"):
            answer(Sum(["Lng"], bounds=(0, 1)), dataframe.from_pandas(frame, npartitions=2))
        with pytest.raises(InvalidInput, match="column 'Base' holds text, not numbers"):
            answer(Sum(["Base"], bounds=(0, 1)), dataframe.from_pandas(frame, npartitions=2))

        before, after = (t.to_pandas() for t in with_an_attacker(table, 10**6))
        assert_bounded(*(dataframe.from_pandas(data, npartitions=5) for data in (before, after)), Unit("who", 25))

        def die(part):
            raise RuntimeError("worker lost")

        dying = dataframe.from_pandas(frame, npartitions=3).map_partitions(die, meta=frame.iloc[:0])
        with pytest.raises(EngineFailed, match=r"Dask could not read the data to the end.*nothing was spent"):
            answer(MAP, dying)


@pytest.mark.slow
def test_spark(spark, table, parquet, csv, expected, tmp_path):
    from pyspark.sql import functions as f

    whole = spark.read.parquet(str(parquet)).repartition(5)
    assert_same(whole, expected, names=("edges and keys", "gram"))
    assert_same(parquet, expected, engine="spark", names=("codes", "mean"), units=(ROW,))
    assert_same(csv, expected, engine="spark", names=("map",), units=(USERS,))
    before, after = (t.to_pandas() for t in with_an_attacker(table, 10**6))
    after.to_parquet(tmp_path / "after.parquet")
    before.to_parquet(tmp_path / "before.parquet")
    assert_bounded(tmp_path / "before.parquet", tmp_path / "after.parquet", Unit("who", 25), "spark")
    with pytest.raises(InvalidInput, match="column='Lng' is not in the data: choose among 'Lon'"):
        answer(Sum(["Lng"], bounds=(0, 1)), whole)
    with pytest.raises(InvalidInput, match="column 'Base' holds text, not numbers"):
        answer(Sum(["Base"], bounds=(0, 1)), whole)
    with pytest.raises(InvalidInput, match="column='Lon' holds no values"):
        answer(MAP, whole.withColumn("Lon", f.lit(None).cast("double")))
    with pytest.raises(EngineFailed, match=r"Spark could not read the data to the end.*nothing was spent"):
        answer(MAP, whole.withColumn("Lon", f.raise_error(f.lit("worker lost")).cast("double")))
    if UBER is not None:
        assert np.array_equal(answer(MAP, UBER, engine="spark").value, uber_counts())


@pytest.mark.slow
def test_postgresql(postgres, table, expected):
    fill(postgres, "Points", table)
    source = Postgres(postgres, table="public.Points")
    assert_same(source, expected)
    listed = "(VALUES (-73.9, 40.7), (-73.9, NULL), (-73.85, 40.75), (-80.0, 40.7)) AS listed (lon, lat)"
    some = Postgres(postgres, select=f'SELECT lon::numeric AS "Lon", lat::real AS "Lat" FROM {listed}')
    assert np.array_equal(
        answer(MAP, some).value, answer(MAP, np.array([[-73.9, np.float32(40.7)], [-73.85, 40.75]])).value
    )
    with pytest.raises(InvalidInput, match="column='Lng' is not in the data: choose among 'Lon'"):
        answer(Sum(["Lng"], bounds=(0, 1)), source)
    with pytest.raises(InvalidInput, match="column 'Base' holds text, not numbers"):
        answer(Sum(["Base"], bounds=(0, 1)), source)
    with pytest.raises(InvalidInput, match="unit='part' has type double precision"):
        answer(MAP, source, unit=Unit("part", 2))
    with pytest.raises(EngineFailed, match="PostgreSQL could not read the data"):
        answer(MAP, Postgres(postgres, table="nowhere"))
    broken = Postgres(postgres, select='SELECT "Lon", 1 / (4000 - row_number() OVER ()) AS "Lat" FROM "Points"')
    with pytest.raises(EngineFailed, match=r"could not read the data to the end.*nothing was spent"):
        answer(MAP, broken)
    if UBER is not None:
        fill(postgres, "april", uber_table())
        assert np.array_equal(answer(MAP, Postgres(postgres, table="april")).value, uber_counts())


def test_postgresql_that_is_not_there():
    pytest.importorskip("adbc_driver_postgresql", reason="adbc-driver-postgresql is not installed")
    with pytest.raises(EngineFailed, match="PostgreSQL could not read") as caught:
        answer(MAP, Postgres("postgresql://me:secret@127.0.0.1:1/none", table="points"))
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(Postgres("postgresql://me:secret@127.0.0.1:1/none", table="points"))
    with pytest.raises(InvalidInput, match="pass one of them"):
        Postgres("postgresql://localhost")


# The real file.


def uber_table():
    from pyarrow import csv

    return csv.read_csv(UBER).select(["Lon", "Lat", "Base"])


def uber_counts():
    table = uber_table()
    return np.histogram2d(table["Lon"].to_numpy(), table["Lat"].to_numpy(), bins=89, range=BOX)[0]


@pytest.mark.slow
@pytest.mark.skipif(UBER is None, reason="$LESSNOISE_DATA names no folder with the Uber file of April 2014")
def test_the_uber_file_on_duckdb_and_dask():
    counts = uber_counts()
    assert counts.sum() == 555_809
    assert np.array_equal(answer(MAP, UBER).value, counts)
    pytest.importorskip("dask", reason="dask is not installed")
    assert np.array_equal(answer(MAP, UBER, engine="dask").value, counts)


# One user with very many rows.


def with_an_attacker(table, rows):
    """The honest rows, and the same with one more user in their midst, who has very many rows in one place."""
    honest = table.select(["Lon", "Lat", "who"])
    attack = pa.table(
        {"Lon": np.full(rows, -73.9), "Lat": np.full(rows, 40.7), "who": pa.array(["x"]).take([0] * rows)}
    )
    attack = attack.cast(honest.schema)
    return honest, pa.concat_tables([honest.slice(0, 2000), attack, honest.slice(2000)]).combine_chunks()


def assert_bounded(before, after, unit, engine=None):
    """The counts move by exactly what is stated, as all rows of the attacker fall in one cell."""
    first, second = (answer(MAP, data, unit=unit, engine=engine) for data in (before, after))
    assert np.linalg.norm(second.value - first.value) == second.sensitivity == second.l1_sensitivity == unit.rows


@pytest.mark.slow
def test_an_adversarial_user_with_a_million_rows(table):
    before, after = with_an_attacker(table, 10**6)
    unit = Unit("who", 25)
    assert_bounded(before, after, unit)
    query = Gram(["Lon", "Lat"], norm=80)  # the attacker's rows are longer than that, and all alike
    first, second = (answer(query, data, unit=unit) for data in (before, after))
    assert 0.9999 * second.sensitivity < np.linalg.norm(second.value - first.value) <= second.sensitivity


# Bad input.


@pytest.mark.slow
def test_bad_input_on_duckdb(tmp_path, frame, parquet):
    cases = {
        tmp_path / "none.parquet": (InvalidInput, "data=.*none.parquet does not exist"),
        tmp_path / "points.xlsx": (InvalidInput, "neither Parquet nor CSV"),
        tmp_path / "cut.parquet": (
            EngineFailed,
            "DuckDB could not read data=.*cut.parquet to the end.*nothing was spent",
        ),
        tmp_path / "words.csv": (InvalidInput, "column 'Lon' holds text, not numbers"),
        tmp_path / "other.csv": (InvalidInput, "column='Lon' is not in the data: choose among 'a', 'b'"),
        tmp_path / "empty.csv": (InvalidInput, "data=.*empty.csv is empty: pass a file with"),
    }
    (tmp_path / "points.xlsx").write_bytes(b"PK")
    (tmp_path / "cut.parquet").write_bytes(parquet.read_bytes()[:-2000])
    (tmp_path / "words.csv").write_text("Lon,Lat\n-73.9,40.7\nnorth,40.7\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    for path, (error, words) in cases.items():
        with pytest.raises(error, match=words):
            answer(MAP, path)
    for data, words in (
        (frame.drop(columns="Lat"), "column='Lat' is not in the data"),
        (frame.assign(Lat="north"), "column 'Lat' holds text, not numbers"),
        (frame.assign(Lat=np.nan), "column='Lat' holds no values, NULL or NaN in every row"),
        (pa.table({"Lon": [1.0], "Lat": pa.array([None], pa.float64())}), "column='Lat' holds no values"),
        (pa.table({"Lon": [1.0], "Lat": pa.nulls(1)}), "column='Lat' (has type|holds no values)"),
        (object(), "data of type object cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=words):
            answer(MAP, data)
    with pytest.raises(InvalidInput, match="unit='Lat' has type DOUBLE"):
        answer(QUERIES["codes"], frame, unit=Unit("Lat", 2))
    with pytest.raises(InvalidInput, match=r"column='code' has type .*INT, where the query needs text"):
        answer(Histogram([Axis("code", keys=["a"])]), frame)


def test_a_truncated_row_group_is_found_half_way(tmp_path, parquet):
    broken = bytearray(parquet.read_bytes())
    middle = len(broken) // 2
    broken[middle : middle + 3000] = bytes(3000)
    path = tmp_path / "broken.parquet"
    path.write_bytes(broken)
    with pytest.raises(EngineFailed, match="nothing was spent"):
        answer(Sum(["Lon", "Lat", "part", "code"], bounds=(0, 1)), path)


def test_engines_by_name_and_by_data(frame):
    assert engine_name(frame) == "duckdb"
    assert engine_name("x.parquet") == "duckdb"
    assert engine_name(np.zeros(3)) == "numpy"
    assert engine_name("x.parquet", "spark") == "spark"
    with pytest.raises(InvalidInput, match="engine='sqlite' is not known"):
        answer(MAP, frame, engine="sqlite")
    for engine in ("spark", "dask", "numpy"):
        with pytest.raises(InvalidInput, match="data of type DataFrame is not"):
            answer(MAP, frame, engine=engine)


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [("duckdb", "duckdb", "data"), ("spark", "pyspark", "spark"), ("dask", "dask", "dask")],
)
def test_an_engine_that_is_not_installed(monkeypatch, frame, engine, package, extra):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package} is not installed: run pip install 'lessnoise\[{extra}\]'"):
        answer(MAP, frame, engine=engine)


@pytest.mark.slow
def test_an_engine_that_dies_half_way(monkeypatch, frame):
    def die(*_):
        raise duckdb.IOException("IO Error: disk gone\nat line 3")

    monkeypatch.setattr(duck, "_grouped", die)
    with pytest.raises(
        EngineFailed, match=r"DuckDB could not read the data to the end \(IO Error: disk gone\): nothing"
    ):
        answer(MAP, frame)
