"""What one individual can do to a value: a frozen description of a set of changes, from which sensitivities follow.

Every set is symmetric: who can be added can be removed. Norms are rounded up, so that noise made for them is enough.

>>> from lessnoise import changes
>>> one_row = changes.counts()
>>> one_row.norm(1, 6), one_row.norm(2, 6), str(one_row)
(1.0, 1.0, 'at most 1 row, add/remove')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.changes.base import Changes, Joined, Moves, Scaled, read_changes
from lessnoise.changes.sets import Ball, Box, Corner, Counts, Listed
from lessnoise.changes.words import parse
from lessnoise.guarantees import Neighbours

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Ball",
    "Box",
    "Changes",
    "Corner",
    "Counts",
    "Joined",
    "Listed",
    "Moves",
    "Scaled",
    "ball",
    "box",
    "corner",
    "counts",
    "joined",
    "listed",
    "parse",
    "read_changes",
]


def ball(radius: float, norm: float = 2) -> Changes:
    """All changes whose l1, l2 or l-infinity norm (``norm`` 1, 2 or inf) is at most ``radius``.

    >>> import math
    >>> ball(1.0).norm(1, 4), ball(1.0, norm=math.inf).norm(2, 4)
    (2.0, 2.0)
    """
    return Ball(radius, norm)


def counts(rows: int = 1, per_cell: int | None = None, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Changes:
    """An individual adds at most ``rows`` rows to disjoint cells, at most ``per_cell`` to one; or has them replaced.

    >>> [counts(20, per_cell=cap).norm(2, 1000) ** 2 for cap in (None, 1)]
    [400.0, 20.000000000000004]
    """
    return Counts(rows, per_cell, Neighbours.of(neighbours))


def corner(bounds: float | Sequence[float]) -> Changes:
    """One individual adds between 0 and its bound to each entry: bounded sums, for data added or removed.

    >>> corner([3.0, 4.0]).norm(2, 2), corner(1.0).norm(1, 10)
    (5.0, 10.0)
    """
    return Corner(tuple(bounds) if isinstance(bounds, (list, tuple)) else bounds)  # type: ignore[arg-type]


def box(bounds: float | Sequence[float]) -> Changes:
    """Each entry goes up or down by at most its bound: bounded sums, for replaced data or data of both signs.

    >>> box([3.0, 4.0]).norm(2, 2), box(1.0).norm(1, 10)
    (5.0, 10.0)
    """
    return Box(tuple(bounds) if isinstance(bounds, (list, tuple)) else bounds)  # type: ignore[arg-type]


def listed(vectors: Sequence[Sequence[float]]) -> Changes:
    """A finite list of changes; their opposites are meant too.

    >>> listed([[1, 0], [0, -2]]).norm(1, 2), listed([[1, 0], [0, -2]]).single(2)
    (2.0, 1.0)
    """
    return Listed(tuple(tuple(vector) for vector in vectors))


def joined(*sets: Changes) -> Changes:
    """Changes of any of these sets.

    >>> str(joined(counts(), ball(2.0)))
    '(at most 1 row, add/remove) or (l2 norm at most 2)'
    """
    return Joined(sets)
