"""A batch of releases, as attacks look at it: where the outputs lie, seen from the value and from its neighbour."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array


class Outputs:
    """``array`` holds one release in each row. Everything else is computed when an attack asks for it, once.

    >>> batch = Outputs(np.array([[3.0, 4.0]]), value=np.zeros(2), neighbour=np.array([3.0, 0.0]))
    >>> batch.distance, batch.other_distance
    (array([5.]), array([4.]))
    """

    def __init__(self, array: Array, value: Array, neighbour: Array) -> None:
        self.array, self.value, self.neighbour = array, value, neighbour

    @functools.cached_property
    def noise(self) -> Array:
        """Output less value, flattened: the noise, if the value was released. Shape (releases, entries)."""
        return np.subtract(self.array, self.value).reshape(len(self.array), -1)

    @functools.cached_property
    def shift(self) -> Array:
        """Neighbour less value, flattened. Output less neighbour is ``noise - shift``."""
        return (self.neighbour - self.value).ravel()

    def against(self, direction: Array) -> Array:
        """Scalar product of each noise with a vector; without BLAS, whose threads would compete with the workers'."""
        used = np.flatnonzero(direction)
        noise = self.noise[:, used] if 4 * len(used) < len(direction) else self.noise
        product: Array = np.einsum("ij,j->i", noise, direction[used] if noise is not self.noise else direction)
        return product

    @functools.cached_property
    def along(self) -> Array:
        """Scalar product of noise and shift."""
        return self.against(self.shift)

    @functools.cached_property
    def distance(self) -> Array:
        """From the output to the value."""
        squared: Array = np.einsum("ij,ij->i", self.noise, self.noise)
        return np.sqrt(squared)

    @functools.cached_property
    def other_distance(self) -> Array:
        """From the output to the neighbour: |n|^2 - 2 n.v + |v|^2."""
        squared = self.distance**2 - 2.0 * self.along + float(np.sum(self.shift**2))
        return np.sqrt(np.maximum(squared, 0.0))
