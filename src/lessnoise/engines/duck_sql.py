"""SQL for DuckDB: which rows count, which cell a row falls in, which rows of a user are used."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TYPE_CHECKING

from lessnoise.query import CLAMP, NUMBER, Axis, FoundKeys, Gram, Grouped, Histogram, Mean, Presence, SecondMoments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.query import Query, Unit

_MOST_BRANCHES = 512


def text(value: str) -> str:
    """A quoted string."""
    return "'" + value.replace("'", "''") + "'"


def number(value: float) -> str:
    """A literal that DuckDB reads back as the same double."""
    return f"({value:.17e})"


@singledispatch
def counted(query: Query) -> str:
    """The rows that contribute: no NULL, no NaN."""
    return _all_are("NOT isnan", query)  # NULL is not true either


@counted.register
def _(_: Presence | SecondMoments) -> str:
    return "true"  # of second moments a bad row is refused, not dropped


@counted.register
def _(query: Mean) -> str:
    rows_are_public = query.rows is not None  # then a row without a value counts, too
    return "true" if rows_are_public else _all_are("NOT isnan", query)


@counted.register
def _(query: Gram) -> str:
    return _all_are("NOT isnan" if query.norm is None else "isfinite", query)


@counted.register
def _(query: Histogram) -> str:
    return " AND ".join(inside(axis, value) for axis, value in zip(query.axes, _columns(query), strict=True))


@counted.register
def _(query: Grouped) -> str:
    places = dict(zip(query.columns, _columns(query), strict=True))
    return " AND ".join(inside(axis, places[axis.column]) for axis in query.axes) or "true"


@counted.register
def _(query: FoundKeys) -> str:
    places = dict(zip(query.columns, _columns(query), strict=True))
    tests = [(axis, places[axis.column]) for axis in query.axes]
    return " AND ".join(f"{at} IS NOT NULL" if axis.column in query.found else inside(axis, at) for axis, at in tests)


def _all_are(test: str, query: Query) -> str:
    return " AND ".join(f"{test}({column})" for column in _columns(query))


def inside(axis: Axis, value: str) -> str:
    """Whether a value lies in one of the cells."""
    if axis.keys is not None:
        keys = [literal for literal in map(_key, axis.keys) if literal is not None]
        return f"{value} IN ({', '.join(keys)})" if keys else "false"
    if axis.outside == CLAMP:
        return f"NOT isnan({value})"
    low, high = axis.cell_edges[[0, -1]].tolist()
    return f"NOT isnan({value}) AND {value} >= {number(low)} AND {value} <= {number(high)}"


def cell(query: Histogram) -> str | None:
    """The number of a row's cell among size + 1 per axis (the last edge may get its own), or None: count in NumPy."""
    parts = [axis_cell(axis, value) for axis, value in zip(query.axes, _columns(query), strict=True)]
    if any(part is None for part in parts):
        return None
    number_type = "INTEGER" if math.prod(size + 1 for size in query.shape) < 2**31 else "BIGINT"
    total = f"({parts[0]})::{number_type}"
    for axis, part in zip(query.axes[1:], parts[1:], strict=True):
        total = f"{total} * {axis.size + 1} + ({part})::{number_type}"
    return total


def axis_cell(axis: Axis, value: str) -> str | None:
    """The cell of a value that lies in one; the last edge may get the number ``size``. None if there is no formula."""
    if axis.keys is not None:
        if axis.size > _MOST_BRANCHES:
            return None
        keys = [(literal, place) for place, literal in enumerate(map(_key, axis.keys)) if literal is not None]
        return (
            f"CASE {value} {' '.join(f'WHEN {literal} THEN {place}' for literal, place in keys)} END" if keys else "0"
        )
    edges = axis.cell_edges
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


