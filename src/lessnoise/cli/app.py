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

    Exit codes: 0 done; 1 a claim fails or a test finds something; 2 bad input, and nothing was drawn, spent or written;
    3 a report is written but incomplete, or a certificate is of a kind that cannot be verified; 4 something was paid
    for or written, and what came after failed, as the message says; 130 interrupted; 141 the reader of the output has
    gone.

    Example: [bold]lessnoise plan --shape 89x89 --sensitivity 1.41421356 --epsilon 0.5 --delta 1e-7[/bold]
    """


for command in (audit, check, claims, explore, frontier, histogram, plan, query, release, selftest, verify):
    app.command()(command)
app.add_typer(ledger, name="ledger", help="A budget that many releases share, in a file or on a server.")
app.add_typer(stream, name="stream", help="Running totals, one value a period, private over all periods together.")


def run() -> None:
    """Entry point of the ``lessnoise`` command."""
    try:
        app()
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(EXIT_INTERRUPTED)
