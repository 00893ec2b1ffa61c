"""Laplace and integer noise, and compositions: known values, other routes, the library, and hostile parameters."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from flint import arb

import lessnoise as ln
from lessnoise_verify.balls import TooSlow, ends, time_limit
from lessnoise_verify.certificate import Mechanism
from lessnoise_verify.changes import Moves
from lessnoise_verify.compositions import Part, composed_delta
from lessnoise_verify.document import Fields, NotProved
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.integers import ended_curve, geometric_moves_delta, shift_delta
from lessnoise_verify.laws.laplace import laplace_moves_delta
from lessnoise_verify.losses import composed, gaussian_curve, laplace_curve


def described(noise: dict[str, Any], sensitivity: float = 1.0, shape: tuple[int, ...] = (1,), **more: Any) -> Mechanism:
    values = {"name": "x", "noise": noise, "shape": list(shape), "sensitivity": sensitivity}
    return Mechanism.read(Fields(values | {"neighbours": "add/remove"} | more, "mechanism"))


def holds(found: arb, value: float, relative: float = 1e-9) -> bool:
    low, high = ends(found)
    return float(low) <= value * (1 + relative) and value * (1 - relative) <= float(high) and high <= low * 2


def compare(mechanism: ln.Mechanism, epsilon: float) -> tuple[bool, bool]:
    """Whether the two overlap, and whether the verifier's is inside."""
    found = Mechanism.read(Fields(json.loads(json.dumps(mechanism.to_dict())), "mechanism")).delta(Fraction(epsilon))
    (low, high), known = ends(found), mechanism.delta(epsilon)
    lower, upper, slack = Fraction(known.lower), Fraction(known.upper), Fraction(1, 10**14)
    return low <= upper and lower <= high, lower * (1 - slack) <= low and high <= upper * (1 + slack)


def brute_force(weights: dict[int, mpmath.mpf], change: int, epsilon: float) -> float:
    total = mpmath.fsum(weights.values())
    moved = {k - change: w for k, w in weights.items()}
    gains = (max(w - mpmath.exp(epsilon) * moved.get(k, mpmath.mpf(0)), 0) for k, w in weights.items())
    return float(mpmath.fsum(gains) / total)


# Laplace noise.


@pytest.mark.parametrize(("sizes", "epsilon"), [([1.0, 1.0], 0.7), ([2.0, 0.125], 0.0)])
def test_laplace_entries_against_quadrature(sizes: list[float], epsilon: float) -> None:
    def overlap(left: list[float], used: float) -> mpmath.mpf:
        """The mean of (1 - e^(eps - losses))_+ over the losses that are left."""
        if not left:
            return max(1 - mpmath.exp(epsilon - used), mpmath.mpf(0))
        a, rest = left[0], left[1:]
        ends_of = overlap(rest, used + a) / 2 + mpmath.exp(-a) * overlap(rest, used - a) / 2
        sums = [sum(s * x for s, x in zip(signs, rest, strict=True)) for signs in _signs(len(rest))]
        kinks = sorted({-a, a} | {x for s in sums if -a < (x := epsilon - used - s) < a})
        return ends_of + mpmath.quad(lambda x: mpmath.exp((x - a) / 2) / 4 * overlap(rest, used + x), kinks)

    with mpmath.workdps(15):
        value = float(overlap(sizes, 0.0))
    moves = Moves.of((Fraction(size), 1) for size in sizes)
    assert holds(laplace_moves_delta([moves.scaled(Fraction(3))], Fraction(3), Fraction(epsilon), 40), value, 1e-7)


def _signs(n: int) -> list[tuple[int, ...]]:
    return [()] if n == 0 else [(s, *rest) for s in (1, -1) for rest in _signs(n - 1)]


