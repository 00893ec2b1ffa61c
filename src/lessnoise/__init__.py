"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise._version import __version__
from lessnoise.audit import AuditReport, audit, worst_neighbour
from lessnoise.composition import Composition, compose
from lessnoise.errors import BudgetExceeded, ClaimWarning, InvalidInput, LedgerError, LessnoiseError, PaidNotReleased
from lessnoise.guarantees import Bracket, Claim, Guarantee, Neighbours, Verdict
from lessnoise.ledger import Ledger
from lessnoise.mechanism.builders import (
    analytic_gaussian,
    classic_gaussian,
    l2_mechanism,
    laplace,
    r1smg,
    radial,
    zhao_gaussian,
)
from lessnoise.mechanism.counts import Dawa, Hierarchy, best_branching, dawa, hb
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
from lessnoise.query import Answer, Axis, Gram, Histogram, Mean, Sum, Unit
from lessnoise.release import Certificate, Release
from lessnoise.tasks.histogram import HistogramRelease, private_histogram

if TYPE_CHECKING:
    from lessnoise.pca import PrivateCovariance, PrivatePCA

__all__ = [
    "Answer",
    "AuditReport",
    "Axis",
    "Bracket",
    "BudgetExceeded",
    "Certificate",
    "Claim",
    "ClaimWarning",
    "Composition",
    "CorrelatedGaussian",
    "Dawa",
    "DiscreteGaussian",
    "GeneralizedGaussian",
    "Gram",
    "Guarantee",
    "Hierarchy",
    "Histogram",
    "HistogramRelease",
    "InvalidInput",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LessnoiseError",
    "MatrixGaussian",
    "Mean",
    "Mechanism",
    "MvgConstants",
    "Neighbours",
    "PaidNotReleased",
    "PrivateCovariance",
    "PrivatePCA",
    "Radial",
    "Release",
    "Shells",
    "Sum",
    "Unit",
    "Verdict",
    "Wishart",
    "__version__",
    "analytic_gaussian",
    "audit",
    "best_branching",
    "binary_shares",
    "classic_gaussian",
    "compose",
    "correlated_gaussian",
    "dawa",
    "discrete_gaussian",
    "generalized_gaussian",
    "hb",
    "improved_mvg_phi",
    "l2_mechanism",
    "laplace",
    "least_noise",
    "loss_lower_bound",
    "mgm",
    "mod_sulq",
    "mvg",
    "mvg_constants",
    "private_histogram",
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
