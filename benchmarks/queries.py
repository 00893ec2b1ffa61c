"""Queries against what they are made from: a GROUP BY, one BLAS call. Run ``python benchmarks/queries.py [rows]``.

Each pair is timed in turn, in one run, and the best of each is compared. Peak memory is that of a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from lessnoise.query import Gram, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

BOX = ((-74.05, -73.75), (40.6, 40.9))
QUERY = Histogram.grid(["Lon", "Lat"], bins=(89, 89), bounds=BOX)


def write_points(path: Path, rows: int) -> None:
    """Random points, a few of them outside the box."""
    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = false").fetchall()
        connection.execute(
            f"COPY (SELECT -74.06 + 0.32 * (random() + random() + random()) / 3 AS Lon,"
            f" 40.59 + 0.32 * (random() + random()) / 2 AS Lat FROM range({rows})) TO '{path}' (FORMAT parquet)"
        ).fetchall()


def plain_group_by(path: Path) -> None:
    """What one would write by hand, wrong only for points that rounding moves across an edge."""
    widths = [(high - low) / 89 for low, high in BOX]
    cells = [
        f"floor(({c} - ({low:e})) / {w!r}::DOUBLE)" for c, (low, _), w in zip(("Lon", "Lat"), BOX, widths, strict=True)
    ]
    inside = " AND ".join(
        f"{c} >= {low:e} AND {c} <= {high:e}" for c, (low, high) in zip(("Lon", "Lat"), BOX, strict=True)
    )
    with duckdb.connect() as connection:
        connection.execute(
            f"SELECT {cells[0]}::INTEGER AS x, {cells[1]}::INTEGER AS y, count(*) FROM '{path}'"
            f" WHERE {inside} GROUP BY x, y"
        ).fetchnumpy()


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(name: str, ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> None:
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
    best = [min(times) for times in zip(*pairs, strict=True)]
    print(f"{name}: {best[0]:.2f} s against {best[1]:.2f} s, ratio {best[0] / best[1]:.2f}", flush=True)


def histogram(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        write_points(path, rows)
        name = f"histogram, {rows:.0e} points in Parquet, 89 x 89 cells, against a plain GROUP BY"
        compare(name, lambda: QUERY.answer(path), lambda: plain_group_by(path), 5)
        for what in ("histogram", "nothing"):
            done = subprocess.run(
                [sys.executable, __file__, "--memory", what, str(path)], capture_output=True, text=True, check=True
            )
            print(f"  peak memory with {what}: {done.stdout.strip()} MB", flush=True)


def gram(rows: int, columns: int) -> None:
    data = np.random.default_rng(0).normal(size=(rows, columns))
    query = Gram([f"c{place}" for place in range(columns)], norm=columns**0.5 * 1.2)
    compare(f"Gram of {rows} x {columns} against one BLAS call", lambda: query.answer(data), lambda: data.T @ data, 4)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        if sys.argv[2] == "histogram":
            QUERY.answer(sys.argv[3])
        status = Path("/proc/self/status").read_text()
        print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
    else:
        histogram(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
        gram(24016, 2400)
