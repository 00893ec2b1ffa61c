"""Speed and memory of secure, exactly rounded noise, beside other generators and a memory copy, in one run.

    pip install -e . && pip install opendp diffprivlib randomgen torch     (peers that are not installed are left out)
    python benchmarks/noise.py                  # M = 10^3 .. 10^8, about 6 minutes
    python benchmarks/noise.py --quick          # M = 10^3 .. 10^6, under a minute
    python benchmarks/noise.py --output benchmarks/results/noise.md
    python benchmarks/noise.py --tails 1e10 --output benchmarks/results/tails.md      # only the long test of the tails

Every contender adds noise of deviation 1.7 to a float64 vector. Times are the least over repeats that take turns,
in nanoseconds a value: on the clock, and of all processors together, which other programs disturb less. Before each
call twice the value's memory is touched and freed, so that no time includes the system's search for memory. Ratios are
to ``value + sigma * numpy.random.default_rng().standard_normal(n)`` of the same run. Extra memory is the peak beyond
the value and the output, each measured in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import math
import os
import platform
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import lessnoise as ln
from lessnoise import noise as noise_engine

if TYPE_CHECKING:
    from collections.abc import Callable

    Task = Callable[[], object]

SIGMA = 1.7
REFERENCE = "NumPy PCG64"
SLOW = 20_000  # values for peers that take microseconds a value


# Contenders.


def described(law: Any, n: int) -> ln.Mechanism:  # noqa: ANN401
    claim = ln.Claim(1.0, 0.99, ln.Neighbours.ADD_REMOVE, "benchmark")
    return ln.Mechanism("benchmark", law, (n,), 1e-3, claim=claim)


def ours(value: np.ndarray, threads: int) -> dict[str, Task]:
    n = value.size
    root = math.sqrt(n)
    laws = {
        "Gaussian": ln.Radial(n, 2, SIGMA * math.sqrt(2.0)),
        "Laplace": ln.Laplace(SIGMA / math.sqrt(2.0)),
        "R1SMG": ln.Radial(1, 2, SIGMA * root * math.sqrt(2.0)),
        "l2": ln.Radial(n, 1, SIGMA / root),
        "generalized, p = 1.5": ln.GeneralizedGaussian(1.5, SIGMA),
    }
    single, own = value.astype(np.float32), value.copy()
    shells = noise_engine.Isotropic(noise_engine.ShellRadius((0.0, root, 2 * root, 4 * root), (0.2, 0.5, 0.3), n))
    gaussian = described(laws["Gaussian"], n)
    mechanisms = {name: described(law, n) for name, law in laws.items()}
    tasks: dict[str, Task] = {
        name: lambda m=mechanism: m.release(value, threads=threads) for name, mechanism in mechanisms.items()
    }
    tasks["shells"] = lambda: noise_engine.add_noise(shells, value, noise_engine.Stream.secure(), threads=threads)
    tasks["Gaussian, float32"] = lambda: gaussian.release(single, threads=threads)
    tasks["Gaussian, in place"] = lambda: gaussian.release(own, threads=threads, out=own)
    return {f"lessnoise {name}, {threads} thread{'s' * (threads > 1)}": task for name, task in tasks.items()}


def numpy_noise(value: np.ndarray, bits: Any) -> np.ndarray:  # noqa: ANN401
    return value + SIGMA * np.random.Generator(bits()).standard_normal(value.size)


def peers(value: np.ndarray) -> dict[str, Task]:
    spare = np.empty_like(value)
    tasks: dict[str, Task] = {
        REFERENCE: lambda: numpy_noise(value, np.random.PCG64),
        "NumPy SFC64": lambda: numpy_noise(value, np.random.SFC64),
        "memory copy": lambda: np.copyto(spare, value),
    }
    try:
        from randomgen import AESCounter

        tasks["randomgen AESCounter"] = lambda: numpy_noise(value, AESCounter)
    except ImportError:
        print("randomgen is not installed: left out", file=sys.stderr)
    try:
        import torch

        torch.set_num_threads(1)
        tensor = torch.from_numpy(value)
        tasks["torch.randn"] = lambda: tensor + SIGMA * torch.randn(tensor.shape, dtype=torch.float64)
    except ImportError:
        print("torch is not installed: left out", file=sys.stderr)
    return tasks


def slow_peers(count: int) -> dict[str, tuple[Task, int]]:
    """Peers that take microseconds a value, and how many values they are given."""
    tasks: dict[str, tuple[Task, int]] = {}
    values = np.zeros(count)
    try:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
        opendp = dp.m.make_gaussian(*space, scale=SIGMA)
        listed = values[: count // 20].tolist()
        tasks["OpenDP vector Gaussian"] = (lambda: opendp(listed), len(listed))
    except ImportError:
        print("opendp is not installed: left out", file=sys.stderr)
    try:
        from diffprivlib.mechanisms import GaussianAnalytic

        each = GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=0.45)
        tasks["diffprivlib GaussianAnalytic"] = (lambda: [each.randomise(v) for v in values.tolist()], count)
    except ImportError:
        print("diffprivlib is not installed: left out", file=sys.stderr)
    return tasks


# Measuring.


class Times(NamedTuple):
    """Least times of a task: on the clock, and of the processors."""

    wall: float = math.inf
    cpu: float = math.inf


def least(tasks: dict[str, Task], repeats: int, budget: float, touched: int = 0) -> dict[str, Times]:
    """Over turns that end with the time budget, but not before three."""
    best = dict.fromkeys(tasks, Times())
    end = time.perf_counter() + budget
    for turn in range(repeats):
        if turn >= 3 and time.perf_counter() > end:
            break
        for name, task in tasks.items():
            np.ones(touched)
            start, cpu = time.perf_counter(), time.process_time()
            task()
            found = time.perf_counter() - start, time.process_time() - cpu
            best[name] = Times(*map(min, best[name], found))
    return best


def table(n: int, budget: float) -> list[str]:
    value = np.random.default_rng(1).normal(size=n) * 100.0
    tasks = peers(value) | ours(value, 1) | (ours(value, 2) if n >= 1 << 17 else {})
    if n < 10**8:
        for task in tasks.values():
            task()
    times = {name: (t, n) for name, t in least(tasks, max(3, min(200, 10**8 // n)), budget, 2 * n).items()}
    if n == 1000:
        for name, (task, count) in slow_peers(SLOW).items():
            times[name] = least({name: task}, 3, 10.0)[name], count
    base = times[REFERENCE][0]
    rows = [
        f"\n## M = 10^{round(math.log10(n))}\n",
        "| | ns | ratio | processor ns | ratio |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, (t, count) in sorted(times.items(), key=lambda item: item[1][0].cpu / item[1][1]):
        wall, cpu = 1e9 * t.wall / count, 1e9 * t.cpu / count
        ratios = wall / (1e9 * base.wall / n), cpu / (1e9 * base.cpu / n)
        rows.append(f"| {name} | {wall:.3g} | {ratios[0]:.3g} | {cpu:.3g} | {ratios[1]:.3g} |")
    return rows


def load_compiled_code() -> None:
    """As a process has done after 2^22 values; before, NumPy draws the same bits."""
    for group in ("independent", "isotropic"):
        for kind in (np.float64, np.float32):
            noise_engine.compiled_kernels(group, kind)


def first_call() -> list[str]:
    """What a user waits for who releases one small vector in a new process, and for the first large one."""
    rows = ["\n## The first release of a process\n", "| | first, ms | second, ms |", "|---|---:|---:|"]
    for name, n in (("Gaussian, M = 10^3", 10**3), ("Gaussian, M = 10^7, compiled code in its cache", 10**7)):
        code = (
            "import time, numpy as np, lessnoise as ln\n"
            f"m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape={n})\n"
            f"m.check(); v = np.zeros({n}); v += 1\n"
            "for _ in range(2):\n"
            "    t = time.perf_counter(); m.release(v); print(1e3 * (time.perf_counter() - t))\n"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        rows.append(f"| {name} | {float(found[0]):.3g} | {float(found[1]):.3g} |")
    return rows


MEMORY = """
import sys
import numpy as np
sys.path.insert(0, {folder!r})
import noise
def status(name):
    return next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith(name)) / 1024
