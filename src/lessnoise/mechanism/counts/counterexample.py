"""Why noise on the costs alone does not protect a partition: two neighbouring inputs and one output, in closed form.

In DAWA as published single cells cost 1/epsilon2 without noise. The partition into single cells is chosen if and only
if every longer bucket b costs more than its l cells, Z_b > (l - 1)/epsilon2 - dev(b) for all b, so its probability is a
product over the buckets. A record lies in many buckets at once, and each of them contributes to the ratio of the two
probabilities: their sum exceeds epsilon1, at twice the published scale too.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from lessnoise.mechanism.counts.partition import published_scale

_CELLS = 4
_BUCKETS = ((0, 2), (1, 2), (2, 2), (0, 4))  # (start, length)


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
    """A lower bound of delta at an epsilon for both stages, from the best of a few inputs of this kind.

    Given single cells, the second stage asks for each with Laplace noise of scale 1/epsilon2, whose loss adds up.

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
            best = max(best, one * _laplace_delta(epsilon - math.log(one / other), epsilon2))
    return best * (1.0 - 1e-9)


def _laplace_delta(epsilon: float, shift: float) -> float:
    """Delta of Laplace noise of scale 1 against a shift, for an epsilon of any sign."""
    if epsilon >= shift:
        return 0.0
    return -math.expm1(0.5 * (epsilon - shift)) if epsilon > -shift else -math.expm1(epsilon)
