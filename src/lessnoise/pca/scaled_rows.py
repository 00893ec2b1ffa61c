"""Rows of features and a target, each column in units of its public bounds, so that all columns share the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.pca.bounded_rows import RowBound, ends_of
from lessnoise.query import SecondMoments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lessnoise._common import Array


_SLACK = 1e-12  # relative: the norm of the ends may be rounded down


def target_weight(features: int) -> float:
    """How long the target's unit is beside that of a feature: w^2 = sqrt(1 + 2 d) - 1, a public number.

    The noise deviates by s, in proportion to the squared length d + w^2 of a row. In the equation of a coefficient it
    is s^2 (|b|^2 + 1/w^2)/2 large, for coefficients b in units of the bounds. At |b| = 1/2 the least of
    (d + w^2)^2 (1/4 + 1/w^2) is where w^4/2 + w^2 = d.

    >>> round(target_weight(4) ** 2, 9)
    2.0
    """
    return math.sqrt(math.sqrt(1.0 + 2.0 * features) - 1.0)


@dataclass(frozen=True, eq=False)
class ScaledRows(RowBound):
    """Rows (x_1, ..., x_d, y), clipped to ``limits``, moved by ``-middle`` and multiplied by ``scale``.

    ``norm``, ``low`` and ``high`` bound what is left. Build one with :meth:`for_target`.
    """

    middle: Array = None  # type: ignore[assignment]
    scale: Array = None  # type: ignore[assignment]
    limits: tuple[Array, Array] | None = None

    @classmethod
    def for_target(
        cls, features: int, *, bounds: object, target_bounds: object, clip_norm: object, center: bool
    ) -> ScaledRows:
        """From public bounds of features and target, or from the largest norm of a row, or from both.

        With ``center`` columns are measured from the midpoint of their bounds, in half-widths; otherwise from 0, in
        units of the farther end. With both, the norm is that of a row so measured.

        >>> rows = ScaledRows.for_target(2, bounds=([0, 0], [1, 500]), target_bounds=(0, 9), clip_norm=1, center=True)
        >>> rows.norm, rows.middle.tolist(), rows.scale.round(3).tolist()
        (1.0, [0.5, 250.0, 4.5], [2.0, 0.004, 0.222])
        """
        size = features + 1
        if bounds is None and target_bounds is None and clip_norm is not None:
            norm = validation.positive("clip_norm", clip_norm)
            return cls(norm, np.zeros(size), middle=np.zeros(size), scale=np.ones(size))
        if bounds is None or target_bounds is None:
            raise InvalidInput(
                f"bounds={bounds!r} and target_bounds={target_bounds!r}: pass both, each as (low, high), or clip_norm "
                "alone, known without looking at the data."
            )
        ends = [ends_of(bounds, features), ends_of(target_bounds, 1, "target_bounds")]
        low, high = (np.concatenate([feature, target]) for feature, target in zip(*ends, strict=True))
        if (low == high).any():
            column = int(np.flatnonzero(low == high)[0])
            name = "target_bounds" if column == features else f"bounds of column {column}"
            raise InvalidInput(
                f"{name}=({low[column]:g}, {high[column]:g}) leave a single point: pass low < high, or leave the "
                "column out."
            )
        middle = 0.5 * low + 0.5 * high if center else np.zeros(size)
        scale = 1.0 / np.maximum(high - middle, middle - low)
        if not np.isfinite(scale).all() or not scale.all():
            raise InvalidInput(f"bounds={bounds!r}, target_bounds={target_bounds!r} are too near or too far: rescale.")
        if clip_norm is None:
            scale[-1] *= target_weight(features)
        ends_low, ends_high = (low - middle) * scale, (high - middle) * scale
        farthest = np.maximum(np.abs(ends_low), np.abs(ends_high))
        norm = float(np.linalg.norm(farthest)) * (1.0 + _SLACK)
        if clip_norm is not None:
            norm = min(norm, validation.positive("clip_norm", clip_norm))
        return cls(norm, np.zeros(size), ends_low, ends_high, middle, scale, (low, high))

    @property
    def farthest(self) -> Array:
        """The largest absolute value of each scaled column."""
        if self.low is None or self.high is None:
            return np.full(len(self.shift), self.norm)
        return np.minimum(np.maximum(np.abs(self.low), np.abs(self.high)), self.norm)

    def query(self, names: Sequence[str]) -> SecondMoments:
        """The sums over bounded and scaled rows, for columns of these names."""
        if self.limits is None or self.low is None or self.high is None:
            return super().query(names)
        return ScaledMoments(
            tuple(names),
            self.norm,
            ends=(_plain(self.low), _plain(self.high)),
            limits=(_plain(self.limits[0]), _plain(self.limits[1])),
            middle=_plain(self.middle),
            scale=_plain(self.scale),
        )


@dataclass(frozen=True)
class ScaledMoments(SecondMoments):
    """Second moments of rows that are clipped to ``limits``, moved by ``-middle`` and multiplied by ``scale`` first.

    >>> query = ScaledMoments(
    ...     ["a"], 1.0, ends=((-1.0,), (1.0,)), limits=((0.0,), (8.0,)), middle=(4.0,), scale=(0.25,)
    ... )
    >>> query.answer(np.array([[8.0], [5.0], [90.0]])).value.tolist()
    [[2.0625, 2.25, 1.0], [2.25, 3.0, 1.0], [1.0, 1.0, 1.0]]
    """

    limits: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    middle: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    kind = "scaled second moments"

    def _fill(self, values: Array, rows: Array) -> None:
        low, high = np.array(self.limits)
        scaled = (np.clip(values, low, high) - np.array(self.middle)) * np.array(self.scale)
        scaled[~np.isfinite(values)] = np.nan  # refused
        super()._fill(scaled, rows)
        rows[((values < low) | (values > high)).any(axis=1), -1] = 1.0


def _plain(values: Array) -> tuple[float, ...]:
    return tuple(values.tolist())
