r"""Ziggurat tables for the densities f(x) = exp(-g(|x|)), exact by construction.

g(x) = x^2/2 (the normal law) or x^p with 1 <= p <= 100 (p = 1 is Laplace's). The region under f is covered by L = 1024
layers of equal area. With r, the slope s and all widths X_i *dyadic rationals* (multiples of 2^-24, so exact doubles),

    layer 0:  the strip 0 <= y < f(r), of nominal half width X_0 > r; |x| < r is under the curve, r <= |x| < X_0 stands
              for the tail beyond r;
    layer i:  |x| < X_i, q_i f(r) <= y < q_(i+1) f(r), with q_1 = 1 and q_(i+1) = q_i + X_0/X_i.

Every layer has half area X_0 f(r), whatever the widths are; nothing has to close exactly. Four inequalities make the
rejection sampler *exact* (they are checked with exact arithmetic in the tests):

    (cover)  g(X_i) >= g(r) - ln q_i, i >= 1          a layer reaches beyond the curve
    (top)    ln q_L >= g(r)                           the last one ends above 1
    (tail)   s <= g'(r), (X_0 - r) s >= 1             the tail's proposal lies above f
    (inner)  g(THR_i + 2^-40) <= g(r) - ln q_(i+1)    what the fast test accepts is under the curve, float error and all

An attempt takes one 64-bit word: its low 10 bits are the layer, its high 54 bits a signed integer s, and
x = (s + theta) X_i 2^-53, theta in [0, 1) being the word's further levels. All decisions are those of these reals.

The uniform law on [-1, 1) has the same tables, with layers of width 1 in which every attempt is accepted at once.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array


LAYER_BITS = 10
LAYERS = 1 << LAYER_BITS
POSITION_BITS = 64 - LAYER_BITS - 1  # of |s|
UNIT = 2.0**-24
MARGIN = 2.0**-40  # float decisions closer than this are made again, exactly
NORMAL, LAPLACE, POWER, UNIFORM = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Density:
    """The tables of one density, read-only."""

    kind: int
    power: float  # p
    r: float
    slope: float  # s: the tail is proposed as r + E/s, E exponential
    widths: Array  # X_i, multiples of 2^-24
    heights: Array  # q_i rounded to double; q_0 = 0 is not used
    ratios: Array  # X_0/X_i
    steps: Array  # X_i 2^-53, so that x = s * step
    inner: Array  # THR_i: |x| below it is accepted at once
    error: float  # |computed x - real x| is at most this, wherever the fast path returns a value

    @property
    def body_error(self) -> float:
        """The same for values below r: X 2^-53 (theta) and |x| 2^-53 (one rounding)."""
        return 2.0 * float(self.widths[0]) * 2.0**-53

    @property
    def deviation(self) -> float:
        """Standard deviation of the law, at scale 1."""
        if self.kind == NORMAL:
            return 1.0
        if self.kind == UNIFORM:
            return math.sqrt(1.0 / 3.0)
        return math.exp(0.5 * (math.lgamma(3.0 / self.power) - math.lgamma(1.0 / self.power)))

    @property
    def tables(self) -> tuple[int, float, float, float, Array, Array, Array, Array]:
        """What the compiled kernels read."""
        return self.kind, self.power, self.r, self.slope, self.heights, self.ratios, self.steps, self.inner


# The largest multiples of 2^-24 at which 1024 layers still cover the density.
_KNOWN_R = {NORMAL: 67773981 * UNIT, LAPLACE: 155292671 * UNIT}


def normal() -> Density:
    """The standard normal law."""
    return _density(NORMAL, 2.0)


def laplace() -> Density:
    """Density exp(-|x|)/2."""
    return _density(LAPLACE, 1.0)


def power(p: float) -> Density:
    """Density proportional to exp(-|x|^p); 60 ms for the first use of a p."""
    return laplace() if p == 1.0 else _density(POWER, p)


@functools.cache
def uniform() -> Density:
    """Density 1/2 on [-1, 1): x = (s + theta) 2^-53, of which floats hold s 2^-53 exactly."""
    ones, steps, inner = np.ones(LAYERS), np.full(LAYERS, 2.0**-POSITION_BITS), np.full(LAYERS, 2.0)
    heights = np.ones(LAYERS + 1)
    for table in (ones, heights, steps, inner):
        table.setflags(write=False)
    return Density(UNIFORM, math.inf, 1.0, 1.0, ones, heights, ones, steps, inner, 2.0**-POSITION_BITS)


@functools.lru_cache(maxsize=64)
def _density(kind: int, p: float) -> Density:
    """Build the tables: 2 ms where r is known."""
    r = _KNOWN_R.get(kind) or _largest_r(p)
    widths, heights = _layers(kind, p, r)
    inner = np.zeros(LAYERS)  # the top layer has no inner part
    inner[: LAYERS - 1] = [_edge(kind, p, r, height) - 2.0 * MARGIN for height in heights[1:LAYERS]]
    tables = (widths, heights, widths[0] / widths, widths * 2.0**-POSITION_BITS, inner)
    for table in tables:
        table.setflags(write=False)
    return Density(kind, p, r, _slope(kind, p, r), *tables, 2.0**-48 if kind == NORMAL else 2.0**-46)


def _layers(kind: int, p: float, r: float) -> tuple[Array, Array]:
    """X_i and q_i; the heights end early, at infinity, where the layers have passed the top."""
    widths, heights = np.zeros(LAYERS), np.zeros(LAYERS + 1)
    widths[0] = r + 1.0 if kind == LAPLACE else _up(r + 1.0 / _slope(kind, p, r))
    heights[1] = 1.0
    total, top = _CompensatedSum(1.0), math.exp(_exponent(kind, p, r)) * (1.0 - 2.0**-20)
    for layer in range(1, LAYERS):
        if total.value >= top:
            heights[layer:] = math.inf
            break
        widths[layer] = _up(_edge(kind, p, r, total.value))
        total.add(float(widths[0] / widths[layer]))
        heights[layer + 1] = total.value
    return widths, heights


def _largest_r(p: float) -> float:
    """By bisection on multiples of 2^-24: a larger r makes thinner layers, which end lower."""

    def covers(units: int) -> bool:
        height = float(_layers(POWER, p, units * UNIT)[1][LAYERS])
        return height == math.inf or math.log(height) >= _exponent(POWER, p, units * UNIT) + 2.0**-36

    low, high = int(4.0 ** (1.0 / p) / UNIT), int(16.0 ** (1.0 / p) / UNIT) + 2  # g(r) is 8 to 9.3
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if covers(middle) else (low, middle)
    while not math.isfinite(_layers(POWER, p, low * UNIT)[1][LAYERS]):  # the top layer must have a width
        low += 1
    return low * UNIT


def _exponent(kind: int, p: float, x: float) -> float:
    """g(x)."""
    return 0.5 * x * x if kind == NORMAL else float(x**p)


def _slope(kind: int, p: float, r: float) -> float:
    """A multiple of 2^-24 that is surely not above g'(r), and nearly it."""
    if kind == POWER:
        return math.floor(float(p * r ** (p - 1.0)) / UNIT - 2.0**-10) * UNIT
    return r if kind == NORMAL else 1.0


def _edge(kind: int, p: float, r: float, height: float) -> float:
    """Where f(x) = height f(r)."""
    rest = _exponent(kind, p, r) - math.log(height)
    if kind == NORMAL:
        return math.sqrt(2.0 * rest)
    return rest if kind == LAPLACE else float(rest ** (1.0 / p))


def _up(x: float) -> float:
    """A multiple of 2^-24 that is surely above x, float error and all."""
    return math.ceil(x / UNIT + 2.0**-10) * UNIT


class _CompensatedSum:
    """A running sum with compensation: error below 2^-50 of the value over a thousand terms."""

    def __init__(self, value: float) -> None:
        self.value, self._rest = value, 0.0

    def add(self, term: float) -> None:
        term += self._rest
        before, self.value = self.value, self.value + term
        self._rest = term - (self.value - before)
