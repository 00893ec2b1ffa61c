"""``lessnoise ledger``: create a budget, see how it was spent, record what is released elsewhere, check and move it."""

from __future__ import annotations

import datetime
import json as json_format
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from lessnoise.cli.entry import collected_warnings, reporting
from lessnoise.cli.explore import serve_until_interrupted
from lessnoise.cli.options import (
    AsJson,
    Force,
    FromPlan,
    MechanismUnlessPlanned,
    NeighboursOption,
    Partition,
    planned_noise,
    takes_request,
)
from lessnoise.cli.output import console, left_words, literal, new_table, print_facts, print_json, tell
from lessnoise.cli.schedule import read_plan
from lessnoise.composition import compose
from lessnoise.errors import InvalidInput, LedgerError
from lessnoise.explorer import LedgerServer
from lessnoise.files import check_free, write_together
from lessnoise.guarantees import Neighbours
from lessnoise.ledger import (
    Ledger,
    Record,
    check_picture_format,
    draw_spending,
    export_ledger,
    history,
    import_ledger,
    is_on_server,
    migrate_ledgers,
    parse_address,
    roles_script,
    spending_lines,
    words_of,
)
from lessnoise.mechanism import Request, find_mechanism
from lessnoise.validation import json_object, whole_number

LedgerPlace = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER", help="The ledger: a file, or postgresql://host/database?ledger=NAME.", show_default=False
    ),
]
Roles = Annotated[list[str] | None, typer.Option(help="A role of the server. May be given several times.")]

RecordKey = Annotated[
    str | None,
    typer.Option(
        "--key", help="A name for this one command. If it is run again with the same name, it changes nothing."
    ),
]

ledger = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})


