"""Draw post-processing.png: what each post-processing function does to the mean squared error.

Run ``python docs/pictures/post_processing.py``; the picture appears beside this file. The functions of
``lessnoise.postprocess`` themselves are measured, for 1,000 entries with unit normal noise: those that act entry by
entry by integrating over the noise, James-Stein over repeated draws.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from look import GRID, INK, SOFT, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from lessnoise import postprocess

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ENTRIES = 1000
STRENGTH = 8.0  # of the entries that are not 0, in the right panel
PRIOR = 2.0  # deviation of the prior, in those of the noise
# Okabe and Ito's palette, safe for colour-blind readers; every line has its own dashes too.
STYLES: dict[str, tuple[str, str | tuple[int, tuple[float, ...]]]] = {
    "James-Stein": ("#0072B2", "-"),
    "soft threshold": ("#D55E00", (0, (6, 2))),
    "shrink to prior": ("#009E73", (0, (6, 2, 1.5, 2))),
    "nonnegative": ("#AA4A8C", (0, (1.5, 1.5))),
}
GRID_POINTS = np.linspace(-9.0, 9.0, 20_001)
WEIGHTS = np.exp(-0.5 * GRID_POINTS**2)
WEIGHTS /= WEIGHTS.sum()


def by_entry(function: Callable[[Array], Array], mean: float) -> float:
    """Mean squared error at one true value, integrated over the noise."""
    return float(WEIGHTS @ np.square(function(mean + GRID_POINTS) - mean))


def soft(value: Array) -> Array:
    """The default threshold of 1,000 entries, on any number of them."""
    return postprocess.soft_threshold(value, 1.0, threshold=math.sqrt(2.0 * math.log(ENTRIES)))


def prior(value: Array) -> Array:
    """A prior twice as wide as the noise, around 0."""
    return postprocess.shrink_to_prior(value, 1.0, PRIOR)


BY_ENTRY = {"soft threshold": soft, "shrink to prior": prior, "nonnegative": postprocess.nonnegative}


def james_stein(truth: Array, draws: int = 100) -> float:
    """Mean squared error of an entry over repeated draws, the same ones at every truth."""
    noise = np.random.default_rng(0).standard_normal((draws, ENTRIES))
    errors = [np.mean(np.square(postprocess.james_stein(truth + row, 1.0) - truth)) for row in noise]
    return float(np.mean(errors))


def errors(strength: float, share: float) -> dict[str, float]:
    """Mean squared error of each function when a share of the entries is ``strength`` and the rest 0."""
    count = round(share * ENTRIES)
    truth = np.where(np.arange(ENTRIES) < count, strength, 0.0)
    found = {"James-Stein": james_stein(truth)}
    for name, function in BY_ENTRY.items():
        found[name] = share * by_entry(function, strength) + (1.0 - share) * by_entry(function, 0.0)
    return found


def panel(axes: Axes, x: Array, curves: list[dict[str, float]]) -> None:
    """All functions over one range, with the raw value as the line at 1."""
    axes.axhspan(1.0, 30.0, color="#F4F2EE", zorder=0)
    axes.axhline(1.0, color=INK, linewidth=1.2, zorder=2)
    for name, (colour, dashes) in STYLES.items():
        axes.plot(x, [curve[name] for curve in curves], color=colour, linestyle=dashes, linewidth=2.4, zorder=3)
    axes.set_yscale("log")
    axes.set_ylim(0.006, 30.0)
    axes.yaxis.set_major_locator(FixedLocator([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)


def label(axes: Axes, name: str, x: float, y: float, text: str | None = None) -> None:
    """A line's name beside it, in its colour."""
    axes.text(x, y, text or name, color=STYLES[name][0], fontsize=12.5, fontweight="bold", ha="left", va="center")


def draw() -> Figure:
    """The whole picture."""
    figure = Figure(figsize=(12, 7), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = (figure.add_axes((start, 0.125, 0.405, 0.645)) for start in (0.075, 0.565))

    strengths = np.geomspace(0.1, 10.0, 81)
    panel(left, strengths, [errors(float(strength), 1.0) for strength in strengths])
    left.set_xscale("log")
    left.set_xlim(0.1, 10.0)
    left.xaxis.set_major_locator(FixedLocator([0.1, 0.3, 1.0, 3.0, 10.0]))
    left.xaxis.set_minor_locator(NullLocator())
    left.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    left.set_xlabel("true value of every entry, in standard deviations of the noise", fontsize=11.5, labelpad=8)
    left.set_ylabel("mean squared error, relative to the noisy value's", fontsize=11.5, labelpad=8)

    shares = np.unique(np.round(np.geomspace(1.0, ENTRIES, 60))) / ENTRIES
    panel(right, shares, [errors(STRENGTH, float(share)) for share in shares])
    right.set_xscale("log")
    right.set_xlim(0.001, 1.0)
    right.xaxis.set_major_locator(FixedLocator([0.001, 0.01, 0.1, 1.0]))
    right.xaxis.set_minor_locator(NullLocator())
    right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))
    right.set_xlabel(
        f"share of entries that are not 0 (those are {STRENGTH:g} deviations high)", fontsize=11.5, labelpad=8
    )

    annotate(left, right)
    figure.text(
        0.075,
        0.945,
        "Post-processing helps where its assumption holds, and hurts where it does not",
        fontsize=17,
        fontweight="bold",
        va="center",
    )
    figure.text(
        0.075,
        0.893,
        "Mean squared error after each function, 1,000 entries with independent normal noise. None costs any privacy.",
        fontsize=12.5,
        color=SOFT,
        va="center",
    )
    for axes, title in ((left, "All entries alike"), (right, "Few entries stand out")):
        axes.set_title(title, loc="left", fontsize=13.5, fontweight="bold", pad=12)
    return figure


def annotate(left: Axes, right: Axes) -> None:
    """Names at the lines, and which side of 1 is better."""
    note: dict[str, Any] = {"color": SOFT, "fontsize": 10.5}
    label(left, "soft threshold", 0.72, 8.0)
    label(left, "shrink to prior", 0.105, 0.81)
    label(left, "nonnegative", 0.105, 0.385)
    label(left, "James-Stein", 0.42, 0.1)
    label(right, "soft threshold", 0.0034, 0.034)
    label(right, "shrink to prior", 0.0011, 0.81)
    label(right, "nonnegative", 0.09, 0.42)
    label(right, "James-Stein", 0.0011, 0.35)
    for axes in (left, right):
        axes.text(
            0.985, 0.015, "better than the noisy value", transform=axes.transAxes, **note, ha="right", va="bottom"
        )
        axes.text(0.015, 0.985, "worse than the noisy value", transform=axes.transAxes, **note, ha="left", va="top")


def main() -> None:
    """Write the picture."""
    save(draw, "post-processing.png")


if __name__ == "__main__":
    main()
