"""Answers of queries: nothing prints the true value, only noise that hides all of a unit's changes is added to it."""

import copy
import dataclasses
import functools
import json
import pickle
import pprint
import sys
import traceback

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import changes
from lessnoise.query import ROW, Asked, Query, SecondMoments, read_asked
from lessnoise.release import Certificate, release
from lessnoise.release.coverage import covers

TARGET = {"epsilon": 0.5, "delta": 1e-6}
SECRET = 8675309  # in every value below, in this form or another
USERS = ln.Unit("who", max_rows=3)
HISTOGRAM = ln.Histogram([ln.Axis("kind", keys=["bus", "taxi"]), ln.Axis("x", bounds=(0, 4), bins=2, outside="clamp")])
SUM = ln.Sum(["x", "y"], bounds=[(0, 1e7), (-2, 2)])
QUERIES = {
    "histogram": HISTOGRAM,
    "sum": SUM,
    "mean": ln.Mean(["x"], bounds=(0, 1e7)),
    "public rows": ln.Mean(["x", "y"], bounds=(0, 1e7), rows=3),
    "gram": ln.Gram(["x", "y"], norm=1e4),
    "gram in a box": ln.Gram(["x", "y"], box=(0, 1e4)),
    "second moments": SecondMoments(["x", "y"], norm=2.0, ends=((0.0, 0.0), (1.0, 2.0)), shift=(0.5, 0.5)),
}


def counted(value=SECRET, query=HISTOGRAM, neighbours="add/remove", unit=ROW):
    """An answer whose every entry is the secret."""
    return query.answer_from(np.full(query.zero().shape, value, dtype=np.int64), neighbours, unit, "numpy")


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "a.ledger", epsilon=9, delta=1e-5)


def refused(act, words, ledger=None):
    """One sentence without the secret, in which nothing was spent."""
    before = None if ledger is None else len(ledger.records())
    with pytest.raises(ln.InvalidInput, match=words) as caught:
        act()
    said = "".join(traceback.format_exception(caught.value))
    assert str(SECRET) not in said
    assert f"{SECRET:g}" not in said
    assert str(caught.value).count(". ") == 0
    assert ledger is None or len(ledger.records()) == before


# What an attacker reads: texts, notebooks, files, errors.


@pytest.mark.parametrize(
    "show", [repr, str, "{}".format, pprint.pformat, lambda a: a._repr_html_(), lambda a: str([a])]
)
@pytest.mark.parametrize("unit", [ln.Unit(), USERS])
def test_no_text_of_an_answer_depends_on_the_data(show, unit):
    one, other = (show(counted(value, unit=unit)) for value in (SECRET, 0))
    assert one == other
    assert str(SECRET) not in one
    assert "Histogram of &#x27;kind&#x27;" in one or "Histogram of 'kind', 'x'" in one
    assert "at most" in one


def test_arrays_and_copies_of_an_answer_do_not_show_it_either():
    answer = counted()
    assert str(SECRET) not in repr(np.asarray(answer, dtype=object))
    assert copy.copy(answer) is copy.deepcopy(answer) is answer
    assert str(SECRET) not in repr(answer.asked)
    with pytest.raises(TypeError) as caught:
        f"{answer:.3f}"
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_answer_goes_into_no_file(protocol):
    refused(lambda: pickle.dumps(counted(), protocol), "belongs in no file: pickle its release")
    made = counted().release(**TARGET)
    again = pickle.loads(pickle.dumps(made, protocol))
    assert (again.value == made.value).all()
    assert again.certificate == made.certificate
    assert USERS.key.encode() not in pickle.dumps(counted(unit=USERS).release(**TARGET), protocol)


def test_a_value_that_the_noise_cannot_carry_is_not_quoted(ledger):
    """Of a plain array the entry is told, which is the caller's own; of an answer nothing is."""
    big = ln.Sum(["x"], bounds=(0, 1)).answer_from(np.array([SECRET * 10**11]), "add/remove")
    tight = ln.laplace(epsilon=1e9, sensitivity=1, shape=1)
    with pytest.raises(ln.InvalidInput, match=r"value\[0\]="):
        tight.release(big.value)
    refused(lambda: tight.release(big, ledger=ledger), "cannot be added to, as it is too large", ledger)


@pytest.mark.parametrize("build", [functools.partial(ln.discrete_gaussian, delta=1e-6), ln.mechanism.geometric])
def test_integer_noise_is_for_counts_whatever_the_value_is(build, ledger):
    """Sums that happen to be whole are refused as well, so that the refusal tells nothing."""
    mechanism = build(epsilon=1, sensitivity=10**9, shape=2)
    for value in (SECRET, SECRET * 2**30):
        refused(lambda value=value: mechanism.release(counted(value, SUM), ledger=ledger), "adds integers", ledger)


