"""Counts by some of several columns, for many choices of them, from one noisy table of all columns."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._later import offers
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import Measured
from lessnoise.noise import Stream
from lessnoise.query import Axis
from lessnoise.release import Payment
from lessnoise.table.aggregates import COUNT, Aggregate
from lessnoise.table.job import Job, places_of, released_part
from lessnoise.table.plan import Plan, checked_weights, make_plan
from lessnoise.table.table import Table, TableGroups, TableQuestion
from lessnoise.workload import Workload, marginals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Array
    from lessnoise.query import Answer
    from lessnoise.table.answer import TableAnswer

MOST_CELLS = 1 << 24


class MarginalsJob(Job):
    """A question about marginals that is ready to be released."""

    @property
    def asked(self) -> MarginalsQuestion:
        """The question."""
        assert isinstance(self.question, MarginalsQuestion)
        return self.question

    def release(self, answer: Answer) -> TableAnswer:
        """Pay, and release every table with its intervals."""
        (part,) = self.plan.parts
        with Payment(self.ledger) as payment:
            payment.spend(self.composition, self.partition)
            noisy, certificates = released_part(part, answer.value, self.rng)
            rows = tuple(self._tables(noisy))
        return self._answer(rows, certificates, payment)

    def trial(self, answer: Answer | None = None) -> TableAnswer:
        """As long as a release of this plan, with made-up numbers."""
        del answer
        made_up = 1e6 * np.random.default_rng(0).standard_normal(self.plan.query.groups)
        return self._answer(tuple(self._tables(made_up)), self._certificates(Stream.secure()), Payment(None))

    def _tables(self, noisy: Array) -> Iterator[dict[str, Any]]:
        """One row for each cell of each table; a column that is summed over has no value."""
        (part,) = self.plan.parts
        law = part.mechanism.law
        assert isinstance(law, Measured)
        names = [(axis.column, places_of(axis)) for axis in self.plan.query.axes]
        table = noisy.reshape([axis.size for axis in self.plan.query.axes])
        whole = law.noise.integer and bool((table == np.rint(table)).all())
        for block, kept in zip(law.workload.parts, self.asked.sets, strict=True):
            one = Workload((block,))
            spread = math.sqrt(law.strategy.trace(one) / one.queries * law.variance)
            half = reach(law, self.plan.level) * spread
            half = float(math.ceil(half)) if whole else half  # the noise is a whole number, and may be 0 as a rule
            places = [own if place in kept else [None] for place, (_, own) in enumerate(names)]
            for cell, found in zip(itertools.product(*places), one.answers(table).tolist(), strict=True):
                value = int(found) if whole else found
                label = {column: at for (column, _), at in zip(names, cell, strict=True)}
                yield {**label, "statistic": "count", "value": value, "lower": value - half, "upper": value + half}


def reach(law: Measured, level: float) -> float:
    """How many deviations hold noise that is a sum of the law's own, at a level: the normal's, or Laplace's if more."""
    normal = statistics.NormalDist().inv_cdf(0.5 + 0.5 * level)
    return normal if law.is_gaussian else max(normal, -math.log1p(-level) / math.sqrt(2.0))


@dataclass(frozen=True)
class TableCounts(Aggregate):
    """Counts in every cell of some tables."""

    tables: int = 1

    @property
    def summary(self) -> str:
        """What they are, for a plan."""
        return f"counts in {self.tables} table{'s' if self.tables > 1 else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class MarginalsQuestion(TableQuestion):
    """Counts by each of some ``sets`` of columns, named by their places."""

    sets: tuple[tuple[int, ...], ...] = ()

    job: ClassVar[type[Job]] = MarginalsJob

    @property
    def workload(self) -> Workload:
        """What is asked of the table of all columns."""
        return marginals([axis.size for axis in self.axes if isinstance(axis, Axis)], sets=self.sets)

    def plan(
        self, epsilon: float, delta: float, *, weights: Sequence[float] | None = None, level: float = 0.95
    ) -> Plan:
        """Which noise the tables get, without touching the data."""
        relation = Neighbours.of(self.table.neighbours)
        tables = (TableCounts("count", tables=len(self.sets)),)
        checked = checked_weights(tables, weights)
        arguments = (epsilon, delta, self.table.unit, relation, checked, level)
        return make_plan(self.query, tables, *arguments, workload=self.workload)

    def description(self, query: Any = None) -> dict[str, Any]:  # noqa: ANN401
        """What was asked, with the sets of columns."""
        columns = [axis.column for axis in self.axes if isinstance(axis, Axis)]
        return {**super().description(query), "marginals": [[columns[place] for place in each] for each in self.sets]}


@offers("marginals of a table")
def marginals_of(
    table: Table, columns: Sequence[Axis], order: int | None, sets: Sequence[Sequence[str]] | None
) -> MarginalsQuestion:
    """The question about these marginals."""
    for column in columns:
        if not isinstance(column, Axis):
            raise InvalidInput(f"column={shown(column)} is not an Axis: pass lessnoise.Axis('sex', keys=['f', 'm']).")
    if (order is None) == (sets is None):
        raise InvalidInput(f"order={shown(order)} and sets={shown(sets)}: pass one of them.")
    names = [axis.column for axis in columns]
    if math.prod(axis.size for axis in columns) > MOST_CELLS:
        raise InvalidInput(f"columns={names} have more than {MOST_CELLS} cells together: pass fewer keys or columns.")
    if order is not None:
        order = validation.whole_number("order", order)
        if order > len(names):
            raise InvalidInput(f"order={order} is more than the {len(names)} columns: pass a smaller one.")
        chosen = tuple(itertools.combinations(range(len(names)), order))
    else:
        if isinstance(sets, str) or not isinstance(sets, Sequence):
            raise InvalidInput(f"sets={shown(sets)} is not a list: pass lists of columns, such as [['sex', 'age']].")
        chosen = tuple(_places(each, names) for each in sets)
        if not chosen or len(set(chosen)) < len(chosen):
            raise InvalidInput(f"sets={shown(sets)} are none, or name a set twice: list each set of columns once.")
    asked = TableGroups(table, tuple(columns)).aggregate(COUNT)
    return MarginalsQuestion(asked.table, asked.axes, asked.aggregates, chosen)


def _places(each: Sequence[str], names: list[str]) -> tuple[int, ...]:
    if isinstance(each, str) or not isinstance(each, Sequence):
        raise InvalidInput(
            f"sets has {shown(each)}, which is not a list: pass lists of columns, such as [['sex', 'age']]."
        )
    for name in each:
        if name not in names:
            raise InvalidInput(f"sets name {shown(name)}, which is not one of columns={names}: name other columns.")
    if len(set(each)) < len(each):
        raise InvalidInput(f"sets has {shown(each)}, which names a column twice: name each column once.")
    return tuple(sorted(names.index(name) for name in each))
