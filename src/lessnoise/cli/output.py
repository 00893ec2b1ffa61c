"""What commands print: JSON for programs, a console for people."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import typer

from lessnoise.cli.terminal import Console

if TYPE_CHECKING:
    from lessnoise.cli.terminal import Console

EXIT_CLOSED_PIPE = 141  # as shells have it: 128 + SIGPIPE


def print_json(values: object) -> None:
    """Machine-readable output on standard output."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")


def console() -> Console:
    """A console that never squeezes tables when the output is piped, and stops quietly when the pipe is closed."""

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            drop_output()

    plain = Quiet()
    return plain if plain.is_terminal else Quiet(width=150)


def drop_output() -> None:
    """The reader of the output has gone, as in ``lessnoise claims | head -1``: stop without a word."""
    silence()
    raise typer.Exit(EXIT_CLOSED_PIPE)


def silence() -> None:
    """Whatever is printed from now on is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
