r"""One dimension by rearrangement: sharp for small delta, over all laws on the line.

Let N have density h (otherwise add a little uniform noise, which keeps the promise and costs as little as wished)
and let h* be its symmetric decreasing rearrangement. Then

    delta >= mean over v uniform in [-1, 1] of H(v),   H(v) = 1 - int over c of |{h > c} n ({e^eps h > c} - v)|,

and by Riesz's inequality the mean overlap of two sets with an interval of shifts grows when both are replaced by
centred intervals of the same length. So h* keeps the averaged promise too, with no larger E f. Now for any
0 <= t <= 1 the tests

    phi_v(n) = 1{n v > 0 and |v| > 1 - t(|n|)}

have Phi1(r) = t(r)/2 and Phi2(r) = |{a in [max(r-1,0), r] : a - (r-1) < t(a)}|/2, and since h* is a mixture of
uniform laws on centred intervals,

    E f >= nu - lambda delta    whenever X(r) = int_0^r (G - nu) >= 0 for all r,  G = f + lambda (Phi1 - e^eps Phi2).

t is constant on cells; outwards from 0, each value is the least that keeps X >= 0. For a given lambda the largest nu
for which t stays below 1 and dies out is found by bisection. X is rounded down at every step, in proportion to the
terms of that step, so that it stays below the true one where t has grown to 1/delta times its first value.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.proof import LowerBound

if TYPE_CHECKING:
    from lessnoise.mechanism.least.objective import Objective

_ALLOWANCE = 1e-12  # of nu: rounding of f and of the final difference


def _share(t: float, m: int) -> float:
    """Mean over x in [0, 1] of the length of {u in [m, m+1] : x <= u < x + t}."""
    if m == 0:
        return t - 0.5 * t * t if t < 1.0 else 0.5
    if t >= m + 1:
        return 1.0
    if t >= m:
        y = m + 1 - t
        return (t - m) + y - 0.5 * y * y
    if t > m - 1:
        return 0.5 * (t + 1 - m) ** 2
    return 0.0


class _March:
    """f on cells of width 1/per_unit, and the march outwards."""

    def __init__(self, epsilon: float, objective: Objective, scale: float, per_unit: int, reach: float) -> None:
        edges = np.arange(math.ceil(reach * per_unit) + 1) / per_unit
        values = objective.value(edges) / scale
        self.low: list[float] = values[:-1].tolist()
        self.high: list[float] = values[1:].tolist()
        # With a kink inside, f falls below its chord by at most its rise.
        sag = np.asarray(objective.sag(edges[:-1], edges[1:]) / scale)
        for kink in objective.kinks():
            inside = (edges[:-1] < kink) & (kink < edges[1:])
            sag[inside] = np.diff(values)[inside]
        self.sag: list[float] = sag.tolist()
        # Sums of up to 1e4 positive terms: a relative 1e-12 covers their rounding.
        self.per_unit, self.growth = per_unit, math.exp(epsilon) * (1.0 + 1e-12)

    def holds(self, level: float, half: float) -> bool:
        """Whether nu = level is reached with lambda = 2 half.

        For r in cell j, r - 1 = left + x with x uniform in cell j - n. Cell k contributes to Phi2 the length of
        {u in cell k : x <= u < x + t_k}; its mean over x is ``_share``, and all together never exceed the
        largest t_k that contributes.
        """
        n, growth = self.per_unit, self.growth
        low, high, sag = self.low, self.high, self.sag
        w = 1.0 / n
        count = len(low)
        inflow = [0.0] * (count + n + 2)
        top = [0.0] * (count + n + 2)
        least = [math.inf] * (count + n + 2)
        run = [0] * (count + n + 2)
        x, quiet = 0.0, 0
        for j in range(count):
            mean = 0.5 * (low[j] + high[j]) - sag[j]
            inward = half * growth * min(inflow[j], top[j])
            gain = x + w * (mean - level - inward) - 1e-15 * (x + w * (mean + level + inward))  # rounded down
            # [x, x + flat] always counts, so G varies within the cell by at most this, and X dips below its
            # chord by at most w/4 of it.
            flat = min(least[j], (run[j] - 1) * w) * (1.0 - 1e-12) if run[j] else 0.0
            dip = 0.2500001 * w * (high[j] - low[j] + sag[j] + half * growth * (top[j] - flat))
            value = max(growth * top[j] * (1.0 + 1e-14) + (level - low[j]) / half, 0.0)  # X does not fall at all
            if x >= dip:
                value = min(value, max((dip - gain) / (w * half), 0.0))
            if value > 1.0:
                return False
            x = gain
            if value > 0.0:
                value *= 1.0 + 1e-14
                x += w * half * value * (1.0 - 1e-15) - 1e-15 * abs(x)
                quiet = 0
                cells = value * n
                m = 0
                while m < cells + 1.0 and m < n:
                    ahead = j + n - m
                    inflow[ahead] += _share(cells, m) * w
                    if value > top[ahead]:
                        top[ahead] = value
                    if run[ahead] == m:
                        run[ahead] += 1
                        if value < least[ahead]:
                            least[ahead] = value
                    m += 1
            else:
                quiet += 1
                if quiet > n + 2 and low[j] > level:
                    return True
        return False

    def level(self, multiplier: float, good: float, bad: float, digits: int) -> float:
        """The largest nu between good and bad that holds (0 if none)."""
        found = 0.0
        for _ in range(digits):
            middle = 0.5 * (good + bad)
            if self.holds(middle, 0.5 * multiplier):
                good = found = middle
            else:
                bad = middle
        return found


def lower_bound(
    epsilon: float, delta: float, objective: Objective, expected: float, reach: float, *, cells: int = 20_000
) -> LowerBound:
    """The best bound of this kind over lambda; ``expected`` and ``reach`` are those of a good mechanism."""
    from scipy.optimize import minimize_scalar

    begun = time.thread_time()
    reach = 1.6 * reach + 6.0

    def march(count: int) -> _March:
        return _March(epsilon, objective, expected, int(min(max(count / reach, 4.0), 2000.0)), reach)

    coarse, fine = march(cells // 10), march(cells)

    def cost(log_multiplier: float, digits: int = 12) -> float:
        multiplier = math.exp(log_multiplier)
        return multiplier * delta - coarse.level(multiplier, 0.0, 1.2 + multiplier * delta, digits)

    guesses = np.log(np.geomspace(3.0, 1e7, 14))
    guesses = guesses[np.exp(guesses) * delta < 20.0]
    first = min(guesses, key=cost)
    found = minimize_scalar(
        lambda x: cost(x, 16), bounds=(first - 1.2, first + 1.2), method="bounded", options={"maxiter": 9}
    )
    multiplier = math.exp(float(found.x))
    guess = multiplier * delta - float(found.fun)
    nu = fine.level(multiplier, 0.98 * guess, 1.03 * guess + 1e-3, 13) or fine.level(multiplier, 0.0, guess, 13)
    proved = max(nu * (1.0 - _ALLOWANCE) - multiplier * delta * (1.0 + 1e-14), 0.0) * expected
    return LowerBound(proved, "rearrangement", proved, (multiplier * expected,), (), time.thread_time() - begun)
