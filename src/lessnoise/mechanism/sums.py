"""Sums of independent, identical, nonnegative terms: moments and quantiles, for laws with independent entries.

And the sums over the integers behind the discrete Gaussian's curve, as brackets: by blocks where there are many terms.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array


LARGEST_CONVOLUTION = 10**5
_POINTS = 2**20
_FINE_POINTS = 2**15
_FINE_INDEX = 1000  # a quantile this many cells from 0 has a relative error below 1e-5


def log_sum_moment(moments: Sequence[float], dimension: int, order: int) -> float:
    """ln E[(X_1 + ... + X_M)^order] from the raw moments E[X^j] of one term; only positive numbers are added.

    E[S^n]/n! are the coefficients of the M-th power of the series with coefficients E[X^j]/j!.

    >>> round(math.exp(log_sum_moment([1, 1, 2], 3, 2)), 9)  # Gamma(3): second moment 3 * 4
    12.0
    """
    base = [moments[j] / math.factorial(j) for j in range(order + 1)]
    power = [1.0] + [0.0] * order
    while dimension:
        if dimension & 1:
            power = _product(power, base)
        base = _product(base, base)
        dimension >>= 1
    return math.log(power[order] * math.factorial(order)) if power[order] > 0.0 else -math.inf


def _product(first: list[float], second: list[float]) -> list[float]:
    return [sum(first[i] * second[n - i] for i in range(n + 1)) for n in range(len(first))]


def sum_quantile(
    survival_integral: Callable[[Array], Array],
    moments: Sequence[float],
    longest: float,
    dimension: int,
    probability: float,
) -> float:
    """Quantile of the sum of M terms, by fast Fourier convolution; relative error about 1e-5.

    ``survival_integral(y)`` is the integral of P(X > y) from 0 to y, and P(X > longest) is negligible. The
    law of one term is put on a lattice with each piece's mean kept, so the error is of second order in the
    spacing. A quantile near 0 is found on a finer lattice, cut at a few times its size: terms are
    nonnegative, so the cut changes nothing below. Beyond 10^5 terms the expansion of Cornish and Fisher
    takes over.
    """
    if dimension > LARGEST_CONVOLUTION:
        return cornish_fisher(moments, dimension, probability)
    deviation = math.sqrt(dimension * (moments[2] - moments[1] ** 2))
    spacing = (longest + 24.0 * deviation) / _POINTS
    masses = _lattice(survival_integral, spacing, math.ceil(longest / spacing) + 1)
    index, share = lattice_quantile(masses, dimension, dimension * moments[1] / spacing, probability, _POINTS)
    while index < _FINE_INDEX and spacing > 1e-200:
        spacing *= 4.0 * (index + 2) / _FINE_POINTS
        masses = _power(_lattice(survival_integral, spacing, _FINE_POINTS), dimension)
        index, share = _reach(np.cumsum(masses), probability)
    return float(max(spacing * (index - 0.5 + share), 0.0))


def _lattice(survival_integral: Callable[[Array], Array], spacing: float, count: int) -> Array:
    """Masses at 0, spacing, 2 spacing, ...: hat functions keep the mean of every piece."""
    edges: Array = spacing * np.arange(count + 1, dtype=np.float64)
    means = np.diff(survival_integral(edges)) / spacing
    return np.concatenate([[1.0 - means[0]], means[:-1] - means[1:]])


def _power(masses: Array, exponent: int) -> Array:
    """The exponent-fold convolution, cut to the length of its input."""
    count = len(masses)

    def convolve(first: Array, second: Array) -> Array:
        product = np.fft.irfft(np.fft.rfft(first, 2 * count) * np.fft.rfft(second, 2 * count), 2 * count)
        return np.maximum(product[:count], 0.0)

    result: Array | None = None
    while exponent:
        if exponent & 1:
            result = masses if result is None else convolve(result, masses)
        masses = convolve(masses, masses) if exponent > 1 else masses
        exponent >>= 1
    if result is None:
        raise AssertionError("the exponent is at least 1")
    return result


def lattice_quantile(masses: Array, dimension: int, mean: float, probability: float, points: int) -> tuple[int, float]:
    """First index at which the law of a sum of M lattice variables reaches a probability, and the share it needs.

    The sum wraps around the window of ``points``; it is unrolled from half a window below its mean.
    """
    lattice = np.zeros(points)
    np.add.at(lattice, np.arange(len(masses)) % points, masses)
    total = np.fft.irfft(np.fft.rfft(lattice) ** dimension, points)
    first = max(0, math.floor(mean - 0.5 * points))
    index, share = _reach(np.cumsum(np.roll(total, -(first % points))), probability)
    return first + index, share


def square_quantile(masses: Array, dimension: int, mean: float, probability: float, window: float) -> float:
    """Quantile of a sum of M squares of integers, of which ``masses`` are the probabilities of the sizes 0, 1, 2, ...

    ``mean`` is that of the sum, and ``window`` how many values it can have as far as it matters.
    """
    if dimension == 1:
        return float(min(int(np.searchsorted(np.cumsum(masses), probability)), len(masses) - 1) ** 2)
    squares = np.zeros((len(masses) - 1) ** 2 + 1)
    squares[np.arange(len(masses)) ** 2] = masses
    return float(lattice_quantile(squares, dimension, mean, probability, 2 ** math.ceil(math.log2(window)))[0])


def _reach(cumulative: Array, probability: float) -> tuple[int, float]:
    index = min(int(np.searchsorted(cumulative, probability)), len(cumulative) - 1)
    before = float(cumulative[index - 1]) if index else 0.0
    share = (probability - before) / max(float(cumulative[index]) - before, 1e-300)
    return index, min(max(share, 0.0), 1.0)


def cornish_fisher(moments: Sequence[float], dimension: int, probability: float) -> float:
    """Quantile of a sum of M independent terms from the raw moments 1..4 of one; error O(M^(-3/2)) deviations."""
    _, m1, m2, m3, m4 = moments
    variance = m2 - m1 * m1
    third = m3 - 3.0 * m2 * m1 + 2.0 * m1**3
    fourth = m4 - 4.0 * m3 * m1 - 3.0 * m2 * m2 + 12.0 * m2 * m1 * m1 - 6.0 * m1**4
    z = statistics.NormalDist().inv_cdf(probability)
    skew = third / variance**1.5 / math.sqrt(dimension)
    excess = fourth / variance**2 / dimension
    adjusted = (
        z + skew * (z * z - 1.0) / 6.0 + excess * (z**3 - 3.0 * z) / 24.0 - skew**2 * (2.0 * z**3 - 5.0 * z) / 36.0
    )
    return float(dimension * m1 + math.sqrt(dimension * variance) * adjusted)


@dataclass(frozen=True, slots=True)
class LogConcaveTerms:
    """f(k) = exp(-k (2 start + k) inverse/2) (1 - exp(-slope (first + k))), log-concave in k > -first."""

    start: float
    first: float
    inverse: float  # 1/(n sigma^2)
    slope: float

    def sum(self, nodes: NDArray[np.int64]) -> tuple[float, float]:
        """Bracket of the sum of f over all integers from 0 on, from blocks between the nodes, rounding apart."""
        k, widths = nodes.astype(np.float64), np.diff(nodes).astype(np.float64)
        logs = self._log(k)
        last = float(k[-1])
        decline = (self.start + last) * self.inverse - self._rise(last)
        beyond = math.exp(logs[-1]) / -math.expm1(-decline)  # a geometric series above the rest
        values = np.exp(logs[:-1])
        if nodes[-1] == len(nodes) - 1:
            total = float(np.sum(values))
            return total, total + beyond
        rates = np.diff(logs) / widths
        flat = rates == 0.0
        rates[flat] = 1.0
        chords = values * np.where(flat, widths, np.expm1(rates * widths) / np.expm1(rates))
        middles = k[:-1] + 0.5 * (widths - 1.0)
        halves = 0.5 * (self._rise(middles) - (self.start + middles) * self.inverse)
        flat = (halves == 0.0) | (widths == 1.0)
        halves[flat] = 1.0
        tangents = np.exp(self._log(middles)) * np.where(flat, widths, np.sinh(halves * widths) / np.sinh(halves))
        return float(np.sum(chords)), float(np.sum(tangents)) + beyond

    def _log(self, k: Array) -> Array:
        gain = np.log(-np.expm1(-self.slope * (self.first + k)))
        result: Array = gain - 0.5 * self.inverse * k * (2.0 * self.start + k)
        return result

    def _rise(self, k: Array | float) -> Array:
        """Slope of ln(1 - exp(-slope (first + k)))."""
        result: Array = self.slope / np.expm1(np.minimum(self.slope * (self.first + k), 700.0))
        return result


def offsets(length: int, deviation: float, scale: float, step: float) -> NDArray[np.int64]:
    """Integers from 0 to ``length``: all of them if they are not too many, else in the steps that the bracket needs.

    With x the offset, ln f bends like 1/x^2 + 1/deviation^2, and all up to x weighs (x/scale)^2 of the sum at most.
    """
    if length * step <= 10.0:
        return np.arange(length + 1)
    near = scale * (np.arange(0.0, 1.0, 0.5 * step)) ** 2
    middle = scale * np.exp(np.arange(0.0, math.log(deviation / scale) + step, step))
    far = np.arange(deviation, length, step * deviation)
    nodes = np.concatenate([near, middle, far]).astype(np.int64)
    # Nearly sorted already, which a sort uses and np.unique's hashing does not.
    nodes = np.sort(np.append(nodes[nodes < length], length), kind="stable")
    fresh = np.diff(nodes, prepend=-1) > 0
    return nodes[fresh]


def theta(variance: float) -> float:
    """Sum of exp(-z^2/(2 variance)) over the integers, within a few units of 2^-53."""
    if variance < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-z * z / (2.0 * variance)) for z in range(9, 0, -1))
    # Poisson's formula; three terms reach e^(-18 pi^2).
    images = math.fsum(math.exp(-2.0 * math.pi**2 * variance * z * z) for z in (2, 1))
    return math.sqrt(2.0 * math.pi * variance) * (1.0 + 2.0 * images)
