"""Matrix-variate Gaussian noise Z = A N B^T: law, exact curve, loss moments and quantiles, sampler.

With A = W diag(a) and B = V diag(b), W and V orthonormal and public, the row covariance is S = A A^T and the column
covariance P = B B^T. In the basis (W, V) the entries of Z are independent normal variables of deviations a_i b_j, so

* over all shifts of Frobenius norm D the curve is the Gaussian's at mu = D/(min a min b);
* the loss ||Z||_F^2 is a sum of independent chi-squares of weights (a_i b_j)^2, the eigenvalues of S kron P;
* sampling takes two products with W and V, never the Kronecker product (:mod:`lessnoise.noise.matrix`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.mechanism.curve import attained, gaussian, law_delta
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import Form, Independent, Real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.changes import Changes
    from lessnoise.guarantees import Bracket


ORTHONORMAL_WITHIN = 1e-6
_ULPS = 1e-15


@register
@dataclass(frozen=True, slots=True)
class MatrixGaussian(Plain):
    """Z = W diag(row_deviations) N diag(column_deviations) V^T, with N of independent standard normal entries.

    A basis holds its directions as columns; None stands for the coordinate axes. Deviations may be given as lists;
    they are stored as runs, so that constant ones take no room.

    >>> law = MatrixGaussian(Deviations.of([1.0, 3.0]), Deviations.constant(2.0, 5))
    >>> law.shape, round(law.smallest_deviation, 9)
    ((2, 5), 2.0)
    >>> MatrixGaussian.from_dict(law.to_dict()) == law
    True
    """

    row_deviations: Deviations
    column_deviations: Deviations
    row_basis: FrozenMatrix | None = None
    column_basis: FrozenMatrix | None = None

    kind: ClassVar[str] = "matrix-gaussian"
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        for side in ("row", "column"):
            deviations = Deviations.of(getattr(self, f"{side}_deviations"), f"{side}_deviations")
            settle(self, **{f"{side}_deviations": deviations})
            basis = getattr(self, f"{side}_basis")
            if basis is not None:
                settle(self, **{f"{side}_basis": orthonormal(basis, deviations.size, f"{side}_basis")})

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the noise."""
        return self.row_deviations.size, self.column_deviations.size

    @property
    def smallest_deviation(self) -> float:
        """Proved lower bound of the least standard deviation of Z in any direction, sv_min(A) sv_min(B)."""
        return self._least() * math.prod(math.sqrt(1.0 - defect) for defect in self._defects()) * (1.0 - _ULPS)

    def _least(self) -> float:
        return self.row_deviations.smallest * self.column_deviations.smallest

    def _defects(self) -> tuple[float, float]:
        return _defect(self.row_deviations, self.row_basis), _defect(self.column_deviations, self.column_basis)

    def mu_range(self, sensitivity: float) -> tuple[float, float]:
        """Range of mu = D/(sv_min(A) sv_min(B)); its width is the bases' distance from exact orthonormality."""
        growth = math.prod(math.sqrt(1.0 + defect) for defect in self._defects())
        low = sensitivity / (self._least() * growth) * (1.0 - 2.0 * _ULPS)
        return low, sensitivity / self.smallest_deviation * (1.0 + _ULPS)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The value must be a matrix of the law's own shape."""
        if shape != self.shape:
            raise InvalidInput(
                f"shape={shape} differs from {self.shape}, the rows and columns of the matrix noise: "
                "pass a value of that shape or other deviations."
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "row_deviations": self.row_deviations.to_dict(),
            "column_deviations": self.column_deviations.to_dict(),
            "row_basis": None if self.row_basis is None else self.row_basis.to_dict(),
            "column_basis": None if self.column_basis is None else self.column_basis.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MatrixGaussian:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", *cls._names()), f"{cls.kind} noise")
        row, column = given["row_basis"], given["column_basis"]
        return cls(
            Deviations.from_dict(given["row_deviations"]),
            Deviations.from_dict(given["column_deviations"]),
            None if row is None else FrozenMatrix.from_dict(row, "row_basis"),
            None if column is None else FrozenMatrix.from_dict(column, "column_basis"),
        )


def orthonormal(basis: FrozenMatrix, size: int, name: str) -> FrozenMatrix:
    """A square basis of orthonormal columns, as near as rounding allows."""
    matrix = basis if isinstance(basis, FrozenMatrix) else FrozenMatrix(basis, name)
    if matrix.shape != (size, size):
        raise InvalidInput(
            f"{name}.shape={matrix.shape} differs from {(size, size)}: pass a square matrix with one column "
            "for each direction."
        )
    defect = matrix.orthonormality_defect()
    if not defect <= ORTHONORMAL_WITHIN:
        raise InvalidInput(
            f"{name} is not orthonormal, ||W^T W - I||={defect:.3g}: orthonormalise its columns with numpy.linalg.qr."
        )
    return matrix


def _defect(deviations: Deviations, basis: FrozenMatrix | None) -> float:
    """A basis changes nothing where all deviations are equal, and is then not used."""
    return 0.0 if basis is None or deviations.is_constant else basis.orthonormality_defect()


# Privacy.


@attained.register(MatrixGaussian)
def _(law: MatrixGaussian, changes: Changes, dimension: int) -> bool:
    sides = (law.row_deviations, law.column_deviations)
    equal = all(side == Deviations.constant(side.smallest, side.size) for side in sides)
    return equal or changes.inner_radius(dimension) >= changes.norm(2, dimension) * (1.0 - 1e-15)


@law_delta.register(MatrixGaussian)
def _(law: MatrixGaussian, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    # sup ||A^-1 Delta B^-T||_F over ||Delta||_F <= D is D/(sv_min(A) sv_min(B)), reached by the outer product of
    # the least directions; the privacy loss of a Gaussian depends on nothing else.
    return gaussian.delta_between(*law.mu_range(sensitivity), epsilon)


# Sampling.


@noise_form.register(MatrixGaussian)
def _(law: MatrixGaussian, shape: tuple[int, ...]) -> Form:
    rows, columns = law.row_deviations, law.column_deviations
    if rows.is_constant and columns.is_constant:
        return Independent(noise_engine.normal(), Real.rational(Fraction(rows.smallest) * Fraction(columns.smallest)))
    # Equal deviations on a side make the noise invariant under that side's turns.
    bases = (
        None if basis is None or deviations.is_constant else basis.array
        for deviations, basis in ((rows, law.row_basis), (columns, law.column_basis))
    )
    return noise_engine.Matrix(rows.array(), columns.array(), *bases)


# The loss: moments.


@log_raw_moment.register(MatrixGaussian)
def _(law: MatrixGaussian, dimension: int, order: int) -> float:
    # Lemma 1 of Ji & Li 2024 with A = I and mean 0: g_k = 2^k k! Tr(Xi^(k+1)), Tr(Xi^k) = Tr(S^k) Tr(P^k), and
    # E[L^t] = sum_j C(t-1, j) g_(t-1-j) E[L^j]. In units of the largest eigenvalue.
    rows, columns = law.row_deviations, law.column_deviations
    largest = max(rows.values) * max(columns.values)
    moments = [1.0]
    for t in range(1, order + 1):
        moments.append(
            math.fsum(
                math.comb(t - 1, j)
                * 2.0 ** (t - 1 - j)
                * math.factorial(t - 1 - j)
                * _power_trace(rows, t - j)
                * _power_trace(columns, t - j)
                * moments[j]
                for j in range(t)
            )
        )
    return math.log(moments[order]) + 2.0 * order * math.log(largest)


def _power_trace(deviations: Deviations, k: int) -> float:
    """Trace of the k-th power of the covariance, in units of its largest eigenvalue."""
    largest = max(deviations.values)
    runs = zip(deviations.values, deviations.counts, strict=True)
    return math.fsum(count * (value / largest) ** (2 * k) for value, count in runs)


# The loss: quantiles.


@quantile.register(MatrixGaussian)
def _(law: MatrixGaussian, dimension: int, probability: float) -> float:
    unit = (max(law.row_deviations.values) * max(law.column_deviations.values)) ** 2
    weights, freedoms = spectrum(law.row_deviations, law.column_deviations)
    return unit * chi_square_sum_quantile(weights, freedoms, probability)


_BINS, _SIDE_BINS = 4096, 2048


def spectrum(rows: Deviations, columns: Deviations) -> tuple[Array, Array]:
    """Distinct eigenvalues of S kron P, in units of the largest, and how often each occurs.

    More than 4096 of them (or 2048 of one side) are put into that many bins of equal width w in the logarithm, each
    at its mean. That keeps the mean of the loss and lowers its deviation by less than w^2/8 of itself, in all less
    than 5e-6 for a spread of 10^6.
    """
    row, row_counts = _merged(*_squares(rows), _SIDE_BINS)
    column, column_counts = _merged(*_squares(columns), _SIDE_BINS)
    products, counts = np.multiply.outer(row, column), np.multiply.outer(row_counts, column_counts)
    return _merged(products.ravel(), counts.ravel(), _BINS)


def _squares(deviations: Deviations) -> tuple[Array, Array]:
    ratios = np.asarray(deviations.values) / max(deviations.values)
    return ratios * ratios, np.asarray(deviations.counts, dtype=np.float64)


def _merged(values: Array, counts: Array, bins: int) -> tuple[Array, Array]:
    """Equal values once each, or bins of nearly equal ones where there are too many."""
    if values.size <= 64 * bins:
        distinct, which = np.unique(values, return_inverse=True)
        if distinct.size <= bins:
            return distinct, np.bincount(which.ravel(), counts).astype(np.float64)
    logs = np.log(values)
    logs -= logs.min()
    which = np.minimum((logs * (bins / logs.max())).astype(np.int64), bins - 1)
    totals = np.bincount(which, counts).astype(np.float64)
    filled = totals > 0.0
    return np.bincount(which, counts * values)[filled] / totals[filled], totals[filled]


def chi_square_sum_quantile(weights: Array, freedoms: Array, probability: float) -> float:
    """Quantile of sum_i weights_i chi^2(freedoms_i), to a relative error below 1e-9.

    >>> two = chi_square_sum_quantile(np.array([1.0, 0.5]), np.array([2.0, 2.0]), 0.75)
    >>> round(1 - 2 * math.exp(-two / 2) + math.exp(-two), 12)
    0.75
    """
    from scipy.optimize import brentq
    from scipy.special import gammaincinv

    # Exact for one weight, and otherwise a start: the multiple of a chi-square with the right mean and variance.
    mean, variance = float(freedoms @ weights), 2.0 * float(freedoms @ weights**2)
    scale = variance / (2.0 * mean)
    start = 2.0 * scale * float(gammaincinv(mean / (2.0 * scale), probability))
    if len(weights) == 1:
        return start
    total = ChiSquareSum(weights, freedoms)
    upper = probability > 0.5
    goal = math.log1p(-probability) if upper else math.log(probability)

    def excess(log_x: float) -> float:
        return total.log_tail(math.exp(log_x), upper=upper) - goal

    step = 0.5 * min(1.0, math.sqrt(variance) / mean)
    low = high = math.log(max(start, 1e-280))
    rising = -1.0 if upper else 1.0
    while rising * excess(low) > 0.0:
        low, step = low - step, 2.0 * step
    while rising * excess(high) < 0.0:
        high, step = high + step, 2.0 * step
    return math.exp(brentq(excess, low, high, xtol=1e-13, rtol=1e-13)) if high > low else math.exp(low)


class ChiSquareSum:
    """Tail probabilities of Q = sum_i weights_i chi^2(freedoms_i), by inverting the Laplace transform.

    P(Q < x) = (2 pi i)^-1 int e^(h(s))/s ds, h(s) = s x - sum_i (f_i/2) ln(1 + 2 w_i s), along a contour that passes
    the pole 0 on the right; one between the branch point -1/(2 max w) and the pole gives minus the upper tail. The
    contour is a hyperbola through the saddle point of h, bent to the left. |e^h| falls all along it, term by term,
    so no digits cancel even in far tails; and the integrand is analytic around it, so that the trapezoidal rule
    converges geometrically and halving the step shows its error.
    """

    ANGLE = 0.5  # of the hyperbola's asymptotes from the vertical; any below pi/4 keeps |e^h| falling
    TOLERANCE = 1e-12

    def __init__(self, weights: Array, freedoms: Array) -> None:
        largest = float(weights.max())
        self._doubled = 2.0 * weights
        self._freedoms = freedoms
        self._branch = -0.5 / largest
        self._gaps = (largest - weights) / largest  # 1 + 2 w s = gap + 2 w (s - branch)

    def log_tail(self, x: float, *, upper: bool) -> float:
        """ln P(Q > x) or ln P(Q < x), to an absolute error below 1e-11 where the tail is below 3/4."""
        point, width = self._contour(x)
        log_integral = self._log_integral(x, point, width)
        if (point < 0.0) == upper:
            return log_integral
        return math.log1p(-math.exp(log_integral)) if log_integral < 0.0 else -math.inf

    def _contour(self, x: float) -> tuple[float, float]:
        """Where the contour crosses the axis, and its scale: the width of the saddle."""
        from scipy.optimize import brentq

        # x = sum f w/(1 + 2 w s): the largest weight alone, and all weights as if the largest, bracket s - branch.
        half = 0.5 / x
        low = half * float(self._freedoms[self._gaps == 0.0].sum())
        high = half * float(self._freedoms.sum())

        def slope(distance: float) -> float:
            return x - 0.5 * float(self._freedoms @ (self._doubled / (self._gaps + self._doubled * distance)))

        low, high = low * (1.0 - 1e-9), high * (1.0 + 1e-9)
        distance = brentq(slope, low, high, xtol=1e-300, rtol=1e-9)
        ratios = self._doubled / (self._gaps + self._doubled * distance)
        width = 1.0 / math.sqrt(0.5 * float(self._freedoms @ (ratios * ratios)))
        saddle = self._branch + distance
        # Keep clear of the pole; to its right there is always room.
        return (saddle if saddle < -0.7 * width else max(saddle, width)), width

    def _log_integral(self, x: float, point: float, width: float) -> float:
        """ln of |the integral|, from trapezoidal sums with halved steps."""
        distance = point - self._branch
        factors = self._gaps + self._doubled * distance
        near = np.abs(self._doubled * point) < 0.5
        logs = np.where(near, np.log1p(np.where(near, self._doubled * point, 0.0)), np.log(factors))
        height = x * point - 0.5 * float(self._freedoms @ logs)
        ratios = self._doubled / factors
        sine, cosine = math.sin(self.ANGLE), math.cos(self.ANGLE)

        def values(points: Sequence[float] | NDArray[np.floating[Any]]) -> Array:
            angles = np.asarray(points, dtype=np.float64)
            moved = width * (sine * (1.0 - np.cosh(angles)) + 1j * cosine * np.sinh(angles))
            speed = width * (-sine * np.sinh(angles) + 1j * cosine * np.cosh(angles))
            exponent = x * moved - 0.5 * (np.log1p(np.multiply.outer(moved, ratios)) @ self._freedoms)
            result: Array = (np.exp(exponent) / (point + moved) * speed).imag
            return result

        end = 1.0
        while np.abs(values([end, end + 0.1])).max() > 1e-18 * abs(width / point):
            end += 0.5
        count = 16
        total = 0.5 * float(values([0.0])[0]) + float(values(end / count * np.arange(1, count + 1)).sum())
        estimate = total * end / count
        while count < 4096:
            total += float(values(end / count * (np.arange(count) + 0.5)).sum())
            count *= 2
            previous, estimate = estimate, total * end / count
            if abs(estimate - previous) <= self.TOLERANCE * abs(estimate):
                break
        return height + math.log(abs(estimate) / math.pi)
