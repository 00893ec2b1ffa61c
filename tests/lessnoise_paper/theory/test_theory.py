"""The paper's angle law and accuracy constants, each against an independent route."""

import doctest
import math
import pathlib
import statistics
import subprocess
import sys
import warnings

import mpmath as mp
import numpy as np
import pytest

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise_paper import theory

DOCS = pathlib.Path(__file__).parents[3] / "docs" / "theory" / "paper.md"
NEVER = 1e-6  # no p-value of a true hypothesis with a fixed seed may fall below this


# Angles.


def angle_by_quadrature(theta0, dimension):
    """P(|theta - pi/2| >= theta0) from the density sin^(P-2), by 40-digit quadrature."""
    with mp.workdps(40):
        start, top = mp.mpf(theta0), mp.pi / 2
        constant = (
            2 / mp.sqrt(mp.pi) * mp.exp(mp.loggamma(mp.mpf(dimension) / 2) - mp.loggamma(mp.mpf(dimension - 1) / 2))
        )
        # Step by the distance over which the integrand falls by a factor e.
        width = 1 / (mp.sqrt(dimension) + dimension * mp.tan(start))
        points = [start]
        while points[-1] + 2 * width < top and len(points) < 60:
            points.append(points[-1] + 2 * width)
        return constant * mp.quad(lambda u: mp.sin(top - u) ** (dimension - 2), [*points, top])


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [3, 4, 10, 101, 10**4, 10**6, 10**9])
@pytest.mark.parametrize("deviations", [0.0, 1e-3, 0.3, 2.0, 8.0])
def test_angle_probability_is_the_integral_of_the_density(dimension, deviations):
    theta0 = min(deviations / math.sqrt(dimension), 1.55)
    exact = float(angle_by_quadrature(theta0, dimension))
    assert theory.angle_probability(theta0, dimension) == pytest.approx(exact, rel=1e-12, abs=0)


def test_angle_bound_formula_in_many_digits():
    with mp.workdps(60):
        for dimension in (3, 7, 60, 61, 62, 10**5, 10**9):
            for theta0 in (0.0, 1e-5, 0.3, 0.78, 0.79, 1.2, 1.57):
                p, t = mp.mpf(dimension), mp.mpf(theta0)
                ratio = mp.exp(mp.loggamma(p / 2) - mp.loggamma((p - 1) / 2))
                wanted = float(mp.sqrt(mp.pi) * ratio * mp.cos(t) ** (p - 2))
                if wanted > 1e-280:
                    assert theory.angle_bound(theta0, dimension) == pytest.approx(wanted, rel=1e-12, abs=0)
                else:
                    assert theory.angle_bound(theta0, dimension) <= 1e-279


def test_angle_bound_is_above_the_exact_law_and_vacuous_at_zero():
    for dimension in (3, 5, 100, 10**6):
        for theta0 in np.linspace(0.0, 1.57, 40):
            assert theory.angle_probability(theta0, dimension) <= theory.angle_bound(theta0, dimension)
        assert theory.angle_bound(0, dimension) > 1.0 == theory.angle_probability(0, dimension)


def test_angle_probability_by_simulation():
    rng = np.random.default_rng(1)
    count, dimension, theta0 = 40_000, 6, 0.4
    h, g = rng.standard_normal((2, count, dimension))
    cosines = (h * g).sum(1) / np.linalg.norm(h, axis=1) / np.linalg.norm(g, axis=1)
    hits = int((np.abs(np.arccos(cosines) - math.pi / 2) >= theta0).sum())
    assert two_sided_binomial(hits, count, theory.angle_probability(theta0, dimension)) > NEVER
    assert two_sided_binomial(hits, count, 1.1 * theory.angle_probability(theta0, dimension)) < NEVER


def test_angle_in_the_plane_and_in_space():
    for theta0 in (0.0, 0.2, 0.9, 1.4):
        assert theory.angle_probability(theta0, 2) == pytest.approx(1 - 2 * theta0 / math.pi, rel=1e-13)
        assert theory.angle_probability(theta0, 3) == pytest.approx(1 - math.sin(theta0), rel=1e-12)


