"""Integer noise by inversion: a sorted table of digits tells the magnitude, one further bit the sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.noise.device.stream import ChaChaStream

    Digits = NDArray[np.int64]

TABLE_BITS = 63  # digits of a word beside its sign
LONGEST_TABLE = 1 << 16  # entries


@dataclass(frozen=True, eq=False)
class IntegerTable:
    """Digits below ``first[k]`` are a magnitude of at most k for certain, those above ``last[k]`` a larger one.

    ``resolve(digits, bits)`` gives the magnitude of a uniform number that begins with these digits, or None where there
    are too few of them.
    """

    first: Digits
    last: Digits
    resolve: Callable[[int, int], int | None]

    @classmethod
    def of(cls, first: list[int], last: list[int], resolve: Callable[[int, int], int | None]) -> IntegerTable:
        """From the digits of 63-bit words."""
        return cls(np.array(first, dtype=np.int64), np.array(last, dtype=np.int64), resolve)

    @property
    def rounds(self) -> int:
        """Halvings of a search."""
        return int(self.last.size).bit_length()

    def exactly(self, stream: ChaChaStream, place: int) -> int:
        """The magnitude of one value, from as many digits as it takes."""
        digits, bits, level = stream.word(place, 0) >> 1, TABLE_BITS, 0
        while True:
            level += 1
            digits, bits = digits << 64 | stream.word(place, level), bits + 64
            found = self.resolve(digits, bits)
            if found is not None:
                return found
