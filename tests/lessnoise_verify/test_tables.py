"""Certificates of tables: what is proved of them, and what changes of a certificate do to that."""

from __future__ import annotations

import copy
import functools
import io
import json
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.query import Unit
from lessnoise_verify import tables
from lessnoise_verify.certificate import Mechanism
from lessnoise_verify.document import Fields, Refuted
from lessnoise_verify.queries import Unit as VerifiedUnit
from lessnoise_verify.queries import read_grouped
from lessnoise_verify.verdict import Verdict, verify

if TYPE_CHECKING:
    from pathlib import Path

BOUNDS = (0, 100)


@functools.cache
def data() -> dict[str, Any]:
    rng, size = np.random.default_rng(1), 2000
    people = {"city": np.array(["Oslo", "Bergen"])[rng.integers(0, 2, size)], "user": rng.integers(0, 400, size)}
    return {**people, "age": rng.uniform(0, 100, size), "pay": rng.uniform(0, 100, size)}


def by_city(keys: bool = True, **options: Any) -> Any:
    table = ln.Table(data(), **options)
    return table.group_by("city", keys=["Oslo", "Bergen"]) if keys else table.group_by("city")


def answered(question: Any, epsilon: float = 1.0, delta: float = 1e-6) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(question.release(epsilon=epsilon, delta=delta).certificate))
    return found


@functools.cache
def usual() -> dict[str, Any]:
    """Two releases of Laplace noise."""
    return answered(by_city().aggregate(ln.count(), ln.mean("age", bounds=BOUNDS), ln.sum("pay", bounds=(-5, 100))))


def checked(certificate: dict[str, Any]) -> Verdict:
    return verify(json.dumps(certificate).encode())


def changed(given: dict[str, Any], *path: str | int, to: object) -> dict[str, Any]:
    made = copy.deepcopy(given)
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return made


def questions() -> dict[str, Any]:
    users = Unit("user", 5, max_groups=2, max_rows_per_group=2)
    mean = ln.mean("age", bounds=BOUNDS)
    return {
        "users": by_city(unit=users).aggregate(ln.variance("age", bounds=BOUNDS)),
        "replaced": by_city(neighbours="replace", unit=users).aggregate(ln.histogram("pay", bounds=BOUNDS, bins=7)),
        "joint": by_city().aggregate(ln.covariance("age", "pay", bounds=[BOUNDS, BOUNDS]), ln.count()),
        "private keys": by_city(keys=False, unit=users).aggregate(ln.count(), mean),
        "private keys of rows": by_city(keys=False).aggregate(mean),
    }


@pytest.mark.parametrize("name", questions())
def test_tables_are_proved_and_rest_on_no_stated_sensitivity(name: str) -> None:
    found = checked(answered(questions()[name], 4.0, 1e-8))
    assert found.word == "proved", str(found)
    assert any("every change that one unit can make to the measures" in words for words in found.proved)
    assert not any("by no more than is stated" in words for words in found.assumed)
    assert any("noise can make that of a group without units" in words for words in found.assumed) == name.startswith(
        "private"
    )


def test_epsilons_that_leave_room_are_raised_until_the_deltas_are_small() -> None:
    given = usual()
    deltas = sum(Fraction(one["guarantee"]["delta"]) for one in given["releases"])
    assert deltas > Fraction(given["guarantee"]["delta"])  # so that adding up what is stated is not enough
    found = checked(given)
    assert found.word == "proved"
    assert any("at epsilons that add up to the total, add up to" in words for words in found.proved)
    generous = changed(given, "guarantee", "delta", to=1e-9)
    assert any("epsilons and deltas of the releases add up" in words for words in checked(generous).proved)


def test_a_guarantee_that_one_release_breaks_is_refuted() -> None:
    assert checked(changed(usual(), "guarantee", "epsilon", to=0.3)).word == "refuted"  # one of them has 0.7
    assert checked(changed(usual(), "guarantee", "epsilon", to=0.9)).word != "proved"
    assert checked(changed(usual(), "guarantee", "delta", to=1e-40)).word != "proved"
    assert checked(changed(usual(), "guarantee", "epsilon", to=0.0)).word == "refuted"


REFUTED: list[tuple[tuple[str | int, ...], object]] = [
    (("private",), False),
    (("neighbours",), "replace"),
    (("guarantee", "neighbours"), "replace"),
    (("unit",), {"id": "user", "max_rows": 2}),
    (("query", "axes"), []),
    (("query", "measures"), [{"kind": "rows"}]),
    (("releases", 0, "private"), False),
    (("releases", 0, "mechanism", "shape"), [7]),
    (("releases", 0, "mechanism", "noise", "scale"), 0.5),
    (("releases", 1, "mechanism", "sensitivity"), 0.5),
]


