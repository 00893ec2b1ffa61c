"""The accuracy loss ||n||^2 of a noise law: moments, the paper's shape ratios, exact quantiles."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.numerics import computable, log_gamma_ratio
from lessnoise.mechanism.sums import log_sum_moment, sum_quantile

if TYPE_CHECKING:
    from lessnoise._common import Array


@computable
def raw_moment(law: Law, dimension: int, order: int) -> float:
    """E[(||n||^2)^order]; infinite where a double cannot hold it."""
    return _exp(log_raw_moment(law, dimension, order))


@functools.singledispatch
def log_raw_moment(law: Law, dimension: int, order: float) -> float:
    """ln E[(||n||^2)^order]; each law registers its own. Radial laws take any order, sums whole ones."""
    raise TypeError(f"no loss moments are known for {type(law).__name__}")


@log_raw_moment.register(Radial)
def _(law: Radial, dimension: int, order: float) -> float:
    # R = s G^(1/p) with G ~ Gamma(k/p).
    return 2.0 * order * math.log(law.scale) + log_gamma_ratio(law.k / law.p, 2.0 * order / law.p)


@log_raw_moment.register(Laplace)
def _(law: Laplace, dimension: int, order: int) -> float:
    return 2.0 * order * math.log(law.scale) + log_sum_moment(_LAPLACE_MOMENTS, dimension, order)


def expected_loss(law: Law, dimension: int) -> float:
    """E||n||^2, the paper's expected accuracy loss."""
    return raw_moment(law, dimension, 1)


@functools.singledispatch
def query_error(law: Law, dimension: int) -> float:
    """The expected squared error of an answer: of an entry, unless a law is made for other questions."""
    return expected_loss(law, dimension) / dimension


@computable
def kurtosis(law: Law, dimension: int) -> float:
    """E[L^4]/E[L^2]^2 of the loss L (the paper's section 6: raw moments, not central ones)."""
    return _exp(log_raw_moment(law, dimension, 4) - 2.0 * log_raw_moment(law, dimension, 2))


@computable
def skewness(law: Law, dimension: int) -> float:
    """E[L^3]/E[L^2]^(3/2) of the loss L (the paper's section 6: raw moments, not central ones)."""
    return _exp(log_raw_moment(law, dimension, 3) - 1.5 * log_raw_moment(law, dimension, 2))


@computable
def loss_quantile(law: Law, dimension: int, probability: float) -> float:
    """The loss that is not exceeded with the given probability."""
    return quantile(law, dimension, probability)


@functools.singledispatch
def quantile(law: Law, dimension: int, probability: float) -> float:
    """The same; each law registers its own."""
    raise TypeError(f"no loss quantiles are known for {type(law).__name__}")


@quantile.register(Laplace)
def _(law: Laplace, dimension: int, probability: float) -> float:
    if dimension == 1:
        return law.scale**2 * math.log1p(-probability) ** 2
    found = sum_quantile(_laplace_survival_integral, _LAPLACE_MOMENTS, _LAPLACE_LONGEST, dimension, probability)
    return law.scale**2 * found


@quantile.register(Radial)
def _(law: Radial, dimension: int, probability: float) -> float:
    from scipy.special import gammaincinv

    root = float(gammaincinv(law.k / law.p, probability))
    return float(law.scale**2 * root ** (2.0 / law.p))


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 709.0 else math.inf


# Laplace: the loss is a sum of M squares of Exp(1) variables X, E[X^(2j)] = (2j)!.

_LAPLACE_MOMENTS = tuple(float(math.factorial(2 * j)) for j in range(5))
_LAPLACE_LONGEST = 45.0**2  # P(X > 45) = 3e-20


def _laplace_survival_integral(y: Array) -> Array:
    """Integral of P(X^2 > t) = e^(-sqrt(t)) from 0 to y: 2 (1 - (1 + r) e^(-r)) with r = sqrt(y)."""
    root = np.sqrt(y)
    # The series is r^2 - 2 r^3/3 + r^4/4 - r^5/15 + ...; the closed form cancels for small r.
    series = root**2 * (1.0 - root * (2 / 3 - root * (1 / 4 - root * (1 / 15 - root / 72))))
    return np.where(root < 1e-2, series, -2.0 * (np.expm1(-root) + root * np.exp(-root)))
