"""Bad input: refused in one sentence that names the argument and its value, before anything is drawn."""

import math
import os
import re

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.noise.stream import Reader, Stream

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
}

# Argument, values that every builder must refuse, and how the message shows them (str of the value if None).
WRONG = {
    "epsilon": [0, 0.0, -1, -0.5, NAN, INF, -INF, "1", None, True, 1j, [1.0], np.array([1.0, 2.0])],
    "delta": [0, 1, -1, 2, 1.0, NAN, INF, "1e-6", None, False, 1e-300],
    "sensitivity": [0, -1, 0.0, NAN, INF, "1", None, True, 2j],
    "shape": [0, -1, 2.5, "x", "12", True, None, (0,), (2, -1), (2, 2.5), (2, True), {2}, 10**13, (10**7, 10**7)],
    "neighbours": ["", "add", None, 1, "REPLACE"],
}


def refused(call):
    """The message of the InvalidInput that a call must raise: one sentence, for people."""
    with pytest.raises(ln.InvalidInput) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, ln.LessnoiseError)
    message = str(caught.value)
    assert message.endswith(".")
    assert not re.search(r"[.!?]['\")]*\s+[A-Z]", message), message
    assert "\n" not in message
    assert "object at 0x" not in message
    return message


def shown(name, value):
    """Every way in which name=value may be written."""
    ways = {f"{name}={value}", f"{name}={value!r}"}
    if isinstance(value, float):
        ways.add(f"{name}={value:g}")
    return ways


def assert_names(message, name, value):
    assert any(way in message for way in shown(name, value)), message


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
    ],
)
def test_builders_refuse(builder, name, value, no_randomness):
    arguments = {**GOOD, **BUILDERS[builder], name: value}
    if builder == "laplace":
        del arguments["delta"]
    message = refused(lambda: getattr(ln, builder)(**arguments))
    assert_names(message, name, value)


@pytest.mark.parametrize("name", ["epsilon", "sensitivity"])
@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["huge", "minus huge"])
def test_an_integer_beyond_any_float_is_refused(name, value):
    assert f"{name}=" in refused(lambda: ln.analytic_gaussian(**{**GOOD, name: value}))


CHOICES = [
    ("r1smg", {"calibration": "Published"}, "calibration='Published'"),
    ("r1smg", {"calibration": None}, "calibration=None"),
    ("r1smg", {"calibration": 1}, "calibration=1"),
    ("zhao_gaussian", {"variant": 0}, "variant=0"),
    ("zhao_gaussian", {"variant": 3}, "variant=3"),
    ("zhao_gaussian", {"variant": "1"}, "variant='1'"),
    ("zhao_gaussian", {"variant": None}, "variant=None"),
    pytest.param(
        "zhao_gaussian",
        {"variant": True},
        "variant=True",
    ),
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
    assert expected in refused(lambda: getattr(ln, builder)(**{**GOOD, **BUILDERS[builder], **changes}))


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
    assert expected in refused(lambda: ln.Mechanism(**{**fields, **changes}))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ln.Guarantee(-1, 1e-6), "epsilon=-1"),
        (lambda: ln.Guarantee(NAN, 1e-6), "epsilon=nan"),
        (lambda: ln.Guarantee(1, -1e-6), "delta=-1e-06"),
        (lambda: ln.Guarantee(1, 2), "delta=2"),
        (lambda: ln.Guarantee(1, NAN), "delta=nan"),
        (lambda: ln.Guarantee(1, "x"), "delta='x'"),
        pytest.param(
            lambda: ln.Guarantee(1, True),
            "delta=True",
        ),
        (lambda: ln.Claim(1, 0.1, "nobody"), "neighbours='nobody'"),
        (lambda: ln.Bracket(2, 1), "lower=2"),
        (lambda: ln.Bracket(NAN, 1), "lower=nan"),
    ],
)
def test_statements_refuse(call, expected):
    assert expected in refused(call)


# Questions to a mechanism.


