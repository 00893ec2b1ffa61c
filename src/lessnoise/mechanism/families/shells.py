r"""Shells: any radial density that is constant between given radii and never rises outwards.

Shell i lies between ``edges[i]`` and ``edges[i+1]`` and holds the probability ``probabilities[i]``, spread evenly over
its volume. The noise picks a shell, a radius with r^M uniform inside it, and a uniform direction.

Privacy is a finite sum. With heights h_1 >= h_2 >= ..., slicing both densities at a common height c gives

    delta(eps) = sum over the intervals (c', c) between neighbours among {h_i} and {e^eps h_j}
                 of (c - c') vol(B(0, u)) lune(u, Y),

u and Y being the radii of {h > c'} and {e^eps h > c'}, and the lune being the fraction of B(0, u) outside a ball of
radius Y whose centre is a sensitivity away. A lune grows with the distance of the centres, so the value at the
sensitivity covers every smaller shift.

Rounding. The logarithms of the heights are known within eta, so that the true density lies within a factor e^(+-eta)
of a falling one whose sum is computed, hence

    e^-eta delta_computed(eps + 2 eta) <= delta(eps) <= e^eta delta_computed(eps - 2 eta).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput, LessnoiseError
from lessnoise.guarantees import Bracket, Neighbours
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.curve import law_delta
from lessnoise.mechanism.curve.lune import lune
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.request import Request
from lessnoise.mechanism.sampling import noise_form
from lessnoise.noise import Isotropic, ShellRadius

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array, Shape
    from lessnoise.mechanism.request import Relation
    from lessnoise.noise import Form


_ULP = 2.0**-52
_NOTHING = 1e-300  # what may be lost where a factor leaves the floats; delta itself is never 0


@register
@dataclass(frozen=True, slots=True)
class Shells(Plain):
    """Noise with a constant density on each shell (the space between two spheres), which falls outwards.

    >>> law = Shells(2, (0, 1, 3), (0.5, 0.5))
    >>> law.edges
    (0.0, 1.0, 3.0)
    """

    dimension: int
    edges: tuple[float, ...]
    probabilities: tuple[float, ...]

    kind: ClassVar[str] = "shells"
    norm: ClassVar[str] = "l2"

    def __post_init__(self) -> None:
        (dimension,) = validation.shape(self.dimension, "dimension")
        edges = validation.numbers("edges", self.edges)
        probabilities = validation.numbers("probabilities", self.probabilities)
        settle(self, dimension=dimension, edges=edges, probabilities=probabilities)
        if len(edges) != len(probabilities) + 1 or not probabilities:
            raise InvalidInput(
                f"edges has length={len(edges)} for {len(probabilities)} probabilities: pass one edge more than there "
                "are shells, from 0 outwards."
            )
        if edges[0] != 0.0:
            raise InvalidInput(f"edges[0]={edges[0]:g} must be 0: the density may not rise outwards, so no hole.")
        if min(steps := np.diff(edges)) <= 0.0:
            i = int(np.argmin(steps))
            raise InvalidInput(
                f"edges[{i + 1}]={edges[i + 1]:g} is not above edges[{i}]={edges[i]:g}: pass rising edges."
            )
        if min(probabilities) <= 0.0:
            i = int(np.argmin(probabilities))
            raise InvalidInput(f"probabilities[{i}]={probabilities[i]:g} must be above 0: leave empty shells out.")
        if abs(math.fsum(probabilities) - 1.0) > 1e-9:
            raise InvalidInput(f"probabilities sum to {math.fsum(probabilities):.12g}, not to 1: divide them by it.")
        profile = _profile(self)
        rise = np.diff(profile.raw_heights)
        if rise.size and rise.max() > profile.eta:
            i = int(np.argmax(rise))
            raise InvalidInput(
                f"probabilities[{i + 1}]={probabilities[i + 1]:g} makes shell {i + 1} denser than shell {i} "
                f"({math.exp(min(rise[i], 700.0)):.6g} times): the density must not rise outwards."
            )

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The shells know their dimension."""
        if math.prod(shape) != self.dimension:
            raise InvalidInput(
                f"shape={shape} has {math.prod(shape)} entries, but these shells are made for M={self.dimension}: "
                "make shells for this shape."
            )

    def choice(self, dimension: int) -> str:
        """How many shells there are."""
        return f"{len(self.probabilities)} shells" if len(self.probabilities) > 1 else "a uniform ball"

    def scaled(self, factor: float) -> Shells:
        """All radii multiplied by a factor."""
        return replace(self, edges=tuple(factor * edge for edge in self.edges))


