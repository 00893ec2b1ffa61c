"""What is in a ledger's file. Nothing in it is believed unseen: a row is such as lessnoise writes, or LedgerError."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from lessnoise import validation
from lessnoise._version import __version__
from lessnoise.errors import InvalidInput, LedgerError
from lessnoise.guarantees import Guarantee, Neighbours
from lessnoise.ledger import reservations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.ledger.total import Totals

# As every ledger of this version has it, to the letter: a file with other tables, triggers or views is refused.
_SCHEMA = """
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created REAL NOT NULL, lessnoise TEXT NOT NULL) STRICT;
CREATE TABLE description (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
CREATE TABLE spend (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, partition TEXT NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id), note TEXT NOT NULL) STRICT;
CREATE TABLE total (partition TEXT NOT NULL, description INTEGER NOT NULL REFERENCES description (id),
    count INTEGER NOT NULL, PRIMARY KEY (partition, description)) STRICT, WITHOUT ROWID;
"""
_STATISTICS = ("sqlite_stat1", "sqlite_stat4")  # which SQLite may add, and nothing here depends on
_END_OF_TIME = 253402214400.0  # the last day that a calendar can show
_COPY = "it was left as it is; restore it from a copy."


class RecordRow(NamedTuple):
    """One spend as stored."""

    id: int
    time: float
    partition: str
    description: int
    note: str


def create(connection: sqlite3.Connection, budget: Guarantee, now: float) -> None:
    """The tables of a new ledger."""
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO budget VALUES (1, ?, ?, ?, ?, ?)",
        (budget.epsilon, budget.delta, budget.neighbours.value, now, __version__),
    )


class Tables:
    """The tables of a ledger in one transaction."""

    def __init__(self, connection: sqlite3.Connection, ledger: str) -> None:
        self.connection, self.ledger = connection, ledger

    # Checks.

    def check_form(self) -> None:
        """Refuse other tables than those of a ledger; quick enough for every transaction."""
        if _schema(self.connection) not in (_expected_schema(), _expected_schema(reservations.SCHEMA)):
            raise LedgerError(f"{self.ledger} has other tables, triggers or views than a ledger has: {_COPY}")

    def check_contents(self) -> None:
        """Refuse a file that is damaged or contradicts itself; what its descriptions say is not looked at."""
        if self._one("PRAGMA integrity_check(1)") != "ok":
            raise LedgerError(f"{self.ledger} is damaged: {_COPY}")
        totals = self.totals()
        recounted = "SELECT partition, description, COUNT(*) FROM spend GROUP BY partition, description"
        if totals != self._counts(recounted):
            raise self._contradiction()
        ends = self._row("SELECT (SELECT MIN(id) FROM spend), (SELECT MAX(id) FROM spend)")
        if totals and ends != (1, self._receipts()):
            raise LedgerError(f"{self.ledger} lacks records, their numbers do not run from 1 to the last: {_COPY}")
        described = {
            self._described(*row)[0] for row in self.connection.execute("SELECT id, digest, json FROM description")
        }
        if not described >= {description for counts in totals.values() for description in counts}:
            raise LedgerError(f"{self.ledger} has records without a description: {_COPY}")
        reservations.check(self)

    def odd(self, table: str, what: str) -> LedgerError:
        """To raise for a row that is not such as lessnoise writes."""
        short = " ".join(what.split())[:200]
        return LedgerError(f"{self.ledger} holds what no lessnoise writes, in table {table} ({short}): {_COPY}")

    # Reading.

    def budget(self) -> Guarantee:
        """What may be spent."""
        epsilon, delta, neighbours, _ = self._budget()
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

    def _budget(self) -> tuple[Any, ...]:
        rows = self.connection.execute("SELECT epsilon, delta, neighbours, created FROM budget LIMIT 2").fetchall()
        if len(rows) != 1:
            raise self.odd("budget", f"{len(rows)} rows")
        return tuple(rows[0])

    def totals(self) -> Totals:
        """The counts that are kept up to date: as many as there are receipts."""
        totals = self._counts("SELECT partition, description, count FROM total")
        if sum(sum(counts.values()) for counts in totals.values()) != self._receipts():
            raise self._contradiction()
        return totals

    def _receipts(self) -> int:
        """The number of receipts that were ever given."""
        rows = self.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'spend'").fetchall()
        if len(rows) > 1 or not all(_positive(row[0]) for row in rows):
            raise self.odd("sqlite_sequence", f"{len(rows)} rows")
        return int(rows[0][0]) if rows else 0

    def _contradiction(self) -> LedgerError:
        return LedgerError(f"{self.ledger} contradicts itself, its totals are not those of its records: {_COPY}")

    def _counts(self, query: str) -> Totals:
        result: Totals = {}
        for partition, description, count in self.connection.execute(query):
            if not (isinstance(partition, str) and _positive(description) and _positive(count)):
                raise self.odd("total", f"description={description!r}, count={count!r}, partition={partition!r}")
            result.setdefault(partition, {})[description] = count
        return result

    def records(self) -> Iterator[RecordRow]:
        """Every spend, oldest first."""
        for row in self.connection.execute("SELECT id, time, partition, description, note FROM spend ORDER BY id"):
            number, time, partition, description, note = row
            if not (
                _positive(number)
                and _moment(time)
                and isinstance(partition, str)
                and _positive(description)
                and isinstance(note, str)
            ):
                raise self.odd("spend", f"id={number!r}")
            yield RecordRow(*row)

    def count(self) -> int:
        """Number of records."""
        return int(self._one("SELECT COUNT(*) FROM spend"))

    def json_of(self, description: int) -> str:
        """A description, which is the one that was recorded: its digest is checked."""
        return self._described(*self._row("SELECT id, digest, json FROM description WHERE id = ?", (description,)))[1]

    def description_ids(self) -> list[int]:
        """The numbers of all descriptions."""
        return [int(row[0]) for row in self.connection.execute("SELECT id FROM description ORDER BY id")]

    def _described(self, number: object = None, digest: object = None, json: object = None) -> tuple[int, str]:
        if not (_positive(number) and isinstance(json, str)):
            raise self.odd("description", f"id={number!r}")
        if digest != _digest(json):
            raise LedgerError(f"{self.ledger} was changed, description {number} is not the one recorded: {_COPY}")
        return number, json

    # Writing.

    def description_id(self, json: str) -> int:
        """The number of a description; a new one if it is new."""
        digest = _digest(json)
        found = self._row("SELECT id, digest, json FROM description WHERE digest = ?", (digest,))
        if found:
            number, known = self._described(*found)
            if known != json:
                raise LedgerError(f"{self.ledger} is damaged, description {number} is found for another: {_COPY}")
            return number
        inserted = self.connection.execute("INSERT INTO description (digest, json) VALUES (?, ?)", (digest, json))
        assert inserted.lastrowid is not None
        return inserted.lastrowid

    def add(self, time: float, partition: str, description: int, note: str) -> int:
        """Record one spend, and count it."""
        self.connection.execute(
            "INSERT INTO total VALUES (?, ?, 1) ON CONFLICT (partition, description) DO UPDATE SET count = count + 1",
            (partition, description),
        )
        cursor = self.connection.execute(
            "INSERT INTO spend (time, partition, description, note) VALUES (?, ?, ?, ?)",
            (time, partition, description, note),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _row(self, query: str, values: tuple[object, ...] = ()) -> tuple[Any, ...]:
        """The first row; an empty one if there is none."""
        found = self.connection.execute(query, values).fetchone()
        return () if found is None else tuple(found)

    def _one(self, query: str) -> Any:  # noqa: ANN401
        return self._row(query)[0]


def _digest(json: str) -> bytes:
    return hashlib.sha256(json.encode()).digest()


def _positive(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and value > 0


def _moment(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and 0.0 <= value < _END_OF_TIME


def _schema(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row for row in rows if row[:2] not in {("table", name) for name in _STATISTICS}}


@functools.cache
def _expected_schema(more: str = "") -> set[tuple[object, ...]]:
    """As SQLite itself would have it; ``more``: the tables of plans, which are there once there was one."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statement in (_SCHEMA + more).split(";"):
            connection.execute(statement)
        return _schema(connection)
