"""Pictures of a demonstration, as PNG or SVG bytes. Figures are made directly; pyplot is never touched."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import text
from lessnoise.report import COLOURS, INK, LINES, blank, png, style, svg
from lessnoise_paper.experiments import drawing
from lessnoise_paper.experiments.drawing import (
    MAP_COLOURS,
    SOFT,
    VERDICT_COLOURS,
    legend_above,
    legend_below,
    map_png_of,
    mark,
    note,
    quiet_axes,
    rows_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from numpy.typing import NDArray

    from lessnoise_paper.experiments.demo import DemoResult, DemoRow

# Maps.


def map_png(result: DemoResult, key: str | None = None) -> bytes:
    """The released map of one mechanism, or the true map; every map has the same logarithmic colours.

    Counts below 1, negative ones too, take the colour of the lowest end; counts above the true
    maximum take that of the highest.
    """
    values = result.counts.value if key is None else result.row(key).released
    return map_png_of(values, _scale(result))


def scale_svg(result: DemoResult) -> bytes:
    """The colour scale of the maps."""
    return drawing.scale_svg(_scale(result))


def _scale(result: DemoResult) -> Normalize:
    return drawing.count_scale(float(result.counts.value.max()))


# Curves.


def curves_svg(result: DemoResult) -> bytes:
    """Exact delta against epsilon for every mechanism, with each claim beside the truth."""
    with style():
        figure = blank(8.4, 5.5)
        axes = figure.add_axes((0.09, 0.272, 0.88, 0.708))
        _curves(axes, result)
        legend_below(figure, axes, fontsize=9, handlelength=2.6)
        return svg(figure)


def _curves(axes: Axes, result: DemoResult, *, size: float = 9.5) -> None:
    floor = min(1e-10, 1e-3 * result.target.delta)
    for row in result.rows:
        epsilons, deltas = np.array(row.curve).T
        axes.plot(
            epsilons,
            np.maximum(deltas, 1e-3 * floor),
            color=COLOURS[row.key],
            linestyle=LINES[row.key],
            linewidth=2.0,
            zorder=3.0 if LINES[row.key] != "-" else 2.5,  # a dashed line over a solid one shows both
            label=row.label,
            solid_capstyle="butt",
        )
    quiet_axes(axes, log="xy")
    axes.set_ylim(floor, 4.0)
    axes.set_xlim(min(row.curve[0][0] for row in result.rows), max(row.curve[-1][0] for row in result.rows))
    axes.tick_params(labelsize=size)
    axes.set_xlabel("epsilon", fontsize=size + 1.0)
    axes.set_ylabel("delta", fontsize=size + 1.0)
    _claims(axes, result, size)


def _claims(axes: Axes, result: DemoResult, size: float) -> None:
    """Open circle: the claim. Cross at the end of the arrow: the exact delta at the claimed epsilon."""
    target = result.target
    _circle(axes, target.epsilon, target.delta, INK)
    promise = f"the promise\n{text.pair(target)}"
    note(axes, promise, (target.epsilon, target.delta), (-12, -14), fontsize=size, ha="right", va="top", **_BOXED)
    for row in result.rows:
        claim, truth = row.verdict.claimed, row.verdict.exact.lower
        if not row.verdict.refuted or claim.delta <= 0.0:
            continue
        colour = COLOURS[row.key]
        axes.annotate(
            "",
            (claim.epsilon, truth),
            xytext=(claim.epsilon, claim.delta),
            arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.4, "shrinkA": 6, "shrinkB": 4},
            zorder=4,
        )
        axes.plot([claim.epsilon], [truth], "X", markersize=9, color=colour, markeredgecolor="white", zorder=6)
        if claim.epsilon != target.epsilon:
            _circle(axes, claim.epsilon, claim.delta, colour)
            words = f"published calibration\nclaims {text.pair(claim)},\nexact delta {text.exact(row.verdict.exact)}"
            middle = (claim.epsilon, math.sqrt(claim.delta * truth))
            note(axes, words, middle, (9, 0), fontsize=size, color=colour, va="center", **_BOXED)


def _circle(axes: Axes, x: float, y: float, colour: str) -> None:
    axes.plot(
        [x], [y], "o", markersize=9, markerfacecolor="white", markeredgecolor=colour, markeredgewidth=1.5, zorder=5
    )


_BOXED: dict[str, Any] = {
    "bbox": {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
    "zorder": 4.5,
}


# Losses.


def expected_losses_svg(result: DemoResult) -> bytes:
    """Expected loss of every mechanism as bars on a logarithmic axis, coloured by verdict."""
    from matplotlib.patches import Patch

    with style():
        figure = blank(8.4, 4.3)
        axes = figure.add_axes((0.29, 0.13, 0.60, 0.76))
        places = np.arange(len(result.rows))
        values = [row.expected_loss for row in result.rows]
        bars = axes.barh(places, values, color=[VERDICT_COLOURS[row.verdict.word] for row in result.rows], height=0.68)
        for bar, row in zip(bars, result.rows, strict=True):
            if not row.holds:
                bar.set_hatch("///")
                bar.set_edgecolor("white")
        _loss_axis(axes, result, min(values) / 20.0)
        axes.bar_label(bars, [text.number(value, 3) for value in values], padding=4, fontsize=9)
        axes.set_xlabel("expected loss, the mean of the summed squared noise (logarithmic)")
        words = list(dict.fromkeys(row.verdict.word for row in result.rows))
        names = {"holds": "keeps its promise", "fails": "fails its claim", "not proved": "not proved"}
        patches = [
            Patch(facecolor=VERDICT_COLOURS[w], label=names[w], hatch="" if w == "holds" else "///", edgecolor="white")
            for w in words
        ]
        legend_above(figure, *patches)
        return svg(figure)


def spread_svg(result: DemoResult) -> bytes:
    """The exact law of each loss: 5% to 95% (bar), median (tick), mean (diamond), and the release shown (circle).

    Left on a logarithmic axis; right, on a plain one, the range of the mechanisms with independent noise.
    """
    with style():
        figure = blank(8.4, 4.1)
        wide = figure.add_axes((0.295, 0.14, 0.325, 0.75))
        near = figure.add_axes((0.655, 0.14, 0.325, 0.75))
        for place, row in enumerate(result.rows):
            for axes in (wide, near):
                _spread(axes, place, row)
        legend_above(
            figure,
            mark("5% to 95%", linewidth=7, alpha=0.45),
            mark("median", "|", markersize=13, markeredgewidth=2.2),
            mark("mean", "D", markersize=5.5),
            mark("the map shown", "o", markerfacecolor="none", markeredgecolor=INK),
        )
        _loss_axis(wide, result, min(row.loss_quantiles[0] for row in result.rows) / 10.0)
        wide.set_xlabel("loss of one release (logarithmic)")
        _plain_axis(near, result)
        near.set_xlabel("the same, in millions, not logarithmic")
        return svg(figure)


def _spread(axes: Axes, place: int, row: DemoRow) -> None:
    low, middle, high = row.loss_quantiles
    colour = COLOURS[row.key]
    axes.plot([low, high], [place, place], color=colour, linewidth=7, alpha=0.45, solid_capstyle="butt")
    axes.plot([middle], [place], "|", color=colour, markersize=15, markeredgewidth=2.0)
    axes.plot([row.expected_loss], [place], "D", color=colour, markersize=5, markeredgecolor="white")
    axes.plot([row.observed_loss], [place], "o", markersize=8, markerfacecolor="none", markeredgecolor=INK)


def _plain_axis(axes: Axes, result: DemoResult) -> None:
    from matplotlib.ticker import FuncFormatter

    independent = [row for row in result.rows if row.loss_quantiles[2] < 1.5 * row.loss_quantiles[1]]
    axes.set_xlim(0.0, 1.12 * max(row.loss_quantiles[2] for row in independent or result.rows))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e6:g}"))
    rows_of(axes, [""] * len(result.rows), log="")
    axes.set_yticks([])


def _loss_axis(axes: Axes, result: DemoResult, start: float) -> None:
    highest = max(max(row.loss_quantiles[2], row.expected_loss, row.observed_loss) for row in result.rows)
    rows_of(axes, [row.label for row in result.rows])
    axes.set_xlim(min(start, min(row.observed_loss for row in result.rows) / 2.0), 4.0 * highest)


# The picture for a front page.


def headline_figure(result: DemoResult, key: str = "least-noise") -> bytes:
    """One wide PNG: the true map, one exactly calibrated release, and every claim beside its exact curve."""
    row = result.row(key)
    with style():
        figure = blank(16.0, 7.0)
        side = 0.300 * 16.0 / 7.0
        noise = f"{row.label}, noise of sd {text.number(row.standard_deviation, 3)} per cell"
        grid = " x ".join(map(str, result.counts.shape))
        panels = (
            (0.010, result.counts.value, "True counts", f"a synthetic city on a grid of {grid} cells"),
            (0.318, row.released, f"Released at {text.pair(result.target)}, exactly", noise),
        )
        for left, values, title, subtitle in panels:
            axes = figure.add_axes((left, 0.165, 0.300, side))
            _map(axes, values, result)
            _titles(axes, title, subtitle)
        bar = figure.add_axes((0.045, 0.105, 0.54, 0.028))
        drawing.colour_bar(figure, bar, _scale(result))
        bar.tick_params(labelsize=13)
        bar.xaxis.label.set_fontsize(13)
        axes = figure.add_axes((0.690, 0.345, 0.302, side - 0.180))
        _curves(axes, result, size=12.5)
        _titles(axes, "Claimed and exact privacy", "circles: what is claimed; crosses: what is true")
        looks = {"ncols": 2, "fontsize": 11.5, "columnspacing": 1.0, "labelspacing": 0.35}
        legend_below(figure, axes, loc="lower right", bbox_to_anchor=(1.0, -0.01), **looks)
        return png(figure)


def _titles(axes: Axes, title: str, subtitle: str) -> None:
    note(axes, title, (0.0, 1.0), (0, 26), "axes fraction", fontsize=18, fontweight="bold")
    note(axes, subtitle, (0.0, 1.0), (0, 8), "axes fraction", fontsize=13, color=SOFT)


def _map(axes: Axes, values: NDArray[np.float64], result: DemoResult) -> None:
    axes.imshow(np.maximum(values, 1.0), origin="lower", norm=_scale(result), cmap=MAP_COLOURS, interpolation="nearest")
    axes.set_axis_off()
