"""Streams: what is released, what it guarantees, and what is refused."""

from __future__ import annotations

import copy
import math
import os
import pickle

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.mechanism import gaussian_delta
from lessnoise.streams.buffers import profile

LAWS = [
    pytest.param({"strategy": "tree"}, id="geometric"),
    pytest.param({"strategy": "tree", "changes": ln.changes.ball(1.0)}, id="laplace"),
    pytest.param({"strategy": "buffers", "delta": 1e-6}, id="gaussian"),
    pytest.param({"strategy": "banded", "delta": 1e-6}, id="banded"),
    pytest.param({"strategy": "square-root", "delta": 1e-6}, id="square-root"),
]


def seeded(seed=0):
    return np.random.default_rng(seed)


def pushed(stream, values):
    return np.array([stream.push(value) for value in values])


@pytest.mark.parametrize("options", LAWS)
def test_totals_are_the_true_ones_plus_noise_that_does_not_depend_on_them(options):
    values = seeded(5).integers(0, 1000, 50)
    nothing = pushed(ln.Stream(periods=50, epsilon=1, rng=seeded(), **options), np.zeros(50, dtype=int))
    something = pushed(ln.Stream(periods=50, epsilon=1, rng=seeded(), **options), values)
    stream = ln.Stream(periods=50, epsilon=1, **options)
    assert np.allclose(something - nothing, np.cumsum(values), atol=0.2 * math.sqrt(stream.query_error))
    if stream.plan.is_integer:
        assert np.allclose(something - nothing, np.cumsum(values))


@pytest.mark.slow
@pytest.mark.parametrize("options", LAWS)
def test_errors_have_the_stated_variance(options):
    """20,000 entries, independent: a deviation of 2% is beyond 6 standard deviations of the estimate, or less."""
    stream = ln.Stream(periods=30, epsilon=1, shape=20_000, rng=seeded(), **options)
    if "changes" in options:  # l1: the entries of an l2 ball would cost sqrt(M)
        ball = ln.changes.ball(1.0, norm=1)
        stream = ln.Stream(periods=30, epsilon=1, shape=20_000, rng=seeded(), **{**options, "changes": ball})
    found = pushed(stream, np.zeros((30, 20_000), dtype=int))
    variances = stream.plan.variances()
    spread = (found**2).mean(axis=1) / variances
    # var(z^2)/20000 is at most 5/20000 for Laplace: 9 standard deviations are 14%; two-sided
    assert np.abs(spread - 1.0).max() < 0.14
    window = stream.window(7, 23)
    assert abs(float((window**2).mean()) / stream.window_error(7, 23) ** 2 - 1.0) < 0.14
    assert math.isclose(stream.query_error, variances.mean())


def test_measurements_lie_on_the_grid_of_the_noise():
    """The increments of what is found are the measurements, which are multiples of a power of two."""
    stream = ln.Stream(periods=20, epsilon=1, delta=1e-6, strategy="buffers", rng=seeded())
    draws = []
    for period in range(1, 21):
        quanta = seeded(period).integers(0, 2**40, 3)
        draws.append((stream.plan.law(0, period), stream._prepared(0, quanta, period)()))
    for deviation, noisy in draws:
        step = 2.0 ** (math.floor(math.log2(deviation)) - 8)
        assert np.all(noisy / step == np.round(noisy / step))
    whole = ln.Stream(periods=20, epsilon=1, strategy="tree", rng=seeded())
    assert float(whole.push(3)).is_integer()


