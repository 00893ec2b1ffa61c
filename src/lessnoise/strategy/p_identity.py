"""Every cell with a weight, and a few weighted sums of cells: A = [diag(d); B] (McKenna et al., PVLDB 2018)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.harmless import shown
from lessnoise.strategy.along_line import AlongLine
from lessnoise.strategy.exactness import exact_dot, product_error, unit
from lessnoise.strategy.woodbury import Woodbury

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array
    from lessnoise.strategy.squares import Line


@dataclass(frozen=True)
class PIdentity(AlongLine):
    """The cells of one axis times ``weights``, and the rows of ``sums``, if there are any; nothing is negative.

    >>> strategy = PIdentity.of([0.5, 0.5], [[0.5, 0.5]])
    >>> strategy.measure(np.array([3.0, 1.0])).tolist(), strategy.norm(1)
    ([1.5, 0.5, 2.0], 1.0)
    >>> strategy.fit(np.array([1.5, 0.5, 2.0])).round(12).tolist()
    [3.0, 1.0]
    """

    weights: Deviations
    sums: FrozenMatrix | None = None

    kind: ClassVar[str] = "p-identity"

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Deviations):
            raise InvalidInput(f"weights={shown(self.weights)} are none: use PIdentity.of with one for each cell.")
        if self.sums is None:
            return
        if not isinstance(self.sums, FrozenMatrix):
            raise InvalidInput(f"sums={shown(self.sums)} is not a FrozenMatrix: use PIdentity.of.")
        if self.sums.shape[1] != self.weights.size:
            raise InvalidInput(
                f"sums has {self.sums.shape[1]} columns for {self.weights.size} weights: pass one for each cell."
            )
        if (self.sums.array < 0.0).any():
            raise InvalidInput(f"sums has a negative entry {self.sums.array.min():g}: pass numbers of at least 0.")

    @classmethod
    def of(cls, weights: ArrayLike, sums: ArrayLike | None = None) -> PIdentity:
        """From weights, one for each cell, and rows over all cells."""
        rows = None if sums is None or not len(np.asarray(sums)) else FrozenMatrix(sums, "sums")
        return cls(Deviations.of(weights, "weights"), rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return (self.size,)

    @functools.cached_property
    def size(self) -> int:
        """How many cells."""
        return self.weights.size

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.size + len(self._sums)

    @functools.cached_property
    def whole(self) -> bool:
        """All entries of A are whole numbers."""
        return self.unit >= 0

    @functools.cached_property
    def unit(self) -> int:
        """All entries of A are multiples of 2 to this power."""
        units = [unit(np.asarray(self.weights.values)), unit(self._sums)]
        return min(each for each in units if each is not None)

    @functools.cached_property
    def _diagonal(self) -> Array:
        return self.weights.array()

    @functools.cached_property
    def _sums(self) -> Array:
        return np.zeros((0, self.size)) if self.sums is None else self.sums.array

    @functools.cached_property
    def _inverse(self) -> Woodbury:
        return Woodbury(self._diagonal, self._sums)

    def measure(self, table: Array) -> Array:
        """A x, as floats: the cells, then the sums."""
        return np.concatenate([table * self._diagonal, table @ self._sums.T], axis=-1)

    def roundings(self) -> int:
        """How often a term of an entry of :meth:`measure` is rounded, at most."""
        return self.size if len(self._sums) else 1

    @property
    def gain(self) -> float:
        """The most by which a product in :meth:`measure` is multiplied again."""
        return 1.0

    def error(self, table: Array) -> float:
        """How far an entry of ``measure(table)`` may be from A x; 0 if it is exact, as sums of counts are."""
        with np.errstate(over="ignore"):
            sizes = self.measure(np.abs(table))
        return product_error(table, sizes, self.unit, self.roundings(), self.gain)

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as the real number that it is."""
        if index < self.size:
            return self.weight(index) * Fraction(float(table[index]))
        return exact_dot(self._sums[index - self.size], table)

    def weight(self, cell: int) -> Fraction:
        """Of a cell."""
        return Fraction(float(self._diagonal[cell]))

    def sum_row(self, row: int) -> dict[int, Fraction]:
        """The cells in a sum, with their weights."""
        found = self._sums[row]
        return {int(cell): Fraction(float(found[cell])) for cell in np.flatnonzero(found)}

    def transposed(self, measured: Array) -> Array:
        """A^T y."""
        return np.asarray(measured[..., : self.size] * self._diagonal + measured[..., self.size :] @ self._sums)

    def solve(self, values: Array) -> Array:
        """V (A^T A)^-1, for rows V."""
        return self._inverse.solve(values)

    def fit(self, measured: Array) -> Array:
        """The least-squares table A^+ y."""
        return self.solve(self.transposed(measured))

    def given(self, precisions: Array) -> Woodbury:
        """(A^T A + diag(precisions))^-1: as if the cells were known so well from elsewhere."""
        return Woodbury(np.sqrt(self._diagonal**2 + precisions), self._sums)

    def restricted(self, size: int) -> PIdentity:
        """The first cells alone."""
        sums = self._sums[:, :size]
        return self if size == self.size else PIdentity.of(self._diagonal[:size], sums[sums.any(axis=1)])

    def columns(self) -> list[Moves]:
        """The sizes in the distinct columns of A."""
        if not len(self._sums):
            return [Moves.of([weight]) for weight in sorted(set(self.weights.values), reverse=True)]
        columns = np.unique(np.vstack([self._diagonal, self._sums]), axis=1).T
        return list(dict.fromkeys(Moves.of(column) for column in columns.tolist()))

    def power(self, order: int) -> Fraction:
        """The largest sum of powers of the entries of a column, exactly."""
        return max(
            sum((count * Fraction(size) ** order for size, count in moves.sizes), Fraction(0))
            for moves in self.columns()
        )

    def line_trace(self, line: Line) -> float:
        """tr(G (A^T A)^-1) for squares that are lines."""
        return self._inverse.trace(line.over(self.size))

    def matrix(self) -> Array:
        """A itself, for small tables."""
        return np.concatenate([np.diag(self._diagonal), self._sums])

    def __str__(self) -> str:
        cells = "cells" if self.weights.is_constant else "weighted cells"
        return f"{cells} and {len(self._sums)} sums" if len(self._sums) else cells

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""
        sums = None if self.sums is None else self.sums.to_dict()
        return {"kind": self.kind, "weights": self.weights.to_dict(), "sums": sums}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PIdentity:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "weights", "sums"), "strategy")
        validation.choice("strategy kind", given["kind"], [cls.kind])
        sums = None if given["sums"] is None else FrozenMatrix.from_dict(given["sums"], "sums")
        return cls(Deviations.from_dict(given["weights"]), sums)


def unit_columns(rows: Array, norm: float = 1.0) -> PIdentity:
    """[I; T] with every column divided by its sum and multiplied by ``norm``; no column is longer, by any rounding.

    >>> unit_columns(np.array([[1.0, 3.0]])).norm(1)
    1.0
    """
    sums = norm * rows / (1.0 + rows.sum(axis=0))
    sums[sums < 2.0**-60 * norm] = 0.0
    left = (Fraction(norm) - sum(map(Fraction, column), Fraction(0)) for column in sums.T.tolist())
    return PIdentity.of([-round_up(-rest) for rest in left], sums[sums.any(axis=1)])
