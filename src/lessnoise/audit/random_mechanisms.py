"""Random mechanisms of every kind, extreme ones included: what curves are compared on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise import changes, strategy, workload
from lessnoise.errors import LessnoiseError
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import (
    CorrelatedGaussian,
    CorrelatedRadial,
    Deviations,
    DiscreteGaussian,
    DiscretePower,
    FrozenMatrix,
    GeneralizedGaussian,
    Geometric,
    Hierarchy,
    Laplace,
    Law,
    MatrixGaussian,
    Measured,
    Mechanism,
    NormRadial,
    NormStaircase,
    Radial,
    Shells,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.changes import Changes

_MOST_TRIES = 1000


class Example(NamedTuple):
    """A mechanism, and the epsilon at which its curve is looked at."""

    kind: str
    mechanism: Mechanism
    epsilon: float


class _Draw:
    """Random numbers of the kinds that are needed."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def log(self, low: float, high: float) -> float:
        """Evenly spread on a logarithmic scale."""
        return float(np.exp(self.rng.uniform(math.log(low), math.log(high))))

    def whole(self, low: int, high: int) -> int:
        """The same, a whole number."""
        return min(max(round(self.log(low, high + 0.49)), low), high)

    def even(self, low: float, high: float) -> float:
        """Evenly spread."""
        return float(self.rng.uniform(low, high))

    def one_of(self, *choices: float) -> float:
        """One of some numbers."""
        return float(self.rng.choice(choices))


def _mechanism(law: Law, shape: tuple[int, ...], sensitivity: float) -> Mechanism:
    return Mechanism("random", law, shape, sensitivity)


def _against(law: Law, shape: tuple[int, ...], changed: Changes) -> Mechanism:
    relation = changed.relation or Neighbours.ADD_REMOVE
    return Mechanism("random", law, shape, 1.0, relation).against(changed)


def _epsilon(draw: _Draw) -> float:
    return draw.log(1e-4, 50.0)


def _gaussian(draw: _Draw, epsilon: float) -> Mechanism:
    m = draw.whole(1, 10**9)
    return _mechanism(Radial(m, 2.0, draw.log(0.05, 50.0) / min(epsilon, 1.0)), (m,), draw.log(0.5, 2.0))


def _l2(draw: _Draw, epsilon: float) -> Mechanism:
    m = draw.whole(1, 10**5)
    return _mechanism(Radial(m, 1.0, draw.log(0.3, 1.1) / epsilon), (m,), 1.0)


def _radial(draw: _Draw, epsilon: float) -> Mechanism:
    m, p = draw.whole(1, 3000), draw.one_of(0.5, 0.8, 1.0, 1.5, 2.0, 3.0, draw.log(0.3, 8.0))
    k = m if draw.even(0, 1) < 0.3 else m * draw.even(0.3, 1.0)
    size = draw.log(0.3, 20.0) / min(epsilon, 1.0) * math.sqrt(m)  # of the noise
    return _mechanism(Radial(k, p, size / max(k / p, 0.1) ** (1.0 / p)), (m,), draw.log(0.5, 2.0))


def _rank_one(draw: _Draw, epsilon: float) -> Mechanism:
    m = draw.whole(2, 30_000)
    return _mechanism(Radial(1.0, 2.0, draw.log(1.0, 1e4)), (m,), draw.one_of(1.0, math.sqrt(2.0)))


def _shells(draw: _Draw, epsilon: float) -> Mechanism:
    m, count = draw.whole(1, 200), draw.whole(1, 40)
    edges = np.concatenate([[0.0], np.sort(draw.rng.uniform(0.1, 1.0, count))]) * draw.log(0.5, 20.0) * math.sqrt(m)
    heights = -np.sort(draw.rng.uniform(0.0, draw.log(0.1, 30.0), count))
    inner, outer = edges[:-1] / edges[-1], edges[1:] / edges[-1]
    volumes = outer**m - inner**m
    weights = np.exp(heights) * volumes
    kept = weights > 1e-280
    if not kept.all():
        edges, weights = np.concatenate([[0.0], edges[1:][kept]]), weights[kept]
    return _mechanism(Shells(m, tuple(edges.tolist()), tuple((weights / weights.sum()).tolist())), (m,), 1.0)


