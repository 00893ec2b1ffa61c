import numpy as np
import pytest

from lessnoise import InvalidInput
from lessnoise_paper.data import BOUNDS, synthetic_city
from lessnoise_paper.experiments.demo import QUERY


@pytest.fixture(scope="module")
def city():
    return synthetic_city()


def test_same_seed_same_city():
    assert np.array_equal(synthetic_city(pickups=5000, seed=3), synthetic_city(pickups=5000, seed=3))


def test_another_seed_another_city():
    assert not np.array_equal(synthetic_city(pickups=5000, seed=3), synthetic_city(pickups=5000, seed=4))


@pytest.mark.parametrize("pickups", [1, 7, 12345])
def test_exact_number_of_pickups_inside_the_public_bounds(pickups):
    points = synthetic_city(pickups=pickups, seed=0)
    assert points.shape == (pickups, 2)
    for column, (low, high) in zip(points.T, BOUNDS, strict=True):
        assert column.min() >= low
        assert column.max() <= high


def test_bounds_do_not_depend_on_the_draw():
    assert BOUNDS == ((40.0, 40.4), (-30.26, -29.74))
    assert tuple(axis.bounds for axis in QUERY.axes) == BOUNDS


@pytest.mark.slow
def test_looks_like_a_city_beside_noise_of_sd_thirteen(city):
    counts = QUERY.answer(city).value
    assert counts.sum() == len(city) == 400_000
    assert counts.max() > 2000  # the centre stands far above the noise
    assert (counts > 3 * 13).sum() > 800
    assert ((counts > 0) & (counts < 13)).sum() > 2000  # the suburbs lie below it
    assert (counts == 0).sum() > 500  # the water is empty


def test_river_cuts_the_city_in_two(city):
    counts = QUERY.answer(city).value
    row = counts[45]  # across the centre, from west to east
    busy = np.flatnonzero(row > 100)
    water = np.flatnonzero(row[busy[0] : busy[-1]] == 0)
    assert len(water) > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"pickups": 0}, "pickups=0"), ({"pickups": 1.5}, "pickups=1.5"), ({"seed": -1}, "seed=-1")],
)
def test_errors_name_the_argument(arguments, words):
    with pytest.raises(InvalidInput, match=words):
        synthetic_city(**arguments)
