"""What every set of changes is, and the change in it that moves the entries most."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from lessnoise import validation
from lessnoise._common import root_up, round_up, settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ORDERS = (1, 2, math.inf)
_KINDS: dict[str, type[Changes]] = {}


@dataclass(frozen=True, slots=True)
class Moves:
    """A change by the sizes of its entries, the largest first: so much in so many entries, and 0 in the others.

    >>> Moves.of([1.0, 3.0, 1.0, 0.0])
    Moves(sizes=((3.0, 1), (1.0, 2)))
    """

    sizes: tuple[tuple[float, int], ...]

    @classmethod
    def of(cls, entries: Iterable[float]) -> Moves:
        """From the entries of a change."""
        return cls.counted((abs(entry), 1) for entry in entries)

    @classmethod
    def counted(cls, sizes: Iterable[tuple[float, int]]) -> Moves:
        """From sizes, each with a number of entries."""
        total: dict[float, int] = {}
        for size, count in sizes:
            if size and count:
                total[size] = total.get(size, 0) + count
        return cls(tuple(sorted(total.items(), reverse=True)))

    @property
    def count(self) -> int:
        """How many entries change."""
        return sum(count for _, count in self.sizes)

    def norm(self, order: float) -> float:
        """An l_p norm, rounded up."""
        if order in (1, 2):
            power = sum((count * Fraction(size) ** int(order) for size, count in self.sizes), Fraction(0))
            return root_up(power) if order == 2 else round_up(power)
        largest = self.sizes[0][0]
        if self.count == 1:
            return largest
        powers = math.fsum(count * (size / largest) ** order for size, count in self.sizes)
        return float(largest * powers ** (1.0 / order) * (1.0 + 1e-14))

    def scaled(self, factor: float) -> Moves:
        """Every size multiplied, and rounded up."""
        if factor == 1.0:
            return self
        return Moves.counted((round_up(Fraction(size) * Fraction(factor)), count) for size, count in self.sizes)

    def majorizes(self, other: Moves) -> bool:
        """For every number of entries, the largest of these add up to at least as much as those of the other."""
        return all(self._top(count) >= other._top(count) for count in self._places(other))

    def dominates(self, other: Moves) -> bool:
        """The i-th largest is at least the other's, for every i."""
        return all(self._at(count) >= other._at(count) for count in self._places(other))

    def _places(self, other: Moves) -> set[int]:
        """Between these numbers of entries both sums are straight lines, and both entries stay the same."""
        places: set[int] = set()
        for moves in (self, other):
            total = 0
            for _, count in moves.sizes:
                total += count
                places |= {total, total + 1}
        return places

    def _top(self, count: int) -> Fraction:
        total = Fraction(0)
        for size, available in self.sizes:
            taken = min(available, count)
            total, count = total + taken * Fraction(size), count - taken
        return total

    def _at(self, place: int) -> float:
        for size, available in self.sizes:
            if place <= available:
                return size
            place -= available
        return 0.0


