"""How often the 95% intervals of a table hold the true value, over many releases of the same tables.

    python benchmarks/coverage.py [releases]

Three groups of 100, 1,000 and 10,000 rows, at epsilon 0.5 and 2 and delta 1e-6, with cryptographic noise. The truth is
the statistic of the clipped data. Each line is one statistic: its share of intervals that hold it, by group.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

import lessnoise as ln

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

SIZES = (100, 1000, 10_000)
QUARTILES = (0.25, 0.5, 0.75)
ASKED = {
    "count": ln.count(),
    "sum": ln.sum("income", (0, 200_000)),
    "mean": ln.mean("income", (0, 200_000)),
    "variance": ln.variance("age", (0, 120)),
    "quartiles": ln.quantiles("income", QUARTILES, (0, 200_000)),
    "quartiles of ages": ln.quantiles("age", QUARTILES, (0, 120)),
    "histogram": ln.histogram("age", bounds=(0, 120), bins=4),
    "covariance": ln.covariance("age", "even", bounds=[(0, 120), (-1, 1)]),
    "regression": ln.linear_regression("income", on=["even"], bounds=[(0, 200_000), (-1, 1)]),
}


def columns(rng: np.random.Generator, rows: int) -> dict[str, Array]:
    """Ages in whole years, incomes, and a column that is spread evenly."""
    age, even = np.floor(np.clip(rng.gamma(6, 7, rows), 0, 110)), rng.uniform(-1, 1, rows)
    return {"age": age, "income": rng.lognormal(10.7, 0.6, rows), "even": even}


def truths(name: str, of: dict[str, Array]) -> Array:
    """The statistics of the clipped data of one group."""
    age, income, even = np.clip(of["age"], 0, 120), np.clip(of["income"], 0, 200_000), of["even"]
    slope = np.cov(even, income, bias=True)[0, 1] / even.var()
    found = {
        "count": len(age),
        "sum": income.sum(),
        "mean": income.mean(),
        "variance": age.var(),
        "quartiles": np.quantile(income, QUARTILES, method="inverted_cdf"),
        "quartiles of ages": np.quantile(age, QUARTILES, method="inverted_cdf"),
        "histogram": np.histogram(age, bins=4, range=(0, 120))[0],
        "covariance": np.cov(age, even, bias=True)[0, 1],
        "regression": [income.mean() - slope * even.mean(), slope],
    }
    return np.atleast_1d(np.asarray(found[name], dtype=np.float64))


def main() -> None:
    """Print one line for each statistic and epsilon."""
    releases, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 2000, np.random.default_rng(3)
    groups = {str(size): columns(rng, size) for size in SIZES}
    table = {name: np.concatenate([of[name] for of in groups.values()]) for name in ("age", "income", "even")}
    table["group"] = np.concatenate([[key] * len(of["age"]) for key, of in groups.items()])
    print(f"{releases} releases; share of intervals that hold the truth, for {', '.join(groups)} rows\n")
    print("| epsilon | statistic | " + " | ".join(groups) + " |\n|---|---|" + "---|" * len(groups))
    for epsilon in (0.5, 2.0):
        for name, aggregate in ASKED.items():
            question = ln.Table(table).group_by("group", keys=list(groups)).aggregate(aggregate)
            job = question.prepare(epsilon, 1e-6)
            answer = job.answer()
            true = np.concatenate([truths(name, of) for of in groups.values()])
            held = np.zeros(len(true))
            for _ in range(releases):
                ends = np.array([(row["lower"], row["upper"]) for row in job.release(answer).rows])
                slack = 1e-9 * np.abs(true)
                held += (ends[:, 0] - slack <= true) & (true <= ends[:, 1] + slack)
            shown = [" ".join(f"{share:.3f}" for share in own) for own in (held / releases).reshape(len(groups), -1)]
            print(f"| {epsilon:g} | {name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
