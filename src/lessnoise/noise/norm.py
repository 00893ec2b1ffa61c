"""The exact norm of a vector of normals: needed where floats do not tell on which side of a boundary a value lies."""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import reference
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.reference import Block
from lessnoise.noise.ziggurat import LAYER_BITS, POSITION_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.noise.exact_arithmetic import Interval
    from lessnoise.noise.job import Job, Worker
    from lessnoise.noise.stream import Reader

    Words = NDArray[np.uint64]
    Indices = NDArray[np.int64]


def norm(job: Job, level: int) -> Interval:
    """|g| from words lengthened by ``level`` levels.

    Level 1 takes pairs of doubles in compiled code, 15 ns a value, and is within a relative 2^-72 where the values are
    of ordinary size. Further levels, and level 1 without the compiled code, take Python's integers, 0.6 us a value.
    """
    fast = level == 1 and job.kernels is not None and compiled_kernels("doubts") is not None
    low, high = _fine_squares(job) if fast else _squares(job, level)
    return _root(max(low, Fraction(0)), 64 * level, 0), _root(high, 64 * level, 1)


def _fine_squares(job: Job) -> Interval:
    sums: list[Interval] = []
    lock = threading.Lock()
    density, kernels = job.density, job.kernels

    def work(worker: Worker, block: int) -> None:
        lengthened = lengthened_block(job, worker, block)
        if lengthened is None:
            found = _block_squares(job, worker.reader, block, 1)
        else:
            first, further, drawn = lengthened
            count = drawn.x.size
            total, rest = kernels.fine_squares(first, further, count, drawn.positions, drawn.seconds, density.widths)
            both = Fraction(total) + Fraction(rest)
            slack = abs(both) / 2**72 + count * 2**10
            far = _tail_squares(job, drawn, worker.reader, block, 1)
            unit = Fraction(1, 1 << 2 * POSITION_BITS)
            found = (both - slack) * unit + far[0], (both + slack) * unit + far[1]
        with lock:
            sums.append(found)

    job.each(work)
    return exact.total(sums)


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
    found = reference.sample(job.density, reader, block, job.size(block), job.margin)
    first, integers = signed_integers(reader, block, found.positions, level)
    layers = (first & np.uint64((1 << LAYER_BITS) - 1)).tolist()
    sums: dict[int, list[int]] = {}
    for s, layer, inside in zip(integers, layers, (found.seconds < 0).tolist(), strict=True):
        if inside:
            entry = sums.setdefault(layer, [0, 0, 0])
            entry[0] += s * s
            entry[1] += abs(s)
            entry[2] += 1
    low, high = _tail_squares(job, found, reader, block, level)
    for layer, (square, size_sum, number) in sums.items():
        unit = (Fraction(float(job.density.widths[layer])) / (1 << POSITION_BITS + 64 * level)) ** 2
        # (s + theta)^2 is within 2 |s| + 1 of s^2.
        low += unit * (square - 2 * size_sum - number)
        high += unit * (square + 2 * size_sum + number)
    return low, high


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


def _root(x: Fraction, bits: int, more: int) -> Fraction:
    """Square root, rounded down (more = 0) or up (1) at 2^-(bits + 64)."""
    scale = 1 << bits + 64
    return Fraction(math.isqrt((x * scale * scale).__floor__()) + more, scale)
