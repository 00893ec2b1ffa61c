"""The least noise for sensitivity 1: candidates, each certified on its exact curve, and the choice among them."""

from __future__ import annotations

import functools
import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from lessnoise import cache, validation
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.mechanism.calibration import radial_scale
from lessnoise.mechanism.curve import delta_of, gaussian
from lessnoise.mechanism.curve.chords import TooMuchWork, at_most
from lessnoise.mechanism.curve.radial import RadialCurve
from lessnoise.mechanism.families.shells import Shells, calibrated
from lessnoise.mechanism.law import Radial, law_from_dict
from lessnoise.mechanism.least.initial_guesses import TooManySteps, begin
from lessnoise.mechanism.least.objective import SMALLEST_GAIN, Power, Problem, Ramp, checked_note
from lessnoise.mechanism.least.staircase import best_chain, blended, design, solve, usable
from lessnoise.mechanism.least.staircase_newton import newton
from lessnoise.mechanism.numerics import log_axial_constant, log_gamma_ratio
from lessnoise.mechanism.rigorous import confirmed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lessnoise.mechanism.law import Law
    from lessnoise.mechanism.least.objective import Goal

    Candidate = Radial | Shells
    Point = NDArray[np.float64]

SIMPLER = 1e-5  # a radial member is preferred to shells that are better by less
LARGEST_STAIRCASE = 2_000  # entries; above, the radial family is as good
PHASES = 8  # staircases in a mixture
MOST_SHELLS = 4_000  # in a mixture
PHASE_MATTERS = 2e-5  # in ln of the size: a mixture that costs more is not taken
_WIDEST = 1e60  # sensitivities; no curve but the Gaussian's is computed for wider noise
_SMALLEST_FAMILY = 30  # entries; below, shells are better by more than SIMPLER
_SLOW_FAMILY = 6  # entries; below, its best member is next to the l2 mechanism, and slow to find,
_SLOW_RATIO = 200.0  # unless epsilon is below this times delta

FAILURES = (TooManySteps, LessnoiseError, ArithmeticError, ValueError, np.linalg.LinAlgError)
_MOST_CELLS = 400_000  # that one candidate may take; where it needs more, others are better
_MEMBER_CELLS = 300_000  # an ordinary target takes 50,000, one of few entries and a large epsilon some millions
_EVALUATIONS = 45
_MOST_CONFIRMED = 100  # shells of a kept law that ball arithmetic confirms at once
_LARGEST_POWER = 64.0  # of a radial member; beyond, it is a uniform ball but for its rim
_IRRELEVANT = 1e-9  # of delta: where a trial is so far below it, how far does not matter
_Law = TypeVar("_Law", Radial, Shells)
UNREADABLE = (LessnoiseError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError, MemoryError)


@dataclass(frozen=True, slots=True)
class LeastNoiseAnswer:
    """A law for sensitivity 1, and what was left out on the way, in one sentence ("" if nothing was)."""

    law: Candidate
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"law": self.law.to_dict(), "note": self.note}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> LeastNoiseAnswer:
        """The inverse of :meth:`to_dict`."""
        given = validation.members(cls, values)
        law = law_from_dict(given["law"])
        if type(law) not in _searched.registry:
            raise InvalidInput(f"law.kind={law.kind!r} is not a result of this search: solve again.")
        return cls(cast("Candidate", law), checked_note(given["note"]))


@functools.singledispatch
def _searched(law: Law, dimension: int) -> bool:
    """Whether a law is among those that the search goes through: radial members and shells."""
    return False


@_searched.register(Shells)
def _(law: Shells, dimension: int) -> bool:
    return True


@_searched.register(Radial)
def _(law: Radial, dimension: int) -> bool:
    return 0.05 * dimension <= law.k <= dimension and 0.1 <= law.p <= _LARGEST_POWER and law.scale > 0.0


