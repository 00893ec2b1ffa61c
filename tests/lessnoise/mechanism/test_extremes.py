"""Targets far outside the usual: no warning (pytest makes them errors), no endless search, every claim of ours kept."""

import math

import pytest

import lessnoise as ln
from lessnoise import Request
from lessnoise.mechanism.catalogue import CATALOGUE
from lessnoise.mechanism.curve import chords, l2, radial
from lessnoise.mechanism.losses import log_raw_moment

# Radial integrals and the least-noise search take seconds each out here; they have cases of their own below.
QUICK = sorted(set(CATALOGUE) - {"least-noise", "radial", "r1smg", "r1smg-published", "discrete-power"})
NOT_FOR_ONE_ENTRY = {
    "dawa",
    "dawa-dpcomp",
    "hb",
    "hb-gaussian",
    "mgm",
    "mvg",
    "mvg-code",
    "mvg-published",
    "product-noise",
}
CASES = [(name, shape) for name in QUICK for shape in ((1,), (2, 3)) if shape != (1,) or name not in NOT_FOR_ONE_ENTRY]

TARGETS = [(1e4, 1e-6), (1e5, 1e-200), (1e-5, 1e-200)]
LONG = ("correlated-radial", (2, 3), 1e5, 1e-200)  # its search takes as long at 1e4
EXTREMES = [(*case, *target) for case in CASES for target in TARGETS if (*case, *target) != LONG]


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
@pytest.mark.parametrize(("name", "shape", "epsilon", "delta"), EXTREMES)
def test_every_mechanism_of_the_catalogue_at_extreme_targets(name, shape, epsilon, delta):
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


@pytest.mark.parametrize(("epsilon", "delta"), [(1e4, 1e-6), (1e5, 1e-200), (1e-5, 1e-200), (30.0, 1e-6)])
def test_counts_that_change_together_at_extreme_targets(epsilon, delta):
    changes = ln.changes.counts(2, per_cell=1)
    best = ln.least_noise(epsilon=epsilon, delta=delta, shape=4, changes=changes)
    assert best.check().holds
    try:
        power = CATALOGUE["discrete-power"].build(Request(epsilon, delta, None, (4,), changes=changes))
    except ln.InvalidInput as error:
        assert "choose" in str(error)  # noqa: PT017
    else:
        assert power.check().holds


@pytest.mark.slow
@pytest.mark.parametrize("name", ["radial", "r1smg"])
def test_radial_mechanisms_at_a_huge_epsilon(name):
    mechanism = CATALOGUE[name].build(Request(1e5, 1e-6, 1.0, (900,), k=2.0, p=1.5))
    assert mechanism.check().holds


@pytest.mark.parametrize("epsilon", [1e2, 1e4, 1e5])
@pytest.mark.parametrize("dimension", [2, 5, 30])
def test_l2_curve_at_huge_epsilon_agrees_with_the_general_integral(epsilon, dimension):
    setting = {"dimension": dimension, "scale": 0.9 / epsilon, "sensitivity": 1.0, "epsilon": epsilon}
    one = l2.delta_bracket(**setting, tolerance=1e-4)
    other = radial.RadialCurve(**setting, k=float(dimension), p=1.0).bracket(1e-4)
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


# Work is bounded, whatever is asked for.


def test_splitting_ends_where_it_gains_nothing():
    """At an epsilon of 1e-300 what is left between the ends is rounding; half a million cells do not narrow it."""
    curve = radial.RadialCurve(20, 19.5, 1.8, 1.8e6, 1.0, 1e-300)
    with chords.at_most(100_000):
        bracket = curve.bracket(1e-2)
    assert 0.0 <= bracket.lower <= bracket.upper <= 1.0


def test_a_search_may_compute_so_many_cells_and_no_more():
    curve = radial.RadialCurve(20, 19.5, 1.8, 20.0, 1.0, 1.0)
    with pytest.raises(chords.TooMuchWork), chords.at_most(100):
        curve.bracket()
    with chords.at_most(10_000):
        with pytest.raises(chords.TooMuchWork), chords.at_most(100):
            curve.bracket()
        assert curve.bracket() == radial.RadialCurve(20, 19.5, 1.8, 20.0, 1.0, 1.0).bracket()


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 3e-11])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_least_noise_of_a_vanishing_epsilon_is_nearly_uniform_in_a_ball(epsilon, dimension):
    """Moved by 1, a ball of large radius R leaves V_(M-1)/(V_M R) of itself behind: its delta at every epsilon."""
    delta = 1e-6
    found = ln.least_noise(epsilon=epsilon, delta=delta, sensitivity=1.0, shape=dimension)
    radius = math.exp(math.lgamma(dimension / 2 + 1) - math.lgamma((dimension + 1) / 2)) / (math.sqrt(math.pi) * delta)
    assert found.check().holds
    assert found.expected_loss == pytest.approx(dimension / (dimension + 2) * radius**2, rel=1e-3)
    assert "the shell mechanism was left out" in found.design.note


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "dimension"),
    [(1e-300, 1e-200, 20), (1e-12, 1e-200, 100), (1e-300, 0.999, 7), (1e5, 1e-200, 2000)],
)
def test_the_least_noise_of_extreme_targets_takes_bounded_work(epsilon, delta, dimension, monkeypatch):
    cells = []
    monkeypatch.setattr(
        chords, "count_work", lambda count, counted=chords.count_work: (cells.append(count), counted(count))
    )
    wanted = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    found = ln.least_noise(**wanted)
    assert sum(cells) < 10**6
    assert found.check().holds
    gaussian = ln.analytic_gaussian(**wanted)
    assert found.standard_deviation <= gaussian.standard_deviation * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("builder", "arguments", "words"),
    [
        (ln.laplace, {"epsilon": 1e-300, "sensitivity": 1e300}, "epsilon=1e-300, sensitivity=1e\\+300 ask for noise"),
        (ln.hb, {"epsilon": 1e-300, "l1_sensitivity": 1e300, "shape": 8}, "l1_sensitivity=1e\\+300 ask for noise"),
        (
            ln.r1smg,
            {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1e300, "calibration": "published"},
            "sensitivity=1e\\+300 ask for noise",
        ),
        (ln.r1smg, {"epsilon": 1.0, "delta": 1e-200, "sensitivity": 1.0, "calibration": "published"}, "delta=1e-200"),
        (ln.discrete_gaussian, {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1e300}, "sensitivity=1e\\+300"),
        (ln.correlated_gaussian, {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1e200}, "sensitivity=1e\\+200"),
        (
            ln.analytic_gaussian,
            {"epsilon": 5e-324, "delta": 1e-6, "sensitivity": 1.0},
            "epsilon=5e-324 is too small",
        ),
        (ln.least_noise, {"epsilon": 5e-324, "delta": 1e-6, "sensitivity": 1.0}, "epsilon=5e-324 is too small"),
    ],
)
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_noise_that_no_double_holds_is_refused_in_one_sentence(builder, arguments, words):
    with pytest.raises(ln.InvalidInput, match=words) as caught:
        builder(**{"shape": 3, **arguments})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_loss_of_a_tree_of_counts_neither_raises_nor_vanishes(scale):
    tree, unit = (ln.hb(epsilon=1.0, l1_sensitivity=size, shape=8) for size in (scale, 1.0))
    logs = [log_raw_moment(mechanism.law, 8, 1) for mechanism in (tree, unit)]
    assert logs[0] - logs[1] == pytest.approx(2.0 * math.log(scale), rel=1e-12)
    assert tree.expected_loss == (math.inf if scale > 1.0 else 0.0)  # beyond what a double holds
