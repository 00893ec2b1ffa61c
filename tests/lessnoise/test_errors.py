"""What is wrong is refused in one sentence with name=value and the remedy, before anything is drawn, spent or written.

First in Python, then on the command line, where the exit code is 2.
"""

import decimal
import errno
import functools
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import lessnoise as ln
from lessnoise.cli import app, run
from lessnoise.mechanism.catalogue import find_mechanism
from lessnoise.noise.stream import Reader, Stream
from tests.helpers.sentences import refused, refused_command

NAN, INF = math.nan, math.inf
GOOD = {"epsilon": 0.5, "delta": 1e-6, "sensitivity": 1.0, "shape": (2, 3)}

BUILDERS = {
    "analytic_gaussian": {},
    "classic_gaussian": {},
    "l2_mechanism": {},
    "zhao_gaussian": {"variant": 1},
    "r1smg": {"calibration": "exact"},
    "radial": {"k": 4, "p": 1.5},
    "laplace": {},
    "discrete_gaussian": {},
    "least_noise": {},
}

NOT_NUMBERS = [
    "1", "1e-6", True, False, np.True_, None, 1j, 2j, [0.5], [1.0], np.array(0.5), np.array([1.0]),
    np.array([1.0, 2.0]), decimal.Decimal(1),
]  # fmt: skip

# Argument, and values that every builder must refuse.
WRONG = {
    "epsilon": [0, 0.0, -1, -0.5, NAN, INF, -INF, *NOT_NUMBERS],
    "delta": [0, 1, -1, 2, 1.0, NAN, INF, 1e-300, *NOT_NUMBERS],
    "sensitivity": [0, -1, 0.0, NAN, INF, *NOT_NUMBERS],
    "shape": [
        0, -1, 2.5, 3.0, "x", "3", "12", True, None, (0,), (3, 0), (2, -1), (2, 2.5), (2, True), (3, True), (3, "4"),
        {2}, {3}, np.array([3, 4]), 10**13, (10**7, 10**7),
    ],
    "neighbours": ["", "add", None, 1, "REPLACE"],
}  # fmt: skip


def assert_names(sentence, name, value):
    """The sentence has name=value, in one of the ways in which it may be written."""
    ways = {f"{name}={value}", f"{name}={value!r}"}
    if isinstance(value, float):
        ways.add(f"{name}={value:g}")
    assert any(way in sentence for way in ways), sentence


def is_any(value, values):
    return any(value is one for one in values)


@pytest.fixture
def no_randomness(monkeypatch):
    """Any draw, secure or not, is an error."""

    def fail(*_arguments, **_keywords):
        raise AssertionError("something was drawn")

    monkeypatch.setattr(os, "urandom", fail)
    monkeypatch.setattr(Stream, "claim", fail)
    monkeypatch.setattr(Reader, "words", fail)


def test_the_guard_against_draws_works(no_randomness):
    mechanism = ln.analytic_gaussian(**GOOD)
    with pytest.raises(AssertionError, match="something was drawn"):
        mechanism.noise()
    with pytest.raises(AssertionError, match="something was drawn"):
        mechanism.release(np.zeros((2, 3)), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("builder", "name", "value"),
    [
        pytest.param(builder, name, value, id=f"{builder}-{name}-{str(value)[:12]}")
        for builder in BUILDERS
        for name, values in WRONG.items()
        for value in values
        if not (builder == "laplace" and name == "delta")
        # A set of changes may stand in the place of a sensitivity, and has a relation of its own.
        if not (builder == "least_noise" and value is None and name in ("neighbours", "sensitivity"))
    ],
)
def test_builders_refuse(builder, name, value, no_randomness):
    arguments = {**GOOD, **BUILDERS[builder], name: value}
    if builder == "laplace":
        del arguments["delta"]
    sentence = refused(lambda: getattr(ln, builder)(**arguments))
    assert_names(sentence, name, value)
    if is_any(value, NOT_NUMBERS) and name in ("epsilon", "delta", "sensitivity"):
        assert f"{name}={value!r} is not a number" in sentence


