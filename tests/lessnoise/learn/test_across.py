"""Noise across steps: sensitivities against brute force, guarantees against other routes, bad input. Without torch."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from lessnoise import InvalidInput, learn
from lessnoise.learn.across.factorisation import read_factorisation
from lessnoise.learn.across.fit import fitted, spread

HALF_INVERSE = learn.BandedInverse((1.0, -0.5, -0.125))
HALF = learn.Banded((1.0, 0.5, 0.375))
UNEVEN = learn.BandedInverse((1.0, 0.0, -0.75))  # the coefficients of C go up and down
FACTORISATIONS = [HALF_INVERSE, HALF, UNEVEN, learn.Banded((1.0,)), learn.BandedInverse((1.0, -1.0))]
SETTING = {"clip_norm": 2.0, "parameters": 7, "batches": 6, "steps": 18, "records": 100}


def exact_matrix(made, steps):
    """C in rational numbers, by forward substitution if its inverse is given."""
    given = [Fraction(each) for each in made.coefficients] + [Fraction(0)] * steps
    column = given[:steps]
    if isinstance(made, learn.BandedInverse):
        column = []
        for n in range(steps):
            rest = sum((given[k] * column[n - k] for k in range(1, n + 1)), Fraction(0))
            column.append(Fraction(n == 0) - rest)
    return [[column[t - s] if t >= s else Fraction(0) for s in range(steps)] for t in range(steps)]


def longest(matrix, patterns):
    """The largest |C 1_P|^2."""
    return max(sum(sum(row[s] for s in pattern) ** 2 for row in matrix) for pattern in patterns)


def lattices(steps, separation):
    return [tuple(range(start, steps, separation)) for start in range(min(separation, steps))]


def far_apart(steps, separation):
    for size in range(1, -(-steps // separation) + 1):
        for pattern in itertools.combinations(range(steps), size):
            if all(b - a >= separation for a, b in itertools.pairwise(pattern)):
                yield pattern


@pytest.mark.parametrize("separation", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("steps", [1, 2, 7, 9])
@pytest.mark.parametrize("made", FACTORISATIONS, ids=str)
def test_sensitivity_is_that_of_all_patterns_and_rounded_up(made, steps, separation):
    matrix = exact_matrix(made, steps)
    truth = longest(matrix, lattices(steps, separation))
    found = made.sensitivity(steps, separation)
    assert truth <= Fraction(found) ** 2 <= truth * Fraction(1 + 1e-11)
    if made is not UNEVEN:  # if coefficients do not increase: of everything that keeps the distances
        assert longest(matrix, far_apart(steps, separation)) == truth


def test_coefficients_that_increase_have_longer_patterns_than_the_lattice():
    # So the places of records must be fixed for these: "at least so far apart" would not do.
    matrix = exact_matrix(UNEVEN, 11)
    assert longest(matrix, far_apart(11, 3)) > longest(matrix, lattices(11, 3))


@pytest.mark.parametrize("made", FACTORISATIONS, ids=str)
def test_no_gradients_reach_further_than_equal_ones(made):
    matrix = np.array(exact_matrix(made, 9), dtype=float)
    limit, rng = made.sensitivity(9, 3), np.random.default_rng(5)
    for _ in range(300):
        u = np.zeros((9, 3))
        taking_part = np.arange(rng.integers(3), 9, 3)
        u[taking_part] = rng.normal(size=(len(taking_part), 3))
        u[taking_part] /= np.maximum(np.linalg.norm(u[taking_part], axis=1, keepdims=True), 1e-9)
        assert np.linalg.norm(matrix @ u) <= limit


@pytest.mark.parametrize("made", [*FACTORISATIONS, fitted("banded", bands=8, steps=200, batches=40)], ids=str)
def test_rows_are_those_of_the_inverse_within_the_stated_excess(made):
    steps = 40
    rows = np.zeros((steps, steps))
    for t in range(steps):
        for s, a in made.row(t):
            rows[t, s] = a
    matrix = exact_matrix(made, steps)
    columns = [[Fraction(a) for a in column] for column in rows.T]
    off = np.array([[float(sum(map(Fraction.__mul__, row, c))) for c in columns] for row in matrix])
    excess = made.excess(steps)
    assert np.linalg.norm(off - np.eye(steps), 2) <= excess + 1e-15
    assert excess < 1e-12


def test_an_inverse_that_is_rounded_badly_is_seen_in_the_excess(monkeypatch):
    made = learn.Banded((1.0, 0.5, 0.25))
    right = made.excess(30)
    coarse = np.round(made.inverse(30), 4)
    monkeypatch.setattr(learn.Banded, "inverse", lambda self, steps: coarse[:steps])
    other = learn.Banded((1.0, 0.5, 0.25000000001))
    assert other.excess(30) > 1e6 * right


# Guarantees.


def gaussian_delta(epsilon, mu):
    """Of one Gaussian mechanism, closed form (Balle & Wang 2018)."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("taken", [1, 4, 6, 7, 18])
