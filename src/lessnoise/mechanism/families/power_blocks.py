r"""Integers with P(y) proportional to exp(-|y/scale|^p), as blocks of magnitudes for the exact sampler.

How they are drawn is in ``block_sampler.py``. What it asks for are brackets of real numbers, as narrow as it likes:
here of E(y) = (y/scale)^p = exp(p ln(y/scale)), by decimal arithmetic of n digits. Every operation, ln and exp among
them, is correctly rounded: a relative error of at most h = 5/10^n. With 1e-3 <= scale <= 2^17 and y < 2^63,
|ln(y/scale)| <= 51, so that the logarithm is within 52 h, p times it within 206 h, and E relatively within 208 h. For a
prime q, q^p is within (4 ln q + 2) h in the same way; so a product of them, y < 2^63, is within (4 ln y + 3 log2 y) h,
which is below 370 h, and E(y W) = y^p E(W) within 580 h. All of these are less than 10^(4 - n).

For p >= 1, E(x + y) >= E(x) + E(y). So all blocks from K on weigh at most w_K times all blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from lessnoise.mechanism.families.block_sampler import exp_bounds

if TYPE_CHECKING:
    from lessnoise.noise import Sequence

_MOST_BLOCKS = 4096  # of 64 bits: a table takes some 0.1 s
_MARGIN = 1e-11  # of e^-g in floats: E <= 1000 within 4 units of the last place and those of y/scale, twice
_LARGEST_EXPONENT = 1000.0


@dataclass(frozen=True, slots=True)
class PowerBlocks:
    """The law in blocks of 2^shift magnitudes, 1 <= p <= 2."""

    p: float
    scale: float
    shift: int

    @classmethod
    def of(cls, p: float, scale: float) -> PowerBlocks:
        """In blocks of one magnitude if they are not too many up to where E = 64, which a word hardly ever exceeds."""
        reach = math.ceil(scale * 64.0 ** (1.0 / p) / _MOST_BLOCKS)
        return cls(p, scale, (reach - 1).bit_length())

    def sums(self, bits: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
        """Below and above, in one unit: the weights of blocks 0..b for each b, and of all blocks.

        With n digits, E e^-E <= 1/2 makes e^-E wrong by less than 10^(4 - n) through E; and E is cut to a multiple of
        2^(-p - 8). That is less than one unit of 2^-p in all.
        """
        p = bits + 64
        unit = 1 << p
        sums: list[tuple[int, int]] = []
        low = high = unit
        sum_low = sum_high = -(unit >> 1) if self.shift == 0 else 0
        with localcontext(Context(prec=p // 3 + 16)):
            first, finest = self._power(1 << self.shift), Decimal(unit << 8)
            powers = [Decimal(0)]
            while high >> (p - bits - 24):
                sum_low, sum_high = sum_low + low, sum_high + high
                sums.append((sum_low, sum_high))
                powers.append(self._product(powers))
                low, high = exp_bounds(int(first * powers[-1] * finest), unit << 8, p)
                low, high = max(low - 1, 0), high + 1
        # The rest r is at most w_K (listed + r), and w_K is below 1/2.
        listed = sum_high + (unit >> 1 if self.shift == 0 else 0)
        return sums, (sum_low, sum_high + 2 * ((high * listed >> p) + 1))

    def largest(self, block: int) -> Fraction:
        """The g at the end of the block, rounded up."""
        start, end = (self._float_power((block + step) << self.shift) for step in (0, 1))
        return Fraction(end - start) + Fraction(end) / 10**12

    def keeps(self, block: int, offset: int, digits: int, source: Sequence) -> bool:
        """Step 2: a float that leaves no doubt, else as many digits as it takes."""
        if offset == 0:
            return True
        start, bits = block << self.shift, 63 - self.shift
        exponent = self._float_power(start + offset)
        if exponent < _LARGEST_EXPONENT:
            chance, known = math.exp(self._float_power(start) - exponent), math.ldexp(digits, -bits)
            if abs(known - chance) > _MARGIN + math.ldexp(1.0, -bits):
                return known < chance
        while True:
            low, high = self.ratio_bounds(start, start + offset, bits)
            if digits < low:
                return True
            if digits >= high:
                return False
            digits, bits = (digits << 64) | int(source.words(1)[0]), bits + 64

    def ratio_bounds(self, start: int, end: int, bits: int) -> tuple[int, int]:
        """Integers with low <= 2^bits P(end)/P(start) <= high, for end >= start.

        >>> low, high = PowerBlocks(1.5, 40.0, 0).ratio_bounds(30, 35, 64)
        >>> high - low <= 2, f"{low / 2**64:.12f}", f"{math.exp(0.75**1.5 - 0.875**1.5):.12f}"
        (True, '0.844535505398', '0.844535505398')
        """
        size = len(str(int(self._float_power(end)))) + 1  # E(end) < 10^size
        digits = bits // 3 + size + 12
        with localcontext(Context(prec=digits)):
            ratio = (self._power(start) - self._power(end)).exp()
            error = Decimal(10) ** (5 + size - digits)  # 2 E 10^(4 - n), the rounding of exp, and that of products
            one = Decimal(1 << bits)
            return max(int((ratio - error) * one), 0), int((ratio + error) * one) + 1

    def _power(self, y: int) -> Decimal:
        """E(y), in the digits of the context."""
        return (Decimal(self.p) * (y / Decimal(self.scale)).ln()).exp() if y else Decimal(0)

    def _product(self, powers: list[Decimal]) -> Decimal:
        """b^p for the next b, as the product of those of its prime factors."""
        b = len(powers)
        factor = next((factor for factor in range(2, math.isqrt(b) + 1) if b % factor == 0), b)
        return powers[factor] * powers[b // factor] if factor < b else (Decimal(self.p) * Decimal(b).ln()).exp()

    def _float_power(self, y: int) -> float:
        return math.pow(y / self.scale, self.p)
