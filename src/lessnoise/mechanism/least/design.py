"""How a least-noise mechanism was chosen: part of its description, so that certificates carry it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lessnoise import validation

SMALLEST_GAIN = 1e-3
"""Share of the loss below which a gain over the Gaussian is given up for its simplicity."""


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
    def from_dict(cls, values: dict[str, Any]) -> Design:
        """The inverse of :meth:`to_dict`."""
        return cls(**validation.members(cls, values))
