"""From a table to its second moments: rows bounded by public limits, summed by an engine, in memory or from a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import npy, validation
from lessnoise.engines import Postgres, engine_errors, file_columns, found_files
from lessnoise.errors import InvalidInput
from lessnoise.query import SecondMoments

if TYPE_CHECKING:
    from lessnoise._common import Array


_SLACK = 1e-12  # relative: the norm of the ends may be rounded down


@dataclass(frozen=True, eq=False)
class RowBound:
    """What is publicly known of one row, and how rows are made to obey it. Build one with :meth:`of`.

    ``norm`` bounds the l2 norm of every row, clipped and moved by ``-shift``, a public point.
    """

    norm: float
    shift: Array
    low: Array | None = None
    high: Array | None = None

    @classmethod
    def of(cls, features: int, *, clip_norm: object = None, bounds: object = None, center: bool = False) -> RowBound:
        """From a largest row norm, or from bounds (low, high) for all columns or for each, or from both.

        With bounds, and if only deviations from the mean matter (``center``), rows are measured from the midpoint of
        the bounds, which halves them at least. With both, the norm is that of a row so measured.

        >>> RowBound.of(4, clip_norm=3).norm, round(RowBound.of(4, bounds=(0, 1)).norm, 9)
        (3.0, 2.0)
        >>> round(RowBound.of(4, bounds=(0, 1), center=True).norm, 9)
        1.0
        >>> RowBound.of(4, bounds=(0, 1), clip_norm=0.5, center=True).norm
        0.5
        """
        if clip_norm is None and bounds is None:
            raise InvalidInput(
                "clip_norm=None and bounds=None: pass one of them, or both, known without looking at the data."
            )
        if bounds is None:
            return cls(validation.positive("clip_norm", clip_norm), np.zeros(features))
        low, high = ends_of(bounds, features)
        shift = 0.5 * (low + high) if center else np.zeros(features)
        farthest = np.maximum(np.abs(low - shift), np.abs(high - shift))
        norm = float(np.linalg.norm(farthest)) * (1.0 + _SLACK)
        if norm == 0.0:
            raise InvalidInput(f"bounds={bounds!r} leave a single point: pass bounds with low < high.")
        if clip_norm is not None:
            norm = min(norm, validation.positive("clip_norm", clip_norm))
        return cls(norm, shift, low, high)

    def query(self, names: Sequence[str]) -> SecondMoments:
        """The sums over bounded rows, for columns of these names."""
        if self.low is None or self.high is None:
            return SecondMoments(tuple(names), self.norm)
        ends = (tuple(self.low.tolist()), tuple(self.high.tolist()))
        return SecondMoments(tuple(names), self.norm, ends=ends, shift=tuple(self.shift.tolist()))


@dataclass(frozen=True, eq=False)
class Moments:
    """Number of rows, number of clipped rows, sum of rows and Gram matrix sum x x^T, of shifted rows."""

    count: float
    clipped: float
    sums: Array
    gram: Array

    def covariance(self, center: bool) -> Array:
        """Around the mean, over n - 1, or around the origin, over n."""
        count = max(self.count, 1.0)
        if not center:
            return self.gram / count
        mean = self.sums / count
        return (self.gram - count * np.outer(mean, mean)) / max(count - 1.0, 1.0)


def moments(data: object, bound: RowBound, names: Sequence[str] | None = None, engine: str | None = None) -> Moments:
    """The second moments of a table, by :class:`~lessnoise.query.SecondMoments`: exact sums, the same on every engine.

    >>> found = moments([[3.0, 4.0], [0.0, 1.0]], RowBound.of(2, clip_norm=1))
    >>> found.count, found.clipped, found.gram.round(2).tolist()
    (2.0, 1.0, [[0.36, 0.48], [0.48, 1.64]])
    """
    features = len(bound.shift)
    given = source_of(data)
    if isinstance(given, np.ndarray) and (given.ndim != 2 or given.shape[1] != features):
        raise InvalidInput(f"data.shape={given.shape} is not (n, {features}): pass one row for each individual.")
    query = bound.query([f"x{place}" for place in range(features)] if names is None else names)
    value = query.answer(given, engine=engine).value
    gram, sums, (count, clipped) = value[:features, :features], value[:features, features], value[features, features:]
    return Moments(float(count), float(clipped), sums.copy(), gram)


# Sources of rows. This is the one place where tables are told apart.


def is_streamed(data: object) -> bool:
    """Whether the table is left to an engine: a file, an Arrow, Spark or Dask table, a server. Arrays are not."""
    if isinstance(data, (str, Path, Postgres)):
        return True
    return type(data).__module__.split(".")[0] in ("pyarrow", "dask", "dask_expr", "pyspark")


def source_of(data: object) -> Any:  # noqa: ANN401
    """What an engine takes: the table itself, or an array; a .npy file is mapped into memory."""
    if isinstance(data, (str, Path)) and Path(data).suffix == ".npy":
        return npy.mapped(Path(data))
    if is_streamed(data):
        return data
    validation.unmasked(data, "data")
    return np.asarray(data)


def column_names(data: object) -> list[str] | None:
    """The names of the columns, where the table has any and they can be had without reading it."""
    if isinstance(data, (str, Path)):
        if Path(data).suffix == ".npy":
            return None
        with engine_errors("pyarrow", data):
            return file_columns(found_files(data)[0][0])
    if hasattr(data, "schema") and hasattr(data.schema, "names"):
        return [str(name) for name in data.schema.names]
    if hasattr(data, "columns"):
        return [str(name) for name in data.columns]
    if is_streamed(data):
        raise InvalidInput(f"columns=None, but those of {type(data).__name__} are not known: pass their names.")
    return None


def ends_of(bounds: object, features: int, name: str = "bounds") -> tuple[Array, Array]:
    """The low and the high end of each column."""
    form = "pass (low, high), each a number or one number for each column, known without looking at the data."
    if not isinstance(bounds, (Sequence, np.ndarray)) or isinstance(bounds, str) or len(bounds) != 2:
        raise InvalidInput(f"{name}={bounds!r} is not a pair: {form}")
    ends = []
    for side in (0, 1):
        end = validation.real_array(bounds[side], f"{name}[{side}]", repair=form)
        if end.ndim > 1 or (end.ndim == 1 and len(end) != features):
            raise InvalidInput(f"{name}[{side}].shape={end.shape} fits no table of {features} columns: {form}")
        ends.append(np.broadcast_to(end, (features,)).astype(np.float64))
    low, high = ends
    if (low > high).any():
        column = int(np.flatnonzero(low > high)[0])
        raise InvalidInput(
            f"{name} of column {column}=({low[column]:g}, {high[column]:g}) run from high to low: pass the smaller end "
            "first."
        )
    if not math.isfinite(float(np.abs(ends).max()) ** 2):
        raise InvalidInput(f"{name}={bounds!r} are too large to be squared: scale the columns first.")
    return low, high
