"""Sums of the cells of a column in every group: its distribution function, and all its ranges."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.query import Axis
from lessnoise.table.aggregates import COUNT
from lessnoise.table.histograms import MOST_CELLS, CellCounts, cell_words
from lessnoise.workload import Workload, identity, prefixes
from lessnoise.workload import ranges as all_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.query import Measure
    from lessnoise.table.aggregates import Aggregate

CDF, RANGES = "cdf", "ranges"
_HARDER = 3.0  # the deviation of a sum of cells beside that of a count, at the same epsilon


@dataclass(frozen=True)
class CellSums(CellCounts):
    """Sums of neighbouring cells. Build one with :func:`cdf` or :func:`ranges`."""

    shares: bool = True

    @cached_property
    def _ends(self) -> list[str]:
        words = [each.split(" to ") for each in cell_words(self.along)]
        return [words[0][0], *(each[1] for each in words)]

    @cached_property
    def names(self) -> list[str]:
        """Of its numbers: by the upper end of the cells, or by both ends of a range."""
        column, ends = self.along.column, self._ends
        if self.kind == CDF:
            what = "share" if self.shares else "count"
            return [f"{what} of {column} up to {end}" for end in ends[1:]]
        return [f"count of {column} from {low} to {high}" for low, high in itertools.combinations(ends, 2)]

    @property
    def summary(self) -> str:
        """What it is, for a plan."""
        what = "distribution function" if self.kind == CDF else "all ranges"
        return f"{what} of {self.along.column} in {self.along.size} cells"

    @property
    def whole(self) -> bool:
        """Sums that fit noisy sums best are not whole."""
        return False

    @property
    def workload(self) -> Workload:
        """What is asked of the cells of one group."""
        return prefixes(self.along.size) if self.kind == CDF else all_ranges(self.along.size)

    def estimate(self, measure: Measure, noisy: Array, deviation: float = 0.0) -> Array:
        """From cells to their sums, or to the share of the rows up to each of them.

        Where no row is left, nothing is known of shares: they rise evenly, or are NaN for intervals.
        """
        del measure
        sums = np.cumsum(noisy, axis=-1)
        if self.kind == RANGES:
            first, last = np.triu_indices(sums.shape[-1])
            before = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
            return np.asarray(before[..., last + 1] - before[..., first])
        if not self.shares:
            return sums
        rows = sums[..., -1:]
        even = np.arange(1.0, sums.shape[-1] + 1.0) / sums.shape[-1] if deviation else np.full(sums.shape[-1], np.nan)
        even[-1] = 1.0
        return np.where(rows >= 1.0, np.clip(sums / np.maximum(rows, 1.0), 0.0, 1.0), even)

    @property
    def limits(self) -> tuple[Array | float, Array | float]:
        """Between which ends its numbers lie."""
        return (0.0, 1.0) if self.shares else (-math.inf, math.inf)

    def precision(self, _: Measure | None = None) -> float:
        """Some times that of a count."""
        return _HARDER * COUNT.precision()

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {**super().to_dict(), **({"shares": self.shares} if self.kind == CDF else {})}


def cdf(
    column: str,
    bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    edges: Sequence[float] | None = None,
    *,
    shares: bool = True,
) -> CellSums:
    """The share of the rows of each group up to every edge of ``bins`` equal cells of ``bounds``, or of ``edges``.

    With ``shares=False`` it is the number of rows. The noise is chosen for sums of the first cells: sums of noisy
    counts would have several times the error. Rows outside the cells do not count.

    >>> cdf("age", bounds=(0, 120), bins=3).names
    ['share of age up to 40', 'share of age up to 80', 'share of age up to 120']
    """
    return CellSums(CDF, axis=_cells(column, bounds, bins, edges), shares=shares)


def ranges(
    column: str,
    bounds: tuple[float, float] | None = None,
    bins: int | None = None,
    edges: Sequence[float] | None = None,
) -> CellSums:
    """The number of rows of each group between any two edges of ``bins`` equal cells of ``bounds``, or of ``edges``.

    >>> ranges("age", edges=[0, 18, 65]).names
    ['count of age from 0 to 18', 'count of age from 0 to 65', 'count of age from 18 to 65']
    """
    axis = _cells(column, bounds, bins, edges)
    if axis.size * (axis.size + 1) // 2 > MOST_CELLS:
        raise InvalidInput(
            f"cells={axis.size} of {column!r} have more than {MOST_CELLS} ranges: pass fewer, or use cdf(..., "
            "shares=False) and take differences."
        )
    return CellSums(RANGES, axis=axis, shares=False)


def _cells(column: str, bounds: tuple[float, float] | None, bins: int | None, edges: Sequence[float] | None) -> Axis:
    axis = Axis(column, bounds, bins, edges)  # type: ignore[arg-type]
    if axis.size > MOST_CELLS:
        raise InvalidInput(f"cells={axis.size} of {column!r} are more than {MOST_CELLS}: pass fewer.")
    return axis


def workload_of(measure: Measure, served: Sequence[Aggregate], groups: int) -> Workload | None:
    """What is asked of the cells of a measure in all groups, if more than the cells themselves."""
    # Each question counts by the number of its fellows, so that all kinds weigh alike.
    together = [each.queries**-0.5 * each for each in workloads_of(measure, served, groups)]
    return functools.reduce(operator.add, together) if together else None


def workloads_of(measure: Measure, served: Sequence[Aggregate], groups: int) -> list[Workload]:
    """The kinds of sums that are asked of the cells of a measure in all groups; none if only cells are."""
    asked = [one.workload for one in served if isinstance(one, CellSums)]
    if measure.kind == "cells":  # quantiles, from a distribution function
        asked.append(prefixes(measure.width))
    if not asked or measure.width == 1:
        return []
    if any(isinstance(one, CellCounts) and not isinstance(one, CellSums) for one in served):
        asked.append(identity(measure.width))
    return [identity(groups) * each if groups > 1 else each for each in asked]
