"""Plans on the command line: what is printed is what the library computes, and what is wrong changes nothing."""

from __future__ import annotations

import json

import numpy as np

import lessnoise as ln

ASKED = ["--shape", "3", "--sensitivity", "1", "--epsilon", "1", "--delta", "1e-6"]


def test_a_plan_is_made_written_reserved_and_cancelled(run, tmp_path):
    text = run("plan", *ASKED, "--times", "40", "--out", "year.json").stdout
    plan = ln.ReleasePlan.from_json((tmp_path / "year.json").read_text())
    assert plan == ln.plan_releases(ln.Request(1, 1e-6, 1.0, 3), times=40)
    assert f"{plan.mechanism.standard_deviation:.6g}" in text
    assert "40 releases together" in text
    assert "exists already" in run("plan", *ASKED, "--times", "40", "--out", "year.json", code=2).output
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    assert "40 releases are reserved as m" in run("ledger", "reserve", "c.ledger", "year.json", "--name", "m").stdout
    assert "m: 40 releases reserved, 0 used" in run("ledger", "show", "c.ledger").stdout
    assert "would add epsilon" in run("ledger", "reserve", "c.ledger", "year.json", "--name", "n", code=2).output
    exported = json.loads(run("ledger", "export", "c.ledger").stdout)
    assert [(one["kind"], one["note"], one["release"]["parts"][0]["count"]) for one in exported["records"]] == [
        ("reserve", "m", 40)
    ]
    shown = json.loads(run("ledger", "show", "c.ledger", "--json").stdout)
    assert [(one["name"], one["items"][0]["times"]) for one in shown["plans"]] == [("m", 40)]
    assert json.loads(run("ledger", "cancel", "c.ledger", "m", "--json").stdout)["freed"] == 40
    assert "cancelled already" in run("ledger", "cancel", "c.ledger", "m", code=2).output


def test_nothing_that_is_said_is_ignored(run, tmp_path):
    (tmp_path / "s.json").write_text('{"items": [{"times": 2, "shape": 1, "changes": "counts", "tmes": 3}]}')
    schedule, often = ["--schedule", "s.json", "--within", "1,1e-6"], ["--how-often", "--within", "1,1e-6"]
    for words, options in {
        "within=0.5,1e-7 is not used here": [*ASKED, "--times", "12", "--within", "0.5,1e-7"],
        "optimality=True is not used here": [*ASKED, "--times", "12", "--optimality"],
        "times=12 is not used here": [*ASKED, *often, "--times", "12"],
        "out=x.json is not used here": [*ASKED, *often, "--out", "x.json"],
        "mechanism=laplace is not used here": [*schedule, "--mechanism", "laplace"],
        "how_often=True is not used here": [*schedule, "--how-often"],
        "within=None: pass --within": [*ASKED, "--how-often"],
        "item of the schedule has 'tmes', which it does not know: pass only bound, changes": schedule,
    }.items():
        assert words in run("plan", *options, code=2).output
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    spend = ["analytic-gaussian", *ASKED, "--count", "0"]
    assert "count=0 must be at least 1" in run("ledger", "spend", "c.ledger", *spend, code=2).output


def test_the_noise_of_a_plan_need_not_be_stated(run, tmp_path):
    asked = ["--shape", "3", "--changes", "counts", *ASKED[4:]]
    run("plan", *asked, "--times", "3", "--out", "year.json")
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    run("ledger", "reserve", "c.ledger", "year.json", "--name", "m")
    np.save(tmp_path / "a.npy", np.arange(3))
    np.save(tmp_path / "long.npy", np.arange(4))
    paid = ["--ledger", "c.ledger", "--plan", "m"]
    run("release", "a.npy", "b.npy", *paid)
    certificate = json.loads((tmp_path / "b.npy.certificate.json").read_text())
    plan = ln.ReleasePlan.from_json((tmp_path / "year.json").read_text())
    assert certificate["mechanism"] == plan.mechanism.to_dict()
    run("ledger", "spend", "c.ledger", "--plan", "m", "--count", "2")
    assert (
        "plan='m' of ledger=c.ledger has 0 such releases left" in run("release", "a.npy", "d.npy", *paid, code=2).output
    )
    assert "has no kinds of noise for shape=(4,)" in run("release", "long.npy", "d.npy", *paid, code=2).output
    assert "epsilon=None: pass --epsilon" in run("release", "a.npy", "d.npy", "--ledger", "c.ledger", code=2).output
    assert "delta=None" in run("release", "a.npy", "d.npy", "--epsilon", "1", "--sensitivity", "1", code=2).output
    for half in (["laplace", "--plan", "m"], ["--shape", "3", "--plan", "m"], []):
        assert "pass a mechanism with --shape" in run("ledger", "spend", "c.ledger", *half, code=2).output
    assert not (tmp_path / "d.npy").exists()