def test_gaussian_guarantee_is_that_of_the_longest_column():
    stream = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy="buffers", changes=ln.changes.ball(2.0), shape=3)
    assert stream.guarantee.delta <= 1e-6
    assert stream.guarantee.delta > 0.99e-6
    strategy, noise = stream.plan.strategy, stream.plan.noise
    decays, gains = (np.array(each) / 2**31 for each in (strategy.decays, strategy.gains))
    coefficients = np.array([1.0] + [gains @ decays ** (k - 1) for k in range(1, 40)])
    found = profile(strategy)
    sigma = noise.deviations[0]
    lengths = [
        found.scales[s] * np.linalg.norm(coefficients[: 40 - s] * found.weights[s:]) for s in range(40)
    ]  # each of the measurements in its own deviations, times sigma
    deltas = [gaussian_delta(2.0 * length / sigma, 1.0) for length in lengths]
    assert max(delta.upper for delta in deltas) <= stream.delta(1.0).upper
    assert max(delta.lower for delta in deltas) >= 0.99 * stream.delta(1.0).upper
    assert [stream.plan.law(0, t) for t in (1, 40)] == pytest.approx([sigma / found.weights[t - 1] for t in (1, 40)])


@pytest.mark.parametrize("changes", [ln.changes.counts(), ln.changes.ball(1.0, norm=1)])
def test_pure_guarantee_is_the_sum_over_the_levels(changes):
    stream = ln.Stream(periods=300, epsilon=1, strategy="tree", changes=changes, participations=2)
    pure = stream.composition.epsilon(0.0)
    assert 0.999 < pure.lower <= pure.upper <= 1.0
    assert stream.delta(1.0).upper == 0.0
    assert 0.0 < stream.delta(0.5).lower <= stream.delta(0.5).upper < 1.0
    rates = [getattr(law, "rate", None) or 1.0 / law.scale for law in stream.plan.noise.laws]
    assert 2.0 * sum(rates) == pytest.approx(1.0, rel=1e-3)
    assert len(stream.composition.parts) == len(stream.plan.strategy.shares)


def test_delta_of_a_geometric_tree_by_brute_force():
    """One row counts in one node a level: the loss is the sum of independent ones, each +a, or -a."""
    stream = ln.Stream(periods=64, epsilon=1.5, strategy="tree")
    rates = [law.rate for law in stream.plan.noise.laws]
    assert len(rates) == 2
    epsilon, total = 0.4, 0.0
    for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        loss = sum(sign * rate for sign, rate in zip(signs, rates, strict=True))
        mass = math.prod(1.0 / (1.0 + math.exp(-sign * rate)) for sign, rate in zip(signs, rates, strict=True))
        total += mass * max(1.0 - math.exp(epsilon - loss), 0.0)
    found = stream.delta(epsilon)
    assert found.lower * (1 - 1e-6) <= total <= found.upper * (1 + 1e-6)


def test_more_participations_and_larger_changes_need_as_much_more_noise():
    once = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy="buffers")
    thrice = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy="buffers", participations=3)
    assert thrice.query_error == pytest.approx(9.0 * once.query_error, rel=1e-6)
    rows = ln.Stream(periods=40, epsilon=1, delta=1e-6, strategy="buffers", changes=ln.changes.counts(5))
    assert rows.query_error == pytest.approx(25.0 * once.query_error, rel=1e-6)


@pytest.mark.slow
def test_the_better_law_is_chosen():
    few = ln.Stream(periods=16, epsilon=1, delta=1e-6)
    assert few.plan.strategy.kind == "tree"
    assert ln.Stream(periods=16, epsilon=1, delta=1e-2).plan.strategy.kind == "banded"
    assert ln.Stream(periods=300, epsilon=1, delta=1e-6).plan.strategy.kind == "square-root"
    wide = ln.Stream(periods=300, epsilon=1, delta=1e-6, shape=1 << 15)  # too much to keep
    assert wide.plan.strategy.kind == "buffers"
    names = ("tree", "buffers", "banded", "square-root")
    errors = [ln.Stream(periods=16, epsilon=1, delta=1e-6, strategy=name).query_error for name in names]
    assert few.query_error == min(errors)
    assert ln.Stream(periods=1, epsilon=1).query_error == pytest.approx(2 * math.e**-1 / (1 - math.e**-1) ** 2)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 10.0, 200.0])
