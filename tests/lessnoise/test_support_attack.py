"""No bit of an output gives the value away: an attack on supports and low bits, against every mechanism there is.

Two neighbours are released many times, and of every release some 3,800 yes-or-no questions are asked about low
bits: which is the last binary digit that is set, of the output, of its distance from either neighbour, of sums and
differences; can floats reach the output from either neighbour; does it lie on a lattice around either of them; what are
its last digits; what is the sign of its zeros. A mechanism with delta(epsilon) allows P(yes) <= e^epsilon P'(yes) +
delta for each of them, both ways, and is refuted where frequencies exceed that by SIGMAS = 8 deviations. For 227 pairs
and at most 1e-14 a question that is below 2e-8 by chance, and the seeds are fixed.

The attack has teeth: it refutes plain ``value + noise`` in floats, noise that is rounded before it is added, and noise
divided by a weight after it was rounded.
"""

import dataclasses
import math

import numpy as np
import pytest

import lessnoise as ln
from lessnoise import Request
from lessnoise.audit.laws import distance, worst_shift
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.mechanism import GeneralizedGaussian, Geometric, Measured
from lessnoise.mechanism.catalogue import CATALOGUE
from lessnoise.mechanism.counts.dawa import STAGE1, WORKLOADS
from lessnoise.mechanism.counts.descent import places_of
from lessnoise.mechanism.counts.inference import greedy_weights
from lessnoise.mechanism.sampling import grid_step, prepare_noise
from lessnoise.noise import Grid, Stream
from lessnoise.pca import PrivateCovariance, PrivatePCA
from lessnoise.pca.estimators import SAMPLED
from lessnoise.pca.noisy_moments import MATRIX, PUBLISHED, PURE
from lessnoise.strategy import Hats, Product, marginal_strategies, optimise_p_identity, toeplitz_for, tree
from tests.helpers.attack import reachable

SIGMAS = 8.0
RELEASES = 110
SHAPE = (8, 8)
EPSILON = 1.0
LOWEST, HIGHEST = -70, 12  # last binary digits that are told apart

pytestmark = pytest.mark.filterwarnings("ignore::lessnoise.ClaimWarning")


# The questions.


def last_digit(x):
    """Exponent of the last binary digit that is set; HIGHEST for 0 and beyond."""
    mantissa, exponent = np.frexp(x)
    integers = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    place = np.frexp((integers & -integers).astype(np.float64))[1] - 1 + exponent - 53
    return np.clip(np.where(x == 0.0, HIGHEST, place), LOWEST, HIGHEST)


def last_digit_of_difference(x, y):
    """Of x - y in real numbers: the difference in floats and what it leaves."""
    d = x - y
    back = d - x
    rest = (x - (d - back)) + (-y - back)
    return np.minimum(last_digit(d), last_digit(rest))


