"""A question that is ready to be released: all that can be refused is checked, and no data is read yet."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import distinct_keys
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import Geometric, QuantileChoice
from lessnoise.noise import Stream
from lessnoise.query import ROWS
from lessnoise.release import Certificate, Payment
from lessnoise.table.answer import STATISTIC, TableAnswer, labels
from lessnoise.table.intervals import interval
from lessnoise.table.plan import MOST_GROUPS, serves
from lessnoise.table.quantiles import counted, counted_edges, read

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lessnoise._common import Array, Progress
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger import Ledger
    from lessnoise.query import Answer, Axis
    from lessnoise.table.aggregates import Aggregate
    from lessnoise.table.plan import Part, Plan
    from lessnoise.table.table import TableQuestion

_DRAWS, _SLOW_DRAWS = 1000, 200  # of the noise, for intervals


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
        """The true numbers: the data is read here, once; for private keys twice."""
        table, query = self.question.table, self.plan.query
        if self.question.unknown is not None:
            keys = distinct_keys(self.question.unknown, table.data, table.engine)
            if len(keys) > MOST_GROUPS:
                raise InvalidInput(f"keys=None: there are more than {MOST_GROUPS} keys; pass public ones.")
            query = self.question.with_keys(keys or ("0",))
        return query.answer(
            table.data, neighbours=table.neighbours, unit=table.unit, engine=table.engine, progress=progress
        )

    def release(self, answer: Answer) -> TableAnswer:
        """Pay, and release every statistic with its interval."""
        groups, private_keys = _groups(answer.query), self.question.unknown is not None
        # What takes time and memory comes before the payment, where the number of groups is known.
        noise = [] if private_keys else self._noise(self.plan.parts, len(groups))
        with Payment(self.ledger) as payment:
            payment.spend(self.composition, self.partition)
            if private_keys:
                released, groups = _selected(self.plan, answer.value, groups, self.rng)
                noise = self._noise([part for part, *_ in released], len(groups))
            else:
                released = [(part, *_released(part, answer.value, self.rng)) for part in self.plan.parts]
            found = self._estimates([(part, noisy) for part, noisy, _ in released], noise)
            rows = tuple(self._rows(groups, found))
        certificates = [certificate for *_, own in released for certificate in own]
        if not certificates:  # no key has rows enough: their counts were made all the same
            certificates = self._certificates(Stream.of(self.rng))
        return self._answer(rows, certificates, payment)

    def trial(self, answer: Answer | None = None) -> TableAnswer:
        """As long as a release of this plan and as hard to draw, with made-up numbers; private keys need the answer."""
        groups = _groups(self.plan.query if answer is None else answer.query)
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
        described, level = self.question.description(), self.plan.level
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
                        value = one.estimate(part.measure, noisy)
                        low, high = interval(one, part.measure, noisy, draws, self.plan.level)
                    found[one] = (value, np.minimum(low, value), np.maximum(high, value))
        return found

    def _rows(
        self, groups: Sequence[dict[str, object]], found: dict[Aggregate, tuple[Array, Array, Array]]
    ) -> Iterator[dict[str, Any]]:
        """One row for each group and statistic, in the order of the question."""
        for group, label in enumerate(groups):
            for one in self.question.aggregates:
                for place, name in enumerate(one.names):
                    middle, lower, upper = (float(numbers[group, place]) for numbers in found[one])
                    shown_as = int(middle) if one.kind == "count" and middle.is_integer() else middle
                    yield {**label, "statistic": name, "value": shown_as, "lower": lower, "upper": upper}


def _released(part: Part, value: Array, rng: np.random.Generator | None) -> tuple[Array, tuple[Certificate, ...]]:
    """The noisy numbers of every group; for quantiles the chosen places, then the counts behind their intervals."""
    exact, groups, before, certificates = value[:, part.where], len(value), [], []
    if part.choice is not None:
        chosen = part.choice.release(exact.reshape(part.choice.shape), rng)
        before, certificates = [chosen.value], [chosen.certificate]
        exact = counted(exact, counted_edges(chosen.value.astype(np.float64), part.measure.width))
    made = part.mechanism.release(exact.reshape(part.mechanism.shape), rng)
    noisy = made.value.astype(np.float64).reshape(groups, math.prod(part.mechanism.shape) // groups)
    return np.concatenate([*before, noisy], axis=1), (*certificates, made.certificate)


def _selected(
    plan: Plan, value: Array, groups: list[dict[str, object]], rng: np.random.Generator | None
) -> tuple[list[tuple[Part, Array, tuple[Certificate, ...]]], list[dict[str, object]]]:
    """The keys whose noisy count is beyond all that noise can make of nothing, and what is released of them.

    A key that nobody has would stay below with certainty, so that it makes no difference that it gets no noise.
    """
    counting = next(part for part in plan.parts if part.measure == ROWS)
    law = counting.mechanism.law
    assert isinstance(law, Geometric)
    assert law.reach is not None
    every = dataclasses.replace(counting, mechanism=dataclasses.replace(counting.mechanism, shape=(len(value),)))
    counts, _ = _released(every, value, rng)
    kept = np.flatnonzero(counts[:, 0] > law.reach + 1)
    found: list[tuple[Part, Array, tuple[Certificate, ...]]] = []
    for part in plan.parts if len(kept) else ():
        own = part.sized(len(kept))
        if part is counting:  # drawn already; the certificate does not tell how many keys there were
            found.append((own, counts[kept], (Certificate.of(own.mechanism, Stream.of(rng)),)))
        else:
            found.append((own, *_released(own, value[kept], rng)))
    return found, [groups[place] for place in kept]


def _groups(query: Any) -> list[dict[str, object]]:  # noqa: ANN401
    return labels([(axis.column, _places(axis)) for axis in query.axes])


def _places(axis: Axis) -> list[object]:
    """What names the cells of an axis: keys, or the interval in words."""
    if axis.keys is not None:
        return list(axis.keys)
    return [f"{low:g} to {high:g}" for low, high in itertools.pairwise(axis.cell_edges)]
