"""Composed curves against closed forms, another library's accountant, binomial sums and simulated losses."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import lessnoise as ln
from lessnoise.composition.accountant import Accountant
from lessnoise.composition.curve_points import Samples
from lessnoise.composition.steps import Normal, mu_range
from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import gaussian, law_delta
from lessnoise.mechanism.law import Plain, Radial, register
from lessnoise.mechanism.mechanism import Mechanism
from tests.helpers import oracles


def normal_mechanism(sigma: float, dimension: int = 4) -> Mechanism:
    return Mechanism("gaussian", Radial(dimension, 2, math.sqrt(2) * sigma), (dimension,), 1.0)


def discretised_normals(mu: float, count: int) -> Accountant:
    """The Gaussian without its shortcut: every step goes through the discretised losses."""
    return Accountant([Samples(Normal(mu, mu).delta, 1.0, count)], [count])


# Closed forms.


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.7, 3.0])
@pytest.mark.parametrize("count", [2, 30, 1000])
@pytest.mark.parametrize("target", [1e-3, 1e-6, 1e-12])
def test_discretised_gaussians_agree_with_one_gaussian(mu, count, target):
    together = Normal(mu * math.sqrt(count), mu * math.sqrt(count))
    exact = together.epsilon(target)
    accountant = discretised_normals(mu, count)
    found = accountant.epsilon(target)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.upper <= 1.003 * exact.upper + 1e-9
    assert found.lower >= 0.99 * exact.lower - 1e-9
    if exact.upper > 0.0:
        bracket = accountant.delta(exact.middle)
        assert bracket.lower <= together.delta(exact.middle).upper
        assert together.delta(exact.middle).lower <= bracket.upper


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    mu=st.floats(1e-3, 4.0),
    count=st.integers(2, 5000),
    share=st.floats(0.0, 3.0),
    rate=st.sampled_from([1.0, 0.5, 0.01]),
)
def test_brackets_hold_the_truth_anywhere_on_the_curve(mu, count, share, rate):
    total = mu * math.sqrt(count) * rate
    epsilon = share * total * (1.0 + total)
    bracket = Accountant([Samples(Normal(mu, mu).delta, rate, count)], [count]).delta(epsilon)
    assert 0.0 <= bracket.lower <= bracket.upper <= 1.0
    if rate == 1.0:
        truth = gaussian.gaussian_delta(total, epsilon)
        assert bracket.lower <= truth.upper
        assert truth.lower <= bracket.upper


def test_slopes_that_underflow_leave_no_gap():
    # Far out a curve falls from 1e-65 to 1e-278 in one cell; the slope after that is 0 in doubles.
    mu, count = 3.43359375, 59
    total = mu * math.sqrt(count)
    bracket = Accountant([Samples(Normal(mu, mu).delta, 1.0, count)], [count]).delta(3.0 * total * (1.0 + total))
    assert 0.0 <= bracket.lower <= bracket.upper < 1e-300


def test_gaussians_of_every_kind_merge_exactly():
    plain = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(2, 3))
    matrix = ln.mgm(epsilon=0.5, delta=1e-6, sensitivity=1, shape=(2, 3))
    correlated = ln.correlated_gaussian(epsilon=0.4, delta=1e-6, shape=(2, 3))
    squares = [np.mean(mu_range(m.law, m.dimension, m.sensitivity)) ** 2 for m in (plain, matrix, correlated)]
    mu = math.sqrt(7 * squares[0] + squares[1] + 2 * squares[2])
    found = ln.compose(plain.repeat(7), matrix, correlated, correlated).delta(1.5)
    assert found.relative_width < 1e-9
    assert math.isclose(found.upper, float(oracles.gaussian_delta(mu, 1.5)), rel_tol=1e-9)


def test_a_single_release_is_the_mechanism_itself():
    mechanism = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=5)
    for epsilon in (0.0, 0.3, 1.0):
        assert ln.compose(mechanism).delta(epsilon) == mechanism.delta(epsilon)
    assert ln.compose(mechanism).epsilon(1e-7) == mechanism.epsilon(1e-7)


def test_pure_mechanisms_compose_to_a_binomial():
    # Randomised response that loses +-a: the n-fold loss is a (2 B - n), B binomial (Kairouz, Oh & Viswanath 2015).
    a, count = 0.3, 40
    p = math.exp(a) / (1.0 + math.exp(a))

    def curve(epsilon, _):
        value = max(p - math.exp(epsilon) * (1.0 - p), 0.0)
        return Bracket(value * (1 - 1e-14), value * (1 + 1e-14))

    accountant = Accountant([Samples(curve, 1.0, count)], [count])
    for epsilon in (0.0, 1.0, 3.0, 6.0):
        truth = 0.0
        for hits in range(count + 1):
            log_mass = gammaln(count + 1) - gammaln(hits + 1) - gammaln(count - hits + 1)
            log_mass += hits * math.log(p) + (count - hits) * math.log1p(-p)
            truth += math.exp(log_mass) * max(-math.expm1(epsilon - a * (2 * hits - count)), 0.0)
        bracket = accountant.delta(epsilon)
        assert bracket.lower <= truth <= bracket.upper
        assert bracket.relative_width < 0.05


# A law of bounded support, registered here only: its loss is 0 or infinite.


@register
@dataclass(frozen=True, slots=True)
class Box(Plain):
    """One entry, uniform between -half and half."""

    half: float

    kind: ClassVar[str] = "test-box"
    norm: ClassVar[str] = "l2"


@law_delta.register(Box)
def _(law: Box, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    value = min(0.5 * sensitivity / law.half, 1.0)
    return Bracket(value * (1 - 1e-15), min(value * (1 + 1e-15), 1.0))


def test_any_law_with_a_curve_composes_and_infinite_losses_count():
    box = Mechanism("box", Box(500.0), (1,), 1.0)
    for epsilon in (0.0, 1.0, 20.0):
        bracket = box.repeat(50).delta(epsilon)
        truth = 1.0 - 0.999**50
        assert bracket.lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= bracket.upper
        assert bracket.relative_width < 1e-3
    assert box.repeat(50).epsilon(0.01).upper == math.inf
    assert box.repeat(50).epsilon(0.01).lower > 1e5
    assert box.repeat(50).epsilon(0.1).upper < 1e-6
    mixed = ln.compose(box, ln.laplace(epsilon=1, sensitivity=1, shape=1)).delta(1.0)
    assert 0.001 * (1 - 1e-9) <= mixed.upper <= 0.001 * 1.001


# Another library.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "steps", "published"), [(1.1, 1000, 0.5987), (1.1, 7032, 1.6362), (1.1, 7031, 1.6361), (0.5, 7031, None)]
)
def test_sampled_gaussian_agrees_with_another_accountant(sigma, steps, published):
    from dp_accounting.pld import privacy_loss_distribution

    rate = 256 / 60000
    pld = privacy_loss_distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-4
    )
    theirs = pld.self_compose(steps).get_epsilon_for_delta(1e-5)
    ours = normal_mechanism(sigma).subsample(rate).repeat(steps).epsilon(1e-5)
    assert abs(ours.upper / theirs - 1.0) < 0.01
    assert ours.lower <= theirs
    assert ours.relative_width < 0.01
    if published is not None:
        assert ours.lower <= published + 1e-4
        assert published - 1e-4 <= ours.upper


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("count", [3, 100])
def test_laplace_agrees_with_another_accountant(rate, count):
    from dp_accounting.pld import privacy_loss_distribution

    pld = privacy_loss_distribution.from_laplace_mechanism(2.0, sampling_prob=rate, value_discretization_interval=1e-4)
    composed = pld.self_compose(count)
    ours = ln.laplace(epsilon=0.5, sensitivity=1, shape=1).subsample(rate).repeat(count)
    for epsilon in (0.1, 0.5, 1.0):
        theirs, bracket = composed.get_delta_for_epsilon(epsilon), ours.delta(epsilon)
        assert bracket.lower <= theirs * (1 + 1e-9) + 1e-13
        assert theirs <= bracket.upper * 1.02 + 1e-10


# Simulated losses.


def simulated_losses(case: oracles.Case, count: int, samples: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    total = np.zeros(samples)
    for _ in range(count):
        radius = oracles.sample_log_radius(case, rng, samples)
        total += oracles.privacy_loss(case, radius, oracles.sample_cosine(case.dimension, rng, samples))
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("k", "p"), [(6.0, 1.0), (5.0, 1.5), (2.0, 2.0), (1.0, 2.0)])
def test_summed_losses_of_radial_noise(k, p):
    count, samples = 12, 400_000
    case = oracles.Case(dimension=6, k=k, p=p, scale=6.0, sensitivity=1.0, epsilon=0.0)
    losses = simulated_losses(case, count, samples, seed=7)
    for epsilon in (0.1, 0.3):
        gains = np.maximum(-np.expm1(epsilon - losses), 0.0)
        mean, error = gains.mean(), gains.std() / math.sqrt(samples)
        brackets = {
            scale: Mechanism("radial", Radial(k, p, scale * 6.0), (6,), 1.0).repeat(count).delta(epsilon)
            for scale in (2 / 3, 1.0, 3 / 2)
        }
        assert brackets[1.0].lower - 5 * error <= mean <= brackets[1.0].upper + 5 * error
        assert mean + 5 * error < brackets[2 / 3].lower  # less noise, larger delta
        assert mean - 5 * error > brackets[3 / 2].upper


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "epsilon", "count"), [(2, 4.0, 6), (3, 1.0, 12)])
def test_summed_losses_of_shells(shape, epsilon, count):
    mechanism = ln.least_noise(epsilon=epsilon, delta=1e-3, sensitivity=1, shape=shape)
    assert isinstance(mechanism.law, ln.Shells)
    samples = 200_000
    rng = np.random.default_rng(5)
    edges, masses = np.array(mechanism.law.edges), np.array(mechanism.law.probabilities)
    heights = np.append(np.log(masses) - np.log(np.diff(edges**shape)), -np.inf)  # of the density, up to a constant
    total = np.zeros(samples)
    for _ in range(count):
        shell = rng.choice(len(masses), size=samples, p=masses / masses.sum())
        inner, outer = edges[shell] ** shape, edges[shell + 1] ** shape
        radius = (inner + (outer - inner) * rng.random(samples)) ** (1.0 / shape)
        cosine = oracles.sample_cosine(shape, rng, samples)
        moved = np.sqrt(radius**2 + 2.0 * radius * cosine + 1.0)
        other = heights[np.minimum(np.searchsorted(edges, moved, side="right") - 1, len(masses))]
        total += heights[shell] - other
    composition = mechanism.repeat(count)
    for share in (0.3, 0.6):
        at = share * count * epsilon
        gains = np.maximum(-np.expm1(at - total), 0.0)
        mean, error = gains.mean(), gains.std() / math.sqrt(samples)
        bracket = composition.delta(at)
        assert error < 0.1 * mean
        assert bracket.lower - 5 * error <= mean <= bracket.upper + 5 * error
        assert bracket.upper - bracket.lower < 0.1 * mean


def test_both_directions_of_sampling():
    # Laplace noise in one dimension, q = 0.3: losses of P_q against Q under P_q, and of Q against P_q under Q.
    rate, count, samples, scale = 0.3, 8, 400_000, 1.5
    rng = np.random.default_rng(11)
    worst = {}
    for removed in (True, False):
        total = np.zeros(samples)
        for _ in range(count):
            noise = rng.laplace(0.0, scale, samples)
            if removed:
                noise += rng.random(samples) < rate
            ratio = (1 - rate) + rate * np.exp((np.abs(noise) - np.abs(noise - 1.0)) / scale)
            total += np.log(ratio) if removed else -np.log(ratio)
        for epsilon in (0.1, 0.6, 1.2):
            gains = np.maximum(-np.expm1(epsilon - total), 0.0)
            worst.setdefault(epsilon, []).append((gains.mean(), gains.std() / math.sqrt(samples)))
    composition = ln.laplace(epsilon=1 / scale, sensitivity=1, shape=1).subsample(rate).repeat(count)
    for epsilon, estimates in worst.items():
        bracket = composition.delta(epsilon)
        mean, error = max(estimates)
        assert bracket.lower - 5 * error <= mean <= bracket.upper + 5 * error


@pytest.mark.slow
def test_published_r1smg_composes_to_delta_one():
    with pytest.warns(ln.ClaimWarning):
        step = ln.r1smg(epsilon=0.71, delta=3.33e-7, sensitivity=1, shape=26010, calibration="published")
    bracket = step.subsample(256 / 60000).repeat(7031).delta(1.795)
    assert bracket.lower > 0.9999
    assert step.repeat(10).delta(30).lower > 0.9999


# Shape of the answers.


@pytest.mark.slow
def test_order_does_not_matter_and_more_releases_cost_more():
    laplace = ln.laplace(epsilon=0.2, sensitivity=1, shape=2)
    ball = ln.l2_mechanism(epsilon=0.5, delta=1e-7, sensitivity=1, shape=4)
    answers = {ln.compose(*order).delta(1.0) for order in itertools.permutations([laplace, ball, laplace])}
    assert len(answers) == 1
    uppers = [ball.repeat(n).epsilon(1e-6).upper for n in (1, 2, 5, 20, 100)]
    assert uppers == sorted(uppers)
    assert uppers[-1] < 100 * uppers[0]


@pytest.mark.slow
def test_sampling_costs_less_and_rate_one_is_no_sampling():
    ball = ln.l2_mechanism(epsilon=0.5, delta=1e-7, sensitivity=1, shape=4)
    assert ball.subsample(1.0) == ln.compose(ball)
    uppers = [ball.subsample(rate).repeat(50).epsilon(1e-6).upper for rate in (0.01, 0.1, 0.5, 1.0)]
    assert uppers == sorted(uppers)


def test_pure_epsilons_add_up_at_delta_zero():
    laplace = ln.laplace(epsilon=0.25, sensitivity=1, shape=2)
    assert math.isclose(laplace.repeat(8).epsilon(0).upper, 2.0, rel_tol=1e-12)
    assert laplace.repeat(8).delta(2.0000001) == Bracket(0.0, 0.0)
    sampled = math.log1p(0.1 * math.expm1(0.25))
    assert math.isclose(laplace.subsample(0.1).repeat(8).epsilon(0).upper, 8 * sampled, rel_tol=1e-12)
    assert ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=2).repeat(2).epsilon(0).lower == math.inf


def test_discrete_gaussian_of_many_entries():
    mechanism = ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=2, shape=6)
    found = mechanism.repeat(20).epsilon(1e-6)
    sigma = math.sqrt(float(mechanism.law.variance_parameter))
    continuous = Normal(2 / sigma * math.sqrt(20), 2 / sigma * math.sqrt(20)).epsilon(1e-6)
    assert found.lower <= continuous.upper * 1.01
    assert continuous.lower <= found.upper * 1.01


def test_round_trips_and_equal_parts_merge():
    laplace = ln.laplace(epsilon=0.2, sensitivity=1, shape=2)
    ball = ln.l2_mechanism(epsilon=0.5, delta=1e-7, sensitivity=1, shape=4)
    composition = ln.compose(laplace, ball.subsample(0.1), laplace.repeat(3))
    assert [part.count for part in composition.parts] == [4, 1]
    assert composition.count == 5
    assert ln.Composition.from_json(composition.to_json()) == composition
    exact, added = composition.delta(1.0).upper, composition.delta_numeric(1.0)
    assert exact + added <= composition.guarantee(1.0).delta <= (exact + added) * (1.0 + 1e-15)
    assert 0.0 < added < 1e-30
    with pytest.raises(ln.InvalidInput, match="schema=9"):
        ln.Composition.from_dict({**composition.to_dict(), "schema": 9})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: m.repeat(0), "n=0"),
        (lambda m: m.repeat(2.5), "n=2.5"),
        (lambda m: m.subsample(0.0), "rate=0.0"),
        (lambda m: m.subsample(1.5), "rate=1.5"),
        (lambda m: m.subsample(math.nan), "rate=nan"),
        (lambda m: m.repeat(2).subsample(0.5), "share one sample"),
        (lambda m: ln.compose(), "empty"),
        (lambda m: ln.compose(m, "laplace"), "release='laplace'"),
        (lambda m: ln.compose(m, ln.laplace(epsilon=1, sensitivity=1, shape=2, neighbours="replace")), "differ"),
        (lambda m: ln.laplace(epsilon=1, sensitivity=1, shape=2, neighbours="replace").subsample(0.5), "add/remove"),
        (lambda m: m.repeat(2).delta(-1), "epsilon=-1"),
        (lambda m: m.repeat(2).epsilon(1.0), "delta=1.0"),
        (lambda m: m.repeat(10**13), "count="),
    ],
)
def test_bad_input_gets_one_sentence(make, words):
    mechanism = ln.laplace(epsilon=1, sensitivity=1, shape=2)
    with pytest.raises(ln.InvalidInput, match=words) as caught:
        make(mechanism)
    assert str(caught.value).count(".\n") == 0
    assert str(caught.value).endswith(".")
