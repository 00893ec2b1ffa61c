"""The embedded engine: DuckDB over files, data frames and Arrow, larger than memory."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import duck_sql
from lessnoise.engines.checks import check_schema, engine_errors, existing, file_format, require
from lessnoise.engines.postgres import Postgres
from lessnoise.errors import InvalidInput
from lessnoise.query import Histogram
from lessnoise.query.columns import INTEGER, NUMBER, OTHER, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lessnoise.query.base import Progress, Query
    from lessnoise.query.unit import Unit

_VALUES = 1 << 20  # per batch
_TYPES = {NUMBER: "DOUBLE", INTEGER: "BIGINT", TEXT: "VARCHAR"}
_VIEW = "lessnoise_data"


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    """Counts as one GROUP BY; other queries as partial sums over Arrow batches."""
    duckdb, _ = require("duckdb", "data"), require("pyarrow", "data")
    with contextlib.ExitStack() as stack:
        stack.enter_context(engine_errors("DuckDB", data))
        spill = stack.enter_context(tempfile.TemporaryDirectory(prefix="lessnoise-"))  # for what exceeds the memory
        connection = stack.enter_context(contextlib.closing(duckdb.connect()))
        for option, value in {"preserve_insertion_order": "false", "temp_directory": duck_sql.text(spill)}.items():
            connection.execute(f"SET {option} = {value}").fetchall()
        source = _source(connection, query, data, unit, stack)
        check_schema(query, unit, _schema(connection, source))
        if isinstance(query, Histogram):
            counts = duck_sql.cell_counts(query, source, unit)
            if counts is not None:
                return _grouped(connection, query, counts, progress)
        return _streamed(connection, query, duck_sql.used_rows(query, source, unit), progress)


def _grouped(connection: Any, query: Histogram, sql: str, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    with _watched(connection, progress):
        found = connection.execute(sql).fetchnumpy()
    wider = np.zeros([size + 1 for size in query.shape], dtype=np.int64)
    wider.ravel()[found["cell"].astype(np.int64)] = found["rows"].astype(np.int64)
    for axis, size in enumerate(query.shape):  # what lies on the last edge belongs to the last cell
        last = [slice(None)] * wider.ndim
        last[axis] = slice(size - 1, size)
        beyond = list(last)
        beyond[axis] = slice(size, None)
        wider[tuple(last)] += wider[tuple(beyond)]
        wider = np.delete(wider, size, axis=axis)
    return np.ascontiguousarray(wider)


def _streamed(connection: Any, query: Query, sql: str, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    result, rows = query.zero(), 0
    # A batch has at least as many values as what it is added to.
    size = max(1024, max(_VALUES, result.size) // len(query.columns))
    for batch in connection.sql(sql).to_arrow_reader(size):
        result = query.combine(result, query.partial(batch))
        rows += batch.num_rows
        progress(f"{rows:,} rows", 0, 0)
    return result


def _source(connection: Any, query: Query, data: Any, unit: Unit, stack: contextlib.ExitStack) -> str:  # noqa: ANN401
    """What stands after FROM."""
    if isinstance(data, (str, Path)):
        return _file(connection, query, existing(data), unit)
    if isinstance(data, Postgres):
        data = stack.enter_context(data.opened(query, unit))
    elif isinstance(data, (np.ndarray, Mapping)):
        data = _arrow(query, data, unit)
    try:
        connection.register(_VIEW, data)
    except Exception:
        raise InvalidInput(
            f"data of type {type(data).__name__} cannot be read: pass a path, or a pandas, Polars, Arrow, Spark or "
            "Dask table."
        ) from None
    return _VIEW


def _file(connection: Any, query: Query, path: Path, unit: Unit) -> str:  # noqa: ANN401
    place = duck_sql.text(str(path))
    if file_format(path) == "parquet":
        return f"read_parquet({place})"
    header = f"read_csv({place}, header = true, all_varchar = true)"
    present = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {header}").fetchall()]
    wanted = {column: _TYPES[kind] for column, kind in query.kinds.items()}
    if unit.id is not None:
        wanted[unit.id] = _TYPES[TEXT]
    types = ", ".join(f"{duck_sql.text(c)}: '{kind}'" for c, kind in wanted.items() if c in present)
    return f"read_csv({place}, header = true, types = {{{types}}})" if types else header


def _schema(connection: Any, source: str) -> dict[str, tuple[str, str]]:  # noqa: ANN401
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return {row[0]: (_kind(row[1]), row[1]) for row in described}


def _kind(type_name: str) -> str:
    if type_name.startswith(("DOUBLE", "FLOAT", "DECIMAL", "BOOLEAN")):
        return NUMBER
    if type_name.endswith(("INT", "INTEGER")):
        return INTEGER
    return TEXT if type_name.startswith(("VARCHAR", "ENUM")) else OTHER


def _arrow(query: Query, data: Any, unit: Unit) -> Any:  # noqa: ANN401
    import pyarrow

    names = (*query.columns, *([] if unit.id is None else [unit.id]))
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.shape[1] != len(names):
            raise InvalidInput(
                f"data.shape={data.shape} is not (n, {len(names)}): pass one column for each of {list(names)}."
            )
        data = {name: np.ascontiguousarray(data[:, place]) for place, name in enumerate(names)}
    return pyarrow.table({name: pyarrow.array(values) for name, values in data.items()})


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
