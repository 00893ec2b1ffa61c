r"""Tests that are caps, and their averages over spheres.

A test for shifts v of length d is, times its multiplier,

    lambda_d phi_d(n) = sum over nodes p and levels l of c_pl hat_p(|n|^2) 1{cos(n, v) > x_l},

with hats piecewise linear in |n|^2 on a grid of nodes and levels 0 <= x_l < 1. Two averages of it count:

* Phi1(r), over the sphere |n| = r: piecewise linear in r^2, the nodal values being sum_l c_pl s_l with
  s_l = P(cos > x_l).
* Phi2(r), over the sphere |n + v| = r. It is 0 for r <= d, since |n + v| > d wherever cos(n, v) > 0. For
  r > d let t be the cosine of n + v and v. Then |n|^2 = r^2 + d^2 - 2 r d t, and cos(n, v) > x says |n| < a_x,
  a_x = g - d x, g^2 = r^2 - d^2 (1 - x^2). So both conditions are caps in t, and on each cell between two
  nodes Phi2 needs only the mass and the first moment of caps: incomplete beta functions and a power.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array

    Indices = NDArray[np.int64]
    from lessnoise.mechanism.least.bound.guide import Guide


class Test(NamedTuple):
    """One shift length, with the nodes (the first ``used``) at which its test may differ from zero."""

    shift: float
    used: int


class NodeGrid(NamedTuple):
    """Nodes in |n|, levels of the cosine, the shifts used, and which (test, node, level) may differ from zero."""

    nodes: Array
    levels: Array
    tests: tuple[Test, ...]
    mask: NDArray[np.bool_]


class Cells(NamedTuple):
    """Where the sphere |n + v| = r meets the cells between nodes; axes are radius, cell, level."""

    left: Indices  # node at the inner end of each cell, (radius, cell)
    right: Indices
    mass: Array  # fraction of the sphere in the cell and inside the level's cap
    up: Array  # the part of it that linear interpolation in |n|^2 gives to the right node
    within: Array  # fraction of the sphere inside the level's cap and the right node
    blur: Array  # error of ``up`` in units of the relative error of the special functions
    limit: Array  # fraction of the sphere inside the level's cap, (radius, level)


class Averages:
    """Averages over spheres of cap tests on given nodes and levels."""

    def __init__(self, dimension: int, nodes: Array, levels: Array) -> None:
        self.sphere = Sphere(dimension)
        self.dimension, self.nodes, self.levels = dimension, nodes, levels
        self.fraction = self.sphere.cap(levels)
        self.sine_squared = (1.0 - levels) * (1.0 + levels)

    def hats(self, r: Array) -> tuple[Indices, Array, NDArray[np.bool_]]:
        """For each radius: its cell, the share of the cell's right node, and whether it is on the grid at all."""
        nodes = self.nodes
        i = np.clip(np.searchsorted(nodes, r, side="right") - 1, 0, len(nodes) - 2)
        share = (r - nodes[i]) * (r + nodes[i]) / ((nodes[i + 1] - nodes[i]) * (nodes[i + 1] + nodes[i]))
        return i, share, r <= nodes[-1]

    def cells(self, r: Array, shift: float) -> Cells:
        """The cells that the spheres |n + v| = r reach, r > shift."""
        nodes, levels = self.nodes, self.levels
        last = len(nodes) - 1
        first = np.maximum(np.searchsorted(nodes, r - shift, side="right") - 1, 0)
        # With cos(n, v) >= 0, |n|^2 <= r^2 - shift^2.
        top = np.sqrt(np.maximum((r - shift) * (r + shift), 0.0)) * (1.0 + 1e-12)
        end = np.minimum(np.searchsorted(nodes, top, side="left"), last)
        width = int(np.max(end - first, initial=0)) + 1
        index = np.minimum(first[:, None] + np.arange(width)[None, :], last)
        column = r[:, None]
        a = nodes[index]
        y = (a - column) * (a + column)  # |n|^2 - r^2 = d^2 - 2 r d t
        # 1 - t directly: in low dimension the mass of a small cap is the root of it.
        gap = np.clip((a - (column - shift)) * (a + (column - shift)) / (2.0 * column * shift), 0.0, 2.0)
        mass, moment = self._caps(column, shift, 1.0 - gap, gap * (2.0 - gap))
        g = np.sqrt(column**2 - shift**2 * self.sine_squared[None, :])
        inner = (column - shift) * (column + shift) / (g + shift * levels[None, :])  # g - d x
        t_level = (inner * levels[None, :] + shift) / column
        limit, moment_limit = self._caps(column, shift, t_level, (inner / column) ** 2 * self.sine_squared[None, :])
        below = mass[:, :, None] <= limit[:, None, :]
        cumulative = np.where(below, mass[:, :, None], limit[:, None, :])
        cumulative_y = np.where(below, moment[:, :, None], moment_limit[:, None, :])
        m0, m1 = np.diff(cumulative, axis=1), np.diff(cumulative_y, axis=1)
        spread = np.diff(y, axis=1)
        real = spread > 0.0
        spread = np.where(real, spread, 1.0)[:, :, None]
        m0 = np.where(real[:, :, None], m0, 0.0)
        up = np.clip((m1 - y[:, :-1, None] * m0) / spread, 0.0, m0)
        within = np.where(real[:, :, None], cumulative[:, 1:], 0.0)
        # Each of the four terms of m1 - y m0 is at most this times ``within``.
        terms = 2.0 * (shift * shift + 2.0 * column * shift + np.abs(y[:, :-1]))
        return Cells(index[:, :-1], index[:, 1:], m0, up, within, terms[:, :, None] / spread * within, limit)

    def _caps(self, r: Array, shift: float, t: Array, sine_squared: Array) -> tuple[Array, Array]:
        """P(cosine > t) and E[|n|^2 - r^2; cosine > t]."""
        mass = self.sphere.cap(t, sine_squared)
        with np.errstate(divide="ignore"):
            log_sine = np.where(np.abs(t) < 0.7, np.log1p(-np.minimum(t * t, 0.5)), np.log(sine_squared))
        m = self.dimension
        first = np.exp(self.sphere.log_constant + 0.5 * (m - 1) * log_sine) / (m - 1)
        return mass, shift * shift * mass - 2.0 * r * shift * first

    def below(self, r: Array, shift: float, radius: Array, limit: Array) -> Array:
        """P(|n| < radius) on the spheres |n + v| = r, inside each level's cap; axes are r, radius, level."""
        gap = np.clip((radius - (r - shift)) * (radius + (r - shift)) / (2.0 * r * shift), 0.0, 2.0)
        return np.minimum(self.sphere.cap(1.0 - gap, gap * (2.0 - gap))[:, :, None], limit[:, None, :])


