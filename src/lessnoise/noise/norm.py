"""The exact norm and sum of a vector of normals: needed where floats do not tell in which cell a value lies."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.reference import Block
from lessnoise.noise.ziggurat import LAYER_BITS, POSITION_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.noise.exact_arithmetic import Interval
    from lessnoise.noise.job import Job, Worker
    from lessnoise.noise.stream import Reader

    Bounds = Callable[[Job, Block, Reader, int, Fraction], Interval]
    Slowly = Callable[[Job, Reader, int, int], Interval]
    Words = NDArray[np.uint64]
    Indices = NDArray[np.int64]


def norm(job: Job, level: int) -> Interval:
    """|g| from words lengthened by ``level`` levels.

    Level 1 takes pairs of doubles in compiled code, 15 ns a value, and is within a relative 2^-72 where the values are
    of ordinary size. Further levels, and level 1 without the compiled code, take Python's integers, 0.6 us a value.
    """
    low, high = _fine_squares(job) if _is_fast(job, level) else _squares(job, level)
    return _root(max(low, Fraction(0)), 64 * level, 0), _root(high, 64 * level, 1)


def vector_sum(job: Job, level: int) -> Interval:
    """g_1 + ... + g_M likewise; level 1 in compiled code is within 2^-60 a block."""
    if _is_fast(job, level):
        return _fine(job, job.kernels.fine_sums, _sum_bounds, _block_sum)
    reader = job.stream.reader()
    return exact.total(_block_sum(job, reader, block, level) for block in range(job.blocks))


def _is_fast(job: Job, level: int) -> bool:
    return level == 1 and job.kernels is not None and compiled_kernels("doubts") is not None


def _fine_squares(job: Job) -> Interval:
    return _fine(job, job.kernels.fine_squares, _square_bounds, _block_squares)


def _fine(job: Job, kernel: Any, bounds: Bounds, slowly: Slowly) -> Interval:  # noqa: ANN401
    """A sum over all blocks in pairs of doubles; ``slowly`` does a block in which the kernel meets a doubt."""
    sums: list[Interval] = []
    lock = threading.Lock()

    def work(worker: Worker, block: int) -> None:
        lengthened = lengthened_block(job, worker, block)
        if lengthened is None:
            found = slowly(job, worker.reader, block, 1)
        else:
            first, further, drawn = lengthened
            total, rest = kernel(first, further, drawn.x.size, drawn.positions, drawn.seconds, job.density.widths)
            found = bounds(job, drawn, worker.reader, block, Fraction(total) + Fraction(rest))
        with lock:
            sums.append(found)

    job.each(work)
    return exact.total(sums)


def _square_bounds(job: Job, drawn: Block, reader: Reader, block: int, both: Fraction) -> Interval:
    slack = abs(both) / 2**72 + drawn.x.size * 2**10
    far = _tail_squares(job, drawn, reader, block, 1)
    unit = Fraction(1, 1 << 2 * POSITION_BITS)
    return (both - slack) * unit + far[0], (both + slack) * unit + far[1]


def _sum_bounds(job: Job, drawn: Block, reader: Reader, block: int, both: Fraction) -> Interval:
    slack, unit = Fraction(1, 1 << 7), Fraction(1, 1 << POSITION_BITS)
    far = _tail_sum(job, drawn, reader, block, 1)
    return (both - slack) * unit + far[0], (both + slack) * unit + far[1]


def lengthened_block(job: Job, worker: Worker, block: int) -> tuple[Words, Words, Block] | None:
    """A block's words of levels 0 and 1, and where its values are; None if the kernel meets a doubt."""
    words, available, count = job.words(worker, block)
    x, finals, seconds = (worker.scratch[i][:count] for i in (0, 3, 4))
    finals[:] = np.arange(count)
    seconds[:] = -1
    status, _, _ = job.kernels.standard(words, available, count, worker.scratch, job.density.tables, x, 0)
    if status != 0:
        return None
    first = words.copy()
    return first, worker.reader.words(1, block, 0, available), Block(x, finals, seconds)


