"""Plans in a ledger: promised releases always fit, others cannot eat them, and nothing happens by halves."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.ledger import reservations
from lessnoise.mechanism import with_noise

BALL = ln.Request(1, 1e-6, 1.0, 3)
PLAN = ln.plan_releases(BALL, times=12, mechanism="analytic-gaussian")
SMALL = ln.plan_releases(BALL, times=4, epsilon=0.3, delta=1e-7, mechanism="l2")
TINY = ln.analytic_gaussian(epsilon=0.05, delta=1e-8, sensitivity=1, shape=3)


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=1, delta=1e-6)


def contents(ledger):
    with sqlite3.connect(ledger.path) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("mechanism", ["analytic-gaussian", "l2"])
def test_a_plan_for_the_whole_budget_fits_an_empty_ledger_and_fills_it(ledger, mechanism):
    plan = ln.plan_releases(BALL, times=12, mechanism=mechanism)
    ledger.reserve(plan, name="monthly")
    assert not ledger.affords(TINY)
    assert ledger.remaining() < 0.01
    assert ledger.spent().upper == 0.0
    for left in range(11, -1, -1):
        release = plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
        assert release.receipt.id == 12 - left
        assert ledger.plans()[0].left == left
    assert ledger.spent_delta().upper <= 1e-6 * 1.05  # the record's brackets are wider than the plan's
    with pytest.raises(ln.BudgetExceeded, match="0 such releases left"):
        plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
    with pytest.raises(ln.BudgetExceeded):
        ledger.spend(TINY)
    assert ledger.count() == 12
    ln.Ledger.open(ledger.path).verify()


def test_others_can_spend_what_is_not_reserved_and_no_more(ledger):
    ledger.reserve(SMALL, name="quarterly")
    free, other = 0, ln.analytic_gaussian(epsilon=0.3, delta=1e-7, sensitivity=1, shape=3)
    while ledger.affords(other):
        ledger.spend(other)
        free += 1
    assert free > 1
    for _ in range(4):  # and still all that was promised is there
        ledger.plan("quarterly").spend(SMALL.mechanism)
    assert ledger.spent_delta().upper <= 1e-6
    together = ln.compose(other.repeat(free), SMALL.composition)
    assert ledger.compositions()[0].delta(1.0) == together.delta(1.0)


def test_a_plan_that_does_not_fit_changes_nothing(ledger):
    ledger.spend(TINY)
    before = contents(ledger)
    with pytest.raises(ln.BudgetExceeded, match="would add epsilon") as caught:
        ledger.reserve(PLAN, name="monthly")
    assert "\n" not in str(caught.value)
    assert contents(ledger) == before


def test_cancelling_frees_what_is_not_used(ledger):
    ledger.reserve(PLAN, name="monthly")
    ledger.plan("monthly").spend(PLAN.mechanism)
    assert ledger.cancel("monthly") == 11
    assert ledger.affords(TINY)
    assert ledger.count() == 1
    with pytest.raises(ln.InvalidInput, match="was cancelled"):
        ledger.plan("monthly").spend(PLAN.mechanism)
    with pytest.raises(ln.InvalidInput, match="cancelled already"):
        ledger.cancel("monthly")
    with pytest.raises(ln.InvalidInput, match="choose another"):
        ledger.reserve(SMALL, name="monthly")
    ln.Ledger.open(ledger.path).verify()


def test_only_what_was_planned_is_taken_from_a_plan(ledger):
    ledger.reserve(PLAN, name="monthly")
    held = ledger.plan("monthly")
    before = contents(ledger)
    for release, words in (
        (with_noise(PLAN.mechanism, 0.9999), "is not one of plan"),
        (ln.laplace(epsilon=1e-3, sensitivity=1, shape=3), "is not one of plan"),
        (replace(PLAN.mechanism, shape=(4,), law=replace(PLAN.mechanism.law, k=4.0)), "is not one of plan"),
        (PLAN.mechanism.subsample(0.5), "is not one of plan"),
        (replace(PLAN.mechanism, neighbours="replace", claim=None), "neighbours"),
    ):
        with pytest.raises(ln.InvalidInput, match=words):
            held.spend(release)
        with pytest.raises(ln.InvalidInput, match=words):
            held.check(release)
    with pytest.raises(ln.InvalidInput, match="partition"):
        held.spend(PLAN.mechanism, partition="north")
    with pytest.raises(ln.BudgetExceeded, match="12 such releases left, and 13 are asked"):
        held.spend(PLAN.mechanism.repeat(13))
    with pytest.raises(ln.InvalidInput, match="its plans are 'monthly'"):
        ledger.plan("yearly")
    assert contents(ledger) == before


def test_more_noise_than_planned_and_several_at_once_are_welcome(ledger):
    ledger.reserve(PLAN, name="monthly")
    held = ledger.plan("monthly")
    held.spend(with_noise(PLAN.mechanism, 1.5))
    held.spend(PLAN.mechanism.repeat(3))
    held.spend(ln.compose(PLAN.mechanism, with_noise(PLAN.mechanism, 2.0)))
    assert ledger.plans()[0].left == 6
    assert ledger.spent_delta().upper < 1e-6


def test_a_plan_for_a_partition(ledger):
    ledger.reserve(PLAN, name="north", partition="north")
    ledger.reserve(PLAN, name="south", partition="south")
    assert not ledger.affords(TINY)
    assert not ledger.affords(TINY, partition="south")
    assert ledger.affords(TINY, partition="east")
    PLAN.mechanism.release(np.zeros(3), ledger=ledger.plan("north"))
    assert ledger.records()[0].partition == "north"


def test_two_kinds_in_one_plan(ledger):
    plan = ln.plan_releases(
        {
            "table": ln.Planned(BALL, 2, mechanism="analytic-gaussian"),
            "count": ln.Planned(replace(BALL, shape=1), 3, mechanism="laplace"),
        },
        epsilon=1,
        delta=1e-6,
    )
    ledger.reserve(plan, name="year")
    held = ledger.plan("year")
    for name, times in (("table", 2), ("count", 3)):
        for _ in range(times):
            held.spend(plan[name].mechanism)
        with pytest.raises(ln.BudgetExceeded, match="0 such releases left"):
            held.spend(plan[name].mechanism)


def test_a_failure_in_the_midst_leaves_neither_record_nor_use(ledger, monkeypatch):
    ledger.reserve(PLAN, name="monthly")
    before = contents(ledger)
    monkeypatch.setattr(reservations, "record_use", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        ledger.plan("monthly").spend(PLAN.mechanism)
    assert contents(ledger) == before
    monkeypatch.setattr(reservations, "hold", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(MemoryError):
        ledger.reserve(SMALL.composition, name="b", partition="x") if ledger.cancel("monthly") else None
    assert len(ledger.plans()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE planned SET used = 0",
        "UPDATE planned SET used = 13",
        "DELETE FROM planned_spend",
        "UPDATE planned SET plan = 'other'",
        "DROP TABLE planned_spend",
    ],
)
def test_plans_that_were_edited_are_refused(ledger, statement):
    ledger.reserve(PLAN, name="monthly")
    ledger.plan("monthly").spend(PLAN.mechanism)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute(statement)
    with pytest.raises(ln.LedgerError, match="left as it is"):
        ln.Ledger.open(ledger.path)


def test_a_ledger_without_plans_has_the_tables_of_before(ledger):
    ledger.spend(TINY)
    assert "plan" not in {line.split()[2] for line in contents(ledger) if line.startswith("CREATE TABLE")}
    assert ledger.plans() == []
    with pytest.raises(ln.InvalidInput, match="its plans are none"):
        ledger.plan("monthly")
    with pytest.raises(ln.InvalidInput, match="name=''"):
        ledger.reserve(PLAN, name="")
