"""What is minimised: the mean of an increasing function of the noise radius."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Objective(Protocol):
    """An increasing function f of the radius, its slope, and its mean over balls."""

    def value(self, radius: Array) -> Array:
        """f at these radii."""
        ...

    def slope(self, radius: Array) -> Array:
        """f' at these radii."""
        ...

    def ball_mean(self, dimension: int, radius: Array) -> Array:
        """Mean of f over balls of these radii in R^dimension."""
        ...

    def kinks(self) -> tuple[float, ...]:
        """Radii at which f is not smooth."""
        ...

    def sag(self, left: Array, right: Array) -> Array:
        """A bound on how far f falls below its chord over intervals without kinks inside."""
        ...


@dataclass(frozen=True, slots=True)
class Power:
    """f(r) = r^order: order 2 is the mean squared error, order 1 the mean length."""

    order: float = 2.0

    def value(self, radius: Array) -> Array:
        """f at these radii."""
        return radius**self.order

    def slope(self, radius: Array) -> Array:
        """f' at these radii."""
        return self.order * radius ** (self.order - 1.0)

    def ball_mean(self, dimension: int, radius: Array) -> Array:
        """Mean of f over balls of these radii."""
        return dimension / (dimension + self.order) * radius**self.order

    def kinks(self) -> tuple[float, ...]:
        """Where f is not smooth."""
        return ()

    def sag(self, left: Array, right: Array) -> Array:
        """How far f may fall below its chord."""
        if self.order <= 1.0:
            return np.zeros_like(left)
        at = right if self.order >= 2.0 else np.maximum(left, 1e-300)
        quadratic = self.order * (self.order - 1.0) * at ** (self.order - 2.0) * (right - left) ** 2 / 8.0
        return np.minimum(quadratic, self.value(right) - self.value(left))


@dataclass(frozen=True, slots=True)
class Ramp:
    """0 up to ``start``, 1 from ``end`` on, linear in r^2 between: a softened P(r > q).

    f >= 1{r > end}, so E f <= a gives P(r > end) <= a; and f <= 1{r > start}, so a lower bound of
    E f bounds P(r > start).
    """

    start: float
    end: float

    def value(self, radius: Array) -> Array:
        """f at these radii."""
        return np.clip((radius**2 - self.start**2) / (self.end**2 - self.start**2), 0.0, 1.0)

    def slope(self, radius: Array) -> Array:
        """f' at these radii."""
        inside = (radius > self.start) & (radius < self.end)
        return np.where(inside, 2.0 * radius / (self.end**2 - self.start**2), 0.0)

    def ball_mean(self, dimension: int, radius: Array) -> Array:
        """Mean of f over balls of these radii."""
        m = dimension
        top = np.minimum(radius, self.end)
        with np.errstate(divide="ignore"):
            inner = np.exp(np.minimum(m * np.log(self.start / top), 0.0)) if self.start > 0 else np.zeros_like(top)
            whole = np.exp(m * np.log(top / radius))
        raw = m / (m + 2) * (top**2 - self.start**2 * inner) - self.start**2 * (1.0 - inner)
        mean = np.where(top > self.start, raw / (self.end**2 - self.start**2), 0.0)
        softened: Array = mean * whole + 1.0 - whole
        return softened

    def kinks(self) -> tuple[float, ...]:
        """Where f is not smooth."""
        return (self.start, self.end)

    def sag(self, left: Array, right: Array) -> Array:
        """How far f may fall below its chord."""
        inside = (left >= self.start) & (right <= self.end)
        return np.where(inside, (right - left) ** 2 / (4.0 * (self.end**2 - self.start**2)), 0.0)