class _Profile(NamedTuple):
    """Arrays of a law: outer radii, log-volume ratios (u/last)^M, log-heights, and the error of the latter."""

    radii: Array
    log_balls: Array
    raw_heights: Array
    eta: float
    total: float

    @property
    def heights(self) -> Array:
        """Log-heights, made to fall where rounding alone lets them rise."""
        return np.minimum.accumulate(self.raw_heights)


@functools.lru_cache(maxsize=64)
def _profile(law: Shells) -> _Profile:
    edges = np.array(law.edges)
    inner, outer = edges[:-1], edges[1:]
    log_balls = law.dimension * np.log(outer / outer[-1])
    log_probabilities = np.log(law.probabilities)
    heights = log_probabilities - log_balls - np.log(-_thinness(law.dimension, inner, outer))
    size = float(np.abs(heights).max() + np.abs(log_balls).max()) + 750.0
    # Each term above is off by a few units in its last place, and a volume by a few M of them.
    eta = _ULP * (16.0 * law.dimension + 8.0 * size)
    return _Profile(outer, log_balls, heights, eta, math.fsum(law.probabilities))


def _thinness(dimension: int, inner: Array, outer: Array, order: float = 0.0) -> Array:
    """(inner/outer)^(M + order) - 1, negative, without cancellation in thin shells."""
    with np.errstate(divide="ignore"):
        log_ratio = np.log1p((inner - outer) / outer)  # -inf for the innermost
    result: Array = np.expm1((dimension + order) * log_ratio)
    return result


