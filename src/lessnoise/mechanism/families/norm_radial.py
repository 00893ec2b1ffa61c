r"""Norm-radial noise: density proportional to exp(-(||n||/s)^p), the norm being that of a cube or a corner body.

For values whose entries are bounded one by one, the changes of an individual fill a cube or a corner body
(``norm_bodies``), and noise of that shape is far smaller than a Gaussian made for the l2 ball around it, as long as
the entries are few. With power p = 1 and scale D/eps it is pure eps-DP (Hardt & Talwar 2010, with the norm of the
body).

The noise is uniform in uK with (u/s)^p = x ~ Gamma((M + p)/p), and Y^p = u^p + eps s^p, so with d = D/s

    delta(eps) = E lost(q(x)),    q(x) = 1 + d x^(-1/p) - (1 + eps/x)^(1/p),

lost being the share of ``norm_bodies``. The cube with p = 1 has delta = 1 - exp((eps - d)/2) in every dimension.

**How the integral is bracketed.** Since p >= 1, u + D - Y is concave in u: q rises up to a peak and falls beyond it,
so it takes each of the values 0, 1 and 2, where lost() changes its formula, twice at most. Between these the integrand
is analytic, and Gauss and Legendre's rule of N nodes on a panel of half width h around c errs by at most

    (64/15) h B rho^(-2N+2)/(1 - rho^-2),   B >= |integrand| on the ellipse around the panel with parameter rho

(Trefethen, Approximation Theory, Theorem 19.3). The ellipse lies in the disc |z - c| <= R = h (rho + 1/rho)/2, where
Re((A-1) ln z - z) <= (A-1) ln c - c + R |(A-1)/c - 1| + (A-1) w^2/(2 (1-w)), w = R/c, A = (M + p)/p, where |q'| is at
most (d/p) (c-R)^(-1/p-1) + (eps/p) (c-R)^-2, and where |lost| <= 1 + (1 + n |q|/4) max(1, |r|)^M, or, for the
corner body beyond q = 1, 1 + |2 - q|^M/C(n, b).
"""

from __future__ import annotations

import itertools
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
from lessnoise.mechanism.families.norm_bodies import BODIES, CUBE, OfBody, checked_factors, lost_share, worst_entries
from lessnoise.mechanism.law import register
from lessnoise.mechanism.numerics import log_gamma_peak
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import Form, GammaRadius, UniformBody

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array

LARGEST_POWER = 100.0
_ROUNDING = 1e-11  # relative allowance for special functions, two orders above what is measured
_ULP = 2.0**-52
_CUT = 1e-40  # probability left out at either end
_COUNT = 24
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_COUNT)
_WIDEST_ELLIPSES = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)  # R/h to choose from
_MOST_PANELS = 6000


@register
@dataclass(frozen=True, slots=True)
class NormRadial(OfBody):
    """Density proportional to exp(-(||n||/scale)^power) in the norm of a "cube" or a "corner" body.

    The sensitivity is the largest norm of a change: for the cube the largest change of an entry; for the corner body
    the same, if all entries of a change have one sign. Entry i of the noise is then multiplied by ``factors[i]``, and
    the change that counts is the one divided by the factors. The power is rounded to a multiple of 2^-20: with it,
    M + power is a float, and the noise is drawn exactly.

    >>> NormRadial("cube", 1, 2.5)
    NormRadial(body='cube', power=1.0, scale=2.5, factors=())
    """

    body: str
    power: float
    scale: float
    factors: tuple[float, ...] = ()

    kind: ClassVar[str] = "norm-radial"
    norm: ClassVar[str] = "body"

    def __post_init__(self) -> None:
        validation.choice("body", self.body, BODIES)
        power = validation.number("power", self.power)
        if not 1.0 <= power <= LARGEST_POWER:
            raise InvalidInput(f"power={self.power} must lie between 1 and {LARGEST_POWER:g}: pass 1 for pure privacy.")
        settle(self, power=round(power * 2**20) / 2**20, scale=validation.positive("scale", self.scale))
        settle(self, factors=checked_factors(self.factors))

    def choice(self, dimension: int) -> str:
        """The body and the power."""
        return f"norm-radial on the {self.body} (p = {self.power:.4g})"


@noise_form.register(NormRadial)
def _(law: NormRadial, shape: tuple[int, ...]) -> Form:
    # u^M |df(u)| is the density of r^(M + p - 1) exp(-(r/s)^p).
    radius = GammaRadius(math.prod(shape) + law.power, law.power, law.scale)
    return UniformBody(radius, law.body != CUBE, law.factors)


@law_pure_epsilon.register(NormRadial)
def _(law: NormRadial, dimension: int, sensitivity: float) -> float:
    # The triangle inequality: ||n - v|| <= ||n|| + D.
    return math.nextafter(sensitivity / law.scale * (1.0 + 1e-15), math.inf) if law.power == 1.0 else math.inf


