"""Private keys: what is shown of them, by its exact law; users in groups; several columns; engines; hostile names."""

import itertools
import json
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.engines import distinct_keys
from lessnoise.mechanism import Geometric
from lessnoise.mechanism.families.geometric import probabilities
from lessnoise.query import ROWS, USERS, Axis, FoundKeys, Grouped, Histogram, Unit
from lessnoise.table.job import _selected, _selecting

TARGET = {"epsilon": 1.0, "delta": 1e-6}
NAME = "Jane Doe of 7 Elm Street"


def question(data, unit=None, by=("city",), neighbours="add/remove", **options):
    return ln.Table(data, unit=unit or Unit(), neighbours=neighbours).group_by(*by, **options).aggregate(ln.count())


def columns(rows):
    """A table from (user, city) pairs."""
    who, city = zip(*rows, strict=True) if rows else ((), ())
    return {"who": np.array(who, dtype=np.int64), "city": np.array(city, dtype="U1" if not city else None)}


# The exact law of what is shown.


def shown_law(law, units):
    """For a key of so many units: P(hidden) and P(shown with n), n by n."""
    side = probabilities(law, law.reach + 2)
    noise = {sign * k: p for k, p in enumerate(side.tolist()) for sign in (1, -1)}
    found = defaultdict(float)
    for k, p in noise.items():
        found[units + k if units + k > law.reach + 1 else None] += p
    return dict(found)


def divergence(first, second, epsilon):
    """The hockey-stick of two product laws: of all that is shown of all keys."""
    total = 0.0
    for outcome in itertools.product(*first):
        p = math.prod(law[shown] for law, shown in zip(first, outcome, strict=True))
        q = math.prod(law.get(shown, 0.0) for law, shown in zip(second, outcome, strict=True))
        total += max(p - math.exp(epsilon) * q, 0.0)
    return total


@pytest.mark.parametrize(
    ("unit", "neighbours"),
    [
        (Unit(), "add/remove"),
        (Unit(), "replace"),
        (Unit("who", max_rows=1), "replace"),
        (Unit("who", max_rows=2), "add/remove"),
        (Unit("who", max_rows=4, max_groups=1), "add/remove"),
        (Unit("who", max_rows=4, max_groups=2), "add/remove"),
        (Unit("who", max_rows=2, max_rows_per_group=1), "add/remove"),
    ],
    ids=str,
)
def test_the_law_of_what_is_shown_keeps_its_promise(unit, neighbours):
    """Tiny tables, all their neighbours, both directions: every outcome's probability, against (epsilon, delta)."""
    epsilon, delta = 1.5, 0.05
    asked = question(columns([(0, "a")]), unit, neighbours=neighbours)
    plan = asked.plan(epsilon, delta)
    part = _selecting(plan)
    law, share = part.mechanism.law, part.mechanism.claim.epsilon
    assert isinstance(law, Geometric)
    spent = part.mechanism.delta(share)
    assert spent.upper <= delta
    most, keys = unit.groups, "abc"
    added = {each for size in range(most + 1) for each in itertools.combinations(keys, size)}  # once in each group
    worst = 0.0
    for held in itertools.product(range(4), repeat=2):
        base = Counter(dict(zip("ab", held, strict=True)))
        if neighbours == "add/remove":
            pairs = [(base, base + Counter(own)) for own in added]
        else:
            pairs = [(base + Counter(left), base + Counter(right)) for left, right in itertools.product(added, added)]
        for pair in pairs:
            moved = [key for key in keys if pair[0][key] != pair[1][key]]  # all others have the same law
            laws = [[shown_law(law, counts[key]) for key in moved] for counts in pair]
            worst = max(worst, divergence(*laws, share), divergence(*reversed(laws), share))
    assert worst <= spent.upper * (1.0 + 1e-12)  # rounding of the sums above
    assert worst > 0.0


def test_a_key_of_nobody_is_never_shown_and_one_of_a_single_unit_with_less_than_delta():
    for unit, neighbours in itertools.product(
        (Unit(), Unit("who", max_rows=5), Unit("who", max_rows=5, max_groups=2)), ("add/remove", "replace")
    ):
        part = _selecting(question(columns([(0, "a")]), unit, neighbours=neighbours).plan(**TARGET))
        assert set(shown_law(part.mechanism.law, 0)) == {None}, "with certainty"
        assert 0.0 < 1.0 - shown_law(part.mechanism.law, 1)[None] <= 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-5), (2.0, 1e-8), (0.1, 1e-3)])
