"""Lower bounds on the noise of every mechanism, proved from multipliers and tests.

A file states: every noise N on R^M that is (epsilon, delta)-private against every shift of l2 length at most D (or, with
"against": "entry", against every change of one entry by D) has E |N|^2 >= value. It carries tests, and whatever they
are, what follows from them is true. Three rules bring it to noise in R^m that is private against shifts of length 1:

* Any m of the M entries are private noise in R^m, and |N|^2 is M/m times the mean of |N_S|^2 over the sets S of m
  entries: a bound for m is worth M/m times as much for M.
* Lengths in units of D: a bound for shifts of length 1 is worth D^2.
* P(A) <= e^eps P(A + v/j) + delta, used j times: against shifts j times as long the noise keeps (j eps, delta_j),
  delta_j = delta (e^(j eps) - 1)/(e^eps - 1). In units of that length, a bound is worth j^2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from flint import arb

from lessnoise_verify.balls import ball, ends, refined, shown, working
from lessnoise_verify.caps import caps_exceed
from lessnoise_verify.document import Fields, NotCovered, Refuted, Unreadable
from lessnoise_verify.laws.gaussian import gaussian_delta

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise_verify.certificate import Proof

_LARGEST_EPSILON: Final = 700
_MOST_CELLS: Final = 50_000
_MOST_TERMS: Final = 10**6
_BITS: Final = 128


class Question(NamedTuple):
    """Whether noise in R^m that is (epsilon, delta)-private against shifts of length 1 has E |n|^2 >= value."""

    dimension: int
    epsilon: Fraction
    delta: arb
    value: Fraction


def check_bound(given: Fields, proof: Proof) -> None:
    """The file of a lower bound."""
    given.take("lessnoise", None)
    dimension, order = given.whole("dimension"), given.number("order")
    epsilon, delta = given.positive("epsilon", _LARGEST_EPSILON), given.number("delta", 0.0, 1.0)
    sensitivity, value = given.positive("sensitivity"), given.positive("value")
    against = given.choice("against", "ball", "entry")
    method = given.choice("method", *_METHODS)
    fewer, times = given.whole("fewer", 1, dimension), given.whole("times", 1, 10**9)
    tests = given.fields("proof")
    given.end()
    if order != 2:
        raise NotCovered(f"the bound is on the mean of |N|^{float(order):g}; only |N|^2 has a proof here.")
    if against == "entry" and (method != "scalar" or fewer > 1):
        raise NotCovered("only the bound for one number is known to hold against changes of single entries.")
    per_entry = value / sensitivity**2 / dimension
    _refute(per_entry, epsilon, delta)
    if times * epsilon > _LARGEST_EPSILON:
        raise NotCovered(f"shifts {times} times as long say nothing at epsilon = {float(epsilon):g}.")

    def grown() -> arb:
        return ball(delta) * (times * ball(epsilon)).expm1() / ball(epsilon).expm1()

    at = ball(delta) if times == 1 else refined(grown, _BITS)
    _METHODS[method](tests, Question(fewer, times * epsilon, at, per_entry * fewer / times**2))
    tests.end()
    shifts = "every shift of length" if against == "ball" else "every change of one entry by"
    proof.proved.append(
        f"noise on {dimension} numbers that is ({float(epsilon):.12g}, {float(delta):.12g})-private against {shifts} "
        f"{float(sensitivity):.12g} has a mean square of at least {float(value):.12g}"
    )


def _refute(per_entry: Fraction, epsilon: Fraction, delta: Fraction) -> None:
    """Normal noise of a smaller variance, in units of the sensitivity, may be private: then no such bound is true."""
    variance = per_entry * (1 - Fraction(1, 10**6))
    with working(_BITS):
        found = gaussian_delta(1 / variance, epsilon, 20) if per_entry < 10**12 else arb(0)
    if found.is_finite() and ends(found)[1] <= delta and per_entry < 10**12:
        raise Refuted(f"normal noise with {float(variance):.6g} of it for each entry is private, too.")


def _short_of(question: Question, found: arb) -> NotCovered:
    return NotCovered(f"the tests prove only {shown(found)}, in units of the shift; {float(question.value):.12g} is stated.")


def _scalar(given: Fields, question: Question) -> None:
    """One number that may change by 1; nothing is asked of other shifts.

    Let r = e^-eps, P(K = k) proportional to r^|k|, f_T(t) = min(t^2, T^2). For every l that is at most E f_T(x + K)
    for all x, E n^2 >= l - 2 delta (T^2 - l)/(e^eps - 1): for t >= -1/2 let c(t) = sum_(i>=1) r^i (f_T(t + i) - l),
    which grows with t from at least 0 (pairs of points of 1/2 + Z have equal f_T) to (T^2 - l)/(e^eps - 1), and has
    c(t) = e^eps c(t - 1) + l - f_T(t) for t >= 1/2. As a test on n > -1/2, and mirrored, it leaves t^2 + tests >= l
    everywhere. With T^2 = N^2 (1 + r^N/S), S = 1 + 2 sum_(i<N) r^i + r^N, x = 0 is where E f_T(x + K) is least: for
    |x| <= 1/2, up to a factor, E f_T(x + K) - E f_T(K) >= x^2 (S + r^N) - r^N max((N + |x|)^2 - T^2, 0), a parabola
    whose minimum is r^N (T^2 - N^2) - (N r^N)^2/S (and N <= T < N + 1/2, since S > (2N - 1) r^N).
    With T = N the least is lower by at most (1 - r)/(1 + r) (N r^N)^2/S.
    """
    steps = given.whole("steps")
    if question.dimension != 1:
        raise Unreadable("the scalar bound is for one number: fewer must be 1.")

    def proved() -> arb:
        r, n = (-ball(question.epsilon)).exp(), arb(steps)
        end, rest = (-ball(steps * question.epsilon)).exp(), -(-ball(question.epsilon)).expm1()  # r^N, 1 - r
        inside = r * -(-ball(steps * question.epsilon)).expm1() / rest  # r + ... + r^N
        firsts = (inside - n * end * r) / rest  # r + 2 r^2 + ... + N r^N
        level = 2 * (2 * firsts - inside) / (1 + r)  # E min(K^2, N^2): (2 i - 1) P(|K| >= i), P = 2 r^i/(1 + r)
        weights, spent = 1 + 2 * inside - end, 2 * question.delta * r / rest
        widened = n * n * end / weights
        wide, low = level + widened * 2 * end * r / (1 + r), level - rest / (1 + r) * (n * end) ** 2 / weights
        return (wide - spent * (n * n + widened - wide)).max(low - spent * (n * n - low))

    found = refined(proved, 60)
    if not found >= ball(question.value):
        raise _short_of(question, found)


def _line(given: Fields, question: Question) -> None:
    """One number and shifts of several lengths d = j/n, with tests that are linear on cells.

    The edges are i/n and o + i/n, so that every shift moves cells onto cells (which hold their left ends). For a shift
    by d > 0 the test is c_d(n)/lambda_d for n >= 0 and 0 otherwise; for -d it is the mirror image. Averaged over both,
    E n^2 >= min over r of G(r) - delta sum lambda_d, G(r) = r^2 + sum_d [c_d(r) - e^eps c_d(r - d)]/2, lambda_d = max
    c_d. On a cell of width w, r^2 is above its chord less w^2/4, and the rest is linear: the ends decide.
    """
    scale, per_unit = given.positive("scale"), given.whole("per_unit", 1, 10**4)
    offset = given.positive("offset")
    if not offset * per_unit < 1 or question.dimension != 1:
        raise Unreadable(f"{given.name}.offset is not within one cell, or the tests are not for one number.")
    tests: list[tuple[int, list[float]]] = []
    for one in given.objects("tests", 200):
        tests.append((one.whole("shift", 1, per_unit), one.numbers("values", 2 * _MOST_CELLS)))
        one.end()
    cells = max((len(values) // 2 + 2 * shift for shift, values in tests), default=0)
    if cells > _MOST_CELLS or sum(len(values) for _, values in tests) > _MOST_TERMS:
        raise NotCovered("the tests have too many cells.")
    if any(len(values) % 2 or min(values, default=0.0) < 0.0 for _, values in tests):
        raise Unreadable(f"{given.name}.tests have values below 0, or not two for each cell.")
    with working(_BITS):
        grow, spent, low = ball(question.epsilon).exp(), arb(0), ball(_edge(cells, per_unit, offset) ** 2 / scale)
        sums = [arb(0)] * (2 * cells)
        for shift, values in tests:
            spent += max(values, default=0.0)
            for place, c in enumerate(values):
                if c > 0.0:
                    sums[place] += arb(c) / 2
                    sums[place + 4 * shift] -= grow * c / 2
        for cell in range(cells):
            left, right = (_edge(i, per_unit, offset) for i in (cell, cell + 1))
            sag = (right - left) ** 2 / 4
            for place, edge in ((2 * cell, left), (2 * cell + 1, right)):
                low = low.min(ball((edge**2 - sag) / scale) + sums[place])
        found = ball(scale) * (low - spent * question.delta)
    if not found >= ball(question.value):
        raise _short_of(question, found)


def _edge(place: int, per_unit: int, offset: Fraction) -> Fraction:
    return Fraction(place // 2, per_unit) + (offset if place % 2 else 0)


def _caps(given: Fields, question: Question) -> None:
    with working(_BITS):
        caps_exceed(given, *question)


_METHODS: Final[dict[str, Callable[[Fields, Question], None]]] = {"scalar": _scalar, "line": _line, "caps": _caps}
