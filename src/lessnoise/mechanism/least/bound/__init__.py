"""A proved lower bound on E f(|n|) over every additive mechanism of sensitivity 1: how far the best can be."""

from lessnoise.mechanism.least.bound.guide import Guide, radial_guide
from lessnoise.mechanism.least.bound.longer import count_of, longer, shortened, worth
from lessnoise.mechanism.least.bound.lower import lower_bound, quantile_exceeds
from lessnoise.mechanism.least.bound.proof import LowerBound
from lessnoise.mechanism.least.bound.scalar import (
    entries_bound,
    scalar_bound,
    scalar_quantile_bound,
)

__all__ = [
    "Guide",
    "LowerBound",
    "count_of",
    "entries_bound",
    "longer",
    "lower_bound",
    "quantile_exceeds",
    "radial_guide",
    "scalar_bound",
    "scalar_quantile_bound",
    "shortened",
    "worth",
]
