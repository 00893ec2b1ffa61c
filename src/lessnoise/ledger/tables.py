"""What is in a ledger. Nothing in it is believed unseen: a row is such as lessnoise writes, or LedgerError.

The queries are written once for both stores: ``{record}`` stands for the records of this ledger, and so on.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from lessnoise import validation
from lessnoise.errors import InvalidInput, LedgerError
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.ledger import chain
from lessnoise.ledger.chain import CANCEL, CLOSE, DESCRIBED, KINDS, SPEND, USE, RecordRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lessnoise.ledger.total import Totals

_RECORD = "id, kind, time, who, partition, description, note, key, hash"
_END_OF_TIME = 253402214400.0  # the last day that a calendar can show
_LATEST = 50  # records whose links are looked at whenever a ledger is opened
COPY = "it was left as it is; restore it from a copy."


class PlanRows(NamedTuple):
    """Records about a plan that differ in nothing but number, time and writer: how many, from which to which."""

    kind: str
    name: str
    partition: str
    description: int | None
    times: int
    first: int
    last: int
    time: float


class Tables(ABC):
    """The tables of a ledger in one transaction."""

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger
        self.budget_row: tuple[Any, ...] | None = None  # looked at once in a transaction
        self._newest: RecordRow | None = None
        self._numbers: dict[str, int] = {}  # of descriptions that were read in this transaction
        self._others: int | None = None  # records that are no spends, once they were counted

    @abstractmethod
    def ask(self, query: str, values: tuple[object, ...] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a query, in which ``?`` are values and ``{record}``, ``{total}``... this ledger's tables."""

    @abstractmethod
    def check_medium(self) -> None:
        """Refuse a medium that is damaged, as far as it knows itself."""

    @abstractmethod
    def now(self) -> float:
        """Seconds since 1970, by the clock of whoever keeps the ledger."""

    @abstractmethod
    def who(self) -> str:
        """Who is writing."""

    @abstractmethod
    def written(self) -> int:
        """The number of records that were ever written."""

    @abstractmethod
    def insert_description(self, digest: bytes, json: str) -> int:
        """A new description; its number."""

    @abstractmethod
    def insert_records(self, rows: Sequence[RecordRow]) -> None:
        """New records, counted in the totals."""

    # Checks.

    def check_contents(self) -> None:
        """Refuse what is damaged or contradicts itself; what its descriptions say is not looked at."""
        self.check_medium()
        totals = self.totals()
        spends = "SELECT partition, description, COUNT(*) FROM {record} WHERE kind = 'spend'"
        if totals != self._counts(self.ask(f"{spends} GROUP BY partition, description")):
            raise self._contradiction()
        ends = self._row("SELECT MIN(id), MAX(id), COUNT(*) FROM {record}")
        if ends[2] and ends != (1, self.written(), self.written()):
            raise LedgerError(f"{self.ledger} lacks records, their numbers do not run from 1 to the last: {COPY}")
        described = self.digests()
        used = {description for counts in totals.values() for description in counts}
        used |= {rows.description for rows in self.plan_rows() if rows.description is not None}
        if not described.keys() >= used:
            raise LedgerError(f"{self.ledger} has records without a description: {COPY}")
        self.check_chain(self.written() - _LATEST)

    def check_chain(self, after: int = 0) -> None:
        """Refuse a record that was edited after it was written: the hashes do not fit together."""
        before = self.record(after) if after > 0 else None
        previous = self.genesis() if before is None else before.hash
        digests = self.digests()
        for row in self.records(after):
            digest = b"" if row.description is None else digests.get(row.description, b"")
            if row.hash != chain.linked(previous, row, digest):
                what = "the budget or record 1" if row.id == 1 else f"record {row.id} or one before it"
                raise LedgerError(f"{self.ledger} was changed, {what} is not as it was written: {COPY}")
            paid = before is not None and before.kind == SPEND and before.partition == row.partition
            if row.kind == USE and not paid:
                raise self.odd("record", f"id={row.id}, a use of a plan that follows no spend")
            previous, before = row.hash, row

    def check_open(self) -> None:
        """Refuse to decide about a ledger that was closed: it goes on elsewhere, or not at all."""
        last = self.last()
        if last is not None and last.kind == CLOSE:
            why = f" ({last.note})" if last.note else ""
            raise LedgerError(f"{self.ledger} was closed{why} and takes no more spends: pay from another ledger.")

    def odd(self, table: str, what: str) -> LedgerError:
        """To raise for a row that is not such as lessnoise writes."""
        short = " ".join(what.split())[:200]
        return LedgerError(f"{self.ledger} holds what no lessnoise writes, in table {table} ({short}): {COPY}")

    # Reading.

    def budget(self) -> Guarantee:
        """What may be spent."""
        epsilon, delta, neighbours, *_ = self._budget()
        try:
            return Guarantee(validation.epsilon(epsilon), validation.delta_or_zero(delta), Neighbours.of(neighbours))
        except InvalidInput as error:
            raise self.odd("budget", str(error).partition(":")[0]) from None

    def created(self) -> float:
        """When the ledger was created, which tells it from others of the same name."""
        created = self._budget()[3]
        if not _moment(created):
            raise self.odd("budget", f"created={created!r}")
        return created

    def adaptive(self) -> bool:
        """Whether the noise of a release may be chosen by earlier answers."""
        adaptive = self._budget()[4]
        if adaptive not in (0, 1):
            raise self.odd("budget", f"adaptive={adaptive!r}")
        return bool(adaptive)

    def _budget(self) -> tuple[Any, ...]:
        if self.budget_row is None:
            rows = list(self.ask("SELECT epsilon, delta, neighbours, created, adaptive FROM {budget} LIMIT 2"))
            if len(rows) != 1:
                raise self.odd("budget", f"{len(rows)} rows")
            self.budget_row = tuple(rows[0])
        return self.budget_row

    def genesis(self) -> bytes:
        """What the first record builds on."""
        return chain.genesis(self.budget(), self.adaptive(), self.created())

    def totals(self) -> Totals:
        """The counts that are kept up to date: as many as there are spends."""
        others = "SELECT '', 0, COUNT(*) FROM {record} WHERE kind <> 'spend'"  # under the number of no description
        rows = list(self.ask(f"SELECT partition, description, count FROM {{total}} UNION ALL {others}"))
        totals = self._counts(row for row in rows if row[1] != 0)
        uncounted = sum(row[2] for row in rows if row[1] == 0)
        if sum(sum(counts.values()) for counts in totals.values()) + uncounted != self.written():
            raise self._contradiction()
        self._others = uncounted
        return totals

    def _contradiction(self) -> LedgerError:
        return LedgerError(f"{self.ledger} contradicts itself, its totals are not those of its records: {COPY}")

    def _counts(self, rows: Iterable[tuple[Any, ...]]) -> Totals:
        result: Totals = {}
        for partition, description, count in rows:
            if not (isinstance(partition, str) and _positive(description) and _positive(count)):
                raise self.odd("total", f"description={description!r}, count={count!r}, partition={partition!r}")
            result.setdefault(partition, {})[description] = count
        return result

    def records(self, after: int = 0) -> Iterator[RecordRow]:
        """Every record with a larger number than ``after``, oldest first."""
        for row in self.ask(f"SELECT {_RECORD} FROM {{record}} WHERE id > ? ORDER BY id", (after,)):
            yield self._record(row)

    def record(self, number: int) -> RecordRow | None:
        """The record of this number."""
        found = self._row(f"SELECT {_RECORD} FROM {{record}} WHERE id = ?", (number,))
        return self._record(found) if found else None

    def plan_of(self, spend: RecordRow) -> str | None:
        """The name of the plan that a spend was promised in, if it was in one."""
        following = self.record(spend.id + 1)
        return following.note if following is not None and following.kind == USE else None

    def plan_rows(self) -> list[PlanRows]:
        """The records about plans, like ones together, in the order of their first numbers."""
        if self._others == 0:
            return []
        query = (
            "SELECT kind, note, partition, description, COUNT(*), MIN(id), MAX(id), MIN(time) FROM {record} "
            "WHERE kind <> 'spend' AND kind IN ('reserve', 'use', 'cancel') "
            "GROUP BY kind, note, partition, description ORDER BY MIN(id)"
        )
        found = [PlanRows(*row) for row in self.ask(query)]
        for rows in found:
            described = rows.description is None if rows.kind == CANCEL else _positive(rows.description)
            if not (described and rows.name and isinstance(rows.partition, str) and _moment(rows.time)):
                raise self.odd("record", f"id={rows.first!r}")
        return found

    def last(self) -> RecordRow | None:
        """The newest record."""
        if self._newest is None:
            found = self._row(f"SELECT {_RECORD} FROM {{record}} ORDER BY id DESC LIMIT 1")
            self._newest = self._record(found) if found else None
        return self._newest

    def of_key(self, key: str) -> RecordRow | None:
        """The record that was written with this key."""
        found = self._row(f"SELECT {_RECORD} FROM {{record}} WHERE key = ? AND key <> ''", (key,))
        return self._record(found) if found else None

    def _record(self, row: tuple[Any, ...]) -> RecordRow:
        number, kind, time, who, partition, description, note, key, digest = row
        texts = (kind, who, partition, note, key)
        if not (
            _positive(number)
            and _moment(time)
            and all(isinstance(text, str) for text in texts)
            and isinstance(digest, bytes)
            and kind in KINDS
            and (_positive(description) if kind in DESCRIBED else description is None)
        ):
            raise self.odd("record", f"id={number!r}")
        return RecordRow(*row)

    def count(self) -> int:
        """Number of spends."""
        return int(self._row("SELECT COUNT(*) FROM {record} WHERE kind = 'spend'")[0])

    def json_of(self, description: int) -> str:
        """A description, which is the one that was recorded: its digest is checked."""
        row = self._row("SELECT id, digest, json FROM {description} WHERE id = ?", (description,))
        number, json = self._described(*row)
        self._numbers[json] = number
        return json

    def description_ids(self) -> list[int]:
        """The numbers of all descriptions."""
        return sorted(self.digests())

    def digests(self) -> dict[int, bytes]:
        """The SHA-256 of every description, each checked."""
        found = {}
        for row in self.ask("SELECT id, digest, json FROM {description}"):
            number, json = self._described(*row)
            found[number] = digest_of(json)
        return found

    def _described(self, number: object = None, digest: object = None, json: object = None) -> tuple[int, str]:
        if not (_positive(number) and isinstance(json, str)):
            raise self.odd("description", f"id={number!r}")
        if digest != digest_of(json):
            raise LedgerError(f"{self.ledger} was changed, description {number} is not the one recorded: {COPY}")
        return number, json

    # Writing.

    def description_id(self, json: str) -> int:
        """The number of a description; a new one if it is new."""
        if json in self._numbers:
            return self._numbers[json]
        digest = digest_of(json)
        found = self._row("SELECT id, digest, json FROM {description} WHERE digest = ?", (digest,))
        if found:
            number, known = self._described(*found)
            if known != json:
                raise LedgerError(f"{self.ledger} is damaged, description {number} is found for another: {COPY}")
            return number
        return self.insert_description(digest, json)

    def add(
        self, json: str | None, *, kind: str = SPEND, partition: str = "", note: str = "", key: str = ""
    ) -> RecordRow:
        """Write one record at the end of the chain. If the clock was moved back, it has the time of the last one."""
        last, now = self.last(), self.now()
        if not _moment(now):
            raise LedgerError(f"{self.ledger} cannot be written at time={now!r}: set the clock; nothing was spent.")
        if (0 if last is None else last.id) != self.written():
            raise LedgerError(f"{self.ledger} lacks records, their numbers do not run from 1 to the last: {COPY}")
        number, previous, earlier = (1, self.genesis(), now) if last is None else (last.id + 1, last.hash, last.time)
        description = None if json is None else self.description_id(json)
        row = RecordRow(number, kind, max(now, earlier), self.who(), partition, description, note, key, b"")
        row = row._replace(hash=chain.linked(previous, row, b"" if json is None else digest_of(json)))
        self.insert_records([row])
        self._newest, self._others = row, None
        return row

    def _row(self, query: str, values: tuple[object, ...] = ()) -> tuple[Any, ...]:
        """The first row; an empty one if there is none."""
        return next((tuple(row) for row in self.ask(query, values)), ())


def digest_of(json: str) -> bytes:
    """The SHA-256 of a description."""
    return hashlib.sha256(json.encode()).digest()


def _positive(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and value > 0


def _moment(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and 0.0 <= value < _END_OF_TIME
