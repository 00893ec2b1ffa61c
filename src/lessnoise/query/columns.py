"""From a batch of rows to NumPy columns. A batch is Arrow, or a mapping of arrays, or a matrix in column order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array, IntArray


NUMBER, INTEGER, TEXT, OTHER, NOTHING = "number", "integer", "text", "other", "nothing"
"""What a column can hold. Integers count as numbers, too; a column without a value may be of any kind."""


def unknown_column(name: str, present: Sequence[str]) -> InvalidInput:
    """The sentence for a column that is not there."""
    shown = ", ".join(map(repr, list(present)[:12])) + (", ..." if len(present) > 12 else "")
    return InvalidInput(f"column={name!r} is not in the data: choose among {shown or 'none, as there are no columns'}.")


def wrong_kind(name: str, found: str, wanted: str, kind: str = OTHER) -> InvalidInput:
    """The sentence for a column of the wrong type; one for all engines if its ``kind`` is text.

    >>> print(wrong_kind("income", "VARCHAR", NUMBER, TEXT))
    column 'income' holds text, not numbers: write numbers such as 1000.5 and nothing for a missing one, choose ...
    """
    words = {NUMBER: "numbers", INTEGER: "whole numbers", TEXT: "text"}[wanted]
    if kind == TEXT and wanted == NUMBER:
        return InvalidInput(
            f"column {name!r} holds text, not numbers: write numbers such as 1000.5 and nothing for a missing one, "
            "choose another column, or count its categories by keys."
        )
    if kind == TEXT and wanted == INTEGER:
        return InvalidInput(
            f"column {name!r} holds text, not whole numbers: write whole numbers, or pass the keys as texts."
        )
    return InvalidInput(
        f"column={name!r} has type {found}, where the query needs {words}: convert it, or choose another."
    )


def wrong_dtype(name: str, found: np.dtype[Any], wanted: str) -> InvalidInput:
    """The same for an array of NumPy."""
    return wrong_kind(name, dtype_name(found), wanted, TEXT if found.kind in "UT" else OTHER)


def dtype_name(found: np.dtype[Any]) -> str:
    """The name of a type, without the length of the longest text in it, which would tell of the data.

    >>> dtype_name(np.array([b"Jane Doe"]).dtype), dtype_name(np.dtype("float32"))
    ('bytes', 'float32')
    """
    return found.type.__name__.rstrip("_") if found.kind in "SUV" else str(found)


def is_missing(value: object) -> bool:
    """None, NaN, or what pandas has in their place: nothing that equals itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value; an array has many
        return not isinstance(value, np.ndarray)


def length(batch: Any) -> int:  # noqa: ANN401
    """The number of rows."""
    if isinstance(batch, np.ndarray):
        return len(batch)
    return int(batch.num_rows) if hasattr(batch, "num_rows") else len(next(iter(batch.values())))


def column(batch: Any, name: str, columns: Sequence[str]) -> Any:  # noqa: ANN401
    """One column as it is: an Arrow array or a NumPy array."""
    if isinstance(batch, np.ndarray):
        return batch[:, columns.index(name)]
    if isinstance(batch, Mapping):
        if name not in batch:
            raise unknown_column(name, list(batch))
        return np.asarray(batch[name])
    place = batch.schema.get_field_index(name)
    if place < 0:
        raise unknown_column(name, batch.schema.names)
    return batch.column(place)


def numbers(batch: Any, name: str, columns: Sequence[str]) -> Array:  # noqa: ANN401
    """One column as floats; NULL is NaN."""
    values = column(batch, name, columns)
    if not isinstance(values, np.ndarray):
        values = from_arrow(values, name)
    if values.dtype.kind not in "biuf":
        raise wrong_dtype(name, values.dtype, NUMBER)
    return np.asarray(values, dtype=np.float64)


def matrix(batch: Any, columns: Sequence[str]) -> Array:  # noqa: ANN401
    """The columns side by side, one row per row; NULL is NaN."""
    if isinstance(batch, np.ndarray):
        if batch.dtype.kind not in "biuf":
            raise wrong_dtype(columns[0], batch.dtype, NUMBER)
        return batch.astype(np.float64, copy=False)
    first = numbers(batch, columns[0], columns)
    result = np.empty((len(first), len(columns)), order="F")
    result[:, 0] = first
    for place, name in enumerate(columns[1:], start=1):
        result[:, place] = numbers(batch, name, columns)
    return result


def positions(batch: Any, name: str, columns: Sequence[str], keys: Sequence[str] | Sequence[int]) -> IntArray:  # noqa: ANN401
    """For each row the place of its value in the list of keys, or -1."""
    values = column(batch, name, columns)
    wanted = INTEGER if isinstance(keys[0], int) else TEXT
    places = {key: place for place, key in enumerate(keys)}
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in ("iuO" if wanted == INTEGER else "UOT"):
            raise wrong_dtype(name, values.dtype, wanted)
        return np.array([places.get(value, -1) for value in values.tolist()], dtype=np.int64)
    from pyarrow import array, compute, types

    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (types.is_integer(values.type) if wanted == INTEGER else is_text(values.type)):
        raise wrong_kind(name, str(values.type), wanted, TEXT if is_text(values.type) else OTHER)
    if wanted == INTEGER:  # the keys that the type can hold
        ends = np.iinfo(values.type.to_pandas_dtype())
        places = {key: place for key, place in places.items() if ends.min <= cast("int", key) <= ends.max}
    found = compute.index_in(values, array(list(places), type=values.type)).fill_null(len(places))
    return np.take(np.array([*places.values(), -1], dtype=np.int64), np.asarray(found))


def is_text(kind: Any) -> bool:  # noqa: ANN401
    """Whether an Arrow type is one of texts."""
    from pyarrow import types

    view = getattr(types, "is_string_view", None)  # since pyarrow 16
    return bool(types.is_string(kind) or types.is_large_string(kind) or (view is not None and view(kind)))


def from_arrow(values: Any, name: str) -> NDArray[Any]:  # noqa: ANN401
    """An Arrow column of numbers as floats, each the nearest one; NULL is NaN."""
    from pyarrow import float64, string, types

    kind = values.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    if not (is_number or types.is_null(kind)):
        raise wrong_kind(name, str(kind), NUMBER, TEXT if is_text(kind) else OTHER)
    if types.is_boolean(kind):
        values = values.cast("int8")
    if types.is_decimal(kind):
        values = values.cast(string())  # Arrow's own way to a float is not the nearest one
    if values.null_count or not types.is_floating(kind):
        values = values.cast(float64(), safe=False)
    return np.asarray(values)
