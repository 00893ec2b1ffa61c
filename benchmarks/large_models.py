"""Memory and time of a private step, with whole gradients ("hooks") and with those of one layer at a time ("ghost").

    python benchmarks/large_models.py [width] [blocks] [records a batch] [words a record] [cpu or cuda]

Blocks of two layers over sequences. Each mode has a process of its own. Memory is the peak above what the process, the
model and its first, small step take: of the process on a CPU, of the device's allocator on a GPU. "parts" is ghost with
a quarter of the batch at a time. Noise is torch's, the same in all: what is measured is the sums.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import DataLoader, TensorDataset

from lessnoise import learn

MODES = ("hooks", "ghost", "parts")
STEPS = 3


class Block(nn.Module):
    """Two layers, added to what comes in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sequences (records, words, width)."""
        return x + self.second(F.gelu(self.first(x)))


class Classifier(nn.Module):
    """Blocks, and a layer on the mean of a sequence."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.blocks, self.last = nn.Sequential(*(Block(width) for _ in range(blocks))), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sequences (records, words, width)."""
        return self.last(self.blocks(x).mean(1))


def peak(device: torch.device) -> float:
    """Of memory so far, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(mode: str, width: int, blocks: int, rows: int, words: int, device: torch.device) -> str:
    """One mode: parameters, peak memory of a step in MiB, and its least time in milliseconds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    model = Classifier(width, blocks).to(device)
    data = TensorDataset(torch.randn(rows, words, width), torch.arange(rows) % 10)
    count = sum(p.numel() for p in model.parameters())
    private = learn.make_private(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        DataLoader(data, batch_size=rows),
        loss=F.cross_entropy,
        records=rows,
        mechanism=learn.gaussian(noise_multiplier=1.0, clip_norm=1.0, parameters=count),
        clip_norm=1.0,
        epochs=STEPS + 1,
        secure_mode=False,
        grad_sample_mode="hooks" if mode == "hooks" else "ghost",
    )
    small = next(iter(private.virtual(max_rows=2)))  # the checks before the first step
    private.loss(private.model(small[0].to(device)), small[1].to(device)).backward()
    private.optimizer.step()
    before = peak(device)
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        for x, y in private.virtual(max_rows=-(-rows // 4) if mode == "parts" else rows):
            private.optimizer.zero_grad()
            private.loss(private.model(x.to(device)), y.to(device)).backward()
            private.optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return f"| {mode} | {count:,} | {rows} | {words} | {peak(device) - before:,.0f} | {1000 * min(times):,.0f} |"


if __name__ == "__main__":
    given = sys.argv[1:]
    if given and given[0] in MODES:
        print(measure(given[0], *(int(number) for number in given[1:5]), torch.device(given[5])))
    else:
        sizes = [*given, *("256", "3", "64", "16", "cpu")[len(given) :]]
        print("| mode | parameters | records | words | MiB | ms a step |\n|---|---|---|---|---|---|", flush=True)
        for one in MODES:
            subprocess.run([sys.executable, __file__, one, *sizes], check=True)
