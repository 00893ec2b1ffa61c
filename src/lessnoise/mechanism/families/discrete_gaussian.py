r"""Discrete Gaussian noise for integer arrays, with its exact privacy curve (Canonne, Kamath & Steinke 2020).

The entries are independent, P(y) proportional to exp(-y^2/(2 sigma^2)). Neighbouring arrays differ by an integer vector
v of squared length at most N = floor(D^2) (see ``squared_budget``). The privacy loss is (|v|^2 + 2 v.Y)/(2 sigma^2), so

    delta_v(eps) = E[(1 - exp(eps - L))_+],   a sum over the values z of Z = v.Y, all terms positive.

**Worst shift.** delta_v counts, height by height, the integer points of a ball about 0 outside a ball about -v. On a
line along axis i both are intervals of integers, symmetric about 0 and about -v_i: they overlap less as |v_i| grows.
So delta_v grows with every |v_i|: one entry alone has the worst shift isqrt(N), and in M >= N dimensions only shifts
with |v|^2 = N matter (any other leaves an entry at 0 that could become 1).

**One line.** Write v = g v' with v' primitive (entries without a common divisor) and n = |v'|^2. Then Z' = v'.Y has

    P(Z' = z) proportional to exp(-z^2/(2 n sigma^2)) Theta(z),

Theta(z) summing exp(-|lambda|^2/(2 sigma^2)) over a translate of the lattice of integer vectors orthogonal to v'. By
Poisson's formula Theta is constant up to factors in [1 - eta, 1 + eta], 1 + eta = sum of exp(-c |mu|^2) over the dual
lattice, c = 2 pi^2 sigma^2. For a basis with Gram-Schmidt lengths sqrt(B_j) that is at most the product over j of
theta(c/B_j), theta(a) = sum over integers i of exp(-a i^2). Extend a basis through the vectors supported on the first
2, 3, ... entries of v': B_j = (N_j/N_(j-1)) (g_(j-1)/g_j)^2, with N_j the sum of the squares of the first j entries
and g_j their divisor. So B_j >= 1, and their product is n. If c >= n, exp(-c/B) is convex in ln B, its sum is
largest with one B_j = n and the others 1, and theta(a) - 1 <= 2.2 e^-a for a >= 1:

    ln(1 + eta) <= 2.2 [exp(-2 pi^2 sigma^2/n) + (n - 2)_+ exp(-2 pi^2 sigma^2)],   1e-11 at sigma = 1.15 sqrt(n).

So the curve of v is that of one discrete Gaussian of parameter n sigma^2 on a line, within (1 + eta)/(1 - eta), and
what counts of v is (g, n) alone. For small N and sigma the law of Z is convolved instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import attained, delta_of, gaussian, law_delta
from lessnoise.mechanism.families.discrete_sampler import DiscreteGaussian, grid_index, grid_law, integer_array
from lessnoise.mechanism.families.generalized_gaussian import subgaussian_delta
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.request import Request, representable
from lessnoise.mechanism.sums import LogConcaveTerms, log_sum_moment, offsets, square_quantile, theta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise._common import Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Relation


__all__ = ["DiscreteGaussian", "discrete_gaussian", "integer_array"]

_FINEST = 1e-9  # relative width of a bracket
_ROUNDING = 1e-11  # relative: exponents up to 700, each within a few units of 2^-53 times its size
_NOTHING = 1e-290


# Privacy.


@attained.register(DiscreteGaussian)
def _(law: DiscreteGaussian, changes: Changes, dimension: int) -> bool:
    # Of a squared length of 1 or 2 there is but one shift, up to order and sign.
    return dimension == 1 or squared_budget(changes.norm(2, dimension)) <= 2


@law_delta.register(DiscreteGaussian)
def _(law: DiscreteGaussian, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    budget = squared_budget(sensitivity)
    if budget <= 1 or dimension == 1:
        return delta_of_one_shift(law, sensitivity, epsilon, tolerance)
    return _curve(law, epsilon, tolerance).vectors(budget, dimension)


def delta_of_one_shift(law: DiscreteGaussian, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """The curve against one neighbour, the largest change of a single entry; the worst one varies with epsilon."""
    budget = squared_budget(sensitivity)
    if budget == 0:  # no two integer arrays are that close: the one curve that is 0
        return Bracket(0.0, 0.0)
    return _curve(law, epsilon, tolerance).line(math.isqrt(budget), 1)


def _curve(law: DiscreteGaussian, epsilon: float, tolerance: float) -> _Curve:
    return _Curve(law.variance_parameter, Fraction(epsilon), max(1e-4 * tolerance, _FINEST))


def squared_budget(sensitivity: float) -> int:
    """Largest squared length of an integer shift: D^2 rounded down, but a D^2 just below a whole number means that one.

    Roots are typed with few digits, and 1.41 changes two entries, not one. So a hundredth of D^2 is added, and at most
    a quarter, which leaves the root of a whole number as it is. It costs half a percent of the noise at most.

    >>> [squared_budget(D) for D in (3**0.5, 1.7, 1.41421356, 1.41, 1.0, 1000.0)]
    [3, 2, 2, 2, 1, 1000000]
    """
    square = Fraction(sensitivity) ** 2
    return math.floor(square + min(square / 100, Fraction(1, 4)))


def maximal_shifts(budget: int, dimension: int) -> Iterator[tuple[int, ...]]:
    """Shifts up to order and sign, of squared length within the budget, none of whose entries can grow.

    >>> list(maximal_shifts(5, 5)), list(maximal_shifts(5, 1))
    ([(2, 1), (1, 1, 1, 1, 1)], [(2,)])
    """

    def extend(head: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        room = dimension - len(head)
        largest = min(math.isqrt(left), head[-1] if head else left) if room else 0
        if largest == 0:
            smallest = 0 if room else head[-1]
            if 2 * smallest + 1 > left:
                yield head
        for entry in range(largest, 0, -1):
            yield from extend((*head, entry), left - entry * entry)

    return extend((), budget)


@dataclass(frozen=True, slots=True)
class _Curve:
    """Delta at one epsilon: of single shifts, and of the worst of many."""

    variance: Fraction  # sigma^2
    epsilon: Fraction
    width: float

    def vectors(self, budget: int, dimension: int) -> Bracket:
        """The worst of all shifts of squared length up to ``budget`` >= 2 in ``dimension`` >= 2."""
        ripple = self._ripple(budget)
        if budget <= 16 and ripple > 1.0 + _FINEST:
            return _worst(self._convolved(shift) for shift in maximal_shifts(budget, dimension))
        scalar = self.line(math.isqrt(budget), 1)
        if ripple == math.inf:
            return Bracket(scalar.lower, max(self._concentrated(budget), scalar.lower))
        pairs = _line_shifts(budget, dimension)
        if pairs is not None:
            worst = _worst(self.line(*pair) for pair in pairs)
            upper = worst.upper * ripple
        else:
            worst = _worst([scalar, self.line(*_long_shift(budget, dimension))])
            upper = max(self._smoothed(budget) * ripple, worst.upper)
        if ripple > 1.001:
            upper = min(upper, self._concentrated(budget))
        lower = max(worst.lower / ripple, scalar.lower)
        return Bracket(lower, min(max(upper, lower), 1.0))

    def _ripple(self, budget: int) -> float:
        """(1 + eta)/(1 - eta), an upper end, for all shifts within the budget; infinite where nothing is proved."""
        exponent = 2.0 * math.pi**2 * float(self.variance)
        if exponent < budget:
            return math.inf
        eta = math.expm1(2.2 * (math.exp(-exponent / budget) + budget * math.exp(-exponent)))
        return (1.0 + eta) / (1.0 - eta) if eta < 0.9 else math.inf

    def _concentrated(self, budget: int) -> float:
        """Upper delta from rho-zCDP, rho = |v|^2/(2 sigma^2) (Canonne, Kamath & Steinke 2020)."""
        rho = float(budget / (2 * self.variance)) * (1.0 + 1e-15)
        return subgaussian_delta(rho, 2.0 * rho, float(self.epsilon))

    def _smoothed(self, budget: int) -> float:
        """Upper delta of every line with g^2 n <= N: the Gaussian's, and what a sum can exceed its integral by.

        f(z) = phi(z) (1 - exp(-a (z - t)))_+ has |sum - integral| <= V/8, V the variation of f'. For t >= 0 it is at
        most 7 a phi(t), integrating by parts with 1 - e^-x <= x; else f is unimodal and max f bounds the difference.
        With mu = g sqrt(n)/sigma, t over the deviation sigma sqrt(n) is eps/mu - mu/2, which falls as mu grows.
        """
        sigma, epsilon = math.sqrt(float(self.variance)), float(self.epsilon)
        mu = math.sqrt(budget) / sigma
        t = epsilon / mu - 0.5 * mu
        excess = 1.0 / (sigma * math.sqrt(2.0 * math.pi))
        if t > 0.0:
            excess *= 0.875 * math.sqrt(budget) / sigma**2 * math.exp(-0.5 * t * t * (1.0 - 1e-14))
        return gaussian.gaussian_delta(mu * (1.0 + 1e-15), epsilon).upper + excess * (1.0 + _ROUNDING)

    def line(self, divisor: int, norm: int) -> Bracket:
        """The shift g v', |v'|^2 = n: sum over integers z > t of p(z) (1 - exp(-a (z - t))), p of parameter n sigma^2.

        L - eps = (g/sigma^2)(z - t), t = eps sigma^2/g - g n/2. The terms are log-concave in z. For large sigma they
        are taken in blocks, over which the chord of the logarithm is below and the tangent above.
        """
        parameter = norm * self.variance
        threshold = self.epsilon * self.variance / divisor - Fraction(divisor * norm, 2)
        deviation = math.sqrt(float(parameter))
        if deviation > 2.0**52:  # a sum over the integers differs from its integral by one term at most
            smooth = gaussian.gaussian_delta(deviation * divisor / float(self.variance), float(self.epsilon))
            return Bracket(max(smooth.lower - 2.0**-53, 0.0), min(smooth.upper + 2.0**-53, 1.0))
        start = max(math.floor(threshold) + 1, -math.floor(9.5 * deviation))
        skipped = 1e-19 if start > threshold + 1 else 0.0  # P(Z < -9.5 deviations) <= e^(-9.5^2/2)
        if start > 0 and start * start > 1380 * parameter:  # P(Z >= z) <= exp(-z^2/(2 n sigma^2))
            return Bracket(0.0, _NOTHING)
        exponent = float(start * start / (2 * parameter))
        slope = float(divisor / self.variance)
        terms = LogConcaveTerms(float(start), float(start - threshold), float(1 / parameter), slope)
        end = math.ceil(math.hypot(max(start, 0), 8.0 * deviation)) + 2
        narrow = deviation * min(1.0, deviation / max(start, 1))  # the terms fall by a factor e over this length
        lower, upper = terms.sum(offsets(end - start, deviation, narrow, math.sqrt(2.5 * self.width)))
        scale = math.exp(-exponent) / theta(float(parameter))
        upper = upper * scale * (1.0 + _ROUNDING) + skipped + _NOTHING
        return Bracket(lower * scale * (1.0 - _ROUNDING), min(upper, 1.0))

    def _convolved(self, shift: tuple[int, ...]) -> Bracket:
        """The same for any shift, from the law of v.Y itself; for small sigma."""
        variance = float(self.variance)
        reach = math.ceil(38.5 * math.sqrt(variance)) + 1  # P(|Y| > reach) < 1e-300
        single = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2.0 * variance)) / theta(variance)
        law = np.ones(1)
        for entry in shift:
            spread = np.zeros(2 * reach * entry + 1)
            spread[::entry] = single
            law = np.convolve(law, spread)
        threshold = self.epsilon * self.variance - Fraction(sum(entry * entry for entry in shift), 2)
        start = max(math.floor(threshold) + 1, -reach * sum(shift))
        weights = law[start + reach * sum(shift) :]
        gains = -np.expm1(-(float(start - threshold) + np.arange(len(weights))) / variance)
        value = float(np.dot(weights, gains))
        return Bracket(value * (1.0 - _ROUNDING), min(value * (1.0 + _ROUNDING) + _NOTHING, 1.0))


def _worst(brackets: Iterator[Bracket] | list[Bracket]) -> Bracket:
    lower, upper = zip(*((one.lower, one.upper) for one in brackets), strict=True)
    return Bracket(max(lower), max(upper))


def _line_shifts(budget: int, dimension: int) -> set[tuple[int, int]] | None:
    """The pairs (g, n) of all maximal shifts; None if there are too many to go through."""
    if dimension >= budget:  # v' = (1, ..., 1), n = N/g^2
        pairs = {(g, budget // (g * g)) for g in range(1, min(math.isqrt(budget), 1000) + 1) if budget % (g * g) == 0}
        return pairs if len(pairs) <= 8 and budget <= 10**6 else None
    if budget > 32:
        return None
    shifts = maximal_shifts(budget, dimension)
    return {(g := math.gcd(*shift), sum(entry * entry for entry in shift) // (g * g)) for shift in shifts}


def _long_shift(budget: int, dimension: int) -> tuple[int, int]:
    """A pair (g, n) with g^2 n as near to the budget as two squares, or five, bring it."""
    if dimension >= 5:  # (1, a, b, c, d) with a^2 + b^2 + c^2 + d^2 = N - 1 (Lagrange)
        return 1, budget
    entries = range(max(math.isqrt(budget) - 1000, 0), math.isqrt(budget) + 1)
    a, b = max(((a, math.isqrt(budget - a * a)) for a in entries), key=lambda pair: pair[0] ** 2 + pair[1] ** 2)
    divisor = math.gcd(a, b)
    return divisor, (a * a + b * b) // divisor**2


# Accuracy.


def square_moments(variance: float, order: int) -> list[float]:
    """E[Y^(2j)]/variance^j for j = 0..order, where ``variance`` is the parameter sigma^2.

    >>> f"{0.25 * square_moments(0.25, 1)[1]:.6f}"
    '0.215013'
    """
    if variance >= 4.0:  # by Poisson's formula a normal variable's, within (4 pi^2 variance)^4 e^(-2 pi^2 variance)
        return [float(math.prod(range(1, 2 * j, 2))) for j in range(order + 1)]
    if variance < 6e-4:  # P(Y != 0) is below the range of doubles
        return [1.0] + [0.0] * order
    y = np.arange(1.0, 80.0)
    weights = 2.0 * np.exp(-y * y / (2.0 * variance)) / theta(variance)
    return [1.0] + [math.fsum(weights * (y * y / variance) ** j) for j in range(1, order + 1)]


@log_raw_moment.register(DiscreteGaussian)
def _(law: DiscreteGaussian, dimension: int, order: int) -> float:
    variance = float(law.variance_parameter)
    return order * math.log(variance) + log_sum_moment(square_moments(variance, order), dimension, order)


@quantile.register(DiscreteGaussian)
def _(law: DiscreteGaussian, dimension: int, probability: float) -> float:
    # The loss is an integer; by convolution over the integers it is exact up to 1e-12 of probability. Where that
    # does not fit 2^21 points, sigma or M is large and the loss of normal noise serves: within 1e-3 of the mean.
    from scipy.special import gammaincinv

    variance = float(law.variance_parameter)
    _, mean, second = square_moments(variance, 2)
    reach = math.ceil(9.0 * math.sqrt(variance)) + 2
    window = reach * reach + 24.0 * variance * math.sqrt(dimension * (second - mean * mean)) + 2.0
    if dimension == 1 and variance > 1e8:
        return float(round(math.sqrt(2.0 * variance * gammaincinv(0.5, probability))) ** 2)
    if dimension > 1 and window > 2**21:
        return float(2.0 * variance * gammaincinv(0.5 * dimension, probability))
    y = np.arange(reach + 1)
    masses = np.exp(-(y**2) / (2.0 * variance)) / theta(variance)
    masses[1:] *= 2.0
    return square_quantile(masses, dimension, dimension * mean * variance, probability, window)


# Calibration.


def discrete_gaussian(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """Integer noise for integer arrays: the smallest sigma^2, to 13 bits, whose curve keeps the target.

    ``sensitivity`` is an l2 norm, the square root of a whole number; 1.41 is read as the root of 2. The law is sampled
    exactly, so that no rounding weakens the guarantee.

    >>> m = discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(3, 4))
    >>> m.law, m.check().holds
    (DiscreteGaussian(numerator=..., denominator=...), True)
    >>> m.noise().dtype
    dtype('int64')
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    epsilon, delta, sensitivity = target.epsilon, target.delta, target.sensitivity
    budget = squared_budget(sensitivity)
    if budget == 0:
        raise InvalidInput(
            f"sensitivity={sensitivity:g} is below 1, but two different integer arrays are at least 1 apart: pass "
            "the largest change that one individual can cause, a number of at least 1."
        )
    with representable(epsilon=epsilon, delta=delta, sensitivity=sensitivity):
        sigma = gaussian.gaussian_scale(epsilon, delta) * math.sqrt(budget)
    if sigma > 2.0**55:  # half of what the law allows
        raise InvalidInput(
            f"epsilon={epsilon:g}, delta={delta:g}, sensitivity={sensitivity:g} need sigma={sigma:g}, too much for "
            "64-bit integers: use a larger epsilon or delta, or analytic_gaussian."
        )

    def keeps(index: int) -> bool:
        return delta_of(grid_law(index), target.dimension, sensitivity, epsilon).upper <= target.reserved_delta

    index = _first(keeps, grid_index(sigma * sigma))
    # A loss (N + 2z)/(2 sigma^2) meets epsilon at these sigma^2; just there delta has dips when sigma is small.
    dips = (grid_index(min((budget + 2 * z) / (2.0 * epsilon), 1e300)) + 1 for z in range(64))
    lower = next((dip for dip in dips if dip >= index or keeps(dip)), index)
    law = grid_law(index if lower >= index else _first(keeps, lower))
    return target.mechanism("discrete-gaussian", law, OURS)


def _first(keeps: Callable[[int], bool], start: int) -> int:
    """An index that keeps the target while the one before it does not, searched from a good guess."""
    low = high = start
    step = 1
    while not keeps(high):
        low, high, step = high, high + step, 2 * step
    step = 1
    while low == high or keeps(low):
        high = min(low, high)
        low, step = high - step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high
