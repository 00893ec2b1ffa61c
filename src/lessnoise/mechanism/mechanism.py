"""A mechanism: a frozen description of what noise is added to what, and what is claimed of it."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lessnoise import noise as noise_engine
from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Plotted
from lessnoise._later import later
from lessnoise.changes import Changes, Moves, read_changes
from lessnoise.doubles import expanded
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Claim, Guarantee, Neighbours, Verdict
from lessnoise.harmless import shown
from lessnoise.mechanism import losses
from lessnoise.mechanism.curve import attained, delta_of, epsilon_of, worst_of
from lessnoise.mechanism.law import Law, law_from_dict
from lessnoise.mechanism.least.objective import Design
from lessnoise.mechanism.rigorous import rigorous_delta
from lessnoise.mechanism.sampling import draw_noise, values_drawn
from lessnoise.noise import machine_delta, with_machine
from lessnoise.text import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from lessnoise.composition import Composition
    from lessnoise.ledger import Ledger
    from lessnoise.query import Answer
    from lessnoise.release import Release

SCHEMA = 1


@dataclass(frozen=True)
class Mechanism(Plotted):
    """A description of noise for arrays of one shape, which hides a set of ``changes`` or all up to ``sensitivity``.

    Build one with a builder such as :func:`lessnoise.analytic_gaussian`. Everything below is computed
    from these fields; the ``claim`` is only what a source says and never enters a computation. The ``design`` says how
    :func:`lessnoise.least_noise` chose the law. Without ``changes`` the sensitivity is the radius of a ball in the
    law's norm, l2 for most; with them it is the largest norm of a change, and the curves are those of the set.

    >>> import lessnoise as ln
    >>> m = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=(3, 4))
    >>> m.check().holds
    True
    >>> Mechanism.from_json(m.to_json()) == m
    True
    """

    name: str
    law: Law
    shape: tuple[int, ...]
    sensitivity: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    claim: Claim | None = None
    design: Design | None = None
    changes: Changes | None = None

    def __post_init__(self) -> None:
        validation.text("name", self.name)
        settle(self, shape=validation.shape(self.shape), sensitivity=validation.sensitivity(self.sensitivity))
        settle(self, neighbours=Neighbours.of(self.neighbours))
        self.law.check_shape(self.shape)
        self.law.check_neighbours(self.neighbours)
        if self.changes is not None:
            self._check_changes(self.changes)

    def _check_changes(self, changes: Changes) -> None:
        changes.check_shape(self.shape)
        changes.check_neighbours(self.neighbours)
        stated = _size(self.law, worst_of(self.law, changes, self.dimension))
        if self.sensitivity != stated:
            raise InvalidInput(
                f"sensitivity={self.sensitivity:g} is not that of changes={changes}, {stated:g}: use "
                "mechanism.against(changes), which computes it."
            )

    def against(self, changes: Changes) -> Mechanism:
        """The same noise against another set of changes: every number is computed for that set.

        >>> import lessnoise as ln
        >>> m = ln.laplace(epsilon=1, sensitivity=2, shape=6).against(ln.changes.counts(neighbours="replace"))
        Traceback (most recent call last):
        lessnoise.errors.InvalidInput: neighbours='add/remove' is not that of the changes...
        >>> m = ln.laplace(epsilon=1, sensitivity=2, shape=6, neighbours="replace")
        >>> m.delta(0.5).upper > m.against(ln.changes.counts(neighbours="replace")).delta(0.5).upper
        True
        """
        changes = read_changes(changes)
        changes.check_shape(self.shape)
        size = _size(self.law, worst_of(self.law, changes, self.dimension))
        return replace(self, changes=changes, sensitivity=size)

    @functools.cached_property
    def shift(self) -> float | Moves:
        """The worst change, as the law's curve takes it."""
        return self.sensitivity if self.changes is None else worst_of(self.law, self.changes, self.dimension)

    @property
    def dimension(self) -> int:
        """Number of entries, the M of the formulas."""
        return math.prod(self.shape)

    # Accuracy.

    @property
    def expected_loss(self) -> float:
        """E||n||^2, the expected accuracy loss over the whole array."""
        return losses.expected_loss(self.law, self.dimension)

    @property
    def standard_deviation(self) -> float:
        """Root mean square noise of one entry, sqrt(E||n||^2 / M)."""
        return math.sqrt(self.expected_loss / self.dimension)

    @property
    def query_error(self) -> float:
        """The expected squared error of an answer, averaged over the questions of the workload, or else the entries."""
        return losses.query_error(self.law, self.dimension)

    @property
    def loss_kurtosis(self) -> float:
        """E[L^4]/E[L^2]^2 of the loss L = ||n||^2 (raw moments, as the paper defines it)."""
        return losses.kurtosis(self.law, self.dimension)

    @property
    def loss_skewness(self) -> float:
        """E[L^3]/E[L^2]^(3/2) of the loss L = ||n||^2 (raw moments, as the paper defines it)."""
        return losses.skewness(self.law, self.dimension)

    def loss_quantile(self, q: float) -> float:
        """The loss ||n||^2 that is not exceeded with probability q."""
        return losses.loss_quantile(self.law, self.dimension, validation.probability("q", q))

    @property
    def optimality(self) -> float:
        """Loss over a proved lower bound on that of every additive mechanism with the same guarantee: at least 1.

        The loss is E||n||^2, or the objective that :func:`lessnoise.least_noise` was asked for.
        """
        return float(later("optimality")(self))

    def bound_proof(self) -> dict[str, Any]:
        """The proof of a lower bound on E||n||^2 of every mechanism with this claim, ready for JSON.

        ``lessnoise verify`` goes through it in ball arithmetic. It takes up to half a minute to find.

        >>> import lessnoise as ln
        >>> m = ln.least_noise(epsilon=0.1, delta=1e-6, sensitivity=1, shape=1)
        >>> proof = m.bound_proof()
        >>> proof["kind"], 0.98 < proof["value"] / m.expected_loss <= 1.0
        ('lower-bound', True)
        """
        found: dict[str, Any] = later("bound proof")(self)
        return found

    # Privacy.

    def delta(self, epsilon: float, *, rigorous: bool = False, digits: int = 12) -> Bracket:
        """Exact delta at an epsilon: the smallest delta of an (epsilon, delta) guarantee, bracketed.

        With ``rigorous`` the bracket is an enclosure by ball arithmetic, of so many ``digits`` where it can have them:
        other code, which does not rely on floating point. It takes up to some seconds.

        >>> import lessnoise as ln
        >>> m = ln.l2_mechanism(epsilon=1, delta=1e-6, sensitivity=1, shape=5)
        >>> m.delta(0.9, rigorous=True).relative_width < 1e-10 < m.delta(0.9).relative_width
        True
        """
        epsilon = validation.nonnegative_epsilon(epsilon)
        if rigorous:
            return rigorous_delta(self.to_dict(), epsilon, validation.whole_number("digits", digits))
        return self._of_set(delta_of(self.law, self.dimension, self.shift, epsilon))

    def epsilon(self, delta: float) -> Bracket:
        """Exact epsilon at a delta: the smallest epsilon of an (epsilon, delta) guarantee, bracketed."""
        return self._of_set(epsilon_of(self.law, self.dimension, self.shift, validation.delta_or_zero(delta)))

    def _of_set(self, found: Bracket) -> Bracket:
        """A bracket for the worst change, which may be hidden worse than any of the set: then nothing is below."""
        exact = self.changes is None or attained(self.law, self.changes, self.dimension)
        return found if exact else Bracket(0.0, found.upper)

    @property
    def machine_distance(self) -> float:
        """How far what a finite machine draws is from the ideal noise at most."""
        return noise_engine.machine_distance(values_drawn(self.law, self.dimension))

    def delta_numeric(self, epsilon: float) -> float:
        """What the finite machine adds to delta at an epsilon."""
        return machine_delta(epsilon, self.machine_distance)

    def guarantee(self, epsilon: float) -> Guarantee:
        """What a release really gives at an epsilon, on the safe side: delta with what the finite machine adds to it.

        >>> import lessnoise as ln
        >>> f"{ln.laplace(epsilon=1, sensitivity=1, shape=3).guarantee(1).delta:.1e}"
        '2.3e-32'
        """
        exact = self.delta(epsilon)
        return Guarantee(epsilon, with_machine(exact, epsilon, self.machine_distance).upper, self.neighbours)

    def check(self) -> Verdict:
        """Compare the claim with the exact curve."""
        if self.claim is None:
            raise InvalidInput(
                f"claim=None for mechanism {shown(self.name)}: there is nothing to check; read .delta(epsilon) instead."
            )
        if self.claim.neighbours is not self.neighbours:
            raise InvalidInput(
                f"claim.neighbours={self.claim.neighbours.value!r} differs from neighbours={self.neighbours.value!r}: "
                "state the claim for the mechanism's own relation."
            )
        exact = self.delta(self.claim.epsilon)
        if exact.lower <= self.claim.delta < exact.upper:  # too close to call: look closer
            exact = delta_of(self.law, self.dimension, self.shift, self.claim.epsilon, 1e-7)
        return Verdict(exact.upper <= self.claim.delta, self.claim, exact)

    def repeat(self, n: int) -> Composition:
        """``n`` releases about the same individuals, each with fresh noise."""
        composition: Composition = later("compose")(self)
        return composition.repeat(n)

    def subsample(self, rate: float) -> Composition:
        """One release on a Poisson sample: each individual takes part with probability ``rate``, independently."""
        composition: Composition = later("compose")(self)
        return composition.subsample(rate)

    # Use.

    def noise(self, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
        """One draw of the noise alone, for experiments: what a release would add to an array of zeros."""
        return draw_noise(self.law, self.shape, validation.generator(rng))

    def release(
        self,
        value: ArrayLike | Answer,
        rng: np.random.Generator | None = None,
        *,
        ledger: Ledger | None = None,
        partition: str | None = None,
        out: NDArray[Any] | None = None,
        threads: int | None = None,
    ) -> Release:
        """Add noise to a value. Without ``rng`` the randomness is cryptographic; with it, not private.

        An :class:`~lessnoise.Answer` of a query is released if the mechanism hides all that one unit can change of it.
        With a ``ledger`` the release is paid for first; ``partition`` is the key of the individuals it concerns.
        ``out`` receives the noisy value and may be ``value`` itself. The number of threads changes the time alone.
        """
        options = {"ledger": ledger, "partition": partition, "out": out, "threads": threads}
        released: Release = later("release")(self, value, rng, **options)
        return released

    # Storage.

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "noise": self.law.to_dict(),
            "shape": list(self.shape),
            "sensitivity": self.sensitivity,
            "neighbours": self.neighbours.value,
            "claim": None if self.claim is None else self.claim.to_dict(),
            **({} if self.design is None else {"design": self.design.to_dict()}),
            **({} if self.changes is None else {"changes": self.changes.to_dict()}),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Mechanism:
        """The inverse of :meth:`to_dict`; long tables may be there as a certificate has them, in base64."""
        values = expanded(values)
        needed = ("name", "noise", "shape", "sensitivity", "neighbours", "claim")
        values = validation.fields(values, needed, "description", optional=("design", "changes"), schema=SCHEMA)
        claim = values["claim"]
        found = cls(
            name=values["name"],
            law=law_from_dict(values["noise"]),
            shape=values["shape"],
            sensitivity=values["sensitivity"],
            neighbours=values["neighbours"],
            claim=None if claim is None else Claim.from_dict(claim),
            changes=read_changes(values["changes"]) if "changes" in values else None,
        )
        if "design" not in values:
            return found
        return replace(found, design=Design.from_dict(values["design"], found.law, found.dimension))

    def to_json(self) -> str:
        """One line of JSON; floats survive exactly."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Mechanism:
        """The inverse of :meth:`to_json`."""
        return cls.from_dict(validation.json_object(text, "description"))


def _size(law: Law, shift: float | Moves) -> float:
    """The size of the worst change in the law's norm."""
    if not isinstance(shift, Moves):
        return shift
    return shift.norm(getattr(law, "p", 1) if law.norm == "lp" else 1)


def changes_words(mechanism: Mechanism) -> str:
    """What one individual can change, for people: the set, or the ball that a sensitivity is short for.

    >>> import lessnoise as ln
    >>> changes_words(ln.laplace(epsilon=1, sensitivity=2, shape=3))
    'l1 norm at most 2, add/remove'
    """
    if mechanism.changes is None:
        return f"{mechanism.law.norm} norm at most {up(mechanism.sensitivity)}, {mechanism.neighbours.value}"
    return mechanism.changes.under(mechanism.neighbours)
