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
from lessnoise_paper.theory.singular_gaussian import SingularGaussian, random_basis_noise, uniform_stiefel

__all__ = [
    "LossAtDimension",
    "PerEntryConstants",
    "SingularGaussian",
    "angle_bound",
    "angle_probability",
    "c_a",
    "c_c",
    "c_m",
    "c_r",
    "exact_analytic_loss",
    "harmonic",
    "harmonic_half",
    "loss_against_dimension",
    "per_entry_constants",
    "per_entry_limits",
    "proof_event_bound",
    "psi",
    "random_basis_noise",
    "uniform_stiefel",
]
