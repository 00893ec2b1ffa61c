"""The ledger on the command line."""

from __future__ import annotations

import contextlib
import getpass
import json
import sqlite3

import numpy as np
import pytest

import lessnoise as ln

GAUSSIAN = ["analytic-gaussian", "--shape", "3", "--sensitivity", "1", "--epsilon", "0.3", "--delta", "1e-8"]


@pytest.mark.slow
def test_create_spend_show_export(run, tmp_path):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    assert "exists already" in run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6", code=2).output
    receipt = json.loads(run("ledger", "spend", "c.ledger", *GAUSSIAN, "--note", "first", "--json").stdout)
    assert receipt["record"] == 1
    run("ledger", "spend", "c.ledger", *GAUSSIAN, "--rate", "0.1", "--count", "5", "--partition", "north")
    shown = json.loads(run("ledger", "show", "c.ledger", "--json").stdout)
    mechanism = ln.analytic_gaussian(epsilon=0.3, delta=1e-8, sensitivity=1, shape=3)
    expected = ln.compose(mechanism, mechanism.subsample(0.1).repeat(5)).epsilon(1e-6)
    assert shown["spent_epsilon"] == expected.to_dict()
    assert shown["remaining_epsilon"] == 1.0 - expected.upper
    assert shown["records"] == 2
    assert [moment["records"] for moment in shown["history"]] == [1, 2]
    text = run("ledger", "show", "c.ledger", "--plot", "spending.svg").stdout
    assert "█" in text
    assert "remaining" in text
    assert (tmp_path / "spending.svg").read_bytes().startswith(b"<?xml")
    run("ledger", "show", "c.ledger", "--plot", "spending.png")
    assert (tmp_path / "spending.png").read_bytes().startswith(b"\x89PNG")
    assert "exists already" in run("ledger", "show", "c.ledger", "--plot", "spending.png", code=2).output
    assert "no known ending" in run("ledger", "show", "c.ledger", "--plot", "spending.doc", code=2).output
    exported = json.loads(run("ledger", "export", "c.ledger").stdout)
    assert [record["note"] for record in exported["records"]] == ["first", ""]
    assert ln.Composition.from_dict(exported["records"][0]["release"]) == ln.compose(mechanism)
    run("ledger", "export", "c.ledger", "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == exported


@pytest.mark.slow
def test_release_pays_from_the_ledger(run, tmp_path):
    np.save(tmp_path / "in.npy", np.zeros(3))
    run("ledger", "create", "c.ledger", "--epsilon", "0.5", "--delta", "1e-6")
    release = ["release", "in.npy", "out.npy", "--sensitivity", "1", "--epsilon", "0.4", "--delta", "1e-7", "--force"]
    assert "record 1" in run(*release, "--ledger", "c.ledger").stdout
    written = (tmp_path / "out.npy").read_bytes()
    failed = run(*release, "--ledger", "c.ledger", code=2)
    assert "is left of (0.5, 1e-06)-DP" in failed.output
    assert (tmp_path / "out.npy").read_bytes() == written
    assert ln.Ledger.open(tmp_path / "c.ledger").count() == 1
    assert "do not go together" in run(*release, "--ledger", "c.ledger", "--seed", "1", code=2).output
    assert "does not exist" in run(*release, "--ledger", "none.ledger", code=2).output
    assert not (tmp_path / "none.ledger").exists()


def test_under_replace_the_worst_two_partitions_count(run):
    run("ledger", "create", "c.ledger", "--epsilon", "3", "--delta", "1e-6", "--neighbours", "replace")
    release = ["laplace", "--shape", "3", "--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-8"]
    for region in ("north", "south", "east"):
        run("ledger", "spend", "c.ledger", *release, "--partition", region)
    assert (
        "releases   3 over 3 partitions; the most expensive two partitions count"
        in run("ledger", "show", "c.ledger").stdout
    )
    shown = json.loads(run("ledger", "show", "c.ledger", "--json").stdout)
    mechanism = ln.laplace(epsilon=0.5, sensitivity=1, shape=3, neighbours="replace")
    assert shown["spent_epsilon"] == mechanism.repeat(2).epsilon(1e-6).to_dict()
    assert shown["history"][-1]["epsilon"] == shown["spent_epsilon"]["upper"]


def test_no_force_writes_over_the_ledger_itself(run, tmp_path):
    run("ledger", "create", "c.png", "--epsilon", "1", "--delta", "1e-6")
    (tmp_path / "link.png").symlink_to("c.png")
    whole = (tmp_path / "c.png").read_bytes()
    exports = [["export", "c.png", target] for target in ("c.png", "c.png-journal", "link.png")]
    for arguments in (*exports, ["show", "c.png", "--plot", "c.png"]):
        assert "is a file of the ledger itself" in run("ledger", *arguments, "--force", code=2).output
    assert (tmp_path / "c.png").read_bytes() == whole
    assert not (tmp_path / "c.png-journal").exists()


def test_an_empty_file_is_not_made_a_ledger(run, tmp_path):
    (tmp_path / "c.ledger").touch()
    assert "exists already" in run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6", code=2).output
    assert "is empty" in run("ledger", "show", "c.ledger", code=2).output
    assert (tmp_path / "c.ledger").stat().st_size == 0


def test_a_receipt_is_printed_even_if_what_is_left_cannot_be_told(run, monkeypatch):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")

    def fails(_):
        raise ln.LedgerError("the disk has gone.")

    monkeypatch.setattr(ln.Ledger, "remaining", fails)
    assert "recorded as number 1" in run("ledger", "spend", "c.ledger", *GAUSSIAN).stdout
    assert json.loads(run("ledger", "spend", "c.ledger", *GAUSSIAN, "--json").stdout)["record"] == 2


def test_verify_and_marks(run, tmp_path):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    receipt = json.loads(run("ledger", "spend", "c.ledger", *GAUSSIAN, "--key", "day 1", "--json").stdout)
    assert "was recorded before" in run("ledger", "spend", "c.ledger", *GAUSSIAN, "--key", "day 1").stdout
    checked = json.loads(run("ledger", "verify", "c.ledger", "--mark", receipt["mark"], "--json").stdout)
    assert (checked["records"], checked["mark"]) == (1, receipt["mark"])
    assert "mark='7' is not a mark" in run("ledger", "verify", "c.ledger", "--mark", "7", code=2).output
    with contextlib.closing(sqlite3.connect(tmp_path / "c.ledger", isolation_level=None)) as connection:
        connection.execute("UPDATE record SET note = 'edited'")
    assert "was changed, the budget or record 1" in run("ledger", "verify", "c.ledger", code=2).output


def test_show_names_mechanism_note_who_and_when(run):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6", "--adaptive")
    run("ledger", "spend", "c.ledger", *GAUSSIAN, "--note", "[bold]survey[/bold]")
    text = run("ledger", "show", "c.ledger").stdout
    for words in ("analytic-gaussian", "[bold]survey[/bold]", getpass.getuser(), "Smith and Thakurta"):
        assert words in text
    shown = json.loads(run("ledger", "show", "c.ledger", "--json", "--latest", "1").stdout)
    assert shown["adaptive"]
    assert [record["mechanism"] for record in shown["latest"]] == ["analytic-gaussian"]
    refused = run("ledger", "spend", "c.ledger", "laplace", *GAUSSIAN[1:], code=2)
    assert "is not plain Gaussian noise" in refused.output


def test_export_and_import(run, tmp_path):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    run("ledger", "spend", "c.ledger", *GAUSSIAN)
    run("ledger", "export", "c.ledger", "open.json")
    assert "was not closed" in run("ledger", "import", "open.json", "d.ledger", code=2).output
    run("ledger", "export", "c.ledger", "closed.json", "--close")
    assert "takes no more spends" in run("ledger", "spend", "c.ledger", *GAUSSIAN, code=2).output
    assert "with 3 records" in run("ledger", "import", "closed.json", "d.ledger").stdout
    run("ledger", "spend", "d.ledger", *GAUSSIAN)
    assert "exists already" in run("ledger", "import", "closed.json", "d.ledger", code=2).output
    (tmp_path / "bad.json").write_text("[]")
    assert "records" in run("ledger", "import", "bad.json", "e.ledger", code=2).output
    assert not (tmp_path / "e.ledger").exists()


def test_addresses_of_servers(run):
    address = "postgresql://ada:secret@/city?host=/nowhere&ledger=north"
    script = run("ledger", "roles", address, "--spend", "bob", "--read", "eve").stdout
    assert 'GRANT lessnoise_spend TO "bob";' in script
    document = run("ledger", "roles", address, "--spend", "bob", "--read", "eve", "--json").stdout
    assert json.loads(document)["sql"] == script
    assert "secret" not in script + document
    assert "is a file, and files have no roles" in run("ledger", "roles", "c.ledger", code=2).output
    for command in (["show"], ["verify"], ["export"], ["migrate"], ["serve"], ["spend"]):
        more = GAUSSIAN if command == ["spend"] else []
        refused = run("ledger", *command, address, *more, code=2).output
        assert "postgresql://ada@%2Fnowhere/city?ledger=north cannot be reached" in refused
        assert "secret" not in refused
