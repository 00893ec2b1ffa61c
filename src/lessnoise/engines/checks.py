"""What all engines check and say in the same way."""

from __future__ import annotations

import contextlib
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.errors import EngineFailed, InvalidInput, LessnoiseError, MissingExtra
from lessnoise.query import INTEGER, NOTHING, NUMBER, TEXT, unknown_column, wrong_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from lessnoise.query import Query, Unit


class Unreadable(Exception):
    """Why data cannot be read, in words that quote no value of it. Text, so that it survives a worker process."""


def require(module: str, extra: str) -> Any:  # noqa: ANN401
    """Import an optional module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".")[0]
        raise MissingExtra(f"{package} is not installed: run pip install 'lessnoise[{extra}]'.") from None


def wanted(query: Query, unit: Unit) -> tuple[str, ...]:
    """The columns that are read: the query's, then the users' ids."""
    return (*query.columns, *([] if unit.id is None else [unit.id]))


def fresh(query: Query, unit: Unit) -> list[str]:
    """Names for ``wanted`` within an engine, in the same order.

    From here on no name of the data's own is used, so that none can be taken for one of ours, differ by case only,
    or mean something to an engine.
    """
    return [f"c{place}" for place in range(len(wanted(query, unit)))]


def places(query: Query, unit: Unit, present: Sequence[str]) -> list[int]:
    """Where the wanted columns are among those that there are, by their exact names."""
    names = wanted(query, unit)
    for name in names:
        if name not in present:
            raise unknown_column(name, present)
        if present.count(name) > 1:
            raise InvalidInput(f"column={name!r} is in the data {present.count(name)} times: give each its own name.")
    return [present.index(name) for name in names]


def check_kinds(query: Query, unit: Unit, found: Sequence[tuple[str, str]]) -> None:
    """Compare the wanted columns with what they hold: (kind, name of the type) for each of them."""
    for (name, needed), (kind, type_name) in zip(query.kinds.items(), found, strict=False):
        if kind not in (needed, NOTHING) and not (needed == NUMBER and kind == INTEGER):
            raise wrong_kind(name, type_name, needed)
    if unit.id is not None:
        kind, type_name = found[-1]
        if kind not in (INTEGER, TEXT, NOTHING):
            raise InvalidInput(
                f"unit={unit.id!r} has type {type_name}: users need ids that are whole numbers or text; convert them."
            )


def partial(query: Query, batch: Any) -> NDArray[np.int64]:  # noqa: ANN401
    """The partial sum of a batch, in which Arrow columns have fresh names; huge entries are clipped without a word."""
    if hasattr(batch, "rename_columns"):
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
        reason = said[2] if said else _reason(error)
        raise EngineFailed(
            f"{engine} could not read {where} to the end ({reason}): nothing was spent; repair it and try again."
        ) from None


_SAID_BY_A_WORKER = re.compile(r"^lessnoise\.\S*\b(InvalidInput|Unreadable): (.+)$", re.MULTILINE)


def _reason(error: Exception) -> str:
    """What may be told: our own words, those of the operating system, else the kind of error."""
    kind = type(error).__name__
    if isinstance(error, Unreadable):
        return str(error)
    if isinstance(error, OSError) or kind == "IOException":
        lines = str(error).strip().splitlines() or [kind]
        return lines[0].strip().rstrip(".:")[:200]
    condition = getattr(error, "sqlstate", None) or (error.getCondition() if hasattr(error, "getCondition") else None)
    return f"{kind} {condition}" if condition else kind
