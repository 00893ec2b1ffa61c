"""A table of private rows, and questions to it: groups, aggregates, a plan, a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.engines import engine_name
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.query import ROW, Axis, Grouped, Unit
from lessnoise.table.aggregates import COUNT, Aggregate
from lessnoise.table.answer import STATISTIC
from lessnoise.table.job import Job
from lessnoise.table.plan import Plan, make_plan, measures_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from lessnoise._common import Progress
    from lessnoise.ledger import Ledger
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
    ) -> TableGroups:
        """Groups by one or several columns, with public ``keys``, or even ``bins`` in ``bounds``, or ``edges``.

        For several columns pass ``keys={"city": [...], "sex": [...]}``, or an :class:`~lessnoise.Axis` for each.
        Without keys, the keys of one column are private, too: those whose noisy count is beyond what noise alone can
        reach are released, with that count (Desfontaines, Voss, Gipson & Mandayam 2022).
        """
        if not by:
            raise InvalidInput(
                "group_by() names no column: pass one, such as group_by('city', keys=['Oslo', 'Bergen'])."
            )
        private = all(given is None for given in (keys, bins, bounds, edges))
        if private and len(by) == 1 and isinstance(by[0], str):
            self._check_unknown(by[0])
            return TableGroups(self, (), by[0])
        axes = []
        for column in by:
            if isinstance(column, Axis):
                axes.append(column)
                continue
            own = keys.get(column) if isinstance(keys, dict) else keys if len(by) == 1 else None
            if own is None and bounds is None and edges is None:
                raise InvalidInput(
                    f"keys=None for group_by({shown(column)}): pass the keys of its groups, which must be public, or "
                    "bins and bounds, or edges."
                )
            axes.append(Axis(column, keys=own, bins=bins, bounds=bounds, edges=edges))  # type: ignore[arg-type]
        return TableGroups(self, tuple(axes))

    def _check_unknown(self, column: str) -> None:
        validation.text("column", column)
        if self.unit.rows > 1:
            raise InvalidInput(
                f"keys=None with max_rows={self.unit.rows}: private keys are for units of one row so far; pass keys, "
                "or max_rows=1."
            )
        if Neighbours.of(self.neighbours) is not Neighbours.ADD_REMOVE:
            raise InvalidInput(
                "keys=None with neighbours='replace': private keys are for added or removed units; pass keys."
            )

    def aggregate(self, *aggregates: Aggregate) -> TableQuestion:
        """Statistics of all rows."""
        return TableGroups(self, ()).aggregate(*aggregates)


@dataclass(frozen=True, eq=False, repr=False)
class TableGroups:
    """A table in groups."""

    table: Table
    axes: tuple[Axis, ...]
    unknown: str | None = None

    def aggregate(self, *aggregates: Aggregate) -> TableQuestion:
        """Statistics of every group, each from :func:`lessnoise.count`, :func:`lessnoise.mean` and the like."""
        if not aggregates:
            raise InvalidInput("aggregate() asks for nothing: pass lessnoise.count(), say.")
        for one in aggregates:
            if not isinstance(one, Aggregate):
                raise InvalidInput(
                    f"aggregate={shown(one)} is none: pass lessnoise.count() or lessnoise.mean(...), say."
                )
        names = [name for one in aggregates for name in one.names]
        if len(set(names)) < len(names):
            raise InvalidInput(f"aggregates={names} name one statistic twice: ask for each once.")
        for column in (*(axis.column for axis in self.axes), self.unknown):
            if column in STATISTIC:
                raise InvalidInput(
                    f"group_by({column!r}) has the name of a column of the answer: rename the column of the data."
                )
        groups = math.prod(axis.size for axis in self.axes) if self.unknown is None else None
        return TableQuestion(self.table, self.axes, tuple(one.for_groups(groups) for one in aggregates), self.unknown)


@dataclass(frozen=True, eq=False, repr=False)
class TableQuestion:
    """Statistics of the groups of a table: planned before the data is read, and released in one go."""

    table: Table
    axes: tuple[Axis, ...]
    aggregates: tuple[Aggregate, ...]
    unknown: str | None = None

    @property
    def query(self) -> Grouped:
        """One pass over the rows for all measures; private keys are stood for by two that nobody has."""
        if self.unknown is None:
            return Grouped(self.axes, measures_of(self.aggregates))
        return self.with_keys(("0", "1"))

    def with_keys(self, keys: Sequence[Any]) -> Grouped:
        """The query for private keys, once they are known."""
        assert self.unknown is not None
        counted = self.aggregates if any(one.kind == "count" for one in self.aggregates) else (*self.aggregates, COUNT)
        return Grouped((Axis(self.unknown, keys=tuple(keys)),), measures_of(counted))

    @property
    def rules(self) -> list[str]:
        """By which rules rows do not count, or count otherwise than they are."""
        found = [f"rows with NULL or NaN in {axis.column!r} are left out" for axis in self.axes]
        found += [
            f"rows with a value of {axis.column!r} that is not among the keys or cells are left out"
            for axis in self.axes
            if axis.outside == "drop"
        ]
        if self.unknown is not None:
            found.append(f"rows with NULL or NaN in {self.unknown!r} are left out")
            found.append(f"keys of {self.unknown!r} whose noisy count is too small are left out, with their rows")
        for column, bounds in {one.column: one.bounds for one in self.aggregates if one.column is not None}.items():
            found.append(f"rows with NULL or NaN in {column!r} do not count for its statistics")
            found.append(f"values of {column!r} are clipped to {bounds}")
        if self.table.unit.id is not None:
            found.append(f"rows without {self.table.unit.id!r} are left out")
            found.append(
                f"of each {self.table.unit.id!r} at most {self.table.unit.rows} rows are used, chosen at random"
            )
        return found

    def plan(
        self, epsilon: float, delta: float, *, weights: Sequence[float] | None = None, level: float = 0.95
    ) -> Plan:
        """Which noise each statistic gets, without touching the data. ``weights``: one for each aggregate."""
        relation = Neighbours.of(self.table.neighbours)
        arguments = (epsilon, delta, self.table.unit, relation, weights, level)
        return make_plan(self.query, self.aggregates, *arguments, unknown=self.unknown is not None)

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
        if ledger is not None and generator is not None:
            raise InvalidInput(
                "rng= and ledger= do not go together: a seeded release is not private, so leave one of them out."
            )
        plan = self.plan(epsilon, delta, weights=weights, level=level)
        if not plan.query.columns:
            raise InvalidInput(
                "aggregate=count() of all rows names no column to read: group by one, or ask for the mean of one, too."
            )
        together = plan.composition
        guarantee = together.guarantee(plan.epsilon)
        if guarantee.delta > plan.delta:
            raise InvalidInput(
                f"delta={plan.delta:g} is too small for epsilon={plan.epsilon:g}: all releases together have "
                f"delta={guarantee.delta:.3g}; use a larger one."
            )
        if ledger is not None:
            ledger.check(together, partition=partition)
        return Job(self, plan, together, guarantee, ledger, partition, generator)

    def description(self) -> dict[str, Any]:
        """What was asked, of what, by which rules; plain values, ready for JSON."""
        table = self.table
        return {
            "query": self.query.to_dict(),
            "aggregates": [one.to_dict() for one in self.aggregates],
            "unit": table.unit.to_dict(),
            "neighbours": Neighbours.of(table.neighbours).value,
            "engine": engine_name(table.data, table.engine),
            "rules": self.rules,
            "sensitivity": "follows from the query: what one unit can change is computed from bounds, keys and unit",
        }
