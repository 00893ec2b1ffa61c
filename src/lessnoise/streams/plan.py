"""The plan of a stream, all of it public: what is measured in which period, with what noise, and what it guarantees."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Charted, Facts, Lines, Listed
from lessnoise.changes import Changes, read_changes
from lessnoise.composition import Composition, compose
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import Geometric, Laplace, Law, Mechanism, analytic_gaussian
from lessnoise.noise import can_keep
from lessnoise.streams.buffers import ROUNDING, Buffers, BuffersRun, quantum_for
from lessnoise.streams.fit import BAND, fitted_banded, fitted_buffers, fitted_square_root
from lessnoise.streams.toeplitz import Banded, SquareRoot, ToeplitzRun
from lessnoise.streams.tree import Tree, TreeRun, Window, fitted_tree, period_variances, window
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Array

    Causal = Banded | Buffers | SquareRoot
    Strategy = Causal | Tree

MOST_PERIODS = 100_000
GAUSSIAN = ("buffers", "banded", "square-root")
STRATEGIES = ("best", "tree", *GAUSSIAN)
_MOST_KEPT_PERIODS, _MOST_KEPT = 4096, 1 << 24  # periods, and numbers in memory, up to which all inputs are kept
SCHEMA = 1
_SHARE = 2.0**-12  # of the sensitivity, that rounding to quanta may add to it
_SOURCE = "calibrated on the exact curve by lessnoise"


@dataclass(frozen=True)
class Plan(Listed, Charted):
    """Everything about a stream but its data and its key."""

    periods: int
    shape: tuple[int, ...]
    epsilon: float
    delta: float
    changes: Changes
    participations: int
    strategy: Strategy

    def __post_init__(self) -> None:
        periods = validation.whole_number("periods", self.periods)
        if periods > MOST_PERIODS:
            raise InvalidInput(f"periods={shown(periods)} exceeds {MOST_PERIODS}: use longer periods, or two streams.")
        given: object = self.shape
        shape = () if isinstance(given, (tuple, list)) and not given else validation.shape(given)
        settle(self, periods=periods, shape=shape, epsilon=validation.epsilon(self.epsilon))
        delta = 0.0 if validation.delta_or_zero(self.delta) == 0.0 else validation.delta(self.delta)
        settle(self, delta=delta, changes=read_changes(self.changes))
        self.changes.check_shape(self.shape or (1,))
        participations = validation.whole_number("participations", self.participations)
        if participations > periods:
            raise InvalidInput(
                f"participations={shown(participations)} exceeds periods={periods}: pass in how many periods one "
                "individual takes part at most."
            )
        settle(self, participations=participations)

    @property
    def size(self) -> int:
        """Entries of a period's value."""
        return math.prod(self.shape)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that the changes are stated for."""
        return self.changes.relation or Neighbours.ADD_REMOVE

    @property
    def entries(self) -> int:
        """How many entries one individual can change at most: a whole change is 1 at least where it is not 0."""
        if not self.changes.whole:
            return self.size
        return min(self.size, math.floor(self.changes.norm(1, self.size) * self.participations))

    @property
    def noise(self) -> Noise:
        """The calibrated noise."""
        return _noise(self)

    @property
    def composition(self) -> Composition:
        """What a ledger is charged for: all that is measured in all periods."""
        return self.noise.composition

    @property
    def is_integer(self) -> bool:
        """Whether the noise is of whole numbers, for values that are."""
        return isinstance(self.strategy, Tree) and self.changes.whole

    def check(self) -> None:
        """Refuse a target that the noise keeps, but not a cipher: its delta is too small for its epsilon."""
        count = drawn(self.periods, self.size)
        if not isinstance(self.strategy, Tree) and not can_keep(self.delta, self.epsilon, count):
            raise InvalidInput(
                f"delta={self.delta:g} is too small for epsilon={self.epsilon:g} and {count} numbers: the random words "
                "alone cost as much; use a larger delta or a smaller epsilon."
            )

    def variances(self) -> Array:
        """Of the running total of each period, in an entry."""
        if isinstance(self.strategy, Tree):
            return period_variances(self.strategy, self.noise.variances)
        return self.strategy.variances() * self.noise.deviations[0] ** 2

    def window_variance(self, first: int, last: int) -> float:
        """Of the estimate of the sum over the periods first .. last."""
        found = self.window(first, last)
        if found is not None:
            return found.variance
        assert not isinstance(self.strategy, Tree)
        return self.strategy.window_variance(first, last) * self.noise.deviations[0] ** 2

    def window(self, first: int, last: int) -> Window | None:
        """How a window is estimated from the nodes of a tree; otherwise it is the difference of two totals."""
        if isinstance(self.strategy, Tree):
            return window(self.strategy, tuple(self.noise.variances), first, last)
        return None

    def records(self, period: int) -> int:
        """How many rows were released up to a period: its total each, and of a tree the nodes within others."""
        return self.strategy.records(period) if isinstance(self.strategy, Tree) else period

    def run(self) -> BuffersRun | ToeplitzRun | TreeRun:
        """A run of the strategy, before the first period."""
        if isinstance(self.strategy, Tree):
            return TreeRun(self.strategy, self.size, self.noise.variances)
        if isinstance(self.strategy, Buffers):
            return BuffersRun(self.strategy, self.size)
        return ToeplitzRun(self.strategy, self.size)

    def law(self, level: int, period: int) -> Law | float:
        """The noise of a measurement: a law of integers or Laplace's, or the deviation of Gaussian noise."""
        if isinstance(self.strategy, Tree):
            return self.noise.laws[level]
        return self.noise.deviations[0] / float(self.strategy.weights[period - 1]) * (1.0 + 1e-14)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "periods": self.periods,
            "shape": list(self.shape),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "changes": self.changes.to_dict(),
            "participations": self.participations,
            "strategy": self.strategy.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Plan:
        """The inverse of :meth:`to_dict`."""
        names = ("periods", "shape", "epsilon", "delta", "changes", "participations", "strategy")
        given = validation.fields(values, names, "stream", schema=SCHEMA)
        made = _read_strategy(given["strategy"])
        shape = tuple(validation.entries("shape", given["shape"])) if given["shape"] else ()
        if made.periods != given["periods"]:
            raise InvalidInput(f"periods={shown(given['periods'])} differ from the strategy's {made.periods}.")
        return cls(**{**{name: given[name] for name in names}, "shape": shape, "strategy": made})

    def _facts(self) -> Facts:
        rows = [
            ("guarantee asked, of all periods together", f"({up(self.epsilon)}, {up(self.delta)})"),
            ("strategy", str(self.strategy)),
            ("periods", f"{self.periods:,}"),
            ("shape of a value", " by ".join(map(str, self.shape)) or "one number"),
            ("one individual takes part in at most", f"{self.participations:,} periods"),
        ]
        return Facts("A plan of running totals", rows)

    def _chart(self) -> Lines:
        found = "error of an entry of a running total", range(1, self.periods + 1), np.sqrt(self.variances()).tolist()
        return Lines("Noise of each running total", "period", "standard deviation of an entry", [found])


