"""Where the data of a command comes from."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated

import typer

from lessnoise.engines import Postgres
from lessnoise.errors import InvalidInput

Data = Annotated[str, typer.Argument(metavar="DATA", help="Parquet, CSV or .csv.gz file; or postgresql://...")]
EngineOption = Annotated[str | None, typer.Option("--engine", help="duckdb, if nothing is said, spark or dask.")]
TableOption = Annotated[str | None, typer.Option("--table", help="Table, if DATA is a PostgreSQL address.")]
UnitOption = Annotated[str | None, typer.Option("--unit", help="Protect users: the column with their ids.")]
MaxRows = Annotated[int | None, typer.Option("--max-rows", help="Rows used of each user, chosen at random.")]


def data_source(data: str, table: str | None) -> object:
    """A path, or a table in PostgreSQL."""
    if data.startswith(("postgresql://", "postgres://")):
        if table is None:
            raise InvalidInput("table=None, but DATA is a PostgreSQL address: name the table with --table.")
        return Postgres(data, table=table)
    if table is not None:
        raise InvalidInput(f"table={table!r} is for PostgreSQL addresses only: leave it out.")
    return Path(data)


def data_files(data: str) -> list[Path]:
    """The files that are read, which no output may replace."""
    return [Path(data), *map(Path, glob.glob(data, recursive=True))]