def test_psi_is_the_squared_cosine_where_the_bound_is_delta():
    for dimension, delta in ((3, 0.1), (100, 1e-5), (7921, 1e-7), (10**6, 1e-10)):
        theta0 = math.acos(math.sqrt(theory.psi(dimension, delta)))
        assert theory.angle_bound(theta0, dimension) == pytest.approx(delta, rel=1e-8)


def test_the_event_of_the_proof_is_rarer_than_its_bound():
    """Simulate R1SMG and measure the angle at the output between the two noises that explain it."""
    epsilon, delta, dimension, count = 0.5, 1e-3, 10, 20_000
    sigma_star = theory.c_r(dimension, epsilon, delta)
    theta0 = math.acos(math.sqrt(theory.psi(dimension, delta)))
    rng = np.random.default_rng(2)
    noise = rng.standard_normal((count, dimension))
    noise *= math.sqrt(sigma_star) * rng.standard_normal((count, 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    other = noise + np.eye(dimension)[0]  # s - f(x') with f(x) - f(x') of length D = 1
    cosines = (noise * other).sum(1) / np.linalg.norm(noise, axis=1) / np.linalg.norm(other, axis=1)
    share = (np.abs(np.arccos(np.clip(cosines, -1, 1)) - math.pi / 2) < theta0).mean()
    assert 0.01 < share < theory.proof_event_bound(epsilon) < 1 - delta
    assert theory.proof_event_bound(1e-5) == pytest.approx(math.sqrt(1e-5 / math.pi), rel=1e-5)


# Constants.


def test_psi_in_many_digits():
    with mp.workdps(60):
        for dimension in (3, 4, 59, 60, 61, 62, 1000, 10**6, 10**9):
            for delta in (0.5, 1e-5, 1e-100):
                m = mp.mpf(dimension)
                ratio = mp.exp(mp.loggamma((m - 1) / 2) - mp.loggamma(m / 2))
                wanted = (mp.mpf(delta) * ratio / mp.sqrt(mp.pi)) ** (2 / (m - 2))
                assert theory.psi(dimension, delta) == pytest.approx(float(wanted), rel=1e-12)


def test_constants_equal_the_losses_of_the_mechanisms():
    for dimension, epsilon, delta in ((3, 0.3, 1e-5), (100, 1e-3, 1e-5), (7921, 1e-5, 1e-7)):
        target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1, "shape": dimension}
        assert theory.c_r(dimension, epsilon, delta) == pytest.approx(
            ln.r1smg(**target, calibration="published").expected_loss, rel=1e-12
        )
        assert theory.c_c(dimension, epsilon, delta) == pytest.approx(
            ln.classic_gaussian(**target).expected_loss, rel=1e-12
        )
        assert theory.exact_analytic_loss(dimension, epsilon, delta) == pytest.approx(
            ln.analytic_gaussian(**target).expected_loss, rel=1e-12
        )


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (0.01, 1e-6), (10, 1e-5), (1e-7, 1e-10), (1e-9, 1e-10)])
def test_exact_analytic_loss_solves_the_equation_in_many_digits(epsilon, delta):
    with mp.workdps(60):
        sigma = mp.sqrt(mp.mpf(theory.exact_analytic_loss(1, epsilon, delta)))

        def curve(s):
            e = mp.mpf(epsilon)
            return mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)

        assert curve(sigma) <= mp.mpf(delta) < curve(sigma * (1 - mp.mpf(10) ** -9))


def test_c_a_is_a_sufficient_value_and_not_a_lower_bound():
    for epsilon in (1e-9, 1e-3, 0.1, 1, 10, 100):
        for delta in (1e-10, 1e-5, 0.1, 0.6):
            # The paper's derivation, at the line before its last two steps.
            quantile = statistics.NormalDist().inv_cdf(delta)
            sufficient = (-2 * quantile + math.sqrt(4 * quantile**2 + 8 * epsilon)) ** 2 / (16 * epsilon**2)
            exact, printed = theory.exact_analytic_loss(7, epsilon, delta), theory.c_a(7, epsilon, delta)
            assert exact < 7 * sufficient * (1 + 1e-9)
            assert exact < printed
            assert 7 * sufficient <= printed * (1 + 1e-12)
    assert theory.c_a(1, 1, 1e-5) == pytest.approx(19.18929, rel=1e-6)
    assert theory.exact_analytic_loss(1, 1, 1e-5) == pytest.approx(13.91761, rel=1e-6)
    assert theory.c_a(1, 1e-9, 1e-10) / theory.exact_analytic_loss(1, 1e-9, 1e-10) == pytest.approx(46.055, rel=1e-4)


