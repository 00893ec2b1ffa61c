"""Quantiles of tables: values, cells from public numbers, intervals, groups, and what they cost."""

import itertools

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.mechanism import QuantileChoice
from lessnoise.table.chosen import (
    INTERVAL_CELLS,
    INTERVAL_SHARE,
    cells_for,
    cells_to_one,
    counted,
    counted_edges,
    is_chosen,
)

QUARTILES = (0.25, 0.5, 0.75)
AGES = np.random.default_rng(0).normal(45.0, 18.0, 3000).clip(0.0, 100.0).round()


def asked(shares=QUARTILES, bounds=(0, 120), bins=None, data=AGES, **options):
    return ln.Table({"x": data}, **options).aggregate(ln.quantiles("x", shares, bounds=bounds, bins=bins))


@pytest.mark.parametrize("bins", [None, 120])
def test_whole_numbers_come_out_exactly_where_noise_is_small(bins):
    ages = np.repeat(np.arange(20.0, 81.0), 49)  # the quartiles are 12 rows and more from the next age
    rows = asked(data=ages, bins=bins).release(epsilon=50, delta=1e-6).rows
    assert [row["value"] for row in rows] == np.quantile(ages, QUARTILES, method="inverted_cdf").tolist()
    for row in rows:
        assert 0.0 <= row["lower"] <= row["value"] <= row["upper"] <= 120.0


@pytest.mark.parametrize("bins", [64, 100, 5000])
def test_cells_that_the_caller_gives_are_kept_and_places_within_them_are_estimated(bins):
    data = np.linspace(0.0, 1.0, 4001)
    question = asked(bounds=(0.0, 1.0), bins=bins, data=data)
    assert question.query.measures[0].width == bins
    values = [row["value"] for row in question.release(epsilon=20, delta=1e-6).rows]
    # 50 deviations of the rank, and never a whole cell
    assert values == pytest.approx(QUARTILES, abs=50 * 3.6 / 20 / 4001 + 0.1 / bins)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(np.full(500, 37.0), [37.0] * 3), (np.full(500, 1e9), None), (np.full(500, -np.inf), [0.0] * 3)],
)
def test_a_column_of_one_value(data, expected):
    rows = asked(data=data).release(epsilon=5, delta=1e-6).rows
    values = [row["value"] for row in rows]
    if expected is None:  # clipped: in the last cell, which ends at the bound
        assert min(values) > 119.99
    else:
        assert values == expected


def test_a_table_without_rows_has_quantiles_somewhere_between_the_bounds():
    question = ln.Table({"x": np.array([]), "g": np.array([], dtype=int)}).group_by("g", keys=[1, 2])
    rows = question.aggregate(ln.quantiles("x", QUARTILES, bounds=(-1, 1))).release(epsilon=1, delta=1e-6).rows
    for row in rows:
        assert -1.0 <= row["lower"] <= row["value"] <= row["upper"] <= 1.0


@pytest.mark.parametrize(
    ("options", "sensitivity"),
    [({}, 1), ({"neighbours": "replace"}, 2), ({"unit": ln.Unit("u", max_rows=3), "neighbours": "replace"}, 6)],
)
def test_what_is_paid_is_what_was_asked_for(options, sensitivity):
    question = ln.Table({"x": AGES, "u": np.arange(3000)}, **options)
    plan = question.aggregate(ln.quantiles("x", QUARTILES, bounds=(0, 120))).plan(epsilon=1, delta=1e-6)
    (part,) = plan.parts
    law = part.choice.law
    assert isinstance(law, QuantileChoice)
    assert part.choice.sensitivity == sensitivity
    assert law.epsilon * sensitivity <= 1.0 - INTERVAL_SHARE
    assert sum(each.claim.epsilon for each in part.mechanisms) <= 1.0
    assert plan.composition.within(1.0, 1e-6)
    assert plan.rows()[0]["epsilon"] == pytest.approx(1.0)


def test_certificates_and_the_ledger_have_both_releases(tmp_path):
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=1.5, delta=1e-5)
    answer = asked().release(epsilon=1, delta=1e-6, ledger=ledger)
    assert [one.mechanism.law.kind for one in answer.certificates] == ["quantile-choice", "geometric"]
    assert answer.private
    assert answer.guarantee.epsilon == 1.0
    assert ledger.count() == 1
    for one in answer.certificates:
        assert ln.Certificate.from_dict(one.to_dict()) == one


