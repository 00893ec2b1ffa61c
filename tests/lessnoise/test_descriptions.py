"""Frozen descriptions: round trips, equality, and the meaning of brackets and verdicts."""

import copy
import dataclasses
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.mechanism.law import law_from_dict

EXAMPLES = settings(max_examples=100, deadline=None, derandomize=True)

positive = st.floats(1e-300, 1e300)
laws = st.one_of(
    st.builds(ln.Radial, k=st.floats(1e-9, 1.0), p=st.floats(1e-3, 50.0), scale=positive),
    st.builds(ln.Laplace, scale=positive),
)
relations = st.sampled_from(list(ln.Neighbours))
claims = st.builds(ln.Claim, st.floats(0.0, 1e6), st.floats(0.0, 1.0), relations, st.text(max_size=30))
mechanisms = st.builds(
    ln.Mechanism,
    name=st.text(max_size=20),
    law=laws,
    shape=st.lists(st.integers(1, 1000), max_size=4).map(tuple),
    sensitivity=positive,
    neighbours=relations,
    claim=st.none() | claims,
)


def example(**changes):
    fields = {"name": "test", "law": ln.Radial(3, 2, 4.0), "shape": (2, 3), "sensitivity": 1.5}
    return ln.Mechanism(**{**fields, **changes})


# Round trips.


@EXAMPLES
@given(mechanisms)
def test_a_mechanism_survives_json(mechanism):
    text = mechanism.to_json()
    back = ln.Mechanism.from_json(text)
    assert back == mechanism
    assert hash(back) == hash(mechanism)
    assert back.to_json() == text
    assert "\n" not in text
    assert ln.Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism


@EXAMPLES
@given(laws)
def test_a_law_survives_json(law):
    back = law_from_dict(json.loads(json.dumps(law.to_dict())))
    assert back == law
    assert type(back) is type(law)


@EXAMPLES
@given(claims)
def test_a_claim_and_its_guarantee_survive_json(claim):
    assert ln.Claim.from_dict(json.loads(json.dumps(claim.to_dict()))) == claim
    guarantee = ln.Guarantee(claim.epsilon, claim.delta, claim.neighbours)
    assert ln.Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee


@EXAMPLES
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_bracket_survives_json(first, second):
    bracket = ln.Bracket(min(first, second), max(first, second))
    assert ln.Bracket.from_dict(json.loads(json.dumps(bracket.to_dict()))) == bracket


def test_certificates_survive_json():
    for mechanism in (
        ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(2, 2), neighbours="replace"),
        ln.laplace(epsilon=1, sensitivity=1, shape=(2, 2)),
        example(shape=(2, 2)),
    ):
        for rng in (None, np.random.default_rng(0)):
            certificate = mechanism.release(np.zeros((2, 2)), rng=rng).certificate
            assert ln.Certificate.from_dict(json.loads(certificate.to_json())) == certificate


def test_a_description_of_another_version_is_refused():
    values = example().to_dict()
    for schema in (0, 2, "1", None):
        with pytest.raises(ln.InvalidInput, match="schema="):
            ln.Mechanism.from_dict({**values, "schema": schema})


def test_an_unknown_law_is_refused():
    values = example().to_dict()
    with pytest.raises(ln.InvalidInput, match="noise kind='cauchy'"):
        ln.Mechanism.from_dict({**values, "noise": {"kind": "cauchy", "scale": 1.0}})


def test_a_stored_description_is_validated_again():
    values = example().to_dict()
    for changes in ({"sensitivity": -1.0}, {"shape": [0]}, {"noise": {"kind": "radial", "k": 9, "p": 2, "scale": 1}}):
        with pytest.raises(ln.InvalidInput):
            ln.Mechanism.from_dict({**values, **changes})


def test_pickle_and_copy():
    mechanism = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    certificate = mechanism.release(np.zeros(3)).certificate
    for thing in (mechanism, certificate, mechanism.check(), mechanism.claim, mechanism.law, mechanism.delta(1)):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.deepcopy(thing) == thing


