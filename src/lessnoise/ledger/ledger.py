"""The ledger: one budget, many releases, many processes."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, TypeVar

from lessnoise import validation
from lessnoise._display import Plotted
from lessnoise.composition import as_composition
from lessnoise.errors import BudgetExceeded, InvalidInput, LedgerError
from lessnoise.guarantees import Bracket, Guarantee, Neighbours
from lessnoise.ledger import adaptivity, chain, reservations, total
from lessnoise.ledger.arguments import checked_text, partition_key, plan_name, stated_budget
from lessnoise.ledger.decision import decide
from lessnoise.ledger.descriptions import lookup_in, with_more
from lessnoise.ledger.opening import create_in, store_of
from lessnoise.ledger.record import Record, read_mark
from lessnoise.ledger.writing import another, once, receipt_again, receipt_of
from lessnoise.planning import ReleasePlan

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    from lessnoise.composition import Composition
    from lessnoise.ledger.chain import RecordRow
    from lessnoise.ledger.descriptions import Lookup
    from lessnoise.ledger.record import Receipt
    from lessnoise.ledger.reservations import Reservation, Use
    from lessnoise.ledger.store import Store
    from lessnoise.ledger.tables import Tables
    from lessnoise.mechanism import Mechanism

_T = TypeVar("_T")


class Ledger(Plotted):
    """A privacy budget in a file or on a PostgreSQL server. Open or create one with :meth:`open`.

    ``address`` says where it is, without a password; ``path`` is that of a file, None for a server. ``adaptive`` says
    whether the noise of a release may be chosen by earlier answers.

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

    def __init__(self, store: Store, budget: Guarantee, adaptive: bool) -> None:
        self.address, self.path = store.address, store.path
        self.budget, self.adaptive = budget, adaptive
        self._store = store
        self._held: str | None = None  # the plan that releases are taken from; None: they are paid for

    def __repr__(self) -> str:
        plan = "" if self._held is None else f", plan={self._held!r}"
        return f"Ledger({self.address!r}, {self.budget}{plan})"

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | str | None = None,
        adaptive: bool | None = None,
    ) -> Ledger:
        """Open the ledger at ``path``; with a budget, create it if there is none.

        Parameters
        ----------
        path
            The name of a file, or ``postgresql://host/database?ledger=NAME`` for a budget that a team shares.
        epsilon, delta, neighbours
            The budget of a new ledger. An existing one keeps its own, and what is stated here must agree with it.
        adaptive
            True for a new ledger whose releases may be chosen by earlier answers, noise included. It takes
            Gaussian noise only, or pure releases if delta is 0, since nothing is proved for others.

        What is something else, is empty or damaged, or was written by a newer version is refused and left as it is.
        """
        store = store_of(path)
        stated = stated_budget(epsilon, delta, neighbours, adaptive)
        if not store.exists():
            if epsilon is None or delta is None:
                raise InvalidInput(
                    f"ledger={store.address} does not exist: create it with lessnoise ledger create (in Python, by "
                    "passing epsilon= and delta=), or pass the path of another."
                )
            create_in(store, stated)
        budget, chosen = store.check()
        kept = {**budget.to_dict(), "adaptive": chosen}
        for name, value in stated.items():
            if kept[name] != value:
                raise InvalidInput(
                    f"{name}={value!r} differs from {kept[name]!r}, the budget of ledger={store.address}: leave it "
                    "out, or create another ledger."
                )
        return cls(store, budget, chosen)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        epsilon: float,
        delta: float,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        adaptive: bool = False,
    ) -> Ledger:
        """Create a ledger as :meth:`open` does; InvalidInput, and nothing changed, if there is one of that name."""
        store = store_of(path)
        if not create_in(store, stated_budget(epsilon, delta, neighbours, adaptive)):
            raise InvalidInput(f"ledger={store.address} exists already: choose another name.")
        return cls(store, *store.check())

    # Spending.

    def spend(
        self,
        release: Mechanism | Composition,
        *,
        partition: str | None = None,
        note: str = "",
        key: str | None = None,
    ) -> Receipt:
        """Record a release before it is made; BudgetExceeded, and nothing recorded, if it does not fit.

        Parameters
        ----------
        release
            What is released.
        partition
            Releases with different keys must concern disjoint sets of individuals, which the caller answers
            for: then only the worst partition counts, under *replace* the worst two, since an individual who is
            replaced may leave one and enter another. Without a key a release concerns everybody.
        note
            A remark to keep with the record.
        key
            A name for this one release, for a program that may be started again: a second spend with the same key
            costs nothing and returns the first receipt, with ``again=True``. The release is then made once, too.
        """
        asked, where, note = self._asked(release), partition_key(partition), checked_text("note", note)
        self._check_texts(partition=where, note=note)
        json = asked.to_json()

        def again(found: Tables, known: RecordRow) -> Receipt:
            same_place = known.partition == where or (self._held is not None and partition is None)
            if not (same_place and found.plan_of(known) == self._held):
                raise another(found, known)
            return receipt_again(found, known, chain.SPEND, json)

        def written(found: Tables, name: str, use: Use | None) -> Receipt:
            if use is None:
                return receipt_of(found.add(json, partition=where, note=note, key=name))
            row = found.add(json, partition=use.partition, note=note, key=name)
            found.add(use.taken.to_json(), kind=chain.USE, partition=use.partition, note=self._held or "")
            return receipt_of(row)

        return once(self._store, key, again, lambda found: self._settled(found, asked, partition), written)

    def _check_texts(self, **texts: str) -> None:
        for name, text in texts.items():
            self._store.check_text(name, text)

    def close(self, note: str = "") -> Receipt:
        """Take no more spends, for ever; to be done before a ledger goes on elsewhere, so that two never do."""
        reason = checked_text("note", note)
        self._check_texts(note=reason)

        def closed(found: Tables) -> Receipt:
            last = found.last()
            if last is not None and last.kind == chain.CLOSE:
                return receipt_of(last, again=True)
            return receipt_of(found.add(None, kind=chain.CLOSE, note=reason, key=""))

        return self._store.write(closed)

    def affords(self, release: Mechanism | Composition, *, partition: str | None = None) -> bool:
        """Whether a release would fit now; nothing is spent."""
        try:
            self.check(release, partition=partition)
        except BudgetExceeded:
            return False
        return True

    def check(self, release: Mechanism | Composition, *, partition: str | None = None) -> None:
        """BudgetExceeded if a release would not fit now; nothing is spent."""
        asked, _ = self._asked(release), partition_key(partition)
        self._store.read(lambda found: self._settled(found, asked, partition))

    def _asked(self, release: Mechanism | Composition) -> Composition:
        composition = as_composition(release)
        if composition.neighbours is not self.budget.neighbours:
            raise InvalidInput(
                f"neighbours={composition.neighbours.value!r} differs from {self.budget.neighbours.value!r} of "
                f"ledger={self.address}: state the sensitivity for the ledger's relation."
            )
        if self.adaptive:
            adaptivity.refuse_unproved(composition, self.budget, f"ledger={self.address}")
        return composition

    def _settled(self, found: Tables, asked: Composition, partition: str | None) -> Use | None:
        """Raise unless a release keeps the budget or, with a plan, takes the place of what was reserved: which."""
        self._check_open(found)
        if self._held is not None:
            return reservations.matched(found, self._held, partition, asked, self._lookup(found))
        decide(found, asked, partition_key(partition), self.budget, self._lookup(found))
        return None

    def _check_open(self, found: Tables) -> None:
        self._same(found.budget(), found.adaptive())
        found.check_open()

    # Plans.

    def reserve(
        self, plan: ReleasePlan | Composition, *, name: str, partition: str | None = None, key: str | None = None
    ) -> Receipt:
        """Hold a plan: its releases are promised their share, and nothing else can eat it.

        What was spent and all that is reserved must fit the budget together; else BudgetExceeded, and nothing changes.
        Make the releases with ``ledger=ledger.plan(name)``; :meth:`cancel` frees what is not used. ``partition`` and
        ``key`` are as in :meth:`spend`.

        >>> import tempfile, pathlib, numpy as np, lessnoise as ln
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = ln.Ledger.open(pathlib.Path(folder.name) / "city.ledger", epsilon=1, delta=1e-6)
        >>> plan = ln.plan_releases(ln.Request(1, 1e-6, 1.0, 3), times=12, mechanism="analytic-gaussian")
        >>> receipt = ledger.reserve(plan, name="monthly")
        >>> ledger.affords(plan.mechanism), ledger.plan("monthly").affords(plan.mechanism)
        (False, True)
        >>> january = plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
        >>> ledger.plans()[0].left
        11
        >>> folder.cleanup()
        """
        asked = self._asked(plan.composition if isinstance(plan, ReleasePlan) else plan)
        label, where, json = plan_name(name), partition_key(partition), asked.to_json()
        self._check_texts(name=label, partition=where)

        def again(found: Tables, known: RecordRow) -> Receipt:
            if (known.note, known.partition) != (label, where):
                raise another(found, known)
            return receipt_again(found, known, chain.RESERVE, json)

        def settled(found: Tables) -> None:
            self._check_open(found)
            reservations.check_new(found, label)
            decide(found, asked, where, self.budget, self._lookup(found), "plan")

        def written(found: Tables, token: str, _: None) -> Receipt:
            return receipt_of(found.add(json, kind=chain.RESERVE, partition=where, note=label, key=token))

        return once(self._store, key, again, settled, written)

    def plan(self, name: str) -> Ledger:
        """The ledger, with releases taken from a plan that it holds: each is checked to match, and costs no more."""
        label = plan_name(name)
        self._store.read(lambda found: reservations.find(found, label, self._lookup(found)))
        view = copy.copy(self)
        view._held = label
        return view

    def cancel(self, name: str, *, key: str | None = None) -> int:
        """Free what is not used of a plan; how many releases that were. What was used stays spent.

        ``key`` is as in :meth:`spend`: a second call with it changes nothing, and returns the same number.
        """
        label = plan_name(name)

        def again(found: Tables, known: RecordRow) -> int:
            if (known.kind, known.note) != (chain.CANCEL, label):
                raise another(found, known)
            return reservations.find(found, label, self._lookup(found)).unused

        def settled(found: Tables) -> Reservation:
            self._check_open(found)
            return reservations.cancellable(found, label, self._lookup(found))

        def written(found: Tables, token: str, plan: Reservation) -> int:
            where = plan.partition or total.EVERYWHERE
            found.add(None, kind=chain.CANCEL, partition=where, note=label, key=token)
            return plan.unused

        return once(self._store, key, again, settled, written)

    def plans(self) -> list[Reservation]:
        """Every plan that this ledger holds or held, by name."""
        return self._store.read(lambda found: reservations.reservations(found, self._lookup(found)))

    # Reading.

    def spent(self) -> Bracket:
        """Exact epsilon of everything at the ledger's delta, in the worst partition, the machine's share in it."""
        return self.epsilon(self.budget.delta)

    def epsilon(self, delta: float) -> Bracket:
        """Exact epsilon of everything at any delta, as in :meth:`spent`."""
        checked = 0.0 if validation.delta_or_zero(delta) == 0.0 else validation.delta(delta)
        return total.epsilon_spent(*self._so_far(checked))

    def spent_with(self, release: Mechanism | Composition, *, partition: str | None = None) -> Bracket:
        """What :meth:`spent` would be after one more release; nothing is spent, and it need not fit."""
        planned = (self._asked(release), partition_key(partition))
        return total.epsilon_spent(*self._so_far(self.budget.delta, planned))

    def spent_delta(self) -> Bracket:
        """Exact delta of everything at the ledger's epsilon, in the worst partition, the machine's share in it."""
        return total.delta_spent(*self._so_far(self.budget.epsilon))

    def remaining(self) -> float:
        """What the budget has left over the total and all that is reserved, as an epsilon at its delta, rounded down.

        Losses compose to less than their sum: a pure release of this epsilon fits, but for the width of the brackets,
        and a larger one may fit too.
        """
        committed = total.epsilon_spent(*self._so_far(self.budget.delta, reserved=True))
        return max(self.budget.epsilon - committed.upper, 0.0)

    def _so_far(
        self, parameter: float, planned: tuple[Composition, str] | None = None, *, reserved: bool = False
    ) -> tuple[list[Composition], float, float]:
        """Everything, the epsilon or delta that is asked about, and the distance of all noise from the ideal."""

        def found_so_far(found: Tables) -> tuple[list[Composition], float, float]:
            together, lookup = total.touched(self.budget.neighbours), self._lookup(found)
            totals, lookup = reservations.committed(found, lookup) if reserved else (found.totals(), lookup)
            if planned is not None:  # under a number that no description has
                totals.setdefault(planned[1], {})[0] = 1
                lookup = with_more({0: planned[0]}, lookup)
            return (
                self._worst(found, totals, together, lookup),
                parameter,
                total.machine_distance(totals, together, lookup),
            )

        return self._store.read(found_so_far)

    def compositions(self) -> list[Composition]:
        """Everything so far, as one composition for each partition that could be the worst; under replace, each two."""
        together = total.touched(self.budget.neighbours)
        return self._store.read(lambda found: self._worst(found, found.totals(), together, self._lookup(found)))

    def records(self) -> list[Record]:
        """Every spend, oldest first."""

        def every(found: Tables) -> list[Record]:
            lookup, rows = self._lookup(found), list(found.records())
            plans = {row.id - 1: row.note for row in rows if row.kind == chain.USE}
            return [
                Record(row.id, row.time, lookup(row.description), row.partition or None, row.note, row.who, row.key,
                       row.hash.hex(), plans.get(row.id))
                for row in rows
                if row.kind == chain.SPEND and row.description is not None
            ]  # fmt: skip

        return self._store.read(every)

    def count(self) -> int:
        """Number of spends."""
        return self._store.read(lambda found: found.count())

    def mark(self) -> str:
        """Number and hash of the last record, ``""`` if there is none: keep it elsewhere, and pass it to `verify`."""
        last = self._store.read(lambda found: found.last())
        return "" if last is None else receipt_of(last).mark

    def promise(self) -> str:
        """Under which condition the total holds, and by which theorem."""
        return adaptivity.promise(self.budget, self.adaptive)

    def verify(self, *marks: str) -> None:
        """Check every record, description, total, plan, and that the hashes fit together; else LedgerError.

        Each record has a hash of itself and the one before it, so an edited, removed or inserted record is found,
        and so is an edited budget if there are records. Whoever can write the ledger can compute all hashes anew:
        against that, pass ``marks`` that were kept elsewhere, from receipts or from :meth:`mark`.
        """
        wanted = [read_mark(mark) for mark in marks]
        self._same(*self._store.check())

        def verified(found: Tables) -> None:
            lookup = self._lookup(found)
            for description in found.description_ids():
                lookup(description)
            found.check_chain()
            reservations.reservations(found, lookup)
            hashes = {row.id: row.hash for row in found.records()} if wanted else {}
            for number, digest in wanted:
                if hashes.get(number) != digest:
                    raise LedgerError(
                        f"ledger={self.address} was changed, record {number} is not the one of which the mark was "
                        "given: restore it from a copy."
                    )

        self._store.read(verified)

    def _same(self, budget: Guarantee, adaptive: bool) -> None:
        if (budget, adaptive) != (self.budget, self.adaptive):
            raise LedgerError(f"ledger={self.address} was replaced by another one: open it again.")

    def read(self, action: Callable[[Tables], _T]) -> _T:
        """What an action finds in a consistent view of the ledger's tables."""
        return self._store.read(action)

    def is_kept_in(self, path: Path) -> bool:
        """Whether this is the path of the ledger's own file or journal, which nothing else may be written to."""
        return self._store.is_of(path)

    def _worst(self, found: Tables, totals: total.Totals, together: int, lookup: Lookup) -> list[Composition]:
        try:
            return total.worst_compositions(totals, together, lookup)
        except InvalidInput as error:  # each spend was composed before it was recorded, so this is none
            raise LedgerError(f"{found.ledger} cannot be composed ({error}): restore it from a copy.") from None

    def _lookup(self, found: Tables) -> Lookup:
        return lookup_in(found, self.budget.neighbours)
