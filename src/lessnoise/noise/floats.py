"""Floating-point variables from a release's words, for what the exact engine does not draw.

That is choices among the data, directions and products of matrices. Their rounding is not covered; certificates say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.noise import Sequence

    Array = NDArray[np.float64]


class Floats:
    """Exponential and normal variables and signs, each from one word."""

    def __init__(self, words: Sequence) -> None:
        self.words = words

    def exponentials(self, count: int) -> Array:
        """-ln U with U of 53 bits in (0, 1]."""
        uniforms = ((self.words.words(count) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        return -np.log(uniforms)

    def normals(self, count: int) -> Array:
        """Independent N(0, 1) variables, by Box and Muller (1958), from as many words; two more if the count is odd.

        >>> import numpy as np
        >>> from lessnoise.noise import Stream
        >>> values = Floats(Stream.of(np.random.default_rng(0)).claim().sequence()).normals(10_001)
        >>> len(values), bool(abs(values.mean()) < 0.05), bool(abs(values.std() - 1.0) < 0.05)
        (10001, True, True)
        """
        pairs = (count + 1) // 2
        radii = np.sqrt(2.0 * self.exponentials(pairs))
        angles = (self.words.words(pairs) >> np.uint64(11)).astype(np.float64) * (2.0 * np.pi * 2.0**-53)
        return np.concatenate([radii * np.cos(angles), radii * np.sin(angles)])[:count]

    def signs(self, count: int) -> Array:
        """+1 or -1."""
        signs: Array = np.where(self.words.words(count) >> np.uint64(63), 1.0, -1.0)
        return signs
