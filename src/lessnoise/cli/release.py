"""``lessnoise release``: a noisy array and its certificate, both or neither."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli.entry import orderly, paid_words, reporting
from lessnoise.cli.options import (
    AsJson,
    Bound,
    Counts,
    Delta,
    EntryBound,
    Epsilon,
    Force,
    K,
    L1Sensitivity,
    LedgerOption,
    MechanismOrBest,
    NeighboursOption,
    Objective,
    P,
    Partition,
    Sensitivity,
    UnsafeSeed,
    ledger_files,
    request_of,
    seeded,
)
from lessnoise.cli.output import console, print_json
from lessnoise.cli.progress import progress_bar
from lessnoise.cli.terminal import literal
from lessnoise.errors import ClaimWarning
from lessnoise.files import check_apart
from lessnoise.ledger import Ledger
from lessnoise.mechanism import choose_mechanism
from lessnoise.release import certificate_path, check_writable, open_array, release_file
from lessnoise.text import down

if TYPE_CHECKING:
    from lessnoise.ledger import Ledger, Receipt
    from lessnoise.release import Certificate


def release(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="IN.npy", help="Array to release.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT.npy", help="Where to write the noisy array.")],
    sensitivity: Sensitivity,
    epsilon: Epsilon,
    delta: Delta,
    mechanism: MechanismOrBest = "best",
    l1_sensitivity: L1Sensitivity = None,
    neighbours: NeighboursOption = "add/remove",
    k: K = None,
    p: P = None,
    bound: Bound = None,
    entry_bound: EntryBound = None,
    objective: Objective = "squared",
    ledger: LedgerOption = None,
    partition: Partition = None,
    counts: Counts = False,
    seed: UnsafeSeed = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Add noise to an array and write OUT.npy with OUT.npy.certificate.json beside it.

    Example: [bold]lessnoise release counts.npy noisy.npy --sensitivity 1 --epsilon 0.5 --delta 1e-7[/bold]
    """
    rng = seeded(seed)
    check_writable(target, force)
    check_apart((target, certificate_path(target)), {"input": source, **ledger_files(ledger)})
    budget = None if ledger is None else Ledger.open(ledger)
    with (
        open_array(source) as array,
        orderly(),
        warnings.catch_warnings(record=True) as caught,
        progress_bar(quiet=json) as progress,
    ):
        warnings.simplefilter("always", ClaimWarning)
        request = request_of(context.params, shape=array.shape, integer=array.dtype.kind in "iu")
        built = choose_mechanism(mechanism, request)
        certificate, receipt = release_file(
            built, array, target, force=force, rng=rng, ledger=budget, partition=partition, progress=progress
        )
    with reporting(f"{target} and its certificate are {paid_words(receipt)}written"):
        words = [str(warning.message) for warning in caught]
        _report(certificate, receipt, target, budget, words, json)


def _report(
    certificate: Certificate,
    receipt: Receipt | None,
    target: Path,
    budget: Ledger | None,
    warned: list[str],
    json: bool,
) -> None:
    built = certificate.mechanism
    if json:
        print_json(certificate.to_dict())
        return

    out = console()
    out.print(f"wrote {literal(target)} and its certificate")
    chosen = "" if built.design is None else f" ({built.design.choice})"
    noise = "" if built.law.data_dependent else f", noise sd per entry {built.standard_deviation:.5g}"
    out.print(f"mechanism  {built.name}{chosen}{noise}")
    out.print(f"guarantee  {certificate.guarantee} (computed, delta rounded up)")
    if certificate.grid is not None:
        out.print(f"grid       {certificate.grid:g}, of which every output is a multiple")
    if built.design is not None and built.design.note:
        out.print(f"note       {built.design.note}")
    if receipt is not None and budget is not None:
        if built.design is not None and built.design.choice != "Gaussian":
            out.print(
                "note       least-noise is the least for one release; over a long series analytic-gaussian costs less"
            )
        out.print(f"ledger     record {receipt.id}; {down(budget.remaining(), 4)} of epsilon left, at the least")
    if not certificate.private:
        out.print("[red]not private[/red]: the noise came from a seeded generator")
    for words in warned:
        out.print(f"[red]warning[/red]    {literal(words)}")
