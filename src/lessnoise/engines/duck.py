"""The embedded engine: DuckDB over files, data frames and Arrow, larger than memory."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import arrays, arrow_tables, data_files, duck_groups, duck_sql
from lessnoise.engines.engine import check_kinds, engine_errors, fresh, partial, places, require, typed, wanted
from lessnoise.engines.postgres import Postgres
from lessnoise.query import INTEGER, NOTHING, NUMBER, OTHER, ROW, TEXT, Grouped, Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import IntArray, Progress
    from lessnoise.query import Query, Unit

_VALUES = 1 << 20  # per batch
_VIEW = "source"
_CASTS = {NUMBER: "::DOUBLE", INTEGER: "", TEXT: ""}
_INTEGERS = frozenset(
    f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)
_SETTINGS = {
    "preserve_insertion_order": "false",
    "python_enable_replacements": "false",  # a name in SQL is never a Python variable
    "autoinstall_known_extensions": "false",  # nothing is fetched
    # Statistics of a Parquet file say nothing of NaN, and may be wrong: DuckDB leaves out a test that "always" holds.
    # The smallest and largest key of a join go the same way.
    "disabled_optimizers": "'statistics_propagation,filter_pushdown,join_filter_pushdown'",
}


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> IntArray:  # noqa: ANN401
    """Counts and measures of groups as one GROUP BY; other queries as partial sums over Arrow batches."""
    with contextlib.ExitStack() as stack:
        connection = _connected(data, stack)
        source = _source(connection, query, data, unit, stack)
        if isinstance(query, Histogram):
            counts = duck_sql.cell_counts(query, source, unit)
            if counts is not None:
                return _grouped(connection, query, counts, progress)
        if isinstance(query, Grouped):
            sums = duck_groups.sums(query, source, unit, connection)
            if sums is not None:
                with _watched(connection, progress):
                    return duck_groups.total(query, connection.execute(sums).fetchnumpy())
        return _streamed(connection, query, duck_sql.used_rows(query, source, unit), progress)


def distinct(query: Query, data: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """The different rows of the query's columns."""
    with contextlib.ExitStack() as stack:
        connection = _connected(data, stack)
        source = _source(connection, query, data, ROW, stack)
        return list(connection.execute(f"SELECT DISTINCT {', '.join(fresh(query, ROW))} FROM ({source})").fetchall())


def _connected(data: Any, stack: contextlib.ExitStack) -> Any:  # noqa: ANN401
    """A database of its own, which spills what exceeds the memory; what it raises is said in our words."""
    duckdb, _ = require("duckdb", "data"), require("pyarrow.dataset", "data")
    stack.enter_context(engine_errors("DuckDB", data))
    spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="lessnoise-"))
    connection = stack.enter_context(contextlib.closing(duckdb.connect()))
    for option, value in {**_SETTINGS, "temp_directory": duck_sql.text(spill)}.items():
        connection.execute(f"SET {option} = {value}").fetchall()
    return connection


def _grouped(connection: Any, query: Histogram, sql: str, progress: Progress) -> IntArray:  # noqa: ANN401
    with _watched(connection, progress):
        found = connection.execute(sql).fetchnumpy()
    wider = np.zeros([size + 1 for size in query.shape], dtype=np.int64)
    wider.ravel()[found["cell"].astype(np.int64)] = found["rows"].astype(np.int64)
    for axis, size in enumerate(query.shape):  # what lies on the last edge belongs to the last cell
        along = np.moveaxis(wider, axis, 0)
        along[size - 1] += along[size]
        wider = np.delete(wider, size, axis=axis)
    return np.ascontiguousarray(wider)


