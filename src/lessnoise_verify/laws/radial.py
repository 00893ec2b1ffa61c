r"""Radial noise of density r^(k-M) exp(-(r/s)^p) in R^M, r the distance: delta as a positive integral over balls.

Slicing both densities at a common height (the densities fall, so that every slice is a ball) gives

    delta(eps) = E_u[ fraction of the ball B(0, u) outside B(-v, Y) ],  (M-k) y + G (e^(py) - 1) = eps,

with G = (u/s)^p, Y = u e^y, and u the radius of the uniform balls of which the noise is a mixture: G has the density
((M-k) + pG)/M times that of Gamma(k/p). The fraction grows with |v| = D, so that the largest change is the worst. With
x = ln G, kappa = D/u and y both fall in x, and u + Y grows. The fraction is 1 where kappa >= 1 + e^y (disjoint), 0
where e^y - 1 >= kappa (contained), and between them, with the planes' places d and t in units of u and Y,

    F = C(d) - e^(My) C(t),  d = ((e^(2y) - 1)/kappa - kappa)/2,  t = (kappa + d) e^-y,

C(x) being the fraction of a ball beyond x. The integral over x is cut into cells. On each the integrand is expanded at
the middle, with Lagrange's remainder: the next coefficient of the same series, computed in balls that hold the cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from flint import arb, arb_series, ctx

from lessnoise_verify.balls import accurate, ball, between, probability, working
from lessnoise_verify.document import Fields, NotCovered
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.registry import Case, law

_MOST_PIECES: Final = 3000
_MOST_STEPS: Final = 400
_MOST_DOUBLINGS: Final = 40
_SHARE: Final = arb(0).union(arb(1))
_MOST_LOST: Final = 2000.0  # bits
_LARGEST_ROOT: Final = 64  # denominators of p up to which (D/s)^p = eps is decided exactly


@law("radial")
def _radial(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    k, p, scale = noise.positive("k", case.dimension), noise.number("p", 1e-3, 1e3), noise.positive("scale")
    return radial_delta(k, p, scale, case.dimension, squared_shift(case), epsilon, bits)


def squared_shift(case: Case) -> Fraction:
    """The square of the largest l2 norm of a change."""
    return case.sensitivity**2 if case.changes is None else case.changes.squared_norm(2)


def radial_delta(
    k: Fraction, p: Fraction, scale: Fraction, dimension: int, squared: Fraction | arb, epsilon: Fraction, bits: int
) -> arb:
    """Delta for all changes whose squared l2 norm is at most ``squared``."""
    if isinstance(squared, Fraction):
        if not squared:
            return arb(0)
        if k == dimension and p == 2:
            return gaussian_delta(2 * squared / scale**2, epsilon, bits)
    ratio = ball(squared) / ball(scale) ** 2 if isinstance(squared, Fraction) else squared / ball(scale) ** 2
    if not ratio > 0:
        raise NotCovered("the largest change is not known to be above 0.")
    # The lune is of the size of kappa where that is small: as many more digits are lost to cancellation.
    lost = -float((ratio.log() / 2 - ball(k / p).log() / ball(p)).mid()) / math.log(2)
    with working(bits + 64 + dimension.bit_length() + math.ceil(min(max(lost, 0.0), _MOST_LOST))):
        square = ball(squared) if isinstance(squared, Fraction) else squared
        if k == dimension and p <= 1 and _is_pure(squared, scale, p, epsilon):
            return arb(0)
        return _Integral(k, p, (square.log() / 2 - ball(scale).log()), dimension, epsilon).enclosed(bits)


def _is_pure(squared: Fraction | arb, scale: Fraction, p: Fraction, epsilon: Fraction) -> bool:
    """(D/s)^p <= eps: then the loss (|n+v|^p - |n|^p)/s^p is never above eps, by the triangle inequality for p <= 1."""
    if isinstance(squared, Fraction) and p.denominator <= _LARGEST_ROOT:
        return (squared / scale**2) ** p.numerator <= epsilon ** (2 * p.denominator)
    square = ball(squared) if isinstance(squared, Fraction) else squared
    return epsilon > 0 and bool((square / ball(scale) ** 2).log() * ball(p) < 2 * ball(epsilon).log())


class Lunes:
    """Fractions of balls in R^M outside other balls."""

    def __init__(self, dimension: int) -> None:
        half = arb(dimension) / 2
        self.dimension, self.half = arb(dimension), half
        with working(3 * ctx.prec):
            self.constant = ((half + 1).lgamma() - (half + 0.5).lgamma()).exp() / arb.pi().sqrt()  # -C'(0)

    def cap(self, x: arb) -> arb:
        """C(x), the fraction of a ball beyond a plane at x radii from its centre; it falls with x."""
        if x.rad() * arb(2) ** (ctx.prec // 2) > 1:
            return between(self._cap(x.lower()), self._cap(x.upper()))
        square = x.abs_lower() ** 2
        if x.is_exact() or square >= 1:
            return self._cap(x.mid())
        steepest = self.constant * ((self.half - 0.5) * (-square).log1p()).exp()  # |C'| falls with |x|
        return self._cap(x.mid()) + steepest * x.rad() * arb(0, 1)

    def _cap(self, x: arb) -> arb:
        if x < 0:
            return 1 - self._cap(-x)
        if x >= 1:
            return arb(0)
        square = x * x
        exponent = self.dimension * square
        if square > 0.67:  # I_z(a, 1/2) by Pfaff's transformation (DLMF 8.17.8, 15.8.1)
            series = (1 - 1 / square).hypgeom_2f1(0.5, 1, self.half + 1.5)
        elif exponent > 1.5 * ctx.prec + 20:
            series = self._enveloped(1 / square - 1)
        else:
            with working(ctx.prec + 20 + int(float(exponent.upper()))):  # C(x) = 1/2 - c x (1 - x^2)^((M+1)/2) 2F1(1, M/2+1; 3/2; x^2)
                power = ((self.half + 0.5) * (-square).log1p()).exp()
                return 0.5 - self.constant * x * power * square.hypgeom_2f1(1, self.half + 1, 1.5)
        return self.constant * ((self.half + 0.5) * (-square).log1p()).exp() / (2 * self.half + 1) / x * series

    def _enveloped(self, w: arb) -> arb:
        """2F1(1/2, 1; c; -w) = (c-1) int (1-t)^(c-2) (1+wt)^(-1/2) dt: the terms envelop it, as those of the root do."""
        total, term, n = arb(0), arb(1), 0
        while n < _MOST_STEPS and abs(term) > arb(2) ** -ctx.prec:
            total += term
            term *= -w * (n + 0.5) / (self.half + 1.5 + n)
            n += 1
        return total + term.union(arb(0))

    def parts(self, kappa: arb, y: arb) -> tuple[arb, arb]:
        """F and e^(My) C(t), for D = kappa u and Y = u e^y, y >= 0; beyond -1 <= d, t <= 1 caps are all or nothing."""
        growth = y.expm1()
        d = (growth * (growth + 2) / kappa - kappa) / 2
        second = (self.dimension * y).exp() * self.cap((kappa + d) / (growth + 1))
        return self.cap(d) - second, second


class _Node(NamedTuple):
    """A place x = ln G: G, kappa = D/u and y = ln(Y/u) there."""

    x: arb
    gamma: arb
    kappa: arb
    y: arb


@dataclass
class _Piece:
    """A part of the integral: between two nodes, or beyond one, and the range of F in it; ``final`` if a series was tried."""

    low: _Node | None
    high: _Node | None
    value: arb
    fraction: arb
    final: bool = False


class _Integral:
    """The integral over x = ln G."""

    def __init__(self, k: Fraction, p: Fraction, log_ratio: arb, dimension: int, epsilon: Fraction) -> None:
        self.k, self.p, self.log_ratio, self.epsilon = ball(k), ball(p), log_ratio, ball(epsilon)
        self.excess, self.shape = ball(dimension - k), ball(k / p)
        self.steep = p >= 1 and k == dimension
        self.lunes = Lunes(dimension)
        self.log_gamma = self.shape.lgamma()
        self.narrow = 1 / max(1.0, math.sqrt(k / p))

    def enclosed(self, bits: int) -> arb:
        """Refine what is least known until so many bits are known, or the pieces are many."""
        self.order = 2 * (bits // 5 + 2)
        pieces, made = self._start(), 0
        while True:
            total = sum((piece.value for piece in pieces), arb(0))
            if accurate(total, bits) or made > _MOST_PIECES:
                return probability(total)
            goal = abs(total).upper() / 2 ** (bits + 1) / len(pieces)
            kept = [piece for piece in pieces if piece.value.rad() <= goal]
            rest = [piece for piece in pieces if not piece.value.rad() <= goal]
            pieces = kept + [new for piece in rest for new in self._refined(piece)]
            made += len(rest)

    def node(self, x: arb) -> _Node:
        gamma = x.exp()
        return _Node(x, gamma, (self.log_ratio - x / self.p).exp(), self._solved(gamma))

    def _solved(self, gamma: arb) -> arb:
        """The root y of (M-k) y + G (e^(py) - 1) = eps, whose left side is convex: Newton's steps, then a proof by signs."""
        m, p, eps = self.excess, self.p, self.epsilon
        most = (eps / gamma).log1p() / p
        if m == 0 or eps == 0:
            return most
        y = most = most.min(eps / (m + p * gamma)).upper()
        for _ in range(_MOST_STEPS):
            used = gamma * (p * y).expm1()
            step = ((m * y + used - eps) / (m + p * (gamma + used))).mid()
            y = (y - step).mid()
            if abs(step) < y * arb(2) ** (8 - ctx.prec):
                break
        error = y * arb(2) ** (12 - ctx.prec)
        low, high = (y - error).lower(), (y + error).upper()
        known_low = low > 0 and m * low + gamma * (p * low).expm1() < eps
        known_high = m * high + gamma * (p * high).expm1() > eps
        return between(low if known_low else arb(0), high if known_high else most)

    def _start(self) -> list[_Piece]:
        """From where all smaller balls are disjoint or contained, if that is found, to where the weight is small."""
        peak = self.shape.log()
        x = arb(float((peak - 0.5).min(self.p * self.log_ratio + 1).lower())) - 1
        step, found = 1.0, None
        for _ in range(_MOST_DOUBLINGS):
            found = self.node(x)
            if self._settled(found):
                break
            x, step = x - step, 2 * step
        first = self._closest(found, arb(step))
        last = self.node(arb(float((self.shape + 2 + 8 * self.shape.sqrt()).log().upper())))
        return [self._left(first), self._cell(first, last, _SHARE), self._right(last)]

    def _closest(self, low: _Node, step: arb) -> _Node:
        """A settled node at most one step to the right."""
        limit = (self.shape.log() - 0.5).lower()
        for _ in range(20):
            step /= 2
            right = self.node(low.x + step)
            if self._settled(low) and right.x <= limit and self._settled(right):
                low = right
        return low

    def _settled(self, at: _Node) -> bool:
        """All smaller balls behave alike: u + Y grows with u; Y - u = (u^p + eps s^p)^(1/p) - u falls if k = M, p >= 1."""
        growth = at.y.expm1()
        return bool(at.kappa > growth + 2) or (self.steep and bool(at.kappa < growth))

    def _left(self, at: _Node) -> _Piece:
        """The balls smaller than at a node: all lune (the mass by DLMF 8.7.1), none, or at most their mass."""
        if not self._settled(at):  # d ln(weight)/dx >= k/p - G
            return _Piece(None, at, _SHARE * self._weight(at) / (self.shape - at.gamma), _SHARE)
        if not at.kappa > at.y.expm1() + 2:
            return _Piece(None, at, arb(0), arb(0))
        term = total = arb(1)
        n = 1
        while term > arb(2) ** -ctx.prec:  # the ratio of the terms is at most G/(k/p) < e^-1/2
            term *= at.gamma / (self.shape + n)
            total += term
            n += 1
        peak = (self.shape * at.x - at.gamma - self.log_gamma).exp() / self.shape
        return _Piece(None, at, peak * (total + 2 * term * _SHARE - self.k / self.lunes.dimension), arb(1))

    def _right(self, at: _Node) -> _Piece:
        """The larger balls: at most their mass, as d ln(weight)/dx <= k/p + 1 - G."""
        return _Piece(at, None, _SHARE * self._weight(at) / (at.gamma - self.shape - 1), _SHARE)

    def _weight(self, at: _Node) -> arb:
        """The density of x: G^(k/p) e^-G / Gamma(k/p) times ((M-k) + pG)/M."""
        peak = (self.shape * at.x - at.gamma - self.log_gamma).exp()
        return peak * (self.excess + self.p * at.gamma) / self.lunes.dimension

    def _cell(self, low: _Node, high: _Node, fraction: arb) -> _Piece:
        """The width times the range of the weight times that of the fraction."""
        least, most = (self._exponent(low, high) - self.log_gamma).exp(), self.excess + self.p * high.gamma
        weight = between(least * (self.excess + self.p * low.gamma), least * most) / self.lunes.dimension
        return _Piece(low, high, (high.x - low.x) * weight * fraction, fraction)

    def _exponent(self, low: _Node, high: _Node) -> arb:
        """The range of (k/p) x - G, which rises to x = ln(k/p) and then falls."""
        found = between(*(self.shape * at.x - at.gamma for at in (low, high)))
        if low.gamma >= self.shape or high.gamma <= self.shape:
            return found
        return found.union(self.shape * (self.shape.log() - 1))

    def _refined(self, piece: _Piece) -> list[_Piece]:
        low, high = piece.low, piece.high
        if high is None:
            assert low is not None
            high = self.node(arb(float((2 * low.gamma - self.shape).log().upper())))
            return [self._cell(low, high, _SHARE), self._right(high)]
        if low is None:
            low = self.node(high.x - 2 * (self.shape.log() - high.x).abs_upper() - 1)
            return [self._left(low), self._cell(low, high, _SHARE)]
        if high.x - low.x > self.narrow:
            middle = self.node(((low.x + high.x) / 2).mid())
            return [self._cell(*ends, piece.fraction) for ends in ((low, middle), (middle, high))]
        if not piece.final:
            return [self._tried(low, high)]
        middle = self.node(((low.x + high.x) / 2).mid())
        return [self._tried(low, middle), self._tried(middle, high)]

    def _tried(self, low: _Node, high: _Node) -> _Piece:
        """F grows with kappa and falls with y, which gives its range over the cell."""
        fraction = between(self.lunes.parts(high.kappa, low.y)[0], self.lunes.parts(low.kappa, high.y)[0])
        piece = self._cell(low, high, probability(fraction))
        fine = self._integrated(low, high, piece.fraction)
        value = piece.value.intersection(fine) if fine.is_finite() else piece.value
        return _Piece(low, high, value, piece.fraction, final=True)

    def _integrated(self, low: _Node, high: _Node, fraction: arb) -> arb:
        """The cell by a series in (x - middle)/radius; of the remainder, of even order, only the coefficient's range counts."""
        middle, radius = self.node((low.x + high.x) / 2), (high.x - low.x) / 2
        if not (middle.x.is_exact() and radius.is_exact()):
            return arb.nan()
        whole = _Node(*(between(*pair) for pair in zip(low, high, strict=True)))
        length, n = ctx.cap, self.order
        ctx.cap = n + 1
        try:
            peak = self._exponent(middle, middle)
            at_middle = self._series(middle, radius, peak, *self.lunes.parts(middle.kappa, middle.y))
            second = self.lunes.parts(whole.kappa, whole.y)[1]
            within = self._series(whole, radius, self._exponent(low, high), fraction, second)
        finally:
            ctx.cap = length
        total = sum((at_middle[j] / (j + 1) for j in range(0, n, 2)), within[n] / (n + 1))
        return 2 * radius * total

    def _series(self, at: _Node, radius: arb, exponent: arb, fraction: arb, second: arb) -> arb_series:
        """Weight times fraction around a node, in steps of the radius; F' follows from dF = F_kappa dkappa + F_y dy:

        F' = c (1-d^2)^((M-1)/2) (kappa' - (kappa+d) y') - M y' E,  E = e^(My) C(t), e^y (1-t^2)^(1/2) = (1-d^2)^(1/2).
        """
        lunes, p, m = self.lunes, self.p, self.excess
        gamma = arb_series([at.x, radius]).exp()
        exponents = [exponent - self.log_gamma, radius * self.shape - gamma[1], *(-each for each in gamma.coeffs()[2:])]
        weight = arb_series(exponents).exp() * (m + p * gamma)
        if fraction.is_exact() and (fraction == 0 or fraction == 1):
            return weight * fraction / lunes.dimension
        y = self._root_series(at, radius, gamma)
        shifted, slope = y - at.y, y.derivative()
        kappa = at.kappa * arb_series([0, -radius / p]).exp()
        grown = y.exp()
        growth = arb_series([at.y.expm1(), *grown.coeffs()[1:]])
        d = (growth * (growth + 2) / kappa - kappa) / 2
        if not abs(d[0]) < 1:  # the spheres may touch here: F is not smooth
            return arb_series([arb.nan()] * (self.order + 1))
        rim = lunes.constant * ((lunes.half - 0.5) * (1 - d * d).log()).exp()
        removed = rim * ((1 - lunes.dimension) * shifted).exp() * ((kappa + d) / grown).derivative()
        capped = (lunes.dimension * shifted).exp() * (second - at.y.exp() * removed.integral())
        change = rim * (kappa.derivative() - (kappa + d) * slope) - lunes.dimension * slope * capped
        return weight * (fraction + change.integral()) / lunes.dimension

    def _root_series(self, at: _Node, radius: arb, gamma: arb_series) -> arb_series:
        """y(x): with A = G (e^(py) - 1) = eps - (M-k) y, the slope is y' = -A/(M-k + p(G+A)), and A' = -(M-k) y'."""
        if self.excess == 0:
            return at.y + (-radius * self.epsilon / self.p / (gamma + self.epsilon)).integral()
        used = [at.gamma * (self.p * at.y).expm1()]
        under = [self.excess + self.p * (at.gamma + used[0])]
        for j in range(1, self.order + 1):
            later = sum((i * used[i] * under[j - i] for i in range(1, j)), arb(0))
            used.append((radius * self.excess * used[-1] - later) / under[0] / j)
            under.append(self.p * (gamma[j] + used[j]))
        return arb_series([at.y, *(-each / self.excess for each in used[1:])])
