"""Sums of independent privacy losses on one lattice: a tilted Fourier transform, with every error bounded.

The n-fold loss has the law of a sum. Weighting each mass by e^(theta x) before the transform, and undoing it after,
makes the answer accurate relative to the tail in question, however small. What is bounded:

* rounding, by ||error|| <= 10 log2(N) u ||input|| for a transform of length N = 2^m (Higham 2002, chapter 24);
* what the finite window leaves out or folds in, by Chernoff's bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise._common import Array
    from lessnoise.composition.discretize import DiscreteLosses


MOST_POINTS = 2**21
_ULP = 2.0**-53
_WINDOW_TAIL = 1e-14  # tilted mass outside the window, on either side
_MARGIN = 1e-12  # relative, for the sums over at most 2^21 positive terms
_MARGIN_EACH = 1e-14  # relative, for each loss: its share of the error of e^K


@dataclass(frozen=True, eq=False)
class LossTerms:
    """Independent losses: each with the number of times that it occurs."""

    losses: Sequence[DiscreteLosses]
    counts: Sequence[int]

    def reversed(self) -> LossTerms:
        """The pairs (Q, P)."""
        return LossTerms([losses.reversed() for losses in self.losses], self.counts)

    def with_infinite_at_end(self) -> LossTerms:
        """Infinite losses taken for the largest finite one, for estimates."""
        return LossTerms([losses.with_infinite_at_end() for losses in self.losses], self.counts)

    def cumulant(self, theta: float) -> float:
        """K(theta) = ln E[e^(theta L); L finite] of the sum."""
        return sum(n * _log_moment(losses, theta) for losses, n in zip(self.losses, self.counts, strict=True))

    def slopes(self, theta: float) -> tuple[float, float]:
        """K'(theta) and K''(theta): mean and variance of the tilted sum."""
        mean = variance = 0.0
        for losses, n in zip(self.losses, self.counts, strict=True):
            weights = tilted(losses, theta)
            centre = float(weights @ losses.x)
            mean += n * centre
            variance += n * float(weights @ (losses.x - centre) ** 2)
        return mean, variance

    @property
    def infinite(self) -> float:
        """Probability that some loss is infinite."""
        if any(losses.infinite >= 1.0 for losses in self.losses):
            return 1.0
        total = sum(n * math.log1p(-losses.infinite) for losses, n in zip(self.losses, self.counts, strict=True))
        return -math.expm1(total)

    @property
    def largest(self) -> float:
        """The largest finite loss of the sum."""
        return sum(n * float(losses.x[-1]) for losses, n in zip(self.losses, self.counts, strict=True))

    @property
    def smallest(self) -> float:
        """The smallest finite loss of the sum."""
        return sum(n * float(losses.x[0]) for losses, n in zip(self.losses, self.counts, strict=True))

    def tilt(self, epsilon: float) -> float:
        """The theta > 0 with the least bound e^(K - theta epsilon) max_y e^(-theta y) (1 - e^-y) on delta."""
        return _falling_root(lambda theta: epsilon - self.sharpest_at(theta), self._unit())

    def tilt_for(self, delta: float) -> float:
        """The theta at which that least bound, e^(K - theta K')/(1 + theta), is delta."""
        goal = math.log(delta)
        return _falling_root(lambda theta: self.log_bound(theta) - goal, self._unit())

    def tilt_to_mean(self, epsilon: float) -> float:
        """The theta >= -1 whose tilted sum has mean epsilon: where the weight of ln(delta) or ln(1 - delta) lies."""
        if self.slopes(0.0)[0] < epsilon:
            return _falling_root(lambda theta: epsilon - self.slopes(theta)[0], self._unit())
        low, high = -1.0, 0.0
        for _ in range(12):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.slopes(middle)[0] < epsilon else (low, middle)
        return 0.5 * (low + high)

    def sharpest_at(self, theta: float) -> float:
        """The epsilon for which theta gives the least bound: K'(theta) - ln(1 + 1/theta)."""
        return self.slopes(theta)[0] - math.log1p(1.0 / theta)

    def log_bound(self, theta: float) -> float:
        """Ln of the bound there."""
        return self.cumulant(theta) - theta * self.slopes(theta)[0] - math.log1p(theta)

    def scales(self) -> list[float]:
        """Tilts of the order of one over the deviation of the sum, to try in Chernoff's bound."""
        return [factor * self._unit() for factor in _FACTORS] + [1.0]

    def _unit(self) -> float:
        """A first step for theta: one over the deviation of the sum."""
        return 1.0 / max(math.sqrt(self.slopes(0.0)[1]), 1e-9)