def test_laplace_is_pure_at_the_largest_loss_and_only_there() -> None:
    noise = {"kind": "laplace", "scale": 0.1}
    exact = Fraction(1) / Fraction(0.1)
    assert described(noise).delta(exact).is_zero()
    assert described(noise, shape=(10**15,)).delta(exact - Fraction(1, 10**30)) > 0
    moves = Moves.of([(Fraction(1, 3), 7), (Fraction(1), 2)])
    assert laplace_moves_delta([moves], Fraction(1), Fraction(13, 3), 40).is_zero()
    assert laplace_moves_delta([moves], Fraction(1), Fraction(13, 3) - Fraction(1, 10**9), 40) > 0


def test_one_entry_is_the_worst_of_an_l1_ball() -> None:
    rows = [Moves.of([(Fraction(part), 1), (3 - Fraction(part), 1)]) for part in ("3", "5/2", "2", "3/2")]
    deltas = [laplace_moves_delta([one], Fraction(1), Fraction(1, 2), 40) for one in rows]
    assert all(after < before for before, after in itertools.pairwise(deltas))
    assert holds(laplace_moves_delta(rows, Fraction(1), Fraction(1, 2), 40), 1 - math.exp(-1.25))


# Integers.


@pytest.mark.parametrize(("rate", "change", "epsilon"), [(0.25, 7, 0.9), (1.5, 3, 0.0), (0.05, 40, 0.3)])
def test_geometric_against_a_sum(rate: float, change: int, epsilon: float) -> None:
    weights = {k: mpmath.exp(-rate * abs(k)) for k in range(-1500, 1501)}
    found = described({"kind": "geometric", "rate": rate, "tail": 0.0}, float(change)).delta(Fraction(epsilon))
    assert holds(found, brute_force(weights, change, epsilon))


@pytest.mark.parametrize(("rate", "tail"), [(0.3, 1e-3), (2.0, 0.2), (0.1, 1e-12)])
def test_the_integer_optimum_against_a_sum(rate: float, tail: float) -> None:
    law = ln.geometric(epsilon=rate, delta=0.1, shape=1).law.__class__(rate, tail)
    with mpmath.workdps(40):
        x, r = mpmath.mpf(law.last), mpmath.exp(mpmath.mpf(rate))
        weights = {k: r ** (law.reach - abs(k)) * (tail + (r - 1) * x) for k in range(-law.reach, law.reach + 1)}
        weights |= {law.reach + 1: x, -law.reach - 1: x}
        assert abs(mpmath.fsum(weights.values()) - 1) < 1e-12
        for epsilon in (0.0, 0.5 * rate, rate, 1.5 * rate):
            found = described({"kind": "geometric", "rate": rate, "tail": tail}).delta(Fraction(epsilon))
            assert holds(found, brute_force(weights, 1, epsilon), 1e-9)


def test_geometric_entries_against_a_product_law() -> None:
    a, epsilon = 0.4, 0.5
    one = {k: math.tanh(a / 2) * math.exp(-a * abs(k)) for k in range(-90, 91)}
    value = 0.0
    for i, p in one.items():
        for j, q in one.items():
            loss = a * (abs(i + 2) - abs(i) + abs(j + 1) - abs(j))
            value += p * q * max(1 - math.exp(epsilon - loss), 0.0)
    moves = Moves.of([(2, 1), (1, 1)])
    assert holds(geometric_moves_delta([moves], Fraction(a), Fraction(0), Fraction(epsilon), 40), value)


@pytest.mark.parametrize(
    ("p", "scale", "change", "epsilon"), [(1.5, 3.0, 1, 0.4), (1.2, 900.0, 5, 0.007), (2.0, 2000.0, 9, 0.01)]
)
def test_powers_against_a_sum(p: float, scale: float, change: int, epsilon: float) -> None:
    k = np.arange(-40 * scale, 40 * scale + 1)
    weights = np.exp(-(np.abs(k / scale) ** p))
    moved = np.exp(-(np.abs((k + change) / scale) ** p))
    value = float(np.maximum(weights - math.exp(epsilon) * moved, 0.0).sum() / weights.sum())
    noise = {"kind": "discrete-power", "p": p, "scale": scale}
    assert holds(described(noise, float(change)).delta(Fraction(epsilon)), value, 1e-8)


