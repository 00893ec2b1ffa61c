"""Time of the least-noise search and distance to the proved optimum, over a grid of 60 settings.

    pip install -e .
    python benchmarks/least.py [--bounds]

Cold: nothing remembered. Warm: the answer lies on disk, memory is empty. ``--bounds`` also proves the lower bounds. The
ratio to the time of the analytic Gaussian's calibration, in the same run, is the price of the search.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time

DIMENSIONS = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000)
EPSILONS = (0.01, 0.1, 0.5, 1.0, 4.0, 8.0)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LESSNOISE_CACHE"] = folder
        run("--bounds" in sys.argv)


def run(with_bounds: bool) -> None:
    import lessnoise as ln
    from lessnoise.mechanism import calibration
    from lessnoise.mechanism.curve import delta_of
    from lessnoise.mechanism.least import builder, search

    def forget() -> None:
        for cache in (delta_of, calibration._unit_scale, search.find, builder.proved_bound):
            cache.cache_clear()

    cold, warm, peer, bound, gaps = [], [], [], [], []
    print(f"{'M':>6} {'eps':>6} {'ratio':>8} {'cold s':>8} {'warm ms':>8} {'gap %':>7} {'bound s':>8}  law")
    for dimension in DIMENSIONS:
        for epsilon in EPSILONS:
            target = {"epsilon": epsilon, "delta": 1e-6, "sensitivity": 1.0, "shape": dimension}
            forget()
            start = time.perf_counter()
            found = ln.least_noise(**target)
            cold.append(time.perf_counter() - start)
            forget()
            start = time.perf_counter()
            ln.least_noise(**target)
            warm.append(time.perf_counter() - start)
            start = time.perf_counter()
            gaussian = ln.analytic_gaussian(**target)
            peer.append(time.perf_counter() - start)
            if with_bounds:
                start = time.perf_counter()
                gaps.append(found.optimality - 1.0)
                bound.append(time.perf_counter() - start)
            proved = f"{100 * gaps[-1]:7.3f} {bound[-1]:8.2f}" if with_bounds else f"{'':>16}"
            ratio = found.expected_loss / gaussian.expected_loss
            choice = found.design.choice if found.design is not None else ""
            times = f"{cold[-1]:8.2f} {1e3 * warm[-1]:8.1f}"
            print(f"{dimension:6d} {epsilon:6g} {ratio:8.4f} {times} {proved}  {choice}", flush=True)
    print(f"cold: median {statistics.median(cold):.2f} s, most {max(cold):.2f} s")
    print(f"warm: median {1e3 * statistics.median(warm):.1f} ms, most {1e3 * max(warm):.1f} ms")
    price = statistics.median(c / p for c, p in zip(cold, peer, strict=True))
    print(f"cold over the Gaussian's calibration: median {price:.0f} times")
    if with_bounds:
        print(f"bound: median {statistics.median(bound):.2f} s, most {max(bound):.2f} s")
        near = sum(gap < 0.01 for gap in gaps)
        print(f"within 1% of the bound: {near} of {len(gaps)}; worst gap {100 * max(gaps):.2f}%")


if __name__ == "__main__":
    main()
