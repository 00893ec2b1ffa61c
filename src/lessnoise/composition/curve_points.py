"""Points of a step's privacy curve, taken where they matter, at losses that are multiples of powers of two."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.guarantees import Bracket
from lessnoise.mechanism import (
    LARGEST_EPSILON,
    DiscreteGaussian,
    Measured,
    delta_of,
    delta_of_one_shift,
    largest_delta,
    one_move,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.changes import Moves
    from lessnoise.mechanism import Law

    Curve = Callable[[float, float], Bracket]  # of epsilon >= 0 and a tolerance

MOST_POINTS = 800
_ULP = 2.0**-53
_LEAST = -512.0  # E is below e^x: nothing matters beyond
_FLAT = 1.0 + 1e-4
_TOLERANCES = (2e-4, 6e-5, 2e-5, 6e-6, 2e-6)  # few, so that evaluations are found again


@functools.singledispatch
def fixed_pair_delta(law: Law, dimension: int, shift: float | Moves, epsilon: float, tolerance: float) -> Bracket:
    """The curve of one law; its lower end must belong to one pair of neighbours, the same at every epsilon.

    So it is for every law whose worst neighbours do not depend on epsilon. A law for which they do registers
    a bracket whose lower end is that of a single pair: lower ends of different pairs must not be composed.
    """
    return delta_of(law, dimension, shift, epsilon, tolerance)


@fixed_pair_delta.register(DiscreteGaussian)
def _(law: DiscreteGaussian, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    upper = delta_of(law, dimension, sensitivity, epsilon, tolerance).upper
    return Bracket(min(delta_of_one_shift(law, sensitivity, epsilon, tolerance).lower, upper), upper)


@fixed_pair_delta.register(Measured)
def _(law: Measured, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    found = delta_of(law, dimension, sensitivity, epsilon, tolerance)
    if law.is_gaussian or found.upper == 0.0:
        return found
    one = largest_delta(law.noise, (one_move(law, sensitivity),), epsilon)
    return Bracket(min(one.lower, found.upper), found.upper)


class Samples:
    """Excess H(g) - (1 - g)_+ of one step at chosen losses; for Poisson sampling at ``rate``, of P_q against Q.

    A pair that reads the same backwards has E(1/g) = E(g)/g. With P_q = (1-q) Q + q P, writing H = (1-g)_+ + E in
    H_g(P_q||Q) = q H_{1+(g-1)/q}(P||Q) leaves E_q(g) = q E(1 + (g-1)/q) on both sides of g = 1.
    """

    def __init__(self, curve: Curve, rate: float, count: int) -> None:
        self.curve, self.rate = curve, rate
        at_zero = curve(0.0, _TOLERANCES[0]).upper
        # Brackets of relative width t multiply delta by at most about 1 + count t delta(0).
        wanted = 0.2 / (count * max(rate * at_zero, 1e-9))
        self.tolerance = next((tolerance for tolerance in _TOLERANCES if tolerance <= wanted), _TOLERANCES[-1])
        self.symmetric = rate == 1.0
        self.known: dict[float, tuple[float, float]] = {0.0: self._excess(0.0)}
        self.reach: dict[int, float] = {1: 0.0, -1: 0.0}
        self.tail = math.inf

    @property
    def trivial(self) -> bool:
        """Nothing is ever lost."""
        return self.known[0.0][1] == 0.0

    def delta(self, epsilon: float) -> Bracket:
        """Of this step alone: E(g) in one direction, g E(1/g) in the other."""
        lower, upper = self._rounded(epsilon, self._excess(epsilon))
        if self.symmetric:
            return Bracket(lower, min(upper, 1.0))
        behind = self._rounded(-epsilon, self._excess(-epsilon))
        scale = math.exp(min(epsilon, 700.0))
        lower = max(lower, behind[0] * scale * (1.0 - 8 * _ULP))
        upper = max(upper, behind[1] * scale * (1.0 + 8 * _ULP))
        return Bracket(lower, min(upper, 1.0))

    def extend(self, tail: float) -> None:
        """Reach out, by doubling, to losses beyond which less than ``tail`` is left, or nothing changes any more."""
        if tail >= self.tail:
            return
        self.tail = tail
        first = 2.0 ** (math.floor(math.log2(max(self.known[0.0][1], 1e-12))) - 1)
        for sign in (1,) if self.symmetric else (1, -1):
            x = self.reach[sign] or first
            while True:
                self.add(sign * x)
                self.reach[sign] = x
                left = self.known[sign * x][1] * (1.0 if sign > 0 else math.exp(min(x, 700.0)))
                if left <= tail or x > LARGEST_EPSILON:
                    break
                x *= 2.0

    def add(self, x: float) -> None:
        """Evaluate the curve at one more loss; a symmetric one at both signs."""
        if x not in self.known and abs(x) <= 2.0 * LARGEST_EPSILON:
            self.known[x] = self._excess(x)
            if self.symmetric:
                scale = math.exp(-abs(x))
                self.known[-x] = (
                    self.known[x][0] * scale * (1.0 - 4 * _ULP),
                    self.known[x][1] * scale * (1.0 + 4 * _ULP),
                )

    def arrays(self, least: float, most: float) -> tuple[Array, Array, Array, float]:
        """Losses, lower and upper ends in order, up to the first beyond ``least`` and ``most``; and the floor of H.

        They stop earlier where nothing changes any more.
        """
        x = np.array(sorted(self.known))
        ends = np.array([self.known[loss] for loss in x.tolist()])
        lower, upper = ends[:, 0], ends[:, 1]
        if not self.symmetric:
            lower, upper = self._with_rounding(x, lower, upper)
        right = x >= 0.0
        flat = upper <= _FLAT * upper[-1] + 0.5 * self.tail
        last = int(np.argmax(right & (flat | (x >= most))))
        floor = float(lower[-1]) if x[-1] > LARGEST_EPSILON and flat[last] else 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            backwards = np.where(upper > 0.0, upper * np.exp(np.minimum(-x, 700.0)), 0.0)
        ended = ~right & ((backwards <= _FLAT * backwards[0] + 0.5 * self.tail) | (x <= max(least, _LEAST)))
        first = int(np.flatnonzero(ended)[-1]) if ended.any() else 0
        chosen = slice(first, max(last, first + 1) + 1)
        return x[chosen], lower[chosen], upper[chosen], floor

    def _excess(self, x: float) -> tuple[float, float]:
        if self.symmetric:
            bracket = self._base(abs(x))
            scale = math.exp(min(x, 0.0))
            return bracket.lower * scale * (1.0 - 4 * _ULP), _up(bracket.upper, scale * (1.0 + 4 * _ULP))
        change = math.expm1(min(x, 700.0)) / self.rate
        if change <= -1.0:
            return 0.0, 0.0
        loss = math.log1p(change) if x <= 700.0 else x - math.log(self.rate)
        bracket = self._base(abs(loss))
        scale = self.rate * math.exp(min(loss, 0.0))
        return bracket.lower * scale * (1.0 - 8 * _ULP), _up(bracket.upper, scale * (1.0 + 8 * _ULP))

    def _base(self, epsilon: float) -> Bracket:
        with np.errstate(over="ignore", under="ignore"):
            return self.curve(min(epsilon, LARGEST_EPSILON), self.tolerance)

    def _rounded(self, x: float, ends: tuple[float, float]) -> tuple[float, float]:
        """One point, with the allowance below at its largest."""
        if self.symmetric or ends[1] == 0.0:
            return ends
        shift = 32.0 * _ULP * self.rate
        return max(ends[0] - shift, 0.0), ends[1] + shift

    def _with_rounding(self, x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Allow for the rounding of 1 + (g-1)/q, by some ulps of itself, before the curve is read there.

        Left of 0 the slope of E is between 0 and 1, so E moves by at most as much; right of 0, by convexity,
        g |H'(g)| <= 2 H(g/2), and the value at the last point left of g/2 is larger still.
        """
        with np.errstate(over="ignore"):
            # 1 + (g'-1)/q <= (1 + (g-1)/q)/2 for every g' up to (g + 1 - q)/2
            half = np.log1p(0.5 * (np.expm1(x) - self.rate)) - 1e-12
        before = np.searchsorted(x, np.where(np.isfinite(half), half, x - 1.0), side="right") - 1
        earlier = np.where((before >= 0) & (x[before] >= 0.0), upper[before], self.rate)
        shift = 16.0 * _ULP * np.where(x > 0.0, 2.0 * earlier, self.rate)
        shift = np.where(upper > 0.0, shift, 0.0)
        return np.maximum(lower - shift, 0.0), upper + shift


def _up(delta: float, factor: float) -> float:
    """The product, which is not 0 unless delta is."""
    return max(delta * factor, math.ulp(0.0)) if delta else 0.0
