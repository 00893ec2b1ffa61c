"""The loss ||n||^2 of noise that is uniform in a random multiple of a body: moments, and quantiles by Fourier series.

The loss is R^2 S, with S the sum of squares of a uniform point (``norm_bodies``). Given the place T of the first
coordinate (0 for the cube), S has independent terms (U - T)^2, whose characteristic function is a Fresnel integral.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.families.norm_bodies import CORNER, log_square_moment, square_cumulants
from lessnoise.mechanism.families.norm_radial import NormRadial, Slices
from lessnoise.mechanism.families.norm_staircase import NormStaircase, steps
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.numerics import log_gamma_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array

    Complex = NDArray[np.complex128]

_FEW_TERMS = 8  # so few that the Fourier series converges slowly
_MOST_TRANSFORMS = 2000  # places times different factors; beyond, Edgeworth's expansion serves
_SMOOTH_FROM = 200  # entries of a corner body, whose places T matter more than the terms


@log_raw_moment.register(NormRadial)
@log_raw_moment.register(NormStaircase)
def _(law: NormRadial | NormStaircase, dimension: int, order: int) -> float:
    radius = log_radius_moment(law, dimension, order)
    return radius + log_square_moment(law.body, dimension, law.factors, order)


def log_radius_moment(law: NormRadial | NormStaircase, dimension: int, order: int) -> float:
    """ln E[R^(2 order)] of noise that is uniform in R K."""
    if isinstance(law, NormRadial):  # R = s x^(1/p), x ~ Gamma((M + p)/p)
        shape = (dimension + law.power) / law.power
        return 2.0 * order * math.log(law.scale) + log_gamma_ratio(shape, 2.0 * order / law.power)
    radii, chances = steps(law, dimension)
    largest = float(radii[-1])
    return 2.0 * order * math.log(largest) + math.log(float(np.dot(chances, (radii / largest) ** (2 * order))))


@quantile.register(NormRadial)
def _(law: NormRadial, dimension: int, probability: float) -> float:
    if dimension == 1:
        stretched = law.scale * (law.factors[0] if law.factors else 1.0)
        return quantile(Radial(1.0, law.power, stretched), 1, probability)
    x, weights = Slices(law.body, dimension, law.power, 1.0, 1.0).nodes()
    return _quantile(law, dimension, law.scale * x ** (1.0 / law.power), weights, probability)


@quantile.register(NormStaircase)
def _(law: NormStaircase, dimension: int, probability: float) -> float:
    return _quantile(law, dimension, *steps(law, dimension), probability)


def _quantile(
    law: NormRadial | NormStaircase, dimension: int, radii: Array, chances: Array, probability: float
) -> float:
    """The loss that is not exceeded with a probability within 1e-6 of the one asked for (1e-4 for two entries)."""
    from scipy.optimize import brentq

    squares = SquareSum.of(law.body, dimension, law.factors)
    log_radii = 2.0 * np.log(radii)

    def excess(log_loss: float) -> float:
        return float(np.dot(chances, squares.below(np.exp(log_loss - log_radii)))) - probability

    middle = log_raw_moment(law, dimension, 1)
    low, high = middle - 1.0, middle + 1.0
    while excess(low) > 0.0:
        low -= 2.0 * (middle - low)
        if low < -740.0:
            return 0.0
    while excess(high) < 0.0 and high < middle + 20.0:
        high += high - middle
    return math.exp(float(brentq(excess, low, high, xtol=1e-12))) if excess(high) > 0.0 else math.exp(high)


@dataclass(frozen=True, slots=True, eq=False)
class SquareSum:
    """The distribution function of S, on a grid from ``start`` on."""

    start: float
    step: float
    values: Array
    root: float = 0.0  # the factor of a single entry, where P(S <= s) = sqrt(s)/root

    @classmethod
    def of(cls, body: str, dimension: int, factors: tuple[float, ...]) -> SquareSum:
        """For any number of entries."""
        return _square_sum(body, dimension, factors)

    def below(self, sums: Array) -> Array:
        """P(S <= s)."""
        if self.root:
            return np.minimum(np.sqrt(sums) / self.root, 1.0)
        grid = self.start + self.step * np.arange(len(self.values))
        return np.interp(sums, grid, self.values, left=0.0, right=1.0)


@functools.lru_cache(maxsize=16)
def _square_sum(body: str, dimension: int, factors: tuple[float, ...]) -> SquareSum:
    if dimension == 1:
        return SquareSum(0.0, 1.0, np.ones(1), factors[0] if factors else 1.0)
    sizes, numbers = np.unique(np.array(factors or (1.0,)) ** 2, return_counts=True)
    counts = numbers.astype(np.float64) if factors else np.array([float(dimension)])
    places = _places(body, dimension)
    few = len(sizes) * len(places) <= _MOST_TRANSFORMS
    series = few and dimension <= (_SMOOTH_FROM if body == CORNER else 10**5)
    return (_by_series if series else _by_expansion)(sizes, counts, places, dimension)


@dataclass(frozen=True, slots=True)
class _Place:
    """The first coordinate lies at T with this weight; it is the least, or (``other``) one of the rest is."""

    place: float
    weight: float
    other: bool


def _places(body: str, dimension: int) -> list[_Place]:
    if body != CORNER:
        return [_Place(0.0, 1.0, False)]
    panels = 18 if dimension <= 3 else min(6 + math.isqrt(dimension) // 2, 600)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    share = dimension / (dimension + 1.0)
    spread = [
        _Place((panel + 0.5 * (float(node) + 1.0)) / panels, 0.5 * share * float(weight) / panels, True)
        for panel in range(panels)
        for node, weight in zip(nodes, weights, strict=True)
    ]
    return [_Place(0.0, 1.0 / (dimension + 1.0), False), *spread]


def _cumulants(sizes: Array, numbers: Array, place: _Place) -> list[float]:
    """Of S at a place, the first four after a 0; the entry that is the least adds a mean alone."""
    sums = [float(np.dot(numbers, sizes**k)) for k in range(5)]
    entries = float(numbers.sum())
    each = square_cumulants(place.place)
    if not place.other:
        return [0.0, *(each[k] * sums[k] for k in range(1, 5))]
    found = [0.0, *(each[k] * sums[k] * (entries - 1.0) / entries for k in range(1, 5))]
    found[1] += place.place**2 * sums[1] / entries
    return found


def _window(sizes: Array, numbers: Array, places: list[_Place]) -> tuple[float, float]:
    ends = []
    for place in places:
        _, mean, variance, _, _ = _cumulants(sizes, numbers, place)
        spread = 14.0 * math.sqrt(variance) + 2.0 * float(sizes.max())
        ends.append((max(mean - spread, 0.0), min(mean + spread, float(np.dot(numbers, sizes)))))
    return min(low for low, _ in ends), max(high for _, high in ends)


def _by_series(sizes: Array, numbers: Array, places: list[_Place], dimension: int) -> SquareSum:
    """The density as a Fourier series on a period a little longer than its support; its integral term by term."""
    low, high = _window(sizes, numbers, places)
    period = 1.02 * (high - low)
    start = low - 0.01 * (high - low)
    terms = 2 ** (14 if dimension <= _FEW_TERMS else 12)
    frequencies: Array = 2.0 * math.pi / period * np.arange(1.0, float(terms))
    total = np.zeros(terms - 1, dtype=np.complex128)
    for place in places:
        for part in _transforms(sizes, numbers, place, frequencies):
            total += place.weight * part
    total *= np.exp(-1j * frequencies * start)
    # F(s) = s/L + sum over k of Re[2 phi_k (e^(-i w_k s) - 1)/(-i w_k L)], s from the start on.
    points = 4 * terms
    coefficients = np.zeros(points // 2 + 1, dtype=np.complex128)
    coefficients[1:terms] = np.conj(total * 1j / frequencies) / period
    waves = np.fft.irfft(coefficients * points, points)
    values = np.arange(points) / points + waves - waves[0]
    return SquareSum(start, period / points, np.maximum.accumulate(np.clip(values, 0.0, 1.0)))


def _transforms(sizes: Array, numbers: Array, place: _Place, frequencies: Array) -> Iterator[Complex]:
    """E exp(i w S) at a place, in parts that add up."""
    one = [_transform(place.place, frequencies * size) for size in sizes]
    if not place.other:
        yield np.prod([each ** int(number) for each, number in zip(one, numbers, strict=True)], axis=0)
        return
    for index, size in enumerate(sizes):  # the least of the others has this factor
        left = [int(number) - (other == index) for other, number in enumerate(numbers)]
        rest = np.prod([each**number for each, number in zip(one, left, strict=True)], axis=0)
        yield numbers[index] / numbers.sum() * rest * np.exp(1j * frequencies * size * place.place**2)


def _transform(place: float, frequencies: Array) -> Complex:
    """E exp(i w (U - T)^2): Fresnel integrals (DLMF 7.2.6) over both sides of T."""
    from scipy.special import fresnel

    root = np.sqrt(2.0 / math.pi * frequencies)
    total = np.zeros(len(frequencies), dtype=np.complex128)
    for side in (place, 1.0 - place):
        if side > 0.0:
            sine, cosine = fresnel(side * root)
            total += (cosine + 1j * sine) / root
    return total


def _by_expansion(sizes: Array, numbers: Array, places: list[_Place], dimension: int) -> SquareSum:
    """Edgeworth's expansion of the terms at every place, of order 1/M; only where there are many terms."""
    from scipy.special import ndtr

    low, high = _window(sizes, numbers, places)
    points = 2**13
    grid = np.linspace(low, high, points)
    values, beyond = np.zeros(points), np.zeros(points + 1)
    for place in places:
        _, mean, variance, third, fourth = _cumulants(sizes, numbers, place)
        deviation = math.sqrt(variance)
        first, last = np.searchsorted(grid, [mean - 9.0 * deviation, mean + 9.0 * deviation])
        beyond[last] += place.weight
        z = (grid[first:last] - mean) / deviation
        skew, excess = third / variance**1.5, fourth / variance**2
        bend = skew / 6.0 * (z**2 - 1.0) + excess / 24.0 * (z**3 - 3.0 * z)
        bend += skew**2 / 72.0 * (z**5 - 10.0 * z**3 + 15.0 * z)
        values[first:last] += place.weight * (ndtr(z) - np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi) * bend)
    values += np.cumsum(beyond)[:points]
    return SquareSum(low, float(grid[1] - grid[0]), np.maximum.accumulate(np.clip(values, 0.0, 1.0)))