def used_rows(query: Query, source: str, unit: Unit, counts: str | None = None, also: Sequence[str] = ()) -> str:
    """A SELECT of the query's columns over the rows that count; at most k of each user, as in ``Unit.chosen``.

    ``source`` is a SELECT of the columns c0, c1, ... and nothing else, the last of which names the user. With another
    condition for the rows that count it may have further columns, which are taken ``also``.
    """
    counts = counted(query) if counts is None else counts
    columns = ", ".join([*_columns(query), *also])
    if unit.id is None:
        return f"SELECT {columns} FROM ({source}) WHERE {counts}"
    user = f"c{len(query.columns)}"
    order = ", ".join(
        f"coalesce({column}, 'NaN'::DOUBLE) + 0e0" if kind == NUMBER else column  # NULL is NaN, and -0 is 0
        for column, kind in zip(_columns(query), query.kinds.values(), strict=True)
    )
    if unit.bounds_groups:
        return _used_in_groups(query, source, unit, (user, order or user, counts, columns))
    return f"""
        WITH counted AS (
            SELECT {columns}, {user},
                count(*) OVER (PARTITION BY {user}) AS many,
                row_number() OVER (PARTITION BY {user} ORDER BY {order or user}) - 1 AS place
            FROM ({source}) WHERE {counts} AND {user} IS NOT NULL),
        ranked AS (
            SELECT {columns}, row_number() OVER (PARTITION BY {user} ORDER BY CASE
                WHEN many > {unit.rows}
                THEN sha256(concat_ws('|', {text(unit.key)}, {user}, place)) END) AS chosen
            FROM counted)
        SELECT {columns} FROM ranked WHERE chosen <= {unit.rows}"""


def _used_in_groups(query: Query, source: str, unit: Unit, words: tuple[str, str, str, str]) -> str:
    """The same, in at most so many groups of each user, and at most so many rows in each of these."""
    (user, order, counts, columns), key = words, text(unit.key)
    groups = ", ".join(_group_order(query)) or "1"
    most, cap = unit.max_groups or (1 << 62), unit.max_rows_per_group or (1 << 62)
    return f"""
        WITH counted AS (
            SELECT {columns}, {user}, dense_rank() OVER (PARTITION BY {user} ORDER BY {groups}) - 1 AS own
            FROM ({source}) WHERE {counts} AND {user} IS NOT NULL),
        grouped AS (
            SELECT *, dense_rank() OVER (
                PARTITION BY {user} ORDER BY sha256(concat_ws('|', {key}, {user}, 'group', own))) AS drawn
            FROM counted),
        placed AS (
            SELECT *, row_number() OVER (PARTITION BY {user} ORDER BY {order}) - 1 AS place
            FROM grouped WHERE drawn <= {most}),
        numbered AS (SELECT *, sha256(concat_ws('|', {key}, {user}, place)) AS number FROM placed),
        capped AS (
            SELECT *, row_number() OVER (PARTITION BY {user}, own ORDER BY number) AS among FROM numbered),
        ranked AS (
            SELECT {columns}, row_number() OVER (PARTITION BY {user} ORDER BY number) AS chosen
            FROM capped WHERE among <= {cap})
        SELECT {columns} FROM ranked WHERE chosen <= {unit.rows}"""


@singledispatch
def _group_order(query: Query) -> list[str]:
    """What puts the groups of a user in order, as in ``Query.groups_of``: keys by value, cells by number."""
    return []


@_group_order.register
def _(query: Histogram | Grouped) -> list[str]:
    places = dict(zip(query.columns, _columns(query), strict=True))
    return [places[axis.column] if axis.keys is not None else _place(axis, places[axis.column]) for axis in query.axes]


def _place(axis: Axis, value: str) -> str:
    """The cell of a value that has one; on the last edge that is the last cell."""
    found = axis_cell(axis, value) or _search(value, axis.cell_edges.tolist())  # beyond the ends: the end cells
    return f"least({found}, {axis.size - 1})"


def cell_counts(query: Histogram, source: str, unit: Unit) -> str | None:
    """A SELECT of (cell, number of rows)."""
    found = cell(query)
    if found is None:
        return None
    return f"SELECT {found} AS cell, count(*) AS rows FROM ({used_rows(query, source, unit)}) GROUP BY 1"


def _columns(query: Query) -> list[str]:
    """The query's columns under their fresh names; numbers are doubles already."""
    return [f"c{place}" for place in range(len(query.columns))]


def _key(key: str | int) -> str | None:
    """A literal, or None for a number that no column can hold: among doubles it would be rounded."""
    if isinstance(key, str):
        return text(key)
    return str(key) if -(2**63) <= key < 2**64 else None
