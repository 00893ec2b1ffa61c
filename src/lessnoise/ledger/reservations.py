"""Plans that a ledger holds: releases that are promised their share, which nothing else can eat.

What is reserved and not yet used counts as spent whenever something else is decided. A release of the plan is checked
to be one that was reserved, or one that loses no more, and takes its place: so it always fits. Reservation, use and
cancellation are one transaction each. The tables are added by the first reservation; a lessnoise that does not know
them refuses the file.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lessnoise.composition import Composition, Part
from lessnoise.errors import BudgetExceeded, InvalidInput
from lessnoise.harmless import shown
from lessnoise.ledger import total
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lessnoise.ledger.tables import Tables

    Lookup = Callable[[int], Composition]
    Taken = list[tuple[int, int]]  # descriptions that are used up, and how often

SCHEMA = """
CREATE TABLE plan (name TEXT NOT NULL PRIMARY KEY, time REAL NOT NULL, partition TEXT NOT NULL,
    cancelled INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE planned (plan TEXT NOT NULL REFERENCES plan (name), description INTEGER NOT NULL
    REFERENCES description (id), times INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY (plan, description))
    STRICT, WITHOUT ROWID;
CREATE TABLE planned_spend (spend INTEGER NOT NULL REFERENCES spend (id), plan TEXT NOT NULL REFERENCES plan (name),
    description INTEGER NOT NULL REFERENCES description (id), times INTEGER NOT NULL,
    PRIMARY KEY (spend, plan, description)) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True)
class ReservedItem:
    """Releases of one kind in a plan that a ledger holds: how many were reserved, and how many are used."""

    release: Composition
    times: int
    used: int


@dataclass(frozen=True)
class Reservation:
    """A plan that a ledger holds, for one partition of the individuals or for all of them (None)."""

    name: str
    time: float
    partition: str | None
    items: tuple[ReservedItem, ...]
    cancelled: bool = False

    @property
    def left(self) -> int:
        """How many releases of it are still to come."""
        return sum(item.times - item.used for item in self.items)

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


class _Row(NamedTuple):
    plan: str
    partition: str
    description: int
    times: int
    used: int


# Reading.


def exist(found: Tables) -> bool:
    """Whether this ledger has ever held a plan."""
    query = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'plan'"
    return bool(found.connection.execute(query).fetchone()[0])


def committed(found: Tables) -> total.Totals:
    """What was spent, and what is reserved and not used yet."""
    totals = {partition: dict(counts) for partition, counts in found.totals().items()}
    for row in _rows(found):
        if row.times > row.used:
            counts = totals.setdefault(row.partition, {})
            counts[row.description] = counts.get(row.description, 0) + row.times - row.used
    return totals


def reservations(found: Tables, lookup: Lookup) -> list[Reservation]:
    """Every plan that was ever held, by name."""
    rows = _rows(found)
    return [
        Reservation(
            name,
            moment,
            partition or None,
            tuple(ReservedItem(lookup(row.description), row.times, row.used) for row in rows if row.plan == name),
            bool(cancelled),
        )
        for name, moment, partition, cancelled in _plans(found)
    ]


def check(found: Tables) -> None:
    """Refuse plans that contradict themselves or their releases."""
    if not exist(found):
        return
    query = "SELECT plan, description, SUM(times) FROM planned_spend GROUP BY plan, description"
    paid = {(plan, description): times for plan, description, times in found.connection.execute(query)}
    for row in _rows(found):
        if paid.pop((row.plan, row.description), 0) != row.used:
            raise found.odd("planned", f"plan={row.plan!r}, used={row.used}")
    if paid:
        raise found.odd("planned_spend", f"plan={next(iter(paid))[0]!r}")
    query = "SELECT COUNT(*) FROM planned_spend WHERE spend NOT IN (SELECT id FROM spend)"
    if found.connection.execute(query).fetchone()[0]:
        raise found.odd("planned_spend", "a release without a record")


def _plans(found: Tables) -> list[tuple[str, float, str, int]]:
    if not exist(found):
        return []
    rows = found.connection.execute("SELECT name, time, partition, cancelled FROM plan ORDER BY name").fetchall()
    for name, moment, partition, cancelled in rows:
        if not (isinstance(name, str) and isinstance(partition, str) and moment >= 0.0 and cancelled in (0, 1)):
            raise found.odd("plan", f"name={name!r}")
    return rows


