"""What the descriptions of a ledger say."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from lessnoise.composition import Composition

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.guarantees import Neighbours
    from lessnoise.ledger.tables import Tables

    Lookup = Callable[[int], Composition]


def lookup_in(found: Tables, neighbours: Neighbours) -> Lookup:
    """Descriptions by number, each read once and checked."""

    @functools.cache
    def lookup(description: int) -> Composition:
        json = found.json_of(description)
        try:
            composition = _parsed(json)
        except Exception as error:  # whatever is wrong with it: it is not what was recorded
            raise found.odd("description", f"id={description}, {error}") from None
        if composition.neighbours is not neighbours:
            raise found.odd("description", f"id={description}, neighbours={composition.neighbours.value!r}")
        return composition

    return lookup


def with_more(more: dict[int, Composition], lookup: Lookup) -> Lookup:
    """A lookup that knows some releases more, under numbers that no description has: 0 and below."""
    return lambda description: more[description] if description in more else lookup(description)


@functools.lru_cache(maxsize=4096)
def _parsed(json: str) -> Composition:
    return Composition.from_json(json)
