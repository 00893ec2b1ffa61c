"""Laws of other kinds: correlated isotropic, independent powers, Wishart noise, and data-dependent choices."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import acb, arb

from lessnoise_verify.balls import ball, between
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import Fields, NotCovered, Unreadable
from lessnoise_verify.laws import laplace, radial, shells
from lessnoise_verify.laws.bodies import gamma_mean, repeated, root_between
from lessnoise_verify.laws.gaussian import gaussian_delta, of_range, one_sided_square
from lessnoise_verify.laws.registry import Case, law

if TYPE_CHECKING:
    from lessnoise_verify.laws.bodies import Piece

ROUNDED: Final = 1 + Fraction(1, 10**12)  # shares of an epsilon add up to 1 only within this
_GRID: Final = Fraction(1, 2**7)  # noisy costs of buckets lie on a grid finer than this part of their scale
_BUCKETS: Final = ((0, 2), (1, 2), (2, 2), (0, 4))  # start and length


@law("correlated-radial")
def correlated_radial(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """n = (I + c 1 1^T) x, x isotropic: a shift v of n is one of x, of squared length v^T (I + r 1 1^T)^-1 v.

    Here r = c (2 + c M). For an isotropic law whose density falls delta grows with the length (radial laws, shells).
    """
    m, c, base = case.dimension, noise.number("common", 0.0), noise.fields("base")
    low, high = one_sided_square(case, Fraction(1), c * (2 + c * m))
    if base.choice("kind", "radial", "shells") == "shells":
        found = of_range(lambda square: shells.shells_delta(base, m, square, epsilon, bits), low, high)
    else:
        k, p, scale = base.positive("k", m), base.number("p", 1e-3, 1e3), base.positive("scale")
        found = of_range(lambda square: radial.radial_delta(k, p, scale, m, square, epsilon, bits), low, high)
    base.end()
    return found


@law("generalized-gaussian")
def generalized_gaussian(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Independent entries of density proportional to exp(-|x/b|^p), for a bounded l_p norm or a dominant change.

    p = 1, p = 2 and changes of one entry are exact. Otherwise the worst way to split a change is not known: the change
    of one entry by as much as possible is one of them, and two bounds hold for all.
    """
    p, scale = noise.number("p", 1.0, 100.0), noise.positive("scale")
    changes, d, m = case.changes, case.sensitivity, case.dimension
    if p == 2:
        square = d**2 if changes is None else changes.squared_norm(2)
        return gaussian_delta(2 * square / scale**2, epsilon, bits)
    if changes is None:
        moves, worst = Moves.of([(d, 1)]), m == 1 or p == 1  # an l1 change is worst in one entry
    else:
        found = changes.majorant if p == 1 else changes.dominant
        if found is None:
            raise NotCovered("the changes have no worst one for independent entries.")
        moves, worst = found, found.squared_norm(1) == found.squared_norm(math.inf)
    if p == 1 and not worst:
        return laplace.laplace_moves_delta([moves], scale, epsilon, bits)
    size = moves.sizes[0][0] / scale
    alone = _one_entry(p, size, epsilon, bits)
    if worst:
        return alone
    above = _all_entries(p, moves.scaled(1 / scale), m, epsilon, bits)
    return between(alone, above.max(alone.lower()))


def _power(x: arb, p: arb) -> arb:
    """|x|^p, also of a ball with 0 in it."""
    return abs(x) ** p if abs(x) > 0 else arb(0).union(x.abs_upper() ** p)


