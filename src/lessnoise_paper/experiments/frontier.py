"""Ours: how much noise can be saved at equal exact privacy, and what nobody can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.report import DIMENSIONS, EPSILONS, frontier, frontier_svg
from lessnoise_paper.model import Experiment, Result, Settings

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress


def run(
    folder: str | None,
    progress: Progress | None,
    *,
    delta: float,
    epsilons: list[float],
    dimensions: list[int],
    radial: bool,
) -> Result:
    """The frontier with its proved bounds."""
    points = frontier(delta=delta, epsilons=epsilons, dimensions=dimensions, radial=radial, progress=progress)
    numbers = {"delta": delta, "points": [point.to_dict() for point in points]}
    return Result(numbers, {"frontier.svg": frontier_svg(points)})


def _parameters(settings: Settings) -> Numbers:
    return {
        "delta": 1e-6,
        "epsilons": [1.0, 8.0] if settings.quick else list(EPSILONS),
        "dimensions": [1, 2, 3, 5, 10, 30, 100, 1000] if settings.quick else list(DIMENSIONS),
        "radial": not settings.quick,
    }


EXPERIMENT = Experiment("frontier", _parameters, run)
