"""The form of certificates: version 2 and its schema, and files of version 1."""

import json
from importlib import resources

import jsonschema
import numpy as np
import pytest

import lessnoise as ln
from lessnoise import Certificate, doubles
from lessnoise_verify import verify
from tests.helpers.certificates import examples
from tests.helpers.mutants import at, leaves, put

SCHEMA = json.loads(resources.files("lessnoise_verify").joinpath("certificate.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def version_1(values):
    """The same certificate as version 1 wrote it."""
    old = {name: value for name, value in values.items() if name != "kind"}
    return {**old, "schema": 1, "mechanism": doubles.expanded(values["mechanism"])}


def test_every_certificate_is_valid_and_comes_back():
    for name, values in examples().items():
        VALIDATOR.validate(values)
        if values["kind"] == "release":
            assert json.loads(Certificate.from_dict(values).to_json()) == values, name


def test_files_of_version_1_are_read_by_the_library_and_the_verifier():
    for name, values in examples().items():
        if values["kind"] == "release":
            old = version_1(values)
            assert Certificate.from_dict(old) == Certificate.from_dict(values), name
    gaussian = version_1(examples()["Gaussian 0"])
    assert verify(json.dumps(gaussian).encode()).word == "proved"


def test_the_certificate_of_many_shells_is_short():
    mechanism = ln.shells(
        edges=np.linspace(0, 9, 400), probabilities=np.full(399, 1 / 399), sensitivity=1, shape=1, epsilon=1, delta=0.1
    )
    text = mechanism.release([0.0]).certificate.to_json()
    assert len(text.splitlines()) < 60
    assert Certificate.from_dict(json.loads(text)).mechanism == mechanism


@pytest.mark.parametrize(
    "value", [None, [], "x", 3, {}, {"schema": 3}, {"schema": True}, {"schema": "2"}, {"schema": 2}]
)
def test_anything_else_is_refused_in_one_sentence(value):
    with pytest.raises(ln.InvalidInput) as refused:
        Certificate.from_dict(value)
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


def test_a_table_is_no_certificate_of_a_release():
    with pytest.raises(ln.InvalidInput, match="kind='table' is not 'release'"):
        Certificate.from_dict(examples()["table"])


@pytest.mark.parametrize("table", [{"float64": "A"}, {"float64": 1}, {"float64": "AAAA"}, {"float64": None}])
def test_damaged_tables_are_refused(table):
    values = json.loads(json.dumps(examples()["shells 0"]))
    values["mechanism"]["noise"]["edges"] = table
    with pytest.raises(ln.InvalidInput):
        Certificate.from_dict(values)
    assert verify(json.dumps(values).encode()).word == "unreadable"


def test_a_wrong_type_anywhere_is_against_the_schema():
    values = examples()["Gaussian 0"]
    for path in leaves(values):
        if path[0] in ("mechanism", "guarantee", "exact_delta", "delta_numeric", "private"):
            other = json.loads(json.dumps(values))
            put(other, path, [at(values, path)])
            assert not VALIDATOR.is_valid(other), path


def test_doubles_survive():
    numbers = [*np.random.default_rng(0).normal(size=100).tolist(), 5e-324, -0.0, 1.7976931348623157e308]
    again = doubles.expanded(json.loads(json.dumps(doubles.compact({"a": [numbers, [1, 2]], "b": numbers[:3]}))))
    assert again == {"a": [numbers, [1, 2]], "b": numbers[:3]}


def test_a_certificate_in_words_says_if_it_is_not_private():
    mechanism = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=1)
    seeded = str(mechanism.release([0.0], rng=np.random.default_rng(0)).certificate)
    kept = str(mechanism.release([0.0]).certificate)
    assert kept.startswith("(1, ")
    assert kept.endswith("-DP under add/remove, by the mechanism analytic-gaussian on 1 number")
    assert seeded == f"{kept}; from a seeded generator, and so not private"
