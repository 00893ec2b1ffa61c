"""Case study III: training networks. Full runs take a GPU, so their results come with the library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.model import Made, Settings, Work, tick

if TYPE_CHECKING:
    from typing import Any

    from lessnoise_paper.model import Numbers, Progress


def make(folder: str | None, progress: Progress | None, *, seed: int, samples: int) -> Made:
    """The stored curves with the exact privacy of every line, and an attack on one step."""
    from lessnoise.report.canvas import svg
    from lessnoise_paper.studies.learning import results, settings
    from lessnoise_paper.studies.learning.membership import demonstration
    from lessnoise_paper.studies.learning.pictures import figures

    tick(progress, "attack on one step", 0, 2)
    attacked = demonstration(samples=samples, seed=seed) if samples else []
    tick(progress, "stored results", 1, 2)
    pictures = {f"learning-{name}.svg": svg(figure) for name, figure in figures(found=attacked).items()}
    numbers = {
        "rows": [row.to_dict() for row in results.table()],
        "names": results.NAMES,
        "plans": {name: _plan(plan) for name, plan in settings.stored_plans().items()},
        "membership": [found.to_dict() for found in attacked],
        "checkpoints": results.checkpoints(),
        "cases": {
            name: {"records": c.records, "parameters": c.parameters, "epochs": c.epochs, "batch": c.batch}
            for name, c in settings.CASES.items()
        },
        "runs": {name: _origin(results.read(name)) for name in settings.CASES},
    }
    return Made(numbers, pictures)


def _plan(plan: dict[str, Any]) -> Numbers:
    return {name: plan[name] for name in ("epsilon", "delta", "epsilon_at_1e-5")}


def _origin(result: dict[str, Any] | None) -> Numbers | None:
    """Where and when a stored result was made, with how many seeds."""
    if result is None:
        return None
    seeds = len({run["seed"] for run in result["runs"]})
    return {"device": result["device"], "date": result["date"], "seeds": seeds}


def _parameters(settings: Settings) -> Numbers:
    return {"seed": settings.seed, "samples": 1000 if settings.quick else 4000}


WORK = Work("learning", _parameters, make)
