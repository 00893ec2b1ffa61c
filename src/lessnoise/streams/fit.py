"""The buffers, gains and slope of least mean squared error of running totals; solved once, and kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import cache
from lessnoise.errors import InvalidInput
from lessnoise.streams.buffers import ONE, Buffers, column_norms, row_weights

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray

_COLUMNS = 64  # of the error's matrix, between which the sum of their squares is interpolated
_LARGEST = 16.0  # of |ln w| and of -ln(l/(1 - l)): beyond, nothing is gained


def fitted_buffers(periods: int) -> Buffers:
    """The best that was found for so many periods."""
    question = {"stream buffers": periods, "method": 1}
    kept = cache.load(question)
    if kept is not None:
        try:
            return Buffers(periods, tuple(kept["decays"]), tuple(kept["gains"]), kept["slope"])
        except (InvalidInput, KeyError, TypeError):
            pass
    found = _fit(periods)
    cache.save(question, found.to_dict())
    return found


def _fit(periods: int) -> Buffers:
    from scipy.optimize import minimize

    buffers = min(periods - 1, 3 if periods <= 4096 else 4)
    if not buffers:
        return Buffers(periods, (), (), 0.0)
    rates = np.geomspace(0.5 / periods, 0.7, buffers)
    start = np.concatenate([np.log((1.0 - rates) / rates), np.log(0.5 * rates**0.5 / np.sum(rates**0.5)), [0.5]])
    longest = math.log(10.0 * periods)  # l = 1 - 1/(10 n) forgets nothing, and longer ones need a finer quantum
    bounds = [(-_LARGEST, longest)] * buffers + [(-_LARGEST, -1e-6)] * buffers + [(0.0, 2.0)]
    columns = sampled(periods)

    def objective(point: Array) -> float:
        with np.errstate(all="ignore"):
            found = math.log(mean_error(*_parts(point), columns=columns, periods=periods))
        return found if math.isfinite(found) else 1e6

    iterations = 60 if periods <= 10_000 else 20
    best = minimize(objective, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    decays, gains, slope = _parts(best.x)
    whole = tuple(tuple(int(x) for x in np.minimum(np.rint(each * ONE), ONE - 1)) for each in (decays, gains))
    return Buffers(periods, whole[0], whole[1], slope)


def _parts(point: Array) -> tuple[Array, Array, float]:
    buffers = len(point) // 2
    return 1.0 / (1.0 + np.exp(-point[:buffers])), np.exp(point[buffers : 2 * buffers]), float(point[-1])


def sampled(periods: int) -> IntArray:
    """Columns, dense at both ends; all of them if they are few."""
    if periods <= 2 * _COLUMNS:
        return np.arange(periods)
    ends = np.rint(np.geomspace(1.0, periods / 2.0, _COLUMNS // 2)).astype(np.int64) - 1
    return np.unique(np.concatenate([ends, periods - 1 - ends]))


def mean_error(decays: Array, gains: Array, slope: float, *, columns: IntArray, periods: int) -> float:
    """||W (R T D)^-1||_F^2/n with columns of length 1: those of some s, and the trapezoidal rule between them."""
    from scipy.signal import lfilter

    weights = row_weights(periods, slope)
    norms = column_norms(decays, gains, weights)
    below = np.poly(decays)  # T = P/Q as a filter, Q = prod (1 - l_j z), P = Q + z sum_j w_j prod_(i != j) (1 - l_i z)
    above = below.copy()
    for j in range(len(decays)):
        above[1:] += gains[j] * np.poly(np.delete(decays, j))
    impulse = np.zeros(periods)
    impulse[0] = 1.0
    inverse = lfilter(below, above, impulse)
    squares = np.empty(len(columns))
    for place, s in enumerate(columns):
        column = np.cumsum(inverse[: periods - s] * norms[s:])
        squares[place] = column @ column / weights[s] ** 2
    total = squares.sum() if len(columns) == periods else np.trapezoid(squares, columns) + squares[0] / 2
    return float(total / periods)
