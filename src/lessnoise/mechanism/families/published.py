"""Mechanisms as published, for comparison: product noise, and MOD-SULQ and Wishart noise for covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.mechanism.curve import law_delta
from lessnoise.mechanism.law import Plain, Radial, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import noise_form, values_drawn

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.mechanism.request import Relation


_PRODUCT_NOISE = "Liu, Ji, Fang, Wei & Li 2026 (arXiv 2512.06253)"  # SIGMOD
_MOD_SULQ = "Chaudhuri, Sarwate & Sinha 2013"  # JMLR, arXiv 1207.2812
_WISHART = "Jiang, Xie & Zhang 2016"  # AAAI, arXiv 1511.05680
_MOST_TERMS = 10**6
_ROUNDING = 1e-14


def product_noise(
    *, epsilon: float, sensitivity: float, shape: Shape, k: float = 1000.0, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """The product noise of the paper, for comparison: the paper's claim, which does not hold, beside the exact curve.

    The noise n = sigma_M |z| v, z normal and v uniform on the unit sphere of R^M, is the radial member k = 1, p = 2,
    the same family as R1SMG. Its scale grows like sqrt(M), but its radius is still half-normal, so that the noise
    is often far smaller than its root mean square, and then the released value gives the individual away.

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
    claim = Claim(epsilon, delta, relation, _PRODUCT_NOISE)
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
    if _kummer_terms(dimension / 4 + 1.0, z) > _MOST_TERMS:
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
    n = np.arange(_kummer_terms(a, z), dtype=np.float64)
    logarithms = np.cumsum(np.log((a + n) / (b + n)) + np.log(z) - np.log1p(n))
    peak = max(float(logarithms.max()), 0.0)
    return peak + math.log(float(np.exp(logarithms - peak).sum()) + math.exp(-peak))


def _kummer_terms(a: float, z: float) -> int:
    """Terms of the series that matter: from here on, each is below a third of the one before."""
    return math.floor(min(4.0 * (z + math.sqrt(a * z)), 1e15)) + 80


def mod_sulq(*, epsilon: float, delta: float, features: int, records: int, clip_norm: float = 1.0) -> Mechanism:
    """The published MOD-SULQ noise for the upper triangle of the covariance A = (1/n) sum x x^T, norms at most c.

    Normal noise N(0, beta^2) on and above the diagonal, mirrored below it. The released numbers are the upper triangle,
    so that the description is a vector of d (d + 1)/2 entries. Replacing a record x by y changes it by at most
    sqrt(2) c^2/n: for B = x x^T - y y^T the squared length of the triangle is (|B|_F^2 + sum B_ii^2)/2, both terms are
    at most 2 c^4, and x = c e_1, y = c e_2 reach it. The curve is therefore exact, and shows how much noise the closed
    form wastes.

    >>> m = mod_sulq(epsilon=1, delta=0.01, features=10, records=1000)
    >>> f"{m.standard_deviation:.7f}", m.check().holds
    ('0.0441491', True)
    """
    size, count = validation.whole_number("features", features), validation.whole_number("records", records)
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    clip = validation.positive("clip_norm", clip_norm, math.inf)
    beta = clip * clip * mod_sulq_deviation(epsilon, delta, size, count)
    entries = size * (size + 1) // 2
    sensitivity = math.sqrt(2.0) * clip * clip / count * (1.0 + 1e-15)
    claim = Claim(epsilon, delta, Neighbours.REPLACE, _MOD_SULQ)
    law = Radial(entries, 2.0, math.sqrt(2.0) * beta)
    return Mechanism("mod-sulq", law, (entries,), sensitivity, Neighbours.REPLACE, claim)


def mod_sulq_deviation(epsilon: float, delta: float, features: int, records: int) -> float:
    """Beta = ((d+1)/(n eps)) sqrt(2 ln((d^2+d)/(2 delta sqrt(2 pi)))) + 1/(n sqrt(eps)) (MOD-SULQ, for norms <= 1).

    >>> round(mod_sulq_deviation(1.0, 0.01, 10, 1000), 7)
    0.0441491
    """
    # At d = 1 and delta > 0.4 the logarithm would be negative; the second term alone is then left.
    logarithm = max(math.log((features**2 + features) / (2.0 * delta * math.sqrt(2.0 * math.pi))), 0.0)
    spread = (features + 1) / (records * epsilon) * math.sqrt(2.0 * logarithm)
    return spread + 1.0 / (records * math.sqrt(epsilon))


