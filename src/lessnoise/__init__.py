"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise._version import __version__
from lessnoise.audit import AuditReport, audit, worst_neighbour
from lessnoise.errors import ClaimWarning, InvalidInput, LessnoiseError
from lessnoise.guarantees import Bracket, Claim, Guarantee, Neighbours, Verdict
from lessnoise.mechanism.builders import (
    analytic_gaussian,
    classic_gaussian,
    l2_mechanism,
    laplace,
    r1smg,
    radial,
    zhao_gaussian,
)
from lessnoise.mechanism.families import (
    CorrelatedGaussian,
    DiscreteGaussian,
    GeneralizedGaussian,
    MatrixGaussian,
    MvgConstants,
    Shells,
    Wishart,
    binary_shares,
    correlated_gaussian,
    discrete_gaussian,
    generalized_gaussian,
    improved_mvg_phi,
    mgm,
    mod_sulq,
    mvg,
    mvg_constants,
    product_noise,
    shells,
    wishart,
)
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.least.builder import least_noise, loss_lower_bound
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.release import Certificate, Release

if TYPE_CHECKING:
    from lessnoise.pca import PrivateCovariance, PrivatePCA

__all__ = [
    "AuditReport",
    "Bracket",
    "Certificate",
    "Claim",
    "ClaimWarning",
    "CorrelatedGaussian",
    "DiscreteGaussian",
    "GeneralizedGaussian",
    "Guarantee",
    "InvalidInput",
    "Laplace",
    "LessnoiseError",
    "MatrixGaussian",
    "Mechanism",
    "MvgConstants",
    "Neighbours",
    "PrivateCovariance",
    "PrivatePCA",
    "Radial",
    "Release",
    "Shells",
    "Verdict",
    "Wishart",
    "__version__",
    "analytic_gaussian",
    "audit",
    "binary_shares",
    "classic_gaussian",
    "correlated_gaussian",
    "discrete_gaussian",
    "generalized_gaussian",
    "improved_mvg_phi",
    "l2_mechanism",
    "laplace",
    "least_noise",
    "loss_lower_bound",
    "mgm",
    "mod_sulq",
    "mvg",
    "mvg_constants",
    "product_noise",
    "r1smg",
    "radial",
    "shells",
    "wishart",
    "worst_neighbour",
    "zhao_gaussian",
]


def __getattr__(name: str) -> object:
    # scikit-learn takes seconds to import, and is an extra.
    if name in ("PrivateCovariance", "PrivatePCA"):
        from lessnoise import pca

        return getattr(pca, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
