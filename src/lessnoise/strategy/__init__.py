"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, read_strategy

__all__ = ["Strategy", "read_strategy"]