def _one_entry(p: Fraction, size: Fraction, epsilon: Fraction, bits: int) -> arb:
    """P(X > t) - e^eps P(X > t + d) at the root t of |t + d|^p - |t|^p = eps: the left side, the loss, rises in t."""
    if p == 1:
        return arb(0) if size <= epsilon else repeated(lambda: -(ball((epsilon - size) / 2).expm1()), bits)

    def compute() -> arb:
        power, d, eps = ball(p), ball(size), ball(epsilon)

        def loss(s: arb) -> arb:  # at t = s - d/2: the root is not before -d/2, where the loss is 0
            return _power(s + d / 2, power) - _power(s - d / 2, power) - eps

        def tail(x: arb) -> arb:
            upper = _power(x, power).gamma_upper(1 / power, regularized=1) / 2
            return upper if x > 0 else 1 - upper if x < 0 else upper.union(1 - upper)

        low, high = root_between(loss) if epsilon else (arb(0), arb(0))
        root = low.union(high)
        if low > d and (low - d / 2) ** power > 1000:  # P(X > t) <= exp(-t^p)/2 for t >= 1
            return arb(0).union(arb(-1000).exp())
        return tail(root - d / 2) - eps.exp() * tail(root + d / 2)

    return repeated(compute, bits)


def _all_entries(p: Fraction, moves: Moves, m: int, epsilon: Fraction, bits: int) -> arb:
    """An upper bound of delta for all changes with the l_p norm of these moves, in units of the scale; p > 1."""

    def minkowski() -> arb:
        # The loss sum |x_i + d_i|^p - |x_i|^p is at most (u + d)^p - u^p, d = ||d||_p, which rises with u = ||x||_p,
        # and u^p is Gamma(M/p); delta is the mean of (1 - e^(eps - loss))_+, which grows with the loss.
        power, eps = ball(p), ball(epsilon)
        d = _sum(moves, power) ** (1 / power)

        def lost(u: acb, x: acb, analytic: bool) -> acb:
            return 1 - (eps - (power * (u + d).log(analytic=analytic)).exp() + x).exp()

        def certain(u: acb, x: acb, analytic: bool) -> acb:
            return acb(1)

        low = high = arb(0)
        if not d**power > eps:
            low, high = root_between(lambda u: (u + d) ** power - u**power - eps)
        pieces: list[Piece] = [(low, low, certain), (high, arb(2) ** (2**21), lost)]
        return gamma_mean(Fraction(m), p, pieces, bits)

    found = repeated(minkowski, bits)
    return found.min(repeated(lambda: _subgaussian(p, moves, epsilon), bits)) if p < 2 else found


def _sum(moves: Moves, power: arb) -> arb:
    return sum((count * ball(size) ** power for size, count in moves.sizes), arb(0))


def _subgaussian(p: Fraction, moves: Moves, epsilon: Fraction) -> arb:
    """A bound without the dimension, 1 < p < 2: the loss is at most C sum |d_i|^p + p sum d_i psi(x_i).

    Here psi(x) = +-|x|^(p-1), of the sign of x, and C is the largest (1-y)^p - y^p + p y^(p-1), 0 <= y <= 1 (elsewhere
    |x+d|^p - |x|^p - p d psi(x) is smaller, as t^(p-1) is concave). Its derivative has the sign of
    p - 1 - y - (1-y)^(p-1) y^(2-p), a convex function of y with opposite signs at 0 and 1: one root. psi^2 has a
    log-concave density relative to a squared normal variable of the same mean v = Gamma(2 - 1/p)/Gamma(1/p), so that
    it is smaller in convex order and
    E exp(s psi) = E cosh(s |psi|) <= exp(s^2 v/2). The sum of d_i^2 is at most the square of ||d||_p.
    For a loss with E exp(s loss) <= exp(s mean + s^2 variance/2) and any s > 0,
    delta <= exp(s (mean - eps) + s^2 variance/2) s^s/(1+s)^(1+s) (Canonne, Kamath & Steinke 2020).
    """
    power = ball(p)

    def slope(y: arb) -> arb:
        return y + (1 - y) ** (power - 1) * y ** (2 - power) - power + 1 if y < 1 else arb(1)

    y = arb.union(*root_between(slope))
    total = _sum(moves, power)
    mean = ((1 - y) ** power - y**power + power * y ** (power - 1)) * total
    variance = (2 - 1 / power).gamma() / (1 / power).gamma() * power**2 * total ** (2 / power)
    excess = mean - ball(epsilon)
    low, high = arb(-700), arb(700)  # of ln s; the derivative of the exponent rises, and any s serves
    for _ in range(60):
        middle = ((low + high) / 2).mid()
        rises = (excess + middle.exp() * variance - (-middle).exp().log1p()).mid() > 0
        low, high = (low, middle) if rises else (middle, high)
    s = low.exp().mid()
    return (s * excess + s**2 * variance / 2 - s.log1p() - s * (1 / s).log1p()).exp().min(arb(1))


