"""Less error after the release: estimates and constraints that cost no privacy.

Each function takes a value that has been released already and public knowledge, and nothing else, so it is
post-processing: the guarantee of the release stays what it was. Most trade a bias for a smaller error; each says
when that pays.
"""

from lessnoise.postprocess.constraints import lifted, nonnegative, restrict, round_to_integers, symmetrise
from lessnoise.postprocess.shrinkage import james_stein, shrink_to_prior, soft_threshold

__all__ = [
    "james_stein",
    "lifted",
    "nonnegative",
    "restrict",
    "round_to_integers",
    "shrink_to_prior",
    "soft_threshold",
    "symmetrise",
]
