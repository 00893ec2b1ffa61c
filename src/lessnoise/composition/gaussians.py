"""Gaussians merge: steps of mu_1, ..., mu_n together are one Gaussian of mu^2 = mu_1^2 + ... + mu_n^2, exactly."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise.guarantees import Bracket
from lessnoise.mechanism import (
    LARGEST_EPSILON,
    CorrelatedGaussian,
    GeneralizedGaussian,
    Law,
    MatrixGaussian,
    Radial,
    gaussian_delta,
    invert_curve,
    worst_mu,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROUNDING = 4e-15


@functools.singledispatch
def mu_range(law: Law, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    """Proved ends of mu = shift/sigma of a law whose worst pair is two unit normals mu apart; None for others."""
    return None


@mu_range.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return _around(math.sqrt(2.0) * sensitivity / law.scale) if law.is_gaussian(dimension) else None


@mu_range.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    known = law.known(dimension)
    return None if known is None else mu_range(known, dimension, sensitivity)


@mu_range.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return _around(worst_mu(law, dimension, sensitivity))


@mu_range.register(MatrixGaussian)
def _(law: MatrixGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return law.mu_range(sensitivity)


@dataclass(frozen=True)
class Normal:
    """Two unit normals mu apart, mu known within rounding."""

    low: float
    high: float

    def delta(self, epsilon: float, tolerance: float = 0.0) -> Bracket:
        """The closed form, at either end of mu."""
        lower, upper = (
            gaussian_delta(self.low, epsilon).lower,
            gaussian_delta(self.high, epsilon).upper,
        )
        return Bracket(min(lower, upper), upper)

    def epsilon(self, delta: float) -> Bracket:
        """Its inverse."""
        if self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0)
        unit = self.high * max(1.0, self.high)

        def at(x: float, tolerance: float) -> Bracket:
            return self.delta(unit * math.exp(x), tolerance)

        found = invert_curve(at, delta, start=0.0, lowest=-60.0, highest=math.log(1e3 * LARGEST_EPSILON / unit))
        lower = 0.0 if found.lower == -math.inf else unit * math.exp(found.lower)
        upper = unit * math.exp(found.upper) * (1.0 + 1e-15)
        return Bracket(min(lower * (1.0 - 1e-15), upper), upper)


def merged(ranges: Iterable[tuple[tuple[float, float], int]]) -> Normal:
    """All together, each taken ``count`` times.

    >>> normal = merged([((3.0, 3.0), 1), ((2.0, 2.0), 4)])
    >>> normal.low < 5.0 < normal.high, normal.high - normal.low < 1e-12
    (True, True)
    """
    parts = [(low * low * count, high * high * count) for (low, high), count in ranges]
    low, high = math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    return Normal(math.sqrt(low) * (1.0 - _ROUNDING), math.sqrt(high) * (1.0 + _ROUNDING))


def _around(mu: float) -> tuple[float, float]:
    return mu * (1.0 - _ROUNDING), mu * (1.0 + _ROUNDING)
