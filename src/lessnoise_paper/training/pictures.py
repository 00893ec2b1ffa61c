"""The pictures of case study III, from the result files: no PyTorch is needed to draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.report import COLOURS, GRID, INK, LINES, blank, style
from lessnoise.text import down, up
from lessnoise_paper.experiments.drawing import legend_below, quiet_axes
from lessnoise_paper.training import results, settings
from lessnoise_paper.training.compared import OPTIMIZERS, compared, curves_of
from lessnoise_paper.training.results import NAMES, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lessnoise_paper.training.compared import Compared
    from lessnoise_paper.training.membership import Membership
    from lessnoise_paper.training.results import Curve, Reader


METHOD_COLOURS = {
    "sgd": "#222222",
    "dpsgd": COLOURS["classic-gaussian"],
    "dpsgd-exact": COLOURS["analytic-gaussian"],
    "r1smg-published": COLOURS["r1smg-published"],
    "r1smg": COLOURS["r1smg"],
    "strong": COLOURS["laplace"],
}
_LINES: dict[str, Any] = {"dpsgd-exact": (0, (5, 2)), "r1smg-published": LINES["r1smg-published"], "strong": ":"}
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_PARTS = {"test": "accuracy on the test set", "train": "accuracy on training records"}
_WIDTH, _HEIGHT = 10.5, 8.6  # inches, of one data set
_WITHOUT, _WITH = "#999999", "#CC3311"


def figures(read_result: Reader = read, found: Sequence[Membership] = ()) -> dict[str, Figure]:
    """Every picture there are results for, by name: "mnist", "cifar10", "sweep", "membership"."""
    drawn = {name: accuracy_figure(name, read_result) for name in settings.CASES if read_result(name) is not None}
    ways = compared(read_result)
    drawn |= {"sweep": swept_figure(ways, read_result)} if ways else {}
    return drawn | ({"membership": membership_figure(found)} if found else {})


def accuracy_figure(data: str, read_result: Reader = read) -> Figure:
    """Test and training accuracy after each epoch, a column for each budget: means, and bands from least to greatest.

    Below each column stands what every line really guarantees.

    >>> accuracy_figure("mnist").get_size_inches().tolist()
    [10.5, 8.6]
    """
    case, result, strong = settings.CASES[data], read_result(data), read_result("strong")
    found = [] if result is None else results.curves(result)
    with style():
        figure = blank(_WIDTH, _HEIGHT)
        axes = figure.subplots(2, len(case.budgets), sharex=True, sharey=True)
        for column, budget in enumerate(case.budgets):
            shown = [curve for curve in found if curve.epsilon in (None, budget.epsilon)]
            for row, part in enumerate(_PARTS):
                panel: Axes = axes[row][column]
                _lines(panel, shown, part)
                if budget.epsilon == settings.STRONG[data].epsilon:
                    _strong(panel, [] if strong is None else strong["runs"], data, part)
                _dress(panel, part, first=column == 0)
            top, bottom = axes[0][column], axes[1][column]
            top.set_title(f"{TITLES[data]}, claimed ({budget.epsilon:g}, 1e-5)", loc="left", fontweight="bold")
            if data == "mnist":
                inner = _enlarged(top, shown, results.PAPER_CHECKPOINTS.get((data, budget.epsilon), {}))
                if budget.epsilon == settings.STRONG[data].epsilon:
                    _strong(inner, [] if strong is None else strong["runs"], data, "test")
            bottom.set_xlabel("epoch")
            _legend(bottom, result, data, budget.epsilon)
        figure.subplots_adjust(left=0.078, right=0.985, top=0.965, bottom=0.235, hspace=0.08, wspace=0.05)
        return figure


def _lines(axes: Axes, shown: list[Curve], part: str) -> None:
    for curve in shown:
        values = getattr(curve, part)
        epochs, colour = np.arange(1, len(values) + 1), METHOD_COLOURS[curve.method]
        axes.fill_between(epochs, values[:, 1], values[:, 2], color=colour, alpha=0.2, linewidth=0)
        line = _LINES.get(curve.method, "-")
        axes.plot(epochs, values[:, 0], color=colour, linewidth=1.6, linestyle=line, label=curve.method)


def _strong(axes: Axes, runs: list[dict[str, Any]], data: str, part: str) -> None:
    """Its epochs are not the others', so the final accuracy is a level."""
    shares = [run[part] for run in runs if run["data"] == data]
    if shares:
        mean = float(np.mean(shares))
        axes.axhline(mean, color=METHOD_COLOURS["strong"], linewidth=1.6, linestyle=_LINES["strong"], label="strong")


def _dress(axes: Axes, part: str, *, first: bool) -> None:
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(left=0.0)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(color=GRID, linewidth=0.6)
    if first:
        axes.set_ylabel(_PARTS[part])


def _enlarged(axes: Axes, shown: list[Curve], paper: dict[str, int]) -> Axes:
    """The upper part of the panel again, with the accuracy whose first epoch the paper reports."""
    inner = axes.inset_axes((0.30, 0.25, 0.67, 0.46))
    _lines(inner, [curve for curve in shown if curve.method != "r1smg"], "test")
    inner.set_xlim(0.0, None)
    inner.set_ylim(0.85, 1.0)
    inner.set_yticks([0.85, 0.9, 0.95, 1.0])
    inner.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    inner.tick_params(labelsize=8)
    inner.grid(color=GRID, linewidth=0.6)
    inner.axhline(results.CHECKPOINT, color=INK, linewidth=0.8)
    for method, epoch in paper.items():
        inner.plot(
            [epoch], [results.CHECKPOINT], "o", markersize=8, color="white", markeredgecolor=METHOD_COLOURS[method]
        )
    if paper:
        words = f"the paper: epoch {paper['r1smg-published']} (R1SMG), {paper['dpsgd']} (DP-SGD)"
        inner.text(0.98, 0.05, words, transform=inner.transAxes, ha="right", fontsize=8, color=INK).set_bbox(
            {"facecolor": "white", "alpha": 0.85, "linewidth": 0.0, "pad": 1.5}
        )
    return inner


