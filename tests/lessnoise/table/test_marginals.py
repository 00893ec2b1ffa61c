"""Marginals of a table: against the truth, consistency, intervals, engines, units, files, pictures, bad input."""

import functools
import json
import math

import numpy as np
import pytest

import lessnoise as ln
from tests.helpers.sentences import refused

TARGET = {"epsilon": 1.0, "delta": 1e-6}
CITY, SEX, AGE = (
    ln.Axis("city", keys=["Oslo", "Bergen"]),
    ln.Axis("sex", keys=[1, 2]),
    ln.Axis("age", bounds=(0, 90), bins=3),
)
CELLS = ["0 to 30", "30 to 60", "60 to 90"]


@functools.cache
def people(rows=500):
    rng = np.random.default_rng(1)
    city = rng.choice(["Oslo", "Bergen", "Rome"], rows, p=[0.5, 0.3, 0.2])
    return {"city": city, "sex": rng.integers(1, 3, rows), "age": rng.uniform(0, 90, rows), "who": np.arange(rows) // 2}


def true_count(row, data):
    """By a look at every row."""
    found = 0
    for city, sex, age in zip(data["city"], data["sex"], data["age"], strict=True):
        cell = CELLS[min(int(age // 30), 2)]
        own = {"city": city, "sex": sex, "age": cell}
        found += city != "Rome" and all(row[name] in (None, own[name]) for name in own)
    return found


def asked(data=None, *, order=2, sets=None, **options):
    table = ln.Table(people() if data is None else data, **options)
    return table.marginals(CITY, SEX, AGE, order=None if sets else order, sets=sets)


def test_every_table_is_near_the_truth():
    """At epsilon 30 noise of 20 rows on a sum of few cells has a probability below e^-50."""
    answer = asked().release(epsilon=30, delta=1e-6)
    assert answer.private
    assert len(answer.rows) == 4 + 6 + 6
    for row in answer.rows:
        assert row["value"] == pytest.approx(true_count(row, people()), abs=20)
        assert row["lower"] < row["value"] < row["upper"]
        assert sum(row[name] is None for name in ("city", "sex", "age")) == 1


def test_totals_of_all_tables_agree():
    answer = asked(sets=[["city", "sex"], ["age", "city"], ["city"], []]).release(**TARGET)
    rows = {(row["city"], row["sex"], row["age"]): row["value"] for row in answer.rows}
    assert len(rows) == 4 + 6 + 2 + 1
    for city in ("Oslo", "Bergen"):
        by_sex = math.fsum(rows[city, sex, None] for sex in (1, 2))
        by_age = math.fsum(rows[city, None, cell] for cell in CELLS)
        assert by_sex == pytest.approx(rows[city, None, None], abs=1e-6)
        assert by_age == pytest.approx(rows[city, None, None], abs=1e-6)
    assert rows["Oslo", None, None] + rows["Bergen", None, None] == pytest.approx(rows[None, None, None], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_intervals_hold_the_truth_as_often_as_they_say(epsilon):
    """300 seeded releases: 0.95 has a deviation of 0.0126; rows of one release depend on each other."""
    question = asked()
    wanted, inside = None, []
    for seed in range(300):
        rows = question.release(epsilon, 1e-6, rng=np.random.default_rng(seed)).rows
        wanted = wanted or [true_count(row, people()) for row in rows]
        inside.append([row["lower"] <= true <= row["upper"] for row, true in zip(rows, wanted, strict=True)])
    found = np.mean(inside, axis=0)
    assert found.min() > 0.88
    assert 0.94 < found.mean() < (0.985 if epsilon < 1.0 else 0.999), "intervals of whole numbers end at whole numbers"


def test_the_plan_says_the_error_of_a_count():
    """Against 2,000 draws of the noise; the mean square of the noise of a count is known to some percent then."""
    question = asked()
    plan = question.plan(**TARGET)
    (part,) = plan.parts
    tables = part.noise(12, 2000, np.random.default_rng(2)).reshape(-1, 2, 2, 3)
    squares = [np.square(tables.sum(axis=axis)) for axis in (3, 2, 1)]
    found = math.sqrt(math.fsum(each.sum() for each in squares) / sum(each.size for each in squares))
    (row,) = plan.rows()
    assert row["noise sd"] == pytest.approx(found, rel=0.1)
    assert row["answers"] == "counts in 3 tables"
    assert str(plan).startswith("counts in 3 tables: epsilon 1")


@pytest.mark.slow
def test_the_error_is_smaller_than_that_of_summed_cells_and_of_tables_apart():
    axes = [ln.Axis(name, bounds=(0, 1), bins=8) for name in "abc"]
    table = ln.Table({})
    error = table.marginals(*axes, order=1).plan(**TARGET).rows()[0]["noise sd"]
    cells = table.group_by(*axes).aggregate(ln.count()).plan(**TARGET).rows()[0]["noise sd"]
    apart = table.group_by(axes[0]).aggregate(ln.count()).plan(epsilon=1 / 3, delta=1e-6 / 3).rows()[0]["noise sd"]
    assert error < 0.6 * cells * math.sqrt(64)
    assert error < 1.01 * apart


@pytest.mark.slow
def test_users_and_replaced_rows():
    spreads = []
    for options in ({}, {"unit": ln.Unit("who", max_rows=2)}, {"neighbours": "replace"}):
        question = asked(order=1, **options)
        answer = question.release(epsilon=10, delta=1e-6)
        assert answer.guarantee.delta <= 1e-6
        spreads.append(question.plan(epsilon=10, delta=1e-6).rows()[0]["noise sd"])
        for row in answer.rows:  # sums of noise of about one row: 60 are off with probability below e^-50
            assert row["value"] == pytest.approx(true_count(row, people()), abs=60)
    assert spreads[0] < min(spreads[1:])


def test_engines_agree_to_the_last_bit(tmp_path):
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    frame = pandas.DataFrame(people())
    frame.to_csv(tmp_path / "people.csv", index=False)

    def rows(source):
        return asked(source).release(**TARGET, rng=np.random.default_rng(7)).rows

    wanted = rows(people())
    for source in (frame, duckdb.from_df(frame), tmp_path / "people.csv"):
        assert rows(source) == wanted


def test_an_answer_is_saved_and_verified_and_blank_where_a_column_is_summed_over(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=1.5, delta=1e-5)
    answer = asked().release(**TARGET, ledger=ledger)
    assert ledger.count() == 1
    answer.save(tmp_path / "d", formats=("csv", "json", "parquet"))
    certificate = ln.TableAnswer.verify(tmp_path / "d")
    assert certificate["marginals"] == [["city", "sex"], ["city", "age"], ["sex", "age"]]
    (release,) = certificate["releases"]
    assert ln.Certificate.from_dict(release).to_dict() == release
    saved = json.loads((tmp_path / "d" / "answer.json").read_text())
    assert saved == [dict(row) for row in answer.rows]
    assert saved[0]["age"] is None
    assert (tmp_path / "d" / "answer.csv").read_text().splitlines()[1].startswith("Oslo,1,,count,")
    frame, arrow = answer.to_pandas(), answer.to_arrow()
    assert frame["sex"].dtype == "Int64"
    assert frame["sex"].isna().sum() == arrow["sex"].null_count == 6
    assert "None" not in str(answer)


def test_a_trial_has_the_rows_of_a_release():
    job = asked().prepare(**TARGET)
    trial, made = job.trial(), job.release(job.answer())
    labels = [
        [{name: row[name] for name in ("city", "sex", "age", "statistic")} for row in x.rows] for x in (trial, made)
    ]
    assert labels[0] == labels[1]
    assert trial.columns == made.columns


def test_each_table_has_a_panel():
    pytest.importorskip("matplotlib")
    panels = asked().release(**TARGET).plot().axes
    assert [each.get_title(loc="left") for each in panels] == [
        "count by city, sex",
        "count by city, age",
        "count by sex, age",
    ]
    labels = [[text.get_text() for text in each.get_yticklabels()] for each in panels]
    assert labels[0] == ["Oslo, 1", "Oslo, 2", "Bergen, 1", "Bergen, 2"]
    assert labels[2][0] == "1, 0 to 30"


def test_one_column_is_a_table_by_itself():
    answer = ln.Table(people()).marginals(CITY, order=1).release(epsilon=30, delta=1e-6)
    assert [row["city"] for row in answer.rows] == ["Oslo", "Bergen"]
    assert [row["value"] for row in answer.rows] == pytest.approx(
        [int((people()["city"] == city).sum()) for city in ("Oslo", "Bergen")], abs=20
    )


def test_bad_input_is_refused_in_one_sentence():
    table = ln.Table(people())
    refused(lambda: table.marginals(CITY, SEX), "order=None", "sets=None")
    refused(lambda: table.marginals(CITY, SEX, order=1, sets=[["city"]]), "pass one of them")
    refused(lambda: table.marginals(CITY, SEX, order=3), "order=3", "2 columns")
    refused(lambda: table.marginals(CITY, order=2), "order=2")
    refused(lambda: table.marginals(order=1), "order=1")
    refused(lambda: table.marginals(order=0), "order=0")
    refused(lambda: table.marginals(CITY, SEX, order=1.5), "order=1.5")
    refused(lambda: table.marginals("city", SEX, order=1), "'city'", "Axis")
    refused(lambda: table.marginals(CITY, CITY, order=1), "city")
    refused(lambda: table.marginals(CITY, SEX, sets=[["city", "city"]]), "twice")
    refused(lambda: table.marginals(CITY, SEX, sets=[["city", "sex"], ["sex", "city"]]), "twice")
    refused(lambda: table.marginals(CITY, SEX, sets=["city"]), "'city'", "is not a list")
    refused(lambda: table.marginals(CITY, SEX, sets=[]), "sets=[]")
    refused(lambda: table.marginals(CITY, SEX, sets=[["hair"]]), "'hair'")
    refused(lambda: table.marginals(CITY, SEX, sets=[[["city"]]]), "columns")
    refused(lambda: table.marginals(CITY, SEX, sets=3), "sets=3")
    refused(lambda: table.marginals(CITY, SEX, sets=[3]), "3", "is not a list")
    many = [ln.Axis(f"column {i}", bounds=(0, 1), bins=1000) for i in range(3)]
    refused(lambda: table.marginals(*many, order=1), "cells together")
    hostile = ln.Axis("no\x1b[31m such", keys=["a", "b"])
    refused(lambda: table.marginals(CITY, hostile, order=1).release(**TARGET), "such")
    refused(lambda: table.marginals(CITY, ln.Axis("value", keys=["a", "b"]), order=1), "'value'")
    refused(lambda: ln.Table(people(), ln.Unit("sex", max_rows=1)).marginals(CITY, SEX, order=1), "sex")
    refused(lambda: asked().release(**TARGET, weights=[1, 2]), "weights")
    refused(lambda: asked().release(epsilon=-1, delta=1e-6), "epsilon")
