"""Exact curve of the l2 mechanism (density proportional to exp(-|n|/s)) in low dimension.

Prolate spheroidal coordinates with foci at the two centres, xi = (|n+v| + |n|)/D >= 1 and
eta = (|n+v| - |n|)/D, make the privacy loss D eta/s a coordinate and separate the volume element.
The xi-integrals are Bessel functions; with z = D/(2s) and eta = cos(theta) what remains is

    delta(eps) = integral over 0 < theta < theta0 of f(theta) d theta, with
    f(theta) = e^(-2 z sin^2(theta/2)) (1 - e^(-2 z (cos theta - eta0))) sin^(M-2)(theta) [a1 + a0 sin^2(theta)],

eta0 = cos(theta0) = eps s/D; its factors are kept as logarithms. It is positive and elementary, and stays exact
as s approaches the pure scale D/eps, where the general integrator would have to resolve nearly tangent balls.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve.chords import BENT, MARGIN, adaptive_sum, log_chord
from lessnoise.mechanism.numerics import log_gamma_ratio

if TYPE_CHECKING:
    from lessnoise._common import Array


LARGEST_DIMENSION = 10_000
_NOTHING = 1e-300  # what may be lost where a factor leaves the floats
_LARGEST_Z = 1e9  # beyond, z and the logarithm of a Bessel function cancel too many digits: nothing is said


def delta_bracket(*, dimension: int, scale: float, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """Bracket of delta(epsilon) for the l2 mechanism in R^dimension.

    >>> delta_bracket(dimension=3, scale=1.0, sensitivity=1.0, epsilon=1.0, tolerance=1e-5)
    Bracket(lower=0.0, upper=0.0)
    """
    # 1 - eta0 without rounding: it decides everything as the mechanism nears pure DP.
    slack = float(1 - Fraction(epsilon) * Fraction(scale) / Fraction(sensitivity))
    if slack <= 0.0:
        return Bracket(0.0, 0.0)
    z = sensitivity / (2.0 * scale)
    if z < 0.1 * _NOTHING:  # delta is below 1 - e^(-2 z)
        return Bracket(0.0, _NOTHING)
    if dimension == 1:  # the Laplace mechanism: 1 - exp((eps - D/s)/2) = 1 - exp(-z slack)
        value = -math.expm1(-z * slack)
        return Bracket(math.nextafter(value * (1.0 - 1e-14), 0.0), min(math.nextafter(value * (1.0 + 1e-14), 1.0), 1.0))
    if z > _LARGEST_Z:
        return Bracket(0.0, 1.0)
    integrand = _Integrand(dimension, z, slack)
    # Denser towards theta0, where the integrand vanishes.
    grid = integrand.end * (1.0 - np.linspace(1.0, 0.0, 65) ** 2)
    lower, upper = adaptive_sum(grid, integrand.nodes, integrand.cells, tolerance)
    return Bracket(lower * (1.0 - MARGIN), min(upper * (1.0 + MARGIN) + _NOTHING, 1.0))


class _Nodes(NamedTuple):
    theta: Array
    sine: Array
    cosine: Array
    total: Array  # 1 + (a0/a1) sin^2
    gap: Array  # cos(theta) - cos(theta0)
    rising: Array  # ln of sin^(M-2) (a1 + a0 sin^2)
    falling: Array  # ln of e^(-z (1 - cos)) (1 - e^(-2 z gap))


class _Integrand:
    """The integrand over theta, and its bounds on cells."""

    def __init__(self, dimension: int, z: float, slack: float) -> None:
        m = dimension
        self.power = m - 2
        self.z = z
        self.end = 2.0 * math.asin(math.sqrt(0.5 * slack))
        # z^M Gamma(M/2) / (Gamma(M) sqrt(pi) Gamma((M-1)/2)); e^(z eta0) sinh(z gap) takes the e^(-z) from kve.
        log_front = m * math.log(z) - math.lgamma(m) + log_gamma_ratio((m - 1) / 2, 0.5) - 0.5 * math.log(math.pi)
        log_half = math.log(2.0 / z)
        self.log_a1 = log_front + _log_bessel_integral((m + 1) / 2, m / 2 * log_half, _log_bessel(m / 2, z))
        log_a0 = log_front + _log_bessel_integral((m - 1) / 2, (m / 2 - 1) * log_half, _log_bessel(m / 2 - 1, z))
        self.ratio = math.exp(log_a0 - self.log_a1)  # a0/a1

    def nodes(self, theta: Array) -> _Nodes:
        """The integrand's factors at some angles."""
        sine, cosine = np.sin(theta), np.cos(theta)
        total = 1.0 + self.ratio * sine * sine
        gap = 2.0 * np.sin((self.end - theta) / 2.0) * np.sin((self.end + theta) / 2.0)
        gap = np.maximum(gap, 0.0)
        with np.errstate(divide="ignore"):  # the ends, where a factor is 0
            rising = self.log_a1 + np.log(total) + (self.power * np.log(sine) if self.power else 0.0)
            falling = np.log(-np.expm1(-2.0 * self.z * gap)) - 2.0 * self.z * np.sin(theta / 2.0) ** 2
        return _Nodes(theta, sine, cosine, total, gap, rising, falling)

    def cells(self, a: _Nodes, b: _Nodes) -> tuple[Array, Array]:
        """Lower and upper integral over each cell; no cell has more than the whole, which is at most 1."""
        width = b.theta - a.theta
        with np.errstate(all="ignore"):
            crude_low = np.exp(a.rising + b.falling) * width
            crude_high = np.minimum(np.exp(b.rising + a.falling) * width, 1.0)
            low, high = self._slope(a, b)
            bend = (high - low) * width / 4.0
            log_start, log_end = a.rising + a.falling, b.rising + b.falling
            chord = log_chord(width, np.exp(log_start), np.exp(log_end), log_end - log_start)
            fine_low, fine_high = chord * np.exp(-bend), chord * np.exp(bend)
            usable = np.isfinite(fine_low) & np.isfinite(fine_high) & (bend >= 0.0) & (bend <= BENT)
        lower = np.where(usable, np.fmax(crude_low, fine_low), crude_low)
        upper = np.where(usable, np.fmin(crude_high, fine_high), crude_high)
        return lower, upper

    def _slope(self, a: _Nodes, b: _Nodes) -> tuple[Array, Array]:
        """Range of d ln(integrand)/d theta, term by term; theta0 <= pi/2, so every factor is monotone."""
        power_low, power_high = (
            (self.power * b.cosine / b.sine, self.power * a.cosine / a.sine) if self.power else (0.0, 0.0)
        )
        middle_low = 2.0 * self.ratio * a.sine * b.cosine / b.total
        middle_high = 2.0 * self.ratio * b.sine * a.cosine / a.total
        fall_low = self.z * a.sine / np.tanh(self.z * a.gap)
        fall_high = self.z * b.sine / np.tanh(self.z * b.gap)
        return power_low + middle_low - fall_high, power_high + middle_high - fall_low


