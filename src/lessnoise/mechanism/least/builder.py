"""The least noise for a target, and how near it is to the least that can exist."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import cache
from lessnoise import noise as noise_engine
from lessnoise._later import offers
from lessnoise.changes import ball
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.least.bound import (
    LowerBound,
    count_of,
    entries_bound,
    longer,
    lower_bound,
    quantile_exceeds,
    radial_guide,
    scalar_bound,
    scalar_quantile_bound,
    shortened,
    worth,
)
from lessnoise.mechanism.least.bound.dual import TOLERANCE
from lessnoise.mechanism.least.bound.proof import Proof
from lessnoise.mechanism.least.objective import SMALLEST_GAIN, Design, Goal, Problem, Ramp
from lessnoise.mechanism.least.search import FAILURES, LARGEST_STAIRCASE, find
from lessnoise.mechanism.least.staircase import best_chain
from lessnoise.mechanism.request import Request

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.families.shells import Shells
    from lessnoise.mechanism.law import Law
    from lessnoise.mechanism.least.bound import Guide
    from lessnoise.mechanism.least.staircase_newton import Staircase
    from lessnoise.mechanism.mechanism import Mechanism


LEAST_NOISE = "least-noise"
__all__ = ["LEAST_NOISE", "SMALLEST_GAIN", "least_in_ball", "loss_lower_bound", "optimality"]


def least_in_ball(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    objective: str = "squared",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """The mechanism of smallest loss that we can certify for an l2 ball; never worse than the Gaussian or l2.

    ``objective`` is "squared" (the mean of ||n||^2), "l2" (the mean of ||n||) or, for instance, "quantile:0.95" (that
    quantile of ||n||^2). The law is a shell density, a radial member (k, p), or the Gaussian where less than 0.1% could
    be gained. ``optimality`` of the result says how far any additive mechanism could still be below it.

    >>> m = least_in_ball(epsilon=1, delta=1e-6, sensitivity=1, shape=2)
    >>> import lessnoise as ln
    >>> gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=2)
    >>> f"{m.expected_loss / gaussian.expected_loss:.4f} of the Gaussian's loss"
    "0.1668 of the Gaussian's loss"
    >>> m.check().holds
    True
    """
    target, goal = Request.of(epsilon, delta, sensitivity, shape, neighbours), Goal.of(objective)
    answer = find(target.dimension, target.epsilon, target.reserved_delta, target.sensitivity, goal)
    design = Design(goal.name, answer.law.choice(target.dimension), answer.note)
    return replace(target.mechanism(LEAST_NOISE, answer.law, OURS), design=design)


def loss_lower_bound(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, objective: str = "squared"
) -> float:
    """A proved lower bound on the loss of every additive mechanism with the target's guarantee.

    Additive: the released value is the true one plus noise whose law does not depend on the data. The guarantee is
    against every shift of length at most ``sensitivity``.

    >>> bound = loss_lower_bound(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> best = least_in_ball(epsilon=1, delta=1e-6, sensitivity=1, shape=3).expected_loss
    >>> 1 <= best / bound < 1.01
    True
    """
    target, goal = Request.of(epsilon, delta, sensitivity, shape, Neighbours.ADD_REMOVE), Goal.of(objective)
    unit = proved_bound(target.dimension, target.epsilon, target.delta, goal)
    return float(unit * target.sensitivity ** (1.0 if goal.name == "l2" else 2.0) * (1.0 - 1e-15))


@offers("optimality")
def optimality(mechanism: Mechanism) -> float:
    """Loss over the least loss that any additive mechanism with the same guarantee could have, rounded up."""
    claim, law, dimension = mechanism.claim, mechanism.law, mechanism.dimension
    if claim is None or claim.delta == 0.0:
        raise InvalidInput(
            f"claim={claim} for mechanism {mechanism.name!r}: optimality is measured at a target (epsilon, delta > 0); "
            "build the mechanism for one."
        )
    if mechanism.changes is None and (law.integer or law.norm != "l2"):
        raise InvalidInput(
            f"mechanism={mechanism.name!r} has no l2 sensitivity and names no set of changes, without which there is "
            "no optimality: use mechanism.against(changes)."
        )
    if mechanism.design is not None and mechanism.design.releases > 1:
        raise InvalidInput(
            f"releases={mechanism.design.releases}: optimality is known for one release; compare losses instead."
        )
    if not mechanism.check().holds:
        raise InvalidInput(f"mechanism={mechanism.name!r} does not keep its claim ({claim}), so it has no optimality.")
    own = least_error(law, mechanism)
    if own is not None:
        return max(mechanism.query_error / own * (1.0 + 1e-12), 1.0)
    goal = Goal.of("squared" if mechanism.design is None else mechanism.design.objective)
    changes = ball(mechanism.sensitivity) if mechanism.changes is None else mechanism.changes
    loss = goal.loss_ratio(goal.log_size(law, dimension))
    bound = set_lower_bound(changes, mechanism.shape, claim.epsilon, claim.delta, goal, loss)
    return max(loss / bound * (1.0 + 1e-12), 1.0) if bound > 0.0 else math.inf


@functools.singledispatch
def least_error(law: Law, mechanism: Mechanism) -> float | None:
    """What no mechanism with the same claim can go below in ``query_error``, for laws that are made for questions."""
    return None


def set_lower_bound(
    changes: Changes, shape: tuple[int, ...], epsilon: float, delta: float, goal: Goal, known: float = math.inf
) -> float:
    """No additive noise that keeps the target against a set of changes loses less; ``known`` is a loss that does.

    Every entry that can change alone has at least the noise of one number, and every ball in the set its own.
    """
    dimension = math.prod(shape)
    squares, radius = changes.scalar_share(dimension), changes.inner_radius(dimension)
    alone = squares * scalar_bound(epsilon, delta) * (1.0 - 1e-15) if goal.name == "squared" else 0.0
    if radius == 0.0 or alone >= _CLOSE * known:
        return alone
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": radius, "shape": shape}
    return max(alone, loss_lower_bound(**target, objective=goal.name))  # type: ignore[arg-type]


_LONGEST = 10.0  # seconds for going through a kept proof
_SHARES = (0.97, 0.94, 0.9, 0.8, 0.7, 0.5)  # of the quantile found, tried as bounds
_CLOSE = 0.99  # of the loss found: a bound in closed form that is this good ends the search
_GOOD = 0.98  # likewise, where only longer shifts can serve
_FAIR = 0.85  # likewise, where another attempt could be made
_WIDE = 16  # sensitivities: where shifts so long serve, the search for tests against short ones is in vain
_SECONDS = 4.0  # of processor time for longer shifts: next to nothing is gained later
_STEEP = 64.0  # exponent p of a radial member that is as good as uniform in a ball


@functools.lru_cache(maxsize=256)
def proved_bound(dimension: int, epsilon: float, delta: float, goal: Goal) -> float:
    """No additive mechanism that keeps (epsilon, delta) has a smaller loss; 0 where nothing was proved.

    What is kept on disk is a proof, and a bound is what going through it again gives: never a number that was read.
    """
    law = find(dimension, epsilon, _calibrated_at(delta, epsilon, dimension), 1.0, goal).law
    size, problem = math.exp(goal.log_size(law, dimension)), Problem(dimension, epsilon, delta, goal.power)
    with np.errstate(all="ignore"):
        if goal.probability is not None:
            return _quantile_bound(problem, goal.probability, size, law)
        expected = size**goal.power.order
        simple = entries_bound(problem)
        if simple >= _CLOSE * expected or (dimension == 1 and count_of(problem) > 1):  # nothing else is sharper then
            return simple
        found = bound_with_proof(problem, goal, expected, law)
    return max(found.value, simple)


def bound_with_proof(problem: Problem, goal: Goal, expected: float, law: Radial | Shells) -> LowerBound:
    """The best bound that tests against shifts give, from disk if it is there, else by search."""
    dimension, epsilon, delta, _ = problem
    question = {"M": dimension, "epsilon": epsilon, "delta": delta, "objective": goal.name, "of": "bound"}
    again = _proved_again(cache.load(question), problem)
    if again is not None and 0.0 < again.value <= expected * (1.0 + 1e-9):
        return again
    found = _compute(problem, expected, law)
    if found.proof is not None:
        cache.save(question, {"proof": found.proof.to_dict(), "count": found.count})
    return found


def _proved_again(kept: dict[str, Any] | None, problem: Problem) -> LowerBound | None:
    """The bound that a kept proof gives; None if it gives none."""
    if kept is None:
        return None
    try:
        count = int(kept.get("count", 1))
        proof = Proof.from_dict(kept["proof"], longer(problem, count))
        value = proof.loss(proof.bound(proof.minimum(TOLERANCE, seconds=_LONGEST))) * worth(problem, count)
    except (KeyError, TypeError, ValueError, ArithmeticError, IndexError, AttributeError, MemoryError):
        return None
    return LowerBound(value, "kept", math.nan, proof=proof, count=count) if math.isfinite(value) else None


def _compute(problem: Problem, expected: float, law: Radial | Shells) -> LowerBound:
    """The best of what longer shifts prove and, where the noise is not too wide for it, the shift itself."""
    count = count_of(problem)
    goal, best = _GOOD if count > _WIDE else _CLOSE, LowerBound(0.0, "none", math.nan)
    for divisor in (1, 4) if count > 1 else ():
        length = max(count // divisor, 1)
        wide, scaled = longer(problem, length), expected / worth(problem, length)
        found = lower_bound(wide, _wide_guide(wide, law, length), scaled, goal=goal, limit=_SECONDS)
        best = max(best, shortened(found, problem, length), key=lambda bound: bound.value)
        if best.value >= _FAIR * expected:
            break
    if count > _WIDE or best.value >= goal * expected:
        return best
    near = problem._replace(target=_calibrated_at(problem.target, problem.epsilon, problem.dimension))
    return max(best, lower_bound(problem, _guide(near), expected), key=lambda bound: bound.value)


def _calibrated_at(delta: float, epsilon: float, dimension: int) -> float:
    """What mechanisms are calibrated at, a hair below: what was found for them steers bounds, and is searched once."""
    return noise_engine.reserved(delta, epsilon, dimension)


def _quantile_bound(problem: Problem, probability: float, size: float, law: Radial | Shells) -> float:
    dimension, epsilon, delta, _ = problem
    simple = scalar_quantile_bound(epsilon, delta, probability) if dimension == 1 else 0.0
    count = count_of(problem)
    for share in _SHARES:
        ramp = Ramp(share * size, 1.05 * share * size)
        if simple >= ramp.start**2 or (dimension == 1 and count > 1):
            break
        wide = longer(problem._replace(objective=ramp), count)
        if quantile_exceeds(wide, probability, _guide(wide) if count == 1 else _wide_guide(wide, law, count)):
            return ramp.start**2
    return simple


def _guide(problem: Problem) -> Staircase | None:
    """A staircase near the optimum, if there is one: it says where to look, and enters no proof."""
    if problem.dimension > LARGEST_STAIRCASE:
        return None
    try:
        return best_chain(problem)
    except FAILURES:
        return None


def _wide_guide(problem: Problem, law: Radial | Shells, count: int) -> Guide | Staircase | None:
    """The same for shifts of this length: the law found says enough, unless it is itself made of many steps."""
    if isinstance(law, Radial):
        return radial_guide(law.k, law.p, law.scale / count, problem)
    if len(law.probabilities) == 1:
        return radial_guide(float(law.dimension), _STEEP, law.edges[-1] / count, problem)
    return _guide(problem)
