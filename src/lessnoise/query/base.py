"""What every query is: a sum over rows of a bounded contribution, and so a sum of partial sums."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up
from lessnoise._later import later
from lessnoise.changes import Counts, ball, counts
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import Request
from lessnoise.query import columns, whole_sums
from lessnoise.query.answer import Answer, Asked
from lessnoise.query.unit import ROW, Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lessnoise._common import Array, BoolArray, IntArray, Progress
    from lessnoise.changes import Changes


@dataclass(frozen=True, slots=True)
class Norms:
    """The largest l2 and l1 norms of a change, rounded up."""

    l2: float
    l1: float


class AnswerOptions(TypedDict, total=False):
    """How a query is answered: what each means is said at :func:`lessnoise.engines.answer`."""

    neighbours: Neighbours | str
    unit: Unit
    engine: str | None
    progress: Progress | None


_KINDS: dict[str, type[Query]] = {}
MISSING_DROPPED = "A row with NULL or NaN in one of the columns is dropped."
CLIPPED = "An entry outside its bounds, infinite ones too, is clipped to them."


class Query(ABC):
    """A description of a sum over rows. Engines call ``partial`` where the data is, then ``combine`` and ``finish``.

    A batch is an Arrow record batch or table, a mapping of names to arrays, or a matrix whose columns are ``columns``.
    Partial sums are integers, so they can be combined in any order with the same result.
    """

    kind: ClassVar[str]
    """Its name in descriptions."""

    integer = False
    """The value holds whole numbers."""

    counts = False
    """The value holds counts of rows, for mechanisms that are made for them."""

    shape_is_public: ClassVar[bool] = True
    """The shape of the value does not depend on the data."""

    block_rows = 1 << 18
    """Rows of an array in memory that are taken at a time, so that what is made from them stays small."""

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            _KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""

    @property
    @abstractmethod
    def kinds(self) -> dict[str, str]:
        """What each column must hold: number, integer or text."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of the value, for a mechanism's ``shape``."""

    @abstractmethod
    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The sum of the contributions of one batch."""

    @abstractmethod
    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Which rows contribute; the others are dropped before a user's rows are chosen."""

    @abstractmethod
    def row_norms(self, neighbours: Neighbours) -> Norms:
        """Largest change by one row: added or removed; or replaced, by a dropped one too."""

    def known_changes(self, neighbours: Neighbours, rows: int) -> Changes | None:
        """The set of changes by so many rows, if more is known of it than its largest norms."""
        return None

    def groups_of(self, batch: Any) -> IntArray | None:  # noqa: ANN401
        """The group of each row that counts, in the order of keys or cells; None: there are no groups."""
        return None

    def _changes_by(self, neighbours: Neighbours, unit: Unit) -> Changes | None:
        """The set for one unit: of rows in cells, each cell gets at most as many as the unit has in a group."""
        known = self.known_changes(neighbours, unit.rows)
        if isinstance(known, Counts) and unit.per_group < unit.rows:
            return counts(unit.rows, unit.per_group, neighbours)
        return known

    def changes(self, neighbours: Neighbours | str = Neighbours.ADD_REMOVE, unit: Unit = ROW) -> Changes:
        """What one unit can do to the value: the set of all changes; an l2 ball if no more is known.

        >>> from lessnoise.query import Axis, Histogram, Unit
        >>> query = Histogram([Axis("kind", keys=["bus", "taxi"])])
        >>> print(query.changes(unit=Unit("driver", max_rows=3)))
        at most 3 rows, add/remove
        """
        known = self._changes_by(Neighbours.of(neighbours), unit)
        return ball(self.norms(neighbours, unit).l2) if known is None else known

    @abstractmethod
    def finish(self, total: IntArray) -> Array:
        """From the sum of all partial sums to the value."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Query:
        """The inverse of :meth:`to_dict` of any query.

        >>> from lessnoise.query import Sum
        >>> Query.from_dict(Sum(["age"], bounds=(0, 100)).to_dict()) == Sum(["age"], bounds=(0, 100))
        True
        """
        kind = validation.fields(values, ("query",), "query", optional=None)["query"]
        validation.choice("query", kind, list(_KINDS))
        return _KINDS[kind].read(values)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """A query of this kind from its plain values."""
        raise NotImplementedError

    @property
    def can_be_read(self) -> bool:
        """Whether :meth:`from_dict` makes it again from its description, so that a certificate can state it."""
        return _KINDS.get(getattr(self, "kind", "")) is type(self)

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows are dropped and what is clipped, in words for a certificate."""
        return (MISSING_DROPPED,)

    def zero(self) -> IntArray:
        """The partial sum of no rows."""
        return np.zeros(self.shape, dtype=np.int64)

    def combine(self, left: IntArray, right: IntArray) -> IntArray:
        """Add two partial sums, exactly."""
        return whole_sums.add(left, right)

    def sum_of(self, parts: Iterable[IntArray]) -> IntArray:
        """Add up any number of partial sums, exactly."""
        return functools.reduce(self.combine, parts, self.zero())

    def norms(self, neighbours: Neighbours | str, unit: Unit = ROW) -> Norms:
        """Largest change by one unit: k rows change k times as much as one, if they are all alike."""
        one = self.row_norms(Neighbours.of(neighbours))
        return Norms(*(round_up(unit.rows * Fraction(norm)) for norm in (one.l2, one.l1)))

    def sensitivity(self, neighbours: Neighbours | str, unit: Unit = ROW) -> float:
        """Largest l2 change by one unit."""
        return self.norms(neighbours, unit).l2

    def l1_sensitivity(self, neighbours: Neighbours | str, unit: Unit = ROW) -> float:
        """Largest l1 change by one unit."""
        return self.norms(neighbours, unit).l1

    def request(
        self,
        epsilon: float,
        delta: float,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        unit: Unit = ROW,
        **options: Any,  # noqa: ANN401
    ) -> Request:
        """What a mechanism for this query must do, whatever the data; ``options`` are further fields of the request."""
        norms, relation = self.norms(neighbours, unit), Neighbours.of(neighbours)
        changes = self._changes_by(relation, unit)
        if changes is not None:
            given = {"counts": self.counts, "changes": changes, **options}
            return Request(epsilon, delta, None, self.shape, relation, **given)  # type: ignore[arg-type]
        known = {"l1_sensitivity": norms.l1, "integer": self.integer, "counts": self.counts}
        return Request(epsilon, delta, norms.l2, self.shape, relation, **{**known, **options})

    def answer(
        self,
        data: Any,  # noqa: ANN401
        **options: Unpack[AnswerOptions],
    ) -> Answer:
        """Answer the query on some data; see :func:`lessnoise.engines.answer`."""
        answer: Answer = later("answer")(self, data, **options)
        return answer

    def answer_from(
        self, total: IntArray, neighbours: Neighbours | str, unit: Unit = ROW, engine: str | None = None
    ) -> Answer:
        """The answer whose partial sums add up to ``total``."""
        value = self.finish(total)
        value.setflags(write=False)
        norms = self.norms(neighbours, unit)
        return Answer(value, norms.l2, norms.l1, Neighbours.of(neighbours), unit, self, engine)


