"""The NumPy engine: arrays in memory, no extra needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.checks import check_schema
from lessnoise.errors import InvalidInput
from lessnoise.query.columns import INTEGER, NUMBER, OTHER, TEXT
from lessnoise.validation import WHOLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.query.base import Progress, Query
    from lessnoise.query.unit import Unit

_KINDS = {"f": NUMBER, "b": NUMBER, "i": INTEGER, "u": INTEGER, "U": TEXT, "T": TEXT, "O": TEXT}


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
    """Add up blocks of rows."""
    if isinstance(data, np.ndarray):
        data = _named(query, data, unit)
    elif not isinstance(data, Mapping):
        raise InvalidInput(f"data of type {type(data).__name__} is not for engine='numpy': leave the engine out.")
    if isinstance(data, Mapping):
        data = {name: np.asarray(values) for name, values in data.items()}
        _check(query, unit, data)
        data = {name: data[name] for name in (*query.columns, *([] if unit.id is None else [unit.id]))}
        data = data if unit.id is None else bounded(query, data, unit)
    rows = len(data) if isinstance(data, np.ndarray) else len(next(iter(data.values())))
    size = query.block_rows
    result = query.zero()
    for start in range(0, rows, size):
        progress("rows", start, rows)
        part = slice(start, start + size)
        block = data[part] if isinstance(data, np.ndarray) else {name: data[name][part] for name in query.columns}
        result = query.combine(result, query.partial(block))
    progress("rows", rows, rows)
    return result


def bounded(query: Query, data: Mapping[str, NDArray[Any]], unit: Unit) -> dict[str, NDArray[Any]]:
    """The rows that count, at most ``unit.rows`` of each user; rows without an id are dropped."""
    assert unit.id is not None
    ids = data[unit.id]
    known = query.valid(data) & np.array([user is not None and user == user for user in ids.tolist()], dtype=np.bool_)
    kept = {name: values[known] for name, values in data.items()}
    order = [values + 0.0 if values.dtype.kind == "f" else values for values in (kept[n] for n in query.columns)]
    chosen = unit.chosen(kept[unit.id], order)
    return {name: kept[name][chosen] for name in query.columns}


def _named(query: Query, data: NDArray[Any], unit: Unit) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """A matrix as it is, or by columns if users must be told apart."""
    names = (*query.columns, *([] if unit.id is None else [unit.id]))
    if data.ndim == 1 and len(names) == 1:
        data = data[:, None]
    if data.ndim != 2 or data.shape[1] != len(names):
        raise InvalidInput(
            f"data.shape={data.shape} is not (n, {len(names)}): pass one column for each of {list(names)}."
        )
    if data.dtype.kind in "biuf" and unit.id is None and set(query.kinds.values()) == {NUMBER}:
        return data
    columns = {name: data[:, place] for place, name in enumerate(names)}
    if unit.id is not None and data.dtype.kind == "f":
        ids = columns[unit.id]
        if not ((ids == np.rint(ids)) & (np.abs(ids) <= WHOLE)).all():  # beyond, different users may share a float
            raise InvalidInput(
                f"unit={unit.id!r} holds numbers that are not whole or beyond 2^53: pass ids in a mapping of columns."
            )
        columns[unit.id] = ids.astype(np.int64)
    return columns


def _check(query: Query, unit: Unit, data: Mapping[str, NDArray[Any]]) -> None:
    lengths = {len(values) if values.ndim == 1 else -1 for values in data.values()}
    if len(lengths) > 1 or -1 in lengths:
        raise InvalidInput(
            "data has columns of different lengths or shapes: pass one-dimensional columns of one length."
        )
    found = {name: (_KINDS.get(values.dtype.kind, OTHER), str(values.dtype)) for name, values in data.items()}
    check_schema(query, unit, found)
