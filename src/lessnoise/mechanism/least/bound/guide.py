"""What a good mechanism looks like: it steers the grid of the tests and never enters the proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Problem
    from lessnoise.mechanism.least.staircase_newton import Staircase


@dataclass(frozen=True)
class Guide:
    """A mechanism as the grids see it."""

    problem: Problem
    expected: float  # E f
    level: float  # nu
    multiplier: float  # lambda
    radii: Array  # steps of a staircase, or just sample radii
    sigma: Array  # ln of the cap fraction S1 at radii[:-1]
    log_density: Array  # of |n|, at the radii, up to a constant
    density: Callable[[Array], Array]
    smooth: bool

    @property
    def peak(self) -> int:
        """Index of the radius of largest density."""
        return int(np.argmax(self.log_density))

    def outer(self, drop: float) -> int:
        """Index of the first radius beyond the peak whose log-density is ``drop`` below it."""
        low = np.nonzero(self.log_density[self.peak :] < self.log_density[self.peak] - drop)[0]
        return self.peak + (int(low[0]) if len(low) else len(self.radii) - 1 - self.peak)

    def wanted(self, nodes: Array, low: float, high: int) -> tuple[Array, Array]:
        """Least and largest cap fractions that the test may need at each node.

        The guide's first and last steps are bent by its ends: sigma is held beyond ``low`` and ``high``.
        In the core S1 lies between (nu - f)/lambda and its value where the mass begins.
        """
        inside = self.log_density[: self.peak + 1] > self.log_density[self.peak] + math.log(self.problem.target) + 5.0
        first = min(int(np.argmax(inside)), max(high - 2, 0))
        sigma = np.exp(np.interp(nodes, self.radii[first:high], self.sigma[first:high]))
        lone = np.maximum((self.level - self.problem.objective.value(nodes)) / self.multiplier, 1e-300)
        core = nodes < max(low, float(self.radii[first]))
        return np.where(core, np.minimum(lone, sigma), sigma), np.where(core, np.maximum(lone, sigma), sigma)


def staircase_guide(chain: Staircase, problem: Problem) -> Guide:
    """The guide of a staircase."""
    m, epsilon, radii = problem.dimension, problem.epsilon, chain.radii
    log_height = -epsilon * np.arange(len(radii))
    log_ball = m * np.log(radii / radii[-1])
    # Density of |n| is height * M r^(M-1) over the sum of the shells' masses, all in units of the last ball.
    shells = log_height + np.log(-np.expm1(np.append(-np.inf, -np.diff(log_ball)))) + log_ball
    log_total = float(np.logaddexp.reduce(shells))
    offset = math.log(m) - log_total - m * math.log(radii[-1])
    fall = epsilon / max(radii[-1] - radii[-2], 1e-9) if len(radii) > 1 else 1.0

    def density(r: Array) -> Array:
        # The larger of the staircase's and of its log-linear interpolation: the best law may step elsewhere.
        r = np.maximum(np.asarray(r, dtype=float), 1e-300)
        step = np.append(log_height, -np.inf)[np.searchsorted(radii, r)]
        smooth = np.interp(r, radii, log_height) - fall * np.maximum(r - radii[-1], 0.0)
        return np.asarray(np.exp(np.maximum(step, smooth) + offset + (m - 1) * np.log(r)))

    multiplier, log_density = math.exp(chain.log_multiplier), log_height + log_ball
    steps = radii, chain.sigma, log_density, density
    return Guide(problem, float(chain.expected), chain.level, multiplier, *steps, chain.smooth)


def gaussian_guide(problem: Problem) -> Guide:
    """The guide of the analytic Gaussian mechanism, where there is no staircase."""
    dimension, epsilon, target, objective = problem
    sd = gaussian.gaussian_scale(epsilon, target)
    sphere = Sphere(dimension)
    spread = sd * math.sqrt(0.5)
    reach = math.sqrt(-2.0 * math.log(target) + 24.0)
    middle = sd * math.sqrt(dimension)
    radii = np.linspace(max(middle - reach * spread, 0.02 * middle), middle + (reach + 1.0) * spread, 800)

    def log_density(r: Array) -> Array:
        return np.asarray((dimension - 1) * np.log(r / middle) - 0.5 * (r / sd) ** 2 + 0.5 * dimension)

    cosine = (2.0 * epsilon * sd * sd - 1.0) / (2.0 * radii)
    s = np.clip(sphere.cap(np.minimum(cosine, 1.0)), 1e-14, 0.4)[:-1]
    weights = np.exp(log_density(radii))
    total = float(np.trapezoid(weights, radii))
    change = 1e-4
    expected, wider = (
        float(np.trapezoid(weights * objective.value(radii * factor), radii)) / total for factor in (1.0, 1.0 + change)
    )
    multiplier = (wider - expected) / (target - gaussian.delta(1.0 / (sd * (1.0 + change)), epsilon))

    def density(r: Array) -> Array:
        return np.asarray(np.exp(log_density(np.maximum(np.asarray(r, dtype=float), 1e-300))) / total)

    level = expected + multiplier * target
    return Guide(problem, expected, level, multiplier, radii, np.log(s), log_density(radii), density, smooth=True)


_SAMPLES = 4000
_LEAST_SHARE = 0.1  # of the median cap


def radial_guide(k: float, p: float, scale: float, problem: Problem) -> Guide:
    """The guide of a radial member, of radius density r^(k-1) exp(-(r/scale)^p), where noise is wide."""
    dimension, epsilon, target, objective = problem
    drop = 12.0 - math.log(target)
    # Beyond, (r/scale)^p has grown by more than the drop, whatever r^(k-1) does.
    shape = k / p
    reach = scale * (shape + 2.0 * drop + math.sqrt(2.0 * drop * shape)) ** (1.0 / p)
    samples = np.linspace(0.0, reach, _SAMPLES + 1)[1:]
    log_samples = (k - 1.0) * np.log(samples / scale) - (samples / scale) ** p
    top = float(log_samples.max())
    held = samples[log_samples > top - drop]
    radii = np.linspace(float(held[0]), float(held[-1]), 800)

    def log_density(r: Array) -> Array:
        return np.asarray((k - 1.0) * np.log(r / scale) - (r / scale) ** p - top)

    # The test of this law fires where its density has fallen by e^epsilon, |n + v| >= far.
    fall = (dimension - k) * np.log(samples / scale) + (samples / scale) ** p
    fallen = (dimension - k) * np.log(radii / scale) + (radii / scale) ** p + epsilon
    far = np.interp(fallen, fall, samples)
    cosine = np.clip((far - radii) * (far + radii) - 1.0, None, 2.0 * radii) / (2.0 * radii)
    weights = np.exp(log_density(radii))
    total = float(np.trapezoid(weights, radii))
    # Next to 0, where it hardly ever fires, it says nothing about the caps that are needed.
    fraction = Sphere(dimension).cap(cosine)
    order = np.argsort(fraction)
    half = int(np.searchsorted(np.cumsum(weights[order]), 0.5 * weights.sum()))
    sigma = np.log(np.clip(fraction, max(_LEAST_SHARE * float(fraction[order[half]]), 1e-14), 0.4))[:-1]
    expected, wider = (
        float(np.trapezoid(weights * objective.value(radii * factor), radii)) / total for factor in (1.0, 1.0001)
    )
    sd = gaussian.gaussian_scale(epsilon, target)
    multiplier = (wider - expected) / (target - gaussian.delta(1.0 / (1.0001 * sd), epsilon))

    def density(r: Array) -> Array:
        return np.asarray(np.exp(log_density(np.maximum(np.asarray(r, dtype=float), 1e-300))) / total)

    level = expected + multiplier * target
    return Guide(problem, expected, level, multiplier, radii, sigma, log_density(radii), density, smooth=True)
