"""A table of private rows, and questions to it: groups, aggregates, a plan, a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._later import later
from lessnoise.engines import check_read_again, engine_name
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.query import ROW, ROWS, USERS, Axis, FoundKeys, Grouped, Unit, column_names
from lessnoise.release import check_payment
from lessnoise.table.aggregates import Aggregate
from lessnoise.table.answer import STATISTIC
from lessnoise.table.job import Job
from lessnoise.table.measures import measures_of
from lessnoise.table.plan import Plan, checked_weights, make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Progress
    from lessnoise.ledger import Ledger
    from lessnoise.query import Measure
    from lessnoise.table.answer import TableAnswer


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Rows that one release protects: a file, a data frame, Arrow, DuckDB, Spark, Dask or PostgreSQL.

    ``unit`` says whose data is protected: one row, or a user with at most so many rows. Nothing is read before a
    release, and nothing of the data is kept.

    >>> import lessnoise as ln
    >>> people = Table({"city": ["Oslo", "Bergen", "Oslo"] * 400, "age": [30.0, 40.0, 50.0] * 400})
    >>> by_city = people.group_by("city", keys=["Oslo", "Bergen"])
    >>> answer = by_city.aggregate(ln.count(), ln.mean("age", bounds=(0, 100))).release(epsilon=1, delta=1e-6)
    >>> answer.columns
    ('city', 'statistic', 'value', 'lower', 'upper')
    >>> len(answer.rows), answer.guarantee.epsilon
    (4, 1.0)
    """

    data: Any
    unit: Unit = ROW
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    engine: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.unit, Unit):
            raise InvalidInput(f"unit={shown(self.unit)} is not a unit: pass lessnoise.Unit('user_id', max_rows=3).")
        Neighbours.of(self.neighbours)
        engine_name(self.data, self.engine)

    def __repr__(self) -> str:
        return f"Table({engine_name(self.data, self.engine)}, protects {self.unit})"

    def group_by(
        self,
        *by: str | Axis,
        keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        bins: int | None = None,
        bounds: tuple[float, float] | None = None,
        edges: Sequence[float] | None = None,
        max_groups: int | None = None,
    ) -> TableGroups:
        """Groups by one or several columns, with public ``keys``, or even ``bins`` in ``bounds``, or ``edges``.

        For several columns pass ``keys={"city": [...], "sex": [...]}``, or an :class:`~lessnoise.Axis` for each.
        The keys of a column without any of these are private, too: only groups whose noisy number of units is beyond
        what noise can make of nothing are released (Desfontaines, Voss, Gipson & Mandayam 2022).
        ``max_groups``: of each user at most so many groups are used, as with ``Unit(..., max_groups=...)``.
        """
        if not by:
            raise InvalidInput(
                "group_by() names no column: pass one, such as group_by('city', keys=['Oslo', 'Bergen'])."
            )
        names = [validation.text("column", column) for column in by if not isinstance(column, Axis)]
        named = _keys_by_column(names, len(by), keys)
        cells = {"bins": bins, "bounds": bounds, "edges": edges}
        axes: list[Axis | str] = []
        for column in by:
            if isinstance(column, Axis):
                axes.append(column)
            elif column in named:
                axes.append(Axis(column, keys=named[column], **(cells if len(by) == 1 else {})))  # type: ignore[arg-type]
            elif any(given is not None for given in cells.values()):
                axes.append(Axis(column, **cells))  # type: ignore[arg-type]
            else:
                axes.append(validation.text("column", column))
        if any(isinstance(axis, str) for axis in axes):
            check_read_again(self.data)
        table = self if max_groups is None else replace(self, unit=replace(self.unit, max_groups=max_groups))
        return TableGroups(table, tuple(axes))

    def aggregate(self, *aggregates: Aggregate) -> TableQuestion:
        """Statistics of all rows."""
        return TableGroups(self, ()).aggregate(*aggregates)

    def marginals(
        self, *columns: Axis, order: int | None = None, sets: Sequence[Sequence[str]] | None = None
    ) -> TableQuestion:
        """Counts by every ``order`` of the columns, say by every pair, or by the listed ``sets`` of them.

        Each column is an :class:`~lessnoise.Axis` with its public keys or cells. All tables come from one noisy table
        of all columns, so that their totals agree; the noise is chosen for the tables that are asked.

        >>> import lessnoise as ln
        >>> people = Table({"sex": ["f", "m"] * 50, "smokes": ["yes", "no", "no", "no"] * 25, "age": [30, 40] * 50})
        >>> axes = [ln.Axis("sex", keys=["f", "m"]), ln.Axis("smokes", keys=["yes", "no"])]
        >>> ages = ln.Axis("age", bounds=(0, 100), bins=4)
        >>> answer = people.marginals(*axes, ages, order=2).release(epsilon=1, delta=1e-6)
        >>> len(answer.rows), answer.rows[0]["sex"], answer.rows[0]["age"]
        (20, 'f', None)
        """
        asked: TableQuestion = later("marginals of a table")(self, columns, order, sets)
        return asked


