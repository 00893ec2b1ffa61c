"""Table 1, the expected loss against M, and the range of epsilon: the paper's constants beside exact values."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise import text
from lessnoise.report import COLOURS, INK, LINES, MORE_COLOURS, blank, style, svg
from lessnoise_paper import theory
from lessnoise_paper.data.uber import WINDOW_ROWS
from lessnoise_paper.experiments.common import COUNT_QUERY, judged
from lessnoise_paper.experiments.drawing import (
    GREY,
    SOFT,
    VERDICT_COLOURS,
    legend_above,
    mark,
    note,
    quiet_axes,
    rows_of,
)
from lessnoise_paper.experiments.triangles import closing_picture
from lessnoise_paper.model import Experiment, Result, Settings, tick

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism
    from lessnoise_paper.model import Numbers, Progress

TAIL = 0.999
"""The quantile of the loss that table 1's "stability" is measured by here."""


# Table 1.


def make_table(folder: str | None, progress: Progress | None, **setting: float | str | list[int]) -> Result:
    """Each mechanism of table 1: its constant, its loss as published, its exact delta, and the loss that keeps it."""
    rows = []
    contenders = _table_mechanisms(setting)
    for done, (key, label, constant, published, exact) in enumerate(contenders):
        tick(progress, label, done, len(contenders))
        rows.append(
            {
                "key": key,
                "colour": MORE_COLOURS["r1smg-published" if key == "r1smg" else key],
                **judged(published, label),
                "constant": constant,
                "exact_loss": exact.expected_loss,
                "kurtosis": published.loss_kurtosis,
                "skewness": published.loss_skewness,
                "tail": published.loss_quantile(TAIL) / published.expected_loss,
                "low": published.loss_quantile(1.0 - TAIL) / published.expected_loss,
            }
        )
    tick(progress, "a bound for noise of any rank", len(contenders), len(contenders))
    target = {name: setting[name] for name in ("epsilon", "delta", "sensitivity")}
    bound = mechanisms.loss_lower_bound(**target, shape=tuple(setting["shape"]))  # type: ignore[arg-type]
    numbers = {"setting": setting, "rows": rows, "tail": TAIL, "bound": bound}
    return Result(numbers, {"table-1.svg": _table_picture(rows, bound)})


def _table_mechanisms(setting: Numbers) -> list[tuple[str, str, float, Mechanism, Mechanism]]:
    """(key, label, the paper's constant times D^2, as published, calibrated exactly)."""
    epsilon, delta = setting["epsilon"], setting["delta"]
    rows, columns = setting["shape"]
    cells, squared = rows * columns, setting["sensitivity"] ** 2
    target = {**setting, "shape": (rows, columns)}
    analytic = mechanisms.analytic_gaussian(**target)
    constants = {
        "classic-gaussian": theory.c_c(cells, epsilon, delta),
        "analytic-gaussian": theory.c_a(cells, epsilon, delta),
        "mvg": theory.c_m(rows, columns, epsilon),
        "r1smg": theory.c_r(cells, epsilon, delta),
    }
    found = [
        ("classic-gaussian", "classic Gaussian", mechanisms.classic_gaussian(**target), analytic),
        ("analytic-gaussian", "analytic Gaussian", analytic, analytic),
        ("mvg", "MVG", mechanisms.mvg(**target, bound=float(WINDOW_ROWS), calibration="published"), analytic),
        (
            "r1smg",
            "R1SMG",
            mechanisms.r1smg(**target, calibration="published"),
            mechanisms.r1smg(**target, calibration="exact"),
        ),
    ]
    return [(key, label, constants[key] * squared, published, exact) for key, label, published, exact in found]


def _table_picture(rows: list[Numbers], bound: float) -> bytes:
    with style():
        figure = blank(8.4, 3.3)
        axes = figure.add_axes((0.17, 0.17, 0.80, 0.66))
        for place, row in enumerate(rows):
            colour = row["colour"]
            marks = (row["constant"], row["expected_loss"], row["exact_loss"])
            axes.plot([min(marks), max(marks)], [place, place], color=colour, linewidth=5, alpha=0.3)
            axes.plot(row["constant"], place, "o", markerfacecolor="white", markeredgecolor=colour, markersize=12)
            axes.plot(row["expected_loss"], place, "D", color=colour, markersize=6)
            axes.plot(row["exact_loss"], place, "X", color=INK, markersize=9)
        rows_of(axes, [row["label"] for row in rows], line=True)
        left = 0.3 * min(min(row["constant"], row["expected_loss"]) for row in rows)
        axes.axvspan(left, bound, color="#E4E4E4", alpha=0.7, linewidth=0, zorder=0)
        axes.set_xlim(left=left)
        words = "impossible, whatever the rank (proved)"
        note(axes, words, (0.02, 0.95), (0, 0), "axes fraction", va="top", color=SOFT)
        axes.set_xlabel("expected loss (logarithmic)")
        looks: dict[str, Any] = {"markersize": 8, "markeredgecolor": GREY}
        legend_above(
            figure,
            mark("the paper's constant", "o", **looks),
            mark("as published", "D", **looks),
            mark("what its claim takes", "X", markerfacecolor=INK, **looks),
        )
        return svg(figure)


