"""What commands print: JSON for programs; for people a console that shows text from outside as it is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import typer
from rich import console as rich_console
from rich import markup
from rich.errors import MarkupError
from rich.text import Text

from lessnoise.harmless import printable
from lessnoise.text import down

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import Task
    from rich.table import Table

    from lessnoise._common import Progress

EXIT_CLOSED_PIPE = 141  # as shells have it: 128 + SIGPIPE
_OURS = r"/?(?:bold )?(?:bold|red|green)\]|/\]"  # the only styles that our own words have
_OTHERS = re.compile(rf"(?<!\\)\[(?!{_OURS})")


class Console(rich_console.Console):
    """Rich's console for our own few styles; escape sequences, emoji codes and any other markup are shown as text."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401
        """Every text, in tables too, comes through here."""
        shown = printable(text)
        if options.get("markup") is False:
            return super().render_str(shown, **options)
        try:
            return super().render_str(_OTHERS.sub(r"\\[", shown), **options)
        except MarkupError:  # a closing tag that closes nothing, as in a file name
            return Text(shown)


class _Output(Console):
    def on_broken_pipe(self) -> None:
        drop_output()


def console() -> Console:
    """A console that never squeezes tables when the output is piped, and stops quietly when the pipe is closed."""
    plain = _Output()
    return plain if plain.is_terminal else _Output(width=150)


def literal(*values: object) -> str:
    """Text from outside, for a line that has styles: no word of it is taken for one."""
    return ", ".join(markup.escape(str(value)) for value in values)


def print_json(values: object) -> None:
    """Machine-readable output on standard output."""
    json.dump(values, sys.stdout, indent=2)
    sys.stdout.write("\n")


def tell(as_json: bool, values: object, sentence: str) -> None:
    """Print values for programs, or one sentence for people."""
    if as_json:
        print_json(values)
    else:
        console().print(sentence, soft_wrap=True, markup=False)


def left_words(remaining: float) -> str:
    """What is left of a budget, rounded down.

    >>> left_words(0.76089)
    'at least 0.7608 of epsilon is left'
    """
    return f"at least {down(remaining, 4)} of epsilon is left"


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Lines of a name and what there is to say of it, one below the other."""
    lines, out = list(facts), console()
    lengths = [len(markup.render(name)) for name, _ in lines]
    for (name, words), length in zip(lines, lengths, strict=True):
        out.print(f"{name}{' ' * (max(lengths) - length)}  {words}")


def new_table(title: str, words: Iterable[str], numbers: Iterable[str] = (), more_words: Iterable[str] = ()) -> Table:
    """An empty table with columns of words to the left, of numbers to the right of their places, and of words again."""
    from rich.table import Table

    table = Table(title=title)
    for names, side in ((words, "left"), (numbers, "right"), (more_words, "left")):
        for name in names:
            table.add_column(name, justify=side)  # type: ignore[arg-type]
    return table


def time_left_bars(**options: Any) -> Bars:  # noqa: ANN401
    """Bars on standard error, each with the share that is done, the time it took, and about the time that is left."""
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    class Left(TimeRemainingColumn):
        """In words, and nothing before it is known."""

        def render(self, task: Task) -> Text:
            seconds = task.time_remaining
            if task.finished or seconds is None:
                return Text("")
            return Text(f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left")

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), Left()
    # The steps take very different times: the estimate is over all of them.
    return Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        refresh_per_second=2,
        speed_estimate_period=3600.0,
        **options,
    )


@contextlib.contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A bar to report (label, done, total) to, gone when the work is done; None if nothing is to be shown."""
    if quiet:
        yield None
        return
    bar = time_left_bars(disable=not sys.stderr.isatty())
    task = bar.add_task("starting", total=None)

    def report(label: str, done: int, total: int) -> None:
        bar.update(task, description=literal(printable(label)), completed=done, total=total)

    bar.start()
    try:
        yield report
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone, and the work is done all the same
            bar.stop()


def drop_output() -> None:
    """The reader of the output has gone, as in ``lessnoise claims | head -1``: stop without a word."""
    silence()
    raise typer.Exit(EXIT_CLOSED_PIPE)


def silence() -> None:
    """Whatever is printed from now on is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
