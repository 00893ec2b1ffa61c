"""Volume of a ball outside another ball: the one piece of geometry behind every radial curve.

Unit ball at the origin of R^M, a second ball of radius e^y (y >= 0) at distance kappa. The *lune*
is the part of the first ball outside the second. Both caps that bound it share a base disc of
radius b, at axial distance d from the first centre and e^y t from the second:

    d = ((e^(2y) - 1)/kappa - kappa)/2,     t = (d + kappa)/e^y,     b^2 = 1 - d^2.

With C(x) the fraction of the unit ball whose axial coordinate exceeds x,

    lune fraction = C(d) - e^(My) C(t) = [C(d) - C(t)] - (e^(My) - 1) C(t),

and the right-hand form keeps its relative accuracy when both balls nearly coincide, provided the
band C(d) - C(t) is integrated rather than subtracted. Every difference that could cancel (1 - d,
1 - t, t - d) is written as a product of ``gap = kappa - (e^y - 1)`` and positive factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.numerics import log_axial_constant

if TYPE_CHECKING:
    from lessnoise._common import Array


# Measured against 40-digit arithmetic over M = 1..10^9: the incomplete beta functions used here
# are within 1e-14; the stated allowances leave two orders of magnitude.
SPECIAL_FUNCTION_ERROR = 1e-12
ROUNDING = 4e-16
_LARGE_EXPONENT, _SMALL_CAP = 300.0, 1e-280  # beyond, e^(My) C(t) is computed as one exponential

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_FROM_LEFT = (_NODES + 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Lune:
    """Lune fractions, their absolute error bounds, and the second ball's cap e^(My) C(t)."""

    fraction: Array
    error: Array
    second_cap: Array


def power_of_base(dimension: int, axial: Array, log_factor: Array | float = 0.0) -> Array:
    """e^(log_factor) (1 - x^2)^((M-1)/2) for |x| < 1, and 0 beyond; overflow-free as one exponential."""
    inside = np.abs(axial) < 1.0
    squared = np.where(inside, axial * axial, 0.5)
    with np.errstate(over="ignore"):  # beyond the floats it is inf, which bounds nothing and is true
        return np.where(inside, np.exp(log_factor + 0.5 * (dimension - 1) * np.log1p(-squared)), 0.0)


def _cap(dimension: int, axial: Array, complement: Array) -> Array:
    """C(x) for x >= 0, with ``complement`` = 1 - x^2 given separately for x near 1."""
    from scipy.special import betainc, betaincc

    a = 0.5 * (dimension + 1)
    result = np.empty_like(axial)
    small = axial < 0.7
    # 1/2 I_{1-x^2}(a, 1/2); the complemented form keeps its digits for small x and huge M.
    result[small] = 0.5 * betaincc(0.5, a, axial[small] ** 2)
    result[~small] = 0.5 * betainc(a, 0.5, np.clip(complement[~small], 0.0, 1.0))
    return result


def lune(dimension: int, kappa: Array, y: Array, input_error: Array) -> Lune:
    """Lune fractions for many ball pairs at once; ``input_error`` bounds the relative error of kappa and y."""
    with np.errstate(over="ignore"):
        growth = np.expm1(y)
    gap = kappa - growth
    fraction = np.zeros_like(kappa)
    error = np.zeros_like(kappa)
    second_cap = np.zeros_like(kappa)
    disjoint = kappa >= 2.0 + growth
    fraction[disjoint] = 1.0
    cut = ~disjoint & (gap > 0.0)
    if cut.any():
        fraction[cut], error[cut], second_cap[cut] = _cut_balls(
            dimension, kappa[cut], y[cut], growth[cut], gap[cut], input_error[cut]
        )
    return Lune(fraction, error, second_cap)


