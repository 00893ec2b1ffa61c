"""Pictures of case study II: deviation and accuracy against epsilon, spectra with their noise floor, components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import text
from lessnoise.errors import InvalidInput
from lessnoise.report.canvas import GRID, INK, LINES, MORE_COLOURS, blank, png, style
from lessnoise_paper.experiments.components import label_of
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy

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
_MARKS = {"holds": "o", "fails": "X", "not proved": "d"}
_SHOWN = 60  # eigenvalues of a scree plot


def pca_files(study: PcaStudy) -> dict[str, bytes]:
    """Every picture by its file name."""
    return {f"{name}.png": png(draw(study)) for name, draw in FIGURES.items() if name != "components" or study.image}


def _panel(axes: Any, series: dict[str, list[Point]], of: Callable[[Point], tuple[float, ...]]) -> None:  # noqa: ANN401
    for key, points in series.items():
        means = [float(np.mean(of(point))) for point in points]
        spread = [float(np.std(of(point))) for point in points]
        word = points[-1].verdict_word
        axes.errorbar(
            [point.axis for point in points],
            means,
            yerr=spread,
            label=label_of(key) + {"holds": "", "fails": " (claim fails)", "not proved": " (not proved)"}[word],
            color=MORE_COLOURS[key],
            linestyle=_LINES[key],
            linewidth=2.4 if key in ("least-noise", "r1smg-published") else 1.6,
            marker=_MARKS[word],
            markersize=5,
            elinewidth=0.8,
            capsize=2,
        )
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def _finish(deviation: Any, accuracy: Any, study: PcaStudy, axis: str) -> None:  # noqa: ANN401
    for axes in (deviation, accuracy):
        axes.set_xlabel(axis)
    deviation.set_ylim(0.0, 1.06 * deviation.get_ylim()[1])
    deviation.set_ylabel("total deviation" + ("" if study.measured == study.shape[1] else f", first {study.measured}"))
    accuracy.axhline(study.baseline, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    accuracy.annotate(
        f"without noise {study.baseline:.1%}",
        (1.0, study.baseline),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
    )
    accuracy.set_ylabel(f"accuracy on the first {study.components} components")


def published_figure(study: Values) -> Figure:
    """Deviation and accuracy against epsilon, every mechanism as its source says."""
    return _part(as_study(study), "published")


def small_figure(study: Values) -> Figure:
    """The same at 1e-7 of the epsilon."""
    return _part(as_study(study), "small")


def _part(study: PcaStudy, part: str) -> Figure:
    with style():
        figure = blank(9.6, 4.9)
        left, right = figure.subplots(1, 2)
        series = study.of(part)
        _panel(left, series, lambda point: point.deviations)
        _panel(right, series, lambda point: point.accuracies)
        axis = "epsilon (R1SMG: 1e-7 of it)" if part == "published" else "epsilon / 1e-7"
        _finish(left, right, study, axis)
        figure.suptitle(f"{study.title}, {study.shape[0]:,} x {study.shape[1]:,}. {PARTS[part]}", x=0.02, ha="left")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=8.5)
        figure.tight_layout(rect=(0.0, 0.17, 1.0, 0.97))
        return figure


def equal_figure(study: Values) -> Figure:
    """Deviation and accuracy at one exact guarantee: entry bounds above, clipped rows below."""
    study = as_study(study)
    with style():
        figure = blank(9.6, 8.2)
        rows = figure.subplots(2, 2, sharex=True, sharey="col")
        for (left, right), part in zip(rows, ("equal-bounds", "equal-clip"), strict=True):
            series = study.of(part)
            _panel(left, series, lambda point: point.deviations)
            _panel(right, series, lambda point: point.accuracies)
            _finish(left, right, study, "epsilon")
            limit = f"rows clipped to norm {study.clip_norm:g}" if part == "equal-clip" else "entries in [-1, 1]"
            left.set_title(f"{limit}", loc="left", fontsize=10)
        figure.suptitle(f"{study.title}. Equal exact privacy, delta = {text.number(study.delta)}", x=0.02, ha="left")
        handles, labels = rows[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=8.5)
        figure.tight_layout(rect=(0.0, 0.08, 1.0, 0.97))
        return figure


def scree_figure(study: Values) -> Figure:
    """Eigenvalues with and without noise, and the floor below which noise alone would reach."""
    study = as_study(study)
    with style():
        figure = blank(9.6, 4.2)
        panels = figure.subplots(1, 2, sharey=True)
        shown = min(_SHOWN, study.shape[1])
        places = np.arange(1, shown + 1)
        largest = max(point.axis for point in study.points)
        smallest = max(float(study.spectrum[shown - 1]), 1e-6 * float(study.spectrum[0]))
        for axes, (part, released) in zip(panels, study.noisy.items(), strict=True):
            values, floor = released.values, released.floor
            axes.semilogy(places, np.maximum(study.spectrum[:shown], 1e-12), color=INK, label="without noise")
            positive = values[:shown] > 0.0
            axes.semilogy(
                places[positive], values[:shown][positive], "o", markersize=3.5, color="#0077BB", label="released"
            )
            axes.axhspan(1e-12, floor, color="#CC6677", alpha=0.18, linewidth=0, label="below the noise floor")
            axes.set_title(
                f"rows clipped to norm {study.clip_norm:g}" if part == "equal-clip" else "entries in [-1, 1]",
                loc="left",
                fontsize=10,
            )
            axes.set_xlabel("component")
            axes.grid(color=GRID, linewidth=0.6)
        panels[0].set_ylim(smallest / 2.0, 3.0 * max(float(found.values[0]) for found in study.noisy.values()))
        panels[0].set_ylabel("eigenvalue")
        panels[1].legend(frameon=False, fontsize=8.5)
        figure.suptitle(
            f"{study.title}. Least noise at epsilon = {largest:g}, delta = {text.number(study.delta)}: what stands out",
            x=0.02,
            ha="left",
        )
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.97))
        return figure


def components_figure(study: Values) -> Figure:
    """The first components as pictures; for tables of pictures."""
    study = as_study(study)
    if study.image is None:
        raise InvalidInput(f"data={study.title!r} holds no pictures: its components cannot be drawn as such.")
    rows = {"without noise": study.directions}
    for part, released in study.noisy.items():
        rows["clipped rows" if part == "equal-clip" else "entry bounds"] = released.vectors
    count = len(study.directions)
    with style():
        figure = blank(9.6, 4.3)
        panels = figure.subplots(len(rows), count)
        for number, (line, (title, vectors)) in enumerate(zip(panels, rows.items(), strict=True)):
            for place, axes in enumerate(line):
                picture = vectors[place] * np.sign(vectors[place] @ study.directions[place] or 1.0)
                limit = float(np.abs(picture).max())
                axes.imshow(picture.reshape(study.image), cmap="RdBu_r", vmin=-limit, vmax=limit)
                axes.set_xticks([])
                axes.set_yticks([])
                if number == 0:
                    axes.set_title(f"{place + 1}", fontsize=9)
            line[0].set_ylabel(title, fontsize=9)
        largest = max(point.axis for point in study.points)
        figure.suptitle(
            f"{study.title}. First components at epsilon = {largest:g}, delta = {text.number(study.delta)}",
            x=0.02,
            ha="left",
        )
        figure.tight_layout(rect=(0.0, 0.0, 1.0, 0.98))
        return figure


FIGURES: dict[str, Callable[[Values], Figure]] = {
    "published": published_figure,
    "small": small_figure,
    "equal": equal_figure,
    "scree": scree_figure,
    "components": components_figure,
}
"""A function that draws each figure, from a study or from its dictionary."""


def as_study(values: Values) -> PcaStudy:
    """A study, also from :meth:`PcaStudy.to_dict`."""
    return values if isinstance(values, PcaStudy) else PcaStudy.from_dict(values)
