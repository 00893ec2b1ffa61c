"""``lessnoise ledger``: create a budget, see how it was spent, record what was released elsewhere, export it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.entry import reporting
from lessnoise.cli.options import (
    AsJson,
    Bound,
    Counts,
    Delta,
    EntryBound,
    Epsilon,
    Force,
    Integer,
    K,
    L1Sensitivity,
    MechanismName,
    NeighboursOption,
    Objective,
    P,
    Sensitivity,
    Shape,
    request_of,
)
from lessnoise.cli.output import console, print_json
from lessnoise.composition import compose
from lessnoise.errors import ClaimWarning, InvalidInput, LedgerError
from lessnoise.files import check_free, write_together
from lessnoise.guarantees import Neighbours
from lessnoise.ledger import Ledger, check_picture_format, draw_spending, history, spending_lines
from lessnoise.mechanism import find_mechanism
from lessnoise.text import down

if TYPE_CHECKING:
    from lessnoise.ledger import Ledger

LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="File of the ledger.", show_default=False)]

ledger = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@ledger.command()
def create(
    path: LedgerFile,
    epsilon: Annotated[float, typer.Option(help="Total epsilon.")],
    delta: Annotated[float, typer.Option(help="Total delta; 0 for pure privacy.")],
    neighbours: NeighboursOption = "add/remove",
    json: AsJson = False,
) -> None:
    """Create a ledger with a budget. An existing file is never touched.

    Example: [bold]lessnoise ledger create city.ledger --epsilon 1 --delta 1e-6[/bold]
    """
    if path.exists():
        raise InvalidInput(f"ledger={path} exists already: choose another name.")
    ledger = Ledger.open(path, epsilon=epsilon, delta=delta, neighbours=neighbours)
    if json:
        print_json({"ledger": str(path), "budget": ledger.budget.to_dict()})
    else:
        console().print(f"created {path} with a budget of {ledger.budget}", soft_wrap=True, markup=False)


@ledger.command()
def show(
    path: LedgerFile,
    points: Annotated[int, typer.Option(min=1, max=1000, help="Moments at which the total is computed.")] = 16,
    plot: Annotated[Path | None, typer.Option(help="Draw the spending to this .png, .svg or .pdf file.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show what was spent, what is left, and how it came to that.

    Example: [bold]lessnoise ledger show city.ledger --plot spending.svg[/bold]
    """
    if plot is not None:
        check_picture_format(plot)
    ledger = Ledger.open(path)
    if plot is not None:
        _check_target(plot, ledger)
        check_free([plot], force)
    records = ledger.records()
    moments = history(ledger, points, records)
    spent, spent_delta = ledger.spent(), ledger.spent_delta()
    remaining = max(ledger.budget.epsilon - spent.upper, 0.0)
    if plot is not None:
        write_together(
            {plot: lambda file: draw_spending(moments, ledger.budget, file, plot.suffix.lower())}, force
        )  # fmt: skip
    if json:
        print_json(
            {
                "ledger": str(path),
                "budget": ledger.budget.to_dict(),
                "records": len(records),
                "partitions": len({record.partition for record in records} - {None}),
                "spent_epsilon": spent.to_dict(),
                "spent_delta": spent_delta.to_dict(),
                "remaining_epsilon": remaining,
                "history": [moment.to_dict() for moment in moments],
            }
        )
        return
    out = console()
    partitions = len({record.partition for record in records} - {None})
    counting = "two count" if ledger.budget.neighbours is Neighbours.REPLACE else "one counts"
    where = f" over {partitions} partitions; the worst {counting}" if partitions else ""
    out.print(f"budget     {ledger.budget}")
    out.print(f"releases   {len(records)}{where}")
    out.print(f"spent      epsilon in {spent} at delta = {ledger.budget.delta:g}")
    out.print(f"           delta in {spent_delta} at epsilon = {ledger.budget.epsilon:g}")
    out.print(f"remaining  {down(remaining, 4)} of epsilon, at the least")
    for line in spending_lines(moments, ledger.budget):
        out.print(line, soft_wrap=True)
    if plot is not None:
        out.print(f"wrote {plot}", soft_wrap=True, markup=False)


@ledger.command()
def spend(
    context: typer.Context,
    path: LedgerFile,
    mechanism: MechanismName,
    shape: Shape,
    sensitivity: Sensitivity,
    epsilon: Epsilon,
    delta: Delta,
    count: Annotated[int, typer.Option(help="How many such releases, as one record.")] = 1,
    rate: Annotated[float, typer.Option(help="Each on a Poisson sample of the individuals at this rate.")] = 1.0,
    partition: Annotated[str | None, typer.Option(help="Key of the disjoint set of individuals concerned.")] = None,
    note: Annotated[str, typer.Option(help="A remark to keep with the record.")] = "",
    l1_sensitivity: L1Sensitivity = None,
    k: K = None,
    p: P = None,
    bound: Bound = None,
    entry_bound: EntryBound = None,
    objective: Objective = "squared",
    integer: Integer = False,
    counts: Counts = False,
    json: AsJson = False,
) -> None:
    """Record a release that is made elsewhere. Do this before the release; exit code 2 if the budget forbids it.

    Example: [bold]lessnoise ledger spend city.ledger analytic-gaussian --shape 100 --sensitivity 1 --epsilon 0.1
    --delta 1e-8[/bold]
    """
    ledger = Ledger.open(path)
    request = request_of(context.params, neighbours=ledger.budget.neighbours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # what is recorded is the noise, not its claim
        built = find_mechanism(mechanism).build(request)
    receipt = ledger.spend(compose(built).subsample(rate).repeat(count), partition=partition, note=note)
    with reporting(f"recorded as number {receipt.id} of ledger={path}"):
        try:
            remaining = ledger.remaining()
        except LedgerError:  # it is recorded all the same, and that must be said
            remaining = None
        if json:
            print_json({"record": receipt.id, "time": receipt.time, "remaining_epsilon": remaining})
        else:
            left = (
                "what is left is not known"
                if remaining is None
                else f"{down(remaining, 4)} of epsilon left, at the least"
            )
            console().print(f"recorded as number {receipt.id}; {left}")


@ledger.command()
def export(
    path: LedgerFile,
    target: Annotated[Path | None, typer.Argument(metavar="[OUT.json]", help="File to write; else the screen.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the budget and every record with its full description, as JSON.

    Example: [bold]lessnoise ledger export city.ledger records.json[/bold]
    """
    import json as json_format

    ledger = Ledger.open(path)
    if target is not None:
        _check_target(target, ledger)
        check_free([target], force)
    records = [
        {
            "id": record.id,
            "time": record.time,
            "partition": record.partition,
            "note": record.note,
            "release": record.composition.to_dict(),
        }
        for record in ledger.records()
    ]
    values = {"budget": ledger.budget.to_dict(), "records": records}
    if target is None:
        print_json(values)
        return
    text = json_format.dumps(values, indent=2) + "\n"
    write_together({target: lambda file: file.write(text.encode())}, force)
    if json:
        print_json({"ledger": str(path), "records": len(records), "file": str(target)})
    else:
        console().print(f"wrote {len(records)} records to {target}", soft_wrap=True, markup=False)


def _check_target(target: Path, ledger: Ledger) -> None:
    """No force is enough to write over the ledger itself."""
    if ledger.is_kept_in(target):
        raise InvalidInput(f"output={target} is a file of the ledger itself: choose another name.")
