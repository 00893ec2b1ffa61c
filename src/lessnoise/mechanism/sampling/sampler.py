"""From a noise description and a source of randomness to one noise array."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.law import Laplace, Law, Radial

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.mechanism.sampling.sources import Source

    Array = NDArray[np.float64]


@functools.singledispatch
def draw(law: Law, shape: tuple[int, ...], source: Source) -> Array:
    """One noise array; each law registers its own. A matrix or tensor is a reshaped vector, as in the paper."""
    raise TypeError(f"no sampler is known for {type(law).__name__}")


@functools.singledispatch
def perturb(law: Law, value: Array | NDArray[np.int64], source: Source) -> Array:
    """A value with noise; laws whose noise depends on the value, as DAWA's does, register their own."""
    noisy = draw(law, value.shape, source)
    noisy += value
    return noisy


@draw.register(Laplace)
def _(law: Laplace, shape: tuple[int, ...], source: Source) -> Array:
    flat = law.scale * source.exponentials(math.prod(shape))
    flat *= source.signs(math.prod(shape))
    return flat.reshape(shape)


@draw.register(Radial)
def _(law: Radial, shape: tuple[int, ...], source: Source) -> Array:
    dimension = math.prod(shape)
    if law.is_gaussian(dimension):
        flat = source.normals(dimension)
        flat *= law.scale * math.sqrt(0.5)
    else:
        flat = _radial(law, dimension, source)
    return flat.reshape(shape)


def _radial(law: Radial, dimension: int, source: Source) -> Array:
    """A uniform direction, which is a normalised Gaussian vector (paper, Theorem 6, r = 1), times the radius."""
    vector = source.normals(dimension)
    vector *= _radius(law, source) / np.linalg.norm(vector)
    return vector


def _radius(law: Radial, source: Source) -> float:
    if law.k == 1.0 and law.p == 2.0:
        # R1SMG: n = v sqrt(sigma_*) z, z ~ N(0, 1) (paper, equation for the random rank-1 noise).
        return law.scale * math.sqrt(0.5) * float(source.normals(1)[0])
    # R = s G^(1/p), G ~ Gamma(k/p).
    return law.scale * math.exp(source.log_gamma_variate(law.k / law.p) / law.p)
