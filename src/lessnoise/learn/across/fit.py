"""How much of the noise is left in the weights, and the coefficients that leave the least of it.

Weights after t steps of SGD with momentum m, in units of the learning rate, are sums of what was released with the
weights w_j = 1 + m + ... + m^j, j steps ago; without momentum these are prefix sums. Their noise has the coefficients
of w(x) a(x), a those of C^-1. All this is about accuracy, never about privacy.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise import cache, validation
from lessnoise.errors import InvalidInput
from lessnoise.learn.across.factorisation import KINDS, Banded, BandedInverse, Factorisation, checked_steps

if TYPE_CHECKING:
    from lessnoise._common import Array


class Spread(NamedTuple):
    """Root mean square of the noise on an entry of the weights, for sigma = 1 and a learning rate of 1."""

    every: float  # over all steps
    last: float


def spread(inverse: Array, momentum: float = 0.0) -> Spread:
    """Of the weights of SGD with this momentum under noise whose C^-1 has these coefficients.

    >>> independent = spread(np.array([1.0, 0.0, 0.0]))
    >>> round(independent.every**2, 9), round(independent.last**2, 9)
    (2.0, 3.0)
    """
    from scipy.signal import lfilter

    squares = np.cumsum(np.cumsum(lfilter([1.0], [1.0, -momentum], inverse)) ** 2)
    return Spread(float(np.sqrt(squares.mean())), float(np.sqrt(squares[-1])))


def fitted(
    kind: str, *, bands: int, steps: int, batches: int, groups: int | None = None, momentum: float = 0.0
) -> Factorisation:
    """The best that was found of the series (1 - r x)^(h), cut to so many bands, for the error over all steps.

    For a banded inverse h is between 0 and 1, for a banded C between -1 and 0; |h| = 1/2 and r = 1 are the square roots
    of Kalinin et al. The sensitivity is counted in, so that nothing is gained at its cost.

    >>> found = fitted("banded-inverse", bands=3, steps=60, batches=30)
    >>> found.kind, found.bands, found.coefficients[1] < 0.0
    ('banded-inverse', 3, True)
    """
    validation.choice("mechanism", kind, list(KINDS))
    bands = min(validation.whole_number("bands", bands), steps)
    checked_steps(steps, bands)
    momentum = validation.number("momentum", momentum)
    if not 0.0 <= momentum < 1.0:
        raise InvalidInput(f"momentum={momentum} is not between 0 and 1: pass that of the optimizer.")
    return _searched(kind, bands, steps, _separation(kind, bands, steps, batches, groups), momentum)


def _separation(kind: str, bands: int, steps: int, batches: int, groups: int | None) -> int:
    """After how many steps a record's columns of C have to be added up; never, if its steps are compositions."""
    whole = kind == BandedInverse.kind or (bands if groups is None else groups) >= batches
    return batches if whole else steps


@functools.lru_cache(maxsize=64)
def _searched(kind: str, bands: int, steps: int, separation: int, momentum: float) -> Factorisation:
    question = {"noise across steps": [kind, bands, steps, separation, momentum], "method": 1}
    kept = cache.load(question)
    if kept is not None:
        try:
            return KINDS[kind](tuple(kept["coefficients"]))
        except (InvalidInput, KeyError, TypeError):
            pass
    found = _search(kind, bands, steps, separation, momentum)
    cache.save(question, found.to_dict())
    return found


def _search(kind: str, bands: int, steps: int, separation: int, momentum: float) -> Factorisation:
    from scipy.optimize import minimize

    def error(point: Array) -> float:
        made = _cut_series(kind, bands, *_parameters(point))
        return float(np.log(spread(made.inverse(steps), momentum).every * made.sensitivity(steps, separation)))

    if bands == 1:
        return _cut_series(kind, 1, 0.0, 1.0)
    starts = [np.array([0.0, 3.0]), np.array([0.0, 7.0])]
    options = {"xatol": 1e-3, "fatol": 1e-5, "maxiter": 120}
    best = min((minimize(error, start, method="Nelder-Mead", options=options) for start in starts), key=lambda x: x.fun)
    return _cut_series(kind, bands, *_parameters(best.x))


def _parameters(point: Array) -> tuple[float, float]:
    """The power and the ratio of a point of the plane, always within their bounds."""
    return 0.98 / (1.0 + float(np.exp(-point[0]))), 1.0 / (1.0 + float(np.exp(-min(point[1], 30.0))))


def _cut_series(kind: str, bands: int, power: float, ratio: float) -> Factorisation:
    """The first coefficients of (1 - r x)^(+-h)."""
    places = np.arange(1, bands, dtype=np.float64)
    sign = 1.0 if kind == BandedInverse.kind else -1.0
    terms = np.concatenate([[1.0], np.cumprod(ratio * (places - 1.0 - sign * power) / places)])
    return (BandedInverse if sign > 0.0 else Banded)(tuple(terms.tolist()))
