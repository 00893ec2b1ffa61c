"""DAWA: partitions, queries, order of the cells and privacy, each against an independent route.

Frequencies are compared at SIGMAS = 6.5 deviations (8e-11 a test), Kolmogorov-Smirnov tests at P_FLOOR = 1e-9; both
must reject 2/3 and 3/2 of the true scale.
"""

import itertools
import json
import math
from decimal import Context
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise import Request
from lessnoise import noise as noise_engine
from lessnoise.cli import app
from lessnoise.mechanism.catalogue import build_all, find_mechanism
from lessnoise.mechanism.counts import partition
from lessnoise.mechanism.counts.dawa import Dawa, _from_line, _to_line, buckets, hilbert_order, ranges_workload
from lessnoise.mechanism.counts.inference import Answers, asked, fitted_totals, greedy_weights, levels_of
from lessnoise.mechanism.counts.laplace import all_singles_probability, published_delta_lower
from lessnoise.mechanism.sampling import prepare_noise
from lessnoise.noise import Stream

SIGMAS = 6.5
P_FLOOR = 1e-9

small_counts = st.lists(st.integers(0, 30), min_size=1, max_size=12)


def deviation(cells):
    cells = np.asarray(cells, dtype=np.float64)
    return float(np.abs(cells - cells.mean()).sum())


def source(seed=0):
    return Stream.of(None if seed is None else np.random.default_rng(seed)).claim().sequence()


# Stage 1, the costs.


@given(small_counts, st.integers(1, 3))
def test_sliding_deviations(counts, level):
    length = 2**level
    if length > len(counts):
        return
    wanted = [deviation(counts[start : start + length]) for start in range(len(counts) - length + 1)]
    found = partition.Windows(np.array(counts, dtype=np.float64)).deviations(length)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@given(st.lists(st.integers(0, 30), min_size=8, max_size=8), st.integers(0, 7), st.integers(1, 3))
def test_one_record_changes_a_deviation_by_at_most_the_stated_amount(counts, cell, level):
    more = list(counts)
    more[cell] += 1
    change = partition.deviations(np.array(more, float), 2**level) - partition.deviations(
        np.array(counts, float), 2**level
    )
    assert np.abs(change).max() <= partition.deviation_sensitivity(2**level) + 1e-9


def test_the_stated_change_is_attained():
    before, after = np.zeros(8), np.eye(8)[3]
    assert partition.deviations(after, 8)[0] - partition.deviations(before, 8)[0] == pytest.approx(1.75)


# Stage 1, ours.


def prunings(low, high):
    """Every partition that the binary tree over [low, high) allows, with its prior probability."""
    if high - low == 1:
        yield ((low, high),), 1.0
        return
    yield ((low, high),), 1.0 - partition.SPLIT
    middle = (low + high) // 2
    for (left, p), (right, q) in itertools.product(list(prunings(low, middle)), list(prunings(middle, high))):
        yield left + right, partition.SPLIT * p * q


def exact_partition_law(counts, epsilon, bucket_cost):
    """Probabilities of all prunings by enumeration."""
    rate = epsilon / (2.0 * (2.0 - 2.0 / len(counts)))
    weights = {
        tuple(low for low, _ in parts): prior
        * math.exp(-rate * sum(deviation(counts[low:high]) + bucket_cost for low, high in parts))
        for parts, prior in prunings(0, len(counts))
    }
    total = sum(weights.values())
    return {starts: weight / total for starts, weight in weights.items()}


@pytest.mark.slow
@pytest.mark.parametrize("secure", [True, False])
def test_partitions_are_drawn_from_the_exponential_mechanism(secure):
    counts, cost, draws = np.array([3.0, 0.0, 5.0, 6.0]), 2.0, 6000
    stream = source(None if secure else 1)
    found = {}
    for _ in range(draws):
        starts = tuple(partition.sample_partition(counts, 3.0, cost, stream).tolist())
        found[starts] = found.get(starts, 0) + 1

    def p_value(epsilon):
        law = exact_partition_law(counts, epsilon, cost)
        assert set(found) <= set(law)
        return stats.chisquare([found.get(s, 0) for s in law], [draws * p for p in law.values()]).pvalue

    assert p_value(3.0) > P_FLOOR
    assert p_value(2.0) < P_FLOOR
    assert p_value(4.5) < P_FLOOR


