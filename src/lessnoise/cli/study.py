"""``lessnoise study``: the case studies, each with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.app import app, console, print_json
from lessnoise.cli.options import (
    AsJson,
    Force,
)
from lessnoise.cli.progress import progress_bar
from lessnoise.cli.study_learning import learning

if TYPE_CHECKING:
    from lessnoise.studies.uber_results import UberResult

_QUICK_REPETITIONS, _QUICK_RELEASES = 5, 200
_RELEASES = 10_000

study = typer.Typer(no_args_is_help=True, help="Case studies on real data: as published, and on equal terms.")
app.add_typer(study, name="study")


@study.callback()
def studies() -> None:
    """Case studies on real data: as published, and on equal terms."""


@study.command()
def uber(
    data: Annotated[
        str | None,
        typer.Option(
            help="Folder with the Uber file, or 'synthetic' for a made-up city. Left out: the folder that "
            "$LESSNOISE_DATA names, else a download from the public source.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, the pictures, the table and the numbers.")] = Path(
        "lessnoise-uber"
    ),
    repetitions: Annotated[int, typer.Option(help="Releases of each mechanism whose loss is measured.")] = 100,
    quick: Annotated[bool, typer.Option("--quick", help="A few repetitions only, to see how it goes.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Case study I of the R1SMG paper: pickup counts of New York City, released by every mechanism.

    Makes the paper's maps and losses at its settings, with the exact privacy beside each, then compares all mechanisms
    at one exact guarantee, and counts how often rounding a release returns the raw table.

    Example: [bold]lessnoise study uber --data my-data --out uber[/bold]
    """
    from lessnoise.files import check_folder, write_folder
    from lessnoise.report.html import is_ours
    from lessnoise.studies.uber import run_uber
    from lessnoise.studies.uber_page import NAMES, uber_files

    page = out / "index.html"
    force = force or is_ours(page)
    check_folder(out, NAMES, force)
    with progress_bar(quiet=json) as progress:
        result = run_uber(
            data,
            repetitions=min(repetitions, _QUICK_REPETITIONS) if quick else repetitions,
            attack_releases=_QUICK_RELEASES if quick else _RELEASES,
            seed=seed,
            progress=progress,
        )
        files = uber_files(result)
    write_folder(out, files, force)
    if json:
        print_json(result.to_dict())
        return
    _print_tables(result)
    console().print(f"wrote {page} and {len(files) - 1} files beside it: open the page in a browser", markup=False)


study.command()(learning)


def _print_tables(result: UberResult) -> None:
    from rich.table import Table

    from lessnoise.report import text
    from lessnoise.studies.uber_page import parts
    from lessnoise.studies.uber_pictures import attack_words, exact

    out = console()
    for setting, rows in parts(result):
        table = Table(title=f"{result.data}: {setting}", title_justify="left")
        table.add_column("mechanism")
        for title in ("claim", "exact delta", "mean loss, occupied cells", "expected", "the paper", "all cells"):
            table.add_column(title, justify="right")
        table.add_column("verdict")
        for row in rows:
            losses, claim = row.losses, row.verdict.claimed
            table.add_row(
                row.label,
                text.pair_up(claim) + (" *" if claim.neighbours.value == "add/remove" else ""),
                exact(row),
                text.number(float(losses.valid.mean())),
                "" if losses.expected_valid is None else text.number(losses.expected_valid),
                "" if row.paper_mean is None else text.number(row.paper_mean),
                text.number(float(losses.whole.mean())),
                "[green]holds[/green]" if row.holds else f"[red]{row.verdict.word}[/red]",
            )
        out.print(table)
    out.print("* for one pickup added or removed; all others for one pickup replaced. Seeded, so not private.")
    for attack in result.attacks:
        out.print(attack_words(attack))
