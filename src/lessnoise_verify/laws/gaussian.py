"""Normal noise: delta in closed form (Balle & Wang 2018, Theorem 8), for the largest change over the deviation."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb, arb_mat

from lessnoise_verify.balls import ball, between, ends, normal_tail, refined, working
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

    It is convex in v, so that a vertex is the worst. A solid set whose largest entry is D lies in this body, and has
    its vertices with as many entries as may be D at once.
    """
    m, d, most, changes = case.dimension, case.sensitivity, case.dimension, case.changes
    if case.relation != "add/remove":
        raise NotCovered("noise with a shared part has a proof for add/remove only.")
    if changes is not None:
        if not (changes.one_sided and changes.solid and changes.majorant):
            raise NotCovered("noise with a shared part is for changes of one sign, with a bound for each entry.")
        d, most = changes.majorant.sizes[0]

    def largest(limit: int) -> Fraction:
        """Of the vertices with j <= limit entries D (Sherman and Morrison); the parabola's peak is next to j."""
        peak = math.floor((own / common + m) / 2) if common else m
        values = (j * (own + (m - j) * common) for j in (min(peak, limit), min(peak + 1, limit)))
        return d**2 * max(values) / (own * (own + m * common))

    return largest(most), largest(m)


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
    """Z = W diag(a) N diag(b) V^T: the largest mu is D/(sv_min(W diag a) sv_min(V diag b)) in a Frobenius ball."""
    (rows, low_1, high_1), (columns, low_2, high_2) = (_side(noise, side) for side in ("row", "column"))
    if case.shape != (rows, columns):
        raise Unreadable(f"{noise.name} is for matrices of {rows} x {columns} entries, not of shape {case.shape}.")
    if case.changes is not None:
        raise NotCovered("Gaussian noise of a matrix is for changes in a Frobenius ball, not for other sets.")
    return case.sensitivity**2 / (high_1 * high_2), case.sensitivity**2 / (low_1 * low_2)


def _side(noise: Fields, side: str) -> tuple[int, Fraction, Fraction]:
    """The size of one side, and between which numbers its least squared deviation sv_min(W diag a)^2 is.

    With the Frobenius norm F of W^T W - I, every sv(W)^2 lies within F of 1, so that it is at least (1 - F) a_min^2
    and, as the squared length of a column is at most 1 + F, at most (1 + F) a_min^2. Equal deviations need no basis:
    the noise is then drawn without it, as its law does not change when it is turned.
    """
    given = noise.fields(f"{side}_deviations")
    values, counts = given.numbers("values"), given.items("counts")
    given.end()
    if len(counts) != len(values) or not values or min(values) <= 0:
        raise Unreadable(f"{given.name} are not positive numbers with as many counts.")
    inside = Fields({str(place): count for place, count in enumerate(counts)}, given.name)
    size = sum(inside.whole(str(place)) for place in range(len(counts)))
    least = Fraction(min(values)) ** 2
    if f"{side}_basis" not in noise:
        noise.take(f"{side}_basis")
        return size, least, least
    basis = noise.fields(f"{side}_basis")
    shape, content = basis.items("shape", 2), numbers({"float64": basis.take("float64")}, basis.name)
    basis.end()
    if shape != [size, size] or len(content) != size**2:
        raise Unreadable(f"{basis.name} is not a matrix of {size} x {size} numbers.")
    if min(values) == max(values):
        return size, least, least
    if size > LARGEST_BASIS:
        raise NotCovered(f"a basis of {size} directions: at most {LARGEST_BASIS} are covered.")
    with working(192):
        matrix = arb_mat(size, size, content)
        error = matrix.transpose() * matrix - arb_mat(size, size, 1)
        off = ends(sum((entry**2 for entry in error.entries()), arb(0)).sqrt())[1]
    if off >= 1:
        raise NotCovered(f"{basis.name} is far from orthonormal.")
    return size, least * (1 - off), least * (1 + off)