@pytest.mark.parametrize("law", [ln.Radial(6, 2, 3.0), ln.Radial(1, 2, 3.0), ln.Radial(6, 1, 3.0), ln.Laplace(3.0)])
@pytest.mark.parametrize(
    ("question", "name", "value"),
    [
        *(("delta", "epsilon", value) for value in (-1, -1e-300, NAN, INF, "1", None, True)),
        *(("guarantee", "epsilon", value) for value in (-1, NAN, INF)),
        *(("epsilon", "delta", value) for value in (-0.1, 1, 1.5, NAN, INF, "0.1", None)),
        *(("loss_quantile", "q", value) for value in (0, 1, -0.1, 1.1, NAN, "0.5", None)),
    ],
)
def test_questions_are_checked(law, question, name, value):
    mechanism = ln.Mechanism("test", law, (2, 3), 1.0)
    assert_names(refused(lambda: getattr(mechanism, question)(value)), name, value)


# Values to release.

VALUES = {
    "nan": (np.array([[0.0, 1.0, NAN], [0.0, 0.0, 0.0]]), "value[0, 2]=nan"),
    "inf": (np.array([[0.0, 1.0, 2.0], [0.0, INF, 0.0]]), "value[1, 1]=inf"),
    "minus inf": (np.array([[0.0, 1.0, 2.0], [-INF, 1.0, 0.0]]), "value[1, 0]=-inf"),
    "transposed": (np.zeros((3, 2)), "value.shape=(3, 2)"),
    "flat": (np.zeros(6), "value.shape=(6,)"),
    "scalar": (1.0, "value.shape=()"),
    "extra axis": (np.zeros((1, 2, 3)), "value.shape=(1, 2, 3)"),
    "empty": ([], "value.shape=(0,)"),
    "strings": (np.full((2, 3), "1.0"), "value.dtype=<U3"),
    "complex": (np.zeros((2, 3), dtype=complex), "value.dtype=complex128"),
    "bool": (np.zeros((2, 3), dtype=bool), "value.dtype=bool"),
    "object": (np.zeros((2, 3), dtype=object), "value.dtype=object"),
    "dates": (np.zeros((2, 3), dtype="datetime64[s]"), "value.dtype=datetime64[s]"),
    "none": (None, "value.dtype=object"),
    "dict": ({"a": 1}, "value.dtype=object"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0]], "value"),
}

RELEASED = [
    ln.analytic_gaussian(**GOOD),
    ln.l2_mechanism(**GOOD),
    ln.r1smg(**GOOD, calibration="exact"),
    ln.laplace(epsilon=1, sensitivity=1, shape=(2, 3)),
]


@pytest.mark.parametrize("mechanism", RELEASED, ids=lambda mechanism: mechanism.name)
@pytest.mark.parametrize(
    "kind",
    list(VALUES),
)
def test_values_are_refused_before_any_draw(kind, mechanism, no_randomness):
    value, expected = VALUES[kind]
    assert expected in refused(lambda: mechanism.release(value))
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    assert expected in refused(lambda: mechanism.release(value, rng=rng))
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("rng", [42, 0, "seed", True, np.random.RandomState(0), np.random, np.random.PCG64(1), Stream])
def test_anything_but_a_generator_is_refused(rng, no_randomness):
    mechanism = RELEASED[0]
    with pytest.raises(ln.InvalidInput, match="rng="):
        mechanism.noise(rng=rng)
    with pytest.raises(ln.InvalidInput, match="rng="):
        mechanism.release(np.zeros((2, 3)), rng=rng)


def test_a_seed_is_answered_with_the_fix():
    assert "rng=42" in refused(lambda: RELEASED[0].noise(rng=42))
    assert "default_rng" in refused(lambda: RELEASED[0].noise(rng=42))


def test_the_value_is_checked_before_the_generator(no_randomness):
    assert "value.shape" in refused(lambda: RELEASED[0].release(np.zeros(3), rng=42))
