"""Immutable, hashable building blocks of matrix laws: a public matrix, and a list of deviations."""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from lessnoise._common import Array


_BLOCK = 256
_ROUNDING = 2.0**-52


class FrozenMatrix:
    """A finite float64 matrix that cannot change; equal and hashed by content.

    >>> matrix = FrozenMatrix([[1, 0], [0, 1]])
    >>> matrix == FrozenMatrix.from_dict(matrix.to_dict()), matrix.shape
    (True, (2, 2))
    """

    __slots__ = ("_array", "_defect", "_digest")

    def __init__(self, values: ArrayLike, name: str = "matrix") -> None:
        try:
            given = np.asarray(values)
        except ValueError as error:
            raise InvalidInput(f"{name} is not a rectangular array ({error}): pass a NumPy matrix.") from None
        if given.ndim != 2 or 0 in given.shape:
            raise InvalidInput(f"{name}.shape={given.shape} is not that of a matrix: pass a two-dimensional array.")
        checked = validation.array(given, given.shape, name)
        # An array over a bytes object can never be made writable.
        frozen = np.frombuffer(checked.astype("<f8", copy=False).tobytes(), dtype="<f8")
        self._array: Array = frozen.reshape(given.shape)
        self._digest = hashlib.sha256(repr(given.shape).encode() + self._array.data).digest()
        self._defect: float | None = None

    @property
    def array(self) -> Array:
        """The values, read-only."""
        return self._array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._array.shape[0], self._array.shape[1]

    @property
    def digest(self) -> str:
        """SHA-256 of shape and bytes, in hexadecimal."""
        return self._digest.hex()

    def orthonormality_defect(self) -> float:
        """Proved bound of ||W^T W - I|| in the spectral norm: its Frobenius norm and the rounding of W^T W.

        Every singular value of W then lies between sqrt(1 - defect) and sqrt(1 + defect).
        """
        if self._defect is None:
            columns, total = self.shape[1], 0.0
            for start in range(0, columns, _BLOCK):
                stop = min(start + _BLOCK, columns)
                gram = self._array.T @ self._array[:, start:stop]
                gram[np.arange(start, stop), np.arange(stop - start)] -= 1.0
                total += float(np.vdot(gram, gram))
            # |fl(W^T W) - W^T W| <= m u |W|^T |W|, and || |W|^T |W| || <= ||W||_F^2.
            mass = float(np.vdot(self._array, self._array))
            self._defect = math.sqrt(total) * (1.0 + 1e-9) + 0.5 * _ROUNDING * self.shape[0] * mass * (1.0 + 1e-6)
        return self._defect

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenMatrix) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"FrozenMatrix({self.shape[0]}x{self.shape[1]}, sha256={self.digest[:12]})"

    def __reduce__(self) -> tuple[type[FrozenMatrix], tuple[Array]]:
        return FrozenMatrix, (np.array(self._array),)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the exact bytes, little-endian, row by row."""
        return {"shape": list(self.shape), "float64": base64.b64encode(self._array.data).decode("ascii")}

    @classmethod
    def from_dict(cls, values: dict[str, Any], name: str = "matrix") -> FrozenMatrix:
        """The inverse of :meth:`to_dict`."""
        values = validation.fields(values, ("shape", "float64"), name)
        shape = validation.shape(values["shape"], f"{name}.shape")
        try:
            raw = base64.b64decode(validation.text(f"{name}.float64", values["float64"]), validate=True)
        except binascii.Error as error:
            raise InvalidInput(f"{name}.float64 is not base64 ({error}): restore the stored description.") from None
        if len(raw) != 8 * math.prod(shape):
            raise InvalidInput(
                f"{name}.float64 has {len(raw)} bytes, but shape={shape} needs {8 * math.prod(shape)}: "
                "restore the stored description."
            )
        return cls(np.frombuffer(raw, dtype="<f8").reshape(shape), name)


@dataclass(frozen=True, slots=True)
class Deviations:
    """Positive standard deviations, one for each direction, stored as runs of equal values.

    >>> Deviations.of([2, 2, 2, 5])
    Deviations(values=(2.0, 5.0), counts=(3, 1))
    >>> Deviations.constant(0.5, 2400).size
    2400
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        given, sizes = self.values, self.counts
        for name, part in (("values", given), ("counts", sizes)):
            if not isinstance(part, (list, tuple)):
                raise InvalidInput(f"{name}={shown(part)} is not a list: pass one.")
        if len(given) != len(sizes):
            raise InvalidInput(
                f"values and counts have lengths {len(given)} and {len(sizes)}: pass as many counts as values."
            )
        values: list[float] = []
        counts: list[int] = []
        for value, count in zip(given, sizes, strict=True):
            checked = validation.positive("deviation", value)
            size = validation.whole_number("count", count)
            if values and values[-1] == checked:
                counts[-1] += size
            else:
                values.append(checked)
                counts.append(size)
        validation.shape(sum(counts), "counts in all")
        settle(self, values=tuple(values), counts=tuple(counts))

    @classmethod
    def of(cls, values: ArrayLike | Deviations, name: str = "deviations") -> Deviations:
        """From one value a direction; runs are found."""
        if isinstance(values, Deviations):
            return values
        array = vector(values, name)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(array)) + 1])
        counts = np.diff(np.append(starts, array.size))
        return cls(tuple(array[starts].tolist()), tuple(counts.tolist()))

    @classmethod
    def constant(cls, value: float, size: int) -> Deviations:
        """The same value in every direction."""
        return cls((value,), (size,))

    @property
    def size(self) -> int:
        """Number of directions."""
        return sum(self.counts)

    @property
    def smallest(self) -> float:
        """The least deviation, which sets the privacy."""
        return min(self.values)

    @property
    def is_constant(self) -> bool:
        """Whether all directions have the same deviation."""
        return len(self.values) == 1

    def array(self) -> Array:
        """One value a direction."""
        return np.repeat(np.asarray(self.values), self.counts)

    def scaled(self, factor: float) -> Deviations:
        """All deviations times a factor."""
        return Deviations(tuple(factor * value for value in self.values), self.counts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"values": list(self.values), "counts": list(self.counts)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Deviations:
        """The inverse of :meth:`to_dict`."""
        return cls(**validation.members(cls, values))


def vector(values: ArrayLike | Sequence[float], name: str) -> Array:
    """A vector of finite positive numbers, at least one."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise InvalidInput(f"{name} is not a vector ({error}): pass a list of numbers.") from None
    if given.ndim != 1 or given.size == 0:
        raise InvalidInput(f"{name}.shape={given.shape} is not that of a vector: pass a list of numbers.")
    array = validation.array(given, given.shape, name)
    if not (array > 0.0).all():
        position = int(np.flatnonzero(array <= 0.0)[0])
        raise InvalidInput(f"{name}[{position}]={array[position]:g} must be above 0: pass positive numbers.")
    return array
