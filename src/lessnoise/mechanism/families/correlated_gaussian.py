r"""Gaussian noise with a shared part: almost half the noise for sums of statistics in [0, c], under add/remove.

The noise is eta 1 + z: one normal variable eta of variance ``common_variance`` in every entry, plus independent
entries z of variance ``own_variance`` (Lebeda, SOSA 2025, arXiv 2408.06853). Its covariance is
Sigma = own I + common 1 1^T. Whoever joins or leaves moves the value by +-v with v in the cube [0, c]^d, and a
Gaussian with a shift v has the curve of mu(v) = sqrt(v^T Sigma^-1 v). This convex function is largest at a vertex
of the cube, by symmetry one with j entries c, where (Sherman and Morrison)

    mu_j^2 = c^2 j (own + (d - j) common) / (own (own + d common)).

That is concave in j: its maximum over the integers is at one of the two nearest to (own + d common)/(2 common).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.mechanism.curve import attained, gaussian, law_delta, no_curve, worst_of
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.request import Request, representable
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import Form, Independent, Real

if TYPE_CHECKING:
    from lessnoise._common import Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Relation


_ROUNDING = 2e-15  # relative error of mu: nine correctly rounded operations, all on positive numbers


@register
@dataclass(frozen=True, slots=True)
class CorrelatedGaussian(Plain):
    """n = eta 1 + z: a normal variable shared by all entries, and an independent one in each.

    The sensitivity is the largest change c of one entry, and one individual moves all entries the same way:
    the value changes by v or by -v with v in [0, c]^d.

    >>> CorrelatedGaussian(1, 3).variance
    4.0
    """

    common_variance: float
    own_variance: float

    kind: ClassVar[str] = "correlated-gaussian"
    norm: ClassVar[str] = "one-sided linf"

    def __post_init__(self) -> None:
        common = validation.nonnegative_epsilon(self.common_variance, "common_variance")
        settle(self, common_variance=common, own_variance=validation.positive("own_variance", self.own_variance))

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """Only add/remove: the shift set of the curve is the cube [0, c]^d."""
        if neighbours is not Neighbours.ADD_REMOVE:
            raise InvalidInput(
                f"neighbours={neighbours.value!r} is not served by correlated_gaussian: replacing an individual moves "
                "the value anywhere in [-c, c]^d, not only in [0, c]^d, and shared noise then gains nothing; pass "
                'neighbours="add/remove" or use analytic_gaussian with the l2 sensitivity c sqrt(d).'
            )

    @property
    def variance(self) -> float:
        """Variance of one entry."""
        return self.common_variance + self.own_variance

    def eigenvalues(self, dimension: int) -> tuple[float, float]:
        """Of the covariance: own + d common, once, along (1, ..., 1), and own, d - 1 times, across it."""
        return self.own_variance + dimension * self.common_variance, self.own_variance


# Privacy.


def worst_vertex(law: CorrelatedGaussian, dimension: int) -> int:
    """How many entries the worst individual changes by the whole sensitivity; the others stay.

    >>> worst_vertex(CorrelatedGaussian(1.0, 3.0), 9)  # 9 + 3 = 12 statistics, of which half
    6
    """
    if law.common_variance == 0.0:
        return dimension
    peak = 0.5 * (law.own_variance / law.common_variance + dimension)  # of j (own + (d - j) common)
    if peak >= dimension:
        return dimension
    below = max(math.floor(peak), 1)
    return max(below, min(below + 1, dimension), key=lambda j: _vertex_gain(law, dimension, j))


def _vertex_gain(law: CorrelatedGaussian, dimension: int, changed: int) -> float:
    """mu_j^2 own / c^2; every term is positive, so nothing cancels."""
    ratio = law.common_variance / law.own_variance
    return changed * (1.0 + (dimension - changed) * ratio) / (1.0 + dimension * ratio)


def worst_mu(law: CorrelatedGaussian, dimension: int, sensitivity: float) -> float:
    """Largest mu(v) over the cube [0, sensitivity]^d, to a relative error below 2e-15."""
    gain = _vertex_gain(law, dimension, worst_vertex(law, dimension))
    return sensitivity / math.sqrt(law.own_variance) * math.sqrt(gain)


@attained.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, changes: Changes, dimension: int) -> bool:
    moves = changes.majorant(dimension)  # the worst vertex of a cube: some entries by the bound, the others by 0
    return changes.fills_box(dimension) and moves is not None and len(moves.sizes) == 1


@law_delta.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    mu = worst_mu(law, dimension, sensitivity)
    return gaussian.delta_between(mu * (1.0 - _ROUNDING), mu * (1.0 + _ROUNDING), epsilon)


@worst_of.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, changes: Changes, dimension: int) -> float:
    if not changes.one_sided:
        raise no_curve(law, changes)
    return changes.norm(math.inf, dimension)


def correlated_gaussian(
    *,
    epsilon: float,
    delta: float,
    shape: Shape,
    sensitivity: float = 1.0,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Noise for d statistics, each of which one individual raises by 0 to ``sensitivity``: about half a Gaussian's.

    ``sensitivity`` is the bound c of one statistic, not an l2 norm. Every entry has the standard deviation
    c (sqrt(d) + 1)/(2 mu), against c sqrt(d)/mu of independent noise, with 1/mu the analytic Gaussian's sigma
    at sensitivity 1 (Lebeda, SOSA 2025). The shared part correlates the errors: differences of
    entries are more accurate still, and a total over many entries is less accurate than with independent noise.

    >>> m = correlated_gaussian(epsilon=1, delta=1e-5, shape=100)
    >>> f"{m.standard_deviation:.4f}, where independent noise needs {10 * 3.73063:.4f}"
    '20.5185, where independent noise needs 37.3063'
    >>> m.check().holds
    True

    It needs ``neighbours="add/remove"``: an individual who is *replaced* can raise some statistics and lower
    others, and nothing is gained.
    """
    target = Request.of(epsilon, delta, sensitivity, shape, neighbours)
    root, own_delta = math.sqrt(target.dimension), target.reserved_delta
    sigma, step = gaussian.gaussian_scale(target.epsilon, own_delta), 1e-13  # sigma = 1/mu
    while True:
        with representable(epsilon=target.epsilon, delta=target.delta, sensitivity=target.sensitivity):
            unit = (0.5 * target.sensitivity * sigma) ** 2 * (root + 1.0)
        law = CorrelatedGaussian(unit, unit * root)  # variances c^2 (sqrt d + 1)/(4 mu^2) and c^2 (d + sqrt d)/(4 mu^2)
        if law_delta(law, target.dimension, target.sensitivity, target.epsilon, 0.0).upper <= own_delta:
            break
        sigma, step = sigma * (1.0 + step), 2.0 * step  # the last digits of the square roots
    source = "Lebeda 2025 (arXiv 2408.06853) with Balle & Wang 2018, Theorem 9"
    return target.mechanism("correlated-gaussian", law, source)


