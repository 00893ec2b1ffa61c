"""Floating-point variables from a release's words, for choices among the data that the exact engine does not make."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.noise import Sequence

    Array = NDArray[np.float64]


class Floats:
    """Exponential variables and signs, each from one word."""

    def __init__(self, words: Sequence) -> None:
        self.words = words

    def exponentials(self, count: int) -> Array:
        """-ln U with U of 53 bits in (0, 1]."""
        uniforms = ((self.words.words(count) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        return -np.log(uniforms)

    def signs(self, count: int) -> Array:
        """+1 or -1."""
        signs: Array = np.where(self.words.words(count) >> np.uint64(63), 1.0, -1.0)
        return signs
