"""Descriptions that were damaged or forged: each is refused in one sentence, or is one that works.

Every entry of the catalogue, and everything else that is read back from JSON, is mutated in hundreds of ways, the same
in each run. An entry, a law or a class that is new is here by itself, or its test asks for an example.
"""

import dataclasses
import functools
import json
import math
import warnings

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import Request, changes, strategy, workload
from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.learn import AcrossPlan, Banded, BandedInverse
from lessnoise.learn.plan import TrainingPlan, gaussian
from lessnoise.mechanism import law as laws
from lessnoise.mechanism.catalogue import CATALOGUE
from lessnoise.mechanism.families.matrix_gaussian import MatrixGaussian
from lessnoise.mechanism.least.objective import Design
from lessnoise.mechanism.least.search import LeastNoiseAnswer
from lessnoise.query import (
    ROWS,
    Axis,
    Factor,
    Gram,
    Grouped,
    Histogram,
    Mean,
    Measure,
    Products,
    Query,
    SecondMoments,
    Sum,
    Unit,
)
from lessnoise.streams import Plan
from tests.helpers.damage import attempt, classes_read_back, try_damaged

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


TOGETHER = Request(1.0, 1e-3, None, (5,), changes=changes.counts(3, per_cell=1))


def catalogue_examples():
    """One description of every entry, or of each kind of law that it gives."""
    found = {}
    for name, entry in CATALOGUE.items():
        for request in (*REQUESTS, TOGETHER):
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


SETS = (
    changes.ball(0.5, norm=math.inf),
    changes.counts(3, per_cell=2, neighbours="replace").scaled(0.5),
    changes.corner([1.0, 2.0]) | changes.listed([[1, 0], [0, 2]]) | changes.corner(3.0),
)


ROWS_OF_TWO = FrozenMatrix([[1.0, 0.5], [0.25, 2.0]])
STRATEGIES = (
    strategy.Cells((2, 3)),
    strategy.Total(4),
    strategy.Dense(ROWS_OF_TWO),
    strategy.Product((strategy.Cells((2,)), strategy.Dense(ROWS_OF_TWO))),
    strategy.PIdentity.of([0.5, 0.5], [[0.5, 0.5]]),
    strategy.tree(4, 2),
    strategy.Hats(4, 2, FrozenMatrix([[0.5, 0.5, 0.5], [0.25, 0.25, 0.25]])),
    strategy.toeplitz_for(workload.prefixes(4).parts[0].factors[0]),
    *strategy.marginal_strategies(workload.marginals([2, 3], order=1)),
)


def streams():
    """One with noise in buffers, one with a tree."""
    for kind in ("buffers", "tree", "banded", "square-root"):
        yield ln.Stream(periods=4, epsilon=1, delta=1e-6, strategy=kind)


