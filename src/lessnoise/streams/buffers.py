"""What Gaussian noise is added to: a lower-triangular C = R T D whose memory does not grow with the periods.

T is a buffered linear Toeplitz matrix (Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024): its coefficients are 1
and then c_k = sum_j w_j l_j^(k-1), so that T x is computed with one buffer for each j,

    (T x)_t = x_t + sum_j w_j u_j,    u_j <- l_j u_j + x_t.

R has the weights (n - t + 1)^g on its diagonal, so that the noise of period t is sigma/r_t, and D makes all columns of
C equally long. From y = T D x + noise the same buffers, run on what is found, give T^-1 y, and the running totals are
the sums of (T^-1 y)_t/d_t.

What is measured is computed in whole numbers of a public quantum: l_j, w_j and d_t are multiples of 2^-31, and every
product is rounded down. So it is the same on every machine, and it is not quite linear: two neighbours differ by C
times their difference, and by at most ``deviation`` quanta more in an entry and a period.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from lessnoise._common import Array, IntArray

BITS = 31
ONE = 1 << BITS
LARGEST = 1 << 60  # quanta: products of the parts below stay within 64 bits
ROUNDING = 1e-9  # relative, of norms of columns: a sum of at most 10^5 positive terms, each by as many products
_CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class Buffers:
    """The strategy C; ``decays`` and ``gains`` are the l_j and w_j, in multiples of 2^-31, and ``slope`` is g."""

    periods: int
    decays: tuple[int, ...]
    gains: tuple[int, ...]
    slope: float

    kind: ClassVar[str] = "buffers"

    def __post_init__(self) -> None:
        settle(self, periods=validation.whole_number("periods", self.periods))
        for name in ("decays", "gains"):
            found = tuple(validation.whole_number(name, each, 0) for each in getattr(self, name))
            if any(each >= ONE for each in found):
                raise InvalidInput(f"{name}={found} are not below 2^{BITS}: pass those of a stream's plan.")
            settle(self, **{name: found})
        if sum(self.gains) > 2 * ONE:
            raise InvalidInput(f"gains={self.gains} add up to more than 2^{BITS + 1}: pass those of a stream's plan.")
        if len(self.decays) != len(self.gains):
            raise InvalidInput(f"decays={self.decays} and gains={self.gains} are not as many: pass a plan's.")
        slope = validation.number("slope", self.slope)
        if not 0.0 <= slope <= 4.0:
            raise InvalidInput(f"slope={slope:g} is not between 0 and 4: pass that of a stream's plan.")
        settle(self, slope=slope)

    def deviation(self, participations: int) -> float:
        """Quanta by which an entry of a measurement may differ between neighbours beyond the linear difference.

        Two numbers rounded down to the quantum, multiplied and rounded down again: 2 more, or less. In a buffer, that
        and one rounding more each period, whether or not they differ in it: 3/(1 - l_j) in all. The sum of the products
        with w_j is rounded once more.
        """
        held = sum(gain / (ONE - decay) for decay, gain in zip(self.decays, self.gains, strict=True))
        return (3.0 + 3.0 * held) * (1.0 + 1e-9)

    @property
    def weights(self) -> Array:
        """Of the rows: the noise of period t is sigma over the weight."""
        return profile(self).weights

    def variances(self) -> Array:
        """Of the running total of each period, if sigma is 1, by the covariance of the buffers' errors."""
        return _variances(self)

    def window_variance(self, first: int, last: int) -> float:
        """Of the sum over the periods first .. last: the squares of T^-T v over the weights, v_t = 1/d_t there."""
        found = profile(self)
        decays, gains = _floats(self)
        held, total = np.zeros(len(decays)), 0.0
        for period in range(last, 0, -1):
            own = 1.0 / found.scales[period - 1] if period >= first else 0.0
            own -= float(gains @ held)
            held = decays * held + own
            total += (own / found.weights[period - 1]) ** 2
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"kind": self.kind, **asdict(self)}

    def __str__(self) -> str:
        return f"buffered Toeplitz, {len(self.decays)} buffers"


class Profile(NamedTuple):
    """The diagonals of R and D, D also in multiples of 2^-31."""

    weights: Array
    scales: Array
    whole: IntArray


def _floats(strategy: Buffers) -> tuple[Array, Array]:
    return np.array(strategy.decays) / ONE, np.array(strategy.gains) / ONE


@functools.lru_cache(maxsize=16)
def profile(strategy: Buffers) -> Profile:
    """Weights of at least 1, and scales rounded down, so that no column of R T D is longer than 1 (+ ROUNDING)."""
    weights = row_weights(strategy.periods, strategy.slope)
    whole = np.floor(ONE / column_norms(*_floats(strategy), weights)).astype(np.int64)
    return Profile(weights, whole / ONE, whole)


def row_weights(periods: int, slope: float) -> Array:
    """(n - t + 1)^g."""
    return np.arange(periods, 0.0, -1.0) ** slope


def column_norms(decays: Array, gains: Array, weights: Array) -> Array:
    """Of R T: N_s^2 = r_s^2 + sum_ij w_i w_j G_ij(s + 1), G_ij(s) = r_s^2 + l_i l_j G_ij(s + 1), as c_k^2 is a sum."""
    from scipy.signal import lfilter

    squares = weights[::-1] ** 2
    found = squares.copy()
    for i in range(len(decays)):
        for j in range(i + 1):
            later = lfilter([1.0], [1.0, -decays[i] * decays[j]], squares)
            found[1:] += (1.0 if i == j else 2.0) * gains[i] * gains[j] * later[:-1]
    return np.asarray(np.sqrt(found[::-1]))


