"""Curves at the ends of the floats, against high precision: an upper end is never 0 where delta is not."""

import math

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.composition import compose
from lessnoise.mechanism import DiscreteGaussian, GeneralizedGaussian, Wishart
from lessnoise.mechanism.curve import delta_of, epsilon_of, gaussian, law_pure_epsilon
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.mechanism import Mechanism

mp.mp.dps = 60


def decades(low, high):
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


WIDE = decades(-300, 300)


def holds(bracket, truth):
    assert 0.0 <= bracket.lower <= bracket.upper <= 1.0
    assert mp.mpf(bracket.lower) <= truth <= mp.mpf(bracket.upper)


def one_entry(p, ratio, epsilon):
    """Delta of noise of density exp(-|x|^p), p > 1, against a shift ``ratio``: its loss grows with x."""
    p, ratio, epsilon = map(mp.mpf, (p, ratio, epsilon))

    def loss(x):
        return abs(x + ratio) ** p - abs(x) ** p

    low, high = -ratio / 2, ratio  # the loss is 0 at the first
    while loss(high) < epsilon:
        low, high = high, 2 * high + 1
    for _ in range(mp.mp.prec + 40):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < epsilon else (low, middle)

    def beyond(x):
        tail = mp.gammainc(1 / p, abs(x) ** p, mp.inf, regularized=True) / 2
        return tail if x >= 0 else 1 - tail

    return beyond(high) - mp.e**epsilon * beyond(high + ratio)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.sampled_from([1.25, 1.5, 3.0, 7.0]), decades(-12, 2), decades(-6, 3.5))
def test_one_entry_of_any_power(p, ratio, epsilon):
    """The law of which a claim of delta = 0 used to hold; its delta can be 1e-1395 and less."""
    with mp.workdps(120):
        truth = one_entry(p, ratio, epsilon)
    assume(truth > 0)  # far below 1e-1000 the difference is lost even here
    bracket = delta_of(Radial(1, p, 1.0), 1, ratio, epsilon, 1e-3)
    holds(bracket, truth)
    assert bracket.upper <= mp.mpf("1.01") * truth + mp.mpf("2e-300")


def test_no_claim_of_delta_0_holds_where_delta_is_tiny():
    with mp.workdps(120):
        truth = one_entry(1.5, 1.0, 22.0)
    assert mp.mpf("1e-1600") < truth < mp.mpf("1e-1200")
    holds(delta_of(Radial(1, 1.5, 1.0), 1, 1.0, 22.0), truth)
    cases = [
        (Radial(1, 1.5, 1.0), (1,)),
        (Radial(7e8, 0.5, 8.0), (10**9,)),
        (Radial(3, 2.0, 1.0), (3,)),
        (GeneralizedGaussian(1.5, 1.0), (1,)),
        (GeneralizedGaussian(1.5, 1.0), (5,)),
        (Shells(10**5, (0.0, 1000.0, 2000.0), (1e-300, 1.0)), (10**5,)),
        (DiscreteGaussian(1, 1), (3,)),
    ]
    for law, shape in cases:
        for epsilon in (150.0, 1e4, 1e300):
            mechanism = Mechanism("tiny", law, shape, 1.0, claim=ln.Claim(epsilon, 0.0))
            bracket = mechanism.delta(epsilon)
            assert 0.0 < bracket.upper < 1e-200 or isinstance(law, Shells)
            assert not mechanism.check().holds
            assert mechanism.epsilon(0.0).upper == math.inf


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(st.one_of(decades(-8, 4), WIDE), st.one_of(decades(-6, 3), WIDE, st.just(0.0)))
def test_gaussian(mu, epsilon):
    with mp.workdps(700):
        mean, at = mp.mpf(mu), mp.mpf(epsilon)
        if abs(at / mean - mean / 2) < 1e6:
            upper_tail = mp.erfc((at / mean - mean / 2) / mp.sqrt(2)) / 2
            truth = upper_tail - mp.e**at * mp.erfc((at / mean + mean / 2) / mp.sqrt(2)) / 2
        else:  # e^(-10^11), or as near to 1
            truth = mp.mpf("1e-400") if at > mean * mean / 2 else 1 - mp.mpf("1e-400")
    holds(gaussian.gaussian_delta(mu, epsilon), truth)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(WIDE, WIDE, st.one_of(decades(-3, 3), WIDE))
def test_laplace_and_the_l2_mechanism(scale, sensitivity, epsilon):
    pure = mp.mpf(sensitivity) / mp.mpf(scale)
    bracket = delta_of(Laplace(scale), 3, sensitivity, epsilon)
    with mp.workdps(700):
        holds(bracket, -mp.expm1((mp.mpf(epsilon) - pure) / 2) if mp.mpf(epsilon) < pure else mp.mpf(0))
    for law, dimension in ((Laplace(scale), 3), (Radial(3, 1.0, scale), 3)):
        found = law_pure_epsilon(law, dimension, sensitivity)
        assert found >= pure
        if mp.mpf(epsilon) < pure:
            assert delta_of(law, dimension, sensitivity, epsilon).upper > 0.0


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(
        [
            Radial(3, 1.0, 1.0),
            Radial(2, 2.0, 1.0),
            Wishart(1.0),
            DiscreteGaussian(1, 10**9),
            DiscreteGaussian(10**24, 1),
        ]
    ),
    decades(-300, 300),
    st.one_of(decades(-3, 3), WIDE, st.just(0.0)),
)
def test_every_law_answers_at_the_ends_of_the_floats(law, sensitivity, epsilon):
    if law.integer:
        sensitivity = min(max(sensitivity, 1.0), 1e11)
    bracket = delta_of(law, 4, sensitivity, epsilon)
    assert 0.0 <= bracket.lower <= bracket.upper <= 1.0
    assert bracket.upper > 0.0 or epsilon >= law_pure_epsilon(law, 4, sensitivity)


@pytest.mark.parametrize("sensitivity", [1e-10, 1e-160, 1e-250, 1e-290])
@pytest.mark.parametrize(("p", "slope"), [(1.5, 0.5539), (0.5, 0.25), (3.0, 0.5599)])
def test_tiny_sensitivities_lose_no_digits(p, slope, sensitivity):
    """Delta at epsilon 0 is p/(2 Gamma(1/p)) D here; products of small numbers used to underflow on the way."""
    assert p / (2 * math.gamma(1 / p)) == pytest.approx(slope, rel=1e-3)
    bracket = delta_of(Radial(1, p, 1.0), 1, sensitivity, 0.0, 1e-3)
    truth = p / (2 * math.gamma(1 / p)) * sensitivity
    assert bracket.lower <= truth <= bracket.upper <= 1.01 * truth + 1e-299


def test_compositions_do_not_reach_0_before_their_pure_epsilon():
    many = compose(ln.laplace(epsilon=1, sensitivity=1, shape=1)).repeat(3000)
    assert many.delta(2900.0).upper > 0.0  # 2^-3000 and less
    assert many.delta(3001.0).upper == 0.0
    rare = compose(Mechanism("laplace", Laplace(1.0), (1,), 701.0)).subsample(1e-304)
    assert rare.epsilon(0.0).upper >= float(mp.log1p(mp.mpf("1e-304") * mp.expm1(701)))
    assert compose(Mechanism("laplace", Laplace(1e200), (1,), 1e-200)).subsample(1e-200).delta(0.0).upper > 0.0


def test_epsilon_at_a_delta_that_no_float_resolves_is_not_small():
    for law in (Radial(1, 1.5, 1.0), Radial(2, 2.0, 1.0)):
        assert epsilon_of(law, int(law.k), 1.0, 1e-310).upper == math.inf
