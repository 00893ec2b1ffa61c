"""The exact curve of many steps: delta at an epsilon, epsilon at a delta, as proved brackets.

Gaussians merge: steps of mu_1, ..., mu_n together are one Gaussian of mu^2 = mu_1^2 + ... + mu_n^2, exactly.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lessnoise._later import offers
from lessnoise.changes import Moves
from lessnoise.composition.accountant import Accountant
from lessnoise.composition.curve_points import Samples, fixed_pair_delta
from lessnoise.guarantees import Bracket
from lessnoise.mechanism import (
    LARGEST_EPSILON,
    MOST_TOSSES,
    Coins,
    CorrelatedGaussian,
    GeneralizedGaussian,
    Geometric,
    Law,
    MatrixGaussian,
    Measured,
    Radial,
    computable,
    delta_of,
    epsilon_of,
    gaussian_delta,
    invert_curve,
    moves_of,
    mu_of,
    pure_epsilon_of,
    worst_mu,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARP = 8.0  # how much narrower brackets are where a decision is close
_ROUNDING = 4e-15


class Step(NamedTuple):
    """One kind of step: what noise against what change, on which share of the data, how often."""

    law: Law
    dimension: int
    shift: float | Moves
    rate: float
    times: int

    @property
    def mu(self) -> tuple[float, float] | None:
        """Ends of mu of a Gaussian on all the data; None for all others."""
        if self.rate < 1.0 or isinstance(self.shift, Moves):
            return None
        return mu_range(self.law, self.dimension, self.shift)

    @property
    def by_entry(self) -> list[Step]:
        """Independent entries that change together are as many steps of one entry each."""
        if self.rate < 1.0:
            return [self]
        law, moves = self.law, self.shift
        if isinstance(law, Measured) and not law.is_gaussian and not isinstance(moves, Moves):
            found, above = moves_of(law, moves)
            if len(found) == 1 and above is None:  # all columns of the strategy are alike
                law, moves = law.noise, found[0]
        if not isinstance(moves, Moves):
            return [self]
        return [Step(law, 1, size, 1.0, count * self.times) for size, count in moves.sizes]

    @property
    def pure_epsilon(self) -> float:
        """The largest loss of one step, rounded up: with sampling ln(1 + q (e^eps - 1))."""
        pure = pure_epsilon_of(self.law, self.dimension, self.shift)
        if self.rate == 1.0 or pure == math.inf:
            return pure
        if pure > 700.0:  # ln(q e^eps + 1)
            logarithm = pure + math.log(self.rate)
            return (max(logarithm, 0.0) + math.log1p(math.exp(-abs(logarithm)))) * (1.0 + 1e-14) + pure * 1e-14
        return math.nextafter(math.log1p(self.rate * math.expm1(pure)) * (1.0 + 1e-14), math.inf)


def pure_epsilon(steps: tuple[Step, ...]) -> float:
    """Epsilon at delta = 0: the largest losses add up."""
    return math.fsum(step.times * step.pure_epsilon for step in steps) * (1.0 + 1e-15)


@functools.lru_cache(maxsize=256)
@computable
def delta_of_steps(steps: tuple[Step, ...], epsilon: float, sharpness: float = 1.0) -> Bracket:
    """Bracket of the smallest delta with (epsilon, delta)-DP of all steps together, ``sharpness`` times narrower."""
    if epsilon >= pure_epsilon(steps):
        return Bracket(0.0, 0.0)
    single = _single(steps)
    if single is not None:
        return delta_of(single.law, single.dimension, single.shift, epsilon)
    known = _known(steps)
    found = accountant_of(steps, sharpness).delta(epsilon) if known is None else known.delta(epsilon)
    basic = basic_guarantee(steps)
    upper = min(found.upper, basic[1]) if epsilon >= basic[0] else found.upper
    return Bracket(min(found.lower, upper), upper)


@functools.lru_cache(maxsize=256)
@computable
def within(steps: tuple[Step, ...], epsilon: float, delta: float) -> bool:
    """Whether all steps together are proved to be (epsilon, delta)-DP."""
    basic = basic_guarantee(steps)
    if epsilon >= pure_epsilon(steps) or (epsilon >= basic[0] and delta >= basic[1]):
        return True
    if delta > 0.0 and _known(steps) is None and accountant_of(steps).surely_within(epsilon, delta):
        return True
    if delta == 0.0:
        return False
    found = delta_of_steps(steps, epsilon)
    if found.lower <= delta < found.upper:  # too close to call: look closer
        found = delta_of_steps(steps, epsilon, SHARP)
    return found.upper <= delta


@functools.lru_cache(maxsize=256)
@computable
def epsilon_of_steps(steps: tuple[Step, ...], delta: float) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with (epsilon, delta)-DP of all steps together."""
    pure = pure_epsilon(steps)
    if delta == 0.0:
        return Bracket(pure * (1.0 - 1e-13) if math.isfinite(pure) else pure, pure)
    single = _single(steps)
    if single is not None:
        return epsilon_of(single.law, single.dimension, single.shift, delta)
    known = _known(steps)
    found = accountant_of(steps).epsilon(delta) if known is None else known.epsilon(delta)
    basic = basic_guarantee(steps)
    upper = min(found.upper, pure, basic[0] if basic[1] <= delta else math.inf)
    return Bracket(min(found.lower, upper), upper)