@pytest.mark.parametrize(("path", "value"), REFUTED)
def test_contradictions_are_refuted(path: tuple[str | int, ...], value: object) -> None:
    assert checked(changed(usual(), *path, to=value)).word == "refuted"


def test_releases_that_are_too_few_or_too_many_are_refuted() -> None:
    given, releases = usual(), usual()["releases"]
    for mutant in (releases[:1], [*releases, releases[0]], releases[::-1]):
        assert checked({**given, "releases": mutant}).word == "refuted"


UNREADABLE: list[tuple[tuple[str | int, ...], object]] = [
    (("releases",), []),
    (("releases",), [1]),
    (("releases", 0, "schema"), 3),
    (("releases", 0, "kind"), None),
    (("releases", 0, "schema"), True),
    (("releases", 0, "new"), 1),
    (("schema",), 3),
    (("query", "query"), "sum"),
    (("query", "measures"), []),
    (("query", "measures", 0, "degree"), 9),
    (("query", "measures", 0, "bounds"), [100, 0]),
    (("query", "measures", 0, "absent"), 1),
    (("query", "axes", 0, "keys"), []),
    (("unit",), {"id": None, "max_rows": 1}),
    (("level",), "high"),
    (("guarantee", "epsilon"), 10**400),
    (("rules",), "none"),
    (("new",), 1),
]


@pytest.mark.parametrize(("path", "value"), UNREADABLE)
def test_malformed_tables_are_unreadable(path: tuple[str | int, ...], value: object) -> None:
    assert checked(changed(usual(), *path, to=value)).word == "unreadable"


def test_tables_of_version_1_have_neither_version_nor_kind() -> None:
    given = {name: value for name, value in usual().items() if name not in ("schema", "kind", "lessnoise")}
    assert checked(given).word == "proved"


def test_private_keys_need_noise_that_ends() -> None:
    private = changed(usual(), "query", "axes", 0, to={"column": "city", "keys": "private"})
    found = checked(private)
    assert any("for each release of the table" in words for words in found.assumed)
    assert not any("change of the measures" in words for words in found.proved)


def test_quantiles_are_chosen_first_and_rows_are_counted_after_that() -> None:
    given = answered(by_city().aggregate(ln.count(), ln.quantiles("age", [0.5], bounds=BOUNDS)))
    noises = [one["mechanism"]["noise"]["kind"] for one in given["releases"]]
    assert noises[1] == "quantile-choice"
    mechanisms = [Mechanism.read(Fields(one["mechanism"], "mechanism")) for one in given["releases"]]
    groups, measures = read_grouped(Fields(given["query"], "query"))
    tables._check_changes(mechanisms, measures, groups, VerifiedUnit())
    with pytest.raises(Refuted):
        tables._check_changes(mechanisms, measures, groups, VerifiedUnit(2, 2, 2, True))
    with pytest.raises(Refuted):
        tables._check_changes(mechanisms[:2], measures, groups, VerifiedUnit())


def test_a_histogram_is_one_release_with_words_on_what_was_done_to_it() -> None:
    options: dict[str, Any] = {"bins": [5], "bounds": [BOUNDS], "epsilon": 1, "delta": 1e-6}
    made = ln.private_histogram({"age": data()["age"]}, ["age"], postprocess=["nonnegative"], **options)
    given = json.loads(json.dumps(made.to_dict()))
    found = checked(given)
    assert found.word == "proved", str(found)
    assert any("one unit can make to the answer of the stated query" in words for words in found.proved)
    assert checked({**given, "postprocess": [1]}).word == "unreadable"


def test_hostile_tables_end_quickly() -> None:
    start, given = time.process_time(), usual()
    many = {**given, "releases": [given["releases"][0]] * 10**4}
    assert checked(many).word == "unreadable"
    huge = {"kind": "products", "factors": [{"column": f"c{i}", "bounds": [0, 1], "degree": 2} for i in range(99)]}
    assert checked(changed(given, "query", "measures", 0, to=huge)).word == "unreadable"
    users = {"id": "u", "max_rows": 10**15, "max_rows_per_group": 1}
    assert checked(changed(given, "unit", to=users)).word in ("refuted", "not covered")
    assert time.process_time() - start < 5.0


def test_a_file_of_the_answer_may_be_given_instead_of_its_folder(tmp_path: Path) -> None:
    by_city().aggregate(ln.count()).release(epsilon=1, delta=1e-6).save(tmp_path, formats=("csv",))
    certificate = (tmp_path / "certificate.json").read_bytes()
    answer = tmp_path / "answer.csv"
    found = verify(certificate, io.BytesIO(answer.read_bytes()))
    assert found.word == "proved"
    assert "the file is one of those that the certificate was written for: its SHA-256 is stated" in found.proved
    assert "the other files beside the certificate, because their folder was not given" in found.skipped
    assert verify(certificate, io.BytesIO(answer.read_bytes() + b"\n")).word == "refuted"