@pytest.mark.parametrize("name", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["huge", "minus huge"])
def test_an_integer_beyond_any_float_is_refused(name, value):
    assert f"{name}=" in refused(lambda: ln.analytic_gaussian(**{**GOOD, name: value}))


CHOICES = [
    ("r1smg", {"calibration": "Published"}, "calibration='Published'"),
    ("r1smg", {"calibration": None}, "calibration=None"),
    ("r1smg", {"calibration": 1}, "calibration=1"),
    ("r1smg", {"calibration": "exat"}, "perhaps 'exact' is meant"),
    ("analytic_gaussian", {"neighbours": "replac"}, "perhaps 'replace' is meant"),
    ("least_noise", {"objective": "median"}, "objective='median' is not known"),
    ("zhao_gaussian", {"variant": 0}, "variant=0"),
    ("zhao_gaussian", {"variant": 3}, "variant=3"),
    ("zhao_gaussian", {"variant": "1"}, "variant='1'"),
    ("zhao_gaussian", {"variant": None}, "variant=None"),
    ("zhao_gaussian", {"variant": True}, "variant=True"),
    ("zhao_gaussian", {"variant": 2, "delta": 0.9}, "delta=0.9"),
    ("radial", {"k": 0}, "k=0"),
    ("radial", {"k": -2.5}, "k=-2.5"),
    ("radial", {"k": NAN}, "k=nan"),
    ("radial", {"k": INF}, "k=inf"),
    ("radial", {"k": "3"}, "k='3'"),
    ("radial", {"k": True}, "k=True"),
    ("radial", {"k": 7}, "k=7"),
    ("radial", {"k": 6.001}, "k=6.001"),
    ("radial", {"p": 0}, "p=0"),
    ("radial", {"p": -1}, "p=-1"),
    ("radial", {"p": NAN}, "p=nan"),
    ("radial", {"p": INF}, "p=inf"),
    ("radial", {"p": None}, "p=None"),
    ("r1smg", {"calibration": "published", "shape": 1}, "shape=(1,)"),
    ("r1smg", {"calibration": "published", "shape": 2}, "shape=(2,)"),
    ("r1smg", {"calibration": "published", "shape": (2, 1)}, "shape=(2, 1)"),
]


@pytest.mark.parametrize(("builder", "changes", "expected"), CHOICES, ids=lambda value: str(value))
def test_builders_refuse_their_own_arguments(builder, changes, expected, no_randomness):
    refused(lambda: getattr(ln, builder)(**{**GOOD, **BUILDERS[builder], **changes}), expected)


def test_a_mechanism_of_an_unknown_name():
    refused(lambda: find_mechanism("gaussian-analytic"), "mechanism='gaussian-analytic' is not known")


@pytest.mark.parametrize("builder", BUILDERS)
def test_positional_and_missing_arguments_are_errors(builder):
    with pytest.raises(TypeError):
        getattr(ln, builder)(1.0, 1e-6, 1.0, 3)
    with pytest.raises(TypeError):
        getattr(ln, builder)(epsilon=1.0)


# Laws and mechanisms.


@pytest.mark.parametrize("name", ["k", "p", "scale"])
@pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "2", None, True, 1j])
def test_radial_law_refuses(name, value):
    assert_names(refused(lambda: ln.Radial(**{"k": 1, "p": 2, "scale": 3, name: value})), name, value)


@pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "2", None, True])
def test_laplace_law_refuses(value):
    assert_names(refused(lambda: ln.Laplace(value)), "scale", value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"law": ln.Radial(7, 2, 1.0)}, "k=7"),
        ({"sensitivity": 0}, "sensitivity=0"),
        ({"sensitivity": NAN}, "sensitivity=nan"),
        ({"shape": (3, 0)}, "shape=(3, 0)"),
        ({"shape": 2.5}, "shape=2.5"),
        ({"neighbours": "none"}, "neighbours='none'"),
    ],
)
def test_mechanism_refuses(changes, expected):
    fields = {"name": "test", "law": ln.Radial(3, 2, 1.0), "shape": (2, 3), "sensitivity": 1.0}
    refused(lambda: ln.Mechanism(**{**fields, **changes}), expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ln.Guarantee(-1, 1e-6), "epsilon=-1"),
        (lambda: ln.Guarantee(NAN, 1e-6), "epsilon=nan"),
        (lambda: ln.Guarantee(1, -1e-6), "delta=-1e-06"),
        (lambda: ln.Guarantee(1, 2), "delta=2"),
        (lambda: ln.Guarantee(1, NAN), "delta=nan"),
        *((lambda value=value: ln.Guarantee(value, 0), f"epsilon={value!r} is not a number") for value in NOT_NUMBERS),
        (lambda: ln.Guarantee(1, "x"), "delta='x'"),
        (lambda: ln.Guarantee(1, True), "delta=True"),
        (lambda: ln.Claim(1, 0.1, "nobody"), "neighbours='nobody'"),
        (lambda: ln.Bracket(2, 1), "lower=2"),
        (lambda: ln.Bracket(NAN, 1), "lower=nan"),
        (lambda: ln.Bracket("a", "b"), "lower='a' is not a number"),
        (lambda: ln.Bracket(0.0, None), "upper=None is not a number"),
    ],
)
def test_statements_refuse(call, expected):
    refused(call, expected)


# Questions to a mechanism.


@pytest.mark.parametrize("law", [ln.Radial(6, 2, 3.0), ln.Radial(1, 2, 3.0), ln.Radial(6, 1, 3.0), ln.Laplace(3.0)])
@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        *(("delta", "epsilon", value) for value in (-1, -1e-300, NAN, INF, *NOT_NUMBERS)),
        *(("guarantee", "epsilon", value) for value in (-1, NAN, INF)),
        *(("epsilon", "delta", value) for value in (-0.1, 1, 1.5, NAN, INF, "0.1", *NOT_NUMBERS)),
        *(("loss_quantile", "q", value) for value in (0, 1, -0.1, 1.1, NAN, "0.5", *NOT_NUMBERS)),
    ],
)
def test_questions_are_checked(law, question, name, value):
    mechanism = ln.Mechanism("test", law, (2, 3), 1.0)
    sentence = refused(lambda: getattr(mechanism, question)(value))
    assert_names(sentence, name, value)
    if is_any(value, NOT_NUMBERS):
        assert f"{name}={value!r} is not a number" in sentence


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_questions_to_a_composition_are_checked(vector, value):
    refused(lambda: vector.repeat(2).delta(value), f"epsilon={value!r} is not a number")


# Values to release.


@functools.cache
def released(name, shape):
    """A mechanism of this name for values of this shape."""
    if name == "discrete-gaussian":
        return ln.discrete_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=shape)
    if name == "laplace":
        return ln.laplace(epsilon=1, sensitivity=1, shape=shape)
    if name == "r1smg":
        return ln.r1smg(**{**GOOD, "shape": shape}, calibration="exact")
    return {"analytic-gaussian": ln.analytic_gaussian, "l2": ln.l2_mechanism}[name](**{**GOOD, "shape": shape})


@pytest.fixture
def vector():
    return released("analytic-gaussian", (3,))


@pytest.fixture
def matrix():
    return released("analytic-gaussian", (2, 3))


def pandas_frame():
    return pytest.importorskip("pandas").DataFrame({"a": [1.0, 2.0, 3.0]})


def sparse():
    return pytest.importorskip("scipy.sparse").csr_array(np.ones((1, 3)))


