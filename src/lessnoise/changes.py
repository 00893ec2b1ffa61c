"""What one individual can do to a value: a frozen description of a set of changes, from which sensitivities follow.

Every set is symmetric: who can be added can be removed. Norms are rounded up, so that noise made for them is enough.

>>> from lessnoise import changes
>>> one_row = changes.counts()
>>> one_row.norm(1, 6), one_row.norm(2, 6), str(one_row)
(1.0, 1.0, 'at most 1 row, add/remove')
"""

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
    from collections.abc import Sequence

ORDERS = (1, 2, math.inf)
_KINDS: dict[str, type[Changes]] = {}


class Changes(ABC):
    """A set of changes. Build one with :func:`ball`, :func:`counts`, :func:`corner` or :func:`listed`."""

    kind: ClassVar[str]
    whole: bool = False
    """Every change is made of whole numbers."""

    def __init_subclass__(cls) -> None:
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

    def check_shape(self, shape: tuple[int, ...]) -> None:  # noqa: B027
        """Raise InvalidInput if the set is not one of changes of arrays of this shape."""

    def scaled(self, factor: float) -> Changes:
        """Every change multiplied by a factor."""
        return Scaled(self, factor)

    def __or__(self, other: Changes) -> Changes:
        return joined(self, other)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""
        return {"kind": self.kind, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Changes:
        """The inverse of :meth:`to_dict` of any set.

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
class Ball(Changes):
    """All changes of norm at most ``radius``."""

    radius: float
    order: float = 2

    kind: ClassVar[str] = "ball"

    def __post_init__(self) -> None:
        order = math.inf if self.order in ("inf", math.inf) else self.order
        settle(self, radius=validation.sensitivity(self.radius, "radius"), order=order)
        validation.choice("norm", order, ORDERS)

    def _power(self, order: float, dimension: int) -> Fraction:
        # The largest l_q norm in the unit ball of l_p is M^(1/q - 1/p) if q < p, else 1.
        radius, size = Fraction(self.radius), Fraction(dimension)
        if order == 2:
            return radius**2 * (size if self.order == math.inf else 1)
        if order == 1 and self.order == 2:
            return radius * Fraction(root_up(size))
        return radius * (size if order < self.order else 1)

    def single(self, dimension: int) -> float:
        """The radius: a change may lie in one entry."""
        return self.radius

    def __str__(self) -> str:
        return f"l{self.order} norm at most {self.radius:g}"


@dataclass(frozen=True, slots=True)
class Counts(Changes):
    """Rows that are counted in disjoint cells: at most ``rows`` of an individual, at most ``per_cell`` in one cell.

    Under *replace* as many are taken away, and may be added to other cells.
    """

    rows: int = 1
    per_cell: int | None = None
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    kind: ClassVar[str] = "counts"
    whole: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        settle(self, rows=validation.whole_number("rows", self.rows), neighbours=Neighbours.of(self.neighbours))
        if self.per_cell is not None:
            settle(self, per_cell=validation.whole_number("per_cell", self.per_cell))
            if self.per_cell > self.rows:
                raise InvalidInput(
                    f"per_cell={self.per_cell} is above rows={self.rows}: a cell cannot get more rows than there are."
                )

    def _power(self, order: float, dimension: int) -> Fraction:
        if self.neighbours is Neighbours.ADD_REMOVE or order == math.inf:  # a cell: rows that leave, or rows that enter
            return Fraction(self._packed(order, dimension))
        # Rows that leave and rows that enter lie in different cells: in the same one they would cancel.
        most = min(dimension, -(-self.rows // self._most))
        firsts = {most, *range(max(dimension - most, 0), most + 1)}
        return Fraction(max(self._packed(order, one) + self._packed(order, dimension - one) for one in firsts))

    @property
    def _most(self) -> int:
        return self.rows if self.per_cell is None else self.per_cell

    def _packed(self, order: float, cells: int) -> int:
        """As many rows as allowed in as few of the cells as possible: sum, sum of squares, or largest."""
        full, rest = divmod(self.rows, self._most)
        if full >= cells:
            full, rest = cells, 0
        if order == math.inf:
            return self._most if full else rest
        return int(full * self._most ** int(order) + rest ** int(order))

    def single(self, dimension: int) -> float:
        """As many rows as one cell may get."""
        return float(self._most)

    def __str__(self) -> str:
        cap = "" if self.per_cell is None else f", at most {self.per_cell} in a cell"
        return f"at most {self.rows} row{'s' if self.rows > 1 else ''}{cap}, {self.neighbours.value}"


@dataclass(frozen=True, slots=True)
class Corner(Changes):
    """One individual adds between 0 and its bound to each entry, or takes that away: one bound for all, or one each."""

    bounds: float | tuple[float, ...]

    kind: ClassVar[str] = "corner"

    def __post_init__(self) -> None:
        if isinstance(self.bounds, (list, tuple)):
            if not self.bounds:
                raise InvalidInput("bounds=() is empty: pass one bound for all entries, or one each.")
            checked = tuple(validation.positive(f"bounds[{i}]", bound) for i, bound in enumerate(self.bounds))
            settle(self, bounds=checked)
        else:
            settle(self, bounds=validation.positive("bounds", self.bounds))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As many bounds as entries, or one."""
        if isinstance(self.bounds, tuple) and len(self.bounds) != math.prod(shape):
            raise InvalidInput(
                f"bounds has length={len(self.bounds)} for shape={shape}: pass one bound for all entries, or one each."
            )

    def _power(self, order: float, dimension: int) -> Fraction:
        if not isinstance(self.bounds, tuple):
            bound = Fraction(self.bounds)
            return bound if order == math.inf else dimension * bound ** int(order)
        self.check_shape((dimension,))
        exact = [Fraction(bound) for bound in self.bounds]
        return max(exact) if order == math.inf else sum((bound ** int(order) for bound in exact), Fraction(0))

    def single(self, dimension: int) -> float:
        """The smallest bound."""
        return min(self.bounds) if isinstance(self.bounds, tuple) else self.bounds

    def __str__(self) -> str:
        each = "their own bounds" if isinstance(self.bounds, tuple) else f"{self.bounds:g}"
        return f"every entry up by 0 to {each}, or down"


@dataclass(frozen=True, slots=True)
class Listed(Changes):
    """These changes, and their opposites."""

    vectors: tuple[tuple[float, ...], ...]

    kind: ClassVar[str] = "listed"

    def __post_init__(self) -> None:
        given = validation.entries("vectors", list(self.vectors))
        checked = tuple(validation.numbers(f"vectors[{i}]", each) for i, each in enumerate(given))
        if not all(checked):
            raise InvalidInput(
                f"vectors={shown(self.vectors)} has no change: pass at least one, of at least one entry."
            )
        if len({len(vector) for vector in checked}) > 1 or not any(map(any, checked)):
            raise InvalidInput(
                f"vectors={shown(self.vectors)} are all 0 or have different lengths: pass changes of one shape."
            )
        settle(self, vectors=checked)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """All entries are whole numbers."""
        return all(entry.is_integer() for vector in self.vectors for entry in vector)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Vectors of as many entries."""
        if len(self.vectors[0]) != math.prod(shape):
            raise InvalidInput(
                f"vectors have length={len(self.vectors[0])} for shape={shape}: pass changes of the value's entries."
            )

    def _power(self, order: float, dimension: int) -> Fraction:
        self.check_shape((dimension,))
        sizes = [[abs(Fraction(entry)) for entry in vector] for vector in self.vectors]
        if order == math.inf:
            return max(max(vector) for vector in sizes)
        return max(sum((entry ** int(order) for entry in vector), Fraction(0)) for vector in sizes)

    def single(self, dimension: int) -> float:
        """What every entry can change by when all others stay; 0 if some entry never changes alone."""
        alone = [0.0] * dimension
        for vector in self.vectors:
            changed = [i for i, entry in enumerate(vector) if entry]
            if len(changed) == 1:
                alone[changed[0]] = max(alone[changed[0]], abs(vector[changed[0]]))
        return min(alone)

    def __str__(self) -> str:
        return f"{len(self.vectors)} listed change{'s' if len(self.vectors) > 1 else ''} and their opposites"


@dataclass(frozen=True, slots=True)
class Scaled(Changes):
    """The changes of a set, multiplied by a factor."""

    changes: Changes
    factor: float

    kind: ClassVar[str] = "scaled"

    def __post_init__(self) -> None:
        settle(self, changes=_read(self.changes), factor=validation.positive("factor", self.factor))

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """Whole numbers times a whole number."""
        return self.changes.whole and self.factor.is_integer()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As of the set."""
        self.changes.check_shape(shape)

    def _power(self, order: float, dimension: int) -> Fraction:
        return self.changes._power(order, dimension) * Fraction(self.factor) ** (2 if order == 2 else 1)

    def single(self, dimension: int) -> float:
        """The set's own, multiplied."""
        return math.nextafter(self.changes.single(dimension) * self.factor, 0.0)

    def __str__(self) -> str:
        return f"{self.factor:g} times ({self.changes})"


@dataclass(frozen=True, slots=True)
class Joined(Changes):
    """Changes of any of several sets."""

    sets: tuple[Changes, ...]

    kind: ClassVar[str] = "joined"

    def __post_init__(self) -> None:
        sets = tuple(_read(one) for one in validation.entries("sets", list(self.sets)))
        settle(self, sets=sets)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """All of them are."""
        return all(one.whole for one in self.sets)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As of every set."""
        for one in self.sets:
            one.check_shape(shape)

    def _power(self, order: float, dimension: int) -> Fraction:
        return max(one._power(order, dimension) for one in self.sets)

    def single(self, dimension: int) -> float:
        """The largest of the sets' own."""
        return max(one.single(dimension) for one in self.sets)

    def __str__(self) -> str:
        return " or ".join(f"({one})" for one in self.sets)


def ball(radius: float, norm: float = 2) -> Changes:
    """All changes whose l1, l2 or l-infinity norm (``norm`` 1, 2 or inf) is at most ``radius``.

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


def listed(vectors: Sequence[Sequence[float]]) -> Changes:
    """A finite list of changes; their opposites are meant too.

    >>> listed([[1, 0], [0, -2]]).norm(math.inf, 2), listed([[1, 0], [0, -2]]).single(2)
    (2.0, 1.0)
    """
    return Listed(tuple(tuple(vector) for vector in vectors))


def joined(*sets: Changes) -> Changes:
    """Changes of any of these sets.

    >>> str(joined(counts(), ball(2.0)))
    '(at most 1 row, add/remove) or (l2 norm at most 2)'
    """
    return Joined(sets)


def _read(value: object) -> Changes:
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