def basic_guarantee(steps: tuple[Step, ...]) -> tuple[float, float]:
    """Epsilons and deltas, each added up: sharp where losses are all or nothing, as no lattice of losses can be.

    Infinite if some step has no epsilon of its own: pure steps have, and integers that end somewhere.
    """
    epsilon = math.fsum(step.times * (own_epsilon(step.law, step.shift) or step.pure_epsilon) for step in steps)
    if epsilon == math.inf:
        return math.inf, 1.0
    deltas = [
        step.times * delta_of(step.law, step.dimension, step.shift, own).upper
        for step in steps
        if (own := own_epsilon(step.law, step.shift)) is not None
    ]
    return epsilon * (1.0 + 1e-15), min(math.fsum(deltas) * (1.0 + 1e-15), 1.0)


@functools.singledispatch
def own_epsilon(law: Law, shift: float | Moves) -> float | None:
    """The epsilon of a law that is not pure, beyond which next to nothing is lost."""
    return None


@own_epsilon.register(Geometric)
def _(law: Geometric, shift: float | Moves) -> float | None:
    return law.rate if shift == 1.0 and law.reach is not None else None


@offers("delta of entries")
def delta_of_entries(law: Law, moves: Moves, epsilon: float) -> Bracket:
    """Delta of independent entries that change together: a composition of single entries."""
    return delta_of_steps(tuple(Step(law, 1, moves, 1.0, 1).by_entry), epsilon)


@offers("epsilon of entries")
def epsilon_of_entries(law: Law, moves: Moves, delta: float) -> Bracket:
    """The same for epsilon."""
    return epsilon_of_steps(tuple(Step(law, 1, moves, 1.0, 1).by_entry), delta)


@offers("repeated within")
def repeated_within(
    law: Law, dimension: int, shift: float | Moves, releases: int, epsilon: float, delta: float
) -> bool:
    """Whether so many releases are proved to be (epsilon, delta)-DP."""
    return within(tuple(Step(law, dimension, shift, 1.0, releases).by_entry), epsilon, delta)


def accountant_of(steps: tuple[Step, ...], sharpness: float = 1.0) -> Accountant:
    """The discretised losses of the steps, Gaussians merged.

    A fresh one for every question, so that no answer depends on what was asked before; points of curves are kept.
    """
    samples = [
        Samples(functools.partial(fixed_pair_delta, step.law, step.dimension, step.shift), step.rate, step.times)
        for step in steps
        if step.mu is None
    ]
    counts = [step.times for step in steps if step.mu is None]
    normals = [(step.mu, step.times) for step in steps if step.mu is not None]
    if normals:
        samples.append(Samples(merged(normals).delta, 1.0, 1))
        counts.append(1)
    return Accountant(samples, counts, sharpness)


