"""The law of noise on measured answers: its matrices against the library's, its curves against other routes."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest

import lessnoise as ln
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.geometric import Geometric
from lessnoise.mechanism.law import Laplace
from lessnoise.mechanism.measured.law import Measured
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.strategy import Cells, Dense, Hats, Nested, PIdentity, Product, Residuals, Toeplitz, Total, tree
from lessnoise.workload import identity
from lessnoise_verify import laws
from lessnoise_verify.balls import ends
from lessnoise_verify.certificate import Mechanism as Stated
from lessnoise_verify.changes import counts
from lessnoise_verify.document import Fields, NotCovered, NotProved, Refuted, Unreadable
from lessnoise_verify.strategies import Alike, read_strategy

if TYPE_CHECKING:
    from lessnoise.strategy import Strategy

RNG = np.random.default_rng(19)
NEAR = Fraction(1, 10**12)


def weighted(cells: int, sums: int) -> PIdentity:
    """Random weights, and sums of some cells."""
    rows = RNG.uniform(0.0, 1.0, (sums, cells)) * (RNG.random((sums, cells)) < 0.5)
    return PIdentity.of(RNG.uniform(0.1, 1.0, cells), rows if sums else None)


def hats(cells: int, step: int, sums: int) -> Hats:
    """Random heights, some of them 0."""
    shape = (sums + 1, -(-cells // step) + 1)
    heights = RNG.uniform(0.0, 1.0, shape) * (RNG.random(shape) < 0.7)
    return Hats(cells, step, FrozenMatrix(heights), float(RNG.uniform(0.5, 2.0)))


def scaled_toeplitz(cells: int, band: int) -> Toeplitz:
    """Random coefficients of both signs, random scales."""
    coefficients = np.concatenate([[1.0], RNG.normal(size=band - 1)])[np.newaxis]
    scales = (FrozenMatrix(RNG.uniform(0.5, 2.0, (1, cells))) for _ in range(2))
    return Toeplitz(cells, FrozenMatrix(coefficients), *scales)


SETS = ((), (0,), (0, 1), (1, 2))
SMALL: list[Strategy] = [
    Cells((3, 4)),
    Cells((1,)),
    Total(6),
    Dense(FrozenMatrix(RNG.normal(size=(9, 6)))),
    Dense(FrozenMatrix(RNG.integers(-3, 4, (5, 12)).astype(float)), (3, 4)),
    weighted(7, 0),
    weighted(7, 3),
    hats(9, 2, 2),
    hats(10, 4, 0),
    hats(7, 7, 3),
    Nested(weighted(3, 2), weighted(4, 2), 10),
    Nested(weighted(3, 0), hats(5, 2, 2), 11),
    Nested(weighted(2, 1), Nested(weighted(3, 1), weighted(4, 2), 11), 15),
    tree(10, 2),
    tree(17, 4, [0.5, 0.25, 1.5]),
    scaled_toeplitz(9, 9),
    scaled_toeplitz(9, 3),
    Toeplitz(5, FrozenMatrix([[1.0, 0.5]])),
    Product((weighted(3, 2), hats(5, 2, 1), scaled_toeplitz(3, 2))),
    Product((Cells((3,)), Total(4), Dense(FrozenMatrix(RNG.normal(size=(4, 3)))))),
    Product((Nested(weighted(2, 1), Nested(weighted(2, 1), weighted(3, 2), 5), 9), weighted(2, 1))),
    Residuals((3, 4, 2), SETS, (1.0, 0.3, 0.7, 2.0)),
    Residuals((3, 4, 2), SETS, (1.0, 0.3, 0.7, 2.0), tables=True),
    Residuals((3, 1, 2), ((), (1,), (0, 1, 2)), (1.0, 0.3, 2.0), tables=True),
]


def read(strategy: Strategy) -> Any:
    """The verifier's matrix, from JSON."""
    return read_strategy(Fields(json.loads(json.dumps(strategy.to_dict())), "strategy"))