@pytest.mark.parametrize("made", [HALF_INVERSE, UNEVEN], ids=str)
def test_the_guarantee_of_the_steps_so_far_is_that_of_their_covariance(made, taken):
    plan = learn.AcrossPlan(made, 4.0, **SETTING)
    rows = np.zeros((taken, taken))
    for t in range(taken):
        for s, a in made.row(t):
            rows[t, s] = a
    inverse = np.linalg.inv(rows @ rows.T * 16.0)
    mu = max(math.sqrt(np.ones(len(p)) @ inverse[np.ix_(p, p)] @ np.ones(len(p))) for p in lattices(taken, 6))
    found = plan.delta(0.8, taken)
    assert found.lower <= gaussian_delta(0.8, mu) * (1 + 1e-9) <= found.upper * (1 + 1e-8)
    assert found.upper == pytest.approx(gaussian_delta(0.8, mu), rel=1e-6)
    assert plan.delta(0.8, taken).upper == pytest.approx(replace(plan, steps=taken).delta(0.8).upper, rel=1e-9)
    assert plan.delta(0.8, 0).upper == 0.0


@pytest.mark.parametrize(("taken", "times"), [(1, 1), (3, 1), (4, 2), (18, 6)])
def test_amplified_steps_are_compositions_of_subsampled_gaussians(taken, times):
    from dp_accounting import dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    plan = learn.AcrossPlan(HALF, 2.0, **SETTING)
    assert (plan.groups, plan.sampling) == (3, 0.5)
    column = np.linalg.norm(HALF.coefficients[:taken])
    event = dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(2.0 / column))
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event, times).get_epsilon(1e-5)
    assert plan.epsilon(1e-5, taken).upper == pytest.approx(theirs, rel=0.01)


def test_an_attack_on_amplified_steps_finds_what_is_stated():
    """All steps of one record of group 0, whose gradient is 1: exact likelihoods by the covariance of the noise."""
    made, steps, rate, sigma, epsilon = learn.Banded((1.0, 0.6)), 6, 0.5, 1.0, 1.0
    plan = learn.AcrossPlan(made, sigma, 1.0, 1, batches=4, steps=steps, records=10)
    assert plan.sampling == rate
    rows = np.zeros((steps, steps))
    for t in range(steps):
        for s, a in made.row(t):
            rows[t, s] = a
    whitening, rng = np.linalg.inv(sigma * rows), np.random.default_rng(11)
    patterns = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    shifts = np.zeros((8, steps))
    shifts[:, ::2] = patterns
    weights = rate ** patterns.sum(1) * (1 - rate) ** (3 - patterns.sum(1))
    count = 200_000
    seen = shifts[rng.choice(8, count, p=weights)] + sigma * rng.normal(size=(count, steps)) @ rows.T
    white, means = seen @ whitening.T, shifts @ whitening.T
    logs = white @ means.T - 0.5 * (means**2).sum(1)
    ratio = np.exp(logs) @ weights  # with the record, over without
    losses = np.maximum(1.0 - math.exp(epsilon) / ratio, 0.0)
    stated, error = plan.delta(epsilon), losses.std() / math.sqrt(count)
    assert stated.lower - 6.5 * error <= losses.mean() <= stated.upper + 6.5 * error
    # The same attack on the noise of a plan that forgets the bands would be seen.
    assert losses.mean() > gaussian_free(plan, epsilon) + 6.5 * error


