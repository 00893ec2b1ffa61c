"""Certificates made to mislead the verifier: those that once did, and the best of those that did not."""

from __future__ import annotations

import io
import itertools
import json
import math
import random
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from flint import arb

from lessnoise_verify import NotCovered, NotProved, Unreadable, enclosed_delta
from lessnoise_verify.balls import working
from lessnoise_verify.caps import _Tests
from lessnoise_verify.certificate import OF_WHOLE
from lessnoise_verify.document import Fields
from lessnoise_verify.verdict import verify

if TYPE_CHECKING:
    from pathlib import Path


def described(noise: dict[str, Any], shape: list[int], sensitivity: float = 1.0, **more: Any) -> dict[str, Any]:
    stated = {"name": "", "shape": shape, "sensitivity": sensitivity, "neighbours": "add/remove", "claim": None}
    return {**stated, "noise": noise, **more}


def delta(
    noise: dict[str, Any], shape: list[int], epsilon: float, sensitivity: float = 1.0, **more: Any
) -> list[float]:
    return [float(end) for end in enclosed_delta(described(noise, shape, sensitivity, **more), epsilon, 8)]


def together(**more: Any) -> dict[str, Any]:
    part = {"mechanism": described({"kind": "laplace", "scale": 1.0}, [1]), "rate": 1.0, "count": 1}
    guarantee = {"epsilon": 1.0, "delta": 1e-9, "neighbours": "add/remove"}
    bracket = {"exact_delta": {"lower": 0.0, "upper": 0.0}, "delta_numeric": 1e-20}
    head = {"schema": 2, "kind": "composition", "lessnoise": "", "guarantee": guarantee, "parts": [part]}
    return {**head, **bracket, **more}


# Lower bounds that are false


def bound(nodes: list[float], level: float, values: list[float], epsilon: float, value: float) -> bytes:
    stated = {"dimension": 2, "order": 2, "epsilon": epsilon, "delta": 0.0, "sensitivity": 1.0, "value": value}
    tests = {"scale": 1.0, "nodes": nodes, "levels": [level], "tests": [{"shift": 1.0, "values": values}]}
    how = {"against": "ball", "method": "caps", "fewer": 2, "times": 1, "proof": tests}
    return json.dumps({"schema": 2, "kind": "lower-bound", **stated, **how}).encode()


def test_tests_that_end_between_two_radii_prove_nothing() -> None:
    # The density exp(-epsilon |n|) is pure, with E |n|^2 = 6/epsilon^2: none of the two values is a bound.
    ended = bound([0.0, 0.95, 0.96, 0.97, 0.98], 0.01, [4.0, 4.0, 0.0, 0.0, 0.0], 100.0, 0.7)
    nodes, values = [0.0, 0.95, 0.96, 0.97, 0.98, 5.0, 6.0, 7.0, 1e3], [40.0, 40.0, 0, 0, 0, 0, 1e-3, 0, 0]
    assert 6 / 100**2 < 0.7
    assert 6 / 4**2 < 0.6
    assert verify(ended).word == "not covered"
    assert verify(bound(nodes, 0.9, values, 4.0, 0.6)).word == "not covered"


def test_between_two_radii_nothing_is_below_the_least() -> None:
    rng, seen = random.Random(3), 0
    for _ in range(60):
        steps = rng.randint(2, 8)
        spaced = [k / 2 for k in range(1, steps + 1)]
        near = [rng.uniform(0.2, 2.5) + size for size in (0.0, 1e-6, 1e-3, 0.1)]
        nodes = [0.0, *sorted(rng.choice([spaced, near, [rng.uniform(0.01, 3.0) for _ in range(steps)]]))]
        levels = sorted({rng.choice([0.01, 0.1, 0.5, 0.9, 0.99]) for _ in range(2)})
        values = [rng.choice([0.0, 0.0, 0.0, 1.0, 100.0]) for _ in range((len(nodes) - 1) * len(levels))]
        test = {"shift": rng.choice([1.0, 0.5, 0.1]), "values": values + [0.0] * len(levels)}
        with working(128):
            given = Fields({"scale": 1.0, "nodes": nodes, "levels": levels, "tests": [test]}, "proof")
            tests = _Tests(given, rng.choice([2, 3, 7]), Fraction(rng.choice([1, 5])))
            cuts = sorted({*tests.nodes, *tests.shifts, tests.end})
            low, high = rng.choice(list(itertools.pairwise(cuts)))
            high = low + (high - low) * rng.choice([1.0, 0.3, 0.1, 0.01])
            try:
                points = [tests.point(low + (high - low) * k / 8) for k in range(8)] + [tests.point(high)]
            except NotCovered:
                continue
            least = tests.least(points[0], points[-1])
            if least is not None:
                seen += 1
                assert not any(point.value < least for point in points)
    assert seen > 15


# Densities that rise, changes that vanish


@pytest.mark.parametrize(("name", "value"), [("k", 3.0), ("p", 1e-300), ("p", 1e300)])
def test_the_base_of_correlated_noise_falls_outwards(name: str, value: float) -> None:
    # With k = 3 the density n^2 exp(-n^2) is 0 at 0; it was "proved" to have a delta below 1e-10.
    base = {"kind": "radial", "k": 1.0, "p": 2.0, "scale": 1.0, name: value}
    with pytest.raises(Unreadable):
        delta({"kind": "correlated-radial", "common": 0.0, "base": base}, [1], 1.0)


