"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from lessnoise._version import __version__
from lessnoise.audit import AuditReport, audit, worst_neighbour
from lessnoise.composition import Composition, compose
from lessnoise.errors import BudgetExceeded, ClaimWarning, InvalidInput, LedgerError, LessnoiseError
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
    binary_shares,
    correlated_gaussian,
    discrete_gaussian,
    generalized_gaussian,
    improved_mvg_phi,
    mgm,
    mvg,
    mvg_constants,
    product_noise,
    shells,
)
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.least.builder import least_noise, loss_lower_bound
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.query import Answer, Axis, Gram, Histogram, Mean, Sum, Unit
from lessnoise.release import Certificate, Release
from lessnoise.tasks.histogram import HistogramRelease, private_histogram

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
    "Radial",
    "Release",
    "Shells",
    "Sum",
    "Unit",
    "Verdict",
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
    "mvg",
    "mvg_constants",
    "private_histogram",
    "product_noise",
    "r1smg",
    "radial",
    "shells",
    "worst_neighbour",
    "zhao_gaussian",
]