@pytest.mark.parametrize(("shift", "variance"), [((2, 1), "3/2"), ((1, 1, 1), "1/3"), ((3, 2), "20"), ((2, 2), "40")])
def test_discrete_gaussian_vectors_against_a_sum(shift: tuple[int, ...], variance: str) -> None:
    square, epsilon = float(Fraction(variance)), 0.8
    reach = math.ceil(10 * math.sqrt(square)) + 3
    axes = np.meshgrid(*[np.arange(-reach, reach + 1.0)] * len(shift), indexing="ij")
    weights = np.exp(-sum(axis**2 for axis in axes) / (2 * square))
    dot = sum(entry * axis for entry, axis in zip(shift, axes, strict=True))
    losses = (sum(entry**2 for entry in shift) + 2 * dot) / (2 * square)
    value = float((weights * np.maximum(-np.expm1(epsilon - losses), 0.0)).sum() / weights.sum())
    assert holds(shift_delta(Moves.of((entry, 1) for entry in shift), Fraction(variance), Fraction(epsilon), 40), value)


@pytest.mark.parametrize(("variance", "epsilon"), [(16, 4), (8, 6)])
def test_all_changes_of_one_length_are_covered(variance: int, epsilon: int) -> None:
    """Their deltas differ: (5, 4) is worse than 41 ones at first, and better for less noise."""
    noise = {"kind": "discrete-gaussian", "numerator": variance, "denominator": 1}
    _, high = ends(described(noise, math.sqrt(41), (50,)).delta(Fraction(epsilon)))
    shifts = [[(5, 1), (4, 1)], [(6, 1), (2, 1), (1, 1)], [(1, 41)], [(2, 10), (1, 1)]]
    deltas = [shift_delta(Moves.of(one), Fraction(variance), Fraction(epsilon), 40) for one in shifts]
    assert all(ends(one)[1] <= high for one in deltas)
    assert (deltas[0] > deltas[2]) == (variance == 16)


def test_deltas_fall_with_epsilon_and_grow_with_the_change() -> None:
    noises: list[dict[str, Any]] = [
        {"kind": "discrete-power", "p": 1.3, "scale": 4.0},
        {"kind": "geometric", "rate": 0.3, "tail": 0.0},
        {"kind": "discrete-gaussian", "numerator": 7, "denominator": 2},
        {"kind": "laplace", "scale": 2.0},
    ]
    for noise in noises:
        deltas = [described(noise, 3.0).delta(Fraction(k, 20)) for k in range(12)]
        assert all(after < before for before, after in itertools.pairwise(deltas)), noise
        deltas = [described(noise, float(change)).delta(Fraction(1, 20)) for change in range(1, 6)]
        assert all(before < after for before, after in itertools.pairwise(deltas)), noise


def test_the_library_agrees_on_random_mechanisms() -> None:
    rng = random.Random(7)
    inside = []
    for _ in range(8):
        epsilon, delta = 10 ** rng.uniform(-3, 1.3), 10 ** rng.uniform(-100, -1)
        at = epsilon * rng.choice([0.5, 0.9, 1.0, 1.2])
        mechanisms = [
            ln.laplace(epsilon=epsilon, sensitivity=10 ** rng.uniform(-2, 2), shape=rng.choice([1, 5, 10**6])),
            ln.geometric(epsilon=epsilon, sensitivity=rng.choice([1, 2, 9]), shape=3),
            ln.geometric(epsilon=epsilon, delta=delta, shape=3),
            ln.discrete_gaussian(epsilon=epsilon, delta=delta, sensitivity=rng.choice([1, 2**0.5, 2]), shape=2),
        ]
        for mechanism in mechanisms:
            overlap, contained = compare(mechanism, at)
            assert overlap, (mechanism, at)
            inside.append(contained)
    assert sum(inside) >= len(inside) - 2


# Compositions.


