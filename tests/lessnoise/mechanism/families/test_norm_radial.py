"""Norm-radial noise: the exact curve against closed forms, quadrature and Monte Carlo; loss and samples."""

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from lessnoise.audit.laws import draw_many
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import delta_of, epsilon_of, law_delta
from lessnoise.mechanism.families.norm_bodies import gauge, worst_entries
from lessnoise.mechanism.families.norm_radial import NormRadial, Slices
from lessnoise.mechanism.law import Laplace, Radial, law_from_dict
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import draw_noise

SIGMAS = 6.0
NEVER = 1e-9
BODIES = ["cube", "corner"]


def usual_scale(dimension, power):
    """About the scale at which epsilon = 1 is met by a sensitivity of 1."""
    return (dimension + 1.0) * ((dimension + power) / power) ** (-1.0 / power)


def by_quadrature(law, dimension, sensitivity, epsilon):
    """The integral of the module in 30 digits, for the cube."""
    with mpmath.workdps(30):
        p, d = mpmath.mpf(law.power), mpmath.mpf(sensitivity) / mpmath.mpf(law.scale)
        shape = (dimension + p) / p

        def integrand(x):
            q = 1 + d * x ** (-1 / p) - (1 + epsilon / x) ** (1 / p)
            q = min(max(q, 0), 2)
            return (1 - (1 - q / 2) ** dimension) * mpmath.exp((shape - 1) * mpmath.log(x) - x - mpmath.loggamma(shape))

        edges = [shape * f for f in (0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.3, 1.6, 2, 3, 5, 9, 20, 60)]
        roots = []
        for level in (0, 2):
            for low, high in itertools.pairwise(edges[1:]):
                at = [1 + d * x ** (-1 / p) - (1 + epsilon / x) ** (1 / p) - level for x in (low, high)]
                if at[0] * at[1] < 0:
                    roots.append(
                        mpmath.findroot(
                            lambda x: 1 + d * x ** (-1 / p) - (1 + epsilon / x) ** (1 / p) - level,  # noqa: B023
                            (low, high),
                            solver="anderson",
                        )
                    )
        return float(mpmath.quad(integrand, sorted([*edges, *roots])))


# Privacy.


@pytest.mark.parametrize("body", BODIES)
def test_one_entry_is_a_laplace_a_gaussian_or_a_radial_law(body):
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        one = delta_of(NormRadial(body, 1, 0.4), 1, 1.0, epsilon)
        laplace = delta_of(Laplace(0.4), 1, 1.0, epsilon)
        assert (one.lower, one.upper) == pytest.approx((laplace.lower, laplace.upper), rel=1e-12)
        for power in (2.0, 1.25, 5.0):
            found = delta_of(NormRadial(body, power, 1.3), 1, 1.0, epsilon)
            exact = delta_of(Radial(1, power, 1.3), 1, 1.0, epsilon, 1e-7)
            assert found.lower <= exact.upper
            assert exact.lower <= found.upper
            assert found.relative_width < 1e-9


@pytest.mark.parametrize("dimension", [1, 2, 10, 1000, 10**6])
def test_the_cube_with_power_1_in_closed_form_and_as_an_integral(dimension):
    for ratio, epsilon in ((1.5, 1.0), (1.00001, 1.0), (3.0, 0.0), (0.01, 0.002)):
        exact = -math.expm1(0.5 * (epsilon - ratio))
        closed = law_delta(NormRadial("cube", 1, 1.0 / ratio), dimension, 1.0, epsilon, 1e-6)
        assert closed.lower <= exact * (1 + 1e-9)
        assert closed.upper >= exact * (1 - 1e-9)
        integral = Slices("cube", dimension, 1.0, ratio, epsilon).bracket()
        assert integral.lower <= exact <= integral.upper
        assert integral.relative_width < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 7, 40])
