"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, majorant, read_strategy
from lessnoise.strategy.dense import Dense
from lessnoise.strategy.product import Product
from lessnoise.strategy.simple import Cells, Total

__all__ = ["Cells", "Dense", "Product", "Strategy", "Total", "majorant", "read_strategy"]
