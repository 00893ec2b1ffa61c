"""The ledger on the command line."""

from __future__ import annotations

import json

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
    assert "releases   3 over 3 partitions; the worst two count" in run("ledger", "show", "c.ledger").stdout
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
