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

from fractions import Fraction
from typing import Final, NamedTuple

from flint import arb, arb_series, ctx

from lessnoise_verify.balls import accurate, ball, between, check_time, probability, working
from lessnoise_verify.document import Fields, NotCovered
from lessnoise_verify.laws.gaussian import gaussian_delta
from lessnoise_verify.laws.registry import Case, law

_MOST_PIECES: Final = 1000
_MOST_STEPS: Final = 400
_MOST_DOUBLINGS: Final = 40
_LARGEST_RANGE: Final = 8  # of the exponent in a cell for which a series is tried
_LARGEST_SQUARE: Final = 0.62
_MOST_DIGITS: Final = 4  # times that their number is doubled
_LARGEST_ROOT: Final = 64  # denominators of p up to which (D/s)^p = eps is decided exactly
_SHARE: Final = arb(0).union(arb(1))


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
    if squared == 0:
        return arb(0)
    if isinstance(squared, Fraction):
        if k == dimension and p == 2:
            return gaussian_delta(2 * squared / scale**2, epsilon, bits)
        if k == dimension and p <= 1 and p.denominator <= _LARGEST_ROOT and _is_pure(squared / scale**2, p, epsilon):
            return arb(0)
    precision = bits + 64 + dimension.bit_length()
    for _ in range(_MOST_DIGITS):
        with working(precision):
            square = ball(squared) if isinstance(squared, Fraction) else squared
            log_ratio = square.log() / 2 - ball(scale).log()
            if not log_ratio.is_finite():
                raise NotCovered("the largest change is not known to be above 0.")
            if k == dimension and p <= 1 and epsilon > 0 and ball(p) * log_ratio < ball(epsilon).log():
                return arb(0)
            if k == dimension == p == 1:  # the Laplace law, not pure: 1 - e^((eps - D/s)/2)
                return -((ball(epsilon) - log_ratio.exp()) / 2).expm1()
            integral = _Integral(k, p, log_ratio, dimension, epsilon, bits)
            found = integral.enclosed()
        if not integral.blurred:
            break
        precision *= 2
    return found


def _is_pure(ratio: Fraction, p: Fraction, epsilon: Fraction) -> bool:
    """(D/s)^p <= eps: no loss (|n+v|^p - |n|^p)/s^p is above eps, as |n+v|^p <= |n|^p + |v|^p for p <= 1."""
    return ratio**p.numerator <= epsilon ** (2 * p.denominator)


