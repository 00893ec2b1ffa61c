"""Private second moments, covariances, principal components and linear regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.pca.bingham import sample_bingham, sample_frame
from lessnoise.pca.bounded_rows import Moments, RowBound, moments
from lessnoise.pca.exponential import ppca
from lessnoise.pca.layout import Layout, unpack
from lessnoise.pca.noisy_moments import build_mechanism

if TYPE_CHECKING:
    from lessnoise.pca.estimators import PrivateCovariance, PrivatePCA
    from lessnoise.pca.regression import PrivateLinearRegression

__all__ = [
    "Layout",
    "Moments",
    "PrivateCovariance",
    "PrivateLinearRegression",
    "PrivatePCA",
    "RowBound",
    "build_mechanism",
    "moments",
    "ppca",
    "sample_bingham",
    "sample_frame",
    "unpack",
]


def __getattr__(name: str) -> object:
    # scikit-learn takes seconds to import, and is an extra.
    if name in ("PrivateCovariance", "PrivatePCA"):
        from lessnoise.pca import estimators

        return getattr(estimators, name)
    if name == "PrivateLinearRegression":
        from lessnoise.pca import regression

        return regression.PrivateLinearRegression
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