# Shape of the mechanism, a value that it must refuse, and what the sentence says.
VALUES = {
    "nan": ((2, 3), lambda: np.array([[0.0, 1.0, NAN], [0.0, 0.0, 0.0]]), "value[0, 2]=nan"),
    "inf": ((2, 3), lambda: np.array([[0.0, 1.0, 2.0], [0.0, INF, 0.0]]), "value[1, 1]=inf"),
    "minus inf": ((2, 3), lambda: np.array([[0.0, 1.0, 2.0], [-INF, 1.0, 0.0]]), "value[1, 0]=-inf"),
    "nan in a list": ((3,), lambda: [1.0, NAN, 2.0], "value[1]=nan is not finite"),
    "minus inf in a list": ((3,), lambda: [1.0, 2.0, -INF], "value[2]=-inf is not finite"),
    "transposed": ((2, 3), lambda: np.zeros((3, 2)), "value.shape=(3, 2)"),
    "flat": ((2, 3), lambda: np.zeros(6), "value.shape=(6,)"),
    "scalar": ((2, 3), lambda: 1.0, "value.shape=()"),
    "array of no axis": ((3,), lambda: np.array(1.0), "value.shape=() differs"),
    "extra axis": ((2, 3), lambda: np.zeros((1, 2, 3)), "value.shape=(1, 2, 3)"),
    "empty": ((2, 3), list, "value.shape=(0,)"),
    "empty array": ((3,), lambda: np.array([]), "value.shape=(0,) differs"),
    "table of one column": ((3,), pandas_frame, "value.shape=(3, 1) differs from the mechanism's shape=(3,)"),
    "text": ((3,), lambda: "abc", "value.dtype=<U3 is not numeric: convert the text to numbers first"),
    "list of texts": ((3,), lambda: ["1", "2", "3"], "value.dtype=<U1 is not numeric: convert the text"),
    "texts": ((2, 3), lambda: np.full((2, 3), "1.0"), "value.dtype=<U3"),
    "complex": ((2, 3), lambda: np.zeros((2, 3), dtype=complex), "value.dtype=complex128"),
    "complex vector": (
        (3,),
        lambda: np.ones(3) * 1j,
        "value.dtype=complex128 is not numeric: release the real and the imaginary part",
    ),
    "bool": ((2, 3), lambda: np.zeros((2, 3), dtype=bool), "value.dtype=bool"),
    "bool vector": (
        (3,),
        lambda: np.array([True, False, True]),
        "value.dtype=bool is not numeric: count with .astype(int) first",
    ),
    "object": ((2, 3), lambda: np.zeros((2, 3), dtype=object), "value.dtype=object"),
    "object with none": ((3,), lambda: np.array([1, 2, None], dtype=object), "value.dtype=object is not numeric"),
    "dates": ((2, 3), lambda: np.zeros((2, 3), dtype="datetime64[s]"), "value.dtype=datetime64[s]"),
    "days": (
        (3,),
        lambda: np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
        "value.dtype=datetime64[D] is not numeric",
    ),
    "none": ((2, 3), lambda: None, "value.dtype=object"),
    "none for a vector": ((3,), lambda: None, "value.dtype=object is not numeric"),
    "dict": ((2, 3), lambda: {"a": 1}, "value.dtype=object"),
    "set": ((3,), lambda: {1, 2, 3}, "value.dtype=object is not numeric"),
    "generator": ((3,), lambda: (i for i in range(3)), "value.dtype=object is not numeric"),
    "fields": ((3,), lambda: np.zeros(3, dtype=[("a", float)]), "is not numeric"),
    "masked": ((3,), lambda: np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "value has 1 masked entries"),
    "sparse": ((3,), sparse, "a sparse matrix becomes an array by .toarray()"),
    "ragged": ((2, 3), lambda: [[1.0, 2.0, 3.0], [1.0]], "value"),
    "ragged for a vector": ((3,), lambda: [[1], [2, 3]], "value is not a rectangular array"),
}


