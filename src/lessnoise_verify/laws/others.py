"""Laws of other kinds: correlated isotropic, independent powers, Wishart noise, and data-dependent choices."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Final

from flint import acb, arb

from lessnoise_verify.balls import ball, between, probability, refined
from lessnoise_verify.document import Fields, NotCovered, Unreadable
from lessnoise_verify.laws import laplace, radial, shells
from lessnoise_verify.laws.bodies import HIGHEST, gamma_mean, gamma_range, root
from lessnoise_verify.laws.gaussian import gaussian_delta, of_range, one_sided_square
from lessnoise_verify.laws.registry import Case, law

ROUNDED: Final = 1 + Fraction(1, 10**12)  # shares of an epsilon add up to 1 only within this


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
    """Independent entries of density proportional to exp(-|x/b|^p), for changes whose l_p norm is at most D.

    p = 1, p = 2 and single entries are exact. Otherwise the worst way to split a change is not known: a change of one
    entry by D is one of them, and two bounds hold for all.
    """
    p, scale, m = noise.number("p", 1.0, 100.0), noise.positive("scale"), case.dimension
    if p == 1:
        return laplace.laplace(noise, case, epsilon, bits)
    if p == 2:
        return gaussian_delta(2 * radial.squared_shift(case) / scale**2, epsilon, bits)
    if m > 1 and case.changes is not None:
        raise NotCovered(f"independent noise of power {float(p):g} is for an l_p norm, not for other sets of changes.")

    def above() -> arb:
        power, kappa, eps = ball(p), ball(case.sensitivity / scale), ball(epsilon)
        found = probability(_minkowski(power, m, kappa, eps, bits))
        return found.min(_subgaussian(power, kappa, eps)) if p < 2 else found

    alone = radial.radial_delta(Fraction(1), p, scale, 1, radial.squared_shift(case), epsilon, bits)
    return alone if m == 1 else between(alone, refined(above, bits, bits + 64, HIGHEST).upper())


def _minkowski(power: arb, m: int, kappa: arb, eps: arb, bits: int) -> arb:
    """A bound for p > 1, in units of the scale, kappa = D/b.

    The loss, the sum of |x_i + d_i|^p - |x_i|^p, is at most (u + kappa)^p - u^p, which rises with u = ||x||_p, and
    u^p = X is Gamma(M/p); delta is the mean of (1 - e^(eps - loss))_+, which grows with the loss.
    """
    low, high = gamma_range(m / power)

    def excess(w: acb, analytic: bool) -> acb:  # of the loss over eps, at X = e^w
        return w.exp() * (power * (1 + kappa * (-w / power).exp()).log(analytic=analytic)).expm1() - eps

    some = root(lambda w: excess(acb(w), analytic=False).real, low, high)
    return gamma_mean(m / power, [(some[1], high, lambda w, a: -(-excess(w, a)).expm1())], [some], bits)


def _subgaussian(power: arb, kappa: arb, eps: arb) -> arb:
    """A bound without the dimension, 1 < p < 2: the loss is at most C sum |d_i|^p + p sum d_i psi(x_i).

    Here psi(x) = +-|x|^(p-1), of the sign of x, and C is the largest (1-y)^p - y^p + p y^(p-1), 0 <= y <= 1 (elsewhere
    |x+d|^p - |x|^p - p d psi(x) is smaller, as t^(p-1) is concave). Its derivative has the sign of
    p - 1 - y - (1-y)^(p-1) y^(2-p), a convex function of y with opposite signs at 0 and 1: one root. psi^2 has a
    log-concave density relative to a squared normal variable of the same mean v = Gamma(2 - 1/p)/Gamma(1/p), so that
    it is smaller in convex order, and E exp(s psi) = E cosh(s |psi|) <= exp(s^2 v/2). The sum of d_i^2 is at most
    kappa^2. For a loss with E exp(s loss) <= exp(s mean + s^2 variance/2) and any s > 0,
    delta <= exp(s (mean - eps) + s^2 variance/2) s^s/(1+s)^(1+s) (Canonne, Kamath & Steinke 2020).
    """
    y = arb.union(*root(lambda y: y + (1 - y) ** (power - 1) * y ** (2 - power) - power + 1, arb(0), arb(1)))
    excess = ((1 - y) ** power - y**power + power * y ** (power - 1)) * kappa**power - eps
    variance = (2 - 1 / power).gamma() / (1 / power).gamma() * (power * kappa) ** 2
    # The best s, about: where the derivative of the exponent, which rises, is 0.
    s = root(lambda x: excess + x.exp() * variance - (-x).exp().log1p(), arb(-700), arb(700))[0].exp()
    return (s * excess + s**2 * variance / 2 - s.log1p() - s * (1 / s).log1p()).exp()


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
    return refined(lambda: -ball(-rate).expm1(), bits)


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
    return between(arb(0), refined(lambda: -ball(epsilon - pure).expm1() / (1 + ball(-pure).exp()), bits))


def _probabilities(noise: Fields) -> list[float]:
    found = noise.numbers("probabilities", 2**10)
    if not found or not all(low < high for low, high in itertools.pairwise([0.0, *found, 1.0])):
        raise Unreadable(f"{noise.name}.probabilities do not rise between 0 and 1.")
    return found


def _cells(noise: Fields, case: Case) -> int:
    """Of the line that is cut into buckets: the array is padded to a power of 2 a side."""
    if noise.items("shape", 2) != list(case.shape) or len(case.shape) not in (1, 2) or max(case.shape) < 2:
        raise Unreadable(f"{noise.name}.shape is not that of the value, {case.shape}, or no line and no map.")
    return int(2 ** ((max(case.shape) - 1).bit_length() * len(case.shape)))


@law("dawa", lambda noise, case: _cells(noise, case) * (_cells(noise, case).bit_length() + 2))
def dawa(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Stage 1 is an exponential mechanism, no worse than randomized response; stage 2 is Laplace noise on an l1 change.

    Nothing is proved from below.
    """
    _cells(noise, case)
    noise.choice("workload", "cells", "ranges")
    if noise.choice("noise", "safe", "doubled", "dpcomp") != "safe":
        raise NotCovered("DAWA with published noise on the costs of buckets has no proof here.")
    first, second = (noise.positive(name) * _norm_1(case) * ROUNDED for name in ("epsilon1", "epsilon2"))
    if epsilon >= first + second:
        return arb(0)

    def response() -> arb:
        true = 1 / (1 + ball(-first).exp())
        return true * _laplace(epsilon - first, second) + (1 - true) * _laplace(epsilon + first, second)

    return between(arb(0), refined(response, bits))


def _laplace(epsilon: Fraction, shift: Fraction) -> arb:
    """Delta of Laplace noise of scale 1 at an epsilon of any sign: no loss is below -shift, or above shift."""
    return -ball(epsilon if epsilon <= -shift else min((epsilon - shift) / 2, Fraction(0))).expm1()
