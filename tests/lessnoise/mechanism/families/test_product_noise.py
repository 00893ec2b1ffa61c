"""Product noise as published: its formulas against 50-digit arithmetic, its claim against the exact curve."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

import lessnoise as ln
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.mechanism.families.published import claimed_delta, log_1f1, product_noise, unit_scale
from lessnoise.mechanism.mechanism import Mechanism


def slow_scale(dimension, k):
    m = mpmath.mpf(dimension)
    return mpmath.sqrt(2 * mpmath.mpf(k) ** (4 / m) * (m / 4 + 1.5) ** (1 + 4 / m) / mpmath.e ** (1 + 2 / m))


def slow_delta(dimension, epsilon, k):
    """The paper's formula, term by term."""
    m = mpmath.mpf(dimension)
    ratio = epsilon / slow_scale(dimension, k)
    z = ratio**2 / 2
    bracket = mpmath.hyp1f1(m / 4 + 0.5, 0.5, z) + mpmath.sqrt(2) * ratio * mpmath.hyp1f1(m / 4 + 1, 1.5, z)
    spread = mpmath.sqrt(m - 1) / mpmath.sqrt((m / 2 - 1.5) * (m / 2 + 0.75))
    return mpmath.exp(-z) / (k * mpmath.sqrt(mpmath.pi)) * bracket * spread


@pytest.mark.parametrize("dimension", [4, 5, 10, 100, 1000, 7921, 10**6, 10**9])
@pytest.mark.parametrize("epsilon", [1e-5, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("k", [10.0, 1000.0, 2e4])
def test_formulas_against_50_digits(dimension, epsilon, k):
    with mpmath.workdps(50):
        assert unit_scale(dimension, k) == pytest.approx(float(slow_scale(dimension, k)), rel=1e-12)
        assert claimed_delta(dimension, epsilon, k) == pytest.approx(
            float(slow_delta(dimension, epsilon, k)), rel=1e-11
        )


@pytest.mark.parametrize(("a", "b"), [(1.5, 0.5), (2.0, 1.5), (250.5, 0.5), (2.5e5, 1.5), (2.5e8, 0.5)])
@pytest.mark.parametrize("product", [1e-12, 1e-3, 0.5, 30.0, 1e4])
def test_kummers_function_against_50_digits(a, b, product):
    z = product / a
    with mpmath.workdps(50):
        assert log_1f1(a, b, z) == pytest.approx(float(mpmath.log(mpmath.hyp1f1(a, b, z))), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(("epsilon", "claimed", "exact"), [(1.0, 9.8e-5, 0.734), (0.1, 3.7e-5, 0.205)])
def test_the_claim_fails(epsilon, claimed, exact):
    mechanism = product_noise(epsilon=epsilon, sensitivity=1, shape=1000)
    verdict = mechanism.check()
    assert verdict.refuted
    assert f"{verdict.claimed.delta:.1e}" == f"{claimed:.1e}"
    assert verdict.exact.middle == pytest.approx(exact, abs=5e-4)
    assert verdict.exact.relative_width < 1e-4


def test_the_exact_delta_by_a_simple_attack():
    """Guess the nearer of two candidates: the gap of its success rates bounds delta from below."""
    mechanism = product_noise(epsilon=1, sensitivity=1, shape=1000)
    rng, count = np.random.default_rng(0), 200_000
    sigma = mechanism.law.scale / math.sqrt(2)
    radius = sigma * np.abs(rng.standard_normal(count))
    along = 2 * stats.beta.rvs(499.5, 499.5, size=count, random_state=rng) - 1
    nearer = np.mean(1 + 2 * radius * along > 0)  # |n + v| > |n|, so that the density at n is the larger
    lower = nearer - math.e * (1 - nearer)
    assert 0.5 < lower < mechanism.delta(1.0).upper + 0.01


@pytest.mark.slow
def test_law_and_noise():
    mechanism = product_noise(epsilon=0.5, sensitivity=3, shape=(40, 25), k=2e4)
    sigma = 3 / 0.5 * unit_scale(1000, 2e4)
    assert mechanism.law == ln.Radial(1.0, 2.0, math.sqrt(2) * sigma)
    assert mechanism.expected_loss == pytest.approx(sigma**2, rel=1e-12)
    rng = np.random.default_rng(1)
    lengths = np.array([np.linalg.norm(mechanism.noise(rng)) for _ in range(3000)])
    assert stats.kstest(lengths / sigma, "halfnorm").pvalue > 1e-6
    assert stats.kstest(lengths / sigma, "halfnorm", args=(0, 1.5)).pvalue < 1e-12
    assert stats.kstest(lengths / sigma, "halfnorm", args=(0, 2 / 3)).pvalue < 1e-12


def test_round_trip_source_and_warning():
    mechanism = product_noise(epsilon=1, sensitivity=1, shape=50, neighbours="replace")
    assert Mechanism.from_json(mechanism.to_json()) == mechanism
    assert "2512.06253" in mechanism.claim.source
    with pytest.warns(ClaimWarning, match="product-noise does not hold"):
        assert mechanism.release(np.zeros(50)).certificate.claim_holds is False


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": 3}, r"shape=\(3,\) has M=3 entries, but product noise needs M > 3: use another mechanism"),
        ({"shape": (1, 1)}, "M=1"),
        ({"k": 0}, "k=0"),
        ({"k": math.nan}, "k=nan"),
        ({"epsilon": -1}, "epsilon=-1"),
        ({"sensitivity": 0}, "sensitivity=0"),
        ({"k": 1e-3}, "k=0.001 claims nothing at epsilon=1, M=100.*larger k or a smaller epsilon"),
        ({"epsilon": 500}, "k=1000 claims nothing at epsilon=500.*smaller epsilon"),
        ({"epsilon": 1e9}, r"epsilon=1e\+09 is far beyond the range of product noise"),
        ({"epsilon": 1e300}, "far beyond the range"),
        ({"neighbours": "none"}, "neighbours='none'"),
    ],
)
def test_arguments_are_checked(changes, message):
    with pytest.raises(InvalidInput, match=message):
        product_noise(**{"epsilon": 1, "sensitivity": 1, "shape": 100, **changes})


def test_tiny_epsilon_is_served():
    assert 0 < product_noise(epsilon=1e-200, sensitivity=1, shape=100).claim.delta < 1e-3
