"""``lessnoise study``: the case studies, each with one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli import AsJson, Force, console
from lessnoise.report import text
from lessnoise_paper.commands.page import write_page
from lessnoise_paper.commands.study_learning import learning
from lessnoise_paper.commands.study_pca import pca
from lessnoise_paper.experiments.counts import parts
from lessnoise_paper.experiments.uber import SYNTHETIC
from lessnoise_paper.model import Settings
from lessnoise_paper.registry import COUNTS
from lessnoise_paper.sections.wording import verdict_of

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers

_QUICK_REPETITIONS, _QUICK_RELEASES = 5, 200
_RELEASES = 10_000

study = typer.Typer(no_args_is_help=True, help="Case studies on real data: as published, and on equal terms.")


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
    synthetic = data == SYNTHETIC
    options = {
        "data": SYNTHETIC if synthetic else "uber",
        "repetitions": min(repetitions, _QUICK_REPETITIONS) if quick else repetitions,
        "attack_releases": _QUICK_RELEASES if quick else _RELEASES,
        "seed": seed,
    }
    settings = Settings(data=None if synthetic else data, options={"counts": options})
    write_page(COUNTS, settings, out, _print_tables, force=force, json_only=json)


study.command()(learning)
study.command()(pca)


def _print_tables(numbers: Numbers) -> None:
    from rich.table import Table

    out = console()
    for part, setting in parts(numbers).items():
        table = Table(title=f"{numbers['data']}: {setting}", title_justify="left")
        table.add_column("mechanism")
        for title in ("claim", "exact delta", "mean loss, occupied cells", "expected", "the paper", "all cells"):
            table.add_column(title, justify="right")
        table.add_column("verdict")
        for row in numbers[part]:
            losses, verdict, paper = row["losses"], verdict_of(row), row["paper_mean_valid"]
            table.add_row(
                row["label"],
                text.pair_up(verdict.claimed) + (" *" if verdict.claimed.neighbours.value == "add/remove" else ""),
                text.exact_delta(verdict),
                text.number(losses["mean_valid"]),
                "" if losses["expected_valid"] is None else text.number(losses["expected_valid"]),
                "" if paper is None else text.number(paper),
                text.number(losses["mean_whole"]),
                "[green]holds[/green]" if verdict.holds else f"[red]{verdict.word}[/red]",
            )
        out.print(table)
    out.print("* for one pickup added or removed; all others for one pickup replaced. Seeded, so not private.")
    out.print(COUNTS.sections[-1].write(numbers).ours)
