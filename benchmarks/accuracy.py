"""Tables against diffprivlib and OpenDP: errors of counts, sums, means, variances and quartiles at the same epsilon.

    python benchmarks/accuracy.py [releases]

Every group gets the whole epsilon, as groups have no rows in common; one row is protected. Errors are root mean squares
over groups and releases, against the same statistic of the clipped data. Two questions are asked: each statistic
*alone* with all of epsilon, and all five *together*, where the others divide epsilon evenly and lessnoise by its plan.
diffprivlib and OpenDP take the number of rows of a mean and a variance as public, which is a weaker promise; lessnoise
does not. Both promise (epsilon, 0); lessnoise has delta = 1e-6.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import diffprivlib.tools as peer
import numpy as np
import opendp.prelude as dp
from sklearn import datasets

import lessnoise as ln

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

EPSILONS = (0.1, 1.0, 2.0)
DELTA = 1e-6
QUARTILES = (0.25, 0.5, 0.75)
CANDIDATES = 1000  # of OpenDP's quantiles
STATISTICS = ("count", "sum", "mean", "variance", "quartiles")

dp.enable_features("contrib")


@dataclass(frozen=True)
class Case:
    """A column in groups, and its public bounds."""

    name: str
    groups: dict[str, Array]
    bounds: tuple[float, float]

    @property
    def table(self) -> dict[str, Any]:
        """All groups."""
        keys = np.concatenate([[key] * len(values) for key, values in self.groups.items()])
        return {"group": keys, "x": np.concatenate(list(self.groups.values()))}


def cases() -> list[Case]:
    rng = np.random.default_rng(0)
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    cancer = datasets.load_breast_cancer()
    sizes = (100, 1000, 5000)
    return [
        Case("ages", {str(n): np.floor(rng.gamma(6, 7, n)) for n in sizes}, (0.0, 120.0)),
        Case("incomes", {str(n): rng.lognormal(10.7, 0.6, n) for n in sizes}, (0.0, 200_000.0)),
        Case("temperatures", {str(n): rng.normal(8, 7, n) for n in sizes}, (-40.0, 50.0)),
        Case("diabetes, progression by sex", {str(k): y[x[:, 1] == k] for k in (1, 2)}, (0.0, 400.0)),
        Case("cancer, radius by kind", {str(k): cancer.data[cancer.target == k, 0] for k in (0, 1)}, (5.0, 30.0)),
    ]


def truth(values: Array, bounds: tuple[float, float]) -> dict[str, Array]:
    clipped = np.clip(values, *bounds)
    return {
        "count": np.array([len(clipped)], dtype=np.float64),
        "sum": np.array([clipped.sum()]),
        "mean": np.array([clipped.mean()]),
        "variance": np.array([clipped.var()]),
        "quartiles": np.quantile(clipped, QUARTILES),
    }


def of_diffprivlib(statistic: str, values: Array, bounds: tuple[float, float], epsilon: float) -> Callable[[], Any]:
    clipped = np.clip(values, *bounds)
    if statistic == "count":
        mine = np.arange(4 * len(clipped)) < len(clipped)  # of a larger table: the answer is cut off at all its rows
        return lambda: peer.count_nonzero(mine, epsilon=epsilon)
    if statistic == "quartiles":
        return lambda: peer.quantile(clipped, list(QUARTILES), epsilon=epsilon, bounds=bounds)
    found = {"sum": peer.sum, "mean": peer.mean, "variance": peer.var}[statistic]
    return lambda: found(clipped, epsilon=epsilon, bounds=bounds)


def of_opendp(statistic: str, values: Array, bounds: tuple[float, float], epsilon: float) -> Callable[[], Any]:
    rows = [float(value) for value in np.clip(values, *bounds)]
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    known = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=len(rows)), dp.symmetric_distance()
    bounded = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False)), dp.symmetric_distance()
    if statistic == "quartiles":
        places = [float(place) for place in np.linspace(*bounds, CANDIDATES)]
        made = [
            dp.binary_search_chain(
                lambda scale, p=p: space >> dp.m.then_private_quantile(dp.max_divergence(), places, p, scale),
                1,
                epsilon / len(QUARTILES),
            )
            for p in QUARTILES
        ]
        return lambda: [one(rows) for one in made]
    if statistic in ("mean", "variance"):  # a row is replaced: two changes
        step = dp.t.then_mean() if statistic == "mean" else dp.t.then_variance(ddof=0)
        one = dp.binary_search_chain(lambda scale: known >> step >> dp.m.then_laplace(scale), 2, epsilon)
    elif statistic == "sum":
        one = dp.binary_search_chain(lambda scale: bounded >> dp.t.then_sum() >> dp.m.then_laplace(scale), 1, epsilon)
    else:
        one = dp.binary_search_chain(lambda scale: space >> dp.t.then_count() >> dp.m.then_laplace(scale), 1, epsilon)
    return lambda: one(rows)


def ours(case: Case, statistics: tuple[str, ...], epsilon: float, releases: int) -> dict[str, Array]:
    """For each statistic (releases, groups, numbers)."""
    asked = {
        "count": ln.count(),
        "sum": ln.sum("x", case.bounds),
        "mean": ln.mean("x", case.bounds),
        "variance": ln.variance("x", case.bounds),
        "quartiles": ln.quantiles("x", QUARTILES, case.bounds),
    }
    groups = ln.Table(case.table).group_by("group", keys=list(case.groups))
    question = groups.aggregate(*(asked[statistic] for statistic in statistics))
    job = question.prepare(epsilon, DELTA, rng=np.random.default_rng(1))
    answer = job.answer()
    found: dict[str, list[list[list[float]]]] = {statistic: [] for statistic in statistics}
    for _ in range(releases):
        rows = list(job.release(answer).rows)
        for statistic in statistics:
            found[statistic].append(
                [
                    [row["value"] for row in rows if row["group"] == key and row["statistic"] in asked[statistic].names]
                    for key in case.groups
                ]
            )
    return {statistic: np.array(values) for statistic, values in found.items()}


def error(found: Any, true: Array) -> float:  # noqa: ANN401
    return float(np.mean((np.asarray(found) - true) ** 2))


def compared(releases: int) -> list[dict[str, Any]]:
    rows = []
    for case in cases():
        true = {key: truth(values, case.bounds) for key, values in case.groups.items()}
        for epsilon in EPSILONS:
            for asked in (*((statistic,) for statistic in STATISTICS), STATISTICS):
                mine = ours(case, asked, epsilon, releases)
                for statistic in asked:
                    squares = {"lessnoise": [], "diffprivlib": [], "opendp": []}  # type: dict[str, list[float]]
                    for place, (key, values) in enumerate(case.groups.items()):
                        goal = true[key][statistic]
                        squares["lessnoise"].append(error(mine[statistic][:, place], goal))
                        for name, build in (("diffprivlib", of_diffprivlib), ("opendp", of_opendp)):
                            draw = build(statistic, values, case.bounds, epsilon / len(asked))
                            made = np.array([np.atleast_1d(draw()) for _ in range(releases)])
                            squares[name].append(error(made, goal))
                    row = {
                        "table": case.name,
                        "epsilon": epsilon,
                        "asked": "together" if len(asked) > 1 else "alone",
                        "statistic": statistic,
                        "rmse": {name: float(np.sqrt(np.mean(found))) for name, found in squares.items()},
                        "ratios": [
                            [
                                float(np.sqrt(mine / max(peer, 1e-300)))
                                for mine, peer in zip(squares["lessnoise"], found, strict=True)
                            ]
                            for name, found in squares.items()
                            if name != "lessnoise"
                        ],
                    }
                    rows.append(row)
                    shown = "; ".join(" ".join(f"{ratio:5.2f}" for ratio in each) for each in row["ratios"])
                    print(f"{case.name:30} {epsilon:4} {row['asked']:8} {statistic:10} {shown}", flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """A table: for each statistic the ratio of our errors to theirs, over all tables, groups and epsilons."""
    found = [
        "| asked | statistic | peer | median | largest | share at most 1 | cells |",
        "|---|---|---|---|---|---|---|",
    ]
    for asked in ("alone", "together"):
        for statistic in STATISTICS:
            for place, name in enumerate(("diffprivlib", "OpenDP")):
                mine = [row for row in rows if (row["asked"], row["statistic"]) == (asked, statistic)]
                each = [ratio for row in mine for ratio in row["ratios"][place]]
                within = np.mean(np.array(each) <= 1.0)
                found.append(
                    f"| {asked} | {statistic} | {name} | {np.median(each):.2f} | {max(each):.2f} | {within:.2f} "
                    f"| {len(each)} |"
                )
    every = [ratio for row in rows for each in row["ratios"] for ratio in each]
    found.append(f"| | all | both | {np.median(every):.2f} | {max(every):.2f} | | {len(every)} |")
    return found


def main() -> None:
    """Print every row, then the summary."""
    warnings.filterwarnings("ignore")
    releases = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rows = compared(releases)
    versions = ", ".join(f"{name} {version(name)}" for name in ("lessnoise", "diffprivlib", "opendp", "numpy"))
    print(f"{datetime.now(UTC).date()}, {releases} releases, delta {DELTA:g}, {CANDIDATES} candidates; {versions}\n")
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()
