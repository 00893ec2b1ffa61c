"""One way to show that long work goes on."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from lessnoise.cli.terminal import Console, literal
from lessnoise.harmless import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Progress


@contextlib.contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A bar to report (label, done, total) to, gone when the work is done; None if nothing is to be shown."""
    if quiet:
        yield None
        return
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    task = bar.add_task("starting", total=None)

    def report(label: str, done: int, total: int) -> None:
        bar.update(task, description=literal(printable(label)), completed=done, total=total)

    bar.start()
    try:
        yield report
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone, and the work is done all the same
            bar.stop()
