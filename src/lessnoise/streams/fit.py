"""The buffers, coefficients and weights of least mean squared error of running totals; solved once, and kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import cache
from lessnoise.errors import InvalidInput
from lessnoise.streams import toeplitz
from lessnoise.streams.buffers import ONE, Buffers, column_norms, row_weights
from lessnoise.streams.toeplitz import Banded, SquareRoot

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array, IntArray

_COLUMNS = 64  # of the error's matrix, between which the sum of their squares is interpolated
_DIRECT = 4096  # periods, from which on the search begins with the answer for fewer
BAND = 128  # coefficients of a banded strategy, at most
_KNOTS = 8  # at which the logarithms of its coefficients are free, straight between them over the logarithm of the lag
_LARGEST = 16.0  # of |ln w| and of -ln(l/(1 - l)): beyond, nothing is gained


def fitted_buffers(periods: int) -> Buffers:
    """The best that was found for so many periods."""
    question = {"stream buffers": periods, "method": 2}
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
    """By a quasi-Newton search over ln(l/(1 - l)), ln w and g; long streams begin with the answer for a quarter."""
    from scipy.optimize import minimize

    if periods == 1:
        return Buffers(1, (), (), 0.0)
    start = _scaled(fitted_buffers(periods // 4), periods) if periods > _DIRECT else _first(periods)
    buffers = len(start) // 2
    longest = math.log(10.0 * periods)  # l = 1 - 1/(10 n) forgets nothing, and longer ones need a finer quantum
    bounds = [(-_LARGEST, longest)] * buffers + [(-_LARGEST, -1e-6)] * buffers + [(0.0, 2.0)]
    columns = sampled(periods)

    def objective(point: Array) -> float:
        with np.errstate(all="ignore"):
            found = math.log(mean_error(*_parts(point), columns=columns, periods=periods))
        return found if math.isfinite(found) else 1e6

    options = {"maxiter": 80 if periods <= _DIRECT else 12, "eps": 1e-6}
    best = minimize(objective, start, method="L-BFGS-B", bounds=bounds, options=options)
    decays, gains, slope = _parts(best.x)
    whole = tuple(tuple(int(x) for x in np.minimum(np.rint(each * ONE), ONE - 1)) for each in (decays, gains))
    return Buffers(periods, whole[0], whole[1], slope)


def _first(periods: int) -> Array:
    """Where the search begins: buffers from the shortest to the longest memory that is of use."""
    rates = np.geomspace(min(0.4 / periods, 0.2), 0.3, min(periods - 1, 3 if periods <= 1024 else 4))
    gains = 0.5 * rates**0.25 / np.sum(rates**0.25)
    return np.concatenate([np.log((1.0 - rates) / rates), np.log(gains), [0.65]])


def _scaled(shorter: Buffers, periods: int) -> Array:
    """The longest memory grows with the periods, and the shortest stays as it is."""
    rates, gains = 1.0 - np.array(shorter.decays) / ONE, np.maximum(np.array(shorter.gains), 1) / ONE
    place = np.log(rates / rates.max()) / np.log(rates.min() / rates.max())
    rates, gains = rates * (shorter.periods / periods) ** place, gains * (shorter.periods / periods) ** (place / 2.0)
    return np.concatenate([np.log((1.0 - rates) / rates), np.log(gains), [shorter.slope]])


def _parts(point: Array) -> tuple[Array, Array, float]:
    buffers = len(point) // 2
    return 1.0 / (1.0 + np.exp(-point[:buffers])), np.exp(point[buffers : 2 * buffers]), float(point[-1])


def sampled(periods: int) -> IntArray:
    """Columns, dense at both ends; all of them if they are few."""
    if periods <= 2 * _COLUMNS:
        return np.arange(periods)
    half = _COLUMNS // 2 if periods <= _DIRECT else _COLUMNS // 4
    ends = np.rint(np.geomspace(1.0, periods / 2.0, half)).astype(np.int64) - 1
    return np.unique(np.concatenate([ends, periods - 1 - ends]))


def mean_error(decays: Array, gains: Array, slope: float, *, columns: IntArray, periods: int) -> float:
    """||W (R T D)^-1||_F^2/n with columns of length 1: those of some s, and the trapezoidal rule between them."""
    weights = row_weights(periods, slope)
    norms, inverse = column_norms(decays, gains, weights), inverse_coefficients(decays, gains, periods)
    return _sampled_error(inverse, norms, weights, columns)


def _sampled_error(inverse: Array, norms: Array, weights: Array, columns: IntArray) -> float:
    periods = len(weights)
    squares = np.empty(len(columns))
    for place, s in enumerate(columns):
        column = np.cumsum(inverse[: periods - s] * norms[s:])
        squares[place] = column @ column / weights[s] ** 2
    total = squares.sum() if len(columns) == periods else np.trapezoid(squares, columns) + squares[0] / 2
    return float(total / periods)


def inverse_coefficients(decays: Array, gains: Array, periods: int) -> Array:
    """Of T^-1: 1, and then -s^T S^(k-1) s with S = diag(l) - s s^T, s_j = sqrt(w_j), by the eigenvalues of S.

    On an impulse, the buffers v of T^-1 are multiplied by diag(l) - 1 w^T, which is similar to S.
    """
    root = np.sqrt(gains)
    values, vectors = np.linalg.eigh(np.diag(decays) - np.outer(root, root))
    powers = np.empty((periods - 1, len(decays)))
    powers[:1] = 1.0
    powers[1:] = values
    return np.concatenate([[1.0], -np.cumprod(powers, axis=0) @ (vectors.T @ root) ** 2])


# Coefficients that are kept one by one.

_WEIGHTS = [0.22, -3.4, 0.43, -0.45]  # p, ln(a/n), q and ln b, where a search begins
_WEIGHT_BOUNDS = [(-0.5, 0.75), (-10.0, 2.0), (-0.5, 0.75), (-4.0, 5.0)]


def fitted_square_root(periods: int) -> SquareRoot:
    """The best power and weights that were found for so many periods."""
    question = {"stream square root": periods, "method": 1}
    kept = cache.load(question)
    if kept is not None:
        try:
            return SquareRoot(periods, kept["power"], tuple(kept["rows"]))
        except (InvalidInput, KeyError, TypeError):
            pass
    found = _fit_square_root(periods)
    cache.save(question, found.to_dict())
    return found


def _fit_square_root(periods: int) -> SquareRoot:
    SquareRoot(periods, 0.5, (0.0, 1.0, 0.0, 1.0))  # refused if it has too many periods
    columns = sampled(periods)

    def error(point: Array) -> float:
        """By FFT: a search needs no more digits."""
        from scipy.signal import fftconvolve

        weights, power = toeplitz.row_weights(periods, _rows(point, periods)), float(point[4])
        coefficients = toeplitz.power_series(power, periods)
        norms = np.sqrt(fftconvolve(weights[::-1] ** 2, coefficients**2)[:periods][::-1])
        return _sampled_error(toeplitz.power_series(-power, periods), norms, weights, columns)

    best = _searched(error, [*_WEIGHTS, 0.51], [*_WEIGHT_BOUNDS, (0.4, 0.6)])
    return SquareRoot(periods, float(best[4]), _rows(best, periods))


def fitted_banded(periods: int) -> Banded:
    """The best coefficients and weights that were found for so many periods."""
    question = {"stream banded": periods, "method": 1}
    kept = cache.load(question)
    if kept is not None:
        try:
            return Banded(periods, tuple(kept["coefficients"]), tuple(kept["rows"]))
        except (InvalidInput, KeyError, TypeError):
            pass
    found = _fit_banded(periods)
    cache.save(question, found.to_dict())
    return found


def _fit_banded(periods: int) -> Banded:
    Banded(periods, (ONE,), (0.0, 1.0, 0.0, 1.0))  # refused if it has too many periods
    band = min(periods, BAND)
    if band == 1:
        return Banded(1, (ONE,), (0.0, 1.0, 0.0, 1.0))
    columns, lags = sampled(periods), np.log(np.arange(1.0, band))
    knots = np.log(np.unique(np.rint(np.geomspace(1.0, band - 1.0, _KNOTS))))

    def coefficients(point: Array) -> Array:
        return np.concatenate([[1.0], np.exp(np.interp(lags, knots, point[4:]))])

    def error(point: Array) -> float:
        weights, own = toeplitz.row_weights(periods, _rows(point, periods)), coefficients(point)
        inverse = toeplitz.inverse_coefficients(own, periods)
        return _sampled_error(inverse, toeplitz.column_norms(own, weights), weights, columns)

    power = 0.5 if periods <= 2 * BAND else 0.6
    first = np.interp(knots, lags, np.log(toeplitz.power_series(power, band)[1:]))
    best = _searched(error, [*_WEIGHTS, *first], [*_WEIGHT_BOUNDS, *[(-_LARGEST, 0.0)] * len(knots)])
    whole = tuple(int(each) for each in np.rint(coefficients(best) * ONE))
    return Banded(periods, whole, _rows(best, periods))


def _rows(point: Array, periods: int) -> tuple[float, float, float, float]:
    return float(point[0]), periods * math.exp(point[1]), float(point[2]), math.exp(point[3])


def _searched(error: Callable[[Array], float], start: list[float], bounds: list[tuple[float, float]]) -> Array:
    """By a quasi-Newton search for the least logarithm of the error."""
    from scipy.optimize import minimize

    def objective(point: Array) -> float:
        with np.errstate(all="ignore"):
            found = error(point)
        return math.log(found) if 0.0 < found < math.inf else 1e6

    options = {"maxiter": 60, "eps": 1e-6}
    return np.asarray(minimize(objective, start, method="L-BFGS-B", bounds=bounds, options=options).x)
