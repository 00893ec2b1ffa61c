"""Accuracy with noise across steps beside plain DP-SGD, at the same guarantee: ``python benchmarks/across_steps.py``.

Small convolutional networks on MNIST and CIFAR-10, SGD without momentum, clipping norm 1. Plans, samplers and the
coefficients of the noise are those of ``lessnoise.learn``; clipped sums are those of case study III, which need a tenth
of Opacus's time on a CPU, and the noise is NumPy's, all steps at once: experiments, not releases. For each budget the
bands of both kinds are the best of ``compare_noise``. Learning rates are tried on the test images, for all methods in
the same way; that choice is not private.

Trainings run in several processes, seed by seed, until the time is over; each is a line of JSON in ``--out``, and a
later call goes on from it. ``--table`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import itertools
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.signal import lfilter

from lessnoise import learn
from lessnoise.learn.across.loader import GroupSampler
from lessnoise.learn.loader import PoissonSampler
from lessnoise_paper.training.data import load
from lessnoise_paper.training.networks import Conv, Dense, Network, Pool
from lessnoise_paper.training.trainer import Ensemble, Run, as_floats

DELTA = 1e-5
METHODS = ("gaussian", "banded-inverse", "banded")
BANDS = (2, 4, 8, 16, 32)
LAYERS = (Conv(16, 5, 2, 2), Pool(2), Conv(32, 3), Pool(2), Dense(10, last=True))
NETWORKS = {"mnist": Network((28, 28, 1), LAYERS), "cifar10": Network((32, 32, 3), LAYERS)}
RECIPES = {  # data, and a name: records, epochs, batch size, learning rates
    ("mnist", "all records"): (60000, 3, 1000, (2.0, 4.0)),
    ("mnist", "few records"): (12000, 5, 200, (2.0, 4.0, 8.0)),
    ("mnist", "more epochs"): (12000, 20, 800, (4.0,)),
    ("cifar10", "few records"): (10000, 4, 200, (1.0, 2.0)),
}
EPSILONS = (1.0, 2.0, 4.0, 8.0)


@functools.lru_cache(maxsize=1)
def images(data: str, folder: str | None) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(part.copy()) for part in load(data, folder))


def plan_of(job: dict[str, Any]) -> learn.TrainingPlan | learn.AcrossPlan:
    _, epochs, batch, _ = RECIPES[job["data"], job["recipe"]]
    batches = -(-job["records"] // batch)
    asked = {
        "clip_norm": 1.0,
        "parameters": NETWORKS[job["data"]].parameters,
        "steps": epochs * batches,
        "records": job["records"],
        "epsilon": job["epsilon"],
        "delta": DELTA,
    }
    if job["method"] == "gaussian":
        return learn.plan_training("gaussian", rate=1.0 / batches, **asked)
    return learn.plan_across_steps(job["method"], bands=job["bands"], batches=batches, **asked)


def train(job: dict[str, Any]) -> dict[str, Any]:
    """One training: its line of results."""
    torch.set_num_threads(1)
    started = time.process_time()
    train_images, train_labels, test_images, test_labels = images(job["data"], job["folder"])
    plan, net, records = plan_of(job), NETWORKS[job["data"]], job["records"]
    assert plan.delta(job["epsilon"]).upper <= DELTA
    batches = round(1.0 / plan.rate)
    generator = torch.Generator().manual_seed(5000 + job["seed"])
    noise = np.random.default_rng(9000 + job["seed"]).normal(size=(plan.steps, net.parameters))
    if isinstance(plan, learn.AcrossPlan):
        sampler: PoissonSampler = GroupSampler(records, batches, plan.groups, secure=False, generator=generator)
        noise = lfilter(plan.factorisation.inverse(plan.steps), [1.0], noise, axis=0)
    else:
        sampler = PoissonSampler(records, batches, secure=False, generator=generator)
    noise = torch.from_numpy(plan.mechanism.standard_deviation * noise).float()
    model = Ensemble(net, [Run(job["method"], job["epsilon"], job["seed"], None, 1.0)], torch.device("cpu"))
    parameters = [*model.weights, *model.biases]
    step, factor = 0, job["learning_rate"] * batches / records
    while step < plan.steps:
        sampler.start = step
        for batch in sampler:  # of the first records
            chosen = torch.tensor(batch, dtype=torch.long)[None]
            sums = [torch.zeros_like(p) for p in parameters]
            if len(batch):
                weights, biases, _ = model.clipped_sums(
                    as_floats(train_images[chosen]), train_labels[chosen].long(), torch.ones(chosen.shape)
                )
                sums = [*weights, *biases]
            parts = noise[step].split([p.numel() for p in parameters])
            for p, total, part in zip(parameters, sums, parts, strict=True):
                p -= factor * (total + part.view_as(p))
            step += 1
    share = model.accuracy(test_images, test_labels)[0]
    return {**job, "folder": None, "test": round(share, 5), "seconds": round(time.process_time() - started, 1)}


def choices(asked: tuple[str, str, float, int]) -> tuple[tuple[str, str, float], dict[str, learn.NoiseRow]]:
    """The best bands of each kind, and plain noise."""
    data, recipe, epsilon, records = asked
    _, epochs, batch, _ = RECIPES[data, recipe]
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
            (data, recipe, epsilon, RECIPES[data, recipe][0])
            for (data, recipe), epsilon in itertools.product(RECIPES, asked.epsilons)
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
                "folder": asked.folder,
            }
            for seed, setting, method in itertools.product(range(asked.seeds), settings, METHODS)
            for rate in RECIPES[setting[:2]][3]
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
    parser.add_argument("--folder", help="of the images; else $LESSNOISE_DATA")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--data", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--recipes", nargs="+", default=["all records", "few records", "more epochs"])
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
