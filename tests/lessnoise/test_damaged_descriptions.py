"""Descriptions that were damaged or forged: each is refused in one sentence, or is one that works.

Every entry of the catalogue, and everything else that is read back from JSON, is mutated in hundreds of ways, the same
in each run. An entry, a law or a class that is new is here by itself, or its test asks for an example.
"""

import ast
import copy
import dataclasses
import json
import math
import random
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

import lessnoise as ln
from lessnoise.learn.plan import TrainingPlan, gaussian
from lessnoise.mechanism import law as laws
from lessnoise.mechanism.catalogue import CATALOGUE, Request
from lessnoise.mechanism.families.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.mechanism.families.matrix_gaussian import MatrixGaussian
from lessnoise.mechanism.least.design import Design
from lessnoise.mechanism.least.search import Answer
from lessnoise.query import Axis
from lessnoise_paper.experiments.components_result import PcaStudy, Point, Spectrum

SOURCES = Path(ln.__file__).parent
MUTATIONS = 40  # of each example, in this test
PATIENCE = 30  # seconds of this process's own time, for what takes milliseconds: against hanging, no measurement
SMALL = 4096  # entries of what is released

REQUESTS = tuple(
    Request(
        1.0,
        1e-6,
        1.0,
        shape,
        l1_sensitivity=1.0,
        k=2.0 if shape == (3,) else 1000.0,
        p=1.5,
        bound=3.0,
        entry_bound=1.0,
        integer=True,
        counts=True,
    )
    for shape in ((4, 4), (3,), (8,))
)


def catalogue_examples():
    """One description of every entry, or of each kind of law that it gives."""
    found = {}
    for name, entry in CATALOGUE.items():
        for request in REQUESTS:
            try:
                built = entry.build(request)
            except ln.LessnoiseError:
                continue
            found.setdefault(f"{name} {built.law.kind}", built)
        assert any(key.split(" ")[0] == name for key in found), f"{name}: no request fits it, so add one"
    return found


def design_of(mechanism):
    """Reads the design of a mechanism's law."""

    def read(values):
        return Design.from_dict(values, mechanism.law, mechanism.dimension)

    return read


