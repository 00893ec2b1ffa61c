"""Private counts: data, query, mechanism, release and post-processing in one call."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from lessnoise import files, postprocess, validation
from lessnoise.engines import engine_name
from lessnoise.engines.checks import require
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import csv_text
from lessnoise.mechanism.catalogue import choose
from lessnoise.query import ROW, Axis, Histogram, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from lessnoise.query.base import Progress
    from lessnoise.release import Certificate, Release

FORMATS = ("parquet", "csv", "npy")
_STEPS: dict[str, Callable[[NDArray[np.float64], float], NDArray[np.float64]]] = {
    "nonnegative": lambda value, _: postprocess.nonnegative(value),
    "round": lambda value, _: postprocess.round_to_integers(value),
    "james-stein": postprocess.james_stein,
    "soft-threshold": postprocess.soft_threshold,
}
_NEED_DEVIATION = frozenset({"james-stein", "soft-threshold"})
POSTPROCESS = tuple(_STEPS)
"""Post-processing steps by name, applied in the order given."""


@dataclass(frozen=True, eq=False)
class HistogramRelease:
    """Private counts with what was asked. ``value`` is post-processed; ``release.value`` is as it was drawn.

    The true counts are not kept.
    """

    value: NDArray[np.float64]
    release: Release
    query: Histogram
    unit: Unit
    engine: str
    postprocess: tuple[str, ...]

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release."""
        return self.release.certificate

    def to_dict(self) -> dict[str, Any]:
        """The certificate, and the query that it belongs to; plain values, ready for JSON."""
        return {
            **self.certificate.to_dict(),
            **self.query.to_dict(),
            "unit": self.unit.to_dict(),
            "engine": self.engine,
            "postprocess": list(self.postprocess),
        }

    def save(self, folder: Path, formats: Sequence[str] = ("parquet",), force: bool = False) -> list[Path]:
        """Write the counts, the certificate and a picture: all of them or none."""
        from lessnoise.report.counts import counts_png

        check_folder(folder, formats, force)
        text, picture = json.dumps(self.to_dict(), indent=2) + "\n", counts_png(self)
        writers: dict[Path, Callable[[BinaryIO], object]] = {
            folder / CERTIFICATE: lambda file: file.write(text.encode()),
            folder / PICTURE: lambda file: file.write(picture),
        }
        for form in formats:
            content = counts_file(self, form)
            writers[folder / f"counts.{form}"] = lambda file, content=content: file.write(content)  # type: ignore[misc]
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            files.write_together(writers, force)
        except BaseException:
            if new:
                folder.rmdir()
            raise
        return list(writers)


CERTIFICATE, PICTURE = "certificate.json", "counts.png"


def private_histogram(
    data: Any,  # noqa: ANN401
    query: Histogram | Sequence[Axis] | Sequence[str],
    *,
    epsilon: float,
    delta: float,
    bins: Sequence[int] | None = None,
    bounds: Sequence[tuple[float, float]] | None = None,
    outside: str = "drop",
    mechanism: str = "best",
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: Unit = ROW,
    engine: str | None = None,
    postprocess: Sequence[str] = (),
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
    **release_options: Any,  # noqa: ANN401
) -> HistogramRelease:
    """Count rows in cells on an engine and release the counts under differential privacy.

    ``query``: a :class:`Histogram`, its axes, or column names with ``bins`` and ``bounds``, which must be known without
    looking at the data. ``mechanism``: a name of the catalogue. ``release_options`` go to ``mechanism.release``.

    >>> rng = np.random.default_rng(0)
    >>> points = {"Lon": rng.normal(0.5, 0.1, 1000), "Lat": rng.normal(0.5, 0.1, 1000)}
    >>> result = private_histogram(points, ["Lon", "Lat"], bins=(4, 4), bounds=((0, 1), (0, 1)), epsilon=1, delta=1e-6)
    >>> result.value.shape, result.certificate.guarantee.delta <= 1e-6
    ((4, 4), True)
    """
    counts = histogram(query, bins, bounds, outside)
    steps = _steps(postprocess)
    request = counts.request(epsilon, delta, neighbours, unit)
    validation.generator(rng)
    built = choose(mechanism, request)  # before the data is read: it may be refused
    deviation = built.standard_deviation if _NEED_DEVIATION.intersection(steps) else 0.0
    answer = counts.answer(data, neighbours=neighbours, unit=unit, engine=engine, progress=progress)
    release = built.release(answer.value, rng, **release_options)
    value = release.value.astype(np.float64)
    for step in steps:
        value = _STEPS[step](value, deviation)
    return HistogramRelease(value, release, counts, unit, engine_name(data, engine), steps)


def histogram(
    query: object,
    bins: Sequence[int] | None = None,
    bounds: Sequence[tuple[float, float]] | None = None,
    outside: str = "drop",
) -> Histogram:
    """A histogram from itself, from axes, or from column names with bins and bounds."""
    if isinstance(query, Histogram):
        return query
    axes = [query] if isinstance(query, (str, Axis)) else query
    if isinstance(axes, (list, tuple)) and axes and all(isinstance(axis, Axis) for axis in axes):
        return Histogram(tuple(axes))
    if bins is None or bounds is None:
        raise InvalidInput(f"bins={bins} and bounds={bounds}: pass both, known without looking at the data.")
    return Histogram.grid(axes, bins=bins, bounds=bounds, outside=outside)  # type: ignore[arg-type]


def check_folder(folder: Path, formats: Sequence[str], force: bool) -> None:
    """Refuse, before any work is done, what could not be written later."""
    for form in formats:
        validation.choice("format", form, FORMATS)
    if "parquet" in formats:
        require("pyarrow.parquet", "data")
    files.check_folder(folder, (CERTIFICATE, PICTURE, *(f"counts.{form}" for form in formats)), force)


def counts_file(result: HistogramRelease, form: str) -> bytes:
    """The counts as .npy, or as a table with the ends or the key of each cell beside its count."""
    buffer = io.BytesIO()
    if form == "npy":
        np.save(buffer, result.value)
        return buffer.getvalue()
    table = _table(result)
    if form == "csv":
        rows = zip(*(values.tolist() for values in table.values()), strict=True)
        return csv_text([table, *rows]).encode()
    pyarrow, parquet = require("pyarrow", "data"), require("pyarrow.parquet", "data")
    parquet.write_table(pyarrow.table(table), buffer)
    return buffer.getvalue()


def _table(result: HistogramRelease) -> dict[str, NDArray[Any]]:
    table: dict[str, NDArray[Any]] = {}
    for axis, places in zip(result.query.axes, np.indices(result.query.shape), strict=True):
        if axis.keys is not None:
            table[axis.column] = np.array(axis.keys, dtype=object)[places.ravel()]
        else:
            table[f"{axis.column} from"] = axis.cell_edges[:-1][places.ravel()]
            table[f"{axis.column} to"] = axis.cell_edges[1:][places.ravel()]
    return {**table, "count": result.value.ravel()}


def _steps(names: Sequence[str]) -> tuple[str, ...]:
    steps = (names,) if isinstance(names, str) else tuple(names)
    for name in steps:
        validation.choice("postprocess", name, POSTPROCESS)
    return steps
