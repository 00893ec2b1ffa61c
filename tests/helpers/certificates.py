"""Certificates of all kinds, and whether one that was called proved is true by the library's own curves."""

import dataclasses
import functools
import json
import warnings

import numpy as np

import lessnoise as ln
from lessnoise.audit.random_mechanisms import KINDS, random_mechanism
from lessnoise.noise import Stream, machine_delta
from lessnoise.release import Certificate
from lessnoise.release.coverage import covers

ROWS = {"kind": ["a", "b", "a", "b"], "age": [30.0, 40.0, 50.0, 60.0], "size": [1.0, 2.0, 3.0, 4.0], "id": [1, 2, 3, 3]}


def of(mechanism, asked=None):
    """The certificate of a release, as JSON has it."""
    return json.loads(Certificate.of(mechanism, Stream.secure(), asked=asked).to_json())


@functools.lru_cache
def examples(seed=0, each=1):
    """Some of every kind of mechanism, query and document."""
    rng, found = np.random.default_rng(seed), {}
    for kind in KINDS:
        for index in range(each):
            example = random_mechanism(rng, kind)
            upper = example.mechanism.delta(example.epsilon).upper
            claim = ln.Claim(example.epsilon, min(upper * 1.01, 0.999), example.mechanism.neighbours)
            found[f"{kind} {index}"] = of(dataclasses.replace(example.mechanism, claim=claim))
    queries = {
        "histogram": ln.Histogram([ln.Axis("kind", keys=["a", "b"])]),
        "sum": ln.Sum(["age"], bounds=(0, 100)),
        "two sums": ln.Sum(["age", "size"], bounds=[(0, 100), (-1, 5)]),
    }
    for name, query in queries.items():
        for unit in (ln.Unit(), ln.Unit("id", max_rows=2)):
            answer = query.answer(ROWS, unit=unit)
            release = answer.release(epsilon=1, delta=1e-6)
            found[f"{name} of {unit}"] = json.loads(release.certificate.to_json())
    groups = ln.Table(ROWS).group_by("kind", keys=["a", "b"])
    answer = groups.aggregate(ln.count(), ln.mean("age", bounds=(0, 100))).release(epsilon=1, delta=1e-6)
    found["table"] = json.loads(json.dumps(answer.certificate))
    gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    found["composition"] = json.loads(json.dumps(gaussian.repeat(10).certificate(3.0)))
    return found


def is_true(values):
    """Whether what a certificate guarantees is so, by the library's curves; None if these know no such mechanism."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if "releases" in values:
                mechanisms = [ln.Mechanism.from_dict(one["mechanism"]) for one in values["releases"]]
                whole = ln.compose(*mechanisms)
                return all(map(is_true, values["releases"])) and _within(whole, values["guarantee"])
            if "parts" in values:
                whole = ln.Composition.from_dict({"schema": 1, "parts": values["parts"]})
                return _within(whole, values["guarantee"])
            mechanism = ln.Mechanism.from_dict(values["mechanism"])
            if isinstance(values.get("query"), dict):
                asked = ln.query.read_asked(values["query"])
                inside = covers(mechanism, asked) or _smaller_box(asked.changes, mechanism.changes)
                if asked.query.shape != mechanism.shape or not inside:
                    return False
            exact = mechanism.delta(values["guarantee"]["epsilon"])
            if exact.lower * (1.0 - 1e-13) > values["exact_delta"]["upper"]:
                return False
        except ln.LessnoiseError:
            return None
        return values["private"] is True and _within(mechanism, values["guarantee"])


def _smaller_box(one, other):
    """Whether every bound of a box is at most that of another: the library looks for the same set only."""
    boxes = all(isinstance(each, ln.changes.Box) and isinstance(each.bounds, tuple) for each in (one, other))
    return boxes and all(a <= b for a, b in zip(one.bounds, other.bounds, strict=True))


def _within(mechanism, guarantee):
    epsilon = guarantee["epsilon"]
    total = mechanism.delta(epsilon).lower + machine_delta(epsilon, mechanism.machine_distance)
    return total * (1.0 - 1e-11) <= guarantee["delta"] and guarantee["neighbours"] == mechanism.neighbours.value
