"""Ask a table: estimates without noise, engines, neighbours within the stated sets, budgets, intervals, bad input."""

import json

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.query import ROWS, Axis, Grouped, Measure
from lessnoise.table.measures import measures_of, serves

KEYS = ["Oslo", "Bergen"]
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def people(rng, rows):
    return {
        "city": rng.choice([*KEYS, "Rome"], rows),
        "income": rng.choice([10.0, 50_000.0, 1e9, -5.0, np.nan, np.inf, -np.inf, 120_000.0], rows),
        "age": rng.uniform(0, 100, rows),
        "who": rng.integers(0, max(rows // 2, 1), rows),
    }


QUESTION = (
    ln.count(),
    ln.sum("income", bounds=(0, 100_000)),
    ln.mean("income", bounds=(0, 200_000)),
    ln.variance("age", bounds=(0, 120)),
    ln.mean("age", bounds=(0, 120)),
    ln.quantiles("age", [0.25, 0.5, 0.9], bounds=(0, 120)),
)


def test_estimates_from_exact_measures_are_the_statistics_themselves():
    rng = np.random.default_rng(1)
    data = people(rng, 4000)
    query = Grouped((Axis("city", keys=KEYS),), measures_of(QUESTION))
    value = query.answer(data).value
    for group, city in enumerate(KEYS):
        mine = data["city"] == city
        income, age = data["income"][mine], data["age"][mine]
        kept = np.clip(income[~np.isnan(income)], 0, 200_000)
        expected = {
            "count": [mine.sum()],
            "sum": [np.clip(income[~np.isnan(income)], 0, 100_000).sum()],
            "mean of income": [kept.mean()],
            "variance of age": [age.var()],
            "mean of age": [age.mean()],
            "quantiles": np.quantile(age, [0.25, 0.5, 0.9]),
        }
        for one, wanted in zip(QUESTION, expected.values(), strict=True):
            measure, where = next((m, w) for m, w in query.places() if serves(m, one))
            found = one.estimate(measure, value[group, where])
            tolerance = 1.0 if one.kind == "quantiles" else 1e-3 * max(abs(float(wanted[0])), 1.0)
            assert found == pytest.approx(wanted, abs=tolerance), one.names


def test_statistics_of_one_column_share_a_release():
    assert len(measures_of(QUESTION)) == 4
    assert len(measures_of(QUESTION, joint=False)) == 5, "with private keys the count is apart"
    age = {"column": "age", "bounds": (0, 120)}
    every = [ln.count(), ln.sum(**age), ln.mean(**age), ln.variance(**age)]
    assert measures_of(every) == (Measure("moments", "age", (0.0, 120.0), 2, absent=True),)
    assert measures_of(every[:2]) == (Measure("moments", "age", (0.0, 120.0), 1, absent=True),)
    assert measures_of(every[1:3]) == (Measure("moments", "age", (0.0, 120.0), 1),)
    assert measures_of(every[:1]) == (ROWS,)
    assert set(measures_of(every[:2], weights=[10.0, 1.0])) == {Measure("total", "age", (0.0, 120.0)), ROWS}
    assert measures_of([ln.mean("a", bounds=(0, 1)), ln.mean("a", bounds=(0, 2))]) != measures_of(
        [ln.mean("a", bounds=(0, 1))]
    )


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_neighbour_moves_a_measure_beyond_its_set(relation, rows):
    rng = np.random.default_rng(3)
    query = Grouped((Axis("city", keys=KEYS),), measures_of(QUESTION))
    unit = ln.Unit() if rows == 1 else ln.Unit("who", max_rows=rows)
    for _ in range(60):
        data = people(rng, 12)
        left_out = data["who"] == data["who"][0] if rows > 1 else np.arange(12) == 0
        other = {name: values[~left_out] for name, values in data.items()}
        if relation == "replace":
            fresh = people(rng, rows)
            fresh["who"][:] = 999
            other = {name: np.append(values, fresh[name]) for name, values in other.items()}
        both = [query.answer(each, neighbours=relation, unit=unit).value for each in (data, other)]
        for measure, where in query.places():
            moved = (both[0] - both[1])[:, where].ravel().tolist()
            assert measure.changes(2, rows, ln.Neighbours.of(relation)).contains(moved), measure


@pytest.mark.parametrize("unit", [ln.Unit(), ln.Unit("who", max_rows=2, key="k")], ids=str)
def test_engines_agree_bit_for_bit(unit):
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    data = people(np.random.default_rng(5), 500)
    query = Grouped((Axis("city", keys=KEYS), Axis("age", edges=[0, 30, 100])), measures_of(QUESTION))
    exact = query.answer(data, unit=unit).value
    frame = pd.DataFrame(data)
    for other in (frame, pa.table(data), pa.Table.from_pandas(frame)):
        assert np.array_equal(query.answer(other, unit=unit).value, exact)


def test_a_release_is_paid_once_and_says_what_it_guarantees(tmp_path):
    data = people(np.random.default_rng(2), 300)
    question = ln.Table(data, unit=ln.Unit("who", max_rows=3)).group_by("city", keys=KEYS).aggregate(*QUESTION)
    ledger = ln.Ledger.open(tmp_path / "city.ledger", epsilon=1.5, delta=1e-5)
    answer = question.release(**TARGET, ledger=ledger)
    assert answer.guarantee.epsilon == 1.0
    assert answer.guarantee.delta <= 1e-6
    assert ledger.spent().upper <= 1.0 + 1e-9
    assert answer.receipt is not None
    before = ledger.spent()
    with pytest.raises(ln.BudgetExceeded):
        question.prepare(**TARGET, ledger=ledger)
    question.prepare(epsilon=0.1, delta=1e-7, ledger=ledger)  # looks at the budget, and spends nothing
    assert ledger.spent() == before
    with pytest.raises(ln.BudgetExceeded):
        question.release(**TARGET, ledger=ledger)
    assert [row["statistic"] for row in answer.rows[:8]] == [name for one in QUESTION for name in one.names]
    assert all(row["lower"] <= row["upper"] for row in answer.rows)
    assert {row["city"] for row in answer.rows} == set(KEYS)
    described = json.loads(json.dumps(answer.certificate))
    assert described["unit"] == {"id": "who", "max_rows": 3}
    assert described["private"]
    assert any("clipped" in rule for rule in described["rules"])
    assert "follows from the query" in described["sensitivity"]


def test_nothing_of_the_data_is_shown():
    data = {"city": np.array(["Oslo"] * 3), "age": np.array([12.34567, 55.5, 77.0])}
    table = ln.Table(data)
    question = table.group_by("city", keys=KEYS).aggregate(ln.count(), ln.mean("age", bounds=(0, 120)))
    for thing in (table, question, question.plan(**TARGET), repr(question.query)):
        assert "12.3" not in repr(thing) + str(thing)
    assert "12.34567" not in str(question.release(**TARGET))


def test_a_plan_reads_no_data_and_weights_change_it():
    table = ln.Table("no-such-file.parquet")
    question = table.aggregate(ln.count(), ln.sum("age", bounds=(0, 100)))
    even, uneven = question.plan(**TARGET), question.plan(**TARGET, weights=[10, 1])
    epsilons = [[part.mechanism.claim.epsilon for part in plan.parts] for plan in (even, uneven)]
    assert sum(epsilons[0]) == pytest.approx(1.0, rel=1e-6)
    assert (len(epsilons[0]), len(epsilons[1])) == (1, 2)
    assert max(epsilons[1]) > 0.8
    assert "count" in str(even)


@pytest.mark.parametrize("bounds", [(0, 100), (-100, 100), (40, 60), (-100, 0)])
def test_the_planned_precision_is_that_of_the_noise(bounds):
    data, rng = {"x": np.where(np.arange(3000) % 7, np.linspace(-200, 200, 3000), np.nan)}, np.random.default_rng(8)
    asked = (ln.count(), ln.sum("x", bounds), ln.variance("x", bounds))
    job = ln.Table(data).aggregate(*asked).prepare(epsilon=1, delta=1e-6, rng=rng)
    (part,) = job.plan.parts
    answer = job.answer()
    draws = np.array([[row["value"] for row in job.release(answer).rows] for _ in range(400)])
    clipped = np.clip(data["x"][~np.isnan(data["x"])], *bounds)
    for place, (one, truth) in enumerate(zip(asked, (3000, clipped.sum()), strict=False)):
        unit = 1.0 if place == 0 else max(map(abs, bounds))
        error = np.sqrt(np.mean((draws[:, place] - truth) ** 2)) / unit
        assert error == pytest.approx(one.precision(part.measure), rel=0.2)  # deviation of the estimate: 5%


@pytest.mark.slow
def test_intervals_cover_the_truth():
    rng = np.random.default_rng(11)
    data = {"city": rng.choice(KEYS, 3000), "age": rng.normal(50, 15, 3000).clip(0, 120)}
    question = (
        ln.Table(data)
        .group_by("city", keys=KEYS)
        .aggregate(
            ln.count(),
            ln.mean("age", bounds=(0, 120)),
            ln.sum("age", bounds=(0, 120)),
            ln.variance("age", bounds=(0, 120)),
        )
    )
    truth = {}
    for city in KEYS:
        age = data["age"][data["city"] == city]
        truth |= {(city, "count"): len(age), (city, "mean of age"): age.mean()}
        truth |= {(city, "sum of age"): age.sum(), (city, "variance of age"): age.var()}
    hits: dict[str, list[bool]] = {}
    for _ in range(300):
        for row in question.release(**TARGET).rows:
            inside = row["lower"] <= truth[row["city"], row["statistic"]] <= row["upper"]
            hits.setdefault(row["statistic"], []).append(inside)
    for name, found in hits.items():  # 600 each: six deviations below 0.95 are 0.897
        assert np.mean(found) >= 0.897, name


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda t: t.group_by(), "names no column"),
        (lambda t: t.group_by("city", keys=["a", "a"]), "must be different"),
        (lambda t: t.aggregate(), "asks for nothing"),
        (lambda t: t.aggregate("count"), "is not a statistic"),
        (lambda t: t.aggregate(ln.count(), ln.count()), "twice"),
        (lambda t: t.aggregate(ln.mean("age", bounds=(5, 1))), "does not run from low to high"),
        (lambda t: t.aggregate(ln.mean("age", bounds=None)), "bounds=None"),
        (lambda t: t.aggregate(ln.quantiles("age", [1.5], bounds=(0, 1))), "probabilities"),
        (lambda t: t.aggregate(ln.quantiles("age", [], bounds=(0, 1))), "empty"),
        (lambda t: t.aggregate(ln.count()).release(epsilon=0, delta=1e-6), "epsilon=0"),
        (lambda t: t.aggregate(ln.mean("nowhere", bounds=(0, 1))).release(**TARGET), "column='nowhere' is not in"),
        (lambda t: t.aggregate(ln.mean("city", bounds=(0, 1))).release(**TARGET), "'city'"),
        (lambda t: t.aggregate(ln.count()).release(**TARGET, weights=[1, 2]), "weights has length=2"),
    ],
)
def test_bad_input_is_one_sentence(ask, words):
    table = ln.Table(people(np.random.default_rng(0), 20))
    with pytest.raises(ln.InvalidInput, match=words):
        ask(table)


