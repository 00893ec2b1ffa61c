"""Whose data one release protects: a row, or all rows of a user."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_OF_GROUPS = ("max_groups", "max_rows_per_group")


@dataclass(frozen=True, slots=True, repr=False)
class Unit:
    """The privacy unit: one row (``Unit()``), or one user, who is named by an id column and has at most k rows used.

    Of a user with more than ``max_rows`` usable rows, ``max_rows`` are chosen uniformly at random: the rows are put in
    the order of their values, row r gets the number SHA-256(key | id | r), and the smallest numbers win. The choice
    depends on the user's own rows and the key alone, not on other users and not on the order of the data, so the
    stated sensitivity holds for *every* key, and every engine chooses the same rows. The key is 128 fresh bits from the
    operating system; pass one only to repeat a run. Privacy does not rest on its secrecy; that no user can arrange
    to be chosen does. Rows without an id belong to nobody and are dropped.

    With ``max_groups``, at most so many different groups of a user are used (cells of a histogram, groups of a table):
    group j of the user's own, in the order of keys or cells, gets the number SHA-256(key | id | group | j), and the
    smallest win before rows are chosen. With ``max_rows_per_group``, a row is passed over where its group has as many.
    The number of rows in a group is then bounded, too, and counts of many groups need less noise.

    >>> Unit("driver", max_rows=3).rows
    3
    >>> Unit("driver", max_rows=20, max_groups=4, max_rows_per_group=1).rows
    4
    >>> print(Unit())
    one row
    """

    id: str | None = None
    max_rows: int | None = None
    max_groups: int | None = field(default=None, kw_only=True)
    max_rows_per_group: int | None = field(default=None, kw_only=True)
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
        for name in _OF_GROUPS:
            given = getattr(self, name)
            if given is not None and self.id is None:
                raise InvalidInput(
                    f"{name}={shown(given)} is for users: pass the column with their ids and max_rows, too."
                )
            if given is not None:
                settle(self, **{name: validation.whole_number(name, given)})
        if not isinstance(self.key, str) or not self.key or "|" in self.key:
            raise InvalidInput("the sampling key must be a text without '|': leave it out for a fresh one.")

    @property
    def rows(self) -> int:
        """The most rows that one unit contributes."""
        if self.max_rows is None:
            return 1
        if self.max_groups is None or self.max_rows_per_group is None:
            return self.max_rows
        return min(self.max_rows, self.max_groups * self.max_rows_per_group)

    @property
    def per_group(self) -> int:
        """The most rows that one unit contributes to one group."""
        return self.rows if self.max_rows_per_group is None else min(self.rows, self.max_rows_per_group)

    @property
    def groups(self) -> int:
        """The most groups that one unit contributes to."""
        return self.rows if self.max_groups is None else min(self.rows, self.max_groups)

    @property
    def bounds_groups(self) -> bool:
        """Whether it matters which of a user's rows are in the same group."""
        return self.max_groups is not None or self.max_rows_per_group is not None

    @property
    def once_a_group(self) -> Unit:
        """The same users, each of whom counts at most once in a group: with the same key, and so in the same groups."""
        return self if self.id is None else replace(self, max_rows_per_group=1)

    @property
    def without_key(self) -> Unit:
        """With a fresh key: what may be told of it."""
        return replace(self, key=secrets.token_hex(16))

    def __str__(self) -> str:
        if self.id is None:
            return "one row"
        groups = "" if self.max_groups is None else f" in at most {self.max_groups} group{'s'[: self.max_groups > 1]}"
        cap = "" if self.max_rows_per_group is None else f", at most {self.max_rows_per_group} in a group"
        return f"one user by {shown(self.id)}, at most {self.rows} rows{groups} each{cap}"

    def __repr__(self) -> str:
        return f"Unit({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the key stays behind."""
        given = {name: getattr(self, name) for name in _OF_GROUPS if getattr(self, name) is not None}
        return {"id": self.id, "max_rows": self.max_rows, **given}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Unit:
        """The inverse of :meth:`to_dict`, with a fresh key."""
        return cls(**validation.fields(values, ("id", "max_rows"), "unit", _OF_GROUPS))

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows of users are dropped, in words for a certificate."""
        if self.id is None:
            return ()
        groups, cap = self.max_groups, self.max_rows_per_group
        found = [f"A row without an id in {self.id!r} is dropped."]
        if groups is not None:
            found.append(f"Of a user with rows in more than {groups} groups, {groups} are chosen at random.")
        if cap is not None:
            found.append(f"Of a user with more than {cap} rows in a group, {cap} of them are chosen at random.")
        found.append(f"Of a user with more than {self.rows} rows that count, {self.rows} are chosen at random.")
        return tuple(found)

    def chosen(
        self,
        ids: Sequence[object] | NDArray[Any],
        order: Sequence[NDArray[Any]],
        groups: NDArray[np.int64] | None = None,
    ) -> NDArray[np.intp]:
        """Positions of the rows that are used: at most ``max_rows`` of each id.

        ``order`` holds the columns by whose values a user's rows are put in order, the first one first; ``groups`` the
        group of each row, numbered in the order of keys or cells. Without them all rows are in one group.

        >>> unit = Unit("driver", max_rows=2)
        >>> len(unit.chosen(["a", "b", "a", "a"], [np.array([1.0, 2.0, 3.0, 4.0])]))
        3
        """
        _, users, sizes = np.unique(np.asarray(ids), return_inverse=True, return_counts=True)
        of = np.zeros(len(users), dtype=np.int64) if groups is None else groups
        limits = [sizes > self.rows]
        if self.bounds_groups:
            pairs, rows = np.unique(np.stack([users, of], axis=1), axis=0, return_counts=True)
            limits.append(np.bincount(pairs[:, 0], minlength=len(sizes)) > (self.max_groups or len(of) + 1))
            limits.append(np.bincount(pairs[rows > self.per_group, 0], minlength=len(sizes)) > 0)
        beyond = np.logical_or.reduce(limits)
        kept = [np.flatnonzero(~beyond[users])]
        many = np.flatnonzero(beyond[users])
        sequence = many[np.lexsort([column[many] for column in reversed(order)] + [users[many]])]
        starts = np.flatnonzero(np.diff(users[sequence], prepend=-1))
        blocks = [block for block in np.split(sequence, starts[1:]) if len(block)]
        kept += [block[self._own(ids[block[0]], of[block])] for block in blocks]
        return np.sort(np.concatenate(kept))

    def _own(self, user: object, groups: NDArray[np.int64]) -> NDArray[np.intp]:
        """Which of a user's rows, in the order of their values, are used."""
        names, group = np.unique(groups, return_inverse=True)
        inside = np.arange(len(groups))
        if self.max_groups is not None and len(names) > self.max_groups:
            drawn = np.argsort(np.array([self._number(user, f"group|{place}") for place in range(len(names))]))
            inside = np.flatnonzero(np.isin(group, drawn[: self.max_groups]))
        order = inside[np.argsort(np.array([self._number(user, place) for place in range(len(inside))]))]
        if self.max_rows_per_group is not None:
            taken: Counter[int] = Counter()
            within = np.zeros(len(order), dtype=np.bool_)
            for place, each in enumerate(group[order].tolist()):
                taken[each] += 1
                within[place] = taken[each] <= self.per_group
            order = order[within]
        return order[: self.rows]

    def _number(self, user: object, place: int | str) -> str:
        return hashlib.sha256(f"{self.key}|{user}|{place}".encode("utf-8", "surrogatepass")).hexdigest()


ROW = Unit()
"""One row is one individual."""