def _laplace(draw: _Draw, epsilon: float) -> Mechanism:
    m = draw.whole(1, 10**6)
    law = Laplace(draw.log(0.2, 1.2) / epsilon)
    if draw.even(0, 1) < 0.5:
        return _mechanism(law, (m,), draw.log(0.5, 2.0))
    rows = draw.whole(1, 4)
    return _against(law, (m,), changes.counts(rows, per_cell=1, neighbours="replace" if rows < 3 else "add/remove"))


def _geometric(draw: _Draw, epsilon: float) -> Mechanism:
    rate = min(epsilon * draw.one_of(0.5, 1.0, draw.log(0.3, 2.0)), 600.0)
    if draw.even(0, 1) < 0.4:
        return _mechanism(Geometric(rate, draw.log(1e-200, 0.2)), (draw.whole(1, 1000),), 1.0)
    if draw.even(0, 1) < 0.5:
        return _against(Geometric(rate), (draw.whole(2, 50),), changes.counts(1, neighbours="replace"))
    return _mechanism(Geometric(rate), (1,), float(draw.whole(1, 20)))


def _discrete_gaussian(draw: _Draw, epsilon: float) -> Mechanism:
    variance = draw.log(0.05, 1e6)
    law = DiscreteGaussian(max(round(variance * 4096), 1), 4096)
    return _mechanism(law, (draw.whole(1, 1000),), math.sqrt(draw.whole(1, 12)))


def _discrete_power(draw: _Draw, epsilon: float) -> Mechanism:
    law = DiscretePower(draw.even(1.0, 2.0), draw.log(0.3, 300.0))
    if draw.even(0, 1) < 0.5:
        return _mechanism(law, (1,), float(draw.whole(1, 5)))
    return _against(law, (20,), changes.counts(draw.whole(1, 3), per_cell=1))


def _norm_radial(draw: _Draw, epsilon: float) -> Mechanism:
    m, body = draw.whole(1, 300), str(draw.rng.choice(["cube", "corner"]))
    power = draw.one_of(1.0, 1.5, 2.0, draw.log(1.0, 8.0))
    scale = draw.log(0.3, 3.0) / epsilon * (m / power + 1.0) ** (1.0 - 1.0 / power)
    return _mechanism(NormRadial(body, power, scale), (m,), 1.0)


def _norm_staircase(draw: _Draw, epsilon: float) -> Mechanism:
    m, body = draw.whole(1, 100), str(draw.rng.choice(["cube", "corner"]))
    rate = min(max(epsilon * draw.one_of(0.4, 1.0, 1.3), 0.02), 600.0)
    return _mechanism(NormStaircase(body, rate, draw.even(0.05, 1.0), draw.one_of(0.5, 1.0)), (m,), 1.0)


def _correlated_gaussian(draw: _Draw, epsilon: float) -> Mechanism:
    own = (draw.log(0.1, 20.0) / min(epsilon, 1.0)) ** 2
    return _mechanism(CorrelatedGaussian(own * draw.log(1e-3, 10.0), own), (draw.whole(1, 10**6),), draw.log(0.5, 2.0))


def _correlated_radial(draw: _Draw, epsilon: float) -> Mechanism:
    base = _radial(draw, epsilon)
    assert isinstance(base.law, Radial)
    return _mechanism(CorrelatedRadial(base.law, draw.log(1e-3, 1.0)), base.shape, 1.0)


