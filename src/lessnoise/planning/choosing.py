"""Which law loses least over that many releases? Each candidate on the exact composed curve, compared by its loss."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.composition import Composition, Part
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.mechanism import BEST, CATALOGUE, Mechanism, candidates_for_many, find_mechanism, log_size, with_noise
from lessnoise.planning.fitting import ROUGH, delta_at, goal_of, least_factor, slack

if TYPE_CHECKING:
    from lessnoise.guarantees import Guarantee
    from lessnoise.planning.item import Planned

_GAIN = 5e-4  # of the size of the noise, for which a later candidate is taken: 0.1% of the loss
_LOST = -4e-3  # of ln(mu): a rough look that is so far above the goal is no matter of its width


def repeated(mechanism: Mechanism, times: int, rate: float, factor: float = 1.0) -> Composition:
    """So many releases, with the noise multiplied by a factor."""
    return Composition((Part(with_noise(mechanism, factor), rate, times),))


def _fits_once(mechanism: Mechanism, item: Planned, target: Guarantee) -> bool:
    """Whether it is released once, and was built for that: no scale is better than its own."""
    return item.times == 1 and item.rate == 1.0 and mechanism.guarantee(target.epsilon).delta <= target.delta


def fitted(item: Planned, target: Guarantee) -> Mechanism:
    """The mechanism of an item that would have the whole budget: its noise as small as its releases allow."""
    asked = item.request
    if isinstance(asked, Mechanism):
        return _calibrated(asked, item, target)
    request = replace(asked, epsilon=target.epsilon, delta=target.delta)
    if item.mechanism != BEST:
        named = _named(item.mechanism, request)
        return named if _fits_once(named, item, target) else _calibrated(named, item, target)
    best: Mechanism | None = None
    trouble: Exception | None = None
    for candidate in candidates_for_many(request, item.times, sampled=item.rate < 1.0):
        try:
            best = _better(candidate, best, item, target, request.objective)
        except (LessnoiseError, ArithmeticError) as error:  # a law that has no curve for this, or extreme numbers
            trouble = trouble or error
    if best is not None:
        return best
    if isinstance(trouble, LessnoiseError):
        raise trouble
    raise InvalidInput(
        f"shape={request.shape}, epsilon={request.epsilon:g}, delta={request.delta:g}: no mechanism was found that can "
        "be planned; choose less extreme numbers, or name one, such as mechanism='analytic-gaussian'."
    )


def _better(
    candidate: Mechanism, best: Mechanism | None, item: Planned, target: Guarantee, objective: str
) -> Mechanism | None:
    """The candidate if it loses clearly less than the best so far: one rough look is enough to see most that do not."""
    size = log_size(candidate, objective)
    if not math.isfinite(size):
        return best
    if best is None and _fits_once(candidate, item, target):
        return candidate
    guess = math.sqrt(item.times)
    if best is not None:
        guess = math.exp(log_size(best, objective) - _GAIN - size)
        looked = repeated(candidate, item.times, item.rate, guess)
        goal = goal_of(target, looked.machine_distance)
        if slack(delta_at(looked, target.epsilon, ROUGH).upper, goal, target.epsilon) < _LOST:
            return best
    found = _calibrated(candidate, item, target, guess)
    if best is not None and log_size(found, objective) > log_size(best, objective) - _GAIN:
        return best
    return found


def _named(name: str, request: object) -> Mechanism:
    if name not in CATALOGUE:
        raise validation.unknown("mechanism", name, [BEST, *CATALOGUE])
    entry = find_mechanism(name)
    if not entry.exact:
        raise InvalidInput(
            f"mechanism={name!r} follows a claim, and a plan is calibrated on the exact curve: choose another, or "
            "leave it out for the best one."
        )
    return entry.build(request)  # type: ignore[arg-type]


def _calibrated(mechanism: Mechanism, item: Planned, target: Guarantee, guess: float | None = None) -> Mechanism:
    scaled = functools.partial(repeated, mechanism, item.times, item.rate)
    factor = least_factor(scaled, target, guess=math.sqrt(item.times) if guess is None else guess)
    return with_noise(mechanism, factor)
