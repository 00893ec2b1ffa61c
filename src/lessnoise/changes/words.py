"""Sets of changes as short words, for command lines and web pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.changes.sets import Ball, Box, Corner, Counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from lessnoise.changes.base import Changes

_EXAMPLES = "counts, counts:20,per_cell=1, ball:1.5, ball:1,norm=inf, corner:1 or box:3,4"


def parse(text: str, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Changes:
    """A set from words such as ``counts``, ``counts:20,per_cell=1``, ``ball:1,norm=inf``, ``corner:1`` or ``box:3,4``.

    >>> print(parse("counts:20,per_cell=1"))
    at most 20 rows, at most 1 in a cell, add/remove
    >>> print(parse("ball:1,norm=inf"))
    linf norm at most 1
    """
    kind, _, rest = text.strip().partition(":")
    parts = [part.strip() for part in rest.split(",")] if rest else []
    named = dict(part.split("=", 1) for part in parts if "=" in part)
    values = [part for part in parts if "=" not in part]
    try:
        if kind == "counts" and len(values) <= 1 and named.keys() <= {"rows", "per_cell"}:
            rows = int(named.get("rows", values[0] if values else "1"))
            cap = int(named["per_cell"]) if "per_cell" in named else None
            return Counts(rows, cap, Neighbours.of(neighbours))
        if kind == "ball" and len(values) == 1 and named.keys() <= {"norm"}:
            return Ball(float(values[0]), {"1": 1, "2": 2, "inf": math.inf}[named.get("norm", "2")])
        if kind in ("corner", "box") and values and not named:
            bounds = tuple(map(float, values))
            return (Corner if kind == "corner" else Box)(bounds[0] if len(bounds) == 1 else bounds)
    except InvalidInput:
        raise  # it says what is wrong
    except (KeyError, ValueError):
        pass
    raise InvalidInput(f"changes={shown(text)} is not a set of changes: write {_EXAMPLES}.")
