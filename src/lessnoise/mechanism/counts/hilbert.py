"""The order of a square's cells along the Hilbert curve, so that neighbours in the order are neighbours on the map."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@functools.lru_cache(maxsize=4)
def hilbert_order(side: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the cells of a side x side square along the curve; the side is a power of 2.

    >>> [axis.tolist() for axis in hilbert_order(2)]
    [[0, 0, 1, 1], [0, 1, 1, 0]]
    """
    x, y = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    half = 1
    while half < side:
        # Four copies of the smaller curve: the first and last turned, so that the ends meet.
        x, y = (
            np.concatenate([y, x, half + x, 2 * half - 1 - y]),
            np.concatenate([x, half + y, half + y, half - 1 - x]),
        )
        half *= 2
    x.setflags(write=False)
    y.setflags(write=False)
    return x, y
