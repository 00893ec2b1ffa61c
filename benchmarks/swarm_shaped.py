"""A made-up table in the shape of Swarm Behaviour, and the time of case study II on it.

python benchmarks/swarm_shaped.py FOLDER writes FOLDER/Flocking.csv: 24,016 rows of 200 birds with 12 numbers each, and
whether they fly together. It then runs the study with one release at one epsilon, and says how long each part took.
For all of it: lessnoise study pca --table swarm --data FOLDER.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from lessnoise_paper.data.tables import swarm
from lessnoise_paper.experiments.components import run_pca

ROWS, BIRDS, AT_A_TIME = 24_016, 200, 2_000
NAMES = ("x", "y", "xVel", "yVel", "xA", "yA", "xS", "yS", "xC", "yC", "nAC", "nS")


def rows_of(together: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions, velocities, alignment, separation, cohesion and two counts of every bird."""
    size = len(together)

    def either(yes: float, no: float) -> np.ndarray:
        return np.where(together == 1, yes, no)[:, np.newaxis, np.newaxis]

    def normal() -> np.ndarray:
        return rng.standard_normal((size, BIRDS, 2))

    place = rng.uniform(-1500, 1500, (size, 1, 2)) * either(1.0, 0.2) + either(250.0, 1100.0) * normal()
    velocity = either(1.0, 0.15) * rng.uniform(-8, 8, (size, 1, 2)) + either(1.5, 6.0) * normal()
    cohesion = 0.1 * normal() - 1e-3 * (place - place.mean(axis=1, keepdims=True))
    counts = [rng.poisson(either(*means), (size, BIRDS, 1)) for means in ((60.0, 12.0), (4.0, 1.0))]
    parts = [place, velocity, either(0.8, 0.2) * normal(), normal(), cohesion, *counts]
    return np.concatenate(parts, axis=2).reshape(size, -1)


def write(path: Path) -> None:
    """The table, with seed 0."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, ROWS)
    with path.open("w", encoding="ascii") as file:
        file.write(",".join(f"{name}{bird + 1}" for bird in range(BIRDS) for name in NAMES) + ",Class\n")
        for start in range(0, ROWS, AT_A_TIME):
            some = labels[start : start + AT_A_TIME]
            np.savetxt(file, np.column_stack([rows_of(some, rng), some]), fmt="%.4g", delimiter=",")


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "Flocking.csv").exists():
        write(folder / "Flocking.csv")
    start, label_before = time.process_time(), ""

    def report(label: str, done: int, total: int) -> None:
        nonlocal label_before
        if label != label_before:
            print(f"{time.process_time() - start:7.1f} s of processor time, {done} of {total}: {label}", flush=True)
        label_before = label

    table = swarm(folder)
    report("the table is read", 0, 1)
    found = run_pca(table, epsilons=(1.6,), repetitions=1, progress=report)
    report("done", 1, 1)
    for point in found.points:
        print(f"{point.part:13s} {point.label:28s} {point.deviation:8.4g} {point.accuracy:.1%} {point.verdict_word}")


if __name__ == "__main__":
    main()
