"""Sets of changes: norms against brute force, rounded to the safe side, and bad input in one sentence."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise import changes

ORDERS = (1, 2, math.inf)
EXAMPLES = [
    changes.ball(0.3),
    changes.ball(2.0, norm=1),
    changes.ball(1.5, norm=math.inf),
    changes.counts(),
    changes.counts(5, per_cell=2, neighbours="replace"),
    changes.corner(0.7),
    changes.corner([1.0, 2.0, 0.5]),
    changes.listed([[1, 0, 0], [0, 2, 0], [1, 1, -3]]),
    changes.counts(2).scaled(0.1),
    changes.counts(3) | changes.ball(0.5),
]


def all_counts(rows, cap, cells, replaced):
    """Every change that a few rows can make, by going through all of them."""
    added = [v for v in itertools.product(range(min(cap, rows) + 1), repeat=cells) if sum(v) <= rows]
    if not replaced:
        return [np.array(v) for v in added]
    return [np.array(one) - np.array(other) for one in added for other in added]


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("cells", [1, 2, 3, 4])
@pytest.mark.parametrize(("rows", "cap"), [(1, None), (2, None), (2, 1), (3, 2), (4, 1), (4, 3)])
def test_norms_of_counts_are_those_of_the_worst_change(rows, cap, cells, replaced):
    found = changes.counts(rows, cap, "replace" if replaced else "add/remove")
    every = all_counts(rows, rows if cap is None else cap, cells, replaced)
    for order in ORDERS:
        worst = max(np.linalg.norm(v, order) for v in every)
        assert found.norm(order, cells) == pytest.approx(worst, rel=1e-14)
    assert found.single(cells) == max(v[0] for v in every if not v[1:].any())


@settings(max_examples=80, deadline=None)
@given(st.floats(1e-3, 1e3), st.sampled_from(ORDERS), st.sampled_from(ORDERS), st.integers(1, 50), st.integers(0, 99))
def test_norms_of_balls_are_reached_and_never_exceeded(radius, own, asked, dimension, seed):
    bound = changes.ball(radius, norm=own).norm(asked, dimension)
    rng = np.random.default_rng(seed)
    candidates = [np.eye(dimension)[0], np.ones(dimension), rng.standard_normal(dimension)]
    sizes = [np.linalg.norm(radius * v / np.linalg.norm(v, own), asked) for v in candidates]
    assert max(sizes) <= bound * (1.0 + 1e-12)
    assert max(sizes[:2]) == pytest.approx(bound, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=12))
def test_norms_are_rounded_up_and_no_further(bounds):
    corner, exact = changes.corner(bounds), sum(Fraction(bound) ** 2 for bound in bounds)
    found = corner.norm(2, len(bounds))
    assert Fraction(found) ** 2 >= exact > Fraction(math.nextafter(found, 0.0)) ** 2
    total = sum(map(Fraction, bounds))
    assert Fraction(corner.norm(1, len(bounds))) >= total
    assert corner.norm(math.inf, len(bounds)) == max(bounds)


@pytest.mark.parametrize("radius", [1e-300, 1e-200, 1e150, 1e300])
def test_norms_of_extreme_sizes_are_found_at_once(radius):
    """Squares of these are no floats."""
    assert changes.ball(radius).norm(2, 3) == radius
    assert changes.corner(radius).norm(2, 4) == 2.0 * radius
    assert changes.ball(radius, norm=math.inf).norm(1, 4) == 4.0 * radius


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_descriptions_survive_json(example):
    again = changes.Changes.from_dict(json.loads(json.dumps(example.to_dict())))
    assert again == example
    assert hash(again) == hash(example)
    for order in ORDERS:
        assert again.norm(order, 3) == example.norm(order, 3)
    assert example.single(3) <= example.norm(math.inf, 3) * (1.0 + 1e-12)


def test_joined_and_scaled_sets():
    both = changes.counts(2) | changes.ball(5.0)
    assert (both.norm(1, 9), both.norm(2, 9), both.single(9)) == (15.0, 5.0, 5.0)
    assert changes.counts(2).scaled(3.0).norm(2, 9) == 6.0
    assert changes.counts(2).scaled(3.0).whole
    assert not changes.counts(2).scaled(0.5).whole
    assert not both.whole
    assert changes.listed([[1, 2]]).whole
    assert changes.listed([[1, 2]]).single(2) == 0.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: changes.ball(0.0), "radius=0"),
        (lambda: changes.ball(math.inf), "radius=inf"),
        (lambda: changes.ball(1.0, norm=3), "norm=3"),
        (lambda: changes.counts(0), "rows=0"),
        (lambda: changes.counts(2, per_cell=3), "per_cell=3 is above rows=2"),
        (lambda: changes.counts(neighbours="both"), "neighbours='both'"),
        (lambda: changes.corner([]), "bounds=\\(\\) is empty"),
        (lambda: changes.corner([1.0, -1.0]), "bounds\\[1\\]=-1"),
        (lambda: changes.corner([1.0, 2.0]).norm(2, 3), "bounds has length=2 for shape=\\(3,\\)"),
        (lambda: changes.listed([]), "vectors="),
        (lambda: changes.listed([[0.0, 0.0]]), "are all 0"),
        (lambda: changes.listed([[]]), "vectors"),
        (lambda: changes.listed([[1.0], [1.0, 2.0]]), "different lengths"),
        (lambda: changes.listed([[math.nan]]), "vectors\\[0\\]"),
        (lambda: changes.listed([[1.0]]).check_shape((2, 2)), "length=1 for shape=\\(2, 2\\)"),
        (lambda: changes.joined(), "sets="),
        (lambda: changes.joined("counts"), "changes='counts' is not a set of changes"),
        (lambda: changes.counts().scaled(0.0), "factor=0"),
        (lambda: changes.Changes.from_dict({"kind": "all"}), "changes kind='all'"),
    ],
)
def test_bad_sets_are_refused_in_one_sentence(make, words):
    with pytest.raises(ln.InvalidInput, match=words):
        make()


def every_change(rows: int, cap: int | None, replaced: bool, dimension: int) -> set[tuple[int, ...]]:
    """All whole-number changes of a small counts set, by brute force."""
    most = rows if cap is None else cap
    one_side = [v for v in itertools.product(range(most + 1), repeat=dimension) if sum(v) <= rows]
    if not replaced:
        return set(one_side)
    return {tuple(a - b for a, b in zip(one, other, strict=True)) for one in one_side for other in one_side}


@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("cap", [None, 1, 2, 3])
def test_the_largest_change_of_counts_is_in_the_set_and_above_all_others(cap: int | None, replaced: bool) -> None:
    for rows, dimension in itertools.product((1, 2, 3, 4), (1, 2, 3)):
        if cap is not None and cap > rows:
            continue
        found = changes.counts(rows, cap, "replace" if replaced else "add/remove")
        all_of_them = [changes.Moves.of(change) for change in every_change(rows, cap, replaced, dimension)]
        largest, dominant = found.majorant(dimension), found.dominant(dimension)
        assert largest in all_of_them
        assert all(largest.majorizes(other) for other in all_of_them)
        is_above = [one for one in all_of_them if all(one.dominates(other) for other in all_of_them)]
        assert (dominant is None) == (not is_above)
        assert dominant is None or dominant in is_above


def test_largest_changes_of_other_sets() -> None:
    assert changes.ball(2.0, norm=1).majorant(5) == changes.Moves(((2.0, 1),))
    assert changes.ball(2.0, norm=1).dominant(5) is None
    assert changes.ball(2.0).majorant(5) is None
    assert changes.ball(2.0).dominant(1) == changes.Moves(((2.0, 1),))
    assert changes.ball(2.0, norm=math.inf).dominant(5) == changes.Moves(((2.0, 5),))
    assert changes.corner([1.0, 3.0, 1.0]).dominant(3) == changes.Moves(((3.0, 1), (1.0, 2)))
    assert changes.listed([[1, 0], [0, 2]]).dominant(2) == changes.Moves(((2.0, 1),))
    assert changes.listed([[1, 1], [0, 2]]).majorant(2) == changes.Moves(((2.0, 1),))
    assert changes.listed([[1, 1], [0, 2]]).dominant(2) is None
    assert (changes.counts(3) | changes.counts(2)).majorant(4) == changes.Moves(((3.0, 1),))
    assert (changes.counts(3) | changes.ball(9.0)).majorant(4) is None
    assert changes.counts(2).scaled(0.5).majorant(4) == changes.Moves(((1.0, 1),))


def test_norms_of_moves_are_those_of_the_vector() -> None:
    moves = changes.Moves.of([3.0, -1.0, 1.0, 0.0])
    assert moves.norm(1) == 5.0
    assert moves.norm(2) ** 2 == pytest.approx(11.0, rel=1e-15)
    assert moves.norm(1.5) == pytest.approx((3.0**1.5 + 2.0) ** (1 / 1.5), rel=1e-13)


@pytest.mark.parametrize(
    "found",
    [
        changes.counts(neighbours="replace"),
        changes.counts(3, per_cell=2, neighbours="replace"),
        changes.counts(2),
        changes.counts(2, per_cell=1),
        changes.corner(1.5),
        changes.box([1.0, 3.0, 0.5, 2.0]),
        changes.ball(2.0, norm=math.inf),
        changes.ball(2.0, norm=1),
        changes.corner([1.0, 2.0, 3.0, 1.0]),
        changes.listed([[1, 0, 0, 0], [0, 2, 0, 0], [1, 1, 1, 1]]),
        changes.box(1.5).scaled(2.0),
    ],
    ids=str,
)
def test_no_noise_is_below_its_scalar_share(found: changes.Changes) -> None:
    """Normal noise of any covariance N: the worst change has mu^2 = <v, N^-1 v> >= share / tr N."""
    dimension, rng = 4, np.random.default_rng(1)
    vectors = np.array([v for v in _grid_of_changes(found, dimension) if any(v)])
    for _ in range(300):
        root = rng.normal(size=(dimension, dimension)) * rng.exponential(size=dimension) ** 2
        covariance = root @ root.T + 1e-6 * np.eye(dimension)
        worst = np.einsum("ni,ij,nj->n", vectors, np.linalg.inv(covariance), vectors).max()
        assert found.scalar_share(dimension) <= worst * np.trace(covariance) * (1.0 + 1e-9)
    best = found.scalar_share(dimension)
    assert best >= dimension * found.single(dimension) ** 2 * (1.0 - 1e-9)


def _grid_of_changes(found: changes.Changes, dimension: int) -> list[tuple[float, ...]]:
    sizes = sorted({0.0, 0.5, 1.0, 1.5, 2.0, 3.0})
    values = sorted({s for size in sizes for s in (size, -size)})
    return [v for v in itertools.product(values, repeat=dimension) if found.contains(v)]
