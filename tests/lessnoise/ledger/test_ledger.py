"""The ledger: what fits is what the exact composition says, nothing is lost, and no file is harmed."""

from __future__ import annotations

import json
import math
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.ledger import database, total
from lessnoise.ledger.spending import history
from lessnoise.noise import Stream, delta_numeric

TRIALS = Path(__file__).parents[3] / "benchmarks" / "ledger_trials.py"
GAUSSIAN = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
LARGER = ln.analytic_gaussian(epsilon=0.6, delta=1e-8, sensitivity=1, shape=3)
LAPLACE = ln.laplace(epsilon=0.25, sensitivity=1, shape=3)


def opened(folder: Path, epsilon: float = 1.0, delta: float = 1e-6, name: str = "a.ledger") -> ln.Ledger:
    return ln.Ledger.open(folder / name, epsilon=epsilon, delta=delta)


def admits(mechanism: ln.Mechanism, epsilon: float, delta: float) -> int:
    count = 0
    while mechanism.repeat(count + 1).delta(epsilon).upper <= delta:
        count += 1
    return count


# Spending.


def test_exactly_as_many_releases_as_the_composition_admits(tmp_path):
    ledger = opened(tmp_path)
    expected = admits(GAUSSIAN, 1.0, 1e-6)
    for _ in range(expected):
        assert GAUSSIAN.release(np.zeros(3), ledger=ledger).receipt is not None
    with pytest.raises(ln.BudgetExceeded) as caught:
        GAUSSIAN.release(np.zeros(3), ledger=ledger)
    assert ledger.count() == expected > 1.0 / 0.3  # composed, not summed
    spent = ledger.spent()
    assert spent == GAUSSIAN.repeat(expected).epsilon(1e-6)
    assert math.isclose(caught.value.remaining, 1.0 - spent.upper, rel_tol=1e-9)
    assert caught.value.requested > caught.value.remaining
    assert ledger.remaining() == caught.value.remaining
    assert ledger.spent_delta().upper <= 1e-6


def test_nothing_is_spent_or_drawn_when_the_budget_is_exceeded(tmp_path, monkeypatch):
    ledger = opened(tmp_path, epsilon=0.1)
    monkeypatch.setattr(Stream, "claim", lambda _: pytest.fail("noise was drawn"))
    with pytest.raises(ln.BudgetExceeded, match=r"0\.1 is left"):
        GAUSSIAN.release(np.zeros(3), ledger=ledger)
    assert ledger.count() == 0
    assert ledger.spent().upper == 0.0


def test_the_record_is_on_disk_before_the_noise_is_drawn(tmp_path, monkeypatch):
    ledger = opened(tmp_path)

    def draw(*_):
        assert ln.Ledger.open(ledger.path).count() == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(Stream, "claim", draw)
    with pytest.raises(KeyboardInterrupt):
        GAUSSIAN.release(np.zeros(3), ledger=ledger)
    assert ledger.records()[0].composition == ln.compose(GAUSSIAN)


def test_bad_values_cost_nothing(tmp_path):
    ledger = opened(tmp_path)
    for value in ([1.0, np.nan, 2.0], [1.0, 2.0], "abc", [0.0, 1e300, 0.0]):  # the last is too large for the grid
        with pytest.raises(ln.InvalidInput):
            GAUSSIAN.release(value, ledger=ledger)
    with pytest.raises(ln.InvalidInput, match="do not go together"):
        GAUSSIAN.release(np.zeros(3), np.random.default_rng(1), ledger=ledger)
    with pytest.raises(ln.InvalidInput, match="without a ledger"):
        GAUSSIAN.release(np.zeros(3), partition="north")
    with pytest.raises(ln.InvalidInput, match="partition=''"):
        ledger.spend(GAUSSIAN, partition="")
    with pytest.raises(ln.InvalidInput, match="neighbours='replace'"):
        ledger.spend(ln.laplace(epsilon=0.1, sensitivity=1, shape=1, neighbours="replace"))
    with pytest.raises(ln.InvalidInput, match="release=3"):
        ledger.spend(3)
    assert ledger.count() == 0


def test_pure_budgets_add_up(tmp_path):
    ledger = opened(tmp_path, epsilon=1.0000001, delta=0.0)
    for _ in range(4):
        ledger.spend(LAPLACE)
    assert not ledger.affords(LAPLACE)
    with pytest.raises(ln.BudgetExceeded):
        ledger.spend(GAUSSIAN)
    assert ledger.count() == 4


@pytest.mark.slow
def test_compositions_and_sampled_steps_are_spent_as_they_are(tmp_path):
    ledger = opened(tmp_path, epsilon=3.0)
    training = LAPLACE.subsample(0.05).repeat(100)
    ledger.spend(training, note="epoch 1")
    ledger.spend(GAUSSIAN)
    record = ledger.records()[0]
    assert (record.composition, record.note, record.partition) == (training, "epoch 1", None)
    assert ledger.spent() == ln.compose(training, GAUSSIAN).epsilon(1e-6)


