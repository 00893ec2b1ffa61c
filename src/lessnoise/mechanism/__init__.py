"""Mechanisms: frozen descriptions, and the functions over them (curves, calibration, losses, sampling)."""

from lessnoise.frozen_matrix import Deviations, FrozenMatrix
from lessnoise.mechanism.builders import (
    analytic_gaussian,
    classic_gaussian,
    l2_mechanism,
    laplace,
    r1smg,
    r1smg_psi,
    radial,
    zhao_gaussian,
)
from lessnoise.mechanism.catalogue import BEST, CATALOGUE, build_all, choose_mechanism, find_mechanism
from lessnoise.mechanism.choice import least_noise
from lessnoise.mechanism.counts.dawa import Dawa, dawa
from lessnoise.mechanism.counts.hierarchy import Hierarchy, best_branching, hb
from lessnoise.mechanism.counts.quantile_choice import QuantileChoice, choice_deviation, quantile_choice
from lessnoise.mechanism.curve.coins import MOST_TOSSES, Coins
from lessnoise.mechanism.curve.dispatch import (
    LARGEST_EPSILON,
    delta_of,
    epsilon_of,
    invert_curve,
    pure_epsilon_of,
    worst_of,
)
from lessnoise.mechanism.curve.gaussian import gaussian_delta, gaussian_scale
from lessnoise.mechanism.families.correlated_gaussian import (
    CorrelatedGaussian,
    correlated_gaussian,
    worst_mu,
    worst_vertex,
)
from lessnoise.mechanism.families.correlated_radial import CorrelatedRadial, worst_count
from lessnoise.mechanism.families.discrete_gaussian import delta_of_one_shift, discrete_gaussian, squared_budget
from lessnoise.mechanism.families.discrete_power import DiscretePower
from lessnoise.mechanism.families.discrete_sampler import DiscreteGaussian, integer_array
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian, generalized_gaussian
from lessnoise.mechanism.families.geometric import Geometric, geometric, log_weights
from lessnoise.mechanism.families.matrix_gaussian import MatrixGaussian
from lessnoise.mechanism.families.mvg import MvgConstants, binary_shares, improved_mvg_phi, mgm, mvg, mvg_constants
from lessnoise.mechanism.families.norm_bodies import gauge, worst_entries
from lessnoise.mechanism.families.norm_builder import norm_radial
from lessnoise.mechanism.families.norm_radial import NormRadial
from lessnoise.mechanism.families.norm_staircase import NormStaircase, steps
from lessnoise.mechanism.families.published import Wishart, mod_sulq, product_noise, wishart
from lessnoise.mechanism.families.shells import Shells, log_height, radius_at, shells
from lessnoise.mechanism.law import Laplace, Law, Radial
from lessnoise.mechanism.least.bound.document import bound_document
from lessnoise.mechanism.least.builder import LEAST_NOISE
from lessnoise.mechanism.least.correlated import correlated_radial
from lessnoise.mechanism.least.objective import Goal
from lessnoise.mechanism.least.search import best_member
from lessnoise.mechanism.measured.bound import loss_lower_bound
from lessnoise.mechanism.measured.builder import workload_mechanism
from lessnoise.mechanism.measured.law import Measured, largest_delta, moves_of, mu_of, one_move
from lessnoise.mechanism.mechanism import Mechanism, changes_words
from lessnoise.mechanism.numerics import computable, log_gamma_ratio
from lessnoise.mechanism.repeated import candidates_for_many, log_size
from lessnoise.mechanism.request import Request
from lessnoise.mechanism.rigorous import enclosure
from lessnoise.mechanism.sampling import (
    device_form,
    draw_noise,
    grid_step,
    has_independent_entries,
    is_streamed,
    noise_form,
    prepare_noise,
    prepare_streamed,
    values_drawn,
)
from lessnoise.mechanism.scaling import rescaled, with_noise

__all__ = [
    "BEST",
    "CATALOGUE",
    "LARGEST_EPSILON",
    "LEAST_NOISE",
    "MOST_TOSSES",
    "Coins",
    "CorrelatedGaussian",
    "CorrelatedRadial",
    "Dawa",
    "Deviations",
    "DiscreteGaussian",
    "DiscretePower",
    "FrozenMatrix",
    "GeneralizedGaussian",
    "Geometric",
    "Goal",
    "Hierarchy",
    "Laplace",
    "Law",
    "MatrixGaussian",
    "Measured",
    "Mechanism",
    "MvgConstants",
    "NormRadial",
    "NormStaircase",
    "QuantileChoice",
    "Radial",
    "Request",
    "Shells",
    "Wishart",
    "analytic_gaussian",
    "best_branching",
    "best_member",
    "binary_shares",
    "bound_document",
    "build_all",
    "candidates_for_many",
    "changes_words",
    "choice_deviation",
    "choose_mechanism",
    "classic_gaussian",
    "computable",
    "correlated_gaussian",
    "correlated_radial",
    "dawa",
    "delta_of",
    "delta_of_one_shift",
    "device_form",
    "discrete_gaussian",
    "draw_noise",
    "enclosure",
    "epsilon_of",
    "find_mechanism",
    "gauge",
    "gaussian_delta",
    "gaussian_scale",
    "generalized_gaussian",
    "geometric",
    "grid_step",
    "has_independent_entries",
    "hb",
    "improved_mvg_phi",
    "integer_array",
    "invert_curve",
    "is_streamed",
    "l2_mechanism",
    "laplace",
    "largest_delta",
    "least_noise",
    "log_gamma_ratio",
    "log_height",
    "log_size",
    "log_weights",
    "loss_lower_bound",
    "mgm",
    "mod_sulq",
    "moves_of",
    "mu_of",
    "mvg",
    "mvg_constants",
    "noise_form",
    "norm_radial",
    "one_move",
    "prepare_noise",
    "prepare_streamed",
    "product_noise",
    "pure_epsilon_of",
    "quantile_choice",
    "r1smg",
    "r1smg_psi",
    "radial",
    "radius_at",
    "rescaled",
    "shells",
    "squared_budget",
    "steps",
    "values_drawn",
    "wishart",
    "with_noise",
    "workload_mechanism",
    "worst_count",
    "worst_entries",
    "worst_mu",
    "worst_of",
    "worst_vertex",
    "zhao_gaussian",
]
