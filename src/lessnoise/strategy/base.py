"""A strategy: the linear questions A that are measured with noise, so that the answers to others can be computed.

From y = A x + noise of variance s^2 in every entry, the least-squares table is A^+ y, and the squared errors of the
answers to a workload W add up to s^2 tr(W^T W (A^T A)^+). One more row in cell j changes what is measured by the
column a_j: the columns say what noise the measurements need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from fractions import Fraction

    from lessnoise._common import Array
    from lessnoise.changes import Moves
    from lessnoise.workload import Workload

_KINDS: dict[str, type[Strategy]] = {}


class Strategy(ABC):
    """What is measured of tables of one shape. Frozen and hashable; all entries of A are doubles, or products of them.

    Arrays may have further axes in front: ``measure`` takes (..., *shape) to (..., rows), and ``fit`` back.
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

    @abstractmethod
    def measure(self, table: Array) -> Array:
        """A x, as floats."""

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
        """The sizes in the distinct columns of A; one that is nowhere above another may be left out."""

    def norm(self, order: int) -> float:
        """The largest l1 or l2 norm of a column, rounded up."""
        return max(moves.norm(order) for moves in self.columns())

    def differences(self) -> list[Moves] | None:
        """The sizes in the differences of any two columns, as a replaced row moves them; None if they are too many."""
        return None

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
