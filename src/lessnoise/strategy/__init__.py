"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, majorant, read_strategy
from lessnoise.strategy.bounds import gaussian_bound, singular_value_bound
from lessnoise.strategy.dense import Dense
from lessnoise.strategy.exactness import exact_sum, unit
from lessnoise.strategy.gaussian import optimal_gaussian
from lessnoise.strategy.hats import Hats
from lessnoise.strategy.laplace import laplace_strategies
from lessnoise.strategy.marginal import is_marginals, marginal_strategies
from lessnoise.strategy.nested import Nested
from lessnoise.strategy.optimise import optimise_nested, optimise_p_identity
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.product import Product
from lessnoise.strategy.residuals import Residuals
from lessnoise.strategy.search import L1, L2, any_matrix, strategies
from lessnoise.strategy.simple import Cells, Total
from lessnoise.strategy.toeplitz import Toeplitz, toeplitz_for, toeplitz_strategies
from lessnoise.strategy.tree import optimise_tree, tree

__all__ = [
    "L1",
    "L2",
    "Cells",
    "Dense",
    "Hats",
    "Nested",
    "PIdentity",
    "Product",
    "Residuals",
    "Strategy",
    "Toeplitz",
    "Total",
    "any_matrix",
    "exact_sum",
    "gaussian_bound",
    "is_marginals",
    "laplace_strategies",
    "majorant",
    "marginal_strategies",
    "optimal_gaussian",
    "optimise_nested",
    "optimise_p_identity",
    "optimise_tree",
    "read_strategy",
    "singular_value_bound",
    "strategies",
    "toeplitz_for",
    "toeplitz_strategies",
    "tree",
    "unit",
]
