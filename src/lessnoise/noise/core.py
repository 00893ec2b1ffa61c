"""One core for every mechanism: value + noise, rounded to a power-of-two grid exactly as real numbers would be.

A value that is not in memory is read, noised and written part by part, with the same output, bit by bit.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.grid import BITS, BLOCK, Grid
from lessnoise.noise.job import Behind, Job
from lessnoise.noise.ziggurat import MARGIN
from lessnoise.validation import floats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.noise.exact_arithmetic import Real
    from lessnoise.noise.forms import Form, Integers
    from lessnoise.noise.stream import Stream

    Floats = NDArray[Any]
    Numbers = NDArray[Any]
    Read = Callable[[int, int], Numbers]
    Write = Callable[[Numbers], None]

_HELD = 64  # blocks of a streamed value in memory at a time


def prepare_noise(
    form: Form,
    value: Floats,
    stream: Stream,
    *,
    out: Floats | None = None,
    threads: int | None = None,
    path: str = "auto",
    bits: int = BITS,
    margin: float = MARGIN,
    behind: Behind | None = None,
) -> Callable[[], Floats]:
    """Check everything; the function returned draws and gives ``value`` plus noise on the grid.

    float32 stays float32, all else becomes float64. ``out`` may be ``value``.

    The output is a function of the stream's key, the form, the value and ``bits`` alone. ``path`` ("auto", "numba",
    "numpy"), ``threads`` and ``margin`` (how near a boundary floats may decide) change the time it takes, not a bit.
    Independent noise can be added to real numbers ``behind`` the values: the output is then a function of those.

    >>> from lessnoise.noise import Independent, Real, Stream, add_noise, normal
    >>> form = Independent(normal(), Real.exactly(2.0))
    >>> seeded = lambda: Stream.of(np.random.default_rng(1))
    >>> bool((add_noise(form, np.zeros(9), seeded()) == add_noise(form, np.zeros(9), seeded(), margin=1e9)).all())
    True
    """
    dtype = np.dtype(np.float32 if value.dtype == np.float32 else np.float64)
    check_out(out, value.shape, dtype)
    flat = np.require(value if dtype == np.float32 else floats(value), dtype, ["C", "A"]).reshape(-1)
    target = output_array(out, value.shape, dtype)
    if flat.ctypes.data != target.ctypes.data and np.shares_memory(flat, target):
        flat = flat.copy()  # an output that overlaps the value in part would overwrite what is still to be read
    flat = flat.view()
    flat.setflags(write=False)  # one type for the compiled kernels, whatever the caller's array is
    grid = Grid.of(form.deviation(flat.size), dtype, bits)
    compiled = compiled_kernels(form.kernels, dtype.type, flat.size, path)
    job = Job(flat, target, stream, form.density, grid, margin, compiled, threads, value.shape, behind)
    job.check()

    def draw() -> Floats:
        stream.claim()
        try:
            form.add(job)
        except BaseException:
            target.fill(math.nan)  # leave neither bare noise nor half a release behind
            raise
        return target.reshape(value.shape)

    return draw


def add_noise(form: Form, value: Floats, stream: Stream, **options: Any) -> Floats:  # noqa: ANN401
    """Check, draw and add at once, with the options of :func:`prepare_noise`."""
    return prepare_noise(form, value, stream, **options)()


def check_out(out: Floats | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an output array that cannot hold the noisy value."""
    if out is None:
        return
    if type(out) not in (np.ndarray, np.memmap):
        raise InvalidInput(f"out of type {type(out).__name__} is not a NumPy array: pass numpy.empty({shape}), say.")
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.aligned:
        raise InvalidInput(
            f"out has shape {out.shape} and dtype {out.dtype}: pass an aligned, C-contiguous array of shape {shape} "
            f"and dtype {dtype}."
        )
    if not out.flags.writeable:
        raise InvalidInput("out is read-only: pass an array that may be written, such as out.copy().")


def output_array(out: Floats | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Floats:
    """The flat memory of the output, all of it in place: if there is too little, that shows now and not in a draw."""
    target = (np.empty(shape, dtype) if out is None else out.view(np.ndarray)).reshape(-1)
    pages = target[:: max(1, mmap.PAGESIZE // dtype.itemsize)]
    np.copyto(pages, pages.copy())
    return target


# Values that are not in memory.


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

    def add(self, factor: Real, shift: Real, factors: Array | None = None) -> None:
        """Draw, add, round and write; the values are checked again, as they may have changed since the first time."""
        assert self.write is not None
        for size in self._windows():
            super().check()
            super().add(factor, shift, factors)
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
    :func:`prepare_noise`.
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
