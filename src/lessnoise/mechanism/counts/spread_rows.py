r"""Rows of a cell, spread over its places: how many places of a line of cells have a given rank.

A cell has 2^32 places. Its rows are spread over them by a public rule, the same for every cell: row 1 lies in the
middle, rows 2 and 3 in the middles of the halves, and so on (van der Corput 1935: the binary digits of the number of a
row, in reverse order). One row more in a cell is thus one point more, and no other moves. The rank of a place is the
number of points up to it: a row more adds 1 to the ranks of all places from its own on, and 0 to those before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import IntArray

DIGITS = 32  # binary digits of a place in its cell


@dataclass(frozen=True, eq=False)
class SpreadRows:
    """One line: ``ranks`` at the edges of the cells, and the weight of a place in each cell, a whole number."""

    ranks: IntArray
    weights: IntArray

    @property
    def rows(self) -> int:
        """All of them."""
        return int(self.ranks[-1])

    @functools.cached_property
    def before(self) -> IntArray:
        """The weight of all places before each edge of cells."""
        found = np.zeros(len(self.ranks), dtype=np.int64)
        np.cumsum(self.weights << DIGITS, out=found[1:])
        return found

    @property
    def total(self) -> int:
        """The weight of all places."""
        return int(self.before[-1])

    def below(self, ranks: IntArray) -> IntArray:
        """The weight of all places with a smaller rank, for ranks from 0 to one more than there are rows."""
        inner = np.clip(ranks, 1, self.rows) if self.rows else np.ones_like(ranks)
        cell = np.clip(np.searchsorted(self.ranks, inner, side="left") - 1, 0, len(self.weights) - 1)
        size = self.ranks[cell + 1] - self.ranks[cell]
        found = self.before[cell] + self.weights[cell] * nth_place(size, inner - self.ranks[cell])
        return np.where(ranks <= 0, 0, np.where(ranks > self.rows, self.total, found))

    def place(self, weight: int) -> int:
        """The place at which the weight of all places up to it first exceeds this, in halves of a place."""
        cell = int(np.searchsorted(self.before, weight, side="right")) - 1
        within = (weight - int(self.before[cell])) // int(self.weights[cell])
        return (cell << DIGITS + 1) + 2 * within + 1


def nth_place(size: IntArray, n: IntArray) -> IntArray:
    """The place, within a cell of ``size`` rows, of the n-th row from the left, n from 1.

    Row r lies at the reversed digits of r. So those with the same first digits are those with the same remainder
    modulo a power of two, and are counted at once.

    >>> nth_place(np.array([1, 3, 3]), np.array([1, 1, 3])) * 2.0**-DIGITS
    array([0.5 , 0.25, 0.75])
    """
    rows, left = size + 1, n + 1  # with a row 0, which lies at place 0
    remainder, place = np.zeros_like(n), np.zeros_like(n)
    digits = min(int(rows.max()).bit_length(), DIGITS) if rows.size else 0
    for digit in range(digits):  # row r has no more digits than that: those that follow are zeros
        step = 1 << digit
        lower = np.maximum((rows - remainder + 2 * step - 1) >> digit + 1, 0)
        right = left > lower
        left = left - np.where(right, lower, 0)
        remainder += np.where(right, step, 0)
        place = 2 * place + right
    return np.asarray(place << DIGITS - digits)
