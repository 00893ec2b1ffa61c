"""What can be asked of the rows of a table or of its groups: frozen descriptions, and estimates from releases."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.query import CLAMP, ROWS, Axis, Measure
from lessnoise.table.chosen import cells_for, deviation, is_chosen, tree_deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array


_DENSER = 0.6  # a rank off moves a quantile by so much of 1/n of the range: rows are denser in the middle of it


@dataclass(frozen=True)
class Aggregate:
    """One statistic of a group. Build one with :func:`count`, :func:`mean` and the other functions of this module."""

    kind: str
    column: str | None = None
    bounds: tuple[float, float] | None = None
    probabilities: tuple[float, ...] = ()
    bins: int = 0

    def __post_init__(self) -> None:
        if self.column is not None:
            validation.text("column", self.column)
            settle(self, bounds=Measure("total", self.column, self.bounds).bounds)
            if self.bounds is None:
                raise InvalidInput(
                    f"bounds=None of {self.kind} of {shown(self.column)}: pass (lowest, highest), known without "
                    "looking at the data."
                )

    @property
    def names(self) -> list[str]:
        """Of the numbers that it gives for each group."""
        if self.kind == "quantiles":
            return [f"{p:g} quantile of {self.column}" for p in self.probabilities]
        return [self.kind if self.column is None else f"{self.kind} of {self.column}"]

    @property
    def summary(self) -> str:
        """What it gives, for a plan."""
        return ", ".join(self.names)

    @property
    def rules(self) -> list[str]:
        """Which rows do not count for it, and what is clipped."""
        if self.column is None:
            return []
        return [
            f"rows with NULL or NaN in {self.column!r} do not count for its statistics",
            f"values of {self.column!r} are clipped to {self.bounds}",
        ]

    @property
    def whole(self) -> bool:
        """Whether its numbers are counts."""
        return self.kind == "count"

    @property
    def measure(self) -> Measure:
        """What must be measured for it."""
        if self.kind == "count":
            return ROWS
        assert self.column is not None
        if self.kind == "sum":
            return Measure("total", self.column, self.bounds)
        if self.kind == "quantiles":
            return Measure("cells", axis=Axis(self.column, bounds=self.bounds, bins=self.cells, outside=CLAMP))
        return Measure("moments", self.column, self.bounds, degree=1 if self.kind == "mean" else 2)

    def estimate(self, measure: Measure, noisy: Array, deviation: float = 0.0) -> Array:
        """From the measure's noisy numbers, along the last axis, to the aggregate's: post-processing.

        ``deviation``: of the noise on each, for estimates that would blow up; 0 says that what is given may be true.
        """
        del deviation
        if self.kind == "quantiles":
            assert self.bounds is not None
            low, high = self.bounds
            return low + (high - low) * _quantiles(noisy, self.probabilities)
        return self.of_sums(measure, [noisy @ weights for weights in self.sums(measure)])[..., np.newaxis]

    def sums(self, measure: Measure) -> list[Array]:
        """The sums of a measure's numbers that it is made of, each by its weights; none if there are no such sums.

        For Bernstein polynomials of degree d the number of rows is the sum of all, the sum of t is that of i b_i/d,
        and the sum of t^2 for d = 2 is b_2.
        """
        if self.kind not in ("count", "sum", "mean", "variance"):
            return []
        if self.kind == "count":
            return [np.ones(measure.width)]
        if self.kind == "sum":
            return [np.array([measure.unit]) if measure.kind == "total" else _of_sum(measure)]
        degree, size = measure.degree, measure.width
        powers = [np.arange(size) <= degree, np.arange(size) / degree * (np.arange(size) <= degree)]
        powers += [np.arange(size) == 2] if self.kind == "variance" else []
        return [weights.astype(np.float64) for weights in powers]

    def of_sums(self, measure: Measure, sums: Sequence[Array]) -> Array:
        """From these sums to the statistic."""
        if self.kind == "count":
            return sums[0] if measure.kind == "rows" else np.rint(sums[0])
        if self.kind == "sum":
            return sums[0]
        assert self.bounds is not None
        low, high = self.bounds
        rows = np.maximum(sums[0], 1.0)
        mean = np.clip(sums[1] / rows, 0.0, 1.0)
        if self.kind == "mean":
            return np.asarray(low + (high - low) * mean)
        return np.asarray((high - low) ** 2 * np.clip(sums[2] / rows - mean**2, 0.0, 0.25))

    @property
    def limits(self) -> tuple[Array | float, Array | float]:
        """Between which ends its numbers lie, for draws of the noise that leave all open."""
        return -math.inf, math.inf

    @property
    def cells(self) -> int:
        """Of quantiles: as the caller said, or as for one group."""
        assert self.bounds is not None
        return self.bins or cells_for(self.probabilities, self.bounds, 1)

    def for_groups(self, groups: int | None) -> Aggregate:
        """With the cells of quantiles settled, unless the caller did that; None for private keys."""
        if self.kind != "quantiles" or self.bins:
            return self
        assert self.bounds is not None
        return replace(self, bins=cells_for(self.probabilities, self.bounds, groups))

    @property
    def resolution(self) -> float:
        """By how much an interval is widened on either side: a quarter of a cell, for quantiles within cells."""
        if self.kind != "quantiles":
            return 0.0
        assert self.bounds is not None
        return 0.25 * (self.bounds[1] - self.bounds[0]) / self.cells

    def precision(self, measure: Measure | None = None) -> float:
        """The deviation of its error at epsilon 1, in its own range, but for the number of rows: for the split.

        ``measure``: from which it is read, if that is another than its own.
        """
        if measure is not None and measure.kind == "moments" and self.kind in ("count", "sum"):
            # Noise of variance 2 on every number.
            weights = np.ones(measure.width) if self.kind == "count" else _of_sum(measure) / self.measure.unit
            return float(np.sqrt(2.0 * weights @ weights))
        if self.kind == "quantiles":
            chosen = is_chosen(self.probabilities, self.cells)
            ranks = deviation(tuple(sorted(set(self.probabilities)))) if chosen else tree_deviation(self.cells)
            return _DENSER * ranks
        return {"count": 1.36, "sum": math.sqrt(2.0), "mean": 1.0, "variance": 2.0}[self.kind]

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        values: dict[str, object] = {"aggregate": self.kind}
        if self.column is not None and self.bounds is not None:
            values |= {"column": self.column, "bounds": list(self.bounds)}
        if self.kind == "quantiles":
            values |= {"probabilities": list(self.probabilities), "bins": self.bins}
        return values


def _quantiles(cells: Array, probabilities: tuple[float, ...]) -> Array:
    """Where the distribution function reaches the probabilities, as shares of the range; linear within a cell.

    Noise can make the sums of cells fall: halfway between the largest so far and the smallest to come they never do,
    so that the quantiles are in order.
    """
    totals = np.cumsum(cells, axis=-1)
    so_far = np.maximum.accumulate(totals, axis=-1)
    to_come = np.minimum.accumulate(totals[..., ::-1], axis=-1)[..., ::-1]
    rising = np.maximum(0.5 * (so_far + to_come), 0.0)
    size, found = cells.shape[-1], []
    for probability in probabilities:
        goal = probability * rising[..., -1:]
        cell = np.minimum((rising < goal).sum(axis=-1, keepdims=True), size - 1)
        top = np.take_along_axis(rising, cell, axis=-1)
        below = np.where(cell > 0, np.take_along_axis(rising, np.maximum(cell - 1, 0), axis=-1), 0.0)
        height = top - below
        share = np.where(height > 0.0, (goal - below) / np.where(height > 0.0, height, 1.0), 0.5)
        inside = (cell + np.clip(share, 0.0, 1.0)) / size
        found.append(np.where(rising[..., -1:] > 0.0, inside, probability))
    return np.concatenate(found, axis=-1)


def _of_sum(moments: Measure) -> Array:
    """What each number counts for in the sum of the values: the sum of x is low n + (high - low) sum of i b_i/d."""
    assert moments.bounds is not None
    (low, high), degree = moments.bounds, moments.degree
    weights = np.zeros(moments.width)
    weights[: degree + 1] = low + (high - low) * np.arange(degree + 1.0) / degree
    return weights


COUNT = Aggregate("count")


def count() -> Aggregate:
    """How many rows.

    >>> count().names
    ['count']
    """
    return COUNT


def sum(column: str, bounds: tuple[float, float]) -> Aggregate:  # noqa: A001
    """The sum of a column, clipped to its ``bounds``, which are known without looking at the data."""
    return Aggregate("sum", column, bounds)


def mean(column: str, bounds: tuple[float, float]) -> Aggregate:
    """The mean of a column, clipped to its ``bounds``; its sum and the number of rows share one release."""
    return Aggregate("mean", column, bounds)


def variance(column: str, bounds: tuple[float, float]) -> Aggregate:
    """The variance of a column, clipped to its ``bounds``; a mean of the same column comes from the same release."""
    return Aggregate("variance", column, bounds)


def quantiles(
    column: str, probabilities: Sequence[float], bounds: tuple[float, float], bins: int | None = None
) -> Aggregate:
    """Quantiles of a column, found in cells of equal width between its ``bounds``.

    A few quantiles are chosen privately, the middle one first; many are read from one private distribution. Without
    ``bins`` the number of cells follows from the bounds and the number of groups.

    >>> quantiles("age", [0.25, 0.5, 0.75], bounds=(0, 120)).names
    ['0.25 quantile of age', '0.5 quantile of age', '0.75 quantile of age']
    """
    given = (probabilities,) if isinstance(probabilities, (int, float)) else tuple(probabilities)
    if not given:
        raise InvalidInput("probabilities=() is empty: pass numbers between 0 and 1, such as (0.25, 0.5, 0.75).")
    checked = tuple(validation.probability(f"probabilities[{i}]", p) for i, p in enumerate(given))
    cells = 0 if bins is None else validation.whole_number("bins", bins, 2)
    return Aggregate("quantiles", column, bounds, checked, cells)