@pytest.mark.parametrize("cells", [1, 2])
def test_what_is_moved_may_leave_the_only_cell(cells: int) -> None:
    # A row whose new value lies outside all cells is dropped: the count changes by 1, half of the sensitivity.
    noise = {"kind": "laplace", "scale": 2.0}
    asked: dict[str, Any] = {"strategy": {"kind": "cells", "table": [cells]}, "workload": {"parts": []}}
    measured = {"kind": "measured", **asked, "noise": noise, "change": "moved"}
    _, high = delta(measured, [cells], 0.0, 2.0, neighbours="replace")
    assert high >= 1 - math.exp(-1 / 4)


def test_whole_noise_hides_whole_numbers_only() -> None:
    for noise in ({"kind": "geometric", "rate": 1.0}, {"kind": "discrete-gaussian", "numerator": 1, "denominator": 1}):
        with pytest.raises(NotCovered):
            delta(noise, [3], 0.0, 0.5)
    claim = {"epsilon": 1.0, "delta": 0.0, "neighbours": "add/remove", "source": ""}
    found = verify(json.dumps(described({"kind": "geometric", "rate": 1.0}, [1], claim=claim) | {"schema": 1}).encode())
    assert found.word == "proved"
    assert OF_WHOLE in found.assumed


# What is beside a certificate


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "..", ""])
def test_odd_names_of_files_are_refuted(name: str, tmp_path: Path) -> None:
    content = json.dumps(together(sha256={name: "0"})).encode()
    assert verify(content, folder=tmp_path).word == "refuted"


def test_a_value_is_not_passed_over() -> None:
    content = json.dumps(together()).encode()
    assert verify(content).word == "proved"
    assert verify(content, io.BytesIO(b"anything")).word == "not covered"


# Extreme numbers


def test_extreme_numbers_are_answered_soon() -> None:
    listed = {"kind": "listed", "vectors": [[1e300, 1e300], [0.0, -1.0]]}
    cases = [
        described({"kind": "radial", "k": 0.5, "p": 0.001, "scale": 0.1}, [1], 1e-12),  # once a ValueError
        described({"kind": "radial", "k": 1e-9, "p": 0.001, "scale": 0.5}, [10**15], 1e-12),
        described({"kind": "discrete-power", "p": 1.0000001, "scale": 1.0}, [2], 1e3, changes=listed),  # once no end
        described({"kind": "geometric", "rate": 5e-324, "tail": 0.999999}, [1]),
        described({"kind": "shells", "dimension": 10**15, "edges": [0.0, 1e300], "probabilities": [1.0]}, [10**15]),
        described({"kind": "laplace", "scale": 5e-324}, [10**6], 1e300),
    ]
    for case in cases:
        begun = time.process_time()
        try:
            low, high = enclosed_delta(case, 3.0, 8)
            assert 0 <= low <= high <= 1
        except NotProved:
            pass
        assert time.process_time() - begun < 10


# Independent routes that held


def test_several_entries_of_noise_that_ends_by_all_outcomes() -> None:
    for rate, tail in ((0.3, 1e-3), (1.0, 4e-3), (2.0, 0.3)):
        t = tail * (1 + math.exp(-rate)) / (1 - math.exp(-rate) * (1 - 2 * tail))
        end = max(math.floor(-math.log(t) / rate), 0)
        shape = [math.exp(rate * (end - abs(k))) for k in range(-end, end + 1)]
        last = (1 - tail * sum(shape)) / (2 + math.expm1(rate) * sum(shape))
        p = [last, *((tail + math.expm1(rate) * last) * each for each in shape), last]
        pairs = list(zip([*p, 0.0], [0.0, *p], strict=True))  # moved by 1
        for count, epsilon in itertools.product((1, 2, 3), (0.0, rate, 1.7 * rate, 5.0)):
            both = (math.prod(way) for way in itertools.product(*([[a for a, _ in pairs]] * count)))
            others = (math.prod(way) for way in itertools.product(*([[b for _, b in pairs]] * count)))
            gain = math.exp(epsilon)
            true = sum(max(a - gain * b, 0.0) for a, b in zip(both, others, strict=True))
            changes = {"kind": "counts", "rows": count, "per_cell": 1, "neighbours": "add/remove"}
            low, high = delta({"kind": "geometric", "rate": rate, "tail": tail}, [4], epsilon, 9.0, changes=changes)
            assert low - 1e-11 <= true <= high + 1e-11


@pytest.mark.parametrize(("size", "power"), [(2, 5.0), (5, 1.5)])
def test_bodies_by_drawing(size: int, power: float) -> None:
    rng, count, scale, epsilon = np.random.default_rng(2), 200_000, 1.2, 0.5

    def corner(x: Any) -> Any:
        return np.maximum(x.max(1), 0) + np.maximum(-x.min(1), 0)

    inside = {"cube": rng.uniform(-1, 1, (count, size)), "corner": rng.uniform(-1, 1, (5 * count, size))}
    inside["corner"] = inside["corner"][corner(inside["corner"]) <= 1]

    def cube(x: Any) -> Any:
        return abs(x).max(1)

    for body, norm in (("cube", cube), ("corner", corner)):
        uniform = inside[body]
        x = uniform * (scale * rng.gamma((size + power) / power, size=len(uniform)) ** (1 / power))[:, None]
        worst = 0.0
        for ones in range(1, size + 1):
            moved = x + (np.arange(size) < ones)
            losses = (norm(moved) / scale) ** power - (norm(x) / scale) ** power
            worst = max(worst, float(np.maximum(-np.expm1(epsilon - losses), 0).mean()))
        noise = {"kind": "norm-radial", "body": body, "factors": [], "power": power, "scale": scale}
        low, high = delta(noise, [size], epsilon)
        error = 6 / math.sqrt(len(uniform))
        assert low - error <= worst <= high + error
        assert arb(high) - arb(low) < 1e-6