# Frozen, equal, hashable.


@pytest.mark.parametrize(
    ("thing", "field"),
    [
        (ln.Radial(1, 2, 3), "scale"),
        (ln.Laplace(1), "scale"),
        (ln.Guarantee(1, 1e-6), "delta"),
        (ln.Claim(1, 1e-6), "epsilon"),
        (ln.Bracket(0, 1), "upper"),
        (ln.Verdict(True, ln.Guarantee(1, 0.5), ln.Bracket(0.1, 0.2)), "holds"),
        (example(), "sensitivity"),
    ],
)
def test_descriptions_are_frozen(thing, field):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, field, 0.25)


def test_equality_is_by_value_and_ints_are_floats():
    assert ln.Radial(3, 2, 4) == ln.Radial(3.0, 2.0, 4.0)
    assert hash(ln.Radial(3, 2, 4)) == hash(ln.Radial(3.0, 2.0, 4.0))
    assert example(shape=[2, 3], sensitivity=np.float64(1.5)) == example()
    assert example(shape=6) != example()
    assert example(sensitivity=1.6) != example()
    assert example(claim=ln.Claim(1, 0.1)) != example()
    assert len({example(), example(), example(shape=7)}) == 2
    assert ln.Laplace(1) != ln.Radial(1, 1, 1)
    assert ln.Claim(1, 0.1) != ln.Guarantee(1, 0.1)


def test_neighbours_by_name():
    assert ln.Neighbours.of("replace") is ln.Neighbours.REPLACE
    assert ln.Neighbours.of(ln.Neighbours.ADD_REMOVE) is ln.Neighbours.ADD_REMOVE
    with pytest.raises(ln.InvalidInput, match="neighbours='remove'"):
        ln.Neighbours.of("remove")
    assert example(neighbours="replace").guarantee(1).neighbours is ln.Neighbours.REPLACE


# Brackets.


def test_bracket_semantics():
    bracket = ln.Bracket(0.2, 0.3)
    assert 0.2 in bracket
    assert 0.3 in bracket
    assert 0.19 not in bracket
    assert 0.31 not in bracket
    assert math.nan not in bracket
    assert bracket.middle == pytest.approx(0.25)
    assert bracket.relative_width == pytest.approx(1 / 3)
    assert ln.Bracket(0.0, 0.0).relative_width == 0.0
    assert ln.Bracket(math.inf, math.inf).relative_width == 0.0


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan)])
def test_a_bracket_has_its_ends_in_order(lower, upper):
    with pytest.raises(ln.InvalidInput, match="lower="):
        ln.Bracket(lower, upper)


@EXAMPLES
@given(st.floats(1e-300, 1.0), st.floats(1e-300, 1.0))
def test_printed_ends_never_overstate(first, second):
    bracket = ln.Bracket(min(first, second), max(first, second))
    lower, upper = (float(end) for end in str(bracket).strip("[]").split(", "))
    assert lower <= bracket.lower
    assert upper >= bracket.upper
    assert upper == pytest.approx(bracket.upper, rel=1e-5)


@EXAMPLES
@given(st.floats(1e-6, 1e6), st.floats(1e-300, 0.999))
def test_printed_guarantees_never_understate(epsilon, delta):
    shown = str(ln.Guarantee(epsilon, delta)).split("(")[1].split(")")[0]
    shown_epsilon, shown_delta = (float(part) for part in shown.split(", "))
    assert shown_epsilon >= epsilon
    assert shown_delta >= delta


# Verdicts.


