"""The tables of a ledger on a PostgreSQL server, and how they are made and brought to a newer version."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from lessnoise._version import __version__
from lessnoise.errors import LedgerError
from lessnoise.ledger.tables import COPY, Tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import psycopg

    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger.chain import RecordRow

    Connection = psycopg.Connection[tuple[Any, ...]]

MIGRATIONS = ("server_1.sql",)
"""What makes each version from the one before it; a version that has been published is never edited."""

_LOCK = 0x4C4E4C47  # one at a time creates or migrates
_GUARDS = {("record", "append"), ("record", "refuse"), ("description", "refuse")}


def schema_version(connection: Connection) -> int:
    """The version of the tables; 0 if there are none."""
    known = connection.execute("SELECT to_regclass('lessnoise.version') IS NOT NULL").fetchone()
    if known is None or not known[0]:
        return 0
    found = connection.execute("SELECT max(version) FROM lessnoise.version").fetchone()
    return 0 if found is None or found[0] is None else int(found[0])


def migrate(connection: Connection) -> None:
    """Within a transaction: make the tables, or bring them to this version."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    for version in range(schema_version(connection) + 1, len(MIGRATIONS) + 1):
        script = resources.files("lessnoise.ledger").joinpath(MIGRATIONS[version - 1]).read_text(encoding="utf-8")
        connection.execute(script.encode())
        connection.execute("INSERT INTO lessnoise.version (version, lessnoise) VALUES (%s, %s)", (version, __version__))


def create(connection: Connection, name: str, budget: Guarantee, adaptive: bool, created: float | None) -> bool:
    """Within a transaction: the row of a new ledger; False if there is one of that name."""
    inserted = connection.execute(
        "INSERT INTO lessnoise.ledger (name, epsilon, delta, neighbours, created, lessnoise, adaptive) VALUES "
        "(%s, %s, %s, %s, coalesce(%s::float8, extract(epoch FROM clock_timestamp())::float8), %s, %s) "
        "ON CONFLICT (name) DO NOTHING",
        (name, budget.epsilon, budget.delta, budget.neighbours.value, created, __version__, adaptive),
    )
    return inserted.rowcount == 1


class SeenLedger(NamedTuple):
    """The row of a ledger, as it is when a transaction begins; who looks at it, and when by the server's clock."""

    id: int
    epsilon: float
    delta: float
    neighbours: str
    created: float
    adaptive: bool
    last: int
    clock: float
    who: str
    version: int


def look(connection: Connection, name: str, *, lock: bool) -> SeenLedger | None:
    """The row of a ledger; with ``lock``, nobody else writes before this transaction ends. None if it is not there."""
    place = "lessnoise.lock(%s) AS seen" if lock else "lessnoise.ledger AS seen WHERE name = %s"
    query = (
        "SELECT seen.id, epsilon, delta, neighbours, created, adaptive, last, "
        "extract(epoch FROM clock_timestamp())::float8, session_user::text, "
        f"(SELECT max(version) FROM lessnoise.version) FROM {place}"
    )
    row = connection.execute(query.encode(), (name,)).fetchone()
    return None if row is None or row[0] is None else SeenLedger(*row)


class ServerTables(Tables):
    """The tables of a ledger on a server, in one transaction."""

    def __init__(self, connection: Connection, ledger: str, seen: SeenLedger) -> None:
        super().__init__(ledger)
        self.connection, self.number, self.seen = connection, int(seen.id), seen
        self.budget_row = (seen.epsilon, seen.delta, seen.neighbours, seen.created, seen.adaptive)
        self._last = seen.last
        self._names = {
            name: f"(SELECT * FROM lessnoise.{name} WHERE ledger = {self.number}) AS {name}"
            for name in ("record", "total", "description")
        } | {"budget": f"(SELECT * FROM lessnoise.ledger WHERE id = {self.number}) AS budget"}

    def ask(self, query: str, values: tuple[object, ...] = ()) -> Iterable[tuple[Any, ...]]:
        """The rows of a query."""
        return self.connection.execute(query.format(**self._names).replace("?", "%s").encode(), values).fetchall()

    def check_medium(self) -> None:
        """Refuse a server on which the guards of the history were taken away."""
        found = self.connection.execute(
            "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = 'lessnoise' AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')"
        ).fetchall()
        if {(str(table), str(name)) for table, name in found} != _GUARDS:
            raise LedgerError(f"{self.ledger} has other triggers than a ledger has: {COPY}")

    def now(self) -> float:
        """The clock of the server."""
        return self.seen.clock

    def who(self) -> str:
        """The role that has logged in; the server refuses another."""
        return self.seen.who

    def written(self) -> int:
        """The number of records that were ever written."""
        return self._last

    def insert_description(self, digest: bytes, json: str) -> int:
        """A new description; its number."""
        found = self.connection.execute(
            "INSERT INTO lessnoise.description (ledger, id, digest, json) "
            "SELECT %s, coalesce(max(id), 0) + 1, %s, %s FROM lessnoise.description WHERE ledger = %s RETURNING id",
            (self.number, digest, json, self.number),
        ).fetchone()
        assert found is not None
        return int(found[0])

    def insert_records(self, rows: Sequence[RecordRow]) -> None:
        """New records; the server counts them in the totals."""
        kinds = ("bigint", "text", "float8", "text", "text", "bigint", "text", "text", "bytea")
        columns = ", ".join(f"%s::{kind}[]" for kind in kinds)
        self.connection.execute(
            "INSERT INTO lessnoise.record (ledger, id, kind, time, who, partition, description, note, key, hash) "
            f"SELECT {self.number}, * FROM unnest({columns})".encode(),
            [list(column) for column in zip(*rows, strict=True)],
        )
        self._last = rows[-1].id
