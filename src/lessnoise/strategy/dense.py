"""A strategy that is a matrix, for tables of up to some thousand cells."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.strategy.base import Strategy
from lessnoise.strategy.exactness import exact_dot, product_error, unit

if TYPE_CHECKING:
    from fractions import Fraction

    from lessnoise._common import Array
    from lessnoise.workload import Factor, Workload

_ULP = 2.0**-53
_RANK = 1e-10  # of the largest singular value: smaller ones are taken for 0


@dataclass(frozen=True)
class Dense(Strategy):
    """Every row of a matrix is measured. ``table`` is the shape of the table; by default it is a line.

    >>> pair = Dense(FrozenMatrix([[1, 0], [0, 1], [1, 1]]))
    >>> pair.measure(np.array([2.0, 3.0])).tolist(), pair.fit(np.array([2.0, 3.0, 8.0])).round(9).tolist()
    ([2.0, 3.0, 5.0], [3.0, 4.0])
    """

    matrix: FrozenMatrix
    table: tuple[int, ...] | None = None

    kind: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        if not isinstance(self.matrix, FrozenMatrix):
            raise InvalidInput("matrix is not that of a strategy: pass FrozenMatrix(values).")
        cells = self.matrix.shape[1]
        shape = (cells,) if self.table is None else validation.shape(self.table, "table")
        if math.prod(shape) != cells:
            raise InvalidInput(f"table={shape} has not the {cells} cells of the matrix: pass the table's shape.")
        settle(self, table=shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        assert self.table is not None
        return self.table

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.matrix.shape[0]

    @property
    def whole(self) -> bool:
        """All entries are whole numbers."""
        return bool((self.matrix.array == np.rint(self.matrix.array)).all())

    @property
    def nonnegative(self) -> bool:
        """No entry is below 0."""
        return bool((self.matrix.array >= 0.0).all())

    def roundings(self) -> float:
        """How often an entry of A x is rounded, relative to the sum of the sizes of its terms."""
        return float(self.matrix.shape[1])

    def magnitudes(self, table: Array) -> Array:
        """|A| x."""
        return np.asarray(self._flat(table) @ np.abs(self.matrix.array).T)

    def measure(self, table: Array) -> Array:
        """A x, as floats."""
        return np.asarray(self._flat(table) @ self.matrix.array.T)

    def error(self, table: Array) -> float:
        """A dot product of n terms is within n 2^-53 of the sum of their sizes; 0 where no sum needs a rounding."""
        flat = self._flat(table)
        with np.errstate(over="ignore", invalid="ignore"):
            sizes = self.magnitudes(np.abs(table))
        return product_error(flat, sizes, unit(self.matrix.array) or 0, self.matrix.shape[1])

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as a real number."""
        return exact_dot(self.matrix.array[index], table.reshape(-1))

    def fit(self, measured: Array) -> Array:
        """The least-squares table."""
        found = measured @ _inverse(self.matrix).T
        return np.asarray(found.reshape(*measured.shape[:-1], *self.shape))

    def columns(self) -> list[Moves]:
        """The sizes in the distinct columns."""
        sizes = np.unique(np.sort(np.abs(self.matrix.array), axis=0).T, axis=0)
        return [Moves.of(column[column > 0.0].tolist()) for column in sizes if column.any()]

    def norm(self, order: int) -> float:
        """The largest l1 or l2 norm of a column, rounded up."""
        sizes = np.abs(self.matrix.array)
        largest = float((sizes.sum(axis=0) if order == 1 else np.sqrt(np.square(sizes).sum(axis=0))).max())
        return largest * (1.0 + (len(sizes) + 4) * _ULP)

    def distance(self, order: int) -> float:
        """No two columns are further apart; rounded up."""
        a, largest = self.matrix.array, 0.0
        if order == 2:
            gram = a.T @ a
            sizes = np.diagonal(gram)
            square = max(float((sizes[:, np.newaxis] + sizes - 2.0 * gram).max()), 0.0)
            return math.sqrt(square + 4.0 * (len(a) + 4) * _ULP * self.norm(2) ** 2) * (1.0 + 4.0 * _ULP)
        for column in a.T:
            largest = max(largest, float(np.abs(a - column[:, np.newaxis]).sum(axis=0).max()))
        return largest * (1.0 + (len(a) + 4) * _ULP)

    def trace(self, workload: Workload) -> float:
        """tr(W^T W (A^T A)^+); infinite if the workload asks what A does not determine."""
        return self.gram_trace(workload.gram())

    def factor_trace(self, factor: Factor) -> float:
        """The same for the questions along one axis."""
        return self.gram_trace(factor.gram())

    def gram_trace(self, gram: Array) -> float:
        """tr(G (A^T A)^+)."""
        inverse = _inverse(self.matrix)
        lost = gram - gram @ (inverse @ self.matrix.array)
        if float(np.abs(lost).max()) > 1e-6 * float(np.abs(gram).max()):
            return math.inf
        return float(np.einsum("ij,ij->", gram @ inverse, inverse))

    def variances(self, questions: Array) -> Array:
        """q (A^T A)^+ q^T for each row q."""
        return np.asarray(np.square(questions @ _inverse(self.matrix)).sum(axis=-1))

    def _flat(self, table: Array) -> Array:
        return table.reshape(*table.shape[: table.ndim - len(self.shape)], -1)

    def __str__(self) -> str:
        return f"{self.rows} questions about {self.matrix.shape[1]} cells"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "matrix": self.matrix.to_dict(), "table": list(self.shape)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Dense:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "matrix", "table"), "strategy")
        return cls(FrozenMatrix.from_dict(given["matrix"]), given["table"])


@functools.lru_cache(maxsize=8)
def _inverse(matrix: FrozenMatrix) -> Array:
    """A^+, by a Cholesky factor where the columns are independent, else by singular values."""
    from scipy import linalg

    a = matrix.array
    try:
        factor = linalg.cho_factor(a.T @ a)
        if np.ptp(np.log(np.abs(np.diagonal(factor[0])))) < 15.0:
            found: Array = linalg.cho_solve(factor, a.T)
            return found
    except linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(a, rcond=_RANK))
