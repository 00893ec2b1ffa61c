"""Case study III: training networks. Full runs take a GPU, so their results come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise.report import svg
from lessnoise_paper.codec import plain
from lessnoise_paper.model import Experiment, Result, tick
from lessnoise_paper.training import inside, results, settings
from lessnoise_paper.training.compared import OPTIMIZERS, compared
from lessnoise_paper.training.membership import demonstration
from lessnoise_paper.training.pictures import figures
from lessnoise_paper.training.run import INSIDE

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Progress
    from lessnoise_paper.training.membership import Membership

PAPER_TRAINING_ACCURACY = 0.8
"""Of CIFAR-10: section 7.3 says "a higher training accuracy (e.g., >80%)"."""


def run(
    folder: str | None, progress: Progress | None, *, seed: int, samples: int, results_folder: str | None
) -> Result:
    """Curves with the exact privacy of every line, and attacks on one step.

    The results are those in ``results_folder``, or the stored ones if it is None.
    """
    tick(progress, "attack on one step", 0, 2)
    attacked = demonstration(samples=samples, seed=seed) if samples else []
    tick(progress, "results", 1, 2)
    place = None if results_folder is None else Path(results_folder)
    return collected(lambda name: results.read(name, place), attacked)


def collected(read_result: results.Reader, attacked: list[Membership]) -> Result:
    """Numbers and pictures of some results and attacks."""
    stored = {name: read_result(name) for name in (*settings.CASES, INSIDE, "sweep", "strong")}
    rows = results.table(read_result)
    numbers = {
        "rows": plain(rows),
        "names": results.NAMES,
        "plans": _plans(rows, stored),
        "membership": plain(attacked),
        "first_epochs_at_95": results.checkpoints(read_result),
        "training_accuracy": {name: _on_training(result) for name, result in stored.items() if name in settings.CASES},
        "step_budgets": plain(inside.step_budgets()),
        "inside": plain(inside.inside_range()),
        "inside_trained": plain(inside.trained_inside(read_result)),
        "compared": plain(compared(read_result)),
        "optimizers": OPTIMIZERS,
        "paper_epochs": results.PAPER_CHECKPOINTS["mnist", 16.983],
        "cases": {
            name: {"records": c.records, "parameters": c.parameters, "epochs": c.epochs, "batch": c.batch}
            for name, c in settings.CASES.items()
        },
        "runs": {name: _origin(result) for name, result in stored.items() if result is not None},
    }
    drawn = figures(read_result, attacked)
    return Result(numbers, {f"learning-{name}.svg": svg(figure) for name, figure in drawn.items()})


def _plans(rows: list[results.Row], stored: dict[str, Any]) -> Numbers:
    """The exact privacy of every line, for the records and epochs that it was trained with."""
    plans: Numbers = {}
    for row in rows:
        if row.epsilon is None:
            continue
        name, run = settings.key(row.data, row.method, row.epsilon), stored[row.data]
        plan: Numbers | None = settings.stored_plans()[name]
        if row.method != "strong":
            plan = settings.plan_of_run(row.data, row.method, row.epsilon, run["records"], run["epochs_done"])
        if plan is None:  # no step was taken
            plan = {"epsilon": row.epsilon, "delta": [0.0, 0.0], "epsilon_at_1e-5": [0.0, 0.0]}
        plans[name] = {part: plan[part] for part in ("epsilon", "delta", "epsilon_at_1e-5")}
    return plans


def _on_training(result: dict[str, Any] | None) -> Numbers | None:
    """How high accuracy on training records gets: the best private line, and SGD's first epoch at 80%."""
    if result is None:
        return None
    curves = results.curves(result)
    plain_sgd = next((curve for curve in curves if curve.method == "sgd"), None)
    reached = None if plain_sgd is None else results.first_at(plain_sgd.train[:, 0], PAPER_TRAINING_ACCURACY)
    highest = max(float(curve.train[:, 0].max()) for curve in curves if curve.epsilon is not None)
    return {"of": PAPER_TRAINING_ACCURACY, "first_epoch_of_sgd": reached, "highest_private": highest}


def _origin(result: dict[str, Any]) -> Numbers:
    """Where, when and how a result was made, with how many seeds."""
    return {
        **{name: value for name, value in result.items() if name != "runs"},
        "seeds": len({run.get("seed") for run in result["runs"]}),
    }


EXPERIMENT = Experiment(
    "learning",
    lambda settings: {"seed": settings.seed, "samples": 1000 if settings.quick else 4000, "results_folder": None},
    run,
)
