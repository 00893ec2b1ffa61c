"""Where the nodes and levels of the tests lie: good places make a sharp bound, any place a valid one."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lessnoise.mechanism.least.bound.averages import Grid, Test
from lessnoise.mechanism.least.sphere import Sphere

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise.mechanism.least.bound.guide import Guide
    from lessnoise.mechanism.least.objective import Objective

    Array = NDArray[np.float64]

_WIDEST = 0.45  # largest cap fraction used


def staircase_grid(guide: Guide, objective: Objective, *, per_step: int, levels: int) -> Grid:
    """Nodes aligned with the steps of a staircase, and shorter shifts from its innermost ball."""
    radii = guide.radii
    sphere = Sphere(guide.dimension)
    cut = guide.outer(3.0 - math.log(guide.target))
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
    return Grid(grid, sphere.rim(fractions).cosine, tuple(tests), np.concatenate([mask.ravel() for mask in masks]))


def smooth_grid(guide: Guide, objective: Objective, *, count: int, levels: int, wide: bool = False) -> Grid:
    """Nodes spread over the range of a mechanism with many steps, not tied to them."""
    sphere = Sphere(guide.dimension)
    log_target = math.log(guide.target)
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
    small, large = guide.wanted(grid, objective, low, trusted)
    least, most = float(small.min()) / 2.0, min(float(large.max()) * 4.0, _WIDEST)
    fractions = _fractions(sphere, least, most, levels)
    mask = wide | (fractions[None, :] > small[:, None] / 4.0) & (fractions[None, :] < large[:, None] * 12.0)
    return Grid(grid, sphere.rim(fractions).cosine, (Test(1.0, len(grid)),), mask.ravel())


def _fractions(sphere: Sphere, least: float, most: float, levels: int) -> Array:
    """Cap fractions in equal ratios, none so small that its cosine is hard to tell from 1."""
    floor = max(float(sphere.cap(np.array([1.0 - 1e-13]))[0]), 1e-100)
    most = min(max(most, 2.0 * floor, 1e-90), _WIDEST)
    return np.geomspace(min(max(least, floor), 0.5 * most), most, levels)
