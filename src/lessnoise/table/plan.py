"""Which noise each measure gets, and which share of the budget: decided before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise._display import Charted, Estimates, Facts, Listed
from lessnoise.changes import counts
from lessnoise.composition import compose
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Guarantee
from lessnoise.mechanism import (
    Measured,
    Mechanism,
    QuantileChoice,
    draw_noise,
    geometric,
    has_independent_entries,
    laplace,
    least_noise,
    prepare_noise,
    quantile_choice,
    workload_mechanism,
)
from lessnoise.noise import Stream
from lessnoise.query import ROWS, USERS
from lessnoise.table.aggregates import COUNT
from lessnoise.table.chosen import INTERVAL_CELLS, INTERVAL_SHARE, cells_to_one, is_chosen
from lessnoise.table.measures import need, serves
from lessnoise.table.sums_of_cells import workload_of, workloads_of
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.changes import Changes
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Neighbours
    from lessnoise.query import Grouped, Measure, Unit
    from lessnoise.table.aggregates import Aggregate
    from lessnoise.workload import Workload

MOST_GROUPS = 1 << 26  # with private keys
_MOST_AT_ONCE = 1 << 22  # numbers that are fitted together


@dataclass(frozen=True)
class Part:
    """One measure, what is read from it, its place in the answer, and the mechanism that releases it.

    Quantiles may have a ``choice`` that comes first: then the mechanism is for the counts behind their intervals.
    """

    measure: Measure
    aggregates: tuple[Aggregate, ...]
    where: slice
    mechanism: Mechanism
    choice: Mechanism | None = None

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """All that is released."""
        return (self.mechanism,) if self.choice is None else (self.choice, self.mechanism)

    @property
    def width(self) -> int:
        """How many noisy numbers the mechanism gives a group."""
        return self.measure.width if self.choice is None else INTERVAL_CELLS

    @property
    def deviation(self) -> float:
        """Of the noise of each number; of sums that are read from a fitted table, that of the least precise kind."""
        first = self.mechanisms[0]
        law = first.law
        if isinstance(law, QuantileChoice):
            return law.deviation
        if not isinstance(law, Measured):
            return first.standard_deviation
        asked = workloads_of(self.measure, self.aggregates, law.workload.cells // self.width) or [law.workload]
        return math.sqrt(max(law.strategy.trace(each) / each.queries for each in asked) * law.variance)

    def sized(self, groups: int) -> Part:
        """For so many groups, where the noise does not depend on their number."""
        own = _resized(self.mechanism, groups * self.width)
        choice = None if self.choice is None else replace(self.choice, shape=(groups * self.measure.width,))
        return replace(self, mechanism=own, choice=choice)

    def noise(self, groups: int, draws: int, rng: np.random.Generator) -> Array:
        """Draws of the noise alone, for intervals: (draws, groups or 1 for all of them, numbers)."""
        law, shape = self.mechanism.law, (groups, self.width)
        if has_independent_entries(law, self.mechanism.shape):  # of one law: the same draws serve every group
            flat = draw_noise(law, (draws * self.width,), rng)
            return flat.reshape(draws, 1, self.width).astype(np.float64)
        if isinstance(law, Measured):
            return self._fitted(law, draws, rng).reshape(draws, *shape)
        each = [
            prepare_noise(law, np.zeros(self.mechanism.shape), Stream.of(rng))().reshape(shape) for _ in range(draws)
        ]
        return np.stack(each).astype(np.float64)

    def _fitted(self, law: Measured, draws: int, rng: np.random.Generator) -> Array:
        """Tables that are fitted to noise alone, many at once."""
        rows, found = law.strategy.rows, []
        for size in np.diff([*range(0, draws, max(_MOST_AT_ONCE // rows, 1)), draws]).tolist():
            measured = draw_noise(law.noise, (size * rows,), rng).reshape(size, rows)
            found.append(law.strategy.fit(measured.astype(np.float64)).reshape(size, -1))
        return np.concatenate(found)


@dataclass(frozen=True)
class Plan(Listed, Charted):
    """Every release that answers the questions, and what all of them cost together."""

    query: Grouped
    parts: tuple[Part, ...]
    epsilon: float
    delta: float
    level: float

    @property
    def composition(self) -> Composition:
        """All releases together: what is paid."""
        return compose(*(each for part in self.parts for each in part.mechanisms))

    def known_guarantee(self, together: Composition) -> Guarantee:
        """The target itself, where epsilons and deltas that add up prove it: quick; else what is computed."""
        left = self.delta - together.delta_numeric(self.epsilon)
        if left > 0.0 and together.within(self.epsilon, left):
            return Guarantee(self.epsilon, self.delta, together.neighbours)
        return together.guarantee(self.epsilon)

    def guarantee(self, together: Composition) -> Guarantee:
        """What all releases give at the target's epsilon: composed, or, of fitted tables, added up if that is enough.

        The curve of a fitted table takes a moment at each epsilon, and there are hundreds of them in a composition.
        """
        return self.added_up() or together.guarantee(self.epsilon)

    def added_up(self) -> Guarantee | None:
        """By epsilons and deltas that add up, each computed at its own target; None if not needed or not enough."""
        every = [each for part in self.parts for each in part.mechanisms]
        if len(every) == 1 or not any(isinstance(each.law, Measured) for each in every):
            return None
        own = [each.claim.epsilon for each in every if each.claim is not None]
        if len(own) < len(every) or math.fsum(own) > self.epsilon:
            return None
        deltas = [each.guarantee(epsilon).delta for each, epsilon in zip(every, own, strict=True)]
        total = math.fsum(deltas) * (1.0 + 1e-15)
        return Guarantee(self.epsilon, total, every[0].neighbours) if total <= self.delta else None

    def rows(self) -> list[dict[str, object]]:
        """What is released with which noise, one row for each measure."""
        found = []
        for part in self.parts:
            first = part.mechanisms[0]
            found.append(
                {
                    "answers": ", ".join(one.summary for one in part.aggregates),
                    "mechanism": f"{first.name} ({first.law.kind})",
                    "epsilon": math.fsum(each.claim.epsilon for each in part.mechanisms if each.claim is not None),
                    "noise sd": part.deviation * part.measure.unit,
                }
            )
        return found

    def __str__(self) -> str:
        lines = [
            f"{row['answers']}: epsilon {row['epsilon']:.4g}, {row['mechanism']}, noise sd {row['noise sd']:.4g}"
            for row in self.rows()
        ]
        return "\n".join(lines)

    def _facts(self) -> Facts:
        lines = [
            (str(row["answers"]), str(row["mechanism"]), f"{row['epsilon']:.4g}", f"{row['noise sd']:.4g}")
            for row in self.rows()
        ]
        rows = [
            ("target", f"({up(self.epsilon)}, {up(self.delta)})"),
            ("intervals", f"hold the true value with probability {self.level:g}, each"),
        ]
        return Facts("How the questions will be answered", rows, ("answers", "mechanism", "epsilon", "noise sd"), lines)

    def _chart(self) -> Estimates:
        epsilons = [math.fsum(each.claim.epsilon for each in part.mechanisms if each.claim) for part in self.parts]
        names = [", ".join(one.summary for one in part.aggregates) for part in self.parts]
        target = f"({up(self.epsilon)}, {up(self.delta)})"
        return Estimates(
            f"How the budget {target} is split", "epsilon that the releases keep by themselves", names, epsilons
        )


def make_plan(
    query: Grouped,
    aggregates: Sequence[Aggregate],
    epsilon: float,
    delta: float,
    unit: Unit,
    neighbours: Neighbours,
    weights: Sequence[float] | None,
    level: float,
    *,
    unknown: bool = False,
    workload: Workload | None = None,
) -> Plan:
    """Shares such that every answer has the same relative precision, times its weight.

    With ``unknown`` keys every mechanism is for as many groups as there may be, and its noise does not depend on that;
    the number of units in a group, by which groups are selected, gets noise that ends. ``workload``: what is asked of
    the groups' counts, if there is nothing else.
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    level = validation.probability("level", level)
    weighed = list(zip(aggregates, weights or [1.0] * len(aggregates), strict=True))
    selecting = USERS if USERS in query.measures else ROWS
    needs = []
    for measure, where in query.places():
        served = [one for one in aggregates if serves(measure, one)]
        needs.append((measure, where, served, need(measure, weighed, default=COUNT.precision())))
    total = math.fsum(own for *_, own in needs)

    def planned(simple: bool, ended: float = 0.99) -> Plan:
        parts = []
        for measure, where, served, own in needs:
            share = own / total * (1.0 - 1e-9)  # rounding
            groups = MOST_GROUPS if unknown else query.groups
            changes = _changes(measure, groups, unit, neighbours)
            choosing = _has_choice(measure, served)
            usual = _pure if unknown else _simple if simple else _best
            build = _ended if unknown and measure == selecting else _chosen if choosing else usual
            spent = ended if build is _ended else share  # all others are pure; the machine has the rest
            width = INTERVAL_CELLS if choosing else measure.width
            asked = workload or (None if unknown or choosing else workload_of(measure, served, groups))
            if asked is not None:
                built = workload_mechanism(
                    asked, epsilon=epsilon * share, delta=delta * share, changes=changes, neighbours=neighbours
                )
            else:
                built = build(measure, (groups * width,), changes, neighbours, epsilon * share, delta * spent)
            choice = _choice(query, measure, served, unit, neighbours, epsilon * share, unknown) if choosing else None
            part = Part(measure, tuple(served), where, built, choice)
            parts.append(part.sized(MOST_GROUPS) if unknown else part)
        return Plan(query, tuple(parts), epsilon, delta, level)

    best = planned(simple=unknown)
    if unknown and best.composition.guarantee(epsilon).delta > delta:  # the machine's share grows as e^epsilon
        return planned(simple=True, ended=0.5)
    # Shells at a large epsilon compose with a wide bracket; pure noise adds up exactly.
    if unknown or best.added_up() is not None or best.composition.within(epsilon, delta):
        return best
    return planned(simple=True)


