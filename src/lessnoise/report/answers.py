"""A picture of a table's answer: for each statistic a panel with the groups' values and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise._display import picture, to_png
from lessnoise.errors import InvalidInput
from lessnoise.report.canvas import COLOURS, GRID, blank, literal, notebook_figure, png, style
from lessnoise.table import STATISTIC, TableAnswer
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ACROSS = 4  # panels side by side
_MOST_LABELS = 60
_LINE = 0.26  # inches for a group
_COLOUR = COLOURS["analytic-gaussian"]


@to_png.register(TableAnswer)
def answer_png(answer: TableAnswer) -> bytes:
    """The panels, with what they guarantee above them."""
    with style():
        width, height = _size(answer)
        figure = blank(width, height + 0.8)
        figure.set_layout_engine("constrained", rect=(0.0, 0.0, 1.0, height / (height + 0.8)))
        _panels(answer, figure)
        guarantee = answer.guarantee
        title = f"Private statistics at ({up(guarantee.epsilon, 3)}, {up(guarantee.delta, 3)})"
        if not answer.private:
            title = "Seeded statistics, NOT private"
        note = f"intervals at {answer.level:.4g}; protects {answer.protects}, {guarantee.neighbours.value}"
        most = int(12 * width)
        figure.text(0.12 / width, 1.0 - 0.36 / (height + 0.8), title, fontsize=15, fontweight="bold")
        figure.text(0.12 / width, 1.0 - 0.62 / (height + 0.8), literal(note, most), fontsize=9.5, color="#555555")
        return png(figure)


@picture.register(TableAnswer)
def _(shown: TableAnswer, axes: Axes | None = None) -> Figure:
    """Panels on a figure of their own; on ``axes`` there is room for one statistic."""
    with style():
        if axes is None:
            figure = notebook_figure(*_size(shown))
            _panels(shown, figure)
            return figure
        names = _statistics(shown)
        if len(names) > 1:
            raise InvalidInput(
                f"ax= has room for one statistic, and there are {len(names)}: leave it out for a figure with a panel "
                "for each."
            )
        _panel(axes, shown, names[0])
    found = axes.get_figure()
    assert found is not None
    return found  # type: ignore[return-value]


def _statistics(answer: TableAnswer) -> list[str]:
    return list(dict.fromkeys(row["statistic"] for row in answer.rows)) or ["no group is large enough to be shown"]


def _size(answer: TableAnswer) -> tuple[float, float]:
    """Width and height in inches."""
    panels = len(_statistics(answer))
    groups = max(len(answer.rows) // panels, 1)
    across, down = min(panels, _ACROSS), -(-panels // _ACROSS)
    return max(2.0 + 2.6 * across, 6.4), down * (1.1 + _LINE * min(groups, _MOST_LABELS))


def _panels(answer: TableAnswer, figure: Figure) -> None:
    names = _statistics(answer)
    across = min(len(names), _ACROSS)
    grid = figure.subplots(-(-len(names) // across), across, squeeze=False, sharey=True).ravel()
    for place, (axes, name) in enumerate(zip(grid, names, strict=False)):
        _panel(axes, answer, name)
        axes.tick_params(axis="y", labelleft=place % across == 0)
        if place % across:
            axes.set_ylabel("")
    for axes in grid[len(names) :]:
        axes.set_visible(False)


def _panel(axes: Axes, answer: TableAnswer, name: str) -> None:
    """One statistic: the groups from top to bottom, a dot for the value and a line for the interval."""
    rows = [row for row in answer.rows if row["statistic"] == name]
    columns = [column for column in answer.columns if column not in STATISTIC]
    places = range(len(rows))
    axes.hlines(places, [row["lower"] for row in rows], [row["upper"] for row in rows], color=_COLOUR, linewidth=1.6)
    axes.plot([row["value"] for row in rows], places, "o", color=_COLOUR, markersize=4.5)
    axes.set_title(literal(name, 34), loc="left", fontsize=10.5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=4)
    every = max(1, -(-len(rows) // _MOST_LABELS))
    axes.set_yticks(places[::every], [_label(row, columns) for row in rows[::every]])
    axes.set_ylabel(literal(", ".join(columns), 40))
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)


def _label(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    if not columns:
        return "all rows"
    return literal(", ".join(str(row[column]) for column in columns), 24)