@pytest.mark.parametrize("strategy", SMALL, ids=lambda each: f"{each.kind}-{math.prod(each.shape)}")
def test_the_matrix_is_the_one_that_the_library_measures(strategy: Strategy) -> None:
    """Columns, and what is proved of them: against the matrix itself, and the norms that the library's noise is for."""
    found, cells = read(strategy), math.prod(strategy.shape)
    matrix = strategy.measure(np.eye(cells).reshape(cells, *strategy.shape))  # a column in each row
    matrix[np.abs(matrix) < 1e-15] = 0.0
    assert (found.shape, found.rows, found.nonnegative) == (strategy.shape, strategy.rows, strategy.nonnegative)
    for order in (1, 2):
        most = (np.abs(matrix) ** order).sum(axis=1).max()
        furthest = max((np.abs(one - other) ** order).sum() for one in matrix for other in matrix)
        known = (most, strategy.norm(order) ** order), (furthest, strategy.distance(order) ** order)
        for (low, high), (exact, above) in zip((found.power(order), found.apart(order)), known, strict=True):
            assert float(low) * (1.0 - 1e-14) <= exact <= float(high) * (1.0 + 1e-14)
            assert float(high) <= above * (1.0 + 1e-14)
        assert found.power(order)[0] >= found.power(order)[1] * (1 - NEAR) or strategy.kind == "nested"
        assert found.apart(order)[0] > 0 or furthest == 0.0 or (strategy.kind, order) == ("residuals", 1)
    if found.apart(2)[0] and strategy.kind in ("matrix", "cells", "residuals"):
        assert found.apart(2)[0] >= found.apart(2)[1] * Fraction(4, 5)
    if strategy.kind == "residuals" and not strategy.tables:  # type: ignore[attr-defined]
        with pytest.raises(NotCovered):
            found.kinds()
        return
    columns = [np.sort(np.abs(column[column != 0.0]))[::-1] for column in matrix]
    if not isinstance(found, Alike):
        for cell, column in enumerate(matrix):
            mine = [float(entry) for entry in found.column(cell).values()]
            assert np.allclose(np.sort(mine), np.sort(column[column != 0.0]), rtol=1e-13, atol=0.0)

    def has(some: list[np.ndarray], one: np.ndarray) -> bool:
        return any(len(each) == len(one) and np.allclose(each, one, rtol=1e-13) for each in some)

    all_kinds, sure = (
        [np.array([float(size) for size in each]) for each in found.kinds(sure=sure)] for sure in (False, True)
    )
    assert sure
    assert all(has(columns, kind) for kind in sure)  # none is made up
    above = np.array([float(size) for size in found.majorant()])
    for column in columns:
        padded = np.concatenate([above, np.zeros(max(len(column) - len(above), 0))])
        assert (np.cumsum(padded)[: len(column)] >= np.cumsum(column) * (1.0 - 1e-12)).all()
        if strategy.kind != "toeplitz" or strategy.to_dict().get("row_scales"):  # of beginnings, the longest is there
            assert has(all_kinds, column)


def test_columns_of_large_tables_are_within_the_ends() -> None:
    large = [
        Nested(weighted(300, 5), hats(500, 20, 3), 149_990),
        tree(10**6, 10, [0.5, 0.25, 1.5, 1.0, 0.1, 2.0]),
        Product((weighted(40, 3), weighted(50, 2))),
        Residuals((7, 16, 12), SETS, (1.0, 0.3, 0.7, 2.0)),
        scaled_toeplitz(3000, 400),
    ]
    for strategy in large:
        found, cells = read(strategy), math.prod(strategy.shape)
        assert found.rows == strategy.rows
        some, places = np.zeros((2, cells)), RNG.integers(0, cells, 2)
        some[np.arange(2), places] = 1.0
        one, other = strategy.measure(some.reshape(2, *strategy.shape))
        for order in (1, 2):
            (low, high), (near, far) = found.power(order), found.apart(order)
            assert float(high) <= strategy.norm(order) ** order * (1.0 + 1e-9)
            # Of blocks the library adds the largest of both parts, which need not meet.
            assert float(low) >= strategy.norm(order) ** order * (0.5 if strategy.kind == "nested" else 1.0 - 1e-8)
            assert (np.abs(one) ** order).sum() <= float(high) * (1.0 + 1e-12)
            assert (np.abs(one - other) ** order).sum() <= float(far) * (1.0 + 1e-12)
            assert near <= far <= strategy.distance(order) ** order * (1.0 + 1e-9)


