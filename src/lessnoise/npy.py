"""The .npy format, read with distrust: what a header says is believed as far as the file itself bears it out.

Nothing is allocated by a header's word, no code of the file is run, and opening never waits, not for a pipe either.
"""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.validation import MAX_AXES

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

    from numpy.typing import NDArray

_MAGIC = b"\x93NUMPY"
_LENGTHS = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}  # bytes of the header's length, by version
_LONGEST = 10_000  # as NumPy has it
_PLAIN = re.compile(r"""[\w \n'"<>|=,:.(){}]*""", re.ASCII)
_NUMERIC = re.compile(r"[<>|=]?([biufc]\d{1,2}|\?)", re.ASCII)
_FIELDS = {"descr", "fortran_order", "shape"}


class Header(NamedTuple):
    """What a .npy file holds, and where its first entry lies."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran_order: bool
    offset: int


def opened(path: Path, name: str = "input") -> BufferedReader:
    """An ordinary file, open for reading."""
    try:
        if path.is_file():
            return path.open("rb")
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise InvalidInput(f"{name}={path} cannot be read ({error.strerror}): check its permissions.") from None
    raise InvalidInput(f"{name}={path} does not exist, or is not an ordinary file: pass the path of a .npy file.")


def read_header(file: BinaryIO, path: Path, name: str = "input") -> Header:
    """The header of a whole array of numbers: the file must be exactly as long as it says."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(len(_MAGIC) + 2)
    length = _LENGTHS.get(start[len(_MAGIC) :], 0)
    if not start.startswith(_MAGIC) or not length:
        if zipfile.is_zipfile(file):
            raise InvalidInput(f"{name}={path} holds several arrays: pass a .npy file with one array.")
        _refuse(path, name)
    declared = int.from_bytes(file.read(length), "little")
    text = file.read(declared).decode("latin-1") if declared <= _LONGEST else ""
    shape, descr, fortran = _parsed(text) if len(text) == declared else _refuse(path, name)
    try:
        dtype = np.dtype(descr if isinstance(descr, str) and _NUMERIC.fullmatch(descr) else "")
    except TypeError:
        _refuse(path, name, f", as dtype={str(descr)[:60]} is not numeric")
    offset, entries = len(start) + length + declared, math.prod(shape)
    if offset + entries * dtype.itemsize != size:
        raise InvalidInput(
            f"{name}={path} has {size} bytes, which is not what shape={shown(shape)} and dtype={dtype} need: it is cut "
            "short, or holds more than one array; write it again with numpy.save."
        )
    return Header(shape, dtype, fortran, offset)


def _parsed(text: str) -> tuple[tuple[int, ...], object, bool]:
    """Shape, dtype and order from the text of a header; no dtype where it makes no sense."""
    nothing = (), None, False
    if not _PLAIN.fullmatch(text) or text.count("(") > 1 or text.count("{") > 1:
        return nothing
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return nothing
    if not isinstance(found, dict) or set(found) != _FIELDS:
        return nothing
    shape, fortran = found["shape"], found["fortran_order"]
    if not isinstance(shape, tuple) or len(shape) > MAX_AXES or not isinstance(fortran, bool):
        return nothing
    if any(type(size) is not int or size < 0 for size in shape):
        return nothing
    return shape, found["descr"], fortran


def _refuse(path: Path, name: str, why: str = "") -> NoReturn:
    raise InvalidInput(f"{name}={path} is not a readable .npy array of numbers{why}: write it with numpy.save.")


def load(path: Path, name: str = "input") -> NDArray[Any]:
    """The array of a .npy file."""
    with opened(path, name) as file:
        return load_from(file, path, name)


def load_from(file: BinaryIO, path: Path, name: str = "input") -> NDArray[Any]:
    """The array of an open .npy file, from its beginning."""
    header = read_header(file, path, name)
    try:
        flat: NDArray[Any] = np.fromfile(file, header.dtype, math.prod(header.shape))
    except MemoryError:
        raise InvalidInput(f"{name}={path} does not fit into memory: release it in parts.") from None
    if flat.size != math.prod(header.shape):
        raise InvalidInput(f"{name}={path} ended before its last entry: leave it alone while it is read.")
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")


def mapped(path: Path, name: str = "data") -> NDArray[Any]:
    """The array of a .npy file, mapped into memory and not read yet."""
    with opened(path, name) as file:
        header = read_header(file, path, name)
        if not math.prod(header.shape):
            return np.empty(header.shape, header.dtype)
        order = "F" if header.fortran_order else "C"
        return np.memmap(file, header.dtype, "r", header.offset, header.shape, order)  # type: ignore[call-overload, no-any-return]
