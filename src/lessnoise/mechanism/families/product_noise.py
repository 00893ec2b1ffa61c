"""Product noise as published (Liu, Ji, Fang, Wei & Li, SIGMOD 2026, arXiv 2512.06253): its claim does not hold.

The noise n = sigma_M |z| v, z normal and v uniform on the unit sphere of R^M, is the radial member k = 1, p = 2,
the same family as R1SMG. Its scale grows like sqrt(M), but its radius is still half-normal, so that the noise
is often far smaller than its root mean square, and then the released value gives the individual away.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from lessnoise._common import Shape


SOURCE = "Liu, Ji, Fang, Wei & Li 2026 (arXiv 2512.06253)"
_MOST_TERMS = 10**6


def product_noise(
    *,
    epsilon: float,
    sensitivity: float,
    shape: Shape,
    k: float = 1000.0,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """The product noise of the paper, for comparison: the paper's claim beside the exact curve.

    ``k`` is the paper's tuning constant, 1000 or more in its experiments; a larger one lowers the claimed delta.
    The claimed delta follows from epsilon, k and the number of entries, and the formula needs more than three.

    >>> m = product_noise(epsilon=1, sensitivity=1, shape=1000)
    >>> f"claimed {m.claim.delta:.1e}, exact {m.delta(1).upper:.3f}"
    'claimed 9.8e-05, exact 0.734'
    >>> m.check().refuted
    True
    """
    epsilon, sensitivity = validation.epsilon(epsilon), validation.sensitivity(sensitivity)
    sizes, relation, k = validation.shape(shape), Neighbours.of(neighbours), validation.positive("k", k)
    dimension = math.prod(sizes)
    if dimension <= 3:
        raise InvalidInput(
            f"shape={sizes} has M={dimension} entries, but product noise needs M > 3: use another mechanism, "
            "such as analytic_gaussian."
        )
    delta = claimed_delta(dimension, epsilon, k)
    if delta >= 1.0:
        raise InvalidInput(
            f"k={k:g} claims nothing at epsilon={epsilon:g}, M={dimension} (its delta would be {delta:.3g}): "
            "pass a larger k or a smaller epsilon."
        )
    scale = math.sqrt(2.0) * sensitivity * unit_scale(dimension, k) / epsilon  # sqrt(2) sigma_M
    claim = Claim(epsilon, delta, relation, SOURCE)
    return Mechanism("product-noise", Radial(1.0, 2.0, scale), sizes, sensitivity, relation, claim)


def unit_scale(dimension: int, k: float) -> float:
    """t = sigma_M eps/D, with t^2 = 2 k^(4/M) (M/4 + 3/2)^(1 + 4/M) / e^(1 + 2/M).

    >>> round(unit_scale(1000, 1000.0), 4)
    13.9317
    """
    share = 4.0 / dimension
    logarithm = math.log(2.0) + share * math.log(k) + (1.0 + share) * math.log(dimension / 4 + 1.5) - 1.0 - 0.5 * share
    return math.exp(0.5 * logarithm)


def claimed_delta(dimension: int, epsilon: float, k: float) -> float:
    """The paper's delta, with l = D/sigma_M = eps/t; infinite where a double cannot hold it.

    e^(-l^2/2)/(k sqrt(pi)) [1F1(M/4 + 1/2; 1/2; l^2/2) + sqrt(2) l 1F1(M/4 + 1; 3/2; l^2/2)]
    sqrt((M - 1)/((M/2 - 3/2)(M/2 + 3/4))).

    >>> f"{claimed_delta(1000, 0.1, 1000.0):.3g}"
    '3.65e-05'
    """
    ratio = max(epsilon / unit_scale(dimension, k), 1e-150)  # below, the claim is constant to rounding
    z = 0.5 * ratio * ratio
    if _terms(dimension / 4 + 1.0, z) > _MOST_TERMS:
        raise InvalidInput(
            f"epsilon={epsilon:g} is far beyond the range of product noise at M={dimension}, k={k:g}: "
            "pass a smaller epsilon."
        )
    even = log_1f1(dimension / 4 + 0.5, 0.5, z)
    odd = log_1f1(dimension / 4 + 1.0, 1.5, z) + math.log(math.sqrt(2.0) * ratio)
    bracket = max(even, odd) + math.log1p(math.exp(-abs(even - odd)))
    spread = math.log(dimension - 1.0) - math.log((dimension / 2 - 1.5) * (dimension / 2 + 0.75))
    logarithm = bracket - z - math.log(k) - 0.5 * math.log(math.pi) + 0.5 * spread
    return math.exp(logarithm) if logarithm < 709.0 else math.inf


def log_1f1(a: float, b: float, z: float) -> float:
    """Ln of Kummer's function 1F1(a; b; z) for positive arguments: its series has positive terms only.

    >>> math.isclose(log_1f1(2.0, 2.0, 7.0), 7.0)  # 1F1(a; a; z) = e^z
    True
    """
    n = np.arange(_terms(a, z), dtype=np.float64)
    logarithms = np.cumsum(np.log((a + n) / (b + n)) + np.log(z) - np.log1p(n))
    peak = max(float(logarithms.max()), 0.0)
    return peak + math.log(float(np.exp(logarithms - peak).sum()) + math.exp(-peak))


def _terms(a: float, z: float) -> int:
    """Terms of the series that matter: from here on, each is below a third of the one before."""
    return math.floor(min(4.0 * (z + math.sqrt(a * z)), 1e15)) + 80