def examples():
    """What can be read back, with its reader."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ln.ClaimWarning)
        mechanisms = catalogue_examples()
        basis = FrozenMatrix(np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))[0])
        turned = MatrixGaussian(Deviations.of([1.0, 2.0, 3.0]), Deviations.of([2.0, 2.0]), basis)
        mechanisms["turned"] = ln.Mechanism("turned", turned, (3, 2), 1.0, claim=ln.Claim(1, 0.5))
        mechanisms["wishart"] = ln.mechanism.families.wishart(epsilon=1, features=3, records=10)
        ranges = ln.dawa(epsilon=1, shape=8, workload="ranges")
        mechanisms |= {"ranges": ranges, "unclaimed": dataclasses.replace(ranges, claim=None)}
    gauss, laplace, l2 = (mechanisms[name] for name in ("analytic-gaussian radial", "laplace laplace", "l2 radial"))
    composed = ln.compose(l2.repeat(3), laplace, gauss.subsample(0.01).repeat(10))
    plan = TrainingPlan(gaussian(noise_multiplier=2.0, clip_norm=1.0, parameters=5), 0.1, 3, 100, ln.Guarantee(1, 0.1))
    point = Point("small", "l2", "l2", 1.0, 1.0, ln.Bracket(0.1, 0.2), True, (1.0,), (0.5,))
    lines = np.eye(4)[:2]
    study = PcaStudy(
        "faces", (10, 4), 1e-6, 2, 2, 1.0, 0, 0.9, (point,), np.ones(4), {"small": Spectrum(np.ones(4), lines, 0.1)},
        lines, (2, 2), ("nothing",),
    )  # fmt: skip
    described = [(ln.Mechanism.from_dict, name, built.to_dict()) for name, built in mechanisms.items()]
    kinds = {built.law.kind: built.law for built in mechanisms.values()}
    described += [(laws.law_from_dict, kind, law.to_dict()) for kind, law in kinds.items()]
    certified = ("analytic-gaussian radial", "laplace laplace", "discrete-gaussian discrete-gaussian", "hb hierarchy")
    described += [
        (
            ln.Certificate.from_dict,
            name,
            mechanisms[name].release(np.zeros(mechanisms[name].shape)).certificate.to_dict(),
        )
        for name in certified
    ]
    shells = mechanisms["least-noise shells"]
    others = {
        ln.Composition: composed,
        type(composed.parts[0]): composed.parts[-1],
        ln.Guarantee: ln.Guarantee(1, 1e-6),
        ln.Claim: ln.Claim(1, 1e-6, source="someone"),
        ln.Bracket: ln.Bracket(0.1, 0.2),
        Answer: Answer(shells.law, "nothing"),
        Deviations: turned.row_deviations,
        FrozenMatrix: basis,
        MatrixGaussian: turned,
        TrainingPlan: plan,
        Axis: Axis("Lon", bounds=(0, 1), bins=4),
        Point: point,
        PcaStudy: study,
    }
    described += [(kind.from_dict, kind.__name__, value.to_dict()) for kind, value in others.items()]
    described.append((design_of(shells), "Design", shells.design.to_dict()))
    described.append((Axis.from_dict, "Axis of keys", Axis("Base", keys=["a", "b"]).to_dict()))
    described.append((Axis.from_dict, "Axis of edges", Axis("Lat", edges=[0.0, 1.0, 3.0]).to_dict()))
    return [(reader, name, json.loads(json.dumps(values))) for reader, name, values in described]


EXAMPLES = examples()
NAMES = [f"{reader.__qualname__}: {name}" for reader, name, _ in EXAMPLES]


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


def use(found):
    """What one does with a description that was read: each step works, or says one sentence."""
    steps = []
    if isinstance(found, (ln.Mechanism, ln.Composition, TrainingPlan)):
        steps += [lambda: found.delta(1), lambda: found.epsilon(1e-6)]
    if isinstance(found, (ln.Mechanism, TrainingPlan)):
        steps += [lambda: found.check()]
    if isinstance(found, ln.Mechanism):
        steps += [lambda: found.expected_loss, lambda: found.loss_quantile(0.9), lambda: str(found.check())]
        if found.dimension <= SMALL:
            steps.append(lambda: found.release(np.zeros(found.shape)))
    if hasattr(found, "_repr_html_"):
        steps.append(lambda: found._repr_html_())
    if hasattr(type(found), "from_json"):
        assert type(found).from_json(found.to_json()) == found
    elif type(found) not in (PcaStudy, Point, Design):
        read = laws.law_from_dict if hasattr(found, "kind") and hasattr(found, "norm") else type(found).from_dict
        assert read(json.loads(json.dumps(found.to_dict()))) == found
    for step in steps:
        attempt(step)


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


def try_one(reader, values):
    """Read it and use it, all within bounds."""
    signal.signal(signal.SIGPROF, interrupted)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        found = attempt(lambda: reader(values))
        if found is not None:
            use(found)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
@pytest.mark.parametrize(("reader", "name", "values"), EXAMPLES, ids=NAMES)
def test_a_damaged_description_is_refused_or_works(reader, name, values):
    chance = random.Random(f"{name} {reader.__qualname__}")
    try_one(reader, values)
    for _ in range(MUTATIONS):
        try_one(reader, mutated(values, chance))


def test_everything_that_can_be_read_back_is_tried():
    classes = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(getattr(one, "name", "") == "from_dict" for one in node.body):
                classes.add(node.name)
    tried = {getattr(reader, "__self__", None) for reader, _, _ in EXAMPLES}
    tried = {kind.__name__ for kind in tried if kind is not None} | {law.__name__ for law in laws._KINDS.values()}
    # A proof is read by the search alone, which goes through all of it again (least/test_cache.py).
    assert classes - {"Law", "Plain", "Design", "Proof"} <= tried
    kinds = {values["kind"] for reader, _, values in EXAMPLES if reader is laws.law_from_dict}
    assert kinds == {kind for kind in laws._KINDS if not kind.startswith("test-")}  # laws of other tests
