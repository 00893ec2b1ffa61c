"""What a lower bound is reported as."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A proved lower bound on E f(|n|) over every additive (epsilon, delta) mechanism of sensitivity 1."""

    value: float
    method: str  # which argument proved it
    estimate: float  # optimum of the linear program behind it: says what a finer proof could reach, proves nothing
    multipliers: tuple[float, ...] = ()  # lambda of each shift length used
    shifts: tuple[float, ...] = ()
    seconds: float = 0.0
