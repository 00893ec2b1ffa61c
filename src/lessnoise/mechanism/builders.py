"""Builders: from a privacy target to a mechanism. Keyword-only; ints are welcome wherever floats are.

Each sets as ``claim`` what its source promises. A claim is not a guarantee: :meth:`Mechanism.check`
compares it with the exact curve.
"""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.mechanism.calibration import radial_scale
from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.numerics import log_gamma_ratio, sufficient_scale
from lessnoise.mechanism.request import Request, representable

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.mechanism.request import Relation


OURS = "calibrated on the exact curve by lessnoise"


def _gaussian(target: Request, name: str, sigma: float, source: str) -> Mechanism:
    return target.mechanism(name, Radial(target.dimension, 2.0, math.sqrt(2.0) * sigma), source)


def _calibrated(target: Request, name: str, k: float, p: float) -> Mechanism:
    scale = radial_scale(
        dimension=target.dimension,
        k=k,
        p=p,
        epsilon=target.epsilon,
        delta=target.reserved_delta,
        sensitivity=target.sensitivity,
    )
    return target.mechanism(name, Radial(k, p, scale), OURS)


def r1smg(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    calibration: Literal["published", "exact"],
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Rank-1 singular multivariate Gaussian noise: one normal variable along a random direction.

    ``calibration="published"`` is Theorem 5 of Ji & Li (USENIX Security 2024), sigma_* = 2 D^2/(eps psi);
    its claim does not hold. ``calibration="exact"`` takes the smallest sigma_* that does keep the target.

    >>> m = r1smg(epsilon=1e-5, delta=1e-7, sensitivity=2**0.5, shape=(89, 89), calibration="published")
    >>> f"{m.expected_loss:.4f}"
    '402110.0976'
    >>> m.check().holds
    False
    """
    validation.choice("calibration", calibration, ("published", "exact"))
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    if calibration == "exact":
        return _calibrated(target, "r1smg", 1.0, 2.0)
    dimension = target.dimension
    if dimension <= 2:
        raise InvalidInput(
            f"shape={target.shape} has M={dimension} entries, but the published R1SMG needs M > 2: "
            'use calibration="exact" or another mechanism.'
        )
    if target.epsilon >= 1.0 / dimension:
        warnings.warn(
            f"epsilon={target.epsilon:g} is not below 1/M={1.0 / dimension:g}, the range that the R1SMG paper "
            "states for its claim (Remark 1).",
            ClaimWarning,
            stacklevel=2,
        )
    # Theorem 5: sigma_* = 2 D^2 / (eps psi).
    with representable(epsilon=target.epsilon, delta=target.delta, sensitivity=target.sensitivity):
        sigma_star = 2.0 * target.sensitivity**2 / (target.epsilon * r1smg_psi(dimension, target.delta))
    law = Radial(1.0, 2.0, math.sqrt(2.0 * sigma_star))
    return target.mechanism("r1smg-published", law, "Ji & Li 2024, Theorem 5")


def r1smg_psi(dimension: int, delta: float) -> float:
    """Psi = (delta Gamma((M-1)/2) / (sqrt(pi) Gamma(M/2)))^(2/(M-2)) (Ji & Li 2024, Theorem 5)."""
    logarithm = math.log(delta) - log_gamma_ratio((dimension - 1) / 2, 0.5) - 0.5 * math.log(math.pi)
    return math.exp(2.0 / (dimension - 2) * logarithm)


def classic_gaussian(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """Independent normal noise with sigma = D sqrt(2 ln(1.25/delta))/eps (Dwork & Roth 2014, Theorem A.1).

    The theorem is stated for epsilon < 1; beyond it the claim can fail, and :meth:`Mechanism.check` says so.
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    if target.epsilon >= 1.0:
        warnings.warn(
            f"epsilon={target.epsilon:g} is not below 1, the range of the classic Gaussian theorem.",
            ClaimWarning,
            stacklevel=2,
        )
    sigma = target.sensitivity * math.sqrt(2.0 * math.log(1.25 / target.delta)) / target.epsilon
    return _gaussian(target, "classic-gaussian", sigma, "Dwork & Roth 2014, Theorem A.1")


def analytic_gaussian(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """Independent normal noise of the smallest sufficient sigma (Balle & Wang 2018, Theorem 9).

    >>> f"{analytic_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=10).standard_deviation:.5f}"
    '3.73063'
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    sigma = target.sensitivity * gaussian.gaussian_scale(target.epsilon, target.reserved_delta)
    return _gaussian(target, "analytic-gaussian", sigma, "Balle & Wang 2018, Theorem 9")


def zhao_gaussian(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    variant: Literal[1, 2],
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Independent normal noise by Zhao et al.'s closed forms, valid for every epsilon (arXiv 1911.12060).

    Variant 1 takes a = erfc^-1(2 delta); variant 2 avoids the inverse function and is a little larger.
    """
    validation.choice("variant", variant, (1, 2))
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    if variant == 1:
        from scipy.special import erfcinv

        a = float(erfcinv(2.0 * target.delta))
    else:
        # a^2 = ln(2/(sqrt(16 delta + 1) - 1)), with the difference written as a quotient.
        a_squared = math.log((math.sqrt(16.0 * target.delta + 1.0) + 1.0) / (8.0 * target.delta))
        if a_squared < 0.0:
            raise InvalidInput(
                f"delta={target.delta:g} is too large for Zhao's second closed form: use variant=1 or "
                "analytic_gaussian."
            )
        a = math.sqrt(a_squared)
    # sigma = D (a + sqrt(a^2 + eps))/(eps sqrt 2); for a < 0 the sum is written without cancellation.
    root = math.sqrt(a * a + target.epsilon)
    total = a + root if a >= 0.0 else target.epsilon / (root - a)
    sigma = target.sensitivity * total / (target.epsilon * math.sqrt(2.0))
    return _gaussian(target, f"zhao-gaussian-{variant}", sigma, f"Zhao et al. 2019, Mechanism {variant}")


def l2_mechanism(
    *, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """Noise of density proportional to exp(-||n||/s), with the smallest s that keeps the target.

    See Joseph, Kulesza & Yu (ICML 2025) for the mechanism; the calibration here is on the exact curve.
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    return _calibrated(target, "l2", target.dimension, 1.0)


def radial(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    k: float,
    p: float,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Noise of the radial family with exponents k and p, calibrated on its exact curve.

    >>> m = radial(epsilon=1, delta=1e-6, sensitivity=1, shape=20, k=15, p=1.5)
    >>> m.delta(1).upper <= 1e-6
    True
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    k, p = validation.positive("k", k), validation.positive("p", p)
    Radial(k, p, 1.0).check_shape(target.shape)
    return _calibrated(target, f"radial(k={k:g}, p={p:g})", k, p)


def laplace(
    *, epsilon: float, sensitivity: float, shape: Shape, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Mechanism:
    """Independent Laplace noise of scale D1/eps for an l1 sensitivity D1: pure epsilon-DP.

    >>> laplace(epsilon=1, sensitivity=2, shape=(89, 89)).delta(1)
    Bracket(lower=0.0, upper=0.0)
    """
    epsilon, sensitivity = validation.epsilon(epsilon), validation.sensitivity(sensitivity)
    relation = Neighbours.of(neighbours)
    with representable(epsilon=epsilon, sensitivity=sensitivity):
        scale = sufficient_scale(sensitivity / epsilon, epsilon, Fraction(sensitivity))
    claim = Claim(epsilon, 0.0, relation, "Dwork, McSherry, Nissim & Smith 2006")
    return Mechanism("laplace", Laplace(scale), validation.shape(shape), sensitivity, relation, claim)