@law_delta.register(Shells)
def _(law: Shells, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    profile = _profile(law)
    eta = profile.eta
    low = _sliced(law, profile, sensitivity, epsilon + 2.0 * eta, upper=False) * math.exp(-2.0 * eta)
    # Where epsilon < 2 eta: delta(a) <= delta(b) + e^b - e^a for a < b.
    short = max(2.0 * eta - epsilon, 0.0)
    high = _sliced(law, profile, sensitivity, max(epsilon - 2.0 * eta, 0.0), upper=True) + 2.0 * short
    high = min(high * math.exp(2.0 * eta) * (1.0 + 1e-12) + _NOTHING, 1.0)
    return Bracket(max(min(low * (1.0 - 1e-12), high), 0.0), high)


def _sliced(law: Shells, profile: _Profile, sensitivity: float, epsilon: float, *, upper: bool) -> float:
    heights = profile.heights
    levels = np.unique(np.concatenate([heights, heights + epsilon]))[::-1]
    levels = levels[levels <= heights[0]]
    inner = np.searchsorted(-heights, -levels, side="right") - 1
    outer = np.searchsorted(-heights - epsilon, -levels, side="right") - 1
    log_width = np.append(np.log(-np.expm1(np.diff(levels))), 0.0)
    mass = np.exp(levels + log_width + profile.log_balls[inner]) / profile.total
    fraction, error = _lunes(law.dimension, profile.radii[inner], profile.radii[outer], sensitivity, upper=upper)
    return math.fsum(mass * (fraction + error if upper else np.maximum(fraction - error, 0.0)))


def _lunes(dimension: int, u: Array, outer: Array, shift: float, *, upper: bool) -> tuple[Array, Array]:
    """Lune fractions with absolute errors; the inputs are first moved to the safe side of their own rounding."""
    nudge = 8.0 * _ULP if upper else -8.0 * _ULP
    if dimension == 1:
        gap = np.maximum(u + shift - outer + nudge * (outer + shift), 0.0)
        return np.minimum(gap / (2.0 * u), 1.0), np.where(gap > 0.0, 4.0 * _ULP, 0.0)
    y = np.log1p((outer - u) / u) * (1.0 - nudge)
    cut = lune(dimension, shift / u * (1.0 + nudge), y, np.full_like(u, 8.0 * _ULP))
    return cut.fraction, cut.error


@log_raw_moment.register(Shells)
def _(law: Shells, dimension: int, order: float) -> float:
    edges, power = np.array(law.edges), 2.0 * order
    inner, outer = edges[:-1], edges[1:]
    # E[r^q | shell] = M/(M+q) b^q (1 - (a/b)^(M+q))/(1 - (a/b)^M).
    share = _thinness(dimension, inner, outer, power) / _thinness(dimension, inner, outer)
    probabilities = np.array(law.probabilities)
    mean = math.fsum(probabilities * share * np.exp(power * np.log(outer / outer[-1]))) / math.fsum(probabilities)
    return power * math.log(outer[-1]) + math.log(mean * dimension / (dimension + power))


@quantile.register(Shells)
def _(law: Shells, dimension: int, probability: float) -> float:
    return float(radius_at(law, np.array([probability]))[0]) ** 2


def radius_at(law: Shells, probability: Array) -> Array:
    """The radii that the noise does not exceed with these probabilities."""
    edges, probabilities, total = np.array(law.edges), np.array(law.probabilities), math.fsum(law.probabilities)
    reached = np.cumsum(probabilities) / total
    shell = np.minimum(np.searchsorted(reached, probability), len(reached) - 1)
    before = np.append(0.0, reached)[shell]
    share = np.minimum((probability - before) * total / probabilities[shell], 1.0)
    inner, outer = edges[shell], edges[shell + 1]
    empty = np.maximum((1.0 - share) * _thinness(law.dimension, inner, outer), -1.0 + _ULP)
    radius: Array = outer * np.exp(np.log1p(empty) / law.dimension)
    return radius


def log_height(law: Shells, radius: Array) -> Array:
    """ln of the density at these distances, up to one constant; -inf outside the shells."""
    profile = _profile(law)
    padded = np.append(profile.heights, -np.inf)
    heights: Array = padded[np.searchsorted(profile.radii, radius, side="left")]
    return heights


@noise_form.register(Shells)
def _(law: Shells, shape: tuple[int, ...]) -> Form:
    return Isotropic(ShellRadius(law.edges, law.probabilities, law.dimension))


def shells(
    *,
    edges: Sequence[float],
    probabilities: Sequence[float],
    sensitivity: float,
    shape: Shape,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """Noise of a piecewise-constant radial density that does not rise outwards.

    With ``epsilon`` and ``delta`` the radii are multiplied by the least factor at which the target is proved to
    hold; without them they are taken as they are.

    >>> steps = {"edges": [0, 1, 2, 3], "probabilities": [0.6, 0.3, 0.1]}
    >>> m = shells(**steps, sensitivity=1, shape=1)  # heights 0.3, 0.15, 0.05
    >>> round(m.delta(1).upper, 6)  # (0.15 - 0.05 e) + 0.05
    0.064086
    >>> shells(**steps, sensitivity=1, shape=1, epsilon=1, delta=0.01).check().holds
    True
    """
    sizes = validation.shape(shape)
    law = Shells(math.prod(sizes), edges, probabilities)  # type: ignore[arg-type]  # __post_init__ converts
    if (epsilon is None) != (delta is None):
        raise InvalidInput(f"epsilon={epsilon} and delta={delta}: pass both to calibrate, or neither.")
    if epsilon is None or delta is None:
        return Mechanism("shells", law, sizes, sensitivity, Neighbours.of(neighbours))
    target = Request.of(epsilon, delta, sensitivity, sizes, neighbours)
    law = calibrated(law, sensitivity=target.sensitivity, epsilon=target.epsilon, delta=target.reserved_delta)
    return target.mechanism("shells", law, OURS)


def calibrated(law: Shells, *, sensitivity: float, epsilon: float, delta: float) -> Shells:
    """The radii times the least factor, within 1e-9, at which delta is proved within the target."""

    def within(log_factor: float) -> bool:
        # Wider shells are the same as a smaller sensitivity.
        return law_delta(law, law.dimension, sensitivity * math.exp(-log_factor), epsilon, 0.0).upper <= delta

    low = high = 0.0
    step = 1e-8
    while not within(high):
        low, high, step = high, high + step, 4.0 * step
        if high > 700.0:
            raise LessnoiseError(
                f"no factor brings these shells within epsilon={epsilon:g}, delta={delta:g}: pass shells with less "
                "probability in the outermost one."
            )
    step = 1e-8
    while low == high or (low < 0.0 and within(low)):
        high, low, step = low, low - step, 4.0 * step
        if low < -700.0:
            break
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if within(middle) else (middle, high)
    margin = 1e-15
    scaled = law.scaled(math.exp(high))
    while law_delta(scaled, law.dimension, sensitivity, epsilon, 0.0).upper > delta:  # rounding of the edges
        scaled = law.scaled(math.exp(high) * (1.0 + margin))
        margin *= 8.0
    return scaled