def parts_of(composition: ln.Composition) -> list[Part]:
    found = []
    for part in json.loads(composition.to_json())["parts"]:
        mechanism = Mechanism.read(Fields(part["mechanism"], "mechanism"))
        found.append(Part(mechanism.noise, mechanism.case, Fraction(part["rate"]), part["count"]))
    return found


def test_the_lattice_encloses_closed_forms() -> None:
    exact = laplace_moves_delta([Moves.of([(Fraction(1, 2), 4)])], Fraction(1), Fraction(1), 40)
    found = composed([(laplace_curve(Fraction(1, 2)), 4)], Fraction(1))
    assert found.contains(exact)
    assert found.rad() < found.mid() * 1e-4
    whole = gaussian_curve(Fraction(1)).delta
    found = composed([(gaussian_curve(Fraction(1, 9)), 9)], Fraction(3))
    assert found.contains(whole(arb(3)))
    assert found.rad() < found.mid() * 1e-3
    # The end of the noise, in both parts.
    ended = geometric_moves_delta([Moves.of([(1, 3)])], Fraction(1), Fraction(1, 100), Fraction(2), 40)
    found = composed([(ended_curve(Fraction(1), Fraction(1, 100)), 3)], Fraction(2))
    assert found.overlaps(ended)  # their upper ends are the same
    assert not found.overlaps(ended * arb("1.001"))
    assert found.rad() < found.mid() * 5e-2


def test_compositions_overlap_with_the_library() -> None:
    normal = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=5)
    laplace, counts = ln.laplace(epsilon=0.5, sensitivity=1, shape=3), ln.geometric(epsilon=0.3, shape=4)
    ended = ln.geometric(epsilon=0.3, delta=1e-7, shape=4)
    cases = [
        (normal.repeat(10), 4.0, 1e-12),
        (laplace.repeat(30), 6.0, 1e-12),
        (counts.repeat(50), 5.0, 1e-12),
        (ended.repeat(50), 5.0, 1e-10),
        (ln.compose(normal, laplace.repeat(4)), 2.0, 1e-3),
        (ln.compose(laplace, counts), 0.6, 1e-3),
        (laplace.subsample(0.1), 0.02, 1e-10),
    ]
    for composition, epsilon, width in cases:
        found, known = composed_delta(parts_of(composition), Fraction(epsilon), 40), composition.delta(epsilon)
        low, high = ends(found)
        assert low <= Fraction(known.upper), composition
        assert Fraction(known.lower) <= high, composition
        assert high - low <= high * Fraction(width), composition


def test_normal_noise_of_all_kinds_adds_up() -> None:
    """Each by its own mu, found from its own delta at 0, erf(mu/sqrt(8))."""
    tree = {"kind": "hierarchy", "shape": [4], "branching": 2, "noise": "gaussian", "scale": 3.0}
    sides: dict[str, Any] = {"row_basis": None, "column_basis": None}
    for side, deviation in (("row", 2.0), ("column", 1.5)):
        sides[f"{side}_deviations"] = {"values": [deviation], "counts": [2]}
    mechanisms = [
        described({"kind": "radial", "k": 3.0, "p": 2.0, "scale": 4.0}, 2.0, (3,)),
        described({"kind": "generalized-gaussian", "p": 2.0, "scale": 5.0}, 1.0, (7,)),
        described({"kind": "correlated-gaussian", "common_variance": 1.0, "own_variance": 9.0}, 1.0, (3,)),
        described({"kind": "matrix-gaussian", **sides}, 1.0, (2, 2)),
        described(tree | {"neighbours": "add/remove", "change": "any"}, 1.0, (4,)),
    ]
    square = 0.0
    with mpmath.workdps(30):
        for one in mechanisms:
            middle = mpmath.mpf(str(float(one.delta(Fraction(0)).mid())))
            square += float(mpmath.erfinv(middle)) ** 2 * 8
    parts = [Part(one.noise, one.case, Fraction(1), 2) for one in mechanisms]
    assert holds(composed_delta(parts, Fraction(1), 40), float(gaussian_delta(Fraction(2 * square), Fraction(1), 40)))