@pytest.mark.parametrize(
    "changes", [ln.changes.counts(), ln.changes.ball(0.5), ln.changes.counts(neighbours="replace")]
)
def test_every_epsilon_is_kept(epsilon, changes):
    for delta in (0.0, 1e-5):
        stream = ln.Stream(periods=50, epsilon=epsilon, delta=delta, changes=changes)
        assert stream.delta(epsilon).upper <= delta
        assert stream.guarantee.delta <= max(delta, 1e-20 * math.exp(min(epsilon, 50.0)))
        stream.push(3)


def test_any_window_is_a_difference_of_totals():
    stream = ln.Stream(periods=10, epsilon=1, shape=(2, 3), delta=1e-3)
    totals = pushed(stream, np.ones((6, 2, 3), dtype=int))
    assert np.array_equal(stream.totals, totals)
    assert np.array_equal(stream.window(1), totals[-1])
    assert np.array_equal(stream.window(3, 5), totals[4] - totals[1])
    assert np.array_equal(stream.total, totals[-1])
    assert stream.window_error(1) == pytest.approx(stream.standard_error())
    forgetful = ln.Stream(periods=10, epsilon=1, keep=False)
    forgetful.push(1)
    assert forgetful.window(1) == forgetful.total
    forgetful.push(1)
    with pytest.raises(ln.InvalidInput, match="were not kept"):
        forgetful.window(2)


def test_windows_of_a_tree_come_from_the_nodes_within_them():
    """Of zeros: days 1 .. 10 are a block, and day 10 by itself is next to its own measurement, not total - total."""
    stream = ln.Stream(periods=64, epsilon=1, strategy="tree", shape=5000, rng=seeded())
    size = stream.plan.strategy.sizes[1]
    totals = pushed(stream, np.zeros((2 * size, 5000), dtype=int))
    for last in (size, 2 * size):
        found, difference = stream.window(last, last), totals[last - 1] - totals[last - 2]
        variance = stream.window_error(last, last) ** 2
        # var(z^2)/5000 is at most 5/5000: 10 standard deviations are 32%
        assert abs(float((found**2).mean()) / variance - 1.0) < 0.32
        assert variance < 0.3 * float((difference**2).mean())
    assert np.array_equal(stream.window(2, size - 1), totals[size - 2] - totals[0])
    assert np.array_equal(stream.totals, totals)
    kept = ln.Stream(periods=64, epsilon=1, strategy="tree", keep=False)
    pushed(kept, [1] * size)
    with pytest.raises(ln.InvalidInput, match="were not kept"):
        kept.window(size)


