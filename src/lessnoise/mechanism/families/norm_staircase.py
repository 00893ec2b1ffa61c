r"""Staircase noise in the norm of a body: the density falls by e^rate at every step outwards (Kulesza et al. 2025).

The radii of the steps are r_j = (share + j) width, j = 0, 1, ...: constant density inside r_0, and e^-rate times the
last between r_(j-1) and r_j. A change of norm at most ``width`` crosses one step at most, by the triangle inequality:
the noise is pure rate-DP for it. Where rate is large it is much smaller than noise of density exp(-rate ||n||/width).

The noise is uniform in r_J K, P(J = j) proportional to r_j^M e^(-rate j). With eps = k rate + rho, 0 <= rho < rate, the
slices of ``norm_bodies`` between two heights have two outer radii, and with t = (e^rho - 1)/(e^rate - 1)

    delta(eps) = E[(1 - t) lost((D - k width)/r_J) + t lost((D - (k+1) width)/r_J)],

exact for both bodies, as the worst vertex is the same for all slices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import law_delta, law_pure_epsilon
from lessnoise.mechanism.families.norm_bodies import BODIES, CUBE, OfBody, checked_factors, lost_share
from lessnoise.mechanism.law import register
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import Form, StepRadius, UniformBody

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array

SMALLEST_RATE, LARGEST_RATE = 2.0**-6, 700.0
_MOST_STEPS = 1 << 23
_DEPTH = 100.0  # steps whose weight is below e^-100 of the largest are left out
_CUT = 1e-40
_ROUNDING = 1e-11
_ULP = 2.0**-52


@register
@dataclass(frozen=True, slots=True)
class NormStaircase(OfBody):
    """Uniform noise on steps of one ``width``, the first of which is ``share`` wide, in the norm of a body.

    The sensitivity and the ``factors`` are those of :class:`NormRadial`.

    >>> NormStaircase("corner", 8, 0.5, 1)
    NormStaircase(body='corner', rate=8.0, share=0.5, width=1.0, factors=())
    """

    body: str
    rate: float
    share: float
    width: float
    factors: tuple[float, ...] = ()

    kind: ClassVar[str] = "norm-staircase"
    norm: ClassVar[str] = "body"

    def __post_init__(self) -> None:
        validation.choice("body", self.body, BODIES)
        settle(self, rate=validation.positive("rate", self.rate), share=validation.positive("share", self.share))
        settle(self, width=validation.positive("width", self.width), factors=checked_factors(self.factors))
        if not SMALLEST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidInput(
                f"rate={self.rate:g} is not between {SMALLEST_RATE:g} and {LARGEST_RATE:g}: for less, use norm-radial "
                "noise, which is as small."
            )
        if self.share > 1.0:
            raise InvalidInput(f"share={self.share:g} is above 1: the first step is not wider than the others.")

    def choice(self, dimension: int) -> str:
        """The body and the first step."""
        return f"staircase on the {self.body} (share = {self.share:.4g})"

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As many factors as entries, and not too many steps."""
        OfBody.check_shape(self, shape)
        if math.sqrt(8.0 * _DEPTH * math.prod(shape)) + _DEPTH > _MOST_STEPS * self.rate:
            raise InvalidInput(
                f"shape={shape} with rate={self.rate:g} makes too many steps: use norm-radial noise, which is as small."
            )


def steps(law: NormStaircase, dimension: int) -> tuple[Array, Array]:
    """The radii r_j and their probabilities, but for a part below 1e-40 at the ends.

    >>> radii, chances = steps(NormStaircase("cube", 2.0, 1.0, 3.0), 1)
    >>> radii[:2], f"{chances[0]:.4f}"  # (1 - e^-2)^2
    (array([3., 6.]), '0.7476')
    """
    peak = max(dimension / law.rate, law.share)

    def falls(place: float) -> float:
        """How far the logarithm of the weight place^M e^(-rate place) lies below that at the peak."""
        return law.rate * (place - peak) - dimension * math.log(place / peak)

    low = law.share if falls(law.share) < _DEPTH else _bisect(falls, peak, law.share)
    high = _bisect(falls, peak, 2.0 * peak + 3.0 * _DEPTH / law.rate + 2.0)
    first, last = math.floor(low - law.share), math.ceil(high - law.share) + 1
    places = law.share + np.arange(first, last + 1, dtype=np.float64)
    logs = dimension * np.log1p((places - peak) / peak) - law.rate * (places - peak)
    weights = np.exp(logs - logs.max())
    return law.width * places, weights / weights.sum()


def _bisect(falls: Callable[[float], float], inner: float, outer: float) -> float:
    """A place between the two where the weight has fallen by e^-100, seen from the peak; it falls ever faster."""
    for _ in range(60):
        middle = 0.5 * (inner + outer)
        inner, outer = (middle, outer) if falls(middle) < _DEPTH else (inner, middle)
    return outer


@noise_form.register(NormStaircase)
def _(law: NormStaircase, shape: tuple[int, ...]) -> Form:
    return UniformBody(StepRadius(law.rate, law.share, law.width, math.prod(shape)), law.body != CUBE, law.factors)


# Privacy.


@law_pure_epsilon.register(NormStaircase)
def _(law: NormStaircase, dimension: int, sensitivity: float) -> float:
    if sensitivity <= law.width:
        return law.rate
    return law.rate * math.ceil(Fraction(sensitivity) / Fraction(law.width)) * (1.0 + 2.0 * _ULP)


@law_delta.register(NormStaircase)
def _(law: NormStaircase, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if epsilon >= law_pure_epsilon(law, dimension, sensitivity):
        return Bracket(0.0, 0.0)
    whole = math.floor(epsilon / law.rate)
    rest = min(max(epsilon - whole * law.rate, 0.0), law.rate)
    upper_share = math.expm1(rest) / math.expm1(law.rate) if law.rate < 36.0 else math.exp(rest - law.rate)
    radii, chances = steps(law, dimension)
    value = error = 0.0
    for crossed, weight in ((whole, 1.0 - upper_share), (whole + 1, upper_share)):
        q = float(Fraction(sensitivity) - crossed * Fraction(law.width)) / radii
        value += weight * float(np.dot(chances, lost_share(law.body, dimension, q)))
        # What the rounding of q can change, lost() being nowhere steeper than (M + 1)/2.
        if q[0] > 0.0:
            error += weight * float(np.dot(chances, q)) * 4.0 * _ULP * (dimension + 1.0)
    error += 8.0 * _ULP * epsilon  # delta changes by no more than epsilon does
    lower = max(value * (1.0 - _ROUNDING) - error - _CUT, 0.0)
    return Bracket(lower, min(value * (1.0 + _ROUNDING) + error + _CUT, 1.0))
