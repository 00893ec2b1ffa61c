"""Words on what MVG needs: the number that the paper prints, and what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_paper.sections.wording import Wording, titled

if TYPE_CHECKING:
    from lessnoise_paper.model import Numbers, Words


def needed(numbers: Numbers) -> Words:
    """MVG's noise by its theorem, by its authors' first code, and exactly."""
    rows = {(row["query"], row["key"]): row for row in numbers["rows"]}
    theorem, exact = (rows["covariance", key] for key in ("published", "exact"))
    say = Wording(
        "mvg",
        "mvg",
        numbers,
        theorem=theorem,
        exact=exact,
        times=numbers["paper"]["standard_deviation"] / exact["standard_deviation"],
        counts_theorem=rows["counts", "published"],
        counts_code=rows["counts", "code"],
        counts_exact=rows["counts", "exact"],
    )
    tables = []
    for title in ("counts", "covariance"):
        query = numbers["queries"][title]
        heading = say("heading", **query)
        tables.append(titled(heading, say.table("rows", [row for row in numbers["rows"] if row["query"] == title])))
    return say.words(tables=tables)
