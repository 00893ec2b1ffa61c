"""How much noise makes many releases fit? One factor for all of it, found on the exact composed curve.

The search is in mu, the distance of two unit normals with the same delta at the target's epsilon: composed losses are
nearly normal, so mu is nearly in inverse proportion to the factor, and two or three looks at the curve are enough. What
is returned is proved by the upper end of a bracket; how good it is, the lower end tells.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.composition import SHARP, delta_of_steps
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.mechanism import gaussian_scale
from lessnoise.noise import machine_delta
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise.composition import Composition
    from lessnoise.guarantees import Bracket, Guarantee

    Scaled = Callable[[float], Composition]  # all releases, with their noise multiplied by a factor

ROUGH = 1.0
_CLOSE = {ROUGH: 2e-3, SHARP: 5e-4}  # of ln(factor), above the smallest
_EXACT = 1e-9  # the same for a curve in closed form
_NARROW = 2e-4  # of ln(factor), between what fits and what does not
_NEAR = 4e-3  # of ln(mu), from where a step ends within a few ten-thousandths
_LIKELY = 0.85  # where, between the ends of a rough bracket, the upper end of a sharp one lies
_LOOKS = 60
_WIDEST = 60.0  # of ln(factor)
_SHARE_OF_MACHINE = 2.0**-10  # of delta, at most


def goal_of(target: Guarantee, distance: float) -> float:
    """The delta that is left for the noise, with what a finite machine adds set aside."""
    added = machine_delta(target.epsilon, distance)
    if added > _SHARE_OF_MACHINE * target.delta:
        raise InvalidInput(
            f"delta={target.delta:g} is too small for epsilon={target.epsilon:g} and that many values: the random "
            f"numbers alone may add {up(added)} to it; choose a larger delta, a smaller epsilon or fewer releases."
        )
    return math.nextafter(target.delta - added, 0.0)


def delta_at(composition: Composition, epsilon: float, sharpness: float) -> Bracket:
    """The exact delta of all releases together, the bracket as narrow as is asked for."""
    return delta_of_steps(composition.steps, epsilon, sharpness)


def slack(delta: float, goal: float, epsilon: float) -> float:
    """By how much, in ln(mu), a delta is below the goal; negative above it.

    >>> slack(1e-6, 1e-6, 1.0), slack(0.0, 1e-6, 1.0), slack(1e-5, 1e-6, 1.0) < -0.1
    (0.0, inf, True)
    """
    if delta == goal:
        return 0.0
    if delta < 1e-300:
        return math.inf
    if delta >= 1.0:
        return -math.inf
    return math.log(gaussian_scale(epsilon, delta) / gaussian_scale(epsilon, goal))


def least_factor(scaled: Scaled, target: Guarantee, *, guess: float = 1.0, sharpness: float = SHARP) -> float:
    """About the smallest factor with which all releases are proved to keep the target: within 0.1% where sharp.

    >>> import lessnoise as ln
    >>> from lessnoise.mechanism import with_noise
    >>> one = ln.laplace(epsilon=1, sensitivity=1, shape=1)
    >>> factor = least_factor(lambda factor: with_noise(one, factor).repeat(12), ln.Guarantee(1, 1e-6))
    >>> 11.9 < factor < 12.0  # epsilons that are added up would need 12
    True
    """
    goal = goal_of(target, scaled(guess).machine_distance)
    search = _Search(scaled, target.epsilon, goal)
    x = math.log(guess)
    if all(step.mu is not None for step in scaled(guess).steps):  # in closed form
        return math.exp(search.run(x, ROUGH, _EXACT))
    if sharpness > ROUGH:
        x = search.approach(x)
    return math.exp(search.run(x, sharpness, _CLOSE[sharpness]))


class _Search:
    """Looks at the curve, and where to look next; x is the ln of the factor."""

    def __init__(self, scaled: Scaled, epsilon: float, goal: float) -> None:
        self.scaled, self.epsilon, self.goal = scaled, epsilon, goal
        self.low, self.high = -math.inf, math.inf  # does not fit, fits
        self.before: tuple[float, float] | None = None
        self.step = 0.7
        self.rate = 1.0  # of the room in ln(mu) with x

    def look(self, x: float, sharpness: float) -> Bracket:
        return delta_at(self.scaled(math.exp(x)), self.epsilon, sharpness)

    def approach(self, x: float) -> float:
        """By rough looks to where one sharp look may do: near enough that the next step is right."""
        for _ in range(_LOOKS):
            found = self.look(x, ROUGH)
            likely = found.lower + _LIKELY * (found.upper - found.lower)  # the upper end of a sharp look
            room = slack(likely, self.goal, self.epsilon)
            self._note(x, room)
            if abs(room) <= _NEAR or self.high - self.low <= _NARROW:
                x = self._next(x, room, 0.5 * _CLOSE[SHARP])
                break
            x = self._next(x, room, 0.0)
        self.low, self.high = -math.inf, math.inf  # which a rough look has not shown for good
        self.before = None
        return x

    def run(self, x: float, sharpness: float, close: float) -> float:
        """The smallest x that is shown to fit: by less than ``close``, or hardly above what does not."""
        for _ in range(_LOOKS):
            room = slack(self.look(x, sharpness).upper, self.goal, self.epsilon)
            self._note(x, room)
            if 0.0 <= room / self.rate <= close or self.high - self.low <= min(close, _NARROW):
                return self.high
            x = self._next(x, room, 0.5 * close)
            if abs(x) > _WIDEST:
                break
        if math.isfinite(self.high):
            return self.high
        raise LessnoiseError(
            f"no scale of this noise was found that keeps delta={self.goal:g}: choose another mechanism."
        )

    def _note(self, x: float, room: float) -> None:
        if room >= 0.0:
            self.high = min(x, self.high)
        else:
            self.low = max(x, self.low)

    def _next(self, x: float, room: float, aim: float) -> float:
        """A step in mu, whose rate the last two looks tell; in the middle where that leads nowhere."""
        if self.before is not None and math.isfinite(room) and math.isfinite(self.before[1]) and x != self.before[0]:
            self.rate = min(max((room - self.before[1]) / (x - self.before[0]), 0.02), 10.0)
        self.before = (x, room)
        if math.isfinite(room):
            x -= room / self.rate - aim
        else:
            x, self.step = x - math.copysign(self.step, room), 1.7 * self.step
        if self.low < x < self.high:
            return x
        if math.isfinite(self.low) and math.isfinite(self.high):
            return 0.5 * (self.low + self.high)
        return self.high - aim if math.isfinite(self.high) else self.low + aim
