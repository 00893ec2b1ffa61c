"""Normal noise: delta in closed form (Balle & Wang 2018, Theorem 8), for the largest change over the deviation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, arb_mat

from lessnoise_verify.balls import ball, between, ends, normal_tail, refined, working
from lessnoise_verify.changes import Moves
from lessnoise_verify.document import Fields, NotCovered, Unreadable, numbers
from lessnoise_verify.laws.registry import Case, law, normal, squared_mu

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST_BASIS: Final = 500  # rows


def gaussian_delta(square: Fraction, epsilon: Fraction, bits: int) -> arb:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), of mu^2."""
    if square == 0:
        return arb(0)

    def closed_form() -> arb:
        mu, eps = ball(square).sqrt(), ball(epsilon)
        return normal_tail(eps / mu - mu / 2) - eps.exp() * normal_tail(eps / mu + mu / 2)

    return refined(closed_form, bits)


def of_range(curve: Callable[[Fraction], arb], low: Fraction, high: Fraction) -> arb:
    """A growing function of a number between two."""
    return curve(low) if low == high else between(curve(low), curve(high))


def one_sided_square(case: Case, own: Fraction, common: Fraction) -> tuple[Fraction, Fraction]:
    """Between which numbers the largest v^T (own I + common 1 1^T)^-1 v lies, for v in [0, D]^M or the opposite.

    It is (sum v_i^2 - c (sum v_i)^2)/own with c = common/(own + M common) (Sherman and Morrison), convex in v. A set
    with a majorant w lies in the polymatroid of all v whose n largest entries add up to no more than those of w, for
    every n; its vertices have the n largest entries of w, in any places, and else 0 (Edmonds 1970). One of them is the
    worst, and if the set is solid, all of them are in it.
    """
    m, changes, d = case.dimension, case.changes, case.sensitivity
    share = common / (own + m * common)
    if case.relation != "add/remove":
        raise NotCovered("noise with a shared part is for add/remove alone.")
    if changes is None:
        return 2 * (_top_square(Moves.of([(d, m)]), share, stop=True) / own,)
    if not changes.one_sided or changes.majorant is None:
        raise NotCovered("noise with a shared part is for changes whose entries have one sign.")
    low, high = (_top_square(changes.majorant, share, stop=stop) for stop in (changes.solid, True))
    return low / own, high / own


def _top_square(moves: Moves, share: Fraction, stop: bool) -> Fraction:
    """Sum of squares less the share of the squared sum; of the best number of the largest if it may ``stop``."""
    total = squares = best = share * 0
    for size, count in moves.sizes:
        peak = math.floor((size - 2 * share * total) / (2 * share * size)) if share else count
        for n in {min(max(peak, 0), count), min(max(peak + 1, 0), count)} if stop else {count}:
            best = max(best, squares + n * size**2 - share * (total + n * size) ** 2)
        total, squares = total + count * size, squares + count * size**2
    return best if stop else squares - share * total**2


@law("correlated-gaussian")
@law("matrix-gaussian")
def normal_delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """Of normal noise by its mu^2 alone."""
    square = squared_mu(noise, case)
    assert square is not None
    return of_range(lambda size: gaussian_delta(size, epsilon, bits), *square)


@normal("generalized-gaussian", "radial")
def _independent(noise: Fields, case: Case) -> tuple[Fraction, Fraction] | None:
    """Independent entries, each of variance scale^2/2, if p = 2 and k = M."""
    if noise.number("p") != 2 or (noise.text("kind") == "radial" and noise.number("k") != case.dimension):
        return None
    square = case.sensitivity**2 if case.changes is None else case.changes.squared_norm(2)
    return 2 * (2 * square / noise.positive("scale") ** 2,)


@normal("correlated-gaussian")
def _correlated(noise: Fields, case: Case) -> tuple[Fraction, Fraction]:
    """Independent normal entries of one variance, and one normal variable that is added to all of them."""
    common, own = noise.number("common_variance", 0.0), noise.positive("own_variance")
    return one_sided_square(case, own, common)


@normal("matrix-gaussian")
def _matrix(noise: Fields, case: Case) -> tuple[Fraction, Fraction]:
    """Z = W diag(a) N diag(b) V^T: the largest mu is D/(sv_min(W diag a) sv_min(V diag b)) in a Frobenius ball.

    Other sets have a change of the largest norm, too, but perhaps only in directions where the noise is larger.
    """
    (rows, low_1, high_1, top_1), (columns, low_2, high_2, top_2) = (_side(noise, side) for side in ("row", "column"))
    if case.shape != (rows, columns):
        raise Unreadable(f"{noise.name} is for matrices of {rows} x {columns} entries, not of shape {case.shape}.")
    square = case.sensitivity**2 if case.changes is None else case.changes.squared_norm(2)
    weakest = high_1 * high_2 if case.changes is None else top_1 * top_2
    return square / weakest, square / (low_1 * low_2)


def _side(noise: Fields, side: str) -> tuple[int, Fraction, Fraction, Fraction]:
    """The size of one side; between which numbers its least squared deviation is, and a bound of the largest.

    With the Frobenius norm F of W^T W - I, every sv(W)^2 lies within F of 1, and sv_min(W diag a)^2 is at least
    a_min^2 sv_min(W)^2 and at most the squared length a_min^2 |w|^2 of one column. Equal deviations need no basis:
    the noise is then drawn without it, as its law does not change when it is turned.
    """
    given = noise.fields(f"{side}_deviations")
    values = list(map(Fraction, given.numbers("values")))
    counts = given.items("counts")
    given.end()
    if len(counts) != len(values) or not values or min(values) <= 0:
        raise Unreadable(f"{given.name} are no positive numbers with as many counts.")
    inside = Fields({str(place): count for place, count in enumerate(counts)}, given.name)
    size = sum(inside.whole(str(place)) for place in range(len(counts)))
    least, most = min(values) ** 2, max(values) ** 2
    if f"{side}_basis" not in noise:
        noise.take(f"{side}_basis")
        return size, least, least, most
    basis = noise.fields(f"{side}_basis")
    shape, content = basis.items("shape", 2), numbers({"float64": basis.take("float64")}, basis.name)
    basis.end()
    if shape != [size, size] or len(content) != size**2:
        raise Unreadable(f"{basis.name} is not a matrix of {size} x {size} numbers.")
    if least == most:
        return size, least, least, most
    if size > LARGEST_BASIS:
        raise NotCovered(f"a basis of {size} directions: at most {LARGEST_BASIS} are covered.")
    with working(192):
        matrix = arb_mat(size, size, content)
        gram = matrix.transpose() * matrix
        off = sum((entry**2 for entry in (gram - arb_mat(size, size, 1)).entries()), arb(0)).sqrt()
        order = [place for place, count in enumerate(counts) for _ in range(count)]
        shortest = min((gram[i, i].upper() for i in range(size) if values[order[i]] == min(values)), key=float)
        if not off < 1:
            raise NotCovered(f"{basis.name} is far from orthonormal.")
        return size, least * ends(1 - off)[0], least * ends(shortest)[1], most * ends(1 + off)[1]
