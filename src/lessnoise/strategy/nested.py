"""Blocks of cells measured by one strategy, and the cells of each block by another: A = [A_c x 1^T; I x A_f].

With X_f = A_f^T A_f, u = X_f^-1 1 and s = 1^T u, a block alone estimates its cells by x_f and their total by
tau = 1^T x_f with variance s. All totals together have the precision X_c + diag(1/s), and the least-squares table is
x_f + u (t - tau)/s for their best estimate t. So X^-1 = I x (X_f^-1 - u u^T/s) + (X_c + I/s)^-1 x u u^T/s^2.
The last block may have fewer cells. The strategy of a block may be nested again; a tree is such a strategy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lessnoise import validation
from lessnoise.changes import Moves
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.strategy.along_line import AlongLine
from lessnoise.strategy.base import read_strategy
from lessnoise.strategy.exactness import exact_sum, product_error, unit
from lessnoise.strategy.hats import Hats
from lessnoise.strategy.p_identity import PIdentity
from lessnoise.strategy.squares import Line, Lines

if TYPE_CHECKING:
    from lessnoise._common import Array
    from lessnoise.strategy.woodbury import Woodbury

BASIS = [np.array(c) for c in ([[1.0, 0], [0, 0]], [[0.0, 1], [0, 0]], [[0.0, 0], [1, 0]], [[0.0, 0], [0, 1]])]


@dataclass(frozen=True)
class Nested(AlongLine):
    """``coarse`` measures the sums of blocks, ``fine`` the cells of every block; ``size`` cells in all.

    >>> halves = PIdentity.of([1.0, 1.0])
    >>> tree = Nested(halves, halves, 3)  # two blocks, the last of one cell
    >>> tree.measure(np.array([1.0, 2.0, 3.0])).tolist(), tree.norm(1)
    ([3.0, 3.0, 1.0, 2.0, 3.0], 2.0)
    """

    coarse: PIdentity
    fine: PIdentity | Hats | Nested
    size: int

    kind: ClassVar[str] = "nested"

    def __post_init__(self) -> None:
        if not isinstance(self.coarse, PIdentity) or not isinstance(self.fine, (PIdentity, Hats, Nested)):
            raise InvalidInput(
                f"coarse={shown(type(self.coarse).__name__)} and fine={shown(type(self.fine).__name__)} cannot be "
                "nested: pass a PIdentity, and a PIdentity, Hats or Nested."
            )
        validation.whole_number("size", self.size)
        blocks, cells = self.coarse.size, self.fine.size
        if not ((blocks - 1) * cells < self.size <= blocks * cells):
            raise InvalidInput(
                f"size={self.size} cells are not {blocks} blocks of {cells} cells, the last one of 1 to {cells}: pass "
                "strategies that fit."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return (self.size,)

    @property
    def rows(self) -> int:
        """How many numbers are measured."""
        return self.coarse.rows + self._full * self.fine.rows + (0 if self._last is None else self._last.rows)

    @functools.cached_property
    def unit(self) -> int:
        """All entries of A are multiples of 2 to this power."""
        return min(self.coarse.unit, self.fine.unit)

    @property
    def whole(self) -> bool:
        """All entries of A are whole numbers."""
        return self.unit >= 0

    @functools.cached_property
    def _full(self) -> int:
        """How many blocks have all their cells."""
        return self.size // self.fine.size

    @functools.cached_property
    def _last(self) -> PIdentity | Hats | Nested | None:
        """The strategy of the last block, if it has fewer cells."""
        left = self.size % self.fine.size
        return self.fine.restricted(left) if left else None

    @functools.cached_property
    def _totals(self) -> Array:
        """U = X_f^-1 1 of every block, one after the other."""
        parts = [np.tile(self.fine.solve(np.ones(self.fine.size)), self._full)]
        if self._last is not None:
            parts.append(self._last.solve(np.ones(self._last.size)))
        return np.concatenate(parts)

    @functools.cached_property
    def spreads(self) -> Array:
        """The variance s of every block's own total."""
        return self._block_sums(self._totals)

    @functools.cached_property
    def _inverse(self) -> Woodbury:
        """Of X_c + diag(1/s)."""
        return self.coarse.given(1.0 / self.spreads)

    def _split(self, values: Array, width: int) -> tuple[Array, Array]:
        """The full blocks of so many entries as (..., blocks, width), and what is left."""
        end = self._full * width
        return values[..., :end].reshape(*values.shape[:-1], self._full, width), values[..., end:]

    def _block_sums(self, table: Array) -> Array:
        blocks, left = self._split(table, self.fine.size)
        sums = blocks.sum(axis=-1)
        return sums if self._last is None else np.concatenate([sums, left.sum(axis=-1, keepdims=True)], axis=-1)

    def _repeated(self, values: Array) -> Array:
        """One value of a block in each of its cells."""
        return np.repeat(values, self.fine.size, axis=-1)[..., : self.size]

    def _by_block(self, name: str, values: Array, width: int) -> Array:
        """A method of the strategies of the blocks on their values, one after the other."""
        blocks, left = self._split(values, width)
        full = np.asarray(getattr(self.fine, name)(blocks))
        parts = [full.reshape(*values.shape[:-1], full.shape[-1] * self._full)]
        if self._last is not None:
            parts.append(getattr(self._last, name)(left))
        return np.concatenate(parts, axis=-1)

    def measure(self, table: Array) -> Array:
        """A x, as floats: the coarse measurements, then those of every block."""
        fine = self._by_block("measure", table, self.fine.size)
        return np.concatenate([self.coarse.measure(self._block_sums(table)), fine], axis=-1)

    def roundings(self, exact_sums: bool = False) -> int:
        """How often a term of an entry of :meth:`measure` is rounded, at most."""
        fine = self.fine.roundings(exact_sums) if isinstance(self.fine, Nested) else self.fine.roundings()
        return max(fine, self.coarse.roundings() + (0 if exact_sums else self.fine.size))

    @property
    def gain(self) -> float:
        """The most by which a product in :meth:`measure` is multiplied again."""
        return self.fine.gain

    def error(self, table: Array) -> float:
        """How far an entry of ``measure(table)`` may be from A x; 0 if it is exact, as sums of counts are."""
        sizes = np.abs(table)
        lowest = unit(sizes[np.isfinite(sizes)])
        with np.errstate(over="ignore", invalid="ignore"):
            most, measured = float(1.01 * sizes.sum(axis=-1).max()), self.measure(sizes)
            exact_sums = lowest is not None and most <= float(np.ldexp(1.0, 53 + lowest))
        return product_error(table, measured, self.unit, self.roundings(exact_sums), self.gain)

    def exact(self, table: Array, index: int) -> Fraction:
        """One entry of A x, as the real number that it is."""
        width = self.fine.size
        if index < self.coarse.size:  # a block
            return self.coarse.weight(index) * exact_sum(table[index * width : (index + 1) * width])
        if index < self.coarse.rows:
            weights = self.coarse.sum_row(index - self.coarse.size).items()
            parts = (weight * exact_sum(table[block * width : (block + 1) * width]) for block, weight in weights)
            return sum(parts, Fraction(0))
        block, place = divmod(index - self.coarse.rows, self.fine.rows)
        if block < self._full:
            return self.fine.exact(table[block * width : (block + 1) * width], place)
        assert self._last is not None
        return self._last.exact(table[self._full * width :], index - self.coarse.rows - self._full * self.fine.rows)

    def _joined(self, fine: Array, coarse: Array | float) -> Array:
        """The table from those of the blocks, and from A_c^T y_c."""
        sums = self._block_sums(fine)
        totals = self._inverse.solve(coarse + sums / self.spreads)
        return np.asarray(fine + self._totals * self._repeated((totals - sums) / self.spreads))

    def solve(self, values: Array) -> Array:
        """V (A^T A)^-1, for rows V."""
        return self._joined(self._by_block("solve", values, self.fine.size), 0.0)

    def fit(self, measured: Array) -> Array:
        """The least-squares table A^+ y."""
        top = self.coarse.rows
        fine = self._by_block("fit", measured[..., top:], self.fine.rows)
        return self._joined(fine, self.coarse.transposed(measured[..., :top]))

    def restricted(self, size: int) -> PIdentity | Hats | Nested:
        """The first cells alone."""
        blocks = -(-size // self.fine.size)
        fine = self.fine if blocks > 1 else self.fine.restricted(size)
        return self if size == self.size else Nested(self.coarse.restricted(blocks), fine, size)

    def columns(self) -> list[Moves]:
        """The sizes in the distinct columns of A: as many as pairs of one of the coarse and one of the fine."""
        pairs = ((above, below) for above in self.coarse.columns() for below in self.fine.columns())
        return list(dict.fromkeys(Moves.counted(above.sizes + below.sizes) for above, below in pairs))

    def power(self, order: int) -> Fraction:
        """At least the sum of powers of the entries of any column, exactly."""
        return self.coarse.power(order) + self.fine.power(order)

    def coarse_squares(self, line: Line) -> Lines:
        """(G_c)_bc = u^T G_bc u/s^2: what is asked of the totals of blocks, for squares that are lines."""
        width = self.fine.size
        starts = width * np.arange(self.coarse.size, dtype=np.float64)
        each = line.moved(starts)
        places, quadratic = starts.copy(), np.empty(self.coarse.size)  # mean place and u^T G_bb u of every block
        parts = [
            (slice(0, self._full), self._totals[:width]),
            (slice(self._full, None), self._totals[self._full * width :]),
        ]
        for blocks, u in parts[: 1 if self._last is None else 2]:
            places[blocks] += float(np.arange(len(u)) @ u / u.sum())
            moments = [float(Line(basis, 0.0).over(len(u)).times(u) @ u) for basis in BASIS]
            quadratic[blocks] = each[blocks].reshape(-1, 4) @ moments + line.own * float(u @ u)
        return Lines(places, line.coefficients, quadratic / self.spreads**2)

    def line_trace(self, line: Line) -> float:
        """tr(G (A^T A)^-1) for squares that are lines."""
        each = line.moved(self.fine.size * np.arange(self.coarse.size, dtype=np.float64))
        total = self.fine.line_trace(Line(each[: self._full].sum(axis=0), line.own * self._full))
        if self._last is not None:
            total += self._last.line_trace(Line(each[-1], line.own))
        # tr(G_bb (X_f^-1 - u u^T/s)) of every block, and tr(G_c (X_c + I/s)^-1)
        coarse = self.coarse_squares(line)
        return total - float((coarse.diagonal * self.spreads).sum()) + self._inverse.trace(coarse)

    def __str__(self) -> str:
        return f"blocks of {self.fine.size} cells ({self.fine}), and of blocks ({self.coarse})"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, with the kind."""
        return {"kind": self.kind, "size": self.size, "coarse": self.coarse.to_dict(), "fine": self.fine.to_dict()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Nested:
        """The inverse of :meth:`to_dict`."""
        given = validation.fields(values, ("kind", "size", "coarse", "fine"), "strategy")
        validation.choice("strategy kind", given["kind"], [cls.kind])
        coarse, fine = read_strategy(given["coarse"]), read_strategy(given["fine"])
        return cls(coarse, fine, given["size"])  # type: ignore[arg-type]
