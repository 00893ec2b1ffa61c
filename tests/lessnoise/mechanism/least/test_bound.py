"""The lower bound: never above a valid mechanism, sharp where the optimum is known, and each step of its proof."""

import math
from dataclasses import dataclass
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

import lessnoise as ln
from lessnoise.mechanism.least.bound import LowerBound, lower_bound, quantile_exceeds
from lessnoise.mechanism.least.bound.averages import Averages, smooth_grid
from lessnoise.mechanism.least.bound.guide import staircase_guide
from lessnoise.mechanism.least.bound.lower import ball_bound, caps_bound, from_fewer
from lessnoise.mechanism.least.bound.proof import SPECIAL, Proof, Table
from lessnoise.mechanism.least.objective import Power, Problem, Ramp
from lessnoise.mechanism.least.sphere import Sphere
from lessnoise.mechanism.losses import raw_moment

SQUARE = Power(2.0)


# Valid mechanisms, by routes that share nothing with the bound.


@dataclass(frozen=True)
class Stairs:
    """Height e^(-epsilon k) between radii k-1 and k, in one or three dimensions, where overlaps are elementary."""

    dimension: int
    epsilon: float
    radii: np.ndarray
    log_multiplier: float = 0.0
    level: float = 0.0
    smooth: bool = True

    @property
    def weights(self):
        """Of the mixture of uniform balls."""
        k = np.arange(len(self.radii))
        weights = np.exp(-self.epsilon * k + self.dimension * np.log(self.radii / self.radii[-1]))
        weights[:-1] *= -math.expm1(-self.epsilon)
        return weights / weights.sum()

    @property
    def expected(self):
        return float(self.weights @ self.radii**2) * self.dimension / (self.dimension + 2)

    def delta(self):
        """Ball k of the law faces ball k+1 of the shifted one: what sticks out of it is lost."""
        inner, outer = self.radii, np.append(self.radii[1:], self.radii[-1])
        return float(self.weights @ (1.0 - _overlap(self.dimension, inner, outer)))

    @property
    def sigma(self):
        inner, outer = self.radii[:-1], self.radii[1:]
        cosine = np.minimum((outer**2 - inner**2 - 1.0) / (2.0 * inner), 1.0 - 1e-9)
        return np.log(0.5 * (1.0 - cosine))


def _overlap(dimension, small, large):
    """Share of the ball of radius ``small`` inside a ball of radius ``large`` >= small at distance 1."""
    if dimension == 1:
        return np.clip((np.minimum(small, large - 1.0) + small) / (2.0 * small), 0.0, 1.0)
    lens = (large + small - 1.0) ** 2 * (1 + 2 * (small + large) - 3 * (large - small) ** 2) * math.pi / 12.0
    whole = 4.0 / 3.0 * math.pi * small**3
    return np.where(large >= small + 1.0, 1.0, np.where(large + small <= 1.0, 0.0, lens / whole))


def stairs(dimension, epsilon, delta, first):
    """An arithmetic staircase whose width makes delta right (within 1e-9, on the safe side)."""
    count = int(3.0 * (math.log(1.0 / delta) + 5.0 * dimension + 10.0) / epsilon)

    def of(width):
        return Stairs(dimension, epsilon, first + width * np.arange(count))

    width = brentq(lambda width: math.log(max(of(width).delta(), 1e-300) / delta), 0.2, 1.0 - 1e-9, xtol=1e-9) + 1e-8
    assert 0.999 * delta < of(width).delta() <= delta
    found = of(width)
    bigger = Stairs(dimension, epsilon, found.radii * 1.001)
    multiplier = (bigger.expected - found.expected) / (found.delta() - bigger.delta())
    return Stairs(dimension, epsilon, found.radii, math.log(multiplier), found.expected + multiplier * delta)


def line_stairs(epsilon, delta):
    """The best truncated staircase of full steps on the line."""

    def cut(first):
        for count in range(1, 3000):
            radii = first + np.arange(count + 1.0)
            if Stairs(1, epsilon, radii).delta() <= delta:
                return Stairs(1, epsilon, radii)
        raise AssertionError

    return min((cut(first) for first in np.linspace(0.02, 1.0, 40)), key=lambda s: s.expected)


