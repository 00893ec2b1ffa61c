"""The keys that columns hold: candidates for groups whose names are private, too; not to be published as they are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.engines import arrays
from lessnoise.engines.engine import ENGINES, _can_be_read_again, engine_name
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, ROW, TEXT, Presence, is_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Key = tuple[str | int, ...]

_STAND_INS: dict[str, str | int] = {TEXT: "0", INTEGER: 0}
_READ_AGAIN = ("duckdb", "_duckdb")  # a relation, which runs anew


def check_read_again(data: Any) -> None:  # noqa: ANN401
    """Refuse a stream: private keys are found first, and counted then."""
    if isinstance(data, np.ndarray):
        raise InvalidInput("keys=None for a matrix without column names: pass a mapping of names to arrays.")
    if not (_can_be_read_again(data) or type(data).__module__.split(".")[0] in _READ_AGAIN):
        raise InvalidInput(
            f"keys=None with data of type {type(data).__name__}, which may be read but once: pass a table or a file, "
            "or public keys."
        )


def distinct_keys(names: Sequence[str], data: Any, engine: str | None = None) -> list[Key]:  # noqa: ANN401
    """All different combinations of columns of text or whole numbers, in order; NULL is no key.

    Text that is none in UTF-8, as only Python can hold it, is no key either: no file could tell it. Where there are no
    keys at all, one stands in for them.

    >>> distinct_keys(["city"], {"city": np.array(["Oslo", "Bergen", "Oslo"])})
    [('Bergen',), ('Oslo',)]
    """
    check_read_again(data)
    chosen, refused = engine_name(data, engine), InvalidInput("")
    for kinds in itertools.product((TEXT, INTEGER), repeat=len(names)):
        query = Presence(tuple(names), dict(zip(names, kinds, strict=True)))
        try:
            if chosen == "numpy":
                rows = _in_memory(query, data)
            else:
                rows = import_module(f"lessnoise.engines.{ENGINES[chosen]}").distinct(query, data)
        except InvalidInput as error:  # of another kind, or not there at all
            refused = error
            continue
        return sorted(set(_keys(rows, kinds))) or [tuple(_STAND_INS[kind] for kind in kinds)]
    raise refused


def _in_memory(query: Presence, data: Any) -> Iterable[tuple[Any, ...]]:  # noqa: ANN401
    if not isinstance(data, Mapping):
        raise arrays.not_arrays(data)
    arrays.total(query, data, ROW, lambda _label, _done, _total: None)  # checks names, lengths and kinds
    return zip(*(np.asarray(data[name]).tolist() for name in query.columns), strict=True)


def _keys(rows: Iterable[tuple[Any, ...]], kinds: Sequence[str]) -> Iterable[Key]:
    """Plain texts and whole numbers; no key has a part that is missing."""
    for row in rows:
        if not any(is_missing(part) for part in row):
            key = tuple(str(part) if kind == TEXT else int(part) for part, kind in zip(row, kinds, strict=True))
            if all(isinstance(part, int) or validation.is_unicode(part) for part in key):
                yield key