def test_classic_noise_is_more_than_needed_below_epsilon_one():
    for epsilon in (1e-9, 1e-3, 0.1, 0.999):
        for delta in (1e-10, 1e-5, 0.1, 0.9):
            assert theory.exact_analytic_loss(1, epsilon, delta) < theory.c_c(1, epsilon, delta)


def least_loss_of_mvg_theorem(rows, columns, epsilon, delta, gamma):
    """Min of Tr(S) Tr(P) under Theorem 3 with D = 1: by the power mean inequality, at multiples of the identity."""
    r, entries = min(rows, columns), rows * columns
    first, second = sum(1 / j for j in range(1, r + 1)), sum(j**-0.5 for j in range(1, r + 1))
    alpha = 2 * first * gamma + (first + second) * gamma**2
    tau = 2 * math.sqrt(-entries * math.log(delta)) - 2 * math.log(delta) + entries
    beta = 2 * entries**0.25 * first * tau
    root = 8 * alpha * epsilon / (beta + math.sqrt(beta**2 + 8 * alpha * epsilon))
    return entries**1.5 * 4 * alpha**2 / root**2


def test_c_m_is_a_loose_lower_bound_of_the_mvg_theorem():
    for rows, columns in ((1, 1), (1, 50), (10, 10), (89, 89)):
        for epsilon in (1e-3, 1, 1e4):
            for delta in (1e-10, 0.5):
                for gamma in (0.5, 1, 100):
                    least = least_loss_of_mvg_theorem(rows, columns, epsilon, delta, gamma)
                    assert theory.c_m(rows, columns, epsilon) <= least
    assert least_loss_of_mvg_theorem(10, 10, 1, 1e-5, 0.5) == pytest.approx(3.126e9, rel=1e-3)
    assert theory.c_m(10, 10, 1) == pytest.approx(245.823, rel=1e-5)


def test_c_m_is_no_bound_for_exactly_calibrated_noise():
    assert theory.exact_analytic_loss(7921, 10, 1e-5) < 0.5 * theory.c_m(89, 89, 10)
    assert theory.exact_analytic_loss(7921, 1, 1e-5) > theory.c_m(89, 89, 1)


def test_c_r_falls_to_its_limit_and_exceeds_twice_the_dimension_in_its_range():
    dimensions = [3, 4, 5, 10, 100, 10**4, 10**6, 10**9]
    for delta in (1e-10, 0.5):
        values = [theory.c_r(dimension, 1e-10, delta) for dimension in dimensions]
        assert values == sorted(values, reverse=True)
        assert values[-1] == pytest.approx(theory.per_entry_limits(1e-10, delta).r1smg, rel=1e-6)
        assert values[-1] > 2e10
    for dimension in dimensions:
        assert theory.c_r(dimension, 0.999 / dimension, 1e-5) > 2 * dimension


def test_exactly_calibrated_r1smg_costs_more_than_the_gaussian():
    exact = ln.r1smg(epsilon=1e-3, delta=1e-5, sensitivity=1, shape=100, calibration="exact").expected_loss
    assert exact == pytest.approx(5.93e12, rel=1e-2)
    assert theory.exact_analytic_loss(100, 1e-3, 1e-5) == pytest.approx(2.973e8, rel=1e-3)


@pytest.mark.parametrize("r", [1, 2, 31, 32, 33, 1000, 10**6])
def test_harmonic_numbers_against_the_sums(r):
    assert theory.harmonic(r) == pytest.approx(math.fsum(1 / j for j in range(1, r + 1)), rel=4e-16)
    assert theory.harmonic_half(r) == pytest.approx(math.fsum(1 / math.sqrt(j) for j in range(1, r + 1)), rel=4e-16)


