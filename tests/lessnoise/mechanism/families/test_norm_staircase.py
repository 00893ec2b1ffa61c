"""Staircases in the norm of a body: curves against shells, sums and Monte Carlo; steps, loss, samples."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from lessnoise.audit.laws import draw_many
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import delta_of, epsilon_of, law_delta
from lessnoise.mechanism.families.norm_bodies import gauge, worst_entries
from lessnoise.mechanism.families.norm_radial import NormRadial
from lessnoise.mechanism.families.norm_staircase import NormStaircase, steps
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import law_from_dict
from lessnoise.mechanism.sampling import draw_noise

SIGMAS = 6.0
NEVER = 1e-9
BODIES = ["cube", "corner"]


def heights(law, norms):
    """Ln of the density, from the definition."""
    edges = law.width * (law.share + np.arange(2000))
    return -law.rate * np.searchsorted(edges, norms)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.4), (3.0, 0.2), (0.5, 1.0)])
def test_one_entry_as_shells(body, rate, share):
    law = NormStaircase(body, rate, share, 1.5)
    count = math.ceil(40.0 / rate)
    edges = np.append(0.0, law.width * (share + np.arange(count)))
    masses = np.exp(-rate * np.arange(count)) * np.diff(edges)
    shells = Shells(1, tuple(edges), tuple(masses / masses.sum()))
    for sensitivity in (1.5, 1.0, 2.2, 4.0):
        for epsilon in (0.0, 0.3, rate * 0.999, rate, 1.7 * rate):
            found = law_delta(law, 1, sensitivity, epsilon, 1e-6)
            exact = law_delta(shells, 1, sensitivity, epsilon, 1e-6)
            assert found.middle == pytest.approx(exact.middle, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.parametrize(("rate", "share"), [(1.0, 0.6), (4.0, 0.1)])
def test_the_curve_by_monte_carlo(body, dimension, rate, share):
    rng = np.random.default_rng(3)
    count = 50_000
    law = NormStaircase(body, rate, share, 1.0)
    noise = draw_many(law, (dimension,), count, rng)
    near = heights(law, gauge(body, noise))
    shifts = rng.uniform(-1, 1, (5, dimension))
    shifts /= gauge(body, shifts)[:, np.newaxis]
    worst = np.where(np.arange(dimension) < worst_entries(body, dimension), 1.0, 0.0)
    for size in (1.0, 1.6):
        for epsilon in (0.0, 0.4 * rate, 0.8 * rate, 1.1 * rate):
            exact = delta_of(law, dimension, size, epsilon)
            for shift in (worst, *shifts):
                loss = near - heights(law, gauge(body, noise - size * shift))
                gains = -np.expm1(np.minimum(epsilon - loss, 0.0))
                slack = SIGMAS * gains.std() / math.sqrt(count) + 1e-12
                assert gains.mean() <= exact.upper + slack
                if shift is worst:
                    assert gains.mean() >= exact.lower - slack


@pytest.mark.parametrize("body", BODIES)
def test_pure_for_one_step(body):
    law = NormStaircase(body, 2.0, 0.3, 1.5)
    for dimension in (1, 4, 200):
        assert delta_of(law, dimension, 1.5, 2.0).upper == 0.0
        assert delta_of(law, dimension, 1.5, 1.999).lower > 0.0
        assert epsilon_of(law, dimension, 3.0, 0.0).upper == pytest.approx(4.0)
        assert delta_of(law, dimension, 1.6, 2.0).lower > 0.0
        found = [delta_of(law, dimension, 1.5, epsilon) for epsilon in (0.0, 0.5, 1.0, 1.9, 2.0)]
        assert all(each.lower <= each.upper for each in found)
        assert all(first.upper >= second.lower for first, second in itertools.pairwise(found))


def test_many_small_steps_are_a_slope():
    # Narrow steps of a small rate: density e^(-rate ||n||/width).
    width, rate = 1 / 32, 1 / 32
    for body in BODIES:
        for dimension in (1, 10, 1000):
            steep = NormRadial(body, 1, width / rate)
            law = NormStaircase(body, rate, 1.0, width)
            ratio = losses.expected_loss(law, dimension) / losses.expected_loss(steep, dimension)
            assert 0.999 < ratio < 1.1
            first, second = (delta_of(each, dimension, 1.5, 1.0).middle for each in (law, steep))
            assert first == pytest.approx(second, rel=0.1)


@pytest.mark.parametrize("dimension", [1, 3, 50, 10**5])
def test_steps_by_their_definition(dimension):
    for rate, share in ((0.5, 0.5), (8.0, 0.05), (100.0, 1.0)):
        law = NormStaircase("cube", rate, share, 2.0)
        radii, chances = steps(law, dimension)
        assert chances.sum() == pytest.approx(1.0, rel=1e-12)
        largest = int(np.argmax(chances))
        ratios = np.log(chances[1:] / chances[:-1])
        expected = dimension * np.log1p(2.0 / radii[:-1]) - rate
        near = slice(max(largest - 20, 0), largest + 20)
        assert ratios[near] == pytest.approx(expected[near], abs=1e-9 * dimension)
        assert chances[-1] < 1e-40
        assert chances[0] < 1e-40 or radii[0] == pytest.approx(2.0 * share)


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dimension", [1, 2, 10])
def test_moments_and_quantiles_by_monte_carlo(body, dimension):
    rng = np.random.default_rng(4)
    law = NormStaircase(body, 2.0, 0.7, 1.3, tuple(1.0 + np.arange(dimension) % 2))
    noise = draw_many(law, (dimension,), 60_000, rng)
    loss = np.einsum("ij,ij->i", noise, noise)
    for order in (1, 2, 3):
        powers = loss**order
        exact = losses.raw_moment(law, dimension, order)
        assert powers.mean() == pytest.approx(exact, abs=SIGMAS * powers.std() / math.sqrt(len(loss)))
    for probability in (0.05, 0.5, 0.95):
        below = np.mean(loss <= losses.loss_quantile(law, dimension, probability))
        slack = SIGMAS * math.sqrt(probability * (1 - probability) / len(loss)) + 1e-3 * (dimension == 2)
        assert below == pytest.approx(probability, abs=slack)


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_what_the_engine_draws_is_the_law(body):
    law = NormStaircase(body, 2.0, 0.4, 3.0)
    rng = np.random.default_rng(5)
    drawn = np.stack([draw_noise(law, (4,), rng) for _ in range(1500)])
    reference = draw_many(law, (4,), 3000, rng)
    for one, other in (
        (gauge(body, drawn), gauge(body, reference)),
        (drawn[:, 1], reference[:, 1]),
        (drawn.sum(axis=1), reference.sum(axis=1)),
    ):
        assert stats.ks_2samp(one, other).pvalue > NEVER
        assert stats.ks_2samp(1.3 * one, other).pvalue < 1e-3


def test_json_and_errors():
    law = NormStaircase("corner", 1.5, 0.5, 2.0, (1.0, 2.0))
    assert law_from_dict(json.loads(json.dumps(law.to_dict()))) == law
    for wrong in ({"body": "ball"}, {"rate": 0.001}, {"share": 1.1}, {"share": 0}, {"width": 0}, {"factors": [-1]}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            NormStaircase(**({"body": "cube", "rate": 1, "share": 0.5, "width": 1.0} | wrong))
    with pytest.raises(InvalidInput, match="too many steps"):
        NormStaircase("cube", 1 / 64, 0.5, 1.0).check_shape((10**9,))