class Lunes:
    """Fractions of balls in R^M outside other balls."""

    def __init__(self, dimension: int) -> None:
        self.dimension, self.half = arb(dimension), arb(dimension) / 2
        with working(4 * ctx.prec):  # -C'(0)
            self.constant = ((self.half + 1).lgamma() - (self.half + 0.5).lgamma()).exp() / arb.pi().sqrt()

    def fraction(self, kappa: arb, y: arb) -> arb:
        """F for D = kappa u and Y = u e^y, y >= 0; where d or t leave [-1, 1], the caps are all or nothing, as F is."""
        return self.cap(self.place(kappa, y)) - self.second(kappa, y)

    def place(self, kappa: arb, y: arb) -> arb:
        """The place d of the plane in which the spheres meet."""
        return (y.expm1() * (y.expm1() + 2) / kappa - kappa) / 2

    def second(self, kappa: arb, y: arb) -> arb:
        """E = e^(My) C(t)."""
        return (self.dimension * y).exp() * self.cap((kappa + self.place(kappa, y)) / y.exp())

    def cap(self, x: arb) -> arb:
        """C(x), the fraction of a ball beyond a plane at x radii from its centre; it falls with x."""
        if x.rad() * arb(2) ** (ctx.prec // 2) > 1:
            return between(self._cap(x.lower()), self._cap(x.upper()))
        nearest = x.abs_lower() ** 2
        if x.is_exact() or nearest >= 1:
            return self._cap(x.mid())
        steepest = self.constant * ((self.half - 0.5) * (-nearest).log1p()).exp()  # |C'| falls with |x|
        return self._cap(x.mid()) + steepest * x.rad() * arb(0, 1)

    def _cap(self, x: arb) -> arb:
        if x < 0:
            return 1 - self._cap(-x)
        if x >= 1:
            return arb(0)
        square = x * x
        exponent = self.dimension * square
        if (
            square < _LARGEST_SQUARE and exponent < 1.5 * ctx.prec + 20
        ):  # DLMF 8.17.8: I_(x^2)(1/2, (M+1)/2) = 1 - 2 C(x)
            with working(ctx.prec + 20 + int(1.2 * float(exponent.upper()))):  # C(x) is above e^-(0.8 M x^2)
                power = ((self.half + 0.5) * (-square).log1p()).exp()
                return 0.5 - self.constant * x * power * square.hypgeom_2f1(1, self.half + 1, 1.5)
        series = self._enveloped(1 / square - 1)  # the same for C(x), by Pfaff's transformation (DLMF 15.8.1)
        return self.constant * ((self.half + 0.5) * (-square).log1p()).exp() / (self.dimension + 1) / x * series

    def _enveloped(self, w: arb) -> arb:
        """2F1(1/2, 1; c; -w) = (c-1) int (1-t)^(c-2) (1+wt)^(-1/2) dt: the terms envelop it, as the root's do."""
        total, term, tiny = arb(0), arb(1), arb(2) ** -ctx.prec
        for n in range(_MOST_STEPS):
            total += term
            term *= -w * (n + 0.5) / (self.half + 1.5 + n)
            if abs(term) < tiny:
                break
        return total + term * _SHARE


class _Node(NamedTuple):
    """A place x = ln G: G, kappa = D/u and y = ln(Y/u) there."""

    x: arb
    gamma: arb
    kappa: arb
    y: arb


class _Piece(NamedTuple):
    """A part of the integral, between two nodes or beyond one; the range of F in it; whether a series was tried."""

    low: _Node | None
    high: _Node | None
    value: arb
    fraction: arb = _SHARE
    tried: bool = False


class _Integral:
    """The integral over x = ln G."""

    def __init__(self, k: Fraction, p: Fraction, log_ratio: arb, dimension: int, epsilon: Fraction, bits: int) -> None:
        self.k, self.p, self.log_ratio, self.epsilon = ball(k), ball(p), log_ratio, ball(epsilon)
        self.excess, self.shape = ball(dimension - k), ball(k / p)
        self.steep = p >= 1 and k == dimension
        self.lunes, self.log_gamma = Lunes(dimension), self.shape.lgamma()
        self.blurred = False  # whether rounding hides what is integrated: then more digits are needed
        self.bits, self.order = bits, 2 * (bits // 5 + 2)  # an even order: see _integrated

    def enclosed(self) -> arb:
        """Refine what is least known until so many bits are known, or the pieces are many."""
        pieces, made = self._start(), 0
        while True:
            total = sum((piece.value for piece in pieces), arb(0))
            if accurate(total, self.bits) or made > _MOST_PIECES or self.blurred:
                return probability(total)
            goal = abs(total).upper() / 2 ** (self.bits + 1) / len(pieces)
            rest = [piece for piece in pieces if not piece.value.rad() <= goal]
            pieces = [piece for piece in pieces if piece.value.rad() <= goal]
            pieces += [part for piece in rest for part in self._refined(piece)]
            made += len(rest)

    def node(self, x: arb) -> _Node:
        """What is known at x."""
        return _Node(x, x.exp(), (self.log_ratio - x / self.p).exp(), self._solved(x.exp()))

    def _solved(self, gamma: arb) -> arb:
        """The root y of (M-k) y + G (e^(py) - 1) = eps, which is convex in y: Newton's steps, then a proof by signs."""
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
        is_low = low > 0 and m * low + gamma * (p * low).expm1() < eps
        is_high = m * high + gamma * (p * high).expm1() > eps
        return between(low if is_low else arb(0), high if is_high else most)

    def _start(self) -> list[_Piece]:
        """From a place left of which all balls behave alike, if one is found, to where the weight is small."""
        limit = arb(float((self.shape.log() - 0.5).lower()))
        low, step = self.node(limit), arb(1)
        for _ in range(_MOST_DOUBLINGS):
            if self._settled(low):
                break
            low, step = self.node(limit - step), 2 * step
        for _ in range(12 if low.x < limit else 0):
            step /= 2
            right = self.node(low.x + step / 2)
            low = right if self._settled(right) else low
        high = self.node(arb(float((self.shape + 2 + 8 * self.shape.sqrt()).log().upper())))
        return [self._left(low), self._cell(low, high), self._right(high)]

    def _settled(self, at: _Node) -> bool:
        """All smaller balls are disjoint, as u + Y grows, or contained, if Y - u = (u^p + eps s^p)^(1/p) - u falls."""
        growth = at.y.expm1()
        return bool(at.kappa > growth + 2) or (self.steep and bool(at.kappa < growth))

    def _left(self, at: _Node) -> _Piece:
        """The balls smaller than at a node: at most their mass, none, or all of it (DLMF 8.7.1)."""
        if not self._settled(at):  # d ln(weight)/dx >= k/p - G
            return _Piece(None, at, _SHARE * self._weight(at) / (self.shape - at.gamma))
        if at.kappa < at.y.expm1() + 2:
            return _Piece(None, at, arb(0))
        term, total, n = arb(1), arb(1), 1
        while term > arb(2) ** -ctx.prec:  # the ratio of the terms is at most G/(k/p) <= e^-1/2
            term, n = term * at.gamma / (self.shape + n), n + 1
            total += term
        peak = (self._exponent(at, at) - self.log_gamma).exp() / self.shape
        return _Piece(None, at, peak * (total + 2 * term * _SHARE - self.k / self.lunes.dimension))

    def _right(self, at: _Node) -> _Piece:
        """The larger balls: at most their mass, as d ln(weight)/dx <= k/p + 1 - G."""
        return _Piece(at, None, _SHARE * self._weight(at) / (at.gamma - self.shape - 1))

    def _weight(self, at: _Node) -> arb:
        """The density of x: G^(k/p) e^-G / Gamma(k/p) times ((M-k) + pG)/M."""
        peak = (self._exponent(at, at) - self.log_gamma).exp()
        return peak * (self.excess + self.p * at.gamma) / self.lunes.dimension

    def _exponent(self, low: _Node, high: _Node) -> arb:
        """The range of (k/p) x - G, which rises to x = ln(k/p) and then falls."""
        found = between(self.shape * low.x - low.gamma, self.shape * high.x - high.gamma)
        if low is high or low.gamma >= self.shape or high.gamma <= self.shape:
            return found
        return found.union(self.shape * (self.shape.log() - 1))

    def _cell(self, low: _Node, high: _Node) -> _Piece:
        """The width times the ranges of the weight and of F, which grows with kappa and falls with y."""
        fraction = self.lunes.fraction(high.kappa, low.y).union(self.lunes.fraction(low.kappa, high.y))
        fraction = probability(fraction)
        peak = (self._exponent(low, high) - self.log_gamma).exp() * (high.x - low.x) / self.lunes.dimension
        rest = between(self.excess + self.p * low.gamma, self.excess + self.p * high.gamma)
        return _Piece(low, high, peak * rest * fraction, fraction)

    def _refined(self, piece: _Piece) -> list[_Piece]:
        low, high = piece.low, piece.high
        if low is None and high is not None:
            low = self.node(high.x - 2 * (self.shape.log() - high.x).abs_upper().ceil())
            return [self._left(low), self._cell(low, high)]
        if high is None and low is not None:
            high = self.node(arb(float((2 * low.gamma - self.shape).log().upper())))
            return [self._cell(low, high), self._right(high)]
        assert low is not None
        assert high is not None
        if not piece.tried and high.x - low.x < 1 and self._exponent(low, high).rad() < _LARGEST_RANGE:
            return [self._expanded(piece, low, high)]
        middle = self.node(((low.x + high.x) / 2).mid())
        parts = [(low, middle), (middle, high)]
        cells = [self._cell(*ends) for ends in parts]
        return [self._expanded(cell, *ends) for cell, ends in zip(cells, parts, strict=True)] if piece.tried else cells

    def _expanded(self, piece: _Piece, low: _Node, high: _Node) -> _Piece:
        fine = self._integrated(low, high, piece.fraction)
        value = piece.value.intersection(fine) if fine.is_finite() else piece.value
        return piece._replace(value=value, tried=True)

    def _integrated(self, low: _Node, high: _Node, fraction: arb) -> arb:
        """The cell by a series in (x - middle)/radius, with the remainder f_n(cell) h^n, of one sign for an even n."""
        check_time()
        middle, radius = self.node((low.x + high.x) / 2), (high.x - low.x) / 2
        if not (middle.x.is_exact() and radius.is_exact()):
            return arb.nan()
        whole = _Node(*(between(*pair) for pair in zip(low, high, strict=True)))
        length, ctx.cap = ctx.cap, self.order + 1
        try:
            exact, place = (f(middle.kappa, middle.y) for f in (self.lunes.fraction, self.lunes.place))
            at_middle = self._series(middle, radius, self._exponent(middle, middle), exact, place)
            within = self._series(whole, radius, self._exponent(low, high), fraction, place)
        except ValueError:  # a quotient of series by one that may begin with 0
            return arb.nan()
        finally:
            ctx.cap = length
        self.blurred |= at_middle[0].is_finite() and not accurate(at_middle[0], self.bits)
        known = sum((at_middle[j] / (j + 1) for j in range(0, self.order, 2)), arb(0))
        return 2 * radius * (known + within[self.order] / (self.order + 1))

    def _series(self, at: _Node, radius: arb, exponent: arb, fraction: arb, place: arb) -> arb_series:
        """Weight times F around a node, in steps of the radius; ``place`` is d in the middle.

        As e^y (1 - t^2)^(1/2) = (1 - d^2)^(1/2), dF/dkappa and dF/dy give, with E = e^(My) C(t),
        F' = c (1 - d^2)^((M-1)/2) (kappa' - (kappa + d) y') - M y' E.
        """
        lunes, p, m = self.lunes, self.p, self.excess
        gamma = arb_series([at.x, radius]).exp()
        exponents = [exponent - self.log_gamma, radius * self.shape - gamma[1], *(-each for each in gamma.coeffs()[2:])]
        weight = arb_series(exponents).exp() * (m + p * gamma) / lunes.dimension
        if fraction == 0 or fraction == 1:
            return weight * fraction
        y = self._root_series(at, radius, gamma)
        shifted, slope, grown = y - at.y, y.derivative(), y.exp()
        kappa = at.kappa * arb_series([0, -radius / p]).exp()
        growth = arb_series([at.y.expm1(), *grown.coeffs()[1:]])
        d = (growth * (growth + 2) / kappa - kappa) / 2
        if self.steep and p == 1:  # (e^y - 1)/kappa = eps s/D is constant: d = q - (1 - q^2) kappa/2 for this q
            quotient = self.epsilon / self.log_ratio.exp()
            d = quotient - (1 - quotient**2) * kappa / 2
        # By the mean value theorem, d differs from that in the middle by its slope at most: often narrower.
        d = arb_series([d[0].intersection(place + d[1] * arb(0, 1)), *d.coeffs()[1:]])
        if not abs(d[0]) < 1:  # the spheres may touch here: F is not smooth
            return arb_series([arb.nan()] * (self.order + 1))
        rim = lunes.constant * ((lunes.half - 0.5) * (1 - d * d).log()).exp()
        removed = rim * ((1 - lunes.dimension) * shifted).exp() * ((kappa + d) / grown).derivative()
        second = lunes.second(at.kappa, at.y) - at.y.exp() * removed.integral()
        second = (lunes.dimension * shifted).exp() * second
        change = rim * (kappa.derivative() - (kappa + d) * slope) - lunes.dimension * slope * second
        return weight * (fraction + change.integral())

    def _root_series(self, at: _Node, radius: arb, gamma: arb_series) -> arb_series:
        """y(x): with A = G (e^(py) - 1) = eps - (M-k) y, y' = -A/(M-k + p(G+A)), and A' = -(M-k) y'."""
        if self.excess == 0:
            return at.y + (-radius * self.epsilon / self.p / (gamma + self.epsilon)).integral()
        used = [at.gamma * (self.p * at.y).expm1()]
        under = [self.excess + self.p * (at.gamma + used[0])]
        for j in range(1, self.order + 1):
            later = sum((i * used[i] * under[j - i] for i in range(1, j)), arb(0))
            used.append((radius * self.excess * used[-1] - later) / under[0] / j)
            under.append(self.p * (gamma[j] + used[j]))
        return arb_series([at.y, *(-each / self.excess for each in used[1:])])