def test_an_output_of_the_callers_is_named_in_its_own_words():
    mechanism = ln.laplace(epsilon=1, sensitivity=1, shape=(2, 2))
    refused(lambda: mechanism.release(counted(), out=np.zeros(3)), "out")
    refused(lambda: mechanism.release(counted(), out=counted().value), "out is read-only")
    out = np.zeros((2, 2))
    assert np.shares_memory(mechanism.release(counted(), out=out).value, out)


# Which mechanisms cover an answer.


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("unit", [ln.Unit(), USERS], ids=["row", "user"])
@pytest.mark.parametrize("name", ["histogram", "sum", "mean", "gram", "gram in a box"])
def test_whatever_is_built_from_its_request_covers_an_answer(name, unit, relation):
    answer = counted(7, QUERIES[name], relation, unit)
    request = answer.request(**TARGET)
    names = [
        "best",
        "least-noise",
        "analytic-gaussian",
        "laplace",
        *(["hb", "geometric"] if name == "histogram" else []),
    ]
    for mechanism in names:
        built = ln.mechanism.choose_mechanism(mechanism, request)
        made = built.release(answer)
        assert made.certificate.asked == answer.asked
        assert Certificate.from_dict(json.loads(made.certificate.to_json())) == made.certificate


L1, L2 = ln.laplace, functools.partial(ln.analytic_gaussian, delta=1e-6)


@pytest.mark.parametrize(
    ("build", "unit", "relation", "least"),
    [
        (L1, ln.Unit(), "add/remove", 1.0),
        (L2, ln.Unit(), "add/remove", 1.0),
        (L1, USERS, "add/remove", 3.0),
        (L2, USERS, "add/remove", 3.0),
        (L1, ln.Unit(), "replace", 2.0),
        (L2, ln.Unit(), "replace", 2**0.5),
        (L1, USERS, "replace", 6.0),
        (L2, USERS, "replace", 18**0.5),
    ],
)
def test_a_stated_sensitivity_covers_from_the_answers_own_on(build, unit, relation, least, ledger):
    answer = counted(unit=unit, neighbours=relation)
    made = functools.partial(build, epsilon=1, shape=(2, 2), neighbours=relation)
    for enough in (least * (1 + 1e-15), 2 * least):
        assert made(sensitivity=enough).release(answer).certificate.asked.unit == unit
    small = made(sensitivity=least * (1 - 1e-9))
    refused(lambda: small.release(answer, ledger=ledger), "do not cover those of", ledger)
    refused(lambda: release(small, answer, ledger=ledger), "do not cover those of", ledger)


def test_a_set_of_changes_covers_itself_and_smaller_ones(ledger):
    rows = counted()
    users = counted(unit=USERS)
    least = functools.partial(ln.least_noise, epsilon=1, delta=1e-6, shape=(2, 2))
    three, one = least(changes=changes.counts(3)), least(changes=changes.counts())
    ball = least(changes=changes.ball(1.0))
    for mechanism, answer in ((one, rows), (three, rows), (three, users), (ball, rows)):
        assert mechanism.release(answer).certificate.mechanism is mechanism
    for mechanism in (one, ball, least(changes=changes.counts(2)), least(changes=changes.counts(3, per_cell=1))):
        refused(lambda mechanism=mechanism: mechanism.release(users, ledger=ledger), "do not cover", ledger)
    wide = ln.laplace(epsilon=1, sensitivity=3, shape=(2, 2))
    spread = wide.against(changes.counts(3, per_cell=1))  # three cells by 1 each: another curve than one by 3
    refused(lambda: spread.release(users, ledger=ledger), "do not cover", ledger)
    assert spread.release(rows).certificate.guarantee.delta >= 0.0


SETS = [
    *(changes.counts(rows, per_cell=cap) for rows, cap in ((1, None), (2, None), (3, None), (3, 1), (4, 2), (6, 3))),
    *(changes.ball(size, norm=norm) for size in (1.0, 3.0) for norm in (1, 2, float("inf"))),
    changes.corner(3.0),
    changes.box(3.0),
    None,
]


