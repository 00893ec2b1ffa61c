"""``lessnoise audit``: attacks on a mechanism, and what they prove against its claim."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.audit import audit as run_audit
from lessnoise.audit import percent
from lessnoise.cli.entry import EXIT_FAILED_CLAIM, collected_warnings
from lessnoise.cli.options import AsJson, MechanismName, seeded, takes_request
from lessnoise.cli.output import console, literal, new_table, print_json
from lessnoise.guarantees import Claim
from lessnoise.mechanism import Request, find_mechanism
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.audit import AuditReport


@takes_request()
def audit(
    mechanism: MechanismName,
    request: Request,
    samples: Annotated[int, typer.Option(help="Number of releases in all. More releases prove more.")] = 100_000,
    confidence: Annotated[float, typer.Option(help="Confidence of the bounds: they hold at least this often.")] = 0.999,
    attack: Annotated[
        list[str] | None,
        typer.Option(
            help="An attack: likelihood, nearest, ball, rounding or projection. May be given several times. "
            "Default: all that suit the mechanism."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed, so that the audit can be repeated. Default: a new one each time.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Number of threads. Default: one for each core.")] = None,
    json: AsJson = False,
) -> None:
    """Attack a mechanism many times, and say what the attacks prove about its claim.

    The attacks try to tell the releases of an array of zeros from those of its worst neighbour. What they prove is a
    lower bound of delta and epsilon. So an audit can refute a claim, but it never confirms one; lessnoise check does.
    The exit code is 0 if the claim is not refuted, 1 if it is refuted, and 2 if the input is wrong.

    Example: [bold]lessnoise audit r1smg-published --shape 100 --sensitivity 1 --epsilon 1e-3 --delta 1e-5[/bold]
    """
    import numpy as np

    rng = seeded(seed)
    with collected_warnings() as notes:
        built = find_mechanism(mechanism).build(request)
    report = run_audit(
        built,
        np.zeros(built.shape),
        attacks=attack or "all",
        samples=samples,
        confidence=confidence,
        rng=rng,
        workers=workers,
        progress=not json,
    )
    if json:
        print_json({**report.to_dict(), "description": built.to_dict(), "notes": notes})
    else:
        _print(report, notes)
    if report.refuted:
        raise typer.Exit(EXIT_FAILED_CLAIM)


def _print(report: AuditReport, notes: list[str]) -> None:
    claim = report.claim
    title = f"{literal(report.mechanism)}: {report.samples:,} releases, {report.trained:,} of them for training"
    bounds = (f"{name}({up(at)}) ≥" for name, at in (("delta", claim.epsilon), ("epsilon", claim.delta)))
    table = new_table(title, ["attack"], [name for bound in bounds for name in (bound, "right", "wrong")])
    for one in report.attacks:
        delta, epsilon = one.delta, one.epsilon
        table.add_row(
            one.name,
            _bold(down(delta.bound, 3), one.name == report.delta_attack),
            f"{delta.right:,}",
            f"{delta.wrong:,}",
            _bold(down(epsilon.bound, 3), one.name == report.epsilon_attack),
            f"{epsilon.right:,}",
            f"{epsilon.wrong:,}",
        )
    out = console()
    out.print(table)
    source = f"  ({literal(claim.source)})" if isinstance(claim, Claim) and claim.source else ""
    out.print(f"claimed ({up(claim.epsilon)}, {up(claim.delta)}){source}")
    out.print(
        f"with {percent(report.confidence)} confidence delta >= {down(report.delta, 3)}, by the {report.delta_attack} "
        f"attack; and epsilon >= {down(report.epsilon, 3)} at the claimed delta, by the {report.epsilon_attack} attack"
    )
    word = (
        "[bold red]refuted[/]"
        if report.refuted
        else "[bold]not refuted[/]. This is no proof that it holds: see lessnoise check"
    )
    out.print(f"verdict: the claim is {word}")
    for name, reason in report.skipped:
        out.print(f"not run: {name}, because {literal(reason)}")
    for note in notes:
        out.print(f"note: {literal(note)}")


def _bold(text: str, chosen: bool) -> str:
    return f"[bold]{text}[/]" if chosen else text
