"""Slow, obvious reference implementations, written from the definitions and independent of the package.

Notation: noise n = R U in R^M, U uniform on the sphere, R of density proportional to r^(k-1) exp(-(r/s)^p), so that
R = s G^(1/p) with G ~ Gamma(k/p). Against a shift v with |v| = D the privacy loss at radius r and cosine t is

    L = g(|n+v|) - g(|n|),   g(r) = (M-k) ln r + (r/s)^p,   |n+v|^2 = r^2 + 2 r D t + D^2,

and delta(eps) = E[(1 - e^(eps-L))_+] = P[L > eps] - e^eps P[L < -eps].
"""

from __future__ import annotations

import contextlib
import functools
import math
import signal
from typing import NamedTuple

import mpmath
import numpy as np
from scipy import integrate, special


class Case(NamedTuple):
    """One point of one curve."""

    dimension: int
    k: float
    p: float
    scale: float
    sensitivity: float
    epsilon: float


@contextlib.contextmanager
def time_limit(seconds: float):
    """Fail a search that does not end, instead of waiting for it (where the platform has interval timers)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number, _frame):
        raise TimeoutError(f"no answer within {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


# The privacy loss, and its hockey-stick by sampling.


def log_growth(case: Case, log_radius, cosine):
    """ln(|n+v|/|n|)."""
    with np.errstate(over="ignore", divide="ignore"):
        kappa = np.exp(math.log(case.sensitivity) - log_radius)
        small = 0.5 * np.log1p(kappa * (2.0 * cosine + kappa))
    # Beyond kappa = 1e8 the other terms are below rounding, and the square may overflow.
    return np.where(kappa < 1e8, small, math.log(case.sensitivity) - log_radius)


def privacy_loss(case: Case, log_radius, cosine):
    """L of (ln r, t), from the definition of g."""
    y = log_growth(case, log_radius, cosine)
    power = np.exp(case.p * (log_radius - math.log(case.scale)))
    swollen = np.where(power > 1e-280, power * np.expm1(np.minimum(case.p * y, 700.0)), 0.0)
    # Where the radius is negligible, (|n+v|/s)^p itself.
    direct = np.exp(np.clip(case.p * (log_radius + y - math.log(case.scale)), -740.0, 700.0)) - power
    return (case.dimension - case.k) * y + np.where(
        case.p * y < 600.0, np.where(power > 1e-280, swollen, direct), direct
    )


def sample_log_radius(case: Case, rng: np.random.Generator, size: int):
    """ln R, boosted so that tiny gamma shapes do not underflow."""
    a = case.k / case.p
    log_gamma = np.log(rng.standard_gamma(a + 1.0, size)) - rng.standard_exponential(size) / a
    return math.log(case.scale) + log_gamma / case.p


def sample_cosine(dimension: int, rng: np.random.Generator, size: int):
    """Cosine between a uniform direction and a fixed one."""
    if dimension == 1:
        return rng.choice([-1.0, 1.0], size)
    axial = rng.standard_normal(size)
    return axial / np.sqrt(axial * axial + 2.0 * rng.standard_gamma(0.5 * (dimension - 1), size))


def delta_monte_carlo(case: Case, *, samples: int, seed: int) -> tuple[float, float]:
    """Sample mean of (1 - e^(eps-L))_+ and its standard error."""
    rng = np.random.default_rng(seed)
    losses = privacy_loss(case, sample_log_radius(case, rng, samples), sample_cosine(case.dimension, rng, samples))
    values = -np.expm1(np.minimum(case.epsilon - losses, 0.0))
    return float(values.mean()), float(values.std() / math.sqrt(samples))


# The positive form E[(1 - e^(eps-L))_+] as a double integral, in double precision.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def _panels(edges):
    """Gauss-Legendre nodes and weights on the panels between sorted edges (last axis)."""
    start, width = edges[..., :-1, None], np.diff(edges, axis=-1)[..., None]
    nodes = start + width * (_NODES + 1.0) / 2.0
    weights = width * _WEIGHTS / 2.0
    flat = (*edges.shape[:-1], -1)
    return nodes.reshape(flat), np.broadcast_to(weights, nodes.shape).reshape(flat)


def _log_weight_radius(a: float, xi):
    """ln of exp(-a (e^xi - 1 - xi)), the density of xi = ln(G/a) up to a constant."""
    return -a * np.where(
        np.abs(xi) < 1e-3, xi * xi * (0.5 + xi / 6.0 + xi * xi / 24.0 + xi**3 / 120.0), np.expm1(xi) - xi
    )


def _log_weight_angle(dimension: int, x):
    """ln of cos(x)^(M-2), the density of the latitude x = asin(t) up to a constant."""
    sine = np.sin(x)
    cosine = np.maximum(np.cos(x), 1e-300)
    return (dimension - 2) * np.where(np.abs(sine) < 0.5, 0.5 * np.log1p(-np.minimum(sine * sine, 0.5)), np.log(cosine))


def _reach(a: float, sign: int, exponent: float) -> float:
    """The xi of the given sign at which the density of xi has fallen by e^(-exponent)."""
    low, high = 0.0, 1.0
    while -_log_weight_radius(a, np.float64(sign * high)) < exponent:
        high *= 2.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if -_log_weight_radius(a, np.float64(sign * middle)) < exponent else (low, middle)
    return sign * high


def threshold_growth(case: Case, log_radius, epsilon: float | None = None):
    """The y = ln(|n+v|/|n|) at which the loss is epsilon, by bisection."""
    eps = case.epsilon if epsilon is None else epsilon
    log_power = case.p * (log_radius - math.log(case.scale))
    excess = case.dimension - case.k
    with np.errstate(over="ignore"):
        high = np.log1p(np.exp(np.minimum(math.log(max(eps, 1e-300)) - log_power, 700.0))) / case.p
        if excess > 0.0:
            high = np.minimum(high, eps / excess)
    high = high * (1.0 + 1e-12)
    low = np.zeros_like(high)
    for _ in range(120):
        middle = 0.5 * (low + high)
        loss = excess * middle + np.exp(log_power) * np.expm1(np.minimum(case.p * middle, 700.0))
        low, high = np.where(loss < eps, middle, low), np.where(loss < eps, high, middle)
    return 0.5 * (low + high)


def _threshold_cosine(case: Case, log_radius):
    y = threshold_growth(case, log_radius)
    kappa = np.exp(np.clip(math.log(case.sensitivity) - log_radius, -700.0, 700.0))
    return 0.5 * (np.expm1(2.0 * y) / kappa - kappa)


def _angle_mean(case: Case, log_radius):
    """E over directions of (1 - e^(eps-L))_+ at each radius."""
    m = case.dimension
    if m == 1:
        total = np.zeros_like(log_radius)
        for cosine in (-1.0, 1.0):
            total += 0.5 * -np.expm1(np.minimum(case.epsilon - privacy_loss(case, log_radius, cosine), 0.0))
        return total
    first = np.arcsin(np.clip(_threshold_cosine(case, log_radius), -1.0, 1.0))
    window = min(12.0 / math.sqrt(m - 1.0), math.pi / 2)
    bulk = np.linspace(-window, window, 29)
    graded = first[:, None] + (math.pi / 2 - first)[:, None] * np.concatenate(
        [[0.0], 2.0 ** np.arange(-48.0, 0.5, 1.5)]
    )
    edges = np.concatenate([graded, np.broadcast_to(bulk, (len(first), len(bulk)))], axis=1)
    edges = np.sort(np.clip(edges, first[:, None], math.pi / 2), axis=1)
    x, weights = _panels(edges)
    with np.errstate(under="ignore"):
        density = np.exp(_log_weight_angle(m, x))
        losses = privacy_loss(case, log_radius[:, None], np.sin(x))
        values = -np.expm1(np.minimum(case.epsilon - losses, 0.0))
        total = (density * values * weights).sum(axis=1)
        every, every_weight = _panels(np.linspace(-window, window, 65))
        return total / (np.exp(_log_weight_angle(m, every)) * every_weight).sum()


def delta_positive(case: Case) -> float:
    """E[(1 - e^(eps-L))_+] by Gauss-Legendre panels over radius and direction, graded towards every kink."""
    a = case.k / case.p
    low, high = _reach(a, -1, 90.0), _reach(a, 1, 90.0)
    edges = [np.linspace(low, high, 31)]
    edges.append(np.linspace(max(low, -20.0), high, 41))
    edges.append(np.linspace(max(low, -30.0 * max(case.p, 1.0)), high, 31))
    log_origin = math.log(case.scale) + math.log(a) / case.p
    # Grade towards the radii at which the threshold passes -1 or 1.
    probe = np.linspace(low, high, 2001)
    cosine = _threshold_cosine(case, log_origin + probe / case.p)
    for level in (-1.0, 1.0):
        for i in np.flatnonzero((cosine[:-1] < level) != (cosine[1:] < level)):
            left, right = probe[i], probe[i + 1]
            rising = cosine[i] < level
            for _ in range(60):
                middle = 0.5 * (left + right)
                below = bool(_threshold_cosine(case, np.array([log_origin + middle / case.p]))[0] < level)
                left, right = (middle, right) if below == rising else (left, middle)
            steps = (high - low) * 2.0 ** np.arange(-40.0, 0.0, 2.0)
            edges += [np.array([left]), left + steps, left - steps]
    xi, weights = _panels(np.unique(np.clip(np.concatenate(edges), low, high)))
    density = np.exp(_log_weight_radius(a, xi)) * weights
    values = np.concatenate([_angle_mean(case, part) for part in np.array_split(log_origin + xi / case.p, 8)])
    return float((density * values).sum() / density.sum())


# The difference form P[L > eps] - e^eps P[L < -eps], in high precision.


def delta_difference(case: Case, digits: int = 30):
    """One-dimensional integral over the radius, with enough digits for the difference to lose some."""
    with mpmath.workdps(digits):
        mp = mpmath.mp
        m = case.dimension
        k, p, s, d, eps = (mp.mpf(x) for x in case[1:])
        a = k / p
        half = mp.mpf(m - 1) / 2

        def cap(t):
            """P(cos > t)."""
            if t >= 1:
                return mp.mpf(0)
            if t <= -1:
                return mp.mpf(1)
            if m == 1:
                return mp.mpf(1) / 2
            tail = mp.betainc(half, 0.5, 0, 1 - t * t, regularized=True) / 2
            return tail if t >= 0 else 1 - tail

        def root(power, target):
            if k == m:
                return mp.log1p(target / power) / p if target > -power else None
            y = target / (m - k + p * power)
            for _ in range(200):
                grown = power * mp.expm1(p * y)
                step = ((m - k) * y + grown - target) / (m - k + p * (power + grown))
                y -= step
                if abs(step) < abs(y) * mp.mpf(10) ** (-digits + 5):
                    break
            return y

        def cosine(y, ratio):
            return (mp.expm1(2 * y) * ratio - 1 / ratio) / 2

        def integrand(xi):
            power = a * mp.exp(xi)
            ratio = s / d * power ** (1 / p)
            above = cap(cosine(root(power, eps), ratio))
            y = root(power, -eps)
            below = 0 if y is None else 1 - cap(cosine(y, ratio))
            return mp.exp(a * xi - power) * (above - mp.exp(eps) * below)

        low, high = _reach(float(a), -1, 100.0), _reach(float(a), 1, 100.0)
        kinks = _difference_kinks(case, low, high)
        body = [x / math.sqrt(float(a)) for x in (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)]
        points = sorted({low, high, *kinks, *(x for x in body if low < x < high)})
        # In low dimension a cap opens like a power below 2 of the radius: tanh-sinh copes with such ends.
        method, degree = ("tanh-sinh", 6) if m <= 3 else ("gauss-legendre", 6)
        total = mp.quad(integrand, points, method=method, maxdegree=degree)
        return total * mp.exp(a * mp.log(a) - mp.loggamma(a))


def _difference_kinks(case: Case, low: float, high: float) -> list[float]:
    """Points where a threshold passes -1 or 1, located on a fine grid and bisected."""
    a = case.k / case.p
    log_origin = math.log(case.scale) + math.log(a) / case.p

    def cosines(xi):
        radius = log_origin + xi / case.p
        kappa = np.exp(np.clip(math.log(case.sensitivity) - radius, -300.0, 300.0))
        upper = threshold_growth(case, radius)
        # The loss -eps at (r, y < 0) is the loss eps seen from the other ball: scan y by bisection too.
        power = np.exp(case.p * (radius - math.log(case.scale)))
        excess = case.dimension - case.k
        left, right = np.full_like(radius, -700.0), np.zeros_like(radius)
        for _ in range(90):
            middle = 0.5 * (left + right)
            under = excess * middle + power * np.expm1(case.p * middle) < -case.epsilon
            left, right = np.where(under, middle, left), np.where(under, right, middle)
        return [0.5 * (np.expm1(2.0 * y) / kappa - kappa) for y in (upper, left)]

    grid = np.linspace(low, high, 4001)
    found = []
    for which, values in enumerate(cosines(grid)):
        for level in (-1.0, 1.0):
            for i in np.flatnonzero((values[:-1] < level) != (values[1:] < level)):
                left, right, rising = grid[i], grid[i + 1], values[i] < level
                for _ in range(60):
                    middle = 0.5 * (left + right)
                    below = bool(cosines(np.array([middle]))[which][0] < level)
                    left, right = (middle, right) if below == rising else (left, middle)
                found.append(float(left))
    return found


# Geometry.


def lune_fraction(dimension: int, kappa: float, y: float):
    """Share of the unit ball outside a ball of radius e^y at distance kappa, from two caps, in 50 digits."""
    with mpmath.workdps(50):
        half = mpmath.mpf(dimension + 1) / 2

        def cap(x):
            if abs(x) >= 1:
                return mpmath.mpf(x < 0)
            tail = mpmath.betainc(half, 0.5, 0, 1 - x * x, regularized=True) / 2
            return tail if x >= 0 else 1 - tail

        k, log_radius = mpmath.mpf(kappa), mpmath.mpf(y)
        growth = mpmath.expm1(log_radius)
        if k >= 2 + growth or k <= growth:
            return mpmath.mpf(k > growth)
        first = (mpmath.expm1(2 * log_radius) / k - k) / 2
        return cap(first) - mpmath.exp(dimension * log_radius) * cap((first + k) * mpmath.exp(-log_radius))


# Closed forms, 50 digits.


def gaussian_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(mu), mpmath.mpf(epsilon)
        root = mpmath.sqrt(2)
        first = mpmath.erfc((eps / mu - mu / 2) / root) / 2
        return first - mpmath.exp(eps) * mpmath.erfc((eps / mu + mu / 2) / root) / 2


def gaussian_delta_of_scale(scale: float, sensitivity: float, epsilon: float):
    """The same for the radial scale s = sqrt(2) sigma, without rounding in between."""
    with mpmath.workdps(60):
        return gaussian_delta(mpmath.sqrt(2) * mpmath.mpf(sensitivity) / mpmath.mpf(scale), epsilon)


@functools.cache
def gaussian_sigma(epsilon: float, delta: float):
    """The analytic Gaussian's sigma at unit sensitivity, by bisection in 60 digits."""
    with mpmath.workdps(60):
        target = mpmath.mpf(delta)
        low, high = mpmath.mpf(-60), mpmath.mpf(60)
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(mpmath.exp(-middle), epsilon) > target else (low, middle)
        return mpmath.exp((low + high) / 2)


