"""Private statistics of groups against a plain GROUP BY of the same statistics, on DuckDB over one Parquet file.

    python benchmarks/tables.py [--quick] [--rows 1e7] [--repeats 7]

A thousand groups and five statistics: a count, two means, a sum and a variance; then the same with three quantiles.
Both sides run in turn in one process with the same threads, and the best of each is compared, and the median; of CPU
time the best, which a busy machine disturbs less. The private side is all of it: plan, reading, noise, intervals. Peak
memory is that of a process of its own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb

import lessnoise as ln

GROUPS = 1000
KEYS = {"city": [f"city {place}" for place in range(GROUPS)], "code": list(range(GROUPS))}
FIVE = (
    ln.count(),
    ln.mean("income", bounds=(0, 120_000)),
    ln.mean("age", bounds=(0, 120)),
    ln.sum("spent", bounds=(0, 200)),
    ln.variance("hours", bounds=(0, 80)),
)
QUANTILES = ln.quantiles("income", [0.25, 0.5, 0.75], bounds=(0, 120_000))
PLAIN = "count(*), avg(income), avg(age), sum(spent), var_pop(hours)"
CASES = {
    "text keys": ("city", False),
    "whole keys": ("code", False),
    "text keys, with quantiles": ("city", True),
}


def write_people(path: Path, rows: int) -> None:
    """Random people in a thousand cities."""
    columns = (
        "'city ' || k AS city, k AS code, 60000 * (random() + random()) AS income, "
        "(18 + floor(72 * random()))::INTEGER AS age, 200 * random() * random() AS spent, "
        "40 * (random() + random()) AS hours"
    )
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false").fetchall()
        keys = f"SELECT floor({GROUPS} * random())::BIGINT AS k FROM range({rows})"
        connection.execute(f"COPY (SELECT {columns} FROM ({keys})) TO '{path}' (FORMAT parquet)").fetchall()


def plain(path: Path, by: str, quantiles: bool) -> list[float]:
    """What one would write by hand, without privacy."""
    more = ", quantile_cont(income, [0.25, 0.5, 0.75])" if quantiles else ""
    start, used = time.perf_counter(), time.process_time()
    with duckdb.connect() as connection:
        connection.execute(f"SELECT {by}, {PLAIN}{more} FROM '{path}' GROUP BY {by}").fetchnumpy()
    return [time.perf_counter() - start, time.process_time() - used]


def private(path: Path, by: str, quantiles: bool) -> list[float]:
    """Seconds of all, of the reading, of the noise with its intervals; CPU time of all, and of the reading."""
    start, used = time.perf_counter(), time.process_time()
    asked = (*FIVE, QUANTILES) if quantiles else FIVE
    job = ln.Table(path).group_by(by, keys=KEYS[by]).aggregate(*asked).prepare(epsilon=1, delta=1e-6)
    planned, before = time.perf_counter(), time.process_time()
    answer = job.answer()
    read, after = time.perf_counter(), time.process_time()
    job.release(answer)
    end = time.perf_counter()
    return [end - start, read - planned, end - read, time.process_time() - used, after - before]


def compare(name: str, path: Path, repeats: int) -> None:
    by, quantiles = CASES[name]
    first = private(path, by, quantiles)[0]
    pairs = [(private(path, by, quantiles), plain(path, by, quantiles)) for _ in range(repeats)]
    ours, theirs = zip(*pairs, strict=True)
    whole, reading, noise, whole_cpu, reading_cpu = (min(each) for each in zip(*ours, strict=True))
    best, best_cpu = (min(each) for each in zip(*theirs, strict=True))
    usual = statistics.median(each[0] for each in theirs)
    middle = statistics.median(each[0] for each in ours)
    print(
        f"| {name} | {best:.2f} s | {reading:.2f} s | {noise:.2f} s | {whole:.2f} s | {reading / best:.2f} | "
        f"{whole / best:.2f} | {middle / usual:.2f} | {reading_cpu / best_cpu:.2f} | {whole_cpu / best_cpu:.2f} | "
        f"{first:.2f} s |",
        flush=True,
    )


def peak(side: str, name: str, path: Path) -> str:
    command = [sys.executable, __file__, "--memory", side, name, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def memory(side: str, name: str, path: Path) -> None:
    """Run one side and print the peak memory of this process, in MB."""
    if side != "nothing":
        {"plain": plain, "private": private}[side](path, *CASES[name])
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) // 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3e5 rows, and each side once")
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--memory", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        memory(given.memory[0], given.memory[1], Path(given.memory[2]))
        return
    rows, repeats = (300_000, 1) if given.quick else (int(given.rows), given.repeats)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "people.parquet"
        write_people(path, rows)
        threads = duckdb.sql("SELECT current_setting('threads')").fetchall()[0][0]
        print(
            f"{datetime.now(UTC):%Y-%m-%d}, {rows:,} rows, {path.stat().st_size >> 20} MB, {GROUPS:,} groups, ", end=""
        )
        print(f"DuckDB {duckdb.__version__} with {threads} threads, {repeats} runs of each side in turn\n")
        ratios = "reading/plain | private/plain | medians | reading, CPU | private, CPU"
        print(f"| question | plain | reading | noise | private | {ratios} | first run |")
        print("|---" * 11 + "|")
        for name in CASES:
            compare(name, path, repeats)
        print("\n| peak memory | nothing | plain | private |")
        print("|---|---|---|---|")
        for name in CASES:
            sizes = [f"{peak(side, name, path)} MB" for side in ("nothing", "plain", "private")]
            print(f"| {name} | {' | '.join(sizes)} |", flush=True)


if __name__ == "__main__":
    main()
