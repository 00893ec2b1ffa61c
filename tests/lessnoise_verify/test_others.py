"""Noise on bodies, Gaussian noise with shared parts and of matrices, powers, Wishart noise, and choices."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from flint import acb, arb

import lessnoise as ln
from lessnoise.mechanism.counts.quantile_choice import quantile_choice
from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian
from lessnoise.mechanism.families.correlated_radial import CorrelatedRadial
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.mvg import binary_shares
from lessnoise.mechanism.families.norm_radial import NormRadial
from lessnoise.mechanism.families.norm_staircase import NormStaircase
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise_verify import laws
from lessnoise_verify.balls import between, ends, probability_ends
from lessnoise_verify.certificate import Mechanism as Described
from lessnoise_verify.document import Fields, NotCovered, NotProved, Unreadable
from lessnoise_verify.laws import Case
from lessnoise_verify.laws.bodies import _Body, gamma_mean, gamma_range, root
from lessnoise_verify.laws.others import _laplace

if TYPE_CHECKING:
    from lessnoise.mechanism.law import Law

ROUNDED = Fraction(1, 10**15)


def delta(mechanism: Mechanism, epsilon: float, bits: int = 40) -> arb:
    """From the description alone, as it is read from a file."""
    description = json.loads(json.dumps(mechanism.to_dict()))
    return Described.read(Fields(description, "mechanism")).delta(Fraction(epsilon), bits)


def of_law(law: Law, shape: int, sensitivity: float = 1.0) -> Mechanism:
    return Mechanism("noise", law, (shape,), sensitivity)


def enclosed(kind: str, shape: tuple[int, ...], epsilon: float, sensitivity: float = 1.0, /, **fields: Any) -> arb:
    noise = Fields({"kind": kind, **fields}, "noise")
    found = laws.delta(noise, Case(shape, Fraction(sensitivity)), Fraction(epsilon), 40)
    noise.end()
    return found


def assert_inside(mechanism: Mechanism, epsilon: float) -> None:
    found, stated = delta(mechanism, epsilon), mechanism.delta(epsilon)
    low, high = ends(found)
    assert low >= Fraction(stated.lower) * (1 - ROUNDED) or low <= Fraction(1, 2**1100), mechanism
    assert high <= Fraction(stated.upper) * (1 + ROUNDED), mechanism
    assert high >= Fraction(stated.lower), mechanism


class TestBalls:
    @pytest.mark.parametrize(("low", "high"), [(0.0, 0.1), (1e-300, 1e-5), (0.0, 0.0)])
    def test_the_upper_end_is_exact(self, low: float, high: float) -> None:
        below, above = ends(between(arb(low), arb(high)))
        assert above == Fraction(high)
        assert Fraction(low) - Fraction(high) / 10**8 <= below <= Fraction(low)


class TestShare:
    @pytest.mark.parametrize("dimension", [1, 2, 3])
    @pytest.mark.parametrize("q", [Fraction(1, 5), Fraction(1), Fraction(3, 2)])
    def test_corner_body_by_counting(self, dimension: int, q: Fraction) -> None:
        """Points of a lattice in K, those outside v + rK apart; v is the worst vertex, r = 1 - q + 1."""
        n = {1: 2000, 2: 100, 3: 25}[dimension]
        axis = (np.arange(-n, n) + 0.5) / n
        points = np.stack(np.meshgrid(*[axis] * dimension), axis=-1).reshape(-1, dimension)

        def norm(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            result: np.ndarray[Any, Any] = np.maximum(x.max(axis=1), 0.0) + np.maximum(-x.min(axis=1), 0.0)
            return result

        inside = points[norm(points) <= 1.0]
        worst = 0.0
        for vertex in itertools.product([0.0, 1.0], repeat=dimension):
            worst = max(worst, float((norm(inside - np.array(vertex)) > 2.0 - float(q)).mean()))
        assert float(_Body("corner", dimension).lost_at(q)) == pytest.approx(worst, abs=0.03)

    @pytest.mark.parametrize("body", ["cube", "corner"])
    def test_formulas_meet(self, body: str) -> None:
        share, tiny = _Body(body, 7), Fraction(1, 10**12)
        for q in (Fraction(0), Fraction(1), Fraction(2)):
            values = [float(share.lost_at(q + side)) for side in (-tiny, 0, tiny)]
            assert values == pytest.approx([values[1]] * 3, abs=1e-10)
        assert (share.lost_at(Fraction(0)), share.lost_at(Fraction(2))) == (arb(0), arb(1))


class TestGamma:
    @pytest.mark.parametrize("shape", [0.02, 1.5, 1e4])
    def test_range_and_gaps_hold_the_mass(self, shape: float) -> None:
        """All of it; and of the tails and of what is between two places, by the incomplete gamma function."""
        a, tiny = arb(shape), mpmath.mpf(2) ** -1200 * (1 + 1e-9)
        low, high = gamma_range(a)
        x, y = (mpmath.exp(mpmath.mpf(float(w))) for w in (low, high))
        assert mpmath.gammainc(shape, 0, x, regularized=True) <= tiny
        assert mpmath.gammainc(shape, y, regularized=True) <= tiny
        whole = gamma_mean(a, [(low, high, lambda w, analytic: acb(1))], [], 40)
        assert whole.overlaps(arb(1))
        assert whole.rel_accuracy_bits() >= 25
        near = (a.log().mid(), (a.log() + 0.01 / (1 + a)).mid())
        x, y = (mpmath.exp(mpmath.mpf(float(w))) for w in near)
        within = float(mpmath.gammainc(shape, x, y, regularized=True))
        gap = gamma_mean(a, [], [near], 40)
        assert gap.lower() <= 0
        assert within < gap.upper() < 1.2 * within

    def test_roots(self) -> None:
        low, high = root(lambda x: x - arb(1) / 3, arb(0), arb(1))
        assert 3 * low < 1 < 3 * high
        assert high - low < 1e-12
        assert root(lambda x: x + 1, arb(0), arb(1))[0] == 0
        assert root(lambda x: x - 2, arb(0), arb(1))[1] == 1
        assert root(lambda x: x * 0, arb(0), arb(1)) == (arb(0), arb(1))


class TestBodies:
    def test_closed_form_of_the_cube(self) -> None:
        for dimension in (1, 1000):
            fields: dict[str, Any] = {"body": "cube", "power": 1.0, "scale": 2.0, "factors": []}
            found = enclosed("norm-radial", (dimension,), 0.25, 3.0, **fields)
            assert found.overlaps(-(arb(0.25 - 1.5) / 2).expm1())
            assert found.rel_accuracy_bits() >= 40
            assert enclosed("norm-radial", (dimension,), 1.5, 3.0, **fields) == 0

    def test_powers_near_1_approach_the_closed_form(self) -> None:
        fields: dict[str, Any] = {"body": "cube", "scale": 2.0, "factors": []}
        found = enclosed("norm-radial", (4,), 0.25, 3.0, power=1 + 2.0**-20, **fields)
        assert float(found) == pytest.approx(-math.expm1((0.25 - 1.5) / 2), rel=1e-4)
        assert found.rel_accuracy_bits() >= 40

    @pytest.mark.parametrize(("m", "p", "d", "epsilon"), [(5, 2.5, 2.0, 0.3), (30, 4.0, 0.1, 0.01), (2, 1.5, 0.2, 6.0)])
    def test_cube_by_quadrature(self, m: int, p: float, d: float, epsilon: float) -> None:
        def integrand(x: Any) -> Any:
            q = 1 + d * x ** (-1 / mpmath.mpf(p)) - (1 + epsilon / x) ** (1 / mpmath.mpf(p))
            lost = 1 - (1 - min(max(q, 0), 2) / 2) ** m
            return lost * x ** (m / mpmath.mpf(p)) * mpmath.exp(-x) / mpmath.gamma(m / mpmath.mpf(p) + 1)

        expected = mpmath.quad(integrand, [0, *(2.0**i for i in range(-6, 8)), mpmath.inf])
        found = enclosed("norm-radial", (m,), epsilon, d, body="cube", power=p, scale=1.0, factors=[])
        assert float(found) == pytest.approx(float(expected), rel=1e-3)

    def test_staircase_with_one_step(self) -> None:
        """In one entry, by the two densities themselves, summed over pieces on which both are constant."""
        rate, share, width, d, epsilon = 1.5, 0.25, 1.0, 1.75, 1.0
        heights = [math.exp(-rate * j) for j in range(60)]

        def density(x: float) -> float:
            return heights[min(max(math.ceil(abs(x) / width - share), 0), 59)]

        grid = np.arange(-40.0, 40.0, 0.25) + 0.125
        own, moved = (np.array([density(x - shift) for x in grid]) for shift in (0.0, d))
        expected = float(np.maximum(own - math.exp(epsilon) * moved, 0.0).sum() / own.sum())
        for body in ("cube", "corner"):
            found = enclosed(
                "norm-staircase", (1,), epsilon, d, body=body, rate=rate, share=share, width=width, factors=[]
            )
            assert float(found) == pytest.approx(expected, rel=1e-12)
        assert enclosed("norm-staircase", (1,), 3.0, d, body="cube", rate=rate, share=0.25, width=1.0, factors=[]) == 0

    def test_random_laws_agree_with_the_library(self) -> None:
        rng = random.Random(19)
        for _ in range(25):
            body, m = rng.choice(["cube", "corner"]), rng.choice([1, 2, 3, 7, 20, 50, 120])
            epsilon, d = 10 ** rng.uniform(-3.0, 1.5), 10 ** rng.uniform(-3.0, 3.0)
            law: Law
            if rng.random() < 0.4:
                law = NormStaircase(body, max(epsilon * rng.choice([0.4, 1.0, 2.0]), 0.1), rng.random() + 1e-3, d * 0.6)
            else:
                scale = d * m ** rng.uniform(0.0, 1.0) / epsilon
                law = NormRadial(body, rng.choice([1.0, 1.0, 1.25, 2.0, 3.0, 20.0]), scale)
            assert_inside(of_law(law, m, d), epsilon)

    def test_sets_of_changes(self) -> None:
        cube, corner = (of_law(NormRadial(body, 2.0, 3.0), 4) for body in ("cube", "corner"))
        plain = delta(cube, 0.5)
        for changes in (ln.changes.box(1.0), ln.changes.corner(1.0), ln.changes.ball(1.0, norm=math.inf)):
            assert delta(cube.against(changes), 0.5).overlaps(plain)
        for changes in (ln.changes.corner(1.0), ln.changes.counts(2, per_cell=1), ln.changes.counts(9, per_cell=1)):
            assert delta(corner.against(changes), 0.5).overlaps(delta(corner, 0.5))

    def test_factors_follow_the_entries(self) -> None:
        bounds = [1.0, 3.0, 0.7]
        stretched = of_law(NormRadial("corner", 2.0, 3.0, tuple(bounds)), 3).against(ln.changes.corner(bounds))
        assert delta(stretched, 0.5).overlaps(delta(of_law(NormRadial("corner", 2.0, 3.0), 3), 0.5))
        description = stretched.to_dict()
        description["changes"]["bounds"] = sorted(bounds)
        wide = Described.read(Fields(json.loads(json.dumps(description)), "mechanism")).delta(Fraction(1, 2))
        assert ends(wide)[1] > ends(delta(stretched, 0.5))[1] * Fraction(3, 2)

    def test_sets_without_the_worst_vertex(self) -> None:
        description = of_law(NormRadial("corner", 2.0, 3.0), 5).to_dict()
        for changes in (ln.changes.counts(2, per_cell=1), ln.changes.listed([[1.0] * 5]), ln.changes.box(1.0)):
            with pytest.raises(NotCovered):
                Described.read(Fields({**description, "changes": changes.to_dict()}, "mechanism")).delta(Fraction(1))


class TestShared:
    def test_worst_vertex_by_trying_all(self) -> None:
        for own, common, m in ((1.0, 0.3, 7), (5.0, 0.1, 6), (0.2, 3.0, 5)):
            covariance = own * np.eye(m) + common
            squares = [
                float(np.array(v) @ np.linalg.solve(covariance, np.array(v)))
                for v in itertools.product([0, 1], repeat=m)
            ]
            found = enclosed("correlated-gaussian", (m,), 0.5, common_variance=common, own_variance=own)
            expected = delta(of_law(Radial(m, 2.0, math.sqrt(2.0 / max(squares))), m), 0.5)
            assert float(found) == pytest.approx(float(expected), rel=1e-12)

    @pytest.mark.parametrize(("changes", "most"), [(ln.changes.counts(3, per_cell=1), 3), (ln.changes.corner(1.0), 20)])
    def test_sets(self, changes: Any, most: int) -> None:
        """With at most so many changed entries, from below; and with any, from above."""
        own, common, m = 2.0, 0.5, 20
        found = ends(delta(of_law(CorrelatedGaussian(common, own), m).against(changes), 0.5))
        for end, limit in zip(found, (most, m), strict=True):
            square = max(j * (own + (m - j) * common) / (own * (own + m * common)) for j in range(limit + 1))
            expected = delta(of_law(Radial(m, 2.0, math.sqrt(2.0 / square)), m), 0.5)
            assert float(end) == pytest.approx(float(expected), rel=1e-9)

    def test_correlated_radial_is_radial_without_a_common_part(self) -> None:
        law = CorrelatedRadial(Radial(4.0, 1.25, 2.0), 0.0)
        plain = delta(of_law(Radial(4.0, 1.25, 2.0), 4, 2.0), 0.5)
        assert delta(of_law(law, 4), 0.5).overlaps(plain)
        assert_inside(of_law(CorrelatedRadial(Radial(4.0, 1.25, 2.0), 0.1), 4), 0.5)

    def test_random_laws_agree_with_the_library(self) -> None:
        rng = random.Random(20)
        for _ in range(15):
            epsilon, d = 10 ** rng.uniform(-4.0, 1.7), 10 ** rng.uniform(0.0, 6.0)
            target = 10 ** rng.uniform(-195.0, -0.6)
            assert_inside(ln.correlated_gaussian(epsilon=epsilon, delta=target, shape=int(d)), epsilon)


class TestMatrices:
    def test_bases(self) -> None:
        basis, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(30, 30)))
        common: dict[str, Any] = {"epsilon": 1, "delta": 1e-5, "sensitivity": 1, "shape": (30, 7), "bound": 1}
        shares: dict[str, Any] = {"mode": "unimodal", "row_shares": binary_shares(30, 4, 0.9), "row_basis": basis}
        for calibration in ("published", "code", "exact"):
            assert_inside(ln.mvg(**common, **shares, calibration=calibration), 1.0)
        found = delta(ln.mvg(**common, **shares, calibration="exact"), 1.0)
        assert found.rel_accuracy_bits() >= 40

    def test_least_deviation_of_a_basis_that_is_not_orthonormal(self) -> None:
        """Deviations 1 and 2, and a first column 1 % too long: the least singular value is found by NumPy."""
        basis = ln.mechanism.FrozenMatrix([[1.0, 0.0], [0.0, 1.0]]).to_dict()
        matrix = np.array([[0.6, -0.8], [0.8, 0.6]]) * [1.001, 1.0] + [[0.0, 1e-3], [0.0, 0.0]]
        basis = {"shape": [2, 2], "float64": basis["float64"]} | {"float64": _base64(matrix)}
        least = float(np.linalg.svd(matrix * [1.0, 2.0])[1].min())
        one = {"values": [1.0], "counts": [1]}
        noise = {"row_deviations": {"values": [1.0, 2.0], "counts": [1, 1]}, "column_deviations": one}
        found = enclosed("matrix-gaussian", (2, 1), 0.5, row_basis=basis, column_basis=None, **noise)
        exact = enclosed("correlated-gaussian", (1,), 0.5, common_variance=0.0, own_variance=least**2)
        assert found.overlaps(exact)
        assert found.rel_accuracy_bits() >= 6

    def test_other_shapes_are_refused(self) -> None:
        one = {"values": [1.0], "counts": [3]}
        with pytest.raises(Unreadable):
            enclosed(
                "matrix-gaussian",
                (3, 4),
                1.0,
                row_deviations=one,
                column_deviations=one,
                row_basis=None,
                column_basis=None,
            )


def _base64(matrix: Any) -> str:
    return str(ln.mechanism.FrozenMatrix(matrix).to_dict()["float64"])


class TestPowers:
    @pytest.mark.parametrize(("p", "d", "epsilon"), [(1.5, 0.5, 0.5), (7.0, 0.1, 0.0)])
    def test_one_entry_by_quadrature(self, p: float, d: float, epsilon: float) -> None:
        def integrand(x: Any) -> Any:
            return max(mpmath.exp(-(abs(x) ** p)) - mpmath.exp(epsilon - abs(x + d) ** p), 0)

        expected = mpmath.quad(integrand, list(np.linspace(-8.0, 22.0, 31))) / (2 * mpmath.gamma(1 + 1 / mpmath.mpf(p)))
        found = enclosed("generalized-gaussian", (1,), epsilon, d, p=p, scale=1.0)
        assert float(found) == pytest.approx(float(expected), rel=1e-3)
        assert found.rel_accuracy_bits() >= 40

    def test_random_laws_agree_with_the_library(self) -> None:
        rng = random.Random(21)
        for _ in range(7):
            p, m = rng.choice([1.0, 1.1, 1.5, 2.0, 2.5, 8.0]), rng.choice([1, 1, 2, 40])
            epsilon = 10 ** rng.uniform(-2.0, 1.0)
            mechanism = of_law(GeneralizedGaussian(p, 10 ** rng.uniform(0.0, 1.5) / epsilon), m)
            low, high = ends(delta(mechanism, epsilon))
            stated = mechanism.delta(epsilon)
            assert high <= Fraction(stated.upper) * (1 + ROUNDED), mechanism
            assert low <= Fraction(stated.upper), mechanism
            assert high >= Fraction(stated.lower), mechanism

    def test_bounds_hold_what_is_known(self) -> None:
        """Two entries, by a sum over a fine grid of both, of the change split in half."""
        p, epsilon = 3.0, 0.3
        part = 0.5 ** (1 / p)
        x = np.linspace(-14.0, 14.0, 561)
        one = np.abs(x[:, np.newaxis]) ** p + np.abs(x) ** p
        other = np.abs(x[:, np.newaxis] + part) ** p + np.abs(x + part) ** p
        own = np.exp(-one)
        split = float(np.maximum(own - np.exp(epsilon - other), 0.0).sum() / own.sum())
        low, high = ends(enclosed("generalized-gaussian", (2,), epsilon, p=p, scale=1.0))
        assert low < split < high < 1

    def test_bound_without_the_dimension(self) -> None:
        """At p close to 2, that of normal noise, about."""
        found = ends(enclosed("generalized-gaussian", (10**5,), 1.0, p=2 - 2.0**-20, scale=8.0))
        normal = float(enclosed("generalized-gaussian", (10**5,), 1.0, p=2.0, scale=8.0))
        assert found[0] < normal * 1.001
        assert normal < found[1] < 20 * normal


class TestPublished:
    def test_wishart_noise_is_refuted(self) -> None:
        mechanism = ln.wishart(epsilon=1, features=10, records=1000)
        for epsilon in (0.1, 1.0, 30.0):
            assert float(delta(mechanism, epsilon)) == pytest.approx(-math.expm1(-1 / 3), rel=1e-12)
        assert mechanism.claim is not None
        assert ends(delta(mechanism, mechanism.claim.epsilon))[0] > mechanism.claim.delta

    def test_wishart_noise_by_sampling(self) -> None:
        """The output of 0 + x x^T - y y^T against that of 0: 2 x 2 matrices, and a loss that knows the traces alone."""
        rng, r, epsilon, count = np.random.default_rng(5), 0.8, 0.2, 60_000
        g = rng.normal(size=(count, 2, 3))
        noise = g @ g.transpose(0, 2, 1)  # s = 1, so that D = 2 r
        bound = float(enclosed("wishart", (2, 2), epsilon, 2 * r, scale=1.0))
        for up, down in ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 0.5)):
            moved = noise - 2 * r * np.diag([up, -down])
            possible = (np.linalg.eigvalsh(moved)[:, 0] > 0.0).mean()
            found = 1.0 - possible * min(1.0, math.exp(epsilon - r * (down - up)))
            assert found <= bound + 0.01
            if (up, down) == (1.0, 0.0):
                assert found == pytest.approx(bound, abs=0.01)


class TestChoices:
    def test_pure_at_the_claim(self) -> None:
        for mechanism in (
            quantile_choice(epsilon=1, cells=8, probabilities=[0.25, 0.5, 0.75], neighbours="replace"),
            ln.dawa(epsilon=0.5, shape=(89, 89)),
            ln.dawa(epsilon=2.0, shape=100, workload="ranges"),
        ):
            assert mechanism.claim is not None
            assert delta(mechanism, mechanism.claim.epsilon) == 0
            below = ends(delta(mechanism, 0.9 * mechanism.claim.epsilon))[1]
            assert 0 < below <= Fraction(mechanism.delta(0.9 * mechanism.claim.epsilon).upper)

    def test_published_noise_on_costs(self) -> None:
        with pytest.raises(NotCovered):
            delta(ln.dawa(epsilon=0.5, shape=1024, noise="dpcomp"), 0.5)

    @pytest.mark.parametrize("epsilon", [Fraction(-3), Fraction(-1), Fraction(0), Fraction(1), Fraction(3)])
    def test_laplace_noise_at_any_epsilon(self, epsilon: Fraction) -> None:
        """Two densities, two scales apart, summed on a fine grid."""
        x = (np.arange(-40_000, 40_000) + 0.5) / 1000.0
        own, moved = np.exp(-np.abs(x)), np.exp(-np.abs(x - 2.0))
        expected = float(np.maximum(own - math.exp(epsilon) * moved, 0.0).sum() / own.sum())
        assert float(_laplace(epsilon, Fraction(2))) == pytest.approx(expected, abs=1e-5)


HOSTILE: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("norm-radial", (10**15,), {"body": "corner", "power": 2.0, "scale": 1.0, "factors": []}),
    ("norm-radial", (10**15,), {"body": "cube", "power": 1.5, "scale": 1e8, "factors": []}),
    ("norm-radial", (3,), {"body": "cube", "power": 1.0 + 2.0**-20, "scale": 1e-300, "factors": []}),
    ("norm-radial", (3,), {"body": "corner", "power": 1.5, "scale": 1.0, "factors": [1.0, -1.0, 1.0]}),
    ("norm-radial", (3,), {"body": "ball", "power": 1.5, "scale": 1.0, "factors": []}),
    ("norm-staircase", (10**15,), {"body": "cube", "rate": 0.02, "share": 0.5, "width": 1.0, "factors": []}),
    ("norm-staircase", (3,), {"body": "cube", "rate": 700.0, "share": 1e-300, "width": 1e-300, "factors": []}),
    ("correlated-gaussian", (10**15,), {"common_variance": 1e300, "own_variance": 1e-300}),
    ("correlated-gaussian", (3,), {"common_variance": -1.0, "own_variance": 1.0}),
    ("correlated-radial", (3,), {"common": 1.0, "base": {"kind": "laplace", "scale": 1.0}}),
    ("generalized-gaussian", (10**15,), {"p": 1.5, "scale": 1e-300}),
    ("wishart", (3,), {"scale": 1.0}),
    ("wishart", (10**7, 10**7), {"scale": 1e-300}),
    ("quantile-choice", (7,), {"cells": 2, "probabilities": [0.5], "epsilon": 1.0, "whole": 1, "descent": False}),
    (
        "dawa",
        (10**15,),
        {"shape": [10**15], "epsilon1": 1e-300, "epsilon2": 1e300, "noise": "safe", "workload": "cells"},
    ),
    ("dawa", (4,), {"shape": [5], "epsilon1": 1.0, "epsilon2": 1.0, "noise": "safe", "workload": "cells"}),
]


@pytest.mark.parametrize(("kind", "shape", "fields"), HOSTILE)
def test_hostile_fields_end_soon(kind: str, shape: tuple[int, ...], fields: dict[str, Any]) -> None:
    started = time.process_time()
    for epsilon in (1.0, 1e5):
        try:
            low, high = probability_ends(enclosed(kind, shape, epsilon, **fields))
            assert low <= high
        except NotProved:
            pass
    assert time.process_time() - started < 20.0