def test_stated_norms_are_not_believed_and_bad_descriptions_are_unreadable() -> None:
    good = hats(9, 2, 2).to_dict()
    for change in ({"norm": 1.0}, {"step": 3}, {"size": True}, {"length": -1.0}, {"heights": None}):
        with pytest.raises(Unreadable):
            read_strategy(Fields(good | change, "strategy"))
    nested = Nested(weighted(3, 0), hats(5, 2, 2), 11).to_dict()
    for change in ({"size": 16}, {"size": 10}, {"coarse": Cells((3,)).to_dict()}, {"fine": Cells((5,)).to_dict()}):
        with pytest.raises(Unreadable):
            read_strategy(Fields(nested | change, "strategy"))
    tables = Residuals((3, 4), ((0,), (0, 1)), (1.0, 2.0)).to_dict()
    for change in ({"sets": [[0], [0]]}, {"sets": [[1, 0], [0]]}, {"sets": [[2], [0]]}, {"weights": [1.0, -2.0]}):
        with pytest.raises(Unreadable):
            read_strategy(Fields(tables | change, "strategy"))


# Curves.


def mechanism(strategy: Strategy, noise: Any, change: str = "any", sensitivity: float = 1.0) -> Mechanism:
    relation = Neighbours.REPLACE if change == "moved" else Neighbours.ADD_REMOVE
    law = Measured(identity(*strategy.shape), strategy, noise, change)  # type: ignore[arg-type]
    return Mechanism("workload", law, strategy.shape, sensitivity, relation, None)


def stated(given: Mechanism) -> Stated:
    return Stated.read(Fields(json.loads(json.dumps(given.to_dict())), "mechanism"))


def delta(given: Mechanism, epsilon: float) -> tuple[Fraction, Fraction]:
    low, high = ends(stated(given).delta(Fraction(epsilon)))
    return max(low, Fraction(0)), high


def normal(deviation: float) -> GeneralizedGaussian:
    return GeneralizedGaussian(2.0, math.sqrt(2.0) * deviation)


def closed_form(mu: float, epsilon: float) -> float:
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


def check_inside(given: Mechanism, epsilon: float) -> None:
    """Overlap with the library's bracket, and inside of it."""
    low, high = delta(given, epsilon)
    bracket = given.delta(epsilon)
    assert low <= Fraction(bracket.upper) * (1 + NEAR)
    assert high >= Fraction(bracket.lower) * (1 - NEAR)
    assert high <= Fraction(bracket.upper) * (1 + NEAR)
    assert low >= Fraction(bracket.lower) * (1 - NEAR)


def test_curves_lie_inside_the_library_s() -> None:
    for strategy in SMALL:
        if strategy.kind == "total" or math.prod(strategy.shape) == 1:
            continue
        norm = float(strategy.norm(1))
        for change in ("any", "moved"):
            epsilon = float(RNG.choice([1e-3, 0.3, 1.0, 5.0]))
            deviation = float(strategy.norm(2)) / float(RNG.uniform(0.05, 1.0)) / epsilon**0.5
            given = mechanism(strategy, normal(deviation), change, 2.0)
            low, high = delta(given, epsilon)
            bracket = given.delta(epsilon)
            assert low <= bracket.upper * (1 + 1e-12)
            assert bracket.lower * (1 - 1e-12) <= high <= bracket.upper * (1 + 1e-12)
            pure = mechanism(strategy, Laplace(norm * 2.0 / epsilon * (1.0 + 1e-12)), change, 2.0)
            assert delta(pure, epsilon) == (0, 0)


