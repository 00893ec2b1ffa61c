"""Lower bounds in one dimension: for small epsilon, for its middle range, and for small delta."""

from __future__ import annotations

import math
import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.proof import LowerBound

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.mechanism.least.objective import Objective, Problem

_UP = 1.0 + 4e-16
_GAP = 1.35  # growth of the gaps between the shorter shifts
_STEPS = 2  # steps of the staircase on which they act
_ALLOWANCE = 1e-12  # of nu: rounding of f and of the final difference


class _LatticeMarch:
    def __init__(self, problem: Problem, scale: float, cells: int, steps: int) -> None:
        objective = problem.objective
        kinks = np.asarray(objective.kinks(), dtype=float) % 1.0
        x = np.unique(np.concatenate([np.linspace(0.0, 0.5, cells + 1), np.minimum(kinks, 1.0 - kinks)]))
        k = np.arange(steps)[:, None]
        inner, outer = (
            self._ends(objective, x[:-1] + k, x[1:] + k),
            self._ends(objective, k + 1 - x[1:], k + 1 - x[:-1]),
        )
        # Columns: left ends, right ends. The second lattice runs the other way: its ends are swapped.
        right = np.concatenate(inner, axis=1) / scale
        left = np.concatenate(outer[::-1], axis=1) / scale
        self.first, self.f = right[0], np.stack([right[1:], left[:-1]], axis=1)
        self.share = np.full(right.shape[1], 0.5)
        self.grow = math.exp(problem.epsilon) * _UP

    @staticmethod
    def _ends(objective: Objective, low: Array, high: Array) -> tuple[Array, Array]:
        """F at both ends less the sag in between, rounded down."""
        sag = objective.sag(low, high)

        def down(value: Array) -> Array:
            return value - sag - 1e-15 * (np.abs(value) + sag)

        return down(objective.value(low)), down(objective.value(high))

    def balance(self, level: float) -> None:
        """Choose how c(x) + c(-x) is shared between the two lattices so that neither needs a larger lambda."""
        low, high = np.zeros(self.f.shape[2]), np.ones(self.f.shape[2])
        for _ in range(8):
            self.share = 0.5 * (low + high)
            right, left = self._peaks(level)
            more = right < left
            low, high = np.where(more, self.share, low), np.where(more, high, self.share)

    def multiplier(self, level: float) -> float:
        """lambda for this nu; infinite if c does not die out (then this nu proves nothing)."""
        return float(self._peaks(level).max())

    def _peaks(self, level: float) -> Array:
        """Largest c on each lattice (right or left, cell's end); infinite where it does not die out."""
        start = np.maximum(2.0 * (level - self.first) + 1e-15 * (level + np.abs(self.first)), 0.0)
        c = np.stack([start * self.share, start * (1.0 - self.share)]) * _UP * _UP
        largest = c.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            for row in self.f:
                gap = level - row
                c = np.maximum((self.grow * c * _UP + 2.0 * gap + 1e-15 * (level + np.abs(row))) * _UP, 0.0)
                np.maximum(largest, c, out=largest)
                if float(gap.max()) < 0.0 and not c.any():
                    return np.asarray(largest * _UP)  # f increases: G >= f > nu from here on
                if c.max() > 1e200:
                    break
        return np.where((c == 0.0) & (gap < 0.0), largest * _UP, np.inf)


