"""The ledger: one budget, many releases, many processes."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.composition.description import Composition, as_composition
from lessnoise.errors import BudgetExceeded, InvalidInput, LedgerError
from lessnoise.guarantees import Bracket, Guarantee, Neighbours
from lessnoise.ledger import store, total
from lessnoise.rounding import down, up
from lessnoise.shown import Plotted

if TYPE_CHECKING:
    import sqlite3

    from lessnoise.mechanism.mechanism import Mechanism


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

    def __init__(self, path: Path, budget: Guarantee) -> None:
        self.path = path
        self.budget = budget
        self._store = store.Store(path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {self.budget})"

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
        damaged, or was written by a newer version is refused and left as it is.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise InvalidInput(f"path={path!r} is not a path: pass the name of the ledger's file.")
        place = Path(path)
        file = store.Store(place)
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
        file.check()
        with file.reading() as connection:
            budget = file.budget(connection)
        kept = budget.to_dict()
        for name, value in stated.items():
            if kept[name] != value:
                raise InvalidInput(
                    f"{name}={value!r} differs from {kept[name]!r}, the budget of ledger={place}: leave it out, or "
                    "create another ledger."
                )
        return cls(place, budget)

    # Spending.

    def spend(self, release: Mechanism | Composition, *, partition: str | None = None, note: str = "") -> Receipt:
        """Record a release before it is made; BudgetExceeded, and nothing recorded, if it does not fit.

        Releases with different ``partition`` keys must concern disjoint sets of individuals, which the caller answers
        for: then only the worst partition counts. Without a key a release concerns everybody.
        """
        composition = as_composition(release)
        if composition.neighbours is not self.budget.neighbours:
            raise InvalidInput(
                f"neighbours={composition.neighbours.value!r} differs from {self.budget.neighbours.value!r} of "
                f"ledger={self.path}: state the sensitivity for the ledger's relation."
            )
        key, note = _partition(partition), _text("note", note)
        json = composition.to_json()
        with self._store.reading() as connection:  # the same decision without the lock: what it computes is kept
            self._decide(connection, composition, key)
        with self._store.writing() as connection:
            self._decide(connection, composition, key)
            now = time.time()
            number = store.add(connection, now, key, store.description_id(connection, json), note)
        return Receipt(number, now)

    def affords(self, release: Mechanism | Composition, *, partition: str | None = None) -> bool:
        """Whether a release would fit now; nothing is spent."""
        try:
            with self._store.reading() as connection:
                self._decide(connection, as_composition(release), _partition(partition))
        except BudgetExceeded:
            return False
        return True

    def _decide(self, connection: sqlite3.Connection, asked: Composition, partition: str) -> None:
        """Raise unless everything with the new release keeps the budget."""
        if self._store.budget(connection) != self.budget:
            raise LedgerError(f"ledger={self.path} was replaced by another one: open it again.")
        totals = store.totals(connection)
        if partition != store.EVERYWHERE:  # only this one can become the worst
            names = (store.EVERYWHERE, partition)
            totals = {name: counts for name, counts in totals.items() if name in names}
        before = self._candidates(connection, totals)
        after = [Composition((*composition.parts, *asked.parts)) for composition in before] or [asked]
        if all(total.fits(composition, self.budget) for composition in after):
            return
        delta = self.budget.delta
        spent = total.epsilon_spent(before, delta).upper
        remaining = max(self.budget.epsilon - spent, 0.0)
        requested = max(total.epsilon_spent(after, delta).upper - spent, 0.0)
        raise BudgetExceeded(
            f"the release would add epsilon={up(requested, 4)} at delta={up(delta)}, but {down(remaining, 4)} is left "
            f"of {self.budget} in ledger={self.path}: release less, with more noise, or from another budget.",
            remaining=remaining,
            requested=requested,
        )

    # Reading.

    def spent(self) -> Bracket:
        """Exact epsilon of everything so far at the ledger's delta, in the worst partition."""
        return total.epsilon_spent(self.compositions(), self.budget.delta)

    def spent_delta(self) -> Bracket:
        """Exact delta of everything so far at the ledger's epsilon, in the worst partition."""
        return total.delta_spent(self.compositions(), self.budget.epsilon)

    def remaining(self) -> float:
        """What the budget has left over the total so far, as an epsilon at the ledger's delta, rounded down.

        Losses compose to less than their sum: a pure release of this epsilon fits, but for the width of the brackets,
        and a larger one may fit too.
        """
        return max(self.budget.epsilon - self.spent().upper, 0.0)

    def compositions(self) -> list[Composition]:
        """Everything so far, as one composition for each partition that could be the worst."""
        with self._store.reading() as connection:
            return self._candidates(connection, store.totals(connection))

    def records(self) -> list[Record]:
        """Every spend, oldest first."""
        with self._store.reading() as connection:
            lookup = functools.lru_cache(maxsize=None)(functools.partial(self._lookup, connection))
            return [
                Record(row.id, row.time, lookup(row.description), row.partition or None, row.note)
                for row in store.rows(connection)
            ]

    def count(self) -> int:
        """Number of records."""
        with self._store.reading() as connection:
            return int(connection.execute("SELECT COUNT(*) FROM spend").fetchone()[0])

    def verify(self) -> None:
        """Check the file and that the totals it keeps are those of its records; LedgerError if not."""
        self._store.check()

    def _candidates(self, connection: sqlite3.Connection, totals: store.Totals) -> list[Composition]:
        lookup = functools.partial(self._lookup, connection)
        return [total.composition_of(counts, lookup) for counts in total.worst_candidates(totals)]

    def _lookup(self, connection: sqlite3.Connection, description: int) -> Composition:
        return _parsed(store.json_of(connection, description))


@functools.lru_cache(maxsize=1024)
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
        return store.EVERYWHERE
    if value == "":
        raise InvalidInput("partition='' names nobody: pass a key such as 'north', or None for everybody.")
    return _text("partition", value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={value!r} is not text: pass a str.")
    return value
