"""``lessnoise demo``: all mechanisms on an embedded count query, as a table and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lessnoise.cli import AsJson, Force, console
from lessnoise.text import up
from lessnoise_paper.commands.page import print_table, verdict_mark, write_page
from lessnoise_paper.experiments.demo import OWN_PAGE
from lessnoise_paper.model import Settings
from lessnoise_paper.registry import DEMO
from lessnoise_paper.sections.wording import verdict_of

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its numbers.")] = Path("lessnoise-demo"),
    epsilon: Annotated[float, typer.Option(help="Epsilon of the guarantee.")] = 0.5,
    delta: Annotated[float, typer.Option(help="Delta of the guarantee.")] = 1e-7,
    seed: Annotated[int, typer.Option(help="Seed of the example's noise.")] = 0,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Compare all mechanisms on the pickup counts of a made-up city, and write one page about it.

    A page that an earlier run left in the folder is replaced. Any other file is replaced only with --force.

    Example: [bold]lessnoise demo --epsilon 1 --out my-demo[/bold]
    """
    options = {"epsilon": epsilon, "delta": delta, "seed": seed, **OWN_PAGE}
    settings = Settings(options={"demo": options})
    write_page(DEMO, settings, out, _print_table, force=force, json_only=json, pictures=False)


def _print_table(numbers: Numbers) -> None:
    target = numbers["target"]
    rows = []
    for row in numbers["rows"]:
        verdict = verdict_of(row)
        rows.append(
            [
                row["label"],
                *(f"{row[name]:.5g}" for name in ("standard_deviation", "expected_loss", "observed_loss")),
                up(verdict.exact.upper, 4),
                f"{verdict_mark('holds' if verdict.holds else 'fails')}: "
                f"({verdict.claimed.epsilon:g}, {verdict.claimed.delta:g})",
            ]
        )
    title = (
        f"{numbers['pickups']:,} synthetic pickups on 89 x 89 cells, target ({target['epsilon']:g}, "
        f"{target['delta']:g})-DP under {target['neighbours']}"
    )
    middle = ("noise sd per cell", "expected loss", "loss of this release", "exact delta ≤")
    print_table(title, ["mechanism", *middle, "claim"], rows)
    console().print(
        "The exact delta is that at the claimed epsilon of the row. These releases are seeded, so they are not private."
    )
