"""Sets of changes as words on a command line."""

import math

import pytest

import lessnoise as ln
from lessnoise import changes


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("counts", changes.counts()),
        ("counts:20", changes.counts(20)),
        ("counts:20,per_cell=1", changes.counts(20, per_cell=1)),
        ("counts:rows=3", changes.counts(3)),
        (" ball:1.5 ", changes.ball(1.5)),
        ("ball:1,norm=inf", changes.ball(1.0, norm=math.inf)),
        ("ball:2,norm=1", changes.ball(2.0, norm=1)),
        ("corner:1", changes.corner(1.0)),
        ("corner:1,2.5", changes.corner([1.0, 2.5])),
        ("box:3,4", changes.box([3.0, 4.0])),
    ],
)
def test_words_mean_a_set(words, meant):
    assert changes.parse(words) == meant


def test_counts_take_the_relation_that_is_given():
    assert changes.parse("counts", "replace") == changes.counts(neighbours="replace")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "is not a set of changes"),
        ("rows", "is not a set of changes"),
        ("counts:1,2", "is not a set of changes"),
        ("counts:x", "is not a set of changes"),
        ("counts:0", "rows=0 must be at least 1"),
        ("counts:1,per_cell=2", "per_cell=2 is above rows=1"),
        ("ball:", "is not a set of changes"),
        ("ball:1,norm=3", "is not a set of changes"),
        ("ball:nan", "radius=nan is not finite"),
        ("corner:1,bound=2", "is not a set of changes"),
        ("box:1,-2", "must be above 0"),
    ],
)
def test_other_words_are_refused_in_one_sentence(words, said):
    with pytest.raises(ln.InvalidInput, match=said):
        changes.parse(words)