def others(dimension, epsilon, delta):
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0, "shape": dimension}
    yield ln.analytic_gaussian(**target)
    yield ln.l2_mechanism(**target)
    yield ln.radial(**target, k=dimension, p=1.5)
    yield ln.radial(**target, k=max(0.8 * dimension, min(dimension, 1.0)), p=1.0)
    if dimension <= 50:
        yield ln.r1smg(**target, calibration="exact")
    if dimension == 1:
        yield ln.laplace(epsilon=epsilon, sensitivity=1.0, shape=1)


def cost(law, dimension, order):
    """E |n|^order, or for order 1 and 3 something larger by Jensen's inequality."""
    return raw_moment(law, dimension, math.ceil(order / 2.0)) ** (order / (2.0 * math.ceil(order / 2.0)))


@pytest.mark.slow
@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    dimension=st.sampled_from([1, 1, 2, 3, 4, 7, 20, 60, 300]),
    log_epsilon=st.floats(math.log(0.03), math.log(12.0)),
    log_delta=st.floats(math.log(1e-12), math.log(1e-2)),
    order=st.sampled_from([1, 2, 4]),
)
def test_no_valid_mechanism_is_below(dimension, log_epsilon, log_delta, order):
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    costs = [cost(m.law, dimension, order) for m in others(dimension, epsilon, delta)]
    bound = lower_bound(Problem(dimension, epsilon, delta, Power(float(order))), None, min(costs), goal=0.8, limit=0.3)
    assert 0.0 < bound.value <= min(costs)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-6), (1.0, 1e-6), (6.0, 1e-5)])
def test_line_against_truncated_staircase(epsilon, delta):
    best = line_stairs(epsilon, delta)
    bound = lower_bound(Problem(1, epsilon, delta, SQUARE), best, best.expected, limit=5.0)
    assert 0.985 * best.expected < bound.value <= best.expected


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "share"), [(0.3, 1e-6, 0.985), (1.0, 1e-6, 0.985), (0.5, 1e-3, 0.9)])
def test_space_against_staircase(epsilon, delta, share):
    best = min((stairs(3, epsilon, delta, first) for first in (0.3, 0.6, 0.9)), key=lambda s: s.expected)
    assert best.delta() <= delta
    bound = lower_bound(Problem(3, epsilon, delta, SQUARE), best, best.expected, limit=3.0)
    assert bound.method == "caps"
    assert share * best.expected < bound.value <= best.expected


def test_a_slip_in_epsilon_would_be_seen():
    """With e^eps 5% too small the bound passes a valid mechanism: the checks above bite."""
    best = stairs(3, 1.0, 1e-6, 0.6)
    guide = staircase_guide(best, Problem(3, 0.95, 1e-6, SQUARE))
    mistaken = caps_bound(guide, smooth_grid(guide, count=80, levels=16), 3.0)
    assert mistaken.value > best.expected


def test_a_slip_in_delta_would_be_seen():
    best = line_stairs(0.3, 1e-3)
    assert lower_bound(Problem(1, 0.3, 5e-4, SQUARE), best, best.expected, goal=2.0, limit=2.0).value > best.expected


# Known optima.


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.0])
def test_pure_staircase_on_the_line(epsilon):
    """Geng & Viswanath (2014): for delta = 0 the best noise is a staircase with steps of length 1."""

    def cost(first):
        return Stairs(1, epsilon, first + np.arange(int(60.0 / epsilon) + 5)).expected

    pure = minimize_scalar(cost, bounds=(1e-3, 1.0), method="bounded").fun
    bound = lower_bound(Problem(1, epsilon, 1e-13, SQUARE), None, pure, limit=5.0)
    assert 0.992 * pure < bound.value <= pure


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.02, 0.002])
def test_no_epsilon_at_all(delta):
    """For epsilon = 0, noise uniform on an interval of length 1/delta is best up to the lattice."""
    uniform = 1.0 / (12.0 * delta**2)
    bound = lower_bound(Problem(1, 1e-9, delta, SQUARE), None, uniform)
    assert 0.99 * uniform < bound.value <= uniform


