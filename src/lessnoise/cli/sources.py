"""Where the data of a command comes from."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Annotated

import typer

from lessnoise.engines import Postgres
from lessnoise.errors import InvalidInput

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A Parquet, CSV or .csv.gz file, or the address of a PostgreSQL database (postgresql://...).",
    ),
]
EngineOption = Annotated[
    str | None, typer.Option("--engine", help="What computes the sums: duckdb, spark or dask. Default: duckdb.")
]
TableOption = Annotated[str | None, typer.Option("--table", help="Name of the table, if DATA is a PostgreSQL address.")]
UnitOption = Annotated[
    str | None, typer.Option("--unit", help="Protect users instead of rows: the column that holds their ids.")
]
MaxRows = Annotated[
    int | None,
    typer.Option("--max-rows", help="With --unit: how many rows of each user are used. They are chosen at random."),
]


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