def _single(steps: tuple[Step, ...]) -> Step | None:
    """The only release, if there is but one, on all the data."""
    return steps[0] if len(steps) == 1 and steps[0].times == 1 and steps[0].rate == 1.0 else None


def _known(steps: tuple[Step, ...]) -> Normal | Coins | None:
    """All steps in closed form: as one Gaussian, if each is one, or as tosses of one coin."""
    known = [(step.mu, step.times) for step in steps if step.mu is not None]
    if len(known) == len(steps):
        return merged(known)
    size = coin_of(steps[0].law, steps[0].shift)
    tosses = sum(step.times for step in steps)
    alike = all(step.law == steps[0].law and step.shift == steps[0].shift and step.rate == 1.0 for step in steps)
    return Coins(size, tosses) if size is not None and alike and tosses <= MOST_TOSSES else None


@functools.singledispatch
def coin_of(law: Law, shift: float | Moves) -> float | None:
    """The a of a law that loses +a or -a and nothing else; None for others."""
    return None


@coin_of.register(Geometric)
def _(law: Geometric, shift: float | Moves) -> float | None:
    return law.rate if shift == 1.0 and law.reach is None else None


# Gaussians.


@functools.singledispatch
def mu_range(law: Law, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    """Proved ends of mu = shift/sigma of a law whose worst pair is two unit normals mu apart; None for others."""
    return None


@mu_range.register(Radial)
def _(law: Radial, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return _around(math.sqrt(2.0) * sensitivity / law.scale) if law.is_gaussian(dimension) else None


@mu_range.register(GeneralizedGaussian)
def _(law: GeneralizedGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    known = law.known(dimension)
    return None if known is None else mu_range(known, dimension, sensitivity)


@mu_range.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return _around(worst_mu(law, dimension, sensitivity))


@mu_range.register(Measured)
def _(law: Measured, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return mu_of(law, sensitivity) if law.is_gaussian else None


@mu_range.register(MatrixGaussian)
def _(law: MatrixGaussian, dimension: int, sensitivity: float) -> tuple[float, float] | None:
    return law.mu_range(sensitivity)


@dataclass(frozen=True)
class Normal:
    """Two unit normals mu apart, mu known within rounding."""

    low: float
    high: float

    def delta(self, epsilon: float, tolerance: float = 0.0) -> Bracket:
        """The closed form, at either end of mu."""
        lower, upper = gaussian_delta(self.low, epsilon).lower, gaussian_delta(self.high, epsilon).upper
        return Bracket(min(lower, upper), upper)

    def epsilon(self, delta: float) -> Bracket:
        """Its inverse."""
        if self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0)
        unit = self.high * max(1.0, self.high)

        def at(x: float, tolerance: float) -> Bracket:
            return self.delta(unit * math.exp(x), tolerance)

        found = invert_curve(at, delta, start=0.0, lowest=-60.0, highest=math.log(1e3 * LARGEST_EPSILON / unit))
        lower = 0.0 if found.lower == -math.inf else unit * math.exp(found.lower)
        upper = unit * math.exp(found.upper) * (1.0 + 1e-15)
        return Bracket(min(lower * (1.0 - 1e-15), upper), upper)


def merged(ranges: Iterable[tuple[tuple[float, float], int]]) -> Normal:
    """All together, each taken ``count`` times.

    >>> normal = merged([((3.0, 3.0), 1), ((2.0, 2.0), 4)])
    >>> normal.low < 5.0 < normal.high, normal.high - normal.low < 1e-12
    (True, True)
    """
    parts = [(low * low * count, high * high * count) for (low, high), count in ranges]
    low, high = math.fsum(part[0] for part in parts), math.fsum(part[1] for part in parts)
    return Normal(math.sqrt(low) * (1.0 - _ROUNDING), math.sqrt(high) * (1.0 + _ROUNDING))


def _around(mu: float) -> tuple[float, float]:
    return mu * (1.0 - _ROUNDING), mu * (1.0 + _ROUNDING)
