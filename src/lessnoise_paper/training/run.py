"""The full runs: ``python -m lessnoise_paper.training.run --data FOLDER --out FOLDER``.

Needs PyTorch and NumPy alone. All lines and seeds of a data set train side by side, and after each epoch the results so
far and a checkpoint are written, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise import files
from lessnoise.errors import InvalidInput
from lessnoise_paper.training import settings
from lessnoise_paper.training.data import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from lessnoise_paper.training.data import Images
    from lessnoise_paper.training.trainer import Run

INSIDE = "inside"
"""MNIST with R1SMG as published inside the range of Remark 1, and its result file."""
_SHOWN = 10000  # training images on which accuracy is measured
_SILENCE = 15.0  # seconds after which a long epoch says how far it is


def runs_of(case: settings.Case, seeds: Sequence[int]) -> list[Run]:
    """Every line of the study for every seed."""
    from lessnoise_paper.training.trainer import Run

    found = [Run("sgd", None, seed) for seed in seeds]
    for budget in case.budgets:
        for method in settings.PRIVATE_METHODS:
            law: Any = settings.stored_plan(case.data, method, budget.epsilon).mechanism.law
            found += [Run(method, budget.epsilon, seed, law, case.clip_norm) for seed in seeds]
    return found


def runs_inside(case: settings.Case, seeds: Sequence[int]) -> list[Run]:
    """R1SMG as published with epsilon0 below 1/M at every step, for every seed."""
    from lessnoise_paper.training.trainer import Run

    share = settings.SHARES[0]
    law: Any = settings.stored_plan(case.data, settings.INSIDE, share).mechanism.law
    total = settings.claimed_inside(case, share).epsilon
    return [Run(settings.INSIDE, total, seed, law, case.clip_norm) for seed in seeds]


def train_case(
    case: settings.Case,
    images: Images,
    runs: list[Run],
    *,
    epochs: int,
    device: str,
    out: Path,
    command: str,
    deadline: float = float("inf"),
    name: str | None = None,
    shown: int = _SHOWN,
    report: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Train all runs of a case; results are in ``out``/NAME.json (left out: the data's), the checkpoint is beside them.

    Training accuracy is that of the first ``shown`` records.
    """
    import torch

    from lessnoise_paper.training.networks import network
    from lessnoise_paper.training.trainer import Ensemble, as_floats, poisson_batches

    place = torch.device(device)
    torch.backends.cuda.matmul.allow_tf32 = True
    train, labels, test, test_labels = (torch.from_numpy(part.copy()).to(place) for part in images)
    labels, test_labels = labels.long(), test_labels.long()
    records = len(labels)
    ensemble = Ensemble(network(case.data), runs, place, case.optimizer)
    name = case.data if name is None else name
    generator = torch.Generator(device=place).manual_seed(20241 + min(run.seed for run in runs))
    result = _blank(case, runs, records, epochs, min(shown, records), device, command)
    checkpoint = out / f"{name}.pt"
    _restore(checkpoint, result, ensemble, generator, report)
    steps_in = [epoch * records // case.batch for epoch in range(epochs + 1)]
    report(f"{name}: {len(runs)} runs side by side, {epochs} x {steps_in[1]} steps, on {device}")
    for epoch in range(result["epochs_done"], epochs):
        started = time.perf_counter()
        steps = steps_in[epoch + 1] - steps_in[epoch]
        said = started
        batches = poisson_batches(len(runs), records, case.batch / records, steps, generator, place)
        for step, (indices, taking_part) in enumerate(batches):
            if time.perf_counter() - said > _SILENCE:
                said = time.perf_counter()
                report(f"{name} epoch {epoch + 1} of {epochs}: step {step} of {steps}, {said - started:.0f} s")
            ensemble.step(
                as_floats(train[indices]),
                labels[indices],
                taking_part,
                rate=case.learning_rate,
                batch=case.batch,
                generator=generator,
            )
        on_train = ensemble.accuracy(train[:shown], labels[:shown])
        on_test = ensemble.accuracy(test, test_labels)
        for line, train_share, test_share in zip(result["runs"], on_train, on_test, strict=True):
            line["train"].append(round(train_share, 5))
            line["test"].append(round(test_share, 5))
        took = time.perf_counter() - started
        result["epochs_done"], result["seconds"] = epoch + 1, round(result["seconds"] + took, 1)
        result["date"] = datetime.now(UTC).strftime("%Y-%m-%d")
        _save(out, name, result, ensemble, generator)
        best = max(on_test)
        report(f"{name} epoch {epoch + 1} of {epochs}: {took:.1f} s, best test accuracy {best:.4f}")
        if time.monotonic() + 1.1 * took > deadline and epoch + 1 < epochs:
            report(f"{name}: out of time after epoch {epoch + 1}; run again with the same --out to go on")
            break
    return result


def _blank(
    case: settings.Case, runs: list[Run], records: int, epochs: int, shown: int, device: str, command: str
) -> dict[str, Any]:
    from lessnoise_paper.training.trainer import origin

    return {
        "data": case.data,
        "records": records,
        "epochs": epochs,
        "epochs_done": 0,
        "batch": case.batch,
        "learning_rate": case.learning_rate,
        "clip_norm": case.clip_norm,
        "optimizer": case.optimizer,
        "train_accuracy_on": shown,
        **origin(device, command),
        "date": "",
        "seconds": 0.0,
        "runs": [
            {"method": run.method, "epsilon": run.epsilon, "seed": run.seed, "train": [], "test": []} for run in runs
        ],
    }


def _same(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    fixed = ("data", "records", "epochs", "batch", "learning_rate", "clip_norm", "optimizer")
    lines = [[(run["method"], run["epsilon"], run["seed"]) for run in one["runs"]] for one in (mine, theirs)]
    return lines[0] == lines[1] and all(mine[name] == theirs[name] for name in fixed)


def _restore(path: Path, result: dict[str, Any], ensemble: Any, generator: torch.Generator, report: Any) -> None:  # noqa: ANN401
    import torch

    if not path.exists():
        return
    state = torch.load(path, weights_only=True)
    saved = json.loads(state["result"])
    if not _same(result, saved):
        raise InvalidInput(f"checkpoint={path} is of other settings: choose another --out, or remove it.")
    result.update({name: saved[name] for name in ("runs", "epochs_done", "seconds", "date")})
    ensemble.restore(state["ensemble"])
    generator.set_state(state["generator"])
    report(f"{result['data']}: going on after epoch {result['epochs_done']}")


def _save(out: Path, name: str, result: dict[str, Any], ensemble: Any, generator: torch.Generator) -> None:  # noqa: ANN401
    import torch

    state = {"result": json.dumps(result), "ensemble": ensemble.state(), "generator": generator.get_state()}
    text = json.dumps(result, indent=None, separators=(",", ":")).replace('{"method"', '\n{"method"') + "\n"
    files.write_together(
        {
            out / f"{name}.pt": lambda file: torch.save(state, file),
            out / f"{name}.json": lambda f: f.write(text.encode()),
        },
        force=True,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m lessnoise_paper.training.run", description=__doc__)
    parser.add_argument("--data", required=True, type=Path, help="folder with MNIST and CIFAR-10")
    parser.add_argument("--out", required=True, type=Path, help="folder for results and checkpoints")
    parser.add_argument(
        "--only", nargs="*", default=["mnist", "cifar10", "strong"], help="mnist, cifar10, inside, strong"
    )
    parser.add_argument("--epochs", type=int, help="fewer than the study's")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    late = "stop after this time, at the end of an epoch"
    parser.add_argument("--minutes", type=float, default=float("inf"), help=late)
    parser.add_argument("--device", help="cuda or cpu")
    parser.add_argument("--records", type=int, help="the first so many training records alone, for trials")
    parser.add_argument("--sweep", action="store_true", help="only try learning rates of the strong recipe")
    asked = parser.parse_args(arguments)
    if asked.sweep:
        from lessnoise_paper.training.strong import sweep

        sweep(asked.data, asked.device or "cuda", only=tuple(name for name in asked.only if name != "strong"))
        return
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = {name: value for name, value in vars(asked).items() if name != "sweep"}
    run_study(**options, command="python -m lessnoise_paper.training.run " + anonymous(words))


def run_study(
    only: Sequence[str],
    *,
    data: Path | None,
    out: Path,
    epochs: int | None = None,
    seeds: int = 3,
    minutes: float = float("inf"),
    device: str | None = None,
    records: int | None = None,
    strong: tuple[str, ...] = ("mnist", "cifar10"),
    command: str = "lessnoise study learning --rerun",
    report: Callable[[str], object] = print,
) -> None:
    """Train what ``only`` names ("mnist", "cifar10", "inside", "strong") and write the result files."""
    import torch

    deadline = time.monotonic() + 60.0 * minutes
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    out.mkdir(parents=True, exist_ok=True)
    # What is missing is missed before training.
    found = {name: load(_data_of(name), data) for name in only if name != "strong"}
    for name, images in found.items():
        case = settings.CASES[_data_of(name)]
        if records is not None:
            images = images._replace(train=images.train[:records], train_labels=images.train_labels[:records])
        train_case(
            case,
            images,
            (runs_inside if name == INSIDE else runs_of)(case, range(seeds)),
            epochs=case.epochs if epochs is None else epochs,
            device=place,
            out=out,
            command=command,
            deadline=deadline,
            name=name,
            report=report,
        )
    if "strong" in only:
        from lessnoise_paper.training.strong import run_strong

        run_strong(
            data=data, out=out, seeds=seeds, device=place, command=command, records=records, only=strong, report=report
        )


def _data_of(name: str) -> str:
    """The data set of what is trained: ``inside`` is MNIST with noise inside the range of Remark 1."""
    return "mnist" if name == INSIDE else name


def anonymous(words: Sequence[str]) -> str:
    """The command as typed, but for folders."""
    hidden = {"--data": "DATA", "--out": "OUT"}
    shown = [hidden.get(words[i - 1], word) if i else word for i, word in enumerate(words)]
    return " ".join(shown)


if __name__ == "__main__":
    main()
