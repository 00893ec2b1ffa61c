r"""Lower bounds in R^m, m >= 2, from tests that are mixtures of caps (weak duality).

A test for shifts v of length d is, times its multiplier, sum_l c_l(|n|^2) 1{cos(n, v) > x_l} with levels 0 < x_l < 1
and c_l >= 0 piecewise linear in z = |n|^2 between nodes, zero from the last node on; lambda_d is the largest nodal sum
of the c_l. Privacy, averaged over the directions of v, gives E |N|^2 >= min over r of G(r) - delta sum_d lambda_d,

    G(r) = r^2 + sum_d [Phi1_d(r) - e^eps Phi2_d(r)],

with Phi1 and Phi2 the means of the test over the spheres |n| = r and |n + v| = r. Phi1 is linear in r^2 between nodes.
Phi2 is 0 for r <= d, as |n + v| > d where cos(n, v) > 0. For r > d let t be the cosine of n + v and v: z = r^2 + d^2
- 2 r d t, and cos(n, v) > x_l says |n| < a_l = g - d x_l with g^2 = r^2 - d^2 (1 - x_l^2), where t > 0. So on every
cell Phi2 needs the mass and the mean of z on caps t > t0: S = P(t > t0), half an incomplete beta function, and
J = E[t; t > t0].

*Between two radii* r1 < r2, w = r2 - r1, G is at least the smaller of its values there, less what r^2 and Phi1 sag
below their chord and e^eps Phi2 rises above its own. For that, take x = cos(n, v) as the coordinate on |n + v| = r:

    Phi2(r) = int sum_(x_l < x) c_l(a^2) k dF(x),  k = (a/r)^(m-1) r/g,  a = g - d x,  g^2 = r^2 - h,  h = d^2 (1-x^2).

F, the law of one coordinate of a unit vector, does not depend on r. On a line of constant x, with s = r/g at r1: a' is
at most s, k(r) <= ratio k(r2) as a/r grows and r/g falls, |(a^2)''| <= 2 s^2 + 2 h/g^2, -k''/k <= 2 (m-1) s^2/a^2 and
|k'/k| <= (m-1) (h/g + d)/(a r) + h/(r g^2). A product of two nonnegative functions rises above its chord by at most the
first times the rise of the second, plus the second's chord times the rise of the first, plus a quarter of the product
of both changes. c_l(a^2) rises by its slope times that of a^2, and where it passes a node (one, at most), by a quarter
of the fall of slope times the change of a^2. All of it is largest for the smallest level; and no line rises by more
than the whole of the product.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from flint import arb

from lessnoise_verify.balls import ball, shown
from lessnoise_verify.document import Fields, NotCovered, Unreadable

if TYPE_CHECKING:
    from fractions import Fraction

_MOST_NODES: Final = 2000
_MOST_LEVELS: Final = 32
_MOST_TESTS: Final = 32
_MOST_VALUES: Final = 10**5
_SECONDS: Final = 20.0  # of the processor
_LARGEST_DIMENSION: Final = 2000


_Cell = list[list[arb]]
"""What a test is between two nodes: for every j the sums over the first j levels of

