"""``lessnoise stream``: running totals, one value a period, from a folder that survives a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from lessnoise import npy
from lessnoise.changes import parse
from lessnoise.cli.entry import orderly, paid_words, reporting
from lessnoise.cli.options import (
    AsJson,
    Epsilon,
    Force,
    LedgerOption,
    NeighboursOption,
    Partition,
    UnsafeSeed,
    parse_shape,
    seeded,
)
from lessnoise.cli.output import console, print_facts, print_json, tell
from lessnoise.errors import InvalidInput
from lessnoise.files import check_apart, check_free, write_together
from lessnoise.harmless import shown
from lessnoise.ledger import Ledger, check_picture_format
from lessnoise.streams import Stream, draw_totals, half_width

Folder = Annotated[Path, typer.Argument(metavar="STREAM", help="Folder of the stream.", show_default=False)]
_ROWS = 20  # totals that are printed, the last ones

stream = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@stream.command()
def create(
    path: Folder,
    periods: Annotated[int, typer.Option(help="The largest number of values that will be pushed.")],
    epsilon: Epsilon,
    delta: Annotated[float, typer.Option(help="Delta of the guarantee. 0 asks for pure privacy.")] = 0.0,
    shape: Annotated[
        str | None, typer.Option(help="Shape of a value, such as 24 or 7x24. Default: one number.", metavar="N[xN...]")
    ] = None,
    changes: Annotated[
        str,
        typer.Option(help="What one individual can change in one period: counts, counts:5, ball:1.", metavar="SET"),
    ] = "counts",
    neighbours: NeighboursOption = "add/remove",
    participations: Annotated[
        int, typer.Option(help="The number of periods in which one individual may take part.")
    ] = 1,
    strategy: Annotated[
        str, typer.Option(help="How the noise is spread over the periods: best, tree, buffers, banded or square-root.")
    ] = "best",
    ledger: LedgerOption = None,
    partition: Partition = None,
    seed: UnsafeSeed = None,
    json: AsJson = False,
) -> None:
    """Create a stream of running totals.

    All periods together are paid for now, so that the values pushed later cost nothing.

    Example: [bold]lessnoise stream create visits --periods 365 --epsilon 1 --delta 1e-6[/bold]
    """
    rng, budget = seeded(seed), None if ledger is None else Ledger.open(ledger)
    with orderly():
        made = Stream(
            periods=periods,
            epsilon=epsilon,
            delta=delta,
            shape=() if shape is None else parse_shape(shape),
            changes=parse(changes, neighbours),
            participations=participations,
            strategy=strategy,
            path=path,
            ledger=budget,
            partition=partition,
            rng=rng,
        )
    with made, reporting(f"{path} is {paid_words(made.receipt)}made"):
        values = {"stream": str(path), "record": None if made.receipt is None else made.receipt.id, **_described(made)}
        paid = "" if made.receipt is None else f", paid for by record {made.receipt.id}"
        tell(json, values, f"created {path} for {periods} periods: {made.plan.strategy}, {made.guarantee}{paid}")


@stream.command(context_settings={"ignore_unknown_options": True})
def push(
    path: Folder,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="A number, numbers with commas between them, or a .npy file.")
    ],
    period: Annotated[
        int | None,
        typer.Option(
            help="Number of the period. With it, pushing the same value again is harmless. Default: the next one."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the running total to this .npy file.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Add the value of one period, and print the noisy running total.

    Example: [bold]lessnoise stream push visits 131 --period 1[/bold]
    """
    if out is not None:
        check_free([out], force)
    number = _value(value)
    with Stream.open(path) as opened:
        if number.size == 1 and not opened.plan.shape:
            number = number.reshape(())
        with orderly():
            total = np.asarray(opened.push(number, period=period))
        with reporting(f"period {opened.period} of {path} is pushed"):
            if out is not None:
                write_together({out: lambda file: np.save(file, total)}, force)
            values = {
                "period": opened.period,
                "total": total.tolist(),
                "standard_error": opened.standard_error(),
                "file": None if out is None else str(out),
            }
            band = half_width(opened.standard_error() ** 2)
            said = f"{total:.6g} +- {band:.3g}" if total.ndim == 0 else f"{total.size} totals, each +- {band:.3g}"
            tell(json, values, f"period {opened.period} of {opened.plan.periods}: {said}")


@stream.command()
def show(
    path: Folder,
    plot: Annotated[Path | None, typer.Option(help="Draw the totals into this .png, .svg or .pdf file.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show the totals released so far, and what they guarantee.

    Example: [bold]lessnoise stream show visits --plot visits.svg[/bold]
    """
    if plot is not None:
        check_picture_format(plot)
        check_free([plot], force)
    with Stream.open(path) as opened:
        if plot is not None:
            check_apart([plot], {"stream": path, **{name.name: name for name in path.iterdir()}})
            write_together({plot: lambda file: draw_totals(opened, file, plot.suffix.lower())}, force)
        totals, variances = opened.totals, opened.plan.variances()
        if json:
            errors = np.sqrt(variances[: opened.period]).tolist()
            print_json(
                {"stream": str(path), **_described(opened), "totals": totals.tolist(), "standard_errors": errors}
            )
            return
        private = "" if opened.private else " (NOT private: it was seeded)"
        print_facts(
            [
                ("periods", f"{opened.period} of {opened.plan.periods}"),
                ("guarantee", f"{opened.guarantee}, all periods together{private}"),
                ("strategy", f"{opened.plan.strategy}"),
                ("error", f"{opened.query_error**0.5:.4g} per total (root mean square)"),
            ]
        )
        out = console()
        if not opened.plan.shape:
            for place in range(max(opened.period - _ROWS, 0), opened.period):
                band = half_width(float(variances[place]))
                out.print(f"{place + 1:>9}  {totals[place]:.6g} +- {band:.3g}", soft_wrap=True, markup=False)
        if plot is not None:
            out.print(f"wrote {plot}", soft_wrap=True, markup=False)


def _described(opened: Stream) -> dict[str, Any]:
    return {
        "period": opened.period,
        "private": opened.private,
        "guarantee": opened.guarantee.to_dict(),
        "query_error": opened.query_error,
        "plan": opened.plan.to_dict(),
    }


def _value(text: str) -> np.ndarray[Any, Any]:
    """A file of numbers, or numbers."""
    if text.lower().endswith(".npy"):
        return npy.load(Path(text), "value")
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(
            f"value={shown(text)} is not a number: write 131, or 1,2,3, or the name of a .npy file."
        ) from None
    return np.array(numbers)
