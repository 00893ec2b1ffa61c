"""Every cell, and weighted sums under hats: A = [I; T H] diag(e), where a row of H rises to 1 at a node and falls.

The best p-identity strategies for prefixes and ranges are smooth and overlap: rows that are straight lines between
nodes, ``step`` cells apart, lose almost nothing to them. The hats add up to 1 in every cell. T = [diag(a); B] has a row
for every hat and a few more. With Q = T^T T, R = H H^T and Z = (I + R Q)^-1, the inverse of I + H^T Q H is
I - H^T Q Z H, and all that is dense has the size of the nodes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise._common import round_up, settle
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.frozen_matrix import FrozenMatrix
from lessnoise.harmless import shown
from lessnoise.strategy.along_line import AlongLine
from lessnoise.strategy.exactness import product_error, unit
from lessnoise.strategy.squares import Line, line_times

if TYPE_CHECKING:
    from lessnoise._common import Array


class Grid:
    """H for cells in blocks of ``step``, with a node at both ends of every block; the last block may be filled up.

    >>> Grid(3, 2).up(np.array([0.0, 4.0, 8.0])).tolist()
    [1.0, 3.0, 5.0]
    """

    def __init__(self, size: int, step: int) -> None:
        self.size, self.step, self.blocks = size, step, -(-size // step)
        self.nodes = self.blocks + 1
        rise = np.round((np.arange(step) + 0.5) / step * 2.0**30) / 2.0**30
        self.halves = np.stack([1.0 - rise, rise])  # of the node before a cell, and of the one after it; both exact
        self.places = np.arange(self.blocks * step, dtype=np.float64).reshape(self.blocks, 1, step)

    def cut(self, cells: Array) -> Array:
        """(..., size) as (..., blocks, step), with 0 in the cells beyond the last."""
        full = np.zeros((*cells.shape[:-1], self.blocks * self.step))
        full[..., : self.size] = cells
        return full.reshape(*cells.shape[:-1], self.blocks, self.step)

    def down(self, cells: Array) -> Array:
        """H z."""
        return self.fold(self.cut(cells) @ self.halves.T)

    def fold(self, halves: Array) -> Array:
        """The values of both halves of every block, (..., blocks, 2), added up at the nodes."""
        found = np.zeros((*halves.shape[:-2], self.nodes))
        found[..., :-1] += halves[..., 0]
        found[..., 1:] += halves[..., 1]
        return found

    def up(self, nodes: Array) -> Array:
        """H^T t."""
        found = nodes[..., :-1, np.newaxis] * self.halves[0] + nodes[..., 1:, np.newaxis] * self.halves[1]
        return np.asarray(found.reshape(*nodes.shape[:-1], -1)[..., : self.size])

    def gram(self) -> Array:
        """R = H H^T."""
        pieces = self.cut(np.ones(self.size))[:, np.newaxis] * self.halves
        return self.fold_pairs(np.einsum("bis,bjs->bij", pieces, pieces))

    def fold_pairs(self, own: Array, pairs: Array | None = None) -> Array:
        """A matrix of nodes from one of the halves: its blocks ``own`` on the diagonal, and ``pairs`` beside them."""
        found = np.zeros((self.nodes, self.nodes))
        before = np.arange(self.blocks)
        for i in (0, 1):
            for j in (0, 1):
                np.add.at(found, (before + i, before + j), own[:, i, j])
                if pairs is not None:
                    found[i : self.blocks + i, j : self.blocks + j] += pairs[:, i, :, j]
        return found

    def squares(self, line: Line, scales: Array) -> tuple[Array, Array, Array]:
        """H S G S H^T for S = diag(scales); G S times the halves within each block; and their moments 0 and 1."""
        c = line.coefficients
        pieces = self.cut(scales)[:, np.newaxis] * self.halves
        diagonal = line.over(self.blocks * self.step).diagonal.reshape(self.blocks, 1, self.step)
        inside = line_times(pieces, self.places, c) + diagonal * pieces
        own = np.einsum("bis,bjs->bij", inside, pieces)
        moments = np.stack([pieces.sum(axis=-1), (pieces * self.places).sum(axis=-1)], axis=-1)
        flat = moments.reshape(-1, 2)
        pairs = (flat @ c @ flat.T).reshape(self.blocks, 2, self.blocks, 2)
        pairs *= np.triu(np.ones((self.blocks, self.blocks)), 1)[:, np.newaxis, :, np.newaxis]
        found = self.fold_pairs(0.5 * own, pairs)
        return found + found.T, inside, moments


@dataclass(frozen=True)
class Hats(AlongLine):
    """``size`` cells with nodes ``step`` cells apart; ``heights`` holds a in its first row and B in the others.

    Every column is divided by its sum and multiplied by ``length``, its l1 norm then.

    >>> strategy = Hats(4, 2, FrozenMatrix([[1.0, 1.0, 0.0]]))
    >>> strategy.rows, strategy.norm(1)
    (7, 1.0)
    >>> strategy.fit(strategy.measure(np.array([1.0, 2.0, 3.0, 4.0]))).round(12).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    size: int
    step: int
    heights: FrozenMatrix
    length: float = 1.0

    kind: ClassVar[str] = "hats"

    def __post_init__(self) -> None:
        size, step = validation.whole_number("size", self.size), validation.whole_number("step", self.step)
        settle(self, length=validation.positive("length", self.length))
        if not isinstance(self.heights, FrozenMatrix) or self.heights.shape[1] != -(-size // step) + 1:
            raise InvalidInput(
                f"heights={shown(self.heights)} has not {-(-size // step) + 1} columns: pass one for each node."
            )
        if (self.heights.array < 0.0).any():
            raise InvalidInput(f"heights has a negative entry {self.heights.array.min():g}: pass none below 0.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return (self.size,)

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.size + self._grid.nodes + len(self._sums)

    @functools.cached_property
    def unit(self) -> int:
        """All entries of A are multiples of 2 to this power."""
        cells, heights = unit(self._scales), unit(self.heights.array)
        assert cells is not None
        return cells if heights is None else cells + min(0, heights - 30)  # hats are multiples of 2^-30

    @functools.cached_property
    def _grid(self) -> Grid:
        return Grid(self.size, self.step)

    @property
    def _own(self) -> Array:
        return np.asarray(self.heights.array[0])

    @property
    def _sums(self) -> Array:
        return self.heights.array[1:]

    @functools.cached_property
    def _sigma(self) -> list[Fraction]:
        """The sums of the columns of [I; T H], exactly."""
        tau = [sum(map(Fraction, column), Fraction(0)) for column in self.heights.array.T.tolist()]
        before, after = ([Fraction(part) for part in half] for half in self._grid.halves.tolist())
        places = (divmod(cell, self.step) for cell in range(self.size))
        return [1 + before[at] * tau[block] + after[at] * tau[block + 1] for block, at in places]

    @functools.cached_property
    def _scales(self) -> Array:
        """E: the largest floats with which no column is longer than ``length``."""
        return np.array([-round_up(-Fraction(self.length) / each) for each in self._sigma])

    @functools.cached_property
    def _core(self) -> Array:
        """Q Z."""
        heights = self.heights.array
        square = heights[1:].T @ heights[1:] + np.diag(heights[0] ** 2)
        return np.asarray(np.linalg.solve(np.eye(len(square)) + square @ self._grid.gram(), square))

    def measure(self, table: Array) -> Array:
        """A x, as floats: the cells, the hats, the sums of hats."""
        cells = table * self._scales
        nodes = self._grid.down(cells)
        return np.concatenate([cells, nodes * self._own, nodes @ self._sums.T], axis=-1)

    def roundings(self) -> int:
        """How often a term of an entry of :meth:`measure` is rounded, at most."""
        return 2 * self.step + self._grid.nodes + 5

    @property
    def gain(self) -> float:
        """The most by which a product in :meth:`measure` is multiplied again."""
        return max(1.0, float(self.heights.array.max()))

    def error(self, table: Array) -> float:
        """How far an entry of ``measure(table)`` may be from A x."""
        with np.errstate(over="ignore"):
            sizes = self.measure(np.abs(table))
        return product_error(table, sizes, self.unit, self.roundings(), self.gain)

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as the real number that it is."""
        if index < self.size:
            return Fraction(float(self._scales[index])) * Fraction(float(table[index]))
        index -= self.size
        nodes = self._grid.nodes
        if index < nodes:
            return Fraction(float(self._own[index])) * self._under(table, index)
        heights = self._sums[index - nodes]
        found = (Fraction(float(heights[node])) * self._under(table, int(node)) for node in np.flatnonzero(heights))
        return sum(found, Fraction(0))

    def _under(self, table: Array, node: int) -> Fraction:
        """What lies under a hat, exactly."""
        first = (node - 1) * self.step
        hat = [*self._grid.halves[1].tolist(), *self._grid.halves[0].tolist()]
        cells = range(max(first, 0), min(first + 2 * self.step, self.size))
        parts = (Fraction(hat[j - first]) * Fraction(float(self._scales[j])) * Fraction(float(table[j])) for j in cells)
        return sum(parts, Fraction(0))

    def solve(self, values: Array) -> Array:
        """V (A^T A)^-1, for rows V."""
        scaled = values / self._scales
        return np.asarray((scaled - self._grid.up(self._grid.down(scaled) @ self._core)) / self._scales)

    def fit(self, measured: Array) -> Array:
        """The least-squares table A^+ y."""
        end = self.size + self._grid.nodes
        nodes = measured[..., self.size : end] * self._own + measured[..., end:] @ self._sums
        return self.solve((measured[..., : self.size] + self._grid.up(nodes)) * self._scales)

    def restricted(self, size: int) -> Hats:
        """The first cells alone."""
        heights = self.heights.array[:, : -(-size // self.step) + 1]
        kept = [0, *(np.flatnonzero(heights[1:].any(axis=1)) + 1)]
        return self if size == self.size else Hats(size, self.step, FrozenMatrix(heights[kept]), self.length)

    def columns(self) -> list[Moves]:
        """The sizes in the columns of A, rounded up."""
        found = []
        for start in range(0, self.size, self.step):
            node = start // self.step
            two = self.heights.array[:, node : node + 2]
            for at, scale in enumerate(self._scales[start : start + self.step].tolist()):
                before, after = self._grid.halves[:, at].tolist()
                hats = [scale, scale * before * two[0, 0], scale * after * two[0, 1]]
                sums = scale * (two[1:] @ np.array([before, after]))
                found.append(Moves.of(value * (1.0 + 1e-15) for value in [*hats, *sums.tolist()]))
        return found

    def power(self, order: int) -> Fraction:
        """The largest sum of the entries of a column, exactly; or of their squares, or a little more."""
        if order == 1:
            return max(Fraction(scale) * each for scale, each in zip(self._scales.tolist(), self._sigma, strict=True))
        return Fraction(max(moves.norm(2) for moves in self.columns())) ** 2

    def line_trace(self, line: Line) -> float:
        """tr(G (A^T A)^-1) for squares that are lines."""
        squares, _, _ = self._grid.squares(line, 1.0 / self._scales)
        own = float((line.over(self.size).diagonal / self._scales**2).sum())
        return own - float(np.vdot(self._core, squares))

    def __str__(self) -> str:
        return f"cells and overlapping sums of {self.size} cells"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""
        heights = self.heights.to_dict()
        return {"kind": self.kind, "size": self.size, "step": self.step, "length": self.length, "heights": heights}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Hats:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "size", "step", "length", "heights"), "strategy")
        validation.choice("strategy kind", given["kind"], [cls.kind])
        return cls(given["size"], given["step"], FrozenMatrix.from_dict(given["heights"], "heights"), given["length"])
