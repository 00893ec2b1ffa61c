"""The two simplest strategies: every cell by itself, and the sum of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import Moves
from lessnoise.strategy.base import Strategy
from lessnoise.strategy.exactness import exact_sum, product_error
from lessnoise.workload import TOTAL

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.workload import Factor, Workload


@dataclass(frozen=True)
class Cells(Strategy):
    """Every cell of a table by itself: A is the identity."""

    table: tuple[int, ...]

    kind: ClassVar[str] = "cells"
    whole: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self, table=validation.shape(self.table, "table"))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return self.table

    @property
    def rows(self) -> int:
        """One number for each cell."""
        return math.prod(self.table)

    def roundings(self) -> float:
        """Nothing is computed."""
        return 0.0

    def measure(self, table: Array) -> Array:
        """The cells, in a row."""
        return np.array(table, dtype=np.float64).reshape(*table.shape[: table.ndim - len(self.table)], -1)

    def error(self, table: Array) -> float:
        """Nothing is computed."""
        return 0.0

    def exact(self, table: Array, index: int) -> Fraction:
        """A cell."""
        return Fraction(float(table.reshape(-1)[index]))

    def fit(self, measured: Array) -> Array:
        """The cells, in their table."""
        return measured.reshape(*measured.shape[:-1], *self.table)

    def columns(self) -> list[Moves]:
        """All alike."""
        return [Moves(((1.0, 1),))]

    def trace(self, workload: Workload) -> float:
        """tr(W^T W)."""
        return float(workload.diagonal().sum())

    def factor_trace(self, factor: Factor) -> float:
        """The same along one axis."""
        return float(factor.diagonal().sum())

    def variances(self, questions: Array) -> Array:
        """The squared length of each question."""
        return np.asarray(np.square(questions).sum(axis=-1))

    def __str__(self) -> str:
        return "every cell"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "table": list(self.table)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Cells:
        """The inverse of :meth:`to_dict`."""
        return cls(validation.fields(values, ("kind", "table"), "strategy")["table"])


@dataclass(frozen=True)
class Total(Strategy):
    """The sum of the cells of a line and nothing else, for workloads that ask for nothing else."""

    cells: int

    kind: ClassVar[str] = "total"
    whole: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self, cells=validation.whole_number("cells", self.cells))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return (self.cells,)

    @property
    def rows(self) -> int:
        """One number."""
        return 1

    def roundings(self) -> float:
        """How often the sum is rounded."""
        return float(self.cells)

    def measure(self, table: Array) -> Array:
        """The sum."""
        return np.asarray(np.sum(table, axis=-1, keepdims=True, dtype=np.float64))

    def error(self, table: Array) -> float:
        """Whole numbers below 2^53 in all are added exactly."""
        return product_error(table, np.abs(table).sum(axis=-1), 0, self.cells)

    def exact(self, table: Array, index: int) -> Fraction:
        """The sum, as a real number."""
        return exact_sum(table)

    def fit(self, measured: Array) -> Array:
        """The same in every cell: the shortest table with this sum."""
        return np.repeat(measured / self.cells, self.cells, axis=-1)

    def columns(self) -> list[Moves]:
        """All alike."""
        return [Moves(((1.0, 1),))]

    def distance(self, order: int) -> float:
        """A replaced row stays in the sum."""
        return 0.0

    def trace(self, workload: Workload) -> float:
        """Of workloads that ask for totals alone."""
        return sum(weight * self.factor_trace(factors[0]) for weight, factors in workload.terms())

    def factor_trace(self, factor: Factor) -> float:
        """1 for the total; nothing else is known."""
        return 1.0 if factor.kind == TOTAL or factor.size == 1 else math.inf

    def variances(self, questions: Array) -> Array:
        """The square of what is asked of every cell alike."""
        alike = (questions == questions[..., :1]).all(axis=-1)
        return np.where(alike, np.square(questions[..., 0]), np.inf)

    def __str__(self) -> str:
        return "the total"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "cells": self.cells}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Total:
        """The inverse of :meth:`to_dict`."""
        return cls(validation.fields(values, ("kind", "cells"), "strategy")["cells"])
