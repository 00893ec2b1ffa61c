"""Laplace noise on each entry.

The overlap of two diamonds, level by level, is a product of overlaps along the diagonals of any two entries: it falls
as two sizes d1 >= d2 become d1 + t and d2 - t. So the change that majorizes all others is the worst, and of an l1 ball
it is one that lies in a single entry.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, arb_poly, fmpq, fmpq_poly

from lessnoise_verify.balls import accurate, ball, between, check_time, refined
from lessnoise_verify.changes import Moves
from lessnoise_verify.laws.registry import Case, law
from lessnoise_verify.losses import composed, laplace_curve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lessnoise_verify.document import Fields

_MOST_TERMS: Final = 10**5
_MOST_DIGITS: Final = 8192  # bits


@law("laplace")
def laplace(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """The largest change in one entry, or the worst of a set."""
    scale, changes = noise.positive("scale"), case.changes
    if changes is None:
        return one_entry(case.sensitivity**2, scale, epsilon, bits)
    if changes.majorant is not None:
        return laplace_moves_delta([changes.majorant], scale, epsilon, bits)
    inside = one_entry(changes.squared_norm(math.inf), scale, epsilon, bits)
    return between(inside, one_entry(changes.squared_norm(1), scale, epsilon, bits))


def one_entry(square: Fraction, scale: Fraction, epsilon: Fraction, bits: int) -> arb:
    """1 - e^((eps - D/b)/2), of D^2; 0 if D <= eps b."""
    if square <= (epsilon * scale) ** 2:
        return arb(0)
    return refined(lambda: -((ball(epsilon) - ball(square).sqrt() / ball(scale)) / 2).expm1(), bits)


def laplace_moves_delta(moves: list[Moves], scale: Fraction, epsilon: Fraction, bits: int) -> arb:
    """The largest delta over several changes, for independent Laplace noise of this scale on each entry."""
    found = arb(0)
    for one in worst(moves, Moves.majorizes):
        check_time()
        found = found.max(_entries_delta(one.scaled(1 / scale), epsilon, bits))
    return found


def worst(moves: list[Moves], above: Callable[[Moves, Moves], bool]) -> list[Moves]:
    """Those that no other is above, if they are few enough to compare all."""
    kept: list[Moves] = []
    for one in sorted(set(moves), key=lambda each: each.squared_norm(2), reverse=True):
        if not any(above(other, one) for other in kept[:200]):
            kept.append(one)
    return kept


def _entries_delta(moves: Moves, epsilon: Fraction, bits: int) -> arb:
    """One change, its sizes in units of the scale."""
    count = sum(number for _, number in moves.sizes)
    total = sum((size * number for size, number in moves.sizes), Fraction(0))
    if total <= epsilon:
        return arb(0)
    if count == 1:
        return one_entry(total**2, Fraction(1), epsilon, bits)
    if math.prod(number + 1 for _, number in moves.sizes) * count <= _MOST_TERMS:
        found = refined(lambda: _closed_form(moves, count, total, epsilon), bits, most=_MOST_DIGITS)
        if accurate(found, 10):
            return found
    return composed([(laplace_curve(size), number) for size, number in moves.sizes], epsilon)


def _closed_form(moves: Moves, count: int, total: Fraction, epsilon: Fraction) -> arb:
    r"""Delta of n entries of sizes a_i, whose sum is A.

    The loss of one is a or -a, with probability 1/2 and e^-a/2, or has the density e^((x - a)/2)/4 between. So all of
    them together lose x with e^(x/2) M(dx), where M has the transform, with u = 1/(2 t),

        prod_i e^(-a_i/2) [(1 + u) e^(t a_i) + (1 - u) e^(-t a_i)]/2,

    and delta = 2 e^(eps/2) int_(x > eps) sinh((x - eps)/2) M(dx). Expand the product: p signs +, m signs -, which add
    up to b = sum of +-a_i. A factor e^(tb)/t^j stands for (b - x)_+^(j-1)/(j-1)!, so only b > eps counts, with what has
    the transform t^-n (t + 1/2)^(p-1) (t - 1/2)^(m-1)/2 at B = b - eps: by residues, the polynomial sum over k < n of
    c_k B^(n-1-k)/(n-1-k)!, c the series at 0, and 2^(n-1) e^(B/2) from t = 1/2 if m = 0.
    """
    found, polynomials = arb(0), [_residue(plus, count) for plus in range(1, count + 1)]
    for minus in itertools.product(*(range(number + 1) for _, number in moves.sizes)):
        size = total - 2 * sum((s * j for (s, _), j in zip(moves.sizes, minus, strict=True)), Fraction(0))
        if size <= epsilon:
            continue
        excess = ball(size - epsilon)
        value = polynomials[count - sum(minus) - 1](excess)
        if not any(minus):
            value += arb(2) ** (count - 1) * (excess / 2).exp()
        ways = math.prod(math.comb(number, j) for (_, number), j in zip(moves.sizes, minus, strict=True))
        found += ways * value
    return found * ball((epsilon - total) / 2).exp() * arb(2) ** (1 - count)


def _residue(plus: int, count: int) -> arb_poly:
    """Of t^-n (t + 1/2)^(p-1) (t - 1/2)^(m-1) e^(tB)/2 at 0, as a polynomial in B."""
    half = fmpq(1, 2)
    series = fmpq_poly([half, 1]) ** (plus - 1) * half
    if plus < count:
        series *= fmpq_poly([-half, 1]) ** (count - plus - 1)
        known: Iterable[fmpq] = (series[k] for k in range(count))
    else:  # 1/(t - 1/2) = -2 (1 + 2 t + 4 t^2 + ...)
        sums = itertools.accumulate(series[k] / fmpq(2) ** k for k in range(count))
        known = (-2 * fmpq(2) ** k * partial for k, partial in enumerate(sums))
    terms = [arb(c) / arb.fac_ui(count - 1 - k) for k, c in enumerate(known)]
    return arb_poly(terms[::-1])
