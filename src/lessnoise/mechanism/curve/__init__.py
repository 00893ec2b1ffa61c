"""Exact privacy curves: from a noise description to proved brackets of delta and epsilon."""

from lessnoise.mechanism.curve.dispatch import (
    attained,
    delta_of,
    entries,
    epsilon_of,
    law_delta,
    law_pure_epsilon,
    no_curve,
    pure_epsilon_of,
    worst_of,
)

__all__ = [
    "attained",
    "delta_of",
    "entries",
    "epsilon_of",
    "law_delta",
    "law_pure_epsilon",
    "no_curve",
    "pure_epsilon_of",
    "worst_of",
]
