"""A synthetic city of taxi pickups: made up from a seed, about nobody, and at no real place.

Its box lies in the open Atlantic. It has what makes a real city hard to release: a dense centre on
a street grid with a park in it, two rivers and a bay without a single pickup, a second centre across the
water, two airports, arterial roads, towns, and suburbs where a cell holds a pickup or two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

BOUNDS: tuple[tuple[float, float], tuple[float, float]] = ((40.0, 40.4), (-30.26, -29.74))
"""((lowest, highest latitude), (lowest, highest longitude)): public, fixed, never read from the pickups."""

DEFAULT_PICKUPS = 400_000
DEFAULT_SEED = 7


def synthetic_city(*, pickups: int = DEFAULT_PICKUPS, seed: int = DEFAULT_SEED) -> Array:
    """Synthetic pickups as rows (latitude, longitude), all inside ``BOUNDS``; the same for the same seed.

    >>> points = synthetic_city(pickups=1000, seed=1)
    >>> points.shape
    (1000, 2)
    >>> bool((points == synthetic_city(pickups=1000, seed=1)).all())
    True
    """
    wanted = validation.whole_number("pickups", pickups)
    rng = np.random.default_rng(validation.whole_number("seed", seed, minimum=0))
    kept: list[Array] = []
    missing = wanted
    while missing > 0:
        drawn = _candidates(rng, missing + missing // 3 + 100)
        drawn = drawn[_on_land(drawn)][:missing]
        kept.append(drawn)
        missing -= len(drawn)
    east, north = np.concatenate(kept).T
    (south, top), (west, right) = BOUNDS
    return np.column_stack([south + (top - south) * north, west + (right - west) * east])


# Below, the box is the unit square: x grows to the east, y to the north.


@dataclass(frozen=True, slots=True)
class _District:
    """A normal cloud along a tilted axis; ``block`` > 0 pulls its pickups onto a street grid of that spacing."""

    weight: float
    x: float
    y: float
    along: float
    across: float
    tilt: float = 0.0
    block: float = 0.0


@dataclass(frozen=True, slots=True)
class _Road:
    """An arterial; pickups thin out from its first end to its last."""

    weight: float
    x0: float
    y0: float
    x1: float
    y1: float


_TILT = math.radians(62.0)
_DISTRICTS = (
    _District(0.330, 0.430, 0.560, along=0.120, across=0.040, tilt=_TILT, block=0.045),  # the centre
    _District(0.200, 0.375, 0.455, along=0.034, across=0.026, tilt=_TILT, block=0.034),  # its old town
    _District(0.120, 0.590, 0.470, along=0.070, across=0.050, tilt=math.radians(20.0), block=0.045),  # over the river
    _District(0.022, 0.790, 0.640, along=0.010, across=0.006, tilt=math.radians(35.0)),  # the near airport
    _District(0.024, 0.800, 0.235, along=0.013, across=0.010),  # the far airport
    _District(0.100, 0.500, 0.520, along=0.220, across=0.200),  # inner suburbs
    _District(0.012, 0.120, 0.330, along=0.020, across=0.011, tilt=0.6),  # towns
    _District(0.013, 0.160, 0.720, along=0.024, across=0.014, tilt=-0.4),
    _District(0.011, 0.640, 0.830, along=0.026, across=0.015, tilt=1.1),
    _District(0.007, 0.890, 0.870, along=0.016, across=0.011, tilt=0.8),
    _District(0.007, 0.640, 0.140, along=0.022, across=0.012, tilt=0.2),
    _District(0.004, 0.300, 0.900, along=0.013, across=0.009, tilt=1.0),
    _District(0.003, 0.930, 0.110, along=0.012, across=0.008, tilt=-0.5),
    _District(0.003, 0.060, 0.520, along=0.010, across=0.008, tilt=0.3),
    _District(0.002, 0.910, 0.560, along=0.010, across=0.007, tilt=1.4),
)
_ROADS = (
    _Road(0.018, 0.590, 0.490, 0.790, 0.640),
    _Road(0.016, 0.600, 0.450, 0.800, 0.235),
    _Road(0.014, 0.470, 0.660, 0.640, 0.990),
    _Road(0.012, 0.380, 0.560, 0.010, 0.760),
    _Road(0.012, 0.340, 0.430, 0.010, 0.230),
    _Road(0.008, 0.790, 0.640, 0.990, 0.950),
    _Road(0.006, 0.650, 0.460, 0.990, 0.420),
)
_COUNTRYSIDE = 0.035  # spread evenly
_ROAD_WIDTH = 0.004
_ON_STREET = 0.8  # share of a gridded district's pickups that are pulled onto a street
_STREET_WIDTH = 0.0035


def _candidates(rng: np.random.Generator, count: int) -> Array:
    """Independent draws from the mixture of all parts, water and park included."""
    weights = np.array([part.weight for part in (*_DISTRICTS, *_ROADS)] + [_COUNTRYSIDE])
    sizes = rng.multinomial(count, weights / weights.sum())
    parts = [_district(rng, part, size) for part, size in zip(_DISTRICTS, sizes, strict=False)]
    parts += [_road(rng, part, size) for part, size in zip(_ROADS, sizes[len(_DISTRICTS) :], strict=False)]
    parts.append(rng.random((sizes[-1], 2)))
    drawn = np.concatenate(parts)
    rng.shuffle(drawn)  # so that any first rows of the result are a fair sample
    return drawn


def _district(rng: np.random.Generator, part: _District, size: int) -> Array:
    local = rng.standard_normal((size, 2)) * (part.along, part.across)
    if part.block > 0.0:
        # A pickup in the street keeps one coordinate and takes the nearest street's for the other.
        axis = rng.integers(0, 2, size)
        rows = np.flatnonzero(rng.random(size) < _ON_STREET)
        chosen = axis[rows]
        street = part.block * np.round(local[rows, chosen] / part.block)
        local[rows, chosen] = street + _STREET_WIDTH * rng.standard_normal(len(rows))
    else:
        local *= np.exp(0.6 * rng.standard_normal((size, 1)))  # a sharp middle and long, thin edges
    cosine, sine = math.cos(part.tilt), math.sin(part.tilt)
    x = part.x + cosine * local[:, 0] - sine * local[:, 1]
    y = part.y + sine * local[:, 0] + cosine * local[:, 1]
    return np.column_stack([x, y])


def _road(rng: np.random.Generator, part: _Road, size: int) -> Array:
    share = rng.random(size) ** 1.5  # denser near the city
    x, y = part.x0 + (part.x1 - part.x0) * share, part.y0 + (part.y1 - part.y0) * share
    bend = 0.012 * np.sin(5.0 * share)  # roads are not ruler-straight
    line = np.column_stack([x - bend * (part.y1 - part.y0) / 0.3, y + bend * (part.x1 - part.x0) / 0.3])
    return line + _ROAD_WIDTH * rng.standard_normal((size, 2))


def _on_land(points: Array) -> Mask:
    """Inside the box, out of the water and out of the park."""
    x, y = points.T
    inside = (x >= 0.0) & (x < 1.0) & (y >= 0.0) & (y < 1.0)
    # Two rivers come down on either side of the centre and meet in a bay.
    east = np.abs(x - 0.500 - 0.12 * (y - 0.5) - 0.030 * np.sin(9.0 * y)) < 0.017 + 0.004 * np.sin(23.0 * y)
    west = np.abs(x - 0.250 - 0.42 * (y - 0.45) - 0.020 * np.sin(7.0 * y)) < 0.022 + 0.003 * np.sin(17.0 * y)
    shore = 0.265 - 2.6 * (x - 0.345) ** 2 + 0.018 * np.sin(31.0 * x) + 0.010 * np.sin(71.0 * x)
    water = east | west | (y < shore)
    # The park is a rectangle along the centre's own axes.
    cosine, sine = math.cos(_TILT), math.sin(_TILT)
    u = cosine * (x - 0.455) + sine * (y - 0.625)
    v = -sine * (x - 0.455) + cosine * (y - 0.625)
    park = (np.abs(u) < 0.045) & (np.abs(v) < 0.014)
    land: Mask = inside & ~water & ~park
    return land
