"""The true value of a query, which nothing prints, and what was asked for it, which a certificate may tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from lessnoise._display import Shown
from lessnoise._later import later
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism import BEST

if TYPE_CHECKING:
    import numpy as np

    from lessnoise._common import Array
    from lessnoise.changes import Changes
    from lessnoise.guarantees import Neighbours
    from lessnoise.ledger import Ledger
    from lessnoise.mechanism import Request
    from lessnoise.query.base import Query
    from lessnoise.query.unit import Unit
    from lessnoise.release import Release

_MOST_NAMES = 3


@dataclass(frozen=True)
class Asked:
    """What was asked, of whom, and where: all that one can say of an answer without a look at the data."""

    query: Query
    neighbours: Neighbours
    unit: Unit
    engine: str | None = None

    @property
    def changes(self) -> Changes:
        """What one unit can do to the value."""
        return self.query.changes(self.neighbours, self.unit)

    @property
    def rules(self) -> tuple[str, ...]:
        """Which rows are dropped and what is clipped, in words."""
        return self.query.rules + self.unit.rules

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "description": self.query.to_dict(),
            "columns": list(self.query.columns),
            "unit": self.unit.to_dict(),
            "neighbours": self.neighbours.value,
            "engine": self.engine,
            "rules": list(self.rules),
        }

    def __str__(self) -> str:
        names = list(map(shown, self.query.columns[:_MOST_NAMES]))
        more = ", ..." if len(self.query.columns) > _MOST_NAMES else ""
        return f"{type(self.query).__name__} of {', '.join(names) or 'all rows'}{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Shown):
    """The true value of a query, which must never be published, and what one unit can change in it.

    No text of an answer shows ``value``: neither ``print`` nor a notebook nor an error. An answer cannot be pickled.

    >>> from lessnoise.query import Axis, Histogram
    >>> answer = Histogram([Axis("kind", keys=["bus", "taxi"])]).answer({"kind": ["bus", "bus", "taxi"]})
    >>> answer
    Answer(Histogram of 'kind', shape=(2,), protects one row: at most 1 row, add/remove; its value is not shown)
    >>> answer.release(epsilon=1, delta=1e-6).value.dtype
    dtype('int64')
    """

    value: Array
    sensitivity: float
    l1_sensitivity: float
    neighbours: Neighbours
    unit: Unit
    query: Query
    engine: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return self.value.shape

    @property
    def asked(self) -> Asked:
        """What was asked; the key that chose rows of users stays behind."""
        return Asked(self.query, self.neighbours, self.unit.without_key, self.engine)

    @property
    def changes(self) -> Changes:
        """What one unit can do to the value."""
        return self.asked.changes

    def request(self, epsilon: float, delta: float, **options: Any) -> Request:  # noqa: ANN401
        """What a mechanism for this answer must do."""
        return self.query.request(epsilon, delta, self.neighbours, self.unit, **options)

    def release(
        self,
        *,
        epsilon: float,
        delta: float,
        mechanism: str = BEST,
        rng: np.random.Generator | None = None,
        ledger: Ledger | None = None,
        partition: str | None = None,
    ) -> Release:
        """Release the answer with the least noise for what one unit can change, or by a ``mechanism`` of that name.

        ``mechanism``: "best", or a name of the catalogue. "best" gives whole numbers for counts. ``rng``, ``ledger``
        and ``partition`` are those of :meth:`Mechanism.release <lessnoise.Mechanism.release>`.

        >>> from lessnoise.query import Sum
        >>> answer = Sum(["age"], bounds=(0, 100)).answer({"age": [20.0, 40.0, 60.0]})
        >>> print(answer.release(epsilon=1, delta=1e-6).certificate.asked)
        Sum of 'age'
        """
        options = {"mechanism": mechanism, "rng": rng, "ledger": ledger, "partition": partition}
        released: Release = later("release answer")(self, epsilon=epsilon, delta=delta, **options)
        return released

    def __repr__(self) -> str:
        shape = f"shape={self.shape}, " if self.query.shape_is_public else ""
        return f"Answer({self.asked}, {shape}protects {self.unit}: {self.changes_words}; its value is not shown)"

    @property
    def changes_words(self) -> str:
        """What one unit can change, and under which relation, for people."""
        return self.changes.under(self.neighbours)

    def __copy__(self) -> Self:
        return self  # frozen, and its value is read-only

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise InvalidInput("an answer holds a true value, which belongs in no file: pickle its release instead.")
