"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lessnoise import changes, workload
from lessnoise import report as _report  # tables and pictures register themselves  # noqa: F401
from lessnoise._version import __version__
from lessnoise.audit import AuditReport, audit, worst_neighbour
from lessnoise.composition import Composition, compose
from lessnoise.errors import BudgetExceeded, ClaimWarning, InvalidInput, LedgerError, LessnoiseError, PaidNotReleased
from lessnoise.guarantees import Bracket, Claim, Guarantee, Neighbours, Verdict
from lessnoise.ledger import Ledger
from lessnoise.mechanism import (
    CorrelatedGaussian,
    CorrelatedRadial,
    Dawa,
    DiscreteGaussian,
    DiscretePower,
    GeneralizedGaussian,
    Geometric,
    Hierarchy,
    Laplace,
    MatrixGaussian,
    Mechanism,
    NormRadial,
    NormStaircase,
    Radial,
    Request,
    Shells,
    Wishart,
    analytic_gaussian,
    classic_gaussian,
    correlated_gaussian,
    correlated_radial,
    dawa,
    discrete_gaussian,
    generalized_gaussian,
    geometric,
    hb,
    l2_mechanism,
    laplace,
    least_noise,
    loss_lower_bound,
    mgm,
    mod_sulq,
    mvg,
    norm_radial,
    product_noise,
    r1smg,
    radial,
    shells,
    wishart,
    workload_mechanism,
    zhao_gaussian,
)
from lessnoise.planning import HowOften, Planned, ReleasePlan, most_releases, plan_releases
from lessnoise.query import Answer, Axis, Gram, Histogram, Mean, Sum, Unit
from lessnoise.release import Certificate, Release, Signer
from lessnoise.streams import Stream
from lessnoise.table import (
    Table,
    TableAnswer,
    cdf,
    count,
    covariance,
    histogram,
    linear_regression,
    mean,
    quantiles,
    ranges,
    sum,  # noqa: A004
    variance,
)
from lessnoise.tasks import HistogramRelease, private_histogram

if TYPE_CHECKING:
    from lessnoise import learn
    from lessnoise.pca import PrivateCovariance, PrivateLinearRegression, PrivatePCA

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
    "CorrelatedRadial",
    "Dawa",
    "DiscreteGaussian",
    "DiscretePower",
    "GeneralizedGaussian",
    "Geometric",
    "Gram",
    "Guarantee",
    "Hierarchy",
    "Histogram",
    "HistogramRelease",
    "HowOften",
    "InvalidInput",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LessnoiseError",
    "MatrixGaussian",
    "Mean",
    "Mechanism",
    "Neighbours",
    "NormRadial",
    "NormStaircase",
    "PaidNotReleased",
    "Planned",
    "PrivateCovariance",
    "PrivateLinearRegression",
    "PrivatePCA",
    "Radial",
    "Release",
    "ReleasePlan",
    "Request",
    "Shells",
    "Signer",
    "Stream",
    "Sum",
    "Table",
    "TableAnswer",
    "Unit",
    "Verdict",
    "Wishart",
    "__version__",
    "analytic_gaussian",
    "audit",
    "cdf",
    "changes",
    "classic_gaussian",
    "compose",
    "correlated_gaussian",
    "correlated_radial",
    "count",
    "covariance",
    "dawa",
    "discrete_gaussian",
    "generalized_gaussian",
    "geometric",
    "hb",
    "histogram",
    "l2_mechanism",
    "laplace",
    "learn",
    "least_noise",
    "linear_regression",
    "loss_lower_bound",
    "mean",
    "mgm",
    "mod_sulq",
    "most_releases",
    "mvg",
    "norm_radial",
    "plan_releases",
    "private_histogram",
    "product_noise",
    "quantiles",
    "r1smg",
    "radial",
    "ranges",
    "shells",
    "sum",
    "variance",
    "wishart",
    "workload",
    "workload_mechanism",
    "worst_neighbour",
    "zhao_gaussian",
]


def __getattr__(name: str) -> object:
    # scikit-learn and PyTorch take seconds to import, and PyTorch is an extra.
    if name == "learn":
        return import_module("lessnoise.learn")
    if name in ("PrivateCovariance", "PrivateLinearRegression", "PrivatePCA"):
        return getattr(import_module("lessnoise.pca"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