def test_the_last_period_may_come_again():
    stream = ln.Stream(periods=3, epsilon=1)
    first = stream.push(5, period=1)
    assert stream.push(5, period=1) == first
    second = stream.push(7, period=2)
    assert stream.push(7.0, period=2) == second
    for value, period, words in [(8, 2, "another value"), (5, 1, "is over"), (5, 4, "not the next one")]:
        with pytest.raises(ln.InvalidInput, match=words):
            stream.push(value, period=period)
    stream.push(1)
    with pytest.raises(ln.InvalidInput, match="beyond periods=3"):
        stream.push(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"periods": 0}, "periods=0 must be at least 1"),
        ({"periods": 10**6}, "exceeds 100000"),
        ({"epsilon": math.nan}, "not finite"),
        ({"delta": 1.0}, "below 1"),
        ({"delta": 1e-40, "epsilon": 30.0, "strategy": "buffers"}, "too small"),
        ({"strategy": "buffers"}, "above 0"),
        ({"strategy": "banded"}, "above 0"),
        ({"strategy": "square-root", "delta": 1e-6, "periods": 20_000}, "exceeds 16384"),
        ({"strategy": "trees"}, "perhaps 'tree'"),
        ({"participations": 11}, "exceeds periods=10"),
        ({"changes": "counts"}, "changes="),
        ({"shape": 0}, "shape=0"),
        ({"rng": 3}, "not a NumPy generator"),
        ({"partition": "north"}, "without a ledger"),
        ({"ledger": "x"}, "not a ledger"),
        ({"path": 3}, "not a path"),
        ({"path": "a\0b"}, "not a name for a folder"),
        ({"path": "/nowhere/at/all"}, "does not exist"),
    ],
)
def test_bad_plans_are_refused(options, words):
    with pytest.raises(ln.InvalidInput, match=words):
        ln.Stream(**{"periods": 10, "epsilon": 1, **options})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "not finite"),
        (math.inf, "not finite"),
        ([1, 2], "shape"),
        ("three", "not numeric"),
        (2.5, "not a whole number"),
        (1e30, "exceeds"),
        (2**53 + 1, "beyond 2"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(value, words):
    stream, other = (ln.Stream(periods=10, epsilon=1, strategy="tree", rng=seeded()) for _ in range(2))
    assert stream.push(1) == other.push(1)
    with pytest.raises(ln.InvalidInput, match=words):
        stream.push(value)
    assert stream.period == 1
    assert stream.push(1) == other.push(1)


def test_totals_beyond_the_arithmetic_are_refused():
    stream = ln.Stream(periods=10, epsilon=1, delta=1e-6, strategy="buffers")
    most = 2.0**60 * stream.plan.noise.quantum
    with pytest.raises(ln.InvalidInput, match="too large"):
        pushed(stream, [most] * 10)
    assert stream.period < 10


def test_large_values_take_the_exact_path_and_lose_nothing():
    """Beyond 2^53 quanta floats are not whole quanta any more: the engine asks for the real numbers."""
    stream = ln.Stream(periods=30, epsilon=1, delta=1e-6, strategy="buffers", rng=seeded())
    small = ln.Stream(periods=30, epsilon=1, delta=1e-6, strategy="buffers", rng=seeded())
    large = 2.0**57 * stream.plan.noise.quantum
    for _ in range(30):
        difference = stream.push(large) - small.push(0)
    assert difference == pytest.approx(30 * large, rel=1e-12)


def test_the_noise_of_a_period_depends_on_key_and_period_alone():
    stream = ln.Stream(periods=10, epsilon=1, delta=1e-6, strategy="buffers")
    zeros = np.zeros(4, dtype=np.int64)
    first, again, later = (stream._prepared(0, zeros, period)() for period in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, later)
    assert stream._noise_key(0, 12) != stream._noise_key(2, 1)


def test_a_stream_is_not_copied_and_a_child_does_not_push():
    stream = ln.Stream(periods=10, epsilon=1)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never be used twice"):
            way(stream)
    stream._process = os.getpid() + 1  # as after a fork
    with pytest.raises(ln.InvalidInput, match="forked"):
        stream.push(1)


def test_the_ledger_is_paid_once_before_anything_is_drawn(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "l", epsilon=1, delta=1e-6)
    stream = ln.Stream(periods=40, epsilon=0.9, delta=1e-7, ledger=ledger, path=tmp_path / "s")
    assert stream.receipt.id == 1
    pushed(stream, [1, 2, 3])
    assert ledger.count() == 1
    assert ledger.spent().upper <= 0.9
    with pytest.raises(ln.BudgetExceeded):
        ln.Stream(periods=40, epsilon=0.9, delta=1e-7, ledger=ledger, path=tmp_path / "t")
    assert not (tmp_path / "t").exists()
    with pytest.raises(ln.InvalidInput, match="do not go together"):
        ln.Stream(periods=40, epsilon=0.1, ledger=ledger, rng=seeded())
    replace = ln.changes.counts(neighbours="replace")
    with pytest.raises(ln.InvalidInput, match="neighbours="):
        ln.Stream(periods=40, epsilon=0.1, ledger=ledger, changes=replace)
