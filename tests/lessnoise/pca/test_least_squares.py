"""Least squares from noisy moments: every closed form against brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, Ridge

import lessnoise as ln
from lessnoise.guarantees import Neighbours
from lessnoise.pca import Moments, build_mechanism, moments
from lessnoise.pca.layout import Layout
from lessnoise.pca.least_squares import Deviations, _bordered_inverse, half_widths, solve
from lessnoise.pca.scaled_rows import ScaledRows, target_weight


def scaled(features, center=True, clip_norm=None, bounds=(-1, 1), target_bounds=(-1, 1)):
    return ScaledRows.for_target(
        features, bounds=bounds, target_bounds=target_bounds, clip_norm=clip_norm, center=center
    )


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("center", [False, True])
def test_the_noise_of_the_equations_is_that_of_the_packed_vector(relation, center):
    """The equations are linear in the packed noise: their covariance is t^2 L L^T, column by column of L."""
    layout, deviation, size = Layout(4, 1.7, relation, center), 2.5, 3
    line, height = np.array([0.3, -2.0, 0.7, 1.0]), 0.4 if center else 0.0
    columns, squares = [], []
    for unit in np.eye(layout.size):
        found = layout.unpack(unit + 1e6, 0.0)  # far from where the number of rows is cut off; linear beside it
        zero = layout.unpack(np.full(layout.size, 1e6), 0.0)
        gram, sums, count = found.gram - zero.gram, found.sums - zero.sums, found.count - zero.count
        equations = gram @ line + sums * height
        columns.append([*equations[:size], sums @ line + count * height])
        squares.append(line @ gram @ line + 2 * height * sums @ line + count * height**2)
    linear = deviation * np.array(columns)
    if not center:
        linear[:, size] = 0.0
    noise = Deviations.of(layout, deviation)
    np.testing.assert_allclose(noise.equations(line, height), linear.T @ linear, rtol=1e-6, atol=1e-6)
    assert noise.residual_sum(line, height) == pytest.approx(deviation * np.linalg.norm(squares), rel=1e-6)


@given(arrays(float, (9, 3), elements=st.floats(-1, 1)))
@settings(max_examples=30, deadline=None)
def test_the_bordered_inverse_is_the_inverse(rows):
    design = np.column_stack([np.vstack([rows, np.eye(3)]), np.ones(12)])
    gram, mean = design.T @ design, design[:, :3].mean(axis=0)
    centred = gram[:3, :3] - 12 * np.outer(mean, mean) + 0.1 * np.eye(3)
    gram[:3, :3] += 0.1 * np.eye(3)
    np.testing.assert_allclose(_bordered_inverse(centred, mean, 12.0, True), np.linalg.inv(gram), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("center", [False, True])
def test_without_noise_it_is_least_squares(center):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.4, 0.6, size=(200, 4))
    sums = Moments(200.0, 0.0, rows.sum(axis=0), rows.T @ rows)
    found = solve(sums, Layout(4, 2.0, center=center), 1e-9, np.ones(4))
    expected = LinearRegression(fit_intercept=center).fit(rows[:, :3], rows[:, 3])
    np.testing.assert_allclose(found.solution, [*expected.coef_, expected.intercept_], atol=1e-12)
    assert found.ridge == 0.0
    residuals = rows[:, 3] - expected.predict(rows[:, :3])
    assert found.residual_variance == pytest.approx(residuals @ residuals / (197 - center), rel=1e-6)
    design = np.column_stack([rows[:, :3], np.ones(200)]) if center else rows[:, :3]
    textbook = found.residual_variance * np.linalg.inv(design.T @ design)
    np.testing.assert_allclose(found.sampling[: 3 + center, : 3 + center], textbook, rtol=1e-8)


def test_the_ridge_lifts_the_smallest_eigenvalue_to_the_floor():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(200, 3))
    rows[:, 1] = rows[:, 0]  # collinear
    sums = Moments(200.0, 0.0, rows.sum(axis=0), rows.T @ rows)
    found = solve(sums, Layout(3, 2.0), 1.0, np.ones(3))
    centred = (rows - rows.mean(axis=0))[:, :2]
    smallest = np.linalg.eigvalsh(centred.T @ centred + found.ridge * np.eye(2))[0]
    assert smallest == pytest.approx(found.floor, rel=1e-9)
    assert found.floor >= 3.0  # (sqrt(2 d) + 1) deviations
    expected = Ridge(alpha=found.ridge).fit(rows[:, :2], rows[:, 2])
    np.testing.assert_allclose(found.solution, [*expected.coef_, expected.intercept_], atol=1e-9)


@pytest.mark.slow
def test_the_floor_is_about_the_largest_eigenvalue_of_the_noise():
    rng = np.random.default_rng(0)
    for size in (1, 3, 20):
        half = rng.standard_normal((400, size, size))
        noise = (half + half.transpose(0, 2, 1)) / 2  # 1 on the diagonal, 1/sqrt(2) beside it
        above = np.mean(np.linalg.eigvalsh(noise)[:, -1] > Deviations(1.0, 1.0, 1.0).floor(np.zeros(size)))
        assert above < 0.02


# Quantiles.


def test_normal_noise_has_normal_quantiles():
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=40)
    shares = np.array([0.0, 0.3, 0.9, 1.0])
    for level in (0.5, 0.95, 0.999):
        widths = half_widths(mechanism, 9.0 * shares, 9.0 * (1 - shares), level)
        np.testing.assert_allclose(widths, 3 * norm.isf((1 - level) / 2), rtol=0.01)
    assert half_widths(mechanism, np.zeros(1), np.zeros(1), 0.9).tolist() == [0.0]


@pytest.mark.slow
@pytest.mark.parametrize("features", [1, 3])
def test_quantiles_of_l2_noise_are_those_of_a_simulation(features):
    layout = Layout(features + 1, 1.0)
    mechanism = build_mechanism("l2", layout, 1.0, None)
    rng, draws = np.random.default_rng(0), 1_000_000
    radii = rng.gamma(layout.size, mechanism.law.scale, draws)
    normals, rest = rng.standard_normal(draws), rng.chisquare(layout.size - 1, draws)
    entry = radii * normals / np.sqrt(normals**2 + rest)
    assert entry.std() == pytest.approx(mechanism.standard_deviation, rel=0.01)
    other = rng.standard_normal(draws)
    for noise, sampling in ((1.0, 0.0), (0.5, 0.5)):
        simulated = math.sqrt(noise) * entry / mechanism.standard_deviation + math.sqrt(sampling) * other
        for level in (0.8, 0.95, 0.99):
            width = half_widths(mechanism, np.array([noise]), np.array([sampling]), level)[0]
            assert width == pytest.approx(np.quantile(np.abs(simulated), level), rel=0.015)


# Rows in units of their bounds.


@pytest.mark.parametrize("features", [1, 4, 30])
def test_the_weight_of_the_target_is_the_best_for_its_coefficients(features):
    def loss(squared):
        return (features + squared) ** 2 * (0.25 + 1 / squared)

    best = target_weight(features) ** 2
    assert loss(best) < min(loss(0.98 * best), loss(1.02 * best))


@pytest.mark.slow
@given(st.data(), st.integers(1, 4), st.booleans(), st.sampled_from(Neighbours), st.sampled_from([None, 0.7]))
@settings(max_examples=100, deadline=None)
def test_no_neighbour_is_farther_than_the_sensitivity(data, size, center, relation, clip):
    wild = st.floats(-1e4, 1e4) | st.sampled_from([1e308, -1e308, 0.0])
    base = data.draw(arrays(float, (3, size + 1), elements=wild))
    rows = data.draw(arrays(float, (2, size + 1), elements=wild))
    limits = (np.arange(size) - 2.0, 10.0 ** np.arange(size))
    bound = scaled(size, center, clip, limits, data.draw(st.sampled_from([(-3, 1), (500, 900)])))
    layout = Layout(size + 1, bound.norm, relation, center)
    first = np.vstack([base, rows[:1]])
    second = base if relation is Neighbours.ADD_REMOVE else np.vstack([base, rows[1:]])
    change = layout.pack(moments(first, bound)) - layout.pack(moments(second, bound))
    assert np.linalg.norm(change) <= layout.sensitivity * (1 + 1e-9)
    assert np.abs(change).sum() <= layout.l1_sensitivity * (1 + 1e-9)


def test_the_sensitivity_is_reached_in_a_corner_of_the_bounds():
    bound = scaled(3, bounds=([0, 10, -5], [1, 1000, 5]), target_bounds=(2, 3))
    layout = Layout(4, bound.norm)
    corner = np.array([[1.0, 10.0, 5.0, 3.0]])
    change = layout.pack(moments(corner, bound))
    assert np.linalg.norm(change) == pytest.approx(layout.sensitivity, rel=1e-4)  # of the grid of 2^-18


@pytest.mark.parametrize("center", [False, True])
def test_sums_are_those_of_the_scaled_rows(center):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3)) * [3.0, 300.0, 0.3]
    bound = scaled(2, center, bounds=([-2, -100], [4, 500]), target_bounds=(-0.2, 0.3))
    kept = (np.clip(rows, [-2, -100, -0.2], [4, 500, 0.3]) - bound.middle) * bound.scale
    assert (np.abs(kept).max(axis=0) <= bound.farthest * (1 + 1e-12)).all()
    found = moments(rows, bound)
    np.testing.assert_allclose(found.gram, kept.T @ kept, atol=50 * 1e-5)
    np.testing.assert_allclose(found.sums, kept.sum(axis=0), atol=50 * 1e-5)
    outside = (rows < [-2, -100, -0.2]) | (rows > [4, 500, 0.3])
    assert (found.count, found.clipped) == (50.0, outside.any(axis=1).sum())
