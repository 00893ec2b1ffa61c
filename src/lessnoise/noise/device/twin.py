"""The engine of a device in NumPy: the meaning of its kernels, and what answers where they leave a doubt.

The output is a function of the key, the form and the value alone: floats decide with a proved margin, and where they
cannot, :mod:`lessnoise.noise.device.variables` decides exactly. So kernels and this twin give the same bits.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lessnoise._common import cores
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise.device import variables
from lessnoise.noise.device.sources import Normals
from lessnoise.noise.device.stream import LANES, TILE, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.device.sources import Source
    from lessnoise.noise.device.stream import ChaChaStream
    from lessnoise.noise.device.tables import IntegerTable
    from lessnoise.noise.exact_arithmetic import Interval, Real
    from lessnoise.noise.grid import Grid

    Numbers = NDArray[Any]

FIXED = 44  # squares are added in whole units of 2^-44
LEFT = 1 << 20  # the mark of a tile with a pair that is left to exact arithmetic
_TILES = 32  # worked on at a time


@dataclass(frozen=True)
class Line:
    """value + shift + factor x in cells of the grid, x of a source."""

    source: Source
    factor: Real
    shift: Real
    grid: Grid

    def numbers(self) -> dict[str, float]:
        """What floats need: near + slope |factor x| bounds their error, in cells, as on the CPU."""
        size = abs(self.factor.value)
        near, rough = (size * error + self.shift.error + 2.0**-50 for error in (self.source.fine, self.source.coarse))
        if not max(size * 32.0, abs(self.shift.value)) < (2.0**21 if self.grid.single else 2.0**40):
            near = rough = 1.0  # nothing is certain
        whole = float(np.rint(self.shift.value)) if math.isfinite(self.shift.value) else 0.0
        return {
            "factor": self.factor.value,
            "shift": self.shift.value - whole,
            "whole": whole,
            "near": near,
            "rough": rough,
            "slope": self.factor.error + 2.0**-51,
            "inverse": 1.0 / self.grid.step,
            "cell": self.grid.step,
        }


@dataclass(frozen=True)
class Squares:
    """The sum of the squares of all normals in units of 2^-44, and how many pairs are coarse."""

    units: int
    coarse: int


class Backend(Protocol):
    """What does the work for all tiles of one release."""

    stream: ChaChaStream

    @property
    def count(self) -> int:
        """Values in all."""

    def squares(self) -> Callable[[], Squares]:
        """Begin to add up those of the normals of step 0; the function returned waits for them."""

    def add(self, line: Line) -> None:
        """Draw, add and round."""

    def add_integers(self, table: IntegerTable) -> None:
        """Draw and add."""


@dataclass
class Tiles:
    """The NumPy backend: flat values and their output, which may be the same memory."""

    values: Numbers
    out: Numbers
    stream: ChaChaStream
    threads: int | None = None

    @property
    def count(self) -> int:
        """Values in all."""
        return self.values.size

    def squares(self) -> Callable[[], Squares]:
        """Of the normals of step 0."""
        parts = list(self._each(lambda first, number: _squares(self.stream, self.count, first, number)))
        found = Squares(sum(units for units, _ in parts), sum(coarse for _, coarse in parts))
        return lambda: found

    def add(self, line: Line) -> None:
        """Draw, add and round."""

        def work(first: int, number: int) -> None:
            part = slice(first * TILE, min((first + number) * TILE, self.count))
            self.out[part] = rounded(line, self.stream, first, self.values[part].astype(np.float64))

        list(self._each(work))

    def add_integers(self, table: IntegerTable) -> None:
        """Draw and add."""

        def work(first: int, number: int) -> None:
            part = slice(first * TILE, min((first + number) * TILE, self.count))
            self.out[part] = self.values[part] + integers(table, self.stream, first, part.stop - part.start)

        list(self._each(work))

    def _each(self, work: Callable[[int, int], Any]) -> Iterator[Any]:
        total = -(-self.count // TILE)
        starts = range(0, total, _TILES)
        threads = min(cores() if self.threads is None else self.threads, len(starts))
        sizes = [min(_TILES, total - start) for start in starts]
        if threads <= 1:
            return map(work, starts, sizes)
        with ThreadPoolExecutor(threads) as pool:
            return iter(list(pool.map(work, starts, sizes)))


def rounded(line: Line, stream: ChaChaStream, first: int, values: Array) -> Array:
    """Values from tile ``first`` on, with noise, on the grid."""
    numbers, size = line.numbers(), values.size
    drawn = line.source.floats(stream, first, -(-size // TILE))
    x, error, left = drawn[0].reshape(-1)[:size], drawn[1].reshape(-1)[:size], drawn[2].reshape(-1)[:size]
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite factor is a doubt
        cells = values * numbers["inverse"]
        integer = np.floor(cells + 0.5)
        move = numbers["factor"] * x
        t = ((cells - integer) + numbers["shift"]) + move
        steps = np.floor(t + 0.5)
        near = np.where(error > line.source.fine, numbers["rough"], numbers["near"])
        sure = np.abs(t - steps) + numbers["slope"] * np.abs(move) < 0.5 - near
        total = integer + (steps + numbers["whole"])
    for index in np.flatnonzero(left | ~sure):
        total[index] = _exactly(line, stream, first * TILE + int(index), Fraction(float(values[index])))
    end = line.grid.largest_output
    result: Array = np.clip(total, -end, end) * line.grid.step + 0.0  # never -0.0: its sign would tell the value's
    return result


def _exactly(line: Line, stream: ChaChaStream, place: int, value: Fraction) -> float:
    """The cell of one value."""
    variable = line.source.exactly(stream, place)
    start, end = value / Fraction(line.grid.step), int(line.grid.largest_output)
    for level in exact.word_levels():
        low, high = line.shift.interval(level)
        found = exact.nearest((start + low, start + high), line.factor.interval(level), variable(level))
        if found is not None:
            return float(max(-end, min(end, found)))
    raise AssertionError("unreachable")


def integers(table: IntegerTable, stream: ChaChaStream, first: int, size: int) -> NDArray[np.int64]:
    """Integer noise for ``size`` values from tile ``first`` on."""
    words = stream.tiles(first, -(-size // TILE)).reshape(-1)[:size]
    digits = (words >> np.uint64(1)).astype(np.int64)
    found = np.searchsorted(table.last, digits, side="left")
    beyond = found >= table.last.size
    open_ = beyond | (table.first[np.where(beyond, 0, found)] <= digits)
    for index in np.flatnonzero(open_):
        found[index] = table.exactly(stream, first * TILE + int(index))
    return np.where((words & np.uint64(1)) != 0, -found, found)


# The norm of the normals of step 0.


def _squares(stream: ChaChaStream, count: int, first: int, number: int) -> tuple[int, int]:
    """Units and coarse pairs of some tiles."""
    words = stream.tiles(first, number)
    energy, error, left = variables.exponentials(words[:, 0::2])
    x, _ = variables.directions(words[:, 1::2])
    place = np.arange(first * TILE, (first + number) * TILE).reshape(number, WORDS, LANES)[:, 0::2]
    both, one = place + LANES < count, place < count
    square = np.where(both, 2.0 * energy, np.where(one, 2.0 * energy * (x * x), 0.0))
    units = int(np.floor(np.where(left, 0.0, square) * 2.0**FIXED + 0.5).astype(np.int64).sum())
    units += sum(_left_units(stream, int(at), count) for at in place[left & one])
    return units, int(np.count_nonzero((error > variables.ERROR) & one))


def tile_squares(stream: ChaChaStream, count: int, tile: int) -> int:
    """The units of a tile that a kernel has left."""
    return _squares(stream, count, tile, 1)[0]


def _left_units(stream: ChaChaStream, place: int, count: int) -> int:
    """A pair whose first word is next to 0 or to 1, in units that are as good as the others'."""
    word = stream.word(place, 0) << 64 | stream.word(place, 1)
    bits, level = 128, 1
    while word == 0:
        level += 1
        word, bits = word << 64 | stream.word(place, level), bits + 64
    energy = (
        bits * math.log(2.0) - math.log(word)
        if word >> (bits - 1) == 0
        else -math.log1p(-((1 << bits) - word) / (1 << bits))
    )
    if place + LANES >= count:
        x, _ = variables.directions(np.array([stream.word(place + LANES, 0)], dtype=np.uint64))
        energy *= float(x[0]) ** 2
    return math.floor(2.0 * energy * 2.0**FIXED + 0.5)