@pytest.fixture
def ledger(tmp_path):
    return ln.Ledger.open(tmp_path / "l", epsilon=5, delta=1e-5)


@pytest.mark.parametrize("name", ["analytic-gaussian", "l2", "r1smg", "laplace", "discrete-gaussian"])
@pytest.mark.parametrize(("shape", "make", "words"), VALUES.values(), ids=VALUES)
def test_values_are_refused_before_anything_is_drawn_or_spent(name, shape, make, words, ledger, no_randomness):
    mechanism = released(name, shape)
    refused(lambda: mechanism.release(make(), ledger=ledger), words)
    assert ledger.records() == []
    refused(lambda: mechanism.release(make()), words)
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    refused(lambda: mechanism.release(make(), rng=rng), words)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(
    "value",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.ma.array([1.0, 2.0, 3.0]),
        np.ones(3, dtype=np.float16),
        np.ones(3, dtype=np.uint8),
    ],
    ids=repr,
)
def test_values_that_can(vector, value):
    assert vector.release(value).value.shape == (3,)


def test_a_column_of_a_table_can_be_released(vector):
    assert vector.release(pandas_frame()["a"]).value.shape == (3,)


@pytest.mark.parametrize(
    "rng", [42, 7, 0, "seed", True, np.random.RandomState(0), np.random, np.random.PCG64(1), Stream]
)
def test_anything_but_a_generator_is_refused(rng, matrix, no_randomness):
    for call in (lambda: matrix.noise(rng=rng), lambda: matrix.release(np.zeros((2, 3)), rng=rng)):
        with pytest.raises(ln.InvalidInput, match=r"rng=.* is not a NumPy generator"):
            call()


def test_a_seed_is_answered_with_the_fix(matrix):
    refused(lambda: matrix.noise(rng=42), "rng=42", "default_rng")
    refused(lambda: matrix.release(np.zeros((2, 3)), 7), "rng=7 is not a NumPy generator")


def test_the_value_is_checked_before_the_generator(matrix, no_randomness):
    refused(lambda: matrix.release(np.zeros(3), rng=42), "value.shape")


def test_other_arguments_of_a_release(vector):
    value = np.ones(3)
    refused(lambda: vector.release(value, ledger="l.ledger"), "ledger='l.ledger' is not a ledger", "Ledger.open")
    refused(lambda: vector.release(value, out=[0, 0, 0]), "out of type list is not a NumPy array")
    refused(lambda: vector.release(value, threads="2"), "threads='2' is not a whole number")
    refused(lambda: vector.release(value, partition="a"), "partition='a' is of no use without a ledger")


def test_a_table_is_paid_from_a_ledger_and_not_from_its_path():
    question = ln.Table({"age": [30, 40]}).aggregate(ln.count())
    refused(lambda: question.release(1, 1e-6, ledger="l.ledger"), "ledger='l.ledger' is not a ledger", "Ledger.open")
    refused(lambda: question.release(1, 1e-6, partition="a"), "partition='a' is of no use without a ledger")
    year = {"times": 12, "epsilon": 1, "delta": 1e-6}
    plan = lambda: ln.plan_releases(question, **year)  # noqa: E731
    refused(plan, "schedule of type TableQuestion", "release each with its part of epsilon")


# Descriptions, ledgers and data.


@pytest.mark.parametrize("text", ["{", "[]", "", "null", "3", None, 7, '{"schema": 1}', '{"schema": 99, "parts": []}'])
def test_descriptions_that_are_not_ours(text):
    refused(lambda: ln.Mechanism.from_json(text))
    refused(lambda: ln.Composition.from_json(text))


def test_a_description_of_another_version(vector):
    values = {**vector.to_dict(), "schema": 99}
    refused(lambda: ln.Mechanism.from_json(json.dumps(values)), "schema=99", "another version")
    refused(lambda: ln.Mechanism.from_dict(7), "description=7 is not a dict")


