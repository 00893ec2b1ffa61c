"""A proved lower bound on E f(|n|) over every additive mechanism of sensitivity 1: how far the best can be."""

from lessnoise.mechanism.least.bound.lower import lower_bound, quantile_exceeds
from lessnoise.mechanism.least.bound.proof import LowerBound

__all__ = ["LowerBound", "lower_bound", "quantile_exceeds"]
