"""The NumPy engine: arrays in memory, no extra needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.engine import check_kinds, partial, places, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NUMBER, OTHER, TEXT, dtype_name, is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import IntArray, Progress
    from lessnoise.query import Query, Unit

_KINDS = {"f": NUMBER, "b": NUMBER, "i": INTEGER, "u": INTEGER, "U": TEXT, "T": TEXT}
_MOST_AS_FLOAT = 2.0**53  # beyond it whole numbers have met already


def total(query: Query, data: Any, unit: Unit, progress: Progress) -> IntArray:  # noqa: ANN401
    """Add up blocks of rows."""
    if not wanted(query, unit):
        data = {"": np.zeros(_rows(data), dtype=np.int8)}
    elif isinstance(data, np.ndarray):
        columns = named(query, data, unit)
        only_numbers = data.dtype.kind in "biuf" and unit.id is None and set(query.kinds.values()) == {NUMBER}
        data = data.reshape(len(data), len(columns)) if only_numbers else columns
    elif not isinstance(data, Mapping):
        raise not_arrays(data)
    if isinstance(data, Mapping) and wanted(query, unit):
        data = {name: np.asarray(values) for name, values in data.items()}
        _check(query, unit, data)
        data = {name: data[name] for name in wanted(query, unit)}
        data = data if unit.id is None else bounded(query, data, unit)
    rows = len(data) if isinstance(data, np.ndarray) else len(next(iter(data.values())))
    size = query.block_rows
    result = query.zero()
    for start in range(0, rows, size):
        progress("rows", start, rows)
        part = slice(start, start + size)
        block = data[part] if isinstance(data, np.ndarray) else {name: values[part] for name, values in data.items()}
        result = query.combine(result, partial(query, block))
    progress("rows", rows, rows)
    return result


def bounded(query: Query, data: Mapping[str, NDArray[Any]], unit: Unit) -> dict[str, NDArray[Any]]:
    """The rows that count, at most ``unit.rows`` of each user; rows without an id are dropped."""
    assert unit.id is not None
    ids = data[unit.id]
    known = query.valid(data)
    if ids.dtype.kind in "OT":
        known &= np.array([not is_missing(user) for user in ids.tolist()], dtype=np.bool_)
    kept = {name: values[known] for name, values in data.items()}
    order = [values + 0.0 if values.dtype.kind == "f" else values for values in (kept[n] for n in query.columns)]
    chosen = unit.chosen(kept[unit.id], order, query.groups_of(kept) if unit.bounds_groups else None)
    return {name: kept[name][chosen] for name in query.columns or (unit.id,)}


def _rows(data: Any) -> int:  # noqa: ANN401
    """How many rows there are, if no column is wanted."""
    if isinstance(data, np.ndarray) and data.ndim:
        return len(data)
    if not isinstance(data, Mapping):
        raise not_arrays(data)
    if not data:
        raise InvalidInput("data has no columns, so that its rows cannot be counted: pass a table with one.")
    return _length({name: np.asarray(values) for name, values in data.items()})


def not_arrays(data: Any) -> InvalidInput:  # noqa: ANN401
    """The sentence for data that another engine reads."""
    return InvalidInput(f"data of type {type(data).__name__} is not for engine='numpy': leave the engine out.")


def named(query: Query, data: NDArray[Any], unit: Unit) -> dict[str, NDArray[Any]]:
    """The columns of a matrix by name; ids in a matrix of floats must be whole numbers that floats tell apart."""
    names = wanted(query, unit)
    if data.ndim == 1 and len(names) == 1:
        data = data[:, None]
    if data.ndim != 2 or data.shape[1] != len(names):
        raise InvalidInput(
            f"data.shape={data.shape} is not (n, {len(names)}): pass one column for each of {list(names)}."
        )
    columns = {name: data[:, place] for place, name in enumerate(names)}
    if unit.id is not None and data.dtype.kind == "f":
        ids = columns[unit.id]
        if not ((ids == np.rint(ids)) & (np.abs(ids) < _MOST_AS_FLOAT)).all():
            raise InvalidInput(
                f"unit={unit.id!r} holds numbers that are not whole or beyond 2^53: pass ids in a mapping of columns."
            )
        columns[unit.id] = ids.astype(np.int64)
    return columns


def _check(query: Query, unit: Unit, data: Mapping[str, NDArray[Any]]) -> None:
    _length(data)
    places(query, unit, list(data))
    check_kinds(query, unit, [kind_of(data[name]) for name in wanted(query, unit)])


def _length(data: Mapping[str, NDArray[Any]]) -> int:
    """The one length of all columns."""
    lengths = {len(values) if values.ndim == 1 else -1 for values in data.values()}
    if len(lengths) > 1 or -1 in lengths:
        raise InvalidInput(
            "data has columns of different lengths or shapes: pass one-dimensional columns of one length."
        )
    return lengths.pop()


def kind_of(values: NDArray[Any]) -> tuple[str, str]:
    """What a column holds; one of Python objects must hold one kind of them, as 1, 1.0, True and "1" mix badly."""
    if values.dtype != object:
        return _KINDS.get(values.dtype.kind, OTHER), dtype_name(values.dtype)
    found = {type(value) for value in values.tolist() if not is_missing(value)}
    if all(issubclass(each, str) for each in found):
        return TEXT, "object"
    whole = all(issubclass(each, (int, np.integer)) and each is not bool for each in found)
    return INTEGER if whole else OTHER, "object"