def laplace_delta(scale, sensitivity, epsilon):
    """(1 - exp((eps - D/b)/2))_+."""
    with mpmath.workdps(60):
        gap = (mpmath.mpf(epsilon) - mpmath.mpf(sensitivity) / mpmath.mpf(scale)) / 2
        return -mpmath.expm1(gap) if gap < 0 else mpmath.mpf(0)


# Laws of single coordinates and of the radius.


def radius_cdf(case: Case, radius):
    """P(R <= r)."""
    return special.gammainc(case.k / case.p, np.power(np.asarray(radius) / case.scale, case.p))


def cosine_cdf(dimension: int, t):
    """P(cos <= t) for M >= 2."""
    t = np.clip(np.asarray(t, dtype=float), -1.0, 1.0)
    return special.betainc(0.5 * (dimension - 1), 0.5 * (dimension - 1), (1.0 + t) / 2.0)


def coordinate_cdf(case: Case, x):
    """P(n_1 <= x), by integrating the direction out: n_1 = R cos."""
    x = np.atleast_1d(np.asarray(x, dtype=float))
    if case.dimension == 1:
        return 0.5 + 0.5 * np.sign(x) * radius_cdf(case, np.abs(x))
    # P(R cos <= x) = 1/2 + 1/2 P(R |cos| <= x) for x > 0; substitute cos = sin(latitude).
    latitude, weights = _panels(np.concatenate([[0.0], (math.pi / 2) * 2.0 ** np.arange(-24.0, 0.5)]))
    density = np.exp(_log_weight_angle(case.dimension, latitude)) * weights
    inside = radius_cdf(case, np.abs(x)[:, None] / np.sin(latitude)[None, :])
    return 0.5 + 0.5 * np.sign(x) * (inside * density).sum(axis=1) / density.sum()