@given(
    st.lists(st.integers(0, 12), min_size=8, max_size=8),
    st.integers(0, 7),
    st.floats(0.05, 3.0),
    st.floats(0.2, 20.0),
)
@settings(deadline=None, max_examples=60)
def test_no_partition_tells_neighbours_apart_by_more_than_epsilon(counts, cell, epsilon, cost):
    more = list(counts)
    more[cell] += 1
    first, second = exact_partition_law(counts, epsilon, cost), exact_partition_law(more, epsilon, cost)
    assert max(abs(math.log(first[starts] / second[starts])) for starts in first) <= epsilon * (1 + 1e-9)


@given(st.lists(st.integers(0, 40), min_size=8, max_size=8), st.floats(0.01, 20.0), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_floats_and_exact_numbers_draw_the_same_partition(counts, epsilon, seed):
    line = np.array(counts, dtype=np.float64)
    fast, slow = (partition.sample_partition(line, epsilon, 2.0, source(seed), margin) for margin in (0.0, 2.0))
    np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("counts", [[0, 3, 3, 0], [2**36 + 5, 2**36, 2**36 + 1, 7], [5, 5, 5, 5]])
def test_the_probability_to_split_lies_within_its_float_ends_and_the_exact_one_is_right(counts):
    """Both ways against mpmath, also for counts whose costs floats hold with an error of 1e-5."""
    mp = pytest.importorskip("mpmath")
    tree = partition._Prunings(np.array(counts, float), 1.3, 0.7)
    context = Context(prec=80, Emin=-(10**17), Emax=10**17, traps=[])
    with mp.workdps(90):
        rate = mp.mpf(1.3) / 3
        leaf = mp.exp(-rate * mp.mpf(0.7))
        pairs = []
        for pair in (counts[:2], counts[2:]):
            keep = mp.exp(-rate * (abs(pair[0] - pair[1]) + mp.mpf(0.7))) / 4
            pairs.append((keep, 3 * leaf**2 / 4))
        mean = mp.mpf(sum(counts)) / 4
        keep = mp.exp(-rate * (sum(abs(c - mean) for c in counts) + mp.mpf(0.7))) / 4
        halves = 3 * sum(pairs[0]) * sum(pairs[1]) / 4
        wanted = [[b / (a + b) for a, b in pairs], [halves / (halves + keep)]]
        for level, nodes in enumerate(wanted, start=1):
            for node, p in enumerate(nodes):
                low, high = (float(end[node]) for end in tree.chances()[level - 1])
                assert low <= p <= high
                assert high - low < 1e-4
                assert abs(mp.mpf(str(tree._chance(level, node, context))) / p - 1) < mp.mpf(10) ** -60


@pytest.mark.parametrize("digit", [0, 1])
def test_a_random_number_that_begins_like_the_probability_is_lengthened(digit):
    """The first 64 digits are those of the probability itself: only further ones decide."""
    tree = partition._Prunings(np.array([3.0, 0.0]), 1.0, 2.0)
    context = Context(prec=80, Emin=-(10**17), Emax=10**17, traps=[])
    chance = Fraction(tree._chance(1, 0, context))

    class Known:
        def uniform(self, level):
            digits = 64 if level == 1 else 128
            bits = math.floor(chance * 2**digits)
            if level > 1:
                bits += 2 * digit - 1
            return Fraction(bits, 2**digits), Fraction(bits + 1, 2**digits)

    assert tree.splits(1, 0, Known()) is (digit == 0)


def test_extreme_counts_and_scales_are_drawn():
    wild = np.tile([0.0, 1e9], 512)
    assert len(partition.sample_partition(wild, 1.0, 2.0, source())) == 1024
    flat = partition.sample_partition(np.full(1024, 7.0), 50.0, 1e3, source())
    assert len(flat) == 1


# Stage 1, as published.


def compositions(n):
    """All ways to cut n cells into intervals of 1, 2, 4, ... cells."""
    if n == 0:
        yield ()
    for length in (1, 2, 4, 8):
        if length <= n:
            for rest in compositions(n - length):
                yield (*rest, length)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=9), st.floats(0.5, 20.0))
