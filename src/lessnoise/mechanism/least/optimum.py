"""The proved lower bound for an objective at sensitivity 1, steered by what the search found, and remembered."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.mechanism.least import store
from lessnoise.mechanism.least.bound import lower_bound, quantile_bound
from lessnoise.mechanism.least.bound.dual import TOLERANCE
from lessnoise.mechanism.least.bound.proof import Proof
from lessnoise.mechanism.least.objective import Ramp
from lessnoise.mechanism.least.search import FAILURES, LARGEST_STAIRCASE, find
from lessnoise.mechanism.least.staircase import design, solve

if TYPE_CHECKING:
    from lessnoise.mechanism.least.bound import LowerBound
    from lessnoise.mechanism.least.chain import Chain
    from lessnoise.mechanism.least.goal import Goal
    from lessnoise.mechanism.least.objective import Objective, Power

_LONGEST = 10.0  # seconds for going through a kept proof
_SHARES = (0.97, 0.94, 0.9, 0.8, 0.7, 0.5)  # of the quantile found, tried as bounds


@functools.lru_cache(maxsize=256)
def proved_bound(dimension: int, epsilon: float, delta: float, goal: Goal) -> float:
    """No additive mechanism that keeps (epsilon, delta) has a smaller loss; 0 where nothing was proved.

    What is kept on disk is a proof, and a bound is what going through it again gives: never a number that was read.
    """
    size = math.exp(goal.log_size(find(dimension, epsilon, delta, 1.0, goal).law, dimension))
    question = {"M": dimension, "epsilon": epsilon, "delta": delta, "objective": goal.name, "of": "bound"}
    with np.errstate(all="ignore"):
        if goal.probability is not None:
            return _quantile_bound(dimension, epsilon, delta, goal.probability, size)
        expected = size**goal.power.order
        again = _proved_again(store.load(question), dimension, epsilon, delta, goal.power)
        if 0.0 < again <= expected * (1.0 + 1e-9):
            return again
        found = _compute(dimension, epsilon, delta, goal.power, expected)
    if found.proof is not None:
        store.save(question, {"proof": found.proof.to_dict()})
    return found.value


def _proved_again(kept: dict[str, Any] | None, dimension: int, epsilon: float, delta: float, power: Power) -> float:
    """The bound that a kept proof gives; 0 if it gives none."""
    if kept is None:
        return 0.0
    try:
        proof = Proof.from_dict(kept["proof"], dimension, epsilon, power)
        value = proof.loss(proof.bound(delta, proof.minimum(TOLERANCE, seconds=_LONGEST)))
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError, AttributeError, MemoryError):
        return 0.0
    return value if math.isfinite(value) else 0.0


def _compute(dimension: int, epsilon: float, delta: float, power: Power, expected: float) -> LowerBound:
    chain = _guide(dimension, epsilon, delta, power)
    return lower_bound(dimension, epsilon, delta, power, chain, expected)


def _quantile_bound(dimension: int, epsilon: float, delta: float, probability: float, size: float) -> float:
    for share in _SHARES:
        ramp = Ramp(share * size, 1.05 * share * size)
        chain = _guide(dimension, epsilon, delta, ramp)
        radius = quantile_bound(dimension, epsilon, delta, probability, ramp, chain)
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
