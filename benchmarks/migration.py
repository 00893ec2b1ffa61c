"""The jobs of the migration pages on both sides: errors at the same epsilon, and the noise of private training.

    python benchmarks/migration.py statistics [releases]   # lessnoise, diffprivlib and OpenDP
    python benchmarks/migration.py tumult                  # in an environment of its own, with Tumult Analytics
    python benchmarks/migration.py training                # the noise that Opacus and lessnoise give the same target

The table is made up, from seed 0: 300 groups of 400 incomes, and of answers to ten yes-or-no questions. Every group is
asked with the whole epsilon = 1, as groups have no rows in common; one row is protected. Errors are root mean squares
over groups and releases, against the same statistic without noise. The noise has no seed: it is that of a release.
"""

from __future__ import annotations

import sys
import warnings
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

GROUPS, ROWS = 300, 400
BOUNDS = (0.0, 200_000.0)
QUARTILES = (0.25, 0.5, 0.75)
QUESTIONS = [f"q{number}" for number in range(10)]
EPSILON, DELTA = 1.0, 1e-6
TRAININGS = ((256 / 60_000, 7_031), (0.01, 1_000), (0.1, 100), (0.5, 20))
TRAINING_DELTA = 1e-5


def table() -> dict[str, Array]:
    """The columns, of one length."""
    rng = np.random.default_rng(0)
    income = np.clip(rng.gamma(3, 20_000, GROUPS * ROWS), *BOUNDS)
    answers = rng.random((len(QUESTIONS), GROUPS * ROWS)) < np.linspace(0.1, 0.9, len(QUESTIONS))[:, None]
    columns = {name: answer.astype(np.float64) for name, answer in zip(QUESTIONS, answers, strict=True)}
    return {"place": np.repeat(np.arange(GROUPS), ROWS).astype(np.float64), "income": income, **columns}


def by_group(column: Array) -> Array:
    """One row for each group."""
    return column.reshape(GROUPS, -1)


def truth(columns: dict[str, Array]) -> dict[str, Array]:
    """Each statistic, groups first."""
    incomes = by_group(columns["income"])
    return {
        "count": np.full((GROUPS, 1), float(ROWS)),
        "mean": incomes.mean(1)[:, None],
        "quartiles": np.quantile(incomes, QUARTILES, axis=1).T,
        "ten sums": np.stack([by_group(columns[name]).sum(1) for name in QUESTIONS], 1),
    }


def errors(found: dict[str, Array], true: dict[str, Array]) -> dict[str, float]:
    """Root mean squares; "mean, with the rest" is measured against the mean, and so on."""
    return {job: float(np.sqrt(np.mean((value - true[job.partition(",")[0]]) ** 2))) for job, value in found.items()}


def lessnoise(columns: dict[str, Array]) -> tuple[dict[str, Array], dict[str, float]]:
    """Each job alone, then three together; and the exact delta of each."""
    import lessnoise as ln

    ours = ln.Table({**columns, "place": columns["place"].astype(int)}).group_by("place", keys=list(range(GROUPS)))
    count, mean = ln.count(), ln.mean("income", bounds=BOUNDS)
    quartiles = ln.quantiles("income", QUARTILES, bounds=BOUNDS)
    deltas = {}

    def asked(job: str, *what: Any) -> Array:  # noqa: ANN401
        answer = ours.aggregate(*what).release(epsilon=EPSILON, delta=DELTA)
        deltas[job] = float(answer.certificate["guarantee"]["delta"])
        return by_group(np.array([row["value"] for row in answer.rows], dtype=np.float64))

    found = {job: asked(job, one) for job, one in (("count", count), ("mean", mean), ("quartiles", quartiles))}
    rest = asked("count, with the rest", count, mean, quartiles)
    found |= {"count, with the rest": rest[:, :1], "mean, with the rest": rest[:, 1:2]}
    found["quartiles, with the rest"] = rest[:, 2:]
    mechanism = ln.least_noise(epsilon=EPSILON, delta=DELTA, changes=ln.changes.corner(1), shape=len(QUESTIONS))
    deltas["ten sums"] = mechanism.guarantee(EPSILON).delta
    answers = np.stack([by_group(columns[name]).sum(1) for name in QUESTIONS], 1)
    found["ten sums"] = np.stack([mechanism.release(row).value for row in answers])
    return found, deltas