def _streamed(connection: Any, query: Query, sql: str, progress: Progress) -> IntArray:  # noqa: ANN401
    result, rows = query.zero(), 0
    # A batch has at least as many values as what it is added to.
    size = max(1024, max(_VALUES, result.size) // len(query.columns))
    for batch in connection.sql(sql).to_arrow_reader(size):
        result = query.combine(result, partial(query, batch))
        rows += batch.num_rows
        progress(f"{rows:,} rows", 0, 0)
    return result


def _source(connection: Any, query: Query, data: Any, unit: Unit, stack: contextlib.ExitStack) -> str:  # noqa: ANN401
    """A SELECT of the wanted columns under fresh names, numbers as doubles."""
    import pyarrow

    if isinstance(data, (str, Path)):
        found, form = data_files.found_files(data)
        if form == "parquet":
            return _parquet(connection, query, [_named_plainly(file, stack) for file in found], unit)
        parts = data_files.pieces(found, query, unit)
        rows = (batch for part in parts for batch in data_files.read(part, query, unit))
        reader = pyarrow.RecordBatchReader.from_batches(data_files.csv_schema(query, unit), rows)
    else:
        if isinstance(data, Postgres):
            data = stack.enter_context(data.opened(query, unit))
        elif isinstance(data, np.ndarray):
            data = arrays.named(query, data, unit)
        reader = arrow_tables.reader(query, data, unit)
    connection.register(_VIEW, reader)
    return f"SELECT * FROM {_VIEW}"


def _named_plainly(file: Path, stack: contextlib.ExitStack) -> Path:
    """The file under a name without backslashes, which DuckDB takes for slashes where a name has brackets, too."""
    if os.sep == "\\" or "\\" not in str(file):
        return file
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lessnoise-"))
    link = Path(folder, "file.parquet")
    link.symlink_to(file)
    return link


def _parquet(connection: Any, query: Query, found: list[Path], unit: Unit) -> str:  # noqa: ANN401
    """Files with the same columns are read together; each column is taken by its place, as DuckDB changes names."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file in found:
        place = duck_sql.text(glob.escape(str(file)))
        described = connection.execute(f"DESCRIBE SELECT * FROM read_parquet({place}, hive_partitioning = false)")
        types = [row[1] for row in described.fetchall()]
        tree = connection.execute(f"SELECT name, num_children FROM parquet_schema({place})").fetchall()
        alike.setdefault(tuple(zip(_top_level(tree), types, strict=True)), []).append(place)
    selects, ids = [], set()
    for columns, of in alike.items():
        where = places(query, unit, [name for name, _ in columns])
        kinds = [(_kind(columns[place][1]), columns[place][1]) for place in where]
        check_kinds(query, unit, kinds)
        ids.add(kinds[-1][0])
        wanted_as = zip(where, typed(query, unit, _CASTS), fresh(query, unit), strict=True)
        taken = ", ".join(f"p{place}{cast} AS {name}" for place, cast, name in wanted_as)
        taken = taken if wanted(query, unit) else "'' AS c0"  # rows alone
        every = ", ".join(f"p{place}" for place in range(len(columns)))
        source = f"read_parquet([{', '.join(of)}], hive_partitioning = false) AS file({every})"
        selects.append(f"SELECT {taken} FROM {source}")
    data_files.check_ids(unit, ids)
    return " UNION ALL ".join(selects)


def _top_level(tree: list[tuple[str, int | None]]) -> Iterator[str]:
    """The names of the columns, from a list of (name, number of children) in depth-first order."""
    inside = 0
    for name, children in tree[1:]:
        if not inside:
            yield name
        inside = max(0, inside - 1) + (children or 0)


def _kind(type_name: str) -> str:
    if type_name in ("DOUBLE", "FLOAT", "BOOLEAN") or type_name.startswith("DECIMAL("):
        return NUMBER
    if type_name in _INTEGERS:
        return INTEGER
    return {"VARCHAR": TEXT, '"NULL"': NOTHING}.get(type_name, OTHER)


@contextlib.contextmanager
def _watched(connection: Any, progress: Progress) -> Iterator[None]:  # noqa: ANN401
    """Report DuckDB's own progress, in percent, while a statement runs."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.25):
            progress("counting", max(0, int(connection.query_progress())), 100)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    progress("counting", 100, 100)
