"""What several computations share: the paper's settings, a mechanism with its verdict as plain values, plain axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessnoise.report.canvas import GRID
from lessnoise_paper.experiments.demo import PAPER_DELTA, PAPER_EPSILON

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise_paper.model import Numbers

GREY = "#777777"
COUNT_QUERY: dict[str, Any] = {
    "epsilon": PAPER_EPSILON,
    "delta": PAPER_DELTA,
    "sensitivity": 2.0**0.5,
    "shape": [89, 89],
    "neighbours": "replace",
}
"""R1SMG's setting on the count query (Ji & Li 2024, section 7.1): squared sensitivity 2, one pickup replaced."""


def judged(mechanism: Mechanism, label: str) -> Numbers:
    """A mechanism's claim, its exact delta at the claimed epsilon, the verdict, and its expected loss."""
    verdict = mechanism.check()
    return {
        "label": label,
        "claimed": verdict.claimed.to_dict(),
        "exact": verdict.exact.to_dict(),
        "verdict": verdict.word,
        "expected_loss": mechanism.expected_loss,
        "standard_deviation": mechanism.standard_deviation,
    }


def legend_above(figure: Figure, *others: Line2D) -> None:
    """What a picture of claims shows: the claimed value, and the others, above the axes."""
    from matplotlib.lines import Line2D

    claimed = Line2D([], [], linestyle="", marker="o", markerfacecolor="white", markeredgecolor=GREY, label="claimed")
    handles = [claimed, *others]
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=9)


def quiet_axes(axes: Axes, *, log: str = "", grid: str = "both") -> None:
    """Logarithmic where asked, a light grid behind everything."""
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(axis=grid, color=GRID, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
