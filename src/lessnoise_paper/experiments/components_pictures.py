"""Pictures of case study II: deviation and accuracy against epsilon, spectra with their noise floor, components."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import text
from lessnoise.errors import InvalidInput
from lessnoise.report import GRID, INK, LINES, MORE_COLOURS, blank, style
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy
from lessnoise_paper.experiments.drawing import BOTH_WAYS, legend_below, note, quiet_axes

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from lessnoise_paper.experiments.components_result import Point

    Values = PcaStudy | dict[str, Any]

_LINES: dict[str, Any] = {
    **LINES,
    "mvg-published": "-.",
    "mgm": ":",
    "mod-sulq": (0, (4, 2)),
    "mod-sulq-exact": (0, (4, 2)),
    "wishart": (0, (4, 1, 1, 1)),
    "ppca": "-",
    "least-noise": "-",
    "r1smg-published": "-",
}
_MARKS = {"holds": ("o", ""), "fails": ("X", " (claim fails)"), "not proved": ("d", " (not proved)")}
_SHOWN = 60  # eigenvalues of a scree plot


def _panels(left: Any, right: Any, study: PcaStudy, part: str, axis: str) -> None:  # noqa: ANN401
    """Deviation and accuracy of one part, side by side."""
    series = study.of(part)
    for axes, name in ((left, "deviation"), (right, "accuracy")):
        for key, points in series.items():
            _line(axes, key, points, name)
        quiet_axes(axes)
        axes.set_xlabel(axis)
    left.set_ylim(0.0, 1.06 * left.get_ylim()[1])
    left.set_ylabel("total deviation")
    right.axhline(study.baseline, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    words, place = f"without noise {study.baseline:.1%}", (1.0, study.baseline)
    note(right, words, place, (0, 3), ("axes fraction", "data"), ha="right")
    right.set_ylabel(f"accuracy on the first {study.components} components")


def _line(axes: Any, key: str, points: list[Point], name: str) -> None:  # noqa: ANN401
    """The mean over the releases, with bars of one standard deviation to either side."""
    marker, remark = _MARKS[points[-1].verdict_word]
    axes.errorbar(
        [point.axis for point in points],
        [getattr(point, name) for point in points],
        yerr=[getattr(point, f"{name}_spread") for point in points],
        label=points[0].label + remark,
        color=MORE_COLOURS[key],
        linestyle=_LINES[key],
        linewidth=2.4 if key in ("least-noise", "r1smg-published") else 1.6,
        marker=marker,
        markersize=5,
        elinewidth=0.8,
        capsize=2,
    )


def _drawn(height: float, below: float = 0.0, above: float = 0.97) -> Callable[..., Callable[[Values], Figure]]:
    """A picture of this height: what is decorated draws on the figure, and returns its title and the axes of a legend.

    The study may be given as its dictionary.
    """

    def decorate(draw: Callable[[Figure, PcaStudy], tuple[str, Any]]) -> Callable[[Values], Figure]:
        @functools.wraps(draw)
        def drawn(values: Values) -> Figure:
            study = values if isinstance(values, PcaStudy) else PcaStudy.from_dict(values)
            with style():
                figure = blank(9.6, height)
                title, legend = draw(figure, study)
                figure.suptitle(f"{study.title}{title}", x=0.02, ha="left")
                if legend is not None:
                    legend_below(figure, legend, fontsize=8.5)
                figure.tight_layout(rect=(0.0, below, 1.0, above))
                figure.set_layout_engine(None)  # it is laid out: saving it needs no second look
                return figure

        return drawn

    return decorate


def _part(figure: Figure, study: PcaStudy, part: str, axis: str) -> tuple[str, Any]:
    left, right = figure.subplots(1, 2)
    _panels(left, right, study, part, axis)
    return f", {study.shape[0]:,} x {study.shape[1]:,}. {PARTS[part]}", left


@_drawn(4.9, 0.17)
def published_figure(figure: Figure, study: PcaStudy) -> tuple[str, Any]:
    """Deviation and accuracy against epsilon, every mechanism as its source says."""
    return _part(figure, study, "published", "epsilon (of R1SMG: 1e-7 times this)")


@_drawn(4.9, 0.17)
def small_figure(figure: Figure, study: PcaStudy) -> tuple[str, Any]:
    """The same, where every mechanism has the small epsilon of R1SMG."""
    return _part(figure, study, "small", "epsilon / 1e-7")


@_drawn(8.2, 0.08)
def equal_figure(figure: Figure, study: PcaStudy) -> tuple[str, Any]:
    """Deviation and accuracy at one exact guarantee: entry bounds above, clipped rows below."""
    rows = figure.subplots(2, 2, sharex=True, sharey="col")
    for (left, right), part in zip(rows, ("equal-bounds", "equal-clip"), strict=True):
        _panels(left, right, study, part, "epsilon")
        left.set_title(_limit(study, part), loc="left", fontsize=10)
    return f". Equal exact privacy, delta = {text.number(study.delta)}", rows[0][0]


def _limit(study: PcaStudy, part: str) -> str:
    return f"rows clipped to norm {study.clip_norm:g}" if part == "equal-clip" else "entries in [-1, 1]"


def _at_the_right_end(study: PcaStudy) -> str:
    return f"at epsilon = {max(point.axis for point in study.points):g}, delta = {text.number(study.delta)}"


@_drawn(4.2)
def scree_figure(figure: Figure, study: PcaStudy) -> tuple[str, Any]:
    """Eigenvalues with and without noise, and the floor below which noise alone would reach."""
    panels = figure.subplots(1, 2, sharey=True)
    shown = min(_SHOWN, study.shape[1])
    places = np.arange(1, shown + 1)
    smallest = max(float(study.spectrum[shown - 1]), 1e-6 * float(study.spectrum[0]))
    for axes, (part, released) in zip(panels, study.noisy.items(), strict=True):
        values = released.values[:shown]
        axes.semilogy(places, np.maximum(study.spectrum[:shown], 1e-12), color=INK, label="without noise")
        positive = values > 0.0
        axes.semilogy(places[positive], values[positive], "o", markersize=3.5, color="#0077BB", label="released")
        axes.axhspan(1e-12, released.floor, color="#CC6677", alpha=0.18, linewidth=0, label="below the noise floor")
        axes.set_title(_limit(study, part), loc="left", fontsize=10)
        axes.set_xlabel("component")
        axes.grid(color=GRID, linewidth=0.6)
    panels[0].set_ylim(smallest / 2.0, 3.0 * max(float(found.values[0]) for found in study.noisy.values()))
    panels[0].set_ylabel("eigenvalue")
    panels[1].legend(frameon=False, fontsize=8.5)
    return f". Least noise {_at_the_right_end(study)}: what stands out", None


@_drawn(4.9, 0.13, above=0.98)
def components_figure(figure: Figure, study: PcaStudy) -> tuple[str, Any]:
    """The first components as pictures; for tables of pictures."""
    if study.image is None or study.directions is None:
        raise InvalidInput(f"data={study.title!r} holds no pictures: its components cannot be drawn as such.")
    rows: dict[str, Any] = {"without noise": study.directions}
    for part, released in study.noisy.items():
        rows["clipped rows" if part == "equal-clip" else "entry bounds"] = released.vectors
    panels = figure.subplots(len(rows), len(study.directions))
    for number, (line, (title, vectors)) in enumerate(zip(panels, rows.items(), strict=True)):
        for place, axes in enumerate(line):
            picture = vectors[place] * np.sign(vectors[place] @ study.directions[place] or 1.0)
            limit = float(np.abs(picture).max())
            axes.imshow(picture.reshape(study.image), cmap=BOTH_WAYS, vmin=-limit, vmax=limit)
            axes.set_xticks([])
            axes.set_yticks([])
            if number == 0:
                axes.set_title(f"{place + 1}", fontsize=9)
        line[0].set_ylabel(title, fontsize=9)
    _sign_bar(figure, panels[-1][0])
    return f". First components {_at_the_right_end(study)}", None


def _sign_bar(figure: Figure, panel: Any) -> None:  # noqa: ANN401
    """The colours of all pictures of components, whose scales end at their own largest entries."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    place = panel.inset_axes((0.3, 0.1, 0.4, 0.025), transform=figure.transFigure)
    place.set_in_layout(False)
    bar = figure.colorbar(ScalarMappable(Normalize(-1.0, 1.0), BOTH_WAYS), cax=place, orientation="horizontal")
    bar.set_ticks([-1.0, 0.0, 1.0], labels=["-largest", "0", "largest"], fontsize=9)
    bar.set_label("entry of the component; each picture goes up to its own largest entry", fontsize=9)
    bar.outline.set_visible(False)


FIGURES: dict[str, Callable[[Values], Figure]] = {
    "published": published_figure,
    "small": small_figure,
    "equal": equal_figure,
    "scree": scree_figure,
    "components": components_figure,
}
"""A function that draws each figure, from a study or from its dictionary."""
