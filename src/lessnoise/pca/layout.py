r"""What a private covariance releases, as one vector, and how far one individual can move it.

For rows x with |x| <= c the vector holds

- the Gram matrix sum x x^T, packed so that lengths are kept (:func:`pack`),
- a c sum x, if the covariance is taken around the mean (a = ``MEAN_WEIGHT``),
- b c^2 n, if individuals may join or leave, so that n is private (b = ``COUNT_WEIGHT``),
- b c^2 times the number of clipped rows, if asked for.

All of it gets noise of one size in one release. **Add/remove**: a row changes the vector by
c^2 sqrt(1 + a^2 + b^2 + ...) at most. **Replace**: take s = a c/sqrt(2) and u = (x, s), v = (y, s). Then
|u u^T - v v^T|_F^2 = |x x^T - y y^T|_F^2 + a^2 c^2 |x - y|^2, which is |u|^4 + |v|^4 - 2 (u.v)^2 <= 2 (c^2 + s^2)^2:
the change is sqrt(2) c^2 (1 + a^2/2) at most.

**Rounding.** The moments are sums of integers, exact up to 2^53 units of the grid and rounded towards 0 beyond, by less
than 2^-52 of themselves; a product with a weight is off by 2^-53 of itself. So each entry of the vector is off by
3 2^-53 of itself, and the vector of n rows, at most n times as long as that of one, by 3 2^-53 n of the latter.
Twice that, for two neighbours of at most ``rows`` rows, is added to the sensitivity, and more rows are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import Request
from lessnoise.pca.bounded_rows import Moments

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray


MEAN_WEIGHT = 0.4 * math.sqrt(2.0)
COUNT_WEIGHT = 0.1
MOST_ROWS = 1 << 30
_ROUND_UP = 1.0 + 1e-11  # of the formulas and the weights: a few units of 2^-53 each
_LOST = 6.1 * 2.0**-53  # for each row of two neighbours


@dataclass(frozen=True)
class Layout:
    """Which moments are released, for at most ``rows`` rows of ``features`` entries and norm at most ``norm``."""

    features: int
    norm: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    center: bool = True
    count_clipped: bool = False
    rows: int = 1 << 20

    @property
    def counted(self) -> bool:
        """Whether the number of rows is private, and so part of the release."""
        return self.neighbours is Neighbours.ADD_REMOVE

    @property
    def size(self) -> int:
        """Number of released entries."""
        extra = self.features * self.center + self.counted + self.count_clipped
        return entries(self.features) + extra

    @property
    def sensitivity(self) -> float:
        """Largest l2 change of the packed moments by one individual.

        >>> round(Layout(3, 2.0, center=False).sensitivity, 6)  # c^2 sqrt(1 + 0.01)
        4.01995
        >>> round(Layout(3, 2.0, Neighbours.REPLACE, center=False).sensitivity, 6)  # c^2 sqrt(2)
        5.656854
        """
        mean = MEAN_WEIGHT**2 * self.center
        clipped = COUNT_WEIGHT**2 * self.count_clipped
        joined = 1.0 + mean + COUNT_WEIGHT**2 * self.counted + clipped
        own = joined if self.counted else 2.0 * (1.0 + 0.5 * mean) ** 2 + clipped
        return self.norm**2 * (math.sqrt(own) + self.rows * _LOST * math.sqrt(joined)) * _ROUND_UP

    @property
    def l1_sensitivity(self) -> float:
        """Largest l1 change: of the triangle c^2 (1 + (d - 1)/sqrt(2)), when all entries of a row are equal."""
        triangle = 1.0 + (self.features - 1) / math.sqrt(2.0)
        mean = MEAN_WEIGHT * math.sqrt(self.features) * self.center
        counts = COUNT_WEIGHT * (self.counted + self.count_clipped)
        joined = triangle + mean + counts
        own = joined if self.counted else 2.0 * triangle + 2.0 * mean + counts
        return self.norm**2 * (own + self.rows * _LOST * joined) * _ROUND_UP

    def request(self, epsilon: float, delta: float) -> Request:
        """What a mechanism of the catalogue is asked for."""
        return Request(
            epsilon=epsilon,
            delta=delta,
            sensitivity=self.sensitivity,
            shape=(self.size,),
            neighbours=self.neighbours,
            l1_sensitivity=self.l1_sensitivity,
        )

    def check(self, moments: Moments) -> None:
        """Refuse more rows than the sensitivity is stated for."""
        if moments.count > self.rows:
            raise InvalidInput(f"rows={self.rows} is the most that a covariance is made from: pass a part of the data.")

    def pack(self, moments: Moments) -> Array:
        """The vector to release."""
        self.check(moments)
        parts = [pack(moments.gram)]
        if self.center:
            parts.append(MEAN_WEIGHT * self.norm * moments.sums)
        if self.counted:
            parts.append(np.array([COUNT_WEIGHT * self.norm**2 * moments.count]))
        if self.count_clipped:
            parts.append(np.array([COUNT_WEIGHT * self.norm**2 * moments.clipped]))
        return np.concatenate(parts)

    def unpack(self, released: Array, public_count: float) -> Moments:
        """The moments in a released vector; ``public_count`` is used only where the number of rows is public."""
        values, place = released, entries(self.features)
        gram = unpack(values[:place])
        sums = np.zeros(self.features)
        if self.center:
            sums = values[place : place + self.features] / (MEAN_WEIGHT * self.norm)
            place += self.features
        count = public_count
        if self.counted:
            count = max(float(values[place]) / (COUNT_WEIGHT * self.norm**2), 1.0)
            place += 1
        clipped = math.nan
        if self.count_clipped:
            clipped = min(max(float(values[place]) / (COUNT_WEIGHT * self.norm**2), 0.0), count)
        return Moments(count, clipped, sums, gram)

    def noise_floor(self, deviation: float, count: float) -> float:
        """How large the top eigenvalue of the noise in the covariance is, about, if all entries deviate so much.

        Off the diagonal the noise deviates by deviation/sqrt(2), and a symmetric random matrix of such entries has its
        spectrum on a half-circle of radius sqrt(2 d) deviation (Wigner 1955).
        """
        return math.sqrt(2.0 * self.features) * deviation / max(count, 1.0)


# Symmetric matrices as vectors: the upper triangle, with its off-diagonal entries times sqrt(2). The map keeps lengths:
# |pack(B)| = |B|_F, since every off-diagonal entry stands for two. So a change x x^T - y y^T has the same l2 size as a
# vector of d (d + 1)/2 entries as it has as a matrix of d^2, and noise for the vector serves both.


def entries(features: int) -> int:
    """Number of entries of the upper triangle, with the diagonal: d (d + 1)/2."""
    return features * (features + 1) // 2


def pack(matrix: Array, weight: float = math.sqrt(2.0)) -> Array:
    """The upper triangle row by row, the off-diagonal entries times ``weight``.

    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]]), weight=1.0).tolist()
    [1.0, 2.0, 3.0]
    """
    size = len(matrix)
    vector: Array = matrix[np.triu_indices(size)] * weight
    vector[_diagonal(size)] = np.diagonal(matrix)
    return vector


def unpack(vector: Array, weight: float = math.sqrt(2.0)) -> Array:
    """The inverse of :func:`pack`.

    >>> unpack(pack(np.eye(3))).tolist() == np.eye(3).tolist()
    True
    """
    size = (math.isqrt(8 * len(vector) + 1) - 1) // 2
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = vector / weight
    matrix += matrix.T
    matrix[np.diag_indices(size)] = vector[_diagonal(size)]
    return matrix


def _diagonal(size: int) -> IntArray:
    """Places of the diagonal in the packed vector."""
    steps = np.arange(size, 0, -1, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)[:-1]])
