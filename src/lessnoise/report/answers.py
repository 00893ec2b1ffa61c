"""A picture of a table's answer: for each statistic a panel with the groups' values and intervals.

The counts of a histogram are one panel together, with a line for each group and cell.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lessnoise._display import picture, to_png
from lessnoise.errors import InvalidInput
from lessnoise.report.canvas import COLOURS, GRID, blank, literal, notebook_figure, png, style
from lessnoise.table import STATISTIC, TableAnswer, histogram
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
        panels = _split(shown)
        if len(panels) > 1:
            raise InvalidInput(
                f"ax= has room for one statistic, and there are {len(panels)}: leave it out for a figure with a panel "
                "for each."
            )
        _panel(axes, shown, panels[0])
    found = axes.get_figure()
    assert found is not None
    return found  # type: ignore[return-value]


@dataclass
class _Panel:
    """What is drawn together: rows, and what each is called beside its group."""

    title: str
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)

    def labels(self, columns: Sequence[str], every: int = 1) -> list[str]:
        pairs = zip(self.rows[::every], self.cells[::every], strict=True)
        return [_label([*(str(row[column]) for column in columns), *([cell] if cell else [])]) for row, cell in pairs]


def _split(answer: TableAnswer) -> list[_Panel]:
    """The panels, in the order of the rows."""
    within: dict[str, tuple[str, str]] = {}  # of a histogram's counts: the title of their panel, and the cell
    for asked in answer.description["aggregates"]:
        if asked["aggregate"] == "histogram":
            given = {name: asked[name] for name in ("column", "bounds", "bins", "edges", "keys") if name in asked}
            title = f"count of {given['column']}"
            within |= {name: (title, name[len(title) + 1 :]) for name in histogram(**given).names}
    found: dict[str, _Panel] = {}
    for row in answer.rows:
        title, cell = within.get(row["statistic"], (row["statistic"], ""))
        panel = found.setdefault(title, _Panel(title))
        panel.rows.append(row)
        panel.cells.append(cell)
    return list(found.values()) or [_Panel("no group is large enough to be shown")]


def _heights(panels: Sequence[_Panel]) -> list[float]:
    """Of the rows of panels, in inches."""
    beside = (panels[start : start + _ACROSS] for start in range(0, len(panels), _ACROSS))
    lines = (max(1, *(len(panel.rows) for panel in row)) for row in beside)
    return [1.1 + _LINE * min(most, _MOST_LABELS) for most in lines]


def _size(answer: TableAnswer) -> tuple[float, float]:
    """Width and height in inches."""
    panels = _split(answer)
    return max(2.0 + 2.6 * min(len(panels), _ACROSS), 6.4), sum(_heights(panels))


def _panels(answer: TableAnswer, figure: Figure) -> None:
    panels = _split(answer)
    across, heights = min(len(panels), _ACROSS), _heights(panels)
    grid = figure.subplots(len(heights), across, squeeze=False, height_ratios=heights).ravel()
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        _panel(axes, answer, panel)
        if place % across and panel.cells == panels[place - 1].cells:  # the same lines as on its left
            axes.tick_params(axis="y", labelleft=False)
            axes.set_ylabel("")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)


def _panel(axes: Axes, answer: TableAnswer, panel: _Panel) -> None:
    """One statistic: the groups from top to bottom, a dot for the value and a line for the interval."""
    rows = panel.rows
    columns = [column for column in answer.columns if column not in STATISTIC]
    places = range(len(rows))
    axes.hlines(places, [row["lower"] for row in rows], [row["upper"] for row in rows], color=_COLOUR, linewidth=1.6)
    axes.plot([row["value"] for row in rows], places, "o", color=_COLOUR, markersize=4.5)
    axes.set_title(literal(panel.title, 34), loc="left", fontsize=10.5)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=4)
    every = max(1, -(-len(rows) // _MOST_LABELS))
    axes.set_yticks(places[::every], panel.labels(columns, every))
    axes.set_ylabel(literal(", ".join(columns), 40))
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)


def _label(words: Sequence[str]) -> str:
    return literal(", ".join(words), 24) if words else "all rows"
