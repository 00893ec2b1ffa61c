"""Plans that a ledger holds: releases that are promised their share, which nothing else can eat.

What is reserved and not yet used counts as spent whenever something else is decided. A release of the plan is checked
to be one that was reserved, or one that loses no more, and takes its place: so it always fits.

A plan is in the history like everything else. A record of kind *reserve* describes all its releases; a *use* follows
the spend of each release, and describes the reserved ones whose place it takes; a *cancel* frees the rest. Each has the
name of the plan as its note.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lessnoise._display import Facts, Listed
from lessnoise.composition import Composition, Part
from lessnoise.errors import BudgetExceeded, InvalidInput
from lessnoise.harmless import shown
from lessnoise.ledger import total
from lessnoise.ledger.chain import CANCEL, RESERVE
from lessnoise.ledger.descriptions import with_more
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lessnoise.ledger.descriptions import Lookup
    from lessnoise.ledger.tables import PlanRows, Tables
    from lessnoise.mechanism import Mechanism


@dataclass(frozen=True)
class ReservedItem:
    """Releases of one kind in a plan that a ledger holds: how many were reserved, and how many are used."""

    release: Composition
    times: int
    used: int


@dataclass(frozen=True)
class Reservation(Listed):
    """A plan that a ledger holds, for one partition of the individuals or for all of them (None)."""

    name: str
    time: float
    partition: str | None
    items: tuple[ReservedItem, ...]
    cancelled: bool = False

    @property
    def left(self) -> int:
        """How many releases of it are still to come."""
        return 0 if self.cancelled else self.unused

    @property
    def unused(self) -> int:
        """How many releases of it were not made, be they still to come or cancelled."""
        return sum(item.times - item.used for item in self.items)

    def mechanism_for(self, shape: tuple[int, ...] | None = None, *, rate: float = 1.0) -> Mechanism:
        """The planned noise of a release of this shape (None: of any), on samples at ``rate``.

        InvalidInput if there is none, or more than one kind.

        >>> import lessnoise as ln
        >>> daily = ln.laplace(epsilon=0.1, sensitivity=1, shape=3)
        >>> plan = Reservation("daily", 1.8e9, None, (ReservedItem(ln.compose(daily), 30, 0),))
        >>> plan.mechanism_for() == plan.mechanism_for((3,)) == daily
        True
        """
        planned = [item.release.parts[0] for item in self.items]
        found = [part.mechanism for part in planned if part.rate == rate and shape in (None, part.mechanism.shape)]
        if len(found) != 1:
            asked = ("any shape" if shape is None else f"shape={shape}") + ("" if rate == 1.0 else f" at rate={rate:g}")
            raise InvalidInput(
                f"plan={shown(self.name)} has {len(found) or 'no'} kinds of noise for {asked}; planned is "
                f"{'; '.join(_words(part) for part in planned)}: say which noise it is."
            )
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        items = [{"release": one.release.to_dict(), "times": one.times, "used": one.used} for one in self.items]
        return {
            "name": self.name,
            "time": self.time,
            "partition": self.partition,
            "items": items,
            "cancelled": self.cancelled,
        }

    def _facts(self) -> Facts:
        rows = [("partition", self.partition or "all individuals"), ("releases left", f"{self.left:,}")]
        return Facts(f"Plan {self.name}, {'cancelled' if self.cancelled else 'held by a ledger'}", rows)


class Use(NamedTuple):
    """The reserved releases whose place others take, and the partition that they are for."""

    taken: Composition
    partition: str


# Reading.


def reservations(found: Tables, lookup: Lookup) -> list[Reservation]:
    """Every plan that was ever held, by name; LedgerError if what is recorded of one cannot be."""
    held: dict[str, list[PlanRows]] = {}
    for rows in found.plan_rows():
        if (rows.kind == RESERVE) == (rows.name in held) or (rows.kind in (RESERVE, CANCEL) and rows.times != 1):
            raise _odd(found, rows)
        held.setdefault(rows.name, []).append(rows)
    return [_reservation(found, *held[name], lookup=lookup) for name in sorted(held)]


def _reservation(found: Tables, reserved: PlanRows, *later: PlanRows, lookup: Lookup) -> Reservation:
    units, times = _counted(found, reserved, lookup)
    used: Counter[str] = Counter()
    cancelled: PlanRows | None = None
    for rows in later:
        if rows.partition != reserved.partition or cancelled is not None:
            raise _odd(found, rows)
        if rows.kind == CANCEL:
            cancelled = rows
            continue
        used += _counted(found, rows, lookup)[1]
        if not used <= times:
            raise _odd(found, rows)
    if cancelled is not None and any(rows.last > cancelled.first for rows in later):
        raise _odd(found, cancelled)
    items = tuple(ReservedItem(units[key], count, used[key]) for key, count in times.items())
    return Reservation(reserved.name, reserved.time, reserved.partition or None, items, cancelled is not None)


def _counted(found: Tables, rows: PlanRows, lookup: Lookup) -> tuple[dict[str, Composition], Counter[str]]:
    """The kinds of releases in like records, each as it is written, and how many there are of each."""
    if rows.description is None:
        raise _odd(found, rows)
    units, times = {}, Counter[str]()
    for part in lookup(rows.description).parts:
        unit = _one(part)
        key = unit.to_json()
        units[key] = unit
        times[key] += part.count * rows.times
    return units, times


def _odd(found: Tables, rows: PlanRows) -> Exception:
    return found.odd("record", f"id={rows.first}, {rows.kind} of plan {rows.name!r}")


def committed(found: Tables, lookup: Lookup) -> tuple[total.Totals, Lookup]:
    """What was spent, and what is reserved and not used yet under numbers below 0, with a lookup that knows both."""
    totals = found.totals()
    reserved: dict[int, Composition] = {}
    for plan in reservations(found, lookup):
        if plan.left:
            number = -1 - len(reserved)
            parts = [
                replace(item.release.parts[0], count=item.times - item.used)
                for item in plan.items
                if item.times > item.used
            ]
            reserved[number] = Composition(tuple(parts))
            totals.setdefault(plan.partition or total.EVERYWHERE, {})[number] = 1
    return totals, with_more(reserved, lookup)


def find(found: Tables, name: str, lookup: Lookup) -> Reservation:
    """The plan of this name."""
    plans = reservations(found, lookup)
    for plan in plans:
        if plan.name == name:
            return plan
    known = ", ".join(shown(plan.name) for plan in plans[:_LISTED]) or "none"
    more = f" and {len(plans) - _LISTED} more" if len(plans) > _LISTED else ""
    raise InvalidInput(f"plan={shown(name)} is not held by {found.ledger}: its plans are {known}{more}.")


def check_new(found: Tables, name: str) -> None:
    """InvalidInput if a plan had this name before."""
    if any(rows.name == name for rows in found.plan_rows()):
        raise InvalidInput(f"name={shown(name)} is that of a plan of {found.ledger} already: choose another.")


def cancellable(found: Tables, name: str, lookup: Lookup) -> Reservation:
    """The plan of this name, of which something may still be reserved."""
    plan = find(found, name, lookup)
    if plan.cancelled:
        raise InvalidInput(f"plan={shown(name)} of {found.ledger} was cancelled already: nothing of it is reserved.")
    return plan


# Matching.

_LISTED = 10  # names of plans in an error


def matched(found: Tables, name: str, partition: str | None, asked: Composition, lookup: Lookup) -> Use:
    """Which reserved releases the asked ones take the place of; an error says what does not match."""
    plan = find(found, name, lookup)
    if partition is not None and partition != plan.partition:
        raise InvalidInput(
            f"partition={shown(partition)} is not {shown(plan.partition)}, that of plan={shown(name)}: release for "
            "the individuals that were planned for."
        )
    if plan.cancelled:
        raise InvalidInput(
            f"plan={shown(name)} of {found.ledger} was cancelled: release without it, or reserve a new plan."
        )
    planned = [item.release.parts[0] for item in plan.items]
    left = [item.times - item.used for item in plan.items]
    taken: Counter[int] = Counter()
    for part in asked.parts:
        fitting = [number for number, one in enumerate(planned) if _takes_the_place(part, one)]
        if not fitting:
            raise InvalidInput(_mismatch(name, part, planned))
        # The very one that was planned comes first.
        fitting.sort(key=lambda number: planned[number].step != replace(part, count=1).step)
        chosen = next((number for number in fitting if left[number] >= part.count), None)
        if chosen is None:
            most = max(left[number] for number in fitting)
            raise BudgetExceeded(
                f"plan={shown(name)} of {found.ledger} has {most} such releases left, and {part.count} "
                f"{'is' if part.count == 1 else 'are'} asked for: release without the plan, or reserve a new one.",
                remaining=0.0,
                requested=asked.epsilon(found.budget().delta).upper,
            )
        left[chosen] -= part.count
        taken[chosen] += part.count
    parts = tuple(replace(planned[number], count=times) for number, times in taken.items())
    return Use(Composition(parts), plan.partition or total.EVERYWHERE)


def _takes_the_place(part: Part, planned: Part) -> bool:
    """Whether a release is for an array of the planned shape, and loses no more than the planned one at any epsilon."""
    if part.mechanism.shape != planned.mechanism.shape or part.rate != planned.rate:
        return False
    if part.mechanism.machine_distance > planned.mechanism.machine_distance:
        return False
    one = replace(part, count=1)
    return one.step == planned.step or total.weight_of(_one(planned)).dominates(total.weight_of(_one(one)))


def _mismatch(name: str, part: Part, planned: list[Part]) -> str:
    what = "; ".join(_words(one) for one in planned)
    return (
        f"the release is not one of plan={shown(name)}: asked is {_words(part)}, planned is {what}. Release with the "
        "mechanism of the plan, or with more of the same noise."
    )


def _words(part: Part) -> str:
    mechanism = part.mechanism
    rate = "" if part.rate == 1.0 else f" at rate={part.rate:g}"
    kind, shape = mechanism.law.kind, mechanism.shape
    try:
        noise = f"{kind} noise of deviation {down(mechanism.standard_deviation, 5)}"
    except InvalidInput:
        noise = f"{kind} noise"
    return f"{noise} for sensitivity={up(mechanism.sensitivity)}, shape={shape}{rate}"


def _one(part: Part) -> Composition:
    return Composition((replace(part, count=1),))


def words_of(plans: Iterable[Reservation]) -> list[str]:
    """One line a plan, for people."""
    return [
        f"{' '.join(plan.name.split())}: {'cancelled' if plan.cancelled else f'{plan.left:,} releases reserved'}, "
        f"{sum(item.used for item in plan.items):,} used"
        + ("" if plan.partition is None else f", partition {plan.partition}")
        for plan in plans
    ]
