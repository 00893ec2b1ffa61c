"""Dask: one partial sum per partition, added up as a tree where the data is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.arrays import bounded
from lessnoise.engines.checks import check_schema, engine_errors, existing, file_format, require
from lessnoise.errors import InvalidInput
from lessnoise.query.columns import INTEGER, NUMBER, OTHER, TEXT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.query.base import Progress, Query
    from lessnoise.query.unit import Unit

_FAN_IN = 8
_KINDS = {"f": NUMBER, "b": NUMBER, "i": INTEGER, "u": INTEGER, "O": TEXT, "U": TEXT, "T": TEXT}


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    """Map the partial sums over the partitions and combine them, eight at a time."""
    dask, _ = require("dask", "dask"), require("dask.dataframe", "dask")
    with engine_errors("Dask", data):
        frame = _frame(query, data, unit)
        check_schema(query, unit, {name: _kind(dtype) for name, dtype in frame.dtypes.items()})
        columns = [*query.columns, *([] if unit.id is None else [unit.id])]
        frame = frame[columns]
        if unit.id is not None:
            frame = frame.dropna(subset=[unit.id]).shuffle(on=unit.id)  # all rows of a user in one partition
        progress("counting on Dask", 0, 0)
        parts = [dask.delayed(_partial)(query, part, unit) for part in frame.to_delayed()]
        while len(parts) > 1:
            parts = [dask.delayed(_combined)(query, parts[at : at + _FAN_IN]) for at in range(0, len(parts), _FAN_IN)]
        found: NDArray[np.int64] = dask.compute(parts[0])[0] if parts else query.zero()
        return found


def _partial(query: Query, part: Any, unit: Unit) -> NDArray[np.int64]:  # noqa: ANN401
    import pyarrow

    batch = pyarrow.Table.from_pandas(part, preserve_index=False).combine_chunks()
    if unit.id is None:
        return query.partial(batch)
    arrays = {name: _array(batch.column(name), name == unit.id or query.kinds[name] != NUMBER) for name in part.columns}
    return query.partial(bounded(query, arrays, unit))


def _array(values: Any, exact: bool) -> NDArray[Any]:  # noqa: ANN401
    """Numbers with NaN for NULL; keys and ids as they are."""
    if exact:
        return np.array(values.to_pylist(), dtype=object)
    return np.asarray(values.cast("float64", safe=False).to_numpy())


def _combined(query: Query, parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    result = query.zero()
    for part in parts:
        result = query.combine(result, part)
    return result


def _frame(query: Query, data: Any, unit: Unit) -> Any:  # noqa: ANN401
    """A Dask data frame, or the file that a path names."""
    if isinstance(data, (str, Path)):
        from dask import dataframe

        path = existing(data)
        if file_format(path) == "parquet":
            return dataframe.read_parquet(str(path))
        return _read_csv(dataframe, path, query, unit)
    if type(data).__module__.split(".")[0] in ("dask", "dask_expr"):
        return data
    raise InvalidInput(f"data of type {type(data).__name__} is not on Dask: pass a Dask data frame or a path.")


def _read_csv(dataframe: Any, path: Path, query: Query, unit: Unit) -> Any:  # noqa: ANN401
    packed = path.name.endswith(".gz")
    types: dict[str, str] = {
        name: {NUMBER: "float64", INTEGER: "Int64"}.get(k, "string") for name, k in query.kinds.items()
    }
    if unit.id is not None:
        types[unit.id] = "string"
    return dataframe.read_csv(
        str(path),
        sep="\t" if ".tsv" in path.name.lower() else ",",
        dtype=types,
        keep_default_na=False,  # as on the other engines: an empty field is NULL, "NA" is a text
        na_values=[""],
        compression="gzip" if packed else None,
        blocksize=None if packed else "64MiB",
    )


def _kind(dtype: Any) -> tuple[str, str]:  # noqa: ANN401
    name = str(dtype)
    if name.startswith(("string", "str", "category")):
        return TEXT, name
    return _KINDS.get(getattr(dtype, "kind", ""), OTHER), name
