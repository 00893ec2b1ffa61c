"""The record of claims against independent calculations."""

import json
import math

import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import Request
from lessnoise.claims import CASES, Case, at_setting, evaluate
from lessnoise.claims.record import noise_ratio
from lessnoise.cli import app
from lessnoise.mechanism.families.geometric import probabilities


@pytest.fixture(scope="module")
def findings():
    return evaluate(CASES)


def of(findings, name, epsilon):
    return next(found for found in findings if found.name == name and found.claimed.epsilon == epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon", "delta", "tolerance"),
    [
        # Values from independent calculations: two-dimensional quadrature and Monte Carlo, or closed forms.
        ("r1smg-published", 1e-5, 0.216642, 1e-5),
        ("r1smg-published", 1e-3, 0.211605, 1e-5),
        ("r1smg-published", 1.0, 0.181, 3e-3),
        ("product-noise", 1.0, 0.734, 1e-3),
        ("product-noise", 0.1, 0.205, 1e-3),
        ("classic-gaussian", 10.0, 2.27e-5, 5e-3),
    ],
)
def test_refuted_claims_have_the_known_delta(findings, name, epsilon, delta, tolerance):
    found = of(findings, name, epsilon)
    assert found.verdict.refuted
    assert found.exact.middle == pytest.approx(delta, rel=tolerance)
    assert found.noise_ratio < 1.0


@pytest.mark.slow
def test_everything_else_holds(findings):
    failing = {(found.name, found.claimed.epsilon) for found in findings if not found.verdict.holds}
    assert failing == {
        ("r1smg-published", 1e-5),
        ("r1smg-published", 1.6e-7),
        ("r1smg-published", 0.71),
        ("r1smg-published", 1e-3),
        ("r1smg-published", 1.0),
        ("product-noise", 1.0),
        ("product-noise", 0.1),
        ("classic-gaussian", 10.0),
        ("dawa-dpcomp", 0.75),
        ("dawa-doubled", 1.5),
        ("wishart", 1.0),
        ("wishart", 0.2),
    }


@pytest.mark.slow
def test_integer_noise_has_the_delta_of_its_probabilities(findings):
    pure, least = of(findings, "geometric", 0.5), of(findings, "least-count-noise", 1.0)
    assert (pure.exact.lower, pure.exact.upper) == (0.0, 0.0)
    # Below its epsilon: both entries lose 1/4, each with probability 1/(1 + e^-1/4).
    assert pure.mechanism.delta(0.4).middle == pytest.approx(-math.expm1(-0.1) / (1 + math.exp(-0.25)) ** 2, rel=1e-6)
    law = least.mechanism.law
    masses = probabilities(law, law.reach + 2)
    both = [*masses[:0:-1], *masses, 0.0]
    moved = [0.0, *masses[:0:-1], *masses]
    delta = sum(max(p - math.e * q, 0.0) for p, q in zip(both, moved, strict=True))
    assert least.exact.middle == pytest.approx(delta, rel=1e-6)
    assert least.claimed.delta == 1e-5
    assert (pure.noise_ratio, least.noise_ratio) == (None, None)


@pytest.mark.slow
def test_the_noise_ratio_is_the_ratio_of_scales(findings):
    # Analytic sigma at (0.5, 1e-5) and (1, 1e-5); classic and Zhao sigmas by their formulas.
    exact = {
        e: ln.analytic_gaussian(epsilon=e, delta=1e-5, sensitivity=1, shape=1).standard_deviation for e in (0.5, 1)
    }
    classic = math.sqrt(2 * math.log(1.25e5)) / 0.5
    assert of(findings, "classic-gaussian", 0.5).noise_ratio == pytest.approx(classic / exact[0.5], rel=1e-4)
    assert of(findings, "zhao-gaussian-1", 1.0).noise_ratio == pytest.approx(4.37907 / exact[1], rel=1e-4)
    assert of(findings, "mvg-published", 1.0).noise_ratio == pytest.approx(551.46 / exact[1], rel=1e-4)


@pytest.mark.slow
def test_the_noise_ratio_of_published_r1smg_is_that_of_the_exact_calibration():
    target = {"epsilon": 1e-3, "delta": 1e-5, "sensitivity": 2.0, "shape": 50}
    published = ln.r1smg(**target, calibration="published")
    exact = ln.r1smg(**target, calibration="exact")
    ratio = math.sqrt(published.expected_loss / exact.expected_loss)
    assert noise_ratio(published) == pytest.approx(ratio, rel=2e-4)


