"""``lessnoise histogram --keys``: axes of categories, alone and beside axes of numbers."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from lessnoise.cli import app
from lessnoise.cli.options import parse_keys

pytest.importorskip("duckdb", reason="duckdb is not installed")

ROWS = [("bus", 40.65, "1"), ("taxi", 40.85, "01"), ("bus", 40.85, "1"), ('a,"b', 40.7, "2"), ("tram", 40.7, "1")]
SURE = ["--epsilon", "45", "--delta", "1e-6"]  # noise of 1 has a probability of about e^-45
LATITUDE = ["--bins", "2", "--bounds", "40.6:40.9"]


@pytest.fixture
def trips(tmp_path):
    with (tmp_path / "trips.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("kind", "Lat", "zone"), *ROWS])
    return tmp_path / "trips.csv"


def run(trips, *options, goal=SURE):
    words = ["histogram", trips, *options, *goal, "--out", trips.parent / "out", "--format", "npy", "--format", "csv"]
    return CliRunner().invoke(app, [str(word) for word in words])


def counts(trips, *options):
    result = run(trips, *options)
    assert result.exit_code == 0, result.output
    return np.load(trips.parent / "out" / "counts.npy").tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--x", "kind", "--keys", "kind=bus,taxi"], [2, 1]),
        (["--x", "kind", "--keys", "kind=taxi,nothing,bus"], [1, 0, 2]),
        (["--x", "kind", "--keys", 'kind="a,""b",bus'], [1, 2]),
        (["--x", "zone", "--keys", "zone=1,2"], [4, 1]),
        (["--x", "zone", "--keys", 'zone="1","2"'], [3, 1]),
        (["--x", "zone", "--keys", "zone=1,01"], [3, 1]),
        (["--x", "kind", "--keys", "kind=bus,taxi", "--y", "Lat", *LATITUDE], [[1, 1], [0, 1]]),
        (["--x", "Lat", *LATITUDE, "--y", "kind", "--keys", "kind=bus,taxi"], [[1, 0], [1, 1]]),
        (["--x", "kind", "--y", "zone", "--keys", "zone=1,2", "--keys", "kind=bus,taxi"], [[2, 0], [1, 0]]),
        (["--x", "Lat", "--bins", "1", "--bounds", "40.6:40.66", "--outside", "clamp"], [5]),
    ],
)
def test_counts_by_keys(trips, options, expected):
    assert counts(trips, *options) == expected


def test_the_certificate_and_the_table_have_the_keys(trips):
    counts(trips, "--x", "kind", "--keys", "kind=bus,taxi")
    asked = json.loads((trips.parent / "out" / "certificate.json").read_text())["query"]
    assert asked["description"]["axes"] == [{"column": "kind", "keys": ["bus", "taxi"], "outside": "drop"}]
    assert (trips.parent / "out" / "counts.csv").read_text() == "kind,count\nbus,2\ntaxi,1\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--x", "kind"], "column='kind' has no cells: pass --bins and --bounds for numbers, or --keys"),
        (["--x", "kind", "--y", "Lat", "--keys", "kind=bus"], "column='Lat' has no cells"),
        (["--x", "kind", "--keys", "kinds=bus"], "is not for --x or --y"),
        (["--x", "kind", "--keys", "bus,taxi"], "is not for --x or --y"),
        (["--x", "kind", "--keys", "kind=bus", "--keys", "kind=taxi"], "comes twice"),
        (["--x", "kind", "--keys", "kind=bus,bus"], "must be different"),
        (["--x", "kind", "--keys", "kind=bus,,taxi"], "has an empty key"),
        (["--x", "kind", "--keys", "kind="], "has an empty key"),
        (["--x", "kind", "--keys", "kind=bus", "--bins", "2"], "are for columns of numbers"),
        (["--x", "kind", "--keys", "kind=bus", "--outside", "clamp"], "are for columns of numbers"),
        (["--x", "kind", "--keys", "kind=1,2"], "column 'kind' holds text, not whole numbers"),
        (["--x", "kind", "--bins", "2", "--bounds", "0:1"], "column 'kind' holds text, not numbers"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(trips, options, words):
    ledger = trips.parent / "a.ledger"
    made = CliRunner().invoke(app, ["ledger", "create", str(ledger), "--epsilon", "99", "--delta", "1e-5"])
    assert made.exit_code == 0, made.output
    result = run(trips, *options, "--ledger", ledger)
    assert result.exit_code == 2, result.output
    assert words in " ".join(result.stderr.split())
    assert "tram" not in result.stderr
    assert not (trips.parent / "out").exists()
    shown = CliRunner().invoke(app, ["ledger", "show", str(ledger), "--json"])
    assert json.loads(shown.stdout)["records"] in (0, [])


def test_the_example_of_the_help_works(trips):
    text = " ".join(CliRunner().invoke(app, ["histogram", "--help"], env={"COLUMNS": "200"}).output.split())
    example = re.search(r"Example with categories: lessnoise histogram trips\.parquet (.*?) --epsilon", text)
    assert example is not None
    assert np.shape(counts(trips, *example[1].split())) == (2, 89)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a", ("a",)),
        ("1,2", (1, 2)),
        ("-1,0,10", (-1, 0, 10)),
        ("1,2.5", ("1", "2.5")),
        ("007", ("007",)),
        ('"1"', ("1",)),
        ('""', ("",)),
        ('a"b,c', ('a"b', "c")),
        ("a b,c=d", ("a b", "c=d")),
        ("é,日本", ("é", "日本")),
    ],
)
def test_keys_as_they_are_written(text, keys):
    assert parse_keys(text) == keys
