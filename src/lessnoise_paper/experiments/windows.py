"""Which part of the world is a grid of 89 x 89 cells? The paper does not say, so windows are tried one by one.

Two numbers of the paper depend on it. Its mean losses (section 7) are smaller than the losses over all cells, so they
must be those of a part: of its *valid* cells, if about 300 are valid. Its map of the true counts (Figure 4) has a
largest count of "around 27". This module tells whether one window can give both.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise_paper.data.uber import WINDOW_BOUNDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 89
"""The paper divides latitude and longitude "into 89 disjoint intervals" each."""

SOHO, LAGUARDIA = (40.723, -74.003), (40.777, -73.873)
"""Places on the paper's maps, latitude first: its text sees "high volumes of pickups" around both."""

SMALL_COUNT = 30
"""A largest count up to this might be called "around 27"."""

VALID_CELLS = (290, 310)
"""Numbers of valid cells with which the expected losses are close to the paper's means, 1.5e4 and 5e4."""

_LATITUDES, _LONGITUDES = (7, 12), (12, 12)


@dataclass(frozen=True, slots=True)
class Windows:
    """What was found among many windows that hold Soho and LaGuardia Airport.

    ``fewest_cells`` is the least number of occupied cells where the largest count is at most ``small_count``, and
    ``least_largest`` the least of the largest counts where the occupied cells are between the two ``valid_cells``.
    """

    tried: int
    small_count: int
    fewest_cells: int
    valid_cells: tuple[int, int]
    least_largest: int


def try_windows(points: NDArray[np.float64]) -> Windows:
    """Lay the grid over windows from just around the two places up to the whole extent of the pickups."""
    (south, north), (west, east) = WINDOW_BOUNDS
    souths, norths = _towards(SOHO[0], south, _LATITUDES[0]), _towards(LAGUARDIA[0], north, _LATITUDES[1])
    wests, easts = _towards(SOHO[1], west, _LONGITUDES[0]), _towards(LAGUARDIA[1], east, _LONGITUDES[1])
    boxes = itertools.product(souths, norths, wests, easts)
    occupied, largest = np.array([_seen(points, *box) for box in boxes]).T
    few = (occupied >= VALID_CELLS[0]) & (occupied <= VALID_CELLS[1])
    return Windows(
        tried=len(occupied),
        small_count=SMALL_COUNT,
        fewest_cells=int(occupied[largest <= SMALL_COUNT].min()),
        valid_cells=VALID_CELLS,
        least_largest=int(largest[few].min()),
    )


def _towards(place: float, end: float, count: int) -> NDArray[np.float64]:
    """Edges from just beyond a place to the end of the pickups, close together near the place."""
    return place + (end - place) * np.linspace(0.02**0.5, 1.0, count) ** 2


def _seen(points: NDArray[np.float64], south: float, north: float, west: float, east: float) -> tuple[int, int]:
    """The number of occupied cells in a window, and the largest count."""
    low, high = np.array([south, west]), np.array([north, east])
    inside = points[((points >= low) & (points <= high)).all(axis=1)]
    cells = np.minimum(((inside - low) / (high - low) * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(cells[:, 0] * BINS + cells[:, 1])
    return int(np.count_nonzero(counts)), int(counts.max())
