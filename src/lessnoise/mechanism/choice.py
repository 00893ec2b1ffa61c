"""The least noise for what one individual can change: every law that has a curve for the set, each as small as it gets.

The l2 ball has a search of its own (``least.builder``). For other sets the laws below are compared by their loss.
"""

from __future__ import annotations

import functools
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lessnoise import changes as sets
from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._later import later
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism import estimate
from lessnoise.mechanism.builders import OURS, l2_mechanism
from lessnoise.mechanism.curve import delta_of, gaussian, worst_of
from lessnoise.mechanism.curve.coins import largest_size
from lessnoise.mechanism.families.correlated_gaussian import correlated_gaussian
from lessnoise.mechanism.families.discrete_gaussian import discrete_gaussian
from lessnoise.mechanism.families.discrete_power import DiscretePower
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian
from lessnoise.mechanism.families.geometric import Geometric, geometric
from lessnoise.mechanism.families.norm_builder import body_of, norm_radial
from lessnoise.mechanism.families.norm_radial import NormRadial
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.least.builder import LEAST_NOISE, least_in_ball
from lessnoise.mechanism.least.correlated import correlated_radial
from lessnoise.mechanism.least.objective import Design, Goal
from lessnoise.mechanism.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lessnoise._common import Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.mechanism import Mechanism

FEWEST_NORMAL = 400  # entries that change together: the Gaussian is as good as any independent noise
_LARGE, _NEAR_GAUSSIAN = 50, 0.7  # from so many entries on, no noise for the ball has less than this share of its loss
_MARGIN, _STEP = 0.96, 1.0003  # the share of delta that estimates aim at, and the step until it is proved
_MOST_STEPS = 60
_FINENESS = 2.0**-9  # of a scale found by halving
_FEW = 60  # entries times releases, for which the l2 mechanism is tried
_LARGEST_BODY = 100  # entries; beyond, noise on bodies is tried only if it can win


def least_noise(
    *,
    epsilon: float,
    delta: float,
    shape: Shape,
    sensitivity: float | None = None,
    changes: Changes | None = None,
    releases: int = 1,
    objective: str = "squared",
    neighbours: Neighbours | str | None = None,
) -> Mechanism:
    """The mechanism with the smallest loss that we can certify, for what one individual can change.

    ``changes`` is the set of changes, from :mod:`lessnoise.changes`; ``sensitivity=D`` is short for the l2 ball
    ``changes.ball(D)``. The target (epsilon, delta) is for all ``releases`` together, each with fresh noise.
    ``objective`` is "squared" (the mean of ||n||^2), "l2" (the mean of ||n||) or, for instance, "quantile:0.95" (that
    quantile of ||n||^2). ``design`` of the result says which law won; ``optimality`` how far any additive
    mechanism could still be below it.

    >>> import lessnoise as ln
    >>> counts = least_noise(epsilon=1, delta=1e-6, shape=6, changes=ln.changes.counts())
    >>> ball = least_noise(epsilon=1, delta=1e-6, shape=6, sensitivity=1)
    >>> f"{counts.expected_loss:.2f} for six counts, {ball.expected_loss:.2f} for any change of length 1"
    '11.05 for six counts, 39.85 for any change of length 1'
    >>> counts.release([4, 1, 3, 0, 2, 9]).value.dtype, counts.check().holds
    (dtype('int64'), True)
    """
    if (sensitivity is None) == (changes is None):
        raise InvalidInput(
            f"sensitivity={sensitivity}, changes={changes}: pass one of them, a length or a set of lessnoise.changes."
        )
    times = validation.whole_number("releases", releases)
    if changes is None and times == 1:
        assert sensitivity is not None
        relation = Neighbours.ADD_REMOVE if neighbours is None else neighbours
        return least_in_ball(
            epsilon=epsilon,
            delta=delta,
            sensitivity=sensitivity,
            shape=shape,
            objective=objective,
            neighbours=relation,
        )
    found = sets.ball(sensitivity) if changes is None else sets.read_changes(changes)  # type: ignore[arg-type]
    relation = found.relation or Neighbours.ADD_REMOVE if neighbours is None else Neighbours.of(neighbours)
    request = Request(epsilon, delta, None, shape, relation, objective=objective, changes=found)  # type: ignore[arg-type]
    return least_for(request, times)


@functools.lru_cache(maxsize=64)
def least_for(request: Request, releases: int = 1) -> Mechanism:
    """The least noise for a request that names its changes."""
    goal = Goal.of(request.objective)
    best = _Target(request, releases, goal).best()
    choice = best.law.choice(request.dimension)
    note = "" if best.design is None else best.design.note
    return replace(best, name=LEAST_NOISE, design=Design(goal.name, choice, note, releases))


