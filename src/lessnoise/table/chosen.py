"""Quantiles that are chosen privately: their cells, their share of the budget, and their intervals.

A choice tells where a quantile is, and not how sure that is. So the rows between places around what was chosen are
counted with a small share of the budget, and the interval is read from these counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism import QuantileChoice, choice_deviation
from lessnoise.table.intervals import quantile_ends

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray
    from lessnoise.query import Measure
    from lessnoise.table.aggregates import Aggregate

INTERVAL_SHARE = 0.1
"""Of the quantiles' budget, for the counts behind the intervals: the values have a ninth more error by it."""
INTERVAL_CELLS = 24
TREE_CELLS = 128
_FEWEST_WHOLE = 16
_FALL = 0.5  # from cut to cut, of the distance to a chosen place
_MOST_CELLS, _MOST_OF_ALL, _CELLS_OF_PRIVATE_KEYS = 1 << 18, 1 << 18, 256
_ALWAYS = 2048  # from so many cells on, a tree would take too long


def deviation(probabilities: tuple[float, ...]) -> float:
    """Of the rank of a chosen quantile at epsilon 1, in rows, with what the intervals cost."""
    return choice_deviation(probabilities) / (1.0 - INTERVAL_SHARE)


def tree_deviation(cells: int) -> float:
    """The same for quantiles that are read from a tree of counts, however many."""
    return float(0.35 * math.log2(max(cells, 2)) ** 1.5)


def is_chosen(probabilities: tuple[float, ...], cells: int) -> bool:
    """Whether choices are the better way for these quantiles, by public numbers alone.

    >>> is_chosen((0.25, 0.5, 0.75), 128), is_chosen(tuple(i / 40 for i in range(1, 40)), 128)
    (True, False)
    """
    return cells > _ALWAYS or deviation(tuple(sorted(set(probabilities)))) < tree_deviation(cells)


def cells_for(probabilities: tuple[float, ...], bounds: tuple[float, float], groups: int | None) -> int:
    """How many even cells the bounds get; ``groups=None`` for private keys.

    Between bounds that are whole numbers, every whole number is an edge where there are cells enough.

    >>> cells_for((0.5,), (0.0, 120.0), 1), cells_for((0.5,), (0.0, 120.0), 1000), cells_for((0.5,), (0.0, 1.0), None)
    (245760, 240, 256)
    """
    low, high = bounds
    if not is_chosen(probabilities, TREE_CELLS):
        return TREE_CELLS
    most = _CELLS_OF_PRIVATE_KEYS
    if groups is not None:
        most = min(max(_MOST_OF_ALL // groups, TREE_CELLS), _MOST_CELLS)
    room = (high - low) / (8.0 * float(np.spacing(max(abs(low), abs(high)))))  # cells that floats can tell apart
    most = max(int(min(most, room)), 2)
    size = int(high - low) if low.is_integer() and high.is_integer() and high - low <= most else 1
    return int(size << (most // size).bit_length() - 1)


def cells_to_one(measure: Measure) -> int:
    """How many cells are as wide as from one whole number to the next; 0 if whole numbers are not edges of cells.

    Bounds with few whole numbers between them are not taken for those of whole numbers.
    """
    assert measure.axis is not None
    assert measure.axis.bounds is not None
    low, high = measure.axis.bounds
    if not (low.is_integer() and high.is_integer()) or high - low < _FEWEST_WHOLE or measure.width % (high - low):
        return 0
    return int(measure.width / (high - low))


def counted_edges(places: Array, cells: int) -> IntArray:
    """Edges of the cells that are counted for intervals: the denser, the nearer to a chosen place."""
    groups, size = places.shape
    ends = np.concatenate([np.zeros((groups, 1)), places, np.full((groups, 1), float(cells))], axis=1)
    cuts = [INTERVAL_CELLS // (size + 1) + (i < INTERVAL_CELLS % (size + 1)) for i in range(size + 1)]
    found = [ends[:, :1]]
    for i, count in enumerate(cuts):
        left, right = (0 if i == 0 else count // 2), (0 if i == size else (count - 1) // 2)  # cuts that gather there
        left, right = (count - 1 if i == size else left), (count - 1 if i == 0 else right)
        near = _FALL ** np.arange(left, 0, -1.0), 1.0 - _FALL ** np.arange(1.0, right + 1.0)
        share = np.concatenate([*(near if i in (0, size) else (0.5 * near[0] / _FALL, 0.5 + 0.5 * near[1])), [1.0]])
        found.append(ends[:, i : i + 1] + share * (ends[:, i + 1 : i + 2] - ends[:, i : i + 1]))
    return np.asarray(np.rint(np.concatenate(found, axis=1)).astype(np.int64))


def counted(counts: Array, edges: IntArray) -> Array:
    """Rows between the edges."""
    sums = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    return np.diff(np.take_along_axis(sums, edges, axis=1), axis=1)


def read(
    one: Aggregate, law: QuantileChoice, measure: Measure, released: Array, noise: Array, level: float
) -> tuple[Array, Array, Array]:
    """Values and both ends, from the chosen places of all the law's probabilities and the noisy counts behind them.

    An interval is widened to hold its value. So the truth is missed only if it is beyond the value, seen from the
    counts' interval. The noise of the counts does not know on which side of the truth the value is: of the two ways to
    miss, one counts, and a test of ``2 level - 1`` for the counts is enough.
    """
    assert one.bounds is not None
    assert measure.axis is not None
    low, high = one.bounds
    places, noisy = np.split(released, [len(law.probabilities)], axis=1)
    own = places[:, [law.probabilities.index(p) for p in one.probabilities]]
    if cells_to_one(measure):  # a cell begins where whole numbers are
        values = measure.axis.cell_edges[own.astype(np.int64)]
    else:
        values = low + (high - low) * (own / measure.width)
    edges = counted_edges(places, measure.width).astype(np.float64)
    inner = max(2.0 * level - 1.0, 0.0)
    found = [quantile_ends(noisy, noise, p, inner, edges) for p in one.probabilities]
    lower, upper = (np.stack(side, axis=-1) for side in zip(*found, strict=True))
    step = max(cells_to_one(measure), 1)  # outward to the edges of cells or to whole numbers, where all rows may be
    outward = step * np.floor(lower / step), step * np.ceil(upper / step)
    lower, upper = (low + (high - low) * (side / measure.width) for side in outward)
    values, lower, upper = (np.clip(each, low, high) for each in (values, lower, upper))
    return values, np.minimum(lower, values), np.maximum(upper, values)
