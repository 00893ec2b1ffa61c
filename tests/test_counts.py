import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lessnoise import InvalidInput, Neighbours
from lessnoise.query import grid_counts

UNIT = ((0.0, 1.0), (0.0, 1.0))
# Coordinates inside, outside and exactly on the edges of cells.
COORDINATE = st.one_of(st.floats(-0.5, 1.5), st.sampled_from([0.0, 0.25, 1.0 / 3.0, 0.5, 1.0]))
POINTS = st.integers(1, 30).flatmap(lambda n: arrays(np.float64, (n, 2), elements=COORDINATE))
BINS = st.tuples(st.integers(1, 7), st.integers(1, 7))


@given(POINTS, BINS)
def test_equals_histogram2d(points, bins):
    expected, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=bins, range=UNIT)
    assert np.array_equal(grid_counts(points, bins=bins, bounds=UNIT).value, expected)


@given(POINTS, BINS)
def test_equals_a_loop(points, bins):
    edges = [np.linspace(0.0, 1.0, number + 1) for number in bins]
    expected = np.zeros(bins)
    for point in points:
        if ((point < 0.0) | (point > 1.0)).any():
            continue
        cell = (min(int((side <= x).sum()), len(side) - 1) - 1 for side, x in zip(edges, point, strict=True))
        expected[tuple(cell)] += 1
    assert np.array_equal(grid_counts(points, bins=bins, bounds=UNIT).value, expected)


@given(POINTS, BINS, st.data())
def test_removing_one_point_stays_within_the_sensitivities(points, bins, data):
    index = data.draw(st.integers(0, len(points) - 1))
    whole = grid_counts(points, bins=bins, bounds=UNIT)
    change = whole.value - grid_counts(np.delete(points, index, axis=0), bins=bins, bounds=UNIT).value
    assert np.linalg.norm(change) <= whole.sensitivity("add/remove")
    assert np.abs(change).sum() <= whole.l1_sensitivity("add/remove")


@given(POINTS, BINS, COORDINATE, COORDINATE, st.data())
def test_moving_one_point_stays_within_the_sensitivities(points, bins, x, y, data):
    moved = points.copy()
    moved[data.draw(st.integers(0, len(points) - 1))] = (x, y)
    query = grid_counts(points, bins=bins, bounds=UNIT)
    change = query.value - grid_counts(moved, bins=bins, bounds=UNIT).value
    assert np.linalg.norm(change) <= query.sensitivity("replace")
    assert np.abs(change).sum() <= query.l1_sensitivity("replace")


def test_sensitivities_are_reached():
    query = grid_counts([[0.1, 0.1]], bins=(2, 2), bounds=UNIT)
    change = query.value - grid_counts([[0.9, 0.9]], bins=(2, 2), bounds=UNIT).value
    assert np.linalg.norm(change) == query.sensitivity(Neighbours.REPLACE) == math.sqrt(2.0)
    assert np.abs(change).sum() == query.l1_sensitivity(Neighbours.REPLACE) == 2.0
    assert query.sensitivity("add/remove") == query.l1_sensitivity("add/remove") == 1.0


def test_out_of_range_points_are_dropped_and_no_points_are_fine():
    assert grid_counts([[2.0, 0.5], [0.5, -1.0], [0.5, 0.5]], bins=(3, 3), bounds=UNIT).value.sum() == 1
    assert grid_counts(np.empty((0, 2)), bins=(3, 4), bounds=UNIT).value.tolist() == np.zeros((3, 4)).tolist()


def test_first_coordinate_runs_along_the_first_axis():
    query = grid_counts([[0.9, 0.1]], bins=(2, 5), bounds=UNIT)
    assert query.shape == (2, 5)
    assert query.value[1, 0] == 1


def test_result_is_float_and_read_only():
    query = grid_counts([[0.5, 0.5]], bounds=UNIT)
    assert query.value.dtype == np.float64
    assert query.shape == (89, 89)
    with pytest.raises(ValueError, match="read-only"):
        query.value[0, 0] = 1.0


def test_bounds_are_required():
    with pytest.raises(TypeError, match="bounds"):
        grid_counts([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("points", "arguments", "words"),
    [
        ([[0, 0]], {"bounds": ((1, 0), (0, 1))}, r"bounds\[0\]=\(1.0, 0.0\).*smaller end first"),
        ([[0, 0]], {"bounds": ((0, 1), (1, 1))}, r"bounds\[1\]=\(1.0, 1.0\).*smaller end first"),
        ([[0, 0]], {"bounds": ((0, math.inf), (0, 1))}, r"bounds\[0\]\[1\]=inf"),
        ([[0, 0]], {"bounds": (0, 1)}, r"bounds\[0\]=0.*pass \(\(lowest"),
        ([[0, 0]], {"bounds": None}, r"bounds=None.*pass \(\(lowest"),
        ([[0, 0]], {"bins": (0, 3), "bounds": UNIT}, r"bins\[0\]=0"),
        ([[0, 0]], {"bins": (3, 2.5), "bounds": UNIT}, r"bins\[1\]=2.5"),
        ([[0, 0]], {"bins": 3, "bounds": UNIT}, r"bins=3.*\(89, 89\)"),
        ([[0, math.nan]], {"bounds": UNIT}, r"points\[0, 1\]=nan.*drop or repair"),
        ([[0, 0], [-math.inf, 0]], {"bounds": UNIT}, r"points\[1, 0\]=-inf.*drop or repair"),
        ([0, 1], {"bounds": UNIT}, r"points.shape=\(2,\).*one row"),
        ([[0, 1, 2]], {"bounds": UNIT}, r"points.shape=\(1, 3\).*one row"),
        ([[0, 1], [2]], {"bounds": UNIT}, r"points is not a rectangular array.*\(n, 2\)"),
        ([["a", "b"]], {"bounds": UNIT}, r"points.dtype=.*float64"),
    ],
)
def test_errors_say_what_and_how_to_fix_it(points, arguments, words):
    with pytest.raises(InvalidInput, match=words):
        grid_counts(points, **arguments)
