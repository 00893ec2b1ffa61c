"""Sums over the integers behind the discrete Gaussian's curve, as brackets: by blocks where there are many terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array


@dataclass(frozen=True, slots=True)
class Terms:
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
