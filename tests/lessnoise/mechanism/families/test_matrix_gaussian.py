"""The matrix-variate Gaussian law against Kronecker products, brute force, simulation and closed forms."""

import copy
import json
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import delta_of
from lessnoise.mechanism.families.matrix_gaussian import ChiSquareSum, MatrixGaussian, chi_square_sum_quantile, spectrum
from lessnoise.mechanism.sampling import draw_noise, noise_form
from lessnoise.noise import Independent

# Probability with which a test of a correct sampler may fail.
P_VALUE = 1e-15


def rotation(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def law(rows, columns, seed=None):
    if seed is None:
        return MatrixGaussian(rows, columns)
    return MatrixGaussian(
        rows,
        columns,
        FrozenMatrix(rotation(len(rows), seed)),
        FrozenMatrix(rotation(len(columns), seed + 1)),
    )


SMALL = law([0.7, 2.0, 1.1], [1.5, 0.4], seed=3)


def covariances(matrix_law):
    """S = A A^T and P = B B^T, from the definition."""
    sides = []
    for deviations, basis in (
        (matrix_law.row_deviations, matrix_law.row_basis),
        (matrix_law.column_deviations, matrix_law.column_basis),
    ):
        directions = np.eye(deviations.size) if basis is None else basis.array
        factor = directions @ np.diag(deviations.array())
        sides.append(factor @ factor.T)
    return sides


def mechanism(matrix_law, sensitivity=1.0):
    return ln.Mechanism("test", matrix_law, matrix_law.shape, sensitivity)


# Storage.


def test_json_round_trip_is_exact():
    awkward = MatrixGaussian([0.1, 1e-300, 3.0], [math.pi, 5e-324 * 2**60], FrozenMatrix(rotation(3, 1)))
    for original in (SMALL, awkward, MatrixGaussian(Deviations.constant(2.0, 2400), Deviations.constant(1.0, 2400))):
        stored = json.dumps(original.to_dict())
        restored = MatrixGaussian.from_dict(json.loads(stored))
        assert restored == original
        assert hash(restored) == hash(original)
        assert json.dumps(restored.to_dict()) == stored
    assert len(stored) < 300
    assert ln.Mechanism.from_json(mechanism(SMALL).to_json()) == mechanism(SMALL)


def test_frozen_matrix_is_immutable_and_equal_by_content():
    values = rotation(4, 0)
    frozen = FrozenMatrix(values)
    values[0, 0] = 99.0
    assert frozen.array[0, 0] != 99.0
    with pytest.raises(ValueError, match="read-only"):
        frozen.array[0, 0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        frozen.array.setflags(write=True)
    assert frozen == FrozenMatrix(rotation(4, 0))
    assert frozen != FrozenMatrix(values)
    assert FrozenMatrix(np.ones((2, 3))) != FrozenMatrix(np.ones((3, 2)))
    assert copy.deepcopy(frozen) == pickle.loads(pickle.dumps(frozen)) == frozen
    assert len({frozen, FrozenMatrix(rotation(4, 0))}) == 1
    assert np.array_equal(FrozenMatrix(np.asfortranarray(rotation(4, 0))).array, frozen.array)


def test_deviations_are_runs():
    assert Deviations((2.0, 2.0, 1.0), (1, 4, 1)) == Deviations.of([2, 2, 2, 2, 2, 1])
    assert Deviations.constant(3, 10**9).size == 10**9
    values = np.array([1.0, 1.0, 2.0, 1.0])
    assert np.array_equal(Deviations.of(values).array(), values)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MatrixGaussian([1.0, -1.0], [1.0]), r"row_deviations\[1\]=-1 must be above 0"),
        (lambda: MatrixGaussian([1.0], [[1.0]]), r"column_deviations.shape=\(1, 1\) is not that of a vector"),
        (lambda: MatrixGaussian([1.0], [math.inf]), r"column_deviations\[0\]=inf is not finite"),
        (lambda: MatrixGaussian([1.0, 2.0], [1.0], np.eye(3)), r"row_basis.shape=\(3, 3\) differs from \(2, 2\)"),
        (lambda: MatrixGaussian([1.0, 2.0], [1.0], np.ones((2, 2))), "row_basis is not orthonormal.*numpy.linalg.qr"),
        (lambda: MatrixGaussian([1.0], [1.0, 2.0], None, np.full((2, 2), math.nan)), "column_basis.*is not finite"),
        (lambda: MatrixGaussian([1.0], [1.0], np.ones(3)), r"basis.shape=\(3,\) is not that of a matrix"),
        (lambda: Deviations((1.0,), ()), "lengths 1 and 0"),
        (lambda: FrozenMatrix.from_dict({"shape": [2, 2], "float64": "AAAA"}), "has 3 bytes.*needs 32"),
        (lambda: FrozenMatrix.from_dict({"shape": [2, 2], "float64": "?"}), "is not base64"),
        (lambda: FrozenMatrix([["a"]]), "dtype=.* is not numeric"),
        (lambda: mechanism(SMALL).law.check_shape((6,)), r"shape=\(6,\) differs from \(3, 2\)"),
        (lambda: ln.Mechanism("x", SMALL, (2, 3), 1.0), r"shape=\(2, 3\) differs from \(3, 2\)"),
    ],
)
def test_errors_name_the_value_and_the_remedy(build, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        build()
    assert ": " in str(caught.value)


# The noise.


def mapped(law, normals):
    """What the sampler makes of given normals, to read off its linear map."""
    form, noise = noise_form(law, law.shape), np.array(normals, dtype=float).reshape(law.shape)
    if isinstance(form, Independent):
        return form.scale.value * noise
    form._product(noise, 0.0)
    return noise


def test_sampler_is_the_kronecker_square_root():
    columns = [mapped(SMALL, unit).ravel() for unit in np.eye(6)]
    root = np.stack(columns, axis=1)
    row, column = covariances(SMALL)
    # vec of rows: vec(A N B^T) = (A kron B) vec(N), so the covariance is S kron P.
    assert np.allclose(root @ root.T, np.kron(row, column), rtol=1e-13, atol=1e-14)


@pytest.mark.slow
def test_blocks_do_not_change_the_map():
    big = law(np.linspace(1.0, 2.0, 300), np.linspace(3.0, 1.0, 520), seed=5)
    normals = np.random.default_rng(0).standard_normal(big.shape)
    expected = (
        big.row_basis.array
        @ np.diag(big.row_deviations.array())
        @ normals
        @ np.diag(big.column_deviations.array())
        @ big.column_basis.array.T
    )
    assert np.allclose(mapped(big, normals), expected, rtol=1e-12, atol=1e-11)


def simulate(law, count, seed):
    """Rows of vec(Z), by the sampler's own linear map applied to many normals at once."""
    size = math.prod(law.shape)
    root = np.stack([mapped(law, unit).ravel() for unit in np.eye(size)], axis=1)
    return np.random.default_rng(seed).standard_normal((count, size)) @ root.T


def accepts(samples, deviations):
    """Whether independent normal columns have these deviations, each by a two-sided chi-square test."""
    count = samples.shape[0]
    statistic = (samples / deviations) ** 2
    tails = special.chdtr(count, statistic.sum(axis=0)), special.chdtrc(count, statistic.sum(axis=0))
    return float(np.min(tails)) > P_VALUE


@pytest.mark.slow
@pytest.mark.parametrize("source", [np.random.default_rng(11), None])
@pytest.mark.parametrize("seed", [None, 8])
def test_directional_covariance_two_sided(source, seed):
    rows, columns = np.array([0.5, 1.0, 1.0, 4.0, 9.0]), np.array([1.0, 3.0, 0.2])
    matrix_law = law(rows, columns, seed)
    noise = np.stack([draw_noise(matrix_law, (5, 3), source) for _ in range(2000)])
    if seed is not None:
        noise = matrix_law.row_basis.array.T @ noise @ matrix_law.column_basis.array
    samples, deviations = noise.reshape(2000, 15), np.multiply.outer(rows, columns).ravel()
    assert accepts(samples, deviations)
    for factor in (2.0 / 3.0, 1.5):
        for direction in range(15):
            wrong = deviations.copy()
            wrong[direction] *= factor
            assert not accepts(samples, wrong)
    # No correlation between directions: 105 pairs, a correlation of 2000 samples has deviation 0.022.
    correlation = np.corrcoef(samples.T) - np.eye(15)
    assert np.abs(correlation).max() < 9.0 / math.sqrt(2000)


@pytest.mark.slow
def test_basis_is_respected():
    # In the wrong basis the same noise is refused.
    matrix_law = law(np.array([1.0, 10.0, 10.0]), np.array([1.0, 1.0]), seed=4)
    source = np.random.default_rng(1)
    noise = np.stack([draw_noise(matrix_law, (3, 2), source) for _ in range(3000)])
    turned = matrix_law.row_basis.array.T @ noise
    deviations = np.repeat([1.0, 10.0, 10.0], 2)
    assert accepts(turned.reshape(3000, 6), deviations)
    assert not accepts(noise.reshape(3000, 6), deviations)


def test_constant_deviations_ignore_the_basis():
    turned = MatrixGaussian([2.0, 2.0], [1.0, 1.0], rotation(2, 0), rotation(2, 1))
    normals = np.arange(4.0)
    assert np.array_equal(mapped(turned, normals).ravel(), 2.0 * normals)
    assert delta_of(turned, 4, 1.0, 1.0) == delta_of(MatrixGaussian([2.0, 2.0], [1.0, 1.0]), 4, 1.0, 1.0)


@pytest.mark.slow
def test_large_matrix_in_little_memory():
    size = 2400
    direction = np.random.default_rng(0).standard_normal(size)
    direction /= np.linalg.norm(direction)
    basis = FrozenMatrix(np.eye(size) - 2.0 * np.multiply.outer(direction, direction))
    deviations = Deviations((1.0, 7.0), (20, size - 20))
    large = MatrixGaussian(deviations, Deviations.constant(1.0, size), basis)
    assert len(repr(large)) < 300
    source = np.random.default_rng(1)
    tracemalloc.start()
    noise = draw_noise(large, (size, size), source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * 8 * size * size
    # W is its own inverse.
    turned = noise - 2.0 * np.multiply.outer(direction, direction @ noise)
    count = 20 * size
    for part, deviation in ((turned[:20], 1.0), (turned[-20:], 7.0)):
        assert P_VALUE < special.chdtr(count, (part**2).sum() / deviation**2) < 1.0 - P_VALUE


# Privacy.


def gaussian_delta(mu, epsilon):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.slow
def test_curve_is_the_worst_shift_by_brute_force():
    row, column = covariances(SMALL)
    inverse = np.linalg.inv(np.kron(row, column))
    sensitivity = 0.8

    def mu(shift):
        shift = sensitivity * shift / np.linalg.norm(shift)
        return math.sqrt(shift @ inverse @ shift)

    rng = np.random.default_rng(2)
    shifts = rng.standard_normal((20000, 6))
    found = max(shifts, key=mu)
    best = optimize.minimize(lambda shift: -mu(shift), found, method="BFGS", options={"gtol": 1e-9})
    worst = max(-best.fun, mu(found))
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        bracket = delta_of(SMALL, 6, sensitivity, epsilon)
        assert bracket.relative_width < 1e-6
        assert all(gaussian_delta(mu(shift), epsilon) <= bracket.upper for shift in shifts[:200])
        assert gaussian_delta(worst, epsilon) == pytest.approx(bracket.middle, rel=1e-6)


def test_curve_by_simulation():
    row, column = covariances(SMALL)
    inverse = np.linalg.inv(np.kron(row, column))
    shift = np.linalg.eigh(inverse)[1][:, -1]
    noise = simulate(SMALL, 100_000, seed=5)
    loss = noise @ inverse @ shift + 0.5 * shift @ inverse @ shift  # of N(0, Xi) against N(-shift, Xi)
    for epsilon in (0.5, 3.0):
        gains = np.maximum(0.0, -np.expm1(epsilon - loss))
        error = gains.std() / math.sqrt(gains.size)
        assert abs(gains.mean() - delta_of(SMALL, 6, 1.0, epsilon).middle) < 8.0 * error


def test_curve_of_equal_deviations_is_the_analytic_gaussian():
    m = mechanism(MatrixGaussian(Deviations.constant(0.5, 30), Deviations.constant(4.0, 20)))
    radial = ln.Mechanism("g", ln.Radial(600, 2.0, math.sqrt(2.0) * 2.0), (600,), 1.0)
    for epsilon in (0.1, 1.0, 4.0):
        assert m.delta(epsilon).middle == pytest.approx(radial.delta(epsilon).middle, rel=1e-12)
    assert m.epsilon(1e-6).upper == pytest.approx(radial.epsilon(1e-6).upper, rel=1e-4)


def test_curve_covers_the_defect_of_the_basis():
    short = rotation(3, 0)
    short[:, 0] *= 1.0 - 2e-7  # the least direction is a little shorter than it says
    for basis in (short, rotation(60, 1).astype(np.float32)):
        deviations = np.append(1.0, np.full(len(basis) - 1, 2.0))
        off = MatrixGaussian(deviations, [1.0], FrozenMatrix(basis))
        mu = 1.0 / np.linalg.svd(basis.astype(np.float64) * deviations)[1].min()
        low, high = off.mu_range(1.0)
        assert low < mu < high < low + 2e-6
        assert gaussian_delta(mu, 1.0) in delta_of(off, len(basis), 1.0, 1.0)


# The loss.


def test_moments_are_those_of_lemma_1():
    row, column = covariances(SMALL)
    covariance = np.kron(row, column)
    traces = [np.trace(np.linalg.matrix_power(covariance, k)) for k in range(1, 5)]
    t1, t2, t3, t4 = traces
    expected = [t1, t1**2 + 2 * t2, t1**3 + 6 * t1 * t2 + 8 * t3]
    expected.append(t1**4 + 12 * t1**2 * t2 + 12 * t2**2 + 32 * t1 * t3 + 48 * t4)
    for order, value in enumerate(expected, start=1):
        assert losses.raw_moment(SMALL, 6, order) == pytest.approx(value, rel=1e-12)
    m = mechanism(SMALL)
    assert m.expected_loss == pytest.approx(np.trace(row) * np.trace(column), rel=1e-12)
    assert m.loss_kurtosis == pytest.approx(expected[3] / expected[1] ** 2, rel=1e-12)
    assert m.loss_skewness == pytest.approx(expected[2] / expected[1] ** 1.5, rel=1e-12)


def test_moments_by_simulation():
    loss = (simulate(SMALL, 100_000, seed=6) ** 2).sum(axis=1)
    m = mechanism(SMALL)
    for order in (1, 2, 3, 4):
        powers = loss**order
        assert abs(powers.mean() - losses.raw_moment(SMALL, 6, order)) < 8.0 * powers.std() / math.sqrt(powers.size)
    assert np.mean(loss**4) / np.mean(loss**2) ** 2 == pytest.approx(m.loss_kurtosis, rel=0.1)
    assert np.mean(loss**3) / np.mean(loss**2) ** 1.5 == pytest.approx(m.loss_skewness, rel=0.05)


def test_shape_ratios_of_theorems_8_and_9():
    # One entry reaches 35/3 and 5 sqrt(3)/3; every other matrix stays below (Theorems 8 and 9).
    single = mechanism(MatrixGaussian([3.0], [2.0]))
    assert single.loss_kurtosis == pytest.approx(35 / 3, rel=1e-12)
    assert single.loss_skewness == pytest.approx(5 * math.sqrt(3) / 3, rel=1e-12)
    rng = np.random.default_rng(7)
    for _ in range(50):
        rows, columns = np.exp(3.0 * rng.standard_normal(3)), np.exp(3.0 * rng.standard_normal(4))
        m = mechanism(MatrixGaussian(rows, columns))
        assert 1.0 < m.loss_kurtosis < 35 / 3
        assert 1.0 < m.loss_skewness < 5 * math.sqrt(3) / 3
    isotropic = mechanism(MatrixGaussian(Deviations.constant(1.0, 40), Deviations.constant(1.0, 30)))
    radial = ln.Radial(1200, 2.0, math.sqrt(2.0))
    assert isotropic.loss_kurtosis == pytest.approx(losses.kurtosis(radial, 1200), rel=1e-11)
    assert isotropic.loss_quantile(0.9) == pytest.approx(losses.quantile(radial, 1200, 0.9), rel=1e-11)


def hypoexponential_tail(weights, x):
    """P(sum w_i chi^2_2 > x) for distinct weights, in 60 digits."""
    import mpmath

    with mpmath.workdps(60):
        exact = [mpmath.mpf(float(weight)) for weight in weights]
        total = mpmath.mpf(0)
        for i, a in enumerate(exact):
            share = mpmath.fprod(a / (a - b) for j, b in enumerate(exact) if j != i)
            total += share * mpmath.exp(-mpmath.mpf(float(x)) / (2 * a))
        return mpmath.log(total), mpmath.log(1 - total)


@pytest.mark.parametrize(
    "weights", [[1.0, 0.5], [1.0, 1e-3], [1.0, 0.999], [1.0, 1e-6, 0.3, 0.2], np.logspace(-8, 0, 9)]
)
def test_tails_against_a_closed_form(weights):
    weights = np.asarray(weights)
    total = ChiSquareSum(weights, np.full(weights.size, 2.0))
    for x in np.logspace(-3, 2, 11) * weights.sum():
        for upper, reference in zip((True, False), hypoexponential_tail(weights, x), strict=True):
            if -500.0 < reference < -0.3:
                assert abs(total.log_tail(x, upper=upper) - float(reference)) < 1e-11


def test_tails_with_one_degree_of_freedom_each():
    # P(Z1^2 + w Z2^2 < x) by integrating over the angle.
    w = 0.07
    total = ChiSquareSum(np.array([1.0, w]), np.array([1.0, 1.0]))
    for x in (1e-6, 0.01, 0.5, 1.0, 3.0, 40.0):

        def tail(angle, x=x):
            return math.exp(-0.5 * x / (math.cos(angle) ** 2 + w * math.sin(angle) ** 2)) * 2.0 / math.pi

        reference = integrate.quad(tail, 0.0, math.pi / 2, epsabs=0.0, epsrel=1e-12, points=[0.1, 1.0])[0]
        assert total.log_tail(x, upper=True) == pytest.approx(math.log(reference), abs=1e-10)


@pytest.mark.parametrize("freedom", [1, 3, 100, 10**4, 5_760_000])
def test_tails_of_equal_weights_are_chi_square(freedom):
    total = ChiSquareSum(np.array([1.0, 1.0]), np.array([0.25, 0.75]) * freedom)
    for probability in (1e-4, 0.3, 0.5, 0.7, 1.0 - 1e-4):
        x = special.chdtri(freedom, 1.0 - probability)
        assert total.log_tail(x, upper=True) == pytest.approx(math.log(special.chdtrc(freedom, x)), abs=1e-9)
        assert total.log_tail(x, upper=False) == pytest.approx(math.log(special.chdtr(freedom, x)), abs=1e-9)


@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.3, 0.5, 0.8, 0.99, 1.0 - 1e-9])
def test_quantiles_invert_the_closed_form(probability):
    x = chi_square_sum_quantile(np.array([1.0, 0.25]), np.array([2.0, 2.0]), probability)
    upper, lower = (float(value) for value in hypoexponential_tail([1.0, 0.25], x))
    goal = math.log1p(-probability) if probability > 0.5 else math.log(probability)
    assert (upper if probability > 0.5 else lower) == pytest.approx(goal, abs=1e-9)


