"""Files: exactly those that a path names, and their columns by position, whatever they are called."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lessnoise.engines.arrow_tables import described, plain
from lessnoise.engines.engine import Unreadable, check_kinds, fresh, places, require, typed, wanted
from lessnoise.errors import InvalidInput
from lessnoise.query import INTEGER, NOTHING, NUMBER, TEXT, wrong_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.query import Query, Unit


_BLOCK = 1 << 24  # bytes of a CSV file that are read at a time; a line must fit


class Piece(NamedTuple):
    """A part of the data that is read at once: a row group of a Parquet file, or a whole CSV file."""

    path: str
    group: int


def file_format(path: Path) -> str:
    """Parquet or csv, by the name."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return "csv"
    raise InvalidInput(f"data={path} is neither Parquet nor CSV by its name: pass a .parquet, .csv or .csv.gz file.")


def found_files(data: str | Path) -> tuple[list[Path], str]:
    """The file that has exactly this name, else those that match a pattern in its last part; and their one format."""
    path = Path(os.path.abspath(data))  # no engine shall read a "~" or "s3:" into it, nor resolve it anew
    if path.is_file():
        files = [path]
    elif path.is_dir():
        raise InvalidInput(f"data={data} is a folder: pass a file, or a pattern such as {Path(data) / '*.parquet'}.")
    else:
        matches = glob.glob(os.path.join(glob.escape(str(path.parent)), path.name))
        files = sorted(Path(match) for match in matches if os.path.isfile(match))
    if not files:
        raise InvalidInput(f"data={data} does not exist: pass the path of a Parquet or CSV file.")
    for file in files:
        if file.stat().st_size == 0:
            raise InvalidInput(f"data={file} is empty: pass a file with a line of column names, and rows.")
    formats = {file_format(file) for file in files}
    if len(formats) > 1:
        raise InvalidInput(f"data={data} matches Parquet and CSV files: pass a pattern for one of them.")
    return files, formats.pop()


def file_columns(path: Path) -> list[str]:
    """The names of a file's columns, as they are."""
    require("pyarrow", "data")
    if file_format(path) == "csv":
        return _header(path)
    from pyarrow.parquet import read_schema

    return [str(name) for name in read_schema(path).names]


def pieces(files: list[Path], query: Query, unit: Unit) -> list[Piece]:
    """All parts of the files, after a look at the columns of each."""
    from pyarrow.parquet import ParquetFile

    parts = []
    ids = set()
    for file in files:
        if file_format(file) == "csv":
            _csv_places(file, query, unit)
            parts.append(Piece(str(file), 0))
            continue
        with ParquetFile(file) as opened:
            types = _types(opened.schema_arrow, query, unit)
            ids.add(types[-1][0])
            parts += [Piece(str(file), group) for group in range(opened.num_row_groups)]
    check_ids(unit, ids)
    return parts


def check_ids(unit: Unit, kinds: set[str]) -> None:
    """Refuse ids that are numbers in one file and texts in another."""
    if unit.id is not None and len(kinds - {NOTHING}) > 1:
        raise InvalidInput(f"unit={unit.id!r} is text in one file and whole numbers in another: convert them.")


def read(piece: Piece, query: Query, unit: Unit) -> Iterator[Any]:
    """Arrow batches of the wanted columns, under fresh names."""
    path = Path(piece.path)
    if file_format(path) == "csv":
        yield from _csv(path, query, unit)
        return
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as opened:
        taken = list(wanted(query, unit)) or [opened.schema_arrow.names[0]]
        table = opened.read_row_group(piece.group, columns=taken)  # and what has such a prefix
    where = places(query, unit, table.column_names)
    for batch in table.to_batches():
        yield plain(batch, where, query, unit)


def _types(schema: Any, query: Query, unit: Unit) -> list[tuple[str, str]]:  # noqa: ANN401
    types = described(schema.field(place).type for place in places(query, unit, list(schema.names)))
    check_kinds(query, unit, types)
    return types


