"""Mechanisms beyond the radial family, one module each: law, curve, losses, sampler and builder together."""

from lessnoise.mechanism.families.correlated_gaussian import CorrelatedGaussian, correlated_gaussian
from lessnoise.mechanism.families.discrete_gaussian import DiscreteGaussian, discrete_gaussian
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian, generalized_gaussian
from lessnoise.mechanism.families.geometric import Geometric, geometric
from lessnoise.mechanism.families.matrix_gaussian import MatrixGaussian
from lessnoise.mechanism.families.mod_sulq import mod_sulq
from lessnoise.mechanism.families.mvg import MvgConstants, binary_shares, improved_mvg_phi, mgm, mvg, mvg_constants
from lessnoise.mechanism.families.product_noise import product_noise
from lessnoise.mechanism.families.shells import Shells, shells
from lessnoise.mechanism.families.wishart import Wishart, wishart

__all__ = [
    "CorrelatedGaussian",
    "DiscreteGaussian",
    "GeneralizedGaussian",
    "Geometric",
    "MatrixGaussian",
    "MvgConstants",
    "Shells",
    "Wishart",
    "binary_shares",
    "correlated_gaussian",
    "discrete_gaussian",
    "generalized_gaussian",
    "geometric",
    "improved_mvg_phi",
    "mgm",
    "mod_sulq",
    "mvg",
    "mvg_constants",
    "product_noise",
    "shells",
    "wishart",
]
