"""Plans: every scale is proved, none is 0.1% too large, and the law is the best for that many releases."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import norm

import lessnoise as ln
from lessnoise.composition import SHARP, delta_of_steps
from lessnoise.mechanism import rescaled, with_noise
from lessnoise.planning import read_schedule

COUNT = ln.Request(1, 1e-6, None, 1, changes=ln.changes.counts())
BALL = ln.Request(1, 1e-6, 1.0, 10)


def lowest(plan: ln.ReleasePlan, factor: float) -> float:
    """Delta at the target's epsilon, from below, with all noise multiplied by a factor."""
    parts = tuple(replace(item.part, mechanism=with_noise(item.mechanism, factor)) for item in plan)
    return delta_of_steps(ln.Composition(parts).steps, plan.target.epsilon, SHARP).lower


def is_tight(plan: ln.ReleasePlan) -> bool:
    """Proved to fit, and with 0.1% less noise proved not to."""
    return plan.exact_delta.upper <= plan.target.delta < lowest(plan, 0.999)


# The scale.


@pytest.mark.parametrize("times", [1, 12, 365, 10_000])
def test_gaussian_plans_are_the_closed_form(times):
    """Times releases of mu = 1/sigma are one of mu sqrt(times): Balle & Wang's delta, by SciPy, must be 1e-6."""
    plan = ln.plan_releases(BALL, times=times, mechanism="analytic-gaussian")
    mu = math.sqrt(times) / plan.mechanism.standard_deviation
    delta = norm.cdf(-1.0 / mu + mu / 2.0) - math.e * norm.cdf(-1.0 / mu - mu / 2.0)
    assert math.isclose(delta, 1e-6, rel_tol=1e-6)
    assert plan.check().holds


@pytest.mark.parametrize("times", [12, 365, 10_000])
@pytest.mark.parametrize("name", ["laplace", "l2", "discrete-gaussian", "geometric"])
def test_the_scale_is_proved_and_within_a_thousandth(name, times):
    request = COUNT if name in ("discrete-gaussian", "geometric") else replace(BALL, shape=3)
    assert is_tight(ln.plan_releases(request, times=times, mechanism=name))


@pytest.mark.slow
def test_sampled_gaussians_are_within_a_thousandth():
    """The tail of one step weighs as much as the middle here: cut off too early, it misled the search by 0.2%."""
    assert is_tight(ln.plan_releases(BALL, times=365, rate=0.01, mechanism="analytic-gaussian"))


def test_geometric_noise_agrees_with_the_binomial_sum():
    plan = ln.plan_releases(COUNT, times=52, mechanism="geometric")
    rate, n = plan.mechanism.law.rate, 52
    p = 1.0 / (1.0 + math.exp(-rate))
    terms = (
        math.comb(n, k) * p**k * (1.0 - p) ** (n - k) * max(1.0 - math.exp(1.0 - rate * (2 * k - n)), 0.0)
        for k in range(n + 1)
    )
    assert 0.99e-6 < math.fsum(terms) <= 1e-6


def test_sampled_steps_are_tight_and_need_less_noise():
    plan = ln.plan_releases(BALL, times=100, rate=0.05, mechanism="analytic-gaussian")
    assert is_tight(plan)
    whole = ln.plan_releases(BALL, times=100, mechanism="analytic-gaussian")
    assert plan.mechanism.standard_deviation < 0.2 * whole.mechanism.standard_deviation
    assert plan.mechanism.claim is None  # true of the sampled releases alone
    assert plan.composition.parts[0].rate == 0.05


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-9), (4.0, 1e-4)])
def test_other_targets(epsilon, delta):
    assert is_tight(
        ln.plan_releases(replace(BALL, shape=1), times=20, epsilon=epsilon, delta=delta, mechanism="laplace")
    )


# The law.


def test_the_best_law_for_one_is_not_the_best_for_many():
    kinds = {times: ln.plan_releases(COUNT, times=times).mechanism.law.kind for times in (1, 12, 10_000)}
    assert kinds == {1: "geometric", 12: "discrete-power", 10_000: "discrete-gaussian"}


@pytest.mark.parametrize("times", [12, 10_000])
def test_nothing_by_name_beats_the_best(times):
    best = ln.plan_releases(COUNT, times=times).mechanism.expected_loss
    for name in ("geometric", "discrete-gaussian", "analytic-gaussian"):
        assert best <= ln.plan_releases(COUNT, times=times, mechanism=name).mechanism.expected_loss * 1.002


def test_a_mechanism_keeps_its_kind():
    asked = ln.laplace(epsilon=3, sensitivity=2, shape=2)
    plan = ln.plan_releases(asked, times=7, epsilon=1, delta=1e-6)
    assert plan.mechanism.law.kind == "laplace"
    assert plan.mechanism.law.scale > 10.0
    assert is_tight(plan)


def test_every_law_that_is_rescaled_loses_as_the_change_divided_by_the_factor():
    """Real noise twice as wide is that of half the change: the curves agree within their brackets."""
    for built in (
        ln.laplace(epsilon=1, sensitivity=1, shape=2),
        ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=3),
        ln.least_noise(epsilon=1, delta=1e-6, sensitivity=1, shape=2),
        ln.generalized_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=1, p=1.5),
        ln.correlated_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=4),
        ln.norm_radial(epsilon=1, delta=1e-6, shape=3, changes=ln.changes.box(1)),
    ):
        wide = replace(built, law=rescaled(built.law, 2.0), claim=None, design=None, changes=None)
        half = replace(built, sensitivity=0.5 * built.sensitivity, claim=None, design=None, changes=None)
        for epsilon in (0.1, 0.3):
            one, other = wide.delta(epsilon), half.delta(epsilon)
            assert one.lower <= other.upper * (1.0 + 1e-9)
            assert other.lower <= one.upper * (1.0 + 1e-9)


