"""The Gram matrix X^T X of the rows; and with their number and sum, in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from lessnoise import validation
from lessnoise._common import root_up, round_up, settle
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.query import columns, whole_sums
from lessnoise.query.base import CLIPPED, MISSING_DROPPED, Norms, NumericQuery, column_names, interval
from lessnoise.query.linear import step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Array, BoolArray, IntArray


BITS = 18
"""Entries are whole steps of at most 2^18: products are below 2^36, so sums of 2^17 of them are exact in a float."""

_EXACT_ROWS = 2**17
_BLOCK = 8192  # rows per product
_PIECE = 1 << 16  # values per step of rounding: they stay in cache
_MOST_COLUMNS = 2**14  # below it squared norms are exact
_SCALED = "A row whose l2 norm exceeds the bound is scaled down to it."
_BEYOND = 1.0 + 1e-9  # rows that exceed the norm by less are not counted as clipped: rounding may have done it


@dataclass(frozen=True)
class Gram(NumericQuery):
    """X^T X over rows with l2 norm at most ``norm`` (longer ones are scaled down), or with entries clipped to ``box``.

    Entries are rounded to multiples of 2^-18 of the bound (to the next power of two), so that the matrix is the same
    for any order of the rows. A row with NULL or NaN is dropped; so is one with an infinity under ``norm``.

    For ``norm=C`` one row x adds x x^T, of Frobenius norm at most C^2, and ||x x^T - y y^T|| <= sqrt(2) C^2. For a box
    let b = max(|low|, |high|): the norms are at most d b^2 and sqrt(2) d b^2; a box on one side of 0 allows no more
    than d b^2. An l1 norm is at most d times the Frobenius norm. Sums of more than 2^53 squared steps are rounded
    towards 0 to floats, which adds 2^10 squared steps to the change of each entry: less than d 6e-8 of C^2 in all.

    >>> query = Gram(["a", "b"], norm=5)
    >>> query.answer(np.array([[3.0, 4.0], [30.0, 40.0]])).value.round(3).tolist()
    [[18.0, 24.0], [24.0, 32.0]]
    >>> query.sensitivity("add/remove") - 25.0 < 1e-5
    True
    """

    names: tuple[str, ...]
    norm: float | None = None
    box: tuple[float, float] | None = None
    block_rows = _EXACT_ROWS
    kind = "gram"

    def __post_init__(self) -> None:
        settle(self, names=column_names(self.names))
        if (self.norm is None) == (self.box is None):
            raise InvalidInput(f"norm={self.norm} and box={self.box}: pass the one bound that the rows shall keep.")
        if self.norm is not None:
            settle(self, norm=validation.positive("norm", self.norm))
        else:
            settle(self, box=interval("box", self.box))
        assert self._step > 0.0
        if len(self.names) > _MOST_COLUMNS:
            raise InvalidInput(f"columns={len(self.names)} are more than {_MOST_COLUMNS}: pass fewer.")

    @property
    def rules(self) -> tuple[str, ...]:
        """Rows are dropped, and bounded."""
        if self.norm is None:
            return (MISSING_DROPPED, CLIPPED)
        return ("A row with NULL, NaN or infinity in one of the columns is dropped.", _SCALED)

    @property
    def shape(self) -> tuple[int, ...]:
        """Square."""
        return (len(self.names), len(self.names))

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """Rows without NULL and NaN; without infinities under ``norm``."""
        values = columns.matrix(batch, self.names)
        missing = np.isnan(values) if self.norm is None else ~np.isfinite(values)
        return np.asarray(~missing.any(axis=1))

    def partial(self, batch: Any) -> IntArray:  # noqa: ANN401
        """The integer matrix of one batch: exact, because every product and sum in it is."""
        values = columns.matrix(batch, self.names)
        rows = np.empty((min(len(values), _BLOCK), self.shape[1]))
        few = max(1, _PIECE // len(self.names))
        done, total = self.zero(), np.zeros(self.shape)
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            for piece in range(0, len(block), few):
                self._fill(block[piece : piece + few], rows[piece : min(piece + few, len(block))])
            used = rows[: len(block)]
            total += used.T @ used
            if (start // _BLOCK + 1) % (_EXACT_ROWS // _BLOCK) == 0:
                done = self.combine(done, total.astype(np.int64))
                total[...] = 0.0
        return self.combine(done, total.astype(np.int64))

    def finish(self, total: IntArray) -> Array:
        """From squared grid steps to the matrix."""
        return whole_sums.to_floats(total) * (self._step * self._step)

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """See the class; the replaced bounds follow from ||x x^T - y y^T||^2 = |x|^4 + |y|^4 - 2 (x.y)^2."""
        size = len(self.names)
        largest, l1, apart = self._extent()
        if neighbours is Neighbours.REPLACE:
            # Squares are never negative, so one of them alone cannot change by more than the larger.
            frobenius = largest if size == 1 else Fraction(root_up(2 * largest**2))
            largest, l1 = min(frobenius, apart[0]), min(size * frobenius, apart[1])
        entry = whole_sums.SPACING * Fraction(self._step) ** 2
        return Norms(round_up(largest + size * entry), round_up(l1 + size * size * entry))

    def _extent(self) -> tuple[Fraction, Fraction, tuple[Fraction, Fraction]]:
        """Largest l2 and l1 norm of x x^T; and bounds on a difference of two from the range of each entry."""
        size = len(self.names)
        if self.norm is not None:
            square = Fraction(self.norm) ** 2
            return square, size * square, (2 * square, 2 * size * square)
        low, high = (steps * Fraction(self._step) for steps in self._ends)
        square = max(low * low, high * high)
        products = (Fraction(0), low * low, low * high, high * high)
        width = max(products) - min(products)  # of an entry off the diagonal; a dropped row counts 0
        others = size * (size - 1)
        apart = Fraction(root_up(size * square**2 + others * width**2))
        return size * square, size * size * square, (apart, size * square + others * width)

    @property
    def _ends(self) -> tuple[int, int]:
        """The box in whole steps."""
        return whole_sums.whole_steps(*(self.box or (0.0, 1.0)), self._step)

    @property
    def _step(self) -> float:
        return whole_sums.grid_step(self.norm, BITS) if self.norm is not None else step(self.box or (0.0, 1.0), BITS)

    def _fill(self, values: Array, rows: Array) -> None:
        """Fill in rows in whole steps, bounded."""
        if self.norm is None:
            self._in_box(values, rows)
        else:
            self._in_norm(values, rows)

    def _in_norm(self, values: Array, rows: Array) -> NDArray[np.intp]:
        """Fill in rows in whole steps, at most ``norm`` long, decided in exact integers; return which were changed."""
        assert self.norm is not None
        limit = self.norm / self._step  # exact: the step is a power of two
        np.multiply(values, 1.0 / self._step, out=rows)
        np.rint(rows, out=rows)
        squares = np.einsum("ij,ij->i", rows, rows)
        longest = float(math.floor(Fraction(limit) ** 2))
        wrong = np.flatnonzero(~(squares <= longest))  # too long, or with NaN or infinity
        if len(wrong):
            longer = values[wrong]
            largest = np.abs(longer).max(axis=1, keepdims=True)
            with np.errstate(invalid="ignore"):
                # The largest entry becomes 1; NaN and infinity become NaN, whatever else is in the row.
                direction = longer / np.where(np.isfinite(largest), largest, np.nan)
            lengths = np.sqrt(np.einsum("ij,ij->i", direction, direction))
            shrunk = np.trunc(direction * (limit * (1.0 - 2.0**-36) / lengths)[:, None])
            rows[wrong] = np.where(np.isnan(lengths)[:, None], 0.0, shrunk)  # no contribution: dropped
        return wrong

    def _in_box(self, values: Array, rows: Array) -> None:
        """Fill in rows in whole steps within the box."""
        np.clip(np.rint(values * (1.0 / self._step)), *self._ends, out=rows)
        rows[np.isnan(rows).any(axis=1)] = 0.0


@dataclass(frozen=True)
class SecondMoments(Gram):
    """Z^T Z over rows z = (x, 1, f), with f = 1 where x had to be clipped: the Gram matrix, the sums and two counts.

    x is a row of norm at most ``norm``: longer ones are scaled down. With ``ends`` = (lows, highs), one number each for
    every column, entries are first moved into them, and rows by ``-shift``; ``norm`` bounds what is left. As in
    :class:`~lessnoise.Gram` all sums are of integers. Missing and infinite entries are refused, not dropped.

    >>> SecondMoments(["a", "b"], norm=5).answer(np.array([[3.0, 4.0], [30.0, 40.0]])).value.round(3).tolist()
    [[18.0, 24.0, 6.0, 3.0], [24.0, 32.0, 8.0, 4.0], [6.0, 8.0, 2.0, 1.0], [3.0, 4.0, 1.0, 1.0]]
    """

    ends: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    shift: tuple[float, ...] | None = None
    block_rows = 1 << 14
    kind = "second moments"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ends is not None:
            whole_sums.grid_step(self._farthest, BITS)  # of ordinary size: steps do not overflow

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """A query of this kind from its plain values: rows have no box."""
        size, ends, shift = len(column_names(values.get("columns"))), values.get("ends"), values.get("shift")
        lines = [*([] if ends is None else validation.entries("ends", ends)), *([] if shift is None else [shift])]
        fits = len(lines) == 2 * (ends is not None) + (shift is not None)
        if not fits or any(len(validation.numbers("ends and shift", line)) != size for line in lines):
            raise InvalidInput(f"ends={shown(ends)}, shift={shown(shift)} do not fit the columns: restore them.")
        if values.get("norm") is None:
            raise InvalidInput("norm=None, which second moments need: restore it.")
        return super().read({**values, "box": None})

    @property
    def rules(self) -> tuple[str, ...]:
        """Rows are bounded, not dropped."""
        missing = "NULL, NaN and infinite entries are refused."
        return (missing, _SCALED) if self.ends is None else (missing, CLIPPED, _SCALED)

    @property
    def shape(self) -> tuple[int, ...]:
        """Square, with two more than the columns."""
        return (len(self.names) + 2, len(self.names) + 2)

    def valid(self, batch: Any) -> BoolArray:  # noqa: ANN401
        """All rows: a bad one is refused when it is read."""
        return np.ones(columns.length(batch), dtype=np.bool_)

    def finish(self, total: IntArray) -> Array:
        """From squared grid steps to the matrix."""
        scale = np.full(len(total), self._step)
        scale[-2:] = 1.0
        value: Array = whole_sums.to_floats(total) * scale
        value *= scale[:, np.newaxis]
        return value

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """As for a Gram matrix: |z|^2 is at most norm^2 + 2; the counts are never rounded."""
        assert self.norm is not None
        size, largest, step = len(self.names), round_up(Fraction(self.norm) ** 2 + 2), Fraction(self._step)
        one = neighbours is Neighbours.ADD_REMOVE
        l2 = Fraction(largest if one else whole_sums.norm_up([largest, largest]))
        l1 = (1 if one else 2) * (size + 2) * Fraction(largest)
        lost = whole_sums.SPACING * size * (size * step**2 + 4 * step)  # in the l1 norm, so in the l2 norm, too
        return Norms(round_up(l2 + lost), round_up(l1 + lost))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; rows have no box, but ``ends`` of their own."""
        values = super().to_dict()
        del values["box"]
        return values

    @property
    def _step(self) -> float:
        if self.ends is None:
            return super()._step
        assert self.norm is not None
        return whole_sums.grid_step(min(self._farthest, self.norm), BITS)

    @property
    def _farthest(self) -> float:
        """The farthest end of an entry that is moved."""
        with np.errstate(over="ignore"):
            return float(np.max(np.abs(np.array(self.ends) - np.array(self.shift or 0.0))))

    def _fill(self, values: Array, rows: Array) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            name = self.names[int(np.flatnonzero(~finite.all(axis=0))[0])]
            raise InvalidInput(f"column={name!r} holds NULL, NaN or infinity: drop or repair such rows first.")
        rows[:, -2], rows[:, -1] = 1.0, 0.0
        with np.errstate(over="ignore"):  # huge entries: they are clipped
            if self.ends is None:
                self._clip_rows(values, rows)
            else:
                self._clip_entries(values, rows)

    def _clip_rows(self, values: Array, rows: Array) -> None:
        assert self.norm is not None
        long = self._in_norm(values, rows[:, :-2])
        if len(long):
            longer = values[long]
            largest = np.abs(longer).max(axis=1)
            unit = longer / largest[:, np.newaxis]
            rows[long, -1] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit)) > self.norm * _BEYOND

    def _clip_entries(self, values: Array, rows: Array) -> None:
        assert self.norm is not None
        low, high = np.array(self.ends)
        shift = np.zeros(len(low)) if self.shift is None else np.array(self.shift)
        used = rows[:, :-2]
        np.subtract(values, shift, out=used)
        used *= 1.0 / self._step
        np.rint(used, out=used)
        np.clip(used, np.ceil((low - shift) / self._step), np.floor((high - shift) / self._step), out=used)
        squares, limit = np.einsum("ij,ij->i", used, used), self.norm / self._step
        long = np.flatnonzero(squares > float(math.floor(Fraction(limit) ** 2)))
        used[long] = np.trunc(used[long] * (limit * (1.0 - 2.0**-36) / np.sqrt(squares[long]))[:, np.newaxis])
        rows[:, -1] = ((values < low) | (values > high)).any(axis=1)
        rows[long[squares[long] > (limit * _BEYOND) ** 2], -1] = 1.0
