"""The application: every command of the library, and those that other packages add (``entry.py``)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lessnoise._version import __version__
from lessnoise.cli.audit import audit
from lessnoise.cli.check import check
from lessnoise.cli.claims import claims
from lessnoise.cli.entry import EXIT_INTERRUPTED, OneSentenceGroup
from lessnoise.cli.explore import explore
from lessnoise.cli.frontier import frontier
from lessnoise.cli.histogram import histogram
from lessnoise.cli.ledger import ledger
from lessnoise.cli.plan import plan
from lessnoise.cli.query import query
from lessnoise.cli.release import release
from lessnoise.cli.selftest import selftest
from lessnoise.cli.stream import stream
from lessnoise.cli.verify import verify

app = typer.Typer(
    cls=OneSentenceGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"lessnoise {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Release arrays under differential privacy, and see what each mechanism really guarantees.

    Exit codes: 0 means that all went well. 1 means that a claim fails or that a test found something. 2 means that the
    input was wrong, and that no noise was drawn, nothing was spent and nothing was written. 3 means that a report lacks
    a part, or that there is no proof for this kind of certificate. 4 means that something was paid for or written, and
    that a later step failed; the message says which. 130 means that you interrupted the command, and 141 that the
    program which reads its output has ended.

    Example: [bold]lessnoise plan --shape 89x89 --sensitivity 1.41421356 --epsilon 0.5 --delta 1e-7[/bold]
    """


for command in (audit, check, claims, explore, frontier, histogram, plan, query, release, selftest, verify):
    app.command()(command)
app.add_typer(ledger, name="ledger", help="Keep one budget for many releases, in a file or on a server.")
app.add_typer(stream, name="stream", help="Release running totals period by period, private for all periods together.")


def run() -> None:
    """Entry point of the ``lessnoise`` command."""
    try:
        app()
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(EXIT_INTERRUPTED)
