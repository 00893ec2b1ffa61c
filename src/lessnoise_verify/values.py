"""A released array, read from its .npy file in one pass."""

from __future__ import annotations

import ast
import hashlib
import math
import struct
from typing import TYPE_CHECKING, BinaryIO, Final

from lessnoise_verify.document import Refuted, Unreadable

if TYPE_CHECKING:
    from fractions import Fraction

_FORMS: Final = {"<f8": ("d", 8), "<f4": ("f", 4), "<i8": ("q", 8), "<i4": ("i", 4)}
_MOST: Final = 2 * 10**7  # entries of which each is looked at; of more, the hash alone
_PART: Final = 1 << 20


def digest(file: BinaryIO) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    while part := file.read(_PART):
        found.update(part)
    return found.hexdigest()


def check(file: BinaryIO, shape: tuple[int, ...], grid: Fraction | None) -> bool:
    """Refuted unless the array has this shape and every entry is a finite multiple of the grid.

    False if there are so many entries that only their number was checked.
    """
    file.seek(0)
    form, found = _header(file)
    if found != shape:
        raise Refuted(f"the value has the shape {found}, but the mechanism has {shape}.")
    code, size = _FORMS[form]
    start, count = file.tell(), math.prod(shape)
    if file.seek(0, 2) - start != size * count:
        raise Unreadable("the value's file does not have as many entries as its header says.")
    if count > _MOST:
        return False
    file.seek(start)
    step = float(grid or 0)
    while part := file.read(_PART):
        for entry in struct.unpack(f"<{len(part) // size}{code}", part):
            if not math.isfinite(entry):
                raise Refuted("the value has an entry that is not finite.")
            if step and math.fmod(entry, step) != 0.0:
                raise Refuted(f"the value has an entry that is not a multiple of {step:g}.")
    return True


def _header(file: BinaryIO) -> tuple[str, tuple[int, ...]]:
    try:
        magic = file.read(8)
        if magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2, 3):
            raise ValueError
        length = int.from_bytes(file.read(2 if magic[6] == 1 else 4), "little")
        if length > 10**4:
            raise ValueError
        header = ast.literal_eval(file.read(length).decode("latin1").strip())
        form, shape = header["descr"], header["shape"]
        if form not in _FORMS or header["fortran_order"] or not all(type(size) is int for size in shape):
            raise ValueError
    except (ValueError, SyntaxError, KeyError, TypeError, IndexError, RecursionError, MemoryError):
        raise Unreadable("the value is not a .npy file of little-endian numbers in C order.") from None
    return form, tuple(shape)
