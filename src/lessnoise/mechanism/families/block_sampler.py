r"""An exact sampler of independent, symmetric integers: integers only, no rounding, no floats.

**One principle.** To choose with a real probability F, take a uniform U in [0, 1) whose binary digits are revealed
64 at a time, and a routine that brackets F as narrowly as asked. With n digits known, U lies in an interval of width
2^-n; if that interval is on one side of the bracket of F, the comparison U < F is decided, and decided as it would
be with all digits. If not, reveal more digits and narrow the bracket. This ends with probability 1, as U = F has
probability 0. No approximation is left: the choice has probability F *exactly*. Both steps below work so.

**Step 1, a block.** Let W = 2^s. Block b >= 0 holds the magnitudes bW <= y < (b+1)W and is chosen with probability
proportional to its width times the largest weight in it, w_b = P(bW)/P(0). A law brackets the cumulative weights of its
blocks, and with them the words that do not decide between blocks <= b and > b. So a 64-bit word either decides the
block, by one search in a sorted table of integers, or (probability about 10^4/2^64) is followed by more digits and a
finer and longer table. The tail is not cut: a word beyond the table gets a longer one.

**Step 2, inside the block.** The offset r in [0, W) is s random bits, and y = bW + r is kept with probability e^-g,
g = ln(P(bW)/P(y)), a comparison of a uniform with a real number again. The first digits nearly always suffice:
e^-g >= 1 - g, one integer for each block. A fair sign makes it two-sided. To count zero once, "minus zero" is rejected,
or, if W = 1, block 0 has half its weight. With W = 1, g = 0 always.

Kept values thus have probability proportional to w_b (1/W) e^-g = P(y)/(P(0) W): the law.
How long a draw takes depends on the random digits, never on the value that the noise is added to.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from lessnoise.noise import LONGEST_TABLE, TABLE_BITS, IntegerTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from numpy.typing import NDArray

    from lessnoise.noise import Sequence

    Words = NDArray[np.uint64]
    Integers = NDArray[np.int64]

_CHUNK = 1 << 16  # values per step: the working set stays in cache and memory stays bounded
_GUIDE_BITS = 16
_UNDECIDED = np.uint16(2**16 - 1)


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Integers at most 2 apart with low <= 2^bits exp(-numerator/denominator) <= high, for numerator >= 0.

    >>> exp_bounds(1, 1, 20), round(2**20 / np.e)
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


def shift_up(value: int, bits: int) -> int:
    """Value / 2^bits, rounded up."""
    return -(-value >> bits)


class BlockLaw(Protocol):
    """What the sampler asks of a law in blocks of 2^shift magnitudes, whose weights fall."""

    def __hash__(self) -> int: ...

    @property
    def shift(self) -> int:
        """The s of W = 2^s."""

    def sums(self, bits: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
        """Below and above, in one unit: the weights of blocks 0..b for each b, and of all blocks.

        The blocks beyond those listed weigh less than 2^(-bits - 8). With W = 1, block 0 has half its weight.
        """

    def largest(self, block: int) -> Fraction:
        """No g in the block is larger."""

    def keeps(self, block: int, offset: int, digits: int, source: Sequence) -> bool:
        """Step 2, from the first 63 - s digits of the uniform."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A law with -ln P(y)/P(0) = linear |y| + square y^2, in blocks of 2^shift magnitudes."""

    linear: Fraction
    square: Fraction
    shift: int

    def sums(self, bits: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
        """Below and above, in one unit: the weights of blocks 0..b for each b, and of all blocks.

        Weights are computed as w_(b+1) = w_b v_b, v_(b+1) = v_b u, with v_0 = e^-(linear W + square W^2) and
        u = e^-(2 square W^2), twice: all products rounded down, and all rounded up, on integers that count units of
        2^-128 or finer. The sums of those are below and above the sums of the weights, whatever the rounding did. The
        blocks beyond those listed weigh at most w_K/(1 - v_K), because v does not rise, and that is less than
        2^(-bits - 8). With W = 1, block 0 has half its weight.
        """
        p, width = bits + 64, 1 << self.shift
        first, bend = self.exponent(0, width), 2 * self.square * width**2
        step_low, step_high = exp_bounds(first.numerator, first.denominator, p)
        bend_low, bend_high = exp_bounds(bend.numerator, bend.denominator, p)
        bend_high = min(bend_high, 1 << p)
        weight_low = weight_high = 1 << p
        sum_low = sum_high = -(1 << (p - 1)) if self.shift == 0 else 0
        sums: list[tuple[int, int]] = []
        while True:
            sum_low, sum_high = sum_low + weight_low, sum_high + weight_high
            sums.append((sum_low, sum_high))
            weight_low, weight_high = (weight_low * step_low) >> p, shift_up(weight_high * step_high, p)
            step_low, step_high = (step_low * bend_low) >> p, shift_up(step_high * bend_high, p)
            if weight_high >> (p - bits - 16) == 0:
                rest = (weight_high << p) // ((1 << p) - step_high) + 1  # rounded up
                if rest >> (p - bits - 10) == 0:
                    return sums, (sum_low, sum_high + rest)

    def exponent(self, block: int, offset: int) -> Fraction:
        """The g of an offset in a block: it grows with the offset, and never falls from block to block."""
        return self.linear * offset + self.square * (offset * ((block << (self.shift + 1)) + offset))

    def largest(self, block: int) -> Fraction:
        """The g at the end of the block."""
        return self.exponent(block, 1 << self.shift)

    def keeps(self, block: int, offset: int, digits: int, source: Sequence) -> bool:
        """Step 2, from the first 63 - s digits of the uniform."""
        exponent = self.exponent(block, offset)
        return bernoulli_exp(digits, 63 - self.shift, exponent.numerator, exponent.denominator, source)


def straddling_words(blocks: BlockLaw, bits: int) -> tuple[list[int], list[int]]:
    """For each block b, the first and last ``bits``-bit words that do not decide between blocks <= b and > b.

    A smaller word is a uniform below the cumulative probability F_b of blocks 0..b for certain, a larger one above.
    """
    sums, (total_low, total_high) = blocks.sums(bits)
    first = [(low << bits) // total_high for low, _ in sums]
    last = [min(-((-high << bits) // total_low), 1 << bits) - 1 for _, high in sums]
    return first, last


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


def _resolve(blocks: BlockLaw, word: int, source: Sequence) -> int:
    """The block of a uniform that begins with this word, found with more digits and a finer, longer table."""
    digits, bits = word, 64
    while True:
        digits, bits = (digits << 64) | int(source.words(1)[0]), bits + 64
        block = _decided(blocks, digits, bits)
        if block is not None:
            return block


def _decided(blocks: BlockLaw, digits: int, bits: int) -> int | None:
    """The block of a uniform that begins with these digits, if they tell."""
    first, last = straddling_words(blocks, bits)
    block = bisect_left(last, digits)
    return block if block == bisect_right(first, digits) and block < len(first) else None


@functools.lru_cache(maxsize=16)
def device_table(blocks: BlockLaw) -> IntegerTable | None:
    """The table by which a device draws a law with blocks of one magnitude, or None if it is too long."""
    if isinstance(blocks, Blocks) and blocks.linear * LONGEST_TABLE + blocks.square * LONGEST_TABLE**2 > 64:
        blocks = replace(blocks, shift=0)  # the table will end before it is too long
    if blocks.shift:
        return None
    first, last = straddling_words(blocks, TABLE_BITS)
    if len(first) > LONGEST_TABLE:
        return None
    return IntegerTable.of(first, last, functools.partial(_decided, blocks))


@dataclass(frozen=True, slots=True)
class BlockSampler:
    """The 64-bit table of one law."""

    law: BlockLaw
    shift: int
    first: Words
    last: Words
    guide: NDArray[np.uint16]  # the block of all words with these leading bits, where they agree
    sure: Words  # digits of the second step below this are kept at once

    @classmethod
    def of(cls, law: BlockLaw) -> BlockSampler:
        """Make the table."""
        first, last = (np.array(words, dtype=np.uint64) for words in straddling_words(law, 64))
        start = np.arange(2**_GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
        end = start | np.uint64(2 ** (64 - _GUIDE_BITS) - 1)
        block = np.searchsorted(last, start, side="left")
        decided = (block == np.searchsorted(first, end, side="right")) & (block < len(first))
        guide = np.where(decided, block, _UNDECIDED).astype(np.uint16)
        one = 1 << (63 - law.shift)
        largest = (law.largest(b) for b in range(len(first)))
        sure = [max(one - one * g.numerator // g.denominator - 1, 0) for g in largest]
        return cls(law, law.shift, first, last, guide, np.array(sure, dtype=np.uint64))

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
            kept[index] = self.law.keeps(int(blocks[index]), int(offsets[index]), int(digits[index]), source)
        blocks <<= self.shift
        blocks |= offsets
        kept &= (blocks != 0) | ~negative
        np.negative(blocks, out=blocks, where=negative)
        result: Integers = blocks[kept]
        return result

    def draw(
        self, count: int, source: Sequence, finish: Callable[[Integers, Sequence], Integers] | None = None
    ) -> Iterator[Integers]:
        """Independent draws, exactly, part by part; ``finish`` may drop or replace some of each part."""
        while count:
            values = self.values(min(_CHUNK, count), source)
            if finish is not None:
                values = finish(values, source)
            yield values
            count -= len(values)


sampler_of = functools.lru_cache(maxsize=64)(BlockSampler.of)
