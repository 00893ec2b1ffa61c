"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from lessnoise._version import __version__
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
from lessnoise.mechanism.families import (
    CorrelatedGaussian,
    DiscreteGaussian,
    GeneralizedGaussian,
    MatrixGaussian,
    MvgConstants,
    binary_shares,
    correlated_gaussian,
    discrete_gaussian,
    generalized_gaussian,
    improved_mvg_phi,
    mgm,
    mvg,
    mvg_constants,
    product_noise,
)
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.release import Certificate, Release

__all__ = [
    "Bracket",
    "BudgetExceeded",
    "Certificate",
    "Claim",
    "ClaimWarning",
    "Composition",
    "CorrelatedGaussian",
    "DiscreteGaussian",
    "GeneralizedGaussian",
    "Guarantee",
    "InvalidInput",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LessnoiseError",
    "MatrixGaussian",
    "Mechanism",
    "MvgConstants",
    "Neighbours",
    "Radial",
    "Release",
    "Verdict",
    "__version__",
    "analytic_gaussian",
    "binary_shares",
    "classic_gaussian",
    "compose",
    "correlated_gaussian",
    "discrete_gaussian",
    "generalized_gaussian",
    "improved_mvg_phi",
    "l2_mechanism",
    "laplace",
    "mgm",
    "mvg",
    "mvg_constants",
    "product_noise",
    "r1smg",
    "radial",
    "zhao_gaussian",
]
