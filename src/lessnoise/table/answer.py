"""What a table answers: labelled rows with value, lower and upper end, and the certificate of all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lessnoise.engines import require
from lessnoise.harmless import csv_text, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger import Receipt
    from lessnoise.release import Certificate


STATISTIC = ("statistic", "value", "lower", "upper")


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """Private statistics, one row for each group and statistic; the true values are not kept.

    ``rows``: mappings of the group's columns, ``statistic``, ``value``, ``lower`` and ``upper``. The ends hold the true
    value of the clipped data with the probability ``level``, from the noise's own law.
    """

    rows: tuple[Mapping[str, Any], ...]
    columns: tuple[str, ...]
    guarantee: Guarantee
    certificates: tuple[Certificate, ...]
    description: Mapping[str, Any]
    level: float
    receipt: Receipt | None = None

    @property
    def certificate(self) -> dict[str, Any]:
        """What all of it guarantees, what was asked, and the certificate of each release; ready for JSON."""
        return {
            "guarantee": self.guarantee.to_dict(),
            **self.description,
            "level": self.level,
            "private": all(one.private for one in self.certificates),
            "releases": [one.to_dict() for one in self.certificates],
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name."""
        return {name: [row[name] for row in self.rows] for name in self.columns}

    def to_pandas(self) -> Any:  # noqa: ANN401
        """A pandas data frame."""
        return require("pandas", "data").DataFrame(self.to_dict())

    def to_arrow(self) -> Any:  # noqa: ANN401
        """An Arrow table."""
        return require("pyarrow", "data").table(self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated text; cells that a spreadsheet would run are made harmless."""
        return csv_text([self.columns, *([row[name] for name in self.columns] for row in self.rows)])

    def to_json(self) -> str:
        """Rows and certificate."""
        return json.dumps({"rows": [dict(row) for row in self.rows], "certificate": self.certificate}, indent=2)

    def __str__(self) -> str:
        cells = [list(self.columns), *([_text(row[name]) for name in self.columns] for row in self.rows[:50])]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        more = [] if len(self.rows) <= 50 else [f"... {len(self.rows) - 50} more rows"]
        return "\n".join([*lines, *more, f"{self.guarantee}, intervals at {self.level:.0%}"])

    def __repr__(self) -> str:
        return f"TableAnswer({len(self.rows)} rows, {self.guarantee})"


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) and value.isprintable() else shown(value)


def ends(noisy: np.ndarray[Any, Any], level: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of values that the truth may have, the first axis counting them: the middle ``level`` of each."""
    outside = 0.5 * (1.0 - level)
    low, high = np.quantile(noisy, [outside, 1.0 - outside], axis=0, method="inverted_cdf")
    return low, high


def labels(groups: Sequence[tuple[str, Sequence[object]]]) -> list[dict[str, object]]:
    """For each group, in C order, its place along every axis, by column."""
    found: list[dict[str, object]] = [{}]
    for column, places in groups:
        found = [{**known, column: place} for known in found for place in places]
    return found