value = np.full({n}, 3.25)
noise.one({name!r}, value[: 1 << 22])()
build = noise.one({name!r}, value)
before = status('VmRSS')
open('/proc/self/clear_refs', 'w').write('5')
kept = build()
print(status('VmHWM') - before - {output})
"""


def one(name: str, value: np.ndarray) -> Task:
    """A single contender, without the copies that the others need."""
    n, root = value.size, math.sqrt(value.size)
    laws = {
        "lessnoise Gaussian": ln.Radial(n, 2, SIGMA * math.sqrt(2.0)),
        "lessnoise R1SMG": ln.Radial(1, 2, SIGMA * root * math.sqrt(2.0)),
        "lessnoise l2": ln.Radial(n, 1, SIGMA / root),
    }
    mechanism = described(laws[name], n)
    mechanism.check()
    return lambda: mechanism.release(value, threads=2)


def memory(n: int) -> list[str]:
    if not Path("/proc/self/clear_refs").exists():
        return []
    rows = [f"\n## Extra memory at M = 10^{round(math.log10(n))}, 2 threads, beyond value and output\n"]
    rows += ["| | MiB |", "|---|---:|"]
    for name in ("lessnoise Gaussian", "lessnoise R1SMG", "lessnoise l2"):
        code = MEMORY.format(folder=str(Path(__file__).parent), n=n, name=name, output=8 * n / 2**20)
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        rows.append(
            f"| {name} | {float(found.stdout):.1f} |" if found.returncode == 0 else f"| {name} | not measured |"
        )
    return rows


# The long test of the tails.


def tails(count: int) -> list[str]:
    """P(|x| > 5) and P(|x| > 6) of so many standard normals, on two threads."""
    from lessnoise.noise.selftest import _Half

    stream = noise_engine.Stream.secure().claim()
    halves = [_Half(stream, half) for half in (0, 1)]
    limit = -(-count // (1 << 15))
    start = time.perf_counter()
    threads = [threading.Thread(target=half.draw, args=(math.inf, limit, None)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - start
    n = sum(half.done for half in halves) << 14
    rows = [f"\n## Tails of {n:.4g} standard normals, {elapsed:.0f} s on two threads\n"]
    rows += ["| | seen | expected | standard deviations |", "|---|---:|---:|---:|"]
    for t in range(1, 7):
        seen = int(halves[0].tails[t - 1] + halves[1].tails[t - 1])
        p = math.erfc(t / math.sqrt(2.0))
        rows.append(
            f"| P(\\|x\\| > {t}) | {seen} | {n * p:.1f} | {(seen - n * p) / math.sqrt(n * p * (1.0 - p)):+.2f} |"
        )
    return rows


def heading(arguments: list[str]) -> list[str]:
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    names = ("numpy", "numba", "cryptography", "torch", "randomgen", "opendp", "diffprivlib")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names if name in sys.modules)
    return [
        "# Measured noise\n",
        f"- date: {datetime.datetime.now(tz=datetime.UTC).date()}",
        f"- command: `python benchmarks/noise.py {' '.join(arguments)}`".rstrip(" `") + "`",
        f"- machine: {model}, {os.cpu_count()} logical cores, {platform.system()}, Python {platform.python_version()}",
        f"- versions: {versions}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory of secure, exactly rounded noise.")
    parser.add_argument("--quick", action="store_true", help="up to M = 10^6 only")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds for each size, beyond three repeats")
    parser.add_argument("--tails", type=float, help="only the long test of the tails, over so many draws")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []
    if options.tails:
        lines += tails(int(options.tails))
        print("\n".join(lines), flush=True)
    else:
        load_compiled_code()
        for exponent in range(3, 7 if options.quick else 9):
            part = table(10**exponent, options.budget * (5 if exponent == 8 else 1))
            print("\n".join(part), flush=True)
            lines += part
        for part in (first_call(), memory(10**7 if options.quick else 10**8)):
            print("\n".join(part), flush=True)
            lines += part
    if options.output:
        arguments = [a for a in sys.argv[1:] if not a.startswith("--output") and a != str(options.output)]
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text("\n".join(heading(arguments) + lines) + "\n")


if __name__ == "__main__":
    main()
