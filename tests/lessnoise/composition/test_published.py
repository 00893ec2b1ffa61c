"""Published composition: the paper's numbers, textbook values, and that the exact curve is never worse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise.composition import published


@pytest.mark.parametrize(
    ("total", "images", "epochs", "epsilon", "delta"),
    [
        (1.795, 60_000, 30, 0.7125, 3.33e-7),  # MNIST; the paper prints 0.71
        (16.983, 60_000, 30, 5.4252, 3.33e-7),  # MNIST; it prints 5.42
        (2.673, 50_000, 100, 0.5217, 1e-7),  # CIFAR-10; it prints 0.54
        (20.713, 50_000, 100, 3.1863, 1e-7),  # CIFAR-10; it prints 3.52
        (2.673, 60_000, 100, 0.5715, 1e-7),
        (20.713, 60_000, 100, 3.4910, 1e-7),
    ],
)
def test_amortised_budgets_of_the_deep_learning_study(total, images, epochs, epsilon, delta):
    rate = 256 / images
    each = published.amortise(total, 1e-5, steps=epochs / rate, rate=rate)
    assert math.isclose(each.epsilon, epsilon, abs_tol=5e-5)
    assert math.isclose(each.delta, delta, rel_tol=2e-3)
    back = published.strong_composition(*each, steps=epochs / rate, rate=rate)
    assert math.isclose(back.epsilon, total, rel_tol=1e-12)
    assert math.isclose(back.delta, 1e-5, rel_tol=1e-12)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(1e-4, 50.0), steps=st.floats(1.0, 1e6), rate=st.floats(1e-4, 1.0))
def test_amortise_inverts_strong_composition(epsilon, steps, rate):
    each = published.amortise(epsilon, 1e-5, steps=steps, rate=rate)
    assert math.isclose(published.strong_composition(*each, steps=steps, rate=rate).epsilon, epsilon, rel_tol=1e-9)


def test_textbook_values():
    # Renyi orders in closed form: for the Gaussian, rho order; the best conversion found on a fine grid by hand.
    assert published.basic_composition(0.5, 1e-6, 4).epsilon == pytest.approx(2.0)
    expected = math.sqrt(2 * 100 * math.log(1e6)) * 0.1 + 100 * 0.1 * math.expm1(0.1)
    assert published.advanced_composition(0.1, 1e-9, 100, 1e-6).epsilon == pytest.approx(expected)
    assert published.advanced_composition(0.1, 1e-9, 100, 1e-6).delta == pytest.approx(1.1e-6)
    assert published.gaussian_rdp(8, 2.0, n=3) == pytest.approx(3 * 8 / 8)
    finest = min(
        0.5 * a + math.log1p(-1 / a) - (math.log(1e-5) + math.log(a)) / (a - 1)
        for a in (1 + k / 1000 for k in range(1, 40_000))
    )
    assert published.zcdp_to_dp(0.5, 1e-5) == pytest.approx(finest, rel=2e-3)
    assert published.zcdp_to_dp(0.5, 1e-5) >= finest


@pytest.mark.parametrize("count", [5, 100, 2000])
def test_exact_composition_beats_every_published_route(count):
    sigma, delta = 20.0, 1e-6
    each = ln.analytic_gaussian(epsilon=0.2, delta=1e-8, sensitivity=1, shape=3)
    sigma = each.standard_deviation
    exact = each.repeat(count).epsilon(delta).upper
    alone = each.epsilon(delta / (2 * count)).upper
    assert exact <= published.zcdp_to_dp(published.gaussian_zcdp(sigma, n=count), delta)
    assert exact <= published.advanced_composition(alone, delta / (2 * count), count, delta / 2).epsilon
    assert exact <= published.basic_composition(alone, delta / (2 * count), count).epsilon


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: published.amortise(1, 1e-5, steps=10, slack=1e-4), "slack=0.0001"),
        (lambda: published.strong_composition(1, 1e-5, steps=0), "steps=0"),
        (lambda: published.strong_composition(1, 1e-5, steps=10, rate=2), "rate=2"),
        (lambda: published.rdp_to_dp(1.0, 0.5, 1e-5), "order=1.0"),
        (lambda: published.basic_composition(-1, 0, 3), "epsilon=-1"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ln.InvalidInput, match=words):
        call()