@pytest.mark.slow
@pytest.mark.parametrize("stated", SETS, ids=str)
def test_what_covers_an_answer_never_promises_more_than_its_curve_for_the_answers_own_set(stated):
    """By the numbers: wherever it is accepted, delta for the answer's set is at most the delta that is certified."""
    laws = ["laplace", "analytic-gaussian", "l2", "geometric", "correlated-gaussian", "least-noise"]
    size = {"changes": stated} if stated is not None else {"l1_sensitivity": 3.0, "entry_bound": 3.0, "integer": True}
    wide = ln.Request(0.7, 1e-3, None if stated is not None else 3.0, (2, 2), **size)
    accepted = 0
    for name in laws:
        try:
            mechanism = ln.mechanism.choose_mechanism(name, wide)
        except ln.LessnoiseError:
            continue
        for unit in (ROW, ln.Unit("who", 2), USERS, ln.Unit("who", 4)):
            answer = counted(query=HISTOGRAM, unit=unit)
            if covers(mechanism, answer.asked):
                accepted += 1
                own = mechanism.against(answer.changes)
                for epsilon in (0.0, 0.3, 0.7, 2.0):
                    assert own.delta(epsilon).lower <= mechanism.delta(epsilon).upper * (1 + 1e-9) + 1e-300
    assert accepted > 0


def test_counts_that_are_moved_are_not_any_counts():
    """H_b with half of its noise's sensitivity taken away and half added covers a replaced row, and no sum."""
    line = ln.Histogram.grid(["x"], bins=[4], bounds=[(0, 4)])
    moved = ln.hb(epsilon=1, delta=1e-6, shape=4, noise="gaussian", neighbours="replace")
    assert moved.law.change == "moved"
    moved.release(counted(query=line, neighbours="replace"))
    refused(lambda: moved.release(counted(query=line, neighbours="replace", unit=USERS)), "do not cover")
    small = ln.Sum(["a", "b", "c", "d"], bounds=(0, 0.5))
    assert small.l1_sensitivity("replace") <= moved.sensitivity
    refused(lambda: moved.release(counted(query=small, neighbours="replace")), "do not cover")


def test_shape_and_relation_must_agree(ledger):
    answer = counted()
    flat = ln.laplace(epsilon=1, sensitivity=9, shape=4)
    refused(lambda: flat.release(answer, ledger=ledger), r"shape=\(4,\) of the mechanism is not", ledger)
    other = ln.laplace(epsilon=1, sensitivity=9, shape=(2, 2), neighbours="replace")
    refused(lambda: other.release(answer, ledger=ledger), "neighbours='replace' of the mechanism", ledger)


def test_forged_sensitivities_of_an_answer_are_not_believed():
    forged = dataclasses.replace(counted(unit=USERS), sensitivity=0.1, l1_sensitivity=0.1)
    refused(lambda: ln.laplace(epsilon=1, sensitivity=1, shape=(2, 2)).release(forged), "do not cover")
    assert forged.release(**TARGET).certificate.mechanism.changes == changes.counts(3)


# In one call.


def test_counts_are_integers_with_the_least_noise_for_their_set(ledger):
    answer = counted(unit=USERS)
    made = answer.release(**TARGET, ledger=ledger)
    assert made.value.dtype == np.int64
    assert made.certificate.mechanism == ln.least_noise(**TARGET, shape=(2, 2), changes=changes.counts(3))
    assert made.certificate.guarantee.delta <= TARGET["delta"]
    assert made.receipt is not None
    assert len(ledger.records()) == 1
    with pytest.raises(ln.BudgetExceeded):
        answer.release(epsilon=50, delta=1e-6, ledger=ledger)
    assert answer.release(**TARGET, mechanism="laplace").value.dtype == np.float64
    seeded = answer.release(**TARGET, rng=np.random.default_rng(1))
    assert not seeded.certificate.private


def test_the_noise_of_one_call_is_that_of_the_certificate():
    query = ln.Histogram.grid(["x"], bins=[5000], bounds=[(0, 1)])
    made = counted(query=query).release(epsilon=0.1, delta=1e-6)
    noise, sd = made.value - float(SECRET), made.certificate.mechanism.standard_deviation
    # The mean of 5000 squares of a kurtosis of about 6 has a deviation of 0.032: beyond 0.4 lies less than 1e-20.
    assert abs((noise**2).mean() / sd**2 - 1) < 0.4 < abs((2 / 3) ** -2 - 1)


def test_real_noise_on_counts_is_rounded_if_it_is_the_best(monkeypatch):
    """No set of counts asks for it so far: the choice is replaced here."""
    real = ln.least_noise(**TARGET, shape=(2, 2), sensitivity=1)
    monkeypatch.setattr(sys.modules["lessnoise.release.release"], "choose_mechanism", lambda *_: real)
    made = counted().release(**TARGET)
    assert made.value.dtype == np.int64
    assert made.certificate.grid == 1.0
    named = counted().release(**TARGET, mechanism="least-noise")
    assert named.value.dtype == np.float64


# What the certificate says.


@pytest.mark.parametrize("name", QUERIES)
def test_queries_survive_json(name):
    query = QUERIES[name]
    again = Query.from_dict(json.loads(json.dumps(query.to_dict())))
    assert again == query
    assert type(again) is type(query)
    relation = "replace" if name == "public rows" else "add/remove"
    assert again.changes(relation) == query.changes(relation)
    asked = Asked(query, ln.Neighbours.of(relation), ln.Unit(), "duckdb")
    assert read_asked(json.loads(json.dumps(asked.to_dict()))) == asked


