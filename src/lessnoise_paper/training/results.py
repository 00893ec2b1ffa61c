"""The results of the full runs, read from small files: curves with bands over seeds, and the table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.text import down, up
from lessnoise_paper.codec import stored
from lessnoise_paper.training import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable
    from pathlib import Path

    from numpy.typing import NDArray

    Reader = Callable[[str], dict[str, Any] | None]

NAMES = {
    "sgd": "SGD, not private",
    "dpsgd": "DP-SGD as in the paper",
    "dpsgd-exact": "DP-SGD, calibrated exactly",
    "r1smg-published": "R1SMG as published",
    "r1smg": "R1SMG, calibrated exactly",
    "r1smg-inside": "R1SMG as published, ε0 = 0.99/M",
    "strong": "strong recipe",
}
_NO_PRIVACY = 0.9  # delta from which a guarantee is none
_FIELDS = {
    "strong": ("train", "test"),
    "sweep": ("epsilon", "train", "test", "optimizer", "learning_rate", "clip_norm"),
}
CHECKPOINT = 0.95
"""Test accuracy whose first epoch the paper reports."""
PAPER_CHECKPOINTS = {("mnist", 16.983): {"r1smg-published": 5, "dpsgd": 14}}
"""About the epochs in which the paper's lines reach it."""


@dataclass(frozen=True)
class Curve:
    """Accuracy after each epoch over seeds: mean, least and greatest."""

    method: str
    epsilon: float | None
    train: NDArray[np.float64]
    test: NDArray[np.float64]

    @property
    def final(self) -> float:
        """Mean test accuracy after the last epoch."""
        return float(self.test[-1, 0])

    @property
    def first_checkpoint(self) -> int | None:
        """The first epoch after which mean test accuracy is 95%."""
        return first_checkpoint(self.test[:, 0])


@stored(
    epsilon="claimed_epsilon",
    accuracy="test_accuracy",
    spread="test_accuracy_over_seeds",
    first_checkpoint="first_epoch_at_95",
)
@dataclass(frozen=True)
class Row:
    """One line of the table."""

    data: str
    epsilon: float | None
    method: str
    guarantee: str
    accuracy: float
    spread: tuple[float, float]
    train_accuracy: float
    first_checkpoint: int | None


def read(name: str, folder: Path | None = None) -> dict[str, Any] | None:
    """A result file ("mnist", "cifar10", "inside", "strong", "sweep") of a folder, or the library's own.

    None if there is none.
    """
    place: Path | Traversable = resources.files(__package__) / "results" if folder is None else folder
    path = place / f"{name}.json"
    if not path.is_file():
        return None
    try:
        result = validation.json_object(path.read_text(encoding="utf-8"), "results")
        for run in validation.entries("runs", result.get("runs")):
            needed = _FIELDS.get(name, ("epsilon", "train", "test"))
            validation.fields(run, needed, "run", optional=None)
    except ValueError as error:
        raise InvalidInput(
            f"results={path} is not JSON that can be read ({error}): make it again with --rerun."
        ) from None
    return result


def curves(result: dict[str, Any]) -> list[Curve]:
    """One curve for each method and budget, in the order of the file."""
    lines: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for run in result["runs"]:
        lines.setdefault((run["method"], run["epsilon"]), []).append(run)
    return [
        Curve(method, epsilon, _bands(runs, "train"), _bands(runs, "test"))
        for (method, epsilon), runs in lines.items()
        if runs[0]["test"]
    ]


def _bands(runs: list[dict[str, Any]], part: str) -> NDArray[np.float64]:
    """(epochs, 3): mean, least, greatest."""
    values = np.array([run[part] for run in runs])
    return np.stack([values.mean(0), values.min(0), values.max(0)], axis=1)


