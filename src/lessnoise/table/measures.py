"""What is measured of every group for the statistics that are asked: as few releases as serve them all."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise.query import ROWS, Measure, Products

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise.table.aggregates import Aggregate

_WORTH = 1.1  # one release for two statistics is taken if none of them gets worse by more: the others get better


def measures_of(
    aggregates: Sequence[Aggregate], joint: bool = True, weights: Sequence[float] | None = None
) -> tuple[Measure, ...]:
    """Each measure once; means and sums take the moments of a variance of the same column, and the like.

    With ``joint`` also a count is read from the moments of a column, with one more number for rows without a value,
    if that needs no larger a budget than a count beside them.
    """
    found: list[Measure] = []
    wanted = [one.measure for one in aggregates]
    for measure in sorted(wanted, key=lambda measure: (-measure.degree, measure.kind == "total")):
        if not any(covers(known, measure) for known in found):
            found.append(measure)
    if not joint or ROWS not in found:
        return tuple(found)
    return _with_the_count(tuple(found), [*zip(aggregates, weights or [1.0] * len(aggregates), strict=True)])


def serves(measure: Measure, aggregate: Aggregate) -> bool:
    """Whether an aggregate is read from this measure."""
    return covers(measure, aggregate.measure)


def covers(known: Measure, wanted: Measure) -> bool:
    """Whether all that is read from one measure can be read from another."""
    if isinstance(known, Products) and isinstance(wanted, Products):
        return known.covers(wanted)
    if known.kind == "moments":
        same = (known.column, known.bounds) == (wanted.column, wanted.bounds)
        moments = wanted.kind == "moments" and known.degree >= wanted.degree
        return (same and (moments or wanted.kind == "total")) or (known.absent and wanted == ROWS)
    return known == wanted


def need(measure: Measure, weighed: Sequence[tuple[Aggregate, float]], default: float = 0.0) -> float:
    """How much epsilon a measure needs for a relative precision of 1, times its weight, of all that it serves."""
    return max((one.precision(measure) * weight for one, weight in weighed if serves(measure, one)), default=default)


def _with_the_count(measures: tuple[Measure, ...], weighed: Sequence[tuple[Aggregate, float]]) -> tuple[Measure, ...]:
    """The count from that column's moments which makes it cheapest; or apart, as it was."""
    others = [measure for measure in measures if measure != ROWS]
    choices = []
    for place, measure in enumerate(others):
        if measure.kind in ("moments", "total"):
            both = replace(measure, kind="moments", degree=max(measure.degree, 1), absent=True)
            choices.append((*others[:place], both, *others[place + 1 :]))

    def all_need(choice: tuple[Measure, ...]) -> float:
        return math.fsum(need(measure, weighed) for measure in choice)

    best = min(choices, key=all_need, default=measures)
    return best if all_need(best) <= _WORTH * all_need(measures) else measures
