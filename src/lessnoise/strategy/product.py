"""A strategy for a table with several axes: every question along one axis together with every one along the others."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up, settle
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.strategy.base import Strategy, majorant, read_strategy
from lessnoise.strategy.exactness import whole_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.workload import Factor, Workload

_ULP = 2.0**-53
_LEAST = math.ulp(0.0)
_EXACT = 2.0**53
_LIMB = 27  # bits of a weight that are multiplied at once
_MOST_COLUMNS = 64


@dataclass(frozen=True)
class Product(Strategy):
    """A = A_1 x A_2 x ..., one strategy for each axis.

    >>> from lessnoise.frozen_matrix import FrozenMatrix
    >>> from lessnoise.strategy.dense import Dense
    >>> pair = Dense(FrozenMatrix([[1, 0], [0, 1], [1, 1]]))
    >>> Product((pair, pair)).measure(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 2.0, 3.0, 3.0, 4.0, 7.0, 4.0, 6.0, 10.0]
    """

    axes: tuple[Strategy, ...]

    kind: ClassVar[str] = "product"

    def __post_init__(self) -> None:
        axes = tuple(read_strategy(axis) for axis in validation.entries("axes", list(self.axes)))
        if not axes or any(len(axis.shape) != 1 or not hasattr(axis, "factor_trace") for axis in axes):
            raise InvalidInput("axes must be strategies of one axis each: pass one for each axis of the table.")
        settle(self, axes=axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return tuple(axis.shape[0] for axis in self.axes)

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return math.prod(axis.rows for axis in self.axes)

    @property
    def whole(self) -> bool:
        """All entries are whole numbers."""
        return all(axis.whole for axis in self.axes)

    @property
    def nonnegative(self) -> bool:
        """No entry is below 0."""
        return all(axis.nonnegative for axis in self.axes)

    def measure(self, table: Array) -> Array:
        """A x, axis by axis."""
        front = table.ndim - len(self.axes)
        for place, axis in enumerate(self.axes):
            table = np.moveaxis(axis.measure(np.moveaxis(table, front + place, -1)), -1, front + place)
        return np.ascontiguousarray(table).reshape(*table.shape[:front], -1)

    def error(self, table: Array) -> float:
        """Each axis is within so many roundings of what it would give for sizes, and the axes after it keep that."""
        total, norms = float(np.abs(table).sum()) * (1.0 + table.size * _ULP), [axis.norm(1) for axis in self.axes]
        most = total * math.prod(norms)
        if not math.isfinite(most):
            return math.inf
        if self.whole and most < _EXACT and bool((table == np.rint(table)).all()):
            return 0.0
        roundings = sum(axis.roundings() for axis in self.axes)
        if math.isfinite(roundings):
            return 1.01 * roundings * (_ULP * self._sizes(np.abs(table)) + _LEAST)
        found = 0.0
        for axis, norm in zip(self.axes, norms, strict=True):
            # Of all tables of one total the worst is in one cell, and no cell is worse than all cells at once.
            own = (10.1 * axis.error(np.full(axis.shape, 0.1)) + axis.rows * _ULP * norm) * total
            found, total = own + found * axis.shape[0] * norm, total * norm
        return 1.01 * found

    def _sizes(self, table: Array) -> float:
        """The largest entry of |A| |x|."""
        for place, axis in enumerate(self.axes):
            table = np.moveaxis(axis.magnitudes(np.moveaxis(table, place, -1)), -1, place)
        return float(np.max(table, initial=0.0))

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as a real number: the last axis first, in whole numbers."""
        places = np.unravel_index(index, [axis.rows for axis in self.axes])
        numbers, exponent = whole_numbers(table.reshape(-1))
        exact = np.array(numbers, dtype=object).reshape(table.shape)
        for axis, place in zip(self.axes[::-1], places[::-1], strict=True):
            row, own = _row(axis, int(place))
            used = [j for j, entry in enumerate(row) if entry]
            exact, exponent = _dot(exact[..., used], [row[j] for j in used]), exponent + own
        return Fraction(int(exact.item())) * Fraction(2) ** exponent

    def fit(self, measured: Array) -> Array:
        """Axis by axis, as (A_1 x A_2)^+ = A_1^+ x A_2^+."""
        front = measured.ndim - 1
        table = measured.reshape(*measured.shape[:-1], *(axis.rows for axis in self.axes))
        for place, axis in enumerate(self.axes):
            table = np.moveaxis(axis.fit(np.moveaxis(table, front + place, -1)), -1, front + place)
        return np.ascontiguousarray(table)

    def columns(self) -> list[Moves]:
        """Products of the columns of every axis, their sizes rounded up; of few columns, if there are too many."""
        kinds = [axis.columns() for axis in self.axes]
        few = kinds if math.prod(map(len, kinds)) <= _MOST_COLUMNS else [_spread(columns) for columns in kinds]
        return [_times(chosen) for chosen in itertools.product(*few)]

    def envelope(self) -> Moves | None:
        """Products keep the order: what majorizes the columns of every axis majorizes their products."""
        kinds = [axis.columns() for axis in self.axes]
        above = [axis.envelope() for axis in self.axes]
        if math.prod(map(len, kinds)) <= _MOST_COLUMNS and all(one is None for one in above):
            return None
        return _times([one or majorant(columns) for one, columns in zip(above, kinds, strict=True)])

    def norm(self, order: int) -> float:
        """Norms multiply."""
        return math.prod(axis.norm(order) for axis in self.axes) * (1.0 + 4.0 * len(self.axes) * _ULP)

    def trace(self, workload: Workload) -> float:
        """For each part of the workload, the product over the axes."""
        found = 0.0
        for weight, factors in workload.terms():
            found += weight * math.prod(_trace(axis, factor) for axis, factor in zip(self.axes, factors, strict=True))
        return found

    def variances(self, questions: Array) -> Array:
        """q (A^T A)^+ q^T for each row q: the length of (A^+)^T q, a question spread over what was measured."""
        found = np.asarray(questions, dtype=np.float64).reshape(-1, *self.shape)
        for place, axis in enumerate(self.axes):
            spread = np.asarray(axis.fit(np.eye(axis.rows)))  # rows of (A^+)^T
            found = np.moveaxis(np.moveaxis(found, 1 + place, -1) @ spread.T, -1, 1 + place)
        return np.asarray(np.square(found).reshape(len(found), -1).sum(axis=1))

    def __str__(self) -> str:
        return " x ".join(f"({axis})" for axis in self.axes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "axes": [axis.to_dict() for axis in self.axes]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Product:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "axes"), "strategy")
        return cls(given["axes"])