def guarantee_text(plan: dict[str, Any] | None) -> str:
    """What a line really guarantees, from its plan."""
    if plan is None:
        return "no step was taken"
    found = plan["epsilon_at_1e-5"]
    if found is None or math.isinf(found[1]):
        lower = plan["delta"][0]
        return f"delta >= {down(lower, 6)} at that epsilon" + (": no privacy" if lower > _NO_PRIVACY else "")
    return f"({up(found[1], 5)}, 1e-5)-DP"


def stored_guarantee(data: str, method: str, epsilon: float) -> str:
    """What a line of the study guarantees with the study's own records and steps.

    >>> stored_guarantee("mnist", "strong", 1.795)
    '(1.7945, 1e-5)-DP'
    """
    return guarantee_text(settings.stored_plans()[settings.key(data, method, epsilon)])


def exact_guarantee(result: dict[str, Any], method: str, epsilon: float) -> str:
    """What a line of a result file really guarantees, for the records and epochs that it was trained with.

    >>> exact_guarantee({"data": "mnist", "records": 60000, "epochs_done": 30}, "dpsgd", 1.795)
    '(1.6369, 1e-5)-DP'
    """
    epochs = result["epochs_done"]
    return guarantee_text(settings.plan_of_run(result["data"], method, epsilon, result["records"], epochs))


def checkpoints(read_result: Reader = read) -> list[dict[str, Any]]:
    """First epochs at 95% test accuracy, ours beside the paper's, for the lines whose epoch the paper reports.

    Ours over seeds: of the mean curve, and of the first and last seed to arrive (None: one never does).
    """
    found = []
    for (data, epsilon), paper in PAPER_CHECKPOINTS.items():
        result = read_result(data)
        for method, epoch in paper.items() if result is not None else ():
            runs = [run for run in result["runs"] if (run["method"], run["epsilon"]) == (method, epsilon)]  # type: ignore[index]
            arrivals = [first_checkpoint(np.array(run["test"])) for run in runs]
            here = [arrival for arrival in arrivals if arrival is not None]
            found.append(
                {
                    "data": data,
                    "claimed_epsilon": epsilon,
                    "method": method,
                    "paper": epoch,
                    "mean_curve": first_checkpoint(_bands(runs, "test")[:, 0]) if runs else None,
                    "first_seed": min(here, default=None),
                    "last_seed": max(here) if here and len(here) == len(arrivals) else None,
                }
            )
    return found


def first_checkpoint(test: NDArray[np.float64]) -> int | None:
    """The first epoch after which test accuracy is 95%.

    >>> first_checkpoint(np.array([0.9, 0.96, 0.94]))
    2
    """
    return first_at(test, CHECKPOINT)


def first_at(shares: NDArray[np.float64], least: float) -> int | None:
    """The first epoch after which accuracy is at least this; None if it never is."""
    reached = np.flatnonzero(shares >= least)
    return int(reached[0]) + 1 if reached.size else None


def table(read_result: Reader = read) -> list[Row]:
    """Every line of every result file there is, with its exact guarantee."""
    rows = []
    for data in settings.CASES:
        result = read_result(data)
        for curve in [] if result is None else curves(result):
            assert result is not None
            text = "none" if curve.epsilon is None else exact_guarantee(result, curve.method, curve.epsilon)
            rows.append(
                Row(
                    data,
                    curve.epsilon,
                    curve.method,
                    text,
                    curve.final,
                    (float(curve.test[-1, 1]), float(curve.test[-1, 2])),
                    float(curve.train[-1, 0]),
                    curve.first_checkpoint,
                )
            )
    strong = read_result("strong")
    for data, recipe in settings.STRONG.items():
        runs = [] if strong is None else [run for run in strong["runs"] if run["data"] == data]
        if runs:
            shares = [run["test"] for run in runs]
            text = stored_guarantee(data, "strong", recipe.epsilon)
            train = float(np.mean([run["train"] for run in runs]))
            spread = (min(shares), max(shares))
            rows.append(Row(data, recipe.epsilon, "strong", text, float(np.mean(shares)), spread, train, None))
    return rows