def questions(outputs, value, other, step):
    """Answers to all questions, one row a release; categories become one column each."""
    x = outputs.reshape(len(outputs), -1).astype(np.float64)
    v, w = (np.asarray(a, dtype=np.float64).ravel() for a in (value, other))
    few = [0, 1, x.shape[1] // 2, -1]
    columns = [(x == 0.0).any(axis=1), (np.signbit(x) & (x == 0.0)).any(axis=1), (x == np.rint(x)).all(axis=1)]
    digits = [last_digit(x).min(axis=1), last_digit(x).max(axis=1), last_digit(x.sum(axis=1))]
    digits += [last_digit(x[:, i]) for i in few] + [last_digit_of_difference(x[:, 0], x[:, 1])]
    for base in (v, w):
        apart = last_digit_of_difference(x, base)
        digits += [apart.min(axis=1), apart.max(axis=1), *(apart[:, i] for i in few)]
        hit = np.stack([reachable(x[:, i], base[i]) for i in range(x.shape[1])], axis=1)
        columns += [hit.all(axis=1), *(hit[:, i] for i in few)]
        # Multiples of the grid over a weight of two digits, around the neighbour: of an entry, of two siblings.
        for moved in (x[:, 0] - base[0], (x[:, 0] - x[:, 1]) - (base[0] - base[1])):
            for weight in range(1, 101):
                cells = moved * (weight / 100 / step)
                columns.append((np.abs(cells - np.rint(cells)) < 1e-4) & (np.abs(cells) > 0.5) & (np.abs(cells) < 1e9))
    for place in digits:
        columns += [place == e for e in range(LOWEST, HIGHEST + 1)] + [place <= e for e in range(LOWEST, HIGHEST)]
    for i in few:
        low = np.ldexp(np.frexp(x[:, i])[0], 53).astype(np.int64) & 7
        cells = np.mod(np.rint(x[:, i] / step), 8)
        columns += [low == k for k in range(8)] + [cells == k for k in range(8)]
    return np.stack(columns, axis=1)


def excess(first, second, epsilon, delta):
    """The largest excess over what (epsilon, delta) allows, in deviations; both ways."""
    worst = -math.inf
    for a, b in ((first, second), (second, first)):
        n, yes, no = len(a), a.sum(axis=0), b.sum(axis=0)
        factor = math.exp(epsilon)
        beyond = yes - factor * no - delta * n
        worst = max(worst, float((beyond / np.sqrt(yes + factor**2 * no + 1.0)).max()))
    return worst


def attacked(release, value, other, step, epsilon, delta, releases=RELEASES):
    """How far the attack gets with a function that releases."""
    draws = [np.stack([release(a) for _ in range(releases)]) for a in (value, other)]
    answers = [questions(outputs, value, other, step) for outputs in draws]
    return excess(*answers, epsilon, delta)


def draw(mechanism, value, rng, out=None):
    """What a release draws, without a certificate each time."""
    return prepare_noise(mechanism.law, value, Stream.of(rng), out=out)()


# The attack has teeth.


def plain_floats(value, rng):
    return value + rng.normal(scale=2.0, size=value.shape)


def rounded_before_it_is_added(value, rng):
    step = Grid.of(2.0).step
    return value + np.rint(rng.normal(scale=2.0, size=value.shape) / step) * step


def divided_by_a_weight_after_it_was_rounded(value, rng):
    """What DAWA's queries over ranges once were: exact + noise/weight."""
    weight = float(greedy_weights(np.array([[2.0, 1.0], [1.0, 2.0]]))[-1][0])
    step = Grid.of(2.0).step
    return value + np.rint(rng.normal(scale=2.0, size=value.shape) / step) * step / weight


NAIVE = [plain_floats, rounded_before_it_is_added, divided_by_a_weight_after_it_was_rounded]


@pytest.mark.parametrize("naive", NAIVE)
def test_naive_noise_is_refuted(naive):
    rng = np.random.default_rng(0)
    found = 0.0
    for value, other in ((np.zeros(64), np.full(64, 0.125)), (np.full(64, 1 / 3), np.full(64, 1 / 3 + 0.1))):
        found = max(found, attacked(lambda v: naive(v, rng), value, other, Grid.of(2.0).step, 1.0, 1e-6))
    assert found > SIGMAS


def test_the_same_noise_on_the_grid_is_not():
    mechanism, rng = ln.Mechanism("gaussian", ln.Radial(64, 2.0, math.sqrt(8.0)), (64,), 1.0), np.random.default_rng(1)
    value, other = np.zeros(64), np.full(64, 0.125)
    found = attacked(lambda v: draw(mechanism, v, rng), value, other, Grid.of(2.0).step, 1.0, 1e-6)
    assert found < SIGMAS


def test_minus_zero_is_noticed():
    """A value that is returned as it is in half of the releases."""
    rng, value, other = np.random.default_rng(2), np.zeros(4), np.full(4, -0.0)
    found = attacked(lambda v: v if rng.random() < 0.5 else rng.normal(size=4), value, other, 1.0, 1.0, 0.0, 400)
    assert found > SIGMAS


# Every mechanism of the catalogue, and every variant of what is not simply added.


def catalogue_mechanisms():
    request = Request(
        epsilon=EPSILON,
        delta=1e-6,
        sensitivity=1.0,
        shape=SHAPE,
        l1_sensitivity=1.0,
        k=40.0,
        p=1.5,
        bound=1e3,
        entry_bound=1.0,
        integer=True,
        counts=True,
    )
    together = Request(EPSILON, 1e-6, None, SHAPE, changes=ln.changes.counts(4, per_cell=1))
    for name, entry in CATALOGUE.items():
        asked = together if name == "discrete-power" else request
        # Without the set, the sensitivity is the size of a ball, which the attacks change.
        yield name, lambda entry=entry, asked=asked: alone(entry.build(asked))


def alone(mechanism):
    if mechanism.changes is None:
        return mechanism
    return dataclasses.replace(
        mechanism, changes=None, sensitivity=1.0 if mechanism.law.integer else mechanism.sensitivity
    )


def measured():
    """Strategies of every kind that computes in its own way, each with noise that serves it."""
    days, pairs = ln.workload.prefixes(24), ln.workload.marginals([2, 3, 4], order=2)
    sums = optimise_p_identity(days.gram())
    normal = GeneralizedGaussian(2.0, math.sqrt(2.0) * 4.3)
    return {
        "workload, weighted cells and sums": (days, sums, ln.Laplace(1.0)),
        "workload, hats": (days, Hats(24, 4, FrozenMatrix(np.full((3, 7), 0.3))), ln.Laplace(1.0)),
        "workload, Toeplitz": (days, toeplitz_for(days.parts[0].factors[0]), normal),
        "workload, residuals": (pairs, next(iter(marginal_strategies(pairs))), normal),
        "workload, product": (ln.workload.ranges((24, 4)), Product((sums, tree(4, 2))), ln.Laplace(2.0)),
        "workload, tree": (days, tree(24, 3), Geometric(0.3)),
    }


def variants():
    for noise in STAGE1:
        for workload in WORKLOADS:
            yield (
                f"dawa {noise} {workload}",
                lambda noise=noise, workload=workload: ln.dawa(
                    epsilon=EPSILON, shape=64, noise=noise, workload=workload
                ),
            )
    for noise in ("laplace", "gaussian"):
        for relation in ("add/remove", "replace"):
            yield (
                f"hb {noise} {relation}",
                lambda noise=noise, relation=relation: ln.hb(
                    epsilon=EPSILON,
                    delta=0.0 if noise == "laplace" else 1e-6,
                    shape=32,
                    branching=2,
                    noise=noise,
                    neighbours=relation,
                ),
            )
    for name, (workload, strategy, noise) in measured().items():
        law = Measured(workload, strategy, noise)
        yield name, lambda law=law: ln.Mechanism("workload", law, law.workload.shape, 1.0)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    law = ln.MatrixGaussian([2.0, 3, 5, 9, 9, 9], [1.0, 2, 2, 7], FrozenMatrix(turn))
    yield "matrix noise with a basis", lambda: ln.Mechanism("matrix", law, (6, 4), 1.0)
    edges, weights = (0.0, 1.0, 2.0, 3.0, 4.0), (0.3, 0.3, 0.2, 0.2)
    yield "shells", lambda: ln.shells(edges=edges, probabilities=weights, sensitivity=1.0, shape=6)
    yield "wishart", lambda: ln.wishart(epsilon=EPSILON, features=6, records=1)
    yield "mod-sulq", lambda: ln.mod_sulq(epsilon=EPSILON, delta=1e-6, features=6, records=1)
    for k, p in ((64.0, 1.0), (1.0, 2.0), (3.5, 0.7)):
        yield (
            f"radial {k} {p}",
            lambda k=k, p=p: ln.radial(epsilon=EPSILON, delta=1e-6, sensitivity=1.0, shape=64, k=k, p=p),
        )
    for p in (1.0, 3.0):
        yield (
            f"generalized {p}",
            lambda p=p: ln.generalized_gaussian(epsilon=EPSILON, delta=1e-6, sensitivity=1.0, shape=16, p=p),
        )


OF_SUMS = ("dawa", "hb", "workload")
MECHANISMS = dict([*catalogue_mechanisms(), *variants()])


def spread(mechanism):
    """A change of every entry at once, as large as the sensitivity allows, with many low bits."""
    law, shape, size = mechanism.law, mechanism.shape, mechanism.dimension
    ones = np.ones(shape)
    if law.norm == "outer product":
        row = np.sqrt(mechanism.sensitivity / shape[0]) * np.ones(shape[0])
        return np.outer(row, row) * (1.0 - 1e-9)
    power = {"l1": 1.0, "l2": 2.0, "lp": getattr(law, "p", 2.0)}.get(law.norm, math.inf)
    return ones * mechanism.sensitivity * size ** (-1.0 / power) * (1.0 - 1e-9)


def pairs(mechanism):
    """Values and changes: from 0, from fractions, from far away, and the two zeros."""
    law, shape = mechanism.law, mechanism.shape
    worst = worst_shift(law, shape, mechanism.sensitivity)
    counts = np.arange(mechanism.dimension, dtype=np.float64).reshape(shape)
    if law.integer:
        yield np.zeros(shape, dtype=np.int64), worst.astype(np.int64)
        yield (counts + 2**60).astype(np.int64), worst.astype(np.int64)
        return
    if isinstance(law, Measured) and law.noise.integer:
        yield counts, worst
        yield counts + 2.0**45, worst
        return
    if isinstance(law, (ln.Hierarchy, ln.Dawa, Measured)):
        wild = np.where(counts % 2 == 0, 0.0, 1e6)
        yield wild, worst / 3
        yield counts, worst
        yield wild + 0.1, worst * (1.0 - 2.0**-30)
        yield np.zeros(shape), -np.zeros(shape)
        return
    step, even = grid_step(law, shape), spread(mechanism)
    yield np.zeros(shape), worst
    yield np.zeros(shape), even
    if law.norm != "outer product":
        yield counts / 3.0, even / 7.0
        yield np.full(shape, 2.0**50 * step), even
        yield np.full(shape, 0.5 * step), np.full(shape, 2.0**-40 * step)
    yield np.zeros(shape), -np.zeros(shape)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_mechanism_gives_low_bits_away(name):
    mechanism, rng = MECHANISMS[name](), np.random.default_rng(3)
    for value, change in pairs(mechanism):
        delta = 1.0
        while delta > 0.5:  # so much is allowed to some published noise; refute it by neighbours that are nearer
            other = np.where(change == 0.0, change, value + change) if not value.any() else value + change
            size = max(distance(mechanism.law, np.asarray(other, dtype=np.float64) - value), 1e-12)
            near = dataclasses.replace(mechanism, sensitivity=size, claim=None, design=None)
            delta, change = near.delta(EPSILON).upper, change / 8
        step = grid_step(mechanism.law, mechanism.shape) or Grid.of(2.0 * math.sqrt(2.0)).step
        found = attacked(lambda v: draw(mechanism, v, rng), value, other, step, EPSILON, delta)
        assert found < SIGMAS, (value.ravel()[:2], other.ravel()[:2])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MECHANISMS if not name.startswith(OF_SUMS)])