def gaussian_free(plan, epsilon):
    """Delta, if the columns of C were only 1 long."""
    one = learn.gaussian(noise_multiplier=plan.noise_multiplier, clip_norm=1, parameters=1)
    return one.subsample(plan.sampling).repeat(3).delta(epsilon).upper


@pytest.mark.parametrize("kind", ["banded-inverse", "banded"])
def test_calibration_ends_on_the_safe_side_and_is_tight(kind):
    plan = learn.plan_across_steps(kind, bands=3, epsilon=2, delta=1e-5, **SETTING)
    assert 0.95e-5 < plan.delta(2).upper <= 1e-5
    assert plan.epsilon(1e-5).upper <= 2
    assert plan.check().holds
    assert replace(plan, noise_multiplier=0.98 * plan.noise_multiplier).delta(2).lower > 1e-5
    again = learn.AcrossPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert again.delta(2) == plan.delta(2)


def test_everybody_taking_part_is_the_same_for_both_kinds_of_one_band():
    alone = [kind((1.0,)) for kind in (learn.Banded, learn.BandedInverse)]
    plans = [learn.AcrossPlan(made, 3.0, **SETTING, groups=6) for made in alone]
    assert plans[0].delta(1.0).upper == pytest.approx(plans[1].delta(1.0).upper, rel=1e-12)
    assert plans[0].delta(1.0).upper == pytest.approx(gaussian_delta(1.0, math.sqrt(3) / 3), rel=1e-6)


def test_the_machine_counts_all_noise_under_its_one_key():
    large = learn.AcrossPlan(HALF_INVERSE, 3.0, clip_norm=1, parameters=10**8, batches=10, steps=1000, records=100)
    assert large.machine_distance() >= (2 * 1e11) ** 2 * 2.0**-129
    assert large.machine_distance(1) <= large.machine_distance()
    sampled = learn.AcrossPlan(HALF, 3.0, clip_norm=1, parameters=1, batches=10, steps=1000, records=10**8)
    assert sampled.machine_distance() >= (2 * 1e11) ** 2 * 2.0**-129


# Choice.


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_spread_is_that_of_the_matrices(momentum):
    steps, made = 12, HALF_INVERSE
    rows = np.zeros((steps, steps))
    for t in range(steps):
        for s, a in made.row(t):
            rows[t, s] = a
    weights, moving = np.zeros((steps, steps)), np.zeros(steps)
    for s in range(steps):  # SGD with momentum on an impulse at step s
        speed = position = 0.0
        for t in range(steps):
            speed = momentum * speed + (t == s)
            position += speed
            weights[t, s] = position
    moving = (weights @ rows) ** 2
    found = spread(made.inverse(steps), momentum)
    assert found.every == pytest.approx(math.sqrt(moving.sum() / steps))
    assert found.last == pytest.approx(math.sqrt(moving[-1].sum()))


@pytest.mark.parametrize("kind", ["banded-inverse", "banded"])
def test_fitted_coefficients_are_no_worse_than_square_roots_and_independent_noise(kind):
    steps, batches, bands = 300, 50, 8
    made = fitted(kind, bands=bands, steps=steps, batches=batches)
    separation = batches if kind == "banded-inverse" else steps
    sign = 1 if kind == "banded-inverse" else -1
    root = [1.0]
    for k in range(1, bands):
        root.append(root[-1] * (k - 1 - sign * 0.5) / k)

    def error(one):
        return spread(one.inverse(steps)).every * one.sensitivity(steps, separation)

    own = type(made)
    assert error(made) < error(own(tuple(root)))
    assert error(made) < 0.7 * error(own((1.0,)))