def test_laplace_curves_below_the_pure_epsilon() -> None:
    for strategy in (tree(30, 3), weighted(6, 2), SMALL[22]):
        for change in ("any", "moved"):
            given = mechanism(strategy, Laplace(float(strategy.norm(1))), change, 1.0)
            check_inside(given, 0.5 if change == "any" else 0.3)


def test_geometric_noise_against_a_sum_over_the_integers() -> None:
    given = mechanism(tree(4, 2), Geometric(0.7), "any", 1.0)
    ratio, g = math.exp(-0.7), math.exp(0.5)
    p = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-80, 82)}
    total = sum(max(p[j] * p[k] - g * p[j - 1] * p[k - 1], 0.0) for j in range(-79, 81) for k in range(-79, 81))
    low, high = delta(given, 0.5)
    assert float(low) == pytest.approx(total, rel=1e-12)
    assert float(high) == pytest.approx(total, rel=1e-12)
    assert delta(given, 1.4 * (1.0 + 1e-12)) == (0, 0)
    for change in ("any", "moved"):
        check_inside(mechanism(Cells((6,)), Geometric(1.0, 1e-6), change, 1.0 if change == "any" else 2.0), 0.9)


def test_two_measured_answers_against_an_integral() -> None:
    given = mechanism(Dense(FrozenMatrix([[1.0, 0.0], [0.5, 0.25]])), Laplace(1.0))

    def excess(x: float) -> float:  # of the second answer, the first is integrated in closed form: 1 - e^((y - 1)/2)
        loss = abs(x - 0.5) - abs(x)
        left = 0.4 - loss
        inner = (
            -math.expm1((left - 1.0) / 2.0)
            if left >= 0.0
            else -math.expm1(left) - math.exp(left) * math.expm1((-left - 1.0) / 2.0)
        )
        return 0.5 * math.exp(-abs(x)) * inner if left < 1.0 else 0.0

    found = mpmath.quad(excess, [-40.0, -1.0, 0.0, 0.05, 0.25, 0.45, 0.5, 1.0, 40.0])
    low, high = delta(given, 0.4)
    assert high - low < low * NEAR
    assert float(low) == pytest.approx(float(found), rel=1e-9)


def test_monotone_in_epsilon_and_in_sensitivity() -> None:
    for noise in (Laplace(2.0), normal(2.0)):
        for change in ("any", "moved"):
            curve = [delta(mechanism(tree(10, 2), noise, change), eps) for eps in (0.0, 0.1, 0.2, 0.5)]
            assert all(before[0] > after[1] for before, after in itertools.pairwise(curve))
            sizes = [delta(mechanism(tree(10, 2), noise, change, size), 0.1) for size in (0.5, 1.0, 2.0)]
            assert all(after[0] > before[1] for before, after in itertools.pairwise(sizes))


def test_pure_privacy_is_decided_exactly() -> None:
    exact = mechanism(tree(10**6, 10), Laplace(6.0))
    assert delta(exact, 1.0) == (0, 0)
    assert 0 < delta(exact, math.nextafter(1.0, 0.0))[0] < Fraction(1, 10**10)