# Expected loss against M (figure 9).

EPSILONS, DIMENSION_DELTA = (1e-7, 1e-8, 1e-9), 1e-10
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)))


def make_dimensions(
    folder: str | None, progress: Progress | None, *, dimensions: list[int], epsilons: list[float], delta: float
) -> Result:
    """The paper's figure of loss against M, and below it what happens to delta meanwhile."""
    tick(progress, "exact curves", 0, 1)
    rows = [
        {
            **asdict(row),
            "in_stated_range": row.in_stated_range,
            "any_rank": theory.any_rank_bound(row.dimension, row.epsilon, delta),
        }
        for row in theory.loss_against_dimension(dimensions, epsilons, delta)
    ]
    numbers = {"delta": delta, "epsilons": epsilons, "rows": rows}
    return Result(numbers, {"loss-against-dimension.svg": _dimensions_picture(numbers)})


def _dimensions_picture(numbers: Numbers) -> bytes:
    lines = (
        ("classic", "classic Gaussian", COLOURS["classic-gaussian"]),
        ("analytic_exact", "analytic Gaussian, exact", COLOURS["analytic-gaussian"]),
        ("r1smg", "R1SMG, published", COLOURS["r1smg-published"]),
    )
    with style():
        figure = blank(8.6, 6.4)
        upper, lower = figure.add_axes((0.11, 0.45, 0.70, 0.47)), figure.add_axes((0.11, 0.08, 0.70, 0.29))
        for epsilon, dashes in zip(numbers["epsilons"], _DASHES, strict=False):
            rows = [row for row in numbers["rows"] if row["epsilon"] == epsilon]
            sizes = [row["dimension"] for row in rows]
            for key, _, colour in lines:
                upper.plot(sizes, [row[key] for row in rows], color=colour, linestyle=dashes, linewidth=1.8)
            for key in ("analytic_exact", "r1smg"):
                note(upper, f"ε = {text.number(epsilon)}", (sizes[-1], rows[-1][key]), (6, 0), va="center")
            deltas = [row["r1smg_delta"] for row in rows]
            lower.plot(sizes, deltas, color=COLOURS["r1smg-published"], linestyle=dashes, linewidth=1.8)
        largest = max(numbers["epsilons"])
        widest = [row for row in numbers["rows"] if row["epsilon"] == largest]
        upper.set_ylim(0.1 * min(row["r1smg"] for row in widest), 30.0 * max(row["classic"] for row in numbers["rows"]))
        sizes, limit = [row["dimension"] for row in widest], [row["any_rank"] for row in widest]
        upper.fill_between(sizes, upper.get_ylim()[0], limit, color="#E4E4E4", alpha=0.7, linewidth=0, zorder=0)
        words = f"no noise of any rank keeps (ε, δ) here at ε = {text.number(largest)} or less (proved)"
        note(upper, words, (0.5, 0.40), (0, 0), "axes fraction", ha="center", color=SOFT)
        claimed = numbers["delta"]
        lower.axhline(claimed, color=INK, linewidth=1.2)
        beside = ("axes fraction", "data")
        note(lower, f"claimed: {text.number(claimed)}", (1.0, claimed), (6, 0), beside, va="center")
        worst = max(numbers["rows"], key=lambda row: row["r1smg_delta"])
        words = f"exact: up to {text.at_most(worst['r1smg_delta'], 2)}"
        note(lower, words, (worst["dimension"], worst["r1smg_delta"]), (6, 0), va="center")
        quiet_axes(upper, log="xy")
        quiet_axes(lower, log="xy")
        upper.set_ylabel("expected loss")
        lower.set_ylabel("δ of R1SMG, published")
        lower.set_xlabel("number of entries M")
        lower.set_ylim(claimed / 30.0, 5.0)
        legend_above(figure, *(mark(label, color=colour, linewidth=2.5) for _, label, colour in lines))
        return svg(figure)


# The range of epsilon (figure 2).


