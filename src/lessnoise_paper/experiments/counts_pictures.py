"""Pictures of case study I, as PNG or SVG bytes, each with the exact privacy beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import text
from lessnoise.report import INK, MORE_COLOURS, blank, png, style, svg
from lessnoise_paper.experiments import drawing
from lessnoise_paper.experiments.drawing import SOFT, VERDICT_COLOURS, legend_above, mark, note, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from numpy.typing import NDArray

    from lessnoise_paper.experiments.uber import LossRow, UberResult

    Array = NDArray[np.float64]
    Rows = tuple[LossRow, ...]


# Maps.


def map_png(result: UberResult, row: LossRow | None, *, strict: bool = False) -> bytes:
    """One map, north up: the truth, or a release; ``strict`` ones have the colours of noise that goes both ways."""
    return drawing.map_png_of(_shown(result, row), _scale(result, strict), _empty(result), _colours(strict))


def scale_svg(result: UberResult, *, strict: bool = False) -> bytes:
    """The colour scale that all maps of a setting share."""
    return drawing.scale_svg(_scale(result, strict), cut=True, colours=_colours(strict))


def _shown(result: UberResult, row: LossRow | None) -> Array:
    return result.city.value if row is None or row.released is None else row.released


def _empty(result: UberResult) -> NDArray[np.bool_]:
    return np.asarray(result.city.value == 0)


def _colours(strict: bool) -> str:
    return drawing.BOTH_WAYS if strict else drawing.MAP_COLOURS


def _scale(result: UberResult, strict: bool) -> Normalize:
    """Up to the largest true count; at the smallest epsilon up to the largest noise of all maps."""
    if not strict:
        return drawing.count_scale(float(result.city.value.max()))
    return drawing.both_ways(max(float(np.abs(_shown(result, row)).max()) for row in result.strict[1:]))


def maps_png(result: UberResult, rows: Rows, *, strict: bool = False) -> bytes:
    """The truth and all releases of one setting on one sheet, above the scale of their colours."""
    shown: list[LossRow | None] = [None, *rows]
    columns = 4 if len(shown) > 6 else 3
    lines = math.ceil(len(shown) / columns)
    scale, empty = _scale(result, strict), _empty(result)
    with style():
        height = 3.75 * lines + 0.9
        figure = blank(3.1 * columns, height)
        for place, row in enumerate(shown):
            axes = figure.add_subplot(lines, columns, place + 1)
            values = _shown(result, row)
            axes.imshow(drawing.map_pixels(values, scale, empty, _colours(strict)), interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            for spine in axes.spines.values():
                spine.set_visible(row is not None and not row.holds)
                spine.set_color(VERDICT_COLOURS["fails"])
                spine.set_linewidth(2.5)
            axes.set_title("The truth" if row is None else row.label, fontsize=11, fontweight="bold", pad=7)
            words = "not private" if row is None else text.privacy(row.verdict).replace("; ", ";\n")
            axes.set_xlabel(f"{words}\nlargest count {text.number(float(values.max()), 3)}", fontsize=8.5)
        figure.subplots_adjust(left=0.015, right=0.985, top=1.0 - 0.32 / height, bottom=1.42 / height)
        figure.subplots_adjust(hspace=0.36, wspace=0.06)
        bar = figure.add_axes((0.2, 0.5 / height, 0.6, 0.16 / height))
        drawing.colour_bar(figure, bar, scale, cut=True, colours=_colours(strict))
        return png(figure)


# Losses.


def loss_strips_svg(result: UberResult) -> bytes:
    """Every repetition's loss over the occupied cells, all mechanisms on one logarithmic axis, with the means."""
    rows = result.paper
    with style():
        height = 0.62 * len(rows) + 1.1
        figure = blank(8.6, height)
        axes = figure.add_axes((0.20, 0.62 / height, 0.77, 1.0 - 0.95 / height))
        for place, row in enumerate(rows):
            _strip(axes, place, row)
        words = [f"epsilon = {text.number(row.verdict.claimed.epsilon)}, {row.verdict.word}" for row in rows]
        rows_of(axes, [f"{row.label}\n{said}" for row, said in zip(rows, words, strict=True)], size=8.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"loss of one release over the {result.occupied:,} occupied cells (logarithmic)")
        legend_above(
            figure,
            mark("repetitions", linewidth=7, alpha=0.7),
            mark("their mean", "D", markersize=6),
            mark("the paper", "o", markerfacecolor="none", markeredgecolor=INK),
        )
        return svg(figure)


