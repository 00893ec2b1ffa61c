"""``lessnoise release``: a noisy array and its certificate, both or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.changes import counts
from lessnoise.cli.entry import collected_warnings, orderly, paid_words, reporting
from lessnoise.cli.options import (
    AsJson,
    Force,
    FromPlan,
    LedgerOption,
    MechanismOrBest,
    Partition,
    SignWith,
    UnsafeSeed,
    ledger_files,
    planned_noise,
    seeded,
    signer_of,
    takes_request,
)
from lessnoise.cli.output import console, left_words, literal, print_facts, print_json, progress_bar
from lessnoise.errors import InvalidInput
from lessnoise.files import check_apart, check_free, write_together, writer
from lessnoise.harmless import shown
from lessnoise.ledger import Ledger
from lessnoise.mechanism import BEST, Request, changes_words, choose_mechanism, least_noise
from lessnoise.release import certificate_path, check_writable, open_array, release_file

if TYPE_CHECKING:
    from lessnoise.ledger import Receipt
    from lessnoise.mechanism import Mechanism
    from lessnoise.release import Certificate


@takes_request("shape", "integer", optional=True)
def release(
    source: Annotated[Path, typer.Argument(metavar="IN.npy", help="Array to release.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT.npy", help="Where to write the noisy array.")],
    request: Callable[..., Request] | None,
    mechanism: MechanismOrBest = "best",
    ledger: LedgerOption = None,
    plan: FromPlan = None,
    partition: Partition = None,
    seed: UnsafeSeed = None,
    bound_proof: Annotated[
        bool,
        typer.Option(
            "--bound-proof",
            help="Also write OUT.npy.bound.json: a proved lower bound of the loss of any added noise.",
        ),
    ] = False,
    force: Force = False,
    sign: SignWith = None,
    json: AsJson = False,
) -> None:
    """Add noise to an array and write OUT.npy, with OUT.npy.certificate.json beside it.

    The certificate says which noise was added and what it guarantees. Both files are written, or none.

    Example: [bold]lessnoise release counts.npy noisy.npy --sensitivity 1 --epsilon 0.5 --delta 1e-7[/bold]

    With --plan the noise is the planned one, and nothing about it needs to be said.
    """
    rng, signer = seeded(seed), signer_of(sign)
    proof = target.with_name(target.name + ".bound.json")
    check_writable(target, force)
    check_free((proof,) if bound_proof else (), force)
    check_apart((target, certificate_path(target)), {"input": source, **ledger_files(ledger)})
    if plan is not None and ledger is None:
        raise InvalidInput(f"plan={shown(plan)} needs a ledger that holds it: pass --ledger.")
    if request is None and plan is None:
        raise InvalidInput(
            "epsilon=None: pass --epsilon, --delta and --sensitivity (or --changes), or --ledger and --plan for the "
            "noise of a plan."
        )
    budget = None if ledger is None else Ledger.open(ledger)
    if budget is not None and plan is not None:
        budget = budget.plan(plan)
    with (
        open_array(source) as array,
        orderly(),
        collected_warnings() as warned,
        progress_bar(quiet=json) as progress,
    ):
        whole = array.dtype.kind in "iu"
        if request is not None:
            built = choose_mechanism(mechanism, request(shape=array.shape, integer=whole))
        else:
            assert budget is not None
            assert plan is not None
            built = planned_noise(budget, plan, array.shape)
        text = (dumps(built.bound_proof(), indent=2) + "\n").encode() if bound_proof else b""
        certificate, receipt = release_file(
            built,
            array,
            target,
            force=force,
            rng=rng,
            signer=signer,
            ledger=budget,
            partition=partition,
            progress=progress,
        )
    if bound_proof:
        with reporting(f"{target} and its certificate are {paid_words(receipt)}written"):
            write_together({proof: writer(text)}, force)
    with reporting(f"{target} and its certificate are {paid_words(receipt)}written"):
        if json:
            print_json(certificate.to_dict())
        else:
            console().print(f"wrote {literal(target)} and its certificate")
            print_release(certificate, receipt, budget, warned)
            if request is not None and mechanism == BEST and whole and built.changes is None:
                print_facts([("hint", _counts_hint(built))])


def _counts_hint(built: Mechanism) -> str:
    """What whole numbers would lose less with, if they are counts."""
    assert built.claim is not None
    better = least_noise(
        epsilon=built.claim.epsilon,
        delta=max(built.claim.delta, 1e-12),
        shape=built.shape,
        changes=counts(neighbours=built.neighbours),
    )
    return (
        f"the array holds whole numbers. If they are counts, and one row changes one of them by 1, then --changes "
        f"counts needs noise of sd {better.standard_deviation:.4g} instead of {built.standard_deviation:.4g}"
    )


def print_release(
    certificate: Certificate, receipt: Receipt | None, budget: Ledger | None, warned: list[str], protects: str = ""
) -> None:
    """What was released, to people: noise, guarantee, cost, warnings; of counts also whom it ``protects``."""
    print_facts(_facts(certificate, receipt, budget, protects))
    if not certificate.private:
        console().print("[red]not private[/red]: the noise came from a seed, so anyone who has the seed can remove it")
    if warned:
        print_facts(("[red]warning[/red]  ", literal(words)) for words in warned)


def _facts(
    certificate: Certificate, receipt: Receipt | None, budget: Ledger | None, protects: str
) -> Iterator[tuple[str, str]]:
    built = certificate.mechanism
    part, design = ("cell", None) if protects else ("entry", built.design)
    chosen = "" if design is None else f" ({design.choice})"
    noise = "" if built.law.data_dependent else f", noise sd per {part} {built.standard_deviation:.5g}"
    yield "mechanism", f"{built.name}{chosen}{noise}"
    if not protects:
        yield "hides", f"changes of {changes_words(built)}"
    yield "guarantee", f"{certificate.guarantee} (computed, delta rounded up){protects and f', protects {protects}'}"
    if certificate.grid is not None and not protects:
        yield "grid", f"every number of the output is a multiple of {certificate.grid:g}"
    if design is not None and design.note:
        yield "note", design.note
    if receipt is not None and budget is not None:
        if design is not None and design.choice != "Gaussian":
            yield (
                "note",
                "least-noise is the least for one release; for a long series of releases analytic-gaussian costs less",
            )
        yield "ledger", f"record {receipt.id}; {left_words(budget.remaining())}"