@pytest.mark.parametrize("path", [3, None, ["a"]])
def test_ledgers_of_no_path(path):
    refused(lambda: ln.Ledger.open(path, epsilon=1, delta=1e-6), f"path={path!r} is not a path")


def test_masked_rows_are_not_counted_in_silence():
    query = ln.Histogram.grid(["x"], bins=(2,), bounds=((0, 1),))
    hidden = np.ma.array([0.1, 0.2, 0.9], mask=[0, 0, 1])
    refused(lambda: query.answer({"x": hidden}), "data['x'] has 1 masked entries")
    refused(lambda: query.answer(hidden.reshape(3, 1)), "data has 1 masked entries")
    refused(lambda: ln.Histogram.grid(["x"], bins=2, bounds=((0, 1),)), "bins=2 must have one part", "bins=(89,)")


# On the command line.

RUNNER = CliRunner()
TARGET = ["--sensitivity", "1", "--epsilon", "0.5", "--delta", "1e-7"]
SHAPED = ["--shape", "4", *TARGET]
COMMANDS = {
    "plan": SHAPED,
    "check": ["l2", *SHAPED],
    "audit": ["l2", *SHAPED, "--samples", "1000"],
    "release": ["IN", "OUT", *TARGET],
    "ledger spend": ["LEDGER", "l2", *SHAPED],
    "histogram": [
        "DATA", "--x", "a", "--bins", "4", "--bounds", "0:1", "--epsilon", "1", "--delta", "1e-6", "--out", "DIR",
    ],
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "in.npy", np.arange(4.0))
    (tmp_path / "data.csv").write_text("a\n0.5\n0.25\n")
    assert (
        RUNNER.invoke(app, ["ledger", "create", str(tmp_path / "l"), "--epsilon", "9", "--delta", "1e-5"]).exit_code
        == 0
    )
    return {"IN": "in.npy", "OUT": "out.npy", "LEDGER": "l", "DATA": "data.csv", "DIR": "counts"}


def command(name, files, folder, **changed):
    """The working command line, with some options set to other values."""
    words = [str(folder / files[word]) if word in files else word for word in COMMANDS[name]]
    for option, value in changed.items():
        flag = "--" + option.replace("_", "-")
        if flag in words:
            words[words.index(flag) + 1] = value
        else:
            words += [flag, value]
    return [*name.split(), *words]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("epsilon", "abc", "epsilon='abc' is not a number"),
        ("epsilon", "", "epsilon='' is not a number"),
        ("epsilon", "0", "epsilon=0.0 must be above 0"),
        ("epsilon", "-1", "epsilon=-1.0 must be above 0"),
        ("epsilon", "nan", "epsilon=nan is not finite"),
        ("epsilon", "inf", "epsilon=inf is not finite"),
        ("delta", "1", "delta=1.0 must lie strictly between 0 and 1"),
        ("delta", "-1e-6", "delta=-1e-06 must lie strictly between 0 and 1"),
        ("delta", "0", "delta=0.0 must lie strictly between 0 and 1"),
        ("delta", "1e-250", "delta=1e-250 is below 1e-200"),
    ],
)
def test_bad_targets(name, option, value, words, files, tmp_path):
    before = sorted(tmp_path.iterdir())
    refused_command(command(name, files, tmp_path, **{option: value}), words, ":")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["plan", "check", "audit", "release", "ledger spend"])
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("sensitivity", "0", "sensitivity=0.0 must be above 0"),
        ("sensitivity", "nan", "sensitivity=nan is not finite"),
        ("l1_sensitivity", "-2", "l1_sensitivity=-2.0 must be above 0"),
        ("objective", "smallest", "objective='smallest'"),
        ("bound", "x", "bound='x' is not a number"),
    ],
)
def test_bad_settings_of_the_noise(name, option, value, words, files, tmp_path):
    refused_command(command(name, files, tmp_path, **{option: value}), words)


