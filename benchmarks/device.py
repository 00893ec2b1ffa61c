"""Noise on a GPU: speed beside ``torch.randn``, bits beside the CPU's, failures.

    python benchmarks/device.py             # all of it, into benchmarks/results/device.md
    python benchmarks/device.py noise bits  # some parts

Every ratio is of one run on one machine. Training steps are in ``benchmarks/learning.py --device cuda``.
"""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import platform
import statistics
import sys
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import lessnoise as ln
from lessnoise.mechanism import device_form, prepare_noise
from lessnoise.noise import (
    AcrossSteps,
    ChaChaStream,
    GammaRadius,
    Independent,
    Isotropic,
    NormalRadius,
    Real,
    ShellRadius,
    Stream,
    add_noise_on_device,
    laplace,
    normal,
    poisson_sample,
    run_device_selftest,
)
from lessnoise.noise.device import engine, forms, twin
from lessnoise.noise.device.stream import TILE, claimed
from lessnoise.noise.grid import Grid

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = Path(__file__).parent / "results" / "device.md"
LARGE, BITS_COUNT, PART = 10**8, 10**9, 1 << 24
KEY = bytes(range(7, 39))
GAUSSIAN = Independent(normal(), Real.root(Fraction(3)))


def laws(count: int) -> dict[str, forms.DeviceForm]:
    return {
        "Gaussian": GAUSSIAN,
        "Laplace": Independent(laplace(), Real.exactly(1.5)),
        "l2": Isotropic(GammaRadius(float(count), 1.0, 0.7)),
        "R1SMG": Isotropic(NormalRadius(Fraction(count))),
        "shells": Isotropic(ShellRadius((0.0, 1e4, 3e4), (0.25, 0.75), count)),
        "geometric": device_form(ln.Geometric(0.1), (count,)),
        "discrete Gaussian": device_form(
            ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=10, shape=count).law, (count,)
        ),
        "across 4 steps": AcrossSteps(Real.exactly(2.0), ((7, 1.0), (6, -0.5), (5, -0.125), (4, -0.0625))),
    }


def milliseconds(work: Callable[[], object], repetitions: int = 15) -> float:
    times = []
    for _ in range(3):
        work()
    for _ in range(repetitions):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def _release(form: forms.DeviceForm, value: torch.Tensor, out: torch.Tensor) -> None:
    add_noise_on_device(form, value, ChaChaStream.secure(), out=out)


def noise() -> list[str]:
    lines = [
        "## Noise for float32 tensors (int64 for integer laws), key to output",
        "",
        "Milliseconds, medians of 15; `randn` is `value + sigma * torch.randn(n)`.",
        "",
        "| n | noise | ms | ratio to randn | memory beyond value and output, MB |",
        "|---:|---|---:|---:|---:|",
    ]
    for n in (26_010, 10**6, 25 * 10**6, LARGE):
        value = torch.zeros(n, device="cuda")
        whole = torch.zeros(n, dtype=torch.int64, device="cuda")
        plain = milliseconds(lambda value=value, n=n: value + 1.7 * torch.randn(n, device="cuda"))
        lines.append(f"| {n:,} | randn | {plain:.3f} | 1 | |")
        for name, form in laws(n).items():
            given = whole if name in ("geometric", "discrete Gaussian") else value
            out = torch.empty_like(given)
            release = functools.partial(_release, form, given, out)
            release()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            release()
            more = (torch.cuda.max_memory_allocated() - before) / 1e6
            took = milliseconds(release)
            lines.append(f"| {n:,} | {name} | {took:.3f} | {took / plain:.2f} | {more:.1f} |")
        del value, whole
    value = torch.zeros(LARGE, device="cuda")
    fast = milliseconds(lambda: add_noise_on_device(GAUSSIAN, value, ChaChaStream.secure()))
    law = ln.Radial(LARGE, 2.0, 2.4)

    def by_the_cpu() -> torch.Tensor:
        array = value.cpu().numpy()
        return torch.from_numpy(prepare_noise(law, array, Stream.secure())()).cuda()

    slow = milliseconds(by_the_cpu, 3)
    lines += ["", f"The CPU's engine with the way there and back: {slow:.0f} ms, {slow / fast:.0f} times as long.", ""]
    return lines


# The same bits as the CPU's, for 10^9 values of each law.

_shared: dict[str, object] = {}


