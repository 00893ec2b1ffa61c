"""Pictures of results that say themselves what they have, and of audits, findings and streams."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise._display import Cells, Charted, Estimates
from lessnoise.audit import AuditReport, percent
from lessnoise.claims import Finding
from lessnoise.report.canvas import COLOURS, GRID, INK, literal
from lessnoise.report.curves import draw
from lessnoise.streams import Stream, draw_totals_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from lessnoise._display import Lines

_EXACT, _HOLDS, _FAILS, _SOFT = COLOURS["analytic-gaussian"], "#117733", "#B02A0C", "#666666"
_LINE_COLOURS = (_EXACT, "#D55E00", "#332288", "#117733")
_MOST_LABELS, _LARGE_LABELS = 24, 12
_SIZES = 9.0, 7.0
_MOST_LETTERS = 36
_FEW = 40  # points that have a marker each
_SHORT = 52  # letters of a title that fit at the usual size
_FLOOR = 0.03  # of the smallest delta in a picture of an audit: where its axis begins


@draw.register(Charted)
def _(shown: Charted, axes: Axes) -> None:
    chart = shown._chart()
    if isinstance(chart, Estimates):
        _estimates(axes, chart)
    elif isinstance(chart, Cells):
        _cells(axes, chart)
    else:
        _lines(axes, chart)
    _title(axes, chart.title)


@draw.register(Stream)
def _(shown: Stream, axes: Axes) -> None:
    draw_totals_on(axes, shown)
    private = "" if shown.private else "; seeded, NOT private"
    _title(axes, f"Running totals after {shown.period:,} of {shown.plan.periods:,} periods{private}")


@draw.register(Finding)
def _(shown: Finding, axes: Axes) -> None:
    draw(shown.verdict, axes)
    _title(axes, f"{shown.name}: {axes.get_title(loc='left')[0].lower()}{axes.get_title(loc='left')[1:]}")


@draw.register(AuditReport)
def _(shown: AuditReport, axes: Axes) -> None:
    """What is proved, as two lines from the axes: one that goes past the claim refutes it."""
    claim, colour = shown.claim, _FAILS if shown.refuted else _HOLDS
    deltas = [claim.delta, *(one.delta.bound for one in shown.attacks)]
    smallest = min((delta for delta in deltas if delta > 0.0), default=1e-6)
    floor, place = _FLOOR * smallest, claim.delta or _FLOOR * smallest
    axes.set_yscale("log")
    others = [one for one in shown.attacks if one.name not in (shown.delta_attack, shown.epsilon_attack)]
    if others:
        points = [(claim.epsilon, one.delta.bound) for one in others if one.delta.bound > 0.0]
        points += [(one.epsilon.bound, place) for one in others if one.epsilon.bound > 0.0]
        places = np.array(points).reshape(-1, 2).T
        axes.plot(*places, "+", color=_SOFT, markersize=9.0, label="other attacks, each by itself")
    words = f"lower bounds of δ and ε, with {percent(shown.confidence)} confidence"
    axes.plot(
        [claim.epsilon] * 2, [floor, max(shown.delta, floor)], color=colour, linewidth=5.0, alpha=0.6, label=words
    )
    axes.plot([0.0, shown.epsilon], [place] * 2, color=colour, linewidth=5.0, alpha=0.6)
    axes.plot(
        [claim.epsilon], [place], "X" if shown.refuted else "o", color=INK, markersize=8.0, label="claim", clip_on=False
    )
    axes.set_ylim(floor, 1.5)
    reach = 1.25 * max(claim.epsilon, shown.epsilon, *(one.epsilon.bound for one in shown.attacks))
    axes.set_xlim(-0.03 * reach, reach)  # a line at a tiny epsilon is to be seen
    axes.set_xlabel("ε")
    axes.set_ylabel("δ" if claim.delta else "δ (a claim of 0 is at the lower end)")
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
    word = "REFUTED: a line goes past it" if shown.refuted else "not refuted: no line goes past it"
    _title(axes, f"{shown.mechanism}: the claim is {word}")


# Forms.


def _title(axes: Axes, words: str) -> None:
    axes.set_title(literal(words, 90), loc="left", fontsize=12.0 if len(words) <= _SHORT else 10.0)


def _estimates(axes: Axes, chart: Estimates) -> None:
    """Bars from zero; numbers with intervals are dots on them."""
    values, places = np.asarray(chart.values, dtype=np.float64), np.arange(len(chart.values))
    upright = bool(chart.along)
    if chart.intervals:
        axes.hlines(places, *zip(*chart.intervals, strict=True), color=_EXACT, linewidth=1.8)
        axes.plot(values, places, "o", color=_EXACT, markersize=5.0)
    elif upright:
        axes.bar(places, values, color=_EXACT, width=0.7)
    else:
        axes.barh(places, values, color=_EXACT, height=0.6)
    if chart.mark is not None:
        name, where = chart.mark
        line = axes.axhline if upright else axes.axvline
        line(where, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), label=literal(name))
        axes.legend(frameon=False, fontsize=9)
    _names(axes, chart.names, "x" if upright else "y")
    axes.grid(axis="y" if upright else "x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    if upright:
        axes.set_xlabel(literal(chart.along))
        axes.set_ylabel(literal(chart.label, 80))
    else:
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.set_xlabel(literal(chart.label, 80))


def _lines(axes: Axes, chart: Lines) -> None:
    for place, (name, along, values) in enumerate(chart.lines):
        marker = "o" if len(values) < _FEW else None
        colour = _LINE_COLOURS[place % len(_LINE_COLOURS)]
        axes.plot(along, values, color=colour, marker=marker, markersize=4.0, label=literal(name))
        endless = [at for at, value in zip(along, values, strict=True) if math.isinf(value)]
        if endless:  # such values cannot be seen
            words = literal(f"{name}: infinite from {endless[0]:g} {chart.along} on", 80)
            axes.text(0.98, 0.06, words, transform=axes.transAxes, ha="right", color=_FAILS)
    if chart.mark is not None:
        name, where = chart.mark
        axes.axhline(where, color=_SOFT, linewidth=1.2, linestyle=(0, (4, 2)), label=literal(name))
    if chart.logarithmic:
        _logarithmic(axes, sorted({place for _, along, _ in chart.lines for place in along}))
    else:
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(0.0, 1.03 * max(max(along) for _, along, _ in chart.lines))
    axes.set_xlabel(literal(chart.along))
    axes.set_ylabel(literal(chart.label, 80))
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    if len(chart.lines) > 1 or chart.mark is not None:
        axes.legend(frameon=False, fontsize=9)


def _logarithmic(axes: Axes, places: Sequence[float]) -> None:
    """Plain numbers at the places, and beside the values as many as fit."""
    from matplotlib.ticker import LogFormatter

    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(LogFormatter())
    axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1.0, 0.5)))


def _cells(axes: Axes, chart: Cells) -> None:
    """Colours are symmetric around 0, which is white."""
    values = np.asarray(chart.values, dtype=np.float64)
    most = float(np.abs(values).max()) or 1.0
    image = axes.imshow(values, aspect="auto", interpolation="nearest", cmap="RdBu_r", vmin=-most, vmax=most)
    figure = axes.get_figure()
    assert figure is not None
    figure.colorbar(image, ax=axes, label=literal(chart.label, 80))
    _names(axes, chart.rows, "y")
    _names(axes, chart.columns, "x")


def _names(axes: Axes, names: Sequence[str], which: str) -> None:
    """At most so many names, smaller if they are many; below a picture long ones are turned."""
    every = max(1, math.ceil(len(names) / _MOST_LABELS))
    if which == "x":
        shown = [literal(name, _MOST_LETTERS) for name in names[::every]]
        turned: dict[str, Any] = (
            {"rotation": 40.0, "ha": "right", "rotation_mode": "anchor"} if sum(map(len, shown)) > 50 else {}
        )
        axes.set_xticks(range(0, len(names), every), shown, fontsize=_SIZES[len(shown) > _LARGE_LABELS], **turned)
        return
    wrapped = [textwrap.wrap(name, _MOST_LETTERS, max_lines=2, placeholder="…") or [""] for name in names[::every]]
    shown = ["\n".join(map(literal, words)) for words in wrapped]
    axes.set_yticks(
        range(0, len(names), every), shown, fontsize=_SIZES[sum(map(len, wrapped)) > _LARGE_LABELS], linespacing=0.9
    )