# Schedules.


def test_shares_are_those_of_the_variance_and_all_of_the_budget_is_used():
    items = {
        "table": ln.Planned(BALL, 4, share=3, mechanism="analytic-gaussian"),
        "count": ln.Planned(replace(BALL, shape=1), 52, share=1, mechanism="analytic-gaussian"),
    }
    plan = ln.plan_releases(items, epsilon=1, delta=1e-6)
    alone = [ln.plan_releases(one.request, times=one.times, mechanism="analytic-gaussian") for one in items.values()]
    for item, whole, share in zip(plan, alone, (0.75, 0.25), strict=True):
        assert math.isclose(
            item.mechanism.standard_deviation, whole.mechanism.standard_deviation / math.sqrt(share), rel_tol=1e-6
        )
    assert is_tight(plan)
    assert plan.times == 56


def test_mixed_kinds_are_fitted_together():
    items = [
        ln.Planned(ln.Request(1, 1e-6, 1.0, 4), 4, share=2, mechanism="analytic-gaussian", name="quarterly"),
        ln.Planned(COUNT, 52, mechanism="discrete-gaussian"),
    ]
    plan = ln.plan_releases(items, epsilon=1, delta=1e-6)
    assert is_tight(plan)
    assert [item.name for item in plan] == ["quarterly", "item 2"]
    assert plan["item 2"].times == 52


def test_a_schedule_from_a_file():
    target = ln.Guarantee(1, 1e-6)
    items = [{"name": "q", "times": 4, "share": 2, "shape": [2, 3], "sensitivity": 1.5, "mechanism": "l2"}]
    (item,) = read_schedule({"items": items}, target)
    assert (item.times, item.share, item.request.shape, item.request.sensitivity) == (4, 2.0, (2, 3), 1.5)
    with pytest.raises(ln.InvalidInput, match="neither sensitivity nor changes"):
        read_schedule({"items": [{"times": 1, "shape": 1}]}, target)
    with pytest.raises(ln.InvalidInput, match="tims"):
        read_schedule({"items": [{"tims": 1, "times": 1, "shape": 1}]}, target)


# The description.


def test_a_plan_survives_json_and_is_checked_anew():
    plan = ln.plan_releases(COUNT, times=12)
    again = ln.ReleasePlan.from_json(plan.to_json())
    assert again == plan
    assert again.check().holds
    greedy = replace(plan, items=(replace(plan.items[0], times=13),))
    assert not greedy.check().holds
    assert "NOT proved" in str(greedy)


def test_what_is_released_by_a_plan_says_so():
    plan = ln.plan_releases(COUNT, times=12)
    release = plan.mechanism.release([5])
    assert release.certificate.claim_holds
    assert release.certificate.guarantee.delta < 1e-6


# Bad input.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"times": 0}, "times=0"),
        ({"times": None}, "times=None"),
        ({"times": 12, "epsilon": math.nan}, "epsilon=nan"),
        ({"times": 12, "delta": 0.0}, "delta=0"),
        ({"times": 12, "rate": 1.5}, "rate=1.5"),
        ({"times": 12, "mechanism": "gausian"}, "gausian"),
        ({"times": 12, "mechanism": "r1smg-published"}, "follows a claim"),
        ({"times": 12, "epsilon": 60.0}, "random numbers alone"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words):
    with pytest.raises(ln.InvalidInput, match=words) as caught:
        ln.plan_releases(BALL, **arguments)
    assert "\n" not in str(caught.value)


def test_bad_schedules():
    item = ln.Planned(BALL, 4)
    for schedule, words in (
        ([], "empty"),
        ([BALL], "not an item"),
        ([item, ln.Planned(replace(BALL, neighbours="replace"), 4)], "neighbours"),
        ([replace(item, name="a"), replace(item, name="a")], "two items"),
    ):
        with pytest.raises(ln.InvalidInput, match=words):
            ln.plan_releases(schedule, epsilon=1, delta=1e-6)
    with pytest.raises(ln.InvalidInput, match="epsilon=None"):
        ln.plan_releases([item, item])
    with pytest.raises(ln.InvalidInput, match="times=3"):
        ln.plan_releases([item], times=3, epsilon=1, delta=1e-6)
    with pytest.raises(ln.InvalidInput, match="share"):
        ln.Planned(BALL, 4, share=0)
    with pytest.raises(ln.InvalidInput, match="rate"):
        ln.Planned(replace(BALL, neighbours="replace"), 4, rate=0.5)


# How it is shown.


def test_tables_and_pictures():
    plan = ln.plan_releases({"a <b>": ln.Planned(BALL, 12), "c": ln.Planned(BALL, 9)}, epsilon=1, delta=1e-6)
    html = plan._repr_html_()
    assert "a &lt;b&gt;" in html
    assert "is kept" in html
    figure = plan.plot()
    assert "21 releases within (1, 1e-06)" in figure.axes[0].get_title(loc="left")
    assert len(figure.axes[0].patches) == 2
