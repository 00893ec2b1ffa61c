"""Shells: the verifier's enclosures against sums by hand, quadrature and the library."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.mechanism.curve.dispatch import delta_of
from lessnoise_verify.balls import ends
from lessnoise_verify.document import Fields, NotCovered, NotProved, Refuted, Unreadable
from lessnoise_verify.laws import Case, delta


def enclosed(m, edges, probabilities, sensitivity, epsilon, bits=40, dimension=None):
    fields = {"kind": "shells", "dimension": dimension or m, "edges": edges, "probabilities": probabilities}
    noise = Fields(fields, "noise")
    found = delta(noise, Case((m,), Fraction(sensitivity)), Fraction(epsilon), bits)
    noise.end()
    return found


def of_heights(m, edges, logs):
    """Probabilities of shells with these log-heights, and that density."""
    edges = np.array(edges, dtype=float)
    volumes = (edges[1:] / edges[-1]) ** m - (edges[:-1] / edges[-1]) ** m
    masses = volumes * np.exp(logs)
    return [float(each) for each in masses / masses.sum()]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, math.log(2), 1.5, 4.0])
@pytest.mark.parametrize("shift", [0.25, 1.0, 1.5, 7.0])
def test_one_dimension_by_a_sum_over_intervals(epsilon, shift):
    edges, masses = [0.0, 0.5, 1.0, 2.0, 3.0], [0.5, 0.25, 0.125, 0.125]
    points = sorted({side * edge - move for edge in edges for side in (-1, 1) for move in (0.0, shift)})

    def height(x):
        pairs = zip(edges, edges[1:], masses, strict=False)
        return next((mass / (b - a) / 2 for a, b, mass in pairs if a <= abs(x) < b), 0.0)

    middles = [((a + b) / 2, b - a) for a, b in pairwise(points)]
    value = math.fsum(max(height(x) - math.exp(epsilon) * height(x + shift), 0.0) * width for x, width in middles)
    found = enclosed(1, edges, masses, shift, epsilon)
    low, high = (float(end) for end in ends(found))
    assert low - 1e-15 <= value <= high + 1e-15
    assert high - low <= 1e-11 * value


def test_three_dimensions_by_quadrature():
    """The cosine of the angle between noise and shift is uniform."""
    edges, logs = [0.0, 1.0, 1.4, 2.0, 2.5], [0.0, -0.4, -1.7, -2.0]
    masses = of_heights(3, edges, logs)
    padded = np.append(np.array(logs), -np.inf)
    r = (np.arange(3000) + 0.5) / 3000 * edges[-1]
    t = (np.arange(1500) + 0.5) / 750 - 1.0
    here = padded[np.searchsorted(edges[1:], r)]
    there = padded[np.searchsorted(edges[1:], np.sqrt(r[:, None] ** 2 + 2 * r[:, None] * t * 0.8 + 0.64))]
    mass = r**2 * np.exp(here)
    value = float((mass / mass.sum() * np.maximum(1 - np.exp(0.5 + there - here[:, None]), 0).mean(axis=1)).sum())
    assert abs(float(enclosed(3, edges, masses, 0.8, 0.5).mid()) / value - 1) < 2e-3


def random_shells(count):
    draw = random.Random(7)
    for _ in range(count):
        m, n = draw.choice([1, 2, 3, 10, 100]), draw.choice([1, 2, 7, 60])
        width = draw.choice([0.05, 0.3])
        edges = [0.0] + [math.sqrt(m) + width * i for i in range(n)]
        epsilon = draw.choice([0.0, 0.1, 1.0, math.log(2), 5.0])
        # Falls of 0 and of epsilon make ties, which rounding breaks in either way.
        falls = [draw.choice([0.0, 0.0, epsilon, 0.3, width]) for _ in range(n - 1)]
        logs = -np.cumsum([0.0, *falls])
        yield m, edges, of_heights(m, edges, logs), draw.choice([width, 0.5, 3.0]), epsilon


def test_the_library_agrees():
    for m, edges, masses, shift, epsilon in random_shells(40):
        bracket = delta_of(ln.Shells(m, tuple(edges), tuple(masses)), m, shift, epsilon)
        low, high = (float(end) for end in ends(enclosed(m, edges, masses, shift, epsilon)))
        assert bracket.lower * (1 - 1e-15) <= low <= high <= bracket.upper * (1 + 1e-15), (m, edges, masses, shift)
        assert high - low <= 1e-9 * high


def test_both_forms_of_a_table_and_a_uniform_ball():
    found = enclosed(2, [0, 1], [1.0], 1.0, 0.0)
    assert abs(float(found.mid()) - (1 - (2 * math.pi / 3 - math.sqrt(3) / 2) / math.pi)) < 1e-12  # two discs
    assert enclosed(2, [0, 1], [1.0], 2.0, 50.0) == 1
    encoded = {"float64": "AAAAAAAAAAAAAAAAAADwPw=="}
    assert enclosed(2, encoded, [1.0], 1.0, 0.0).overlaps(found)


def test_delta_falls_with_epsilon_and_grows_with_the_shift():
    edges = [0.0, 1.0, 1.5, 3.0]
    masses = of_heights(5, edges, [0.0, -0.7, -2.0])
    found = [enclosed(5, edges, masses, 1.0, epsilon) for epsilon in (0.0, 0.5, 1.9)]
    assert all(after < before for before, after in pairwise(found))
    found = [enclosed(5, edges, masses, shift, 0.5) for shift in (0.1, 1.0, 2.0)]
    assert all(after > before for before, after in pairwise(found))


@pytest.mark.parametrize(
    ("edges", "masses", "error"),
    [
        ([0, 1, 2], [0.1, 0.9], NotCovered),  # rises
        ([0, 1, 2], [0.6, 0.3], Unreadable),
        ([0, 1, 1], [0.6, 0.4], Unreadable),
        ([0.1, 1, 2], [0.6, 0.4], Unreadable),
        ([0, 1, 2], [1.0, 0.0], Unreadable),
        ([0, 1], [0.6, 0.4], Unreadable),
        ([], [], Unreadable),
        ("01", [1.0], Unreadable),
    ],
)
def test_what_are_no_falling_shells(edges, masses, error):
    with pytest.raises(error):
        enclosed(1, edges, masses, 1.0, 1.0)


def test_shells_of_another_dimension():
    with pytest.raises(Refuted):
        enclosed(3, [0, 1], [1.0], 1.0, 1.0, dimension=2)


@pytest.mark.parametrize("m", [1, 10**15])
@pytest.mark.parametrize("edges", [[0, 1e-308, 1e308], [0, 1.0, math.nextafter(1.0, 2.0)], [0, 5e-324, 1.0]])
def test_extreme_parameters_end(m, edges):
    try:
        found = enclosed(m, edges, [0.5, 0.5], 1e-300, 1.0)
    except NotProved:
        return
    assert ends(found)[0] >= 0
