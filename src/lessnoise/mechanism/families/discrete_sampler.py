r"""The discrete Gaussian on the integers, and an exact sampler for it: integers only, no rounding, no floats.

The law has P(x) proportional to exp(-x^2/(2 sigma^2)) over the integers x, with sigma^2 a ratio of integers.

**One principle.** To choose with a real probability F, take a uniform U in [0, 1) whose binary digits are revealed
64 at a time, and a routine that brackets F as narrowly as asked. With n digits known, U lies in an interval of width
2^-n; if that interval is on one side of the bracket of F, the comparison U < F is decided, and decided as it would
be with all digits. If not, reveal more digits and narrow the bracket. This ends with probability 1, as U = F has
probability 0. No approximation is left: the choice has probability F *exactly*. Both steps below work so.

**Step 1, a block.** Let W = 2^s (s = 0 below sigma = 1024; else sigma/W is in [512, 1024)). Block b >= 0 holds the
magnitudes bW <= y < (b+1)W and is chosen with probability proportional to q^(b^2), q = exp(-W^2/(2 sigma^2)), which
is its width times the largest weight in it. Weights are computed as w_(b+1) = w_b v_b, v_(b+1) = v_b q^2, twice: all
products rounded down, and all rounded up, on integers that count units of 2^-128 or finer. The sums of those
are below and above the sums of the weights, whatever the rounding did. The blocks beyond the table weigh at most
w_K/(1 - v_K), because v falls, and the total is bracketed accordingly. So every cumulative probability is bracketed;
a 64-bit word either decides the block, by one search in a sorted table of integers, or (probability about 10^4/2^64)
is followed by more digits and a finer and longer table. The tail is not cut: a word beyond the table gets a longer one.

**Step 2, inside the block.** The offset r in [0, W) is s random bits, and y = bW + r is kept with probability
e^-g, g = (y^2 - (bW)^2)/(2 sigma^2), a comparison of a uniform with a real number again. The first digits nearly
always suffice: e^-g >= 1 - g >= 1 - (2b+1) W^2/(2 sigma^2), one integer for each block. A fair sign makes it two-sided.
To count zero once, "minus zero" is rejected, or, if W = 1, block 0 has half its weight. With W = 1, g = 0 always.

Kept values thus have probability proportional to q^(b^2) (1/W) e^-g = exp(-y^2/(2 sigma^2))/W: the discrete Gaussian.
How long a draw takes depends on the random digits, never on the value that the noise is added to.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism.law import Plain, register, set_fields
from lessnoise.mechanism.sampling import noise_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from lessnoise.noise import Sequence

    Words = NDArray[np.uint64]
    Integers = NDArray[np.int64]

LARGEST_SIGMA = 2**56  # the table then ends below 2^61; 2^63 is 128 sigma away, a probability of e^-8192
SMALLEST_SIGMA = Fraction(1, 2**56)
_MOST_DIGITS = 2**512  # of numerator and denominator
LARGEST_VALUE = 2**62  # a value and its noise together stay within int64
_CHUNK = 1 << 16  # values per step: the working set stays in cache and memory stays bounded
_GUIDE_BITS = 16
_UNDECIDED = np.uint16(2**16 - 1)
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
        set_fields(self, numerator=numerator // common, denominator=denominator // common)
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


# Bracketed probabilities.


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers at most 2 apart with low <= 2^bits exp(-numerator/denominator) <= high, for numerator >= 0.

    >>> exp_bounds(1, 1, 20), round(2**20 / math.e)
    ((385749, 385750), 385750)
    """
    # e^-g = (e^(-g/2^h))^(2^h) with g/2^h <= 2^-7, in units of 2^-p.
    halvings = max(0, numerator.bit_length() - denominator.bit_length() + 8)
    guard = halvings + (bits + halvings).bit_length() + 4
    p = bits + guard
    x = (numerator << p) // (denominator << halvings)
    # Taylor's series: each term is floored once, so it is less than 1.1 units low; there are fewer than p/7 + 2 terms
    # up to the first that is 0 (they fall by 2^-7 and more), and x is less than one unit low. In all: within p units.
    term = value = 1 << p
    order = 0
    while term:
        order += 1
        term = ((term * x) >> p) // order
        value += -term if order & 1 else term
    # Squaring doubles an error e of a number up to 1 and adds less than 2: at the end 2^h (p + 2), below 2^guard.
    for _ in range(halvings):
        value = (value * value) >> p
    error = (p + 2) << halvings
    return max(value - error, 0) >> guard, ((value + error) >> guard) + 1


