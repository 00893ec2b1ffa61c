"""The arguments that every builder takes, validated once."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Shape
    from lessnoise.mechanism.law import Law


@contextmanager
def representable(**given: float) -> Iterator[None]:
    """Around the formula of a scale: what overflows, or divides by a number that has become 0, is refused."""
    try:
        yield
    except ArithmeticError:
        values = ", ".join(f"{name}={value:g}" for name, value in given.items())
        raise InvalidInput(f"{values} ask for noise that no double can hold: choose less extreme ones.") from None


@dataclass(frozen=True, slots=True)
class Target:
    """What to protect, and how well."""

    epsilon: float
    delta: float
    sensitivity: float
    shape: tuple[int, ...]
    neighbours: Neighbours

    @classmethod
    def of(cls, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Neighbours | str) -> Target:
        """Check every argument."""
        return cls(
            validation.epsilon(epsilon),
            validation.delta(delta),
            validation.sensitivity(sensitivity),
            validation.shape(shape),
            Neighbours.of(neighbours),
        )

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def reserved_delta(self) -> float:
        """The delta to calibrate the noise at: what the finite machine adds (``delta_numeric``) is left free."""
        return noise_engine.reserved(self.delta, self.epsilon, self.dimension)

    def mechanism(self, name: str, law: Law, source: str) -> Mechanism:
        """A mechanism for this target, with a source's claim to it."""
        claim = Claim(self.epsilon, self.delta, self.neighbours, source)
        return Mechanism(name, law, self.shape, self.sensitivity, self.neighbours, claim)
