"""Delta of Laplace noise against changes of many entries: closed forms, another library, brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessnoise.changes import Moves
from lessnoise.mechanism.measured.laplace_losses import LaplaceLosses, _rounded, _tilted

SIZES = st.lists(st.floats(0.01, 1.5), min_size=1, max_size=9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.99, 0.9999])
def test_one_entry_has_its_closed_form(epsilon):
    found = LaplaceLosses((Moves.of([1.0]),)).delta(epsilon)
    exact = -math.expm1(0.5 * (epsilon - 1.0))
    assert found.lower <= exact <= found.upper
    assert found.upper - found.lower <= 5e-5


@pytest.mark.parametrize("part", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("above", [True, False])
def test_polygons_lie_on_one_side_of_the_curve(part, above):
    step = 0.02
    masses, log = _tilted(part, step, 0.0, above=above)
    losses, a = step * np.arange(-part, part + 1), step * part
    assert log == pytest.approx(0.0, abs=1e-12)
    assert masses.min() > 0.0
    for g in np.exp(np.linspace(-a - 0.05, a + 0.05, 501)):
        polygon = float(masses @ np.maximum(1.0 - g * np.exp(-losses), 0.0))
        curve = max(1.0 - math.exp(-a / 2) * math.sqrt(g), 1.0 - g, 0.0)
        if g >= math.exp(a):
            curve = 0.0
        assert (polygon - curve) * (1 if above else -1) >= -1e-14
        assert abs(polygon - curve) <= 0.2 * step**2


@given(sizes=SIZES, step=st.floats(0.01, 0.3))
@settings(max_examples=200, deadline=None)
def test_rounded_sizes_are_above_or_below_in_every_sum(sizes, step):
    true = Moves.of(sizes)
    for above in (True, False):
        rounded = _rounded(list(true.sizes), step, above=above)
        assert all(part > 0 for part in rounded)
        if not rounded:
            assert not above
            continue
        other = Moves.counted((part * step, count) for part, count in rounded.items())
        loose = 1.0 + 1e-9
        assert other.scaled(loose).majorizes(true) if above else true.scaled(loose).majorizes(other)


@given(sizes=SIZES, share=st.floats(0.0, 0.99))
@settings(max_examples=15, deadline=None)
def test_brackets_hold_the_delta_of_another_library(sizes, share):
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    epsilon = share * sum(sizes)
    found = LaplaceLosses((Moves.of(sizes),)).delta(epsilon)
    both = []
    for pessimistic in (True, False):
        composed = None
        for size in sizes:
            one = pld.from_laplace_mechanism(
                1.0 / size, value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
            )
            composed = one if composed is None else composed.compose(one)
        both.append(composed.get_delta_for_epsilon(epsilon))
    assert found.lower <= both[0] * (1 + 1e-9) + 1e-12
    assert both[1] <= found.upper * (1 + 1e-9) + 1e-12
    assert 0.0 <= found.upper - found.lower <= 0.02 * found.upper + 1e-12


def test_the_worst_of_several_changes_counts():
    spread, alone = Moves.of([0.25] * 4), Moves.of([1.0])
    both = LaplaceLosses((spread, alone)).delta(0.5)
    assert both.upper == pytest.approx(-math.expm1(-0.25), rel=1e-3)
    assert LaplaceLosses((spread,)).delta(0.5).upper < 0.6 * both.lower


def test_a_thousand_changes_at_once_agree_with_each_alone():
    rng = np.random.default_rng(3)
    changes = tuple(Moves.of(rng.dirichlet(np.full(9, 0.5)).tolist()) for _ in range(300))
    together = LaplaceLosses(changes).delta(0.8)
    alone = [LaplaceLosses((each,)) for each in changes[::60]]
    assert all(each.delta(0.8).lower <= together.upper for each in alone)
    most = max(changes, key=lambda each: each.sizes[0][0])
    assert LaplaceLosses((most,)).delta(0.8).lower <= together.upper * (1 + 1e-12)
    assert together.upper <= 1.005 * together.lower


def test_tiny_deltas_keep_their_digits():
    n = 40
    found = LaplaceLosses((Moves(((1.0 / n, n),)),)).delta(0.9)
    rng = np.random.default_rng(1)  # importance: all losses drawn from their tilted law
    theta = 60.0
    a = 1.0 / n

    def losses(count):
        grid = np.linspace(-a, a, 4001)
        density = 0.25 * np.exp(-(a - grid) / 2) * np.exp(theta * grid)
        inner = np.trapezoid(density, grid)
        top, bottom = 0.5 * math.exp(theta * a), 0.5 * math.exp(-a) * math.exp(-theta * a)
        total = inner + top + bottom
        kind = rng.random(count)
        cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        between = np.interp(rng.random(count) * cumulative[-1], cumulative, grid)
        return np.where(kind < top / total, a, np.where(kind < (top + bottom) / total, -a, between)), total

    draws = np.zeros(200_000)
    log_total = 0.0
    for _ in range(n):
        loss, total = losses(draws.size)
        draws += loss
        log_total += math.log(total)
    values = np.where(draws > 0.9, -np.expm1(np.minimum(0.9 - draws, 0.0)) * np.exp(log_total - theta * draws), 0.0)
    error = values.std() / math.sqrt(values.size)
    assert 0.0 < found.upper < 1e-7
    assert found.lower - 7 * error <= values.mean() <= found.upper + 7 * error
