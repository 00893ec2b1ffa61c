"""Spherical caps in R^M (M >= 2): fractions, inverse, first moments, and the two-sphere step.

A point n on the sphere |n| = u and a shift v of length D. With x the cosine of the angle between
them, |n + v|^2 = u^2 + D^2 + 2 u D x. The cap {x > d} is the part with |n + v| > Y,
Y^2 = u^2 + D^2 + 2 u D d. Seen from the sphere |m| = Y (m = n + v), the same rim has cosine
t = (u d + D)/Y and sine u/Y times that of d.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise.mechanism.numerics import log_gamma_ratio

if TYPE_CHECKING:
    from lessnoise._common import Array


_TINY = 1e-300


class Rim(NamedTuple):
    """A cap's rim: cosine d, 1 - d and 1 - d^2, each to full relative accuracy."""

    cosine: Array
    gap: Array
    sine_squared: Array


class SphereStep(NamedTuple):
    """From radius u through a cap of fraction s to radius Y, with derivatives (sigma = ln s)."""

    outer: Array  # Y
    slack: Array  # D - (Y - u), the distance by which the step falls short of D
    back: Array  # the cap fraction S2 of the sphere Y inside B(v, u)
    outer_u: Array
    outer_sigma: Array
    back_u: Array
    back_sigma: Array


@dataclass(frozen=True, slots=True)
class Sphere:
    """The unit sphere of R^M, M >= 2."""

    dimension: int

    @property
    def _a(self) -> float:
        return 0.5 * (self.dimension - 1)

    @property
    def log_constant(self) -> float:
        """ln of the peak constant c in the density c (1 - x^2)^((M-3)/2) of one coordinate."""
        return log_gamma_ratio(self._a, 0.5) - 0.5 * math.log(math.pi)

    def cap(self, x: Array, sine_squared: Array | None = None) -> Array:
        """P(coordinate > x); pass 1 - x^2 where x is near 1."""
        from scipy.special import betainc, betaincc

        x = np.asarray(x, dtype=float)
        clipped = np.clip(x, -1.0, 1.0)
        q = (1.0 - clipped) * (1.0 + clipped) if sine_squared is None else np.clip(sine_squared, 0.0, 1.0)
        size = np.abs(clipped)
        near = size < 0.7
        half = np.empty_like(clipped)
        half[near] = 0.5 * betaincc(0.5, self._a, size[near] ** 2)
        half[~near] = 0.5 * betainc(self._a, 0.5, q[~near])
        return np.where(clipped >= 0.0, half, 1.0 - half)

    def rim(self, fraction: Array) -> Rim:
        """Inverse of ``cap``."""
        from scipy.special import betainccinv, betaincinv

        small = np.minimum(fraction, 1.0 - fraction)
        q = betaincinv(self._a, 0.5, np.minimum(2.0 * small, 1.0))
        squared = betainccinv(0.5, self._a, np.minimum(2.0 * small, 1.0))
        q = np.where(squared < 0.5, 1.0 - squared, q)
        size = np.sqrt(np.where(squared < 0.5, squared, 1.0 - q))
        gap = q / (1.0 + size)
        upper = fraction <= 0.5
        return Rim(np.where(upper, size, -size), np.where(upper, gap, 1.0 + size), q)

    def density(self, sine_squared: Array) -> Array:
        """Density of one coordinate, in terms of 1 - x^2."""
        return np.exp(self.log_constant + (self._a - 1.0) * np.log(np.maximum(sine_squared, _TINY)))

    def step(self, u: Array, sigma: Array) -> SphereStep:
        """The step map for D = 1."""
        s = np.exp(sigma)
        d, gap, q = self.rim(s)
        root = np.sqrt(np.maximum((u - 1.0) ** 2 + 2.0 * u * (1.0 + d), 0.0))
        slack = 2.0 * u * gap / (u + 1.0 + root)
        outer = u + (1.0 - slack)
        ratio = u / outer
        q2 = q * ratio * ratio
        t = (u * d + 1.0) / outer
        back = self.cap(t, q2)
        lean = (u + d) / outer
        d_sigma = -s / self.density(q)
        return SphereStep(
            outer,
            slack,
            back,
            lean,
            u / outer * d_sigma,
            self.density(q2) * u * q / outer**3,
            s * np.exp((self.dimension - 1) * np.log(ratio)) * lean,
        )
