"""``lessnoise frontier``: how much loss can be saved, and how much cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lessnoise import files
from lessnoise.cli.options import AsJson, Force
from lessnoise.cli.output import console, new_table, print_json, progress_bar
from lessnoise.report import DIMENSIONS, EPSILONS, frontier_svg
from lessnoise.report import frontier as compute


def frontier(
    out: Annotated[Path | None, typer.Option(help="Where to write the picture (SVG).")] = None,
    delta: Annotated[float, typer.Option(help="Target delta.")] = 1e-6,
    epsilon: Annotated[list[float] | None, typer.Option(help="Target epsilon; may be given several times.")] = None,
    entries: Annotated[list[int] | None, typer.Option(help="Number of entries M; may be given several times.")] = None,
    bounds: Annotated[bool, typer.Option(help="Also prove a lower bound of the loss of any added noise.")] = True,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Compare the losses of the best mechanisms with the Gaussian's, for several dimensions and epsilons.

    Example: [bold]lessnoise frontier --epsilon 1 --entries 2 --entries 10 --entries 100 --out frontier.svg[/bold]
    """
    if out is not None:
        files.check_free([out], force)
    with progress_bar(json) as progress:
        points = compute(
            delta=delta,
            epsilons=epsilon or EPSILONS,
            dimensions=entries or DIMENSIONS,
            bounds=bounds,
            progress=progress,
        )
    if out is not None:
        picture = frontier_svg(points)
        files.write_together({out: lambda file: file.write(picture)}, force)
    if json:
        print_json({"delta": delta, "points": [point.to_dict() for point in points]})
        return
    numbers = ["epsilon", "M", "l2", "best radial", "least noise", "lower bound", "within"]
    table = new_table(f"Expected loss relative to the analytic Gaussian, delta = {delta:g}", [], numbers, ["law"])
    for point in points:
        table.add_row(
            f"{point.epsilon:g}",
            f"{point.dimension}",
            f"{point.l2:.4f}",
            "" if point.radial is None else f"{point.radial:.4f}",
            f"{point.least:.4f}",
            "" if point.bound is None else f"{point.bound:.4f}",
            "" if not point.bound else f"{point.least / point.bound - 1.0:.2%}",
            point.choice,
        )
    console().print(table)
    if out is not None:
        console().print(f"wrote {out}", soft_wrap=True, markup=False)
