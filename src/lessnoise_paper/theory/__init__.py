"""The theory of the R1SMG paper (Ji & Li, USENIX Security 2024), as functions one can check.

Nothing here is needed to make a private release; see :mod:`lessnoise` for that.
"""

from lessnoise_paper.theory.accuracy import (
    LossAtDimension,
    PerEntryConstants,
    c_a,
    c_c,
    c_m,
    c_r,
    exact_analytic_loss,
    harmonic,
    harmonic_half,
    loss_against_dimension,
    per_entry_constants,
    per_entry_limits,
    psi,
)
from lessnoise_paper.theory.angle import angle_bound, angle_probability, proof_event_bound
from lessnoise_paper.theory.moments import loss_kurtosis, loss_quantile_ratio, loss_skewness
from lessnoise_paper.theory.mvg_chain import MvgChain, harmonic_step, mvg_chain
from lessnoise_paper.theory.ranks import Estimate, any_rank_bound, rank_noise, simulated_delta
from lessnoise_paper.theory.singular_gaussian import SingularGaussian, random_basis_noise, uniform_stiefel
from lessnoise_paper.theory.triangle import (
    longest_sides,
    meeting_epsilon_classic,
    meeting_epsilon_r1smg,
    published_sides,
)

__all__ = [
    "Estimate",
    "LossAtDimension",
    "MvgChain",
    "PerEntryConstants",
    "SingularGaussian",
    "angle_bound",
    "angle_probability",
    "any_rank_bound",
    "c_a",
    "c_c",
    "c_m",
    "c_r",
    "exact_analytic_loss",
    "harmonic",
    "harmonic_half",
    "harmonic_step",
    "longest_sides",
    "loss_against_dimension",
    "loss_kurtosis",
    "loss_quantile_ratio",
    "loss_skewness",
    "meeting_epsilon_classic",
    "meeting_epsilon_r1smg",
    "mvg_chain",
    "per_entry_constants",
    "per_entry_limits",
    "proof_event_bound",
    "psi",
    "published_sides",
    "random_basis_noise",
    "rank_noise",
    "simulated_delta",
    "uniform_stiefel",
]
