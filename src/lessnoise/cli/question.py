"""The words of ``lessnoise query``: groups and statistics as they are written on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise.cli.options import parse_keys
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.query import Axis
from lessnoise.table import (
    Aggregate,
    cdf,
    count,
    covariance,
    histogram,
    linear_regression,
    mean,
    quantiles,
    ranges,
    sum,  # noqa: A004
    variance,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ASK = (
    "--count, --mean, --sum, --variance, --quantiles, --histogram, --cdf, --ranges, --covariance, --correlation, "
    "--regress or --marginals"
)
_CELLS = "age:0:120:12"
_HISTOGRAM, _PAIR = "age:0:120@12 or colour=red,blue", "age:0:120,income:0:200000"
_REGRESS = "income:0:200000~age:0:120"


def asked(
    counted: bool,
    means: Sequence[str],
    sums: Sequence[str],
    variances: Sequence[str],
    spread: Sequence[str],
    more: Sequence[Aggregate] = (),
) -> list[Aggregate]:
    """The statistics, in this order; ``more`` are read already.

    >>> [one.names for one in asked(True, ["age:0:120"], [], [], ["age:0:120@0.5"])]
    [['count'], ['mean of age'], ['0.5 quantile of age']]
    """
    found: list[Aggregate] = [count()] if counted else []
    for name, build, texts in (("mean", mean, means), ("sum", sum, sums), ("variance", variance, variances)):
        for text in texts:
            column, bounds = _bounded(name, text, text, "income:0:200000")
            found.append(build(column, bounds))
    for text in spread:
        front, _, back = text.rpartition("@")
        column, bounds = _bounded("quantiles", text, front, "age:0:120@0.25,0.5,0.75")
        found.append(quantiles(column, _numbers("quantiles", text, back.split(","), "age:0:120@0.25,0.5"), bounds))
    found += more
    if not found:
        raise InvalidInput(f"nothing is asked for: add at least one of {_ASK}.")
    return found


def several_columns(
    histograms: Sequence[str], covariances: Sequence[str], correlations: Sequence[str], regressions: Sequence[str]
) -> list[Aggregate]:
    """Histograms, then statistics of several columns together.

    >>> several_columns(["age:0:120@2"], [], [], ["income:0:9~age:0:120"])[1].names
    ['intercept of income', 'slope of income on age']
    """
    found: list[Aggregate] = []
    for text in histograms:
        front, at, back = text.rpartition("@")
        column, equals, keys = text.partition("=")
        if at and back.isdecimal() and len(back) < 10:
            name, bounds = _bounded("histogram", text, front, _HISTOGRAM)
            found.append(histogram(name, bounds, bins=int(back)))
        elif equals and column:
            found.append(histogram(column, keys=parse_keys(keys)))
        else:
            raise _unread("histogram", text, _HISTOGRAM)
    for option, texts in (("covariance", covariances), ("correlation", correlations)):
        for text in texts:
            names, ranges = _columns(option, text, text, _PAIR)
            found.append(covariance(*names, bounds=ranges, correlation=option == "correlation"))
    for text in regressions:
        target, tilde, features = text.partition("~")
        if not tilde:
            raise _unread("regress", text, _REGRESS)
        name, bounds = _bounded("regress", text, target, _REGRESS)
        names, ranges = _columns("regress", text, features, _REGRESS)
        found.append(linear_regression(name, names, [bounds, *ranges]))
    return found


def cell_sums(cdfs: Sequence[str], all_ranges: Sequence[str]) -> list[Aggregate]:
    """Distribution functions, then ranges.

    >>> [one.summary for one in cell_sums(["age:0:120:12"], ["age:0:120:4"])]
    ['distribution function of age in 12 cells', 'all ranges of age in 4 cells']
    """
    found: list[Aggregate] = []
    for option, build, texts in (("cdf", cdf, cdfs), ("ranges", ranges, all_ranges)):
        for text in texts:
            column, bounds, bins = _even_cells(option, text)
            found.append(build(column, bounds, bins))
    return found


def axes(
    by: Sequence[str], keys: Sequence[str], bins: Sequence[str], edges: Sequence[str] = ()
) -> tuple[Axis | str, ...]:
    """The groups: for each column its keys or its cells; a column without either has private keys.

    >>> [axis.size for axis in axes(["city", "age"], ["city=Oslo,Bergen"], ["age:0:120:12"])]
    [2, 12]
    >>> axes(["city", "age"], [], [], ["age:0,18,65"])[0], axes(["age"], [], [], ["age:0,18,65"])[0].size
    ('city', 2)
    """
    known: dict[str, Axis] = {}
    for text in keys:
        column, _, given = text.partition("=")
        if column not in by and len(by) == 1:
            column, given = by[0], text
        _once("keys", text, column, by, known)
        known[column] = Axis(column, keys=parse_keys(given))
    for text in bins:
        column, bounds, number = _even_cells("bins", text)
        _once("bins", text, column, by, known)
        known[column] = Axis(column, bounds=bounds, bins=number)
    for text in edges:
        column, _, given = text.rpartition(":")
        if not column:
            raise _unread("edges", text, "age:0,18,65,120")
        _once("edges", text, column, by, known)
        known[column] = Axis(column, edges=tuple(_numbers("edges", text, given.split(","), "age:0,18,65,120")))
    return tuple(known.get(column, column) for column in by)


def weights_of(texts: Sequence[str]) -> list[float] | None:
    """Numbers with commas between them, or given one by one; None if there are none.

    >>> weights_of(["1,4", "2"])
    [1.0, 4.0, 2.0]
    """
    words = [word for text in texts for word in text.split(",")]
    return _numbers("weights", ",".join(words), words, "1,4,1") if words else None


def listed(texts: Iterable[str]) -> list[str]:
    """Words with commas between them, or given one by one; each once.

    >>> listed(["parquet,csv", "csv"])
    ['parquet', 'csv']
    """
    return list(dict.fromkeys(word.strip() for text in texts for word in text.split(",")))


def _once(option: str, text: str, column: str, by: Sequence[str], known: dict[str, Axis]) -> None:
    if column not in by:
        what = "of several columns, name one as in city=Oslo,Bergen" if len(by) > 1 else "name its column with --by"
        raise InvalidInput(f"{option}={shown(text)} is for no column of --by: {what}.")
    if column in known:
        raise InvalidInput(f"{option}={shown(text)} gives {column!r} groups for the second time: leave one out.")


def _bounded(option: str, text: str, front: str, example: str) -> tuple[str, tuple[float, float]]:
    column, *ends = front.rsplit(":", 2)
    if len(ends) != 2 or not column:
        raise _unread(option, text, example)
    low, high = _numbers(option, text, ends, example)
    return column, (low, high)


def _even_cells(option: str, text: str) -> tuple[str, tuple[float, float], int]:
    front, _, number = text.rpartition(":")
    if not (number.isdecimal() and len(number) < 10):
        raise _unread(option, text, _CELLS)
    return *_bounded(option, text, front, _CELLS), int(number)


def _columns(option: str, text: str, words: str, example: str) -> tuple[list[str], list[tuple[float, float]]]:
    pairs = [_bounded(option, text, word, example) for word in words.split(",")]
    return [name for name, _ in pairs], [bounds for _, bounds in pairs]


def _numbers(option: str, text: str, words: Sequence[str], example: str) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        raise _unread(option, text, example) from None


def _unread(option: str, text: str, example: str) -> InvalidInput:
    return InvalidInput(f"{option}={shown(text)} is not understood: write it as in {example}.")