@settings(deadline=None, max_examples=60)
def test_the_cheapest_partition_is_the_cheapest_of_all(counts, cost):
    def price(lengths):
        ends = np.cumsum(lengths)
        return sum(deviation(counts[e - n : e]) + cost for n, e in zip(lengths, ends, strict=True))

    starts = partition.cheapest_partition(np.array(counts, float), 1.0, cost, 0.0, source())
    lengths = np.diff(np.append(starts, len(counts)))
    assert price(lengths) == pytest.approx(min(price(c) for c in compositions(len(counts))))


def test_known_partitions():
    counts = np.array([3.0, 0.0, 20.0, 20.0])
    assert partition.cheapest_partition(counts, 1.0, 1.0, 0.0, source()).tolist() == [0, 1, 2]
    assert partition.cheapest_partition(counts, 1.0, 10.0, 0.0, source()).tolist() == [0, 2]
    assert partition.cheapest_partition(counts, 1.0, 40.0, 0.0, source()).tolist() == [0]
    assert partition.cheapest_partition(np.full(4, 5.0), 1.0, 1.0, 0.0, source()).tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "least"), [(1.0, 1.6), (2.0, 1.05)])
def test_published_noise_tells_neighbours_apart_by_more_than_it_claims(factor, least):
    """The closed form of the counterexample, and the algorithm itself, at epsilon1 = 1."""
    pair = ((3, 0, 2, 6), (3, 1, 2, 6)) if factor == 1.0 else ((3, 0, 3, 5), (3, 1, 3, 5))
    exact = [all_singles_probability(counts, 1.0, 2.0, 4, factor) for counts in pair]
    assert math.log(exact[0] / exact[1]) > least
    stream, draws = source(7), 6_000
    for counts, p in zip(pair, exact, strict=True):
        line = np.array(counts, float)
        hits = sum(len(partition.cheapest_partition(line, 1.0, 2.0, factor, stream)) == 4 for _ in range(draws))
        assert abs(hits / draws - p) < SIGMAS * math.sqrt(p * (1 - p) / draws)


def test_the_verdicts():
    assert ln.dawa(epsilon=0.5, shape=(89, 89)).check().holds
    assert ln.dawa(epsilon=0.5, shape=1000, neighbours="replace").check().holds
    for noise in ("dpcomp", "doubled"):
        verdict = ln.dawa(epsilon=1.5, ratio=2 / 3, shape=4, noise=noise).check()
        assert verdict.refuted
        assert verdict.exact.upper < 1.0
    assert ln.dawa(epsilon=1.5, ratio=2 / 3, shape=(64, 64), noise="dpcomp").check().refuted
    assert not ln.dawa(epsilon=1.5, shape=3, noise="dpcomp").check().refuted


def test_the_lower_bound_is_the_divergence_on_its_output():
    one, other = (all_singles_probability((3, x, 2, 6), 1.0, 2.0, 4, 1.0) for x in (0, 1))
    # Integral over the released first cell y: (p f(y) - e^eps q f(y - 1))+, f being Laplace of scale 2.
    grid = np.linspace(-60.0, 60.0, 2_000_001)
    f, g = np.exp(-np.abs(grid) / 2) / 4, np.exp(-np.abs(grid - 1) / 2) / 4
    wanted = np.sum(np.maximum(one * f - math.exp(1.5) * other * g, 0.0)) * (grid[1] - grid[0])
    assert published_delta_lower(1.0, 0.5, 4, 1.0, 1.5) == pytest.approx(wanted, rel=1e-4)