def test_the_number_of_cells_follows_from_public_numbers():
    assert cells_for((0.5,), (0.0, 200000.0), 1) == 200000
    assert cells_for((0.5,), (0.0, 1e9), 1) == 1 << 18
    assert cells_for((0.5,), (-0.1, 0.1), 100) == 1 << 11
    assert cells_for((0.5,), (0.0, 100.0), 10**7) == 100
    many = tuple(i / 50 for i in range(1, 50))
    assert cells_for(many, (0.0, 1.0), 1) == 128
    assert not is_chosen(many, 128)
    for low, high in [(1e9, 1e9 + 1e-3), (1.0, 1.0 + 1e-15), (-1e30, 1e30), (0.0, 2.0**60)]:
        cells = ln.quantiles("x", [0.5], bounds=(low, high)).for_groups(1).measure.width
        assert 2 <= cells <= 1 << 18


def test_whole_numbers_are_edges_of_cells_where_there_are_enough():
    for bounds, bins, expected in [((0, 120), None, 2048), ((0, 120), 120, 1), ((0, 120), 100, 0), ((0, 0.5), None, 0)]:
        measure = ln.quantiles("x", [0.5], bounds=bounds, bins=bins).for_groups(1).measure
        assert cells_to_one(measure) == expected
        if expected:
            np.testing.assert_array_equal(measure.axis.cell_edges[::expected], np.arange(121.0))


def test_the_counted_cells_are_disjoint_and_hold_every_row():
    rng = np.random.default_rng(1)
    for size, cells in itertools.product((1, 2, 3, 7), (2, 40, 5000)):
        places = np.sort(rng.uniform(0.0, cells, (20, size)), axis=1)
        counts = rng.integers(0, 9, (20, cells)).astype(float)
        edges = counted_edges(places, cells)
        assert edges.shape == (20, INTERVAL_CELLS + 1)
        assert (np.diff(edges, axis=1) >= 0).all()
        assert (edges[:, 0] == 0).all()
        assert (edges[:, -1] == cells).all()
        found = counted(counts, edges)
        np.testing.assert_array_equal(found.sum(axis=1), counts.sum(axis=1))
        more = counts.copy()
        more[:, 1] += 1.0
        assert (np.abs(counted(more, edges) - found).sum(axis=1) == 1.0).all(), "one row changes one count by 1"


def test_many_groups_and_several_questions_share_one_choice():
    groups = np.arange(3000) % 50
    question = ln.Table({"x": AGES, "g": groups}).group_by("g", keys=list(range(50)))
    asked_for = ln.quantiles("x", [0.9], bounds=(0, 120)), ln.quantiles("x", [0.1, 0.5], bounds=(0, 120))
    answer = question.aggregate(*asked_for).release(epsilon=40, delta=1e-6)
    assert [one.mechanism.law.kind for one in answer.certificates] == ["quantile-choice", "geometric"]
    assert answer.certificates[0].mechanism.law.probabilities == (0.1, 0.5, 0.9)
    assert len(answer.rows) == 150
    off = []
    for row in answer.rows:
        share = float(row["statistic"].split()[0])
        off.append(row["value"] - np.quantile(AGES[groups == row["g"]], share, method="inverted_cdf"))
    assert np.mean(np.abs(off)) < 2.0


def test_private_keys_have_chosen_quantiles():
    data = {"x": np.tile(AGES, 2), "g": np.repeat(["a", "b"], 3000)}
    answer = ln.Table(data).group_by("g").aggregate(ln.quantiles("x", QUARTILES, bounds=(0, 120)))
    released = answer.release(epsilon=4, delta=1e-6)
    assert [one.mechanism.law.kind for one in released.certificates].count("quantile-choice") == 1
    truth = np.quantile(AGES, QUARTILES)
    assert [row["g"] for row in released.rows] == ["a"] * 3 + ["b"] * 3
    for i, row in enumerate(released.rows):
        assert abs(row["value"] - truth[i % 3]) < 8.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["smooth", "whole", "lumpy"])
def test_intervals_hold_the_quantiles(kind):
    """Groups of the same rows: as many releases of one question."""
    rng, copies = np.random.default_rng(3), 300
    values = {
        "smooth": rng.normal(50.0, 15.0, 800).clip(0.0, 100.0),
        "whole": rng.normal(50.0, 15.0, 800).clip(0.0, 100.0).round(),
        "lumpy": np.where(rng.random(800) < 0.3, 20.0, rng.uniform(0.0, 100.0, 800)),
    }[kind]
    data = {"x": np.tile(values, copies), "g": np.repeat(np.arange(copies), 800)}
    question = ln.Table(data).group_by("g", keys=list(range(copies)))
    rows = question.aggregate(ln.quantiles("x", QUARTILES, bounds=(0, 100))).release(epsilon=1, delta=1e-6).rows
    for share in QUARTILES:
        truth = np.quantile(values, share, method="inverted_cdf")
        own = [row for row in rows if row["statistic"].startswith(f"{share} ")]
        hits = np.mean([row["lower"] <= truth <= row["upper"] for row in own])
        assert hits >= 0.87, share  # six deviations of 300 below 0.95
        assert np.median([row["upper"] - row["lower"] for row in own]) < 25.0
