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
import math
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
from lessnoise_verify.strategies import Alike, Strategy, read_shape, read_strategy

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_MOVES: Final = 24  # whose delta is computed; of more, a few and one that majorizes all
_FEW: Final = 3


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
            half = sensitivity / 2 if case.dimension > 1 else Fraction(0)
            return cls(half, True, sensitivity / 2, half) if moved else cls(sensitivity, False, sensitivity, half)
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
    columns, pairs = _listed(strategy), strategy.pairs() if reach.of_pairs else ([], True)
    parts = [strategy.moves(each) for each in pairs[0]] if len(pairs[0]) <= 10 * _MOST_MOVES else []
    there = [each.scaled(reach.alone) for each in columns or _some(strategy)] if reach.alone else []
    there += [each.scaled(reach.paired) for each in parts] if reach.paired else []
    above: list[Moves] = []
    if columns is not None and (convex or len(columns) == 1) and not reach.moved:
        above = columns
    elif columns is not None and convex and pairs[1] and len(parts) == len(pairs[0]):
        above = columns + parts
    above = _highest([each.scaled(reach.total) for each in above])
    if not above or len(above) > _MOST_MOVES:
        above = [_majorant(strategy, reach)]
    there = _highest(there)
    if set(above) == set(there):
        return delta(above)
    low = delta(sorted(there, key=lambda each: each.squared_norm(2))[-_FEW:]) if there else arb(0)
    return between(low, delta(above))


def _listed(strategy: Strategy) -> list[Moves] | None:
    found = strategy.kinds(strategy.cells)
    return None if found is None or len(found) > 20 * _MOST_MOVES else [strategy.moves(each) for each in found]


def _some(strategy: Strategy) -> list[Moves]:
    """A few columns of many."""
    return [strategy.moves(strategy.column(cell).values()) for cell in {0, strategy.cells // 2, strategy.cells - 1}]


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


def _highest(moves: list[Moves]) -> list[Moves]:
    """Without those that another one majorizes."""
    found: list[Moves] = []
    for one in sorted(set(moves), key=lambda each: (each.squared_norm(1), each.squared_norm(2)), reverse=True):
        if not any(other.majorizes(one) for other in found):
            found.append(one)
        if len(found) > 4 * _MOST_MOVES:
            return found
    return found


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
