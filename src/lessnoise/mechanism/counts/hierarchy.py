"""H_b: noisy counts of every level of a tree, made consistent (Qardaji, Yang & Li, PVLDB 2013).

The tree splits each side into b parts, h times. Each level below the root is measured with equal noise, and the
leaves are the least-squares fit. That fit is linear and exact on noiseless counts, so the release is the counts plus
noise: H_b is one more noise law. The privacy is that of the measured tree; the leaves are a function of it.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism.builders import OURS
from lessnoise.mechanism.counts.inference import consistent_leaves, levels_of, sums_error
from lessnoise.mechanism.counts.laplace import repeated_laplace_delta
from lessnoise.mechanism.curve import gaussian
from lessnoise.mechanism.curve.dispatch import attained, law_delta, law_pure_epsilon, moved_size, no_curve, worst_of
from lessnoise.mechanism.law import Plain, register
from lessnoise.mechanism.losses import log_raw_moment, quantile
from lessnoise.mechanism.mechanism import Mechanism
from lessnoise.mechanism.numerics import sufficient_scale
from lessnoise.mechanism.request import representable
from lessnoise.mechanism.sampling import delivered, prepare_noise, values_drawn
from lessnoise.noise import check_out
from lessnoise.strategy import exact_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from lessnoise._common import Array, Shape
    from lessnoise.changes import Changes
    from lessnoise.mechanism.request import Relation
    from lessnoise.noise import Stream

    Noise = Literal["laplace", "gaussian"]
    Change = Literal["any", "moved"]

NOISES = ("laplace", "gaussian")
CHANGES = ("any", "moved")
SOURCE = "Qardaji, Yang & Li 2013"
_MOST_NODES = 2**24  # of a tree with 64 times as many nodes as cells
_ROUNDING = 4e-15  # relative: a square root, a product and a quotient


@register
@dataclass(frozen=True, slots=True)
class Hierarchy(Plain):
    """Noise of a consistent tree of counts, for an l1 sensitivity.

    ``scale`` is that of the Laplace noise of a node, or the standard deviation of the Gaussian. ``change`` says which
    changes of the counts its curve covers: "any" of at most the sensitivity in l1, or "moved", those that take away at
    most half of the sensitivity and add at most half, as a replaced record does.
    """

    shape: tuple[int, ...]
    branching: int
    noise: Noise
    scale: float
    neighbours: Neighbours
    change: Change = "any"

    kind: ClassVar[str] = "hierarchy"
    norm: ClassVar[str] = "l1"
    rounding: ClassVar[str] = (
        "The noisy counts of the tree are exactly real-valued noisy counts, rounded to a grid. So floating point is "
        "covered, and the output is computed only from these counts."
    )

    def __post_init__(self) -> None:
        shape = _grid(validation.shape(self.shape))
        settle(self, shape=shape, branching=validation.whole_number("branching", self.branching, minimum=2))
        validation.choice("noise", self.noise, NOISES)
        scale = validation.positive("scale", self.scale)
        settle(self, scale=scale, neighbours=Neighbours.of(self.neighbours))
        validation.choice("change", self.change, CHANGES)
        if self.change == "moved" and self.neighbours is not Neighbours.REPLACE:
            raise InvalidInput(
                'change="moved" is for neighbours="replace": an individual who joins or leaves takes away or adds all '
                'that it changes; pass change="any".'
            )
        if self.nodes > max(_MOST_NODES, 64 * math.prod(self.shape)):
            raise InvalidInput(
                f"branching={shown(self.branching)} gives a tree for shape={self.shape} far more nodes than cells: "
                "pass a smaller one, or leave it out."
            )

    @property
    def height(self) -> int:
        """Number of levels below the root."""
        return height_of(max(self.shape), self.branching)

    @property
    def fan_out(self) -> int:
        """Children of a node: b on a line, b^2 on a map."""
        return int(self.branching ** len(self.shape))

    @property
    def nodes(self) -> int:
        """Number of measured counts."""
        return sum(self.fan_out**level for level in range(1, self.height + 1))

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """The tree is made for one grid."""
        if shape != self.shape:
            raise InvalidInput(f"shape={shape} differs from the tree's shape={self.shape}: build the tree for it.")

    def check_neighbours(self, neighbours: Neighbours) -> None:
        """The curve is that of one relation."""
        if neighbours is not self.neighbours:
            raise InvalidInput(
                f"neighbours={neighbours.value!r} differs from the tree's {self.neighbours.value!r}: build a new tree."
            )


# Builders.


def hb(
    *,
    epsilon: float,
    shape: Shape,
    delta: float = 0.0,
    noise: Noise = "laplace",
    branching: int | None = None,
    l1_sensitivity: float | None = None,
    change: Change | None = None,
    neighbours: Relation = Neighbours.ADD_REMOVE,
) -> Mechanism:
    """H_b: noisy counts of a tree of cells, on a line or a map, which are made consistent.

    ``noise="laplace"`` is as published: each of the h levels below the root has epsilon/h, and delta is 0.
    ``noise="gaussian"`` is ours: all levels at once change by sqrt(h) in l2, so that the variance grows like h and
    not h^2, for a ``delta`` above 0. ``branching`` is the published best one unless given. ``l1_sensitivity`` is the
    largest change of the counts, by default that of one record: 1 if added or removed, 2 if replaced.

    ``change`` says what a replaced individual may do with a stated ``l1_sensitivity``: "any" change of that size (the
    default), or "moved": take away at most half of it and add at most half. Without ``l1_sensitivity`` a replaced
    record is one taken away and one added, "moved". Gaussian noise is then sqrt(2) smaller; Laplace noise is the same.

    >>> for noise, delta in (("laplace", 0.0), ("gaussian", 1e-7)):
    ...     m = hb(epsilon=0.5, delta=delta, shape=(89, 89), noise=noise)
    ...     print(m.law.branching, m.law.height, f"{m.standard_deviation:.2f}", m.check().holds)
    10 2 5.63 True
    2 7 21.15 True
    """
    validation.choice("noise", noise, NOISES)
    epsilon, sizes, relation = validation.epsilon(epsilon), _grid(validation.shape(shape)), Neighbours.of(neighbours)
    default = 1.0 if relation is Neighbours.ADD_REMOVE else 2.0
    sensitivity = default if l1_sensitivity is None else validation.sensitivity(l1_sensitivity, "l1_sensitivity")
    chosen = best_branching(sizes, noise) if branching is None else branching
    if change is None:
        change = "moved" if relation is Neighbours.REPLACE and l1_sensitivity is None else "any"
    unit = Hierarchy(sizes, chosen, noise, 1.0, relation, change)
    if noise == "laplace":
        delta = validation.delta_or_zero(delta)
        if delta:
            raise InvalidInput(f'delta={delta:g} is of no use to Laplace noise: leave it out or pass noise="gaussian".')
        with representable(epsilon=epsilon, l1_sensitivity=sensitivity):
            quotient = unit.height * sensitivity / epsilon
            scale = sufficient_scale(quotient, epsilon, unit.height * Fraction(sensitivity))
        source = SOURCE
    else:
        delta = validation.delta(delta)
        scale = (
            _mu(unit, sensitivity)
            * gaussian.gaussian_scale(epsilon, noise_engine.reserved(delta, epsilon, unit.nodes))
            * (1.0 + 4.0 * _ROUNDING)
        )
        source = OURS
    law = Hierarchy(sizes, chosen, noise, scale, relation, change)
    name = "hb" if noise == "laplace" else "hb-gaussian"
    return Mechanism(name, law, sizes, sensitivity, relation, Claim(epsilon, delta, relation, source))


def best_branching(shape: Shape, noise: Noise = "laplace") -> int:
    """The branching factor of least mean error over all ranges, by the authors' formulas.

    On a line of N cells they minimise (b-1) h^3 - (2/3)(b+1) h^2, on an n x n map b (n-1) h^2, with b^h >= N or n.
    For Gaussian noise one factor h less counts, since its variance grows like h.

    >>> [best_branching(n) for n in (256, 1024, 4096, 65536)], [best_branching((n, n)) for n in (64, 128, 256, 512)]
    ([16, 32, 16, 16], [8, 12, 7, 8])
    """
    validation.choice("noise", noise, NOISES)
    sizes = _grid(validation.shape(shape))
    side = max(sizes)
    fewer = 0 if noise == "laplace" else 1

    def error(b: int) -> float:
        h = height_of(side, b)
        if len(sizes) == 1:
            return float(h ** (2 - fewer)) * ((b - 1) * h - 2.0 / 3.0 * (b + 1))
        return b * (side - 1) * float(h ** (2 - fewer))

    # For a given height the error grows with b, so only the smallest b of each height can be best.
    candidates = {max(smallest_branching(side, h), 2) for h in range(1, max(side - 1, 1).bit_length() + 1)}
    return min(sorted(candidates), key=error)


def height_of(side: int, branching: int) -> int:
    """The least h >= 1 with branching^h >= side, in whole numbers.

    >>> height_of(125, 5), height_of(126, 5)
    (3, 4)
    """
    height, reach = 1, branching
    while reach < side:
        height, reach = height + 1, reach * branching
    return height


def smallest_branching(side: int, height: int) -> int:
    """The least b with b^height >= side."""
    b = max(int(side ** (1.0 / height)) - 1, 1)
    while b**height < side:
        b += 1
    return b


def _grid(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in (1, 2) or max(shape) < 2:
        raise InvalidInput(f"shape={tuple(shape)} is neither a line nor a map of at least 2 cells: pass n or (n, m).")
    return tuple(int(side) for side in shape)


# Privacy: the worst change is in one node of each of the h levels, or in two by half as much if counts are moved.


def _mu(law: Hierarchy, sensitivity: float) -> float:
    """The largest l2 change of all levels together, over the standard deviation of a node."""
    halves = 1.0 if law.change == "any" else 0.5  # D^2, or 2 (D/2)^2
    return math.sqrt(law.height * halves) * sensitivity / law.scale


@worst_of.register(Hierarchy)
def _(law: Hierarchy, changes: Changes, dimension: int) -> float:
    if law.change == "moved" and changes.relation is not Neighbours.REPLACE:  # half is taken away, half added
        raise no_curve(law, changes)
    return moved_size(law, changes, dimension) if law.change == "moved" else changes.norm(1, dimension)


@attained.register(Hierarchy)
def _(law: Hierarchy, changes: Changes, dimension: int) -> bool:
    return changes.concentrates(dimension)


@law_delta.register(Hierarchy)
def _(law: Hierarchy, dimension: int, sensitivity: float, epsilon: float, tolerance: float) -> Bracket:
    if law.noise == "gaussian":
        mu = _mu(law, sensitivity)
        return gaussian.delta_between(mu * (1.0 - _ROUNDING), mu * (1.0 + _ROUNDING), epsilon)
    # In one level no l1 change is worse than one concentrated in a single node, or if moved in two opposite ones, and
    # levels compose: the record that changes whole branches attains it.
    if Fraction(epsilon) * Fraction(law.scale) >= law.height * Fraction(sensitivity):
        return Bracket(0.0, 0.0)
    parts = 1 if law.change == "any" else 2
    return repeated_laplace_delta(sensitivity / parts / law.scale, parts * law.height, epsilon)


@law_pure_epsilon.register(Hierarchy)
def _(law: Hierarchy, dimension: int, sensitivity: float) -> float:
    return math.inf if law.noise == "gaussian" else law.height * sensitivity / law.scale * (1.0 + 1e-15)


# Noise and its size.


@prepare_noise.register(Hierarchy)
def _(
    law: Hierarchy, value: Array, stream: Stream, *, out: Array | None = None, threads: int | None = None
) -> Callable[[], Array]:
    """Noise in every node of the tree, on the grid; then the fit, which only processes what was measured."""
    check_out(out, value.shape, np.dtype(np.float64))
    leaves = _leaves(law, np.asarray(value, dtype=np.float64))
    levels = levels_of(leaves, law.branching, law.height)
    density = noise_engine.laplace() if law.noise == "laplace" else noise_engine.normal()
    form = noise_engine.Independent(density, noise_engine.Real.exactly(law.scale))
    error = sums_error(value, law.fan_out * law.height)
    behind = noise_engine.Behind(error, functools.partial(_node, law, leaves)) if error else None
    flat = np.concatenate([level.ravel() for level in levels])
    measure = noise_engine.prepare_noise(form, flat, stream, threads=threads, behind=behind)

    def draw() -> Array:
        flat, start, noisy = measure(), 0, []
        for level in levels:
            noisy.append(flat[start : start + level.size].reshape(level.shape))
            start += level.size
        leaves = consistent_leaves(noisy, [np.ones(level.shape) for level in noisy], law.branching)
        return delivered(np.ascontiguousarray(leaves[tuple(slice(side) for side in law.shape)]), out)

    return draw


def _leaves(law: Hierarchy, value: Array) -> Array:
    """The value; cells beyond the data are 0."""
    leaves = np.zeros((law.branching**law.height,) * len(law.shape))
    leaves[tuple(slice(length) for length in law.shape)] = value
    return leaves


def _node(law: Hierarchy, leaves: Array, index: int) -> Fraction:
    """The count of a node, as a real number; nodes are numbered from the coarsest level on."""
    level = 1
    while index >= law.fan_out**level:
        index -= law.fan_out**level
        level += 1
    sides, span = (law.branching**level,) * len(law.shape), law.branching ** (law.height - level)
    places = np.unravel_index(index, sides)
    return exact_sum(leaves[tuple(slice(int(place) * span, (int(place) + 1) * span) for place in places)])


@values_drawn.register(Hierarchy)
def _(law: Hierarchy, dimension: int) -> int:
    return law.nodes


def leaf_variance(law: Hierarchy) -> float:
    """Variance of one released count: the mean of the eigenvalues of (A^T A)^-1, A being the tree's query matrix.

    What tells the siblings of level l apart is seen by the levels l .. h, whose nodes hold k^(h-m) leaves each.

    >>> round(leaf_variance(Hierarchy((4,), 2, "gaussian", 1.0, Neighbours.ADD_REMOVE)), 12)  # (1 + 1/3)/2
    0.666666666667
    """
    k, h = law.fan_out, law.height
    total = Fraction(0)
    for level in range(1, h + 1):
        dimensions = k if level == 1 else k**level - k ** (level - 1)
        total += Fraction(dimensions, sum(k ** (h - m) for m in range(level, h + 1)))
    node = (2.0 if law.noise == "laplace" else 1.0) * law.scale * law.scale
    return float(total / k**h) * node


@log_raw_moment.register(Hierarchy)
def _(law: Hierarchy, dimension: int, order: int) -> float:
    if order != 1:
        raise InvalidInput(
            f"order={order}: of the loss of a tree of counts only the mean is computed; draw releases for the rest."
        )
    return math.log(dimension) + math.log(leaf_variance(replace(law, scale=1.0))) + 2.0 * math.log(law.scale)


@quantile.register(Hierarchy)
def _(law: Hierarchy, dimension: int, probability: float) -> float:
    raise InvalidInput(
        f"q={probability:g}: quantiles of the loss of a tree of counts are not computed; draw releases instead."
    )
