"""The exact curve of any noise description: delta at an epsilon, epsilon at a delta."""

from __future__ import annotations

import functools
import math

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import gaussian, l2, radial
from lessnoise.mechanism.curve.inversion import invert_curve
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.numerics import computable

DEFAULT_TOLERANCE = radial.DEFAULT_TOLERANCE
LARGEST_EPSILON = 1e6


@functools.lru_cache(maxsize=4096)
@computable
def delta_of(
    law: Law, dimension: int, sensitivity: float, epsilon: float, tolerance: float = DEFAULT_TOLERANCE
) -> Bracket:
    """Bracket of the smallest delta with (epsilon, delta)-DP against the worst neighbour."""
    if epsilon >= law_pure_epsilon(law, dimension, sensitivity):
        return Bracket(0.0, 0.0)
    return law_delta(law, dimension, sensitivity, epsilon, tolerance)


@functools.singledispatch
def law_delta(law: Law, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """The curve of one law; each law registers its own."""
    raise TypeError(f"no privacy curve is known for {type(law).__name__}")


@functools.singledispatch
def law_pure_epsilon(law: Law, dimension: int, sensitivity: float) -> float:
    """The epsilon of pure DP (delta = 0), rounded up; infinite unless a law registers otherwise."""
    return math.inf


@functools.singledispatch
def law_pure_epsilon_lower(law: Law, dimension: int, sensitivity: float) -> float:
    """No smaller epsilon is pure DP; laws whose pure epsilon is only a bound register what they can prove."""
    pure = law_pure_epsilon(law, dimension, sensitivity)
    return pure * (1.0 - 4e-15) if math.isfinite(pure) else pure


@law_delta.register(Laplace)
def _(law: Laplace, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    # In any dimension delta = 1 - exp((eps - D/b)/2): splitting an l1 shift over several coordinates never
    # raises delta. With shifts d1 >= d2, slicing the integral of min(p, e^eps q) by the loss of the second
    # coordinate gives at least e^((eps - d1 - d2)/2), the value of one coordinate shifted by d1 + d2.
    return l2.delta_bracket(dimension=1, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=tolerance)


@law_pure_epsilon.register(Laplace)
def _(law: Laplace, dimension: int, sensitivity: float) -> float:
    return _up(sensitivity / law.scale)


@law_delta.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if law.is_gaussian(dimension):
        return gaussian.gaussian_delta(math.sqrt(2.0) * sensitivity / law.scale, epsilon)
    if law.k == dimension and law.p == 1.0 and dimension <= l2.LARGEST_DIMENSION:
        return l2.delta_bracket(
            dimension=dimension, scale=law.scale, sensitivity=sensitivity, epsilon=epsilon, tolerance=tolerance
        )
    return radial.RadialCurve(dimension, law.k, law.p, law.scale, sensitivity, epsilon).bracket(tolerance)


@law_pure_epsilon.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float) -> float:
    # For k = M and p <= 1 the loss (|n+v|^p - |n|^p)/s^p is at most (D/s)^p, by the triangle inequality.
    if law.k == dimension and law.p <= 1.0:
        return _up(float((sensitivity / law.scale) ** law.p))
    return math.inf


def _up(epsilon: float) -> float:
    """A computed epsilon that is not 0, rounded up."""
    return math.nextafter(epsilon * (1.0 + 1e-15), math.inf)


@functools.lru_cache(maxsize=1024)
@computable
def epsilon_of(law: Law, dimension: int, sensitivity: float, delta: float) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with (epsilon, delta)-DP; infinite where there is none."""
    pure = law_pure_epsilon(law, dimension, sensitivity)
    if delta == 0.0:
        return Bracket(law_pure_epsilon_lower(law, dimension, sensitivity), pure)

    def curve(epsilon: float, tolerance: float) -> Bracket:
        return delta_of(law, dimension, sensitivity, epsilon, tolerance)

    start = curve(0.0, DEFAULT_TOLERANCE)
    if start.upper <= delta:
        return Bracket(0.0, 0.0)
    # In units of the curve's own size: the loss is about delta(0) wide when the noise is large.
    unit = min(max(start.lower, 1e-12), 1.0)

    def at(x: float, tolerance: float) -> Bracket:
        return curve(unit * math.exp(x), tolerance)

    found = invert_curve(at, delta, start=0.0, lowest=-40.0, highest=math.log(min(pure, LARGEST_EPSILON) / unit))
    lower = 0.0 if found.lower == -math.inf else unit * math.exp(found.lower)
    upper = min(unit * math.exp(found.upper) * (1.0 + 1e-15), pure)
    return Bracket(min(lower * (1.0 - 1e-15), upper), upper)
