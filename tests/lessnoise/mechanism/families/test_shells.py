"""Shell densities: exact curve, losses, sampler, calibration, input."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import lessnoise as ln
from tests.helpers import shell_oracles as oracle

EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


FEW, MANY = st.integers(1, 12), st.integers(1, 40)


@st.composite
def shell_laws(draw, dimensions=FEW):
    """Random falling densities, some with equal heights and thin shells."""
    dimension = draw(dimensions)
    count = draw(st.integers(1, 7))
    widths = draw(st.lists(st.floats(0.01, 3.0), min_size=count, max_size=count))
    drops = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.5]), min_size=count, max_size=count))
    edges = np.append(0.0, np.cumsum(widths))
    mass = np.exp(-np.cumsum(drops)) * np.diff(edges**dimension)
    return ln.Shells(dimension, tuple(edges), tuple(mass / mass.sum()))


def noise_of(law, count, seed):
    mechanism = ln.Mechanism("test", law, (law.dimension,), 1.0)
    rng = np.random.default_rng(seed)
    return np.array([mechanism.noise(rng) for _ in range(count)])


@pytest.mark.slow
@EXAMPLES
@given(shell_laws(), st.floats(0.0, 6.0), st.floats(0.05, 4.0))
def test_curve_is_a_finite_sum_inside_its_bracket(law, epsilon, shift):
    found = ln.Mechanism("test", law, (law.dimension,), shift).delta(epsilon)
    truth = oracle.exact_delta(law.dimension, law.edges, law.probabilities, epsilon, shift)
    assert found.lower <= truth <= found.upper
    assert found.upper - found.lower <= 1e-9 * found.upper + 1e-14


@pytest.mark.parametrize("dimension", [60, 200])
def test_curve_in_high_dimension(dimension):
    edges = np.append(0.0, np.linspace(8.0, 14.0, 9))
    mass = np.diff((edges / edges[-1]) ** dimension) * np.exp(-1.5 * np.arange(9.0))
    law = ln.Shells(dimension, tuple(edges), tuple(mass / mass.sum()))
    for epsilon in (0.5, 1.5, 3.0):
        found = ln.Mechanism("test", law, (dimension,), 1.0).delta(epsilon)
        assert found.lower <= oracle.exact_delta(dimension, law.edges, law.probabilities, epsilon) <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "epsilon"), [(1, 0.8), (2, 0.5), (4, 1.2)])
def test_curve_by_sampling(dimension, epsilon):
    law = ln.Shells(dimension, (0.0, 1.0, 2.0, 3.5), ln_probabilities(dimension))
    mean, error = oracle.delta_monte_carlo(law, noise_of(law, 6_000, 1), epsilon)
    assert abs(mean - ln.Mechanism("t", law, (dimension,), 1.0).delta(epsilon).middle) < 5 * error


def ln_probabilities(dimension):
    mass = np.diff(np.array([0.0, 1.0, 2.0, 3.5]) ** dimension) * np.array([1.0, 0.4, 0.1])
    return tuple(mass / mass.sum())


@EXAMPLES
@given(shell_laws(), st.floats(0.0, 3.0))
def test_a_longer_shift_never_lowers_delta(law, epsilon):
    deltas = [ln.Mechanism("t", law, (law.dimension,), d).delta(epsilon) for d in (0.1, 0.3, 1.0, 2.0, 5.0)]
    for shorter, longer in itertools.pairwise(deltas):
        assert shorter.lower <= longer.upper


@EXAMPLES
@given(shell_laws(), st.floats(0.0, 3.0), st.floats(1e-3, 1e3))
def test_curve_depends_on_ratios_alone(law, epsilon, factor):
    first = ln.Mechanism("t", law, (law.dimension,), 0.7).delta(epsilon)
    second = ln.Mechanism("t", law.scaled(factor), (law.dimension,), 0.7 * factor).delta(epsilon)
    assert first.lower <= second.upper
    assert second.lower <= first.upper


def test_bounded_noise_never_gives_pure_privacy():
    mechanism = ln.shells(edges=[0, 1, 4], probabilities=[0.5, 0.5], sensitivity=1, shape=1)
    edge = 0.5 / 6  # the half of the outer shell's last unit, at any epsilon
    assert mechanism.delta(50.0).upper == pytest.approx(edge, rel=1e-9)
    assert mechanism.epsilon(0.0).upper == math.inf
    assert mechanism.epsilon(edge / 2).upper == math.inf


@EXAMPLES
@given(shell_laws(dimensions=MANY))
def test_moments_and_quantiles(law):
    mechanism = ln.Mechanism("t", law, (law.dimension,), 1.0)
    second = oracle.moment(law, 2.0)
    assert mechanism.expected_loss == pytest.approx(second, rel=1e-7)
    assert mechanism.loss_kurtosis == pytest.approx(oracle.moment(law, 8.0) / oracle.moment(law, 4.0) ** 2, rel=1e-6)
    for q in (0.01, 0.3, 0.5, 0.9, 0.999):
        assert oracle.radius_cdf(law, math.sqrt(mechanism.loss_quantile(q))) == pytest.approx(q, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("dimension", [1, 3, 30])
def test_sampler_has_the_law_and_no_other_scale(dimension, seeded):
    mass = np.diff(np.array([0.0, 1.0, 1.2, 3.5]) ** dimension) * np.array([1.0, 0.4, 0.1])
    law = ln.Shells(dimension, (0.0, 1.0, 1.2, 3.5), tuple(mass / mass.sum()))
    mechanism = ln.Mechanism("t", law, (dimension,), 1.0)
    rng = np.random.default_rng(5) if seeded else None
    noise = np.array([mechanism.noise(rng) for _ in range(4000)])
    radius = np.linalg.norm(noise, axis=1)
    cdf = np.vectorize(lambda r: oracle.radius_cdf(law, r))
    assert stats.kstest(radius, cdf).pvalue > 1e-9
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * radius, cdf).pvalue < 1e-30
    direction = (noise[:, 0] / np.where(radius > 0.0, radius, 1.0))[radius > 0.0]  # the grid has a zero
    expected = stats.beta(0.5 * (dimension - 1), 0.5 * (dimension - 1), loc=-1, scale=2) if dimension > 1 else None
    if expected is not None:
        assert stats.kstest(direction, expected.cdf).pvalue > 1e-9
    else:
        assert abs(np.sign(direction).mean()) < 6 / math.sqrt(len(direction))


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(shell_laws(), st.floats(0.1, 4.0), st.sampled_from([1e-1, 1e-3, 1e-6]), st.floats(0.1, 100.0))
def test_calibration_ends_at_the_least_factor(law, epsilon, delta, sensitivity):
    target = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "shape": law.dimension}
    mechanism = ln.shells(edges=law.edges, probabilities=law.probabilities, **target)
    assert mechanism.check().holds
    narrower = ln.Mechanism("t", mechanism.law.scaled(1 - 1e-6), mechanism.shape, sensitivity)
    assert narrower.delta(epsilon).lower > delta


def test_round_trip_and_release():
    mechanism = ln.shells(edges=[0, 1, 2], probabilities=[0.7, 0.3], sensitivity=1, shape=(2, 2), epsilon=1, delta=1e-3)
    assert ln.Mechanism.from_json(mechanism.to_json()) == mechanism
    release = mechanism.release(np.zeros((2, 2)), np.random.default_rng(0))
    assert release.value.shape == (2, 2)
    assert np.linalg.norm(release.value) <= mechanism.law.edges[-1] + release.certificate.grid
    assert json.loads(release.certificate.to_json())["mechanism"]["noise"]["kind"] == "shells"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"edges": [0.5, 1, 2]}, r"edges\[0\]=0.5"),
        ({"edges": [0, 2, 2]}, r"edges\[2\]=2 is not above"),
        ({"edges": [0, 1]}, "length=2 for 2"),
        ({"edges": [0, 1, math.inf]}, r"edges\[2\]=inf"),
        ({"edges": [0, 1, math.nan]}, r"edges\[2\]=nan"),
        ({"edges": 3.0}, "edges=3.0 is not a sequence"),
        ({"edges": [], "probabilities": []}, "length=0"),
        ({"probabilities": [0.5, -0.5]}, r"probabilities\[1\]=-0.5"),
        ({"probabilities": [0.5, 0.4]}, "sum to 0.9"),
        ({"probabilities": [0.1, 0.9]}, "shell 1 denser than shell 0"),
        ({"shape": 0}, "shape"),
        ({"sensitivity": -1.0}, "sensitivity=-1"),
        ({"epsilon": 1.0}, "epsilon=1.0 and delta=None"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta=1.0"),
    ],
)
def test_bad_input_is_one_sentence(changes, words):
    arguments = {"edges": [0, 1, 2], "probabilities": [0.7, 0.3], "sensitivity": 1.0, "shape": 1, **changes}
    with pytest.raises(ln.InvalidInput, match=words) as caught:
        ln.shells(**arguments)
    assert "\n" not in str(caught.value)


def test_shells_of_another_dimension_are_refused():
    with pytest.raises(ln.InvalidInput, match="made for M=2"):
        ln.Mechanism("t", ln.Shells(2, (0.0, 1.0), (1.0,)), (3,), 1.0)
