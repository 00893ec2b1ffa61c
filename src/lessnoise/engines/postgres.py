"""PostgreSQL as a source: rows stream from the server as Arrow batches; DuckDB does the rest."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lessnoise.engines.engine import Unreadable, check_kinds, engine_errors, fresh, places, require, typed, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NUMBER, OTHER, TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.query import Query, Unit

_CASTS = {NUMBER: "::pg_catalog.float8", INTEGER: "::pg_catalog.int8", TEXT: "::pg_catalog.text"}
_KINDS = {
    **dict.fromkeys(("smallint", "integer", "bigint"), INTEGER),
    **dict.fromkeys(("real", "double precision", "numeric"), NUMBER),
    **dict.fromkeys(("text", "character varying", "character", "uuid"), TEXT),
}
_LONGEST_NAME = 63  # bytes; the server cuts off the rest without a word


@dataclass(frozen=True)
class Postgres:
    """A table (``"trips"`` or ``"public.trips"``) or a SELECT on a PostgreSQL server.

    Only the columns that a query needs leave the server. The address is not printed, as it may hold a password.

    >>> Postgres("postgresql://localhost/city", table="public.trips")
    Postgres(table='public.trips', select=None)
    """

    address: str = field(repr=False)
    table: str | None = None
    select: str | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.select is None):
            raise InvalidInput(f"table={self.table!r} and select={self.select!r}: pass one of them.")
        if any(len(part.encode()) > _LONGEST_NAME for part in (self.table or "").split(".")):
            raise InvalidInput(f"table={self.table!r} is longer than {_LONGEST_NAME} bytes: pass the name as it is.")

    @property
    def _relation(self) -> str:
        if self.table is not None:
            return ".".join(_name(part) for part in self.table.split("."))
        return f"({self.select}\n)"  # it may end with a comment

    @contextlib.contextmanager
    def opened(self, query: Query, unit: Unit) -> Iterator[Any]:
        """A reader of the columns that a query needs, under their own names, while the connection is open."""
        dbapi = require("adbc_driver_postgresql.dbapi", "postgres")
        with contextlib.ExitStack() as stack:
            with engine_errors("PostgreSQL", self):
                connection = stack.enter_context(contextlib.closing(self._connected(dbapi)))
                cursor = stack.enter_context(contextlib.closing(connection.cursor()))
                source = self._source(cursor, query, unit)
                casts = zip(fresh(query, unit), typed(query, unit, _CASTS), strict=True)
                taken = [f"{name}{cast} AS {name}" for name, cast in casts]
                if not wanted(query, unit):  # rows alone
                    taken = ["''::pg_catalog.text AS c0"]
                cursor.execute(f"SELECT {', '.join(taken)} FROM {source}")
                reader = cursor.fetch_record_batch()
            import pyarrow

            names = list(wanted(query, unit) or fresh(query, unit))
            schema = pyarrow.schema(field.with_name(name) for field, name in zip(reader.schema, names, strict=True))
            renamed = (batch.rename_columns(names) for batch in reader)
            yield pyarrow.RecordBatchReader.from_batches(schema, renamed)

    def _connected(self, dbapi: Any) -> Any:  # noqa: ANN401
        try:
            return dbapi.connect(self.address)
        except Exception:  # it may quote the address, and so a password
            raise Unreadable("no connection to the server; check the address") from None

    def _source(self, cursor: Any, query: Query, unit: Unit) -> str:  # noqa: ANN401
        """The wanted columns by their places, under fresh names, after a look at names and types."""
        cursor.execute(f"SELECT * FROM {self._relation} AS given LIMIT 0")
        present = [entry[0] for entry in cursor.description]
        where, names = places(query, unit, present), fresh(query, unit)
        given = [names[where.index(place)] if place in where else f"p{place}" for place in range(len(present))]
        source = f"{self._relation} AS given ({', '.join(given)})"
        # One row of types, also from an empty table.
        types = ", ".join(f"pg_catalog.pg_typeof(none.{name})::pg_catalog.text" for name in names)
        none = f"SELECT {', '.join(names)} FROM {source} LIMIT 0"
        cursor.execute(f"SELECT {types} FROM (SELECT 1) AS one LEFT JOIN ({none}) AS none ON true")
        check_kinds(query, unit, [(_KINDS.get(found, OTHER), found) for found in cursor.fetchone()])
        return source


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
