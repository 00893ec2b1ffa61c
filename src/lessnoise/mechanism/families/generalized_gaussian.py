r"""Generalized Gaussian noise: independent entries of density proportional to exp(-|x/b|^p), p >= 1, l_p sensitivity.

p = 1 is the Laplace and p = 2 the Gaussian mechanism (F. Liu, TKDE 2019, arXiv 1602.06028). Their curves are exact in
any dimension, and so is that of every p for a single entry, which is the radial law with k = M = 1. Beyond these the
worst way to split a shift d with ||d||_p <= D over the entries is not known, and the curve is a bracket:

- *below*, the curve of one entry that takes the whole shift, which is one of the shifts allowed;
- *above*, the smaller of two bounds that hold for every split. delta = E[(1 - e^(eps - L))_+] grows with the privacy
  loss L = sum (|x_i + d_i|^p - |x_i|^p)/b^p, so a variable that is larger than L gives an upper bound.

**Bound 1 (Liu's condition, sharpened).** By Minkowski's inequality L <= ((||x||_p + D)^p - ||x||_p^p)/b^p, which grows
with ||x||_p, and (||x||_p/b)^p is Gamma(M/p). Liu bounds P(L > eps) by that gamma tail; the expectation above, of
the same variable, is smaller. It treats all entries as if they conspired: the noise grows with M.

**Bound 2 (1 < p < 2, no dimension in it).** With kappa = D/b, |x + d|^p <= |x|^p + p d psi(x) + C |d|^p,
psi(x) = sign(x) |x|^(p-1) and C = max over 0 <= y <= 1 of (1-y)^p - y^p + p y^(p-1). (Elsewhere the left side less
the first two terms falls as x moves off, as t^(p-1) is concave.) So L <= C kappa^p + p sum (d_i/b) psi(x_i/b). The law
of psi^2 has, relative to that of a squared normal variable of the same mean, a log-concave density
(A ln w - w^(q/2) + linear, A >= 0, q = p/(p-1) >= 2), hence is below it in convex order, and cosh(lambda sqrt(w))
is convex in w: E exp(lambda psi) <= exp(lambda^2 E[psi^2]/2), as if psi were normal. Finally
sum d_i^2 <= D^2 because l2 norms are at most l_p norms for p <= 2. The loss is dominated by a sub-Gaussian variable of
mean C kappa^p and variance p^2 kappa^2 E[psi^2], whatever M and the split; at p = 2 this is the Gaussian's own loss.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.calibration import radial_scale
from lessnoise.mechanism.curve import attained, law_delta, law_pure_epsilon, no_curve, worst_of
from lessnoise.mechanism.law import Laplace, Plain, Radial, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.request import Request
from lessnoise.mechanism.sampling import noise_form
from lessnoise.mechanism.sums import log_sum_moment, sum_quantile
from lessnoise.noise import Form, Independent, Integers, Real

if TYPE_CHECKING:
    from lessnoise._common import Array, Shape
    from lessnoise.changes import Changes, Moves
    from lessnoise.mechanism.mechanism import Mechanism


LARGEST_POWER = 100.0
_ROUNDING = 1e-9  # relative allowance for special functions and sums, three orders above what is measured
_NODES = 4096
_SMALLEST = 1e-300


@register
@dataclass(frozen=True, slots=True)
class GeneralizedGaussian(Plain):
    """Independent entries of density proportional to exp(-|x/scale|^p), for an l_p sensitivity."""

    p: float
    scale: float

    kind: ClassVar[str] = "generalized-gaussian"
    norm: ClassVar[str] = "lp"

    def __post_init__(self) -> None:
        p = validation.number("p", self.p)
        if not 1.0 <= p <= LARGEST_POWER:
            raise InvalidInput(
                f"p={self.p} must lie between 1 (Laplace) and {LARGEST_POWER:g}: pass 2 for the Gaussian."
            )
        settle(self, p=p, scale=validation.positive("scale", self.scale))

    def known(self, dimension: int) -> Laplace | Radial | None:
        """The same law by another name, where it has one whose curve is exact.

        >>> GeneralizedGaussian(2, 1.5).known(10)
        Radial(k=10.0, p=2.0, scale=1.5)
        """
        if self.p == 1.0:
            return Laplace(self.scale)
        if self.p == 2.0 or dimension == 1:
            return Radial(dimension, self.p, self.scale)
        return None


# Privacy.


@law_delta.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    known = law.known(dimension)
    if known is not None:
        return law_delta(known, dimension, sensitivity, epsilon, tolerance)
    lower = law_delta(Radial(1, law.p, law.scale), 1, sensitivity, epsilon, tolerance).lower
    upper = upper_delta(law.p, dimension, sensitivity / law.scale, epsilon)
    return Bracket(min(lower, upper), upper)


@attained.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, changes: Changes, dimension: int) -> bool:
    known = law.known(dimension)
    return known is None or attained(known, changes, dimension)


@worst_of.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, changes: Changes, dimension: int) -> float | Moves:
    known = law.known(dimension)
    if known is not None:
        return worst_of(known, changes, dimension)
    moves = changes.dominant(dimension)  # log-concave entries: a larger change of any of them loses more
    if moves is None:
        raise no_curve(law, changes)
    return moves


@law_pure_epsilon.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, sensitivity: float) -> float:
    known = law.known(dimension)
    return math.inf if known is None else law_pure_epsilon(known, dimension, sensitivity)


def upper_delta(p: float, dimension: int, kappa: float, epsilon: float) -> float:
    """The smaller of the two proved bounds, for every split of a shift of l_p norm D = kappa scale."""
    if max(kappa, epsilon) > 1e300:  # powers leave the floats
        return 1.0
    kappa = max(kappa * (1.0 + 4e-16), _SMALLEST)  # the quotient may have been rounded down
    bound = _gamma_bound(p, dimension, kappa, epsilon)
    if p < 2.0 and kappa < 1e150:
        mean = _remainder(p) * kappa**p
        variance = p * p * kappa * kappa * math.gamma(2.0 - 1.0 / p) / math.gamma(1.0 / p)
        bound = min(bound, subgaussian_delta(mean, variance, epsilon))
    return min(bound, 1.0)


def subgaussian_delta(mean: float, variance: float, epsilon: float) -> float:
    """Upper delta of a privacy loss with ln E exp(lambda L) <= lambda mean + lambda^2 variance/2 for lambda > 0.

    (1 - e^(eps - L))_+ <= exp(lambda (L - eps)) lambda^lambda/(lambda + 1)^(lambda + 1), as the left side over the
    first factor is largest at L - eps = ln(1 + 1/lambda). It is valid for every lambda, so the minimum over lambda
    need not be exact. With mean rho and variance 2 rho this is the conversion of rho-zCDP by Canonne, Kamath &
    Steinke (2020).

    >>> f"{subgaussian_delta(0.05, 0.1, 1.0):.5f}"
    '0.00039'
    """
    low, high = -700.0, 700.0  # of ln(lambda); the derivative of the exponent below grows with lambda
    for _ in range(80):
        middle = 0.5 * (low + high)
        if mean - epsilon + math.exp(middle) * variance - math.log1p(math.exp(-middle)) < 0.0:
            low = middle
        else:
            high = middle
    rate = math.exp(low)
    exponent = rate * (mean - epsilon + 0.5 * rate * variance) - math.log1p(rate) - rate * math.log1p(1.0 / rate)
    return min(math.exp(min(exponent, 0.0)) * (1.0 + _ROUNDING) + 1e-290, 1.0)


@functools.lru_cache(maxsize=64)
def _remainder(p: float) -> float:
    """An upper end of C = max over [0, 1] of (1-y)^p - y^p + p y^(p-1), cell by cell: one part falls, one grows."""
    y = np.linspace(0.0, 1.0, 20001) ** 2
    falling, growing = (1.0 - y) ** p - y**p, p * y ** (p - 1.0)
    return float(np.max(falling[:-1] + growing[1:])) * (1.0 + _ROUNDING)


def _gamma_bound(p: float, dimension: int, kappa: float, epsilon: float) -> float:
    """Upper sum of E[(1 - e^(eps - B))_+], B = (rho + kappa)^p - rho^p, rho^p ~ Gamma(M/p)."""
    from scipy.special import gammaincc, gammainccinv

    shape = dimension / p
    start = _threshold(p, kappa, epsilon)
    beyond = float(gammaincc(shape, math.exp(min(p * math.log(start), 700.0)))) if start > 0.0 else 1.0
    if beyond < 1e-280:
        return 1e-279
    end = max(float(gammainccinv(shape, 1e-9 * beyond)) ** (1.0 / p), start * (1.0 + 1e-9))
    rho = np.linspace(start, end, _NODES)
    gain = np.append(-np.expm1(np.minimum(epsilon * (1.0 + 1e-12) - _largest_loss(p, rho, kappa), 0.0)), 1.0)
    # The gain grows with rho: on each cell take its value at the end. Summed by parts, all terms are positive.
    total = gain[0] * beyond + float(np.dot(np.diff(gain), gammaincc(shape, rho**p)))
    return float(total * (1.0 + _ROUNDING))


def _largest_loss(p: float, rho: Array, kappa: float) -> Array:
    """(rho + kappa)^p - rho^p, a hair above; beyond the range of doubles any huge number serves."""
    with np.errstate(divide="ignore"):
        grown = np.exp(np.minimum(p * np.log(rho + kappa), 700.0))
        loss: Array = -grown * np.expm1(-p * np.log1p(kappa / rho)) * (1.0 + 1e-11)
    return loss


def _threshold(p: float, kappa: float, epsilon: float) -> float:
    """A rho below which the largest loss stays under epsilon; 0 if there is none."""

    def exceeds(rho: float) -> bool:
        return bool(_largest_loss(p, np.array([rho]), kappa)[0] > epsilon * (1.0 - 1e-9))

    if exceeds(0.0):
        return 0.0
    low, high = 0.0, kappa
    while not exceeds(high):
        low, high = high, 2.0 * high
        if high > 1e150:
            return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if exceeds(middle) else (middle, high)
    return low


# Accuracy.


def square_moments(p: float, order: int) -> list[float]:
    """E[|x|^(2j)] for j = 0..order at scale 1: Gamma((2j+1)/p)/Gamma(1/p)."""
    return [math.exp(math.lgamma((2 * j + 1) / p) - math.lgamma(1.0 / p)) for j in range(order + 1)]


@log_raw_moment.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, order: int) -> float:
    known = law.known(dimension)
    if known is not None:
        return log_raw_moment(known, dimension, order)
    return 2.0 * order * math.log(law.scale) + log_sum_moment(square_moments(law.p, order), dimension, order)


@quantile.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, probability: float) -> float:
    known = law.known(dimension)
    if known is not None:
        return quantile(known, dimension, probability)
    return law.scale**2 * unit_quantile(law.p, dimension, probability)


def unit_quantile(p: float, dimension: int, probability: float) -> float:
    """Quantile of the sum of M squares at scale 1."""
    from scipy.special import gammainc, gammaincc, gammainccinv

    moments = square_moments(p, 4)
    longest = float(gammainccinv(1.0 / p, 1e-20)) ** (2.0 / p)

    def survival_integral(y: Array) -> Array:
        # y P(x^2 > y) + E[x^2; x^2 < y].
        power = y ** (0.5 * p)
        result: Array = y * gammaincc(1.0 / p, power) + moments[1] * gammainc(3.0 / p, power)
        return result

    return sum_quantile(survival_integral, moments, longest, dimension, probability)


# Sampling.


@noise_form.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, shape: tuple[int, ...]) -> Form | Integers:
    known = law.known(math.prod(shape))
    return (
        Independent(noise_engine.power(law.p), Real.exactly(law.scale)) if known is None else noise_form(known, shape)
    )


# Calibration.


def generalized_gaussian(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    p: float,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Independent noise of density proportional to exp(-|x/b|^p), p >= 1, for a sensitivity in the l_p norm.

    The scale is the smallest that is proved sufficient: on the exact curve for a single entry and for p = 1 or 2,
    on an upper bound of the curve otherwise (for p > 2 that bound, Liu's, asks for much noise when there are
    many entries).

    >>> m = generalized_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=1, p=2)
    >>> f"{m.standard_deviation:.5f}"  # the analytic Gaussian
    '3.73063'
    >>> generalized_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=50, p=1.5).check().holds
    True
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    p = GeneralizedGaussian(p, 1.0).p
    exact = GeneralizedGaussian(p, 1.0).known(target.dimension) is not None
    scale = _exact_scale if exact else _bounded_scale
    unit = scale(p, target.dimension, target.epsilon, target.reserved_delta)
    source = OURS if exact else "calibrated on a proved bound by lessnoise"
    law = GeneralizedGaussian(p, unit * target.sensitivity * (1.0 + 1e-15))
    return target.mechanism(f"generalized-gaussian(p={p:g})", law, source)


def _exact_scale(p: float, dimension: int, epsilon: float, delta: float) -> float:
    if p == 1.0:  # delta = 1 - exp((eps - D/b)/2)
        return (1.0 + 1e-13) / (epsilon - 2.0 * math.log1p(-delta * (1.0 - 1e-13)))
    return radial_scale(dimension=dimension, k=dimension, p=p, epsilon=epsilon, delta=delta, sensitivity=1.0)


@functools.lru_cache(maxsize=256)
def _bounded_scale(p: float, dimension: int, epsilon: float, delta: float) -> float:
    """Smallest unit-sensitivity scale, within 1e-6, whose upper delta is within the target; the bounds fall with it."""
    mantissa, exponent = math.frexp(_exact_scale(p, 1, epsilon, delta) if p > 1.0 else 1.0 / epsilon)
    low = math.ldexp(math.floor(mantissa * 2.0**20), exponent - 20)  # in 20 bits, which the last digits of delta spare
    high = 2.0 * low

    def keeps(scale: float) -> bool:
        return upper_delta(p, dimension, 1.0 / scale * (1.0 + 1e-14), epsilon) <= delta * (1.0 - 1e-10)

    while not keeps(high):
        low, high = high, 2.0 * high
    while high > low * (1.0 + 1e-6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