_FIELDS: dict[type[Any], tuple[str, ...]] = {
    Banded: ("periods", "coefficients", "rows"),
    Buffers: ("periods", "decays", "gains", "slope"),
    SquareRoot: ("periods", "power", "rows"),
    Tree: ("periods", "radices", "shares"),
}


_NUMBERS = ("periods", "power", "slope")


def _read_strategy(values: dict[str, Any]) -> Strategy:
    kinds = {each.kind: each for each in _FIELDS}
    name = validation.fields(values, ("kind",), "strategy", optional=None)["kind"]
    validation.choice("strategy kind", name, list(kinds))
    kind = kinds[name]
    found = validation.fields(values, ("kind", *_FIELDS[kind]), "strategy")
    return cast("Strategy", kind(*(_part(name, found[name]) for name in _FIELDS[kind])))


def _part(name: str, value: Any) -> Any:  # noqa: ANN401
    """A number, or a list of them as a tuple."""
    if name in _NUMBERS:
        return value
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(f"{name}={shown(value)} of a strategy is not a list: restore the stream's folder.")
    return tuple(value)


class Noise(NamedTuple):
    """Noise of the levels of a tree, or of the one measurement of a period, where the weight is 1; and the quantum."""

    quantum: float
    laws: tuple[Law, ...]
    deviations: tuple[float, ...]
    composition: Composition

    @property
    def variances(self) -> list[float]:
        """Of the laws."""
        return [deviation**2 for deviation in self.deviations]


@functools.lru_cache(maxsize=64)
def _noise(plan: Plan) -> Noise:
    return _pure(plan, plan.strategy) if isinstance(plan.strategy, Tree) else _gaussian(plan, plan.strategy)


def _gaussian(plan: Plan, strategy: Causal) -> Noise:
    """One Gaussian release of all measurements: adaptive inputs change nothing (Denisov et al. 2022, Theorem 2.1).

    k periods of one individual change them by k columns at most, each at most 1 long: k times the l2 norm of a change.
    """
    validation.delta(plan.delta)
    radius = plan.participations * plan.changes.norm(2, plan.size)
    quantum = quantum_for(strategy, radius, plan.entries, plan.participations, _SHARE)
    mechanism = analytic_gaussian(
        epsilon=plan.epsilon,
        delta=plan.delta,
        sensitivity=radius * (1.0 + ROUNDING) * (1.0 + _SHARE),
        shape=drawn(plan.periods, plan.size),
        neighbours=plan.neighbours,
    )
    deviation = mechanism.standard_deviation * (1.0 + 1e-13)
    return Noise(quantum, (mechanism.law,), (deviation,), compose(mechanism))


