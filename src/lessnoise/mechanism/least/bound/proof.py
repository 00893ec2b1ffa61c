r"""The proof: a lower bound of G over every radius, computed from the coefficients of the tests alone.

    G(r) = f(r) + sum_d [Phi1_d(r) - e^eps Phi2_d(r)]      (multipliers are inside the coefficients)

Beyond the last node plus 1, G = f, which increases. Below, the axis is cut into intervals [r1, r2], each inside
one cell of Phi1. On an interval G is at least the smaller of its end values, less the sag of f, of Phi1, and the
rise of e^eps Phi2 above its chord. For the latter take x = cos(n, v) as coordinate on the sphere |n + v| = r:

    Phi2(r) = int sum over levels x_l < x of c_l(a_x(r)^2) k_x(r) dF(x),     k_x = (a_x/r)^(M-1) r/g,

F, the law of one coordinate of a unit vector, does not depend on r. With w = r2 - r1 and s = r/g at r1, on a
line of constant x: a_x moves by at most s w; k(r) <= ratio k(r2), since a/r increases and r/g decreases; and

    -k''/k <= 2 (M-1) s^2/a^2,    |k'/k| <= (M-1) [h/(g a r) + d/(a r)] + h/(r g^2),    h = d^2 (1-x^2),
    |z''| <= 2 s^2 + 2 h/g^2,     z = a^2.

A product of two functions rises above its chord by at most: the first times the rise of the second, the second's
chord times the rise of the first, and a quarter of the product of both changes. The coefficients are piecewise
linear in z, so they rise by their slope times the bend of z, and, where z passes a node, by a quarter of the fall
of slope there times the change of z. Lines that come close to the centre (a < 8 s w at r2) are counted in full.
Intervals are halved until the loss is small; out of time, the bound is merely less sharp.

Assumed of floating point: incomplete beta functions and powers are within ``SPECIAL`` relatively, and this error
is carried through every difference taken.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lessnoise.mechanism.least.bound.averages import Averages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array
    from lessnoise.mechanism.least.bound.averages import Cells
    from lessnoise.mechanism.least.objective import Problem


SPECIAL = 1e-11
_ROUNDING = 1e-13
_CHUNK = 400_000  # entries of the largest temporary arrays
_MOST_NODES, _MOST_LEVELS, _MOST_TESTS = 2000, 32, 32  # of tests that come from elsewhere


class Table(NamedTuple):
    """One chosen test: its shift and its nodal values c_pl, the last node's being zero."""

    shift: float
    values: Array


class _Sloped(NamedTuple):
    """A table with its slopes in |n|^2 on the cells, and the fall of slope at each node."""

    shift: float
    values: Array
    slope: Array
    fall: Array


class Minimum(NamedTuple):
    """The proved minimum of G, the smallest value seen, and where G is low."""

    proved: float
    seen: float
    dips: Array


