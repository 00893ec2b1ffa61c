"""PrivatePCA against diffprivlib's PCA: explained variance and fit time, same epsilon, same clipping.

Run it where diffprivlib 0.6 and a scikit-learn below 1.8 are installed: python benchmarks/pca.py. diffprivlib promises
(epsilon, 0), lessnoise (epsilon, 1e-6). diffprivlib's sampler may run for minutes at large epsilon; it is cut off then.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA

from lessnoise.pca import PrivatePCA

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Fit = Callable[[Array, int, float, float, int], Array]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
REPETITIONS, PATIENCE, DELTA = 10, 20.0, 1e-6


def explained(components: Array, rows: Array) -> float:
    covariance = np.cov(rows.T)
    return float(np.trace(components @ covariance @ components.T) / np.trace(covariance))


def ours(rows: Array, count: int, epsilon: float, clip: float, seed: int) -> Array:
    pca = PrivatePCA(count, epsilon=epsilon, delta=DELTA, clip_norm=clip, center=False, random_state=seed)
    return pca.fit(rows).components_


def theirs(rows: Array, count: int, epsilon: float, clip: float, seed: int) -> Array:
    from diffprivlib import models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = models.PCA(count, epsilon=epsilon, data_norm=clip, centered=True, random_state=seed)
        return np.asarray(peer.fit(rows.copy()).components_)


def measured(fit: Fit, rows: Array, count: int, epsilon: float, clip: float) -> tuple[float, float] | None:
    """Mean explained variance and seconds a fit; None if a fit takes too long."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(fit, (rows[:20, :2], 1, 0.1, clip, 0))  # imports are not timed
        values, start = [], time.perf_counter()
        for seed in range(REPETITIONS):
            try:
                values.append(explained(pool.apply_async(fit, (rows, count, epsilon, clip, seed)).get(PATIENCE), rows))
            except multiprocessing.TimeoutError:
                return None
        return float(np.mean(values)), (time.perf_counter() - start) / REPETITIONS


def table(name: str, rows: Array, count: int, clip: float) -> None:
    rows = rows - rows.mean(axis=0)  # both are given centred rows
    best = explained(PCA(count).fit(rows).components_, rows)
    print(f"{name}: {rows.shape[0]} x {rows.shape[1]}, {count} components, clip {clip:g}, without noise {best:.4f}")
    for epsilon in EPSILONS:
        ours(rows, count, epsilon, clip, 0)  # the calibration is kept from here on
        mine, peer = (measured(fit, rows, count, epsilon, clip) for fit in (ours, theirs))
        words = "cut off" if peer is None else f"{peer[0]:.4f} in {peer[1]:.3f} s"
        text = "cut off" if mine is None else f"{mine[0]:.4f} in {mine[1]:.3f} s"
        print(f"  epsilon {epsilon:5g}: lessnoise {text}; diffprivlib {words}", flush=True)


def main() -> None:
    table("digits", datasets.load_digits().data, 10, 50.0)
    iris = datasets.load_iris().data
    table("iris", iris / iris.std(axis=0), 2, 3.0)
    wine = datasets.load_wine().data
    table("wine", wine / wine.std(axis=0), 3, 5.0)


if __name__ == "__main__":
    main()
