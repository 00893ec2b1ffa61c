"""``lessnoise claims``: the record of published claims against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.claims import CASES, at_setting, evaluate
from lessnoise.cli.options import AsJson, takes_request
from lessnoise.cli.output import console, new_table, print_json
from lessnoise.mechanism import Request
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.claims import Finding


@takes_request(optional=True)
def claims(request: Request | None, json: AsJson = False) -> None:
    """Show what published sources claim of their mechanisms, and what is true.

    Without options each claim is shown at a setting of its own source. With --shape, --sensitivity, --epsilon and
    --delta every claim is shown at that setting.

    Example: [bold]lessnoise claims[/bold]
    """
    findings = evaluate(CASES) if request is None else at_setting(request)
    if json:
        print_json([finding.to_dict() for finding in findings])
    else:
        _print_table(findings)


def _print_table(findings: list[Finding]) -> None:
    columns = ["mechanism", "setting", "claimed (epsilon, delta)", "exact delta", "verdict"]
    table = new_table("Claims and the truth", columns, ["noise / needed"], ["source"])
    for finding in findings:
        verdict, claimed, exact = finding.verdict, finding.claimed, finding.exact
        word = "[green]holds[/green]" if verdict.holds else "[red]fails[/red]" if verdict.refuted else "not proved"
        low, high = down(exact.lower, 4), up(exact.upper, 4)
        close = exact.relative_width < 1e-3
        table.add_row(
            finding.name,
            finding.setting + (f" ({finding.remark})" if finding.remark else ""),
            f"({claimed.epsilon:.4g}, {claimed.delta:.4g})",
            f"≤ {high}" if verdict.holds else f"≥ {low}" if close else f"{low} to {high}",
            word,
            "" if finding.noise_ratio is None else f"{finding.noise_ratio:.3g}",
            claimed.source,
        )
    out = console()
    out.print(table)
    out.print(
        "noise / needed: the published noise divided by the least noise of the same kind that keeps the claim. Above 1 "
        "the source adds more noise than it must, below 1 it adds too little."
    )
