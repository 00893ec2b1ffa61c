"""``lessnoise reproduce``: every figure and table of the paper and ours, as one report."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lessnoise.cli import AsJson, Force, console, print_json, time_left_bars
from lessnoise.files import check_free
from lessnoise.report import is_ours
from lessnoise_paper import Settings, registry
from lessnoise_paper import reproduce as run_all
from lessnoise_paper.run import INDEX, MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise_paper import Run

EXIT_INCOMPLETE = 3
EXIT_STOPPED = 130


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the report, its figures and its numbers.")] = Path(
        "lessnoise-report"
    ),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Embedded data, fewer settings and fewer repetitions: under a minute instead of several."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the public files (Uber, MNIST), without --quick. Default: $LESSNOISE_DATA.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Name of a section; --list shows them. May be given several times.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Number of processes. Default: one for each core.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all demonstrations.")] = 0,
    names: Annotated[bool, typer.Option("--list", help="Print the names of the sections and stop.")] = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Repeat every figure and table of the R1SMG paper, with the exact privacy beside each, in one report.

    The report has comparisons of our own as well. Results that an earlier run completed in the same folder are kept, so
    an interrupted run can be continued with the same command. The exit code is 0 if the report is complete, 2 if the
    input is wrong, and 3 if the report is written but lacks a section; the report says why.

    Example: [bold]lessnoise reproduce --quick --out report[/bold]
    """
    if names:
        _print_names(json)
        return
    _check_folder(out, force)
    works = {section.experiment for section in registry.report(only or ()).sections}
    settings = Settings(quick=quick, seed=seed, data=None if data is None else str(data))
    try:
        with _bars(len(works), quiet=json) as listener:
            run = run_all(out, settings, only or (), jobs, listener)
    except KeyboardInterrupt:
        typer.echo("stopped: what was complete is kept; run the same command again to go on.", err=True)
        raise typer.Exit(EXIT_STOPPED) from None
    if json:
        typer.echo((out / MANIFEST).read_text(encoding="utf-8"), nl=False)
    else:
        _print_outcomes(run)
        console().print(f"wrote {out / INDEX}: open it in a browser", markup=False)
    if not run.complete:
        raise typer.Exit(EXIT_INCOMPLETE)


def _check_folder(out: Path, force: bool) -> None:
    """Refuse, before any work, to write over a page that is not an earlier report."""
    page = out / "index.html"
    if out.exists():  # otherwise it is made when there is something to put into it
        check_free([page], force or is_ours(page))


def _print_names(json: bool) -> None:
    if json:
        print_json(
            [
                {"name": s.name, "title": s.title, "place": s.place, "experiment": s.experiment}
                for s in registry.SECTIONS
            ]
        )
        return
    for section in registry.SECTIONS:
        place = section.place or "ours"
        typer.echo(f"{section.name:<14}{place:<11}{section.title}")


def _print_outcomes(run: Run) -> None:
    from rich.markup import escape

    out = console()
    for outcome in run.outcomes.values():
        shown = ", ".join(section.name for section in run.sections if section.experiment == outcome.experiment)
        seconds = f"{outcome.seconds:6.1f} s"
        out.print(f"{outcome.status:<9}{seconds}  {outcome.experiment}: {shown}")
    for outcome in run.missing:
        out.print(f"[red]{outcome.experiment} is {outcome.status}[/red]: {escape(outcome.reason)}")


@contextlib.contextmanager
def _bars(works: int, quiet: bool) -> Iterator[Callable[[str, str, int, int], None] | None]:
    """A bar for all ``works`` together, with about the time left, and one for each under way; None if quiet."""
    if quiet:
        yield None
        return
    with time_left_bars(disable=not sys.stderr.isatty()) as bars:
        everything = bars.add_task(f"the report, of {works} computations", total=float(works))
        tasks: dict[str, Any] = {}
        shares: dict[str, float] = {}

        def report(work: str, label: str, done: int, total: int) -> None:
            if work not in tasks:
                tasks[work] = bars.add_task(work, total=total)
            shares[work] = done / max(total, 1)
            over = shares[work] == 1.0
            bars.update(
                tasks[work], description=f"{work}: {label}", completed=done, total=max(total, 1), visible=not over
            )
            bars.update(everything, completed=sum(shares.values()))

        yield report
