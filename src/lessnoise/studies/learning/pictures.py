"""The curves of case study III: accuracy against epochs, a panel for each data set and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.report.canvas import COLOURS, GRID, INK, blank, style, svg
from lessnoise.studies.learning import settings
from lessnoise.studies.learning.results import NAMES, Curve, curves, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

_COLOURS = {
    "sgd": "#222222",
    "dpsgd": COLOURS["classic-gaussian"],
    "dpsgd-exact": COLOURS["analytic-gaussian"],
    "r1smg-published": COLOURS["r1smg-published"],
    "r1smg": COLOURS["r1smg"],
    "strong": COLOURS["laplace"],
}
_TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}


def learning_svg(read_result: Callable[[str], dict[str, Any] | None] = read) -> bytes:
    """Test accuracy (lines, with bands over seeds) and training accuracy (dashed) for every result file there is."""
    cases = [(case, result) for case in settings.CASES.values() if (result := read_result(case.data)) is not None]
    strong = read_result("strong")
    with style():
        figure = blank(10.5, 3.9 * max(len(cases), 1) + 0.9)
        axes = figure.subplots(max(len(cases), 1), 2, squeeze=False)
        for row, (case, result) in zip(axes, cases, strict=False):
            found = curves(result)
            for panel, budget in zip(row, case.budgets, strict=True):
                shown = [curve for curve in found if curve.epsilon in (None, budget.epsilon)]
                _panel(panel, case, budget, shown)
                if strong is not None and budget.epsilon == settings.STRONG[case.data].epsilon:
                    _strong(panel, [run["test"] for run in strong["runs"] if run["data"] == case.data])
        handles = {
            line.get_label(): line for panel in axes.flat for line in panel.get_lines() if line.get_label()[0] != "_"
        }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=3, frameon=False)
        figure.tight_layout(rect=(0.0, 0.9 / figure.get_figheight(), 1.0, 1.0))
        return svg(figure)


def _panel(axes: Axes, case: settings.Case, budget: settings.Budget, shown: list[Curve]) -> None:
    for curve in shown:
        epochs = np.arange(1, len(curve.test) + 1)
        colour = _COLOURS[curve.method]
        axes.fill_between(epochs, curve.test[:, 1], curve.test[:, 2], color=colour, alpha=0.2, linewidth=0)
        axes.plot(epochs, curve.test[:, 0], color=colour, linewidth=1.6, label=NAMES[curve.method])
        axes.plot(epochs, curve.train[:, 0], color=colour, linewidth=0.9, linestyle=(0, (4, 2)), label="_train")
    axes.set_title(f"{_TITLES[case.data]}, claimed ({budget.epsilon:g}, 1e-5)", loc="left", color=INK)
    axes.set_xlabel("epoch")
    axes.set_ylabel("accuracy (dashed: training)")
    axes.set_ylim(0.0, 1.0)
    axes.grid(color=GRID, linewidth=0.6)


def _strong(axes: Axes, shares: list[float]) -> None:
    if shares:
        mean = float(np.mean(shares))
        axes.axhline(mean, color=_COLOURS["strong"], linewidth=1.3, linestyle=":", label=NAMES["strong"])