def _changes(measure: Measure, groups: int, unit: Unit, neighbours: Neighbours) -> Changes:
    """What one unit can do to a measure of all groups."""
    if measure == USERS:
        return counts(unit.groups, None if unit.groups == 1 else 1, neighbours)
    return measure.changes(groups, unit.rows, neighbours, unit.per_group)


def checked_weights(aggregates: Sequence[Aggregate], weights: Sequence[float] | None) -> list[float] | None:
    """One positive number for each aggregate, or none for all."""
    if weights is None:
        return None
    if len(weights) != len(aggregates):
        raise InvalidInput(f"weights has length={len(weights)} for {len(aggregates)} aggregates: pass one each.")
    return [validation.positive(f"weights[{i}]", weight) for i, weight in enumerate(weights)]


def probabilities_of(aggregates: Sequence[Aggregate]) -> tuple[float, ...]:
    """All that are asked of one measure, rising."""
    return tuple(sorted({p for one in aggregates for p in one.probabilities}))


def _has_choice(measure: Measure, served: Sequence[Aggregate]) -> bool:
    asked = probabilities_of(served)
    return measure.kind == "cells" and is_chosen(asked, measure.width)


def _choice(
    query: Grouped,
    measure: Measure,
    served: Sequence[Aggregate],
    unit: Unit,
    neighbours: Neighbours,
    epsilon: float,
    unknown: bool,
) -> Mechanism:
    """Where the quantiles are; with ``unknown`` keys, there may be many groups."""
    return quantile_choice(
        epsilon=epsilon * (1.0 - INTERVAL_SHARE),
        cells=measure.width,
        probabilities=probabilities_of(served),
        groups=query.groups,
        whole=max(cells_to_one(measure), 1),
        rows=unit.rows,
        neighbours=neighbours,
        descent=True if unknown else None,
    )


