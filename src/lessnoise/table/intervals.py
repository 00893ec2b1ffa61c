"""Where the truth may lie, given what was released: from draws of the noise, whose law is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.query import Measure
    from lessnoise.table.aggregates import Aggregate

_MOST_AT_ONCE = 1 << 22  # numbers in memory


_KEPT = 0.9  # of what may lie outside: draws are finite, and those of quotients start from noisy numbers
_UNEVEN = 0.03  # of a cell, on either side: rows are not spread evenly within cells


def interval(one: Aggregate, measure: Measure, noisy: Array, noise: Array, level: float) -> tuple[Array, Array]:
    """Both ends, for every group and number of the aggregate. ``noise``: draws, along the first axis."""
    if one.kind == "quantiles":
        assert one.bounds is not None
        low, high = one.bounds
        found = [_quantile(noisy, noise, p, level) for p in one.probabilities]
        ends = (low + (high - low) * np.stack(side, axis=-1) for side in zip(*found, strict=True))
        lower, upper = (
            np.clip(end + side * one.resolution, low, high) for end, side in zip(ends, (-1, 1), strict=True)
        )
        return lower, upper
    return _from_draws(one, measure, noisy, noise, level)


def _from_draws(one: Aggregate, measure: Measure, noisy: Array, noise: Array, level: float) -> tuple[Array, Array]:
    """The middle of what the truth may be; draws that leave all open count as either end."""
    outside, weights = _KEPT * 0.5 * (1.0 - level), one.sums(measure)
    size = max(_MOST_AT_ONCE // (len(noise) if weights else noise[:, 0].size), 1)
    released, drawn = ([array @ each for each in weights] for array in (noisy, noise))
    if len(weights) == 1 and noise.shape[1] == 1:  # the statistic rises with its sum, and all groups have one law
        moved = np.sort(-drawn[0][:, 0])
        lower, upper = (
            one.of_sums(measure, [released[0] + moved[_among(len(moved), share)]])[..., np.newaxis]
            for share in (outside, 1.0 - outside)
        )
        return lower, upper
    ends: tuple[list[Array], list[Array]] = ([], [])
    for start in range(0, len(noisy), size):
        part = slice(start, start + size)
        if weights:  # a few sums of the numbers are all that is needed of them
            pairs = zip(released, drawn, strict=True)
            possible = one.of_sums(
                measure, [sums[part] - (of if of.shape[1] == 1 else of[:, part]) for sums, of in pairs]
            )[..., np.newaxis]
        else:
            possible = one.estimate(measure, noisy[part] - (noise if noise.shape[1] == 1 else noise[:, part]))
        for found, limit, share in zip(ends, one.limits, (outside, 1.0 - outside), strict=True):
            found.append(_below(possible, limit, share))
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _among(size: int, share: float) -> int:
    """The place of a quantile among so many sorted numbers."""
    return max(math.ceil(size * share - 1e-9) - 1, 0)


def _below(possible: Array, limit: Array | float, share: float) -> Array:
    """The value below which a share of the draws is, along the first axis; what is not a number is at the limit."""
    open_ = np.isnan(possible)
    each = np.where(open_, limit, possible) if open_.any() else possible
    place = _among(len(each), share)
    in_rows = np.ascontiguousarray(np.moveaxis(each, 0, -1))
    in_rows.partition(place, axis=-1)
    return in_rows[..., place]


def _quantile(noisy: Array, noise: Array, p: float, level: float) -> tuple[Array, Array]:
    """Ends for one quantile, as shares of the range: the places x that a test of "x is the quantile" does not refuse.

    At the quantile itself F(x) = p n, so that F~(x) - p n~ is noise alone, of a known law: x is refused if that is not
    within the middle ``level`` of its draws. Between edges of cells both sides are taken as straight lines.
    """
    outside, size = 0.5 * (1.0 - level), noisy.shape[-1]
    draws = _above(noise, p)
    least, most = np.quantile(draws, [outside, 1.0 - outside], axis=0, method="inverted_cdf")
    statistic = _above(noisy, p)
    lower = _first_crossing(statistic - least) / size
    upper = 1.0 - _first_crossing((most - statistic)[..., ::-1]) / size
    return lower, np.maximum(lower, upper)


def quantile_ends(noisy: Array, noise: Array, p: float, level: float, edges: Array) -> tuple[Array, Array]:
    """Ends for one quantile from counts between ``edges``."""
    size = noisy.shape[-1]
    lower, upper = (side * size for side in _quantile(noisy, noise, p, level))
    return _place(edges, np.maximum(lower - _UNEVEN, 0.0)), _place(edges, np.minimum(upper + _UNEVEN, float(size)))


def _place(edges: Array, where: Array) -> Array:
    """Where a number of cells from the left ends."""
    cell = np.minimum(where.astype(np.int64), edges.shape[-1] - 2)
    left, right = (np.take_along_axis(edges, each[:, np.newaxis], axis=1)[:, 0] for each in (cell, cell + 1))
    return np.asarray(left + (where - cell) * (right - left))


def _above(cells: Array, p: float) -> Array:
    """At each edge of the cells, the first one too: the sum below it, less the share ``p`` of all."""
    sums = np.concatenate([np.zeros_like(cells[..., :1]), np.cumsum(cells, axis=-1)], axis=-1)
    return np.asarray(sums - p * sums[..., -1:])


def _first_crossing(height: Array) -> Array:
    """Where a line through heights at 0, 1, 2, ... is not negative for the first time; at the end, if never."""
    after = np.argmax(height >= 0.0, axis=-1)
    after = np.where((height >= 0.0).any(axis=-1), after, height.shape[-1] - 1)
    before = np.maximum(after - 1, 0)
    top = np.take_along_axis(height, after[..., np.newaxis], axis=-1)[..., 0]
    below = np.take_along_axis(height, before[..., np.newaxis], axis=-1)[..., 0]
    rise = top - below
    share = np.where((below < 0.0) & (top >= 0.0), -below / np.where(rise > 0.0, rise, 1.0), 1.0)
    return np.where(after > 0, before + share, 0.0)
