"""What one unit can change of a query's answer, from the query's description."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessnoise_verify.document import Fields, NotCovered

if TYPE_CHECKING:
    from lessnoise_verify.laws import Case


def check_query(query: Fields, noise: Fields, case: Case) -> None:
    """Refuted unless the mechanism's curve is for all changes of the query's answer."""
    raise NotCovered("queries are not covered yet.")