def _chosen(
    _: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, __: float
) -> Mechanism:
    """The counts around the chosen quantiles, of which a row changes one, as it does those of the cells."""
    size = changes.norm(1, math.prod(shape))
    built = geometric(epsilon=epsilon * INTERVAL_SHARE, shape=shape, sensitivity=size, neighbours=neighbours)
    return built.against(changes)


def _resized(mechanism: Mechanism, size: int) -> Mechanism:
    """The same noise for so many numbers, against the same changes."""
    assert mechanism.changes is not None
    return replace(mechanism, shape=(size,), changes=None).against(mechanism.changes)


def _best(
    measure: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, delta: float
) -> Mechanism:
    """The least noise."""
    del measure
    return least_noise(epsilon=epsilon, delta=delta, shape=shape, changes=changes, neighbours=neighbours)


def _simple(
    measure: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, delta: float
) -> Mechanism:
    """Noise that composes without a wide bracket."""
    if measure.whole:
        return least_noise(epsilon=epsilon, delta=delta, shape=shape, changes=changes, neighbours=neighbours)
    return _pure(measure, shape, changes, neighbours, epsilon, delta)


def _pure(
    measure: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, _: float
) -> Mechanism:
    """Noise of independent entries, which does not depend on the number of groups."""
    build = geometric if measure.whole else laplace
    size = changes.norm(1, math.prod(shape))
    return build(epsilon=epsilon, sensitivity=size, shape=shape, neighbours=neighbours).against(changes)


def _ended(
    _: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, delta: float
) -> Mechanism:
    """Integers that end, for numbers of units of which one unit changes g by 1 each: each gets a g-th of the budget."""
    moved = changes.dominant(math.prod(shape))
    assert moved is not None
    assert moved.sizes[0][0] == 1.0
    share = (1.0 - 1e-9) / moved.count if moved.count > 1 else 1.0
    built = geometric(epsilon=epsilon * share, delta=delta * share, shape=shape, neighbours=neighbours)
    assert built.claim is not None
    return replace(built, claim=Claim(epsilon, delta, neighbours, built.claim.source)).against(changes)
