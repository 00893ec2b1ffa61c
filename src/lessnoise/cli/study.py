"""``lessnoise study``: the case studies, each with one command."""

from __future__ import annotations

import typer

from lessnoise.cli.app import app

study = typer.Typer(no_args_is_help=True, help="Case studies on real data: as published, and on equal terms.")
app.add_typer(study, name="study")


@study.callback()
def studies() -> None:
    """Case studies on real data: as published, and on equal terms."""
