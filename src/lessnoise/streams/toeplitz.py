"""What Gaussian noise is added to: C = R T D, T lower-triangular Toeplitz, its coefficients kept one by one.

``Banded`` has few coefficients, so that (T x)_t = sum_(k < b) c_k x_(t-k) needs the last b inputs. ``SquareRoot`` has
all those of (1 - x)^-h; with h = 1/2, T is the square root of the matrix of running totals (Henzinger et al., SODA
2023; Fichtenberger et al., ICML 2023). Its memory grows with the periods. R has the weights
(t - 1 + a)^p (n - t + b)^q on its diagonal, and D makes all columns of C equally long (Henzinger, Kalinin & Upadhyay
2025). From y = T D x + noise the recursion z_t = y_t - sum_(k > 0) c_k z_(t-k) gives T^-1 y, and the running totals are
the sums of z_t/d_t.

What is measured is computed in whole numbers of a public quantum: c_k and d_t are multiples of 2^-31, and what was
summed without rounding is rounded down. So it is the same on every machine, and it is not quite linear: two neighbours
differ by C times their difference, and by at most ``deviation`` quanta more in an entry and a period.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.streams.buffers import BITS, LARGEST, ONE, Profile, product

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray

MOST_COEFFICIENTS = 1 << 14  # sums of so many products of parts stay within 64 bits
_BLOCK = 1 << 16  # numbers that are multiplied at a time


class Toeplitz(ABC):
    """What both strategies have: coefficients, the first of them 1, and the shape of the rows' weights."""

    __slots__ = ()

    periods: int
    rows: tuple[float, float, float, float]

    kind: ClassVar[str]

    @property
    @abstractmethod
    def whole(self) -> IntArray:
        """The coefficients, in multiples of 2^-31."""

    def _check(self) -> None:
        settle(self, periods=validation.whole_number("periods", self.periods))
        if self.periods > MOST_COEFFICIENTS:
            raise InvalidInput(
                f"periods={self.periods} exceeds {MOST_COEFFICIENTS}, the most of strategy={self.kind!r}: use "
                '"buffers", whose memory and plan stay small.'
            )
        rows = tuple(validation.number("rows", each) for each in self.rows)
        if len(rows) != 4 or max(map(abs, rows[::2])) > 1.0 or min(rows[1::2]) <= 0.0:
            raise InvalidInput(f"rows={rows} are not the shape of a stream's weights: pass those of a stream's plan.")
        settle(self, rows=rows)

    @property
    def weights(self) -> Array:
        """Of the rows: the noise of period t is sigma over the weight."""
        return profile(self).weights

    def deviation(self, participations: int) -> float:
        """Quanta by which an entry of a measurement may differ between neighbours beyond the linear difference.

        An input rounded down to the quantum, multiplied and rounded down again: 2 more, or less, in each period in
        which they differ. Coefficients are at most 1, and their sum with the inputs is rounded once.
        """
        return (1.0 + 2.0 * min(float(participations), float(self.whole.sum()) / ONE)) * (1.0 + 1e-9)

    def variances(self) -> Array:
        """Of the running total of each period, if sigma is 1: the squares of the rows of W (R T D)^-1."""
        return _variances(self)

    def window_variance(self, first: int, last: int) -> float:
        """Of the sum over the periods first .. last: the squares of T^-T v over the weights, v_t = 1/d_t there."""
        found = profile(self)
        reversed_question = np.zeros(last)
        reversed_question[: last - first + 1] = 1.0 / found.scales[first - 1 : last][::-1]
        spread = _divided(reversed_question, self.whole / ONE) / found.weights[:last][::-1]
        return float(spread @ spread)


