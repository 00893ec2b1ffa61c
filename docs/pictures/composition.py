"""Draw composition.png: the exact total of many releases, beside what the published theorems say.

Run ``python docs/pictures/composition.py``; the picture appears beside this file. Every release is made with noise
calibrated to the same (0.1, 1e-10); totals are epsilons at delta = 1e-6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from look import GRID, SOFT, save
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

import lessnoise as ln
from lessnoise.composition import published

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EPSILON, DELTA, TOTAL_DELTA = 0.1, 1e-10, 1e-6
COUNTS = np.unique(np.round(np.geomspace(1, 1000, 19))).astype(int)
RATE = 0.01
# Okabe and Ito's palette, safe for colour-blind readers; every line has its own dashes too.
STYLES: dict[str, tuple[str, str | tuple[int, tuple[float, ...]]]] = {
    "basic": ("#999999", (0, (1.5, 1.5))),
    "advanced": ("#AA4A8C", (0, (6, 2, 1.5, 2))),
    "zCDP": ("#D55E00", (0, (6, 2))),
    "Laplace": ("#CC79A7", "-"),
    "Gaussian": ("#0072B2", "-"),
    "l2": ("#009E73", "-"),
}
GAUSSIAN = ln.analytic_gaussian(epsilon=EPSILON, delta=DELTA, sensitivity=1, shape=10)
BALL = ln.l2_mechanism(epsilon=EPSILON, delta=DELTA, sensitivity=1, shape=10)
LAPLACE = ln.laplace(epsilon=EPSILON, sensitivity=1, shape=10)


def advanced(count: int) -> float:
    """The better of the two theorems that know only (epsilon, delta)."""
    strong = published.advanced_composition(EPSILON, DELTA, count, TOTAL_DELTA - count * DELTA)
    return min(strong.epsilon, count * EPSILON) if count * DELTA < TOTAL_DELTA else count * EPSILON


def everything(rate: float) -> dict[str, list[float]]:
    """Each line of a panel."""

    def exact(mechanism: ln.Mechanism) -> list[float]:
        return [mechanism.subsample(rate).repeat(int(count)).epsilon(TOTAL_DELTA).upper for count in COUNTS]

    lines = {"Laplace": exact(LAPLACE), "Gaussian": exact(GAUSSIAN), "l2": exact(BALL)}
    if rate == 1.0:
        sigma = GAUSSIAN.standard_deviation
        lines["basic"] = [EPSILON * int(count) for count in COUNTS]
        lines["advanced"] = [advanced(int(count)) for count in COUNTS]
        lines["zCDP"] = [
            published.zcdp_to_dp(published.gaussian_zcdp(sigma, n=int(count)), TOTAL_DELTA) for count in COUNTS
        ]
    else:
        lines["basic"] = [rate * EPSILON * int(count) for count in COUNTS]
        lines["advanced"] = [
            min(
                published.strong_composition(
                    EPSILON, DELTA, steps=int(count), rate=rate, slack=TOTAL_DELTA / 2
                ).epsilon,
                rate * EPSILON * int(count),
            )
            for count in COUNTS
        ]
    return lines


def panel(axes: Axes, rate: float, labels: dict[str, str]) -> None:
    """All lines over the number of releases, named in the order in which they end."""
    lines = everything(rate)
    for name, label in labels.items():
        colour, dashes = STYLES[name]
        axes.plot(COUNTS, lines[name], color=colour, linestyle=dashes, linewidth=2.4, label=label)
    axes.legend(loc="upper left", frameon=False, fontsize=11.5, handlelength=3.2, labelcolor="linecolor")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, 1000)
    axes.xaxis.set_major_locator(FixedLocator([1, 10, 100, 1000]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("releases", fontsize=11.5, labelpad=8)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)


def draw() -> Figure:
    """The whole picture."""
    figure = Figure(figsize=(12, 6.6), dpi=100, facecolor="white")
    FigureCanvasAgg(figure)
    left, right = (figure.add_axes((start, 0.115, 0.405, 0.65)) for start in (0.075, 0.565))
    panel(
        left,
        1.0,
        {
            "basic": "basic",
            "advanced": "advanced (strong)",
            "Laplace": "Laplace, exact",
            "l2": "l2, exact",
            "zCDP": "Gaussian by zCDP",
            "Gaussian": "Gaussian, exact",
        },
    )
    panel(
        right,
        RATE,
        {
            "basic": "basic, with qε (not a bound)",
            "advanced": "strong, with qε (not a bound)",
            "Laplace": "Laplace, exact",
            "l2": "l2, exact",
            "Gaussian": "Gaussian, exact",
        },
    )
    left.set_ylabel("total ε at δ = 1e-6", fontsize=11.5, labelpad=8)
    figure.text(0.075, 0.945, "Composed exactly, releases cost far less than the theorems say",
                fontsize=17, fontweight="bold", va="center")  # fmt: skip
    figure.text(0.075, 0.893, "Each release of 10 entries is calibrated to (0.1, 1e-10). Lower is better.",
                fontsize=12.5, color=SOFT, va="center")  # fmt: skip
    left.set_title("On all the data", loc="left", fontsize=13.5, fontweight="bold", pad=12)
    right.set_title("Each on a Poisson sample of 1%", loc="left", fontsize=13.5, fontweight="bold", pad=12)
    return figure


def main() -> None:
    """Write the picture."""
    save(draw, "composition.png")


if __name__ == "__main__":
    main()
