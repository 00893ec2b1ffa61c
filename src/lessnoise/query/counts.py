"""Counts of points on a grid, the 2-D count query, with its exact sensitivities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class CountQuery:
    """Counts per cell, for records of one point each: an individual with several points needs a larger sensitivity.

    ``value[i, j]`` counts the points in row i of the first coordinate and column j of the second.
    """

    value: NDArray[np.float64]
    bounds: tuple[Interval, Interval]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counts, for a mechanism's ``shape``."""
        return self.value.shape

    def sensitivity(self, neighbours: Neighbours | str) -> float:
        """Largest l2 change by one individual: 1 if added or removed, sqrt(2) if replaced.

        A replaced point leaves one cell and enters another.

        >>> grid_counts([[0.5, 0.5]], bins=(2, 2), bounds=((0, 1), (0, 1))).sensitivity("replace") == 2**0.5
        True
        """
        return 1.0 if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE else math.sqrt(2.0)

    def l1_sensitivity(self, neighbours: Neighbours | str) -> float:
        """Largest l1 change by one individual: 1 if added or removed, 2 if replaced."""
        return 1.0 if Neighbours.of(neighbours) is Neighbours.ADD_REMOVE else 2.0


def grid_counts(
    points: ArrayLike,
    *,
    bins: tuple[int, int] = (89, 89),
    bounds: tuple[Interval, Interval],
) -> CountQuery:
    """Count points in the cells of an even grid over ``bounds``; points outside are dropped.

    The bounds are public knowledge and must be given: reading them from the points would leak them.
    Every interval is half open except the last of each side, as in :func:`numpy.histogram2d`.

    >>> counts = grid_counts([[0.1, 0.1], [0.2, 0.4], [0.9, 0.9], [5, 5]], bins=(2, 2), bounds=((0, 1), (0, 1)))
    >>> counts.value.tolist()
    [[2.0, 0.0], [0.0, 1.0]]
    """
    cells = _bins(bins)
    box = _bounds(bounds)
    first, second = _points(points).T
    value = np.histogram2d(first, second, bins=cells, range=box)[0]
    value.setflags(write=False)
    return CountQuery(value, box)


def _bins(bins: object) -> tuple[int, int]:
    if not isinstance(bins, Sequence) or isinstance(bins, str) or len(bins) != 2:
        raise InvalidInput(f"bins={bins!r} is not a pair: pass the cells per side, such as (89, 89).")
    return validation.whole_number("bins[0]", bins[0]), validation.whole_number("bins[1]", bins[1])


def _bounds(bounds: object) -> tuple[Interval, Interval]:
    form = "pass ((lowest, highest), (lowest, highest)), known without looking at the points."
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise InvalidInput(f"bounds={bounds!r} is not a pair of intervals: {form}")
    intervals = []
    for side, interval in enumerate(bounds):
        if not isinstance(interval, Sequence) or isinstance(interval, str) or len(interval) != 2:
            raise InvalidInput(f"bounds[{side}]={interval!r} is not an interval: {form}")
        low = validation.number(f"bounds[{side}][0]", interval[0])
        high = validation.number(f"bounds[{side}][1]", interval[1])
        if low >= high:
            raise InvalidInput(
                f"bounds[{side}]={(low, high)} does not run from low to high: pass the smaller end first."
            )
        intervals.append((low, high))
    return intervals[0], intervals[1]


def _points(points: ArrayLike) -> NDArray[np.float64]:
    form = "pass an (n, 2) array, one row of two coordinates per point."
    result = validation.real_array(points, "points", form=form, repair="drop or repair such rows first.")
    if result.ndim != 2 or result.shape[1] != 2:
        raise InvalidInput(f"points.shape={result.shape} is not (n, 2): {form}")
    return result