def test_the_rule_is_the_optimal_one_up_to_one_unit(epsilon, delta):
    """Desfontaines et al. 2022: no rule shows a key of n units with more than pi_n, which theorem 1 has in steps."""
    law = _selecting(question(columns([(0, "a")])).plan(epsilon, delta)).mechanism.law
    e = math.exp(epsilon)
    assert law.reach + 1 == math.ceil(math.log((e + 2 * delta - 1) / ((e + 1) * delta)) / epsilon)
    best = [0.0]
    for _ in range(3 * law.reach):
        best.append(min(e * best[-1] + delta, 1.0 - (1.0 - best[-1] - delta) / e, 1.0))
    for units in range(1, 2 * law.reach):
        shown = 1.0 - shown_law(law, units).get(None, 0.0)
        assert 0.98 * best[units - 1] <= shown <= best[units] * (1.0 + 1e-9)  # 0.99 of delta is for the selection


@pytest.mark.slow
def test_the_name_of_a_user_is_in_no_release():
    """All that a user can do: many rows under a key of the user's own. It is shown with less than delta, as one is."""
    rows = [(0, NAME)] * 40 + [(1 + i // 3, f"city {i % 3}") for i in range(600)]
    unit = Unit("who", max_rows=30)
    job = question(columns(rows), unit).prepare(epsilon=2, delta=1e-12)
    answer = job.answer()
    own = answer.query.axes[0].keys.index(NAME)
    assert answer.value[own].tolist() == [30.0, 1.0]
    alone = np.tile(answer.value[own], (100_000, 1))
    assert len(_selected(job.plan, alone, None)[1]) == 0
    sure = 2.0 * (_selecting(job.plan).mechanism.law.reach + 1) + 1.0  # the noise is at most reach + 1
    assert len(_selected(job.plan, np.tile([30.0, sure], (100, 1)), None)[1]) == 100
    told = job.release(answer)
    words = str(told) + json.dumps(told.certificate) + repr(job.plan) + repr(answer) + repr(answer.query)
    assert NAME not in words
    assert "(4," not in words, "nor is the number of keys shown"
    assert {row["city"] for row in told.rows} <= {f"city {i}" for i in range(3)}


@pytest.mark.parametrize("unit", [Unit("who", max_rows=3), Unit("who", max_rows=3, max_groups=1)], ids=str)
@pytest.mark.parametrize("neighbours", ["add/remove", "replace"])
def test_counts_of_users_are_exact_and_keys_of_many_are_shown(unit, neighbours):
    rng = np.random.default_rng(1)
    rows = [(i, rng.choice(["a", "b"])) for i in range(600) for _ in range(4)] + [(5000 + i, f"r{i}") for i in range(9)]
    asked = question(columns(rows), unit, neighbours=neighbours)
    answer = asked.prepare(**TARGET).answer()
    assert answer.query.measures == (ROWS, USERS)
    users = answer.value[:, 1]
    assert users[2:].tolist() == [1.0] * 9
    if unit.max_groups == 1:
        assert users[:2].sum() == 600, "each in one group"
    assert (answer.value[:, 0] >= users).all()
    released = asked.release(epsilon=1, delta=1e-13)  # so that no rare key is shown by chance
    assert [row["city"] for row in released.rows] == ["a", "b"]
    assert released.guarantee.delta <= 1e-13
    assert released.guarantee.neighbours.value == neighbours
    for row, true in zip(released.rows, answer.value[:2, 0], strict=True):  # rate >= 0.05: below e^-30
        assert abs(row["value"] - true) < 700


def test_intervals_of_many_groups_are_made_in_blocks(monkeypatch):
    monkeypatch.setattr("lessnoise.table.job._BLOCK", 8)
    data = {"zone": np.repeat(np.arange(25), 400), "age": np.tile(np.linspace(0, 10, 400), 25)}
    asked = ln.Table(data).group_by("zone").aggregate(ln.count(), ln.mean("age", bounds=(0, 10)))
    rows = asked.release(epsilon=5, delta=1e-6).rows
    assert [row["zone"] for row in rows] == np.repeat(np.arange(25), 2).tolist()
    for row in rows:  # noise of a rate above 2: 20 away with a probability below e^-40
        true = 400 if row["statistic"] == "count" else 5.0
        assert row["lower"] <= row["value"] <= row["upper"]
        assert abs(row["value"] - true) < (20 if row["statistic"] == "count" else 1.0)


def test_a_unit_once_a_group_needs_no_other_count():
    for unit in (Unit(), Unit("who", max_rows=1), Unit("who", max_rows=9, max_rows_per_group=1)):
        assert question(columns([(0, "a")]), unit).measures == (ROWS,)
    means = ln.Table(columns([(0, "a")])).group_by("city").aggregate(ln.sum("who", bounds=(0, 1)))
    assert means.measures[-1] == ROWS


def test_fewer_groups_of_each_user_lower_the_noise_that_selects():
    def reach(**options):
        unit = Unit("who", max_rows=10, **options)
        return _selecting(question(columns([(0, "a")]), unit).plan(**TARGET)).mechanism.law.reach

    assert reach(max_groups=1) < 0.2 * reach(max_groups=5) < 0.2 * reach()


# Neighbours: nobody moves the exact numbers by more than the stated sets.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [{"max_groups": 1}, {"max_groups": 2}, {"max_rows_per_group": 1}, {"max_groups": 2, "max_rows_per_group": 2}],
)
def test_one_user_more_moves_counts_within_the_set_and_no_other_choice(seed, options):
    """Also if that user brings keys that nobody else has, which come first in the list of keys."""
    rng = np.random.default_rng(seed)
    unit = Unit("who", max_rows=4, key="fixed", **options)
    for _ in range(15):
        rows = [(int(w), c) for w, c in zip(rng.integers(0, 6, 60), rng.choice(list("mnopq"), 60), strict=True)]
        own = [(99, c) for c in rng.choice(list("aamnz"), rng.integers(0, 12))]
        both = []
        for table in (rows, rows + own):
            asked = question(columns(table), unit)
            answer = asked.prepare(**TARGET).answer()
            keys = answer.query.axes[0].keys
            both.append(dict(zip(keys, answer.value.tolist(), strict=True)))
        names = sorted(set(both[0]) | set(both[1]))
        width = len(next(iter(both[0].values())))
        moved = np.array([both[1].get(k, [0.0] * width) for k in names]) - [
            both[0].get(k, [0.0] * width) for k in names
        ]
        assert ROWS.changes(len(names), unit.rows, ln.Neighbours.ADD_REMOVE, unit.per_group).contains(moved[:, 0])
        assert (moved >= 0).all(), "no choice of others changes"
        assert moved[:, 0].max(initial=0) <= unit.per_group
        assert (moved[:, 0] > 0).sum() <= unit.groups
        assert moved[:, -1].sum() <= unit.groups
        assert moved[:, -1].max(initial=0) <= (1 if width > 1 else unit.per_group)


def test_a_cap_in_each_group_lowers_the_noise_of_counts():
    query = Histogram([Axis("city", keys=[f"c{i}" for i in range(64)])])
    sizes = [query.changes(unit=Unit("who", 50, max_rows_per_group=cap)).norm(2, 64) for cap in (None, 1)]
    assert sizes == pytest.approx([50.0, math.sqrt(50.0)])
    unit = Unit("who", max_rows=50, max_rows_per_group=1)
    assert str(query.changes(unit=unit)) == "at most 50 rows, at most 1 in a cell, add/remove"
    asked = ln.Table({"city": ["a"], "who": [1]}, unit=unit).group_by(
        "city", keys=["a", "b"] + [f"c{i}" for i in range(90)]
    )
    for measure in (ROWS, asked.aggregate(ln.quantiles("who", [0.5], bounds=(0, 1))).query.measures[0]):
        assert measure.changes(92, unit.rows, ln.Neighbours.ADD_REMOVE, unit.per_group) == query.changes(unit=unit)


# Several columns.


def test_several_private_columns_are_the_combinations_that_occur():
    rng = np.random.default_rng(2)
    data = {"city": rng.choice(["x", "y"], 4000), "zone": rng.choice([7, 3], 4000), "sex": rng.choice(["f", "m"], 4000)}
    kept = ~((data["city"] == "x") & (data["zone"] == 7))
    data = {name: np.append(values[kept], values[:1]) for name, values in data.items()}
    data["zone"] = np.where(np.arange(len(data["zone"])) == len(data["zone"]) - 1, 12345, data["zone"])
    released = question(data, by=("city", "zone")).release(**TARGET)
    assert [(row["city"], row["zone"]) for row in released.rows] == [("x", 3), ("y", 3), ("y", 7)]
    assert "12345" not in json.dumps(released.certificate) + str(released)
    assert released.certificate["query"]["axes"] == [{"column": n, "keys": "private"} for n in ("city", "zone")]
    released.plot()
    assert released.columns[:2] == ("city", "zone")
    # Public and private: in any order, and the exact numbers are those of public keys.
    for by in (("city", "zone", "sex"), ("sex", "city", "zone"), ("zone", "sex", "city")):
        asked = question(data, by=by, keys={"sex": ["m", "f", "none"]})
        assert asked.unknown == tuple(name for name in by if name != "sex")
        answer = asked.prepare(**TARGET).answer()
        axes = tuple(
            Axis(n, keys={"city": ["x", "y"], "zone": [3, 7, 12345], "sex": ["m", "f", "none"]}[n]) for n in by
        )
        full = Grouped(axes, (ROWS,)).answer(data).value.ravel()
        assert isinstance(answer.query, FoundKeys)
        assert np.array_equal(full[np.array(answer.query.only)], answer.value[:, 0])
        assert answer.value.sum() == full.sum()
        rows = asked.release(epsilon=20, delta=1e-12).rows
        assert {tuple(row[n] for n in ("city", "zone", "sex")) for row in rows} == {
            (c, z, s) for c, z in (("x", 3), ("y", 3), ("y", 7)) for s in ("f", "m")
        }
        for row in rows:
            true = np.logical_and.reduce([data[name] == row[name] for name in by]).sum()
            assert abs(row["value"] - true) <= 2


def test_the_rules_name_what_is_left_out():
    unit = Unit("who", max_rows=3, max_groups=2, max_rows_per_group=2)
    rules = question(columns([(0, "a")]), unit, by=("city", "sex"), keys={"sex": ["f"]}).rules
    assert "groups by 'city' and 'sex' whose noisy number of 'who' is too small are left out, with their rows" in rules
    assert "of each 'who' at most 2 groups are used, chosen at random" in rules
    assert "of each 'who' at most 2 rows are used in a group" in rules
    short = ln.Table(columns([(0, "a")]), unit=Unit("who", max_rows=3)).group_by("city", max_groups=2)
    assert short.table.unit == Unit("who", max_rows=3, max_groups=2)


# Engines.


def mixed_frame():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    city = rng.choice(np.array(["Oslo", "it's", None, "Ås", ""], dtype=object), 900)
    frame = {"city": city, "zone": rng.integers(-3, 3, 900), "who": rng.integers(0, 200, 900)}
    return pandas.DataFrame(frame | {"age": rng.choice([1.0, np.nan, 5.0], 900)})


def in_memory(frame):
    arrays = {name: frame[name].to_numpy() for name in ("zone", "who", "age")}
    return arrays | {"city": np.array([None if v != v else v for v in frame["city"]], dtype=object)}


UNITS = [Unit("who", 3, key="k"), Unit("who", 3, max_groups=2, key="k"), Unit("who", 4, max_rows_per_group=1, key="k")]


def assert_same_on(source, frame, units=UNITS, engine=None):
    expected = in_memory(frame)
    keys = distinct_keys(["city", "zone"], expected)
    assert distinct_keys(["city", "zone"], source, engine) == keys
    assert ("", -3) in keys
    assert len(keys) == 24
    for unit in units:
        answers = []
        for data, name in ((expected, None), (source, engine)):
            table = ln.Table(data, unit=unit, engine=name).group_by("city", "zone")
            asked = table.aggregate(ln.count(), ln.mean("age", bounds=(0, 9)))
            answers.append(asked.prepare(**TARGET).answer().value)
        assert np.array_equal(*answers), unit


@pytest.mark.slow
def test_duckdb_finds_and_counts_the_same_keys(tmp_path):
    pytest.importorskip("duckdb")
    frame = mixed_frame()
    frame.to_parquet(tmp_path / "a.parquet")
    assert_same_on(frame, frame, UNITS[:2])
    assert_same_on(tmp_path / "a.parquet", frame, UNITS[2:])


@pytest.mark.parametrize("unit", [Unit(), *UNITS], ids=str)
def test_combinations_that_do_not_occur_have_no_place_on_duckdb(tmp_path, unit):
    pytest.importorskip("duckdb")
    frame = mixed_frame().dropna(subset=["city"])
    frame = frame[(frame["city"] == "Oslo") | (frame["zone"] > 0)]
    frame.to_parquet(tmp_path / "a.parquet")
    answers = []
    for data in (in_memory(frame), tmp_path / "a.parquet"):
        asked = (
            ln.Table(data, unit=unit)
            .group_by("city", "zone")
            .aggregate(ln.count(), ln.variance("age", bounds=(0, 9)), ln.quantiles("age", [0.5], bounds=(0, 9), bins=4))
        )
        answers.append(asked.prepare(**TARGET).answer())
    assert answers[0].query.groups == 6 + 3 * 2 < 4 * 6
    assert np.array_equal(answers[0].value, answers[1].value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # within Dask
def test_dask_finds_and_counts_the_same_keys():
    dask = pytest.importorskip("dask")
    from dask import dataframe

    frame = mixed_frame()
    with dask.config.set(scheduler="threads"):
        assert_same_on(dataframe.from_pandas(frame, npartitions=3), frame, UNITS[1:2])


# What is refused, and what no message tells.


HOSTILE = ["$\\frac{$", "a\x00b", "'; DROP TABLE x; --", "\n", "\u202eevil", "=1+1", "🦊", "a" * 5000, "|", "<b>"]


@pytest.mark.slow
def test_hostile_keys_are_keys_like_others(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    data = {"city": np.array(HOSTILE * 60, dtype=object)}
    for source in (data, pandas.DataFrame(data)):
        answer = question(source).release(**TARGET)
        assert {row["city"] for row in answer.rows} == set(HOSTILE)
    answer.save(tmp_path / "d", formats=("parquet", "csv", "json"))


def test_a_text_that_no_file_can_hold_is_no_key():
    data = {"city": np.array(["a\ud800"] * 500 + ["b"] * 500, dtype=object)}
    assert [row["city"] for row in question(data).release(**TARGET).rows] == ["b"]
    unit = Unit("who", max_rows=2)
    data = {"city": np.array(["b"] * 900), "who": np.array(["\ud800", "c", "d"] * 300, dtype=object)}
    assert question(data, unit).release(**TARGET).rows == ()


def test_whole_numbers_of_python_and_numpy_are_keys():
    numbers = [2**53, 2**53 + 1, -5, np.int64(7), 2**63] * 200
    data = {"zone": np.array(numbers, dtype=object)}
    answer = question(data, by=("zone",)).release(**TARGET)
    assert [row["zone"] for row in answer.rows] == [-5, 7, 2**53, 2**53 + 1, 2**63]
    json.dumps(answer.certificate)


@pytest.mark.parametrize("values", [[NAME, 3], [NAME, 1.5], [1.5, 2.5], [True, False], [{NAME: 1}]], ids=str)
def test_no_message_quotes_a_key(values):
    column = np.empty(len(values), dtype=object)
    column[:] = values
    with pytest.raises(ln.InvalidInput) as error:
        question({"city": column}).release(**TARGET)
    assert "Jane" not in str(error.value)
    assert error.value.__cause__ is None


def test_too_many_keys_are_refused_without_their_number(monkeypatch):
    monkeypatch.setattr("lessnoise.table.job.MOST_GROUPS", 3)
    with pytest.raises(ln.InvalidInput, match="more keys than can be counted") as error:
        question({"city": np.array(list("abcdef"))}).release(**TARGET)
    assert "6" not in str(error.value)


def test_no_keys_at_all_of_any_kind():
    for values in (np.array([], dtype="U1"), np.array([], dtype=np.int64)):
        answer = question({"city": values}).release(**TARGET)
        assert answer.rows == ()
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("duckdb")
    assert question(pandas.DataFrame({"city": np.array([], dtype=np.int64)})).release(**TARGET).rows == ()


def test_a_duckdb_relation_is_read_as_often_as_it_takes():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("SELECT CASE WHEN range < 900 THEN 'x' ELSE 'rare' END AS city, range AS who FROM range(901)")
    answer = question(relation, Unit("who", max_rows=2)).release(**TARGET)
    assert [row["city"] for row in answer.rows] == ["x"]


def test_what_cannot_be_asked_is_refused_before_the_data_is_read():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"city": ["a"]})
    for data, words in ((table.to_reader(), "may be read but once"), (np.zeros((2, 1)), "matrix")):
        with pytest.raises(ln.InvalidInput, match=words):
            question(data)
    nowhere = ln.Table("nowhere.parquet", unit=Unit("who", max_rows=2))
    for ask, words in (
        (lambda: nowhere.group_by("city", "sex", keys=["a"]), "keys of one column for 2 columns"),
        (lambda: nowhere.group_by("city", keys={"town": ["a"]}), "'town', which is not a column of group_by"),
        (lambda: nowhere.group_by("who").aggregate(ln.count()), "the column of users"),
        (lambda: nowhere.group_by("city", "city").aggregate(ln.count()), "names a column twice"),
        (lambda: nowhere.group_by("city", max_groups=0), "max_groups=0"),
        (lambda: nowhere.group_by(["city"]), "column="),
        (lambda: nowhere.group_by(Axis("city", keys=["a"]), keys=["b"]), "an Axis, which has its own"),
        (lambda: ln.Table("nowhere.parquet").group_by("city", max_groups=2), "max_groups=2 is for users"),
        (lambda: nowhere.group_by("city").aggregate(ln.count()).release(epsilon=1, delta=0), "delta=0"),
    ):
        with pytest.raises(ln.InvalidInput, match=words):
            ask()