def test_rows_are_a_measure_of_their_own():
    assert ROWS.width == 1
    assert Measure("moments", "a", (0, 1), 2).width == 3


# Private keys.


def test_keys_of_many_rows_are_released_and_rare_ones_never():
    city = np.array(["Oslo"] * 500 + ["Bergen"] * 200 + [f"rarity {i}" for i in range(300)])
    question = (
        ln.Table({"city": city, "age": np.full(len(city), 30.0)})
        .group_by("city")
        .aggregate(ln.count(), ln.mean("age", bounds=(0, 100)))
    )
    # Each rare key is shown with a probability of delta at most, so a small one keeps this from failing by chance.
    answer = question.release(epsilon=1, delta=1e-15)
    assert {row["city"] for row in answer.rows} == {"Oslo", "Bergen"}
    assert [row["city"] for row in answer.rows] == ["Bergen"] * 2 + ["Oslo"] * 2
    # Neither the certificate nor the description tells how many keys there were.
    told = json.dumps(answer.certificate)
    assert "502" not in told
    assert "rarity" not in told
    assert {one["mechanism"]["shape"][0] for one in answer.certificate["releases"]} == {2, 4}


def test_no_key_at_all():
    answer = ln.Table({"city": np.array(["a", "b"])}).group_by("city").aggregate(ln.count()).release(**TARGET)
    assert answer.rows == ()
    assert answer.columns == ("city", "statistic", "value", "lower", "upper")
    assert "statistic" in str(answer)


