"""From points of a privacy curve to discrete privacy losses that bound it on either side.

With g = e^x, a curve H(g) = max over events of P - g Q is convex in g, starts at H(0) = 1, and is at least 1 - g.
A pair of measures whose losses are x_0 < x_1 < ... has a curve that is linear between the g_k, and the P-mass at
x_k is the change of slope there,

    p_k = (H_{k-1} - H_k)/(1 - e^(x_{k-1} - x_k)) - (H_k - H_{k+1})/(e^(x_{k+1} - x_k) - 1).

Chords lie above H: they give the *pessimistic* losses (Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022). Chords
extended beyond their ends lie below H, and so does the convex hull of where they meet: the *optimistic* losses.
Composition keeps both orders, since H of a product is an average of scaled H of its factors.

All values are kept as the excess E(g) = H(g) - (1 - g)_+, so that nothing cancels where H is close to 1 - g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array


_ULP = 2.0**-53
_MASS_ERROR = 16.0 * _ULP  # of each term of p_k, relative to the values it is made of
_SPAN = 600.0  # e^x beyond this is out of range of doubles


@dataclass(frozen=True, eq=False)
class DiscreteLosses:
    """P-masses at finite losses, and the masses at infinite loss of P, and of Q for the pair read backwards."""

    x: Array
    p: Array
    infinite: float
    infinite_reversed: float

    def with_infinite_at_end(self) -> DiscreteLosses:
        """Infinite losses taken for the largest finite one, for estimates."""
        p = self.p.copy()
        p[-1] += self.infinite
        return DiscreteLosses(self.x, p, 0.0, self.infinite_reversed)

    def reversed(self) -> DiscreteLosses:
        """The pair (Q, P)."""
        with np.errstate(under="ignore"):
            q = self.p * np.exp(-np.clip(self.x, -_SPAN, _SPAN))
        return DiscreteLosses(-self.x[::-1], q[::-1], self.infinite_reversed, self.infinite)


def pessimistic(x: Array, upper: Array) -> DiscreteLosses:
    """Losses whose curve is the chords of upper ends; ``x`` is sorted and holds 0."""
    kept = _hull(x, upper)
    x, upper = x[kept], upper[kept]
    mass, error = _masses(x, upper)
    left = float(upper[0]) * math.exp(min(-float(x[0]), _SPAN)) * (1.0 + _MASS_ERROR)
    return DiscreteLosses(x, np.maximum(mass, 0.0) + error, float(upper[-1]), min(left, 1.0))


def optimistic_hull(x: Array, lower: Array, upper: Array, floor: float) -> tuple[Array, Array]:
    """Vertices of a convex curve below H: where extended chords meet. ``floor`` is below H everywhere."""
    lower = lower.copy()
    lower[0], lower[-1] = 0.0, floor
    before, after = _extended_slopes(x, lower, upper)
    width = np.expm1(np.minimum(np.diff(x), _SPAN))
    # In cell k, with y = g/g_k - 1: lower_k + before y from the left, lower_{k+1} + after (y - width) from the right.
    right = _other_side(x, lower, at=0, seen_from=-1)
    with np.errstate(all="ignore"):
        y = (right - after * width - lower[:-1]) / (before - after)
        level = lower[:-1] + before * y
        inside = (y > 0.0) & (y < width) & np.isfinite(level)
        below = inside & (level < 0.0)  # H is at least (1 - g)_+: stop where either line meets it
        # A slope from the right that underflows to 0 meets nothing. It needs no vertex: H falls, and so it is nowhere
        # below a chord that rises from 0 to a later point.
        met = below & (after != 0.0)
        at = np.concatenate([y[inside & ~below], (-lower[:-1] / before)[below], (width - right / after)[met]])
    starts = np.concatenate([x[:-1][inside & ~below], x[:-1][below], x[:-1][met]])
    xs = np.concatenate([x, starts + np.log1p(at)])
    values = np.concatenate([lower, level[inside & ~below], np.zeros(int(below.sum() + met.sum()))])
    order = np.argsort(xs, kind="stable")
    xs, values = xs[order], values[order]
    distinct = np.concatenate([[True], np.diff(xs) > 0.0])
    xs, values = xs[distinct], values[distinct]
    kept = _hull(xs, values)
    return xs[kept], values[kept]


def snap(x: Array, values: Array, step: float) -> DiscreteLosses:
    """Optimistic losses at multiples of ``step``: tangents from each to the hull, each ended just past its touch."""
    floor = float(values[-1])
    while True:
        knots, levels, low = _tangents(x.tolist(), values.tolist(), step)
        if low is None:
            break
        # The last tangent fell below the floor. Reach the floor earlier, at a multiple of the step: the hull of more
        # points is lower.
        end = math.floor(low / step) * step
        if end >= low:
            end -= step
        if end <= 0.0:
            knots, levels = [0.0], [0.0]  # the curve (1 - g)_+, below every other
            break
        kept = x < end
        x, values = np.append(x[kept], end), np.append(values[kept], floor)
        on_hull = _hull(x, values)
        x, values = x[on_hull], values[on_hull]
    positions, excess = np.array(knots), np.array(levels)
    mass, error = _masses(positions, excess)
    if bool((mass < -error).any()):  # rounding spoilt the shape: fall back
        return DiscreteLosses(np.zeros(1), np.ones(1), 0.0, 0.0)
    return DiscreteLosses(positions, np.maximum(mass - error, 0.0), floor, 0.0)


def _tangents(points: list[float], heights: list[float], step: float) -> tuple[list[float], list[float], float | None]:
    """Knots and their levels; and where the last tangent touched, if it then fell below the floor."""
    knots, levels = [points[0]], [heights[0]]
    j, last = 1, len(points) - 1
    while knots[-1] < points[last]:
        at, level = knots[-1], levels[-1]
        while points[j] <= at:
            j += 1
        while j < last and _rise(at, level, points[j + 1], heights[j + 1]) < _rise(at, level, points[j], heights[j]):
            j += 1
        touch = points[j]
        end = min(math.ceil(touch / step) * step, points[last])
        if end - min(at, touch) > _SPAN and (at < 0.0 or end - touch > _SPAN):  # a lattice far too coarse
            return knots, levels, 0.0
        value = _seen_from(at, touch, heights[j])
        value += (value - level) / -math.expm1(at - touch) * math.expm1(end - touch)
        if at < 0.0 < end:
            value -= math.expm1(end)
        knots.append(end)
        levels.append(value)
        if end >= 0.0 and value < heights[last]:
            return knots, levels, touch
    return knots, levels, None


def unsnapped(x: Array, values: Array) -> DiscreteLosses:
    """Optimistic losses at the vertices themselves."""
    mass, error = _masses(x, values)
    return DiscreteLosses(x, np.maximum(mass - error, 0.0), float(values[-1]), 0.0)


def _masses(x: Array, excess: Array) -> tuple[Array, Array]:
    """p_k by the formula above, and a bound on its rounding error. E = 0 at x = -inf; flat after the last."""
    with np.errstate(over="ignore"):
        backward, forward = -np.expm1(-np.diff(x)), np.expm1(np.diff(x))
    seen_before = _other_side(x, excess, at=-1, seen_from=0)
    seen_after = _other_side(x, excess, at=0, seen_from=-1)
    # From g = 0, where H = 1, to the first point.
    first = (1.0 if x[0] >= 0.0 else 0.0) - excess[0]
    left = np.concatenate([[first], (seen_before - excess[1:]) / backward])
    right = np.concatenate([(excess[:-1] - seen_after) / forward, [0.0]])
    size_left = np.concatenate([[1.0 + excess[0]], (np.abs(seen_before) + excess[1:]) / backward])
    size_right = np.concatenate([(excess[:-1] + np.abs(seen_after)) / forward, [0.0]])
    if x[0] < 0.0:
        size_left[0] = excess[0]
    return left - right, _MASS_ERROR * (size_left + size_right)


def _other_side(x: Array, excess: Array, *, at: int, seen_from: int) -> Array:
    """Excess at one end of each cell, in terms of the other end: left of 0 the line 1 - g is left out.

    ``at = -1, seen_from = 0``: the left ends as seen from the right ones; ``at = 0, seen_from = -1``: the reverse.
    """
    start, end = x[:-1], x[1:]
    straddles = (start < 0.0) & (end >= 0.0)
    if at == -1:
        return np.where(straddles, excess[:-1] - np.expm1(np.minimum(start, 0.0)), excess[:-1])
    return np.where(straddles, excess[1:] + np.expm1(np.clip(end, 0.0, _SPAN)), excess[1:])


def _seen_from(viewer: float, x: float, excess: float) -> float:
    """The same for one point to the right of the viewer."""
    return excess + math.expm1(min(x, _SPAN)) if viewer < 0.0 <= x else excess


def _rise(at: float, level: float, x: float, excess: float) -> float:
    """Slope from (at, level) to a point further right, times e^at."""
    width = x - at
    if width > _SPAN:
        return 0.0 if at >= 0.0 else math.exp(at)
    return (_seen_from(at, x, excess) - level) / math.expm1(width)


def _extended_slopes(x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """For each cell, the least slope its left and the largest its right neighbour can have, times e^(its start).

    The first cell's left neighbour runs to g = 0, where the excess is 0; the last one's right neighbour is flat.
    """
    with np.errstate(over="ignore"):
        backward, forward = -np.expm1(-np.diff(x)), np.expm1(np.diff(x))
    least = (lower[1:] - _other_side(x, upper, at=-1, seen_from=0)) / backward  # times e^(end of cell)
    largest = (_other_side(x, upper, at=0, seen_from=-1) - lower[:-1]) / forward  # times e^(start of cell)
    before = np.concatenate([[lower[0]], least[:-1]])
    shift = np.exp(-np.minimum(np.diff(x), _SPAN))  # from e^(start of the next cell) to e^(start of this one)
    # The cell that ends at 0 sees the slope right of it with the line 1 - g taken out.
    bend = np.where((x[:-1] < 0.0) & (x[1:] >= 0.0), np.exp(np.minimum(x[:-1], 0.0)), 0.0)
    after = np.concatenate([largest[1:] * shift[:-1], [0.0]])
    return before, after + bend


def _hull(x: Array, excess: Array) -> list[int]:
    """Indices of the lower convex hull of H at the given points."""
    points, values = x.tolist(), excess.tolist()
    kept: list[int] = []
    for c in range(len(points)):
        while len(kept) >= 2 and _bends_up(points, values, kept[-2], kept[-1], c):
            kept.pop()
        kept.append(c)
    return kept


def _bends_up(x: list[float], excess: list[float], a: int, b: int, c: int) -> bool:
    """Whether b lies above the chord from a to c."""
    here = excess[b]
    before = excess[a] - math.expm1(x[a]) if x[a] < 0.0 <= x[b] else excess[a]
    left = (before - here) / -math.expm1(x[a] - x[b])
    width = x[c] - x[b]
    if width > _SPAN:
        right = -math.exp(x[b]) if x[b] < 0.0 <= x[c] else 0.0
    else:
        right = (here - _seen_from(x[b], x[c], excess[c])) / math.expm1(width)
    return left < right
