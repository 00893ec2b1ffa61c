"""Starting points for Newton: chains rho_k^p = rho_0^p + k c^p, the staircase form of exp(-(r/s)^p)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.sphere import Sphere
from lessnoise.mechanism.least.staircase_newton import Staircase, ball_weights, evaluate, lunes

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Problem


MAX_STEPS = 6_000
TAIL = 9.0  # the chain ends where a ball's mass is below e^-TAIL delta of the largest
_ENOUGH = 400  # steps, from which delta is known well enough for a start
CORE = 12.0  # and starts, in high dimension, where it is below e^-CORE delta


class TooManySteps(Exception):
    """A staircase with this start would need more steps than we allow, or does not reach the target."""


@dataclass(frozen=True)
class Start:
    """An arithmetic chain, its cost, and its kind."""

    cost: float
    radii: Array
    width: float


def power_chain(problem: Problem, first: float, width: float, power: float) -> Array:
    """rho_k^p = rho_0^p + k c^p over the range that carries mass; in high dimension the core is left out."""
    from scipy.optimize import brentq

    dimension, epsilon, target, _ = problem
    log_target = math.log(target)
    rate = epsilon / width**power

    def log_mass(r: float) -> float:
        return float(dimension * math.log(r) - rate * r**power)

    mode = max((dimension / (power * rate)) ** (1.0 / power), first)
    top = log_mass(mode)
    skip = 0
    if log_mass(first) < top + log_target - CORE:
        edge = brentq(lambda r: log_mass(r) - top - log_target + CORE, first, mode)
        skip = max(int((edge**power - first**power) / width**power), 0)
    end = 1.5 * mode
    while log_mass(end) > top + log_target - TAIL:
        end *= 1.5
    edge = brentq(lambda r: log_mass(r) - top - log_target + TAIL, mode, end)
    count = int((edge**power - first**power) / width**power) + 2
    if count - skip > MAX_STEPS:
        raise TooManySteps(f"{count - skip} steps")
    radii = (first**power + width**power * np.arange(skip, max(count, skip + 3))) ** (1.0 / power)
    if power > 1.0:
        radii = radii[0] + np.append(0.0, np.cumsum(np.minimum(np.diff(radii), 1.0)))
    result: Array = radii
    return result


def _prefixes(problem: Problem, radii: Array) -> tuple[Array, Array]:
    """(E f, delta) of the staircases that end at each of the radii."""
    dimension, epsilon, _, objective = problem
    log_mass = dimension * np.log(radii / radii[-1]) - epsilon * np.arange(len(radii))
    mass = np.exp(log_mass - log_mass.max())
    share = -math.expm1(-epsilon)
    mean = objective.ball_mean(dimension, radii)
    inner = np.append(lunes(dimension, radii)[:-1], 0.0)
    ends = lunes(dimension, radii, radii)

    def partial(values: Array) -> Array:
        return share * np.append(0.0, np.cumsum(mass * values)[:-1])

    total = partial(np.ones_like(mass)) + mass
    with np.errstate(invalid="ignore", divide="ignore"):
        return (partial(mean) + mass * mean) / total, (partial(inner) + mass * ends) / total


def _delta(problem: Problem, radii: Array) -> float:
    """About delta of a staircase that ends where there is hardly any mass; of many steps some speak for all."""
    every = len(radii) // _ENOUGH
    if every < 2:
        return evaluate(problem, radii)[1]
    weights = ball_weights(problem.dimension, problem.epsilon, radii)[:-1:every]
    return float(weights @ lunes(problem.dimension, radii[:-1:every], radii[1::every]) / weights.sum())


def tail_start(problem: Problem, first: float, guess: float, power: float) -> Start:
    """The long chain from ``first`` whose width makes delta right."""
    from scipy.optimize import brentq

    def excess(log_width: float) -> float:
        radii = power_chain(problem, first, math.exp(log_width), power)
        return math.log(max(_delta(problem, radii), 1e-300) / problem.target)

    high = 0.0
    while power > 1.0 and excess(high) > 0.0:
        high += 1.0
        if high > 12.0:
            raise TooManySteps("no width")
    if excess(high) > 0.0:
        raise TooManySteps("full steps do not reach the target")
    low = min(math.log(guess), high - 0.1)
    while excess(low) < 0.0:
        low -= 0.3
        if low < -30.0:
            raise TooManySteps("no width")
    root = brentq(excess, low, high, xtol=1e-5)
    radii = power_chain(problem, first, math.exp(root), power)
    return Start(evaluate(problem, radii)[0], radii, math.exp(root))


def cut_start(problem: Problem, first: float, width: float, *, power: float = 1.0, fit: bool = True) -> Start | None:
    """The chain cut where its end spends the rest of delta; its last step shortened to fit."""
    radii = power_chain(problem, first, width, power)
    if radii[0] > first * (1.0 + 1e-9):
        return None
    costs, deltas = _prefixes(problem, radii)
    enough = np.nonzero(deltas <= problem.target)[0]
    if not len(enough) or enough[0] == 0:
        return None
    end = int(enough[0])
    radii = radii[: end + 1].copy()
    if not fit:
        return Start(float(costs[end]), radii, width)
    low, high = radii[-2], radii[-1]
    for _ in range(36):
        radii[-1] = 0.5 * (low + high)
        inside = evaluate(problem, radii)[1] <= problem.target
        low, high = (low, radii[-1]) if inside else (radii[-1], high)
    radii[-1] = high
    if radii[-1] <= radii[-2]:
        return None
    return Start(evaluate(problem, radii)[0], radii, width)


def begin(problem: Problem, radii: Array) -> Staircase:
    """Caps and multipliers for given radii."""
    dimension, epsilon, target, objective = problem
    sphere = Sphere(dimension)
    steps = np.minimum(np.diff(radii), 1.0 - 1e-7)
    radii = np.concatenate([radii[:1], radii[0] + np.cumsum(steps)])
    u, outer, slack = radii[:-1], radii[1:], 1.0 - steps
    gap = np.clip(slack * (u + outer + 1.0) / (2.0 * u), 1e-300, 1.99)
    s = np.clip(sphere.cap(1.0 - gap, gap * (2.0 - gap)), 1e-14, 0.9)
    expected, delta = evaluate(problem, radii)
    wider, less = evaluate(problem, radii * 1.001)
    multiplier = (wider - expected) / max(delta - less, 1e-300)
    multiplier = min(max(multiplier, 1e-6 * expected / target), 4.0 * expected / target)
    pin = int(np.argmax(ball_weights(dimension, epsilon, radii)))
    level = max(expected + multiplier * target, 1.02 * float(objective.value(radii[:1])[0]))
    return Staircase(dimension, epsilon, radii, np.log(s), math.log(multiplier), level, expected, delta, math.inf, pin)


def march_core(problem: Problem, start: Staircase) -> Array:
    """Radii with the steps below the mode redone by the balance equation, which is stable there.

    rho_{k+1} follows from S1_k = (nu - f_k)/lambda + e^eps S2_k; beyond the mode errors would grow,
    so the given steps are kept.
    """
    sphere = Sphere(problem.dimension)
    multiplier, grow = math.exp(start.log_multiplier), math.exp(problem.epsilon)
    stop = 0.85 * float(start.radii[start.pin])
    radii = [float(start.radii[0])]
    back = 0.0
    while radii[-1] < stop and len(radii) < MAX_STEPS:
        u = radii[-1]
        s = (start.level - float(problem.objective.value(np.array([u]))[0])) / multiplier + grow * back
        if not 0.0 < s < 0.5:
            break
        step = sphere.step(np.array([u]), np.array([math.log(s)]))
        outer, back = float(step.outer[0]), float(step.back[0])
        if outer <= u:
            break
        radii.append(outer)
    rest = start.radii[start.radii > radii[-1]]
    width = float(np.diff(start.radii)[-1])
    return np.concatenate([radii, radii[-1] + width + rest - rest[0]])
