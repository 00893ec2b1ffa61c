"""A table of counts as a map, north up."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import Normalize
    from numpy.typing import NDArray

MAP_COLOURS = "magma"
_CELL = 5  # pixels per cell
_EMPTY = (236, 234, 230)


def map_pixels(
    values: NDArray[np.float64], scale: Normalize, empty: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    """A pixel a cell; cells that are known to be empty are grey."""
    from matplotlib import colormaps

    colours = np.array(colormaps[MAP_COLOURS](scale(values), bytes=True))[..., :3]
    if empty is not None:
        colours[empty] = _EMPTY
    return colours[::-1]


def map_png_of(values: NDArray[np.float64], scale: Normalize, empty: NDArray[np.bool_] | None = None) -> bytes:
    """The map as a PNG, some pixels a cell."""
    from matplotlib.image import imsave

    pixels = map_pixels(values, scale, empty)
    buffer = io.BytesIO()
    imsave(buffer, np.repeat(np.repeat(pixels, _CELL, axis=0), _CELL, axis=1), format="png")
    return buffer.getvalue()
