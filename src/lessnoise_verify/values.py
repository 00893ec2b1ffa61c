"""A released array, read from the bytes of its .npy file."""

from __future__ import annotations

import ast
import math
import struct
from typing import TYPE_CHECKING

from lessnoise_verify.document import Refuted, Unreadable

if TYPE_CHECKING:
    from fractions import Fraction

_FORMS = {"<f8": ("d", 8), "<f4": ("f", 4), "<i8": ("q", 8), "<i4": ("i", 4)}


def check(content: bytes, shape: tuple[int, ...], grid: Fraction | None) -> None:
    """Refuted unless the array has this shape, and every entry is a finite multiple of the grid."""
    form, found, start = _header(content)
    if found != shape:
        raise Refuted(f"the value has the shape {found}, the mechanism {shape}.")
    code, size = _FORMS[form]
    if len(content) - start != size * math.prod(shape):
        raise Unreadable("the value's file has not as many entries as its header says.")
    step = 1 << 16
    for begin in range(start, len(content), size * step):
        part = content[begin : begin + size * step]
        for entry in struct.unpack(f"<{len(part) // size}{code}", part):
            if not math.isfinite(entry):
                raise Refuted("the value has an entry that is not finite.")
            if grid is not None and math.fmod(entry, float(grid)) != 0.0:
                raise Refuted(f"the value has an entry that is no multiple of {float(grid):g}.")


def _header(content: bytes) -> tuple[str, tuple[int, ...], int]:
    try:
        if content[:6] != b"\x93NUMPY" or content[6] not in (1, 2, 3):
            raise ValueError
        width = 2 if content[6] == 1 else 4
        length = int.from_bytes(content[8 : 8 + width], "little")
        start = 8 + width + length
        if length > 10**4:
            raise ValueError
        header = ast.literal_eval(content[8 + width : start].decode("latin1").strip())
        form, shape = header["descr"], header["shape"]
        if form not in _FORMS or header["fortran_order"] or not all(type(size) is int for size in shape):
            raise ValueError
    except (ValueError, SyntaxError, KeyError, TypeError, IndexError, RecursionError, MemoryError):
        raise Unreadable("the value is no .npy file of little-endian numbers in C order.") from None
    return form, tuple(shape), start