@pytest.mark.parametrize(
    ("lower", "upper", "holds", "refuted", "word"),
    [
        (1e-7, 2e-7, True, False, "holds"),
        (1e-7, 1e-6, True, False, "holds"),
        (9e-7, 1.1e-6, False, False, "is not proved"),
        (1e-6, 1.1e-6, False, False, "is not proved"),
        (2e-6, 3e-6, False, True, "FAILS"),
    ],
)
def test_verdicts(lower, upper, holds, refuted, word):
    claimed = ln.Claim(1, 1e-6, source="someone")
    verdict = ln.Verdict(upper <= claimed.delta, claimed, ln.Bracket(lower, upper))
    assert verdict.holds is holds
    assert verdict.refuted is refuted
    assert f" {word}:" in str(verdict)
    assert verdict.to_dict()["holds"] is holds
    assert verdict.to_dict()["refuted"] is refuted
    json.dumps(verdict.to_dict())


def test_a_claim_inside_the_bracket_is_neither_proved_nor_refuted():
    noise = example(law=ln.Radial(3, 1.5, 4.0))
    truth = noise.delta(1)
    undecided = example(law=noise.law, claim=ln.Claim(1, truth.middle)).check()
    assert undecided.exact.lower < truth.middle < undecided.exact.upper
    assert not undecided.holds
    assert not undecided.refuted
    assert example(law=noise.law, claim=ln.Claim(1, truth.upper * 1.001)).check().holds
    assert example(law=noise.law, claim=ln.Claim(1, truth.lower * 0.999)).check().refuted


def test_check_compares_at_the_claimed_epsilon_and_ignores_the_source():
    verdict = example(claim=ln.Claim(0.7, 0.5, source="trust me")).check()
    assert verdict.exact == example().delta(0.7)
    assert verdict.claimed.source == "trust me"


def test_check_without_a_claim_is_refused():
    with pytest.raises(ln.InvalidInput, match="claim=None"):
        example().check()


# Certificates.


def test_a_certificate_states_the_computed_delta_not_the_claimed_one():
    mechanism = ln.l2_mechanism(epsilon=1, delta=1e-5, sensitivity=1, shape=4)
    certificate = mechanism.release(np.zeros(4)).certificate
    assert certificate.claim_holds is True
    assert certificate.guarantee.epsilon == 1.0
    assert certificate.exact.upper < certificate.guarantee.delta <= 1e-5
    assert certificate.guarantee.delta == pytest.approx(certificate.exact.upper + certificate.delta_numeric, rel=1e-15)
    assert certificate.exact == mechanism.check().exact
    assert certificate.mechanism == mechanism
    assert certificate.version == ln.__version__
    assert len(certificate.assumptions) >= 2


def test_a_certificate_without_a_claim_is_at_epsilon_one():
    certificate = example().release(np.zeros((2, 3))).certificate
    assert certificate.claim_holds is None
    assert certificate.exact == example().delta(1)
    assert certificate.guarantee == example().guarantee(1)
    assert certificate.guarantee.epsilon == 1
    assert certificate.guarantee.delta == pytest.approx(certificate.exact.upper, rel=1e-15)


def test_a_certificate_of_a_false_claim_states_the_true_delta():
    mechanism = example(law=ln.Radial(1, 2, 1.0), claim=ln.Claim(0.1, 1e-6, source="wishful"))
    with pytest.warns(ln.ClaimWarning, match="does not hold"):
        certificate = mechanism.release(np.zeros((2, 3))).certificate
    assert certificate.claim_holds is False
    assert certificate.guarantee.delta > 0.5
    assert certificate.to_dict()["guarantee"]["delta"] == pytest.approx(certificate.exact.upper, rel=1e-15)


