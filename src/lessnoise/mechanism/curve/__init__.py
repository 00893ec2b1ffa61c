"""Exact privacy curves: from a noise description to proved brackets of delta and epsilon."""

from lessnoise.mechanism.curve.dispatch import delta_of, epsilon_of, law_delta, law_pure_epsilon

__all__ = ["delta_of", "epsilon_of", "law_delta", "law_pure_epsilon"]
