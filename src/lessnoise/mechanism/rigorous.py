"""Brackets by ball arithmetic: from the verifier, which shares no code with the curves here."""

from __future__ import annotations

from typing import Any

import lessnoise_verify as verifier  # it loads Arb when a proof begins
from lessnoise._common import round_up
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket

MOST_DIGITS = 15  # of a double
_FEW = 8  # digits that confirm


def enclosure(description: dict[str, Any], epsilon: float, digits: int) -> Bracket:
    """The verifier's enclosure of delta, rounded outwards to doubles; raises its NotProved where it has none."""
    lower, upper = verifier.enclosed_delta(description, epsilon, digits)
    return Bracket(-round_up(-lower), min(round_up(upper), 1.0))


def rigorous_delta(description: dict[str, Any], epsilon: float, digits: int) -> Bracket:
    """The enclosure for callers, who get one sentence where there is none."""
    if digits > MOST_DIGITS:
        raise InvalidInput(f"digits={digits} is more than a bracket of doubles can hold: pass at most {MOST_DIGITS}.")
    try:
        return enclosure(description, epsilon, digits)
    except verifier.NotProved as error:
        raise InvalidInput(
            f"rigorous=True has no proof for this mechanism at epsilon={epsilon:g} ({error}): leave it out."
        ) from None


def confirmed(noise: dict[str, Any], dimension: int, sensitivity: float, epsilon: float, delta: float) -> bool:
    """Whether nothing is proved against a law for an l2 ball: False if its enclosure exceeds delta.

    What the verifier does not cover has been computed by the library's own curve, as everything has.
    """
    case = {"shape": [dimension], "sensitivity": sensitivity, "neighbours": "add/remove", "claim": None}
    try:
        return enclosure({"name": "kept", "noise": noise, **case}, epsilon, _FEW).upper <= delta
    except verifier.NotProved:
        return True
