"""A plan: a frozen description of the releases of a year, with the noise of each and what they cost together."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise._common import settle
from lessnoise._display import Facts, Listed, Plotted
from lessnoise.composition import SHARP, Composition, Part
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Claim, Guarantee, Verdict
from lessnoise.harmless import shown
from lessnoise.mechanism import BEST, Mechanism, Request, with_noise
from lessnoise.noise import with_machine
from lessnoise.planning.choosing import fitted
from lessnoise.planning.fitting import delta_at, least_factor
from lessnoise.planning.item import Planned
from lessnoise.text import up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lessnoise._common import Progress
    from lessnoise.guarantees import Bracket

    Schedule = Request | Mechanism | Planned | Sequence[Planned] | Mapping[str, Planned]

SCHEMA = 1
_SOURCE = "all releases of a plan together, on the exact composed curve"


@dataclass(frozen=True)
class PlanItem(Listed):
    """Releases of one kind: the mechanism with its exact noise, how often, and the item's share of the budget."""

    name: str
    mechanism: Mechanism
    times: int
    share: float
    rate: float = 1.0

    def __post_init__(self) -> None:
        validation.text("name", self.name)
        part = Part(self.mechanism, self.rate, self.times)
        settle(self, times=part.count, rate=part.rate, share=validation.positive("share", self.share))

    @property
    def part(self) -> Part:
        """As a part of a composition."""
        return Part(self.mechanism, self.rate, self.times)

    @property
    def expected_loss(self) -> float:
        """E||n||^2 of one release."""
        return self.mechanism.expected_loss

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "name": self.name,
            "mechanism": self.mechanism.to_dict(),
            "times": self.times,
            "share": self.share,
            "rate": self.rate,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PlanItem:
        """The inverse of :meth:`to_dict`."""
        given = validation.members(cls, values, "item of the plan")
        return cls(**given | {"mechanism": Mechanism.from_dict(given["mechanism"])})

    def _facts(self) -> Facts:
        rows = [("times", f"{self.times:,}"), ("mechanism", self.mechanism.name), ("share", f"{self.share:.4g}")]
        return Facts(f"Item {self.name} of a plan", [*rows, ("sampling rate", f"{self.rate:g}")])


