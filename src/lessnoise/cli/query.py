"""``lessnoise query``: private statistics of the groups of a table, with intervals, a certificate and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.entry import collected_warnings, orderly, paid_words, reporting
from lessnoise.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Force,
    LedgerOption,
    NeighboursOption,
    Partition,
    SignWith,
    UnsafeSeed,
    ledger_files,
    seeded,
    signer_of,
)
from lessnoise.cli.output import console, left_words, literal, new_table, print_facts, print_json, progress_bar
from lessnoise.cli.question import asked, axes, cell_sums, listed, several_columns, weights_of
from lessnoise.cli.sources import Data, EngineOption, MaxRows, TableOption, UnitOption, data_files, data_source
from lessnoise.errors import InvalidInput
from lessnoise.files import check_apart
from lessnoise.ledger import Ledger
from lessnoise.query import Unit
from lessnoise.release import Payment
from lessnoise.table import STATISTIC, Table, TableFolder, TableGroups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise.query import Axis
    from lessnoise.table import Job, TableAnswer, TableQuestion

_MOST_ROWS = 100  # on the screen

_Column = "COLUMN:LOW:HIGH"


def query(
    data: Data,
    epsilon: Epsilon,
    delta: Delta,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the rows, the certificate and the picture. Only --plan needs none.")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Column by which the rows are grouped. May be given several times.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            help="Public keys of the groups. With several columns of --by, write COLUMN= before its keys. A column "
            "without keys, bins or edges has private keys: they are found in the data, privately.",
            metavar="[COLUMN=]A,B",
        ),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(help="Groups of a column of numbers: N cells of equal width.", metavar="COLUMN:LOW:HIGH:N"),
    ] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option(help="Groups of a column of numbers: the cells between these edges.", metavar="COLUMN:A,B,C"),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Number of rows.")] = False,
    mean: Annotated[
        list[str] | None, typer.Option(help="Mean of a column, with public bounds.", metavar=_Column)
    ] = None,
    total: Annotated[
        list[str] | None, typer.Option("--sum", help="Sum of a column, with public bounds.", metavar=_Column)
    ] = None,
    variance: Annotated[
        list[str] | None, typer.Option(help="Variance of a column, with public bounds.", metavar=_Column)
    ] = None,
    quantiles: Annotated[
        list[str] | None,
        typer.Option(help="Quantiles of a column, such as age:0:120@0.25,0.5,0.75.", metavar=f"{_Column}@P,P"),
    ] = None,
    histogram: Annotated[
        list[str] | None,
        typer.Option(
            help="Counts of a column in cells of equal width, such as age:0:120@12, or for public keys, such as "
            "colour=red,blue.",
            metavar=f"{_Column}@N",
        ),
    ] = None,
    cdf: Annotated[
        list[str] | None,
        typer.Option(help="Share of the rows up to each edge of N cells of equal width.", metavar=f"{_Column}:N"),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(help="Number of rows between any two edges of N cells of equal width.", metavar=f"{_Column}:N"),
    ] = None,
    marginals: Annotated[
        int | None,
        typer.Option(
            help="Counts for every combination of this many columns of --by. No other statistic may be asked with it.",
            metavar="ORDER",
        ),
    ] = None,
    covariance: Annotated[
        list[str] | None,
        typer.Option(
            help="Covariances of two or more columns, with commas between them.", metavar=f"{_Column},{_Column}"
        ),
    ] = None,
    correlation: Annotated[
        list[str] | None,
        typer.Option(
            help="Covariances and correlations of two or more columns, with commas between them.",
            metavar=f"{_Column},{_Column}",
        ),
    ] = None,
    regress: Annotated[
        list[str] | None,
        typer.Option(
            help="Intercept and slopes of a linear regression, such as income:0:200000~age:0:120,years:0:50.",
            metavar=f"{_Column}~{_Column}",
        ),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            help="How much each statistic matters, one number for each, in this order: count, means, sums, variances, "
            "quantiles.",
            metavar="W,W",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(help="Level of the intervals: how often an interval contains the true value.")
    ] = 0.95,
    neighbours: NeighboursOption = "add/remove",
    unit: UnitOption = None,
    max_rows: MaxRows = None,
    max_groups: Annotated[
        int | None,
        typer.Option("--max-groups", help="How many groups of each user are used. They are chosen at random."),
    ] = None,
    max_rows_per_group: Annotated[
        int | None, typer.Option("--max-rows-per-group", help="How many rows of each user are used in a group.")
    ] = None,
    engine: EngineOption = None,
    table: TableOption = None,
    output_format: Annotated[
        list[str] | None,
        typer.Option("--format", help="parquet, csv or json, with commas between them. Default: parquet."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show the noise that each statistic would get. No data is read.")
    ] = False,
    force: Force = False,
    sign: SignWith = None,
    seed: UnsafeSeed = None,
    ledger: LedgerOption = None,
    partition: Partition = None,
    json: AsJson = False,
) -> None:
    """Ask a table for private statistics: counts, means, quantiles and more, of all rows or of groups.

    The folder gets the answers with their intervals, certificate.json and answer.png: all of them, or nothing if
    something fails.

    Example: [bold]lessnoise query people.csv --by city --keys Oslo,Bergen --count --mean income:0:200000 --epsilon 1
    --delta 1e-6 --out income[/bold]
    """
    joint = several_columns(histogram or (), covariance or (), correlation or (), regress or ())
    more = [*joint, *cell_sums(cdf or (), ranges or ())]
    if marginals is not None and (count or mean or total or variance or quantiles or more):
        raise InvalidInput(
            f"marginals={marginals} cannot be asked with other statistics: ask for those in another command."
        )
    single = (count, mean or (), total or (), variance or (), quantiles or ())
    aggregates = asked(*single, more) if marginals is None else []
    protected = Unit(unit, max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)
    source = Table(data_source(data, table), protected, neighbours, engine)
    groups, given = axes(by or (), keys or (), bins or (), edges or ()), weights_of(weights or ())
    question: TableQuestion
    if marginals is not None:
        question = source.marginals(*_public(groups), order=marginals)
    else:
        found = TableGroups(source, ()) if not groups else source.group_by(*groups)
        question = found.aggregate(*aggregates)
    if plan:
        _print_plan(question.prepare(epsilon, delta, weights=given, level=level), json)
        return
    if out is None:
        raise InvalidInput("out=None: name a folder for the results with --out, or look at the noise with --plan.")
    folder = TableFolder(out, listed(output_format or ["parquet"]), force, signer_of(sign))
    for each in data_files(data):
        check_apart(folder.outputs, {"data": each})
    check_apart(folder.outputs, ledger_files(ledger))
    budget = None if ledger is None else Ledger.open(ledger)
    with orderly(), collected_warnings() as warned:
        paid = {"ledger": budget, "partition": partition, "rng": seeded(seed)}
        job = question.prepare(epsilon, delta, weights=given, level=level, **paid)  # type: ignore[arg-type]
        trial = folder.contents(job.trial())  # a name that cannot be drawn or written shows here
        with progress_bar(quiet=json) as progress:
            answer = job.answer(progress)
        if question.unknown:
            trial = folder.contents(job.trial(answer))
        with folder.reserved(trial) as staged:
            if not json:
                print_facts(_rules(question))
            result = job.release(answer)
            with Payment(budget, result.receipt, result) as payment:
                written = folder.write(folder.contents(result), staged, payment)
    with reporting(f"{out} is {paid_words(result.receipt)}written"):
        if json:
            rows = [dict(row) for row in result.rows]
            print_json({"rows": rows, **result.certificate, "files": [str(path) for path in written]})
        else:
            _print_answer(result)
            console().print(f"wrote {literal(*written)}")
            print_facts(_facts(result, budget))
            print_facts(("[red]warning[/red]  ", literal(words)) for words in warned)


def _public(groups: tuple[Axis | str, ...]) -> Iterator[Axis]:
    """The columns of marginals, whose keys are public."""
    if not groups:
        raise InvalidInput("by=None: name the columns of --marginals with --by, and their --keys, --bins or --edges.")
    for axis in groups:
        if isinstance(axis, str):
            raise InvalidInput(f"by={axis!r} has private keys, which --marginals cannot have: add --keys or --bins.")
        yield axis


def _rules(question: TableQuestion) -> Iterator[tuple[str, str]]:
    for rule in question.rules:
        yield "rule", literal(rule)


def _print_plan(job: Job, as_json: bool) -> None:
    question, plan, guarantee = job.question, job.plan, job.guarantee
    if as_json:
        print_json({"guarantee": guarantee.to_dict(), **question.description(plan.query), "plan": plan.rows()})
        return
    shown = new_table("What would be released (no data was read)", ["answers", "mechanism"], ["epsilon", "noise sd"])
    for row in plan.rows():
        shown.add_row(
            literal(row["answers"]), literal(row["mechanism"]), f"{row['epsilon']:.4g}", f"{row['noise sd']:.4g}"
        )
    out = console()
    out.print(shown)
    out.print(
        "The noise of a sum is in the unit of its column. All other noise is in rows, so it matters less in "
        "larger groups."
    )
    facts = [
        ("groups", "those with enough rows, which are not known yet" if question.unknown else f"{plan.query.groups:,}"),
        ("guarantee", f"{guarantee} (computed, delta rounded up), protects {literal(question.table.unit)}"),
    ]
    print_facts([*facts, *_rules(question)])


def _print_answer(answer: TableAnswer) -> None:
    labels = [name for name in answer.columns if name not in STATISTIC]
    shown = new_table(
        f"Private statistics; an interval contains the true value with probability {answer.level:.4g}",
        [*(literal(name) for name in labels), "statistic"],
        STATISTIC[1:],
    )
    for row in answer.rows[:_MOST_ROWS]:
        words = (literal("" if row[name] is None else row[name]) for name in (*labels, "statistic"))
        shown.add_row(*words, *(f"{row[name]:.6g}" for name in STATISTIC[1:]))
    console().print(shown)
    if len(answer.rows) > _MOST_ROWS:
        console().print(f"{len(answer.rows) - _MOST_ROWS:,} more rows are in the files")


def _facts(answer: TableAnswer, budget: Ledger | None) -> Iterator[tuple[str, str]]:
    yield "guarantee", f"{answer.guarantee} (computed, delta rounded up), protects {literal(answer.protects)}"
    if answer.receipt is not None and budget is not None:
        yield "ledger", f"record {answer.receipt.id}; {left_words(budget.remaining())}"
    if not answer.private:
        yield "[red]not private[/red]", "the noise came from a seed, so anyone who has the seed can remove it"
