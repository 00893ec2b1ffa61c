"""The angle between two independent uniform directions: the paper's bound and the exact law.

Theorem 5 of Ji & Li (2024) rests on Lemma 2, the bound below (Cai, Fan & Jiang 2013, pages 1845 and 1860).
The lemma is true. It speaks of two *independent* directions, though, and the two noises that lead to one and
the same output are not independent: :func:`proof_event_bound` says what that does to the proof.
"""

from __future__ import annotations

import math

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import log_gamma_ratio


def angle_bound(theta0: float, dimension: int) -> float:
    """Lemma 2 of Ji & Li (2024): an upper bound of P(|theta - pi/2| >= theta0) in dimension P > 2.

    It is sqrt(pi) Gamma(P/2)/Gamma((P-1)/2) cos(theta0)^(P-2), and exceeds 1 for small theta0.

    >>> f"{angle_bound(0.5, 100):.4e}, exactly {angle_probability(0.5, 100):.4e}"
    '3.4435e-05, exactly 3.9303e-07'
    """
    theta0 = _theta0(theta0)
    dimension = validation.whole_number("dimension", dimension, minimum=3)
    # Lemma 2, in logarithms.
    logarithm = 0.5 * math.log(math.pi) + log_gamma_ratio((dimension - 1) / 2, 0.5)
    return math.exp(logarithm + (dimension - 2) * _log_cos(theta0))


def angle_probability(theta0: float, dimension: int) -> float:
    """The exact P(|theta - pi/2| >= theta0) = I_{cos^2 theta0}((P-1)/2, 1/2), in any dimension P >= 2.

    The density of theta is Gamma(P/2)/(sqrt(pi) Gamma((P-1)/2)) sin(theta)^(P-2) (Cai, Fan & Jiang
    2013). Below 1e-308 the answer is 0.

    >>> angle_probability(0.5, 3) == 1 - math.sin(0.5)  # Archimedes: heights on a sphere are uniform
    True
    """
    from scipy.special import betainc, betaincc

    theta0 = _theta0(theta0)
    half = 0.5 * (validation.whole_number("dimension", dimension, minimum=2) - 1)
    if theta0 > 0.25 * math.pi:
        return float(betainc(half, 0.5, math.cos(theta0) ** 2))
    # The same number from sin^2: for small angles and large P, cos^2 has lost the digits that matter.
    return float(betaincc(0.5, half, math.sin(theta0) ** 2))


def proof_event_bound(epsilon: float) -> float:
    """At most how often the event that the proof of Theorem 5 conditions on can happen: erf(sqrt(epsilon)/2).

    The proof bounds the privacy loss on the event |theta - pi/2| < theta0, where theta is the angle at the
    output s between s - f(x) and s - f(x'), and takes its probability to be at least 1 - delta, as Lemma 2
    gives for independent directions. By the law of sines (the paper's own step) the event implies
    ||s - f(x)|| <= D/sqrt(psi), and s - f(x) = sqrt(sigma_*) z v with sigma_* = 2 D^2/(epsilon psi), so it
    implies |z| <= sqrt(epsilon/2). That has probability erf(sqrt(epsilon)/2), whatever M, delta and D.

    >>> f"{proof_event_bound(1e-5):.5f}"  # the proof needs 1 - delta
    '0.00178'
    """
    return math.erf(0.5 * math.sqrt(validation.epsilon(epsilon)))


def _theta0(value: object) -> float:
    theta0 = validation.number("theta0", value)
    if not 0.0 <= theta0 <= 0.5 * math.pi:
        raise InvalidInput(f"theta0={value} must lie between 0 and pi/2: pass an angle in radians.")
    return theta0


def _log_cos(theta: float) -> float:
    if theta > 0.25 * math.pi:
        return math.log(math.cos(theta))
    return 0.5 * math.log1p(-(math.sin(theta) ** 2))
