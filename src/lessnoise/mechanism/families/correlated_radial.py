r"""Isotropic noise plus a multiple of its sum: the least noise of an l2 ball, made narrower for a corner of changes.

The noise is n = x + c (x_1 + ... + x_M) (1, ..., 1) = A x with x isotropic, A = I + c 1 1^T. A shift v of n is the
shift A^-1 v of x, whose curve knows its length alone; v^T (A A^T)^-1 v is what correlated Gaussian noise of covariance
I + r 1 1^T, r = c (2 + c M), has for mu^2, so the worst vertex of [0, D]^M is the same (Lebeda 2025, and
``correlated_gaussian``). The loss is that of correlated Gaussian noise, times what the isotropic law gains on a
Gaussian.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.mechanism.curve import attained, law_delta, law_pure_epsilon, no_curve, worst_of
from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian, worst_mu, worst_vertex
from lessnoise.mechanism.families.shells import Shells
from lessnoise.mechanism.law import Plain, Radial, law_from_dict, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import CorrelatedIsotropic, Form, GammaRadius, Real, ShellRadius

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.changes import Changes

_ROUNDING = 4e-15  # relative error of mu: that of correlated Gaussian noise, and of r


@register
@dataclass(frozen=True, slots=True)
class CorrelatedRadial(Plain):
    """n = x + common (x_1 + ... + x_M) (1, ..., 1), with x of the isotropic law ``base``: radial or shells.

    The sensitivity is the largest change D of one entry, and one individual moves all entries the same way.

    >>> CorrelatedRadial(Radial(4, 1.05, 2.0), 0.25).ratio(4)  # 0.25 (2 + 1)
    0.75
    """

    base: Radial | Shells
    common: float

    kind: ClassVar[str] = "correlated-radial"
    norm: ClassVar[str] = "one-sided linf"

    def __post_init__(self) -> None:
        if not isinstance(self.base, (Radial, Shells)):
            raise InvalidInput(f"base={self.base!r} is not an isotropic law: pass a Radial or a Shells law.")
        settle(self, common=validation.nonnegative_epsilon(self.common, "common"))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """That of the isotropic law."""
        self.base.check_shape(shape)

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """As for correlated Gaussian noise: add/remove."""
        CorrelatedGaussian(1.0, 1.0).check_neighbours(neighbours)

    def choice(self, dimension: int) -> str:
        """That of the isotropic law."""
        return f"correlated {self.base.choice(dimension)}"

    def ratio(self, dimension: int) -> float:
        """The r of A A^T = I + r 1 1^T."""
        return self.common * (2.0 + self.common * dimension)

    def gaussian(self, dimension: int) -> CorrelatedGaussian:
        """Gaussian noise of the covariance A A^T."""
        return CorrelatedGaussian(self.ratio(dimension), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, "base": self.base.to_dict(), "common": self.common}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CorrelatedRadial:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "base", "common"), f"{cls.kind} noise")
        return cls(law_from_dict(given["base"]), given["common"])  # type: ignore[arg-type]  # checked there


# Privacy.


@attained.register(CorrelatedRadial)
def _(law: CorrelatedRadial, changes: Changes, dimension: int) -> bool:
    return attained(law.gaussian(dimension), changes, dimension)


@law_delta.register(CorrelatedRadial)
def _(law: CorrelatedRadial, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    mu = worst_mu(law.gaussian(dimension), dimension, sensitivity)
    low = law_delta(law.base, dimension, mu * (1.0 - _ROUNDING), epsilon, tolerance)
    high = law_delta(law.base, dimension, mu * (1.0 + _ROUNDING), epsilon, tolerance)
    return Bracket(min(low.lower, high.upper), high.upper)


@law_pure_epsilon.register(CorrelatedRadial)
def _(law: CorrelatedRadial, dimension: int, sensitivity: float) -> float:
    mu = worst_mu(law.gaussian(dimension), dimension, sensitivity)
    return law_pure_epsilon(law.base, dimension, mu * (1.0 + _ROUNDING))


@worst_of.register(CorrelatedRadial)
def _(law: CorrelatedRadial, changes: Changes, dimension: int) -> float:
    if not changes.one_sided:
        raise no_curve(law, changes)
    return changes.norm(math.inf, dimension)


def worst_count(law: CorrelatedRadial, dimension: int) -> int:
    """How many entries the worst individual changes by the whole sensitivity.

    >>> worst_count(CorrelatedRadial(Radial(4, 2, 1.0), 0.5), 4)  # r = 2: (1/2 + 4)/2 is nearest to 2
    2
    """
    return worst_vertex(law.gaussian(dimension), dimension)


# Loss: ||n||^2 = R^2 (1 + M r C^2), C being the cosine of the angle between x and (1, ..., 1).


@log_raw_moment.register(CorrelatedRadial)
def _(law: CorrelatedRadial, dimension: int, order: int) -> float:
    spread, cosine, total = dimension * law.ratio(dimension), 1.0, 1.0
    for i in range(1, order + 1):
        cosine *= (2.0 * i - 1.0) / (dimension + 2.0 * i - 2.0)  # E C^(2i), as C^2 ~ Beta(1/2, (M - 1)/2)
        total += math.comb(order, i) * spread**i * cosine
    return log_raw_moment(law.base, dimension, order) + math.log(total)


@quantile.register(CorrelatedRadial)
def _(law: CorrelatedRadial, dimension: int, probability: float) -> float:
    """The loss that is not exceeded with a probability within 1e-6 of the one asked for."""
    from scipy.optimize import brentq

    spread = dimension * law.ratio(dimension)
    if dimension == 1:
        return quantile(law.base, 1, probability) * (1.0 + spread)
    stretch, weights = _stretches(dimension, spread)

    def excess(log_loss: float) -> float:
        return float(np.dot(weights, _below(law.base, dimension, np.exp(0.5 * log_loss) / stretch))) - probability

    isotropic = math.log(quantile(law.base, dimension, probability))
    low, high = isotropic - 1e-6, isotropic + math.log1p(spread) + 1e-6
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def _stretches(dimension: int, spread: float) -> tuple[Array, Array]:
    """||n||/R = sqrt(1 + M r sin^2 t), t of density proportional to cos^(M-2) t on [0, pi/2]: points and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    end = min(0.5 * math.pi, 10.0 / math.sqrt(max(dimension - 2.0, 1.0)))
    panels = 32
    places = (np.arange(panels)[:, np.newaxis] + 0.5 * (nodes + 1.0)).ravel() * (end / panels)
    masses = np.tile(weights, panels) * np.exp((dimension - 2.0) * np.log(np.cos(places)))
    return np.sqrt(1.0 + spread * np.sin(places) ** 2), masses / masses.sum()


