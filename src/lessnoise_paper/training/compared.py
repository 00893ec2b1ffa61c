"""What the sweep over learning rates, clipping norms and optimizers found: R1SMG as published beside DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise_paper.training import results, settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise_paper.training.results import Curve, Reader

    Way = tuple[str, float, float, float]

OPTIMIZERS = {"sgd": "SGD", "momentum": "SGD with momentum 0.9", "adam": "Adam"}
_NEAR = 2  # epochs
_PUBLISHED, _GAUSSIAN = "r1smg-published", "dpsgd"


@dataclass(frozen=True)
class Tried:
    """How one of the two methods did in one way to train: test accuracy after the epochs of the sweep, over seeds.

    ``arrival`` is the first epoch after which the mean over seeds is at 95%, ``arrivals`` are those of the seeds; None
    if it is never there. ``guarantee`` is the exact one after these epochs.
    """

    arrival: int | None
    arrivals: tuple[int | None, ...]
    accuracy: float
    least: float
    greatest: float
    guarantee: str


@dataclass(frozen=True)
class Compared:
    """One way to train. ``gap`` is the accuracy of R1SMG as published less that of DP-SGD.

    Both are compared after ``epochs`` epochs; they were trained for ``trained`` epochs. ``as_the_paper`` says that each
    arrives at 95% within two epochs of the one that the paper reports for it; None where the paper reports none.
    """

    optimizer: str
    learning_rate: float
    clip_norm: float
    claimed_epsilon: float
    seeds: int
    epochs: int
    trained: int
    published: Tried
    dpsgd: Tried
    gap: float
    as_the_paper: bool | None


def compared(read_result: Reader = results.read) -> list[Compared]:
    """The study's own way, and every way of the sweep; empty without a sweep."""
    swept = read_result("sweep")
    epochs = 0 if swept is None else swept["epochs"]
    return [_compare(way, runs, epochs) for way, runs in _ways(read_result).items()]


def curves_of(way: Compared, read_result: Reader = results.read) -> list[Curve]:
    """Both lines of one way to train, for pictures."""
    key = way.optimizer, way.learning_rate, way.clip_norm, way.claimed_epsilon
    return results.curves({"runs": _ways(read_result)[key]})


def _ways(read_result: Reader) -> dict[Way, list[dict[str, Any]]]:
    """The runs of each way to train, in the order in which they are shown."""
    swept, study = read_result("sweep"), read_result("mnist")
    if swept is None:
        return {}
    runs = list(swept["runs"])
    if study is not None and study["epochs_done"] >= swept["epochs"]:
        own = {name: study[name] for name in ("learning_rate", "clip_norm")} | {"optimizer": "sgd"}
        runs += [{**run, **own} for run in study["runs"] if run["method"] in settings.SWEPT]
    found: dict[Way, list[dict[str, Any]]] = {}
    for run in runs:
        way = run["optimizer"], run["learning_rate"], run["clip_norm"], run["epsilon"]
        found.setdefault(way, []).append(run)
    return {way: found[way] for way in sorted(found, key=_place)}


def _place(way: Way) -> tuple[float, int, float, float]:
    optimizer, learning_rate, clip_norm, epsilon = way
    return -epsilon, list(OPTIMIZERS).index(optimizer), abs(clip_norm - 1.0), learning_rate


def _compare(way: Way, runs: list[dict[str, Any]], epochs: int) -> Compared:
    epsilon = way[3]
    curves = {m: np.array([run["test"] for run in runs if run["method"] == m]) for m in settings.SWEPT}
    published, dpsgd = (_tried(method, epsilon, curves[method], epochs) for method in (_PUBLISHED, _GAUSSIAN))
    seeds, trained = curves[_PUBLISHED].shape
    gap = published.accuracy - dpsgd.accuracy
    alike = _as_the_paper(epsilon, {_PUBLISHED: published.arrival, _GAUSSIAN: dpsgd.arrival}, trained)
    return Compared(*way, seeds, epochs, trained, published, dpsgd, gap, alike)


def _as_the_paper(epsilon: float, arrivals: dict[str, int | None], trained: int) -> bool | None:
    """Who is not there yet when training ends is taken to arrive right after, if that fits the paper, or later."""
    reported = results.PAPER_CHECKPOINTS.get(("mnist", epsilon))
    if reported is None:
        return None
    return all(
        trained < epoch + _NEAR if arrivals[method] is None else abs(arrivals[method] - epoch) <= _NEAR  # type: ignore[operator]
        for method, epoch in reported.items()
    )


def _tried(method: str, epsilon: float, curves: NDArray[np.float64], epochs: int) -> Tried:
    last = curves[:, epochs - 1]
    case = settings.CASES["mnist"]
    plan = settings.plan_of_run(case.data, method, epsilon, case.records, epochs)
    return Tried(
        results.first_checkpoint(curves.mean(0)),
        tuple(map(results.first_checkpoint, curves)),
        float(last.mean()),
        float(last.min()),
        float(last.max()),
        results.guarantee_text(plan),
    )
