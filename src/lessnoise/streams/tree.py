"""What Laplace or geometric noise is added to: the nodes of a tree over the periods, each measured when it is complete.

A node of level l covers size_l = b_1 ... b_l periods. One row counts in one node of each level, so the levels share
epsilon. The estimate of a complete node combines its own measurement with the sum of its children's estimates, each by
its precision; nothing above it is measured yet, so that this is the least-squares estimate (Honaker 2015). The running
total after t periods is the sum over the complete nodes that are in no other: as many of level l as t's digit says.

A window is estimated in two ways, as the difference of two totals and as the sum over the largest nodes within it, and
the two estimates are combined by their covariance. So the nodes that are complete together with a larger one are
released beside the total, smallest first; all others are differences of two totals.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array, IntArray

    Variance = Callable[[float], float]  # of a node, by the share of epsilon that its level has

SPENT = 1.0 - 1e-12  # shares add up to this, so that no rounding of theirs goes beyond epsilon


@dataclass(frozen=True, slots=True)
class Tree:
    """Branching factors, from the leaves up, and the share of epsilon of each level, one more than those."""

    periods: int
    radices: tuple[int, ...]
    shares: tuple[float, ...]

    kind: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        settle(self, periods=validation.whole_number("periods", self.periods))
        radices = tuple(validation.whole_number("radices", each, 2) for each in self.radices)
        shares = tuple(validation.positive("shares", each) for each in self.shares)
        if len(shares) != len(radices) + 1 or math.fsum(shares) > SPENT * (1.0 + 1e-13) or len(shares) > 64:
            raise InvalidInput(f"shares={shares} are not those of a tree with radices={radices}: pass a plan's.")
        settle(self, radices=radices, shares=shares)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many periods a node of each level covers."""
        return _sizes(self.radices)

    def nodes(self, level: int) -> int:
        """How many nodes of a level are measured."""
        return self.periods // self.sizes[level]

    def records(self, period: int) -> int:
        """How many rows are released up to a period: the totals, and the nodes that end together with a larger one."""
        return period + sum(period // size for size in self.sizes[1:])

    def record(self, level: int, start: int) -> int | None:
        """The row (from 0) that has a node after so many periods; None if it is the difference of two totals."""
        end = start + self.sizes[level]
        if level + 1 == len(self.sizes) or end % self.sizes[level + 1]:
            return None
        return self.records(end - 1) + 1 + level

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "periods": self.periods,
            "radices": list(self.radices),
            "shares": list(self.shares),
        }

    def __str__(self) -> str:
        branching = " x ".join(map(str, self.radices[::-1])) if self.radices else "none"
        return f"tree of {len(self.shares)} level{'s' if self.radices else ''}, branching {branching}"


def _sizes(radices: tuple[int, ...]) -> tuple[int, ...]:
    sizes = [1]
    for radix in radices:
        sizes.append(sizes[-1] * radix)
    return tuple(sizes)


def own_weights(radices: tuple[int, ...], own: list[float]) -> tuple[list[float], list[float]]:
    """The weight of its own measurement in a node's estimate, and the estimate's variance, of each level."""
    weights, variances = [1.0], [own[0]]
    for radix, variance in zip(radices, own[1:], strict=True):
        below = radix * variances[-1]
        weights.append(below / (below + variance))
        variances.append(below * (1.0 - weights[-1]))
    return weights, variances


def digits(radices: tuple[int, ...], periods: Array | IntArray) -> Array:
    """How many complete nodes of each level the running total of each period is the sum of."""
    sizes = np.array(_sizes(radices))[:, np.newaxis]
    found = np.asarray(periods) // sizes
    if radices:
        found[:-1] %= np.array(radices)[:, np.newaxis]
    return np.asarray(found, dtype=np.float64)


def period_variances(tree: Tree, own: list[float]) -> Array:
    """Of the running total of each period, by the variances of the measurements of each level."""
    return np.asarray(
        np.array(own_weights(tree.radices, own)[1]) @ digits(tree.radices, np.arange(1, tree.periods + 1))
    )


class Window(NamedTuple):
    """An estimate of a window: ``share`` times the sum of the nodes, the rest times the difference of two totals."""

    variance: float
    share: float
    nodes: tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=256)