def one_by_one(columns: dict[str, Array], ask: Callable[[str, Array, float], Any]) -> dict[str, Array]:
    """A library that is asked for each group and statistic; epsilon is divided evenly among what is asked together."""
    incomes, places = by_group(columns["income"]), columns["place"]

    def asked(job: str, epsilon: float) -> Array:
        if job == "count" and ask is diffprivlib:  # of all rows, those of the group
            given = (places == place for place in range(GROUPS))
            return np.array([[ask(job, mask, epsilon)] for mask in given])
        return np.array([np.atleast_1d(ask(job, values, epsilon)) for values in incomes])

    jobs = ("count", "mean", "quartiles")
    found = {job: asked(job, EPSILON) for job in jobs}
    found |= {f"{job}, with the rest": asked(job, EPSILON / len(jobs)) for job in jobs}
    part = EPSILON / len(QUESTIONS)
    found["ten sums"] = np.stack([[ask("sum", v, part) for v in by_group(columns[name])] for name in QUESTIONS], 1)
    return found


def diffprivlib(job: str, values: Array, epsilon: float) -> Any:  # noqa: ANN401
    """As its documentation does it; the number of rows of a mean is public there."""
    from diffprivlib import tools

    if job == "count":
        return tools.count_nonzero(values, epsilon=epsilon)
    if job == "mean":
        return tools.mean(values, epsilon=epsilon, bounds=BOUNDS)
    if job == "sum":
        return tools.sum(values, epsilon=epsilon, bounds=(0, 1))
    return tools.quantile(values, list(QUARTILES), epsilon=epsilon, bounds=BOUNDS)


def opendp(job: str, values: Array, epsilon: float) -> Any:  # noqa: ANN401
    """By its Context; the number of rows of a mean is public here, too, and quantiles are among 1,000 candidates."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if job == "quartiles":
        return [opendp_quantile(share, epsilon / len(QUARTILES))(values.tolist()) for share in QUARTILES]
    query = dp.Context.compositor(
        data=values.tolist(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
    ).query()
    if job == "count":
        return query.count().laplace().release()
    if job == "mean":
        return query.clamp(BOUNDS).resize(len(values), constant=0.0).mean().laplace().release()
    return query.clamp((0.0, 1.0)).sum().laplace().release()


@cache
def opendp_quantile(share: float, epsilon: float) -> Any:  # noqa: ANN401
    """One quantile, at the scale that the epsilon allows."""
    import opendp.prelude as dp

    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    places = np.linspace(*BOUNDS, 1000).tolist()

    def at(scale: float) -> Any:  # noqa: ANN401
        return dp.m.make_private_quantile(*space, dp.max_divergence(), candidates=places, alpha=share, scale=scale)

    return dp.binary_search_chain(at, 1, epsilon)


def tumult(columns: dict[str, Array]) -> dict[str, Array]:
    """One session for each job; a mean has a private number of rows there, as here."""
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import (  # type: ignore[import-not-found]
        AddOneRow,
        KeySet,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g"}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    rows = pd.DataFrame({"place": columns["place"].astype(int), "income": columns["income"]})
    frame = builder.getOrCreate().createDataFrame(rows).cache()
    keys, query = KeySet.from_dict({"place": list(range(GROUPS))}), QueryBuilder("people")

    def asked(job: str, epsilon: float) -> Array:
        grouped = query.groupby(keys)
        if job == "count":
            questions = [grouped.count()]
        elif job == "mean":
            questions = [grouped.average("income", *BOUNDS)]
        else:
            questions = [grouped.quantile("income", share, *BOUNDS) for share in QUARTILES]
        session = Session.from_dataframe(PureDPBudget(epsilon), "people", frame, protected_change=AddOneRow())
        part = PureDPBudget(epsilon / len(questions))
        answers = [session.evaluate(each, part).toPandas().sort_values("place") for each in questions]
        return np.stack([answer.iloc[:, 1].to_numpy(dtype=np.float64) for answer in answers], 1)

    jobs = ("count", "mean", "quartiles")
    return {job: asked(job, EPSILON) for job in jobs} | {
        f"{job}, with the rest": asked(job, EPSILON / len(jobs)) for job in jobs
    }


def statistics(releases: int) -> None:
    """Print the errors of the three that live in one environment, and ratios."""
    warnings.simplefilter("ignore")
    columns = table()
    true = truth(columns)
    libraries: dict[str, list[dict[str, Array]]] = {"lessnoise": [], "diffprivlib": [], "OpenDP": []}
    for _ in range(releases):
        ours, deltas = lessnoise(columns)
        libraries["lessnoise"].append(ours)
        libraries["diffprivlib"].append(one_by_one(columns, diffprivlib))
        libraries["OpenDP"].append(one_by_one(columns, opendp))
    names = {name: version(name.lower()) for name in libraries}
    print(f"{datetime.now(UTC):%Y-%m-%d}; " + ", ".join(f"{name} {number}" for name, number in names.items()))
    print(f"{releases} releases of {GROUPS} groups\n")
    print("| job | our exact delta | lessnoise | diffprivlib | OpenDP | ours / diffprivlib | ours / OpenDP |")
    print("|---|---|---|---|---|---|---|")
    found = {
        name: errors({job: np.stack([each[job] for each in many]) for job in many[0]}, true)
        for name, many in libraries.items()
    }
    for job in found["lessnoise"]:
        own, first, second = (found[name][job] for name in libraries)
        delta = f"{deltas[job]:.2g}" if job in deltas else "the same"
        print(f"| {job} | {delta} | {own:.4g} | {first:.4g} | {second:.4g} | {own / first:.2f} | {own / second:.2f} |")


def beside_tumult() -> None:
    """Print Tumult's errors."""
    columns = table()
    found = errors(tumult(columns), truth(columns))
    print(f"{datetime.now(UTC):%Y-%m-%d}; Tumult Analytics {version('tmlt.analytics')}\n\n| job | Tumult |\n|---|---|")
    for job, error in found.items():
        print(f"| {job} | {error:.4g} |")