the constant and the slope of c_l = constant + slope z; the largest nodal value and the largest slope, here and in the
cell below; and how far the slope falls at the node in between."""


class _Part(NamedTuple):
    """A cell that meets a sphere |n + v| = r: sums of what the test is there, times the share of the sphere."""

    cell: int
    size: arb
    tilt: arb
    fall: arb


class _Point(NamedTuple):
    """G at a radius, and for every test where its sphere lies."""

    radius: float
    value: arb
    parts: list[list[_Part]]


class _Tests:
    def __init__(self, given: Fields, dimension: int, epsilon: Fraction) -> None:
        self.m, self.grow = dimension, ball(epsilon).exp()
        self.scale = given.positive("scale")
        self.nodes, self.levels = given.numbers("nodes", _MOST_NODES), given.numbers("levels", _MOST_LEVELS)
        nodes, levels = self.nodes, self.levels
        nodes += [nodes[-1] + 1.0] if nodes else []  # all tests are 0 in a last cell: see _rise
        if len(nodes) < 3 or nodes[0] != 0.0 or any(b <= a for a, b in pairwise(nodes)):
            raise Unreadable(f"{given.name}.nodes do not grow from 0.")
        if not levels or levels[0] <= 0.0 or levels[-1] >= 1.0 or sorted(set(levels)) != levels:
            raise Unreadable(f"{given.name}.levels do not grow between 0 and 1.")
        self.a = [arb(node) for node in nodes]
        self.z = [node * node for node in self.a]
        self.x = [arb(level) for level in levels]
        self.sine_squared = [(1 - x) * (1 + x) for x in self.x]
        half = arb(dimension) / 2
        self.density = (half.lgamma() - (half - arb(0.5)).lgamma()).exp() / arb.pi().sqrt()  # of a coordinate, at 0
        self.until = time.process_time() + _SECONDS
        self.shifts: list[float] = []
        self.tables: list[list[_Cell]] = []
        self.spent = arb(0)
        self.own = [arb(0)] * len(nodes)  # Phi1 at the nodes
        fractions, total = [self.cap(sine)[0] for sine in self.sine_squared], 0
        for one in given.objects("tests", _MOST_TESTS):
            shift, flat = float(one.number("shift", 0.0, 1.0, open_low=True)), one.numbers("values", _MOST_VALUES)
            one.end()
            total += len(flat)
            if len(flat) != (len(nodes) - 1) * len(levels) or min(flat) < 0.0 or any(flat[-len(levels) :]):
                raise Unreadable(f"{one.name}.values are not >= 0 for each node and level, and 0 at the last node.")
            if total > _MOST_VALUES:
                raise NotCovered("the tests have too many values.")
            flat += [0.0] * len(levels)
            rows = [[arb(c) for c in flat[i : i + len(levels)]] for i in range(0, len(flat), len(levels))]
            largest = arb(0)
            for place, row in enumerate(rows):
                largest = largest.max(sum(row, arb(0)))
                self.own[place] += sum((c * share for c, share in zip(row, fractions, strict=True)), arb(0))
            self.spent += largest
            self.shifts.append(shift)
            self.tables.append(self._cells(rows))
        self.end = math.nextafter(nodes[-1], math.inf)  # beyond it all tests are 0 on both spheres

    def _cells(self, rows: list[list[arb]]) -> list[_Cell]:
        cells, before = list[_Cell](), [arb(0)] * len(self.levels)
        for p in range(len(rows) - 1):
            slopes = [(b - a) / (self.z[p + 1] - self.z[p]) for a, b in zip(rows[p], rows[p + 1], strict=True)]
            levels = zip(rows[max(p - 1, 0)], rows[p], rows[p + 1], slopes, before, strict=True)
            sums = [[arb(0)] * 5]
            for below, here, above, slope, old in levels:
                sizes = below.max(here).max(above), abs(slope).max(abs(old)), (old - slope).max(arb(0))
                new = here - slope * self.z[p], slope, *sizes
                sums.append([total + value for total, value in zip(sums[-1], new, strict=True)])
            cells.append(sums)
            before = slopes
        return cells

    def cap(self, sine_squared: arb) -> tuple[arb, arb]:
        """S and J of a cap whose cosine is at least 0, from the square of its sine: J = density sine^(m-1)/(m-1)."""
        if time.process_time() > self.until:
            raise NotCovered(f"the tests do not prove the bound within {_SECONDS:g} seconds.")
        order, square = arb(self.m - 1) / 2, sine_squared.min(arb(1))
        if self.m == 2:
            mass = square.sqrt().asin() / arb.pi()  # much quicker
        else:
            mass = square.beta_lower(order, arb(0.5), regularized=True) / 2
        return mass, self.density * sine_squared**order / (self.m - 1)

    def own_part(self, cell: int) -> tuple[arb, arb]:
        """r^2 + Phi1 in a cell, as constant + slope r^2."""
        if cell >= len(self.nodes) - 1:
            return arb(0), 1 / ball(self.scale)
        slope = (self.own[cell + 1] - self.own[cell]) / (self.z[cell + 1] - self.z[cell])
        return self.own[cell] - slope * self.z[cell], slope + 1 / ball(self.scale)

    def point(self, radius: float) -> _Point:
        """G at a radius."""
        constant, slope = self.own_part(bisect_right(self.nodes, radius) - 1)
        value, parts = constant + slope * arb(radius) ** 2, []
        for shift, table in zip(self.shifts, self.tables, strict=True):
            mean, found = self._phi2(radius, shift, table)
            value -= self.grow * mean
            parts.append(found)
        return _Point(radius, value, parts)

    def _phi2(self, radius: float, shift: float, table: list[_Cell]) -> tuple[arb, list[_Part]]:
        """Phi2 of a test, and the cells that count."""
        mean, parts = arb(0), list[_Part]()
        if radius <= shift:
            return mean, parts
        r, d = arb(radius), arb(shift)
        twice, squares = 2 * r * d, r * r + d * d

        def moments(sine_squared: arb) -> tuple[arb, arb]:
            mass, first = self.cap(sine_squared)
            return mass, squares * mass - twice * first  # P and E[z], where t is above a bound

        @cache
        def inside(p: int) -> tuple[arb, arb]:
            """The same where |n| is below a node."""
            gap = ((self.a[p] - (r - d)) * (self.a[p] + (r - d)) / twice).max(arb(0))  # 1 - t
            return (arb(0), arb(0)) if gap == 0 else moments(gap * (2 - gap))

        last = len(table)
        limits = [(r * r - d * d * sine).sqrt() - d * x for x, sine in zip(self.x, self.sine_squared, strict=True)]
        ends = [min(bisect_right(self.nodes, float(limit.mid())) - 1, last) for limit in limits]  # they fall
        for limit, end in zip(limits, ends, strict=True):
            if not self.a[end] <= limit or not (end == last or limit <= self.a[end + 1]):
                raise NotCovered("a cap ends too near to a node.")
        for p in range(max(bisect_left(self.nodes, radius - shift) - 2, 0), min(ends[0] + 1, last)):
            reached, whole = sum(end >= p for end in ends), sum(end > p for end in ends)
            cell, total = table[p], [arb(0)] * 3
            if cell[reached][2] == 0:  # its lines may come from cells further below: see _rise
                parts.append(_Part(p, *total))
                continue
            mass, first = inside(p)
            for i, j in [(0, whole)] * (whole > 0) + [(level, level + 1) for level in range(whole, reached)]:
                top, first_top = inside(p + 1) if j <= whole else moments((limits[i] / r) ** 2 * self.sine_squared[i])
                share = (top - mass).max(arb(0))
                constant, slope, *others = (above - below for below, above in zip(cell[i], cell[j], strict=True))
                mean += constant * share + slope * (first_top - first)
                total = [old + each * share for old, each in zip(total, others, strict=True)]
            parts.append(_Part(p, *total))
        return mean, parts

    def least(self, one: _Point, two: _Point) -> arb | None:
        """A number below G between two radii of one cell, or None if they are too far apart for that."""
        r1, r2 = arb(one.radius), arb(two.radius)
        slope = self.own_part(bisect_right(self.nodes, one.radius) - 1)[1]
        sag = slope.max(arb(0)) * (r2 - r1) ** 2 / 4
        for shift, parts in zip(self.shifts, two.parts, strict=True):
            rise = self._rise(r1, r2, arb(shift), parts) if two.radius > shift else arb(0)
            if rise is None:
                return None
            sag += self.grow * rise
        return one.value.min(two.value) - sag

    def _rise(self, r1: arb, r2: arb, d: arb, parts: list[_Part]) -> arb | None:
        """How far Phi2 may rise above its chord."""
        m, w, h = self.m, r2 - r1, d * d * self.sine_squared[0]
        g1, g2 = (r1 * r1 - h).sqrt(), (r2 * r2 - h).sqrt()
        if not g1 > 0:
            return None
        s, total = r1 / g1, arb(0)
        reach, ratio = s * w, (s * g2 / r2).max(arb(1))
        # The tests are 0 in the last cell: lines that are beyond it at r2 must have been in it, at least, at r1.
        if not (self.a[-1] - reach).max(r1 - d) >= self.a[-2]:
            return None
        for p, size, tilt, fall in parts:
            least = (self.a[p] - reach).max(r1 - d)  # |n| at r1
            if not least > (self.a[p - 1] if p else 0):
                if p > 1:
                    return None
                total += size
                continue
            rate = (m - 1) * (h / g1 + d) / (least * r1) + h / (r1 * g1 * g1)
            change = 2 * self.a[p + 1] * reach  # of z
            bend = size * (m - 1) * (reach / least) ** 2 / 4
            bend += tilt * (change * rate * w + (s * s + h / (g1 * g1)) * w * w) / 4
            if not r1 - d >= self.a[p]:  # else all lines are in the cell at r1, too
                bend += fall * change / 4
            total += size.min(bend)
        return ratio * total


def caps_exceed(given: Fields, dimension: int, epsilon: Fraction, delta: arb, value: Fraction) -> None:
    """Prove that noise in R^dimension with (epsilon, delta) against shifts of length 1 has E |n|^2 >= value."""
    if not 2 <= dimension <= _LARGEST_DIMENSION:
        raise NotCovered(f"tests in {dimension} dimensions have no proof here.")
    tests = _Tests(given, dimension, epsilon)
    level = ball(value / tests.scale) + tests.spent * delta
    if not arb(tests.end) ** 2 / ball(tests.scale) >= level:
        raise NotCovered("the tests end before |n|^2 reaches the bound.")

    def point(radius: float) -> _Point:
        found = tests.point(radius)
        if not found.value >= level:
            most = ball(tests.scale) * (found.value - tests.spent * delta)
            raise NotCovered(f"the tests prove at most {shown(most)} for shifts of length 1, not {shown(ball(value))}.")
        return found

    for pair in pairwise(point(cut) for cut in sorted({*tests.nodes, *tests.shifts, tests.end})):
        waiting = [pair]
        while waiting:
            one, two = waiting.pop()
            low = tests.least(one, two)
            if low is None or not low >= level:
                middle = 0.5 * (one.radius + two.radius)
                if not one.radius < middle < two.radius:
                    raise NotCovered("the tests do not prove the bound between two neighbouring numbers.")
                between = point(middle)
                waiting += [(between, two), (one, between)]
