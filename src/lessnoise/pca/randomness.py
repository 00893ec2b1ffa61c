"""The draws that the samplers of components need, from the same sources as the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.mechanism.sampling import NumpySource, SecureSource, Source

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Source", "source_of"]


def source_of(rng: np.random.Generator | None) -> Source:
    """Cryptographic randomness, or a caller's generator."""
    generator = validation.generator(rng)
    return SecureSource() if generator is None else NumpySource(generator)
