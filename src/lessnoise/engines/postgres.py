"""PostgreSQL as a source: rows stream from the server as Arrow batches; DuckDB does the rest."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lessnoise.engines.checks import engine_errors, require
from lessnoise.errors import InvalidInput
from lessnoise.query.columns import INTEGER, NUMBER, TEXT, unknown_column, wrong_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.query.base import Query
    from lessnoise.query.unit import Unit

_CASTS = {NUMBER: "::float8", INTEGER: "::int8", TEXT: "::text"}


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

    @property
    def _relation(self) -> str:
        if self.table is not None:
            return ".".join(_name(part) for part in self.table.split("."))
        return f"({self.select}) AS lessnoise_select"

    @contextlib.contextmanager
    def opened(self, query: Query, unit: Unit) -> Iterator[Any]:
        """A reader of the columns that a query needs, while the connection is open."""
        dbapi = require("adbc_driver_postgresql.dbapi", "postgres")
        with contextlib.ExitStack() as stack:
            with engine_errors("PostgreSQL", self):
                connection = stack.enter_context(contextlib.closing(dbapi.connect(self.address)))
                cursor = stack.enter_context(contextlib.closing(connection.cursor()))
                self._check(cursor, query, unit)
                wanted = [f"{_name(c)}{_CASTS[kind]} AS {_name(c)}" for c, kind in query.kinds.items()]
                if unit.id is not None:
                    wanted.append(f"{_name(unit.id)}::text AS {_name(unit.id)}")
                cursor.execute(f"SELECT {', '.join(wanted)} FROM {self._relation}")
                reader = cursor.fetch_record_batch()
            yield reader

    def _check(self, cursor: Any, query: Query, unit: Unit) -> None:  # noqa: ANN401
        """Names and types, before rows are asked for: a cast would turn text to numbers, or fail half-way."""
        names = [column for column in (*query.columns, unit.id) if column is not None]
        cursor.execute(f"SELECT * FROM {self._relation} LIMIT 0")
        present = [entry[0] for entry in cursor.description]
        for column in names:
            if column not in present:
                raise unknown_column(column, present)
        types = ", ".join(f"pg_typeof({_name(column)})::text" for column in names)
        # One row of types, also from an empty table.
        one = f"SELECT {', '.join(map(_name, names))} FROM {self._relation} LIMIT 0"
        cursor.execute(f"SELECT {types} FROM (SELECT 1) AS one LEFT JOIN ({one}) AS none ON true")
        for column, found in zip(names, cursor.fetchone(), strict=True):
            wanted = query.kinds.get(column)
            if wanted is None:
                if found not in (*_INTEGERS, *_TEXTS):
                    raise InvalidInput(f"unit={column!r} has type {found}: users need whole numbers or text as ids.")
            elif found not in {NUMBER: (*_INTEGERS, *_NUMBERS), INTEGER: _INTEGERS, TEXT: _TEXTS}[wanted]:
                raise wrong_kind(column, found, wanted)


_INTEGERS = ("smallint", "integer", "bigint")
_NUMBERS = ("real", "double precision", "numeric")
_TEXTS = ("text", "character varying", "character", "uuid")


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
