"""The radius of radial noise, to any precision: drawn by exact rejection, evaluated in interval arithmetic."""

from __future__ import annotations

import bisect
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.noise import exact_arithmetic as exact
from lessnoise.noise import ziggurat
from lessnoise.noise.exact_arithmetic import HALF, Draw, Interval, Real, Word
from lessnoise.noise.staircase import StepRadius
from lessnoise.noise.stream import SCALARS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from lessnoise.noise.stream import Stream

SMALLEST_K = 1e-3  # ln R is then above -10^6, but for a probability of e^-1000


def scalars(stream: Stream, block: int = SCALARS) -> Iterator[Word]:
    """Words for what is drawn once a release."""
    reader = stream.reader()
    return (Word(reader, block, position) for position in itertools.count())


@dataclass(frozen=True)
class NormalRadius:
    """R = sqrt(variance) z, z normal: R1SMG (radial, k = 1, p = 2; the sign does not matter)."""

    variance: Fraction

    def draw(self, words: Iterator[Word]) -> Real:
        """One normal variable: a float, its relative error, and intervals as narrow as one likes."""
        z = exact.draw(ziggurat.normal(), words)

        def radius(level: int) -> Interval:
            return exact.product(exact.root(self.variance, level), z.interval(level))

        return Real.relative(radius)

    def mean_square(self) -> float:
        """E R^2, which sets the grid; no more than a few digits of it matter."""
        return float(self.variance) if self.variance < 2**1023 else math.inf


@dataclass(frozen=True)
class GammaRadius:
    """R = scale G^(1/p), G ~ Gamma(k/p): density proportional to r^(k-1) exp(-(r/scale)^p)."""

    k: float
    p: float
    scale: float

    def __post_init__(self) -> None:
        if self.k < SMALLEST_K:
            raise InvalidInput(
                f"k={self.k:g} is below {SMALLEST_K:g}: such noise is nearly always 0 and cannot be drawn exactly; "
                "pass a larger k."
            )

    def draw(self, words: Iterator[Word]) -> Real:
        """Marsaglia & Tsang's (2000) rejection, with every decision exact; below shape 1, G(a) = G(a+1) U^(1/a)."""
        shape, power = Fraction(self.k) / Fraction(self.p), Fraction(self.p)
        boost = next(words) if shape < 1 else None
        d = (shape + 1 if boost else shape) - Fraction(1, 3)
        z = _marsaglia_tsang(d, words)
        scale = Fraction(self.scale)

        def radius(level: int) -> Interval:
            # ln G = ln d + 3 ln(1 + c z), rising in z.
            terms = [exact.ln((d, d), level), _times(exact.ln(_base(d, z, level), level), 3)]
            if boost is not None:
                low, high = exact.exponential(boost, level)
                terms.append((-high / shape, -low / shape))
            low, high = exact.total(terms)
            return _scaled_exp(scale, (low / power, high / power), level)

        return self._float(d, z, boost, radius) or Real.relative(radius)

    def _float(self, d: Fraction, z: Draw, boost: Word | None, radius: Callable[[int], Interval]) -> Real | None:
        """The radius in floats with a bound on its relative error, if small (docs/theory/noise-engine.md, lemma 6)."""
        y = z.middle(1) / math.sqrt(9.0 * d)  # c z, within 3 units of 2^-53
        base = 1.0 + y
        u = 1.0 if boost is None else boost.first * 2.0**-64
        if not (base > 0.25 and u > 2.0**-40):
            return None
        power = float(d) * base**3
        units = 3.0 * (3.0 * abs(y) + 1.5) / base + 6.0
        exponent = 1.0 / self.p
        value, error = self.scale * power**exponent, exponent * (units + abs(math.log(power))) + 8.0
        if boost is not None:
            exponent = 1.0 / self.k  # U^(1/a) to the power 1/p, a = k/p
            value, error = value * u**exponent, error + exponent * (2.0 - math.log(u)) + 8.0
        if not (2.0**-900 < value < 2.0**900 and error < 2.0**10):
            return None
        return Real(value, error * 1.01 * 2.0**-53, radius)

    def mean_square(self) -> float:
        """From two log-gammas."""
        logarithm = math.lgamma((self.k + 2.0) / self.p) - math.lgamma(self.k / self.p)
        return self.scale * self.scale * math.exp(logarithm) if logarithm < 600.0 else math.inf


