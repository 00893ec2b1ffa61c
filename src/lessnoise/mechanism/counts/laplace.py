"""Closed forms for Laplace noise on counts: the curve of a tree's levels, and how DAWA's published noise fails."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.counts.partition import published_scale

if TYPE_CHECKING:
    from lessnoise._common import Array

_GRID = 2**17
_ROUNDING = 1e-12  # of the Fourier transforms: absolute, and generous
_CELLS = 4
_BUCKETS = ((0, 2), (1, 2), (2, 2), (0, 4))  # (start, length)


def laplace_delta(epsilon: float, shift: float) -> float:
    """Delta of Laplace noise of scale 1 against a shift, for an epsilon of any sign."""
    if epsilon >= shift:
        return 0.0
    return -math.expm1(0.5 * (epsilon - shift)) if epsilon > -shift else -math.expm1(epsilon)


@functools.lru_cache(maxsize=1024)
def repeated_laplace_delta(shift: float, repeats: int, epsilon: float) -> Bracket:
    """Delta at an epsilon for ``repeats`` Laplace coordinates of scale 1, each moved by ``shift``.

    The privacy loss of one coordinate is ``shift`` with probability 1/2, -``shift`` with probability e^(-shift)/2,
    and between them has density e^(-(shift - l)/2)/4. The sum of the losses is found on a grid, once with every loss
    rounded up and once down: E[(1 - e^(epsilon - loss))+] grows with the loss, so the two enclose it.

    >>> found = repeated_laplace_delta(0.5, 1, 0.2)
    >>> 1 - math.exp((0.2 - 0.5) / 2) in found
    True
    """
    if epsilon >= shift * repeats:  # perhaps only because the product was rounded down
        return Bracket(0.0, _ROUNDING)
    if repeats == 1:
        exact = -math.expm1(0.5 * (epsilon - shift))
        return Bracket(exact * (1.0 - 1e-14), exact * (1.0 + 1e-14))
    steps = max(_GRID // repeats, 64)
    step = 2.0 * shift / steps
    # P(loss <= -shift + i step) under the value's own distribution, for i = 0 .. steps.
    edges = -shift + step * np.arange(steps + 1)
    below = 0.5 * np.exp(0.5 * (edges - shift))
    below[-1] = 1.0
    masses = np.diff(below, prepend=0.0)
    upper = _expectation(masses, repeats, shift, step, epsilon)
    # Rounding down moves the mass of every cell to its lower edge; the atoms at both ends stay where they are.
    lowered = np.zeros_like(masses)
    lowered[0], lowered[-1] = masses[0], 0.5
    lowered[:-1] += np.concatenate([masses[1:-1], [masses[-1] - 0.5]])
    lower = _expectation(lowered, repeats, shift, step, epsilon)
    return Bracket(max(lower - _ROUNDING, 0.0), min(upper + _ROUNDING, 1.0))


def _expectation(masses: Array, repeats: int, shift: float, step: float, epsilon: float) -> float:
    """E[(1 - e^(epsilon - S))+] for the sum S of independent losses on the grid."""
    length = (len(masses) - 1) * repeats + 1
    size = 1 << (length - 1).bit_length()
    total = np.fft.irfft(np.fft.rfft(masses, size) ** repeats, size)[:length]
    sums = -shift * repeats + step * np.arange(length)
    gain = -np.expm1(np.minimum(epsilon - sums, 0.0))
    return float(np.sum(total * gain))


def all_singles_probability(
    counts: tuple[int, int, int, int], epsilon: float, bucket_cost: float, size: int, factor: float
) -> float:
    """P(the four cells stay single), with noise of ``factor`` times the published scale on a line of ``size`` cells.

    The other cells, if any, are so unlike each other that no bucket is ever made with them.

    >>> print(f"{all_singles_probability((3, 0, 2, 6), 1.0, 2.0, 4, 1.0):.5f}")
    0.25906
    """
    product = 1.0
    for start, length in _BUCKETS:
        cells = counts[start : start + length]
        mean = sum(cells) / length
        margin = (length - 1) * bucket_cost - sum(abs(cell - mean) for cell in cells)
        product *= _above(margin / (factor * published_scale(length, size, epsilon)))
    return product


def _above(t: float) -> float:
    """P(Z > t) of a Laplace variable of scale 1."""
    return 0.5 * math.exp(-t) if t >= 0.0 else 1.0 - 0.5 * math.exp(t)


@functools.lru_cache(maxsize=256)
def published_delta_lower(epsilon1: float, epsilon2: float, size: int, factor: float, epsilon: float) -> float:
    """A lower bound of delta at an epsilon for both stages of DAWA, from two neighbouring inputs and one output.

    Noise on the costs alone does not protect a partition. In DAWA as published single cells cost 1/epsilon2 without
    noise. The partition into single cells is chosen if and only if every longer bucket b costs more than its l cells,
    Z_b > (l - 1)/epsilon2 - dev(b) for all b, so its probability is a product over the buckets. A record lies in many
    buckets at once, and each of them contributes to the ratio of the two probabilities: their sum exceeds epsilon1, at
    twice the published scale too. Given single cells, the second stage asks for each with Laplace noise of scale
    1/epsilon2, whose loss adds up. The inputs are the best of a few of this kind.

    >>> print(f"{published_delta_lower(1.0, 0.5, 4, 1.0, 1.5):.3f}")
    0.070
    """
    if size < _CELLS:
        return 0.0
    cost = 1.0 / epsilon2
    near = [round(cost) + shift for shift in (-1, 0, 1, 2)]
    ends = {round(cost * share) + shift for share in np.linspace(1.0, 4.0, 13) for shift in (-1, 0, 1)}
    best = 0.0
    for first, third, last in itertools.product(near, near, sorted(ends)):
        one = all_singles_probability((first, 0, third, last), epsilon1, cost, size, factor)
        other = all_singles_probability((first, 1, third, last), epsilon1, cost, size, factor)
        if one > other > 0.0:
            best = max(best, one * laplace_delta(epsilon - math.log(one / other), epsilon2))
    return best * (1.0 - 1e-9)
