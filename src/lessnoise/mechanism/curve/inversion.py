"""Inverse of a falling curve known through brackets, with both ends proved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.guarantees import Bracket

if TYPE_CHECKING:
    from collections.abc import Callable

    Curve = Callable[[float, float], Bracket]

_COARSE, _FINE = 1e-3, 1e-5
# Any bracket of relative width _FINE around a truth below target * _SAFE ends within the target.
_SAFE = 1.0 - 1.1 * _FINE


def invert_curve(curve: Curve, target: float, *, start: float, lowest: float, highest: float) -> Bracket:
    """Bracket of the x at which a falling curve crosses ``target``.

    ``curve(x, tolerance)`` is a bracket of the curve. The upper end is a point at which the curve's
    upper end is proved within the target at the default tolerance, whatever grid it is computed on;
    the lower end is one at which its lower end is proved at or above it (-inf if there is none down
    to ``lowest``, +inf above if the curve is not proved within the target up to ``highest``). Both ends
    are within about 1e-4 / |d ln(curve)/dx| of the crossing.
    """
    goal = math.log(target)

    def excess(x: float, tolerance: float = _COARSE) -> float:
        middle = curve(x, tolerance).middle
        return math.log(middle) - goal if middle > 0.0 else -math.inf

    low = high = start
    step = 0.5
    while excess(high) > 0.0:
        if high >= highest:
            return Bracket(_proved_above(curve, target, highest, 1e-3, _FINE), math.inf)
        low, high, step = high, min(high + step, highest), 1.6 * step
    step = 0.5
    while excess(low) <= 0.0:
        if low <= lowest:
            return Bracket(-math.inf, _proved_below(curve, target, high, high, 1e-3, _FINE, highest))
        high, low, step = low, max(low - step, lowest), 1.6 * step
    root, slope = _refine(excess, low, high)
    tolerance = max(_FINE * min(1.0, slope), 0.1 * _FINE)
    margin = tolerance / slope
    above = _proved_above(curve, target, root - margin, margin, tolerance)
    below = _proved_below(curve, target, above, root + margin + 1.1 * _FINE / slope, margin, tolerance, highest)
    return Bracket(above, below)


def _refine(excess: Callable[..., float], low: float, high: float) -> tuple[float, float]:
    """Root of a falling function and minus its slope there, both unproved.

    False position (Illinois) on coarse values until near, then secant steps on fine ones.
    """
    at_low, at_high = excess(low), excess(high)
    slope = 1.0
    x, side = high, 0
    while high - low > 1e-12 * max(1.0, abs(high)):
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        x = low + (high - low) * min(max(share, 0.01), 0.99)
        value = excess(x)
        if value > 0.0:
            slope = (at_low - value) / (x - low) if at_low > value else slope
            at_high = 0.5 * at_high if side > 0 else at_high
            low, at_low, side = x, value, 1
        else:
            slope = (value - at_high) / (high - x) if math.isfinite(at_high) and value > at_high else slope
            at_low = 0.5 * at_low if side < 0 else at_low
            high, at_high, side = x, value, -1
        if abs(value) < 0.05:
            break
    value = excess(x, _FINE)
    for _ in range(8):
        if abs(value) < _FINE or not math.isfinite(value):
            break
        previous, before = x, value
        x = min(max(x + value / slope, low - 0.1), high + 0.1)
        value = excess(x, _FINE)
        if x != previous and before != value and (before - value) / (x - previous) > 0.0:
            slope = (before - value) / (x - previous)
    return x, max(slope, 1e-9)


def _proved_below(
    curve: Curve, target: float, above: float, start: float, step: float, tolerance: float, highest: float
) -> float:
    """First point of a widening walk up from ``start`` at which the upper end is safely within the target.

    A curve that levels out just below the target is never safely within it: there, within it has to do, and the walk
    begins at a point ``above`` the target.
    """
    safe = _walk(lambda x: curve(x, tolerance).upper <= target * _SAFE, start, step, highest)
    if safe < math.inf:
        return safe
    return _walk(lambda x: curve(x, tolerance).upper <= target, above if above > -math.inf else start, _FINE, highest)


def _proved_above(curve: Curve, target: float, x: float, step: float, tolerance: float) -> float:
    """First point of a widening walk down from x at which the lower end is at least the target."""
    return -_walk(lambda point: curve(-point, tolerance).lower >= target, -x, step, -x + 1e6)


def _walk(proved: Callable[[float], bool], x: float, step: float, highest: float) -> float:
    """The first point of a walk up in widening steps, or one nearer if it went far; inf beyond ``highest``."""
    before, stride = x, step
    while not proved(x):
        if x >= highest:
            return math.inf
        stride = max(stride, _smallest_step(x))
        before, x = x, x + stride
        stride *= 2.0
    while x - before > max(16.0 * step, _smallest_step(x)):
        middle = 0.5 * (before + x)
        before, x = (before, middle) if proved(middle) else (middle, x)
    return x


def _smallest_step(x: float) -> float:
    """Enough to move x, however steep the curve."""
    return 4e-16 * max(1.0, abs(x))
