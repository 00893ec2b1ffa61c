"""What a release can prove about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise._version import __version__
from lessnoise.guarantees import Bracket, Guarantee
from lessnoise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from lessnoise.mechanism.sampling import Source

SCHEMA = 1
_SENSITIVITY = "The sensitivity is as the caller stated it, for the stated neighbouring relation."
_COMPOSITION = "Each release counts on its own; several releases about the same individuals must be composed."
_ROUNDING = "The exact curve is that of real-valued noise; rounding of the output to floating point is not covered."


def assumptions(mechanism: Mechanism) -> tuple[str, ...]:
    """What the guarantee rests on. Integer noise is drawn and added exactly, so rounding is no concern there."""
    return (_SENSITIVITY, _COMPOSITION) if mechanism.law.integer else (_SENSITIVITY, _COMPOSITION, _ROUNDING)


@dataclass(frozen=True)
class Certificate:
    """The mechanism, its exact guarantee at the epsilon it was built for, and where the randomness came from.

    ``guarantee`` is computed, never copied from the mechanism's claim: its delta is the upper end of
    ``exact``. A release made with a caller's generator is marked ``private=False``.
    """

    mechanism: Mechanism
    guarantee: Guarantee
    exact: Bracket
    claim_holds: bool | None
    private: bool
    randomness: str
    assumptions: tuple[str, ...]
    version: str = __version__

    @classmethod
    def of(cls, mechanism: Mechanism, source: Source) -> Certificate:
        """Compute the certificate of a mechanism; a mechanism without a claim is certified at epsilon = 1."""
        if mechanism.claim is None:
            exact, holds = mechanism.delta(1.0), None
        else:
            verdict = mechanism.check()
            exact, holds = verdict.exact, verdict.holds
        epsilon = 1.0 if mechanism.claim is None else mechanism.claim.epsilon
        guarantee = Guarantee(epsilon, exact.upper, mechanism.neighbours)
        return cls(mechanism, guarantee, exact, holds, source.private, source.description, assumptions(mechanism))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "lessnoise": self.version,
            "mechanism": self.mechanism.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "exact_delta": self.exact.to_dict(),
            "claim_holds": self.claim_holds,
            "private": self.private,
            "randomness": self.randomness,
            "assumptions": list(self.assumptions),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Certificate:
        """The inverse of :meth:`to_dict`."""
        return cls(
            Mechanism.from_dict(values["mechanism"]),
            Guarantee.from_dict(values["guarantee"]),
            Bracket.from_dict(values["exact_delta"]),
            values["claim_holds"],
            values["private"],
            values["randomness"],
            tuple(values["assumptions"]),
            values["lessnoise"],
        )

    def to_json(self) -> str:
        """Readable JSON; floats survive exactly."""
        return json.dumps(self.to_dict(), indent=2)
