"""How a ledger's budget was spent over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise.ledger import total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.composition import Composition
    from lessnoise.ledger.ledger import Ledger, Record


@dataclass(frozen=True)
class Moment:
    """The total after a number of records: epsilon at the ledger's delta, rounded up."""

    time: float
    records: int
    epsilon: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"time": self.time, "records": self.records, "epsilon": self.epsilon}


def history(ledger: Ledger, points: int = 16, records: Sequence[Record] | None = None) -> list[Moment]:
    """The exact total at up to ``points`` moments, evenly spread over the records; the last one is now."""
    every = ledger.records() if records is None else records
    if not every:
        return []
    marks = sorted({round((k + 1) * len(every) / points) for k in range(points)} - {0})
    totals: total.Totals = {}
    known: dict[Composition, int] = {}
    moments = []
    for number, record in enumerate(every, start=1):
        counts = totals.setdefault(record.partition or total.EVERYWHERE, {})
        key = known.setdefault(record.composition, len(known))
        counts[key] = counts.get(key, 0) + 1
        if number in marks:
            compositions = list(known)
            together = total.touched(ledger.budget.neighbours)
            candidates = total.worst_compositions(totals, together, compositions.__getitem__)
            distance = total.machine_distance(totals, together, compositions.__getitem__)
            spent = total.epsilon_spent(candidates, ledger.budget.delta, distance)
            moments.append(Moment(record.time, number, spent.upper))
    return moments
