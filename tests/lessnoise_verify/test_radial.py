"""Radial noise: the verifier's enclosures against closed forms, quadrature, published values and the library."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from flint import arb

import lessnoise as ln
from lessnoise.mechanism.curve.dispatch import delta_of
from lessnoise_verify.balls import ball, ends, working
from lessnoise_verify.changes import counts
from lessnoise_verify.document import Fields, NotProved, Unreadable
from lessnoise_verify.laws import Case, delta
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.radial import Lunes, radial_delta


def enclosed(m, k, p, scale, sensitivity, epsilon, bits=40):
    noise = Fields({"kind": "radial", "k": k, "p": p, "scale": scale}, "noise")
    found = delta(noise, Case((m,), Fraction(sensitivity)), Fraction(epsilon), bits)
    noise.end()
    return found


def holds(found, value, relative=0.0):
    low, high = (float(end) for end in ends(found))
    return low * (1 - relative) <= value <= high * (1 + relative)


def narrow(found, relative):
    low, high = ends(found)
    return high - low <= Fraction(relative) * high


@pytest.mark.parametrize(
    ("m", "shift", "sigma", "epsilon", "value"),
    [
        (7921, math.sqrt(2), 402110.0976, 1e-5, 0.216642),
        (7921, math.sqrt(2), 402110.0976, 0.5, 0.123132),
        (7921, math.sqrt(2), 402110.0976, 3.0, 0.060434),
        (100, 1.0, 2663.258234, 1e-3, 0.211605),
        (1000, 1.0, 20618.255045, 0.5, 0.136015),
    ],
)
def test_values_that_refute_the_published_calibration(m, shift, sigma, epsilon, value):
    found = enclosed(m, 1, 2.0, math.sqrt(2 * sigma), shift, epsilon)
    assert narrow(found, 1e-11)
    assert abs(float(found.mid()) - value) < 6e-7


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.99])
def test_laplace_is_the_closed_form(epsilon):
    found = enclosed(1, 1, 1.0, 0.5, 0.5, epsilon)
    assert narrow(found, 1e-11)
    assert found.overlaps(1 - ((ball(epsilon) - 1) / 2).exp())


@pytest.mark.parametrize("m", [1, 2, 5, 40, 10**4, 10**9, 10**15])
@pytest.mark.parametrize(("square", "epsilon"), [(Fraction(1, 2), Fraction(1)), (Fraction(3), Fraction(10))])
def test_the_integral_of_a_gaussian_is_the_closed_form(m, square, epsilon):
    exact = gaussian_delta(square, epsilon, 60)
    # A ball instead of a fraction as the squared shift: the closed form is not used.
    found = radial_delta(Fraction(m), Fraction(2), Fraction(1), m, ball(square / 2), epsilon, 40)
    assert narrow(found, 1e-11)
    assert found.overlaps(exact)
    assert enclosed(m, m, 2.0, 1.0, 1.0, 1.0).overlaps(gaussian_delta(Fraction(2), Fraction(1), 60))


@pytest.mark.parametrize(("k", "p", "epsilon"), [(1.0, 3.0, 0.7), (1.0, 0.5, 0.9), (1.0, 1.7, 2.0), (0.5, 2.0, 0.2)])
def test_one_dimension_by_quadrature(k, p, epsilon):
    """Directly: the integral of (f(x) - e^eps f(x + 1))_+ over the line, with the loss's changes of sign as ends."""

    def density(x):
        return abs(x) ** (k - 1) * mpmath.exp(-(abs(x) ** p)) * p / (2 * mpmath.gamma(k / p))

    def difference(x):
        return density(x) - mpmath.exp(epsilon) * density(x + 1)

    fine = [side * 10.0**-power for power in np.linspace(0.0, 12.0, 240) for side in (-1, 1)]
    grid = sorted(
        {*map(float, np.linspace(-12.0113, 12.0117, 301)), *fine, *(each - 1.0 for each in fine)} - {0.0, -1.0}
    )
    signs = [difference(x) > 0 for x in grid]
    ends_ = [-1.0, 0.0]
    for low, high, before, after in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if before != after and not low < 0 < high and not low < -1 < high:
            ends_.append(float(mpmath.findroot(difference, (low, high), solver="anderson")))
    points = sorted({-60.0, *ends_, 60.0})
    total = mpmath.mpf(0)
    for low, high in pairwise(points):
        if difference((low + high) / 2) > 0:
            total += mpmath.quad(difference, [low, (low + high) / 2, high])
    found = enclosed(1, k, p, 1.0, 1.0, epsilon)
    assert narrow(found, 1e-9)
    assert abs(float(found.mid()) - float(total)) < 1e-7 * float(total)


