"""Which laws there are: each registers a function that encloses its delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from flint import arb

from lessnoise_verify.balls import probability, time_limit
from lessnoise_verify.document import Fields, NotCovered

if TYPE_CHECKING:
    from lessnoise_verify.changes import Changes

LARGEST_EPSILON: Final = 10**5
_SECONDS: Final = 15.0  # for one delta


@dataclass(frozen=True)
class Case:
    """What the noise is added to: an array of this shape, and what one individual can change of it.

    Without ``changes`` it is every change whose norm is at most ``sensitivity``, in the norm that the law is for.
    """

    shape: tuple[int, ...]
    sensitivity: Fraction
    relation: str = "add/remove"
    changes: Changes | None = None

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


Curve = Callable[[Fields, Case, Fraction, int], arb]
_LAWS: dict[str, Curve] = {}
_DRAWN: dict[str, Callable[[Fields, Case], int]] = {}
Square = Callable[[Fields, Case], tuple[Fraction, Fraction] | None]
_SQUARES: dict[str, Square] = {}


def law(kind: str, drawn: Callable[[Fields, Case], int] | None = None) -> Callable[[Curve], Curve]:
    """Register a function that encloses delta: of the law's fields, a case, epsilon, and the bits that are wanted.

    It may return a wider ball if it cannot do better; what it returns holds the true delta, the supremum over all
    changes of the case. It raises NotCovered where it has no proof. ``drawn``: how many variables a release draws, if
    it is not one for each entry.
    """

    def register(curve: Curve) -> Curve:
        _LAWS[kind] = curve
        if drawn is not None:
            _DRAWN[kind] = drawn
        return curve

    return register


def normal(*kinds: str) -> Callable[[Square], Square]:
    """Register a function that says between which numbers the largest mu^2 lies; None if the noise is not normal."""

    def register(square: Square) -> Square:
        _SQUARES.update(dict.fromkeys(kinds, square))
        return square

    return register


def squared_mu(noise: Fields, case: Case) -> tuple[Fraction, Fraction] | None:
    """Ends of the mu^2 of normal noise: its curve is that of two unit normals mu apart."""
    kind = noise.text("kind")
    return _SQUARES[kind](noise, case) if kind in _SQUARES else None


def delta(noise: Fields, case: Case, epsilon: Fraction, bits: int) -> arb:
    """An enclosure of the smallest delta with which the noise is (epsilon, delta)-private."""
    kind = noise.text("kind")
    if kind not in _LAWS:
        raise NotCovered(f"noise of kind {kind[:40]!r} has no proof here.")
    if not 0 <= epsilon <= LARGEST_EPSILON:
        raise NotCovered(f"epsilon = {float(epsilon):g} is not between 0 and {LARGEST_EPSILON}.")
    with time_limit(_SECONDS):
        return probability(_LAWS[kind](noise, case, epsilon, bits))


def values_drawn(noise: Fields, case: Case) -> int:
    """How many variables one release draws."""
    count = _DRAWN.get(noise.text("kind"))
    return case.dimension if count is None else count(noise, case)
