"""``lessnoise check``: one claim against the exact curve."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import typer

from lessnoise import validation
from lessnoise.cli.entry import EXIT_FAILED_CLAIM
from lessnoise.cli.options import (
    AsJson,
    Bound,
    Calibration,
    Counts,
    Delta,
    EntryBound,
    Epsilon,
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
from lessnoise.errors import ClaimWarning
from lessnoise.mechanism import CATALOGUE, find_mechanism

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism, Request


def check(
    context: typer.Context,
    mechanism: MechanismName,
    shape: Shape,
    sensitivity: Sensitivity,
    epsilon: Epsilon,
    delta: Delta,
    calibration: Calibration = "published",
    l1_sensitivity: L1Sensitivity = None,
    neighbours: NeighboursOption = "add/remove",
    k: K = None,
    p: P = None,
    bound: Bound = None,
    entry_bound: EntryBound = None,
    objective: Objective = "squared",
    integer: Integer = False,
    counts: Counts = False,
    json: AsJson = False,
) -> None:
    """Check what a source claims of a mechanism. Exit code 0: the claim holds; 1: it fails; 2: bad input.

    Example: [bold]lessnoise check r1smg --shape 7921 --sensitivity 1.41421356 --epsilon 1e-5 --delta 1e-7[/bold]
    """
    request = request_of(context.params)
    built, notes = build(mechanism, calibration, request)
    verdict = built.check()
    exact_epsilon = built.epsilon(verdict.claimed.delta)
    if json:
        print_json(
            {
                **verdict.to_dict(),
                "mechanism": built.to_dict(),
                "exact_epsilon": exact_epsilon.to_dict(),
                "expected_loss": None if built.law.data_dependent else built.expected_loss,
                "notes": notes,
            }
        )
    else:
        out = console()
        source = built.claim.source if built.claim is not None else ""
        out.print(f"mechanism      {built.name}, shape {shape}, sensitivity {sensitivity:g}")
        out.print(f"claim          {verdict.claimed}  ({source})")
        out.print(f"exact delta    {verdict.exact} at epsilon = {verdict.claimed.epsilon:g}")
        out.print(f"exact epsilon  {exact_epsilon} at delta = {verdict.claimed.delta:g}")
        word = "holds" if verdict.holds else "FAILS" if verdict.refuted else "is not proved"
        out.print(f"verdict        the claim [bold {'green' if verdict.holds else 'red'}]{word}[/]")
        for note in notes:
            out.print(f"note           {note}")
    if not verdict.holds:
        raise typer.Exit(EXIT_FAILED_CLAIM)


def build(mechanism: str, calibration: str, request: Request) -> tuple[Mechanism, list[str]]:
    """The named mechanism of the catalogue, and what its builder warns of."""
    validation.choice("calibration", calibration, ("published", "exact"))
    published = f"{mechanism}-published"
    entry = find_mechanism(published if calibration == "published" and published in CATALOGUE else mechanism)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ClaimWarning)
        built = entry.build(request)
    return built, [str(warning.message) for warning in caught if issubclass(warning.category, ClaimWarning)]
