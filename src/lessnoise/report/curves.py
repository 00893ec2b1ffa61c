"""Pictures of single objects, for notebooks: the privacy curve beside the claim, the noisy value, the spending."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import _display
from lessnoise.composition import Composition
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Verdict
from lessnoise.ledger import Ledger, draw_spending_on, history
from lessnoise.mechanism import Mechanism
from lessnoise.planning import ReleasePlan
from lessnoise.release import Release
from lessnoise.report.canvas import COLOURS, GRID, literal, notebook_figure, style
from lessnoise.text import down, up

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lessnoise.guarantees import Guarantee

_EXACT, _HOLDS, _FAILS, _SOFT = COLOURS["analytic-gaussian"], "#117733", "#B02A0C", "#666666"
_POINTS, _FEW_POINTS = 49, 17
_MOST_BARS = 2000
_USUAL_DELTA = 1e-6


@_display.picture.register(_display.Plotted)
def picture(shown: _display.Plotted, axes: Axes | None = None) -> Figure:
    """Draw an object on ``axes``, or on a figure of its own."""
    with style():
        if axes is None:
            axes = notebook_figure(6.4, 4.0).subplots()
        draw(shown, axes)
    figure = axes.get_figure()
    assert figure is not None
    return figure  # type: ignore[return-value]


@functools.singledispatch
def draw(shown: object, axes: Axes) -> None:
    """What is drawn for each kind of object."""
    raise TypeError(f"no picture is known for {type(shown).__name__}")


@draw.register(Mechanism)
def _(shown: Mechanism, axes: Axes) -> None:
    reach = 2.0 * shown.claim.epsilon if shown.claim is not None else 2.0
    _curve(axes, shown, np.linspace(0.0, reach, _POINTS))
    axes.set_title(f"{literal(shown.name)}, M = {shown.dimension:,}", loc="left")
    if shown.claim is not None:
        _claim(axes, shown.claim, shown.check().holds)
    axes.legend(frameon=False)


@draw.register(Composition)
def _(shown: Composition, axes: Axes) -> None:
    there = shown.epsilon(_USUAL_DELTA).upper
    reach = 1.5 * there if 0.0 < there < np.inf else 2.0
    _curve(axes, shown, np.linspace(0.0, reach, _FEW_POINTS))
    axes.set_title(f"{shown.count:,} releases together", loc="left")
    axes.legend(frameon=False)


@draw.register(ReleasePlan)
def _(shown: ReleasePlan, axes: Axes) -> None:
    places = np.arange(len(shown.items))[::-1]
    deviations = [item.mechanism.standard_deviation for item in shown.items]
    axes.barh(places, deviations, color=_EXACT, height=0.6)
    words = [f"{literal(item.name)}\n{item.times:,} of {literal(item.mechanism.name)}" for item in shown.items]
    axes.set_yticks(places, words)
    axes.set_xlabel("noise of an entry, standard deviation")
    target = f"({up(shown.target.epsilon)}, {up(shown.target.delta)})"
    axes.set_title(f"{shown.times:,} releases within {target}", loc="left")


@draw.register(Verdict)
def _(shown: Verdict, axes: Axes) -> None:
    claimed, exact = shown.claimed, shown.exact
    colour = _HOLDS if shown.holds else _FAILS
    floor = max(min((value for value in (claimed.delta, exact.lower) if value > 0.0), default=1e-12) / 10.0, 1e-300)
    axes.set_xscale("log")
    axes.hlines([0.0, 1.0], floor, [max(claimed.delta, floor), max(exact.upper, floor)], color=GRID, linewidth=6.0)
    axes.plot([max(claimed.delta, floor)], [0.0], "D", color=_SOFT, label="claimed")
    ends = [max(exact.lower, floor), max(exact.upper, floor)]
    axes.plot(ends, [1.0, 1.0], "|-", color=colour, markersize=14.0, label="exact")
    words = (f"claimed  {claimed.delta:g}", f"exact  {down(exact.lower, 4)} to {up(exact.upper, 4)}")
    axes.set_yticks([0.0, 1.0], words)
    axes.set_ylim(-0.7, 1.7)
    axes.set_xlabel(f"δ at ε = {claimed.epsilon:g}")
    word = "holds" if shown.holds else "fails" if shown.refuted else "is not proved"
    axes.set_title(f"The claim {word}", loc="left", color=colour)


@draw.register(Release)
def _(shown: Release, axes: Axes) -> None:
    mechanism, value = shown.certificate.mechanism, np.asarray(shown.value, dtype=np.float64)
    try:
        deviation: float | None = mechanism.standard_deviation
    except InvalidInput:
        deviation = None
    private = "" if shown.certificate.private else "; seeded, NOT private"
    noise = "noise depends on the data" if deviation is None else f"noise of standard deviation {deviation:.4g}"
    axes.set_title(f"{literal(mechanism.name)}, {noise}{private}", loc="left", fontsize=10.0)
    if value.ndim == 2 and min(value.shape) > 1:
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        image = axes.imshow(value, aspect="auto", interpolation="nearest", cmap="cividis")
        figure = axes.get_figure()
        assert figure is not None
        figure.colorbar(image, ax=axes, label="noisy value")
        return
    flat = value.ravel()
    if value.size <= _MOST_BARS and value.ndim < 3:
        places = np.arange(flat.size)
        if deviation is not None:
            band = flat - deviation, flat + deviation
            axes.fill_between(places, *band, step="mid", color=_EXACT, alpha=0.2, linewidth=0, label="± noise")
        axes.step(places, flat, where="mid", color=_EXACT, label="noisy value", marker="." if flat.size < 60 else None)
        axes.set_xlabel("entry")
        axes.set_ylabel("noisy value")
        axes.legend(frameon=False)
        return
    axes.hist(flat, bins=min(100, max(10, int(np.sqrt(flat.size)))), color=_EXACT)
    axes.set_xlabel("noisy value")
    axes.set_ylabel("entries")


@draw.register(Ledger)
def _(shown: Ledger, axes: Axes) -> None:
    draw_spending_on(axes, history(shown), shown.budget)


def _curve(axes: Axes, shown: Mechanism | Composition, epsilons: np.ndarray) -> None:
    """Both ends of delta(epsilon); where it is 0 there is nothing on a logarithmic axis."""
    brackets = [shown.delta(float(epsilon)) for epsilon in epsilons]
    lower, upper = (np.array([getattr(one, end) for one in brackets]) for end in ("lower", "upper"))
    seen = upper > 0.0
    axes.set_yscale("log")
    axes.fill_between(
        epsilons[seen], np.maximum(lower[seen], 1e-300), upper[seen], color=_EXACT, alpha=0.25, linewidth=0
    )
    axes.plot(epsilons[seen], upper[seen], color=_EXACT, label="exact δ(ε), upper end")
    axes.set_xlim(0.0, float(epsilons[-1]))
    axes.set_xlabel("ε")
    axes.set_ylabel("δ")
    axes.grid(color=GRID, linewidth=0.6)


def _claim(axes: Axes, claim: Guarantee, holds: bool) -> None:
    colour, word = (_HOLDS, "holds") if holds else (_FAILS, "fails")
    if claim.delta > 0.0:
        axes.plot(
            [claim.epsilon], [claim.delta], "o" if holds else "X", color=colour, markersize=8.0, label=f"claim, {word}"
        )
    else:
        axes.axvline(claim.epsilon, color=colour, linestyle=(0, (4, 2)), label=f"claim of pure privacy, {word}")
