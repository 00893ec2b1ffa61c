"""Noise in the norm of a cube [-1, 1]^M or of a corner body, the convex hull of [0, 1]^M and [-1, 0]^M.

A density f(||n||), f falling, is a mixture of uniform laws on balls uK; by slices of one height, delta(eps) is the mean
of the share of uK that lies outside v + YK, where e^eps f(Y) = f(u). Of all changes v with ||v|| <= D a vertex loses
most: for the cube (D, ..., D), as each coordinate keeps min(2u, u + Y - |v_i|); for the corner body the one with
(M+1)//2 entries D (the volume kept has a concave root in v, by Brunn and Minkowski, so that vertices are worst; among
them kept(a, b) >= kept(a-1, b+1) for a > b + 1, by parts). The share depends on r = (Y - D)/u alone; with
b = (M+1)//2, a = M + 1 - b and C = binomial(M+1, b), integrating the density of the two groups' extremes by parts gives

    cube: kept = ((1+r)/2)^M;   corner, r <= 0: kept = (1+r)^M / C;
    corner, r >= 0: kept = (b r^a + a r^b)/(M+1) + sum over i < b of binomial(M, i) (r^i - r^(M-i)) / C.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import acb, acb_poly, arb, ctx

from lessnoise_verify.balls import accurate, ball, between, working
from lessnoise_verify.document import Fields, NotCovered, Unreadable
from lessnoise_verify.laws.registry import Case, law

if TYPE_CHECKING:
    from collections.abc import Callable

    Share = Callable[[acb, acb, bool], acb]  # of u, u^p, and whether it must be analytic
    Piece = tuple[arb, arb, Share]

LARGEST_CORNER: Final = 10**4  # entries
MOST_STEPS: Final = 10**5
_MOST_EVALUATIONS: Final = 12_000
_HIGHEST: Final = 600  # bits
_SMALLEST: Final = 1200  # delta below 2^-1200, which no double holds, is only bounded


def _size(noise: Fields, case: Case) -> tuple[str, Fraction, Fraction]:
    """The body, and the sizes between which the worst change lies, in units of the factors.

    A set without factors is as bad as the body if it has the worst vertex. With factors, sizes are quotients that are
    equal up to rounding: the set lies in the body of the largest and has the worst vertex of the smallest.
    """
    body = noise.choice("body", "cube", "corner")
    factors = [Fraction(each) for each in noise.numbers("factors")]
    if factors and (len(factors) != case.dimension or min(factors) <= 0):
        raise Unreadable(f"{noise.name}.factors are not one positive number for each of {case.dimension} entries.")
    if body == "corner" and case.relation != "add/remove":
        raise NotCovered("noise on the corner body is for add/remove alone.")
    changes, d = case.changes, case.sensitivity
    if changes is None:
        return body, d, d
    if body == "corner" and not (changes.one_sided and changes.solid):
        raise NotCovered("changes of entries of both signs, or a list of them, have no exact curve on the corner body.")
    if factors:
        if changes.bounds is None:
            raise NotCovered("noise with a factor for each entry is for changes with a bound for each entry.")
        bounds = changes.bounds * (len(factors) if len(changes.bounds) == 1 else 1)
        sizes = [bound / factor for bound, factor in zip(bounds, factors, strict=True)]
        return body, min(sizes), max(sizes)
    needed = case.dimension if body == "cube" else (case.dimension + 1) // 2
    top = (changes.dominant if body == "cube" else changes.majorant) or changes.dominant
    if top is None or not top.sizes or top.sizes[0][1] < needed:
        raise NotCovered(f"the changes do not have the vertex that is worst for noise on the {body}.")
    return body, top.sizes[0][0], top.sizes[0][0]


class _Body:
    """The share of a ball that is lost, as a function of r = (Y - D)/u between -1 and 1."""

    def __init__(self, body: str, dimension: int) -> None:
        if body == "corner" and dimension > LARGEST_CORNER:
            raise NotCovered(f"the corner body with {dimension} entries: at most {LARGEST_CORNER} are covered.")
        self.cube, self.m = body == "cube" or dimension == 1, dimension
        self.cost = 1 if self.cube else 1 + dimension // 50
        if self.cube:
            return
        m, b = dimension, (dimension + 1) // 2
        a, n = m + 1 - b, m + 1
        self.vertices = arb.bin_uiui(n, b)
        kept, term = [arb(0)] * n, arb.bin_uiui(m, b - 1) / self.vertices
        for i in range(b - 1, -1, -1):
            kept[i], kept[m - i] = kept[i] + term, kept[m - i] - term
            term = term * i / (m - i + 1)
        for own, other in ((a, b), (b, a)):  # they may be equal
            kept[own] += arb(other) / n
        self.polynomial = acb_poly(kept)

    def lost(self, r: acb, positive: bool) -> acb:
        """1 - kept, by the formula for r >= 0 or that for r <= 0."""
        if self.cube:
            return 1 - ((1 + r) / 2) ** self.m
        return 1 - (self.polynomial(r) if positive else (1 + r) ** self.m / self.vertices)

    def lost_at(self, q: Fraction) -> arb:
        """Of q = 1 - r, exactly known."""
        if q <= 0 or q >= 2:
            return arb(int(q >= 2))
        return self.lost(acb(ball(1 - q)), q <= 1).real


def repeated(compute: Callable[[], arb], bits: int) -> arb:
    """With more digits until enough are known, or until they are many."""
    precision = bits + 64
    while True:
        with working(precision):
            found = compute()
        if accurate(found, bits) or found < arb(2) ** -_SMALLEST or precision >= _HIGHEST:
            return found
        precision *= 2


def root_between(rises: Callable[[arb], arb]) -> tuple[arb, arb]:
    """Two numbers around the positive root of a rising function: it is proved positive at and above the second.

    The first is 0, or the function is proved negative at and below it.
    """
    low, high, exponent = arb(0), arb(1), 1
    if rises(high) > 0:
        while exponent < 2**20 and rises(arb(2) ** -exponent) > 0:
            high, exponent = arb(2) ** -exponent, 2 * exponent
        low = arb(2) ** -exponent if rises(arb(2) ** -exponent) < 0 else arb(0)
    else:
        while exponent < 2**20 and not rises(arb(2) ** exponent) > 0:
            low = arb(2) ** exponent if rises(arb(2) ** exponent) < 0 else low
            exponent *= 2
        high = arb(2) ** exponent
        if not rises(high) > 0:
            raise NotCovered("where the noise begins to tell two values apart is beyond all numbers.")
    for _ in range(ctx.prec + 40):
        wide = low > 0 and high > 4 * low
        for part in (4, 3):  # the root may be in the middle
            middle = ((low * high).sqrt() if wide else low + (high - low) * part / 8).mid()
            value = rises(middle)
            if value > 0 or value < 0:
                break
        low, high = (low, middle) if value > 0 else (middle, high) if value < 0 else (low, high)
    return low, high


def gamma_mean(k: Fraction, p: Fraction, pieces: list[Piece], bits: int, cost: int = 1) -> arb:
    """The mean of a share between 0 and 1, for a radius u of density p u^(k-1) exp(-u^p) / Gamma(k/p), k >= 1.

    Each piece is an interval with an analytic share; before the first, the share is 0, and in a gap between two pieces
    anything from 0 to 1. It is integrated from the middle of the law outwards, until Chernoff's bound
    P(X beyond x) <= exp(A - x) (x/A)^A of X = u^p ~ Gamma(A) makes the rest negligible.
    """
    shape, power, order = ball(k / p), ball(p), ball(k - 1)
    norm, tolerance = power.log() - shape.lgamma(), arb(2) ** -(bits + 8)
    most, used = _MOST_EVALUATIONS // cost, 0

    def integral(low: arb, high: arb, share: Share) -> arb:
        def density(u: acb, analytic: bool) -> acb:
            nonlocal used
            used += 1
            log_u = u.log(analytic=analytic)
            x = (power * log_u).exp()
            return share(u, x, analytic) * (norm + order * log_u - x).exp()

        limit = max(most - used, 10)
        return acb.integral(density, low, high, rel_tol=tolerance, abs_tol=arb(2) ** -(10**7), eval_limit=limit).real

    def beyond(u: arb, above: bool) -> arb:
        x = u**power
        known = x > shape if above else x < shape
        return (shape - x + shape * (x / shape).log()).exp() if known else arb(1)

    def stretch(low: arb, high: arb) -> arb:
        inside = [(first.max(low).mid(), last.min(high).mid(), share) for first, last, share in pieces]
        return sum((integral(first, last, share) for first, last, share in inside if first < last), arb(0))

    def enough(rest: arb) -> bool:
        return used >= most or not total.is_finite() or bool(rest < total.lower() * arb(2) ** -(bits + 6))

    total = arb(0)
    for (_, low, _), (high, _, _) in itertools.pairwise(pieces):
        if low < high:
            least = low**power if low > 0 else arb(0)
            total += arb(0).union((high - low) * (norm + order * high.log() - least).exp())
    start, step = pieces[0][0], 4 * shape.sqrt().max(arb(1))
    if beyond(start, above=True) < arb(2) ** -_SMALLEST:
        return arb(0).union(arb(2) ** -_SMALLEST)
    low = high = start.max((shape ** (1 / power)).mid()).mid()
    while not (high > low and enough(beyond(high, above=True))):
        following = ((high**power + step) ** (1 / power)).mid()
        following = following if following > high else 2 * high
        total, high = total + stretch(high, following), following
    while low > start and not enough(beyond(low, above=False)):
        x = low**power - step
        following = start.max((x ** (1 / power)).mid() if x > 0 else low / 2).max(low / 2).mid()
        total, low = total + stretch(following, low), following
    left = beyond(low, above=False) if low > start else arb(0)
    return total + arb(0).union(beyond(high, above=True)) + arb(0).union(left)


@law("norm-radial")
def norm_radial(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """The density falls like exp(-(||n||/s)^p): u has k = M + p, and Y^p = u^p + eps, in units of s."""
    body, least, most = _size(noise, case)
    p, scale = noise.number("power", 1.0, 100.0), noise.positive("scale")
    found = [_radial(body, case.dimension, p, d / scale, epsilon, bits) for d in (least, most)[: 1 + (least < most)]]
    return found[0] if least == most else between(*found)


def _radial(body: str, m: int, p: Fraction, d: Fraction, epsilon: Fraction, bits: int) -> arb:
    if p == 1 and d <= epsilon:  # the triangle inequality
        return arb(0)
    if p == 1 and (body == "cube" or m == 1):  # the integral of (x - (d - eps)/2)^M e^-x
        return repeated(lambda: -(ball((epsilon - d) / 2).expm1()), bits)

    def compute() -> arb:
        share, power, size, eps = _Body(body, m), ball(p), ball(d), ball(epsilon)

        def gap(u: arb) -> arb:
            """Y - u, which falls in u: (u^p + eps)^(1/p) is convex, with slope 1 at infinity."""
            return u * ((eps / u**power).log1p() / power).expm1()

        def lost(positive: bool) -> Share:
            def at(u: acb, x: acb, analytic: bool) -> acb:
                return share.lost(((1 + eps / x).log(analytic=analytic) / power).exp() - size / u, positive)

            return at

        # r = (Y - D)/u is below 1 where Y - u < D, above 0 where Y > D, and above -1 where Y + u > D: each from some
        # u on. Where the first root is proved to be there, the others are not.
        far = arb(2) ** (2**21)
        if not size**power > eps:
            low, high = root_between(lambda u: size - gap(u))
            if not gap(high) + high > size:
                return arb(0).union(arb(1))
            return gamma_mean(m + p, p, [(low, low, _certain), (high, far, lost(True))], bits, 1 + share.cost // 6)
        second = (size**power - eps) ** (1 / power)
        low, high = root_between(lambda u: gap(u) + 2 * u - size)
        pieces = [(arb(0), low, _certain), (high, second.lower(), lost(False)), (second.upper(), far, lost(True))]
        return gamma_mean(m + p, p, pieces, bits, 1 + share.cost // 6)

    return repeated(compute, bits)


def _certain(u: acb, x: acb, analytic: bool) -> acb:
    return acb(1)


@law("norm-staircase")
def norm_staircase(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """The noise is uniform in r_j K, r_j = (share + j) width, with a chance proportional to r_j^M e^(-rate j).

    With k = floor(eps/rate), Y - u is k width, or (k+1) width with the chance t = (e^(eps - k rate) - 1)/(e^rate - 1).
    """
    body, least, most = _size(noise, case)
    rate, share, width = noise.number("rate", 2.0**-6, 700.0), noise.positive("share", 1.0), noise.positive("width")
    found = [
        _stairs(body, case.dimension, rate, share, d / width, epsilon, bits)
        for d in (least, most)[: 1 + (least < most)]
    ]
    return found[0] if least == most else between(*found)


def _stairs(body: str, m: int, rate: Fraction, share: Fraction, d: Fraction, epsilon: Fraction, bits: int) -> arb:
    crossed = epsilon // rate
    if d <= crossed:
        return arb(0)
    if m > (MOST_STEPS * rate / 8) ** 2:  # a deviation of the radius, in steps, is sqrt(M)/rate
        raise NotCovered(f"staircases of more than {MOST_STEPS} steps are not covered.")

    def compute() -> arb:
        area, fall = _Body(body, m), ball(rate)
        rest = ball(epsilon - crossed * rate).expm1() / fall.expm1()
        peak = max(Fraction(m) / rate, share)
        first = max(int(peak - share), 0)
        numerator = denominator = arb(0)

        def weight(j: int) -> arb:
            return (m * ball((share + j) / peak).log() - ball(rate * (share + j - peak))).exp()

        for way in (1, -1):
            j = first if way == 1 else first - 1
            while j >= 0:
                here, place = weight(j), share + j
                lost = [area.lost_at((d - crossed - more) / place) for more in (0, 1)]
                numerator += here * (lost[0] + rest * (lost[1] - lost[0]))
                denominator += here
                if abs(j - first) * area.cost > MOST_STEPS:
                    raise NotCovered(f"more than {MOST_STEPS} steps of a staircase are not covered.")
                if j % 8 == 0 and j + way >= 0:
                    ratio = weight(j + way) / here  # from here on it falls: the weights' logarithm is concave in j
                    tail = here * ratio / (1 - ratio) if ratio < 1 else arb(1).pos_inf()
                    if tail < numerator.lower() * arb(2) ** -(bits + 6):
                        numerator, denominator = numerator + arb(0).union(tail), denominator + arb(0).union(tail)
                        break
                j += way
        return numerator / denominator

    return repeated(compute, bits)
