"""Certificates of every kind are proved; changed ones only where they are true by the library's own curves.

``benchmarks/verifier.py`` does the same with thousands.
"""

import json

import numpy as np
import pytest

from lessnoise.audit import compare_curves
from lessnoise_verify import verify
from tests.helpers.certificates import examples, is_true
from tests.helpers.mutants import mutated

MUTANTS = 120


@pytest.mark.slow
def test_certificates_of_every_kind_are_proved():
    for name, values in examples().items():
        found = verify(json.dumps(values).encode())
        assert found.word == "proved", (name, found.reason)


@pytest.mark.slow
def test_no_changed_certificate_is_called_proved_that_is_not_true():
    originals, rng, words = examples(), np.random.default_rng(11), []
    names = list(originals)
    for index in range(MUTANTS):
        name = names[index % len(names)]
        content, change = mutated(originals[name], rng)
        words.append(verify(content).word)
        if words[-1] == "proved":
            assert is_true(json.loads(content)) is not False, (name, change, content[:300])
    assert words.count("refuted") > MUTANTS // 8
    assert words.count("unreadable") > MUTANTS // 8


def test_an_untrue_certificate_is_untrue_by_the_helper_too():
    values = json.loads(json.dumps(examples()["Gaussian 0"]))
    assert is_true(values)
    values["guarantee"]["delta"] *= 0.9
    assert is_true(values) is False
    values = json.loads(json.dumps(examples()["sum of one row"]))
    assert is_true(values)
    values["query"]["description"]["bounds"] = [[0.0, 101.0]]
    assert is_true(values) is False


@pytest.mark.slow
def test_curves_and_enclosures_of_random_mechanisms_meet():
    found = compare_curves(34, np.random.default_rng(5))
    assert all(each.meets for each in found)
    assert sum(each.proved is not None for each in found) >= 33
    assert sum(each.inside for each in found) >= 30


@pytest.mark.parametrize("name", ["two sums of one row", "histogram of one row"])
@pytest.mark.parametrize("factor", [0.5, 2.0, 1.0 + 1e-6])
def test_a_sensitivity_beside_a_set_is_that_of_the_set(name, factor):
    values = json.loads(json.dumps(examples()[name]))
    values["mechanism"]["sensitivity"] *= factor
    assert verify(json.dumps(values).encode()).word == "refuted"
