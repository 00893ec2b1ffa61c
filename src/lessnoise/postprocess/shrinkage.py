"""Shrinkage: pull noisy entries towards a public guess. A bias in return for less noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.postprocess.constraints import centre, released

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lessnoise._common import Array


def james_stein(value: ArrayLike, standard_deviation: float, towards: ArrayLike = 0.0) -> Array:
    """Shrink the whole array towards a public point, by as much as its own size justifies (positive part).

    *Privacy*: none spent; ``towards`` must be public or released itself.
    *Bias*: towards ``towards``, in every entry.
    *Helps*: always, in expected squared error over the whole array of three or more entries with independent
    normal noise of this standard deviation; most when the true distances from ``towards`` are no larger than the
    noise. A single entry far from the others can still get worse.

    The factor is (1 - (d - 2) sigma^2 / ||y - towards||^2)_+ (James & Stein 1961; its positive part, Baranchik 1964).

    >>> james_stein([3.0, 4.0, 0.0], standard_deviation=1).tolist()  # the factor is 1 - 1/25
    [2.88, 3.84, 0.0]
    """
    noisy = released(value)
    sigma = validation.positive("standard_deviation", standard_deviation)
    if noisy.size < 3:
        raise InvalidInput(
            f"value.shape={noisy.shape} has {noisy.size} entries, but James-Stein needs at least 3: "
            "keep the value as it is or use shrink_to_prior."
        )
    origin = centre(towards, noisy.shape, "towards")
    difference = noisy - origin
    length = float(np.linalg.norm(difference))
    relative = sigma / length if length > 0.0 else math.inf
    kept = max(0.0, 1.0 - (noisy.size - 2) * relative * relative)
    result: Array = origin + kept * difference
    return result


def soft_threshold(value: ArrayLike, standard_deviation: float, threshold: float | None = None) -> Array:
    """Move every entry towards 0 by the threshold, and those within it to 0.

    *Privacy*: none spent; a ``threshold`` of your own must be public.
    *Bias*: towards 0, by up to the threshold.
    *Helps*: when almost all true entries are 0 and the others stand far out of the noise. *Hurts* otherwise: where
    every entry is large, each is off by the whole threshold.

    The default threshold is sigma sqrt(2 ln d) for d entries, which pure normal noise rarely exceeds
    (Donoho & Johnstone 1994). A threshold is in the units of the value.

    >>> soft_threshold([0.3, -9.0, -0.4, 0.1], standard_deviation=1, threshold=2).tolist()
    [0.0, -7.0, 0.0, 0.0]
    """
    noisy = released(value)
    sigma = validation.positive("standard_deviation", standard_deviation)
    if threshold is None:
        level = sigma * math.sqrt(2.0 * math.log(noisy.size))
    else:
        level = validation.nonnegative_epsilon(threshold, "threshold")
    return np.sign(noisy) * np.maximum(np.abs(noisy) - level, 0.0) + 0.0  # no negative zeros


def shrink_to_prior(
    value: ArrayLike, standard_deviation: float, prior_deviation: float, prior_mean: ArrayLike = 0.0
) -> Array:
    """Average each entry with what was expected of it: the best estimate if truth ~ N(prior_mean, prior_deviation^2).

    *Privacy*: none spent; the prior must be public: an earlier census, not a look at the data.
    *Bias*: towards ``prior_mean``.
    *Helps*: an entry whose truth is within sqrt(2 w^2 + sigma^2) of the prior mean, for a prior deviation w and noise
    of any law with standard deviation sigma. *Hurts* beyond, without limit: a wrong prior is worse than none.

    The weight of the value is w^2 / (w^2 + sigma^2).

    >>> shrink_to_prior([10.0, 20.0], standard_deviation=1, prior_deviation=3, prior_mean=10).tolist()
    [10.0, 19.0]
    """
    noisy = released(value)
    sigma = validation.positive("standard_deviation", standard_deviation)
    ratio = sigma / validation.positive("prior_deviation", prior_deviation)
    mean = centre(prior_mean, noisy.shape, "prior_mean")
    result: Array = mean + (noisy - mean) / (1.0 + ratio * ratio)
    return result
