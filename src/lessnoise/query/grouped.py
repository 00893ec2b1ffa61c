"""Several statistics of every group of rows, in one pass: counts, sums, moments and histograms of bounded columns.

Each row belongs to at most one group and adds whole numbers there, so that all of it is a sum over rows. What a row
adds to one *measure* of its group has an l1 norm of at most 1, in the measure's own unit, whatever the row holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._common import round_up, settle
from lessnoise.changes import ball, counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.query import columns, whole_sums
from lessnoise.query.axis import Axis  # noqa: TC001
from lessnoise.query.base import Norms, Query, column_names, interval

if TYPE_CHECKING:
    from lessnoise._common import Array, BoolArray, IntArray
    from lessnoise.changes import Changes

_MOST_CELLS = 10**8
BITS = 30  # 2^30 steps to a row's whole contribution: 2^33 rows fit in 63 bits, and 2^20 rows in a float
ONE = 1 << BITS


@dataclass(frozen=True)
class Measure:
    """What each row adds to its group: ``rows`` (1), ``moments`` of a degree, a ``total``, or the cell of an ``axis``.

    ``moments``: with t = (x - low)/(high - low), clipped to [0, 1], a row adds the Bernstein polynomials
    C(d, i) t^i (1 - t)^(d - i), i = 0..d. They are never negative and add up to 1, so that the number of rows, the sum
    of t, and for d = 2 the sum of t^2 come from one release whose l1 sensitivity is that of a count.
    ``total``: x clipped to its bounds, over the larger of their sizes. Rows without a value add nothing.
    An axis has ``cells`` for a distribution function, or a ``histogram`` for counts.
    """

    kind: str
    column: str | None = None
    bounds: tuple[float, float] | None = None
    degree: int = 0
    axis: Axis | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None:
            settle(self, bounds=interval(f"bounds of {self.column!r}", self.bounds))
            whole_sums.grid_step(max(abs(self.bounds[0]), abs(self.bounds[1])), BITS)  # of ordinary size

    @property
    def width(self) -> int:
        """How many numbers a group has."""
        if self.axis is not None:
            return self.axis.size
        return self.degree + 1 if self.kind == "moments" else 1

    @property
    def whole(self) -> bool:
        """Whether it counts rows."""
        return self.kind in ("rows", "cells", "histogram")

    @property
    def needed(self) -> list[tuple[str, str]]:
        """The columns that it reads, and what each must hold."""
        if self.axis is not None:
            return [(self.axis.column, self.axis.kind)]
        return [] if self.column is None else [(self.column, columns.NUMBER)]

    @property
    def unit(self) -> float:
        """The value of a row's whole contribution."""
        if self.kind != "total":
            return 1.0
        assert self.bounds is not None
        return max(abs(self.bounds[0]), abs(self.bounds[1]))

    def changes(self, groups: int, rows: int, neighbours: Neighbours) -> Changes:
        """What so many rows can do to the numbers of all groups, in the measure's own unit."""
        if self.whole:
            return counts(rows, neighbours=neighbours)
        size = groups * self.width
        sides = 1 if neighbours is Neighbours.ADD_REMOVE or size == 1 else 2  # out of one group and into another
        # Each number of a row is rounded by half a step at most, and each sum to a float by less than 2^10 steps.
        slack = Fraction(self.width * (1 + 2 * whole_sums.SPACING), 2 * ONE)
        return ball(round_up(sides * rows * (1 + slack)), norm=1)

    def added(self, batch: Any, names: tuple[str, ...]) -> IntArray:  # noqa: ANN401
        """For each row what it adds, in steps; of an axis the cell, or -1."""
        if self.kind == "rows":
            return np.ones((columns.length(batch), 1), dtype=np.int64)
        if self.axis is not None:
            return self.axis.cells(batch, names)
        assert self.column is not None
        assert self.bounds is not None
        low, high = self.bounds
        values = columns.numbers(batch, self.column, names)
        missing = np.isnan(values)
        clipped = np.clip(np.where(missing, low, values), low, high)
        if self.kind == "total":
            parts = [clipped / self.unit]
        else:
            t = np.clip((clipped - low) / (high - low), 0.0, 1.0)
            parts = [math.comb(self.degree, i) * t**i * (1.0 - t) ** (self.degree - i) for i in range(self.degree + 1)]
        steps = np.rint(np.stack(parts, axis=1) * ONE).astype(np.int64)
        steps[missing] = 0
        return np.clip(steps, -ONE, ONE)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {"kind": self.kind}
        if self.axis is not None:
            return {**values, "axis": self.axis.to_dict()}
        if self.column is not None and self.bounds is not None:
            values |= {"column": self.column, "bounds": list(self.bounds)}
        return {**values, "degree": self.degree} if self.kind == "moments" else values


