"""Time of a training step beside Opacus's own, in the same run: ``python benchmarks/learning.py [--device cuda]``.

A network of case study III, batches of 256, steps taken in turn so that all see the same machine. On the CPU times are
of one thread's processor, which other programs disturb less; on a GPU they are on the clock. Opacus draws its noise by
torch's generator, so the lines "torch generator" compare like with like; the lines "engine" draw exact, cryptographic
noise where the model is. A second Opacus shows how far equal programs differ.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings

import torch
from opacus import PrivacyEngine

import lessnoise as ln
from lessnoise import learn
from lessnoise.learn.batch import tagged
from lessnoise.learn.loader import Place
from lessnoise_paper.training.networks import Dense, Network, module, network

BATCH = 256


def built(name: str) -> Network:
    """Of case study III, or 25 million parameters in wide layers."""
    wide = Network((28, 28, 1), (*(Dense(2175) for _ in range(6)), Dense(10, last=True)))
    return wide if name == "wide" else network(name)


def parts(name: str, device: str) -> tuple[torch.nn.Module, torch.optim.Optimizer, torch.utils.data.DataLoader]:
    model = module(built(name)).to(device)
    data = torch.utils.data.TensorDataset(torch.zeros(BATCH * 40, 1), torch.zeros(BATCH * 40).long())
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH)
    return model, torch.optim.SGD(model.parameters(), lr=0.15), loader


def shells(dimension: int) -> ln.Mechanism:
    """Noise in shells, of a length that is ordinary for training."""
    length = 1.1 * dimension**0.5
    return ln.Mechanism("shells", ln.Shells(dimension, (0.0, length, 1.01 * length), (0.5, 0.5)), (dimension,), 1.0)


def step_of(model, optimizer, loss, batch):  # noqa: ANN001, ANN201
    def step() -> None:
        images, labels = batch()
        optimizer.zero_grad()
        loss(model(images), labels).backward()
        optimizer.step()

    return step


def drawn(private, images, labels):  # noqa: ANN001, ANN201
    """The same records again and again, as if the loader had drawn them: its own time is not a step's."""
    loader, count = private.data_loader, itertools.count()

    def batch():  # noqa: ANN202
        token = f"{loader.collate_fn.name}{next(count)}"
        loader.places[token] = Place(None, last=True)
        return tagged((images, labels), token, BATCH)

    return batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--network", default="mnist", choices=("mnist", "cifar10", "wide"))
    parser.add_argument("--steps", type=int, default=30)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    clock = time.perf_counter if asked.device.startswith("cuda") else time.process_time
    dimension = built(asked.network).parameters
    height, width, colours = built(asked.network).image
    images = torch.rand(BATCH, colours, height, width, device=asked.device)
    labels = torch.randint(0, 10, (BATCH,), device=asked.device)
    mechanisms = {
        "gaussian": learn.gaussian(noise_multiplier=1.1, clip_norm=1, parameters=dimension),
        "l2": ln.Mechanism("l2", ln.Radial(dimension, 1, 0.02), (dimension,), 1.0),
        "shells": shells(dimension),
        "r1smg": ln.Mechanism("r1smg", ln.Radial(1, 2, 2.4), (dimension,), 1.0),
    }
    steps = {}
    for name in ("opacus", "opacus again"):
        model, optimizer, loader = parts(asked.network, asked.device)
        model, optimizer, _ = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
        )
        steps[name] = step_of(model, optimizer, torch.nn.functional.cross_entropy, lambda: (images, labels))
    for name, mechanism in mechanisms.items():
        for secure in (True, False):
            private = learn.make_private(
                *parts(asked.network, asked.device),
                loss=torch.nn.functional.cross_entropy,
                records=BATCH * 40,
                mechanism=mechanism,
                clip_norm=1,
                epochs=10**4,
                secure_mode=secure,
            )
            label = f"{name}, {'engine' if secure else 'torch generator'}"
            steps[label] = step_of(private.model, private.optimizer, private.loss, drawn(private, images, labels))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(asked.steps + 3):
        for name, step in steps.items():
            started = clock()
            step()
            if asked.device.startswith("cuda"):
                torch.cuda.synchronize()
            if turn >= 3:
                times[name].append(clock() - started)
    base = times["opacus"]
    print(f"{'step':28} {'median ms':>10} {'of opacus':>10}")
    for name, own in times.items():
        ratio = statistics.median(a / b for a, b in zip(own, base, strict=True))
        print(f"{name:28} {1e3 * statistics.median(own):10.2f} {ratio:10.3f}")


if __name__ == "__main__":
    main()