def test_single_precision_and_the_values_own_memory_give_none_away(name):
    mechanism, rng = MECHANISMS[name](), np.random.default_rng(4)
    if mechanism.law.integer:
        return
    value, other = (a.astype(np.float32) for a in (np.zeros(mechanism.shape), spread(mechanism)))
    step = mechanism.release(value, rng).certificate.grid
    near = dataclasses.replace(mechanism, sensitivity=mechanism.sensitivity * 1.001, claim=None, design=None)

    def release(v):
        own = v.copy()
        return draw(mechanism, own, rng, out=own)

    found = attacked(release, value, other, step, EPSILON, near.delta(EPSILON).upper, releases=100)
    assert found < SIGMAS


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MECHANISMS if not name.startswith(OF_SUMS)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_outputs_are_whole_multiples_of_the_grid_whatever_the_value(name, dtype):
    mechanism, rng = MECHANISMS[name](), np.random.default_rng(5)
    if mechanism.law.integer:
        assert mechanism.release(np.zeros(mechanism.shape, dtype=np.int64), rng).value.dtype == np.int64
        return
    step = mechanism.release(np.zeros(mechanism.shape, dtype=dtype), rng).certificate.grid
    largest = (2.0**52 if dtype == np.float64 else 2.0**23) * step
    for value in (0.0, 1 / 3, -1e-30, largest, -largest):
        released = draw(mechanism, np.full(mechanism.shape, value, dtype=dtype), rng)
        cells = released.astype(np.float64) / step
        assert released.dtype == dtype
        assert (cells == np.rint(cells)).all()
        assert not (np.signbit(released) & (released == 0.0)).any()


