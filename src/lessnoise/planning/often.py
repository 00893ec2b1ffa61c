"""How many times can this be released? The largest number whose exact composition is proved to fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise._display import Facts, Listed
from lessnoise.composition import SHARP, Composition, as_composition
from lessnoise.guarantees import Bracket, Guarantee
from lessnoise.noise import with_machine
from lessnoise.planning.fitting import ROUGH, delta_at, slack
from lessnoise.text import down, up

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism

MOST = 10**9
_LOOKS = 200
_FAR = 4e-3  # of ln(mu): a rough look tells on which side


@dataclass(frozen=True)
class HowOften(Listed):
    """The number of releases that fit into a budget, with their exact delta, and that of one release more."""

    times: int
    target: Guarantee
    exact: Bracket
    one_more: Bracket | None

    def __int__(self) -> int:
        return self.times

    @property
    def is_proved(self) -> bool:
        """Whether one more is proved not to fit; else it is only not proved to fit."""
        return self.one_more is not None and self.one_more.lower > self.target.delta

    def __str__(self) -> str:
        epsilon = up(self.target.epsilon)
        if self.one_more is None:
            return f"{self.times:,} releases fit, and more are not looked at"
        what = "does not fit" if self.is_proved else "cannot be proved to fit"
        more = f"one more {what}: delta at least {down(self.one_more.lower, 5)} at epsilon = {epsilon}"
        if self.times == 0:
            one = "not even one release fits" if self.is_proved else "not even one release can be proved to fit"
            return f"{one} into {self.target}: delta at least {down(self.one_more.lower, 5)} at epsilon = {epsilon}"
        return (
            f"{self.times:,} releases fit into {self.target}: delta at most {up(self.exact.upper, 5)} at epsilon = "
            f"{epsilon}; {more}"
        )

    def _facts(self) -> Facts:
        rows = [
            ("target", str(self.target)),
            (f"exact delta of {self.times:,}", str(self.exact)),
            ("exact delta of one more", "not computed" if self.one_more is None else str(self.one_more)),
        ]
        return Facts(f"{self.times:,} releases fit", rows)


def most_releases(
    release: Mechanism | Composition, *, epsilon: float, delta: float, rate: float | None = None
) -> HowOften:
    """How many times something can be released so that all releases together keep (epsilon, delta).

    ``release`` is a mechanism, or a composition of what is released each time. ``rate``: each release is on a Poisson
    sample of the individuals.

    >>> import lessnoise as ln
    >>> daily = ln.analytic_gaussian(epsilon=0.1, delta=1e-8, sensitivity=1, shape=3)
    >>> found = most_releases(daily, epsilon=1, delta=1e-6)
    >>> int(found), found.is_proved  # epsilons that are added up would allow 10
    (118, True)
    """
    one = as_composition(release)
    if rate is not None:
        one = one.subsample(rate)
    target = Guarantee(validation.epsilon(epsilon), validation.delta(delta), one.neighbours)
    search = _Count(one, target)
    times = search.run()
    more = None if times >= MOST else search.look(times + 1)
    exact = search.look(times) if times else Bracket(0.0, 0.0)
    return HowOften(times, target, exact, more)


class _Count:
    """Looks at numbers of releases: mu grows about with the root of the number, which says where to look next."""

    def __init__(self, one: Composition, target: Guarantee) -> None:
        self.one, self.target = one, target

    def look(self, times: int, sharpness: float = SHARP) -> Bracket:
        """The exact delta of so many."""
        whole = self.one.repeat(times)
        found = delta_at(whole, self.target.epsilon, sharpness)
        return with_machine(found, self.target.epsilon, whole.machine_distance)

    def room(self, times: int) -> float:
        """By how much, in ln(mu), so many are proved to fit, negative if they are not; sharp only where it is close."""
        found = self.look(times, ROUGH)
        rough = slack(found.upper, self.target.delta, self.target.epsilon)
        if abs(rough) > _FAR and not found.lower <= self.target.delta < found.upper:
            return rough
        return slack(self.look(times).upper, self.target.delta, self.target.epsilon)

    def run(self) -> int:
        """The largest number that fits, by a secant in ln(times), halving where that is slow."""
        low, high = (0, math.inf), (MOST + 1, -math.inf)  # a number and its room: fits, does not
        times, slow = 1, 0
        for _ in range(_LOOKS):
            width = high[0] - low[0]
            room = self.room(times)
            if room >= 0.0:
                low = (times, room)
            else:
                high = (times, room)
            if high[0] - low[0] <= 1:
                break
            slow = slow + 1 if high[0] - low[0] > 0.5 * width else 0
            times = self._next(low, high, slow)
        return low[0]

    def _next(self, low: tuple[int, float], high: tuple[int, float], slow: int) -> int:
        if slow > 2 and low[0] and high[0] <= MOST:
            guess = 0.5 * (low[0] + high[0])
        elif math.isfinite(low[1]) and math.isfinite(high[1]):
            share = low[1] / (low[1] - high[1])
            guess = math.exp((1.0 - share) * math.log(low[0]) + share * math.log(high[0]))
        elif math.isfinite(low[1]) or math.isfinite(high[1]):
            times, room = low if math.isfinite(low[1]) else high
            guess = times * math.exp(2.0 * max(min(room, 3.0), -3.0)) * (1.0 + math.copysign(1e-3, room))
        else:
            guess = 8.0 * low[0] if low[0] else 0.5 * high[0]
        return max(min(round(guess), high[0] - 1), low[0] + 1)
