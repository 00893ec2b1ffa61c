"""The keys that a column holds: candidates for groups whose names are private, too; not to be published as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import arrays, duck
from lessnoise.engines.engine import engine_name
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, ROW, TEXT, Presence, is_missing

if TYPE_CHECKING:
    from lessnoise.query import Query


def distinct_keys(column: str, data: Any, engine: str | None = None) -> list[str] | list[int]:  # noqa: ANN401
    """All different values of a column of text or whole numbers, in order; NULL is none of them."""
    chosen = engine_name(data, engine)
    if chosen not in ("numpy", "duckdb"):
        raise InvalidInput(
            f"keys=None with engine={chosen!r}: private keys are found in arrays, files, frames and Arrow so far; pass "
            "public keys."
        )
    with contextlib.suppress(InvalidInput):
        return _found(Presence((column,), {column: TEXT}), data, chosen)
    return _found(Presence((column,), {column: INTEGER}), data, chosen)


def _found(query: Query, data: Any, engine: str) -> list[Any]:  # noqa: ANN401
    if engine == "duckdb":
        return sorted(duck.distinct(query, data))
    if isinstance(data, np.ndarray):
        raise InvalidInput("keys=None for a matrix without column names: pass a mapping of names to arrays.")
    assert isinstance(data, Mapping)
    arrays.total(query, data, ROW, lambda _label, _done, _total: None)  # checks names, lengths and kinds
    values = np.asarray(data[query.columns[0]]).tolist()
    return sorted({value for value in values if not is_missing(value)})
