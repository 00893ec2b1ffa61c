"""Tables in memory: pandas, Polars, Arrow, and all that offers an Arrow stream, as batches of plain columns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.arrays import kind_of
from lessnoise.engines.engine import check_kinds, fresh, places, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NOTHING, NUMBER, OTHER, TEXT, from_arrow, is_text

if TYPE_CHECKING:
    from lessnoise.query import Query, Unit

_ROWS = 1 << 17  # per batch
_NAMES = {"double": "DOUBLE", "int64": "BIGINT"}


def reader(query: Query, data: Any, unit: Unit) -> Any:  # noqa: ANN401
    """An Arrow reader of the wanted columns, under fresh names, with the types that they shall have."""
    import pyarrow

    batches, schema, where = _batches(query, data, unit)
    types = [schema.field(place).type for place in where]
    check_kinds(query, unit, described(types))
    names = fresh(query, unit)
    none = pyarrow.RecordBatch.from_arrays([pyarrow.nulls(0, found) for found in types], names)
    target = plain(none, range(len(names)), query, unit).schema
    return pyarrow.RecordBatchReader.from_batches(target, (plain(batch, where, query, unit) for batch in batches))


def described(types: Iterable[Any]) -> list[tuple[str, str]]:
    """Kind and name of Arrow types; the common ones by their names in SQL, as those of Parquet files."""
    kinds = [(_kind(found), str(found)) for found in types]
    return [(kind, "VARCHAR" if kind == TEXT else _NAMES.get(name, name)) for kind, name in kinds]


def plain(batch: Any, where: Sequence[int], query: Query, unit: Unit) -> Any:  # noqa: ANN401
    """The columns at these places, under fresh names: numbers as doubles, with NaN for NULL; no dictionaries.

    A dictionary may hold a text twice, and each batch may have its own: a user must not have two codes.
    """
    import pyarrow

    names, kinds = wanted(query, unit), [*query.kinds.values(), TEXT]
    columns = [] if names else [_nothing(batch.num_rows)]
    for place, name, kind in zip(where, names, kinds, strict=False):
        column = batch.column(place)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if kind == NUMBER:
            column = pyarrow.array(from_arrow(column, name).astype(np.float64, copy=False))
        elif pyarrow.types.is_null(column.type):
            column = column.cast(pyarrow.int64() if kind == INTEGER else pyarrow.large_string())
        elif is_text(column.type):
            column = column.cast(pyarrow.large_string())
        columns.append(column)
    return pyarrow.RecordBatch.from_arrays(columns, fresh(query, unit))


def arrow_array(values: Any, name: str) -> Any:  # noqa: ANN401
    """A column of another library as an Arrow array; what holds several types is refused."""
    import pyarrow

    if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)):
        return values
    if not hasattr(values, "dtype") or isinstance(values.dtype, np.dtype):
        values = np.asarray(values)  # else it has types of its own, as in pandas and Polars
    of_objects = isinstance(values, np.ndarray) and values.dtype == object
    for wide in (None, pyarrow.uint64() if of_objects and kind_of(values)[0] == INTEGER else None):
        with contextlib.suppress(pyarrow.ArrowException, OverflowError, TypeError, ValueError):
            return pyarrow.array(values, wide, from_pandas=True if of_objects else None)
    raise InvalidInput(
        f"column={name!r} holds values of several types, or of one that is not known: convert it to numbers or to text."
    )


def _kind(found: Any) -> str:  # noqa: ANN401
    from pyarrow import types

    if types.is_dictionary(found):
        found = found.value_type
    if types.is_null(found):
        return NOTHING
    if types.is_integer(found):
        return INTEGER
    if types.is_floating(found) or types.is_boolean(found) or types.is_decimal(found):
        return NUMBER
    return TEXT if is_text(found) else OTHER


def _batches(query: Query, data: Any, unit: Unit) -> tuple[Iterable[Any], Any, list[int]]:  # noqa: ANN401
    """Batches, their schema, and where the wanted columns are in them."""
    import pyarrow

    package = type(data).__module__.split(".")[0]
    names = fresh(query, unit)
    if not wanted(query, unit) and (rows := _rows(data, package)) is not None:
        table = pyarrow.table([_nothing(rows)], names=names)
        return table.to_batches(_ROWS), table.schema, [0]
    if isinstance(data, Mapping):
        present = list(data)
        columns = [data[present[place]] for place in places(query, unit, present)]
    elif "pandas" in sys.modules and isinstance(data, sys.modules["pandas"].DataFrame):
        present = [str(name) for name in data.columns]
        columns = [data.iloc[:, place] for place in places(query, unit, present)]
    elif package == "polars" and hasattr(data, "collect_schema"):
        from polars import nth

        present = data.collect_schema().names()
        chosen = data.lazy().select(nth(place) for place in places(query, unit, present)).collect()
        columns = [series.to_arrow() for series in chosen.get_columns()]
    elif isinstance(data, pyarrow.dataset.Dataset if hasattr(pyarrow, "dataset") else ()):
        present = list(data.schema.names)
        chosen = [present[place] for place in places(query, unit, present)]
        scanner = data.scanner({name: pyarrow.dataset.field(of) for name, of in zip(names, chosen, strict=True)})
        return scanner.to_batches(), scanner.projected_schema, list(range(len(names)))
    else:
        opened = _opened(data)
        return opened, opened.schema, places(query, unit, list(opened.schema.names))
    arrays = [arrow_array(column, name) for column, name in zip(columns, wanted(query, unit), strict=True)]
    table = pyarrow.table(arrays, names=names)
    return table.to_batches(_ROWS), table.schema, list(range(len(names)))


def _nothing(rows: int) -> Any:  # noqa: ANN401
    """A column that only tells how many rows there are."""
    import pyarrow

    return pyarrow.nulls(rows, pyarrow.large_string())


def _rows(data: Any, package: str) -> int | None:  # noqa: ANN401
    """The number of rows of what is in memory, without a look at a column; None of a stream."""
    if isinstance(data, Mapping):
        lengths = {len(column) for column in data.values()}
        if len(lengths) != 1:
            raise InvalidInput("data has no columns, or some of different lengths: pass columns of one length.")
        return lengths.pop()
    if package == "polars" and hasattr(data, "collect_schema"):
        from polars import len as rows

        return int(data.lazy().select(rows()).collect().item())
    is_pandas = "pandas" in sys.modules and isinstance(data, sys.modules["pandas"].DataFrame)
    return len(data) if is_pandas else None


def _opened(data: Any) -> Any:  # noqa: ANN401
    import pyarrow

    if isinstance(data, pyarrow.Table):
        return data.to_reader(_ROWS)
    if isinstance(data, pyarrow.RecordBatchReader):
        return data
    try:
        return pyarrow.RecordBatchReader.from_stream(data)
    except Exception:
        raise InvalidInput(
            f"data of type {type(data).__name__} cannot be read: pass a path, or a pandas, Polars, Arrow, Spark or "
            "Dask table."
        ) from None
