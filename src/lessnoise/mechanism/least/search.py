"""The least noise for sensitivity 1: candidates, each certified on its exact curve, and the choice among them."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import cache, validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.mechanism.calibration import radial_scale
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.curve.chords import at_most
from lessnoise.mechanism.families.shells import Shells, calibrated
from lessnoise.mechanism.law import Radial, law_from_dict
from lessnoise.mechanism.least import radial_search
from lessnoise.mechanism.least.initial_guesses import TooManySteps, begin
from lessnoise.mechanism.least.objective import SMALLEST_GAIN, Power, Ramp, checked_note
from lessnoise.mechanism.least.staircase import blended, design, solve, usable
from lessnoise.mechanism.least.staircase_newton import Problem, newton
from lessnoise.mechanism.numerics import log_axial_constant

if TYPE_CHECKING:
    from lessnoise.mechanism.least.objective import Goal

SIMPLER = 1e-5  # a radial member is preferred to shells that are better by less
LARGEST_STAIRCASE = 2_000  # entries; above, the radial family is as good
PHASES = 8  # staircases in a mixture
MOST_SHELLS = 4_000  # in a mixture
PHASE_MATTERS = 2e-5  # in ln of the size: a mixture that costs more is not taken
_WIDEST = 1e60  # sensitivities; no curve but the Gaussian's is computed for wider noise
_SMALLEST_FAMILY = 30  # entries; below, shells are better by more than SIMPLER
_SLOW_FAMILY = 6  # entries; below, its best member is next to the l2 mechanism, and slow to find

FAILURES = (TooManySteps, LessnoiseError, ArithmeticError, ValueError, np.linalg.LinAlgError)
_MOST_CELLS = 400_000  # that one candidate may take; where it needs more, others are better
UNREADABLE = (LessnoiseError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError)


@dataclass(frozen=True, slots=True)
class Answer:
    """A law for sensitivity 1, and what was left out on the way, in one sentence ("" if nothing was)."""

    law: Radial | Shells
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"law": self.law.to_dict(), "note": self.note}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Answer:
        """The inverse of :meth:`to_dict`."""
        given = validation.members(cls, values)
        law = law_from_dict(given["law"])
        if not isinstance(law, Radial | Shells):
            raise InvalidInput(f"law.kind={law.kind!r} is no answer of this search: solve again.")
        return cls(law, checked_note(given["note"]))


@functools.lru_cache(maxsize=256)
def find(dimension: int, epsilon: float, delta: float, sensitivity: float, goal: Goal) -> Answer:
    """The best law for this sensitivity, from memory, from disk, or by search; certified here in every case."""
    question = {"M": dimension, "epsilon": epsilon, "delta": delta, "objective": goal.name, "of": "law"}
    kept = cache.load(question)
    if kept is not None:
        try:
            answer = Answer.from_dict(kept)
            answer.law.check_shape((dimension,))
            if _may_be_ours(answer.law, dimension, epsilon, delta, goal):
                return replace(answer, law=_stretched(answer.law, dimension, epsilon, delta, sensitivity))
        except UNREADABLE:
            pass  # damaged: solve again
    answer = search(dimension, epsilon, delta, goal)
    cache.save(question, answer.to_dict())
    return replace(answer, law=_stretched(answer.law, dimension, epsilon, delta, sensitivity))


def _may_be_ours(law: Radial | Shells, dimension: int, epsilon: float, delta: float, goal: Goal) -> bool:
    """Before its curve is computed: of the kind that the search returns, and no worse than the Gaussian."""
    law.check_shape((dimension,))
    if isinstance(law, Radial) and not (
        0.05 * dimension <= law.k <= dimension and 0.1 <= law.p <= radial_search.LARGEST_POWER and law.scale > 0.0
    ):
        return False
    return goal.log_size(law, dimension) <= goal.log_size(_normal(dimension, epsilon, delta), dimension) + 1e-9


def _normal(dimension: int, epsilon: float, delta: float) -> Radial:
    return Radial(float(dimension), 2.0, math.sqrt(2.0) * gaussian.gaussian_scale(epsilon, delta))


def _stretched(
    law: Radial | Shells, dimension: int, epsilon: float, delta: float, sensitivity: float
) -> Radial | Shells:
    """The law for sensitivity 1 made for another one, a hair wider where rounding asks for it."""
    for margin in (0.0, 1e-15, 1e-12, 1e-9):
        scaled = law.scaled(sensitivity * (1.0 + margin))
        if delta_of(scaled, dimension, sensitivity, epsilon).upper <= delta:
            return scaled
    raise LessnoiseError(
        f"the law found for epsilon={epsilon:g}, delta={delta:g} does not keep them at sensitivity={sensitivity:g}: "
        "choose a less extreme sensitivity."
    )


def search(dimension: int, epsilon: float, delta: float, goal: Goal) -> Answer:
    """Candidates in order of simplicity; each has a delta proved within the target."""
    normal = _normal(dimension, epsilon, delta)
    if normal.scale > _WIDEST:
        return Answer(normal, f"all but the Gaussian was left out (noise of {normal.scale:.0e} sensitivities)")
    candidates: list[Radial | Shells] = [normal]
    notes = []
    with np.errstate(all="ignore"):
        try:
            target = {"epsilon": epsilon, "delta": delta, "sensitivity": 1.0}
            with at_most(_MOST_CELLS):
                scale = radial_scale(dimension=dimension, k=dimension, p=1.0, **target)
            candidates.append(Radial(float(dimension), 1.0, scale))
        except FAILURES as failure:
            notes.append(_sentence("the l2 mechanism", failure))
        if dimension <= LARGEST_STAIRCASE:
            try:
                candidates.append(_shells(dimension, epsilon, delta, goal))
            except FAILURES as failure:
                notes.append(_sentence("the shell mechanism", failure))
        if _family_may_win(candidates, dimension, goal):
            try:
                with at_most(_MOST_CELLS):
                    candidates.append(radial_search.best_member(dimension, epsilon, delta, goal))
            except FAILURES as failure:
                notes.append(_sentence("the radial family", failure))
        if not any(isinstance(law, Shells) for law in candidates) and dimension <= LARGEST_STAIRCASE:
            try:
                candidates.append(_ball(dimension, epsilon, delta))
            except FAILURES as failure:
                notes.append(_sentence("the uniform ball", failure))
    kept = [law for law in candidates if delta_of(law, dimension, 1.0, epsilon).upper <= delta]
    if len(kept) < len(candidates):
        notes.append("a candidate was not certified and has been left out")
    return Answer(_choose(kept, dimension, goal), "; ".join(notes))


def _family_may_win(candidates: list[Radial | Shells], dimension: int, goal: Goal) -> bool:
    if not isinstance(candidates[-1], Shells):
        return dimension >= _SLOW_FAMILY
    sizes = [goal.log_size(law, dimension) for law in candidates]
    settled = goal.loss_ratio(min(sizes) - sizes[0]) > 1.0 - 0.9 * SMALLEST_GAIN  # the Gaussian it is
    return dimension >= _SMALLEST_FAMILY and not settled


def _choose(candidates: list[Radial | Shells], dimension: int, goal: Goal) -> Radial | Shells:
    """The smallest; a simpler law where the gain over it is too small to matter."""
    sizes = [goal.log_size(law, dimension) for law in candidates]
    least = min(sizes)
    if goal.loss_ratio(least - sizes[0]) > 1.0 - SMALLEST_GAIN:
        return candidates[0]
    for law, size in zip(candidates, sizes, strict=True):
        if isinstance(law, Radial) and goal.loss_ratio(size - least) <= 1.0 + SIMPLER:
            return law
    return candidates[sizes.index(least)]


def _sentence(what: str, failure: Exception) -> str:
    reason = re.sub(r"[\s();]+", " ", str(failure)).strip(" .")[:120] or type(failure).__name__
    return f"{what} was left out ({reason})"


def _ball(dimension: int, epsilon: float, delta: float) -> Shells:
    """Uniform in a ball: one delta at every epsilon, and nearly the least noise where epsilon is tiny beside it."""
    radius = math.exp(log_axial_constant(dimension)) / delta  # moved by 1, a large ball leaves this share behind
    return calibrated(Shells(dimension, (0.0, radius), (1.0,)), sensitivity=1.0, epsilon=epsilon, delta=delta)


def _shells(dimension: int, epsilon: float, delta: float, goal: Goal) -> Shells:
    def certified(law: Shells) -> Shells:
        return calibrated(law, sensitivity=1.0, epsilon=epsilon, delta=delta)

    problem = design(dimension, epsilon, delta, goal.power)
    chain = solve(problem)
    best = certified(chain.law())
    if goal.probability is None:
        phases = min(PHASES, MOST_SHELLS // len(chain.radii))
        if chain.smooth and phases > 1:
            mixed = certified(blended(problem, chain, phases))
            if goal.log_size(mixed, dimension) <= goal.log_size(best, dimension) + PHASE_MATTERS:
                return mixed
        return best
    for order in (1.0, 4.0, 8.0):
        other = certified(solve(Problem(dimension, chain.epsilon, delta, Power(order))).law())
        best = min(best, other, key=lambda law: goal.log_size(law, dimension))
    if dimension == 1:
        return best
    # The mean of a ramp that ends at q is least at a fixed q; q is lowered while that lowers the quantile.
    for _ in range(6):
        size = math.exp(goal.log_size(best, dimension))
        problem = Problem(dimension, chain.epsilon, delta, Ramp(0.8 * size, 1.02 * size))
        moved = newton(problem, begin(problem, chain.radii), iterations=60)
        if not usable(moved, delta):
            break
        law, chain = certified(moved.law()), moved
        if goal.log_size(law, dimension) > math.log(size) - 1e-5:
            break
        best = law
    return best
