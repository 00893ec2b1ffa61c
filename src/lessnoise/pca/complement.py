r"""One step of the Gibbs sampler for frames: a Bingham vector that is orthogonal to a few others, in O(d m^2) work.

In the eigenbasis of the matrix the density is exp(sum s_i x_i^2), s falling, on unit vectors x with V^T x = 0, where V
has m orthonormal columns and 2m <= d. It is drawn as Kent, Ganeiban & Mardia (2018, J. Comput. Graph. Stat. 27, 291)
do: propose x = y/|y| with y normal of precision D = level - 2 diag(s) on the space of V^T y = 0, of q = d - m
dimensions, and accept with probability exp((q - w)/2) (w/q)^(q/2), w = x^T D x. This is at most 1 for every w, so
every level with D positive on that space gives the law; the best one makes E|y|^2 = 1.

y is drawn without a basis of that space. Let T be the first m coordinates and R the others, where D is positive by
interlacing of eigenvalues. Given y_T, y_R is normal of precision D_R under the condition V_R^T y_R = -V_T^T y_T; with
D_R^(-1/2) V_R = Q r (Q orthonormal, r triangular) and B = r^(-T) V_T^T,

    y_T has precision D_T + B^T B,    y_R = D_R^(-1/2) ((1 - Q Q^T) z - Q B y_T),    z standard normal.

All of this is in floats: a chain proves nothing anyway. Where a draw must be exact, :mod:`lessnoise.noise` makes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.noise import Normals

_NEAR = 0.1  # how far E|y|^2 may be from its best value, 1; another one only takes more proposals
_STEP, _TRIES, _PROPOSALS = 1.5, 100, 1000


@dataclass(frozen=True, slots=True)
class Proposal:
    """The normal law of y at one level."""

    precisions: Array
    inverse: Array  # of the Cholesky factor of the precision of y_T
    orthonormal: Array  # Q
    slopes: Array  # B
    size: float  # E|y|^2

    @classmethod
    def at(cls, precisions: Array, others: Array) -> Proposal | None:
        """None where D is not positive on the space."""
        count = others.shape[1]
        rest = precisions[count:]
        if rest[0] <= 0.0:
            return None
        roots = np.sqrt(rest)[:, np.newaxis]
        orthonormal, triangle = np.linalg.qr(others[count:] / roots)
        try:
            with np.errstate(all="ignore"):
                slopes = np.linalg.solve(triangle.T, others[:count].T)
                lower = np.linalg.cholesky(np.diag(precisions[:count]) + slopes.T @ slopes)
                inverse = np.linalg.inv(lower)
        except np.linalg.LinAlgError:
            return None
        turned = orthonormal / roots
        size = np.sum(1.0 / rest) - np.sum(turned**2) + np.sum(inverse**2) + np.sum((turned @ slopes @ inverse.T) ** 2)
        return cls(precisions, inverse, orthonormal, slopes, float(size))

    def draw(self, z: Array) -> tuple[Array, float]:
        """y from standard normals, and y^T D y = |z_T|^2 + |(1 - Q Q^T) z_R|^2."""
        count = len(self.inverse)
        free = z[count:] - self.orthonormal @ (self.orthonormal.T @ z[count:])
        first = self.inverse.T @ z[:count]
        rest = (free - self.orthonormal @ (self.slopes @ first)) / np.sqrt(self.precisions[count:])
        return np.concatenate([first, rest]), float(z[:count] @ z[:count] + free @ free)


def draw_orthogonal(
    values: Array, others: Array, source: Normals, level: float | None = None
) -> tuple[Array, float] | None:
    """A unit vector orthogonal to ``others`` of density exp(sum values_i x_i^2), and the level that suited it.

    ``values`` fall, ``others`` has one vector in each column, at most half as many as there are values. ``level`` is
    where to look for a good one first: the one returned for a similar case. None if the values are so large (above
    10^10, say) that floats do not suffice here.
    """
    dimensions = others.shape[0] - others.shape[1]
    falls = 2.0 * (values[others.shape[1]] - values)
    settled = _settled(falls, others, dimensions, level)
    if settled is None:
        return None
    proposal, level = settled
    for _ in range(_PROPOSALS):
        found, block = source.batch(len(values))
        drawn, form = proposal.draw(found.x)
        squared = float(drawn @ drawn)
        if not 0.0 < squared < math.inf:
            continue
        w = form / squared
        accept = 0.5 * (dimensions - w + dimensions * math.log(w / dimensions))
        if math.log(max(float(source.words(block, 1)[0]), 1.0) * 2.0**-64) <= accept:
            return drawn / math.sqrt(squared), level
    return None


def _settled(falls: Array, others: Array, dimensions: int, level: float | None) -> tuple[Proposal, float] | None:
    """A proposal with E|y|^2 near 1, and its level, counted from twice the first value outside T."""
    level = dimensions - float(falls[0]) if level is None else level
    too_low, too_high, step = 0.0, math.inf, _STEP
    usable = None
    for _ in range(_TRIES):
        proposal = Proposal.at(level + falls, others)
        if proposal is not None:
            usable = proposal, level
            if abs(proposal.size - 1.0) < _NEAR:
                break
        if proposal is None or proposal.size > 1.0:
            too_low = level
        else:
            too_high = level
        if too_low > 0.0 and too_high < math.inf:
            level = math.sqrt(too_low * too_high)
        else:
            level *= step if too_high == math.inf else 1.0 / step
            step *= step
    return usable