def _matrix_gaussian(draw: _Draw, epsilon: float) -> Mechanism:
    shape = (draw.whole(1, 12), draw.whole(1, 12))
    sides = [Deviations.of(np.exp(draw.rng.uniform(0.0, 3.0, size)).tolist()) for size in shape]
    basis = FrozenMatrix(np.linalg.qr(draw.rng.normal(size=(shape[0], shape[0])))[0])
    return _mechanism(MatrixGaussian(sides[0], sides[1], basis), shape, draw.log(0.05, 5.0) * min(epsilon, 1.0))


def _generalized_gaussian(draw: _Draw, epsilon: float) -> Mechanism:
    p, m = draw.one_of(1.0, 1.5, 2.0, 3.0, draw.even(1.0, 6.0)), draw.whole(1, 20)
    return _mechanism(GeneralizedGaussian(p, draw.log(0.5, 20.0) / min(epsilon, 1.0)), (m,), 1.0)


def _hierarchy(draw: _Draw, epsilon: float) -> Mechanism:
    shape = (draw.whole(2, 300),) if draw.even(0, 1) < 0.7 else (draw.whole(2, 20), draw.whole(2, 20))
    noise = "laplace" if draw.even(0, 1) < 0.5 else "gaussian"
    law = Hierarchy(shape, draw.whole(2, 8), noise, draw.log(2.0, 10.0) / min(epsilon, 1.0), Neighbours.ADD_REMOVE)  # type: ignore[arg-type]
    return _mechanism(law, shape, 1.0)


def _measured(draw: _Draw, epsilon: float) -> Mechanism:
    n = draw.whole(2, 12)
    table = np.abs(draw.rng.normal(size=(3, n)))
    every = (
        strategy.tree(n, 2),
        strategy.Dense(FrozenMatrix(np.concatenate([np.eye(n), table]))),
        strategy.PIdentity.of(
            (np.ones(n) / (1.0 + table.sum(axis=0))).tolist(), (table / (1.0 + table.sum(axis=0))).tolist()
        ),
        strategy.toeplitz_for(workload.prefixes(n).parts[0].factors[0]),
        strategy.Product((strategy.tree(n, 2), strategy.Cells((3,)))),
    )
    chosen = every[draw.whole(1, len(every)) - 1]
    scale = draw.log(1.0, 10.0) / min(epsilon, 1.0)
    noise = Laplace(scale) if draw.even(0, 1) < 0.5 else GeneralizedGaussian(2.0, scale)
    return _mechanism(Measured(workload.identity(*chosen.shape), chosen, noise), chosen.shape, 1.0)


KINDS: dict[str, Callable[[_Draw, float], Mechanism]] = {
    "Gaussian": _gaussian,
    "l2": _l2,
    "radial": _radial,
    "rank one": _rank_one,
    "shells": _shells,
    "Laplace": _laplace,
    "geometric": _geometric,
    "discrete Gaussian": _discrete_gaussian,
    "discrete power": _discrete_power,
    "norm-radial": _norm_radial,
    "norm-staircase": _norm_staircase,
    "correlated Gaussian": _correlated_gaussian,
    "correlated radial": _correlated_radial,
    "matrix Gaussian": _matrix_gaussian,
    "generalized Gaussian": _generalized_gaussian,
    "H_b": _hierarchy,
    "strategy": _measured,
}


def random_mechanism(rng: np.random.Generator, kind: str | None = None) -> Example:
    """One of a kind, or of any; its curve at the epsilon can be computed.

    >>> random_mechanism(np.random.default_rng(0), "l2").kind
    'l2'
    """
    draw = _Draw(rng)
    for _ in range(_MOST_TRIES):
        chosen = kind or str(rng.choice(list(KINDS)))
        epsilon = _epsilon(draw)
        try:
            found = KINDS[chosen](draw, epsilon)
            found.delta(epsilon)
        except LessnoiseError:  # too extreme for the law, or for its curve
            continue
        return Example(chosen, found, epsilon)
    raise LessnoiseError(f"kind={kind!r}: no mechanism of this kind was found.")
