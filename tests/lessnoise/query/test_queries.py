"""Queries against NumPy and plain loops; sensitivities against brute force."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lessnoise import InvalidInput
from lessnoise._common import round_up
from lessnoise.query import Axis, Gram, Histogram, Mean, Sum, Unit
from lessnoise.query.axis import EvenRule
from lessnoise.query.whole_sums import add, grid_step, norm_up

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

UNIT = ((0.0, 1.0), (0.0, 1.0))
# Coordinates inside, outside and exactly on the edges of cells.
COORDINATE = st.one_of(st.floats(-0.5, 1.5), st.sampled_from([0.0, 0.25, 1.0 / 3.0, 0.5, 1.0, -math.inf, math.nan]))
POINTS = st.integers(1, 30).flatmap(lambda n: arrays(np.float64, (n, 2), elements=COORDINATE))
BINS = st.tuples(st.integers(1, 7), st.integers(1, 7))
BOUNDS = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def grid(bins=(2, 2), bounds=UNIT, **options):
    return Histogram.grid(["x", "y"], bins=bins, bounds=bounds, **options)


# Histograms.


@settings(deadline=None)
@given(POINTS, BINS)
def test_equals_histogram2d(points, bins):
    finite = points[np.isfinite(points).all(axis=1)]
    expected, _, _ = np.histogram2d(finite[:, 0], finite[:, 1], bins=bins, range=UNIT)
    assert np.array_equal(grid(bins).partial(points), expected)
    table = pa.table({"y": points[:, 1], "x": points[:, 0]})
    assert np.array_equal(grid(bins).partial(table), expected)


@settings(deadline=None)
@given(POINTS, BINS)
def test_equals_a_loop(points, bins):
    edges = [np.linspace(0.0, 1.0, number + 1) for number in bins]
    expected = np.zeros(bins)
    for point in points:
        if not ((point >= 0.0) & (point <= 1.0)).all():
            continue
        cell = (min(int((side <= x).sum()), len(side) - 1) - 1 for side, x in zip(edges, point, strict=True))
        expected[tuple(cell)] += 1
    assert np.array_equal(grid(bins).partial(points), expected)


@settings(deadline=None)
@given(BOUNDS, st.integers(1, 300))
def test_even_cells_are_right_around_every_edge(bounds, bins):
    axis = Axis("x", bounds=bounds, bins=bins)
    edges = np.linspace(*bounds, bins + 1)
    near = [edges]
    for direction in (-np.inf, np.inf):
        step = edges
        for _ in range(3):
            step = np.nextafter(step, direction)
            near.append(step)
    values = np.concatenate([*near, np.random.default_rng(0).uniform(*bounds, 200)])
    inside = (values >= bounds[0]) & (values <= bounds[1])
    expected = np.minimum(np.searchsorted(edges, values, side="right") - 1, bins - 1)
    assert np.array_equal(axis.cells({"x": values}, ["x"]), np.where(inside, expected, -1))


def test_a_quick_rule_is_found_for_maps_and_a_wrong_one_is_refused():
    edges = np.linspace(-74.05, -73.75, 90)
    rule = EvenRule.find(edges)
    assert rule is not None
    assert rule.is_right(edges)
    assert not EvenRule(rule.low, rule.factor, rule.shift + 1e-11).is_right(edges)
    assert not EvenRule(rule.low, rule.factor * (1 + 1e-12), rule.shift).is_right(edges)
    assert not EvenRule(rule.low, rule.factor, 0.0).is_right(edges)  # the formula that one would write by hand


def test_many_axes_uneven_edges_and_keys():
    rng = np.random.default_rng(1)
    data = {
        "a": rng.normal(size=500),
        "b": rng.integers(-3, 9, 500),
        "kind": rng.choice(["bus", "taxi", "tram"], 500).astype(object),
        "code": rng.integers(0, 5, 500),
    }
    query = Histogram(
        [
            Axis("a", edges=[-1, -0.5, 0.1, 2]),
            Axis("b", bounds=(0, 5), bins=5, outside="clamp"),
            Axis("kind", keys=["tram", "bus"]),
            Axis("code", keys=[4, 0, 1]),
        ]
    )
    expected = np.zeros((3, 5, 2, 3))
    for a, b, kind, code in zip(*data.values(), strict=True):
        if -1 <= a <= 2 and kind in ("tram", "bus") and code in (4, 0, 1):
            place = int(np.searchsorted([-1, -0.5, 0.1, 2], a, side="right")) - 1
            expected[place, min(max(b, 0), 4), ("tram", "bus").index(kind), (4, 0, 1).index(code)] += 1
    assert expected.sum() > 50
    assert np.array_equal(query.answer(data).value, expected)
    assert np.array_equal(query.partial(pa.table(data)), expected)
    dictionary = pa.table({**data, "kind": pa.array(data["kind"]).dictionary_encode()})
    assert np.array_equal(query.partial(dictionary), expected)


def test_clamping_counts_every_number_and_dropping_only_those_inside():
    values = {"x": np.array([-math.inf, -5.0, 0.0, 0.4, 1.0, 7.0, math.inf, math.nan])}
    assert Histogram([Axis("x", bounds=(0, 1), bins=2)]).answer(values).value.tolist() == [2, 1]
    assert Histogram([Axis("x", bounds=(0, 1), bins=2, outside="clamp")]).answer(values).value.tolist() == [4, 3]


def test_partial_sums_combine_in_any_order():
    rng = np.random.default_rng(3)
    data = rng.normal(size=(999, 3)) * np.array([1.0, 1e-8, 1e8])
    for query in (
        Histogram.grid(["a", "b", "c"], bins=(3, 3, 3), bounds=((-1, 1), (-1e-8, 1e-8), (-1e8, 1e8))),
        Sum(["a", "b", "c"], bounds=[(-1, 1), (-1e-8, 1e-8), (-1e8, 3e8)]),
        Mean(["a", "b", "c"], bounds=[(-1, 1), (-1e-8, 1e-8), (-1e8, 3e8)]),
        Gram(["a", "b", "c"], norm=1e8),
        Gram(["a", "b", "c"], box=(-2, 3)),
    ):
        whole = query.partial(data)
        pieces = [query.partial(part) for part in np.array_split(data[rng.permutation(999)], 7)]
        total = query.zero()
        for piece in pieces:
            total = query.combine(total, piece)
        assert whole.dtype == np.int64
        assert np.array_equal(whole, total)


# Sums, means, Gram matrices.


def test_sums_are_clipped_sums():
    rng = np.random.default_rng(4)
    data = rng.normal(size=(2000, 2))
    answer = Sum(["a", "b"], bounds=[(-0.5, 1.0), (0.0, 0.7)]).answer(data)
    expected = [np.clip(data[:, 0], -0.5, 1.0).sum(), np.clip(data[:, 1], 0.0, 0.7).sum()]
    assert answer.value == pytest.approx(expected, abs=2000 * 2.0**-30)
    assert not answer.value.flags.writeable
    missing = np.array([[math.nan, 0.5], [math.inf, 0.5], [0.25, 0.5]])
    assert Sum(["a", "b"], bounds=(0, 1)).answer(missing).value.tolist() == [1.25, 1.0]
    assert Sum(["a"], bounds=(0, 1)).answer(np.array([[True], [True], [False]])).value.tolist() == [2.0]


def test_means_come_from_sums_and_a_count():
    rng = np.random.default_rng(5)
    data = rng.uniform(-20, 130, size=(3000, 2))
    query = Mean(["age", "height"], bounds=[(0, 100), (0, 120)])
    answer = query.answer(data)
    assert answer.value[-1] == 3000
    expected = [np.clip(data[:, 0], 0, 100).mean(), np.clip(data[:, 1], 0, 120).mean()]
    assert query.estimate(answer.value) == pytest.approx(expected, rel=1e-7)
    known = Mean(["age", "height"], bounds=[(0, 100), (0, 120)], rows=3000)
    assert known.estimate(known.answer(data, neighbours="replace").value) == pytest.approx(expected, rel=1e-7)
    assert known.answer(data, neighbours="replace").shape == (2,)
    assert query.estimate([1e9, -1e9, -5.0]).tolist() == [100.0, 0.0]  # noise cannot leave the bounds
    with pytest.raises(InvalidInput, match="rows=2999 is not the number"):
        Mean("age", bounds=(0, 100), rows=2999).answer(data[:, :1], neighbours="replace")
    with pytest.raises(InvalidInput, match="rows=3000 is public only if"):
        Mean("age", bounds=(0, 100), rows=3000).answer(data[:, :1])
    with pytest.raises(InvalidInput, match="rows=3000 cannot hold"):
        known.sensitivity("replace", Unit("who", 2))


@pytest.mark.parametrize("columns", [1, 2, 7, 40])
def test_gram_is_that_of_the_clipped_rows(columns):
    rng = np.random.default_rng(columns)
    data = rng.normal(size=(9000, columns))
    names = [f"c{place}" for place in range(columns)]
    lengths = np.linalg.norm(data, axis=1, keepdims=True)
    norm = 1.1 * columns**0.5
    clipped = data * np.minimum(1.0, norm / lengths)
    assert (lengths > norm).any()
    found = Gram(names, norm=norm).answer(data).value
    rounding = 9000 * 2.0 * norm * grid_step(norm, 18)  # a step in one entry, times the other, twice
    assert np.abs(found - clipped.T @ clipped).max() < rounding
    assert np.array_equal(found, found.T)
    boxed = np.clip(data, -0.3, 0.8)
    found = Gram(names, box=(-0.3, 0.8)).answer(data).value
    assert np.abs(found - boxed.T @ boxed).max() < 9000 * 2.0 * 0.8 * 2.0**-18


def test_gram_rows_never_exceed_the_norm():
    rng = np.random.default_rng(8)
    for norm in (1.0, 0.1, 5.0, 3.3e7, 1e-9):
        query = Gram(["a", "b", "c"], norm=norm)
        scale = norm * np.array([1.0 - 1e-16, 1.0, 1.0 + 1e-15, 1.0 + 1e-4, 2.0, 1e8, 1e200])
        for factor in scale:
            direction = rng.normal(size=3)
            row = (direction / np.linalg.norm(direction) * factor)[None]
            trace = Fraction(int(np.trace(query.partial(row)))) * Fraction(grid_step(norm, 18)) ** 2
            assert trace <= Fraction(norm) ** 2
            assert trace >= Fraction(norm) ** 2 * (1 - Fraction(1, 2**14))


def test_gram_drops_rows_without_direction_and_keeps_exact_ones():
    data = np.array([[3.0, 4.0], [math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], [1.0, 2.0]])
    assert Gram(["a", "b"], norm=5).answer(data).value.tolist() == [[10.0, 14.0], [14.0, 20.0]]
    assert Gram(["a", "b"], box=(-4, 4)).answer(data).value.tolist() == [[26.0, 18.0], [18.0, 21.0]]


# Sensitivities: never exceeded, and reached.


def corners(query, values):
    """Contributions of single rows from a grid of values, and that of a dropped row."""
    rows = [np.array([row]) for row in itertools.product(values, repeat=len(query.columns))]
    found = [query.finish(query.partial(row)) for row in rows]
    return [*found, np.zeros(query.shape)]


SMALL = [
    (Histogram.grid(["x", "y"], bins=(2, 2), bounds=UNIT), (0.1, 0.9), 1.0),
    (Histogram.grid(["x"], bins=(1,), bounds=[(0, 1)]), (0.1, 7.0), 1.0),
    (Sum(["x", "y"], bounds=[(-1, 1), (0, 3)]), (-1, 0, 1, 3), 1.0),
    (Sum(["x", "y"], bounds=[(2, 3), (-5, -4)]), (-5, -4, 2, 3), 1.0),
    (Mean(["x"], bounds=[(0, 10)]), (0, 5, 10), 1.0),
    (Mean(["x", "y"], bounds=[(0, 10), (5, 6)]), (0, 5, 6, 10), 1.0),
    (Gram(["x"], norm=2), (-2, 0, 2), 1.0),
    (Gram(["x", "y"], norm=5), (-5, -4, -3, 0, 3, 4, 5), 1.0),
    (Gram(["x", "y"], box=(-1, 1)), (-1, 0, 1), 1.0),
    (Gram(["x", "y"], box=(0, 2)), (0, 1, 2), 1.0),
    (Gram(["x", "y", "z"], box=(-1, 2)), (-1, 0, 1, 2), 0.75),
]


@pytest.mark.parametrize(("query", "values", "reached"), SMALL)
def test_sensitivities_by_brute_force(query, values, reached):
    points = corners(query, values)
    for order, name in ((2, "sensitivity"), (1, "l1_sensitivity")):
        stated = getattr(query, name)("add/remove")
        largest = max(np.linalg.norm(point.ravel(), order) for point in points)
        assert largest <= stated * (1 + 1e-15)
        assert largest >= stated * (1 - 1e-4)  # Gram rows are rounded to shorter ones
        stated = getattr(query, name)("replace")
        largest = max(np.linalg.norm((a - b).ravel(), order) for a, b in itertools.product(points, repeat=2))
        assert largest <= stated * (1 + 1e-15)
        l1_of_gram = isinstance(query, Gram) and order == 1  # only an upper bound
        assert largest >= stated * (0.65 if l1_of_gram else reached * (1 - 1e-4))


def test_l1_sensitivity_of_gram_is_reached_by_a_hadamard_pair():
    values, vectors = np.linalg.eigh(np.array([[1.0, 1.0], [1.0, -1.0]]))
    low, high = vectors.T
    assert values == pytest.approx([-(2**0.5), 2**0.5])
    change = np.abs(np.outer(high, high) - np.outer(low, low)).sum()
    assert change == pytest.approx(Gram(["x", "y"], norm=1).l1_sensitivity("replace"))


def test_users_with_k_rows_count_k_times():
    for query, _, _ in SMALL:
        for neighbours in ("add/remove", "replace"):
            one, three = query.norms(neighbours), query.norms(neighbours, Unit("who", 3))
            assert (three.l2, three.l1) == pytest.approx((3 * one.l2, 3 * one.l1), rel=1e-15)
            assert Fraction(three.l2) >= 3 * Fraction(one.l2)


ROWS = st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1), st.floats(0, 1)), max_size=25)


@pytest.mark.slow
@settings(deadline=None)
@given(
    ROWS,
    st.lists(st.tuples(st.floats(-1, 2), st.floats(0, 1)), max_size=40),
    st.integers(1, 4),
    st.text("ab", min_size=1),
)
def test_an_adversarial_user_moves_the_answer_by_at_most_the_sensitivity(others, attack, k, key):
    unit = Unit("who", k, key=key)
    table = np.array([*others, *[(9, *row) for row in attack]]).reshape(-1, 3)
    table = table[np.random.default_rng(len(attack)).permutation(len(table))]
    without = table[table[:, 0] != 9]
    for query in (grid((3, 3)), Sum(["x", "y"], bounds=(0, 1)), Gram(["x", "y"], norm=1)):
        columns = ({"who": t[:, 0].astype(int), "x": t[:, 1], "y": t[:, 2]} for t in (table, without))
        first, second = (query.answer(c, unit=unit) for c in columns)
        change = (first.value - second.value).ravel()
        assert np.linalg.norm(change) <= first.sensitivity * (1 + 1e-12)
        assert np.abs(change).sum() <= first.l1_sensitivity * (1 + 1e-12)
    counts = grid((3, 3)).answer({"who": table[:, 0].astype(int), "x": table[:, 1], "y": table[:, 2]}, unit=unit)
    inside = (table[:, 1] >= 0) & (table[:, 1] <= 1)
    usable = [min(k, int((table[inside, 0] == user).sum())) for user in range(10)]
    assert counts.value.sum() == sum(usable)  # no more rows are lost than need be


@pytest.mark.slow
def test_rows_of_a_user_are_chosen_uniformly():
    data = {"who": np.zeros(6, dtype=int), "x": np.array([0.0, 0.0, 1.0, 2.0, 2.0, 2.0])}
    query = Histogram.grid(["x"], bins=(3,), bounds=[(0, 3)])
    runs = 6000
    total = sum(query.answer(data, unit=Unit("who", 2)).value for _ in range(runs))
    # Each of six rows is one of the two with probability 1/3. The threshold is six standard deviations.
    expected = runs * np.array([2, 1, 3]) / 3
    assert (np.abs(total - expected) < 6 * np.sqrt(runs * np.array([0.5, 0.25, 0.5]))).all()


def test_the_choice_does_not_depend_on_order_or_on_others():
    rng = np.random.default_rng(2)
    data = {"who": rng.integers(0, 20, 600), "x": rng.random(600), "y": rng.random(600)}
    unit, query = Unit("who", 5, key="k"), grid((9, 9))
    value = query.answer(data, unit=unit).value
    order = rng.permutation(600)
    assert np.array_equal(query.answer({n: v[order] for n, v in data.items()}, unit=unit).value, value)
    alone = [query.answer({n: v[data["who"] == user] for n, v in data.items()}, unit=unit).value for user in range(20)]
    assert np.array_equal(sum(alone), value)
    assert not np.array_equal(query.answer(data, unit=Unit("who", 5)).value, value)  # a fresh key
    assert "key" not in repr(unit)


def test_rows_without_an_id_are_dropped():
    data = {"who": np.array(["a", None, "a", "b"], dtype=object), "x": np.full(4, 0.5), "y": np.full(4, 0.5)}
    assert grid().answer(data, unit=Unit("who", 5)).value.sum() == 3


# Exact arithmetic.


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=6))
def test_norms_are_rounded_up_by_less_than_a_step(values):
    root, square = norm_up(values), sum(Fraction(value) ** 2 for value in values)
    assert Fraction(root) ** 2 >= square
    assert root == 0.0 or Fraction(math.nextafter(root, 0.0)) ** 2 < square


def test_small_helpers():
    assert round_up(Fraction(1, 3)) > Fraction(1, 3)
    assert round_up(Fraction(1, 4)) == 0.25
    for bound in (1e-9, 0.3, 1.0, 1.5, 64.0, 1e9):
        assert 2**17 < bound / grid_step(bound, 18) <= 2**18
    with pytest.raises(InvalidInput, match="63 bits"):
        add(np.array([2**62]), np.array([2**62]))


def test_requests_carry_what_is_known():
    request = grid((3, 4)).request(0.5, 1e-7, "replace", Unit("who", 2))
    assert (request.shape, request.integer, request.l1_sensitivity) == ((3, 4), True, 4.0)
    assert request.sensitivity == 2 * 2**0.5
    assert request.entry_bound is None
    assert Sum(["a"], bounds=(0, 3)).request(1, 1e-6, unit=Unit("who", 2)).entry_bound == 6.0
    assert Sum(["a"], bounds=(-1, 3)).request(1, 1e-6).entry_bound is None


# Errors.


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Axis("x", bounds=(1, 0), bins=3), r"bounds=\(1.0, 0.0\).*smaller end first"),
        (lambda: Axis("x", bounds=(1, 1), bins=3), r"bounds=\(1.0, 1.0\).*smaller end first"),
        (lambda: Axis("x", bounds=(0, math.inf), bins=3), r"bounds\[1\]=inf"),
        (lambda: Axis("x", bounds=3, bins=3), r"bounds=3.*pass \(lowest"),
        (lambda: Axis("x", bounds=(0, 1), bins=0), "bins=0"),
        (lambda: Axis("x", bounds=(0, 1), bins=2.5), "bins=2.5"),
        (lambda: Axis("x", bounds=(1, 1 + 1e-15), bins=1000), "bins=1000 is too fine"),
        (lambda: Axis("x", bounds=(0, 1)), "axis 'x' needs its cells in one way"),
        (lambda: Axis("x", bounds=(0, 1), bins=2, keys=["a"]), "axis 'x' needs its cells in one way"),
        (lambda: Axis("x", edges=[0, 0]), r"edges\[1\]=0.0 does not exceed"),
        (lambda: Axis("x", edges=[0]), r"edges=\[0\] is not a list"),
        (lambda: Axis("x", keys=["a", "a"]), "must be different"),
        (lambda: Axis("x", keys=["a", 1]), "all texts or all whole numbers"),
        (lambda: Axis("x", keys=[]), "is not a list of keys"),
        (lambda: Axis("x", keys=["a"], outside="clamp"), "no meaning for the keys"),
        (lambda: Axis("x", bounds=(0, 1), bins=2, outside="fold"), "outside='fold'"),
        (lambda: Axis(3, bounds=(0, 1), bins=2), "column=3"),
        (lambda: Histogram([]), r"axes=\[\]"),
        (lambda: Histogram([Axis("x", keys=["a"]), Axis("x", keys=["b"])]), "names a column twice"),
        (lambda: grid(bins=(3,)), r"bins=\(3,\) must have one part"),
        (lambda: grid(bounds=((0, 1),)), "bounds=.*must have one part"),
        (lambda: grid(bounds=((0, 1), (1, 0))), r"bounds\[1\]=\(1.0, 0.0\)"),
        (lambda: grid(bins=(10**6, 10**6)), "more than 1000000000 cells"),
        (lambda: Sum([], bounds=(0, 1)), r"columns=\[\]"),
        (lambda: Sum(["a", "b"], bounds=[(0, 1)]), "1 intervals for 2 columns"),
        (lambda: Sum(["a"], bounds=(1, 0)), r"bounds=\(1.0, 0.0\)"),
        (lambda: Sum(["a"], bounds=(0, 1e200)), "change the units"),
        (lambda: Mean(["a"], bounds=(0, 1), rows=0), "rows=0"),
        (lambda: Gram(["a"]), "norm=None and box=None"),
        (lambda: Gram(["a"], norm=1, box=(0, 1)), "norm=1 and box"),
        (lambda: Gram(["a"], norm=-1), "norm=-1"),
        (lambda: Gram(["a"], norm=1e-200), "change the units"),
        (lambda: Unit("who"), "pass both"),
        (lambda: Unit(max_rows=3), "pass both"),
        (lambda: Unit("who", 0), "max_rows=0"),
        (lambda: Unit(3, 3), "unit=3 is not a column name"),
        (lambda: Unit("who", 3, key="a|b"), "sampling key"),
    ],
)
def test_descriptions_refuse_in_one_sentence(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"x": np.zeros(3)}, "column='y' is not in the data: choose among 'x'"),
        ({"x": np.zeros(3), "y": np.array(["a", "b", "c"])}, "column 'y' holds text, not numbers"),
        ({"x": np.zeros(3), "y": np.zeros(2)}, "different lengths"),
        ({"x": np.zeros(3), "y": np.full(3, math.nan)}, "column='y' holds no values"),
        (np.zeros((3, 3)), r"data.shape=\(3, 3\) is not \(n, 2\)"),
        (np.array([["a", "b"]]), "column 'x' holds text, not numbers"),
    ],
)
def test_unusable_arrays(data, words):
    with pytest.raises(InvalidInput, match=words):
        grid().answer(data)


def test_no_rows_are_fine_and_units_are_checked():
    assert grid().answer(np.empty((0, 2))).value.tolist() == [[0, 0], [0, 0]]
    assert grid().answer({"x": np.full(2, 9.0), "y": np.zeros(2)}).value.sum() == 0  # all outside is no error
    data = {"x": np.zeros(2), "y": np.zeros(2), "who": np.array([0.5, 1.0])}
    with pytest.raises(InvalidInput, match="unit='who' has type float64"):
        grid().answer(data, unit=Unit("who", 1))
    with pytest.raises(InvalidInput, match="unit='x' is a column of the query"):
        grid().answer(data, unit=Unit("x", 1))
    with pytest.raises(InvalidInput, match="column='driver' is not in the data"):
        grid().answer(data, unit=Unit("driver", 1))
