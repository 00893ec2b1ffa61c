"""The sets of changes that there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from lessnoise import validation
from lessnoise._common import root_up, settle
from lessnoise.changes.base import ORDERS, ROUNDING, Changes, Moves, first_above, subset_share
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CELLS = 1000


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

    def inner_radius(self, dimension: int) -> float:
        """The radius, unless the ball has corners at the axes."""
        return self.radius if self.order != 1 or dimension == 1 else 0.0

    def concentrates(self, dimension: int) -> bool:
        """A change may lie in one entry, and has the largest l1 norm there for order 1."""
        return self.order == 1 or dimension == 1

    def fills_box(self, dimension: int) -> bool:
        """For norm inf."""
        return self.order == math.inf or dimension == 1

    def scalar_share(self, dimension: int) -> float:
        """Of one entry; for norm inf, of all corners."""
        if self.order == math.inf:
            return Box(self.radius).scalar_share(dimension)
        return Changes.scalar_share(self, dimension)

    def contains(self, change: Sequence[float]) -> bool:
        """Whether its norm is at most the radius, within rounding."""
        moves = Moves.of(change)
        size = 0.0 if not moves.sizes else moves.sizes[0][0] if self.order == math.inf else moves.norm(self.order)
        return size <= self.radius * (1.0 + ROUNDING)

    def majorant(self, dimension: int) -> Moves | None:
        """All in one entry for norm 1, all entries for norm inf."""
        if self.order == 1 or dimension == 1:
            return Moves(((self.radius, 1),))
        return self.dominant(dimension)

    def dominant(self, dimension: int) -> Moves | None:
        """All entries, for norm inf."""
        return Moves(((self.radius, dimension),)) if self.order == math.inf or dimension == 1 else None

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

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        """Rows are added, or taken away, unless some are replaced."""
        return self.neighbours is Neighbours.ADD_REMOVE

    @property
    def relation(self) -> Neighbours:
        """The one that the rows were stated for."""
        return self.neighbours

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

    def concentrates(self, dimension: int) -> bool:
        """Unless a cell can have only some of the rows."""
        return self._most == self.rows

    def side(self, dimension: int) -> float:
        """As many rows as the cells can hold: they may all leave, and others that enter may be in no cell."""
        return float(self._packed(1, dimension))

    def single(self, dimension: int) -> float:
        """As many rows as one cell may get."""
        return float(self._most)

    def scalar_share(self, dimension: int) -> float:
        """Of one cell; of full cells, all up or down; or of rows out of some cells into as many others."""
        alone, full = Changes.scalar_share(self, dimension), self.rows // self._most
        most = subset_share(full, dimension)
        if self.neighbours is Neighbours.REPLACE:  # u = v, |v|^2 = 2 j, E[v v^T] = 2 j (I - 1 1^T/M)/(M - 1)
            most = max(most, 2.0 * min(full, dimension // 2) * (dimension - 1))
        return max(alone, most * self._most**2 * (1.0 - 1e-15))

    def contains(self, change: Sequence[float]) -> bool:
        """Whole numbers that keep the limits."""
        up, down = sum(entry for entry in change if entry > 0), -sum(entry for entry in change if entry < 0)
        limits = max(up, down) <= self.rows and max(map(abs, change), default=0.0) <= self._most
        apart = self.neighbours is Neighbours.REPLACE or min(up, down) == 0
        return limits and apart and all(float(entry).is_integer() for entry in change)

    def majorant(self, dimension: int) -> Moves:
        """As many full cells as there can be, and the rest in one more; twice that if rows are replaced."""
        sides = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        full, rest = divmod(self.rows, self._most)
        cells = min(sides * full, dimension)
        return Moves.counted([(float(self._most), cells), (float(rest), min(sides, dimension - cells))])

    def dominant(self, dimension: int) -> Moves | None:
        """The same, unless spreading the rows over more cells changes one of these more."""
        found = self.majorant(dimension)
        if self._most == 1:
            return found
        sides = 1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        spread = min(sides * self.rows, dimension)  # cells that can change at all
        if spread > min(found.count, _MOST_CELLS):
            return None
        # With i cells, each may get as many rows as every one of them can.
        alike = Moves.of(min(self._most, self.rows // -(-i // sides)) for i in range(1, spread + 1))
        return found if found.dominates(alike) else None

    def __str__(self) -> str:
        cap = "" if self.per_cell is None else f", at most {self.per_cell} in a cell"
        return f"at most {self.rows} row{'s' if self.rows > 1 else ''}{cap}, {self.neighbours.value}"


@dataclass(frozen=True, slots=True)
class Bounded(Changes):
    """Each entry has a bound: one for all, or one each."""

    bounds: float | tuple[float, ...]

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

    def fills_box(self, dimension: int) -> bool:
        """Every vertex is a change."""
        return True

    def majorant(self, dimension: int) -> Moves:
        """All entries by their bounds."""
        return self.dominant(dimension)

    def dominant(self, dimension: int) -> Moves:
        """All entries by their bounds."""
        self.check_shape((dimension,))
        return Moves.of(self.bounds) if isinstance(self.bounds, tuple) else Moves(((self.bounds, dimension),))

    def _within(self, change: Sequence[float]) -> bool:
        bounds = self.bounds if isinstance(self.bounds, tuple) else (self.bounds,) * len(change)
        return len(bounds) == len(change) and all(
            abs(entry) <= bound * (1.0 + ROUNDING) for entry, bound in zip(change, bounds, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Corner(Bounded):
    """One individual adds between 0 and its bound to each entry, or takes that away."""

    kind: ClassVar[str] = "corner"
    one_sided: ClassVar[bool] = True  # type: ignore[misc]

    def scalar_share(self, dimension: int) -> float:
        """Of one entry each; or of half of the entries, all by the smallest bound."""
        alone = math.nextafter(self.norm(2, dimension) ** 2 * (1.0 - 1e-15), 0.0)
        return max(alone, subset_share(dimension, dimension) * self.single(dimension) ** 2 * (1.0 - 1e-15))

    def contains(self, change: Sequence[float]) -> bool:
        """All up or all down, within the bounds."""
        return self._within(change) and not min(change) < 0.0 < max(change)

    def __str__(self) -> str:
        each = "their own bounds" if isinstance(self.bounds, tuple) else f"{self.bounds:g}"
        return f"every entry up by 0 to {each}, or down"


@dataclass(frozen=True, slots=True)
class Box(Bounded):
    """Every entry may go up or down by at most its bound, whatever the others do."""

    kind: ClassVar[str] = "box"

    def scalar_share(self, dimension: int) -> float:
        """Of all corners, their signs at random: E[v v^T] has the squares of the bounds on its diagonal."""
        squares = math.nextafter(self.norm(2, dimension) ** 2 * (1.0 - 1e-15), 0.0)
        return squares * max(1.0, squares / (self.norm(math.inf, dimension) ** 2 * (1.0 + 1e-15)) * (1.0 - 1e-15))

    def contains(self, change: Sequence[float]) -> bool:
        """Within the bounds."""
        return self._within(change)

    def inner_radius(self, dimension: int) -> float:
        """The smallest bound."""
        return self.single(dimension)

    def __str__(self) -> str:
        each = "its own bound" if isinstance(self.bounds, tuple) else f"{self.bounds:g}"
        return f"every entry up or down by at most {each}"


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

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        """No vector has entries of both signs."""
        return all(min(vector) >= 0.0 or max(vector) <= 0.0 for vector in self.vectors)

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
        return min(self._alone(dimension))

    def scalar_share(self, dimension: int) -> float:
        """Of the changes of one entry."""
        return math.fsum(size**2 for size in self._alone(dimension)) * (1.0 - 1e-15)

    def _alone(self, dimension: int) -> list[float]:
        alone = [0.0] * dimension
        for vector in self.vectors:
            changed = [i for i, entry in enumerate(vector) if entry]
            if len(changed) == 1:
                alone[changed[0]] = max(alone[changed[0]], abs(vector[changed[0]]))
        return alone

    def contains(self, change: Sequence[float]) -> bool:
        """One of the vectors, or its opposite, or none."""
        given = tuple(map(float, change))
        return not any(given) or given in self.vectors or tuple(-entry for entry in given) in self.vectors

    def majorant(self, dimension: int) -> Moves | None:
        """One of the vectors, if it is above all others."""
        return first_above([Moves.of(vector) for vector in self.vectors], Moves.majorizes)

    def dominant(self, dimension: int) -> Moves | None:
        """One of the vectors, if it is above all others."""
        return first_above([Moves.of(vector) for vector in self.vectors], Moves.dominates)

    def __str__(self) -> str:
        return f"{len(self.vectors)} listed change{'s' if len(self.vectors) > 1 else ''} and their opposites"