def _squares(job: Job, level: int) -> Interval:
    reader = job.stream.reader()
    return exact.total(_block_squares(job, reader, block, level) for block in range(job.blocks))


def _block_squares(job: Job, reader: Reader, block: int, level: int) -> Interval:
    """A block in Python's integers."""
    found, layers = _by_layer(job, reader, block, level)
    low, high = _tail_squares(job, found, reader, block, level)
    for unit, integers in layers:
        # (s + theta)^2 is within 2 |s| + 1 of s^2.
        square, around = sum(s * s for s in integers), 2 * sum(map(abs, integers)) + len(integers)
        low += unit**2 * (square - around)
        high += unit**2 * (square + around)
    return low, high


def _block_sum(job: Job, reader: Reader, block: int, level: int) -> Interval:
    """The same for the sum."""
    found, layers = _by_layer(job, reader, block, level)
    low, high = _tail_sum(job, found, reader, block, level)
    for unit, integers in layers:
        low += unit * sum(integers)
        high += unit * (sum(integers) + len(integers))  # s + theta, theta in [0, 1)
    return low, high


def _by_layer(job: Job, reader: Reader, block: int, level: int) -> tuple[Block, list[tuple[Fraction, list[int]]]]:
    """The variables of a block; and for each layer its unit and the integers s of those inside: unit (s + theta)."""
    found = reference.sample(job.density, reader, block, job.size(block), job.margin)
    first, integers = signed_integers(reader, block, found.positions, level)
    layers = (first & np.uint64((1 << LAYER_BITS) - 1)).tolist()
    sorted_out: dict[int, list[int]] = {}
    for s, layer, inside in zip(integers, layers, (found.seconds < 0).tolist(), strict=True):
        if inside:
            sorted_out.setdefault(layer, []).append(s)
    parts = 1 << POSITION_BITS + 64 * level
    return found, [
        (Fraction(float(job.density.widths[layer])) / parts, found_there) for layer, found_there in sorted_out.items()
    ]


def signed_integers(reader: Reader, block: int, positions: Indices, level: int) -> tuple[Words, list[int]]:
    """Words of a block, and the signed integers that they begin with, lengthened by ``level`` levels."""
    size = int(positions.max()) + 1
    first = reader.words(0, block, 0, size)[:size].copy()[positions]
    integers = [word >> LAYER_BITS for word in first.view(np.int64).tolist()]
    for step in range(1, level + 1):
        more = reader.words(step, block, 0, size)[:size][positions].tolist()
        integers = [s << 64 | e for s, e in zip(integers, more, strict=True)]
    return first, integers


def _tail_squares(job: Job, drawn: Block, reader: Reader, block: int, level: int) -> Interval:
    """Rounded outwards to a dyadic grid, so that sums of many stay short."""
    scale = 1 << 64 * (level + 2)
    low = high = 0
    for index in np.flatnonzero(drawn.seconds >= 0):
        ends = sorted(map(abs, drawn.draw(job.density, reader, block, int(index)).interval(level)))
        low += (ends[0] * ends[0] * scale).__floor__()
        high += (ends[1] * ends[1] * scale).__ceil__()
    return Fraction(low, scale), Fraction(high, scale)


def _tail_sum(job: Job, drawn: Block, reader: Reader, block: int, level: int) -> Interval:
    scale = 1 << 64 * (level + 2)
    low = high = 0
    for index in np.flatnonzero(drawn.seconds >= 0):
        near, far = drawn.draw(job.density, reader, block, int(index)).interval(level)
        low += (near * scale).__floor__()
        high += (far * scale).__ceil__()
    return Fraction(low, scale), Fraction(high, scale)


def _root(x: Fraction, bits: int, more: int) -> Fraction:
    """Square root, rounded down (more = 0) or up (1) at 2^-(bits + 64)."""
    scale = 1 << bits + 64
    return Fraction(math.isqrt((x * scale * scale).__floor__()) + more, scale)
