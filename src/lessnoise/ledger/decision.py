"""Whether one more release keeps the budget, together with all that was spent and all that is promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.composition import Composition
from lessnoise.errors import BudgetExceeded
from lessnoise.ledger import reservations, total
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger.descriptions import Lookup
    from lessnoise.ledger.tables import Tables


def decide(
    found: Tables, asked: Composition, partition: str, budget: Guarantee, lookup: Lookup, what: str = "release"
) -> None:
    """BudgetExceeded unless everything with the new release keeps the budget, what is reserved included."""
    relation = budget.neighbours
    everything, lookup = reservations.committed(found, lookup)
    totals = total.focused(everything, partition, relation)
    # If it has a partition, that one is in all of them.
    together = total.touched(relation) if partition == total.EVERYWHERE else 1
    before = total.worst_compositions(totals, together, lookup)
    after = [Composition((*composition.parts, *asked.parts)) for composition in before] or [asked]
    distance = total.machine_distance(totals, together, lookup) + asked.machine_distance
    if all(total.fits(composition, budget, distance) for composition in after):
        return
    delta = budget.delta
    spent = total.epsilon_spent(before, delta, distance - asked.machine_distance).upper
    remaining = max(budget.epsilon - spent, 0.0)
    requested = max(total.epsilon_spent(after, delta, distance).upper - spent, 0.0)
    raise BudgetExceeded(
        f"the {what} would add epsilon={up(requested, 4)} at delta={up(delta)}, but {down(remaining, 4)} is left "
        f"of {budget} in {found.ledger}: release less, with more noise, or from another budget.",
        remaining=remaining,
        requested=requested,
    )
