"""Brackets by ball arithmetic: from the verifier, which shares no code with the curves here."""

from __future__ import annotations

from typing import Any

from lessnoise._common import round_up
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket

MOST_DIGITS = 15  # of a double


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
