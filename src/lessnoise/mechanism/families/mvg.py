"""MVG and MGM: matrix-variate Gaussian noise as published, and calibrated on its exact curve.

MVG is Chanyaswad, Dytso, Poor & Mittal (CCS 2018); MGM is Yang, Xiang et al. (2021). Both add Z = A N B^T. MVG's
published condition is sufficient and far from necessary; MGM's is exact. MVG's first public code had the square root of
zeta where the theorem has zeta; that is true, too, and needs less noise. The derivations are in
``docs/theory/matrix-gaussian.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from lessnoise import validation
from lessnoise._display import Facts, Listed
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import Deviations, FrozenMatrix, vector
from lessnoise.guarantees import Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import gaussian, law_delta
from lessnoise.mechanism.families.matrix_gaussian import MatrixGaussian, orthonormal
from lessnoise.mechanism.request import Request, representable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Shape
    from lessnoise.mechanism.mechanism import Mechanism
    from lessnoise.mechanism.request import Relation


Mode = Literal["isotropic", "unimodal", "equimodal"]
MODES: tuple[Mode, ...] = ("isotropic", "unimodal", "equimodal")
Condition = Literal["published", "code"]
CONDITIONS: tuple[Condition, ...] = ("published", "code")

_MVG = {
    "published": "Chanyaswad, Dytso, Poor & Mittal 2018 (Ji & Li 2024, Theorem 3)",
    "code": "public code of Chanyaswad, Dytso, Poor & Mittal, 2018, with the square root of zeta",
}
_MGM = "Yang, Xiang et al. 2021 (arXiv 2104.14808)"


# The published constants.


@dataclass(frozen=True, slots=True)
class MvgConstants(Listed):
    """The constants of the published MVG: noise is private if ||sv(S^-1)||_2 ||sv(P^-1)||_2 <= phi^2."""

    shape: tuple[int, int]
    alpha: float
    zeta: float
    beta: float
    phi: float

    @property
    def phi_squared(self) -> float:
        """The right side of the condition."""
        return self.phi**2

    def precision_budget(self, mode: Mode = "unimodal") -> float:
        """What the precisions 1/sv_i(S)^2 of the row directions may sum to.

        phi^4/n where the column covariance is the identity (unimodal and isotropic), phi^2 where it equals the row
        covariance (equimodal).
        """
        validation.choice("mode", mode, MODES)
        return self.phi_squared if mode == "equimodal" else self.phi_squared**2 / self.shape[1]

    def _facts(self) -> Facts:
        rows = [(name, f"{getattr(self, name):.6g}") for name in ("alpha", "zeta", "beta", "phi")]
        return Facts(f"Constants of MVG for {self.shape[0]} by {self.shape[1]}", rows)


def mvg_constants(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    bound: float,
    condition: Condition = "published",
) -> MvgConstants:
    """The constants of MVG, for a query of Frobenius norm at most ``bound`` (gamma).

    ``condition="published"`` is the theorem (Ji & Li 2024, Theorem 3). ``"code"`` is what the authors' public code
    computed from January 2018 to August 2020: the same, with the square root of zeta in beta.

    >>> setting = dict(epsilon=1, delta=1e-5, sensitivity=1, shape=(4, 4), bound=1)
    >>> c = mvg_constants(**setting)
    >>> print(f"{c.alpha:.6g} {c.zeta:.6g} {c.beta:.6g} {c.phi_squared:.6g}")
    9.03446 66.1704 551.42 1.31536e-05
    >>> c = mvg_constants(**setting, condition="code")
    >>> print(f"{c.beta:.6g} {c.phi_squared:.6g}")
    67.7877 0.000863701
    """
    validation.choice("condition", condition, CONDITIONS)
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    sensitivity, sizes = validation.sensitivity(sensitivity), _matrix_shape(shape)
    gamma = _bound(bound, sensitivity)
    # alpha = (H_r + H_{r,1/2}) gamma^2 + 2 H_r gamma s2.
    harmonic, half = _harmonic(min(sizes), 1.0), _harmonic(min(sizes), 0.5)
    with representable(sensitivity=sensitivity, bound=gamma):
        alpha = (harmonic + half) * gamma**2 + 2.0 * harmonic * gamma * sensitivity
    # beta = 2 (mn)^(1/4) H_r s2 zeta, or sqrt(zeta) in the place of zeta.
    zeta = _zeta(math.prod(sizes), delta)
    factor = zeta if condition == "published" else math.sqrt(zeta)
    beta = 2.0 * math.prod(sizes) ** 0.25 * harmonic * sensitivity * factor
    return MvgConstants(sizes, alpha, zeta, beta, _phi(alpha, beta, epsilon))


def improved_mvg_phi(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    inequality: Literal["singular-values", "cauchy-schwarz"] = "singular-values",
) -> float:
    """Phi of MVG with the improvement of Ji & Li 2024, appendix C, carried out: gamma is gone.

    ``"singular-values"`` keeps every other step of the published proof, so alpha becomes H_r s2^2 and beta stays.
    ``"cauchy-schwarz"`` is the most that bounding ||N||_F can give: alpha = s2^2, beta = 2 s2 sqrt(zeta). Both are
    sufficient only; the exact calibration never needs more noise than either.

    >>> common = dict(epsilon=1, delta=1e-5, sensitivity=1, shape=(4, 4))
    >>> print(f"{improved_mvg_phi(**common):.6g} {improved_mvg_phi(**common, inequality='cauchy-schwarz'):.6g}")
    0.00362695 0.122018
    """
    validation.choice("inequality", inequality, ("singular-values", "cauchy-schwarz"))
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    sensitivity, sizes = validation.sensitivity(sensitivity), _matrix_shape(shape)
    zeta = _zeta(math.prod(sizes), delta)
    if inequality == "cauchy-schwarz":
        return _phi(sensitivity**2, 2.0 * sensitivity * math.sqrt(zeta), epsilon)
    harmonic = _harmonic(min(sizes), 1.0)
    return _phi(harmonic * sensitivity**2, 2.0 * math.prod(sizes) ** 0.25 * harmonic * sensitivity * zeta, epsilon)


def _phi(alpha: float, beta: float, epsilon: float) -> float:
    """The positive root of alpha phi^2 + beta phi = 2 epsilon, without the cancellation of the textbook form."""
    return 4.0 * epsilon / (beta + math.hypot(beta, math.sqrt(8.0 * alpha * epsilon)))


def _zeta(entries: int, delta: float) -> float:
    """P(chi^2_mn > zeta) <= delta (Laurent & Massart 2000, Lemma 1)."""
    t = -math.log(delta)
    return 2.0 * math.sqrt(entries * t) + 2.0 * t + entries


def _harmonic(count: int, order: float) -> float:
    return float(np.sum(np.arange(1, count + 1, dtype=np.float64) ** -order))


# Builders.


def mvg(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    calibration: Literal["published", "code", "exact"],
    bound: float | None = None,
    mode: Mode = "isotropic",
    row_shares: ArrayLike | None = None,
    row_basis: ArrayLike | FrozenMatrix | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Matrix-variate Gaussian noise, with less of it in chosen directions (Chanyaswad et al. 2018).

    ``mode="unimodal"`` divides the precision among row directions by ``row_shares`` (positive, sum 1);
    ``"equimodal"`` does so for rows and columns alike, for square values. ``row_basis`` holds the directions as
    orthonormal columns (default: the coordinate axes). It is public: never take it from the private data without
    spending budget on it. ``bound`` is the largest Frobenius norm that the value can have.

    ``calibration="published"`` is the authors' theorem: true, and very conservative. ``"code"`` is what their public
    code computed from January 2018 to August 2020, with the square root of zeta: true as well. ``"exact"`` keeps the
    shape of the noise and takes the smallest scale that keeps the target; it does not need ``bound``.

    >>> target = dict(epsilon=1, delta=1e-5, sensitivity=1, shape=(4, 4), bound=1)
    >>> for calibration in ("published", "code", "exact"):
    ...     print(f"{mvg(**target, calibration=calibration).standard_deviation:.3f}")
    551.453
    68.053
    3.731
    >>> m = mvg(**target, calibration="exact", mode="unimodal", row_shares=binary_shares(4, 1, 0.9))
    >>> print(*(f"{deviation:.2f}" for deviation in m.law.row_deviations.array()))
    3.73 8.50 8.50 8.50
    """
    validation.choice("calibration", calibration, (*CONDITIONS, "exact"))
    validation.choice("mode", mode, MODES)
    target = Request.of(epsilon, delta, sensitivity, _matrix_shape(shape), neighbours)
    if bound is None and calibration != "exact":
        raise InvalidInput(
            "bound=None, but the published MVG needs it: pass the largest Frobenius norm that the value can have, "
            'or calibration="exact".'
        )
    gamma = None if bound is None else _bound(bound, target.sensitivity)
    law = _unit_law(target.shape, mode, row_shares, row_basis)
    name = "mvg" if mode == "isotropic" else f"mvg({mode})"
    if calibration == "exact" or gamma is None:
        return target.mechanism(name, _exact(law, target, balanced=mode == "equimodal"), OURS)
    phi = mvg_constants(
        epsilon=target.epsilon,
        delta=target.delta,
        sensitivity=target.sensitivity,
        shape=target.shape,
        bound=gamma,
        condition=calibration,
    ).phi
    # sv_i(S) = (theta_i P)^(-1/2), so the deviation theta_i^(-1/4) of the unit law is to be multiplied by P^(-1/4):
    # by phi^(-1/2) on both sides (P = phi^2), or n^(1/4)/phi on the rows alone (P = phi^4/n).
    scale = 1.0 / phi if mode == "equimodal" else target.shape[1] ** 0.25 / phi
    return target.mechanism(
        f"{name}-{calibration}", _scaled(law, scale, balanced=mode == "equimodal"), _MVG[calibration]
    )


