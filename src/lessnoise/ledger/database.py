"""A ledger in a file: SQLite with a rollback journal, so that it is one file whenever nobody is writing.

Every change is one transaction begun with BEGIN IMMEDIATE, which lets one process at a time decide and write, and
synced to disk before it counts (synchronous=EXTRA). What a killed process leaves behind is rolled back by the next one.

Nothing but SQLite may open the file: whoever closes it, wherever in the process, drops the locks that POSIX gives to
the process as a whole, also those of a thread in the midst of a spend. So a look at the file is a ``stat``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lessnoise import files
from lessnoise.errors import InvalidInput, LedgerError, SpendUnknown
from lessnoise.ledger import file_tables, forks
from lessnoise.ledger.file_tables import VERSION, FileTables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise.guarantees import Guarantee

APPLICATION_ID = 0x4C4E4C47  # "LNLG"
_WAIT_SECONDS = 120.0
_STAGE = (".ledger-", ".new")  # of the name under which a new ledger is written before it gets its own
_JOURNALS = ("-journal", "-wal", "-shm")
_REASONS = {
    sqlite3.SQLITE_FULL: "has no room left on its disk: free some",
    sqlite3.SQLITE_BUSY: "is kept busy by another process: try again",
    sqlite3.SQLITE_READONLY: "cannot be written: check its permissions and those of its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that it exists, and its permissions",
    sqlite3.SQLITE_NOTADB: "is not a ledger: it was left as it is; pass another path",
    sqlite3.SQLITE_CORRUPT: "is damaged: it was left as it is; restore it from a copy",
}
_inherited: list[sqlite3.Connection] = []  # of a parent process: to close them would undo what the parent is doing

_T = TypeVar("_T")


class FileStore:
    """The file, opened anew for each use: safe across threads, forks and processes.

    It is found once, when the store is made: a later change of folder or of a symbolic link does not lead elsewhere.
    """

    def __init__(self, path: Path) -> None:
        self.path: Path | None = path
        self.address = str(path)
        try:
            self.file = path.resolve()
        except (OSError, RuntimeError, ValueError):
            raise InvalidInput(f"ledger={str(path)!r} cannot be used as a path: pass the name of a file.") from None
        self.identity: tuple[int, int] | None = None  # of the file that was checked
        self.created: float | None = None

    def __repr__(self) -> str:
        return f"ledger={self.address}"

    def exists(self) -> bool:
        """Whether there is something of that name; LedgerError if it cannot be a ledger."""
        try:
            found = os.stat(self.file)
            if found.st_nlink > 1:
                found = self._without_stage(found)
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LedgerError(f"{self} cannot be read ({reason}): check its name and permissions.") from None
        if not stat.S_ISREG(found.st_mode):
            raise LedgerError(f"{self} is not a file: pass the name of the ledger's file.")
        if found.st_size == 0:
            raise LedgerError(
                f"{self} is empty, which no ledger is: it was left as it is; remove it, or pass another path."
            )
        if found.st_nlink > 1:
            raise LedgerError(
                f"{self} has {found.st_nlink} names (hard links), and after a crash it would be repaired under one of "
                "them only: remove the others, or pass a copy."
            )
        if self.identity not in (None, (found.st_dev, found.st_ino)):
            raise self._replaced()
        return True

    def _replaced(self) -> LedgerError:
        return LedgerError(f"{self} was replaced by another one: open it again.")

    def _without_stage(self, found: os.stat_result) -> os.stat_result:
        """Take away the first name of a new ledger, if the process that made it has not come to that yet."""
        for other in self.file.parent.glob("*".join(_STAGE)):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.lstat(other), found):
                    other.unlink(missing_ok=True)
        return os.stat(self.file)

    def new_key(self) -> str:
        """No key: a file answers, or its process is gone."""
        return ""

    def check_text(self, name: str, value: str) -> None:
        """A file holds every text."""

    def is_of(self, path: Path) -> bool:
        """Whether this path is that of the ledger or of its journal."""
        place = path.resolve()
        return place in (self.file, *(self.file.with_name(self.file.name + ending) for ending in _JOURNALS)) or (
            place.exists() and self.file.exists() and place.samefile(self.file)
        )

    def read(self, action: Callable[[FileTables], _T]) -> _T:
        """What an action finds in a consistent view."""
        with self.reading() as found:
            return action(found)

    def write(self, action: Callable[[FileTables], _T]) -> _T:
        """What an action returns, once all that it wrote counts."""
        with self.writing() as found:
            return action(found)

    @contextlib.contextmanager
    def reading(self) -> Iterator[FileTables]:
        """A consistent view."""
        self._look()
        with self._transaction(self.file, "BEGIN") as connection:
            yield self._tables(connection)

    @contextlib.contextmanager
    def writing(self) -> Iterator[FileTables]:
        """A transaction that no other process can come between; what it wrote counts once this returns."""
        self._look()
        with self._transaction(self.file, "BEGIN IMMEDIATE") as connection:
            yield self._tables(connection)
            self._look()

    def _look(self) -> None:
        """Refuse a file that cannot be the ledger, or is not the one that was checked."""
        if not self.exists():
            raise LedgerError(f"{self} has vanished: check that it exists.")

    def _version(self, connection: sqlite3.Connection) -> int:
        """The version of the file that SQLite has opened; LedgerError if it is none that is known."""
        self._look()  # again, at what SQLite has opened
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise LedgerError(f"{self} is not a ledger: it was left as it is; pass another path.")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (VERSION, VERSION - 1):
            raise LedgerError(
                f"{self} has version {version}, and this lessnoise knows {VERSION}: it was left as it is; use a newer "
                "lessnoise."
            )
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
            raise LedgerError(
                f"{self} was set to another journal_mode by another program, and is not one file any more: set it back "
                "with PRAGMA journal_mode = DELETE."
            )
        return int(version)

    def _tables(self, connection: sqlite3.Connection) -> FileTables:
        if self._version(connection) != VERSION:
            raise self._replaced()
        file_tables.check_form(connection, VERSION, repr(self))
        found = FileTables(connection, repr(self))
        if self.created not in (None, found.created()):
            raise self._replaced()
        return found

    @contextlib.contextmanager
    def _transaction(self, file: Path, begin: str) -> Iterator[sqlite3.Connection]:
        """Errors before the last step mean that nothing changed; in that one, only some of them do."""
        spent = "" if begin == "BEGIN" else "; nothing was spent or released"
        process = os.getpid()
        with forks.held_off(repr(self)):
            try:
                address = f"{file.as_uri()}?mode=rw"  # never a new file by accident
                connection = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
            except sqlite3.Error as error:
                raise self._failure(error, spent) from None
            try:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA cell_size_check = ON")
                connection.execute(begin)
                yield connection
                if spent and os.getpid() == process:
                    self._commit(connection)
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter, if an error quotes from a damaged file
                raise self._failure(error, spent) from None
            finally:
                if os.getpid() == process:
                    with contextlib.suppress(sqlite3.Error):
                        connection.close()  # which rolls back what is not committed
                else:
                    _inherited.append(connection)
        if os.getpid() != process:
            raise LedgerError(f"{self} was being used when this process was forked: the parent goes on with it.")

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except (sqlite3.Error, MemoryError) as error:
            if _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):  # the journal is there, and undoes all of it
                raise
            raise SpendUnknown(
                f"{self} failed while the record was written ({error}), so it may be spent or not: look at its last "
                "record before you try again; nothing was released."
            ) from None

    def _failure(self, error: Exception, spent: str) -> LedgerError:
        code = _code(error) or sqlite3.SQLITE_CORRUPT  # without a code it is text that is none
        return LedgerError(f"{self} {_REASONS.get(code, f'failed ({error})')}{spent}.")

    def check_creatable(self) -> None:
        """InvalidInput if a ledger of this name cannot be created."""
        folder = Path(self.address).parent
        if not folder.is_dir():
            raise InvalidInput(f"{self} is in a folder that does not exist: create {folder} first.")

    def create(
        self,
        budget: Guarantee,
        adaptive: bool,
        created: float | None = None,
        fill: Callable[[FileTables], object] | None = None,
    ) -> bool:
        """Write a whole ledger under another name, then give it its own, unless another process has just done so.

        ``fill`` writes what it has from the beginning. Whether this process created it.
        """
        made = False
        for ending in _JOURNALS:
            journal = self.file.with_name(self.file.name + ending)
            if journal.exists() and not self.file.exists():
                raise LedgerError(
                    f"{self} does not exist, but {journal.name} of an earlier one does and would be played into it: "
                    "restore that ledger, or move the journal away."
                )
        stage = self.file.with_name(secrets.token_hex(8).join(_STAGE))
        try:
            os.close(os.open(stage, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            with self._transaction(stage, "BEGIN IMMEDIATE") as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                file_tables.create(connection, budget, adaptive, time.time() if created is None else created)
                if fill is not None:
                    fill(FileTables(connection, repr(self)))
            with contextlib.suppress(FileExistsError):
                os.link(stage, self.file)
                made = True
            stage.unlink(missing_ok=True)
            files.sync_names([self.file])  # so that it survives a loss of power
        except (OSError, SpendUnknown) as error:
            reason = getattr(error, "strerror", "the disk failed")
            raise LedgerError(f"{self} cannot be created ({reason}): choose another folder.") from None
        finally:
            for ending in ("", *_JOURNALS):
                with contextlib.suppress(OSError):
                    stage.with_name(stage.name + ending).unlink(missing_ok=True)
        return made

    def check(self) -> tuple[Guarantee, bool]:
        """Refuse what is not a whole ledger, and change nothing; its budget, and whether it is adaptive.

        One of the version before is brought to this one.
        """
        self._look()
        with self._transaction(self.file, "BEGIN") as connection:
            old = self._version(connection) != VERSION
        if old:
            self.migrate()
        with self.reading() as found:
            found.check_contents()
            status = os.stat(self.file)
            self.identity, self.created = (status.st_dev, status.st_ino), found.created()
            return found.budget(), found.adaptive()

    def migrate(self) -> None:
        """Bring a file of the version before to this one, in one transaction."""
        with self._transaction(self.file, "BEGIN IMMEDIATE") as connection:
            if self._version(connection) != VERSION:  # else another process has just done it
                file_tables.migrate(connection, repr(self))


def _code(error: BaseException) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
