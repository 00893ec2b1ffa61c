"""Quantiles against diffprivlib and OpenDP: root mean square errors. Run ``python benchmarks/quantiles.py``.

All have the same bounds and the same epsilon in total, for added or removed rows. diffprivlib splits epsilon evenly
over several quantiles, and so does the caller of OpenDP, whose candidates are the whole ages, or 1,001 even places;
where it is told of whole ages, lessnoise has one cell for each.
Ours are the values that a table releases, with the share of the budget that the intervals take. An error is that of
the value against the quantile of the data. Arguments: the number of repeats, and numbers of rows of made-up columns,
or ``public`` for columns of public data (scikit-learn's, and the Uber pickups in the folder $LESSNOISE_DATA).
"""

from __future__ import annotations

import sys
import warnings
from statistics import median
from typing import TYPE_CHECKING

import diffprivlib.tools
import numpy as np
import opendp.prelude as dp
from sklearn import datasets

import lessnoise as ln
from lessnoise.table.chosen import INTERVAL_CELLS, read
from lessnoise_paper.data import uber_pickups

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Ratios = dict[int, tuple[float, float]]  # by the number of quantiles: over diffprivlib's, and over OpenDP's

ASKED = ((0.5,), (0.25, 0.5, 0.75))
EPSILONS = (0.1, 1.0, 10.0)
SIZES = (100, 1000, 10000)
PEERS = ("diffprivlib", "OpenDP")


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


def public_columns() -> dict[str, tuple[Array, tuple[float, float], int]]:
    """The same, of public data; bounds are what one would say without looking."""
    patients, progression = datasets.load_diabetes(return_X_y=True, scaled=False)
    cells, pickups = datasets.load_breast_cancer().data, uber_pickups()
    wines, box = datasets.load_wine().data, (40.0, 42.0, -75.0, -73.0)
    return {
        "diabetes, progression": (progression, (0.0, 400.0), 1001),
        "diabetes, age": (patients[:, 0], (0.0, 120.0), 121),
        "diabetes, body mass": (patients[:, 2], (10.0, 60.0), 1001),
        "cancer, radius": (cells[:, 0], (5.0, 30.0), 1001),
        "cancer, area": (cells[:, 3], (0.0, 3000.0), 1001),
        "wine, alcohol": (wines[:, 0], (8.0, 20.0), 1001),
        "Uber, latitude": (pickups[:, 0], box[:2], 1001),
        "Uber, longitude": (pickups[:, 1], box[2:], 1001),
    }


def ours(
    values: Array,
    shares: tuple[float, ...],
    bounds: tuple[float, float],
    epsilon: float,
    repeats: int,
    bins: int | None = None,
) -> Array:
    """Many releases of one question: groups of the same rows, with the cells that a single group gets."""
    asked = ln.quantiles("x", shares, bounds=bounds, bins=bins)
    job = ln.Table({"x": values}).aggregate(asked).prepare(epsilon, 1e-6)
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


def compared(name: str, column: tuple[Array, tuple[float, float], int], epsilon: float, repeats: int) -> Ratios:
    """Print one line for each quantile, and return our errors over both peers', of all quantiles asked together."""
    values, bounds, candidates = column
    found: Ratios = {}
    for shares in ASKED:
        truth = np.quantile(values, shares, method="inverted_cdf")
        given = (values, shares, bounds, epsilon)
        whole = candidates - 1 if candidates - 1 == bounds[1] - bounds[0] else None  # as OpenDP is told
        mine = error(ours(*given, repeats, whole), truth)
        peers = diffprivlib_quantiles(*given), opendp_quantiles(*given, candidates)
        first, second = (error(np.array([peer() for _ in range(repeats)]), truth) for peer in peers)
        for i, share in enumerate(shares):
            label = f"{share:g}" if len(shares) > 1 else f"{share:g} alone"
            ratios = ratio(mine[i : i + 1], first[i : i + 1]), ratio(mine[i : i + 1], second[i : i + 1])
            numbers = f"{mine[i]:.4g} | {first[i]:.4g} | {second[i]:.4g} | {ratios[0]:.2f} | {ratios[1]:.2f}"
            print(f"| {name} | {len(values)} | {epsilon:g} | {label} | {numbers} |", flush=True)
        found[len(shares)] = ratio(mine, first), ratio(mine, second)
    return found


def ratio(mine: Array, peer: Array) -> float:
    """Of root mean squares."""
    ours_, theirs = float((mine**2).sum()), float((peer**2).sum())
    return float(np.sqrt(ours_ / theirs)) if theirs > 0.0 else float("inf") if ours_ > 0.0 else 1.0


def main(repeats: int, sizes: tuple[int, ...] | None) -> None:
    """All cells, then the ratios; ``sizes=None`` for public data, at epsilon 1."""
    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    print("| data | rows | epsilon | quantile | ours | diffprivlib | OpenDP | ours / diffprivlib | ours / OpenDP |")
    print("|---|---|---|---|---|---|---|---|---|")
    tables = [public_columns()] if sizes is None else [columns(rows) for rows in sizes]
    cells = [(*item, epsilon) for table in tables for item in table.items() for epsilon in EPSILONS]
    if sizes is None:
        cells = [(name, column, 1.0) for name, column in tables[0].items()]
    found = [(name, compared(name, column, epsilon, repeats)) for name, column, epsilon in cells]
    if sizes is None:
        print("\n| data | one median: / diffprivlib | / OpenDP | quartiles: / diffprivlib | / OpenDP |")
        print("|---|---|---|---|---|")
        for name, each in found:
            print(f"| {name} | " + " | ".join(f"{one:.2f}" for size in (1, 3) for one in each[size]) + " |")
    for size, peer in ((size, peer) for size in (1, 3) for peer in (0, 1)):
        every = [each[size][peer] for _, each in found]
        words = f"median ratio {median(every):.2f}, largest {max(every):.2f}, at most a half in"
        print(f"\n{size} at once, {PEERS[peer]}: {words} {sum(one <= 0.5 for one in every)} of {len(every)}")


if __name__ == "__main__":
    given = sys.argv[2:]
    chosen = None if given == ["public"] else tuple(map(int, given)) or SIZES
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60, chosen)