def test_disjoint_partitions_cost_as_much_as_the_worst(tmp_path):
    ledger = opened(tmp_path)
    for number in range(50):
        ledger.spend(LARGER, partition=f"p{number}")
    assert ledger.spent() == LARGER.repeat(1).epsilon(1e-6)
    ledger.spend(GAUSSIAN)
    assert ledger.spent() == ln.compose(LARGER, GAUSSIAN).epsilon(1e-6)
    # A partition is full when its own spends and the common ones are.
    while ledger.affords(LARGER, partition="p7"):
        ledger.spend(LARGER, partition="p7")
    assert ledger.affords(LARGER, partition="p8")
    assert not ledger.affords(LARGER)


def test_budget_exceeded_survives_pickling():
    error = pickle.loads(pickle.dumps(ln.BudgetExceeded("full", remaining=0.1, requested=0.2)))
    assert (str(error), error.remaining, error.requested) == ("full", 0.1, 0.2)


# Any order of spends, through several handles: the model is the definition.

SPENDS = st.tuples(
    st.sampled_from([GAUSSIAN, LARGER, LAPLACE]), st.sampled_from([None, "north", "south"]), st.integers(0, 2)
)


def allowed_by_definition(history_, epsilon: float, delta: float) -> bool:
    for partition in ("north", "south"):
        touching = [mechanism for mechanism, where in history_ if where in (None, partition)]
        if touching and ln.compose(*touching).delta(epsilon).upper > delta:
            return False
    return True


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(spends=st.lists(SPENDS, max_size=9), epsilon=st.sampled_from([0.7, 1.0, 1.6]))
def test_any_interleaving_keeps_the_budget(tmp_path_factory, spends, epsilon):
    folder = tmp_path_factory.mktemp("ledger")
    handles = [opened(folder, epsilon=epsilon) for _ in range(3)]
    accepted = []
    for mechanism, partition, handle in spends:
        expected = allowed_by_definition([*accepted, (mechanism, partition)], epsilon, 1e-6)
        try:
            handles[handle].spend(mechanism, partition=partition)
        except ln.BudgetExceeded:
            assert not expected
        else:
            assert expected
            accepted.append((mechanism, partition))
    ledger = ln.Ledger.open(folder / "a.ledger")
    assert [(r.composition, r.partition) for r in ledger.records()] == [(ln.compose(m), p) for m, p in accepted]
    assert allowed_by_definition(accepted, epsilon, 1e-6)
    ledger.verify()
    shutil.rmtree(folder)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["", "a", "b", "c"]), st.dictionaries(st.integers(1, 3), st.integers(1, 4), max_size=3)
    )
)
def test_candidates_cover_every_partition(totals):
    candidates = total.worst_candidates(totals)
    common = totals.get("", {})
    for partition, own in totals.items():
        merged = {k: common.get(k, 0) + (own.get(k, 0) if partition else 0) for k in {*common, *own}}
        assert not any(merged.values()) or any(all(c.get(k, 0) >= n for k, n in merged.items()) for c in candidates)
    everything = [{k: common.get(k, 0) + own.get(k, 0) for k in {*common, *own}} for p, own in totals.items() if p]
    assert all({k: n for k, n in c.items() if n} in [common, *everything] for c in candidates)


# Processes.


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("trial", "rounds"), [("race", 6), ("kill", 25), ("storm", 12), ("fork", 12)])
def test_races_kills_storms_and_forks(trial, rounds):
    run = subprocess.run([sys.executable, str(TRIALS), trial, str(rounds)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(run.stdout)
    assert result["rounds"] == rounds
    assert result["failures"] == []
    if trial == "kill":
        assert result["releases"] > 0


# Files.


def test_a_ledger_is_one_file_and_keeps_its_budget(tmp_path):
    ledger = opened(tmp_path)
    ledger.spend(GAUSSIAN)
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]
    again = ln.Ledger.open(ledger.path)
    assert again.budget == ledger.budget
    assert again.spent() == ledger.spent()
    for stated, words in [
        ({"epsilon": 2.0}, r"epsilon=2\.0 differs from 1\.0"),
        ({"delta": 1e-5}, "delta=1e-05 differs"),
        ({"neighbours": "replace"}, "neighbours='replace' differs"),
    ]:
        with pytest.raises(ln.InvalidInput, match=words):
            ln.Ledger.open(ledger.path, **stated)
    assert ln.Ledger.open(ledger.path).count() == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "does not exist"),
        ({"epsilon": 1.0}, "does not exist"),
        ({"epsilon": -1.0, "delta": 1e-6}, r"epsilon=-1\.0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta=1\.0"),
        ({"epsilon": math.inf, "delta": 1e-6}, "epsilon=inf"),
        ({"epsilon": 1.0, "delta": 1e-6, "neighbours": "friends"}, "neighbours='friends'"),
    ],
)
def test_a_bad_budget_creates_nothing(tmp_path, arguments, words):
    with pytest.raises(ln.InvalidInput, match=words):
        ln.Ledger.open(tmp_path / "a.ledger", **arguments)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ln.InvalidInput, match="folder that does not exist"):
        ln.Ledger.open(tmp_path / "none" / "a.ledger", epsilon=1, delta=1e-6)


