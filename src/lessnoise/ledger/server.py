"""A ledger on a PostgreSQL server: one budget for many machines.

Every spend is one SERIALIZABLE transaction that begins by locking the ledger's row, so that one at a time decides and
writes. What fails for a passing reason is done again from its beginning. If the connection is lost after COMMIT was
sent, nobody knows whether it counts: the same transaction is then tried again, and finds its own record by its key, or
writes it. It waits for the lock meanwhile, so the lost one has ended by then, one way or the other.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from lessnoise.errors import InvalidInput, LedgerError, SpendUnknown
from lessnoise.ledger import server_tables
from lessnoise.ledger.address import ServerAddress, driver, parse_address
from lessnoise.ledger.server_tables import MIGRATIONS, ServerTables
from lessnoise.ledger.silence import limit_silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger.server_tables import Connection

_T = TypeVar("_T")
_PATIENCE = 60.0  # seconds in which a server may come back
_OLDEST = 120000  # of the server: PostgreSQL 12, which prints doubles such that they are read back the same
# Whatever search path, clock or durability the server has by default. A client that is stuck holds the lock for 30 s.
_SETTINGS = """
SELECT set_config('search_path', 'pg_catalog', false), set_config('lock_timeout', '5s', false),
    set_config('idle_in_transaction_session_timeout', '30s', false), set_config('statement_timeout', '0', false),
    set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
        ELSE current_setting('synchronous_commit') END, false),
    current_setting('fsync'), current_setting('server_version_num')::int
