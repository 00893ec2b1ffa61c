"""Noise that is correlated across the steps of a training."""

from lessnoise.learn.across.compare import NoiseComparison, NoiseRow, compare_noise
from lessnoise.learn.across.factorisation import KINDS, Banded, BandedInverse, Factorisation
from lessnoise.learn.across.plan import AcrossPlan, plan_across_steps

__all__ = [
    "KINDS",
    "AcrossPlan",
    "Banded",
    "BandedInverse",
    "Factorisation",
    "NoiseComparison",
    "NoiseRow",
    "compare_noise",
    "plan_across_steps",
]
