"""Nasty tables with nasty names, and every way to hand one to an engine, for the differential test of the engines."""

import csv
import gzip
import math
import random
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest

from lessnoise.query import ROW, ROWS, Axis, Gram, Grouped, Histogram, Mean, Measure, SecondMoments, Sum, Unit

pytest.importorskip("duckdb", reason="duckdb is not installed")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
dataset = pytest.importorskip("pyarrow.dataset", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

_OURS = """
lessnoise_user lessnoise_rank lessnoise_rows lessnoise_place lessnoise_data cell Cell rows c0 C0 c1 c2 c3 p0 P1 many
place chosen counted ranked source file given one none partial path group _partitions
"""
_THEIRS = """
rowid ctid filename file_row_number _metadata index __index_level_0__ level_0 ?column? count epoch sha256 isnan select
NULL true user * ^.*$ a.b a b a.* %s {} $1 ? ` ``x` it's -- /* ; " "x" \\ x X x_1 X_1 x_1_1 0 1.5 fi SS K k i I
"""
OURS = _OURS.split()
"""Names that engines, or this project, use themselves."""
THEIRS = [
    *_THEIRS.split(),
    *(
        "two\nlines",
        "tab\there",
        " ",
        " x",
        "x ",
        "\ufeffx",
        "n" * 63,
        "n" * 64,
        "n" * 300,
        "\xe9" * 31 + "x",
        "\xe9" * 32,
    ),
    *("\xe9", "e\u0301", "\u0441\u0435ll", "\ufb01", "\u212a", "\xdf", "\u0130", "\u0131", "\U0001f986"),
]
"""Names that mean something to an engine, or that it may take for another one."""
NAMES = OURS + THEIRS

EDGES = [0.0, 0.25, 0.5, 0.75, 1.0]
FLOATS = [
    *(math.nan, None, math.inf, -math.inf, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 0.1, 1 / 3),
    *EDGES,
    *(math.nextafter(edge, side) for edge in EDGES for side in (-math.inf, math.inf)),
    *(2.0**53, 2.0**53 - 1, 2.0**53 + 2, 7.5, -3.0),
]
INTEGERS = [0, 1, 2, 3, -1, 127, -128, None]
WIDE = [*INTEGERS, 2**53 - 1, 2**53 + 1, 2**53 + 2, 2**62 + 1, 2**63 - 1, -(2**63)]
DECIMALS = [Decimal(text) for text in ("0.25", "0.5", "-0.01", "1", "0.99", "7.10", "99999999.99", "0", "0.3")]
LONG = [*DECIMALS, Decimal("9007199254740993.0000000001"), Decimal("0.2499999999"), Decimal("-12345678901234567.89")]
KINDS = {
    "float64": (pa.float64(), FLOATS),
    "float32": (
        pa.float32(),
        [v if v is None else float(np.float32(v)) for v in FLOATS if v is None or abs(v) != 1e308],
    ),
    "float16": (pa.float16(), [math.nan, None, math.inf, -0.0, *EDGES, 0.0999755859375, 7.5, 5.960464477539063e-08]),
    "int8": (pa.int8(), INTEGERS),
    "int64": (pa.int64(), WIDE),
    "uint64": (pa.uint64(), [0, 1, 2, None, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "bool": (pa.bool_(), [True, False, None]),
    "decimal": (pa.decimal128(10, 2), [*DECIMALS, None]),
    "long decimal": (pa.decimal128(38, 10), [*LONG, None]),
    "categories": (pa.dictionary(pa.int8(), pa.float64()), [0.25, 0.5, 0.9, -0.0, 3.0, None]),
}
KEYS = ["a", "b", "B'3", "é", "e\u0301", "a "]
TEXTS = [*KEYS, "A", "", "NaN", "NULL", "1", "x,y", 'q"q', "two\nlines", None]
USERS = {
    "texts": (pa.string(), ["u", "U", "u ", " u", "é", "e\u0301", "1", "01", "1.0", "nan", "", "a|b", "ﬁ", "fi", None]),
    "numbers": (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 7, None]),
    "unsigned": (pa.uint64(), [0, 1, 2**63, 2**64 - 1, 2**53 + 1, None]),
    "categories": (pa.dictionary(pa.int16(), pa.string()), ["u", "v", "w", "é", "e\u0301", None]),
}


@dataclass
class Frame:
    """Four columns that queries ask for, among others: values as Python has them, and an Arrow table."""

    x: str
    y: str
    key: str
    user: str
    values: dict[str, list]
    table: pa.Table
    kind: str

    @property
    def queries(self):
        """All queries of the differential test, by name."""
        axis = Axis(self.x, bounds=(0, 1), bins=4)
        found = {
            "cells": Histogram([axis]),
            "clamped": Histogram([Axis(self.x, bounds=(0.1, 0.9), bins=7, outside="clamp")]),
            "edges": Histogram([Axis(self.x, edges=[-1.0, -0.0, 5e-324, 0.1, 0.25, 2.0**53, 2.0**63])]),
            "grid": Histogram([axis, Axis(self.y, bounds=(0, 1), bins=3)]),
            "keys": Histogram([Axis(self.key, keys=KEYS), axis]),
            "sum": Sum([self.x, self.y], bounds=[(0, 0.7), (-2, 1)]),
            "mean": Mean([self.y, self.x], bounds=[(-1, 1), (0, 3)]),
            "gram": Gram([self.x, self.y], norm=2),
            "gram in a box": Gram([self.x, self.y], box=(-0.5, 0.8)),
            "moments": SecondMoments((self.x, self.y), 3.0),
            "groups": Grouped((Axis(self.key, keys=[*TEXTS[:-1], "no such"]), self.halves), self.measures),
            "rows": Grouped((), (ROWS,)),
        }
        if pa.types.is_integer(self.table.schema.field(self.x).type):
            found["codes"] = Histogram([Axis(self.x, keys=[2, 0, 300, 2**53 + 1, 2**63 - 1, 2**64 - 1, 2**130])])
        return found

    @property
    def halves(self):
        """Groups by a number."""
        return Axis(self.y, edges=[-1.0, 0.5, 2.0**53])

    @property
    def measures(self):
        """Every kind of measure, of numbers on and around their bounds."""
        return (
            Measure("moments", self.x, (0, 0.7), 2),
            Measure("moments", self.y, (-2, 1 / 3), 1),
            Measure("total", self.x, (-3, 1)),
            ROWS,
            Measure("cells", axis=Axis(self.y, bounds=(0.1, 1.3), bins=128, outside="clamp")),
            Measure("cells", axis=Axis(self.x, bounds=(0, 1), bins=3)),
        )

    def arrays(self):
        """For the NumPy engine: what the values are, whatever the Arrow types."""
        made = {}
        for name in (self.x, self.y, self.key, self.user):
            column = self.values[name]
            if name in (self.key, self.user):
                made[name] = np.array(column, dtype=object)
            elif None not in column and pa.types.is_integer(self.table.schema.field(name).type):
                made[name] = np.array(column, dtype=self.table.schema.field(name).type.to_pandas_dtype())
            else:
                made[name] = np.array([math.nan if value is None else float(value) for value in column], dtype=float)
        return made


def frame(rng, rows=None, names=NAMES, kind=None, users=None):
    """A random frame; the same for the same generator."""
    rows = rng.choice([0, 1, 2, 7, 30, 60]) if rows is None else rows
    kind = kind or rng.choice(list(KINDS))
    users = users or rng.choice(list(USERS))
    picked = rng.sample(names, 12)
    x, y, key, user, *others = picked
    columns = {
        x: KINDS[kind],
        y: (pa.float64(), FLOATS),
        key: (rng.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]), TEXTS),
        user: USERS[users],
        **{other: rng.choice([(pa.int64(), [1, 2]), (pa.string(), ["s"]), (pa.float64(), [0.5])]) for other in others},
    }
    order = rng.sample(picked, len(picked))
    values = {name: [rng.choice(columns[name][1]) for _ in range(rows)] for name in order}
    table = pa.table([_array(values[name], columns[name][0]) for name in order], names=order)
    return Frame(x, y, key, user, values, table, kind)


