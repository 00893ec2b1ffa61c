"""Plans in a ledger: promised releases always fit, others cannot eat them, and nothing happens by halves or twice."""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import threading
from dataclasses import replace

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.composition import Composition
from lessnoise.ledger import chain, export_ledger, import_ledger, roles_script
from lessnoise.ledger.file_tables import FileTables
from lessnoise.ledger.server_tables import ServerTables
from lessnoise.mechanism import with_noise

BALL = ln.Request(1, 1e-6, 1.0, 3)
PLAN = ln.plan_releases(BALL, times=12, mechanism="analytic-gaussian")
SMALL = ln.plan_releases(BALL, times=4, epsilon=0.3, delta=1e-7, mechanism="l2")
TINY = ln.analytic_gaussian(epsilon=0.05, delta=1e-8, sensitivity=1, shape=3)


NUMBERS = itertools.count()


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    """Addresses of ledgers that do not exist yet, in either store."""
    if request.param == "file":
        return lambda: tmp_path / f"{next(NUMBERS)}.ledger"
    server = request.getfixturevalue("server")
    return lambda: server.address(f"plans-{next(NUMBERS)}")


@pytest.fixture
def ledger(place):
    return ln.Ledger.open(place(), epsilon=1, delta=1e-6)


@pytest.fixture
def in_file(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=1, delta=1e-6)


def contents(ledger):
    return ledger.read(lambda found: (list(found.records()), found.totals(), found.digests()))


def forge(ledger, *records):
    """Records that are chained as lessnoise does it, and that it would not write."""

    def write(found):
        for kind, release, options in records:
            found.add(None if release is None else release.to_json(), kind=kind, **options)

    ledger._store.write(write)


@pytest.mark.parametrize("mechanism", ["analytic-gaussian", "l2"])
def test_a_plan_for_the_whole_budget_fits_an_empty_ledger_and_fills_it(ledger, mechanism):
    plan = ln.plan_releases(BALL, times=12, mechanism=mechanism)
    ledger.reserve(plan, name="monthly")
    assert not ledger.affords(TINY)
    assert ledger.remaining() < 0.01
    assert ledger.spent().upper == 0.0
    for left in range(11, -1, -1):
        release = plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
        assert release.receipt.id == 2 * (12 - left)  # after the reservation, a spend and a use each
        assert ledger.plans()[0].left == left
    assert ledger.spent_delta().upper <= 1e-6 * 1.05  # the record's brackets are wider than the plan's
    with pytest.raises(ln.BudgetExceeded, match="0 such releases left"):
        plan.mechanism.release(np.zeros(3), ledger=ledger.plan("monthly"))
    with pytest.raises(ln.BudgetExceeded):
        ledger.spend(TINY)
    assert ledger.count() == 12
    ledger.verify()
    assert {record.plan for record in ledger.records()} == {"monthly"}


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
    assert [(plan.left, plan.unused) for plan in ledger.plans()] == [(0, 11)]
    ledger.verify()


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


# Nothing by halves, nothing twice.


def test_a_key_names_one_record_of_a_plan(ledger):
    held = ledger.reserve(PLAN, name="monthly", key="plan")
    assert ledger.reserve(PLAN, name="monthly", key="plan") == replace(held, again=True)
    used = ledger.plan("monthly").spend(PLAN.mechanism, key="january")
    assert ledger.plan("monthly").spend(PLAN.mechanism, key="january") == replace(used, again=True)
    before = contents(ledger)
    for call, words in (
        (lambda: ledger.reserve(PLAN, name="yearly", key="plan"), "another reserve"),
        (lambda: ledger.reserve(PLAN, name="monthly", partition="north", key="plan"), "another reserve"),
        (lambda: ledger.reserve(SMALL, name="monthly", key="plan"), "another reserve"),
        (lambda: ledger.reserve(PLAN, name="monthly", key="january"), "another release"),
        (lambda: ledger.spend(PLAN.composition, key="plan"), "another reserve"),  # describes the same, and is no spend
        (lambda: ledger.spend(PLAN.mechanism, key="january"), "another release"),  # which is not of the plan
        (lambda: ledger.cancel("monthly", key="plan"), "another reserve"),
        (lambda: ledger.reserve(PLAN, name="monthly"), "choose another"),
    ):
        with pytest.raises(ln.InvalidInput, match=words):
            call()
    assert contents(ledger) == before
    assert ledger.cancel("monthly", key="end") == ledger.cancel("monthly", key="end") == 11
    assert len(contents(ledger)[0]) == 4
    ledger.verify(held.mark, used.mark)


