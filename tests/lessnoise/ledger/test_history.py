"""The history of a ledger: an edited past is noticed, old files are migrated, no release is paid twice."""

from __future__ import annotations

import getpass
import shutil
import sqlite3
import time

import pytest

import lessnoise as ln
from lessnoise.ledger import chain, file_tables

GAUSSIAN = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
LAPLACE = ln.laplace(epsilon=0.25, sensitivity=1, shape=3)


@pytest.fixture
def ledger(tmp_path):
    made = ln.Ledger.open(tmp_path / "a.ledger", epsilon=20, delta=1e-6)
    for number in range(6):
        made.spend((GAUSSIAN, LAPLACE)[number % 2], partition=(None, "north")[number % 2], note=f"{number}")
    return made


def edit(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_each_record_builds_on_the_one_before(ledger):
    """By the definition, from the columns of the file."""
    connection = sqlite3.connect(ledger.path)
    epsilon, delta, neighbours, created, adaptive = connection.execute(
        "SELECT epsilon, delta, neighbours, created, adaptive FROM budget"
    ).fetchone()
    previous = chain.genesis(ln.Guarantee(epsilon, delta, ln.Neighbours.of(neighbours)), bool(adaptive), created)
    digests = dict(connection.execute("SELECT id, digest FROM description"))
    for row in connection.execute("SELECT * FROM record ORDER BY id"):
        record = chain.RecordRow(*row)
        assert record.hash == chain.linked(previous, record, digests[record.description])
        previous = record.hash
    connection.close()
    assert ledger.mark() == f"6:{previous.hex()}"
    assert ledger.records()[-1].hash == previous.hex()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE record SET note = 'never mind' WHERE id = 3",
        "UPDATE record SET who = 'somebody else' WHERE id = 3",
        "UPDATE record SET time = time - 1 WHERE id = 3",
        "UPDATE record SET key = 'k' WHERE id = 3",
        "UPDATE record SET hash = zeroblob(32) WHERE id = 3",
        "UPDATE budget SET epsilon = 21",
        "UPDATE budget SET adaptive = 1",
        "UPDATE record SET hash = (SELECT hash FROM record WHERE id = 5) WHERE id = 6",
    ],
)
def test_a_tampered_row_is_found(ledger, statement):
    edit(ledger.path, statement)
    with pytest.raises(ln.LedgerError, match=r"was changed|was replaced"):
        ln.Ledger.open(ledger.path).verify()


def test_a_past_with_all_hashes_computed_anew_is_found_by_a_mark(ledger):
    receipt = ledger.spend(GAUSSIAN)
    kept, last = receipt.mark, ledger.mark()
    assert kept == last
    ledger.verify(kept, last)
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    connection.execute("UPDATE record SET note = 'rewritten' WHERE id = 2")
    tables = file_tables.FileTables(connection, "ledger=forged")
    previous, digests = tables.genesis(), tables.digests()
    for row in list(tables.records()):
        previous = chain.linked(previous, row, digests[row.description])
        connection.execute("UPDATE record SET hash = ? WHERE id = ?", (previous, row.id))
    connection.close()
    ln.Ledger.open(ledger.path).verify()
    with pytest.raises(ln.LedgerError, match="record 7 is not the one of which the mark was given"):
        ledger.verify(kept)
    for mark in ("7", "x:y", 7, "0:" + 64 * "0", kept.upper()):
        with pytest.raises(ln.InvalidInput, match="mark="):
            ledger.verify(mark)
    with pytest.raises(ln.LedgerError, match="record 99"):
        ledger.verify("99:" + 64 * "0")


def test_who_and_when(ledger):
    record = ledger.records()[0]
    assert record.who.startswith(getpass.getuser())
    assert abs(record.time - time.time()) < 600
    assert record.mechanisms == "analytic-gaussian"


