"""The best staircase on the line: full steps of length 1, the last one short."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.initial_guesses import MAX_STEPS, TooManySteps
from lessnoise.mechanism.least.staircase_newton import Chain, evaluate

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism.least.staircase_newton import Problem


_MAX_TERMS = 10 * MAX_STEPS  # of which most are cut off


def solve_line(problem: Problem) -> Chain:
    """The best first radius; the last one follows from delta, which is linear in it."""
    from scipy.optimize import minimize_scalar

    _, epsilon, target, _ = problem
    q = math.exp(-epsilon)
    p = -math.expm1(-epsilon)

    def radii(first: float) -> Array:
        # delta Z = p q^(K-2) (rho_{K-2} + 1 - R) + q^(K-1), linear in the last radius R.
        longest = int((math.log(max(p, 1e-300) / target) + 40.0) / epsilon) + 20 if p > target * 1e-3 else 20
        longest = min(longest, int(0.5 / target) + 20)
        if longest > _MAX_TERMS:
            raise TooManySteps("too many steps")
        k = np.arange(longest)
        rho = first + k
        inner = np.cumsum(q**k * rho) * p
        weight = q**k  # q^(K-2) for K-2 = k
        last = (p * weight * (rho + 1.0) + weight * q - 2.0 * target * inner) / (weight * (2.0 * target * q + p))
        fits = np.nonzero(last <= rho + 1.0)[0]
        at = int(fits[0]) if len(fits) else longest - 1
        single = 0.5 / target
        if at == 0 and single <= first:
            return np.array([single])
        if last[at] <= rho[at]:
            return np.append(rho[:at], rho[at] + 1e-9) if at else np.array([single])
        return np.append(rho[: at + 1], last[at])

    def cost(first: float) -> float:
        return evaluate(problem, radii(first))[0]

    grid = np.concatenate([np.geomspace(1e-4, 0.05, 10), np.linspace(0.06, 1.0, 48)])
    if epsilon < 20.0 * target:  # a flat core pays when delta is large beside epsilon
        grid = np.concatenate([grid, np.geomspace(1.05, 0.499 / target, 40)])
    values = [cost(float(x)) for x in grid]
    i = int(np.argmin(values))
    found = minimize_scalar(
        cost, bounds=(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]), method="bounded", options={"xatol": 1e-7}
    )
    first = float(found.x) if found.fun < values[i] else float(grid[i])
    best = radii(first)
    if len(best) > MAX_STEPS:
        raise TooManySteps(f"{len(best)} steps")
    expected, delta = evaluate(problem, best)
    return Chain(1, epsilon, best, np.zeros(len(best) - 1), 0.0, expected, expected, delta, 0.0, 0)