@dataclass(frozen=True, slots=True)
class Banded(Toeplitz):
    """``coefficients`` c_0 = 1, c_1, ... in multiples of 2^-31; ``rows`` are p, a, q and b of the weights."""

    periods: int
    coefficients: tuple[int, ...]
    rows: tuple[float, float, float, float]

    kind: ClassVar[str] = "banded"

    def __post_init__(self) -> None:
        self._check()
        found = tuple(validation.whole_number("coefficients", each, 0) for each in self.coefficients)
        if not 1 <= len(found) <= self.periods or found[0] != ONE or max(found) > ONE:
            raise InvalidInput(
                f"coefficients={found[:3]}... are not 2^{BITS} and then at most as large, one for each period at most: "
                "pass those of a stream's plan."
            )
        settle(self, coefficients=found)

    @property
    def whole(self) -> IntArray:
        """The coefficients, in multiples of 2^-31."""
        return np.array(self.coefficients, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, **asdict(self)}

    def __str__(self) -> str:
        return f"banded Toeplitz, {len(self.coefficients)} coefficients"


@dataclass(frozen=True, slots=True)
class SquareRoot(Toeplitz):
    """All coefficients of (1 - x)^-power; ``rows`` are p, a, q and b of the weights."""

    periods: int
    power: float
    rows: tuple[float, float, float, float]

    kind: ClassVar[str] = "square-root"

    def __post_init__(self) -> None:
        self._check()
        power = validation.number("power", self.power)
        if not 0.0 < power <= 1.0:
            raise InvalidInput(f"power={power:g} is not above 0 and at most 1: pass that of a stream's plan.")
        settle(self, power=power)

    @property
    def whole(self) -> IntArray:
        """The coefficients, in multiples of 2^-31."""
        return _power_coefficients(self.periods, self.power)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, **asdict(self)}

    def __str__(self) -> str:
        return f"square-root Toeplitz, {self.periods} coefficients"


def power_series(power: float, size: int) -> Array:
    """The coefficients of (1 - x)^-power: c_k = c_(k-1) (k - 1 + power)/k.

    >>> power_series(0.5, 3).tolist()
    [1.0, 0.5, 0.375]
    """
    places = np.arange(1.0, size)
    return np.concatenate([[1.0], np.cumprod((places - 1.0 + power) / places)])


@functools.lru_cache(maxsize=16)
def _power_coefficients(periods: int, power: float) -> IntArray:
    found = np.rint(power_series(power, periods) * ONE).astype(np.int64)
    found.setflags(write=False)
    return found


def row_weights(periods: int, rows: tuple[float, float, float, float]) -> Array:
    """(t - 1 + a)^p (n - t + b)^q, over the smallest of them."""
    places = np.arange(float(periods))
    logs = rows[0] * np.log(places + rows[1]) + rows[2] * np.log(places[::-1] + rows[3])
    return np.asarray(np.exp(logs - logs.min()))


def column_norms(coefficients: Array, weights: Array) -> Array:
    """Of R T: N_s^2 = sum_k r_(s+k)^2 c_k^2, summed without FFT: all terms are positive, and so is what is lost."""
    squares = np.convolve(weights[::-1] ** 2, coefficients**2)[: len(weights)]
    return np.asarray(np.sqrt(squares[::-1]))


@functools.lru_cache(maxsize=16)
def profile(strategy: Toeplitz) -> Profile:
    """Weights of at least 1, and scales rounded down, so that no column of R T D is longer than 1 (+ ROUNDING)."""
    weights = row_weights(strategy.periods, strategy.rows)
    whole = np.floor(ONE / column_norms(strategy.whole / ONE, weights)).astype(np.int64)
    return Profile(weights, whole / ONE, whole)


