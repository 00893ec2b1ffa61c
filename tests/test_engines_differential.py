"""One differential test over all engines: nasty tables with nasty names, against plain Python and the NumPy engine."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")

import frames  # noqa: E402
from frames import as_csv, as_parquet, expected_counts, frame, generator, in_memory, of_csv, units  # noqa: E402
from lessnoise import InvalidInput  # noqa: E402
from lessnoise.engines import answer  # noqa: E402
from lessnoise.query import ROW, Histogram  # noqa: E402
from test_engines import fill, postgres, spark  # noqa: E402, F401

REFUSED = "refused"


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


def compare_on_duckdb(rng, given, folder, some=2):
    folder.mkdir(exist_ok=True)
    compared = assert_alike(given, list(local_sources(given, folder)), rng, some=some)
    file = as_csv(given, folder, rng.choice(["t.csv", "t.TSV", "t[1]?.CSV.gz"]))
    names = [name for name in given.queries if name != "codes"]
    names = names if some > 2 else rng.sample(names, 3)
    return compared + assert_alike(of_csv(given), [("csv", file, None)], rng, names)


@pytest.mark.parametrize("kind", sorted(frames.KINDS))
def test_duckdb_gives_the_answers_of_numpy(kind, tmp_path):
    rng = generator(kind)
    users = sorted(frames.USERS)[len(kind) % 4]
    assert compare_on_duckdb(rng, frame(rng, rows=40, kind=kind, users=users), tmp_path) > 40


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_with_hardly_a_row(rows, tmp_path):
    rng = generator(rows)
    assert compare_on_duckdb(rng, frame(rng, rows=rows, kind="float64"), tmp_path) > 40
