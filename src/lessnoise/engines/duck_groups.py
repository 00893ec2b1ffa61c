"""SQL for DuckDB: all measures of every group in one GROUP BY, bit for bit as ``Grouped.partial`` has them.

Steps are whole numbers from the same operations on doubles as in NumPy: one subtraction, one product, and a cast that
rounds half to even. Sums of whole numbers do not depend on their order.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines.duck_sql import axis_cell, inside, number, used_rows
from lessnoise.query import CLAMP, DROP, INTEGER, ONE, Products

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lessnoise._common import IntArray
    from lessnoise.query import Axis, Grouped, Measure, Unit


def sums(query: Grouped, source: str, unit: Unit, connection: Any) -> str | None:  # noqa: ANN401
    """A SELECT of cell, ``b0``, ``of0``, ..., ``a0``, ...: for each group the sums of the measures' parts, as BIGINT.

    For each measure with an axis there is a GROUP BY of its own in the same pass, by group and cell ``b`` of the axis,
    in which ``of`` is 0. None for products, and if an axis has no formula
    for its cells. Keys are found by a join with a small table.
    """
    numbered = {name: f"c{place}" for place, name in enumerate(query.columns)}
    cells = _cell(query)
    bins = [_place(axis, _value(query, axis.column)) for axis in (one.axis for one in query.measures) if axis]
    products = any(isinstance(one, Products) for one in query.measures)
    if cells is None or products or any(one is None for one in bins):
        return None
    joined = _joined(query, numbered, source, connection)
    every = [*numbered.values(), *([] if unit.id is None else [f"c{len(numbered)}"])]
    kept = " AND ".join(inside(axis, _value(query, axis.column)) for axis in query.axes if axis.keys is None)
    placed = f"SELECT {', '.join([*every, f'{cells} AS cell'])} FROM {joined} WHERE {kept or 'true'}"
    used = used_rows(query, placed, unit, "true", ("cell",))
    steps, added = ["cell"], []
    for place, one in enumerate(bins):
        steps.append(f"{one} AS b{place}")
    for place, measure in enumerate(query.measures):
        if measure.column is not None:
            steps.append(f"{_steps(measure, _value(query, measure.column))} AS s{place}")
        if measure.axis is None:
            added += _parts(measure, f"s{place}")
    shown = [text for place in range(len(bins)) for text in (f"b{place}", f"grouping(b{place}) AS of{place}")]
    shown += [f"coalesce({one}, 0)::BIGINT AS a{place}" for place, one in enumerate(["count(*)", *added])]
    sets = ", ".join(f"(cell, b{place})" for place in range(len(bins))) or "(cell)"
    inner = f"SELECT {', '.join(steps)} FROM ({used})"
    return f"SELECT cell, {', '.join(shown)} FROM ({inner}) GROUP BY GROUPING SETS ({sets})"


def total(query: Grouped, found: Mapping[str, Any]) -> IntArray:
    """The partial sum that the SELECT found."""
    groups, width = query.shape
    cell = query.numbered(np.asarray(found["cell"]).astype(np.int64))
    known = cell >= 0
    first = known & (np.asarray(found["of0"]) == 0) if "of0" in found else known
    result, place, axis = np.zeros((groups, width), dtype=np.int64), 1, 0
    for measure, where in query.places():
        if measure.axis is not None:
            bins = np.ma.masked_array(found[f"b{axis}"])
            mine = known & (np.asarray(found[f"of{axis}"]) == 0) & ~np.ma.getmaskarray(bins)
            result[cell[mine], where.start + bins.data[mine].astype(np.int64)] = found["a0"][mine]
            axis += 1
            continue
        size = len(_parts(measure, ""))
        names = [f"a{at}" for at in range(place, place + size)]
        place += size
        summed = np.zeros((size, groups), dtype=np.int64)
        for row, name in zip(summed, names, strict=True):
            np.add.at(row, cell[first], np.asarray(found[name])[first].astype(np.int64))
        result[:, where] = measure.numbers(list(summed))
    return result


def _cell(query: Grouped) -> str | None:
    """The number of a row's group."""
    found = None
    for place, axis in enumerate(query.axes):
        part = f"k{place}.place" if axis.keys is not None else _place(axis, _value(query, axis.column))
        if part is None:
            return None
        found = part if found is None else f"({found})::BIGINT * {axis.size} + {part}"
    return found or "0"


def _place(axis: Axis, value: str) -> str | None:
    """The cell of a value along an axis of numbers, or NULL if it has none; what most rows need comes first."""
    if axis.keys is not None:
        return None
    within = _even(axis, value) if axis.rule is None else None
    within = within or axis_cell(replace(axis, outside=DROP), value)
    if within is None:
        return None
    low, high = (number(float(edge)) for edge in axis.cell_edges[[0, -1]])
    nearest = f" WHEN {value} < {low} THEN 0 WHEN NOT isnan({value}) THEN {axis.size - 1}"
    first = f"WHEN {value} BETWEEN {low} AND {high} THEN least(({within})::INTEGER, {axis.size - 1})"
    return f"CASE {first}{nearest if axis.outside == CLAMP else ''} END"


