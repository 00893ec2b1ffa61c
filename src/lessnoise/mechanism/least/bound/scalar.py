r"""The least noise on one number that may change by 1, as a lower bound for noise on any number of entries.

Let n be a real number drawn such that n and n + 1 are (a, d)-indistinguishable, in both directions. Nothing is asked of
other shifts, so the bound holds for every kind of noise. Let f be an even function that grows with |n| (n^2, say), cut
it off at f(T), f_T(t) = min(f(t), f(T)), and let K be an integer with P(K = k) proportional to r^|k|, r = e^-a. Then

    E f(n) >= l - 2 d m,    l = min over x of E f_T(x + K),    m = (f(T) - l)/(e^a - 1),    for every T >= 0.

*Proof.* For t >= -1/2 let c(t) = sum over i >= 1 of r^i (f_T(t + i) - l). It grows with t and is at most m.
At t = -1/2 the sum is r (E f_T(1/2 + K) - l)/(1 - r) >= 0: f_T is even, so the points of 1/2 + Z come in pairs of equal
f_T. So 0 <= c <= m. And c(t) = e^a c(t - 1) + l - f_T(t) for t >= 1/2.

Every real number is x + k with an integer k and |x| <= 1/2. The test to the right is c+(x + k) = c(x + k) for k >= 0
and 0 for k < 0; the test to the left is its mirror image, c-(x + k) = c(-x - k) for k <= 0 and 0 for k > 0. Privacy
gives E c+(n) - e^a E c+(n - 1) <= m d, the same for c- with n + 1, and so

    E f(n) >= E G(n) - 2 m d,    G(t) = f(t) + c+(t) - e^a c+(t - 1) + c-(t) - e^a c-(t + 1).

For k > 0, G(x + k) = f(x + k) + l - f_T(x + k) >= l, and for k < 0 likewise. For k = 0, G(x) = f(x) + c(x) + c(-x) is
at least f_T(x) plus the sum over i >= 1 of r^i (f_T(x + i) + f_T(x - i) - 2 l). That is l + (E f_T(x + K) - l) (1 + r)
/(1 - r), which is at least l.  []

*Where the least x is.* Let N <= T <= N + 1/2 with an integer N, and |x| <= 1/2. For f(t) = t^2, (i + x)^2 + (i - x)^2 =
2 i^2 + 2 x^2, and only the point N + |x| may be cut off. Up to the factor (1 - r)/(1 + r), E f_T(x + K) - E f_T(K) is

    x^2 (1 + 2 sum_(i <= N) r^i) - r^N max((N + |x|)^2 - T^2, 0) >= min(0, r^N (T^2 - N^2) - (N r^N)^2/S),

with S = 1 + 2 sum_(i < N) r^i + r^N (the minimum of a parabola). So x = 0 is best if T^2 >= N^2 (1 + r^N/S), and T = N
costs (N r^N)^2/S. For f(t) = |t| take T = N: |i + x| + |i - x| = 2 i, and x = 0 is best without any condition.

*Quantiles.* For f(t) = 1 beyond q and 0 up to there, an interval [-q, q] with q < j/2 holds at most j points of x + Z,
and j neighbouring values of K have the most probability around 0. So P(|n| > q) >= l - 2 d (1 - l)/(e^a - 1) with l the
probability of the others, 2 r^(N+1)/(1 + r) for j = 2 N + 1 and r^(N+1) for j = 2 N + 2.

At T = N, without that cost, l - 2 d m is the least E f of an integer (the law in ``families/geometric.py``, N = K + 1):
for |t| the bound is that optimum, and for t^2 it is a little below. It must be: a law that spends more of d on one
side, moved by its mean and mixed with its mirror image, can have a smaller E n^2 than any integer.
"""

from __future__ import annotations

import functools
import math
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING

from lessnoise import validation
from lessnoise.mechanism.least.objective import Power

if TYPE_CHECKING:
    from lessnoise.mechanism.least.objective import Problem

_DIGITS = 60
_LARGEST = 700.0  # epsilon; beyond, the bound is no float


