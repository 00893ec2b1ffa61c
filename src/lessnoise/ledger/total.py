"""What all spends of a ledger guarantee together.

Everybody is touched by the spends that concern everybody and by those of one partition at most, so the total is that of
the worst partition: its own spends composed with the common ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.composition import Composition, Part
from lessnoise.guarantees import Bracket, Guarantee
from lessnoise.ledger.store import EVERYWHERE, Totals

if TYPE_CHECKING:
    from collections.abc import Callable

    Counts = dict[int, int]
    Lookup = Callable[[int], Composition]


def worst_candidates(totals: Totals) -> list[Counts]:
    """The counts of each partition with the common ones, without those that another one contains.

    >>> worst_candidates({"": {1: 5}, "north": {2: 1}, "south": {2: 3}, "east": {3: 1}})
    [{1: 5, 2: 3}, {1: 5, 3: 1}]
    """
    common = totals.get(EVERYWHERE, {})
    distinct = {tuple(sorted(counts.items())) for partition, counts in totals.items() if partition != EVERYWHERE}
    kept: list[Counts] = []
    for own in sorted((dict(items) for items in distinct), key=lambda counts: -sum(counts.values())):
        if not any(all(other.get(key, 0) >= count for key, count in own.items()) for other in kept):
            kept.append(own)
    merged = [{key: common.get(key, 0) + own.get(key, 0) for key in [*common, *own]} for own in kept]
    return merged or ([dict(common)] if common else [])


def composition_of(counts: Counts, lookup: Lookup) -> Composition:
    """The spends as one composition, in an order of their own."""
    parts: list[Part] = []
    for description in sorted(counts):
        parts.extend(lookup(description).repeat(counts[description]).parts)
    return Composition(tuple(parts))


def fits(composition: Composition, budget: Guarantee) -> bool:
    """Whether all together is proved to keep the budget, with what the finite machine adds to delta left free.

    What it adds grows with e^epsilon, so for a budget of a large epsilon the question is asked at a smaller one, which
    implies it. A pure budget (delta = 0) is kept by the real-valued noise; what the machine adds has no place there.
    """
    if budget.delta == 0.0:
        return composition.within(budget.epsilon, 0.0)
    distance = 0.5 * composition.delta_numeric(0.0)  # delta_numeric is (1 + e^epsilon) times this
    most = budget.delta * 2.0**-10 / distance - 1.0
    if most <= 1.0:
        return False
    epsilon = min(budget.epsilon, math.log(most))
    free = math.nextafter(budget.delta - composition.delta_numeric(epsilon), 0.0)
    return composition.within(epsilon, free)


def epsilon_spent(candidates: list[Composition], delta: float) -> Bracket:
    """Epsilon at the ledger's delta of the worst partition."""
    lower = upper = 0.0
    for composition in candidates:
        found = composition.epsilon(delta)
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return Bracket(lower, upper)


def delta_spent(candidates: list[Composition], epsilon: float) -> Bracket:
    """Delta at the ledger's epsilon of the worst partition."""
    lower = upper = 0.0
    for composition in candidates:
        found = composition.delta(epsilon)
        lower, upper = max(lower, found.lower), max(upper, found.upper)
    return Bracket(lower, upper)
