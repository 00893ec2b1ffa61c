"""Mechanisms against sets of changes: curves against brute force over every change, JSON, certificates, ledgers."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import changes as sets
from lessnoise.mechanism import DiscretePower, GeneralizedGaussian, Geometric, Laplace, Radial, changes_words
from tests.lessnoise.changes.test_sets import every_change


def weights(law, reach):
    k = np.arange(-reach, reach + 1.0)
    if isinstance(law, DiscretePower):
        p = np.exp(-((np.abs(k) / law.scale) ** law.p))
    else:
        p = np.exp(-law.rate * np.abs(k))
        if law.reach is not None:
            p[np.abs(k) > law.reach] = 0.0
            p *= (1.0 - 2.0 * law.last) / p.sum()
            p[np.abs(k) == law.reach + 1] = law.last
    return p / p.sum()


def brute_force(law, change, epsilon, reach):
    """delta of one change, by the sum over all outputs."""
    single = weights(law, reach)
    here = there = np.ones(())
    for move in change:
        wide = np.pad(single, 6)
        here, there = np.multiply.outer(here, wide), np.multiply.outer(there, np.roll(wide, move))
    return float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())


SETS = [
    (sets.counts(), (1, None, False)),
    (sets.counts(neighbours="replace"), (1, None, True)),
    (sets.counts(3, per_cell=2), (3, 2, False)),
    (sets.counts(2, per_cell=1, neighbours="replace"), (2, 1, True)),
]


@pytest.mark.parametrize(("changes", "made"), SETS, ids=str)
@pytest.mark.parametrize("law", [Geometric(0.6), Geometric(0.7, 1e-3), DiscretePower(1.5, 1.3)], ids=str)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_curve_is_that_of_the_worst_change(law, changes, made, dimension):
    mechanism = ln.Mechanism("any", law, (dimension,), 1.0, changes.relation)
    largest = changes.majorant(dimension)
    if (isinstance(law, DiscretePower) or law.tail) and changes.dominant(dimension) is None:
        with pytest.raises(ln.InvalidInput, match="is not a set for which"):
            mechanism.against(changes)
        return
    if isinstance(law, Geometric) and law.tail and largest.sizes[0][0] > 1.0:
        with pytest.raises(ln.InvalidInput, match="is not a set for which"):
            mechanism.against(changes)
        return
    mechanism = mechanism.against(changes)
    for epsilon in (0.45, 0.9):
        found = mechanism.delta(epsilon)
        worst = max(
            brute_force(law, change, epsilon, 28 if dimension == 3 else 40) for change in every_change(*made, dimension)
        )
        assert worst <= found.upper + 1e-7
        assert worst >= found.lower - 1e-7


def laplace_delta(change, epsilon, scale=1.0):
    """Of several entries, by sums over a fine grid of each privacy loss."""
    x = np.arange(-40.0, 40.0, 0.01) + 0.005
    p = np.exp(-np.abs(x)) * 0.005
    losses, mass = np.zeros(1), np.ones(1)
    for move in change:
        loss = np.round((np.abs(x + move / scale) - np.abs(x)) / 1e-3).astype(int)
        values, places = np.unique(loss, return_inverse=True)
        one = np.bincount(places, p)
        losses, mass = np.add.outer(losses, values * 1e-3).ravel(), np.multiply.outer(mass, one).ravel()
        kept, places = np.unique(np.round(losses, 3), return_inverse=True)
        losses, mass = kept, np.bincount(places, mass)
    beyond = losses > epsilon
    return float(mass[beyond] @ -np.expm1(epsilon - losses[beyond]))


@pytest.mark.slow
def test_laplace_noise_hides_concentrated_changes_worst():
    """What `worst_of` rests on: spreading a change over entries never raises delta."""
    for epsilon in (0.05, 0.4, 0.8):
        one, two, three = (laplace_delta(change, epsilon) for change in ((1.2,), (0.8, 0.4), (0.4, 0.4, 0.4)))
        assert one + 1e-3 >= two
        assert two + 1e-3 >= three
        mechanism = ln.Mechanism("l", Laplace(1.0), (3,), 0.8, "add/remove")
        found = mechanism.against(sets.listed([[0.8, 0.4, 0.0], [0.4, 0.4, 0.4]])).delta(epsilon)
        assert found.lower - 2e-3 <= two <= found.upper + 2e-3


def test_one_entry_of_independent_noise_is_hidden_as_a_single_number():
    law = GeneralizedGaussian(1.5, 3.0)
    many = ln.Mechanism("g", law, (50,), 1.0).against(sets.counts())
    alone = ln.Mechanism("g", law, (1,), 1.0)
    assert many.delta(0.3) == alone.delta(0.3)
    assert many.sensitivity == 1.0


def test_isotropic_noise_sees_the_length_alone():
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=math.sqrt(20), shape=100)
    capped = mechanism.against(sets.counts(20, per_cell=1))
    assert capped.delta(1.0).upper == pytest.approx(1e-6, rel=1e-3)
    assert capped.sensitivity == pytest.approx(math.sqrt(20), rel=1e-14)
    assert isinstance(capped.law, Radial)


def test_descriptions_carry_the_set_and_contradict_nothing():
    mechanism = ln.least_noise(epsilon=1, delta=1e-6, shape=5, changes=sets.counts(3, per_cell=1, neighbours="replace"))
    values = json.loads(mechanism.to_json())
    assert ln.Mechanism.from_dict(values) == mechanism
    with pytest.raises(ln.InvalidInput, match="is not that of changes"):
        ln.Mechanism.from_dict({**values, "sensitivity": 1.0})
    with pytest.raises(ln.InvalidInput, match="is not that of the changes"):
        ln.Mechanism.from_dict({**values, "neighbours": "add/remove"})
    smaller = {**values, "changes": sets.counts(neighbours="replace").to_dict()}
    with pytest.raises(ln.InvalidInput, match="is not that of changes"):
        ln.Mechanism.from_dict(smaller)


def test_a_certificate_is_computed_again_for_the_set_it_names():
    release = ln.least_noise(epsilon=1, delta=1e-6, shape=4, changes=sets.counts()).release([1, 2, 3, 4])
    values = release.certificate.to_dict()
    assert values["mechanism"]["changes"] == {"kind": "counts", "rows": 1, "per_cell": None, "neighbours": "add/remove"}
    assert ln.Certificate.from_dict(values) == release.certificate
    assert any("set of changes" in words for words in release.certificate.assumptions)


def test_a_ledger_charges_the_set(tmp_path):
    changes = sets.counts(neighbours="replace")
    mechanism = ln.least_noise(epsilon=0.5, delta=1e-7, shape=20, changes=changes)
    ledger = ln.Ledger.open(tmp_path / "a.ledger", epsilon=2, delta=1e-6, neighbours="replace")
    for _ in range(3):
        mechanism.release(np.zeros(20, dtype=int), ledger=ledger)
    assert ledger.spent().upper == pytest.approx(mechanism.repeat(3).epsilon(1e-6).upper, rel=1e-2)


def test_compositions_count_the_entries_of_independent_noise():
    changes = sets.counts(neighbours="replace")
    moved = ln.geometric(epsilon=0.2, shape=9, neighbours="replace").against(changes)
    together = ln.geometric(epsilon=0.2, shape=9, sensitivity=2, neighbours="replace")
    assert moved.law.rate == 2 * together.law.rate
    fine = replace(moved, law=together.law).repeat(30)
    assert fine.epsilon(1e-6).upper < 0.8 * together.repeat(30).epsilon(1e-6).upper
    assert ln.Composition.from_json(fine.to_json()) == fine


@pytest.mark.parametrize("changes", [sets.counts(neighbours="replace"), sets.counts(2, per_cell=1)], ids=str)
def test_an_audit_takes_the_worst_change_of_the_set(changes):
    mechanism = ln.least_noise(epsilon=0.5, delta=1e-6, shape=4, changes=changes)
    report = ln.audit(mechanism, np.array([5, 5, 5, 5]), samples=20_000, progress=False, rng=np.random.default_rng(3))
    assert not report.refuted
    with pytest.raises(ln.InvalidInput, match="not in changes"):
        ln.audit(mechanism, np.zeros(4, int), neighbour=np.array([3, 0, 0, 0]), samples=1000)


def test_words():
    assert (
        changes_words(ln.least_noise(epsilon=1, delta=1e-6, shape=2, sensitivity=3)) == "l2 norm at most 3, add/remove"
    )
    counted = ln.least_noise(epsilon=1, delta=1e-6, shape=2, changes=sets.counts())
    assert changes_words(counted) == "at most 1 row, add/remove"