def test_quantiles_by_simulation():
    matrix_law = law(np.array([1.0, 1.0, 5.0]), np.array([1.0, 2.0]), seed=1)
    loss = (simulate(matrix_law, 50_000, seed=8) ** 2).sum(axis=1)
    m = mechanism(matrix_law)
    for q in (0.01, 0.5, 0.99):
        error = math.sqrt(q * (1.0 - q) / loss.size)
        assert abs(np.mean(loss <= m.loss_quantile(q)) - q) < 8.0 * error


def test_quantiles_rise_and_scale():
    m = mechanism(SMALL)
    values = [m.loss_quantile(q) for q in (1e-6, 0.1, 0.5, 0.9, 1.0 - 1e-6)]
    assert values == sorted(values)
    tripled = mechanism(MatrixGaussian(SMALL.row_deviations.scaled(3.0), SMALL.column_deviations))
    assert tripled.loss_quantile(0.9) == pytest.approx(9.0 * m.loss_quantile(0.9), rel=1e-10)


@pytest.mark.slow
def test_many_distinct_eigenvalues_are_binned_finely():
    rng = np.random.default_rng(9)
    rows, columns = np.exp(rng.standard_normal(70)), np.exp(rng.standard_normal(70))
    weights, counts = spectrum(Deviations.of(rows), Deviations.of(columns))
    assert len(weights) < 4900
    assert counts.sum() == 4900
    products = (np.multiply.outer(rows, columns) ** 2 / (rows.max() * columns.max()) ** 2).ravel()
    assert counts @ weights == pytest.approx(products.sum(), rel=1e-12)
    assert math.sqrt(counts @ weights**2) == pytest.approx(math.sqrt(products @ products), rel=5e-6)
    binned = chi_square_sum_quantile(weights, counts, 0.99)
    deviation = math.sqrt(2.0 * products @ products)
    assert abs(binned - chi_square_sum_quantile(products, np.ones(4900), 0.99)) < 2e-5 * deviation


def test_two_sides_of_equal_values_share_eigenvalues():
    weights, counts = spectrum(Deviations.of([1.0, 2.0, 1.0]), Deviations.of([2.0, 1.0]))
    assert weights.tolist() == [1 / 16, 1 / 4, 1.0]
    assert counts.tolist() == [2.0, 3.0, 1.0]
