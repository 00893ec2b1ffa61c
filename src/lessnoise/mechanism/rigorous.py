"""Brackets by ball arithmetic: from the verifier, which shares no code with the curves here."""

from __future__ import annotations

from typing import Any

from lessnoise._common import round_up
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket

MOST_DIGITS = 15  # of a double
_FEW = 8  # digits that confirm


def rigorous_delta(description: dict[str, Any], epsilon: float, digits: int) -> Bracket:
    """The verifier's enclosure of delta, rounded outwards to doubles."""
    import lessnoise_verify as verifier  # it loads Arb, which takes as long as all the rest

    if digits > MOST_DIGITS:
        raise InvalidInput(f"digits={digits} is more than a bracket of doubles can hold: pass at most {MOST_DIGITS}.")
    try:
        lower, upper = verifier.enclosed_delta(description, epsilon, digits)
    except verifier.NotProved as error:
        raise InvalidInput(
            f"rigorous=True has no proof for this mechanism at epsilon={epsilon:g} ({error}): leave it out."
        ) from None
    return Bracket(-round_up(-lower), min(round_up(upper), 1.0))


def confirmed(noise: dict[str, Any], dimension: int, sensitivity: float, epsilon: float, delta: float) -> bool:
    """Whether nothing is proved against a law for an l2 ball: False if its enclosure exceeds delta.

    What the verifier does not cover has been computed by the library's own curve, as everything has.
    """
    import lessnoise_verify as verifier

    case = {"shape": [dimension], "sensitivity": sensitivity, "neighbours": "add/remove", "claim": None}
    try:
        _, upper = verifier.enclosed_delta({"name": "kept", "noise": noise, **case}, epsilon, _FEW)
    except verifier.NotProved:
        return True
    return float(upper) <= delta
