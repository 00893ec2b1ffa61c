"""The cube and the corner body: what is lost when they are moved, which shift is the worst, and their moments."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from lessnoise.audit.body_laws import uniform_in
from lessnoise.mechanism.families.norm_bodies import (
    _corner_share,
    gauge,
    log_square_moment,
    lost_share,
    square_cumulants,
    worst_entries,
)

SIGMAS = 6.0  # of a Monte Carlo mean; seeds are fixed


def kept_exactly(a, b, r):
    """The formula of the module for 0 <= r <= 1, in fractions: the integral of a polynomial, term by term."""
    n = a + b
    integral = Fraction(0)
    for i in range(a):  # (1 + r - x)^(a-1)
        power = b + i
        integral += math.comb(a - 1, i) * (1 + r) ** (a - 1 - i) * (-1) ** i * (1 - r**power) / power
    return (b * r**a + a * r**b + a * b * integral) / n


def vertex(dimension, changed, size=1.0):
    return np.where(np.arange(dimension) < changed, size, 0.0)


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_overlaps_of_all_vertices_by_monte_carlo(dimension):
    rng = np.random.default_rng(dimension)
    count = 60_000
    points = uniform_in("corner", dimension, count, rng)
    for changed in range(1, dimension + 1):
        for shift, outer in [(0.3, 1.05), (0.7, 1.2), (1.0, 1.0), (1.4, 1.1), (1.9, 1.0)]:
            lost = np.mean(gauge("corner", points - vertex(dimension, changed, shift)) > outer)
            exact = _corner_share(dimension + 1 - changed, changed, np.array([1.0 + shift - outer]))[0]
            assert lost == pytest.approx(exact, abs=SIGMAS * math.sqrt(exact * (1 - exact) / count) + 1e-9)


@pytest.mark.parametrize("body", ["cube", "corner"])
@pytest.mark.parametrize("dimension", [1, 2, 4, 7])
def test_no_shift_in_the_body_loses_more(body, dimension):
    rng = np.random.default_rng(7)
    count = 30_000
    points = uniform_in(body, dimension, count, rng)
    shifts = uniform_in(body, dimension, 12, rng)
    shifts /= gauge(body, shifts)[:, np.newaxis]  # to the surface
    for outer in (1.0, 1.3, 1.7):
        most = lost_share(body, dimension, np.array([2.0 - outer]))[0]
        for shift in shifts:
            lost = np.mean(gauge(body, points - shift) > outer)
            assert lost <= most + SIGMAS * math.sqrt(most * (1 - most) / count) + 1e-9
        worst = vertex(dimension, worst_entries(body, dimension))
        lost = np.mean(gauge(body, points - worst) > outer)
        assert lost == pytest.approx(most, abs=SIGMAS * math.sqrt(most * (1 - most) / count) + 1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 41, 80, 81, 120])
def test_shares_in_exact_arithmetic(dimension):
    b = worst_entries("corner", dimension)
    for q in (
        Fraction(1, 2**40),
        Fraction(1, 1000),
        Fraction(1, 12),
        Fraction(3, 32),
        Fraction(1, 2),
        Fraction(15, 16),
    ):
        exact = 1 - kept_exactly(dimension + 1 - b, b, 1 - q)
        assert lost_share("corner", dimension, np.array([float(q)]))[0] == pytest.approx(float(exact), rel=1e-12)
        cube = 1 - (1 - q / 2) ** dimension
        assert lost_share("cube", dimension, np.array([float(q)]))[0] == pytest.approx(float(cube), rel=1e-12)
    beyond = 1 - Fraction(1, 2) ** dimension / math.comb(dimension + 1, b)
    assert lost_share("corner", dimension, np.array([1.5]))[0] == pytest.approx(float(beyond), rel=1e-13)


@pytest.mark.parametrize("dimension", [1000, 1001, 10**6])
def test_shares_of_many_entries(dimension):
    b = worst_entries("corner", dimension)
    a = dimension + 1 - b
    with mpmath.workdps(30):
        for q in (1e-9, 0.5 / dimension, 7.9 / dimension, 8.1 / dimension, 30.0 / dimension):
            r = 1 - mpmath.mpf(q)
            integral = mpmath.quad(lambda x: x ** (b - 1) * (1 + r - x) ** (a - 1), [r, r + mpmath.mpf(q) / 2, 1])  # noqa: B023
            exact = 1 - (b * r**a + a * r**b + a * b * integral) / (a + b)
            assert lost_share("corner", dimension, np.array([q]))[0] == pytest.approx(float(exact), rel=2e-12)


@pytest.mark.parametrize("dimension", [*range(1, 14), 30])
def test_the_middle_vertex_loses_most(dimension):
    n, middle = dimension + 1, worst_entries("corner", dimension)
    for r in (Fraction(i, 16) for i in range(17)):
        least = kept_exactly(n - middle, middle, r)
        assert all(kept_exactly(n - b, b, r) >= least for b in range(1, n))
        assert all(kept_exactly(n - b, b, r) == kept_exactly(b, n - b, r) for b in range(1, n))


@pytest.mark.parametrize("body", ["cube", "corner"])
def test_shares_rise_from_0_to_1(body):
    for dimension in (1, 2, 9, 100, 10**5):
        shares = lost_share(body, dimension, np.linspace(-0.5, 2.5, 3001))
        assert shares[0] == 0.0
        assert shares[-1] == 1.0
        assert np.all(np.diff(shares) >= -1e-13)
        steepest = np.diff(shares).max() / 1e-3
        assert steepest <= 0.5 * (dimension + 1.0) + 1e-9  # what the allowance for rounding rests on


def test_moments_in_closed_form():
    # E (U1^2 + U2^2)^2 = 2/5 + 2/9; with factors 1 and 2: 1/5 + 16/5 + 2 * 4/9.
    assert math.exp(log_square_moment("cube", 2, (), 2)) == pytest.approx(2 / 5 + 2 / 9, rel=1e-13)
    assert math.exp(log_square_moment("cube", 2, (1.0, 2.0), 2)) == pytest.approx(17 / 5 + 8 / 9, rel=1e-13)
    for order in range(1, 5):  # one entry: the same interval
        for body in ("cube", "corner"):
            assert math.exp(log_square_moment(body, 1, (3.0,), order)) == pytest.approx(9**order / (2 * order + 1))
    for dimension in (1, 5, 10, 1000):
        expected = (dimension + 3) / (6 * (dimension + 1)) * dimension
        assert math.exp(log_square_moment("corner", dimension, (), 1)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("body", ["cube", "corner"])
@pytest.mark.parametrize("factors", [(), (0.5, 1.0, 3.0, 3.0)])
def test_moments_by_monte_carlo(body, factors):
    rng = np.random.default_rng(1)
    points = uniform_in(body, 4, 400_000, rng) * (np.array(factors) if factors else 1.0)
    losses = np.einsum("ij,ij->i", points, points)
    for order in range(1, 5):
        powers = losses**order
        exact = math.exp(log_square_moment(body, 4, factors, order))
        assert powers.mean() == pytest.approx(exact, abs=SIGMAS * powers.std() / math.sqrt(len(powers)))


def test_cumulants_of_a_square():
    _, mean, variance, _, _ = square_cumulants(0.0)
    assert (mean, variance) == pytest.approx((1 / 3, 1 / 5 - 1 / 9))