QUERIES = (
    Histogram([Axis("x", bounds=(0, 1), bins=2), Axis("y", edges=(0, 1, 3))]),
    Sum(["x", "y"], bounds=[(0, 1), (-2, 2)]),
    Mean(["x"], bounds=(0, 100), rows=3),
    Gram(["x", "y"], norm=2.0),
    Grouped((Axis("x", edges=(0, 1, 3)),), (ROWS, Measure("moments", "y", (0.0, 2.0), 1))),
    SecondMoments(["x", "y"], norm=2.0, ends=((0.0, 0.0), (1.0, 2.0)), shift=(0.5, 0.5)),
)


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
        mechanisms["chosen"] = ln.mechanism.quantile_choice(epsilon=1, cells=4, probabilities=(0.25, 0.5))
        counts = ln.mechanism.geometric
        mechanisms |= {"counts": counts(epsilon=1, shape=3), "least": counts(epsilon=1, delta=1e-3, shape=3)}
        sums = functools.partial(ln.mechanism.norm_radial, delta=1e-6, changes=changes.corner([1.0, 2.0, 3.0]), shape=3)
        mechanisms |= {"sums": sums(epsilon=0.1), "stairs": sums(epsilon=8)}
        shared = functools.partial(ln.mechanism.correlated_radial, delta=1e-6, changes=changes.corner(1.0))
        asked = functools.partial(ln.workload_mechanism, workload.prefixes(4), delta=1e-3)
        mechanisms |= {"asked": asked(epsilon=1), "asked at large": asked(epsilon=9)}
        mechanisms |= {"shared": shared(epsilon=1, shape=30), "shared shells": shared(epsilon=1, shape=2)}
    gauss, laplace, l2 = (mechanisms[name] for name in ("analytic-gaussian radial", "laplace laplace", "l2 radial"))
    composed = ln.compose(l2.repeat(3), laplace, gauss.subsample(0.01).repeat(10))
    plan = TrainingPlan(gaussian(noise_multiplier=2.0, clip_norm=1.0, parameters=5), 0.1, 3, 100, ln.Guarantee(1, 0.1))
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
        LeastNoiseAnswer: LeastNoiseAnswer(shells.law, "nothing"),
        Deviations: turned.row_deviations,
        FrozenMatrix: basis,
        MatrixGaussian: turned,
        TrainingPlan: plan,
        Axis: Axis("Lon", bounds=(0, 1), bins=4),
        Measure: Measure("moments", "age", (0.0, 1.0), 2, absent=True),
        Products: Products(factors=(Factor("a", (0.0, 1.0)), Factor("b", (0.0, 2.0), 2))),
        Factor: Factor("a", (0.0, 1.0), 2),
        workload.Factor: workload.ranges(3).parts[0].factors[0],
        workload.Block: (2.0 * workload.prefixes(3)).parts[0],
        workload.Workload: workload.matrix([[1.0, 0.5]]) + workload.prefixes(2),
        Unit: Unit("who", 3),
    }
    described += [(kind.from_dict, kind.__name__, value.to_dict()) for kind, value in others.items()]
    described += [(type(one).from_dict, type(one).__name__, one.to_dict()) for one in STRATEGIES]
    described += [(Plan.from_dict, f"stream {one.plan.strategy.kind}", one.plan.to_dict()) for one in streams()]
    described += [(changes.Changes.from_dict, str(one), one.to_dict()) for one in SETS]
    described += [(Query.from_dict, query.kind, query.to_dict()) for query in QUERIES]
    answers = [query.answer(np.ones((3, len(query.columns))), neighbours="replace") for query in QUERIES[:-1]]
    described += [
        (ln.Certificate.from_dict, str(one.asked), one.release(epsilon=1, delta=1e-6).certificate.to_dict())
        for one in answers
    ]
    described.append((design_of(shells), "Design", shells.design.to_dict()))
    described += [
        (
            AcrossPlan.from_dict,
            made.kind,
            AcrossPlan(made, 2.0, 1.0, 5, 6, 12, 100, target=ln.Guarantee(1, 0.1)).to_dict(),
        )
        for made in (BandedInverse((1.0, -0.5, -0.125)), Banded((1.0, 0.5)))
    ]
    plan = ln.plan_releases(Request(1, 1e-6, 1.0, 3), times=2, mechanism="analytic-gaussian")
    described.append((ln.ReleasePlan.from_dict, "a plan", plan.to_dict()))
    described.append((type(plan.items[0]).from_dict, "an item of a plan", plan.items[0].to_dict()))
    described.append((Axis.from_dict, "Axis of keys", Axis("Base", keys=["a", "b"]).to_dict()))
    described.append((Axis.from_dict, "Axis of edges", Axis("Lat", edges=[0.0, 1.0, 3.0]).to_dict()))
    return [(reader, name, json.loads(json.dumps(values))) for reader, name, values in described]


EXAMPLES = examples()
NAMES = [f"{reader.__qualname__}: {name}" for reader, name, _ in EXAMPLES]


def use(found):
    """What one does with a description that was read: each step works, or says one sentence."""
    steps = []
    if isinstance(found, (ln.Mechanism, ln.Composition, TrainingPlan, AcrossPlan)):
        steps += [lambda: found.delta(1), lambda: found.epsilon(1e-6)]
    if isinstance(found, (ln.Mechanism, TrainingPlan, AcrossPlan)):
        steps += [lambda: found.check()]
    if isinstance(found, ln.Mechanism):
        steps += [lambda: found.expected_loss, lambda: found.loss_quantile(0.9), lambda: str(found.check())]
        if found.dimension <= SMALL:
            steps.append(lambda: found.release(np.zeros(found.shape)))
    if hasattr(found, "_repr_html_"):
        steps.append(lambda: found._repr_html_())
    if hasattr(type(found), "from_json"):
        assert type(found).from_json(found.to_json()) == found
    elif type(found) is not Design:
        read = laws.law_from_dict if isinstance(getattr(found, "norm", None), str) else type(found).from_dict
        assert read(json.loads(json.dumps(found.to_dict()))) == found
    for step in steps:
        attempt(step)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")
@pytest.mark.parametrize(("reader", "name", "values"), EXAMPLES, ids=NAMES)
def test_a_damaged_description_is_refused_or_works(reader, name, values):
    try_damaged(reader, name, values, use)


@pytest.mark.slow
def test_everything_that_can_be_read_back_is_tried():
    classes = classes_read_back(ln)
    tried = {getattr(reader, "__self__", None) for reader, _, _ in EXAMPLES}
    tried = {kind.__name__ for kind in tried if kind is not None} | {law.__name__ for law in laws._KINDS.values()}
    # A proof is read by the search alone, which goes through all of it again (least/test_cache.py).
    assert classes - {"Law", "Plain", "OfBody", "Design", "Proof", "Strategy"} <= tried
    kinds = {values["kind"] for reader, _, values in EXAMPLES if reader is laws.law_from_dict}
    assert kinds == {kind for kind in laws._KINDS if not kind.startswith("test-")}  # laws of other tests
