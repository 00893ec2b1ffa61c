"""A proved lower bound on E f(|n|) over every additive mechanism of sensitivity 1: how far the best can be."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.least.bound.averages import smooth_grid, staircase_grid
from lessnoise.mechanism.least.bound.dual import Dual, solve
from lessnoise.mechanism.least.bound.guide import Guide, gaussian_guide, staircase_guide
from lessnoise.mechanism.least.bound.line import lattice_bound, rearrangement_bound, shorter_shifts_bound
from lessnoise.mechanism.least.bound.proof import LowerBound
from lessnoise.mechanism.least.objective import Power, Problem
from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise.mechanism.least.bound.averages import NodeGrid
    from lessnoise.mechanism.least.staircase_newton import Staircase

    Attempt = Callable[[float], LowerBound | None]


def lower_bound(
    problem: Problem, chain: Staircase | Guide | None, expected: float, *, goal: float = 0.993, limit: float = 20.0
) -> LowerBound:
    """The best proved bound found, sharper ones tried until one reaches ``goal`` times ``expected``.

    ``chain`` (a good staircase, the guide of another good law, or None) and ``expected`` (a known mechanism's E f) only
    steer the search: whatever they are, the value returned is a lower bound. ``limit`` is in seconds of processor time,
    kept roughly.

    >>> bound = lower_bound(Problem(1, 0.1, 1e-6, Power(2.0)), None, 200.0)
    >>> 198.0 < bound.value < 200.0  # Laplace noise of scale 10 has E n^2 = 200
    True
    """
    begun = time.thread_time()
    _check(problem, expected)
    best = ball_bound(problem)
    for attempt in attempts(problem, chain, expected, goal):
        left = limit - (time.thread_time() - begun)
        if best.value >= goal * expected or left < 0.1 * limit:
            break
        found = attempt(left)
        if found is not None and found.value > best.value:
            best = found
    return replace(best, seconds=time.thread_time() - begun)


def quantile_exceeds(
    problem: Problem, probability: float, chain: Staircase | Guide | None, *, limit: float = 5.0
) -> bool:
    """Whether no additive mechanism can keep |n| below q with the given probability: its quantile is above q.

    The problem's objective is a ramp, 0 up to q = ramp.start and at most 1 beyond, so P(|n| > q) >= E ramp for every
    law. If the least E ramp is proved to exceed 1 - probability, every mechanism's quantile is above q. ``chain`` is a
    staircase for this ramp, and only steers the search.
    """
    wanted = 1.0 - probability
    scale = max(float(chain.expected) if chain is not None else wanted, wanted)
    found = lower_bound(problem, chain, scale, goal=min(1.001 * wanted / scale, 0.99), limit=limit)
    return found.value > wanted


def _check(problem: Problem, expected: float) -> None:
    dimension, epsilon, delta, _ = problem
    if dimension < 1:
        raise ValueError(f"dimension={dimension} must be a positive integer.")
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise ValueError(f"epsilon={epsilon} must be positive and finite.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta={delta} must lie strictly between 0 and 1.")
    if not (math.isfinite(expected) and expected > 0.0):
        raise ValueError(f"expected={expected} must be positive and finite: pass E f of any known mechanism.")


_LARGEST = 20_000  # beyond, a bound for fewer dimensions serves
_ENOUGH = 10_000
_FINEST = 640


def attempts(problem: Problem, chain: Staircase | Guide | None, expected: float, goal: float) -> Iterator[Attempt]:
    """Functions of the time left, each of which may find a bound."""
    if problem.dimension == 1:
        yield from _line(problem, chain, expected)
        return
    if problem.dimension > _LARGEST and isinstance(problem.objective, Power):
        yield lambda left: from_fewer(problem, _ENOUGH, goal, left)
    yield from _caps(problem, chain, expected, goal)
    if isinstance(problem.objective, Power):
        yield lambda left: from_fewer(problem, 1, goal, left)


def line_reach(epsilon: float, delta: float) -> float:
    """Where a truncated Laplace density with this delta ends."""
    return math.log1p(math.expm1(min(epsilon, 600.0)) / (2.0 * delta)) / epsilon + 1.0


def _line(problem: Problem, chain: Staircase | Guide | None, expected: float) -> Iterator[Attempt]:
    epsilon = problem.epsilon
    reach = line_reach(epsilon, problem.target)
    if epsilon < 0.7:
        yield lambda left: lattice_bound(problem, expected, reach)
    if epsilon > 0.4:
        cells = 20_000 if epsilon < 6.0 else 100_000
        yield lambda left: rearrangement_bound(problem, expected, reach, cells=cells)
    if 0.3 < epsilon < 8.0:
        gamma = float(chain.radii[0]) if chain is not None else 0.5
        fine = round(min(max(80.0 * epsilon, 40.0), 64.0))
        yield lambda left: shorter_shifts_bound(problem, expected, gamma, reach, per_unit=fine, limit=left)
    if epsilon >= 0.7:
        yield lambda left: lattice_bound(problem, expected, reach)


def from_fewer(problem: Problem, fewer: int, goal: float, limit: float) -> LowerBound:
    """A bound from one for fewer dimensions, for powers.

    Any m of the M entries of N are (epsilon, delta)-private noise in R^m, and |N|^2 is M/m times the mean of |N_S|^2
    over the sets S of m entries. For order p <= 2, t -> t^(p/2) is concave, so |N|^p >= (M/m)^(p/2) times the mean of
    |N_S|^p; for p > 2 Jensen's inequality gives E |N|^p >= (E |N|^2)^(p/2).
    """
    dimension, epsilon, delta, objective = problem
    assert isinstance(objective, Power)
    order = min(objective.order, 2.0)
    part = Problem(fewer, epsilon, delta, Power(order))
    known = gaussian_guide(part).expected if fewer > 1 else gaussian.gaussian_scale(epsilon, delta) ** order
    found = lower_bound(part, None, known, goal=goal, limit=limit)
    factor = (dimension / fewer) ** (0.5 * order)
    value = (found.value * factor * (1.0 - 1e-14)) ** (objective.order / order) * (1.0 - 1e-13)
    return replace(
        found,
        value=value,
        estimate=(found.estimate * factor) ** (objective.order / order),
        method=f"{found.method} in {fewer} dimensions",
        proof=None,
    )


def _caps(problem: Problem, chain: Staircase | Guide | None, expected: float, goal: float) -> Iterator[Attempt]:
    if chain is not None and len(chain.radii) < 3:
        chain = None  # too short to say anything
    if isinstance(chain, Guide):
        guide = chain
    else:
        guide = gaussian_guide(problem) if chain is None else staircase_guide(chain, problem)
    steps = len(guide.radii)

    def stairs() -> Iterator[Attempt]:
        fine = 8 if steps < 12 else 6
        plans = [(5, 10)] if steps > 30 else [(fine, 11), (fine, 18), (fine + 6, 16)]
        for per_step, levels in plans:
            grid = staircase_grid(guide, per_step=per_step, levels=levels)
            yield lambda left, grid=grid: caps_bound(guide, grid, left)  # type: ignore[misc]

    def smooth(count: int) -> Iterator[Attempt]:
        # The loss falls about as 1/count: the first program says how many nodes the goal needs.
        estimates: list[float] = []

        def attempt(count: int, levels: int, wide: bool, left: float) -> LowerBound | None:
            found = caps_bound(guide, smooth_grid(guide, count=count, levels=levels, wide=wide), left)
            estimates.append(found.estimate / expected if found is not None else math.nan)
            return found

        levels, wide = 16, chain is None or isinstance(chain, Guide)
        while count <= _FINEST:
            yield lambda left, n=count, k=levels, w=wide: attempt(n, k, w, left)  # type: ignore[misc]
            if math.isnan(estimates[-1]) and levels > 10:  # the solver gave up: an easier program
                estimates.pop()
                levels = 10
                continue
            if not wide and not estimates[-1] > 0.8:  # the guide's caps are not the ones needed
                wide = True
                estimates.clear()
                continue
            if len(estimates) > 1 and estimates[-1] - estimates[-2] < 0.1 * (goal - estimates[-1]):
                return  # what is lacking is not nodes
            lacking = (1.0 - estimates[-1]) / (1.0 - min(goal, 0.999))
            factor = min(max(1.7 * lacking, 2.0), 11.0) if math.isfinite(lacking) else 2.0
            if count < _FINEST < factor * count:
                factor = _FINEST / count
            count = round(factor * count)
            levels = 20 if count < 400 else 12  # many nodes and many levels are too much for the solver

    few = steps <= (60 if problem.dimension < 5 else 12)
    if few or (not guide.smooth and steps <= 60):
        yield from stairs()
        if steps > 12:
            yield from smooth(200 if not guide.smooth else 60)
    else:
        yield from smooth(60)
        if steps <= 100:
            yield from stairs()


def caps_bound(guide: Guide, grid: NodeGrid, limit: float) -> LowerBound | None:
    """The bound of cap tests on one grid."""
    found = solve(Dual(guide, grid), limit=limit)
    if found is None:
        return None
    value, estimate, proof = found
    scale = guide.expected
    return LowerBound(
        proof.loss(value),
        "caps",
        estimate * scale,
        tuple(scale * multiplier for multiplier in proof.multipliers()),
        tuple(table.shift for table in proof.tables),
        proof=proof,
    )


def ball_bound(problem: Problem) -> LowerBound:
    r"""The best of some bounds in closed form, never sharp and never vacuous, on a grid of rho and s.

    Take v uniform in the shell s <= |v| <= 1 and the test phi(n) = 1{|n| <= rho}, rho < s/2. For any point m, the
    shifted m - v lies in the ball of radius rho with probability at most C, and only if |m| >= s - rho:

    * shell of positive thickness: C = rho^M/(1 - s^M), ratio of the volumes;
    * s = 1: C is the largest fraction of the unit sphere inside a ball of radius rho, the cap with sine rho
      (1/2 on the line).

    So P(|N| <= rho) - delta <= e^eps C P(|N| >= s - rho). With x = P(|N| > rho) and y = P(|N| >= s - rho) <= x this
    reads 1 - x - delta <= e^eps C y, and E f >= f(rho) (x - y) + f(s - rho) y. The least value of that linear program
    is at one of its two corners, y = 0 or x = y: E f >= (1 - delta) min{f(rho), f(s - rho)/(1 + e^eps C)}.
    """
    begun = time.thread_time()
    dimension, epsilon, delta, objective = problem
    best, at = 0.0, 1.0
    ratio = np.geomspace(1e-6, 0.4999, 400)
    for s in (1.0, 0.99, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5):
        rho = s * ratio
        if s == 1.0 and dimension > 1:
            log_c = np.log(np.maximum(Sphere(dimension).cap(np.sqrt(1.0 - rho**2), rho**2), 1e-300))
        elif s == 1.0:
            log_c = np.full_like(rho, math.log(0.5))
        else:
            log_c = dimension * np.log(rho) - math.log(-math.expm1(dimension * math.log(s)))
        share = np.exp(-np.logaddexp(0.0, epsilon + log_c))
        value = np.minimum(objective.value(rho), objective.value(s - rho) * share)
        if float(value.max()) > best:
            best, at = float(value.max()), s
    return LowerBound((1.0 - delta) * best * (1.0 - 1e-9), "ball", best, (), (at,), time.thread_time() - begun)
