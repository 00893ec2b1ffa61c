"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, majorant, read_strategy
from lessnoise.strategy.bounds import gaussian_bound, singular_value_bound
from lessnoise.strategy.dense import Dense
from lessnoise.strategy.gaussian import optimal_gaussian
from lessnoise.strategy.marginal import is_marginals, marginal_strategies
from lessnoise.strategy.product import Product
from lessnoise.strategy.residuals import Residuals
from lessnoise.strategy.simple import Cells, Total
from lessnoise.strategy.toeplitz import Toeplitz, toeplitz_for, toeplitz_strategies

__all__ = [
    "Cells",
    "Dense",
    "Product",
    "Residuals",
    "Strategy",
    "Toeplitz",
    "Total",
    "gaussian_bound",
    "is_marginals",
    "majorant",
    "marginal_strategies",
    "optimal_gaussian",
    "read_strategy",
    "singular_value_bound",
    "toeplitz_for",
    "toeplitz_strategies",
]
