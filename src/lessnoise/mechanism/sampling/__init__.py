"""Drawing noise: cryptographic by default, from a NumPy generator for experiments."""

from lessnoise.mechanism.sampling.sampler import draw, perturb
from lessnoise.mechanism.sampling.sources import NumpySource, SecureSource, Source

__all__ = ["NumpySource", "SecureSource", "Source", "draw", "perturb"]