@pytest.mark.parametrize(
    ("k", "p", "scale", "epsilon"), [(3.0, 1.0, 0.5, 1.0), (2.0, 1.5, 1.0, 0.5), (3.0, 4.0, 1.5, 1.0)]
)
def test_three_dimensions_by_quadrature(k, p, scale, epsilon):
    """The cosine of the angle between noise and shift is uniform: a plain sum over radii and cosines."""
    r = (np.arange(1500) + 0.5) * 0.008 * scale
    t = (np.arange(1000) + 0.5) / 500 - 1.0
    mass = r ** (k - 1) * np.exp(-((r / scale) ** p))
    moved = np.sqrt(r[:, None] ** 2 + 2 * r[:, None] * t + 1.0)
    loss = (3 - k) * np.log(moved / r[:, None]) + (moved / scale) ** p - (r[:, None] / scale) ** p
    value = float(
        (mass / mass.sum() * np.maximum(1 - np.exp(epsilon - np.maximum(loss, epsilon)), 0).mean(axis=1)).sum()
    )
    assert abs(float(enclosed(3, k, p, scale, 1.0, epsilon).mid()) / value - 1) < 1e-3


@pytest.mark.parametrize("m", [1, 2, 7, 300])
def test_caps_are_incomplete_beta_functions(m):
    for x in (-0.9, -0.01, 0.0, 0.001, 0.2, 0.5, 0.78, 0.79, 0.95):
        with mpmath.workdps(40):
            half = mpmath.betainc((m + 1) / mpmath.mpf(2), 0.5, 0, 1 - mpmath.mpf(x) ** 2, regularized=True) / 2
            exact = half if x >= 0 else 1 - half
        found = Lunes(m).cap(arb(x))
        if exact > 1e-290:
            assert holds(found, float(exact), 1e-14)
            assert narrow(found, 1e-7)


def test_noise_that_is_pure_has_no_delta():
    assert enclosed(5, 5, 1.0, 0.25, 0.5, 2.0) == 0
    assert enclosed(5, 5, 0.5, 0.25, 1.0, 2.0) == 0  # (1/0.25)^0.5 = 2
    assert enclosed(5, 5, 0.3, 1.0, 1.0, 1.0001) == 0
    assert enclosed(5, 5, 0.5, 0.25, 1.0, 1.5) > 0
    assert enclosed(5, 4.0, 1.0, 0.25, 0.5, 2.0) > 0  # a pole: no epsilon is pure


def test_the_square_of_a_shift_may_have_no_root():
    changes = counts(2, 1, "replace", 10)  # the largest l2 norm is 2
    noise = Fields({"kind": "radial", "k": 10, "p": 1.5, "scale": 3.0}, "noise")
    found = delta(noise, Case((10,), Fraction(7), "replace", changes), Fraction(1), 40)
    assert found.overlaps(enclosed(10, 10, 1.5, 3.0, 2.0, 1.0))
    root = radial_delta(Fraction(10), Fraction(3, 2), Fraction(3), 10, Fraction(2), Fraction(1), 40)
    assert enclosed(10, 10, 1.5, 3.0, 1.41421356, 1.0) < root < enclosed(10, 10, 1.5, 3.0, 1.41421357, 1.0)