def test_a_change_of_one_cell_alone_is_among_moved_ones() -> None:
    """Counts that leave and enter are at most half each: with a heavy total, rows that only leave are the worst."""
    given = mechanism(Dense(FrozenMatrix([[10.0, 10.0], [1.0, 0.0], [0.0, 1.0]])), normal(5.0), "moved", 2.0)
    low, high = delta(given, 1.0)
    assert float(low) == float(high) == pytest.approx(closed_form(math.sqrt(101.0) / 5.0, 1.0), rel=1e-9)
    assert float(high) == pytest.approx(0.5134, abs=5e-5)
    check_inside(given, 1.0)
    asked = ln.workload.matrix(np.vstack([np.full((1, 40), 30.0), np.tril(np.ones((40, 40)))]))
    replaced = ln.changes.counts(neighbours="replace")
    given = ln.workload_mechanism(asked, epsilon=1.0, delta=1e-6, changes=replaced)
    strategy, deviation = given.law.strategy, given.law.noise.scale / math.sqrt(2.0)  # type: ignore[attr-defined]
    columns = strategy.measure(np.eye(40))
    assert strategy.distance(2) < strategy.norm(2)
    expected = closed_form(math.sqrt(np.square(columns).sum(axis=1).max()) / deviation, 1.0)
    assert float(delta(given, 1.0)[0]) == pytest.approx(expected, rel=1e-9)
    assert float(delta(given, 1.0)[1]) == pytest.approx(expected, rel=1e-9)
    check_inside(given, 1.0)


def test_sets_of_changes() -> None:
    law = Measured(identity(3), Cells((3,)), normal(4.0), "moved")
    changes = ln.changes.counts(rows=2, per_cell=1, neighbours="replace")
    given = Mechanism("workload", law, (3,), 4.0, Neighbours.REPLACE, None, changes=changes)
    low, high = delta(given, 0.5)  # (1, 1, -1) is in the set; at most 2 leave, at most 2 enter
    assert low <= closed_form(math.sqrt(3.0) / 4.0, 0.5) <= high
    assert float(high) == pytest.approx(closed_form(math.sqrt(8.0) / 4.0, 0.5), rel=1e-9)
    assert float(low) == pytest.approx(closed_form(math.sqrt(2.0) / 4.0, 0.5), rel=1e-7)


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_counts_against_all_changes_of_small_tables(relation: str) -> None:
    for rows, per_cell, cells in ((1, 1, 1), (1, 1, 3), (3, 1, 2), (3, 2, 3), (3, None, 2), (4, 2, 3), (5, 2, 3)):
        found, most = counts(rows, per_cell, relation, cells), per_cell or rows
        members = [
            np.array(change)
            for change in itertools.product(range(-most, most + 1), repeat=cells)
            if np.maximum(change, 0).sum() <= rows and np.maximum(np.negative(change), 0).sum() <= rows
            if relation == "replace" or min(change) >= 0 or max(change) <= 0
        ]
        tops = np.array([np.cumsum(np.sort(np.abs(one))[::-1]) for one in members])
        sizes = np.zeros(cells)
        entries = [float(size) for size, count in found.majorant.sizes for _ in range(count)]  # type: ignore[union-attr]
        sizes[: len(entries)] = entries
        assert any((np.cumsum(sizes) == top).all() for top in tops)
        assert (np.cumsum(sizes) == tops.max(axis=0)).all()
        squares = [max(np.linalg.norm(one, order) for one in members) ** 2 for order in (1, 2, np.inf)]
        assert [float(square) for square in found.squares] == pytest.approx(squares)
        assert found.side == max(np.maximum(one, 0).sum() for one in members)
        largest = np.diff(tops, axis=1, prepend=0).max(axis=0)
        assert found.dominant is None or (sizes == largest).all()
        assert (found.dominant is not None) == (most == 1 or (sizes == most).all())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("shape", "branching"), [((1000,), 10), ((89, 89), 3), ((2,), 2), ((7, 120), 4)])
def test_trees_of_counts(noise: Any, shape: tuple[int, ...], branching: int) -> None:
    for relation, size in (("add/remove", None), ("replace", None), ("replace", 2.0)):
        for epsilon in (0.01, 1.0, 20.0):
            given = ln.hb(
                epsilon=epsilon,
                shape=shape,
                delta=0.0 if noise == "laplace" else 1e-9,
                noise=noise,
                branching=branching,
                l1_sensitivity=size,
                neighbours=relation,
            )
            check_inside(given, epsilon)
            check_inside(given, epsilon * 0.6)
            verifier = stated(given)
            assert laws.values_drawn(verifier.noise, verifier.case) == given.law.nodes  # type: ignore[attr-defined]