@dataclass(frozen=True)
class ReleasePlan(Plotted):
    """The releases that fit into a target together, made by :func:`lessnoise.plan_releases`.

    Every release is made with ``plan[name].mechanism``, or with ``plan.mechanism`` if there is but one kind. A ledger
    can hold the plan: see :meth:`lessnoise.Ledger.reserve`.

    >>> import lessnoise as ln
    >>> plan = ln.plan_releases(ln.Request(1, 1e-6, 1.0, 10), times=12)
    >>> plan.mechanism.name, plan.check().holds
    ('analytic-gaussian', True)
    >>> ReleasePlan.from_json(plan.to_json()) == plan
    True
    """

    target: Guarantee
    items: tuple[PlanItem, ...]

    def __post_init__(self) -> None:
        settle(self, items=tuple(self.items))
        if not isinstance(self.target, Guarantee):
            raise InvalidInput(f"target={shown(self.target)} is not a guarantee: pass lessnoise.Guarantee(1, 1e-6).")
        composition = self.composition  # one relation, at least one item
        if composition.neighbours is not self.target.neighbours:
            raise InvalidInput(
                f"neighbours={composition.neighbours.value!r} differs from {self.target.neighbours.value!r} of the "
                "target: state both for one relation."
            )
        _check_names([item.name for item in self.items])

    def __getitem__(self, name: str) -> PlanItem:
        for item in self.items:
            if item.name == name:
                return item
        raise validation.unknown("item", name, [item.name for item in self.items])

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self.items)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of a plan with one kind of releases."""
        if len(self.items) > 1:
            names = ", ".join(shown(item.name) for item in self.items)
            raise InvalidInput(f"items={len(self.items)} in this plan: say which one, as in plan[name], of {names}.")
        return self.items[0].mechanism

    @property
    def times(self) -> int:
        """How many releases there are in all."""
        return sum(item.times for item in self.items)

    @property
    def composition(self) -> Composition:
        """All releases together."""
        return Composition(tuple(item.part for item in self.items))

    @property
    def exact_delta(self) -> Bracket:
        """Exact delta of all releases together at the target's epsilon, with what a finite machine adds to it."""
        whole = self.composition
        found = delta_at(whole, self.target.epsilon, SHARP)
        return with_machine(found, self.target.epsilon, whole.machine_distance)

    def check(self) -> Verdict:
        """Whether all releases together are proved to keep the target, computed anew."""
        exact = self.exact_delta
        return Verdict(exact.upper <= self.target.delta, _claim(self.target), exact)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """A table in plain text: one line an item, then the total."""
        head = ("item", "times", "rate", "share", "mechanism", "noise sd", "loss")
        rows = [head, *(tuple(row) for row in self.rows())]
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        words = (0, 4)  # columns to the left of their places
        lines = [
            "  ".join(
                cell.ljust(width) if k in words else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return [*lines, self.total()]

    def rows(self) -> list[list[str]]:
        """The items as texts: name, times, rate, share, mechanism, noise of an entry, loss of one release."""
        return [
            [
                item.name,
                f"{item.times:,}",
                f"{item.rate:g}",
                f"{item.share:.3g}",
                item.mechanism.name,
                f"{item.mechanism.standard_deviation:.6g}",
                f"{item.expected_loss:.6g}",
            ]
            for item in self.items
        ]

    def total(self) -> str:
        """One sentence on all of them."""
        found = self.check()
        word = "" if found.holds else "; this is NOT proved to keep the target"
        return (
            f"{self.times:,} releases together: delta at most {up(found.exact.upper, 5)} at epsilon = "
            f"{up(self.target.epsilon)}, for a target of {self.target}{word}."
        )

    # Storage.

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"schema": SCHEMA, "target": self.target.to_dict(), "items": [item.to_dict() for item in self.items]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ReleasePlan:
        """The inverse of :meth:`to_dict`; :meth:`check` says whether it still keeps its target."""
        given = validation.fields(values, ("target", "items"), "plan", schema=SCHEMA)
        items = tuple(PlanItem.from_dict(one) for one in validation.entries("items", given["items"]))
        return cls(Guarantee.from_dict(given["target"]), items)

    def to_json(self) -> str:
        """One line of JSON; floats survive exactly."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> ReleasePlan:
        """The inverse of :meth:`to_json`."""
        return cls.from_dict(validation.json_object(text, "plan"))


def plan_releases(
    schedule: Schedule,
    *,
    times: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rate: float | None = None,
    mechanism: str | None = None,
    progress: Progress | None = None,
) -> ReleasePlan:
    """The noise of each release, so that all of them together keep (epsilon, delta), and no more noise than that.

    ``schedule`` is a request (or a mechanism, whose kind of noise is then kept) with ``times``, ``rate`` and
    ``mechanism``; or a list of :class:`Planned`, or a dict of them by name. The scale is that of the exact
    composition, proved, and within 0.1% of the smallest (on samples, 0.2%). The law is the best for that many releases.
    ``epsilon`` and ``delta`` are the target over everything; for a single request they may be its own. An item
    with the share w of several (the shares are divided by their sum) gets 1/w times the variance that it would get
    alone, and then one factor for all makes them fit together exactly.
    ``progress`` is called with (label, done, total).

    >>> import lessnoise as ln
    >>> monthly = ln.Request(1, 1e-6, None, 20, changes=ln.changes.counts())
    >>> plan = plan_releases(monthly, times=12, epsilon=1, delta=1e-6)
    >>> print(plan)
    item      times  rate  share  mechanism       noise sd     loss
    releases     12     1      1  discrete-power   14.0...  395...
    12 releases together: delta at most 9.9...e-07 at epsilon = 1, for a target of (1, 1e-06)-DP under add/remove.
    >>> both = plan_releases({"table": ln.Planned(monthly, 4, share=3), "count": ln.Planned(monthly, 52)},
    ...                      epsilon=1, delta=1e-6)
    >>> both["table"].share, both["count"].times
    (0.75, 52)
    """
    items = _items(schedule, times, rate, mechanism)
    target = _target(items, epsilon, delta)
    report = progress or (lambda label, done, total: None)
    alone = []
    for number, item in enumerate(items):
        report(f"choosing the noise of {item.name}", number, len(items) + 1)
        alone.append(fitted(item, target))
    report("fitting all of them together", len(items), len(items) + 1)
    total = math.fsum(item.share for item in items)
    shares = [item.share / total for item in items]
    if len(items) > 1:
        alone = _together(items, shares, alone, target)
    found = [  # of one release on all the data the claim is true all the more
        PlanItem(
            item.name, replace(one, claim=_claim(target) if item.rate == 1.0 else None), item.times, share, item.rate
        )
        for item, one, share in zip(items, alone, shares, strict=True)
    ]
    return ReleasePlan(target, tuple(found))


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"name={shown(name)} is that of two items: give each its own.")


def _claim(target: Guarantee) -> Claim:
    return Claim(target.epsilon, target.delta, target.neighbours, _SOURCE)


def _together(
    items: Sequence[Planned], shares: Sequence[float], alone: Iterable[Mechanism], target: Guarantee
) -> list[Mechanism]:
    """Each with its share, and one factor for all: for Gaussians it is 1, for others near it."""
    wider = [with_noise(one, 1.0 / math.sqrt(share)) for one, share in zip(alone, shares, strict=True)]

    def scaled(factor: float) -> Composition:
        return Composition(
            tuple(Part(with_noise(one, factor), item.rate, item.times) for one, item in zip(wider, items, strict=True))
        )

    factor = least_factor(scaled, target)
    return [with_noise(one, factor) for one in wider]


def _items(schedule: object, times: int | None, rate: float | None, mechanism: str | None) -> list[Planned]:
    if isinstance(schedule, (Request, Mechanism)):
        if times is None:
            raise InvalidInput("times=None: say how often it is released, as in times=12.")
        return [Planned(schedule, times, 1.0, 1.0 if rate is None else rate, mechanism or BEST, "releases")]
    if not isinstance(schedule, (Planned, Mapping, Sequence)) or isinstance(schedule, str):
        raise InvalidInput(
            f"schedule of type {type(schedule).__name__} is not a schedule: pass a lessnoise.Request with times=, or "
            "lessnoise.Planned items; "
            "answers of a table are not planned here, so release each with its part of epsilon, and pass ledger=."
        )
    for name, value in (("times", times), ("rate", rate), ("mechanism", mechanism)):
        if value is not None:
            raise InvalidInput(f"{name}={shown(value)} beside a schedule: each item says its own.")
    if isinstance(schedule, Planned):
        found = [schedule]
    elif isinstance(schedule, Mapping):
        found = [replace(one, name=str(name)) if isinstance(one, Planned) else one for name, one in schedule.items()]
    else:
        found = list(schedule)
    for one in found:
        if not isinstance(one, Planned):
            raise InvalidInput(
                f"schedule={shown(one)} is not an item of a schedule: pass lessnoise.Planned(request, times)."
            )
    if not found:
        raise InvalidInput("schedule=[] is empty: plan at least one kind of release.")
    named = [one if one.name else replace(one, name=f"item {k}") for k, one in enumerate(found, start=1)]
    _check_names([one.name for one in named])
    return named


def _target(items: Sequence[Planned], epsilon: float | None, delta: float | None) -> Guarantee:
    relations = {item.neighbours for item in items}
    if len(relations) > 1:
        raise InvalidInput(
            f"neighbours={sorted(relation.value for relation in relations)} differ between the items: state all "
            "sensitivities for one relation."
        )
    single = items[0].request
    if isinstance(single, Request) and len(items) == 1:
        epsilon = single.epsilon if epsilon is None else epsilon
        delta = single.delta if delta is None else delta
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is None:
            raise InvalidInput(f"{name}=None: pass the {name} that all releases together may have.")
    return Guarantee(validation.epsilon(epsilon), validation.delta(delta), items[0].neighbours)
