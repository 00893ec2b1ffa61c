r"""The Wishart mechanism as published (Jiang, Xie & Zhang, AAAI 2016, arXiv 1511.05680): its claim does not hold.

It releases A + W, where A = (1/n) sum x x^T over n records of norm at most c, and W ~ Wishart_d(d + 1, s I) with
s = 3 c^2/(2 n eps), that is W = G G^T for a d x (d + 1) matrix G of independent N(0, s) entries. The source claims
(eps, 0). The curve below is for every change A' - A = x x^T - y y^T with |x|^2, |y|^2 <= D = c^2/n, and more generally
for every symmetric one whose positive and negative eigenvalues each sum to at most D.

With d + 1 degrees of freedom the density of W is proportional to exp(-tr(W)/(2 s)) on the positive definite matrices
and 0 elsewhere. Write r = D/(2 s); as published r = eps/3.

- *Where both densities are positive* the loss is tr(A' - A)/(2 s), between -r and r.
- *Elsewhere* it is infinite. An output of A that does not dominate A' cannot come from A'. For A' - A = x x^T the
  output dominates A' if and only if 1/(x^T W^-1 x) >= 1, and |x|^2/(s x^T W^-1 x) ~ chi^2_2. So this fails with
  probability exactly 1 - exp(-|x|^2/(2 s)), in any dimension. A change x x^T - y y^T is dominated wherever x x^T is,
  so it fails no more often. (For any positive P, W dominates P with probability exp(-tr(P)/(2 s)): move W by P.)

Hence delta(e) = 1 - exp(-r) for every e >= r, however large; for e < r it lies between that and
1 - exp(-r) + exp(-r) (1 - exp(e - r)). Raising epsilon does not help: at the published scale delta = 1 - exp(-eps/3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.mechanism.curve import law_delta
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import noise_form, values_drawn

SOURCE = "Jiang, Xie & Zhang 2016"
_ROUNDING = 1e-14


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
        object.__setattr__(self, "scale", validation.positive("scale", self.scale))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Square matrices."""
        if len(shape) != 2 or shape[0] != shape[1]:
            raise InvalidInput(f"shape={shape} is not square: Wishart noise is for d x d matrices, such as (64, 64).")


def wishart(
    *,
    epsilon: float,
    features: int,
    records: int,
    clip_norm: float = 1.0,
) -> Mechanism:
    """The published Wishart mechanism for the covariance (1/n) sum x x^T: the source's claim beside the truth.

    >>> m = wishart(epsilon=1, features=10, records=1000)
    >>> m.check().refuted, f"{m.delta(1).lower:.4f}", m.epsilon(0.1).upper
    (True, '0.2835', inf)
    """
    epsilon, size = validation.epsilon(epsilon), validation.whole_number("features", features)
    count, clip = validation.whole_number("records", records), validation.positive("clip_norm", clip_norm, math.inf)
    sensitivity = clip * clip / count * (1.0 + 1e-15)  # rounded up
    claim = Claim(epsilon, 0.0, Neighbours.REPLACE, SOURCE)
    law = Wishart(1.5 * sensitivity / epsilon)  # C = 3/(2 n eps) I (Jiang, Xie & Zhang 2016, Algorithm 1)
    return Mechanism("wishart", law, (size, size), sensitivity, Neighbours.REPLACE, claim)


@law_delta.register(Wishart)
def _(law: Wishart, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
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
    return noise_engine.Wishart(law.scale)


@values_drawn.register(Wishart)
def _(law: Wishart, dimension: int) -> int:
    size = math.isqrt(dimension)
    return size * (size + 1)