@ledger.command()
def create(
    path: LedgerPlace,
    epsilon: Annotated[float, typer.Option(help="Epsilon that all releases together may cost.")],
    delta: Annotated[float, typer.Option(help="Delta that all releases together may cost. 0 asks for pure privacy.")],
    neighbours: NeighboursOption = "add/remove",
    adaptive: Annotated[
        bool,
        typer.Option(
            "--adaptive",
            help="Allow the noise to be chosen after a look at earlier answers. Then only Gaussian and pure releases "
            "(with delta = 0) are accepted.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Create a ledger: a budget that many releases share. An existing file or ledger is never changed.

    Example: [bold]lessnoise ledger create city.ledger --epsilon 1 --delta 1e-6[/bold]
    """
    ledger = Ledger.create(path, epsilon=epsilon, delta=delta, neighbours=neighbours, adaptive=adaptive)
    values = {"ledger": ledger.address, "budget": ledger.budget.to_dict(), "adaptive": ledger.adaptive}
    tell(json, values, f"created {ledger.address} with a budget of {ledger.budget}")


@ledger.command()
def show(
    path: LedgerPlace,
    points: Annotated[
        int, typer.Option(min=1, max=1000, help="Number of moments at which the total is computed.")
    ] = 16,
    latest: Annotated[
        int, typer.Option(min=0, help="Number of newest records to list, with their time and user.")
    ] = 10,
    plot: Annotated[Path | None, typer.Option(help="Draw the spending into this .png, .svg or .pdf file.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show what was spent, what is left, and how the total grew.

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
                "ledger": ledger.address,
                "budget": ledger.budget.to_dict(),
                "adaptive": ledger.adaptive,
                "promise": ledger.promise(),
                "mark": ledger.mark(),
                "records": len(records),
                "partitions": partitions,
                "spent_epsilon": spent.to_dict(),
                "spent_delta": spent_delta.to_dict(),
                "remaining_epsilon": remaining,
                "plans": [plan.to_dict() for plan in plans],
                "history": [moment.to_dict() for moment in moments],
                "latest": [_listed(record) for record in records[-latest:]] if latest else [],
            }
        )
        return
    counting = "two partitions count" if ledger.budget.neighbours is Neighbours.REPLACE else "partition counts"
    where = f" over {partitions} partitions; the most expensive {counting}" if partitions else ""
    print_facts(
        [
            ("budget", str(ledger.budget)),
            ("releases", f"{len(records)}{where}"),
            ("spent", f"an epsilon in {spent} at delta = {ledger.budget.delta:g}"),
            ("", f"or a delta in {spent_delta} at epsilon = {ledger.budget.epsilon:g}"),
            *(("plan", literal(line)) for line in words_of(plans)),
            ("remaining", left_words(remaining)),
            ("holds if", ledger.promise()),
            *([("mark", ledger.mark())] if records or plans else []),
        ]
    )
    out = console()
    for line in spending_lines(moments, ledger.budget):
        out.print(line, soft_wrap=True)
    if records and latest:
        out.print(_record_table(records[-latest:]))
    if plot is not None:
        out.print(f"wrote {plot}", soft_wrap=True, markup=False)


@ledger.command()
@takes_request("neighbours", optional=True)
def spend(
    path: LedgerPlace,
    request: Callable[..., Request] | None,
    mechanism: MechanismUnlessPlanned = None,
    count: Annotated[int, typer.Option(help="Number of such releases, recorded together.")] = 1,
    rate: Annotated[
        float, typer.Option(help="Each release sees a random (Poisson) sample of the individuals with this rate.")
    ] = 1.0,
    partition: Partition = None,
    note: Annotated[str, typer.Option(help="A remark to keep with the record.")] = "",
    key: Annotated[
        str | None,
        typer.Option(help="A name for this one release. If it is recorded again with the same name, it costs nothing."),
    ] = None,
    plan: FromPlan = None,
    json: AsJson = False,
) -> None:
    """Record a release that is made elsewhere. Run this before the release.

    The exit code is 2 if the budget does not allow the release, and then nothing is recorded.

    Example: [bold]lessnoise ledger spend city.ledger analytic-gaussian --shape 100 --sensitivity 1 --epsilon 0.1
    --delta 1e-8[/bold]

    With --plan the noise is the planned one, unless a mechanism is named.
    """
    if (mechanism is None) != (request is None) or (mechanism is None and plan is None):
        raise InvalidInput(
            f"mechanism={mechanism}: pass a mechanism with --shape, --sensitivity (or --changes), --epsilon and "
            "--delta, or only --plan for the noise of a plan."
        )
    whole_number("count", count)
    ledger = Ledger.open(path)
    payer = ledger if plan is None else ledger.plan(plan)
    with collected_warnings():  # and not told: what is recorded is the noise, not its claim
        if mechanism is not None and request is not None:
            built = find_mechanism(mechanism).build(request(neighbours=ledger.budget.neighbours))
        else:
            assert plan is not None
            built = planned_noise(payer, plan, None, rate)
    receipt = payer.spend(compose(built).subsample(rate).repeat(count), partition=partition, note=note, key=key)
    with reporting(f"recorded as number {receipt.id} of ledger={ledger.address}"):
        try:
            remaining = ledger.remaining()
        except LedgerError:  # it is recorded all the same, and that must be said
            remaining = None
        known = None if remaining is None else left_words(remaining)
        values = {
            "record": receipt.id,
            "time": receipt.time,
            "mark": receipt.mark,
            "again": receipt.again,
            "remaining_epsilon": remaining,
        }
        done = "this was recorded before, under the same key, as" if receipt.again else "recorded as"
        tell(json, values, f"{done} number {receipt.id}; {known or 'what is left is not known'}")


@ledger.command()
def verify(
    path: LedgerPlace,
    mark: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBER:HASH",
            help="A mark from a receipt or from lessnoise ledger show. May be given several times.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every record, and that the hashes of the history fit together. The exit code is 2 if they do not.

    Someone who can write to the ledger could change a record and compute all hashes again. A mark that you kept
    elsewhere shows that as well.

    Example: [bold]lessnoise ledger verify city.ledger[/bold]
    """
    ledger = Ledger.open(path)
    ledger.verify(*(mark or []))
    last = ledger.mark()
    values = {"ledger": ledger.address, "records": int(last.partition(":")[0] or 0), "mark": last}
    kept = f", and so do {len(mark)} marks" if mark else ""
    tell(
        json,
        values,
        f"{values['records']} records fit together{kept}; the mark to keep: {last or 'none yet'}",
    )


@ledger.command()
def reserve(
    path: LedgerPlace,
    plan: Annotated[Path, typer.Argument(metavar="PLAN.json", help="The file that lessnoise plan --out wrote.")],
    name: Annotated[str, typer.Option(help="A name for the plan in this ledger.")],
    partition: Partition = None,
    key: RecordKey = None,
    json: AsJson = False,
) -> None:
    """Reserve budget for the releases of a plan, so that nothing else can spend it.

    The exit code is 2 if the budget does not allow the plan, and then nothing is changed.

    Example: [bold]lessnoise ledger reserve city.ledger year.json --name monthly[/bold]
    """
    ledger = Ledger.open(path)
    planned = read_plan(plan)
    receipt = ledger.reserve(planned, name=name, partition=partition, key=key)
    values = {
        "ledger": ledger.address,
        "plan": name,
        "releases": planned.times,
        "mark": receipt.mark,
        "again": receipt.again,
    }
    done = "were reserved before, under the same key, as" if receipt.again else "are reserved as"
    tell(json, values, f"{planned.times} releases {done} {name}; the mark to keep: {receipt.mark}")


@ledger.command()
def cancel(
    path: LedgerPlace,
    name: Annotated[str, typer.Argument(help="The name of the plan.", show_default=False)],
    key: RecordKey = None,
    json: AsJson = False,
) -> None:
    """Give back what a plan has reserved and not used. What was released stays spent.

    Example: [bold]lessnoise ledger cancel city.ledger monthly[/bold]
    """
    ledger = Ledger.open(path)
    freed = ledger.cancel(name, key=key)
    tell(json, {"ledger": ledger.address, "plan": name, "freed": freed}, f"freed {freed} releases of {name}")


@ledger.command()
def export(
    path: LedgerPlace,
    target: Annotated[
        Path | None, typer.Argument(metavar="[OUT.json]", help="File to write. Without it the records are printed.")
    ] = None,
    close: Annotated[
        bool, typer.Option("--close", help="Close the ledger for ever: nothing can be spent from it any more.")
    ] = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Write the budget and every record with its full description, as JSON.

    With --close the ledger can be continued elsewhere, with lessnoise ledger import.

    Example: [bold]lessnoise ledger export city.ledger records.json[/bold]

    Example of a move: [bold]lessnoise ledger export city.ledger moved.json --close[/bold]
    """
    ledger = Ledger.open(path)
    _check_target(target, ledger, force)
    if close:
        ledger.close("exported")
    values = export_ledger(ledger)
    if target is None:
        print_json(values)
        return
    text = json_format.dumps(values, indent=2) + "\n"
    write_together({target: lambda file: file.write(text.encode())}, force)
    about = {"ledger": ledger.address, "records": len(values["records"]), "file": str(target)}
    tell(json, about, f"wrote {len(values['records'])} records to {target}")


@ledger.command(name="import")
def import_(
    source: Annotated[
        Path, typer.Argument(metavar="IN.json", help="The file that lessnoise ledger export wrote.", show_default=False)
    ],
    path: LedgerPlace,
    copy: Annotated[
        bool,
        typer.Option("--copy", help="Say that the exported ledger, which was not closed, will never be used again."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Create a ledger from an exported one, with its whole history. Every hash is checked.

    Example: [bold]lessnoise ledger import moved.json "postgresql://db/city?ledger=city"[/bold]

    Example with a file: [bold]lessnoise ledger import moved.json new.ledger[/bold]
    """
    made = import_ledger(json_object(source.read_text(encoding="utf-8", errors="replace"), "records"), path, copy=copy)
    mark = made.mark()
    values = {"ledger": made.address, "records": int(mark.partition(":")[0] or 0), "mark": mark}
    tell(json, values, f"created {made.address} with {values['records']} records")


@ledger.command()
def roles(
    path: LedgerPlace, read: Roles = None, spend: Roles = None, create: Roles = None, json: AsJson = False
) -> None:
    """Print the SQL that lets roles of a server read a ledger, spend from it or create ledgers.

    The command only prints; it does not connect to the server.

    Example: [bold]lessnoise ledger roles "postgresql://db/city?ledger=city" --spend ada --read bob | psql city[/bold]
    """
    if not is_on_server(path):
        raise InvalidInput(
            f"ledger={path} is a file, and files have no roles: set the permissions of the file instead."
        )
    address = parse_address(path)
    script = roles_script(address.ledger, read=read or (), spend=spend or (), create=create or ())
    if json:
        print_json({"ledger": address.shown, "sql": script})
    else:
        typer.echo(script, nl=False)


@ledger.command()
def migrate(path: LedgerPlace, json: AsJson = False) -> None:
    """Bring the tables of a server, with all its ledgers, to the version of this lessnoise.

    A ledger in a file needs no such command.

    Example: [bold]lessnoise ledger migrate "postgresql://db/city?ledger=city"[/bold]
    """
    migrate_ledgers(path)
    address = Ledger.open(path).address
    tell(json, {"ledger": address}, f"the tables of {address} have the version of this lessnoise")


@ledger.command()
def serve(
    path: LedgerPlace,
    port: Annotated[int, typer.Option(help="Port on this machine. 0 takes any free port.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    json: AsJson = False,
) -> None:
    """Show the history, what is left and what a release would cost, on a page in your browser.

    The page is served on this machine alone, until you press Ctrl-C. It only reads: nothing can be spent from it.

    Example: [bold]lessnoise ledger serve city.ledger[/bold]
    """
    with LedgerServer(Ledger.open(path), port) as server:
        serve_until_interrupted(server, "The ledger", browser, json)


def _listed(record: Record) -> dict[str, object]:
    return {
        "id": record.id,
        "time": record.time,
        "who": record.who,
        "mechanism": record.mechanisms,
        "partition": record.partition,
        "note": record.note,
        "plan": record.plan,
        "hash": record.hash,
    }


def _record_table(records: Sequence[Record]) -> Table:
    """Who spent what, and when."""
    table = new_table("", ["number", "when", "who", "mechanism", "partition", "note"])
    for record in records:
        when = datetime.datetime.fromtimestamp(record.time).strftime("%Y-%m-%d %H:%M:%S")
        cells = (str(record.id), when, record.who, record.mechanisms, record.partition or "", record.note)
        table.add_row(*(literal(" ".join(cell.split())[:60]) for cell in cells))
    return table


def _check_target(target: Path | None, ledger: Ledger, force: bool) -> None:
    """No force is enough to write over the ledger itself."""
    if target is not None and ledger.is_kept_in(target):
        raise InvalidInput(f"output={target} is a file of the ledger itself: choose another name.")
    check_free([] if target is None else [target], force)