def _keys_by_column(
    names: Sequence[str], columns: int, keys: Sequence[Any] | Mapping[str, Sequence[Any]] | None
) -> Mapping[str, Sequence[Any]]:
    if keys is None:
        return {}
    if not isinstance(keys, Mapping):
        if columns > 1:
            raise InvalidInput(
                f"keys of one column for {columns} columns: pass a mapping such as keys={{'city': ['Oslo', 'Bergen']}}."
            )
        if not names:
            raise InvalidInput("keys= with an Axis, which has its own: pass the name of the column, or the axis alone.")
        return {names[0]: keys}
    for column in keys:
        if column not in names:
            raise InvalidInput(f"keys for {shown(column)}, which is not a column of group_by: name each column there.")
    return keys


@dataclass(frozen=True, eq=False, repr=False)
class TableGroups:
    """A table in groups."""

    table: Table
    axes: tuple[Axis | str, ...]
    """In the order of the columns; a name alone is that of a column whose keys are private."""

    def aggregate(self, *aggregates: Aggregate) -> TableQuestion:
        """Statistics of every group, each from :func:`lessnoise.count`, :func:`lessnoise.mean` and the like."""
        if not aggregates:
            raise InvalidInput("aggregate() asks for nothing: pass lessnoise.count(), say.")
        for one in aggregates:
            if not isinstance(one, Aggregate):
                raise InvalidInput(f"aggregate={shown(one)} is not a statistic: pass one such as lessnoise.count().")
        names = [name for one in aggregates for name in one.names]
        if len(set(names)) < len(names):
            raise InvalidInput(f"aggregates={names} name one statistic twice: ask for each once.")
        columns = [axis if isinstance(axis, str) else axis.column for axis in self.axes]
        column_names(columns or "all", "group_by")
        for column in columns:
            if column == self.table.unit.id:
                raise InvalidInput(f"group_by({column!r}) is the column of users, too: group by another column.")
            if column in STATISTIC:
                raise InvalidInput(
                    f"group_by({column!r}) has the name of a column of the answer: rename the column of the data."
                )
        known = [axis.size for axis in self.axes if isinstance(axis, Axis)]
        groups = math.prod(known) if len(known) == len(self.axes) else None
        return TableQuestion(self.table, self.axes, tuple(one.for_groups(groups) for one in aggregates))