def _part(first: int) -> str:
    """The hash of a part by the twin, in a process of its own; the key is a known one."""
    form, line, stream = _shared["form"], _shared["line"], _shared["stream"]
    stream._process = os.getpid()
    size = min(PART, BITS_COUNT - first)
    digest = hashlib.sha256()
    for start in range(first, first + size, 32 * TILE):
        part = min(32 * TILE, first + size - start)
        if line is None:
            digest.update(twin.integers(form, stream, start // TILE, part).tobytes())
        else:
            digest.update(twin.rounded(line, stream, start // TILE, np.zeros(part)).astype(np.float32).tobytes())
    return digest.hexdigest()


class _Recorded(engine.Kernels):
    """The kernels; which line was drawn is remembered."""

    def add(self, line: twin.Line) -> None:
        _shared["line"] = line
        super().add(line)


def bits() -> list[str]:
    lines = [
        f"## The same key, the same bits: {BITS_COUNT:,} values of each law",
        "",
        f"SHA-256 of the outputs (parts of 2^24 values) by the GPU and by NumPy on {os.cpu_count()} cores.",
        "",
        "| noise | parts that differ | first hash | GPU, s | CPU, s |",
        "|---|---:|---|---:|---:|",
    ]
    for name, form in laws(BITS_COUNT).items():
        start = time.perf_counter()
        stream = claimed(KEY)
        whole = name in ("geometric", "discrete Gaussian")
        kind = torch.int64 if whole else torch.float32
        value = torch.zeros(BITS_COUNT, dtype=kind, device="cuda")
        _shared.update(form=form, stream=stream, line=None)
        grid = Grid(1.0) if whole else Grid.of(form.deviation(BITS_COUNT), np.float32)
        forms.add(form, _Recorded(value, value, stream), grid)
        torch.cuda.synchronize()
        on_gpu = time.perf_counter() - start
        starts = range(0, BITS_COUNT, PART)
        found = [hashlib.sha256(value[at : at + PART].cpu().numpy().tobytes()).hexdigest() for at in starts]
        del value
        start = time.perf_counter()
        with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
            expected = pool.map(_part, starts, chunksize=1)
        took = time.perf_counter() - start
        differ = sum(one != other for one, other in zip(found, expected, strict=True))
        lines.append(f"| {name} | {differ} | {found[0][:16]} | {on_gpu:.2f} | {took:.0f} |")
        print(lines[-1], flush=True)
    return [*lines, ""]


def selftest() -> list[str]:
    checks = run_device_selftest("cuda", 15.0)
    failed = [check.name for check in checks if not check.passed]
    lines = ["## `lessnoise selftest --device cuda`", "", f"{len(checks)} tests, failed: {failed or 'none'}.", ""]
    shown = [check for check in checks if check.name.startswith(("P(", "moment", "quotients", "square roots", "words"))]
    lines += [f"- {check.name}: {check.seen:.3g} (allowed {check.allowed:.3g})" for check in shown]
    return [*lines, ""]


def failures() -> list[str]:
    """What must be refused, or end in one clear error with nothing left behind."""
    lines = ["## Failures", ""]
    value = torch.zeros(10_000, device="cuda")
    add_noise_on_device(GAUSSIAN, value, ChaChaStream.secure())
    graph, stream = torch.cuda.CUDAGraph(), ChaChaStream.secure()
    try:
        with torch.cuda.graph(graph):
            add_noise_on_device(GAUSSIAN, value, stream)
        lines.append("- a captured graph: NOT refused")
    except ln.LessnoiseError as error:
        lines.append(f"- a captured graph: {error} (key drawn: {not stream.unclaimed})")
    torch.cuda.synchronize()
    room = torch.cuda.mem_get_info()[0] // 4
    filling = torch.empty(int(room * 0.75), device="cuda")
    large = torch.zeros(int(room * 0.2), device="cuda")
    stream = ChaChaStream.secure()
    try:
        ln.Mechanism("gaussian", ln.Radial(large.numel(), 2.0, 1.0), (large.numel(),), 1.0).release(large)
        lines.append("- out of memory: not met")
    except (torch.OutOfMemoryError, ln.LessnoiseError) as error:
        lines.append(f"- out of memory: {type(error).__name__}, before a key is drawn")
    del filling, large
    torch.cuda.empty_cache()
    chosen = poisson_sample(ChaChaStream.secure().claim(), 10**8, 0.001, 0, torch.device("cuda"))
    lines.append(f"- a Poisson sample of 10^8 records at 0.001: {chosen.numel():,} places")
    return [*lines, ""]


PARTS = {"noise": noise, "bits": bits, "selftest": selftest, "failures": failures}


def main(names: list[str]) -> None:
    chosen = names or list(PARTS)
    versions = f"torch {torch.__version__}, Triton {__import__('triton').__version__}, NumPy {np.__version__}"
    text = [
        "# The engine on a GPU",
        "",
        f"{torch.cuda.get_device_name()}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}; "
        f"{datetime.now(UTC):%Y-%m-%d}. Command: `python benchmarks/device.py {' '.join(names)}`".rstrip("` ")
        + "`. "
        "Keys are fresh, but for the comparison of bits, whose key is in the script.",
        "",
    ]
    for name in chosen:
        print(f"-- {name}", flush=True)
        start = time.perf_counter()
        text += PARTS[name]()
        print(f"-- {name}: {time.perf_counter() - start:.0f} s", flush=True)
        out = Path(os.environ.get("OUT", RESULT.parent)) / RESULT.name
        out.write_text("\n".join(text).rstrip() + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main(sys.argv[1:])