ROWS = Measure("rows")


@dataclass(frozen=True)
class Grouped(Query):
    """Measures of every group: the value has one row for each group and the measures' numbers side by side.

    Without axes there is one group. A row belongs to a group if it lies in a cell of every axis; others are dropped
    before a user's rows are chosen. A row without a value in a measured column adds nothing to that measure.

    >>> query = Grouped((Axis("city", keys=["Oslo", "Bergen"]),), (ROWS, Measure("moments", "age", (0, 100), 1)))
    >>> people = {"city": np.array(["Oslo", "Oslo", "Rome"]), "age": np.array([25.0, np.nan, 30.0])}
    >>> query.answer(people).value.tolist()
    [[2.0, 0.75, 0.25], [0.0, 0.0, 0.0]]
    """

    axes: tuple[Axis, ...]
    measures: tuple[Measure, ...]

    def __post_init__(self) -> None:
        if self.axes:
            column_names([axis.column for axis in self.axes], "group_by")
        if self.shape[0] * self.shape[1] > _MOST_CELLS:
            raise InvalidInput(
                f"groups={self.shape[0]} with {self.shape[1]} numbers each are more than {_MOST_CELLS}: ask for fewer."
            )
        for name, kind in self._needed():
            if self.kinds[name] != kind and columns.TEXT in (kind, self.kinds[name]):
                raise InvalidInput(
                    f"column={name!r} is used as {self.kinds[name]} and as {kind}: choose one use of it."
                )

    def _needed(self) -> list[tuple[str, str]]:
        needed = [(axis.column, axis.kind) for axis in self.axes]
        return needed + [each for measure in self.measures for each in measure.needed]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the axes, then of the measures; each once."""
        return tuple(dict(self._needed()))

    @property
    def kinds(self) -> dict[str, str]:
        """What each column must hold; whole numbers serve as numbers, too."""
        found: dict[str, str] = {}
        for name, kind in self._needed():
            found[name] = kind if found.get(name, columns.NUMBER) == columns.NUMBER else found[name]
        return found

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def shape(self) -> tuple[int, int]:
        """Groups, and numbers of a group."""
        return self.groups, sum(measure.width for measure in self.measures)

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Rows that belong to a group."""
        return self._cells(batch) >= 0

    def _cells(self, batch: Any) -> IntArray:  # noqa: ANN401
        total = np.zeros(columns.length(batch), dtype=np.int64)
        for axis in self.axes:
            cells = axis.cells(batch, self.columns)
            total = np.where((total < 0) | (cells < 0), -1, total * axis.size + cells)
        return total

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The sums of one batch, in steps."""
        groups, width = self.shape
        cells = self._cells(batch)
        kept = cells >= 0
        result = np.zeros((groups, width), dtype=np.int64)
        place = 0
        for measure in self.measures:
            added = measure.added(batch, self.columns)
            part = result[:, place : place + measure.width]
            if measure.axis is not None:
                both = kept & (added >= 0)
                flat = np.bincount(cells[both] * measure.width + added[both], minlength=groups * measure.width)
                part += flat.reshape(groups, measure.width)
            else:
                for i in range(measure.width):  # exact: at most 2^22 rows of at most 2^30 steps
                    part[:, i] += _summed(cells[kept], added[kept, i], groups)
            place += measure.width
        return result

    def finish(self, total: IntArray) -> Array:
        """From steps to the measures' own units."""
        value = whole_sums.to_floats(total)
        for measure, where in self.places():
            if not measure.whole:
                value[:, where] = np.ldexp(value[:, where], -BITS)
        return value

    def places(self) -> list[tuple[Measure, slice]]:
        """Each measure with its numbers among those of a group."""
        found, place = [], 0
        for measure in self.measures:
            found.append((measure, slice(place, place + measure.width)))
            place += measure.width
        return found

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """All measures together; each is released on its own."""
        sets = [measure.changes(self.groups, 1, neighbours) for measure in self.measures]
        sizes = [one.norm(1, self.groups * measure.width) for one, measure in zip(sets, self.measures, strict=True)]
        total = round_up(sum(map(Fraction, sizes), Fraction(0)))
        return Norms(total, total)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "query": "grouped",
            "axes": [axis.to_dict() for axis in self.axes],
            "measures": [measure.to_dict() for measure in self.measures],
        }


def _summed(cells: IntArray, steps: IntArray, groups: int) -> IntArray:
    """Sums by group, exactly: floats hold the sums of 2^22 rows."""
    result = np.zeros(groups, dtype=np.int64)
    for start in range(0, len(cells), 1 << 22):
        part = slice(start, start + (1 << 22))
        result += np.bincount(cells[part], weights=steps[part], minlength=groups).astype(np.int64)
    return result
