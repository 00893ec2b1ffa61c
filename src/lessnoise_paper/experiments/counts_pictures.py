"""Pictures of case study I, as PNG or SVG bytes, each with the exact privacy beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import text
from lessnoise.report.canvas import GRID, INK, MORE_COLOURS, blank, png, style, svg
from lessnoise_paper.experiments.demo_pictures import VERDICT_COLOURS
from lessnoise_paper.experiments.maps import map_pixels, map_png_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from numpy.typing import NDArray

    from lessnoise_paper.experiments.uber_results import LossRow, UberResult

    Array = NDArray[np.float64]
    Rows = tuple[LossRow, ...]


def colour(row: LossRow) -> str:
    """One colour per mechanism."""
    return MORE_COLOURS[row.key]


def privacy(row: LossRow) -> str:
    """Claimed and exact privacy, in few words."""
    return text.privacy(row.verdict)


def exact(row: LossRow) -> str:
    """The exact delta at the claimed epsilon, or its proved lower end where the bracket is wide."""
    return text.exact_delta(row.verdict)


# Maps.


def map_png(result: UberResult, row: LossRow | None, *, own_scale: bool = False) -> bytes:
    """One map, north up: the truth, or a release; colours run from 0 to the highest count."""
    return map_png_of(*_map(result, row, own_scale))


def _map(result: UberResult, row: LossRow | None, own_scale: bool) -> tuple[Array, Normalize, NDArray[np.bool_]]:
    from matplotlib.colors import Normalize

    truth = result.city.value
    values = truth if row is None or row.released is None else row.released
    highest = max(float(values.max() if own_scale else truth.max()), 1e-300)
    return values, Normalize(0.0, highest, clip=True), truth == 0


def maps_png(result: UberResult, rows: Rows, *, truth: bool, own_scale: bool = False) -> bytes:
    """All maps of one setting on one sheet."""
    shown: list[LossRow | None] = [*([None] if truth else []), *rows]
    columns = 4 if len(shown) > 6 else 3
    lines = math.ceil(len(shown) / columns)
    with style():
        figure = blank(3.1 * columns, 3.75 * lines + 0.1)
        for place, row in enumerate(shown):
            axes = figure.add_subplot(lines, columns, place + 1)
            axes.imshow(map_pixels(*_map(result, row, own_scale)), interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            failing = row is not None and not row.holds
            for spine in axes.spines.values():
                spine.set_visible(failing)
                spine.set_color(VERDICT_COLOURS["fails"])
                spine.set_linewidth(2.5)
            values = _map(result, row, own_scale)[0]
            axes.set_title("The truth" if row is None else row.label, fontsize=11, fontweight="bold", pad=7)
            words = "not private" if row is None else privacy(row).replace("; ", ";\n")
            axes.set_xlabel(f"{words}\nlargest count {text.number(float(values.max()), 3)}", fontsize=8.5)
        figure.subplots_adjust(left=0.015, right=0.985, top=1.0 - 0.32 / (3.75 * lines), bottom=0.62 / (3.75 * lines))
        figure.subplots_adjust(hspace=0.36, wspace=0.06)
        return png(figure)


# Losses.


def loss_strips_svg(result: UberResult) -> bytes:
    """Every repetition's loss over the occupied cells, all mechanisms on one logarithmic axis, with the means."""
    rows = result.paper
    with style():
        figure = blank(8.6, 0.62 * len(rows) + 1.1)
        axes = figure.add_axes((0.20, 0.62 / (0.62 * len(rows) + 1.1), 0.77, 1.0 - 0.95 / (0.62 * len(rows) + 1.1)))
        for place, row in enumerate(rows):
            _strip(axes, place, row)
        axes.set_xscale("log")
        axes.set_yticks(range(len(rows)), [f"{row.label}\n{_short(row)}" for row in rows], fontsize=8.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"loss of one release over the {result.occupied} occupied cells (logarithmic)")
        _strip_legend(figure)
        return svg(figure)


def _strip(axes: Axes, place: int, row: LossRow) -> None:
    """A histogram in logarithmic bins above its base line, the mean, and the paper's number."""
    losses = np.maximum(row.losses.valid, 1e-12)
    low, high = math.log10(losses.min()), math.log10(losses.max())
    edges = 10.0 ** np.linspace(low - 0.02, high + 0.02, max(4, min(24, int((high - low) / 0.12) + 4)))
    heights, _ = np.histogram(losses, edges)
    axes.bar(
        edges[:-1],
        -0.72 * heights / heights.max(),
        width=np.diff(edges),
        align="edge",
        bottom=place + 0.32,
        color=colour(row),
        alpha=0.75,
        linewidth=0.0,
    )
    axes.plot([losses.mean()], [place + 0.32], "D", color=colour(row), markeredgecolor="white", markersize=7, zorder=4)
    if row.paper_mean is not None:
        axes.plot([row.paper_mean], [place + 0.32], "o", markerfacecolor="none", markeredgecolor=INK, markersize=9)


