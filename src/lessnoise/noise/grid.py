"""The grid of the outputs, and what is refused. Proof: ``docs/theory/noise-engine.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from lessnoise.errors import InvalidInput

BITS = 8  # grid cells a standard deviation: between 2^8 and 2^9
_SMALLEST, _LARGEST = 2.0**-900, 2.0**900


@dataclass(frozen=True, slots=True)
class Grid:
    """Multiples of a power of two, chosen from public numbers alone: the noise's deviation and the output's type."""

    step: float
    single: bool = False

    @classmethod
    def of(cls, deviation: float, dtype: type[np.floating[Any]] | np.dtype[Any] = np.float64, bits: int = BITS) -> Grid:
        """2^floor(log2 deviation) 2^-bits. Rounding to it adds at most 2^-2*bits/12 of the noise's variance."""
        if not _SMALLEST <= deviation <= _LARGEST:
            raise InvalidInput(f"standard deviation={deviation:g} is out of range: rescale the value to units near 1.")
        single = np.dtype(dtype) == np.float32
        step = math.ldexp(1.0, math.frexp(deviation)[1] - 1 - bits)
        if single and not 2.0**-100 <= step <= 2.0**100:
            raise InvalidInput(f"standard deviation={deviation:g} is out of float32's range: pass a float64 value.")
        return cls(step, single)

    @property
    def largest_value(self) -> float:
        """In cells: a value beyond is refused."""
        return 2.0**23 if self.single else 2.0**52

    @property
    def largest_output(self) -> float:
        """In cells: an output beyond is moved to this end. Every multiple up to it is a number of the type."""
        return 2.0**24 if self.single else 2.0**53

    def refuse(self, shape: tuple[int, ...], place: int, value: float) -> NoReturn:
        """Say which value, at this place of a flat array, is not finite or too large."""
        where = ", ".join(str(i) for i in np.unravel_index(place, shape)) if shape else ""
        name, limit = f"value[{where}]" if where else "value", self.largest_value * self.step
        if not np.isfinite(value):
            raise InvalidInput(f"{name}={value} is not finite: clean or clip the value before release.")
        kind, other = ("float32", ", or pass float64") if self.single else ("float64", "")
        raise InvalidInput(
            f"{name}={value:g} exceeds {limit:g}, the most that {kind} holds on this noise's grid of {self.step:g}: "
            f"clip the value to a public bound{other}."
        )


BLOCK = 1 << 14  # values that share a stretch of the stream


def reserve(count: int) -> int:
    """Words for second words and further attempts of a block: 1.1% is used, so this many run out never (or 30 sd)."""
    return count // 32 + 64
