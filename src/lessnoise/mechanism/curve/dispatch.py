"""The exact curve of any noise description: delta at an epsilon, epsilon at a delta."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from lessnoise._later import later
from lessnoise.changes import Changes, Moves
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import chords, gaussian, l2, radial
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.numerics import computable

if TYPE_CHECKING:
    from collections.abc import Callable

    Curve = Callable[[float, float], Bracket]
    Shift = float | Moves  # the worst change: its size in the law's norm, or the sizes of its entries

DEFAULT_TOLERANCE = radial.DEFAULT_TOLERANCE
LARGEST_EPSILON = 1e6
_COARSE, _FINE = 1e-3, 1e-5
_STRAIGHT = 1e-3  # in ln of the curve: so near its target, it is a straight line
# Any bracket of relative width _FINE around a truth below target * _SAFE ends within the target.
_SAFE = 1.0 - 1.1 * _FINE


@functools.lru_cache(maxsize=4096)
@computable
def delta_of(law: Law, dimension: int, shift: Shift, epsilon: float, tolerance: float = DEFAULT_TOLERANCE) -> Bracket:
    """Bracket of the smallest delta with (epsilon, delta)-DP against the worst neighbour."""
    if epsilon >= pure_epsilon_of(law, dimension, shift):
        return Bracket(0.0, 0.0)
    if isinstance(shift, Moves):
        if _is_pure(law, shift, epsilon):
            return Bracket(0.0, 0.0)
        found: Bracket = later("delta of entries")(law, shift, epsilon)
        return found
    return law_delta(law, dimension, shift, epsilon, tolerance)


def _is_pure(law: Law, moves: Moves, epsilon: float) -> bool:
    """Whether noise for an l1 norm is pure at the epsilon it is made for, which rounded entries do not tell."""
    if law.norm != "l1" or epsilon < 0.999 * pure_epsilon_of(law, moves.count, moves):
        return False
    return law_delta(law, moves.count, moves.norm(1), epsilon, DEFAULT_TOLERANCE).upper == 0.0


@functools.singledispatch
def law_delta(law: Law, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """The curve of one law; each law registers its own."""
    raise TypeError(f"no privacy curve is known for {type(law).__name__}")


@functools.singledispatch
def worst_of(law: Law, changes: Changes, dimension: int) -> Shift:
    """The change of a set that the noise hides worst, as the law's curve takes it.

    For most laws that is the largest norm: isotropic noise hides all changes of one length alike. A law of independent
    entries registers a change that is above all others: its curve is that of all its entries together.
    """
    order = {"l2": 2, "l1": 1}.get(law.norm)
    if order is None:
        raise no_curve(law, changes)
    return changes.norm(order, dimension)


@functools.singledispatch
def attained(law: Law, changes: Changes, dimension: int) -> bool:
    """Whether the change of :func:`worst_of` is one of the set, so that the curve is that of the set itself.

    Else it is a change that is hidden worse than all of the set: the upper end of a bracket holds, the lower does not.
    """
    return law.norm == "l2" or changes.majorant(dimension) is not None


def moved_size(law: Law, changes: Changes, dimension: int) -> float:
    """Twice the most that leaves, or that enters: the l1 norm may be smaller, if the cells cannot hold all of it."""
    side = changes.side(dimension)
    if side is None:
        raise no_curve(law, changes)
    return 2.0 * side


def no_curve(law: Law, changes: Changes) -> InvalidInput:
    """The error for a set that a law has no curve for."""
    return InvalidInput(
        f"changes={changes} is not a set for which {law.kind} noise has a curve: choose other noise, or leave changes "
        "out and state a sensitivity."
    )


def entries(moves: Moves) -> Shift:
    """A change for noise that hides it worst if it is all in one entry: then its size says all."""
    return moves.sizes[0][0] if moves.count == 1 else moves


@worst_of.register(Laplace)
def _(law: Laplace, changes: Changes, dimension: int) -> Shift:
    # The overlap of two diamonds is a product of overlaps along the diagonals: it falls as two entries d1 >= d2 become
    # d1 + t and d2 - t, whatever the others do. So the change that majorizes all others is the worst.
    moves = changes.majorant(dimension)
    return changes.norm(1, dimension) if moves is None else entries(moves)


def pure_epsilon_of(law: Law, dimension: int, shift: Shift) -> float:
    """The epsilon of pure DP, rounded up: the entries of a change add up."""
    if isinstance(shift, Moves):
        return math.fsum(count * law_pure_epsilon(law, 1, size) for size, count in shift.sizes) * (1.0 + 1e-15)
    return law_pure_epsilon(law, dimension, shift)


@functools.singledispatch
def law_pure_epsilon(law: Law, dimension: int, sensitivity: float) -> float:
    """The epsilon of pure DP (delta = 0), rounded up; infinite unless a law registers otherwise."""
    return math.inf


@functools.singledispatch
def law_pure_epsilon_lower(law: Law, dimension: int, sensitivity: float) -> float:
    """No smaller epsilon is pure DP; laws whose pure epsilon is only a bound register what they can prove."""
    pure = law_pure_epsilon(law, dimension, sensitivity)
    return pure * (1.0 - 4e-15) if math.isfinite(pure) else pure


@law_delta.register(Laplace)
def _(law: Laplace, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    # In any dimension delta = 1 - exp((eps - D/b)/2): splitting an l1 shift over several coordinates never
    # raises delta. With shifts d1 >= d2, slicing the integral of min(p, e^eps q) by the loss of the second
    # coordinate gives at least e^((eps - d1 - d2)/2), the value of one coordinate shifted by d1 + d2.
    return l2.delta_bracket(dimension=1, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=tolerance)


@law_pure_epsilon.register(Laplace)
def _(law: Laplace, dimension: int, sensitivity: float) -> float:
    return _up(sensitivity / law.scale)


@law_delta.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if law.is_gaussian(dimension):
        return gaussian.gaussian_delta(math.sqrt(2.0) * sensitivity / law.scale, epsilon)
    if law.k == dimension and law.p == 1.0 and dimension <= l2.LARGEST_DIMENSION:
        return l2.delta_bracket(
            dimension=dimension, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=tolerance
        )
    return radial.RadialCurve(dimension, law.k, law.p, law.scale, sensitivity, epsilon).bracket(tolerance)


@law_pure_epsilon.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float) -> float:
    # For k = M and p <= 1 the loss (|n+v|^p - |n|^p)/s^p is at most (D/s)^p, by the triangle inequality.
    if law.k == dimension and law.p <= 1.0:
        return _up(float((sensitivity / law.scale) ** law.p))
    return math.inf


def _up(epsilon: float) -> float:
    """A computed epsilon that is not 0, rounded up."""
    return math.nextafter(epsilon * (1.0 + 1e-15), math.inf)


@functools.lru_cache(maxsize=1024)
@computable
def epsilon_of(law: Law, dimension: int, shift: Shift, delta: float) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with (epsilon, delta)-DP; infinite where there is none."""
    if isinstance(shift, Moves):
        composed: Bracket = later("epsilon of entries")(law, shift, delta)
        return composed
    pure = law_pure_epsilon(law, dimension, shift)
    if delta == 0.0:
        return Bracket(law_pure_epsilon_lower(law, dimension, shift), pure)

    def curve(epsilon: float, tolerance: float) -> Bracket:
        return delta_of(law, dimension, shift, epsilon, tolerance)

    start = curve(0.0, DEFAULT_TOLERANCE)
    if start.upper <= delta:
        return Bracket(0.0, 0.0)
    # In units of the curve's own size: the loss is about delta(0) wide when the noise is large.
    unit = min(max(start.lower, 1e-12), 1.0)

    def at(x: float, tolerance: float) -> Bracket:
        return curve(unit * math.exp(x), tolerance)

    found = invert_curve(at, delta, start=0.0, lowest=-40.0, highest=math.log(min(pure, LARGEST_EPSILON) / unit))
    lower = 0.0 if found.lower == -math.inf else unit * math.exp(found.lower)
    upper = min(unit * math.exp(found.upper) * (1.0 + 1e-15), pure)
    return Bracket(min(lower * (1.0 - 1e-15), upper), upper)


