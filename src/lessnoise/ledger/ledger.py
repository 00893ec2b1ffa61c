"""The ledger: one budget, many releases, many processes."""

from __future__ import annotations

import copy
import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise._display import Plotted
from lessnoise.composition import Composition, as_composition
from lessnoise.errors import BudgetExceeded, InvalidInput, LedgerError
from lessnoise.guarantees import Bracket, Guarantee, Neighbours
from lessnoise.ledger import reservations, total
from lessnoise.ledger.database import Store
from lessnoise.planning import ReleasePlan
from lessnoise.text import down, up

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.ledger.reservations import Reservation
    from lessnoise.ledger.tables import Tables
    from lessnoise.mechanism import Mechanism

_MOST_TEXT = 100_000


@dataclass(frozen=True)
class Receipt:
    """Proof that a release was paid for: the number of its record and when it was written."""

    id: int
    time: float


@dataclass(frozen=True)
class Record:
    """One spend: when, on what, for which partition of the individuals (None: all of them)."""

    id: int
    time: float
    composition: Composition
    partition: str | None
    note: str


class Ledger(Plotted):
    """A privacy budget in a file. Open or create one with :meth:`open`.

    >>> import tempfile, pathlib, numpy as np, lessnoise as ln
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = ln.Ledger.open(pathlib.Path(folder.name) / "city.ledger", epsilon=1, delta=1e-6)
    >>> daily = ln.analytic_gaussian(epsilon=0.5, delta=1e-7, sensitivity=1, shape=3)
    >>> release = daily.release(np.zeros(3), ledger=ledger)  # recorded before the noise is drawn
    >>> ledger.spent().upper < 0.5  # epsilon at the ledger's delta of 1e-6
    True
    >>> for _ in range(5):
    ...     ledger.spend(daily)
    Traceback (most recent call last):
    lessnoise.errors.BudgetExceeded: ...
    >>> len(ledger.records())  # six times 0.5 would be 3; composed exactly, four fit into 1
    4
    >>> folder.cleanup()
    """

    def __init__(self, file: Store, budget: Guarantee) -> None:
        self.path = file.path
        self.budget = budget
        self._store = file
        self._held: str | None = None  # the plan that releases are taken from; None: they are paid for

    def __repr__(self) -> str:
        plan = "" if self._held is None else f", plan={self._held!r}"
        return f"Ledger({str(self.path)!r}, {self.budget}{plan})"

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | str | None = None,
    ) -> Ledger:
        """Open the ledger at ``path``; with a budget, create it if there is none.

        An existing ledger keeps its budget: what is stated here must agree with it. A file that is something else, is
        empty or damaged, or was written by a newer version is refused and left as it is.
        """
        if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
            raise InvalidInput(f"path={path!r} is not a path: pass the name of the ledger's file.")
        place = Path(path)
        file = Store(place)
        stated = _stated(epsilon, delta, neighbours)
        if not file.exists():
            if epsilon is None or delta is None:
                raise InvalidInput(
                    f"ledger={place} does not exist: create it with lessnoise ledger create (in Python, by passing "
                    "epsilon= and delta=), or pass the path of another."
                )
            if not place.parent.is_dir():
                raise InvalidInput(f"ledger={place} is in a folder that does not exist: create {place.parent} first.")
            relation = stated.get("neighbours", Neighbours.ADD_REMOVE.value)
            file.create(Guarantee(epsilon, delta, Neighbours.of(str(relation))), time.time())
        budget = file.check()
        kept = budget.to_dict()
        for name, value in stated.items():
            if kept[name] != value:
                raise InvalidInput(
                    f"{name}={value!r} differs from {kept[name]!r}, the budget of ledger={place}: leave it out, or "
                    "create another ledger."
                )
        return cls(file, budget)

    # Spending.

    def spend(self, release: Mechanism | Composition, *, partition: str | None = None, note: str = "") -> Receipt:
        """Record a release before it is made; BudgetExceeded, and nothing recorded, if it does not fit.

        Releases with different ``partition`` keys must concern disjoint sets of individuals, which the caller answers
        for: then only the worst partition counts, under *replace* the worst two, since an individual who is replaced
        may leave one and enter another. Without a key a release concerns everybody.
        """
        asked, key, note = self._asked(release), _partition(partition), _text("note", note)
        if self._held is not None:
            return self._use(self._held, asked, partition, note)
        json = asked.to_json()
        with self._store.reading() as found:  # the same decision without the lock: what it computes is kept
            self._decide(found, asked, key)
        with self._store.writing() as found:
            self._decide(found, asked, key)
            now = time.time()
            number = found.add(now, key, found.description_id(json), note)
        return Receipt(number, now)

    def affords(self, release: Mechanism | Composition, *, partition: str | None = None) -> bool:
        """Whether a release would fit now; nothing is spent."""
        try:
            self.check(release, partition=partition)
        except BudgetExceeded:
            return False
        return True

    def check(self, release: Mechanism | Composition, *, partition: str | None = None) -> None:
        """BudgetExceeded if a release would not fit now; nothing is spent."""
        asked, key = self._asked(release), _partition(partition)
        with self._store.reading() as found:
            if self._held is None:
                self._decide(found, asked, key)
            else:
                reservations.matched(found, self._held, partition, asked, self._lookup(found))

    def _asked(self, release: Mechanism | Composition) -> Composition:
        composition = as_composition(release)
        if composition.neighbours is not self.budget.neighbours:
            raise InvalidInput(
                f"neighbours={composition.neighbours.value!r} differs from {self.budget.neighbours.value!r} of "
                f"ledger={self.path}: state the sensitivity for the ledger's relation."
            )
        return composition

    def _decide(self, found: Tables, asked: Composition, partition: str) -> None:
        """Raise unless everything with the new release keeps the budget, what is reserved included."""
        self._check_same(found)
        relation, lookup = self.budget.neighbours, self._lookup(found)
        totals = total.focused(reservations.committed(found), partition, relation)
        # If it has a partition, that one is in all of them.
        together = total.touched(relation) if partition == total.EVERYWHERE else 1
        before = total.worst_compositions(totals, together, lookup)
        after = [Composition((*composition.parts, *asked.parts)) for composition in before] or [asked]
        distance = total.machine_distance(totals, together, lookup) + asked.machine_distance
        if all(total.fits(composition, self.budget, distance) for composition in after):
            return
        delta = self.budget.delta
        spent = total.epsilon_spent(before, delta, distance - asked.machine_distance).upper
        remaining = max(self.budget.epsilon - spent, 0.0)
        requested = max(total.epsilon_spent(after, delta, distance).upper - spent, 0.0)
        raise BudgetExceeded(
            f"the release would add epsilon={up(requested, 4)} at delta={up(delta)}, but {down(remaining, 4)} is left "
            f"of {self.budget} in ledger={self.path}: release less, with more noise, or from another budget.",
            remaining=remaining,
            requested=requested,
        )

    def _check_same(self, found: Tables) -> None:
        if found.budget() != self.budget:
            raise LedgerError(f"ledger={self.path} was replaced by another one: open it again.")

    # Plans.

    def reserve(self, plan: ReleasePlan | Composition, *, name: str, partition: str | None = None) -> None:
        """Hold a plan: its releases are promised their share, and nothing else can eat it.

        What was spent and all that is reserved must fit the budget together; else BudgetExceeded, and nothing changes.
        Make the releases with ``ledger=ledger.plan(name)``; :meth:`cancel` frees what is not used.

        >>> import tempfile, pathlib, numpy as np, lessnoise as ln
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.open(pathlib.Path(folder.name) / "city.ledger", epsilon=1, delta=1e-6)
        >>> plan = ln.plan_releases(ln.Request(1, 1e-6, 1.0, 3), times=12)
        >>> ledger.reserve(plan, name="monthly")
        >>> ledger.affords(plan.mechanism), ledger.plan("monthly").affords(plan.mechanism)
        (False, True)
        >>> january = plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
        >>> ledger.plans()[0].left
        11
        >>> folder.cleanup()
        """
        asked = self._asked(plan.composition if isinstance(plan, ReleasePlan) else plan)
        name, key = _name(name), _partition(partition)
        with self._store.reading() as found:  # as in spend
            self._decide(found, asked, key)
        with self._store.writing() as found:
            self._decide(found, asked, key)
            reservations.hold(found, name, key, asked)

    def plan(self, name: str) -> Ledger:
        """The ledger, with releases taken from a plan that it holds: each is checked to match, and costs no more."""
        with self._store.reading() as found:
            reservations.partition_of(found, _name(name))
        view = copy.copy(self)
        view._held = name
        return view

    def cancel(self, name: str) -> int:
        """Free what is not used of a plan; how many releases that were. What was used stays spent."""
        with self._store.writing() as found:
            self._check_same(found)
            return reservations.cancel(found, _name(name))

    def plans(self) -> list[Reservation]:
        """Every plan that this ledger holds or held, by name."""
        with self._store.reading() as found:
            return reservations.reservations(found, self._lookup(found))

    def _use(self, name: str, asked: Composition, partition: str | None, note: str) -> Receipt:
        """Record a release of a plan. It takes the place of what was reserved, so that it fits for certain."""
        with self._store.writing() as found:
            self._check_same(found)
            taken = reservations.matched(found, name, partition, asked, self._lookup(found))
            now, key = time.time(), reservations.partition_of(found, name)
            number = found.add(now, key, found.description_id(asked.to_json()), note)
            reservations.record_use(found, name, taken, number)
        return Receipt(number, now)

    # Reading.

    def spent(self) -> Bracket:
        """Exact epsilon of everything at the ledger's delta, in the worst partition, the machine's share in it."""
        return total.epsilon_spent(*self._so_far(self.budget.delta))

    def spent_delta(self) -> Bracket:
        """Exact delta of everything at the ledger's epsilon, in the worst partition, the machine's share in it."""
        return total.delta_spent(*self._so_far(self.budget.epsilon))

    def remaining(self) -> float:
        """What the budget has left over the total so far and all that is reserved, as an epsilon, rounded down.

        Losses compose to less than their sum: a pure release of this epsilon fits, but for the width of the brackets,
        and a larger one may fit too.
        """
        committed = total.epsilon_spent(*self._so_far(self.budget.delta, reservations.committed))
        return max(self.budget.epsilon - committed.upper, 0.0)

    def _so_far(
        self, parameter: float, read: Callable[[Tables], total.Totals] = lambda found: found.totals()
    ) -> tuple[list[Composition], float, float]:
        """Everything, the epsilon or delta that is asked about, and the distance of all noise from the ideal."""
        with self._store.reading() as found:
            totals, together = read(found), total.touched(self.budget.neighbours)
            distance = total.machine_distance(totals, together, self._lookup(found))
            return self._worst(found, totals, together), parameter, distance

    def compositions(self) -> list[Composition]:
        """Everything so far, as one composition for each partition that could be the worst; under replace, each two."""
        with self._store.reading() as found:
            return self._worst(found, found.totals(), total.touched(self.budget.neighbours))

    def records(self) -> list[Record]:
        """Every spend, oldest first."""
        with self._store.reading() as found:
            lookup = self._lookup(found)
            return [
                Record(row.id, row.time, lookup(row.description), row.partition or None, row.note)
                for row in found.records()
            ]

    def count(self) -> int:
        """Number of records."""
        with self._store.reading() as found:
            return found.count()

    def verify(self) -> None:
        """Check the file, every record and description, and that the totals are those of the records; else LedgerError.

        What it cannot see is a forgery that is consistent: a budget, a time or a note that was edited.
        """
        if self._store.check() != self.budget:
            raise LedgerError(f"ledger={self.path} was replaced by another one: open it again.")
        with self._store.reading() as found:
            lookup = self._lookup(found)
            for description in found.description_ids():
                lookup(description)
        self.records()

    def is_kept_in(self, path: Path) -> bool:
        """Whether this is the path of the ledger's own file or journal, which nothing else may be written to."""
        return self._store.is_of(path)

    def _worst(self, found: Tables, totals: total.Totals, together: int) -> list[Composition]:
        try:
            return total.worst_compositions(totals, together, self._lookup(found))
        except InvalidInput as error:  # each spend was composed before it was recorded, so this is none
            raise LedgerError(f"{found.ledger} cannot be composed ({error}): restore it from a copy.") from None

    def _lookup(self, found: Tables) -> Callable[[int], Composition]:
        """Descriptions by number, each read once and checked."""

        @functools.cache
        def lookup(description: int) -> Composition:
            json = found.json_of(description)
            try:
                composition = _parsed(json)
            except Exception as error:  # whatever is wrong with it: it is not what was recorded
                raise found.odd("description", f"id={description}, {error}") from None
            if composition.neighbours is not self.budget.neighbours:
                raise found.odd("description", f"id={description}, neighbours={composition.neighbours.value!r}")
            return composition

        return lookup