def test_a_pure_claim_and_integer_noise_have_no_ratio():
    assert noise_ratio(ln.laplace(epsilon=1, sensitivity=1, shape=3)) is None
    assert noise_ratio(ln.discrete_gaussian(epsilon=1, delta=1e-5, sensitivity=1, shape=3)) is None


@pytest.mark.slow
def test_findings_describe_themselves(findings):
    for found in findings:
        values = json.loads(json.dumps(found.to_dict()))
        mechanism = ln.Mechanism.from_dict(values["description"])
        exact = mechanism.delta(values["claimed"]["epsilon"])
        assert exact.lower <= values["exact"]["upper"]
        assert values["exact"]["lower"] <= exact.upper


def test_a_case_may_bring_its_own_truth():
    claim = ln.Claim(1.0, 0.0, source="somebody")

    def find(name, setting, remark):
        from lessnoise.claims import Finding

        return Finding(name, setting, claim, ln.Bracket(0.28, 1.0), remark=remark)

    found = Case("wishart", "any d", find).evaluate()
    assert found.verdict.refuted
    assert found.to_dict()["description"] is None


@pytest.mark.slow
def test_claims_at_a_setting_of_the_users():
    found = {finding.name: finding for finding in at_setting(Request(1.0, 1e-6, 1.0, (100,)))}
    assert found["r1smg-published"].verdict.refuted
    assert found["analytic-gaussian"].verdict.holds
    assert "mvg" not in found  # a vector has no matrix mechanism


@pytest.mark.slow
def test_claims_against_a_set_of_changes():
    moved = ln.changes.counts(neighbours="replace")
    found = {finding.name: finding for finding in at_setting(Request(0.3, 1e-6, None, (50,), "replace", changes=moved))}
    assert {found[name].setting for name in found} == {"M=50, at most 1 row, replace"}
    assert all(found[name].verdict.holds for name in ("least-noise", "geometric", "laplace", "analytic-gaussian"))
    assert found["r1smg-published"].verdict.refuted
    assert "least-count-noise" not in found  # two counts change
    one = {finding.name for finding in at_setting(Request(0.3, 1e-6, None, (50,), changes=ln.changes.counts()))}
    assert {"least-count-noise", "geometric", "laplace"} <= one
    length = {finding.name for finding in at_setting(Request(0.3, 1e-6, 1.0, (50,)))}
    assert not {"least-count-noise", "geometric"} & length


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "integers"), [("add/remove", ["least-count-noise", "geometric"]), ("replace", ["geometric"])]
)
def test_plans_and_checks_of_counts_have_the_integer_laws(relation, integers):
    setting = ["--shape", "50", "--changes", "counts", "--neighbours", relation, "--epsilon", "1", "--delta", "1e-6"]
    runner = CliRunner()
    plan = json.loads(runner.invoke(app, ["plan", *setting, "--json"]).stdout)
    rows = {row["name"]: row for row in plan["mechanisms"]}
    kept = [row["expected_loss"] for row in plan["mechanisms"] if row["holds"]]
    assert plan["mechanisms"][0]["name"] == "least-noise"
    assert kept[0] == min(kept)
    assert [name for name in ("least-count-noise", "geometric") if name in rows] == integers
    for name in (*integers, "laplace", "least-noise"):
        assert rows[name]["holds"], name
        assert runner.invoke(app, ["check", name, *setting, "--json"]).exit_code == 0
    words = runner.invoke(app, ["check", "geometric", *setting]).stdout
    assert f"geometric, shape 50, changes: at most 1 row, {relation}" in words


@pytest.mark.slow
def test_the_command():
    runner = CliRunner()
    record = json.loads(runner.invoke(app, ["claims", "--json"]).stdout)
    assert len(record) == len(CASES)
    table = runner.invoke(app, ["claims"]).stdout
    assert "fails" in table
    half = runner.invoke(app, ["claims", "--shape", "100"])
    assert half.exit_code == 2
    assert "sensitivity=None" in half.stderr
    assert "shape=None" in runner.invoke(app, ["claims", "--k", "3"]).stderr
    own = runner.invoke(
        app, ["claims", "--shape", "5x5", "--sensitivity", "1", "--epsilon", "1", "--delta", "1e-5", "--json"]
    )
    assert {"mvg", "mgm", "r1smg-published"} <= {row["mechanism"] for row in json.loads(own.stdout)}
