"""What a finite machine adds to delta, the only place where that is known. Proof: ``docs/theory/noise-engine.md``.

In the word model (64-bit words independent and uniform) an output *is* the rounded real-valued mechanism. What is left
is the distance of the words from that model; an output at distance tau from an (epsilon, delta) mechanism's, for both
of two neighbours, is (epsilon, delta + (1 + e^epsilon) tau)-private. Distances of several releases add up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lessnoise.guarantees import Bracket

if TYPE_CHECKING:
    from collections.abc import Callable


def machine_distance(count: int) -> float:
    """Tau of a release of ``count`` values, in total variation.

    A block cipher's outputs under one key are distinct: q blocks of an ideal cipher are within E[q^2] 2^-129 of
    independent uniform ones. A release reads some 1.04 words a value, 2.1 if a norm is refined, 3 for integers, and a
    few hundred more; a cipher block is two words. The bound on the root of E[q^2] that is used, 2 blocks a value and
    2048 more, leaves room for all further levels, which are ever less likely.

    >>> f"{machine_distance(10**8):.1e}"
    '5.9e-23'
    """
    return (2.0 * count + 2048.0) ** 2 * 2.0**-129


def machine_delta(epsilon: float, distance: float) -> float:
    """What a distance adds to delta at an epsilon: (1 + e^epsilon) tau, rounded up, at most 1."""
    return min((1.0 + math.exp(min(epsilon, 700.0))) * distance * (1.0 + 2.0**-40), 1.0)


def delta_numeric(epsilon: float, count: int) -> float:
    """What the machine adds to the delta of one release of ``count`` values.

    >>> f"{delta_numeric(1.0, 10**8):.1e}"
    '2.2e-22'
    """
    return machine_delta(epsilon, machine_distance(count))


def total_delta(exact: float, numeric: float) -> float:
    """The sum, rounded up."""
    return min(math.nextafter(exact + numeric, math.inf) if numeric else exact, 1.0)


def reserved(delta: float, epsilon: float, count: int) -> float:
    """The delta to calibrate the ideal mechanism at, so that with ``delta_numeric`` it keeps ``delta``.

    Where ``delta_numeric`` is not far below delta there is nothing to reserve: such a target is beyond what a
    cipher can promise, and a release for it is refused.

    >>> reserved(1e-6, 1.0, 1000) < 1e-6, total_delta(reserved(1e-6, 1.0, 1000), delta_numeric(1.0, 1000)) <= 1e-6
    (True, True)
    """
    if not can_keep(delta, epsilon, count):
        return delta
    return math.nextafter(math.nextafter(delta - delta_numeric(epsilon, count), 0.0), 0.0)


def can_keep(delta: float, epsilon: float, count: int) -> bool:
    """Whether ``delta_numeric`` is far below delta: at delta = 1e-6 up to an epsilon of some 50.

    >>> can_keep(1e-6, 50.0, 1000), can_keep(1e-6, 55.0, 1000)
    (True, False)
    """
    return delta_numeric(epsilon, count) <= delta * 2.0**-10


def with_machine(exact: Bracket, epsilon: float, distance: float) -> Bracket:
    """The delta of what a machine draws, from that of the ideal at the same epsilon."""
    return Bracket(exact.lower, total_delta(exact.upper, machine_delta(epsilon, distance)))


def epsilon_with_machine(curve: Callable[[float], Bracket], delta: float, distance: float) -> Bracket:
    """The epsilon of what a machine draws, from the curve of the ideal: epsilon as a function of delta.

    The upper end is that of a smaller delta, so that the machine's share fits in beside it. A pure target (delta = 0)
    is that of the ideal: the machine's share has no place there.

    >>> pure = lambda delta: Bracket(1.0, 1.0)
    >>> epsilon_with_machine(pure, 1e-6, 1e-20).upper, epsilon_with_machine(pure, 1e-6, 1e-5).upper
    (1.0, inf)
    """
    exact = curve(delta)
    if delta == 0.0 or distance == 0.0:
        return exact
    share = 2.0 * machine_delta(exact.upper, distance)
    reduced = math.nextafter(delta - share, 0.0)
    upper = curve(reduced).upper if reduced > 0.0 else math.inf
    if upper < math.inf and machine_delta(upper, distance) > share:
        upper = math.inf  # where the curve is that flat nothing is proved
    return Bracket(min(exact.lower, upper), upper)
