"""The tightest noise scale whose exact curve keeps a target, always ending on the safe side."""

from __future__ import annotations

import functools
import math
from contextlib import suppress
from typing import TYPE_CHECKING

from lessnoise.errors import LessnoiseError
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.curve.chords import TooMuchWork, at_most
from lessnoise.mechanism.curve.dispatch import safe_crossing
from lessnoise.mechanism.curve.radial import RadialCurve
from lessnoise.mechanism.law import Radial

if TYPE_CHECKING:
    from lessnoise.guarantees import Bracket

_IRRELEVANT = 1e-9  # of delta: where the curve is so far below it, how far does not matter
_COARSE = 1e-3
_MOST_CELLS = 2_000_000  # an ordinary target takes 10,000, a power p near 1 at few entries much more


def radial_scale(*, dimension: int, k: float, p: float, epsilon: float, delta: float, sensitivity: float) -> float:
    """Smallest scale at which the radial member (k, p) is proved (epsilon, delta)-DP, within 1e-4.

    >>> sigma = radial_scale(dimension=3, k=3, p=2, epsilon=1, delta=1e-5, sensitivity=1) / math.sqrt(2)
    >>> f"{sigma:.5f}"
    '3.73063'
    """
    unit = _unit_scale(dimension, float(k), float(p), float(epsilon), float(delta))
    # The curve depends on scale/sensitivity alone; the factor covers the product's rounding.
    return unit * sensitivity * (1.0 + 1e-15)


@functools.lru_cache(maxsize=1024)
def _unit_scale(dimension: int, k: float, p: float, epsilon: float, delta: float) -> float:
    sigma = gaussian.gaussian_scale(epsilon, delta)
    if k == dimension and p == 2.0:
        return math.sqrt(2.0) * sigma

    def curve(x: float, tolerance: float) -> Bracket:
        # Computed anew, so that the work, which is limited, does not depend on what was asked before.
        return delta_of.__wrapped__(Radial(k, p, math.exp(x)), dimension, 1.0, epsilon, tolerance)

    def rough(x: float) -> float:
        if k == dimension and p == 1.0:  # has a fast curve of its own
            return curve(x, _COARSE).middle
        return RadialCurve(dimension, k, p, math.exp(x), 1.0, epsilon).estimate(_IRRELEVANT * delta)

    # Start where the mean squared radius is that of the Gaussian, or at the pure scale if that is less.
    shape = k / p
    start = math.log(sigma) + 0.5 * math.log(dimension) - math.log(max(shape, 1.0)) / p
    found = math.inf
    with suppress(TooMuchWork), at_most(_MOST_CELLS):
        found = safe_crossing(curve, rough, delta, start=start, lowest=start - 200.0, highest=start + 200.0)
    if found == math.inf:
        raise LessnoiseError(
            f"no scale of the radial member k={k:g}, p={p:g} was found for epsilon={epsilon:g}, delta={delta:g}, "
            f"M={dimension}: choose k and p nearer to the Gaussian's (k=M, p=2), or a less extreme target."
        )
    pure = 1.0 / epsilon if k == dimension and p == 1.0 else math.inf  # the l2 mechanism with delta = 0
    return min(math.exp(found), pure)