@pytest.mark.parametrize("name", ["plan", "check", "audit", "ledger spend"])
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("abc", "shape='abc' is not a shape: write 7921 or 89x89"),
        ("0", "must hold whole numbers of at least 1"),
        ("3x-1", "must hold whole numbers of at least 1"),
        ("2.5", "shape='2.5' is not a shape"),
        ("10000000x10000000", "has more than 1000000000000 entries"),
    ],
)
def test_bad_shapes(name, shape, words, files, tmp_path):
    refused_command(command(name, files, tmp_path, shape=shape), words)


@pytest.mark.parametrize("name", ["check", "audit", "ledger spend"])
def test_an_unknown_mechanism_gets_a_suggestion(name, files, tmp_path):
    words = ["lapalce" if word == "l2" else word for word in command(name, files, tmp_path)]
    refused_command(words, "mechanism='lapalce' is not known: perhaps 'laplace' is meant")


@pytest.mark.parametrize("name", ["release", "histogram"])
def test_an_unknown_mechanism_by_option(name, files, tmp_path):
    refused_command(
        command(name, files, tmp_path, mechanism="bset"), "mechanism='bset' is not known: perhaps 'best' is meant"
    )


@pytest.mark.parametrize("name", ["release", "histogram", "audit"])
@pytest.mark.parametrize(
    ("seed", "words"), [("-1", "seed=-1 must be at least 0"), ("x", "seed='x' is not a whole number")]
)
def test_bad_seeds(name, seed, words, files, tmp_path):
    refused_command(command(name, files, tmp_path, seed=seed), words)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_arguments_name_what_is_needed(name):
    refused_command(name.split(), "is missing:", f"{name} needs", f"{name} --help'")


@pytest.mark.parametrize("name", [*COMMANDS, "claims", "frontier", "selftest", "ledger show"])
def test_unknown_options_and_stray_words(name):
    refused_command([*name.split(), "--epslion", "1"], "--epslion")


def test_an_unknown_command_gets_a_suggestion():
    refused_command(["plann"], "plann", "'plan'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a readable .npy array"),
        (b"\x93NUMPY\x01\x00", "is not a readable .npy array"),
        (b"1,2,3\n", "is not a readable .npy array"),
        (b"PK\x03\x04rest of a zip", "is not a readable .npy array"),
    ],
)
def test_corrupt_arrays(content, words, files, tmp_path):
    (tmp_path / "in.npy").write_bytes(content)
    refused_command(command("release", files, tmp_path), words, "write it with numpy.save")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.array([1.0, np.nan, 1.0]), "value[1]=nan is not finite"),
        (np.array(["a"]), "dtype=<U1 is not numeric"),
        (np.array([1j]), "dtype=complex128"),
        (np.zeros(0), "shape=(0,)"),
    ],
)
def test_unusable_arrays(value, words, files, tmp_path):
    np.save(tmp_path / "in.npy", value)
    refused_command(command("release", files, tmp_path), words)
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.slow
def test_files_that_are_not_there(files, tmp_path):
    refused_command(["release", tmp_path / "none.npy", tmp_path / "out.npy", *TARGET], "none.npy does not exist")
    refused_command(["release", tmp_path, tmp_path / "out.npy", *TARGET], f"input={tmp_path}")
    refused_command(["release", tmp_path / "in.npy", tmp_path / "no" / "out.npy", *TARGET], "create", "first")
    refused_command(["ledger", "show", tmp_path / "none"], "none")
    refused_command(["ledger", "show", tmp_path / "in.npy"], "in.npy")
    refused_command(["histogram", tmp_path / "none.csv", *COMMANDS["histogram"][1:-1], tmp_path / "d"], "none.csv")
    refused_command(["histogram", tmp_path / "in.npy", *COMMANDS["histogram"][1:-1], tmp_path / "d"], "in.npy")


