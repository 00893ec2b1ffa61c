"""Release vectors, matrices and tensors under differential privacy, with noise that provably keeps the promise."""

from lessnoise._version import __version__
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
from lessnoise.mechanism.law import Laplace, Radial
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.release import Certificate, Release

__all__ = [
    "Bracket",
    "Certificate",
    "Claim",
    "ClaimWarning",
    "Guarantee",
    "InvalidInput",
    "Laplace",
    "LessnoiseError",
    "Mechanism",
    "Neighbours",
    "Radial",
    "Release",
    "Verdict",
    "__version__",
    "analytic_gaussian",
    "classic_gaussian",
    "l2_mechanism",
    "laplace",
    "r1smg",
    "radial",
    "zhao_gaussian",
]