@dataclass(frozen=True)
class _Target:
    """What to keep, over how many releases, and what to make small."""

    request: Request
    releases: int
    goal: Goal

    @property
    def changes(self) -> Changes:
        assert self.request.changes is not None
        return self.request.changes

    @property
    def delta(self) -> float:
        """What is left for the noise, over all releases."""
        request = self.request
        return noise_engine.reserved(request.delta, request.epsilon, request.dimension * self.releases)

    def best(self) -> Mechanism:
        """The law of the smallest loss."""
        if self.settled is not None:
            return self.settled
        found: list[Mechanism] = []
        for build in (_independent, _by_power, _discrete_normal, _correlated, _of_the_body):
            with suppress(LessnoiseError, ArithmeticError, ValueError):  # extreme numbers, for some laws
                found.extend(build(self))
        smallest = min(map(self.loss, found), default=math.inf)
        found.extend(self._for_the_ball(smallest))
        return min(found, key=self.loss)

    @functools.cached_property
    def settled(self) -> Mechanism | None:
        """One count that changes by 1, released once: nothing is better than the integer optimum."""
        request, moves = self.request, self.changes.dominant(self.request.dimension)
        if not self.changes.whole or self.releases > 1 or moves is None or moves.sizes != ((1.0, 1),):
            return None
        with suppress(LessnoiseError):
            return geometric(**request.standard(sensitivity=1.0)).against(self.changes)
        return None

    def loss(self, built: Mechanism) -> float:
        """In the objective; infinite where that is not computed for a law."""
        try:
            return self.goal.loss_ratio(self.goal.log_size(built.law, built.dimension))
        except (TypeError, LessnoiseError, IndexError):
            return math.inf

    def keeps(self, law: Law) -> bool:
        """Whether all releases together are proved to keep the target."""
        request = self.request
        shift = worst_of(law, self.changes, request.dimension)
        if self.releases == 1:
            return delta_of(law, request.dimension, shift, request.epsilon).upper <= self.delta
        within: Callable[..., bool] = later("repeated within")
        return within(law, request.dimension, shift, self.releases, request.epsilon, self.delta)

    def mechanism(self, law: Law) -> Mechanism:
        """With the claim that one release keeps the target, as all of them do."""
        return self.request.mechanism(LEAST_NOISE, law, OURS)

    def proved(self, law: Callable[[float], Law], scale: float) -> Iterator[Mechanism]:
        """The law of the first scale from here on that is proved to keep the target."""
        for _ in range(_MOST_STEPS):
            if self.keeps(law(scale)):
                yield self.mechanism(law(scale))
                return
            scale *= _STEP

    def shrunk(self, law: Callable[[float], Law], scale: float) -> Iterator[Mechanism]:
        """The law of a scale that keeps the target, made smaller as far as that is proved."""
        if not self.keeps(law(scale)):
            return
        low, high = 0.0, 1.0
        while high - low > _FINENESS:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.keeps(law(middle * scale)) else (middle, high)
        yield self.mechanism(law(high * scale))

    def _for_the_ball(self, smallest: float) -> Iterator[Mechanism]:
        """Isotropic noise for the smallest ball that holds the set."""
        request = self.request
        normal = gaussian.gaussian_scale(request.epsilon, self.delta) * request.sensitivity * math.sqrt(self.releases)
        law = Radial(request.dimension, 2.0, math.sqrt(2.0) * normal * (1.0 + 1e-14))
        built = self.mechanism(law)
        if self.releases > 1:
            yield from self.proved(law.scaled, 1.0)
            if request.dimension * self.releases <= _FEW:
                pure = request.sensitivity * self.releases / request.epsilon * (1.0 + 1e-14)
                yield from self.shrunk(functools.partial(Radial, request.dimension, 1.0), pure)
        elif request.dimension < _LARGE or smallest > _NEAR_GAUSSIAN * self.loss(built):
            yield least_in_ball(**request.standard(), objective=request.objective).against(self.changes)
            yield l2_mechanism(**request.standard()).against(self.changes)  # the search gives up small gains


def _independent(target: _Target) -> Iterator[Mechanism]:
    """Geometric or Laplace noise."""
    request, changes = target.request, target.changes
    l1 = changes.norm(1, request.dimension)
    if not changes.whole:
        scale = l1 * target.releases / request.epsilon
        yield from target.proved(Laplace, scale)
        return
    moves = changes.majorant(request.dimension)
    rate = float(Fraction(request.epsilon) / (Fraction(l1) * target.releases)) * (1.0 - 1e-15)
    if moves is not None and moves.sizes[0][0] == 1.0:
        rate = max(rate, largest_size(moves.count * target.releases, request.epsilon, target.delta))
    yield from target.proved(lambda factor: Geometric(rate / factor), 1.0)
    single = changes.dominant(request.dimension)
    if single is not None and single.sizes[0][0] == 1.0:  # integers that end, each at its share
        steps = single.count * target.releases
        ended = Geometric(request.epsilon / steps * (1.0 - 1e-14), target.delta / steps * (1.0 - 1e-9))
        if target.keeps(ended):
            yield target.mechanism(ended)


def _by_power(target: _Target) -> Iterator[Mechanism]:
    """Independent entries between Laplace and Gaussian, where several entries change or several releases are made."""
    request, changes = target.request, target.changes
    moves = changes.dominant(request.dimension)
    if moves is None or not 1 < moves.count * target.releases < FEWEST_NORMAL:
        return
    families = (DiscretePower, GeneralizedGaussian) if changes.whole else (GeneralizedGaussian,)
    for family in families:
        integer = family is DiscretePower
        estimated = functools.partial(least_scale, moves, target.releases, request.epsilon, integer)
        with suppress(LessnoiseError):  # integers so wide that they are not summed: real numbers serve
            yield from target.proved(*_best_power(family, estimated, target))
            return


