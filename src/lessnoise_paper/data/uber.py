"""Uber pickups in New York City, April 2014, published by FiveThirtyEight; real data, so nothing of it is kept here."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from lessnoise_paper.data.fetch import PublicFile, read_public

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

WINDOW_ROWS = 3_829
WINDOW = "4/1/2014 00:11 to 4/3/2014 23:57"
"""The window of Ji & Li 2024, case study I: exactly the first 3,829 rows of the file, which is ordered by base."""

WINDOW_BOUNDS = ((40.5802, 41.0214), (-74.4783, -73.4202))
"""The extent of these pickups, least and greatest latitude, then longitude, for the grid of the losses.

The paper does not say what it divides into 89 x 89 cells. Here 300 cells are occupied, and the expected losses over
them are close to the paper's mean losses, which is why we infer this window. Its largest count is 221.
"""

FIGURE_BOUNDS = ((40.70, 40.82), (-74.02, -73.86))
"""A box around Manhattan, for the maps. We infer it, too: its largest count is 27, as on the paper's map of the truth.

It has 3,454 of the 3,829 pickups in 1,063 occupied cells, over which the expected losses are 3.5 times the paper's
means.
"""

_SOURCE = "https://raw.githubusercontent.com/fivethirtyeight/uber-tlc-foil-response/master/uber-trip-data/"
_FULL = PublicFile(
    ("uber-raw-data-apr14.csv",),
    "4c92b95b9918e73ae84bade0bffef6e758e792c247469523130d3c1ad7b646e0",
    _SOURCE + "uber-raw-data-apr14.csv",
)
_FIRST = PublicFile(("uber-apr14-first3829.csv",), "8fa4316fbb9e4644b5f3aaa5533175aba278d23653ea8aee79fbc4d97f06c76e")


def uber_pickups(folder: str | os.PathLike[str] | None = None, *, window: bool = True) -> NDArray[np.float64]:
    """Pickups as rows (latitude, longitude): the paper's window, or all of April.

    The file comes from ``folder``, from the one that $LESSNOISE_DATA names, or from its public source, and is used
    only if its sha256 is right. For the window a file with the first 3,829 rows will do.
    """
    content = read_public("the Uber pickups", (_FIRST, _FULL) if window else (_FULL,), folder)
    rows = WINDOW_ROWS if window else None
    return np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, usecols=(1, 2), quotechar='"', max_rows=rows)
