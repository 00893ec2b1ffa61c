"""Lower bounds on the noise: what the tests in a file prove, and that they never prove more than is true."""

from __future__ import annotations

import copy
import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

import lessnoise as ln
from lessnoise.mechanism.least.bound.document import bound_document
from lessnoise.mechanism.least.bound.line import _RearrangedMarch
from lessnoise.mechanism.least.bound.scalar import scalar_bound, scalar_steps
from lessnoise.mechanism.least.objective import Goal, Problem
from lessnoise_verify.balls import ends
from lessnoise_verify.bounds import _mean_length
from lessnoise_verify.caps import _Tests
from lessnoise_verify.document import Fields
from lessnoise_verify.verdict import Verdict, verify


def checked(document: dict[str, Any]) -> Verdict:
    return verify(json.dumps(document).encode())


def changed(document: dict[str, Any], factor: float = 1.0, **fields: object) -> dict[str, Any]:
    return {**copy.deepcopy(document), "value": document["value"] * factor, **fields}


def scalar(epsilon: float, delta: float, value: float, steps: int, **fields: object) -> dict[str, Any]:
    stated = {"dimension": 1, "epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "order": 2, "value": value}
    how = {"against": "ball", "method": "scalar", "fewer": 1, "times": 1, "proof": {"steps": steps}}
    return {"schema": 2, "kind": "lower-bound", **stated, **how, **fields}


# One number, shifts by 1


def test_pure_privacy_has_the_geometric_law_as_its_least() -> None:
    least = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2  # E K^2
    assert checked(scalar(1.0, 0.0, least * (1 - 1e-12), 60)).word == "proved"
    assert checked(scalar(1.0, 0.0, least * (1 + 1e-12), 60)).word == "not covered"


def test_the_scalar_bound_is_that_of_the_library() -> None:
    rng = random.Random(5)
    for _ in range(20):
        epsilon, delta = 10 ** rng.uniform(-4, 1.5), 10 ** rng.uniform(-300, -0.7)
        value, steps = scalar_bound(epsilon, delta), scalar_steps(epsilon, delta)
        if value > 0.0:
            assert checked(scalar(epsilon, delta, value * (1 - 1e-13), steps)).word == "proved"
            assert checked(scalar(epsilon, delta, value * (1 + 1e-12), steps)).word != "proved"


@pytest.mark.parametrize(("epsilon", "delta", "steps"), [(1.0, 1e-3, 6), (0.5, 0.02, 5), (2.0, 0.1, 1)])
def test_the_scalar_bound_follows_from_its_theorem(epsilon: float, delta: float, steps: int) -> None:
    k = np.arange(-400, 401)
    weights = np.exp(-epsilon * np.abs(k))
    weights /= weights.sum()
    best = 0.0
    for end in np.linspace(steps, steps + 0.5, 101):  # T
        least = min((weights * np.minimum((x + k) ** 2, end**2)).sum() for x in np.linspace(-0.5, 0.5, 201))
        best = max(best, least - 2 * delta * (end**2 - least) / math.expm1(epsilon))
    assert checked(scalar(epsilon, delta, best * (1 - 0.02), steps)).word == "proved"
    assert checked(scalar(epsilon, delta, best * (1 + 1e-6), steps)).word != "proved"


def test_rules_for_more_entries_and_other_sensitivities() -> None:
    value, steps = scalar_bound(1.0, 1e-6) * (1 - 1e-9), scalar_steps(1.0, 1e-6)
    many = scalar(1.0, 1e-6, 7 * 9 * value, steps, dimension=7, sensitivity=3.0, against="entry")
    assert checked(many).word == "proved"
    assert checked(changed(many, dimension=6)).word != "proved"
    assert checked(changed(many, sensitivity=2.99)).word != "proved"
    assert checked(changed(many, epsilon=1.001)).word != "proved"
    assert checked(changed(many, delta=2e-6)).word != "proved"


def test_longer_shifts_cost_what_the_group_property_says() -> None:
    epsilon, delta, times = 0.01, 1e-9, 8
    wide = delta * math.expm1(times * epsilon) / math.expm1(epsilon)
    value = scalar_bound(times * epsilon, wide) * times**2
    document = scalar(epsilon, delta, value * (1 - 1e-9), scalar_steps(times * epsilon, wide), times=times)
    assert checked(document).word == "proved"
    assert checked(changed(document, 1 + 1e-6)).word != "proved"
    assert value < ln.least_noise(epsilon=epsilon, delta=delta, sensitivity=1.0, shape=1).expected_loss


# One number, all shifts


def test_mean_lengths() -> None:
    x = (np.arange(20_000) + 0.5) / 20_000
    for t in (0.3, 1.0, 1.7, 4.25):
        for m in range(6):
            length = np.maximum(np.minimum(m + 1, x + t) - np.maximum(m, x), 0.0)
            assert abs(float(_mean_length(arb(t), m)) - length.mean()) < 1e-8


@pytest.mark.parametrize(("epsilon", "delta", "sharp"), [(4.0, 1e-6, 0.99), (8.0, 1e-20, 0.97)])
def test_the_march_is_sharp_and_never_above_a_mechanism(epsilon: float, delta: float, sharp: float) -> None:
    mechanism = ln.least_noise(epsilon=epsilon, delta=delta, sensitivity=1.0, shape=1)
    document = bound_document(mechanism)
    assert document["method"] == "rearranged"
    assert document["value"] > sharp * mechanism.expected_loss
    assert checked(document).word == "proved"
    for factor in (0.3, 3.0):
        proof = {**document["proof"], "multiplier": document["proof"]["multiplier"] * factor, "per_unit": 50}
        false = changed(document, proof=proof, value=mechanism.expected_loss * 1.0001)
        assert checked(false).word != "proved"


@pytest.mark.parametrize(("per_unit", "multiplier"), [(2, 1.0), (3, 10.0), (8, 10.0)])
def test_the_library_marches_no_farther_than_what_is_proved(per_unit: int, multiplier: float) -> None:
    problem = Problem(1, 0.5, 1e-6, Goal.of("squared").power)
    level = _RearrangedMarch(problem, 1.0, per_unit, 20.0).level(multiplier, 0.0, 50.0, 40)
    assert level > 0.1
    proof = {"scale": 1.0, "per_unit": per_unit, "multiplier": multiplier}
    document = scalar(0.5, 0.0, level * (1 - 1e-9), 1, method="rearranged", proof=proof)
    assert checked(document).word == "proved"


# Balls


def random_tests(rng: random.Random, m: int) -> tuple[_Tests, dict[str, Any]]:
    nodes = [0.0, *np.cumsum([rng.uniform(0.05, 0.6) for _ in range(7)]).tolist()]
    levels = sorted(rng.uniform(0.05, 0.95) for _ in range(3))
    tests = []
    for shift in (1.0, rng.uniform(0.3, 0.9)):
        values = [[rng.choice([0.0, rng.expovariate(1.0)]) for _ in levels] for _ in nodes[:-1]] + [[0.0] * 3]
        tests.append({"shift": shift, "values": [value for row in values for value in row]})
    given = {"scale": 2.0, "nodes": nodes, "levels": levels, "tests": tests}
    return _Tests(Fields(given, "proof"), m, Fraction(1)), given


def g_by_quadrature(given: dict[str, Any], m: int, r: float) -> float:
    """G from the definition: means over the angle between n, or n + v, and v."""
    angle = (np.arange(100_000) + 0.5) / 100_000 * math.pi
    weight = np.sin(angle) ** (m - 2)
    weight /= weight.sum()
    total, squares = r * r / given["scale"], np.array(given["nodes"]) ** 2
    for one in given["tests"]:
        table = np.array(one["values"]).reshape(len(squares), -1)

        def test(z: Any, cosine: Any, table: Any = table) -> Any:
            heights = [np.interp(z, squares, column) for column in table.T]
            return sum(c * (cosine > x) for c, x in zip(heights, given["levels"], strict=True))

        d, t = one["shift"], np.cos(angle)
        z = r * r + d * d - 2 * r * d * t
        total += (weight * test(np.full_like(t, r * r), t)).sum()
        total -= math.e * (weight * test(z, (r * t - d) / np.sqrt(z))).sum()
    return float(total)


@pytest.mark.parametrize("m", [2, 3, 4, 11])
def test_g_is_what_the_definition_says(m: int) -> None:
    rng = random.Random(m)
    tests, given = random_tests(rng, m)
    for _ in range(8):
        r = rng.uniform(0.0, tests.end)
        assert abs(float(tests.point(r).value) - g_by_quadrature(given, m, r)) < 2e-3


@pytest.mark.parametrize("m", [2, 3, 40])
def test_g_is_never_below_what_is_proved_between_radii(m: int) -> None:
    rng, close = random.Random(m), 0
    for _ in range(4):
        tests, _ = random_tests(rng, m)
        cuts = sorted({*tests.nodes, *tests.shifts, tests.end})
        for _ in range(25):
            place = rng.randrange(len(cuts) - 1)
            low, high = cuts[place], cuts[place + 1]
            left = rng.choice([low, rng.uniform(low, high)])
            right = left + (high - left) * 10 ** rng.uniform(-4, 0)
            proved = tests.least(tests.point(left), tests.point(right))
            if proved is None or not left < right:
                continue
            inside = [tests.point(left + (right - left) * (i + 0.5) / 12).value for i in range(12)]
            assert all(not value < proved for value in inside)
            close += min(ends(value)[0] for value in inside) - ends(proved)[0] < Fraction(1, 100)
    assert close > 20  # so that the bound is not merely low


def test_tests_for_balls_prove_what_the_library_says() -> None:
    m, epsilon, delta = 10, 1.0, 1e-6
    mechanism = ln.least_noise(epsilon=epsilon, delta=delta, sensitivity=2.0, shape=m)
    document = bound_document(mechanism)
    assert document["method"] == "caps"
    assert document["value"] > 0.985 * mechanism.expected_loss
    verdict = checked(document)
    assert verdict.word == "proved"
    assert "mean square of at least" in verdict.proved[0]
    assert checked(changed(document, 1.01)).word == "not covered"
    assert checked(changed(document, sensitivity=1.9)).word != "proved"
    assert checked(changed(document, delta=1e4 * delta)).word != "proved"
    more = changed(document, 100.0, dimension=1000)  # a bound for fewer entries serves for more
    assert checked(more).word == "proved"
    assert checked(changed(more, 1.01)).word == "not covered"


def test_counts_have_the_bound_of_single_entries() -> None:
    mechanism = ln.least_noise(epsilon=1, delta=1e-6, shape=4, changes=ln.changes.counts(1))
    document = bound_document(mechanism)
    assert (document["against"], document["method"], document["dimension"]) == ("entry", "scalar", 4)
    assert 0.99 * mechanism.expected_loss < document["value"] < mechanism.expected_loss
    assert checked(document).word == "proved"
    assert checked(changed(document, method="caps")).word == "not covered"


# What is false, or not to be read


def caps(**fields: object) -> dict[str, Any]:
    proof = {"scale": 1.0, "nodes": [0.0, 1.0], "levels": [0.5], "tests": [{"shift": 1.0, "values": [1.0, 0.0]}]}
    return scalar(1.0, 1e-6, 1e-3, 1, dimension=3, fewer=3, method="caps", proof={**proof, **fields})


def march(**fields: object) -> dict[str, Any]:
    proof = {"scale": 1.0, "per_unit": 20, "multiplier": 1e3, **fields}
    return scalar(1.0, 1e-6, 1e-3, 1, method="rearranged", proof=proof)


HOSTILE: list[dict[str, Any]] = [
    scalar(1e-300, 1e-300, 1e300, 10**15),
    scalar(700.0, 0.0, 1e-300, 10**15),
    scalar(1e-300, 1.0, 1e-300, 1),
    scalar(1.0, 1e-6, 1.0, 1, times=10**9),
    scalar(1.0, 1e-6, 1.7e308, 1, sensitivity=5e-324, dimension=10**15),
    scalar(1.0, 1e-6, 10**400, 1, sensitivity=10**500),
    scalar(1.0, 1e-6, 10**400, 1, order=10**400),
    scalar(1.0, 1e-6, 1.0, 0),
    scalar(1.0, 1e-6, 1.0, 1, order=1),
    scalar(1.0, 1e-6, 1.0, 1, more=1),
    scalar(0.0, 1e-6, 1.0, 1),
    scalar(1.0, 1e-6, 1.0, 1, fewer=2),
    scalar(1.0, 1e-6, 1.0, 1, proof=[]),
    march(multiplier=1e300),
    march(multiplier=1e-300),
    march(per_unit=1000, scale=1e300),
    march(scale=5e-324),
    caps(levels=[0.0]),
    caps(levels=[1.0 - 2**-53]),
    caps(levels=[5e-324], nodes=[0.0, 5e-324]),
    caps(nodes=[0.0, 1e-200]),
    caps(nodes=[0.0, 1e300]),
    caps(nodes=[0.0, 1.0, 1.0]),
    caps(tests=[{"shift": 1.0, "values": [1.0, 1.0]}]),
    caps(tests=[{"shift": 1.0, "values": [-1.0, 0.0]}]),
    caps(tests=[{"shift": 5e-324, "values": [1e300, 0.0]}]),
    caps(tests=[{"shift": 1.5, "values": [1.0, 0.0]}]),
    caps(tests=[{"shift": 1.0, "values": [1.7e308, 0.0]}]),
    caps(tests=[]),
    caps(scale=1e-300),
    {**caps(), "fewer": 1},
    {**caps(), "dimension": 10**15, "fewer": 10**15},
]


@pytest.mark.parametrize("document", HOSTILE)
def test_hostile_files_end_quickly_without_a_proof(document: dict[str, Any]) -> None:
    assert checked(document).word != "proved"
