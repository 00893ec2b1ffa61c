"""The least noise for a target, and how near it is to the least that can exist."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.least.design import SMALLEST_GAIN, Design, describe
from lessnoise.mechanism.least.goal import Goal
from lessnoise.mechanism.target import Target

if TYPE_CHECKING:
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.target import Shape

NAME = "least-noise"
__all__ = ["NAME", "SMALLEST_GAIN", "least_noise", "loss_lower_bound", "optimality"]


def least_noise(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    objective: str = "squared",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """The mechanism of smallest loss that we can certify for the target; never worse than the Gaussian or l2.

    ``objective`` is "squared" (the mean of ||n||^2), "l2" (the mean of ||n||) or, for instance, "quantile:0.95" (that
    quantile of ||n||^2). The law is a shell density, a radial member (k, p), or the Gaussian where less than 0.1% could
    be gained. ``optimality`` of the result says how far any additive mechanism could still be below it.

    >>> m = least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=2)
    >>> import lessnoise as ln
    >>> gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=2)
    >>> f"{m.expected_loss / gaussian.expected_loss:.4f} of the Gaussian's loss"
    "0.1668 of the Gaussian's loss"
    >>> m.check().holds
    True
    """
    from lessnoise.mechanism.least.search import find

    target, goal = Target.of(epsilon, delta, sensitivity, shape, neighbours), Goal.of(objective)
    answer = find(target.dimension, target.epsilon, target.reserved_delta, target.sensitivity, goal)
    design = Design(goal.name, describe(answer.law, target.dimension), answer.note)
    return replace(target.mechanism(NAME, answer.law, OURS), design=design)


def loss_lower_bound(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, objective: str = "squared"
) -> float:
    """A proved lower bound on the loss of every additive mechanism with the target's guarantee.

    Additive: the released value is the true one plus noise whose law does not depend on the data. The guarantee is
    against every shift of length at most ``sensitivity``.

    >>> bound = loss_lower_bound(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> best = least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=3).expected_loss
    >>> 1 <= best / bound < 1.01
    True
    """
    from lessnoise.mechanism.least.optimum import proved_bound

    target, goal = Target.of(epsilon, delta, sensitivity, shape, Neighbours.ADD_REMOVE), Goal.of(objective)
    unit = proved_bound(target.dimension, target.epsilon, target.delta, goal)
    return float(unit * target.sensitivity ** (1.0 if goal.name == "l2" else 2.0) * (1.0 - 1e-15))


def optimality(mechanism: Mechanism) -> float:
    """Loss over the least loss that any additive mechanism with the same guarantee could have, rounded up."""
    claim, law, dimension = mechanism.claim, mechanism.law, mechanism.dimension
    if claim is None or claim.delta == 0.0:
        raise InvalidInput(
            f"claim={claim} for mechanism {mechanism.name!r}: optimality is measured at a target (epsilon, delta > 0); "
            "build the mechanism for one."
        )
    if law.integer or law.norm != "l2":
        raise InvalidInput(
            f"mechanism={mechanism.name!r} has no l2 sensitivity, without which there is no optimality: compare losses."
        )
    if not mechanism.check().holds:
        raise InvalidInput(
            f"mechanism={mechanism.name!r} does not keep its claim ({claim}): there is no optimality to speak of."
        )
    objective = "squared" if mechanism.design is None else mechanism.design.objective
    goal = Goal.of(objective)
    bound = loss_lower_bound(
        epsilon=claim.epsilon,
        delta=claim.delta,
        sensitivity=mechanism.sensitivity,
        shape=mechanism.shape,
        objective=objective,
    )
    if bound <= 0.0:
        return math.inf
    return max(goal.loss_ratio(goal.log_size(law, dimension)) / bound * (1.0 + 1e-12), 1.0)
