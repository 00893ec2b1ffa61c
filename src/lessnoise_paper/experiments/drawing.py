"""What the pictures share: colours of verdicts, quiet axes, rows of names, legends, notes, and maps of counts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.report import GRID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    Place = tuple[float, float]

VERDICT_COLOURS = {"holds": "#0077BB", "fails": "#CC3311", "not proved": "#BBBBBB"}
GREY, SOFT = "#777777", "#555555"
MAP_COLOURS = "magma"
_CELL = 5  # pixels per cell of a map
_EMPTY = (236, 234, 230)


def quiet_axes(axes: Axes, *, log: str = "", grid: str = "both") -> None:
    """Logarithmic where asked, a light grid behind everything."""
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(axis=grid, color=GRID, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def rows_of(
    axes: Axes, labels: Sequence[str], *, size: float | None = None, log: str = "x", line: bool = False
) -> None:
    """A row for each label, from the top; values run along a quiet axis. ``line`` keeps the line beside the labels."""
    looks: dict[str, Any] = {} if size is None else {"fontsize": size}
    axes.set_yticks(range(len(labels)), labels, **looks)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(line)
    quiet_axes(axes, log=log, grid="x")


def mark(label: str, marker: str = "", **looks: Any) -> Line2D:  # noqa: ANN401
    """An entry of a legend: a marker without a line, or a line without a marker; "o" alone is an open circle."""
    from matplotlib.lines import Line2D

    if marker:
        open_circle = {"markerfacecolor": "white", "markeredgecolor": GREY} if marker == "o" else {"color": GREY}
        looks = {"linestyle": "", "marker": marker, **open_circle, **looks}
    return Line2D([], [], label=label, **{"color": GREY, **looks})


def legend_above(figure: Figure, *handles: Any) -> None:  # noqa: ANN401
    """Entries in one line above the axes."""
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=9)


def legend_below(figure: Figure, axes: Axes, **looks: Any) -> None:  # noqa: ANN401
    """What is drawn on some axes, below them all."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, **{"loc": "lower center", "ncols": 3, "frameon": False, **looks})


def note(axes: Axes, words: str, at: Place, offset: Place, coords: Any = "data", **looks: Any) -> None:  # noqa: ANN401
    """Words some points away from a place."""
    axes.annotate(words, at, offset, coords, "offset points", **{"fontsize": 8.5, **looks})


def map_pixels(
    values: NDArray[np.float64], scale: Normalize, empty: NDArray[np.bool_] | None = None
) -> NDArray[np.uint8]:
    """A table of counts as a map, north up, a pixel a cell; cells that are known to be empty are grey."""
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
