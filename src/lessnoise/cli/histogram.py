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
    SignWith,
    UnsafeSeed,
    ledger_files,
    parse_keys,
    parse_shape,
    seeded,
    signer_of,
)
from lessnoise.cli.output import console, literal, print_json, progress_bar
from lessnoise.cli.release import print_release
from lessnoise.cli.sources import Data, EngineOption, MaxRows, TableOption, UnitOption, data_files, data_source
from lessnoise.engines import engine_name
from lessnoise.errors import InvalidInput
from lessnoise.files import check_apart
from lessnoise.harmless import shown
from lessnoise.ledger import Ledger
from lessnoise.query import Axis, Histogram, Unit
from lessnoise.release import Payment
from lessnoise.tasks import HistogramFolder, plan_histogram


def histogram(
    data: Data,
    x: Annotated[str, typer.Option(help="Column of the first axis.")],
    epsilon: Epsilon,
    delta: Delta,
    out: Annotated[Path, typer.Option(help="Folder for the counts, the certificate and the picture.")],
    y: Annotated[str | None, typer.Option(help="Column of the second axis.")] = None,
    bins: Annotated[
        str | None, typer.Option(help="Number of cells for each axis of numbers, such as 89x89.", metavar="N[xN]")
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            help="Public bounds for each axis of numbers, such as -74.05:-73.75,40.6:40.9.", metavar="LOW:HIGH[,...]"
        ),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            help="Public keys (the categories) of a column of --x or --y, such as kind=bus,taxi. Whole numbers are "
            "taken as numbers unless they stand in double quotes.",
            metavar="COLUMN=KEY[,...]",
        ),
    ] = None,
    mechanism: MechanismOrBest = "best",
    neighbours: NeighboursOption = "add/remove",
    outside: Annotated[
        str, typer.Option(help="What happens to rows outside the bounds: drop, or clamp to the nearest cell.")
    ] = "drop",
    unit: UnitOption = None,
    max_rows: MaxRows = None,
    engine: EngineOption = None,
    table: TableOption = None,
    post: Annotated[
        list[str] | None,
        typer.Option(
            help="Post-processing, which costs no privacy: nonnegative, round, james-stein or soft-threshold. May be "
            "given several times."
        ),
    ] = None,
    output_format: Annotated[
        list[str] | None,
        typer.Option("--format", help="parquet, csv or npy. May be given several times. Default: parquet."),
    ] = None,
    force: Force = False,
    sign: SignWith = None,
    seed: UnsafeSeed = None,
    ledger: LedgerOption = None,
    partition: Partition = None,
    json: AsJson = False,
) -> None:
    """Count rows on a grid and release the counts with noise.

    The folder gets the counts, certificate.json and counts.png: all of them, or nothing if something fails.

    Example: [bold]lessnoise histogram trips.parquet --x Lon --y Lat --bins 89x89 --bounds -74.05:-73.75,40.6:40.9
    --epsilon 0.5 --delta 1e-7 --out trips-map[/bold]

    Example with categories: [bold]lessnoise histogram trips.parquet --x kind --keys kind=bus,taxi --y Lat --bins 89
    --bounds 40.6:40.9 --epsilon 0.5 --delta 1e-7 --out trips-by-kind[/bold]
    """
    rng = seeded(seed)
    folder = HistogramFolder(out, output_format or ["parquet"], force, signer_of(sign))
    source = data_source(data, table)
    for each in data_files(data):
        check_apart(folder.outputs, {"data": each})
    check_apart(folder.outputs, ledger_files(ledger))
    query = Histogram(_axes([x] if y is None else [x, y], bins, bounds, keys or [], outside))
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


def _axes(names: list[str], bins: str | None, bounds: str | None, keys: list[str], outside: str) -> tuple[Axis, ...]:
    """Axes of categories where keys are given, and axes of numbers elsewhere, in the order of the columns."""
    listed: dict[str, tuple[str, ...] | tuple[int, ...]] = {}
    for text in keys:
        column = max((name for name in names if text.startswith(f"{name}=")), key=len, default=None)
        if column is None or column in listed:
            raise InvalidInput(
                f"keys={shown(text)} is not for --x or --y, or comes twice: write COLUMN=KEY,KEY once for each, such "
                f"as {names[0]}=bus,taxi."
            )
        listed[column] = parse_keys(text[len(column) + 1 :])
    numbers = [name for name in names if name not in listed]
    if not numbers:
        if bins is not None or bounds is not None or outside != "drop":
            raise InvalidInput(
                "--bins, --bounds and --outside are for columns of numbers, and all have keys: omit them."
            )
        return tuple(Axis(name, keys=listed[name]) for name in names)
    if bins is None or bounds is None:
        raise InvalidInput(
            f"column={shown(numbers[0])} has no cells: pass --bins and --bounds for numbers, or --keys for categories."
        )
    grid = Histogram.grid(numbers, bins=parse_shape(bins, "bins"), bounds=_bounds(bounds), outside=outside)
    even = dict(zip(numbers, grid.axes, strict=True))
    return tuple(even[name] if name in even else Axis(name, keys=listed[name]) for name in names)


def _bounds(text: str) -> tuple[tuple[float, float], ...]:
    """'-74.05:-73.75,40.6:40.9' -> ((-74.05, -73.75), (40.6, 40.9))."""
    try:
        pairs = tuple(tuple(float(end) for end in part.split(":")) for part in text.split(","))
    except ValueError:
        pairs = ()
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput(f"bounds={text!r} is not a list of intervals: write LOW:HIGH for each axis, with commas.")
    return tuple((low, high) for low, high in pairs)
