"""Noise on linear answers A x, from which a table is fitted: the fit only processes what was measured.

Let noise be independent, each entry of the same symmetric and log-concave law f, and delta(v) that of a move v of the
answers. 1 - delta(v) is the integral of min(f(x), e^epsilon f(x - v)), which is log-concave in v (Prekopa): delta is
largest at a corner of a convex set of moves. Those of all changes x with |x|_1 <= D are D a_j, a_j the columns of A; if
at most s is taken away and at most s added, they are s (a_i - a_j) and s a_j. As delta is the same for all orders and
signs of the entries of v, too, it grows from u to v if for every n the n largest sizes of v add up to at least as much:
v *majorizes* u, which is then a mean of such reorderings of v. That holds for whole numbers as well: a unit that goes
from a larger entry to a smaller one shifts, for a given sum of the two, one symmetric sequence that falls on both sides
of its middle less far against another one, and the overlap of the two grows.
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

from flint import arb

from lessnoise_verify.balls import between
from lessnoise_verify.changes import RELATIONS, Moves
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.integers import geometric_moves_delta
from lessnoise_verify.laws.laplace import laplace_moves_delta
from lessnoise_verify.laws.registry import Case, law
from lessnoise_verify.strategies import Alike, Sizes, Strategy, read_shape, read_strategy

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_MOVES: Final = 64  # whose delta is computed; of more, a few and one that majorizes all
_FEW: Final = 2
_SECONDS: Final = 8.0


@dataclass(frozen=True)
class Reach:
    """How much a change of a table may be: what is covered at most, and what is there for certain."""

    total: Fraction
    """No change is larger in l1 norm, or no change takes away, or adds, more than this if counts are ``moved``."""
    moved: bool
    alone: Fraction
    """Every cell by itself may change by so much."""
    paired: Fraction
    """So much may leave any cell and enter any other."""

    @classmethod
    def of(cls, case: Case, change: str) -> Reach:
        """Of a case. "moved" without a set of changes: at most half of the sensitivity leaves, at most half enters."""
        moved, sensitivity = change == "moved", case.sensitivity
        if moved and case.relation != "replace":
            raise Refuted("counts that are moved are those of replaced individuals, not of added or removed ones.")
        if case.changes is None:
            total = sensitivity / 2 if moved else sensitivity
            return cls(total, moved, total, sensitivity / 2 if case.dimension > 1 else Fraction(0))
        total = _root_up(case.changes.squared_norm(1))
        if moved:
            total = case.changes.side or total
        return cls(total, moved, *case.changes.alone)

    @property
    def of_pairs(self) -> bool:
        """Whether pairs of cells may be worse than every cell alone."""
        return self.moved or 2 * self.paired > self.alone

    def power(self, strategy: Strategy, order: int) -> tuple[Fraction, Fraction]:
        """Ends of the largest l1 norm of a move of the answers, or of the square of its l2 norm."""
        low, high = strategy.power(order)
        near, far = strategy.apart(order) if self.of_pairs else (Fraction(0), Fraction(0))
        most = max(high, far) if self.moved else high
        return max(low * self.alone**order, near * self.paired**order), most * self.total**order


def _root_up(square: Fraction) -> Fraction:
    """The square root, if it is rational; else a little more."""
    numerator, denominator = square.numerator, square.denominator
    root = Fraction(math.isqrt(numerator), math.isqrt(denominator))
    if root**2 == square:
        return root
    shift = 2**200
    return Fraction(math.isqrt(numerator * denominator * shift**2) + 1, denominator * shift)


def normal_delta(strategy: Strategy, reach: Reach, variance: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Only the l2 norm of a move counts, and delta grows with it."""
    low, high = reach.power(strategy, 2)
    found = gaussian_delta(high / variance, epsilon, bits)
    return found if low == high else between(gaussian_delta(low / variance, epsilon, bits), found)


