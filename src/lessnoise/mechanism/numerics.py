"""Gamma-function ratios that stay accurate up to dimension 10^9 and beyond, and what is said where doubles end."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from lessnoise.errors import LessnoiseError
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Callable

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_STIRLING_FROM = 30.0


def computable(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """One sentence where numbers leave the range of doubles on the way, instead of a raw error or of nan.

    The first argument is the law, or what else the sentence should name.
    """

    @functools.wraps(function)
    def guarded(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        try:
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="raise"):
                return function(*arguments, **options)
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, LessnoiseError) and not str(error).startswith(("lower=", "upper=")):  # a bracket's
                raise
            raise LessnoiseError(
                f"{function.__name__} of {shown(arguments[0])} leaves the range of floating-point numbers: "
                "state scale, sensitivity and epsilon in units in which they are of ordinary size."
            ) from None

    return guarded


def sufficient_scale(scale: float, epsilon: float, product: Fraction) -> float:
    """The quotient product/epsilon, which may have been rounded down, moved up until scale epsilon >= product."""
    while Fraction(scale) * Fraction(epsilon) < product:
        scale = math.nextafter(scale, math.inf)
    return scale


def _stirling_remainder(a: float) -> float:
    """ln Gamma(a) - [(a - 1/2) ln a - a + ln(2 pi)/2] (DLMF 5.11.1), for a >= 30."""
    i = 1.0 / (a * a)
    return (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / a


def log_gamma_ratio(a: float, shift: float) -> float:
    """ln Gamma(a + shift) - ln Gamma(a) without the cancellation of two huge log-gammas.

    >>> round(log_gamma_ratio(5.0, 2.0), 12) == round(math.log(5 * 6), 12)
    True
    """
    if min(a, a + shift) < _STIRLING_FROM:
        return math.lgamma(a + shift) - math.lgamma(a)
    return (
        (a + shift - 0.5) * math.log1p(shift / a)
        + shift * (math.log(a) - 1.0)
        + _stirling_remainder(a + shift)
        - _stirling_remainder(a)
    )


def log_gamma_peak(a: float) -> float:
    """a ln a - a - ln Gamma(a): the log-density of ln G at its mode, for G ~ Gamma(a)."""
    if a < _STIRLING_FROM:
        return a * math.log(a) - a - math.lgamma(a)
    return 0.5 * math.log(a / (2.0 * math.pi)) - _stirling_remainder(a)


def log_axial_constant(dimension: int) -> float:
    """ln of vol(unit ball of R^(M-1)) / vol(unit ball of R^M).

    It is the peak of the density of one coordinate of a uniform point of the unit ball.
    """
    return log_gamma_ratio((dimension + 1) / 2, 0.5) - 0.5 * math.log(math.pi)
