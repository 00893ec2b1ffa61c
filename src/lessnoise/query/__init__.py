"""Queries: from records to an array to release, with its sensitivity."""

from lessnoise.query.answer import Answer, Asked
from lessnoise.query.axis import CLAMP, DROP, Axis
from lessnoise.query.base import Query, column_names, read_asked
from lessnoise.query.columns import (
    INTEGER,
    NOTHING,
    NUMBER,
    OTHER,
    TEXT,
    dtype_name,
    from_arrow,
    is_missing,
    is_text,
    unknown_column,
    wrong_kind,
)
from lessnoise.query.found_keys import FoundKeys
from lessnoise.query.gram import Gram, SecondMoments
from lessnoise.query.grouped import ONE, ROWS, USERS, Grouped, Measure
from lessnoise.query.histogram import Histogram, Presence
from lessnoise.query.linear import Mean, Sum
from lessnoise.query.products import Factor, Products
from lessnoise.query.unit import ROW, Unit

__all__ = [
    "CLAMP",
    "DROP",
    "INTEGER",
    "NOTHING",
    "NUMBER",
    "ONE",
    "OTHER",
    "ROW",
    "ROWS",
    "TEXT",
    "USERS",
    "Answer",
    "Asked",
    "Axis",
    "Factor",
    "FoundKeys",
    "Gram",
    "Grouped",
    "Histogram",
    "Mean",
    "Measure",
    "Presence",
    "Products",
    "Query",
    "SecondMoments",
    "Sum",
    "Unit",
    "column_names",
    "dtype_name",
    "from_arrow",
    "is_missing",
    "is_text",
    "read_asked",
    "unknown_column",
    "wrong_kind",
]
