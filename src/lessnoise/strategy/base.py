"""A strategy: the linear questions A that are measured with noise, so that the answers to others can be computed.

From y = A x + noise of variance s^2 in every entry, the least-squares table is A^+ y, and the squared errors of the
answers to a workload W add up to s^2 tr(W^T W (A^T A)^+). One more row in cell j changes what is measured by the
column a_j: the columns say what noise the measurements need.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from fractions import Fraction

    from lessnoise._common import Array
    from lessnoise.workload import Workload

_KINDS: dict[str, type[Strategy]] = {}


class Strategy(ABC):
    """What is measured of tables of one shape. Frozen and hashable; all entries of A are doubles, or products of them.

    Arrays may have further axes in front of the table's: ``measure`` puts the rows in the place of these, ``fit`` back.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Of the table."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many numbers are measured."""

    @property
    def whole(self) -> bool:
        """All entries of A are whole numbers."""
        return False

    @property
    def nonnegative(self) -> bool:
        """No entry of A is below 0."""
        return False

    @abstractmethod
    def measure(self, table: Array) -> Array:
        """A x, as floats."""

    def roundings(self) -> float:
        """How often a term of an entry of ``measure`` is rounded, relative to |A| |x|; infinite if that is unknown."""
        return math.inf

    def magnitudes(self, table: Array) -> Array:
        """|A| x, as floats, for a table of numbers that are not negative."""
        assert self.nonnegative
        return self.measure(table)

    @abstractmethod
    def error(self, table: Array) -> float:
        """How far an entry of ``measure(table)`` may be from A x; 0 if it is exact, as sums of counts are."""

    @abstractmethod
    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as the real number that it is."""

    @abstractmethod
    def fit(self, measured: Array) -> Array:
        """The least-squares table A^+ y, the shortest if there are several."""

    @abstractmethod
    def columns(self) -> list[Moves]:
        """The sizes in the distinct columns of A: all, but those nowhere above another; or a few and an envelope."""

    def envelope(self) -> Moves | None:
        """Sizes that majorize every column, where ``columns`` has only a few of them; None where it has all."""
        return None

    def norm(self, order: int) -> float:
        """The largest l1 or l2 norm of a column, rounded up."""
        return max(moves.norm(order) for moves in self.columns())

    def distance(self, order: int) -> float:
        """No two columns are further apart in l1 or l2 norm, as a replaced row moves them; rounded up."""
        apart = math.sqrt(2.0) * (1.0 + 1e-15) if order == 2 and self.nonnegative else 2.0
        return apart * self.norm(order)

    @abstractmethod
    def trace(self, workload: Workload) -> float:
        """tr(W^T W (A^T A)^+); infinite if the workload asks what A does not determine."""

    @abstractmethod
    def variances(self, questions: Array) -> Array:
        """q (A^T A)^+ q^T for each of some questions about the table, one in a row, each flattened."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""

    @classmethod
    @abstractmethod
    def from_dict(cls, values: dict[str, Any]) -> Strategy:
        """The inverse of :meth:`to_dict`."""


def read_strategy(value: object) -> Strategy:
    """A strategy from itself or from its plain values."""
    if isinstance(value, Strategy):
        return value
    if not isinstance(value, dict):
        raise InvalidInput(f"strategy={shown(value)} is not one: build it with lessnoise.workload_mechanism.")
    kind = validation.fields(value, ("kind",), "strategy", optional=None)["kind"]
    validation.choice("strategy kind", kind, list(_KINDS))
    return _KINDS[kind].from_dict(value)


def majorant(columns: list[Moves]) -> Moves:
    """Sizes whose largest add up to at least those of any of the columns, however many.

    >>> from lessnoise.changes import Moves
    >>> [round(size, 9) for size, _ in majorant([Moves.of([3.0]), Moves.of([2.0, 2.0])]).sizes]
    [3.0, 1.0]
    """
    longest = max(moves.count for moves in columns)
    most = np.zeros(longest + 1)
    for moves in columns:
        sizes = np.repeat([size for size, _ in moves.sizes], [count for _, count in moves.sizes])
        sums = np.full(longest, sizes.sum())
        sums[: sizes.size] = np.cumsum(sizes)
        most[1:] = np.maximum(most[1:], sums)
    found = np.maximum(np.diff(most), 0.0)
    if len(columns) > 1:
        found[0] += 2.0 * longest * 2.0**-53 * most[-1]  # above all rounding of the sums
    return Moves.of(found.tolist())