@pytest.mark.parametrize(
    "change",
    [
        {"guarantee": {"epsilon": 1.0, "delta": 1e-7, "neighbours": "add/remove"}},
        {"guarantee": {"epsilon": 0.5, "delta": 0.1, "neighbours": "add/remove"}},
        {"guarantee": {"epsilon": 1.0, "delta": 0.1, "neighbours": "replace"}},
        {"exact_delta": {"lower": 0.0, "upper": 1e-9}},
        {"exact_delta": {"lower": 0.1, "upper": 0.2}},
        {"delta_numeric": 0.5},
        {"claim_holds": None},
        {"claim_holds": 1},
        {"private": "yes"},
        {"grid": -1.0},
        {"assumptions": []},
        {"schema": True},
    ],
)
def test_a_certificate_that_contradicts_its_mechanism_or_itself_is_refused(change):
    values = ln.l2_mechanism(epsilon=1, delta=1e-5, sensitivity=1, shape=4).release(np.zeros(4)).certificate.to_dict()
    assert ln.Certificate.from_dict({**values, "query": "of a histogram"}).to_dict() == values
    with pytest.raises(ln.InvalidInput):
        ln.Certificate.from_dict({**values, **change})


def test_a_certificate_cannot_turn_a_false_claim_into_a_true_one():
    mechanism = example(law=ln.Radial(1, 2, 1.0), claim=ln.Claim(0.1, 1e-6, source="wishful"))
    with pytest.warns(ln.ClaimWarning, match="does not hold"):
        values = mechanism.release(np.zeros((2, 3))).certificate.to_dict()
    with pytest.raises(ln.InvalidInput, match="claim_holds=True"):
        ln.Certificate.from_dict({**values, "claim_holds": True})
    with pytest.raises(ln.InvalidInput, match="contradicts"):
        ln.Certificate.from_dict({**values, "guarantee": {**values["guarantee"], "delta": 1e-6}})


def test_a_weaker_guarantee_than_the_computed_one_is_still_true():
    values = ln.laplace(epsilon=1, sensitivity=1, shape=4).release(np.zeros(4)).certificate.to_dict()
    weaker = {**values, "guarantee": {**values["guarantee"], "delta": 0.25}}
    assert ln.Certificate.from_dict(weaker).guarantee.delta == 0.25


def test_a_claim_for_other_neighbours_is_not_compared():
    with pytest.raises(ln.InvalidInput, match=r"claim\.neighbours='replace'"):
        example(claim=ln.Claim(1, 0.5, "replace")).check()
    with pytest.raises(ln.InvalidInput, match=r"claim\.neighbours='replace'"):
        example(claim=ln.Claim(1, 0.5, "replace")).release(np.zeros((2, 3)))


@pytest.mark.parametrize(
    "text",
    [
        '{"schema": 1, "schema": 1}', "[" * 10**5, '{"a":' * 10**5, "null", "[]", "1", "", "{", "\x00", b"\xff", None,
        7, '{"schema": 1' + "0" * 5000 + "}", '{"schema": NaN}',
    ],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_a_text_that_is_no_description_is_refused(text):
    for read in (ln.Mechanism.from_json, ln.Composition.from_json):
        with pytest.raises(ln.InvalidInput) as caught:
            read(text)
        assert len(str(caught.value)) < 300


def test_guarantee_of_a_mechanism_is_the_safe_end():
    noise = example(law=ln.Radial(2, 1.5, 3.0))
    exact, added = noise.delta(0.4).upper, noise.delta_numeric(0.4)
    assert Fraction(exact) + Fraction(added) <= Fraction(noise.guarantee(0.4).delta) <= exact * (1.0 + 1e-15) + added


def test_what_the_machine_adds_is_in_every_guarantee():
    """At epsilon = 60 it is all that there is: (1 + e^60) (2 M + 2048)^2 2^-129."""
    m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=1000)
    added = (1.0 + math.exp(60.0)) * 4048.0**2 * 2.0**-129
    assert m.delta(60).upper < 1e-300
    assert m.guarantee(60).delta == pytest.approx(added, rel=1e-9)
    assert m.repeat(3).guarantee(60).delta == pytest.approx(3.0 * added, rel=1e-9)
    assert m.guarantee(800).delta == 1.0


def test_no_privacy_at_all_is_a_guarantee_too():
    assert ln.Guarantee(1, 1).delta == 1.0
    with pytest.raises(ln.InvalidInput, match=r"delta=1\.5"):
        ln.Guarantee(1, 1.5)