def window(tree: Tree, own: tuple[float, ...], first: int, last: int) -> Window:
    """The combination of least variance: of D and N, s = (V_D - C)/(V_D + V_N - 2 C), with V_D - s (V_D - C)."""
    weights, variances = own_weights(tree.radices, list(own))

    def covariance(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> float:
        """Of two sums of nodes.

        A node and one within it have V_inner prod (1 - w), over the levels above the inner one, up to the outer one.
        """
        total = 0.0
        for low, high in ((min(x, y), max(x, y)) for x in one for y in other):
            inside = high[1] <= low[1] and low[1] + tree.sizes[low[0]] <= high[1] + tree.sizes[high[0]]
            if inside and (low[0] < high[0] or low == high):
                total += variances[low[0]] * math.prod(1.0 - weight for weight in weights[low[0] + 1 : high[0] + 1])
        return total

    outer, inner, nodes = _covers(tree, 0, last), _covers(tree, 0, first - 1), _covers(tree, first - 1, last)
    difference = covariance(outer, outer) + covariance(inner, inner) - 2.0 * covariance(outer, inner)
    both = covariance(outer, nodes) - covariance(inner, nodes)
    apart = difference + covariance(nodes, nodes) - 2.0 * both
    if apart <= 1e-12 * difference:  # they are the same
        return Window(difference, 0.0, ())
    share = (difference - both) / apart
    return Window(difference - share * (difference - both), share, tuple(nodes))


def _covers(tree: Tree, start: int, end: int) -> list[tuple[int, int]]:
    """Level and first period (from 0) of the largest nodes that together cover the periods start + 1 .. end."""
    found = []
    while start < end:
        level = max(level for level, size in enumerate(tree.sizes) if start % size == 0 and start + size <= end)
        found.append((level, start))
        start += tree.sizes[level]
    return found


# The best tree.


def fitted_tree(periods: int, variance: Variance) -> Tree:
    """Branching and shares of least mean squared error of the running totals, by a local search from even trees."""

    @functools.cache
    def error(radices: tuple[int, ...]) -> tuple[float, tuple[float, ...]]:
        return _best_shares(radices, digits(radices, np.arange(1, periods + 1)).mean(axis=1), variance)

    starts = set()
    for height in range(1, max(periods.bit_length(), 2)):
        radix = max(round(periods ** (1.0 / height)), 2)
        starts.add((radix,) * (height - 1))
    starts = {radices for radices in starts if math.prod(radices) <= periods}
    best = min(sorted(starts), key=lambda radices: error(radices)[0])
    for _ in range(40):
        near = [
            (*best[:place], best[place] + step, *best[place + 1 :])
            for place in range(len(best))
            for step in (-2, -1, 1, 2)
            if best[place] + step >= 2
        ]
        near += [(*best[:place], best[place] * best[place + 1], *best[place + 2 :]) for place in range(len(best) - 1)]
        near += [best[1:], best[:-1], (2, *best), (*best, 2)] if best else [(2,)]
        allowed = [radices for radices in near if math.prod(radices) <= periods]
        found = min([best, *allowed], key=lambda radices: error(radices)[0])
        if found == best:
            break
        best = found
    return Tree(periods, best, error(best)[1])


def _best_shares(radices: tuple[int, ...], means: Array, variance: Variance) -> tuple[float, tuple[float, ...]]:
    """Shares p of Laplace noise, v = 2/p^2, at which the error sum_l a_l V_l cannot be lowered; and the error.

    V_l = 1/(1/v_l + 1/(b V_(l-1))), so dV_l/dv_l = w_l^2 and dV_l/dV_(l-1) = (1 - w_l)^2 b, w_l = V_l/v_l: with the
    derivatives A_l of the error by V_l, from the top down, the p_l^3 are proportional to A_l w_l^2.
    """
    shares = np.full(len(means), 1.0 / len(means))
    for _ in range(60):
        own = [2.0 / share**2 for share in shares]
        weights = own_weights(radices, own)[0]
        slopes = means.copy()
        for level in range(len(means) - 1, 0, -1):
            slopes[level - 1] += slopes[level] * (1.0 - weights[level]) ** 2 * radices[level - 1]
        found = np.cbrt(slopes * np.array(weights) ** 2)
        moved = np.sqrt(shares * found / found.sum())
        moved /= moved.sum()
        done = np.abs(moved - shares).max() < 1e-9
        shares = np.maximum(moved, 1e-9)
        if done:
            break
    shares *= SPENT / math.fsum(shares) * (1.0 - 1e-14)
    error = float(means @ own_weights(radices, [variance(float(share)) for share in shares])[1])
    return error, tuple(float(each) for each in shares)


class TreeRun:
    """The private sums of the open nodes, in quanta, and the sums of estimates of complete nodes in each of them."""

    def __init__(self, tree: Tree, size: int, own: list[float]) -> None:
        self.strategy, self.size = tree, size
        self.weights = own_weights(tree.radices, own)[0]
        self.held = np.zeros((len(tree.sizes), size), dtype=np.int64)
        self.found = np.zeros((len(tree.sizes), size))
        self.total, self.inner = np.zeros(size), np.zeros((0, size))

    def settle(self, state: dict[str, Any]) -> None:
        """The period is over."""
        self.held, self.found, self.total, self.inner = (state[name] for name in ("held", "found", "total", "inner"))

    def measured(self, quanta: IntArray, period: int) -> tuple[dict[int, IntArray], dict[str, Any]]:
        """The nodes that this period completes, by level, and the sums of those that are open after it."""
        held = self.held + quanta
        if max(int(held.max()), -int(held.min())) > 1 << 61:
            raise InvalidInput(
                f"value in period {period} makes the totals too large for this stream's arithmetic: state it in larger "
                "units, or clip it to a public bound."
            )
        complete = {level: held[level].copy() for level, size in enumerate(self.strategy.sizes) if period % size == 0}
        held[list(complete)] = 0
        return complete, {"held": held}

    def estimated(self, noisy: dict[int, Array], period: int) -> dict[str, Array]:
        """The running total from the noisy nodes, and the estimates of those that are in another of them."""
        found, inner = self.found.copy(), []
        for level, own in sorted(noisy.items()):
            estimate = own
            if level:
                estimate = self.weights[level] * own + (1.0 - self.weights[level]) * found[level - 1]
                found[level - 1] = 0.0
            found[level] += estimate
            inner.append(estimate)
        return {"found": found, "total": found.sum(axis=0), "inner": np.array(inner[:-1]).reshape(-1, self.size)}