def _trace(axis: Any, factor: Factor) -> float:  # noqa: ANN401
    return float(axis.factor_trace(factor))


@functools.lru_cache(maxsize=256)
def _row(axis: Strategy, place: int) -> tuple[list[int], int]:
    """A row of the strategy along an axis, as whole numbers times one power of two."""
    entries = [axis.exact(unit, place) for unit in np.eye(axis.shape[0])]
    shift = max(entry.denominator for entry in entries).bit_length() - 1
    return [int(entry * 2**shift) for entry in entries], -shift


def _dot(table: NDArray[np.object_], row: list[int]) -> NDArray[np.object_]:
    """The exact sums of a table of whole numbers along its last axis, with weights; in 64 bits where these do."""
    most = max((abs(int(entry)) for entry in table.flat), default=0)
    if most.bit_length() + len(row).bit_length() + _LIMB > 62:
        return np.asarray(table.dot(np.array(row, dtype=object)), dtype=object)
    small, sign = table.astype(np.int64), [1 if entry >= 0 else -1 for entry in row]
    left, found, shift = [abs(entry) for entry in row], np.zeros(table.shape[:-1], dtype=object), 0
    while any(left):
        limbs = np.array(
            [s * (entry & ((1 << _LIMB) - 1)) for s, entry in zip(sign, left, strict=True)], dtype=np.int64
        )
        found = found + (small @ limbs).astype(object) * (1 << shift)
        left, shift = [entry >> _LIMB for entry in left], shift + _LIMB
    return np.asarray(found, dtype=object)


def _times(columns: Sequence[Moves]) -> Moves:
    found = Moves(((1.0, 1),))
    for moves in columns:
        pairs = itertools.product(found.sizes, moves.sizes)
        found = Moves.counted((round_up(Fraction(a) * Fraction(b)), m * n) for (a, m), (b, n) in pairs)
    return found


def _spread(columns: list[Moves]) -> list[Moves]:
    """The first, the last and one between."""
    return [columns[place] for place in sorted({0, len(columns) // 2, len(columns) - 1})]
