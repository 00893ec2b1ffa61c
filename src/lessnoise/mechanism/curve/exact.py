"""The exact curve of any noise description: delta at an epsilon, epsilon at a delta."""

from __future__ import annotations

import functools
import math

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import gaussian, l2, radial
from lessnoise.mechanism.curve.inversion import invert
from lessnoise.mechanism.law import Laplace, Law, Radial

DEFAULT_TOLERANCE = radial.DEFAULT_TOLERANCE
LARGEST_EPSILON = 1e6


@functools.lru_cache(maxsize=4096)
def delta_of(
    law: Law, dimension: int, sensitivity: float, epsilon: float, tolerance: float = DEFAULT_TOLERANCE
) -> Bracket:
    """Bracket of the smallest delta with (epsilon, delta)-DP against the worst neighbour."""
    if isinstance(law, Laplace):
        return _laplace(law, sensitivity, epsilon)
    return _radial(law, dimension, sensitivity, epsilon, tolerance)


def _laplace(law: Laplace, sensitivity: float, epsilon: float) -> Bracket:
    """Delta = 1 - exp((eps - D/b)/2), in any dimension.

    Splitting an l1 shift over several coordinates never raises delta: with shifts d1 >= d2, slicing
    the integral of min(p, e^eps q) by the loss of the second coordinate gives at least
    e^((eps - d1 - d2)/2), the value of one coordinate shifted by d1 + d2. So one coordinate is the worst.
    """
    return l2.delta_bracket(
        dimension=1, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=DEFAULT_TOLERANCE
    )


def _radial(law: Radial, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if law.is_gaussian(dimension):
        return gaussian.delta_bracket(math.sqrt(2.0) * sensitivity / law.scale, epsilon)
    if law.k == dimension and law.p == 1.0 and dimension <= l2.LARGEST_DIMENSION:
        return l2.delta_bracket(
            dimension=dimension, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=tolerance
        )
    return radial.delta_bracket(
        dimension=dimension,
        k=law.k,
        p=law.p,
        scale=law.scale,
        sensitivity=sensitivity,
        epsilon=epsilon,
        tolerance=tolerance,
    )


@functools.lru_cache(maxsize=1024)
def epsilon_of(law: Law, dimension: int, sensitivity: float, delta: float) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with (epsilon, delta)-DP; infinite where there is none."""
    pure = _pure_epsilon(law, dimension, sensitivity)
    if delta == 0.0:
        return Bracket(pure, pure)

    def curve(epsilon: float, tolerance: float) -> Bracket:
        return delta_of(law, dimension, sensitivity, epsilon, tolerance)

    start = curve(0.0, DEFAULT_TOLERANCE)
    if start.upper <= delta:
        return Bracket(0.0, 0.0)
    # In units of the curve's own size: the loss is about delta(0) wide when the noise is large.
    unit = min(max(start.lower, 1e-12), 1.0)

    def at(x: float, tolerance: float) -> Bracket:
        return curve(unit * math.exp(x), tolerance)

    found = invert(at, delta, start=0.0, lowest=-40.0, highest=math.log(min(pure, LARGEST_EPSILON) / unit))
    if found is None:  # even the largest epsilon keeps delta above the target
        return Bracket(min(pure, LARGEST_EPSILON), pure)
    lower = 0.0 if found.lower == -math.inf else unit * math.exp(found.lower)
    return Bracket(lower * (1.0 - 1e-15), unit * math.exp(found.upper) * (1.0 + 1e-15))


def _pure_epsilon(law: Law, dimension: int, sensitivity: float) -> float:
    """The epsilon of pure DP: D/s for the Laplace and l2 mechanisms, infinite otherwise.

    For k = M and p <= 1 the loss (|n+v|^p - |n|^p)/s^p is at most (D/s)^p by the triangle inequality.
    """
    if isinstance(law, Laplace):
        return sensitivity / law.scale * (1.0 + 1e-15)
    if law.k == dimension and law.p <= 1.0:
        return float((sensitivity / law.scale) ** law.p * (1.0 + 1e-15))
    return math.inf
