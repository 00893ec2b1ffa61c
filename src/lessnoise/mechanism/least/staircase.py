"""The best staircase: which start, which phase, which ends; Newton does the rest."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.least.initial_guesses import (
    CORE,
    MAX_STEPS,
    Start,
    TooManySteps,
    begin,
    cut_start,
    march_core,
    tail_start,
)
from lessnoise.mechanism.least.staircase_newton import Staircase, ball_weights, evaluate, newton

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Problem

_MAX_TERMS = 10 * MAX_STEPS  # on the line, of which most are cut off


@functools.lru_cache(maxsize=16)
def best_chain(asked: Problem) -> Staircase:
    """The best chain found for what is asked, a hair below its epsilon; mechanisms and bounds both begin with it."""
    return solve(design(asked))


def solve(problem: Problem, *, phases: int = 14) -> Staircase:
    """The best chain found for sensitivity 1."""
    dimension, epsilon, target, _ = problem
    if dimension == 1:
        return _solve_line(problem)
    smallest = min(0.02, 0.4 * math.exp(-epsilon / (dimension + 2)))
    power, guess = _best_power(problem)
    starts: list[Start] = []
    for first in np.geomspace(smallest, 1.1, phases) if power else ():
        try:
            start = tail_start(problem, float(first), guess, power)
        except TooManySteps:
            continue
        starts.append(start)
        guess = 0.9 * start.width
        if len(starts) == 3 and (len(start.radii) > 200 or (_spread(starts) < 1e-4 and start.radii[0] > 1.2)):
            break  # the core is empty, or the steps are many: the phase cannot matter
    found: list[Staircase] = []
    if starts:
        starts.sort(key=lambda start: start.cost)
        if _spread(starts) > 1e-4 and len(starts[0].radii) < 200:
            found += _best_phase(problem, starts)
        if not found:
            found += _smooth(problem, starts[0])
    if not found or not usable(found[0], target) or found[0].expected > 1.001 * starts[0].cost:
        if starts:
            found.append(_plain(problem, starts[0]))
        if not starts or len(starts[0].radii) < 200 or epsilon < 5.0 * target:
            found += _cut_chains(problem)
    if not found:
        raise TooManySteps("too many steps")
    return min(found, key=lambda chain: chain.expected)


def _solve_line(problem: Problem) -> Staircase:
    """On the line, full steps of length 1, the last one short: it follows from delta, which is linear in it."""
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
    return Staircase(1, epsilon, best, np.zeros(len(best) - 1), 0.0, expected, expected, delta, 0.0, 0)


def _best_power(problem: Problem) -> tuple[float, float]:
    """The power p in {1, 2, 4} of the cheapest chain, and its width (0 if none fits)."""
    tries = []
    for power in (1.0, 2.0, 4.0):
        try:
            start = tail_start(problem, 0.5, 0.5, power)
        except TooManySteps:
            continue
        tries.append((start.cost, power, 0.9 * start.width))
    if not tries:
        return 0.0, 0.5
    _, power, guess = min(tries)
    return power, guess


def _spread(starts: list[Start]) -> float:
    values = [start.cost for start in starts]
    return (max(values) - min(values)) / min(values)


def usable(chain: Staircase, target: float) -> bool:
    """Newton has converged to rising radii."""
    return chain.residual < 1e-5 and abs(chain.delta / target - 1.0) < 1e-3 and bool(np.all(np.diff(chain.radii) > 0.0))


def _newton_core(problem: Problem, start: Staircase) -> Staircase:
    """Newton; where it fails because the core has a step too many, again without the smallest ball."""
    chain = newton(problem, start)
    for _ in range(3):
        if chain.residual < 1e-6 or not (start.pin > 0 and (chain.radii[0] < 0.2 or start.radii[0] < 0.2)):
            break
        start = replace(start, radii=start.radii[1:], sigma=start.sigma[1:], pin=start.pin - 1)
        chain = newton(problem, start)
    return chain


def _longer_core(problem: Problem, chain: Staircase) -> Staircase | None:
    """More steps inwards where the chain starts at a radius that still carries mass; None if it does not."""
    radii = chain.radii
    log_mass = problem.dimension * np.log(radii) - problem.epsilon * np.arange(len(radii))
    step = float(radii[1] - radii[0])
    room = int(radii[0] / step) - 1
    excess = float(log_mass[0] - log_mass.max()) - (math.log(problem.target) - 0.5 * CORE)
    if excess <= 0.0 or room < 1 or len(radii) >= MAX_STEPS:
        return None
    ahead = min(max(len(radii) // 50, 1), chain.pin) or 1
    gain = max(float(log_mass[ahead] - log_mass[0]) / ahead, 1e-9)  # per step
    count = min(room, math.ceil((excess + 0.5 * CORE) / gain), len(radii) + 10)
    # Steps grow inwards as those at the start do.
    inner = radii[0] - step * np.arange(count, 0, -1)
    sigma = np.full(count, float(chain.sigma[min(3, len(chain.sigma) - 1)]))
    return replace(
        chain, radii=np.concatenate([inner, radii]), sigma=np.concatenate([sigma, chain.sigma]), pin=chain.pin + count
    )


def _smooth(problem: Problem, start: Start) -> list[Staircase]:
    """One phase is as good as another: one Newton run."""
    plain = begin(problem, start.radii)
    marched = begin(problem, march_core(problem, plain))
    marched = replace(marched, log_multiplier=plain.log_multiplier, level=plain.level)
    for first in (marched, plain):
        chain = _newton_core(problem, first)
        for _ in range(3):
            if not usable(chain, problem.target):
                break
            longer = _longer_core(problem, chain)
            if longer is None:
                return [replace(chain, smooth=True)]
            extended = newton(problem, longer)
            if not usable(extended, problem.target):
                return [replace(chain, smooth=True)]
            chain = extended
        if usable(chain, problem.target):
            return [replace(chain, smooth=True)]
    return [replace(plain, smooth=True)]


def _best_phase(problem: Problem, starts: list[Start]) -> list[Staircase]:
    """Minimise over the pinned radius, Newton for the rest, from the most promising starts."""
    from scipy.optimize import minimize_scalar

    best: Staircase | None = None
    tried: list[float] = []
    for start in starts:
        first = float(start.radii[0])
        if any(abs(math.log(first / other)) < 0.35 for other in tried):
            continue
        tried.append(first)
        if len(tried) > 3:
            break
        begun = begin(problem, start.radii)
        chain = _newton_core(problem, begun)
        if not usable(chain, problem.target):
            continue
        memory = {"chain": chain}

        def at(
            offset: float, memory: dict[str, Staircase] = memory, origin: float = float(chain.radii[chain.pin])
        ) -> float:
            base = memory["chain"]
            move = origin + offset - base.radii[base.pin]
            if base.radii[0] + move <= 0.0:
                return 1e3 * base.expected
            found = newton(problem, replace(base, radii=base.radii + move))
            if not usable(found, problem.target):
                return 1e3 * base.expected
            memory["chain"] = found
            if found.expected < memory.get("best", base).expected:
                memory["best"] = found
            return found.expected

        span = min(0.35 * first, 0.2)
        minimize_scalar(at, bounds=(-span, span), method="bounded", options={"xatol": 1e-4 * first, "maxiter": 25})
        found = memory.get("best", chain)
        if best is None or found.expected < best.expected:
            best = found
    return [best] if best is not None else []


def _plain(problem: Problem, start: Start) -> Staircase:
    """The start itself, as a chain that no Newton step has touched."""
    chain = begin(problem, start.radii)
    return replace(chain, radii=start.radii, expected=start.cost, delta=problem.target)


def _cut_chains(problem: Problem) -> list[Staircase]:
    """Chains that end early: nearly pure (full steps), or epsilon small beside delta."""
    dimension, epsilon, target, _ = problem
    found: list[Staircase] = []
    starts: list[Start] = []
    smallest = min(0.02, 0.4 * math.exp(-epsilon / (dimension + 2)))
    loose = epsilon < 5.0 * target
    firsts = np.geomspace(0.5, 0.3 / target, 8) if loose else np.geomspace(smallest, 1.2, 16)
    widths = [(1.0, width) for width in (1.0, 0.97, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15)]
    if loose:
        widths += [(2.0, math.sqrt(0.5 * width / target)) for width in (0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6)]
    for power, width in widths:
        best: Start | None = None
        for first in firsts:
            try:
                start = cut_start(problem, float(first), width, power=power, fit=False)
            except TooManySteps:
                continue
            if start is not None and (best is None or start.cost < best.cost):
                best = start
        if best is not None:
            starts.append(best)
            if width == 1.0 and not loose:
                polished = _polish_cut(problem, best)
                found.append(_plain(problem, polished))
    for start in sorted(starts, key=lambda item: item.cost)[:3]:
        chain = newton(problem, begin(problem, start.radii))
        found.append(chain if usable(chain, problem.target) else _plain(problem, start))
    return found


def _polish_cut(problem: Problem, start: Start) -> Start:
    """The best first radius of a chain of full steps."""
    from scipy.optimize import minimize_scalar

    best = start

    def cost(log_first: float) -> float:
        nonlocal best
        trial = cut_start(problem, math.exp(log_first), 1.0)
        if trial is None:
            return 1e3 * start.cost
        if trial.cost < best.cost:
            best = trial
        return trial.cost

    centre = math.log(float(start.radii[0]))
    minimize_scalar(cost, bounds=(centre - 0.3, centre + 0.3), method="bounded", options={"xatol": 1e-5})
    return best


def blended(problem: Problem, chain: Staircase, phases: int) -> Shells:
    """A mixture of staircases whose steps sit at evenly spread phases.

    Between them heights still fall by e^eps from step to step, so each orbit of heights is the chain of one phase, and
    mass, loss and delta(eps) are averages over the phases. Where the phase hardly matters the mixture costs the same at
    the target, and at every other epsilon its curve is far better: a single staircase has all its losses at multiples
    of eps, which compose badly.
    """
    step = float(chain.radii[chain.pin + 1] - chain.radii[chain.pin])
    found = [chain]
    for _ in range(phases - 1):
        moved = replace(found[-1], radii=found[-1].radii + step / phases)
        after = newton(problem, moved)
        if not usable(after, problem.target):
            break
        found.append(after)
    every = np.concatenate([one.radii for one in found])
    weights = np.concatenate([ball_weights(one.dimension, one.epsilon, one.radii) for one in found])
    radii, place = np.unique(every, return_inverse=True)
    return _of_balls(problem.dimension, radii, np.bincount(place, weights) / len(found))


def _of_balls(dimension: int, radii: Array, weights: Array) -> Shells:
    """The shells of a mixture of centred uniform balls."""
    log_volume = dimension * np.log(radii / radii[-1])
    with np.errstate(divide="ignore"):
        heights = np.logaddexp.accumulate((np.log(weights) - log_volume)[::-1])[::-1]
        thickness = -np.expm1(dimension * np.log1p((np.append(0.0, radii[:-1]) - radii) / radii))
        log_mass = heights + log_volume + np.log(thickness)
    kept = int(np.argmax(log_mass > log_mass.max() - 680.0))
    mass = np.exp(log_mass[kept:] - log_mass.max())
    return Shells(dimension, (0.0, *radii[kept:].tolist()), tuple((mass / math.fsum(mass)).tolist()))


def design(problem: Problem) -> Problem:
    """The problem a hair below epsilon, so that rounding of the heights cannot break the ties h(a) = e^eps h(b)."""
    dimension, epsilon, _, _ = problem
    size = epsilon * MAX_STEPS + dimension * 20.0 + 2000.0
    slack = 2.0**-52 * (40.0 * dimension + 40.0 * size + 20.0 * MAX_STEPS)
    if slack > 0.5 * epsilon:
        raise TooManySteps("the steps of so small an epsilon drown in rounding")
    return problem._replace(epsilon=epsilon - slack)
