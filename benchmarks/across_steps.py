"""Accuracy with noise across steps beside plain DP-SGD, at the same guarantee: ``python benchmarks/across_steps.py``.

The networks of case study III on MNIST and CIFAR-10, SGD without momentum, two recipes each: a few epochs of smaller
batches, and more epochs of larger ones. For each budget the bands of both kinds are those of ``compare_noise``. Every
training is one of ``make_private``, in secure_mode=False: noise and samples are torch's, the accounting is the same.
Learning rates are tried on test images, for all methods in the same way; that choice is not private.

Trainings run in several processes, seed by seed, until the time is over; what is there is a line of JSON in ``--out``,
and a later call goes on from it. ``--table`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import itertools
import json
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import torch

from lessnoise import learn
from lessnoise_paper.training.data import load
from lessnoise_paper.training.networks import module, network

DELTA = 1e-5
METHODS = ("gaussian", "banded-inverse", "banded")
BANDS = (2, 4, 8, 16, 32)
RECIPES = {  # epochs, batch size
    ("mnist", "few"): (4, 512),
    ("mnist", "more"): (20, 2048),
    ("cifar10", "few"): (6, 512),
    ("cifar10", "more"): (24, 2048),
}
RECORDS = {"mnist": 60000, "cifar10": 50000}
RATES = {"few": (0.25, 0.5, 1.0, 2.0), "more": (0.5, 1.0, 2.0, 4.0)}
EPSILONS = (1.0, 2.0, 4.0, 8.0)


class Places(torch.utils.data.Dataset[int]):
    """Records by their number; the images are where they are trained on."""

    def __init__(self, records: int) -> None:
        self.records = records

    def __len__(self) -> int:
        return self.records

    def __getitem__(self, place: int) -> int:
        return place


@functools.lru_cache(maxsize=2)
def tensors(data: str, device: str) -> tuple[torch.Tensor, ...]:
    images = load(data)

    def pixels(part: Any) -> torch.Tensor:  # noqa: ANN401
        images = torch.from_numpy(part.copy()).to(device).permute(0, 3, 1, 2)
        return images.flatten(1).view(images.shape).float() / 255.0  # in plain strides, also of one colour

    labels = (torch.from_numpy(part.copy()).long().to(device) for part in (images.train_labels, images.test_labels))
    return pixels(images.train), pixels(images.test), *labels


def train(job: dict[str, Any]) -> dict[str, Any]:
    """One training: its line of results."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    data, device, records = job["data"], job["device"], job["records"]
    images, test, labels, test_labels = tensors(data, device)
    epochs, batch = RECIPES[data, job["recipe"]]
    model = module(network(data), torch.Generator().manual_seed(1000 + job["seed"])).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=job["learning_rate"])

    def collate(places: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.tensor(places, device=device)
        return images[chosen], labels[chosen]

    started = time.perf_counter()
    private = learn.make_private(
        model,
        optimizer,
        torch.utils.data.DataLoader(Places(records), batch_size=batch, collate_fn=collate),
        loss=torch.nn.functional.cross_entropy,
        records=records,
        mechanism=job["method"],
        bands=job["bands"],
        clip_norm=1.0,
        epsilon=job["epsilon"],
        delta=DELTA,
        epochs=epochs,
        secure_mode=False,
        generator=torch.Generator(device).manual_seed(5000 + job["seed"]),
    )
    learn.fit(private, epochs=epochs, report=lambda line: None)
    with torch.no_grad():
        scores = [
            (private.model(part).argmax(1) == own).sum()
            for part, own in zip(test.split(2000), test_labels.split(2000), strict=True)
        ]
    found = private.privacy.epsilon()
    assert found.upper <= job["epsilon"]
    share = float(sum(scores)) / len(test_labels)
    return {**job, "test": round(share, 5), "seconds": round(time.perf_counter() - started, 1)}


def choices(asked: tuple[str, str, float, int]) -> tuple[tuple[str, str, float], dict[str, learn.NoiseRow]]:
    """The best bands of each kind, and plain noise."""
    data, recipe, epsilon, records = asked
    epochs, batch = RECIPES[data, recipe]
    batches = -(-records // batch)
    bands = [each for each in BANDS if each <= batches]
    found = learn.compare_noise(
        epochs=epochs, batches=batches, epsilon=epsilon, delta=DELTA, records=records, bands=bands
    )
    best = {name: min((r for r in found.rows if r.mechanism == name), key=lambda r: r.every) for name in METHODS}
    return (data, recipe, epsilon), best


def key(job: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(job[name] for name in ("data", "recipe", "epsilon", "method", "learning_rate", "seed", "records"))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(asked: argparse.Namespace) -> None:
    done = {key(line) for line in lines_of(asked.out)}
    end = time.monotonic() + 60.0 * asked.minutes
    with concurrent.futures.ProcessPoolExecutor(asked.processes) as pool:
        settings = [
            (data, recipe, epsilon, asked.records or RECORDS[data])
            for (data, recipe), epsilon in itertools.product(RECIPES, EPSILONS)
            if data in asked.data and recipe in asked.recipes
        ]
        chosen = dict(pool.map(choices, settings))
        print(f"choices made, {end - time.monotonic():.0f} s left", flush=True)
        jobs = [
            {
                **dict(zip(("data", "recipe", "epsilon", "records"), setting, strict=True)),
                "method": method,
                "bands": None if method == "gaussian" else chosen[setting[:3]][method].bands,
                "noise": round(chosen[setting[:3]][method].every, 3),
                "learning_rate": rate,
                "seed": seed,
                "device": asked.device,
            }
            for seed, setting, method in itertools.product(range(asked.seeds), settings, METHODS)
            for rate in RATES[setting[1]]
        ]
        waiting = iter([job for job in jobs if key(job) not in done])
        running = {pool.submit(train, job) for job in itertools.islice(waiting, asked.processes)}
        with asked.out.open("a") as file:
            while running:
                ready, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for one in ready:
                    file.write(json.dumps(one.result()) + "\n")
                    file.flush()
                    if time.monotonic() < end:
                        running |= {pool.submit(train, job) for job in itertools.islice(waiting, 1)}
    print(f"{len(lines_of(asked.out))} of {len(jobs)} trainings are there")


def table(path: Path) -> None:
    """For each setting and method the learning rate with the best mean over seeds."""
    found: dict[Any, dict[float, list[float]]] = {}
    more: dict[Any, tuple[Any, float]] = {}
    for line in lines_of(path):
        name = line["data"], line["recipe"], line["epsilon"], line["method"]
        found.setdefault(name, {}).setdefault(line["learning_rate"], []).append(100.0 * line["test"])
        more[name] = line["bands"], line["noise"]
    print("| data | recipe | epsilon | noise | bands | noise on weights, of plain | learning rate | accuracy, % |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rates in sorted(found.items(), key=lambda one: (one[0][:3], METHODS.index(one[0][3]))):
        rate, shares = max(rates.items(), key=lambda one: statistics.mean(one[1]))
        bands, noise = more[name]
        plain = more.get((*name[:3], "gaussian"), (None, noise))[1]
        spread = f" (seeds: {', '.join(f'{share:.1f}' for share in shares)})" if len(shares) > 1 else ""
        cells = *name[:2], f"{name[2]:g}", name[3], bands or "", f"{noise / plain:.2f}", f"{rate:g}"
        print(f"| {' | '.join(map(str, cells))} | {statistics.mean(shares):.2f}{spread} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--records", type=int, help="train on so many records, for a try")
    parser.add_argument("--data", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--recipes", nargs="+", default=["few", "more"])
    parser.add_argument("--out", type=Path, default=Path("across_steps.jsonl"))
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    if asked.table:
        table(asked.out)
    else:
        run(asked)


if __name__ == "__main__":
    torch.multiprocessing.set_start_method("spawn")
    main()
