"""The ledger's file: SQLite with a rollback journal, so that it is one file whenever nobody is writing.

Every change is one transaction begun with BEGIN IMMEDIATE, which lets one process at a time decide and write, and
synced to disk before it counts (synchronous=EXTRA). What a killed process leaves behind is rolled back by the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

from lessnoise._version import __version__
from lessnoise.errors import LedgerError
from lessnoise.guarantees import Guarantee, Neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

APPLICATION_ID = 0x4C4E4C47  # "LNLG"
VERSION = 1
_WAIT_SECONDS = 120.0
_HEADER = b"SQLite format 3\x00"
_SCHEMA = """
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created REAL NOT NULL, lessnoise TEXT NOT NULL) STRICT;
CREATE TABLE description (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
CREATE TABLE spend (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, partition TEXT NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id), note TEXT NOT NULL) STRICT;
CREATE TABLE total (partition TEXT NOT NULL, description INTEGER NOT NULL REFERENCES description (id),
    count INTEGER NOT NULL, PRIMARY KEY (partition, description)) STRICT, WITHOUT ROWID;
"""
EVERYWHERE = ""  # the partition of what concerns everybody

# How often each description was spent, in each partition.
Totals = dict[str, dict[int, int]]


class Row(NamedTuple):
    """One spend as stored."""

    id: int
    time: float
    partition: str
    description: int
    note: str


class Store:
    """The file, opened anew for each use: safe across threads, forks and processes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether there is a ledger; an empty file is one that was never finished."""
        try:
            with self.path.open("rb") as file:
                start = file.read(len(_HEADER))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LedgerError(f"ledger={self.path} cannot be read ({error.strerror}): check its permissions.") from None
        if start not in (b"", _HEADER):
            raise LedgerError(f"ledger={self.path} is not a ledger: it was left as it is; pass another path.")
        return start != b""

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A consistent view."""
        with self._connection("BEGIN") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process can come between; what it wrote counts once this returns."""
        with self._connection("BEGIN IMMEDIATE", create) as connection:
            yield connection

    @contextlib.contextmanager
    def _connection(self, begin: str, create: bool = False) -> Iterator[sqlite3.Connection]:
        address = f"{self.path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"  # never a new file by accident
        try:
            connection = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise self._failure(error) from None
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(begin)
            try:
                yield connection
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failure(error) from None
        finally:
            connection.close()

    def _failure(self, error: sqlite3.Error) -> LedgerError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        reasons = {
            sqlite3.SQLITE_FULL: "has no room left on its disk: free some; nothing was spent or released.",
            sqlite3.SQLITE_BUSY: "is kept busy by another process: try again; nothing was spent or released.",
            sqlite3.SQLITE_READONLY: "cannot be written: check its permissions and those of its folder.",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that it exists, and its permissions.",
            sqlite3.SQLITE_NOTADB: "is not a ledger: it was left as it is; pass another path.",
            sqlite3.SQLITE_CORRUPT: "is damaged: it was left as it is; restore it from a copy.",
        }
        reason = reasons.get(code, f"failed ({error}): nothing was spent or released.")
        return LedgerError(f"ledger={self.path} {reason}")

    # What is in it.

    def create(self, budget: Guarantee, now: float) -> None:
        """Write an empty ledger, unless another process has just done so."""
        with self.writing(create=True) as connection:
            if connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
                return
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO budget VALUES (1, ?, ?, ?, ?, ?)",
                (budget.epsilon, budget.delta, budget.neighbours.value, now, __version__),
            )

    def check(self) -> None:
        """Refuse what is not a whole ledger of this version; change nothing."""
        with self.reading() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if application != APPLICATION_ID:
                raise LedgerError(f"ledger={self.path} is not a ledger: it was left as it is; pass another path.")
            if version != VERSION:
                raise LedgerError(
                    f"ledger={self.path} has version {version}, and this lessnoise knows {VERSION}: "
                    "it was left as it is; use a newer lessnoise."
                )
            if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                raise LedgerError(f"ledger={self.path} is damaged: it was left as it is; restore it from a copy.")
            if totals(connection) != recounted(connection):
                raise LedgerError(
                    f"ledger={self.path} contradicts itself, its totals are not those of its records: it was left "
                    "as it is; restore it from a copy."
                )

    def budget(self, connection: sqlite3.Connection) -> Guarantee:
        """What may be spent."""
        epsilon, delta, neighbours = connection.execute("SELECT epsilon, delta, neighbours FROM budget").fetchone()
        return Guarantee(epsilon, delta, Neighbours.of(neighbours))


def totals(connection: sqlite3.Connection) -> Totals:
    """The counts that are kept up to date."""
    return _counts(connection, "SELECT partition, description, count FROM total")


def recounted(connection: sqlite3.Connection) -> Totals:
    """The same from the records themselves."""
    return _counts(connection, "SELECT partition, description, COUNT(*) FROM spend GROUP BY partition, description")


def _counts(connection: sqlite3.Connection, query: str) -> Totals:
    result: Totals = {}
    for partition, description, count in connection.execute(query):
        result.setdefault(partition, {})[description] = count
    return result


def description_id(connection: sqlite3.Connection, json: str) -> int:
    """The number of a description; a new one if it is new."""
    digest = hashlib.sha256(json.encode()).digest()
    found = connection.execute("SELECT id FROM description WHERE digest = ?", (digest,)).fetchone()
    if found is not None:
        return int(found[0])
    inserted = connection.execute("INSERT INTO description (digest, json) VALUES (?, ?)", (digest, json))
    assert inserted.lastrowid is not None
    return inserted.lastrowid


def add(connection: sqlite3.Connection, time: float, partition: str, description: int, note: str) -> int:
    """Record one spend, and count it."""
    connection.execute(
        "INSERT INTO total VALUES (?, ?, 1) ON CONFLICT (partition, description) DO UPDATE SET count = count + 1",
        (partition, description),
    )
    cursor = connection.execute(
        "INSERT INTO spend (time, partition, description, note) VALUES (?, ?, ?, ?)",
        (time, partition, description, note),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def rows(connection: sqlite3.Connection) -> Iterator[Row]:
    """Every spend, oldest first."""
    for row in connection.execute("SELECT id, time, partition, description, note FROM spend ORDER BY id"):
        yield Row(*row)


def json_of(connection: sqlite3.Connection, description: int) -> str:
    """A description as stored."""
    return str(connection.execute("SELECT json FROM description WHERE id = ?", (description,)).fetchone()[0])
