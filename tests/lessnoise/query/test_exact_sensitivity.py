"""Stated sensitivities against exact rational distances of what the code really makes of adversarial neighbours."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessnoise import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.pca import RowBound
from lessnoise.pca.bounded_rows import Moments
from lessnoise.pca.layout import MOST_ROWS, Layout
from lessnoise.pca.noisy_moments import release_moments
from lessnoise.query import Gram, Mean, SecondMoments, Sum, Unit
from lessnoise.query.whole_sums import SPACING, spaced, to_floats, whole_steps

RELATIONS = ("add/remove", "replace")
ENDS = st.one_of(
    st.tuples(st.floats(-1e3, 1e3), st.floats(1e-12, 1e3)),
    st.tuples(st.sampled_from([-1.0, -7.5, -1e-3, 1.0, 2.0**20]), st.sampled_from([1e-9, 3e-10, 1e-11, 1e-13, 0.5])),
).map(lambda pair: (pair[0], pair[0] + abs(pair[0]) * 1e-15 + pair[1]))
# Totals of the other rows: around 2^53 steps and up to what 63 bits hold.
OTHERS = st.one_of(
    st.integers(-(2**62), 2**62),
    st.tuples(st.integers(52, 61), st.integers(-5000, 5000), st.sampled_from([-1, 1])).map(
        lambda parts: parts[2] * (2 ** parts[0] + parts[1])
    ),
)


def distances(first, second):
    """Exact l2 (squared) and l1 distances of two arrays of floats."""
    changes = [Fraction(a) - Fraction(b) for a, b in zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)]
    return sum(change**2 for change in changes), sum(map(abs, changes))


def never_exceeded(query, others, one, other, rows=1):
    """Rows one and other, each ``rows`` times, are added to the others, or replace each other."""
    unit = Unit() if rows == 1 else Unit("who", rows)
    parts = {"one": rows * query.partial(one), "other": rows * query.partial(other), "none": query.zero()}
    values = {name: query.finish(query.combine(others, part)) for name, part in parts.items()}
    for relation, pairs in (
        ("add/remove", (("one", "none"), ("other", "none"))),
        ("replace", (("one", "other"), ("one", "none"))),
    ):
        stated = query.norms(relation, unit)
        for left, right in pairs:
            square, total = distances(values[left], values[right])
            assert square <= Fraction(stated.l2) ** 2
            assert total <= Fraction(stated.l1)


@pytest.mark.slow
@settings(deadline=None, max_examples=400)
@given(st.data(), st.lists(ENDS, min_size=1, max_size=3), st.sampled_from([1, 1, 3]))
def test_no_row_moves_a_sum_by_more_than_is_stated(data, bounds, rows):
    query = Sum([f"c{place}" for place in range(len(bounds))], bounds=bounds)
    others = np.array([data.draw(OTHERS) for _ in bounds])
    entries = st.sampled_from([0, 1, -math.inf, math.inf])  # the ends, and what lies beyond
    one, other = (
        np.array([[ends[p] if p in (0, 1) else p for ends in bounds]]) for p in (data.draw(entries), data.draw(entries))
    )
    never_exceeded(query, others, one, other, rows)
    never_exceeded(query, others, one, np.array([[data.draw(st.floats(-1e3, 1e3)) for _ in bounds]]), rows)


def test_narrow_negative_bounds_are_kept():
    """No multiple of the grid lies within: the next one away from 0 used to be taken, 1.7e-9 beyond the bound."""
    query = Sum("x", bounds=(-1.0 - 3e-10, -1.0 - 1e-10))
    found = query.partial(np.array([[-1.0]]))
    assert Fraction(int(found[0])) * Fraction(2) ** -29 >= Fraction(query.bounds[0][0])
    boxed = Gram("x", box=(-1.0 - 1e-6, -1.0 - 9e-7))
    assert boxed.partial(np.array([[-1.0]]))[0, 0] <= Fraction(boxed.box[0]) ** 2 / Fraction(2) ** -34


def test_sums_past_2_53_steps_do_not_jump():
    """A float of 2^62 steps is a multiple of 2^10 of them: neighbours just short of a jump used to exceed the bound."""
    for low, high in ((0.0, 1.0), (0.0, 1.0 - 2.0**-28), (-0.7, 0.3)):
        query = Sum("x", bounds=(low, high))
        for others in range(2**62 - 3, 2**62 + SPACING + 3, 97):
            never_exceeded(query, np.array([others]), np.array([[high]]), np.array([[low]]))
    assert Sum("x", bounds=(0, 1)).sensitivity("add/remove") == 1.0  # a whole number of 2^10 steps: no more than before
    assert Sum("x", bounds=(0, 0.3)).sensitivity("add/remove") == pytest.approx(0.3, rel=4e-6)


@settings(deadline=None, max_examples=300)
@given(OTHERS, OTHERS, st.integers(0, 2**40))
def test_rounding_to_floats_keeps_to_its_promise(near, far, apart):
    low, high = max(near, -(2**63) + 1), min(near + apart, 2**63 - 1)
    for a, b in ((low, high), (near, far)):
        left, right = (Fraction(to_floats(np.array([each]))[0].item()) for each in (a, b))
        assert abs(left - right) <= spaced(abs(a - b))
        assert abs(left) <= abs(a) < abs(left) + SPACING
        assert left == a or abs(a) > 2**53


@settings(deadline=None, max_examples=150)
@given(st.data(), st.integers(1, 2), st.sampled_from([1, 3]))
def test_no_row_moves_a_mean_by_more_than_is_stated(data, size, rows):
    bounds = [data.draw(ENDS) for _ in range(size)]
    query = Mean([f"c{place}" for place in range(size)], bounds=bounds)
    others = np.array([*(data.draw(OTHERS) for _ in bounds), data.draw(st.integers(0, 2**40))])
    one, other = (np.array([[ends[data.draw(st.integers(0, 1))] for ends in bounds]]) for _ in range(2))
    never_exceeded(query, others, one, other, rows)


ROW = st.lists(st.floats(-3, 3), min_size=3, max_size=3)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.data(), st.integers(1, 3), st.sampled_from([1, 1, 3]), st.floats(0.01, 3), st.booleans())
def test_no_row_moves_a_gram_matrix_by_more_than_is_stated(data, size, rows, bound, boxed):
    names = [f"c{place}" for place in range(size)]
    box = data.draw(
        st.sampled_from([(-bound, bound), (bound, bound * (1 + 1e-6)), (-bound * (1 + 1e-7), -bound), (0, bound)])
    )
    one, other = (np.array([data.draw(ROW)[:size]]) for _ in range(2))
    if data.draw(st.booleans()):  # where the norms are largest: opposite rows, and rows at right angles
        one, other = np.eye(3)[:1, :size] * 9, np.eye(3)[-1:, -size:] * 9
    half = np.array([data.draw(OTHERS) for _ in range(size * size)]).reshape(size, size) // 2
    query = Gram(names, box=box) if boxed else Gram(names, norm=bound)
    never_exceeded(query, half + half.T, one, other, rows)
    moments = SecondMoments(names, norm=bound)
    others = np.zeros(moments.shape, dtype=np.int64)
    others[:size, :size] = half + half.T
    others[:size, size] = others[size, :size] = half[0]
    others[size, size] = 2**40
    never_exceeded(moments, others, one, other, rows)


@settings(deadline=None)
@given(st.floats(-10, 10), st.floats(0, 1), st.floats(1e-3, 1))
def test_whole_steps_lie_within_or_nearer_to_0(low, width, step):
    first, last = whole_steps(low, low + width, step)
    inside = [n for n in range(first - 2, last + 3) if low <= Fraction(n) * Fraction(step) <= Fraction(low + width)]
    if inside:
        assert (first, last) == (inside[0], inside[-1])
    else:
        assert first == last
        assert abs(first) * Fraction(step) <= max(abs(Fraction(low)), abs(Fraction(low + width)))


# Packed covariances.


def packed(layout, query, total):
    value, size = query.finish(total), layout.features
    counts = value[size, size:]
    return layout.pack(Moments(float(counts[0]), float(counts[1]), value[:size, size], value[:size, :size]))


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(
    st.data(),
    st.integers(1, 3),
    st.floats(0.01, 50),
    st.sampled_from([(10, 1 << 20), ((1 << 20) - 1, 1 << 20), (5 * 10**7, MOST_ROWS), (2**26 + 12345, MOST_ROWS)]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(Neighbours),
)
def test_no_row_moves_a_packed_covariance_by_more_than_is_stated(data, size, norm, rows, center, clipped, relation):
    """Rounding at 5e7 rows used to exceed the stated sensitivity by 1.8e-9 of itself."""
    others, most = rows
    layout = Layout(size, norm, relation, center, clipped, most)
    query = RowBound.of(size, clip_norm=norm).query([f"c{place}" for place in range(size)])
    common, one, other = (np.array([data.draw(ROW)[:size]]) * norm for _ in range(3))
    if data.draw(st.booleans()):
        one = np.eye(3)[:1, :size] * 9 * norm
    total = others * query.partial(common)
    first = packed(layout, query, total + query.partial(one))
    second = packed(layout, query, total + query.partial(other) if relation is Neighbours.REPLACE else total)
    square, absolute = distances(first, second)
    assert square <= Fraction(layout.sensitivity) ** 2
    assert absolute <= Fraction(layout.l1_sensitivity)


def test_more_rows_than_the_sensitivity_is_for_are_refused():
    layout = Layout(2, 1.0, rows=100)
    moments = Moments(101.0, 0.0, np.zeros(2), np.eye(2))
    for refused in (lambda: layout.pack(moments), lambda: release_moments(moments, layout, "least-noise", 1.0, 1e-6)):
        with pytest.raises(InvalidInput, match="rows=100 is the most"):
            refused()
    assert Layout(2, 1.0, rows=MOST_ROWS).sensitivity < Layout(2, 1.0).sensitivity * (1 + 1e-6)


@pytest.mark.parametrize("columns", [1, 2, 64, 65])
@pytest.mark.parametrize("end", [2.0**-300, 1.0, 2.0**300])
def test_norms_of_boxes_hold_whatever_their_size_and_number_of_columns(columns, end):
    query, square = Gram([f"c{i}" for i in range(columns)], box=(-end, end)), Fraction(end) ** 2
    stated = Fraction(query.sensitivity("replace")) ** 2
    # Entries on the diagonal lie in [0, b^2], others in [-b^2, b^2]; or two rows at right angles.
    needed = min(2 * columns**2, columns + 4 * columns * (columns - 1)) * square**2
    assert 1 <= stated / needed < 1 + Fraction(columns, 10**4)


@pytest.mark.parametrize("bounds", [(0, 5e-324), (-5e-324, 5e-324), (1e-310, 2e-310), (-1.7e308, 1.7e308)])
def test_means_refuse_bounds_whose_half_width_has_no_inverse(bounds):
    with pytest.raises(InvalidInput, match="half width"):
        Mean(["a", "b"], bounds=[(0, 1), bounds])


def test_ends_that_overflow_in_steps_are_refused_before_data_is_read():
    with pytest.raises(InvalidInput, match="not between"):
        SecondMoments(["a"], norm=1.0, ends=((-1e308,), (1e308,)), shift=(0.0,))
    with pytest.raises(InvalidInput, match="not between"):
        SecondMoments(["a"], norm=1.0, ends=((-1e308,), (1e308,)), shift=(-1.5e308,))
