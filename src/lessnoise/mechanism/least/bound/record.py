"""What a lower bound is reported as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lessnoise.mechanism.least.bound.proof import Proof


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A proved lower bound on E f(|n|) over every additive (epsilon, delta) mechanism of sensitivity 1."""

    value: float
    method: str  # which argument proved it
    estimate: float  # optimum of the linear program behind it: says what a finer proof could reach, proves nothing
    multipliers: tuple[float, ...] = ()  # lambda of each shift length used
    shifts: tuple[float, ...] = ()
    seconds: float = 0.0
    proof: Proof | None = None  # what can be gone through again; None where that takes as long as the search