def _array(values, kind):
    if pa.types.is_dictionary(kind):
        return _coded(values, kind)
    if pa.types.is_float16(kind):
        return pa.array([None if value is None else np.float16(value) for value in values], kind)
    return pa.array(values, kind)


def _coded(values, kind):
    """Dictionaries that differ between the halves, and hold each value twice."""
    half = len(values) // 2
    chunks = []
    for part, turn in ((values[:half], 1), (values[half:], -1)):
        known = list(dict.fromkeys(value for value in part if value is not None))[::turn] * 2
        codes = [None if v is None else known.index(v) + (i % 2) * (len(known) // 2) for i, v in enumerate(part)]
        codes = pa.array(codes, kind.index_type)
        chunks.append(pa.DictionaryArray.from_arrays(codes, pa.array(known, kind.value_type)))
    return pa.chunked_array(chunks, kind)


def without_doubles(table):
    """Dictionaries with each value once, for those who cannot have it otherwise."""
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column for column in table
    ]
    return pa.table(columns, names=table.column_names)


def expected_counts(query, given):
    """The counts of a histogram in plain Python, from the definition."""
    counts = np.zeros(query.shape)
    for row in zip(*(given.values[axis.column] for axis in query.axes), strict=True):
        cells = [_cell(axis, value) for axis, value in zip(query.axes, row, strict=True)]
        if None not in cells:
            counts[tuple(cells)] += 1
    return counts


def _cell(axis, value):
    if axis.keys is not None:
        return axis.keys.index(value) if value in axis.keys else None
    if value is None or math.isnan(value):
        return None
    number, edges = float(value), axis.cell_edges.tolist()
    if axis.outside == "clamp":
        number = min(max(number, edges[0]), edges[-1])
    if not edges[0] <= number <= edges[-1]:
        return None
    return min(bisect_right(edges, number) - 1, axis.size - 1)


# Ways to hand over a frame.


def in_memory(given):
    """The frame as tables of several libraries."""
    polars = _polars()
    plain = without_doubles(given.table)
    yield "arrow", given.table
    yield "arrow, small pieces", pa.Table.from_batches(plain.to_batches(max_chunksize=3), plain.schema)
    yield "reader", given.table.to_reader(max_chunksize=5)
    yield "dataset", dataset.dataset(plain)
    options = {"integer_object_nulls": True, "types_mapper": {pa.uint64(): pandas.UInt64Dtype()}.get}
    yield "pandas", plain.to_pandas(**options)
    yield "pandas on arrow", plain.to_pandas(types_mapper=pandas.ArrowDtype)
    yield (
        "pandas, coded",
        plain.to_pandas(strings_to_categorical=True, **options),
    )
    if polars is not None and not _has_half(plain):
        yield "polars", polars.from_arrow(plain)
        yield "polars, lazy", polars.from_arrow(plain).lazy()


def _polars():
    try:
        import polars
    except ImportError:
        return None
    return polars


def _has_half(table):
    return any(pa.types.is_float16(found) for found in table.schema.types)


def as_parquet(given, folder, name="t[1]*.parquet"):
    """A file in a folder that looks like a partition, with neighbours that a pattern would match instead or as well."""
    inside = folder / f"{given.x.replace('/', ':').replace(chr(0), '')[:40]}=7"
    inside.mkdir(parents=True, exist_ok=True)
    table = without_doubles(given.table)
    parquet.write_table(table, inside / name, row_group_size=max(1, len(table) // 3))
    for decoy in ("t1.parquet", "t[1]x.parquet"):
        parquet.write_table(pa.concat_tables([table, table]), inside / decoy)
    return inside / name


def as_csv(given, folder, name="t[1]?.CSV.gz"):
    """A CSV file; NaN is written, and NULL is an empty field."""
    separator = "\t" if ".tsv" in name.lower() else ","
    opened = gzip.open if name.lower().endswith(".gz") else open
    with opened(folder / name, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(given.values)
        for row in zip(*given.values.values(), strict=True):
            writer.writerow(
                "" if value is None else int(value) if value is True or value is False else value for value in row
            )
    return folder / name


def of_csv(given):
    """The frame as a CSV file has it: an empty text is no text, and ids are texts."""
    values = {name: [None if value == "" else value for value in column] for name, column in given.values.items()}
    values[given.user] = [None if value is None else str(value) for value in values[given.user]]
    return Frame(given.x, given.y, given.key, given.user, values, given.table, given.kind)


def units(given, rng):
    """One row; one user with few rows; one with many."""
    return [ROW, Unit(given.user, rng.choice([1, 2, 3]), key="fixed")]


def generator(seed):
    """Random choices from the standard library, the same on every machine."""
    return random.Random(seed)


def fill(address, name, table):
    """A new table of a PostgreSQL database, from an Arrow table."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="create")
        connection.commit()
