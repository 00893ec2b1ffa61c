"""The ledger's file: who may open it, what it is called, what may be in it, and what is said when it fails."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys

import pytest

import lessnoise as ln
from lessnoise.ledger import database, forks, spending
from lessnoise.ledger.spending import history

GAUSSIAN = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
LAPLACE = ln.laplace(epsilon=0.25, sensitivity=1, shape=3)


@pytest.fixture
def ledger(tmp_path):
    made = ln.Ledger.open(tmp_path / "a.ledger", epsilon=20, delta=1e-6)
    for number in range(6):
        made.spend((GAUSSIAN, LAPLACE)[number % 2], partition=(None, "north", "south")[number % 3], note=f"{number}")
    return made


def edit(path, *statements, values=()):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement, values)
    connection.close()


def told(call, *arguments, **options) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(ln.LedgerError) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


# Nothing but SQLite opens the file.

WATCHED = """
import sys
from pathlib import Path
import lessnoise as ln
from lessnoise.cli.app import app
from typer.testing import CliRunner
path, opened = Path(sys.argv[1]).resolve(), []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and Path(str(arguments[0])).resolve() == path:
        opened.append(arguments)
sys.addaudithook(watch)
path.open("rb").close()
assert len(opened) == 1  # the watch is awake
gaussian = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
ledger = ln.Ledger.open(path, epsilon=20, delta=1e-6)
gaussian.release([0.0, 0.0, 0.0], ledger=ledger)
ledger.verify(), ledger.records(), ledger.affords(gaussian), ledger.spent(), ledger.count(), ledger._repr_html_()
for command in (["show", str(path), "--plot", sys.argv[2]], ["export", str(path)],
                ["create", str(path), "--epsilon", "1", "--delta", "0"],
                ["spend", str(path), "laplace", *"--shape 3 --sensitivity 1 --epsilon 0.1 --delta 1e-8".split()]):
    CliRunner().invoke(app, ["ledger", *command])
