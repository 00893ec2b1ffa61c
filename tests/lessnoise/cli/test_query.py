"""``lessnoise query``: statistics of a CSV file, its plan, and what is refused before anything is read or paid."""

import csv
import errno
import json
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import files
from lessnoise.cli import app
from lessnoise.cli.question import asked, axes
from tests.helpers.sentences import refused, refused_command

pytest.importorskip("duckdb")
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
GROUPS = ["--by", "city", "--keys", "Oslo,Bergen"]
NAMES = ["answer.parquet", "answer.png", "certificate.json"]


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["city", "income", "age", "user_id", "kind"])
        for row in range(3000):
            income, age = round(rng.gamma(3, 20_000), 2), int(rng.integers(0, 100))
            writer.writerow([rng.choice(["Oslo", "Bergen", "Rome"]), income, age, row // 3, rng.integers(1, 3)])
    return path


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=1.5, delta=1e-5)


def query(*words, code=0):
    result = CliRunner().invoke(app, ["query", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_every_statistic_of_a_file_with_users_and_a_ledger(people, ledger, tmp_path):
    out = tmp_path / "private"
    words = [*GROUPS, "--count", "--mean", "income:0:200000", "--sum", "age:0:10", "--variance", "age:0:120"]
    words += ["--quantiles", "age:0:120@0.25,0.5,0.75", "--unit", "user_id", "--max-rows", 3]
    shown = query(people, *words, *TARGET, "--ledger", ledger.path, "--out", out, "--format", "parquet,csv").stdout
    rows = read(out / "answer.csv")
    statistics = ["count", "mean of income", "sum of age", "variance of age"]
    statistics += [f"{p} quantile of age" for p in (0.25, 0.5, 0.75)]
    assert [(row["city"], row["statistic"]) for row in rows] == [(c, s) for c in ("Oslo", "Bergen") for s in statistics]
    certificate = ln.TableAnswer.verify(out)
    assert certificate["unit"] == {"id": "user_id", "max_rows": 3}
    assert certificate["guarantee"]["epsilon"] == 1.0
    assert ledger.count() == 1
    for row in rows:
        assert f"{float(row['value']):.6g}" in shown
        assert f"{float(row['upper']):.6g}" in shown
    assert re.search(r"record 1; at least (0\.5|0\.4999)\d* of epsilon is left", shown)
    assert "protects one user by 'user_id', at most 3 rows each" in shown
    for rule in certificate["rules"]:
        assert shown.index(rule) < shown.index("Private statistics"), "rules come before the release"


@pytest.mark.slow
def test_the_numbers_are_those_of_the_file(people, tmp_path):
    """At epsilon 20 the noise is within the tolerance with probability above 1 - 1e-9."""
    out = tmp_path / "d"
    words = [*GROUPS, "--count", "--mean", "age:0:100", "--epsilon", 20, "--delta", 1e-6, "--json"]
    printed = json.loads(query(people, *words, "--out", out).stdout)
    data = read(people)
    assert [Path(path).name for path in printed["files"]] == NAMES
    for row in printed["rows"]:
        ages = [float(one["age"]) for one in data if one["city"] == row["city"]]
        wanted = len(ages) if row["statistic"] == "count" else np.mean(ages)
        assert row["value"] == pytest.approx(wanted, abs=2.5)
    assert printed["private"] is True


def test_several_columns_with_keys_and_bins(people, tmp_path):
    words = ["--by", "age", "--by", "city", "--by", "kind", "--keys", "city=Oslo,Bergen", "--keys", "kind=1,2"]
    words += ["--bins", "age:0:100:4", "--count", "--epsilon", 50, "--delta", 1e-6, "--json"]
    rows = json.loads(query(people, *words, "--out", tmp_path / "d").stdout)["rows"]
    assert len(rows) == 16
    assert rows[0].keys() == {"age", "city", "kind", "statistic", "value", "lower", "upper"}
    assert (rows[0]["age"], rows[0]["city"], rows[0]["kind"]) == ("0 to 25", "Oslo", 1)
    true = [row for row in read(people) if int(row["age"]) < 25 and row["city"] == "Oslo" and row["kind"] == "1"]
    assert rows[0]["value"] == len(true)


def test_private_keys_are_released_if_they_have_rows_enough(people, tmp_path):
    with people.open("a") as file:
        file.write("Hell,1,1,9999,1\n")
    words = [people, "--by", "city", "--count", "--mean", "age:0:100", *TARGET, "--out", tmp_path / "d"]
    shown = query(*words, "--format", "csv").stdout
    rows = read(tmp_path / "d" / "answer.csv")
    assert {row["city"] for row in rows} == {"Oslo", "Bergen", "Rome"}, "the noise is bounded: this is certain"
    assert "whose noisy count is too small are left out" in shown
    assert "Hell" not in shown + (tmp_path / "d" / "certificate.json").read_text()


def test_users_groups_weights_and_edges(people, tmp_path):
    words = [people, "--by", "city", "--by", "age", "--edges", "age:0,18,65,120", "--count", "--sum", "income:0:9"]
    words += ["--weights", "9,1", "--unit", "user_id", "--max-rows", 3, "--max-groups", 2, *TARGET]
    plan = json.loads(query(*words, "--plan", "--json").stdout)
    assert plan["unit"] == {"id": "user_id", "max_rows": 3, "max_groups": 2}
    epsilons = {row["answers"]: row["epsilon"] for row in plan["plan"]}
    assert epsilons["count"] > 8 * epsilons["sum of income"]
    shown = query(*words, "--out", tmp_path / "d", "--format", "csv").stdout
    assert "groups by 'city' and 'age' whose noisy number of 'user_id' is too small" in shown
    assert "of each 'user_id' at most 2 groups are used" in shown
    rows = read(tmp_path / "d" / "answer.csv")
    assert {row["city"] for row in rows} <= {"Oslo", "Bergen", "Rome"}, "which of them have users enough is chance"
    assert {row["age"] for row in rows} <= {"0 to 18", "18 to 65", "65 to 120"}


def test_an_answer_without_groups_is_written_too(people, tmp_path):
    people.write_text("city,age\nHell,1\n")
    query(people, "--by", "city", "--count", *TARGET, "--out", tmp_path / "d", "--format", "csv,json,parquet")
    assert json.loads((tmp_path / "d" / "answer.json").read_text()) == []
    ln.TableAnswer.verify(tmp_path / "d")


def test_a_plan_reads_nothing_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["nowhere.csv", *GROUPS, "--count", "--mean", "income:0:200000", *TARGET, "--plan"]
    shown = query(*words).stdout
    for text in ("mean of income", "count", "noise sd", "rule", "are clipped to", "protects one row"):
        assert text in shown
    plan = json.loads(query(*words, "--json").stdout)
    assert sum(row["epsilon"] for row in plan["plan"]) == pytest.approx(1.0, rel=1e-6)
    assert plan["guarantee"]["delta"] <= 1e-6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_seeded_run_repeats_and_says_that_it_is_not_private(people, tmp_path):
    words = [people, "--count", "--mean", "age:0:100", *TARGET, "--seed", 7, "--format", "csv"]
    shown = [query(*words, "--out", tmp_path / name).stdout for name in "ab"]
    assert "not private" in shown[0]
    assert (tmp_path / "a" / "answer.csv").read_bytes() == (tmp_path / "b" / "answer.csv").read_bytes()
    assert ln.TableAnswer.verify(tmp_path / "a")["private"] is False


def test_existing_output_is_kept_unless_forced(people, ledger, tmp_path):
    words = [people, *GROUPS, "--count", "--epsilon", "0.5", "--delta", "1e-6", "--out", tmp_path / "d"]
    query(*words)
    before = (tmp_path / "d" / "certificate.json").read_bytes()
    refused_command(["query", *words, "--ledger", ledger.path], "exists already", "--force")
    assert (tmp_path / "d" / "certificate.json").read_bytes() == before
    assert ledger.count() == 0
    query(*words, "--force")
    ln.TableAnswer.verify(tmp_path / "d")


# What is refused.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--mean", "nowhere:0:1"], ["column='nowhere' is not in the data", "'income'"]),
        (["--by", "nowhere", "--keys", "a", "--count"], ["column='nowhere' is not in the data"]),
        (["--mean", "city:0:1"], ["column 'city'", "not numbers"]),
        (["--mean", "age:120:0"], ["does not run from low to high"]),
        (["--mean", "age:0:x"], ["mean='age:0:x'", "income:0:200000"]),
        (["--mean", "age"], ["mean='age'", "income:0:200000"]),
        (["--sum", ":0:1"], ["sum=':0:1'"]),
        (["--variance", "age:nan:1"], ["age"]),
        (["--quantiles", "age:0:120@1.5"], ["1.5", "strictly between 0 and 1"]),
        (["--quantiles", "age:0:120@0"], ["strictly between 0 and 1"]),
        (["--quantiles", "age:0:120"], ["quantiles='age:0:120'", "@0.25"]),
        (["--quantiles", "age:0:120@"], ["quantiles='age:0:120@'"]),
        (["--by", "city", "--keys", "Oslo,Oslo", "--count"], ["must be different"]),
        (["--by", "user_id", "--count", "--unit", "user_id", "--max-rows", 2], ["'user_id'", "column of users"]),
        (["--by", "city", "--count", "--max-groups", 2], ["max_groups=2 is for users"]),
        (["--by", "city", "--count", "--weights", "1,2"], ["weights has length=2 for 1 aggregates"]),
        (["--by", "city", "--count", "--weights", "x"], ["weights='x'", "1,4,1"]),
        (["--by", "age", "--count", "--edges", "0,18"], ["edges='0,18'", "age:0,18,65,120"]),
        (["--by", "age", "--count", "--edges", "age:18,0"], ["edges[1]=0.0 does not exceed"]),
        (["--by", "age", "--count", "--edges", "age:0,9", "--bins", "age:0:9:3"], ["for the second time"]),
        (["--keys", "Oslo", "--count"], ["for no column of --by"]),
        (["--by", "city", "--by", "age", "--keys", "Oslo", "--count"], ["city=Oslo,Bergen"]),
        (["--by", "city", "--keys", "Oslo", "--keys", "Bergen", "--count"], ["for the second time"]),
        (["--by", "city", "--by", "city", "--keys", "city=Oslo", "--count"], ["city"]),
        (["--by", "age", "--bins", "age:0:100", "--count"], ["bins='age:0:100'", "age:0:120:12"]),
        (["--by", "age", "--bins", "age:9:1:3", "--count"], ["low to high"]),
        (["--by", "age", "--bins", "age:0:1:0", "--count"], ["bins=0"]),
        ([], ["nothing is asked for", "--count"]),
        (["--mean", "age:0:9", "--mean", "age:0:8"], ["twice"]),
        (["--mean", "age:0:9", "--unit", "user_id"], ["max_rows=None"]),
        (["--mean", "age:0:9", "--unit", "nobody", "--max-rows", 2], ["nobody"]),
        (["--count", "--format", "xlsx"], ["format='xlsx'"]),
        (["--count", "--level", "2"], ["level=2"]),
        (["--count", "--neighbours", "odd"], ["neighbours='odd'"]),
        (["--mean", "age:0:9", "--seed", "1"], ["do not go together"]),
        (["--mean", "age:0:9", "--epsilon", "7"], ["epsilon"]),
        (["--count", "--epsilon", "-1"], ["epsilon=-1"]),
        (["--count", "--engine", "abacus"], ["engine='abacus'"]),
        (["--count", "--table", "t"], ["for PostgreSQL addresses only"]),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_costs_nothing(people, ledger, tmp_path, words, expected):
    before = sorted(tmp_path.iterdir())
    target = [] if "--epsilon" in words else TARGET[:2]
    more = [*target, *TARGET[2:], "--ledger", ledger.path, "--out", tmp_path / "new" / "d"]
    refused_command(["query", people, *words, *more], *expected)
    assert ledger.count() == 0
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--count", "--delta", "1e-6", "--out", "d"], "--epsilon is missing"),
        (["--count", "--epsilon", "1", "--out", "d"], "--delta is missing"),
        (["--count", *TARGET], "--out"),
        (["--count", "--epsilon", "much", "--delta", "1e-6"], "is not a number"),
    ],
)
def test_what_is_missing_is_named(people, words, expected):
    refused_command(["query", people, *words], expected)


def test_a_file_that_is_not_there_costs_nothing(ledger, tmp_path):
    words = [
        "query",
        tmp_path / "no.csv",
        *GROUPS,
        "--count",
        *TARGET,
        "--ledger",
        ledger.path,
        "--out",
        tmp_path / "d",
    ]
    refused_command(words, "no.csv")
    assert ledger.count() == 0
    assert not (tmp_path / "d").exists()


def test_the_data_is_never_replaced(people, tmp_path):
    (tmp_path / "d").mkdir()
    data = people.rename(tmp_path / "d" / "answer.csv")
    words = ["query", data, *GROUPS, "--count", *TARGET, "--out", tmp_path / "d", "--format", "csv", "--force"]
    refused_command(words, "would replace data")


# After the payment.


def broken(path, *_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_paid_answer_that_cannot_be_written_is_kept_elsewhere(people, ledger, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    write, out = files.Staged.write, tmp_path / "d"

    def fail(self, path, writer):
        if path.parent == out:
            broken(path)
        write(self, path, writer)

    monkeypatch.setattr(files.Staged, "write", fail)
    result = query(people, *GROUPS, "--count", *TARGET, "--ledger", ledger.path, "--out", out, code=4)
    sentence = result.stderr.strip()
    assert sentence.startswith(f"error: paid (record 1 of ledger={ledger.path}), but then it failed: ")
    kept = Path(sentence.split("is kept in ")[1].split(", with")[0])
    assert kept.parent.parent == tmp_path / "temporary"
    read = json.loads(kept.read_text())
    assert [row["city"] for row in read["rows"]] == ["Oslo", "Bergen"]
    assert read["certificate"]["guarantee"]["epsilon"] == 1.0
    assert ledger.count() == 1
    assert not out.exists()


def test_complete_files_that_cannot_get_their_names_are_kept(people, ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_place", lambda temporary, path, force: broken(path))
    words = [people, *GROUPS, "--count", *TARGET, "--ledger", ledger.path, "--out", tmp_path / "d", "--format", "csv"]
    sentence = query(*words, code=4).stderr.strip()
    assert "paid (record 1" in sentence
    kept = [Path(word) for word in sentence.split(": move ")[1].split(" to their")[0].split(", ")]
    for path, name in zip(kept, ["answer.csv", "answer.png", "certificate.json"], strict=True):
        path.rename(path.with_name(name))
    ln.TableAnswer.verify(tmp_path / "d")


def test_a_disk_that_fails_before_the_payment_costs_nothing(people, ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_allocate", lambda file, size: broken("answer.parquet"))
    words = [people, *GROUPS, "--count", *TARGET, "--ledger", ledger.path, "--out", tmp_path / "new" / "d"]
    refused_command(["query", *words], "No space left")
    assert ledger.count() == 0
    assert not (tmp_path / "new").exists()


# Words.


def test_keys_are_texts_or_whole_numbers():
    read = {
        text: axes(["a"], [text], [])[0].keys for text in ("1,2", "a=1,2", "007,1", '"1"', "x=y,z", '"a,b",c', "-3")
    }
    assert read["1,2"] == read["a=1,2"] == (1, 2)
    assert read["007,1"] == ("007", "1")
    assert read['"1"'] == ("1",)
    assert read["x=y,z"] == ("x=y", "z")
    assert read['"a,b",c'] == ("a,b", "c")
    assert read["-3"] == (-3,)
    refused(lambda: axes(["a"], [""], []), "keys")


def test_columns_may_have_colons_and_at_signs():
    mean, spread = asked(False, ["a:b:-1:2"], [], [], ["x@y:z:0:1@0.5"])
    assert (mean.column, mean.bounds) == ("a:b", (-1.0, 2.0))
    assert (spread.column, spread.probabilities) == ("x@y:z", (0.5,))


def test_distribution_functions_and_ranges_of_a_file(people, tmp_path):
    """At epsilon 50 no sum is off by 5 rows: the probability is below 1e-12."""
    out = tmp_path / "d"
    words = [people, *GROUPS, "--cdf", "age:0:100:4", "--ranges", "kind:0.5:2.5:2", "--epsilon", 50, "--delta", 1e-6]
    shown = query(*words, "--out", out, "--format", "csv,json,parquet").stdout
    rows = read(out / "answer.csv")
    names = [f"share of age up to {end}" for end in (25, 50, 75, 100)]
    names += [f"count of kind from {low} to {high}" for low, high in (("0.5", "1.5"), ("0.5", "2.5"), ("1.5", "2.5"))]
    assert [row["statistic"] for row in rows] == 2 * names
    data = [row for row in read(people) if row["city"] == "Oslo"]
    share = np.mean([int(row["age"]) < 25 for row in data])
    assert float(rows[0]["value"]) == pytest.approx(share, abs=10 / len(data))
    assert float(rows[5]["value"]) == pytest.approx(len(data), abs=5)
    assert "share of age up to 25" in shown
    assert {one["aggregate"] for one in ln.TableAnswer.verify(out)["aggregates"]} == {"cdf", "ranges"}


def test_marginals_of_a_file(people, tmp_path):
    """At epsilon 50 no count is off by 5 rows: the probability is below 1e-12."""
    out = tmp_path / "d"
    by = ["--by", "city", "--keys", "city=Oslo,Bergen", "--by", "kind", "--keys", "kind=1,2", "--by", "age"]
    words = [people, *by, "--bins", "age:0:100:2", "--marginals", 2, "--epsilon", 50, "--delta", 1e-6]
    shown = query(*words, "--out", out, "--format", "csv,json,parquet").stdout
    assert "None" not in shown
    rows = read(out / "answer.csv")
    assert len(rows) == 12
    data = read(people)
    for row in rows:
        wanted = [
            each
            for each in data
            if each["city"] in ("Oslo", "Bergen")
            and row["city"] in ("", each["city"])
            and row["kind"] in ("", each["kind"])
            and row["age"] in ("", "0 to 50" if int(each["age"]) < 50 else "50 to 100")
        ]
        assert float(row["value"]) == pytest.approx(len(wanted), abs=5)
    assert json.loads((out / "answer.json").read_text())[0]["age"] is None
    assert ln.TableAnswer.verify(out)["marginals"] == [["city", "kind"], ["city", "age"], ["kind", "age"]]
    plan = json.loads(query(*words, "--plan", "--json").stdout)["plan"]
    assert [row["answers"] for row in plan] == ["counts in 3 tables"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--cdf", "age:0:100"], "cdf='age:0:100' is not understood: write it as in age:0:120:12."),
        (["--cdf", "age:0:100:x"], "cdf='age:0:100:x' is not understood"),
        (["--ranges", "age:a:100:4"], "ranges='age:a:100:4' is not understood"),
        (["--ranges", "age:0:100:1000"], "have more than 10000 ranges"),
        (["--cdf", "age:0:100:20000"], "are more than 10000"),
        (["--marginals", "2"], "by=None: name the columns of --marginals"),
        (["--marginals", "1", "--by", "city"], "by='city' has private keys"),
        (["--marginals", "2", *GROUPS], "order=2 is more than the 1 columns"),
        (["--marginals", "0", *GROUPS], "order=0"),
        (["--marginals", "1", *GROUPS, "--count"], "marginals=1 cannot be asked with other statistics"),
    ],
)
def test_sums_of_cells_and_marginals_that_are_refused(words, message, tmp_path):
    shown = query("nowhere.csv", *words, *TARGET, "--out", tmp_path / "d", code=2)
    assert message in " ".join(shown.stderr.split())
    assert not (tmp_path / "d").exists()