@pytest.mark.slow
def test_high_dimension_is_nearly_gaussian():
    gaussian = ln.analytic_gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=1000).expected_loss
    bound = lower_bound(Problem(1000, 1.0, 1e-6, SQUARE), None, gaussian, goal=0.98)
    assert 0.98 * gaussian < bound.value < gaussian
    million = lower_bound(Problem(10**6, 1.0, 1e-6, SQUARE), None, 1000.0 * gaussian, goal=0.99)
    assert 990.0 * gaussian < million.value < 1000.0 * gaussian
    assert million.method == "caps in 10000 dimensions"


# The averages.


def _random_tables(rng, dimension, count=9, levels=3):
    nodes = np.append(0.0, np.cumsum(rng.uniform(0.1, 0.9, count)))
    fractions = np.sort(rng.uniform(1e-4, 0.45, levels))[::-1]
    cosines = np.sort(Sphere(dimension).rim(fractions).cosine)
    tables = []
    for shift in (1.0, 0.6):
        values = rng.uniform(0.0, 1.0, (len(nodes), levels)) * (rng.random((len(nodes), 1)) < 0.8)
        values[-1] = 0.0
        tables.append(Table(shift, values))
    return nodes, cosines, tables


def _phi2(dimension, nodes, levels, table, r):
    """The average over |n + v| = r by quadrature in the cosine of n + v and v."""
    log_constant = math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2) - 0.5 * math.log(math.pi)
    d = table.shift

    def test(t):
        size = math.sqrt(max(r * r + d * d - 2 * r * d * t, 0.0))
        cosine = (r * t - d) / size if size > 0.0 else 1.0
        held = [np.interp(size**2, nodes**2, table.values[:, i]) for i in range(len(levels)) if cosine > levels[i]]
        return sum(held)

    def integrand(angle):
        return test(math.cos(angle)) * math.exp(log_constant + (dimension - 2) * math.log(math.sin(angle)))

    breaks = [(r * r + d * d - a * a) / (2 * r * d) for a in nodes]
    for x in levels:
        inner = math.sqrt(r * r - d * d * (1 - x * x)) - d * x
        breaks.append((inner * x + d) / r)
    angles = sorted({0.0, math.pi / 2, *(math.acos(t) for t in breaks if 0.0 < t < 1.0)})
    return sum(quad(integrand, a, b, epsabs=1e-13, epsrel=1e-11)[0] for a, b in pairwise(angles))


@pytest.mark.parametrize("dimension", [2, 3, 7, 40])
def test_average_over_the_shifted_sphere(dimension):
    rng = np.random.default_rng(dimension)
    nodes, levels, tables = _random_tables(rng, dimension)
    proof = Proof(Problem(dimension, 1.0, 1e-6, SQUARE), 1.0, nodes, levels, tables)
    for table, sloped in zip(tables, proof.tables, strict=True):
        radii = np.concatenate([rng.uniform(table.shift + 1e-3, nodes[-1] + 0.9, 6), [table.shift + 1e-9, 0.3]])
        ours = proof.mean(radii, sloped)
        for r, value in zip(radii, ours, strict=True):
            exact = _phi2(dimension, nodes, levels, table, r) if r > table.shift else 0.0
            assert exact * (1.0 - 1e-9) - 1e-12 <= value <= exact * (1.0 + 1e-8) + 1e-10


@pytest.mark.parametrize("dimension", [2, 5])
def test_averages_by_monte_carlo(dimension):
    rng = np.random.default_rng(10 + dimension)
    nodes, levels, tables = _random_tables(rng, dimension)
    proof = Proof(Problem(dimension, 1.0, 1e-6, SQUARE), 1.0, nodes, levels, tables[:1])
    values = tables[0].values
    for r in (0.8, 1.7, 2.9):
        direction = rng.standard_normal((200_000, dimension))
        m = r * direction / np.linalg.norm(direction, axis=1, keepdims=True)

        def mean(n):
            size = np.linalg.norm(n, axis=1)
            inside = (n[:, 0] / size)[:, None] > levels[None, :]
            held = np.column_stack([np.interp(size**2, nodes**2, column) for column in values.T])
            return float((held * inside).sum(axis=1).mean())

        n = m.copy()
        n[:, 0] -= 1.0
        second = float(proof.mean(np.array([r]), proof.tables[0])[0])
        assert mean(n) == pytest.approx(second, abs=0.012)
        first = float(np.interp(r * r, proof.nodes**2, proof.own))
        assert mean(m) == pytest.approx(first, abs=0.012)


