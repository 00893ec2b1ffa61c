"""Whose data one release protects: a row, or all rows of a user."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Unit:
    """The privacy unit: one row (``Unit()``), or one user, who is named by an id column and has at most k rows used.

    Of a user with more than ``max_rows`` usable rows, ``max_rows`` are chosen uniformly at random: the rows are put in
    the order of their values, row r gets the number SHA-256(key | id | r), and the smallest numbers win. The choice
    depends on the user's own rows and the key alone, not on other users and not on the order of the data, so the
    stated sensitivity holds for *every* key, and every engine chooses the same rows. The key is 128 fresh bits from the
    operating system; pass one only to repeat a run. Privacy does not rest on its secrecy; that no user can arrange
    to be chosen does. Rows without an id belong to nobody and are dropped.

    >>> Unit("driver", max_rows=3).rows
    3
    >>> print(Unit())
    one row
    """

    id: str | None = None
    max_rows: int | None = None
    key: str = field(default_factory=lambda: secrets.token_hex(16), compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.id is not None and not isinstance(self.id, str):
            raise InvalidInput(
                f"unit={shown(self.id)} is not a column name: pass the name of the column with the user ids."
            )
        if (self.id is None) != (self.max_rows is None):
            raise InvalidInput(
                f"unit={shown(self.id)} with max_rows={shown(self.max_rows)}: pass both for users, or neither to "
                "protect rows."
            )
        if self.max_rows is not None:
            settle(self, max_rows=validation.whole_number("max_rows", self.max_rows))
        if not isinstance(self.key, str) or not self.key or "|" in self.key:
            raise InvalidInput("the sampling key must be a text without '|': leave it out for a fresh one.")

    @property
    def rows(self) -> int:
        """The most rows that one unit contributes."""
        return 1 if self.max_rows is None else self.max_rows

    def __str__(self) -> str:
        return "one row" if self.id is None else f"one user by {shown(self.id)}, at most {self.rows} rows each"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the key stays behind."""
        return {"id": self.id, "max_rows": self.max_rows}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Unit:
        """The inverse of :meth:`to_dict`, with a fresh key."""
        return cls(**validation.fields(values, ("id", "max_rows"), "unit"))

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows of users are dropped, in words for a certificate."""
        if self.id is None:
            return ()
        return (
            f"A row without an id in {self.id!r} is dropped.",
            f"Of a user with more than {self.rows} rows that count, {self.rows} are chosen at random.",
        )

    def chosen(self, ids: Sequence[object] | NDArray[Any], order: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
        """Positions of the rows that are used: at most ``max_rows`` of each id.

        ``order`` holds the columns by whose values a user's rows are put in order, the first one first.

        >>> unit = Unit("driver", max_rows=2)
        >>> len(unit.chosen(["a", "b", "a", "a"], [np.array([1.0, 2.0, 3.0, 4.0])]))
        3
        """
        _, users, sizes = np.unique(np.asarray(ids), return_inverse=True, return_counts=True)
        kept = [np.flatnonzero(sizes[users] <= self.rows)]
        many = np.flatnonzero(sizes[users] > self.rows)
        sequence = many[np.lexsort([column[many] for column in reversed(order)] + [users[many]])]
        starts = np.flatnonzero(np.diff(users[sequence], prepend=-1))
        for block in np.split(sequence, starts[1:]):
            if len(block):
                numbers = [self._number(ids[block[0]], place) for place in range(len(block))]
                kept.append(block[np.argsort(np.array(numbers))[: self.rows]])
        return np.sort(np.concatenate(kept))

    def _number(self, user: object, place: int) -> str:
        return hashlib.sha256(f"{self.key}|{user}|{place}".encode()).hexdigest()


ROW = Unit()
"""One row is one individual."""
