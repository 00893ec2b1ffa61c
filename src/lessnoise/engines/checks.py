"""What all engines check and say in the same way."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise.errors import EngineFailed, InvalidInput, LessnoiseError, MissingExtra
from lessnoise.query.columns import INTEGER, NUMBER, TEXT, unknown_column, wrong_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lessnoise.query.base import Query
    from lessnoise.query.unit import Unit


def require(module: str, extra: str) -> Any:  # noqa: ANN401
    """Import an optional module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise MissingExtra(f"{package} is not installed: run pip install 'lessnoise[{extra}]'.") from None


def check_schema(query: Query, unit: Unit, found: Mapping[str, tuple[str, str]]) -> None:
    """Compare the columns that a query needs with those that there are: name -> (kind, name of the type)."""
    for name, wanted in query.kinds.items():
        if name not in found:
            raise unknown_column(name, list(found))
        kind, type_name = found[name]
        if kind != wanted and not (wanted == NUMBER and kind == INTEGER):
            raise wrong_kind(name, type_name, wanted)
    if unit.id is not None:
        if unit.id not in found:
            raise unknown_column(unit.id, list(found))
        kind, type_name = found[unit.id]
        if kind not in (INTEGER, TEXT):
            raise InvalidInput(
                f"unit={unit.id!r} has type {type_name}: users need ids that are whole numbers or text; convert them."
            )


def file_format(path: Path) -> str:
    """Parquet or csv, by the name."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return "csv"
    raise InvalidInput(f"data={path} is neither Parquet nor CSV by its name: pass a .parquet, .csv or .csv.gz file.")


def existing(data: str | Path) -> Path:
    """A path of at least one file; patterns are allowed in the last part."""
    path = Path(data)
    if path.is_file():
        if path.stat().st_size == 0:
            raise InvalidInput(f"data={path} is empty: pass a file with a line of column names, and rows.")
        return path
    if any(mark in path.name for mark in "*?[") and any(path.parent.glob(path.name)):
        return path
    if path.is_dir():
        raise InvalidInput(f"data={path} is a folder: pass a file, or a pattern such as {path / '*.parquet'}.")
    raise InvalidInput(f"data={path} does not exist: pass the path of a Parquet or CSV file.")


@contextlib.contextmanager
def engine_errors(engine: str, data: object) -> Iterator[None]:
    """Turn what an engine raises into one sentence. Nothing was released yet, so nothing is spent."""
    try:
        yield
    except (LessnoiseError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        where = f"data={data}" if isinstance(data, (str, Path)) else "the data"
        raise EngineFailed(
            f"{engine} could not read {where} to the end ({_first_line(error)}): nothing was spent; repair it and try "
            "again."
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")[:200]
