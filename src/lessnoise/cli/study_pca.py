"""``lessnoise study pca``: components of a covariance, by every mechanism."""

from __future__ import annotations

import importlib.util
import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.app import AsJson, Force, console, print_json
from lessnoise.cli.progress import progress_bar
from lessnoise.cli.study import study
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise.studies.pca_result import PcaStudy

NUMBERS = "numbers.json"
PICTURES = ("published.png", "small.png", "equal.png", "scree.png", "components.png")


@study.command()
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
    from lessnoise.data.tables import feature_table
    from lessnoise.files import check_free, write_folder
    from lessnoise.studies.pca import run_pca
    from lessnoise.studies.pca_pictures import pca_files

    if importlib.util.find_spec("sklearn") is None:
        raise InvalidInput("scikit-learn is not installed, but this study needs it: pip install 'lessnoise[sklearn]'.")
    if out.exists():  # otherwise it is made when there is something to put into it
        check_free([out / name for name in (NUMBERS, *PICTURES)], force)
    with progress_bar(quiet=json) as progress:
        result = run_pca(
            feature_table(table, data),
            epsilons=(0.2, 1.6) if quick else epsilon or None,
            repetitions=1 if quick else repetitions,
            sweeps=5 if quick else 20,
            components=components,
            delta=delta,
            clip_norm=clip_norm,
            seed=seed,
            progress=progress,
        )
        files = pca_files(result)
    values = result.to_dict()
    files[NUMBERS] = json_module.dumps(values, indent=2).encode() + b"\n"
    write_folder(out, files, force)
    if json:
        print_json(values)
        return
    _print_tables(result)
    console().print(f"wrote {out / NUMBERS} and {len(files) - 1} pictures beside it", markup=False)


def _print_tables(result: PcaStudy) -> None:
    from rich.table import Table

    from lessnoise.report import text
    from lessnoise.studies.pca_result import PARTS

    out = console()
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