def _below(base: Radial | Shells, dimension: int, radii: Array) -> Array:
    """P(R <= r)."""
    from scipy.special import gammainc

    if isinstance(base, Radial):
        result: Array = gammainc(base.k / base.p, (radii / base.scale) ** base.p)
        return result
    edges, chances = np.array(base.edges), np.array(base.probabilities) / math.fsum(base.probabilities)
    shell = np.clip(np.searchsorted(edges, radii, side="left") - 1, 0, len(chances) - 1)
    inner, outer = edges[shell], edges[shell + 1]
    reached = np.minimum(radii, outer)
    with np.errstate(divide="ignore"):
        hole = dimension * np.log(inner / outer)
        filled = np.exp(dimension * np.log(reached / outer)) - np.exp(hole)
    share = np.maximum(filled, 0.0) / -np.expm1(hole)
    total: Array = np.append(0.0, np.cumsum(chances))[shell] + chances[shell] * share
    return total


# Noise.


@noise_form.register(CorrelatedRadial)
def _(law: CorrelatedRadial, shape: tuple[int, ...]) -> Form:
    base = law.base
    radius: GammaRadius | ShellRadius
    if isinstance(base, Radial):
        radius = GammaRadius(base.k, base.p, base.scale)
    else:
        radius = ShellRadius(base.edges, base.probabilities, base.dimension)
    return CorrelatedIsotropic(radius, Real.exactly(1.0), Real.exactly(law.common))
