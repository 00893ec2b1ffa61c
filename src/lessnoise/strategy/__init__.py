"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, majorant, read_strategy
from lessnoise.strategy.dense import Dense
from lessnoise.strategy.product import Product

__all__ = ["Dense", "Product", "Strategy", "majorant", "read_strategy"]
