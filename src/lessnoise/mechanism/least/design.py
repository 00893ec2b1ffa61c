"""How a least-noise mechanism was chosen: part of its description, so that certificates carry it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.harmless import shown
from lessnoise.mechanism.law import Radial

if TYPE_CHECKING:
    from lessnoise.mechanism.law import Law

SMALLEST_GAIN = 1e-3
"""Share of the loss below which a gain over the Gaussian is given up for its simplicity."""

_NOTE = re.compile(
    r"(the (l2 mechanism|shell mechanism|radial family|uniform ball)|all but the Gaussian) was left out "
    r"\([^;\n]{1,400}\)"
    r"|a candidate was not certified and has been left out"
)


@dataclass(frozen=True, slots=True)
class Design:
    """The objective, the kind of law that won, and what had to be left out ("" if nothing)."""

    objective: str
    choice: str
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("objective", "choice", "note"):
            validation.text(name, getattr(self, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], law: Law, dimension: int) -> Design:
        """The inverse of :meth:`to_dict`, for a law: nothing is taken over that the law does not bear out."""
        from lessnoise.mechanism.least.goal import Goal

        values = validation.fields(values, ("objective", "choice"), "design", ("note",))
        expected = describe(law, dimension)
        if values["choice"] != expected:
            raise InvalidInput(
                f"choice={shown(values['choice'])} is not what this noise is ({expected}): read the file as it was "
                "written."
            )
        return cls(Goal.of(values["objective"]).name, expected, checked_note(values.get("note", "")))


def checked_note(note: object) -> str:
    """A note that the search writes, and no other words.

    >>> checked_note("the shell mechanism was left out (too many steps)")
    'the shell mechanism was left out (too many steps)'
    """
    if not isinstance(note, str) or (note and not all(_NOTE.fullmatch(part) for part in note.split("; "))):
        raise InvalidInput("note says something that no search of ours writes: read the file as it was written.")
    return note


def describe(law: Law, dimension: int) -> str:
    """A few words on a law that the search may choose."""
    from lessnoise.mechanism.families.shells import Shells

    if isinstance(law, Shells):
        count = len(law.probabilities)
        return f"{count} shells" if count > 1 else "a uniform ball"
    if not isinstance(law, Radial):
        raise InvalidInput(f"noise={law.kind!r} is none that least noise chooses: leave out the design.")
    if law.is_gaussian(dimension):
        return "Gaussian"
    return "l2 mechanism" if law.k == dimension and law.p == 1.0 else f"radial (k = {law.k:.4g}, p = {law.p:.4g})"
