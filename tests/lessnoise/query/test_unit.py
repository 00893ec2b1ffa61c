"""Which rows of a user are used: at most so many groups, and so many rows in each, by a rule of its own rows alone."""

import hashlib
from collections import Counter

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.query import Axis, Histogram, Sum, Unit

KEYS = ["d", "a", "c", "b"]
QUERY = Histogram([Axis("city", keys=KEYS)])


def naive(rows, unit):
    """The rule in words, user by user: groups by their numbers, then rows by theirs."""
    used = Counter()
    for user in {user for user, _ in rows}:
        own = sorted(city for who, city in rows if who == user and city in KEYS)

        def number(word, user=user):
            return hashlib.sha256(f"{unit.key}|{user}|{word}".encode()).hexdigest()

        groups = sorted(set(own))
        kept = sorted(range(len(groups)), key=lambda place: number(f"group|{place}"))[: unit.max_groups]
        own = [city for city in own if groups.index(city) in kept]
        taken = Counter()
        for place in sorted(range(len(own)), key=number):
            if taken[own[place]] < (unit.max_rows_per_group or len(own)) and taken.total() < unit.max_rows:
                taken[own[place]] += 1
        used += taken
    return [used[key] for key in KEYS]


@pytest.mark.parametrize("most", [None, 1, 2, 3])
@pytest.mark.parametrize("cap", [None, 1, 2])
def test_the_choice_is_the_rule_in_words(most, cap):
    rng = np.random.default_rng(5)
    for rows in (1, 3, 7):
        unit = Unit("who", rows, max_groups=most, max_rows_per_group=cap, key="k")
        data = {"who": rng.integers(0, 12, 150), "city": rng.choice([*KEYS, "elsewhere"], 150)}
        expected = naive(list(zip(data["who"].tolist(), data["city"].tolist(), strict=True)), unit)
        assert QUERY.answer(data, unit=unit).value.tolist() == expected
        order = rng.permutation(150)
        shuffled = {name: values[order] for name, values in data.items()}
        assert QUERY.answer(shuffled, unit=unit).value.tolist() == expected
        other = Histogram([Axis("city", keys=sorted(KEYS))]).answer(data, unit=unit).value
        assert other.tolist() == [expected[KEYS.index(key)] for key in sorted(KEYS)], "not of the order of keys"


def test_groups_are_chosen_uniformly():
    """Of 4 groups of very different sizes each is used by half of 5,000 users: within 7 deviations, below 1e-11."""
    users = 5000
    sizes = {"a": 1, "b": 1, "c": 2, "d": 6}
    city = np.array([key for key, size in sizes.items() for _ in range(size)] * users)
    data = {"who": np.repeat(np.arange(users), sum(sizes.values())), "city": city}
    unit = Unit("who", max_rows=20, max_groups=2, max_rows_per_group=1)
    found = QUERY.answer(data, unit=unit).value
    assert found.sum() == 2 * users
    assert (abs(found - 0.5 * users) < 7 * (0.25 * users) ** 0.5).all()


def test_a_query_without_groups_is_one_group():
    data = {"x": np.ones(60), "who": np.repeat([1, 2, 3], 20)}
    query = Sum(["x"], bounds=(0, 1))
    assert query.answer(data, unit=Unit("who", 9, max_groups=1)).value.tolist() == [27.0]
    assert query.answer(data, unit=Unit("who", 9, max_rows_per_group=2)).value.tolist() == [6.0]


def test_descriptions_of_units():
    old, new = Unit("who", 3), Unit("who", 3, max_groups=2, max_rows_per_group=1)
    assert old.to_dict() == {"id": "who", "max_rows": 3}
    assert Unit.from_dict({"id": "who", "max_rows": 3}) == old
    assert Unit.from_dict(new.to_dict()) == new != old
    assert repr(new) == "Unit(id='who', max_rows=3, max_groups=2, max_rows_per_group=1)"
    assert repr(Unit()) == "Unit(id=None, max_rows=None)"
    assert str(new) == "one user by 'who', at most 2 rows in at most 2 groups each, at most 1 in a group"
    assert (new.rows, new.per_group, new.groups) == (2, 1, 2)
    assert (old.rows, old.per_group, old.groups) == (3, 3, 3)
    assert (Unit().rows, Unit().per_group, Unit().groups) == (1, 1, 1)
    assert Unit().once_a_group == Unit()
    assert new.without_key == new
    assert new.without_key.key != new.key
    assert len(new.rules) == 4


def test_a_certificate_says_how_groups_were_bounded():
    unit = Unit("who", 5, max_groups=2, max_rows_per_group=1)
    answer = QUERY.answer({"who": [1, 1, 2], "city": ["a", "b", "a"]}, unit=unit)
    made = answer.release(epsilon=1, delta=1e-6)
    asked = made.certificate.to_dict()["query"]
    assert asked["unit"] == {"id": "who", "max_rows": 5, "max_groups": 2, "max_rows_per_group": 1}
    assert "Of a user with rows in more than 2 groups, 2 are chosen at random." in asked["rules"]
    assert str(answer.changes) == "at most 2 rows, at most 1 in a cell, add/remove"
    assert ln.Certificate.from_dict(made.certificate.to_dict()).asked == answer.asked


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"id": "who", "max_rows": 3, "max_groups": 0}, "max_groups=0"),
        ({"id": "who", "max_rows": 3, "max_rows_per_group": 1.5}, "max_rows_per_group=1.5"),
        ({"max_groups": 2}, "max_groups=2 is for users"),
        ({"id": "who", "max_groups": 2}, "pass both"),
    ],
)
def test_bad_units_are_refused(options, words):
    with pytest.raises(ln.InvalidInput, match=words):
        Unit(**options)
