r"""Geometric noise for counts, and the least noise that an integer can have when one row changes one count by 1.

The entries are independent integers. Without a ``tail``, P(k) is proportional to e^(-rate |k|): the geometric mechanism
of Ghosh, Roughgarden & Sundararajan (2012), pure rate-DP. With a tail d it ends at K + 1: with a = rate,

    p_k = e^(a (K - |k|)) (d + (e^a - 1) x)  for |k| <= K,    p_(K+1) = p_(-K-1) = x,

and x is what makes the total 1. Moving by 1 costs the probability d beyond epsilon = a: d - x at the step from K to
K + 1, and x at the end. K is the largest number for which x >= 0; then x <= d.

**No integer noise is smaller.** Let f grow with |k| (k^2, for instance), and let p be any law on the integers that is
(a, d)-private when moved by 1 to either side. For numbers 0 <= c_k <= m (k >= 0) and every such p,

    sum_k f(k) p_k >= l - 2 d m    if    f(k) + c_|k| - e^a c_(|k|-1) >= l for k != 0, and f(0) + 2 c_0 >= l:

multiply p_k - e^a p_(k+1) by c_k and add up over k >= 0, which is at most m d; do the same to the left. Take
2 c_0 = l - f(0), c_k = l - f(k) + e^a c_(k-1) up to K and c_k = m = c_K beyond, with l such that (e^a - 1) m =
f(K + 1) - l. Beyond K the condition reads f(k) >= f(K + 1). Were c_(k-1) (e^a - 1) < f(k) - l for some k <= K, c would
fall from there on and never come to f(K + 1) - l > f(k) - l: so c rises, c_0 >= 0, and all of it is feasible. The law
above gives equality everywhere: it has the least mean of every such f at once.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import entries, law_delta, law_pure_epsilon, no_curve, worst_of
from lessnoise.mechanism.families.block_sampler import Blocks, device_table, sampler_of
from lessnoise.mechanism.law import Laplace, Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.request import Request
from lessnoise.mechanism.sampling import device_integers, noise_form
from lessnoise.mechanism.sums import log_sum_moment, square_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array, IntArray, Shape
    from lessnoise.changes import Changes, Moves
    from lessnoise.noise import IntegerTable, Sequence


LEAST_COUNT_NOISE = "least-count-noise"
SMALLEST_RATE, LARGEST_RATE = 2.0**-40, 700.0
_ROUNDING = 1e-12  # relative, of the closed forms below
_DIGITS = 60
_MOST_TERMS = 1 << 20  # of a sum; beyond, the noise is as good as continuous


@register
@dataclass(frozen=True, slots=True)
class Geometric(Plain):
    """Independent integers whose probability falls by e^rate in each step, up to an end that ``tail`` sets (0: none).

    >>> Geometric(1.0, 1e-6).reach, f"{Geometric(1.0, 1e-6).last:.3g}"
    (13, '2.59e-08')
    """

    rate: float
    tail: float = 0.0

    kind: ClassVar[str] = "geometric"
    norm: ClassVar[str] = "l1"
    integer: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self, rate=validation.positive("rate", self.rate))
        settle(self, tail=validation.delta_or_zero(self.tail, "tail"))
        if not SMALLEST_RATE <= self.rate <= LARGEST_RATE:
            raise InvalidInput(
                f"rate={self.rate:g} is not between {SMALLEST_RATE:.3g} and {LARGEST_RATE:g}: choose an epsilon of "
                "ordinary size."
            )

    @property
    def reach(self) -> int | None:
        """The K of the formulas; None for a law that never ends."""
        return None if self.tail == 0.0 else _reach(self)

    @property
    def last(self) -> float:
        """The x of the formulas, P(K + 1); 0 for a law that never ends."""
        return 0.0 if self.tail == 0.0 else float(last_probability(self, _DIGITS))

    def choice(self, dimension: int) -> str:
        """With a tail it is the optimum, for one count that changes by 1."""
        return "geometric" if self.tail == 0.0 else "integer optimum"


@functools.lru_cache(maxsize=256)
def _reach(law: Geometric) -> int:
    # x >= 0 means r^K >= t with r = e^-a, t = d (1 + r)/(1 - r + 2 d r). One K less than the largest is as good.
    with localcontext(Context(prec=_DIGITS)):
        rate, tail = Decimal(law.rate), Decimal(law.tail)
        ratio = (-rate).exp()
        steps = -(tail * (1 + ratio) / (1 - ratio + 2 * tail * ratio)).ln() / rate
        return max(int(steps - abs(steps) * Decimal(10) ** (20 - _DIGITS)), 0)


@functools.lru_cache(maxsize=256)
def last_probability(law: Geometric, digits: int) -> Decimal:
    """x = (r^K - d s)/((1/r - 1) s + 2 r^K), s = 1 + 2 (1 - r^K) r/(1 - r), to this many decimals."""
    assert law.reach is not None
    with localcontext(Context(prec=digits + 30)):  # 1/(1 - r) takes at most 13 of these digits, ten roundings 1
        rate, tail = Decimal(law.rate), Decimal(law.tail)
        ratio, end = (-rate).exp(), (-rate * law.reach).exp()
        total = 1 + 2 * (1 - end) * ratio / (1 - ratio)
        return max((end - tail * total) / ((1 / ratio - 1) * total + 2 * end), Decimal(0))


def central_probability(law: Geometric) -> float:
    """P(0), from which P falls by e^rate a step: (1 - 2 x)/s with the s above, or tanh(rate/2)."""
    if law.reach is None:
        return math.tanh(0.5 * law.rate)
    total = 1.0 - 2.0 * math.expm1(-law.rate * law.reach) / math.expm1(law.rate)
    return (1.0 - 2.0 * law.last) / total


def probabilities(law: Geometric, count: int) -> Array:
    """P(0), P(1), ..., P(count - 1), in floats.

    >>> law = Geometric(0.7, 1e-3)
    >>> all_of_them = probabilities(law, law.reach + 2)
    >>> f"{all_of_them[0] + 2 * all_of_them[1:].sum():.12f}"
    '1.000000000000'
    """
    k = np.arange(float(count))
    falling: Array = central_probability(law) * np.exp(-law.rate * k)
    if law.reach is not None:
        falling[law.reach + 1 :] = 0.0
        falling[law.reach + 1 : law.reach + 2] = law.last
    return falling


def log_weights(law: Geometric, noise: Array) -> Array:
    """Ln P(k)/P(0) of whole numbers; minus infinity beyond the end."""
    size = np.abs(noise)
    weights: Array = -law.rate * size
    if law.reach is not None:
        last = math.log(law.last / central_probability(law)) if law.last > 0.0 else -math.inf
        weights = np.where(size <= law.reach, weights, np.where(size == law.reach + 1, last, -math.inf))
    return weights


# Privacy.


@law_delta.register(Geometric)
def _(law: Geometric, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    change = largest_change(sensitivity)
    if change == 0:  # no two integer arrays are that close
        return Bracket(0.0, 0.0)
    if law.reach is None:
        return _pure_delta(law, change, dimension, epsilon)
    if change > 1:
        raise InvalidInput(
            f"sensitivity={sensitivity:g}: geometric noise with tail={law.tail:g} is for one count that changes by 1; "
            "use noise without a tail, or a mechanism for larger changes."
        )
    if epsilon == law.rate:  # d, as it was built: at the step and at the end
        return Bracket(math.nextafter(law.tail, 0.0), math.nextafter(law.tail, 1.0))
    step = max(law.tail + law.last * (math.expm1(law.rate) - math.exp(min(epsilon, 709.0))), 0.0)
    value = law.last + step
    if epsilon < law.rate:
        inner = central_probability(law) * math.expm1(-law.rate * law.reach) / math.expm1(-law.rate)
        value += inner * -math.expm1(epsilon - law.rate)
    return Bracket(value * (1.0 - _ROUNDING), min(value * (1.0 + _ROUNDING) + math.ulp(law.tail), 1.0))


@worst_of.register(Geometric)
def _(law: Geometric, changes: Changes, dimension: int) -> float | Moves:
    # As for Laplace noise: the overlap of two diamonds of the lattice falls as two entries d1 >= d2 become d1 + t and
    # d2 - t, for each parity of the diagonals on its own. With a tail: the change that is above all others.
    if not changes.whole:
        raise no_curve(law, changes)
    moves = changes.majorant(dimension) if law.reach is None else changes.dominant(dimension)
    if moves is not None and (law.reach is None or moves.sizes[0][0] == 1.0):
        return entries(moves)
    if law.reach is None:
        return changes.norm(1, dimension)
    raise no_curve(law, changes)


def _pure_delta(law: Geometric, change: int, dimension: int, epsilon: float) -> Bracket:
    """Between the curve of one entry that changes by all of it, and that of anything that is pure.

    No mechanism of pure privacy E has more than (e^E - e^eps)/(e^E + 1) (Kairouz, Oh & Viswanath 2015). For a change of
    1 the two are the same.
    """
    pure = law.rate * change
    if epsilon >= pure:
        return Bracket(0.0, 0.0)
    upper = -math.expm1(epsilon - pure) / (1.0 + math.exp(-pure))
    # k >= 0 loses all of it; k = -j less, rate (change - 2 j), as long as that is above epsilon.
    lower = -math.expm1(epsilon - pure) / (1.0 + math.exp(-law.rate))
    between = min(math.ceil(0.5 * (change - epsilon / law.rate)) - 1, _MOST_TERMS)
    if between > 0:
        j = np.arange(1.0, between + 1.0)
        gains = np.exp(-law.rate * j) - np.exp(epsilon - law.rate * (change - j))
        lower += math.tanh(0.5 * law.rate) * float(np.maximum(gains, 0.0).sum())
    exact = change == 1 or (dimension == 1 and between < _MOST_TERMS)
    upper = min(max(lower if exact else upper, lower) * (1.0 + _ROUNDING), 1.0)
    return Bracket(lower * (1.0 - _ROUNDING), upper)


@law_pure_epsilon.register(Geometric)
def _(law: Geometric, dimension: int, sensitivity: float) -> float:
    if law.reach is not None:
        return math.inf
    return law.rate * largest_change(sensitivity) * (1.0 + 1e-15)


def largest_change(sensitivity: float) -> int:
    """The largest l1 norm of a whole-number change; a sensitivity just below a whole number means that one."""
    return math.floor(sensitivity + min(0.01 * sensitivity, 0.25))


# Accuracy.


def _moments(law: Geometric, order: int) -> tuple[float, list[float]]:
    """A length, and E[k^(2j)] over its powers for j = 0..order."""
    count = law.reach + 2 if law.reach is not None else math.ceil(50.0 / law.rate) + 60
    if count <= _MOST_TERMS:
        masses = 2.0 * probabilities(law, count)[1:]
        k = np.arange(1.0, count)
        unit = math.sqrt(float(np.dot(masses, k * k))) or 1.0
        return unit, [1.0, *(float(np.dot(masses, (k / unit) ** (2 * j))) for j in range(1, order + 1))]
    # Continuous to a millionth: Laplace noise of this rate, ended at K + 1 where there is an end.
    unit, moments = 1.0 / law.rate, [float(math.factorial(2 * j)) for j in range(order + 1)]
    if law.reach is not None:
        from scipy.special import gammainc

        end = law.rate * (law.reach + 1.0)
        moments = [moment * float(gammainc(2 * j + 1.0, end)) for j, moment in enumerate(moments)]
        moments[0] = 1.0
    return unit, moments


@log_raw_moment.register(Geometric)
def _(law: Geometric, dimension: int, order: int) -> float:
    unit, moments = _moments(law, order)
    return 2.0 * order * math.log(unit) + log_sum_moment(moments, dimension, order)


@quantile.register(Geometric)
def _(law: Geometric, dimension: int, probability: float) -> float:
    unit, moments = _moments(law, 2)
    count = law.reach + 2 if law.reach is not None else math.ceil(50.0 / law.rate) + 60
    spread = 24.0 * unit**2 * math.sqrt(dimension * max(moments[2] - moments[1] ** 2, 0.0))
    window = min(count, 45.0 * unit) ** 2 + spread + 2.0
    if count > _MOST_TERMS or (dimension > 1 and window > 2**21):
        return float(quantile(Laplace(math.sqrt(0.5 * moments[1]) * unit), dimension, probability))
    masses = probabilities(law, count)
    masses[1:] *= 2.0
    kept = count if dimension == 1 else min(count, math.ceil(45.0 * unit) + 2)
    return square_quantile(masses[:kept], dimension, dimension * moments[1] * unit**2, probability, window)


# Noise.


def blocks_of(law: Geometric) -> Blocks:
    """The law without end in blocks: of one magnitude each, or such that rate W is at most 2^-8."""
    return Blocks(Fraction(law.rate), Fraction(0), max(0, -8 - math.frexp(law.rate)[1]))


@noise_form.register(Geometric)
def _(law: Geometric, shape: tuple[int, ...]) -> noise_engine.Integers:
    finish = None if law.reach is None else functools.partial(_ended, law)
    return noise_engine.Integers(functools.partial(sampler_of(blocks_of(law)).draw, finish=finish))


@device_integers.register(Geometric)
def _(law: Geometric) -> IntegerTable | None:
    return device_table(blocks_of(law)) if law.reach is None else None


def _ended(law: Geometric, values: IntArray, source: Sequence) -> IntArray:
    """Draws of the law without end: those up to K are kept, and each of them gives way to +-(K + 1) now and then."""
    assert law.reach is not None
    kept = values[np.abs(values) <= law.reach]
    ends = np.flatnonzero(_at_the_end(law, len(kept), source))
    kept[ends] = np.where(source.words(ends.size) >> np.uint64(63) != 0, law.reach + 1, -law.reach - 1)
    return kept


def _at_the_end(law: Geometric, count: int, source: Sequence) -> NDArray[np.bool_]:
    """Choices with probability 2 x: first digits that leave no doubt, else as many as it takes."""
    words = source.words(count)
    low, high = _end_bounds(law, 64)
    chosen: NDArray[np.bool_] = words < np.uint64(low)
    for index in np.flatnonzero((words >= np.uint64(low)) & (words < np.uint64(high))):
        digits, bits = int(words[index]), 64
        while True:
            digits, bits = (digits << 64) | int(source.words(1)[0]), bits + 64
            low, high = _end_bounds(law, bits)
            if not low <= digits < high:
                chosen[index] = digits < low
                break
    return chosen


def _end_bounds(law: Geometric, bits: int) -> tuple[int, int]:
    """Integers with low <= 2^bits 2 x <= high."""
    places = bits // 3 + 4
    found, slack = Fraction(last_probability(law, places)), Fraction(1, 10**places)
    scaled = (2 * max(found - slack, Fraction(0)) * 2**bits, 2 * (found + slack) * 2**bits)
    return math.floor(scaled[0]), math.ceil(scaled[1])


# Builders.


def geometric(
    *,
    epsilon: float,
    shape: Shape,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Integer noise for counts: with a ``delta``, the least that any integer noise can have for a change of one count.

    ``sensitivity`` is the largest l1 change, a whole number. Without ``delta`` the noise is pure epsilon-DP. With it,
    one individual changes one count by 1, no noise on the integers has a smaller mean of any growing function of its
    size (the proof is at the top of this module), and the noise never exceeds some ln(1/delta)/epsilon.

    >>> pure = geometric(epsilon=1, shape=6)
    >>> best = geometric(epsilon=1, delta=1e-6, shape=6)
    >>> f"{pure.expected_loss / 6:.4f}, {best.expected_loss / 6:.4f}"
    '1.8413, 1.8411'
    >>> best.check().holds, best.release([3, 1, 4, 1, 5, 9]).value.dtype
    (True, dtype('int64'))
    """
    epsilon, sizes, relation = validation.epsilon(epsilon), validation.shape(shape), Neighbours.of(neighbours)
    sensitivity, delta = validation.sensitivity(sensitivity), validation.delta_or_zero(delta)
    change = largest_change(sensitivity)
    if change == 0:
        raise InvalidInput(
            f"sensitivity={sensitivity:g} is below 1, but two different integer arrays are at least 1 apart: pass the "
            "largest change that one individual can cause, a whole number."
        )
    if delta == 0.0:
        rate = min(epsilon / change, LARGEST_RATE)
        while Fraction(rate) * change > Fraction(epsilon):  # the quotient may have been rounded up
            rate = math.nextafter(rate, 0.0)
        claim = Claim(epsilon, 0.0, relation, "Ghosh, Roughgarden & Sundararajan 2012")
        return Mechanism("geometric", Geometric(rate), sizes, sensitivity, relation, claim)
    if change > 1:
        raise InvalidInput(
            f"delta={delta:g} is of use where one individual changes one count by 1, not by sensitivity="
            f"{sensitivity:g}: leave it out."
        )
    target = Request.of(epsilon, delta, sensitivity, sizes, relation)
    tail = math.nextafter(math.nextafter(target.reserved_delta, 0.0), 0.0)  # the bracket's last digits
    return target.mechanism(LEAST_COUNT_NOISE, Geometric(min(target.epsilon, LARGEST_RATE), tail), OURS)