def test_the_certificate_tells_the_query_and_nothing_of_the_data():
    made = counted(unit=USERS).release(**TARGET)
    text = made.certificate.to_json()
    assert str(SECRET) not in text
    assert USERS.key not in text
    assert json.loads(text)["query"] == {
        "description": HISTOGRAM.to_dict(),
        "columns": ["kind", "x"],
        "unit": {"id": "who", "max_rows": 3},
        "neighbours": "add/remove",
        "engine": "numpy",
        "rules": [
            "A row with NULL or NaN in one of the columns is dropped.",
            "A row whose 'kind' is none of the keys is dropped.",
            "A row whose 'x' is outside the cells is counted in the nearest cell.",
            "A row without an id in 'who' is dropped.",
            "Of a user with more than 3 rows that count, 3 are chosen at random.",
        ],
    }
    assert "follows from the query" in made.certificate.assumptions[0]
    other = counted(0, unit=USERS).release(**TARGET)
    assert other.certificate.to_json() == text  # whatever the data are
    plain = made.certificate.mechanism.release(np.zeros((2, 2)))
    assert "query" not in plain.certificate.to_dict()
    assert "caller" in plain.certificate.assumptions[0]


def test_a_query_that_no_reader_knows_is_covered_but_not_stated():
    class Halved(ln.Histogram):
        """A query of the caller's own, with another meaning than its description has."""

    answer = counted(query=Halved(HISTOGRAM.axes))
    assert not answer.query.can_be_read
    made = answer.release(**TARGET)
    assert made.certificate.asked is None
    assert "caller or the query stated" in made.certificate.assumptions[0]
    assert Certificate.from_dict(made.certificate.to_dict()) == made.certificate
    refused(lambda: ln.laplace(epsilon=1, sensitivity=0.5, shape=(2, 2)).release(answer), "do not cover")


@pytest.mark.parametrize("name", QUERIES)
def test_rules_are_sentences(name):
    rules = Asked(QUERIES[name], ln.Neighbours.REPLACE, ln.Unit()).rules
    assert rules
    assert all(rule.endswith(".") and rule[0].isupper() for rule in rules)


def damaged(path, value):
    values = json.loads(counted(unit=USERS).release(**TARGET).certificate.to_json())
    *inner, last = path
    place = values
    for key in inner:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return values


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("query", "unit", "max_rows"), 4, "do not cover those of one user by 'who', at most 4 rows"),
        (("query", "neighbours"), "replace", "neighbours='add/remove' of the mechanism is not that of the answer"),
        (("query", "description"), SUM.to_dict(), r"contradict its description|shape=\(2, 2\)"),
        (("query", "description", "axes"), HISTOGRAM.to_dict()["axes"][:1], "contradict its description"),
        (("query", "columns"), ["salary"], "contradict its description"),
        (("query", "description", "query"), "median", "query='median' is not known"),
        (("query", "rules"), [SECRET], "is not text"),
        (("query", "engine"), None, "query lacks 'engine'"),
        (("query",), None, "speak of a query that is not stated"),
        (("query",), "histogram", "speak of a query that is not stated"),
    ],
)
def test_a_certificate_that_contradicts_its_query_is_refused(path, value, words):
    with pytest.raises(ln.InvalidInput, match=words):
        Certificate.from_dict(damaged(path, value))


def test_certificates_of_older_histograms_are_still_read():
    made = ln.private_histogram({"x": [1.0, 2.0]}, ["x"], bins=[2], bounds=[(0, 4)], **TARGET)
    plain = made.certificate.mechanism.release([1, 1]).certificate
    old = {**plain.to_dict(), **made.query.to_dict(), "unit": {"id": None, "max_rows": None}, "engine": "numpy"}
    assert old["query"] == "histogram"
    assert Certificate.from_dict(json.loads(json.dumps({**old, "postprocess": []}))) == plain
    assert Certificate.from_dict(made.to_dict()) == made.certificate
    assert made.certificate.asked.engine == "numpy"


def test_value_and_certificate_of_an_answer_are_written_and_read(tmp_path):
    keys = [f"key number {i}" for i in range(3000)]  # a certificate that is longer than most
    made = ln.Histogram([ln.Axis("kind", keys=keys)]).answer({"kind": np.array(["key number 7"])}).release(**TARGET)
    made.write(tmp_path / "noisy.npy")
    again = ln.Release.read(tmp_path / "noisy.npy")
    assert again.certificate.asked == made.certificate.asked
    assert (again.value == made.value).all()
