"""Spark: partial sums where the data is, added up on the driver."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import data_files
from lessnoise.engines.engine import check_kinds, engine_errors, fresh, partial, places, require, typed, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NUMBER, OTHER, ROW, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise._common import IntArray, Progress
    from lessnoise.query import Query, Unit

_KINDS = {
    **dict.fromkeys(("double", "float", "boolean"), NUMBER),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), INTEGER),
    "string": TEXT,
}
_TYPES = {NUMBER: "double", INTEGER: "bigint", TEXT: "string"}
_NO_LIMIT = 1 << 62
_SMALL = 1 << 20  # partial sums up to this many entries are collected at once


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> IntArray:  # noqa: ANN401
    """One partial sum per partition, by ``mapInArrow``."""
    require("pyspark.sql", "spark")
    require("pyarrow", "spark")
    with engine_errors("Spark", data), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # batches are Arrow
        progress("starting Spark", 0, 0)
        frame = _frame(query, data, unit)
        if unit.id is not None:
            frame = _bounded(frame, query, unit)
        progress("counting on Spark", 0, 0)
        return _added(query, frame.mapInArrow(_partial_sums(query), "partial binary"))


def distinct(query: Query, data: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """The different rows of the query's columns."""
    require("pyspark.sql", "spark")
    require("pyarrow", "spark")
    with engine_errors("Spark", data):
        return [tuple(row) for row in _frame(query, data, ROW).distinct().collect()]


def _added(query: Query, parts: Any) -> IntArray:  # noqa: ANN401
    """Combine the partial sums as they arrive; large ones one partition at a time."""
    zero = query.zero()
    arriving = parts.collect() if zero.size <= _SMALL else parts.toLocalIterator(prefetchPartitions=True)
    return query.sum_of(np.frombuffer(row.partial, dtype=np.int64).reshape(zero.shape) for row in arriving)


def _partial_sums(query: Query) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What runs on the workers."""

    def add_up(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        result = query.sum_of(partial(query, batch) for batch in batches)
        yield pyarrow.record_batch({"partial": pyarrow.array([result.tobytes()], type=pyarrow.binary())})

    return add_up


def _bounded(frame: Any, query: Query, unit: Unit) -> Any:  # noqa: ANN401
    """The rows that count, at most k of each user, chosen as in ``Unit.chosen``."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    *columns, user = map(f.col, fresh(query, unit))
    order = [
        f.coalesce(column, f.lit(float("nan"))) + f.lit(0.0) if kind == NUMBER else column  # NULL is NaN, and -0 is 0
        for column, kind in zip(columns, query.kinds.values(), strict=True)
    ] or [user]
    counted = frame.filter(user.isNotNull()).mapInArrow(_counted_rows(query, unit), _with_group(frame.schema))
    everyone = Window.partitionBy(user)
    number = f.sha2(f.concat_ws("|", f.lit(unit.key), user, f.col("place").cast("string")), 256)
    if unit.bounds_groups:
        own = f.dense_rank().over(everyone.orderBy("own")) - 1
        drawn = f.sha2(f.concat_ws("|", f.lit(unit.key), user, f.lit("group"), own.cast("string")), 256)
        counted = counted.withColumn("drawn", drawn)
        counted = counted.withColumn("drawn", f.dense_rank().over(everyone.orderBy("drawn")))
        counted = counted.filter(f.col("drawn") <= (unit.max_groups or _NO_LIMIT))
    placed = counted.withColumn("place", f.row_number().over(everyone.orderBy(*order)) - 1)
    if unit.bounds_groups:
        placed = placed.withColumn("number", number)
        among = f.row_number().over(Window.partitionBy(user, f.col("own")).orderBy("number"))
        placed = placed.withColumn("among", among).filter(f.col("among") <= (unit.max_rows_per_group or _NO_LIMIT))
    else:
        many = f.count("*").over(everyone)
        placed = placed.withColumn("many", many).withColumn("number", f.when(f.col("many") > unit.rows, number))
    ranked = placed.withColumn("chosen", f.row_number().over(everyone.orderBy("number")))
    return ranked.filter(f.col("chosen") <= unit.rows).select(*columns or [user])


def _with_group(schema: Any) -> Any:  # noqa: ANN401
    """The columns of the rows, and the number of a row's group."""
    from pyspark.sql.types import LongType, StructType

    return StructType(list(schema.fields)).add("own", LongType())


def _counted_rows(query: Query, unit: Unit) -> Callable[[Iterator[Any]], Iterator[Any]]:
    names = list(wanted(query, unit))

    def keep(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            kept = batch.filter(pyarrow.array(query.valid(batch.rename_columns(names))))
            groups = query.groups_of(kept.rename_columns(names)) if unit.bounds_groups else None
            own = np.zeros(kept.num_rows, dtype=np.int64) if groups is None else groups
            yield pyarrow.RecordBatch.from_arrays([*kept.columns, pyarrow.array(own)], [*kept.schema.names, "own"])

    return keep


def _frame(query: Query, data: Any, unit: Unit) -> Any:  # noqa: ANN401
    """The wanted columns of a Spark data frame, or of the files that a path names; under fresh names, ids as texts."""
    if isinstance(data, (str, Path)):
        return _read(query, data_files.pieces(data_files.found_files(data)[0], query, unit), unit)
    if not type(data).__module__.startswith("pyspark."):
        raise InvalidInput(f"data of type {type(data).__name__} is not on Spark: pass a Spark data frame or a path.")
    found = [type_name for _, type_name in data.dtypes]
    where = places(query, unit, list(data.columns))
    check_kinds(query, unit, [(_kind(found[place]), found[place]) for place in where])
    renamed = data.toDF(*(f"p{place}" for place in range(len(found))))  # names may differ by case alone
    if not wanted(query, unit):  # rows alone
        from pyspark.sql import functions as f

        return renamed.select(f.lit("").alias("c0"))
    wanted_as = zip(where, typed(query, unit, _TYPES), fresh(query, unit), strict=True)
    return renamed.select(*(_cast(renamed[f"p{at}"], found[at], new).alias(name) for at, new, name in wanted_as))


def _cast(column: Any, old: str, new: str) -> Any:  # noqa: ANN401
    return column.cast("string").cast(new) if old.startswith("decimal") else column.cast(new)  # the nearest double


def _read(query: Query, parts: list[data_files.Piece], unit: Unit) -> Any:  # noqa: ANN401
    """Pieces of files, read by the workers as on the other engines: Spark would guess patterns, folders and types."""
    session = _session()
    types = typed(query, unit, _TYPES)
    schema = ", ".join(f"{name} {found}" for name, found in zip(fresh(query, unit), types, strict=True))

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        arrow = {"double": pyarrow.float64(), "bigint": pyarrow.int64(), "string": pyarrow.string()}
        for batch in batches:
            for part in batch.to_pylist():
                for rows in data_files.read(data_files.Piece(**part), query, unit):
                    columns = [column.cast(arrow[new]) for column, new in zip(rows.columns, types, strict=True)]
                    yield pyarrow.RecordBatch.from_arrays(columns, rows.schema.names)

    listed = session.createDataFrame([tuple(part) for part in parts], "path string, group int")
    return listed.repartition(max(1, len(parts))).mapInArrow(read, schema)


def _session() -> Any:  # noqa: ANN401
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    return builder.appName("lessnoise").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _kind(type_name: str) -> str:
    return NUMBER if type_name.startswith("decimal") else _KINDS.get(type_name, OTHER)
