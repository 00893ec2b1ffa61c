"""Several statistics of every group of rows, in one pass: counts, sums, moments and histograms of bounded columns.

Each row belongs to at most one group and adds whole numbers there, so that all of it is a sum over rows. What a row
adds to one *measure* of its group has an l1 norm of at most 1, in the measure's own unit, whatever the row holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up, settle
from lessnoise.changes import ball, counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.query import columns, whole_sums
from lessnoise.query.axis import Axis, own_order
from lessnoise.query.base import Norms, Query, column_names, interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lessnoise._common import Array, BoolArray, IntArray
    from lessnoise.changes import Changes

_MOST_CELLS = 10**8
_KINDS = ("rows", "users", "moments", "total", "cells", "histogram")
_OTHERS: dict[str, type[Measure]] = {}  # kinds of measures with a class of their own
BITS = 30  # 2^30 steps to a row's whole contribution: 2^33 rows fit in 63 bits, and 2^20 rows in a float
ONE = 1 << BITS


@dataclass(frozen=True)
class Measure:
    """What each row adds to its group: ``rows`` (1), ``moments`` of a degree, a ``total``, or the cell of an ``axis``.

    ``moments``: with t = (x - low)/(high - low), clipped to [0, 1], a row adds the Bernstein polynomials
    C(d, i) t^i (1 - t)^(d - i), i = 0..d, for d = 1 or 2. They are never negative and add up to 1, so that the number
    of rows, the sum of t, and for d = 2 the sum of t^2 come from one release whose l1 sensitivity is that of a count.
    With ``absent`` a row without a value adds 1 to one more number, and all rows can be counted, too.
    ``total``: x clipped to its bounds, over the larger of their sizes. Other rows without a value add nothing.
    An axis has ``cells`` for a distribution function, or a ``histogram`` for counts.
    """

    kind: str
    column: str | None = None
    bounds: tuple[float, float] | None = None
    degree: int = 0
    axis: Axis | None = None
    absent: bool = False

    def __init_subclass__(cls) -> None:
        _OTHERS[cls.__dict__["kind"]] = cls

    def __post_init__(self) -> None:
        validation.choice("kind", self.kind, _KINDS)
        numeric = self.kind in ("moments", "total")
        needed = {"column": numeric, "bounds": numeric, "axis": self.kind in ("cells", "histogram")}
        for name, wanted in needed.items():
            given = getattr(self, name)
            if (given is not None) != wanted:
                todo = "pass one" if wanted else "leave it out"
                raise InvalidInput(f"{name}={shown(given)} of a measure of kind={self.kind!r}: {todo}.")
        if type(self.degree) is not int or self.degree not in ((1, 2) if self.kind == "moments" else (0,)):
            raise InvalidInput(
                f"degree={shown(self.degree)} of a measure of kind={self.kind!r}: moments have 1 or 2, others none."
            )
        if type(self.absent) is not bool or (self.absent and self.kind != "moments"):
            raise InvalidInput(
                f"absent={shown(self.absent)} of a measure of kind={self.kind!r}: True is for moments, False for all."
            )
        if self.bounds is not None:
            validation.text("column", self.column)
            settle(self, bounds=interval(f"bounds of {self.column!r}", self.bounds))
            whole_sums.grid_step(max(abs(self.bounds[0]), abs(self.bounds[1])), BITS)  # of ordinary size

    @property
    def width(self) -> int:
        """How many numbers a group has."""
        if self.axis is not None:
            return self.axis.size
        return self.degree + 1 + self.absent if self.kind == "moments" else 1

    @property
    def whole(self) -> bool:
        """Whether it counts rows, or users."""
        return self.kind in ("rows", "users", "cells", "histogram")

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

    def changes(self, groups: int, rows: int, neighbours: Neighbours, per_group: int | None = None) -> Changes:
        """What so many rows can do to the numbers of all groups, in the measure's own unit; so many in each group."""
        if self.whole:
            return counts(rows, per_group if per_group is not None and per_group < rows else None, neighbours)
        sides = Fraction(1)
        if neighbours is Neighbours.REPLACE:  # out of one group and into another; or from one end to the other, or to 0
            sides = Fraction(2) if groups * self.width > 1 else self._spread
        # A row adds ONE steps in all, and the excess; the way to floats moves each number by less than SPACING more.
        slack = (self.width * whole_sums.SPACING + self.excess) / ONE
        return ball(round_up(rows * sides * (1 + slack)), norm=1)

    @property
    def excess(self) -> Fraction:
        """By how many steps rounding can take what a row adds beyond ONE: not at all."""
        return Fraction(0)

    @property
    def _spread(self) -> Fraction:
        """From the least to the most that a row can add, nothing included, in the measure's own unit."""
        assert self.bounds is not None
        low, high = map(Fraction, self.bounds)
        return (max(high, Fraction(0)) - min(low, Fraction(0))) / Fraction(self.unit)

    @property
    def scale(self) -> tuple[float, float]:
        """A clipped x has (x - first) * second steps, rounded half to even: a product is quicker than a division."""
        assert self.bounds is not None
        low, high = self.bounds
        return (0.0, ONE / self.unit) if self.kind == "total" else (low, ONE / (high - low))

    def steps(self, values: Array) -> IntArray:
        """The steps of each value, between -ONE and ONE; NaN has none, but gets a number."""
        assert self.bounds is not None
        low, high = self.bounds
        origin, factor = self.scale
        clipped = np.clip(np.where(np.isnan(values), low, values), low, high)
        return np.asarray(np.rint((clipped - origin) * factor), dtype=np.int64)

    def parts(self, batch: Any, names: tuple[str, ...]) -> Iterable[IntArray]:  # noqa: ANN401
        """Whole numbers of each row whose sums are all that :meth:`numbers` needs: of moments 1, s and s^2, rounded.

        With s the steps of a value and q = s^2/ONE, rounded half up, a row adds ONE - s and s, or ONE - 2s + q,
        2(s - q) and q. As s <= ONE, q is at most s, and ONE - 2s + q is (ONE - s)^2/ONE, rounded: none is negative,
        and their sum is ONE exactly.
        """
        if self.kind in ("rows", "users"):
            return [np.ones(columns.length(batch), dtype=np.int64)]
        assert self.column is not None
        values = columns.numbers(batch, self.column, names)
        present = ~np.isnan(values)
        steps = self.steps(values) * present
        if self.kind == "total":
            return [steps]
        found = [present.astype(np.int64), steps]
        found += [] if self.degree == 1 else [(steps * steps + ONE // 2) >> BITS]
        return [*found, (~present).astype(np.int64)] if self.absent else found

    def numbers(self, sums: Sequence[IntArray]) -> IntArray:
        """The measure's numbers of each group, in steps, from the sums of the parts; one column for each."""
        if self.kind != "moments":
            return np.stack(sums, axis=-1)
        if sums[0].size and max(int(sums[0].max()), int(sums[-1].max()) * self.absent) >= 1 << (63 - BITS):
            raise InvalidInput("the sums exceed 63 bits: query the data in parts and add the answers.")
        # What leaves 64 bits half way comes back, as the results are within them.
        made = [[ONE, -1], [0, 1]] if self.degree == 1 else [[ONE, -2, 1], [0, 2, -2], [0, 0, 1]]
        of_values = np.stack(sums[: self.degree + 1], axis=-1) @ np.array(made, dtype=np.int64).T
        return np.column_stack([of_values, sums[-1] * ONE]) if self.absent else of_values

    def added(self, batch: Any, names: tuple[str, ...]) -> IntArray:  # noqa: ANN401
        """For each row what it adds, in steps; of an axis the cell, or -1."""
        return self.numbers(list(self.parts(batch, names))) if self.axis is None else self.axis.cells(batch, names)

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows add nothing and what is clipped, in words for a certificate."""
        if self.axis is not None:
            missing = f"A row with NULL or NaN in {self.axis.column!r} adds nothing to its cells."
            return (missing, self.axis.outside_words)
        if self.bounds is None:
            return ("Every row of a group is counted, whatever else it holds.",)
        missing = "is counted apart" if self.absent else "adds nothing to its sums"
        return (
            f"A row with NULL or NaN in {self.column!r} {missing}.",
            f"A value of {self.column!r} outside {self.bounds}, infinite ones too, is clipped to them.",
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {"kind": self.kind}
        if self.axis is not None:
            return {**values, "axis": self.axis.to_dict()}
        if self.column is not None and self.bounds is not None:
            values |= {"column": self.column, "bounds": list(self.bounds)}
        if self.kind == "moments":
            values |= {"degree": self.degree, **({"absent": True} if self.absent else {})}
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Measure:
        """The inverse of :meth:`to_dict`."""
        kind = validation.fields(values, ("kind",), "measure", optional=None)["kind"]
        if isinstance(kind, str) and kind in _OTHERS:
            return _OTHERS[kind].from_dict(values)
        given = validation.fields(values, ("kind",), "measure", ("column", "bounds", "degree", "axis", "absent"))
        axis = given.get("axis")
        return cls(**{**given, "axis": None if axis is None else Axis.from_dict(axis)})


ROWS = Measure("rows")
USERS = Measure("users")
"""Rows, if every user has at most one in a group: those of another choice of rows than the other measures have."""


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
    kind = "grouped"

    def __post_init__(self) -> None:
        if not self.measures:
            raise InvalidInput("measures=() is empty: pass ROWS, say, to count the rows of each group.")
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

    def along(self, places: IntArray) -> list[IntArray]:
        """Of some groups, the cell along each axis."""
        return list(np.unravel_index(places, [axis.size for axis in self.axes])) if self.axes else []

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Rows that belong to a group."""
        return self._cells(batch) >= 0

    def groups_of(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The group of each row that belongs to one."""
        return own_order(self.axes, batch, self.columns)

    def _cells(self, batch: Any) -> IntArray:  # noqa: ANN401
        total = np.zeros(columns.length(batch), dtype=np.int64)
        for axis in self.axes:
            cells = axis.cells(batch, self.columns)
            total = np.where((total < 0) | (cells < 0), -1, total * axis.size + cells)
        return self.numbered(total)

    def numbered(self, cells: IntArray) -> IntArray:
        """The group of each cell of the axes together, in C order; -1 stays, and is for those without a group."""
        return cells

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The sums of one batch, in steps."""
        groups, width = self.shape
        cells = self._cells(batch)
        kept = cells >= 0
        result = np.zeros((groups, width), dtype=np.int64)
        place = 0
        for measure in self.measures:
            part = result[:, place : place + measure.width]
            if measure.axis is not None:
                found = measure.axis.cells(batch, self.columns)
                both = kept & (found >= 0)
                flat = np.bincount(cells[both] * measure.width + found[both], minlength=groups * measure.width)
                part += flat.reshape(groups, measure.width)
            else:
                added = measure.parts(batch, self.columns)
                part += measure.numbers([_summed(cells[kept], steps[kept], groups) for steps in added])
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
            "query": self.kind,
            "axes": [axis.to_dict() for axis in self.axes],
            "measures": [measure.to_dict() for measure in self.measures],
        }

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Measures of groups from their plain values."""
        given = validation.fields(values, ("query", "axes", "measures"), "grouped query")
        axes = () if given["axes"] == [] else validation.entries("axes", given["axes"])
        return cls(
            tuple(map(Axis.from_dict, axes)),
            tuple(map(Measure.from_dict, validation.entries("measures", given["measures"]))),
        )

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows belong to no group, and which add nothing to a measure."""
        found = []
        for axis in self.axes:
            found += [f"A row with NULL or NaN in {axis.column!r} is dropped.", axis.outside_words]
        return tuple(dict.fromkeys([*found, *(rule for measure in self.measures for rule in measure.rules)]))


def _summed(cells: IntArray, steps: IntArray, groups: int) -> IntArray:
    """Sums by group, exactly: floats hold the sums of 2^22 rows."""
    result = np.zeros(groups, dtype=np.int64)
    for start in range(0, len(cells), 1 << 22):
        part = slice(start, start + (1 << 22))
        result += np.bincount(cells[part], weights=steps[part], minlength=groups).astype(np.int64)
    return result