def all_cells_differ(outputs):
    """Single cells have noise of their own, and cells of one bucket are equal: then a small second cell tells."""
    differ = (np.abs(np.diff(np.sort(outputs, axis=1), axis=1)) > 1e-9).all(axis=1)
    return np.where(differ, 100.0 - outputs[:, 1], -1e3)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "refuted", "samples"), [("dpcomp", True, 12_000), ("safe", False, 4_000)])
def test_an_attack_on_the_whole_release(noise, refuted, samples):
    mechanism = ln.dawa(epsilon=1.5, ratio=2 / 3, shape=4, noise=noise)

    report = ln.audit(
        mechanism,
        np.array([3.0, 0.0, 2.0, 6.0]),
        np.array([3.0, 1.0, 2.0, 6.0]),
        attacks=[all_cells_differ],
        samples=samples,
        rng=np.random.default_rng(3),
        progress=False,
    )
    assert report.refuted is refuted


# The curve of the default.


def test_the_curve_is_that_of_randomised_response_and_laplace_noise():
    mechanism = ln.dawa(epsilon=1.0, ratio=0.4, shape=16)
    bracket = mechanism.delta(0.3)
    p = math.exp(0.4) / (1 + math.exp(0.4))
    grid = np.linspace(-80.0, 80.0, 3_200_001)
    f, g = np.exp(-np.abs(grid)) / 2, np.exp(-np.abs(grid - 0.6)) / 2
    step = grid[1] - grid[0]
    wanted = sum(np.sum(np.maximum(a * f - math.exp(0.3) * b * g, 0.0)) * step for a, b in ((p, 1 - p), (1 - p, p)))
    assert bracket.upper == pytest.approx(wanted, rel=1e-5)
    assert bracket.lower == 0.0
    assert mechanism.epsilon(0.0).upper <= 1.0


# Stage 2.


def tree_matrix(weights):
    size = len(weights[-1])
    rows = []
    for level, weight in enumerate(weights):
        span = size >> level
        for node, w in enumerate(weight):
            row = np.zeros(size)
            row[node * span : (node + 1) * span] = w
            rows.append(row)
    return np.array(rows)


def workload_error(weights, gram):
    matrix = tree_matrix(weights)
    return np.trace(gram @ np.linalg.inv(matrix.T @ matrix))


@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_weights_of_a_path_sum_to_one(height, seed):
    size = 2**height
    queries = np.random.default_rng(seed).normal(size=(5, size))
    for workload in (queries.T @ queries, np.diag(np.sum(queries**2, axis=0))):
        weights = greedy_weights(workload)
        np.testing.assert_allclose(np.abs(tree_matrix(weights)).sum(axis=0), 1.0, rtol=1e-12)


def test_greedy_choices_are_the_best_for_two_buckets():
    rng = np.random.default_rng(4)
    for _ in range(20):
        queries = rng.normal(size=(3, 2))
        gram = queries.T @ queries
        found = workload_error(greedy_weights(gram), gram)
        others = [workload_error([np.array([1 - p]), np.full(2, p)], gram) for p in np.arange(1, 101) / 100]
        assert found == pytest.approx(min(others), rel=1e-9)


def test_ranges_profit_from_totals_and_cells_do_not():
    n = 256
    place = np.arange(n)
    gram = (np.minimum.outer(place, place) + 1.0) * (n - np.maximum.outer(place, place))
    identity = [np.zeros(n >> k) for k in range(8, 0, -1)] + [np.ones(n)]
    even = [np.full(2**level, 1 / 9) for level in range(9)]
    found = workload_error(greedy_weights(gram), gram)
    assert found < 0.85 * np.trace(gram)
    assert found < 0.85 * workload_error(even, gram)
    assert [w.tolist() for w in greedy_weights(np.diag(place + 1.0))] == [w.tolist() for w in identity]