def lattice_bound(problem: Problem, expected: float, reach: float, *, cells: int = 16) -> LowerBound:
    r"""One dimension, shifts of length 1 alone: the best test by marching outwards. Sharp for small epsilon.

    For a shift v = +-1 test phi(n) = c(n v)/lambda where n v > -1/2, and 0 otherwise. Averaged over the two signs,

        G(r) = f(r) + [c(r) + c(-r) 1{r < 1/2} - e^eps c(r - 1) 1{r > 1/2}]/2,        lambda = max c.

    G >= nu asks for c(x) + c(-x) >= 2 (nu - f(x)) for 0 <= x <= 1/2, and then, outwards on each of the two lattices
    x + k and -x + k, for c(r) >= e^eps c(r - 1) + 2 (nu - f(r)). The least such c is good if it dies out; then
    E f >= nu - lambda delta. On cells [x1, x2] of [0, 1/2] take c linear on each x + k and k - x: G - f is linear there
    and f is at least its chord less its sag, so both ends decide. Every c is rounded up and only then used, so rounding
    costs nothing but sharpness. (A single point r carries no such interval, and needs none: c is closed from the side
    on which it is larger.)

    The best bound of this kind; ``expected`` and ``reach`` are E f and the last radius of a good mechanism.
    """
    begun, delta = time.thread_time(), problem.target
    steps = math.ceil(2.0 * reach) + 40
    march = _LatticeMarch(problem, expected, max(min(cells, 100_000 // steps), 2), steps)

    def value(level: float) -> float:
        return level - march.multiplier(level) * delta

    # nu - lambda(nu) delta is concave in nu, and lambda infinite beyond some nu.
    best, level, low, high = 0.0, 0.5, 0.0, 4.0
    for spread, tolerance in ((0.2, 1e-2), (0.05, 1e-3), (0.01, 1e-6)):
        march.balance(level)
        best, level = max((best, level), _peak(value, low, high, tolerance))
        low, high = (1.0 - spread) * level, (1.0 + spread) * level
    proved = max(best * (1.0 - 1e-14) - 1e-14 * level, 0.0) * expected
    multiplier = (level - best) / delta * expected
    return LowerBound(proved, "lattice", proved, (multiplier,), (1.0,), time.thread_time() - begun)


def _peak(value: Callable[[float], float], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """(value, place) of the largest value seen by golden section."""
    golden = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = value(a), value(b)
    best = max((at_a, a), (at_b, b))
    while high - low > tolerance * high:
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = value(b)
        best = max(best, (at_a, a), (at_b, b))
    return best


def _sparse(count: int) -> list[int]:
    """1, 2, 3, ... then growing gaps, up to count - 1; sums of a few reach everything."""
    out: list[int] = []
    j = 1.0
    while j < count:
        if not out or int(j) > out[-1]:
            out.append(int(j))
        j = max(j + 1.0, j * _GAP)
    return out


def shorter_shifts_bound(
    problem: Problem, expected: float, gamma: float, reach: float, *, per_unit: int = 32, limit: float = 20.0
) -> LowerBound:
    r"""One dimension with many shift lengths, by linear programming: for the middle range of epsilon.

    For a shift v > 0 of length d <= 1 test phi_d(n) = c_d(n)/lambda_d for n > 0 and 0 otherwise. Averaged over the two
    signs of v,

        G(r) = f(r) + sum_d [c_d(r) - e^eps c_d(r - d) 1{r > d}]/2,      lambda_d = max c_d.

    On the lattice of edges {i w} and {gamma + i w}, with shifts that are multiples of w, take each c_d linear on every
    cell: then G - f is linear on every cell, and G is least at the cells' ends up to the sag of f. The coefficients
    come from a linear program; the bound is evaluated from them.

    Proved lower bound; ``gamma`` and ``reach``, first and last radius of a good staircase, place the grid.
    """
    import scipy.sparse as sparse
    from scipy.optimize import linprog

    begun = time.thread_time()
    _, epsilon, delta, objective = problem
    nothing = LowerBound(0.0, "shorter shifts", math.nan)
    per_unit = min(per_unit, int(3000 / (reach + 1.0)))
    if per_unit < 8 or objective.kinks():
        return nothing
    w = 1.0 / per_unit
    alpha = gamma - w * math.floor(gamma / w)
    if min(alpha, w - alpha) < 1e-6 * w:
        alpha = 0.5 * w
    count = int((reach + 1.0) / w) + 1
    edges = np.sort(np.concatenate([w * np.arange(count + 1), alpha + w * np.arange(count)]))
    cells = len(edges) - 1  # cell i + 2 is cell i moved by w
    core = min(int(np.searchsorted(edges, gamma + _STEPS - 1.0 + 1e-9)), cells)
    shorter = _sparse(per_unit)
    shifts = [per_unit, *(per_unit - j for j in shorter)]
    used = [cells] + [core] * len(shorter)
    offsets = np.concatenate([[0], np.cumsum(2 * np.array(used))])
    grow = math.exp(epsilon)

    # Row (i, e): G at end e of cell i. Variable (j, i, e): c_j at end e of cell i; none may leave the grid.
    rows, cols, values, blocked = [], [], [], np.zeros(int(offsets[-1]), dtype=bool)
    for j, (shift, number) in enumerate(zip(shifts, used, strict=True)):
        i = np.arange(number)
        moved = i + 2 * shift
        inside = moved < cells
        blocked[offsets[j] : offsets[j + 1]] = np.repeat(~inside, 2)
        for end in (0, 1):
            column = offsets[j] + 2 * i + end
            rows += [2 * i + end, 2 * moved[inside] + end]
            cols += [column, column[inside]]
            values += [np.full(number, 0.5), np.full(int(inside.sum()), -0.5 * grow)]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols)))
    matrix = sparse.csr_matrix(entries, shape=(2 * cells, len(blocked)))
    sag = objective.sag(edges[:-1], edges[1:]) / expected
    floor = objective.value(np.column_stack([edges[:-1], edges[1:]]).ravel()) / expected - np.repeat(sag, 2)
    keep, tests = ~blocked, len(shifts)
    number = int(keep.sum())
    which = np.repeat(np.arange(tests), np.diff(offsets))[keep]
    top = sparse.hstack([-matrix[:, keep], sparse.csr_matrix((2 * cells, tests)), np.ones((2 * cells, 1))])
    caps = sparse.csr_matrix((-np.ones(number), (np.arange(number), which)), shape=(number, tests))
    bottom = sparse.hstack([delta * sparse.identity(number), caps, sparse.csr_matrix((number, 1))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = linprog(
            np.concatenate([np.zeros(number), np.ones(tests), [-1.0]]),
            A_ub=sparse.vstack([top, bottom]).tocsr(),
            b_ub=np.concatenate([floor, np.zeros(number)]),
            bounds=[(0.0, None)] * (number + tests) + [(None, None)],
            method="highs-ipm",
            options={"run_crossover": "off", "time_limit": 5.0 * max(limit, 1.0)},
        )
    if found.x is None or not np.all(np.isfinite(found.x)):
        return nothing
    coefficients = np.zeros(len(blocked))
    coefficients[keep] = np.maximum(found.x[:number], 0.0)
    largest = [float(coefficients[offsets[j] : offsets[j + 1]].max()) for j in range(tests)]
    # Every row is a sum of at most 2 tests + 1 products, each rounded once or twice. Beyond the grid G = f.
    size = abs(matrix) @ coefficients + np.abs(floor)
    g = floor + matrix @ coefficients - 4e-16 * (2 * tests + 4) * size
    low = min(float(g.min()), float(objective.value(edges[-1:])[0]) / expected * (1.0 - 1e-14))
    low -= math.fsum(largest) * delta * (1.0 + 1e-14)
    return LowerBound(
        max(low, 0.0) * expected,
        "shorter shifts",
        -float(found.fun) * expected,
        tuple(expected * value for value in largest),
        tuple(shift * w for shift in shifts),
        time.thread_time() - begun,
    )


def _share(t: float, m: int) -> float:
    """Mean over x in [0, 1] of the length of {u in [m, m+1] : x <= u < x + t}."""
    if m == 0:
        return t - 0.5 * t * t if t < 1.0 else 0.5
    if t >= m + 1:
        return 1.0
    if t >= m:
        y = m + 1 - t
        return (t - m) + y - 0.5 * y * y
    if t > m - 1:
        return 0.5 * (t + 1 - m) ** 2
    return 0.0


class _RearrangedMarch:
    """f on cells of width 1/per_unit, and the march outwards."""

    def __init__(self, problem: Problem, scale: float, per_unit: int, reach: float) -> None:
        objective = problem.objective
        edges = np.arange(math.ceil(reach * per_unit) + 1) / per_unit
        values = objective.value(edges) / scale
        self.low: list[float] = values[:-1].tolist()
        self.high: list[float] = values[1:].tolist()
        # With a kink inside, f falls below its chord by at most its rise.
        sag = np.asarray(objective.sag(edges[:-1], edges[1:]) / scale)
        for kink in objective.kinks():
            inside = (edges[:-1] < kink) & (kink < edges[1:])
            sag[inside] = np.diff(values)[inside]
        self.sag: list[float] = sag.tolist()
        # Sums of up to 1e4 positive terms: a relative 1e-12 covers their rounding.
        self.per_unit, self.growth = per_unit, math.exp(problem.epsilon) * (1.0 + 1e-12)

    def holds(self, level: float, half: float) -> bool:
        """Whether nu = level is reached with lambda = 2 half.

        For r in cell j, r - 1 = left + x with x uniform in cell j - n. Cell k contributes to Phi2 the length of
        {u in cell k : x <= u < x + t_k}; its mean over x is ``_share``, and all together never exceed the
        largest t_k that contributes.
        """
        n, growth = self.per_unit, self.growth
        low, high, sag = self.low, self.high, self.sag
        w = 1.0 / n
        most = (1.0 - w) * (1.0 - 1e-15)  # so that no cell contributes to itself
        count = len(low)
        inflow = [0.0] * (count + n + 2)
        top = [0.0] * (count + n + 2)
        least = [math.inf] * (count + n + 2)
        run = [0] * (count + n + 2)
        x, quiet = 0.0, 0
        for j in range(count):
            mean = 0.5 * (low[j] + high[j]) - sag[j]
            inward = half * growth * min(inflow[j], top[j])
            gain = x + w * (mean - level - inward) - 1e-15 * (x + w * (mean + level + inward))  # rounded down
            # [x, x + flat] always counts, so G varies within the cell by at most this, and X dips below its
            # chord by at most w/4 of it.
            flat = min(least[j], (run[j] - 1) * w) * (1.0 - 1e-12) if run[j] else 0.0
            dip = 0.2500001 * w * (high[j] - low[j] + sag[j] + half * growth * (top[j] - flat))
            value = max(growth * top[j] * (1.0 + 1e-14) + (level - low[j]) / half, 0.0)  # X does not fall at all
            if x >= dip:
                value = min(value, max((dip - gain) / (w * half), 0.0))
            value *= 1.0 + 1e-14
            if value > most:
                return False
            x = gain
            if value > 0.0:
                x += w * half * value * (1.0 - 1e-15) - 1e-15 * abs(x)
                quiet = 0
                cells = value * n
                m = 0
                while m < cells + 1.0:  # so m < n
                    ahead = j + n - m
                    inflow[ahead] += _share(cells, m) * w
                    if value > top[ahead]:
                        top[ahead] = value
                    if run[ahead] == m:
                        run[ahead] += 1
                        if value < least[ahead]:
                            least[ahead] = value
                    m += 1
            else:
                quiet += 1
                if quiet > n + 2 and low[j] > level:
                    return True
        return False

    def level(self, multiplier: float, good: float, bad: float, digits: int) -> float:
        """The largest nu between good and bad that holds (0 if none)."""
        found = 0.0
        for _ in range(digits):
            middle = 0.5 * (good + bad)
            if self.holds(middle, 0.5 * multiplier):
                good = found = middle
            else:
                bad = middle
        return found


def rearrangement_bound(problem: Problem, expected: float, reach: float, *, cells: int = 20_000) -> LowerBound:
    r"""One dimension by rearrangement: sharp for small delta, over all laws on the line.

    Let N have density h (otherwise add a little uniform noise, which keeps the promise and costs as little as wished)
    and let h* be its symmetric decreasing rearrangement. Then

        delta >= mean over v uniform in [-1, 1] of H(v),   H(v) = 1 - int over c of |{h > c} n ({e^eps h > c} - v)|,

    and by Riesz's inequality the mean overlap of two sets with an interval of shifts grows when both are replaced by
    centred intervals of the same length. So h* keeps the averaged promise too, with no larger E f. Now for any
    0 <= t <= 1 the tests

        phi_v(n) = 1{n v > 0 and |v| > 1 - t(|n|)}

    have Phi1(r) = t(r)/2 and Phi2(r) = |{a in [max(r-1,0), r] : a - (r-1) < t(a)}|/2, and since h* is a mixture of
    uniform laws on centred intervals,

        E f >= nu - lambda delta   whenever X(r) = int_0^r (G - nu) >= 0 for all r,  G = f + lambda (Phi1 - e^eps Phi2).

    t is constant on cells; outwards from 0, each value is the least that keeps X >= 0. For a given lambda the largest
    nu for which t stays below 1 less a cell's width and dies out is found by bisection. X is rounded down at every
    step, in proportion to the terms of that step, so that it stays below the true one where t has grown to 1/delta
    times its first value.

    The best bound of this kind over lambda; ``expected`` and ``reach`` are those of a good mechanism.
    """
    from scipy.optimize import minimize_scalar

    begun, delta = time.thread_time(), problem.target
    reach = 1.6 * reach + 6.0

    def march(count: int) -> _RearrangedMarch:
        return _RearrangedMarch(problem, expected, int(min(max(count / reach, 4.0), 2000.0)), reach)

    coarse, fine = march(cells // 10), march(cells)

    def cost(log_multiplier: float, digits: int = 12) -> float:
        multiplier = math.exp(log_multiplier)
        return multiplier * delta - coarse.level(multiplier, 0.0, 1.2 + multiplier * delta, digits)

    guesses = np.log(np.geomspace(3.0, 1e7, 14))
    guesses = guesses[np.exp(guesses) * delta < 20.0]
    first = min(guesses, key=cost)
    found = minimize_scalar(
        lambda x: cost(x, 16), bounds=(first - 1.2, first + 1.2), method="bounded", options={"maxiter": 9}
    )
    multiplier = math.exp(float(found.x))
    guess = multiplier * delta - float(found.fun)
    nu = fine.level(multiplier, 0.98 * guess, 1.03 * guess + 1e-3, 13) or fine.level(multiplier, 0.0, guess, 13)
    proved = max(nu * (1.0 - _ALLOWANCE) - multiplier * delta * (1.0 + 1e-14), 0.0) * expected
    return LowerBound(proved, "rearrangement", proved, (multiplier * expected,), (), time.thread_time() - begun)
