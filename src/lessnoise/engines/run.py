"""Choosing the engine for the data, and answering a query on it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from lessnoise import validation
from lessnoise._later import offers
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.query import ROW, Presence, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessnoise._common import Progress
    from lessnoise.query import Answer, Query

ENGINES = {"numpy": "arrays", "duckdb": "duck", "spark": "spark", "dask": "dask"}
"""Engines by name, and the module of each."""


class Engine(Protocol):
    """A module of this package."""

    def total(self, query: Query, data: Any, unit: Unit, progress: Progress) -> NDArray[np.int64]:  # noqa: ANN401
        """The sum of all partial sums."""


@offers("answer")
def answer(
    query: Query,
    data: Any,  # noqa: ANN401
    *,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: Unit = ROW,
    engine: str | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Answer a query on an engine. Nothing is released and no privacy is spent.

    ``data``: a path (Parquet, CSV, .csv.gz; a pattern such as ``trips-*.parquet``), a pandas, Polars, Arrow, Spark or
    Dask table, an Arrow reader, a mapping of names to arrays, a matrix with the query's columns in their order (then
    the unit's id), or a :class:`~lessnoise.engines.postgres.Postgres` source.
    ``engine`` is chosen by the data if it is not named.
    ``progress(label, done, total)`` is called now and then.

    >>> from lessnoise.query import Histogram
    >>> query = Histogram.grid(["x"], bins=[2], bounds=[(0, 1)])
    >>> answer(query, {"x": np.array([0.2, 0.7, 0.8])}).value.tolist()
    [1.0, 2.0]
    """
    query.norms(neighbours, unit)  # refuse what has no sensitivity before the data is read
    if unit.id in query.columns:
        raise InvalidInput(f"unit={unit.id!r} is a column of the query, too: name users by another column.")
    for name, values in data.items() if isinstance(data, Mapping) else [("data", data)]:
        validation.unmasked(values, f"data[{name!r}]" if isinstance(data, Mapping) else name)
    report = progress or (lambda _label, _done, _total: None)
    chosen = _engine(data, engine)
    total = chosen.total(query, data, unit, report)
    if not total.any() and _can_be_read_again(data):
        _refuse_empty_columns(chosen.total(Presence(query.columns, query.kinds), data, ROW, report), query)
    return query.answer_from(total, neighbours, unit)


def engine_name(data: Any, engine: str | None = None) -> str:  # noqa: ANN401
    """The engine that is asked for, or the one that the data needs."""
    if engine is not None:
        validation.choice("engine", engine, list(ENGINES))
        return engine
    package = type(data).__module__.split(".")[0]
    if package == "pyspark":
        return "spark"
    if package in ("dask", "dask_expr"):
        return "dask"
    return "numpy" if isinstance(data, (np.ndarray, Mapping)) else "duckdb"


def _engine(data: Any, engine: str | None) -> Engine:  # noqa: ANN401
    return cast("Engine", import_module(f"lessnoise.engines.{ENGINES[engine_name(data, engine)]}"))


def _can_be_read_again(data: Any) -> bool:  # noqa: ANN401
    """Not a stream, nor what may be one."""
    known = ("numpy", "pandas", "polars", "pyarrow", "pyspark", "dask", "dask_expr", "pathlib", "builtins", "lessnoise")
    return type(data).__module__.split(".")[0] in known and type(data).__name__ != "RecordBatchReader"


def _refuse_empty_columns(present: NDArray[np.int64], query: Query) -> None:
    """All counts are 0: tell the caller if that is because a column has no values at all."""
    rows, values = int(present[0]), present[1:]
    if rows and not values.all():
        name = query.columns[int(np.flatnonzero(values == 0)[0])]
        raise InvalidInput(f"column={name!r} holds no values, NULL or NaN in every row: choose another column.")