@dataclass(frozen=True, eq=False, repr=False)
class TableQuestion:
    """Statistics of the groups of a table: planned before the data is read, and released in one go."""

    table: Table
    axes: tuple[Axis | str, ...]
    aggregates: tuple[Aggregate, ...]

    job: ClassVar[type[Job]] = Job

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns whose keys are private."""
        return tuple(axis for axis in self.axes if isinstance(axis, str))

    @property
    def query(self) -> Grouped:
        """One pass over the rows for all measures; private keys are stood for by two that nobody has."""
        return self._query(None)

    def _query(self, weights: Sequence[float] | None) -> Grouped:
        return Grouped(self._with_keys([("0", "1")] * len(self.unknown)), self._measures(weights))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is released of each group. Private keys need a number of units, which may be that of rows."""
        return self._measures(None)

    def _measures(self, weights: Sequence[float] | None) -> tuple[Measure, ...]:
        found = measures_of(self.aggregates, not self.unknown, weights)
        selecting = ROWS if self.table.unit.per_group == 1 else USERS
        return found if not self.unknown or selecting in found else (*found, selecting)

    def with_keys(self, keys: Sequence[tuple[Any, ...]]) -> Grouped:
        """The query for private keys, once they are known: each with a part for every column of them."""
        parts = [tuple(sorted(set(column))) for column in zip(*keys, strict=True)]
        axes = self._with_keys(parts)
        if len(self.unknown) == 1:
            return FoundKeys(axes, self.measures, self.unknown)
        places = [{part: place for place, part in enumerate(column)} for column in parts]
        number = np.zeros((len(keys), 1), dtype=np.int64)
        private = iter(range(len(parts)))
        for axis, given in zip(axes, self.axes, strict=True):
            if isinstance(given, str):
                column = next(private)
                own = np.array([[places[column][key[column]]] for key in keys], dtype=np.int64)
                number = number * axis.size + own
            else:  # every cell of a public axis
                number = (number[:, :, np.newaxis] * axis.size + np.arange(axis.size)).reshape(len(keys), -1)
        return FoundKeys(axes, self.measures, self.unknown, tuple(np.sort(number.ravel()).tolist()))

    def _with_keys(self, keys: Sequence[tuple[Any, ...]]) -> tuple[Axis, ...]:
        found = iter(keys)
        return tuple(Axis(axis, keys=next(found)) if isinstance(axis, str) else axis for axis in self.axes)

    @property
    def rules(self) -> list[str]:
        """By which rules rows do not count, or count otherwise than they are."""
        names = [axis if isinstance(axis, str) else axis.column for axis in self.axes]
        found = [f"rows with NULL or NaN in {name!r} are left out" for name in names]
        found += [
            f"rows with a value of {axis.column!r} that is not among the keys or cells are left out"
            for axis in self.axes
            if isinstance(axis, Axis) and axis.outside == "drop"
        ]
        if self.unknown:
            what = f"keys of {names[0]!r}" if len(names) == 1 else f"groups by {' and '.join(map(repr, names))}"
            counted = "count" if USERS not in self.measures else f"number of {self.table.unit.id!r}"
            found.append(f"{what} whose noisy {counted} is too small are left out, with their rows")
        found += dict.fromkeys(rule for one in self.aggregates for rule in one.rules)
        if self.table.unit.id is not None:
            unit = self.table.unit
            found.append(f"rows without {unit.id!r} are left out")
            if unit.max_groups is not None:
                found.append(f"of each {unit.id!r} at most {unit.max_groups} groups are used, chosen at random")
            if unit.max_rows_per_group is not None:
                found.append(f"of each {unit.id!r} at most {unit.max_rows_per_group} rows are used in a group")
            found.append(f"of each {unit.id!r} at most {unit.rows} rows are used, chosen at random")
        return found

    def plan(
        self, epsilon: float, delta: float, *, weights: Sequence[float] | None = None, level: float = 0.95
    ) -> Plan:
        """Which noise each statistic gets, without touching the data. ``weights``: one for each aggregate."""
        relation = Neighbours.of(self.table.neighbours)
        checked = checked_weights(self.aggregates, weights)
        arguments = (epsilon, delta, self.table.unit, relation, checked, level)
        return make_plan(self._query(checked), self.aggregates, *arguments, unknown=bool(self.unknown))

    def release(
        self,
        epsilon: float,
        delta: float,
        *,
        weights: Sequence[float] | None = None,
        level: float = 0.95,
        ledger: Ledger | None = None,
        partition: str | None = None,
        rng: np.random.Generator | None = None,
        progress: Progress | None = None,
    ) -> TableAnswer:
        """Read the data once, pay once, and release every statistic with its interval."""
        job = self.prepare(epsilon, delta, weights=weights, level=level, ledger=ledger, partition=partition, rng=rng)
        return job.release(job.answer(progress))

    def prepare(
        self,
        epsilon: float,
        delta: float,
        *,
        weights: Sequence[float] | None = None,
        level: float = 0.95,
        ledger: Ledger | None = None,
        partition: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Job:
        """All that :meth:`release` does before the data is read: what cannot be kept or paid is refused."""
        generator = validation.generator(rng)
        check_payment(generator, ledger, partition)
        plan = self.plan(epsilon, delta, weights=weights, level=level)
        together = plan.composition
        guarantee = plan.known_guarantee(together) if self.unknown else plan.guarantee(together)
        if guarantee.delta > plan.delta:
            raise InvalidInput(
                f"delta={plan.delta:g} is too small for epsilon={plan.epsilon:g}: all releases together have "
                f"delta={guarantee.delta:.3g}; use a larger one."
            )
        if ledger is not None:
            ledger.check(together, partition=partition)
        return self.job(self, plan, together, guarantee, ledger, partition, generator)

    def description(self, query: Grouped | None = None) -> dict[str, Any]:
        """What was asked, of what, by which rules, and what was measured; plain values, ready for JSON."""
        table, asked = self.table, (query or self.query).to_dict()
        pairs = zip(self.axes, asked["axes"], strict=True)
        asked["axes"] = [{"column": own, "keys": "private"} if isinstance(own, str) else axis for own, axis in pairs]
        return {
            "query": asked,
            "aggregates": [one.to_dict() for one in self.aggregates],
            "unit": table.unit.to_dict(),
            "neighbours": Neighbours.of(table.neighbours).value,
            "engine": engine_name(table.data, table.engine),
            "rules": self.rules,
            "sensitivity": "follows from the query: what one unit can change is computed from bounds, keys and unit",
        }