@dataclass(frozen=True)
class ShellRadius:
    """Shell i with probability weights[i]/sum(weights), and inside it the volume measure of R^dimension.

    The weights are doubles, and their quotients by their *exact* sum are the probabilities: rational numbers that
    add up to 1, whatever the rounding of the doubles. Edges ascend, the first may be 0.

    >>> ShellRadius((0.0, 1.0, 3.0), (0.25, 0.75), 5).mean_square() <= 9.0
    True
    """

    edges: Sequence[float] | NDArray[np.float64]
    weights: Sequence[float] | NDArray[np.float64]
    dimension: int

    def __post_init__(self) -> None:
        edges, weights = np.asarray(self.edges, dtype=np.float64), np.asarray(self.weights, dtype=np.float64)
        fine = edges.ndim == weights.ndim == 1 and edges.size == weights.size + 1 >= 2
        fine = fine and bool(np.isfinite(edges).all() and np.isfinite(weights).all())
        if not (fine and edges[0] >= 0.0 and (np.diff(edges) > 0.0).all() and (weights >= 0.0).all() and weights.any()):
            raise InvalidInput(
                f"edges and weights do not describe {weights.size} shells: pass n + 1 ascending edges from 0 or above, "
                "and n probabilities that are not all 0."
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "weights", weights)

    def draw(self, words: Iterator[Word]) -> Real:
        """A shell by inversion, a place in it by inversion of the volume."""
        chosen, place = next(words), next(words)
        shell = self.choose(chosen)
        inner, outer = Fraction(float(self.edges[shell])), Fraction(float(self.edges[shell + 1]))

        def radius(level: int) -> Interval:
            # r = outer (a + u (1 - a))^(1/M), a = (inner/outer)^M, rising in u.
            low, high = Fraction(0), Fraction(0)
            if inner:
                (a, b) = exact.ln((inner / outer, inner / outer), level)
                low, high = exact.exp((a * self.dimension, b * self.dimension), level)
                low, high = max(low, Fraction(0)), min(high, Fraction(1))
            near, far = place.uniform(level)
            near, far = low + near * (1 - low), high + far * (1 - high)
            if near <= 0:
                return inner, outer
            c, d = exact.ln((near, min(far, Fraction(1))), level)
            return _scaled_exp(outer, (c / self.dimension, d / self.dimension), level)

        return self._float(shell, place, radius) or Real.relative(radius)

    def _float(self, shell: int, place: Word, radius: Callable[[int], Interval]) -> Real | None:
        """The radius in floats with a bound on its relative error, if small (docs/theory/noise-engine.md, lemma 6)."""
        inner, outer, power = float(self.edges[shell]), float(self.edges[shell + 1]), float(self.dimension)
        if not (2.0**-900 < outer < 2.0**900 and (inner == 0.0 or inner > 2.0**-900)):
            return None
        logarithm = math.log(inner / outer) if inner else -math.inf
        share = math.exp(max(power * logarithm, -700.0)) if inner else 0.0  # a; cut there, it is off by e^-700
        u = place.first * 2.0**-64
        near = share + u * (1.0 - share)
        if not near > 2.0**-20:
            return None
        # ln(inner/outer) is off by 2^-53 (1 + 5 |ln|), a by M times that and 8 units, relatively; U by 2^-64.
        blur = power * (1.0 + 5.0 * abs(logarithm)) * share / near if share > 1e-300 else 0.0
        units = (blur + 16.0 + 2.0**-11 / near + 8.0 * abs(math.log(near))) / power + 8.0
        value = outer * near ** (1.0 / power)
        return Real(value, units * 1.01 * 2.0**-53, radius) if units < 2.0**10 else None

    def choose(self, word: Word) -> int:
        """The shell in which the uniform number falls."""
        return _choose(self.weights, word)

    def mean_square(self) -> float:
        """Bounded by each shell's outer edge."""
        total = math.fsum(self.weights)
        return math.fsum(w / total * edge**2 for w, edge in zip(self.weights, self.edges[1:], strict=True))


@dataclass(frozen=True)
class ListedRadius:
    """One of the given radii, the i-th with probability weights[i]/sum(weights), the quotient by the exact sum.

    R times a uniform point of a body K is a density that is constant between neighbouring radii: weights[i] is
    proportional to (f_i - f_(i+1)) radii[i]^M, f_i being the density just inside radii[i].

    >>> ListedRadius((1.0, 3.0), (0.5, 0.5)).mean_square()
    5.0
    """

    radii: Sequence[float] | NDArray[np.float64]
    weights: Sequence[float] | NDArray[np.float64]

    def __post_init__(self) -> None:
        radii, weights = np.asarray(self.radii, dtype=np.float64), np.asarray(self.weights, dtype=np.float64)
        fine = radii.ndim == weights.ndim == 1 and radii.size == weights.size
        fine = fine and bool(np.isfinite(radii).all() and np.isfinite(weights).all())
        if not (fine and (radii > 0.0).all() and (weights >= 0.0).all() and 0.0 < weights.sum() < math.inf):
            raise InvalidInput(
                f"radii and weights do not describe {weights.size} bodies: pass n radii above 0, and n probabilities "
                "that are not all 0."
            )
        object.__setattr__(self, "radii", radii)
        object.__setattr__(self, "weights", weights)

    def draw(self, words: Iterator[Word]) -> Real:
        """By inversion."""
        return Real.rational(Fraction(float(self.radii[_choose(self.weights, next(words))])))

    def mean_square(self) -> float:
        """The weighted mean."""
        total = math.fsum(self.weights)
        return math.fsum(w / total * (r * r) for w, r in zip(self.weights, self.radii, strict=True))


