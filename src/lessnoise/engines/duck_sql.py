"""SQL for DuckDB: which rows count, which cell a row falls in, which rows of a user are used."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING

from lessnoise.query import Gram, Histogram, SecondMoments
from lessnoise.query.axis import CLAMP, Axis
from lessnoise.query.columns import NUMBER
from lessnoise.query.histogram import Presence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.query.base import Query
    from lessnoise.query.unit import Unit

_MOST_BRANCHES = 512


def name(column: str) -> str:
    """A quoted identifier."""
    return '"' + column.replace('"', '""') + '"'


def text(value: str) -> str:
    """A quoted string."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """A literal that DuckDB reads back as the same double."""
    return f"({value:.17e})"


@singledispatch
def counted(query: Query) -> str:
    """The rows that contribute: no NULL, no NaN."""
    return " AND ".join(f"NOT isnan({_double(column)})" for column in query.columns)  # NULL is not true either


@counted.register
def _(_: Presence) -> str:
    return "true"


@counted.register
def _(query: Gram) -> str:
    test = "NOT isnan" if query.norm is None else "isfinite"
    return " AND ".join(f"{test}({_double(column)})" for column in query.columns)


@counted.register
def _(_: SecondMoments) -> str:
    return "true"  # a bad row is refused, not dropped


@counted.register
def _(query: Histogram) -> str:
    return " AND ".join(_inside(axis) for axis in query.axes)


def _inside(axis: Axis) -> str:
    if axis.keys is not None:
        return f"{name(axis.column)} IN ({', '.join(map(_key, axis.keys))})"
    value = _double(axis.column)
    if axis.outside == CLAMP:
        return f"NOT isnan({value})"
    low, high = axis.cell_edges[[0, -1]].tolist()
    return f"{value} >= {number(low)} AND {value} <= {number(high)}"  # NaN is above all numbers in DuckDB


def cell(query: Histogram) -> str | None:
    """The number of a row's cell among size + 1 per axis (the last edge may get its own), or None: count in NumPy."""
    parts = [_cell(axis) for axis in query.axes]
    if any(part is None for part in parts):
        return None
    number_type = "INTEGER" if math.prod(size + 1 for size in query.shape) < 2**31 else "BIGINT"
    total = f"({parts[0]})::{number_type}"
    for axis, part in zip(query.axes[1:], parts[1:], strict=True):
        total = f"{total} * {axis.size + 1} + ({part})::{number_type}"
    return total


def _cell(axis: Axis) -> str | None:
    if axis.keys is not None:
        if axis.size > _MOST_BRANCHES:
            return None
        return f"CASE {name(axis.column)} {' '.join(f'WHEN {_key(k)} THEN {i}' for i, k in enumerate(axis.keys))} END"
    edges = axis.cell_edges
    value = _double(axis.column)
    if axis.outside == CLAMP:
        value = f"least(greatest({value}, {number(float(edges[0]))}), {number(float(edges[-1]))})"
    if axis.rule is not None:
        rule = axis.rule
        return f"floor(({value} - {number(rule.low)}) * {number(rule.factor)} + {number(rule.shift)})"
    return _search(value, edges.tolist()) if axis.size <= _MOST_BRANCHES else None


def _search(value: str, edges: Sequence[float]) -> str:
    """A binary search among the edges, by comparisons only."""

    def between(first: int, last: int) -> str:
        if first == last:
            return str(first)
        middle = (first + last + 1) // 2
        lower, upper = between(first, middle - 1), between(middle, last)
        return f"CASE WHEN {value} < {number(edges[middle])} THEN {lower} ELSE {upper} END"

    return between(0, len(edges) - 2)


def used_rows(query: Query, source: str, unit: Unit) -> str:
    """A SELECT of the query's columns over the rows that count; at most k of each user, as in ``Unit.chosen``."""
    columns = ", ".join(map(name, query.columns))
    if unit.id is None:
        return f"SELECT {columns} FROM {source} WHERE {counted(query)}"
    user = name(unit.id)
    order = ", ".join(f"{_double(c)} + 0e0" if kind == NUMBER else name(c) for c, kind in query.kinds.items())
    return f"""
        WITH counted AS (
            SELECT {columns}, {user} AS lessnoise_user,
                count(*) OVER (PARTITION BY {user}) AS lessnoise_rows,
                row_number() OVER (PARTITION BY {user} ORDER BY {order}) - 1 AS lessnoise_place
            FROM {source} WHERE {counted(query)} AND {name(unit.id)} IS NOT NULL),
        ranked AS (
            SELECT {columns}, row_number() OVER (PARTITION BY lessnoise_user ORDER BY CASE
                WHEN lessnoise_rows > {unit.rows}
                THEN sha256(concat_ws('|', {text(unit.key)}, lessnoise_user, lessnoise_place)) END) AS lessnoise_rank
            FROM counted)
        SELECT {columns} FROM ranked WHERE lessnoise_rank <= {unit.rows}"""


def cell_counts(query: Histogram, source: str, unit: Unit) -> str | None:
    """A SELECT of (cell, number of rows)."""
    found = cell(query)
    if found is None:
        return None
    if unit.id is None:
        return f"SELECT {found} AS cell, count(*) AS rows FROM {source} WHERE {counted(query)} GROUP BY cell"
    return f"SELECT {found} AS cell, count(*) AS rows FROM ({used_rows(query, source, unit)}) GROUP BY cell"


def _double(column: str) -> str:
    return f"{name(column)}::DOUBLE"


def _key(key: object) -> str:
    return text(key) if isinstance(key, str) else str(key)
