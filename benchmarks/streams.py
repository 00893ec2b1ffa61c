"""Streams: errors beside the offline optimum, the time of a push, and 200 processes that are killed.

Run ``python -P benchmarks/streams.py``, or with one of ``errors``, ``times`` and ``kill 200``; without -P Numba takes
the ``coverage.py`` beside it for another, and the noise is drawn without compiled code. Prints the tables of
``results/streams.md``; exit code 1 if a killed stream told anything else than one that was not.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.signal  # noqa: F401  (so that a forked process begins to push at once)

import lessnoise as ln

STRATEGIES = ("tree", "buffers", "banded", "square-root")
OPTIMA = {64: 78.7, 256: 113.7, 1024: 155.9}  # of Gaussian noise that may see all periods at once, by convex duality


def errors() -> None:
    print("| periods | tree | buffers | banded | square-root | offline optimum, Gaussian | over it | planned in |")
    print("|---|---|---|---|---|---|---|---|")
    for periods in (16, 64, 256, 365, 1024, 4096, 10_000):
        start = time.perf_counter()
        found = {
            name: ln.Stream(periods=periods, epsilon=1, delta=1e-6, strategy=name).query_error for name in STRATEGIES
        }
        seconds = time.perf_counter() - start
        best = OPTIMA.get(periods)
        over = ("", "") if best is None else (f"{best}", f"{100.0 * (found['square-root'] / best - 1.0):.2f}%")
        columns = " | ".join(f"{found[name]:.1f}" for name in STRATEGIES)
        print(f"| {periods} | {columns} | {over[0]} | {over[1]} | {seconds:.1f} s |")


def times() -> None:
    print("| entries | strategy | state | a push, median | fastest |")
    print("|---|---|---|---|---|")
    for entries in (1, 10_000, 100_000):
        for strategy in STRATEGIES:
            if strategy in ("banded", "square-root") and entries > 10_000:
                continue  # more than they are meant for: all that is kept goes to the disk in each period
            for kept in ("memory", "disk"):
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "s" if kept == "disk" else None
                    options = {"shape": entries, "strategy": strategy, "path": path, "keep": False}
                    with ln.Stream(periods=1024, epsilon=1, delta=1e-6, **options) as stream:
                        value = np.arange(entries) % 1000
                        seconds = []
                        for _ in range(140):
                            start = time.perf_counter()
                            stream.push(value)
                            seconds.append(time.perf_counter() - start)
                found = 1e3 * np.array(seconds[90:])  # the noise engine has loaded its compiled code by then
                print(f"| {entries} | {strategy} | {kept} | {np.median(found):.2f} ms | {found.min():.2f} ms |")


def told_by(folder: Path, patience: float) -> bytes:
    """What a process tells of the stream until it is killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        stream = ln.Stream.open(folder)
        for period in range(max(stream.period, 1), stream.plan.periods + 1):
            os.write(writing, f"{period} {stream.push(period, period=period)!r}\n".encode())
        os._exit(0)
    os.close(writing)
    time.sleep(patience)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    content = b""
    while part := os.read(reading, 1 << 16):
        content += part
    os.close(reading)
    return content


def kill(trials: int) -> int:
    wrong = 0
    for strategy in STRATEGIES:
        periods, told = 10_000, {}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "s"
            options = {"periods": periods, "epsilon": 1, "delta": 1e-6, "strategy": strategy}
            ln.Stream(path=folder, rng=np.random.default_rng(1), **options).close()
            for _ in range(trials // len(STRATEGIES)):
                content = told_by(folder, random.uniform(0.0, 0.2))
                for line in content.decode().splitlines():
                    period, total = line.split()
                    wrong += told.setdefault(int(period), float(total)) != float(total)
            with ln.Stream.open(folder) as stream:
                reached, totals = stream.period, stream.totals.tolist()
            whole = ln.Stream(rng=np.random.default_rng(1), **options)
            expected = [whole.push(period) for period in range(1, reached + 1)]
            wrong += totals != expected
            wrong += any(expected[period - 1] != total for period, total in told.items())
        killed = trials // len(STRATEGIES)
        print(f"{strategy}: {killed} processes killed on the way through {reached} periods, {wrong} differences")
    return wrong


def main() -> int:
    asked = sys.argv[1:] or ["errors", "times", "kill"]
    if asked[0] == "errors" or len(sys.argv) == 1:
        errors()
    if asked[0] == "times" or len(sys.argv) == 1:
        times()
    if asked[0] == "kill" or len(sys.argv) == 1:
        return int(kill(int(asked[1]) if len(sys.argv) > 2 else 200) > 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
