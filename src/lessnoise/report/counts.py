"""A picture of private counts: a map of two axes, or bars of one. It is drawn from the released counts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lessnoise import text
from lessnoise._display import picture, to_png
from lessnoise.report.canvas import COLOURS, GRID, blank, literal, notebook_figure, png, style
from lessnoise.tasks import HistogramRelease
from lessnoise.text import up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from lessnoise.query import Axis

_MAP_COLOURS = "magma"
_MOST_LABELS = 24


@to_png.register(HistogramRelease)
def counts_png(result: HistogramRelease) -> bytes:
    """The counts over the first two axes (summed over any others), or over the only one."""
    mechanism, guarantee = result.certificate.mechanism, result.certificate.guarantee
    summed = result.value.sum(axis=tuple(range(2, result.value.ndim)))
    with style():
        figure = blank(8.0, 7.4 if summed.ndim == 2 else 4.6)
        axes = figure.add_axes((0.12, 0.10, 0.72, 0.76) if summed.ndim == 2 else (0.11, 0.15, 0.85, 0.65))
        if summed.ndim == 2:
            _map(axes, summed, result.query.axes[0], result.query.axes[1])
        else:
            _bars(axes, summed, result.query.axes[0])
        title = f"Private counts at ({up(guarantee.epsilon, 3)}, {up(guarantee.delta, 3)})"
        private = "" if result.certificate.private else "; seeded, so NOT private"
        noise = mechanism.name
        if not mechanism.law.data_dependent:
            noise += f", noise of sd {text.number(mechanism.standard_deviation, 3)} per cell"
        place = (0.0, 1.0), (0, 26), "axes fraction", "offset points"
        axes.annotate(title, *place, fontsize=15, fontweight="bold")
        note = literal(f"{noise}; protects {result.unit}, {guarantee.neighbours.value}{private}", 120)
        axes.annotate(note, (0.0, 1.0), (0, 9), "axes fraction", "offset points", fontsize=9.5, color="#555555")
        return png(figure)


@picture.register(HistogramRelease)
def _(shown: HistogramRelease, axes: Axes | None = None) -> Figure:
    """The same counts as in the saved picture, on ``axes`` or on a figure of their own."""
    summed = shown.value.sum(axis=tuple(range(2, shown.value.ndim)))
    with style():
        if axes is None:
            axes = notebook_figure(6.4, 5.4 if summed.ndim == 2 else 4.0).subplots()
        if summed.ndim == 2:
            _map(axes, summed, shown.query.axes[0], shown.query.axes[1])
        else:
            _bars(axes, summed, shown.query.axes[0])
        private = "" if shown.certificate.private else "; seeded, NOT private"
        axes.set_title(f"{literal(shown.certificate.mechanism.name)}{private}", loc="left")
    figure = axes.get_figure()
    assert figure is not None
    return figure  # type: ignore[return-value]


def _map(axes: Axes, counts: NDArray[np.float64], first: Axis, second: Axis) -> None:
    """The first axis runs to the right, the second upwards; colours are logarithmic, from 1."""
    from matplotlib.colors import LogNorm

    scale = LogNorm(1.0, max(float(counts.max()), 10.0), clip=True)
    x, y = _edges(first), _edges(second)
    mesh = axes.pcolormesh(x, y, np.maximum(counts.T, 1.0), norm=scale, cmap=_MAP_COLOURS, rasterized=True)
    _ticks(axes, first, "x")
    _ticks(axes, second, "y")
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(mesh, ax=axes, fraction=0.04, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("noisy count per cell (logarithmic; 1 or less is black)")


def _bars(axes: Axes, counts: NDArray[np.float64], axis: Axis) -> None:
    edges = _edges(axis)
    axes.stairs(counts, edges, fill=True, color=COLOURS["analytic-gaussian"], linewidth=0)
    axes.axhline(0.0, color="#666666", linewidth=0.8)
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_ylabel("noisy count")
    _ticks(axes, axis, "x")


def _edges(axis: Axis) -> NDArray[np.float64]:
    return np.arange(axis.size + 1.0) - 0.5 if axis.keys is not None else axis.cell_edges


def _ticks(axes: Axes, axis: Axis, which: str) -> None:
    (axes.set_xlabel if which == "x" else axes.set_ylabel)(literal(axis.column))
    if axis.keys is not None:
        every = -(-axis.size // _MOST_LABELS)
        set_ticks = axes.set_xticks if which == "x" else axes.set_yticks
        set_ticks(range(0, axis.size, every), [literal(key, 20) for key in axis.keys[::every]])
    else:
        axes.ticklabel_format(axis="x" if which == "x" else "y", useOffset=False)
