"""Sums of positive weights and a choice among them, in floats or in as many digits as it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray

    from lessnoise._common import IntArray
    from lessnoise.noise import Word

    Number = float | Decimal
    Numbers = NDArray[Any]  # of these


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """Floats or decimal numbers, and what is to be known of them here."""

    decay: Callable[[IntArray], Numbers]
    """exp(-rate x) for whole x."""
    number: Callable[[Fraction | int], Any]
    exp: Callable[[float], Any]
    log: Callable[[Any], float]
    error: float
    """Of a sum, relative."""

    def whole(self, array: IntArray) -> Numbers:
        """The same whole numbers in this arithmetic."""
        if isinstance(self.number(1), float):
            return array.astype(np.float64)
        return np.array([self.number(each) for each in array.tolist()], dtype=object)


def floats(rate: Fraction, error: float) -> Arithmetic:
    """Numbers of 53 binary digits."""
    each = float(rate)

    def decay(x: IntArray) -> Numbers:
        with np.errstate(under="ignore"):
            return np.asarray(np.exp(-each * x))

    return Arithmetic(decay, float, math.exp, lambda x: math.log(x) if x > 0.0 else -math.inf, error)


def decimals(rate: Fraction, error: float) -> Arithmetic:
    """Decimal numbers, with the digits of the context."""
    known: dict[int, Decimal] = {}

    def one(x: int) -> Decimal:
        if x not in known:
            known[x] = (-x * decimal(rate)).exp()
        return known[x]

    def decay(x: IntArray) -> Numbers:
        return np.array([one(each) for each in x.ravel().tolist()], dtype=object).reshape(x.shape)

    return Arithmetic(decay, decimal, lambda x: Decimal(x).exp(), lambda x: float(x.ln()), error)


def decimal(x: Fraction | int) -> Decimal:
    """The same number, rounded as the context says."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def chained(sums: Numbers, old: IntArray, new: IntArray, goals: IntArray, part: int, by: Arithmetic) -> Numbers:
    """For each new rank k the sum over the old ranks k' < k of sums(k') exp(-rate |part (k - k') - goal|).

    ``old`` and ``new`` are ranks in a row; ``sums`` has a row for each of the ``goals``, a column. Up to k - goal/part
    the weight rises with k', then it falls: two sums of products, of which none is a difference.
    """
    size, middle = len(old), int(old[len(old) // 2])
    start = int(old[0])
    peak = np.clip((part * new - goals) // part - start + 1, 0, size)  # so many old ranks are on the rising side
    end = np.broadcast_to(np.clip(new - start, 0, size), peak.shape)
    peak = np.minimum(peak, end)
    rising = np.zeros((len(sums), size + 1), dtype=sums.dtype)
    rising[:, 1:] = np.cumsum(sums * by.decay(part * (middle - old)), axis=1)
    falling = between(sums * by.decay(part * (old - middle)), peak, end)
    usual = int(goals[len(goals) // 2, 0])  # so that no exponent is large
    ahead, late = part * (new - middle) - usual, usual - goals
    found = np.take_along_axis(rising, peak, axis=1) * by.decay(ahead) * by.decay(late)
    return np.asarray(found + falling * by.decay(-ahead) * by.decay(-late))


def between(values: Numbers, start: IntArray, end: IntArray) -> Numbers:
    """Row by row the sums of the values from ``start`` to before ``end``, of positive terms only.

    >>> between(np.array([[1.0, 2.0, 4.0, 8.0]]), np.array([[0, 1]]), np.array([[3, 4]]))
    array([[ 7., 14.]])
    """
    size = values.shape[1]
    if (end == size).all():  # sums from the right do
        sums = np.zeros((len(values), size + 1), dtype=values.dtype)
        sums[:, :-1] = np.cumsum(values[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(np.take_along_axis(sums, start, axis=1))
    length, at, width = end - start, start.copy(), 1
    found = np.zeros(start.shape, dtype=values.dtype)
    table = np.concatenate([values, np.zeros((len(values), 1), dtype=values.dtype)], axis=1)  # of ``width`` values each
    while width <= size:
        taken = (length & width) > 0
        found = found + np.where(taken, np.take_along_axis(table, np.minimum(at, size), axis=1), 0)
        at += np.where(taken, width, 0)
        doubled = table.copy()
        doubled[:, :-width] += table[:, width:]
        table, width = doubled, 2 * width
    return np.asarray(found)


def pick(
    weights: Numbers, uniform: tuple[Fraction, Fraction], doubt: Number, complete: tuple[bool, bool], by: Arithmetic
) -> int | None:
    """The place at which sums of the weights first exceed a uniform number times their total.

    None where a ``doubt`` about any of the sums leaves it open. ``complete``: whether nothing can come before the first
    weight, and nothing after the last.
    """
    sums = np.cumsum(weights)
    near, far = (sums[-1] * by.number(end) for end in uniform)
    place = min(int(np.searchsorted(sums, near, side="right")), len(sums) - 1)
    lower = complete[0] if not place else sums[place - 1] + doubt <= near
    lower = lower or (not place and bool(doubt <= near))
    upper = far + doubt <= sums[place] or (complete[1] and place == len(sums) - 1)
    return place if lower and upper else None


def whole_number(size: int, word: Word) -> int:
    """A uniform whole number below ``size``, from a uniform real number."""
    level = 0
    while True:
        low, high = word.uniform(level)
        found = math.floor(low * size)
        if high * size <= found + 1:
            return found
        level += 1
