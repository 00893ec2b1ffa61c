"""Noise for a value that is not in memory: read, noised and written part by part, with the same output, bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.core import output_array
from lessnoise.noise.grid import BLOCK, Grid
from lessnoise.noise.job import Job
from lessnoise.noise.ziggurat import MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from lessnoise.noise.exact_arithmetic import Real
    from lessnoise.noise.forms import Form, Integers
    from lessnoise.noise.stream import Stream

    Numbers = NDArray[Any]
    Read = Callable[[int, int], Numbers]
    Write = Callable[[Numbers], None]

_HELD = 64  # blocks in memory at a time


@dataclass(kw_only=True)
class StreamedJob(Job):
    """A job whose values come from ``read(start, count)``, a few blocks at a time, and whose output goes to ``write``.

    The output takes the values' place in memory. For isotropic noise this means that the normals are drawn twice: for
    their norm, and again to be scaled and added, so that noise is never stored without the value.
    """

    total: int
    read: Read
    write: Write | None = None
    first: int = 0

    @property
    def count(self) -> int:
        """Values in all."""
        return self.total

    @property
    def held(self) -> range:
        """The blocks whose values are in memory."""
        return range(self.first, min(self.first + _HELD, self.blocks))

    def check(self) -> None:
        """Refuse what is not finite or too large for the grid: one pass over the whole value."""
        for _ in self._windows():
            super().check()

    def add(self, factor: Real, shift: Real) -> None:
        """Draw, add, round and write; the values are checked again, as they may have changed since the first time."""
        assert self.write is not None
        for size in self._windows():
            super().check()
            super().add(factor, shift)
            self.write(self.out[:size])

    def _windows(self) -> Iterator[int]:
        for first in range(0, self.blocks, _HELD):
            self.first, start = first, first * BLOCK
            size = min(_HELD * BLOCK, self.total - start)
            self.out[:size] = self.read(start, size)
            yield size


def prepare_streamed(
    form: Form, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Stream, read: Read
) -> Callable[[Write], None]:
    """Check everything, the whole value too; the function returned draws, and writes the noisy value part by part.

    ``read`` gives values of ``dtype``, float32 or float64. The output is that of
    :func:`~lessnoise.noise.core.prepare_noise`.
    """
    total = math.prod(shape)
    grid = Grid.of(form.deviation(total), dtype)
    compiled = compiled_kernels(form.kernels, dtype.type, total)
    held = output_array(None, (min(total, _HELD * BLOCK),), dtype)
    values = held.view()
    values.setflags(write=False)
    job = StreamedJob(values, held, stream, form.density, grid, MARGIN, compiled, None, shape, total=total, read=read)
    job.check()

    def draw(write: Write) -> None:
        stream.claim()
        job.write = write
        form.add(job)

    return draw


def prepare_streamed_integers(
    form: Integers, shape: tuple[int, ...], stream: Stream, read: Read
) -> Callable[[Write], None]:
    """The same for integer noise; ``read`` gives int64 and refuses what is not."""
    total = math.prod(shape)
    for start in range(0, total, _HELD * BLOCK):
        read(start, min(_HELD * BLOCK, total - start))

    def draw(write: Write) -> None:
        start = 0
        for drawn in form.draw(total, stream.claim().sequence()):
            write(drawn + read(start, drawn.size))
            start += drawn.size

    return draw