def test_fitted_totals_are_weighted_least_squares():
    rng = np.random.default_rng(8)
    totals = rng.poisson(20, 6).astype(float)
    queries = rng.normal(size=(9, 8))
    queries[:, 6:] = 0.0
    weights = greedy_weights(queries.T @ queries)
    masks = asked(weights, 6)
    noise = rng.laplace(size=sum(int(m.sum()) for m in masks))
    rows = tree_matrix(weights)[np.concatenate(masks)][:, :6]
    exact = np.concatenate(
        [(w * level)[m] for w, level, m in zip(weights, levels_of(np.append(totals, [0, 0]), 2, 4), masks, strict=True)]
    )
    wanted = np.linalg.lstsq(rows, exact + noise, rcond=None)[0]
    queries = Answers(totals, weights)
    np.testing.assert_array_equal(queries.values, exact)
    assert [w * sum(totals[a:b]) for w, (a, b) in zip(queries.weights, queries.ends, strict=True)] == exact.tolist()
    np.testing.assert_allclose(fitted_totals(exact + noise, weights, 6), wanted, rtol=1e-9)


def test_the_workload_of_ranges_counts_them():
    law = Dawa((6,), 0.5, 0.5, "safe", "ranges")
    starts, lengths = np.array([0, 2, 3, 6]), np.array([2, 1, 3, 2])
    real = np.array([1.0] * 6 + [0.0] * 2)
    gram = np.zeros((4, 4))
    for low, high in itertools.combinations(range(7), 2):
        query = np.array([(low <= cell < high) for cell in range(8)], dtype=float) * real
        reduced = np.add.reduceat(query, starts) / lengths
        gram += np.outer(reduced, reduced)
    np.testing.assert_allclose(ranges_workload(law, starts, lengths), gram)


# Order of the cells.


@pytest.mark.parametrize("side", [1, 2, 4, 16, 64])
def test_the_hilbert_curve_visits_every_cell_in_steps_of_one(side):
    x, y = hilbert_order(side)
    assert len(set(zip(x.tolist(), y.tolist(), strict=True))) == side * side
    assert (np.abs(np.diff(x)) + np.abs(np.diff(y)) == 1).all()


@pytest.mark.parametrize("shape", [(5,), (8,), (3, 7), (8, 8), (1, 9)])
def test_maps_become_lines_and_back(shape):
    law = Dawa(shape, 0.5, 0.5, "safe", "cells")
    value = np.arange(1.0, 1.0 + math.prod(shape)).reshape(shape)
    line = _to_line(law, value)
    assert len(line) == law.cells
    assert line.sum() == value.sum()
    np.testing.assert_array_equal(_from_line(law, line), value)


# The whole release.


@pytest.mark.parametrize("noise", ["safe", "dpcomp", "doubled"])
@pytest.mark.parametrize("shape", [(37,), (12, 9)])
def test_with_a_huge_epsilon_the_counts_come_back(noise, shape):
    counts = np.random.default_rng(0).poisson(5, shape).astype(float)
    mechanism = ln.Mechanism("dawa", Dawa(shape, 1e7, 1e7, noise, "cells"), shape, 1.0)
    np.testing.assert_allclose(mechanism.release(counts, np.random.default_rng(1)).value, counts, atol=1e-4)


@pytest.mark.parametrize("secure", [True, False])
def test_single_cells_have_laplace_noise_of_the_second_stage(secure):
    counts = np.tile([0.0, 1e9], 4096)
    mechanism = ln.dawa(epsilon=1.0, shape=8192, ratio=0.2)
    noise = mechanism.release(counts, None if secure else np.random.default_rng(3)).value - counts
    for factor, right in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        p = stats.kstest(noise, stats.laplace(scale=factor / 0.8).cdf, method="asymp").pvalue
        assert bool(p > P_FLOOR) is right


def test_ranges_workload_serves_ranges_better_than_cells():
    counts = np.random.default_rng(2).poisson(np.repeat([3, 80, 10, 200], 32)).astype(float)
    errors = {}
    for workload in ("cells", "ranges"):
        mechanism = ln.dawa(epsilon=0.2, shape=128, workload=workload)
        rng = np.random.default_rng(6)
        errors[workload] = np.mean(
            [np.sum(np.cumsum(mechanism.release(counts, rng).value - counts) ** 2) for _ in range(40)]
        )
    assert errors["ranges"] < errors["cells"]