def scalar_bound(epsilon: float, delta: float, order: int = 2) -> float:
    """No real noise n that is (epsilon, delta)-private against a change by 1 has a smaller E |n|^order, order 1 or 2.

    >>> f"{scalar_bound(1.0, 1e-6):.4f}"  # e^1 falling a step: 2 e^-1/(1 - e^-1)^2 = 1.8414
    '1.8411'
    >>> f"{scalar_bound(1e-5, 1e-7) * 1e-5**2:.2f}"  # Laplace noise has 2.00
    '1.53'
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta_or_zero(delta)
    if order not in (1, 2):
        raise ValueError(f"order={order} must be 1 or 2.")
    return _bound(epsilon, delta, order)


def entries_bound(problem: Problem) -> float:
    """A bound for the mean of a power, from one entry at a time.

    ||n||^2 is the sum of M squares, and ||n|| is at least the sum of |n_i| over sqrt(M).
    """
    dimension, epsilon, delta, objective = problem
    if not isinstance(objective, Power) or objective.order not in (1.0, 2.0):
        return 0.0
    order = int(objective.order)
    return float(scalar_bound(epsilon, delta, order) * dimension ** (0.5 * order) * (1.0 - 1e-15))


def scalar_quantile_bound(epsilon: float, delta: float, probability: float) -> float:
    """No real noise that is private against a change by 1 has a smaller quantile of n^2.

    >>> f"{scalar_quantile_bound(1.0, 1e-6, 0.95):.4f}"  # P(|n| > q) > 0.05 for all q < 2.5
    '6.2500'
    """
    if epsilon > _LARGEST:
        return 0.0
    with localcontext(Context(prec=_DIGITS + _lost(epsilon))):
        r, spent = _ratio(epsilon, delta)
        # l (1 + spent) - spent > 1 - probability
        least = (1 - Decimal(probability) + spent) / (1 + spent) * (1 + Decimal(10) ** -40)
        if least >= 1:
            return 0.0
        odd = int((2 / (least * (1 + r))).ln() / Decimal(epsilon))  # the largest N + 1 with l >= least
        even = int(-least.ln() / Decimal(epsilon))
        points = max(2 * odd - 1, 2 * even, 0)
        return points * points / 4.0 * (1.0 - 1e-15)


def scalar_steps(epsilon: float, delta: float) -> int:
    """The N of the bound on E n^2, with which it can be checked."""
    return _best(epsilon, delta, 2)[1]


def _bound(epsilon: float, delta: float, order: int) -> float:
    return _best(epsilon, delta, order)[0]


@functools.lru_cache(maxsize=256)
def _best(epsilon: float, delta: float, order: int) -> tuple[float, int]:
    if epsilon > _LARGEST:
        return 0.0, 1
    with localcontext(Context(prec=_DIGITS + _lost(epsilon))):
        r, spent = _ratio(epsilon, delta)
        # l - 2 d m grows with T as long as P(|K| >= T) = 2 r^N/(1 + r) is above this share. Where T is not N, or T = N
        # has its cost, the best N can be one less. Whichever N is taken, the bound is true.
        share = spent / (1 + spent)
        steps = (2 / (share * (1 + r))).ln() if share > 0 else Decimal(100)  # beyond 100 there is next to nothing
        last = int(steps / Decimal(epsilon))
        found, steps_taken = max((_value(r, spent, n, order), n) for n in range(max(last - 1, 1), last + 2))
        return max(float(found), 0.0) * (1.0 - 1e-15), steps_taken


def _ratio(epsilon: float, delta: float) -> tuple[Decimal, Decimal]:
    """The r of the formulas, and 2 d/(e^a - 1)."""
    r = (-Decimal(epsilon)).exp()
    return r, 2 * Decimal(delta) * r / (1 - r)


def _lost(epsilon: float) -> int:
    """Digits that the closed forms lose where epsilon is small."""
    return -3 * min(math.floor(math.log10(epsilon)), 0)


def _value(r: Decimal, spent: Decimal, n: int, order: int) -> Decimal:
    """The best l - 2 d m of a few T next to n."""
    end = r**n
    inside = r * (1 - end) / (1 - r)  # r + ... + r^n
    weight = (1 - r) / (1 + r)  # P(K = 0)
    beyond = 2 * end * r / (1 + r)  # P(|K| > n)
    if order == 1:
        level = 2 * inside / (1 + r)  # E min(|K|, n), a sum of P(|K| >= i) = 2 r^i/(1 + r)
        return level - spent * (n - level)
    firsts = (inside - n * end * r) / (1 - r)  # r + 2 r^2 + ... + n r^n
    level = 2 * (2 * firsts - inside) / (1 + r)  # E min(|K|, n)^2, a sum of (2 i - 1) P(|K| >= i)
    weights = 1 + 2 * inside - end  # S
    cost = weight * (n * end) ** 2 / weights
    widened = n * n * end / weights  # of T^2
    return max(
        (level - cost) - spent * (n * n - (level - cost)),
        (level + widened * beyond) - spent * (n * n + widened - (level + widened * beyond)),
    )
