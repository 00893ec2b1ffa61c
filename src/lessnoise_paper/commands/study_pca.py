"""``lessnoise study pca``: components of a covariance, by every mechanism."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise import text
from lessnoise.cli import AsJson, Force, console
from lessnoise.errors import InvalidInput
from lessnoise_paper.commands.page import write_page
from lessnoise_paper.experiments.components_result import PARTS, PcaStudy
from lessnoise_paper.experiments.pca import ADDED
from lessnoise_paper.model import Settings
from lessnoise_paper.registry import COMPONENTS

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers


def pca(
    table: Annotated[str, typer.Option(help="Which table: digits (embedded), enron, mnist or swarm.")] = "digits",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the table's file. [default: $LESSNOISE_DATA]", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the pictures and the numbers.")] = Path("lessnoise-pca"),
    repetitions: Annotated[
        int | None,
        typer.Option(help="Releases of each mechanism at each epsilon. [default: 5; 2 above 1,000 features]"),
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option(help="An epsilon of the axis; repeat it for several. [default: 0.2, 0.4 .. 1.6; 3 if wide]"),
    ] = None,
    components: Annotated[int, typer.Option(help="Components that the classifier gets.")] = 20,
    delta: Annotated[float, typer.Option(help="Target delta.")] = 1e-7,
    clip_norm: Annotated[
        float | None, typer.Option(help="Norm that rows are clipped to. [default: one for each table]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two epsilons and one repetition, to see how it goes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study II of the R1SMG paper: private principal components and what they are good for.

    First as published, with R1SMG at 1e-7 of the others' epsilon, then all at that epsilon, then all at one exact
    guarantee: with the paper's entry bounds, and with clipped rows.

    Example: [bold]lessnoise study pca --table enron --data my-data --out enron[/bold]
    """
    if importlib.util.find_spec("sklearn") is None:
        raise InvalidInput("scikit-learn is not installed, but this study needs it: pip install 'lessnoise[sklearn]'.")
    options = {
        "table": table,
        "epsilons": [0.2, 1.6] if quick else epsilon or None,
        "repetitions": 1 if quick else repetitions,
        "sweeps": 5 if quick else 20,
        "components": components,
        "delta": delta,
        "clip_norm": clip_norm,
        "seed": seed,
    }
    settings = Settings(data=None if data is None else str(data), options={"pca": options})
    write_page(COMPONENTS, settings, out, _print_tables, force=force, json_only=json)


def _print_tables(numbers: Numbers) -> None:
    from rich.table import Table

    result, out = PcaStudy.from_dict({name: value for name, value in numbers.items() if name not in ADDED}), console()
    ends = sorted({point.axis for point in result.points})
    shown = [ends[0], ends[-1]] if len(ends) > 1 else ends
    for part, title in PARTS.items():
        table = Table(title=f"{result.title}: {title}", title_justify="left")
        table.add_column("mechanism")
        for epsilon in shown:
            for name in ("deviation", "accuracy", "exact delta"):
                table.add_column(f"{name} at {epsilon:g}", justify="right")
        table.add_column("claim")
        for points in result.of(part).values():
            cells = []
            for point in (point for point in points if point.axis in shown):
                cells += [f"{point.deviation:.4g}", f"{point.accuracy:.1%}"]
                cells.append("unknown" if point.exact is None else text.exact(point.exact))
            word = points[-1].verdict_word
            table.add_row(points[0].label, *cells, f"[{'green' if word == 'holds' else 'red'}]{word}[/]")
        out.print(table)
    out.print(
        f"Without noise: deviation 0, accuracy {result.baseline:.1%}. Exact delta is at the epsilon that each "
        "mechanism was given. Releases are seeded, so they are not private."
    )
    for line in result.left_out:
        out.print(f"Left out: {line}")
