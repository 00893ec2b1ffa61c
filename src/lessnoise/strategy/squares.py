"""W^T W of the questions along one axis, as something that is multiplied quickly and never written down if it is large.

The squares of prefixes, ranges and totals are straight lines in both cells: for i <= j, an entry is
(1, z_i) C (1, z_j)^T with z_i = i. For prefixes it is n - j, for ranges (i + 1)(n - j), for the total 1. A block of
consecutive cells has squares of the same form, as z only moves, and so have sums over blocks; z is then the mean place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.workload import Factor, Workload


class Squares(Protocol):
    """A symmetric matrix G."""

    @property
    def diagonal(self) -> Array:
        """Of G."""

    def times(self, rows: Array) -> Array:
        """V G."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Any matrix."""

    matrix: Array

    @property
    def diagonal(self) -> Array:
        """Of G."""
        return np.asarray(np.diagonal(self.matrix))

    def times(self, rows: Array) -> Array:
        """V G."""
        return np.asarray(rows @ self.matrix)


@dataclass(frozen=True, eq=False)
class Lines:
    """Entries (1, z_i) C (1, z_j)^T for i < j, and a diagonal of its own.

    >>> lines = Line(np.array([[3.0, -1.0], [0.0, 0.0]]), 0.0).over(3)  # prefixes of three cells
    >>> lines.times(np.eye(3)).tolist()
    [[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]
    """

    places: Array
    coefficients: Array
    diagonal: Array

    def times(self, rows: Array) -> Array:
        """V G, by running sums."""
        return line_times(rows, self.places, self.coefficients) + rows * self.diagonal


@dataclass(frozen=True, eq=False)
class Line:
    """Squares of any number of consecutive cells: C, and how much the diagonal has beyond it."""

    coefficients: Array
    own: float

    def over(self, size: int) -> Lines:
        """For cells 0, 1, ..., size - 1."""
        z = np.arange(size, dtype=np.float64)
        c = self.coefficients
        return Lines(z, c, c[0, 0] + (c[0, 1] + c[1, 0]) * z + c[1, 1] * z * z + self.own)

    def moved(self, starts: Array) -> Array:
        """C of the blocks that start at some cells, with places counted from there: one for each start."""
        c = self.coefficients
        left = c[0] + starts[:, np.newaxis] * c[1]  # (1, s + z) C = (1, z) [c_0 + s c_1; c_1]
        rows = np.stack([left, np.broadcast_to(c[1], left.shape)], axis=1)
        first = rows[:, :, 0] + starts[:, np.newaxis] * rows[:, :, 1]
        return np.stack([first, rows[:, :, 1]], axis=2)

    def plus(self, other: Line, weight: float = 1.0) -> Line:
        """Of both, the other with a weight."""
        return Line(self.coefficients + weight * other.coefficients, self.own + weight * other.own)


def line_times(rows: Array, z: Array, c: Array) -> Array:
    """V G by running sums along the last axis, for G with entries (1, z_i) C (1, z_j)^T, i < j, and no diagonal."""
    moments = rows * z
    before, first = np.cumsum(rows, axis=-1), np.cumsum(moments, axis=-1)
    found = (before - rows) * (c[0, 0] + c[0, 1] * z) + (first - moments) * (c[1, 0] + c[1, 1] * z)
    found += (before[..., -1:] - before) * (c[0, 0] + c[1, 0] * z)
    return np.asarray(found + (first[..., -1:] - first) * (c[0, 1] + c[1, 1] * z))


def line_of(factor: Factor) -> Line | None:
    """The squares of a factor as lines; None for those of a matrix."""
    n = float(factor.size)
    found = {
        "identity": Line(np.zeros((2, 2)), 1.0),
        "total": Line(np.array([[1.0, 0.0], [0.0, 0.0]]), 0.0),
        "prefixes": Line(np.array([[n, -1.0], [0.0, 0.0]]), 0.0),
        "ranges": Line(np.array([[n, -1.0], [n, -1.0]]), 0.0),
    }
    return found.get(factor.kind)


def lines_of(workload: Workload) -> Line | None:
    """The squares of a workload with one axis as lines; None if a matrix is among its questions."""
    check_axis(workload)
    found: Line | None = Line(np.zeros((2, 2)), 0.0)
    for weight, (factor,) in workload.terms():
        line = line_of(factor)
        found = None if line is None or found is None else found.plus(line, weight)
    return found


def squares_of(workload: Workload) -> Squares:
    """W^T W of a workload with one axis."""
    line = lines_of(workload)
    return Dense(workload.gram()) if line is None else line.over(workload.cells)


def check_axis(workload: Workload, size: int | None = None) -> None:
    """One axis, of a given size."""
    if len(workload.shape) != 1 or size not in (None, *workload.shape):
        wanted = "one axis" if size is None else f"shape={(size,)}"
        raise InvalidInput(f"workload.shape={workload.shape} is not {wanted}: pass questions about such a table.")