def _short(row: LossRow) -> str:
    return f"epsilon = {text.number(row.verdict.claimed.epsilon)}, {row.verdict.word}"


def _strip_legend(figure: object) -> None:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if isinstance(figure, Figure):
        handles = [
            Line2D([], [], color="#777777", linewidth=7, alpha=0.7, label="repetitions"),
            Line2D([], [], linestyle="", marker="D", color="#777777", markersize=6, label="their mean"),
            Line2D([], [], linestyle="", marker="o", markerfacecolor="none", markeredgecolor=INK, label="the paper"),
        ]
        figure.legend(handles=handles, loc="upper center", ncols=3, frameon=False, fontsize=9)


def densities_svg(result: UberResult) -> bytes:
    """Each mechanism on an axis of its own: histogram, smoothed density, mean and expectation."""
    rows = result.paper
    columns, lines = 4, math.ceil(len(rows) / 4)
    with style():
        figure = blank(11.0, 2.75 * lines + 0.35)
        for place, row in enumerate(rows):
            axes = figure.add_subplot(lines, columns, place + 1)
            _density(axes, row)
        if len(rows) < lines * columns:
            key = figure.add_subplot(lines, columns, lines * columns)
            key.set_axis_off()
            key.legend(*figure.axes[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=9)
        figure.subplots_adjust(left=0.03, right=0.985, top=0.90, bottom=0.085, hspace=0.62, wspace=0.14)
        return svg(figure)


def _density(axes: Axes, row: LossRow) -> None:
    from scipy.stats import gaussian_kde

    losses = row.losses.valid
    unit = 10.0 ** (3 * math.floor(math.log10(losses.mean()) / 3))
    scaled = losses / unit
    axes.hist(scaled, bins=20, density=True, color=colour(row), alpha=0.45, linewidth=0.0, label="repetitions")
    if scaled.std() > 0.0:
        low, high = max(0.0, scaled.min() - scaled.std()), scaled.max() + 0.6 * scaled.std()
        grid = np.linspace(low, high, 300)
        axes.plot(grid, gaussian_kde(scaled)(grid), color=colour(row), linewidth=1.8, label="smoothed density")
    axes.axvline(float(scaled.mean()), color=INK, linewidth=1.4, label="mean of the repetitions")
    if row.losses.expected_valid is not None:
        axes.axvline(row.losses.expected_valid / unit, color=INK, linewidth=1.4, linestyle=":", label="expected mean")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_title(row.label, fontsize=10.5, fontweight="bold", loc="left", pad=17)
    axes.annotate(
        privacy(row).replace("claims ", "").replace("; ", ", "),
        (0.0, 1.0),
        (0, 5),
        "axes fraction",
        "offset points",
        fontsize=7.6,
        color=VERDICT_COLOURS["fails"] if not row.holds else "#555555",
    )
    axes.set_xlabel("loss" if unit == 1.0 else f"loss / 1e{round(math.log10(unit))}", fontsize=9)
    axes.tick_params(labelsize=8.5)


# The honest comparison.


def honest_svg(result: UberResult) -> bytes:
    """Mean losses of all mechanisms at the same exact guarantee, and at the one that published R1SMG really has."""
    parts = (
        (f"all at {text.pair(result.target)}, exactly", result.honest),
        (f"all at {text.pair_up(result.true_target)}, what published R1SMG really has", result.true),
    )
    sizes = [len(result.honest), len(result.true)]
    with style():
        height = 0.33 * sum(sizes) + 2.0
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
    bars = axes.barh(range(len(rows)), means, color=[colour(row) for row in rows], height=0.66)
    notes = [f"{text.number(mean, 3)}  ({text.number(math.sqrt(mean / occupied), 3)} per cell)" for mean in means]
    axes.bar_label(bars, notes, padding=4, fontsize=8.5)
    axes.set_xscale("log")
    axes.set_xlim(min(means) / 8.0, max(means) * (30.0 if max(means) < 1e6 else 3e4))
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(f"expected loss over the {occupied} occupied cells (logarithmic)", fontsize=9)
