"""Refines the points of each curve until the answer is sharp, then composes once, in both directions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise.composition.convolution import MOST_POINTS, LatticeSum, LossTerms, tilted, window
from lessnoise.composition.curve_points import MOST_POINTS as MOST_SAMPLES
from lessnoise.composition.discretize import optimistic_hull, pessimistic, snap, unsnapped
from lessnoise.guarantees import Bracket
from lessnoise.mechanism import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lessnoise._common import Array
    from lessnoise.composition.curve_points import Samples

    Choice = Callable[[LossTerms], float]  # of theta, for the terms at hand

_ROUNDS = 24
_TOLERANCE = 0.004  # of ln(delta)
_RELATIVE_TOLERANCE = 2e-3  # of epsilon
_SHARE_OF_TAIL = 1e-8  # of delta, that may be cut off: more would mislead a tilt that weighs the tail
_BULK_TOLERANCE = 0.01  # of the variance
_LEAST_TAIL = 1e-285
SMALLEST = math.ulp(0.0)
_FEWEST_POINTS = 512  # of the window, on the first lattice that is tried
_FINER = 6  # the lattice is at most 2^6 times finer than the points, so that optimistic losses find a place


class _Bounds(NamedTuple):
    """The sum of pessimistic losses and that of optimistic ones."""

    pessimistic: LatticeSum
    optimistic: LatticeSum
    smallest: float  # loss of the optimistic sum
    upper_start: float  # the epsilon for which the tilt is best
    lower_start: float

    def lower(self, epsilon: float) -> float:
        """Losses counted as infinite are at least LARGEST_EPSILON, so that must be far beyond the rest."""
        value = self.optimistic.lower(epsilon)
        out_of_reach = epsilon - self.smallest + 50.0 > LARGEST_EPSILON
        return max(value - self.optimistic.infinite, 0.0) if out_of_reach else value


class Accountant:
    """Exact curve of a number of steps, from samples of that of each; brackets are ``sharpness`` times narrower."""

    def __init__(self, samples: Sequence[Samples], counts: Sequence[int], sharpness: float = 1.0) -> None:
        used = [(sample, count) for sample, count in zip(samples, counts, strict=True) if not sample.trivial]
        self.samples = [sample for sample, _ in used]
        self.counts = [count for _, count in used]
        self.sharpness = sharpness
        self.steps = sum(self.counts)
        self.directions = (False,) if all(sample.symmetric for sample in self.samples) else (False, True)

    def delta(self, epsilon: float) -> Bracket:
        """Bracket of delta: the worse of the two directions counts."""
        if self.steps <= 1:
            return self.samples[0].delta(epsilon) if self.samples else Bracket(0.0, 0.0)
        lower = upper = 0.0
        for backwards in self.directions:
            bounds = self._bounds(lambda terms: terms.tilt(epsilon), backwards, 1e-9, epsilon)
            lower = max(lower, bounds.lower(epsilon))
            upper = max(upper, bounds.pessimistic.upper(epsilon))
        upper = max(upper, SMALLEST)  # below the pure epsilon delta is not 0
        return Bracket(min(lower, upper), upper)

    def surely_within(self, epsilon: float, delta: float) -> bool:
        """Whether the least tilted bound already proves (epsilon, delta); False means that it takes a closer look."""
        if self.steps <= 1:
            return False
        for backwards in self.directions:
            self._reach_out(lambda terms: terms.tilt(epsilon), backwards, delta, enough=0.1 * delta)
            pess, _ = self._terms(backwards, math.inf)
            theta = pess.tilt(epsilon)
            peak = -theta * math.log1p(1.0 / theta) - math.log1p(theta)
            exponent = pess.cumulant(theta) - theta * epsilon + peak
            if exponent > 0.0 or math.exp(exponent) + pess.infinite > 0.999 * delta:
                return False
        return True

    def epsilon(self, delta: float) -> Bracket:
        """Bracket of epsilon: the worse of the two directions counts."""
        if self.steps <= 1:
            return self._epsilon_of_one(delta) if self.samples else Bracket(0.0, 0.0)
        lower = upper = 0.0
        for backwards in self.directions:
            if self._hopeless(backwards, delta):
                return Bracket(0.5 * LARGEST_EPSILON, math.inf)
            bounds = self._bounds(lambda terms: terms.tilt_for(delta), backwards, delta)
            worst = bounds.pessimistic
            end = max(float(worst.losses[-1]), 0.0)
            if bounds.lower(0.5 * LARGEST_EPSILON) > delta:  # infinite losses alone exceed it
                return Bracket(0.5 * LARGEST_EPSILON, math.inf)
            lower = max(
                lower, _crossing(bounds.lower, delta, bounds.lower_start, end, 1.0 / bounds.optimistic.theta)[0]
            )
            upper = max(upper, _crossing(worst.upper, delta, bounds.upper_start, end, 1.0 / worst.theta)[1])
        return Bracket(min(lower, upper), upper)

    def _hopeless(self, backwards: bool, delta: float) -> bool:
        """Whether a few points of each curve already show losses so large that no epsilon is worth the search.

        Cantelli: a sum is above its mean less two deviations with probability 4/5, and a loss that exceeds epsilon
        by 1 adds 1 - 1/e to delta. Losses counted as infinite are at least LARGEST_EPSILON.
        """
        self._reach_out(lambda terms: terms.tilt_for(delta), backwards, delta)
        _, opt = self._terms(backwards, math.inf)
        mean = variance = 0.0
        for losses, count in zip(opt.losses, opt.counts, strict=True):
            x, p = np.append(losses.x, LARGEST_EPSILON), np.append(losses.p, losses.infinite)
            centre = float(p @ x)
            mean, variance = mean + count * centre, variance + count * float(p @ np.square(x - centre))
        return delta < 0.5 and mean - 2.01 * math.sqrt(variance) > 0.5 * LARGEST_EPSILON + 1.0

    def _epsilon_of_one(self, delta: float) -> Bracket:
        """A single step needs no composition."""
        curve = self.samples[0].delta
        lower = _crossing(lambda epsilon: curve(epsilon).lower, delta, 1.0, LARGEST_EPSILON, 0.1)[0]
        upper = _crossing(lambda epsilon: curve(epsilon).upper, delta, 1.0, LARGEST_EPSILON, 0.1)[1]
        return Bracket(min(lower, upper), upper)

    def _bounds(self, choose: Choice, backwards: bool, tail: float, epsilon: float | None = None) -> _Bounds:
        """Losses fine enough for the query, composed; ``choose`` picks the tilt that suits it."""
        at, size = self._reach_out(choose, backwards, tail)
        cap = self._cap(8.0 * at if epsilon is None else epsilon, size, backwards)
        limits = [len(sample.known) + MOST_SAMPLES for sample in self.samples]
        for _ in range(_ROUNDS):
            pess, opt = (terms.with_infinite_at_end() for terms in self._terms(backwards, cap))
            theta = choose(pess)
            allowed = max(_TOLERANCE, _RELATIVE_TOLERANCE * theta * abs(pess.sharpest_at(theta))) / self.sharpness
            if not self._refine(pess, opt, theta, allowed, backwards, limits):
                break
        step, pess, opt = self._on_lattice(cap, choose, allowed, backwards)
        theta, lower_theta = choose(pess), choose(opt)
        start = pess.sharpest_at(theta), opt.sharpest_at(lower_theta)
        return _Bounds(LatticeSum(pess, step, theta), LatticeSum(opt, step, lower_theta), opt.smallest, *start)

    def _reach_out(self, choose: Choice, backwards: bool, tail: float, enough: float = 0.0) -> tuple[float, float]:
        """Sample far enough out that what lies beyond is little next to delta; about the epsilon and the delta."""
        tail *= _SHARE_OF_TAIL / self.steps
        while True:
            for sample in self.samples:
                sample.extend(tail)
            pess, opt = self._terms(backwards, math.inf)
            theta = choose(pess)
            size = math.exp(max(min(pess.log_bound(theta), 0.0), -640.0))
            missing = pess.infinite - opt.infinite
            if missing <= max(10.0 * _SHARE_OF_TAIL * (size + opt.infinite), enough) or tail <= _LEAST_TAIL:
                return pess.sharpest_at(theta), size + opt.infinite
            tail = max(min(tail, size * _SHARE_OF_TAIL / self.steps) * 1e-2, _LEAST_TAIL)

    def _cap(self, at: float, size: float, backwards: bool) -> float:
        """A loss that settles the matter: with it the sum exceeds epsilon by far, whatever the others are."""
        pess, _ = self._terms(backwards, math.inf)
        least = max(-(pess.cumulant(-s) - math.log(size) + 25.0) / s for s in pess.scales())
        return max(at, 0.0) + 25.0 - math.log(size) - min(least, 0.0)

    def _terms(self, backwards: bool, cap: float, step: float | None = None) -> tuple[LossTerms, LossTerms]:
        """Pessimistic and optimistic losses of each step; with ``step``, at its multiples only.

        Losses beyond the cap count as infinite on the pessimistic side, and as the cap on the optimistic one.
        """
        pess, opt = [], []
        for sample in self.samples:
            x, lower, upper, floor = sample.arrays(*((-cap, math.inf) if backwards else (-math.inf, cap)))
            if step is not None:
                x, lower, upper = _lattice_points(x, lower, upper, step)
            pess.append(pessimistic(x, upper))
            hull = optimistic_hull(x, lower, upper, min(floor, float(lower[-1])))
            opt.append(unsnapped(*hull) if step is None else snap(*hull, step))
        terms = LossTerms(pess, self.counts), LossTerms(opt, self.counts)
        return (terms[0].reversed(), terms[1].reversed()) if backwards else terms

    def _refine(
        self, pess: LossTerms, opt: LossTerms, theta: float, allowed: float, backwards: bool, limits: list[int]
    ) -> bool:
        """Halve the cells that blur the answer most; False if all together blur it little, or nothing can be done.

        In the tail, ln(delta) is as uncertain as the cumulant at the tilt. Where delta is near 1 that says nothing:
        there the variance that is added by splitting losses between the ends of their cells, a sixth of the width
        squared, is set against the variance of the sum.
        """
        bulk = pess.slopes(0.0)[0] > pess.sharpest_at(theta)
        if bulk:
            theta, allowed = pess.tilt_to_mean(pess.sharpest_at(theta)), _BULK_TOLERANCE / self.sharpness
        variance = max(pess.slopes(theta)[1], 1e-300)
        shares = []
        for sample, upper, lower, count in zip(self.samples, pess.losses, opt.losses, self.counts, strict=True):
            known = np.array(sorted(sample.known))
            x = -known[::-1] if backwards else known
            masses = np.zeros(len(x))
            masses[np.searchsorted(x, upper.x)] = tilted(upper, theta)
            cost = (masses[:-1] + masses[1:]) * np.diff(x) ** 2
            if bulk:
                cost *= count / (12.0 * variance)
            else:
                gap = LossTerms([upper], [count]).cumulant(theta) - LossTerms([lower], [count]).cumulant(theta)
                cost *= gap / max(float(cost.sum()), 1e-300)
            shares.append((x, cost))
        if sum(float(cost.sum()) for _, cost in shares) <= allowed:
            return False
        chosen = _cells_to_halve([cost for _, cost in shares], allowed)
        changed = False
        for sample, (x, _), halve, limit in zip(self.samples, shares, chosen, limits, strict=True):
            for k in halve:
                middle = 0.5 * (float(x[k]) + float(x[k + 1]))
                if len(sample.known) >= limit or middle in (x[k], x[k + 1]):
                    break
                before = len(sample.known)
                sample.add(abs(middle) if sample.symmetric else -middle if backwards else middle)
                changed |= len(sample.known) > before
        return changed

    def _on_lattice(
        self, cap: float, choose: Choice, allowed: float, backwards: bool
    ) -> tuple[float, LossTerms, LossTerms]:
        """The coarsest lattice that keeps the bounds about as close, within MOST_POINTS in the window."""
        rough, fine = self._terms(backwards, cap)
        theta = choose(rough.with_infinite_at_end())
        close = max(1.25 * allowed, 1.1 * _distance((rough, fine), theta))
        cell = min(float(np.diff(losses.x).min(initial=1.0)) for losses in rough.losses)
        finest = math.floor(math.log2(cell)) - _FINER
        low, high = window(rough, choose(rough))
        exponent = math.ceil(math.log2(max((high - low) / _FEWEST_POINTS, 2.0**finest)))
        best: tuple[float, LossTerms, LossTerms] | None = None
        while True:
            step = 2.0**exponent
            terms = self._terms(backwards, cap, step)
            if _points(terms, choose, step) > MOST_POINTS:
                if best is not None:
                    return best
                exponent = finest = exponent + 1
                continue
            best = step, *terms
            if exponent <= finest or _distance(terms, theta) <= close:
                return best
            exponent -= 1


def _lattice_points(x: Array, lower: Array, upper: Array, step: float) -> tuple[Array, Array, Array]:
    """The points at multiples of the step; the two ends move outwards to one, since E falls away from 0."""
    x = x.copy()
    x[0], x[-1] = math.floor(x[0] / step) * step, math.ceil(x[-1] / step) * step
    on = np.rint(x / step) * step == x
    return x[on], lower[on], upper[on]


def _distance(terms: tuple[LossTerms, LossTerms], theta: float) -> float:
    """How far the two cumulants are apart, infinite losses taken for the largest finite one.

    At the tilt itself; where delta is near 1, so that the tilt is near 0 and says nothing, a deviation either side.
    """
    upper, lower = terms[0].with_infinite_at_end(), terms[1].with_infinite_at_end()
    nearby = 1.0 / math.sqrt(max(upper.slopes(theta)[1], 1e-300))
    points = (theta,) if theta > 0.1 * nearby else (nearby, -nearby)
    return max(abs(upper.cumulant(point) - lower.cumulant(point)) for point in points)


def _points(terms: tuple[LossTerms, LossTerms], choose: Choice, step: float) -> float:
    """Number of lattice points in the larger of the two windows."""
    return max(high - low for low, high in (window(part, choose(part)) for part in terms)) / step + 8.0


def _cells_to_halve(costs: list[Array], allowed: float) -> list[list[int]]:
    """The fewest cells, dearest first, that leave about ``allowed`` if each half costs an eighth of the whole."""
    every = np.concatenate(costs)
    order = np.argsort(-every, kind="stable")
    left = every.sum() - 0.75 * np.cumsum(every[order])
    enough = int(np.argmax(left <= 0.9 * allowed)) if left[-1] <= 0.9 * allowed else len(every) - 1
    least = every[order][enough]
    return [np.flatnonzero((cost >= least) & (cost > 0.01 * allowed / len(every))).tolist() for cost in costs]


def _crossing(
    function: Callable[[float], float], target: float, start: float, end: float, width: float
) -> tuple[float, float]:
    """Points of epsilon >= 0 around where a falling function crosses the target: above it before, not above after.

    The search begins at ``start`` with steps of ``width`` and goes no further than ``end``. (0, 0) if the function is
    within the target at 0; infinite if it never gets there. Regula falsi (Illinois) on the logarithm.
    """
    goal = math.log(target)

    def excess(x: float) -> float:
        value = function(x)
        return math.log(value) - goal if value > 0.0 else -math.inf

    low = high = min(max(start, 0.0), end)
    at_low = at_high = excess(low)
    while at_high > 0.0:
        if high >= end:
            return high, math.inf
        low, at_low = high, at_high
        high, width = min(high + width, end), 2.0 * width
        at_high = excess(high)
    while at_low <= 0.0:
        if low <= 0.0:
            return 0.0, 0.0
        high, at_high = low, at_low
        low, width = max(low - width, 0.0), 2.0 * width
        at_low = excess(low)
    side = 0
    for _ in range(200):
        if high - low <= 1e-7 * high:
            break
        share = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        x = low + (high - low) * min(max(share, 1e-2), 1.0 - 1e-2)
        value = excess(x)
        if value > 0.0:
            low, at_low = x, value
            at_high, side = (0.5 * at_high if side > 0 else at_high), 1
        else:
            high, at_high = x, value
            at_low, side = (0.5 * at_low if side < 0 else at_low), -1
    return low, high
