"""Gaussian noise in a uniformly random subspace of r dimensions, and what noise of any rank must lose.

R1SMG is rank 1. Rank M is ordinary Gaussian noise. All ranks between are radial laws whose privacy lessnoise computes
exactly; :func:`simulated_delta` computes it once more, from draws and from the density alone.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import mechanism as mechanisms
from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise.mechanism import Mechanism

_ENTRIES = 100  # of which the bound is computed; for more entries it grows in proportion


def rank_noise(dimension: int, rank: int, epsilon: float, delta: float) -> Mechanism:
    """Gaussian noise in a uniformly random subspace of ``rank`` dimensions, calibrated exactly for sensitivity 1.

    >>> from lessnoise_paper.theory import exact_analytic_loss
    >>> gaussian = exact_analytic_loss(100, 1e-3, 1e-5)
    >>> f"{rank_noise(100, 10, 1e-3, 1e-5).expected_loss / gaussian:.2f} times the Gaussian's loss"
    "1.29 times the Gaussian's loss"
    """
    dimension, rank = _sizes(dimension, rank)
    return mechanisms.radial(epsilon=epsilon, delta=delta, sensitivity=1, shape=dimension, k=rank, p=2)


def any_rank_bound(dimension: int, epsilon: float, delta: float) -> float:
    """A loss that no additive noise of any rank goes below that keeps (epsilon, delta) against changes of length 1.

    Additive means that the law of the noise does not depend on the data; it may be singular, with secret directions.
    Every m of the M entries are private noise in R^m, so that the least loss in R^M is at least M/m times that in R^m
    (see :func:`lessnoise.loss_lower_bound`, which proves the bound for m entries, here at most 100).

    >>> from lessnoise_paper.theory import exact_analytic_loss
    >>> bound = any_rank_bound(7921, 1e-5, 1e-7)
    >>> f"{bound / exact_analytic_loss(7921, 1e-5, 1e-7):.2f} of the Gaussian's loss, {bound:.1e}"
    "0.99 of the Gaussian's loss, 2.3e+14"
    """
    dimension = validation.whole_number("dimension", dimension)
    entries = min(dimension, _ENTRIES)
    bound = _entries_bound(entries, validation.epsilon(epsilon), validation.delta(delta))
    return bound * (dimension / entries) * (1.0 - 1e-15)


@functools.lru_cache(maxsize=256)
def _entries_bound(entries: int, epsilon: float, delta: float) -> float:
    return mechanisms.loss_lower_bound(epsilon=epsilon, delta=delta, sensitivity=1, shape=entries)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of independent draws, and its standard error."""

    mean: float
    error: float


def simulated_delta(
    dimension: int, rank: int, eigenvalue: float, epsilon: float, *, draws: int, rng: np.random.Generator
) -> Estimate:
    """Delta at an epsilon against a shift of length 1, from draws: E[(1 - e^(epsilon - L))_+], L the privacy loss.

    Noise of r equal eigenvalues lambda in a uniformly random subspace has the density r^(k-M) exp(-r^2/(2 lambda)) at
    distance r, k the rank. Half of the radii are drawn from their own law and half evenly on a logarithmic scale, where
    the short ones are that decide; weights correct for it.

    >>> estimate = simulated_delta(100, 1, 2663.258, 1e-3, draws=100_000, rng=np.random.default_rng(0))
    >>> abs(estimate.mean - 0.2116) < 5 * estimate.error < 0.01
    True
    """
    dimension, rank = _sizes(dimension, rank)
    deviation = math.sqrt(validation.positive("eigenvalue", eigenvalue))
    draws = validation.whole_number("draws", draws, minimum=2)
    # Radii, in standard deviations.
    shortest, longest = math.log(1e-3 / deviation), math.log(20.0 + math.sqrt(rank))
    if shortest >= longest:
        raise InvalidInput(f"eigenvalue={eigenvalue:g} is far shorter noise than the shift 1: pass at least 1e-9.")
    own = rng.random(draws) < 0.5
    log_radius = np.where(
        own, 0.5 * np.log(rng.chisquare(rank, draws)), shortest + (longest - shortest) * rng.random(draws)
    )
    # Densities of the logarithm: that of chi, and the even one.
    chi = (
        rank * log_radius - 0.5 * np.exp(2.0 * log_radius) - (0.5 * rank - 1.0) * math.log(2.0) - math.lgamma(rank / 2)
    )
    even = np.where((log_radius >= shortest) & (log_radius <= longest), 1.0 / (longest - shortest), 0.0)
    target = np.exp(chi)
    weights = target / (0.5 * target + 0.5 * even)
    radius = deviation * np.exp(log_radius)
    axis = rng.standard_normal(draws)
    cosine = axis / np.sqrt(axis**2 + rng.chisquare(dimension - 1, draws))
    grown = (2.0 * radius * cosine + 1.0) / radius**2  # |n + v|^2 = r^2 (1 + grown)
    loss = 0.5 * (dimension - rank) * np.log1p(grown) + 0.5 * (radius / deviation) ** 2 * grown
    values = weights * np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / math.sqrt(draws)))


def _sizes(dimension: object, rank: object) -> tuple[int, int]:
    entries, directions = validation.whole_number("dimension", dimension), validation.whole_number("rank", rank)
    if directions > entries:
        raise InvalidInput(f"rank={directions} exceeds dimension={entries}: pass a rank of at most the dimension.")
    return entries, directions
