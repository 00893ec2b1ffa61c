"""Ours: how much noise can be saved at equal exact privacy, and what nobody can beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lessnoise.report import frontier as frontier_module
from lessnoise_paper.model import Experiment, Result, Settings

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress


def run(folder: str | None, progress: Progress | None, *, delta: float, **options: Any) -> Result:  # noqa: ANN401
    """The frontier with its proved bounds."""
    points = frontier_module.frontier(delta=delta, **options, progress=progress)
    numbers = {"delta": delta, "points": [point.to_dict() for point in points]}
    return Result(numbers, {"frontier.svg": frontier_module.frontier_svg(points)})


def _parameters(settings: Settings) -> Numbers:
    return {
        "delta": 1e-6,
        "epsilons": [1.0, 8.0] if settings.quick else list(frontier_module.EPSILONS),
        "dimensions": [1, 2, 3, 5, 10, 30, 100, 1000] if settings.quick else list(frontier_module.DIMENSIONS),
        "radial": not settings.quick,
    }


EXPERIMENT = Experiment("frontier", _parameters, run)
