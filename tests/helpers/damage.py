"""Damaged and forged descriptions: mutations, the same in each run, each refused in one sentence or usable."""

import ast
import copy
import math
import random
import signal
from pathlib import Path

import lessnoise as ln

MUTATIONS = 40  # of each example
PATIENCE = 30  # seconds of this process's own time, for what takes milliseconds: against hanging, no measurement


def try_damaged(reader, name, values, use):
    """Read and use an example, then every mutation of it."""
    chance = random.Random(f"{name} {reader.__qualname__}")
    try_one(reader, values, use)
    for _ in range(MUTATIONS):
        try_one(reader, mutated(values, chance), use)


def classes_read_back(package):
    """The names of all classes of a package's sources that have ``from_dict``."""
    return {
        node.name
        for path in Path(package.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and any(getattr(one, "name", "") == "from_dict" for one in node.body)
    }


def attempt(action):
    """The result, or None if it was refused as it should be."""
    try:
        return action()
    except ln.LessnoiseError as error:
        sentence = str(error)
    assert len(sentence) < 500, sentence
    assert sentence.endswith("."), sentence
    sentence.encode()
    return None


def interrupted(*_):
    raise AssertionError("this takes too long")


def try_one(reader, values, use):
    """Read it and use it, all within bounds."""
    signal.signal(signal.SIGPROF, interrupted)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        found = attempt(lambda: reader(values))
        if found is not None:
            use(found)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def deep(depth):
    nested = []
    for _ in range(depth):
        nested = [nested]
    return nested


NASTY = [
    None, True, False, 0, 1, -1, 2, 3, 1.5, -0.0, 0.1, 1e-320, 1e-300, 1e-12, 1e12, 1e18, 1e300, 2**53 + 1, 10**12,
    10**15, 10**18, 10**20, 10**400, -(10**400), 10**5000, -(10**5000), math.nan, math.inf, -math.inf, "", "1", "1e3",
    "nan", "replace", "radial", "laplace", "shells", "\ud800", "\x00", "\x1b[31m", "a" * 10**5, "=1+1", [], [[]], [1],
    [0], [-1], [True], ["1"], [None], [math.nan], [1] * 40, [10**6, 10**6], [1, 2, 3], [[1, 2], [3]], [10**20],
    {}, {"a": 1}, {"kind": "radial"}, {"lower": 0, "upper": 1},
]  # fmt: skip
HUGE = [lambda: deep(10**5), lambda: [1] * 10**5, lambda: [0.5] * 10**5, lambda: {str(i): i for i in range(10**4)}]


def places(values):
    """Every place of a tree: its container and the key in it."""
    found, waiting = [], [values]
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        found += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys if isinstance(inner[key], (dict, list))]
    return found


def mutated(values, chance):
    """A copy with one to three changes."""
    holder = {"root": copy.deepcopy(values)}
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        container, key = chance.choice(places(holder))
        old = container[key]
        action = chance.randrange(12)
        if action == 0 and isinstance(container, dict) and container is not holder:
            del container[key]
        elif action == 1 and isinstance(container, dict) and container is not holder:
            container[chance.choice((f"{key}s", key.upper(), "", "extra", "\ud800"))] = container.pop(key)
        elif action == 2 and isinstance(old, dict):
            old[chance.choice(("extra", "kind", "schema", "neighbours", "\x00"))] = chance.choice(NASTY)
        elif action == 3 and isinstance(old, list):
            old.append(chance.choice([*NASTY, *old]))
        elif action == 4 and isinstance(old, list) and old:
            old.pop(chance.randrange(len(old)))
        elif action == 5:
            container[key] = [old]
        elif action == 6:
            other, place = chance.choice(places(holder))
            container[key] = copy.deepcopy(other[place])
        elif action == 7 and isinstance(old, (int, float)) and abs(old) < 1e300:
            container[key] = old * 10.0 ** chance.randint(-30, 30)
        elif action == 8 and isinstance(old, (int, float)) and abs(old) < 1e300:
            container[key] = chance.choice((-old, old + 1, old - 1, str(old), old * 2, old / 3))
        elif action == 9 and isinstance(old, str):
            container[key] = chance.choice((old.upper(), old[1:], old + "=", old * 2, f" {old}"))
        elif action == 10 and chance.random() < 0.2:
            container[key] = chance.choice(HUGE)()
            break  # too deep to be copied
        else:
            container[key] = copy.deepcopy(chance.choice(NASTY))
    return holder["root"]
