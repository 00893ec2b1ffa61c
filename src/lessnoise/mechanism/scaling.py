"""The same kind of noise, wider or narrower: what a calibration over many releases turns."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lessnoise.errors import InvalidInput
from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian
from lessnoise.mechanism.families.correlated_radial import CorrelatedRadial
from lessnoise.mechanism.families.discrete_power import DiscretePower
from lessnoise.mechanism.families.discrete_sampler import DiscreteGaussian
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.geometric import Geometric
from lessnoise.mechanism.families.norm_radial import NormRadial
from lessnoise.mechanism.families.norm_staircase import NormStaircase
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.measured.law import Measured

if TYPE_CHECKING:
    from lessnoise.mechanism.mechanism import Mechanism

_BITS = 24  # of the variance of discrete Gaussian noise


@functools.singledispatch
def rescaled(law: Law, factor: float) -> Law:
    """The law of the noise multiplied by a factor; of integers, the member of the family that is as wide.

    >>> rescaled(Laplace(2.0), 1.5), rescaled(Geometric(0.5), 2)
    (Laplace(scale=3.0), Geometric(rate=0.25, tail=0.0))
    """
    raise InvalidInput(
        f"noise kind={law.kind!r} cannot be made wider or narrower, so it cannot be planned: choose another mechanism, "
        "such as analytic-gaussian, laplace or l2."
    )


@rescaled.register
def _(law: Radial | Shells, factor: float) -> Law:
    return law.scaled(factor)


@rescaled.register
def _(law: Laplace | GeneralizedGaussian | DiscretePower | NormRadial, factor: float) -> Law:
    return replace(law, scale=law.scale * factor)


@rescaled.register
def _(law: NormStaircase, factor: float) -> Law:
    return replace(law, width=law.width * factor)


@rescaled.register
def _(law: Geometric, factor: float) -> Law:
    return Geometric(law.rate / factor)  # without an end, whose tail would be lost at every release


@rescaled.register
def _(law: DiscreteGaussian, factor: float) -> Law:
    """Sigma^2 is rounded up to a short fraction."""
    variance = law.variance_parameter * Fraction(factor) ** 2
    denominator = 1 << max(_BITS - math.floor(math.log2(variance)), 0)
    return DiscreteGaussian(math.ceil(variance * denominator), denominator)


@rescaled.register
def _(law: CorrelatedGaussian, factor: float) -> Law:
    return CorrelatedGaussian(law.common_variance * factor**2, law.own_variance * factor**2)


@rescaled.register
def _(law: CorrelatedRadial, factor: float) -> Law:
    return replace(law, base=law.base.scaled(factor))


@rescaled.register
def _(law: Measured, factor: float) -> Law:
    return replace(law, noise=rescaled(law.noise, factor))


def with_noise(mechanism: Mechanism, factor: float, **changed: Any) -> Mechanism:  # noqa: ANN401
    """The mechanism with its noise multiplied by a factor; it is no longer the ``design`` of a search.

    >>> import lessnoise as ln
    >>> wide = with_noise(ln.laplace(epsilon=1, sensitivity=1, shape=3), 2.0)
    >>> wide.law.scale, round(wide.epsilon(0).upper, 12)
    (2.0, 0.5)
    """
    found = replace(mechanism, law=rescaled(mechanism.law, factor), design=None, **changed)
    return found if mechanism.changes is None else found.against(mechanism.changes)
