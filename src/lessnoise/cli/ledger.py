"""``lessnoise ledger``: create a budget, see how it was spent, record what was released elsewhere, export it."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from lessnoise.cli.entry import collected_warnings, reporting
from lessnoise.cli.options import AsJson, Force, MechanismName, NeighboursOption, takes_request
from lessnoise.cli.output import console, literal, print_facts, print_json, tell
from lessnoise.cli.schedule import read_plan
from lessnoise.composition import compose
from lessnoise.errors import InvalidInput, LedgerError
from lessnoise.files import check_free, write_together
from lessnoise.guarantees import Neighbours
from lessnoise.ledger import Ledger, check_picture_format, draw_spending, history, spending_lines, words_of
from lessnoise.mechanism import Request, find_mechanism
from lessnoise.text import down

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
    values = {"ledger": str(path), "budget": ledger.budget.to_dict()}
    tell(json, values, f"created {path} with a budget of {ledger.budget}")


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
    _check_target(plot, ledger, force)
    records = ledger.records()
    moments = history(ledger, points, records)
    spent, spent_delta = ledger.spent(), ledger.spent_delta()
    remaining, plans = ledger.remaining(), ledger.plans()
    partitions = len({record.partition for record in records} - {None})
    if plot is not None:
        write_together({plot: lambda file: draw_spending(moments, ledger.budget, file, plot.suffix.lower())}, force)
    if json:
        print_json(
            {
                "ledger": str(path),
                "budget": ledger.budget.to_dict(),
                "records": len(records),
                "partitions": partitions,
                "spent_epsilon": spent.to_dict(),
                "spent_delta": spent_delta.to_dict(),
                "remaining_epsilon": remaining,
                "plans": [plan.to_dict() for plan in plans],
                "history": [moment.to_dict() for moment in moments],
            }
        )
        return
    counting = "two count" if ledger.budget.neighbours is Neighbours.REPLACE else "one counts"
    where = f" over {partitions} partitions; the worst {counting}" if partitions else ""
    print_facts(
        [
            ("budget", str(ledger.budget)),
            ("releases", f"{len(records)}{where}"),
            ("spent", f"epsilon in {spent} at delta = {ledger.budget.delta:g}"),
            ("", f"delta in {spent_delta} at epsilon = {ledger.budget.epsilon:g}"),
            *(("plan", literal(line)) for line in words_of(plans)),
            ("remaining", f"{down(remaining, 4)} of epsilon, at the least"),
        ]
    )
    out = console()
    for line in spending_lines(moments, ledger.budget):
        out.print(line, soft_wrap=True)
    if plot is not None:
        out.print(f"wrote {plot}", soft_wrap=True, markup=False)


@ledger.command()
@takes_request("neighbours")
def spend(
    path: LedgerFile,
    mechanism: MechanismName,
    request: Callable[..., Request],
    count: Annotated[int, typer.Option(help="How many such releases, as one record.")] = 1,
    rate: Annotated[float, typer.Option(help="Each on a Poisson sample of the individuals at this rate.")] = 1.0,
    partition: Annotated[str | None, typer.Option(help="Key of the disjoint set of individuals concerned.")] = None,
    note: Annotated[str, typer.Option(help="A remark to keep with the record.")] = "",
    json: AsJson = False,
) -> None:
    """Record a release that is made elsewhere. Do this before the release; exit code 2 if the budget forbids it.

    Example: [bold]lessnoise ledger spend city.ledger analytic-gaussian --shape 100 --sensitivity 1 --epsilon 0.1
    --delta 1e-8[/bold]
    """
    ledger = Ledger.open(path)
    with collected_warnings():  # and not told: what is recorded is the noise, not its claim
        built = find_mechanism(mechanism).build(request(neighbours=ledger.budget.neighbours))
    receipt = ledger.spend(compose(built).subsample(rate).repeat(count), partition=partition, note=note)
    with reporting(f"recorded as number {receipt.id} of ledger={path}"):
        try:
            remaining = ledger.remaining()
        except LedgerError:  # it is recorded all the same, and that must be said
            remaining = None
        known = None if remaining is None else f"{down(remaining, 4)} of epsilon left, at the least"
        values = {"record": receipt.id, "time": receipt.time, "remaining_epsilon": remaining}
        tell(json, values, f"recorded as number {receipt.id}; {known or 'what is left is not known'}")


@ledger.command()
def reserve(
    path: LedgerFile,
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="What lessnoise plan --out wrote.")],
    name: Annotated[str, typer.Option(help="A name for the plan in this ledger.")],
    partition: Annotated[str | None, typer.Option(help="Key of the disjoint set of individuals concerned.")] = None,
    json: AsJson = False,
) -> None:
    """Hold a plan: its releases are promised their share. Exit code 2 if it does not fit, and nothing is changed.

    Example: [bold]lessnoise ledger reserve city.ledger year.json --name monthly[/bold]
    """
    ledger = Ledger.open(path)
    planned = read_plan(plan)
    ledger.reserve(planned, name=name, partition=partition)
    values = {"ledger": str(path), "plan": name, "releases": planned.times}
    tell(json, values, f"reserved {planned.times} releases as {name}")


@ledger.command()
def cancel(
    path: LedgerFile,
    name: Annotated[str, typer.Argument(help="The name of the plan.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Free what is not used of a plan. What was released stays spent.

    Example: [bold]lessnoise ledger cancel city.ledger monthly[/bold]
    """
    freed = Ledger.open(path).cancel(name)
    tell(json, {"ledger": str(path), "plan": name, "freed": freed}, f"freed {freed} releases of {name}")


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
    ledger = Ledger.open(path)
    _check_target(target, ledger, force)
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
    plans = [plan.to_dict() for plan in ledger.plans()]
    values = {"budget": ledger.budget.to_dict(), "records": records, **({"plans": plans} if plans else {})}
    if target is None:
        print_json(values)
        return
    text = json_format.dumps(values, indent=2) + "\n"
    write_together({target: lambda file: file.write(text.encode())}, force)
    about = {"ledger": str(path), "records": len(records), "file": str(target)}
    tell(json, about, f"wrote {len(records)} records to {target}")


def _check_target(target: Path | None, ledger: Ledger, force: bool) -> None:
    """No force is enough to write over the ledger itself."""
    if target is not None and ledger.is_kept_in(target):
        raise InvalidInput(f"output={target} is a file of the ledger itself: choose another name.")
    check_free([] if target is None else [target], force)
