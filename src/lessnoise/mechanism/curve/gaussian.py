"""The Gaussian mechanism's curve in closed form (Balle & Wang 2018, Theorem 8), standard library only.

With mu = D/sigma, a = (eps/mu - mu/2)/sqrt(2) and b = (eps/mu + mu/2)/sqrt(2),

    delta(eps) = [erfc(a) - e^eps erfc(b)]/2 = e^(-a^2) [erfcx(a) - erfcx(b)]/2,   e^eps = e^(b^2 - a^2).

For small mu the difference is the integral of -erfcx' over [a, b], which is positive throughout.
"""

from __future__ import annotations

import math

from lessnoise.guarantees import Bracket

# Checked against 50-digit arithmetic over mu = 1e-10..40 and eps = 0..100: within 2e-13.
RELATIVE_ERROR = 2e-12
NOTHING = 1e-304  # smaller values are not resolved
_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
_NODES = (0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845, 0.9739065285171717)
_WEIGHTS = (0.2955242247147529, 0.2692667193099963, 0.2190863625159820, 0.1494513491505806, 0.0666713443086881)


def erfcx(x: float) -> float:
    """e^(x^2) erfc(x), by continued fraction (DLMF 7.9.1) where the product would lose digits."""
    if x < 4.0:
        return math.exp(x * x) * math.erfc(x)
    # sqrt(pi) erfcx(x) = 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))), from the inside out.
    tail = x
    for n in range(60, 0, -1):
        tail = x + 0.5 * n / tail
    return 0.5 * _TWO_OVER_SQRT_PI / tail


def _erfcx_drop(centre: float, half: float) -> float:
    """erfcx(centre - half) - erfcx(centre + half)."""
    if half > 0.15:
        return erfcx(centre - half) - erfcx(centre + half)
    total = 0.0
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        for x in (centre - half * node, centre + half * node):
            total += weight * _erfcx_slope(x)
    return half * total


def _erfcx_slope(x: float) -> float:
    """-erfcx'(x) = 2/sqrt(pi) - 2 x erfcx(x), written without its cancellation for large x."""
    if x < 4.0:
        return _TWO_OVER_SQRT_PI - 2.0 * x * erfcx(x)
    tail = x
    for n in range(60, 1, -1):
        tail = x + 0.5 * n / tail
    inner = 0.5 / tail  # x + inner is the whole continued fraction
    return _TWO_OVER_SQRT_PI * inner / (x + inner)


def delta(mu: float, epsilon: float) -> float:
    """Evaluate the exact delta at mu = sensitivity / sigma, to a relative error below 1e-12.

    >>> round(delta(1.0, 0.5), 4)  # published value
    0.2384
    """
    centre, half = epsilon / mu * math.sqrt(0.5), 0.5 * mu * math.sqrt(0.5)
    a, b = centre - half, centre + half
    if a < -2.0:
        # erfc(a) is near 2 and the second term near 0.
        return 0.5 * math.erfc(a) - 0.5 * math.exp(-a * a) * erfcx(b)
    if a > 26.5:
        return 0.0  # below e^(-a^2)/2 < NOTHING; the bracket's upper end says so
    return 0.5 * math.exp(-a * a) * _erfcx_drop(centre, half)


def gaussian_delta(mu: float, epsilon: float) -> Bracket:
    """The closed form with its rounding error on either side; it is never 0, so the upper end is not, either."""
    if mu < NOTHING:  # delta is below mu
        return Bracket(0.0, NOTHING)
    if mu == math.inf:
        return Bracket(0.0, 1.0)
    # a carries an absolute error of a few ulps of eps/mu, which the factor e^(-a^2) amplifies.
    ratio = epsilon / mu
    error = RELATIVE_ERROR + 1e-15 * (ratio + mu) * (1.0 + abs(ratio - 0.5 * mu))
    if error > 1e-3:  # P(loss > eps) alone, at both ends of a; the second term is below erfcx(b)/2 < 1/(3 b)
        a, off = (ratio - 0.5 * mu) * math.sqrt(0.5), 1e-15 * (ratio + mu)
        lower = 0.5 * math.erfc(a + off) - 1.0 / (ratio + 0.5 * mu) if ratio < math.inf else 0.0
        upper = 0.5 * math.erfc(a - off) * (1.0 + RELATIVE_ERROR) + NOTHING if ratio < math.inf else NOTHING
        return Bracket(max(lower - RELATIVE_ERROR, 0.0), min(upper, 1.0))
    value = delta(mu, epsilon)
    if value < NOTHING:
        return Bracket(0.0, NOTHING)
    return Bracket(value * (1.0 - error), min(value * (1.0 + error), 1.0))


def delta_between(low: float, high: float, epsilon: float) -> Bracket:
    """Delta at a mu that lies between the two."""
    return Bracket(gaussian_delta(low, epsilon).lower, gaussian_delta(high, epsilon).upper)


def gaussian_scale(epsilon: float, target: float) -> float:
    """The smallest sigma for unit sensitivity whose upper delta(epsilon) is within the target.

    >>> f"{gaussian_scale(1.0, 1e-5):.5f}"
    '3.73063'
    """
    # In x = ln(sigma), ln(delta) is smooth, falling and concave over the whole range: secant steps
    # inside a shrinking bracket.
    goal = math.log(target * (1.0 - 4.0 * RELATIVE_ERROR))

    def excess(x: float) -> float:
        value = delta(math.exp(-x), epsilon)
        return math.log(value) - goal if value > 0.0 else -math.inf

    x = math.log((math.sqrt(max(-2.0 * math.log(target), 0.1)) + math.sqrt(2.0 * epsilon)) / (2.0 * epsilon))
    low = high = x
    while excess(low) <= 0.0:
        low -= 1.0
    while excess(high) > 0.0:
        high += 1.0
    at_low, at_high = excess(low), excess(high)
    for _ in range(200):
        if high - low <= 1e-13 * max(1.0, abs(high)):
            break
        step = at_low / (at_low - at_high) if math.isfinite(at_high) else 0.5
        middle = low + (high - low) * min(max(step, 1e-3), 1.0 - 1e-3)
        value = excess(middle)
        if value > 0.0:
            low, at_low = middle, value
            at_high *= 0.5  # Illinois: keep a stale end from stalling the search
        else:
            high, at_high = middle, value
            at_low *= 0.5
    sigma = math.exp(high)
    while gaussian_delta(1.0 / sigma, epsilon).upper > target:
        sigma *= 1.0 + 1e-13
    return sigma