def square_error(found: Squares, count: int) -> float:
    """How far the units are from the real sum of squares, in units.

    For each pair: one rounding to units, 10 roundings of 2 E, and what theta adds, 2/w: 2^-47 or, if coarse, 2^-31; a
    pair that ends halfway has the error of its x as well. All of it is doubled.
    """
    pairs = count / 2.0 + LANES
    theta = pairs * 2.0**-47 + found.coarse * 2.0**-29
    return 2.0 * (pairs * 0.5 + found.units * 24.0 * 2.0**-53 + theta * 2.0**FIXED)


def norm(stream: ChaChaStream, count: int, level: int) -> Interval:
    """|g| of all normals, from ``level`` levels of their words: the logarithm of a product, to any precision.

    The squares of a pair add up to -2 ln U, so those of all pairs to -2 ln of the product of their U; with U between
    W and W + 1, ln U lies between ln W and ln W + 1/W.
    """
    low, high = variables.log_product(_first_words(stream, count, level), 64 * level)
    for place in _halves(count):
        near, far = _normal_square(stream, place, level)
        low, high = low + near, high + far
    return exact.root(max(low, Fraction(0)), level)[0], exact.root(high, level)[1]


def _first_words(stream: ChaChaStream, count: int, level: int) -> Iterator[list[int]]:
    """The first words of complete pairs, lengthened, some tiles at a time."""
    total = -(-count // TILE)
    for start in range(0, total, _TILES):
        number = min(_TILES, total - start)
        place = np.arange(start * TILE, (start + number) * TILE).reshape(number, WORDS, LANES)[:, 0::2]
        both = place + LANES < count
        found = [0] * int(np.count_nonzero(both))
        for each in range(level):
            words = stream.tiles(start, number, level=each)[:, 0::2][both].tolist()
            found = [w << 64 | more for w, more in zip(found, words, strict=True)]
        yield found


def _halves(count: int) -> list[int]:
    """Places of normals whose partner is beyond the end."""
    start = (count - 1) // TILE * TILE
    return [p for p in range(start, count) if (p - start) // LANES % 2 == 0 and p + LANES >= count]


def _normal_square(stream: ChaChaStream, place: int, level: int) -> Interval:
    ends = Normals().exactly(stream, place)(level)
    low, high = sorted(map(abs, ends))
    return (Fraction(0) if ends[0] <= 0 <= ends[1] else low * low), high * high
