"""One line of a schedule, before it is planned: what is released, how often, with which share of the budget."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lessnoise import validation
from lessnoise._common import settle
from lessnoise.changes import parse, read_changes
from lessnoise.composition import Part
from lessnoise.errors import InvalidInput
from lessnoise.guarantees import Neighbours
from lessnoise.harmless import shown
from lessnoise.mechanism import BEST, Mechanism, Request

if TYPE_CHECKING:
    from lessnoise.guarantees import Guarantee


@dataclass(frozen=True)
class Planned:
    """A request that is released ``times`` times. The epsilon and delta of the plan count, and not its own.

    ``request`` may be a mechanism too: then its noise is kept in kind, and only made wider or narrower. ``share`` is
    the item's part of the budget, relative to those of the others: twice the share is half the variance of the noise.
    ``rate``: each release is on a Poisson sample of the individuals. ``mechanism`` is a name of the catalogue, or
    "best" for the law that loses least over that many releases. ``name`` is how reports call the item.

    >>> import lessnoise as ln
    >>> weekly = ln.Planned(ln.Request(1, 1e-6, None, 1, changes=ln.changes.counts()), times=52, share=0.4)
    >>> weekly.times, weekly.rate
    (52, 1.0)
    """

    request: Request | Mechanism
    times: int
    share: float = 1.0
    rate: float = 1.0
    mechanism: str = BEST
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.request, (Request, Mechanism)):
            raise InvalidInput(
                f"request={shown(self.request)} is neither a request nor a mechanism: pass lessnoise.Request(...)."
            )
        settle(self, times=validation.whole_number("times", self.times))
        settle(self, share=validation.positive("share", self.share))
        validation.text("name", self.name)
        validation.text("mechanism", self.mechanism)
        if isinstance(self.request, Mechanism):
            if self.mechanism != BEST:
                raise InvalidInput(
                    f"mechanism={self.mechanism!r} beside a request that is a mechanism: leave it out, or pass a "
                    "lessnoise.Request."
                )
            settle(self, rate=Part(self.request, self.rate, self.times).rate)
            return
        rate = validation.number("rate", self.rate)
        if not 0.0 < rate <= 1.0:
            raise InvalidInput(f"rate={rate:g} must be above 0 and at most 1: pass the probability of taking part.")
        settle(self, rate=rate)
        if rate < 1.0 and self.neighbours is not Neighbours.ADD_REMOVE:
            raise InvalidInput(
                f"neighbours={self.neighbours.value!r} and rate={rate:g} do not go together: state the sensitivity "
                "for add/remove neighbours."
            )

    @property
    def neighbours(self) -> Neighbours:
        """The relation that the request is stated for."""
        return self.request.neighbours


_OWN = ("times", "share", "rate", "mechanism", "name")
_ASKED = tuple(field.name for field in fields(Request) if field.name not in ("epsilon", "delta", "moved"))


def read_schedule(values: object, target: Guarantee) -> list[Planned]:
    """The items of a schedule file: {"items": [{"name": ..., "times": ..., "share": ..., "shape": ..., ...}, ...]}.

    Beside its own fields, an item has those of a request; ``changes`` may be written as on the command line.

    >>> from lessnoise import Guarantee
    >>> items = [{"name": "weekly count", "times": 52, "shape": 1, "changes": "counts"}]
    >>> read_schedule({"items": items}, Guarantee(1, 1e-6))[0].request.integer
    True
    """
    found = validation.fields(values, ("items",), "schedule", written_by="hand")["items"]
    return [_read_item(one, target) for one in validation.entries("items", found)]


def _read_item(values: Any, target: Guarantee) -> Planned:  # noqa: ANN401
    given = validation.fields(
        values, ("times", "shape"), "item of the schedule", optional=(*_OWN, *_ASKED), written_by="hand"
    )
    own = {name: given[name] for name in _OWN if name in given}
    asked = {name: given[name] for name in _ASKED if name in given}
    relation = Neighbours.of(asked.get("neighbours", target.neighbours))
    if "changes" in asked:
        changes = asked["changes"]
        asked["changes"] = parse(changes, relation) if isinstance(changes, str) else read_changes(changes)
    elif "sensitivity" not in asked:
        raise InvalidInput(
            f"item={shown(own.get('name', ''))} says neither sensitivity nor changes: say what one individual can "
            'change, such as "changes": "counts".'
        )
    asked = {"sensitivity": None} | asked | {"neighbours": relation}
    return Planned(Request(epsilon=target.epsilon, delta=target.delta, **asked), **own)
