"""Certificates that were changed: numbers nudged, words and types swapped, fields left out, JSON that no one writes."""

import copy
import json
import math

WORDS = {
    "add/remove": "replace",
    "replace": "add/remove",
    "cube": "corner",
    "corner": "cube",
    "laplace": "gaussian",
    "gaussian": "laplace",
    "any": "moved",
    "moved": "any",
    "radial": "laplace",
    "geometric": "discrete-gaussian",
    "counts": "ball",
    "box": "corner",
}
ODD = (None, True, "", "1", [], {}, -1, 0, 1e308, 5e-324, 10**400, -0.0, [[[]]], {"float64": "AAAA"}, {"float64": "?"})


def leaves(values, path=()):
    """Paths to all that is neither an object nor a list."""
    if isinstance(values, dict):
        for name, value in values.items():
            yield from leaves(value, (*path, name))
    elif isinstance(values, list):
        for place, value in enumerate(values):
            yield from leaves(value, (*path, place))
    else:
        yield path


def at(values, path):
    for step in path:
        values = values[step]
    return values


def put(values, path, value):
    at(values, path[:-1])[path[-1]] = value


def nudged(value, rng):
    """Another number, near or far."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value + rng.choice([-2, -1, 1, 2, value, 10**6]))
    step = float(10.0 ** -rng.integers(1, 16))
    choices = [
        value * (1.0 - step),
        value * (1.0 + step),
        value * 0.5,
        value * 2.0,
        value * 1e-6,
        math.nextafter(value, 0.0),
        -value,
        0.0,
    ]
    return float(choices[rng.integers(len(choices))])


def mutated(certificate, rng):
    """The bytes of a changed certificate, and words for what was changed."""
    values, kind = (
        copy.deepcopy(certificate),
        rng.choice(["number", "number", "number", "word", "odd", "drop", "add", "text"]),
    )
    paths = list(leaves(values))
    numbers = [
        path for path in paths if isinstance(at(values, path), (int, float)) and not isinstance(at(values, path), bool)
    ]
    path = paths[rng.integers(len(paths))]
    if kind == "number":
        path = numbers[rng.integers(len(numbers))]
        put(values, path, nudged(at(values, path), rng))
    elif kind == "word":
        known = [one for one in paths if at(values, one) in WORDS]
        if known:
            path = known[rng.integers(len(known))]
            put(values, path, WORDS[at(values, path)])
    elif kind == "odd":
        put(values, path, copy.deepcopy(ODD[rng.integers(len(ODD))]))
    elif kind == "drop":
        parent = at(values, path[:-1])
        del parent[path[-1]]
    elif kind == "add":
        parent = at(values, path[:-1])
        if isinstance(parent, dict):
            parent["more"] = 1.0
        else:
            parent.append(1.0)
    text = json.dumps(values)
    if kind == "text":
        text = broken(text, rng)
    return text.encode(), f"{kind} {'.'.join(map(str, path))}"


def broken(text, rng):
    """JSON that a program did not write."""
    which = rng.integers(6)
    if which == 0:
        return text[: rng.integers(len(text))]
    if which == 1:
        return "[" * int(rng.integers(1, 200_000)) + text
    if which == 2:
        return '{"schema": 2, "kind": "release", "mechanism": ' + '{"noise":' * 2000 + "1" + "}" * 2000 + "}"
    if which == 3:
        return text.replace(": 1", ": NaN", 1)
    if which == 4:
        return text.replace(": 1", ": 1e999", 1)
    return text.replace('"schema": 2', '"schema": 2, "schema": 2', 1)
