"""H_b: branching factors, inference, privacy and noise, each against an independent route.

Variances are compared at SIGMAS = 6.5 deviations (8e-11 a test), and must reject 2/3 and 3/2 of the true scale.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessnoise as ln
from lessnoise import noise as noise_engine
from lessnoise.mechanism import best_branching
from lessnoise.mechanism.counts.hierarchy import Hierarchy, _leaves, _node, height_of, leaf_variance
from lessnoise.mechanism.counts.inference import consistent_leaves, levels_of, pool, spread, sums_error
from lessnoise.mechanism.counts.laplace import repeated_laplace_delta
from lessnoise.mechanism.sampling import prepare_noise
from lessnoise.noise import Stream

SIGMAS = 6.5
RELATIONS = ("add/remove", "replace")


def query_matrix(sides, branching, height):
    """One row per node, from the top level to the leaves, over the leaves of the padded grid."""
    full = (branching**height,) * sides
    columns = []
    for index in np.ndindex(*full):
        leaves = np.zeros(full)
        leaves[index] = 1.0
        columns.append(np.concatenate([level.ravel() for level in levels_of(leaves, branching, height)]))
    return np.array(columns).T


# Branching.


@pytest.mark.parametrize(("cells", "best"), [(256, 16), (1024, 32), (4096, 16), (65536, 16)])
def test_best_branching_on_a_line(cells, best):
    assert best_branching(cells) == best


@pytest.mark.parametrize(("side", "best"), [(64, 8), (128, 12), (256, 7), (512, 8)])
def test_best_branching_on_a_map(side, best):
    assert best_branching((side, side)) == best == best_branching((side, 3))


@given(st.integers(3, 600), st.sampled_from(["laplace", "gaussian"]), st.booleans())
@settings(deadline=None, max_examples=60)
def test_best_branching_is_the_best_of_all(side, noise, on_a_map):
    power = 2 if noise == "laplace" else 1

    def error(b):
        h = height_of(side, b)
        return h**power * ((b - 1) * h - 2 / 3 * (b + 1)) if not on_a_map else b * h**power

    chosen = best_branching((side, side) if on_a_map else side, noise)
    assert error(chosen) == pytest.approx(min(error(b) for b in range(2, side + 1)), rel=1e-12)


def test_heights_are_counted_in_whole_numbers():
    assert [height_of(n, 5) for n in (2, 5, 6, 25, 26, 125, 126)] == [1, 1, 2, 2, 3, 3, 4]
    assert height_of(10**18, 10) == 18


# Inference.


@pytest.mark.parametrize(("leaves", "expected"), [((0.5, 0.5), (1 / 6, 1 / 6)), ((1.0, 0.0), (2 / 3, -1 / 3))])
def test_inference_of_known_cases(leaves, expected):
    found = consistent_leaves([np.zeros(1), np.array(leaves)], [np.ones(1), np.ones(2)], 2)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@given(st.sampled_from([(1, 2, 3), (1, 3, 2), (2, 2, 2), (1, 5, 1)]), st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None, max_examples=40)
def test_inference_is_weighted_least_squares(tree, seed, some_not_measured):
    sides, branching, height = tree
    rng = np.random.default_rng(seed)
    measured, variances = [], []
    for level in range(1, height + 1):
        shape = (branching**level,) * sides
        measured.append(rng.normal(size=shape))
        variance = rng.uniform(0.2, 5.0, size=shape)
        if some_not_measured and level < height:
            variance[rng.random(shape) < 0.4] = np.inf
        variances.append(variance)
    weights = 1.0 / np.sqrt(np.concatenate([variance.ravel() for variance in variances]))
    matrix = query_matrix(sides, branching, height) * weights[:, np.newaxis]
    wanted = np.linalg.lstsq(matrix, weights * np.concatenate([m.ravel() for m in measured]), rcond=None)[0]
    np.testing.assert_allclose(consistent_leaves(measured, variances, branching).ravel(), wanted, atol=1e-9)


def test_pool_and_spread_are_transposes():
    rng = np.random.default_rng(1)
    fine, coarse = rng.normal(size=(6, 6)), rng.normal(size=(2, 2))
    assert np.sum(pool(fine, 3) * coarse) == pytest.approx(np.sum(fine * spread(coarse, 3)))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_without_noise_nothing_changes(noise):
    mechanism = ln.Mechanism("tree", Hierarchy((7, 11), 2, noise, 1e-6, "add/remove"), (7, 11), 1.0)
    counts = np.arange(77.0).reshape(7, 11)
    np.testing.assert_allclose(mechanism.release(counts, np.random.default_rng(0)).value, counts, atol=1e-3)


# Size of the noise.


@pytest.mark.parametrize(("shape", "branching"), [((8,), 2), ((7,), 3), ((4, 3), 2), ((9, 9), 3), ((5,), 9)])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_leaf_variance_is_that_of_the_least_squares_fit(shape, branching, noise):
    law = Hierarchy(shape, branching, noise, 1.7, "add/remove")
    matrix = query_matrix(len(shape), branching, law.height)
    covariance = np.linalg.inv(matrix.T @ matrix) * 1.7**2 * (2.0 if noise == "laplace" else 1.0)
    np.testing.assert_allclose(np.diagonal(covariance), leaf_variance(law), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("shape", [(20,), (6, 5)])
@pytest.mark.parametrize("secure", [True, False])
def test_noise_has_its_variance(noise, shape, secure):
    law = Hierarchy(shape, 3, noise, 2.0, "add/remove")
    mechanism = ln.Mechanism("tree", law, shape, 1.0)
    rng = None if secure else np.random.default_rng(5)
    losses = np.array([np.sum(mechanism.noise(rng) ** 2) for _ in range(3000)])
    error = SIGMAS * losses.std() / math.sqrt(len(losses))
    assert abs(losses.mean() - mechanism.expected_loss) < error
    for factor in (2 / 3, 3 / 2):
        assert abs(losses.mean() - factor**2 * mechanism.expected_loss) > error


@pytest.mark.slow
def test_gaussian_leaves_have_the_covariance_of_the_fit():
    law = Hierarchy((4,), 2, "gaussian", 1.0, "add/remove")
    draws = np.array([ln.Mechanism("tree", law, (4,), 1.0).noise(np.random.default_rng(i)) for i in range(20000)])
    matrix = query_matrix(1, 2, 2)
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(matrix.T @ matrix), atol=0.05)


# Privacy.


@pytest.mark.parametrize(("shape", "branching"), [((8,), 2), ((6,), 3), ((4, 4), 2)])
def test_the_worst_neighbour_changes_every_level(shape, branching):
    law = Hierarchy(shape, branching, "laplace", 1.0, "add/remove")
    h = law.height
    cells = []
    for index in np.ndindex(*shape):
        leaves = np.zeros((branching**h,) * len(shape))
        leaves[index] = 1.0
        cells.append(np.concatenate([level.ravel() for level in levels_of(leaves, branching, h)]))
    assert {(np.abs(c).sum(), np.sum(c**2)) for c in cells} == {(h, h)}
    replaced = [a - b for a, b in itertools.combinations(cells, 2)]
    assert max(np.abs(c).sum() for c in replaced) == 2 * h
    assert max(np.sum(c**2) for c in replaced) == 2 * h


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shape", [89, (89, 89), (40, 17)])
def test_claims_hold_and_are_tight(shape, relation):
    pure = ln.hb(epsilon=0.5, shape=shape, neighbours=relation)
    assert pure.check().holds
    assert pure.epsilon(0.0).upper == pytest.approx(0.5, rel=1e-14)
    assert pure.delta(0.49).lower > 0.0
    records = 1.0 if relation == "add/remove" else 2.0
    assert pure.law.scale == pytest.approx(pure.law.height * records / 0.5)
    ours = ln.hb(epsilon=0.5, delta=1e-7, shape=shape, noise="gaussian", neighbours=relation)
    assert ours.check().holds
    assert ours.delta(0.5).lower > 0.999e-7
    one = ln.analytic_gaussian(epsilon=0.5, delta=1e-7, sensitivity=1, shape=1).standard_deviation
    assert ours.law.scale == pytest.approx(one * math.sqrt(ours.law.height * records), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shift", "repeats", "epsilon"), [(0.25, 2, 0.1), (0.5, 3, 0.7), (1.0, 4, 2.5), (0.1, 14, 0.4)]
)
def test_levels_of_laplace_noise_against_simulation_and_a_public_accountant(shift, repeats, epsilon):
    from dp_accounting.pld import privacy_loss_distribution as pld

    found = repeated_laplace_delta(shift, repeats, epsilon)
    assert found.relative_width < 1e-2
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(400_000, repeats))
    loss = (np.abs(noise - shift) - np.abs(noise)).sum(axis=1)
    gain = -np.expm1(np.minimum(epsilon - loss, 0.0))
    error = SIGMAS * gain.std() / math.sqrt(len(gain))
    assert found.lower - error < gain.mean() < found.upper + error
    public = pld.from_laplace_mechanism(1.0 / shift, value_discretization_interval=1e-4).self_compose(repeats)
    assert public.get_delta_for_epsilon(epsilon) == pytest.approx(found.upper, rel=5e-3)


@pytest.mark.slow
def test_an_attack_proves_part_of_the_privacy_loss_and_not_more():
    mechanism = ln.hb(epsilon=2.0, shape=4, branching=2)
    value, rng = np.zeros(4), np.random.default_rng(0)
    report = ln.audit(mechanism, value, np.array([1.0, 0, 0, 0]), samples=12_000, rng=rng, progress=False, workers=1)
    assert not report.refuted
    assert 0.7 < report.epsilon <= 2.0


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_worst_neighbour_of_a_replaced_record_is_one_moved_record(noise):
    delta = 0.0 if noise == "laplace" else 1e-2
    mechanism = ln.hb(epsilon=1.0, delta=delta, shape=(4, 4), branching=2, noise=noise, neighbours="replace")
    value = np.zeros((4, 4))
    shift = ln.worst_neighbour(mechanism, value)
    assert (shift.max(), shift.min(), np.abs(shift).sum()) == (1.0, -1.0, 2.0)
    report = ln.audit(mechanism, value, samples=6_000, rng=np.random.default_rng(1), progress=False, workers=1)
    assert not report.refuted
    with pytest.raises(ln.InvalidInput, match="beyond the mechanism's sensitivity"):
        ln.audit(mechanism, value, np.eye(1, 16).reshape(4, 4) * 2.0, samples=200, progress=False)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_stated_l1_sensitivity_covers_a_one_sided_change(noise):
    """All of the sensitivity in one cell under replace: worse than half taken away and half added."""
    delta = 0.0 if noise == "laplace" else 1e-6
    options = {"epsilon": 1.0, "delta": delta, "shape": 8, "branching": 2, "noise": noise, "l1_sensitivity": 2.0}
    stated = ln.hb(**options, neighbours="replace")
    joined = ln.hb(**options)
    assert stated.law.change == "any"
    assert stated.law.scale == joined.law.scale
    for epsilon in (0.1, 0.5, 0.9):
        assert stated.delta(epsilon) == joined.delta(epsilon)
    np.testing.assert_array_equal(ln.worst_neighbour(stated, np.zeros(8)), 2.0 * np.eye(8)[0])
    moved = ln.hb(**options, neighbours="replace", change="moved")
    assert moved == ln.hb(**{**options, "l1_sensitivity": None}, neighbours="replace")
    assert moved.law.change == "moved"
    assert moved.delta(0.5).upper < stated.delta(0.5).lower or noise == "gaussian"
    # The exact delta of a one-sided change at the noise for moved counts: beyond what is promised of those.
    one_sided = ln.Mechanism("tree", dataclasses.replace(moved.law, change="any"), (8,), 2.0, "replace")
    assert one_sided.delta(0.9).lower > moved.delta(0.9).upper
    if noise == "gaussian":
        assert moved.law.scale == pytest.approx(stated.law.scale / math.sqrt(2))
        assert one_sided.delta(1.0).lower > 100e-6


def test_descriptions_say_which_changes_they_cover():
    for mechanism in (
        ln.hb(epsilon=1, shape=8, neighbours="replace"),
        ln.hb(epsilon=1, shape=8, neighbours="replace", l1_sensitivity=2),
    ):
        assert ln.Mechanism.from_json(mechanism.to_json()) == mechanism
        stored = mechanism.to_dict()
        assert stored["noise"].pop("change") == mechanism.law.change
        assert ln.Mechanism.from_dict(stored).law.change == "any"  # of an older version: read on the safe side


# Real sums.


@pytest.mark.slow
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=6), st.integers(-60, 60))
@settings(deadline=None)
def test_sums_are_exact_or_within_their_error(integers, exponent):
    value = np.ldexp(np.array(integers, dtype=np.float64), exponent)
    error = sums_error(value, len(value), parts=4)
    for order in itertools.islice(itertools.permutations(value.tolist()), 24):
        for length in range(1, len(order) + 1):
            off = abs(Fraction(sum(order[:length])) - sum(map(Fraction, order[:length])))
            assert off <= Fraction(error)
            assert off == 0 or error > 0.0
    gcd = math.gcd(*integers)
    assert (error == 0.0) or sum(map(abs, integers)) // (gcd & -gcd) >= 2**51  # quarters would need a 54th digit


@pytest.mark.parametrize(("shape", "branching"), [((8,), 2), ((7,), 3), ((4, 3), 2), ((9, 9), 3)])
def test_every_node_is_the_sum_of_its_leaves(shape, branching):
    law = Hierarchy(shape, branching, "laplace", 1.0, "add/remove")
    leaves = _leaves(law, np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape))
    flat = np.concatenate([level.ravel() for level in levels_of(leaves, branching, law.height)])
    assert [_node(law, leaves, index) for index in range(law.nodes)] == flat.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("cell", [0.1, 1 / 3, 2.0**37 + 0.7])
def test_noise_is_added_to_real_sums(noise, cell):
    """Every decision in exact arithmetic, from the real counts of the nodes: the same release."""
    law = Hierarchy((16,), 2, noise, 3.0, "add/remove")
    value = np.full(16, cell) * np.arange(1, 17)
    density = noise_engine.laplace() if noise == "laplace" else noise_engine.normal()
    form = noise_engine.Independent(density, noise_engine.Real.exactly(3.0))
    numbers = [_node(law, value, index) for index in range(law.nodes)]
    behind = noise_engine.Behind(1e9, numbers.__getitem__)
    for seed in range(20):
        found = prepare_noise(law, value, Stream.of(np.random.default_rng(seed)))()
        near = np.array([float(number) for number in numbers])
        flat = noise_engine.add_noise(
            form, near, Stream.of(np.random.default_rng(seed)), behind=behind, margin=math.inf
        )
        levels = np.split(flat, np.cumsum([2, 4, 8]))
        np.testing.assert_array_equal(found, consistent_leaves(levels, [np.ones(len(x)) for x in levels], 2))


def test_one_record_more_moves_no_node_by_more_than_one():
    """Near 2^53 float sums over eight cells would move by 8."""
    law = Hierarchy((16,), 2, "laplace", 1.0, "add/remove")
    value = np.full(16, 2.0**53 - 1)
    other = value + np.eye(16)[3]
    moved = {_node(law, other, index) - _node(law, value, index) for index in range(law.nodes)}
    assert moved == {0, 1}
    sums = [levels_of(v, 2, 4)[0] for v in (value, other)]
    assert sums_error(value, 8) >= abs(sums[1] - sums[0]).max() > 1.0


# Use.


def test_round_trip_release_and_certificate():
    mechanism = ln.hb(epsilon=1, shape=(5, 9), neighbours="replace")
    assert ln.Mechanism.from_json(mechanism.to_json()) == mechanism
    release = mechanism.release(np.ones((5, 9)))
    assert release.value.shape == (5, 9)
    assert release.certificate.private
    assert release.certificate.claim_holds
    certificate = release.certificate
    assert certificate.exact.upper == 0.0
    assert certificate.guarantee == ln.Guarantee(1, math.nextafter(certificate.delta_numeric, 1.0), "replace")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": (2, 3, 4)}, "shape=(2, 3, 4)"),
        ({"shape": 1}, "shape=(1,)"),
        ({"shape": 8, "branching": 1}, "branching=1"),
        ({"shape": 8, "noise": "normal"}, "noise='normal'"),
        ({"shape": 8, "delta": 1e-6}, "delta=1e-06"),
        ({"shape": 8, "noise": "gaussian"}, "delta=0.0"),
        ({"shape": 8, "l1_sensitivity": -1}, "l1_sensitivity=-1"),
        ({"shape": 8, "epsilon": 0}, "epsilon=0"),
        ({"shape": 8, "neighbours": "near"}, "neighbours='near'"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ln.InvalidInput) as caught:
        ln.hb(**{"epsilon": 1.0, **arguments})
    assert words in str(caught.value)


def test_other_shapes_relations_and_unknown_sizes_are_refused():
    mechanism = ln.hb(epsilon=1, shape=8)
    for call in (
        lambda: ln.Mechanism("tree", mechanism.law, (9,), 1.0),
        lambda: ln.Mechanism("tree", mechanism.law, (8,), 1.0, "replace"),
        lambda: mechanism.loss_quantile(0.5),
        lambda: mechanism.loss_kurtosis,
        lambda: mechanism.release(np.ones(9)),
    ):
        with pytest.raises(ln.InvalidInput):
            call()
