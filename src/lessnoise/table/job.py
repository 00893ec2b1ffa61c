"""A question that is ready to be released: all that can be refused is checked, and no data is read yet."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.noise import Stream
from lessnoise.release import Certificate, Payment
from lessnoise.table.answer import TableAnswer, ends, labels
from lessnoise.table.plan import serves

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
        """The true numbers: the data is read here, once."""
        table = self.question.table
        return self.plan.query.answer(
            table.data, neighbours=table.neighbours, unit=table.unit, engine=table.engine, progress=progress
        )

    def release(self, answer: Answer) -> TableAnswer:
        """Pay, and release every statistic with its interval."""
        noise = self._noise()  # what takes time and memory comes before the payment
        with Payment(self.ledger) as payment:
            payment.spend(self.composition, self.partition)
            released = [_released(part, answer.value, self.rng) for part in self.plan.parts]
            rows = tuple(self._rows(self._estimates([noisy for noisy, _ in released], noise)))
        return self._answer(rows, [certificate for _, certificate in released], payment)

    def trial(self) -> TableAnswer:
        """As long as a release of this plan and as hard to draw, with made-up numbers."""
        rng, found = np.random.default_rng(0), {}
        for one in self.question.aggregates:
            middle, below, above = 1e6 * rng.standard_normal((3, self.plan.query.groups, len(one.names)))
            found[one] = (middle, middle - abs(below), middle + abs(above))
        certificates = [Certificate.of(part.mechanism, Stream.secure()) for part in self.plan.parts]
        return self._answer(tuple(self._rows(found)), certificates, Payment(None))

    def _answer(
        self, rows: tuple[dict[str, Any], ...], certificates: Sequence[Certificate], payment: Payment
    ) -> TableAnswer:
        described, level = self.question.description(), self.plan.level
        return TableAnswer(rows, self.guarantee, tuple(certificates), described, level, payment.receipt)

    def _noise(self) -> list[Array]:
        """Draws of the noise of each part, for intervals; of a seeded release always the same."""
        rng = np.random.default_rng(None if self.rng is None else self.rng.integers(1 << 63))
        return [
            part.noise(self.plan.query.groups, _SLOW_DRAWS if part.measure.kind == "cells" else _DRAWS, rng)
            for part in self.plan.parts
        ]

    def _estimates(self, released: list[Array], noise: list[Array]) -> dict[Aggregate, tuple[Array, Array, Array]]:
        """Of each statistic value, lower and upper end: for every group its numbers."""
        found: dict[Aggregate, tuple[Array, Array, Array]] = {}
        for part, noisy, possible in zip(self.plan.parts, released, noise, strict=True):
            np.subtract(noisy, possible, out=possible)
            for one in self.question.aggregates:
                if serves(part.measure, one):
                    value = one.estimate(part.measure, noisy)
                    low, high = ends(one.estimate(part.measure, possible), self.plan.level)
                    found[one] = (value, low - one.resolution, high + one.resolution)
        return found

    def _rows(self, found: dict[Aggregate, tuple[Array, Array, Array]]) -> Iterator[dict[str, Any]]:
        """One row for each group and statistic, in the order of the question."""
        question = self.question
        for group, label in enumerate(labels([(axis.column, _places(axis)) for axis in question.axes])):
            for one in question.aggregates:
                for place, name in enumerate(one.names):
                    middle, lower, upper = (float(numbers[group, place]) for numbers in found[one])
                    shown_as = int(middle) if one.kind == "count" and middle.is_integer() else middle
                    yield {**label, "statistic": name, "value": shown_as, "lower": lower, "upper": upper}


def _released(part: Part, value: Array, rng: np.random.Generator | None) -> tuple[Array, Certificate]:
    made = part.mechanism.release(value[:, part.where].reshape(part.mechanism.shape), rng)
    groups = len(value)
    return made.value.astype(np.float64).reshape(groups, math.prod(part.mechanism.shape) // groups), made.certificate


def _places(axis: Axis) -> list[object]:
    """What names the cells of an axis: keys, or the interval in words."""
    if axis.keys is not None:
        return list(axis.keys)
    return [f"{low:g} to {high:g}" for low, high in itertools.pairwise(axis.cell_edges)]
