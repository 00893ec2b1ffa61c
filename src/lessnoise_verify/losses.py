"""Independent losses added up: a bracket of delta from the curves of the parts, on a lattice of losses.

With g = e^x, a curve H(g) = sup over events of P - g Q is convex and falls from 1. Its value at infinity is the mass of
P where Q has none: together these are 1 - prod(1 - share), and what is left, F = H - share, is the curve of the finite
losses. The curve of several parts is the mean of one part's F(g e^-y) over the losses y of the others, so each part in
turn may be replaced by one above, or by one below, or by one that is not more than some t above: then t is subtracted.

*Above*: the chords of F, a polygon U with corners on a lattice x_k. It is the curve of masses at the x_k: g_k times the
change of slope there. The last value becomes a mass at infinity, as does what is cut off to keep products short.

*Below*: the same masses with all losses smaller by s, the curve U(g e^s). Into each cell extend the chords of its
neighbours. By convexity they are below H. At the corners U(g e^s) is below, too, as U falls; as it is convex, it is
below everywhere in the cell, but for t, if it is so where the two lines meet, a ``gap`` below the chord. This holds if
g |dU/dg| (e^s - 1) >= gap - t, or where g e^s lies beyond the cell.

Masses are balls around those of the exact polygon.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, arb_poly

from lessnoise_verify.balls import TooSlow, ball, between, check_time, normal_tail, time_limit, working
from lessnoise_verify.document import NotCovered

if TYPE_CHECKING:
    from collections.abc import Callable

_PRECISION: Final = 128
_SECONDS: Final = 10.0
_MOST_POINTS: Final = 2**18
_COARSE, _FINE = (2**8, 2**11), (2**12, 2**15)  # corners of a part, points of the sum
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
        loss, scale = ball(x), ball(self.rate)
        if self.rate < 1:  # H_g(P_q|Q) = q H_(1 + (g-1)/q)(P|Q)
            inner = 1 + loss.expm1() / scale
            if not inner > 0:
                return arb(0) if inner <= 0 else arb(0).union(scale)
            loss = inner.log()
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
    """Masses at first, first + 1, ... steps, and at most how much more there is, at any loss."""

    masses: arb_poly
    first: int
    lost: arb

    def times(self, other: _Law, least: float) -> _Law:
        """Both added up, without the smallest masses at either end."""
        check_time()
        terms = (self.masses * other.masses).coeffs()
        lost, cut = self.lost + other.lost, list[int]()
        for ordered in (terms, terms[::-1]):
            sums = itertools.accumulate(abs(term).upper() for term in ordered[:-1])
            small = list(itertools.takewhile(lambda total: total < least, sums))
            lost, cut = lost + (small[-1] if small else 0), [*cut, len(small)]
        kept = arb_poly(terms[cut[0] : max(len(terms) - cut[1], 0)])
        return _Law(kept, self.first + other.first + cut[0], lost)

    def power(self, count: int, least: float) -> _Law:
        """So many of them."""
        if len(self.masses) > _MOST_POINTS:
            raise NotCovered("the lattice of losses is too large here.")
        if count == 1:
            return self
        half = self.power(count // 2, least)
        square = half.times(half, least)
        return square.times(self, least) if count % 2 else square

    def delta(self, epsilon: Fraction, step: Fraction, shift: arb) -> arb:
        """The sum of p (1 - e^(eps - x)) over x > eps, x less by a shift."""
        found = arb(0)
        place = max(math.floor(epsilon / step) + 1, self.first)
        gain, decline = (ball(epsilon - place * step) + shift).exp(), ball(-step).exp()
        for mass in self.masses.coeffs()[place - self.first :]:
            found += mass * (1 - gain).max(arb(0))
            gain *= decline
        return found


def composed(parts: list[tuple[Curve, int]], epsilon: Fraction) -> arb:
    """A ball around delta of all parts together, each taken so many times."""
    with working(_PRECISION), time_limit(_SECONDS):
        least, found = 1e-7, arb(0)
        while not found.lower() > 1e3 * least and least > _LEAST:  # rough, until delta is seen
            least = max(least**2, _LEAST)
            found = _on_lattice(parts, epsilon, least, *_COARSE)
        try:
            finer = _on_lattice(parts, epsilon, max(min(float(found.upper()), 1.0) * 1e-9, _LEAST), *_FINE)
        except TooSlow:
            return found
        return between(found.lower().max(finer.lower()), found.upper().min(finer.upper()))


def _on_lattice(parts: list[tuple[Curve, int]], epsilon: Fraction, least: float, corners: int, points: int) -> arb:
    """Deltas above and below; masses of ``least`` in all are cut off, and a thousand times that is t in all."""
    total = sum(count for _, count in parts)
    least, drop = least / total, 1e3 * least / total
    reach = [_reach(curve, least) for curve, _ in parts]
    # The window of the sum, about: as wide as a sum of bounded independent losses can be, for this precision.
    spread = math.sqrt(sum(count * _variance(curve, *far) for (curve, count), far in zip(parts, reach, strict=True)))
    most = sum(count * (low + high) for (_, count), (low, high) in zip(parts, reach, strict=True))
    window = min(max(low + high for low, high in reach) + 2.0 * math.sqrt(-2.0 * math.log(least)) * spread, most)
    step = Fraction(window / points)
    atom = max((curve.atom for curve, _ in parts if curve.atom is not None), default=None)
    if atom is not None:
        step = atom / math.ceil(atom / step)
    if float(step) * 4 > min(low + high for low, high in reach):
        raise NotCovered("so many losses are too small for one lattice.")
    powers, shift, infinite = [], arb(0), arb(1)
    for (curve, count), far in zip(parts, reach, strict=True):
        polygon, less = _polygon(curve, step, far, corners, drop)
        powers.append(polygon.power(count, least))
        shift, infinite = shift + count * less, infinite * (1 - curve.share()) ** count
    law = functools.reduce(lambda one, other: one.times(other, least), powers)
    low, high = (law.delta(epsilon, step, less) + 1 - infinite for less in (shift, arb(0)))
    found = between((low - total * drop).max(arb(0)), (high + law.lost).min(arb(1)))
    if not found.is_finite():
        raise NotCovered("the curves of the parts are not known well enough to be composed.")
    return found


def _reach(curve: Curve, least: float) -> tuple[float, float]:
    """About the losses, to the left and to the right, beyond which less than this is left, or nothing changes."""

    def far(one: Curve) -> float:
        goal = (one.share() + least).upper()
        x = 2.0**-30
        while x < _FARTHEST and not one.excess(Fraction(x)) <= goal:
            x *= 2.0
        while x > 2.0**-30 and one.excess(Fraction(0.9 * x)) <= goal:
            x *= 0.9
        return x

    right = far(curve)
    return (right if curve.rate == 1 else far(replace(curve, backwards=not curve.backwards))), right


def _variance(curve: Curve, low: float, high: float) -> float:
    """About the mean square of the loss, the integral of 2 (1 + |x|) E on either side; it only guides."""

    def side(one: Curve, far: float) -> float:
        places = [far * (k + 0.5) / 64 for k in range(64)]
        return sum(min(2.0 * (1.0 + x), 50.0) * float(one.excess(Fraction(x)).upper()) for x in places) * far / 64

    return side(curve, high) + side(replace(curve, backwards=not curve.backwards), low)


def _polygon(curve: Curve, step: Fraction, far: tuple[float, float], corners: int, drop: float) -> tuple[_Law, arb]:
    """The polygon above with about so many corners, and by how much less all losses are to be below, but for ``drop``.

    Values are excesses over (1 - g)_+, and slopes are in units of g at the left corner of a cell.
    """
    fine = corners if curve.rate == 1 else 4 * corners  # a sample's losses crowd at its left end
    stride = max(math.ceil(sum(far) / float(step) / fine), 1)
    if curve.atom is not None and (curve.atom / step).denominator == 1:  # keep the atom a corner
        stride = next(each for each in range(stride, 0, -1) if (curve.atom / step) % each == 0)
    width = step * stride
    left, right = (math.ceil(end / float(width)) + 1 for end in far)
    values = []
    for k in range(-left, right + 1):
        check_time()
        values.append(curve.excess(k * width))
    up, w = ball(width).exp(), ball(width).expm1()
    slopes = [(after - before) / w for before, after in itertools.pairwise(values)]
    at = [ball(k * width).exp() for k in range(-left, 0)]  # g, left of 0
    masses = [slopes[0] - values[0], *(after - before * up for before, after in itertools.pairwise(slopes))]
    masses.append(-slopes[-1] * up)
    masses[left] += 1  # the corner of (1 - g)_+
    # Left of all corners U - H is at most g times the first value over the first g.
    shift = arb(0) if values[0] <= drop else (-(1 - values[0] / at[0]).log()).upper()
    for k, slope in enumerate(slopes):
        before = values[0] if k == 0 else slopes[k - 1] * up - (1 if k == left else 0)
        after = (arb(0) if k == len(slopes) - 1 else slopes[k + 1] / up) + (at[k] if k == left - 1 else 0)
        from_left, from_right = (slope - before).upper(), (after - slope).upper()
        if from_left > 0 and from_right > 0:
            gap = from_left * from_right / (from_left + from_right) * w - drop
            needed = (gap / ((at[k] if k < left else 0) - slope)).log1p()
            if not gap <= 0:
                shift = shift.max(needed.upper() if needed < ball(width) else ball(width))
    spread = [arb(0)] * (stride * len(slopes) + 1)
    spread[::stride] = masses
    return _Law(arb_poly(spread), -left * stride, (values[-1] - curve.share()).upper().max(arb(0))), shift