def _even(axis: Axis, value: str) -> str | None:
    """A guess by division, moved by one where an edge is on the other side; None if that is not right everywhere.

    The guess grows with the value, so it is off by at most one everywhere if it is at each edge and just below.
    """
    if axis.bounds is None:
        return None
    edges, size = axis.cell_edges, axis.size
    low, step = float(edges[0]), (float(edges[-1]) - float(edges[0])) / size
    places = np.arange(size)
    if not np.array_equal(places * step + low, edges[:-1]):
        return None
    for ends in (edges[:-1], np.nextafter(edges[1:], -np.inf)):
        if np.abs(np.floor((ends - low) / step) - places).max() > 1:
            return None
    guess = f"floor(({value} - {number(low)}) / {number(step)})"
    above = f"({value} >= ({guess} + 1e0) * {number(step)} + {number(low)})::INTEGER"
    below = f"({value} < {guess} * {number(step)} + {number(low)})::INTEGER"
    return f"{guess} + {above} - {below}"


def _joined(query: Grouped, numbered: Mapping[str, str], source: str, connection: Any) -> str:  # noqa: ANN401
    """The source with the place of each key; keys that the type of the column cannot hold match nothing."""
    import pyarrow

    types = dict(
        zip(numbered.values(), (row[1] for row in connection.execute(f"DESCRIBE {source}").fetchall()), strict=False)
    )
    found = f"({source}) AS rows"
    for place, axis in enumerate(query.axes):
        if axis.keys is None:
            continue
        table = {
            "key": pyarrow.array(list(map(str, axis.keys)), pyarrow.large_string()),
            "place": pyarrow.array(range(axis.size), pyarrow.int32()),
        }
        connection.register(f"keys{place}", pyarrow.table(table))
        column = numbered[axis.column]
        listed = f"SELECT TRY_CAST(key AS {types[column]}) AS key, place FROM keys{place}"
        found += f" JOIN ({listed}) AS k{place} ON {column} = k{place}.key"
    return found


def _value(query: Grouped, name: str) -> str:
    """A column as doubles: whole numbers that are keys, too, are none yet."""
    column = f"c{query.columns.index(name)}"
    return f"{column}::DOUBLE" if query.kinds[name] == INTEGER else column


def _steps(measure: Measure, value: str) -> str:
    """:meth:`Measure.steps`, or NULL for a missing value. NaN is the largest number to DuckDB, and equals itself.

    What most rows need comes first: a CASE that all rows leave at once is quick.
    """
    assert measure.bounds is not None
    low = number(measure.bounds[0])
    origin, factor = map(number, measure.scale)
    lowest, highest = (int(each) for each in measure.steps(np.array(measure.bounds)))
    return (
        f"CASE WHEN {_within(measure, value)} THEN (({value} - {origin}) * {factor})::INTEGER "
        f"WHEN {value} < {low} THEN {lowest}::INTEGER WHEN NOT isnan({value}) THEN {highest}::INTEGER END"
    )


def _within(measure: Measure, value: str) -> str:
    """Whether a value need not be clipped: by its distance from the middle, as DuckDB is slow to compare doubles.

    That lets in what is beyond the bounds by a rounding error. It may, if the steps there are those of the bound.
    """
    assert measure.bounds is not None
    low, high = measure.bounds
    origin, factor = measure.scale
    middle = low + 0.5 * (high - low)
    half = max(abs(low - middle), abs(high - middle))  # as rounding is monotone, no value between is farther
    reach = Fraction(half) * (1 + Fraction(1, 2**52))
    least, most = (float(Fraction(middle) + side * reach) for side in (-1, 1))
    beyond = np.array([math.nextafter(least, -math.inf), math.nextafter(most, math.inf)])
    if np.array_equal(np.rint((beyond - origin) * factor), measure.steps(np.array(measure.bounds))):
        return f"abs({value} - {number(middle)}) <= {number(half)}"
    return f"{value} BETWEEN {number(low)} AND {number(high)}"


def _parts(measure: Measure, steps: str) -> list[str]:
    """The sums of :meth:`Measure.parts`."""
    if measure.kind in ("rows", "users"):
        return ["count(*)"]
    if measure.kind == "total":
        return [f"sum({steps})"]
    square = f"sum(({steps}::BIGINT * {steps} + {ONE // 2}) >> {ONE.bit_length() - 1})"
    absent = f"count(*) - count({steps})"
    return [
        f"count({steps})",
        f"sum({steps})",
        *([square] if measure.degree == 2 else []),
        *([absent] if measure.absent else []),
    ]