def make_range(
    folder: str | None,
    progress: Progress | None,
    *,
    delta: float,
    sensitivity: float,
    dimension: int,
    epsilons: list[float],
) -> Result:
    """The exact delta of R1SMG calibrated as published for each epsilon, below and above the stated limit 1/M."""
    rows = []
    for done, epsilon in enumerate(epsilons):
        tick(progress, f"epsilon = {epsilon:.2g}", done, len(epsilons))
        target: Numbers = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "shape": dimension}
        published, gaussian = (
            mechanisms.r1smg(**target, calibration="published"),
            mechanisms.analytic_gaussian(**target),
        )
        exact = published.delta(epsilon)
        rows.append(
            {
                "epsilon": epsilon,
                "exact": exact.to_dict(),
                "length": math.sqrt(published.expected_loss) / sensitivity,
                "gaussian_length": math.sqrt(gaussian.expected_loss) / sensitivity,
                "gaussian_exact": gaussian.delta(epsilon).to_dict(),
            }
        )
    numbers = {
        "delta": delta,
        "sensitivity": sensitivity,
        "dimension": dimension,
        "limit": 1.0 / dimension,
        "meeting": {
            "classic": theory.meeting_epsilon_classic(dimension, delta),
            "r1smg": theory.meeting_epsilon_r1smg(dimension, delta),
        },
        "rows": rows,
    }
    return Result(numbers, {"range-of-epsilon.svg": _range_picture(numbers), "triangles.svg": closing_picture(numbers)})


def _range_picture(numbers: Numbers) -> bytes:
    rows = numbers["rows"]
    epsilons = [row["epsilon"] for row in rows]
    with style():
        figure = blank(8.6, 3.9)
        left, right = figure.add_axes((0.085, 0.15, 0.39, 0.70)), figure.add_axes((0.59, 0.15, 0.39, 0.70))
        for axes in (left, right):
            axes.axvspan(numbers["limit"], epsilons[-1], color="#E4E4E4", alpha=0.6, linewidth=0)
            axes.set_xlabel("epsilon that R1SMG is calibrated for")
            quiet_axes(axes, log="xy")
            axes.set_xlim(epsilons[0], epsilons[-1])
            note(axes, "above 1/M", (numbers["limit"], 0.42), (4, 0), ("data", "axes fraction"))
        published, beside = COLOURS["r1smg-published"], ("axes fraction", "data")
        lengths, theirs = ([row[key] for row in rows] for key in ("length", "gaussian_length"))
        left.plot(epsilons, lengths, color=published, label="R1SMG, published", linewidth=2)
        looks: dict[str, Any] = {"color": COLOURS["analytic-gaussian"], "linestyle": LINES["l2"], "linewidth": 2}
        left.plot(epsilons, theirs, label="analytic Gaussian", **looks)
        left.axhline(1.0, color=INK, linewidth=1.0)
        note(left, "the shift to hide", (0.02, 1.0), (0, 4), beside)
        left.set_ylabel("noise length / shift (root mean square)")
        left.legend(frameon=False, fontsize=8.5, loc="upper right")
        deltas = [row["exact"]["upper"] for row in rows]
        right.plot(epsilons, deltas, color=published, linewidth=2)
        right.axhline(numbers["delta"], color=VERDICT_COLOURS["holds"], linewidth=1.4)
        note(right, "claimed", (0.02, numbers["delta"]), (0, 4), beside)
        note(right, "exact", (0.02, deltas[0]), (0, 7), beside)
        right.set_ylim(numbers["delta"] / 10.0, 3.0)
        right.set_ylabel("δ of R1SMG, published")
        return svg(figure)


def _dimension_parameters(settings: Settings) -> Numbers:
    points = 9 if settings.quick else 41
    sizes = sorted({round(size) for size in np.geomspace(1e2, 1e6, points)})
    return {"dimensions": sizes, "epsilons": list(EPSILONS), "delta": DIMENSION_DELTA}


def _range_parameters(settings: Settings) -> Numbers:
    points = 13 if settings.quick else 37
    return {
        "delta": COUNT_QUERY["delta"],
        "sensitivity": COUNT_QUERY["sensitivity"],
        "dimension": math.prod(COUNT_QUERY["shape"]),
        "epsilons": [float(f"{value:.6g}") for value in np.geomspace(1e-6, 1.0, points)],
    }


TABLE = Experiment("table-1", lambda _settings: dict(COUNT_QUERY), make_table)
DIMENSIONS = Experiment("loss-against-dimension", _dimension_parameters, make_dimensions)
RANGE = Experiment("range-of-epsilon", _range_parameters, make_range)
