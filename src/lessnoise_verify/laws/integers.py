"""Noise on the integers: each entry has P(k) proportional to f(k) = e^(-E(k)), E(k) = c |k|^p, 1 <= p <= 2.

If one entry changes by s, the loss E(k + s) - E(k) does not fall with k, as E is convex. So with S(k) = P(K >= k)

    delta(eps) = max over k of S(k) - e^eps S(k + s),

which is reached at the first k whose loss is above epsilon. The overlap of two intervals of integers falls as their
middles move apart: delta grows with every entry's change, level by level of f.
"""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, arb_poly, arb_series, ctx

from lessnoise_verify.balls import accurate, ball, between, check_time, probability, refined, working
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import Fields, NotCovered
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.laplace import worst
from lessnoise_verify.laws.registry import Case, law
from lessnoise_verify.losses import Curve, composed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_TERMS: Final = 2 * 10**5
_TABLE: Final = 20000
_LOWEST: Final = 10**5  # e^-this is as good as 0


def largest_change(value: Fraction) -> int:
    """The whole number that a sensitivity, or its square, allows: one that is just below the next means that one."""
    found = math.floor(value + min(value / 100, Fraction(1, 4)))
    if found == 0:  # of whole numbers nothing would change, but then nobody would state such a sensitivity
        raise NotCovered("noise of whole numbers has a proof only for changes by at least 1.")
    return found


def _largest(x: arb, change: int, high: int, loss: Callable[[int], arb], survival: Callable[[int], arb]) -> arb:
    """The largest S(k) - e^x S(k + s), at the first k whose loss is above x >= 0, or its neighbours; at most ``high``.

    Where a loss is too close to x to tell, it makes no difference.
    """
    low = -change  # where the loss is -E(s)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if loss(middle) > x else (middle, high)
    while not loss(low) <= x:
        low -= 1
        if high - low > 4:
            return arb(0).union(arb(1))
    values = [survival(k) - x.exp() * survival(k + change) for k in range(low + 1, high + 1)]
    return functools.reduce(arb.max, values, arb(0))


# Geometric noise.


