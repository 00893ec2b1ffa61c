"""Counts in the cells of a grid, with any number of axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.query import columns
from lessnoise.query.axis import Axis, own_order
from lessnoise.query.base import MISSING_DROPPED, Norms, Query, column_names, interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array, BoolArray, IntArray
    from lessnoise.changes import Changes

_MOST_CELLS = 10**9


@dataclass(frozen=True)
class Histogram(Query):
    """The number of rows in each cell; the value has one dimension for each axis.

    A row with NULL or NaN in one of the columns is dropped, and so is a row outside an axis that does not clamp. One
    row counts once, so one added or removed row changes the counts by 1, and a replaced row by at most sqrt(2) (it
    leaves one cell and enters another). k rows of a user change them k times as much: they may share a cell.

    >>> query = Histogram([Axis("x", bounds=(0, 1), bins=2), Axis("kind", keys=["bus", "taxi"])])
    >>> batch = {"x": np.array([0.1, 0.9, 0.9, 5.0]), "kind": np.array(["bus", "taxi", "taxi", "bus"])}
    >>> query.partial(batch).tolist()
    [[1, 0], [0, 2]]
    >>> query.sensitivity("replace") == 2**0.5, query.l1_sensitivity("replace")
    (True, 2.0)
    """

    axes: tuple[Axis, ...]
    kind = "histogram"
    integer = True
    counts = True

    def __post_init__(self) -> None:
        given = (self.axes,) if isinstance(self.axes, Axis) else self.axes
        if not isinstance(given, (list, tuple)) or not given or not all(isinstance(axis, Axis) for axis in given):
            raise InvalidInput(
                f"axes={self.axes!r} is not a list of axes: pass Axis('Lon', bounds=..., bins=...), say."
            )
        settle(self, axes=tuple(given))
        column_names([axis.column for axis in self.axes], "axes")
        if math.prod(self.shape) > _MOST_CELLS:
            raise InvalidInput(f"bins={self.shape} make more than {_MOST_CELLS} cells: pass fewer.")

    @classmethod
    def grid(
        cls, names: Sequence[str], *, bins: Sequence[int], bounds: Sequence[tuple[float, float]], outside: str = "drop"
    ) -> Histogram:
        """Even cells along several columns.

        >>> Histogram.grid(["Lon", "Lat"], bins=(89, 89), bounds=((-74.05, -73.75), (40.6, 40.9))).shape
        (89, 89)
        """
        wanted = column_names(names)
        for name, values in (("bins", bins), ("bounds", bounds)):
            if not isinstance(values, (list, tuple)) or len(values) != len(wanted):
                example = f"{name}=(89,)" if name == "bins" else f"{name}=((0, 1),)"
                raise InvalidInput(
                    f"{name}={values!r} must have one part for each of {list(wanted)}: pass one each, such as "
                    f"{example} for one column."
                )
        box = [interval(f"bounds[{place}]", each) for place, each in enumerate(bounds)]
        return cls(
            tuple(
                Axis(name, bounds=ends, bins=number, outside=outside)
                for name, number, ends in zip(wanted, bins, box, strict=True)
            )
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the axes."""
        return tuple(axis.column for axis in self.axes)

    @property
    def kinds(self) -> dict[str, str]:
        """What each column must hold."""
        return {axis.column: axis.kind for axis in self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""
        return tuple(axis.size for axis in self.axes)

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Rows that fall in a cell."""
        return self._cells(batch) >= 0

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The counts of one batch."""
        cells = self._cells(batch)
        counted = np.bincount(cells[cells >= 0], minlength=math.prod(self.shape))
        return counted.astype(np.int64, copy=False).reshape(self.shape)

    def groups_of(self, batch: Any) -> IntArray:  # noqa: ANN401
        """Its cell."""
        return own_order(self.axes, batch, self.columns)

    def finish(self, total: IntArray) -> Array:
        """Counts as floats."""
        return total.astype(np.float64)

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """1 in one cell; 1 in each of two cells if a row is replaced and there are two."""
        if neighbours is Neighbours.ADD_REMOVE or math.prod(self.shape) == 1:
            return Norms(1.0, 1.0)
        return Norms(math.sqrt(2.0), 2.0)  # the float sqrt(2) is above the root

    def known_changes(self, neighbours: Neighbours, rows: int) -> Changes:
        """Rows in disjoint cells."""
        return counts(rows, neighbours=neighbours)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"query": self.kind, "axes": [axis.to_dict() for axis in self.axes]}

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """A histogram from its plain values."""
        given = validation.fields(values, ("query", "axes"), "histogram query")
        return cls(tuple(Axis.from_dict(axis) for axis in validation.entries("axes", given["axes"])))

    @property
    def rules(self) -> tuple[str, ...]:
        """Rows outside the cells are dropped or counted in the nearest."""
        return (MISSING_DROPPED, *(axis.outside_words for axis in self.axes))

    def _cells(self, batch: Any) -> IntArray:  # noqa: ANN401
        """For each row the number of its cell, axes in C order, or -1."""
        total: IntArray | None = None
        for axis in self.axes:
            cells = axis.cells(batch, self.columns)
            total = cells if total is None else np.where((total < 0) | (cells < 0), -1, total * axis.size + cells)
        assert total is not None
        return total


@dataclass(frozen=True)
class Presence(Query):
    """How many rows there are, and how many values each column has: only to tell a caller what is wrong."""

    names: tuple[str, ...]
    of: dict[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to look at."""
        return self.names

    @property
    def kinds(self) -> dict[str, str]:
        """As in the query that is checked."""
        return self.of

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, then one count per column."""
        return (len(self.names) + 1,)

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Every row."""
        return np.ones(columns.length(batch), dtype=np.bool_)

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """Rows, and values that are neither NULL nor NaN."""
        found = [columns.length(batch)]
        for name in self.names:
            if self.of[name] == columns.NUMBER:
                found.append(int((~np.isnan(columns.numbers(batch, name, self.names))).sum()))
            else:
                values = columns.column(batch, name, self.names)
                if isinstance(values, np.ndarray):
                    found.append(sum(not columns.is_missing(value) for value in values.tolist()))
                else:
                    found.append(len(values) - values.null_count)
        return np.array(found, dtype=np.int64)

    def finish(self, total: IntArray) -> Array:
        """As floats."""
        return total.astype(np.float64)

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """Never released."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"query": "presence", "columns": list(self.names)}
