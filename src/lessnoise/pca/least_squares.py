r"""Least squares from noisy second moments, and how far noise and sampling move the solution.

Write u = (-b, 1, -b_0) for coefficients b and intercept b_0, and Z for the second moments of (x, y, 1). The residuals
have the moments r = Z u with (x, 1), and least squares is r = 0. With noise E in Z, and Z itself from a sample, the
solution b' from the noisy A, the part of Z that belongs to (x, 1), satisfies *exactly*

    A (b' - b) = (E u) + (sum of residuals times (x, 1)),

so to first order b' - b has the covariance A^-1 (V + s^2 A) A^-1 (the delta method), with s^2 the variance of the
residuals, if it is the same for all rows, and V the covariance of E u. The noise is that of
:class:`~lessnoise.pca.layout.Layout`: entries of the packed vector are uncorrelated and deviate by t, so that in the
Gram matrix E deviates by t on the diagonal and t/sqrt(2) beside it, in the sums by t_1 = t/(a c), in the number of rows
by t_0 = t/(b c^2). With v = (-b, 1) and w = -b_0, for rows i, j of the features and 0 of the intercept,

    V_ij = t^2/2 (|v|^2 [i = j] + v_i v_j) + t_1^2 w^2 [i = j],   V_i0 = t_1^2 v_i w,   V_00 = t_1^2 |v|^2 + t_0^2 w^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.pca.layout import COUNT_WEIGHT, MEAN_WEIGHT
from lessnoise.postprocess import lifted

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.mechanism import Mechanism
    from lessnoise.pca.bounded_rows import Moments
    from lessnoise.pca.layout import Layout


@dataclass(frozen=True)
class Deviations:
    """Standard deviations of the noise: of a diagonal entry of the Gram matrix, of a sum, of the number of rows."""

    gram: float
    sums: float
    count: float

    @classmethod
    def of(cls, layout: Layout, deviation: float) -> Deviations:
        """From that of a packed entry; what is public or not released has none."""
        sums = deviation / (MEAN_WEIGHT * layout.norm) if layout.center else 0.0
        count = deviation / (COUNT_WEIGHT * layout.norm**2) if layout.counted else 0.0
        return cls(deviation, sums, count)

    def floor(self, mean: Array) -> float:
        """About the largest eigenvalue of the noise in the centred moments of the features.

        In the Gram matrix sqrt(2 d) t (Wigner 1955), and one deviation t more, which is how much it varies. Centring
        takes away n m m^T, for a mean m: its noise is 2 |m| t_1 + |m|^2 t_0 at most, in deviations.
        """
        length = float(np.linalg.norm(mean))
        return (math.sqrt(2.0 * len(mean)) + 1.0) * self.gram + 2.0 * length * self.sums + length**2 * self.count

    def equations(self, line: Array, height: float) -> Array:
        """V, see above: the covariance of the noise in the equations, for v = ``line`` and w = ``height``."""
        features, squared = line[:-1], float(line @ line)
        size = len(features)
        found = np.empty((size + 1, size + 1))
        found[:size, :size] = 0.5 * self.gram**2 * np.outer(features, features)
        found[range(size), range(size)] += 0.5 * self.gram**2 * squared + self.sums**2 * height**2
        found[:size, size] = found[size, :size] = self.sums**2 * height * features
        found[size, size] = self.sums**2 * squared + self.count**2 * height**2
        return found

    def residual_sum(self, line: Array, height: float) -> float:
        """The deviation of the noise in the sum of squared residuals, u^T Z u."""
        squared = float(line @ line)
        variance = (self.gram * squared) ** 2 + 4.0 * (self.sums * height) ** 2 * squared
        return math.sqrt(variance + (self.count * height**2) ** 2)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The solution: coefficients, then the intercept (0 if there is none), and its covariance by noise and sampling.

    ``ridge`` was added to the diagonal of the features' moments; above 0 the covariances say nothing of the bias.
    """

    solution: Array
    ridge: float
    floor: float
    residual_variance: float
    noise: Array
    sampling: Array


