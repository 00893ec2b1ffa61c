"""One core for every mechanism: value + noise, rounded to a power-of-two grid exactly as real numbers would be."""

from __future__ import annotations

import math
import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise.compiled import compiled_kernels
from lessnoise.noise.grid import BITS, Grid
from lessnoise.noise.job import Behind, Job
from lessnoise.noise.ziggurat import MARGIN
from lessnoise.validation import floats

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.noise.forms import Form
    from lessnoise.noise.stream import Stream

    Floats = NDArray[Any]


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
