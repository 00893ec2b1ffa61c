"""How a command writes a page of one experiment, all of its files or none, and prints tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise.cli import console, print_json, progress_bar
from lessnoise.files import check_folder, write_folder
from lessnoise.report import is_ours
from lessnoise_paper.run import INDEX, NUMBERS, single_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from lessnoise_paper.model import Numbers, Selection, Settings

Seed = Annotated[int, typer.Option(help="Seed of the noise.")]


def print_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True, left: bool = False
) -> None:
    """A table on the console; with ``numbers`` all columns but the first and the last are aligned to the right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left" if left else "center")
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if numbers and 0 < place < len(head) - 1 else "left")
    for row in rows:
        table.add_row(*row)
    console().print(table)


def verdict_mark(word: str) -> str:
    """A verdict in its colour, for the console."""
    return f"[{'green' if word == 'holds' else 'red'}]{word}[/]"


def check_page(out: Path, force: bool) -> bool:
    """Refuse, before any work, to write over a page that is not an earlier one of ours; whether to overwrite."""
    force = force or is_ours(out / INDEX)
    check_folder(out, (INDEX, NUMBERS), force)
    return force


def write_page(
    selection: Selection,
    settings: Settings,
    out: Path,
    show: Callable[[Numbers], None],
    *,
    force: bool,
    json_only: bool,
    pictures: bool = True,
) -> None:
    """Compute, write, and tell: the numbers as JSON, or what ``show`` prints of them.

    The pictures are in the page; with ``pictures`` they lie beside it too.
    """
    force = check_page(out, force)
    with progress_bar(quiet=json_only) as progress:
        files = single_page(selection, settings, progress, pictures=pictures)
    numbers: dict[str, Any] = json.loads(files[NUMBERS])
    check_folder(out, files, force)
    write_folder(out, files, force)
    if json_only:
        print_json(numbers)
        return
    show(numbers)
    console().print(
        f"wrote {out / INDEX}; open this page in a browser. Files beside it: {len(files) - 1}", markup=False
    )
