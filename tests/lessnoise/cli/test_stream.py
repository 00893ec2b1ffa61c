"""Streams on the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lessnoise as ln


@pytest.mark.slow
def test_create_push_show(run, tmp_path):
    said = run("stream", "create", "s", "--periods", "30", "--epsilon", "1", "--delta", "1e-6", "--seed", "3").stdout
    assert "created s for 30 periods" in said
    expected = ln.Stream(periods=30, epsilon=1, delta=1e-6, rng=np.random.default_rng(3))
    for period, value in enumerate((120, 95, -3), start=1):
        pushed = json.loads(run("stream", "push", "s", str(value), "--period", str(period), "--json").stdout)
        assert pushed["total"] == expected.push(value)
    again = json.loads(run("stream", "push", "s", "-3", "--period", "3", "--json").stdout)
    assert again == pushed
    assert "another value" in run("stream", "push", "s", "4", "--period", "3", code=2).output
    shown = json.loads(run("stream", "show", "s", "--json").stdout)
    assert shown["totals"] == expected.totals.tolist()
    assert shown["private"] is False
    assert shown["guarantee"] == expected.guarantee.to_dict()
    text = run("stream", "show", "s", "--plot", "s.svg").stdout
    assert "3 of 30" in text
    assert "NOT private" in text
    assert (tmp_path / "s.svg").read_bytes().startswith(b"<?xml")
    assert "exists already" in run("stream", "show", "s", "--plot", "s.svg", code=2).output
    run("stream", "show", "s", "--plot", "s.png")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    assert "no known ending" in run("stream", "show", "s", "--plot", "s.doc", code=2).output


def test_tables_from_files(run, tmp_path):
    table = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "day.npy", table)
    run("stream", "create", "s", "--periods", "5", "--epsilon", "1", "--shape", "2x3", "--changes", "counts:2")
    assert "6 totals" in run("stream", "push", "s", "day.npy", "--out", "total.npy").stdout
    with ln.Stream.open(tmp_path / "s") as stream:
        assert np.array_equal(np.load(tmp_path / "total.npy"), stream.total)
        assert stream.private
        assert stream.plan.changes == ln.changes.counts(2)
    assert "exists already" in run("stream", "push", "s", "day.npy", "--out", "total.npy", code=2).output
    run("stream", "show", "s", "--plot", "s.svg")


@pytest.mark.slow
def test_a_stream_is_paid_for_when_it_is_made(run, tmp_path):
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    create = ["stream", "create", "s", "--periods", "30", "--epsilon", "0.8", "--ledger", "c.ledger"]
    assert "paid for by record 1" in run(*create).stdout
    run("stream", "push", "s", "5")
    assert ln.Ledger.open(tmp_path / "c.ledger").count() == 1
    create[2] = "t"
    assert "is left of" in run(*create, code=2).output
    assert not (tmp_path / "t").exists()
    assert "do not go together" in run(*create, "--seed", "1", code=2).output


@pytest.mark.slow
def test_bad_input_is_one_sentence(run):
    assert "is not a stream" in run("stream", "push", "nowhere", "1", code=2).output
    run("stream", "create", "s", "--periods", "3", "--epsilon", "1")
    assert "exists already" in run("stream", "create", "s", "--periods", "3", "--epsilon", "1", code=2).output
    for value, words in [("x", "not a number"), ("nan", "not finite"), ("1,2", "shape"), ("gone.npy", "gone.npy")]:
        output = run("stream", "push", "s", value, code=2).output
        assert words in output
        assert output.count("\n") == 1
    run("stream", "push", "s", "1")