@functools.lru_cache(maxsize=256)
def find(dimension: int, epsilon: float, delta: float, sensitivity: float, goal: Goal) -> LeastNoiseAnswer:
    """The best law for this sensitivity, from memory, from disk, or by search; certified here in every case."""
    question = {"M": dimension, "epsilon": epsilon, "delta": delta, "objective": goal.name, "of": "law"}
    kept = cache.load(question)
    if kept is not None:
        try:
            answer = LeastNoiseAnswer.from_dict(kept)
            answer.law.check_shape((dimension,))
            if _may_be_ours(answer.law, dimension, epsilon, delta, goal):
                law = _stretched(answer.law, dimension, epsilon, delta, sensitivity)
                if _is_long(law) or confirmed(law.to_dict(), dimension, sensitivity, epsilon, delta):
                    return replace(answer, law=law)
        except UNREADABLE:
            pass  # damaged: solve again
    answer = search(dimension, epsilon, delta, goal)
    cache.save(question, answer.to_dict())
    return replace(answer, law=_stretched(answer.law, dimension, epsilon, delta, sensitivity))


def _is_long(law: Candidate) -> bool:
    """So many shells that ball arithmetic takes longer than the search: their curve here has to do."""
    return isinstance(law, Shells) and len(law.probabilities) > _MOST_CONFIRMED


def _may_be_ours(law: Candidate, dimension: int, epsilon: float, delta: float, goal: Goal) -> bool:
    """Before its curve is computed: of the kind that the search returns, and no worse than the Gaussian."""
    law.check_shape((dimension,))
    if not _searched(law, dimension):
        return False
    return goal.log_size(law, dimension) <= goal.log_size(_normal(dimension, epsilon, delta), dimension) + 1e-9


def _normal(dimension: int, epsilon: float, delta: float) -> Radial:
    return Radial(float(dimension), 2.0, math.sqrt(2.0) * gaussian.gaussian_scale(epsilon, delta))


def _stretched(law: Candidate, dimension: int, epsilon: float, delta: float, sensitivity: float) -> Candidate:
    """The law for sensitivity 1 made for another one, a hair wider where rounding asks for it."""
    for margin in (0.0, 1e-15, 1e-12, 1e-9):
        scaled = law.scaled(sensitivity * (1.0 + margin))
        if delta_of(scaled, dimension, sensitivity, epsilon).upper <= delta:
            return scaled
    raise LessnoiseError(
        f"the law found for epsilon={epsilon:g}, delta={delta:g} does not keep them at sensitivity={sensitivity:g}: "
        "choose a less extreme sensitivity."
    )


def search(dimension: int, epsilon: float, delta: float, goal: Goal) -> LeastNoiseAnswer:
    """Candidates in order of simplicity; each has a delta proved within the target."""
    normal = _normal(dimension, epsilon, delta)
    if normal.scale > _WIDEST:
        return LeastNoiseAnswer(
            normal, f"all but the Gaussian was left out (noise of {normal.scale:.0e} sensitivities)"
        )
    members, shells, notes = [normal], list[Shells](), list[str]()

    def attempt(what: str, found: list[_Law], build: Callable[[], _Law]) -> None:
        try:
            with at_most(_MOST_CELLS):
                found.append(build())
        except FAILURES as failure:
            notes.append(_sentence(what, failure))

    with np.errstate(all="ignore"):
        attempt("the l2 mechanism", members, lambda: _l2_member(dimension, epsilon, delta))
        if dimension <= LARGEST_STAIRCASE:
            attempt("the shell mechanism", shells, lambda: _shells(dimension, epsilon, delta, goal))
        if _family_may_win(members, shells, dimension, epsilon, delta, goal):
            attempt("the radial family", members, lambda: best_member(dimension, epsilon, delta, goal))
        if not shells and dimension <= LARGEST_STAIRCASE:
            attempt("the uniform ball", shells, lambda: _ball(dimension, epsilon, delta))

    def certified(laws: list[_Law]) -> list[_Law]:
        return [law for law in laws if delta_of(law, dimension, 1.0, epsilon).upper <= delta]

    kept = certified(members), certified(shells)
    if len(kept[0]) + len(kept[1]) < len(members) + len(shells):
        notes.append("a candidate was not certified and has been left out")
    return LeastNoiseAnswer(_choose(*kept, dimension, goal), "; ".join(notes))