def _square_size(case: Case) -> int:
    if len(case.shape) != 2 or case.shape[0] != case.shape[1]:
        raise Unreadable(f"Wishart noise is for square matrices, not for shape {case.shape}.")
    return case.shape[0]


@law("wishart", lambda noise, case: _square_size(case) * (_square_size(case) + 1))
def wishart(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """W = G G^T, G of d x (d+1) N(0, s) entries, against changes P - N, P and N positive with traces up to D.

    The density is proportional to exp(-tr W/(2s)) on the positive matrices, so W >= P has the probability e^-tau(P),
    tau = trace/(2s). An output is possible for the other value wherever W >= P, and the loss is tau(N) - tau(P) there:
    1 - delta is at least e^-tau(P) min(1, e^(eps - tau(N) + tau(P))) >= e^-r, r = D/(2s); P = D e_1 e_1^T, N = 0 reach
    it. Hence delta is 1 - e^-r at every epsilon.
    """
    _square_size(case)
    if case.changes is not None:
        raise NotCovered("Wishart noise is for changes by outer products, not for other sets.")
    rate = case.sensitivity / (2 * noise.positive("scale"))
    return repeated(lambda: -ball(-rate).expm1(), bits)


def _norm_1(case: Case) -> Fraction:
    """The l1 sensitivity; norms of sets are squares of rationals."""
    if case.changes is None:
        return case.sensitivity
    square = case.changes.squared_norm(1)
    root = Fraction(math.isqrt(square.numerator * square.denominator), square.denominator)
    return root if root**2 == square else root + Fraction(1, square.denominator)


@law("quantile-choice", lambda noise, case: case.dimension // noise.whole("cells", 2) * len(_probabilities(noise)))
def quantile_choice(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Exponential mechanisms: one more row changes every weight by a factor between 1 and e^-g, and so their total.

    All choices at once have g = epsilon/2 either way; in a descent the g of the levels add up to epsilon. So n rows
    are pure n epsilon-private, and delta is at most that of randomized response, (e^E - e^eps)/(e^E + 1)
    (Kairouz, Oh & Viswanath 2015). Nothing is proved from below.
    """
    if case.dimension % noise.whole("cells", 2, 2**20):
        raise Unreadable(f"{noise.name} is not for shape {case.shape}: lines have {noise.values['cells']} cells.")
    _probabilities(noise)
    noise.whole("whole", 1, 2**20)
    noise.truth("descent")
    pure = noise.positive("epsilon") * math.ceil(_norm_1(case)) * ROUNDED
    if epsilon >= pure:
        return arb(0)
    return between(arb(0), repeated(lambda: -ball(epsilon - pure).expm1() / (1 + ball(-pure).exp()), bits))


def _probabilities(noise: Fields) -> list[float]:
    found = noise.numbers("probabilities", 2**10)
    if not found or not all(low < high for low, high in itertools.pairwise([0.0, *found, 1.0])):
        raise Unreadable(f"{noise.name}.probabilities do not rise between 0 and 1.")
    return found


def _cells(noise: Fields, case: Case) -> int:
    """Of the line that is cut into buckets: padded to a power of 2 a side, but for published noise on a line."""
    if noise.items("shape", 2) != list(case.shape) or len(case.shape) not in (1, 2) or max(case.shape) < 2:
        raise Unreadable(f"{noise.name}.shape is not that of the value, {case.shape}, or no line and no map.")
    if len(case.shape) == 1 and noise.choice("noise", "safe", "doubled", "dpcomp") != "safe":
        return case.shape[0]
    return int(2 ** ((max(case.shape) - 1).bit_length() * len(case.shape)))


def _drawn(noise: Fields, case: Case) -> int:
    return _cells(noise, case) * (_cells(noise, case).bit_length() + 2)


@law("dawa", _drawn)
def dawa(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Stage 1 is pure and thus no worse than randomized response, stage 2 is Laplace noise on an l1 change.

    The exponential mechanism ("safe") spends epsilon1. Published noise on costs spends no more than if all costs were
    published: a row is in min(l, n - l + 1) buckets of l cells and changes each cost by 2 - 2/l, over the scale
    (2 - 1/l - 1/n)/epsilon1, or twice that ("doubled").
    """
    n, size = _cells(noise, case), _norm_1(case)
    one, two = noise.positive("epsilon1"), noise.positive("epsilon2")
    stage, workload = noise.choice("noise", "safe", "doubled", "dpcomp"), noise.choice("workload", "cells", "ranges")
    factor, spent = 2 if stage == "doubled" else 1, one
    if stage != "safe":
        lengths = [2**level for level in range(1, n.bit_length())]
        spent = sum(
            (min(k, n - k + 1) * Fraction(2 * k - 2, k) / _scale(k, n, factor * 1 / one) for k in lengths), one * 0
        )
    first, second = spent * size * ROUNDED, two * size * ROUNDED
    if epsilon >= first + second:
        return arb(0)

    def response() -> arb:
        true = 1 / (1 + ball(-first).exp())
        return true * _laplace(ball(epsilon - first), second) + (1 - true) * _laplace(ball(epsilon + first), second)

    upper = repeated(response, bits)
    if stage == "safe" or size < 1 or workload != "cells" or min(case.shape) < 4:
        return between(arb(0), upper)
    return between(repeated(lambda: _all_single(one, two, n, factor, epsilon), bits).max(arb(0)), upper)


def _scale(length: int, n: int, unit: Fraction) -> Fraction:
    return (2 - Fraction(1, length) - Fraction(1, n)) * unit


def _laplace(epsilon: arb, shift: Fraction) -> arb:
    """Delta of Laplace noise of scale 1 at an epsilon of any sign: continuous and falling, so its ends suffice."""

    def at(value: arb) -> arb:
        inside, below = -(((value - ball(shift)) / 2).min(arb(0)).expm1()), -(value.min(arb(0)).expm1())
        known = value > -ball(shift), value < -ball(shift)
        return inside if known[0] else below if known[1] else inside.union(below)

    return at(epsilon.lower()).union(at(epsilon.upper()))


def _all_single(one: Fraction, two: Fraction, n: int, factor: int, epsilon: Fraction) -> arb:
    """A lower bound for published noise: four cells (a, 0, b, c), or (a, 1, b, c), all others unlike any of these.

    All four stay single if and only if the noise on each bucket of l of them exceeds (l-1)/epsilon2 less its deviation:
    a product of Laplace tails, x and y for the two inputs. Their answers then have Laplace noise of scale 1/epsilon2,
    and delta is at least x times its delta at eps - ln(x/y). The inputs are the best of a few, by a rough search.
    """

    def chance(cells: tuple[int, ...], exact: bool) -> arb:
        product = arb(1)
        for start, length in _BUCKETS:
            inside = cells[start : start + length]
            deviation = sum((abs(cell - Fraction(sum(inside), length)) for cell in inside), Fraction(0))
            scale = _scale(length, n, factor / one)
            t = ball(((length - 1) / two - deviation) / scale)
            t = t + ball(_GRID if exact else 0) * arb(0, 1)
            product *= _above(t.lower()).union(_above(t.upper()))
        return product

    def bound(cells: tuple[int, int, int], exact: bool) -> arb:
        x, y = (chance((cells[0], second, *cells[1:]), exact) for second in (0, 1))
        return x * _laplace(ball(epsilon) - (x / y).log(), two * (1 - Fraction(1, 2**48)))

    cost = round(1 / two)
    near = [max(cost + shift, 0) for shift in (-1, 0, 1, 2)]
    ends = sorted({cost * quarter // 4 for quarter in range(4, 17)})
    best = max(itertools.product(near, near, ends), key=lambda cells: float(bound(cells, exact=False).mid()))
    return arb(bound(best, exact=True).lower())


def _above(t: arb) -> arb:
    return (-t).exp() / 2 if t > 0 else 1 - t.exp() / 2