def test_releases_from_a_plan(run, tmp_path):
    gaussian = ["--mechanism", "analytic-gaussian"]
    run("plan", *ASKED, "--times", "12", *gaussian, "--out", "year.json")
    plan = ln.ReleasePlan.from_json((tmp_path / "year.json").read_text())
    run("ledger", "create", "c.ledger", "--epsilon", "1", "--delta", "1e-6")
    first = json.loads(run("ledger", "reserve", "c.ledger", "year.json", "--name", "m", "--key", "k", "--json").stdout)
    assert "reserved before" in run("ledger", "reserve", "c.ledger", "year.json", "--name", "m", "--key", "k").stdout
    np.save(tmp_path / "a.npy", np.zeros(3))
    # The claim that this noise has of its own, and a little less.
    epsilon = plan.mechanism.epsilon(1e-7).upper
    asked = ["--sensitivity", "1", "--delta", "1e-7", "--epsilon"]
    paid = ["--ledger", "c.ledger", "--plan"]
    refused = run("release", "a.npy", "b.npy", *gaussian, *asked, f"{1.01 * epsilon}", *paid, "m", code=2).output
    assert "is not one of plan='m'" in refused
    assert "its plans are 'm'" in run("release", "a.npy", "b.npy", *asked, "0.1", *paid, "n", code=2).output
    assert "pass --ledger" in run("release", "a.npy", "b.npy", *asked, "0.1", "--plan", "m", code=2).output
    assert not (tmp_path / "b.npy").exists()
    run("release", "a.npy", "b.npy", *gaussian, *asked, f"{0.99 * epsilon}", *paid, "m")
    spend = ["ledger", "spend", "c.ledger", "analytic-gaussian", "--shape", "3", *asked, f"{0.99 * epsilon}"]
    assert "would add epsilon" in run(*spend, code=2).output
    run(*spend, "--plan", "m", "--count", "2")
    shown = json.loads(run("ledger", "show", "c.ledger", "--json").stdout)
    assert [one["plan"] for one in shown["latest"]] == ["m", "m"]
    assert shown["plans"][0]["items"][0]["used"] == 3
    assert "5 records fit together" in run("ledger", "verify", "c.ledger", "--mark", first["mark"]).stdout
    run("ledger", "export", "c.ledger", "c.json", "--close")
    run("ledger", "import", "c.json", "d.ledger")
    assert "m: 9 releases reserved, 3 used" in run("ledger", "show", "d.ledger").stdout
    assert "freed 9" in run("ledger", "cancel", "d.ledger", "m").stdout


def test_a_schedule_in_either_format(run, tmp_path):
    item = {"name": "a", "times": 4, "shape": 2, "sensitivity": 1, "mechanism": "analytic-gaussian"}
    (tmp_path / "s.json").write_text(json.dumps({"items": [item]}))
    lines = (f"{name} = {json.dumps(value)}" for name, value in item.items())
    (tmp_path / "s.toml").write_text("[[items]]\n" + "\n".join(lines))
    plans = [json.loads(run("plan", "--schedule", name, "--within", "1,1e-6", "--json").stdout) for name in
             ("s.json", "s.toml")]  # fmt: skip
    assert plans[0] == plans[1]
    assert plans[0]["exact_delta"]["upper"] <= 1e-6
    assert plans[0]["items"][0]["times"] == 4
    for options, words in (
        (["--within", "1"], "within='1'"),
        ([], "within=None"),
        (["--within", "1,1e-6", "--times", "3"], "leave --times"),
    ):
        assert words in run("plan", "--schedule", "s.json", *options, code=2).output
    (tmp_path / "bad.json").write_text("{")
    assert "neither JSON nor TOML" in run("plan", "--schedule", "bad.json", "--within", "1,1e-6", code=2).output


def test_how_often(run):
    asked = ["--shape", "1", "--sensitivity", "1", "--epsilon", "0.1", "--delta", "1e-8"]
    more = ["--mechanism", "analytic-gaussian", "--how-often", "--within", "1,1e-6"]
    found = json.loads(run("plan", *asked, *more, "--json").stdout)
    assert found["times"] == 118
    assert found["one_more_is_proved_not_to_fit"]
    assert "one more does not fit" in run("plan", *asked, *more).stdout


def test_options_of_many_releases_are_refused_for_one(run):
    assert "rate=0.5 is for plans" in run("plan", *ASKED, "--rate", "0.5", code=2).output
    assert "times=0" in run("plan", *ASKED, "--times", "0", code=2).output
    assert "needs --shape" in run("plan", code=2).output
