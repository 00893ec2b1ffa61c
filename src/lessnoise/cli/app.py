"""The application and what all commands share: output. Options are in ``options.py``, errors in ``entry.py``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise._version import __version__
from lessnoise.cli.entry import EXIT_FAILED_CLAIM, EXIT_INTERRUPTED, OneSentenceGroup, drop_output
from lessnoise.cli.options import AsJson, Force

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["EXIT_FAILED_CLAIM", "AsJson", "Force", "app", "console", "print_json", "run"]

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
    3 a report is written but incomplete; 4 something was paid for or written, and what came after failed, as the
    message says; 130 interrupted; 141 the reader of the output has gone.

    Example: [bold]lessnoise plan --shape 89x89 --sensitivity 1.41421356 --epsilon 0.5 --delta 1e-7[/bold]
    """


def run() -> None:
    """Entry point of the ``lessnoise`` command."""
    try:
        app()
    except KeyboardInterrupt:  # before or after the command itself
        sys.exit(EXIT_INTERRUPTED)


def print_json(values: object) -> None:
    """Machine-readable output on standard output."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")


def console() -> Console:
    """A console that never squeezes tables when the output is piped, and stops quietly when the pipe is closed."""
    from lessnoise.cli.terminal import Console

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            drop_output()

    plain = Quiet()
    return plain if plain.is_terminal else Quiet(width=150)


# Each module registers its command.
from lessnoise.cli import (  # noqa: E402
    audit,  # noqa: F401
    check,  # noqa: F401
    claims,  # noqa: F401
    demo,  # noqa: F401
    explore,  # noqa: F401
    frontier,  # noqa: F401
    histogram,  # noqa: F401
    ledger,  # noqa: F401
    plan,  # noqa: F401
    release,  # noqa: F401
    reproduce,  # noqa: F401
    selftest,  # noqa: F401
    study,  # noqa: F401
    study_pca,  # noqa: F401
)
