"""Strategy and noise chosen together: errors as small as asked, privacy as computed, bounds below both."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.errors import InvalidInput
from lessnoise.mechanism import GeneralizedGaussian, Laplace, Mechanism, gaussian_scale

W = ln.workload
TARGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (W.prefixes(64), 28.3 * 1.01),
        (W.ranges(64), 30.8 * 1.01),
        pytest.param(W.prefixes(256), 54.3 * 1.01, marks=pytest.mark.slow),
        pytest.param(W.ranges(256), 65.1 * 1.01, marks=pytest.mark.slow),
        (W.prefixes(1024), 92.4 * 1.01),
        (W.ranges(1024), 122.5 * 1.01),
        (W.identity(20), 1.84110),
        (W.total(20), 1.84110),
    ],
)
def test_the_error_is_as_small_as_the_best_known(workload, most):
    m = ln.workload_mechanism(workload, **TARGET)
    assert m.query_error <= most
    assert m.check().holds
    assert ln.loss_lower_bound(workload=workload, **TARGET) <= m.query_error


@pytest.mark.parametrize(
    ("workload", "gain"), [(W.marginals([4] * 10, order=2), 2.06), (W.marginals([2] * 10, order=3), 9.1)]
)
def test_marginals_reach_the_best_gaussian(workload, gain):
    m = ln.workload_mechanism(workload, **TARGET)
    tables = len(workload.parts)
    alone = gaussian_scale(1.0, 1e-6) ** 2 * tables  # the same Gaussian noise in every table
    assert alone / m.query_error >= 0.999 * gain
    assert m.query_error <= ln.loss_lower_bound(workload=workload, noise="gaussian", **TARGET) * (1 + 1e-6)


@pytest.mark.parametrize(
    "target",
    [
        {"epsilon": 1.0, "delta": 0.05},
        {"epsilon": 1.0, "delta": 1e-6, "releases": 30},
    ],
)
def test_it_is_never_above_the_best_gaussian(target):
    releases = target.get("releases", 1)
    for workload in (W.prefixes(24), W.prefixes(9) * W.prefixes(6)):
        m = ln.workload_mechanism(workload, **target)
        goal = {name: target[name] for name in ("epsilon", "delta")}
        best = releases * ln.loss_lower_bound(workload=workload, noise="gaussian", **goal)
        assert m.query_error <= best * (1 + 2e-4)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("neighbours", ["add/remove", "replace"])
def test_the_promise_is_kept_at_every_epsilon(epsilon, neighbours):
    changes = ln.changes.counts(neighbours=neighbours)
    m = ln.workload_mechanism(W.prefixes(24), epsilon=epsilon, delta=1e-6, changes=changes)
    assert m.guarantee(epsilon).delta <= 1e-6
    assert m.neighbours.value == neighbours
    assert m.claim.epsilon == epsilon
    assert Mechanism.from_json(m.to_json()) == m


def test_several_releases_keep_the_target_together():
    for releases, workload in ((3, W.prefixes(16)), (40, W.prefixes(16)), (6, W.identity(16))):
        m = ln.workload_mechanism(workload, releases=releases, **TARGET)
        assert m.design.releases == releases
        together = m.repeat(releases)
        assert together.delta(1.0).upper <= 1e-6
        one = ln.workload_mechanism(workload, **TARGET)
        assert one.query_error * releases <= m.query_error * (1 + 1e-9) or releases >= 40


def test_users_with_several_rows_scale_the_noise():
    one = ln.workload_mechanism(W.prefixes(24), **TARGET)
    three = ln.workload_mechanism(W.prefixes(24), changes=ln.changes.counts(3), **TARGET)
    amounts = ln.workload_mechanism(W.prefixes(24), changes=ln.changes.ball(3.0, norm=1), **TARGET)
    assert three.query_error == pytest.approx(9 * one.query_error, rel=1e-6)
    assert amounts.query_error == pytest.approx(9 * one.query_error, rel=1e-6)


def test_optimality_is_error_over_bound():
    m = ln.workload_mechanism(W.prefixes(16), **TARGET)
    assert m.optimality == pytest.approx(m.query_error / ln.loss_lower_bound(workload=W.prefixes(16), **TARGET))
    assert ln.workload_mechanism(W.identity(16), **TARGET).optimality == pytest.approx(1.0, abs=1e-6)


def test_the_design_lists_what_was_compared_best_first():
    m = ln.workload_mechanism(W.prefixes(64), **TARGET)
    errors = [error for _, error in m.design.compared]
    assert errors == sorted(errors)
    assert errors[0] == pytest.approx(m.query_error)
    words = " ".join(words for words, _ in m.design.compared)
    assert "Gaussian" in words
    assert "every cell" in words
    assert m.design.compared[0][0] == m.design.choice


def test_answers_are_consistent_and_as_exact_as_said():
    workload = W.prefixes(32)
    m = ln.workload_mechanism(workload, **TARGET)
    truth = np.arange(32)
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(1500):
        table = m.release(truth, rng).value
        errors.append(np.square(workload.answers(table) - workload.answers(truth)).mean())
    spread = np.std(errors) / math.sqrt(len(errors))
    assert abs(np.mean(errors) - m.query_error) <= 6 * spread


def test_products_and_sums_of_workloads():
    both = W.prefixes(10) * W.identity(4) + W.total(10, 4)
    m = ln.workload_mechanism(both, **TARGET)
    assert m.release(np.ones((10, 4))).value.shape == (10, 4)
    assert ln.loss_lower_bound(workload=both, **TARGET) <= m.query_error
    weighed = ln.workload_mechanism(3.0 * W.prefixes(10), **TARGET)
    assert weighed.query_error == pytest.approx(9 * ln.workload_mechanism(W.prefixes(10), **TARGET).query_error)


def test_any_matrix_of_questions():
    rng = np.random.default_rng(1)
    workload = W.matrix(rng.normal(size=(12, 9)))
    m = ln.workload_mechanism(workload, **TARGET)
    low = ln.loss_lower_bound(workload=workload, **TARGET)
    assert low <= m.query_error <= 30 * low


def test_a_million_cells_are_no_matrix():
    workload = W.marginals([2] * 20, order=2)
    m = ln.workload_mechanism(workload, **TARGET)
    assert m.query_error <= ln.loss_lower_bound(workload=workload, noise="gaussian", **TARGET) * (1 + 1e-6)
    value = m.release(np.zeros((2,) * 20)).value
    assert value.shape == (2,) * 20


@pytest.mark.parametrize("law", [Laplace, GeneralizedGaussian])
def test_both_kinds_of_noise_are_chosen_somewhere(law):
    found = ln.workload_mechanism(W.prefixes(32), **TARGET) if law is Laplace else None
    found = found or ln.workload_mechanism(W.prefixes(32), epsilon=1.0, delta=0.1)
    assert isinstance(found.law.noise, law)


def test_lower_bounds_of_a_table_and_of_an_array():
    assert ln.loss_lower_bound(workload=W.identity(5), **TARGET) == pytest.approx(1.8411, rel=1e-4)
    assert ln.loss_lower_bound(sensitivity=1, shape=1, **TARGET) >= 1.8411  # for every shift up to 1, not that of 1
    for arguments in (
        {},
        {"sensitivity": 1},
        {"workload": W.identity(2), "shape": 2},
        {"shape": 2, "noise": "gaussian"},
    ):
        with pytest.raises(InvalidInput):
            ln.loss_lower_bound(**TARGET, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"workload": "prefixes"},
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"delta": 0},
        {"delta": 1},
        {"releases": 0},
        {"releases": 1.5},
        {"changes": 3},
        {"changes": ln.changes.ball(1.0)},
        {"changes": ln.changes.box(1.0)},
        {"neighbours": "remove"},
        {"changes": ln.changes.counts(neighbours="replace"), "neighbours": "add/remove"},
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments):
    given = {"workload": W.prefixes(4), **TARGET, **arguments}
    with pytest.raises(InvalidInput, match="="):
        ln.workload_mechanism(given.pop("workload"), **given)
