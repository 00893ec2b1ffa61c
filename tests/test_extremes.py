"""Targets far outside the usual: no warning (pytest makes them errors), no endless search, every claim of ours kept."""

import math

import pytest

import lessnoise as ln
from lessnoise.mechanism.catalogue import CATALOGUE, Request
from lessnoise.mechanism.curve import l2, radial

# Radial integrals and the least-noise search take seconds each out here; they have cases of their own below.
QUICK = sorted(set(CATALOGUE) - {"least-noise", "radial", "r1smg", "r1smg-published"})
NOT_FOR_ONE_ENTRY = {"dawa", "dawa-dpcomp", "hb", "hb-gaussian", "mgm", "mvg", "mvg-published", "product-noise"}
CASES = [(name, shape) for name in QUICK for shape in ((1,), (2, 3)) if shape != (1,) or name not in NOT_FOR_ONE_ENTRY]


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
@pytest.mark.parametrize(("name", "shape"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1e4, 1e-6), (1e5, 1e-6), (1e5, 1e-200), (1e-5, 1e-200)])
def test_every_mechanism_of_the_catalogue_at_extreme_targets(name, epsilon, delta, shape):
    p = 2.0 if name == "generalized-gaussian" else None
    given = {"l1_sensitivity": 1.0, "bound": 1.0, "entry_bound": 1.0, "integer": True, "counts": True}
    entry = CATALOGUE[name]
    request = Request(epsilon, delta, 1.0, shape, p=p, **given)
    if name == "product-noise" and epsilon > 1.0:
        with pytest.raises(ln.InvalidInput, match="epsilon"):
            entry.build(request)
        return
    mechanism = entry.build(request)
    verdict = mechanism.check()
    found = mechanism.epsilon(max(delta, 1e-190))
    assert found.lower <= found.upper
    if entry.exact:
        assert verdict.holds
        assert found.lower <= epsilon


@pytest.mark.parametrize("name", ["radial", "r1smg"])
def test_radial_mechanisms_at_a_huge_epsilon(name):
    mechanism = CATALOGUE[name].build(Request(1e5, 1e-6, 1.0, (900,), k=2.0, p=1.5))
    assert mechanism.check().holds


@pytest.mark.parametrize("epsilon", [1e2, 1e4, 1e5])
@pytest.mark.parametrize("dimension", [2, 5, 30])
def test_l2_curve_at_huge_epsilon_agrees_with_the_general_integral(epsilon, dimension):
    setting = {
        "dimension": dimension,
        "scale": 0.9 / epsilon,
        "sensitivity": 1.0,
        "epsilon": epsilon,
        "tolerance": 1e-4,
    }
    one, other = l2.delta_bracket(**setting), radial.delta_bracket(**setting, k=dimension, p=1.0)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert one.relative_width < 1e-3


@pytest.mark.parametrize("dimension", [1, 2, 20, 3000])
def test_l2_mechanism_at_huge_epsilon_loses_no_more_than_pure_noise(dimension):
    mechanism = ln.l2_mechanism(epsilon=1e5, delta=1e-6, sensitivity=1.0, shape=dimension)
    assert mechanism.check().holds
    assert mechanism.law.scale <= 1e-5 * (1.0 + 1e-12)


@pytest.mark.parametrize("delta", [1e-200, 1e-280, 1e-300])
def test_gaussian_epsilon_at_a_vanishing_delta(delta):
    """Against Balle & Wang's closed form in 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    mechanism = ln.analytic_gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=3)
    mu = 1.0 / mechanism.standard_deviation
    found = mechanism.epsilon(delta)
    assert found.relative_width < 1e-4
    with mpmath.workdps(60):
        a, b = found.middle / mu - mu / 2.0, found.middle / mu + mu / 2.0
        exact = mpmath.ncdf(-a) - mpmath.exp(found.middle) * mpmath.ncdf(-b)
        assert math.isclose(float(mpmath.log(exact)), math.log(delta), rel_tol=1e-4)


def test_a_delta_below_what_is_resolved_gives_a_bracket_that_is_true():
    mechanism = ln.analytic_gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=3)
    found = mechanism.epsilon(1e-310)
    assert mechanism.epsilon(1e-300).lower <= found.lower < 10.0
    assert found.upper == math.inf


def test_epsilon_of_noise_whose_curve_levels_out_at_the_target():
    """Bounded noise has delta(epsilon) = the same mass for every larger epsilon, and there the target lies."""
    mechanism = ln.least_noise(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=1)
    assert mechanism.delta(50.0).lower > 0.9e-6
    found = mechanism.epsilon(1e-6)
    assert 0.999 < found.lower <= 1.0
    assert found.upper < 1.001
    assert mechanism.epsilon(0.9 * mechanism.delta(50.0).lower).upper == math.inf