# The interval bound.


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 3, 12, 100])
def test_interval_bound_holds_and_is_sharp(dimension):
    rng = np.random.default_rng(100 + dimension)
    tightest = []
    for _ in range(4):
        nodes, levels, tables = _random_tables(rng, dimension)
        proof = Proof(Problem(dimension, 0.7, 1e-6, SQUARE), 2.0, nodes, levels, tables)
        cuts = np.unique(np.concatenate([nodes, [proof.last, 1.0, 0.6]]))
        cell = rng.integers(0, len(cuts) - 1, 60)
        width = (cuts[cell + 1] - cuts[cell]) * 10.0 ** rng.uniform(-3.5, 0.0, 60)
        left = cuts[cell] + rng.random(60) * (cuts[cell + 1] - cuts[cell] - width)
        left[::5] = cuts[cell][::5]  # intervals that begin at a node, too
        right = left + width
        low, at_left, at_right = proof.interval(left, right)
        inside = left[:, None] + (right - left)[:, None] * rng.random((60, 40))
        points = np.concatenate([inside, left[:, None], right[:, None]], axis=1)
        g = _g(proof, points.ravel()).reshape(points.shape)
        assert np.all(low <= g.min(axis=1) + 1e-13)
        assert at_left == pytest.approx(g[:, -2], abs=1e-9)
        assert at_right == pytest.approx(g[:, -1], abs=1e-9)
        tightest.append(np.median((g.min(axis=1) - low)[width < 0.01]))
    assert max(tightest) < 0.01


def _g(proof, r):
    values = r * r / proof.scale + np.interp(r * r, proof.nodes**2, proof.own)
    for table in proof.tables:
        values -= proof.grow * proof.mean(r, table)
    return values


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [2, 6, 50])
def test_minimum_is_below_every_point(dimension):
    rng = np.random.default_rng(1000 + dimension)
    nodes, levels, tables = _random_tables(rng, dimension)
    proof = Proof(Problem(dimension, 0.7, 1e-6, SQUARE), 2.0, nodes, levels, tables)
    found = proof.minimum(1e-3)
    g = _g(proof, np.linspace(0.0, proof.last + 3.0, 20_001))
    assert found.proved <= g.min() <= found.proved + 0.01
    assert found.seen >= found.proved


def test_proof_refuses_what_is_no_test():
    nodes, levels, values = np.array([0.0, 1.0]), np.array([0.5]), np.array([[1.0], [0.0]])
    Proof(Problem(3, 1.0, 1e-6, SQUARE), 1.0, nodes, levels, [Table(1.0, values)])
    for bad in (-values, values + 1.0):
        with pytest.raises(ValueError, match="nonnegative nodal values that end in zero"):
            Proof(Problem(3, 1.0, 1e-6, SQUARE), 1.0, nodes, levels, [Table(1.0, bad)])
    with pytest.raises(ValueError, match="shift"):
        Proof(Problem(3, 1.0, 1e-6, SQUARE), 1.0, nodes, levels, [Table(1.5, values)])


# What is assumed of the special functions.


@pytest.mark.parametrize("dimension", [2, 3, 4, 11, 100, 1000, 20_000])
def test_caps_are_as_accurate_as_assumed(dimension):
    averages = Averages(dimension, np.array([0.0, 1.0]), np.array([0.5]))
    spread = 1.0 / math.sqrt(dimension)
    x = np.unique(np.clip(np.concatenate([np.linspace(-2, 9, 15) * spread, [0.5, 0.69, 0.71, 0.9, 0.999]]), -0.99, 1))
    x = x[x < 1.0]
    x = x[0.5 * (dimension - 1) * np.log1p(-np.minimum(x * x, 1 - 1e-16)) > -150.0]
    mass, moment = averages._caps(np.ones(len(x)), 1.0, x, (1.0 - x) * (1.0 + x))
    with mpmath.workdps(40):
        a = mpmath.mpf(dimension - 1) / 2
        for t, ours, second in zip(x, mass, moment, strict=True):
            t = mpmath.mpf(float(t))
            tail = mpmath.betainc(a, 0.5, 0, (1 - t) * (1 + t), regularized=True) / 2
            cap = tail if t >= 0 else 1 - tail
            first = (1 - t * t) ** a / (mpmath.beta(a, 0.5) * (dimension - 1))
            assert abs(ours / cap - 1) < SPECIAL / 2
            assert abs(second - (cap - 2 * first)) < SPECIAL / 2 * (cap + 2 * first)


