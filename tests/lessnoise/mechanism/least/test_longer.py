"""Bounds where the noise is wide: the group property on exact curves, kept proofs, and how sharp it all is."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise import cache as kept_answers
from lessnoise.mechanism.catalogue import build_all, keeps
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import Radial
from lessnoise.mechanism.least import builder, search
from lessnoise.mechanism.least.bound import (
    LowerBound,
    count_of,
    entries_bound,
    longer,
    lower_bound,
    radial_guide,
    shortened,
    worth,
)
from lessnoise.mechanism.least.objective import Goal, Power, Problem, Ramp
from lessnoise.mechanism.losses import raw_moment

SQUARE, GOAL = Power(2.0), Goal.of("squared")


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv(kept_answers.VARIABLE, str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache"
    forget()


def forget():
    search.find.cache_clear()
    builder.proved_bound.cache_clear()


# The group property.


@settings(max_examples=60, deadline=None)
@given(st.floats(0.5, 1e6), st.floats(-7.0, 0.5), st.integers(1, 20))
def test_gaussian_noise_keeps_what_is_said_of_longer_shifts(sigma, log_epsilon, doublings):
    epsilon, count = 10.0**log_epsilon, 2**doublings
    delta = gaussian.delta(1.0 / sigma, epsilon)
    if delta < 1e-200 or count * epsilon > 300.0:
        return
    wide = longer(Problem(3, epsilon, delta, SQUARE), count)
    assert wide.epsilon == count * epsilon
    assert gaussian.delta(count / sigma, wide.epsilon) <= wide.target * (1.0 + 1e-11)


@pytest.mark.parametrize("law", [Radial(2.0, 1.0, 9.0), Shells(2, (0.0, 30.0), (1.0,)), Radial(1.0, 3.0, 40.0)])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.1])
def test_other_noise_keeps_it_too(law, epsilon):
    dimension = int(getattr(law, "dimension", law.k if isinstance(law, Radial) else 2))
    problem = Problem(dimension, epsilon, max(delta_of(law, dimension, 1.0, epsilon).upper, 1e-12), SQUARE)
    for count in (2, 8):
        wide = longer(problem, count)
        assert delta_of(law, dimension, float(count), wide.epsilon).lower <= wide.target * (1.0 + 1e-9)


def test_little_is_lost_where_the_noise_is_wide():
    for epsilon, delta in ((1e-6, 1e-5), (1e-5, 1e-7), (1e-3, 1e-9), (0.1, 1e-6)):
        problem = Problem(5, epsilon, delta, SQUARE)
        count = count_of(problem)
        wide = longer(problem, count)
        assert count > 1
        ratio = count * gaussian.gaussian_scale(wide.epsilon, wide.target) / gaussian.gaussian_scale(epsilon, delta)
        assert 0.985 < ratio <= 1.0 + 1e-9


def test_units_and_objectives():
    problem = Problem(4, 0.01, 1e-6, Ramp(3.0, 3.3))
    wide = longer(problem, 4)
    assert wide.objective == Ramp(0.75, 0.825)
    assert worth(problem, 4) == 1.0
    for order in (1.0, 2.0):
        assert worth(problem._replace(objective=Power(order)), 8) == pytest.approx(8.0**order)
    assert longer(problem, 1) is problem
    found = shortened(LowerBound(2.0, "caps", 2.1, (3.0,), (1.0, 0.5)), problem._replace(objective=SQUARE), 8)
    assert (found.count, found.shifts) == (8, (8.0, 4.0))
    assert 127.99 < found.value < 128.0
    assert count_of(Problem(3, 1.0, 1e-6, SQUARE)) == 1
    for count in (0, -4, 3, 12):
        with pytest.raises(ValueError, match="power of 2"):
            longer(problem, count)


@pytest.mark.slow
def test_both_ways_agree_where_both_work():
    problem = Problem(30, 0.3, 1e-6, SQUARE)
    expected = 30 * gaussian.gaussian_scale(0.3, 1e-6) ** 2
    count = count_of(problem)
    direct = lower_bound(problem, None, expected, goal=0.95)
    wide = lower_bound(longer(problem, count), None, expected / worth(problem, count), goal=0.95)
    assert shortened(wide, problem, count).value == pytest.approx(direct.value, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "k", "p"), [(10, 8.0, 1.6), (5, 5.0, 14.0)])
def test_the_guide_of_a_radial_member(dimension, k, p):
    law = Radial(k, p, 20.0)
    problem = Problem(dimension, 0.05, delta_of(law, dimension, 1.0, 0.05).upper, SQUARE)
    guide = radial_guide(k, p, 20.0, problem)
    assert guide.expected == pytest.approx(raw_moment(law, dimension, 1), rel=1e-3)
    assert guide.level > guide.expected
    assert len(guide.sigma) == len(guide.radii) - 1
    bound = lower_bound(problem, guide, guide.expected, goal=0.9, limit=3.0)
    assert bound.value <= raw_moment(law, dimension, 1)


@pytest.mark.slow
def test_any_guide_leads_to_a_true_bound():
    problem, best = Problem(3, 0.1, 1e-4, SQUARE), 3.0 * gaussian.gaussian_scale(0.1, 1e-4) ** 2
    for k, p, scale in ((0.5, 0.5, 20.0),):
        found = lower_bound(problem, radial_guide(k, p, scale, problem), best, goal=0.9, limit=3.0)
        assert 0.0 < found.value <= best


# What is kept on disk.


TINY = {"epsilon": 1e-5, "delta": 1e-7, "sensitivity": 2.0, "shape": 40}


@pytest.mark.slow
def test_proofs_against_longer_shifts_are_gone_through_again(empty_cache, monkeypatch):
    bound, loss = ln.loss_lower_bound(**TINY), ln.least_noise(**TINY).expected_loss
    assert 1.0 <= loss / bound < 1.03
    (path,) = (file for file in empty_cache.iterdir() if b'"proof"' in file.read_bytes())
    record = json.loads(path.read_bytes())
    assert record["answer"]["count"] > 1
    monkeypatch.setattr(builder, "_compute", lambda *_: LowerBound(0.0, "none", 0.0))  # must not be needed again
    forget()
    assert ln.loss_lower_bound(**TINY) == bound
    kept = record["answer"]["count"]
    for count in (1, kept // 4, 4 * kept, 2**40, 2**2000, 3, 0, -2, True, None, "4", 1e300, math.nan, [2]):
        record["answer"]["count"] = count
        path.write_text(json.dumps(record))
        forget()
        assert 0.0 < ln.loss_lower_bound(**TINY) <= loss


# Never above a mechanism, and not far below.


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-6.0, 1.0).map(lambda x: 10.0**x),
    st.floats(-9.0, -2.0).map(lambda x: 10.0**x),
    st.sampled_from([1, 2, 7, 40]),
)
def test_entries_are_never_above_a_mechanism_of_the_catalogue(epsilon, delta, dimension):
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    square, length = (entries_bound(Problem(dimension, epsilon, delta, Power(order))) for order in (2.0, 1.0))
    assert length**2 <= dimension * gaussian.gaussian_scale(epsilon, delta) ** 2
    assert square <= ln.analytic_gaussian(**target).expected_loss
    assert square <= dimension**2 * 2.0 / epsilon**2  # independent Laplace noise, l1 sensitivity sqrt(dimension)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "epsilon", "delta"),
    [(20, 1e-4, 1e-7), (3, 0.02, 1e-3), (1, 0.02, 1e-3)],
)
def test_no_mechanism_of_the_catalogue_is_below_the_bound(epsilon, delta, dimension):
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    bound = ln.loss_lower_bound(**target)
    assert bound > 0.0
    request = ln.Request.of(epsilon, delta, 1.0, dimension, "add/remove")
    for mechanism in build_all(request):
        if keeps(mechanism, request):
            assert mechanism.expected_loss >= bound, mechanism.name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dimension", "epsilon", "delta"),
    [(2, 1e-6, 1e-9), (10, 1e-6, 1e-5), (100, 1e-5, 1e-7), (10_000, 1e-6, 1e-9), (2, 1e-3, 1e-9), (10, 0.1, 1e-5)],
)
def test_the_factor_is_small_for_tiny_epsilon(empty_cache, epsilon, delta, dimension):
    loss = math.exp(2.0 * GOAL.log_size(search.find(dimension, epsilon, delta, 1.0, GOAL).law, dimension))
    assert 1.0 <= loss / builder.proved_bound(dimension, epsilon, delta, GOAL) < 1.2


def test_few_entries_have_a_radial_member_where_epsilon_is_tiny(empty_cache):
    target = {"epsilon": 1e-5, "delta": 1e-7, "sensitivity": 1.0, "shape": 3}
    assert ln.least_noise(**target).expected_loss < 0.93 * ln.l2_mechanism(**target).expected_loss


@pytest.mark.slow
def test_the_paper_s_count_query(empty_cache):
    target = {"epsilon": 1e-5, "delta": 1e-7, "sensitivity": math.sqrt(2.0), "shape": (89, 89)}
    assert 1.0 <= ln.least_noise(**target).optimality < 1.03


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["l2", "quantile:0.9"])
def test_other_objectives(empty_cache, objective):
    target = {"epsilon": 1e-4, "delta": 1e-6, "sensitivity": 1.0, "shape": 200, "objective": objective}
    assert 1.0 <= ln.least_noise(**target).optimality < 1.1