def _cut_balls(
    dimension: int, kappa: Array, y: Array, growth: Array, gap: Array, input_error: Array
) -> tuple[Array, Array, Array]:
    """The case of two spheres that cut each other."""
    radius = 1.0 + growth
    inner, outer = gap / (2.0 * kappa), (growth + kappa) / (2.0 * kappa)  # first: products of small ones underflow
    one_minus_d = inner * (2.0 + kappa + growth)
    one_plus_d = outer * (2.0 + growth - kappa)
    one_minus_t = inner * (2.0 + growth - kappa) / radius
    one_plus_t = outer * (2.0 + growth + kappa) / radius
    width = inner * (kappa + growth) * (2.0 + growth) / radius
    d = ((2.0 + growth) * growth / kappa - kappa) / 2.0
    t = (d + kappa) / radius
    half_power = 0.5 * (dimension - 1)
    constant = math.exp(log_axial_constant(dimension))

    cap = _cap(dimension, t, one_minus_t * one_plus_t)
    nearest_pole = np.minimum(np.minimum(one_minus_d, one_plus_d), one_minus_t)
    steepest = half_power * 2.0 * np.maximum(np.abs(d), t) / np.maximum(nearest_pole, 1e-300)
    narrow = (width * steepest <= 2.0) & (width * math.sqrt(half_power) <= 1.0) & (width <= 0.5 * nearest_pole)
    band = np.empty_like(kappa)
    if narrow.any():
        band[narrow] = constant * _narrow_band(
            half_power, d[narrow], width[narrow], one_minus_t[narrow], one_plus_d[narrow]
        )
    wide = ~narrow
    if wide.any():
        first_cap = _cap(dimension, np.abs(d[wide]), (one_minus_d * one_plus_d)[wide])
        band[wide] = np.where(d[wide] < 0.0, 1.0 - first_cap, first_cap) - cap[wide]

    growing = dimension * y
    large = (growing > _LARGE_EXPONENT) | (cap < _SMALL_CAP)
    excess = np.expm1(np.where(large, 0.0, growing)) * cap
    second_cap = excess + cap
    if large.any():
        second_cap[large] = _large_cap(
            dimension,
            y[large],
            d[large],
            (one_minus_d * one_plus_d)[large],
            t[large],
            (one_minus_t * one_plus_t)[large],
        )
        excess[large] = -np.expm1(-growing[large]) * second_cap[large]
    along_kappa = kappa * constant * power_of_base(dimension, d)
    # M e^(My) S(t), with the sphere cap S(t) = C(t) + t (1 - t^2)^((M-1)/2) constant/M.
    along_y = dimension * second_cap + t * constant * power_of_base(dimension, t, growing)
    relative = SPECIAL_FUNCTION_ERROR + ROUNDING * 4.0 * (dimension + 1) * (t >= 0.5)
    error = relative * (band + excess) + input_error * (along_kappa + along_y * y)
    return np.clip(band - excess, 0.0, 1.0), error, second_cap


def _large_cap(dimension: int, y: Array, d: Array, base_squared: Array, t: Array, complement: Array) -> Array:
    """e^(My) C(t) where either factor alone would leave the range of doubles, so that t is far in the tail.

    Since 1 - t^2 = b^2 e^(-2y), it equals e^(-y) b^(M+1) t F constant/(M+1), F being the continued
    fraction of the incomplete beta function (DLMF 8.17.22).
    """
    a = 0.5 * (dimension + 1)
    fraction = np.ones_like(t)
    for m in range(40, 0, -1):
        even = m * (0.5 - m) * complement / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + 0.5 + m) * complement / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1.0 + even / (1.0 + odd / fraction)
    fraction = 1.0 / (1.0 - (a + 0.5) * complement / (a + 1.0) / fraction)
    log_base = np.where(np.abs(d) < 0.5, np.log1p(-np.minimum(d * d, 0.5)), np.log(np.maximum(base_squared, 1e-300)))
    return np.exp(a * log_base - y + log_axial_constant(dimension)) * t * fraction / (dimension + 1)


def _narrow_band(half_power: float, d: Array, width: Array, one_minus_t: Array, one_plus_d: Array) -> Array:
    """Integral of (1 - x^2)^((M-1)/2) over [d, d + width], ten Gauss points.

    Used only where the integrand is analytic well beyond the band (Bernstein ellipse of parameter
    over 9) and varies by less than e^2 across it, so the rule's relative error is below 1e-15.
    """
    x = d[:, None] + width[:, None] * _FROM_LEFT
    one_minus_x = one_minus_t[:, None] + width[:, None] * (1.0 - _FROM_LEFT)
    one_plus_x = one_plus_d[:, None] + width[:, None] * _FROM_LEFT
    small = np.abs(x) < 0.5
    log_complement = np.where(small, np.log1p(-np.where(small, x * x, 0.0)), np.log(one_minus_x * one_plus_x))
    values: Array = np.exp(half_power * log_complement) @ _WEIGHTS
    return 0.5 * width * values