@law_delta.register(NormRadial)
def _(law: NormRadial, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    ratio = sensitivity / law.scale
    if law.power == 1.0 and Fraction(epsilon) * Fraction(law.scale) >= Fraction(sensitivity):
        return Bracket(0.0, 0.0)
    if law.power == 1.0 and (law.body == CUBE or dimension == 1):
        # 1 - exp((eps - d)/2); the quotient d may be off in its last place, and so may the factors of the entries.
        ends = [-math.expm1(min(0.5 * (epsilon - ratio * (1.0 + side * _ULP)), 0.0)) for side in (-4.0, 1.0)]
        return Bracket(max(ends[0], 0.0) * (1.0 - 4.0 * _ULP), min(ends[1] * (1.0 + 4.0 * _ULP), 1.0))
    return Slices(law.body, dimension, law.power, ratio, epsilon).bracket()


@dataclass(frozen=True, slots=True)
class Slices:
    """The integral over x of a power law, in units of its scale."""

    body: str
    dimension: int
    power: float
    ratio: float  # D/s
    epsilon: float

    @property
    def shape(self) -> float:
        """A of x ~ Gamma(A)."""
        return (self.dimension + self.power) / self.power

    def bracket(self) -> Bracket:
        """Both ends proved, rounding allowed for; the relative width is about 1e-10 for a delta of ordinary size."""
        if self.power == 1.0 and self.ratio * (1.0 + _ULP) <= self.epsilon:
            return Bracket(0.0, 0.0)
        lower = upper = 0.0
        beyond = 4.0 * _CUT
        for first, last in self._pieces():
            value, error = self._integral(first, last)
            lower, upper = lower + max(value - error, 0.0), upper + value + error
        certain = self._certain()
        lower, upper = lower + certain, upper + certain
        return Bracket(max(lower * (1.0 - _ROUNDING) - beyond, 0.0), min(upper * (1.0 + _ROUNDING) + beyond, 1.0))

    def estimate(self) -> float:
        """The same without error bounds: three times faster."""
        total = sum(self._sum(first, last, self._edges(first, last))[0] for first, last in self._pieces())
        return min(total + self._certain(), 1.0)

    def nodes(self) -> tuple[Array, Array]:
        """Points x and weights with which means over x ~ Gamma(A) are summed."""
        edges = self._edges(*self._range())
        half = 0.5 * np.diff(edges)[:, np.newaxis]
        x = (edges[:-1, np.newaxis] + half + half * _NODES).ravel()
        return x, (half * _WEIGHTS).ravel() * self._density(x)

    def q(self, x: Array) -> Array:
        """(u + D - Y)/u at x = (u/s)^p, without cancellation of the ones."""
        result: Array = self.ratio * x ** (-1.0 / self.power) - np.expm1(np.log1p(self.epsilon / x) / self.power)
        return result

    # Where q crosses 0, 1 and 2.

    def _range(self) -> tuple[float, float]:
        from scipy.special import gammainccinv, gammaincinv

        return float(gammaincinv(self.shape, _CUT)), float(gammainccinv(self.shape, _CUT))

    def _peak(self, low: float, high: float) -> float:
        """Where q is largest; q d/dx changes its sign once: d x^(1-1/p) against eps (1 + eps/x)^(1/p-1)."""

        def rises(x: float) -> bool:
            push = self.epsilon * math.exp((1.0 / self.power - 1.0) * math.log1p(self.epsilon / x))
            return push > self.ratio * math.exp((1.0 - 1.0 / self.power) * math.log(x))

        return _switch(rises, low, high)

    def _crossings(self) -> list[float]:
        low, high = self._range()
        peak = self._peak(low, high)
        found = {low, high}
        for level in (0.0, 1.0, 2.0):
            # Left of the peak q is below a level up to some point; right of it q is above the level up to another.
            found.add(_switch(lambda x: self._q(x) <= level, low, peak))  # noqa: B023
            found.add(_switch(lambda x: self._q(x) >= level, peak, high))  # noqa: B023
        return sorted(found)

    def _q(self, x: float) -> float:
        return float(self.q(np.array([x]))[0])

    def _pieces(self) -> list[tuple[float, float]]:
        """Intervals between crossings where part of the body is lost."""
        edges = self._crossings()
        pairs = itertools.pairwise(edges)
        return [(first, last) for first, last in pairs if 0.0 < self._q(0.5 * (first + last)) < 2.0]

    def _certain(self) -> float:
        """The probability of q >= 2, where all of the body is lost."""
        from scipy.special import gammainc, gammaincc

        total, edges = 0.0, self._crossings()
        for index, (first, last) in enumerate(itertools.pairwise(edges)):
            if self._q(0.5 * (first + last)) >= 2.0:
                if index == 0:
                    total += float(gammainc(self.shape, last))
                elif last < self.shape:
                    total += float(gammainc(self.shape, last) - gammainc(self.shape, first))
                else:
                    total += float(gammaincc(self.shape, first) - gammaincc(self.shape, last))
        return total

    # Gauss and Legendre's rule, panel by panel.

    def _edges(self, first: float, last: float, finer: float = 1.0) -> Array:
        """Panels of half a deviation at most, and of a third of their place."""
        widest = 0.7 * math.sqrt(self.shape) / finer
        edges = [first]
        while edges[-1] < last and len(edges) < _MOST_PANELS:
            edges.append(min(edges[-1] + min(widest, 0.35 * edges[-1] / finer), last))
        edges[-1] = last
        return np.array(edges)

    def _integral(self, first: float, last: float) -> tuple[float, float]:
        finer = 1.0
        while True:
            edges = self._edges(first, last, finer)
            value, rounding = self._sum(first, last, edges)
            error = self._gauss_error(edges)
            if error <= 1e-9 * value + 0.01 * _CUT or len(edges) >= _MOST_PANELS:
                return value, error + rounding
            finer *= 2.0

    def _sum(self, first: float, last: float, edges: Array) -> tuple[float, float]:
        """The rule's value, and what the rounding of q can change: lost() is nowhere steeper than (M + 1)/2."""
        half = 0.5 * np.diff(edges)
        x = np.clip((edges[:-1] + half)[:, np.newaxis] + half[:, np.newaxis] * _NODES, first, last).ravel()
        weights = (half[:, np.newaxis] * _WEIGHTS).ravel() * self._density(x)
        value = float(np.dot(weights, lost_share(self.body, self.dimension, self.q(x))))
        size = self.ratio * x ** (-1.0 / self.power) + np.expm1(np.log1p(self.epsilon / x) / self.power)
        return value, float(np.dot(weights, size)) * 8.0 * _ULP * (self.dimension + 1.0)

    def _density(self, x: Array) -> Array:
        """Of x ~ Gamma(A), as exp(A (ln(1 + z) - z) + ln of the peak)/x with x = A (1 + z)."""
        z = (x - self.shape) / self.shape
        logs = np.where(z < -0.5, np.log(x / self.shape), np.log1p(np.maximum(z, -0.5)))
        result: Array = np.exp(self.shape * (logs - z) + log_gamma_peak(self.shape)) / x
        return result

    def _gauss_error(self, edges: Array) -> float:
        half = 0.5 * np.diff(edges)[:, np.newaxis]
        c = edges[:-1, np.newaxis] + half
        reach = half * np.array(_WIDEST_ELLIPSES)
        w = reach / c
        ratio = reach / half
        log_rho = np.log(ratio + np.sqrt(ratio**2 - 1.0))
        a = self.shape - 1.0
        center = np.log(np.maximum(self._density(c.ravel()), 1e-300))[:, np.newaxis]
        log_density = center + reach * np.abs(a / c - 1.0) + a * w**2 / (2.0 * np.maximum(1.0 - w, 1e-3))
        near = np.maximum(c - reach, 0.1 * c)  # nearer ellipses are not used
        with np.errstate(over="ignore"):
            slope = (self.ratio * near ** (-1.0 / self.power - 1.0) + self.epsilon * near**-2.0) / self.power
        q, spread = self.q(c), reach * slope
        n, b = self.dimension + 1, worst_entries(self.body, self.dimension)
        if self.body == CUBE:
            log_kept = self.dimension * np.log(np.abs(1.0 - 0.5 * q) + 0.5 * spread)
        else:
            largest = np.maximum(np.abs(1.0 - q) + spread, 1.0)
            log_kept = np.log1p(0.25 * n * (np.abs(q) + spread)) + self.dimension * np.log(largest)
            vertices = math.lgamma(n + 1.0) - math.lgamma(b + 1.0) - math.lgamma(n - b + 1.0)
            beyond = self.dimension * np.log(np.abs(2.0 - q) + spread) - vertices
            log_kept = np.where(q < 1.0, log_kept, beyond)
        bound = log_density + np.logaddexp(0.0, log_kept) - (2.0 * _COUNT - 2.0) * log_rho
        bound -= np.log(-np.expm1(-2.0 * log_rho))
        bound[w >= 0.9] = np.inf
        with np.errstate(over="ignore"):
            return float(np.sum(64.0 / 15.0 * half[:, 0] * np.exp(np.min(bound, axis=1))))


def _switch(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at first ceases to; ``low`` or ``high`` if it never does or always holds."""
    if not holds(low):
        return low
    if holds(high):
        return high
    while high - low > 1e-15 * high:
        middle = math.sqrt(low * high) if high > 4.0 * low else 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
