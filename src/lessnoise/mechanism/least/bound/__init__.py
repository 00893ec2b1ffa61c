"""A proved lower bound on E f(|n|) over every additive mechanism of sensitivity 1: how far the best can be."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise.mechanism.least.bound.record import LowerBound

if TYPE_CHECKING:
    from lessnoise.mechanism.least.bound.guide import Staircase
    from lessnoise.mechanism.least.objective import Objective, Ramp

__all__ = ["LowerBound", "lower_bound", "quantile_bound"]


def lower_bound(
    dimension: int,
    epsilon: float,
    delta: float,
    objective: Objective,
    chain: Staircase | None,
    expected: float,
    *,
    goal: float = 0.993,
    limit: float = 20.0,
) -> LowerBound:
    """The best proved bound found, sharper ones tried until one reaches ``goal`` times ``expected``.

    ``chain`` (a good staircase, or None) and ``expected`` (a known mechanism's E f) only steer the search:
    whatever they are, the value returned is a lower bound. ``limit`` is in seconds of processor time, kept roughly.

    >>> from lessnoise.mechanism.least.objective import Power
    >>> bound = lower_bound(1, 0.1, 1e-6, Power(2.0), None, 200.0)
    >>> 198.0 < bound.value < 200.0  # Laplace noise of scale 10 has E n^2 = 200
    True
    """
    from lessnoise.mechanism.least.bound.search import attempts
    from lessnoise.mechanism.least.bound.simple import ball_bound

    begun = time.thread_time()
    _check(dimension, epsilon, delta, expected)
    best = ball_bound(dimension, epsilon, delta, objective)
    for attempt in attempts(dimension, epsilon, delta, objective, chain, expected, goal):
        left = limit - (time.thread_time() - begun)
        if best.value >= goal * expected or left < 0.1 * limit:
            break
        found = attempt(left)
        if found is not None and found.value > best.value:
            best = found
    return replace(best, seconds=time.thread_time() - begun)


def quantile_bound(
    dimension: int,
    epsilon: float,
    delta: float,
    probability: float,
    ramp: Ramp,
    chain: Staircase | None,
    *,
    limit: float = 5.0,
) -> float:
    """A radius below which no additive mechanism can keep |n| with the given probability: ramp.start, or 0.

    ``ramp`` is 0 up to q = ramp.start and at most 1 beyond, so P(|n| > q) >= E ramp for every law. If the least
    E ramp is proved to exceed 1 - probability, every mechanism's quantile is above q. ``chain`` is a staircase
    for this ramp, and only steers the search.
    """
    wanted = 1.0 - probability
    scale = max(float(chain.expected) if chain is not None else wanted, wanted)
    found = lower_bound(
        dimension, epsilon, delta, ramp, chain, scale, goal=min(1.001 * wanted / scale, 0.99), limit=limit
    )
    return ramp.start if found.value > wanted else 0.0


def _check(dimension: int, epsilon: float, delta: float, expected: float) -> None:
    if dimension < 1:
        raise ValueError(f"dimension={dimension} must be a positive integer.")
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError(f"epsilon={epsilon} must be positive and finite.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta} must lie strictly between 0 and 1.")
    if not (math.isfinite(expected) and expected > 0.0):
        raise ValueError(f"expected={expected} must be positive and finite: pass E f of any known mechanism.")