def _family_may_win(
    members: list[Radial], shells: list[Shells], dimension: int, epsilon: float, delta: float, goal: Goal
) -> bool:
    if not shells:
        return dimension >= _SLOW_FAMILY or epsilon < _SLOW_RATIO * delta
    candidates: list[Candidate] = [*members, *shells]
    sizes = [goal.log_size(law, dimension) for law in candidates]
    settled = goal.loss_ratio(min(sizes) - sizes[0]) > 1.0 - 0.9 * SMALLEST_GAIN  # the Gaussian it is
    return dimension >= _SMALLEST_FAMILY and not settled


def _choose(members: list[Radial], shells: list[Shells], dimension: int, goal: Goal) -> Candidate:
    """The smallest; a simpler law where the gain over it is too small to matter."""
    candidates: list[Candidate] = [*members, *shells]
    sizes = [goal.log_size(law, dimension) for law in candidates]
    least = min(sizes)
    if goal.loss_ratio(least - sizes[0]) > 1.0 - SMALLEST_GAIN:
        return candidates[0]
    for law, size in zip(members, sizes, strict=False):
        if goal.loss_ratio(size - least) <= 1.0 + SIMPLER:
            return law
    return candidates[sizes.index(least)]


def _sentence(what: str, failure: Exception) -> str:
    reason = re.sub(r"[\s();]+", " ", str(failure)).strip(" .")[:120] or type(failure).__name__
    return f"{what} was left out ({reason})"


def _l2_member(dimension: int, epsilon: float, delta: float) -> Radial:
    scale = radial_scale(dimension=dimension, k=dimension, p=1.0, epsilon=epsilon, delta=delta, sensitivity=1.0)
    return Radial(float(dimension), 1.0, scale)


def _ball(dimension: int, epsilon: float, delta: float) -> Shells:
    """Uniform in a ball: one delta at every epsilon, and nearly the least noise where epsilon is tiny beside it."""
    radius = math.exp(log_axial_constant(dimension)) / delta  # moved by 1, a large ball leaves this share behind
    return calibrated(Shells(dimension, (0.0, radius), (1.0,)), sensitivity=1.0, epsilon=epsilon, delta=delta)