def _legend(axes: Axes, result: dict[str, Any] | None, data: str, epsilon: float) -> None:
    """Each line with what it really guarantees."""
    handles, methods = axes.get_legend_handles_labels()
    words = []
    for method in methods:
        if method == "sgd":
            words.append(NAMES[method])
        elif method == "strong" or result is None:
            words.append(f"{NAMES[method]}: {results.stored_guarantee(data, method, epsilon)}")
        else:
            words.append(f"{NAMES[method]}: {results.exact_guarantee(result, method, epsilon)}")
    axes.legend(
        handles, words, loc="upper left", bbox_to_anchor=(-0.02, -0.16), frameon=False, fontsize=8.4, borderaxespad=0.0
    )


def swept_figure(ways: Sequence[Compared], read_result: Reader = read) -> Figure:
    """Test accuracy of R1SMG as published and of DP-SGD after each epoch, a panel for each way to train.

    Open circles are the epochs in which the paper's lines reach 95%.
    """
    columns = 3
    rows = max(1, -(-len(ways) // columns))
    with style():
        figure = blank(10.5, 2.5 * rows + 0.9)
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
        for panel, way in zip(axes, ways, strict=False):
            _lines(panel, curves_of(way, read_result), "test")
            panel.set_xlim(0.0, 15.5)
            panel.set_xticks([0, 5, 10, 15])
            panel.set_ylim(0.8, 1.0)
            panel.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
            panel.axhline(results.CHECKPOINT, color=INK, linewidth=0.8)
            for method, epoch in results.PAPER_CHECKPOINTS.get(("mnist", way.claimed_epsilon), {}).items():
                looks = {"color": "white", "markeredgecolor": METHOD_COLOURS[method]}
                panel.plot([epoch], [results.CHECKPOINT], "o", markersize=7, **looks)
            words = f"{OPTIMIZERS[way.optimizer]}, rate {way.learning_rate:g}, C = {way.clip_norm:g}"
            panel.set_title(f"{words}\nclaimed ε = {way.claimed_epsilon:g}", loc="left", fontsize=9)
            quiet_axes(panel)
        for panel in axes[::columns]:
            panel.set_ylabel(_PARTS["test"], fontsize=9)
        for panel in axes[len(ways) :]:
            panel.set_visible(False)
        for panel in axes[max(0, len(ways) - columns) : len(ways)]:
            panel.set_xlabel("epoch")
            panel.tick_params(labelbottom=True)
        handles, methods = axes[0].get_legend_handles_labels()
        figure.legend(handles, [NAMES[method] for method in methods], loc="lower center", ncols=2, frameon=False)
        height = figure.get_figheight()
        figure.subplots_adjust(
            left=0.08, right=0.985, top=1 - 0.5 / height, bottom=0.95 / height, hspace=0.42, wspace=0.08
        )
        return figure


def membership_figure(found: Sequence[Membership]) -> Figure:
    """One step as its attacker sees it: how far the noisy sum lies along the gradient of the record in question."""
    methods = list(dict.fromkeys(one.method for one in found))
    columns = max(1, max((sum(one.method == method for one in found) for method in methods), default=1))
    with style():
        figure = blank(10.5, 3.0 * max(len(methods), 1) + 0.8)
        axes = figure.subplots(max(len(methods), 1), columns, squeeze=False, sharex=True)
        for row, method in zip(axes, methods, strict=False):
            for panel, one in zip(row, (one for one in found if one.method == method), strict=False):
                _scores(panel, one)
            row[0].set_ylabel("share of steps")
        for panel in axes[-1]:
            panel.set_xlabel("place along the record's gradient, in clipping norms")
        height = figure.get_figheight()
        legend_below(figure, axes[0][0], ncols=2)
        figure.subplots_adjust(left=0.075, right=0.985, top=1 - 0.55 / height, bottom=0.95 / height, hspace=0.5)
        return figure


def _scores(axes: Axes, one: Membership) -> None:
    edges = np.arange(-3.05, 4.1, 0.1).tolist()  # 0 and 1 are centres
    for values, colour, label in (
        (one.scores_without, _WITHOUT, "the record was not in the batch"),
        (one.scores_with, _WITH, "the record was in the batch"),
    ):
        shares = np.full(len(values), 1.0 / max(len(values), 1))
        axes.hist(np.clip(values, edges[0], edges[-1]), edges, weights=shares, color=colour, alpha=0.6, label=label)
    budget = "" if one.epsilon is None else f" for epsilon = {one.epsilon:g}"
    axes.set_title(f"{NAMES[one.method]}{budget}", loc="left", fontsize=10, fontweight="bold", pad=18)
    proved, possible = down(100 * one.right_proved, 3), up(100 * one.right_limit, 4)
    words = f"right guesses: at least {proved}% proved, at most {possible}% possible"
    axes.text(0.0, 1.03, words, transform=axes.transAxes, fontsize=9)
    axes.set_xlim(edges[0], edges[-1])
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    quiet_axes(axes, grid="y")