Radius = NormalRadius | GammaRadius | ShellRadius | StepRadius | ListedRadius


def _choose(weights: Sequence[float] | NDArray[np.float64], word: Word) -> int:
    """i with probability weights[i] over the exact sum: by floats, and exactly where they do not tell."""
    sums = np.cumsum(weights)
    at = word.first * 2.0**-64 * float(sums[-1])
    found = int(np.searchsorted(sums, at, side="right"))
    near = len(sums) * 2.0**-50 * float(sums[-1])
    if found < len(sums) and abs(sums[found] - at) > near and (found == 0 or abs(at - sums[found - 1]) > near):
        return found
    ends = list(itertools.accumulate(Fraction(float(w)) for w in weights))
    for level in exact.word_levels():
        low, high = (end * ends[-1] for end in word.uniform(level))
        index = bisect.bisect_right(ends, low)
        if high <= ends[index]:
            return index
    raise AssertionError("unreachable")


def _marsaglia_tsang(d: Fraction, words: Iterator[Word]) -> Draw:
    """A normal z accepted with probability exp(z^2/2 + d - d v + d ln v), v = (1 + c z)^3 > 0, c = 1/sqrt(9 d)."""
    while True:
        z, test = exact.draw(ziggurat.normal(), words), next(words)
        verdict = _float_accepts(float(d), z.middle(1), test.first * 2.0**-64)
        if verdict is not None:
            if verdict:
                return z
            continue
        for level in exact.word_levels():
            verdict = _accepts(d, z, test, level)
            if verdict is not None:
                break
        if verdict:
            return z


def _float_accepts(d: float, z: float, u: float) -> bool | None:
    """The same decision in floats, or None where they do not tell.

    With y = c z: 1 - (1+y)^3 + 3 ln(1+y) = 3 (ln(1+y) - y - y^2) - y^3; each term is off by a few 2^-53 of |y| at most.
    """
    y = z / math.sqrt(9.0 * d)
    if y < -0.75 or u < 2.0**-14:
        return None
    exponent = 0.5 * z * z + d * (3.0 * (math.log1p(y) - y - y * y) - y**3)
    gap = exponent - math.log(u)
    return None if abs(gap) <= 2.0**-30 + d * abs(y) * (1.0 + y * y) * 2.0**-44 else gap > 0.0


def _accepts(d: Fraction, z: Draw, test: Word, level: int) -> bool | None:
    low, high = _base(d, z, level, raw=True)  # of 1 + c z
    if high <= 0:
        return False
    if low <= 0:
        return None
    logarithm = exact.ln((low, high), level)
    ends = sorted(x * x / 2 for x in z.interval(level))
    upper = ends[1] + d - d * low**3 + 3 * d * logarithm[1]
    lower = ends[0] + d - d * high**3 + 3 * d * logarithm[0]
    near, far = exact.exponential(test, level)  # -ln U
    if -near < lower:
        return True
    return False if -far >= upper else None


def _base(d: Fraction, z: Draw, level: int, raw: bool = False) -> Interval:
    """1 + c z; positive for an accepted z, so a lower end that is not yet positive is lifted to a tiny one."""
    # c to within 2^-(64 (level + 2)), by an integer square root.
    scale = 1 << 64 * (level + 2)
    root = math.isqrt(int(Fraction(scale * scale) / (9 * d)))
    ends = [Fraction(c, scale) * x for c in (root, root + 1) for x in z.interval(level)]
    low, high = 1 + min(ends), 1 + max(ends)
    return (low, high) if raw or low > 0 else (Fraction(1, scale**64), high)


def _times(interval: Interval, factor: int) -> Interval:
    return interval[0] * factor, interval[1] * factor


def _scaled_exp(scale: Fraction, logarithm: Interval, level: int) -> Interval:
    """Scale e^logarithm with a *relative* slack, since a radius may be tiny."""
    low, high = logarithm
    slack = exact.slack(level)  # covers the argument's rounding too, |argument| <= 10^6 units
    near = _exp(low, level) * (1 - slack)
    far = near * (1 + 2 * (high - low)) if high - low < HALF and near else _exp(high, level)
    return scale * near, scale * far * (1 + 3 * slack)


def _exp(x: Fraction, level: int) -> Fraction:
    return Fraction(exact.context(level).exp(exact.decimal(x, level))) if x > -(10**6) else Fraction(0)
