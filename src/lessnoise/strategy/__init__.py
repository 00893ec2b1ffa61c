"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, read_strategy
from lessnoise.strategy.hats import Hats
from lessnoise.strategy.laplace import laplace_strategies
from lessnoise.strategy.nested import Nested
from lessnoise.strategy.optimise import optimise_blocks, optimise_hats, optimise_nested, optimise_p_identity
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.tree import optimise_tree, tree

__all__ = [
    "Hats",
    "Nested",
    "PIdentity",
    "Strategy",
    "laplace_strategies",
    "optimise_blocks",
    "optimise_hats",
    "optimise_nested",
    "optimise_p_identity",
    "optimise_tree",
    "read_strategy",
    "tree",
]
