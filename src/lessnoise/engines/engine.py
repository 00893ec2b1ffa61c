"""What all engines have in common: how one is chosen and answers a query, what is checked, and how errors are said."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np

from lessnoise import validation
from lessnoise._later import offers
from lessnoise.errors import EngineFailed, InvalidInput, LessnoiseError
from lessnoise.guarantees import Neighbours
from lessnoise.query import INTEGER, NOTHING, NUMBER, ROW, TEXT, Presence, Unit, unknown_column, wrong_kind
from lessnoise.validation import require as require  # for the engines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lessnoise._common import IntArray, Progress
    from lessnoise.query import Answer, Query

_T = TypeVar("_T")

ENGINES = {"numpy": "arrays", "duckdb": "duck", "spark": "spark", "dask": "dask"}
"""Engines by name, and the module of each."""


class Engine(Protocol):
    """A module of this package."""

    def total(self, query: Query, data: Any, unit: Unit, progress: Progress) -> IntArray:  # noqa: ANN401
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
    chosen, used = _engine(data, engine), engine_name(data, engine)
    total = chosen.total(query, data, unit, report)
    if not total.any() and query.columns and _can_be_read_again(data):
        _refuse_empty_columns(chosen.total(Presence(query.columns, query.kinds), data, ROW, report), query)
    return query.answer_from(total, neighbours, unit, used)


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


def _refuse_empty_columns(present: IntArray, query: Query) -> None:
    """All counts are 0: tell the caller if that is because a column has no values at all."""
    rows, values = int(present[0]), present[1:]
    if rows and not values.all():
        name = query.columns[int(np.flatnonzero(values == 0)[0])]
        raise InvalidInput(f"column={name!r} holds no values, NULL or NaN in every row: choose another column.")


# What engines check and say in the same way.


class Unreadable(Exception):
    """Why data cannot be read, in words that quote no value of it. Text, so that it survives a worker process."""


def wanted(query: Query, unit: Unit) -> tuple[str, ...]:
    """The columns that are read: the query's, then the users' ids."""
    return (*query.columns, *([] if unit.id is None else [unit.id]))


def fresh(query: Query, unit: Unit) -> list[str]:
    """Names for ``wanted`` within an engine, in the same order.

    From here on no name of the data's own is used, so that none can be taken for one of ours, differ by case only,
    or mean something to an engine.
    """
    return [f"c{place}" for place in range(max(1, len(wanted(query, unit))))]


def typed(query: Query, unit: Unit, types: Mapping[str, _T]) -> list[_T]:
    """What stands for the kind of each wanted column; ids are texts, and so is what only tells the number of rows."""
    only_rows = unit.id is None and not query.kinds
    return [types[kind] for kind in query.kinds.values()] + ([types[TEXT]] if only_rows or unit.id is not None else [])


def places(query: Query, unit: Unit, present: Sequence[str]) -> list[int]:
    """Where the wanted columns are among those that there are, by their exact names; the first if none is wanted."""
    names = wanted(query, unit)
    if not names and not present:
        raise InvalidInput("data has no columns, so that its rows cannot be counted: pass a table with one.")
    for name in names:
        if name not in present:
            raise unknown_column(name, present)
        if present.count(name) > 1:
            raise InvalidInput(f"column={name!r} is in the data {present.count(name)} times: give each its own name.")
    return [present.index(name) for name in names] or [0]


def check_kinds(query: Query, unit: Unit, found: Sequence[tuple[str, str]]) -> None:
    """Compare the wanted columns with what they hold: (kind, name of the type) for each of them."""
    for (name, needed), (kind, type_name) in zip(query.kinds.items(), found, strict=False):
        if kind not in (needed, NOTHING) and not (needed == NUMBER and kind == INTEGER):
            raise wrong_kind(name, type_name, needed, kind)
    if unit.id is not None:
        kind, type_name = found[-1]
        if kind not in (INTEGER, TEXT, NOTHING):
            raise InvalidInput(
                f"unit={unit.id!r} has type {type_name}: users need ids that are whole numbers or text; convert them."
            )


def partial(query: Query, batch: Any) -> IntArray:  # noqa: ANN401
    """The partial sum of a batch, in which Arrow columns have fresh names; huge entries are clipped without a word."""
    if hasattr(batch, "rename_columns") and query.columns:
        batch = batch.rename_columns(list(query.columns))
    with np.errstate(over="ignore"):
        return query.partial(batch)


@contextlib.contextmanager
def engine_errors(engine: str, data: object) -> Iterator[None]:
    """Turn what an engine raises into one sentence. Nothing was released yet, so nothing is spent.

    Engines quote the data: "could not convert 'Jane Doe' to DOUBLE". Neither the sentence nor a traceback shows that.
    """
    try:
        yield
    except (LessnoiseError, KeyboardInterrupt, MemoryError):
        raise
    except Exception as error:
        where = f"data={data}" if isinstance(data, (str, Path)) else "the data"
        said = _SAID_BY_A_WORKER.search(str(error))
        if said and said[1] == "InvalidInput":
            raise InvalidInput(said[2]) from None
        reason = said[2] if said else _reason(error, told=_can_be_read_again(data))
        raise EngineFailed(
            f"{engine} could not read {where} to the end ({reason}): nothing was spent; repair it and try again."
        ) from None


_SAID_BY_A_WORKER = re.compile(r"^lessnoise\.\S*\b(InvalidInput|Unreadable): (.+)$", re.MULTILINE)


def _reason(error: Exception, told: bool) -> str:
    """What may be ``told``: our own words, those of the operating system if not of a stream, else the kind of error.

    A stream that fails may quote what it carries, and engines pass that on under any name.
    """
    kind = type(error).__name__
    if isinstance(error, Unreadable):
        return str(error)
    if told and (isinstance(error, OSError) or kind == "IOException"):
        lines = str(error).strip().splitlines() or [kind]
        return lines[0].strip().rstrip(".:")[:200]
    condition = getattr(error, "sqlstate", None) or (error.getCondition() if hasattr(error, "getCondition") else None)
    return f"{kind} {condition}" if condition else kind