"""
_SERIALIZABLE, _SNAPSHOT = "BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Others were faster, or hold what is needed, or the tables are new since a statement was prepared.
_BUSY = ("40001", "40P01", "55P03", "53300", "23505", "0A000", "26000")
_LOST_CLASS = "08"
_REASONS = {
    "42501": "is not open to this user for that: ask its owner for the right (lessnoise ledger roles prints how)",
    "53100": "has no room left on its disk: free some",
    "25006": "is on a server that only reads, a standby: connect to the primary",
    "42P01": "is on a server without the tables of a ledger: create one with lessnoise ledger create",
    "3F000": "is on a server without the tables of a ledger: create one with lessnoise ledger create",
}
_UNSURE = (
    "was lost while the record was written, so it may be spent or not: look at its last record before you try again; "
    "nothing was released"
)
_inherited: list[object] = []  # connections of a parent process: to close them would end what the parent is doing


class ServerStore:
    """A ledger on a server. Connections are kept for the next use: safe across threads, forks and processes."""

    def __init__(self, address: str) -> None:
        self._address: ServerAddress = parse_address(address)
        self._given = address
        self.address = self._address.shown
        self.path: Path | None = None
        self.identity: tuple[int, float] | None = None  # of the ledger that was checked
        self._reached = False  # whether the server has ever answered
        self._process = os.getpid()
        self._idle: list[Connection] = []
        weakref.finalize(self, _close_all, self._idle, self._process)

    def __repr__(self) -> str:
        return f"ledger={self.address}"

    def __reduce__(self) -> tuple[object, ...]:
        """With the whole address, a password included: it must connect from another process."""
        return _restored, (self._given, self.identity)

    # What a ledger asks for.

    def exists(self) -> bool:
        """Whether there is a ledger of that name, as far as this user may see."""

        def found(connection: Connection) -> bool:
            version = server_tables.schema_version(connection)
            self._check_version(version)
            named = "SELECT 1 FROM lessnoise.ledger WHERE name = %s"
            return bool(version) and connection.execute(named, (self._address.ledger,)).fetchone() is not None

        return self._transaction(_SNAPSHOT, found)

    def check_creatable(self) -> None:
        """The server decides."""

    def create(
        self,
        budget: Guarantee,
        adaptive: bool,
        created: float | None = None,
        fill: Callable[[ServerTables], object] | None = None,
    ) -> bool:
        """Create it, with what ``fill`` writes, and the tables if there are none; whether it was this call that did."""

        def made(connection: Connection) -> bool:
            if not server_tables.schema_version(connection):
                server_tables.migrate(connection)
            new = server_tables.create(connection, self._address.ledger, budget, adaptive, created)
            if new and fill is not None:
                fill(self._tables(connection, lock=True))
            return new

        new = self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED", made, writing=True)
        if not self.exists():
            raise LedgerError(f"{self} exists, and this user may not read it: ask its owner, or choose another name.")
        return new

    def check(self) -> tuple[Guarantee, bool]:
        """Refuse what is not a whole ledger of this version; its budget, and whether it is adaptive."""

        def checked(found: ServerTables) -> tuple[Guarantee, bool]:
            found.check_contents()
            self.identity = (found.number, found.created())
            return found.budget(), found.adaptive()

        return self.read(checked)

    def migrate(self) -> None:
        """Bring the tables of all ledgers on this server to this version."""

        def migrated(connection: Connection) -> None:
            version = server_tables.schema_version(connection)
            if not version or version > len(MIGRATIONS):
                self._check_version(version)
                raise InvalidInput(f"{self} does not exist: create it with lessnoise ledger create.")
            server_tables.migrate(connection)

        self._transaction("BEGIN ISOLATION LEVEL READ COMMITTED", migrated, writing=True)

    def read(self, action: Callable[[ServerTables], _T]) -> _T:
        """What an action finds in a consistent view."""
        return self._transaction(_SNAPSHOT, lambda connection: action(self._tables(connection, lock=False)))

    def write(self, action: Callable[[ServerTables], _T]) -> _T:
        """What an action returns, once all that it wrote counts. It must find by a key what it wrote before."""
        run = lambda connection: action(self._tables(connection, lock=True))  # noqa: E731
        return self._transaction(_SERIALIZABLE, run, writing=True)

    def new_key(self) -> str:
        """By which a record is found if the answer to COMMIT is lost."""
        return f"auto-{secrets.token_hex(16)}"

    def check_text(self, name: str, value: str) -> None:
        """PostgreSQL has no place for the letter of number 0."""
        if "\0" in value:
            raise InvalidInput(f"{name}={value!r} has a letter that the server cannot store: pass text without \\0.")

    def is_of(self, path: Path) -> bool:
        """None of the files here is the server's."""
        return False

    # How it is done.

    def _check_version(self, version: int) -> None:
        known = len(MIGRATIONS)
        if version > known:
            raise LedgerError(
                f"{self} has version {version} of the server's tables, and this lessnoise knows {known}: nothing was "
                "changed; use a newer lessnoise."
            )
        if 0 < version < known:
            raise LedgerError(
                f"{self} has version {version} of the server's tables, and this lessnoise needs {known}: nothing was "
                "changed; let the owner of the tables run lessnoise ledger migrate."
            )

    def _tables(self, connection: Connection, *, lock: bool) -> ServerTables:
        """The tables of this ledger, which is the one that was checked."""
        seen = server_tables.look(connection, self._address.ledger, lock=lock)
        if seen is None:
            raise LedgerError(f"{self} has vanished, or this user may not read it any more: check its name.")
        self._check_version(seen.version)
        if self.identity not in (None, (seen.id, seen.created)):
            raise LedgerError(f"{self} was replaced by another one: open it again.")
        return ServerTables(connection, repr(self), seen)

    def _transaction(self, begin: str, run: Callable[[Connection], _T], *, writing: bool = False) -> _T:
        """Run until it succeeds or fails for good. ``sent``: the server was told to commit, and may have done it."""
        until, pause, unsure = time.monotonic() + _PATIENCE, 0.001, False
        while True:
            sent = False
            try:
                with self._connection() as connection:
                    connection.execute(begin.encode())
                    result = run(connection)
                    sent = writing
                    if connection.execute("COMMIT", prepare=False).statusmessage != "COMMIT":
                        raise LedgerError(f"{self} did not keep what was written; nothing was spent or released.")
                    return result
            except LedgerError as error:
                if unsure:  # its record was not even looked for
                    raise SpendUnknown(f"{self} {_UNSURE} ({str(error).rstrip('.')}).") from None
                raise
            except driver().Error as error:
                state = getattr(error, "sqlstate", None)
                lost = _is_lost(error, state)
                unsure = unsure or (sent and lost)
                passing = self._reached and (lost or state in _BUSY)
                if not passing or time.monotonic() > until:
                    raise self._failure(error, state, unsure, writing) from None
            time.sleep(random.uniform(0.0, pause))
            pause = min(2.0 * pause, 0.25 if lost else 0.02)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        """One that nobody else uses; kept for the next if all went well."""
        process = os.getpid()
        if self._process != process:  # a fork: what is open belongs to the parent
            _inherited.append(list(self._idle))
            self._process, self._idle = process, []
            weakref.finalize(self, _close_all, self._idle, process)
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connected()
        good = False
        try:
            yield connection
            good = True
        finally:
            if os.getpid() != process:
                _inherited.append(connection)
                raise LedgerError(f"{self} was being used when this process was forked: the parent goes on with it.")
            if good and not connection.closed:
                self._idle.append(connection)
            else:  # which rolls back what is not committed
                connection.close()

    def _connected(self) -> Connection:
        psycopg = driver()
        limit = {} if "connect_timeout" in self._address.connect else {"connect_timeout": 10}
        connection: Connection = psycopg.connect(
            self._address.connect,
            autocommit=True,
            prepare_threshold=2,  # what is asked a third time is planned no more
            application_name="lessnoise",
            client_encoding="utf8",
            **limit,
        )
        try:
            limit_silence(connection)
            found: Any = connection.execute(_SETTINGS).fetchone()
            *_, synced, version = found
            if synced != "on":
                raise LedgerError(f"{self} is on a server with fsync={synced}, which can forget a spend: set it to on.")
            if version < _OLDEST:
                raise LedgerError(f"{self} is on a server of version {version}: use PostgreSQL 12 or newer.")
        except BaseException:
            connection.close()
            raise
        self._reached = True
        return connection

    def _failure(self, error: Exception, state: str | None, unsure: bool, writing: bool) -> LedgerError:
        """One sentence, which never quotes a password: the library's own words could."""
        if unsure:
            return SpendUnknown(f"{self} {_UNSURE}.")
        spent = "; nothing was spent or released" if writing else ""
        if state in _REASONS:
            return LedgerError(f"{self} {_REASONS[state]}{spent}.")
        if state in _BUSY:
            return LedgerError(f"{self} is kept busy by others: try again{spent}.")
        if _is_lost(error, state):
            words = self._words(error)
            return LedgerError(f"{self} cannot be reached ({words}): check address, login and server{spent}.")
        return LedgerError(f"{self} failed ({self._words(error)}){spent}.")

    def _words(self, error: Exception) -> str:
        """The last line of an error, without what could be a password."""
        lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        line = next((line for line in lines if "FATAL" in line or "failed" in line), lines[0])
        known = driver().conninfo.conninfo_to_dict(self._address.connect)
        for secret in (known.get("password"), known.get("sslpassword")):
            line = line.replace(str(secret), "***") if secret else line
        return line[:200].rstrip(".")


def _is_lost(error: Exception, state: str | None) -> bool:
    """Whether the server cannot be reached, or went away in between."""
    psycopg = driver()
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state.startswith(_LOST_CLASS) or state in ("57P01", "57P02", "57P03", "25P03")


def _close_all(connections: list[Connection], process: int) -> None:
    if os.getpid() != process:
        _inherited.append(list(connections))
        return
    for connection in connections:
        with contextlib.suppress(Exception):
            connection.close()


def _restored(address: str, identity: tuple[int, float] | None) -> ServerStore:
    store = ServerStore(address)
    store.identity = identity
    return store
