"""The least noise on a cube or a corner body: which power, or which staircase, has the smallest loss at a target."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.changes import Ball, Box, Changes, Corner, Scaled, read_changes
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import attained, law_delta, no_curve, worst_of
from lessnoise.mechanism.families.norm_bodies import CORNER, CUBE, size_of
from lessnoise.mechanism.families.norm_loss import log_radius_moment
from lessnoise.mechanism.families.norm_radial import NormRadial, Slices
from lessnoise.mechanism.families.norm_staircase import SMALLEST_RATE, NormStaircase
from lessnoise.mechanism.numerics import sufficient_scale
from lessnoise.mechanism.request import Request, representable

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Shape
    from lessnoise.mechanism.mechanism import Mechanism

_LARGEST_SEARCH = 10_000  # entries; beyond, no power gains a tenth of a percent over 1
_FIRST_STEP = 0.002  # of ln p
_LARGEST_LOG_POWER = 3.0


@attained.register(NormRadial)
@attained.register(NormStaircase)
def _(law: NormRadial | NormStaircase, changes: Changes, dimension: int) -> bool:
    return True  # other sets have no curve


@worst_of.register(NormRadial)
@worst_of.register(NormStaircase)
def _(law: NormRadial | NormStaircase, changes: Changes, dimension: int) -> float:
    size = size_of(law, changes, dimension)
    if size is None:
        raise no_curve(law, changes)
    return size


def norm_radial(
    *,
    epsilon: float,
    delta: float,
    shape: Shape,
    changes: Changes,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Noise in the shape of what one individual can change: for few bounded sums much less than a Gaussian's.

    ``changes`` is a box or an l-infinity ball (bounded entries that move both ways: an individual is replaced) or a
    corner (entries that all move one way: an individual is added or removed). The power of the density, or a staircase,
    is the one with the least E||n||^2; the scale is the smallest whose exact curve keeps the target.

    >>> import lessnoise as ln
    >>> m = norm_radial(epsilon=1, delta=1e-6, shape=10, changes=ln.changes.ball(1, norm=math.inf))
    >>> round(m.expected_loss / 10), round(10 * ln.analytic_gaussian(
    ...     epsilon=1, delta=1e-6, sensitivity=10**0.5, shape=10).standard_deviation ** 2 / 10)
    (44, 178)
    >>> m = norm_radial(epsilon=1, delta=1e-6, shape=10, changes=ln.changes.corner(1.0))
    >>> round(m.expected_loss / 10), m.check().holds
    (26, True)
    """
    found = read_changes(changes)
    target = Request(epsilon, delta, None, shape, neighbours, changes=found)  # type: ignore[arg-type]  # it converts
    body, factors = body_of(found)
    law = NormRadial(body, 1.0, 1.0, factors)
    size = worst_of(law, found, target.dimension)
    assert isinstance(size, float)
    with representable(epsilon=target.epsilon, sensitivity=size):
        best = _least(body, target.dimension, target.epsilon, target.reserved_delta)
        chosen = _stretched(best, size, factors, target)
    return target.mechanism(chosen.kind, chosen, OURS)


def body_of(changes: Changes) -> tuple[str, tuple[float, ...]]:
    """The body that the set is a multiple of, and the factors that stretch it: bounds over the largest."""
    if isinstance(changes, Scaled):
        return body_of(changes.changes)
    if isinstance(changes, Ball) and changes.order == math.inf:
        return CUBE, ()
    if isinstance(changes, (Box, Corner)):
        body = CORNER if isinstance(changes, Corner) else CUBE
        if not isinstance(changes.bounds, tuple) or min(changes.bounds) == max(changes.bounds):
            return body, ()
        largest = max(changes.bounds)
        return body, tuple(bound / largest for bound in changes.bounds)
    raise InvalidInput(
        f"changes={changes} is neither a box nor a corner: use changes.box(bounds), changes.corner(bounds), or "
        "least_noise."
    )


def _stretched(
    best: NormRadial | NormStaircase, size: float, factors: tuple[float, ...], target: Request
) -> NormRadial | NormStaircase:
    """The law found for a sensitivity of 1, at the size asked for; the rounding of the product is made good for."""
    if isinstance(best, NormStaircase):
        return replace(best, width=size, factors=factors)
    law, step = replace(best, scale=best.scale * size, factors=factors), 1e-15
    if best.power == 1.0 and best.scale * target.epsilon >= 1.0:
        scale = sufficient_scale(law.scale, target.epsilon, Fraction(size))  # pure
        return replace(law, scale=scale)
    while law_delta(law, target.dimension, size, target.epsilon, 0.0).upper > target.reserved_delta:
        law, step = replace(law, scale=law.scale * (1.0 + step)), 2.0 * step
    return law