# Fallbacks.


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    dimension=st.integers(1, 500),
    log_epsilon=st.floats(math.log(1e-2), math.log(30.0)),
    log_delta=st.floats(math.log(1e-12), math.log(0.3)),
)
def test_ball_bound_is_positive_and_below_the_gaussian(dimension, log_epsilon, log_delta):
    epsilon, delta = math.exp(log_epsilon), math.exp(log_delta)
    gaussian = ln.analytic_gaussian(epsilon=epsilon, delta=delta, sensitivity=1.0, shape=dimension)
    assert 0.0 < ball_bound(Problem(dimension, epsilon, delta, SQUARE)).value <= gaussian.expected_loss


@pytest.mark.parametrize("epsilon", [12.0, 20.0])
def test_large_epsilon_is_not_vacuous(epsilon):
    """The best pure staircase on the line has E n^2 of order e^(-2 eps/3), and so has the ball bound."""
    pure = minimize_scalar(
        lambda first: Stairs(1, epsilon, first + np.arange(8)).expected, bounds=(1e-5, 0.5), method="bounded"
    ).fun
    assert pure / 30.0 < ball_bound(Problem(1, epsilon, 1e-9, SQUARE)).value < pure


@pytest.mark.slow
@pytest.mark.parametrize("order", [1.0, 2.0, 4.0])
def test_bound_from_fewer_dimensions(order):
    law = ln.analytic_gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=400).law
    known = cost(law, 400, order)
    assert 0.6 * known < from_fewer(Problem(400, 1.0, 1e-6, Power(order)), 40, 0.7, 3.0).value < known


@pytest.mark.slow
def test_any_guide_is_safe():
    """Guides of one or two steps, or of the wrong size, cost sharpness and nothing else."""
    gaussian = ln.analytic_gaussian(epsilon=1.0, delta=1e-4, sensitivity=1.0, shape=3).expected_loss
    for radii in ([2.0], [1.0, 2.0], [1.0, 1.5, 1.9, 2.2], list(np.arange(1.0, 300.0, 10.0))):
        poor = Stairs(3, 1.0, np.array(radii), math.log(1e3), 5.0)
        assert 0.0 < lower_bound(Problem(3, 1.0, 1e-4, SQUARE), poor, 10.0, goal=0.5, limit=0.5).value <= gaussian


@pytest.mark.slow
def test_repeats_exactly():
    first, second = (lower_bound(Problem(20, 1.0, 1e-6, SQUARE), None, 300.0, goal=0.5, limit=60.0) for _ in range(2))
    assert isinstance(first, LowerBound)
    assert first.value == second.value


@pytest.mark.slow
def test_quantile_bound():
    gaussian = ln.analytic_gaussian(epsilon=1.0, delta=1e-6, sensitivity=1.0, shape=200)
    quantile = gaussian.loss_quantile(0.9) ** 0.5
    proved = [
        q
        for q in (0.8, 1.3)
        if quantile_exceeds(Problem(200, 1.0, 1e-6, Ramp(q * quantile, 1.05 * q * quantile)), 0.9, None, limit=1.0)
    ]
    assert 0.8 in proved
    assert 1.3 not in proved


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": 0}, "dimension=0"),
        ({"epsilon": math.inf}, "epsilon=inf"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"expected": math.nan}, "expected=nan"),
    ],
)
def test_bad_input(change, message):
    given = {"dimension": 2, "epsilon": 1.0, "delta": 1e-6, "expected": 1.0} | change
    with pytest.raises(ValueError, match=message):
        lower_bound(Problem(given["dimension"], given["epsilon"], given["delta"], SQUARE), None, given["expected"])
