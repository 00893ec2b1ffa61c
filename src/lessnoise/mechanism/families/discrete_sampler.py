r"""The discrete Gaussian on the integers, as blocks of magnitudes for the exact sampler.

The law has P(x) proportional to exp(-x^2/(2 sigma^2)) over the integers x, with sigma^2 a ratio of integers.

How it is drawn is in ``block_sampler.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism.families.block_sampler import Blocks, device_table, sampler_of
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.sampling import device_integers, noise_form

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.noise import IntegerTable

    Integers = NDArray[np.int64]

LARGEST_SIGMA = 2**56  # the table then ends below 2^61; 2^63 is 128 sigma away, a probability of e^-8192
SMALLEST_SIGMA = Fraction(1, 2**56)
_MOST_DIGITS = 2**512  # of numerator and denominator
LARGEST_VALUE = 2**62  # a value and its noise together stay within int64
_GRID_BITS = 12
_BLOCK_BITS = 10  # sigma/W < 2^10: at most about 10^4 blocks


@register
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(Plain):
    """Independent integers with P(x) proportional to exp(-x^2/(2 sigma^2)), sigma^2 = numerator/denominator.

    >>> DiscreteGaussian(6, 4) == DiscreteGaussian(3, 2)
    True
    >>> DiscreteGaussian(3, 2).variance_parameter
    Fraction(3, 2)
    """

    numerator: int
    denominator: int

    kind: ClassVar[str] = "discrete-gaussian"
    norm: ClassVar[str] = "l2"
    integer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        numerator = validation.whole_number("numerator", self.numerator)
        denominator = validation.whole_number("denominator", self.denominator)
        common = math.gcd(numerator, denominator)
        settle(self, numerator=numerator // common, denominator=denominator // common)
        if max(self.numerator, self.denominator) >= _MOST_DIGITS:
            raise InvalidInput(
                f"numerator={shown(numerator)} and denominator={shown(denominator)}: pass shorter integers of about "
                "the same ratio, or use a smaller epsilon."
            )
        if self.variance_parameter > LARGEST_SIGMA**2:
            raise InvalidInput(
                f"numerator/denominator={numerator / denominator:g} means sigma above 2^56, and the noise would not "
                "fit 64-bit integers: use a larger epsilon or delta, or analytic_gaussian."
            )
        if self.variance_parameter < SMALLEST_SIGMA**2:
            raise InvalidInput(
                f"numerator/denominator={numerator / denominator:g} means sigma below 2^-56, which is no noise at all: "
                "use a smaller epsilon."
            )

    @property
    def variance_parameter(self) -> Fraction:
        """The sigma^2 of the formula; the variance itself is a little smaller."""
        return Fraction(self.numerator, self.denominator)


def grid_law(index: int) -> DiscreteGaussian:
    """Laws of 13 significant bits: sigma^2 takes 2^12 equal steps from each power of two, 2^(index/2^12), to the next.

    >>> grid_law(0).variance_parameter, grid_law(1).variance_parameter, grid_law(-4096).variance_parameter
    (Fraction(1, 1), Fraction(4097, 4096), Fraction(1, 2))
    """
    octave, step = divmod(index, 1 << _GRID_BITS)
    value = Fraction((1 << _GRID_BITS) + step, 1 << _GRID_BITS) * Fraction(2) ** octave
    return DiscreteGaussian(value.numerator, value.denominator)


def grid_index(variance: float) -> int:
    """Index of the last grid law whose sigma^2 is not above this.

    >>> [grid_index(float(grid_law(index).variance_parameter)) for index in (-5000, 0, 123456)]
    [-5000, 0, 123456]
    """
    mantissa, exponent = math.frexp(variance)
    return math.floor(2.0 * mantissa * (1 << _GRID_BITS)) + ((exponent - 2) << _GRID_BITS)


def integer_array(value: ArrayLike, shape: tuple[int, ...], name: str = "value") -> Integers:
    """Whole numbers of exactly the given shape, as int64; anything else is refused, not rounded.

    >>> integer_array([1.0, 2.0], (2,))
    array([1, 2])
    >>> integer_array([1.5, 2.0], (2,))
    Traceback (most recent call last):
    ...
    lessnoise.errors.InvalidInput: value[0]=1.5 is not a whole number: round the value before sensitivity is ...
    """
    exact = validation.fitting(validation.numeric_array(value, name), shape, name)
    if exact.dtype.kind == "f":
        exact = validation.real_array(exact, name)
        fractional = exact != np.floor(exact)
        if fractional.any():
            position = tuple(int(i) for i in np.argwhere(fractional)[0])
            raise InvalidInput(
                f"{name}{list(position)}={exact[position]} is not a whole number: round the value before sensitivity "
                "is computed, or use a mechanism for real values."
            )
    largest = max((abs(int(end)) for end in (exact.min(), exact.max())), default=0)
    if largest > LARGEST_VALUE:
        raise InvalidInput(
            f"{name} holds a number of size {float(largest):.4g}, beyond 2^62, and its noisy value could overflow "
            "64-bit integers: clip or rescale the value."
        )
    return exact.astype(np.int64)


# Noise.


def blocks_of(law: DiscreteGaussian) -> Blocks:
    """The law in blocks: one magnitude each below sigma = 1024, else sigma/1024 to sigma/512."""
    shift = max(0, math.isqrt(law.numerator // law.denominator).bit_length() - _BLOCK_BITS)
    return Blocks(Fraction(0), 1 / (2 * law.variance_parameter), shift)


@noise_form.register(DiscreteGaussian)
def _(law: DiscreteGaussian, shape: tuple[int, ...]) -> noise_engine.Integers:
    return noise_engine.Integers(sampler_of(blocks_of(law)).draw)  # its table is made before a release begins


@device_integers.register(DiscreteGaussian)
def _(law: DiscreteGaussian) -> IntegerTable | None:
    return device_table(blocks_of(law))
