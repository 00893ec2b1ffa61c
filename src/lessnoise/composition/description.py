"""A composition: a frozen description of several releases about the same individuals."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Plotted
from lessnoise._later import offers
from lessnoise._version import CERTIFICATE_SCHEMA, __version__
from lessnoise.composition.steps import Step, delta_of_steps, epsilon_of_steps, within
from lessnoise.doubles import compact
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Bracket, Guarantee, Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import Mechanism
from lessnoise.noise import machine_delta, with_machine

SCHEMA = 1
_MOST_STEPS = 10**12


@dataclass(frozen=True)
class Part:
    """One mechanism, used ``count`` times, each time on a fresh Poisson sample at ``rate`` of the individuals."""

    mechanism: Mechanism
    rate: float = 1.0
    count: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidInput(
                f"mechanism={shown(self.mechanism)} is not a mechanism: build one, e.g. with l2_mechanism."
            )
        rate = _sampling_rate(self.rate, self.mechanism)
        settle(self, rate=rate, count=validation.whole_number("count", self.count))
        if self.count > _MOST_STEPS:
            raise InvalidInput(f"count={shown(self.count)} exceeds {_MOST_STEPS}: compose fewer releases.")

    @property
    def step(self) -> Step:
        """What the curve depends on: neither names nor claims."""
        mechanism = self.mechanism
        return Step(mechanism.law, mechanism.dimension, mechanism.shift, self.rate, self.count)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"mechanism": self.mechanism.to_dict(), "rate": self.rate, "count": self.count}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Part:
        """The inverse of :meth:`to_dict`."""
        given = validation.members(cls, values)
        return cls(Mechanism.from_dict(given["mechanism"]), given["rate"], given["count"])


@dataclass(frozen=True)
class Composition(Plotted):
    """Several releases about the same individuals, each of which may depend on the results before it.

    Build one with :func:`lessnoise.compose`, ``mechanism.repeat(n)`` or ``mechanism.subsample(rate).repeat(n)``.

    >>> import lessnoise as ln
    >>> m = ln.l2_mechanism(epsilon=0.1, delta=1e-8, sensitivity=1, shape=10)
    >>> year = m.repeat(365)
    >>> bracket = year.epsilon(1e-6)
    >>> bracket.upper < 365 * 0.1 / 4, bracket.relative_width < 0.01
    (True, True)
    >>> Composition.from_json(year.to_json()) == year
    True
    """

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise InvalidInput("parts=() is empty: compose at least one mechanism.")
        relations = {part.mechanism.neighbours for part in parts}
        if len(relations) > 1:
            raise InvalidInput(
                f"neighbours={sorted(relation.value for relation in relations)} differ between the parts: "
                "state all sensitivities for one neighbouring relation."
            )
        counts: Counter[Part] = Counter()
        for part in parts:
            counts[replace(part, count=1)] += part.count
        settle(self, parts=tuple(replace(one, count=count) for one, count in counts.items()))

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation of all parts."""
        return self.parts[0].mechanism.neighbours

    @property
    def count(self) -> int:
        """Number of releases."""
        return sum(part.count for part in self.parts)

    # Building.

    def repeat(self, n: int) -> Composition:
        """The whole, n times over."""
        times = validation.whole_number("n", n)
        return Composition(tuple(replace(part, count=times * part.count) for part in self.parts))

    def subsample(self, rate: float) -> Composition:
        """One release on a Poisson sample: each individual takes part with probability ``rate``, independently."""
        if self.count > 1:
            raise InvalidInput(
                f"count={self.count} releases would share one sample, which is not supported: "
                "subsample each mechanism first, then repeat or compose."
            )
        part = self.parts[0]
        return Composition((replace(part, rate=part.rate * _sampling_rate(rate, part.mechanism)),))

    # Privacy.

    @property
    def machine_distance(self) -> float:
        """How far what a finite machine draws is from the ideal at most, over all releases: distances add up."""
        return sum(part.count * part.mechanism.machine_distance for part in self.parts) * (1.0 + 1e-12)

    def delta(self, epsilon: float) -> Bracket:
        """Exact delta at an epsilon of all releases together, bracketed: optimistic and pessimistic losses."""
        return delta_of_steps(self.steps, validation.nonnegative_epsilon(epsilon))

    def epsilon(self, delta: float) -> Bracket:
        """Exact epsilon at a delta of all releases together, bracketed."""
        return epsilon_of_steps(self.steps, _delta_or_zero(delta))

    def delta_numeric(self, epsilon: float) -> float:
        """What the finite machine adds to delta at an epsilon."""
        return machine_delta(epsilon, self.machine_distance)

    def guarantee(self, epsilon: float) -> Guarantee:
        """What all releases together really give at an epsilon: delta with what the finite machine adds to it."""
        exact = self.delta(epsilon)
        return Guarantee(epsilon, with_machine(exact, epsilon, self.machine_distance).upper, self.neighbours)

    def certificate(self, epsilon: float) -> dict[str, Any]:
        """What all releases together guarantee at an epsilon, ready for JSON: ``lessnoise verify`` can prove it.

        >>> import lessnoise as ln
        >>> year = ln.analytic_gaussian(epsilon=0.1, delta=1e-8, sensitivity=1, shape=3).repeat(12)
        >>> stated = year.certificate(epsilon=1)
        >>> stated["kind"], stated["guarantee"]["delta"] <= 1e-3
        ('composition', True)
        """
        return {
            "schema": CERTIFICATE_SCHEMA,
            "kind": "composition",
            "lessnoise": __version__,
            "parts": [compact(part.to_dict()) for part in self.parts],
            "guarantee": self.guarantee(epsilon).to_dict(),
            "exact_delta": self.delta(epsilon).to_dict(),
            "delta_numeric": self.delta_numeric(epsilon),
        }

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether all releases together are proved to be (epsilon, delta)-DP; quick where it is far from close.

        >>> import lessnoise as ln
        >>> year = ln.laplace(epsilon=0.1, sensitivity=1, shape=1).repeat(365)
        >>> year.within(12, 1e-6), year.within(8, 1e-6)
        (True, False)
        """
        return within(self.steps, validation.nonnegative_epsilon(epsilon), _delta_or_zero(delta))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The kinds of steps in an order of their own, so that equal sets of releases have equal curves."""
        merged: Counter[Step] = Counter()
        for part in self.parts:
            for step in part.step.by_entry:
                merged[step._replace(times=1)] += step.times
        steps = [step._replace(times=count) for step, count in merged.items()]
        return tuple(sorted(steps, key=lambda step: (step.dimension, repr(step.shift), step.rate, repr(step.law))))

    # Storage.

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"schema": SCHEMA, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Composition:
        """The inverse of :meth:`to_dict`."""
        parts = validation.fields(values, ("parts",), "composition", schema=SCHEMA)["parts"]
        return cls(tuple(Part.from_dict(part) for part in validation.entries("parts", parts)))

    def to_json(self) -> str:
        """One line of JSON; floats survive exactly."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Composition:
        """The inverse of :meth:`to_json`."""
        return cls.from_dict(validation.json_object(text, "composition"))


@offers("compose")
def compose(*releases: Mechanism | Composition) -> Composition:
    """Several releases, taken together in any order: what they guarantee as a whole.

    >>> import lessnoise as ln
    >>> gaussian = ln.analytic_gaussian(epsilon=1, delta=1e-6, sensitivity=1, shape=3)
    >>> counts = ln.laplace(epsilon=0.5, sensitivity=1, shape=3)
    >>> both = compose(gaussian, counts)
    >>> both.delta(1.5).upper < 1e-6 and both.epsilon(1e-6).upper < 1.5
    True
    """
    if not releases:
        raise InvalidInput("releases=() is empty: compose at least one mechanism.")
    return Composition(tuple(part for release in releases for part in as_composition(release).parts))


def as_composition(release: Mechanism | Composition) -> Composition:
    """A single mechanism is a composition of one."""
    if isinstance(release, Composition):
        return release
    if isinstance(release, Mechanism):
        return Composition((Part(release),))
    raise InvalidInput(f"release={shown(release)} is neither a mechanism nor a composition: build one, then compose.")


def _sampling_rate(value: object, mechanism: Mechanism) -> float:
    rate = validation.number("rate", value)
    if not 0.0 < rate <= 1.0:
        raise InvalidInput(f"rate={shown(value)} must be above 0 and at most 1: pass the probability of taking part.")
    if rate < 1.0 and mechanism.neighbours is not Neighbours.ADD_REMOVE:
        raise InvalidInput(
            f"neighbours={mechanism.neighbours.value!r} and rate={rate:g} do not go together: the amplification by "
            "Poisson sampling is proved for add/remove neighbours, so state the sensitivity for those."
        )
    return rate


def _delta_or_zero(delta: float) -> float:
    return 0.0 if validation.delta_or_zero(delta) == 0.0 else validation.delta(delta)