assert ledger.count() == 8
assert len(opened) == 1, opened
"""


@pytest.mark.slow
def test_nothing_but_sqlite_opens_the_file(ledger, tmp_path):
    """To close it drops the locks of the whole process, also those of a thread in the midst of a spend."""
    command = [sys.executable, "-c", WATCHED, str(ledger.path), str(tmp_path / "spending.svg")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "spending.svg").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_in_the_midst_of_a_transaction_leaves_it_alone(ledger):
    """As a signal handler may fork it: the child may not use, commit or undo what its parent is doing."""
    child = -1
    try:
        with ledger._store.writing() as tables:
            tables.add(tables.json_of(1), note="of the parent")
            child = os.fork()
            if child == 0 and "forked while a release was being paid for" not in told(ledger.count):
                os._exit(1)
    except ln.LedgerError as error:  # the end of the transaction, in the child
        os._exit(0 if "the parent goes on with it" in str(error) else 2)
    finally:
        if child == 0:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.records()[-1].note == "of the parent"
    assert not forks._doors.broken
    ledger.verify()


# Names.


def test_symbolic_links_and_folders_lead_to_one_file(ledger, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(ledger.path)
    linked = ln.Ledger.open(tmp_path / "link")
    linked.spend(GAUSSIAN)
    (tmp_path / "link").unlink()
    linked.spend(GAUSSIAN)
    (tmp_path / "there").symlink_to("b.ledger")
    ln.Ledger.open(tmp_path / "there", epsilon=1, delta=0)
    assert (tmp_path / "b.ledger").is_file()
    monkeypatch.chdir(tmp_path)
    relative = pickle.loads(pickle.dumps(ln.Ledger.open("a.ledger")))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    relative.spend(GAUSSIAN)
    assert ledger.count() == 9


def test_hard_links_are_refused(ledger, tmp_path):
    os.link(ledger.path, tmp_path / "second")
    for call in (ledger.count, lambda: ledger.spend(GAUSSIAN), lambda: ln.Ledger.open(tmp_path / "second")):
        assert "has 2 names (hard links)" in told(call)
    (tmp_path / "second").unlink()
    assert ledger.count() == 6


def test_a_replaced_file_is_noticed(ledger, tmp_path):
    shutil.copy(ledger.path, tmp_path / "copy")
    os.replace(tmp_path / "copy", ledger.path)
    assert "was replaced by another one" in told(ledger.spend, GAUSSIAN)
    again = ln.Ledger.open(ledger.path)
    edit(ledger.path, "UPDATE budget SET created = created + 1")  # another ledger, written to the same place
    assert "was replaced by another one" in told(again.spend, GAUSSIAN)


def test_what_cannot_be_a_ledger_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "loop").symlink_to("loop")
    budget = {"epsilon": 1, "delta": 1e-6}
    assert "is not a file" in told(ln.Ledger.open, tmp_path / "folder", **budget)
    assert "is not a file" in told(ln.Ledger.open, tmp_path / "pipe", **budget)
    assert "is not a file" in told(ln.Ledger.open, os.devnull, **budget)
    assert "is not a ledger" in told(ln.Ledger.open, tmp_path / "short", **budget)
    assert "cannot be read" in told(ln.Ledger.open, tmp_path / ("x" * 300), **budget)
    for path in (b"bytes", 3, None, "nul\0", tmp_path / "loop"):
        with pytest.raises((ln.InvalidInput, ln.LedgerError)):
            ln.Ledger.open(path, **budget)


# Creation: a whole ledger, or none.


def test_creation_is_one_step(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.ledger", []
    link = os.link

    def watched(source, target):
        seen.append((os.path.getsize(source) > 0, path.exists()))
        return link(source, target)

    monkeypatch.setattr(database.os, "link", watched)
    ln.Ledger.open(path, epsilon=1, delta=1e-6)
    assert seen == [(True, False)]
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger"]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(database.os, "link", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ln.Ledger.open(tmp_path / "b.ledger", epsilon=1, delta=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger"]


def test_the_first_name_that_a_killed_creator_left_is_taken_away(ledger, tmp_path):
    os.link(ledger.path, tmp_path / ".ledger-0123456789abcdef.new")
    assert ledger.count() == 6
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger"]


def test_a_journal_of_an_earlier_ledger_is_not_played_into_a_new_one(tmp_path):
    (tmp_path / "a.ledger-journal").write_bytes(b"of a ledger that was removed")
    assert "a.ledger-journal of an earlier one" in told(ln.Ledger.open, tmp_path / "a.ledger", epsilon=1, delta=1e-6)
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger-journal"]


# Failures say what they know.


class Failing(sqlite3.Connection):
    """Commits, then says that the disk failed; so does SQLite if the folder cannot be synced any more."""

    def execute(self, statement, *values):
        result = super().execute(statement, *values)
        if statement == "COMMIT":
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise error
        return result


def test_an_unknown_outcome_is_not_called_unspent(ledger, monkeypatch):
    connect = sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(database.sqlite3, "connect", lambda *a, **o: connect(*a, **o, factory=Failing))
        with pytest.raises(ln.errors.SpendUnknown, match="may be spent or not") as caught:
            ledger.spend(GAUSSIAN)
    assert "nothing was spent" not in str(caught.value)
    assert ledger.count() == 7


def test_a_reader_that_does_not_let_go_stops_a_spend_and_nothing_is_spent(ledger, monkeypatch):
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.05)
    reader = sqlite3.connect(ledger.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM record").fetchone()
    assert "kept busy by another process: try again; nothing was spent" in told(ledger.spend, GAUSSIAN)
    reader.close()
    assert ledger.count() == 6
    ledger.spend(GAUSSIAN)


def test_a_failed_look_does_not_speak_of_spending(ledger, monkeypatch):
    """It may follow a spend: what is left is asked after every release."""
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.05)
    writer = sqlite3.connect(ledger.path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    assert "spent" not in told(ledger.remaining)
    writer.close()


@pytest.mark.parametrize("text", ["\ud800", "x" * 100_001])
def test_texts_that_cannot_be_stored_cost_nothing(ledger, text):
    for arguments in ({"note": text}, {"partition": text}):
        with pytest.raises(ln.InvalidInput):
            ledger.spend(GAUSSIAN, **arguments)
    ledger.spend(GAUSSIAN, partition="a\0b", note="'; DROP TABLE record; --\n\0")
    assert (ledger.count(), ledger.records()[-1].partition) == (7, "a\0b")


# What is in it.


def every_use(ledger):
    return [
        ledger.records,
        lambda: spending.spending_lines(history(ledger), ledger.budget),
        ledger.spent,
        ledger.spent_delta,
        lambda: ledger.affords(LAPLACE),
        lambda: ledger.spend(GAUSSIAN, partition="north"),
        ledger.verify,
        lambda: ln.Ledger.open(ledger.path),
    ]


def test_an_edited_description_is_noticed_by_whoever_reads_it(ledger):
    edit(ledger.path, "UPDATE description SET json = replace(json, '4.0', '90.0') WHERE json LIKE '%laplace%'")
    for use in every_use(ledger):
        assert "was changed, description 2 is not the one recorded" in told(use)


def forge(path, change):
    """A description that was edited together with its digest."""
    connection = sqlite3.connect(path, isolation_level=None)
    stored = json.loads(connection.execute("SELECT json FROM description WHERE id = 2").fetchone()[0])
    text = change(stored)
    text = text if isinstance(text, str) else json.dumps(text)
    digest = hashlib.sha256(text.encode()).digest()
    connection.execute("UPDATE description SET json = ?, digest = ? WHERE id = 2", (text, digest))
    connection.close()


def _without_scale(stored):
    del stored["parts"][0]["mechanism"]["noise"]["scale"]
    return stored


def _replace(stored):
    mechanism = stored["parts"][0]["mechanism"]
    mechanism["neighbours"] = mechanism["claim"]["neighbours"] = "replace"
    return stored


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda _: "{", "in table description (id=2"),
        (lambda _: "[" * 5000, "in table description (id=2"),
        (lambda _: "[]", "in table description (id=2"),
        (_without_scale, "in table description (id=2"),
        (_replace, "in table description (id=2, neighbours='replace')"),
    ],
)
def test_a_forged_description_is_refused_in_one_sentence(ledger, change, words):
    forge(ledger.path, change)
    for use in (ledger.records, ledger.spent, lambda: ledger.spend(GAUSSIAN)):
        assert words in told(use)
    assert "was changed, record 2 or one before it" in told(ledger.verify)


LOOSE = {" STRICT,": " ", ") STRICT": ")", " NOT NULL": "", " CHECK (only = 1)": "", " REFERENCES description (id)": ""}


def edit_loosely(path, statement):
    """What the tables forbid: their rules are lifted for the time of the change."""
    connection = sqlite3.connect(path, isolation_level=None)
    tables = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'").fetchall()
    for loosely in (True, False):
        connection.execute("PRAGMA writable_schema = ON")
        for name, text in tables:
            loose = text
            for strict, free in LOOSE.items():
                loose = loose.replace(strict, free)
            values = (loose if loosely else text, name)
            connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", values)
        connection.close()
        connection = sqlite3.connect(path, isolation_level=None)
        if loosely:
            connection.execute(statement)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE budget SET epsilon = NULL",
        "UPDATE budget SET epsilon = 'much'",
        "UPDATE budget SET epsilon = -1.0",
        "UPDATE budget SET epsilon = 9e999",
        "UPDATE budget SET delta = 1.5",
        "UPDATE budget SET delta = NULL",
        "UPDATE budget SET neighbours = 'friends'",
        "UPDATE budget SET created = 'today'",
        "DELETE FROM budget",
        "INSERT INTO budget SELECT 2, epsilon, delta, neighbours, created, lessnoise, adaptive FROM budget",
        "UPDATE budget SET adaptive = 2",
        "UPDATE description SET json = NULL WHERE id = 2",
        "UPDATE description SET json = x'ff' WHERE id = 2",
        "UPDATE description SET digest = 'abc' WHERE id = 2",
        "UPDATE description SET id = 7 WHERE id = 2",
        "DELETE FROM description",
        "UPDATE record SET time = NULL WHERE id = 3",
        "UPDATE record SET time = 9e999 WHERE id = 3",
        "UPDATE record SET time = 'noon' WHERE id = 3",
        "UPDATE record SET partition = 'west' WHERE id = 3",
        "UPDATE record SET partition = x'00' WHERE id = 3",
        "UPDATE record SET description = 99 WHERE id = 3",
        "UPDATE record SET description = -9223372036854775808 WHERE id = 3",
        "UPDATE record SET note = NULL WHERE id = 3",
        "UPDATE record SET note = x'ff' WHERE id = 3",
        "UPDATE record SET id = 9223372036854775807 WHERE id = 6",
        "UPDATE record SET kind = 'gift' WHERE id = 3",
        "UPDATE record SET kind = 'close' WHERE id = 3",
        "UPDATE record SET who = NULL WHERE id = 3",
        "UPDATE record SET key = x'00' WHERE id = 3",
        "UPDATE record SET hash = NULL WHERE id = 3",
        "UPDATE record SET hash = 'abc' WHERE id = 6",
        "DELETE FROM record WHERE id = 6",
        "DELETE FROM record",
        "UPDATE total SET count = -1",
        "UPDATE total SET count = NULL",
        "UPDATE total SET count = 'three'",
        "UPDATE total SET count = 9223372036854775807 WHERE partition = ''",
        "UPDATE total SET count = count + 1 WHERE partition = ''",
        "UPDATE total SET description = 99 WHERE partition = '' AND description = 1",
        "DELETE FROM total",
        "DELETE FROM sqlite_sequence",
        "UPDATE sqlite_sequence SET seq = 9223372036854775807",
        "UPDATE sqlite_sequence SET seq = 'x'",
    ],
)
def test_bad_rows_are_refused_in_one_sentence(ledger, statement):
    edit_loosely(ledger.path, statement)
    before = ledger.path.read_bytes()
    told(ledger.verify)
    assert ledger.path.read_bytes() == before
    for use in every_use(ledger):  # each of the others is refused too, or not concerned
        with contextlib.suppress(ln.LedgerError):
            use()


def test_an_error_that_is_kept_keeps_no_lock(ledger, monkeypatch):
    """Its traceback holds every frame, and with them whatever was being read."""
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.05)
    whole = ledger.path.read_bytes()
    edit_loosely(ledger.path, "UPDATE record SET description = -1 WHERE id < 4")
    with pytest.raises(ln.LedgerError) as caught:
        ledger.verify()
    kept = caught.value
    ledger.path.write_bytes(whole)
    ledger.spend(GAUSSIAN)
    assert "table total" in str(kept)


def test_records_that_were_deleted_together_with_their_totals_are_missed(ledger):
    edit(ledger.path, "DELETE FROM total WHERE partition = 'south'", "DELETE FROM record WHERE partition = 'south'")
    assert "contradicts itself" in told(ln.Ledger.open, ledger.path)
    edit(ledger.path, "UPDATE sqlite_sequence SET seq = 4")
    assert "lacks records" in told(ln.Ledger.open, ledger.path)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE total",
        "DROP TABLE record",
        "ALTER TABLE record DROP COLUMN note",
        "ALTER TABLE total RENAME TO totals",
        "CREATE TABLE more (x)",
        "CREATE INDEX more ON record (time)",
        "CREATE VIEW more AS SELECT * FROM record",
        "CREATE TRIGGER more BEFORE INSERT ON record BEGIN SELECT RAISE(IGNORE); END",
        "CREATE TRIGGER more AFTER INSERT ON total BEGIN DELETE FROM total; END",
    ],
)
def test_other_tables_triggers_and_views_are_refused_at_once(ledger, statement):
    edit(ledger.path, statement)
    for use in every_use(ledger):
        assert "has other tables, triggers or views than a ledger has" in told(use)


def test_another_journal_mode_is_refused(ledger):
    edit(ledger.path, "PRAGMA journal_mode = WAL")
    assert "another journal_mode" in told(ledger.spend, GAUSSIAN)
    edit(ledger.path, "PRAGMA journal_mode = DELETE")
    ledger.spend(GAUSSIAN)


def test_what_sqlite_does_for_itself_is_no_damage(ledger):
    for statement in ("ANALYZE", "VACUUM", "REINDEX"):
        edit(ledger.path, statement)
        ledger.verify()
    ledger.spend(GAUSSIAN)
    assert ln.Ledger.open(ledger.path).count() == 7


def test_changed_bytes_are_refused_or_do_no_harm(ledger, tmp_path):
    """Whatever is changed: a refusal, or a ledger that works; seeded, so that it is the same each time."""
    whole, rng, refused = ledger.path.read_bytes(), random.Random(14), 0
    used = [place for place, byte in enumerate(whole) if byte]
    for number in range(150):
        bytes_ = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8])):
            bytes_[rng.choice(used)] = rng.randrange(256)
        path = tmp_path / f"{number}.ledger"
        path.write_bytes(bytes_ if number % 5 else bytes_[: rng.randrange(1, len(bytes_))])
        refused += 1
        with contextlib.suppress(ln.LedgerError):
            for use in every_use(ln.Ledger.open(path)):
                use()
            refused -= 1
        path.unlink()
    assert 75 < refused < 150