@register
@dataclass(frozen=True, slots=True)
class Wishart(Plain):
    """W = G G^T with G of d x (d + 1) independent N(0, scale) entries, for changes x x^T - y y^T.

    The sensitivity is the largest |x|^2 of such a change.
    """

    scale: float

    kind: ClassVar[str] = "wishart"
    norm: ClassVar[str] = "outer product"

    def __post_init__(self) -> None:
        settle(self, scale=validation.positive("scale", self.scale))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Square matrices."""
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInput(f"shape={shape} is not square: Wishart noise is for d x d matrices, such as (64, 64).")


def wishart(*, epsilon: float, features: int, records: int, clip_norm: float = 1.0) -> Mechanism:
    """The published Wishart mechanism for the covariance (1/n) sum x x^T: the source's claim beside the truth.

    It releases A + W, where A = (1/n) sum x x^T over n records of norm at most c, and W ~ Wishart_d(d + 1, s I) with
    s = 3 c^2/(2 n eps), that is W = G G^T for a d x (d + 1) matrix G of independent N(0, s) entries. The source claims
    (eps, 0), which does not hold: at this scale delta = 1 - exp(-eps/3) for every larger epsilon.

    >>> m = wishart(epsilon=1, features=10, records=1000)
    >>> m.check().refuted, f"{m.delta(1).lower:.4f}", m.epsilon(0.1).upper
    (True, '0.2835', inf)
    """
    epsilon, size = validation.epsilon(epsilon), validation.whole_number("features", features)
    count, clip = validation.whole_number("records", records), validation.positive("clip_norm", clip_norm, math.inf)
    sensitivity = clip * clip / count * (1.0 + 1e-15)  # rounded up
    claim = Claim(epsilon, 0.0, Neighbours.REPLACE, _WISHART)
    law = Wishart(1.5 * sensitivity / epsilon)  # C = 3/(2 n eps) I (Jiang, Xie & Zhang 2016, Algorithm 1)
    return Mechanism("wishart", law, (size, size), sensitivity, Neighbours.REPLACE, claim)


@law_delta.register(Wishart)
def _(law: Wishart, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    """For every change A' - A = x x^T - y y^T with |x|^2, |y|^2 <= D = c^2/n.

    More generally, for every symmetric one whose positive and negative eigenvalues each sum to at most D. With d + 1
    degrees of freedom the density of W is proportional to exp(-tr(W)/(2 s)) on the positive definite matrices and 0
    elsewhere. Write r = D/(2 s); as published r = eps/3.

    - *Where both densities are positive* the loss is tr(A' - A)/(2 s), between -r and r.
    - *Elsewhere* it is infinite. An output of A that does not dominate A' cannot come from A'. For A' - A = x x^T the
      output dominates A' if and only if 1/(x^T W^-1 x) >= 1, and |x|^2/(s x^T W^-1 x) ~ chi^2_2. So this fails with
      probability exactly 1 - exp(-|x|^2/(2 s)), in any dimension. A change x x^T - y y^T is dominated wherever x x^T
      is, so it fails no more often. (For any positive P, W dominates P with probability exp(-tr(P)/(2 s)): move W by
      P.)

    Hence delta(e) = 1 - exp(-r) for every e >= r, however large; for e < r it lies between that and
    1 - exp(-r) + exp(-r) (1 - exp(e - r)). Raising epsilon does not help.
    """
    rate = 0.5 * sensitivity / law.scale
    low, high = rate * (1.0 - _ROUNDING), rate * (1.0 + _ROUNDING)
    impossible = -math.expm1(-high)
    overlap = math.exp(-low) * max(-math.expm1(epsilon - high), 0.0) if epsilon < high else 0.0
    lower, upper = -math.expm1(-low) * (1.0 - _ROUNDING), (impossible + overlap) * (1.0 + _ROUNDING)
    return Bracket(lower, min(math.nextafter(upper, 1.0), 1.0))


@log_raw_moment.register(Wishart)
def _(law: Wishart, dimension: int, order: float) -> float:
    if order != 1:
        raise InvalidInput(f"order={order:g}: only the mean loss of Wishart noise is known; read expected_loss.")
    # E tr(W^2) = s^2 (v (v + 1) d + v d^2) with v = d + 1 degrees of freedom.
    size = math.isqrt(dimension)
    degrees = size + 1
    return 2.0 * math.log(law.scale) + math.log(degrees * (degrees + 1) * size + degrees * size * size)


@quantile.register(Wishart)
def _(law: Wishart, dimension: int, probability: float) -> float:
    raise InvalidInput(f"q={probability:g}: loss quantiles of Wishart noise are not known; read expected_loss.")


@noise_form.register(Wishart)
def _(law: Wishart, shape: tuple[int, ...]) -> noise_engine.Form:
    return noise_engine.WishartForm(law.scale)


@values_drawn.register(Wishart)
def _(law: Wishart, dimension: int) -> int:
    size = math.isqrt(dimension)
    return size * (size + 1)
