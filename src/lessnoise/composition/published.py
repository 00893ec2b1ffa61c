"""The published routes to a total guarantee, from (epsilon, delta) pairs alone: looser than the exact curve.

Every function rounds to the safe side of its formula, but states only what its source states: nothing here looks at a
mechanism.

* basic composition: Dwork, McSherry, Nissim & Smith 2006;
* strong (advanced) composition: Dwork, Rothblum & Vadhan 2010, the two forms in use;
* amplification by sampling, (q epsilon0, q delta0), as the paper on R1SMG uses it;
* zero-concentrated DP: Bun & Steinke 2016; Renyi DP: Mironov 2017; the conversion of Canonne, Kamath & Steinke 2020.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Guarantee

_UP = 1.0 + 1e-14
_ORDERS = tuple(1.0 + 10.0 ** (k / 20.0) for k in range(-60, 121))


class Amortised(NamedTuple):
    """The budget of each step."""

    epsilon: float
    delta: float


def basic_composition(epsilon: float, delta: float, n: int) -> Guarantee:
    """n releases of (epsilon, delta): (n epsilon, n delta).

    >>> print(basic_composition(0.1, 1e-8, 100))
    (10.0001, 1.00001e-06)-DP under add/remove
    """
    epsilon, delta = validation.nonnegative_epsilon(epsilon), validation.delta_or_zero(delta)
    n = validation.whole_number("n", n)
    return Guarantee(n * epsilon * _UP, min(n * delta * _UP, 1.0))


def advanced_composition(epsilon: float, delta: float, n: int, slack: float) -> Guarantee:
    """n releases of (epsilon, delta), with a further delta of ``slack`` (Dwork, Rothblum & Vadhan 2010, Theorem III.3).

    Epsilon is sqrt(2 n ln(1/slack)) epsilon + n epsilon (e^epsilon - 1), delta is n delta + slack.

    >>> f"{advanced_composition(0.01, 0.0, 1000, 1e-6).epsilon:.4f}"
    '1.7628'
    """
    return strong_composition(epsilon, delta, steps=validation.whole_number("n", n), rate=1.0, slack=slack)


def strong_composition(
    epsilon: float, delta: float, *, steps: float, rate: float = 1.0, slack: float = 1e-10
) -> Guarantee:
    """Strong composition of ``steps`` releases, each amplified by sampling at ``rate`` to (q epsilon, q delta).

    The equation of the R1SMG paper, steps = E/q; q epsilon in place of ln(1 + q (e^epsilon - 1)) is what it uses,
    and is not an upper bound: this is the published number, not a proof.

    >>> total = strong_composition(0.7125, 3.33e-7, steps=30 * 60000 / 256, rate=256 / 60000)
    >>> f"({total.epsilon:.3f}, {total.delta:.3g})"
    '(1.795, 9.99e-06)'
    """
    epsilon, delta = validation.nonnegative_epsilon(epsilon), validation.delta_or_zero(delta)
    steps, rate, slack = validation.positive("steps", steps), _rate(rate), validation.delta(slack, "slack")
    total = min(steps * rate * delta * _UP + slack, 1.0)
    return Guarantee(_strong_epsilon(rate * epsilon, steps, slack) * _UP, total)


def amortise(epsilon: float, delta: float, *, steps: float, rate: float = 1.0, slack: float = 1e-10) -> Amortised:
    """The inverse: the (epsilon0, delta0) of each step whose strong composition is (epsilon, delta).

    >>> each = amortise(1.795, 1e-5, steps=30 * 60000 / 256, rate=256 / 60000)  # MNIST; the paper prints 0.71
    >>> f"{each.epsilon:.4f}, {each.delta:.3g}"
    '0.7125, 3.33e-07'
    >>> f"{amortise(2.673, 1e-5, steps=100 * 50000 / 256, rate=256 / 50000).epsilon:.4f}"  # CIFAR-10; it prints 0.54
    '0.5217'
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    steps, rate, slack = validation.positive("steps", steps), _rate(rate), validation.delta(slack, "slack")
    if slack >= delta:
        raise InvalidInput(f"slack={slack:g} must be below delta={delta:g}: pass a smaller one.")
    low, high = 0.0, epsilon / rate
    while _strong_epsilon(rate * high, steps, slack) <= epsilon:
        high *= 2.0
    while high - low > 1e-15 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if _strong_epsilon(rate * middle, steps, slack) <= epsilon else (low, middle)
    return Amortised(low, (delta - slack) / (steps * rate) / _UP)


def gaussian_zcdp(sigma: float, sensitivity: float = 1.0, n: int = 1) -> float:
    """rho of n releases with Gaussian noise: n (D/sigma)^2/2 (Bun & Steinke 2016, Proposition 1.6).

    >>> gaussian_zcdp(2.0, n=8)  # rounded up
    1.00000000000001
    """
    ratio = validation.sensitivity(sensitivity) / validation.positive("sigma", sigma)
    return 0.5 * validation.whole_number("n", n) * ratio * ratio * _UP


def zcdp_to_dp(rho: float, delta: float) -> float:
    """Epsilon at a delta: the least over Renyi orders, at which rho-zCDP is (order, rho order)-Renyi DP.

    >>> f"{zcdp_to_dp(0.5, 1e-5):.3f}"
    '4.729'
    """
    rho = validation.positive("rho", rho)
    return min(rdp_to_dp(order, order * rho, delta) for order in _ORDERS)


def gaussian_rdp(order: float, sigma: float, sensitivity: float = 1.0, n: int = 1) -> float:
    """Renyi divergence bound of n releases with Gaussian noise: n order (D/sigma)^2/2 (Mironov 2017)."""
    return _order(order) * gaussian_zcdp(sigma, sensitivity, n)


def rdp_to_dp(order: float, rho: float, delta: float) -> float:
    """Epsilon of (order, rho)-Renyi DP at a delta (Canonne, Kamath & Steinke 2020, Proposition 12).

    rho + ln((order - 1)/order) - (ln delta + ln order)/(order - 1), and never below 0.
    """
    order, rho, delta = _order(order), validation.positive("rho", rho), validation.delta(delta)
    epsilon = rho + math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)
    return max(epsilon * _UP if epsilon > 0.0 else epsilon, 0.0)


def _strong_epsilon(each: float, steps: float, slack: float) -> float:
    if each > 700.0:
        return math.inf
    return math.sqrt(2.0 * steps * math.log(1.0 / slack)) * each + steps * each * math.expm1(each)


def _order(value: object) -> float:
    order = validation.number("order", value)
    if order <= 1.0:
        raise InvalidInput(f"order={value} must be above 1: pass a Renyi order such as 8.")
    return order


def _rate(value: object) -> float:
    rate = validation.number("rate", value)
    if not 0.0 < rate <= 1.0:
        raise InvalidInput(f"rate={value} must be above 0 and at most 1: pass the probability of taking part.")
    return rate