def mgm(
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    shape: Shape,
    row_scales: ArrayLike | None = None,
    column_scales: ArrayLike | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Matrix Gaussian noise U1 N U2^T of the least scale that is private (Yang, Xiang et al. 2021).

    It is (epsilon, delta)-DP if and only if sv_min(U1) sv_min(U2) >= D/B, where B solves the analytic Gaussian's
    equation. ``row_scales`` and ``column_scales`` are the singular values up to a common factor; equal ones, the
    default, are best, and give the analytic Gaussian.

    >>> f"{mgm(epsilon=1, delta=1e-5, sensitivity=1, shape=(3, 5)).standard_deviation:.5f}"
    '3.73063'
    >>> m = mgm(epsilon=1, delta=1e-5, sensitivity=1, shape=(3, 5), row_scales=[1, 1, 4])
    >>> m.check().holds, m.standard_deviation > 3.74
    (True, True)
    """
    target = Request.of(epsilon, delta, sensitivity, _matrix_shape(shape), neighbours)
    rows, columns = (
        Deviations.constant(1.0, size) if scales is None else Deviations.of(_sized(scales, size, name), name)
        for scales, size, name in (
            (row_scales, target.shape[0], "row_scales"),
            (column_scales, target.shape[1], "column_scales"),
        )
    )
    law = MatrixGaussian(rows.scaled(1.0 / rows.smallest), columns.scaled(1.0 / columns.smallest))
    return target.mechanism("mgm", _exact(law, target, balanced=False), _MGM)


def binary_shares(size: int, important: int, fraction: float) -> tuple[float, ...]:
    """Shares for MVG: ``fraction`` of the precision to the first ``important`` directions, the rest to the others.

    >>> binary_shares(4, 2, 0.75)
    (0.375, 0.375, 0.125, 0.125)
    """
    size = validation.whole_number("size", size, minimum=2)
    important = validation.whole_number("important", important)
    fraction = validation.probability("fraction", fraction, "0.9, say")
    if important >= size:
        raise InvalidInput(
            f"important={important} is not below size={size}: leave at least one direction for the rest."
        )
    return (fraction / important,) * important + ((1.0 - fraction) / (size - important),) * (size - important)


# From shares to laws.


def _unit_law(
    shape: tuple[int, ...], mode: Mode, row_shares: ArrayLike | None, row_basis: ArrayLike | FrozenMatrix | None
) -> MatrixGaussian:
    """Deviations theta_i^(-1/4); isotropic noise has equal shares 1/m."""
    rows, columns = shape
    if mode == "isotropic":
        for name, value in (("row_shares", row_shares), ("row_basis", row_basis)):
            if value is not None:
                raise InvalidInput(
                    f'{name} is given, but mode="isotropic" has no directions: pass mode="unimodal" or "equimodal".'
                )
        return MatrixGaussian(Deviations.constant(rows**0.25, rows), Deviations.constant(1.0, columns))
    if mode == "equimodal" and rows != columns:
        raise InvalidInput(f'shape={shape} is not square, as mode="equimodal" needs: pass mode="unimodal".')
    if row_shares is None:
        raise InvalidInput(
            f'row_shares=None, but mode="{mode}" divides by shares: pass one positive share for each row.'
        )
    basis = None
    if row_basis is not None:
        matrix = row_basis if isinstance(row_basis, FrozenMatrix) else FrozenMatrix(row_basis, "row_basis")
        basis = orthonormal(matrix, rows, "row_basis")
    shares = _sized(row_shares, rows, "row_shares")
    total = math.fsum(shares)
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(f"row_shares sum to {total:.9g}, not 1: divide them by their sum.")
    deviations = Deviations.of((shares / total) ** -0.25)
    if mode == "equimodal":
        return MatrixGaussian(deviations, deviations, basis, basis)
    return MatrixGaussian(deviations, Deviations.constant(1.0, columns), basis)


def _scaled(law: MatrixGaussian, factor: float, *, balanced: bool) -> MatrixGaussian:
    """The noise times a factor, on the row side or split evenly over both."""
    if not balanced:
        return replace(law, row_deviations=law.row_deviations.scaled(factor))
    root = math.sqrt(factor)
    return replace(
        law, row_deviations=law.row_deviations.scaled(root), column_deviations=law.column_deviations.scaled(root)
    )


def _exact(law: MatrixGaussian, target: Request, *, balanced: bool) -> MatrixGaussian:
    """The least scale with sv_min(A) sv_min(B) >= D sigma, sigma that of the analytic Gaussian at D = 1."""
    delta = target.reserved_delta
    needed = target.sensitivity * gaussian.gaussian_scale(target.epsilon, delta)
    factor = needed / law.smallest_deviation
    while True:
        scaled = _scaled(law, factor, balanced=balanced)
        if law_delta(scaled, math.prod(target.shape), target.sensitivity, target.epsilon, 0.0).upper <= delta:
            return scaled
        factor *= 1.0 + 1e-14  # the last digits of the products


# Checks.


def _matrix_shape(shape: Shape) -> tuple[int, int]:
    sizes = validation.shape(shape)
    if len(sizes) != 2:
        raise InvalidInput(f"shape={sizes} is not that of a matrix: pass (rows, columns), reshaping the value first.")
    return sizes[0], sizes[1]


def _bound(value: object, sensitivity: float) -> float:
    result = validation.positive("bound", value)
    if result < 0.5 * sensitivity * (1.0 - 1e-12):
        raise InvalidInput(
            f"bound={result:g} is below half of sensitivity={sensitivity:g}, but two values of norm at most bound "
            "differ by at most 2 bound: pass the largest Frobenius norm that the value can have."
        )
    return result


def _sized(values: ArrayLike, size: int, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    array = vector(values, name)
    if array.size != size:
        raise InvalidInput(
            f"len({name})={array.size} differs from {size}: pass one positive number for each direction."
        )
    return array
