"""What is measured with noise, so that a workload is answered with the least error."""

from lessnoise.strategy.base import Strategy, read_strategy
from lessnoise.strategy.nested import Nested
from lessnoise.strategy.p_identity import PIdentity

__all__ = ["Nested", "PIdentity", "Strategy", "read_strategy"]