def _log_bessel_integral(gamma_argument: float, log_power: float, log_bessel: float) -> float:
    """Logarithm of the integral over xi > 1 of e^(z - z xi) (xi^2 - 1)^(nu - 1/2) (DLMF 10.32.8)."""
    return math.lgamma(gamma_argument) + log_power - 0.5 * math.log(math.pi) + log_bessel


def _log_bessel(order: float, z: float) -> float:
    """ln of e^z K_order(z); for large orders by Debye's uniform expansion (DLMF 10.41.4), error below 1e-9."""
    if order < 50.0:
        from scipy.special import kve

        scaled = float(kve(order, z))
        if 0.0 < scaled < math.inf:
            return math.log(scaled)
    x = z / order
    root = math.hypot(1.0, x)
    t = 1.0 / root
    squared = t * t
    terms = (
        -t * (3.0 - 5.0 * squared) / 24.0,
        squared * (81.0 - 462.0 * squared + 385.0 * squared**2) / 1152.0,
        -t * squared * (30375.0 - 369603.0 * squared + 765765.0 * squared**2 - 425425.0 * squared**3) / 414720.0,
    )
    series = 1.0 + sum(term / order ** (k + 1) for k, term in enumerate(terms))
    exponent = order * (math.asinh(1.0 / x) - root)  # -order eta, eta = root + ln(x/(1 + root))
    return 0.5 * math.log(math.pi / (2.0 * order) * t) + exponent + math.log(series) + z