def training() -> None:
    """Print the noise that each gives a training, relative to the clipping norm, and the exact delta of Opacus's."""
    from opacus.accountants.utils import get_noise_multiplier

    from lessnoise import learn

    warnings.simplefilter("ignore")
    names = ", ".join(f"{name} {version(name)}" for name in ("lessnoise", "opacus"))
    print(f"{datetime.now(UTC):%Y-%m-%d}; {names}; delta = {TRAINING_DELTA:g}\n")
    print("| rate | steps | epsilon | lessnoise | RDP | PRV | exact delta of RDP, PRV | squares: ours / RDP, PRV |")
    print("|---|---|---|---|---|---|---|---|")
    for rate, steps in TRAININGS:
        for epsilon in (1.0, 4.0):
            plan = learn.plan_training(
                "gaussian", clip_norm=1, parameters=1000, rate=rate, steps=steps, records=60_000, epsilon=epsilon,
                delta=TRAINING_DELTA,
            )  # fmt: skip
            own = plan.mechanism.standard_deviation
            settings: dict[str, Any] = {"target_epsilon": epsilon, "target_delta": TRAINING_DELTA}
            theirs, exact = [], []
            for accountant in ("rdp", "prv"):
                given = get_noise_multiplier(**settings, sample_rate=rate, steps=steps, accountant=accountant)
                theirs.append(float(given))
                step = learn.gaussian(noise_multiplier=theirs[-1], clip_norm=1, parameters=1000)
                exact.append(step.subsample(rate).repeat(steps).delta(epsilon).upper)
            print(
                f"| {rate:.4g} | {steps} | {epsilon:g} | {own:.4f} | {theirs[0]:.4f} | {theirs[1]:.4f} "
                f"| {exact[0]:.2g}, {exact[1]:.2g} | {(own / theirs[0]) ** 2:.2f}, {(own / theirs[1]) ** 2:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "statistics"
    if chosen == "training":
        training()
    elif chosen == "tumult":
        beside_tumult()
    else:
        statistics(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
