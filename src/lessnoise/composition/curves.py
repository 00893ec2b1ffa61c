"""The exact curve of many steps: delta at an epsilon, epsilon at a delta, as proved brackets."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from lessnoise.composition import gaussians
from lessnoise.composition.accountant import Accountant
from lessnoise.composition.curve_points import Samples, fixed_pair_delta
from lessnoise.guarantees import Bracket
from lessnoise.mechanism import computable, delta_of, epsilon_of, law_pure_epsilon

if TYPE_CHECKING:
    from lessnoise.mechanism import Law


class Step(NamedTuple):
    """One kind of step: what noise against what change, on which share of the data, how often."""

    law: Law
    dimension: int
    sensitivity: float
    rate: float
    times: int

    @property
    def mu(self) -> tuple[float, float] | None:
        """Ends of mu of a Gaussian on all the data; None for all others."""
        return None if self.rate < 1.0 else gaussians.mu_range(self.law, self.dimension, self.sensitivity)

    @property
    def pure_epsilon(self) -> float:
        """The largest loss of one step, rounded up: with sampling ln(1 + q (e^eps - 1))."""
        pure = law_pure_epsilon(self.law, self.dimension, self.sensitivity)
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
def delta_of_steps(steps: tuple[Step, ...], epsilon: float) -> Bracket:
    """Bracket of the smallest delta with (epsilon, delta)-DP of all steps together."""
    if epsilon >= pure_epsilon(steps):
        return Bracket(0.0, 0.0)
    single = _single(steps)
    if single is not None:
        return delta_of(single.law, single.dimension, single.sensitivity, epsilon)
    normal = _all_gaussian(steps)
    if normal is not None:
        return normal.delta(epsilon)
    return accountant_of(steps).delta(epsilon)


@functools.lru_cache(maxsize=256)
@computable
def within(steps: tuple[Step, ...], epsilon: float, delta: float) -> bool:
    """Whether all steps together are proved to be (epsilon, delta)-DP."""
    if epsilon >= pure_epsilon(steps):
        return True
    if delta > 0.0 and _all_gaussian(steps) is None and accountant_of(steps).surely_within(epsilon, delta):
        return True
    return delta > 0.0 and delta_of_steps(steps, epsilon).upper <= delta


@functools.lru_cache(maxsize=256)
@computable
def epsilon_of_steps(steps: tuple[Step, ...], delta: float) -> Bracket:
    """Bracket of the smallest epsilon >= 0 with (epsilon, delta)-DP of all steps together."""
    pure = pure_epsilon(steps)
    if delta == 0.0:
        return Bracket(pure * (1.0 - 1e-13) if math.isfinite(pure) else pure, pure)
    single = _single(steps)
    if single is not None:
        return epsilon_of(single.law, single.dimension, single.sensitivity, delta)
    normal = _all_gaussian(steps)
    found = accountant_of(steps).epsilon(delta) if normal is None else normal.epsilon(delta)
    return Bracket(min(found.lower, pure), min(found.upper, pure))


def accountant_of(steps: tuple[Step, ...]) -> Accountant:
    """The discretised losses of the steps, Gaussians merged.

    A fresh one for every question, so that no answer depends on what was asked before; points of curves are kept.
    """
    samples = [
        Samples(functools.partial(fixed_pair_delta, step.law, step.dimension, step.sensitivity), step.rate, step.times)
        for step in steps
        if step.mu is None
    ]
    counts = [step.times for step in steps if step.mu is None]
    normals = [(step.mu, step.times) for step in steps if step.mu is not None]
    if normals:
        samples.append(Samples(gaussians.merged(normals).delta, 1.0, 1))
        counts.append(1)
    return Accountant(samples, counts)


def _single(steps: tuple[Step, ...]) -> Step | None:
    """The only release, if there is but one, on all the data."""
    return steps[0] if len(steps) == 1 and steps[0].times == 1 and steps[0].rate == 1.0 else None


def _all_gaussian(steps: tuple[Step, ...]) -> gaussians.Normal | None:
    """All steps as one Gaussian, if each is one."""
    known = [(step.mu, step.times) for step in steps if step.mu is not None]
    return gaussians.merged(known) if len(known) == len(steps) else None