# What is computed from measured numbers is computed from nothing else.


@pytest.mark.slow
@pytest.mark.parametrize("noise", STAGE1)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_integrality_tells_nothing_of_dawa(noise, workload):
    """The attack that told neighbours apart in every release: noise on a grid around 0, added to a fraction or not."""
    mechanism, rng = ln.dawa(epsilon=EPSILON, shape=64, noise=noise, workload=workload), np.random.default_rng(6)
    value = np.tile([0.0, 1e6], 32)  # every cell is a bucket of its own
    step = Grid.of(math.sqrt(2.0) / mechanism.law.epsilon2).step
    rates = []
    for change in (0.0, 1 / 3):
        outputs = np.stack([draw(mechanism, value + change * np.eye(64)[0], rng) for _ in range(100)])
        rates.append(float(np.mean(outputs[:, 0] / step == np.rint(outputs[:, 0] / step))))
    assert abs(rates[0] - rates[1]) < 0.5


def test_only_known_laws_draw_in_their_own_way():
    """Whoever adds one adds its variants above: the default adds the engine's noise to the value itself.

    A choice of quantiles has no grid around a value: its places are those of cells, whatever the counts are.
    """
    own = {law.__name__ for law in prepare_noise.registry if law is not object}
    assert own == {"Dawa", "Hierarchy", "Measured", "QuantileChoice"}


