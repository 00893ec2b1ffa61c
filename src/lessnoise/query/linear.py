"""Sums and means of bounded columns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up, settle
from lessnoise.changes import box, corner
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.query import columns, whole_sums
from lessnoise.query.base import CLIPPED, MISSING_DROPPED, Norms, NumericQuery, column_names, intervals
from lessnoise.query.unit import ROW

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array, IntArray
    from lessnoise.changes import Changes

    Interval = tuple[float, float]

BITS = 30  # 2^33 rows fit in 63 bits
_SMALLEST = sys.float_info.min  # normal double; its inverse is one, too


@dataclass(frozen=True)
class Sum(NumericQuery):
    """The sum of each column, its entries clipped to public bounds.

    Each entry is rounded to a multiple of 2^-30 of its bound (to the next power of two), so that the sum is exact; one
    of more than 2^53 such steps is rounded towards 0 to a float. A row with NULL or NaN in one of the columns is
    dropped; infinities are clipped. One row added or removed changes a column by at most max(|low|, |high|); replaced,
    by at most high - low, or by the former if the other row is dropped: each rounded up to a multiple of 2^10 steps.

    >>> query = Sum(["a", "b"], bounds=[(0, 1), (-2, 2)])
    >>> answer = query.answer({"a": np.array([0.5, 7.0]), "b": np.array([1.0, -9.0])})
    >>> answer.value.tolist(), answer.l1_sensitivity
    ([1.5, -1.0], 3.0)
    """

    names: tuple[str, ...]
    bounds: tuple[Interval, ...]
    kind = "sum"

    def __post_init__(self) -> None:
        names = column_names(self.names)
        settle(self, names=names, bounds=intervals(self.bounds, names))
        assert all(step(ends) > 0.0 for ends in self.bounds)

    @property
    def rules(self) -> tuple[str, ...]:
        """Rows are dropped, entries clipped."""
        return (MISSING_DROPPED, CLIPPED)

    @property
    def shape(self) -> tuple[int, ...]:
        """One sum per column."""
        return (len(self.names),)

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """Integer sums of one batch, in steps of the grid."""
        values = columns.matrix(batch, self.names)
        return np.asarray(rounded(values[~np.isnan(values).any(axis=1)], self.bounds).sum(axis=0))

    def finish(self, total: IntArray) -> Array:
        """From grid steps to sums."""
        return np.asarray(whole_sums.to_floats(total) * np.array([step(ends) for ends in self.bounds]))

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """The farthest corner of the box; if replaced, its diagonal if that is longer."""
        corner, widths = self._changes()
        added = Norms(whole_sums.norm_up(corner), round_up(sum(map(Fraction, corner), Fraction(0))))
        if neighbours is Neighbours.ADD_REMOVE:
            return added
        l1 = round_up(sum(map(Fraction, widths), Fraction(0)))
        return Norms(max(added.l2, whole_sums.norm_up(widths)), max(added.l1, l1))

    def known_changes(self, neighbours: Neighbours, rows: int) -> Changes | None:
        """A corner if nothing is negative, else a box; if rows are replaced, a box."""
        added, widths = ([round_up(rows * Fraction(size)) for size in sizes] for sizes in self._changes())
        if neighbours is Neighbours.ADD_REMOVE:
            return (corner if all(low >= 0.0 for low, _ in self.bounds) else box)(_one_or_each(added))
        if all(width >= most for width, most in zip(widths, added, strict=True)):
            return box(_one_or_each(widths))
        return None

    def _changes(self) -> tuple[list[float], list[float]]:
        """The most that each column changes by a row that is added or removed, and by one that is replaced."""
        steps = [(*whole_sums.whole_steps(*ends, step(ends)), step(ends)) for ends in self.bounds]
        added = [whole_sums.spaced(max(abs(low), abs(high))) * width for low, high, width in steps]
        return added, [whole_sums.spaced(high - low) * width for low, high, width in steps]


@dataclass(frozen=True)
class Mean(NumericQuery):
    """The sums from which the mean of each column is computed; ``estimate`` turns their release into means.

    A mean is not a sum over rows, so two honest ways are offered, both of which release sums:

    - The default releases the vector (s_1, ..., s_d, n) with one noise for all of it: s_j adds up
      (x_j - middle_j) / half-width_j, which lies in [-1, 1], and n counts the rows. One row added or removed moves it
      by at most sqrt(d + 1), one replaced by at most max(2 sqrt(d), sqrt(d + 1)).
    - ``rows=n`` says that the number of rows is public, which only the replace relation allows. Then only the s_j are
      released, one row moves them by at most 2 sqrt(d), and a row with NULL or NaN counts as the middle of its bounds.

    >>> query = Mean("age", bounds=(0, 100))
    >>> answer = query.answer({"age": np.array([20.0, 40.0, 60.0])})
    >>> answer.value.round(6).tolist(), query.estimate(answer.value).round(6).tolist()
    ([-0.6, 3.0], [40.0])
    """

    names: tuple[str, ...]
    bounds: tuple[Interval, ...]
    rows: int | None = None
    kind = "mean"

    def __post_init__(self) -> None:
        names = column_names(self.names)
        settle(self, names=names, bounds=intervals(self.bounds, names))
        for ends, half in zip(self.bounds, self._half.tolist(), strict=True):
            if not _SMALLEST <= half <= 1.0 / _SMALLEST:
                raise InvalidInput(f"bounds={ends} have a half width that is too small or large: change the units.")
        if self.rows is not None:
            settle(self, rows=validation.whole_number("rows", self.rows))

    @property
    def rules(self) -> tuple[str, ...]:
        """Rows are dropped, unless their number is public; entries are clipped."""
        kept = "The number of rows is public; a row with NULL or NaN counts as the middle of its bounds."
        return (MISSING_DROPPED if self.rows is None else kept, CLIPPED)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sums, and the count unless it is public."""
        return (len(self.names) + (self.rows is None),)

    def zero(self) -> IntArray:
        """Sums and a count of rows, which is compared with a public one."""
        return np.zeros(len(self.names) + 1, dtype=np.int64)

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """Integer sums of the centred rows, and their number."""
        values = columns.matrix(batch, self.names)
        kept = values[~np.isnan(values).any(axis=1)]
        scaled = (np.clip(kept, *np.array(self.bounds).T) - self._middle) / self._half
        sums = rounded(scaled, [(-1.0, 1.0)] * len(self.names)).sum(axis=0)
        return np.append(sums, len(kept) if self.rows is None else len(values))

    def finish(self, total: IntArray) -> Array:
        """From grid steps to sums; a public number of rows must be right."""
        sums = whole_sums.to_floats(total[:-1]) * step((-1.0, 1.0))
        if self.rows is None:
            return np.append(sums, float(total[-1]))
        if total[-1] != self.rows:
            raise InvalidInput(f"rows={self.rows} is not the number of rows of the data: pass it, or leave rows out.")
        return sums

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """Of (scaled entries in [-1, 1], count)."""
        size = len(self.names)
        if self.rows is not None:
            if neighbours is not Neighbours.REPLACE:
                raise InvalidInput(f"rows={self.rows} is public only if rows are replaced: pass neighbours='replace'.")
            return Norms(whole_sums.norm_up([2.0] * size), 2.0 * size)
        added = Norms(whole_sums.norm_up([1.0] * (size + 1)), size + 1.0)
        if neighbours is Neighbours.ADD_REMOVE:
            return added
        return Norms(max(added.l2, whole_sums.norm_up([2.0] * size)), max(added.l1, 2.0 * size))

    def known_changes(self, neighbours: Neighbours, rows: int) -> Changes | None:
        """A box, unless a row may be replaced or dropped: then two boxes, of which only the lengths are used."""
        if self.rows is not None:
            return box(2.0)
        return box(float(rows)) if neighbours is Neighbours.ADD_REMOVE else None

    def norms(self, neighbours: Neighbours | str, unit: Any = None) -> Norms:  # noqa: ANN401
        """Largest change by one unit; a public number of rows goes with the unit of one row only."""
        unit = ROW if unit is None else unit
        if self.rows is not None and unit.id is not None:
            raise InvalidInput(f"rows={self.rows} cannot hold when a user's rows are bounded: leave rows out.")
        return super().norms(neighbours, unit)

    def estimate(self, released: ArrayLike) -> Array:
        """The means, from a released value: post-processing, no privacy spent. A noisy count below 1 is taken as 1."""
        noisy = validation.array(released, self.shape, "released")
        count = float(self.rows) if self.rows is not None else max(float(noisy[-1]), 1.0)
        result: Array = self._middle + self._half * np.clip(noisy[: len(self.names)] / count, -1.0, 1.0)
        return result

    @property
    def _middle(self) -> Array:
        return np.array([0.5 * low + 0.5 * high for low, high in self.bounds])

    @property
    def _half(self) -> Array:
        return np.array([0.5 * high - 0.5 * low for low, high in self.bounds])


def _one_or_each(bounds: list[float]) -> float | list[float]:
    """One bound for all entries if they are equal."""
    return bounds[0] if len(set(bounds)) == 1 else bounds


def step(ends: Interval, bits: int = BITS) -> float:
    """The grid of one column."""
    return whole_sums.grid_step(max(abs(ends[0]), abs(ends[1])), bits)


def rounded(values: Array, bounds: tuple[Interval, ...] | list[Interval], bits: int = BITS) -> IntArray:
    """Entries clipped to their bounds, in whole steps of the grid that lie within the bounds, too."""
    steps = np.array([step(ends, bits) for ends in bounds])
    within = [whole_sums.whole_steps(*ends, width) for ends, width in zip(bounds, steps.tolist(), strict=True)]
    lowest, highest = np.array(within).T
    return np.asarray(np.clip(np.rint(values / steps), lowest, highest).astype(np.int64))
