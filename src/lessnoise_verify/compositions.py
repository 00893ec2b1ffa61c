"""Several releases about the same individuals, each perhaps on a Poisson sample of them: delta of all together.

What is known in closed form is added up exactly: normal noise to one normal law, Laplace or geometric noise of one
scale to one change of more entries. All else goes onto a lattice of losses (see losses.py), between two proved ends.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb

from lessnoise_verify import laws
from lessnoise_verify.balls import ball, between, ends, probability, refined
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import Fields, NotCovered
from lessnoise_verify.laws import integers, laplace
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.losses import Curve, composed, gaussian_curve, laplace_curve

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise_verify.laws import Case

_SLOWEST: Final = 0.01  # seconds for one point of a curve
_MOST_PARTS: Final = 100
_FIXED: Final = {"radial"}  # laws whose worst neighbours are the same at every epsilon


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
    family: tuple[str, Fraction, Fraction] | None = None
    size: Fraction = Fraction(0)
    own: tuple[Fraction, Fraction] | None = None
    """An epsilon and a delta that it keeps; pure if the delta is 0."""
    square: Fraction | None = None
    """mu^2 of normal noise."""
    fixed: bool = True
    """The curve is that of one pair of neighbours."""


def composed_delta(parts: list[Part], epsilon: Fraction, bits: int) -> arb:
    """A ball around the smallest delta of all parts together."""
    if not parts or len(parts) > _MOST_PARTS or any(not 0 < p.rate <= 1 or p.count < 1 for p in parts):
        raise NotCovered(f"a composition has 1 to {_MOST_PARTS} different parts, with rates above 0 and up to 1.")
    if any(part.rate < 1 and part.case.relation != "add/remove" for part in parts):
        raise NotCovered("sampling is covered for individuals that are added or removed.")
    if len(parts) == 1 and parts[0].count == 1:
        return _once(parts[0], epsilon, bits)
    entries = [
        (replace(entry, curve=replace(entry.curve, rate=part.rate)), number * part.count)
        for part in parts
        for entry, number in _entries(part)
    ]
    highest = _basic(entries, epsilon)
    if highest.is_zero():
        return arb(0)
    found = _exact(entries, epsilon, bits)
    if found is None:
        found = _on_lattice(_merged(entries), epsilon)
        lowest = found.lower() if all(one.fixed for one, _ in entries) else arb(0)
        found = between(lowest, found.upper().min(highest.upper()).max(lowest))
    return probability(found)


def _once(part: Part, epsilon: Fraction, bits: int) -> arb:
    """One release: its own curve, or that of both directions of a sample, P_q against Q and Q against P_q."""
    if part.rate == 1:
        return laws.delta(part.noise, part.case, epsilon, bits)
    there = Curve(_curve_of(part, bits + 10), rate=part.rate)
    back = replace(there, backwards=True)
    return refined(lambda: there.excess(epsilon).max(back.excess(epsilon)), bits, most=512)


def _entries(part: Part) -> list[tuple[_Entry, int]]:
    """The independent entries of a part; on a sample it must be one."""
    noise, case = part.noise, part.case
    kind = noise.text("kind")
    square = normal_square(noise, case)
    if square is not None:
        found = [(_Entry(gaussian_curve(square), square=square), 1)]
    elif kind == "laplace":
        scale = noise.positive("scale")
        moves = Moves.of([(case.sensitivity, 1)]) if case.changes is None else case.changes.majorant
        found = [(_laplace(size / scale), count) for size, count in _known(moves).sizes]
    elif kind == "geometric":
        rate, tail, moves = integers.geometric_case(noise, case)
        found = [(_geometric(rate, tail, int(size)), count) for size, count in _known(moves).sizes]
    elif kind == "discrete-power" and noise.number("p", 1.0, 2.0) == 1:
        rate, moves = 1 / noise.positive("scale"), integers.power_moves(noise, case)
        found = [(_geometric(rate, Fraction(0), int(size)), count) for size, count in moves.sizes]
    elif kind == "discrete-power":
        p, scale, moves = noise.number("p"), noise.positive("scale"), integers.power_moves(noise, case)
        found = [(_Entry(curve), count) for curve, count in integers.power_parts(p, scale, moves)]
    else:
        found = [(_Entry(Curve(_curve_of(part, 60)), fixed=kind in _FIXED), 1)]
    noise.end()
    if part.rate < 1 and sum(count for _, count in found) > 1:
        raise NotCovered("samples of changes of several entries are not covered.")
    return found


def _known(moves: Moves | None) -> Moves:
    if moves is None:
        raise NotCovered("no change of the set is the worst.")
    return moves


def _laplace(size: Fraction) -> _Entry:
    return _Entry(laplace_curve(size), ("laplace", Fraction(0), Fraction(0)), size, (size, Fraction(0)))


def _geometric(rate: Fraction, tail: Fraction, change: int) -> _Entry:
    family = ("geometric", rate, tail)
    if not tail:
        return _Entry(integers.geometric_curve(rate, change), family, Fraction(change), (rate * change, Fraction(0)))
    if change > 1:
        raise NotCovered("geometric noise with a tail is for entries that change by 1.")
    return _Entry(integers.ended_curve(rate, tail), family, Fraction(change), (rate, tail))


def normal_square(noise: Fields, case: Case) -> Fraction | None:
    """mu^2 of noise with independent normal entries, each of variance scale^2/2."""
    kind = noise.text("kind")
    if kind not in ("radial", "generalized-gaussian") or noise.number("p") != 2:
        return None
    if kind == "radial" and noise.number("k") != case.dimension:
        return None
    square = case.sensitivity**2 if case.changes is None else case.changes.squared_norm(2)
    return 2 * square / noise.positive("scale") ** 2


def _curve_of(part: Part, bits: int) -> Callable[[arb], arb]:
    """The curve of any law, which falls, at losses that are balls themselves."""
    begun = time.monotonic()
    laws.delta(part.noise, part.case, Fraction(1), bits)
    slow = time.monotonic() - begun

    @functools.cache
    def at(epsilon: Fraction) -> arb:
        return laws.delta(part.noise, part.case, epsilon, bits)

    def curve(loss: arb) -> arb:
        low, high = (max(end, Fraction(0)) for end in ends(loss))
        if low > laws.registry.LARGEST_EPSILON:
            return arb(0).union(at(Fraction(laws.registry.LARGEST_EPSILON)))
        return at(low) if low == high else between(at(low), at(high))

    if slow > _SLOWEST and part.count > 1:
        raise NotCovered("this noise has a curve, but it takes too long to compose.")
    return curve


def _basic(entries: list[tuple[_Entry, int]], epsilon: Fraction) -> arb:
    """Epsilons and deltas added up, if there are such at this epsilon: 0 if all are pure; else 1.

    On a sample at rate q the pair (E, d) becomes (ln(1 + q (e^E - 1)), q d).
    """
    total, losses, exact = arb(0), Fraction(0), True
    delta = Fraction(0)
    for entry, count in entries:
        if entry.own is None:
            return arb(1)
        rate, (own, tail) = entry.curve.rate, entry.own
        exact = exact and rate == 1
        losses += count * own
        total += count * (ball(rate) * ball(own).expm1()).log1p()
        delta += count * rate * tail
    kept = losses <= epsilon if exact else total <= ball(epsilon)
    return ball(min(delta, Fraction(1))) if kept else arb(1)


def _exact(entries: list[tuple[_Entry, int]], epsilon: Fraction, bits: int) -> arb | None:
    """All together in closed form, if there is one."""
    first = entries[0][0]
    if any(entry.curve.rate < 1 for entry, _ in entries):
        return None
    if all(entry.square is not None for entry, _ in entries):
        return gaussian_delta(
            sum((count * (one.square or Fraction(0)) for one, count in entries), Fraction(0)), epsilon, bits
        )
    if first.family is None or any(entry.family != first.family for entry, _ in entries):
        return None
    moves = [Moves.of((entry.size, count) for entry, count in entries)]
    if first.family[0] == "laplace":
        return laplace.laplace_moves_delta(moves, Fraction(1), epsilon, bits)
    _, rate, tail = first.family
    return integers.geometric_moves_delta(moves, rate, tail, epsilon, bits)


def _merged(entries: list[tuple[_Entry, int]]) -> list[tuple[Curve, int]]:
    """All normal laws on all the data as one."""
    square = sum((count * (one.square or Fraction(0)) for one, count in entries if one.curve.rate == 1), Fraction(0))
    rest = [(one.curve, count) for one, count in entries if one.square is None or one.curve.rate < 1]
    return [*rest, (gaussian_curve(square), 1)] if square else rest


def _on_lattice(parts: list[tuple[Curve, int]], epsilon: Fraction) -> arb:
    """Both directions, if they differ: the larger delta counts."""
    found = composed(parts, epsilon)
    if all(curve.rate == 1 for curve, _ in parts):
        return found
    return found.max(composed([(replace(curve, backwards=curve.rate < 1), count) for curve, count in parts], epsilon))