def test_harmonic_numbers_of_a_huge_r():
    with mp.workdps(40):
        assert theory.harmonic(10**12) == pytest.approx(float(mp.harmonic(10**12)), rel=1e-15)
        half = mp.zeta(mp.mpf(1) / 2) - mp.zeta(mp.mpf(1) / 2, 10**12 + 1)
        assert theory.harmonic_half(10**12) == pytest.approx(float(half), rel=1e-15)


def test_corollary_ratios_and_their_limits():
    epsilon, delta = 1e-9, 1e-10
    limits = theory.per_entry_limits(epsilon, delta, rank=50)
    found = theory.per_entry_constants(50, 10**7, epsilon, delta)
    assert found.ratios == pytest.approx(limits.ratios, rel=1e-6)
    assert limits.ratios[0] == pytest.approx(1 / math.log(1.25 / delta))
    quantile = statistics.NormalDist().inv_cdf(delta)
    assert limits.ratios[1] == pytest.approx(2 * epsilon / (quantile**2 + epsilon))
    assert limits.ratios[2] == pytest.approx(4 / (1.25 * theory.harmonic(50) + 0.25 * theory.harmonic_half(50)))
    assert found.classic * 5e8 == pytest.approx(theory.c_c(5 * 10**8, epsilon, delta))
    assert found.analytic * 5e8 == pytest.approx(theory.c_a(5 * 10**8, epsilon, delta))
    assert found.matrix * 5e8 == pytest.approx(theory.c_m(50, 10**7, epsilon))


def test_corollary_is_not_theta_in_its_second_and_third_term():
    # With epsilon = 1/(2 M), inside the paper's range, the second ratio falls like 1/M.
    second = [theory.per_entry_constants(m, 1, 0.5 / m, 1e-10).ratios[1] * m for m in (10**3, 10**5, 10**7)]
    assert second == pytest.approx([1 / statistics.NormalDist().inv_cdf(1e-10) ** 2] * 3, rel=0.06)
    # For square matrices the third falls like 1/sqrt(r).
    third = [theory.per_entry_constants(r, r, 1e-9, 1e-10).ratios[2] for r in (10**2, 10**4, 10**6)]
    assert third[0] > 5 * third[1] > 25 * third[2]
    assert theory.per_entry_limits(1e-9, 1e-10).matrix == math.inf


def test_large_kurtosis_goes_with_a_heavy_tail():
    target = {"epsilon": 1e-3, "delta": 1e-5, "sensitivity": 1, "shape": 100}
    rank_one, gaussian = ln.r1smg(**target, calibration="published"), ln.analytic_gaussian(**target)
    assert rank_one.loss_kurtosis == pytest.approx(35 / 3)
    assert gaussian.loss_kurtosis == pytest.approx(1.08, abs=0.005)
    assert rank_one.loss_quantile(0.999) > 10 * rank_one.expected_loss
    assert gaussian.loss_quantile(0.999) < 1.5 * gaussian.expected_loss


# Appendix B.


@pytest.mark.slow
def test_loss_against_dimension_defaults_to_the_figure():
    rows = theory.loss_against_dimension()
    assert {row.epsilon for row in rows} == {1e-7, 1e-8, 1e-9}
    assert min(row.dimension for row in rows) == 100
    assert max(row.dimension for row in rows) == 10**6
    for row in rows:
        assert row.in_stated_range
        assert row.r1smg == pytest.approx(theory.c_r(row.dimension, row.epsilon, row.delta), rel=1e-12)
        assert row.r1smg < row.analytic_exact < row.analytic_published < row.classic
        assert row.r1smg_delta > 5e6 * row.delta  # the claim is short by more than six orders of magnitude
    by_dimension = [row.r1smg_delta for row in rows if row.epsilon == 1e-7]
    assert by_dimension == sorted(by_dimension)


