"""Correlated isotropic noise: the curve of the isotropic law at the worst vertex, loss, samples and the builder."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

import lessnoise as ln
from lessnoise.audit import audit
from lessnoise.audit.laws import draw_many
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import delta_of, law_delta
from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian
from lessnoise.mechanism.families.correlated_radial import CorrelatedRadial, worst_count
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import Radial, law_from_dict
from lessnoise.mechanism.least.correlated import best_common, correlated_radial
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.sampling import draw_noise

SIGMAS = 6.0
NEVER = 1e-9
SHELLS = Shells(3, (0.0, 2.0, 3.0, 5.0), (0.6, 0.3, 0.1))


def matrix(law, dimension):
    return np.eye(dimension) + law.common * np.ones((dimension, dimension))


# Privacy.


@pytest.mark.parametrize("dimension", [1, 2, 3, 6])
def test_the_worst_vertex_of_all(dimension):
    law = CorrelatedRadial(Radial(dimension, 1.0, 2.0), 0.3)
    vertices = np.array(list(itertools.product([0.0, 1.0], repeat=dimension))[1:])
    lengths = np.linalg.norm(np.linalg.solve(matrix(law, dimension), vertices.T), axis=0)
    for epsilon in (0.0, 0.2):
        found = law_delta(law, dimension, 1.0, epsilon, 1e-6)
        exact = law_delta(law.base, dimension, float(lengths.max()), epsilon, 1e-6)
        assert found.middle == pytest.approx(exact.middle, rel=1e-5)
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper
    ties = vertices[lengths > lengths.max() * (1 - 1e-9)].sum(axis=1)
    assert worst_count(law, dimension) in ties


def test_a_gaussian_base_is_correlated_gaussian_noise():
    for dimension in (1, 4, 25):
        law = CorrelatedRadial(Radial(dimension, 2.0, 3.0 * math.sqrt(2.0)), 0.2)
        ratio = 0.2 * (2.0 + 0.2 * dimension)
        gaussian = CorrelatedGaussian(9.0 * ratio, 9.0)
        for epsilon in (0.0, 0.5, 2.0):
            first, second = (delta_of(each, dimension, 1.0, epsilon) for each in (law, gaussian))
            assert first.middle == pytest.approx(second.middle, rel=1e-9)
        for order in (1, 2, 3, 4):
            first, second = (losses.raw_moment(each, dimension, order) for each in (law, gaussian))
            assert first == pytest.approx(second, rel=1e-11)
        for probability in (0.01, 0.5, 0.99):
            first, second = (losses.loss_quantile(each, dimension, probability) for each in (law, gaussian))
            assert first == pytest.approx(second, rel=1e-6)


def test_pure_where_the_base_is():
    law = CorrelatedRadial(Radial(5, 1.0, 2.0), 0.1)
    m = Mechanism("m", law, (5,), 1.0)
    pure = m.epsilon(0.0).upper
    assert math.isfinite(pure)
    assert m.delta(pure).upper == 0.0
    assert m.delta(0.9 * pure).lower > 0.0


# Loss and noise.


@pytest.mark.parametrize("law", [CorrelatedRadial(Radial(3, 1.3, 2.0), 0.4), CorrelatedRadial(SHELLS, 0.4)])
def test_loss_by_monte_carlo(law):
    rng = np.random.default_rng(1)
    count = 100_000
    noise = draw_many(law.base, (3,), count, rng) @ matrix(law, 3).T
    loss = np.einsum("ij,ij->i", noise, noise)
    for order in (1, 2, 3):
        powers = loss**order
        exact = losses.raw_moment(law, 3, order)
        assert powers.mean() == pytest.approx(exact, abs=SIGMAS * powers.std() / math.sqrt(count))
    for probability in (0.02, 0.5, 0.97):
        below = np.mean(loss <= losses.loss_quantile(law, 3, probability))
        assert below == pytest.approx(probability, abs=SIGMAS * math.sqrt(probability * (1 - probability) / count))


@pytest.mark.slow
@pytest.mark.parametrize("law", [CorrelatedRadial(Radial(3, 1.3, 2.0), 0.4), CorrelatedRadial(SHELLS, 0.4)])
def test_what_the_engine_draws_is_the_law(law):
    rng = np.random.default_rng(2)
    drawn = np.stack([draw_noise(law, (3,), rng) for _ in range(1500)])
    reference = draw_many(law, (3,), 1500, rng)
    for direction in ([1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [1.0, -1.0, 0.0]):
        one, other = drawn @ direction, reference @ direction
        assert stats.ks_2samp(one, other).pvalue > NEVER
        assert stats.ks_2samp(1.4 * one, other).pvalue < 1e-3


# Builder.


@pytest.mark.parametrize(
    "dimension", [1, 2, pytest.param(30, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]
)
def test_the_target_is_kept_with_less_noise_than_a_gaussian(dimension):
    corner = ln.changes.corner(2.0)
    m = correlated_radial(epsilon=1, delta=1e-6, shape=dimension, changes=corner)
    assert m.check().holds
    assert m.delta(1).lower > 0.999e-6 or m.epsilon(0.0).upper <= 1.0 + 1e-6
    assert Mechanism.from_json(m.to_json()) == m
    gaussian = ln.correlated_gaussian(epsilon=1, delta=1e-6, shape=dimension, sensitivity=2.0)
    ball = ln.least_noise(epsilon=1, delta=1e-6, sensitivity=2.0 * math.sqrt(dimension), shape=dimension)
    assert m.expected_loss <= gaussian.expected_loss
    assert m.expected_loss <= ball.expected_loss * (1 + 1e-9)


def test_the_multiple_of_the_sum():
    for dimension in (4, 9, 100, 10**6):
        root = math.sqrt(dimension)
        published = (math.sqrt(1.0 + root) - 1.0) / dimension
        assert best_common(dimension) == pytest.approx(published, rel=0.01)


def test_errors():
    with pytest.raises(InvalidInput, match="one bound"):
        correlated_radial(epsilon=1, delta=1e-6, shape=2, changes=ln.changes.corner([1.0, 2.0]))
    with pytest.raises(InvalidInput, match="one bound"):
        correlated_radial(epsilon=1, delta=1e-6, shape=2, changes=ln.changes.ball(1.0))
    with pytest.raises(InvalidInput, match="isotropic"):
        CorrelatedRadial(CorrelatedGaussian(1.0, 1.0), 0.1)
    law = CorrelatedRadial(SHELLS, 0.1)
    assert law_from_dict(json.loads(json.dumps(law.to_dict()))) == law
    with pytest.raises(InvalidInput, match="replace"):
        Mechanism("m", law, (3,), 1.0, "replace")
    with pytest.raises(InvalidInput, match="M=3"):
        Mechanism("m", law, (4,), 1.0)
    m = Mechanism("m", law, (3,), 1.0)
    with pytest.raises(InvalidInput, match="has a curve"):
        m.against(ln.changes.ball(1.0))


@pytest.mark.slow
def test_audits_of_it():
    m = correlated_radial(epsilon=0.5, delta=0.05, shape=(2, 2), changes=ln.changes.corner(1.0))
    report = audit(m, np.zeros((2, 2)), samples=20_000, rng=np.random.default_rng(1), progress=False)
    assert report.refuted is False
    assert report.delta > 0.5 * 0.05  # the likelihood attack sees most of it