def test_output_that_exists(files, tmp_path):
    (tmp_path / "out.npy").write_text("precious")
    refused_command(command("release", files, tmp_path), "out.npy exists already", "--force")
    assert (tmp_path / "out.npy").read_text() == "precious"
    (tmp_path / "folder").mkdir()
    refused_command(["release", tmp_path / "in.npy", tmp_path / "folder", *TARGET], "is a folder")


def test_an_input_without_permission(files, tmp_path, monkeypatch):
    def refused(path, *_, **__):  # what the system does to anyone but root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refused)
    refused_command(command("release", files, tmp_path), "in.npy", "ermission denied")


def test_an_output_that_cannot_be_written_is_told_before_the_ledger_pays(files, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode, **_: not mode & os.W_OK)
    refused_command(
        ["release", tmp_path / "in.npy", tmp_path / "out.npy", *TARGET, "--ledger", tmp_path / "l"],
        f"output={tmp_path / 'out.npy'}",
        "may not be written",
    )
    monkeypatch.undo()
    shown = RUNNER.invoke(app, ["ledger", "show", str(tmp_path / "l"), "--json"])
    assert json.loads(shown.stdout)["records"] == 0


# As processes: pipes, signals, names of files, terminals.


def start(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "lessnoise", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


@pytest.mark.slow
def test_a_closed_pipe_ends_the_run_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(
        [sys.executable, "-m", "lessnoise", "plan", *SHAPED, "--json"], stdout=writer, stderr=subprocess.PIPE
    ) as process:
        os.close(writer)
        _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 141


def test_an_interrupt_is_told_and_leaves_nothing(files, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(os, "link", interrupted)  # all is computed, and the file is about to appear
    result = RUNNER.invoke(app, [*command("release", files, tmp_path), "--mechanism", "l2"])
    assert (result.exit_code, result.stderr) == (130, "interrupted: no half-written file is left.\n")
    assert sorted(tmp_path.iterdir()) == before


def test_an_interrupt_outside_a_command_ends_the_run_too(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setitem(run.__globals__, "app", interrupted)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_names_that_are_not_utf_8(tmp_path):
    name = os.fsdecode(bytes(tmp_path) + b"/\xff\xfe.npy")
    missing = start("release", name, str(tmp_path / "out.npy"), *TARGET)
    _, errors = missing.communicate()
    assert missing.returncode == 2
    assert b"does not exist" in errors
    assert b"Traceback" not in errors
    np.save(name, np.arange(3.0))
    good = start("release", name, name + "2.npy", *TARGET)
    output, errors = good.communicate()
    assert (good.returncode, errors) == (0, b"")
    assert b"wrote" in output


@pytest.mark.slow
def test_a_narrow_terminal_without_colour():
    process = start(
        "check", "r1smg-published", *SHAPED, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "40", "TERM": "xterm"}
    )
    output, errors = process.communicate()
    assert process.returncode == 1
    assert b"\x1b" not in output + errors
    assert b"FAILS" in output


def test_an_audit_that_would_not_end(files, tmp_path):
    words = command("audit", files, tmp_path, shape="1000000", samples="10000000")
    refused_command(words, "samples=10000000 releases of 1000000 entries", "pass fewer samples")


def test_tables_that_are_empty_or_folders(files, tmp_path):
    (tmp_path / "empty.csv").write_text("")
    rest = command("histogram", files, tmp_path)[2:]
    refused_command(["histogram", tmp_path / "empty.csv", *rest], "empty.csv is empty")
    refused_command(["histogram", tmp_path, *rest], "is a folder", "*.parquet")


def test_a_ledger_that_is_not_there(files, tmp_path):
    refused_command(command("release", files, tmp_path, ledger=str(tmp_path / "none")), "lessnoise ledger create")
    assert not (tmp_path / "none").exists()
