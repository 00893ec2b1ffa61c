r"""Symmetric matrices as vectors: the upper triangle, with its off-diagonal entries times sqrt(2).

The map keeps lengths: |pack(B)| = |B|_F, since every off-diagonal entry stands for two. So a change x x^T - y y^T has
the same l2 size as a vector of d (d + 1)/2 entries as it has as a matrix of d^2, and noise for the vector serves both.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array


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


def _diagonal(size: int) -> NDArray[np.int64]:
    """Places of the diagonal in the packed vector."""
    steps = np.arange(size, 0, -1, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(steps)[:-1]])