def test_round_trip_certificate_and_privacy_mark():
    mechanism = ln.dawa(epsilon=1, shape=(6, 5), neighbours="replace")
    assert ln.Mechanism.from_json(mechanism.to_json()) == mechanism
    release = mechanism.release(np.ones((6, 5)))
    assert release.certificate.private
    certificate = release.certificate
    assert certificate.exact.upper == 0.0
    assert certificate.guarantee == ln.Guarantee(1, math.nextafter(certificate.delta_numeric, 1.0), "replace")
    assert not mechanism.release(np.ones((6, 5)), np.random.default_rng(0)).certificate.private
    with pytest.warns(ln.ClaimWarning, match="does not hold"):
        ln.dawa(epsilon=1.5, shape=(4, 4), noise="dpcomp").release(np.ones((4, 4)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": (2, 3, 4)}, "shape=(2, 3, 4)"),
        ({"shape": 1}, "shape=(1,)"),
        ({"ratio": 1.0}, "ratio=1.0"),
        ({"noise": "none"}, "noise='none'"),
        ({"workload": "all"}, "workload='all'"),
        ({"workload": "ranges", "shape": (4, 4)}, "shape=(4, 4)"),
        ({"l1_sensitivity": 0}, "l1_sensitivity=0"),
        ({"epsilon": math.nan}, "epsilon=nan"),
    ],
)
def test_bad_input_is_named(arguments, words):
    with pytest.raises(ln.InvalidInput) as caught:
        ln.dawa(**{"epsilon": 1.0, "shape": 8, **arguments})
    assert words in str(caught.value)


def test_what_depends_on_the_data_is_refused_without_them():
    mechanism = ln.dawa(epsilon=1, shape=8)
    for call in (
        lambda: mechanism.noise(),
        lambda: mechanism.expected_loss,
        lambda: mechanism.loss_quantile(0.5),
        lambda: mechanism.release(np.array([1.0, np.nan] * 4)),
    ):
        with pytest.raises(ln.InvalidInput):
            call()


@pytest.mark.parametrize("noise", ["safe", "dpcomp"])
@pytest.mark.parametrize("workload", ["cells", "ranges"])
def test_counts_beyond_the_grid_are_refused_before_anything_is_paid(noise, workload):
    law = ln.dawa(epsilon=1, shape=64, noise=noise, workload=workload).law
    for value in (np.full(64, 2.0**60), np.full(64, 2.0**900)):
        with pytest.raises(ln.InvalidInput, match="value has a total of"):
            prepare_noise(law, value, Stream.secure())
    for value in (np.full(64, 2.0**36 + 0.1), np.full(64, 1e-300), np.full(64, -1 / 3)):
        assert prepare_noise(law, value, Stream.secure())().shape == (64,)


@pytest.mark.parametrize("cell", [0.1, 1 / 3, 2.0**30 + 0.7])
def test_deviations_are_within_their_error_and_exact_on_demand(cell):
    counts = cell * np.arange(1.0, 17.0) ** 2
    error, blocks_error = (Fraction(partition.deviations_error(counts, longest)) for longest in (16, 1))
    assert error > blocks_error > 0
    for level in range(1, 5):
        for start, found in enumerate(partition.Windows(counts).deviations(2**level).tolist()):
            window = [Fraction(c) for c in counts[start : start + 2**level].tolist()]
            wanted = sum(abs(c - sum(window) / len(window)) for c in window)
            assert partition.exact_deviation(counts[start : start + 2**level]) == wanted
            assert abs(Fraction(found) - wanted) <= error
        for node, found in enumerate(partition.deviations(counts, 2**level).tolist()):
            exact = partition.exact_deviation(counts[node << level : (node + 1) << level])
            assert abs(Fraction(found) - exact) <= blocks_error