def _rows(found: Tables) -> list[_Row]:
    """Every kind of release of every plan."""
    partitions = {name: partition for name, _, partition, _ in _plans(found)}
    if not partitions:
        return []
    rows = []
    query = "SELECT plan, description, times, used FROM planned ORDER BY plan, description"
    for plan, description, times, used in found.connection.execute(query):
        if plan not in partitions or not (description > 0 and 0 <= used <= times):
            raise found.odd("planned", f"plan={plan!r}, description={description!r}, times={times!r}, used={used!r}")
        rows.append(_Row(plan, partitions[plan], description, times, used))
    return rows


# Writing, each in a transaction of the caller.


def hold(found: Tables, name: str, partition: str, asked: Composition) -> None:
    """Write a plan down; that it fits was decided before, in the same transaction."""
    if any(known == name for known, *_ in _plans(found)):
        raise InvalidInput(f"name={shown(name)} is that of a plan of {found.ledger} already: choose another.")
    if not exist(found):
        for statement in filter(str.strip, SCHEMA.split(";")):
            found.connection.execute(statement)
    found.connection.execute("INSERT INTO plan VALUES (?, ?, ?, 0)", (name, time.time(), partition))
    for part in asked.parts:
        description = found.description_id(_one(part).to_json())
        found.connection.execute("INSERT INTO planned VALUES (?, ?, ?, 0)", (name, description, part.count))


def cancel(found: Tables, name: str) -> int:
    """Free what is not used; how many releases that were."""
    if _entry(found, name)[3]:
        raise InvalidInput(f"plan={shown(name)} of {found.ledger} was cancelled already: nothing of it is reserved.")
    freed = sum(row.times - row.used for row in _rows(found) if row.plan == name)
    found.connection.execute("UPDATE planned SET times = used WHERE plan = ?", (name,))
    found.connection.execute("UPDATE plan SET cancelled = 1 WHERE name = ?", (name,))
    return freed


def record_use(found: Tables, name: str, taken: Taken, spend: int) -> None:
    """Note that a record used up releases of a plan."""
    for description, times in taken:
        found.connection.execute(
            "UPDATE planned SET used = used + ? WHERE plan = ? AND description = ?", (times, name, description)
        )
        found.connection.execute("INSERT INTO planned_spend VALUES (?, ?, ?, ?)", (spend, name, description, times))


# Matching.


def partition_of(found: Tables, name: str) -> str:
    """The partition that a plan is for."""
    return _entry(found, name)[2]


def _entry(found: Tables, name: str) -> tuple[str, float, str, int]:
    plans = _plans(found)
    for entry in plans:
        if entry[0] == name:
            return entry
    known = ", ".join(shown(entry[0]) for entry in plans) or "none"
    raise InvalidInput(f"plan={shown(name)} is not held by {found.ledger}: its plans are {known}.")


def matched(found: Tables, name: str, partition: str | None, asked: Composition, lookup: Lookup) -> Taken:
    """Which reserved releases the asked ones take the place of; an error says what does not match."""
    entry = _entry(found, name)
    if partition is not None and partition != entry[2]:
        raise InvalidInput(
            f"partition={shown(partition)} is not {shown(entry[2] or None)}, that of plan={shown(name)}: release for "
            "the individuals that were planned for."
        )
    if entry[3]:
        raise InvalidInput(f"plan={shown(name)} of {found.ledger} was cancelled: release without it, or plan anew.")
    left = {row.description: row.times - row.used for row in _rows(found) if row.plan == name}
    taken: Taken = []
    for part in asked.parts:
        fitting = [description for description in left if _takes_the_place(part, lookup(description).parts[0])]
        if not fitting:
            raise InvalidInput(_mismatch(name, part, [lookup(description).parts[0] for description in left]))
        # The very one that was planned comes first.
        fitting.sort(key=lambda description: lookup(description).parts[0].step != replace(part, count=1).step)
        chosen = next((description for description in fitting if left[description] >= part.count), None)
        if chosen is None:
            most = max(left[description] for description in fitting)
            raise BudgetExceeded(
                f"plan={shown(name)} of {found.ledger} has {most} such releases left, and {part.count} "
                f"{'is' if part.count == 1 else 'are'} asked for: release without the plan, or plan anew.",
                remaining=0.0,
                requested=asked.epsilon(found.budget().delta).upper,
            )
        left[chosen] -= part.count
        taken.append((chosen, part.count))
    return _summed(taken)


def _summed(taken: Iterable[tuple[int, int]]) -> Taken:
    counts: dict[int, int] = {}
    for description, times in taken:
        counts[description] = counts.get(description, 0) + times
    return list(counts.items())


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
        f"{plan.name}: {'cancelled' if plan.cancelled else f'{plan.left:,} releases reserved'}, "
        f"{sum(item.used for item in plan.items):,} used"
        + ("" if plan.partition is None else f", partition {plan.partition}")
        for plan in plans
    ]