def test_private_keys_from_frames_and_of_numbers(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    frame = pd.DataFrame({"zone": [1, 2, 2] * 100, "city": ["x", None, "y"] * 100})
    by_zone = ln.Table(frame).group_by("zone").aggregate(ln.count()).release(**TARGET)
    assert [row["zone"] for row in by_zone.rows] == [1, 2]
    frame.to_csv(tmp_path / "people.csv", index=False)
    by_city = ln.Table(tmp_path / "people.csv").group_by("city").aggregate(ln.count()).release(**TARGET)
    assert [row["city"] for row in by_city.rows] == ["x", "y"]


def test_private_keys_need_a_column_that_is_there():
    with pytest.raises(ln.InvalidInput, match="column='town' is not in the data"):
        ln.Table({"city": np.array(["a"])}).group_by("town").aggregate(ln.count()).release(**TARGET)


@pytest.mark.parametrize("epsilon", [0.01, 8.0, 30.0])
def test_plans_at_small_and_large_epsilon(epsilon):
    data = {"city": np.array(["a", "b"] * 50), "age": np.full(100, 30.0)}
    for groups in (ln.Table(data).group_by("city", keys=["a", "b"]), ln.Table(data).group_by("city")):
        answer = groups.aggregate(ln.count(), ln.mean("age", bounds=(0, 100))).release(epsilon=epsilon, delta=1e-6)
        assert answer.guarantee.epsilon == epsilon
        assert answer.guarantee.delta <= 1e-6