@pytest.mark.parametrize("workload", ["cells", "ranges"])
@pytest.mark.parametrize("noise", ["safe", "dpcomp"])
def test_the_release_is_that_of_real_numbers(monkeypatch, noise, workload):
    """With every doubt raised, so that all is decided in exact arithmetic, nothing changes."""
    law = Dawa((16,), 0.5, 0.5, noise, workload)
    value = np.random.default_rng(0).poisson(5, 16) / 3.0 + np.repeat([0.0, 1e3], 8)
    seeds = range(6)
    found = [prepare_noise(law, value, Stream.of(np.random.default_rng(seed)))() for seed in seeds]
    original, sampled = noise_engine.add_noise, partition.sample_partition
    monkeypatch.setattr(noise_engine, "add_noise", lambda *args, **kw: original(*args, **kw, margin=math.inf))
    monkeypatch.setattr(partition, "sample_partition", lambda *args: sampled(*args, margin=2.0))
    exact = [prepare_noise(law, value, Stream.of(np.random.default_rng(seed)))() for seed in seeds]
    np.testing.assert_array_equal(found, exact)


def test_buckets_follow_the_data():
    law = ln.dawa(epsilon=4.0, shape=256).law
    line = np.repeat([0.0, 500.0, 3.0, 90.0], 64)
    assert {0, 64, 128, 192} <= set(buckets(law, line, source(0)).tolist())


# By name, with H_b.

REQUEST = {"epsilon": 0.5, "delta": 1e-7, "sensitivity": 2**0.5, "shape": (9, 9), "neighbours": "replace"}


@pytest.mark.parametrize("name", ["hb", "hb-gaussian", "dawa", "dawa-dpcomp"])
def test_the_catalogue_builds_them_for_histograms_only(name):
    built = find_mechanism(name).build(Request(**REQUEST, l1_sensitivity=2.0, counts=True))
    assert built.name == name
    assert built.check().holds is (name != "dawa-dpcomp")
    assert built.claim.neighbours is ln.Neighbours.REPLACE
    with pytest.raises(ln.InvalidInput, match="counts=False"):
        find_mechanism(name).build(Request(**REQUEST, l1_sensitivity=2.0))
    # Without an l1 sensitivity the amount that one individual adds is not known: never assume one record.
    with pytest.raises(ln.InvalidInput, match="l1_sensitivity=None"):
        find_mechanism(name).build(Request(**REQUEST, counts=True))


@pytest.mark.slow
def test_comparisons_list_them_for_histograms():
    names = [built.name for built in build_all(Request(**REQUEST, l1_sensitivity=2.0, counts=True))]
    assert {"hb", "hb-gaussian", "dawa"} <= set(names)
    assert not {"hb", "dawa"} & {built.name for built in build_all(Request(**REQUEST, l1_sensitivity=2.0))}


@pytest.mark.parametrize("name", ["hb", "dawa"])
def test_on_the_command_line(tmp_path, name):
    np.save(tmp_path / "in.npy", np.arange(81.0).reshape(9, 9))
    options = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7", "--counts", "--l1-sensitivity", "1"]
    paths = [str(tmp_path / "in.npy"), str(tmp_path / "out.npy")]
    answer = CliRunner().invoke(app, ["release", *paths, "--mechanism", name, *options])
    assert answer.exit_code == 0, answer.output
    assert "(0.5, " in answer.output
    assert "e-3" in answer.output  # delta: what the cipher adds, and nothing else
    assert np.load(paths[1]).shape == (9, 9)
    answer = CliRunner().invoke(app, ["check", name, "--shape", "9x9", *options, "--json"])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["holds"] is True


def test_the_pure_epsilon_is_bracketed():
    found = ln.dawa(epsilon=0.5, ratio=0.25, shape=16).epsilon(0.0)
    assert found.lower == pytest.approx(0.375)
    assert found.upper == pytest.approx(0.5)
    assert found.upper <= 0.5
