"""What a table answers: labelled rows with value, lower and upper end, and the certificate of all of it."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lessnoise import files
from lessnoise._display import Plotted
from lessnoise._version import CERTIFICATE_SCHEMA, __version__
from lessnoise.engines import require
from lessnoise.harmless import csv_text, shown
from lessnoise.query import Unit
from lessnoise.release import CertifiedFolder, Payment, verified

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from lessnoise.guarantees import Guarantee
    from lessnoise.ledger import Receipt
    from lessnoise.release import Certificate, Signer


STATISTIC = ("statistic", "value", "lower", "upper")
"""The columns of an answer after those of the groups."""


@dataclass(frozen=True, eq=False)
class TableAnswer(Plotted):
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
            "schema": CERTIFICATE_SCHEMA,
            "kind": "table",
            "lessnoise": __version__,
            "guarantee": self.guarantee.to_dict(),
            **self.description,
            "level": self.level,
            "private": self.private,
            "releases": [one.to_dict() for one in self.certificates],
        }

    @property
    def private(self) -> bool:
        """Whether all noise came from a secure source, and not from a seeded generator."""
        return all(one.private for one in self.certificates)

    @property
    def protects(self) -> str:
        """Whose data, in words."""
        return str(Unit(**self.description["unit"]))

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns by name."""
        return {name: [row[name] for row in self.rows] for name in self.columns}

    def to_pandas(self) -> Any:  # noqa: ANN401
        """A pandas data frame; whole numbers of which some are missing stay whole numbers."""
        pandas, columns = require("pandas", "data"), self.to_dict()
        for name, values in columns.items():
            if None in values and all(isinstance(value, (int, type(None))) for value in values):
                columns[name] = pandas.array(values, dtype="Int64")
        return pandas.DataFrame(columns)

    def to_arrow(self) -> Any:  # noqa: ANN401
        """An Arrow table."""
        return require("pyarrow", "data").table(self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated text; cells that a spreadsheet would run are made harmless."""
        return csv_text([self.columns, *([row[name] for name in self.columns] for row in self.rows)])

    def to_json(self) -> str:
        """Rows and certificate."""
        return json.dumps({"rows": [dict(row) for row in self.rows], "certificate": self.certificate}, indent=2)

    def save(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] = ("parquet",),
        force: bool = False,
        signer: Signer | None = None,
    ) -> list[Path]:
        """Write the rows, a picture, and the certificate with the SHA-256 of these files: all of them or none.

        ``formats``: ``"parquet"``, ``"csv"`` and ``"json"``. Existing files are left alone, unless ``force``.
        """
        place = TableFolder(Path(folder), formats, force, signer)
        made = place.contents(self)
        with place.reserved(made) as staged:
            return place.write(made, staged, Payment(None))

    @staticmethod
    def verify(folder: str | os.PathLike[str]) -> dict[str, Any]:
        """The certificate of a folder that :meth:`save` wrote, if every file in it is the one that was saved with it.

        >>> import tempfile, lessnoise as ln
        >>> mean = ln.Table({"age": [30.0, 40.0]}).aggregate(ln.mean("age", bounds=(0, 120)))
        >>> answer = mean.release(epsilon=1, delta=1e-6)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = answer.save(folder, formats=["csv"])
        ...     certificate = TableAnswer.verify(folder)
        >>> [path.name for path in written], certificate["guarantee"]["epsilon"]
        (['answer.csv', 'answer.png', 'certificate.json'], 1.0)
        """
        return verified(folder)

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write rows and certificate as one JSON file, complete or not at all."""
        content = (self.to_json() + "\n").encode()
        files.write_together({Path(path): files.writer(content)}, force)

    def __str__(self) -> str:
        cells = [list(self.columns), *([_text(row[name]) for name in self.columns] for row in self.rows[:50])]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        more = [] if len(self.rows) <= 50 else [f"... {len(self.rows) - 50} more rows"]
        return "\n".join([*lines, *more, f"{self.guarantee}, intervals at {self.level:.0%}"])

    def __repr__(self) -> str:
        return f"TableAnswer({len(self.rows)} rows, {self.guarantee})"


class TableFolder(CertifiedFolder):
    """Where the rows of an answer go, with a picture and a certificate."""

    stem = "answer"
    known = ("parquet", "csv", "json")

    def file(self, result: TableAnswer, form: str) -> bytes:
        """The rows."""
        if form == "csv":
            return result.to_csv().encode()
        if form == "json":
            return (json.dumps([dict(row) for row in result.rows], indent=2) + "\n").encode()
        buffer = io.BytesIO()
        require("pyarrow.parquet", "data").write_table(result.to_arrow(), buffer)
        return buffer.getvalue()

    def certificate(self, result: TableAnswer) -> dict[str, Any]:
        """What was asked, what it guarantees, and the certificate of each release."""
        return result.certificate


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) and value.isprintable() else shown(value)
