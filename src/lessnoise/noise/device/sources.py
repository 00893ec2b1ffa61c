"""Where the standard variables of a release come from: for whole tiles in doubles, for one value exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise.device import variables
from lessnoise.noise.device.stream import LANES, TILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.device.stream import ChaChaStream
    from lessnoise.noise.exact_arithmetic import Interval

    Drawn = tuple[Array, Array, NDArray[np.bool_]]  # values, errors, left to exact arithmetic

_LONGEST = 6.67  # a normal of the fast path is shorter


@dataclass(frozen=True)
class Normals:
    """Independent normal variables, those of one step of the stream."""

    step: int = 0

    fine = variables.ERROR
    coarse = variables.COARSE

    def floats(self, stream: ChaChaStream, first: int, count: int) -> Drawn:
        """Tiles of them."""
        return variables.normals(stream.tiles(first, count, step=self.step))

    def exactly(self, stream: ChaChaStream, place: int) -> Callable[[int], Interval]:
        """One of them."""
        odd = place % TILE // LANES % 2
        first = place - odd * LANES
        return variables.normal(
            _digits(stream, first, self.step), _digits(stream, first + LANES, self.step), odd=bool(odd)
        )


@dataclass(frozen=True)
class Laplaces:
    """Independent variables of density exp(-|x|)/2."""

    fine = variables.ERROR
    coarse = variables.COARSE

    def floats(self, stream: ChaChaStream, first: int, count: int) -> Drawn:
        """Tiles of them; a value is as coarse, or as open, as its neighbour of the same pair of words."""
        x, error, left = variables.laplaces(stream.tiles(first, count))
        return x, error, left

    def exactly(self, stream: ChaChaStream, place: int) -> Callable[[int], Interval]:
        """One of them."""
        return variables.laplace(_digits(stream, place, 0))


@dataclass(frozen=True)
class AcrossNormals:
    """The sum of weight times the normals of a step, over ``rows`` of (step, weight)."""

    rows: tuple[tuple[int, float], ...]

    @property
    def _total(self) -> float:
        return math.fsum(abs(weight) for _, weight in self.rows) * (1.0 + 2.0**-50)

    @property
    def fine(self) -> float:
        """The errors of the normals and of the sum of n products, n + 1 roundings of terms that are that long."""
        return self._total * (variables.ERROR + (len(self.rows) + 2) * _LONGEST * 2.0**-53)

    @property
    def coarse(self) -> float:
        """The same where one of the normals is coarse."""
        return self._total * (variables.COARSE + (len(self.rows) + 2) * _LONGEST * 2.0**-53)

    def floats(self, stream: ChaChaStream, first: int, count: int) -> Drawn:
        """Tiles of them."""
        shape = (count, TILE // LANES, LANES)
        x, rough, left = np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        for step, weight in self.rows:
            y, error, open_ = Normals(step).floats(stream, first, count)
            x += weight * y
            rough |= error > variables.ERROR
            left |= open_
        return x, np.where(rough, self.coarse, self.fine), left

    def exactly(self, stream: ChaChaStream, place: int) -> Callable[[int], Interval]:
        """One of them."""
        parts = [(Fraction(weight), Normals(step).exactly(stream, place)) for step, weight in self.rows]

        def interval(level: int) -> Interval:
            return exact.total(exact.product((weight, weight), part(level)) for weight, part in parts)

        return interval


Source = Normals | Laplaces | AcrossNormals


def _digits(stream: ChaChaStream, place: int, step: int) -> Callable[[int], int]:
    """A word with its further levels."""
    known: list[int] = []

    def digits(level: int) -> int:
        while len(known) <= level:
            known.append((known[-1] << 64 if known else 0) | stream.word(place, len(known), step))
        return known[level]

    return digits
