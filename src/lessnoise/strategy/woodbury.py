"""The inverse of X = diag(d)^2 + B^T B for a few rows B, without a matrix of all cells (Woodbury).

With T = B diag(d)^-1 and K = I + T T^T, X^-1 = diag(d)^-1 (I - T^T K^-1 T) diag(d)^-1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.strategy.squares import Squares


class Woodbury:
    """X^-1 for the diagonal d (n,) and the rows B (p, n), p = 0 allowed.

    >>> Woodbury(np.ones(2), np.ones((1, 2))).solve(np.array([3.0, 0.0])).round(12).tolist()
    [2.0, -1.0]
    """

    def __init__(self, diagonal: Array, rows: Array) -> None:
        self.diagonal = diagonal
        self.scaled = rows / diagonal
        kernel = self.scaled @ self.scaled.T
        kernel[np.diag_indices(len(rows))] += 1.0
        self.inverse: Array = np.asarray(np.linalg.inv(kernel), dtype=np.float64) if len(rows) else kernel

    def solve(self, values: Array) -> Array:
        """V X^-1, for rows V."""
        scaled = values / self.diagonal
        if len(self.scaled):
            scaled = scaled - (scaled @ self.scaled.T) @ self.inverse @ self.scaled
        return np.asarray(scaled / self.diagonal)

    def trace(self, squares: Squares) -> float:
        """tr(G X^-1)."""
        total = float((squares.diagonal / self.diagonal**2).sum())
        if not len(self.scaled):
            return total
        rows = self.scaled / self.diagonal
        return total - float(np.vdot(self.inverse, squares.times(rows) @ rows.T))

    def slope(self, squares: Squares) -> tuple[Array, Array]:
        """diag(X^-1 G X^-1) and B X^-1 G X^-1: the slopes are -2 d and -2 times these."""
        # B X^-1 = K^-1 T diag(d)^-1, as T (I - T^T K^-1 T) = K^-1 T.
        d, t = self.diagonal, self.scaled
        reduced = self.inverse @ t
        half = squares.times(reduced / d) / d  # R H for H = diag(d)^-1 G diag(d)^-1
        inner = half @ t.T
        whole = half - inner @ reduced  # R H M, M = I - T^T R
        # diag(M H M) = diag(H) - 2 diag(T^T R H) + diag(T^T R H R^T T)
        own = squares.diagonal / d**2 - (t * (half + whole)).sum(axis=0)
        return own / d**2, whole / d