@law("geometric")
def geometric(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Two-sided geometric noise; with a tail d, the integer optimum for a change by 1.

    As for Laplace noise, the change that majorizes all others is the worst, and one entry in an l1 ball: along the
    diagonals x + y and x - y of two entries a diamond of the lattice is, for each parity, a product of intervals.
    """
    rate, tail, moves = geometric_case(noise, case)
    return geometric_moves_delta([moves], rate, tail, epsilon, bits)


def geometric_case(noise: Fields, case: Case) -> tuple[Fraction, Fraction, Moves]:
    """The rate, the tail, and the worst change."""
    rate, tail = noise.positive("rate", 700.0), noise.number("tail", 0.0, 1.0) if "tail" in noise else Fraction(0)
    noise.take("tail", None)
    if case.changes is None:
        return rate, tail, Moves.of([(largest_change(case.sensitivity), 1)])
    moves = case.changes.dominant if tail else case.changes.majorant
    if not case.changes.whole or moves is None:
        raise NotCovered("geometric noise has a proof only for whole changes, one of which is worse than all others.")
    return rate, tail, moves


def geometric_moves_delta(moves: list[Moves], rate: Fraction, tail: Fraction, epsilon: Fraction, bits: int) -> arb:
    """The largest delta over several changes by whole numbers, for independent geometric noise on each entry."""
    if any(size.denominator > 1 for one in moves for size, _ in one.sizes):
        raise NotCovered("geometric noise has a proof only for changes by whole numbers.")
    found = arb(0)
    for one in worst(moves, Moves.dominates if tail else Moves.majorizes):
        check_time()
        if tail and one.sizes:
            found = found.max(_ended_delta(one, rate, tail, epsilon, bits))
        elif one.squared_norm(1) * rate**2 > epsilon**2:
            found = found.max(_geometric_delta(one, rate, epsilon, bits))
    return found


def geometric_curve(rate: Fraction, change: int) -> Curve:
    """One entry that changes by this, as a part of more."""

    def survival(k: int) -> arb:
        """r^k/(1 + r) for k >= 0, and 1 - S(1 - k)."""
        below = (-ball(rate) * max(k, 1 - k)).exp() / (1 + ball(-rate).exp())
        return below if k > 0 else 1 - below

    def loss(k: int) -> arb:
        return ball(rate) * (abs(k + change) - abs(k))

    return Curve(lambda x: _largest(x, change, 0, loss, survival), rate)


def _geometric_delta(moves: Moves, rate: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Entries lose multiples of the rate: their laws are multiplied as polynomials."""
    sizes = [(int(size), count) for size, count in moves.sizes]
    total = sum(size * count for size, count in sizes)
    if sizes == [(total, 1)]:
        return refined(lambda: geometric_curve(rate, total).delta(ball(epsilon)), bits)
    if total > _MOST_TERMS // 4:
        raise NotCovered(f"geometric noise against changes that add up to {total} in many entries is not covered.")

    def summed() -> arb:
        product, r = arb_poly([1]), ball(-rate).exp()
        for size, count in sizes:
            # The losses s - 2 j, in units of the rate, have tanh(rate/2) r^j, and both ends what is left.
            masses = [arb(0)] * (2 * size + 1)
            masses[2:-1:2] = [(1 - r) / (1 + r) * r ** (size - j) for j in range(1, size)]
            masses[0], masses[-1] = r**size / (1 + r), 1 / (1 + r)
            product *= arb_poly(masses) ** count
        return _lattice_delta(product, -total, rate, epsilon)

    return refined(summed, bits, most=1024)


def _lattice_delta(masses: arb_poly, first: int, step: Fraction, epsilon: Fraction) -> arb:
    """The sum of p (1 - e^(eps - x)) over losses x > eps, which are multiples of the step from the first on."""
    start = max(math.floor(epsilon / step) + 1, first)
    places = enumerate(masses.coeffs()[start - first :], start)
    return sum((mass * -ball(epsilon - k * step).expm1() for k, mass in places), arb(0))


# Geometric noise that ends.


class Ended:
    """K, x = P(K + 1), P(K) and P(0 <= k < K) of the integer optimum, as the sampler has them."""

    def __init__(self, rate: Fraction, tail: Fraction) -> None:
        r, d = ball(-rate).exp(), ball(tail)
        with working(max(ctx.prec, 512)):  # r^K >= t is x >= 0; the sampler takes K from 60 decimal digits
            ratio = ball(-rate).exp()
            steps = -(ball(tail) * (1 + ratio) / (1 - ratio * (1 - 2 * ball(tail)))).log() / ball(rate)
            low, high = ((steps * (1 - ball(Fraction(k, 2 * 10**40)))).max(arb(0)).floor() for k in (4, 1))
            if not (low.is_exact() and high.is_exact() and low == high):
                raise NotCovered("the end of the noise lies too close to a whole number.")
        end = ball(-rate * _whole(low)).exp()
        total = 1 + 2 * (1 - end) * r / (1 - r)
        self.last = ((end - d * total) / ((1 / r - 1) * total + 2 * end)).max(arb(0))
        self.step = d + (1 / r - 1) * self.last  # P(K)
        self.inner = self.step * (1 - end) / ((1 - r) * end)  # e^(a (K - k)) P(K), k = 0, ..., K - 1


def ended_curve(rate: Fraction, tail: Fraction) -> Curve:
    """One entry that changes by 1: the end, the step to it, and all between."""
    law_at = functools.cache(lambda precision: Ended(rate, tail))

    def delta(x: arb) -> arb:
        one = law_at(ctx.prec)
        inner = one.inner * (-(x - ball(rate)).expm1()).max(arb(0))
        return one.last + (one.step - x.exp() * one.last).max(arb(0)) + inner

    return Curve(delta, rate, infinite=lambda: law_at(ctx.prec).last)


def _ended_delta(moves: Moves, rate: Fraction, tail: Fraction, epsilon: Fraction, bits: int) -> arb:
    if len(moves.sizes) > 1 or moves.sizes[0][0] != 1:
        raise NotCovered("geometric noise with a tail is for entries that change by 1.")
    count = moves.sizes[0][1]
    if count > 1:
        return refined(lambda: _several_ended(count, rate, tail, epsilon, bits), bits, most=512)
    if epsilon == rate:
        return ball(tail)  # d - x at the step and x at the end
    return refined(lambda: ended_curve(rate, tail).delta(ball(epsilon)), bits)


def _several_ended(count: int, rate: Fraction, tail: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Each loses rate, -rate, b = ln P(K)/x, -b, or infinitely much: a multinomial sum.

    More than ``rare`` losses +-b have at most the probability binomial(n, rare + 1) (P(K) + x)^(rare + 1).
    """
    if count > _MOST_TERMS:
        raise NotCovered(f"{count} entries under geometric noise with a tail are too many.")
    one, rare, rest = Ended(rate, tail), -1, arb(1)
    while rare < count and not rest < one.last * arb(2) ** -(bits + 8):
        rare += 1
        rest = arb(count).bin(rare + 1) * (one.step + one.last) ** (rare + 1)
        if rare**2 * count > _MOST_TERMS:
            break
    found = 1 - (1 - one.last) ** count + arb(0).union(rest.upper())
    beyond, down = (one.step / one.last).log(), ball(-rate).exp()
    for above, below in ((i, j) for i in range(rare + 1) for j in range(rare + 1 - i)):
        left = count - above - below
        mass = arb(count).bin(above) * arb(count - above).bin(below) * one.step**above * one.last**below
        mass *= one.inner**left
        for minus in range(left + 1):
            gain = ball(epsilon - rate * (left - 2 * minus)) - (above - below) * beyond
            if gain > 0:
                break
            found += mass * (-gain.expm1()).max(arb(0))
            mass *= down * ball(Fraction(left - minus, minus + 1))
    return found


# Powers.


class PowerSums:
    """Sums of f(k) = e^(-c k^p) over k >= n, for the precision that it is made with."""

    def __init__(self, p: Fraction, c: arb, *, tabulated: bool = False) -> None:
        self.p, self.c, self.bits = p, c, ctx.prec
        self.whole = (1 / ball(p) + 1).gamma() * c ** (-1 / ball(p))  # the integral of f from 0 on
        self._known: dict[int, arb] = {}
        last, kept = (self._reach(arb(n * self.bits)) for n in (4, 3))
        if tabulated and last <= _TABLE:  # each sum is the next and one term
            terms = [self._rest(last), *((-self.exponent(k)).exp() for k in range(last - 1, -1, -1))]
            self._known = dict(enumerate(list(itertools.accumulate(terms))[: last - kept : -1]))
        self.total = 2 * self._from(0) - 1

    def exponent(self, k: int) -> arb:
        """E(k)."""
        size = ball(Fraction(abs(k)))
        return self.c * (size ** int(self.p) if self.p.denominator == 1 else size ** ball(self.p)) if k else arb(0)

    def survival(self, k: int) -> arb:
        """S(k) = P(K >= k)."""
        return self._from(k) / self.total if k >= 0 else 1 - self._from(1 - k) / self.total

    def _from(self, start: int) -> arb:
        if start not in self._known:
            check_time()
            self._known[start] = self._sum(start)
        return self._known[start]

    def _sum(self, start: int) -> arb:
        """One by one, or with the formula of Euler and Maclaurin from ``first`` to ``last``.

        As p >= 1, E(last + j) >= E(last) + E(j): beyond ``last`` there is at most f(last) (1 + the integral of f).
        """
        last, order = self._reach(self.exponent(start) + self.bits), self.bits // 7 + 8
        first = last if last - start <= 40 * self.bits else max(start, 4 * order)
        found = sum(((-self.exponent(k)).exp() for k in range(start, first)), self._rest(last))
        return found if first == last else found + self._smooth(first, last, order)

    def _reach(self, exponent: arb) -> int:
        """A k with E(k) at least this."""
        return _above((exponent / self.c) ** (1 / ball(self.p)))

    def _rest(self, last: int) -> arb:
        return arb(0).union((-self.exponent(last)).exp() * (1 + self.whole))

    def _smooth(self, first: int, last: int, m: int) -> arb:
        """The integral, half of both ends, the derivatives there, B_2j/(2j)! f^(2j-1) for j < m, and the remainder.

        That is at most 4/(2 pi)^2m times the integral of |f^(2m)|.
        On a disc of radius r <= first/2 about x, |E(z) - E(x)| is at most r c p (3 last/2)^(p-1), so by Cauchy
        |f^(2m)(x)| <= (2m)! r^-2m f(x) times e to the power of that.
        """
        p, c = ball(self.p), self.c
        integral = self._integral(first) - self._integral(last)
        steep = c * p * ball(Fraction(3 * last, 2)) ** (p - 1)
        radius = ball(Fraction(first, 2)).min(ball(Fraction(m, 8)) / steep).lower()
        error = 4 * arb(2 * m).fac() / (2 * arb.pi() * radius) ** (2 * m) * integral * (radius * steep).exp()
        return integral + self._derivatives(first, m) - self._derivatives(last, m) + error.upper() * arb(0, 1)

    def _integral(self, k: int) -> arb:
        """Of f from k on, Gamma(1/p, c k^p)/(p c^(1/p))."""
        return self.exponent(k).gamma_upper(1 / ball(self.p)) * self.c ** (-1 / ball(self.p)) / ball(self.p)

    def _derivatives(self, k: int, order: int) -> arb:
        before, ctx.cap = ctx.cap, 2 * order
        try:
            f = (-self.c * (arb_series([ball(Fraction(k)), 1]).log() * ball(self.p)).exp()).exp()
        finally:
            ctx.cap = before
        return f[0] / 2 - sum((arb.bernoulli(2 * j) / (2 * j) * f[2 * j - 1] for j in range(1, order)), arb(0))

    def delta(self, x: arb, change: int) -> arb:
        """One entry that changes by this, at a loss x >= 0."""

        def loss(k: int) -> arb:
            return self.exponent(k + change) - self.exponent(k)

        high = 1
        while not loss(high) > x:
            if self.exponent(high) > _LOWEST:  # S(k) <= e^-E(k) for k >= 0, and nothing before this k counts
                return arb(0).union((-self.exponent(high)).exp()) if loss(high) <= x else arb(0).union(arb(1))
            high *= 2
        return _largest(x, change, high, loss, self.survival)


def _whole(value: arb) -> int:
    found = value.unique_fmpz()
    if found is None:
        raise NotCovered("a number is too large to be known exactly.")
    return int(found)


def _above(value: arb) -> int:
    """A whole number that is not below."""
    top = value.upper()
    if not top < 2**200:
        raise NotCovered("the noise is too wide.")
    return _whole(top.ceil())


def power_curve(p: Fraction, c: Callable[[], arb], change: int) -> Curve:
    """One entry of noise with E(k) = c |k|^p that changes by this."""
    sums = functools.cache(lambda precision: PowerSums(p, c(), tabulated=True))
    return Curve(lambda x: sums(ctx.prec).delta(x, change))


def power_moves(noise: Fields, case: Case) -> Moves:
    """The worst change."""
    if case.changes is None:
        change = largest_change(case.sensitivity)
        if change > 1 and case.dimension > 1 and noise.number("p") > 1:
            raise NotCovered("discrete power noise is for a set of changes, or for one that changes one entry by 1.")
        return Moves.of([(change, 1)])
    if case.changes.dominant is None or not case.changes.whole or case.changes.squared_norm(math.inf) > 10**30:
        raise NotCovered("discrete power noise has a proof only for whole changes, one of which is the worst of all.")
    return case.changes.dominant


@law("discrete-power")
def discrete_power(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """E(k) = |k/scale|^p: geometric noise for p = 1, the discrete Gaussian for p = 2, and all between."""
    p, scale, moves = noise.number("p", 1.0, 2.0), noise.positive("scale"), power_moves(noise, case)
    if p == 1:
        return geometric_moves_delta([moves], 1 / scale, Fraction(0), epsilon, bits)
    if p == 2:
        return shift_delta(moves, scale**2 / 2, epsilon, bits)
    if not moves.sizes:
        return arb(0)
    if moves.squared_norm(1) == moves.squared_norm(math.inf):
        size = int(moves.sizes[0][0])
        return refined(lambda: PowerSums(p, ball(scale) ** -ball(p)).delta(ball(epsilon), size), bits, most=512)
    return composed(power_parts(p, scale, moves), epsilon)


def power_parts(p: Fraction, scale: Fraction, moves: Moves) -> list[tuple[Curve, int]]:
    """The curves of all entries."""
    return [(power_curve(p, lambda: ball(scale) ** -ball(p), int(size)), count) for size, count in moves.sizes]


# The discrete Gaussian.


@law("discrete-gaussian")
def discrete_gaussian(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """P(k) proportional to e^(-k^2/(2 sigma^2)) for each entry, against all whole changes of an l2 ball."""
    variance, budget = gaussian_case(noise, case)
    found = _worst_shift(variance, budget, case.dimension, epsilon, bits)
    changes = case.changes
    if changes is None:
        return found
    members = [Moves.of([(math.isqrt(math.floor(changes.squared_norm(math.inf))), 1)])]
    members += [one for one in (changes.dominant, changes.majorant) if one is not None and changes.whole]
    inside = functools.reduce(arb.max, [shift_delta(one, variance, epsilon, bits) for one in members])
    return between(inside.min(found), found)


def gaussian_case(noise: Fields, case: Case) -> tuple[Fraction, int]:
    """The parameter sigma^2, and the largest squared length of a whole change."""
    variance = Fraction(noise.whole("numerator", 1, 2**512), noise.whole("denominator", 1, 2**512))
    if not Fraction(1, 2**112) <= variance <= 2**112:
        raise NotCovered("sigma of the discrete Gaussian is not between 2^-56 and 2^56.")
    square = case.sensitivity**2 if case.changes is None else case.changes.squared_norm(2)
    return variance, largest_change(square)


def shift_delta(moves: Moves, variance: Fraction, epsilon: Fraction, bits: int) -> arb:
    """One change v = g v', v' without a common divisor, n = |v'|^2: by g and n, or from the law of v.Y itself."""
    check_time()
    sizes = [(int(size), count) for size, count in moves.sizes]
    if not sizes:
        return arb(0)
    divisor = math.gcd(*(size for size, _ in sizes))
    norm = sum((size // divisor) ** 2 * count for size, count in sizes)
    width = (ball(variance).sqrt() * 50 + 2) * sum(size * count for size, count in sizes)
    if not accurate(_ripple(variance, norm), bits) and width < _MOST_TERMS:
        return refined(lambda: _convolved(sizes, variance, epsilon), bits, most=1024)
    return _line_delta(divisor, norm, variance, epsilon, bits)


def _line_delta(divisor: int, norm: int, variance: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Holds the delta of every change with these g and n: what counts of the noise is Z' = v'.Y.

    P(Z' = z) is proportional to e^(-z^2/(2 n sigma^2)) T(z), where T sums e^(-|y|^2/(2 sigma^2)) over a translate of
    the integer vectors orthogonal to v'. By Poisson's formula T is constant within factors 1 +- eta (see _ripple).
    Without T it is one entry of parameter n sigma^2 that changes by g n.
    """

    def line() -> arb:
        return PowerSums(Fraction(2), ball(1 / (2 * norm * variance))).delta(ball(epsilon), divisor * norm)

    return probability(refined(line, bits, most=512) * _ripple(variance, norm))


def _ripple(variance: Fraction, norm: int) -> arb:
    """From (1 - eta)/(1 + eta) to (1 + eta)/(1 - eta); one entry alone has eta = 0.

    1 + eta is the sum of e^(-c |m|^2) over the dual lattice, c = 2 pi^2 sigma^2: at most the product of the sums
    theta(c/B_j) of e^(-c i^2/B_j) over the integers i, for a basis with orthogonal lengths sqrt(B_j). That of vectors
    in the first 2, 3, ... entries has B_j >= 1, their product n. If c >= n, e^(-c/B) is convex in ln B: their sum
    is largest for one B_j = n and all others 1. And theta(a) - 1 <= 2.2 e^-a for a >= 1.
    """
    if norm == 1:
        return arb(1)
    with working(128):
        c = 2 * arb.pi() ** 2 * ball(variance)
        if not c >= norm:
            return arb.nan()  # nothing is known
        eta = (ball(Fraction(11, 5)) * ((-c / norm).exp() + (norm - 2) * (-c).exp())).expm1().upper()
        if not eta < 0.9:
            return arb.nan()
        return ((1 - eta) / (1 + eta)).union((1 + eta) / (1 - eta))


def _convolved(sizes: list[tuple[int, int]], variance: Fraction, epsilon: Fraction) -> arb:
    """The law of v.Y itself, from entries cut at some reach."""
    sums = PowerSums(Fraction(2), ball(1 / (2 * variance)))
    reach = _above((2 * ball(variance) * ctx.prec).sqrt()) + 1
    single = [(-sums.exponent(k)).exp() / sums.total for k in range(-reach, reach + 1)]
    product, lost, first = arb_poly([1]), arb(0), 0
    for size, count in sizes:
        spread = [arb(0)] * (2 * reach * size + 1)
        spread[::size] = single
        product *= arb_poly(spread) ** count
        lost, first = lost + 2 * count * sums.survival(reach + 1), first - reach * size * count
    # The loss of z is (|v|^2 + 2 z)/(2 sigma^2).
    square = sum(size * size * count for size, count in sizes)
    found = _lattice_delta(product, first, 1 / variance, epsilon - square / (2 * variance))
    return found + arb(0).union(lost.upper())


def _worst_shift(variance: Fraction, budget: int, dimension: int, epsilon: Fraction, bits: int) -> arb:
    """The worst of all whole changes of squared length up to the budget N.

    As delta grows with every entry, only those count of which none can grow. They are few if N is small. Else some are
    below all, and bounds are above; in N dimensions all of it is spent, so that g^2 n = N.
    """
    alone = Moves.of([(math.isqrt(budget), 1)])
    if dimension == 1:
        return shift_delta(alone, variance, epsilon, bits)
    if budget <= 32:
        shifts = [Moves.of((entry, 1) for entry in shift) for shift in maximal_shifts(budget, dimension)]
        return functools.reduce(arb.max, [shift_delta(one, variance, epsilon, bits) for one in shifts])
    shifts, bounds = [alone], [arb(1), _concentrated(variance, budget, epsilon)]
    ripple = _ripple(variance, budget)
    if accurate(ripple, 1) and dimension >= budget and budget <= 10**6:
        pairs = [(g, budget // g**2) for g in range(1, 1001) if budget % g**2 == 0]
        shifts += [Moves.of([pair]) for pair in pairs]
        bounds.append(functools.reduce(arb.max, [_line_delta(*pair, variance, epsilon, bits) for pair in pairs]))
    elif accurate(ripple, 1):
        shifts.append(_long_shift(budget, dimension))
        bounds.append(_smoothed(variance, budget, epsilon) * ripple)
    low = functools.reduce(arb.max, [shift_delta(one, variance, epsilon, bits).lower() for one in shifts])
    return between(low, functools.reduce(arb.min, [bound.upper() for bound in bounds]).max(low))


def _long_shift(budget: int, dimension: int) -> Moves:
    """About the longest: most in one entry, then most of the rest, and so on."""
    entries: list[tuple[int, int]] = []
    while budget and len(entries) < dimension:
        entries.append((math.isqrt(budget), 1))
        budget -= entries[-1][0] ** 2
    return Moves.of(entries)


def maximal_shifts(budget: int, dimension: int) -> Iterator[tuple[int, ...]]:
    """Falling entries with squares that add up to at most the budget, none of which can grow."""

    def extend(head: tuple[int, ...], left: int) -> Iterator[tuple[int, ...]]:
        room = dimension - len(head)
        largest = min(math.isqrt(left), head[-1] if head else left) if room else 0
        if largest == 0 and 2 * (0 if room else head[-1]) + 1 > left:
            yield head
        for entry in range(largest, 0, -1):
            yield from extend((*head, entry), left - entry * entry)

    return extend((), budget)


def _concentrated(variance: Fraction, budget: int, epsilon: Fraction) -> arb:
    """From rho-zCDP, rho = |v|^2/(2 sigma^2): e^((a-1)(a rho - eps)) (1 - 1/a)^a/(a - 1) for every a > 1.

    Canonne, Kamath & Steinke 2020, Theorem 4 and Proposition 12.
    """
    with working(128):
        rho, eps = ball(budget / (2 * variance)), ball(epsilon)

        def bound(place: float) -> arb:
            a = 1 + arb(2) ** place
            return (((a - 1) * (a * rho - eps)).exp() * (1 - 1 / a) ** a / (a - 1)).upper()

        low, high = -25.0, 50.0
        for _ in range(80):  # towards the least
            third = (high - low) / 3.0
            low, high = (low, high - third) if bound(low + third) < bound(high - third) else (low + third, high)
        return bound(low)


def _smoothed(variance: Fraction, budget: int, epsilon: Fraction) -> arb:
    """Above every line with g^2 n <= N: the Gaussian's, and what a sum can exceed its integral by.

    f(z) = phi(z) (1 - e^(-a (z - t)))_+ has |sum - integral| <= V/8, V the variation of f'. For t >= 0 it is at most
    7 a phi(t): the jump at t, and of f'' three parts, the last two 2 a phi(t) and a phi(t), the first below 3 a phi(t)
    with 1 - e^-x <= x. Else f has one peak, and max f bounds the difference. Here t over the deviation sigma sqrt(n) is
    eps/mu - mu/2, mu = g sqrt(n)/sigma, which falls as mu grows; a = g/sigma^2.
    """
    with working(128):
        sigma = ball(variance).sqrt()
        mu = ball(budget / variance).sqrt()
        t = ball(epsilon) / mu - mu / 2
        excess = 1 / (sigma * (2 * arb.pi()).sqrt())
        if t > 0:
            excess *= ball(Fraction(7, 8)) * ball(Fraction(budget)).sqrt() / ball(variance) * (-t * t / 2).exp()
        return gaussian_delta(budget / variance, epsilon, 40) + excess
