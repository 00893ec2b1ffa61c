"""Time of one release of counts by H_b and DAWA, as multiples of plain Laplace noise in the same run.

    pip install -e .
    python benchmarks/counts.py

All use cryptographic randomness. The published stage 1 of DAWA, which compares every interval, is timed on the smaller
map only. Figures are medians, on whatever machine runs this.
"""

from __future__ import annotations

import warnings

import numpy as np
from clock import median_seconds

import lessnoise as ln


def main() -> None:
    warnings.simplefilter("ignore", ln.ClaimWarning)
    rng = np.random.default_rng(0)
    print(f"{'map':>11s} {'mechanism':>12s} {'ms':>9s} {'x Laplace':>10s}")
    for side in (89, 1024):
        shape = (side, side)
        counts = rng.poisson(np.abs(rng.normal(size=shape)) ** 3).astype(float)
        mechanisms = [
            ln.laplace(epsilon=1, sensitivity=1, shape=shape),
            ln.hb(epsilon=1, shape=shape),
            ln.hb(epsilon=1, delta=1e-6, shape=shape, noise="gaussian"),
            ln.dawa(epsilon=1, shape=shape),
            *([ln.dawa(epsilon=1, shape=shape, noise="dpcomp")] if side < 100 else []),
        ]
        for mechanism in mechanisms:
            mechanism.release(counts)  # tables and caches that the next releases share
        times = [median_seconds(lambda m=m, counts=counts: m.release(counts)) for m in mechanisms]
        for mechanism, seconds in zip(mechanisms, times, strict=True):
            grid = f"{side} x {side}"
            print(f"{grid:>11s} {mechanism.name:>12s} {1e3 * seconds:9.2f} {seconds / times[0]:10.1f}")


if __name__ == "__main__":
    main()
