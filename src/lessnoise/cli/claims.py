"""``lessnoise claims``: the record of published claims against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.claims import CASES, at_setting, evaluate
from lessnoise.cli.options import (
    AsJson,
    L1Sensitivity,
    NeighboursOption,
    parse_shape,
)
from lessnoise.cli.output import console, print_json
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import Request
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.claims import Finding


def claims(
    shape: Annotated[str | None, typer.Option(help="Judge every claim at this shape instead of the record's.")] = None,
    sensitivity: Annotated[float | None, typer.Option(help="With --shape: the l2 sensitivity.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="With --shape: the epsilon.")] = None,
    delta: Annotated[float | None, typer.Option(help="With --shape: the delta.")] = None,
    l1_sensitivity: L1Sensitivity = None,
    neighbours: NeighboursOption = "add/remove",
    json: AsJson = False,
) -> None:
    """Show what sources claim of their mechanisms, and what is true.

    Without options: the record, each claim at a setting of its source. With --shape, --sensitivity, --epsilon
    and --delta: every claim at that setting.

    Example: [bold]lessnoise claims[/bold]
    """
    given = {"shape": shape, "sensitivity": sensitivity, "epsilon": epsilon, "delta": delta}
    if all(value is None for value in given.values()):
        findings = evaluate(CASES)
    elif shape is None or sensitivity is None or epsilon is None or delta is None:
        missing = next(name for name, value in given.items() if value is None)
        raise InvalidInput(f"{missing}=None: pass all of --shape, --sensitivity, --epsilon and --delta, or none.")
    else:
        relation = Neighbours.of(neighbours)
        findings = at_setting(Request(epsilon, delta, sensitivity, parse_shape(shape), relation, l1_sensitivity))
    if json:
        print_json([finding.to_dict() for finding in findings])
    else:
        _print_table(findings)


def _print_table(findings: list[Finding]) -> None:
    from rich.table import Table

    table = Table(title="Claims and the truth")
    for title in (
        "mechanism",
        "setting",
        "claimed (epsilon, delta)",
        "exact delta",
        "verdict",
        "noise / needed",
        "source",
    ):
        table.add_column(title, justify="right" if title == "noise / needed" else "left")
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
        "noise / needed: the published noise over the least noise of the same law that keeps the claim; "
        "above 1 is more than needed, below 1 is short of it."
    )
