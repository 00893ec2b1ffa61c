"""A ledger on a PostgreSQL server: the same promises as in a file, over a line that may break."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.ledger import export_ledger, import_ledger, roles_script, server_tables, silence
from lessnoise.ledger import server as server_store
from lessnoise.ledger.address import parse_address

psycopg = pytest.importorskip("psycopg")

TRIALS = Path(__file__).parents[3] / "benchmarks" / "ledger_trials.py"
GAUSSIAN = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
LAPLACE = ln.laplace(epsilon=0.25, sensitivity=1, shape=3)
NUMBERS = itertools.count()


@pytest.fixture
def name():
    return f"ledger-{next(NUMBERS)}"


@pytest.fixture
def ledger(server, name):
    return ln.Ledger.open(server.address(name), epsilon=20, delta=1e-6)


def execute(server, *statements, user=None):
    """As an administrator who may switch off the guards."""
    with psycopg.connect(server.address(user=user), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def told(call, *arguments, **options) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(ln.LessnoiseError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


# The same as in a file.


def test_the_same_answers_as_from_a_file(server, name, tmp_path):
    here = ln.Ledger.open(tmp_path / "a.ledger", epsilon=1, delta=1e-6)
    there = ln.Ledger.open(server.address(name), epsilon=1, delta=1e-6)
    spends = [(GAUSSIAN, None), (LAPLACE, "north"), (GAUSSIAN.subsample(0.1).repeat(5), "south"), (GAUSSIAN, None)]
    for number, (release, partition) in enumerate(spends):
        for ledger in (here, there):
            ledger.spend(release, partition=partition, note=f"é {number} '; --")
    for question in (
        ln.Ledger.spent,
        ln.Ledger.spent_delta,
        ln.Ledger.remaining,
        ln.Ledger.count,
        ln.Ledger.compositions,
    ):
        assert question(here) == question(there)
    for mine, theirs in zip(here.records(), there.records(), strict=True):
        assert (mine.id, mine.composition, mine.partition, mine.note) == (
            *(theirs.id, theirs.composition, theirs.partition, theirs.note),
        )
    assert {record.who for record in there.records()} == {server.user}
    there.verify(there.mark())
    for ledger in (here, there):
        while ledger.affords(LAPLACE):
            ledger.spend(LAPLACE)
        with pytest.raises(ln.BudgetExceeded):
            LAPLACE.release(np.zeros(3), ledger=ledger)
    assert here.count() == there.count() > 4
    assert here.spent() == there.spent()


def test_the_budget_is_fixed_when_it_is_created(server, name):
    assert "does not exist" in told(ln.Ledger.open, server.address(name))
    assert "epsilon=-1" in told(ln.Ledger.open, server.address(name), epsilon=-1, delta=0)
    ln.Ledger.open(server.address(name), epsilon=1, delta=1e-6)
    assert ln.Ledger.open(server.address(name), epsilon=1).count() == 0
    words = told(ln.Ledger.open, server.address(name), epsilon=2, delta=1e-6)
    assert "epsilon=2.0 differs from 1.0" in words


def test_many_open_and_pickle_and_fork(server, name):
    ledger = ln.Ledger.open(server.address(name), epsilon=20, delta=1e-6)
    failures = []

    def spend():
        try:
            for _ in range(3):
                ledger.spend(GAUSSIAN)
        except Exception as error:  # to be seen by the test
            failures.append(error)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert pickle.loads(pickle.dumps(ledger)).spend(GAUSSIAN).id == 13
    child = os.fork()
    if child == 0:
        os._exit(0 if ledger.spend(GAUSSIAN).id == 14 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.spend(GAUSSIAN).id == 15
    ledger.verify()


def test_keys_closing_and_clock(ledger, monkeypatch):
    first = ledger.spend(GAUSSIAN, key="daily")
    assert ledger.spend(GAUSSIAN, key="daily").again
    assert "key='daily' is that of record 1" in told(ledger.spend, LAPLACE, key="daily")
    assert "letter that the server cannot store" in told(ledger.spend, GAUSSIAN, note="a\0b")
    monkeypatch.setattr(server_tables.ServerTables, "now", lambda _: 1.0e9)  # a server whose clock was moved back
    assert ledger.spend(GAUSSIAN).time == first.time
    monkeypatch.undo()
    assert ledger.close("moved").id == 3
    assert "was closed (moved) and takes no more spends" in told(ledger.spend, GAUSSIAN)
    assert (ledger.count(), len(ledger.records())) == (2, 2)
    ledger.verify()


# A line that breaks.


@pytest.mark.parametrize(
    "cuts", [["answer"], ["question"], ["answer", "answer", "question"], ["question", "question", "answer"]]
)
def test_a_connection_that_is_lost_at_commit_costs_nothing_twice(server, name, cutter, cuts):
    ledger = ln.Ledger.open(server.address(name, folder=cutter.folder), epsilon=20, delta=1e-6)
    ledger.spend(GAUSSIAN)
    cutter.cuts = ["pass", *cuts]  # the first one ends what is only read
    receipt = ledger.spend(GAUSSIAN)
    assert cutter.cuts == []  # all of them happened
    assert (receipt.id, ledger.count()) == (2, 2)
    assert ledger.records()[1].hash == receipt.hash
    assert ln.Ledger.open(server.address(name)).count() == 2
    ledger.verify()


def test_a_server_that_does_not_come_back_leaves_it_open(server, name, cutter, monkeypatch):
    ledger = ln.Ledger.open(server.address(name, folder=cutter.folder), epsilon=20, delta=1e-6)
    monkeypatch.setattr(server_store, "_PATIENCE", 0.3)
    connect = server_store.ServerStore._connected

    def unreachable(_):
        raise psycopg.OperationalError("connection refused")

    cutter.cuts = ["pass", "answer"]
    read = ledger._store.read
    monkeypatch.setattr(ledger._store, "read", lambda action: (read(action), monkeypatch.setattr(
        server_store.ServerStore, "_connected", unreachable))[0])  # fmt: skip
    with pytest.raises(ln.errors.SpendUnknown, match="may be spent or not"):
        ledger.spend(GAUSSIAN)
    assert "cannot be reached (connection refused)" in told(ledger.count)
    monkeypatch.setattr(server_store.ServerStore, "_connected", connect)
    assert ledger.count() == 1


@pytest.mark.parametrize("cuts", [["silence"], ["silence", "answer"]])
def test_a_server_that_falls_silent_counts_as_lost(server, name, cutter, monkeypatch, cuts):
    ledger = ln.Ledger.open(server.address(name, folder=cutter.folder), epsilon=20, delta=1e-6)
    monkeypatch.setattr(silence, "SILENCE", 0.3)
    cutter.cuts = ["pass", *cuts]
    receipt = ledger.spend(GAUSSIAN)
    assert cutter.cuts == []
    assert (receipt.id, ledger.count()) == (1, 1)
    ledger.verify()


def test_a_server_that_stays_silent_is_not_waited_for(server, name, cutter, monkeypatch):
    ledger = ln.Ledger.open(server.address(name, folder=cutter.folder), epsilon=20, delta=1e-6)
    monkeypatch.setattr(silence, "SILENCE", 0.2)
    monkeypatch.setattr(server_store, "_PATIENCE", 0.3)
    cutter.cuts = ["pass", "silence", "silence", "silence"]
    with pytest.raises(ln.errors.SpendUnknown, match="may be spent or not"):
        ledger.spend(GAUSSIAN)
    cutter.cuts = ["silence", "silence", "silence"]
    assert "cannot be reached (the server has said nothing for 0.2 s)" in told(ledger.count)
    cutter.cuts = []
    assert ledger.count() == 0


def test_serialization_failures_are_tried_again(ledger, monkeypatch):
    insert, failed = server_tables.ServerTables.insert_records, []

    def unlucky(self, rows):
        insert(self, rows)
        if len(failed) < 3:
            failed.append(rows)
            raise psycopg.errors.SerializationFailure("could not serialize access")

    monkeypatch.setattr(server_tables.ServerTables, "insert_records", unlucky)
    assert ledger.spend(GAUSSIAN).id == 1
    assert (len(failed), ledger.count()) == (3, 1)


def test_a_full_disk_spends_nothing(ledger, monkeypatch):
    def full(self, rows):
        raise psycopg.errors.DiskFull("could not extend file")

    monkeypatch.setattr(server_tables.ServerTables, "insert_records", full)
    assert "has no room left on its disk: free some; nothing was spent or released" in told(ledger.spend, GAUSSIAN)
    monkeypatch.undo()
    assert ledger.count() == 0
    assert ledger.spend(GAUSSIAN).id == 1


def test_a_failed_statement_is_not_taken_for_a_commit(ledger, monkeypatch):
    """COMMIT of a failed transaction is answered by ROLLBACK, and not by an error."""

    def failing(self, rows):
        with pytest.raises(psycopg.Error):
            self.connection.execute("SELECT 1 / 0")

    monkeypatch.setattr(server_tables.ServerTables, "insert_records", failing)
    assert "nothing was spent" in told(ledger.spend, GAUSSIAN)
    monkeypatch.undo()
    assert ledger.count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("trial", "rounds"), [("team-race", 1), ("team-kill", 5), ("server-kill", 2)])
def test_races_and_kills(trial, rounds, postgres_server):
    command = [sys.executable, str(TRIALS), trial, str(rounds)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads(run.stdout)
    assert (result["rounds"], result["failures"]) == (rounds, [])


# An edited past.


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE lessnoise.record SET note = 'x' WHERE id = 2 AND ledger = {0}", "record 2 or one before it"),
        ("UPDATE lessnoise.record SET who = 'x' WHERE id = 2 AND ledger = {0}", "record 2 or one before it"),
        ("UPDATE lessnoise.record SET time = time - 1 WHERE id = 2 AND ledger = {0}", "record 2 or one before it"),
        ("UPDATE lessnoise.record SET hash = '' WHERE id = 2 AND ledger = {0}", "record 2 or one before it"),
        ("UPDATE lessnoise.ledger SET epsilon = 21 WHERE id = {0}", "was changed, the budget or record 1"),
        ("UPDATE lessnoise.total SET count = 1 WHERE ledger = {0}", "contradicts itself"),
        ("DELETE FROM lessnoise.record WHERE id = 3 AND ledger = {0}", "contradicts itself|lacks records"),
        ("UPDATE lessnoise.description SET json = '' WHERE ledger = {0}", "description 1 is not the one recorded"),
    ],
)
def test_a_tampered_row_is_found(server, name, ledger, statement, words):
    for _ in range(3):
        ledger.spend(GAUSSIAN)
    number = ledger._store.identity[0]
    execute(server, "SET session_replication_role = replica", statement.format(number))
    with pytest.raises(ln.LedgerError, match=words):
        ln.Ledger.open(server.address(name)).verify()
    assert ln.Ledger.open(server.address(f"{name}-other"), epsilon=1, delta=0).count() == 0  # others are not concerned


def test_guards_that_are_switched_off_are_noticed(server, name, ledger):
    ledger.spend(GAUSSIAN)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only ever added to"):
        execute(server, "UPDATE lessnoise.record SET note = 'x'")
    execute(server, "ALTER TABLE lessnoise.record DISABLE TRIGGER refuse")
    try:
        assert "has other triggers" in told(ln.Ledger.open, server.address(name))
    finally:
        execute(server, "ALTER TABLE lessnoise.record ENABLE TRIGGER refuse")
    assert ln.Ledger.open(server.address(name)).count() == 1


# Rights.


@pytest.fixture(scope="module")
def team(server):
    """Who may create (carol), spend (ada) and read (bob) one ledger, and somebody without any right (eve)."""
    ln.Ledger.open(server.address("first"), epsilon=1, delta=0)  # and with it the tables
    execute(server, *(f"CREATE ROLE {name} LOGIN" for name in ("carol", "ada", "bob", "eve")))
    execute(server, roles_script("none", create=["carol"]))
    ln.Ledger.open(server.address("team", user="carol"), epsilon=20, delta=1e-6)
    execute(server, roles_script("team", spend=["ada"], read=["bob"]))
    execute(server, roles_script("team", spend=["ada"], read=["bob"]))  # again does no harm
    return server


def test_roles(team):
    ada, bob, carol = (ln.Ledger.open(team.address("team", user=user)) for user in ("ada", "bob", "carol"))
    receipt = ada.spend(GAUSSIAN)
    assert (carol.spend(GAUSSIAN).id, bob.count()) == (receipt.id + 1, receipt.id + 1)
    assert [record.who for record in bob.records()[-2:]] == ["ada", "carol"]
    bob.verify()
    assert "is not open to this user" in told(bob.spend, GAUSSIAN)
    assert "is not open to this user" in told(ada.close)
    assert "is not open to this user" in told(ln.Ledger.open, team.address("team", user="eve"))
    assert "does not exist" in told(ln.Ledger.open, team.address("first", user="ada"))
    for user in ("ada", "bob", "eve"):
        assert "is not open to this user" in told(ln.Ledger.open, team.address("mine", user=user), epsilon=9, delta=0)
    words = told(ln.Ledger.open, team.address("first", user="carol"), epsilon=1, delta=0)
    assert "exists, and this user may not read it" in words
    assert bob.count() == receipt.id + 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE lessnoise.record SET note = 'x'",
        "DELETE FROM lessnoise.record",
        "TRUNCATE lessnoise.record",
        "UPDATE lessnoise.total SET count = 1",
        "UPDATE lessnoise.ledger SET epsilon = 99",
        "UPDATE lessnoise.ledger SET last = 0",
        "INSERT INTO lessnoise.total VALUES (1, '', 1, -5)",
        "INSERT INTO lessnoise.member SELECT id, 'ada', 'spend' FROM lessnoise.ledger",
        "INSERT INTO lessnoise.record SELECT ledger, id + 1, kind, time, 'bob', '', description, '', 'k', hash "
        "FROM lessnoise.record ORDER BY id DESC LIMIT 1",
        "INSERT INTO lessnoise.record SELECT ledger, id + 1, kind, time - 9, 'ada', '', description, '', 'k', hash "
        "FROM lessnoise.record ORDER BY id DESC LIMIT 1",
        "INSERT INTO lessnoise.record SELECT ledger, id + 1, kind, time + 1e6, 'ada', '', description, '', 'k', hash "
        "FROM lessnoise.record ORDER BY id DESC LIMIT 1",
        "DROP SCHEMA lessnoise CASCADE",
        "ALTER TABLE lessnoise.record DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
    ],
)
def test_who_may_spend_may_not_rewrite(team, statement):
    ln.Ledger.open(team.address("team", user="ada")).spend(GAUSSIAN)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        execute(team, statement, user="ada")
    ln.Ledger.open(team.address("team", user="bob")).verify()


def test_a_role_sees_its_own_ledgers_alone(team):
    with psycopg.connect(team.address(user="bob")) as connection:
        assert connection.execute("SELECT name FROM lessnoise.ledger").fetchall() == [("team",)]
        assert connection.execute("SELECT count(DISTINCT ledger) FROM lessnoise.record").fetchone() == (1,)
    for role in ("", "a\nb", "x" * 64):
        with pytest.raises(ln.InvalidInput, match="role="):
            roles_script("city", read=[role])
    assert '"a""b"' in roles_script("it's", read=['a"b'])
    assert "'it''s'" in roles_script("it's", read=["a"])


# Between the two stores.


def test_from_a_file_to_the_server_and_back(server, name, tmp_path):
    file = ln.Ledger.open(tmp_path / "a.ledger", epsilon=20, delta=1e-6)
    file.spend(GAUSSIAN, partition="north", note="one")
    file.spend(LAPLACE, key="two")
    assert "was not closed" in told(import_ledger, export_ledger(file), server.address(name))
    file.close("moved")
    exported = json.loads(json.dumps(export_ledger(file)))
    there = import_ledger(exported, server.address(name))
    assert there.spent() == file.spent()
    assert [(r.id, r.hash, r.who, r.time) for r in there.records()] == [
        (r.id, r.hash, r.who, r.time) for r in file.records()
    ]
    there.verify(file.mark())
    assert there.spend(GAUSSIAN).id == 5  # after the records that closed and opened it
    assert there.spend(LAPLACE, key="two").id == 2
    assert "exists already" in told(import_ledger, exported, server.address(name))
    back = import_ledger(export_ledger(there), tmp_path / "b.ledger", copy=True)
    back.verify(there.mark())
    assert (back.count(), back.spent()) == (3, there.spent())
    for change in (
        lambda d: d["records"][0].update(note="two"),
        lambda d: d["records"].pop(0),
        lambda d: d["budget"].update(epsilon=30.0),
        lambda d: d.update(created=1.0),
        lambda d: d["records"][0]["release"]["parts"][0].update(count=2),
        lambda d: d.pop("schema"),
        lambda d: d["records"][0].update(time="noon"),
        lambda d: d.update(records=[[]]),
    ):
        changed = json.loads(json.dumps(exported))
        change(changed)
        for place in (server.address(f"{name}-forged"), tmp_path / "forged.ledger"):
            with pytest.raises(ln.InvalidInput, match="export"):
                import_ledger(changed, place, copy=True)
            assert "does not exist" in told(ln.Ledger.open, place)


# Addresses, versions and servers that will not do.


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("mysql://ada:secret@db/city?ledger=a", "is of no kind that is known"),
        ("postgresql://ada:secret@db/city", "names no ledger"),
        ("postgresql://ada:secret@db/city?ledger=", "names the ledger wrongly"),
        ("postgresql://ada:secret@db/city?ledger=a&ledger=b", "names the ledger wrongly"),
        ("postgresql://ada:secret@db/city?ledger=a&secret=3", "cannot be understood"),
        ("postgresql://ada:secret@[db/city?ledger=a", "cannot be understood"),
        ("postgresql://ada:secret@/city?host=/nowhere&ledger=a", "cannot be reached"),
        ("postgresql://ada@/city?host=/nowhere&ledger=a&password=secret", "cannot be reached"),
    ],
)
def test_a_wrong_address_is_one_sentence_without_the_password(address, words):
    message = told(ln.Ledger.open, address, epsilon=1, delta=0)
    assert words in message
    assert "secret" not in message


def test_a_password_is_never_shown(server, name):
    address = server.address(name) + "&password=sesame"
    ledger = ln.Ledger.open(address, epsilon=1, delta=0)
    with pytest.raises(ln.BudgetExceeded) as caught:
        ledger.spend(GAUSSIAN)
    receipt = ledger.spend(LAPLACE)
    shown = [ledger, ledger._store, ledger.address, caught.value, receipt, ledger.records(), ledger._repr_html_()]
    assert "sesame" not in repr(shown)
    assert "sesame" not in repr(parse_address(address))
    assert name in ledger.address
    assert "does not exist" in told(ln.Ledger.open, server.address("x").replace("/postgres?", "/nowhere?"))


def test_versions_of_the_tables(server, name, ledger, monkeypatch):
    monkeypatch.setattr(server_store, "MIGRATIONS", ("a.sql", "b.sql"))
    assert "has version 1 of the server's tables, and this lessnoise needs 2" in told(ledger.spend, GAUSSIAN)
    assert "lessnoise ledger migrate" in told(ln.Ledger.open, server.address(name))
    monkeypatch.setattr(server_store, "MIGRATIONS", ())
    assert "has version 1 of the server's tables, and this lessnoise knows 0" in told(ledger.spend, GAUSSIAN)
    monkeypatch.undo()
    ledger._store.migrate()
    assert ledger.spend(GAUSSIAN).id == 1


def test_a_migration_is_whole_or_nothing(server, ledger, monkeypatch, tmp_path):
    for module in (server_store, server_tables):
        monkeypatch.setattr(module, "MIGRATIONS", ("server_1.sql", "server_2.sql"))
    monkeypatch.setattr(server_tables.resources, "files", lambda _: tmp_path)
    (tmp_path / "server_2.sql").write_text("CREATE TABLE lessnoise.more (x int); SELECT 1 / 0;")
    assert "division by zero" in told(ledger._store.migrate)
    monkeypatch.undo()
    ledger.verify()


def test_a_server_that_can_forget_is_refused(server, monkeypatch, name):
    monkeypatch.setattr(server_store, "_SETTINGS", server_store._SETTINGS.replace("current_setting('fsync')", "'off'"))
    assert "fsync=off, which can forget a spend" in told(ln.Ledger.open, server.address(name), epsilon=1, delta=0)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"pip install 'lessnoise\[postgres\]'"):
        ln.Ledger.open("postgresql://db/city?ledger=a")