_WIDEST = 0.45  # largest cap fraction used


def staircase_grid(guide: Guide, *, per_step: int, levels: int) -> NodeGrid:
    """Nodes aligned with the steps of a staircase, and shorter shifts from its innermost ball."""
    dimension, _, target, objective = guide.problem
    sphere, radii = Sphere(dimension), guide.radii
    cut = guide.outer(3.0 - math.log(target))
    edges = np.append(0.0, radii[: cut + 1])
    even = np.linspace(0.0, 1.0, per_step + 1)[1:]
    relative = np.unique(np.append(even, [0.03, 0.08]))  # the test changes fast just outside each edge
    nodes = [np.array([0.0])]
    for low, high in pairwise(edges):
        nodes.append(low + (high - low) * (relative if low > 0.0 else even))
    nodes.append(edges[-1] + np.linspace(0.0, 1.0, max(per_step // 2, 2) + 1)[1:])
    while float(objective.value(nodes[-1][-1:])[0]) < 1.05 * guide.level and len(nodes) < len(edges) + 60:
        nodes.append(nodes[-1][-1:] * 1.1)
    grid = np.concatenate(nodes)
    sigma = guide.sigma[: max(cut, 1)]
    least = math.exp(float(sigma.min())) / 3.0
    fractions = _fractions(sphere, least, _WIDEST, levels)
    tests = [Test(1.0, len(grid))]
    near = np.exp(np.interp(grid, radii[: len(sigma)], sigma))
    masks = [fractions[None, :] > near[:, None] / 3.0]
    mass = np.exp(guide.log_density - guide.log_density.max())
    ball = float(radii[int(np.argmax(np.cumsum(mass) > 2e-3 * mass.sum()))])  # the innermost ball that matters
    if ball < 1.0:
        count = min(math.ceil(1.0 / (0.8 * ball)), 24)
        core = int(np.searchsorted(grid, ball * (1 + 1e-12), side="right"))
        tests += [Test(1.0 - i / count, core) for i in range(1, count)]
        masks += [np.broadcast_to(fractions > 0.04, (core, len(fractions)))] * (count - 1)
    return NodeGrid(grid, sphere.rim(fractions).cosine, tuple(tests), np.concatenate([mask.ravel() for mask in masks]))


def smooth_grid(guide: Guide, *, count: int, levels: int, wide: bool = False) -> NodeGrid:
    """Nodes spread over the range of a mechanism with many steps, not tied to them."""
    dimension, _, target, objective = guide.problem
    sphere, log_target = Sphere(dimension), math.log(target)
    top = guide.peak
    inner = np.nonzero(guide.log_density[: top + 1] > guide.log_density[top] + log_target - 2.0)[0]
    low = float(guide.radii[inner[0]])
    high = float(guide.radii[guide.outer(3.0 - log_target)])
    bulk = np.linspace(low, high, count)
    spacing = bulk[1] - bulk[0]
    back = np.cumsum(spacing * np.minimum(1.25 ** np.arange(1, 300), 200.0))
    core = np.append(0.0, (low - back[low - back > 0.7 * spacing])[::-1])
    # Outwards until f alone exceeds nu, so that the test may end there.
    ahead = high + np.cumsum(spacing * 1.3 ** np.arange(1, 80))
    enough = (ahead > high + max(1.5, 0.8 * (high - low))) & (objective.value(ahead) > 1.05 * guide.level)
    tail = ahead[: int(np.argmax(enough)) + 1]
    grid = np.concatenate([core, bulk, tail])
    trusted = min(max(guide.outer(1.0 - log_target), 2), len(guide.sigma))
    small, large = guide.wanted(grid, low, trusted)
    least, most = float(small.min()) / 2.0, min(float(large.max()) * 4.0, _WIDEST)
    fractions = _fractions(sphere, least, most, levels)
    mask = wide | (fractions[None, :] > small[:, None] / 4.0) & (fractions[None, :] < large[:, None] * 12.0)
    return NodeGrid(grid, sphere.rim(fractions).cosine, (Test(1.0, len(grid)),), mask.ravel())


def _fractions(sphere: Sphere, least: float, most: float, levels: int) -> Array:
    """Cap fractions in equal ratios, none so small that its cosine is hard to tell from 1."""
    floor = max(float(sphere.cap(np.array([1.0 - 1e-13]))[0]), 1e-100)
    most = min(max(most, 2.0 * floor, 1e-90), _WIDEST)
    return np.geomspace(min(max(least, floor), 0.5 * most), most, levels)
