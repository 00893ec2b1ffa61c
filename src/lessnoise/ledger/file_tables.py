"""The tables of a ledger in an SQLite file, and how those of earlier versions become these."""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import socket
import sqlite3
import time
from typing import TYPE_CHECKING, Any

from lessnoise._version import __version__
from lessnoise.errors import LedgerError
from lessnoise.ledger import chain
from lessnoise.ledger.chain import SPEND, RecordRow
from lessnoise.ledger.tables import COPY, Tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lessnoise.guarantees import Guarantee

VERSION = 2
# As every ledger of a version has it, to the letter: a file with other tables, triggers or views is refused.
_DESCRIPTION = """
CREATE TABLE description (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
"""
_TOTAL = """
CREATE TABLE total (partition TEXT NOT NULL, description INTEGER NOT NULL REFERENCES description (id),
    count INTEGER NOT NULL, PRIMARY KEY (partition, description)) STRICT, WITHOUT ROWID;
"""
_BUDGET = """
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created REAL NOT NULL, lessnoise TEXT NOT NULL, adaptive INTEGER NOT NULL) STRICT;
"""
_RECORD = """
CREATE TABLE record (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, time REAL NOT NULL, who TEXT NOT NULL,
    partition TEXT NOT NULL, description INTEGER REFERENCES description (id), note TEXT NOT NULL, key TEXT NOT NULL,
    hash BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX record_of_key ON record (key) WHERE key <> '';
CREATE INDEX other_record ON record (id) WHERE kind <> 'spend';
"""
_SCHEMAS = {
    1: """
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created REAL NOT NULL, lessnoise TEXT NOT NULL) STRICT;
"""
    + _DESCRIPTION
    + """
CREATE TABLE spend (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, partition TEXT NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id), note TEXT NOT NULL) STRICT;
"""
    + _TOTAL,
    VERSION: _BUDGET + _DESCRIPTION + _RECORD + _TOTAL,
}
_STATISTICS = ("sqlite_stat1", "sqlite_stat4")  # which SQLite may add, and nothing here depends on


def create(connection: sqlite3.Connection, budget: Guarantee, adaptive: bool, now: float) -> None:
    """The tables of a new ledger."""
    _run(connection, _SCHEMAS[VERSION])
    values = (1, budget.epsilon, budget.delta, budget.neighbours.value, now, __version__, int(adaptive))
    connection.execute("INSERT INTO budget VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def check_form(connection: sqlite3.Connection, version: int, ledger: str) -> None:
    """Refuse other tables than those of a ledger; quick enough for every transaction."""
    if _schema(connection) != _expected_schema(version):
        raise LedgerError(f"{ledger} has other tables, triggers or views than a ledger has: {COPY}")


def migrate(connection: sqlite3.Connection, ledger: str) -> FileTables:
    """Version 1 to 2 within a transaction: records get a kind, a writer, a key and a hash. The rest stays as it is."""
    check_form(connection, 1, ledger)
    lost = "(SELECT seq FROM sqlite_sequence WHERE name = 'spend') <> (SELECT COUNT(*) FROM spend)"
    if connection.execute(f"SELECT {lost}").fetchone()[0]:
        raise LedgerError(f"{ledger} lacks records, their numbers do not run from 1 to the last: {COPY}")
    connection.execute("ALTER TABLE budget RENAME TO old_budget")
    _run(connection, _BUDGET + _RECORD)
    connection.execute("INSERT INTO budget SELECT *, 0 FROM old_budget")
    connection.execute("DROP TABLE old_budget")
    tables = FileTables(connection, ledger)
    previous = tables.genesis()
    digests = tables.digests()
    query = "SELECT id, time, partition, description, note FROM spend ORDER BY id"
    for number, moment, partition, description, note in connection.execute(query).fetchall():
        row = RecordRow(number, SPEND, moment, "", partition, description, note, "", b"")
        previous = chain.linked(previous, row, digests.get(description, b""))
        connection.execute(_INSERT, row._replace(hash=previous))
    connection.execute("DROP TABLE spend")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    check_form(connection, VERSION, ledger)
    tables.check_contents()
    return tables


_INSERT = "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class FileTables(Tables):
    """The tables of a ledger in a file, in one transaction."""

    def __init__(self, connection: sqlite3.Connection, ledger: str) -> None:
        super().__init__(ledger)
        self.connection = connection

    def ask(self, query: str, values: tuple[object, ...] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a query, all at once: a cursor that an error keeps alive would keep the file locked, too."""
        plain = query.format(record="record", total="total", description="description", budget="budget")
        with contextlib.closing(self.connection.execute(plain, values)) as cursor:
            return cursor.fetchall()

    def check_medium(self) -> None:
        """SQLite's own look at every page of the file."""
        if next(iter(self.connection.execute("PRAGMA integrity_check(1)")))[0] != "ok":
            raise LedgerError(f"{self.ledger} is damaged: {COPY}")

    def now(self) -> float:
        """The clock of this machine."""
        return time.time()

    def who(self) -> str:
        """The user and the machine, as they call themselves."""
        return writer()

    def written(self) -> int:
        """The number of records that were ever written."""
        rows = self.connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'record'").fetchall()
        if len(rows) > 1 or not all(isinstance(row[0], int) and row[0] > 0 for row in rows):
            raise self.odd("sqlite_sequence", f"{len(rows)} rows")
        return int(rows[0][0]) if rows else 0

    def insert_description(self, digest: bytes, json: str) -> int:
        """A new description; its number."""
        inserted = self.connection.execute("INSERT INTO description (digest, json) VALUES (?, ?)", (digest, json))
        assert inserted.lastrowid is not None
        return inserted.lastrowid

    def insert_records(self, rows: Sequence[RecordRow]) -> None:
        """New records, counted in the totals."""
        self.connection.executemany(
            "INSERT INTO total VALUES (?, ?, 1) ON CONFLICT (partition, description) DO UPDATE SET count = count + 1",
            [(row.partition, row.description) for row in rows if row.kind == SPEND],
        )
        self.connection.executemany(_INSERT, rows)


@functools.cache
def writer() -> str:
    """The user and the machine, as they call themselves: nobody vouches for it."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return f"{user}@{socket.gethostname()}".encode("ascii", "backslashreplace").decode()[:200]


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: ``executescript`` would commit first."""
    for statement in script.split(";"):
        connection.execute(statement)


def _schema(connection: sqlite3.Connection) -> set[tuple[object, ...]]:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {row for row in rows if row[:2] not in {("table", name) for name in _STATISTICS}}


@functools.cache
def _expected_schema(version: int) -> set[tuple[object, ...]]:
    """As SQLite itself would have it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMAS[version])
        return _schema(connection)