# The inverse of a falling curve known through brackets, with both ends proved.


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

    low, high = _around(excess, start, lowest, highest)
    if high == math.inf:
        return Bracket(_proved_above(curve, target, highest, 1e-3, _FINE), math.inf)
    if low == -math.inf:
        return Bracket(-math.inf, _proved_below(curve, target, high, high, 1e-3, _FINE, highest))
    root, slope = _refine(excess, low, high)
    tolerance = _near(slope)
    margin = tolerance / slope
    above = _proved_above(curve, target, root - margin, margin, tolerance)
    below = _proved_below(curve, target, above, root + margin + 1.1 * _FINE / slope, margin, tolerance, highest)
    return Bracket(above, below)


def safe_crossing(
    curve: Curve, rough: Callable[[float], float], target: float, *, start: float, lowest: float, highest: float
) -> float:
    """The upper end of :func:`invert_curve` alone; inf if there is none.

    ``rough(x)``, about the curve and proved by nothing, says where to look; two or three brackets do the rest.
    """
    goal = math.log(target)

    def excess(x: float, tolerance: float = _COARSE) -> float:
        middle = rough(x) if tolerance == _COARSE else curve(x, tolerance).middle
        return math.log(middle) - goal if middle > 0.0 else -math.inf

    low, high = _around(excess, start, lowest, highest)
    if high == math.inf:
        return math.inf
    if low == -math.inf:
        return _proved_below(curve, target, high, high, 1e-3, _FINE, highest)
    root, slope = _refine(excess, low, high)
    tolerance = _near(slope)
    margin = tolerance / slope
    safe = root + margin + (1.1 * _FINE + chords.MARGIN) / slope
    return _proved_below(curve, target, root - 2.0 * margin, safe, margin, tolerance, highest)


def _around(excess: Callable[[float], float], start: float, lowest: float, highest: float) -> tuple[float, float]:
    """Two points around a falling function's root; (highest, inf) or (-inf, a point below 0) if it is not between."""
    low = high = start
    step = 0.5
    while excess(high) > 0.0:
        if high >= highest:
            return highest, math.inf
        low, high, step = high, min(high + step, highest), 1.6 * step
    step = 0.5
    while excess(low) <= 0.0:
        if low <= lowest:
            return -math.inf, high
        high, low, step = low, max(low - step, lowest), 1.6 * step
    return low, high


def _near(slope: float) -> float:
    """How narrow a bracket has to be where the curve falls so."""
    return max(_FINE * min(1.0, slope), 0.1 * _FINE)


def _refine(excess: Callable[..., float], low: float, high: float) -> tuple[float, float]:
    """Root of a falling function and minus its slope there, both unproved.

    False position (Illinois) on coarse values until near, then secant steps on fine ones, the last of which is not
    looked at.
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
            if abs(value) < _STRAIGHT:
                return x + value / slope, slope
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
