"""Quantiles against diffprivlib and OpenDP: root mean square errors. Run ``python benchmarks/quantiles.py``.

All have the same bounds and the same epsilon in total, for added or removed rows. diffprivlib splits epsilon evenly
over several quantiles, and so does the caller of OpenDP, whose candidates are the whole ages, or 1,001 even places.
Ours are the values that a table releases, with the share of the budget that the intervals take. An error is that of
the value against the quantile of the data. Arguments: the number of repeats, and numbers of rows.
"""

from __future__ import annotations

import sys
import warnings
from statistics import median
from typing import TYPE_CHECKING

import diffprivlib.tools
import numpy as np
import opendp.prelude as dp

import lessnoise as ln
from lessnoise.table.chosen import INTERVAL_CELLS, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ASKED = ((0.5,), (0.25, 0.5, 0.75))
EPSILONS = (0.1, 1.0, 10.0)
SIZES = (100, 1000, 10000)


def columns(rows: int) -> dict[str, tuple[Array, tuple[float, float], int]]:
    """Values, bounds, and the number of OpenDP's candidates."""
    rng = np.random.default_rng(rows)
    atom = np.where(rng.random(rows) < 0.4, 20.0, rng.uniform(0.0, 100.0, rows))
    return {
        "ages": (rng.normal(45.0, 18.0, rows).clip(0.0, 100.0).round(), (0.0, 120.0), 121),
        "incomes": (np.exp(rng.normal(10.3, 0.7, rows)).clip(0.0, 2e5), (0.0, 2e5), 1001),
        "uniform": (rng.uniform(0.0, 1.0, rows), (0.0, 1.0), 1001),
        "heavy atom": (atom, (0.0, 100.0), 1001),
    }


def ours(values: Array, shares: tuple[float, ...], bounds: tuple[float, float], epsilon: float, repeats: int) -> Array:
    """Many releases of one question: groups of the same rows, with the cells that a single group gets."""
    job = ln.Table({"x": values}).aggregate(ln.quantiles("x", shares, bounds=bounds)).prepare(epsilon, 1e-6)
    part = job.plan.parts[0].sized(repeats)
    assert part.choice is not None
    counts = np.repeat(job.answer().value, repeats, axis=0)
    places = part.choice.release(counts.reshape(part.choice.shape)).value
    none = np.zeros((repeats, INTERVAL_CELLS))
    read_from = np.concatenate([places, none], axis=1)
    return read(part.aggregates[0], part.choice.law, part.measure, read_from, none[np.newaxis, :1], 0.95)[0]


def diffprivlib_quantiles(
    values: Array, shares: tuple[float, ...], bounds: tuple[float, float], epsilon: float
) -> Callable[[], Array]:
    return lambda: np.ravel(diffprivlib.tools.quantile(values, list(shares), epsilon=epsilon, bounds=bounds))


def opendp_quantiles(
    values: Array, shares: tuple[float, ...], bounds: tuple[float, float], epsilon: float, candidates: int
) -> Callable[[], Array]:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    places, data = np.linspace(*bounds, candidates).tolist(), values.tolist()

    def built(share: float) -> Callable[[list[float]], float]:
        def at(scale: float) -> object:
            return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=places, alpha=share, scale=scale)

        return dp.binary_search_chain(at, 1, epsilon / len(shares))

    measurements = [built(share) for share in shares]
    return lambda: np.array([measure(data) for measure in measurements])


def error(found: Array, truth: Array) -> Array:
    """Root mean square, for each quantile."""
    return np.sqrt(((found - truth) ** 2).mean(axis=0))


def main(repeats: int, sizes: tuple[int, ...] = SIZES) -> None:
    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    ratios: dict[int, list[float]] = {len(shares): [] for shares in ASKED}
    print("| data | rows | epsilon | quantile | ours | diffprivlib | OpenDP | ours / better peer |")
    print("|---|---|---|---|---|---|---|---|")
    for rows in sizes:
        for name, (values, bounds, candidates) in columns(rows).items():
            for shares in ASKED:
                truth = np.quantile(values, shares, method="inverted_cdf")
                for epsilon in EPSILONS:
                    given = (values, shares, bounds, epsilon)
                    mine = error(ours(*given, repeats), truth)
                    peers = diffprivlib_quantiles(*given), opendp_quantiles(*given, candidates)
                    first, second = (error(np.array([peer() for _ in range(repeats)]), truth) for peer in peers)
                    for i, share in enumerate(shares):
                        best = min(first[i], second[i])
                        ratio = mine[i] / best if best > 0.0 else float("inf") if mine[i] > 0.0 else 1.0
                        ratios[len(shares)].append(ratio)
                        label = f"{share:g}" if len(shares) > 1 else f"{share:g} alone"
                        numbers = f"{mine[i]:.4g} | {first[i]:.4g} | {second[i]:.4g} | {ratio:.2f}"
                        print(f"| {name} | {rows} | {epsilon:g} | {label} | {numbers} |", flush=True)
    for size, found in ratios.items():
        below = sum(ratio <= 1.0 for ratio in found)
        print(f"\n{size} at once: median ratio {median(found):.2f}, at most 1 in {below} of {len(found)} cells")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, tuple(map(int, sys.argv[2:])) or SIZES)
