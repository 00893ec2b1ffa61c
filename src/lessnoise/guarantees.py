"""The vocabulary of privacy statements: guarantees, claims, computed brackets, verdicts."""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass
from typing import Any, Self

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Plotted, Shown
from lessnoise.errors import InvalidInput
from lessnoise.text import down, up


class Neighbours(enum.Enum):
    """Which data sets count as differing in one individual."""

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"

    @classmethod
    def of(cls, value: Neighbours | str) -> Neighbours:
        """Accept a member or its value.

        >>> Neighbours.of("replace")
        <Neighbours.REPLACE: 'replace'>
        """
        if isinstance(value, cls):
            return value
        validation.choice("neighbours", value, [member.value for member in cls])
        return cls(value)


@dataclass(frozen=True, slots=True)
class Guarantee(Shown):
    """(epsilon, delta)-differential privacy with respect to one neighbouring relation.

    >>> print(Guarantee(1, 1e-6))
    (1, 1e-06)-DP under add/remove
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        epsilon, delta = validation.nonnegative_epsilon(self.epsilon), _delta_up_to_one(self.delta)
        settle(self, epsilon=epsilon, delta=delta, neighbours=Neighbours.of(self.neighbours))

    def __str__(self) -> str:
        return f"({up(self.epsilon)}, {up(self.delta)})-DP under {self.neighbours.value}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "neighbours": self.neighbours.value}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_dict`."""
        return cls(**validation.members(cls, values))


@dataclass(frozen=True, slots=True)
class Claim(Guarantee):
    """What a source, such as a paper, states of its mechanism: no guarantee until the exact curve confirms it."""

    source: str = ""

    def __post_init__(self) -> None:
        Guarantee.__post_init__(self)
        validation.text("source", self.source)


@dataclass(frozen=True, slots=True)
class Bracket(Shown):
    """A proved interval around a computed privacy number: ``lower <= truth <= upper``.

    The upper end is the safe side of every delta and every epsilon.

    >>> 0.25 in Bracket(0.2, 0.3)
    True
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        for end in ("lower", "upper"):
            value = getattr(self, end)
            special = isinstance(value, float) and not math.isfinite(value)  # an infinite epsilon; nan is refused below
            settle(self, **{end: value if special else validation.number(end, value)})
        if not self.lower <= self.upper:
            raise InvalidInput(f"lower={self.lower} exceeds upper={self.upper}: swap the ends of the bracket.")

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def middle(self) -> float:
        """The centre, for pictures; never quote it as a guarantee."""
        return 0.5 * (self.lower + self.upper)

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper, 0 for an exact value."""
        return (self.upper - self.lower) / self.upper if self.upper > self.lower else 0.0

    def __str__(self) -> str:
        return f"[{down(self.lower)}, {up(self.upper)}]"

    def to_dict(self) -> dict[str, float]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, float]) -> Bracket:
        """The inverse of :meth:`to_dict`."""
        return cls(**validation.members(cls, values))


@dataclass(frozen=True, slots=True)
class Verdict(Plotted):
    """What is claimed of a mechanism, beside what is true.

    ``exact`` brackets the mechanism's delta at the claimed epsilon. ``holds`` is True only when
    the upper end is within the claimed delta, so it is never an unproved yes.
    """

    holds: bool
    claimed: Guarantee
    exact: Bracket

    @property
    def refuted(self) -> bool:
        """The claim is proved false: even the lower end exceeds the claimed delta."""
        return self.exact.lower > self.claimed.delta

    @property
    def word(self) -> str:
        """Holds, fails or is not proved."""
        return "holds" if self.holds else "fails" if self.refuted else "not proved"

    def __str__(self) -> str:
        word = "holds" if self.holds else "FAILS" if self.refuted else "is not proved"
        return (
            f"claim {self.claimed} {word}: exact delta({up(self.claimed.epsilon)}) "
            f"is in {self.exact} against {up(self.claimed.delta)} claimed"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "holds": self.holds,
            "refuted": self.refuted,
            "claimed": self.claimed.to_dict(),
            "exact": self.exact.to_dict(),
        }


def _delta_up_to_one(value: object) -> float:
    # A computed guarantee may honestly be delta = 1: no privacy at all.
    return 1.0 if validation.number("delta", value) == 1.0 else validation.delta_or_zero(value)