def test_loss_against_dimension_delta_by_simulation():
    """E[(1 - e^(eps - L))_+] of the marginal density r^(1-M) exp(-r^2/(2 sigma_*)), at M = 100 by Monte Carlo."""
    dimension, epsilon = 100, 1e-3
    (row,) = theory.loss_against_dimension([dimension], [epsilon], delta=1e-5)
    rng = np.random.default_rng(3)
    count = 400_000
    radius = math.sqrt(row.r1smg) * np.abs(rng.standard_normal(count))
    axis = rng.standard_normal(count)
    cosine = axis / np.sqrt(axis**2 + rng.chisquare(dimension - 1, count))
    moved = radius**2 + 2 * radius * cosine + 1
    loss = 0.5 * (dimension - 1) * np.log(moved / radius**2) + (moved - radius**2) / (2 * row.r1smg)
    values = np.maximum(1 - np.exp(epsilon - loss), 0)
    assert abs(values.mean() - row.r1smg_delta) < 5 * values.std() / math.sqrt(count)


def test_loss_against_dimension_is_silent_outside_the_stated_range():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (row,) = theory.loss_against_dimension([100], [1], delta=1e-5)
    assert not row.in_stated_range
    assert row.r1smg_delta == pytest.approx(0.97099, rel=1e-4)


# Bad input.


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: theory.angle_bound(-0.1, 5), ["theta0=-0.1", "between 0 and pi/2", "radians"]),
        (lambda: theory.angle_probability(2, 5), ["theta0=2", "radians"]),
        (lambda: theory.angle_bound("x", 5), ["theta0='x'", "not a number"]),
        (lambda: theory.angle_bound(0.1, 2), ["dimension=2", "at least 3"]),
        (lambda: theory.angle_probability(0.1, 1), ["dimension=1", "at least 2"]),
        (lambda: theory.angle_probability(0.1, 2.5), ["dimension=2.5", "not a whole number"]),
        (lambda: theory.proof_event_bound(0), ["epsilon=0", "above 0"]),
        (lambda: theory.psi(2, 0.1), ["dimension=2", "at least 3"]),
        (lambda: theory.psi(5, 1), ["delta=1", "strictly between 0 and 1"]),
        (lambda: theory.c_r(2, 1, 0.1), ["dimension=2", "at least 3"]),
        (lambda: theory.c_r(5, -1, 0.1), ["epsilon=-1", "above 0"]),
        (lambda: theory.c_c(0, 1, 0.1), ["dimension=0", "at least 1"]),
        (lambda: theory.c_a(5, 1, 0), ["delta=0", "strictly between 0 and 1"]),
        (lambda: theory.c_m(0, 5, 1), ["rows=0", "at least 1"]),
        (lambda: theory.c_m(5, 0, 1), ["columns=0", "at least 1"]),
        (lambda: theory.exact_analytic_loss(5, math.inf, 0.1), ["epsilon=inf", "not finite"]),
        (lambda: theory.harmonic(0), ["r=0", "at least 1"]),
        (lambda: theory.harmonic_half(1.5), ["r=1.5", "not a whole number"]),
        (lambda: theory.per_entry_constants(2, 1, 1, 0.1), ["rows*columns=2", "exceed 2"]),
        (lambda: theory.per_entry_limits(1, 0.1, rank=0), ["rank=0", "at least 1"]),
        (lambda: theory.loss_against_dimension(100), ["dimensions=100", "pass a list"]),
        (lambda: theory.loss_against_dimension([2]), ["dimensions=2", "at least 3"]),
        (lambda: theory.loss_against_dimension([5], 0.1), ["epsilons=0.1", "pass a list"]),
        (lambda: theory.loss_against_dimension([5], [0]), ["epsilons=0", "above 0"]),
        (lambda: theory.loss_against_dimension([5], delta=2), ["delta=2", "strictly between 0 and 1"]),
    ],
)
def test_bad_input_is_answered_with_the_remedy(call, parts):
    with pytest.raises(InvalidInput) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.slow
def test_importing_the_theory_does_not_import_scipy():
    code = "import sys, lessnoise_paper.theory; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_page_runs():
    failed, tried = doctest.testfile(str(DOCS), module_relative=False)
    assert tried > 10
    assert failed == 0


def two_sided_binomial(hits, count, probability):
    from scipy.stats import binomtest

    return binomtest(hits, count, probability).pvalue
