"""PrivatePCA against diffprivlib's PCA: explained variance and fit time, same epsilon, same clipping.

Run it where diffprivlib 0.6 and a scikit-learn below 1.8 are installed: python benchmarks/pca.py [repetitions].
diffprivlib promises (epsilon, 0). lessnoise is shown with (epsilon, 1e-6), and with pure epsilon, by l2 noise and by
components drawn one by one. "Centred" rows have their public mean taken away before; with "raw" rows both libraries
estimate the mean privately, from the same bounds. diffprivlib's sampler may run for minutes; it is cut off then.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets

from lessnoise.pca import PrivatePCA

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

EPSILONS = (0.01, 0.1, 1.0, 10.0)
PATIENCE = 20.0  # seconds
OURS: dict[str, dict[str, Any]] = {
    "lessnoise, delta 1e-6": {"delta": 1e-6},
    "lessnoise, pure l2": {"mechanism": "l2"},
    "lessnoise, pure one by one": {"mechanism": "ppca-one-by-one"},
}


def explained(components: Array, rows: Array) -> float:
    covariance = np.cov(rows.T)
    return float(np.trace(components @ covariance @ components.T) / np.trace(covariance))


def ours(rows: Array, count: int, seed: int, **options: Any) -> Array:  # noqa: ANN401
    return PrivatePCA(count, random_state=seed, **options).fit(rows).components_


def theirs(rows: Array, count: int, seed: int, **options: Any) -> Array:  # noqa: ANN401
    from diffprivlib import models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(models.PCA(count, random_state=seed, **options).fit(rows.copy()).components_)


def measured(fit: Callable[..., Array], rows: Array, count: int, repetitions: int, **options: Any) -> str:  # noqa: ANN401
    """Mean explained variance, its standard error, and milliseconds a fit."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        if fit is ours:
            pool.apply(fit, (rows, count, 0), options)  # the calibration is kept from here on
        values, start = [], time.perf_counter()
        for seed in range(repetitions):
            try:
                values.append(explained(pool.apply_async(fit, (rows, count, seed), options).get(PATIENCE), rows))
            except multiprocessing.TimeoutError:
                return f"cut off after {PATIENCE:g} s"
        milliseconds = 1e3 * (time.perf_counter() - start) / repetitions
        error = np.std(values) / repetitions**0.5
        return f"{np.mean(values):.4f} +- {error:.4f}  {milliseconds:6.0f} ms"


def compare(name: str, rows: Array, count: int, clip: float, repetitions: int) -> None:
    centred, bounds = rows - rows.mean(axis=0), (rows.min(axis=0), rows.max(axis=0))
    best = explained(np.linalg.eigh(np.cov(rows.T))[1].T[::-1][:count], rows)
    print(f"{name}: {rows.shape[0]} x {rows.shape[1]}, {count} components, clip {clip:g}, without noise {best:.4f}")
    for epsilon in EPSILONS:
        print(f"  epsilon {epsilon:g}")
        jobs: list[tuple[str, Callable[..., Array], Array, dict[str, Any]]] = [
            (f"centred: {label}", ours, centred, {"clip_norm": clip, "center": False, **options})
            for label, options in OURS.items()
        ]
        jobs.append(("centred: diffprivlib", theirs, centred, {"data_norm": clip, "centered": True}))
        jobs.append(("raw: lessnoise, delta 1e-6", ours, rows, {"bounds": bounds, "clip_norm": clip, "delta": 1e-6}))
        jobs.append(("raw: diffprivlib", theirs, rows, {"bounds": bounds, "data_norm": clip}))
        for label, fit, table, options in jobs:
            words = measured(fit, table, count, repetitions, epsilon=epsilon, **options)
            print(f"    {label:36s} {words}", flush=True)


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    for name, data, count, clip in (
        ("wine", datasets.load_wine().data, 3, 5.0),
        ("breast cancer", datasets.load_breast_cancer().data, 4, 8.0),
        ("digits", datasets.load_digits().data, 10, 50.0),
    ):
        compare(name, data if name == "digits" else data / data.std(axis=0), count, clip, repetitions)


if __name__ == "__main__":
    main()
