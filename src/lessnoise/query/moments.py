"""Number, sum and Gram matrix of bounded rows, in one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.query import whole_sums
from lessnoise.query.base import Norms
from lessnoise.query.gram import BITS, Gram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_BEYOND = 1.0 + 1e-9  # rows that exceed the norm by less are not counted as clipped: rounding may have done it


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

    @property
    def shape(self) -> tuple[int, ...]:
        """Square, with two more than the columns."""
        return (len(self.names) + 2, len(self.names) + 2)

    def valid(self, batch: Any) -> NDArray[np.bool_]:  # noqa: ANN401
        """All rows: a bad one is refused when it is read."""
        size = len(batch) if isinstance(batch, np.ndarray) else getattr(batch, "num_rows", None)
        return np.ones(len(next(iter(batch.values()))) if size is None else size, dtype=np.bool_)

    def finish(self, total: NDArray[np.int64]) -> Floats:
        """From squared grid steps to the matrix."""
        scale = np.full(len(total), self._step)
        scale[-2:] = 1.0
        value: Floats = whole_sums.to_floats(total) * scale
        value *= scale[:, np.newaxis]
        return value

    def row_norms(self, neighbours: Neighbours) -> Norms:
        """As for a Gram matrix: |z|^2 is at most norm^2 + 2; the counts are never rounded."""
        assert self.norm is not None
        size, largest, step = len(self.names), whole_sums.round_up(Fraction(self.norm) ** 2 + 2), Fraction(self._step)
        one = neighbours is Neighbours.ADD_REMOVE
        l2 = Fraction(largest if one else whole_sums.norm_up([largest, largest]))
        l1 = (1 if one else 2) * (size + 2) * Fraction(largest)
        lost = whole_sums.SPACING * size * (size * step**2 + 4 * step)  # in the l1 norm, so in the l2 norm, too
        return Norms(whole_sums.round_up(l2 + lost), whole_sums.round_up(l1 + lost))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        ends = None if self.ends is None else [list(end) for end in self.ends]
        shift = None if self.shift is None else list(self.shift)
        return {
            "query": "second moments",
            "columns": list(self.names),
            "norm": self.norm,
            "ends": ends,
            "shift": shift,
        }

    @property
    def _step(self) -> float:
        if self.ends is None:
            return super()._step
        assert self.norm is not None
        farthest = float(np.max(np.abs(np.array(self.ends) - np.array(self.shift or 0.0))))
        return whole_sums.grid_step(min(farthest, self.norm), BITS)

    def _fill(self, values: Floats, rows: Floats) -> None:
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

    def _clip_rows(self, values: Floats, rows: Floats) -> None:
        assert self.norm is not None
        long = self._in_norm(values, rows[:, :-2])
        if len(long):
            longer = values[long]
            largest = np.abs(longer).max(axis=1)
            unit = longer / largest[:, np.newaxis]
            rows[long, -1] = largest * np.sqrt(np.einsum("ij,ij->i", unit, unit)) > self.norm * _BEYOND

    def _clip_entries(self, values: Floats, rows: Floats) -> None:
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
