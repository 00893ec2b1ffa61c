"""Speed of exact curves and calibration, beside two peers in the same run.

    pip install -e . && pip install diffprivlib "scikit-learn<1.8" dp-accounting
    python benchmarks/curves.py

Peers that are not installed are left out. Figures are medians over repeated cold computations
(caches emptied), on whatever machine runs this.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from clock import median_seconds

import lessnoise as ln
from lessnoise.mechanism import calibration
from lessnoise.mechanism.curve import delta_of, gaussian

if TYPE_CHECKING:
    from collections.abc import Callable


def median_ms(task: Callable[[], object], repeats: int = 7) -> float:
    return 1e3 * median_seconds(task, repeats, forget)


def forget() -> None:
    delta_of.cache_clear()
    calibration._unit_scale.cache_clear()


def import_ms() -> float:
    """Time of ``import lessnoise`` in a fresh interpreter, less the interpreter's own start."""

    def run(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    bare = statistics.median(run("pass") for _ in range(5))
    return 1e3 * (statistics.median(run("import lessnoise") for _ in range(5)) - bare)


def peers() -> dict[str, Callable[[], float]]:
    """Analytic-Gaussian calibration at (1, 1e-5) by other libraries."""
    found: dict[str, Callable[[], float]] = {}
    try:
        from diffprivlib.mechanisms import GaussianAnalytic

        found["diffprivlib"] = lambda: GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)._scale
    except ImportError:
        print("diffprivlib is not installed: left out")
    try:
        from dp_accounting import gaussian_mechanism

        found["dp_accounting"] = lambda: gaussian_mechanism.get_sigma_gaussian(1.0, 1e-5)
    except ImportError:
        print("dp_accounting is not installed: left out")
    return found


def main() -> None:
    big = 10**9
    published = ln.r1smg(epsilon=1e-10, delta=1e-7, sensitivity=1, shape=big, calibration="published")
    exact_l2 = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=big)
    target = {"epsilon": 0.5, "delta": 1e-7, "sensitivity": 2**0.5}
    rows = [
        ("import lessnoise", import_ms(), 500.0),
        ("one exact delta, R1SMG published, M = 1e9", median_ms(lambda: published.delta(1e-10)), 100.0),
        ("one exact delta, l2 mechanism, M = 1e9", median_ms(lambda: exact_l2.delta(1.0)), 100.0),
        (
            "one exact calibration, R1SMG, M = 7921",
            median_ms(lambda: ln.r1smg(**target, shape=7921, calibration="exact")),
            1000.0,
        ),
        ("one exact calibration, l2, M = 10", median_ms(lambda: ln.l2_mechanism(**target, shape=10)), 1000.0),
        ("one exact calibration, l2, M = 7921", median_ms(lambda: ln.l2_mechanism(**target, shape=7921)), 1000.0),
    ]
    print(f"{'task':48s} {'ms':>9s}   goal")
    for name, measured, goal in rows:
        print(f"{name:48s} {measured:9.2f}   <= {goal:g} ms")

    ours = median_ms(lambda: gaussian.gaussian_scale(1.0, 1e-5), 51)
    print(f"\n{'analytic Gaussian calibration at (1, 1e-5)':48s} {'ms':>9s}   sigma    ratio to lessnoise")
    print(f"{'lessnoise':48s} {ours:9.3f}   {gaussian.gaussian_scale(1.0, 1e-5):.5f}  1.0")
    for name, task in peers().items():
        theirs = median_ms(task, 21)
        print(f"{name:48s} {theirs:9.3f}   {task():.5f}  {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
