"""``lessnoise histogram``: private counts from a file, with a certificate and a picture."""

from __future__ import annotations

import glob
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.entry import orderly, paid_words, reporting
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
from lessnoise.cli.output import console, print_json
from lessnoise.cli.progress import progress_bar
from lessnoise.cli.terminal import literal
from lessnoise.engines import Postgres, engine_name
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.files import check_apart
from lessnoise.ledger import Ledger
from lessnoise.query import Histogram, Unit
from lessnoise.release import Payment
from lessnoise.tasks import (
    check_histogram_folder,
    histogram_contents,
    histogram_file_names,
    plan_histogram,
    reserve_histogram,
    write_histogram,
)
from lessnoise.text import down

if TYPE_CHECKING:
    from lessnoise.ledger import Ledger
    from lessnoise.tasks import HistogramRelease


def histogram(
    data: Annotated[str, typer.Argument(metavar="DATA", help="Parquet, CSV or .csv.gz file; or postgresql://...")],
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
    unit: Annotated[str | None, typer.Option(help="Protect users: the column with their ids.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="Rows used of each user, chosen at random.")] = None,
    engine: Annotated[str | None, typer.Option(help="duckdb, spark or dask. [default: duckdb]")] = None,
    table: Annotated[str | None, typer.Option(help="Table, if DATA is a PostgreSQL address.")] = None,
    post: Annotated[
        list[str] | None,
        typer.Option(help="nonnegative, round, james-stein or soft-threshold; may be given several times."),
    ] = None,
    output_format: Annotated[
        list[str] | None, typer.Option("--format", help="parquet, csv or npy; may be given several times.")
    ] = None,
    ledger: LedgerOption = None,
    partition: Partition = None,
    seed: UnsafeSeed = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Count rows on a grid and release the counts; writes counts, certificate.json and counts.png, or nothing.

    Example: [bold]lessnoise histogram trips.parquet --x Lon --y Lat --bins 89x89 --bounds -74.05:-73.75,40.6:40.9
    --epsilon 0.5 --delta 1e-7 --out private[/bold]
    """
    rng = seeded(seed)
    formats = output_format or ["parquet"]
    check_histogram_folder(out, formats, force)
    source = _source(data, table)
    outputs = [out / name for name in histogram_file_names(formats)]
    for each in _files(data):
        check_apart(outputs, {"data": each})
    check_apart(outputs, ledger_files(ledger))
    names = [x] if y is None else [x, y]
    query = Histogram.grid(names, bins=_bins(bins), bounds=_bounds(bounds), outside=outside)
    protected = Unit(unit, max_rows)
    budget = None if ledger is None else Ledger.open(ledger)
    with orderly(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ClaimWarning)
        plan = plan_histogram(query, epsilon, delta, mechanism, neighbours, protected, post or ())
        trial = histogram_contents(plan.trial(), formats)  # a name that cannot be drawn or written shows here
        with progress_bar(quiet=json) as progress:
            answer = plan.answer(source, engine, progress)
        with reserve_histogram(trial, out, force) as staged:
            result = plan.release(answer, engine_name(source, engine), rng=rng, ledger=budget, partition=partition)
            with Payment(budget, result.release.receipt, result.release) as payment:
                written = write_histogram(histogram_contents(result, formats), out, staged, payment)
    with reporting(f"{out} is {paid_words(result.release.receipt)}written"):
        _report(result, written, budget, [str(warning.message) for warning in caught], json)


def _report(
    result: HistogramRelease, written: list[Path], budget: Ledger | None, warned: list[str], json: bool
) -> None:

    certificate = result.certificate
    if json:
        print_json({**result.to_dict(), "files": [str(path) for path in written]})
        return

    show = console()
    show.print(f"wrote {literal(*written)}")
    built = certificate.mechanism
    noise = "" if built.law.data_dependent else f", noise sd per cell {built.standard_deviation:.5g}"
    show.print(f"mechanism  {built.name}{noise}")
    show.print(f"guarantee  {certificate.guarantee} (computed, delta rounded up), protects {literal(result.unit)}")
    if result.release.receipt is not None and budget is not None:
        show.print(f"ledger     record {result.release.receipt.id}; {down(budget.remaining(), 4)} of epsilon left")
    if not certificate.private:
        show.print("[red]not private[/red]: the noise came from a seeded generator")
    for words in warned:
        show.print(f"[red]warning[/red]    {literal(words)}")


def _source(data: str, table: str | None) -> object:
    if data.startswith(("postgresql://", "postgres://")):
        if table is None:
            raise InvalidInput("table=None, but DATA is a PostgreSQL address: name the table with --table.")
        return Postgres(data, table=table)
    if table is not None:
        raise InvalidInput(f"table={table!r} is for PostgreSQL addresses only: leave it out.")
    return Path(data)


def _files(data: str) -> list[Path]:
    """The files that are read, which no output may replace."""
    return [Path(data), *map(Path, glob.glob(data, recursive=True))]


def _bins(text: str) -> tuple[int, ...]:
    return parse_shape(text, "bins")


def _bounds(text: str) -> tuple[tuple[float, float], ...]:
    """'-74.05:-73.75,40.6:40.9' -> ((-74.05, -73.75), (40.6, 40.9))."""
    try:
        pairs = tuple(tuple(float(end) for end in part.split(":")) for part in text.split(","))
    except ValueError:
        pairs = ()
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput(f"bounds={text!r} is not a list of intervals: write LOW:HIGH for each axis, with commas.")
    return tuple((low, high) for low, high in pairs)