def _divided(values: Array, coefficients: Array) -> Array:
    """T^-1 v."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], coefficients, values))


def inverse_coefficients(coefficients: Array, periods: int) -> Array:
    """Of T^-1."""
    impulse = np.zeros(periods)
    impulse[0] = 1.0
    return _divided(impulse, coefficients)


@functools.lru_cache(maxsize=16)
def _variances(strategy: Toeplitz) -> Array:
    found, inverse = profile(strategy), inverse_coefficients(strategy.whole / ONE, strategy.periods)
    variances = np.zeros(strategy.periods)
    for s in range(strategy.periods):  # the noise of period s in all later totals
        column = np.cumsum(inverse[: strategy.periods - s] / found.scales[s:])
        column /= found.weights[s]
        column *= column
        variances[s:] += column
    variances.setflags(write=False)
    return variances


# The arithmetic.


def weighted_floor(numbers: IntArray, factors: IntArray) -> IntArray:
    """floor(sum_k u_k f_k/2^31) over the rows u_k, 0 <= f_k <= 2^31, at most 2^14 of them, sum |u_k f_k| < 2^92.

    u = high 2^31 + low and f = upper 2^16 + lower: no sum of their products, low ones below 2^61, is beyond 64 bits.

    >>> int(weighted_floor(np.array([[-(2**50) - 5], [7]]), np.array([2**30 + 1, 3]))[0])
    -562949953945603
    >>> (-(2**50 + 5) * (2**30 + 1) + 7 * 3) // 2**31
    -562949953945603
    """
    size = numbers.shape[1]
    total, above, below = np.zeros((3, size), dtype=np.int64)
    step = max(_BLOCK // size, 1)
    for start in range(0, len(numbers), step):
        part, factor = numbers[start : start + step], factors[start : start + step]
        low = part & (ONE - 1)
        total += np.einsum("k,ks->s", factor, part >> BITS)
        above += np.einsum("k,ks->s", factor >> 16, low)
        below += np.einsum("k,ks->s", factor & 0xFFFF, low)
    return np.asarray(total + ((above + (below >> 16)) >> (BITS - 16)))


def _weighted(numbers: Array, factors: Array) -> Array:
    """The sum of f_k u_k over the rows, always in the same order."""
    size = numbers.shape[1]
    total, step = np.zeros(size), max(_BLOCK // size, 1)
    for start in range(0, len(numbers), step):
        total += (numbers[start : start + step] * factors[start : start + step, np.newaxis]).sum(axis=0)
    return total


class ToeplitzRun:
    """The last inputs, scaled, in quanta, and what was found of them; row (t - 1) mod b is that of period t.

    That row's last use was in the period before, so that a period which fails leaves nothing behind.
    """

    def __init__(self, strategy: Toeplitz, size: int) -> None:
        self.strategy, self.size = strategy, size
        self._factors = strategy.whole
        self.held = np.zeros((len(self._factors), size), dtype=np.int64)
        self.found = np.zeros((len(self._factors), size))
        self.total = np.zeros(size)
        self._largest = LARGEST // math.ceil(int(self._factors.sum()) / ONE)

    def settle(self, state: dict[str, Any]) -> None:
        """The period is over; what comes from a file has only the rows that are in use."""
        for mine, given in ((self.held, state["held"]), (self.found, state["found"])):
            if not np.may_share_memory(mine, given):
                mine[: len(given)] = given
        self.total = state["total"]

    def _rows(self, period: int) -> tuple[int, int, IntArray]:
        """The row of the period, how many rows are in use, and the coefficient of each."""
        band = len(self._factors)
        used = min(period, band)
        return (period - 1) % band, used, self._factors[(period - 1 - np.arange(used)) % band]

    def measured(self, quanta: IntArray, period: int) -> tuple[dict[int, IntArray], dict[str, Any]]:
        """(T D x)_t in quanta, as the one measurement of the period, and the inputs after it."""
        own = product(quanta, int(profile(self.strategy).whole[period - 1]))
        if max(int(own.max()), -int(own.min())) > self._largest:
            raise InvalidInput(
                f"value in period {period} makes the totals too large for this stream's arithmetic: state it in larger "
                "units, or clip it to a public bound."
            )
        row, used, factors = self._rows(period)
        self.held[row] = own
        return {0: weighted_floor(self.held[:used], factors)}, {"held": self.held[:used]}

    def estimated(self, noisy: dict[int, Array], period: int) -> dict[str, Array]:
        """The running total from the noisy measurement of the period."""
        row, used, factors = self._rows(period)
        weights = factors / ONE
        weights[row] = 0.0
        own = noisy[0] - _weighted(self.found[:used], weights)
        self.found[row] = own
        return {"found": self.found[:used], "total": self.total + own / profile(self.strategy).scales[period - 1]}
