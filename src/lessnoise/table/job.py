"""A question that is ready to be released: all that can be refused is checked, and no data is read yet."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import distinct_keys
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import Geometric, QuantileChoice
from lessnoise.noise import Stream
from lessnoise.query import ROWS, USERS, Grouped
from lessnoise.release import Certificate, Payment
from lessnoise.table.answer import STATISTIC, TableAnswer
from lessnoise.table.chosen import counted, counted_edges, read
from lessnoise.table.histograms import cell_words
from lessnoise.table.intervals import interval
from lessnoise.table.measures import serves
from lessnoise.table.plan import MOST_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lessnoise._common import Array, IntArray, Progress
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger import Ledger
    from lessnoise.query import Answer, Axis, Query, Unit
    from lessnoise.table.aggregates import Aggregate
    from lessnoise.table.plan import Part, Plan
    from lessnoise.table.table import TableQuestion

_DRAWS, _SLOW_DRAWS = 1000, 200  # of the noise, for intervals
_BLOCK = 1 << 14  # numbers whose draws are held at once, where the keys are private


@dataclass(frozen=True, eq=False, repr=False)
class Job:
    """Its plan, what all releases cost together and guarantee, and what they are paid from."""

    question: TableQuestion
    plan: Plan
    composition: Composition
    guarantee: Guarantee
    ledger: Ledger | None = None
    partition: str | None = None
    rng: np.random.Generator | None = None

    def answer(self, progress: Progress | None = None) -> Answer:
        """The true numbers: the data is read here, once; for private keys twice, or thrice if they are users'."""
        table = self.question.table
        query: Grouped | None = self.plan.query
        if self.question.unknown:
            keys = distinct_keys(self.question.unknown, table.data, table.engine)
            try:
                query = self.question.with_keys(keys)
            except InvalidInput:  # it may quote keys, or tell how many there are
                query = None
            if query is None or query.groups > MOST_GROUPS:
                raise InvalidInput("keys=None: there are more keys than can be counted; pass public ones.")

        def read(part: Grouped, unit: Unit) -> Answer:
            return part.answer(
                table.data, neighbours=table.neighbours, unit=unit, engine=table.engine, progress=progress
            )

        assert query is not None
        if USERS not in query.measures:
            return read(query, table.unit)
        found = read(dataclasses.replace(query, measures=query.measures[:-1]), table.unit)
        users = read(dataclasses.replace(query, measures=(USERS,)), table.unit.once_a_group)
        value = np.hstack([found.value, users.value])
        value.setflags(write=False)
        return dataclasses.replace(found, value=value, query=query)

    def release(self, answer: Answer) -> TableAnswer:
        """Pay, and release every statistic with its interval."""
        private_keys = bool(self.question.unknown)
        groups = [] if private_keys else _groups(answer.query)
        # What takes time and memory comes before the payment, where the number of groups is known.
        noise = [] if private_keys else self._noise(self.plan.parts, len(groups))
        with Payment(self.ledger) as payment:
            payment.spend(self.composition, self.partition)
            if private_keys:
                released, kept = _selected(self.plan, answer.value, self.rng)
                groups = _groups(answer.query, kept)
                found = self._estimates_in_blocks([(part, noisy) for part, noisy, _ in released], len(groups))
            else:
                released = [(part, *released_part(part, answer.value, self.rng)) for part in self.plan.parts]
                found = self._estimates([(part, noisy) for part, noisy, _ in released], noise)
            rows = tuple(self._rows(groups, found))
        certificates = [certificate for *_, own in released for certificate in own]
        if not certificates:  # no key has rows enough: their counts were made all the same
            certificates = self._certificates(Stream.of(self.rng))
        return self._answer(rows, certificates, payment)

    def trial(self, answer: Answer | None = None) -> TableAnswer:
        """As long as a release of this plan and as hard to draw, with made-up numbers; private keys need the answer."""
        if answer is None or not self.question.unknown:
            groups = _groups(self.plan.query)
        else:  # those that may be shown
            groups = _groups(answer.query, np.flatnonzero(answer.value[:, _selecting(self.plan).where][:, 0] > 0))
        rng, found = np.random.default_rng(0), {}
        for one in self.question.aggregates:
            middle, below, above = 1e6 * rng.standard_normal((3, len(groups), len(one.names)))
            found[one] = (middle, middle - abs(below), middle + abs(above))
        certificates = self._certificates(Stream.secure())
        return self._answer(tuple(self._rows(groups, found)), certificates, Payment(None))

    def _certificates(self, stream: Stream) -> list[Certificate]:
        return [Certificate.of(each, stream) for part in self.plan.parts for each in part.mechanisms]

    def _answer(
        self, rows: tuple[dict[str, Any], ...], certificates: Sequence[Certificate], payment: Payment
    ) -> TableAnswer:
        columns = (*(axis.column for axis in self.plan.query.axes), *STATISTIC)
        described, level = self.question.description(self.plan.query), self.plan.level
        return TableAnswer(rows, columns, self.guarantee, tuple(certificates), described, level, payment.receipt)

    def _noise(self, parts: Sequence[Part], groups: int) -> list[Array]:
        """Draws of the noise of each part, for intervals; of a seeded release always the same."""
        rng = np.random.default_rng(None if self.rng is None else self.rng.integers(1 << 63))
        slow = [part.measure.kind == "cells" and part.choice is None for part in parts]
        return [part.noise(groups, _SLOW_DRAWS if s else _DRAWS, rng) for part, s in zip(parts, slow, strict=True)]

    def _estimates(
        self, released: Sequence[tuple[Part, Array]], noise: Sequence[Array]
    ) -> dict[Aggregate, tuple[Array, Array, Array]]:
        """Of each statistic value, lower and upper end: for every group its numbers."""
        found: dict[Aggregate, tuple[Array, Array, Array]] = {}
        for (part, noisy), draws in zip(released, noise, strict=True):
            for one in self.question.aggregates:
                if serves(part.measure, one):
                    if part.choice is not None and isinstance(part.choice.law, QuantileChoice):
                        value, low, high = read(one, part.choice.law, part.measure, noisy, draws, self.plan.level)
                    else:
                        value = one.estimate(part.measure, noisy, part.mechanism.standard_deviation)
                        low, high = interval(one, part.measure, noisy, draws, self.plan.level)
                    found[one] = (value, np.minimum(low, value), np.maximum(high, value))
        return found

    def _estimates_in_blocks(
        self, released: Sequence[tuple[Part, Array]], groups: int
    ) -> dict[Aggregate, tuple[Array, Array, Array]]:
        """The same of groups with private keys, however many: their noise is independent, and paid already."""
        size = max(1, _BLOCK // max((part.measure.width for part, _ in released), default=1))
        blocks = []
        for start in range(0, groups, size):
            part_of = [(part, noisy[start : start + size]) for part, noisy in released]
            noise = self._noise([part for part, _ in part_of], len(part_of[0][1]))
            blocks.append(self._estimates(part_of, noise))
        return {
            one: tuple(np.concatenate(ends) for ends in zip(*(block[one] for block in blocks), strict=True))  # type: ignore[misc]
            for one in (blocks[0] if blocks else ())
        }

    def _rows(
        self, groups: Sequence[dict[str, object]], found: dict[Aggregate, tuple[Array, Array, Array]]
    ) -> Iterator[dict[str, Any]]:
        """One row for each group and statistic, in the order of the question."""
        columns = []
        for one in self.question.aggregates:
            for place, name in enumerate(one.names):
                value, lower, upper = (numbers[:, place].tolist() for numbers in found[one]) if groups else ([], [], [])
                whole = [int(each) if each.is_integer() else each for each in value] if one.whole else value
                columns.append((name, whole, lower, upper))
        for group, label in enumerate(groups):
            for name, value, lower, upper in columns:
                yield {**label, "statistic": name, "value": value[group], "lower": lower[group], "upper": upper[group]}


def released_part(part: Part, value: Array, rng: np.random.Generator | None) -> tuple[Array, tuple[Certificate, ...]]:
    """The noisy numbers of every group; for quantiles the chosen places, then the counts behind their intervals."""
    exact, groups, before, certificates = value[:, part.where], len(value), [], []
    if part.choice is not None:
        chosen = part.choice.release(exact.reshape(part.choice.shape), rng)
        before, certificates = [chosen.value], [chosen.certificate]
        exact = counted(exact, counted_edges(chosen.value.astype(np.float64), part.measure.width))
    made = part.mechanism.release(exact.reshape(part.mechanism.shape), rng)
    noisy = made.value.astype(np.float64).reshape(groups, math.prod(part.mechanism.shape) // groups)
    return np.concatenate([*before, noisy], axis=1), (*certificates, made.certificate)


def _selecting(plan: Plan) -> Part:
    """The part by which groups with private keys are selected: the number of users, or that of rows."""
    return next((part for part in plan.parts if part.measure == USERS), None) or next(
        part for part in plan.parts if part.measure == ROWS
    )


def _selected(
    plan: Plan, value: Array, rng: np.random.Generator | None
) -> tuple[list[tuple[Part, Array, tuple[Certificate, ...]]], IntArray]:
    """The groups whose noisy number of units is beyond all that noise can make of nothing, and what they release.

    The noise is at most K + 1. A key that nobody has would stay there with certainty, so that it makes no difference
    that it gets no noise: it is as if every key that there can be had its own, and what is shown followed from the
    noisy numbers alone. These, of at most g groups that change by 1, have the curve of the plan's mechanism. One unit
    counts at most once in a group: a key that it alone has is shown with the probability of the noise K + 1, which is
    at most delta. The rule is the one of Desfontaines et al. (2022, section 5), whose k is K + 1.
    """
    counting = _selecting(plan)
    law = counting.mechanism.law
    assert isinstance(law, Geometric)
    assert law.reach is not None
    every = counting.sized(len(value))
    counts, _ = released_part(every, value, rng)
    kept = np.flatnonzero(counts[:, 0] > law.reach + 1)
    found: list[tuple[Part, Array, tuple[Certificate, ...]]] = []
    for part in plan.parts if len(kept) else ():
        own = part.sized(len(kept))
        if part is counting:  # drawn already; the certificate does not tell how many keys there were
            found.append((own, counts[kept], (Certificate.of(own.mechanism, Stream.of(rng)),)))
        else:
            found.append((own, *released_part(own, value[kept], rng)))
    return found, kept


def _groups(query: Query, places: IntArray | None = None) -> list[dict[str, object]]:
    """For each group, or for some of them, its place along every axis, by column."""
    assert isinstance(query, Grouped)
    chosen = np.arange(query.groups) if places is None else places
    along = query.along(chosen)
    names = [places_of(axis) for axis in query.axes]
    columns = [axis.column for axis in query.axes]
    return [
        {column: own[at] for column, own, at in zip(columns, names, each, strict=True)}
        for each in (zip(*(cells.tolist() for cells in along), strict=True) if along else [()] * len(chosen))
    ]


def places_of(axis: Axis) -> list[object]:
    """What names the cells of an axis: keys, or the interval in words."""
    if axis.keys is not None:
        return list(axis.keys)
    return list(cell_words(axis))
