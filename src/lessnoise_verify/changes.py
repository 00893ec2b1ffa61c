"""What one individual can change of a value: sets of changes, their largest norms, and their worst members."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lessnoise_verify.document import Fields, Refuted, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

RELATIONS = ("add/remove", "replace")


@dataclass(frozen=True)
class Moves:
    """A change by the sizes of its entries, the largest first, each with how many entries have it; the rest is 0."""

    sizes: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, sizes: Iterable[tuple[Fraction | int, int]]) -> Moves:
        """From sizes of either sign, in any order."""
        total: dict[Fraction, int] = {}
        for size, count in sizes:
            if size and count > 0:
                total[abs(Fraction(size))] = total.get(abs(Fraction(size)), 0) + count
        return cls(tuple(sorted(total.items(), reverse=True)))

    def squared_norm(self, order: float) -> Fraction:
        """The square of the norm of order 1, 2 or infinity."""
        if order == math.inf:
            return self.sizes[0][0] ** 2 if self.sizes else Fraction(0)
        total = sum((count * size ** int(order) for size, count in self.sizes), Fraction(0))
        return total if order == 2 else total**2

    def scaled(self, factor: Fraction) -> Moves:
        """Every size multiplied."""
        return Moves(tuple((size * factor, count) for size, count in self.sizes))

    def majorizes(self, other: Moves) -> bool:
        """For every n, the n largest entries add up to at least as much as those of the other."""
        return all(self._top(n) >= other._top(n) for n in self._places(other))

    def dominates(self, other: Moves) -> bool:
        """For every n, the n-th largest entry is at least that of the other."""
        places = self._places(other)
        return all(self._top(n) - self._top(n - 1) >= other._top(n) - other._top(n - 1) for n in places)

    def _places(self, other: Moves) -> set[int]:
        """How many entries have at least some size: between these numbers, and then from the last, sums are linear."""
        found: set[int] = set()
        for moves in (self, other):
            found.update(itertools.accumulate(count for _, count in moves.sizes))
        return found

    def _top(self, n: int) -> Fraction:
        total = Fraction(0)
        for size, count in self.sizes:
            total, n = total + min(count, n) * size, n - min(count, n)
        return total


@dataclass(frozen=True)
class Changes:
    """A set of changes of arrays with some number of entries; with every change it has the opposite one."""

    squares: tuple[Fraction, Fraction, Fraction]
    """The squares of the largest l1, l2 and l-infinity norms."""
    majorant: Moves | None
    """A member whose n largest entries add up to most, for every n."""
    dominant: Moves | None
    """A member whose n-th largest entry is the largest there is, for every n."""
    whole: bool = False
    """All entries of all changes are whole numbers."""
    one_sided: bool = False
    """No change has entries of both signs."""
    relation: str | None = None
    side: Fraction | None = None
    """No change adds more in all than this, nor takes away more; None: it is not known."""
    alone: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    """So much may change in any cell alone; so much may leave any cell and enter any other."""
    solid: bool = False
    """With every change, those are in the set in which some of its entries are 0."""
    bounds: tuple[Fraction, ...] | None = None
    """The most that each entry can change, in order (one number: all alike), if all can change so much at once."""

    def squared_norm(self, order: float) -> Fraction:
        """The square of the largest norm of order 1, 2 or infinity."""
        return self.squares[{1: 0, 2: 1, math.inf: 2}[order]]

    def scaled(self, factor: Fraction) -> Changes:
        """Every change multiplied."""
        first, second, third = (square * factor**2 for square in self.squares)
        return replace(
            self,
            squares=(first, second, third),
            majorant=self.majorant and self.majorant.scaled(factor),
            dominant=self.dominant and self.dominant.scaled(factor),
            whole=self.whole and factor.denominator == 1,
            side=self.side and self.side * factor,
            alone=(self.alone[0] * factor, self.alone[1] * factor),
            bounds=self.bounds and tuple(bound * factor for bound in self.bounds),
        )


def read_changes(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    """The set that is described, for arrays of this shape under this relation."""
    kind = given.choice("kind", *_KINDS)
    found = _KINDS[kind](given, shape, relation)
    given.end()
    if found.relation not in (None, relation):
        raise Refuted(f"the changes are stated for {found.relation}, the mechanism for {relation}.")
    return found


def ball(radius: Fraction, order: float, dimension: int) -> Changes:
    """All changes of norm at most the radius."""
    square, m = radius**2, dimension
    alone, everywhere = Moves.of([(radius, 1)]), Moves.of([(radius, m)])
    if order == 1 or m == 1:
        reach, bounds = (radius, radius / 2 if m > 1 else Fraction(0)), (radius,) if m == 1 else None
        each = alone if m == 1 else None
        return Changes((square, square, square), alone, each, side=radius, alone=reach, solid=True, bounds=bounds)
    if order == 2:
        return Changes((square * m, square, square), None, None, solid=True)
    return Changes((square * m**2, square * m, square), everywhere, everywhere, solid=True, bounds=(radius,))


def counts(rows: int, per_cell: int | None, relation: str, dimension: int) -> Changes:
    """At most so many rows in disjoint cells, so many of them in one cell; or as many taken from others, too.

    Rows that leave and rows that enter lie in different cells. With as many of them as possible in as few cells as
    possible, the n largest entries add up to most: n are at most min(rows, n_1 most) + min(rows, n_2 most) in all,
    n_1 + n_2 = n, which is largest if n_1 and n_2 differ by at most 1.
    """
    most, sides = min(rows, per_cell or rows), 1 if relation == "add/remove" else 2
    full, rest = divmod(rows, most)
    cells = min(sides * full, dimension)
    top = Moves.of([(most, cells), (rest, min(sides, dimension - cells))])
    above = top if most == 1 or cells == dimension else None  # else others have more entries that are not 0
    single, side = Fraction(most), Fraction(min(rows, dimension * most))
    reach = (single, single if sides == 2 and dimension > 1 else Fraction(0))
    return Changes(_squares(top), top, above, True, sides == 1, relation, side, reach, solid=True)


def _squares(worst: Moves) -> tuple[Fraction, Fraction, Fraction]:
    return worst.squared_norm(1), worst.squared_norm(2), worst.squared_norm(math.inf)


def _read_ball(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    order = given.take("order", 2)
    if type(order) not in (int, float, str) or order not in (1, 2, "inf"):
        raise Unreadable("the order of a ball is 1, 2 or inf.")
    return ball(given.positive("radius"), math.inf if order == "inf" else order, math.prod(shape))


def _read_counts(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    rows = given.whole("rows")
    per_cell = given.whole("per_cell", 1, rows) if "per_cell" in given else given.take("per_cell", None)
    stated = given.choice("neighbours", *RELATIONS)
    return counts(rows, per_cell, stated, math.prod(shape))


def _read_bounds(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    """All changes whose entries are at most the bounds; in a corner they have one sign."""
    one_sided, dimension = given.text("kind") == "corner", math.prod(shape)
    if isinstance(given.take("bounds"), (int, float)):
        bounds: tuple[Fraction, ...] = (given.positive("bounds"),)
        worst = Moves.of([(bounds[0], dimension)])
    else:
        bounds = tuple(map(Fraction, given.numbers("bounds")))
        worst = Moves.of((bound, 1) for bound in bounds)
        if len(bounds) != dimension or min(bounds) <= 0:
            raise Unreadable(f"{given.name}.bounds are not a positive number for each of {dimension} entries.")
    return Changes(_squares(worst), worst, worst, one_sided=one_sided, solid=True, bounds=bounds)


def _read_listed(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    inside = Fields({str(place): each for place, each in enumerate(given.items("vectors"))}, given.name)
    vectors = [inside.numbers(str(place)) for place in range(len(inside.values))]
    if not vectors or any(len(vector) != math.prod(shape) for vector in vectors) or not any(map(any, vectors)):
        raise Unreadable(f"{given.name}.vectors are not changes of arrays of this shape.")
    moves = [Moves.of((Fraction(entry), 1) for entry in vector) for vector in vectors]
    whole = all(entry.is_integer() for vector in vectors for entry in vector)
    one_sided = all(min(vector) >= 0.0 or max(vector) <= 0.0 for vector in vectors)
    return _joined([Changes(_squares(one), one, one) for one in moves], whole, one_sided, None)


def _read_scaled(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    return read_changes(given.fields("changes"), shape, relation).scaled(given.positive("factor"))


def _read_joined(given: Fields, shape: tuple[int, ...], relation: str) -> Changes:
    sets = [read_changes(one, shape, relation) for one in given.objects("sets", 100)]
    if not sets:
        raise Unreadable(f"{given.name}.sets is empty.")
    stated = next((one.relation for one in sets if one.relation is not None), None)
    return _joined(sets, all(one.whole for one in sets), all(one.one_sided for one in sets), stated)


def _joined(sets: list[Changes], whole: bool, one_sided: bool, relation: str | None) -> Changes:
    first, second, third = (max(one.squares[i] for one in sets) for i in range(3))
    top = _above([one.majorant for one in sets], Moves.majorizes)
    each = _above([one.dominant for one in sets], Moves.dominates)
    sides = [one.side for one in sets if one.side is not None]
    side = max(sides) if len(sides) == len(sets) else None
    alone = (max(one.alone[0] for one in sets), max(one.alone[1] for one in sets))
    solid = all(one.solid for one in sets)
    return Changes((first, second, third), top, each, whole, one_sided, relation, side, alone, solid=solid)


def _above(moves: list[Moves | None], above: Callable[[Moves, Moves], bool]) -> Moves | None:
    """The one that is above all others, if there is one."""
    known = [one for one in moves if one is not None]
    if len(known) < len(moves):
        return None
    return next((one for one in known if all(above(one, other) for other in known)), None)


_KINDS: dict[str, Callable[[Fields, tuple[int, ...], str], Changes]] = {
    "ball": _read_ball,
    "counts": _read_counts,
    "corner": _read_bounds,
    "box": _read_bounds,
    "listed": _read_listed,
    "scaled": _read_scaled,
    "joined": _read_joined,
}