def test_chosen_quantiles_are_the_same_places_whatever_the_counts():
    choice, rng = ln.mechanism.quantile_choice(epsilon=EPSILON, cells=4, probabilities=(0.5,)), np.random.default_rng(1)
    unit = 2 * places_of(4)  # a place is the middle of a piece: an odd number of halves
    for counts in ([0, 0, 0, 0], [1, 2, 0, 3], [0, 10**9, 0, 1], [7, 0, 0, 0]):
        places = np.array([float(choice.release(counts, rng).value[0, 0]) for _ in range(50)])
        halves = places * unit
        assert np.array_equal(halves, np.rint(halves))
        assert ((places > 0.0) & (places < 4.0)).all()


# Covariances and components.


def tables():
    base = np.array([[0.3, 0.1, -0.2], [0.7, -0.6, 0.1], [0.0, 0.5, 0.5], [0.2, 0.2, 0.9]])
    return np.vstack([base, np.zeros(3)]), np.vstack([base, [1 / 3, 0.6, 0.1]])


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", sorted({*MATRIX, *PUBLISHED, *PURE, "least-noise", *SAMPLED}))
def test_covariances_and_components_give_no_low_bits_away(mechanism):
    rng = np.random.default_rng(7)
    pure = mechanism in (*PURE, *SAMPLED)
    options = {"epsilon": EPSILON, "delta": None if pure else 1e-6, "clip_norm": 1.0, "mechanism": mechanism}
    if mechanism in ("least-noise", *PURE, *SAMPLED):
        options |= {"center": False, "neighbours": "replace"}
    certificates = []

    def release(table):
        if mechanism in SAMPLED:
            fitted = PrivatePCA(3 if "one" in mechanism else 1, random_state=rng, **options).fit(table)
        else:
            fitted = PrivateCovariance(random_state=rng, **options).fit(table)
        certificates.append(fitted.certificate_)
        return np.resize(fitted.components_ if mechanism in SAMPLED else fitted.covariance_, 9)

    draws = [np.stack([release(table) for _ in range(100)]) for table in tables()]
    answers = [questions(outputs, np.zeros(9), np.zeros(9), 2.0**-20) for outputs in draws]
    assert excess(*answers, EPSILON, certificates[0].guarantee.delta) < SIGMAS
