"""Lower bounds on the noise of every mechanism, proved from multipliers and tests.

A file states: every noise N on R^M that is (epsilon, delta)-private against every shift of l2 length at most D (or,
with "against": "entry", against every change of one entry by D) has E |N|^2 >= value. It carries tests, and whatever
they are, what follows from them is true. Three rules bring it to noise in R^m, private against shifts of length 1:

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

from lessnoise_verify.balls import ball, refined, shown, working
from lessnoise_verify.caps import caps_exceed
from lessnoise_verify.document import Fields, NotCovered, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise_verify.certificate import Proof

_LARGEST_EPSILON: Final = 700
_MOST_CELLS: Final = 20_000
_MOST_TERMS: Final = 2 * 10**5
_BITS: Final = 128


def check_bound(given: Fields, proof: Proof) -> None:
    """The file of a lower bound."""
    given.take("lessnoise", None)
    dimension, order = given.whole("dimension"), given.number("order", 0.0, 100.0)
    epsilon, delta = given.positive("epsilon", _LARGEST_EPSILON), given.number("delta", 0.0, 1.0)
    sensitivity, value = given.positive("sensitivity", 1e300), given.positive("value", 1e300)
    against = given.choice("against", "ball", "entry")
    method = given.choice("method", *_METHODS)
    fewer, times = given.whole("fewer", 1, dimension), given.whole("times", 1, 10**9)
    tests = given.fields("proof")
    given.end()
    if order != 2:
        raise NotCovered(f"the bound is on the mean of |N|^{float(order):g}; only |N|^2 has a proof here.")
    if against == "entry" and (method != "scalar" or fewer > 1):
        raise NotCovered("only the bound for one number is known to hold against changes of single entries.")
    if method != "caps" and fewer > 1:
        raise Unreadable("the bound is for one number: fewer must be 1.")
    if times * epsilon > _LARGEST_EPSILON:
        raise NotCovered(f"shifts {times} times as long say nothing at epsilon = {float(epsilon):g}.")

    def grown() -> arb:
        return ball(delta) * (times * ball(epsilon)).expm1() / ball(epsilon).expm1()

    with working(_BITS):
        at, least = refined(grown, _BITS), value * fewer / dimension / (times * sensitivity) ** 2
        _METHODS[method](tests, fewer, times * epsilon, at, least)
    tests.end()
    shifts = "every shift of length" if against == "ball" else "every change of one entry by"
    proof.proved.append(
        f"all noise on {dimension} numbers that is ({float(epsilon):.12g}, {float(delta):.12g})-private against "
        f"{shifts} {float(sensitivity):.12g} has a mean square of at least {float(value):.12g}"
    )


def _scalar(given: Fields, dimension: int, epsilon: Fraction, delta: arb, value: Fraction) -> None:
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

    def proved() -> arb:
        r, n = (-ball(epsilon)).exp(), arb(steps)
        end, rest = (-ball(steps * epsilon)).exp(), -(-ball(epsilon)).expm1()  # r^N, 1 - r
        inside = r * -(-ball(steps * epsilon)).expm1() / rest  # r + ... + r^N
        firsts = (inside - n * end * r) / rest  # r + 2 r^2 + ... + N r^N
        level = 2 * (2 * firsts - inside) / (1 + r)  # E min(K^2, N^2): (2 i - 1) P(|K| >= i), P = 2 r^i/(1 + r)
        weights, spent = 1 + 2 * inside - end, 2 * delta * r / rest
        widened = n * n * end / weights
        wide, low = level + widened * 2 * end * r / (1 + r), level - rest / (1 + r) * (n * end) ** 2 / weights
        return (wide - spent * (n * n + widened - wide)).max(low - spent * (n * n - low))

    found = refined(proved, 60)
    if not found >= ball(value):
        raise NotCovered(f"the tests prove only {shown(found)} for shifts of length 1, not {shown(ball(value))}.")


def _rearranged(given: Fields, dimension: int, epsilon: Fraction, delta: arb, value: Fraction) -> None:
    """One number and all shifts up to 1, by rearrangement and a march outwards.

    Let N have a density h (else add a little uniform noise: it keeps the promise and costs as little as wished). For v
    uniform in [-1, 1], delta is at least the mean of 1 - int over c of |{h > c} n ({e^eps h > c} - v)|, and Riesz's
    inequality makes that smaller for the symmetric falling rearrangement of h, whose mean square is smaller, too. So
    let h be symmetric and fall. The tests 1{n v > 0, |v| > 1 - t(|n|)}, 0 <= t <= 1, of multiplier lambda, give

        E n^2 >= nu - lambda delta  if  X(r) = int_0^r (G - nu) >= 0 for all r,
        G(r) = r^2 + lambda (t(r) - e^eps L(r))/2,   L(r) = |{a in [max(r-1, 0), r] : a - (r-1) < t(a)}|,

    since h is a mixture of uniform laws on centred intervals. Here t is constant on cells of width w = 1/n, at most
    1 - w, and each value is the least (nearly) with which either G >= nu on the cell, or X at
    both ends is at least w/4 times the range of G, more than which it cannot dip below its chord. L is at most the
    largest t(a) that counts, and if the first cells from r - 1 on all have t >= b, and are longer than b, at least b.
    """
    scale, per_unit = given.positive("scale"), given.whole("per_unit", 2, 10**4)
    multiplier = given.positive("multiplier")
    n, half, grow = per_unit, ball(multiplier / 2), ball(epsilon).exp()
    nu, w = ball(value / scale) + ball(multiplier) * delta, ball(Fraction(1, n))
    into = half * grow * w
    inflow: dict[int, _Inflow] = {}
    x, quiet, work = arb(0), 0, 0
    for j in range(_MOST_CELLS):
        inner, outer, mean = (
            ball(Fraction(k, 3 * n * n) / scale) for k in (3 * j**2, 3 * (j + 1) ** 2, 3 * j * (j + 1) + 1)
        )
        length, longest, least, run = inflow.pop(j, _NOTHING)
        shortest = least.min(arb(run - 1)) if run else arb(0)
        gain = x + w * (mean - nu - into * length)
        dip = w * (outer - inner + into * (longest - shortest)) / 4
        t = (nu - inner + into * longest) / half
        if x >= dip:
            t = t.min((dip - gain) / (w * half))
        t = (t.upper() * (1 + arb(2) ** -50)).max(arb(0))
        if not t <= 1 - w:
            break
        before, x = x, gain + w * half * t
        if not (half * t >= nu - inner + into * longest or (before >= dip and x >= dip)):
            break
        quiet = 0 if t > 0 else quiet + 1
        if quiet > n and inner >= nu:  # nothing but r^2 from here on
            return
        m, cells = 0, t * n
        while t > 0 and not m >= cells + 1:
            old = inflow.get(j + n - m, _NOTHING)
            least, run = (cells if m == 0 else old.least.min(cells), m + 1) if old.run == m else old[2:]
            inflow[j + n - m] = _Inflow(old.length + _mean_length(cells, m), old.longest.max(cells), least, run)
            m += 1
        work += m
        if work > _MOST_TERMS:
            break
    raise NotCovered("the march outwards does not prove the bound.")


class _Inflow(NamedTuple):
    """What the tests on [r - 1, r] are for r in a cell, in widths of cells."""

    length: arb  # L, on average over the cell
    longest: arb
    least: arb  # t on the first cells from r - 1 on
    run: int  # as many as follow each other


_NOTHING: Final = _Inflow(arb(0), arb(0), arb(0), 0)


def _mean_length(t: arb, m: int) -> arb:
    """A bound on the mean length, over x in [0, 1], of {u in [m, m+1] : x <= u < x + t}.

    It is min(1 - x, t) for m = 0 and x + t - m, cut to [0, 1], for others.
    """
    zero, one = arb(0), arb(1)
    if m == 0:
        below = t.min(one)
        return below - below * below / 2
    rise, rest = (t - m + 1).max(zero).min(one), (m + 1 - t).max(zero).min(one)
    return rise * rise / 2 if t <= m else 1 - rest * rest / 2


_METHODS: Final[dict[str, Callable[[Fields, int, Fraction, arb, Fraction], None]]] = {
    "scalar": _scalar,
    "rearranged": _rearranged,
    "caps": caps_exceed,
}
"""Each proves, or raises NotCovered: noise in R^m that is (epsilon, delta)-private against shifts of length 1 has
E |n|^2 >= value; of the tests, m, epsilon, delta and the value."""
