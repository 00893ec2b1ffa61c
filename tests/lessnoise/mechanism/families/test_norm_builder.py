"""The least noise on a body: its numbers, that no smaller scale would do, and what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.audit import audit, worst_neighbour
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import NormRadial, NormStaircase, norm_radial
from lessnoise.mechanism.mechanism import Mechanism

CUBE, CORNER = ln.changes.ball(1.0, norm=math.inf), ln.changes.corner(1.0)


def entry_loss(epsilon, delta, dimension, changes):
    return norm_radial(epsilon=epsilon, delta=delta, shape=dimension, changes=changes).expected_loss / dimension


def test_ten_bounded_sums():
    assert entry_loss(1, 1e-6, 10, CUBE) == pytest.approx(44.0, rel=1e-4)
    assert entry_loss(1, 1e-6, 10, CORNER) == pytest.approx(26.0, rel=1e-4)
    assert entry_loss(8, 1e-6, 10, CORNER) == pytest.approx(0.3526, rel=1e-3)
    assert entry_loss(8, 1e-6, 10, CUBE) == pytest.approx(0.5967, rel=1e-3)
    shared = ln.correlated_gaussian(epsilon=1, delta=1e-6, shape=10)
    assert entry_loss(1, 1e-6, 10, CORNER) < 0.4 * shared.expected_loss / 10


@pytest.mark.slow
@pytest.mark.parametrize("changes", [CUBE, CORNER])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-2), (4.0, 1e-9), (0.02, 0.3)])
@pytest.mark.parametrize("dimension", [1, 3, 20])
def test_the_target_is_kept_and_no_smaller_scale_keeps_it(changes, epsilon, delta, dimension):
    m = norm_radial(epsilon=epsilon, delta=delta, shape=dimension, changes=changes)
    assert m.check().holds
    assert m.changes == changes
    assert Mechanism.from_json(m.to_json()) == m
    name = "scale" if isinstance(m.law, NormRadial) else "width"
    smaller = replace(m, law=replace(m.law, **{name: getattr(m.law, name) * (1 - 1e-4)}))
    assert smaller.delta(epsilon).lower > delta * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [CUBE, CORNER])
def test_no_power_is_better(changes):
    best = norm_radial(epsilon=0.1, delta=1e-2, shape=5, changes=changes)
    assert isinstance(best.law, NormRadial)
    for power in (1.0, 1.2, 1.5, 2.0, 3.0):
        law = NormRadial(best.law.body, power, 1.0)
        other = Mechanism("other", law, (5,), 1.0)
        low, high = 1e-3, 1e4
        while high > low * (1 + 1e-9):
            scale = math.sqrt(low * high)
            if replace(other, law=replace(law, scale=scale)).delta(0.1).upper <= 1e-2:
                high = scale
            else:
                low = scale
        assert replace(other, law=replace(law, scale=high)).expected_loss >= best.expected_loss * (1 - 1e-4)


def test_no_share_is_better():
    best = norm_radial(epsilon=6, delta=1e-6, shape=7, changes=CORNER)
    assert isinstance(best.law, NormStaircase)
    for share in np.linspace(0.01, 1.0, 60):
        assert replace(best, law=replace(best.law, share=share)).expected_loss >= best.expected_loss * (1 - 1e-9)


def test_units_do_not_matter():
    for changes in (CUBE, CORNER):
        for epsilon in (1, 8):
            one = norm_radial(epsilon=epsilon, delta=1e-6, shape=6, changes=changes)
            many = norm_radial(epsilon=epsilon, delta=1e-6, shape=6, changes=changes.scaled(250.0))
            assert many.expected_loss == pytest.approx(250.0**2 * one.expected_loss, rel=1e-9)
            assert many.check().holds


def test_bounds_of_their_own():
    bounds = [1.0, 3.0, 0.1, 7.0]
    m = norm_radial(epsilon=1, delta=1e-6, shape=(2, 2), changes=ln.changes.corner(bounds))
    unit = norm_radial(epsilon=1, delta=1e-6, shape=4, changes=CORNER)
    assert m.expected_loss == pytest.approx(unit.expected_loss * sum(b * b for b in bounds) / 4, rel=1e-9)
    assert m.check().holds
    assert m.law.factors == tuple(b / 7.0 for b in bounds)
    shift = worst_neighbour(m, np.zeros((2, 2))).ravel()
    assert shift == pytest.approx([1.0, 3.0, 0.0, 0.0])
    alike = norm_radial(epsilon=1, delta=1e-6, shape=2, changes=ln.changes.corner([2.0, 2.0]))
    assert alike.law.factors == ()


def test_many_entries_at_once():
    for changes in (CUBE, CORNER):
        m = norm_radial(epsilon=1, delta=1e-6, shape=10**6, changes=changes)
        assert m.check().holds
        assert m.law.power == 1.0


def test_other_sets_are_refused():
    for changes in (ln.changes.ball(1.0), ln.changes.counts(), ln.changes.listed([[1.0, 2.0]])):
        with pytest.raises(InvalidInput, match="neither a box nor a corner"):
            norm_radial(epsilon=1, delta=1e-6, shape=2, changes=changes)
    with pytest.raises(InvalidInput, match="replaced individual"):
        norm_radial(epsilon=1, delta=1e-6, shape=2, changes=CORNER, neighbours="replace")
    assert norm_radial(epsilon=1, delta=1e-6, shape=2, changes=CUBE, neighbours="replace").check().holds
    m = norm_radial(epsilon=1, delta=1e-6, shape=2, changes=CORNER)
    for changes in (CUBE, ln.changes.ball(1.0), ln.changes.corner([1.0, 2.0])):
        with pytest.raises(InvalidInput, match="has a curve"):
            m.against(changes)
    assert m.against(ln.changes.counts()).delta(0.5) == m.delta(0.5)  # of two entries one is the worst vertex
    wide = norm_radial(epsilon=1, delta=1e-6, shape=6, changes=CORNER)
    assert wide.against(ln.changes.counts(3, per_cell=1)).delta(0.5) == wide.delta(0.5)
    with pytest.raises(InvalidInput, match="has a curve"):
        wide.against(ln.changes.counts(2, per_cell=1))
    cube = norm_radial(epsilon=1, delta=1e-6, shape=2, changes=CUBE)
    assert cube.against(CORNER).delta(0.5) == cube.delta(0.5)  # its vertex is one of the corner


@pytest.mark.slow
@pytest.mark.parametrize("changes", [CUBE, ln.changes.corner([1.0, 2.0, 0.5])])
@pytest.mark.parametrize("epsilon", [0.5, 4])
def test_audits_find_most_of_it(changes, epsilon):
    m = norm_radial(epsilon=epsilon, delta=0.05, shape=3, changes=changes)
    report = audit(m, np.zeros(3), samples=20_000, rng=np.random.default_rng(1), progress=False)
    assert report.refuted is False
    less = (0.5 * epsilon, 0.5 * m.delta(0.5 * epsilon).lower)
    assert audit(m, np.zeros(3), claim=less, samples=20_000, rng=np.random.default_rng(2), progress=False).refuted
