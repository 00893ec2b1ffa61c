"""The picture of a stream: its running totals, with the band that covers the true ones about 19 times in 20."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lessnoise.streams.stream import Stream

_INK, _SOFT, _GRID, _LINE = "#222222", "#5F5F66", "#DDDDDD", "#0072B2"
_BAND = 1.96  # standard deviations: 95% of normal errors, and 94% of Laplace's, which a single node may have


def draw_totals(stream: Stream, file: BinaryIO, ending: str) -> None:
    """The picture as a file; ``ending`` is .png, .svg or .pdf."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "lessnoise", "font.size": 11}):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        draw_totals_on(figure.subplots(), stream)
        figure.savefig(file, format=ending.lstrip("."), dpi=150, metadata={"Date": None} if ending == ".svg" else None)


def draw_totals_on(axes: Axes, stream: Stream) -> None:
    """Running totals over the periods; of a vector or table, the sum of its entries, whose errors are independent."""
    periods = np.arange(1, stream.period + 1)
    totals = stream.totals.reshape(stream.period, stream.plan.size).sum(axis=1)
    errors = _BAND * np.sqrt(stream.plan.variances()[: stream.period] * stream.plan.size)
    axes.fill_between(periods, totals - errors, totals + errors, color=_LINE, alpha=0.2, linewidth=0, label="95% band")
    axes.plot(periods, totals, color=_LINE, linewidth=1.8, marker="o" if stream.period < 40 else None, markersize=3)
    axes.set_xlim(0, max(stream.plan.periods, 1))
    what = "noisy running total" if stream.plan.size == 1 else f"noisy running total of all {stream.plan.size} entries"
    axes.set_xlabel(f"period, of {stream.plan.periods}", color=_SOFT)
    axes.set_ylabel(what, color=_SOFT)
    if stream.period:
        axes.legend(frameon=False, loc="upper left")
    axes.grid(color=_GRID, linewidth=0.6)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def half_width(variance: float) -> float:
    """Of the band of a total, by its variance."""
    return _BAND * math.sqrt(variance)