def test_a_process_that_is_killed_in_the_midst_leaves_neither_record_nor_use(ledger):
    """Between the spend and the use of the plan, between the reservation and its end: before anything counts."""
    ledger.reserve(SMALL, name="quarterly")
    for kind, action in (
        (chain.USE, lambda: ledger.plan("quarterly").spend(SMALL.mechanism)),
        (chain.RESERVE, lambda: ledger.reserve(SMALL, name="other")),
        (chain.CANCEL, lambda: ledger.cancel("quarterly")),
    ):
        before, child = contents(ledger), os.fork()
        if child == 0:
            for tables in (FileTables, ServerTables):
                tables.insert_records = _killing(tables.insert_records, kind)
            try:
                action()
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert contents(ledger) == before
    assert ledger.plan("quarterly").spend(SMALL.mechanism).id == 2
    assert ledger.cancel("quarterly") == 3
    ledger.verify()


def _killing(insert, kind):
    def killed(self, rows):
        insert(self, rows)
        if rows[0].kind == kind:
            os.kill(os.getpid(), signal.SIGKILL)

    return killed


def test_races_for_a_plan(ledger):
    """One of the plans for the whole budget is held, and twelve of its releases are made, whoever asks."""
    results = {}

    def racing(number, action):
        try:
            results[number] = action(number)
        except ln.BudgetExceeded:
            results[number] = None

    def race(action, count):
        results.clear()
        threads = [threading.Thread(target=racing, args=(number, action)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == count
        return [number for number, result in results.items() if result is not None]

    (winner,) = race(lambda number: ledger.reserve(PLAN, name=f"plan {number}"), 4)
    held = ledger.plan(f"plan {winner}")
    ledger.plan(f"plan {winner}").spend(PLAN.mechanism.repeat(8))
    assert len(race(lambda _: held.spend(PLAN.mechanism), 6)) == 4
    assert [(plan.name, plan.left) for plan in ledger.plans()] == [(f"plan {winner}", 0)]
    ledger.verify()


def test_a_connection_that_is_lost_at_commit_holds_and_uses_nothing_twice(server, cutter):
    name = f"plans-{next(NUMBERS)}"
    ledger = ln.Ledger.open(server.address(name, folder=cutter.folder), epsilon=1, delta=1e-6)
    cutter.cuts = ["pass", "answer"]  # the first one ends what is only read
    assert ledger.reserve(PLAN, name="monthly").id == 1
    held = ledger.plan("monthly")
    cutter.cuts = ["pass", "answer"]
    assert held.spend(PLAN.mechanism).id == 2
    cutter.cuts = ["pass", "question"]
    assert held.spend(PLAN.mechanism).id == 4
    cutter.cuts = ["pass", "answer"]
    assert ledger.cancel("monthly") == 10
    assert cutter.cuts == []
    assert [row.kind for row in contents(ledger)[0]] == ["reserve", "spend", "use", "spend", "use", "cancel"]
    ledger.verify()


# The history.


def test_a_plan_goes_on_in_the_other_store(ledger, in_file):
    ledger.reserve(PLAN, name="monthly", partition="north")
    ledger.plan("monthly").spend(PLAN.mechanism)
    ledger.close()
    for call in (
        lambda: ledger.plan("monthly").spend(PLAN.mechanism),
        lambda: ledger.plan("monthly").check(PLAN.mechanism),
        lambda: ledger.cancel("monthly"),
        lambda: ledger.reserve(SMALL, name="b", partition="south"),
    ):
        with pytest.raises(ln.LedgerError, match="was closed"):
            call()
    moved = import_ledger(export_ledger(ledger), in_file.path.with_name("moved.ledger"))
    assert moved.plans() == ledger.plans()
    assert [record.plan for record in moved.records()] == ["monthly"]
    assert not moved.affords(TINY, partition="north")
    for _ in range(11):
        moved.plan("monthly").spend(PLAN.mechanism)
    with pytest.raises(ln.BudgetExceeded, match="0 such releases left"):
        moved.plan("monthly").spend(PLAN.mechanism)
    moved.verify(ledger.mark())


def test_an_imported_plan_that_contradicts_itself_creates_nothing(in_file):
    in_file.reserve(SMALL, name="a")
    document = export_ledger(in_file)
    forge(in_file, (chain.CANCEL, None, {"note": "a"}), (chain.CANCEL, None, {"note": "a"}))
    document["records"] = in_file.read(lambda found: [
        {**document["records"][0], "id": row.id, "kind": row.kind, "time": row.time, "hash": row.hash.hex(),
         **({} if row.kind == chain.RESERVE else {"release": None})}
        for row in found.records()
    ])  # fmt: skip
    target = in_file.path.with_name("b.ledger")
    with pytest.raises(ln.LedgerError, match="cancel of plan 'a'"):
        import_ledger(document, target, copy=True)
    assert not target.exists()


@pytest.mark.parametrize(
    "records",
    [
        [("cancel", None, {"note": "a"}), ("cancel", None, {"note": "a"})],
        [("cancel", None, {"note": "b"})],
        [("reserve", SMALL.composition, {"note": "a"})],
        [("reserve", SMALL.composition, {"note": "a", "partition": "x"})],
        [("spend", TINY.repeat(1), {}), ("use", SMALL.mechanism.repeat(5), {"note": "a"})],
        [("spend", TINY.repeat(1), {}), ("use", PLAN.mechanism.repeat(1), {"note": "a"})],
        [("spend", TINY.repeat(1), {}), ("use", SMALL.mechanism.repeat(1), {"note": "b"})],
        [
            ("spend", TINY.repeat(1), {"partition": "x"}),
            ("use", SMALL.mechanism.repeat(1), {"note": "a", "partition": "x"}),
        ],
        [
            ("cancel", None, {"note": "a"}),
            ("spend", TINY.repeat(1), {}),
            ("use", SMALL.mechanism.repeat(1), {"note": "a"}),
        ],
        [
            *[("spend", TINY.repeat(1), {}), ("use", SMALL.mechanism.repeat(1), {"note": "a"})],
            ("cancel", None, {"note": "a"}),
            *[("spend", TINY.repeat(1), {}), ("use", SMALL.mechanism.repeat(1), {"note": "a"})],
        ],
    ],
)
def test_plans_that_cannot_be_are_refused(in_file, records):
    """By whatever is decided, be the hashes as they should."""
    in_file.reserve(SMALL, name="a")
    in_file.verify()
    forge(in_file, *records)
    for question in (in_file.verify, in_file.plans, lambda: in_file.affords(TINY), in_file.remaining):
        with pytest.raises(ln.LedgerError, match="holds what no lessnoise writes"):
            question()


@pytest.mark.parametrize("records", [[("use", SMALL.mechanism.repeat(1), {"note": "a"})]])
def test_a_use_without_its_spend_is_refused(in_file, records):
    in_file.reserve(SMALL, name="a")
    forge(in_file, *records)
    with pytest.raises(ln.LedgerError, match="follows no spend"):
        in_file.verify()
    with pytest.raises(ln.LedgerError, match="follows no spend"):
        ln.Ledger.open(in_file.path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE record SET kind = 'cancel', description = NULL WHERE id = 3",
        "UPDATE record SET note = 'other' WHERE id = 1",
        "UPDATE record SET kind = 'open', description = NULL WHERE id = 1",
        "DELETE FROM record WHERE id = 3",
        "UPDATE record SET description = 99 WHERE kind = 'reserve'",
    ],
)
def test_plans_that_were_edited_are_refused(in_file, statement):
    in_file.reserve(PLAN, name="monthly")
    in_file.plan("monthly").spend(PLAN.mechanism)
    with sqlite3.connect(in_file.path) as connection:
        connection.execute(statement)
    with pytest.raises(ln.LedgerError, match="left as it is"):
        ln.Ledger.open(in_file.path)


def test_who_may_spend_may_reserve_and_a_reader_may_not(server):
    name = f"plans-{next(NUMBERS)}"
    ln.Ledger.open(server.address(name), epsilon=1, delta=1e-6)
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(server.address(), autocommit=True) as connection:
        for role in ("spender", "reader"):
            connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(roles_script(name, spend=["spender"], read=["reader"]))
    spender, reader = (ln.Ledger.open(server.address(name, user=role)) for role in ("spender", "reader"))
    with pytest.raises(ln.LedgerError, match="not open to this user"):
        reader.reserve(PLAN, name="monthly")
    spender.reserve(PLAN, name="monthly")
    assert reader.plan("monthly").affords(PLAN.mechanism)
    with pytest.raises(ln.LedgerError, match="not open to this user"):
        reader.plan("monthly").spend(PLAN.mechanism)
    with pytest.raises(ln.LedgerError, match="not open to this user"):
        reader.cancel("monthly")
    assert spender.cancel("monthly") == 12


def test_what_is_no_plan(ledger):
    ledger.spend(TINY)
    assert ledger.plans() == []
    with pytest.raises(ln.InvalidInput, match="its plans are none"):
        ledger.plan("monthly")
    with pytest.raises(ln.InvalidInput, match="name=''"):
        ledger.reserve(PLAN, name="")
    with pytest.raises(ln.InvalidInput, match="at most 200"):
        ledger.reserve(PLAN, name=201 * "a")


def test_an_adaptive_ledger_holds_gaussian_plans_alone(place):
    ledger = ln.Ledger.open(place(), epsilon=1, delta=1e-6, adaptive=True)
    with pytest.raises(ln.InvalidInput, match="not plain Gaussian"):
        ledger.reserve(SMALL, name="a")
    assert contents(ledger)[0] == []
    ledger.reserve(PLAN, name="a")
    with pytest.raises(ln.InvalidInput, match="not plain Gaussian"):
        ledger.plan("a").spend(SMALL.mechanism)


def test_equal_releases_in_two_parts_of_a_plan_are_one_kind(ledger):
    part = SMALL.composition.parts[0]
    ledger.reserve(Composition((replace(part, count=1), replace(part, count=2))), name="a")
    assert [(item.times, item.used) for item in ledger.plans()[0].items] == [(3, 0)]
    ledger.plan("a").spend(SMALL.mechanism.repeat(3))
    assert ledger.plans()[0].left == 0
    ledger.verify()
