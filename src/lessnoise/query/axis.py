"""One axis of a histogram: cells that are known without looking at the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.query import columns
from lessnoise.query.base import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array, IntArray

DROP, CLAMP = "drop", "clamp"
_MOST_CELLS = 10**8


@dataclass(frozen=True)
class Axis:
    """Cells along a column: ``bins`` of equal width in ``bounds``, or those between ``edges``, or one for each key.

    Cells are half open except the last, which contains its upper end, as in :func:`numpy.histogramdd`. Rows
    ``outside`` are dropped, or, with ``outside="clamp"``, counted in the nearest cell; rows whose value is not among
    the keys are dropped.

    >>> Axis("Lon", bounds=(-74.05, -73.75), bins=89).size
    89
    >>> Axis("Base", keys=["B02512", "B02598"]).size
    2
    """

    column: str
    bounds: tuple[float, float] | None = None
    bins: int | None = None
    edges: tuple[float, ...] | None = None
    keys: tuple[str, ...] | tuple[int, ...] | None = None
    outside: str = DROP

    def __post_init__(self) -> None:
        validation.text("column", self.column)
        given = [name for name in ("bounds", "edges", "keys") if getattr(self, name) is not None]
        if len(given) != 1 or (self.bins is not None) != (given == ["bounds"]):
            raise InvalidInput(
                f"axis {shown(self.column)} needs its cells in one way: pass bounds and bins, or edges, or keys, known "
                "without looking at the data."
            )
        validation.choice("outside", self.outside, (DROP, CLAMP))
        if self.bounds is not None:
            settle(self, bounds=interval("bounds", self.bounds), bins=validation.whole_number("bins", self.bins))
            if self.size > _MOST_CELLS:
                raise InvalidInput(f"bins={self.bins} is more than {_MOST_CELLS}: pass fewer cells.")
        elif self.edges is not None:
            settle(self, edges=_edges(self.edges))
        else:
            settle(self, keys=_keys(self.keys))
            if self.outside == CLAMP:
                raise InvalidInput(
                    f"outside='clamp' has no meaning for the keys of {shown(self.column)}: leave it out."
                )
        if self.keys is None and not (np.diff(self.cell_edges) > 0.0).all():
            raise InvalidInput(f"bins={self.bins} is too fine for bounds={self.bounds}: pass fewer cells.")

    @property
    def size(self) -> int:
        """Number of cells."""
        if self.keys is not None:
            return len(self.keys)
        return self.bins if self.bins is not None else len(self.edges or ()) - 1

    @property
    def kind(self) -> str:
        """What the column must hold."""
        if self.keys is None:
            return columns.NUMBER
        return columns.INTEGER if isinstance(self.keys[0], int) else columns.TEXT

    @cached_property
    def cell_edges(self) -> Array:
        """All edges of a numeric axis, as NumPy makes them."""
        if self.bounds is None:
            return np.array(self.edges, dtype=np.float64)
        return np.linspace(*self.bounds, self.size + 1)

    @cached_property
    def rule(self) -> EvenRule | None:
        """A quick formula for the cell, if there is one that is right for every float."""
        return None if self.bounds is None else EvenRule.find(self.cell_edges)

    def cells(self, batch: Any, names: Sequence[str]) -> IntArray:  # noqa: ANN401
        """For each row its cell, or -1 if it is dropped."""
        if self.keys is not None:
            return columns.positions(batch, self.column, names, self.keys)
        values = columns.numbers(batch, self.column, names)
        low, high = self.cell_edges[[0, -1]]
        if self.outside == CLAMP:
            values, inside = np.clip(values, low, high), ~np.isnan(values)
        else:
            inside = (values >= low) & (values <= high)
        if not inside.all():
            values = np.where(inside, values, low)
        if self.rule is not None:
            found = self.rule.cells(values)
        else:
            found = np.searchsorted(self.cell_edges, values, side="right") - 1
        np.minimum(found, self.size - 1, out=found)
        return np.where(inside, found, -1)

    @property
    def outside_words(self) -> str:
        """What becomes of rows outside the cells."""
        if self.keys is not None:
            return f"A row whose {self.column!r} is none of the keys is dropped."
        done = "counted in the nearest cell" if self.outside == CLAMP else "dropped"
        return f"A row whose {self.column!r} is outside the cells is {done}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {"column": self.column}
        for name in ("bounds", "edges", "keys"):
            if getattr(self, name) is not None:
                values[name] = list(getattr(self, name))
        if self.bins is not None:
            values["bins"] = self.bins
        return {**values, "outside": self.outside}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Axis:
        """The inverse of :meth:`to_dict`."""
        optional = ("bounds", "bins", "edges", "keys", "outside")
        return cls(**validation.fields(values, ("column",), "axis", optional))


def own_order(axes: Sequence[Axis], batch: Any, names: Sequence[str]) -> IntArray:  # noqa: ANN401
    """For each row that has cells a number for its group: the same order in any list of keys that has the row's own.

    So a user's choice of groups does not depend on which keys others have, nor on the order of a list of keys.
    """
    total = np.zeros(columns.length(batch), dtype=np.int64)
    for axis in axes:
        cells = axis.cells(batch, names)
        if axis.keys is not None:
            ranks = np.empty(axis.size, dtype=np.int64)
            ranks[sorted(range(axis.size), key=axis.keys.__getitem__)] = np.arange(axis.size)
            cells = ranks[cells]
        total = total * axis.size + cells
    return total


@dataclass(frozen=True)
class EvenRule:
    """floor((x - low) * factor + shift) in floating point: the cell of every float x, up to the last edge.

    Each of the three steps is monotone in x, and so is the whole, rounding included. A monotone step function is
    right everywhere if it is right at every edge and at the float just below: that is what ``find`` checks. The
    shift, half a float spacing, is what makes it so for most bounds. The last edge itself may get the number ``size``.
    """

    low: float
    factor: float
    shift: float

    @classmethod
    def find(cls, edges: Array) -> EvenRule | None:
        """A rule that is proved right for these edges, or None."""
        low, high, size = float(edges[0]), float(edges[-1]), len(edges) - 1
        factor = size / (high - low)
        spacing = float(np.spacing(max(abs(low), abs(high))))
        for shift in (0.5 * spacing * factor, 0.0, 0.25 * spacing * factor):
            rule = cls(low, factor, shift)
            if rule.is_right(edges):
                return rule
        return None

    def is_right(self, edges: Array) -> bool:
        """The rule agrees with a search among the edges, for every float between the first and the last."""
        inner, places = edges[:-1], np.arange(len(edges) - 1)
        below = np.nextafter(edges[1:], -np.inf)
        top = self.cells(edges[-1:])[0] - (len(edges) - 1)
        return (
            np.array_equal(self.cells(inner), places) and np.array_equal(self.cells(below), places) and top in (-1, 0)
        )

    def cells(self, values: Array) -> IntArray:
        """The cell of each value between the first and the last edge."""
        shifted = (values - self.low) * self.factor
        shifted += self.shift
        return shifted.astype(np.int64)  # not negative, so this is the floor


def _edges(edges: object) -> tuple[float, ...]:
    found = edges.tolist() if isinstance(edges, np.ndarray) else edges
    if not isinstance(found, (list, tuple)) or len(found) < 2:
        raise InvalidInput(f"edges={shown(edges)} is not a list of at least two numbers: pass them from low to high.")
    result = tuple(validation.number(f"edges[{place}]", edge) for place, edge in enumerate(found))
    for place, (left, right) in enumerate(pairwise(result)):
        if left >= right:
            raise InvalidInput(f"edges[{place + 1}]={right} does not exceed edges[{place}]={left}: sort them.")
    return result


def _keys(keys: object) -> tuple[str, ...] | tuple[int, ...]:
    found = keys.tolist() if isinstance(keys, np.ndarray) else keys
    if not isinstance(found, (list, tuple)) or not found:
        raise InvalidInput(f"keys={shown(keys)} is not a list of keys: pass all texts or all whole numbers.")
    alike = all(isinstance(key, str) for key in found) or all(type(key) is int for key in found)
    if not alike or len(set(found)) < len(found):
        raise InvalidInput(f"keys={shown(keys)} must be different and all texts or all whole numbers: repair the list.")
    if not all(validation.is_unicode(key) for key in found if isinstance(key, str)):
        raise InvalidInput("keys hold a text with half of a surrogate pair, which no file can hold: repair the list.")
    return tuple(found)
