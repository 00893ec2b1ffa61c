"""What the pictures share: colours of verdicts, quiet axes, rows of names, legends, notes, and maps of counts."""

from __future__ import annotations

import functools
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.report import GRID, Drawing, blank, style, svg

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

    Place = tuple[float, float]

VERDICT_COLOURS = {"holds": "#0077BB", "fails": "#CC3311", "not proved": "#BBBBBB"}
GREY, SOFT = "#777777", "#555555"
MAP_COLOURS, BOTH_WAYS = "magma", "RdBu_r"  # of counts, and of noise that goes both ways
_CELL = 5  # pixels per cell of a map
_EMPTY = {MAP_COLOURS: (28, 28, 32), BOTH_WAYS: (214, 212, 206)}  # dark under bright cells, light around dark ones
_DARKEST = 0.22  # of the colours of counts, so that every cell differs from an empty one


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


def count_scale(largest: float) -> Normalize:
    """Logarithmic colours from one to the largest count; what is less than one has the colour of one."""
    from matplotlib.colors import LogNorm

    return LogNorm(1.0, max(largest, 10.0), clip=True)


def both_ways(largest: float) -> Normalize:
    """Colours of values below and above zero, as far as the largest on either side; logarithmic beyond one."""
    from matplotlib.colors import SymLogNorm

    return SymLogNorm(1.0, vmin=-max(largest, 10.0), vmax=max(largest, 10.0), clip=True)


@functools.cache
def _colours(name: str, cut: bool) -> Colormap:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    whole = colormaps[name]
    return ListedColormap(whole(np.linspace(_DARKEST, 1.0, 256))) if cut else whole


def map_pixels(
    values: NDArray[np.float64],
    scale: Normalize,
    empty: NDArray[np.bool_] | None = None,
    colours: str = MAP_COLOURS,
) -> NDArray[np.uint8]:
    """A table of counts as a map, north up, a pixel a cell; cells that are known to be ``empty`` are grey."""
    if colours == MAP_COLOURS:
        values = np.maximum(values, 1.0)
    cut = empty is not None and colours == MAP_COLOURS
    pixels = np.array(_colours(colours, cut)(scale(values), bytes=True))[..., :3]
    if empty is not None:
        pixels[empty] = _EMPTY[colours]
    return pixels[::-1]


def map_png_of(
    values: NDArray[np.float64],
    scale: Normalize,
    empty: NDArray[np.bool_] | None = None,
    colours: str = MAP_COLOURS,
) -> bytes:
    """The map as a PNG, some pixels a cell."""
    from matplotlib.image import imsave

    pixels = map_pixels(values, scale, empty, colours)
    buffer = io.BytesIO()
    imsave(buffer, np.repeat(np.repeat(pixels, _CELL, axis=0), _CELL, axis=1), format="png")
    return buffer.getvalue()


def scale_svg(scale: Normalize, *, cut: bool = False, colours: str = MAP_COLOURS) -> Drawing:
    """The colour scale of some maps; ``cut`` if they have grey cells."""
    with style():
        figure = blank(5.2, 0.75)
        colour_bar(figure, figure.add_axes((0.08, 0.68, 0.84, 0.26)), scale, cut=cut, colours=colours)
        return svg(figure)


def colour_bar(figure: Figure, axes: Axes, scale: Normalize, *, cut: bool = False, colours: str = MAP_COLOURS) -> None:
    """A colour scale on some axes, with a few counts as its marks."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import FixedFormatter, FixedLocator

    cut = cut and colours == MAP_COLOURS
    bar = figure.colorbar(ScalarMappable(scale, _colours(colours, cut)), cax=axes, orientation="horizontal")
    marks = _marks(float(scale.vmax or 1.0)) if colours == MAP_COLOURS else _marks_both_ways(float(scale.vmax or 1.0))
    bar.locator, bar.formatter = FixedLocator(list(marks)), FixedFormatter(list(marks.values()))
    bar.update_ticks()
    bar.ax.minorticks_off()
    bar.set_label("pickups per cell" + (" (logarithmic)" if colours == MAP_COLOURS else " (logarithmic beyond 1)"))
    bar.outline.set_visible(False)


def _marks(largest: float) -> dict[float, str]:
    steps = (1, 3) if largest < 300.0 else (1,)
    places = sorted(float(step * 10**power) for power in range(9) for step in steps)
    found = {place: f"{place:,.0f}" for place in places if place < 0.7 * largest}
    return {**found, 1.0: "1 or less", largest: f"{largest:,.0f} or more"}


def _marks_both_ways(largest: float) -> dict[float, str]:
    powers = math.floor(math.log10(largest))
    chosen = sorted({powers, powers // 2})
    above = {10.0**power: f"$10^{{{power}}}$" for power in chosen if power > 0}
    below = {-place: f"$-{words[1:]}" for place, words in above.items()}
    return {**below, 0.0: "0", **above}