def random_members(count):
    draw = random.Random(19)
    for _ in range(count):
        m = draw.choice([1, 2, 3, 4, 10, 30, 100, 1000, 10**4, 10**6, 10**9])
        k = min(float(draw.choice([m, m, 1, 0.9 * m, draw.random() * m])), float(m))
        p = draw.choice([1.0, 1.0, 2.0, 0.5, 3.0, draw.uniform(0.4, 3.0)])
        epsilon = 10 ** draw.uniform(-4, 1.5)
        target = 10 ** draw.choice([-0.5, -2.0, -6.0, -12.0, -100.0, -290.0])
        try:
            scale = ln.radial(epsilon=epsilon, delta=target, sensitivity=1.0, shape=m, k=k, p=p).law.scale
        except ln.LessnoiseError:
            scale = 10 ** draw.uniform(-2, 2)
        yield m, k, p, scale * draw.choice([1, 1, 0.5]), epsilon


def test_the_library_agrees():
    for m, k, p, scale, epsilon in random_members(6):
        bracket = delta_of(ln.Radial(k, p, scale), m, 1.0, epsilon)
        found = enclosed(m, k, p, scale, 1.0, epsilon)
        low, high = (float(end) for end in ends(found))
        assert bracket.lower * (1 - 1e-12) <= low <= high <= bracket.upper * (1 + 1e-12), (m, k, p, scale, epsilon)
        assert narrow(found, 1e-7)


def test_delta_falls_with_epsilon_and_grows_with_the_shift():
    found = [enclosed(20, 15.0, 1.4, 1.0, 1.0, epsilon) for epsilon in (0.0, 1e-9, 0.1, 1.0, 3.0)]
    assert all(after < before for before, after in pairwise(found))
    found = [enclosed(20, 15.0, 1.4, 1.0, shift, 0.5) for shift in (0.1, 0.9999999, 1.0, 5.0)]
    assert all(after > before for before, after in pairwise(found))


def test_more_bits_are_inside_fewer():
    fine = radial_delta(Fraction(20), Fraction(1.3), Fraction(1), 30, Fraction(1), Fraction(1), 100)
    coarse = enclosed(30, 20.0, 1.3, 1.0, 1.0, 1.0)
    assert coarse.contains(fine)
    with working(200):
        assert narrow(fine, Fraction(1, 2**98))


@pytest.mark.parametrize(
    ("m", "k", "p", "scale", "shift", "epsilon"),
    [
        (10**15, 1e15, 1.3, 1e-300, 1e-300, 1.0),
        (10**15, 1e-9, 1000.0, 1e300, 1e-300, 1e5),
        (3, 1e-300, 1e-3, 1e-308, 1e308, 0.0),
        (3, 3.0, 1000.0, 1.0, 1.0, 1e-300),
        (2, 2 - 2**-51, 1.0, 1.0, 1.0, 5.0),
        (10**15, 0.5, 0.5, 5e-324, 1e308, 1e-3),
    ],
)
def test_extreme_parameters_end(m, k, p, scale, shift, epsilon):
    try:
        found = enclosed(m, k, p, scale, shift, epsilon)
    except NotProved:
        return
    assert found.overlaps(arb(0).union(arb(1)))
    assert found.is_finite()


@pytest.mark.parametrize(
    "wrong", [{"k": 3.5}, {"k": 0}, {"p": 1e-4}, {"p": 1e4}, {"scale": -1.0}, {"scale": "1"}, {"k": True}]
)
def test_wrong_fields_are_unreadable(wrong):
    noise = Fields({"kind": "radial", "k": 1, "p": 1.0, "scale": 1.0, **wrong}, "noise")
    with pytest.raises(Unreadable):
        delta(noise, Case((3,), Fraction(1)), Fraction(1), 40)
