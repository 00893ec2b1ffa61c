"""Noise in the norm of a cube [-1, 1]^M or of a corner body, the convex hull of [0, 1]^M and [-1, 0]^M.

A density f(||n||), f falling, is a mixture of uniform laws on balls uK; by slices of one height, delta(eps) is the mean
of the share of uK that lies outside v + YK, where e^eps f(Y) = f(u). Of all changes v with ||v|| <= D a vertex loses
most: for the cube (D, ..., D), as each coordinate keeps min(2u, u + Y - |v_i|); for the corner body the one with
(M+1)//2 entries D (the volume kept has a concave root in v, by Brunn and Minkowski, so that vertices are worst; among
them kept(a, b) >= kept(a-1, b+1) for a > b + 1, by parts). The share depends on r = (Y - D)/u alone; with
b = (M+1)//2, a = M + 1 - b and C = binomial(M+1, b), integrating the density of the two groups' extremes by parts gives

    cube: kept = ((1+r)/2)^M;   corner, r <= 0: kept = (1+r)^M / C;
    corner, r >= 0: kept = (b r^a + a r^b)/(M+1) + sum over i < b of binomial(M, i) (r^i - r^(M-i)) / C,

all of it for r >= 1, and nothing for r <= -1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import acb, acb_poly, arb, ctx

from lessnoise_verify.balls import ball, refined
from lessnoise_verify.document import Fields, NotCovered, Unreadable
from lessnoise_verify.laws.gaussian import of_range
from lessnoise_verify.laws.registry import Case, law

if TYPE_CHECKING:
    from collections.abc import Callable

    Share = Callable[[acb, bool], acb]  # of w, and whether it must be analytic

LARGEST_CORNER: Final = 10**4  # entries
MOST_STEPS: Final = 10**5
HIGHEST: Final = 400  # bits
_FEW, _MOST_EVALUATIONS = 64, 12_000
_SMALLEST: Final = 1200  # a probability below 2^-1200, which no double holds, is only bounded


def _sizes(noise: Fields, case: Case) -> tuple[str, Fraction, Fraction]:
    """The body, and the sizes between which the worst change lies, in units of the factors.

    A set with a bound for each entry lies in the body of the largest size and has the worst vertex of the smallest.
    """
    body, m, changes = noise.choice("body", "cube", "corner"), case.dimension, case.changes
    factors = [Fraction(each) for each in noise.numbers("factors")]
    if factors and (len(factors) != m or min(factors) <= 0):
        raise Unreadable(f"{noise.name}.factors are not one positive number for each of {m} entries.")
    if body == "corner" and case.relation != "add/remove":
        raise NotCovered("noise on the corner body has a proof for add/remove only.")
    if changes is None:
        return body, case.sensitivity, case.sensitivity
    if body == "corner" and not (changes.one_sided and changes.solid):
        raise NotCovered("changes of entries of both signs, or a list of them, have no exact curve on the corner body.")
    if changes.bounds is not None:
        bounds = changes.bounds * (m if factors and len(changes.bounds) == 1 else 1)
        sizes = [bound / factor for bound, factor in zip(bounds, factors or [Fraction(1)] * len(bounds), strict=True)]
        return body, min(sizes), max(sizes)
    if body == "cube" or factors or changes.majorant is None or changes.majorant.sizes[0][1] < (m + 1) // 2:
        raise NotCovered(f"the set of changes does not have the vertex that is the worst for noise on the {body}.")
    return body, changes.majorant.sizes[0][0], changes.majorant.sizes[0][0]


BODIES: Final = ("norm-radial", "norm-staircase")


def largest_size(noise: Fields, case: Case) -> Fraction:
    """The size of the worst change: the sensitivity that a mechanism for such noise states."""
    return _sizes(noise, case)[2]


class _Body:
    """The share of a ball that is lost, as a function of q = 1 - r between 0 and 2."""

    def __init__(self, body: str, dimension: int) -> None:
        if body == "corner" and dimension > LARGEST_CORNER:
            raise NotCovered(f"the corner body with {dimension} entries: at most {LARGEST_CORNER} are covered.")
        self.m, self.corner = dimension, body == "corner"
        if not self.corner:
            return
        m, b = dimension, (dimension + 1) // 2
        a, self.vertices = m + 1 - b, arb.bin_uiui(m + 1, b)
        kept = [arb(0)] * (m + 1)
        for i in range(b):
            term = arb.bin_uiui(m, i) / self.vertices
            kept[i], kept[m - i] = kept[i] + term, kept[m - i] - term
        kept[a] += arb(b) / (m + 1)
        kept[b] += arb(a) / (m + 1)
        self.polynomial = acb_poly(kept)

    def lost(self, q: acb, near: bool) -> acb:
        """1 - kept, by the formula for q <= 1, ``near``, or that for q >= 1."""
        if not self.corner:
            return 1 - (1 - q / 2) ** self.m
        return 1 - (self.polynomial(1 - q) if near else (2 - q) ** self.m / self.vertices)

    def lost_at(self, q: Fraction) -> arb:
        """Of an exactly known q."""
        return self.lost(acb(ball(q)), q <= 1).real if 0 < q < 2 else arb(int(q >= 2))


def root(rises: Callable[[arb], arb], low: arb, high: arb) -> tuple[arb, arb]:
    """Two places between which a function changes its sign, which it does once at most, from - to +.

    The first is ``low``, or the function is proved negative there; the second ``high``, or it is proved positive.
    """
    for _ in range(2 * ctx.prec):
        middle = (low + (high - low) * 15 / 32).mid()  # not the half, where a root may be
        value = rises(middle)
        if not ((value < 0 or value > 0) and low < middle < high):
            break
        low, high = (middle, high) if value < 0 else (low, middle)
    return low, high


def gamma_range(shape: arb) -> tuple[arb, arb]:
    """Between which w the logarithm of X ~ Gamma(A) lies, but for a probability of e^-t = 2^-1200 on either side.

    P(X < x) <= x^A/Gamma(A+1), P(X < A - sqrt(2 A t)) <= e^-t, and P(X > A + sqrt(2 A t) + t) <= e^-t (Boucheron,
    Lugosi & Massart 2013, section 2.4).
    """
    t = _SMALLEST * arb.const_log2()
    low, spread = ((shape + 1).lgamma() - t) / shape, (2 * shape * t).sqrt()
    if shape > spread:
        low = low.max((shape - spread).log())
    return arb(low.lower()), arb((shape + spread + t).log().upper())


def gamma_mean(
    shape: arb, pieces: list[tuple[arb, arb, Share]], gaps: list[tuple[arb, arb]], bits: int, cost: int = 1
) -> arb:
    """The mean of a share between 0 and 1 of w = ln X, X ~ Gamma(A), in the range above.

    It is analytic in each of the pieces, not known in the gaps, and 0 elsewhere.
    """
    log_gamma, found, rough = shape.lgamma(), arb(0).union(arb(2) ** (1 - _SMALLEST)), arb(2) ** -_SMALLEST

    def density(w: acb) -> acb:
        return (shape * w - w.exp() - log_gamma).exp()

    def weighed(share: Share) -> Share:
        return lambda w, analytic: share(w, analytic) * density(w)

    parts = [(low, high, weighed(share)) for low, high, share in pieces if low < high]
    for low, high, part in parts:  # about the integral: it says how exact its parts have to be
        step = (high - low) / _FEW
        rough += step * sum((abs(part(acb(low + step * (i + 0.5)), False).real.mid()) for i in range(_FEW)), arb(0))
    goal, most = arb(2) ** -(bits + 8), _MOST_EVALUATIONS // cost
    for low, high, part in parts:
        found += acb.integral(part, low, high, rel_tol=goal, abs_tol=goal * rough.mid(), eval_limit=most).real
    for low, high in gaps:
        found += arb(0).union(((high - low) * density(acb(low.union(high))).real).upper())
    return found


@law("norm-radial")
def norm_radial(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """The density falls like exp(-(||n||/s)^p)."""
    body, least, most = _sizes(noise, case)
    p, scale, m = noise.number("power", 1.0, 100.0), noise.positive("scale"), case.dimension
    return of_range(lambda d: _radial(body, m, p, d / scale, epsilon, bits), least, most)


def _radial(body: str, m: int, p: Fraction, d: Fraction, epsilon: Fraction, bits: int) -> arb:
    """In units of s, u^p = X has the law Gamma((M+p)/p), and Y^p = X + eps."""
    if p == 1 and d <= epsilon:  # the triangle inequality
        return arb(0)
    if p == 1 and (body == "cube" or m == 1):  # the integral of (x - (d - eps)/2)^M e^-x
        return refined(lambda: -(ball((epsilon - d) / 2).expm1()), bits)

    def compute() -> arb:
        share, power, size, eps = _Body(body, m), ball(p), ball(d), ball(epsilon)
        low, high = gamma_range(1 + m / power)

        def q(w: acb, analytic: bool) -> acb:
            """(u + D - Y)/u: it is above 0, below 1 and below 2 from some w on each, as Y - u falls and Y grows."""
            return size * (-w / power).exp() - ((1 + eps * (-w).exp()).log(analytic=analytic) / power).expm1()

        def at(w: arb) -> arb:
            return q(acb(w), analytic=False).real

        some, half, rest = (root(f, low, high) for f in (at, lambda w: 1 - at(w), lambda w: 2 - at(w)))
        pieces: list[tuple[arb, arb, Share]] = [
            (low, rest[0], lambda w, analytic: acb(1)),
            (rest[1], half[0], lambda w, analytic: share.lost(q(w, analytic), near=False)),
            (half[1].max(some[1]), high, lambda w, analytic: share.lost(q(w, analytic), near=True)),
        ]
        return gamma_mean(1 + m / power, pieces, [some, half, rest], bits, 1 + share.corner * m // 1000)

    return refined(compute, bits, bits + 64, HIGHEST)


@law("norm-staircase")
def norm_staircase(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """The noise is uniform in r_j K, r_j = (share + j) width, with a chance proportional to r_j^M e^(-rate j)."""
    body, least, most = _sizes(noise, case)
    rate, share, width = noise.number("rate", 2.0**-6, 700.0), noise.positive("share", 1.0), noise.positive("width")
    m = case.dimension
    return of_range(lambda d: _stairs(body, m, rate, share, d / width, epsilon, bits), least, most)


def _stairs(body: str, m: int, rate: Fraction, share: Fraction, d: Fraction, epsilon: Fraction, bits: int) -> arb:
    """In units of the width, with k = floor(eps/rate): Y - u is k, or k + 1 with the chance t below."""
    k = epsilon // rate
    if d <= k:
        return arb(0)
    peak = max(m / rate, share)
    first = max(int(peak - share), 0)

    def weight(j: int) -> arb:
        return (m * ball((share + j) / peak).log() - ball(rate * (share + j - peak))).exp() if j >= 0 else arb(0)

    def compute() -> arb:
        area, t = _Body(body, m), ball(epsilon - k * rate).expm1() / ball(rate).expm1()
        numerator = denominator = arb(0)
        for start, way in ((first, 1), (first - 1, -1)):
            j, here = start, weight(start)
            while j >= 0:
                one, other = (area.lost_at((d - k - more) / (share + j)) for more in (0, 1))
                numerator, denominator = numerator + here * (one + t * (other - one)), denominator + here
                j, following = j + way, weight(j + way)
                ratio = following / here  # from here on it falls: the weights' logarithm is concave in j
                rest = arb(0).union(following / (1 - ratio))
                if ratio < 1 and rest < numerator.lower() * arb(2) ** -(bits + 6):
                    numerator, denominator = numerator + rest, denominator + rest
                    break
                if abs(j - first) * (1 + area.corner * m // 50) > MOST_STEPS:
                    raise NotCovered(f"more than {MOST_STEPS} steps of a staircase are not covered.")
                here = following
        return numerator / denominator

    return refined(compute, bits, bits + 64, HIGHEST)
