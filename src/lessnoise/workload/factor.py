"""The questions along one axis of a table: every cell, the total, all beginnings, all ranges, or rows of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from lessnoise._common import Array

IDENTITY, TOTAL, PREFIXES, RANGES, MATRIX = "identity", "total", "prefixes", "ranges", "matrix"
KINDS = (IDENTITY, TOTAL, PREFIXES, RANGES, MATRIX)


@dataclass(frozen=True)
class Factor:
    """Linear questions F about ``size`` numbers in a row; ``rows`` holds them if they are those of a matrix.

    >>> Factor("prefixes", 3).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    >>> Factor("ranges", 100).queries
    5050
    """

    kind: str
    size: int
    rows: FrozenMatrix | None = None

    def __post_init__(self) -> None:
        validation.choice("kind", self.kind, KINDS)
        validation.whole_number("size", self.size)
        if (self.rows is not None) != (self.kind == MATRIX):
            raise InvalidInput(f"rows={shown(self.rows)} of questions of kind={self.kind!r}: only a matrix has rows.")
        if self.rows is not None and self.rows.shape[1] != self.size:
            raise InvalidInput(f"rows has {self.rows.shape[1]} columns for size={self.size}: pass one for each cell.")

    @property
    def queries(self) -> int:
        """How many questions."""
        if self.rows is not None:
            return self.rows.shape[0]
        return {IDENTITY: self.size, TOTAL: 1, PREFIXES: self.size, RANGES: self.size * (self.size + 1) // 2}[self.kind]

    def matrix(self) -> Array:
        """F itself, one row for each question; ranges in the order of their first cell, then of their last."""
        if self.rows is not None:
            return self.rows.array
        if self.kind == IDENTITY:
            return np.eye(self.size)
        if self.kind == TOTAL:
            return np.ones((1, self.size))
        if self.kind == PREFIXES:
            return np.tril(np.ones((self.size, self.size)))
        first, last = np.triu_indices(self.size)
        places = np.arange(self.size)
        return ((places >= first[:, np.newaxis]) & (places <= last[:, np.newaxis])).astype(np.float64)

    def gram(self) -> Array:
        """F^T F, of which all errors are made."""
        if self.rows is not None:
            return np.asarray(self.rows.array.T @ self.rows.array)
        if self.kind == IDENTITY:
            return np.eye(self.size)
        if self.kind == TOTAL:
            return np.ones((self.size, self.size))
        places = np.arange(self.size, dtype=np.float64)
        after = self.size - np.maximum.outer(places, places)  # ends that are beyond both cells
        return after if self.kind == PREFIXES else (np.minimum.outer(places, places) + 1.0) * after

    def diagonal(self) -> Array:
        """Of F^T F."""
        if self.rows is not None:
            return np.asarray(np.einsum("ij,ij->j", self.rows.array, self.rows.array))
        places = np.arange(self.size, dtype=np.float64)
        after = self.size - places
        if self.kind in (IDENTITY, TOTAL):
            return np.ones(self.size)
        return after if self.kind == PREFIXES else (places + 1.0) * after

    def apply(self, table: Array, axis: int) -> Array:
        """The answers along one axis of a table, in place of its cells."""
        moved = np.moveaxis(table, axis, -1)
        if self.rows is not None:
            found = moved @ self.rows.array.T
        elif self.kind == IDENTITY:
            found = moved
        elif self.kind == TOTAL:
            found = moved.sum(axis=-1, keepdims=True)
        else:
            found = np.cumsum(moved, axis=-1)
            if self.kind == RANGES:
                first, last = np.triu_indices(self.size)
                before = np.concatenate([np.zeros((*found.shape[:-1], 1), dtype=found.dtype), found], axis=-1)
                found = before[..., last + 1] - before[..., first]
        return np.moveaxis(found, -1, axis)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {"kind": self.kind, "size": self.size}
        return values if self.rows is None else {**values, "rows": self.rows.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Factor:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "size"), "factor", ("rows",))
        rows = given.get("rows")
        return cls(given["kind"], given["size"], None if rows is None else FrozenMatrix.from_dict(rows, "rows"))
