r"""Two bodies of changes that are no l2 balls, their overlaps, and the moments of a uniform point.

The *cube* [-1, 1]^M holds what a replaced individual can do to M bounded sums: every entry moves by at most 1 either
way. The *corner* body, the convex hull of [0, 1]^M and [-1, 0]^M, holds what one who joins or leaves can do: all
entries move the same way. Its norm is max(x+) + max(x-), the range of (0, x_1, ..., x_M). Noise of density f(||n||),
f falling and ||.|| the norm of the body K, has an exact curve. Slicing both densities at a common height,

    delta(eps) = integral over the balls uK of {f > h} of vol(uK outside v + YK) dh,    e^eps f(Y) = f(u), Y >= u,

(Y the radius of {e^eps f > h}), and the share of uK that is lost depends on q = (u + D - Y)/u alone, D = ||v||.

**Cube.** Every coordinate keeps min(2u, u + Y - |v_i|), so the vertices are the worst shifts: share (1 - q/2)^M kept.

**Corner.** Put x_0 = 0 beside the entries: modulo the diagonal, n = M + 1 coordinates play the same part, uK is where
their range is at most u, and the vertices of the body are the indicators of b of them; a = n - b. With r = 1 - q,

    kept = (b r^a + a r^b)/n + (a b/n) J(a, b),  J(a, b) = integral over [r, 1] of x^(b-1) (1 + r - x)^(a-1) dx

for 0 <= r <= 1, and (1 + r)^M / C(n, b) for -1 <= r <= 0. *The vertex with b = floor(n/2) is the worst for every u
and Y.* Below r = 0 that is plain. Above, integrate J(a, b) by parts to J' = J(a-1, b+1); with a = b + 1 + k, k >= 1,

    n (kept(a, b) - kept(a-1, b+1)) = b r^a + k r^(a-1) - (b+k) r^(b+1) + (b+k) k J',

and J' >= r^b (1 - r^k)/k because x (1 + r - x) >= r on [r, 1]; the sum is at least r^b (1-r) (b + k - b r^k) >= 0.
The volume of uK inside v + YK has a concave M-th root in v (Brunn and Minkowski), so no shift of the body loses more
than its worst vertex does. Hence both curves are exact for every falling f.

A uniform point of the corner body: one of the n coordinates, each as likely, is 0 and the least, the others are
uniform on [0, 1], and x_0 is subtracted from the rest.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up
from lessnoise.changes import Ball, Box, Corner, Counts, Scaled
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.law import Plain
from lessnoise.mechanism.numerics import log_gamma_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.changes import Changes

CUBE, CORNER = "cube", "corner"
BODIES = (CUBE, CORNER)
_NODES = 40  # exact for polynomials of degree 79, and within 1e-50 for M q <= 8
_EXACT = 80


class OfBody(Plain):
    """What laws on a body share: factors that stretch its entries, and the relation that the corner body serves."""

    body: str
    factors: tuple[float, ...]

    __slots__ = ()

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """As many factors as entries, or none."""
        if self.factors and len(self.factors) != math.prod(shape):
            raise InvalidInput(
                f"factors has length={len(self.factors)} for shape={shape}: pass one factor for each entry, or none."
            )

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """The corner body is for add/remove alone."""
        if self.body == CORNER and neighbours is not Neighbours.ADD_REMOVE:
            raise InvalidInput(
                f"neighbours={neighbours.value!r} is not served by the corner body: a replaced individual can raise "
                'some entries and lower others; pass body="cube", or neighbours="add/remove".'
            )


def size_of(law: OfBody, changes: Changes, dimension: int) -> float | None:
    """The sensitivity of a law against a set of changes, rounded up; None if its curve is not that of the set.

    It is, if the set is the body itself times a number: stretched by the factors, it has the worst vertex.
    """
    if isinstance(changes, Scaled):
        inner = size_of(law, changes.changes, dimension)
        return None if inner is None else round_up(Fraction(inner) * Fraction(changes.factor))
    if isinstance(changes, Counts) and law.body == CORNER and not law.factors:
        # The worst vertex has (M + 1)//2 entries of the largest size: if that many cells can be full, it is in the set.
        most = changes.norm(math.inf, dimension)
        full = changes.one_sided and changes.rows >= most * ((dimension + 1) // 2)
        return most if full else None
    if isinstance(changes, Ball) and changes.order == math.inf and law.body == CUBE:
        bounds = np.full(dimension if law.factors else 1, changes.radius)
    elif isinstance(changes, Corner) or (isinstance(changes, Box) and law.body == CUBE):
        bounds = np.atleast_1d(np.array(changes.bounds))  # their largest change is a vertex of the cube, too
    else:
        return None
    if not law.factors:
        return float(bounds[0]) if bounds.min() == bounds.max() else None
    sizes = bounds / np.array(law.factors)
    if sizes.min() < sizes.max() * (1.0 - 2.0**-51):
        return None
    return math.nextafter(float(sizes.max()), math.inf)


def checked_factors(values: object) -> tuple[float, ...]:
    """Positive numbers, or none."""
    numbers = validation.numbers("factors", values)
    if min(numbers, default=1.0) <= 0.0:
        i = int(np.argmin(numbers))
        raise InvalidInput(f"factors[{i}]={numbers[i]:g} must be above 0: pass positive numbers.")
    return numbers


def gauge(body: str, vectors: Array) -> Array:
    """The norm whose unit ball is the body, of vectors along the last axis.

    >>> gauge("cube", np.array([1.0, -2.0])), gauge("corner", np.array([1.0, -2.0]))
    (array(2.), array(3.))
    """
    up = np.maximum(vectors.max(axis=-1), 0.0)
    down = np.maximum(-vectors.min(axis=-1), 0.0)
    result: Array = np.asarray(np.maximum(up, down) if body == CUBE else up + down)
    return result


def worst_entries(body: str, dimension: int) -> int:
    """How many entries the worst change moves, all by the whole sensitivity.

    >>> worst_entries("cube", 5), worst_entries("corner", 5)
    (5, 3)
    """
    return dimension if body == CUBE else (dimension + 1) // 2


def lost_share(body: str, dimension: int, q: Array) -> Array:
    """Share of the ball uK outside v + YK at the worst vertex v, for q = (u + D - Y)/u; relative error below 1e-12.

    >>> lost_share("corner", 1, np.array([0.0, 0.5, 3.0]))  # in one entry both bodies are [-1, 1]
    array([0.  , 0.25, 1.  ])
    """
    inside = np.clip(q, 0.0, 2.0)
    if body == CUBE:
        with np.errstate(divide="ignore"):
            result: Array = -np.expm1(dimension * np.log1p(-0.5 * inside))
        return result
    b = worst_entries(body, dimension)
    return _corner_share(dimension + 1 - b, b, inside)


def _corner_share(a: int, b: int, q: Array) -> Array:
    """1 - kept; where it is small, as P(some x_i of the a lies above some x_k of the b by 1 - q).

    Any vertex up to 80 entries; beyond, the worst one alone.
    """
    dimension = a + b - 1
    result = np.empty_like(q)
    far = q >= 1.0
    log_vertices = math.lgamma(a + b + 1.0) - math.lgamma(a + 1.0) - math.lgamma(b + 1.0)
    with np.errstate(divide="ignore"):
        result[far] = -np.expm1(np.minimum(dimension * np.log(2.0 - q[far]) - log_vertices, 0.0))
    near = ~far & ((dimension <= _EXACT) | (dimension * q <= 8.0))
    result[near] = _small_share(a, b, q[near])
    middle = ~far & ~near
    if middle.any():
        result[middle] = 1.0 - _kept(a, b, q[middle])
    return result


@functools.lru_cache(maxsize=64)
def _rule(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _small_share(a: int, b: int, q: Array) -> Array:
    """The least coordinate is one of the b (probability b/n), or its place m is that of the least of the b."""
    nodes, weights = _rule(min(max((a + b) // 2, 1), _NODES))
    q_column = q[:, np.newaxis]
    least = q_column * nodes
    first = -np.expm1(a * np.log1p(-q))
    # b (1 - m)^(b-1) (1 - (1 - q + m)^(a-1)), integrated over m from 0 to q.
    above = -np.expm1((a - 1) * np.log1p(least - q_column))
    second = q * ((b * np.exp((b - 1) * np.log1p(-least)) * above) @ weights)
    result: Array = (b * first + a * second) / (a + b)
    return result


def _kept(a: int, b: int, q: Array) -> Array:
    """The formula above for a = b or a = b + 1; J is (1 + r)^M times a difference of incomplete beta functions.

    With (a b/n) B(a, b) = 1/C(n, b), the factor before it is (1 - q/2)^M 2^M/C(n, b).
    """
    from scipy.special import betainc

    n, r = a + b, 1.0 - q
    # 2^m/C(m, m/2) = sqrt(pi) Gamma(m/2 + 1)/Gamma((m + 1)/2), m = 2 a; C(n, b) is half of C(2 a, a) if a = b + 1.
    log_factor = log_gamma_ratio(a + 0.5, 0.5) + 0.5 * math.log(0.25 * math.pi)
    band = betainc(b, a, 1.0 / (1.0 + r)) - betainc(b, a, r / (1.0 + r))
    integral = np.exp((n - 1) * np.log1p(-0.5 * q) + log_factor) * band
    log_r = np.log1p(-q)
    result: Array = (b * np.exp(a * log_r) + a * np.exp(b * log_r)) / n + integral
    return result


# Moments of S = sum of (factor_i x_i)^2 over the entries of a uniform point of the body. Series in t stand for
# E exp(t S), cut after t^4; the logarithms of independent terms add up, so that power sums of factors are enough.


def log_square_moment(body: str, dimension: int, factors: Sequence[float], order: int) -> float:
    """ln E[S^order], order 0 to 4.

    >>> round(math.exp(log_square_moment("cube", 6, (), 1)), 12)  # 6/3
    2.0
    >>> round(math.exp(log_square_moment("corner", 6, (), 1)), 12)  # 6 (6 + 3)/(6 (6 + 1))
    1.285714285714
    """
    unit, sums = _power_sums(dimension, factors, order)
    if body == CUBE:
        moment = _exp_series(_log_series(_offset_series(0.0, order)) * sums)[order]
    else:
        # x_0 is the least, or it lies at T and one of the others is the least: exact in 8 nodes, degree 2 order.
        total = _exp_series(_log_series(_offset_series(0.0, order)) * sums)[order]
        for place, weight in zip(*_rule(8), strict=True):
            logs = _log_series(_offset_series(float(place), order))
            least = -logs
            least[1:2] += place**2
            joint = np.convolve(_exp_series(logs * sums), _exp_series(least) * sums)
            total += weight * joint[order]
        moment = total / (dimension + 1)
    return 2.0 * order * math.log(unit) + math.log(moment * math.factorial(order))


def _power_sums(dimension: int, factors: Sequence[float], order: int) -> tuple[float, Array]:
    """The largest factor, and the sums of (factor/largest)^(2k), k = 0..order."""
    if not len(factors):
        return 1.0, np.full(order + 1, float(dimension))
    unit = max(factors)
    squares = (np.array(factors) / unit) ** 2
    return unit, np.array([float(np.sum(squares**k)) for k in range(order + 1)])


def _offset_series(place: float, order: int) -> Array:
    """E exp(t (U - place)^2) for U uniform on [0, 1]."""
    return np.array([square_moment(place, k) / math.factorial(k) for k in range(order + 1)])


def square_moment(place: float, k: int) -> float:
    """E (U - place)^(2k)."""
    return ((1.0 - place) ** (2 * k + 1) + place ** (2 * k + 1)) / (2 * k + 1)


def _log_series(series: Array) -> Array:
    logs = np.zeros_like(series)
    for k in range(1, len(series)):
        logs[k] = series[k] - sum(i * logs[i] * series[k - i] for i in range(1, k)) / k
    return logs


def _exp_series(logs: Array) -> Array:
    series = np.zeros_like(logs)
    series[0] = 1.0
    for k in range(1, len(logs)):
        series[k] = sum(i * logs[i] * series[k - i] for i in range(1, k + 1)) / k
    return series


def square_cumulants(place: float) -> list[float]:
    """The first four cumulants of (U - place)^2, after a 0."""
    logs = _log_series(_offset_series(place, 4))
    return [float(log) * math.factorial(k) for k, log in enumerate(logs)]
