"""The proved lower bound for an objective at sensitivity 1, steered by what the search found, and remembered."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least import store
from lessnoise.mechanism.least.bound import lower_bound, quantile_bound
from lessnoise.mechanism.least.objective import Ramp
from lessnoise.mechanism.least.search import FAILURES, LARGEST_STAIRCASE, find
from lessnoise.mechanism.least.staircase import design, solve

if TYPE_CHECKING:
    from lessnoise.mechanism.least.chain import Chain
    from lessnoise.mechanism.least.goal import Goal
    from lessnoise.mechanism.least.objective import Objective

_SHARES = (0.97, 0.94, 0.9, 0.8, 0.7, 0.5)  # of the quantile found, tried as bounds


@functools.lru_cache(maxsize=256)
def proved_bound(dimension: int, epsilon: float, delta: float, goal: Goal) -> float:
    """No additive mechanism that keeps (epsilon, delta) has a smaller loss; 0 where nothing was proved."""
    question = {"M": dimension, "epsilon": epsilon, "delta": delta, "objective": goal.name, "of": "bound"}
    kept = store.load(question)
    if kept is not None and isinstance(kept.get("bound"), float) and 0.0 <= kept["bound"] < math.inf:
        return float(kept["bound"])
    with np.errstate(all="ignore"):
        found = _compute(dimension, epsilon, delta, goal)
    store.save(question, {"bound": found})
    return found


def _compute(dimension: int, epsilon: float, delta: float, goal: Goal) -> float:
    size = math.exp(goal.log_size(find(dimension, epsilon, delta, 1.0, goal).law, dimension))
    if goal.probability is None:
        expected = size**goal.power.order
        chain = _guide(dimension, epsilon, delta, goal.power)
        return lower_bound(dimension, epsilon, delta, goal.power, chain, expected).value
    for share in _SHARES:
        ramp = Ramp(share * size, 1.05 * share * size)
        chain = _guide(dimension, epsilon, delta, ramp)
        radius = quantile_bound(dimension, epsilon, delta, goal.probability, ramp, chain)
        if radius > 0.0:
            return radius**2
    return 0.0


def _guide(dimension: int, epsilon: float, delta: float, objective: Objective) -> Chain | None:
    """A staircase near the optimum, if there is one: it says where to look, and enters no proof."""
    if dimension > LARGEST_STAIRCASE:
        return None
    try:
        return solve(design(dimension, epsilon, delta, objective))
    except FAILURES:
        return None