def _best_power(
    family: type[DiscretePower | GeneralizedGaussian], estimated: Callable[[float, float], float], target: _Target
) -> tuple[Callable[[float], Law], float]:
    """The laws of the power with the least loss, and about the scale that keeps the target."""

    def size(p: float) -> float:
        return target.goal.log_size(family(p, estimated(p, target.delta)), target.request.dimension)

    p = least_argument(size, 1.0, 2.0)
    return functools.partial(family, p), estimated(p, _MARGIN * target.delta)


def discrete_power(request: Request) -> Mechanism:
    """The best integers between geometric and Gaussian for a request that names changes of several counts."""
    if request.changes is None or not request.changes.whole:
        raise InvalidInput(
            f"changes={request.changes}, but discrete-power noise is for counts that change together: pass a set such "
            "as lessnoise.changes.counts(20, per_cell=1)."
        )
    try:
        built = next(_by_power(_Target(request, 1, Goal.of("squared"))), None)
    except (ArithmeticError, ValueError):
        raise InvalidInput(
            f"epsilon={request.epsilon:g}, delta={request.delta:g} are too extreme for discrete-power noise: choose "
            "ordinary numbers, or least-noise."
        ) from None
    if built is None:
        raise InvalidInput(
            f"no discrete-power noise is known for changes={request.changes}, epsilon={request.epsilon:g}, "
            f"delta={request.delta:g}: choose least-noise, or changes of 2 to {FEWEST_NORMAL} counts."
        )
    return replace(built, name=built.law.kind)


def least_scale(moves: sets.Moves, releases: int, epsilon: float, integer: bool, p: float, delta: float) -> float:
    """About the smallest scale at which noise exp(-|x/scale|^p) keeps the target."""

    def curve(x: float) -> float:
        return estimate.power_delta(p, math.exp(x), moves, releases, epsilon, integer=integer)

    start = math.log(moves.norm(2) * math.sqrt(2.0 * releases) * gaussian.gaussian_scale(epsilon, delta))
    return math.exp(estimate.crossing(curve, delta, start))


def least_argument(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is smallest, to a hundredth."""
    from scipy.optimize import minimize_scalar

    inner = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 0.01})
    return float(min((low, float(inner.x), high), key=function))


def _discrete_normal(target: _Target) -> Iterator[Mechanism]:
    """Discrete Gaussian noise."""
    if target.changes.whole and target.releases == 1:
        yield discrete_gaussian(**target.request.standard()).against(target.changes)


def _correlated(target: _Target) -> Iterator[Mechanism]:
    """Gaussian noise with a common part: normal, so that releases add up as squares."""
    bound = target.request.entry_bound
    if bound is not None and target.request.neighbours is Neighbours.ADD_REMOVE:
        wider = bound * math.sqrt(target.releases) * (1.0 + 1e-15)
        built = correlated_gaussian(**target.request.standard(sensitivity=wider))
        if target.keeps(built.law):
            yield target.mechanism(built.law)


def _of_the_body(target: _Target) -> Iterator[Mechanism]:
    """Noise whose level sets are the set of changes, or ellipsoids around a corner."""
    request, changes = target.request, target.changes
    arguments = request.standard("sensitivity", changes=changes)
    if target.releases == 1 and changes.one_sided:
        with suppress(LessnoiseError):  # one bound for all entries
            yield correlated_radial(**arguments)
    if _hopeless(target):
        return
    if target.releases == 1 and isinstance(changes, sets.Counts) and changes.one_sided:
        around = sets.corner(changes.norm(math.inf, request.dimension))
        with suppress(LessnoiseError):  # its worst vertex is not in the set
            yield norm_radial(**request.standard("sensitivity", changes=around)).against(changes)
    if not isinstance(changes, (sets.Ball, sets.Box, sets.Corner)):
        return
    if target.releases == 1:
        yield norm_radial(**arguments)
        return
    body, factors = body_of(changes)
    law = functools.partial(NormRadial, body, 1.0, factors=factors)
    size = worst_of(law(1.0), changes, request.dimension)
    assert isinstance(size, float)
    yield from target.shrunk(law, size * target.releases / request.epsilon * (1.0 + 1e-14))


def _hopeless(target: _Target) -> bool:
    """Whether even a quarter of the pure noise on a cube, s^2 (M + 1)(M + 2)/3 an entry, is more than a Gaussian's."""
    request, size = target.request, target.request.dimension
    normal = gaussian.gaussian_scale(request.epsilon, target.delta) ** 2
    return size > _LARGEST_BODY and (size + 1.0) * (size + 2.0) > 12.0 * normal * size * request.epsilon**2


__all__ = ["FEWEST_NORMAL", "discrete_power", "least_argument", "least_for", "least_noise", "least_scale"]