def r1smg_eigenvalue(dimension: int, epsilon: float, delta: float, sensitivity: float) -> float:
    """sigma_* = 2 D^2/(eps psi), psi = (delta Gamma((M-1)/2)/(sqrt(pi) Gamma(M/2)))^(2/(M-2))."""
    with mpmath.workdps(60):
        m, target = mpmath.mpf(dimension), mpmath.mpf(delta)
        log_ratio = mpmath.loggamma((m - 1) / 2) - mpmath.loggamma(m / 2)
        psi = mpmath.exp(2 / (m - 2) * (mpmath.log(target) + log_ratio - mpmath.log(mpmath.pi) / 2))
        return float(2 * mpmath.mpf(sensitivity) ** 2 / (mpmath.mpf(epsilon) * psi))


def laplace_pair_cdf(q: float) -> tuple[float, float]:
    """P(X^2 + Y^2 <= q) and its complement for independent Exp(1) variables, over the angle of (x, sqrt(q - x^2))."""
    r = math.sqrt(q)

    def below(angle: float) -> float:
        return r * math.cos(angle) * math.exp(-r * math.sin(angle)) * -math.expm1(-r * math.cos(angle))

    def above(angle: float) -> float:
        return r * math.cos(angle) * math.exp(-r * (math.sin(angle) + math.cos(angle)))

    inside, _ = integrate.quad(below, 0.0, math.pi / 2, epsabs=0.0, epsrel=1e-11, limit=200)
    outside, _ = integrate.quad(above, 0.0, math.pi / 2, epsabs=0.0, epsrel=1e-11, limit=200)
    return inside, math.exp(-r) + outside
