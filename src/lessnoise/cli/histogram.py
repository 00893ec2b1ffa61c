"""``lessnoise histogram``: private counts from a file, with a certificate and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessnoise.cli.entry import collected_warnings, orderly, paid_words, reporting
from lessnoise.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Force,
    LedgerOption,
    MechanismOrBest,
    NeighboursOption,
    Partition,
    UnsafeSeed,
    ledger_files,
    parse_shape,
    seeded,
)
from lessnoise.cli.output import console, literal, print_json, progress_bar
from lessnoise.cli.release import print_release
from lessnoise.cli.sources import Data, EngineOption, MaxRows, TableOption, UnitOption, data_files, data_source
from lessnoise.engines import engine_name
from lessnoise.errors import InvalidInput
from lessnoise.files import check_apart
from lessnoise.ledger import Ledger
from lessnoise.query import Histogram, Unit
from lessnoise.release import Payment
from lessnoise.tasks import HistogramFolder, plan_histogram


def histogram(
    data: Data,
    x: Annotated[str, typer.Option(help="Column of the first axis.")],
    bins: Annotated[str, typer.Option(help="Cells per axis, such as 89x89.", metavar="N[xN]")],
    bounds: Annotated[
        str, typer.Option(help="Public bounds per axis, such as -74.05:-73.75,40.6:40.9.", metavar="LOW:HIGH[,...]")
    ],
    epsilon: Epsilon,
    delta: Delta,
    out: Annotated[Path, typer.Option(help="Folder for the counts, the certificate and the picture.")],
    y: Annotated[str | None, typer.Option(help="Column of the second axis.")] = None,
    mechanism: MechanismOrBest = "best",
    neighbours: NeighboursOption = "add/remove",
    outside: Annotated[str, typer.Option(help="Rows outside the bounds: drop or clamp.")] = "drop",
    unit: UnitOption = None,
    max_rows: MaxRows = None,
    engine: EngineOption = None,
    table: TableOption = None,
    post: Annotated[
        list[str] | None,
        typer.Option(help="nonnegative, round, james-stein or soft-threshold; may be given several times."),
    ] = None,
    output_format: Annotated[
        list[str] | None, typer.Option("--format", help="parquet, csv or npy; may be given several times.")
    ] = None,
    force: Force = False,
    seed: UnsafeSeed = None,
    ledger: LedgerOption = None,
    partition: Partition = None,
    json: AsJson = False,
) -> None:
    """Count rows on a grid and release the counts; writes counts, certificate.json and counts.png, or nothing.

    Example: [bold]lessnoise histogram trips.parquet --x Lon --y Lat --bins 89x89 --bounds -74.05:-73.75,40.6:40.9
    --epsilon 0.5 --delta 1e-7 --out private[/bold]
    """
    rng = seeded(seed)
    folder = HistogramFolder(out, output_format or ["parquet"], force)
    source = data_source(data, table)
    for each in data_files(data):
        check_apart(folder.outputs, {"data": each})
    check_apart(folder.outputs, ledger_files(ledger))
    names = [x] if y is None else [x, y]
    query = Histogram.grid(names, bins=parse_shape(bins, "bins"), bounds=_bounds(bounds), outside=outside)
    protected = Unit(unit, max_rows)
    budget = None if ledger is None else Ledger.open(ledger)
    with orderly(), collected_warnings() as warned:
        plan = plan_histogram(query, epsilon, delta, mechanism, neighbours, protected, post or ())
        trial = folder.contents(plan.trial())  # a name that cannot be drawn or written shows here
        with progress_bar(quiet=json) as progress:
            answer = plan.answer(source, engine, progress)
        with folder.reserved(trial) as staged:
            result = plan.release(answer, engine_name(source, engine), rng=rng, ledger=budget, partition=partition)
            with Payment(budget, result.release.receipt, result.release) as payment:
                written = folder.write(folder.contents(result), staged, payment)
    receipt = result.release.receipt
    with reporting(f"{out} is {paid_words(receipt)}written"):
        if json:
            print_json({**result.to_dict(), "files": [str(path) for path in written]})
        else:
            console().print(f"wrote {literal(*written)}")
            print_release(result.certificate, receipt, budget, warned, protects=literal(result.unit))


def _bounds(text: str) -> tuple[tuple[float, float], ...]:
    """'-74.05:-73.75,40.6:40.9' -> ((-74.05, -73.75), (40.6, 40.9))."""
    try:
        pairs = tuple(tuple(float(end) for end in part.split(":")) for part in text.split(","))
    except ValueError:
        pairs = ()
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput(f"bounds={text!r} is not a list of intervals: write LOW:HIGH for each axis, with commas.")
    return tuple((low, high) for low, high in pairs)