def test_hostile_descriptions_end_quickly() -> None:
    base = json.loads(json.dumps(mechanism(tree(4, 2), Laplace(1.0)).to_dict()))
    cells = {"kind": "p-identity", "weights": {"values": [1.0], "counts": [2]}, "sums": None}
    deep: dict[str, Any] = cells
    for size in range(3, 36):
        deep = {"kind": "nested", "size": size, "coarse": cells, "fine": deep}
    wide = [1e-308, 1e308, 5e-324, 1.0]
    hostile = [
        deep,
        {"kind": "cells", "table": [10**15]},
        {"kind": "total", "cells": 10**15},
        {"kind": "cells", "table": [0]},
        {"kind": "cells", "table": [10**15, 10**15]},
        cells | {"weights": {"values": [1.0], "counts": [10**15]}},
        cells | {"weights": {"values": [1.0], "counts": [2.0]}},
        {"kind": "product", "axes": [{"kind": "total", "cells": 10**15}] * 64},
        {"kind": "product", "axes": []},
        {"kind": "residuals", "sizes": [10**7, 10**7], "sets": [[0, 1]], "weights": [1.0], "tables": False},
        {"kind": "residuals", "sizes": [999, 999], "sets": [[0, 1]], "weights": [1.0], "tables": False},
        Dense(FrozenMatrix(np.outer(wide, wide[2:]))).to_dict(),
        Toeplitz(4, FrozenMatrix([wide]), FrozenMatrix([wide]), FrozenMatrix([wide])).to_dict(),
        {"kind": "toeplitz", "size": 10**15, "coefficients": FrozenMatrix([wide]).to_dict()},
        hats(9, 2, 2).to_dict() | {"length": 1.7e308},
        hats(9, 2, 2).to_dict() | {"step": 10**15, "size": 10**15},
        {"kind": "other"},
    ]
    for strategy in hostile:
        for noise in (Laplace(1e-300), Laplace(0.3), normal(1e300), normal(1.0), Geometric(0.5)):
            for change in ("any", "moved"):
                given = json.loads(json.dumps(base))
                given["noise"] |= {"strategy": strategy, "noise": noise.to_dict(), "change": change}
                given["neighbours"] = "replace" if change == "moved" else "add/remove"
                try:
                    shape = list(read_strategy(Fields(strategy, "strategy")).shape)
                    given["shape"] = shape
                    given["noise"]["workload"] = identity(*shape).to_dict()
                    low, high = ends(Stated.read(Fields(given, "mechanism")).delta(Fraction(1, 3)))
                except NotProved:
                    continue
                assert -NEAR <= low <= high <= 1 + NEAR


def test_what_does_not_fit_is_refuted() -> None:
    base = json.loads(json.dumps(mechanism(tree(4, 2), Laplace(1.0)).to_dict()))
    with pytest.raises(Refuted):
        Stated.read(Fields(base | {"shape": [5]}, "mechanism")).delta(Fraction(1))
    with pytest.raises(Refuted):
        Stated.read(Fields(base | {"noise": base["noise"] | {"change": "moved"}}, "mechanism")).delta(Fraction(1))
    asked = {"workload": identity(5).to_dict()}
    with pytest.raises(Refuted):
        Stated.read(Fields(base | {"noise": base["noise"] | asked}, "mechanism")).delta(Fraction(1))
    power = {"noise": GeneralizedGaussian(1.5, 1.0).to_dict()}
    with pytest.raises(NotCovered):
        Stated.read(Fields(base | {"noise": base["noise"] | power}, "mechanism")).delta(Fraction(1))
    halves = {"strategy": weighted(4, 0).to_dict(), "noise": Geometric(1.0).to_dict()}
    with pytest.raises(Unreadable):
        Stated.read(Fields(base | {"noise": base["noise"] | halves}, "mechanism")).delta(Fraction(1))