def _block_bits(law: DiscreteGaussian) -> int:
    """The s of the block width 2^s."""
    return max(0, math.isqrt(law.numerator // law.denominator).bit_length() - _BLOCK_BITS)


def straddling_words(law: DiscreteGaussian, bits: int) -> tuple[list[int], list[int]]:
    """For each block b, the first and last ``bits``-bit words that do not decide between blocks <= b and > b.

    A smaller word is a uniform below the cumulative probability F_b of blocks 0..b for certain, a larger one above.
    The blocks listed weigh all but less than 2^(-bits - 8).
    """
    shift = _block_bits(law)
    p = bits + 64
    step_low, step_high = exp_bounds(law.denominator << (2 * shift), 2 * law.numerator, p)  # v_0 = q
    square_low, square_high = (step_low * step_low) >> p, _shift_up(step_high * step_high, p)
    weight_low = weight_high = 1 << p
    sum_low = sum_high = -(1 << (p - 1)) if shift == 0 else 0  # half the weight of zero, when it is a block
    sums: list[tuple[int, int]] = []
    while True:
        sum_low += weight_low
        sum_high += weight_high
        sums.append((sum_low, sum_high))
        weight_low, weight_high = (weight_low * step_low) >> p, _shift_up(weight_high * step_high, p)
        step_low, step_high = (step_low * square_low) >> p, _shift_up(step_high * square_high, p)
        if weight_high >> (p - bits - 16) == 0:
            rest = (weight_high << p) // ((1 << p) - step_high) + 1  # w_K/(1 - v_K), rounded up
            if rest >> (p - bits - 10) == 0:
                break
    total_low, total_high = sum_low, sum_high + rest
    first = [(low << bits) // total_high for low, _ in sums]
    last = [min(-((-high << bits) // total_low), 1 << bits) - 1 for _, high in sums]
    return first, last


def _shift_up(value: int, bits: int) -> int:
    """Value / 2^bits, rounded up."""
    return -(-value >> bits)


# Comparisons of a uniform with those probabilities.


def bernoulli_exp(digits: int, bits: int, numerator: int, denominator: int, source: Sequence) -> bool:
    """Whether a uniform that begins with the given digits is below exp(-numerator/denominator); exact."""
    if numerator == 0:
        return True
    while True:
        low, high = exp_bounds(numerator, denominator, bits)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits, bits = (digits << 64) | int(source.words(1)[0]), bits + 64


def _resolve(law: DiscreteGaussian, word: int, source: Sequence) -> int:
    """The block of a uniform that begins with this word, found with more digits and a finer, longer table."""
    digits, bits = word, 64
    while True:
        digits, bits = (digits << 64) | int(source.words(1)[0]), bits + 64
        first, last = straddling_words(law, bits)
        block = bisect_left(last, digits)
        if block == bisect_right(first, digits) and block < len(first):
            return block


@dataclass(frozen=True, slots=True)
class _Sampler:
    """The 64-bit table of one law."""

    law: DiscreteGaussian
    shift: int
    first: Words
    last: Words
    guide: NDArray[np.uint16]  # the block of all words with these leading bits, where they agree
    sure: Words  # digits of the second step below this are kept at once

    @classmethod
    def of(cls, law: DiscreteGaussian) -> _Sampler:
        shift = _block_bits(law)
        lists = straddling_words(law, 64)
        first, last = (np.array(words, dtype=np.uint64) for words in lists)
        start = np.arange(2**_GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
        end = start | np.uint64(2 ** (64 - _GUIDE_BITS) - 1)
        block = np.searchsorted(last, start, side="left")
        decided = (block == np.searchsorted(first, end, side="right")) & (block < len(first))
        guide = np.where(decided, block, _UNDECIDED).astype(np.uint16)
        one, scale = 1 << (63 - shift), law.denominator << (2 * shift + 63 - shift)
        sure = [max(one - scale * (2 * b + 1) // (2 * law.numerator) - 1, 0) for b in range(len(first))]
        return cls(law, shift, first, last, guide, np.array(sure, dtype=np.uint64))

    def blocks(self, count: int, source: Sequence) -> Integers:
        """Step 1: independent blocks."""
        words = source.words(count)
        guided = self.guide[words >> np.uint64(64 - _GUIDE_BITS)]
        blocks: Integers = guided.astype(np.int64)
        open_ = np.flatnonzero(guided == _UNDECIDED)
        found = np.searchsorted(self.last, words[open_], side="left")
        blocks[open_] = found
        decided = (found == np.searchsorted(self.first, words[open_], side="right")) & (found < len(self.first))
        for index in open_[~decided]:
            blocks[index] = _resolve(self.law, int(words[index]), source)
        return blocks

    def values(self, count: int, source: Sequence) -> Integers:
        """Independent draws: ``count`` of them, less a few that are rejected."""
        blocks = self.blocks(count, source)
        if self.shift == 0:
            signs = np.unpackbits(source.words((count + 63) // 64).view(np.uint8), count=count).view(bool)
            np.negative(blocks, out=blocks, where=signs)
            return blocks
        # Step 2. One word: a sign, the offset, and the first digits of the uniform.
        words = source.words(count)
        bits = 63 - self.shift
        negative = words >> np.uint64(63) != 0
        offsets = ((words >> np.uint64(bits)) & np.uint64(2**self.shift - 1)).astype(np.int64)
        digits = words & np.uint64(2**bits - 1)
        inside = np.minimum(blocks, len(self.sure) - 1)  # a block from the far tail has the last bound or less
        kept = digits < self.sure[inside]
        kept &= blocks == inside
        for index in np.flatnonzero(~kept):
            kept[index] = self._keep(int(blocks[index]), int(offsets[index]), int(digits[index]), source)
        blocks <<= self.shift
        blocks |= offsets
        kept &= (blocks != 0) | ~negative
        np.negative(blocks, out=blocks, where=negative)
        result: Integers = blocks[kept]
        return result

    def _keep(self, block: int, offset: int, digits: int, source: Sequence) -> bool:
        exponent = offset * ((block << (self.shift + 1)) + offset) * self.law.denominator  # y^2 - (bW)^2
        return bernoulli_exp(digits, 63 - self.shift, exponent, 2 * self.law.numerator, source)


_sampler = functools.lru_cache(maxsize=64)(_Sampler.of)


@noise_form.register(DiscreteGaussian)
def _(law: DiscreteGaussian, shape: tuple[int, ...]) -> noise_engine.Integers:
    _sampler(law)  # its table, before a release begins
    return noise_engine.Integers(functools.partial(draw_integers, law))


def draw_integers(law: DiscreteGaussian, count: int, source: Sequence) -> Iterator[Integers]:
    """Independent draws, exactly, part by part."""
    sampler = _sampler(law)
    while count:
        values = sampler.values(min(_CHUNK, count), source)
        yield values
        count -= len(values)
