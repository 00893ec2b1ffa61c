r"""Integer noise between the geometric law and the discrete Gaussian: P(k) proportional to exp(-|k/scale|^p).

p = 1 is geometric noise and p = 2 the discrete Gaussian. Between them lies the best noise for several counts that one
individual changes by 1 each, or for one count that is released several times: heavier tails than a Gaussian's are worth
less the more losses add up. Write E(k) = |k/scale|^p; for p >= 1, E(j + k) >= E(j) + E(k) for j, k >= 0.

**The curve of one entry** that changes by a whole number s: with the privacy loss L(k) = E(k + s) - E(k),

    delta(eps) = sum over k of P(k) (1 - e^(eps - L(k)))_+,

all terms positive. L rises with k, and only k > -s/2 have L > 0. There L is concave, since its second derivative
p (p - 1) ((k + s)^(p-2) - |k|^(p-2))/scale^p is not positive for p <= 2. So the terms, from the first on, are
log-concave: where there are many, they are taken in blocks, over which the chord of the logarithm is below and the
tangent above. The tail beyond k >= 0 is at most P(K >= k) <= e^(-E(k)).

**Larger changes are hidden worse.** Height by height delta(eps) counts the integers of an interval about 0 that are
outside an interval about -s, and fewer of them overlap as s grows. So for every epsilon >= 0 (and, as the two arrays
can be swapped, for every epsilon) the curve grows with s; and so does that of several entries, each with its own s.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket
from lessnoise.mechanism.curve import entries, law_delta, law_pure_epsilon, no_curve, worst_of
from lessnoise.mechanism.families.block_sampler import BlockLaw, Blocks, device_table, sampler_of
from lessnoise.mechanism.families.generalized_gaussian import GeneralizedGaussian, square_moments
from lessnoise.mechanism.families.geometric import largest_change
from lessnoise.mechanism.families.power_blocks import PowerBlocks
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.sampling import device_integers, noise_form
from lessnoise.mechanism.sums import log_sum_moment, square_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.changes import Changes, Moves
    from lessnoise.noise import IntegerTable


SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 2.0**17
_ROUNDING = 1e-11  # relative: exponents up to 730, each within 5 units of the last place
_LOSS_ROUNDING = 1e-14  # relative, of a loss: differences lose a factor 3, which leaves another 3
_NOTHING = 1e-290
_LAST = 670.0  # e^-670 < _NOTHING
_BEYOND = 50.0  # what is e^-50 of the first term is not summed
_ONE_BY_ONE, _MOST_TERMS = 1 << 12, 1 << 16
_FLAT = 1e-9
_MOST_WINDOW = 1 << 21
_LARGEST_CHANGE = 1 << 40  # beyond, powers may leave the floats


@register
@dataclass(frozen=True, slots=True)
class DiscretePower(Plain):
    """Independent integers with P(k) proportional to exp(-|k/scale|^p), 1 <= p <= 2.

    >>> law = DiscretePower(1.7, 20.0)
    >>> f"{probabilities(law, 3)[2] / probabilities(law, 3)[0]:.6f}", f"{np.exp(-(0.1**1.7)):.6f}"
    ('0.980245', '0.980245')
    """

    p: float
    scale: float

    kind: ClassVar[str] = "discrete-power"
    norm: ClassVar[str] = "l1"
    integer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        p, scale = validation.number("p", self.p), validation.positive("scale", self.scale)
        if not 1.0 <= p <= 2.0:
            raise InvalidInput(
                f"p={p:g} must lie between 1 (geometric noise) and 2 (the discrete Gaussian): pass such a number."
            )
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise InvalidInput(
                f"scale={scale:g} is not between {SMALLEST_SCALE:g} and {LARGEST_SCALE:g}: choose an epsilon of "
                "ordinary size, or use DiscreteGaussian or Geometric."
            )
        settle(self, p=p, scale=scale)


def exponents(law: DiscretePower, k: Array) -> Array:
    """E(k) = |k/scale|^p, which is ln P(0)/P(k)."""
    result: Array = (np.abs(k) / law.scale) ** law.p
    return result


@functools.lru_cache(maxsize=4096)
def _total(law: DiscretePower) -> float:
    """1/P(0), the sum of e^-E over the integers."""
    reach = _reach(law, _BEYOND)  # all beyond are e^-50 of the whole at most
    parts = range(1, reach + 1, _MOST_TERMS)
    sums = [np.exp(-exponents(law, np.arange(a, min(a + _MOST_TERMS, reach + 1.0)))).sum() for a in parts]
    return 1.0 + 2.0 * math.fsum(sums)


def _reach(law: DiscretePower, exponent: float) -> int:
    """An integer k >= 1 with E(k) >= exponent."""
    return math.ceil(law.scale * math.pow(exponent, 1.0 / law.p) * (1.0 + 1e-14)) + 1


def probabilities(law: DiscretePower, count: int) -> Array:
    """P(0), P(1), ..., P(count - 1), in floats.

    >>> found = probabilities(DiscretePower(1.3, 2.0), 60)
    >>> f"{found[0] + 2 * found[1:].sum():.12f}"
    '1.000000000000'
    """
    result: Array = np.exp(-exponents(law, np.arange(float(count)))) / _total(law)
    return result


# Privacy.


@law_delta.register(DiscretePower)
def _(law: DiscretePower, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    change = largest_change(sensitivity)
    if change == 0:  # no two integer arrays are that close
        return Bracket(0.0, 0.0)
    if change > 1 and dimension > 1:
        raise InvalidInput(
            f"sensitivity={sensitivity:g}: discrete power noise has a curve for one count that changes by 1; state the "
            "set of changes that one individual can make instead, such as lessnoise.changes.counts(20, per_cell=1)."
        )
    if change > _LARGEST_CHANGE:
        return Bracket(_delta(law, _LARGEST_CHANGE, epsilon).lower, 1.0)
    return _delta(law, change, epsilon)


def _delta(law: DiscretePower, change: int, epsilon: float) -> Bracket:
    """One entry changes by this whole number.

    A loss is known within h (L + 2 E(k)), h = _LOSS_ROUNDING, and within h L for k >= 0. With x = L - eps >= 0 a gain
    1 - e^-x is then known within h (eps + x + 2 E(k)) e^-x, and x e^-x <= 1 - e^-x: within h of itself, and ``slack``.
    """
    left = -min((change - 1) // 2, _reach(law, _BEYOND))
    slack = _LOSS_ROUNDING * (epsilon + 2.0 * (-left / law.scale) ** law.p)
    first = _first_above(law, change, epsilon - 2.0 * slack, left, _reach(law, _LAST))
    if first is None:  # P(K >= k) <= e^(-E(k))
        return Bracket(0.0, _NOTHING)
    skipped = math.exp(-_BEYOND) if first == left > -((change - 1) // 2) else 0.0  # P(K <= -k) <= e^(-E(k))
    terms = _Terms(law, change, epsilon, float(exponents(law, np.array(max(first, 0.0)))))
    end = _reach(law, terms.origin + _BEYOND)
    lower, upper = terms.sum(first, end)
    front = math.exp(-terms.origin)
    lower, upper = lower * front / _total(law) * (1.0 - _ROUNDING), upper * front / _total(law) * (1.0 + _ROUNDING)
    error = (2.0 * slack + math.exp(-_BEYOND)) * front * (1.0 + _ROUNDING)  # P(K >= first) <= e^(-origin)
    lower = max(lower - error - _NOTHING, 0.0)
    return Bracket(lower, min(max(upper + error + skipped + _NOTHING, lower), 1.0))


def losses(law: DiscretePower, k: Array, change: float) -> Array:
    """E(k + s) - E(k) for rising k > -s/2; from k = s on without cancellation, as E(k) ((1 + s/k)^p - 1)."""
    near = k < change
    apart = k[near]
    small = exponents(law, apart + change) - exponents(law, apart)
    far = k[~near]
    large = exponents(law, far) * np.expm1(law.p * np.log1p(change / far))
    return np.concatenate([small, large])


def _first_above(law: DiscretePower, change: int, target: float, low: int, high: int) -> int | None:
    """The first k whose computed loss exceeds the target; None if it is not even that of ``high``."""
    while True:
        nodes = low + np.arange(65) * (high - low) // 64
        above = np.flatnonzero(losses(law, nodes.astype(np.float64), float(change)) > target)
        if above.size == 0:
            return None
        place = int(above[0])
        if place == 0 or nodes[place] - nodes[place - 1] == 1:
            return int(nodes[place])
        low, high = int(nodes[place - 1]), int(nodes[place])


@dataclass(frozen=True, slots=True)
class _Terms:
    """f(k) = e^(origin - E(k)) (1 - e^(eps - L(k)))_+, log-concave where it is not 0."""

    law: DiscretePower
    change: int
    epsilon: float
    origin: float

    def sum(self, first: int, end: int) -> tuple[float, float]:
        """Bracket of the sum of f from ``first`` to before ``end``, rounding apart."""
        split = end if end - first <= _MOST_TERMS else first + _ONE_BY_ONE
        total = float(np.sum(self._values(np.arange(first, split, dtype=np.float64))))
        if split == end:
            return total, total
        width = -((split - end) // _MOST_TERMS)
        nodes = split + width * np.arange(-((split - end) // width) + 1)
        excess = float(losses(self.law, nodes[:1].astype(np.float64), float(self.change))[0]) - self.epsilon
        if excess <= _FLAT * self.epsilon:  # the loss hardly rises, p being almost 1: its slope has no digits
            total = math.fsum(
                self._values(np.arange(a, min(a + _MOST_TERMS, end), dtype=np.float64)).sum()
                for a in range(first, end, _MOST_TERMS)
            )
            return total, total
        lower, upper = self._blocks(nodes, width)
        return total + lower, total + upper

    def _values(self, k: Array) -> Array:
        gains = -np.expm1(np.minimum(self.epsilon - losses(self.law, k, float(self.change)), 0.0))
        result: Array = gains * np.exp(self.origin - exponents(self.law, k))
        return result

    def _blocks(self, nodes: NDArray[np.int64], width: int) -> tuple[float, float]:
        """Chords from node to node, and tangents in the middle, of ln f."""
        values = self._values(nodes.astype(np.float64))
        rates = np.diff(np.log(values)) / width
        middles: Array = nodes[:-1].astype(np.float64) + 0.5 * (width - 1)
        halves = 0.5 * self._slopes(middles)
        chords, tangents = values[:-1] * _progression(rates, width), self._values(middles)
        if width > 1:
            tangents *= np.exp(-halves * (width - 1)) * _progression(2.0 * halves, width)
        return float(np.sum(chords)), float(np.sum(tangents))

    def _slopes(self, k: Array) -> Array:
        """d ln f/dk = L'/(e^(L - eps) - 1) - E'."""
        p, scale, change = self.law.p, self.law.scale, float(self.change)
        here = p / scale * np.sign(k) * (np.abs(k) / scale) ** (p - 1.0)
        there = p / scale * ((k + change) / scale) ** (p - 1.0)
        excess = np.minimum(losses(self.law, k, change) - self.epsilon, 700.0)
        result: Array = (there - here) / np.expm1(excess) - here
        return result


def _progression(rates: Array, count: int) -> Array:
    """1 + e^r + ... + e^((count - 1) r)."""
    flat = np.abs(rates) < 1e-300
    steep = np.where(flat, 1.0, rates)
    result: Array = np.where(flat, float(count), np.expm1(count * steep) / np.expm1(steep))
    return result


@worst_of.register(DiscretePower)
def _(law: DiscretePower, changes: Changes, dimension: int) -> float | Moves:
    moves = changes.dominant(dimension) if changes.whole else None
    if moves is None:
        raise no_curve(law, changes)
    return moves if moves.sizes[0][0] > 1.0 else entries(moves)  # the curve of one size alone is that of 1


@law_pure_epsilon.register(DiscretePower)
def _(law: DiscretePower, dimension: int, sensitivity: float) -> float:
    return largest_change(sensitivity) / law.scale * (1.0 + 1e-15) if law.p == 1.0 else math.inf


# Accuracy.


@functools.lru_cache(maxsize=4096)
def _moments(law: DiscretePower) -> tuple[float, tuple[float, ...]]:
    """A length, and E[k^(2j)] over its powers for j = 0..4."""
    count = _reach(law, 80.0) + 1
    sums = [0.0] * 5
    for a in range(1, count, _MOST_TERMS):
        k = np.arange(a, min(a + _MOST_TERMS, count), dtype=np.float64)
        masses, squares = 2.0 * np.exp(-exponents(law, k)), (k / law.scale) ** 2
        for order in range(1, 5):
            masses *= squares
            sums[order] += float(masses.sum())
    return law.scale, (1.0, *(found / _total(law) for found in sums[1:]))


def _moment_list(law: DiscretePower, order: int) -> tuple[float, list[float]]:
    unit, known = _moments(law)
    if order <= 4:
        return unit, list(known[: order + 1])
    k = np.arange(1.0, _reach(law, 80.0 + 8.0 * order))
    masses = 2.0 * np.exp(-exponents(law, k)) / _total(law)
    return unit, [1.0, *(float(np.dot(masses, (k / unit) ** (2 * j))) for j in range(1, order + 1))]


@log_raw_moment.register(DiscretePower)
def _(law: DiscretePower, dimension: int, order: int) -> float:
    unit, moments = _moment_list(law, order)
    return 2.0 * order * math.log(unit) + log_sum_moment(moments, dimension, order)


@quantile.register(DiscretePower)
def _(law: DiscretePower, dimension: int, probability: float) -> float:
    unit, moments = _moments(law)
    count = _reach(law, _BEYOND) + 1
    window = count**2 + 24.0 * unit**2 * math.sqrt(dimension * max(moments[2] - moments[1] ** 2, 0.0)) + 2.0
    if dimension > 1 and window > _MOST_WINDOW:  # as good as continuous, with this variance
        scale = unit * math.sqrt(moments[1] / square_moments(law.p, 1)[1])
        return float(quantile(GeneralizedGaussian(law.p, scale), dimension, probability))
    masses = probabilities(law, count)
    masses[1:] *= 2.0
    return square_quantile(masses, dimension, dimension * moments[1] * unit**2, probability, window)


# Noise.


def blocks_of(law: DiscretePower) -> BlockLaw:
    """The law in blocks; those of p = 1 and p = 2 are made of rational exponents."""
    scale = Fraction(law.scale)
    if law.p == 1.0:
        return Blocks(1 / scale, Fraction(0), max(0, math.floor(scale).bit_length() - 8))
    if law.p == 2.0:
        return Blocks(Fraction(0), 1 / scale**2, max(0, math.floor(scale).bit_length() - 10))
    return PowerBlocks.of(law.p, law.scale)


@noise_form.register(DiscretePower)
def _(law: DiscretePower, shape: tuple[int, ...]) -> noise_engine.Integers:
    return noise_engine.Integers(sampler_of(blocks_of(law)).draw)  # its table is made before a release begins


@device_integers.register(DiscretePower)
def _(law: DiscretePower) -> IntegerTable | None:
    return device_table(blocks_of(law))
