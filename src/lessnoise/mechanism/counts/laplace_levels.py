"""The exact curve of several Laplace coordinates at once, each moved by the same amount."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.guarantees import Bracket

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID = 2**17
_ROUNDING = 1e-12  # of the Fourier transforms: absolute, and generous


@functools.lru_cache(maxsize=1024)
def repeated_laplace_delta(shift: float, repeats: int, epsilon: float) -> Bracket:
    """Delta at an epsilon for ``repeats`` Laplace coordinates of scale 1, each moved by ``shift``.

    The privacy loss of one coordinate is ``shift`` with probability 1/2, -``shift`` with probability e^(-shift)/2,
    and between them has density e^(-(shift - l)/2)/4. The sum of the losses is found on a grid, once with every loss
    rounded up and once down: E[(1 - e^(epsilon - loss))+] grows with the loss, so the two enclose it.

    >>> found = repeated_laplace_delta(0.5, 1, 0.2)
    >>> 1 - math.exp((0.2 - 0.5) / 2) in found
    True
    """
    if epsilon >= shift * repeats:  # perhaps only because the product was rounded down
        return Bracket(0.0, _ROUNDING)
    if repeats == 1:
        exact = -math.expm1(0.5 * (epsilon - shift))
        return Bracket(exact * (1.0 - 1e-14), exact * (1.0 + 1e-14))
    steps = max(_GRID // repeats, 64)
    step = 2.0 * shift / steps
    # P(loss <= -shift + i step) under the value's own distribution, for i = 0 .. steps.
    edges = -shift + step * np.arange(steps + 1)
    below = 0.5 * np.exp(0.5 * (edges - shift))
    below[-1] = 1.0
    masses = np.diff(below, prepend=0.0)
    upper = _expectation(masses, repeats, shift, step, epsilon)
    # Rounding down moves the mass of every cell to its lower edge; the atoms at both ends stay where they are.
    lowered = np.zeros_like(masses)
    lowered[0], lowered[-1] = masses[0], 0.5
    lowered[:-1] += np.concatenate([masses[1:-1], [masses[-1] - 0.5]])
    lower = _expectation(lowered, repeats, shift, step, epsilon)
    return Bracket(max(lower - _ROUNDING, 0.0), min(upper + _ROUNDING, 1.0))


def _expectation(masses: NDArray[np.float64], repeats: int, shift: float, step: float, epsilon: float) -> float:
    """E[(1 - e^(epsilon - S))+] for the sum S of independent losses on the grid."""
    length = (len(masses) - 1) * repeats + 1
    size = 1 << (length - 1).bit_length()
    total = np.fft.irfft(np.fft.rfft(masses, size) ** repeats, size)[:length]
    sums = -shift * repeats + step * np.arange(length)
    gain = -np.expm1(np.minimum(epsilon - sums, 0.0))
    return float(np.sum(total * gain))
