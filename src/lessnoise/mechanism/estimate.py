"""Estimates of composed curves, quick and unproved: they say where to look, and enter no guarantee."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array
    from lessnoise.changes import Moves

_POINTS = 1 << 13  # of the lattice of losses
_GRID = 1 << 12  # of the noise
_TAIL = 45.0  # -ln of a density that no longer matters


def power_delta(p: float, scale: float, moves: Moves, releases: int, epsilon: float, *, integer: bool = False) -> float:
    """About delta of independent entries of density exp(-|x/scale|^p), p >= 1, that change together.

    >>> from lessnoise.changes import Moves
    >>> f"{power_delta(2.0, math.sqrt(2.0) * 4.224679, Moves(((1.0, 1),)), 1, 1.0):.3g}"  # a Gaussian
    '1e-06'
    """
    reach = _TAIL ** (1.0 / p)
    if integer and reach * scale < _GRID:
        x = np.arange(-math.ceil(reach * scale), math.ceil(reach * scale) + 1.0) / scale
    else:
        x = np.linspace(-reach, reach, _GRID)
    masses = np.exp(-(np.abs(x) ** p))
    masses /= masses.sum()
    losses = [(np.abs(x + size / scale) ** p - np.abs(x) ** p, count * releases) for size, count in moves.sizes]
    return _composed([(loss, masses, count) for loss, count in losses], epsilon)


def _composed(parts: list[tuple[Array, Array, int]], epsilon: float) -> float:
    """Delta of independent losses, each with masses and a number of repetitions, by one Fourier transform."""
    mean = sum(count * float(masses @ loss) for loss, masses, count in parts)
    variance = sum(count * float(masses @ loss**2) for loss, masses, count in parts)
    largest = max(float(np.abs(loss[masses > 1e-16]).max()) for loss, masses, _ in parts)
    span = 2.0 * (abs(mean) + 12.0 * math.sqrt(variance) + largest + epsilon)
    step = span / _POINTS
    transformed = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for loss, masses, count in parts:
        places = np.clip(loss, -0.45 * span, 0.45 * span) / step
        below = np.floor(places).astype(np.int64)
        share = places - below
        lattice = np.bincount(below % _POINTS, masses * (1.0 - share), _POINTS)
        lattice += np.bincount((below + 1) % _POINTS, masses * share, _POINTS)
        transformed *= np.fft.rfft(lattice) ** count
    result = np.fft.irfft(transformed, _POINTS)
    values = step * np.concatenate([np.arange(_POINTS // 2), np.arange(-_POINTS // 2, 0)])
    beyond = values > epsilon
    return float(np.maximum(result[beyond], 0.0) @ -np.expm1(epsilon - values[beyond]))


def crossing(curve: Callable[[float], float], target: float, start: float) -> float:
    """The x at which a falling positive curve comes down to a target, found in ln(curve) from a guess."""
    from scipy.optimize import brentq

    def excess(x: float) -> float:
        return math.log(max(curve(x), 1e-300) / target)

    low = high = start
    while excess(low) <= 0.0:
        low -= 0.25
    while excess(high) > 0.0:
        high += 0.25
    return float(brentq(excess, low, high, xtol=1e-5))
