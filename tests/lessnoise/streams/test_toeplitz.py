"""Banded and square-root strategies against dense matrices, whole numbers without limits, and the offline optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.mechanism import gaussian_delta
from lessnoise.strategy import toeplitz_for
from lessnoise.streams import Plan
from lessnoise.streams.buffers import ONE, quantum_for
from lessnoise.streams.fit import BAND, fitted_banded, fitted_square_root
from lessnoise.streams.toeplitz import (
    Banded,
    SquareRoot,
    ToeplitzRun,
    column_norms,
    power_series,
    profile,
    weighted_floor,
)
from lessnoise.workload import Factor

SIGMA = 4.224907  # of Gaussian noise for epsilon 1, delta 1e-6
OPTIMA = {64: 78.7, 256: 113.7, 1024: 155.9}  # squared error of the best Gaussian, which may see all periods at once
ROWS = (0.2, 0.9, 0.45, 0.6)
BAND_OF_FOUR = Banded(12, (ONE, int(0.5 * ONE), int(0.4 * ONE), int(0.1 * ONE)), ROWS)
ROOT = SquareRoot(12, 0.51, ROWS)
BOTH = pytest.mark.parametrize("strategy", [BAND_OF_FOUR, ROOT], ids=["banded", "square-root"])


def dense(strategy):
    """R, T and D as matrices."""
    n, c = strategy.periods, strategy.whole / ONE
    toeplitz = np.array([[c[t - s] if 0 <= t - s < len(c) else 0.0 for s in range(n)] for t in range(n)])
    found = profile(strategy)
    return np.diag(found.weights), toeplitz, np.diag(found.scales)


def run_on(strategy, values):
    """What is measured of values of one entry, in quanta."""
    run, found = ToeplitzRun(strategy, 1), []
    for period, value in enumerate(values, start=1):
        quanta, private = run.measured(np.array([value]), period)
        run.settle({**private, "found": run.found, "total": run.total})
        found.append(int(quanta[0][0]))
    return found


@pytest.mark.parametrize(
    "strategy", [BAND_OF_FOUR, ROOT, Banded(1, (ONE,), ROWS), SquareRoot(1, 0.5, ROWS), fitted_banded(7)]
)
def test_columns_are_of_length_one_and_variances_those_of_the_inverse(strategy):
    weights, toeplitz, scales = dense(strategy)
    places = np.arange(strategy.periods)
    expected = (places + strategy.rows[1]) ** strategy.rows[0] * (places[::-1] + strategy.rows[3]) ** strategy.rows[2]
    assert np.allclose(np.diag(weights), expected / expected.min(), rtol=1e-12)
    matrix = weights @ toeplitz @ scales
    lengths = np.linalg.norm(matrix, axis=0)
    assert lengths.max() <= 1.0 + 1e-9
    assert lengths.min() > 1.0 - 1e-6
    totals = np.tril(np.ones_like(toeplitz)) @ np.linalg.inv(matrix)
    assert np.allclose(strategy.variances(), (totals**2).sum(axis=1), rtol=1e-9)
    for first, last in itertools.combinations_with_replacement(range(1, strategy.periods + 1), 2):
        window = totals[last - 1] - (totals[first - 2] if first > 1 else 0.0)
        assert math.isclose(strategy.window_variance(first, last), float(window @ window), rel_tol=1e-9)


def test_coefficients_of_the_square_root_square_to_ones():
    assert np.allclose(np.convolve(power_series(0.5, 50), power_series(0.5, 50))[:50], 1.0)
    assert np.allclose(np.convolve(power_series(0.6, 50), power_series(-0.6, 50))[1:50], 0.0)
    assert SquareRoot(9, 0.5, ROWS).whole[2] == 3 * ONE // 8


def test_sums_of_products_are_rounded_down_once_and_exactly():
    rng = np.random.default_rng(1)
    for rows in (1, 5, 300):
        numbers = rng.integers(-(2**60) // rows, 2**60 // rows, (rows, 3))
        numbers[0] = 2**60 // rows, -(2**60) // rows, -1
        factors = rng.integers(0, ONE + 1, rows)
        factors[0] = ONE
        expected = [sum(int(u) * int(f) for u, f in zip(column, factors, strict=True)) // ONE for column in numbers.T]
        assert weighted_floor(numbers, factors).tolist() == expected
    most = np.full((1 << 14, 1), ONE - 1)  # as many and as large low parts as there can be
    assert weighted_floor(most, np.full(1 << 14, ONE)).tolist() == [(1 << 14) * (ONE - 1)]
    assert weighted_floor(most, np.full(1 << 14, ONE - 1)).tolist() == [(1 << 14) * (ONE - 1) ** 2 // ONE]


@BOTH
def test_measurements_are_those_of_whole_numbers_without_limits(strategy):
    values = np.random.default_rng(4).integers(-(2**54), 2**54, 12)
    scales, factors = profile(strategy).whole, strategy.whole
    scaled = [int(v) * int(d) // ONE for v, d in zip(values, scales, strict=True)]
    expected = [sum(scaled[t - k] * int(factors[k]) for k in range(min(t + 1, len(factors)))) // ONE for t in range(12)]
    assert run_on(strategy, values) == expected


@BOTH
@pytest.mark.parametrize("participations", [1, 2, 12])
def test_whole_arithmetic_stays_within_the_deviation(strategy, participations):
    """Two inputs that differ in some periods: what is measured differs by C times that, and by less than stated."""
    rng, (_, toeplitz, scales) = np.random.default_rng(2), dense(strategy)
    most = 0.0
    for _ in range(50):
        inputs, change = rng.integers(-1000, 1000, 12), rng.uniform(-50.0, 50.0, 12)
        change[rng.permutation(12)[participations:]] = 0.0
        real = inputs + rng.uniform(0.0, 1.0, 12)  # in quanta, rounded down below
        both = [np.array(run_on(strategy, np.floor(each).astype(np.int64))) for each in (real, real + change)]
        most = max(most, np.abs(both[1] - both[0] - toeplitz @ scales @ change).max())
    assert 0.2 * strategy.deviation(participations) < most <= strategy.deviation(participations)


@BOTH
def test_the_quantum_keeps_all_deviations_within_the_share(strategy):
    quantum = quantum_for(strategy, 3.0, 5, 2, 2.0**-12)
    most = strategy.deviation(2) * quantum * math.sqrt(5.0 * float(strategy.weights @ strategy.weights))
    assert 0.49 * 2.0**-12 * 3.0 < most <= 2.0**-12 * 3.0


@pytest.mark.parametrize("name", ["banded", "square-root"])
def test_a_stream_is_the_dense_simulation_with_the_same_noise(name):
    """Totals are W D^-1 T^-1 (T D x + noise): the noise is what the same stream measures of zeros."""
    periods = 40 if name == "square-root" else BAND + 30  # longer than the band
    options = {"periods": periods, "epsilon": 1, "delta": 1e-6, "strategy": name, "shape": 2}
    stream = ln.Stream(rng=np.random.default_rng(3), **options)
    values = np.random.default_rng(4).integers(0, 1000, (periods, 2))
    zeros = np.zeros(2, dtype=np.int64)
    noise = np.array([stream._prepared(0, zeros, period)() for period in range(1, periods + 1)])
    weights, toeplitz, scales = dense(stream.plan.strategy)
    measured = toeplitz @ scales @ values + noise
    expected = np.cumsum(np.linalg.inv(scales) @ np.linalg.solve(toeplitz, measured), axis=0)
    found = np.array([stream.push(value) for value in values])
    # a measurement is rounded to the noise's grid, of 2^-8 of its deviation at most
    assert np.abs(found - expected).max() < 0.1 * math.sqrt(stream.query_error)
    exact = np.sqrt(np.diag(weights) ** -2.0) * stream.plan.noise.deviations[0]
    assert [stream.plan.law(0, t) for t in (1, periods)] == pytest.approx([exact[0], exact[-1]])


@pytest.mark.parametrize("name", ["banded", "square-root"])
def test_the_guarantee_is_that_of_the_longest_column(name):
    stream = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy=name, changes=ln.changes.ball(2.0), shape=3)
    assert 0.99e-6 < stream.guarantee.delta <= 1e-6
    weights, toeplitz, scales = dense(stream.plan.strategy)
    lengths = np.linalg.norm(weights @ toeplitz @ scales, axis=0)
    sigma = stream.plan.noise.deviations[0]
    deltas = [gaussian_delta(2.0 * length / sigma, 1.0) for length in lengths]
    assert max(delta.upper for delta in deltas) <= stream.delta(1.0).upper
    assert max(delta.lower for delta in deltas) >= 0.99 * stream.delta(1.0).upper
    thrice = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy=name, participations=3)
    once = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy=name)
    assert thrice.query_error == pytest.approx(9.0 * once.query_error, rel=1e-6)


@pytest.mark.parametrize("periods", OPTIMA)
def test_square_root_comes_within_a_third_of_a_percent_of_the_offline_optimum(periods):
    strategy = fitted_square_root(periods)
    error = SIGMA**2 * float(strategy.variances().mean())
    assert OPTIMA[periods] * 0.999 <= error <= OPTIMA[periods] * 1.003
    factor = Factor("prefixes", periods)
    known = toeplitz_for(factor).factor_trace(factor) / periods
    assert float(strategy.variances().mean()) <= known * 1.0005


@pytest.mark.slow
def test_a_band_as_long_as_the_stream_is_near_the_optimum_and_a_shorter_one_is_not():
    errors = {n: SIGMA**2 * float(fitted_banded(n).variances().mean()) for n in (64, 1024)}
    assert OPTIMA[64] * 0.999 <= errors[64] <= OPTIMA[64] * 1.002
    assert 200.0 < errors[1024] < 220.0
    cut = Banded(1024, tuple(int(x) for x in fitted_square_root(1024).whole[:BAND]), fitted_square_root(1024).rows)
    assert errors[1024] < 0.95 * SIGMA**2 * float(cut.variances().mean())  # optimised, not cut off


def test_norms_of_columns_are_those_of_the_matrix():
    weights, coefficients = np.random.default_rng(0).uniform(1.0, 2.0, 9), np.array([1.0, 0.5, 0.2])
    padded = np.concatenate([coefficients, np.zeros(6)])
    expected = [np.linalg.norm(weights[s:] * padded[: 9 - s]) for s in range(9)]
    assert np.allclose(column_norms(coefficients, weights), expected, rtol=1e-13)


@pytest.mark.parametrize("name", ["banded", "square-root"])
def test_large_values_take_the_exact_path_and_larger_ones_are_refused(name):
    options = {"periods": 30, "epsilon": 1, "delta": 1e-6, "strategy": name}
    stream, small = (ln.Stream(rng=np.random.default_rng(0), **options) for _ in range(2))
    large = 2.0**57 * stream.plan.noise.quantum
    for _ in range(29):
        difference = stream.push(large) - small.push(0)
    assert difference == pytest.approx(29 * large, rel=1e-12)
    with pytest.raises(ln.InvalidInput, match="too large"):
        stream.push(2.0**60 * stream.plan.noise.quantum)
    assert stream.push(0) - small.push(0) == pytest.approx(29 * large, rel=1e-12)  # the failure left nothing behind


@pytest.mark.parametrize("name", ["banded", "square-root"])
def test_plans_are_read_back_and_odd_ones_refused(name):
    plan = ln.Stream(periods=20, epsilon=1, delta=1e-6, strategy=name).plan
    assert Plan.from_dict(plan.to_dict()) == plan
    for change, words in [
        ({"rows": [0.0, 1.0, 2.0, 1.0]}, "shape of a stream's weights"),
        ({"rows": [0.0, 0.0, 0.0, 1.0]}, "shape of a stream's weights"),
        ({"coefficients": [1, 2]}, "pass those") if name == "banded" else ({"power": 2.0}, "at most 1"),
        ({"periods": 20_000}, "exceeds 16384"),
        ({"kind": "band"}, "strategy kind"),
    ]:
        values = plan.to_dict()
        values["strategy"] = {**values["strategy"], **change}
        with pytest.raises(ln.InvalidInput, match=words):
            Plan.from_dict(values)