class NumericQuery(Query):
    """A query that reads numbers only, from the columns ``names``; rows with NULL or NaN do not contribute."""

    names: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the kind, the columns, then all other fields."""
        given = {of.name: _plain(getattr(self, of.name)) for of in fields(self)}  # type: ignore[arg-type]
        return {"query": self.kind, "columns": given.pop("names"), **given}

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """A query of this kind from its plain values."""
        names = [of.name for of in fields(cls) if of.name != "names"]  # type: ignore[arg-type]
        given = validation.fields(values, ("query", "columns", *names), f"{cls.kind} query")
        return cls(names=_tuples(given["columns"]), **{name: _tuples(given[name]) for name in names})  # type: ignore[call-arg]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.names

    @property
    def kinds(self) -> dict[str, str]:
        """All numbers."""
        return dict.fromkeys(self.names, columns.NUMBER)

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Rows without NULL and NaN."""
        return np.asarray(~np.isnan(columns.matrix(batch, self.names)).any(axis=1))


def read_asked(values: dict[str, Any]) -> Asked:
    """What was asked, from :meth:`Asked.to_dict`; the words of its rules are those of the version that wrote them.

    >>> from lessnoise.query import Sum
    >>> asked = Sum(["age"], bounds=(0, 100)).answer({"age": [20.0]}).asked
    >>> read_asked(asked.to_dict()) == asked
    True
    """
    needed = ("description", "columns", "unit", "neighbours", "engine", "rules")
    given = validation.fields(values, needed, "query")
    if given["engine"] is not None:
        validation.text("engine", given["engine"])
    for rule in validation.entries("rules", given["rules"]):
        validation.text("rule", rule)
    query, unit = Query.from_dict(given["description"]), Unit.from_dict(given["unit"])
    found = Asked(query, Neighbours.of(given["neighbours"]), unit, given["engine"])
    if query.to_dict() != given["description"] or list(query.columns) != given["columns"]:
        raise InvalidInput(
            f"columns={shown(given['columns'])} or fields of the query contradict its description, {found}: restore it."
        )
    return found


def _plain(value: object) -> object:
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _tuples(value: object) -> Any:  # noqa: ANN401
    """A list, or a list of lists, as tuples."""
    return (
        tuple(tuple(each) if isinstance(each, list) else each for each in value) if isinstance(value, list) else value
    )


def column_names(names: object, name: str = "columns") -> tuple[str, ...]:
    """One name or several different ones."""
    found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, (list, tuple)) else ()
    if not found or not all(isinstance(each, str) for each in found):
        raise InvalidInput(f"{name}={shown(names)} is not a list of column names: pass names such as ['Lon', 'Lat'].")
    if len(set(found)) < len(found):
        raise InvalidInput(f"{name}={shown(names)} names a column twice: pass different names.")
    return found


def interval(name: str, value: object) -> tuple[float, float]:
    """(lowest, highest), both finite, in this order."""
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise InvalidInput(
            f"{name}={shown(value)} is not an interval: pass (lowest, highest), known without looking at the data."
        )
    low, high = (validation.number(f"{name}[{end}]", value[end]) for end in (0, 1))
    if low >= high:
        raise InvalidInput(f"{name}={(low, high)} does not run from low to high: pass the smaller end first.")
    return low, high


def intervals(bounds: object, columns: Sequence[str]) -> tuple[tuple[float, float], ...]:
    """One interval for all columns, or one each."""
    nested = isinstance(bounds, (list, tuple)) and len(bounds) > 0 and isinstance(bounds[0], (list, tuple))
    if not nested:
        return (interval("bounds", bounds),) * len(columns)
    assert isinstance(bounds, (list, tuple))
    if len(bounds) != len(columns):
        raise InvalidInput(
            f"bounds={shown(bounds)} has {len(bounds)} intervals for {len(columns)} columns: pass one each."
        )
    return tuple(interval(f"bounds[{place}]", each) for place, each in enumerate(bounds))
