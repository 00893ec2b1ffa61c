"""Independent losses added up: a bracket of delta from the curves of the parts, on a lattice of losses.

With g = e^x, a curve H(g) = sup over events of P - g Q is convex and falls from 1. A polygon U with corners on a
lattice x_k is the curve of two measures, whose P-mass at x_k is g_k times the change of slope there. If H_1 <= U_1 then
the curve of the product of H_1 and any other measures is at most that of U_1 and these: it is the mean of H_1(g e^-y)
over the other's losses y. So every part may be replaced by one above, or by one below, as long as masses are not
negative. All masses here are balls around those of an exact polygon.

*Above*: the chords of H; the last value becomes a mass at infinity, as does what is cut off to keep products short.

*Below*: into each cell extend the chords of its neighbours. By convexity they are below H, and the chord exceeds them
by at most the gap where they meet. Corners lowered by the larger gap of their two cells make a polygon below H. Where
that is not convex, as beside an atom, take the chords with all losses smaller by s, U(g e^s): on a cell it is convex,
and the extended chords are two lines, so it is below them if it is so where they meet, which takes
g |dH/dg| (e^s - 1) >= gap. Only masses at infinity that are known to be there are kept.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from flint import arb, arb_poly

from lessnoise_verify.balls import ball, between, normal_tail, working
from lessnoise_verify.document import NotCovered

_PRECISION: Final = 192
_SECONDS: Final = 30.0
_MOST_POINTS: Final = 2**18
_COARSE, _FINE = (2**9, 2**11), (2**12, 2**15)  # corners of a part, points of the sum
_FARTHEST: Final = 2.0**20
_LEAST: Final = 1e-200  # what is lost beyond is not resolved


@dataclass(frozen=True)
class Curve:
    """A pair that reads the same backwards by its delta(x), x >= 0; sampled at a rate, P_q against Q or backwards."""

    delta: Callable[[arb], arb]
    atom: Fraction | None = None
    """A loss that has a probability of its own: the lattice should hold it."""
    rate: Fraction = Fraction(1)
    backwards: bool = False
    infinite: Callable[[], arb] = arb
    """The mass of P where Q has none, and of Q where P has none."""

    def share(self) -> arb:
        """The mass at infinite loss: a sample that leaves some out is never without its Q."""
        return arb(0) if self.backwards and self.rate < 1 else ball(self.rate) * self.infinite()

    def excess(self, x: Fraction) -> arb:
        """H(g) - (1 - g)_+ at g = e^x, which is g times itself at 1/g if the pair is read backwards."""
        if self.backwards:
            return ball(x).exp() * replace(self, backwards=False).excess(-x)
        loss = ball(x)
        if self.rate < 1:  # H_g(P_q|Q) = q H_(1 + (g-1)/q)(P|Q)
            inner = 1 + loss.expm1() / ball(self.rate)
            if inner <= 0:
                return arb(0)
            if not inner > 0:
                return arb(0).union(ball(self.rate))
            loss = inner.log()
        scale = ball(self.rate)
        return scale * (self.delta(loss) if x >= 0 else loss.exp() * self.delta(-loss))


def gaussian_curve(square: Fraction) -> Curve:
    """Two unit normals mu apart, of mu^2."""

    def delta(x: arb) -> arb:
        mu = ball(square).sqrt()
        return (normal_tail(x / mu - mu / 2) - x.exp() * normal_tail(x / mu + mu / 2)).max(arb(0))

    return Curve(delta)


def laplace_curve(size: Fraction) -> Curve:
    """One entry that moves by so many scales of its noise."""
    return Curve(lambda x: (-((x - ball(size)) / 2).expm1()).max(arb(0)), size)


@dataclass(frozen=True)
class _Law:
    """Masses at first, first + 1, ... steps, and at infinity; what more may be there; and what all losses are less."""

    masses: arb_poly
    first: int
    infinite: arb
    lost: arb
    shift: arb

    def times(self, other: _Law, least: float) -> _Law:
        """Both added up, without the smallest masses at either end."""
        one, two = self.masses(arb(1)), other.masses(arb(1))
        infinite = self.infinite * two + other.infinite * one + self.infinite * other.infinite
        terms = (self.masses * other.masses).coeffs()
        lost = [arb(0), arb(0)]
        ends = [0, len(terms)]
        for side, direction in ((0, 1), (1, -1)):
            while ends[0] < ends[1] - 1:
                more = lost[side] + abs(terms[ends[side] - side]).upper()
                if not more < least:
                    break
                lost[side], ends[side] = more, ends[side] + direction
        kept = arb_poly(terms[ends[0] : ends[1]])
        total = self.lost + other.lost + lost[0] + lost[1]
        return _Law(kept, self.first + other.first + ends[0], infinite, total, self.shift + other.shift)

    def power(self, count: int, least: float, until: float) -> _Law:
        """So many of them."""
        found: _Law | None = None
        square = self
        while True:
            if count & 1:
                found = square if found is None else found.times(square, least)
            count >>= 1
            if not count:
                assert found is not None
                return found
            if time.monotonic() > until or len(square.masses) > _MOST_POINTS:
                raise NotCovered("the composition takes too long here.")
            square = square.times(square, least)

    def delta(self, epsilon: Fraction, step: Fraction, shift: arb) -> arb:
        """The mass at infinity, and the sum of p (1 - e^(eps - x)) over x > eps, x less by a shift."""
        found = self.infinite
        place = max(math.floor(epsilon / step) + 1, self.first)
        gain, decline = (ball(epsilon - place * step) + shift).exp(), ball(-step).exp()
        for mass in self.masses.coeffs()[place - self.first :]:
            found += mass * (1 - gain).max(arb(0))
            gain *= decline
        return found


def composed(parts: list[tuple[Curve, int]], epsilon: Fraction) -> arb:
    """A ball around delta of all parts together, each taken so many times."""
    until = time.monotonic() + _SECONDS
    with working(_PRECISION):
        least = 1e-14
        while True:  # rough, until delta is seen
            found = _on_lattice(parts, epsilon, least, *_COARSE, until)
            if found.lower() > 1e3 * least or least < _LEAST:
                break
            least = least**2
        least = max(min(float(found.upper()) * 1e-9, 1e-9), _LEAST**1.5)
        finer = _on_lattice(parts, epsilon, least, *_FINE, until)
        return between(found.lower().max(finer.lower()), found.upper().min(finer.upper()))


def _on_lattice(
    parts: list[tuple[Curve, int]], epsilon: Fraction, least: float, corners: int, points: int, until: float
) -> arb:
    total = sum(count for _, count in parts)
    reach = [_reach(curve, least / total) for curve, _ in parts]
    # The window of the sum, about: as wide as a sum of bounded independent losses can be, for this precision.
    spread = math.sqrt(sum(count * _variance(curve, *far) for (curve, count), far in zip(parts, reach, strict=True)))
    wide = max(low + high for low, high in reach)
    most = sum(count * (low + high) for (_, count), (low, high) in zip(parts, reach, strict=True))
    step = Fraction(min(wide + 2.0 * math.sqrt(-2.0 * math.log(least)) * spread, most) / points)
    atom = max((curve.atom for curve, _ in parts if curve.atom is not None), default=None)
    if atom is not None:
        step = atom / math.ceil(atom / step)
    pairs = []
    for (curve, _), (low, high) in zip(parts, reach, strict=True):
        stride = max(math.ceil((low + high) / float(step) / corners), 1)
        if curve.atom is not None and (curve.atom / step).denominator == 1:  # keep the atom a corner
            stride = next(each for each in range(stride, 0, -1) if (curve.atom / step) % each == 0)
        width = float(step) * stride
        pairs.append(_polygons(curve, step, stride, math.ceil(low / width) + 1, math.ceil(high / width) + 1))

    def product(side: int) -> _Law:
        powers = [pair[side].power(count, least / total, until) for pair, (_, count) in zip(pairs, parts, strict=True)]
        return functools.reduce(lambda one, other: one.times(other, least / total), powers)

    above = product(0)
    below = above if all(pair[0] is pair[1] for pair in pairs) else product(1)
    shift = sum((count * pair[1].shift for pair, (_, count) in zip(pairs, parts, strict=True)), arb(0))
    highest = (above.delta(epsilon, step, arb(0)) + above.lost).min(arb(1))
    return between(below.delta(epsilon, step, shift).max(arb(0)), highest)


def _reach(curve: Curve, least: float) -> tuple[float, float]:
    """About the losses, to the left and to the right, beyond which less than this is left, or nothing changes."""

    def far(one: Curve) -> float:
        goal = (one.share() + least).upper()
        x = 2.0**-30
        while x < _FARTHEST and not one.excess(Fraction(x)) <= goal:
            x *= 2.0
        low, high = x / 2.0, x
        for _ in range(6):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if one.excess(Fraction(middle)) <= goal else (middle, high)
        return high

    right = far(curve)
    return (right if curve.rate == 1 else far(replace(curve, backwards=not curve.backwards))), right


def _variance(curve: Curve, low: float, high: float) -> float:
    """About the mean square of the loss, the integral of 2 (1 + |x|) E on either side; it only guides."""

    def side(one: Curve, far: float) -> float:
        places = [far * (k + 0.5) / 64 for k in range(64)]
        return sum(min(2.0 * (1.0 + x), 50.0) * float(one.excess(Fraction(x)).upper()) for x in places) * far / 64

    return side(curve, high) + side(replace(curve, backwards=not curve.backwards), low)


def _polygons(curve: Curve, step: Fraction, stride: int, left: int, right: int) -> tuple[_Law, _Law]:
    """Polygons above and below, with corners at -left, ..., right times the stride; the one above, shifted, if need be.

    Values are excesses over (1 - g)_+, and slopes are in units of g at the left corner of a cell.
    """
    width = step * stride
    up, w = ball(width).exp(), ball(width).expm1()
    values = [curve.excess(k * width) for k in range(-left, right + 1)]
    at = [ball(k * width).exp() if k < 0 else arb(0) for k in range(-left, right + 1)]  # g, left of 0
    slopes = [(after - before) / w for before, after in zip(values, values[1:], strict=False)]
    shift = (-(1 - values[0] / at[0]).log()).upper()  # left of all corners H is at least 1 - g
    gaps = []
    for k, slope in enumerate(slopes):
        before = values[0] if k == 0 else slopes[k - 1] * up - (1 if k == left else 0)
        after = (arb(0) if k == len(slopes) - 1 else slopes[k + 1] / up) + (at[k] if k == left - 1 else 0)
        from_left, from_right = (slope - before).max(arb(0)), (after - slope).max(arb(0))
        meet = from_left * from_right / (from_left + from_right)
        height = from_left.upper().min(from_right.upper()) * w
        gaps.append((meet * w).upper().min(height) if meet.is_finite() else height)
        needed = (gaps[-1] / (at[k] - slope)).log1p()  # g |dH/dg| is at least that at the left corner
        if gaps[-1] > 0:
            shift = shift.max(needed.upper() if needed < ball(width) else ball(width))
    share = curve.share()
    above = _law(values, slopes, up, left, stride, share)
    above = replace(above, lost=(values[-1] - share).upper().max(arb(0)), shift=shift)
    if curve.atom is not None:
        return above, above
    beside = [gaps[0], *(one.max(other) for one, other in zip(gaps, gaps[1:], strict=False)), gaps[-1]]
    margin = (values[0] - beside[0]).upper().max(arb(0))  # such that it begins at 0, below all that is on the left
    lower = [value - gap - margin for value, gap in zip(values, beside, strict=True)]
    below = _law(lower, [(b - a) / w for a, b in zip(lower, lower[1:], strict=False)], up, left, stride, share)
    convex = all(mass >= 0 for mass in below.masses.coeffs()[::stride]) and lower[-1] >= share
    return above, below if convex else above


def _law(values: list[arb], slopes: list[arb], up: arb, left: int, stride: int, share: arb) -> _Law:
    """The masses of a polygon: g times the change of slope."""
    masses = [slopes[0] - values[0], *(after - before * up for before, after in zip(slopes, slopes[1:], strict=False))]
    masses.append(-slopes[-1] * up)
    masses[left] += 1  # the corner of (1 - g)_+
    spread = [arb(0)] * (stride * len(slopes) + 1)
    spread[::stride] = masses
    return _Law(arb_poly(spread), -left * stride, share, arb(0), arb(0))
