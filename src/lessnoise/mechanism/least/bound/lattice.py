r"""One dimension, shifts of length 1 alone: the best test by marching outwards. Sharp for small epsilon.

For a shift v = +-1 test phi(n) = c(n v)/lambda where n v > -1/2, and 0 otherwise. Averaged over the two signs,

    G(r) = f(r) + [c(r) + c(-r) 1{r < 1/2} - e^eps c(r - 1) 1{r > 1/2}]/2,        lambda = max c.

G >= nu asks for c(x) + c(-x) >= 2 (nu - f(x)) for 0 <= x <= 1/2, and then, outwards on each of the two lattices
x + k and -x + k, for c(r) >= e^eps c(r - 1) + 2 (nu - f(r)). The least such c is good if it dies out; then
E f >= nu - lambda delta. On cells [x1, x2] of [0, 1/2] take c linear on each x + k and k - x: G - f is linear there
and f is at least its chord less its sag, so both ends decide. Every c is rounded up and only then used, so rounding
costs nothing but sharpness. (A single point r carries no such interval, and needs none: c is closed from the side
on which it is larger.)
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.proof import LowerBound

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Objective


_UP = 1.0 + 4e-16


class _March:
    def __init__(self, epsilon: float, objective: Objective, scale: float, cells: int, steps: int) -> None:
        kinks = np.asarray(objective.kinks(), dtype=float) % 1.0
        x = np.unique(np.concatenate([np.linspace(0.0, 0.5, cells + 1), np.minimum(kinks, 1.0 - kinks)]))
        k = np.arange(steps)[:, None]
        inner, outer = (
            self._ends(objective, x[:-1] + k, x[1:] + k),
            self._ends(objective, k + 1 - x[1:], k + 1 - x[:-1]),
        )
        # Columns: left ends, right ends. The second lattice runs the other way: its ends are swapped.
        right = np.concatenate(inner, axis=1) / scale
        left = np.concatenate(outer[::-1], axis=1) / scale
        self.first, self.f = right[0], np.stack([right[1:], left[:-1]], axis=1)
        self.share = np.full(right.shape[1], 0.5)
        self.grow = math.exp(epsilon) * _UP

    @staticmethod
    def _ends(objective: Objective, low: Array, high: Array) -> tuple[Array, Array]:
        """F at both ends less the sag in between, rounded down."""
        sag = objective.sag(low, high)

        def down(value: Array) -> Array:
            return value - sag - 1e-15 * (np.abs(value) + sag)

        return down(objective.value(low)), down(objective.value(high))

    def balance(self, level: float) -> None:
        """Choose how c(x) + c(-x) is shared between the two lattices so that neither needs a larger lambda."""
        low, high = np.zeros(self.f.shape[2]), np.ones(self.f.shape[2])
        for _ in range(8):
            self.share = 0.5 * (low + high)
            right, left = self._peaks(level)
            more = right < left
            low, high = np.where(more, self.share, low), np.where(more, high, self.share)

    def multiplier(self, level: float) -> float:
        """lambda for this nu; infinite if c does not die out (then this nu proves nothing)."""
        return float(self._peaks(level).max())

    def _peaks(self, level: float) -> Array:
        """Largest c on each lattice (right or left, cell's end); infinite where it does not die out."""
        start = np.maximum(2.0 * (level - self.first) + 1e-15 * (level + np.abs(self.first)), 0.0)
        c = np.stack([start * self.share, start * (1.0 - self.share)]) * _UP * _UP
        largest = c.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            for row in self.f:
                gap = level - row
                c = np.maximum((self.grow * c * _UP + 2.0 * gap + 1e-15 * (level + np.abs(row))) * _UP, 0.0)
                np.maximum(largest, c, out=largest)
                if float(gap.max()) < 0.0 and not c.any():
                    return np.asarray(largest * _UP)  # f increases: G >= f > nu from here on
                if c.max() > 1e200:
                    break
        return np.where((c == 0.0) & (gap < 0.0), largest * _UP, np.inf)


def lower_bound(
    epsilon: float, delta: float, objective: Objective, expected: float, reach: float, *, cells: int = 16
) -> LowerBound:
    """The best bound of this kind; ``expected`` and ``reach`` are E f and the last radius of a good mechanism."""
    begun = time.thread_time()
    steps = math.ceil(2.0 * reach) + 40
    march = _March(epsilon, objective, expected, max(min(cells, 100_000 // steps), 2), steps)

    def value(level: float) -> float:
        return level - march.multiplier(level) * delta

    # nu - lambda(nu) delta is concave in nu, and lambda infinite beyond some nu.
    best, level, low, high = 0.0, 0.5, 0.0, 4.0
    for spread, tolerance in ((0.2, 1e-2), (0.05, 1e-3), (0.01, 1e-6)):
        march.balance(level)
        best, level = max((best, level), _peak(value, low, high, tolerance))
        low, high = (1.0 - spread) * level, (1.0 + spread) * level
    proved = max(best * (1.0 - 1e-14) - 1e-14 * level, 0.0) * expected
    multiplier = (level - best) / delta * expected
    return LowerBound(proved, "lattice", proved, (multiplier,), (1.0,), time.thread_time() - begun)


def _peak(value: Callable[[float], float], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """(value, place) of the largest value seen by golden section."""
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = value(a), value(b)
    best = max((at_a, a), (at_b, b))
    while high - low > tolerance * high:
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = value(b)
        best = max(best, (at_a, a), (at_b, b))
    return best
