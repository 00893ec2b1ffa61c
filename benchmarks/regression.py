"""PrivateLinearRegression against diffprivlib's LinearRegression: errors of the coefficients, same epsilon and bounds.

Run it where diffprivlib 0.6 and a scikit-learn below 1.8 are installed:

    python benchmarks/regression.py [repetitions] [uber-raw-data-apr14.csv or .csv.gz]

Errors are root mean squares over coefficients and fits, against least squares without noise on the same table, with
each column in half-widths of its bounds. diffprivlib promises (epsilon, 0); lessnoise is shown with pure epsilon, too.
With a file of Uber pickups the latitude is regressed on the longitude, the hour and the day of the week.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LinearRegression

from lessnoise import PrivateLinearRegression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

EPSILONS = (0.1, 1.0, 5.0)


@dataclass(frozen=True)
class Table:
    """Features, targets, and public bounds of both."""

    name: str
    features: Array
    targets: Array
    low: Array
    high: Array
    target_bounds: tuple[float, float]

    def scaled(self, coefficients: Array) -> Array:
        """Coefficients for columns in half-widths of the bounds."""
        return coefficients * (self.high - self.low) / (self.target_bounds[1] - self.target_bounds[0])


def simulated(features: int, rows: int) -> Table:
    rng = np.random.default_rng(features)
    low, high = np.zeros(features), 10.0 ** (np.arange(features) % 4)
    x = rng.beta(2, 2, size=(rows, features))
    slopes = rng.uniform(-1, 1, features) / np.sqrt(features)
    y = x @ slopes + 0.2 * rng.standard_normal(rows)
    limits = (float(np.minimum(slopes, 0).sum() - 0.6), float(np.maximum(slopes, 0).sum() + 0.6))
    return Table(f"simulated, {rows:,} x {features}", x * high, y, low, high, limits)


def diabetes() -> Table:
    x, y = datasets.load_diabetes(return_X_y=True)
    return Table("diabetes, 442 x 10", x, y, np.full(10, -0.2), np.full(10, 0.2), (0.0, 400.0))


def uber(path: str) -> Table:
    import pandas

    frame = pandas.read_csv(path)
    time = pandas.to_datetime(frame["Date/Time"], format="%m/%d/%Y %H:%M:%S")
    x = np.column_stack([frame["Lon"], time.dt.hour, time.dt.day_of_week]).astype(np.float64)
    y = np.clip(frame["Lat"].to_numpy(), 40.5, 41.0)
    low, high = np.array([-74.3, 0, 0]), np.array([-73.6, 23, 6])
    return Table(f"Uber pickups, {len(x):,} x 3", np.clip(x, low, high), y, low, high, (40.5, 41.0))


def ours(table: Table, epsilon: float, seed: int, delta: float | None) -> Array:
    line = PrivateLinearRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=(table.low, table.high),
        target_bounds=table.target_bounds,
        random_state=seed,
    )
    return line.fit(table.features, table.targets).coef_


def theirs(table: Table, epsilon: float, seed: int) -> Array:
    from diffprivlib import models

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = models.LinearRegression(
            epsilon=epsilon, bounds_X=(table.low, table.high), bounds_y=table.target_bounds, random_state=seed
        )
        return np.asarray(line.fit(table.features.copy(), table.targets.copy()).coef_).ravel()


def compare(table: Table, repetitions: int) -> None:
    public = table.scaled(LinearRegression().fit(table.features, table.targets).coef_)
    print(f"{table.name}: coefficients of size {np.sqrt(np.mean(public**2)):.3g}")
    for place, epsilon in enumerate(EPSILONS):
        errors, seeds = [], range(place * repetitions, (place + 1) * repetitions)
        for fit in (
            lambda seed: ours(table, epsilon, seed, 1e-6),  # noqa: B023
            lambda seed: ours(table, epsilon, seed, None),  # noqa: B023
            lambda seed: theirs(table, epsilon, seed),  # noqa: B023
        ):
            found = np.array([table.scaled(fit(seed)) - public for seed in seeds])
            errors.append(float(np.sqrt(np.mean(found**2))))
        approximate, pure, peer = errors
        print(
            f"    epsilon {epsilon:4g}: {approximate:9.3g} at delta 1e-6, {pure:9.3g} pure, diffprivlib {peer:9.3g}: "
            f"ratios {peer / approximate:.3g} and {peer / pure:.3g}",
            flush=True,
        )


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    tables = [simulated(2, 1000), simulated(2, 10000), simulated(5, 10000), simulated(10, 100000), diabetes()]
    if len(sys.argv) > 2:
        tables.append(uber(sys.argv[2]))
    for table in tables:
        compare(table, repetitions)


if __name__ == "__main__":
    main()