def refused(path: Path, words: str) -> None:
    before = path.read_bytes()
    with pytest.raises(ln.LedgerError, match=words) as caught:
        ln.Ledger.open(path, epsilon=1.0, delta=1e-6)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_other_files_are_refused_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("my only copy of something dear\n" * 40)
    refused(text, "is not a ledger")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    refused(other, "is not a ledger")


def test_newer_versions_are_refused_and_left_alone(tmp_path):
    ledger = opened(tmp_path)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(f"PRAGMA user_version = {database.VERSION + 1}")
    connection.close()
    refused(ledger.path, "has version 3, and this lessnoise knows 2")


def test_damage_is_noticed(tmp_path):
    ledger = opened(tmp_path, epsilon=100.0)
    for _ in range(20):
        ledger.spend(GAUSSIAN)
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole[: len(whole) // 2])
    refused(ledger.path, "is damaged")
    torn = bytearray(whole)
    torn[4096 * 2 : 4096 * 2 + 600] = os.urandom(600)
    ledger.path.write_bytes(torn)
    refused(ledger.path, "ledger=.*(damaged|failed|contradicts)")


def test_totals_that_contradict_the_records_are_refused(tmp_path):
    ledger = opened(tmp_path, epsilon=100.0)
    for _ in range(3):
        ledger.spend(GAUSSIAN)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE total SET count = 1")
    connection.close()
    refused(ledger.path, "contradicts itself")


def test_a_full_disk_spends_nothing(tmp_path, monkeypatch):
    ledger = opened(tmp_path, epsilon=1e5)
    ledger.spend(GAUSSIAN)
    connect = sqlite3.connect

    def small_disk(*arguments, **options):
        connection = connect(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(database.sqlite3, "connect", small_disk)
    monkeypatch.setattr(Stream, "claim", lambda _: pytest.fail("noise was drawn"))

    def fill() -> None:
        for number in range(10_000):
            ledger.spend(GAUSSIAN, note=f"{number}" * 500)

    with pytest.raises(ln.LedgerError, match="no room left"):
        fill()
    before = ledger.count()
    with pytest.raises(ln.LedgerError, match="no room left"):
        ln.Mechanism("other" * 2000, GAUSSIAN.law, (3,), 1.0).release(np.zeros(3), ledger=ledger)
    monkeypatch.undo()
    assert ledger.count() == before
    ledger.verify()
    ledger.spend(GAUSSIAN)


def test_a_ledger_that_vanished_or_changed_is_noticed(tmp_path):
    ledger = opened(tmp_path)
    ledger.path.unlink()
    with pytest.raises(ln.LedgerError, match="check that it exists"):
        ledger.spend(GAUSSIAN)
    assert list(tmp_path.iterdir()) == []
    ln.Ledger.open(ledger.path, epsilon=9.0, delta=1e-6)
    with pytest.raises(ln.LedgerError, match="replaced by another"):
        ledger.spend(GAUSSIAN)


def test_odd_names_are_names(tmp_path):
    ledger = opened(tmp_path, name="a b?mode=ro#%20é.ledger")
    ledger.spend(GAUSSIAN)
    assert ln.Ledger.open(str(ledger.path)).count() == 1


def test_an_empty_file_is_no_ledger(tmp_path):
    (tmp_path / "a.ledger").touch()
    refused(tmp_path / "a.ledger", "is empty, which no ledger is")


# History.


def test_history_ends_with_the_total(tmp_path):
    ledger = opened(tmp_path, epsilon=50.0)
    assert history(ledger) == []
    for number in range(40):
        ledger.spend(GAUSSIAN, partition=None if number % 2 else "north")
    moments = history(ledger, points=8)
    assert [moment.records for moment in moments] == [5, 10, 15, 20, 25, 30, 35, 40]
    epsilons = [moment.epsilon for moment in moments]
    assert epsilons == sorted(epsilons)
    assert epsilons[-1] == ledger.spent().upper
    assert moments[0].epsilon == GAUSSIAN.repeat(5).epsilon(1e-6).upper


def test_what_the_machine_adds_is_paid_for(tmp_path):
    """A budget that the real-valued noise meets to the last digit does not admit what the cipher adds to delta."""
    exact = ln.compose(GAUSSIAN)
    numeric = exact.delta_numeric(0.3)
    assert numeric == pytest.approx(delta_numeric(0.3, 3), rel=1e-9)
    assert exact.repeat(5).delta_numeric(0.3) == pytest.approx(5 * numeric)
    bare = exact.delta(0.3).upper
    wider = math.nextafter(math.nextafter(bare, 1.0), 1.0)
    assert bare < bare + 2 * numeric + 2 * math.ulp(bare) <= wider + math.ulp(bare)
    assert not ln.Ledger.open(tmp_path / "bare", epsilon=0.3, delta=bare).affords(GAUSSIAN)
    assert ln.Ledger.open(tmp_path / "wider", epsilon=0.3, delta=wider).affords(GAUSSIAN)
    vast = ln.Ledger.open(tmp_path / "vast", epsilon=1e5, delta=1e-6)  # e^100000 is no reason to refuse
    assert vast.affords(GAUSSIAN)
