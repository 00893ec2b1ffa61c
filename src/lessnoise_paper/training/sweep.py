"""Does the learning rate decide it? MNIST again with other learning rates, clipping norms and optimizers.

``python -m lessnoise_paper.training.sweep --data FOLDER --out FOLDER`` trains every trial, the most telling first, and
writes ``FOLDER/sweep.json``. A trial is DP-SGD and R1SMG as published side by side, over all 60,000 records but for
fewer epochs than the study. Trials that are complete are kept, so a sweep that was stopped goes on where it was.

Noise grows with the clipping norm, and the step that is made of a noisy gradient is post-processing. So every trial
guarantees exactly what the study's line of the same method and budget guarantees after as many epochs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise import files
from lessnoise_paper.training import settings
from lessnoise_paper.training.data import load
from lessnoise_paper.training.run import anonymous, train_case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise_paper.training.trainer import Run

_SHOWN = 1000  # training images on which accuracy is measured: most of the time goes into training
_SAME = ("data", "records", "epochs", "batch", "train_accuracy_on", "device", "torch", "command")


@dataclass(frozen=True)
class Trial:
    """One way to train, for some seeds; ``budget`` counts those of the case."""

    optimizer: str
    learning_rate: float
    clip_norm: float
    seeds: int = 1
    budget: int = 1

    @property
    def name(self) -> str:
        """Of its own file."""
        return f"sweep-{self.optimizer}-{self.learning_rate:g}-{self.clip_norm:g}-{self.budget}"


TRIALS = (
    Trial("sgd", 0.5, 1.0, seeds=3),
    Trial("momentum", 0.05, 1.0),
    Trial("adam", 0.002, 1.0),
    Trial("sgd", 0.15, 3.0),
    Trial("sgd", 1.0, 1.0),
    Trial("sgd", 0.5, 1.0, budget=0),
    Trial("sgd", 1.5, 0.3),
)
"""The most telling first."""


def runs_of(trial: Trial) -> list[Run]:
    """Both methods for every seed; noise is that of the study times the clipping norm."""
    from lessnoise_paper.training.trainer import Run

    case = settings.CASES["mnist"]
    epsilon = case.budgets[trial.budget].epsilon
    found = []
    for method in settings.SWEPT:
        law: Any = settings.stored_plan(case.data, method, epsilon).mechanism.law
        law = replace(law, scale=law.scale * trial.clip_norm / case.clip_norm)
        found += [Run(method, epsilon, seed, law, trial.clip_norm) for seed in range(trial.seeds)]
    return found


def run_sweep(
    *,
    data: Path | None,
    out: Path,
    trials: Sequence[Trial] = TRIALS,
    epochs: int = settings.SWEEP_EPOCHS,
    records: int | None = None,
    minutes: float = float("inf"),
    device: str = "cpu",
    command: str,
    report: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Train the trials in their order; ``out``/sweep.json has those that are complete."""
    deadline = time.monotonic() + 60.0 * minutes
    images = load("mnist", data)
    images = images._replace(train=images.train[:records], train_labels=images.train_labels[:records])
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {"runs": []}
    for trial in trials:
        case = replace(
            settings.CASES["mnist"],
            learning_rate=trial.learning_rate,
            clip_norm=trial.clip_norm,
            optimizer=trial.optimizer,
        )
        result = train_case(
            case,
            images,
            runs_of(trial),
            epochs=epochs,
            device=device,
            out=out,
            command=command,
            deadline=deadline,
            name=trial.name,
            shown=_SHOWN,
            report=report,
        )
        if result["epochs_done"] < epochs:
            break
        how = {name: result[name] for name in ("optimizer", "learning_rate", "clip_norm", "date", "seconds")}
        runs = found["runs"] + [{**run, **how} for run in result["runs"]]
        seconds = round(found.get("seconds", 0.0) + result["seconds"], 1)
        found = {name: result[name] for name in _SAME} | {"date": result["date"], "seconds": seconds, "runs": runs}
        _write(out / "sweep.json", found)
        if time.monotonic() > deadline:
            break
    return found


def _write(path: Path, found: dict[str, Any]) -> None:
    """A run a line."""
    text = json.dumps(found, separators=(",", ":")).replace('{"method"', '\n{"method"') + "\n"
    files.write_together({path: lambda file: file.write(text.encode())}, force=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m lessnoise_paper.training.sweep", description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="folder with MNIST")
    parser.add_argument("--out", required=True, type=Path, help="folder for results and checkpoints")
    parser.add_argument("--epochs", type=int, default=settings.SWEEP_EPOCHS, help="epochs of every trial")
    parser.add_argument("--records", type=int, help="the first so many training records alone")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--device", default="cpu", help="cuda or cpu")
    asked = parser.parse_args(arguments)
    words = sys.argv[1:] if arguments is None else list(arguments)
    run_sweep(**vars(asked), command="python -m lessnoise_paper.training.sweep " + anonymous(words))


if __name__ == "__main__":
    main()
