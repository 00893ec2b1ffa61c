"""Distribution functions and ranges of a table: against the truth, intervals, engines, units, errors, pictures."""

import functools
import itertools
import json
import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.query import Axis, Grouped
from lessnoise.table.sums_of_cells import workload_of
from tests.helpers.sentences import refused

KEYS = ["Oslo", "Bergen"]
TARGET = {"epsilon": 1.0, "delta": 1e-6}
EDGES = (0.0, 10.0, 25.0, 30.0, 60.0, 100.0)
CDF, COUNTS, RANGES = (
    ln.cdf("age", edges=EDGES),
    ln.cdf("age", edges=EDGES, shares=False),
    ln.ranges("age", edges=EDGES),
)


@functools.cache
def people(rows=600, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.gamma(4.0, 10.0, rows)
    age[::17] = np.nan
    age[::23] = 250.0
    who = np.arange(rows) // 2
    return {"city": rng.choice([*KEYS, "Rome"], rows, p=[0.5, 0.3, 0.2]), "age": age, "who": who}


def truth(data, one, city=None):
    """By counting, one number after the other; the last cell holds its upper edge."""
    age = data["age"] if city is None else data["age"][data["city"] == city]
    age = age[(age >= EDGES[0]) & (age <= EDGES[-1])]

    def between(low, high):
        return int(((age >= low) & ((age < high) | (high == EDGES[-1]))).sum())

    if one.kind == "ranges":
        return [between(low, high) for low, high in itertools.combinations(EDGES, 2)]
    return [between(EDGES[0], high) / (len(age) if one.shares else 1) for high in EDGES[1:]]


def values(answer, one, **group):
    rows = [row for row in answer.rows if all(row[name] == value for name, value in group.items())]
    return [row["value"] for row in rows if row["statistic"] in one.names]


@pytest.mark.parametrize("one", [CDF, COUNTS, RANGES], ids=["cdf", "counts", "ranges"])
def test_estimates_from_exact_cells_are_the_truth(one):
    data = people()
    exact = Grouped((Axis("city", keys=KEYS),), (one.measure,)).answer(data).value
    for group, city in enumerate(KEYS):
        assert one.estimate(one.measure, exact[group]).tolist() == pytest.approx(truth(data, one, city), abs=1e-12)
    assert len(one.names) == len(set(one.names)) == len(truth(data, one))


@pytest.mark.parametrize("one", [CDF, COUNTS, RANGES], ids=["cdf", "counts", "ranges"])
def test_its_workload_is_what_it_reads_from_the_cells(one):
    cells = np.random.default_rng(2).integers(0, 50, len(EDGES) - 1).astype(float)
    read = np.sort(one.estimate(one.measure, cells) * (cells.sum() if one.kind == "cdf" and one.shares else 1.0))
    assert read == pytest.approx(np.sort(one.workload.answers(cells)))


@pytest.mark.parametrize("grouped", [False, True])
def test_released_values_are_near_the_truth(grouped):
    """The noise of a sum has 1/25 of the deviation at epsilon 1, about 4 rows; 10 rows are 60 deviations off."""
    data, table = people(), ln.Table(people())
    groups = [{"city": city} for city in KEYS] if grouped else [{}]
    asked = table.group_by("city", keys=KEYS) if grouped else table
    question = asked.aggregate(CDF, RANGES, ln.histogram("age", edges=EDGES))
    answer = question.release(epsilon=25, delta=1e-6)
    assert len(question.plan(**TARGET).parts) == len(answer.certificates) == 1, "one release serves all"
    assert answer.private
    for group in groups:
        counts = truth(data, COUNTS, group.get("city"))
        assert values(answer, RANGES, **group) == pytest.approx(truth(data, RANGES, group.get("city")), abs=10)
        assert values(answer, CDF, **group) == pytest.approx(truth(data, CDF, group.get("city")), abs=20 / counts[-1])
        cells = values(answer, ln.histogram("age", edges=EDGES), **group)
        assert np.cumsum(cells) == pytest.approx(counts, abs=10)
    for row in answer.rows:
        assert row["lower"] <= row["value"] <= row["upper"]


def covered(question, wanted, seeds, **target):
    inside = []
    for seed in range(seeds):
        answer = question.release(**(TARGET | target), rng=np.random.default_rng(seed))
        inside.append([row["lower"] <= true <= row["upper"] for row, true in zip(answer.rows, wanted, strict=True)])
    return np.mean(inside, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("one", [COUNTS, RANGES], ids=["counts", "ranges"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_hold_the_truth_as_often_as_they_say(one, epsilon):
    """300 seeded releases: 0.95 of one row has a deviation of 0.0126, and 0.88 is 5 of them below."""
    data = people()
    wanted = [each for city in KEYS for each in truth(data, one, city)]
    question = ln.Table(data).group_by("city", keys=KEYS).aggregate(one)
    found = covered(question, wanted, 300, epsilon=epsilon)
    assert found.min() > 0.88
    assert 0.935 < found.mean() < (0.975 if epsilon < 1.0 else 0.997), "noise of whole numbers is 0 as a rule"


@pytest.mark.slow
@pytest.mark.parametrize("rows", [12, 600])
def test_intervals_of_shares_hold_the_truth(rows):
    """In a table of 12 rows, too, whose number the noise may hide; the last share is 1, and is left out."""
    data = people(rows)
    found = covered(ln.Table(data).aggregate(CDF), truth(data, CDF), 300)[:-1]
    assert found.min() > 0.9
    assert found.mean() > 0.935
    assert rows < 100 or found.mean() < 0.985


def test_shares_of_nobody_rise_evenly_and_are_not_known():
    nobody = {"age": np.array([250.0] * 5)}
    answer = ln.Table(nobody).aggregate(CDF).release(**TARGET, rng=np.random.default_rng(3))
    assert all(0.0 <= row["lower"] <= row["value"] <= row["upper"] <= 1.0 for row in answer.rows)
    assert answer.rows[0]["upper"] - answer.rows[0]["lower"] > 0.8
    none = np.zeros(5)
    assert CDF.estimate(CDF.measure, none, 1.0).tolist() == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert np.isnan(CDF.estimate(CDF.measure, none)[:-1]).all()


@pytest.mark.slow
def test_users_and_replaced_rows_get_more_noise():
    data = people()
    tables = [ln.Table(data), ln.Table(data, ln.Unit("who", max_rows=2)), ln.Table(data, neighbours="replace")]
    spreads = []
    for table in tables:
        question = table.aggregate(CDF)
        plan = question.plan(**TARGET)
        answer = question.release(**TARGET, rng=np.random.default_rng(1))
        assert answer.guarantee.delta <= 1e-6
        spreads.append(plan.rows()[0]["noise sd"])
        half = 6 * spreads[-1]  # Laplace noise: beyond with probability below e^-8, and the seed is fixed
        total = truth(data, COUNTS)[-1]
        assert values(answer, CDF) == pytest.approx(truth(data, CDF), abs=2 * half / total)
    assert spreads[1] == pytest.approx(2 * spreads[0], rel=0.1)
    assert 1.2 * spreads[0] < spreads[2] < 2.1 * spreads[0]


def test_private_keys_have_independent_noise():
    data = people()
    question = ln.Table(data).group_by("city").aggregate(CDF, RANGES)
    assert {part.mechanism.law.kind for part in question.plan(epsilon=25, delta=1e-6).parts} == {"geometric"}
    answer = question.release(epsilon=25, delta=1e-6)
    assert {row["city"] for row in answer.rows} == {*KEYS, "Rome"}, "the noise of their number ends: this is certain"
    for city in KEYS:
        assert values(answer, RANGES, city=city) == pytest.approx(truth(data, RANGES, city), abs=20)


def test_engines_agree_to_the_last_bit(tmp_path):
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    data = people()
    frame = pandas.DataFrame(data)
    frame.to_csv(tmp_path / "people.csv", index=False)

    def rows(source, **options):
        asked = ln.Table(source, **options).group_by("city", keys=KEYS).aggregate(CDF, RANGES)
        return asked.release(**TARGET, rng=np.random.default_rng(7)).rows

    wanted = rows(data)
    for source in (frame, duckdb.from_df(frame), tmp_path / "people.csv"):
        assert rows(source) == wanted


def test_the_plan_says_the_error_of_a_sum():
    """Against 4,000 seeded draws of the noise, of which the mean square is known to some percent."""
    question = ln.Table(people()).group_by("city", keys=KEYS).aggregate(COUNTS, ln.histogram("age", edges=EDGES))
    plan = question.plan(**TARGET)
    (part,) = plan.parts
    draws = part.noise(2, 4000, np.random.default_rng(5))
    spreads = [math.sqrt(np.square(each).mean()) for each in (np.cumsum(draws, axis=-1), draws)]
    assert plan.rows()[0]["noise sd"] == pytest.approx(max(spreads), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("bins", [16, 64])
def test_the_error_is_smaller_than_that_of_summed_cells(bins):
    """A sum of the first k of m noisy cells has k times the variance of one: (m + 1)/2 on average."""
    alone = ln.Table({}).aggregate(ln.histogram("age", (0, 100), bins)).plan(**TARGET).rows()[0]["noise sd"]
    summed = alone * math.sqrt((bins + 1) / 2)
    chosen = ln.Table({}).aggregate(ln.cdf("age", (0, 100), bins)).plan(**TARGET).rows()[0]["noise sd"]
    assert chosen < (0.95 if bins == 16 else 0.75) * summed


def test_noise_for_intervals_is_that_of_releases():
    """Mean squares over 2,000 draws each, of noise that is fitted at once and of releases of zeros."""
    (part,) = ln.Table({}).aggregate(COUNTS).plan(**TARGET).parts
    at_once = part.noise(1, 2000, np.random.default_rng(1))[:, 0]
    zeros, rng = np.zeros(part.mechanism.shape), np.random.default_rng(2)
    one_by_one = np.stack([part.mechanism.release(zeros, rng).value for _ in range(2000)])
    for draws in (at_once, one_by_one):
        found = np.square(np.cumsum(draws, axis=-1)).mean()
        assert found == pytest.approx(part.deviation**2, rel=0.2)


def test_several_columns_are_planned_at_once_and_paid_once(tmp_path):
    data = people() | {"income": people()["age"] * 2.0}
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=1.5, delta=1e-5)
    question = ln.Table(data).aggregate(ln.count(), CDF, ln.ranges("income", (0, 100), 3))
    plan = question.plan(**TARGET)
    added = plan.added_up()
    assert len(plan.parts) == 3
    assert added is not None
    assert added.epsilon == 1.0
    assert plan.composition.delta(1.0).lower <= added.delta <= 1e-6, "sums of deltas are on the safe side"
    answer = question.release(**TARGET, ledger=ledger)
    assert ledger.count() == 1
    assert answer.guarantee.delta <= 1e-6


def test_an_answer_is_saved_drawn_and_verified(tmp_path):
    pytest.importorskip("pyarrow")
    asked = ln.Table(people()).group_by("city", keys=KEYS).aggregate(CDF, RANGES)
    answer = asked.release(**TARGET)
    answer.save(tmp_path / "d", formats=("csv", "json", "parquet"))
    certificate = ln.TableAnswer.verify(tmp_path / "d")
    assert [one["aggregate"] for one in certificate["aggregates"]] == ["cdf", "ranges"]
    assert certificate["aggregates"][0]["shares"] is True
    assert json.loads((tmp_path / "d" / "answer.json").read_text()) == [dict(row) for row in answer.rows]
    (release,) = certificate["releases"]
    assert ln.Certificate.from_dict(release).to_dict() == release
    assert any("in no cell" in rule for rule in certificate["rules"])


@pytest.mark.slow
def test_a_distribution_function_is_drawn_as_a_line():
    pytest.importorskip("matplotlib")
    many = ln.cdf("age", (0, 100), 40)
    answer = ln.Table(people()).group_by("city", keys=KEYS).aggregate(many, RANGES).release(**TARGET)
    curves, lines = answer.plot().axes
    assert curves.get_title(loc="left") == "share of age up to"
    assert [len(line.get_xdata()) for line in curves.lines] == [41, 41]
    assert curves.lines[1].get_ydata()[1:].tolist() == values(answer, many, city="Bergen")
    assert [text.get_text() for text in curves.get_legend().get_texts()] == KEYS
    assert lines.get_title(loc="left") == "count of age from"
    assert len(lines.get_yticks()) == 30


def test_bad_input_is_refused_in_one_sentence():
    refused(lambda: ln.cdf("age"), "age")
    refused(lambda: ln.cdf("age", bounds=(0, 1)), "bins")
    refused(lambda: ln.cdf("age", bounds=(1, 0), bins=3), "bounds")
    refused(lambda: ln.cdf("age", edges=[0, 0, 1]), "edges")
    refused(lambda: ln.cdf(3, (0, 1), 3), "column")
    refused(lambda: ln.cdf("age", (0, 1), 10_001), "cells=10001")
    refused(lambda: ln.ranges("age", (0, 1), 141), "ranges")
    with pytest.raises(TypeError):
        ln.cdf("age", keys=["a", "b"])
    table = ln.Table(people())
    refused(lambda: table.aggregate(CDF, CDF), "twice")
    refused(lambda: table.aggregate(ln.cdf("no\x1b[31m such", (0, 1), 3)).release(**TARGET), "such")


def test_kinds_of_sums_weigh_alike():
    measure = COUNTS.measure
    both = workload_of(measure, [COUNTS, ln.histogram("age", edges=EDGES)], 2)
    assert both is not None
    assert both.shape == (2, 5)
    assert workload_of(measure, [ln.histogram("age", edges=EDGES)], 2) is None
    assert workload_of(ln.cdf("age", (0, 1), 1).measure, [ln.cdf("age", (0, 1), 1)], 1) is None