@functools.lru_cache(maxsize=256)
def _least(body: str, dimension: int, epsilon: float, delta: float) -> NormRadial | NormStaircase:
    """For a sensitivity of 1: the law with the least mean squared radius, on which the whole loss depends."""
    found: list[NormRadial | NormStaircase] = [_power_one(body, dimension, epsilon, delta)]
    if dimension <= _LARGEST_SEARCH:
        found.append(_best_power(body, dimension, epsilon, delta))
    steps = _best_staircase(body, dimension, epsilon)
    if steps is not None:
        found.append(steps)
    return min(found, key=lambda law: log_radius_moment(law, dimension, 1))


# The power.


def _power_one(body: str, dimension: int, epsilon: float, delta: float) -> NormRadial:
    # For the cube delta = 1 - exp((eps - 1/s)/2); for any body that is an upper bound.
    start = 1.0 / (epsilon - 2.0 * math.log1p(-delta))
    if body == CUBE or dimension == 1:
        return _proved(NormRadial(body, 1.0, min(start, 1.0 / epsilon)), dimension, epsilon, delta)
    root = _scale(body, dimension, 1.0, epsilon, delta, math.log(0.05 * start), math.log(start))
    return _proved(NormRadial(body, 1.0, root or start), dimension, epsilon, delta)


def _best_power(body: str, dimension: int, epsilon: float, delta: float) -> NormRadial:
    """By golden sections in ln p: from 1 on the loss falls and then rises."""

    def loss(log_power: float) -> float:
        power = math.exp(log_power)
        scale = _power_scale(body, dimension, power, epsilon, delta)
        return math.inf if scale is None else log_radius_moment(NormRadial(body, power, scale), dimension, 1)

    first = loss(0.0)
    if not loss(_FIRST_STEP) < first:
        return _power_one(body, dimension, epsilon, delta)
    best = math.exp(_golden(loss, 0.0, _LARGEST_LOG_POWER, 0.01))
    scale = _power_scale(body, dimension, best, epsilon, delta)
    if scale is None:
        return _power_one(body, dimension, epsilon, delta)
    return _proved(NormRadial(body, best, scale), dimension, epsilon, delta)


def _power_scale(body: str, dimension: int, power: float, epsilon: float, delta: float) -> float | None:
    # The usual radius is near M/eps, whatever the power.
    shape = (dimension + power) / power
    usual = math.log((dimension + 1.0) / (epsilon - 2.0 * math.log1p(-delta))) - math.log(shape) / power
    return _scale(body, dimension, power, epsilon, delta, usual - 3.0, usual + 4.0)


def _scale(
    body: str, dimension: int, power: float, epsilon: float, delta: float, low: float, high: float
) -> float | None:
    """The scale at which the curve meets delta, unproved; None if it lies outside."""
    from scipy.optimize import brentq

    def excess(log_scale: float) -> float:
        value = Slices(body, dimension, power, math.exp(-log_scale), epsilon).estimate()
        return math.log(max(value, 1e-300) / delta)

    if excess(low) < 0.0 or excess(high) > 0.0:
        return None
    return math.exp(float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))


def _proved(law: NormRadial, dimension: int, epsilon: float, delta: float) -> NormRadial:
    """The scale widened until the upper end of the curve is within the target; power 1 is pure from 1/epsilon on."""
    step = 1e-14
    pure = sufficient_scale(1.0 / epsilon, epsilon, Fraction(1))
    while law_delta(law, dimension, 1.0, epsilon, 0.0).upper > delta:
        law, step = replace(law, scale=law.scale * (1.0 + step)), 2.0 * step
        if law.power == 1.0 and law.scale >= pure:
            return replace(law, scale=pure)
    return law


# The staircase.


def _best_staircase(body: str, dimension: int, epsilon: float) -> NormStaircase | None:
    """Pure, so that delta is left unspent: worth it where epsilon is large. One step is 1/r of the radius r = M/eps."""
    if not max(SMALLEST_RATE, 1e-4 * dimension) < epsilon <= 700.0:
        return None

    def loss(share: float) -> float:
        return log_radius_moment(NormStaircase(body, epsilon, share, 1.0), dimension, 1)

    shares = np.linspace(0.02, 1.0, 50)
    near = float(shares[int(np.argmin([loss(float(share)) for share in shares]))])
    best = _golden(loss, max(near - 0.02, 1e-6), min(near + 0.02, 1.0), 1e-5)
    return NormStaircase(body, epsilon, best, 1.0)


def _golden(function: Callable[[float], float], low: float, high: float, width: float) -> float:
    """Where a function that falls and then rises is least, within ``width``."""
    share = 0.5 * (math.sqrt(5.0) - 1.0)
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > width:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = function(right)
    return left if at_left <= at_right else right
