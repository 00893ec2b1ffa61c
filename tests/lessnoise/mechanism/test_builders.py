"""Builders: what they set, what they claim, what they warn of."""

import inspect
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.mechanism.builders import r1smg_psi
from tests.helpers.oracles import gaussian_delta, r1smg_eigenvalue

TARGET = {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 2, "shape": (4, 5)}
BUILDERS = {
    "analytic": lambda **target: ln.analytic_gaussian(**target),
    "classic": lambda **target: ln.classic_gaussian(**target),
    "zhao-1": lambda **target: ln.zhao_gaussian(**target, variant=1),
    "zhao-2": lambda **target: ln.zhao_gaussian(**target, variant=2),
    "l2": lambda **target: ln.l2_mechanism(**target),
    "r1smg": lambda **target: ln.r1smg(**target, calibration="exact"),
    "radial": lambda **target: ln.radial(**target, k=12, p=1.5),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_records_its_request_and_keeps_it(name):
    mechanism = BUILDERS[name](**TARGET, neighbours="replace")
    assert mechanism.shape == (4, 5)
    assert mechanism.dimension == 20
    assert mechanism.sensitivity == 2.0
    assert mechanism.neighbours is ln.Neighbours.REPLACE
    assert mechanism.claim.epsilon == 0.5
    assert mechanism.claim.delta == 1e-6
    assert mechanism.claim.neighbours is ln.Neighbours.REPLACE
    assert mechanism.claim.source
    assert mechanism.name
    assert mechanism.check().holds


@pytest.mark.parametrize("name", BUILDERS)
def test_any_reading_of_the_shape_gives_the_same_noise(name):
    flat = BUILDERS[name](**{**TARGET, "shape": 20})
    assert BUILDERS[name](**TARGET).law == flat.law
    assert BUILDERS[name](**{**TARGET, "shape": [np.int64(2), 10]}).law == flat.law


@pytest.mark.parametrize("name", BUILDERS)
def test_ints_and_numpy_scalars_are_welcome(name):
    builder = BUILDERS[name]
    plain = builder(epsilon=0.5, delta=1e-6, sensitivity=2.0, shape=20)
    assert (
        builder(epsilon=np.float32(0.5), delta=np.float64(1e-6), sensitivity=np.int32(2), shape=np.int16(20)) == plain
    )


@pytest.mark.parametrize(
    "builder",
    [ln.r1smg, ln.classic_gaussian, ln.analytic_gaussian, ln.zhao_gaussian, ln.l2_mechanism, ln.radial, ln.laplace],
)
def test_arguments_are_keyword_only(builder):
    kinds = {parameter.kind for parameter in inspect.signature(builder).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


def test_valid_builders_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for builder in BUILDERS.values():
            builder(**TARGET).release(np.zeros((4, 5)))


# R1SMG.


@pytest.mark.parametrize(
    ("dimension", "epsilon", "delta", "sensitivity"),
    [
        (3, 0.1, 1e-5, 1.0),
        (4, 0.2, 0.5, 3.0),
        (100, 1e-3, 1e-5, 1.0),
        (7921, 1e-5, 1e-7, math.sqrt(2.0)),
        (10**9, 1e-10, 1e-9, 1),
    ],
)
def test_published_r1smg_follows_theorem_five(dimension, epsilon, delta, sensitivity):
    mechanism = ln.r1smg(
        epsilon=epsilon, delta=delta, sensitivity=sensitivity, shape=dimension, calibration="published"
    )
    assert mechanism.law.k == 1.0
    assert mechanism.law.p == 2.0
    expected = r1smg_eigenvalue(dimension, epsilon, delta, sensitivity)
    assert mechanism.expected_loss == pytest.approx(expected, rel=1e-11)
    assert mechanism.law.scale**2 / 2 == pytest.approx(expected, rel=1e-11)
    assert 2 * sensitivity**2 / (epsilon * r1smg_psi(dimension, delta)) == pytest.approx(expected, rel=1e-11)
    assert "Theorem 5" in mechanism.claim.source


@pytest.mark.parametrize(("dimension", "epsilon"), [(10, 0.1), (10, 1.0), (4, 0.25), (1000, 0.001)])
def test_published_r1smg_warns_beyond_its_range(dimension, epsilon):
    with pytest.warns(ln.ClaimWarning, match=f"epsilon={epsilon:g} is not below 1/M"):
        ln.r1smg(epsilon=epsilon, delta=1e-5, sensitivity=1, shape=dimension, calibration="published")


@pytest.mark.parametrize(("dimension", "epsilon"), [(10, 0.0999), (1000, 0.00099)])
def test_published_r1smg_is_silent_within_its_range(dimension, epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ln.r1smg(epsilon=epsilon, delta=1e-5, sensitivity=1, shape=dimension, calibration="published")


def test_releasing_a_refuted_claim_warns_with_the_true_guarantee():
    mechanism = ln.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=100, calibration="published")
    with pytest.warns(ln.ClaimWarning, match="does not hold") as caught:
        release = mechanism.release(np.zeros(100))
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the warning points at the caller
    assert "0.2116" in str(caught[0].message)
    assert release.certificate.claim_holds is False
    assert release.certificate.guarantee.delta == pytest.approx(0.211605, abs=1e-5)


@pytest.mark.slow
def test_exact_r1smg_never_warns_and_serves_any_dimension():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dimension in (1, 2, 50):
            mechanism = ln.r1smg(epsilon=1, delta=1e-3, sensitivity=1, shape=dimension, calibration="exact")
            mechanism.release(np.zeros(dimension))


# Gaussians.


def test_classic_gaussian_formula_and_range():
    mechanism = ln.classic_gaussian(epsilon=0.5, delta=1e-5, sensitivity=3, shape=7)
    assert mechanism.standard_deviation == pytest.approx(3 * math.sqrt(2 * math.log(1.25e5)) / 0.5, rel=1e-13)
    assert mechanism.check().holds
    with pytest.warns(ln.ClaimWarning, match="epsilon=1 is not below 1"):
        ln.classic_gaussian(epsilon=1, delta=1e-5, sensitivity=3, shape=7)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.floats(0.01, 30.0), st.floats(-15.0, -0.8), st.sampled_from([1, 2]))
def test_zhao_formula_and_validity(epsilon, log_delta, variant):
    delta = 10**log_delta
    mechanism = ln.zhao_gaussian(epsilon=epsilon, delta=delta, sensitivity=1, shape=2, variant=variant)
    sigma = mechanism.standard_deviation
    # sigma = (a + sqrt(a^2 + eps))/(eps sqrt 2) means a = eps sigma/sqrt 2 - 1/(2 sqrt 2 sigma).
    a = epsilon * sigma / math.sqrt(2.0) - 1.0 / (2.0 * math.sqrt(2.0) * sigma)
    if variant == 1:
        assert math.erfc(a) == pytest.approx(2 * delta, rel=1e-6)
    else:
        # e^(-a^2) = (sqrt(16 delta + 1) - 1)/2, the positive root of x^2 + x = 4 delta.
        x = math.exp(-a * a)
        assert x * x + x == pytest.approx(4 * delta, rel=1e-6)
    assert mechanism.check().holds
    assert gaussian_delta(1.0 / sigma, epsilon) <= delta


def test_zhao_variants_agree_on_very_large_deltas_or_say_so():
    assert ln.zhao_gaussian(epsilon=1, delta=0.9, sensitivity=1, shape=1, variant=1).check().holds
    with pytest.raises(ln.InvalidInput, match=r"delta=0\.9 is too large"):
        ln.zhao_gaussian(epsilon=1, delta=0.9, sensitivity=1, shape=1, variant=2)


def test_order_of_the_gaussians():
    sigmas = [BUILDERS[name](**TARGET).standard_deviation for name in ("analytic", "zhao-1", "zhao-2", "classic")]
    assert sigmas == sorted(sigmas)


# Laplace.


def test_laplace_is_pure():
    mechanism = ln.laplace(epsilon=0.5, sensitivity=3, shape=(2, 2))
    assert mechanism.law == ln.Laplace(6.0)
    assert mechanism.claim.delta == 0.0
    assert mechanism.check().holds
    assert mechanism.law.norm == "l1"
    assert mechanism.expected_loss == pytest.approx(4 * 2 * 36.0)
    assert mechanism.delta(0.5) == ln.Bracket(0.0, 0.0)
    assert 0.0 < mechanism.guarantee(0.5).delta < 1e-31  # a cipher is no true randomness


def test_a_radial_member_says_so_in_its_name():
    assert "k=12" in BUILDERS["radial"](**TARGET).name
    assert BUILDERS["radial"](**TARGET).law.norm == "l2"