@pytest.mark.parametrize("power", [1.25, 2.0, 6.0])
def test_the_cube_by_quadrature_in_30_digits(dimension, power):
    law = NormRadial("cube", power, usual_scale(dimension, power))
    for sensitivity, epsilon in ((1.0, 1.0), (1.0, 2.0), (3.0, 0.5)):
        found = law_delta(law, dimension, sensitivity, epsilon, 1e-6)
        exact = by_quadrature(law, dimension, sensitivity, epsilon)
        assert exact == pytest.approx(found.middle, rel=1e-8, abs=1e-30)
        assert found.relative_width < 1e-6 or found.upper < 1e-30


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dimension", [1, 2, 3, 8])
@pytest.mark.parametrize("power", [1.0, 1.5, 4.0])
def test_the_curve_by_monte_carlo(body, dimension, power):
    # delta = E (1 - e^(eps - L))_+: two-sided at the worst vertex, one-sided elsewhere.
    rng = np.random.default_rng(11)
    count = 50_000
    law = NormRadial(body, power, 0.6 * usual_scale(dimension, power))
    noise = draw_many(law, (dimension,), count, rng)
    shifts = rng.uniform(-1, 1, (4, dimension))
    shifts /= gauge(body, shifts)[:, np.newaxis]
    worst = np.where(np.arange(dimension) < worst_entries(body, dimension), 1.0, 0.0)
    near = gauge(body, noise) / law.scale
    for epsilon in (0.0, 0.5, 1.2):
        exact = delta_of(law, dimension, 1.0, epsilon)
        for shift in (worst, *shifts):
            loss = (gauge(body, noise - shift) / law.scale) ** power - near**power
            gains = -np.expm1(np.minimum(epsilon - loss, 0.0))
            slack = SIGMAS * gains.std() / math.sqrt(count) + 20.0 / count * (exact.upper < 1e-3)
            assert gains.mean() <= exact.upper + slack
            if shift is worst:
                assert gains.mean() >= exact.lower - slack


@pytest.mark.parametrize("body", BODIES)
def test_brackets_are_ordered_and_fall_with_epsilon(body):
    for dimension in (1, 2, 5, 30, 300, 10**5):
        for power in (1.0, 1.03, 2.0, 9.0):
            law = NormRadial(body, power, usual_scale(dimension, power))
            found = [law_delta(law, dimension, 1.1, epsilon, 1e-6) for epsilon in (0.0, 0.2, 0.9, 1.0, 2.0, 6.0)]
            assert all(0.0 <= each.lower <= each.upper <= 1.0 for each in found)
            assert all(first.upper >= second.lower for first, second in itertools.pairwise(found))
            assert all(each.upper < 1e-30 or each.relative_width < 1e-5 for each in found)


def test_the_corner_body_loses_less_than_the_cube():
    for dimension in (2, 10, 100):
        for power in (1.0, 1.5):
            scale = usual_scale(dimension, power)
            corner, cube = (
                law_delta(NormRadial(body, power, scale), dimension, 1.5, 1.0, 1e-6) for body in BODIES[::-1]
            )
            assert corner.upper < cube.lower


@pytest.mark.parametrize("body", BODIES)
def test_power_1_is_pure(body):
    law = NormRadial(body, 1, 0.5)
    assert delta_of(law, 6, 1.0, 2.0 * (1 + 1e-14)).upper == 0.0
    assert delta_of(law, 6, 1.0, 1.99).lower > 0.0
    assert epsilon_of(law, 6, 1.0, 0.0).upper == pytest.approx(2.0)
    assert epsilon_of(NormRadial(body, 1.5, 0.5), 6, 1.0, 0.0).upper == math.inf
    near = epsilon_of(law, 6, 1.0, 1e-3)
    assert near.upper < 2.0
    assert delta_of(law, 6, 1.0, near.upper).upper <= 1e-3


# Loss.


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dimension", [1, 2, 3, 6, 40, 300])
@pytest.mark.parametrize("factors", [False, True])
def test_moments_and_quantiles_by_monte_carlo(body, dimension, factors):
    rng = np.random.default_rng(2)
    count = 60_000 if dimension < 100 else 15_000
    law = NormRadial(body, 1.5, 2.0, tuple(0.5 + np.arange(dimension) % 3) if factors else ())
    noise = draw_many(law, (dimension,), count, rng)
    loss = np.einsum("ij,ij->i", noise, noise)
    for order in (1, 2):
        powers = loss**order
        exact = losses.raw_moment(law, dimension, order)
        assert powers.mean() == pytest.approx(exact, abs=SIGMAS * powers.std() / math.sqrt(count))
    for probability in (0.01, 0.3, 0.5, 0.95):
        below = np.mean(loss <= losses.loss_quantile(law, dimension, probability))
        slack = SIGMAS * math.sqrt(probability * (1 - probability) / count)
        assert below == pytest.approx(probability, abs=slack)


def test_the_pure_losses_of_ten_entries():
    assert losses.expected_loss(NormRadial("cube", 1, 1), 10) / 10 == pytest.approx(44.0, rel=1e-12)
    assert losses.expected_loss(NormRadial("corner", 1, 1), 10) / 10 == pytest.approx(26.0, rel=1e-12)