# Noise.


@noise_form.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, shape: tuple[int, ...]) -> Form:
    common = Real.root(Fraction(law.common_variance)) if law.common_variance else None
    return Independent(noise_engine.normal(), Real.root(Fraction(law.own_variance)), common)


# Loss: a chi-square of one degree of freedom times the large eigenvalue, and one of d - 1 times the small one.


@log_raw_moment.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, dimension: int, order: int) -> float:
    # Cumulants 2^(t-1) (t-1)! (sum of lambda^t), in units of the mean; all terms are positive.
    mean = dimension * law.variance
    along, across = (value / mean for value in law.eigenvalues(dimension))
    cumulants = [
        2.0 ** (t - 1) * math.factorial(t - 1) * (along**t + (dimension - 1) * across**t) for t in range(1, order + 1)
    ]
    moments = [1.0]
    for n in range(1, order + 1):
        moments.append(math.fsum(math.comb(n - 1, t - 1) * cumulants[t - 1] * moments[n - t] for t in range(1, n + 1)))
    return order * math.log(mean) + (math.log(moments[order]) if order > 1 else 0.0)


@quantile.register(CorrelatedGaussian)
def _(law: CorrelatedGaussian, dimension: int, probability: float) -> float:
    """Relative error below 1e-10 (closed form for d = 1); a root of the distribution function, from its nearer tail."""
    from scipy.optimize import brentq
    from scipy.special import gammainccinv, gammaincinv

    along, across = law.eigenvalues(dimension)
    high = probability > 0.5
    target = 1.0 - probability if high else probability
    inverse = gammainccinv if high else gammaincinv
    isotropic = 2.0 * float(inverse(0.5 * dimension, target))
    if dimension == 1:
        return law.variance * isotropic
    if law.common_variance == 0.0:
        return across * isotropic

    def gap(logarithm: float) -> float:
        # The logarithm of a tail is smooth and close to linear here, as a tail itself is not.
        return math.log(max(_tail(along, across, dimension, math.exp(logarithm), high), 1e-320) / target)

    # The loss lies between across and along times a chi-square of d degrees of freedom.
    low, top = math.log(across * isotropic) - 1e-9, math.log(along * isotropic) + 1e-9
    return math.exp(float(brentq(gap, low, top, xtol=1e-14, rtol=1e-14)))


def _tail(along: float, across: float, dimension: int, loss: float, high: bool) -> float:
    """P(along X + across Y > loss) if ``high``, else <=, for chi-squares X and Y of 1 and d - 1 degrees of freedom.

    With X = Z^2, Z = sqrt(loss/along) sin(theta), the conditional tail of Y is integrated against the normal
    density. In theta the integrand is analytic up to the end, so Gauss and Legendre's rule on panels that follow
    the density and the step of Y's distribution function is exact to rounding.
    """
    from scipy.special import gammainc, gammaincc

    half = 0.5 * (dimension - 1)
    reach = math.sqrt(loss / along)  # the largest |Z| that leaves anything to Y
    span = math.sqrt(loss / across)  # sqrt(Y) at Z = 0
    last = 1.0 if reach <= 40.0 else 40.0 / reach  # |Z| > 40 never happens (1e-349)
    steps = np.sqrt(dimension - 1.0) + 0.7 * np.arange(-14.0, 15.0)  # sqrt(Y) has deviation 0.7 at most
    edges = np.concatenate(
        [
            np.arcsin(last * np.linspace(0.0, 1.0, 33)),
            np.arcsin(last * 2.0 ** -np.arange(6.0, 25.0)),
            np.arccos(np.clip(steps / span, 0.0, 1.0)),
        ]
    )
    edges = np.unique(edges[edges <= math.asin(last)])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = 0.5 * np.diff(edges)
    theta = (edges[:-1] + widths)[:, None] + widths[:, None] * nodes
    cosine = np.cos(theta)
    conditional = (gammaincc if high else gammainc)(half, 0.5 * (span * cosine) ** 2)
    density = math.sqrt(2.0 / math.pi) * reach * cosine * np.exp(-0.5 * (reach * np.sin(theta)) ** 2)
    inside = float(np.sum(widths * ((conditional * density) @ weights)))
    return inside + math.erfc(reach * math.sqrt(0.5)) if high else inside