@functools.lru_cache(maxsize=4096)
def _parsed(json: str) -> Composition:
    return Composition.from_json(json)


def _stated(epsilon: float | None, delta: float | None, neighbours: Neighbours | str | None) -> dict[str, object]:
    """What the caller says of the budget, checked."""
    stated: dict[str, object] = {}
    if epsilon is not None:
        stated["epsilon"] = validation.epsilon(epsilon)
    if delta is not None:
        stated["delta"] = 0.0 if validation.delta_or_zero(delta) == 0.0 else validation.delta(delta)
    if neighbours is not None:
        stated["neighbours"] = Neighbours.of(neighbours).value
    return stated


def _partition(value: str | None) -> str:
    if value is None:
        return total.EVERYWHERE
    if value == "":
        raise InvalidInput("partition='' names nobody: pass a key such as 'north', or None for everybody.")
    return _text("partition", value)


def _name(value: object) -> str:
    if value == "":
        raise InvalidInput("name='' names no plan: pass one such as 'monthly'.")
    return _text("name", value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={value!r} is not text: pass a str.")
    if len(value) > _MOST_TEXT:
        raise InvalidInput(f"{name}={value[:20]!r}... has {len(value)} letters: pass at most {_MOST_TEXT}.")
    if not validation.is_unicode(value):
        raise InvalidInput(f"{name}={value!r} has letters that cannot be stored: pass text without them.")
    return value
