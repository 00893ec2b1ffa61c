"""What is asked of a mechanism: the arguments that every builder takes, checked once."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import Changes, read_changes
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism.least.objective import Goal
from lessnoise.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lessnoise._common import Shape
    from lessnoise.mechanism.law import Law

    Relation = Neighbours | str  # as a caller writes it

_STANDARD = ("epsilon", "delta", "sensitivity", "shape", "neighbours")


@contextmanager
def representable(**given: float) -> Iterator[None]:
    """Around the formula of a scale: what overflows, or divides by a number that has become 0, is refused."""
    try:
        yield
    except ArithmeticError:
        values = ", ".join(f"{name}={value:g}" for name, value in given.items())
        raise InvalidInput(f"{values} ask for noise that no double can hold: choose less extreme ones.") from None


@dataclass(frozen=True, slots=True)
class Request:
    """What to protect, and how well. The optional fields are for the mechanisms that need them.

    ``l1_sensitivity``: Laplace. ``k`` and ``p``: radial members, generalized Gaussian (p), product noise (k).
    ``bound``: the largest Frobenius norm of the value, for the published MVG. ``entry_bound``: the largest
    amount that one individual adds to any one entry, never below 0, for correlated noise. ``integer``: the value
    holds whole numbers, for integer noise. ``objective``: what least noise makes small. ``counts``: the value is a
    histogram on a line or a map, for H_b and DAWA. ``moved``: a replaced individual takes away at most half of the
    l1 sensitivity and adds at most half, for H_b. ``changes``: the set of changes that one individual can make; then
    ``sensitivity``, ``l1_sensitivity``, ``entry_bound``, ``integer`` and ``moved`` follow from it.
    """

    epsilon: float
    delta: float
    sensitivity: float  # None beside ``changes``
    shape: tuple[int, ...]
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    l1_sensitivity: float | None = None
    k: float | None = None
    p: float | None = None
    bound: float | None = None
    entry_bound: float | None = None
    integer: bool = False
    objective: str = "squared"
    counts: bool = False
    moved: bool = False
    changes: Changes | None = None

    def __post_init__(self) -> None:
        settle(self, epsilon=validation.epsilon(self.epsilon), delta=validation.delta(self.delta))
        settle(self, shape=validation.shape(self.shape), neighbours=Neighbours.of(self.neighbours))
        if self.changes is not None:
            self._settle_changes(read_changes(self.changes))
        settle(self, sensitivity=validation.sensitivity(self.sensitivity))
        Goal.of(self.objective)
        for name in ("l1_sensitivity", "k", "p", "bound", "entry_bound"):
            if getattr(self, name) is not None:
                settle(self, **{name: validation.positive(name, getattr(self, name), math.inf)})

    def _settle_changes(self, changes: Changes) -> None:
        changes.check_shape(self.shape)
        changes.check_neighbours(self.neighbours)
        l2, l1, largest = (changes.norm(order, self.dimension) for order in (2, 1, math.inf))
        if self.sensitivity not in (None, l2):
            raise InvalidInput(
                f"sensitivity={shown(self.sensitivity)} beside changes={changes}: leave it out, it follows from them."
            )
        moved = changes.relation is Neighbours.REPLACE
        settle(self, changes=changes, sensitivity=l2, l1_sensitivity=l1, integer=changes.whole, moved=moved)
        settle(self, entry_bound=largest if changes.one_sided else None)

    @classmethod
    def of(cls, epsilon: float, delta: float, sensitivity: float, shape: Shape, neighbours: Relation) -> Request:
        """From the arguments of a builder, as callers write them.

        >>> Request.of(1, 1e-6, 1, 10, "replace").shape
        (10,)
        """
        return cls(epsilon, delta, sensitivity, shape, neighbours)  # type: ignore[arg-type]  # __post_init__ converts

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def l1(self) -> float:
        """The l1 sensitivity, or the largest that the l2 sensitivity allows: sqrt(M) D."""
        return self.l1_sensitivity if self.l1_sensitivity is not None else self.largest_norm(1.0)

    @property
    def l1_of_counts(self) -> float:
        """The l1 sensitivity of a table of counts; of rows that are moved, twice as much as leaves or enters."""
        side = self.changes.side(self.dimension) if self.moved and self.changes is not None else None
        return self.l1 if side is None else 2.0 * side

    def largest_norm(self, p: float) -> float:
        """The largest l_p norm of a vector of l2 norm D: D for p >= 2, D M^(1/p - 1/2) below."""
        return float(self.sensitivity * self.dimension ** max(1.0 / p - 0.5, 0.0) * (1.0 + 1e-15))

    @property
    def reserved_delta(self) -> float:
        """The delta to calibrate the noise at: what the finite machine adds (``delta_numeric``) is left free."""
        return noise_engine.reserved(self.delta, self.epsilon, self.dimension)

    def mechanism(self, name: str, law: Law, source: str) -> Mechanism:
        """A mechanism for this request, with a source's claim to its target."""
        claim = Claim(self.epsilon, self.delta, self.neighbours, source)
        built = Mechanism(name, law, self.shape, self.sensitivity, self.neighbours, claim)
        return built if self.changes is None else built.against(self.changes)

    def standard(self, *left_out: str, **changed: object) -> dict[str, Any]:
        """The arguments that most builders take, but for those ``left_out``; some of them ``changed``."""
        return {name: getattr(self, name) for name in _STANDARD if name not in left_out} | changed

    def pure(self, **changed: object) -> dict[str, Any]:
        """The same without delta."""
        return self.standard("delta", **changed)

    def need(self, name: str, mechanism: str) -> float:
        """An optional field that a mechanism cannot do without."""
        value = getattr(self, name)
        if value is None:
            raise InvalidInput(f"{name}=None, but {mechanism} needs it: pass a positive number.")
        return float(value)