def solve(moments: Moments, layout: Layout, deviation: float, farthest: Array) -> LeastSquares:
    """Least squares of the last column on the others, from noisy moments; entries lie within ``farthest`` of 0.

    The ridge is what lifts the smallest eigenvalue of the centred moments of the features to the noise floor: none
    if it is above. So the matrix is positive definite, and nothing but the noisy moments and public numbers is used.
    """
    size = layout.features - 1
    noise, count = Deviations.of(layout, deviation), max(moments.count, 1.0)
    mean = np.clip(moments.sums / count, -farthest, farthest) if layout.center else np.zeros(size + 1)
    centred = moments.gram - count * np.outer(mean, mean)
    features = centred[:size, :size]
    floor = noise.floor(mean[:size])
    positive, added = lifted(features, floor)
    ridge = float(added)
    coefficients = np.linalg.solve(positive, centred[:size, size])
    intercept = float(mean[size] - mean[:size] @ coefficients)
    line, height = np.append(-coefficients, 1.0), -intercept
    inverse = _bordered_inverse(positive, mean[:size], count, layout.center)
    equations = noise.equations(line, height)
    by_noise = inverse @ equations @ inverse
    # The solution fits the noise, too: that takes tr(A^-1 V) off the sum of squares, on average.
    squares = float(line @ centred @ line) + float(np.sum(inverse * equations))
    squares = max(squares, noise.residual_sum(line, height))  # below its own noise nothing is known
    variance = squares / max(count - size - layout.center, 1.0)
    return LeastSquares(np.append(coefficients, intercept), ridge, floor, variance, by_noise, variance * inverse)


def _bordered_inverse(centred: Array, mean: Array, count: float, bordered: bool) -> Array:
    """The inverse of the moments of (x, 1) from centred ones; without an intercept its row and column are 0."""
    size = len(mean)
    found = np.zeros((size + 1, size + 1))
    found[:size, :size] = np.linalg.inv(centred)
    if bordered:
        back = np.append(-mean, 1.0)  # b_0 = (mean of y) - mean.b
        found[:size, size] = found[size, :size] = found[:size, :size] @ back[:size]
        found[size, size] = 1.0 / count + float(mean @ found[:size, :size] @ mean)
    return found


# Quantiles of the sum of noise and sampling error.


def half_widths(mechanism: Mechanism, noise: Array, sampling: Array, level: float) -> Array:
    """How far from 0 the sum of a projection of the noise and a normal error stays with probability ``level``.

    ``noise`` and ``sampling`` are their variances. Noise of the same law in every direction, of length r in M
    dimensions, projects to r T with T^2 of a Beta(1/2, (M - 1)/2) law. The law of r is the mechanism's own. For other
    noise, such as Laplace noise, this is an approximation that is good in many dimensions.
    """
    total = noise + sampling
    points, weights = _projections(mechanism)
    shares = np.divide(noise, total, out=np.zeros_like(total), where=total > 0.0)
    return np.array([_quantile(points, weights, share, level) for share in shares]) * np.sqrt(total)


def _projections(mechanism: Mechanism) -> tuple[Array, Array]:
    """|one entry| of the noise, in its deviations: points and their probabilities."""
    from scipy.special import betainccinv

    edges = np.concatenate([np.linspace(1.0, 0.1, 37), np.geomspace(0.1, 1e-9, 49)[1:], [0.0]])
    inner = np.append(0.5 * (edges[:36] + edges[1:37]), np.sqrt(edges[36:-2] * edges[37:-1]))
    tails, weights = np.append(inner, 0.5 * edges[-2]), -np.diff(edges)
    radii = np.sqrt([mechanism.loss_quantile(1.0 - tail) for tail in tails]) / mechanism.standard_deviation
    size = mechanism.dimension
    parts = np.sqrt(betainccinv(0.5, 0.5 * (size - 1), tails)) if size > 1 else np.ones(len(tails))
    return np.outer(radii, parts).ravel(), np.outer(weights, weights).ravel()


def _quantile(points: Array, weights: Array, share: float, level: float) -> float:
    """The q with P(|sqrt(share) X + sqrt(1 - share) N| <= q) = level, for |X| as given and N normal."""
    from scipy.optimize import brentq
    from scipy.special import ndtr

    share = min(share, 0.999)  # the normal part smooths the points
    shift, scale = math.sqrt(share) * points, math.sqrt(1.0 - share)

    def excess(bound: float) -> float:
        inside = ndtr((bound - shift) / scale) - ndtr((-bound - shift) / scale)
        return float(weights @ inside) - level

    most = float(shift.max()) + 10.0
    return most if excess(most) <= 0.0 else float(brentq(excess, 0.0, most, xtol=1e-9))