@functools.lru_cache(maxsize=16)
def _variances(strategy: Buffers) -> Array:
    found, (decays, gains) = profile(strategy), _floats(strategy)
    size = len(decays)
    move, enter, covariance = np.zeros((size + 1, size + 1)), np.ones(size + 1), np.zeros((size + 1, size + 1))
    move[:size, :size] = np.diag(decays) - gains
    move[size, size] = 1.0
    variances = np.empty(strategy.periods)
    for period in range(strategy.periods):
        move[size, :size] = -gains / found.scales[period]
        enter[size] = 1.0 / found.scales[period]
        entered = enter / found.weights[period]
        covariance = move @ covariance @ move.T + np.outer(entered, entered)
        variances[period] = covariance[size, size]
    variances.setflags(write=False)
    return variances


# The arithmetic.


def product(numbers: IntArray, factor: int) -> IntArray:
    """floor(u factor/2^31) of |u| < 2^62, 0 <= factor <= 2^31: u = high 2^31 + low, and high factor is whole.

    >>> int(product(np.array([-(2**61) + 5]), 3)[0]) == (-(2**61) + 5) * 3 // 2**31
    True
    """
    return (numbers >> BITS) * factor + (((numbers & (ONE - 1)) * factor) >> BITS)


class BuffersRun:
    """The private buffers u_j, in quanta, and what is found from the noisy measurements: v_j, and the total."""

    def __init__(self, strategy: Buffers, size: int) -> None:
        self.strategy, self.size = strategy, size
        self.held = np.zeros((len(strategy.decays), size), dtype=np.int64)
        self.found = np.zeros((len(strategy.decays), size))
        self.total = np.zeros(size)
        self._scratch = np.empty((4, min(size, _CHUNK)), dtype=np.int64)
        # Room for the next period's.
        self._room: dict[str, Any] = {"held": np.empty_like(self.held), "found": np.empty_like(self.found)}

    def settle(self, state: dict[str, Any]) -> None:
        """The period is over; what was held before it is room for the next one."""
        self._room = {"held": self.held, "found": self.found}
        self.held, self.found, self.total = state["held"], state["found"], state["total"]

    def measured(self, quanta: IntArray, period: int) -> tuple[dict[int, IntArray], dict[str, Any]]:
        """(T D x)_t in quanta, as the one measurement of the period, and the buffers after it."""
        scale = int(profile(self.strategy).whole[period - 1])
        held, measured = self._room["held"], np.empty(self.size, dtype=np.int64)
        for start in range(0, self.size, _CHUNK):  # so that everything stays in the processor's cache
            part = slice(start, start + _CHUNK)
            own = product(quanta[part], scale)
            total, rest, high, low = (each[: own.size] for each in self._scratch)
            total[:], rest[:] = own, 0
            for j, (decay, gain) in enumerate(zip(self.strategy.decays, self.strategy.gains, strict=True)):
                after = held[j, part]
                np.right_shift(self.held[j, part], BITS, out=high)  # as in product, for two factors at once
                np.bitwise_and(self.held[j, part], ONE - 1, out=low)
                np.multiply(high, gain, out=after)
                total += after
                np.multiply(low, gain, out=after)
                rest += after
                high *= decay
                low *= decay
                low >>= BITS
                np.add(high, low, out=after)
                after += own
            rest >>= BITS  # below 2^63: all gains together are below 2
            np.add(total, rest, out=measured[part])
        if held.size and max(int(held.max()), -int(held.min())) > LARGEST:
            raise InvalidInput(
                f"value in period {period} makes the totals too large for this stream's arithmetic: state it in larger "
                "units, or clip it to a public bound."
            )
        return {0: measured}, {"held": held}

    def estimated(self, noisy: dict[int, Array], period: int) -> dict[str, Array]:
        """The buffers and the running total from the noisy measurement of the period."""
        decays, gains = _floats(self.strategy)
        scale = profile(self.strategy).scales[period - 1]
        found, total = self._room["found"], np.empty_like(self.total)
        for start in range(0, self.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            own = noisy[0][part].copy()
            for j, gain in enumerate(gains):
                own -= gain * self.found[j, part]
            for j, decay in enumerate(decays):
                np.multiply(self.found[j, part], decay, out=found[j, part])
                found[j, part] += own
            own /= scale
            np.add(self.total[part], own, out=total[part])
        return {"found": found, "total": total}


class Causal(Protocol):
    """What the quantum of a strategy depends on."""

    @property
    def weights(self) -> Array:
        """Of the rows."""

    def deviation(self, participations: int) -> float:
        """Quanta beyond the linear difference, in an entry and a period."""


def quantum_for(strategy: Causal, radius: float, entries: int, participations: int, share: float) -> float:
    """The largest power of two for which all deviations together are at most a share of the radius, in l2."""
    weights = strategy.weights
    root = math.sqrt(float(weights @ weights) * entries) * strategy.deviation(participations) * (1.0 + 1e-9)
    return math.ldexp(1.0, math.frexp(share * radius / root)[1] - 1)
