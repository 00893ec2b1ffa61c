"""Moments of the loss, the triangle of the proof, and the chain behind C_M, each by another route."""

import math
from dataclasses import astuple

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise_paper import theory


@pytest.mark.parametrize("rank", [1, 2, 3, 10, 7921])
def test_moments_are_those_of_a_chi_squared_variable(rank):
    skewness, excess = stats.chi2.stats(rank, moments="sk")
    assert theory.loss_kurtosis(rank, central=True) == pytest.approx(excess + 3.0, rel=1e-12)
    assert theory.loss_skewness(rank, central=True) == pytest.approx(skewness, rel=1e-12)
    with mp.workdps(40):
        raw = [mp.mpf(2) ** t * mp.gamma(t + mp.mpf(rank) / 2) / mp.gamma(mp.mpf(rank) / 2) for t in range(5)]
        assert theory.loss_kurtosis(rank) == pytest.approx(float(raw[4] / raw[2] ** 2), rel=1e-14)
        assert theory.loss_skewness(rank) == pytest.approx(float(raw[3] / raw[2] ** 1.5), rel=1e-14)
    for q in (0.001, 0.5, 0.999):
        assert theory.loss_quantile_ratio(rank, q) == pytest.approx(stats.chi2.ppf(q, rank) / rank, rel=1e-9)


def test_moments_of_r1smg_are_the_papers_and_those_of_remark_2():
    assert theory.loss_kurtosis(1) == pytest.approx(35 / 3)
    assert theory.loss_skewness(1) == pytest.approx(5 * math.sqrt(3) / 3)
    assert theory.loss_kurtosis(1, central=True) == 15.0
    assert theory.loss_skewness(1, central=True) == pytest.approx(2.8284, abs=5e-5)


@pytest.mark.parametrize("degrees", [10.0, 60.0, 85.85, 90.0, 150.0])
def test_no_two_sides_are_longer_than_the_isosceles_ones(degrees):
    theta = math.radians(degrees)
    # All points that see the change under this angle lie on an arc; the law of sines gives both sides.
    first = np.linspace(1e-9, math.pi - theta - 1e-9, 20_001)
    total = (np.sin(first) + np.sin(math.pi - theta - first)) / math.sin(theta)
    assert total.max() == pytest.approx(theory.longest_sides(theta), rel=1e-7)
    assert theory.published_sides(theta) == pytest.approx(2.0 / math.sin(theta))
    assert theory.longest_sides(theta) * math.cos(theta / 2) * theory.published_sides(theta) == pytest.approx(
        theory.longest_sides(theta) ** 2
    )


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_noises_of_typical_length_just_meet_at_half_the_change():
    dimension, delta = 7921, 1e-7
    target = {"delta": delta, "sensitivity": 1, "shape": dimension}
    epsilon = theory.meeting_epsilon_r1smg(dimension, delta)
    assert ln.r1smg(**target, epsilon=epsilon, calibration="published").expected_loss == pytest.approx(0.25)
    epsilon = theory.meeting_epsilon_classic(dimension, delta)
    assert ln.classic_gaussian(**target, epsilon=epsilon).expected_loss == pytest.approx(0.25)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0])
def test_every_step_of_the_chain_holds(spread):
    rng = np.random.default_rng([31, int(10 * spread)])
    epsilon, delta = 0.7, 1e-5
    for rows, columns in ((1, 1), (3, 2), (2, 7), (20, 20)):
        a, b = np.exp(spread * rng.standard_normal(rows)), np.exp(spread * rng.standard_normal(columns))
        chain = theory.mvg_chain(a, b, epsilon=epsilon, delta=delta)
        assert min(chain.steps) > 1 - 1e-12
        assert chain.constant == pytest.approx(theory.c_m(rows, columns, epsilon))
        assert theory.harmonic_step(a) >= 1 - 1e-12
        # Theorem 3, written out: how far the two covariances must be stretched, and the loss as a trace.
        r = min(rows, columns)
        first, second = sum(1 / j for j in range(1, r + 1)), sum(j**-0.5 for j in range(1, r + 1))
        alpha = first + 0.25 * (first + second)
        entries = rows * columns
        tau = 2 * math.sqrt(-entries * math.log(delta)) - 2 * math.log(delta) + entries
        beta = 2 * entries**0.25 * first * tau
        limit = (8 * alpha * epsilon / (beta + math.sqrt(beta**2 + 8 * alpha * epsilon))) ** 2 / (4 * alpha**2)
        stretch = np.linalg.norm(1 / a) * np.linalg.norm(1 / b) / limit
        covariance = np.kron(stretch * np.diag(a), np.diag(b))
        assert chain.trace == pytest.approx(np.trace(covariance), rel=1e-10)
        assert chain.two_norms == pytest.approx(stretch * np.sqrt((a**2).sum() * (b**2).sum()), rel=1e-10)
        assert chain.theorem == pytest.approx(entries / limit, rel=1e-10)
        assert chain.without_beta == pytest.approx(entries * alpha / (2 * epsilon), rel=1e-12)
        more = theory.mvg_chain(a, b, epsilon=epsilon, delta=delta, excess=2.0)
        assert more.steps[2] == pytest.approx(2.0), "with more noise than the theorem asks for, (f) is strict"


def test_a_broken_chain_would_be_seen():
    chain = theory.MvgChain(*reversed(astuple(theory.mvg_chain([1.0, 2.0], [1.0, 3.0], epsilon=1, delta=1e-5))))
    assert min(chain.steps) < 1e-3


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: theory.loss_kurtosis(0), ["rank=0", "at least 1"]),
        (lambda: theory.loss_skewness(1.5), ["rank=1.5", "not a whole number"]),
        (lambda: theory.loss_quantile_ratio(1, 1.5), ["q=1.5"]),
        (lambda: theory.longest_sides(0.0), ["theta=0.0", "between 0 and pi", "radians"]),
        (lambda: theory.published_sides(4), ["theta=4", "radians"]),
        (lambda: theory.harmonic_step([1.0, 0.0]), ["eigenvalues=[1.0, 0.0]", "above 0"]),
        (lambda: theory.mvg_chain([], [1.0], epsilon=1, delta=0.1), ["rows=[]", "pass the eigenvalues"]),
        (lambda: theory.mvg_chain([1.0], [1.0], epsilon=1, delta=0.1, bound=0.1), ["bound=0.1"]),
        (lambda: theory.mvg_chain([1.0], [1.0], epsilon=1, delta=0.1, excess=0.5), ["excess=0.5", "at least 1"]),
    ],
)
def test_bad_input_is_answered_with_the_remedy(call, parts):
    with pytest.raises(InvalidInput) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)
