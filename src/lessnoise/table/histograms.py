"""Counts of the cells of a column in every group."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise.query import Axis, Measure
from lessnoise.table.aggregates import COUNT, Aggregate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array

MOST_CELLS = 10_000


@dataclass(frozen=True)
class CellCounts(Aggregate):
    """The number of rows in every cell of an axis. Build one with :func:`histogram`."""

    kind: str = "histogram"
    axis: Axis | None = None

    @property
    def along(self) -> Axis:
        """The axis, which is there."""
        assert self.axis is not None
        return self.axis

    @cached_property
    def names(self) -> list[str]:
        """Of the counts, in the order of the cells."""
        return [f"count of {self.along.column} {words}" for words in cell_words(self.along, quoted=True)]

    @property
    def summary(self) -> str:
        """What it is, for a plan."""
        return f"count of {self.along.column} in {self.along.size} cells"

    @property
    def rules(self) -> list[str]:
        """Which rows are in no cell."""
        column = self.along.column
        which = "outside the cells" if self.along.keys is None else "that is not among its keys"
        return [f"rows with NULL or NaN in {column!r}, or a value {which}, are in no cell of its histogram"]

    @property
    def whole(self) -> bool:
        """Its numbers are counts."""
        return True

    @property
    def measure(self) -> Measure:
        """The cells, each with a count's noise."""
        return Measure("histogram", axis=self.along)

    def estimate(self, measure: Measure, noisy: Array, deviation: float = 0.0) -> Array:
        """The counts as they are."""
        del measure, deviation
        return noisy

    def precision(self, _: Measure | None = None) -> float:
        """That of a count: one row is in one cell."""
        return COUNT.precision()

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {"aggregate": self.kind, **self.along.to_dict()}


def histogram(
    column: str,
    bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    edges: Sequence[float] | None = None,
    keys: Sequence[str] | Sequence[int] | None = None,
) -> CellCounts:
    """The number of rows in each of ``bins`` equal cells of ``bounds``, or between ``edges``, or with each of ``keys``.

    The cells are public. Each count has the noise of a single one, because a row is in one cell.

    >>> histogram("age", bounds=(0, 120), bins=3).names
    ['count of age 0 to 40', 'count of age 40 to 80', 'count of age 80 to 120']
    >>> histogram("colour", keys=["red", "blue"]).names
    ["count of colour 'red'", "count of colour 'blue'"]
    """
    axis = Axis(column, bounds, bins, edges, keys)  # type: ignore[arg-type]
    if axis.size > MOST_CELLS:
        raise InvalidInput(
            f"cells={axis.size} of {column!r} are more than {MOST_CELLS}: pass fewer, or use "
            "lessnoise.private_histogram."
        )
    return CellCounts(axis=axis)


def cell_words(axis: Axis, *, quoted: bool = False) -> list[str]:
    """The interval or key of every cell, in words that are all different; texts in quotes, if ``quoted``.

    >>> cell_words(Axis("age", edges=[0, 0.5, 10])), cell_words(Axis("id", edges=[1e6, 1e6 + 1, 1e6 + 2]))
    (['0 to 0.5', '0.5 to 10'], ['1000000.0 to 1000001.0', '1000001.0 to 1000002.0'])
    """
    if axis.keys is not None:
        return [repr(key) if quoted else str(key) for key in axis.keys]
    ends = axis.cell_edges.tolist()
    short = [f"{end:g}" for end in ends]
    if len(set(short)) < len(short):
        short = [repr(end) for end in ends]
    return [f"{low} to {high}" for low, high in itertools.pairwise(short)]
