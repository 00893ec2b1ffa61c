"""The lower end of a bracket is proved only where the worst change that a curve takes is one of the set."""

import pytest

import lessnoise as ln
from lessnoise import changes
from lessnoise.changes import corner, counts


def test_correlated_noise_against_few_entries_has_an_upper_end_alone():
    made = ln.mechanism.correlated_gaussian(epsilon=1, delta=1e-5, shape=20)
    assert made.against(corner(1.0)).delta(1.0).lower > 9e-6
    few = made.against(counts(3, per_cell=1))  # three entries of twenty change, not ten
    assert few.delta(1.0).lower == 0.0
    assert few.delta(1.0).upper > 9e-6
    assert few.epsilon(1e-5).lower == 0.0


@pytest.mark.parametrize(
    ("made", "same", "other"),
    [
        (ln.hb(epsilon=1, shape=16), counts(3), counts(3, per_cell=1)),
        (ln.laplace(epsilon=1, sensitivity=1, shape=6), counts(3, per_cell=1), changes.ball(1.0)),
        (ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=6), counts(), counts(3, per_cell=1)),
    ],
)
def test_sets_with_and_without_the_worst_change(made, same, other):
    assert made.against(same).delta(0.3).lower > 0.0
    assert made.against(other).delta(0.3).lower == 0.0
    assert made.against(other).delta(0.3).upper > 0.0


def test_the_norm_of_an_isotropic_law_is_that_of_a_change():
    made = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=6)
    for each in (counts(3, per_cell=1), corner(1.0), changes.ball(1.0), changes.listed([[1, 0, 2, 0, 0, 0]])):
        assert made.against(each).delta(0.3).lower > 0.0
