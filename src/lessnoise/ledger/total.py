"""What all spends of a ledger guarantee together.

Everybody is touched by the spends that concern everybody and by those of one partition at most. So between data sets
that differ by an individual who is added or removed, the total is that of the worst partition: its own spends composed
with the common ones. An individual who is *replaced* may leave one partition and enter another: then the total is that
of the worst two, composed with each other and with the common ones.

Which ones are the worst is not seen from their epsilons: every partition is looked at but those that others dominate.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from lessnoise.changes import Moves
from lessnoise.composition import Composition, Part
from lessnoise.guarantees import Bracket, Guarantee, Neighbours
from lessnoise.mechanism import GeneralizedGaussian, Laplace, Law, Radial
from lessnoise.noise import epsilon_with_machine, machine_delta, with_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Counts = dict[int, int]
    Lookup = Callable[[int], Composition]

EVERYWHERE = ""  # the partition of what concerns everybody

# Of each kind of step, how often at which change, relative to the scale of its noise.
Steps = dict[Hashable, Counter[Fraction]]

# How often each description was spent, in each partition.
Totals = dict[str, dict[int, int]]


class Weight(NamedTuple):
    """What is compared: mu^2 of all Gaussians together, and the steps of every other kind."""

    normal: float
    steps: Steps

    def dominates(self, other: Weight) -> bool:
        """Whether this loses at least as much at every epsilon: each step of the other has one as bad here."""
        return other.normal <= self.normal and all(
            kind in self.steps and _as_many(self.steps[kind], steps) for kind, steps in other.steps.items()
        )

    @property
    def size(self) -> float:
        """Never smaller for one that dominates, up to rounding: in this order dominating ones come first."""
        sums = (float(ratio) * count for steps in self.steps.values() for ratio, count in steps.items())
        return self.normal + math.fsum(sums)


def touched(neighbours: Neighbours) -> int:
    """The number of partitions in which neighbours can differ."""
    return 2 if neighbours is Neighbours.REPLACE else 1


def worst_candidates(totals: Totals, together: int = 1, weigh: Callable[[int], Weight] | None = None) -> list[Counts]:
    """The counts of every ``together`` partitions with the common ones, without those that others dominate.

    Without ``weigh`` nothing is known of the descriptions, and only more of the same is more.

    >>> totals = {"": {1: 5}, "north": {2: 1}, "south": {2: 3}, "east": {3: 1}}
    >>> worst_candidates(totals)
    [{1: 5, 2: 3}, {1: 5, 3: 1}]
    >>> worst_candidates(totals, together=2)
    [{1: 5, 2: 3, 3: 1}, {1: 5, 2: 4}]
    """
    common = totals.get(EVERYWHERE, {})
    sets = Counter(frozenset(counts.items()) for partition, counts in totals.items() if partition != EVERYWHERE)
    own = [dict(sorted(items)) for items, times in sets.items() for _ in range(min(times, together))]
    kept = _undominated(own, together, weigh)
    if together > 1:
        several = [merged(*some) for some in itertools.combinations(kept, min(together, len(kept)))]
        kept = _undominated(several, 1, weigh)
    return [merged(common, counts) for counts in kept if counts] or ([dict(common)] if common else [])


def _undominated(sets: list[Counts], together: int, weigh: Callable[[int], Weight] | None) -> list[Counts]:
    """Those that fewer than ``together`` others dominate, of equal ones ``together``."""
    weighed = [(_weight(counts, weigh), counts) for counts in sets]
    weighed.sort(key=lambda pair: (-pair[0].size, sorted(pair[1].items())))
    kept: list[tuple[Weight, Counts]] = []
    for weight, counts in weighed:
        above = (1 for other, _ in kept if other.dominates(weight))
        if sum(itertools.islice(above, together)) < together:
            kept.append((weight, counts))
    return [counts for _, counts in kept]


def merged(*sets: Counts) -> Counts:
    """All together."""
    result: Counter[int] = Counter()
    for counts in sets:
        result.update(counts)
    return dict(result)


def _weight(counts: Counts, weigh: Callable[[int], Weight] | None) -> Weight:
    if weigh is None:
        return Weight(0.0, {description: Counter({Fraction(1): count}) for description, count in counts.items()})
    normal: list[float] = []
    steps: Steps = {}
    for description, count in counts.items():
        one = weigh(description)
        normal.append(count * one.normal)
        for kind, ratios in one.steps.items():
            repeated = {ratio: count * times for ratio, times in ratios.items()}
            steps.setdefault(kind, Counter()).update(repeated)
    return Weight(math.fsum(normal), steps)


def _as_many(these: dict[Fraction, int], those: dict[Fraction, int]) -> bool:
    """Whether each of those can be given one of these that is at least as large."""
    return all(
        sum(count for ratio, count in those.items() if ratio >= least)
        <= sum(count for ratio, count in these.items() if ratio >= least)
        for least in those
    )


@functools.lru_cache(maxsize=4096)
def weight_of(composition: Composition) -> Weight:
    """The weight of one description. Rounding of mu^2 is less than what a merged Gaussian allows for."""
    normal: list[float] = []
    steps: Steps = {}
    for step in composition.steps:
        if step.mu is not None:
            normal.append(step.times * step.mu[1] ** 2)
            continue
        unit, scale = _standard(step.law)
        if isinstance(step.shift, Moves):  # comparable with its like alone
            steps.setdefault((step.law, step.shift, step.rate), Counter())[Fraction(1)] += step.times
            continue
        ratio = Fraction(step.shift) / Fraction(scale)
        steps.setdefault((unit, step.dimension, step.rate), Counter())[ratio] += step.times
    return Weight(math.fsum(normal), steps)


@functools.singledispatch
def _standard(law: Law) -> tuple[Law, float]:
    """The law of scale 1 and the scale by which it is multiplied. Of any law, a larger change loses more."""
    return law, 1.0


@_standard.register
def _(law: Radial | Laplace | GeneralizedGaussian) -> tuple[Law, float]:
    return replace(law, scale=1.0), law.scale


def composition_of(counts: Counts, lookup: Lookup) -> Composition:
    """The spends as one composition, in an order of their own."""
    parts: list[Part] = []
    for description in sorted(counts):
        parts.extend(lookup(description).repeat(counts[description]).parts)
    return Composition(tuple(parts))


def worst_compositions(totals: Totals, together: int, lookup: Lookup) -> list[Composition]:
    """One composition for each choice of partitions that could be the worst."""
    candidates = worst_candidates(totals, together, lambda description: weight_of(lookup(description)))
    return [composition_of(counts, lookup) for counts in candidates]


def focused(totals: Totals, partition: str, neighbours: Neighbours) -> Totals:
    """As the individuals of one partition see it: its spends concern all that matter; others only if these can move.

    >>> totals = {"": {1: 5}, "north": {2: 1}, "south": {2: 3}}
    >>> focused(totals, "north", Neighbours.ADD_REMOVE)
    {'': {1: 5, 2: 1}}
    >>> focused(totals, "north", Neighbours.REPLACE)
    {'': {1: 5, 2: 1}, 'south': {2: 3}}
    """
    if partition == EVERYWHERE:
        return totals
    certain = {EVERYWHERE: merged(totals.get(EVERYWHERE, {}), totals.get(partition, {}))}
    others = {name: counts for name, counts in totals.items() if name not in (EVERYWHERE, partition)}
    return certain | others if neighbours is Neighbours.REPLACE else certain


def fits(composition: Composition, budget: Guarantee, distance: float) -> bool:
    """Whether all together is proved to keep the budget, with what the finite machine adds to delta left free.

    That is (1 + e^epsilon) times the ``distance`` from ideal noise. It grows with e^epsilon, so for a budget of a large
    epsilon the question is asked at a smaller one, which implies it. A pure budget (delta = 0) is kept by the
    real-valued noise; what the machine adds has no place there.
    """
    if budget.delta == 0.0:
        return composition.within(budget.epsilon, 0.0)
    most = budget.delta * 2.0**-10 / distance - 1.0
    if most <= 1.0:
        return False
    epsilon = min(budget.epsilon, math.log(most))
    return composition.within(epsilon, math.nextafter(budget.delta - machine_delta(epsilon, distance), 0.0))


def machine_distance(totals: Totals, together: int, lookup: Lookup) -> float:
    """How far the noise is from the ideal at most, over the releases that any ``together`` partitions have seen."""
    by_partition = {
        name: math.fsum(count * lookup(description).machine_distance for description, count in counts.items())
        for name, counts in totals.items()
    }
    common = by_partition.pop(EVERYWHERE, 0.0)
    return common + math.fsum(sorted(by_partition.values(), reverse=True)[:together])


def epsilon_spent(candidates: Iterable[Composition], delta: float, distance: float) -> Bracket:
    """Epsilon at the ledger's delta of the worst candidate, with what the finite machine adds to delta."""
    return _worst(epsilon_with_machine(composition.epsilon, delta, distance) for composition in candidates)


def delta_spent(candidates: Iterable[Composition], epsilon: float, distance: float) -> Bracket:
    """Delta at the ledger's epsilon of the worst candidate, with what the finite machine adds to it."""
    return _worst(with_machine(composition.delta(epsilon), epsilon, distance) for composition in candidates)


def _worst(brackets: Iterable[Bracket]) -> Bracket:
    lower = upper = 0.0
    for found in brackets:
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return Bracket(lower, upper)