def _strip(axes: Axes, place: int, row: LossRow) -> None:
    """A histogram in logarithmic bins above its base line, the mean, and the paper's number."""
    colour, base = MORE_COLOURS[row.key], place + 0.32
    losses = np.maximum(row.losses.valid, 1e-12)
    low, high = math.log10(losses.min()), math.log10(losses.max())
    edges = 10.0 ** np.linspace(low - 0.02, high + 0.02, max(4, min(24, int((high - low) / 0.12) + 4)))
    heights, _ = np.histogram(losses, edges)
    looks: dict[str, Any] = {"align": "edge", "bottom": base, "color": colour, "alpha": 0.75, "linewidth": 0.0}
    axes.bar(edges[:-1], -0.72 * heights / heights.max(), width=np.diff(edges), **looks)
    axes.plot([losses.mean()], [base], "D", color=colour, markeredgecolor="white", markersize=7, zorder=4)
    if row.paper_mean is not None:
        axes.plot([row.paper_mean], [base], "o", markerfacecolor="none", markeredgecolor=INK, markersize=9)


def densities_svg(result: UberResult) -> bytes:
    """Each mechanism on an axis of its own: histogram, smoothed density, mean and expectation."""
    rows = result.paper
    columns, lines = 4, math.ceil(len(rows) / 4)
    with style():
        figure = blank(11.0, 2.75 * lines + 0.35)
        for place, row in enumerate(rows):
            _density(figure.add_subplot(lines, columns, place + 1), row)
        if len(rows) < lines * columns:
            key = figure.add_subplot(lines, columns, lines * columns)
            key.set_axis_off()
            key.legend(*figure.axes[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=9)
        figure.subplots_adjust(left=0.03, right=0.985, top=0.90, bottom=0.085, hspace=0.62, wspace=0.14)
        return svg(figure)


def _density(axes: Axes, row: LossRow) -> None:
    from scipy.stats import gaussian_kde

    losses, colour = row.losses.valid, MORE_COLOURS[row.key]
    unit = 10.0 ** (3 * math.floor(math.log10(losses.mean()) / 3))
    scaled = losses / unit
    bars = min(20, max(5, scaled.size // 5))
    axes.hist(scaled, bins=bars, density=True, color=colour, alpha=0.45, linewidth=0.0, label="repetitions")
    if scaled.std() > 0.0:
        low, high = max(0.0, scaled.min() - scaled.std()), scaled.max() + 0.6 * scaled.std()
        grid = np.linspace(low, high, 300)
        axes.plot(grid, gaussian_kde(scaled)(grid), color=colour, linewidth=1.8, label="smoothed density")
    axes.axvline(float(scaled.mean()), color=INK, linewidth=1.4, label="mean of the repetitions")
    if row.losses.expected_valid is not None:
        axes.axvline(row.losses.expected_valid / unit, color=INK, linewidth=1.4, linestyle=":", label="expected mean")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(row.label, fontsize=10.5, fontweight="bold", loc="left", pad=17)
    words = text.privacy(row.verdict).replace("claims ", "").replace("; ", ", ")
    ink = SOFT if row.holds else VERDICT_COLOURS["fails"]
    note(axes, words, (0.0, 1.0), (0, 5), "axes fraction", fontsize=7.6, color=ink)
    axes.set_xlabel("loss" if unit == 1.0 else f"loss / 1e{round(math.log10(unit))}", fontsize=9)
    axes.tick_params(labelsize=8.5)


# The comparison at equal exact privacy.


def honest_svg(result: UberResult) -> bytes:
    """Mean losses of all mechanisms at the same exact guarantee, and at the one that published R1SMG really has."""
    parts = (
        (f"all at {text.pair(result.target)}, exactly", result.honest),
        (f"all at {text.pair_up(result.true_target)}, what published R1SMG really has", result.true),
    )
    with style():
        height = 0.33 * (len(result.honest) + len(result.true)) + 2.0
        figure = blank(8.6, height)
        top = 1.0 - 0.35 / height
        for words, rows in parts:
            share = 0.33 * len(rows) / height
            axes = figure.add_axes((0.27, top - share, 0.60, share))
            _bars(axes, rows, result.occupied)
            axes.set_title(words, fontsize=10.5, fontweight="bold", loc="left")
            top -= share + 0.95 / height
        return svg(figure)


def _bars(axes: Axes, rows: Rows, occupied: int) -> None:
    means = [row.losses.mean_valid for row in rows]
    bars = axes.barh(range(len(rows)), means, color=[MORE_COLOURS[row.key] for row in rows], height=0.66)
    notes = [f"{text.number(mean, 3)}  ({text.number(math.sqrt(mean / occupied), 3)} per cell)" for mean in means]
    axes.bar_label(bars, notes, padding=4, fontsize=8.5)
    rows_of(axes, [row.label for row in rows], size=9)
    axes.set_xlim(min(means) / 8.0, max(means) * (30.0 if max(means) < 1e6 else 3e4))
    axes.set_xlabel(f"expected loss over the {occupied:,} occupied cells (logarithmic)", fontsize=9)