def moves_delta(strategy: Strategy, reach: Reach, delta: Callable[[list[Moves]], arb], *, convex: bool) -> arb:
    """Between the largest delta of moves that are there, and that of moves above all.

    ``convex``: the noise is continuous, so that it is enough to have all corners; else one must majorize all.
    """
    kinds, (pairs, complete) = strategy.kinds(strategy.cells), strategy.pairs() if reach.of_pairs else ([], True)
    columns = list(kinds or (_sizes(strategy, cell) for cell in {0, strategy.cells // 2, strategy.cells - 1}))
    corners = _highest(columns + pairs if reach.moved else columns)
    exact = reach.total == reach.alone and (not reach.moved or reach.total == reach.paired)
    listed = kinds is not None and complete and len(corners) <= _MOST_MOVES
    low, high = arb(0), None
    if listed and (convex or (len(corners) == 1 and not reach.moved)):
        found, all_done = _largest([strategy.moves(each).scaled(reach.total) for each in corners], delta)
        low, high = found if exact else low, found if all_done else None
        if exact and all_done:
            return found
    if high is None or not exact:
        there = [strategy.moves(each).scaled(reach.alone) for each in _worst(columns) if reach.alone]
        there += [strategy.moves(each).scaled(reach.paired) for each in _worst(pairs) if reach.paired]
        low = low.max(_largest(there, delta)[0])
    return between(low, delta([_majorant(strategy, reach)]) if high is None else high)


def _largest(moves: list[Moves], delta: Callable[[list[Moves]], arb]) -> tuple[arb, bool]:
    """The largest delta of some moves, and whether there was time for all."""
    until, found = time.monotonic() + _SECONDS, arb(0)
    for one in moves:
        if time.monotonic() > until:
            return found, False
        found = found.max(delta([one]))
    return found, True


def _sizes(strategy: Strategy, cell: int) -> Sizes:
    return tuple(sorted(map(abs, strategy.column(cell).values()), reverse=True))


def _highest(corners: list[Sizes]) -> list[Sizes]:
    """Without those that another one majorizes; some of them, if they are too many."""
    found: list[list[int]] = []
    kept: list[Sizes] = []
    for sizes in sorted(set(corners), key=lambda each: (sum(each), each), reverse=True):
        sums = list(itertools.accumulate(sizes))
        if not any(all(map(operator.ge, other + other[-1:] * (len(sums) - len(other)), sums)) for other in found):
            found.append(sums)
            kept.append(sizes)
        if len(kept) > _MOST_MOVES:
            break
    return kept


def _worst(corners: list[Sizes]) -> list[Sizes]:
    """A few that are about the worst: of the largest l1 norm, and of the largest l2 norm."""
    by_sum = sorted(corners, key=lambda each: (sum(each), each))[-1:]
    return by_sum + sorted(corners, key=lambda each: sum(size * size for size in each))[-_FEW:]


def _majorant(strategy: Strategy, reach: Reach) -> Moves:
    """One move that majorizes all.

    Of x - y, x and y nonnegative and at most s in l1, A x - A y is at most A x where it is above 0 and A y where it is
    below, if A has no negative entries: as if both were moved in different rows. Else |A x - A y| <= |A x| + |A y|.
    """
    above = strategy.moves(strategy.majorant()).scaled(reach.total)
    if not reach.moved:
        return above
    if strategy.nonnegative:
        return Moves.of((size, 2 * count) for size, count in above.sizes)
    return above.scaled(Fraction(2))


def laplace_delta(strategy: Strategy, reach: Reach, scale: Fraction, epsilon: Fraction, bits: int) -> arb:
    """0 from the largest l1 norm over the scale on."""
    if reach.power(strategy, 1)[1] <= epsilon * scale:
        return arb(0)
    return moves_delta(strategy, reach, lambda moves: laplace_moves_delta(moves, scale, epsilon, bits), convex=True)


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
    return Alike(shape, nodes, (1,) * height, (1,) * 2 * height)


@law("hierarchy", drawn=lambda noise, case: _tree(noise, case.shape).rows)
def hierarchy_delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Laplace or normal noise of one scale, or standard deviation, in every node."""
    kind, scale = noise.choice("noise", "laplace", "gaussian"), noise.positive("scale")
    if noise.choice("neighbours", *RELATIONS) != case.relation:
        raise Refuted(f"the tree of counts is not made for {case.relation}.")
    tree, reach = _tree(noise, case.shape), Reach.of(case, noise.choice("change", "any", "moved"))
    if kind == "laplace":
        return laplace_delta(tree, reach, scale, epsilon, bits)
    return normal_delta(tree, reach, scale**2, epsilon, bits)


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


@law("measured", drawn=lambda noise, case: _strategy(noise, case.shape).rows)
def measured_delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Laplace, normal or geometric noise on every answer."""
    strategy, entry = _strategy(noise, case.shape), noise.fields("noise")
    reach = Reach.of(case, noise.choice("change", "any", "moved"))
    kind = entry.choice("kind", "laplace", "generalized-gaussian", "geometric")
    if kind == "geometric":
        rate, tail = entry.positive("rate"), entry.number("tail", 0.0, 1.0)
        entry.end()
        whole = case.changes.whole if case.changes is not None else reach.total.denominator == 1
        if strategy.exponent != 0 or not whole:
            raise Unreadable("noise of whole numbers is not for answers that are not whole.")

        def geometric(moves: list[Moves]) -> arb:
            return geometric_moves_delta(moves, rate, tail, epsilon, bits)

        return moves_delta(strategy, reach, geometric, convex=False)
    power, scale = entry.number("p", 1.0, 2.0) if kind != "laplace" else Fraction(1), entry.positive("scale")
    entry.end()
    if power == 1:
        return laplace_delta(strategy, reach, scale, epsilon, bits)
    if power == 2:  # the density is proportional to exp(-(x/scale)^2)
        return normal_delta(strategy, reach, scale**2 / 2, epsilon, bits)
    raise NotCovered(f"noise with p = {float(power):g} on measured answers has no proof here.")
