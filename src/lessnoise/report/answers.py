"""A picture of a table's answer: for each statistic a panel with the groups' values and intervals.

The counts of a histogram or of ranges are one panel together, with a line for each group and cell. A distribution
function is a curve for each group. Of marginals, each table has a panel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lessnoise._display import picture, to_png
from lessnoise.errors import InvalidInput
from lessnoise.report.canvas import COLOURS, GRID, blank, literal, notebook_figure, png, style
from lessnoise.table import STATISTIC, TableAnswer, cdf, histogram, ranges
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lessnoise.table import CellCounts

_ACROSS = 4  # panels side by side
_MOST_LABELS = 60
_LINE = 0.26  # inches for a group
_COLOUR = COLOURS["analytic-gaussian"]
_CURVE = 10  # lines that a panel of curves takes the height of
_GROUP_COLOURS = tuple(dict.fromkeys(COLOURS.values()))
_SHOWN: dict[str, Callable[..., CellCounts]] = {"histogram": histogram, "cdf": cdf, "ranges": ranges}  # in one panel


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
        note = f"intervals at {answer.level:.4g}; protects {answer.protects} ({guarantee.neighbours.value})"
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
    edges: Sequence[float] = ()
    """Of a distribution function: where each of its numbers belongs, and before them where it is 0."""

    @property
    def lines(self) -> int:
        return _CURVE if self.edges else max(1, min(len(self.rows), _MOST_LABELS))

    def labels(self, columns: Sequence[str], every: int = 1) -> list[str]:
        pairs = zip(self.rows[::every], self.cells[::every], strict=True)
        return [_label([*_group(row, columns), *([cell] if cell else [])]) for row, cell in pairs]


def _split(answer: TableAnswer) -> list[_Panel]:
    """The panels, in the order of the rows."""
    within: dict[str, tuple[str, str, Sequence[float]]] = {}  # the title of a number's panel, its cell, and edges
    for asked in answer.description["aggregates"]:
        if asked["aggregate"] in _SHOWN:
            one = _read(asked)
            title = _common(one.names, asked["column"])
            edges = one.along.cell_edges.tolist() if asked["aggregate"] == "cdf" else ()
            within |= {name: (title, name[len(title) + 1 :], edges) for name in one.names}
    columns = [column for column in answer.columns if column not in STATISTIC]
    tables = "marginals" in answer.description
    found: dict[str, _Panel] = {}
    for row in answer.rows:
        title, cell, edges = within.get(row["statistic"], (row["statistic"], "", ()))
        if tables:
            kept = [column for column in columns if row[column] is not None]
            title = f"{title} by {', '.join(kept)}" if kept else title
        panel = found.setdefault(title, _Panel(title, edges=edges))
        panel.rows.append(row)
        panel.cells.append(cell)
    return list(found.values()) or [_Panel("no group is large enough to be shown")]


def _read(asked: Mapping[str, Any]) -> CellCounts:
    """The aggregate of a description."""
    names = ("column", "bounds", "bins", "edges", "keys", "shares")
    return _SHOWN[asked["aggregate"]](**{name: asked[name] for name in names if name in asked})


def _common(names: Sequence[str], column: str) -> str:
    """What all names begin with: as far as the column, and "up to" or "from" of sums of cells."""
    title = f"{names[0].split(' ', 1)[0]} of {column}"
    longer = (f"{title} {word}" for word in ("up to", "from"))
    return next((words for words in longer if all(name.startswith(f"{words} ") for name in names)), title)


def _heights(panels: Sequence[_Panel]) -> list[float]:
    """Of the rows of panels, in inches."""
    beside = (panels[start : start + _ACROSS] for start in range(0, len(panels), _ACROSS))
    return [1.1 + _LINE * max(panel.lines for panel in row) for row in beside]


def _size(answer: TableAnswer) -> tuple[float, float]:
    """Width and height in inches."""
    panels = _split(answer)
    return max(2.0 + 2.6 * min(len(panels), _ACROSS), 6.4), sum(_heights(panels))


def _panels(answer: TableAnswer, figure: Figure) -> None:
    panels = _split(answer)
    across, heights = min(len(panels), _ACROSS), _heights(panels)
    columns = [column for column in answer.columns if column not in STATISTIC]
    grid = figure.subplots(len(heights), across, squeeze=False, height_ratios=heights).ravel()
    for place, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
        _panel(axes, answer, panel)
        left = panels[place - 1]
        if place % across and not panel.edges and not left.edges and panel.labels(columns) == left.labels(columns):
            axes.tick_params(axis="y", labelleft=False)
            axes.set_ylabel("")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)


def _panel(axes: Axes, answer: TableAnswer, panel: _Panel) -> None:
    """One statistic: the groups from top to bottom, a dot for the value and a line for the interval."""
    rows = panel.rows
    columns = [column for column in answer.columns if column not in STATISTIC]
    if panel.edges:
        _curves(axes, panel, columns)
        return
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
    axes.set_ylabel(
        literal(", ".join(column for column in columns if any(row[column] is not None for row in rows)), 40)
    )
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)


def _curves(axes: Axes, panel: _Panel, columns: Sequence[str]) -> None:
    """A distribution function of every group, with its intervals as a band."""
    size = len(panel.edges) - 1
    groups = [panel.rows[start : start + size] for start in range(0, len(panel.rows), size)]
    few = len(groups) <= len(_GROUP_COLOURS)
    for place, rows in enumerate(groups):
        colour = _GROUP_COLOURS[place] if few else _COLOUR
        lower, value, upper = ([0.0, *(row[name] for row in rows)] for name in ("lower", "value", "upper"))
        label = _label(list(_group(rows[0], columns))) if few else None
        axes.fill_between(panel.edges, lower, upper, color=colour, alpha=0.25 if few else 0.1, linewidth=0)
        axes.plot(panel.edges, value, color=colour, linewidth=1.4 if few else 0.5, label=label)
    axes.set_title(literal(panel.title, 34), loc="left", fontsize=10.5)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.0)
    axes.locator_params(nbins=5)
    if few and columns:
        axes.legend(frameon=False, fontsize=9, title=literal(", ".join(columns), 40))


def _group(row: Mapping[str, Any], columns: Sequence[str]) -> Iterator[str]:
    """The group of a row, in words; a column that is summed over has none."""
    return (str(row[column]) for column in columns if row[column] is not None)


def _label(words: Sequence[str]) -> str:
    return literal(", ".join(words), 24) if words else "all rows"
