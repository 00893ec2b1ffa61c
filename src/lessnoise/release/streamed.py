"""From one .npy file to another: part by part where the noise allows it, with the whole array in memory elsewhere."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import npy, validation
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import integer_array, is_streamed, prepare_streamed
from lessnoise.release.pair import place, reserved, write_array, write_staged
from lessnoise.release.payment import Payment
from lessnoise.release.release import certified

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

    from numpy.typing import NDArray

    from lessnoise._common import Progress
    from lessnoise.ledger import Ledger, Receipt
    from lessnoise.mechanism import Mechanism
    from lessnoise.release.certificate import Certificate
    from lessnoise.release.signer import Signer


@dataclass
class ArrayFile:
    """An open .npy file of numbers in C order."""

    file: BufferedReader
    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    _buffer: NDArray[np.uint8] = dataclasses.field(default_factory=lambda: np.empty(0, np.uint8))

    def read(self, start: int, count: int) -> NDArray[Any]:
        """Some entries in a row, in memory that the next call uses again."""
        size, done = count * self.dtype.itemsize, 0
        if self._buffer.size < size:
            self._buffer = np.empty(size, np.uint8)
        self.file.seek(self.offset + start * self.dtype.itemsize)
        while done < size:
            found = self.file.readinto(self._buffer[done:size].data)
            if not found:
                raise InvalidInput(f"input={self.path} ended before its last entry: leave it alone while it is read.")
            done += found
        return self._buffer[:size].view(self.dtype)


@contextlib.contextmanager
def open_array(path: Path) -> Iterator[ArrayFile | NDArray[Any]]:
    """A .npy file to be read part by part; one in Fortran order, or of other numbers, is read whole."""
    with npy.opened(path) as file:
        header = npy.read_header(file, path)
        if header.dtype.kind in "iuf" and (not header.fortran_order or len(header.shape) < 2):
            yield ArrayFile(file, path, header.shape, header.dtype, header.offset)
            return
    yield npy.load(path)


def release_file(
    mechanism: Mechanism,
    array: ArrayFile | NDArray[Any],
    target: Path,
    *,
    force: bool = False,
    rng: np.random.Generator | None = None,
    ledger: Ledger | None = None,
    partition: str | None = None,
    progress: Progress | None = None,
    signer: Signer | None = None,
) -> tuple[Certificate, Receipt | None]:
    """Release an array into a file with its certificate beside it. All that can be refused is refused before paying."""
    in_parts = array.shape == mechanism.shape and is_streamed(mechanism.law, array.shape)
    if not in_parts or not isinstance(array, ArrayFile):
        value = npy.load(array.path) if isinstance(array, ArrayFile) else array
        with reserved(mechanism, target, force) as staged:
            released = mechanism.release(value, rng, ledger=ledger, partition=partition)
            return write_staged(released, target, staged, ledger, signer).certificate, released.receipt
    integer, single = mechanism.law.integer, array.dtype == np.float32
    dtype = np.dtype(np.int64 if integer else np.float32 if single else np.float64)
    checked = integer_array if integer else validation.shaped_array
    step, total = "checking", mechanism.dimension

    def read(start: int, count: int) -> NDArray[Any]:
        if progress is not None:
            progress(step, start, total)
        return checked(array.read(start, count), (count,), f"value[{start}:]" if start else "value")

    stream, certificate = certified(mechanism, dtype, rng, ledger, partition)
    draw = prepare_streamed(mechanism.law, mechanism.shape, dtype, stream, read)
    with reserved(mechanism, target, force) as staged, Payment(ledger) as payment:
        payment.spend(mechanism, partition)
        step = "releasing"
        digest = write_array(staged, target, mechanism.shape, dtype, draw)
        certificate = dataclasses.replace(certificate, value_sha256=digest)
        place(certificate, target, staged, payment, signer)
    return certificate, payment.receipt
