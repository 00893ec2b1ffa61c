"""Which noise each measure gets, and which share of the budget: decided before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.changes import counts
from lessnoise.composition import compose
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Guarantee
from lessnoise.mechanism import (
    Mechanism,
    draw_noise,
    geometric,
    has_independent_entries,
    hb,
    laplace,
    least_noise,
    prepare_noise,
)
from lessnoise.noise import Stream
from lessnoise.query import ROWS, USERS, Products

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.changes import Changes
    from lessnoise.composition import Composition
    from lessnoise.guarantees import Neighbours
    from lessnoise.query import Grouped, Measure, Unit
    from lessnoise.table.aggregates import Aggregate

MOST_GROUPS = 1 << 26  # with private keys
_COUNTING = 1.36  # the need of a count that only selects keys
_FEWEST_CELLS = 32  # from so many on, a tree of counts has the better distribution function


@dataclass(frozen=True)
class Part:
    """One measure, what is read from it, its place in the answer, and the mechanism that releases it."""

    measure: Measure
    aggregates: tuple[Aggregate, ...]
    where: slice
    mechanism: Mechanism

    def noise(self, groups: int, draws: int, rng: np.random.Generator) -> Array:
        """Draws of the noise alone, for intervals: (draws, groups or 1 for all of them, numbers)."""
        law, shape = self.mechanism.law, (groups, self.measure.width)
        if has_independent_entries(law, self.mechanism.shape):  # of one law: the same draws serve every group
            flat = draw_noise(law, (draws * self.measure.width,), rng)
            return flat.reshape(draws, 1, self.measure.width).astype(np.float64)
        each = [
            prepare_noise(law, np.zeros(self.mechanism.shape), Stream.of(rng))().reshape(shape) for _ in range(draws)
        ]
        return np.stack(each).astype(np.float64)


@dataclass(frozen=True)
class Plan:
    """Every release that answers the questions, and what all of them cost together."""

    query: Grouped
    parts: tuple[Part, ...]
    epsilon: float
    delta: float
    level: float

    @property
    def composition(self) -> Composition:
        """All releases together: what is paid."""
        return compose(*(part.mechanism for part in self.parts))

    def known_guarantee(self, together: Composition) -> Guarantee:
        """The target itself, where epsilons and deltas that add up prove it: quick; else what is computed."""
        left = self.delta - together.delta_numeric(self.epsilon)
        if left > 0.0 and together.within(self.epsilon, left):
            return Guarantee(self.epsilon, self.delta, together.neighbours)
        return together.guarantee(self.epsilon)

    def rows(self) -> list[dict[str, object]]:
        """What is released with which noise, one row for each measure."""
        found = []
        for part in self.parts:
            claim = part.mechanism.claim
            assert claim is not None
            found.append(
                {
                    "answers": ", ".join(one.summary for one in part.aggregates),
                    "mechanism": f"{part.mechanism.name} ({part.mechanism.law.kind})",
                    "epsilon": claim.epsilon,
                    "noise sd": part.mechanism.standard_deviation * part.measure.unit,
                }
            )
        return found

    def __str__(self) -> str:
        lines = [
            f"{row['answers']}: epsilon {row['epsilon']:.4g}, {row['mechanism']}, noise sd {row['noise sd']:.4g}"
            for row in self.rows()
        ]
        return "\n".join(lines)


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
) -> Plan:
    """Shares such that every answer has the same relative precision, times its weight.

    With ``unknown`` keys every mechanism is for as many groups as there may be, and its noise does not depend on that;
    the number of units in a group, by which groups are selected, gets noise that ends.
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    level = validation.probability("level", level)
    weighed = _weights(aggregates, weights)
    selecting = USERS if USERS in query.measures else ROWS
    needs = []
    for measure, where in query.places():
        served = [(one, one.precision() * weight) for one, weight in weighed if serves(measure, one)]
        needs.append((measure, where, served, max((need for _, need in served), default=_COUNTING)))
    total = math.fsum(need for *_, need in needs)

    def planned(simple: bool, ended: float = 0.99) -> Plan:
        parts = []
        for measure, where, served, need in needs:
            share = need / total * (1.0 - 1e-9)  # rounding
            groups = MOST_GROUPS if unknown else query.groups
            changes = _changes(measure, groups, unit, neighbours)
            build = _ended if unknown and measure == selecting else _pure if unknown else _simple if simple else _best
            spent = ended if build is _ended else share  # all others are pure; the machine has the rest
            built = build(measure, (groups * measure.width,), changes, neighbours, epsilon * share, delta * spent)
            parts.append(Part(measure, tuple(one for one, _ in served), where, built))
        return Plan(query, tuple(parts), epsilon, delta, level)

    best = planned(simple=unknown)
    if unknown and best.composition.guarantee(epsilon).delta > delta:  # the machine's share grows as e^epsilon
        return planned(simple=True, ended=0.5)
    # Shells at a large epsilon compose with a wide bracket; pure noise adds up exactly.
    return best if unknown or best.composition.within(epsilon, delta) else planned(simple=True)


def _changes(measure: Measure, groups: int, unit: Unit, neighbours: Neighbours) -> Changes:
    """What one unit can do to a measure of all groups."""
    if measure == USERS:
        return counts(unit.groups, None if unit.groups == 1 else 1, neighbours)
    return measure.changes(groups, unit.rows, neighbours, unit.per_group)


def measures_of(aggregates: Sequence[Aggregate]) -> tuple[Measure, ...]:
    """Each measure once; a mean takes the moments of a variance of the same column."""
    found: list[Measure] = []
    for measure in sorted((one.measure for one in aggregates), key=lambda measure: -measure.degree):
        if not any(_covers(known, measure) for known in found):
            found.append(measure)
    return tuple(found)


def serves(measure: Measure, aggregate: Aggregate) -> bool:
    """Whether an aggregate is read from this measure."""
    return _covers(measure, aggregate.measure)


def _covers(known: Measure, wanted: Measure) -> bool:
    if isinstance(known, Products) and isinstance(wanted, Products):
        return known.covers(wanted)
    if known.kind == "moments" and wanted.kind == "moments":
        return replace(known, degree=wanted.degree) == wanted and known.degree >= wanted.degree
    return known == wanted


def _weights(aggregates: Sequence[Aggregate], weights: Sequence[float] | None) -> list[tuple[Aggregate, float]]:
    if weights is None:
        return [(one, 1.0) for one in aggregates]
    if len(weights) != len(aggregates):
        raise InvalidInput(f"weights has length={len(weights)} for {len(aggregates)} aggregates: pass one each.")
    checked = [validation.positive(f"weights[{i}]", weight) for i, weight in enumerate(weights)]
    return list(zip(aggregates, checked, strict=True))


def _best(
    measure: Measure, shape: tuple[int, ...], changes: Changes, neighbours: Neighbours, epsilon: float, delta: float
) -> Mechanism:
    """The least noise; for a distribution function of many cells, a tree of counts."""
    if measure.kind == "cells" and measure.width >= _FEWEST_CELLS:
        size = changes.norm(1, math.prod(shape))
        return hb(epsilon=epsilon, shape=shape, l1_sensitivity=size, neighbours=neighbours)
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
