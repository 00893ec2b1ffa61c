r"""The best radial noise with a falling density: a staircase whose heights fall by e^eps.

Slicing. delta(eps) = integral over heights c of vol(B(u(c)) \ B(-v, u(c e^-eps))) dc, u(c) being the radius of
{h > c}. Group the heights into orbits {c e^(-eps k)}: on each orbit the radii rho_k = u(c e^(-eps k)) form a rising
*chain*, and mass, E f and delta are sums over orbits of

    Z = sum q^k vol(rho_k),  F = sum q^k int_B(rho_k) f,  H = sum q^k lune(rho_k, rho_{k+1}),  q = e^-eps.

All three are additive over orbits, so the least E f at a given delta over *all* falling radial densities is attained by
a mixture of at most two chains, and a chain is itself a staircase (height q^k between rho_{k-1} and rho_k): the
infinite linear program over densities comes down to a few radii. Minimising F/Z at H/Z = delta gives, with multipliers
lambda for delta and nu = E f + lambda delta, one equation per radius,

    f(rho_k) + lambda (S1_k - e^eps S2_k) = nu,

S1_k the fraction of the sphere rho_k outside B(-v, rho_{k+1}) and S2_k that of the sphere rho_k inside B(v, rho_{k-1}).
Newton on (ln S1_k, rho_k), each equation as a difference of logarithms of positive sums, converges in about ten steps;
the Jacobian is banded.

Any increasing radii at all give a valid mechanism after exact calibration: nothing here needs to be proved for
privacy, and the distance to the optimum is certified separately.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.curve.lune import lune
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Problem


_TOP_SIGMA = math.log(0.98)


@dataclass(frozen=True)
class Staircase:
    """Radii for sensitivity 1, with the multipliers found for them."""

    dimension: int
    epsilon: float
    radii: Array
    sigma: Array  # ln S1_k, one fewer than radii
    log_multiplier: float
    level: float
    expected: float
    delta: float
    residual: float
    pin: int  # the radius held fixed by Newton
    smooth: bool = False  # the phase (first radius) hardly matters

    def law(self) -> Shells:
        """The staircase itself: height e^(-epsilon k) between radii k - 1 and k."""
        inner = np.append(0.0, self.radii[:-1])
        with np.errstate(divide="ignore"):
            thickness = -np.expm1(self.dimension * np.log1p((inner - self.radii) / self.radii))
        log_mass = self.dimension * np.log(self.radii / self.radii[-1]) + np.log(thickness)
        log_mass -= self.epsilon * np.arange(len(self.radii))
        log_mass -= log_mass.max()
        kept = int(np.argmax(log_mass > -680.0))  # what a double cannot hold is left out of the core
        mass = np.exp(log_mass[kept:])
        return Shells(self.dimension, (0.0, *self.radii[kept:].tolist()), tuple((mass / math.fsum(mass)).tolist()))


@dataclass
class _Iterate:
    """Residuals and derivatives at one Newton iterate."""

    residual: Array
    band: Array
    border: Array
    rows: Array
    tail: Array
    expected: float
    delta: float
    size: float = field(init=False)

    def __post_init__(self) -> None:
        worst = max(float(np.abs(self.residual).max()), float(np.abs(self.tail).max()))
        self.size = worst if math.isfinite(worst) else math.inf


def ball_weights(dimension: int, epsilon: float, radii: Array) -> Array:
    """Mixture weights of the balls of a staircase."""
    log_weight = dimension * np.log(radii / radii[-1]) - epsilon * np.arange(len(radii))
    log_weight[:-1] += math.log(-math.expm1(-epsilon))
    weights = np.exp(log_weight - log_weight.max())
    normalised: Array = weights / weights.sum()
    return normalised


def evaluate(problem: Problem, radii: Array) -> tuple[float, float]:
    """(E f, delta) of the staircase, in plain floating point."""
    dimension, epsilon, _, objective = problem
    weights = ball_weights(dimension, epsilon, radii)
    return float(weights @ objective.ball_mean(dimension, radii)), float(weights @ lunes(dimension, radii))


def lunes(dimension: int, radii: Array, outer: Array | None = None) -> Array:
    """Fraction of each ball outside the next one (the last: outside itself) moved by 1."""
    if outer is None:
        outer = np.append(radii[1:], radii[-1])
    if dimension == 1:
        return np.clip(radii + 1.0 - outer, 0.0, 2.0 * radii) / (2.0 * radii)
    y = np.maximum(np.log1p((outer - radii) / radii), 0.0)
    return lune(dimension, 1.0 / radii, y, np.zeros_like(radii)).fraction


# Newton with one radius pinned: it fixes the phase, to which a smooth problem is indifferent.


def _state(problem: Problem, radii: Array, sigma: Array, log_multiplier: float, level: float, pin: int) -> _Iterate:
    m, epsilon, target, objective = problem
    sphere, count = Sphere(m), len(radii)
    grow, inverse = math.exp(epsilon), math.exp(-log_multiplier)
    u, s = radii[:-1], np.exp(sigma)
    step = sphere.step(u, sigma)
    f, slope = objective.value(radii), objective.slope(radii)
    excess = (f - level) * inverse
    # Balance of radius k: s_k + excess+ = e^eps S2_k + excess-, in logarithms; both sides positive.
    left = s + np.maximum(excess[:-1], 0.0)
    right = np.maximum(-excess[:-1], 0.0)
    right[1:] += grow * step.back[:-1]
    # The last radius is followed by itself for ever.
    half = np.array([0.5 / radii[-1]])
    stay = 1.0 - 2.0 * float(sphere.cap(half)[0])
    stay_slope = -float(sphere.density(1.0 - half * half)[0]) / radii[-1] ** 2
    left_end = excess[-1] + stay
    right_end = (grow - 1.0) * step.back[-1]
    n = 2 * count - 1
    residual = np.empty(n)  # rows: balance_0, step_0, balance_1, step_1, ..., balance_last
    residual[1::2] = radii[1:] - step.outer
    with np.errstate(divide="ignore", invalid="ignore"):
        residual[0:-1:2] = np.log(left / right)
        residual[-1] = math.log(left_end / right_end) if left_end > 0.0 < right_end else math.inf

    weights = ball_weights(m, epsilon, radii)
    expected = float(weights @ objective.ball_mean(m, radii))
    delta = float(weights @ lunes(m, radii, np.append(np.maximum(step.outer, u), radii[-1])))

    # Columns: rho_0, sigma_0, rho_1, sigma_1, ..., rho_last; band[1 + i - j, j] = J[i, j].
    band = np.zeros((4, n))
    border = np.zeros((n, 2))  # d/d log_multiplier, d/d level
    rows = np.zeros((2, n))
    at_rho, at_sigma = np.arange(0, n, 2), np.arange(1, n, 2)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.where(excess[:-1] > 0.0, left, right)
        band[2, at_rho[:-1]] = -step.outer_u
        band[1, at_sigma] = -step.outer_sigma
        band[0, at_rho[1:]] = 1.0
        band[1, at_rho[:-1]] = slope[:-1] * inverse / share
        band[0, at_sigma] = s / left
        band[3, at_rho[:-2]] = -grow * step.back_u[:-1] / right[1:]
        band[2, at_sigma[:-1]] = -grow * step.back_sigma[:-1] / right[1:]
        band[3, at_rho[-2]] = -(grow - 1.0) * step.back_u[-1] / right_end
        band[2, at_sigma[-1]] = -(grow - 1.0) * step.back_sigma[-1] / right_end
        band[1, at_rho[-1]] = (slope[-1] * inverse + stay_slope) / left_end
        border[0:-1:2, 0] = -excess[:-1] / share
        border[0:-1:2, 1] = -inverse / share
        border[-1] = -excess[-1] / left_end, -inverse / left_end
        caps_out = np.append(s, stay)
        caps_in = np.append(0.0, grow * step.back)
        caps_in[-1] *= (grow - 1.0) / grow
        per_radius = weights * m / radii
        rows[0, at_rho] = per_radius * (caps_out - caps_in - delta) / delta
        rows[1, at_rho] = -per_radius * (f - expected) / expected
        multiplier = math.exp(log_multiplier)
        tail = np.array([math.log(delta / target), (level - expected - multiplier * target) / expected])
    # The pinned radius stays where it is: its equation is replaced by "no change".
    row = 2 * pin
    for column in (row - 2, row - 1, row, row + 1):
        if 0 <= column < n:
            band[1 + row - column, column] = float(column == row)
    border[row] = 0.0
    residual[row] = 0.0
    return _Iterate(residual, band, border, rows, tail, expected, delta)


def newton(problem: Problem, start: Staircase, *, iterations: int = 30, tolerance: float = 1e-9) -> Staircase:
    """Stationary chain with the radius ``start.pin`` held fixed."""
    from scipy.linalg import solve_banded

    pin, (dimension, epsilon, target, _) = start.pin, problem
    radii, sigma = start.radii.copy(), start.sigma.copy()
    log_multiplier, level = start.log_multiplier, start.level
    state = _state(problem, radii, sigma, log_multiplier, level, pin)
    for _ in range(iterations):
        if state.size < tolerance or not math.isfinite(state.size):
            break
        multiplier = math.exp(log_multiplier)
        corner = np.array([[0.0, 0.0], [-multiplier * target / state.expected, 1.0 / state.expected]])
        try:
            with np.errstate(all="ignore"):
                solved = solve_banded((2, 1), state.band, np.column_stack([-state.residual, -state.border]))
                small = corner + state.rows @ solved[:, 1:]
                pair = np.linalg.solve(small, -state.tail - state.rows @ solved[:, 0])
        except (np.linalg.LinAlgError, ValueError):
            break
        change = solved[:, 0] + solved[:, 1:] @ pair
        if not np.all(np.isfinite(change)):
            break
        size = min(
            1.0,
            0.3 / max(float(np.abs(change[0::2] / radii).max()), 1e-12),
            1.5 / max(abs(float(pair[0])), 1e-12),
            0.3 * level / max(abs(float(pair[1])), 1e-300),
        )
        for _ in range(8):
            trial = (
                radii + size * change[0::2],
                np.minimum(sigma + np.clip(size * change[1::2], -1.0, 2.0), _TOP_SIGMA),
                log_multiplier + size * float(pair[0]),
                level + size * float(pair[1]),
            )
            if np.all(trial[0] > 0.0):
                after = _state(problem, *trial, pin)
                if after.size < max(10.0 * state.size, 20.0):
                    break
            size *= 0.5
        else:
            break
        (radii, sigma, log_multiplier, level), state = trial, after
    end = state.expected, state.delta, state.size
    return Staircase(dimension, epsilon, radii, sigma, log_multiplier, level, *end, pin)
