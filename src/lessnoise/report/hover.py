"""Values that appear when the pointer rests on a picture: invisible shapes with a title, laid over an SVG."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from lessnoise import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_APART = 7.0  # points between two spots of one line, at the least
_RADIUS = 5.0
_CLOUD = 200  # points without a line: more of them are a cloud, whose single values say nothing
_INCH = 72.0  # points


class _Spot(NamedTuple):
    """A place of a picture in points from its lower left corner, the half sizes of its shape, and what it says."""

    x: float
    y: float
    words: str
    size: tuple[float, float] | None = None


def with_values(image: str, figure: Figure) -> str:
    """An SVG whose lines and bars tell their values, as titles that browsers show; ``figure`` is what it was drawn of.

    >>> from matplotlib.figure import Figure
    >>> figure = Figure(figsize=(1, 1))
    >>> _ = figure.add_axes((0, 0, 1, 1), xlabel="M", ylabel="loss").plot([1, 2], [3, 4], label="Laplace")
    >>> with_values("<svg></svg>", figure).count("<title>Laplace: M 1, loss 3</title>")
    1
    """
    scale = _INCH / figure.dpi
    height = figure.get_figheight() * _INCH
    rows: dict[int, str] = {}
    shapes = []
    entries = _entries(figure)
    for axes in _panels(figure):
        if not axes.axison or hasattr(axes, "get_zlim"):
            continue
        rows = _rows(axes) or rows
        for spot in _spots(axes, rows if axes.yaxis_inverted() else {}, entries):
            x, y = scale * spot.x, height - scale * spot.y
            shapes.append(_shape(x, y, spot, scale))
    return image.replace("</svg>", "".join(shapes) + "</svg>") if shapes else image


def _panels(figure: Figure) -> Iterator[Axes]:
    for axes in figure.axes:
        yield axes
        yield from cast("list[Axes]", axes.child_axes)


def _shape(x: float, y: float, spot: _Spot, scale: float) -> str:
    if spot.size is None:
        place = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:g}"'
        name = "circle"
    else:
        wide, high = (scale * half for half in spot.size)
        place = f'<rect x="{x - wide:.1f}" y="{y - high:.1f}" width="{2 * wide:.1f}" height="{2 * high:.1f}"'
        name = "rect"
    title = f"<title>{escape(spot.words.replace('$', ''), quote=False)}</title>"
    return f'{place} class="value" fill="none" pointer-events="all">{title}</{name}>\n'


def _rows(axes: Axes) -> dict[int, str]:
    """The names of rows that run from the top, if the axes have such."""
    if not axes.yaxis_inverted():
        return {}
    labels = [label.get_text().replace("\n", ", ") for label in axes.get_yticklabels()]
    return {round(place): label for place, label in zip(axes.get_yticks(), labels, strict=False) if label}


def _entries(figure: Figure) -> dict[str, str]:
    """What legends of axes call the lines, up to a colon, by the lines' own labels."""
    found: dict[str, str] = {}
    for axes in figure.axes:
        labels = axes.get_legend_handles_labels()[1]
        legend = axes.get_legend()
        shown = [] if legend is None else [entry.get_text().split(":")[0] for entry in legend.get_texts()]
        if len(shown) == len(labels):
            found |= dict(zip(labels, shown, strict=True))
    return found


def _spots(axes: Axes, rows: dict[int, str], entries: dict[str, str]) -> Iterator[_Spot]:
    from matplotlib.container import BarContainer, ErrorbarContainer

    names = {}
    for container in axes.containers:
        if isinstance(container, BarContainer):
            if container.orientation == "horizontal" or not rows:
                yield from _bars(axes, container, rows)
        elif isinstance(container, ErrorbarContainer):
            names[container.lines[0]] = str(container.get_label())
    for line in axes.lines:
        if line.get_transform() == axes.transData and line.get_visible():
            name = names.get(line, str(line.get_label()))
            yield from _points(axes, line, entries.get(name, name), rows)


def _points(axes: Axes, line: Line2D, name: str, rows: dict[int, str]) -> Iterator[_Spot]:
    places = np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])
    if len(places) > _CLOUD and line.get_linestyle() == "None":
        return
    with np.errstate(all="ignore"):
        pixels = axes.transData.transform(places)
    apart = _APART * axes.figure.dpi / _INCH
    last = (-math.inf, -math.inf)
    for (x, y), (across, up) in zip(places, pixels, strict=True):
        if math.hypot(across - last[0], up - last[1]) < apart or not _inside(axes, across, up):
            continue
        last = (across, up)
        if rows:
            yield _Spot(across, up, _of_row(axes, rows, round(y), x))
        else:
            yield _Spot(across, up, f"{_start(name)}{_value(axes, 0, x)}, {_value(axes, 1, y)}")


def _bars(axes: Axes, bars: BarContainer, rows: dict[int, str]) -> Iterator[_Spot]:
    for bar in bars.patches:
        box = bar.get_window_extent()
        words = ""
        if bars.orientation == "horizontal":
            end = bar.get_x() + bar.get_width()
            middle = bar.get_y() + bar.get_height() / 2
            words = _of_row(axes, rows, round(middle), end) if rows else _value(axes, 0, end)
        elif bar.get_height() > 0.0:
            ends = " to ".join(text.number(end) for end in (bar.get_x(), bar.get_x() + bar.get_width()))
            words = f"{_start(str(bars.get_label()))}{ends}: {_value(axes, 1, bar.get_height())}"
        if words and _inside(axes, (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2):
            yield _Spot((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, words, (box.width / 2, box.height / 2))


def _inside(axes: Axes, across: float, up: float) -> bool:
    box = axes.bbox
    return bool(box.x0 - 1.0 <= across <= box.x1 + 1.0 and box.y0 - 1.0 <= up <= box.y1 + 1.0)


def _of_row(axes: Axes, rows: dict[int, str], row: int, value: float) -> str:
    return f"{_start(rows.get(row, ''))}{_value(axes, 0, value)}"


def _start(name: str) -> str:
    return "" if not name or name.startswith("_") else f"{name}: "


def _value(axes: Axes, across: int, value: float) -> str:
    """A value with the name of its axis, without what stands there in brackets; a share in percent if the axis is.

    ``across`` is 0 for a place along the axes and 1 for one upwards. Axes without a name share that of others.
    """
    axis = (axes.xaxis, axes.yaxis)[across]
    shared = (axes.get_shared_x_axes, axes.get_shared_y_axes)[across]().get_siblings(axes)
    names = [(other.get_xlabel, other.get_ylabel)[across]() for other in (axes, *shared)]
    name = next(filter(None, names), "").split(" (")[0].replace("\n", " ")
    percent = axis.get_major_formatter()(0.5, 0).endswith("%")
    shown = f"{text.number(100.0 * value)}%" if percent else text.number(value)
    return f"{name} {shown}".strip()
