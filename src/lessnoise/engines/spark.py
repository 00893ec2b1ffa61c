"""Spark: partial sums where the data is, added up on the driver."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.checks import check_schema, engine_errors, existing, file_format, require
from lessnoise.errors import InvalidInput
from lessnoise.query.columns import INTEGER, NUMBER, OTHER, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise.query.base import Progress, Query
    from lessnoise.query.unit import Unit

_KINDS = {
    "double": NUMBER,
    "float": NUMBER,
    "boolean": NUMBER,
    "tinyint": INTEGER,
    "smallint": INTEGER,
    "int": INTEGER,
    "bigint": INTEGER,
    "string": TEXT,
}
_TYPES = {NUMBER: "double", INTEGER: "bigint", TEXT: "string"}
_SMALL = 1 << 20  # partial sums up to this many entries are collected at once


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    """One partial sum per partition, by ``mapInArrow``."""
    require("pyspark.sql", "spark")
    require("pyarrow", "spark")
    with engine_errors("Spark", data), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # batches are Arrow
        progress("starting Spark", 0, 0)
        frame = _frame(query, data, unit)
        check_schema(query, unit, {name: (_kind(found), found) for name, found in frame.dtypes})
        wanted = [_column(name).cast(_TYPES[kind]).alias(name) for name, kind in query.kinds.items()]
        if unit.id is not None:
            wanted.append(_column(unit.id).cast("string").alias(unit.id))
        frame = frame.select(*wanted)
        if unit.id is not None:
            frame = _bounded(frame, query, unit)
        progress("counting on Spark", 0, 0)
        return _added(query, frame.mapInArrow(_partial_sums(query), "partial binary"))


def _added(query: Query, parts: Any) -> NDArray[np.int64]:  # noqa: ANN401
    """Combine the partial sums as they arrive; large ones one partition at a time."""
    result = query.zero()
    arriving = parts.collect() if result.size <= _SMALL else parts.toLocalIterator(prefetchPartitions=True)
    for row in arriving:
        result = query.combine(result, np.frombuffer(row.partial, dtype=np.int64).reshape(result.shape))
    return result


def _partial_sums(query: Query) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What runs on the workers."""

    def add_up(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        result = query.zero()
        for batch in batches:
            result = query.combine(result, query.partial(batch))
        yield pyarrow.record_batch({"partial": pyarrow.array([result.tobytes()], type=pyarrow.binary())})

    return add_up


def _bounded(frame: Any, query: Query, unit: Unit) -> Any:  # noqa: ANN401
    """The rows that count, at most k of each user, chosen as in ``Unit.chosen``."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    assert unit.id is not None
    user, place = unit.id, "lessnoise_place"
    order = [_column(name) + f.lit(0.0) if kind == NUMBER else _column(name) for name, kind in query.kinds.items()]
    counted = frame.filter(_column(user).isNotNull()).mapInArrow(_counted_rows(query), frame.schema)
    everyone = Window.partitionBy(_column(user))
    numbered = counted.withColumn("lessnoise_rows", f.count("*").over(everyone)).withColumn(
        place, f.row_number().over(everyone.orderBy(*order)) - 1
    )
    number = f.sha2(f.concat_ws("|", f.lit(unit.key), _column(user), f.col(place).cast("string")), 256)
    drawn = f.when(f.col("lessnoise_rows") > unit.rows, number)
    ranked = numbered.withColumn("lessnoise_rank", f.row_number().over(everyone.orderBy(drawn)))
    return ranked.filter(f.col("lessnoise_rank") <= unit.rows).select(*map(_column, query.columns))


def _counted_rows(query: Query) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def keep(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            yield batch.filter(pyarrow.array(query.valid(batch)))

    return keep


def _frame(query: Query, data: Any, unit: Unit) -> Any:  # noqa: ANN401
    """A Spark data frame, or the file that a path names, read by the current session."""
    if isinstance(data, (str, Path)):
        path = existing(data)
        session = _session()
        place = str(path.absolute())
        if file_format(path) == "parquet":
            return session.read.parquet(place)
        separator = "\t" if ".tsv" in path.name.lower() else ","
        texts = session.read.csv(place, header=True, sep=separator, mode="FAILFAST")
        return texts.select(*(_parsed(name, query, unit) for name in texts.columns))
    if type(data).__module__.startswith("pyspark."):
        return data
    raise InvalidInput(f"data of type {type(data).__name__} is not on Spark: pass a Spark data frame or a path.")


def _parsed(name: str, query: Query, unit: Unit) -> Any:  # noqa: ANN401
    """A column of a CSV file, as the query needs it; a text that is no number is an error, not NULL."""
    kind = TEXT if name == unit.id else query.kinds.get(name, TEXT)
    return _column(name) if kind == TEXT else _column(name).cast(_TYPES[kind]).alias(name)


def _session() -> Any:  # noqa: ANN401
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    return builder.appName("lessnoise").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def _column(name: str) -> Any:  # noqa: ANN401
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def _kind(type_name: str) -> str:
    return NUMBER if type_name.startswith("decimal") else _KINDS.get(type_name, OTHER)
