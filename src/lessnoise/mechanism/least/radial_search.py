"""The best member (k, p) of the radial family, radius density r^(k-1) exp(-(r/s)^p) with k <= M.

Only two numbers are searched. A trial costs three or four coarse curves: the scale is followed by secant steps in
(ln s, ln delta) from its neighbour. The winner alone is calibrated, on the exact curve.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.calibration import radial_scale
from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.curve.chords import TooMuchWork, at_most
from lessnoise.mechanism.curve.radial import RadialCurve
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.numerics import log_gamma_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.mechanism.least.objective import Goal

    Point = NDArray[np.float64]

_EVALUATIONS = 45
_MOST_CELLS = 300_000  # an ordinary target takes 50,000, one of few entries and a large epsilon some millions
LARGEST_POWER = 64.0  # beyond, the member is a uniform ball but for its rim


class _Search:
    """Size of (k, p) at the scale that spends delta."""

    def __init__(self, dimension: int, epsilon: float, delta: float, goal: Goal) -> None:
        self.dimension, self.epsilon, self.log_delta, self.goal = dimension, epsilon, math.log(delta), goal
        self.sigma = gaussian.gaussian_scale(epsilon, delta)
        self.memory: list[tuple[float, float, float, float]] = []  # u, w, ln s, slope
        self.best = math.inf, np.zeros(2)

    def shape(self, point: Point) -> tuple[float, float]:
        """(k, p) from free coordinates: M - k = e^u (nothing below e^-6), p = e^w, both within limits."""
        excess = math.exp(float(point[0]))
        k = self.dimension - (excess if excess > 2.5e-3 else 0.0)
        return max(k, 0.05 * self.dimension), min(math.exp(float(point[1])), LARGEST_POWER)

    def excess(self, k: float, p: float, log_scale: float) -> float:
        curve = RadialCurve(self.dimension, k, p, math.exp(log_scale), 1.0, self.epsilon)
        return math.log(max(curve.bracket(1e-2).middle, 1e-300)) - self.log_delta

    def cost(self, point: Point) -> float:
        k, p = self.shape(point)
        near = min(self.memory, key=lambda m: (m[0] - point[0]) ** 2 + 4.0 * (m[1] - point[1]) ** 2, default=None)
        if near is None:
            x = 0.5 * math.log(self.dimension) + math.log(self.sigma) - 0.5 * _log_mean_square(k, p)
            slope = -6.0
        else:
            x = near[2] + 0.5 * (_log_mean_square(*self.shape(np.array(near[:2]))) - _log_mean_square(k, p))
            slope = near[3]
        value = self.excess(k, p, x)
        low, high = -math.inf, math.inf
        for _ in range(25):
            if abs(value) < 2e-3:
                break
            low, high = (x, high) if value > 0.0 else (low, x)
            new = x + max(min(-value / slope, 0.7), -0.7)
            if not low < new < high:
                new = 0.5 * (low + high)
            after = self.excess(k, p, new)
            if new != x and (after - value) / (new - x) < -0.05:
                slope = (after - value) / (new - x)
            x, value = new, after
        self.memory.append((float(point[0]), float(point[1]), x, slope))
        size = x - value / slope + self.goal.log_size(Radial(k, p, 1.0), self.dimension)
        if size < self.best[0]:
            self.best = size, point.copy()
        return size


def _log_mean_square(k: float, p: float) -> float:
    return log_gamma_ratio(k / p, 2.0 / p)


def best_member(dimension: int, epsilon: float, delta: float, goal: Goal) -> Radial:
    """The member of least size for sensitivity 1, by the simplex method from a start that suits the dimension.

    A search that takes too much work ends with the best that it has tried.
    """
    from scipy.optimize import minimize

    search = _Search(dimension, epsilon, delta, goal)
    p = 2.0 - 1.0 / (1.0 + dimension / 15.0)
    start = np.array([math.log(0.3 + 0.02 * dimension), math.log(p)])
    simplex = np.array([start, start + np.array([1.0, 0.0]), start + np.array([0.0, 0.2])])
    with suppress(TooMuchWork), at_most(_MOST_CELLS):
        minimize(
            search.cost,
            start,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "maxfev": _EVALUATIONS, "xatol": 5e-3, "fatol": 1e-5},
        )
    size, point = search.best
    if size == math.inf:
        raise TooMuchWork("the curve takes too long to compute at so extreme a target")
    k, p = search.shape(point)
    scale = radial_scale(dimension=dimension, k=k, p=p, epsilon=epsilon, delta=delta, sensitivity=1.0)
    return Radial(k, p, scale)
