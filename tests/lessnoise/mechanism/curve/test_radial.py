"""The radial integrator's brackets against quadrature, simulation, closed forms and published values."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import lessnoise as ln
from lessnoise.mechanism.curve import gaussian, l2, radial
from lessnoise.mechanism.curve.lune import ROUNDING, lune
from tests.helpers.oracles import (
    Case,
    delta_difference,
    delta_monte_carlo,
    delta_positive,
    lune_fraction,
    privacy_loss,
    r1smg_eigenvalue,
)

WIDTH = 1e-4  # the promise of every bracket, relative
ORACLE = 1e-7  # relative error of the double integral, below 1e-8 where 25 digits were compared
SIGMAS = 6.0  # a sampled mean is further off with probability 2e-9

EXAMPLES = settings(max_examples=30, deadline=None, derandomize=True)


def bracket_of(case, tolerance=radial.DEFAULT_TOLERANCE):
    return radial.RadialCurve(**case._asdict()).bracket(tolerance)


def public_bracket(case):
    law = ln.Radial(case.k, case.p, case.scale)
    return ln.Mechanism("test", law, (case.dimension,), case.sensitivity).delta(case.epsilon)


def contains(bracket, value, slack=0.0):
    return bracket.lower * (1.0 - slack) <= value <= bracket.upper * (1.0 + slack)


# A broad sweep. Each case draws a member, an epsilon and a delta between 1e-15 and 1, and looks up the scale that has
# about this delta with the coarse curve under test: it only places the case, the oracle judges it.


def sweep_case(seed):
    rng = np.random.default_rng([2024, seed])
    kind = ("M", "1", "other")[seed % 3]
    dimension = int(rng.choice([1, 2, 3, 5, 10, 40, 7921, 10**9])) if seed % 2 else int(10 ** rng.uniform(0, 9))
    p = float(rng.choice([0.3, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0]) if rng.random() < 0.5 else rng.uniform(0.3, 8.0))
    if kind == "M":
        dimension = max(dimension, 5) if p < 1.0 else dimension  # nearly pure and low-dimensional: right but slow
        k = float(dimension)
    elif kind == "1":
        k = 1.0
    else:
        k = float(max(rng.choice([dimension * rng.random(), dimension - 10 ** rng.uniform(-3, 0)]), 0.5))
    epsilon = float(10 ** rng.uniform(-9, 2))
    if max(p, 2.0) * epsilon > 600.0 * (dimension - k) > 0.0:
        k = float(dimension)  # the far end has its own test
    target = 10 ** rng.uniform(-15, 0)
    low, high = -60.0, 80.0
    for _ in range(26):
        middle = 0.5 * (low + high)
        case = Case(dimension, k, p, math.exp(middle), 1.0, epsilon)
        low, high = (middle, high) if bracket_of(case, 0.2).middle > target else (low, middle)
    return Case(dimension, k, p, math.exp(low), 1.0, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(72))
def test_sweep_contains_the_double_integral(seed):
    case = sweep_case(seed)
    found = public_bracket(case)
    assert 1e-16 < found.upper <= 1.0
    assert contains(found, delta_positive(case), ORACLE), case
    assert found.relative_width <= WIDTH


DIFFERENCES = [
    Case(1, 1.0, 3.0, 2.0, 1.0, 1.0),
    Case(2, 2.0, 8.0, 3.0, 1.0, 3.0),
    Case(2, 0.5, 0.3, 1.0, 1.0, 1.0),
    Case(3, 3.0, 0.5, 0.3, 1.0, 1.5),
    Case(20, 15.0, 1.5, 3.0, 1.0, 1.0),
    Case(30, 1.0, 2.0, 1e3, 1.0, 2.0),
    Case(60, 59.5, 1.2, 0.1, 1.0, 4.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", DIFFERENCES, ids=str)
def test_contains_the_difference_of_two_probabilities(case):
    exact = float(delta_difference(case, digits=25))
    assert contains(public_bracket(case), exact)
    assert delta_positive(case) == pytest.approx(exact, rel=ORACLE)  # the two oracles check each other


SIMULATED = [
    Case(1, 1.0, 3.0, 1.0, 1.0, 0.5),
    Case(1, 0.4, 1.0, 0.7, 1.0, 1.0),
    Case(2, 2.0, 1.0, 0.4, 1.0, 0.7),
    Case(3, 1.0, 2.0, 3.0, 1.0, 0.1),
    Case(5, 4.5, 4.0, 2.0, 1.0, 1.0),
    Case(50, 50.0, 1.5, 0.3, 1.0, 0.0),
    Case(100, 1.0, 2.0, math.sqrt(2.0 * 2663.258234), 1.0, 0.5),
    Case(400, 300.0, 0.7, 0.001, 1.0, 2.0),
    Case(7921, 1.0, 2.0, math.sqrt(2.0 * 402110.0976), math.sqrt(2.0), 3.0),
    Case(10**6, 0.05, 1.0, 1e12, 1.0, 1.0),
    Case(10**9, 10**9 / 2, 3.0, 1e3, 1.0, 1e-4),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(SIMULATED)))
def test_contains_the_sampled_privacy_loss(seed):
    case = SIMULATED[seed]
    found = public_bracket(case)
    mean, deviation = delta_monte_carlo(case, samples=400_000, seed=seed)
    assert deviation > 0.0
    assert found.lower - SIGMAS * deviation <= mean <= found.upper + SIGMAS * deviation
    assert deviation < 0.02 * mean  # the simulation has the power to notice a wrong curve


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_coarse_bracket_is_still_a_bracket(seed):
    rng = np.random.default_rng([7, seed])
    dimension = int(rng.choice([2, 3, 8, 100]))
    k, p = float(rng.choice([1, dimension / 2, dimension])), float(rng.choice([0.5, 1.5, 3.0]))
    sensitivity = float((k / p) ** (1 / p) / math.sqrt(dimension) * rng.uniform(1, 3))
    case = Case(dimension, k, p, 1.0, sensitivity, 2.0)
    exact = delta_positive(case)
    for tolerance in (0.5, 0.1, 1e-2, 1e-3):
        found = bracket_of(case, tolerance)
        assert found.relative_width <= tolerance + 3e-5
        assert contains(found, exact, ORACLE)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 40, 1000, 10**6, 10**9])
@pytest.mark.parametrize(
    ("mu", "epsilon"),
    [(1e-6, 1e-7), (0.01, 0.02), (1 / 3.73063, 1.0), (1.0, 0.5), (1.0, 0.0), (4.0, 10.0), (14.0, 100.0)],
)
def test_general_integrator_agrees_with_the_gaussian_closed_form(dimension, mu, epsilon):
    case = Case(dimension, float(dimension), 2.0, math.sqrt(2.0) / mu, 1.0, epsilon)
    found = bracket_of(case)
    assert contains(found, gaussian.delta(mu, epsilon))
    assert found.relative_width <= WIDTH


@pytest.mark.parametrize("dimension", [2, 3, 4, 7, 12, 25, 40, 99, 100, 101, 102, 1000, 10_000])
@pytest.mark.parametrize(("scale", "epsilon"), [(0.7, 1.0), (0.05, 10.0), (3.0, 0.2), (50.0, 1e-3), (0.6, 0.0)])
def test_general_integrator_agrees_with_the_l2_form(dimension, scale, epsilon):
    scale = scale / math.sqrt(max(dimension / 40, 1.0))
    case = Case(dimension, float(dimension), 1.0, scale, 1.0, epsilon)
    general = bracket_of(case)
    special = l2.delta_bracket(dimension=dimension, scale=scale, sensitivity=1.0, epsilon=epsilon, tolerance=1e-5)
    assert max(general.lower, special.lower) <= min(general.upper, special.upper)
    assert special.relative_width <= WIDTH
    assert general.relative_width <= WIDTH


# Published and hand-derived values.


@pytest.mark.parametrize(
    ("dimension", "sensitivity", "epsilon", "delta", "eigenvalue", "at_claim", "at_half", "at_three"),
    [
        (7921, math.sqrt(2.0), 1e-5, 1e-7, 402110.0976, 0.216642, 0.123132, 0.060434),
        (100, 1.0, 1e-3, 1e-5, 2663.258234, 0.211605, 0.118813, 0.057441),
        (1000, 1.0, 1e-4, 1e-5, 20618.255045, 0.233002, 0.136015, 0.066875),
    ],
)
def test_published_r1smg_rows(dimension, sensitivity, epsilon, delta, eigenvalue, at_claim, at_half, at_three):
    mechanism = ln.r1smg(
        epsilon=epsilon, delta=delta, sensitivity=sensitivity, shape=dimension, calibration="published"
    )
    assert mechanism.expected_loss == pytest.approx(eigenvalue, rel=1e-9)
    for point, expected in ((epsilon, at_claim), (0.5, at_half), (3.0, at_three)):
        found = mechanism.delta(point)
        assert found.middle == pytest.approx(expected, abs=6e-7)
        assert found.relative_width <= WIDTH
    assert mechanism.check().refuted


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
@pytest.mark.parametrize(("dimension", "expected", "digits"), [(10, 0.181, 3), (100, 0.971, 3), (1000, 0.999995, 6)])
def test_r1smg_at_its_claimed_budget(dimension, expected, digits):
    mechanism = ln.r1smg(epsilon=1, delta=1e-5, sensitivity=1, shape=dimension, calibration="published")
    found, half = mechanism.delta(1), 0.5 * 10**-digits
    assert found.lower <= expected + half
    assert found.upper >= expected - half
    assert found.relative_width <= WIDTH
    assert mechanism.check().refuted


def test_r1smg_within_half_the_sensitivity():
    # "Is the output within D/2 of f(x)?" fires with probability 2 Phi(D/(2 sqrt(sigma_*))) - 1, and under a
    # neighbour with the far smaller mass of a ball that the mechanism seldom hits: delta is at least about that.
    sensitivity, eigenvalue = math.sqrt(2.0), r1smg_eigenvalue(7921, 1e-5, 1e-7, math.sqrt(2.0))
    fires = 2.0 * stats.norm.cdf(sensitivity / (2.0 * math.sqrt(eigenvalue))) - 1.0
    assert fires == pytest.approx(8.9e-4, rel=0.01)
    found = public_bracket(Case(7921, 1.0, 2.0, math.sqrt(2.0 * eigenvalue), sensitivity, 5.0))
    assert found.lower > fires


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
def test_r1smg_nearer_to_the_truth_than_to_the_neighbour():
    # S = "the output is nearer to f(x) than to f(x')": P_x(S) = 0.991 and P_x'(S) = 0.0087 at M = 100, so that
    # delta(1) is at least P_x(S) - e P_x'(S).
    case = Case(100, 1.0, 2.0, math.sqrt(2.0 * r1smg_eigenvalue(100, 1, 1e-5, 1)), 1.0, 1.0)
    rng = np.random.default_rng(4)
    draws = math.sqrt(case.scale**2 / 2.0) * rng.standard_normal((100_000, 1)) * unit_rows(rng, 100_000, 100)
    inside = (draws[:, 0] > -0.5).mean()  # the neighbour sits at -1 on the first axis
    assert inside == pytest.approx(0.991, abs=0.003)
    assert public_bracket(case).lower >= 0.991 - math.e * 0.0087 - 0.003


def unit_rows(rng, count, dimension):
    rows = rng.standard_normal((count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_deep_learning_budget_of_r1smg_is_no_privacy():
    case = Case(26010, 1.0, 2.0, math.sqrt(2.0 * r1smg_eigenvalue(26010, 0.71, 1e-5, 1)), 1.0, 30.0)
    assert public_bracket(case).lower > 1.0 - 1e-4


def test_product_noise_values():
    # n = sigma_M |z| v with sigma_M = t/eps, t^2 = 2 k^(4/M) (M/4 + 3/2)^(1 + 4/M) / e^(1 + 2/M), at k = 1000.
    m = 1000
    t = math.sqrt(2.0 * 1000 ** (4 / m) * (m / 4 + 1.5) ** (1 + 4 / m) / math.exp(1 + 2 / m))
    for epsilon, expected in ((1.0, 0.734), (0.1, 0.205)):
        case = Case(m, 1.0, 2.0, math.sqrt(2.0) * t / epsilon, 1.0, epsilon)
        assert public_bracket(case).middle == pytest.approx(expected, abs=6e-4)


def test_laplace_is_the_radial_member_in_one_dimension():
    found = bracket_of(Case(1, 1.0, 1.0, 0.5, 1.0, 1.0))
    assert contains(found, -math.expm1(-0.5))


# Structure of the curve.

DIMENSIONS = st.sampled_from([1, 2, 3, 6, 20, 300, 10**5, 10**9])


@st.composite
def curves(draw):
    """A member with noise of a natural size: one coordinate deviates by D/mu or so."""
    dimension = draw(DIMENSIONS)
    k = draw(st.sampled_from([1.0, float(dimension), dimension * 0.6]))
    p = draw(st.sampled_from([0.5, 0.8, 1.0, 1.7, 2.0, 3.0]))
    mu = 10 ** draw(st.floats(-2.0, 0.7))
    scale = math.sqrt(dimension) / mu / max(k / p, 1.0) ** (1.0 / p)
    epsilon = draw(st.floats(0.0, 4.0))
    return Case(dimension, k, p, scale, 1.0, epsilon)


@pytest.mark.slow
@EXAMPLES
@given(curves())
def test_bracket_is_a_probability_and_narrow(case):
    found = public_bracket(case)
    assert 0.0 <= found.lower <= found.upper <= 1.0
    assume(found.upper > 1e-250)
    assert found.relative_width <= WIDTH


@pytest.mark.slow
@EXAMPLES
@given(curves(), st.floats(0.0, 2.0))
def test_delta_falls_with_epsilon(case, step):
    here, there = public_bracket(case), public_bracket(case._replace(epsilon=case.epsilon + step))
    assert there.lower <= here.upper
    if step > 0.01:
        assert there.upper <= here.upper or there.upper < 1e-250


@pytest.mark.slow
@EXAMPLES
@given(curves(), st.floats(1e-3, 1.0))
def test_a_smaller_shift_has_a_smaller_delta(case, factor):
    # The worst-shift lemma: |v| = D is the worst neighbour among all |v| <= D.
    worst, milder = public_bracket(case), public_bracket(case._replace(sensitivity=case.sensitivity * factor))
    assert milder.lower <= worst.upper
    if factor < 0.99:
        assert milder.upper <= worst.upper or milder.upper < 1e-250


@pytest.mark.slow
@EXAMPLES
@given(curves(), st.floats(1.0, 100.0))
def test_more_noise_has_a_smaller_delta(case, factor):
    less, more = public_bracket(case), public_bracket(case._replace(scale=case.scale * factor))
    assert more.lower <= less.upper


@pytest.mark.slow
@EXAMPLES
@given(curves(), st.integers(-20, 20))
def test_only_the_ratio_of_sensitivity_and_scale_matters(case, exponent):
    # A power of two changes no rounding, so the two answers must be equal but for the logarithms.
    factor = 2.0**exponent
    moved = case._replace(sensitivity=case.sensitivity * factor, scale=case.scale * factor)
    here, there = public_bracket(case), public_bracket(moved)
    assert max(here.lower, there.lower) <= min(here.upper, there.upper)


INVERTED = [
    Case(1, 1.0, 3.0, 2.0, 1.0, 1.0),
    Case(1, 0.5, 1.5, 3.0, 1.0, 0.3),
    Case(2, 2.0, 0.8, 1.0, 1.0, 0.5),
    Case(3, 1.0, 2.0, 4.0, 1.0, 0.7),
    Case(6, 4.0, 1.2, 0.8, 1.0, 2.0),
    Case(300, 300.0, 1.5, 0.2, 1.0, 1.0),
    Case(7921, 1.0, 2.0, 900.0, 1.0, 0.9),
    Case(10**5, 6e4, 2.0, 1.8, 1.0, 1.9),
    Case(10**9, 10**9, 3.0, 2000.0, 1.0, 0.05),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", INVERTED, ids=str)
def test_epsilon_and_delta_are_inverse(case):
    mechanism = ln.Mechanism("test", ln.Radial(case.k, case.p, case.scale), (case.dimension,), 1.0)
    at = mechanism.delta(case.epsilon)
    assert 1e-14 < at.lower < 0.9
    below, above = mechanism.epsilon(at.upper), mechanism.epsilon(at.lower)
    assert below.lower <= case.epsilon <= above.upper
    assert mechanism.delta(above.upper).upper <= at.lower
    assert mechanism.delta(above.lower).upper >= at.lower
    assert above.upper - below.lower <= 5e-3 * case.epsilon


@pytest.mark.parametrize(("dimension", "p", "scale"), [(1, 0.5, 0.25), (3, 0.5, 0.25), (7, 0.8, 2.0), (50, 0.3, 1e-3)])
def test_heavy_tails_without_a_pole_are_pure(dimension, p, scale):
    # For k = M and p <= 1 the loss (|n+v|^p - |n|^p)/s^p is at most (D/s)^p, which it reaches at n = 0.
    mechanism = ln.Mechanism("test", ln.Radial(dimension, p, scale), (dimension,), 1.0)
    pure = scale**-p
    found = mechanism.epsilon(0)
    assert found.lower <= pure * (1.0 + 1e-15)
    assert pure * (1.0 - 1e-15) <= found.upper <= pure * (1.0 + 1e-13)
    assert mechanism.delta(found.upper).upper == 0.0
    assert mechanism.delta(0.5 * pure).lower > 0.0


def test_delta_at_zero_is_the_total_variation():
    # For k = M, p = 2: erf(mu / (2 sqrt 2)); for any law it is the sampled mean of (1 - e^-L)_+.
    case = Case(6, 6.0, 2.0, math.sqrt(2.0), 1.0, 0.0)
    assert contains(bracket_of(case), math.erf(1.0 / (2.0 * math.sqrt(2.0))))


def test_the_marginal_carries_the_pole():
    # Conditioning on the direction drops the (M-k) ln r term; the curve must not. Without it R1SMG would look private.
    case = Case(1000, 1.0, 2.0, 200.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    log_radius = np.log(case.scale * np.sqrt(rng.standard_gamma(0.5, 200_000)))
    cosine = rng.standard_normal(200_000) / math.sqrt(1000)
    wrong = -np.expm1(np.minimum(1.0 - privacy_loss(case._replace(k=1000.0), log_radius, cosine), 0.0)).mean()
    assert wrong < 1e-3
    assert public_bracket(case).lower > 0.1


# Every cell of the integral is itself a bracket.


def cell_case(seed):
    """A random curve and a random cell on which its two balls cut each other."""
    rng = np.random.default_rng([31, seed])
    while True:
        m = int(rng.choice([1, 2, 3, 4, 8, 20, 100, 10**4, 10**9]))
        k = float(rng.choice([1.0, m / 2, m - 0.5, m]))
        p = float(rng.choice([0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 8.0]))
        a = k / p
        curve = radial.RadialCurve(
            m, k, p, 1.0, float(10 ** rng.uniform(-2, 2) * a ** (1 / p) / math.sqrt(m)), float(10 ** rng.uniform(-6, 2))
        )
        spread = 1.0 / math.sqrt(a) if a > 1.0 else 3.0 * p
        points = np.sort(rng.uniform(-8.0 * spread, 3.0 * spread, 300))
        fraction = curve._nodes(points).fraction
        cut = np.flatnonzero((fraction > 0.0) & (fraction < 1.0))
        if len(cut):
            return curve, points[rng.choice(cut)], float(10 ** rng.uniform(-6, 0) * min(spread, 1.0))


def cell_bracket(curve, start, width):
    with np.errstate(all="ignore"):
        ends = curve._nodes(np.array([start, start + width]))
        left, right = (type(ends)(*(field[i : i + 1] for field in ends)) for i in (0, 1))
        lower, upper = curve._cells(left, right)
    return float(lower[0]), float(upper[0])


def cell_integral(curve, start, width):
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(start, start + width, 9)
    xi = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1.0) / 2.0).ravel()
    inside = curve._nodes(xi)
    return float((np.exp(inside.log_weight) * inside.fraction * np.tile(weights, 8)).sum() * width / 16.0)


@pytest.mark.slow
def test_random_cells_bracket_their_integral():
    for seed in range(400):
        curve, start, width = cell_case(seed)
        lower, upper = cell_bracket(curve, start, width)
        integral = cell_integral(curve, start, width)
        assert lower * (1.0 - 1e-9) <= integral <= upper * (1.0 + 1e-9) or integral < 1e-250, (curve, start, width)


def slopes_at(curve, xi):
    """Slope of ln(lune) in ln u at single points: cells of width 0."""
    nodes = curve._nodes(xi)
    with np.errstate(all="ignore"):
        _, _, low, high = curve._lune_slope(nodes, nodes, np.zeros_like(xi))
    return nodes.fraction, low, high


@pytest.mark.slow
def test_slopes_agree_with_differences_of_the_lune():
    checked = 0
    for seed in range(300):
        curve, start, _ = cell_case(seed)
        fraction, low, high = slopes_at(curve, np.array([start]))
        step = 1e-4 * min(1.0, 1.0 / abs(high[0]))
        beside = curve._nodes(start + curve.p * step * np.array([-2.0, -1.0, 1.0, 2.0])).fraction
        if fraction[0] < 1e-9 or not (beside > 0.0).all() or (beside >= 1.0).any():
            continue
        logs = np.log(beside)
        slope = (8.0 * (logs[2] - logs[1]) - (logs[3] - logs[0])) / (12.0 * step)
        assert slope == pytest.approx(low[0], rel=1e-3, abs=1e-4 * abs(high[0]) + 1e-5), (curve, start)
        assert low[0] == pytest.approx(high[0], rel=1e-4, abs=1e-6)
        checked += 1
    assert checked > 150


@pytest.mark.slow
def test_random_cells_cover_every_slope_and_lune_inside():
    for seed in range(400):
        curve, start, width = cell_case(seed)
        inside = np.linspace(start, start + width, 9)
        fraction, low, high = slopes_at(curve, inside)
        left, right = (
            type(ends)(*(field[i : i + 1] for field in ends)) for ends in [curve._nodes(inside)] for i in (0, 8)
        )
        with np.errstate(all="ignore"):
            lune_low, lune_high, slope_low, slope_high = curve._lune_slope(left, right, np.array([width]))
        slack = 1e-7 * np.abs(high) + 1e-9
        usable = np.isfinite(low) & np.isfinite(high) & (fraction > 1e-9) & (fraction < 1.0)
        assert (lune_low * (1.0 - 1e-9) <= fraction).all(), (curve, start, width)
        assert (fraction <= lune_high * (1.0 + 1e-9)).all(), (curve, start, width)
        if np.isfinite(slope_low).all() and np.isfinite(slope_high).all():
            assert (slope_low - slack <= low)[usable].all(), (curve, start, width)
            assert (high <= slope_high + slack)[usable].all(), (curve, start, width)


@pytest.mark.slow
def test_lunes_against_fifty_digits():
    rng = np.random.default_rng(12)
    for _ in range(400):
        m = int(rng.choice([1, 2, 3, 5, 10, 50, 300, 3000, 20_000]))
        # Small growth, or e^(My) from nothing to far beyond the range of doubles.
        y = float(10 ** rng.uniform(-9, 1) if rng.random() < 0.5 else 10 ** rng.uniform(-2, 3.7) / m)
        if y > 15.0:
            continue
        growth = math.expm1(y)
        kappa = float(
            growth + 2.0 * 10 ** rng.uniform(-9, 0) if rng.random() < 0.5 else growth * (1 + 10 ** rng.uniform(-6, 1))
        )
        found = lune(m, np.array([kappa]), np.array([y]), np.array([ROUNDING]))
        exact = lune_fraction(m, kappa, y)
        if exact > 1e-250:
            assert abs(exact - float(found.fraction[0])) <= found.error[0], (m, kappa, y)


@pytest.mark.parametrize(
    ("start", "width"),
    [(-12.59, 7.079457843841373e-05), (-12.585, 5.011872336272725e-05), (-12.5765, 3.548133892335753e-06)],
)
def test_cells_where_the_second_ball_is_large(start, width):
    curve = radial.RadialCurve(3, 1.0, 2.0, 5.2575130131, 1.0, 10.0)
    lower, upper = cell_bracket(curve, start, width)
    assert lower <= cell_integral(curve, start, width) <= upper


# The far ends.


@pytest.mark.parametrize(
    "case",
    [
        Case(3, 0.12590411154381154, 4.436215554348587, 3.2304212738980945e74, 1.0, 1.0542554109375728),
        Case(1, 0.05, 5.868855363063056, 6.900992409199827e54, 1.0, 4.505372690658573e-09),
    ],
    ids=str,
)
def test_radii_whose_power_underflows(case):
    # Here (D/s)^p is below 1e-300: all that matters happens at values of G that a double cannot hold.
    assert contains(public_bracket(case), delta_positive(case), 1e-6)


@pytest.mark.parametrize(
    ("dimension", "k", "epsilon"), [(2, 1.0, 800.0), (3, 1.0, 800.0), (3, 1.0, 1e6), (10, 1.0, 1e4)]
)
def test_huge_epsilon_is_no_error(dimension, k, epsilon):
    # The second ball is then e^(eps/(M-k)) times the first, or so: far beyond the range of doubles.
    found = public_bracket(Case(dimension, k, 2.0, 1.0, 0.05, epsilon))
    assert found.upper <= public_bracket(Case(dimension, k, 2.0, 1.0, 0.05, 300.0)).upper