def test_quantiles_of_one_entry_in_closed_form():
    laplace = Laplace(1.7)
    for body in BODIES:
        law = NormRadial(body, 1, 1.7)
        for probability in (0.001, 0.5, 0.999):
            exact = losses.loss_quantile(laplace, 1, probability)
            assert losses.loss_quantile(law, 1, probability) == pytest.approx(exact, rel=1e-6)
        for order in (1, 2, 3, 4):
            assert losses.raw_moment(law, 1, order) == pytest.approx(losses.raw_moment(laplace, 1, order), rel=1e-12)


@pytest.mark.parametrize("body", BODIES)
def test_quantiles_of_many_entries_are_near_the_mean(body):
    law = NormRadial(body, 1, 1.0)
    for dimension in (199, 201, 100_001):
        middle = losses.loss_quantile(law, dimension, 0.5)
        assert middle == pytest.approx(losses.expected_loss(law, dimension), rel=0.2 if body == "corner" else 0.02)
        assert losses.loss_quantile(law, dimension, 0.1) < middle < losses.loss_quantile(law, dimension, 0.9)


def test_the_two_ways_to_quantiles_meet(monkeypatch):
    from lessnoise.mechanism.families import norm_loss

    for body, dimension in (("cube", 150), ("corner", 150)):
        law = NormRadial(body, 1, 1.0)
        exact = [losses.quantile(law, dimension, probability) for probability in (0.1, 0.5, 0.9)]
        norm_loss._square_sum.cache_clear()
        monkeypatch.setattr(norm_loss, "_MOST_TRANSFORMS", 0)
        expanded = [losses.quantile(law, dimension, probability) for probability in (0.1, 0.5, 0.9)]
        monkeypatch.undo()
        norm_loss._square_sum.cache_clear()
        assert expanded == pytest.approx(exact, rel=1e-5)


# Noise.


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("dimension", "power"), [(1, 1.0), (3, 1.0), (6, 1.75)])
def test_what_the_engine_draws_is_the_law(body, dimension, power):
    law = NormRadial(body, power, 3.0)
    rng = np.random.default_rng(5)
    drawn = np.stack([draw_noise(law, (dimension,), rng) for _ in range(1500)])
    # ||n||^p/s^p is Gamma(M/p): the radius of a uniform point of uK is u U^(1/M).
    norms = (gauge(body, drawn) / law.scale) ** power
    assert stats.kstest(norms, stats.gamma(dimension / power).cdf).pvalue > NEVER
    reference = draw_many(law, (dimension,), 3000, rng)
    for one, other in ((drawn[:, 0], reference[:, 0]), (drawn.sum(axis=1), reference.sum(axis=1))):
        assert stats.ks_2samp(one, other).pvalue > NEVER
        assert stats.ks_2samp(1.3 * one, other).pvalue < 1e-3  # the test has the power to tell


@pytest.mark.slow
def test_factors_stretch_the_noise():
    law = NormRadial("corner", 1, 1.0, (1.0, 10.0))
    rng = np.random.default_rng(6)
    drawn = np.stack([draw_noise(law, (2,), rng) for _ in range(1500)])
    assert stats.ks_2samp(10.0 * drawn[:, 0], drawn[:, 1]).pvalue > NEVER
    assert stats.ks_2samp(drawn[:, 0], drawn[:, 1]).pvalue < NEVER


# Description.


def test_json_and_errors():
    law = NormRadial("corner", 1.5, 2.0, (1.0, 2.0))
    assert law_from_dict(json.loads(json.dumps(law.to_dict()))) == law
    assert NormRadial("cube", 1.1, 1.0).power == round(1.1 * 2**20) / 2**20
    for wrong in ({"body": "ball"}, {"power": 0.9}, {"power": 101}, {"scale": 0}, {"factors": (1.0, 0.0)}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            NormRadial(**({"body": "cube", "power": 1, "scale": 1.0} | wrong))
    with pytest.raises(InvalidInput, match="one factor for each entry"):
        Mechanism("m", law, (3,), 1.0)
    with pytest.raises(InvalidInput, match="replaced individual"):
        Mechanism("m", law, (2,), 1.0, Neighbours.REPLACE)
    assert Mechanism("m", NormRadial("cube", 1, 1.0), (2,), 1.0, Neighbours.REPLACE).delta(1).upper == 0.0