def _shells(dimension: int, epsilon: float, delta: float, goal: Goal) -> Shells:
    def certified(law: Shells) -> Shells:
        return calibrated(law, sensitivity=1.0, epsilon=epsilon, delta=delta)

    asked = Problem(dimension, epsilon, delta, goal.power)
    problem, chain = design(asked), best_chain(asked)
    best = certified(chain.law())
    if goal.probability is None:
        phases = min(PHASES, MOST_SHELLS // len(chain.radii))
        if chain.smooth and phases > 1:
            mixed = certified(blended(problem, chain, phases))
            if goal.log_size(mixed, dimension) <= goal.log_size(best, dimension) + PHASE_MATTERS:
                return mixed
        return best
    for order in (1.0, 4.0, 8.0):
        other = certified(solve(problem._replace(objective=Power(order))).law())
        best = min(best, other, key=lambda law: goal.log_size(law, dimension))
    if dimension == 1:
        return best
    # The mean of a ramp that ends at q is least at a fixed q; q is lowered while that lowers the quantile.
    for _ in range(6):
        size = math.exp(goal.log_size(best, dimension))
        problem = problem._replace(objective=Ramp(0.8 * size, 1.02 * size))
        moved = newton(problem, begin(problem, chain.radii), iterations=60)
        if not usable(moved, delta):
            break
        law, chain = certified(moved.law()), moved
        if goal.log_size(law, dimension) > math.log(size) - 1e-5:
            break
        best = law
    return best


# The best member of the radial family, of radius density r^(k-1) exp(-(r/s)^p).


class _MemberSearch:
    """Size of (k, p) at the scale that spends delta."""

    def __init__(self, dimension: int, epsilon: float, delta: float, goal: Goal) -> None:
        self.dimension, self.epsilon, self.delta, self.goal = dimension, epsilon, delta, goal
        self.sigma = gaussian.gaussian_scale(epsilon, delta)
        self.memory: list[tuple[float, float, float, float]] = []  # u, w, ln s, slope
        self.best = math.inf, np.zeros(2)

    def shape(self, point: Point) -> tuple[float, float]:
        """(k, p) from free coordinates: M - k = e^u (nothing below e^-6), p = e^w, both within limits."""
        excess = math.exp(float(point[0]))
        k = self.dimension - (excess if excess > 2.5e-3 else 0.0)
        return max(k, 0.05 * self.dimension), min(math.exp(float(point[1])), _LARGEST_POWER)

    def excess(self, k: float, p: float, log_scale: float) -> float:
        curve = RadialCurve(self.dimension, k, p, math.exp(log_scale), 1.0, self.epsilon)
        return math.log(max(curve.estimate(_IRRELEVANT * self.delta), 1e-300) / self.delta)

    def cost(self, point: Point) -> float:
        k, p = self.shape(point)
        near = min(self.memory, key=lambda m: (m[0] - point[0]) ** 2 + 4.0 * (m[1] - point[1]) ** 2, default=None)
        if near is None:
            x = 0.5 * math.log(self.dimension) + math.log(self.sigma) - 0.5 * _log_mean_square(k, p)
            slope = -6.0
        else:
            x = near[2] + 0.5 * (_log_mean_square(*self.shape(np.array(near[:2]))) - _log_mean_square(k, p))
            slope = near[3]
        value = self.excess(k, p, x)
        low, high = -math.inf, math.inf
        for _ in range(25):
            if abs(value) < 2e-3:
                break
            low, high = (x, high) if value > 0.0 else (low, x)
            new = x + max(min(-value / slope, 0.7), -0.7)
            if not low < new < high:
                new = 0.5 * (low + high)
            after = self.excess(k, p, new)
            if new != x and (after - value) / (new - x) < -0.05:
                slope = (after - value) / (new - x)
            x, value = new, after
        self.memory.append((float(point[0]), float(point[1]), x, slope))
        size = x - value / slope + self.goal.log_size(Radial(k, p, 1.0), self.dimension)
        if size < self.best[0]:
            self.best = size, point.copy()
        return size


def _log_mean_square(k: float, p: float) -> float:
    return log_gamma_ratio(k / p, 2.0 / p)


@functools.lru_cache(maxsize=64)
def best_member(dimension: int, epsilon: float, delta: float, goal: Goal, most_cells: int = _MOST_CELLS) -> Radial:
    """The member (k, p) of the radial family with the least size for sensitivity 1, k <= M.

    Only two numbers are searched, by the simplex method from a start that suits the dimension. A trial costs three or
    four coarse curves: the scale is followed by secant steps in (ln s, ln delta) from its neighbour. The winner alone
    is calibrated, on the exact curve. A search that takes too much work ends with the best that it has tried;
    ``most_cells`` limits the work of all together.
    """
    from scipy.optimize import minimize

    search = _MemberSearch(dimension, epsilon, delta, goal)
    p = 2.0 - 1.0 / (1.0 + dimension / 15.0)
    start = np.array([math.log(0.3 + 0.02 * dimension), math.log(p)])
    simplex = np.array([start, start + np.array([1.0, 0.0]), start + np.array([0.0, 0.2])])
    with at_most(most_cells):  # whoever asks, so that the answer, which is remembered, is the same
        with suppress(TooMuchWork), at_most(_MEMBER_CELLS):
            minimize(
                search.cost,
                start,
                method="Nelder-Mead",
                options={"initial_simplex": simplex, "maxfev": _EVALUATIONS, "xatol": 5e-3, "fatol": 1e-5},
            )
        size, point = search.best
        if size == math.inf:
            raise TooMuchWork("the curve takes too long to compute at so extreme a target")
        k, p = search.shape(point)
        scale = radial_scale(dimension=dimension, k=k, p=p, epsilon=epsilon, delta=delta, sensitivity=1.0)
        return Radial(k, p, scale)
