"""``lessnoise demo``: all mechanisms on an embedded count query, as a table and a page."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.app import app, console, print_json
from lessnoise.cli.options import (
    AsJson,
    Force,
)
from lessnoise.cli.progress import progress_bar

if TYPE_CHECKING:
    from lessnoise.report import DemoResult

PAGE, NUMBERS = "index.html", "numbers.json"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its numbers.")] = Path("lessnoise-demo"),
    epsilon: Annotated[float, typer.Option(help="Target epsilon.")] = 0.5,
    delta: Annotated[float, typer.Option(help="Target delta.")] = 1e-7,
    seed: Annotated[int, typer.Option(help="Seed of the example's noise.")] = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Compare all mechanisms on a synthetic city's 89 x 89 pickup counts; writes a self-contained page.

    A page that an earlier run left in the folder is replaced; any other file only with --force.

    Example: [bold]lessnoise demo --epsilon 1 --out my-demo[/bold]
    """
    from lessnoise.files import check_folder, write_folder
    from lessnoise.report import page_html, run_demo
    from lessnoise.report.html import is_ours

    page, numbers = out / PAGE, out / NUMBERS
    force = force or is_ours(page)
    check_folder(out, (PAGE, NUMBERS), force)
    with progress_bar(quiet=json) as progress:
        result = run_demo(epsilon, delta, seed, progress)
    values = result.to_dict()
    contents = {NUMBERS: json_module.dumps(values, indent=2).encode() + b"\n", PAGE: page_html(result).encode()}
    write_folder(out, contents, force)
    if json:
        print_json(values)
        return
    _print_table(result)
    console().print(f"wrote {page} and {numbers}: open the page in a browser", markup=False)


def _print_table(result: DemoResult) -> None:
    from rich.table import Table

    from lessnoise.rounding import up

    table = Table(
        title=f"{int(result.counts.value.sum()):,} synthetic pickups on 89 x 89 cells, target {result.target}"
    )
    table.add_column("mechanism")
    for title in ("noise sd per cell", "expected loss", "loss of this release", "exact delta ≤"):
        table.add_column(title, justify="right")
    table.add_column("claim")
    for row in result.rows:
        mark = "[green]holds[/green]" if row.holds else "[red]fails[/red]"
        table.add_row(
            row.label,
            f"{row.standard_deviation:.5g}",
            f"{row.expected_loss:.5g}",
            f"{row.observed_loss:.5g}",
            up(row.verdict.exact.upper, 4),
            f"{mark}: ({row.verdict.claimed.epsilon:g}, {row.verdict.claimed.delta:g})",
        )
    out = console()
    out.print(table)
    out.print("Exact delta is at each row's claimed epsilon. These releases are seeded, so they are not private.")