def test_a_clock_that_is_moved_back_does_not_matter(ledger, monkeypatch):
    before = ledger.records()[-1].time
    monkeypatch.setattr(file_tables.time, "time", lambda: 1.0e9)
    assert ledger.spend(GAUSSIAN).time == before
    monkeypatch.setattr(file_tables.time, "time", lambda: before + 5.0)
    assert ledger.spend(GAUSSIAN).time == before + 5.0
    monkeypatch.setattr(file_tables.time, "time", lambda: float("nan"))
    with pytest.raises(ln.LedgerError, match="set the clock; nothing was spent"):
        ledger.spend(GAUSSIAN)
    ledger.verify()
    assert ledger.count() == 8


# Keys.


def test_a_key_pays_once(ledger):
    first = ledger.spend(GAUSSIAN, key="daily-1")
    again = ledger.spend(GAUSSIAN, key="daily-1")
    assert (again.id, again.hash, again.again, first.again) == (first.id, first.hash, True, False)
    assert ledger.count() == 7
    for release, partition in ((LAPLACE, None), (GAUSSIAN, "north")):
        with pytest.raises(ln.InvalidInput, match="key='daily-1' is that of record 7"):
            ledger.spend(release, partition=partition, key="daily-1")
    for key in ("", "x" * 201, 3, "\ud800"):
        with pytest.raises(ln.InvalidInput, match="key="):
            ledger.spend(GAUSSIAN, key=key)
    assert ledger.count() == 7


def test_a_key_that_was_paid_needs_no_budget(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "small", epsilon=0.3, delta=0)
    ledger.spend(LAPLACE, key="a")
    assert ledger.spend(LAPLACE, key="a").again
    with pytest.raises(ln.BudgetExceeded):
        ledger.spend(LAPLACE, key="b")


# Closing.


def test_a_closed_ledger_takes_no_more(ledger):
    spent = ledger.spent()
    assert ledger.close("moved to the server").id == 7
    assert ledger.close("again").again
    for call in (lambda: ledger.spend(GAUSSIAN), lambda: ledger.affords(GAUSSIAN)):
        with pytest.raises(ln.LedgerError, match=r"was closed \(moved to the server\) and takes no more spends"):
            call()
    assert (ledger.count(), len(ledger.records()), ledger.spent()) == (6, 6, spent)
    ledger.verify()
    edit(ledger.path, "DELETE FROM record WHERE id = 7", "UPDATE sqlite_sequence SET seq = 6")
    with pytest.raises(ln.LedgerError, match="record 7"):
        ledger.verify("7:" + 64 * "a")


# Old files.

VERSION_1 = """
CREATE TABLE budget (only INTEGER PRIMARY KEY CHECK (only = 1), epsilon REAL NOT NULL, delta REAL NOT NULL,
    neighbours TEXT NOT NULL, created REAL NOT NULL, lessnoise TEXT NOT NULL) STRICT;
CREATE TABLE description (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, json TEXT NOT NULL) STRICT;
CREATE TABLE spend (id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, partition TEXT NOT NULL,
    description INTEGER NOT NULL REFERENCES description (id), note TEXT NOT NULL) STRICT;
CREATE TABLE total (partition TEXT NOT NULL, description INTEGER NOT NULL REFERENCES description (id),
    count INTEGER NOT NULL, PRIMARY KEY (partition, description)) STRICT, WITHOUT ROWID;
"""


@pytest.fixture
def old(ledger, tmp_path):
    """A file as the version before wrote it, with the same records."""
    connection = sqlite3.connect(tmp_path / "old.ledger", isolation_level=None)
    for statement in VERSION_1.split(";"):  # as it was written: sqlite keeps the text of each statement
        connection.execute(statement)
    connection.execute("ATTACH ? AS new", (str(ledger.path),))
    connection.execute("INSERT INTO budget SELECT only, epsilon, delta, neighbours, created, lessnoise FROM new.budget")
    connection.execute("INSERT INTO description SELECT * FROM new.description")
    connection.execute("INSERT INTO spend SELECT id, time, partition, description, note FROM new.record")
    connection.execute("INSERT INTO total SELECT * FROM new.total")
    connection.execute("PRAGMA application_id = 0x4C4E4C47")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    return tmp_path / "old.ledger"


