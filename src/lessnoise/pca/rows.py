"""From a table to its second moments: rows bounded by public limits, read chunk by chunk, in memory or from a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import validation
from lessnoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

CHUNK_ENTRIES = 2**22  # 32 MiB of float64 at a time
_REPAIR = "drop or repair such rows first."
_SLACK = 1e-12  # relative: a row scaled to the clip may exceed it by rounding


@dataclass(frozen=True, eq=False)
class RowBound:
    """What is publicly known of one row, and how rows are made to obey it. Build one with :meth:`of`.

    ``norm`` bounds the l2 norm of every row that leaves :meth:`apply`, which first moves each by ``shift``, a public
    point.
    """

    norm: float
    shift: Array
    low: Array | None = None
    high: Array | None = None

    @classmethod
    def of(cls, features: int, *, clip_norm: object = None, bounds: object = None, center: bool = False) -> RowBound:
        """From a largest row norm, or from bounds (low, high) for all columns or for each.

        With bounds, and if only deviations from the mean matter (``center``), rows are measured from the midpoint of
        the bounds, which halves them at least.

        >>> RowBound.of(4, clip_norm=3).norm, round(RowBound.of(4, bounds=(0, 1)).norm, 9)
        (3.0, 2.0)
        >>> round(RowBound.of(4, bounds=(0, 1), center=True).norm, 9)
        1.0
        """
        if (clip_norm is None) == (bounds is None):
            raise InvalidInput(
                f"clip_norm={clip_norm!r} and bounds={bounds!r}: pass exactly one of them, known without looking at "
                "the data."
            )
        if bounds is None:
            return cls(validation.positive("clip_norm", clip_norm), np.zeros(features))
        low, high = _columns(bounds, features)
        shift = 0.5 * (low + high) if center else np.zeros(features)
        farthest = np.maximum(np.abs(low - shift), np.abs(high - shift))
        norm = float(np.linalg.norm(farthest)) * (1.0 + _SLACK)
        if norm == 0.0:
            raise InvalidInput(f"bounds={bounds!r} leave a single point: pass bounds with low < high.")
        return cls(norm, shift, low, high)

    def apply(self, rows: Array) -> tuple[Array, int]:
        """The rows, clipped and shifted, and how many were changed by the clipping: a private number."""
        if self.low is not None and self.high is not None:
            kept = np.clip(rows, self.low, self.high)
            changed = int(np.count_nonzero((kept != rows).any(axis=1)))
            return kept - self.shift, changed
        # Scaled by the largest entry first, so that huge entries do not overflow when squared.
        largest = np.abs(rows).max(axis=1, initial=0.0)
        unit = rows / np.where(largest > 0.0, largest, 1.0)[:, np.newaxis]
        lengths = np.sqrt(np.einsum("ij,ij->i", unit, unit))
        with np.errstate(over="ignore"):
            outside = largest * lengths > self.norm
        if not outside.any():
            return rows, 0
        kept = rows.copy()
        kept[outside] = unit[outside] * (self.norm / lengths[outside])[:, np.newaxis]
        return kept, int(np.count_nonzero(outside))


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


def moments(data: object, bound: RowBound) -> Moments:
    """The second moments of a table: an array, a pandas or Arrow table, or the path of a Parquet, CSV or .npy file.

    >>> found = moments([[3.0, 4.0], [0.0, 1.0]], RowBound.of(2, clip_norm=1))
    >>> found.count, found.clipped, found.gram.round(2).tolist()
    (2.0, 1.0, [[0.36, 0.48], [0.48, 1.64]])
    """
    features = len(bound.shift)
    sums, gram, count, clipped = np.zeros(features), np.zeros((features, features)), 0, 0
    for chunk in chunks(data):
        if chunk.shape[1] != features:
            raise InvalidInput(f"data has {chunk.shape[1]} columns, but {features} were announced: pass one table.")
        rows, changed = bound.apply(chunk)
        sums += rows.sum(axis=0)
        gram += rows.T @ rows
        count, clipped = count + len(rows), clipped + changed
    return Moments(float(count), float(clipped), sums, gram)


# Sources of rows. This is the one place where tables are told apart.


def column_names(data: object) -> list[str] | None:
    """The names of the columns, where the table has any."""
    if isinstance(data, (str, Path)):
        return _file(data)[0]
    if hasattr(data, "to_batches"):
        return [str(name) for name in data.schema.names]  # type: ignore[attr-defined]
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return [str(name) for name in data.columns]
    return None


def column_count(data: object) -> int:
    """How many columns a table has, without reading it all."""
    names = column_names(data)
    if names is not None:
        return len(names)
    return int(next(chunks(data)).shape[1])


def is_streamed(data: object) -> bool:
    """Whether the table is read from a file or from Arrow batches, rather than lying in memory as an array."""
    return isinstance(data, (str, Path)) or hasattr(data, "to_batches")


def chunks(data: object) -> Iterator[Array]:
    """The rows, some at a time, as finite float64 arrays of two dimensions."""
    if isinstance(data, (str, Path)):
        yield from _file(data)[1]
    elif hasattr(data, "to_batches"):
        yield from _batches(data.to_batches())
    else:
        given: Any = data.to_numpy() if hasattr(data, "to_numpy") else data
        yield from _slices(given)


def _slices(given: ArrayLike) -> Iterator[Array]:
    table = np.asarray(given)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidInput(f"data.shape={table.shape} is not (n, d): pass one row for each individual.")
    step = max(CHUNK_ENTRIES // table.shape[1], 1)
    for start in range(0, max(len(table), 1), step):
        yield validation.real_array(table[start : start + step], "data", kinds="biuf", repair=_REPAIR)


def _batches(batches: Any) -> Iterator[Array]:  # noqa: ANN401
    for batch in batches:
        table = np.empty((batch.num_rows, batch.num_columns))
        for i, name in enumerate(batch.schema.names):
            table[:, i] = _column(name, batch.column(i))
        yield from _slices(table)


def _column(name: str, column: Any) -> NDArray[Any]:  # noqa: ANN401
    if column.null_count:
        raise InvalidInput(f"column={name!r} holds missing values: {_REPAIR}")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf":
        raise InvalidInput(f"column={name!r} of type {column.type} is not numeric: leave it out or convert it first.")
    return values


def _file(given: str | Path) -> tuple[list[str] | None, Iterator[Array]]:
    path = Path(given)
    if not path.exists():
        raise InvalidInput(f"data={str(path)!r} does not exist: pass the path of a .parquet, .csv or .npy file.")
    if path.suffix == ".npy":
        return None, _slices(np.load(path, mmap_mode="r", allow_pickle=False))
    if path.suffix not in (".parquet", ".csv"):
        raise InvalidInput(f"data={str(path)!r} is of no known kind: pass a .parquet, .csv or .npy file.")
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f"reading {path.suffix} files needs pyarrow: install it with pip install 'lessnoise[sklearn]'."
        ) from None
    if path.suffix == ".csv":
        reader = pyarrow.csv.open_csv(path)
        return [str(name) for name in reader.schema.names], _batches(reader)
    file = pyarrow.parquet.ParquetFile(path)
    names = [str(name) for name in file.schema_arrow.names]
    return names, _batches(file.iter_batches(batch_size=max(CHUNK_ENTRIES // max(len(names), 1), 1)))


def _columns(bounds: object, features: int) -> tuple[Array, Array]:
    form = "pass (low, high), each a number or one number for each column, known without looking at the data."
    if not isinstance(bounds, (Sequence, np.ndarray)) or isinstance(bounds, str) or len(bounds) != 2:
        raise InvalidInput(f"bounds={bounds!r} is not a pair: {form}")
    ends = []
    for side in (0, 1):
        end = validation.real_array(bounds[side], f"bounds[{side}]", repair=form)
        if end.ndim > 1 or (end.ndim == 1 and len(end) != features):
            raise InvalidInput(f"bounds[{side}].shape={end.shape} fits no table of {features} columns: {form}")
        ends.append(np.broadcast_to(end, (features,)).astype(np.float64))
    low, high = ends
    if (low > high).any():
        column = int(np.flatnonzero(low > high)[0])
        raise InvalidInput(
            f"bounds of column {column}=({low[column]:g}, {high[column]:g}) run from high to low: pass the smaller end "
            "first."
        )
    if not math.isfinite(float(np.abs(ends).max()) ** 2):
        raise InvalidInput(f"bounds={bounds!r} are too large to be squared: scale the columns first.")
    return low, high