# CSV: nothing is guessed from the rows. Fields are separated by commas (.tsv: tabs) and quoted by ", and the first line
# has the names. An empty field is NULL, and any other text that is no number, where one is needed, is an error.


def csv_schema(query: Query, unit: Unit) -> Any:  # noqa: ANN401
    """The types that the fields of a CSV file get, under fresh names; ids are texts."""
    import pyarrow

    types = {NUMBER: pyarrow.float64(), INTEGER: pyarrow.int64(), TEXT: pyarrow.large_string()}
    return pyarrow.schema(zip(fresh(query, unit), typed(query, unit, types), strict=True))


def _header(path: Path) -> list[str]:
    try:
        with _opened(path) as reader:
            return [str(name) for name in reader.schema.names]
    except ValueError:  # of pyarrow, or of a name that is not UTF-8
        raise Unreadable("it does not begin with a line of column names in UTF-8, with commas between them") from None


def _csv_places(path: Path, query: Query, unit: Unit) -> tuple[list[str], list[int]]:
    """The names of the columns, and where the wanted ones are."""
    names = _header(path)
    missing = [name for name in wanted(query, unit) if name not in names]
    if missing and any(re.fullmatch(r"\s*[+-]?[\d.]+(e[+-]?\d+)?\s*", name, re.IGNORECASE) for name in names):
        # It may be a row of the data, so it is not quoted.
        raise InvalidInput(
            f"column={missing[0]!r} is not in the first line of data={path}, which holds numbers: the first line must "
            "have the names of the columns."
        )
    return names, places(query, unit, names)


def _csv(path: Path, query: Query, unit: Unit) -> Iterator[Any]:
    import pyarrow

    names, where = _csv_places(path, query, unit)
    types = {str(place): kind for place, kind in zip(where, csv_schema(query, unit).types, strict=True)}
    try:
        with _opened(path, [str(place) for place in range(len(names))], types) as reader:
            for batch in reader:
                yield batch.rename_columns(fresh(query, unit))
    except pyarrow.ArrowInvalid as error:
        raise _without_values(str(error), names) from None


def _opened(path: Path, names: list[str] | None = None, types: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
    import pyarrow
    from pyarrow import csv

    low = path.name.lower()
    read: dict[str, Any] = {"block_size": _BLOCK}
    stream = pyarrow.input_stream(str(path), compression="gzip" if low.endswith(".gz") else None)
    parse = csv.ParseOptions(delimiter="\t" if ".tsv" in low else ",", newlines_in_values=True)
    if names is None:
        return csv.open_csv(stream, read_options=csv.ReadOptions(**read), parse_options=parse)
    return csv.open_csv(
        stream,
        read_options=csv.ReadOptions(column_names=names, skip_rows_after_names=1, **read),
        parse_options=parse,
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=list(types or ()), null_values=[""], strings_can_be_null=True
        ),
    )


def _without_values(message: str, names: list[str]) -> Exception:
    """What pyarrow says of a CSV file, less the field or line that it quotes."""
    column = re.match(r"In CSV column #(\d+): CSV conversion error to (\w+)", message)
    if column is None:
        counted = "Expected" in message.split("got")[0]
        return Unreadable("a line has more or fewer fields than the first one" if counted else "it is not a CSV file")
    name, needed = names[int(column[1])], {"double": NUMBER, "int64": INTEGER}.get(column[2])
    if needed is None:
        return Unreadable(f"column={name!r} holds a field that is not text in UTF-8")
    quoted = re.search(r"invalid value '(.*)'", message)
    fraction = needed == INTEGER and quoted is not None and re.fullmatch(r"\s*[+-]?\d*[.]\d*\s*", quoted[1])
    return wrong_kind(name, "DOUBLE", needed) if fraction else wrong_kind(name, "VARCHAR", needed, TEXT)
