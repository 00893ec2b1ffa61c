"""Several releases about the same individuals, each perhaps on a Poisson sample of them: delta of all together.

What is known in closed form is added up exactly: normal noise to one normal law, Laplace or geometric noise of one
scale to one change of more entries. All else goes onto a lattice of losses (see losses.py), between two proved ends.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb

from lessnoise_verify import laws
from lessnoise_verify.balls import ball, between, check_time, ends, probability, refined, time_limit
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import Fields, NotCovered
from lessnoise_verify.laws import integers, laplace
from lessnoise_verify.laws.gaussian import gaussian_delta, of_range
from lessnoise_verify.losses import Curve, composed, gaussian_curve, laplace_curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise_verify.laws import Case

_SECONDS: Final = 15.0
_MOST_PARTS: Final = 100
_FIXED: Final = {"radial"}  # other laws whose worst neighbours are the same at every epsilon


@dataclass(frozen=True)
class Part:
    """One mechanism, used ``count`` times, each time on a fresh Poisson sample at ``rate`` of the individuals."""

    noise: Fields
    case: Case
    rate: Fraction
    count: int


@dataclass(frozen=True)
class _Entry:
    """One number with noise, and by how much it changes; equal laws of independent entries are of one family."""

    curve: Curve
    square: tuple[Fraction, Fraction] | None = None
    """Ends of mu^2 of normal noise; the curve is that of the larger one."""
    family: tuple[str, Fraction, Fraction] | None = None
    size: Fraction = Fraction(0)
    pure: Fraction | None = None
    """No loss is above this."""
    fixed: bool = True
    """The curve is that of one pair of neighbours."""


_Entries = list[tuple[_Entry, int]]


def composed_delta(parts: list[Part], epsilon: Fraction, bits: int) -> arb:
    """A ball around the smallest delta of all parts together."""
    if not parts or len(parts) > _MOST_PARTS or any(not 0 < p.rate <= 1 or p.count < 1 for p in parts):
        raise NotCovered(f"a composition has 1 to {_MOST_PARTS} different parts, with rates above 0 and up to 1.")
    if any(part.rate < 1 and part.case.relation != "add/remove" for part in parts):
        raise NotCovered("sampling is covered for individuals that are added or removed.")
    with time_limit(_SECONDS):
        if len(parts) == 1 and parts[0].count == 1:
            return probability(_once(parts[0], epsilon, bits))
        entries = [
            (replace(entry, curve=replace(entry.curve, rate=part.rate)), number * part.count)
            for part in parts
            for entry, number in _entries(part)
        ]
        if _pure(entries, epsilon):
            return arb(0)
        found = _exact(entries, epsilon, bits)
        return probability(_on_lattice(entries, epsilon) if found is None else found)


def _once(part: Part, epsilon: Fraction, bits: int) -> arb:
    """One release: its own curve, or that of both directions of a sample, P_q against Q and Q against P_q."""
    if part.rate == 1:
        return laws.delta(part.noise, part.case, epsilon, bits)
    there = Curve(_curve_of(part, bits + 10), rate=part.rate)
    back = replace(there, backwards=True)
    return refined(lambda: there.excess(epsilon).max(back.excess(epsilon)), bits, most=512)


def _entries(part: Part) -> _Entries:
    """The independent entries of a part; on a sample it must be one."""
    noise, case = part.noise, part.case
    kind, square = noise.text("kind"), laws.squared_mu(noise, case)
    if square is not None:
        found = [(_Entry(gaussian_curve(square[1]), square, fixed=square[0] == square[1]), 1)]
    elif kind == "laplace":
        scale = noise.positive("scale")
        majorant = Moves.of([(case.sensitivity, 1)]) if case.changes is None else case.changes.majorant
        if majorant is None:
            raise NotCovered("the set of changes has no change that is worse than all others.")
        found = [(_laplace(size / scale), count) for size, count in majorant.sizes]
    elif kind == "geometric":
        rate, tail, moves = integers.geometric_case(noise, case)
        found = [(_geometric(rate, tail, int(size)), count) for size, count in moves.sizes]
    elif kind == "discrete-power":
        p, scale, moves = noise.number("p", 1.0, 2.0), noise.positive("scale"), integers.power_moves(noise, case)
        if p == 1:
            found = [(_geometric(1 / scale, Fraction(0), int(size)), count) for size, count in moves.sizes]
        else:
            found = [(_Entry(curve), count) for curve, count in integers.power_parts(p, scale, moves)]
    elif kind == "discrete-gaussian" and (case.dimension == 1 or integers.gaussian_case(noise, case)[1] == 1):
        variance, budget = integers.gaussian_case(noise, case)  # one entry changes
        curve = integers.power_curve(Fraction(2), lambda: ball(1 / (2 * variance)), math.isqrt(budget))
        found = [(_Entry(curve), 1)] if budget else []
    else:
        found = [(_Entry(Curve(_curve_of(part, 60)), fixed=kind in _FIXED), 1)]
    noise.end()
    if part.rate < 1 and sum(count for _, count in found) > 1:
        raise NotCovered("samples of changes of several entries are not covered.")
    return found


def _laplace(size: Fraction) -> _Entry:
    return _Entry(laplace_curve(size), None, ("laplace", Fraction(0), Fraction(0)), size, size)


def _geometric(rate: Fraction, tail: Fraction, change: int) -> _Entry:
    family, size = ("geometric", rate, tail), Fraction(change)
    if not tail:
        return _Entry(integers.geometric_curve(rate, change), None, family, size, rate * change)
    if change > 1:
        raise NotCovered("geometric noise with a tail is for entries that change by 1.")
    return _Entry(integers.ended_curve(rate, tail), None, family, size)


def _curve_of(part: Part, bits: int) -> Callable[[arb], arb]:
    """The curve of any law, which falls, at losses that are balls themselves."""

    @functools.cache
    def at(epsilon: Fraction) -> arb:
        check_time()
        return laws.delta(part.noise, part.case, epsilon, bits)

    def curve(loss: arb) -> arb:
        low, high = (max(end, Fraction(0)) for end in ends(loss))
        if low > laws.registry.LARGEST_EPSILON:
            return arb(0).union(at(Fraction(laws.registry.LARGEST_EPSILON)))
        return at(low) if low == high else between(at(low), at(high))

    at(Fraction(1))  # all fields are read
    return curve


def _pure(entries: _Entries, epsilon: Fraction) -> bool:
    """Whether all losses together are at most epsilon: on a sample at rate q a loss E becomes ln(1 + q (e^E - 1))."""
    exact, sampled = Fraction(0), arb(0)
    for entry, count in entries:
        if entry.pure is None:
            return False
        if entry.curve.rate == 1:
            exact += count * entry.pure
        else:
            sampled += count * (ball(entry.curve.rate) * ball(entry.pure).expm1()).log1p()
    return bool(sampled <= ball(epsilon - exact))


def _exact(entries: _Entries, epsilon: Fraction, bits: int) -> arb | None:
    """All together in closed form, if there is one."""
    if any(entry.curve.rate < 1 for entry, _ in entries):
        return None
    if all(entry.square is not None for entry, _ in entries):
        return of_range(lambda square: gaussian_delta(square, epsilon, bits), *_squares(entries))
    family = entries[0][0].family
    if family is None or any(entry.family != family for entry, _ in entries):
        return None
    moves = [Moves.of((entry.size, count) for entry, count in entries)]
    if family[0] == "laplace":
        return laplace.laplace_moves_delta(moves, Fraction(1), epsilon, bits)
    return integers.geometric_moves_delta(moves, *family[1:], epsilon, bits)


def _squares(entries: _Entries) -> tuple[Fraction, Fraction]:
    """Ends of the mu^2 of all normal laws on all the data: they add up."""
    squares = [(entry.square, count) for entry, count in entries if entry.square and entry.curve.rate == 1]
    low, high = (sum((count * square[end] for square, count in squares), Fraction(0)) for end in (0, 1))
    return low, high


def _on_lattice(entries: _Entries, epsilon: Fraction) -> arb:
    """Both directions, if they differ: the larger delta counts. Curves of no one pair bound it from above alone."""
    parts = [(entry.curve, count) for entry, count in entries if entry.square is None or entry.curve.rate < 1]
    square = _squares(entries)[1]
    parts += [(gaussian_curve(square), 1)] if square else []
    found = composed(parts, epsilon)
    if any(curve.rate < 1 for curve, _ in parts):
        back = [(replace(curve, backwards=curve.rate < 1), count) for curve, count in parts]
        found = found.max(composed(back, epsilon))
    return found if all(entry.fixed for entry, _ in entries) else between(arb(0), found)
