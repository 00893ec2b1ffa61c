"""Draw changes.png: four sets of changes of two numbers, and the noise that a box and a corner need.

Run ``python docs/pictures/changes.py``; the picture appears beside this file. Noise is the mean square of one entry at
epsilon = 1 and delta = 1e-6, where every entry changes by at most 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from look import GRID, SOFT, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import lessnoise as ln

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

TARGET = {"epsilon": 1.0, "delta": 1e-6}
ENTRIES = (1, 2, 3, 5, 7, 10, 14, 18, 23, 24, 30, 41, 42, 60, 80, 100)
BLUE, GREEN, ORANGE, GREY, ROSE = "#0072B2", "#009E73", "#D55E00", "#8A8A8A", "#AA4A8C"
ROUND = [(math.cos(t), math.sin(t)) for t in np.linspace(0.0, 2.0 * math.pi, 200)]
SETS = (
    ("ball", "any change of length at most 1", ROUND, GREY),
    ("diamond, and counts (dots)", "sizes add up to at most 1", [(1, 0), (0, 1), (-1, 0), (0, -1)], ROSE),
    ("box", "each entry by at most 1", [(1, 1), (-1, 1), (-1, -1), (1, -1)], BLUE),
    ("corner", "all up, or all down", [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0), (-1, 0), (-1, -1), (0, -1)], GREEN),
)


def shape(axes: Axes, name: str, words: str, edge: list[tuple[float, float]], colour: str) -> None:
    """One set in the plane of two entries."""
    axes.fill(*zip(*edge, strict=True), facecolor=colour, alpha=0.25, edgecolor="none")
    axes.plot(*zip(*edge, edge[0], strict=True), color=colour, linewidth=2.2)
    if "counts" in name:
        axes.plot([1, 0, -1, 0], [0, 1, 0, -1], "o", color=colour, markersize=8, clip_on=False)
    axes.axhline(0.0, color="#AAAAAA", linewidth=0.8, zorder=0)
    axes.axvline(0.0, color="#AAAAAA", linewidth=0.8, zorder=0)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xticks=[-1, 1], yticks=[-1, 1])
    axes.tick_params(length=0, labelsize=10)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(name, fontsize=12.5, fontweight="bold", color=colour, pad=19)
    axes.text(0.5, 1.03, words, transform=axes.transAxes, ha="center", fontsize=10.5, color=SOFT)


def noise(build: Callable[[int], ln.Mechanism]) -> list[float]:
    """Mean square of one entry, for each number of entries."""
    return [build(entries).expected_loss / entries for entries in ENTRIES]


def panel(axes: Axes) -> None:
    """Noise against the number of entries."""
    changes = ln.changes
    lines = (
        ("Gaussian", GREY, (0, (1.5, 1.5)),
         lambda m: ln.analytic_gaussian(**TARGET, sensitivity=m**0.5, shape=m)),
        ("least for the ball around the box", ORANGE, (0, (6, 2)),
         lambda m: ln.least_noise(**TARGET, sensitivity=m**0.5, shape=m)),
        ("correlated Gaussian (corner)", ROSE, (0, (6, 2, 1.5, 2)),
         lambda m: ln.correlated_gaussian(**TARGET, shape=m)),
        ("least for the box", BLUE, "-", lambda m: ln.least_noise(**TARGET, changes=changes.box(1.0), shape=m)),
        ("least for the corner", GREEN, "-", lambda m: ln.least_noise(**TARGET, changes=changes.corner(1.0), shape=m)),
    )  # fmt: skip
    for label, colour, dashes, build in lines:
        axes.plot(ENTRIES, noise(build), color=colour, linestyle=dashes, linewidth=2.4, label=label)
    axes.set(xscale="log", yscale="log", xlim=(1, 100), ylim=(1.5, 2500))
    axes.legend(loc="upper left", frameon=False, fontsize=11, handlelength=3.4, labelcolor="linecolor")
    axes.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100]))
    axes.yaxis.set_major_locator(FixedLocator([2, 10, 100, 1000]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("entries", fontsize=11.5, labelpad=6)
    axes.set_ylabel("mean square of the noise of one entry", fontsize=11.5, labelpad=6)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)
    axes.set_title("Noise at ε = 1, δ = 1e-6", loc="left", fontsize=13.5, fontweight="bold", pad=12)


def draw() -> Figure:
    """The whole picture."""
    figure = Figure(figsize=(12, 6.4), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    for place, (name, words, edge, colour) in enumerate(SETS):
        left, bottom = 0.035 + 0.235 * (place % 2), 0.515 - 0.455 * (place // 2)
        shape(figure.add_axes((left, bottom, 0.21, 0.31)), name, words, edge, colour)
    panel(figure.add_axes((0.575, 0.115, 0.405, 0.70)))
    figure.text(0.03, 0.955, "What one individual can change decides how much noise is needed",
                fontsize=17, fontweight="bold", va="center")  # fmt: skip
    return figure


def main() -> None:
    """Write the picture."""
    save(draw, "changes.png")


if __name__ == "__main__":
    main()
