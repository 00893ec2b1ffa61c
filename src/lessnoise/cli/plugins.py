"""Commands of other packages: whatever is in the entry-point group ``lessnoise.commands`` becomes a command."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

GROUP = "lessnoise.commands"


def added_commands(taken: Container[str]) -> Iterator[tuple[str, Any]]:
    """Name and command of every entry point, by name: a function with Typer's annotations, or a Typer application.

    A command that cannot be loaded, or whose name is taken, is left out with a sentence on standard error.
    """
    for point in sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name):
        if point.name in taken:
            _tell(point, "this name is taken")
            continue
        try:
            loaded = point.load()
            command = typer.main.get_command(loaded if isinstance(loaded, typer.Typer) else _application(loaded))
        except Exception as error:
            _tell(point, f"{type(error).__name__}: {error}")
        else:
            yield point.name, command


def _application(function: Any) -> typer.Typer:  # noqa: ANN401
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command()(function)
    return made


def _tell(point: metadata.EntryPoint, reason: str) -> None:
    typer.echo(f"warning: the command {point.name!r} ({point.value}) is left out: {reason}", err=True)
