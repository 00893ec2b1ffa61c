"""The paper's accuracy constants (Ji & Li 2024, Theorems 4 and 7, Corollary 1), beside the exact values.

Every constant is an expected accuracy loss E||n||^2 for l2 sensitivity D = 1; multiply by D^2 otherwise.
The theorems print each as a lower bound, E >= C D^2. What the sign is worth differs from one to the next:

* C_R, C_C: the loss of the published calibration itself, so an equality. Exact calibration needs less than
  C_C (for epsilon < 1), and far more than C_R (whose privacy claim does not hold).
* C_A: a *sufficient* noise level, so the sign points the other way: E < C_A D^2 for the analytic mechanism.
* C_M: a true lower bound for the matrix-variate Gaussian calibrated by its own theorem, though a loose one;
  not for matrix-variate Gaussian noise as such.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from lessnoise import validation
from lessnoise.errors import ClaimWarning, InvalidInput
from lessnoise.mechanism import gaussian_scale, r1smg, r1smg_psi

_EULER_GAMMA = 0.57721566490153286061
_ZETA_HALF = -1.46035450880958681289  # Riemann zeta at 1/2
_ASYMPTOTIC_FROM = 32
_DEFAULT_DIMENSIONS = (100, 316, 1000, 3162, 10**4, 31623, 10**5, 316228, 10**6)


# The constants.


def psi(dimension: int, delta: float) -> float:
    """Psi = (delta Gamma((M-1)/2) / (sqrt(pi) Gamma(M/2)))^(2/(M-2)) of Theorem 5, for M > 2.

    It is cos^2(theta0) at the angle where :func:`lessnoise_paper.theory.angle_bound` equals delta. It lies below 1
    and tends to 1 as M grows.

    >>> f"{psi(7921, 1e-7):.6f}"
    '0.994752'
    """
    return r1smg_psi(validation.whole_number("dimension", dimension, minimum=3), validation.delta(delta))


def c_r(dimension: int, epsilon: float, delta: float) -> float:
    """C_R = 2/(epsilon psi), the loss of the published R1SMG (Theorem 7).

    It falls with M, towards 2/epsilon. But Theorem 5 is stated for epsilon < 1/M only (Remark 1), and there
    C_R > 2/epsilon > 2 M: no fixed epsilon stays in the stated range as M grows. Nor is this much noise enough.
    At M = 100, (epsilon, delta) = (1e-3, 1e-5), C_R is 2663, and the exact delta of that noise is 0.21; R1SMG
    noise that keeps the target has an expected loss of 5.9e12, and the analytic Gaussian 3.0e8.

    >>> f"{c_r(100, 1e-3, 1e-5):.2f}"
    '2663.26'
    """
    return 2.0 / validation.epsilon(epsilon) / psi(dimension, delta)


def c_c(dimension: int, epsilon: float, delta: float) -> float:
    """C_C = 2 ln(1.25/delta) M/epsilon^2, the loss of the classic Gaussian mechanism (Theorem 4).

    An equality: it is what the classic calibration adds. For epsilon < 1 it is more than the same noise
    needs (:func:`exact_analytic_loss`).

    >>> f"{c_c(1, 1, 1e-5):.4f}, exactly needed {exact_analytic_loss(1, 1, 1e-5):.4f}"
    '23.4721, exactly needed 13.9176'
    """
    return _dimension(dimension) * _classic_entry(validation.epsilon(epsilon), validation.delta(delta))


def c_a(dimension: int, epsilon: float, delta: float) -> float:
    """C_A = (Phi^-1(delta)^2 + epsilon) M/epsilon^2, which Theorem 4 gives as a lower bound for analytic noise.

    It is an upper bound. The derivation strengthens the condition on sigma three times ("sufficient
    condition"), so sigma_A^2 = C_A/M is enough, not necessary; the mechanism itself uses less. At (1, 1e-5)
    the exact variance is 13.92 and C_A/M is 19.19; at (1e-9, 1e-10), 8.79e17 against 4.05e19, 46 times more.

    >>> f"{c_a(1, 1, 1e-5):.4f}, exactly needed {exact_analytic_loss(1, 1, 1e-5):.4f}"
    '19.1893, exactly needed 13.9176'
    """
    return _dimension(dimension) * _analytic_entry(validation.epsilon(epsilon), validation.delta(delta))


def c_m(rows: int, columns: int, epsilon: float) -> float:
    """C_M = (5/4 H_r + 1/4 H_{r,1/2}) M N/(2 epsilon), r = min(M, N), for the matrix-variate Gaussian (Theorem 4).

    A true lower bound for the mechanism calibrated by its own theorem (Theorem 3; Chanyaswad et al. 2018):
    every step of the paper's chain holds. It drops the delta term, however, which dominates: for a 10 by 10
    matrix at (1, 1e-5), C_M is 246 and the least loss that Theorem 3 allows is 3.1e9 (gamma = D/2).
    It is no bound for such noise in general. Exactly calibrated, its least loss is that of
    :func:`exact_analytic_loss` in dimension M N, which is less than C_M at (10, 1e-5) and 89 by 89.

    >>> f"{c_m(10, 10, 1):.1f}"
    '245.8'
    >>> exact_analytic_loss(89 * 89, 10, 1e-5) < c_m(89, 89, 10)
    True
    """
    rows = validation.whole_number("rows", rows)
    columns = validation.whole_number("columns", columns)
    return rows * columns * _matrix_entry(min(rows, columns), validation.epsilon(epsilon))


def exact_analytic_loss(dimension: int, epsilon: float, delta: float) -> float:
    """M sigma_A^2: the least expected loss of independent normal noise that is (epsilon, delta)-DP.

    sigma_A solves Balle & Wang's equation (the paper's Theorem 2) exactly, on the safe side. It is *smaller*
    than C_A, which the paper prints as a lower bound: 13.92 against 19.19 per entry at (1, 1e-5).

    >>> f"{exact_analytic_loss(100, 1, 1e-5):.2f}"
    '1391.76'
    """
    sigma = gaussian_scale(validation.epsilon(epsilon), validation.delta(delta))
    return _dimension(dimension) * sigma * sigma


# Per entry, the limits for large M, and Corollary 1.


@dataclass(frozen=True, slots=True)
class PerEntryConstants:
    """C_R, C_C/M, C_A/M and C_M/(M N) at one epsilon, so that Corollary 1 can be read off.

    C_R is the loss of the whole array; the other three are losses of one entry.
    """

    epsilon: float
    r1smg: float
    classic: float
    analytic: float
    matrix: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        """C_R over epsilon C_C/M, over C_A/M, and over C_M/(M N): the three Theta(.) of Corollary 1.

        Corollary 1 says that all three are bounded away from 0 and infinity. The first is: it tends to
        1/ln(1.25/delta). The second tends to 2 epsilon/(Phi^-1(delta)^2 + epsilon), so it wants the factor
        epsilon that the first has; as the paper asks for epsilon < 1/M, it falls at least as fast as 1/M.
        The third is bounded below only if r = min(M, N) is: H_{r,1/2} grows like 2 sqrt(r).
        """
        return (
            self.r1smg / (self.epsilon * self.classic),
            self.r1smg / self.analytic,
            self.r1smg / self.matrix,
        )


def per_entry_constants(rows: int, columns: int, epsilon: float, delta: float) -> PerEntryConstants:
    """The constants for a rows by columns matrix (a vector: ``columns=1``), R1SMG noise being drawn flat.

    >>> [f"{ratio:.3g}" for ratio in per_entry_constants(1000, 1000, 1e-7, 1e-10).ratios]
    ['0.043', '4.94e-09', '0.161']
    """
    rows = validation.whole_number("rows", rows)
    columns = validation.whole_number("columns", columns)
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    if rows * columns <= 2:
        raise InvalidInput(f"rows*columns={rows * columns} must exceed 2, as C_R needs M > 2: pass a larger matrix.")
    return _per_entry(c_r(rows * columns, epsilon, delta), epsilon, delta, min(rows, columns))


def per_entry_limits(epsilon: float, delta: float, rank: int | None = None) -> PerEntryConstants:
    """The limits for M -> infinity at fixed epsilon and delta: C_R -> 2/epsilon, the rest constant per entry.

    C_M/(M N) has a limit only when r = min(M, N) stays at some ``rank``. Without one it grows like
    sqrt(r)/(4 epsilon), and the limit is infinite.

    >>> limits = per_entry_limits(1e-7, 1e-10)
    >>> f"{limits.r1smg:.6g}, {limits.matrix}, {limits.ratios[2]}"
    '2e+07, inf, 0.0'
    """
    epsilon, delta = validation.epsilon(epsilon), validation.delta(delta)
    return _per_entry(2.0 / epsilon, epsilon, delta, None if rank is None else validation.whole_number("rank", rank))


def _per_entry(r1smg_loss: float, epsilon: float, delta: float, rank: int | None) -> PerEntryConstants:
    return PerEntryConstants(
        epsilon,
        r1smg_loss,
        _classic_entry(epsilon, delta),
        _analytic_entry(epsilon, delta),
        math.inf if rank is None else _matrix_entry(rank, epsilon),
    )


def _dimension(value: object) -> int:
    return validation.whole_number("dimension", value)


def _classic_entry(epsilon: float, delta: float) -> float:
    # Theorem 4, C_C/M; divided twice, since epsilon^2 may underflow.
    return 2.0 * math.log(1.25 / delta) / epsilon / epsilon


def _analytic_entry(epsilon: float, delta: float) -> float:
    # Theorem 4, C_A/M.
    return (statistics.NormalDist().inv_cdf(delta) ** 2 + epsilon) / epsilon / epsilon


def _matrix_entry(rank: int, epsilon: float) -> float:
    # Theorem 4, C_M/(M N).
    return (1.25 * harmonic(rank) + 0.25 * harmonic_half(rank)) / (2.0 * epsilon)


# Harmonic numbers.


def harmonic(r: int) -> float:
    """H_r = 1 + 1/2 + ... + 1/r, by Euler and Maclaurin's series (DLMF 5.11.2) from r = 32.

    >>> harmonic(2), f"{harmonic(10**6):.12f}"
    (1.5, '14.392726722866')
    """
    r = validation.whole_number("r", r)
    if r < _ASYMPTOTIC_FROM:
        return math.fsum(1.0 / j for j in range(1, r + 1))
    i = 1.0 / r**2
    return math.log(r) + _EULER_GAMMA + 0.5 / r - i * (1 / 12 - i * (1 / 120 - i * (1 / 252 - i / 240)))


def harmonic_half(r: int) -> float:
    """H_{r,1/2} = 1 + 1/sqrt(2) + ... + 1/sqrt(r), by Euler and Maclaurin's series from r = 32.

    >>> f"{harmonic_half(10**6):.9f}"
    '1998.540145491'
    """
    r = validation.whole_number("r", r)
    if r < _ASYMPTOTIC_FROM:
        return math.fsum(1.0 / math.sqrt(j) for j in range(1, r + 1))
    # sum j^(-s) = zeta(s) + r^(1-s)/(1-s) + r^(-s)/2 - s r^(-s-1)/12 + ... (DLMF 25.2.9), s = 1/2.
    root, i = math.sqrt(r), 1.0 / r**2
    return _ZETA_HALF + 2.0 * root + (0.5 - (1 / 24 - i * (1 / 384 - i / 1024)) / r) / root


# The paper's appendix B.


@dataclass(frozen=True, slots=True)
class LossAtDimension:
    """One point of the paper's figure of expected loss against M, with the two exact numbers beside it.

    ``r1smg``, ``classic`` and ``analytic_published`` are C_R, C_C and C_A; ``analytic_exact`` is the loss of
    the exactly calibrated Gaussian. ``r1smg_delta`` is the exact delta (upper end) of the published R1SMG at
    ``epsilon``: the number to compare with the ``delta`` that all four are meant to give.
    """

    epsilon: float
    delta: float
    dimension: int
    r1smg: float
    classic: float
    analytic_published: float
    analytic_exact: float
    r1smg_delta: float

    @property
    def in_stated_range(self) -> bool:
        """Epsilon < 1/M, where the paper states its claim (Remark 1)."""
        return self.epsilon * self.dimension < 1.0


def loss_against_dimension(
    dimensions: Iterable[int] | None = None, epsilons: Iterable[float] = (1e-7, 1e-8, 1e-9), delta: float = 1e-10
) -> tuple[LossAtDimension, ...]:
    """Expected loss against M, as in appendix B of Ji & Li (2024); D = 1, M from 10^2 to 10^6 unless given.

    R1SMG is published for epsilon < 1/M; a point outside is computed all the same, without a warning, and
    says so in ``in_stated_range``.

    >>> (row,) = loss_against_dimension([10**6], [1e-7])
    >>> f"{row.r1smg:.4g} {row.classic:.4g} {row.analytic_published:.4g} {row.analytic_exact:.4g}"
    '2e+07 4.65e+21 4.047e+21 5.936e+20'
    >>> f"{row.r1smg_delta:.3f}, not {row.delta:g}"
    '0.236, not 1e-10'
    """
    sizes = [
        validation.whole_number("dimensions", value, minimum=3)
        for value in _items("dimensions", _DEFAULT_DIMENSIONS if dimensions is None else dimensions)
    ]
    budgets = [validation.epsilon(value, "epsilons") for value in _items("epsilons", epsilons)]
    delta = validation.delta(delta)
    return tuple(_loss_at(dimension, epsilon, delta) for epsilon in budgets for dimension in sizes)


def _loss_at(dimension: int, epsilon: float, delta: float) -> LossAtDimension:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClaimWarning)  # the row itself carries the verdict
        published = r1smg(epsilon=epsilon, delta=delta, sensitivity=1, shape=dimension, calibration="published")
    return LossAtDimension(
        epsilon=epsilon,
        delta=delta,
        dimension=dimension,
        r1smg=published.expected_loss,
        classic=c_c(dimension, epsilon, delta),
        analytic_published=c_a(dimension, epsilon, delta),
        analytic_exact=exact_analytic_loss(dimension, epsilon, delta),
        r1smg_delta=published.delta(epsilon).upper,
    )


def _items(name: str, values: object) -> list[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{name}={values!r} is not a sequence: pass a list, even of one number.")
    return list(values)
