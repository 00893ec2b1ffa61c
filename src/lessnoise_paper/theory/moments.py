"""Moments of the loss of Gaussian noise of rank H: the paper's, about zero, and the usual ones, about the mean.

For H equal eigenvalues the loss is a multiple of a chi-squared variable U of H degrees of freedom, and kurtosis and
skewness do not see the multiple. Theorems 8 and 9 of Ji & Li (2024) use E[U^4]/E[U^2]^2 and E[U^3]/E[U^2]^1.5, moments
about zero. Their Remark 2 gives 3 + 12/H and sqrt(8/H) for the Gaussian, which are moments about the mean.
"""

from __future__ import annotations

import math

from lessnoise import validation


def loss_kurtosis(rank: int, *, central: bool = False) -> float:
    """Kurtosis of the loss of Gaussian noise of a rank: about zero as in Theorem 8, or about the mean if ``central``.

    >>> f"R1SMG {loss_kurtosis(1):.4f}, about the mean {loss_kurtosis(1, central=True):g}"
    'R1SMG 11.6667, about the mean 15'
    >>> f"{loss_kurtosis(10**6):.4f}, about the mean {loss_kurtosis(10**6, central=True):.4f}"
    '1.0000, about the mean 3.0000'
    """
    h = validation.whole_number("rank", rank)
    if central:
        return 3.0 + 12.0 / h  # Remark 2
    # E[U^t] = H (H + 2) ... (H + 2t - 2), the proof of Theorem 8.
    return (h + 4) * (h + 6) / (h * (h + 2))


def loss_skewness(rank: int, *, central: bool = False) -> float:
    """Skewness of the loss of Gaussian noise of a rank: about zero as in Theorem 9, or about the mean if ``central``.

    >>> f"R1SMG {loss_skewness(1):.4f}, about the mean {loss_skewness(1, central=True):.4f}"
    'R1SMG 2.8868, about the mean 2.8284'
    """
    h = validation.whole_number("rank", rank)
    if central:
        return math.sqrt(8.0 / h)  # Remark 2
    return (h + 4) / math.sqrt(h * (h + 2))  # Theorem 9


def loss_quantile_ratio(rank: int, q: float) -> float:
    """The loss that is not exceeded with probability q, over the mean loss, for Gaussian noise of a rank.

    >>> f"{loss_quantile_ratio(1, 0.999):.2f} {loss_quantile_ratio(100, 0.999):.2f}"
    '10.83 1.49'
    """
    from scipy.special import gammaincinv

    h = validation.whole_number("rank", rank)
    return float(2.0 * gammaincinv(0.5 * h, validation.probability("q", q)) / h)