def test_comparison_has_a_row_for_each_choice_and_knows_where_nothing_is_gained():
    few = learn.compare_noise(epochs=2, batches=20, epsilon=8, delta=1e-5, records=1000, bands=[4])
    assert [row.mechanism for row in few.rows] == ["gaussian", "banded-inverse", "banded"]
    assert few.best.mechanism != "gaussian"
    assert few.rows[1].drawn == 4
    assert few.rows[2].drawn == 40
    assert str(few).count("\n") == 4
    assert few.plot().axes[0].get_xlabel() == "bands"
    many = learn.compare_noise(epochs=40, batches=4, epsilon=0.5, delta=1e-5, records=1000, bands=[4])
    assert many.best.mechanism == "gaussian"
    for row, made in ((few.rows[1], "banded-inverse"), (few.rows[2], "banded")):
        plan = learn.plan_across_steps(
            made, bands=4, clip_norm=1, parameters=1, batches=20, steps=40, records=1000, epsilon=8, delta=1e-5
        )
        assert row.noise_multiplier == plan.noise_multiplier
        assert row.every == pytest.approx(plan.noise_multiplier * spread(plan.factorisation.inverse(40)).every)


# Bad input.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learn.BandedInverse((1.0, 0.5)), "none may be above 0"),
        (lambda: learn.BandedInverse((1.0, -0.75, -0.5)), "must not add up to less than -1"),
        (lambda: learn.BandedInverse((0.5,)), r"coefficients\[0\]=0.5 is not 1"),
        (lambda: learn.BandedInverse(()), r"coefficients\[0\]=None is not 1"),
        (lambda: learn.BandedInverse((1.0, math.nan)), r"coefficients\[1\]=nan is not finite"),
        (lambda: learn.Banded((1.0, 0.5, 0.75)), "must not increase"),
        (lambda: learn.Banded((1.0, -0.5)), "none may be below 0"),
        (lambda: HALF.sensitivity(0, 1), "steps=0 must be at least 1"),
        (lambda: HALF.sensitivity(10**9, 1), "steps=1000000000 exceed 1048576, the most for 3 bands"),
        (lambda: HALF.sensitivity(1, 0), "separation=0 must be at least 1"),
        (lambda: learn.AcrossPlan("half", 1.0, **SETTING), "factorisation='half' is not one"),
        (lambda: learn.AcrossPlan(HALF, 0.0, **SETTING), "noise_multiplier=0.0 must be above 0"),
        (lambda: learn.AcrossPlan(HALF, 1.0, **SETTING, groups=2), "groups=2 are fewer than batches=6"),
        (lambda: learn.AcrossPlan(HALF_INVERSE, 1.0, **SETTING, groups=3), "groups=3 are fewer than batches=6"),
        (lambda: learn.AcrossPlan(HALF, 1.0, **SETTING, groups=7), "groups=7 exceed batches=6"),
        (lambda: learn.plan_across_steps("tree", epsilon=1, delta=1e-5, **SETTING), "mechanism='tree' is not known"),
        (lambda: learn.plan_across_steps("banded", **SETTING), "epsilon=None"),
        (lambda: learn.plan_across_steps(HALF, **SETTING), "epsilon=None"),
        (lambda: learn.plan_across_steps("banded", epsilon=1, **SETTING), "delta=None"),
        (lambda: learn.plan_across_steps("banded", bands=0, epsilon=1, delta=1e-5, **SETTING), "bands=0 must be"),
        (lambda: learn.plan_across_steps(HALF, bands=4, epsilon=1, delta=1e-5, **SETTING), "bands=4 differ from the 3"),
        (
            lambda: learn.plan_across_steps("banded", momentum=1.0, epsilon=1, delta=1e-5, **SETTING),
            "momentum=1.0 is not between 0 and 1",
        ),
        (
            lambda: learn.compare_noise(epochs=1, batches=2, epsilon=1, delta=1e-5, records=9, bands=4),
            "bands=4 is not a list",
        ),
        (lambda: read_factorisation({"kind": "tree", "coefficients": [1.0]}), "kind='tree' is not known"),
        (lambda: learn.AcrossPlan(HALF, 1.0, **SETTING).check_resume(), "cannot go on"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()