def _pure(plan: Plan, tree: Tree) -> Noise:
    """One node of each level contains a period: the levels compose, and what k periods change adds up in l1."""
    radius, quantum = l1_radius(plan)
    mechanisms, laws, deviations = [], [], []
    for level, share in enumerate(tree.shares):
        law = pure_law(plan, plan.epsilon * share, radius)
        shape = (drawn(tree.nodes(level), plan.size),)
        own = math.nextafter(plan.epsilon * share * (1.0 + 1e-13), math.inf)
        claim = Claim(own, 0.0, plan.neighbours, _SOURCE)
        mechanism = Mechanism(law.kind, law, shape, radius, plan.neighbours, claim)
        mechanisms.append(mechanism)
        laws.append(law)
        deviations.append(mechanism.standard_deviation)
    return Noise(quantum, tuple(laws), tuple(deviations), compose(*mechanisms))


def l1_radius(plan: Plan) -> tuple[float, float]:
    """The largest change of the nodes of a level in l1, and the quantum: 1 for whole numbers, else a part of a change.

    Two numbers that are rounded down to quanta differ by at most one quantum more than before.
    """
    radius = plan.participations * plan.changes.norm(1, plan.size)
    if plan.changes.whole:
        return radius, 1.0
    quantum = math.ldexp(1.0, math.frexp(_SHARE * radius / (plan.size * plan.participations))[1] - 1)
    return math.nextafter(radius * (1.0 + _SHARE), math.inf), quantum


def pure_law(plan: Plan, epsilon: float, radius: float) -> Geometric | Laplace:
    """Geometric noise for whole numbers, which is the smaller one; else Laplace's."""
    if plan.changes.whole:
        return Geometric(math.nextafter(epsilon / radius, 0.0))
    return Laplace(math.nextafter(radius / epsilon, math.inf))


def drawn(releases: int, size: int) -> int:
    """As many numbers, drawn with one key, as are at least as far from the ideal as these releases with a key each.

    By ``machine_distance``, q numbers with one key are at most (2 q + 2048)^2/2^129 from it, and distances add up.
    """
    return max(releases * size, math.ceil(math.sqrt(releases) * (size + 1024)))


def best_plan(
    periods: int, shape: object, epsilon: float, delta: float, changes: Changes, participations: int, strategy: str
) -> Plan:
    """The strategy of least mean squared error of the running totals among those that keep the target."""
    validation.choice("strategy", strategy, STRATEGIES)
    single = Tree(1, (), (0.5,))
    base = Plan(periods, shape, epsilon, delta, changes, participations, single)  # type: ignore[arg-type]
    if strategy in GAUSSIAN and base.delta == 0.0:
        raise InvalidInput(
            f'delta=0.0 is too small for strategy="{strategy}", which has Gaussian noise: pass one above 0.'
        )
    candidates = []
    if strategy not in GAUSSIAN:
        radius = l1_radius(base)[0]

        def variance(share: float) -> float:
            """2/rate^2 of Laplace noise; 2 a/(1 - a)^2 = 1/(2 sinh^2(rate/2)) of geometric noise, a = e^-rate."""
            rate = base.epsilon * share / radius
            return 0.5 / math.sinh(min(0.5 * rate, 300.0)) ** 2 if base.changes.whole else 2.0 / rate**2

        candidates.append(replace(base, strategy=fitted_tree(base.periods, variance)))
    kept = can_keep(base.delta, base.epsilon, drawn(base.periods, base.size))
    if strategy in GAUSSIAN or (strategy == "best" and base.delta > 0.0 and kept):
        candidates += [replace(base, strategy=each) for each in _causal(base, strategy)]
    return min(candidates, key=lambda plan: float(np.mean(plan.variances())))


def _causal(base: Plan, strategy: str) -> Iterator[Causal]:
    """Those asked for; for the best one, those that may be it.

    A band of less than half as many coefficients as periods has more error than buffers, and all need much memory.
    """
    short = base.periods <= _MOST_KEPT_PERIODS and 2 * base.periods * base.size <= _MOST_KEPT
    if strategy in ("best", "buffers"):
        yield fitted_buffers(base.periods)
    if strategy == "banded" or (strategy == "best" and short and base.periods <= 2 * BAND):
        yield fitted_banded(base.periods)
    if strategy == "square-root" or (strategy == "best" and short):
        yield fitted_square_root(base.periods)
