"""Delta of several releases together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise_verify.document import Fields, NotCovered

if TYPE_CHECKING:
    from fractions import Fraction

    from flint import arb

    from lessnoise_verify.laws import Case


@dataclass(frozen=True)
class Part:
    """Noise that is used some number of times, on a sample of this rate."""

    noise: Fields
    case: Case
    rate: Fraction
    count: int


def composed_delta(parts: list[Part], epsilon: Fraction, bits: int) -> arb:
    """An enclosure of the smallest delta of all parts together."""
    raise NotCovered("compositions are not covered yet.")
