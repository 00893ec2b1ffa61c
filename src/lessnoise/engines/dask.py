"""Dask: one partial sum per partition, added up as a tree where the data is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import arrow_tables, data_files
from lessnoise.engines.arrays import bounded
from lessnoise.engines.engine import engine_errors, fresh, partial, places, require, typed, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NUMBER, ROW, TEXT, Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import IntArray, Progress
    from lessnoise.query import Unit

_FAN_IN = 8
_TYPES = {NUMBER: "float64", INTEGER: "int64", TEXT: "object"}


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> IntArray:  # noqa: ANN401
    """Map the partial sums over the partitions and combine them, eight at a time."""
    dask, _ = require("dask", "dask"), require("dask.dataframe", "dask")
    with engine_errors("Dask", data):
        parts = _parts(query, data, unit)
        progress("counting on Dask", 0, 0)
        if unit.id is None:
            sums = [dask.delayed(_sum_of_rows)(query, part, unit) for part in parts]
        else:
            sums = [dask.delayed(_sum_of_users)(query, part, unit) for part in _by_user(dask, query, parts, unit)]
        while len(sums) > 1:
            sums = [dask.delayed(Query.sum_of)(query, sums[at : at + _FAN_IN]) for at in range(0, len(sums), _FAN_IN)]
        found: IntArray = dask.compute(sums[0])[0] if sums else query.zero()
        return found


def distinct(query: Query, data: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """The different rows of the query's columns."""
    dask, _ = require("dask", "dask"), require("dask.dataframe", "dask")
    with engine_errors("Dask", data):
        found: set[tuple[Any, ...]] = set()
        return list(
            found.union(*dask.compute(*(dask.delayed(_rows)(query, part) for part in _parts(query, data, ROW))))
        )


def _rows(query: Query, part: Any) -> set[tuple[Any, ...]]:  # noqa: ANN401
    return {row for batch in _batches(query, part, ROW) for row in zip(*batch.to_pydict().values(), strict=True)}


def _parts(query: Query, data: Any, unit: Unit) -> list[Any]:  # noqa: ANN401
    """The partitions of a Dask data frame, with the wanted columns alone; or pieces of the files that a path names."""
    if isinstance(data, (str, Path)):
        return list(data_files.pieces(data_files.found_files(data)[0], query, unit))
    if type(data).__module__.split(".")[0] not in ("dask", "dask_expr"):
        raise InvalidInput(f"data of type {type(data).__name__} is not on Dask: pass a Dask data frame or a path.")
    labels = list(data.columns)
    where = places(query, unit, [str(label) for label in labels])
    parts: list[Any] = data[[labels[place] for place in where]].to_delayed()
    return parts


def _by_user(dask: Any, query: Query, parts: list[Any], unit: Unit) -> list[Any]:  # noqa: ANN401
    """The rows that count, all those of a user in one partition.

    Ids become texts first: 1 and 1.0, from partitions of different types, would go to different places.
    """
    import pandas
    from dask import dataframe

    names, types = fresh(query, unit), typed(query, unit, _TYPES)
    empty = pandas.DataFrame({name: pandas.Series(dtype=found) for name, found in zip(names, types, strict=True)})
    kept = [dask.delayed(_counted_rows)(query, part, unit, empty) for part in parts]
    if not kept:
        return []
    shuffled: list[Any] = dataframe.from_delayed(kept, meta=empty).shuffle(on=names[-1]).to_delayed()
    return shuffled


def _batches(query: Query, part: Any, unit: Unit) -> Iterator[Any]:  # noqa: ANN401
    """Arrow batches of the wanted columns, under fresh names."""
    if isinstance(part, data_files.Piece):
        return data_files.read(part, query, unit)
    reader: Iterator[Any] = arrow_tables.reader(query, part, unit)
    return reader


def _sum_of_rows(query: Query, part: Any, unit: Unit) -> IntArray:  # noqa: ANN401
    return query.sum_of(partial(query, batch) for batch in _batches(query, part, unit))


def _counted_rows(query: Query, part: Any, unit: Unit, empty: Any) -> Any:  # noqa: ANN401
    import pandas
    from pyarrow import compute, string

    kept = [empty]
    for batch in _batches(query, part, unit):
        known = query.valid(batch.rename_columns(list(wanted(query, unit)))) & np.asarray(batch.columns[-1].is_valid())
        columns = [np.asarray(column.filter(known)) for column in batch.columns[:-1]]
        columns.append(np.array(compute.cast(batch.columns[-1], string()).filter(known).to_pylist(), dtype=object))
        found = {name: pandas.Series(column) for name, column in zip(empty.columns, columns, strict=True)}
        kept.append(pandas.DataFrame(found).astype(empty.dtypes.to_dict()))
    return kept[-1] if len(kept) == 2 else pandas.concat(kept, ignore_index=True)


def _sum_of_users(query: Query, part: Any, unit: Unit) -> IntArray:  # noqa: ANN401
    columns = {
        name: part.iloc[:, place].to_numpy(dtype=None if query.kinds.get(name) in (NUMBER, INTEGER) else object)
        for place, name in enumerate(wanted(query, unit))
    }
    return partial(query, bounded(query, columns, unit))