class Changes(ABC):
    """A set of changes. Build one with :func:`ball`, :func:`counts`, :func:`corner` or :func:`listed`."""

    kind: ClassVar[str]
    whole: bool = False
    """Every change is made of whole numbers."""
    one_sided: bool = False
    """No change moves some entries up and others down."""

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    def norm(self, order: float, dimension: int) -> float:
        """The largest l1, l2 or l-infinity norm of a change of an array with this many entries, rounded up."""
        validation.choice("order", order, ORDERS)
        return (root_up if order == 2 else round_up)(self._power(order, dimension))

    @abstractmethod
    def _power(self, order: float, dimension: int) -> Fraction:
        """The norm itself for order 1 and infinity, its square for order 2; never too small."""

    @abstractmethod
    def single(self, dimension: int) -> float:
        """Every entry alone can change by this much, rounded down: what lower bounds on the noise start from."""

    def scalar_share(self, dimension: int) -> float:
        """E||n||^2 of any noise is at least this many times what one number needs that may change by 1; rounded down.

        For a change v and any vector u, <n, u>/<v, u> is the noise of one number which changes by 1. For v and u drawn
        at random, with <v, u> = s always, E <n, u>^2 is at most the largest eigenvalue of E[u u^T] times E||n||^2, so
        that the share is s^2 over that eigenvalue. Here, u = v = one entry's change over its size: the sum of squares.
        """
        return math.nextafter(dimension * self.single(dimension) ** 2 * (1.0 - 1e-15), 0.0)

    @abstractmethod
    def contains(self, change: Sequence[float]) -> bool:
        """Whether one individual can change the entries by these numbers."""

    def majorant(self, dimension: int) -> Moves | None:
        """The change whose largest entries add up to most, however many of them: noise hides it worst if it is Laplace.

        None if no change of the set is the worst in this sense.
        """
        return None

    def dominant(self, dimension: int) -> Moves | None:
        """The change whose i-th largest entry is the largest for every i: any falling noise hides it worst."""
        return None

    def concentrates(self, dimension: int) -> bool:
        """Whether all that changes may be in one entry; of replaced rows, in one that they leave and one they enter."""
        return dimension == 1

    def fills_box(self, dimension: int) -> bool:
        """Whether every entry alone, and any of them together, may change by their bounds, all up or all down."""
        return dimension == 1

    def side(self, dimension: int) -> float | None:
        """No change adds more than this to the entries in all, nor takes away more; None where that is not known.

        >>> from lessnoise.changes import counts
        >>> one = counts(2, per_cell=1, neighbours="replace")
        >>> one.side(3), one.norm(1, 3)  # two rows leave two cells, and one of them enters the third
        (2.0, 3.0)
        """
        return None

    def check_shape(self, shape: tuple[int, ...]) -> None:  # noqa: B027
        """Raise InvalidInput if the set is not one of changes of arrays of this shape."""

    @property
    def relation(self) -> Neighbours | None:
        """The relation that the set was stated for; None if it fits any."""
        return None

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """Raise InvalidInput if the set was stated for another relation."""
        if self.relation not in (None, neighbours):
            raise InvalidInput(
                f"neighbours={neighbours.value!r} is not that of the changes ({self}): state both for one relation."
            )

    def under(self, neighbours: Neighbours) -> str:
        """The set in words, with the relation it is stated for."""
        words = str(self)
        return words if neighbours.value in words else f"{words}, {neighbours.value}"

    def inner_radius(self, dimension: int) -> float:
        """The radius of an l2 ball in the set: lower bounds for that ball hold for the set."""
        return self.single(dimension) if dimension == 1 else 0.0

    def scaled(self, factor: float) -> Changes:
        """Every change multiplied by a factor."""
        return Scaled(self, factor)

    def __or__(self, other: Changes) -> Changes:
        return Joined((self, other))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""
        return {"kind": self.kind, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Changes:
        """The inverse of :meth:`to_dict` of any set.

        >>> from lessnoise.changes import counts
        >>> Changes.from_dict(counts(3, per_cell=1).to_dict()) == counts(3, per_cell=1)
        True
        """
        kind = validation.fields(values, ("kind",), "changes", optional=None)["kind"]
        validation.choice("changes kind", kind, list(_KINDS))
        found = _KINDS[kind]
        needed = [field.name for field in fields(found) if field.default is MISSING]  # type: ignore[arg-type]
        rest = [field.name for field in fields(found) if field.default is not MISSING]  # type: ignore[arg-type]
        given = validation.fields(values, ("kind", *needed), f"{kind} changes", rest)
        return found(**{name: value for name, value in given.items() if name != "kind"})


@dataclass(frozen=True, slots=True)
class Scaled(Changes):
    """The changes of a set, multiplied by a factor."""

    changes: Changes
    factor: float

    kind: ClassVar[str] = "scaled"

    def __post_init__(self) -> None:
        settle(self, changes=read_changes(self.changes), factor=validation.positive("factor", self.factor))

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """Whole numbers times a whole number."""
        return self.changes.whole and self.factor.is_integer()

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        """As of the set."""
        return self.changes.one_sided

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As of the set."""
        self.changes.check_shape(shape)

    @property
    def relation(self) -> Neighbours | None:
        """That of the set."""
        return self.changes.relation

    def inner_radius(self, dimension: int) -> float:
        """The set's own, multiplied."""
        return math.nextafter(self.changes.inner_radius(dimension) * self.factor, 0.0)

    def _power(self, order: float, dimension: int) -> Fraction:
        return self.changes._power(order, dimension) * Fraction(self.factor) ** (2 if order == 2 else 1)

    def single(self, dimension: int) -> float:
        """The set's own, multiplied."""
        return math.nextafter(self.changes.single(dimension) * self.factor, 0.0)

    def scalar_share(self, dimension: int) -> float:
        """The set's own, multiplied."""
        return self.changes.scalar_share(dimension) * self.factor**2 * (1.0 - 1e-15)

    def contains(self, change: Sequence[float]) -> bool:
        """Whether the set has it, divided by the factor, within rounding."""
        return self.changes.contains([_settled(entry / self.factor, self.changes.whole) for entry in change])

    def majorant(self, dimension: int) -> Moves | None:
        """The set's own, multiplied."""
        found = self.changes.majorant(dimension)
        return None if found is None else found.scaled(self.factor)

    def dominant(self, dimension: int) -> Moves | None:
        """The set's own, multiplied."""
        found = self.changes.dominant(dimension)
        return None if found is None else found.scaled(self.factor)

    def concentrates(self, dimension: int) -> bool:
        """As of the set."""
        return self.changes.concentrates(dimension)

    def fills_box(self, dimension: int) -> bool:
        """As of the set."""
        return self.changes.fills_box(dimension)

    def side(self, dimension: int) -> float | None:
        """The set's own, multiplied."""
        found = self.changes.side(dimension)
        return None if found is None else round_up(Fraction(found) * Fraction(self.factor))

    def __str__(self) -> str:
        return f"{self.factor:g} times ({self.changes})"


@dataclass(frozen=True, slots=True)
class Joined(Changes):
    """Changes of any of several sets."""

    sets: tuple[Changes, ...]

    kind: ClassVar[str] = "joined"

    def __post_init__(self) -> None:
        sets = tuple(read_changes(one) for one in validation.entries("sets", list(self.sets)))
        if not sets:
            raise InvalidInput("sets=() is empty: join at least one set of changes.")
        if len({one.relation for one in sets if one.relation is not None}) > 1:
            words = " or ".join(f"({one})" for one in sets)
            raise InvalidInput(f"sets={words} are stated for different relations: join sets of one relation.")
        settle(self, sets=sets)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """All of them are."""
        return all(one.whole for one in self.sets)

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        """All of them are."""
        return all(one.one_sided for one in self.sets)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As of every set."""
        for one in self.sets:
            one.check_shape(shape)

    @property
    def relation(self) -> Neighbours | None:
        """The one that any of the sets was stated for."""
        return next((one.relation for one in self.sets if one.relation is not None), None)

    def inner_radius(self, dimension: int) -> float:
        """The largest of the sets' own."""
        return max(one.inner_radius(dimension) for one in self.sets)

    def _power(self, order: float, dimension: int) -> Fraction:
        return max(one._power(order, dimension) for one in self.sets)

    def single(self, dimension: int) -> float:
        """The largest of the sets' own."""
        return max(one.single(dimension) for one in self.sets)

    def scalar_share(self, dimension: int) -> float:
        """The largest of the sets' own."""
        return max(one.scalar_share(dimension) for one in self.sets)

    def contains(self, change: Sequence[float]) -> bool:
        """Whether any of the sets has it."""
        return any(one.contains(change) for one in self.sets)

    def majorant(self, dimension: int) -> Moves | None:
        """That of one of the sets, if it is above those of all others."""
        return first_above([one.majorant(dimension) for one in self.sets], Moves.majorizes)

    def dominant(self, dimension: int) -> Moves | None:
        """That of one of the sets, if it is above those of all others."""
        return first_above([one.dominant(dimension) for one in self.sets], Moves.dominates)

    def side(self, dimension: int) -> float | None:
        """The largest of the sets' own, if all are known."""
        known = [side for one in self.sets if (side := one.side(dimension)) is not None]
        return max(known) if len(known) == len(self.sets) else None

    def __str__(self) -> str:
        return " or ".join(f"({one})" for one in self.sets)


ROUNDING = 1e-8  # relative: a length typed as 1.41421356 is meant to be the square root of 2


def _settled(entry: float, whole: bool) -> float:
    """A quotient that is a whole number but for rounding."""
    return float(round(entry)) if whole and abs(entry - round(entry)) < ROUNDING * max(abs(entry), 1.0) else entry


def subset_share(chosen: int, dimension: int) -> float:
    """For changes by 1 of any ``chosen`` entries, all up or all down: u = v - mean(v), s = |u|^2 = j (M - j)/M.

    E[u u^T] = |u|^2 (I - 1 1^T/M)/(M - 1), so that the share is j (M - j) (M - 1)/M; half of the entries serve best.
    """
    j = min(chosen, dimension // 2)
    return float(j * (dimension - j) * (dimension - 1)) / dimension * (1.0 - 1e-15)


def first_above(found: list[Moves | None], above: Callable[[Moves, Moves], bool]) -> Moves | None:
    """The first that is above all of them, if each is known and there is one."""
    known = [moves for moves in found if moves is not None]
    if len(known) < len(found):
        return None
    return next((one for one in known if all(above(one, other) for other in known)), None)


def read_changes(value: object) -> Changes:
    """A set from itself or from its plain values."""
    if isinstance(value, Changes):
        return value
    if isinstance(value, dict):
        return Changes.from_dict(value)
    raise InvalidInput(f"changes={shown(value)} is not a set of changes: build one with lessnoise.changes.")


def _plain(value: object) -> object:
    if isinstance(value, Changes):
        return value.to_dict()
    if isinstance(value, Neighbours):
        return value.value
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return "inf" if value == math.inf else value
