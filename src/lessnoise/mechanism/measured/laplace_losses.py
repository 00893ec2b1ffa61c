r"""The curve of independent Laplace noise against changes of many entries, for many changes at once.

In units of the noise's scale, an entry that moves by a has H(g) = max over events of P - g Q = 1 - e^(-a/2) sqrt(g) for
e^-a <= g <= e^a, (1 - g)_+ elsewhere. Two steps bring a change onto a lattice of losses 0, +-h, +-2h, ...

1. Its sizes become multiples of h. Laplace noise hides a change the worse the more concentrated it is: delta grows from
   one change to another whose largest sizes add up to more, however many of them. So sizes are rounded with what is
   left over handed on to the next, smaller one, such that all sums of the largest are above the true ones (*above*),
   or below (*below*); in all they are off by one h, not by one for each size.
2. Polygons with corners on the lattice enclose H: the chords of H lie above it, and 1 - e^(-a/2) cosh(h/4) sqrt(g) has
   chords that lie below. (The chord of sqrt(g) over [1, r^2], r = e^(h/2), is 1 + (g - 1)/(r + 1), and sqrt(g) exceeds
   it most at g = r, by the factor (r + 1)/(2 sqrt(r)) = cosh(h/4).) In the last cells the lower polygon follows the
   tangents of H at its ends. Each polygon is the curve of a discrete loss.

Losses add up over the entries, so their laws are convolved: products of Fourier transforms. They are tilted first by
e^(theta x), so that rounding, which is relative to the largest product, stays small where delta is.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.guarantees import Bracket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Array
    from lessnoise.changes import Moves

    Whole = NDArray[np.int64]

_STEPS = 1 << 11  # of the largest loss, for many changes
_FINE = 1 << 15  # for those among which the worst is
_ROUNDING = 2.0**-44  # of a product of transforms, relative to its largest term: measured below 2^-49
_MOST = 1 << 23  # numbers in a table of transforms
_WORST = 24  # changes that the fine lattice is tried for
_KEPT = 8  # laws of a lattice that are kept


class LaplaceLosses:
    """Delta of a set of changes, each by the sizes of its entries in units of the noise's scale."""

    def __init__(self, changes: tuple[Moves, ...]) -> None:
        self.changes = changes
        self.largest = max(math.fsum(size * count for size, count in moves.sizes) for moves in changes)
        size = max(_MOST // (4 * _STEPS), 1)
        starts = range(0, len(changes), size)
        self._coarse = [_Lattice(changes[start : start + size], self.largest / _STEPS) for start in starts]
        self._fine: dict[int, _Lattice] = {}

    def delta(self, epsilon: float) -> Bracket:
        """Bracket of the largest delta of all changes."""
        lower = np.concatenate([part.delta(epsilon, above=False) for part in self._coarse])
        upper = np.concatenate([part.delta(epsilon, above=True) for part in self._coarse])
        for place in np.argsort(-upper, kind="stable")[:_WORST]:  # the worst is among them, on a finer lattice
            if upper[place] <= lower.max():
                break
            finer = self._finer(int(place))
            lower[place] = max(lower[place], finer.delta(epsilon, above=False)[0])
            upper[place] = min(upper[place], finer.delta(epsilon, above=True)[0])
        most = float(upper.max())
        return Bracket(min(float(lower.max()), most), most)

    def worst(self) -> int:
        """The place of about the worst change, halfway to the largest loss."""
        return int(np.argmax(np.concatenate([part.delta(0.5 * self.largest, above=False) for part in self._coarse])))

    def _finer(self, place: int) -> _Lattice:
        if place not in self._fine:
            self._fine[place] = _Lattice(self.changes[place : place + 1], self.largest / _FINE)
        return self._fine[place]


class _Lattice:
    """Some changes on a lattice of losses, and the laws of their losses, tilted: each is computed once."""

    def __init__(self, changes: tuple[Moves, ...], step: float) -> None:
        self.step = step
        self.sizes = {above: [_rounded(moves.sizes, step, above=above) for moves in changes] for above in (False, True)}
        self._laws: dict[tuple[float, bool], tuple[Array, Array]] = {}

    def delta(self, epsilon: float, *, above: bool) -> Array:
        """One end of the bracket of delta for each of the changes."""
        sizes = self.sizes[above]
        theta = _tilt(sizes, self.step, epsilon)
        theta = 2.0 ** (math.floor(2.0 * math.log2(theta)) / 2.0) if theta > 0.0 else 0.0  # few, to be found again
        laws, logs = self._law(theta, above)
        losses = self.step * np.arange(laws.shape[1])
        kept = losses > epsilon
        with np.errstate(under="ignore"):
            weights = np.exp(-theta * (losses[kept] - epsilon)) * -np.expm1(epsilon - losses[kept])
            found = laws[:, kept] @ weights * np.exp(np.clip(logs - theta * epsilon, -700.0, 700.0))
        # Masses are differences of nearly equal numbers at the ends.
        margin = 1e-10 * (max(sum(one.values()) for one in sizes) + 1)
        return np.minimum(found * (1.0 + margin), 1.0) if above else np.asarray(found * (1.0 - margin))

    def _law(self, theta: float, above: bool) -> tuple[Array, Array]:
        """Tilted probabilities of the losses 0, 1, 2, ... steps, for each change; and logarithms of their factors."""
        if (theta, above) not in self._laws:
            if len(self._laws) >= _KEPT:
                self._laws.pop(next(iter(self._laws)))
            self._laws[theta, above] = _composed(self.sizes[above], self.step, theta, above=above)
        return self._laws[theta, above]


@functools.lru_cache(maxsize=16)
def laplace_losses(changes: tuple[Moves, ...]) -> LaplaceLosses:
    """The same object for the same changes."""
    return LaplaceLosses(changes)


def _rounded(sizes: Sequence[tuple[float, int]], step: float, *, above: bool) -> dict[int, int]:
    """Multiples of the step, each with its number of entries: sums of the largest above the true ones, or below."""
    found: dict[int, int] = {}
    total, given, last = 0.0, 0, 1 << 62
    for size, count in sizes:
        for _ in range(count):
            total += size / step
            # 1e-9 is beyond all rounding of the sums: 2^15 steps of at most 2^20 entries.
            wanted = math.ceil(total * (1.0 + 1e-12) + 1e-9) if above else math.floor(total * (1.0 - 1e-12) - 1e-9)
            part = max(wanted - given, 0) if above else min(max(wanted - given, 0), last)
            given, last = given + part, part
            if part:
                found[part] = found.get(part, 0) + 1
            elif not above:
                return found
    return found


def _composed(sizes: list[dict[int, int]], step: float, theta: float, *, above: bool) -> tuple[Array, Array]:
    """The laws of the sums of losses of entries whose sizes are multiples of the step, tilted and made to sum to 1."""
    reach = max([sum(part * count for part, count in one.items()) for one in sizes] + [1])
    length = 1 << (2 * reach + 1 - 1).bit_length()
    transforms: dict[int, tuple[NDArray[np.complex128], float]] = {}
    product = np.ones((len(sizes), length // 2 + 1), dtype=np.complex128)
    logs = np.zeros(len(sizes))
    for row, one in enumerate(sizes):
        for part, count in one.items():
            if part not in transforms:
                masses, log = _tilted(part, step, theta, above=above)
                wrapped = np.zeros(length)
                wrapped[: part + 1], wrapped[length - part :] = masses[part:], masses[:part]
                transforms[part] = np.fft.rfft(wrapped), log
            product[row] *= transforms[part][0] ** count
            logs[row] += count * transforms[part][1]
    laws = np.fft.irfft(product, length, axis=1)[:, : reach + 1]
    rounding = _ROUNDING * max(sum(one.values()) for one in sizes)
    return laws + rounding if above else np.maximum(laws - rounding, 0.0), logs


def _tilt(sizes: list[dict[int, int]], step: float, epsilon: float) -> float:
    """About the theta at which the tilted loss of a typical change has mean epsilon."""
    one = max(sizes, key=lambda each: sum(part * count for part, count in each.items()))
    if not one:
        return 0.0

    size = step * np.array(list(one), dtype=np.float64)
    count = np.array(list(one.values()), dtype=np.float64)

    def excess(theta: float) -> float:
        # The loss of an entry is a with probability 1/2, -a with e^-a/2, and has density e^((x-a)/2)/4 in between.
        # Over e^(theta a): t(theta) = 1/2 + e^-u/2 + (1 - e^-u)/(4 s), s = theta + 1/2, u = 2 s a, and the tilted mean.
        s = theta + 0.5
        falling = np.exp(-np.minimum(2.0 * s * size, 700.0))
        between = 0.25 * (1.0 - falling) / s
        first = size * (0.5 - 0.5 * falling) + 0.25 * size * (1.0 + falling) / s - between / s
        return float(count @ (first / (0.5 + 0.5 * falling + between))) - epsilon

    low, high = 0.0, 1.0
    while excess(high) < 0.0 and high < 4096.0:
        low, high = high, 2.0 * high
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) < 0.0 else (low, middle)
    return low


def _tilted(part: int, step: float, theta: float, *, above: bool) -> tuple[Array, float]:
    """Probabilities of the losses -part, ..., part steps, times e^(theta loss), made to sum to 1; and ln of the sum.

    The mass at x_k is the change of slope of the polygon there (see ``composition.discretize``): with H_k its corners,
    (H_{k-1} - H_k)/(1 - e^-h) - (H_k - H_{k+1})/(e^h - 1), and that at -x_k is e^(-x_k) of it, as the pair of measures
    reads the same backwards. Inside, H_k = 1 - c e^(kh/2), it is c e^(kh/2) tanh(h/4), c = e^(-a/2) or cosh(h/4) of it.
    """
    k = np.arange(part + 1)
    excess = 0.0 if above else 2.0 * math.sinh(0.125 * step) ** 2  # cosh(h/4) - 1
    with np.errstate(under="ignore"):
        masses = (1.0 + excess) * math.tanh(0.25 * step) * np.exp(0.5 * step * (k - part))
        down = math.exp(-step)
        if above:
            masses[part] = 1.0 / (1.0 + math.exp(-0.5 * step))
        else:  # the tangent at the upper end makes H_{part-1} = (1 - e^-h)/2
            masses[part] = 0.5
            if part >= 2:
                masses[part - 1] = -0.5 * math.expm1(-step) + excess * down / math.expm1(-step)
            if part >= 3:
                lowered = 0.5 * math.expm1(-0.5 * step) ** 2 - excess * math.exp(-0.5 * step)
                masses[part - 2] -= lowered / math.expm1(step)
            else:
                masses[0] = 1.0 - float((masses[1:] * (1.0 + np.exp(-step * k[1:]))).sum())
        both = np.concatenate([(masses * np.exp(-step * k))[:0:-1], masses])
        tilted = both * np.exp(theta * step * (np.arange(-part, part + 1) - part))
    total = float(tilted.sum())
    return tilted / total, math.log(total) + theta * step * part