def _length(vector: Array) -> float:
    """Euclidean norm. Plain sums, here and above: threaded products wait for one another on a busy machine."""
    return math.sqrt(float(np.square(vector).sum()))


def tilted(losses: DiscreteLosses, theta: float) -> Array:
    """Masses p e^(theta x), normalised."""
    exponent = theta * losses.x
    with np.errstate(divide="ignore"):
        exponent = exponent + np.log(losses.p)
    weights = np.exp(exponent - exponent.max())
    return np.asarray(weights / weights.sum())


def _log_moment(losses: DiscreteLosses, theta: float) -> float:
    with np.errstate(divide="ignore"):
        exponent = theta * losses.x + np.log(losses.p)
    peak = float(exponent.max())
    return peak + math.log(float(np.exp(exponent - peak).sum()))


def _falling_root(function: Callable[[float], float], unit: float) -> float:
    """About the root in theta > 0 of a falling function, within a factor e^14 of ``unit``. Any value would do."""
    low, high = math.log(unit) - 14.0, math.log(unit) + 14.0
    for _ in range(16):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(math.exp(middle)) > 0.0 else (low, middle)
    return math.exp(0.5 * (low + high))


_FACTORS = (0.3, 0.6, 1.0, 1.5, 2.2, 3.2, 4.5, 6.0, 8.0, 11.0, 16.0, 24.0)


def window(terms: LossTerms, theta: float) -> tuple[float, float]:
    """Losses between which all but _WINDOW_TAIL of the tilted sum lies, on either side (Chernoff)."""
    start, cost = terms.cumulant(theta), -math.log(_WINDOW_TAIL)
    low, high = terms.smallest, terms.largest
    for unit in (1.0 / math.sqrt(max(terms.slopes(theta)[1], 1e-18)), theta):
        for factor in _FACTORS:
            s = factor * unit
            high = min(high, (terms.cumulant(theta + s) - start + cost) / s)
            low = max(low, -(terms.cumulant(theta - s) - start + cost) / s)
    return low, max(high, low)


class LatticeSum:
    """The law of the sum, tilted by theta, on multiples of ``step``; every loss of the terms is one of them."""

    def __init__(self, terms: LossTerms, step: float, theta: float) -> None:
        from scipy.fft import irfft, rfft

        self.theta = theta
        self.cumulant = terms.cumulant(theta)
        self.infinite = terms.infinite
        low, high = window(terms, theta)
        first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
        size = 1 << max((last - first).bit_length(), 4)
        unit_error = 10.0 * math.log2(size) * _ULP
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        error = unit_error
        for losses, count in zip(terms.losses, terms.counts, strict=True):
            masses = np.zeros(size)
            indices = np.rint(losses.x / step).astype(np.int64)
            np.add.at(masses, indices % size, tilted(losses, theta))
            spectrum *= rfft(masses) ** count
            # |z| <= 1, so the n-th power carries n times the error of z, and n ulps of its own phase.
            error += count * (unit_error + 16.0 * _ULP) * _length(masses)
        folded = irfft(spectrum, size)
        positions = np.arange(first, first + size)
        self.losses: Array = positions.astype(np.float64) * step
        self.masses: Array = folded[positions % size]
        self.error = error
        self.margin = _MARGIN + _MARGIN_EACH * sum(terms.counts)

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Sum of p (1 - e^(epsilon - x)) over x > epsilon, and a bound on what is wrong with it."""
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        x, theta = self.losses[start:], self.theta
        if self.cumulant - theta * epsilon > 300.0:  # far from where this tilt is of use
            return 0.0, math.inf
        with np.errstate(under="ignore"):
            weights = np.exp(self.cumulant - theta * x) * -np.expm1(epsilon - x)
        value = float((weights * self.masses[start:]).sum())
        # The largest weight that any loss above epsilon can have: y = x - epsilon = ln(1 + 1/theta).
        peak = math.exp(-theta * math.log1p(1.0 / theta)) / (1.0 + theta)
        largest = math.exp(self.cumulant - theta * epsilon) * peak
        error = _length(weights) * self.error + 2.0 * _WINDOW_TAIL * largest + self.margin * abs(value)
        return value, error

    def upper(self, epsilon: float) -> float:
        """Delta of pessimistic losses, from above."""
        value, error = self.delta(epsilon)
        finite = max(value + error, 0.0)
        return min((finite + self.infinite) * (1.0 + self.margin), 1.0)

    def lower(self, epsilon: float) -> float:
        """Delta of optimistic losses, from below."""
        value, error = self.delta(epsilon)
        return max(value - error, 0.0) + self.infinite * max(1.0 - self.margin, 0.0)
