"""``lessnoise demo``: all mechanisms on an embedded count query, as a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessnoise.cli.app import AsJson, Force, app, console, print_json


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

    Example: [bold]lessnoise demo --epsilon 1 --out my-demo[/bold]
    """
    raise NotImplementedError
