r"""Exact privacy curve of a radial mechanism, as a proved bracket.

Law n = R U in R^M, radius density proportional to r^(k-1) exp(-(r/s)^p): density
h(|n|) with h(r) proportional to r^(k-M) exp(-(r/s)^p), decreasing for k <= M. For a shift v of
length D the hockey-stick divergence is, by slicing both densities at a common height c,

    delta(eps) = integral of (h(|n|) - e^eps h(|n+v|))_+ dn
               = integral over c of vol( {h(|n|) > c} \ {e^eps h(|n+v|) > c} ) dc,

and both sets are balls: radius u with h(u) = c, and radius Y with e^eps h(Y) = h(u). Hence

    delta(eps) = E_u[ lune fraction of B(0, u) outside B(-v, Y(u)) ],

u being the radius of the uniform balls of which h is a mixture: u = s G^(1/p) with
G ~ Gamma(k/p) with probability (M-k)/M and Gamma(k/p + 1) otherwise. Every term is positive, so
nothing cancels; and a lune grows with |v|, so |v| = D is the worst neighbour.

The integral runs over xi = ln(G p/k). On each cell the logarithm of the integrand is compared with
its chord: if its slope lies in [m1, m2] over a cell of width H, it departs from the chord by at
most (m2 - m1) H / 4. The slopes are bounded by monotone pieces (kappa = D/u, y = ln(Y/u) and G are
monotone in xi), cells are split until the bracket is narrow, and rounding errors are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve.chords import BENT, MARGIN, adaptive_sum, count_work, log_chord
from lessnoise.mechanism.curve.lune import ROUNDING, lune, power_of_base
from lessnoise.mechanism.numerics import log_axial_constant, log_gamma_peak

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise._common import Array


DEFAULT_TOLERANCE = 1e-5
_LARGEST_LOG_KAPPA = 300.0  # squares must not overflow; smaller balls are left out, their mass added to the upper end
_NOTHING = 1e-300  # what may be lost where a factor leaves the floats; delta itself is never 0
_SLACK = 1e-9  # relative allowance for rounding in the slope bounds
_AT_ONCE, _BETWEEN = 24, 65  # points tried together on the way to an end of the integration
_ESTIMATE_CELLS, _ESTIMATE_TAIL, _ESTIMATE_FLOOR = (64, 256), 1e-22, 1e-8  # of the rule without a proof
_ESTIMATE_GAP, _ESTIMATE_TOLERANCE = 4e-3, 1e-2  # where half the cells say something else, a coarse bracket takes over


class Nodes(NamedTuple):
    """Everything known at the ends of the integration cells."""

    xi: Array  # ln(G p / k)
    gamma: Array  # G = (u/s)^p
    y: Array  # ln(Y/u)
    growth: Array  # e^y - 1
    used: Array  # G (e^(py) - 1), the part of epsilon paid by the exponential factor
    kappa: Array  # D / u
    fraction: Array
    error: Array
    second_cap: Array
    log_weight: Array
    weight_error: Array


@dataclass(frozen=True, slots=True)
class RadialCurve:
    """One curve: dimension M, radial member (k, p), and the ratio of sensitivity to scale.

    >>> 1 - math.exp(-0.5) in RadialCurve(1, 1.0, 1.0, 0.5, 1.0, 1.0).bracket()  # the Laplace mechanism's closed form
    True
    """

    dimension: int
    k: float
    p: float
    scale: float
    sensitivity: float
    epsilon: float

    @property
    def shape(self) -> float:
        """Gamma shape k/p."""
        return self.k / self.p

    @property
    def excess(self) -> float:
        """M - k, the exponent of the density's pole at the origin."""
        return self.dimension - self.k

    def bracket(self, tolerance: float = DEFAULT_TOLERANCE) -> Bracket:
        """Lower and upper delta, with (upper - lower)/upper <= tolerance where that is attainable."""
        tail = 1e-22
        while True:
            lower, upper, outside = self._integrate(tail, tolerance)
            if outside <= 0.25 * tolerance * upper or tail < 1e-290:
                return Bracket(lower * (1.0 - MARGIN), min(upper * (1.0 + MARGIN) + _NOTHING, 1.0))
            tail = max(min(tail * 1e-20, 1e-3 * tolerance * lower), 1e-300)

    def estimate(self, floor: float = 0.0) -> float:
        """About delta, by Simpson's rule: for searches, whose result is proved on :meth:`bracket` afterwards.

        Where it is below ``floor``, it may be far off.

        >>> curve = RadialCurve(5, 4.0, 1.5, 6.0, 1.0, 1.0)
        >>> bool(abs(curve.estimate() / curve.bracket().middle - 1) < 1e-3)
        True
        """
        low, high, whole, outside = self._range(_ESTIMATE_TAIL)
        for cells in _ESTIMATE_CELLS:  # a few say where there is something to be added up
            count_work(cells)
            xi = np.linspace(low, high, cells + 1)
            nodes = self._nodes(xi)
            value = np.exp(nodes.log_weight) * nodes.fraction
            seen = np.flatnonzero(value > _ESTIMATE_FLOOR * value.max(initial=0.0))
            if len(seen):
                low, high = xi[max(seen[0] - 1, 0)], xi[min(seen[-1] + 1, cells)]
        every, second = (_simpson(value[::step], step * (xi[1] - xi[0])) for step in (1, 2))
        found = every + whole
        if max(outside, abs(every - second)) <= _ESTIMATE_GAP * max(found, floor):
            return found
        return self.bracket(_ESTIMATE_TOLERANCE).middle

    # The law of u.

    def _mass_below(self, xi: Array) -> Array:
        from scipy.special import gammainc, gammaln

        log_g = math.log(self.shape) + xi
        tiny = log_g < -40.0  # gammainc(a, G) = G^a/Gamma(a+1) to 17 digits, also where G itself underflows
        small, g = np.minimum(log_g, -40.0), np.exp(np.clip(log_g, -40.0, 700.0))
        first, second = (
            np.where(tiny, np.exp(shape * small - gammaln(shape + 1.0)), gammainc(shape, g))
            for shape in (self.shape, self.shape + 1.0)
        )
        return np.asarray((self.excess * first + self.k * second) / self.dimension)

    def _mass_above(self, xi: Array) -> Array:
        from scipy.special import gammaincc

        g = np.exp(np.minimum(math.log(self.shape) + xi, 700.0))
        above = self.excess * gammaincc(self.shape, g) + self.k * gammaincc(self.shape + 1.0, g)
        return np.asarray(above / self.dimension)

    # The balls at a given u.

    def _log_kappa_origin(self) -> float:
        return math.log(self.sensitivity) - math.log(self.scale) - math.log(self.shape) / self.p

    def _solve_y(self, log_gamma: Array) -> Array:
        """Root of (M-k) y + G (e^(py) - 1) = eps; Newton falls monotonically from above."""
        if self.epsilon == 0.0:
            return np.zeros_like(log_gamma)
        gamma = np.exp(log_gamma)
        # ln(1 + eps/G)/p; in logarithms where the quotient would overflow.
        safe = gamma > 1e-280
        with np.errstate(over="ignore"):
            quotient = self.epsilon / np.where(safe, gamma, 1.0)
        y: Array = np.where(safe, np.log1p(quotient), math.log(self.epsilon) - log_gamma) / self.p
        if self.excess == 0.0:
            return y
        y = np.minimum(y, self.epsilon / (self.excess + self.p * gamma))
        for _ in range(80):
            grown = self._used(log_gamma, y)
            step = (self.excess * y + grown - self.epsilon) / (self.excess + self.p * (gamma + grown))
            y = y - step
            if np.all(np.abs(step) <= 2.0 * ROUNDING * y):
                break
        return y

    def _used(self, log_gamma: Array, y: Array) -> Array:
        """G (e^(py) - 1), at most eps; the exponentials are joined where either alone would leave the floats."""
        if self.excess == 0.0:
            return np.full_like(y, self.epsilon)
        exponent = self.p * y
        small = exponent < 1.0
        joined = np.exp(np.minimum(log_gamma + exponent, 700.0)) - np.exp(log_gamma)
        return np.where(small, np.exp(log_gamma) * np.expm1(np.where(small, exponent, 0.0)), joined)

    def _nodes(self, xi: Array) -> Nodes:
        log_gamma = math.log(self.shape) + xi
        gamma = np.exp(log_gamma)
        y = self._solve_y(log_gamma)
        with np.errstate(over="ignore"):
            growth = np.expm1(y)
        kappa = np.exp(self._log_kappa_origin() - xi / self.p)
        spread = 8.0 + (abs(math.log(self.shape)) + np.abs(xi)) / self.p + abs(self._log_kappa_origin())
        cut = lune(self.dimension, kappa, y, ROUNDING * spread)
        used = self._used(log_gamma, y)
        mean_free = np.expm1(xi) - xi
        log_weight = (
            log_gamma_peak(self.shape)
            - self.shape * mean_free
            + (
                np.log(self.p / self.dimension) + log_gamma
                if self.excess == 0.0
                else np.log((self.excess + self.p * gamma) / self.dimension)
            )
        )
        weight_error = 1e-12 + ROUNDING * self.shape * (np.abs(xi) + np.abs(np.expm1(xi)))
        return Nodes(
            xi, gamma, y, growth, used, kappa, cut.fraction, cut.error, cut.second_cap, log_weight, weight_error
        )

    # The integral.

    def _range(self, tail: float) -> tuple[float, float, float, float]:
        """Ends of the integration, the mass left of them that is all lune, and the mass left out."""
        unit = 1.0 / math.sqrt(self.shape)
        high = _march(unit, lambda xi: self._mass_above(xi) <= tail)
        floor = self.p * (self._log_kappa_origin() - _LARGEST_LOG_KAPPA)
        low = -_march(unit, lambda xi: (-xi <= floor) | (self._mass_below(-xi) <= tail) | self._settled(-xi)[0])
        low = max(low, min(floor, 0.5 * high))
        settled, disjoint = self._settled(np.array([low]))
        if settled[0]:
            inside = high
            while inside - low > 1e-3 * min(1.0, unit):
                between = np.linspace(low, inside, _BETWEEN)
                last = int(np.count_nonzero(np.logical_and.accumulate(self._settled(between)[0]))) - 1
                low, inside = float(between[max(last, 0)]), float(between[min(max(last, 0) + 1, _BETWEEN - 1)])
            disjoint = self._settled(np.array([low]))[1]
        ends = np.array([low, high])
        below, above = float(self._mass_below(ends)[0]), float(self._mass_above(ends)[1])
        return low, high, below if disjoint[0] else 0.0, 1.001 * ((0.0 if settled[0] else below) + above)

    def _settled(self, xi: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where all balls of smaller radius u behave as this one, and where that is because none meets its partner.

        Disjoint: u + Y < D, with a margin for rounding; both u and Y grow with xi. Or each lies inside its partner,
        Y - u > D, with a margin; for k = M and p >= 1, Y - u = (u^p + eps s^p)^(1/p) - u falls with u.
        """
        y = self._solve_y(math.log(self.shape) + xi)
        log_kappa = self._log_kappa_origin() - xi / self.p  # ln(D/u); y is ln(Y/u)
        disjoint = log_kappa - 1e-12 >= np.log1p(np.exp(-y)) + y
        if self.excess > 0.0 or self.p < 1.0:
            return disjoint, disjoint
        with np.errstate(divide="ignore"):
            contained = (y > 0.0) & (y + np.log(-np.expm1(-y)) >= log_kappa + 1e-12)
        return disjoint | contained, disjoint

    def _integrate(self, tail: float, tolerance: float) -> tuple[float, float, float]:
        low, high, whole, outside = self._range(tail)
        grid = np.linspace(low, high, 129)
        floor = max(0.1 * outside, 0.1 * tolerance * whole)  # what is small beside the rest needs no splitting
        below, above = adaptive_sum(grid, self._nodes, self._cells, 0.7 * tolerance, floor)
        return below + whole * (1.0 - 1e-12), above + whole * (1.0 + 1e-12) + outside, outside

    def _cells(self, a: Nodes, b: Nodes) -> tuple[Array, Array]:
        """Lower and upper integral over each cell from node a to node b."""
        width = b.xi - a.xi
        with np.errstate(all="ignore"):
            slope_low, slope_high = self._weight_slope(a, b)
            error = np.maximum(a.weight_error, b.weight_error)
            mass = log_chord(width, np.exp(a.log_weight), np.exp(b.log_weight), b.log_weight - a.log_weight)
            bend = (slope_high - slope_low) * width / 4.0
            mass_low = mass * np.exp(-bend) * (1.0 - error)
            mass_high = np.where(bend <= BENT, np.fmin(mass * np.exp(bend) * (1.0 + error), 1.0), 1.0)

            lune_low, lune_high, relative_low, relative_high = self._lune_slope(a, b, width)
            crude_low, crude_high = lune_low * mass_low, lune_high * mass_high

            bend = bend + (relative_high - relative_low) * width / (4.0 * self.p)
            start, end = np.exp(a.log_weight) * a.fraction, np.exp(b.log_weight) * b.fraction
            log_ratio = b.log_weight - a.log_weight + np.log(b.fraction) - np.log(a.fraction)
            chord = log_chord(width, start, end, log_ratio)
            error = error + np.maximum(a.error / a.fraction, b.error / b.fraction)
            fine_low, fine_high = chord * np.exp(-bend) * (1.0 - error), chord * np.exp(bend) * (1.0 + error)
            usable = np.isfinite(fine_low) & np.isfinite(fine_high) & (bend >= 0.0) & (bend <= BENT)
            lower = np.where(usable, np.fmax(crude_low, fine_low), crude_low)
            upper = np.where(usable, np.fmin(crude_high, fine_high), crude_high)
        contained = b.growth >= a.kappa
        return np.where(contained, 0.0, np.maximum(lower, 0.0)), np.where(contained, 0.0, upper)

    def _weight_slope(self, a: Nodes, b: Nodes) -> tuple[Array, Array]:
        """Range of d ln(weight)/d xi = k/p - G + pG/(M-k+pG); G grows with xi."""
        share_a = 1.0 if self.excess == 0.0 else self.p * a.gamma / (self.excess + self.p * a.gamma)
        share_b = 1.0 if self.excess == 0.0 else self.p * b.gamma / (self.excess + self.p * b.gamma)
        padding = _SLACK * (1.0 + np.abs(self.shape - a.gamma))
        return self.shape - b.gamma + share_a - padding, self.shape - a.gamma + share_b + padding

    def _lune_slope(self, a: Nodes, b: Nodes, width: Array) -> tuple[Array, Array, Array, Array]:
        """Ranges, over each cell, of the lune fraction L and of d ln L/d ln u.

        d ln L/d ln u = -A/L + eta B/L with A = dL/d ln kappa = kappa b^(M-1) vol ratio,
        B = -dL/dy = M e^(My) S(t) (S: sphere-cap fraction) and eta = -dy/d ln u; all positive.
        kappa and y fall from a to b, so the corners of their box bound every ingredient; d, t and L, in which
        the two nearly cancel, are bounded by their value at a and the range of their slope as well.
        """
        m = self.dimension
        step = width / self.p  # of ln u
        constant = math.exp(log_axial_constant(m))
        eta = self._eta(a, b)
        d_low, d_high, t_low, t_high, t_b = self._axial_range(a, b, eta, step)

        d_far = np.maximum(np.abs(d_low), np.abs(d_high))
        d_near = np.where(d_low * d_high < 0.0, 0.0, np.minimum(np.abs(d_low), np.abs(d_high)))
        a_low = b.kappa * constant * power_of_base(m, d_far) * (1.0 - _SLACK)
        a_high = a.kappa * constant * power_of_base(m, d_near) * (1.0 + _SLACK)

        # B = M e^(My) S(t) with S(t) = C(t) + t (1 - t^2)^((M-1)/2) constant/M; C falls with slope
        # -constant (1 - x^2)^((M-1)/2), whose size falls as x grows. S = 1/2 if M = 1.
        if m == 1:
            b_low, b_high = np.where(t_high < 1.0, 0.5 * (1.0 + b.growth), 0.0), 0.5 * (1.0 + a.growth)
        else:
            rim_high = constant * power_of_base(m, t_low, m * a.y)
            rim_low = constant * power_of_base(m, t_high, m * b.y)
            t_a = _second_axial(a)
            cap_high = a.second_cap + rim_high * np.maximum(t_a - t_low, 0.0)
            cap_low = b.second_cap - constant * power_of_base(m, t_b, m * b.y) * np.maximum(t_high - t_b, 0.0)
            cap_low = np.where(t_high < 1.0, np.maximum(cap_low, 0.0), 0.0)
            b_low = m * cap_low + t_low * rim_low
            # The cap inside the unit ball has at most its surface, so B <= M e^y.
            b_high = np.fmin(m * cap_high + t_high * rim_high, m * (1.0 + a.growth))
        b_low, b_high = b_low * (1.0 - _SLACK), b_high * (1.0 + _SLACK)

        slope_low, slope_high = eta[0] * b_low - a_high, eta[1] * b_high - a_low
        fall_y = np.maximum(a.y - b.y, 0.0)
        lune_high = np.minimum(a.fraction + a.error + b_high * fall_y, b.fraction + b.error + a_high * step)
        lune_high = np.fmin(lune_high, a.fraction + a.error + np.maximum(slope_high, 0.0) * step)
        lune_low = np.maximum(a.fraction - a.error - a_high * step, b.fraction - b.error - b_high * fall_y)
        lune_low = np.fmax(lune_low, a.fraction - a.error + np.minimum(slope_low, 0.0) * step)
        lune_low, lune_high = np.maximum(lune_low, 0.0), np.minimum(lune_high, 1.0)
        return (
            lune_low,
            lune_high,
            eta[0] * b_low / lune_high - a_high / lune_low,
            eta[1] * b_high / lune_low - a_low / lune_high,
        )

    def _eta(self, a: Nodes, b: Nodes) -> tuple[Array, Array]:
        """Range of eta = -dy/d ln u = p n/(M - k + p G + p n), n = G (e^(py) - 1); G and n grow."""
        spent_a, spent_b = self.p * a.used, self.p * b.used
        return (
            spent_a / (self.excess + self.p * b.gamma + spent_b) * (1.0 - _SLACK),
            spent_b / (self.excess + self.p * a.gamma + spent_a) * (1.0 + _SLACK),
        )

    def _axial_range(
        self, a: Nodes, b: Nodes, eta: tuple[Array, Array], step: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        """Ranges of d and t over each cell, by the corners and by the mean value theorem; and t at b."""
        radius_a, radius_b = 1.0 + a.growth, 1.0 + b.growth
        swell_a, swell_b = a.growth * (2.0 + a.growth), b.growth * (2.0 + b.growth)
        d_low, d_high = (swell_b / a.kappa - a.kappa) / 2.0, (swell_a / b.kappa - b.kappa) / 2.0
        # d' = (swell/kappa + kappa)/2 - eta e^(2y)/kappa.
        rise_low = (swell_b / a.kappa + b.kappa) / 2.0 - eta[1] * radius_a**2 / b.kappa
        rise_high = (swell_a / b.kappa + a.kappa) / 2.0 - eta[0] * radius_b**2 / a.kappa
        d_a = (swell_a / a.kappa - a.kappa) / 2.0
        padding = _SLACK * (a.kappa + swell_a / a.kappa) * step
        d_low = np.fmax(d_low, d_a + np.minimum(rise_low, 0.0) * step - padding)
        d_high = np.fmin(d_high, d_a + np.maximum(rise_high, 0.0) * step + padding)

        t_low = (b.kappa / radius_a + swell_b / (radius_b * a.kappa)) / 2.0
        t_high = (a.kappa / radius_b + swell_a / (radius_a * b.kappa)) / 2.0
        # t' = [-(kappa/e^y)(1 - eta) + (e^y - e^-y)/kappa - eta (e^y + e^-y)/kappa]/2.
        rise_low = (
            -(a.kappa / radius_b) * (1.0 - eta[0])
            + swell_b / (radius_b * a.kappa)
            - eta[1] * (radius_a + 1.0 / radius_a) / b.kappa
        ) / 2.0
        rise_high = (
            -(b.kappa / radius_a) * np.maximum(1.0 - eta[1], 0.0)
            + swell_a / (radius_a * b.kappa)
            - eta[0] * (radius_b + 1.0 / radius_b) / a.kappa
        ) / 2.0
        t_a = _second_axial(a)
        padding = _SLACK * (1.0 + a.kappa / radius_a + radius_a / a.kappa) * step
        t_low = np.fmax(t_low, t_a + np.minimum(rise_low, 0.0) * step - padding)
        t_high = np.fmin(t_high, t_a + np.maximum(rise_high, 0.0) * step + padding)
        return d_low, d_high, np.maximum(t_low, 0.0), np.minimum(t_high, 1.0), _second_axial(b)


def _second_axial(nodes: Nodes) -> Array:
    """t, the axial distance of the base disc from the second centre, in units of the second radius."""
    swell = nodes.growth * (2.0 + nodes.growth)
    return (nodes.kappa + swell / nodes.kappa) / (2.0 * (1.0 + nodes.growth))


def _simpson(values: Array, width: float) -> float:
    """The integral through an even number of cells of this width."""
    ends, odd, even = values[0] + values[-1], values[1:-1:2].sum(), values[2:-1:2].sum()
    return float(ends + 4.0 * odd + 2.0 * even) * width / 3.0


def _march(unit: float, reached: Callable[[Array], NDArray[np.bool_]]) -> float:
    """First of a geometric sequence of points at which ``reached`` holds; many are tried at once."""
    steps = unit * 1.3 ** np.arange(_AT_ONCE)
    points = np.cumsum(steps)
    while not (found := reached(points)).any():
        steps = 1.3**_AT_ONCE * steps
        points = points[-1] + np.cumsum(steps)
    return float(points[np.argmax(found)])
