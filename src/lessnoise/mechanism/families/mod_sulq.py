"""MOD-SULQ (Chaudhuri, Sarwate & Sinha, JMLR 2013, arXiv 1207.2812): normal noise on a covariance, as published.

It releases A = (1/n) sum x x^T for n records of norm at most c, with independent N(0, beta^2) noise on and above the
diagonal, mirrored below it. The released numbers are the upper triangle, so that the description is a vector of
d (d + 1)/2 entries. Replacing a record x by y changes it by at most sqrt(2) c^2/n: for B = x x^T - y y^T the squared
length of the triangle is (|B|_F^2 + sum B_ii^2)/2, both terms are at most 2 c^4, and x = c e_1, y = c e_2 reach it.
The curve is therefore exact, and shows how much noise the closed form wastes.
"""

from __future__ import annotations

import math

from lessnoise import validation
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.mechanism import Mechanism

SOURCE = "Chaudhuri, Sarwate & Sinha 2013"


def mod_sulq(
    *,
    epsilon: float,
    delta: float,
    features: int,
    records: int,
    clip_norm: float = 1.0,
) -> Mechanism:
    """The published MOD-SULQ noise for the upper triangle of the covariance (1/n) sum x x^T.

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
    claim = Claim(epsilon, delta, Neighbours.REPLACE, SOURCE)
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
