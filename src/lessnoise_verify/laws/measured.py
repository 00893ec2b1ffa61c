"""Noise on linear answers A x, from which a table is fitted: the fit only processes what was measured.

Let noise be independent, each entry of the same symmetric and log-concave law f, and delta(v) that of a move v of the
answers. 1 - delta(v) is the integral of min(f(x), e^epsilon f(x - v)), which is log-concave in v (Prekopa): delta is
largest at a corner of a convex set of moves. Those of all changes x with |x|_1 <= D are D a_j, a_j the columns of A; if
at most s is taken away and at most s added, they are s (a_i - a_j) and s a_j. As delta is the same for all orders and
signs of the entries of v, too, it grows from u to v if for every n the n largest sizes of v add up to at least as much:
v *majorizes* u, which is then a mean of such reorderings of v. That holds for whole numbers as well: a unit that goes
from a larger entry to a smaller one shifts, for a given sum of the two, one symmetric sequence that falls on both sides
of its middle less far against another one, and the overlap of the two grows. There, one must majorize all others.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, fmpq

from lessnoise_verify.balls import between
from lessnoise_verify.changes import RELATIONS, Moves
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.laws.gaussian import normal_delta
from lessnoise_verify.laws.integers import geometric_moves_delta
from lessnoise_verify.laws.laplace import laplace_moves_delta
from lessnoise_verify.laws.registry import Case, law, normal
from lessnoise_verify.strategies import Alike, Sizes, Strategy, read_shape, read_strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_MOVES: Final = 64  # whose delta is computed; of more, a few and one that majorizes all
_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Reach:
    """How much a change of a table may be: what is covered at most, and what is there for certain."""

    total: Fraction
    """No change is larger in l1 norm, or no change takes away, or adds, more than this if counts are ``moved``."""
    moved: bool
    alone: Fraction
    """Every cell by itself may change by so much."""
    paired: Fraction
    """So much may leave any cell and enter any other; 0 if that is no worse than one cell alone."""

    @classmethod
    def of(cls, case: Case, change: str) -> Reach:
        """Of a case. "moved" without a set of changes: at most half of the sensitivity leaves, at most half enters."""
        moved, size, changes = change == "moved", case.sensitivity, case.changes
        if moved and case.relation != "replace":
            raise Refuted("counts that are moved are those of replaced individuals, not of added or removed ones.")
        if changes is None:
            total = size / 2 if moved else size
            return cls(total, moved, total, total if moved and case.dimension > 1 else Fraction(0))
        square, (alone, paired) = changes.squared_norm(1), changes.alone
        total = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
        if moved and changes.side is not None:
            total = changes.side
        elif total**2 != square:
            raise NotCovered("measured tables with changes of an irrational l1 norm are not covered.")
        return cls(total, moved, alone, paired if moved or 2 * paired > alone else Fraction(0))


@functools.lru_cache(maxsize=4)
def largest_power(strategy: Strategy, reach: Reach, order: int) -> tuple[Fraction, Fraction]:
    """Ends of the largest l1 norm of a move of the answers, or of the square of its l2 norm."""
    low, high = strategy.power(order)
    near, far = strategy.apart(order) if reach.moved or reach.paired else (Fraction(0), Fraction(0))
    most = max(high, far) if reach.moved else high
    return max(low * reach.alone**order, near * reach.paired**order), most * reach.total**order


def _square(strategy: Strategy, reach: Reach, variance: Fraction) -> tuple[Fraction, Fraction]:
    """Ends of mu^2 under normal noise: only the l2 norm of a move counts."""
    low, high = largest_power(strategy, reach, 2)
    return low / variance, high / variance


def laplace_delta(strategy: Strategy, reach: Reach, scale: Fraction, epsilon: Fraction, bits: int) -> arb:
    """0 from the largest l1 norm over the scale on."""
    if largest_power(strategy, reach, 1)[1] <= epsilon * scale:
        return arb(0)
    return moves_delta(strategy, reach, lambda move: laplace_moves_delta([move], scale, epsilon, bits))


def moves_delta(strategy: Strategy, reach: Reach, delta: Callable[[Moves], arb]) -> arb:
    """Between the largest delta of moves that are there, and that of moves above all."""
    there, corners, exact = _moves(strategy, reach)
    high = _largest(corners, delta) if corners else None
    if high is not None and exact:
        return high
    low = _largest(there, delta)
    return between(arb(0) if low is None else low, delta(_majorant(strategy, reach)) if high is None else high)


def _largest(moves: Iterable[Moves], delta: Callable[[Moves], arb]) -> arb | None:
    """The largest delta of some moves; None if there is no time for all."""
    until, found = time.monotonic() + _SECONDS, arb(0)
    for move in moves:
        if time.monotonic() > until:
            return None
        found = found.max(delta(move))
    return found


@functools.lru_cache(maxsize=4)
def _moves(strategy: Strategy, reach: Reach) -> tuple[list[Moves], list[Moves], bool]:
    """A few moves that are there; all corners, if they are few; and whether all of these are there."""
    kinds, columns, corners = strategy.kinds(), strategy.kinds(sure=True), []
    exact = kinds == columns and reach.total == reach.alone
    if kinds is not None and not reach.moved:
        corners = [strategy.moves(sizes, reach.total) for sizes in _highest(kinds)]
    if columns is None:
        columns = {tuple(map(abs, column.values())) for column in strategy.some()}
    there = [strategy.moves(sizes, reach.alone) for sizes in _worst(columns)]
    there += [strategy.moves(sizes, reach.paired) for sizes in _worst(strategy.pairs() if reach.paired else [])]
    return there, corners, exact


def _highest(kinds: set[Sizes]) -> list[Sizes]:
    """Without those that another one majorizes; none if they are still too many."""
    kept: dict[Sizes, list[fmpq]] = {}
    for sizes in sorted(kinds, key=lambda each: (sum(each), each), reverse=True):
        sums = list(itertools.accumulate(sizes))
        if not any(all(map(operator.ge, other + other[-1:] * len(sums), sums)) for other in kept.values()):
            kept[sizes] = sums
        if len(kept) > _MOST_MOVES:
            return []
    return list(kept)


def _worst(columns: Iterable[Sizes]) -> list[Sizes]:
    """The one of the largest l1 norm, and that of the largest l2 norm."""
    known = sorted(columns)
    return [max(known, key=norm) for norm in (sum, lambda each: sum(size * size for size in each)) if known]


def _majorant(strategy: Strategy, reach: Reach) -> Moves:
    """One move that majorizes all.

    Of x - y, x and y nonnegative and at most s in l1, A x - A y is at most A x where it is above 0 and A y where it is
    below, if A has no negative entries: as if both were moved in different rows. Else |A x - A y| <= |A x| + |A y|.
    """
    apart = reach.moved and strategy.nonnegative
    above = strategy.moves(strategy.majorant(), reach.total * (2 if reach.moved and not apart else 1))
    return Moves.of((size, 2 * count) for size, count in above.sizes) if apart else above


# Trees of counts (Qardaji, Yang & Li 2013).


@functools.lru_cache(maxsize=4)
def _tree(noise: Fields, shape: tuple[int, ...]) -> Strategy:
    """Every cell is in one node of each of the h levels, and the first and the last cell share none.

    h is the least number with b^h >= n, so that a node below the root has b^(h-1) < n cells in a row.
    """
    if read_shape(noise, "shape") != shape or len(shape) > 2 or max(shape) < 2:
        raise Refuted(f"a tree of counts is not for the shape {shape}.")
    branching, height = noise.whole("branching", 2), 1
    while branching**height < max(shape):
        height += 1
    nodes = sum(branching ** (len(shape) * level) for level in range(1, height + 1))
    return Alike(shape, nodes, [1.0] * height, [1.0] * 2 * height)


def _tree_reach(noise: Fields, case: Case) -> Reach:
    if noise.choice("neighbours", *RELATIONS) != case.relation:
        raise Refuted(f"the tree of counts is not made for {case.relation}.")
    return Reach.of(case, noise.choice("change", "any", "moved"))


@normal("hierarchy")
def hierarchy_square(noise: Fields, case: Case) -> tuple[Fraction, Fraction] | None:
    """Normal noise of one standard deviation in every node."""
    tree, reach, scale = _tree(noise, case.shape), _tree_reach(noise, case), noise.positive("scale")
    return _square(tree, reach, scale**2) if noise.choice("noise", "laplace", "gaussian") == "gaussian" else None


@law("hierarchy", drawn=lambda noise, case: _tree(noise, case.shape).rows)
def hierarchy_delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Laplace or normal noise of one scale, or standard deviation, in every node."""
    if hierarchy_square(noise, case) is not None:
        return normal_delta(noise, case, epsilon, bits)
    reach, scale = _tree_reach(noise, case), noise.positive("scale")
    return laplace_delta(_tree(noise, case.shape), reach, scale, epsilon, bits)


