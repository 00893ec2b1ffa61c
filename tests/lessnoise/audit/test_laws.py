"""What an audit knows of noise laws: batches of draws, density ratios, worst shifts, distances."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import lessnoise as ln
from lessnoise import noise as noise_engine
from lessnoise.audit.attacks import rounding
from lessnoise.audit.laws import distance, draw_many, log_density_ratio, radial_ratio, worst_shift
from lessnoise.audit.outputs import Outputs
from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.mechanism.law import Plain
from lessnoise.mechanism.sampling import draw_noise, noise_form
from tests.helpers.shell_oracles import heights_at

TURN = FrozenMatrix(np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0])
OTHER_TURN = FrozenMatrix(np.linalg.qr(np.random.default_rng(6).normal(size=(2, 2)))[0])
LAWS = {
    "gaussian": (ln.Radial(6, 2.0, 1.5), (2, 3)),
    "l2": (ln.Radial(4, 1.0, 0.6), (4,)),
    "r1smg": (ln.Radial(1, 2.0, 3.0), (5,)),
    "small k": (ln.Radial(0.5, 1.5, 3.0), (3,)),
    "shells": (ln.Shells(3, (0.0, 1.0, 2.0, 4.0), (0.2, 0.4, 0.4)), (3,)),
    "laplace": (ln.Laplace(0.8), (3,)),
    "generalized": (ln.GeneralizedGaussian(3.0, 1.2), (4,)),
    "generalized, one number": (ln.GeneralizedGaussian(4.0, 1.0), (1,)),
    "discrete": (ln.DiscreteGaussian(9, 4), (3,)),
    "correlated": (ln.CorrelatedGaussian(0.5, 1.5), (4,)),
    "matrix": (ln.MatrixGaussian(Deviations.of([0.5, 1.0, 2.0]), Deviations.of([1.0, 1.5]), TURN, OTHER_TURN), (3, 2)),
    "matrix, axes": (ln.MatrixGaussian(Deviations.of([0.5, 1.0, 2.0]), Deviations.constant(1.0, 2)), (3, 2)),
}
every_law = pytest.mark.parametrize(("law", "shape"), LAWS.values(), ids=LAWS.keys())
NEVER_FLAKES = 1e-9


def shift_for(law, shape):
    if law.integer:
        return np.arange(math.prod(shape)).reshape(shape) - 1.0
    return np.linspace(-0.6, 1.1, math.prod(shape)).reshape(shape) if math.prod(shape) > 1 else np.full(shape, 0.7)


def views(noise):
    """One-dimensional marginals of batches of noise that tell laws apart."""
    flat = noise.reshape(len(noise), -1)
    return {"first": flat[:, 0], "last": flat[:, -1], "norm": np.linalg.norm(flat, axis=1), "sum": flat.sum(axis=1)}


@pytest.mark.slow
@every_law
def test_batches_have_the_law_of_single_draws_and_no_other_scale(law, shape):
    rng = np.random.default_rng(1)
    single = np.stack([draw_noise(law, shape, rng) for _ in range(3000)]).astype(float)
    many = draw_many(law, shape, 3000, np.random.default_rng(2))
    assert many.shape == (3000, *shape)
    assert many.dtype == np.float64
    for name, column in views(many).items():
        assert stats.ks_2samp(column, views(single)[name]).pvalue > NEVER_FLAKES, name
        for factor in (2 / 3, 3 / 2):
            scaled = stats.ks_2samp(factor * views(many)["norm"], views(single)["norm"])
            assert scaled.pvalue < NEVER_FLAKES


def test_an_unknown_law_is_drawn_one_by_one_and_has_no_likelihood():
    class Unknown:
        """A law that registers nothing for audits."""

        integer = False

    @noise_form.register(Unknown)
    def _(law, shape):
        return noise_engine.Independent(noise_engine.normal(), noise_engine.Real.exactly(1.0))

    assert draw_many(Unknown(), (2, 2), 5, np.random.default_rng(0)).shape == (5, 2, 2)
    assert draw_many(Unknown(), (2, 2), 0, np.random.default_rng(0)).shape == (0, 2, 2)
    with pytest.raises(NotImplementedError, match="Unknown"):
        log_density_ratio(Unknown(), None)


@dataclass(frozen=True)
class Steps(Plain):
    """A law of the plane that lessnoise does not know: density constant on rings."""

    edges: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0)
    probabilities: tuple[float, ...] = (0.5, 0.3, 0.2)

    norm = "l2"


@pytest.mark.slow
def test_a_new_isotropic_law_registers_one_function():
    @noise_form.register(Steps)
    def _(law, shape):
        return noise_engine.Isotropic(noise_engine.ShellRadius(law.edges, law.probabilities, 2))

    @log_density_ratio.register(Steps)
    def _(law, outputs):
        edges = np.array(law.edges)
        heights = np.append(np.log(law.probabilities) - np.log(np.diff(edges**2)), -np.inf)
        return radial_ratio(outputs, lambda radius: heights[np.searchsorted(edges, radius, "right") - 1])

    law, shift = Steps(), np.array([1.5, 0.0])
    points = Outputs(np.array([[0.5, 0.0], [-2.0, 0.0], [4.2, 0.0], [9.0, 9.0]]), np.zeros(2), shift)
    inner, middle, outer = (math.log(p / area) for p, area in zip((0.5, 0.3, 0.2), (1, 3, 5), strict=True))
    assert log_density_ratio(law, points) == pytest.approx([inner - middle, math.inf, -math.inf, 0.0])
    assert middle > outer
    assert np.abs(calibration_scores(law, (2,), 1.0, shift, 4000)).max() < 6.0

    # The support is bounded: outputs that the neighbour cannot produce give the value away.
    mechanism = ln.Mechanism("steps", law, (2,), 1.5, claim=ln.Claim(1.0, 1e-3, source="a test"))
    report = ln.audit(mechanism, np.zeros(2), samples=4000, rng=np.random.default_rng(0))
    assert report.refuted
    assert report.delta_attack == "likelihood"


def log_density(law, shape, noise):
    """ln f up to a constant, from SciPy or the definition."""
    flat = noise.reshape(len(noise), -1)
    if isinstance(law, ln.Laplace):
        return stats.laplace.logpdf(flat, scale=law.scale).sum(axis=1)
    if isinstance(law, ln.GeneralizedGaussian):
        return stats.gennorm.logpdf(flat, law.p, scale=law.scale).sum(axis=1)
    if isinstance(law, ln.Radial):
        radius = np.linalg.norm(flat, axis=1)
        return (law.k - flat.shape[1]) * np.log(radius) - (radius / law.scale) ** law.p
    if isinstance(law, ln.Shells):
        return heights_at(law, np.linalg.norm(flat, axis=1))
    if isinstance(law, ln.DiscreteGaussian):
        return stats.norm.logpdf(flat, scale=float(law.variance_parameter) ** 0.5).sum(axis=1)
    if isinstance(law, ln.CorrelatedGaussian):
        covariance = law.own_variance * np.eye(flat.shape[1]) + law.common_variance
    else:
        sides = []
        for deviations, basis in ((law.row_deviations, law.row_basis), (law.column_deviations, law.column_basis)):
            turn = np.eye(deviations.size) if basis is None else basis.array
            sides.append(turn @ np.diag(deviations.array() ** 2) @ turn.T)
        covariance = np.kron(*sides)
    return stats.multivariate_normal.logpdf(flat, cov=covariance)


@every_law
def test_density_ratio_is_that_of_the_densities(law, shape):
    value, shift = np.ones(shape), shift_for(law, shape)
    array = value + draw_many(law, shape, 200, np.random.default_rng(3))
    outputs = Outputs(array, value, value + shift)
    expected = log_density(law, shape, array - value) - log_density(law, shape, array - value - shift)
    assert log_density_ratio(law, outputs) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def calibration_scores(law, shape, scale, shift=None, count=40_000):
    """How far labels are from what scale * (log ratio) predicts of them, in deviations, over ten groups of scores."""
    shift = shift_for(law, shape) if shift is None else shift
    noise = draw_many(law, shape, count, np.random.default_rng(4))
    noise[count // 2 :] += shift
    odds = scale * log_density_ratio(law, Outputs(noise, np.zeros(shape), shift))
    mixed = np.random.default_rng(5).permutation(count)  # equal scores must not stay sorted by label
    odds, truth = odds[mixed], mixed < count // 2
    expected = expit(odds)
    return [
        (truth[group] - expected[group]).sum() / math.sqrt((expected[group] * (1 - expected[group])).sum() + 1.0)
        for group in np.array_split(np.argsort(odds, kind="stable"), 10)
    ]


@pytest.mark.slow
@every_law
def test_density_ratio_is_calibrated_and_another_scale_is_not(law, shape):
    assert np.abs(calibration_scores(law, shape, 1.0)).max() < 6.0
    assert np.abs(calibration_scores(law, shape, 1.5)).max() > 6.0
    assert np.abs(calibration_scores(law, shape, 2 / 3)).max() > 6.0


def test_density_ratio_is_infinite_at_the_pole():
    outputs = Outputs(np.array([[1.0, 2.0], [1.0, 3.0]]), np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert log_density_ratio(ln.Radial(1, 2.0, 1.0), outputs).tolist() == [math.inf, -math.inf]
    assert np.isfinite(log_density_ratio(ln.Radial(2, 2.0, 1.0), outputs)).all()


@every_law
def test_worst_shift_has_the_whole_length_and_no_other_shift_is_worse(law, shape):
    size = 2.0
    worst = worst_shift(law, shape, size)
    assert worst.shape == shape
    assert distance(law, worst) == pytest.approx(size, rel=1e-6)

    def spread(shift):
        """Mean absolute log ratio: larger where the two are easier to tell apart."""
        noise = draw_many(law, shape, 4000, np.random.default_rng(7))
        return np.abs(log_density_ratio(law, Outputs(noise, np.zeros(shape), shift))).mean()

    other = np.abs(np.random.default_rng(8).normal(size=shape))
    other *= size / distance(law, other)
    if not law.integer:
        assert spread(other) <= spread(worst) * 1.02


@pytest.mark.parametrize("sensitivity", [2.0**0.5, 1.41421356, 1.0])
def test_whole_neighbours_where_the_sensitivity_allows_it(sensitivity):
    shift = worst_shift(ln.Radial(1, 2.0, 1.0), (10,), sensitivity)
    assert set(shift) == {0.0, 1.0}
    assert shift.sum() == round(sensitivity**2)
    assert set(worst_shift(ln.Radial(1, 2.0, 1.0), (10,), 1.3)) == {0.0, 1.3}
    assert worst_shift(ln.Radial(1, 2.0, 1.0), (3,), 2.0).tolist() == [2.0, 0.0, 0.0]


def test_distance_by_norm():
    shift = np.array([1.0, -2.0, 2.0])
    assert distance(ln.Laplace(1.0), shift) == 5.0
    assert distance(ln.Radial(3, 2.0, 1.0), shift) == 3.0
    assert distance(ln.GeneralizedGaussian(3.0, 1.0), shift) == pytest.approx(17 ** (1 / 3))
    assert distance(ln.CorrelatedGaussian(1.0, 1.0), shift) == math.inf
    assert distance(ln.CorrelatedGaussian(1.0, 1.0), -np.abs(shift)) == 2.0


def test_rounding_score_against_the_obvious_one():
    rng = np.random.default_rng(9)
    value, neighbour = np.array([3.0, -1.0, 0.0]), np.array([3.0, 0.0, 0.0])
    array = np.concatenate(
        [value + 0.4 * rng.standard_normal((200, 3)), neighbour + 0.4 * rng.standard_normal((200, 3))]
    )
    expected = [
        (np.array_equal(np.rint(row), value) - 1.0 * np.array_equal(np.rint(row), neighbour))
        * (1.0 - max(abs(entry - round(entry)) for entry in row))
        for row in array
    ]
    assert rounding(Outputs(array, value, neighbour)) == pytest.approx(expected)
    assert len(set(np.sign(expected))) == 3
    far = Outputs(array + 100.0, value, neighbour)
    assert not rounding(far).any()
