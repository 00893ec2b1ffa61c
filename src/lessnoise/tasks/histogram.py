"""Private counts: data, query, mechanism, release and post-processing in one call."""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise import postprocess, validation
from lessnoise._display import Plotted
from lessnoise.engines import engine_name, require
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import csv_text
from lessnoise.mechanism import BEST, choose_mechanism
from lessnoise.noise import Stream
from lessnoise.query import ROW, Asked, Axis, Histogram, Unit
from lessnoise.release import Certificate, CertifiedFolder, Payment, Release, Signer, verified

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from lessnoise._common import Progress
    from lessnoise.mechanism import Mechanism
    from lessnoise.query import Answer

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
class HistogramRelease(Plotted):
    """Private counts with what was asked. ``value`` is post-processed; ``release.value`` is as it was drawn.

    Counts are integers, unless a mechanism of real-valued noise or a step that shrinks them was asked for. The true
    counts are not kept.
    """

    value: NDArray[np.int64] | NDArray[np.float64]
    release: Release
    query: Histogram
    unit: Unit
    engine: str
    postprocess: tuple[str, ...]

    @property
    def certificate(self) -> Certificate:
        """The certificate of the release."""
        return self.release.certificate

    def __str__(self) -> str:
        """The released counts, and in one line what they guarantee.

        >>> made = private_histogram({"x": [1, 2]}, ["x"], bins=[2], bounds=[(0, 4)], epsilon=1, delta=1e-6)
        >>> print(made)  # the counts are different each time
        [...]
        (1, 1e-06)-DP under add/remove...
        """
        return f"{np.array2string(self.value, threshold=100)}\n{self.certificate}"

    def to_dict(self) -> dict[str, Any]:
        """The certificate, which has the query in it, and what was done to the counts; plain values for JSON."""
        return {**self.certificate.to_dict(), "postprocess": list(self.postprocess)}

    def save(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] = ("parquet",),
        force: bool = False,
        signer: Signer | None = None,
    ) -> list[Path]:
        """Write the counts, a picture, and the certificate with the SHA-256 of these files: all of them or none."""
        place = HistogramFolder(Path(folder), formats, force, signer)
        made = place.contents(self)
        with place.reserved(made) as staged:
            return place.write(made, staged, Payment(None))

    @staticmethod
    def verify(folder: str | os.PathLike[str]) -> Certificate:
        """The certificate of a folder that :meth:`save` wrote, if every file in it is the one that was saved with it.

        >>> import pathlib, tempfile
        >>> made = private_histogram({"x": [1, 2]}, ["x"], bins=[2], bounds=[(0, 4)], epsilon=1, delta=1e-6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = made.save(pathlib.Path(folder), formats=["csv"])
        ...     certificate = HistogramRelease.verify(pathlib.Path(folder))
        >>> certificate.guarantee == made.certificate.guarantee
        True
        """
        return Certificate.from_dict(verified(folder))


class HistogramFolder(CertifiedFolder):
    """Where counts go, with a picture and a certificate."""

    stem = "counts"
    known = FORMATS

    def file(self, result: HistogramRelease, form: str) -> bytes:
        """The counts."""
        return counts_file(result, form)

    def certificate(self, result: HistogramRelease) -> dict[str, Any]:
        """The certificate, and the query that it belongs to."""
        return result.to_dict()


@dataclass(frozen=True)
class Plan:
    """A histogram that is going to be released: all that is known before the data are read."""

    query: Histogram
    mechanism: Mechanism
    unit: Unit
    neighbours: Neighbours
    postprocess: tuple[str, ...]
    deviation: float

    def answer(self, data: Any, engine: str | None = None, progress: Progress | None = None) -> Answer:  # noqa: ANN401
        """The true counts."""
        return self.query.answer(data, neighbours=self.neighbours, unit=self.unit, engine=engine, progress=progress)

    def release(self, answer: Answer, engine: str, **options: Any) -> HistogramRelease:  # noqa: ANN401
        """Release the counts, with the options of ``Mechanism.release``, and post-process them."""
        release = self.mechanism.release(answer, **options)
        with Payment(options.get("ledger"), release.receipt, release):
            return self._finished(release, engine)

    def trial(self) -> HistogramRelease:
        """As long as a release of this plan and as hard to draw, with made-up numbers."""
        asked = Asked(self.query, self.neighbours, self.unit, "trial")
        certificate = Certificate.of(self.mechanism, Stream.secure(), asked=asked)
        value = 1e3 * np.random.default_rng(0).standard_normal(self.query.shape)
        if self.mechanism.law.integer:
            value = np.rint(1e6 * value)  # as many digits
        return self._finished(Release(value, certificate), "trial")

    def _finished(self, release: Release, engine: str) -> HistogramRelease:
        value: NDArray[Any] = release.value
        for step in self.postprocess:
            value = _STEPS[step](value.astype(np.float64), self.deviation)
        if whole_counts(self.mechanism, self.postprocess):
            value = value.astype(np.int64)
        return HistogramRelease(value, release, self.query, self.unit, engine, self.postprocess)


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
    validation.generator(rng)
    plan = plan_histogram(counts, epsilon, delta, mechanism, neighbours, unit, postprocess)
    answer = plan.answer(data, engine, progress)
    return plan.release(answer, engine_name(data, engine), rng=rng, **release_options)


def plan_histogram(
    query: Histogram,
    epsilon: float,
    delta: float,
    mechanism: str,
    neighbours: Neighbours | str,
    unit: Unit,
    postprocess: Sequence[str],
) -> Plan:
    """Choose the mechanism, before the data are read: it may be refused."""
    steps = _steps(postprocess)
    request = query.request(epsilon, delta, neighbours, unit)
    built = choose_mechanism(mechanism, request)
    if not steps and not built.law.integer and mechanism == BEST:
        steps = ("round",)
    deviation = built.standard_deviation if _NEED_DEVIATION.intersection(steps) else 0.0
    return Plan(query, built, unit, Neighbours.of(neighbours), steps, deviation)


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

    def add(name: str, values: NDArray[Any]) -> None:
        names = itertools.chain([name], (f"{name} ({i})" for i in itertools.count(2)))
        table[next(free for free in names if free not in table)] = values

    for axis, places in zip(result.query.axes, np.indices(result.query.shape), strict=True):
        if axis.keys is not None:
            add(axis.column, np.array(axis.keys, dtype=object)[places.ravel()])
        else:
            add(f"{axis.column} from", axis.cell_edges[:-1][places.ravel()])
            add(f"{axis.column} to", axis.cell_edges[1:][places.ravel()])
    add("count", result.value.ravel())
    return table


def whole_counts(mechanism: Mechanism, steps: Sequence[str]) -> bool:
    """Whether the counts that come out are whole numbers."""
    real = [place for place, step in enumerate(steps) if step in _NEED_DEVIATION]
    rounded = "round" in steps[real[-1] + 1 if real else 0 :]
    return rounded or (mechanism.law.integer and not real)


def _steps(names: Sequence[str]) -> tuple[str, ...]:
    steps = (names,) if isinstance(names, str) else tuple(names)
    for name in steps:
        validation.choice("postprocess", name, POSTPROCESS)
    return steps
