r"""Shells: a density that is constant between given radii and falls outwards; delta is a finite sum.

Slicing both densities at a common height c, {h > c} and {e^eps h > c} are balls of radii u and Y, and with V the volume

    delta(eps) = sum over the intervals between neighbours among all h_i and e^eps h_j of (width) V(u) F(u, Y),

F being the fraction of a ball outside the other. Levels whose order is not proved are taken as one, which holds them
all: inside it, the sum is at least 0 and at most its width times V(u). If rounding lets a height rise, the density h
lies between a falling one, g, and e^eta g, so that its delta lies between that of g at eps + eta and e^eta times that
of g at eps - eta, for every change; and delta(a) <= delta(0) + 1 - e^a for a < 0, as (x - y)_+ <= (x - z)_+ + z - y.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from flint import arb

from lessnoise_verify.balls import accurate, ball, between, probability, working
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.laws.radial import Lunes, squared_shift
from lessnoise_verify.laws.registry import Case, law

_MOST_SHELLS = 20_000
_LARGEST_RISE = 1e-6


@law("shells")
def _shells(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    return shells_delta(noise, case.dimension, squared_shift(case), epsilon, bits)


def shells_delta(noise: Fields, dimension: int, squared: Fraction | arb, epsilon: Fraction, bits: int) -> arb:
    """Delta for all changes whose squared l2 norm is at most ``squared``."""
    if noise.whole("dimension") != dimension:
        raise Refuted("the shells are made for another number of entries.")
    edges = [Fraction(each) for each in noise.numbers("edges")]
    masses = [Fraction(each) for each in noise.numbers("probabilities")]
    if len(edges) != len(masses) + 1 or not masses or edges[0] != 0 or min(masses) <= 0:
        raise Unreadable("the shells are not given by edges from 0 on and a probability above 0 between any two.")
    if any(inner >= outer for inner, outer in pairwise(edges)) or abs(sum(masses) - 1) > Fraction(1, 10**9):
        raise Unreadable("the edges of the shells do not rise, or the probabilities do not add up to 1.")
    if len(masses) > _MOST_SHELLS:
        raise NotCovered(f"{len(masses)} shells are more than {_MOST_SHELLS}.")
    start = bits + 96 + dimension.bit_length()
    for precision in (start, 2 * start, 4 * start):
        with working(precision):
            shift = (ball(squared) if isinstance(squared, Fraction) else squared).sqrt()
            found = _bounded(edges, masses, dimension, shift, ball(epsilon))
        if accurate(found, bits):
            break
    return found


def _bounded(edges: list[Fraction], masses: list[Fraction], dimension: int, shift: arb, epsilon: arb) -> arb:
    lunes = Lunes(dimension)
    volumes = [(lunes.dimension * ball(edge / edges[-1]).log()).exp() for edge in edges[1:]]  # in units of the last
    heights, rise = _heights(edges, masses, volumes, lunes.dimension)
    if rise == 0:
        return probability(_sliced(edges, volumes, heights, lunes, shift, epsilon))
    low = _sliced(edges, volumes, heights, lunes, shift, epsilon + rise)
    high = _sliced(edges, volumes, heights, lunes, shift, (epsilon - rise).max(arb(0))) + (rise - epsilon).max(arb(0))
    return probability(between(low, rise.exp() * high))


def _sliced(
    edges: list[Fraction], volumes: list[arb], heights: list[arb], lunes: Lunes, shift: arb, epsilon: arb
) -> arb:
    factor = epsilon.exp()
    levels = [(height, 1, 0) for height in heights] + [(factor * height, 0, 1) for height in heights]
    groups: list[tuple[arb, int, int]] = []  # a range of levels, and how many of either kind it holds
    for group in sorted(levels, key=lambda level: level[0].mid(), reverse=True):
        while groups and group[0].overlaps(groups[-1][0]):
            level, first, second = groups.pop()
            group = (group[0].union(level), group[1] + first, group[2] + second)
        groups.append(group)
    total, inside, outside = arb(0), 0, 0
    for (level, first, second), (below, _, _) in pairwise([*groups, (arb(0), 0, 0)]):
        inside, outside = inside + first, outside + second
        if inside:
            u, volume = edges[inside], volumes[inside - 1]
            part = lunes.parts(shift / ball(u), ball(edges[outside] / u).log())[0]
            unknown = 2 * level.rad() * between(arb(0), arb(1)) if first + second > 1 else arb(0)
            total += volume * ((level - below) * part + unknown)
    return total


def _heights(edges: list[Fraction], masses: list[Fraction], volumes: list[arb], dimension: arb) -> tuple[list[arb], arb]:
    """Heights that do not rise, and by which logarithm at most the true ones lie above them."""
    heights: list[arb] = []
    rise, total = arb(0), sum(masses)
    for inner, outer, mass, volume in zip(edges, edges[1:], masses, volumes, strict=False):
        share = -(dimension * ball(inner / outer).log()).expm1() if inner else arb(1)
        height = ball(mass / total) / (volume * share)
        if heights and not height < heights[-1]:
            least = height.min(heights[-1])
            rise, height = rise.max((height / least).log().upper()), least
        heights.append(height)
    if not rise < _LARGEST_RISE:
        raise NotCovered("the density of the shells rises outwards.")
    return heights, rise
