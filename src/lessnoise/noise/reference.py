"""One block of values with NumPy: the meaning of the kernels, and the path for small vectors.

It takes every decision as the kernels do, and where floats come within a margin of a boundary it asks
:mod:`lessnoise.noise.exact_arithmetic`. So its output is a function of the words alone, whatever the margins and the
path. ``margin`` can be raised in tests to send everything to the exact side.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise.exact_arithmetic import Draw, Real, Word
from lessnoise.noise.grid import reserve
from lessnoise.noise.ziggurat import LAPLACE, LAYER_BITS, LAYERS, MARGIN, NORMAL, Density

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.grid import Grid
    from lessnoise.noise.stream import Reader

    Indices = NDArray[np.int64]

SMALLEST_TAIL = np.uint64(1 << 50)  # a tail word below it is left to exact arithmetic
FARTHEST = 2.0**10  # e^-g is then below 2^-1400


@dataclass(frozen=True, slots=True)
class Block:
    """Values of one block, and where their words are."""

    x: Array
    positions: Indices  # of the accepted attempt
    seconds: Indices  # of the tail's word; -1 elsewhere

    def draw(self, density: Density, reader: Reader, block: int, index: int) -> Draw:
        """One value, to any precision."""
        word = Word(reader, block, int(self.positions[index]))
        second = int(self.seconds[index])
        return Draw(density, word, Word(reader, block, second) if second >= 0 else None)


class _Words:
    """The words of a block; beyond the reserve, which is never used up, a longer stretch of the same block."""

    def __init__(self, reader: Reader, block: int, count: int) -> None:
        self._reader, self._block, self.cursor = reader, block, count
        self._size = count + reserve(count)
        self.all = reader.words(0, block, 0, self._size).copy()

    def take(self, count: int) -> tuple[Indices, NDArray[np.uint64]]:
        positions = np.arange(self.cursor, self.cursor + count)
        self.cursor += count
        while self.cursor > self._size:
            self._size *= 2
            self.all = self._reader.words(0, self._block, 0, self._size).copy()
        return positions, self.all[positions]


def sample(density: Density, reader: Reader, block: int, count: int, margin: float = MARGIN) -> Block:
    """Standard variables of one block."""
    words = _Words(reader, block, count)
    x = np.empty(count)
    seconds = np.full(count, -1)
    coordinates: Indices = np.arange(count)
    positions: Indices = coordinates
    attempt = words.all[:count]
    finals = positions.copy()
    while True:
        layers, at = _place(density, attempt)
        x[coordinates] = at
        finals[coordinates] = positions
        outside = ~(np.abs(at) < density.inner[layers])  # never by margin: it says which words are used
        if not outside.any():
            return Block(x, finals, seconds)
        coordinates, positions = coordinates[outside], positions[outside]
        layers, at = layers[outside], at[outside]
        second_positions, second = words.take(coordinates.size)
        accepted, doubtful, tails, values = _decide(density, layers, at, second, margin)
        x[coordinates] = values
        for i in np.flatnonzero(doubtful):
            found = exact.decide(
                density, Word(reader, block, int(positions[i])), Word(reader, block, int(second_positions[i]))
            )
            accepted[i] = found is not None
            if found is not None:
                tails[i] = found.tail is not None
                x[coordinates[i]] = found.middle(2)
        tails &= accepted
        seconds[coordinates[tails]] = second_positions[tails]
        coordinates = coordinates[~accepted]
        if not coordinates.size:
            return Block(x, finals, seconds)
        positions, attempt = words.take(coordinates.size)


def _place(density: Density, attempt: NDArray[np.uint64]) -> tuple[Indices, Array]:
    layers = (attempt & np.uint64(LAYERS - 1)).astype(np.int64)
    return layers, (attempt.view(np.int64) >> LAYER_BITS).astype(np.float64) * density.steps[layers]


def _decide(
    density: Density, layers: Indices, at: Array, second: NDArray[np.uint64], margin: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], Array]:
    """Accepted, too near to tell, in the tail, and the values, for attempts outside the inner part."""
    size, r = np.abs(at), density.r
    u = second.astype(np.float64) * 2.0**-64
    base = layers == 0
    tails = base & (size > r)
    height = np.log(np.where(base, 1.0, density.heights[layers] + u * density.ratios[layers]))
    excess = _rise(density, size) - height
    doubtful = np.abs(np.where(base, size - r, excess)) <= margin
    accepted = base | (excess > 0.0)
    values = at.copy()
    if tails.any():
        waited = -np.log(np.maximum(u, 2.0**-64))
        doubtful |= tails & ((second < SMALLEST_TAIL) | (margin > MARGIN))
        if density.kind != LAPLACE:
            waited /= density.slope
            exponent = -0.5 * waited * waited if density.kind == NORMAL else _bend(density, waited)
            gap = np.exp(exponent) - (size - r) * density.slope
            accepted[tails] = gap[tails] > 0.0
            doubtful |= tails & (np.abs(gap) <= margin)
        values[tails] = np.copysign(r + waited, at)[tails]
    return accepted, doubtful, tails, values


def _rise(density: Density, size: Array) -> Array:
    """g(r) - g(size)."""
    r = density.r
    if density.kind == NORMAL:
        return 0.5 * (r * r - size * size)
    result: Array = r - size if density.kind == LAPLACE else r**density.power - size**density.power
    return result


def _bend(density: Density, beyond: Array) -> Array:
    """g(r) + s (t - r) - g(t) for t = r + beyond, at most 0; where it is far below, any such number serves."""
    t = np.minimum(density.r + beyond, FARTHEST ** (1.0 / density.power))
    result: Array = density.r**density.power + density.slope * beyond - t**density.power
    return np.clip(result, -FARTHEST, 0.0)


def release(
    density: Density,
    reader: Reader,
    block: int,
    values: Array,
    factor: Real,
    shift: Real,
    grid: Grid,
    margin: float,
    blur: float,
    number: Callable[[int], Fraction],
    factors: Array | None = None,
) -> Array:
    """Round(value + f (shift + factor * x)) to the grid; ``factor`` and ``shift`` in cells, ``values`` as they are.

    The real number behind a value is ``number`` of its index, at most ``blur`` cells from it. f is the entry's own
    factor, if there are ``factors``, else 1.
    """
    own: Array | float = 1.0 if factors is None else factors
    drawn = sample(density, reader, block, values.size, margin)
    with np.errstate(invalid="ignore", over="ignore"):  # an infinite factor, |g| being rounded to 0, is a doubt
        cells = values * (1.0 / grid.step)
        whole = np.rint(cells)
        rest = (cells - whole) + shift.value * own
        move = factor.value * drawn.x * own
        steps = np.rint(rest + move)
        # Distances to the two boundaries, each with one rounding; exact where they are small and the shift is 0.
        above, below = (steps + 0.5) - rest, (steps - 0.5) - rest
        steps += move > above
        steps -= move < below
        size = np.abs(move)
        doubt = abs(factor.value) * density.error * own + (factor.error + 2.0**-50) * size + blur
        if shift.value or shift.error:
            doubt += shift.error * own + 2.0**-51 * (abs(shift.value) * own + 1.0)
        doubtful = np.zeros(values.size, dtype=np.bool_)
        for edge in (above, below):
            doubtful |= ~(np.abs(move - edge) > doubt + 2.0**-50 * np.abs(edge))
        doubtful |= ~(size < 2.0**45)
        if margin > MARGIN:
            doubtful[:] = True
        total = whole + steps
        end = grid.largest_output
        for index in np.flatnonzero(doubtful):
            variable = drawn.draw(density, reader, block, int(index))
            multiple = Fraction(1) if factors is None else Fraction(float(factors[index]))
            total[index] = _exactly(variable, number(int(index)), factor, shift, grid, multiple)
        result: Array = np.clip(total, -end, end) * grid.step + 0.0  # never -0.0: its sign would tell the value's
        return result


def _exactly(variable: Draw, value: Fraction, factor: Real, shift: Real, grid: Grid, multiple: Fraction) -> float:
    """The cell of value + multiple (shift + factor x)."""
    start = value / Fraction(grid.step)
    end = int(grid.largest_output)
    for level in exact.word_levels():
        low, high = (start + multiple * side for side in shift.interval(level))
        near, far = (multiple * side for side in factor.interval(level))
        found = exact.nearest((low, high), (near, far), variable.interval(level))
        if found is not None:
            return float(max(-end, min(end, found)))
    raise AssertionError("unreachable")
