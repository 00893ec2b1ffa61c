"""Draw front.png: a private table beside the true one, and the noise that four kinds of release need.

Run ``python docs/pictures/front.py``; the picture appears beside this file. The visits are made up, and the noise comes
from a seed, so that the picture is the same each time. The bars are squared errors at epsilon = 1 and delta = 1e-6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from look import GRID, INK, SOFT, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

import lessnoise as ln

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILON, DELTA = 1.0, 1e-6
TRUE, PRIVATE, GAUSSIAN = "#BBBBC4", "#0072B2", "#D55E00"
EDGES = list(range(0, 101, 5))


def counts(axes: Axes) -> None:
    """The visits of a small clinic by age: as they are, and as they are released."""
    rng = np.random.default_rng(7)
    ages = np.concatenate([rng.normal(34, 9, 420), rng.normal(71, 8, 260)])
    table = ln.Table({"age": ages[(ages > 0) & (ages < 100)]})
    question = table.aggregate(ln.histogram("age", edges=[float(edge) for edge in EDGES]))
    rows = question.release(epsilon=EPSILON, delta=DELTA, rng=rng).rows
    true, _ = np.histogram(ages, EDGES)
    middles = np.array(EDGES[:-1]) + 2.5
    values, lower, upper = (np.array([float(row[name]) for row in rows]) for name in ("value", "lower", "upper"))
    axes.bar(middles, true, width=4.6, color=TRUE, label="true number of visits (stays secret)")
    axes.errorbar(
        middles, values, [values - lower, upper - values], fmt="o", markersize=4.5, color=PRIVATE, capsize=2.5,
        label="released number, with its 95% interval",
    )  # fmt: skip
    axes.set_xlabel("age", fontsize=11.5, labelpad=6)
    axes.set_xlim(0, 100)
    axes.set_ylim(-5, max(true) * 1.42)
    axes.axhline(0, color="#888888", linewidth=0.8)
    axes.legend(loc="upper left", frameon=False, fontsize=11)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)


def noise(axes: Axes) -> None:
    """What the library needs for the same promise, as a share of what the Gaussian needs."""
    target = {"epsilon": EPSILON, "delta": DELTA}
    asked = {
        "20 counts": ({"changes": ln.changes.counts()}, 20, 1.0),
        "sums of 10 numbers\nbetween 0 and 1": ({"changes": ln.changes.corner(1)}, 10, 10**0.5),
        "10 numbers that move\nby a length of 1": ({"sensitivity": 1}, 10, 1.0),
        "a model of 26,010\nparameters, one step": ({"sensitivity": 1}, 26_010, 1.0),
    }
    for place, (changes, size, length) in enumerate(asked.values()):
        best = ln.least_noise(**target, **changes, shape=size)
        usual = ln.analytic_gaussian(**target, sensitivity=length, shape=size)
        share = best.expected_loss / usual.expected_loss
        axes.barh(place, 1.0, height=0.62, color="none", edgecolor=GAUSSIAN, linewidth=1.4)
        axes.barh(place, share, height=0.62, color=PRIVATE)
        inside = share > 0.7
        axes.text(
            share - 0.02 if inside else share + 0.02, place, f"{share:.0%}", va="center",
            ha="right" if inside else "left", fontsize=12, fontweight="bold", color="white" if inside else INK,
        )  # fmt: skip
    axes.set_yticks(range(len(asked)), list(asked), fontsize=11.5)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.04)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("squared error, where Gaussian noise has 100% (orange frame)", fontsize=11.5, labelpad=6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, pad=6)


def draw() -> Figure:
    """The whole picture."""
    figure = Figure(figsize=(14, 5.4), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.add_axes((0.04, 0.125, 0.42, 0.655)), figure.add_axes((0.615, 0.125, 0.365, 0.655))
    counts(left)
    noise(right)
    for start, title, words in (
        (0.04, "A private table", "One visit more or less hardly shows: the exact promise is (1, 1e-6)-DP."),
        (0.51, "As little noise as the promise allows", "The same promise. What one person can change decides."),
    ):
        figure.text(start, 0.94, title, fontsize=17, fontweight="bold", va="center")
        figure.text(start, 0.87, words, fontsize=12, color=SOFT, va="center")
    return figure


def main() -> None:
    """Write the picture."""
    save(draw, "front.png")


if __name__ == "__main__":
    main()
