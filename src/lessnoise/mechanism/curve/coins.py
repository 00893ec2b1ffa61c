"""Steps that lose +a or -a, nothing else: n of them are n tosses of a coin, exactly.

So it is with geometric noise when one entry changes by 1: with p = 1/(1 + e^-a), B of n losses are positive with the
binomial probability of B, and delta(eps) = E[(1 - e^(eps - a (2 B - n)))_+].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve.dispatch import invert_curve

MOST_TOSSES = 10**6
_ROUNDING = 1e-8  # of ln C(n, B), which has at most 15 digits before the point that matter


@dataclass(frozen=True)
class Coins:
    """A number of tosses, each of which loses ``size`` or gains it.

    >>> Coins(1.0, 1).delta(0.0).middle, Coins(0.5, 2).delta(1.0).upper
    (0.46211715726000..., 0.0)
    """

    size: float
    tosses: int

    def delta(self, epsilon: float, tolerance: float = 0.0) -> Bracket:
        """The binomial sum."""
        from scipy.special import gammaln

        n, a = self.tosses, self.size
        first = max(math.floor(0.5 * (epsilon / a + n)), 0)
        positive = np.arange(first, n + 1.0)
        gains = -np.expm1(np.minimum(epsilon - a * (2.0 * positive - n), 0.0))
        # ln p = -ln(1 + e^-a), ln(1 - p) = ln p - a.
        logs = gammaln(n + 1.0) - gammaln(positive + 1.0) - gammaln(n - positive + 1.0)
        logs -= n * math.log1p(math.exp(-a)) + a * (n - positive)
        value = abs(float(np.dot(np.exp(logs), gains)))  # 0 may come as -0
        return Bracket(value * (1.0 - _ROUNDING), min(value * (1.0 + _ROUNDING), 1.0))

    def epsilon(self, delta: float) -> Bracket:
        """Its inverse."""
        pure = self.size * self.tosses * (1.0 + 1e-15)
        if self.delta(0.0).upper <= delta:
            return Bracket(0.0, 0.0)

        def at(x: float, tolerance: float) -> Bracket:
            return self.delta(pure * math.exp(x))

        found = invert_curve(at, delta, start=-1.0, lowest=-60.0, highest=0.0)
        lower = 0.0 if found.lower == -math.inf else pure * math.exp(found.lower) * (1.0 - 1e-15)
        upper = min(pure * math.exp(found.upper) * (1.0 + 1e-15), pure) if found.upper < math.inf else pure
        return Bracket(min(lower, upper), upper)


def largest_size(tosses: int, epsilon: float, delta: float) -> float:
    """The largest loss of a toss at which so many of them keep (epsilon, delta), from below.

    >>> round(largest_size(1, 1.0, 1e-300), 12), round(largest_size(20, 1.0, 1e-6), 3)
    (1.0, 0.057)
    """
    low, high = epsilon / tosses * (1.0 - 1e-15), 2.0 * epsilon + 10.0
    while high > low * (1.0 + 1e-12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if Coins(middle, tosses).delta(epsilon).upper <= delta else (low, middle)
    return low