def test_a_file_of_the_version_before_is_migrated(ledger, old):
    migrated = ln.Ledger.open(old)
    migrated.verify()
    assert (migrated.spent(), migrated.budget, migrated.adaptive) == (ledger.spent(), ledger.budget, False)
    for mine, theirs in zip(migrated.records(), ledger.records(), strict=True):
        assert (mine.id, mine.time, mine.composition, mine.partition, mine.note, mine.who) == (
            *(theirs.id, theirs.time, theirs.composition, theirs.partition, theirs.note),
            "",
        )
    assert migrated.spend(GAUSSIAN).id == 7
    assert ln.Ledger.open(old).count() == 7


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE total SET count = count + 1", "contradicts itself"),
        ("DELETE FROM spend WHERE id = 6", "lacks records"),
        ("UPDATE description SET json = '{}'", "was changed, description 1"),
        ("CREATE TABLE more (x)", "has other tables"),
        ("PRAGMA user_version = 3", "has version 3, and this lessnoise knows 2"),
        ("PRAGMA user_version = 2", "has other tables"),
    ],
)
def test_an_old_file_that_is_damaged_is_left_as_it_is(old, statement, words):
    edit(old, statement)
    before = old.read_bytes()
    with pytest.raises(ln.LedgerError, match=words):
        ln.Ledger.open(old)
    assert old.read_bytes() == before


def test_a_migration_that_is_interrupted_changes_nothing(old, monkeypatch):
    before = old.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(file_tables.chain, "linked", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ln.Ledger.open(old)
    assert old.read_bytes() == before
    copy = old.with_name("copy.ledger")
    shutil.copy(old, copy)
    ln.Ledger.open(copy).verify()


# Noise that is chosen by earlier answers.


def test_an_adaptive_ledger_takes_what_is_proved(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "g.ledger", epsilon=1, delta=1e-6, adaptive=True)
    ledger.spend(GAUSSIAN)
    ledger.spend(ln.compose(GAUSSIAN, ln.analytic_gaussian(epsilon=0.1, delta=1e-8, sensitivity=1, shape=2)))
    l2 = ln.l2_mechanism(epsilon=0.1, delta=1e-8, sensitivity=1, shape=3)
    for refused in (LAPLACE, l2, GAUSSIAN.subsample(0.1), ln.compose(GAUSSIAN, LAPLACE)):
        with pytest.raises(ln.InvalidInput, match="is not plain Gaussian noise"):
            ledger.spend(refused)
        with pytest.raises(ln.InvalidInput, match="is not plain Gaussian noise"):
            ledger.affords(refused)
    assert ledger.count() == 2
    assert "Smith and Thakurta" in ledger.promise()
    assert ln.Ledger.open(ledger.path).adaptive
    with pytest.raises(ln.InvalidInput, match="adaptive=False differs from True"):
        ln.Ledger.open(ledger.path, adaptive=False)
    with pytest.raises(ln.InvalidInput, match="adaptive=1 is neither"):
        ln.Ledger.open(ledger.path, adaptive=1)


def test_an_adaptive_pure_ledger_adds_epsilons(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "p.ledger", epsilon=0.6, delta=0, adaptive=True)
    ledger.spend(LAPLACE)
    ledger.spend(LAPLACE)
    for refused in (LAPLACE, GAUSSIAN):
        with pytest.raises(ln.BudgetExceeded):
            ledger.spend(refused)
    assert "Rogers" in ledger.promise()
    assert "fixed before the first answer" in ln.Ledger.open(tmp_path / "f", epsilon=1, delta=0).promise()
