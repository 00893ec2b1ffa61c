"""Noise of every rank: exact calibration by quadrature and by draws, the covariance, and a bound for all ranks."""

import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise_paper import theory
from tests.helpers import oracles

SIGMAS = 6.5  # a false alarm is rarer than 1e-10; the seeds are fixed
TARGET = (100, 1e-3, 1e-5)  # M, epsilon, delta: inside the paper's range


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "ratio"), [(1, 1.996e4), (2, 16.01), (3, 4.241), (5, 1.984), (10, 1.2909), (50, 1.00055), (100, 1.0)]
)
def test_loss_against_rank_at_equal_exact_privacy(rank, ratio):
    dimension, epsilon, delta = TARGET
    noise = theory.rank_noise(dimension, rank, epsilon, delta)
    eigenvalue = noise.expected_loss / rank
    # By quadrature of another formula: delta is just kept, so that the loss is the least of this rank.
    exact = oracles.delta_positive(oracles.Case(dimension, rank, 2.0, math.sqrt(2.0 * eigenvalue), 1.0, epsilon))
    assert 0.999 * delta < exact <= delta * (1 + 1e-9)
    sigma = float(oracles.gaussian_sigma(epsilon, delta))
    assert noise.expected_loss / (dimension * sigma**2) == pytest.approx(ratio, rel=2e-3)
    # By draws: this scale keeps delta, two thirds of it do not, and half as much again is more than enough.
    deltas = [
        theory.simulated_delta(
            dimension, rank, factor**2 * eigenvalue, epsilon, draws=100_000, rng=np.random.default_rng([21, rank])
        )
        for factor in (2 / 3, 1.0, 3 / 2)
    ]
    assert abs(deltas[1].mean - delta) < SIGMAS * deltas[1].error
    assert deltas[0].mean - delta > SIGMAS * deltas[0].error
    assert delta - deltas[2].mean > SIGMAS * deltas[2].error


@pytest.mark.parametrize(("dimension", "rank"), [(4, 1), (7, 3), (50, 49), (50, 50)])
def test_simulated_delta_is_the_exact_one(dimension, rank):
    eigenvalue, epsilon = 3.0, 0.4
    found = theory.simulated_delta(
        dimension, rank, eigenvalue, epsilon, draws=50_000, rng=np.random.default_rng([22, dimension, rank])
    )
    law = ln.Radial(k=rank, p=2, scale=math.sqrt(2.0 * eigenvalue))
    exact = ln.mechanism.delta_of(law, dimension, 1.0, epsilon)
    assert abs(found.mean - exact.upper) < SIGMAS * found.error < 0.1 * exact.upper


def test_the_covariance_of_a_random_direction_is_a_multiple_of_the_identity():
    dimension, eigenvalue, count = 6, 3.0, 6000
    rng = np.random.default_rng(23)
    draws = np.array([theory.random_basis_noise(dimension, [eigenvalue], rng) for _ in range(count)])
    products = draws[:, :, None] * draws[:, None, :]
    covariance, error = products.mean(0), products.std(0) / math.sqrt(count)
    wanted = eigenvalue / dimension * np.eye(dimension)
    assert (np.abs(covariance - wanted) < SIGMAS * error).all()
    assert (np.abs(covariance - 2 / 3 * wanted).max(0) > SIGMAS * error.diagonal()).all(), "other scales are seen"
    assert np.linalg.matrix_rank(covariance) == dimension
    # The loss is the trace, as Proposition 1 says, and one draw alone has rank 1.
    losses = (draws**2).sum(1)
    assert abs(losses.mean() - eigenvalue) < SIGMAS * losses.std() / math.sqrt(count)
    assert np.linalg.matrix_rank(np.outer(draws[0], draws[0])) == 1


@pytest.mark.slow
def test_no_rank_goes_below_the_bound():
    dimension, epsilon, delta = 10, 1.0, 1e-6
    bound = theory.any_rank_bound(dimension, epsilon, delta)
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1}
    least = ln.least_noise(**target, shape=dimension).expected_loss
    assert bound <= least < 1.05 * bound
    assert bound == pytest.approx(ln.loss_lower_bound(**target, shape=dimension), rel=1e-12)
    for rank in (1, 3, 9, 10):
        assert theory.rank_noise(dimension, rank, epsilon, delta).expected_loss >= least
    # Beyond 100 entries the bound grows in proportion, and stays below what is possible.
    hundred = theory.any_rank_bound(100, epsilon, delta)
    for size in (1000, 10**6):
        many = theory.any_rank_bound(size, epsilon, delta)
        assert many == pytest.approx(size / 100 * hundred, rel=1e-12)
        assert many < theory.exact_analytic_loss(size, epsilon, delta) < 1.1 * many


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: theory.rank_noise(5, 6, 1, 0.1), ["rank=6", "dimension=5", "at most the dimension"]),
        (lambda: theory.rank_noise(5, 0, 1, 0.1), ["rank=0", "at least 1"]),
        (lambda: theory.any_rank_bound(0, 1, 0.1), ["dimension=0", "at least 1"]),
        (lambda: theory.any_rank_bound(5, -1, 0.1), ["epsilon=-1", "above 0"]),
        (
            lambda: theory.simulated_delta(5, 1, 0.0, 1, draws=10, rng=np.random.default_rng(0)),
            ["eigenvalue=0", "above 0"],
        ),
        (
            lambda: theory.simulated_delta(5, 1, 1e-30, 1, draws=10, rng=np.random.default_rng(0)),
            ["eigenvalue=1e-30", "pass at least"],
        ),
        (
            lambda: theory.simulated_delta(5, 6, 1.0, 1, draws=10, rng=np.random.default_rng(0)),
            ["rank=6", "dimension=5"],
        ),
        (
            lambda: theory.simulated_delta(5, 1, 1.0, 1, draws=1, rng=np.random.default_rng(0)),
            ["draws=1", "at least 2"],
        ),
    ],
)
def test_bad_input_is_answered_with_the_remedy(call, parts):
    with pytest.raises(InvalidInput) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
