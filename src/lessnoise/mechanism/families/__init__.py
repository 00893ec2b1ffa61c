"""Mechanisms beyond the radial family: law, curve, losses, sampler and builder together."""

from lessnoise.mechanism.families.correlated_gaussian import correlated_gaussian
from lessnoise.mechanism.families.discrete_gaussian import discrete_gaussian
from lessnoise.mechanism.families.generalized_gaussian import generalized_gaussian
from lessnoise.mechanism.families.geometric import LEAST_COUNT_NOISE, geometric
from lessnoise.mechanism.families.mvg import mgm, mvg
from lessnoise.mechanism.families.norm_builder import norm_radial
from lessnoise.mechanism.families.published import mod_sulq, product_noise, wishart

__all__ = [
    "LEAST_COUNT_NOISE",
    "correlated_gaussian",
    "discrete_gaussian",
    "generalized_gaussian",
    "geometric",
    "mgm",
    "mod_sulq",
    "mvg",
    "norm_radial",
    "product_noise",
    "wishart",
]
