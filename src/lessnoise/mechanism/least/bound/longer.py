r"""Where the noise is wide beside the shifts: longer shifts say as much, and their bounds are easier to prove.

If noise keeps (epsilon, delta) against every shift of length at most 1, then against every shift of length at most j
it keeps (j epsilon, delta_j),

    delta_j = delta (1 + e^epsilon + ... + e^((j-1) epsilon)) = delta (e^(j epsilon) - 1)/(e^epsilon - 1)

(the group property: P(S) <= e^epsilon P(S + v/j) + delta, used j times). So E f(|n|) is at least what is proved for
that target, the shift 1 and the objective f(j r). While j is small beside the width s of the noise, next to nothing is
lost: the least delta against a short shift d is d/s times a function of epsilon s/d, and j times the shift, j epsilon
and j delta are the same target. j is a power of 2, so that j epsilon and radii over j are exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.least.objective import Power, Ramp

if TYPE_CHECKING:
    from lessnoise.mechanism.least.bound.proof import LowerBound
    from lessnoise.mechanism.least.objective import Objective, Problem

NARROWEST = 6.0  # Gaussian noise of this many shifts is still wide
_LARGEST_EPSILON = 0.5
_LARGEST_DELTA = 0.1


def count_of(problem: Problem) -> int:
    """The longest shift, a power of 2, beside which the noise for the problem is still wide."""
    width = gaussian.gaussian_scale(problem.epsilon, problem.target)
    most = min(width / NARROWEST, _LARGEST_EPSILON / problem.epsilon, _LARGEST_DELTA / problem.target)
    return 1 << max(math.frexp(most)[1] - 1, 0) if math.isfinite(most) else 1


def longer(problem: Problem, count: int) -> Problem:
    """What noise for the problem keeps against shifts of this length, a power of 2, in units of that length.

    >>> from lessnoise.mechanism.least.objective import Problem
    >>> longer(Problem(3, 0.25, 1e-6, Power(2.0)), 2).epsilon
    0.5
    """
    if count < 1 or count & (count - 1):
        raise ValueError(f"count={count} must be a power of 2.")
    if count == 1:
        return problem
    _, epsilon, target, objective = problem
    growth = math.expm1(count * epsilon) / math.expm1(epsilon) * (1.0 + 1e-14)
    return problem._replace(epsilon=count * epsilon, target=target * growth, objective=_seen_from(objective, count))


def _seen_from(objective: Objective, count: int) -> Objective:
    """f(count r), for powers up to the factor that ``worth`` says."""
    match objective:
        case Ramp(start, end):
            return Ramp(start / count, end / count)
        case Power():
            return objective


def worth(problem: Problem, count: int) -> float:
    """What a bound for the longer shifts is worth, rounded down: count^order for a power, 1 for a ramp."""
    objective = problem.objective
    if count == 1 or not isinstance(objective, Power):
        return 1.0
    return float(count**objective.order) * (1.0 - 1e-15)


def shortened(found: LowerBound, problem: Problem, count: int) -> LowerBound:
    """A bound proved for longer shifts, as one for the problem."""
    if count == 1:
        return found
    factor = worth(problem, count)
    return replace(
        found,
        value=found.value * factor,
        estimate=found.estimate * factor,
        method=f"{found.method} against shifts {count} times as long",
        multipliers=tuple(factor * value for value in found.multipliers),
        shifts=tuple(count * value for value in found.shifts),
        count=count,
    )