def test_a_lattice_that_takes_too_long_gives_up() -> None:
    with time_limit(-1.0), pytest.raises(TooSlow):
        composed([(gaussian_curve(Fraction(1, 9)), 9)], Fraction(3))


def test_samples_of_counts_against_all_outcomes() -> None:
    a, q, epsilon = 0.75, 0.25, 0.25
    absent = {1: 1 / (1 + math.exp(a)), -1: 1 / (1 + math.exp(-a))}  # by the sign of the loss
    sampled = {sign: (1 - q) * p + q * p * math.exp(a * sign) for sign, p in absent.items()}
    worst = 0.0
    for one, other in ((sampled, absent), (absent, sampled)):
        threes = itertools.product(one, repeat=3)
        pairs = [(math.prod(one[s] for s in three), math.prod(other[s] for s in three)) for three in threes]
        worst = max(worst, sum(max(p - math.exp(epsilon) * w, 0.0) for p, w in pairs))
    counts = ln.geometric(epsilon=a, shape=2).subsample(q).repeat(3)
    found = composed_delta(parts_of(counts), Fraction(epsilon), 40)
    assert holds(found, worst)
    assert found.rad() < found.mid() * 1e-2


def test_pure_parts_lose_nothing_beyond_their_sum() -> None:
    laplace, counts = ln.laplace(epsilon=0.5, sensitivity=1, shape=3), ln.geometric(epsilon=0.25, shape=4)
    both = parts_of(ln.compose(laplace.repeat(2), counts.repeat(2)))
    assert composed_delta(both, Fraction(3, 2), 40).is_zero()
    assert composed_delta(both[:1], Fraction(999, 1000), 40) > 0
    assert composed_delta(both[1:], Fraction(499, 1000), 40) > 0


# What anyone may write.


@pytest.mark.parametrize(
    "noise",
    [
        {"kind": "laplace", "scale": 5e-324},
        {"kind": "laplace", "scale": 1e308},
        {"kind": "laplace", "scale": -1.0},
        {"kind": "geometric", "rate": 5e-324, "tail": 0.0},
        {"kind": "geometric", "rate": 5e-324, "tail": 1e-300},
        {"kind": "geometric", "rate": 700.0, "tail": 1.0},
        {"kind": "geometric", "rate": "1", "tail": 0.0},
        {"kind": "geometric", "rate": 1e-11, "tail": 5e-324},
        {"kind": "discrete-power", "p": 1.0000000000000002, "scale": 1e300},
        {"kind": "discrete-power", "p": 1.5, "scale": 1e300},
        {"kind": "discrete-power", "p": 1.9999999999999998, "scale": 5e-324},
        {"kind": "discrete-power", "p": 2.0, "scale": 131072.0},
        {"kind": "discrete-gaussian", "numerator": 2**511, "denominator": 1},
        {"kind": "discrete-gaussian", "numerator": 1, "denominator": 2**111},
        {"kind": "discrete-gaussian", "numerator": 2**112, "denominator": 1},
        {"kind": "discrete-gaussian", "numerator": 1.5, "denominator": 1},
    ],
)
@pytest.mark.parametrize("sensitivity", [5e-324, 1.0, 1e308])
@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 0), (10**15, 1)])
def test_hostile_parameters_end_quickly(
    noise: dict[str, Any], sensitivity: float, dimension: int, epsilon: int
) -> None:
    many = {"kind": "counts", "rows": 10**15, "per_cell": 1, "neighbours": "add/remove"}
    sets: list[dict[str, Any]] = [{}, {"changes": many}]
    for more in sets[: 1 + (dimension > 1)]:
        try:
            low, high = ends(described(noise, sensitivity, (dimension,), **more).delta(Fraction(epsilon)))
        except NotProved:
            continue
        assert -1e-8 <= low <= high <= 1 + 1e-8
