"""Partitions: under add/remove the worst one counts, under replace the worst two, against independent computations."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import lessnoise as ln
from lessnoise.ledger import total
from lessnoise.ledger.spending import history

BOUNDED = {"sensitivity": 1, "shape": 3, "neighbours": "replace"}
GAUSSIAN = ln.analytic_gaussian(epsilon=1, delta=1e-6, **BOUNDED)
SMALLER = ln.analytic_gaussian(epsilon=0.9, delta=1e-6, **BOUNDED)
LAPLACE = ln.laplace(epsilon=0.8, **BOUNDED)
L2 = ln.l2_mechanism(epsilon=0.5, delta=1e-6, **BOUNDED)


def opened(folder, epsilon=10.0, neighbours="replace"):
    return ln.Ledger.open(folder / f"{neighbours[:3]}-{epsilon}", epsilon=epsilon, delta=1e-6, neighbours=neighbours)


def epsilon_of_gaussians(epsilons, delta):
    """From the closed form alone: each release gives its mu, their squares add up."""

    def excess(epsilon, mu):
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - delta

    mus = [brentq(lambda mu, epsilon=epsilon: excess(epsilon, mu), 1e-3, 10) for epsilon in epsilons]
    return brentq(lambda epsilon: excess(epsilon, math.hypot(*mus)), 1e-3, 50)


def test_a_replaced_individual_leaves_one_partition_and_enters_another(tmp_path):
    expected = epsilon_of_gaussians([1, 1], 1e-6)
    assert expected == pytest.approx(1.4547, abs=1e-4)
    ledger = opened(tmp_path)
    ledger.spend(GAUSSIAN, partition="north")
    assert ledger.spent() == GAUSSIAN.repeat(1).epsilon(1e-6)
    ledger.spend(GAUSSIAN, partition="south")
    assert ledger.spent().upper == pytest.approx(expected, rel=1e-4)
    assert ledger.spent() == GAUSSIAN.repeat(2).epsilon(1e-6)
    assert ledger.spent_delta().upper == GAUSSIAN.repeat(2).guarantee(10.0).delta  # the machine's share is in it
    assert ledger.spent_delta().lower == GAUSSIAN.repeat(2).delta(10.0).lower
    assert ledger.remaining() == 10.0 - ledger.spent().upper
    assert history(ledger)[-1].epsilon == ledger.spent().upper
    for region in ("east", "west"):  # two at a time, however many there are
        ledger.spend(GAUSSIAN, partition=region)
    assert ledger.spent() == GAUSSIAN.repeat(2).epsilon(1e-6)
    ledger.spend(SMALLER)
    assert ledger.spent().upper == pytest.approx(epsilon_of_gaussians([1, 1, 0.9], 1e-6), rel=1e-4)


@pytest.mark.parametrize("neighbours", ["replace", "add/remove"])
def test_the_second_partition_must_fit_with_the_first(tmp_path, neighbours):
    """A budget of 1.45 admits one region of (1, 1e-6) and not two; one of 1.46 admits any number of them."""
    release = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3, neighbours=neighbours)
    narrow, wide = (opened(tmp_path, epsilon, neighbours) for epsilon in (1.45, 1.46))
    for ledger in (narrow, wide):
        ledger.spend(release, partition="north")
    assert narrow.affords(release, partition="south") is (neighbours == "add/remove")
    if neighbours == "replace":
        with pytest.raises(ln.BudgetExceeded) as caught:
            narrow.spend(release, partition="south")
        assert narrow.count() == 1
        assert caught.value.requested > caught.value.remaining
    for number in range(5):
        wide.spend(release, partition=f"p{number}")
    assert wide.affords(release, partition="north") is (neighbours == "add/remove")
    assert wide.affords(release) is (neighbours == "add/remove")


def test_the_worst_two_are_not_those_of_the_largest_epsilons(tmp_path):
    """The Laplace release has the least epsilon of the three, and costs most beside a Gaussian one."""
    alone = [release.repeat(1).epsilon(1e-6).upper for release in (GAUSSIAN, SMALLER, LAPLACE)]
    assert alone == sorted(alone, reverse=True)
    ledger = opened(tmp_path)
    for name, release in [("a", GAUSSIAN), ("b", SMALLER), ("c", LAPLACE)]:
        ledger.spend(release, partition=name)
    worst = ln.compose(GAUSSIAN, LAPLACE).epsilon(1e-6)
    assert worst.lower > ln.compose(GAUSSIAN, SMALLER).epsilon(1e-6).upper
    assert ledger.spent() == worst


def test_the_relation_must_be_that_of_the_ledger(tmp_path):
    ledger = opened(tmp_path)
    other = ln.laplace(epsilon=0.1, sensitivity=1, shape=1)
    for ask in (ledger.spend, ledger.affords):
        with pytest.raises(ln.InvalidInput, match="neighbours='add/remove' differs from 'replace'"):
            ask(other)


# Any order of spends: the model is the definition, every two partitions (or one twice) with what concerns everybody.

SPENDS = st.tuples(st.sampled_from([GAUSSIAN, SMALLER, LAPLACE]), st.sampled_from([None, "north", "south", "east"]))


def allowed_by_definition(spends, epsilon):
    for two in itertools.combinations(("north", "south", "east"), 2):
        touching = [mechanism for mechanism, where in spends if where is None or where in two]
        if touching and ln.compose(*touching).delta(epsilon).upper > 1e-6:
            return False
    return True


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(spends=st.lists(SPENDS, max_size=8), epsilon=st.sampled_from([1.5, 2.0, 3.0]))
def test_any_order_keeps_the_budget(tmp_path_factory, spends, epsilon):
    ledger = opened(tmp_path_factory.mktemp("ledger"), epsilon)
    accepted = []
    for mechanism, partition in spends:
        expected = allowed_by_definition([*accepted, (mechanism, partition)], epsilon)
        assert ledger.affords(mechanism, partition=partition) is expected
        if expected:
            ledger.spend(mechanism, partition=partition)
            accepted.append((mechanism, partition))
    ledger.verify()


# What is left out is dominated.

KINDS = {1: ln.compose(GAUSSIAN), 2: ln.compose(SMALLER), 3: ln.compose(LAPLACE), 4: ln.compose(L2, LAPLACE),
         5: ln.laplace(epsilon=0.3, **BOUNDED).repeat(2)}  # fmt: skip
COUNTS = st.dictionaries(st.sampled_from(list(KINDS)), st.integers(1, 3), max_size=2)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(totals=st.dictionaries(st.sampled_from(["", "a", "b", "c", "d"]), COUNTS), together=st.sampled_from([1, 2]))
def test_the_worst_is_among_the_candidates(totals, together):
    common = totals.get("", {})
    others = [counts for name, counts in totals.items() if name]
    chosen = itertools.combinations(others, min(together, len(others)))
    everything = [counts for counts in (total.merged(common, *some) for some in chosen) if counts]
    expected = total.epsilon_spent(
        (total.composition_of(counts, KINDS.__getitem__) for counts in everything), 1e-6, 0.0
    )
    found = total.epsilon_spent(total.worst_compositions(totals, together, KINDS.__getitem__), 1e-6, 0.0)
    assert found.upper >= expected.lower
    assert found.upper <= expected.upper


@pytest.mark.slow
def test_thousands_of_partitions_have_few_candidates():
    """Each with noise of its own: Gaussians are ordered by mu, Laplace noise by its scale; the rest is not composed."""
    kinds = {}
    for number in range(1500):
        epsilon = 0.1 + number * 1e-4
        kinds[2 * number] = ln.compose(ln.analytic_gaussian(epsilon=epsilon, delta=1e-8, **BOUNDED))
        kinds[2 * number + 1] = ln.compose(ln.laplace(epsilon=epsilon, **BOUNDED))
    totals = {f"p{kind}": {kind: 1} for kind in kinds}
    largest = 2 * 1499
    for together, expected in [
        (1, [{largest: 1}, {largest + 1: 1}]),
        (2, [{largest: 1, largest - 2: 1}, {largest: 1, largest + 1: 1}, {largest - 1: 1, largest + 1: 1}]),
    ]:
        found = total.worst_candidates(totals, together, lambda kind: total.weight_of(kinds[kind]))
        assert sorted(found, key=sorted) == sorted(expected, key=sorted)
