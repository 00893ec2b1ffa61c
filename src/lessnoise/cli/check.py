"""``lessnoise check``: one claim against the exact curve."""

from __future__ import annotations

import typer

from lessnoise.cli.entry import EXIT_FAILED_CLAIM, collected_warnings
from lessnoise.cli.options import AsJson, MechanismName, takes_request
from lessnoise.cli.output import print_facts, print_json
from lessnoise.mechanism import Request, find_mechanism


@takes_request()
def check(mechanism: MechanismName, request: Request, json: AsJson = False) -> None:
    """Compare what a source claims of a mechanism (its epsilon and delta) with the exact privacy.

    The exit code is 0 if the claim holds, 1 if it fails, and 2 if the input is wrong.

    Example: [bold]lessnoise check r1smg-published --shape 7921 --sensitivity 1.41421356 --epsilon 1e-5
    --delta 1e-7[/bold]
    """
    with collected_warnings() as notes:
        built = find_mechanism(mechanism).build(request)
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
        source = built.claim.source if built.claim is not None else ""
        shape = "x".join(map(str, request.shape))
        change = f"sensitivity {request.sensitivity:g}" if request.changes is None else f"changes: {request.changes}"
        word = "holds" if verdict.holds else "FAILS" if verdict.refuted else "is not proved"
        print_facts(
            [
                ("mechanism", f"{built.name}, shape {shape}, {change}"),
                ("claim", f"{verdict.claimed}  ({source})"),
                ("exact delta", f"{verdict.exact} at epsilon = {verdict.claimed.epsilon:g}"),
                ("exact epsilon", f"{exact_epsilon} at delta = {verdict.claimed.delta:g}"),
                ("verdict", f"the claim [bold {'green' if verdict.holds else 'red'}]{word}[/]"),
                *(("note", note) for note in notes),
            ]
        )
    if not verdict.holds:
        raise typer.Exit(EXIT_FAILED_CLAIM)