class Proof:
    """G for given tests, in units in which the objective is about 1."""

    def __init__(self, problem: Problem, scale: float, nodes: Array, levels: Array, tables: Sequence[Table]) -> None:
        if any(table.values.min() < 0.0 or table.values[-1].any() for table in tables) or levels.min() < 0.0:
            raise ValueError("a test needs nonnegative nodal values that end in zero, and levels >= 0.")
        if any(not 0.0 < table.shift <= 1.0 for table in tables):
            raise ValueError("a shift must be positive and at most 1, the sensitivity.")
        self.dimension, epsilon, self.target, self.objective = problem
        self.scale, self.grow = scale, math.exp(epsilon) * (1.0 + 1e-15)
        # One more node, with zeros: for r up to the last node plus 1 every line then lies on the grid.
        self.last = float(nodes[-1]) + 1.0
        nodes = np.append(nodes, self.last * (1.0 + 1e-9))
        self.averages = Averages(self.dimension, nodes, levels)
        self.nodes, z = nodes, nodes * nodes
        self.own = np.zeros(len(nodes))
        self.tables: list[_Sloped] = []
        for table in tables:
            values = np.vstack([table.values, np.zeros_like(table.values[:1])])
            slope = np.diff(values, axis=0) / np.diff(z)[:, None]
            padded = np.vstack([slope[:1], slope, np.zeros_like(slope[:1])])
            fall = np.maximum(padded[:-1] - padded[1:], 0.0)
            self.tables.append(_Sloped(table.shift, values, slope, fall))
            self.own += values @ self.averages.fraction

    def multipliers(self) -> list[float]:
        """lambda of each test: the largest nodal sum."""
        return [float(table.values.sum(axis=1).max()) * (1.0 + 1e-12) for table in self.tables]

    def bound(self, minimum: Minimum) -> float:
        """What this proves for E f, in units of the scale."""
        return minimum.proved - math.fsum(self.multipliers()) * self.target * (1.0 + 1e-12)

    def loss(self, bound: float) -> float:
        """A bound without the units, rounded down."""
        return max(bound * (1.0 - 1e-15), 0.0) * self.scale

    def to_dict(self) -> dict[str, Any]:
        """The tests as plain values, ready for JSON: all that the proof needs to be gone through again."""
        tests = [{"shift": table.shift, "values": table.values[:-1].tolist()} for table in self.tables]
        nodes, levels = self.nodes[:-1].tolist(), self.averages.levels.tolist()
        return {"scale": self.scale, "nodes": nodes, "levels": levels, "tests": tests}

    @classmethod
    def from_dict(cls, values: dict[str, Any], problem: Problem) -> Proof:
        """Tests from anywhere: whatever they are, what they prove is true. Raises ValueError if they are none."""
        scale = float(values["scale"])
        nodes, levels = (np.array(values[name], dtype=np.float64) for name in ("nodes", "levels"))
        tables = [Table(float(one["shift"]), np.array(one["values"], dtype=np.float64)) for one in values["tests"]]
        usable = (
            nodes.ndim == levels.ndim == 1
            and 2 <= len(nodes) <= _MOST_NODES
            and 1 <= len(levels) <= _MOST_LEVELS
            and 1 <= len(tables) <= _MOST_TESTS
            and 0.0 < scale < math.inf
            and nodes[0] == 0.0
            and nodes[-1] < math.inf
            and bool(np.all(np.diff(nodes) > 1e-12 * nodes[1:]))
            and bool(np.all((levels >= 0.0) & (levels <= 1.0 - 5e-14)))
            and all(table.values.shape == (len(nodes), len(levels)) for table in tables)
            and all(bool(np.all(np.isfinite(table.values))) for table in tables)
        )
        if not usable:
            raise ValueError("these are no tests: nodes from 0 upwards, levels below 1, and finite nodal values.")
        return cls(problem, scale, nodes, levels, tables)

    def f(self, r: Array) -> Array:
        """The objective, rounded down."""
        return self.objective.value(r) / self.scale * (1.0 - _ROUNDING)

    def minimum(self, tolerance: float, *, budget: int = 40_000, seconds: float = math.inf) -> Minimum:
        """A proved lower bound of G over all r >= 0."""
        deadline = time.thread_time() + seconds
        marks = [self.nodes[:-1], [self.last], [table.shift for table in self.tables], self.objective.kinks()]
        cuts = np.unique(np.concatenate([np.asarray(mark, dtype=float) for mark in marks]))
        cuts = cuts[(cuts >= 0.0) & (cuts <= self.last)]
        left = (cuts[:-1, None] + np.diff(cuts)[:, None] * np.arange(8) / 8.0).ravel()
        right = np.append(left[1:], self.last)
        low, at_left, at_right = self.interval(left, right)
        total = len(left)
        while True:
            seen = float(min(at_left.min(), at_right.min()))
            worst = low < seen - tolerance
            if not worst.any() or total + 2 * int(worst.sum()) > budget or time.thread_time() > deadline:
                break
            a, c = left[worst], right[worst]
            middle = 0.5 * (a + c)
            parts = self.interval(np.concatenate([a, middle]), np.concatenate([middle, c]))
            keep = ~worst
            left, right = np.concatenate([left[keep], a, middle]), np.concatenate([right[keep], middle, c])
            low, at_left, at_right = (
                np.concatenate([old[keep], new]) for old, new in zip((low, at_left, at_right), parts, strict=True)
            )
            total += 2 * len(a)
        beyond = float(self.f(np.array([self.last]))[0])
        order = np.argsort(left)
        ends, height = left[order], at_left[order]
        valley = np.nonzero((height[1:-1] <= height[:-2]) & (height[1:-1] <= height[2:]))[0] + 1
        dips = ends[valley[np.argsort(height[valley])[:100]]]
        return Minimum(min(float(low.min()), beyond), min(seen, beyond), dips)

    def interval(self, left: Array, right: Array) -> tuple[Array, Array, Array]:
        """A lower bound of G over each interval (inside one cell), and lower bounds of G at its two ends."""
        z = self.nodes * self.nodes
        # f + Phi1: Phi1 is linear in r^2 on the cell, and its nodal values are sums of fractions.
        here = np.searchsorted(self.nodes, 0.5 * (left + right), side="right") - 1
        slope = np.diff(self.own)[here] / np.diff(z)[here]

        def level(r: Array) -> Array:
            share = np.clip((r * r - z[here]) / np.diff(z)[here], 0.0, 1.0)
            return self.f(r) + (1.0 - SPECIAL) * ((1.0 - share) * self.own[here] + share * self.own[here + 1])

        at_left, at_right = level(left), level(right)
        sag = self.objective.sag(left, right) / self.scale + np.maximum(slope, 0.0) * (right - left) ** 2 / 4.0
        for table in self.tables:
            active = np.nonzero(right > table.shift)[0]
            # Radii with similarly many cells are handled together.
            reach = np.searchsorted(self.nodes, right[active]) - np.searchsorted(
                self.nodes, right[active] - table.shift
            )
            active, begin = active[np.argsort(reach, kind="stable")], 0
            reach = np.sort(reach, kind="stable")
            while begin < len(active):
                size = max(int(_CHUNK / (len(self.averages.levels) * (reach[begin] + 4))), 16)
                size = max(
                    int(_CHUNK / (len(self.averages.levels) * (reach[min(begin + size, len(reach)) - 1] + 4))), 16
                )
                part = active[begin : begin + size]
                one, two, bend = self._phi2(left[part], right[part], table)
                at_left[part] -= self.grow * one
                at_right[part] -= self.grow * two
                sag[part] += self.grow * bend * (1.0 + SPECIAL)
                begin += size
        return np.minimum(at_left, at_right) - sag * (1.0 + _ROUNDING), at_left, at_right

    def mean(self, r: Array, table: _Sloped) -> Array:
        """Phi2 at the given radii, rounded up; 0 up to the shift."""
        out = np.zeros_like(r)
        active = r > table.shift
        if active.any():
            out[active] = _upper_mean(self.averages.cells(r[active], table.shift), table)
        return out

    def _phi2(self, r1: Array, r2: Array, table: _Sloped) -> tuple[Array, Array, Array]:
        """Phi2 at both ends, rounded up, and a bound on its rise above its chord in between."""
        d, m = table.shift, self.dimension
        x, nodes = self.averages.levels[None, :], self.nodes
        column, base = r2[:, None], np.maximum(r1, d)[:, None]
        width = column - r1[:, None]
        rest = d * d * self.averages.sine_squared[None, :]
        g1 = np.sqrt(np.maximum(base**2 - rest, 1e-300))
        g2 = np.sqrt(np.maximum(column**2 - rest, 1e-300))
        steep = base / g1
        ratio = np.maximum(steep * g2 / column, 1.0)
        reach = steep * width
        change = 2.0 * np.maximum(g2 - d * x, 0.0) * reach  # of z, at most
        widest = reach.max(axis=1, keepdims=True)

        first = self.mean(r1, table)
        cells = self.averages.cells(r2, d)
        second = _upper_mean(cells, table)

        # A line whose a lies in cell ``lo`` at r2 may come from one cell below.
        lo, hi = cells.left, cells.right
        real = hi > lo
        before = np.maximum(lo - 1, 0)
        size = np.maximum(np.maximum(table.values[lo], table.values[hi]), table.values[before])
        cell = np.minimum(lo, len(nodes) - 2)
        tilt = np.maximum(np.abs(table.slope[cell]), np.abs(table.slope[np.maximum(cell - 1, 0)]))
        a = np.maximum(np.maximum(nodes[lo] - widest, base - d), 7.0 * widest)[:, :, None]
        r, w, s, h = base[:, :, None], width[:, :, None], steep[:, None, :], rest[:, None, :]
        g, move = g1[:, None, :], change[:, None, :]
        rate = (m - 1) * (h / (g * a * r) + d / (a * r)) + h / (r * g * g)
        dip = 0.25 * (m - 1) * (s * w / a) ** 2  # w^2/8 times the concavity of k
        bend = size * dip + tilt * (0.25 * move * rate * w + (s * s + h / (g * g)) * w * w / 4.0)
        passed = self.averages.below(column, d, (nodes[lo] + widest) * (1.0 + 1e-12), cells.limit)
        passed -= self.averages.below(column, d, nodes[lo], cells.limit)
        kink = np.where(real[:, :, None], passed, 0.0) * table.fall[lo] * move / 4.0
        total = (ratio[:, None, :] * (cells.mass * bend + kink)).sum(axis=(1, 2))
        if np.any(r1 - d < 8.0 * widest[:, 0]):
            close = (nodes[lo] < 8.0 * widest) & real
            peak = np.where(close[:, :, None], size, 0.0).max(axis=1)
            total += (ratio * self.averages.below(column, d, 8.001 * widest, cells.limit)[:, 0, :] * peak).sum(axis=1)
        # Masses are differences: their errors, relative to the whole cap, times the largest bend.
        worst = np.where(real[:, :, None], bend + table.fall[lo] * move / 4.0, 0.0).max(axis=1)
        total += 4.0 * SPECIAL * (ratio * cells.limit * worst).sum(axis=1)
        # The argument needs a to pass at most one node.
        gap = np.where(real & (lo > 0), nodes[lo] - nodes[before], np.inf).min(axis=1)
        return first, second, np.where(gap < widest[:, 0], np.inf, total)


def _upper_mean(cells: Cells, table: _Sloped) -> Array:
    """sum of mass c_left + up (c_right - c_left), plus what the special functions' errors can make of it.

    Summed by parts the first term is a sum of cumulative masses times changes of c.
    """
    low, high = table.values[cells.left], table.values[cells.right]
    change = np.abs(high - low)
    value = ((cells.mass - cells.up) * low + cells.up * high).sum(axis=(1, 2))
    error = (change * (cells.within + cells.blur)).sum(axis=(1, 2))
    error += (cells.limit * high[:, -1, :]).sum(axis=1)
    return np.asarray(value * (1.0 + SPECIAL) + SPECIAL * error)


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A proved lower bound on E f(|n|) over every additive (epsilon, delta) mechanism of sensitivity 1."""

    value: float
    method: str  # which argument proved it
    estimate: float  # optimum of the linear program behind it: says what a finer proof could reach, proves nothing
    multipliers: tuple[float, ...] = ()  # lambda of each shift length used
    shifts: tuple[float, ...] = ()
    seconds: float = 0.0
    proof: Proof | None = None  # what can be gone through again; None where that takes as long as the search
    count: int = 1  # length of the shifts for which the proof is, in sensitivities