# Any strategy.


@functools.lru_cache(maxsize=4)
def _strategy(noise: Fields, shape: tuple[int, ...]) -> Strategy:
    """What is measured; what is asked has no part in privacy."""
    found, asked = read_strategy(noise.fields("strategy")), noise.fields("workload")
    for part in asked.objects("parts"):
        sizes = tuple(factor.whole("size") for factor in part.objects("factors", 64))
        if sizes != found.shape:
            raise Refuted(f"the table that is asked about is not the one that is measured, of shape {found.shape}.")
    if found.shape != shape:
        raise Refuted(f"the strategy is for tables of shape {found.shape}, not {shape}.")
    return found


@normal("measured")
def measured_square(noise: Fields, case: Case) -> tuple[Fraction, Fraction] | None:
    """Normal noise on every answer, of density proportional to exp(-(x/scale)^2)."""
    strategy, entry = _strategy(noise, case.shape), noise.fields("noise")
    reach = Reach.of(case, noise.choice("change", "any", "moved"))
    if entry.text("kind") != "generalized-gaussian" or entry.number("p", 1.0, 2.0) != 2:
        return None
    scale = entry.positive("scale")
    entry.end()
    return _square(strategy, reach, scale**2 / 2)


@law("measured", drawn=lambda noise, case: _strategy(noise, case.shape).rows)
def measured_delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Laplace, normal or geometric noise on every answer."""
    if measured_square(noise, case) is not None:
        return normal_delta(noise, case, epsilon, bits)
    strategy, entry = _strategy(noise, case.shape), noise.fields("noise")
    reach = Reach.of(case, noise.choice("change", "any", "moved"))
    kind = entry.choice("kind", "laplace", "generalized-gaussian", "geometric")
    if kind == "geometric":
        rate, tail = entry.positive("rate"), entry.number("tail", 0.0, 1.0)
        entry.end()
        whole, kinds = reach.total.denominator == 1 if case.changes is None else case.changes.whole, strategy.kinds()
        if not whole or any(size.q != 1 for sizes in kinds or () for size in sizes):
            raise Unreadable("noise of whole numbers is not for answers that are not whole.")
        if kinds is None or len(kinds) > 1 or (tail and reach.total != 1):
            raise NotCovered("noise of whole numbers is for columns alike, and for one row if it ends.")
        return moves_delta(strategy, reach, lambda move: geometric_moves_delta([move], rate, tail, epsilon, bits))
    power, scale = entry.number("p", 1.0, 2.0) if kind != "laplace" else Fraction(1), entry.positive("scale")
    entry.end()
    if power == 1:
        return laplace_delta(strategy, reach, scale, epsilon, bits)
    raise NotCovered(f"noise with p = {float(power):g} on measured answers has no proof here.")
